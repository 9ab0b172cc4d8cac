-- How long an unfinished recording has lasted so far, as far as its rows show.
SELECT MAX(COALESCE((SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1), 0), COALESCE((SELECT MAX(end_ns) FROM compile), 0), 1) + 1;

-- How long a recording has lasted that goes on, as far as it shows.
SELECT MAX(COALESCE((SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1), 0), COALESCE((SELECT MAX(end_ns) FROM compile), 0), 1) + 1;

-- Cache entries and how often each was tried and hit; those never hit and those that died come first (reads every lookup)
SELECT qualname, filename, first_line, label, backend, region_id, guard_count, round(born_ns / 1e9, 6) AS born_s, tried, hit,
       round(last_use_ns / 1e9, 6) AS last_use_s, round(died_ns / 1e9, 6) AS died_s, death_cause
FROM cache_entries
ORDER BY hit = 0 DESC, died_ns IS NULL, hit, cache_entry_id
LIMIT 200;

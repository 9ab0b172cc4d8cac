-- Cache entries and how often each was tried and hit; those never hit and those that died come first (reads every lookup)
--
-- Why: An entry that is never hit was compiled for nothing, and is tried in vain before those that fit.
-- Columns: qualname, filename, first_line: the function; label: the compiler's name for it; backend: which compiled
--   it; region_id: the region that alone sees it; guard_count: conditions it has; born_s: when; tried: lookups that
--   ran its guards; hit: lookups that it fitted; last_use_s: its last hit, or when it was made; died_s, death_cause:
--   when and of what, if it did.
SELECT qualname, filename, first_line, label, backend, region_id, guard_count, round(born_ns / 1e9, 6) AS born_s, tried, hit,
       round(last_use_ns / 1e9, 6) AS last_use_s, round(died_ns / 1e9, 6) AS died_s, death_cause
FROM cache_entries
ORDER BY hit = 0 DESC, died_ns IS NULL, hit, cache_entry_id
LIMIT 200;

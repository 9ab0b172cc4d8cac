-- Cache entries and how often each was tried and hit; those never hit and those that died come first (reads every lookup)
--
-- Why: An entry that is never hit was compiled for nothing, and lookups try it in vain before those
--   that fit.
-- Columns: qualname, filename, first_line: the function; label: the compiler's name for the entry;
--   backend: the backend that compiled it; region_id: the region to which it belongs, or NULL;
--   guard_count: how many guards it has; born_s: when it was made; tried: how many lookups ran its
--   guards; hit: how many lookups it fitted; last_use_s: when it was last hit, or else made;
--   died_s, death_cause: when and why it died, if it did.
SELECT qualname, filename, first_line, label, backend, region_id, guard_count, round(born_ns / 1e9, 6) AS born_s, tried, hit,
       round(last_use_ns / 1e9, 6) AS last_use_s, round(died_ns / 1e9, 6) AS died_s, death_cause
FROM cache_entries
ORDER BY hit = 0 DESC, died_ns IS NULL, hit, cache_entry_id
LIMIT 200;

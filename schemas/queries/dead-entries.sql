-- Cache entries that died, and of what; how many compiles of the same code came after
--
-- Why: When an entry dies, its function is compiled again: a guarded object that does not live long
--   enough costs a compile each time.
-- Columns: death_cause: why the entry died; qualname: the function; label: the compiler's name for
--   the entry; backend: the backend that compiled it; born_s, died_s: when it was made and died;
--   later_compiles: how many compiles of the same code came later.
SELECT e.death_cause, c.qualname, e.label, e.backend, round(e.born_ns / 1e9, 6) AS born_s, round(e.died_ns / 1e9, 6) AS died_s,
       (SELECT COUNT(*) FROM compile m WHERE m.code_id = e.code_id AND m.start_ns >= e.died_ns) AS later_compiles
FROM cache_entry e
LEFT JOIN code c ON c.code_id = e.code_id
WHERE e.died_ns IS NOT NULL
ORDER BY later_compiles DESC, e.died_ns
LIMIT 100;

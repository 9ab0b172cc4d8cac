-- What guards look at, by function and source: in how many entries, how often it failed, in how many recompiles (reads every check)
--
-- Why: Shows on which inputs a function depends most, and which of them change.
-- Columns: qualname: the function; source: the value that the guards check; guards: how many guards
--   check it, in all entries; entries: how many entries have such a guard; kinds: the kinds of
--   these guards; failures: how often one of them failed; recompiles: how many recompiles they
--   decided; user_stack: the program's code that needs the guard.
WITH failed AS MATERIALIZED (
    SELECT failed_guard_id, COUNT(*) AS times FROM guard_check WHERE failed_guard_id IS NOT NULL GROUP BY failed_guard_id
),
caused AS MATERIALIZED ( -- by what is looked at: one recompile has a cause for each older entry
    SELECT e.code_id, g.source, COUNT(DISTINCT r.compile_id) AS recompiles
    FROM recompile_cause r
    JOIN compiles m ON m.compile_id = r.compile_id AND m.is_recompile
    JOIN guard g ON g.guard_id = r.guard_id
    JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
    WHERE COALESCE(r.ordinal, 0) = 0
    GROUP BY e.code_id, g.source
)
SELECT c.qualname, g.source, COUNT(*) AS guards, COUNT(DISTINCT g.cache_entry_id) AS entries, group_concat(DISTINCT g.kind) AS kinds,
       COALESCE(SUM(f.times), 0) AS failures, COALESCE(MAX(r.recompiles), 0) AS recompiles, MAX(g.user_stack) AS user_stack
FROM guard g
LEFT JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
LEFT JOIN functions c ON c.code_id = e.code_id
LEFT JOIN failed f ON f.failed_guard_id = g.guard_id
LEFT JOIN caused r ON r.code_id = e.code_id AND r.source IS g.source
GROUP BY c.function_id, g.source
ORDER BY failures DESC, guards DESC, c.filename, c.qualname, c.first_line, g.source
LIMIT 200;

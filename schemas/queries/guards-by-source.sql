-- What guards look at, by function and source: in how many entries, how often it failed, in how many recompiles (reads every check)
WITH failed AS MATERIALIZED (
    SELECT failed_guard_id, COUNT(*) AS times FROM guard_check WHERE failed_guard_id IS NOT NULL GROUP BY failed_guard_id
),
caused AS MATERIALIZED (
    SELECT guard_id, COUNT(DISTINCT compile_id) AS recompiles FROM recompile_cause WHERE COALESCE(ordinal, 0) = 0 GROUP BY guard_id
)
SELECT c.qualname, g.source, COUNT(*) AS guards, COUNT(DISTINCT g.cache_entry_id) AS entries, group_concat(DISTINCT g.kind) AS kinds,
       COALESCE(SUM(f.times), 0) AS failures, COALESCE(SUM(r.recompiles), 0) AS recompiles, MAX(g.user_stack) AS user_stack
FROM guard g
LEFT JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN failed f ON f.failed_guard_id = g.guard_id
LEFT JOIN caused r ON r.guard_id = g.guard_id
GROUP BY c.filename, c.qualname, c.first_line, g.source
ORDER BY failures DESC, guards DESC
LIMIT 200;

-- Guards that failed or raised, most often first, whether a recompile came of it or not (reads every check)
--
-- Why: A guard that fails costs a try at each lookup even when another entry fits; the order of entries may be to
-- blame.
-- Columns: qualname: the function; entry: whose guard; result: fail, or error when it raised; times: how often; kind,
--   source, expression: the guard, what it looks at, what it asks.
WITH failed AS MATERIALIZED (
    SELECT failed_guard_id, result, COUNT(*) AS times
    FROM guard_check
    WHERE failed_guard_id IS NOT NULL
    GROUP BY failed_guard_id, result
)
SELECT c.qualname, e.label AS entry, f.result, f.times, g.kind, g.source, g.expression
FROM failed f
LEFT JOIN guard g ON g.guard_id = f.failed_guard_id
LEFT JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
LEFT JOIN code c ON c.code_id = e.code_id
ORDER BY f.times DESC
LIMIT 50;

-- Guards that failed or raised, most often first, whether a recompile came of it or not (reads every check)
--
-- Why: A guard that fails costs time in each lookup, even if another entry fits; entries may be
--   tried in an unlucky order.
-- Columns: qualname: the function; entry: the entry with the guard; result: fail, or error if the
--   guard raised; times: how often; kind, source, expression: the guard's kind, the value that it
--   checks, and its condition.
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

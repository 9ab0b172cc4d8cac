-- Guards that made recompiles necessary, most recompiles first: function, source, what it wanted and saw
--
-- Why: Shows which inputs to make dynamic, constant or equal in all calls.
-- Columns: qualname, filename, first_line: the function; kind: the guard's kind; source: the value
--   that it checked; recompiles: for how many recompiles it failed; decided: for how many of them
--   it was the first guard to fail; wanted: the value that the first entry expected; first_seen,
--   last_seen: the first and the last actual value; first_s: when it first failed.
SELECT r.qualname, r.filename, r.first_line, MIN(r.kind) AS kind, r.source,
       COUNT(DISTINCT r.compile_id) AS recompiles,
       COUNT(DISTINCT CASE WHEN r.decided THEN r.compile_id END) AS decided,
       MIN(r.expected) AS wanted, MIN(r.actual) AS first_seen, MAX(r.actual) AS last_seen,
       round(MIN(r.start_ns) / 1e9, 6) AS first_s
FROM compiles m
JOIN recompile_causes r ON r.compile_id = m.compile_id
LEFT JOIN functions f ON f.code_id = r.code_id
WHERE m.is_recompile
GROUP BY f.function_id, COALESCE(r.aspect, r.kind), r.source
ORDER BY decided DESC, recompiles DESC, first_s, r.filename, r.qualname, r.first_line
LIMIT 50;

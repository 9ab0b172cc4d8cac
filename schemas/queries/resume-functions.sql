-- Functions that run the rest after a graph break, and what they were made from: calls, compiles, recompiles
--
-- Why: Shows what graph breaks cost after the break.
-- Columns: qualname: the resume function; rest_of: the function that broke; filename, after_line:
--   where it broke; code_objects: how many code objects were made for it, one at each compile;
--   calls, compiles, recompiles, compile_ms: those of the resume function.
SELECT c.qualname, MAX(o.qualname) AS rest_of, c.filename, c.first_line AS after_line, COUNT(*) AS code_objects, SUM(n.calls) AS calls,
       SUM(m.compiles) AS compiles, SUM(m.recompiles) AS recompiles, round(SUM(m.compile_ns) / 1e6, 3) AS compile_ms
FROM functions c
LEFT JOIN code o ON o.code_id = c.origin_code_id
LEFT JOIN code_total n ON n.code_id = c.code_id
LEFT JOIN (SELECT code_id, COUNT(cache_entry_id) AS compiles, SUM(is_recompile) AS recompiles, SUM(compile_ns) AS compile_ns
           FROM compiles GROUP BY code_id) m ON m.code_id = c.code_id
WHERE c.is_resume
GROUP BY c.function_id
ORDER BY SUM(n.calls) DESC, c.filename, c.qualname, c.first_line
LIMIT 200;

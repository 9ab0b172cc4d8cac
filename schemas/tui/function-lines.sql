-- What belongs to the lines ?2 to ?3 of the file of code object ?1. These are the code objects that
-- begin there (resume functions, nested functions, comprehensions), with their own time and the own
-- time of all of them, and the graph breaks of the function.
WITH here AS (SELECT filename FROM code WHERE code_id = ?1),
  found AS (
    SELECT c.code_id, c.first_line, c.kind, c.qualname, SUM(n.self_ns) AS self, SUM(n.calls) AS calls
    FROM here JOIN functions c ON c.filename = here.filename AND c.first_line BETWEEN ?2 AND ?3 LEFT JOIN code_total n ON n.code_id = c.code_id
    GROUP BY c.function_id, c.kind ORDER BY c.first_line, c.qualname, c.kind LIMIT 200)
SELECT 0 AS of_code, MIN(b.graph_break_id), b.line, NULL, substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1), NULL, NULL, NULL
FROM graph_break b
WHERE b.code_id IN (SELECT code_id FROM functions WHERE function_id = (SELECT function_id FROM functions WHERE code_id = ?1))
GROUP BY b.line, 5
UNION ALL
SELECT 1, code_id, first_line, kind, qualname, self, calls, SUM(self) OVER () FROM found
ORDER BY 1, 3

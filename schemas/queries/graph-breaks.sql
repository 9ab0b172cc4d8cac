-- Graph breaks by place and reason, most often first; what the rest after each costs: its calls, compiles and their time
--
-- Why: Each break makes graphs smaller, returns to Python, and adds a function that has to be
--   looked up.
-- Columns: qualname, filename, line: where the graph broke; times: in how many compiles; reason:
--   the first line of the reason; user_stack: the program's code at the break; rest: the function
--   that runs the code after the break; rest_calls, rest_compiles, rest_compile_ms: its calls, its
--   compiles and their time.
--
-- The code after a break becomes a function of its own, which is called, looked up and compiled
-- separately. Each compile makes new code objects for it, so they are summed up by function.
WITH broken AS MATERIALIZED (
    SELECT b.code_id, b.line, substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS reason, b.user_stack,
           r.qualname AS rest, r.function_id AS rest_id
    FROM graph_break b
    LEFT JOIN functions r ON r.code_id = b.resume_code_id
),
rests AS MATERIALIZED (
    SELECT c.function_id, SUM(COALESCE(n.calls, 0)) AS calls,
           SUM((SELECT COUNT(*) FROM compile m WHERE m.code_id = c.code_id)) AS compiles,
           SUM((SELECT SUM(m.end_ns - m.start_ns) FROM compile m WHERE m.code_id = c.code_id)) AS compile_ns
    FROM functions c
    LEFT JOIN code_total n ON n.code_id = c.code_id
    WHERE c.kind IS NOT 'compiled' AND c.function_id IN (SELECT rest_id FROM broken)
    GROUP BY c.function_id
)
SELECT c.qualname, c.filename, b.line, COUNT(*) AS times, b.reason, MAX(b.user_stack) AS user_stack, MAX(b.rest) AS rest,
       MAX(r.calls) AS rest_calls, MAX(r.compiles) AS rest_compiles, round(MAX(r.compile_ns) / 1e6, 3) AS rest_compile_ms
FROM broken b
LEFT JOIN functions c ON c.code_id = b.code_id
LEFT JOIN rests r ON r.function_id = b.rest_id
GROUP BY c.function_id, b.line, b.reason
ORDER BY times DESC, rest_calls DESC, c.filename, c.qualname, b.line, b.reason
LIMIT 200;

-- Graph breaks, by reason and place.

--| reason  text 36
--| times  alarm
--| function  text 16  => function {code_id}
--| line  integer
--| the rest runs as  text 16  => function {resume_code_id}
--| compiling  duration  => compile {compile_id}
--| first  time
--| where  path 10  => function {code_id}
--row => break {graph_break_id}
--subject => compile {compile_id} AT {first}
--id graph_break_id
--none no graph break was recorded
SELECT substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS reason, COUNT(*) AS times, c.qualname AS function,
       b.line AS line, MIN(r.qualname) AS "the rest runs as", SUM(m.end_ns - m.start_ns) AS compiling, MIN(m.start_ns) AS first,
       c.filename || ':' || COALESCE(b.line, c.first_line) AS "where", MIN(b.code_id) AS code_id,
       MIN(b.resume_code_id) AS resume_code_id, MIN(b.compile_id) AS compile_id, MIN(b.graph_break_id) AS graph_break_id
FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id LEFT JOIN functions c ON c.code_id = b.code_id
     LEFT JOIN code r ON r.code_id = b.resume_code_id
GROUP BY c.function_id, b.line, 1 ORDER BY times DESC, compiling DESC, MIN(b.graph_break_id);

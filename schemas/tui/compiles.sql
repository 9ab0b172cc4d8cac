-- Every run of the compiler.

--| compile_id  integer
--| at  time
--| outcome  outcome 8
--| function  text 10  => function {code_id}
--| label  text 5  => entry {cache_entry_id}
--| compiling  duration
--| breaks  alarm  => breaks WHERE compile_id = {compile_id}
--| causes  alarm  => causes WHERE compile_id = {compile_id}
--| reason  text 24
--| where  path 10  => function {code_id}
--row => compile {compile_id} AT {at}
--window compile_id
--title function
--none nothing was compiled
SELECT m.compile_id, m.start_ns AS at, m.outcome AS outcome, c.qualname AS function, m.label AS label, m.end_ns - m.start_ns AS compiling,
       (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id) AS breaks,
       (SELECT COUNT(*) FROM recompile_cause r WHERE r.compile_id = m.compile_id) AS causes,
       substr(m.reason, 1, instr(m.reason || char(10), char(10)) - 1) AS reason, c.filename || ':' || c.first_line AS "where",
       m.code_id AS code_id, m.cache_entry_id AS cache_entry_id
FROM compile m LEFT JOIN code c ON c.code_id = m.code_id;

-- One graph break, with its stack and source.

--title {function:60}:{line}
--subject => compile {compile_id} AT {at}
--| {!r}{reason:reason400}
--| in         {function:200}  {!d}{filename:300}:{line}  => function {code_id}
--| while      compiling {label:40|it} at {at:time} s  => compile {compile_id}
--| [{?resume_code_id}then       the rest runs as {rest:200|?}, called {calls:count~time|? times}]  => function {resume_code_id}
--call break_remedy
--none the trace has no such graph break
SELECT b.reason, c.qualname AS function, COALESCE(b.line, c.first_line) AS line, p.torch_version, c.filename, r.qualname AS rest,
       b.resume_code_id, b.compile_id, m.label, m.start_ns AS at, b.code_id,
       (SELECT n.calls FROM code_total n WHERE n.code_id = b.resume_code_id) AS calls
FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id LEFT JOIN code c ON c.code_id = b.code_id
     LEFT JOIN code r ON r.code_id = b.resume_code_id LEFT JOIN process p ON p.process_id = c.process_id
WHERE b.graph_break_id = ?1;

--# Reason, as the compiler gave it
--text 80 {reason}
SELECT reason FROM graph_break WHERE graph_break_id = ?1 AND instr(reason, char(10));

--| at         {line:200}
--| [by         {path:400}]
SELECT needed_by(b.user_stack, NULL, c.qualname) AS line, stack_path(b.user_stack) AS path
FROM graph_break b LEFT JOIN code c ON c.code_id = b.code_id WHERE b.graph_break_id = ?1 AND b.user_stack <> '';

--# Stack, innermost last
--text 80 {user_stack}
SELECT user_stack FROM graph_break WHERE graph_break_id = ?1 AND user_stack IS NOT NULL;

--# Source
--call break_source
SELECT c.filename, COALESCE(b.line, c.first_line) FROM graph_break b JOIN code c ON c.code_id = b.code_id
WHERE b.graph_break_id = ?1 AND c.filename IS NOT NULL;

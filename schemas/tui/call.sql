-- One call: what was tried, and who called.

--title {function:80} #{lookup_id}
--file {filename} {first_line}
--subject => call {lookup_id} AT {at}
--| {!b}{outcome}{!n}  {outcome:words}
--| function   {function:200}  {!d}{filename:300}:{first_line}  => function {code_id}
--| at         {at:time} s, thread {thread_id} {thread:60|} of process {pid}  => replay {lookup_id}
--| lookup     {took:duration|time not known}
--| [the call   {call:duration}]
--| [ran        compiled code of {entry:60}]  => entry {cache_entry_id}
--| [{?compile_id}compiled   Enter shows that compile]  => compile {compile_id}
--none the trace has no such call
SELECT l.lookup_id, (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome,
       c.qualname AS function, c.filename, c.first_line,
       l.start_ns AS at, l.duration_ns AS took, e.label AS entry, l.cache_entry_id, l.code_id, l.thread_id, t.name AS thread, p.pid,
       COALESCE(f.end_ns, (SELECT x.end_ns FROM thread_ends x WHERE x.thread_id = f.thread_id)) - f.start_ns AS call,
       (SELECT compile_id FROM compile WHERE frame_id = l.frame_id AND code_id IS l.code_id LIMIT 1) AS compile_id
FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
     LEFT JOIN thread t ON t.thread_id = l.thread_id LEFT JOIN process p ON p.process_id = t.process_id
     LEFT JOIN frame f ON f.frame_id = l.frame_id
WHERE l.lookup_id = ?1;

--# Inputs
--text 60 {inputs}
SELECT s.text AS inputs FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = ?1;

--# Entries tried, in this order
--|   {entry:<8} {!result}{result:<8}{!n}  {ran:90}, {took:duration|time not known}  => entry {cache_entry_id}
--| [           {!b}{kind:60}{!n} {source:200|?}]  => entry {cache_entry_id}
--| [{?kind}           {expression:400|?}]
SELECT e.label AS entry, k.result,
       iif(k.result = 'pass' AND k.guards_run = 0 AND e.guard_count > 0, 'only guards that tell entries apart ran (skip_guard_eval_unsafe)',
           COALESCE(k.guards_run, '?') || ' of ' || COALESCE(e.guard_count, '?') || ' guards ran') AS ran, k.duration_ns AS took, g.kind, g.source, g.expression,
       k.cache_entry_id
FROM guard_check k LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id LEFT JOIN guard g ON g.guard_id = k.failed_guard_id
WHERE k.lookup_id = ?1 ORDER BY k.position LIMIT 1000;

--# Called by, innermost first; lines are where functions begin
--|   {function:100}  {!d}{filename:200}:{first_line}  => function {code_id}
WITH RECURSIVE up(frame_id, parent_id, code_id, depth) AS (
  SELECT frame_id, parent_id, code_id, 0 FROM frame WHERE frame_id = (SELECT frame_id FROM lookup WHERE lookup_id = ?1)
  UNION ALL
  SELECT f.frame_id, f.parent_id, f.code_id, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.parent_id
  WHERE depth < 200 AND f.frame_id < up.frame_id)
SELECT c.qualname AS function, c.filename, c.first_line, c.code_id
FROM up LEFT JOIN code c ON c.code_id = up.code_id WHERE depth > 0 ORDER BY depth;

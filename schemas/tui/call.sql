-- One call: how long it took, how the compiler decided about it, what ran inside it, and its
-- callers. ?1 is its frame_id, or minus the id of its lookup: then the lookup is known at once, and
-- the frame need not be stored. Slow parts of the page are read with the lookup, if there is one.

--title {function:80} #{frame_id|not stored}
--subject => call {call_id} AT {at}
--| {!b}{function:200}{!n}  {!d}{filename:300}:{first_line}{!n}  {kind:30|}  => function {code_id}
--| at         {at:time} s, thread {thread_id} {thread:60|} of process {pid}  => timeline {thread_id} AT {at}
--| [took       {took:duration}[, waited at least {waited:duration}][, {!w}{ended}{!n}]]
--| [began      {begun}]
--none no such call is in the trace, or nothing ran then
WITH me(frame_id, lookup_id) AS (SELECT ?1, NULL WHERE ?1 > 0 UNION ALL SELECT frame_id, lookup_id FROM lookup WHERE lookup_id = -?1)
SELECT ?1 AS call_id, me.frame_id, c.qualname AS function, c.filename, c.first_line, c.kind, c.code_id, COALESCE(f.start_ns, l.start_ns) AS at, h.thread_id,
       h.name AS thread, p.pid, COALESCE(f.end_ns, (SELECT x.end_ns FROM thread_ends x WHERE x.thread_id = f.thread_id)) - f.start_ns AS took,
       (SELECT NULLIF(waited_ns, 0) FROM call_waits w WHERE w.frame_id = f.frame_id) AS waited,
       iif(f.end_ns IS NULL, 'still open when its process ended',
           CASE f.exit WHEN $EXIT_YIELD THEN 'then suspended by a yield' WHEN $EXIT_RAISE THEN 'ended by an exception' WHEN $EXIT_ABANDONED THEN 'abandoned' END) AS ended,
       CASE f.kind WHEN $FRAME_RESUME THEN 'as a generator or coroutine that carried on after a yield' WHEN $FRAME_THROW THEN 'with an exception that was thrown into a generator'
                   WHEN $FRAME_INHERITED THEN 'before this process was forked, or before what was lost' END AS begun
FROM me LEFT JOIN frame f ON f.frame_id = me.frame_id LEFT JOIN lookup l ON l.lookup_id = me.lookup_id
     LEFT JOIN code c ON c.code_id = COALESCE(f.code_id, l.code_id) LEFT JOIN thread h ON h.thread_id = COALESCE(f.thread_id, l.thread_id)
     LEFT JOIN process p ON p.process_id = h.process_id
WHERE f.frame_id NOTNULL OR l.lookup_id NOTNULL;

--| decided    {!outcome}{outcome}{!n}  {outcome:words}  => replay {call_id}
--| lookup     {took:duration|time not known}
--| [ran        compiled code of {entry:60}]  => entry {cache_entry_id}
--| [{?compile_id}compiled   Enter shows that compile]  => compile {compile_id}
SELECT ?1 AS call_id, (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome, l.duration_ns AS took, e.label AS entry, l.cache_entry_id,
       (SELECT compile_id FROM compile WHERE frame_id = l.frame_id AND code_id IS l.code_id LIMIT 1) AS compile_id
FROM lookup l LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
WHERE l.lookup_id = -?1;

--slow
--| in span    {!b}{name:80}{!n}, {took:duration}[  {!d}{attributes:200}{!n}]  => spans WHERE span_id = {span_id} | {name}
SELECT n.span_id, n.name, n.attributes, n.duration_ns AS took FROM spans n
WHERE n.span_id = span_of(iif(?1 > 0, ?1, (SELECT frame_id FROM lookup WHERE lookup_id = -?1)));

--slow by time    ...
--call rank
;

--# Inputs
--text 60 {inputs}
SELECT s.text AS inputs FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = -?1;

--# Entries tried, in this order
--|   {entry:<8} {!result}{result:<8}{!n}  {ran:90}, {took:duration|time not known}  => entry {cache_entry_id}
--| [           {!b}{kind:60}{!n} {source:200|?}]  => entry {cache_entry_id}
--| [{?kind}           {expression:400|?}]
--| [           needed by {needed:200}]
SELECT e.label AS entry, k.result,
       iif(k.result = $CHECK_PASS AND k.guards_run = 0 AND e.guard_count > 0, 'only guards that tell entries apart ran (skip_guard_eval_unsafe)',
           COALESCE(k.guards_run, '?') || ' of ' || COALESCE(e.guard_count, '?') || ' guards ran') AS ran, k.duration_ns AS took, g.kind, as_written(g.source) AS source,
       as_written(g.expression) AS expression, needed_by(g.user_stack, NULL, NULL) AS needed,
       k.cache_entry_id
FROM guard_check k LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id LEFT JOIN guard g ON g.guard_id = k.failed_guard_id
WHERE k.lookup_id = -?1 ORDER BY k.position LIMIT 1000;

--call inside
;

--# Called by, innermost first; lines are where functions begin
--|   {function:100}  {!d}{filename:path60}:{first_line}{!n}  since {at:time} s  => call {frame_id}
--more 3000   {!d}more ...
WITH RECURSIVE up(frame_id, parent_id, code_id, start_ns, depth) AS (
  SELECT frame_id, parent_id, code_id, start_ns, 0 FROM frame WHERE frame_id = iif(?1 > 0, ?1, (SELECT frame_id FROM lookup WHERE lookup_id = -?1))
  UNION ALL
  SELECT f.frame_id, f.parent_id, f.code_id, f.start_ns, depth + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.parent_id
  WHERE depth < 3002 AND f.frame_id < up.frame_id)
SELECT c.qualname AS function, c.filename, c.first_line, up.frame_id, up.start_ns AS at
FROM up LEFT JOIN code c ON c.code_id = up.code_id WHERE depth > 0 ORDER BY depth;

-- One run of the compiler, and why it was needed.

--title {function:70} {label:20|}
--subject => compile {compile_id} AT {at}
--| {!b}{function:200}{!n}  {!d}{filename:300}:{first_line}  => function {code_id}
--| compile    {label:40|(no label)} at {at:time} s, took {took:duration|no end}  => call {call_id}
--| outcome    {!style}{outcome:40}{!n}{again|}
--| [{?cache_entry_id}made       a cache entry: Enter shows its guards, graphs and bytecode]  => entry {cache_entry_id}
--none the trace has no such compile
SELECT m.compile_id, c.qualname AS function, c.filename, c.first_line, m.label, m.outcome, m.start_ns AS at, m.end_ns - m.start_ns AS took,
       iif(m.outcome = 'compiled', 'g', 'w') AS style,
       CASE WHEN m.sticky THEN ', and it is never asked again' WHEN m.sticky = 0 THEN '; it is asked again' END AS again,
       m.cache_entry_id, m.code_id,
       (SELECT -lookup_id FROM lookup l WHERE l.code_id = m.code_id AND l.frame_id = m.frame_id LIMIT 1) AS call_id
FROM compile m LEFT JOIN code c ON c.code_id = m.code_id WHERE m.compile_id = ?1;

--wrap 600 reason     {reason}
SELECT reason FROM compile WHERE compile_id = ?1 AND NOT instr(reason, char(10));

--# Reason
--text 60 {reason}
SELECT reason FROM compile WHERE compile_id = ?1 AND instr(reason, char(10));

--wrap 600 inputs     {inputs}  => call {call_id}
SELECT s.text AS inputs, -l.lookup_id AS call_id
FROM compile m JOIN lookup l ON l.code_id = m.code_id AND l.frame_id = m.frame_id JOIN signature s ON s.signature_id = l.signature_id
WHERE m.compile_id = ?1 LIMIT 1;

-- `compile_remedy` reads the columns up to the version by their numbers. The columns from kind to
-- cache_entry_id are CAUSE_COLUMNS of trace/cause_read.h.
--# Why no older entry fitted
--start
--| [    {!d}and {!n}{too:120}{!d} would have failed too: expected {said:80|?}, actual {was:80|?}]  => entry {cache_entry_id}
--| [  {!b}{deciding:160}{!n}: expected {!b}{said:160}{!n} (entry {entry:40}), actual {!r}{was:160}{!n}]  => entry {cache_entry_id}
--| [  entry {entry:40} did not fit: {!b}{other:300}{!n}]  => entry {cache_entry_id}
--| [    needed by {!b}{needed:200}]  => entry {cache_entry_id}
--| [{?first}    {!d}{kind:60|?}, {how:30|?}: {text:400|?}]  => entry {cache_entry_id}
--call compile_remedy
WITH cause AS (
  SELECT row_number() OVER (ORDER BY cache_entry_id, ordinal, rowid) AS nth, iif(COALESCE(ordinal, 0), NULL, 1) AS first,
         expected IS NOT NULL AND actual IS NOT NULL AS known, *
  FROM recompile_cause WHERE compile_id = ?1 LIMIT 200)
SELECT a.nth, a.first, a.kind, a.source, a.aspect, a.dimension, a.expected, a.actual, a.text, a.guard_id, a.compile_id, a.cache_entry_id,
       c.qualname, c.kind AS code, p.torch_version, a.how, COALESCE(e.label, '#' || a.cache_entry_id) AS entry,
       iif(a.first, NULL, cause_name(a.kind, a.source, a.aspect, a.dimension, a.expected, a.actual, a.text)) AS too, iif(a.first AND a.known, cause_name(a.kind, a.source, a.aspect, a.dimension, a.expected, a.actual, a.text), NULL) AS deciding,
       cause_expected(a.kind, a.source, a.aspect, a.dimension, a.expected, a.actual, a.text) AS said, cause_actual(a.kind, a.source, a.aspect, a.dimension, a.expected, a.actual, a.text) AS was, needed_by(g.user_stack, a.text, c.qualname) AS needed,
       iif(a.first AND NOT a.known, COALESCE(as_written(a.text), as_written(a.source), '?'), NULL) AS other
FROM cause a LEFT JOIN compile m ON m.compile_id = ?1 LEFT JOIN code c ON c.code_id = m.code_id
     LEFT JOIN process p ON p.process_id = c.process_id LEFT JOIN cache_entry e ON e.cache_entry_id = a.cache_entry_id
     LEFT JOIN guard g ON g.guard_id = a.guard_id
ORDER BY a.nth;

--# Graph breaks
--|   line {line}  {reason:reason160}  => break {graph_break_id}
SELECT b.graph_break_id, b.line, b.reason FROM graph_break b WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT 100;

--# Graphs
--|   {name:80}  {nodes} nodes
SELECT name, node_count AS nodes FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT 100;

--# Where its time went
--|   {took:duration>10|?}  {name:60}  {!d}{name:phase}
SELECT name, end_ns - start_ns AS took FROM compile_phase WHERE compile_id = ?1 ORDER BY start_ns, end_ns DESC LIMIT 60;

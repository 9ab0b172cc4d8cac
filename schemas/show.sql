-- show.sql -- the statements of `dyntrace show` about a function (?3: the ids of its code objects, a JSON
-- array; ?4: its name) and about one compile (?1: its id), with templates for printing the rows
-- (src/trace/page_text.h). ?2: the most rows. ?5: whether everything is wanted (--full or --json). ?6:
-- whether a process that ran the function uses torch. The columns are the keys of the JSON output, except
-- those that begin with _.

-- name: torch
-- does a process that it ran in use torch?
SELECT 1 FROM process WHERE torch_version IS NOT NULL
AND process_id IN (SELECT process_id FROM code WHERE code_id IN (SELECT value FROM json_each(?3))) LIMIT 1;

-- name: function
-- ?8: the settings of the recording, or NULL
--| {function}  {filename:300}:{line}  {kind}
--| [recorded under {settings:2000}]
SELECT COALESCE(qualname, '?') AS function, COALESCE(filename, '?') AS filename, COALESCE(first_line, 0) AS line,
       COALESCE(resume_words(qualname), iif(is_resume, 'resume', kind), 'code') AS kind, ?8 AS settings
FROM functions WHERE code_id = (SELECT MIN(value) FROM json_each(?3));

-- name: compiles
-- compiles of a function, or the one that is labelled ?7
--|
--| {!b}compile {_label:40|without a label}{!n} at {start_ns:duration}[, took {_took:duration}]{_open|}: {outcome:40}{_sticky|}[: {_reason}]
--text 8   {_rest}
--rows show/causes {compile_id}
--| [{?cache_entry_id}  made entry {entry:40|?}[ by {backend:40}][, region {region_id}], {guard_count:integer~guard|? guards}[; died at {died_ns:duration}[: {_cause:100}]]]
--| [{?_none}  made no entry]
--rows show/guards {compile_id}
--rows show/graph_breaks {compile_id}
--rows show/graphs {compile_id}
--call phases
--rows show/phases {compile_id}
--rows show/listings {compile_id}
--more 10
--more 10 (10 of {_all} compiles; --full shows all, `dyntrace show LABEL` shows one)
--none
--none It was never compiled in this recording; `dyntrace why` tells what happened to its calls.
SELECT m.compile_id, m.label, m.code_id, m.start_ns, m.end_ns, m.outcome, substr(m.reason, 1, 4000) AS reason, m.sticky,
       e.region_id, e.cache_entry_id, e.label AS entry, e.backend, e.guard_count, e.born_ns, e.died_ns,
       substr(e.death_cause, 1, 2000) AS death_cause,
       NULLIF(m.label, '') AS _label, iif(m.end_ns < m.start_ns, 0, m.end_ns - m.start_ns) AS _took, iif(m.end_ns IS NULL, ', did not end', NULL) AS _open,
       iif(m.sticky, ', for good', iif(m.sticky = 0, ', for this call', NULL)) AS _sticky,
       iif(?6, reason_part(substr(m.reason, 1, 4000), 'what'), substr(m.reason, 1, 4000)) AS _reason,
       iif(?6 AND instr(m.reason, char(10)), substr(m.reason, instr(m.reason, char(10)) + 1, 4000 - instr(m.reason, char(10))), NULL) AS _rest,
       iif(e.died_ns IS NULL, NULL, substr(e.death_cause, 1, 2000)) AS _cause, iif(e.cache_entry_id IS NULL, 1, NULL) AS _none,
       COUNT(*) OVER () AS _all
FROM compile m LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id
WHERE m.code_id IN (SELECT value FROM json_each(?3)) AND (?7 IS NULL OR m.label = ?7) ORDER BY m.compile_id LIMIT ?2;

-- name: causes
-- why compile ?1 was needed
--#   needed because
--|     [{older_entry:40}: ][{kind:40} ]{_what:300}[; needed by {_needed:300}]  {_how}
--more 60     (the first 60; --full shows all)
SELECT e.label AS older_entry, r.kind, r.source, r.aspect, r.dimension, substr(r.expected, 1, 2000) AS expected,
    substr(r.actual, 1, 2000) AS actual,
       substr(r.text, 1, 2000) AS text, r.how, substr(g.user_stack, 1, 4000) AS user_stack,
       COALESCE(cause_words(r.kind, r.source, r.aspect, r.dimension, substr(r.expected, 1, 2000), substr(r.actual, 1, 2000), substr(r.text, 1, 2000)),
                as_written(substr(r.text, 1, 2000))) AS _what,
       needed_by(substr(g.user_stack, 1, 4000), substr(r.text, 1, 2000), ?4) AS _needed,
       iif(COALESCE(r.how, '') IN ('', 'observed'), '[observed]', '[re-checked]') AS _how
FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id LEFT JOIN guard g ON g.guard_id = r.guard_id
WHERE r.compile_id = ?1
ORDER BY COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id, r.rowid LIMIT ?2;

-- name: guards
-- the guards of the entry that compile ?1 made
--#   guards, in order
--|     {ordinal:integer>3}  {kind:40}  {_source:100}[  {expression:100}][  # {_needed:300}]
--text 0          {_stack}
--more 60     (the first 60; --full shows all)
SELECT g.ordinal, g.kind, g.source, substr(g.expression, 1, 2000) AS expression,
    substr(g.user_stack, 1, 4000) AS user_stack, as_written(g.source) AS _source,
       iif(?5, NULL, needed_by(substr(g.user_stack, 1, 4000), NULL, ?4)) AS _needed, iif(?5, substr(g.user_stack, 1, 4000), NULL) AS _stack
FROM compile m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
WHERE m.compile_id = ?1 ORDER BY g.ordinal, g.guard_id LIMIT ?2;

-- name: graph_breaks
-- where compile ?1 stopped
--#   graph breaks
--|     line {line}: {_what}
--| [      {_why:300}]
--| [      hint: {_hint:300}]
--| [      goes on in {_rest:160}[ ({_resume:100})]]
--| [      at {_at:300}]
--text 10       {user_stack}
--more 60     (the first 60; --full shows all)
SELECT b.line, b.offset, substr(b.reason, 1, 4000) AS reason, substr(b.user_stack, 1, 4000) AS user_stack,
       r.qualname AS resume_function, COALESCE(reason_part(substr(b.reason, 1, 4000), 'what'), '') AS _what,
       reason_part(substr(b.reason, 1, 4000), 'why') AS _why, reason_part(substr(b.reason, 1, 4000), 'hint') AS _hint,
       COALESCE(resume_words(r.qualname), r.qualname) AS _rest, iif(?6, r.qualname, NULL) AS _resume,
       needed_by(substr(b.user_stack, 1, 4000), NULL, ?4) AS _at
FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id
WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT ?2;

-- name: graphs
-- the graphs of compile ?1; an imported one is a text alone
--|   graph[ {name:100}][, {node_count:integer~node}]{_alone|}
--call nodes
SELECT graph_id, name, node_count, iif(node_count IS NULL, ': its text alone is known; --full shows it', NULL) AS _alone
FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT ?2;

-- name: nodes
-- the nodes of graph ?1
SELECT ordinal, opcode, name, substr(target, 1, 2000) AS target, substr(args, 1, 2000) AS args,
       substr(kwargs, 1, 2000) AS kwargs
FROM graph_node WHERE graph_id = ?1 ORDER BY ordinal LIMIT ?2;

-- name: phases
-- where the time of compile ?1 went; a longer phase comes before those that it holds
--#   where its time went
--call phase
SELECT COALESCE(name, '?') AS name, start_ns, end_ns FROM compile_phase WHERE compile_id = ?1
ORDER BY start_ns, end_ns DESC LIMIT ?2;

-- name: listings
-- texts that compile ?1 produced; torch's own texts of what is above only where all is wanted
--call listing
SELECT kind, substr(text, 1, 262144) AS text FROM listing WHERE compile_id = ?1 AND (?5 OR NOT ?6 OR kind NOT IN ('guards', 'graph'))
ORDER BY CASE kind WHEN 'original_bytecode' THEN 0 WHEN 'modified_bytecode' THEN 1 ELSE 2 END, kind LIMIT ?2;

-- replay.sql -- the statements of `dyntrace replay`: src/trace/replay/. Statements with many rows of
-- numbers pass each row to C by each() (db_visit), where a NULL becomes 0 unless the statement replaces it.

-- name: processes
-- The last column is the time from which on events are missing. Lost texts do not count, because
-- they are no events.
SELECT each(p.process_id, p.start_ns, p.parent_process_id, p.torch_version IS NOT NULL, l.lost_ns)
FROM process p NOT INDEXED
LEFT JOIN (SELECT process_id, MIN(COALESCE(at_ns, 0)) AS lost_ns FROM losses
           WHERE NOT is_stall AND (events IS NULL OR events > 0) AND COALESCE(cause, '') NOT LIKE 'texts of compiles %'
           GROUP BY process_id) l ON l.process_id = p.process_id;

-- name: threads
SELECT each(thread_id, process_id) FROM thread NOT INDEXED;

-- name: entries
-- A precompiled entry was loaded from a file, not compiled in this process. A reset removes all
-- entries of a cache at once.
SELECT each(cache_entry_id, code_id, born_ns, died_ns, COALESCE(region_id, -1),
            COALESCE(compile_id, -1), label = 'precompiled' AND compile_id IS NULL,
            death_cause LIKE 'reset%' OR death_cause LIKE 'dropped%', COALESCE(guard_count, -1))
FROM cache_entry NOT INDEXED;

-- name: compiles
SELECT each(compile_id, start_ns, code_id, thread_id, cache_entry_id, end_ns, is_recompile) FROM compiles;

-- name: breaks
SELECT each(graph_break_id, compile_id) FROM graph_break NOT INDEXED;

-- name: marks
-- For each code object: the time from which on it is not compiled any more.
SELECT each(code_id, at_ns) FROM code_mark WHERE action IN ('skip', 'run_only');

-- name: guards
SELECT each(guard_id, cache_entry_id) FROM guard NOT INDEXED;

-- name: checks
-- In the order of the table, which is the order of the lookups, because the recorder writes rows
-- in this order; so no sort is needed. A result is the number of its word in src/vocabulary.h.
SELECT each(lookup_id, cache_entry_id,
            CASE result $CHECK_NUMBERS ELSE $CHECK_RESULTS END,
            failed_guard_id, position, guards_run, duration_ns)
FROM guard_check NOT INDEXED;

-- name: checks-sorted
-- The same rows sorted, for a trace in which somebody has changed the order of the table.
SELECT each(lookup_id, cache_entry_id,
            CASE result $CHECK_NUMBERS ELSE $CHECK_RESULTS END,
            failed_guard_id, position, guards_run, duration_ns)
FROM (SELECT * FROM guard_check ORDER BY lookup_id, position, guard_check_id);

-- name: frame-of-lookup
SELECT frame_id FROM lookup WHERE lookup_id = ?1;

-- name: frame-of-compile
SELECT frame_id FROM compile WHERE compile_id = ?1;

-- name: frame-of-break
SELECT frame_id FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id WHERE graph_break_id = ?1;

-- name: in-file
-- For a filter: the code objects in files whose names match the glob ?1.
SELECT code_id FROM code WHERE filename GLOB ?1 OR filename GLOB '*/' || ?1;

-- name: on-thread
SELECT thread_id FROM thread WHERE thread_id = CAST(?1 AS INTEGER) OR name = ?1;

-- name: in-process
SELECT t.thread_id FROM thread t JOIN process p ON p.process_id = t.process_id
WHERE p.process_id = CAST(?1 AS INTEGER) OR p.pid = CAST(?1 AS INTEGER);

-- name: entry-name
SELECT COALESCE(NULLIF(label, ''), '#' || cache_entry_id) FROM cache_entry WHERE cache_entry_id = ?1;

-- name: entry
-- Entry ?1, and the result of its check by lookup ?2: "fail: EQUALS_MATCH x == 3" or "pass".
SELECT label, backend, guard_count, death_cause,
       (SELECT k.result || COALESCE(': ' || g.kind, '') || COALESCE(' ' || as_written(COALESCE(NULLIF(g.expression, ''), g.source)), '')
        FROM guard_check k LEFT JOIN guard g ON g.guard_id = k.failed_guard_id
        WHERE k.lookup_id = ?2 AND k.cache_entry_id = cache_entry.cache_entry_id LIMIT 1)
FROM cache_entry WHERE cache_entry_id = ?1;

-- name: code
SELECT qualname, filename, first_line FROM code WHERE code_id = ?1;

-- name: function
-- Code object ?1. A row is returned even if the trace does not have the code object.
SELECT ?1 AS code_id, CAST(qualname AS TEXT) AS qualname, CAST(filename AS TEXT) AS filename,
       CAST(COALESCE(first_line, 0) AS INTEGER) AS first_line
FROM (SELECT 1) LEFT JOIN code ON code_id = ?1;

-- name: stack
-- Frame ?1 and its callers, at most ?2 frames: the code and the frame, which is NULL if it was
-- not recorded. A parent has a smaller id than its child.
WITH RECURSIVE up(frame_id, depth) AS (
    SELECT ?1, 1
    UNION ALL
    SELECT f.parent_id, depth + 1 FROM up JOIN frame f ON f.frame_id = up.frame_id
    WHERE f.parent_id BETWEEN 1 AND f.frame_id - 1 AND depth < ?2)
SELECT f.code_id, f.frame_id FROM up LEFT JOIN frame f ON f.frame_id = up.frame_id;

-- name: line-of-break
SELECT c.filename, b.line FROM graph_break b JOIN code c ON c.code_id = b.code_id
WHERE b.graph_break_id = ?1 AND typeof(c.filename) = 'text' AND b.line BETWEEN 1 AND 2147483646;

-- name: line-of-code
SELECT filename, first_line FROM code
WHERE code_id = ?1 AND typeof(filename) = 'text' AND first_line BETWEEN 1 AND 2147483646;

-- name: inputs
SELECT text FROM signature WHERE signature_id = ?1;

-- name: death
--| : entry {name:70} died
SELECT COALESCE(NULLIF(label, ''), '#' || cache_entry_id) AS name FROM cache_entry WHERE cache_entry_id = ?1;

-- name: lookup
-- The outcome of lookup ?1, the entry that it hit or made, the number of entries that it tried,
-- and its duration.
--| : {outcome:70}{entry:70}{tried:70}, {took:duration}
SELECT COALESCE(o.name, '?') AS outcome,
       CASE WHEN e.cache_entry_id IS NOT NULL THEN ' ' || COALESCE(NULLIF(e.label, ''), '#' || e.cache_entry_id)
            WHEN l.cache_entry_id IS NOT NULL THEN ' an entry that the trace does not have'
            WHEN o.name = 'hit' THEN ' code from before the recording' ELSE '' END AS entry,
       CASE WHEN l.entries_checked IS NULL THEN ', seen from outside: which entries were tried is not known'
            ELSE ', ' || l.entries_checked || iif(l.entries_checked = 1, ' entry', ' entries') || ' checked' END AS tried,
       MAX(0, CAST(COALESCE(l.duration_ns, 0) AS INTEGER)) AS took
FROM lookup l LEFT JOIN outcomes o ON o.outcome = l.outcome LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
WHERE l.lookup_id = ?1;

-- name: inputs-of
--|   inputs: {text:140}
SELECT s.text FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = ?1;

-- name: thread
--+   thread {thread_id:70}{name:70} of process {pid:70}
SELECT t.thread_id, COALESCE(' (' || NULLIF(t.name, '') || ')', '') AS name, COALESCE(p.pid, 0) AS pid
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id = ?1;

-- name: compile
--| : {outcome:70}{_label:70}[, {took:duration}]{_reason:70}
SELECT outcome, COALESCE(' ' || NULLIF(label, ''), '') AS _label, end_ns - start_ns AS took,
       COALESCE('; ' || substr(reason, 1, instr(reason || char(10), char(10)) - 1), '') AS _reason
FROM compile WHERE compile_id = ?1;

-- name: causes
-- Why compile ?1 was needed: for each cause the older entry and the guard that failed.
--|   {entry:70} did not fit: {kind:70} {_what:70}{_needed:70}
SELECT COALESCE(e.label, '#' || r.cache_entry_id) AS entry, r.kind,
       COALESCE(cause_words(r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text),
                cause_name(r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text) || COALESCE(': ' || as_written(NULLIF(r.text, '')), '')) AS _what,
       COALESCE('; needed by ' || needed_by(g.user_stack, r.text, (SELECT qualname FROM compile m JOIN code c ON c.code_id = m.code_id WHERE m.compile_id = ?1)), '') AS _needed
FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id LEFT JOIN guard g ON g.guard_id = r.guard_id
WHERE r.compile_id = ?1 AND COALESCE(r.how, '') NOT LIKE 're-checked%'
ORDER BY r.rowid LIMIT 8;

-- name: break
-- A graph break with the first line of its reason.
--| [{?known}{qualname:140|} ({filename:path140|}:{first_line|0})][{-known}code {code_id}]: line {line}: {_reason:70}
SELECT b.code_id, b.line, c.code_id AS known, c.qualname, c.filename, c.first_line,
       substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS _reason
FROM graph_break b LEFT JOIN code c ON c.code_id = b.code_id
WHERE b.graph_break_id = ?1;

-- name: names
SELECT code_id, qualname FROM code WHERE qualname IS NOT NULL;

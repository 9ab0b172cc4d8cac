-- export.sql -- what `dyntrace export` asks. Rows come in the order in which they are written.

-- name: table
-- SQL for the rows of the table or view ?1.
SELECT 'SELECT * FROM "' || replace(name, '"', '""') || '"' FROM sqlite_schema
WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE AND name NOT LIKE 'sqlite|_%' ESCAPE '|';

-- name: tables
SELECT name FROM sqlite_schema
WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite|_%' ESCAPE '|'
ORDER BY rowid;

-- name: frames
SELECT * FROM frames ORDER BY frame_id;

-- name: track_processes
-- The tracks of Chrome's format: what their processes and threads are called there.
SELECT k.pid, k.tid, p.process_id,
       COALESCE(CASE WHEN json_valid(p.argv) THEN (SELECT group_concat(value, ' ') FROM json_each(p.argv)) ELSE p.argv END,
                p.executable, '?') || COALESCE(' (rank ' || p.rank || ')', '') || ' [' || COALESCE(p.pid, '?') || ']'
FROM process p
JOIN tracks k ON k.process_id = p.process_id AND k.thread_id IS NULL
ORDER BY p.process_id;

-- name: track_threads
SELECT k.pid, k.tid, COALESCE(t.name, 'thread ' || t.os_tid, '?')
FROM tracks k
JOIN thread t ON t.thread_id = k.thread_id
ORDER BY k.thread_id;

-- name: track_frames
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT k.pid, k.tid, f.frame_id, f.start_ns, f.end_ns, c.qualname, c.filename, c.first_line,
       CASE WHEN f.kind <> 0 THEN (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) END,
       CASE WHEN f.outcome <> 0 THEN (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) END,
       CASE WHEN f.exit <> 0 THEN (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) END
FROM frame f
LEFT JOIN track k ON k.thread_id = f.thread_id
LEFT JOIN code c ON c.code_id = f.code_id
ORDER BY f.frame_id;

-- name: track_lookups
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT k.pid, k.tid, l.lookup_id, l.start_ns, COALESCE(o.name, '?'), c.qualname, e.label, l.entries_checked, l.duration_ns, s.text
FROM lookup l
LEFT JOIN track k ON k.thread_id = l.thread_id
LEFT JOIN code c ON c.code_id = l.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN signature s ON s.signature_id = l.signature_id
LEFT JOIN outcomes o ON o.outcome = l.outcome
ORDER BY l.lookup_id;

-- name: track_compiles
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT k.pid, k.tid, m.compile_id, m.start_ns, m.end_ns, 'compile ' || COALESCE(c.qualname, '?') || COALESCE(' ' || m.label, ''),
       m.outcome, m.reason, c.filename, c.first_line,
       (SELECT NULLIF(COUNT(*), 0) FROM graph_break b WHERE b.compile_id = m.compile_id),
       (SELECT r.why FROM recompile_causes r WHERE r.compile_id = m.compile_id ORDER BY r.ordinal, r.cache_entry_id DESC LIMIT 1)
FROM compile m
LEFT JOIN track k ON k.thread_id = m.thread_id
LEFT JOIN code c ON c.code_id = m.code_id
ORDER BY m.compile_id;

-- name: track_deaths
SELECT COALESCE(k.pid, 0), 0, e.died_ns, e.label, c.qualname, e.death_cause
FROM cache_entry e
LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN tracks k ON k.process_id = c.process_id AND k.thread_id IS NULL
WHERE e.died_ns IS NOT NULL
ORDER BY e.cache_entry_id;

-- name: about
-- What the trace says of itself.
SELECT key, CAST(value AS TEXT) FROM meta
WHERE value IS NOT NULL AND key IN ('host', 'command', 'started_unix_ns', 'state', 'min_duration_ns')
ORDER BY key;

-- name: lost
SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall;

-- name: last_frame
SELECT MAX(frame_id) FROM frame;

-- name: last_end
SELECT MAX(end_ns) FROM frame;

-- name: last_start
SELECT start_ns FROM frame ORDER BY frame_id DESC LIMIT 1;

-- name: last_process
SELECT MAX(end_ns) FROM process;

-- name: folded_code
-- The code ?1 in a folded stack: "f (app.py:10)".
SELECT COALESCE(NULLIF(qualname, ''), '?') || ' (' ||
       COALESCE(replace(filename, rtrim(filename, replace(filename, '/', '')), ''), '?') || ':' || COALESCE(first_line, '?') || ')'
FROM code WHERE code_id = ?1;

-- name: folded_thread
-- The process and the name of thread ?1.
SELECT CASE WHEN json_valid(p.argv) THEN COALESCE((SELECT group_concat(value, ' ') FROM json_each(p.argv)), '?')
            ELSE COALESCE(p.argv, '?') END || ' [' || COALESCE(p.pid, '?') || ']',
       COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?')
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id = ?1;

-- name: codes
SELECT code_id, qualname, filename, first_line FROM code ORDER BY code_id;

-- name: profile
-- What the profile of thread ?1 is called in speedscope.
SELECT COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?') || ' [' || COALESCE(p.pid, '?') || COALESCE(' rank ' || p.rank, '') || ']'
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id = ?1;

-- export.sql -- the statements of `dyntrace export`. Rows come in the order in which they are
-- written.

-- name: table
-- The SQL for the rows of the table or view ?1. If the user asked for a part of the trace, only
-- rows in this part are read (schemas/range.sql). The first id that a row has decides whether it is
-- in the part. A table without such an id (names, guards) is exported whole or, if ?2 is set
-- because the user named a table, not at all.
SELECT 'SELECT * FROM "' || replace(name, '"', '""') || '"' || iif(EXISTS (SELECT 1 FROM asked), COALESCE(' WHERE COALESCE(' || part || ', 1)', ''), '') ||
       iif(name = 'frames', ' ORDER BY frame_id', '')
FROM (SELECT name, (
    WITH own AS (SELECT c.name AS own FROM pragma_table_info(s.name) c),
    rule(own, rule) AS (VALUES
        ('lookup_id', 'lookup_id IN (SELECT lookup_id FROM part_lookup)'),
        ('compile_id', 'compile_id IN (SELECT compile_id FROM part_compile)'),
        ('frame_id', 'frame_id IN (SELECT frame_id FROM part_frame)'),
        ('start_ns', '(SELECT start_ns >= from_ns AND start_ns < to_ns FROM part_window)'),
        ('at_ns', '(SELECT at_ns >= from_ns AND at_ns < to_ns FROM part_window)' ||
            iif('thread_id' IN own, ' AND COALESCE(thread_id IN (SELECT thread_id FROM part_thread), ' ||
                                    iif('process_id' IN own, 'process_id IN part_process, ', '') || '1)', '')),
        ('thread_id', 'thread_id IN (SELECT thread_id FROM part_thread)'),
        ('process_id', 'process_id IN part_process'))
    SELECT group_concat(rule) FROM rule CROSS JOIN own USING (own)
    WHERE s.name NOT IN ('code', 'functions', 'cache_entry', 'cache_entries', 'shares', 'process') OR rule.own || s.name = 'process_idprocess') AS part
    FROM sqlite_schema s
    WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE AND name NOT LIKE 'sqlite|_%' ESCAPE '|')
WHERE NOT ?2 OR part IS NOT NULL OR NOT EXISTS (SELECT 1 FROM asked);

-- name: tables
SELECT name FROM sqlite_schema
WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite|_%' ESCAPE '|'
ORDER BY rowid;

-- name: track_names
-- Events in Chrome's format (src/cmd/export.c). Pids and tids are those of the view `tracks`. If
-- they are not the real ones, the name has the real ones. Events that belong to no known process
-- have pid 0.
SELECT 'M' AS ph, 0 AS pid, 0 AS tid, 'process_name' AS name, NULL AS args, 'processes that are not known' AS name, NULL AS sort_index
WHERE EXISTS (SELECT 1 FROM tracks WHERE pid = 0)
   OR EXISTS (SELECT 1 FROM lookup WHERE thread_id IS NULL OR thread_id NOT IN (SELECT thread_id FROM thread))
   OR EXISTS (SELECT 1 FROM compile WHERE thread_id IS NULL OR thread_id NOT IN (SELECT thread_id FROM thread))
   OR EXISTS (SELECT 1 FROM cache_entry e LEFT JOIN code c ON c.code_id = e.code_id
              WHERE e.died_ns IS NOT NULL AND (c.process_id IS NULL OR c.process_id NOT IN (SELECT process_id FROM process)))
   OR EXISTS (SELECT 1 FROM frame WHERE thread_id IS NULL OR thread_id NOT IN (SELECT thread_id FROM thread))
UNION ALL
SELECT * FROM (
    SELECT 'M', k.pid, k.tid, n.value, NULL,
           CASE n.key WHEN 0 THEN
               COALESCE(CASE WHEN json_valid(p.argv) THEN (SELECT group_concat(value, ' ') FROM json_each(p.argv)) ELSE p.argv END,
                        p.executable, '?') || COALESCE(' (rank ' || p.rank || ')', '') || ' [' || COALESCE(p.pid, '?') || ']' END,
           CASE n.key WHEN 1 THEN p.process_id END
    FROM process p
    JOIN tracks k ON k.process_id = p.process_id AND k.thread_id IS NULL
    JOIN json_each('["process_name", "process_sort_index"]') n
    ORDER BY p.process_id, n.key)
UNION ALL
SELECT * FROM (
    SELECT 'M', k.pid, k.tid, 'thread_name', NULL, COALESCE(t.name, 'thread ' || t.os_tid, '?'), NULL
    FROM tracks k
    JOIN thread t ON t.thread_id = k.thread_id
    ORDER BY k.thread_id);

-- name: track_frames
-- The column `dur` has the time at which the frame ends, not its duration.
WITH track AS MATERIALIZED (
    SELECT k.thread_id, k.pid, k.tid, e.end_ns FROM tracks k JOIN thread_ends e ON e.thread_id = k.thread_id)
SELECT 'X' AS ph, COALESCE(k.pid, 0) AS pid, COALESCE(k.tid, 0) AS tid, f.start_ns AS ts, COALESCE(f.end_ns, k.end_ns, ?1) AS dur,
       'frame' AS cat, COALESCE(c.qualname, '?') AS name, NULL AS args, f.frame_id AS frame, c.filename AS file, c.first_line AS line,
       CASE WHEN f.kind <> $FRAME_CALL THEN (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) END AS kind,
       CASE WHEN f.outcome <> $PLAIN THEN (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) END AS outcome,
       CASE WHEN f.exit <> $EXIT_RETURN THEN (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) END AS exit,
       iif(f.end_ns IS NULL, 1, NULL) AS open
FROM frame f
LEFT JOIN track k ON k.thread_id = f.thread_id
LEFT JOIN code c ON c.code_id = f.code_id
ORDER BY f.frame_id;

-- name: frame_code
-- What all events of frames of code object ?1 have in common (src/cmd/export/frames.c). ?1 is the
-- smallest integer if the code object is not known.
SELECT 'frame' AS cat, COALESCE(c.qualname, '?') AS name, c.filename AS file, c.first_line AS line
FROM (SELECT ?1 AS code_id) i LEFT JOIN code c ON c.code_id = i.code_id;

-- name: frame_thread
-- What all events of frames of thread ?1 have in common, and when its frames without an end ended.
SELECT COALESCE(k.pid, 0) AS pid, COALESCE(k.tid, 0) AS tid, iif(k.thread_id IS NULL, NULL, e.end_ns) AS end_ns
FROM (SELECT ?1 AS thread_id) i LEFT JOIN tracks k ON k.thread_id = i.thread_id LEFT JOIN thread_ends e ON e.thread_id = i.thread_id;

-- name: frame_code_cells
-- The columns of the view `frames` that describe code object ?1.
SELECT NULLIF(i.code_id, -9223372036854775807 - 1), c.qualname, c.filename, c.first_line, c.kind
FROM (SELECT ?1 AS code_id) i LEFT JOIN code c ON c.code_id = i.code_id;

-- name: frame_thread_cells
-- The columns of the view `frames` that describe thread ?1, and when its frames without an end
-- ended.
SELECT t.process_id, p.pid, NULLIF(i.thread_id, -9223372036854775807 - 1), t.name, e.end_ns
FROM (SELECT ?1 AS thread_id) i LEFT JOIN thread t ON t.thread_id = i.thread_id LEFT JOIN process p ON p.process_id = t.process_id
LEFT JOIN thread_ends e ON e.thread_id = i.thread_id;

-- name: track_lookups
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT 'i' AS ph, COALESCE(k.pid, 0) AS pid, COALESCE(k.tid, 0) AS tid, l.start_ns AS ts, 't' AS s, 'lookup' AS cat, COALESCE(o.name, '?') AS name,
       NULL AS args, l.lookup_id AS lookup, c.qualname AS function, e.label AS entry, l.entries_checked, l.duration_ns, s.text AS inputs
FROM lookup l
LEFT JOIN track k ON k.thread_id = l.thread_id
LEFT JOIN code c ON c.code_id = l.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN signature s ON s.signature_id = l.signature_id
LEFT JOIN outcomes o ON o.outcome = l.outcome
ORDER BY l.lookup_id;

-- name: track_compiles
-- Two events for each compile, of which the first has the arguments.
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT part.value AS ph, COALESCE(k.pid, 0) AS pid, COALESCE(k.tid, 0) AS tid,
       iif(part.key, MAX(COALESCE(m.end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = m.thread_id), ?1), m.start_ns), m.start_ns) AS ts, CAST(m.compile_id AS TEXT) AS id, 'compile' AS cat,
       'compile ' || COALESCE(c.qualname, '?') || COALESCE(' ' || m.label, '') AS name, NULL AS args, m.compile_id AS compile,
       iif(part.key, NULL, m.outcome) AS outcome, iif(part.key, NULL, m.reason) AS reason, iif(part.key, NULL, c.filename) AS file,
       iif(part.key, NULL, c.first_line) AS line,
       iif(part.key, NULL, (SELECT NULLIF(COUNT(*), 0) FROM graph_break b WHERE b.compile_id = m.compile_id)) AS graph_breaks,
       iif(part.key, NULL, (SELECT r.why FROM recompile_causes r WHERE r.compile_id = m.compile_id ORDER BY r.ordinal, r.cache_entry_id DESC, r.cause_id LIMIT 1)) AS cause
FROM compile m
LEFT JOIN track k ON k.thread_id = m.thread_id
LEFT JOIN code c ON c.code_id = m.code_id
CROSS JOIN json_each('["b", "e"]') part
ORDER BY m.compile_id, part.key;

-- name: track_spans
-- Two events for each span, as for a compile, because spans of tasks overlap on their thread.
WITH track AS MATERIALIZED (SELECT thread_id, pid, tid FROM tracks WHERE thread_id IS NOT NULL)
SELECT part.value AS ph, COALESCE(k.pid, 0) AS pid, COALESCE(k.tid, 0) AS tid, iif(part.key, s.end_ns, s.start_ns) AS ts,
       'span ' || s.span_id AS id, 'span' AS cat, COALESCE(s.name, '?') AS name, NULL AS args, s.span_id AS span,
       iif(part.key, NULL, s.parent_span_id) AS parent, iif(part.key, NULL, NULLIF(s.kind, 'span')) AS of,
       iif(part.key, NULL, s.attributes) AS attributes, iif(s.open AND NOT part.key, 1, NULL) AS open
FROM part_span s
LEFT JOIN track k ON k.thread_id = s.thread_id
CROSS JOIN json_each('["b", "e"]') part
ORDER BY s.span_id, part.key;

-- name: track_deaths
SELECT 'i' AS ph, COALESCE(k.pid, 0) AS pid, 0 AS tid, e.died_ns AS ts, 'p' AS s, 'cache' AS cat, 'cache entry died' AS name, NULL AS args,
       e.label AS entry, c.qualname AS function, e.death_cause AS cause
FROM cache_entry e
LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN tracks k ON k.process_id = c.process_id AND k.thread_id IS NULL
WHERE e.died_ns IS NOT NULL
ORDER BY e.cache_entry_id;

-- name: about
-- The metadata of the trace.
SELECT 'producer' AS key, 'dyntrace' AS value
UNION ALL
SELECT * FROM (SELECT key, CAST(value AS TEXT) FROM meta
               WHERE value IS NOT NULL AND key IN ('host', 'command', 'started_unix_ns', 'state', 'min_duration_ns')
               ORDER BY key)
UNION ALL
SELECT 'lost_events', CAST(COALESCE(SUM(COALESCE(events, 1)), 0) AS TEXT) FROM losses WHERE NOT is_stall;

-- name: folded_code
-- The name of code object ?1 in a folded stack: "f (app.py:10)".
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
SELECT code_id, COALESCE(qualname, '?') AS name, filename AS file, first_line AS line FROM code ORDER BY code_id;

-- name: profile
-- The name of the profile of thread ?1 in speedscope.
SELECT COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?') || ' [' || COALESCE(p.pid, '?') || COALESCE(' rank ' || p.rank, '') || ']'
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id = ?1;

-- name: span_names
SELECT COALESCE(name, '?') AS name FROM part_span GROUP BY 1 ORDER BY 1;

-- name: span_threads
-- The threads that have spans, and the names of their profiles in speedscope.
SELECT s.thread_id, COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?') || ' [' || COALESCE(p.pid, '?') || COALESCE(' rank ' || p.rank, '') || ']'
FROM (SELECT DISTINCT thread_id FROM part_span) s
LEFT JOIN thread t ON t.thread_id = s.thread_id
LEFT JOIN process p ON p.process_id = t.process_id
ORDER BY s.thread_id;

-- name: thread_spans
-- The spans of thread ?1, each with the index of its name in span_names.
WITH names AS MATERIALIZED (SELECT name, ROW_NUMBER() OVER (ORDER BY name) - 1 AS place FROM (SELECT DISTINCT COALESCE(name, '?') AS name FROM part_span))
SELECT s.start_ns, s.end_ns, n.place FROM part_span s JOIN names n ON n.name = COALESCE(s.name, '?')
WHERE s.thread_id IS ?1
ORDER BY s.start_ns, s.end_ns DESC, s.span_id;

-- The statements below read each trace for a Parquet dataset (src/cmd/parquet.c).

-- name: rank
-- The rank of the trace: the one that the trace names, or else the common rank of all its
-- processes.
SELECT COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rank'), (SELECT MIN(rank) FROM process HAVING MIN(rank) = MAX(rank)), -1);

-- name: compiles
-- Compiles, and for each recompile the source of the guard that decided it, or the cause in words.
SELECT m.*, COALESCE(k.source, k.text) AS cause FROM compiles m LEFT JOIN recompile_causes k ON m.is_recompile AND k.cause_id = m.cause_id
ORDER BY m.compile_id;

-- name: skipped
-- Frames of calls that ran as Python without a lookup, because the compiler had given up their
-- function.
SELECT * FROM frame WHERE frame_id IN (SELECT frame_id FROM skipped_calls);

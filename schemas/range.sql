-- range.sql -- selects a part of a trace, as options describe it (src/trace/range.h). The ids of
-- the selected rows are computed once and stored in tables.

-- name: asked
-- What the user asked for: 'from' and 'to' have nanoseconds, 'process' a pid, 'thread' a name or a
-- tid, 'function' a glob.
CREATE TEMP TABLE asked(what TEXT, value TEXT);

-- name: ask
INSERT INTO asked VALUES (?1, ?2);

-- name: nothing
-- What the user asked for and the trace does not have.
SELECT what, value FROM asked
WHERE NOT CASE what WHEN 'process' THEN EXISTS (SELECT 1 FROM process WHERE pid = value)
                    WHEN 'thread' THEN EXISTS (SELECT 1 FROM thread WHERE os_tid = value OR name GLOB value)
                    WHEN 'function' THEN EXISTS (SELECT 1 FROM code WHERE qualname GLOB value OR qualname GLOB '*.' || value)
                    ELSE 1 END;

-- name: part
-- A part of the recording's time contains the frames and compiles that overlap it, so it contains
-- the callers of a frame, too; it contains the lookups that began in it. A function's part contains
-- its frames and all frames below them. ended_ns: when the frames that a thread
-- left open ended.
CREATE TEMP TABLE part_window AS
SELECT COALESCE((SELECT MAX(CAST(value AS INTEGER)) FROM asked WHERE what = 'from'), -9223372036854775808) AS from_ns,
       COALESCE((SELECT MIN(CAST(value AS INTEGER)) FROM asked WHERE what = 'to'), 9223372036854775807) AS to_ns;
CREATE TEMP TABLE part_process AS
SELECT process_id FROM process
WHERE NOT EXISTS (SELECT 1 FROM asked WHERE what = 'process') OR EXISTS (SELECT 1 FROM asked WHERE what = 'process' AND pid = value);
CREATE TEMP TABLE part_thread(thread_id INTEGER PRIMARY KEY, ended_ns INTEGER);
INSERT INTO part_thread
SELECT t.thread_id, e.end_ns FROM thread t JOIN thread_ends e ON e.thread_id = t.thread_id
WHERE (t.process_id IN part_process OR NOT EXISTS (SELECT 1 FROM asked WHERE what = 'process'))
  AND (NOT EXISTS (SELECT 1 FROM asked WHERE what = 'thread')
       OR EXISTS (SELECT 1 FROM asked WHERE what = 'thread' AND (t.os_tid = value OR t.name GLOB value)));
CREATE TEMP TABLE part_code(code_id INTEGER PRIMARY KEY);
INSERT INTO part_code
WITH RECURSIVE m(code_id) AS (
    SELECT code_id FROM asked JOIN code ON qualname GLOB value OR qualname GLOB '*.' || value WHERE what = 'function'
    UNION
    SELECT c.code_id FROM m JOIN code c ON c.origin_code_id = m.code_id)
SELECT code_id FROM m;
CREATE TEMP TABLE part_frame(frame_id INTEGER PRIMARY KEY);
INSERT INTO part_frame
WITH RECURSIVE called(frame_id) AS (
    SELECT frame_id FROM frame WHERE code_id IN part_code
    UNION
    SELECT f.frame_id FROM called k CROSS JOIN frame f ON f.parent_id = k.frame_id
    WHERE EXISTS (SELECT 1 FROM part_code))
SELECT f.frame_id
FROM (SELECT 1 FROM asked LIMIT 1) CROSS JOIN part_window w CROSS JOIN frame f JOIN part_thread t ON t.thread_id = f.thread_id
WHERE f.start_ns < w.to_ns AND COALESCE(f.end_ns, t.ended_ns) >= w.from_ns
  AND (f.frame_id IN (SELECT frame_id FROM called) OR NOT EXISTS (SELECT 1 FROM asked WHERE what = 'function'));
CREATE TEMP TABLE part_lookup(lookup_id INTEGER PRIMARY KEY);
INSERT INTO part_lookup
SELECT l.lookup_id
FROM (SELECT 1 FROM asked LIMIT 1) CROSS JOIN part_window w CROSS JOIN lookup l
WHERE l.start_ns >= w.from_ns AND l.start_ns < w.to_ns
  AND COALESCE(l.thread_id IN (SELECT thread_id FROM part_thread), NOT EXISTS (SELECT 1 FROM asked WHERE what IN ('thread', 'process')))
  AND (l.code_id IN part_code OR l.frame_id IN part_frame OR NOT EXISTS (SELECT 1 FROM asked WHERE what = 'function'));
CREATE TEMP TABLE part_compile(compile_id INTEGER PRIMARY KEY);
INSERT INTO part_compile
SELECT m.compile_id
FROM (SELECT 1 FROM asked LIMIT 1) CROSS JOIN part_window w CROSS JOIN compile m
WHERE m.start_ns < w.to_ns AND COALESCE(m.end_ns, m.start_ns) >= w.from_ns
  AND COALESCE(m.thread_id IN (SELECT thread_id FROM part_thread), NOT EXISTS (SELECT 1 FROM asked WHERE what IN ('thread', 'process')))
  AND (m.code_id IN part_code OR m.frame_id IN part_frame OR NOT EXISTS (SELECT 1 FROM asked WHERE what = 'function'));
-- The spans that overlap the time of the part, cut to this time.
CREATE TEMP VIEW part_span AS
SELECT s.span_id, s.parent_span_id, s.kind, s.name, s.thread_id, s.attributes, MAX(s.start_ns, w.from_ns) AS start_ns,
       MIN(MAX(COALESCE(s.end_ns, t.ended_ns, s.start_ns), s.start_ns), w.to_ns) AS end_ns, s.end_ns IS NULL AS open
FROM part_window w CROSS JOIN span s LEFT JOIN part_thread t ON t.thread_id = s.thread_id
WHERE s.start_ns < w.to_ns AND COALESCE(s.end_ns, t.ended_ns, s.start_ns) >= w.from_ns
  AND (t.thread_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM asked WHERE what IN ('thread', 'process')))
  AND (s.frame_id IN (SELECT frame_id FROM part_frame) OR NOT EXISTS (SELECT 1 FROM asked WHERE what = 'function'));

-- name: calls
-- From here on `lookup` and `frame` have only the rows of the part, also for the views that read
-- these tables.
CREATE TEMP VIEW lookup AS SELECT * FROM main.lookup WHERE lookup_id IN part_lookup;
CREATE TEMP VIEW frame AS SELECT * FROM main.frame WHERE frame_id IN part_frame;

-- name: picture
-- The rows for a picture: each frame is cut to the time of the part. A frame that is still open at
-- the end of this time ends there.
CREATE TEMP VIEW frame AS
SELECT f.frame_id, f.thread_id, f.parent_id, f.code_id, f.kind, f.outcome, MAX(f.start_ns, w.from_ns) AS start_ns,
       CASE WHEN f.end_ns IS NOT NULL OR t.ended_ns > w.to_ns THEN MIN(COALESCE(f.end_ns, w.to_ns), w.to_ns) END AS end_ns,
       f.cache_entry_id, f.exit
FROM part_window w CROSS JOIN main.frame f JOIN part_thread t ON t.thread_id = f.thread_id
WHERE f.frame_id IN part_frame;
CREATE TEMP VIEW lookup AS SELECT * FROM main.lookup WHERE lookup_id IN part_lookup;
CREATE TEMP VIEW compile AS
SELECT m.compile_id, m.frame_id, m.code_id, m.thread_id, m.label, MAX(m.start_ns, w.from_ns) AS start_ns, MIN(m.end_ns, w.to_ns) AS end_ns,
       m.outcome, m.cache_entry_id, m.reason, m.sticky
FROM part_window w CROSS JOIN main.compile m
WHERE m.compile_id IN part_compile;
CREATE TEMP VIEW cache_entry AS
SELECT e.* FROM main.cache_entry e JOIN part_window w
WHERE e.compile_id IN part_compile OR e.died_ns >= w.from_ns AND e.died_ns < w.to_ns AND NOT EXISTS (SELECT 1 FROM asked WHERE what IN ('thread', 'function'))
   AND (SELECT process_id FROM code c WHERE c.code_id = e.code_id) IN part_process;
CREATE TEMP VIEW thread AS SELECT * FROM main.thread WHERE thread_id IN (SELECT thread_id FROM part_thread);
CREATE TEMP VIEW process AS SELECT * FROM main.process WHERE process_id IN part_process

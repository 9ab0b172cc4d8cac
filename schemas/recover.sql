-- recover.sql -- the statements that read the two files of a recording (src/collector/trace_files.c), and
-- those that finish the trace at the end. Then the file of frames is `trace` and has the other tables, too;
-- `main` is the live file.

-- name: views
-- The views are copied as rows of the schema, without parsing them.
PRAGMA writable_schema=ON;
INSERT INTO trace.sqlite_schema SELECT * FROM main.sqlite_schema WHERE type = 'view';
PRAGMA writable_schema=OFF;

-- name: late
-- Changes the frames about which the collector learned something after their rows were written: table `late`
-- of the live file.
UPDATE trace.frame SET cache_entry_id = (SELECT l.cache_entry_id FROM main.late l WHERE l.frame_id = trace.frame.frame_id)
WHERE frame_id IN (SELECT frame_id FROM main.late WHERE cache_entry_id);
UPDATE trace.frame SET took_ns = NULL, exit = NULL WHERE frame_id IN (SELECT frame_id FROM main.late WHERE left_open);

-- name: kept
-- For a recording with a bound (src/collector/keep.h): copies lookups, checks, and the frames that lasted
-- longer than their page was kept. Their ids are smaller than all others.
INSERT OR IGNORE INTO trace.lookup SELECT * FROM main.lookup;
INSERT OR IGNORE INTO trace.guard_check SELECT * FROM main.guard_check;
INSERT OR IGNORE INTO trace.frame(frame_id, thread_id, parent_distance, code_id, kind, outcome, start_ns, took_ns, cache_entry_id, exit)
SELECT frame_id, thread_id, frame_id - parent_id, code_id, kind, outcome, start_ns, end_ns - start_ns, cache_entry_id, exit FROM main.long_frame;
-- The caller of a frame may have ended before the window and be gone. Then the nearest outer caller that is
-- stored takes its place. Such frames are in the first pages.
UPDATE trace.frame SET parent_distance = frame_id - (SELECT l.frame_id FROM trace.frame l
                                    WHERE l.frame_id < frame.parent_id AND l.thread_id = frame.thread_id AND l.start_ns <= frame.start_ns
                                      AND COALESCE(l.end_ns >= frame.end_ns, 1) ORDER BY l.frame_id DESC LIMIT 1)
WHERE frame_id < (SELECT value + ((SELECT MAX(frame_id) FROM trace.frame) - value) / 2 FROM trace.meta WHERE key = 'kept_frame_id')
  AND parent_id < (SELECT value FROM trace.meta WHERE key = 'kept_frame_id')
  AND NOT EXISTS (SELECT 1 FROM trace.frame p WHERE p.frame_id = frame.parent_id);
UPDATE trace.meta SET value = value + (SELECT COUNT(*) FROM main.long_frame) WHERE key = 'frame_count';
DELETE FROM trace.meta WHERE key IN ('kept_frame_id', 'kept_frame_ns');

-- name: long
-- Frames of a recording with a bound (src/collector/keep.h) that lasted longer than their pages were kept:
-- those with ids from ?1 to below ?2.
SELECT frame_id, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, cache_entry_id, exit FROM main.long_frame
WHERE frame_id >= ?1 AND frame_id < ?2;

-- name: long_put
INSERT OR IGNORE INTO trace.frame(frame_id, thread_id, parent_distance, code_id, kind, outcome, start_ns, took_ns, cache_entry_id, exit)
VALUES (?1, ?2, ?1 - ?3, ?4, ?5, ?6, ?7, ?8 - ?7, ?9, ?10);

-- name: snapshot
-- For a snapshot: frames that ended after its moment get no end.
UPDATE trace.frame SET took_ns = NULL, exit = NULL
WHERE took_ns < 0 OR end_ns > (SELECT value FROM trace.meta WHERE key = 'snapshot_ns');
INSERT OR REPLACE INTO trace.meta(key, value) SELECT 'open_frame_count', COUNT(*) FROM trace.frame WHERE end_ns IS NULL;
INSERT OR REPLACE INTO trace.meta(key, value) SELECT 'frame_count', COUNT(*) FROM trace.frame;
DELETE FROM trace.meta WHERE key IN ('session', 'destination', 'kept_frame_id', 'kept_frame_ns');
UPDATE trace.meta SET value = 'complete' WHERE key = 'state';

-- name: bounds
-- For a recording with a bound: its two bounds, and the time from which on everything is kept.
SELECT COALESCE((SELECT value FROM meta WHERE key = 'keep_ns'), 0) || ' ' || COALESCE((SELECT value FROM meta WHERE key = 'keep_bytes'), 0)
       || ' ' || value FROM meta WHERE key = 'kept_from_ns';

-- name: salvage
-- Copies the lookups and guard checks of the live file, if the pages of them that the collector had in memory
-- were lost.
INSERT OR IGNORE INTO trace.lookup SELECT * FROM main.lookup;
INSERT OR IGNORE INTO trace.guard_check SELECT * FROM main.guard_check;

-- name: mend
-- For a recording whose collector was killed, perhaps before it had written anything but frames. A frame
-- whose end it did not see stays open.
UPDATE trace.frame SET took_ns = NULL, exit = NULL WHERE took_ns < 0;
INSERT OR IGNORE INTO trace.process(process_id) SELECT process_id FROM trace.thread;
INSERT INTO trace.process(process_id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM trace.process) AND EXISTS (SELECT 1 FROM trace.frame);
INSERT OR IGNORE INTO trace.thread(thread_id, process_id) SELECT DISTINCT thread_id, (SELECT MIN(process_id) FROM trace.process) FROM trace.frame;
INSERT OR IGNORE INTO trace.code(code_id, process_id, filename, qualname, first_line, kind)
  SELECT DISTINCT f.code_id, t.process_id, '', '(unknown code)', 0, 'function' FROM trace.frame f JOIN trace.thread t USING(thread_id);
INSERT OR REPLACE INTO trace.meta(key, value) VALUES
  ('frame_count', (SELECT count(*) FROM trace.frame)), ('open_frame_count', (SELECT count(*) FROM trace.frame WHERE end_ns IS NULL));
UPDATE trace.meta SET value = MAX(value, (SELECT COALESCE(MAX(MAX(start_ns, COALESCE(end_ns, 0))), 0) FROM trace.frame),
    (SELECT COALESCE(MAX(start_ns + duration_ns), 0) FROM trace.lookup), (SELECT COALESCE(MAX(end_ns), 0) FROM trace.compile)) WHERE key = 'span_ns';

-- name: copied
-- For a copy of the readable rows of a damaged file. A frame whose end was not recorded stays open.
UPDATE frame SET took_ns = NULL, exit = NULL WHERE took_ns < 0;
INSERT OR REPLACE INTO meta(key, value) SELECT 'state', 'recovered'
    UNION ALL SELECT 'frame_count', COUNT(*) FROM frame UNION ALL SELECT 'open_frame_count', COUNT(*) FROM frame WHERE end_ns IS NULL;
DELETE FROM meta WHERE key IN ('session', 'destination');

-- name: totals
-- Deletes the totals, which are then computed again. This uses a view, and SQLite sees the view only after
-- schema_version has changed. If frames were left out (--min-duration, --thin, --keep), the totals stay,
-- because only they have these frames.
PRAGMA trace.schema_version=1000;
DELETE FROM trace.code_total WHERE NOT EXISTS (SELECT 1 FROM trace.meta WHERE key IN ('min_duration_ns', 'thin', 'keep_ns', 'keep_bytes') AND value > 0);

-- name: frames
-- The frames in the order in which they began, for computing totals.
SELECT frame_id, thread_id, parent_id, code_id, kind = $FRAME_CALL,
       MAX(COALESCE(end_ns, (SELECT e.end_ns FROM trace.thread_ends e WHERE e.thread_id = frame.thread_id)) - start_ns, 0), exit = $EXIT_RAISE, outcome
FROM trace.frame ORDER BY frame_id;

-- name: owners
-- To which function the time of each code object belongs.
SELECT code_id, CASE WHEN is_own THEN $OWNER_ITSELF WHEN qualname = $IMPORT_FUNCTION AND filename = $IMPORT_FILE THEN $OWNER_NOBODY
                     WHEN code_id IN (SELECT code_id FROM trace.waits) THEN $OWNER_NOBODY ELSE $OWNER_CALLER END
FROM trace.functions;

-- name: orphan
-- The parent of frame ?1 was lost.
UPDATE trace.frame SET parent_distance = NULL WHERE frame_id = ?1;

-- name: total
-- The time of library code is known only if each of its frames has a row.
INSERT OR IGNORE INTO trace.code_total(code_id, calls, total_ns, self_ns, raised, max_ns, skipped, library_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(EXISTS (SELECT 1 FROM trace.frame_count), NULL, ?8));

-- name: counted
-- Adds the frames that were only counted to the totals, which were computed from the rows of `frame`. These
-- totals lack the counted frames, and have the time of the counted frames as own time of their callers.
INSERT INTO trace.code_total(code_id, calls, total_ns, self_ns, raised, max_ns, skipped)
SELECT code_id, SUM(calls), SUM(total_ns), SUM(self_ns) - SUM(inner_ns), SUM(raised), MAX(max_ns), SUM(calls * (outcome = $SKIP)) FROM trace.frame_count
WHERE NOT EXISTS (SELECT 1 FROM trace.meta WHERE key IN ('min_duration_ns', 'thin', 'keep_ns', 'keep_bytes') AND value > 0)
GROUP BY code_id
ON CONFLICT(code_id) DO UPDATE SET calls = calls + excluded.calls, total_ns = total_ns + excluded.total_ns,
    self_ns = MAX(self_ns + excluded.self_ns, 0), raised = raised + excluded.raised, max_ns = MAX(max_ns, COALESCE(excluded.max_ns, 0)),
    skipped = skipped + excluded.skipped;

-- name: end
-- For every trace. If an older entry did not fit because it was for another backend: the names of its backend
-- and of the new entry's. If two backends have the same name, they are different objects.
UPDATE trace.recompile_cause SET (expected, actual) =
    (SELECT o.backend, CASE n.backend WHEN o.backend THEN n.backend || ' (another object)' ELSE n.backend END
     FROM trace.cache_entry o LEFT JOIN trace.compile m ON m.compile_id = recompile_cause.compile_id
     LEFT JOIN trace.cache_entry n ON n.cache_entry_id = m.cache_entry_id
     WHERE o.cache_entry_id = recompile_cause.cache_entry_id)
WHERE kind = 'BACKEND_MATCH' AND expected IS NULL;

-- name: pages
-- For the file of frames: its number of pages, and the root pages in the order of enum page_tree_of
-- (src/collector/frame_pages.h).
SELECT page_count || (SELECT group_concat(' ' || rootpage, '') FROM (
    SELECT rootpage FROM json_each('["frame", "lookup", "guard_check", "lookup_code", "guard_check_lookup"]') j
    JOIN sqlite_schema ON name = j.value ORDER BY j.key))
FROM pragma_page_count;

-- name: index
-- Makes the indexes of lookups and guard checks, which are missing after a kill or on a full disk.
REINDEX trace.lookup;
REINDEX trace.guard_check;

-- name: named
-- Does the trace name the session ?1?
SELECT 1 FROM meta WHERE key = 'session' AND value = ?1;

-- name: log
-- Moves the pages of the log that no reader holds into the file.
PRAGMA wal_checkpoint(PASSIVE);

-- name: session
-- The session of a trace that is being recorded on host ?1.
SELECT value FROM meta WHERE key = 'session' AND (SELECT value FROM meta WHERE key = 'host') = ?1
                         AND (SELECT value FROM meta WHERE key = 'state') = 'recording';

-- name: finished
-- The number of frames in a finished recording, and the number of its Python processes.
SELECT (SELECT value FROM meta WHERE key = 'frame_count') || ' ' || (SELECT count(executable) FROM process)
FROM meta WHERE key = 'state' AND value <> 'recording';

-- name: destination
-- The path to which the trace moves when it is complete.
SELECT value FROM meta WHERE key = 'destination';

-- merge.sql -- the statements that make the rows of a merged trace which are not copied from the merged
-- traces (src/trace/merge.c).

-- name: begin
CREATE UNIQUE INDEX signature_text ON signature(text); PRAGMA cache_size = -8192; BEGIN;

-- name: traces
-- The traces to merge, from the tables of schemas/given.sql. The last three columns are for the statement
-- `merged`.
SELECT file, began_ns, (SELECT value FROM given g WHERE g.trace_id = t.trace_id AND key = 'host'),
       (SELECT CAST(value AS INTEGER) FROM given g WHERE g.trace_id = t.trace_id AND key = 'rank'), trace_id,
       COALESCE((SELECT value FROM given g WHERE g.trace_id = t.trace_id AND key = 'host'), '') AS host,
       COALESCE((SELECT value FROM given g WHERE g.trace_id = t.trace_id AND key = 'command'), '') AS command,
       (SELECT MAX(rank) FROM had h WHERE h.trace_id = t.trace_id) AS rank,
       (SELECT CAST(value AS INTEGER) FROM given g WHERE g.trace_id = t.trace_id AND key = 'decided') AS decided
FROM trace t ORDER BY trace_id;

-- name: merged
-- ?1 to ?6: the trace's file, when it began, its host, command and rank, and whether a compiler decided
-- anything in it. ?7 and later: the numbers that were added to its ids.
INSERT INTO merged(file, started_unix_ns, host, command, rank, decided, thread_id, code_id, frame_id, lookup_id, guard_check_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: signature
INSERT OR IGNORE INTO signature(text) VALUES (?1);

-- name: alike
-- alike: the rows of `meta` that are the same in all merged traces. number: the numbers in the `meta` of each
-- trace (schemas/given.sql).
CREATE TEMP TABLE alike AS SELECT key, MIN(value) AS value FROM given JOIN trace USING(trace_id) GROUP BY key
HAVING COUNT(*) = (SELECT COUNT(*) FROM trace) AND MIN(value) = MAX(value);
CREATE TEMP TABLE number AS SELECT trace_id, file, began_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'span_ns'), 0) AS span_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'min_duration_ns'), 0) AS min_duration_ns,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'kept_from_ns') AS from_ns,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'clock_doubt_ns') AS clock_doubt_ns,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'recorder_cpu_ns') AS cpu_ns,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'frame_count') AS frames,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'open_frame_count') AS open_frames,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'counted_frame_count') AS counted_frames FROM trace JOIN given USING(trace_id) GROUP BY trace_id;

-- name: meta
-- If all traces have the same value, the merged trace has it, too. A trace without the row `values` has all
-- values. Times count from the beginning of the earliest trace, by the common clock of the traces if they
-- have one.
SELECT column1, COALESCE((SELECT value FROM alike WHERE key = column1), column2)
FROM (VALUES ('state', 'recovered'), ('host', 'several'), ('command', '["dyntrace", "merge"]'), ('clock', 'several'),
             ('values', iif(EXISTS (SELECT 1 FROM given JOIN trace USING(trace_id) WHERE key = 'values' AND value <> 'all'), 'several', 'all')))
UNION ALL SELECT 'job', MAX(job) FROM trace HAVING COUNT(job)
UNION ALL SELECT key, value FROM alike WHERE key IN ('world_size', 'settings_unused')
UNION ALL SELECT key, iif(key IN (SELECT key FROM alike), MIN(value), 'several') FROM given JOIN trace USING(trace_id) WHERE key = 'settings' GROUP BY key
UNION ALL SELECT 'redact', iif(COUNT(*) < (SELECT COUNT(*) FROM trace), 'several', iif(MIN(value) = MAX(value), MIN(value), 'several'))
  FROM given JOIN trace USING(trace_id) WHERE key = 'redact' HAVING COUNT(*)
UNION ALL SELECT 'clock_doubt_ns', MAX(clock_doubt_ns) FROM number HAVING COUNT(clock_doubt_ns) = COUNT(*)
UNION ALL SELECT 'started_unix_ns', MIN(began_ns) FROM number
UNION ALL SELECT 'span_ns', MAX(0, MAX(began_ns + span_ns) - MIN(began_ns)) FROM number
UNION ALL SELECT 'min_duration_ns', MAX(min_duration_ns) FROM number
UNION ALL SELECT 'kept_from_ns', MAX(began_ns + from_ns) - MIN(all_began_ns) FROM (SELECT *, MIN(began_ns) OVER () AS all_began_ns FROM number) WHERE from_ns > 0 HAVING COUNT(*)
UNION ALL SELECT key, MAX(CAST(value AS INTEGER)) FROM given JOIN trace USING(trace_id) WHERE key IN ('thin', 'keep_ns', 'keep_bytes', 'decisions_only') GROUP BY key
UNION ALL SELECT 'recorder_cpu_ns', SUM(cpu_ns) FROM number HAVING COUNT(cpu_ns) = COUNT(*);

-- name: merged-from
SELECT 'merged_from', json_group_array(json_object('file', file, 'host', host, 'command', command, 'started_unix_ns', started_unix_ns,
                                                   'rank', rank, 'decided', decided)) FROM merged WHERE merged_id <= 1000;

-- name: counted
-- The counts of frames, if the frames themselves are not copied: the sums of what the traces have in `meta`.
SELECT 'frame_count', SUM(frames) FROM number UNION ALL SELECT 'open_frame_count', SUM(open_frames) FROM number
UNION ALL SELECT 'counted_frame_count', SUM(counted_frames) FROM number HAVING SUM(counted_frames) > 0;

-- name: decisions-only
-- For a trace without the frames of most calls.
SELECT 'decisions_only', 1;

-- name: frames
-- The counts of frames, from the rows of the merged trace.
SELECT 'frame_count', COUNT(*) FROM frame UNION ALL SELECT 'open_frame_count', COUNT(*) FROM frame WHERE end_ns IS NULL
UNION ALL SELECT 'counted_frame_count', SUM(frames) FROM frame_count HAVING SUM(frames) > 0;

-- name: frame
-- A frame: its columns as C names them (src/tables.h), in their order.
INSERT INTO frame(frame_id, thread_id, parent_distance, code_id, kind, outcome, start_ns, took_ns, cache_entry_id, exit)
VALUES (?1, ?2, ?1 - ?3, ?4, ?5, ?6, ?7, ?8 - ?7, ?9, ?10);

-- name: only-decided
-- This condition is appended to a SELECT of frames, if only frames are copied whose calls have no lookup.
WHERE outcome IN ($SKIP, $DISABLED);

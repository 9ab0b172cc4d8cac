-- merge.sql -- what merging makes besides the rows that it moves (src/trace/merge.c).

-- name: begin
-- given: what each trace says of itself, and by the key NULL its name. had: its processes, by the moment at which they began.
CREATE UNIQUE INDEX signature_text ON signature(text);
CREATE TEMP TABLE given(trace INTEGER, key TEXT, value TEXT);
CREATE TEMP TABLE had(trace INTEGER, host TEXT, pid INTEGER, began_ns INTEGER);
CREATE INDEX temp.had_process ON had(pid, began_ns, host);
CREATE INDEX temp.had_trace ON had(trace);
CREATE INDEX temp.given_trace ON given(trace);

-- name: processes
-- Of a trace that began at ?1.
SELECT COALESCE(host, (SELECT value FROM meta WHERE key = 'host')), pid, ?1 + start_ns FROM process
WHERE pid IS NOT NULL AND start_ns IS NOT NULL AND ABS(start_ns) < 4000000000000000000;

-- name: process
INSERT INTO had VALUES (?1, ?2, ?3, ?4);

-- name: twice
-- A process of trace ?1 that another has, too, and what that is called.
SELECT h.pid, g.value FROM had h JOIN had o ON o.pid = h.pid AND o.began_ns = h.began_ns AND o.host IS h.host AND o.trace <> h.trace
JOIN given g ON g.trace = o.trace AND g.key IS NULL WHERE h.trace = ?1 LIMIT 1;

-- name: forget
-- Trace ?1 is left out.
DELETE FROM given WHERE trace = ?1;

-- name: signature
INSERT OR IGNORE INTO signature(text) VALUES (?1);

-- name: meta
-- What all traces say alike is said again; one that does not say what values it has, has all. Times count from the earliest, by the
-- clock that the traces share.
CREATE TEMP TABLE alike AS SELECT key, MIN(value) AS value FROM given WHERE key IS NOT NULL GROUP BY key
HAVING COUNT(*) = (SELECT COUNT(DISTINCT trace) FROM given) AND MIN(value) = MAX(value);
INSERT OR REPLACE INTO main.meta SELECT column1, COALESCE((SELECT value FROM alike WHERE key = column1), column2)
FROM (VALUES ('state', 'recovered'), ('host', 'several'), ('command', '["dyntrace", "merge"]'), ('clock', 'several'),
             ('values', iif(EXISTS (SELECT 1 FROM given WHERE key = 'values' AND value <> 'all'), 'several', 'all')));
INSERT OR REPLACE INTO main.meta SELECT 'job', COALESCE((SELECT value FROM alike WHERE key = 'job'), 'several')
  WHERE EXISTS (SELECT 1 FROM given WHERE key = 'job')
  UNION ALL SELECT key, value FROM alike WHERE key = 'world_size'
  UNION ALL SELECT 'clock_doubt_ns', MAX(CAST(value AS INTEGER)) FROM given WHERE key = 'clock_doubt_ns'
  HAVING COUNT(*) = (SELECT COUNT(DISTINCT trace) FROM given);
CREATE TEMP TABLE number AS SELECT trace, MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'started_unix_ns') +
    COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'clock_offset_ns'), 0) AS started_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'span_ns'), 0) AS span_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'min_duration_ns'), 0) AS min_duration_ns,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'frame_count') AS frames,
  MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'open_frame_count') AS open_frames,
  MAX(value) FILTER (WHERE key IS NULL) AS file, COALESCE(MAX(value) FILTER (WHERE key = 'host'), '') AS host,
  COALESCE(MAX(value) FILTER (WHERE key = 'command'), '') AS command FROM given GROUP BY trace;
INSERT OR REPLACE INTO main.meta SELECT 'started_unix_ns', MIN(started_ns) FROM number
  UNION ALL SELECT 'span_ns', MAX(0, MAX(started_ns + span_ns) - MIN(started_ns)) FROM number
  UNION ALL SELECT 'min_duration_ns', MAX(min_duration_ns) FROM number
  UNION ALL SELECT 'frame_count', COUNT(*) FROM frame UNION ALL SELECT 'open_frame_count', COUNT(*) FROM frame WHERE end_ns IS NULL
  UNION ALL SELECT 'merged_from', json_group_array(json_object('file', file, 'host', host, 'command', command, 'started_unix_ns', started_ns))
  FROM number;
DROP INDEX signature_text;

-- name: counted
-- Frames that are not here count.
INSERT OR REPLACE INTO main.meta SELECT 'frame_count', SUM(frames) FROM number UNION ALL SELECT 'open_frame_count', SUM(open_frames) FROM number;

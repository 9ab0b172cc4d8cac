-- merge.sql -- what `dyntrace merge` makes besides the rows that it moves (src/cmd/merge.c). `source` is the trace that is read,
-- `main` the one that is made.

-- name: begin
-- given: what each trace says of itself, and by the key NULL its name. renumbered: a signature's number in the source and here.
CREATE UNIQUE INDEX signature_text ON signature(text);
CREATE TEMP TABLE given(trace INTEGER, key TEXT, value TEXT);
CREATE TEMP TABLE renumbered(id INTEGER PRIMARY KEY, made INTEGER);

-- name: given
INSERT INTO given SELECT ?1, NULL, ?2 UNION ALL SELECT ?1, key, value FROM source.meta WHERE value IS NOT NULL;

-- name: signatures
-- Each text is stored once.
DELETE FROM renumbered;
INSERT OR IGNORE INTO main.signature(text) SELECT text FROM source.signature ORDER BY signature_id;
INSERT INTO renumbered SELECT s.signature_id, m.signature_id FROM source.signature s JOIN main.signature m ON m.text = s.text;

-- name: twice
SELECT pid FROM process WHERE pid IS NOT NULL AND start_ns IS NOT NULL GROUP BY host, pid, start_ns HAVING COUNT(*) > 1;

-- name: meta
-- What all traces say alike is said again. Times count from the earliest.
INSERT OR REPLACE INTO main.meta SELECT column1, COALESCE(
  (SELECT MIN(value) FROM given WHERE key = column1 HAVING COUNT(*) = (SELECT MAX(trace) FROM given) AND MIN(value) = MAX(value)), column2)
FROM (VALUES ('state', 'recovered'), ('host', 'several'), ('command', '["dyntrace", "merge"]'), ('clock', 'several'), ('values', 'several'));
CREATE TEMP VIEW number AS SELECT trace, MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'started_unix_ns') AS started_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'span_ns'), 0) AS span_ns,
  COALESCE(MAX(CAST(value AS INTEGER)) FILTER (WHERE key = 'min_duration_ns'), 0) AS min_duration_ns,
  MAX(value) FILTER (WHERE key IS NULL) AS file, COALESCE(MAX(value) FILTER (WHERE key = 'host'), '') AS host,
  COALESCE(MAX(value) FILTER (WHERE key = 'command'), '') AS command FROM given GROUP BY trace;
INSERT OR REPLACE INTO main.meta SELECT 'started_unix_ns', MIN(started_ns) FROM number
  UNION ALL SELECT 'span_ns', MAX(0, MAX(started_ns + span_ns) - MIN(started_ns)) FROM number
  UNION ALL SELECT 'min_duration_ns', MAX(min_duration_ns) FROM number
  UNION ALL SELECT 'frame_count', COUNT(*) FROM frame UNION ALL SELECT 'open_frame_count', COUNT(*) FROM frame WHERE end_ns IS NULL
  UNION ALL SELECT 'merged_from', json_group_array(json_object('file', file, 'host', host, 'command', command, 'started_unix_ns', started_ns))
  FROM number;
DROP INDEX signature_text;

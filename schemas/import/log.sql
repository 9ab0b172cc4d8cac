-- import/log.sql -- reads torch's log for `dyntrace import`: each record becomes a row, unchanged.

-- name: tables
PRAGMA cache_size = -8192; PRAGMA temp.cache_size = -8192;
CREATE TEMP TABLE record(id INTEGER PRIMARY KEY, process_id INTEGER, at_ns INTEGER, name TEXT, label TEXT, frame TEXT,
                         attempt INTEGER, data TEXT, body TEXT, line INTEGER, damage TEXT);
CREATE TEMP TABLE source(process_id INTEGER PRIMARY KEY, file TEXT, pid INTEGER, rank INTEGER, UNIQUE (file, pid));

-- name: at
-- The time at which a record was written, as if its local time were UTC, and the md5 of its text.
-- Both are NULL if the record is not JSON, or has no text. ?1: the record; ?2: the date, '1121';
-- ?3: the time, '15:44:00.566000'; ?4: when the file was last changed. A record has no year. The
-- year is that of ?4, or the year before if the record would otherwise be later than ?4, as when a
-- file written in December was changed in January.
SELECT CASE WHEN json_valid(?1) THEN
    (SELECT seconds * 1000000000 + CAST(substr(?3, 10, 6) AS INTEGER) * 1000
     FROM (SELECT CAST(strftime('%s', strftime('%Y', ?4, 'unixepoch', '-' || value || ' years') || '-' || substr(?2, 1, 2) || '-'
                                || substr(?2, 3, 2) || ' ' || substr(?3, 1, 8)) AS INTEGER) AS seconds, value FROM json_each('[0, 1]'))
     WHERE seconds <= ?4 + 172800 OR value = 1 ORDER BY value LIMIT 1) END,
  CASE WHEN json_valid(?1) THEN json_extract(?1, '$.has_payload') END;

-- name: record
-- A record describes its subject in one key; all other keys say where the record comes from. ?5:
-- the number of its line; ?6: why its text is missing although torch wrote one.
INSERT INTO record(process_id, at_ns, name, label, frame, attempt, data, body, line, damage)
SELECT ?1, ?2, k.key,
  CASE WHEN json_extract(?3, '$.frame_id') IS NULL THEN NULL ELSE
    COALESCE('!' || json_extract(?3, '$.compiled_autograd_id') || '/', '') || json_extract(?3, '$.frame_id') || '/'
    || json_extract(?3, '$.frame_compile_id') END,
  COALESCE('!' || json_extract(?3, '$.compiled_autograd_id') || '/', '') || json_extract(?3, '$.frame_id'),
  json_extract(?3, '$.attempt'),
  CASE WHEN k.key = 'chromium_event' THEN CASE WHEN json_valid(?4) THEN ?4 END
       ELSE k.value END,
  CASE WHEN k.key = 'chromium_event' THEN NULL ELSE ?4 END, ?5, ?6
FROM json_each(?3) k WHERE k.key NOT IN ('frame_id', 'frame_compile_id', 'attempt', 'has_payload', 'stack',
 'compiled_autograd_id', 'thread', 'process', 'pathname')
 AND (k.key <> 'rank' OR NOT EXISTS (SELECT 1 FROM record r WHERE r.process_id = ?1 AND r.name = 'rank'));

-- name: process
-- The number of process ?2 in file ?1; the process is added if it is new. ?3: the rank in the
-- file's name, or -1 if it has none.
INSERT INTO source(file, pid, rank) VALUES (?1, ?2, NULLIF(?3, -1)) ON CONFLICT DO UPDATE SET pid = excluded.pid RETURNING process_id;

-- name: loss
INSERT INTO loss(process_id, at_ns, events, cause) VALUES (NULLIF(?2, 0), 0, ?3, 'import: ' || ?1 || ': lines and records that are damaged');

-- name: version
INSERT INTO meta VALUES ('dyntrace_version', ?1);

-- name: redact
INSERT INTO meta VALUES ('redact', ?1);

-- name: meta
INSERT INTO meta VALUES ('state', 'complete'), ('clock', 'wall'), ('imported_from', json_quote(?1));

-- recorder.sql -- what the collector writes a live trace with (src/recorder_sqlite.c): how it begins, and those of
-- RECORDER_PUTS (src/recorder_sqlite.h) that are a STATEMENT, whose columns are ?1, ?2, ...

-- name: begin
-- What the live file has that the other has not.
-- Lookups come a hundred thousand a second; their indexes are in the other file.
PRAGMA synchronous=OFF;
PRAGMA journal_mode=WAL;
PRAGMA cache_size=-4096;
BEGIN;
DROP INDEX IF EXISTS lookup_code;
DROP INDEX IF EXISTS guard_check_lookup;
CREATE TABLE IF NOT EXISTS late(frame_id INTEGER PRIMARY KEY, cache_entry_id INTEGER, left_open INTEGER);
COMMIT;

-- name: PROCESS_FORKED
-- What a child has until it says otherwise: that it is called so, and runs the same Python and torch. Once only.
UPDATE process SET (rank, local_rank, argv, executable, python_version, torch_version, torch_mode, torch_note) =
    (SELECT p.rank, p.local_rank, p.argv, p.executable, p.python_version, p.torch_version, p.torch_mode, p.torch_note
     FROM process p WHERE p.process_id = ?2)
WHERE process_id = ?1 AND python_version IS NULL;

-- name: TOTAL
INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised, max_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT(code_id) DO UPDATE SET calls = calls + ?2, total_ns = total_ns + ?3, self_ns = self_ns + ?4, raised = raised + ?5,
    max_ns = MAX(max_ns, ?6);

-- name: ENTRY_DIED
-- The first of its deaths: what a fork has handed on dies in each process.
UPDATE cache_entry SET died_ns = ?2, death_cause = ?3 WHERE cache_entry_id = ?1 AND (died_ns IS NULL OR died_ns > ?2);

-- name: CAUSE
-- What a cause leaves empty is its guard's: readers need not look there.
INSERT OR REPLACE INTO recompile_cause(rowid, compile_id, cache_entry_id, ordinal, guard_id, kind, source, aspect, dimension, expected, actual,
                                       text, how)
VALUES (?1, ?2, ?3, ?4, ?5, COALESCE(NULLIF(?6, ''), (SELECT kind FROM guard WHERE guard_id = ?5)),
        COALESCE(NULLIF(?7, ''), (SELECT source FROM guard WHERE guard_id = ?5)), ?8, ?9, ?10, ?11,
        CASE WHEN ?12 <> '' THEN ?12 ELSE (SELECT expression FROM guard WHERE guard_id = ?5) || ' did not hold' END, ?13);

-- name: LATE_ENTRY
-- This and the next are of rows of frames that are written already: set when the files are joined.
INSERT INTO late(frame_id, cache_entry_id) VALUES (?1, ?2) ON CONFLICT(frame_id) DO UPDATE SET cache_entry_id = ?2;

-- name: LEFT_OPEN
INSERT INTO late(frame_id, left_open) VALUES (?1, 1) ON CONFLICT(frame_id) DO UPDATE SET left_open = 1;

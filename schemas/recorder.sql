-- recorder.sql -- the statements with which the collector writes a live trace (src/recorder_sqlite.c). Those
-- with names in capitals belong to RECORDER_PUTS (src/recorder_sqlite.h); ?1, ?2, ... are their columns.

-- name: begin
-- Makes the live file differ from the file of frames: it has a table `late`. It lacks the indexes of lookups,
-- because up to a hundred thousand lookups come in a second; the file of frames has these indexes.
PRAGMA synchronous=OFF;
PRAGMA journal_mode=WAL;
PRAGMA cache_size=-4096;
BEGIN;
DROP INDEX IF EXISTS lookup_code;
DROP INDEX IF EXISTS guard_check_lookup;
CREATE TABLE IF NOT EXISTS late(frame_id INTEGER PRIMARY KEY, cache_entry_id INTEGER, left_open INTEGER);
COMMIT;

-- name: PROCESS_FORKED
-- Until a forked child reports its own, it is taken to have the rank, command line, Python and torch of its
-- parent. This is done once only.
UPDATE process SET (rank, local_rank, argv, executable, python_version, torch_version, torch_mode, torch_note) =
    (SELECT p.rank, p.local_rank, p.argv, p.executable, p.python_version, p.torch_version, p.torch_mode, p.torch_note
     FROM process p WHERE p.process_id = ?2)
WHERE process_id = ?1 AND python_version IS NULL;

-- name: TOTAL
INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised, max_ns, skipped, library_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT(code_id) DO UPDATE SET calls = calls + ?2, total_ns = total_ns + ?3, self_ns = self_ns + ?4, raised = raised + ?5,
    max_ns = MAX(max_ns, ?6), skipped = skipped + ?7, library_ns = library_ns + ?8;

-- name: ENTRY_DIED
-- Keeps the earliest death: an entry that a fork handed on dies in each process.
UPDATE cache_entry SET died_ns = ?2, death_cause = ?3 WHERE cache_entry_id = ?1 AND (died_ns IS NULL OR died_ns > ?2);

-- name: CAUSE
-- If a cause lacks its kind, source or text, they are taken from its guard, so that readers need not look
-- there.
INSERT OR REPLACE INTO recompile_cause(rowid, compile_id, cache_entry_id, ordinal, guard_id, kind, source, aspect, dimension, expected, actual,
                                       text, how)
VALUES (?1, ?2, ?3, ?4, ?5, COALESCE(NULLIF(?6, ''), (SELECT kind FROM guard WHERE guard_id = ?5)),
        COALESCE(NULLIF(?7, ''), (SELECT source FROM guard WHERE guard_id = ?5)), ?8, ?9, ?10, ?11,
        CASE WHEN ?12 <> '' THEN ?12 ELSE (SELECT expression FROM guard WHERE guard_id = ?5) || ' did not hold' END, ?13);

-- name: LATE_ENTRY
-- This statement and the next are about frames whose rows are written already. The rows are changed when the
-- two files are joined.
INSERT INTO late(frame_id, cache_entry_id) VALUES (?1, ?2) ON CONFLICT(frame_id) DO UPDATE SET cache_entry_id = ?2;

-- name: LEFT_OPEN
INSERT INTO late(frame_id, left_open) VALUES (?1, 1) ON CONFLICT(frame_id) DO UPDATE SET left_open = 1;

-- name: keep_begin
-- For a recording with a bound (src/collector/keep.h). long_frame: frames that last longer than their page is
-- kept. kept: the lowest ids of lookup, guard_check and lookup_count that must still be examined; next_lookup
-- and next_check: where this range ends while old rows are dropped.
CREATE TABLE IF NOT EXISTS long_frame(frame_id INTEGER PRIMARY KEY, thread_id, parent_id, code_id, kind, outcome, start_ns, end_ns, cache_entry_id, exit);
CREATE TABLE IF NOT EXISTS kept(lookup_id INTEGER, check_id INTEGER, count_id INTEGER, next_lookup INTEGER, next_check INTEGER);
INSERT INTO kept SELECT 0, 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM kept);

-- name: LONG_FRAME
INSERT OR REPLACE INTO long_frame VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: LONG_FRAME_END
UPDATE long_frame SET outcome = ?2, end_ns = ?3, exit = ?4 WHERE frame_id = ?1;

-- name: long_frame
SELECT parent_id, start_ns, code_id, thread_id, kind, outcome FROM long_frame WHERE frame_id = ?1;

-- name: keep_step
-- When the lookup began before which a sixteenth of the kept lookups lies; NULL if there are none.
SELECT l.start_ns FROM kept k JOIN lookup l ON l.lookup_id > k.lookup_id + ((SELECT MAX(lookup_id) FROM lookup) - k.lookup_id) / 16
ORDER BY l.lookup_id LIMIT 1;

-- name: keep_lookups
-- Adds up and drops the lookups from before the window, and their checks. Lookups that asked the compiler are
-- kept.
UPDATE kept SET next_lookup = COALESCE(
    (SELECT l.lookup_id FROM lookup l WHERE l.lookup_id >= kept.lookup_id
     AND l.start_ns >= (SELECT value FROM meta WHERE key = 'kept_from_ns') ORDER BY l.lookup_id LIMIT 1),
    (SELECT MAX(l.lookup_id) + 1 FROM lookup l), kept.lookup_id);
INSERT INTO lookup_count(process_id, code_id, outcome, cache_entry_id, lookups, duration_ns, entries_checked, first_ns, last_ns)
SELECT t.process_id, l.code_id, l.outcome, l.cache_entry_id, COUNT(*), SUM(l.duration_ns), SUM(l.entries_checked), MIN(l.start_ns), MAX(l.start_ns)
FROM kept k CROSS JOIN lookup l ON l.lookup_id >= k.lookup_id AND l.lookup_id < k.next_lookup LEFT JOIN thread t ON t.thread_id = l.thread_id
WHERE l.outcome NOT IN ($COMPILED, $GUARD_ERROR, $CALLBACK_ERROR) AND l.frame_id NOT IN (SELECT frame_id FROM compile WHERE frame_id IS NOT NULL)
GROUP BY 1, 2, 3, 4;
UPDATE kept SET next_check = COALESCE(
    (SELECT c.guard_check_id FROM guard_check c WHERE c.guard_check_id >= kept.check_id AND c.lookup_id >= kept.next_lookup
     ORDER BY c.guard_check_id LIMIT 1),
    (SELECT MAX(c.guard_check_id) + 1 FROM guard_check c), kept.check_id);
DELETE FROM lookup
WHERE lookup_id >= (SELECT k.lookup_id FROM kept k) AND lookup_id < (SELECT next_lookup FROM kept)
  AND outcome NOT IN ($COMPILED, $GUARD_ERROR, $CALLBACK_ERROR) AND frame_id NOT IN (SELECT frame_id FROM compile WHERE frame_id IS NOT NULL);
DELETE FROM guard_check
WHERE guard_check_id >= (SELECT check_id FROM kept) AND guard_check_id < (SELECT next_check FROM kept)
  AND NOT EXISTS (SELECT 1 FROM lookup l WHERE l.lookup_id = guard_check.lookup_id);
UPDATE kept SET lookup_id = next_lookup, check_id = next_check;

-- name: keep_sweep
-- Drops old rows of tables that are not in order of time, and joins rows of lookup_count that have the same
-- process, code, outcome and entry.
DELETE FROM span WHERE end_ns < (SELECT value FROM meta WHERE key = 'kept_from_ns');
DELETE FROM stretch WHERE end_ns < (SELECT value FROM meta WHERE key = 'kept_from_ns');
DELETE FROM thread_cpu WHERE at_ns < (SELECT value FROM meta WHERE key = 'kept_from_ns') - 1000000000;
DELETE FROM long_frame WHERE end_ns < (SELECT value FROM meta WHERE key = 'kept_frame_ns');
DELETE FROM call_args WHERE frame_id < (SELECT value FROM meta WHERE key = 'kept_frame_id') AND frame_id NOT IN (SELECT frame_id FROM long_frame);
DELETE FROM late WHERE frame_id < (SELECT value FROM meta WHERE key = 'kept_frame_id') AND frame_id NOT IN (SELECT frame_id FROM long_frame);
UPDATE kept SET count_id = (SELECT COALESCE(MAX(rowid), 0) FROM lookup_count);
INSERT INTO lookup_count(process_id, code_id, outcome, cache_entry_id, lookups, duration_ns, entries_checked, first_ns, last_ns)
SELECT process_id, code_id, outcome, cache_entry_id, SUM(lookups), SUM(duration_ns), SUM(entries_checked), MIN(first_ns), MAX(last_ns)
FROM lookup_count GROUP BY 1, 2, 3, 4;
DELETE FROM lookup_count WHERE rowid <= (SELECT count_id FROM kept);

-- name: kept_rows
-- The number of rows that can be dropped, without frames.
SELECT (SELECT COUNT(*) FROM lookup) + (SELECT COUNT(*) FROM guard_check) + (SELECT COUNT(*) FROM span) + (SELECT COUNT(*) FROM stretch)
       + (SELECT COUNT(*) FROM thread_cpu) + (SELECT COUNT(*) FROM call_args);

-- name: metrics
-- The metrics that src/collector/metrics.c takes from the tables.
SELECT 'calls_total', 'counter', 'Calls of Python functions that were recorded.', COALESCE(SUM(calls), 0) FROM code_total
UNION ALL SELECT 'exceptions_total', 'counter', 'Frames that an exception left.', COALESCE(SUM(raised), 0) FROM code_total
UNION ALL SELECT 'functions', 'gauge', 'Code objects that were recorded.', COUNT(*) FROM code
UNION ALL SELECT 'processes_total', 'counter', 'Processes that were recorded.', COUNT(*) FROM process WHERE executable IS NOT NULL
UNION ALL SELECT 'compiles_total', 'counter', 'Compiles that made code.', COUNT(*) FROM compile WHERE outcome = 'compiled'
UNION ALL SELECT 'compile_seconds_total', 'counter', 'Time in the compiler.', COALESCE(SUM(end_ns - start_ns), 0) / 1e9 FROM compile
UNION ALL SELECT 'recompiles_total', 'counter', 'Compiles of code that had an entry.', COUNT(DISTINCT compile_id) FROM recompile_cause
UNION ALL SELECT 'graph_breaks_total', 'counter', 'Graph breaks.', COUNT(*) FROM graph_break
UNION ALL SELECT 'cache_entries', 'gauge', 'Cache entries that are alive.', COUNT(*) FROM cache_entry WHERE died_ns IS NULL
UNION ALL SELECT 'losses_total', 'counter', 'Things that were not recorded, rows of table loss.', COUNT(*) FROM loss WHERE events > 0 OR events IS NULL
UNION ALL SELECT 'lost_events_total', 'counter', 'Events that are known to be missing.', COALESCE(SUM(events), 0) FROM loss
UNION ALL SELECT 'window_seconds', 'gauge', 'How long the frames that are kept reach back (--keep).',
    ((SELECT value FROM meta WHERE key = 'span_ns') - value) / 1e9 FROM meta WHERE key = 'kept_from_ns';

-- name: stretches
-- For each stretch, from s to e: how long the thread was certainly on a processor, and how long certainly off
-- it. Any two samples around its ends give such a time: that between them, less the part of it outside the
-- stretch. The longest counts. a, b: the last sample before s, and the first after it; c, d: the same for e;
-- y, z: the samples after b and d. A sample is at most 10 ms late, and never later than the next one shows.
-- In the run queue the thread was at most as long as between a and d: the kernel adds this time when the
-- thread runs again, which it did at e. Nor was it there longer than from s to b, and then between b and d.
WITH base AS MATERIALIZED (
    SELECT t.thread_id, COALESCE((SELECT MAX(o.thread_id) FROM thread o WHERE o.process_id = t.process_id AND o.os_tid = t.os_tid
                                  AND o.thread_id <= t.thread_id AND COALESCE(o.name, '') NOT GLOB 'greenlet *'), t.thread_id) AS base_id
    FROM thread t
),
near AS MATERIALIZED (
    SELECT s.thread_id, s.start_ns, s.end_ns, b.base_id,
           (SELECT at_ns FROM thread_cpu WHERE thread_id = b.base_id AND at_ns <= s.start_ns ORDER BY at_ns DESC LIMIT 1) AS a,
           (SELECT at_ns FROM thread_cpu WHERE thread_id = b.base_id AND at_ns >= s.start_ns ORDER BY at_ns LIMIT 1) AS b,
           (SELECT at_ns FROM thread_cpu WHERE thread_id = b.base_id AND at_ns <= s.end_ns ORDER BY at_ns DESC LIMIT 1) AS c,
           (SELECT at_ns FROM thread_cpu WHERE thread_id = b.base_id AND at_ns >= s.end_ns ORDER BY at_ns LIMIT 1) AS d
    FROM stretch s JOIN base b ON b.thread_id = s.thread_id
),
known AS MATERIALIZED (
    SELECT n.*, n.end_ns - n.start_ns AS ns, a.cpu_ns AS a_cpu, b.cpu_ns AS b_cpu, c.cpu_ns AS c_cpu, d.cpu_ns AS d_cpu,
           COALESCE(d.queued_ns, c.queued_ns + n.end_ns - n.c) - MAX(COALESCE(a.queued_ns, 0), COALESCE(b.queued_ns - (n.b - n.start_ns), 0)) AS queued,
           (SELECT cpu_ns FROM thread_cpu WHERE thread_id = n.base_id AND at_ns > n.d ORDER BY at_ns LIMIT 1) AS z_cpu,
           (SELECT cpu_ns FROM thread_cpu WHERE thread_id = n.base_id AND at_ns > n.b ORDER BY at_ns LIMIT 1) AS y_cpu
    FROM near n LEFT JOIN thread_cpu a ON a.thread_id = n.base_id AND a.at_ns = n.a
    LEFT JOIN thread_cpu b ON b.thread_id = n.base_id AND b.at_ns = n.b
    LEFT JOIN thread_cpu c ON c.thread_id = n.base_id AND c.at_ns = n.c
    LEFT JOIN thread_cpu d ON d.thread_id = n.base_id AND d.at_ns = n.d
),
late AS (
    SELECT *, MIN(10000000, COALESCE(b_cpu - a_cpu, 10000000)) AS a_late, MIN(10000000, COALESCE(y_cpu - b_cpu, 10000000)) AS b_late,
           MIN(10000000, COALESCE(d_cpu - c_cpu, 10000000)) AS c_late, MIN(10000000, COALESCE(z_cpu - d_cpu, 10000000)) AS d_late
    FROM known
),
divided AS (
    SELECT *, MIN(ns, MAX(0, COALESCE(c_cpu - b_cpu - b_late, 0), COALESCE(d_cpu - b_cpu - b_late - (d - end_ns), 0),
                          COALESCE(c_cpu - a_cpu - a_late - (start_ns - a), 0), COALESCE(ns - (d - a) + d_cpu - a_cpu - a_late, 0))) AS ran_ns,
           MIN(ns, MAX(0, COALESCE(c - b - (c_cpu + c_late - b_cpu), 0), COALESCE(end_ns - b - (d_cpu + d_late - b_cpu), 0),
                       COALESCE(c - start_ns - (c_cpu + c_late - a_cpu), 0), COALESCE(ns - (d_cpu + d_late - a_cpu), 0))) AS waited_ns
    FROM late
)
UPDATE stretch SET ran_ns = l.ran_ns, waited_ns = l.waited_ns, queued_ns = MIN(MAX(COALESCE(l.queued, l.waited_ns), 0), l.waited_ns)
FROM divided l WHERE l.thread_id = stretch.thread_id AND l.start_ns = stretch.start_ns AND COALESCE(l.a, l.b, l.c, l.d) IS NOT NULL;

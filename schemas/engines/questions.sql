-- questions.sql -- five questions about a job, in SQL that DuckDB, ClickHouse and Spark all understand, of the tables that
-- `dyntrace export --format parquet` writes: those of schemas/trace.sql, with job and rank, and times of the day.
-- docs/fleet.md says how to make the tables known to each engine.

-- name: recompiles
-- Causes of recompiles over ranks: what did not fit first in an older entry, in how many recompiles, in how many ranks.
WITH k AS (SELECT DISTINCT k.job AS job, k.rank AS rank, k.compile_id AS compile_id, COALESCE(k.source, k.text) AS cause
           FROM recompile_cause k JOIN compile m ON m.job = k.job AND m.rank = k.rank AND m.compile_id = k.compile_id
           WHERE COALESCE(k.ordinal, 0) = 0 AND m.cache_entry_id IS NOT NULL)
SELECT k.cause AS cause, COUNT(*) AS times, COUNT(DISTINCT k.rank) AS ranks
FROM k GROUP BY k.cause ORDER BY times DESC, cause;

-- name: divergence
-- Functions that some ranks compiled more or less often than most: which ranks, and since when.
WITH n AS (SELECT c.qualname AS qualname, m.rank AS rank, COUNT(*) AS compiles, MAX(m.start_ns) AS last_ns
           FROM compile m JOIN code c ON c.job = m.job AND c.rank = m.rank AND c.code_id = m.code_id
           WHERE m.cache_entry_id IS NOT NULL GROUP BY c.qualname, m.rank),
t AS (SELECT qualname, compiles, COUNT(*) AS ranks FROM n GROUP BY qualname, compiles),
most AS (SELECT qualname, MAX(ranks) AS ranks FROM t GROUP BY qualname),
alike AS (SELECT t.qualname AS qualname, MIN(t.compiles) AS compiles FROM t JOIN most ON most.qualname = t.qualname AND most.ranks = t.ranks GROUP BY t.qualname)
SELECT n.qualname AS qualname, n.rank AS rank, n.compiles AS compiles, alike.compiles AS others, n.last_ns AS last_ns
FROM n JOIN alike ON alike.qualname = n.qualname WHERE n.compiles <> alike.compiles ORDER BY last_ns, qualname, rank;

-- name: slowest
-- The slowest compiles.
SELECT c.qualname AS qualname, m.rank AS rank, m.label AS label, m.end_ns - m.start_ns AS compile_ns
FROM compile m JOIN code c ON c.job = m.job AND c.rank = m.rank AND c.code_id = m.code_id
WHERE m.end_ns IS NOT NULL ORDER BY compile_ns DESC, qualname, rank, label LIMIT 20;

-- name: guards
-- What guards cost, by function: checks and their time over all ranks.
SELECT c.qualname AS qualname, COUNT(*) AS checks, SUM(k.duration_ns) AS guard_ns
FROM guard_check k JOIN lookup l ON l.job = k.job AND l.rank = k.rank AND l.lookup_id = k.lookup_id
JOIN code c ON c.job = l.job AND c.rank = l.rank AND c.code_id = l.code_id
GROUP BY c.qualname ORDER BY guard_ns DESC, qualname LIMIT 20;

-- name: eager
-- Of the lookups that wanted compiled code, the share that ran as Python, by host (outcomes: schemas/views.sql).
SELECT p.host AS host, COUNT(*) AS calls, SUM(CASE WHEN l.outcome IN ($RUN_ONLY, $LIMIT, $DECLINED) THEN 1 ELSE 0 END) AS ran_as_python
FROM lookup l JOIN thread t ON t.job = l.job AND t.rank = l.rank AND t.thread_id = l.thread_id
JOIN process p ON p.job = t.job AND p.rank = t.rank AND p.process_id = t.process_id
WHERE l.outcome IN ($HIT, $COMPILED, $RUN_ONLY, $LIMIT, $DECLINED, $GUARD_ERROR, $CALLBACK_ERROR) GROUP BY p.host ORDER BY host;

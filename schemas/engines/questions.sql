-- questions.sql -- five questions about a job, in SQL that DuckDB, ClickHouse and Spark all understand, of the tables that
-- `dyntrace export --format parquet` writes: those of schemas/trace.sql, with job and rank, and times of the day; `compile` has
-- is_recompile and cause, and `shares` is the view of this name (schemas/views.sql), so that the answers are dyntrace's own.
-- docs/fleet.md says how to make the tables known to each engine.

-- name: recompiles
-- Causes of recompiles over ranks: the guard that decided, in how many recompiles, in how many ranks.
SELECT m.cause AS cause, COUNT(*) AS times, COUNT(DISTINCT m.rank) AS ranks
FROM compile m WHERE m.is_recompile = 1 AND m.cause IS NOT NULL GROUP BY m.cause ORDER BY times DESC, cause;

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
FROM guard_check k JOIN cache_entry e ON e.job = k.job AND e.rank = k.rank AND e.cache_entry_id = k.cache_entry_id
JOIN code c ON c.job = e.job AND c.rank = e.rank AND c.code_id = e.code_id
WHERE k.duration_ns IS NOT NULL GROUP BY c.filename, c.qualname, c.first_line ORDER BY guard_ns DESC, qualname LIMIT 20;

-- name: eager
-- Of the calls that wanted compiled code, how many ran as Python, by host (view `shares` of schemas/views.sql).
SELECT p.host AS host, SUM(s.calls) AS calls, SUM(s.ran_as_python) AS ran_as_python
FROM shares s JOIN process p ON p.job = s.job AND p.rank = s.rank AND p.process_id = s.process_id
GROUP BY p.host ORDER BY host;

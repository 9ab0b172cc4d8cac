-- questions.sql -- five questions about a job, in SQL that DuckDB, ClickHouse and Spark all
-- understand. They read the tables that `dyntrace export --format parquet` writes: those of
-- schemas/trace.sql, with the columns job and rank and with times of the day. `compile` also has
-- the columns is_recompile and cause, and `shares` is the view of this name (schemas/views.sql), so
-- the answers are the same as dyntrace's own. docs/fleet.md says how to make the tables known to
-- each engine.

-- name: recompiles
-- Causes of recompiles over all ranks: the guard that decided, the number of recompiles, and the
-- number of ranks.
SELECT m.cause AS cause, COUNT(*) AS times, COUNT(DISTINCT m.rank) AS ranks
FROM compile m WHERE m.is_recompile = 1 AND m.cause IS NOT NULL GROUP BY m.cause ORDER BY times DESC, cause;

-- name: divergence
-- Functions that some ranks compiled more or less often than most ranks: which ranks, and since
-- when.
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
-- What guards cost for each function: the number and time of checks over all ranks.
SELECT c.qualname AS qualname, COUNT(*) AS checks, SUM(k.duration_ns) AS guard_ns
FROM guard_check k JOIN cache_entry e ON e.job = k.job AND e.rank = k.rank AND e.cache_entry_id = k.cache_entry_id
JOIN code c ON c.job = e.job AND c.rank = e.rank AND c.code_id = e.code_id
WHERE k.duration_ns IS NOT NULL GROUP BY c.filename, c.qualname, c.first_line ORDER BY guard_ns DESC, qualname LIMIT 20;

-- name: eager
-- For each host: how many of the calls that wanted compiled code ran as Python (view `shares` of
-- schemas/views.sql).
SELECT p.host AS host, SUM(s.calls) AS calls, SUM(s.ran_as_python) AS ran_as_python
FROM shares s JOIN process p ON p.job = s.job AND p.rank = s.rank AND p.process_id = s.process_id
GROUP BY p.host ORDER BY host;

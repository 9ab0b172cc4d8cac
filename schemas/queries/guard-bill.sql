-- What guards cost, the most costly entry first: checks, failures, time, share of the function's time (reads every check)
--
-- Why: Guards run at every call, so costly ones can cost more than compiled code saves.
-- Columns: qualname, filename, first_line: the function; entry, backend, guard_count: the cache
--   entry; checks: how often its guards were run; failures: how many of these checks failed;
--   guards_per_check: how many guards a check ran on average; ns_per_check: time of a check on
--   average; ms: time of all checks; percent_of_function: this time as a part of the function's
--   total time.
--
-- The view guard_bill divides this time among kinds and sources. That is an estimate, and reads
-- every guard of every check.
WITH bill AS MATERIALIZED (
    SELECT cache_entry_id, COUNT(*) AS checks, SUM(result <> $CHECK_PASS) AS failures, SUM(guards_run) AS guards_run,
           SUM(duration_ns) AS duration_ns
    FROM guard_check
    GROUP BY cache_entry_id
)
SELECT c.qualname, c.filename, c.first_line, e.label AS entry, e.backend, e.guard_count, b.checks, b.failures,
       round(1.0 * b.guards_run / b.checks, 1) AS guards_per_check, b.duration_ns / b.checks AS ns_per_check,
       round(b.duration_ns / 1e6, 3) AS ms, round(100.0 * b.duration_ns / NULLIF(n.total_ns, 0), 1) AS percent_of_function
FROM bill b
LEFT JOIN cache_entry e ON e.cache_entry_id = b.cache_entry_id
LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN code_total n ON n.code_id = e.code_id
ORDER BY b.duration_ns DESC
LIMIT 50;

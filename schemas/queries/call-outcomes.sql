-- How each function's calls were decided: hits, compiles, and what ran as Python (reads every lookup)
--
-- Why: Shows first of all whether compiled code is used, and where it is not.
-- Columns: qualname, filename, first_line: the function; lookups: calls for which the compiler was
--   asked; hit: calls that ran an entry; compiled: calls that made an entry; run_only: calls for
--   which compiling was not allowed; skip: calls of a function that is marked never to be compiled;
--   at_limit: calls of a function that has as many entries as it may have; declined: calls for
--   which the compiler gave no code; disabled: calls while the compiler was off; error: calls in
--   which a guard or the compiler raised; lookup_ms: time until it was known which code runs.
WITH decided AS MATERIALIZED (
    SELECT code_id, COUNT(*) AS lookups, SUM(outcome = $HIT) AS hit, SUM(outcome = $COMPILED) AS compiled, SUM(outcome = $RUN_ONLY) AS run_only,
           SUM(outcome = $SKIP) AS skip, SUM(outcome = $LIMIT) AS at_limit, SUM(outcome = $DECLINED) AS declined, SUM(outcome = $DISABLED) AS disabled,
           SUM(outcome IN ($GUARD_ERROR, $CALLBACK_ERROR)) AS error, SUM(duration_ns) AS lookup_ns
    FROM lookup
    GROUP BY code_id
)
SELECT c.qualname, c.filename, c.first_line, SUM(d.lookups) AS lookups, SUM(d.hit) AS hit, SUM(d.compiled) AS compiled,
       SUM(d.run_only) AS run_only, SUM(d.skip) AS skip, SUM(d.at_limit) AS at_limit, SUM(d.declined) AS declined,
       SUM(d.disabled) AS disabled, SUM(d.error) AS error, round(SUM(d.lookup_ns) / 1e6, 3) AS lookup_ms
FROM decided d
LEFT JOIN functions c ON c.code_id = d.code_id
GROUP BY c.function_id
ORDER BY SUM(d.lookups) DESC, c.filename, c.qualname, c.first_line
LIMIT 100;

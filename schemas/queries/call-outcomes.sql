-- How each function's calls were decided: hits, compiles, and what ran as Python (reads every lookup)
--
-- Why: The first look: is compiled code used at all, and where not.
-- Columns: qualname, filename, first_line: the function; lookups: calls that the compiler was asked about; hit: ran an
--   entry; compiled: made one; run_only: compiling was not allowed; skip: marked never to be compiled; at_limit: it
--   has as many entries as it may; declined: the compiler gave no code; disabled: it was off; error: a guard or the
--   compiler raised; lookup_ms: until it was known what runs.
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

-- trials.sql -- what `dyntrace try` stored in a trace: read by src/trace/trials.c.

-- name: run
-- All trials, oldest first, by the figures of the whole run.
SELECT trial_id, batch, setting, error, values_same, exit_code, exit_signal, output_same, compiles, recompiles, breaks, eager, hits,
       compile_ns, step_ns, baseline, works, gain
FROM trials ORDER BY trial_id LIMIT 10000;

-- name: function
-- Those of batches in which any trial compiled or called the function with the code ids ?1, a JSON array, by its own figures.
SELECT t.trial_id, t.batch, t.setting, t.error, t.values_same, t.exit_code, t.exit_signal, t.output_same, t.compiles, t.recompiles,
       t.breaks, t.eager, t.hits, t.compile_ns, t.step_ns, t.baseline, t.works, t.gain
FROM trial_functions t
WHERE t.function_id IN (SELECT function_id FROM functions WHERE code_id IN (SELECT value FROM json_each(?1)))
ORDER BY t.trial_id LIMIT 10000;

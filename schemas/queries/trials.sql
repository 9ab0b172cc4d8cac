-- What dyntrace try measured of each function: settings, gains and faults, beside the unchanged run
--
-- Why: Only a run with a remedy shows what the remedy is worth.
-- Columns: trial_id: the trial, in the order of the runs; function: the function; setting: the
--   setting of run --set; compiles: how many compiles made code; recompiles: how many of these were
--   recompiles; breaks: number of graph breaks; eager: calls that ran as Python; hits: calls that
--   ran an entry; compile_ms: time in the compiler; step_us: median time of a call after the last
--   compile; note: gain, no gain, or why the setting does not work.
SELECT trial_id, qualname AS function, iif(baseline, '(unchanged)', setting) AS setting, compiles, recompiles, breaks, eager, hits,
       compile_ns / 1e6 AS compile_ms, step_ns / 1e3 AS step_us, note
FROM trial_functions
ORDER BY batch, function_id, trial_id
LIMIT 1000;

-- What dyntrace try measured of each function: settings, gains and faults, beside the unchanged run
--
-- Why: A remedy is worth what a run under it shows.
-- Columns: trial_id: in order; function: the function; setting: of run --set; compiles: that made code; recompiles: of these;
--   breaks: graph breaks; eager: calls that ran as Python; hits: calls that ran an entry; compile_ms: in the compiler;
--   step_us: median time of a call after the last compile; note: gain, no gain, or why it does not work.
SELECT trial_id, qualname AS function, iif(baseline, '(unchanged)', setting) AS setting, compiles, recompiles, breaks, eager, hits,
       compile_ns / 1e6 AS compile_ms, step_ns / 1e3 AS step_us, note
FROM trial_functions
ORDER BY batch, function_id, trial_id
LIMIT 1000;

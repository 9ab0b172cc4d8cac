-- what dyntrace try measured of each function: settings, gains and faults, beside the unchanged run
SELECT t.trial_id, t.qualname AS function, iif(t.baseline, '(unchanged)', t.setting) AS setting, t.compiles, t.recompiles, t.breaks,
       t.eager, t.hits, t.compile_ns / 1e6 AS compile_ms, t.step_ns / 1e3 AS step_us, t.note
FROM trial_functions t
ORDER BY t.batch, t.function_id, t.trial_id;

-- What dyntrace try measured: runs of the recorded command, each under a setting.

--| trial  integer
--| setting  text 20
--| note  text 12
--| compiles  integer
--| recompiles  integer
--| breaks  integer
--| eager  integer
--| hits  count
--| compiling  duration
--| step  duration
--| function  text 12  => function {code_id}
--| ran  duration
--| exit  text 8
--row => function {code_id}
--id trial
--title setting
--none no trials: dyntrace try runs the recorded command under settings
SELECT trial_id AS trial, iif(baseline, '(unchanged)', setting) AS setting, iif(baseline, NULL, note) AS note, compiles, recompiles, breaks, eager, hits,
       compile_ns AS compiling, step_ns AS step, qualname AS function, duration_ns AS ran, COALESCE('signal ' || exit_signal, exit_code) AS exit,
       function_id AS code_id
FROM trials ORDER BY batch DESC, trial_id;

-- doubts.sql -- what a reader has to know beside any answer from a trace (src/trace/doubts.c).


-- name: has_left_out
-- Traces that were recorded before 2026-12 do not say.
SELECT EXISTS (SELECT 1 FROM pragma_table_info('process') WHERE name = 'left_out_frames');

-- name: left_out
-- Of all processes. No row: nothing was left out, or it is not known.
SELECT COALESCE(SUM(left_out_functions), 0), COALESCE(SUM(left_out_frames), 0), COALESCE(SUM(left_out_decisions), 0)
FROM process
HAVING SUM(left_out_frames) > 0 OR SUM(left_out_decisions) > 0;

-- name: user
SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'user');

-- name: redacted
-- Were values of names that look secret left out of what answers compare? Command lines are not compared.
SELECT EXISTS (SELECT 1 FROM signature WHERE instr(text, '<redacted>')) OR EXISTS (SELECT 1 FROM guard WHERE instr(expression, '<redacted>'));

-- name: settings
-- What `run --set` was given, in words with what of it did nothing, and as a JSON array; no row without.
SELECT COALESCE((SELECT group_concat('--set ' || substr(value, 1, 200), ' ')
                 FROM json_each(iif(json_valid(s.value), s.value, '[]'))), 'settings (--set) that differ from trace to trace')
       || COALESCE('; without effect: ' || replace(rtrim(substr(u.value, 1, 1000), char(10)), char(10), '; '), ''),
       iif(json_valid(s.value), s.value, json_array())
FROM meta s LEFT JOIN meta u ON u.key = 'settings_unused' WHERE s.key = 'settings';

-- name: trials
-- How many trials `dyntrace try` stored, and the setting of the last that was a gain; no row without.
SELECT SUM(NOT baseline), SUM(gain), (SELECT setting FROM trials WHERE gain ORDER BY trial_id DESC LIMIT 1) FROM trials HAVING COUNT(*) > 0;

-- doubts.sql -- what a reader has to know before trusting any answer from a trace
-- (src/trace/doubts.c).

-- name: lost
-- "7 events were lost", and their number or NULL if it is not known. Returns no row if none were lost.
SELECT CASE WHEN known = 0 THEN 'events were lost, how many is not known'
            ELSE iif(unknown, 'at least ', '') || known || iif(known = 1, ' event was lost', ' events were lost') END,
       iif(unknown, NULL, known)
FROM (SELECT COALESCE(SUM(events), 0) AS known, COUNT(*) > COUNT(events) AS unknown FROM losses WHERE NOT is_stall)
WHERE known > 0 OR unknown;

-- name: thinned
-- Was a function called so often that --thin left out calls?
SELECT MAX(calls) > 1000000 FROM code_total;

-- name: has_left_out
-- Does the trace tell how many frames were left out? Traces from before 2026-12 do not.
SELECT EXISTS (SELECT 1 FROM pragma_table_info('process') WHERE name = 'left_out_frames');

-- name: left_out
-- The sums over all processes. Returns no row if nothing was left out, or if this is not known.
SELECT COALESCE(SUM(left_out_functions), 0), COALESCE(SUM(left_out_frames), 0), COALESCE(SUM(left_out_decisions), 0)
FROM process
HAVING SUM(left_out_frames) > 0 OR SUM(left_out_decisions) > 0;

-- name: user
SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'user');

-- name: redacted
-- Were values of names that look secret left out of what answers compare? Command lines are not
-- compared, so they do not matter.
SELECT EXISTS (SELECT 1 FROM signature WHERE instr(text, '<redacted>')) OR EXISTS (SELECT 1 FROM guard WHERE instr(expression, '<redacted>'));

-- name: settings
-- The settings of `run --set`: as a text that also says which of them had no effect, and as a JSON
-- array. Returns no row if there were none.
SELECT COALESCE((SELECT group_concat('--set ' || substr(value, 1, 200), ' ')
                 FROM json_each(iif(json_valid(s.value), s.value, '[]'))), 'settings (--set) that differ from trace to trace')
       || COALESCE('; without effect: ' || replace(rtrim(substr(u.value, 1, 1000), char(10)), char(10), '; '), ''),
       iif(json_valid(s.value), s.value, json_array())
FROM meta s LEFT JOIN meta u ON u.key = 'settings_unused' WHERE s.key = 'settings';

-- name: trials
-- The number of trials that `dyntrace try` stored, and the setting of the last one that was a gain.
-- Returns no row if there are no trials.
SELECT SUM(NOT baseline), SUM(gain), (SELECT setting FROM trials WHERE gain ORDER BY trial_id DESC LIMIT 1) FROM trials HAVING COUNT(*) > 0;

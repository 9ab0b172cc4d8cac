-- doubts.sql -- what is not in a trace because nobody asked for it (src/trace/doubts.c).

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

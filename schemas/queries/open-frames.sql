-- Frames that had no end when the recording ended, outermost first (reads every frame)
--
-- Why: What a program was doing when it was killed, crashed or hung.
-- Columns: pid, thread_id, thread: where; frame_id: the frame; qualname, filename, first_line: its function; start_s:
--   entered.
SELECT pid, thread_id, thread, frame_id, qualname, filename, first_line, round(start_ns / 1e9, 6) AS start_s
FROM frames
WHERE end_ns IS NULL
ORDER BY thread_id, frame_id;

-- Frames that had no end when the recording ended, outermost first (reads every frame)
--
-- Why: Shows what a program was doing when it was killed, crashed or hung.
-- Columns: pid, thread_id, thread: the thread; frame_id: the frame; qualname, filename, first_line:
--   its function; start_s: when it began.
SELECT pid, thread_id, thread, frame_id, qualname, filename, first_line, round(start_ns / 1e9, 6) AS start_s
FROM frames
WHERE end_ns IS NULL
ORDER BY thread_id, frame_id;

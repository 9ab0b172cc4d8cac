-- Frames that had no end when the recording ended, outermost first (reads every frame)
SELECT pid, thread_id, thread, frame_id, qualname, filename, first_line, round(start_ns / 1e9, 6) AS start_s
FROM frames
WHERE end_ns IS NULL
ORDER BY thread_id, frame_id;

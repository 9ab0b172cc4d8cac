-- The longest single frames (reads every frame)
--
-- Why: Shows the outliers that averages hide. Frames that only wait for the end of the program are
--   left out: functions of the standard library that wait (the view waits), and frames that spend
--   less than a tenth of their time in themselves and last nearly as long as their thread, or wait
--   for others until their thread ends (<module>, main, or the run of a worker).
-- Columns: frame_id: the frame, for the view frames; ms: how long it took; qualname, filename,
--   first_line: its function; pid, thread: its thread; exit: how it ended, or NULL if it was still
--   open when its process ended.
WITH lives AS MATERIALIZED (
    SELECT f.thread_id, MIN(f.start_ns) AS from_ns, MAX(COALESCE(f.end_ns, e.end_ns)) AS to_ns
    FROM frame f LEFT JOIN thread_ends e USING (thread_id) GROUP BY f.thread_id
),
waiting AS MATERIALIZED (SELECT code_id FROM waits),
longest AS MATERIALIZED (
    SELECT frame_id, thread_id, start_ns, duration_ns AS ns FROM frames
    WHERE code_id NOT IN (SELECT code_id FROM waiting) ORDER BY duration_ns DESC LIMIT 400
),
below AS MATERIALIZED (
    SELECT f.parent_id, SUM(COALESCE(f.end_ns, e.end_ns) - f.start_ns) AS ns,
           SUM(iif(f.code_id IN (SELECT code_id FROM waiting), COALESCE(f.end_ns, e.end_ns) - f.start_ns, 0)) AS waited_ns
    FROM frame f LEFT JOIN thread_ends e USING (thread_id)
    WHERE f.parent_id IN (SELECT frame_id FROM longest) GROUP BY f.parent_id
)
SELECT f.frame_id, round(f.duration_ns / 1e6, 3) AS ms, f.qualname, f.filename, f.first_line, f.pid, f.thread, f.exit
FROM longest l CROSS JOIN frames f ON f.frame_id = l.frame_id
LEFT JOIN lives t ON t.thread_id = l.thread_id
LEFT JOIN below b ON b.parent_id = l.frame_id
WHERE l.ns - COALESCE(b.ns, 0) >= l.ns * 0.1
   OR NOT (l.ns >= (t.to_ns - t.from_ns) * 0.9
           OR b.waited_ns >= l.ns * 0.8 AND l.start_ns + l.ns >= t.to_ns - (t.to_ns - t.from_ns) * 0.1)
ORDER BY l.ns DESC
LIMIT 50;

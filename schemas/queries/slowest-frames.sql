-- The longest single frames (reads every frame)
--
-- Why: The outliers that averages hide.
-- Columns: frame_id: for the view frames; ms: how long; qualname, filename, first_line: the function; pid, thread:
--   where; exit: how it ended, NULL for one that was still open when its process ended.
WITH longest AS MATERIALIZED (
    SELECT frame_id FROM frames ORDER BY duration_ns DESC LIMIT 50
)
SELECT frame_id, round(duration_ns / 1e6, 3) AS ms, qualname, filename, first_line, pid, thread, exit
FROM longest CROSS JOIN frames USING(frame_id)
ORDER BY duration_ns DESC;

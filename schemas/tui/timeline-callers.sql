-- Frame ?1 and its callers, the outermost first. ?4 is the end of a frame without an end.
WITH RECURSIVE up(frame_id, parent_id, code_id, start_ns, end_ns, n) AS (
  SELECT frame_id, parent_id, code_id, start_ns, end_ns, 0 FROM frame WHERE frame_id = ?1
  UNION ALL
  SELECT f.frame_id, f.parent_id, f.code_id, f.start_ns, f.end_ns, n + 1 FROM up CROSS JOIN frame f ON f.frame_id = up.parent_id
  WHERE n < 3000 AND f.frame_id < up.frame_id)
SELECT frame_id, parent_id, code_id, start_ns, COALESCE(end_ns, ?4) FROM up ORDER BY n DESC;

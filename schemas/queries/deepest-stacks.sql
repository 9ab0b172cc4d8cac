-- The deepest stack of each thread: its innermost function and its depth (reads every frame)
--
-- Why: Finds runaway recursion, and where a stack overflowed.
-- Columns: depth: number of frames in the stack; thread_id, pid, thread: the thread; qualname,
--   filename, first_line: the innermost function; frame_id: the innermost frame, for the view
--   frames.
--
-- The depth of a frame is one more than that of its caller, so depths are computed level by level.
-- Only frames that called another frame take part; the deepest frame of a thread is one that the
-- deepest of these callers called.
WITH RECURSIVE
called_by(frame_id) AS MATERIALIZED (SELECT DISTINCT parent_id FROM frame),
caller(frame_id, thread_id, parent_id) AS MATERIALIZED (
    SELECT f.frame_id, f.thread_id, (SELECT p.frame_id FROM frame p WHERE p.frame_id = f.parent_id AND p.frame_id < f.frame_id)
    FROM called_by b CROSS JOIN frame f ON f.frame_id = b.frame_id
),
stack(frame_id, thread_id, depth) AS (
    SELECT frame_id, thread_id, 1 FROM caller WHERE parent_id IS NULL
    UNION ALL
    SELECT c.frame_id, c.thread_id, depth + 1 FROM stack s CROSS JOIN caller c ON c.parent_id = s.frame_id
),
deepest(thread_id, caller_id, depth) AS MATERIALIZED (
    SELECT thread_id, frame_id, MAX(depth) FROM stack GROUP BY thread_id
),
innermost(frame_id, depth) AS (
    SELECT MIN(f.frame_id), d.depth + 1 FROM frame f JOIN deepest d ON d.caller_id = f.parent_id GROUP BY d.thread_id
    UNION ALL
    SELECT MIN(frame_id), 1 FROM frame WHERE thread_id NOT IN (SELECT thread_id FROM deepest) GROUP BY thread_id
)
SELECT i.depth, f.thread_id, f.pid, f.thread, f.qualname, f.filename, f.first_line, f.frame_id
FROM innermost i CROSS JOIN frames f ON f.frame_id = i.frame_id
ORDER BY 1 DESC
LIMIT 50;

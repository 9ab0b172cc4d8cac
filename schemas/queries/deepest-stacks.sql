-- The deepest stack of each thread: its innermost function and its depth (reads and sorts every frame)
--
-- Why: Finds runaway recursion, and what a stack overflow ran into.
-- Columns: depth: frames on top of each other; thread_id, pid, thread: where; qualname, filename, first_line: the
--   innermost function; frame_id: its frame, for the view frames.
--
-- A running count of entries less exits finds the frame; following its parents then gives the exact depth.
WITH RECURSIVE
event(thread_id, frame_id, at, step) AS (
    SELECT thread_id, frame_id, start_ns, 1 FROM frame
    UNION ALL
    SELECT thread_id, frame_id, end_ns, -1 FROM frame WHERE end_ns IS NOT NULL
),
running(thread_id, frame_id, depth) AS (
    SELECT thread_id, frame_id,
           SUM(step) OVER (PARTITION BY thread_id ORDER BY at, step DESC, frame_id ROWS UNBOUNDED PRECEDING)
    FROM event
),
deepest(thread_id, frame_id, depth) AS MATERIALIZED (
    SELECT thread_id, frame_id, MAX(depth) FROM running GROUP BY thread_id
),
stack(innermost_id, frame_id, depth) AS (
    SELECT frame_id, frame_id, 1 FROM deepest
    UNION ALL
    SELECT innermost_id, f.parent_id, depth + 1
    FROM stack CROSS JOIN frame f ON f.frame_id = stack.frame_id
    WHERE f.parent_id IS NOT NULL AND f.parent_id < f.frame_id
)
SELECT MAX(s.depth) AS depth, d.thread_id, f.pid, f.thread, f.qualname, f.filename, f.first_line, f.frame_id
FROM deepest d CROSS JOIN stack s ON s.innermost_id = d.frame_id CROSS JOIN frames f ON f.frame_id = d.frame_id
GROUP BY d.frame_id
ORDER BY 1 DESC
LIMIT 50;

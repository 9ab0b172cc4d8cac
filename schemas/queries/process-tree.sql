-- Processes as a tree, with how each ended
--
-- Why: Who started whom in a job with workers, and who did not end well.
-- Columns: pid: set in under its parent; ended: exit status or signal; seconds: it ran; threads: that ran Python;
--   python_version: of its interpreter; argv: its command line.
WITH RECURSIVE tree(process_id, depth, path) AS (
    SELECT process_id, 0, printf('%020d', process_id) FROM process
    WHERE parent_process_id IS NULL OR parent_process_id NOT IN (SELECT process_id FROM process)
    UNION ALL
    SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)
    FROM tree JOIN process p ON p.parent_process_id = tree.process_id
    WHERE depth < 100
)
SELECT printf('%*s%d', depth * 2, '', p.pid) AS pid,
       CASE WHEN p.exit_signal IS NOT NULL THEN 'signal ' || p.exit_signal
            WHEN p.exit_code IS NOT NULL THEN 'exit ' || p.exit_code
            WHEN p.end_ns IS NOT NULL THEN 'ended'
            ELSE 'still running' END AS ended,
       round((p.end_ns - p.start_ns) / 1e9, 3) AS seconds,
       (SELECT COUNT(*) FROM thread t WHERE t.process_id = p.process_id) AS threads,
       p.python_version, p.argv
FROM tree JOIN process p USING(process_id)
ORDER BY path;

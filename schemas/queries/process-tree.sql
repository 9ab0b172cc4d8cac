-- Processes as a tree, with how each ended
--
-- Why: Who started whom in a job with workers, and who did not end well.
-- Columns: pid: set in under its parent; ended: exit status or signal; seconds: it ran; threads: that ran Python;
--   python_version: of its interpreter; argv: its command line.
SELECT printf('%*s%d', depth * 2, '', p.pid) AS pid,
       COALESCE(ended, 'still running') AS ended,
       round((p.end_ns - p.start_ns) / 1e9, 3) AS seconds,
       (SELECT COUNT(*) FROM thread t WHERE t.process_id = p.process_id) AS threads,
       p.python_version, p.argv
FROM process_tree JOIN process p USING(process_id)
ORDER BY path;

-- Processes as a tree, with how each ended
--
-- Why: Shows which process of a job started which, and which of them failed.
-- Columns: pid: the process, indented below its parent; ended: its exit status or signal; seconds:
--   how long it ran; threads: how many threads ran Python; python_version: the version of its
--   interpreter; argv: its command line.
SELECT printf('%*s%d', MIN(depth, 60) * 2, '', p.pid) AS pid,
       COALESCE(ended, 'still running') AS ended,
       round((p.end_ns - p.start_ns) / 1e9, 3) AS seconds,
       (SELECT COUNT(*) FROM thread t WHERE t.process_id = p.process_id) AS threads,
       p.python_version, p.argv
FROM process_tree JOIN process p USING(process_id)
ORDER BY path;

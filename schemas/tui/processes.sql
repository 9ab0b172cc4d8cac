-- The processes that were followed, as a tree: children under their parents.

--| pid  text 8
--| rank  integer
--| ended  ended 19
--| ran  duration
--| threads  count  => timeline
--| started  time
--| python  text 7
--| torch  text 6
--| mode  text 5
--| command  text 20
--row => process {process_id} AT {started}
--id process_id
--none no process was recorded
SELECT printf('%*s%s', MIN(t.depth, 60) * 2, '', COALESCE(p.pid, '?')) AS pid, p.rank AS rank,
       COALESCE(t.ended, 'end not seen') AS ended,
       p.end_ns - p.start_ns AS ran, (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) AS threads,
       p.start_ns AS started, p.python_version AS python, p.torch_version AS torch, p.mode AS mode,
       t.command AS command, t.process_id AS process_id
FROM process_tree t JOIN process p ON p.process_id = t.process_id ORDER BY t.path;

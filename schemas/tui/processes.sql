-- The processes that were followed, as a tree: children under their parents.

--| pid  text 8
--| rank  integer
--| ended  text 8
--| ran  duration
--| threads  count  => timeline
--| started  time
--| python  text 7
--| torch  text 6
--| mode  text 5
--| command  text 20
--row => ledger WHERE process_id = {process_id}
--id process_id
--title pid
--none no process was recorded
WITH RECURSIVE tree(process_id, depth, path) AS (
  SELECT process_id, 0, printf('%020d', process_id) FROM process
  WHERE parent_process_id IS NULL OR parent_process_id = process_id OR parent_process_id NOT IN (SELECT process_id FROM process)
  UNION ALL
  SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)
  FROM tree CROSS JOIN process p ON p.parent_process_id = tree.process_id
  WHERE depth < 60 AND p.process_id <> tree.process_id)
SELECT substr('                                                            ', 1, t.depth * 2) || p.pid AS pid, p.rank AS rank,
       CASE WHEN p.exit_signal IS NOT NULL THEN 'signal ' || p.exit_signal WHEN p.exit_code IS NOT NULL THEN 'exit ' || p.exit_code
            WHEN p.end_ns IS NOT NULL THEN 'ended' ELSE 'no end seen' END AS ended,
       p.end_ns - p.start_ns AS ran, (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) AS threads,
       p.start_ns AS started, p.python_version AS python, p.torch_version AS torch, p.mode AS mode,
       CASE WHEN json_valid(p.argv)
            THEN (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(p.argv) THEN p.argv ELSE '[]' END))
            ELSE p.argv END AS command,
       t.process_id AS process_id
FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path;

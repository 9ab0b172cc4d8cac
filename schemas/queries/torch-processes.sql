-- Processes that compiled, with torch or a compiler of their own: rank, version, how it was watched and why, compiles; ranks should compile alike
--
-- Why: A rank that compiles more than the others makes all of them wait.
-- Columns: pid, rank, local_rank: the process; python_version, torch_version: the versions that it
--   ran; torch_mode, torch_note: how torch was watched, and why not in a better way; compiles,
--   recompiles, graph_breaks, compile_ms: its compiles, and their time.
WITH compiled AS MATERIALIZED (
    SELECT m.process_id, COUNT(m.cache_entry_id) AS compiles, SUM(m.is_recompile) AS recompiles, SUM(m.compile_ns) AS compile_ns,
           SUM((SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id)) AS graph_breaks
    FROM compiles m
    GROUP BY m.process_id
)
SELECT p.pid, p.rank, p.local_rank, p.python_version, p.torch_version, p.torch_mode, p.torch_note,
       COALESCE(m.compiles, 0) AS compiles, COALESCE(m.recompiles, 0) AS recompiles, COALESCE(m.graph_breaks, 0) AS graph_breaks,
       round(m.compile_ns / 1e6, 3) AS compile_ms
FROM process p
LEFT JOIN compiled m ON m.process_id = p.process_id
WHERE p.torch_version IS NOT NULL OR m.compiles > 0
ORDER BY p.rank IS NULL, p.rank, p.process_id;

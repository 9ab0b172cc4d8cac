-- Threads: when each first and last ran Python, and for how long (reads every frame)
--
-- Why: Shows which threads worked, and which only waited.
-- Columns: thread_id, pid, os_tid, name: the thread; stacks: number of its outermost frames;
--   busy_s: time in these frames; first_s, last_s: when it first and last ran Python.
WITH bottom AS (
    SELECT thread_id, COUNT(*) AS stacks, SUM(duration_ns) AS busy_ns, MIN(start_ns) AS first_ns,
           MAX(start_ns + duration_ns) AS last_ns
    FROM frames WHERE parent_id IS NULL
    GROUP BY thread_id
)
SELECT t.thread_id, p.pid, t.os_tid, t.name, b.stacks, round(b.busy_ns / 1e9, 6) AS busy_s,
       round(b.first_ns / 1e9, 6) AS first_s, round(b.last_ns / 1e9, 6) AS last_s
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
LEFT JOIN bottom b ON b.thread_id = t.thread_id
ORDER BY t.thread_id;

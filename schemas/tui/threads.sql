-- Threads: id, and words that describe the thread. At most ?1 threads, grouped by process; or all
-- threads, by id.
SELECT t.thread_id, substr(COALESCE(NULLIF(t.name, ''), 'thread ' || COALESCE(t.os_tid, '?')), 1, 80) || ' [' || COALESCE(p.pid, '?') || ']'
       || COALESCE(' rank ' || p.rank, '')
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id ORDER BY iif(?1, t.process_id, 0), t.thread_id LIMIT COALESCE(?1, 100000);

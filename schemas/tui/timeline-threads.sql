-- The lanes: id, words; at most ?1.
SELECT t.thread_id, substr(COALESCE(NULLIF(t.name, ''), 'thread ' || COALESCE(t.os_tid, '?')), 1, 80) || '  pid ' || COALESCE(p.pid, 0)
       || COALESCE(', rank ' || p.rank, '')
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.process_id, t.thread_id LIMIT ?1;

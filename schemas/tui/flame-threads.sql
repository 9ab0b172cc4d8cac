-- Names of the roots of the call tree: id, name.
SELECT t.thread_id, COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?') || ' [' || COALESCE(p.pid, '?') || ']'
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.thread_id LIMIT 100000

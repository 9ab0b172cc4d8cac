-- stacks.sql -- what a walk over frames asks (src/trace/stacks.c).

-- name: end
-- The end of a recording, as far as that is known; one that does not say how long it is lasts as long as its frames.
SELECT MAX(COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'span_ns' AND value >= 0), (SELECT MAX(end_ns) FROM frame), 0),
           COALESCE((SELECT MAX(end_ns) FROM process), 0),
           COALESCE((SELECT start_ns FROM frame ORDER BY frame_id DESC LIMIT 1), 0));

-- name: threads
-- When each thread's process ended.
SELECT t.thread_id, COALESCE(p.end_ns, 9223372036854775807)
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
ORDER BY t.thread_id;

-- name: frames
SELECT each(frame_id, thread_id, parent_id, code_id, start_ns, end_ns) FROM frame NOT INDEXED;

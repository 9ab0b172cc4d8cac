-- stacks.sql -- what a walk over frames asks (src/trace/stacks.c).

-- name: end
SELECT end_ns FROM recording_end;

-- name: threads
-- When each thread's open frames ended.
SELECT thread_id, end_ns FROM thread_ends ORDER BY thread_id;

-- name: frames
SELECT each(frame_id, thread_id, parent_id, code_id, start_ns, end_ns) FROM frame NOT INDEXED;

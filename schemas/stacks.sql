-- stacks.sql -- what a walk over frames asks (src/trace/stacks.c).

-- name: end
SELECT end_ns FROM recording_end;

-- name: threads
-- When each thread's open frames ended.
SELECT thread_id, end_ns FROM thread_ends ORDER BY thread_id;

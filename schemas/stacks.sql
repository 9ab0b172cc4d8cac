-- stacks.sql -- the statements of a walk over the frames (src/trace/stacks.c).

-- name: end
SELECT end_ns FROM recording_end;

-- name: threads
-- For each thread the time at which its open frames ended.
SELECT thread_id, end_ns FROM thread_ends ORDER BY thread_id;

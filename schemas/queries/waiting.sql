-- Functions by how long they waited: off a processor, at least
--
-- Why: A function may be slow because it computes or because it waits: for a lock, a disk, another process, or a free processor.
-- Columns: qualname, filename, first_line: the function; calls: frames entered; self_ms: callees excluded; waited_ms: of that
--   certainly off a processor; queued_ms: of that at most ready to run, while other threads had the processors; ran_ms: of self_ms certainly on
--   a processor; longest_wait_ms: the longest wait for something else. Measured from outside, at most every 10 ms, in
--   stretches of a millisecond or more without a call; the rest of self_ms is not divided.
SELECT qualname, filename, first_line, calls, round(self_ns / 1e6, 3) AS self_ms, round(waited_ns / 1e6, 3) AS waited_ms,
       round(queued_ns / 1e6, 3) AS queued_ms, round(ran_ns / 1e6, 3) AS ran_ms, round(longest_wait_ns / 1e6, 3) AS longest_wait_ms
FROM hot_functions
WHERE waited_ns > 0
ORDER BY waited_ns DESC
LIMIT 50;

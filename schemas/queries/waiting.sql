-- Functions by how long they waited: off a processor, at least
--
-- Why: A function may be slow because it computes or because it waits: for a lock, a disk, another
--   process, or a free processor.
-- Columns: qualname, filename, first_line: the function; calls: number of its frames; self_ms: its
--   own time, without its callees; waited_ms: the part of self_ms in which it was certainly off a
--   processor; queued_ms: the part of waited_ms, at most, in which it was ready to run, and other threads
--   had the processors; ran_ms: the part of self_ms in which it was certainly on a processor;
--   longest_wait_ms: its longest wait for anything but a processor. The collector measures from
--   outside, at most every 10 ms, and only in stretches of a millisecond or more without a call, so
--   the rest of self_ms is not divided.
SELECT qualname, filename, first_line, calls, round(self_ns / 1e6, 3) AS self_ms, round(waited_ns / 1e6, 3) AS waited_ms,
       round(queued_ns / 1e6, 3) AS queued_ms, round(ran_ns / 1e6, 3) AS ran_ms, round(longest_wait_ns / 1e6, 3) AS longest_wait_ms
FROM hot_functions
WHERE waited_ns > 0
ORDER BY waited_ns DESC
LIMIT 50;

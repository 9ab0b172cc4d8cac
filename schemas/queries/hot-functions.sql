-- Functions by their own time: calls, total, self
--
-- Why: Shows where the time went, including frames that were too short to be stored.
-- Columns: qualname, filename, first_line: the function; calls: number of its frames; total_ms:
--   time with its callees; self_ms: time without its callees; ns_per_call: total time of a frame on
--   average; raised: how many frames an exception ended.
SELECT qualname, filename, first_line, calls,
       round(total_ns / 1e6, 3) AS total_ms, round(self_ns / 1e6, 3) AS self_ms, ns_per_call, raised
FROM hot_functions
LIMIT 50;

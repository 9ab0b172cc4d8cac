-- Functions by their own time: calls, total, self
--
-- Why: Where the time went, also of frames that were too short to be stored.
-- Columns: qualname, filename, first_line: the function; calls: frames entered; total_ms: callees included; self_ms:
--   callees excluded; ns_per_call: total by calls; raised: left by an exception.
SELECT qualname, filename, first_line, calls,
       round(total_ns / 1e6, 3) AS total_ms, round(self_ns / 1e6, 3) AS self_ms, ns_per_call, raised
FROM hot_functions
LIMIT 50;

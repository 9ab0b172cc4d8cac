-- Functions by their own time: calls, total, self
SELECT qualname, filename, first_line, calls,
       round(total_ns / 1e6, 3) AS total_ms, round(self_ns / 1e6, 3) AS self_ms, ns_per_call, raised
FROM hot_functions
LIMIT 50;

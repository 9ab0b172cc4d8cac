-- What is missing from the trace, and when the program had to wait for the recorder
SELECT pid, thread, round(at_ns / 1e9, 6) AS at_s, events, cause
FROM losses
ORDER BY is_stall, at_ns;

-- What is missing from the trace, and when the program had to wait for the recorder
--
-- Why: Where something is missing, other answers may be wrong, so look here first.
-- Columns: pid, thread: the process and the thread; at_s: when the loss was noticed; events: how
--   many events are missing, or NULL if nobody can know; cause: why they are missing.
SELECT pid, thread, round(at_ns / 1e9, 6) AS at_s, events, cause
FROM losses
ORDER BY is_stall, at_ns;

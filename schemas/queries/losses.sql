-- What is missing from the trace, and when the program had to wait for the recorder
--
-- Why: What is missing makes other answers doubtful: look here first.
-- Columns: pid, thread: where; at_s: noticed when; events: how many are missing, nothing where nobody can know; cause:
--   why.
SELECT pid, thread, round(at_ns / 1e9, 6) AS at_s, events, cause
FROM losses
ORDER BY is_stall, at_ns;

-- Where the time of compiles went, by phase, the longest first; phases lie within one another, so their times do not add up
--
-- Why: Says what a slow compile spends its time on: following bytecode, making guards, or the
--   backend.
-- Columns: phase: the compiler's name for the phase, without its number; times: how often it ran;
--   compiles: in how many compiles it ran; own_work: how often it ran outside of any compile; ms:
--   its time in all; longest_ms: the time of the longest run.
--
-- own_work counts runs that belong to no compile of a frame. For example, a backward graph is
-- compiled when it is first needed.
SELECT rtrim(rtrim(p.name, '0123456789'), '_') AS phase, COUNT(*) AS times, COUNT(DISTINCT p.compile_id) AS compiles,
       SUM(p.compile_id IS NULL) AS own_work, round(SUM(p.end_ns - p.start_ns) / 1e6, 3) AS ms,
       round(MAX(p.end_ns - p.start_ns) / 1e6, 3) AS longest_ms
FROM compile_phase p
GROUP BY 1
ORDER BY SUM(p.end_ns - p.start_ns) DESC
LIMIT 100;

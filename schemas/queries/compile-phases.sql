-- Where the time of compiles went, by phase, the longest first; phases lie within one another, so their times do not add up
--
-- Why: Says what a slow compile does: following bytecode, making guards, the backend.
-- Columns: phase: the compiler's name for it, without its number; times: how often; compiles: in how many; own_work:
--   how often outside of any; ms: in all; longest_ms: the longest.
--
-- own_work: in no compile of a frame, as the backward graphs that are compiled when they are first needed.
SELECT rtrim(rtrim(p.name, '0123456789'), '_') AS phase, COUNT(*) AS times, COUNT(DISTINCT p.compile_id) AS compiles,
       SUM(p.compile_id IS NULL) AS own_work, round(SUM(p.end_ns - p.start_ns) / 1e6, 3) AS ms,
       round(MAX(p.end_ns - p.start_ns) / 1e6, 3) AS longest_ms
FROM compile_phase p
GROUP BY 1
ORDER BY SUM(p.end_ns - p.start_ns) DESC
LIMIT 100;

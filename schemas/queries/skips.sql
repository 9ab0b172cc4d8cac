-- Functions that the compiler turned away, or was told to skip: since when, why, and whether for good
--
-- Why: Shows which functions were never compiled, and who decided so.
-- Columns: qualname, filename, first_line: the function; calls: number of its calls; times: how
--   often it was turned away; how: skipped by the compiler, declined, or marked; sticky: whether
--   this is for good; since_s: since when; reason: the compiler's reason.
--
-- sticky is 1 if later calls are not looked at again, 0 if they are, and NULL if this is not known.
WITH turned AS (
    SELECT code_id, MIN(start_ns) AS since_ns, COUNT(*) AS times, MAX(sticky) AS sticky, outcome AS how,
           substr(reason, 1, instr(reason || char(10), char(10)) - 1) AS reason
    FROM compile
    WHERE outcome IN ('skipped', 'declined')
    GROUP BY code_id, outcome, 6
    UNION ALL
    SELECT code_id, MIN(at_ns), COUNT(*), 1, 'asked for', substr(reason, 1, instr(reason || char(10), char(10)) - 1)
    FROM code_mark
    WHERE action = 'skip' AND code_id NOT IN (SELECT code_id FROM compile WHERE outcome IN ('skipped', 'declined') AND code_id IS NOT NULL)
    GROUP BY code_id, 6
)
SELECT c.qualname, c.filename, c.first_line, SUM(n.calls) AS calls, SUM(t.times) AS times, t.how, MAX(t.sticky) AS sticky,
       round(MIN(t.since_ns) / 1e9, 6) AS since_s, t.reason
FROM turned t
LEFT JOIN functions c ON c.code_id = t.code_id
LEFT JOIN code_total n ON n.code_id = t.code_id
GROUP BY c.function_id, t.how, t.reason
ORDER BY calls DESC, c.filename, c.qualname, c.first_line, t.how, t.reason
LIMIT 200;

-- Functions that reached a limit of compiles: since when, how many entries they had, how many calls ran eagerly since (reads every lookup)
--
-- Why: Once the limit is reached, new inputs run as Python, without any message.
-- Columns: qualname, filename, first_line: the function; reason: the limit; since_s: when it was
--   reached; entries: how many entries the function had; eager_calls: how many calls ran as Python
--   since then; calls: number of all calls; last_s: when the last eager call began.
WITH reached AS (
    SELECT code_id, MIN(start_ns) AS since_ns, MAX(substr(reason, 1, instr(reason || char(10), char(10)) - 1)) AS reason
    FROM compile
    WHERE outcome = 'limit' OR (outcome = 'error' AND reason LIKE '%LimitHit%')
    GROUP BY code_id
    UNION ALL -- a compiler without compiles that say so
    SELECT code_id, MIN(start_ns), NULL FROM lookup
    WHERE outcome = $LIMIT AND code_id NOT IN (SELECT code_id FROM compile WHERE outcome IN ('limit', 'error') AND code_id IS NOT NULL)
    GROUP BY code_id
),
eager AS MATERIALIZED (
    SELECT code_id, COUNT(*) AS calls, MAX(start_ns) AS last_ns FROM lookup WHERE outcome = $LIMIT GROUP BY code_id
)
SELECT c.qualname, c.filename, c.first_line, MAX(r.reason) AS reason, round(MIN(r.since_ns) / 1e9, 6) AS since_s,
       SUM((SELECT COUNT(*) FROM cache_entry e WHERE e.code_id = r.code_id)) AS entries, COALESCE(SUM(g.calls), 0) AS eager_calls,
       SUM(n.calls) AS calls, round(MAX(g.last_ns) / 1e9, 6) AS last_s
FROM reached r
LEFT JOIN eager g ON g.code_id = r.code_id
LEFT JOIN functions c ON c.code_id = r.code_id
LEFT JOIN code_total n ON n.code_id = r.code_id
GROUP BY c.function_id
ORDER BY eager_calls DESC, c.filename, c.qualname, c.first_line
LIMIT 100;

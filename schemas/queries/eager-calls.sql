-- Calls that a compiler was asked about and that ran as Python, by function and reason (reads every call)
--
-- Why: Lists the calls that a compiler was meant to make faster and did not; the query skips lists
--   functions that the compiler turned away unread.
-- Columns: qualname, filename, first_line: the function; outcome: why its calls ran as Python;
--   calls: how many such calls there were; percent_of_calls: their part of all calls of the
--   function; first_s, last_s: when the first and the last of them began.
WITH eager AS MATERIALIZED (
    SELECT code_id, outcome, COUNT(*) AS calls, MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns
    FROM calls
    WHERE counted AND ran_as_python
    GROUP BY code_id, outcome
)
SELECT c.qualname, c.filename, c.first_line, e.outcome, SUM(e.calls) AS calls,
       round(100.0 * SUM(e.calls) / NULLIF(SUM(n.calls), 0), 1) AS percent_of_calls,
       round(MIN(e.first_ns) / 1e9, 6) AS first_s, round(MAX(e.last_ns) / 1e9, 6) AS last_s
FROM eager e
LEFT JOIN functions c ON c.code_id = e.code_id
LEFT JOIN code_total n ON n.code_id = e.code_id
GROUP BY c.function_id, e.outcome
ORDER BY SUM(e.calls) DESC, c.filename, c.qualname, c.first_line, e.outcome
LIMIT 100;

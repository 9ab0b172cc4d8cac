-- Functions that exceptions left, and how often
--
-- Why: Exceptions as control flow cost time; unexpected ones are bugs.
-- Columns: qualname, filename, first_line: the function; raised: how many calls an exception ended;
--   calls: number of all calls; percent: the part of the calls that an exception ended.
SELECT qualname, filename, first_line, raised, calls, round(100.0 * raised / NULLIF(calls, 0), 1) AS percent
FROM hot_functions
WHERE raised > 0
ORDER BY raised DESC
LIMIT 50;

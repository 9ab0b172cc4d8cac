-- Functions that exceptions left, and how often
--
-- Why: Exceptions as control flow cost time; unexpected ones are bugs.
-- Columns: qualname, filename, first_line: the function; raised: calls that an exception left; calls: of all; percent:
--   the share.
SELECT qualname, filename, first_line, raised, calls, round(100.0 * raised / NULLIF(calls, 0), 1) AS percent
FROM hot_functions
WHERE raised > 0
ORDER BY raised DESC
LIMIT 50;

-- Functions that exceptions left, and how often
SELECT qualname, filename, first_line, raised, calls, round(100.0 * raised / NULLIF(calls, 0), 1) AS percent
FROM hot_functions
WHERE raised > 0
ORDER BY raised DESC
LIMIT 50;

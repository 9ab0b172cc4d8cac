-- diff.sql -- what `dyntrace diff` asks each of its traces. ?1: --function or NULL; ?2: the rank that is meant, or
-- NULL.

-- name: codes
-- The code objects with their totals, in order of id.
SELECT c.code_id, c.qualname, c.filename, c.kind, c.first_line, c.fingerprint, n.calls, n.self_ns
FROM code c LEFT JOIN code_total n ON n.code_id = c.code_id
WHERE c.kind IS NOT 'compiled' AND (?1 IS NULL OR c.qualname GLOB ?1 OR c.qualname GLOB '*.' || ?1)
  AND (?2 IS NULL OR c.process_id IN (SELECT process_id FROM process WHERE rank = ?2))
ORDER BY c.code_id;

-- name: rank
-- Is there a process of rank ?1?
SELECT 1 FROM process WHERE rank = ?1;

-- name: lookups
-- How each call was decided.
SELECT code_id, outcome FROM lookup;

-- name: entries
-- Cache entries of code objects.
SELECT code_id, cache_entry_id FROM cache_entry;

-- name: breaks
-- Graph breaks of code objects.
SELECT m.code_id, COUNT(*) FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id GROUP BY m.code_id;

-- name: checks
-- The time of each check of guards. Checks are many: they are read in their order, which needs no sorting.
SELECT cache_entry_id, duration_ns FROM guard_check WHERE duration_ns IS NOT NULL;

-- name: reasons
-- Why functions were compiled again: function, the last part of its file, its line, the guard that decided, how
-- often. What was seen (sizes, values) is not part of it.
SELECT COALESCE(c.qualname, '?'),
    COALESCE(replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), '?') AS file,
       MIN(c.first_line),
       COALESCE(r.kind, '?') || ' ' || COALESCE(r.source, substr(r.text, 1, 200), '?') AS what, COUNT(*)
FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id JOIN code c ON c.code_id = m.code_id
WHERE r.ordinal = 0 AND (?1 IS NULL OR c.qualname GLOB ?1 OR c.qualname GLOB '*.' || ?1)
  AND (?2 IS NULL OR c.process_id IN (SELECT process_id FROM process WHERE rank = ?2))
GROUP BY 1, 2, 4;

-- name: break-reasons
-- The same of graph breaks: the first line of the reason.
SELECT COALESCE(c.qualname, '?'),
    COALESCE(replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), '?') AS file,
       MIN(c.first_line),
       COALESCE(substr(b.reason, 1, instr(substr(b.reason, 1, 200) || char(10), char(10)) - 1), '?') AS what, COUNT(*)
FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id JOIN code c ON c.code_id = m.code_id
WHERE (?1 IS NULL OR c.qualname GLOB ?1 OR c.qualname GLOB '*.' || ?1)
  AND (?2 IS NULL OR c.process_id IN (SELECT process_id FROM process WHERE rank = ?2))
GROUP BY 1, 2, 4;

-- name: threads
-- Threads that did lookups. Those of A and B that are alike have one name, and the same place among those called so:
-- workers of one pool come in an order. Rank is no part of it: ranks are what is compared.
SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name ORDER BY t.thread_id) AS who
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?2 IS NULL OR p.rank = ?2) ORDER BY who;

-- name: threads-lookups
-- All lookups of those threads, in that order, as numbers: with texts it would take long to sort them.
WITH named AS MATERIALIZED (
    SELECT thread_id, ROW_NUMBER() OVER (ORDER BY who) AS n FROM (
        SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name
            ORDER BY t.thread_id) AS who
        FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
        WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?2 IS NULL OR p.rank = ?2)))
SELECT n.n, l.lookup_id, l.code_id, l.outcome, l.cache_entry_id FROM lookup l JOIN named n ON n.thread_id = l.thread_id
WHERE ?1 IS NULL OR l.code_id IN (SELECT code_id FROM code WHERE qualname GLOB ?1 OR qualname GLOB '*.' || ?1)
ORDER BY n.n, l.lookup_id;

-- name: lookup
-- Lookup ?1 in words.
SELECT COALESCE(c.qualname, '?'),
    COALESCE(replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), '?') AS file,
       c.first_line, l.outcome, e.label, l.lookup_id, l.start_ns, s.text
FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = ?1;

-- name: code
-- What code object ?1 is known by: its name, and its file or fingerprint.
SELECT qualname, replace(filename, rtrim(filename, replace(filename, '/', '')), '') AS file, NULLIF(fingerprint, 0)
    FROM code
WHERE code_id = ?1;

-- name: entry
-- What cache entry ?1 is known by.
SELECT label, NULL, NULL FROM cache_entry WHERE cache_entry_id = ?1;

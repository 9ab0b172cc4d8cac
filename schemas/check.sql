-- check.sql -- what `dyntrace check` asks. Calls it counts itself (src/trace/counts.h).

-- name: meant
-- Code objects that --function means: ?1 is a JSON array of globs. The rest of a function after a graph break is the
-- function, too.
WITH RECURSIVE meant(code_id) AS (
    SELECT code_id FROM code c
    WHERE EXISTS (SELECT 1 FROM json_each(?1) g WHERE c.qualname GLOB g.value OR c.qualname GLOB '*.' || g.value
                  OR c.filename GLOB g.value)
    UNION
    SELECT c.code_id FROM meant m JOIN code c ON c.origin_code_id = m.code_id
)
SELECT code_id FROM meant;

-- name: compiles
-- Those that made code: process, code, was it a recompile, when, id, and why (a line).
SELECT m.process_id, m.code_id, m.is_recompile, m.start_ns, m.compile_id,
       substr(COALESCE(k.why, m.reason), 1, min(400, instr(COALESCE(k.why, m.reason) || char(10), char(10)) - 1))
FROM compiles m
LEFT JOIN recompile_causes k ON k.cause_id = m.cause_id
WHERE m.cache_entry_id IS NOT NULL
ORDER BY m.process_id, m.start_ns, m.compile_id;

-- name: breaks
SELECT m.process_id, m.code_id, 1, m.start_ns, m.compile_id,
       'line ' || COALESCE(b.line, '?') || ': ' ||
       substr(COALESCE(b.reason, '?'), 1, min(400, instr(COALESCE(b.reason, '?') || char(10), char(10)) - 1))
FROM graph_break b
JOIN compiles m ON m.compile_id = b.compile_id
ORDER BY m.process_id, b.graph_break_id;

-- name: row
-- A row of the result, as it is printed: check ?1 allows ?2 and found ?3 in process ?4 (negative: that in which code
-- object ?5 was first seen), where ?5 had ?6 calls and compile ?7 (or none), because of ?8; ?9 names a function that was
-- to be compiled. For people (not ?10) a path is its last two parts: rtrim takes off the letters of a part, then a slash.
SELECT ?1 AS "check",
       CASE WHEN ?9 IS NULL THEN CAST(?2 AS NUMERIC) ELSE 'compiled' END AS allowed,
       CASE WHEN ?9 IS NULL THEN CAST(?3 AS NUMERIC) END AS found,
       p.pid, COALESCE(c.qualname, ?9) AS function,
       CASE WHEN ?10 THEN c.filename
            ELSE substr(l.name, 1 + length(rtrim(rtrim(rtrim(l.name, l.letters), '/'), l.letters))) END
       || ':' || c.first_line AS "where",
       ?6 AS calls, m.label AS compile, m.compile_id, m.start_ns AS at_ns, ?8 AS why
FROM (SELECT ?5 AS code_id) o
LEFT JOIN code c ON c.code_id = o.code_id
LEFT JOIN (SELECT code_id, substr(filename, -1000) AS name, replace(substr(filename, -1000), '/', '') AS letters
           FROM code) l ON l.code_id = c.code_id
LEFT JOIN process p ON p.process_id = iif(?4 < 0, c.process_id, ?4)
LEFT JOIN compile m ON m.compile_id = ?7;

-- name: guards
-- For db_each: every check of guards with the call that it was for.
SELECT each(l.code_id, l.thread_id, k.lookup_id, k.duration_ns)
FROM guard_check k NOT INDEXED CROSS JOIN lookup l ON l.lookup_id = k.lookup_id;

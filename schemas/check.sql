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
-- Those that made code: process, code, was it a recompile, when; then label, id, when and why (a line) as they are printed.
SELECT m.process_id, m.code_id, m.is_recompile, m.start_ns, m.label, m.compile_id, m.start_ns,
       substr(COALESCE(k.why, m.reason), 1, min(400, instr(COALESCE(k.why, m.reason) || char(10), char(10)) - 1))
FROM compiles m
LEFT JOIN recompile_causes k ON k.cause_id = m.cause_id
WHERE m.cache_entry_id IS NOT NULL
ORDER BY m.process_id, m.start_ns, m.compile_id;

-- name: breaks
SELECT m.process_id, m.code_id, 1, m.start_ns, m.label, m.compile_id, m.start_ns,
       'line ' || COALESCE(b.line, '?') || ': ' ||
       substr(COALESCE(b.reason, '?'), 1, min(400, instr(COALESCE(b.reason, '?') || char(10), char(10)) - 1))
FROM graph_break b
JOIN compiles m ON m.compile_id = b.compile_id
ORDER BY m.process_id, b.graph_break_id;

-- name: code
-- Where code object ?1 is, and the pid of process ?2; NULL: of the one in which it was first seen.
SELECT p.pid, c.qualname, c.filename, c.first_line
FROM code c
LEFT JOIN process p ON p.process_id = COALESCE(?2, c.process_id)
WHERE c.code_id = ?1;

-- name: guards
-- For db_each: every check of guards with the call that it was for.
SELECT each(l.code_id, l.thread_id, k.lookup_id, k.duration_ns)
FROM guard_check k NOT INDEXED CROSS JOIN lookup l ON l.lookup_id = k.lookup_id;

-- find.sql -- from what a user types to a function: trace/find_code.c.

-- name: functions
-- The functions that a name means when it is read as ?5 says. ?1: the name; ?2 and ?3: the parts of FILE:LINE; ?4:
-- torch's name of the resume function FUNC@LINE. Code made by a compiler has the name of what it was made from, so it
-- is not meant. Torch makes some resume functions twice and runs one.
SELECT f.filename, f.qualname, f.first_line, iif(f.is_resume, 'resume', f.kind) AS kind,
    group_concat(f.code_id, ', ') AS ids,
       COUNT(*) AS code_objects, COUNT(DISTINCT f.process_id) AS processes, SUM(n.calls) AS calls
FROM functions f LEFT JOIN code_total n ON n.code_id = f.code_id
WHERE f.kind IS NOT 'compiled' AND CASE ?5
    WHEN 'label' THEN f.code_id IN (SELECT code_id FROM compile WHERE label = ?1)
    WHEN 'name' THEN f.qualname = ?1
    WHEN 'last part' THEN substr(f.qualname, -length(?1) - 1) = '.' || ?1
    WHEN 'resume' THEN f.qualname = ?4
    WHEN 'resume, last part' THEN substr(f.qualname, -length(?4) - 1) = '.' || ?4
    WHEN 'line' THEN (f.filename = ?2 OR substr(f.filename, -length(?2) - 1) = '/' || ?2) AND f.first_line = ?3
    WHEN 'line above' THEN (f.filename = ?2 OR substr(f.filename, -length(?2) - 1) = '/' || ?2) AND f.first_line = (
        SELECT MAX(d.first_line) FROM code d WHERE (d.filename = ?2 OR substr(d.filename, -length(?2) - 1) = '/' || ?2)
        AND d.first_line < ?3 AND d.kind IS NOT 'compiled')
    WHEN 'glob' THEN f.qualname GLOB ?1
    WHEN 'glob, last part' THEN f.qualname GLOB '*.' || ?1
    WHEN 'glob of files' THEN f.filename GLOB ?1
END
GROUP BY f.function_id, 4
ORDER BY EXISTS (SELECT 1 FROM compile m WHERE m.code_id = f.code_id) DESC, MIN(f.code_id);

-- name: counts
-- Compiles and cache entries of code objects. ?1: their ids, a JSON array.
SELECT (SELECT COUNT(*) FROM compile WHERE code_id IN (SELECT value FROM json_each(?1))) AS compiles,
       (SELECT COUNT(*) FROM cache_entry WHERE code_id IN (SELECT value FROM json_each(?1))) AS entries;

-- name: names
-- All names, to suggest one. ?1: at most so many.
SELECT qualname FROM code WHERE kind IS NOT 'compiled' AND qualname IS NOT NULL LIMIT ?1;

-- name: taker
-- A function whose compiled code has taken in the function ?1, so that no call of that is ever seen: the guards that
-- it needed say so.
SELECT c.qualname FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
    JOIN code c ON c.code_id = e.code_id
WHERE instr(substr(g.user_stack, 1, 10000) || char(10), ', in ' || ?1 || char(10)) LIMIT 1;

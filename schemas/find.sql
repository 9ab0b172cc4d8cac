-- find.sql -- finds the function that a user means (src/trace/find_code.c).

-- name: functions
-- The functions that the name ?1 means. The name is read in several ways, and the first way that
-- finds a function counts. The column `way` has their order: the label of a compile, such as 0/1 or
-- torch's 0/1_1; a qualified name or its last part; FUNC@LINE, the resume function of FUNC after
-- that line; FILE:LINE, the function that begins at this line or above it; FILE:LINE:NAME, if several
-- functions begin there; a GLOB pattern. Code objects made by a compiler have the name of the function that was compiled, so they are left out.
-- All functions of graphs are called `forward`: a function of the program with this name comes
-- first. Torch makes some resume functions twice and runs one of them.
WITH parts AS (SELECT ?1 AS name, rtrim(?1, '0123456789') AS head),
split AS (
    SELECT name, CAST(substr(name, length(head) + 1) AS INTEGER) AS line,
           length(CAST(name AS BLOB)) < 900 AND name GLOB '*[*?[]*' AS is_glob, -- SQLite takes no longer pattern here
           name GLOB '[0-9]*/[0-9]*' AND rtrim(ltrim(name, '0123456789'), '0123456789_') = '/' AS is_label,
           iif(name <> head AND head GLOB '?*:', substr(head, 1, length(head) - 1), NULL) AS file,
           iif(name <> head AND head GLOB '?*@', substr(head, 1, length(head) - 1), NULL) AS of
    FROM parts),
asked AS MATERIALIZED (
    SELECT *, rtrim(of, replace(of, '.', '')) || $RESUME_IN || substr(of, length(rtrim(of, replace(of, '.', ''))) + 1)
                  || $RESUME_AT || line AS rest,
           (SELECT MAX(first_line) FROM code WHERE (filename = file OR substr(filename, -length(file) - 1) = '/' || file)
            AND first_line < line AND kind IS NOT 'compiled') AS above
    FROM split),
meant AS (
    SELECT f.*, CASE
        WHEN is_label AND f.code_id IN (SELECT code_id FROM compile WHERE label = ?1) THEN 1
        WHEN f.qualname = name THEN iif(f.filename GLOB '<eval_with_key>.*', 4, 2)
        WHEN substr(f.qualname, -length(name) - 1) = '.' || name THEN 3
        WHEN f.qualname = rest THEN 5
        WHEN substr(f.qualname, -length(rest) - 1) = '.' || rest THEN 6
        WHEN instr(name, ':') AND substr('/' || f.filename || ':' || COALESCE(f.first_line, 0) || ':' || f.qualname, -length(name) - 1)
            = '/' || name THEN 7
        WHEN f.filename = file OR substr(f.filename, -length(file) - 1) = '/' || file
            THEN CASE COALESCE(f.first_line, 0) WHEN line THEN 7 WHEN above THEN 8 END
        WHEN is_glob AND f.qualname GLOB name THEN 9
        WHEN is_glob AND f.qualname GLOB '*.' || name THEN 10
        WHEN is_glob AND f.filename GLOB name THEN 11 END AS way
    FROM functions f, asked
    WHERE f.kind IS NOT 'compiled'),
first AS (SELECT *, MIN(way) OVER () AS first_way FROM meant WHERE way IS NOT NULL ORDER BY code_id)
SELECT SUM(n.calls) AS calls, SUM((SELECT COUNT(*) FROM compile m WHERE m.code_id = f.code_id)) AS compiles,
       SUM((SELECT COUNT(*) FROM cache_entry e WHERE e.code_id = f.code_id)) AS entries, COALESCE(f.qualname, '?') AS function,
       COALESCE(iif(f.is_resume, 'resume', f.kind), 'code') AS kind,
       COALESCE(f.filename, '?') || ':' || COALESCE(f.first_line, 0) AS "where",
       -- the columns from here on are not printed when several functions are listed
       SUM((SELECT COUNT(*) FROM compile m WHERE m.code_id = f.code_id)), COALESCE(f.qualname, '?'),
       COALESCE(iif(f.is_resume, 'resume', f.kind), 'code') AS shown_kind, COALESCE(f.filename, '?'), f.first_line, group_concat(f.code_id, ', ') AS ids, COUNT(*) AS code_objects,
       COUNT(DISTINCT f.process_id) AS processes, way = 1 AS is_label, COUNT(*) OVER () AS functions
FROM first f LEFT JOIN code_total n ON n.code_id = f.code_id
WHERE way = first_way
GROUP BY f.function_id, shown_kind
ORDER BY compiles > 0 DESC, MIN(f.code_id);

-- name: worst
-- The functions to suggest if the user named none, with the columns of find/functions: functions
-- that were compiled again, broke their graph, or ran as Python although compiled code was wanted.
-- The order is that of report/compiles, the worst first.
WITH made AS MATERIALIZED (
    SELECT code_id, COUNT(cache_entry_id) AS compiles, COUNT(*) AS tries, SUM(is_recompile) AS recompiles,
           SUM((SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id)) AS breaks
    FROM compiles m GROUP BY code_id),
ran AS MATERIALIZED (SELECT code_id, SUM(ran_as_python) AS python FROM calls WHERE counted GROUP BY code_id)
SELECT COALESCE(SUM(recompiles), 0) AS recompiles, COALESCE(SUM(breaks), 0) AS "graph breaks", iif(EXISTS (SELECT 1 FROM lookup), COALESCE(SUM(python), 0), NULL) AS "ran as Python",
       COALESCE(SUM(compiles), 0) AS compiles,
       COALESCE(f.qualname, '?') AS function, COALESCE(f.filename, '?') || ':' || COALESCE(f.first_line, 0) AS "where",
       TOTAL(tries), COALESCE(f.qualname, '?'), COALESCE(iif(f.is_resume, 'resume', f.kind), 'code') AS shown_kind, COALESCE(f.filename, '?'),
       f.first_line, group_concat(f.code_id, ', '), COUNT(*), COUNT(DISTINCT f.process_id), 0, COUNT(*) OVER ()
FROM functions f LEFT JOIN made m ON m.code_id = f.code_id LEFT JOIN ran r ON r.code_id = f.code_id
WHERE f.kind IS NOT 'compiled'
GROUP BY f.function_id, shown_kind
HAVING TOTAL(recompiles) + TOTAL(breaks) + TOTAL(python) > 0
ORDER BY 1 DESC, 2 DESC, 3 DESC, MIN(f.code_id);

-- name: same
-- Maps each code object to the first code object of the same function, because one function has
-- several code objects if several processes run it.
SELECT code_id, MIN(code_id) OVER (PARTITION BY function_id, kind) FROM functions;

-- name: names
-- Names of functions, from which the most similar one is suggested.
SELECT DISTINCT qualname FROM code WHERE kind IS NOT 'compiled' AND length(qualname) < 200 LIMIT 200000;

-- name: completions
-- The names of functions that a shell completes. A name such as make.<locals>.inner would have to
-- be quoted, and in a hostile file a name could be a command. For such a name the last part is
-- offered, which finds the function, too.
WITH named AS (
    SELECT qualname, rtrim(qualname, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_') AS before
    FROM code WHERE kind IS NOT 'compiled' AND length(qualname) < 200
)
SELECT DISTINCT iif(qualname GLOB '*[^A-Za-z0-9_.]*', substr(qualname, length(before) + 1), qualname) AS name
FROM named
WHERE name <> ''
ORDER BY name
LIMIT 2000;

-- name: taker
-- A function whose compiled code inlines the function ?1, so that calls of ?1 are not recorded. The
-- stacks of the guards show this.
SELECT c.qualname FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
    JOIN code c ON c.code_id = e.code_id
WHERE instr(substr(g.user_stack, 1, 10000) || char(10), ', in ' || ?1 || char(10)) LIMIT 1;

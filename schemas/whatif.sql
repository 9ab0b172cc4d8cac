-- whatif.sql -- the statements of `replay --what-if` (src/trace/whatif/), in addition to schemas/replay.sql.

-- name: floats-later
-- Does a process use torch 2.12 or older? There a float is a constant in the first compile, even
-- with dynamic=True.
SELECT EXISTS (SELECT 1 FROM process WHERE torch_version GLOB '[12].[0-9]*'
               AND (torch_version GLOB '1.*' OR CAST(substr(torch_version, 3, 2) AS INTEGER) <= 12));

-- name: torch
-- The version of torch that the traced programs use. No row if none uses torch.
SELECT torch_version FROM process WHERE torch_version <> '' ORDER BY process_id LIMIT 1;

-- name: backends
-- For each entry: a number that stands for the name of its backend.
SELECT each(cache_entry_id, backend)
FROM (SELECT cache_entry_id, dense_rank() OVER (ORDER BY COALESCE(backend, '')) AS backend FROM cache_entry);

-- name: several
-- Code objects whose entries belong to several regions or several backends.
SELECT each(code_id, 1)
FROM (SELECT code_id FROM cache_entry GROUP BY code_id
      HAVING COUNT(DISTINCT COALESCE(region_id, -1)) > 1 OR COUNT(DISTINCT COALESCE(backend, '')) > 1);

-- name: accumulated
-- Code objects with a compile that met the limit on all entries ever made.
SELECT each(code_id, 1) FROM compile WHERE outcome = 'limit' AND substr(reason, 1, 400) LIKE '%accumulated%';

-- name: excluded
-- Code objects that the compiler's own rules exclude: each of their compiles was skipped.
SELECT each(code_id, 1)
FROM (SELECT code_id FROM compile GROUP BY code_id HAVING MIN(COALESCE(outcome, '') = 'skipped'));

-- name: rests
-- Pairs: a code object with a graph break, and the resume function that its compiled code then
-- calls.
SELECT each(code_id, resume_code_id)
FROM (SELECT DISTINCT m.code_id, b.resume_code_id FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id
      WHERE b.resume_code_id IS NOT NULL);

-- name: inlined
-- Code objects with entries of their own that are inlined into the compiled code of ?1. The
-- guards of ?1 show this: a line of the inlined function needs a guard, or a guard checks the
-- function's code under a name that no other function has. Functions in which the graph of ?1
-- broke are excluded, because they are called, and the trace has these calls.
WITH RECURSIVE
    named AS (SELECT code_id, filename, first_line, replace(tail, rtrim(tail, replace(tail, '.', '')), '') AS name
              FROM (SELECT code_id, filename, first_line, substr(qualname, -400) AS tail FROM code)
              WHERE code_id IN (SELECT code_id FROM cache_entry) AND code_id <> ?1
                AND code_id NOT IN (SELECT resume_code_id FROM graph_break WHERE resume_code_id IS NOT NULL)),
    mine AS MATERIALIZED (SELECT DISTINCT substr(g.user_stack, 1, 4000) AS stack,
                                 CASE WHEN g.source LIKE '%.__code__' THEN replace(substr(g.source, 1, 400), '.__code__', '') END AS source
                          FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id WHERE e.code_id = ?1 LIMIT 4096),
    lines(line, rest) AS (SELECT '', stack || char(10) FROM (SELECT DISTINCT stack FROM mine WHERE stack <> '' LIMIT 256)
                          UNION SELECT substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1)
                          FROM lines WHERE rest <> ''),
    places AS MATERIALIZED (SELECT DISTINCT substr(line, 7, instr(line, '", line ') - 7) AS filename, substr(line, instr(line, ', in ') + 5) AS name,
                                   CAST(substr(line, instr(line, '", line ') + 8) AS INTEGER) AS at
                            FROM lines WHERE line LIKE 'File "%", line %, in %'),
    broken AS MATERIALIZED (SELECT DISTINCT substr(b.user_stack, 1, 4000) || char(10) AS stack FROM graph_break b
                            JOIN compile m ON m.compile_id = b.compile_id WHERE m.code_id = ?1)
SELECT n.code_id FROM named n
WHERE NOT EXISTS (SELECT 1 FROM broken b WHERE instr(b.stack, ', in ' || n.name || char(10)))
  AND (EXISTS (SELECT 1 FROM places p WHERE p.filename = n.filename AND p.name = n.name AND p.at >= n.first_line
               AND NOT EXISTS (SELECT 1 FROM code o WHERE o.filename = n.filename AND o.first_line > n.first_line AND o.first_line <= p.at
                               AND (o.qualname = n.name OR substr(o.qualname, -length(n.name) - 1) = '.' || n.name)))
       OR (EXISTS (SELECT 1 FROM mine m WHERE substr(m.source, -length(n.name) - 4) = '[''' || n.name || ''']'
                                                  OR substr(m.source, -length(n.name) - 1) = '.' || n.name)
           AND (SELECT COUNT(*) FROM named o WHERE o.name = n.name) = 1))
LIMIT 1000;

-- name: guards
-- The guards of entry ?1, in the order in which the guards of two entries are compared.
SELECT guard_id, kind, COALESCE(source, ''), expression FROM guard WHERE cache_entry_id = ?1
ORDER BY COALESCE(source, ''), COALESCE(kind, ''), guard_id LIMIT 4096;

-- name: tried
-- Which guards of entry ?2 passed or failed when lookup ?1 tried the entry. The lookup made
-- entry ?3, or ?3 is NULL. The causes of a compile name all guards that failed; rows from them
-- have 1 in the third column.
SELECT guard_id, result = $CHECK_PASS, 0 FROM guard_evaluation WHERE lookup_id = ?1 AND cache_entry_id = ?2
UNION ALL
SELECT r.guard_id, 0, 1 FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id
WHERE m.cache_entry_id = ?3 AND r.cache_entry_id = ?2 AND r.guard_id IS NOT NULL;

-- name: failed
-- For each entry: the guards that failed for the call that made the entry. These are all
-- failures that were found, not only the guards that decided.
SELECT each(m.cache_entry_id, r.guard_id) FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id
WHERE m.cache_entry_id IS NOT NULL AND r.guard_id IS NOT NULL;

-- name: killers
-- Entries that died because an object died which a guard compares by identity; and this guard.
SELECT each(e.cache_entry_id, g.guard_id) FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id
WHERE instr(substr(e.death_cause, 1, 1000), 'which guard ' || g.ordinal || ' named:');

-- name: freed
-- Entries that torch invalidated because an object that a guard names was freed. All other
-- invalid entries were invalidated by the program.
SELECT each(cache_entry_id, 1) FROM cache_entry WHERE substr(death_cause, 1, 1000) LIKE '%deallocated%';

-- name: dropped
-- The guards that drop_guard=?1 drops, as kind and source. ?1 is a guard's id, or a kind, which
-- means all guards of this kind. Some versions of torch store a guard on two objects as one row
-- for each object: both rows are returned, first the one with the given id.
SELECT * FROM (
    SELECT e.code_id, o.kind, COALESCE(o.source, '')
    FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id JOIN guard o ON o.cache_entry_id = g.cache_entry_id
        AND (o.guard_id = g.guard_id OR g.kind GLOB '*_ALIASING' AND o.kind = g.kind AND o.expression = g.expression)
    WHERE g.guard_id = CAST(?1 AS INTEGER) AND ?1 NOT GLOB '*[^0-9]*' ORDER BY o.guard_id <> g.guard_id)
UNION ALL
SELECT NULL, ?1, NULL WHERE ?1 GLOB '*[^0-9]*';

-- name: unknown-source
-- If no guard has the source ?1: a row with a message that says so.
SELECT 'no guard looks at that' || COALESCE(
    (SELECT '; most recompiles come of ' || source FROM recompile_cause
     WHERE source LIKE 'L[%' GROUP BY source ORDER BY COUNT(*) DESC, source LIMIT 1), '')
WHERE NOT EXISTS (SELECT 1 FROM guard WHERE source = ?1);

-- name: unknown-guard
-- If no guard has the kind or the id ?1: a row with a message that says so.
SELECT 'no guard has that kind or id; `dyntrace replay --guards LABEL` lists an entry''s'
WHERE NOT EXISTS (SELECT 1 FROM guard WHERE kind = ?1 OR CAST(guard_id AS TEXT) = ?1);

-- name: frame-end
-- The end of the call of lookup ?1.
SELECT f.end_ns FROM lookup l JOIN frame f ON f.frame_id = l.frame_id WHERE l.lookup_id = ?1;

-- name: candidates
-- Sizes and numbers whose change decided recompiles, those with most recompiles first. The
-- columns are those that cause_read() reads.
SELECT substr(r.kind, 1, 200), substr(r.source, 1, 400), r.aspect, r.dimension, substr(r.expected, 1, 400),
       substr(r.actual, 1, 400), substr(r.text, 1, 400), r.guard_id, r.compile_id, r.cache_entry_id
FROM recompile_cause r
WHERE r.aspect IN ('size', 'value') AND r.source LIKE 'L[%'
GROUP BY r.source, r.aspect, r.dimension
ORDER BY COUNT(*) DESC, r.source LIMIT 100;

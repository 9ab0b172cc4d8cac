-- whatif.sql -- what `replay --what-if` reads besides schemas/replay.sql: src/trace/whatif/.

-- name: torches
SELECT DISTINCT torch_version FROM process;

-- name: backends
-- Each entry's backend as a number of its name.
SELECT each(cache_entry_id, backend)
FROM (SELECT cache_entry_id, dense_rank() OVER (ORDER BY COALESCE(backend, '')) AS backend FROM cache_entry);

-- name: several
-- Code objects whose entries are of several regions or backends.
SELECT each(code_id, 1)
FROM (SELECT code_id FROM cache_entry GROUP BY code_id
      HAVING COUNT(DISTINCT COALESCE(region_id, -1)) > 1 OR COUNT(DISTINCT COALESCE(backend, '')) > 1);

-- name: accumulated
-- Code objects of which a compile met the limit on all entries ever.
SELECT each(code_id, 1) FROM compile WHERE outcome = 'limit' AND substr(reason, 1, 400) LIKE '%accumulated%';

-- name: rests
-- A code object whose compiled code breaks off, and the resume function that it then calls.
SELECT each(code_id, resume_code_id)
FROM (SELECT DISTINCT m.code_id, b.resume_code_id FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id
      WHERE b.resume_code_id IS NOT NULL);

-- name: guards
-- Of entry ?1: in the order in which those of two entries are compared.
SELECT guard_id, kind, COALESCE(source, ''), expression FROM guard WHERE cache_entry_id = ?1
ORDER BY COALESCE(source, ''), COALESCE(kind, ''), guard_id LIMIT 4096;

-- name: tried
-- What is known of the guards of entry ?2 when lookup ?1 tried it, which had entry ?3 made, or NULL: whether each passed. The
-- causes of a compile are all that failed; 1 in the third column: they are there.
SELECT guard_id, result = 'pass', 0 FROM guard_evaluation WHERE lookup_id = ?1 AND cache_entry_id = ?2
UNION ALL
SELECT r.guard_id, 0, 1 FROM recompile_cause r JOIN compile m ON m.compile_id = r.compile_id
WHERE m.cache_entry_id = ?3 AND r.cache_entry_id = ?2 AND r.guard_id IS NOT NULL;

-- name: killers
-- Entries that died because what a guard names by identity did, and that guard.
SELECT each(e.cache_entry_id, g.guard_id) FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id
WHERE instr(substr(e.death_cause, 1, 1000), 'which guard ' || g.ordinal || ' named:');

-- name: dropped
-- What drop_guard=?1 stands for: a guard's id, or a kind anywhere.
SELECT e.code_id, g.kind, COALESCE(g.source, '') FROM guard g JOIN cache_entry e ON e.cache_entry_id = g.cache_entry_id
WHERE g.guard_id = CAST(?1 AS INTEGER) AND ?1 NOT GLOB '*[^0-9]*'
UNION ALL
SELECT NULL, ?1, NULL WHERE ?1 GLOB '*[^0-9]*';

-- name: unknown-source
-- A row, which says so, if no guard looks at ?1.
SELECT 'no guard looks at that' || COALESCE(
    (SELECT '; most recompiles come of ' || source FROM recompile_cause
     WHERE source LIKE 'L[%' GROUP BY source ORDER BY COUNT(*) DESC, source LIMIT 1), '')
WHERE NOT EXISTS (SELECT 1 FROM guard WHERE source = ?1);

-- name: unknown-guard
-- The same if none is of the kind ?1, or has that id.
SELECT 'no guard has that kind or id; `dyntrace replay --guards LABEL` lists an entry''s'
WHERE NOT EXISTS (SELECT 1 FROM guard WHERE kind = ?1 OR CAST(guard_id AS TEXT) = ?1);

-- name: frame-end
-- When the call of lookup ?1 ended.
SELECT f.end_ns FROM lookup l JOIN frame f ON f.frame_id = l.frame_id WHERE l.lookup_id = ?1;

-- name: candidates
-- Sizes and numbers that decided recompiles, most first; the columns are those that cause_read() reads.
SELECT substr(r.kind, 1, 200), substr(r.source, 1, 400), r.aspect, r.dimension, substr(r.expected, 1, 400),
       substr(r.actual, 1, 400), substr(r.text, 1, 400), r.guard_id, r.compile_id, r.cache_entry_id
FROM recompile_cause r
WHERE r.aspect IN ('size', 'value') AND r.source LIKE 'L[%'
GROUP BY r.source, r.aspect, r.dimension
ORDER BY COUNT(*) DESC, r.source LIMIT 100;

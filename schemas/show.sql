-- show.sql -- what `dyntrace show` asks about a function (?3: the ids of its code objects, a JSON array), and about
-- one compile (?1: its id). ?2: at most so many rows. The columns are the keys of its JSON.

-- name: torch
-- does a process that it ran in use torch?
SELECT 1 FROM process WHERE torch_version IS NOT NULL
AND process_id IN (SELECT process_id FROM code WHERE code_id IN (SELECT value FROM json_each(?3))) LIMIT 1;

-- name: compiles
-- compiles of a function, or the one that is labelled ?1; ?2: at most so many
SELECT m.compile_id, m.label, m.code_id, m.start_ns, m.end_ns, m.outcome, substr(m.reason, 1, 4000) AS reason, m.sticky,
       e.region_id, e.cache_entry_id, e.label AS entry, e.backend, e.guard_count, e.born_ns, e.died_ns,
       substr(e.death_cause, 1, 2000) AS death_cause
FROM compile m LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id
WHERE m.code_id IN (SELECT value FROM json_each(?3)) AND (?1 IS NULL OR m.label = ?1) ORDER BY m.compile_id LIMIT ?2;

-- name: causes
-- why compile ?1 was needed
SELECT e.label AS older_entry, r.kind, r.source, r.aspect, r.dimension, substr(r.expected, 1, 2000) AS expected,
    substr(r.actual, 1, 2000) AS actual,
       substr(r.text, 1, 2000) AS text, r.how, substr(g.user_stack, 1, 4000) AS user_stack
FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id LEFT JOIN guard g ON g.guard_id = r.guard_id
WHERE r.compile_id = ?1
ORDER BY COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id, r.rowid LIMIT ?2;

-- name: guards
-- the guards of the entry that compile ?1 made
SELECT g.ordinal, g.kind, g.source, substr(g.expression, 1, 2000) AS expression,
    substr(g.user_stack, 1, 4000) AS user_stack
FROM compile m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id
WHERE m.compile_id = ?1 ORDER BY g.ordinal, g.guard_id LIMIT ?2;

-- name: graph_breaks
-- where compile ?1 stopped
SELECT b.line, b.offset, substr(b.reason, 1, 4000) AS reason, substr(b.user_stack, 1, 4000) AS user_stack,
       r.qualname AS resume_function
FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id
WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT ?2;

-- name: graphs
-- the graphs of compile ?1
SELECT graph_id, name, node_count FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT ?2;

-- name: nodes
-- the nodes of graph ?1
SELECT ordinal, opcode, name, substr(target, 1, 2000) AS target, substr(args, 1, 2000) AS args,
       substr(kwargs, 1, 2000) AS kwargs
FROM graph_node WHERE graph_id = ?1 ORDER BY ordinal LIMIT ?2;

-- name: phases
-- where the time of compile ?1 went; a longer phase comes before those that it holds
SELECT COALESCE(name, '?') AS name, start_ns, end_ns FROM compile_phase WHERE compile_id = ?1
ORDER BY start_ns, end_ns DESC LIMIT ?2;

-- name: listings
-- texts that compile ?1 produced
SELECT kind, substr(text, 1, 262144) AS text FROM listing WHERE compile_id = ?1
ORDER BY CASE kind WHEN 'original_bytecode' THEN 0 WHEN 'modified_bytecode' THEN 1 ELSE 2 END, kind LIMIT ?2;

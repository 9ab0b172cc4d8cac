-- One cache entry: guards as a tree, graphs, bytecode.

--title {label:30} of {function:100}
--subject => entry {cache_entry_id} AT {born}
--| entry {!b}{label:40}{!n} of {!b}{function:160}{!n}  {!d}{filename:300}:{first_line}  => function {code_id}
--| backend {backend:80|not known}[, seen by region {region_id} only], born {born:time} s  => compile {compile_id}
--| [{!r}died at {died:time} s: {death_cause:300|cause not known}]
--none the trace has no such entry
SELECT e.cache_entry_id, c.qualname AS function, c.filename, c.first_line, e.label, e.backend, e.region_id, e.born_ns AS born, e.died_ns AS died,
       e.death_cause, e.compile_id, e.code_id
FROM cache_entry e LEFT JOIN code c ON c.code_id = e.code_id WHERE e.cache_entry_id = ?1;

-- A call that compiled an entry ran the entry when the compile had ended.
--slow ...
--| {!style}{hits:count~hit}[{!n}, last used {last:time} s]{never|}  => ledger WHERE cache_entry_id = {cache_entry_id} | its hits
SELECT COALESCE(SUM(outcome = $HIT), 0) AS hits, MAX(iif(outcome = $COMPILED, start_ns + COALESCE(duration_ns, 0), start_ns)) AS last,
       iif(COUNT(*), NULL, ', never used') AS never, iif(SUM(outcome = $HIT) > 0, 'g', 'w') AS style, ?1 AS cache_entry_id
FROM lookup WHERE code_id = (SELECT code_id FROM cache_entry WHERE cache_entry_id = ?1) AND cache_entry_id = ?1;

--# Guards: {count}, as a tree of their sources
--| [{?any}  {!d}    #       ran   failed  source]
--call guards
SELECT COUNT(*) AS count, NULLIF(COUNT(*), 0) AS any FROM (SELECT 1 FROM guard WHERE cache_entry_id = ?1 LIMIT 20000);

--# Graph {graph:80}: {nodes} nodes
--|   {!d}{opcode:<14}{!n} {name:<16} {!a}{target:<28}{!n} {args:200|?}[ {kwargs:160}]
--more 2000   {!d}(more: dyntrace show prints all)
SELECT g.name AS graph, g.node_count AS nodes, n.opcode, n.name, n.target, substr(n.args, 1, 300) AS args,
       NULLIF(NULLIF(substr(n.kwargs, 1, 200), '{}'), '') AS kwargs
FROM graph g JOIN graph_node n ON n.graph_id = g.graph_id
WHERE g.compile_id = (SELECT compile_id FROM cache_entry WHERE cache_entry_id = ?1)
ORDER BY g.graph_id, n.ordinal LIMIT 2001;

--call bytecode
SELECT (SELECT rtrim(replace(substr(text, 1, 400000), char(9), ' '), char(10)) FROM listing WHERE compile_id = e.compile_id AND kind = 'original_bytecode' LIMIT 1),
       (SELECT rtrim(replace(substr(text, 1, 400000), char(9), ' '), char(10)) FROM listing WHERE compile_id = e.compile_id AND kind = 'modified_bytecode' LIMIT 1)
FROM cache_entry e WHERE e.cache_entry_id = ?1;

-- fsck.sql -- what `dyntrace fsck` asks of the tables. A statement is a rule: the comment after its name says what should hold,
-- and each of its rows breaks that; the first column says where. A new rule is a new statement.

-- name: file
-- the file is undamaged (integrity_check)
SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 100;

-- name: thread-process
-- a thread's process exists
SELECT thread_id FROM thread WHERE process_id IS NULL OR process_id NOT IN (SELECT process_id FROM process);

-- name: code-process
-- a code's process exists
SELECT code_id FROM code WHERE process_id IS NULL OR process_id NOT IN (SELECT process_id FROM process);

-- name: code-origin
-- a code's origin exists
SELECT code_id FROM code WHERE origin_code_id IS NOT NULL AND origin_code_id NOT IN (SELECT code_id FROM code);

-- name: totals
-- totals belong to a code and are not negative
SELECT code_id FROM code_total
WHERE code_id NOT IN (SELECT code_id FROM code) OR calls < 0 OR total_ns < 0 OR self_ns < 0 OR raised < 0;

-- name: process-parent
-- a process's parent exists, and is another
SELECT process_id FROM process
WHERE parent_process_id = process_id
   OR (parent_process_id IS NOT NULL AND parent_process_id NOT IN (SELECT process_id FROM process));

-- name: process-span
-- a process ends no earlier than it starts
SELECT process_id FROM process WHERE end_ns < start_ns;

-- name: process-exit
-- a process has an exit code or a signal, not both, and only once it has ended
SELECT process_id FROM process
WHERE (exit_code IS NOT NULL AND exit_signal IS NOT NULL)
   OR (end_ns IS NULL AND (exit_code IS NOT NULL OR exit_signal IS NOT NULL));

-- name: loss
-- a loss has a cause, and its process and thread exist
SELECT rowid FROM loss
WHERE COALESCE(cause, '') = ''
   OR (process_id IS NOT NULL AND process_id NOT IN (SELECT process_id FROM process))
   OR (thread_id IS NOT NULL AND thread_id NOT IN (SELECT thread_id FROM thread));

-- name: compile-code
-- a compile's code exists
SELECT compile_id FROM compile WHERE code_id IS NOT NULL AND code_id NOT IN (SELECT code_id FROM code);

-- name: entry-guards
-- an entry's guards are all there
SELECT e.cache_entry_id FROM cache_entry e LEFT JOIN guard g ON g.cache_entry_id = e.cache_entry_id
GROUP BY e.cache_entry_id HAVING e.guard_count <> COUNT(g.guard_id);

-- name: compile-facts
-- a break, a graph, a cause and a listing belong to a compile
SELECT compile_id FROM (SELECT compile_id FROM graph_break UNION ALL SELECT compile_id FROM graph
                        UNION ALL SELECT compile_id FROM recompile_cause UNION ALL SELECT compile_id FROM listing)
WHERE compile_id IS NULL OR compile_id NOT IN (SELECT compile_id FROM compile);

-- name: graph-nodes
-- a graph's nodes are all there
SELECT g.graph_id FROM graph g LEFT JOIN graph_node n ON n.graph_id = g.graph_id
GROUP BY g.graph_id HAVING g.node_count <> COUNT(n.ordinal);

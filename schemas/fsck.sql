-- fsck.sql -- the rules that `dyntrace fsck` checks. A rule is a statement: the comment after its name tells
-- what should hold, and each row of its result breaks the rule. The first column tells where. A new rule is a
-- new statement.

-- name: file
-- the file is undamaged (integrity_check)
SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 100;

-- name: begun
-- something was recorded in it (a trace that was renamed while it was recorded is under its first name; what was renamed is empty)
SELECT 'meta.state' WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'state') AND NOT EXISTS (SELECT 1 FROM process);

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

-- name: code-kind
-- a code has a kind of the vocabulary, and one that was made from another says which
SELECT code_id FROM code
WHERE COALESCE(kind, '') NOT IN ('function', 'generator', 'coroutine', 'async_generator', 'class', 'module', 'lambda', 'comprehension',
                                 'resume', 'compiled')
   OR (origin_code_id IS NOT NULL AND kind NOT IN ('resume', 'compiled'));

-- name: outcomes
-- the outcomes of `enum` are those of the vocabulary
SELECT o.outcome FROM outcomes o WHERE o.name IS NOT (SELECT name FROM enum WHERE kind = 'outcome' AND value = o.outcome);

-- name: span
-- the recording lasts until its last lookup and compile are over
SELECT key FROM meta
WHERE key = 'span_ns' AND value < MAX((SELECT COALESCE(MAX(start_ns + duration_ns), 0) FROM lookup), (SELECT COALESCE(MAX(end_ns), 0) FROM compile));

-- name: lookup
-- a lookup's call, thread, code and inputs exist, and it is not shorter than nothing
SELECT lookup_id FROM lookup
WHERE frame_id IS NULL OR start_ns IS NULL OR COALESCE(duration_ns, -1) < 0
   OR thread_id IS NULL OR thread_id NOT IN (SELECT thread_id FROM thread)
   OR code_id IS NULL OR code_id NOT IN (SELECT code_id FROM code)
   OR (signature_id IS NOT NULL AND signature_id NOT IN (SELECT signature_id FROM signature));

-- name: lookup-frame
-- a lookup and the frame of its call agree: thread, code, outcome, entry, time
-- If the process was forked during the call, the child has an inherited frame, which begins later. With
-- --keep a lookup may be kept longer than its frame.
SELECT l.lookup_id FROM lookup l LEFT JOIN frame f ON f.frame_id = l.frame_id
WHERE CASE WHEN f.frame_id IS NULL THEN EXISTS (SELECT 1 FROM frame) AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'decisions_only')
                                     AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%' OR events IS NULL)
                                     AND l.start_ns >= COALESCE((SELECT value FROM meta WHERE key = 'kept_from_ns'), l.start_ns)
           ELSE f.kind NOT IN ($FRAME_CALL, $FRAME_INHERITED) OR f.thread_id IS NOT l.thread_id OR f.code_id IS NOT l.code_id
                OR f.outcome IS NOT l.outcome OR f.cache_entry_id IS NOT l.cache_entry_id OR (l.start_ns < f.start_ns AND f.kind = $FRAME_CALL)
                OR l.start_ns + l.duration_ns > f.end_ns END;

-- name: lookup-count
-- lookups that were dropped (--keep) are of code and entries that exist
SELECT rowid FROM lookup_count
WHERE code_id NOT IN (SELECT code_id FROM code) OR cache_entry_id NOT IN (SELECT cache_entry_id FROM cache_entry) OR lookups < 1 OR last_ns < first_ns;

-- name: lookup-once
-- a call is looked up once
SELECT MIN(lookup_id) FROM lookup WHERE frame_id IS NOT NULL GROUP BY frame_id HAVING COUNT(*) > 1;

-- name: lookup-entry
-- a lookup that compiled, or that hit an entry whose guards passed, says which entry
SELECT lookup_id FROM lookup l
WHERE cache_entry_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
  AND (outcome = $COMPILED OR (outcome = $HIT AND EXISTS (SELECT 1 FROM guard_check k WHERE k.lookup_id = l.lookup_id AND k.result = $CHECK_PASS)));

-- name: lookup-compile
-- a lookup that asked the compiler has its compile
-- In a child that was forked during a compile, the compile is the parent's. A lookup that ended in an error
-- may have raised before it asked the compiler.
SELECT lookup_id FROM lookup l
WHERE outcome = $COMPILED AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
  AND NOT EXISTS (SELECT 1 FROM compile m WHERE m.frame_id = l.frame_id AND m.code_id IS l.code_id)
  AND NOT EXISTS (SELECT 1 FROM frame f WHERE f.frame_id = l.frame_id AND f.kind = $FRAME_INHERITED);

-- name: check-guards
-- a check that passed ran all guards of its entry, or those that tell torch's entries apart; one that failed ran those before the guard that failed, and that
-- Guards ran in the order of that moment: by ordinal, or by the last row of the process's guard_orders from
-- before the lookup. If a value cannot be read, the first guard on this value is the one that failed, but a
-- relation of several values may stand later in the order. NULL means not known: only for torch's guards it
-- may be unknown which guard failed, or whether all guards of a passed check ran.
WITH shim AS MATERIALIZED (SELECT c.code_id FROM code c JOIN process p USING (process_id) WHERE p.torch_mode = 'shim'),
failed AS MATERIALIZED (
    SELECT k.guard_check_id, k.failed_guard_id, k.guards_run, l.code_id,
           CASE WHEN k.cache_entry_id IN (SELECT cache_entry_id FROM guard_order) THEN
               (SELECT w.order_id FROM guard_orders w JOIN thread t ON t.process_id = w.process_id
                WHERE w.cache_entry_id = k.cache_entry_id AND t.thread_id = l.thread_id AND w.from_ns <= l.start_ns
                ORDER BY w.from_ns DESC, w.order_id DESC LIMIT 1) END AS order_id
    FROM guard_check k CROSS JOIN lookup l ON l.lookup_id = k.lookup_id
    WHERE k.result NOT IN ($CHECK_PASS, $CHECK_BACKEND_MISMATCH) AND k.guards_run IS NOT NULL AND k.failed_guard_id IS NOT NULL),
place AS MATERIALIZED (
    SELECT f.failed_guard_id, f.order_id,
           COALESCE((SELECT j.key FROM json_each(iif(json_valid(o.ordinals), o.ordinals, '[]')) j WHERE j.value = g.ordinal), g.ordinal) AS place
    FROM (SELECT DISTINCT failed_guard_id, order_id FROM failed) f
    CROSS JOIN guard g ON g.guard_id = f.failed_guard_id LEFT JOIN guard_order o ON o.rowid = f.order_id)
SELECT k.guard_check_id
FROM guard_check k CROSS JOIN lookup l ON l.lookup_id = k.lookup_id CROSS JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id
LEFT JOIN guard g ON g.guard_id = k.failed_guard_id
WHERE k.duration_ns < 0 OR k.duration_ns > l.duration_ns
   OR CASE k.result
      WHEN $CHECK_PASS THEN k.guards_run IS NOT e.guard_count AND NOT (k.guards_run = 0 AND e.code_id IN shim)
      WHEN $CHECK_BACKEND_MISMATCH THEN k.guards_run IS NOT 0
      ELSE k.guards_run NOT BETWEEN 1 AND e.guard_count
        OR (g.guard_id IS NULL AND NOT (k.failed_guard_id IS NULL AND k.guards_run IS NULL AND (k.result = $CHECK_ERROR OR e.code_id IN shim)))
      END
UNION
SELECT f.guard_check_id FROM failed f CROSS JOIN place p ON p.failed_guard_id = f.failed_guard_id AND p.order_id IS f.order_id
WHERE f.guards_run - 1 > p.place OR (f.guards_run - 1 < p.place AND f.code_id IN shim);

-- name: entry
-- an entry's code exists; it dies after its birth, and of something
SELECT cache_entry_id FROM cache_entry
WHERE code_id IS NULL OR code_id NOT IN (SELECT code_id FROM code) OR died_ns < born_ns
   OR (died_ns IS NULL) <> (death_cause IS NULL);

-- name: entry-guards
-- an entry's guards are all there, numbered 0, 1, 2 and so on
SELECT e.cache_entry_id FROM cache_entry e LEFT JOIN guard g ON g.cache_entry_id = e.cache_entry_id
WHERE NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
GROUP BY e.cache_entry_id
HAVING e.guard_count <> COUNT(g.guard_id) OR COUNT(DISTINCT g.ordinal) <> COUNT(g.guard_id) OR MIN(g.ordinal) <> 0
    OR MAX(g.ordinal) <> COUNT(g.guard_id) - 1;

-- name: guard
-- a guard belongs to an entry, and has a kind
SELECT guard_id FROM guard WHERE kind IS NULL OR cache_entry_id IS NULL OR cache_entry_id NOT IN (SELECT cache_entry_id FROM cache_entry);

-- name: guard-order
-- an order of guards names each guard of its entry once, and its process had that entry
SELECT o.rowid FROM guard_order o LEFT JOIN cache_entry e ON e.cache_entry_id = o.cache_entry_id
WHERE e.cache_entry_id IS NULL OR o.from_ns IS NULL OR NOT json_valid(o.ordinals)
   OR NOT EXISTS (SELECT 1 FROM code c JOIN lineage a ON a.ancestor_id = c.process_id WHERE c.code_id = e.code_id AND a.process_id = o.process_id)
   OR e.guard_count <> (SELECT COUNT(DISTINCT j.value) FROM json_each(iif(json_valid(o.ordinals), o.ordinals, '[]')) j
                        WHERE j.value BETWEEN 0 AND e.guard_count - 1)
   OR e.guard_count <> json_array_length(iif(json_valid(o.ordinals), o.ordinals, '[]'));

-- name: compile-code
-- a compile's code and thread exist, and it ends no earlier than it starts
SELECT compile_id FROM compile
WHERE (code_id IS NOT NULL AND code_id NOT IN (SELECT code_id FROM code))
   OR (thread_id IS NOT NULL AND thread_id NOT IN (SELECT thread_id FROM thread)) OR end_ns < start_ns;

-- name: compile-outcome
-- a compile's outcome is of the vocabulary, and 'compiled' if it made an entry; then no call was given up
-- If a process was forked during a compile, child and parent may record different outcomes.
SELECT compile_id FROM compile m
WHERE (outcome NOT IN ('compiled', 'declined', 'skipped', 'limit', 'error') OR (cache_entry_id IS NOT NULL AND outcome IS NOT 'compiled')
       OR sticky NOT IN (0, 1) OR (outcome = 'compiled' AND sticky IS NOT NULL))
  AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
  AND NOT EXISTS (SELECT 1 FROM process p WHERE p.parent_process_id IS NOT NULL AND p.start_ns BETWEEN m.start_ns AND m.end_ns);

-- name: compile-entry
-- a compile and the entry that it made name each other, have one label and one code, and the entry was born meanwhile
SELECT m.compile_id FROM compile m LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id
WHERE m.cache_entry_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
  AND (e.compile_id IS NOT m.compile_id OR e.code_id IS NOT m.code_id OR e.label IS NOT m.label OR e.born_ns < m.start_ns OR e.born_ns > m.end_ns)
UNION ALL
SELECT e.compile_id FROM cache_entry e LEFT JOIN compile m ON m.compile_id = e.compile_id
WHERE e.compile_id IS NOT NULL AND m.cache_entry_id IS NOT e.cache_entry_id AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%');

-- name: compile-frame
-- a compile and the frame for which it ran agree: thread, code, time, what came of it
SELECT m.compile_id FROM compile m JOIN frame f ON f.frame_id = m.frame_id
WHERE (f.thread_id IS NOT m.thread_id OR f.code_id IS NOT m.code_id OR m.start_ns < f.start_ns OR m.end_ns > f.end_ns
       OR CASE m.outcome WHEN 'compiled' THEN f.outcome <> $COMPILED OR f.cache_entry_id IS NOT m.cache_entry_id WHEN 'limit' THEN f.outcome <> $LIMIT
                         WHEN 'error' THEN f.outcome <> $CALLBACK_ERROR WHEN 'declined' THEN f.outcome <> $DECLINED WHEN 'skipped' THEN f.outcome <> $DECLINED END)
  AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'facts:%')
  AND NOT EXISTS (SELECT 1 FROM process p WHERE p.parent_process_id IS NOT NULL AND p.start_ns BETWEEN m.start_ns AND m.end_ns);

-- name: compile-phase
-- a phase belongs to its compile, and ends no earlier than it starts
-- A compile during which its process died has no label.
SELECT p.rowid FROM compile_phase p LEFT JOIN compile m ON m.compile_id = p.compile_id
WHERE p.name IS NULL OR p.end_ns < p.start_ns
   OR (p.compile_id IS NOT NULL AND (m.compile_id IS NULL OR (p.label <> '' AND p.label IS NOT m.label AND m.end_ns IS NOT NULL)));

-- name: code-mark
-- a mark is on a code, says since when, and what is done with its calls
SELECT rowid FROM code_mark
WHERE code_id IS NULL OR code_id NOT IN (SELECT code_id FROM code) OR at_ns IS NULL
   OR COALESCE(action, '') NOT IN ('default', 'skip', 'run_only') OR recursive_action NOT IN ('default', 'skip', 'run_only');

-- name: compile-facts
-- a break, a graph, a cause and a listing belong to a compile
SELECT compile_id FROM (SELECT compile_id FROM graph_break UNION ALL SELECT compile_id FROM graph
                        UNION ALL SELECT compile_id FROM recompile_cause UNION ALL SELECT compile_id FROM listing)
WHERE compile_id IS NULL OR compile_id NOT IN (SELECT compile_id FROM compile);

-- name: cause
-- a cause names an older entry of the same code, a guard of it, and that guard's kind
SELECT r.rowid
FROM recompile_cause r
LEFT JOIN compile m ON m.compile_id = r.compile_id
LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id
LEFT JOIN guard g ON g.guard_id = r.guard_id
WHERE COALESCE(r.how, '') NOT IN ('observed', 're-checked', 're-checked in part') OR r.ordinal < 0
   OR (r.cache_entry_id IS NOT NULL AND (e.code_id IS NOT m.code_id OR e.born_ns > m.end_ns OR e.compile_id IS m.compile_id))
   OR (r.guard_id IS NOT NULL AND (g.cache_entry_id IS NOT r.cache_entry_id OR g.kind IS NOT r.kind));

-- name: cause-check
-- what decided is the guard that failed in the lookup, if that was seen, and every entry that did not fit has its cause
SELECT COALESCE(r.rowid, 'compile ' || m.compile_id)
FROM lookup l
CROSS JOIN compile m ON m.frame_id = l.frame_id AND m.code_id = l.code_id
CROSS JOIN guard_check k ON k.lookup_id = l.lookup_id AND k.result <> $CHECK_PASS
LEFT JOIN recompile_cause r ON r.compile_id = m.compile_id AND r.cache_entry_id = k.cache_entry_id AND r.ordinal = 0
    AND (r.how = 'observed' OR k.failed_guard_id IS NULL)
WHERE l.outcome = $COMPILED AND (r.rowid IS NULL OR (r.guard_id IS NOT k.failed_guard_id AND k.failed_guard_id IS NOT NULL));

-- name: graph-break
-- a break is in its compile's code, and what is behind it is a rest of that
-- With nested_graph_breaks the break may be in an inlined function. Then the stack has both functions, and
-- the resume function may be the rest of either.
WITH breaks AS (SELECT b.*, m.code_id AS compiled, '[' || replace(json_quote(b.user_stack), '\n', '","') || ']' AS lines
                FROM graph_break b LEFT JOIN compile m ON m.compile_id = b.compile_id)
SELECT b.graph_break_id
FROM breaks b LEFT JOIN code o ON o.code_id = b.code_id LEFT JOIN code m ON m.code_id = b.compiled LEFT JOIN code r ON r.code_id = b.resume_code_id
WHERE (b.code_id IS NOT NULL AND o.code_id IS NULL)
   OR (b.code_id IS NOT b.compiled AND IIF(json_valid(b.lines), NOT EXISTS (
           SELECT 1 FROM json_each(b.lines) j
           WHERE instr(j.value, ', line ' || b.line || ', in ') AND instr(o.qualname, substr(j.value, instr(j.value, ', in ') + 5))
             AND instr(m.qualname, substr(b.lines ->> '$[0]', instr(b.lines ->> '$[0]', ', in ') + 5))), 1))
   OR (b.resume_code_id IS NOT NULL AND (r.kind IS NOT 'resume' OR r.origin_code_id NOT IN (b.code_id, m.code_id, IFNULL(o.origin_code_id, 0), IFNULL(m.origin_code_id, 0))));

-- name: graph-nodes
-- a graph's nodes are all there, numbered 0, 1, 2 and so on, and what torch skipped has none
SELECT g.graph_id FROM graph g LEFT JOIN graph_node n ON n.graph_id = g.graph_id
GROUP BY g.graph_id HAVING g.node_count <> COUNT(n.ordinal) OR MIN(n.ordinal) <> 0 OR MAX(n.ordinal) <> COUNT(n.ordinal) - 1
UNION ALL
SELECT graph_id FROM graph_node WHERE graph_id NOT IN (SELECT graph_id FROM graph) GROUP BY graph_id
UNION ALL
SELECT g.graph_id FROM graph g JOIN compile m USING (compile_id) WHERE m.outcome = 'skipped';

-- name: listing
-- a listing has a kind and a text
SELECT rowid FROM listing WHERE kind IS NULL OR text IS NULL;

-- name: signature
-- inputs have a text
SELECT signature_id FROM signature WHERE text IS NULL;

-- name: span-row
-- a span has a kind, a name, a thread and a start, ends no earlier, and its attributes are a JSON object
SELECT span_id FROM span
WHERE name IS NULL OR COALESCE(kind, '') NOT IN ('span', 'record_function', 'nvtx')
   OR thread_id IS NULL OR thread_id NOT IN (SELECT thread_id FROM thread)
   OR COALESCE(start_ns, -1) < 0 OR end_ns < start_ns
   OR (attributes IS NOT NULL AND iif(json_valid(attributes), json_type(attributes), 'none') <> 'object');

-- name: span-parent
-- a span's parent exists, began no later, and belongs to the same process or to one that it was forked from
SELECT s.span_id
FROM span s LEFT JOIN span u ON u.span_id = s.parent_span_id
LEFT JOIN thread t ON t.thread_id = s.thread_id LEFT JOIN thread w ON w.thread_id = u.thread_id
WHERE s.parent_span_id IS NOT NULL
  AND CASE WHEN u.span_id IS NULL THEN NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%' OR events IS NULL)
           WHEN u.span_id = s.span_id OR u.start_ns > s.start_ns THEN 1
           WHEN w.process_id IS t.process_id THEN u.span_id > s.span_id
           ELSE NOT EXISTS (SELECT 1 FROM lineage a WHERE a.process_id = t.process_id AND a.ancestor_id = w.process_id) END;

-- name: span-frame
-- a span began within its frame, on the frame's thread
SELECT s.span_id FROM span s LEFT JOIN frame f ON f.frame_id = s.frame_id
WHERE s.frame_id IS NOT NULL
  AND CASE WHEN f.frame_id IS NULL THEN EXISTS (SELECT 1 FROM frame) AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'decisions_only')
                                     AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%' OR events IS NULL)
           ELSE f.thread_id IS NOT s.thread_id OR f.end_ns < s.start_ns OR (f.start_ns > s.start_ns AND f.kind <> $FRAME_INHERITED) END;

-- name: call-args
-- recorded arguments are a JSON object and belong to a call, a result is JSON and belongs to a frame that returned
SELECT a.frame_id FROM call_args a LEFT JOIN frame f ON f.frame_id = a.frame_id
WHERE (a.arguments IS NOT NULL AND iif(json_valid(a.arguments), json_type(a.arguments), 'none') <> 'object')
   OR (a.result IS NOT NULL AND NOT json_valid(a.result))
   OR CASE WHEN f.frame_id IS NULL THEN EXISTS (SELECT 1 FROM frame) AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'decisions_only')
                                     AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%' OR events IS NULL)
           ELSE (a.arguments IS NOT NULL AND f.kind <> $FRAME_CALL) OR (a.result IS NOT NULL AND f.exit IN ($EXIT_RAISE, $EXIT_YIELD)) END;

-- name: uncaught
-- an exception that ended a process lies in the time of that process, in a function that exists
SELECT u.process_id FROM uncaught u LEFT JOIN process p ON p.process_id = u.process_id
WHERE p.process_id IS NULL OR u.at_ns < p.start_ns OR u.at_ns > p.end_ns OR u.code_id NOT IN (SELECT code_id FROM code);

-- name: thread-cpu
-- the processor time of a thread, and its time in the queue, only grow
SELECT thread_id || ' at ' || at_ns
FROM (SELECT *, LAG(cpu_ns, 1, 0) OVER earlier AS cpu_before, LAG(queued_ns, 1, 0) OVER earlier AS queued_before
      FROM thread_cpu WINDOW earlier AS (PARTITION BY thread_id ORDER BY at_ns))
WHERE thread_id NOT IN (SELECT thread_id FROM thread) OR at_ns < 0 OR COALESCE(cpu_ns < cpu_before, 1) OR COALESCE(queued_ns < queued_before, 1);

-- name: stretch
-- a stretch has a thread and a code, overlaps no other of its thread, and what was measured of it fits into it
SELECT thread_id || ' at ' || start_ns
FROM (SELECT *, LAG(end_ns, 1, 0) OVER (PARTITION BY thread_id ORDER BY start_ns) AS end_before FROM stretch)
WHERE thread_id NOT IN (SELECT thread_id FROM thread) OR code_id IS NULL OR code_id NOT IN (SELECT code_id FROM code)
   OR COALESCE(end_ns < start_ns, 1) OR start_ns < end_before
   OR (ran_ns IS NULL) <> (waited_ns IS NULL) OR (ran_ns IS NULL) <> (queued_ns IS NULL)
   OR ran_ns NOT BETWEEN 0 AND end_ns - start_ns OR waited_ns NOT BETWEEN 0 AND end_ns - start_ns OR queued_ns NOT BETWEEN 0 AND waited_ns;

-- name: stretch-frame
-- a stretch lies within its frame
SELECT s.thread_id || ' at ' || s.start_ns FROM stretch s JOIN frame f ON f.frame_id = s.frame_id
WHERE f.thread_id IS NOT s.thread_id OR f.end_ns < s.end_ns OR (f.start_ns > s.start_ns AND f.kind <> $FRAME_INHERITED);

-- name: frame-count
-- frames that were counted have a code, a phase and an outcome, and their sums are those of so many frames
-- A row with 0 frames belongs to a caller of counted frames. In recursion only the outermost frame adds to
-- total_ns, and it may be in another row.
SELECT n.rowid FROM frame_count n
WHERE n.code_id IS NULL OR n.code_id NOT IN (SELECT code_id FROM code)
   OR NOT EXISTS (SELECT 1 FROM enum e WHERE e.kind = 'phase' AND e.value = n.phase)
   OR NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.outcome = n.outcome)
   OR COALESCE(n.frames, -1) < 0 OR COALESCE(n.calls, -1) NOT BETWEEN 0 AND n.frames OR COALESCE(n.raised, -1) NOT BETWEEN 0 AND n.frames
   OR COALESCE(MIN(n.total_ns, n.self_ns), -1) < 0 OR (n.frames > 0 AND COALESCE(n.max_ns < 0 OR n.first_ns > n.last_ns, 1)) OR n.inner_ns IS NULL;

-- name: frame-count-once
-- frames of one code, phase and outcome are counted in one row
SELECT MIN(rowid) FROM frame_count GROUP BY code_id, phase, outcome HAVING COUNT(*) > 1;

-- report.sql -- what `dyntrace report` asks: a statement for each part of the page, which its three forms share. Rows
-- come in the order in which they matter; how many are shown is up to the form. Calls it counts itself
-- (src/trace/counts.h).

-- name: losses
-- Many losses have one cause: a row per cause, the worst first.
SELECT cause, COUNT(*) AS times, SUM(events) AS events, MIN(at_ns) AS first_ns, MAX(at_ns) AS last_ns,
       COUNT(DISTINCT process_id) AS processes, is_stall
FROM losses
GROUP BY cause
ORDER BY is_stall, events DESC;

-- name: torch
-- Which torch there was, a row per version and way of watching it.
SELECT torch_version, torch_mode, torch_note, COUNT(*) AS processes
FROM process
WHERE torch_version IS NOT NULL
GROUP BY torch_version, torch_mode, torch_note
ORDER BY processes DESC, torch_version;

-- name: words
-- The words of the JSON array ?1 with blanks between them; what is none as it is.
SELECT CASE WHEN json_valid(?1) THEN (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '[]' END))
       ELSE ?1 END;

-- name: processes
SELECT t.process_id, p.pid, p.parent_process_id, t.depth, p.rank, p.local_rank,
       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv, p.executable,
       p.python_version, p.torch_version, p.mode, p.torch_mode, p.torch_note, p.start_ns, p.end_ns, p.exit_code,
       p.exit_signal,
       (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) AS threads,
       p.end_ns - p.start_ns AS ran_ns, p.argv AS given
FROM process_tree t
JOIN process p ON p.process_id = t.process_id
ORDER BY t.path;

-- name: any_process
-- Are there ranks of a distributed job, is there a torch?
SELECT COUNT(rank) > 0, COUNT(torch_version) > 0 FROM process;

-- name: threads
SELECT t.thread_id, t.process_id, p.pid, t.os_tid, t.name
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
ORDER BY t.process_id, t.thread_id;

-- name: compile_sums
-- All compiles in a row.
SELECT COUNT(cache_entry_id) AS made, COUNT(DISTINCT CASE WHEN cache_entry_id IS NOT NULL THEN code_id END) AS code_objects,
       SUM(compile_ns) AS compile_ns, SUM(is_recompile) AS recompiles,
       (SELECT COUNT(*) FROM graph_break) AS graph_breaks,
       COUNT(DISTINCT CASE WHEN outcome = 'limit' THEN code_id END) AS limits, SUM(outcome IS 'error') AS errors,
       SUM(cache_entry_id IS NULL AND outcome IS NOT 'error') AS without_code, COUNT(*) AS tries
FROM compiles;

-- name: compiles
-- What was compiled, a row per function. What torch only turned away (its own functions, those without tensors) is in
-- the query `skips`.
WITH broken AS MATERIALIZED (SELECT compile_id, COUNT(*) AS breaks FROM graph_break GROUP BY compile_id)
SELECT m.qualname, m.filename, m.first_line, COUNT(m.cache_entry_id) AS compiles, SUM(m.is_recompile) AS recompiles,
       COALESCE(SUM(b.breaks), 0) AS graph_breaks, SUM(m.cache_entry_id IS NULL) AS without_code,
       SUM(m.compile_ns) AS compile_ns,
       SUM(m.outcome IS 'limit') AS limits, SUM(m.outcome IS 'error') AS errors,
       iif(SUM(m.outcome IS 'limit') > 0, 'at the limit', '') || iif(SUM(m.outcome IS 'limit') > 0 AND SUM(m.outcome IS 'error') > 0, ', ', '')
       || CASE SUM(m.outcome IS 'error') WHEN 0 THEN '' WHEN 1 THEN 'failed 1 time' ELSE 'failed ' || SUM(m.outcome IS 'error') || ' times' END
       AS ended
FROM compiles m
LEFT JOIN broken b ON b.compile_id = m.compile_id
GROUP BY m.filename, m.qualname, m.first_line
HAVING COUNT(m.cache_entry_id) + SUM(m.outcome IS 'limit') + SUM(m.outcome IS 'error') > 0
ORDER BY recompiles DESC, graph_breaks DESC, compile_ns DESC, m.qualname;

-- name: causes
-- The guards that decided recompiles, by function and by what they looked at. What they saw is a list in order, of the
-- first hundred.
WITH decided AS MATERIALIZED (
    SELECT k.compile_id, k.qualname, k.filename, k.first_line, k.start_ns, k.kind, k.source,
           MIN(k.expected) AS expected, k.actual,
           COALESCE(k.text, '') AS text, k.how
    FROM compiles m JOIN recompile_causes k ON k.compile_id = m.compile_id
    WHERE m.is_recompile AND k.decided
    GROUP BY k.compile_id, k.kind, k.source
    ORDER BY k.compile_id
),
ranked AS MATERIALIZED (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY filename, qualname, first_line, kind, source ORDER BY compile_id) AS n FROM decided
)
SELECT qualname, filename, first_line, COUNT(DISTINCT compile_id) AS recompiles, kind, source,
       MAX(CASE WHEN n = 1 THEN expected END) AS expected,
       group_concat(CASE WHEN n <= 100 THEN substr(actual, 1, 100) END, ', ') AS seen,
       MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns, substr(MAX(text), 1, 1000) AS text, MIN(how) AS how,
       COALESCE(source, substr(MAX(text), 1, 1000)) AS looked_at
FROM ranked
GROUP BY filename, qualname, first_line, kind, source
ORDER BY recompiles DESC, first_ns, kind, source;

-- name: recompiles
-- Each recompile, with what decided it in each of the older entries.
SELECT k.compile_id, k.label, k.start_ns, k.compile_ns, k.qualname, k.filename, k.first_line, k.older_entry, k.kind,
       k.source,
       k.expected, k.actual, substr(k.text, 1, 2000) AS text, k.how
FROM compiles m
JOIN recompile_causes k ON k.compile_id = m.compile_id
WHERE m.is_recompile AND k.decided
ORDER BY k.compile_id, k.cache_entry_id;

-- name: breaks
-- Breaks differ in the first line of the reason; the rest is the same for all that begin so.
SELECT p.qualname, p.filename, p.first_line, p.line, p.times, p.what, p.reason, p.user_stack,
       r.qualname AS resume_function,
       COALESCE(p.line, p.first_line) AS at_line
FROM (SELECT c.qualname, c.filename, c.first_line, b.line, COUNT(*) AS times,
             substr(b.reason, 1, instr(substr(b.reason, 1, 500) || char(10), char(10)) - 1) AS what,
             substr(MAX(b.reason), 1, 4000) AS reason, substr(MAX(b.user_stack), 1, 4000) AS user_stack,
             MAX(b.resume_code_id) AS resume_code_id
      FROM graph_break b
      LEFT JOIN compile m ON m.compile_id = b.compile_id
      LEFT JOIN code c ON c.code_id = COALESCE(b.code_id, m.code_id)
      GROUP BY c.filename, c.qualname, c.first_line, b.line, what) p
LEFT JOIN code r ON r.code_id = p.resume_code_id
ORDER BY p.times DESC, p.filename, p.line, p.what;

-- name: limits
-- Functions at their limit, and since when.
SELECT qualname, filename, first_line, MIN(start_ns) AS at_ns, COUNT(*) AS times, substr(MIN(reason), 1, 1000) AS reason
FROM compiles
WHERE outcome = 'limit'
GROUP BY filename, qualname, first_line
ORDER BY at_ns;

-- name: guards
SELECT kind, source, evaluations, failures, CAST(estimated_ns AS INTEGER) AS estimated_ns, entries
FROM guard_bill
ORDER BY 5 DESC, evaluations DESC, kind, source;

-- name: functions
SELECT qualname, filename, first_line, kind, calls, total_ns, self_ns, ns_per_call, raised
FROM hot_functions
ORDER BY self_ns DESC, calls DESC;

-- name: meta
-- With 1 for what is JSON already.
SELECT key, CAST(CASE WHEN key = 'command' AND json_valid(value) THEN json(value) ELSE value END AS TEXT),
       typeof(value) = 'integer' OR (key = 'command' AND json_valid(value))
FROM meta;

-- name: compiling_threads
SELECT DISTINCT thread_id FROM compile WHERE cache_entry_id IS NOT NULL OR outcome = 'error';

-- name: longest_compiles
-- For the timeline.
SELECT m.thread_id, m.code_id, m.start_ns, m.end_ns, m.label, m.outcome,
       (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id) AS breaks
FROM compile m
WHERE m.end_ns IS NOT NULL AND (m.cache_entry_id IS NOT NULL OR m.outcome = 'error')
ORDER BY m.end_ns - m.start_ns DESC
LIMIT 4000;

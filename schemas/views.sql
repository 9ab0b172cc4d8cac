-- views.sql -- the named questions about a trace. The tables are explained in trace.sql.
--
-- Views that read `frame` or `lookup` from end to end say so: on a long recording those take minutes.


-- frames: every frame, spelled out. Reads `frame`; give it a range of frame_id or a LIMIT.
CREATE VIEW frames AS
SELECT f.frame_id, f.parent_id, t.process_id, p.pid, f.thread_id, t.name AS thread, f.code_id,
       c.qualname, c.filename, c.first_line, c.kind AS code_kind,
       (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) AS kind,
       (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) AS outcome,
       (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) AS exit,
       f.start_ns, f.end_ns, f.end_ns - f.start_ns AS duration_ns, f.cache_entry_id
FROM frame f
LEFT JOIN code c ON c.code_id = f.code_id
LEFT JOIN thread t ON t.thread_id = f.thread_id
LEFT JOIN process p ON p.process_id = t.process_id;


-- hot_functions: where the time went, most own time first. A function that ran in several processes is one row.
-- Reads the live totals, so it is quick and includes frames that were too short to be stored.
CREATE VIEW hot_functions AS
SELECT c.qualname, c.filename, c.first_line, c.kind,
       SUM(n.calls) AS calls, SUM(n.total_ns) AS total_ns, SUM(n.self_ns) AS self_ns, SUM(n.raised) AS raised,
       SUM(n.total_ns) / NULLIF(SUM(n.calls), 0) AS ns_per_call,
       MIN(n.code_id) AS code_id, COUNT(*) AS code_objects
FROM code_total n
LEFT JOIN code c ON c.code_id = n.code_id
GROUP BY c.filename, c.qualname, c.first_line, c.kind
ORDER BY self_ns DESC;


-- losses: what is missing, with names.
CREATE VIEW losses AS
SELECT l.process_id, p.pid, l.thread_id, t.name AS thread, l.at_ns, l.events, l.cause,
       l.cause LIKE 'stall:%' AS is_stall
FROM loss l
LEFT JOIN process p ON p.process_id = l.process_id
LEFT JOIN thread t ON t.thread_id = l.thread_id;


-- call_ledger: a row per call of code that the compiler watches: how it was decided and what that cost.
-- Reads `lookup`.
CREATE VIEW call_ledger AS
SELECT l.lookup_id, l.frame_id, t.process_id, l.thread_id, l.code_id, c.qualname, c.filename, c.first_line,
       (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome,
       l.cache_entry_id, e.label AS entry, l.entries_checked,
       l.start_ns, l.duration_ns AS lookup_ns,
       f.start_ns AS frame_start_ns, f.end_ns AS frame_end_ns, f.end_ns - f.start_ns AS frame_ns,
       s.text AS signature
FROM lookup l
LEFT JOIN frame f ON f.frame_id = l.frame_id
LEFT JOIN thread t ON t.thread_id = l.thread_id
LEFT JOIN code c ON c.code_id = l.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN signature s ON s.signature_id = l.signature_id;


-- cache_entries: the life of each entry: born, how often tried and hit, last used, died. A use is a hit, or the
-- call that compiled it, which ran it when the lookup was over. Reads `lookup` and `guard_check`.
CREATE VIEW cache_entries AS
SELECT e.cache_entry_id, e.code_id, c.qualname, c.filename, c.first_line, e.compile_id, e.label, e.backend,
       e.region_id, e.guard_count, e.born_ns,
       COALESCE(tries.tried, 0) AS tried, COALESCE(uses.hit, 0) AS hit, uses.last_use_ns,
       e.died_ns, e.death_cause
FROM cache_entry e
LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN (SELECT cache_entry_id, COUNT(*) AS tried FROM guard_check GROUP BY cache_entry_id) tries
       ON tries.cache_entry_id = e.cache_entry_id
LEFT JOIN (SELECT cache_entry_id, SUM(outcome = 1) AS hit, MAX(iif(outcome = 2, start_ns + COALESCE(duration_ns, 0), start_ns)) AS last_use_ns
           FROM lookup WHERE outcome IN (1, 2) GROUP BY cache_entry_id) uses
       ON uses.cache_entry_id = e.cache_entry_id;


-- recompile_causes: why each recompile was needed: which guard of which older entry, what it wanted, what it saw.
CREATE VIEW recompile_causes AS
SELECT r.compile_id, m.label, m.code_id, c.qualname, c.filename, c.first_line, m.start_ns,
       m.end_ns - m.start_ns AS compile_ns,
       r.cache_entry_id, e.label AS older_entry, r.ordinal, r.guard_id, r.kind, r.source, r.aspect, r.dimension,
       r.expected, r.actual, r.text, r.how
FROM recompile_cause r
LEFT JOIN compile m ON m.compile_id = r.compile_id
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id
ORDER BY r.compile_id, r.cache_entry_id, r.ordinal;


-- graph_breaks: where compiles stopped, why, and the function that runs the rest.
CREATE VIEW graph_breaks AS
SELECT b.graph_break_id, b.compile_id, m.label, b.code_id, c.qualname, c.filename, b.line, b.offset, b.reason,
       b.user_stack, b.resume_code_id, r.qualname AS resume_function
FROM graph_break b
LEFT JOIN compile m ON m.compile_id = b.compile_id
LEFT JOIN code c ON c.code_id = b.code_id
LEFT JOIN code r ON r.code_id = b.resume_code_id;


-- compile_phases: where compiles spent their time. Phases lie within one another.
CREATE VIEW compile_phases AS
SELECT p.compile_id, COALESCE(m.label, p.label) AS label, m.code_id, c.qualname, c.filename, c.first_line, p.name,
       p.start_ns, p.end_ns, p.end_ns - p.start_ns AS duration_ns
FROM compile_phase p
LEFT JOIN compile m ON m.compile_id = p.compile_id
LEFT JOIN code c ON c.code_id = m.code_id;


-- code_marks: since when calls of a function, or those that it makes, are not compiled any more, and why.
CREATE VIEW code_marks AS
SELECT k.code_id, c.qualname, c.filename, c.first_line, k.at_ns, k.action, k.recursive_action, k.region_id, k.reason
FROM code_mark k
LEFT JOIN code c ON c.code_id = k.code_id;


-- guard_evaluation: a row for each guard that ran. Those before the end of a check passed; the one that ended it
-- has the check's own result. share_ns is an estimate: the check's time divided evenly among the guards that ran.
CREATE VIEW guard_evaluation AS
SELECT k.guard_check_id, k.lookup_id, k.position, k.cache_entry_id, g.guard_id, g.ordinal, g.kind, g.source,
       g.expression,
       CASE WHEN g.guard_id = k.failed_guard_id THEN k.result ELSE 'pass' END AS result,
       k.duration_ns * 1.0 / NULLIF(k.guards_run, 0) AS share_ns
FROM guard_check k
JOIN lookup l ON l.lookup_id = k.lookup_id
JOIN guard g ON g.cache_entry_id = k.cache_entry_id
LEFT JOIN guard_order o ON o.rowid = (SELECT w.rowid FROM guard_order w WHERE w.cache_entry_id = k.cache_entry_id
                                      AND w.from_ns <= l.start_ns ORDER BY w.from_ns DESC, w.rowid DESC LIMIT 1)
WHERE g.guard_id = k.failed_guard_id
   OR COALESCE((SELECT j.key FROM json_each(o.ordinals) j WHERE j.value = g.ordinal), g.ordinal) < k.guards_run;


-- guard_bill: what guards cost over the whole run, by kind and source, dearest first. The time is an estimate,
-- see guard_evaluation. Reads `guard_check`.
CREATE VIEW guard_bill AS
SELECT kind, source, COUNT(*) AS evaluations, SUM(result <> 'pass') AS failures, SUM(share_ns) AS estimated_ns
FROM guard_evaluation
GROUP BY kind, source
ORDER BY estimated_ns DESC;

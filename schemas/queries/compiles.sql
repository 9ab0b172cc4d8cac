-- Compiles in order: what, when, how long, and whether it succeeded
--
-- Why: The history of a run, and the ids that `why`, `show` and other queries use.
-- Columns: compile_id: the id for other queries; label: the compiler's name for the compile;
--   qualname, filename, first_line: the function; start_s: when it began; ms: how long it took;
--   outcome: what came of it; sticky: 1 if the function is not compiled again; reason: why it gave
--   no code, or why it was needed; backend, region_id: those of the entry that it made;
--   graph_breaks: how many graph breaks it had.
SELECT m.compile_id, m.label, c.qualname, c.filename, c.first_line, round(m.start_ns / 1e9, 6) AS start_s,
       round((m.end_ns - m.start_ns) / 1e6, 3) AS ms, m.outcome, m.sticky,
       substr(m.reason, 1, instr(m.reason || char(10), char(10)) - 1) AS reason, e.backend, e.region_id,
       (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id) AS graph_breaks
FROM compile m
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id
ORDER BY m.compile_id
LIMIT 1000;

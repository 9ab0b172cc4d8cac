-- Compiles in order: what, when, how long, and whether it succeeded
--
-- Why: The history of a run, and the ids that `why`, `show` and other queries speak of.
-- Columns: compile_id: for other queries; label: the compiler's name; qualname, filename, first_line: the function;
--   start_s: when; ms: how long; outcome: what came of it; sticky: 1 when it is not tried again; reason: why not, or
--   why it was asked for; backend, region_id: of the entry made; graph_breaks: in it.
SELECT m.compile_id, m.label, c.qualname, c.filename, c.first_line, round(m.start_ns / 1e9, 6) AS start_s,
       round((m.end_ns - m.start_ns) / 1e6, 3) AS ms, m.outcome, m.sticky,
       substr(m.reason, 1, instr(m.reason || char(10), char(10)) - 1) AS reason, e.backend, e.region_id,
       (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id) AS graph_breaks
FROM compile m
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id
ORDER BY m.compile_id
LIMIT 1000;

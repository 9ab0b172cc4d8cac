-- check.sql -- the statements of `dyntrace check`. C counts calls and the times of guards
-- (src/trace/counts.h) and stores them in the table `counted`. The statement of each limit then
-- adds to `found` what counts against the limit.

-- name: tables
-- The calls of a function in a process after the warm-up: all calls; those from which shares are
-- computed (asked); those of them that ran as Python; and those that ran compiled code. A call is
-- after the warm-up if it began at warm_ns or later.
CREATE TEMP TABLE counted(
    code_id INTEGER, process_id INTEGER, calls INTEGER, asked INTEGER, python INTEGER, compiled INTEGER, warm_ns INTEGER,
    guard_ns INTEGER, guards INTEGER, outcomes TEXT, PRIMARY KEY (code_id, process_id));
-- The code objects that --function names. An empty table means all code objects.
CREATE TEMP TABLE meant(code_id INTEGER PRIMARY KEY);
CREATE TEMP TABLE limits(limit_id INTEGER PRIMARY KEY, name TEXT, allowed REAL, function TEXT);
-- amount: the number that is compared with the limit, for the row's process or function.
CREATE TEMP TABLE found(
    limit_id INTEGER, amount REAL, process_id INTEGER, code_id INTEGER, calls INTEGER, compile_id INTEGER, why TEXT);
CREATE TEMP VIEW offending AS
SELECT f.rowid AS place, f.*, l.name, l.allowed, l.function FROM found f JOIN limits l ON l.limit_id = f.limit_id
WHERE CASE WHEN l.function IS NULL THEN f.amount > l.allowed ELSE f.amount = 0 END;

-- name: count
INSERT INTO counted VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (code_id, process_id) DO UPDATE
SET calls = calls + excluded.calls, asked = asked + excluded.asked, python = python + excluded.python,
    compiled = compiled + excluded.compiled;

-- name: meant
-- Find the code objects that ?1, a JSON array of globs, names. The resume functions of a function
-- belong to it.
WITH RECURSIVE m(code_id) AS (
    SELECT code_id FROM code c
    WHERE EXISTS (SELECT 1 FROM json_each(?1) g WHERE c.qualname GLOB g.value OR c.qualname GLOB '*.' || g.value
                  OR c.filename GLOB g.value)
    UNION
    SELECT c.code_id FROM m JOIN code c ON c.origin_code_id = m.code_id
)
INSERT INTO meant SELECT code_id FROM m;

-- name: limit
INSERT INTO limits VALUES (?1, ?2, ?3, ?4);

-- The statements below find what counts against a limit. ?1 is the limit, ?2 the number of calls of
-- the warm-up.

-- name: compiles
-- Compiles that made code. For a limit of 0 these are only recompiles; if the user asked for a part
-- of the trace, then only recompiles in a cache that held an entry in this part.
INSERT INTO found
SELECT ?1, COUNT(*) OVER (PARTITION BY m.process_id), m.process_id, m.code_id, COALESCE(n.calls, 0), m.compile_id,
       COALESCE(cause_words(k.kind, k.source, k.aspect, k.dimension, substr(k.expected, 1, 400), substr(k.actual, 1, 400), substr(k.text, 1, 1000)),
                substr(as_written(substr(COALESCE(k.why, m.reason), 1, 4000)), 1, min(400, instr(COALESCE(k.why, m.reason) || char(10), char(10)) - 1)))
       || COALESCE('; needed by ' || needed_by(substr(g.user_stack, 1, 4000), substr(k.text, 1, 1000), c.qualname), '')
FROM compiles m
LEFT JOIN recompile_causes k ON k.cause_id = m.cause_id
LEFT JOIN guard g ON g.guard_id = k.guard_id
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN counted n ON n.code_id = m.code_id AND n.process_id = m.process_id
WHERE m.cache_entry_id IS NOT NULL AND (?1 > 0 OR m.is_recompile)
  AND (?1 > 0 OR NOT EXISTS (SELECT 1 FROM asked) OR EXISTS (
      SELECT 1 FROM cache_entry e LEFT JOIN compile k ON k.compile_id = e.compile_id LEFT JOIN thread t ON t.thread_id = k.thread_id
      WHERE e.code_id = m.code_id AND e.cache_entry_id <> m.cache_entry_id AND e.born_ns <= COALESCE(m.end_ns, m.start_ns)
        AND COALESCE(e.died_ns >= (SELECT from_ns FROM part_window), 1)
        AND COALESCE(t.process_id, m.process_id) IN (SELECT ancestor_id FROM lineage l WHERE l.process_id = m.process_id)))
  AND (m.code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant)) AND COALESCE(m.start_ns >= n.warm_ns, ?2 = 0)
  AND (m.compile_id IN part_compile OR NOT EXISTS (SELECT 1 FROM asked))
ORDER BY m.process_id, m.start_ns, m.compile_id;

-- name: breaks
-- Graph breaks of compiles. If a compile happened during the warm-up, its breaks count if a later
-- call ran the entry that the compile made, also in a process that inherited the entry.
INSERT INTO found
WITH made AS MATERIALIZED (
    SELECT b.graph_break_id, b.line, COALESCE(b.reason, '?') AS reason, substr(b.user_stack, 1, 4000) AS user_stack,
           (SELECT qualname FROM code c WHERE c.code_id = m.code_id) AS qualname, m.compile_id, m.code_id, m.process_id, m.cache_entry_id, m.start_ns
    FROM graph_break b JOIN compiles m ON m.compile_id = b.compile_id
    WHERE m.code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant)),
met AS MATERIALIZED (
    SELECT l.cache_entry_id, n.process_id, n.warm_ns, COUNT(*) AS times
    FROM lookup l CROSS JOIN thread t ON t.thread_id = l.thread_id
    CROSS JOIN counted n ON n.code_id = l.code_id AND n.process_id = t.process_id
    WHERE ?2 > 0 AND l.outcome = $HIT AND l.start_ns >= n.warm_ns
      AND (NOT EXISTS (SELECT 1 FROM asked) OR l.lookup_id IN (SELECT lookup_id FROM part_lookup)) AND l.cache_entry_id IN (SELECT cache_entry_id FROM made)
    GROUP BY l.cache_entry_id, n.process_id),
broke AS (
    SELECT m.*, m.process_id AS met_in, NULL AS times
    FROM made m LEFT JOIN counted n ON n.code_id = m.code_id AND n.process_id = m.process_id
    WHERE COALESCE(m.start_ns >= n.warm_ns, ?2 = 0) AND (m.compile_id IN part_compile OR NOT EXISTS (SELECT 1 FROM asked))
    UNION ALL
    SELECT m.*, met.process_id, met.times FROM made m JOIN met ON met.cache_entry_id = m.cache_entry_id
    WHERE met.process_id IS NOT m.process_id OR m.start_ns < met.warm_ns
)
SELECT ?1, COUNT(*) OVER (PARTITION BY met_in), met_in, b.code_id, COALESCE(n.calls, 0), b.compile_id,
       'line ' || COALESCE(b.line, '?') || ': ' || substr(b.reason, 1, min(400, instr(b.reason || char(10), char(10)) - 1)) ||
       COALESCE('; at ' || needed_by(b.user_stack, NULL, b.qualname), '') || COALESCE('; by ' || stack_path(b.user_stack), '') ||
       iif(times, printf('; compiled in the warm-up, met by %d call%s after it', times, iif(times = 1, '', 's')), '')
FROM broke b LEFT JOIN counted n ON n.code_id = b.code_id AND n.process_id = b.met_in
ORDER BY met_in, b.graph_break_id;

-- name: guards
INSERT INTO found
SELECT ?1, guard_ns / 1e3 / calls, process_id, code_id, calls, NULL,
       printf('%d guard checks took %.3f ms', guards, guard_ns / 1e6)
FROM counted
WHERE calls > 0 AND guards > 0 AND (code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant))
ORDER BY rowid;

-- name: eager
-- The share is that of the whole process. Each row is a function that ran as Python.
INSERT INTO found
SELECT ?1, COALESCE(share, 0), process_id, code_id, calls, NULL, outcomes
FROM (SELECT *, rowid AS place, TOTAL(python) OVER (PARTITION BY process_id) / SUM(asked) OVER (PARTITION BY process_id) AS share
      FROM counted WHERE code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant))
WHERE python > 0
ORDER BY place;

-- name: required
-- ?3: the code objects of the function, "1, 2"; empty if the function is not in the trace. amount:
-- the number of calls that ran compiled code.
INSERT INTO found
SELECT ?1, TOTAL(n.compiled), MAX(n.process_id), o.value, TOTAL(n.calls), NULL,
       CASE WHEN ?3 = '' THEN 'is not in the trace'
            WHEN TOTAL(n.calls) > 0 THEN printf('none of %d calls ran compiled code; `dyntrace why` tells why', TOTAL(n.calls))
            WHEN ?2 THEN 'the compiler was not asked about a call after the warm-up'
            ELSE 'the compiler was never asked about it' END
FROM json_each('[' || ?3 || ']') o
LEFT JOIN counted n ON n.code_id = o.value;

-- name: undecided
-- Tells why the result 0 would mean nothing: no compiler decided about the calls that are checked.
-- Returns no row if a compiler did decide.
WITH mode(off, observed) AS (
    SELECT MIN(mode = 'none'), MAX(iif(torch_mode = 'off', 0, torch_mode IS NOT NULL)) FROM process),
compiler(loaded) AS (
    SELECT EXISTS (SELECT 1 FROM main.lookup) OR EXISTS (SELECT 1 FROM compile) OR EXISTS (SELECT 1 FROM cache_entry))
SELECT CASE
    WHEN loaded THEN 'no compiler decided anything in this part of the recording'
    WHEN off THEN 'it was recorded with --frames none, which keeps no decisions; record with --frames decided'
    WHEN observed THEN 'torch''s compiler was loaded, but was asked about no call'
    WHEN EXISTS (SELECT 1 FROM process WHERE torch_mode = 'off') THEN 'torch''s compiler was not watched (--torch off)'
    ELSE 'no compiler was loaded: neither torch''s, nor one of the program''s own (set_eval_frame)' END
FROM mode, compiler
WHERE NOT EXISTS (SELECT 1 FROM counted)
  AND NOT EXISTS (SELECT 1 FROM compile m WHERE m.compile_id IN part_compile OR NOT EXISTS (SELECT 1 FROM asked));

-- name: idle
-- The files of a merged trace in which no compiler decided anything: nobody can say whether they
-- keep a limit. The process that started the ranks of a job is not a rank and decides nothing, so
-- it is not listed.
SELECT file FROM merged WHERE decided = 0 AND (rank IS NOT NULL OR NOT EXISTS (SELECT 1 FROM merged WHERE rank IS NOT NULL));

-- name: guard_times
-- Every check of guards and the call for which it ran, as rows for db_visit. C adds conditions that
-- select the checks.
SELECT each(l.code_id, l.thread_id, k.lookup_id, k.duration_ns)
FROM guard_check k NOT INDEXED CROSS JOIN lookup l ON l.lookup_id = k.lookup_id WHERE TRUE

-- name: untimed
-- Did guards run, but without any measured time?
SELECT EXISTS (SELECT 1 FROM counted WHERE calls > 0 AND (code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant))) AND NOT EXISTS (SELECT 1 FROM counted WHERE guards > 0)
       AND EXISTS (SELECT 1 FROM guard_check);

-- name: unseen
-- Are there calls that nobody sees before the recording ends? Calls of a function that the compiler
-- gave up are found in its frames, which are stored at the end.
SELECT EXISTS (SELECT 1 FROM given_up g WHERE g.code_id IN meant OR NOT EXISTS (SELECT 1 FROM meant))
       AND EXISTS (SELECT 1 FROM meta WHERE key = 'state' AND value = 'recording');

-- name: rows
-- The result as it is printed: at most ?1 rows for each limit, or all if ?1 is negative. ?2 is
-- false for people, who see the last two parts of a path: rtrim removes the letters of a part, and
-- then a slash.
SELECT f.name AS "check",
       CASE WHEN f.function IS NULL THEN CAST(printf('%.4f', f.allowed) AS NUMERIC) ELSE 'compiled' END AS allowed,
       CASE WHEN f.function IS NULL THEN CAST(printf('%.4f', f.amount) AS NUMERIC) END AS found,
       p.pid, COALESCE(c.qualname, f.function) AS function,
       CASE WHEN ?2 THEN c.filename
            ELSE substr(c.name, 1 + length(rtrim(rtrim(rtrim(c.name, c.letters), '/'), c.letters))) END
       || ':' || c.first_line AS "where",
       f.calls, m.label AS compile, f.compile_id, m.start_ns AS at_ns, f.why
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY limit_id ORDER BY place) AS number FROM offending) f
LEFT JOIN (SELECT *, substr(filename, -1000) AS name, replace(substr(filename, -1000), '/', '') AS letters FROM code) c
       ON c.code_id = f.code_id
LEFT JOIN process p ON p.process_id = COALESCE(f.process_id, c.process_id)
LEFT JOIN compile m ON m.compile_id = f.compile_id
WHERE ?1 < 0 OR f.number <= ?1
ORDER BY f.limit_id, f.place;

-- name: totals
SELECT f.limit_id, MAX(f.amount), (SELECT COUNT(*) FROM offending o WHERE o.limit_id = f.limit_id) FROM found f GROUP BY f.limit_id;

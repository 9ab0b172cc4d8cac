-- diff.sql -- the statements of `dyntrace diff`. Statements read from each trace its functions and
-- facts about them. C copies the rows into a database in memory (the statement `tables`), where
-- they are compared. ?1: the value of --function, or NULL; ?2: the rank to compare, or NULL.
--
-- Calls, compiles and entries belong to the process of their thread (docs/answers.md): a forked
-- rank runs the code objects of its parent.

-- name: tables
-- side: 0 for trace A, 1 for trace B.
CREATE TABLE code(side, code_id, name, file, kind, line, fingerprint, is_own, PRIMARY KEY(side, code_id));
-- A count for a code object. kind: the kind of difference to which the count belongs; number: the
-- position among the counts of this kind.
CREATE TABLE fact(side, code_id, kind, number, what, value REAL);
CREATE INDEX fact_code ON fact(side, code_id);
CREATE TABLE entry(side, cache_entry_id, label);
-- A function of one trace. The functions of A and B that are the same have the same `pair`.
CREATE TABLE function(function_id INTEGER PRIMARY KEY, side, name, file, kind, line, fingerprint, pair,
    UNIQUE(side, name, file, kind, line));
CREATE INDEX function_pair ON function(pair, side);
CREATE VIEW known AS SELECT side, code_id, function_id, pair FROM code c JOIN function f USING (side, name, file, kind, line);
-- The sum of each fact over a pair: `a` for trace A, `b` for trace B. For guards it is the mean
-- time for one call.
CREATE TABLE total(pair, kind, number, what, a REAL, b REAL);
CREATE INDEX total_pair ON total(pair);

CREATE TABLE thread(side, thread_id, who);
-- The differences that were found, in the order of the output. An integer is a duration; NULL means
-- that this trace has no such thing.
CREATE TABLE difference(kind, function, place, what, a, b);

-- name: fact
INSERT INTO fact VALUES (?1, ?2, ?5, ?3, ?6, ?4);

-- name: rank
-- The processes to compare.
SELECT process_id FROM process WHERE ?2 IS NULL OR rank = ?2;

-- name: codes
-- The code objects, with the last part of the file's path. is_own: the code object belongs to a
-- process to compare.
SELECT code_id, COALESCE(substr(qualname, 1, 2000), ''),
       COALESCE(substr(replace(filename, rtrim(filename, replace(filename, '/', '')), ''), 1, 2000), ''), COALESCE(kind, ''),
       COALESCE(first_line, 0), COALESCE(fingerprint, 0),
       ?2 IS NULL OR process_id IN (SELECT process_id FROM process WHERE rank = ?2)
FROM code
WHERE kind IS NOT 'compiled' AND (?1 IS NULL OR qualname GLOB ?1 OR qualname GLOB '*.' || ?1);

-- name: facts
-- The counts for each code object, except those of calls and of guard checks. The actual sizes and
-- values are left out of the reasons for recompiles (number 1). A reason is counted once for each
-- recompile; a reason that occurs only in compiles without code has the count 0.
SELECT e.code_id, 'entry', 0, 'cache entries', COUNT(*)
FROM cache_entry e LEFT JOIN compile m USING (compile_id) LEFT JOIN thread t USING (thread_id) LEFT JOIN code c ON c.code_id = e.code_id
LEFT JOIN process p ON p.process_id = COALESCE(t.process_id, c.process_id)
WHERE ?2 IS NULL OR p.rank = ?2
GROUP BY e.code_id
UNION ALL
SELECT m.code_id, 'break', 0, 'graph breaks', COUNT(*)
FROM graph_break b JOIN compiles m USING (compile_id)
WHERE ?2 IS NULL OR m.rank = ?2
GROUP BY m.code_id
UNION ALL
SELECT m.code_id, 'break', 1,
       COALESCE(substr(b.reason, 1, instr(substr(b.reason, 1, 200) || char(10), char(10)) - 1), '?'), COUNT(*)
FROM graph_break b JOIN compiles m USING (compile_id)
WHERE ?2 IS NULL OR m.rank = ?2
GROUP BY m.code_id, 4
UNION ALL
SELECT m.code_id, 'reason', 1, substr(COALESCE(r.kind, '?') || ' ' || COALESCE(as_written(r.source), r.text, '?'), 1, 400),
       COUNT(DISTINCT iif(m.is_recompile, m.compile_id, NULL))
FROM recompile_cause r JOIN compiles m USING (compile_id)
WHERE r.ordinal = 0 AND (?2 IS NULL OR m.rank = ?2)
GROUP BY m.code_id, 4
UNION ALL
SELECT n.code_id, 'time', 0, 'own time', n.self_ns
FROM code_total n JOIN code c USING (code_id) LEFT JOIN process p USING (process_id)
WHERE n.calls > 0 AND (?2 IS NULL OR p.rank = ?2);

-- name: lacks-lookups
-- Was the trace imported from a log, which has compiles but not the outcome of each call?
SELECT EXISTS (SELECT 1 FROM compile) AND NOT EXISTS (SELECT 1 FROM lookup);

-- name: checks
-- The time of each guard check. There are many checks, so they are read in the order of the table,
-- without sorting.
SELECT cache_entry_id, duration_ns FROM guard_check k
WHERE duration_ns IS NOT NULL
  AND (?2 IS NULL OR ?2 = (SELECT p.rank FROM lookup l JOIN thread t USING (thread_id) JOIN process p USING (process_id)
                           WHERE l.lookup_id = k.lookup_id));

-- name: entries
-- The cache entries of the code objects.
SELECT cache_entry_id, substr(label, 1, 200), code_id FROM cache_entry;

-- name: functions
-- Code objects with the same file, name, kind and line are one function: several processes run it,
-- or one process defines it several times. The sum of the fingerprints tells whether the bytecode
-- changed; 0 means that it is not known.
INSERT INTO function(side, name, file, kind, line, fingerprint)
SELECT side, name, file, kind, line, SUM(DISTINCT fingerprint & 0xffffffff)
FROM code c
WHERE is_own OR EXISTS (SELECT 1 FROM fact f WHERE f.side = c.side AND f.code_id = c.code_id)
GROUP BY side, name, file, kind, line;

-- name: pairs
-- Functions of A and B are the same when these agree that the step ?1 looks at:
--     1  name, kind, file, fingerprint and line
--     2  name, kind, file and fingerprint         something was added above it
--     3  name, kind, file and line                its bytecode changed
--     4  name, kind and file                      both
--     5  name, kind and fingerprint               it moved to another file
--     6  last part of the name, kind, file, line  torch's logs, so imports, have forward for Net.forward
-- Only the last part of a path is compared, because another checkout or machine has other
-- directories. If several functions agree, they are paired in order of their lines.
WITH keyed AS (
    SELECT function_id, side, iif(?1 < 6, name, replace(name, rtrim(name, replace(name, '.', '')), '')) AS name, kind,
           iif(?1 = 5, '', file) AS file, iif(?1 IN (1, 3, 6), line, 0) AS line,
           iif(?1 IN (1, 2, 5), fingerprint, 0) AS fingerprint, line AS place
    FROM function
    WHERE pair IS NULL AND (fingerprint <> 0 OR ?1 IN (3, 4, 6))
),
ranked AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY side, name, kind, file, line, fingerprint ORDER BY place, function_id) AS nth
    FROM keyed
),
same AS (
    SELECT function_id, MIN(function_id) OVER alike AS pair, COUNT(*) OVER alike AS sides
    FROM ranked
    WINDOW alike AS (PARTITION BY name, kind, file, line, fingerprint, nth)
)
UPDATE function SET pair = same.pair FROM same WHERE same.function_id = function.function_id AND sides = 2;

-- name: alone
UPDATE function SET pair = function_id WHERE pair IS NULL;

-- name: totals
INSERT INTO total
WITH one AS (
    SELECT k.pair, side, f.kind, f.number, f.what, SUM(f.value) AS value
    FROM fact f JOIN known k USING (side, code_id)
    GROUP BY 1, 2, 3, 4, 5
),
by_call AS (
    SELECT *, iif(kind = 'guard', value / SUM(value) FILTER (WHERE kind = 'outcome') OVER (PARTITION BY pair, side), value) AS each
    FROM one
)
SELECT pair, kind, number, what, SUM(each) FILTER (WHERE side = 0) AS a, SUM(each) FILTER (WHERE side = 1) AS b
FROM by_call
GROUP BY 1, 2, 3, 4;

-- name: rows
-- Finds all differences except those of times or, with ?1 = 1, those of times. Times that differ by
-- less than the share ?2 count as equal. Own times that differ by less than 5 ms, and guards that
-- differ by less than a microsecond for each call, are noise and never count. A difference of
-- numbers needs a function that both traces have; a reason is a difference if only one trace has
-- it.
INSERT INTO difference
WITH pair AS MATERIALIZED (
    SELECT f.pair, a.function_id AS in_a, b.function_id AS in_b,
           a.fingerprint <> b.fingerprint AND a.fingerprint <> 0 AND b.fingerprint <> 0 AS changed,
           EXISTS (SELECT 1 FROM total t WHERE t.pair = f.pair AND t.kind IN ('outcome', 'entry', 'break')) AS matters
    FROM (SELECT DISTINCT pair FROM function) f
    LEFT JOIN function a ON a.pair = f.pair AND a.side = 0
    LEFT JOIN function b ON b.pair = f.pair AND b.side = 1
),
named AS (
    SELECT pair, 'function' AS kind, 0 AS number, 'decided about' AS what, iif(in_a, 'yes', NULL) AS a, iif(in_b, 'yes', NULL) AS b
    FROM pair
    WHERE matters AND (in_a IS NULL OR in_b IS NULL)
    UNION ALL
    SELECT pair, 'code', 0, 'bytecode', 'as it was', 'changed' FROM pair WHERE matters AND changed
    UNION ALL
    SELECT pair, kind, number, what, CAST(a AS INTEGER), CAST(b AS INTEGER)
    FROM total
    WHERE CASE WHEN kind = 'reason' THEN a IS NOT b
               ELSE kind = 'break' AND number = 1 AND (a IS NULL) <> (b IS NULL) END
    UNION ALL
    SELECT pair, kind, number, what, CAST(TOTAL(a) AS INTEGER), CAST(TOTAL(b) AS INTEGER)
    FROM total JOIN pair USING (pair)
    WHERE in_a AND in_b AND kind <> 'reason' AND NOT (kind = 'break' AND number = 1)
    GROUP BY pair, kind, number, what
    HAVING CASE WHEN kind NOT IN ('guard', 'time') THEN TOTAL(a) <> TOTAL(b)
                ELSE MAX(a, b) - MIN(a, b) >= iif(kind = 'time', 5000000, 1000) AND MAX(a, b) > MIN(a, b) * (1 + ?2) END
)
SELECT n.kind, s.name, s.file || ':' || s.line, what, iif(n.kind IN ('guard', 'time'), a, CAST(a AS TEXT)),
       iif(n.kind IN ('guard', 'time'), b, CAST(b AS TEXT))
FROM named n JOIN pair USING (pair)
JOIN function f ON f.function_id = COALESCE(in_b, in_a)
JOIN function s ON s.function_id = iif(b IS NULL, COALESCE(in_a, in_b), COALESCE(in_b, in_a))
WHERE (n.kind = 'time') = ?1
ORDER BY iif(n.kind = 'reason', 1, 2 * (n.kind = 'break' AND number = 1)), iif(n.kind = 'time', -ABS(a - b), 0), f.name, f.file,
         f.kind, f.line, instr('function code outcome entry break guard', n.kind), number, what;

-- name: differences
SELECT * FROM difference ORDER BY rowid LIMIT ?1;

-- name: fails
-- Is there a difference of the kinds ?1, such as "outcome,entry", "decisions" or "any"? Returns a
-- row if there is: 1 if all of them are differences of times, otherwise 0.
SELECT MIN(kind IN ('guard', 'time')) FROM difference
WHERE instr(',' || ?1 || ',', ',' || kind || ',') OR instr(',' || ?1 || ',', ',any,')
   OR instr(',' || ?1 || ',', ',decisions,') AND kind NOT IN ('guard', 'time', 'lookup')
HAVING COUNT(*) > 0;

-- name: counts
-- The number of differences of each kind.
SELECT k.value, COUNT(d.kind) FROM json_each('["function", "code", "outcome", "entry", "reason", "break", "guard", "time", "lookup"]') k
LEFT JOIN difference d ON d.kind = k.value GROUP BY k.key ORDER BY k.key;

-- name: threads
-- The threads that made lookups. A thread is named by its name and its number among the threads of
-- this name, so the same worker of a pool has the same name in A and B. The rank is not part of the
-- name, because `diff` compares ranks.
SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name ORDER BY t.thread_id) AS who
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?2 IS NULL OR p.rank = ?2)
ORDER BY who;

-- name: lookups
-- All lookups of these threads, in the order of the threads, as numbers: sorting texts would take
-- long.
WITH named AS MATERIALIZED (
    SELECT thread_id, ROW_NUMBER() OVER (ORDER BY who) AS n FROM (
        SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name
            ORDER BY t.thread_id) AS who
        FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
        WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?2 IS NULL OR p.rank = ?2)))
SELECT n.n, l.lookup_id, l.code_id, l.outcome, l.cache_entry_id FROM lookup l JOIN named n ON n.thread_id = l.thread_id
WHERE ?1 IS NULL OR l.code_id IN (SELECT code_id FROM code WHERE qualname GLOB ?1 OR qualname GLOB '*.' || ?1)
ORDER BY n.n, l.lookup_id;

-- name: same-codes
-- The code objects of the trace ?1. A code object of A and one of B have the same number if they
-- are the same function.
SELECT code_id, pair FROM known WHERE side = ?1;

-- name: same-entries
-- The cache entries of the trace ?1. Entries with the same label have the same number in A and B.
SELECT cache_entry_id, nth FROM (SELECT *, DENSE_RANK() OVER (ORDER BY label) AS nth FROM entry) WHERE side = ?1;

-- name: same-threads
-- The names of the threads, and the number of each thread in A and in B, from 1, as the statement
-- `lookups` counts them.
SELECT who, MAX(iif(side = 0, n, NULL)), MAX(iif(side = 1, n, NULL))
FROM (SELECT side, who, ROW_NUMBER() OVER (PARTITION BY side ORDER BY who) AS n FROM thread)
GROUP BY who ORDER BY who;

-- name: lookup
-- Describes lookup ?1: the text before the time at which it began, that time, and the text after
-- it.
SELECT COALESCE(c.qualname, '?') AS name, COALESCE(replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), '?') || ':' || COALESCE(c.first_line, 0) AS place,
       printf('%.300s %s%s%.100s (lookup %d at ', COALESCE(c.qualname, '?'), COALESCE(o.name, '?'), iif(e.label <> '', ' ', ''),
              COALESCE(e.label, ''), l.lookup_id),
       l.start_ns, iif(s.text <> '', '; ' || substr(s.text, 1, 300), '') || ')'
FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN outcomes o ON o.outcome = l.outcome LEFT JOIN signature s ON s.signature_id = l.signature_id
WHERE l.lookup_id = ?1;

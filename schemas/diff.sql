-- diff.sql -- what `dyntrace diff` asks. Each trace is asked for its functions and for facts about them, which are
-- copied into a database in memory (tables) and compared there. ?1: --function or NULL; ?2: the rank that is meant, or NULL.
--
-- Calls, compiles and entries are of the process of their thread, as docs/answers.md has it: a forked rank runs the code
-- objects of its parent.

-- name: tables
-- side: 0 in A, 1 in B.
CREATE TABLE code(side, code_id, name, file, kind, line, fingerprint, is_own, PRIMARY KEY(side, code_id));
-- What is counted of a code object. kind: the kind of difference that it can be; number: the order among these.
CREATE TABLE fact(side, code_id, kind, number, what, value REAL);
CREATE INDEX fact_code ON fact(side, code_id);
CREATE TABLE entry(side, cache_entry_id, label);
-- A function of one side; those of A and B that are the same one have one `pair`.
CREATE TABLE function(function_id INTEGER PRIMARY KEY, side, name, file, kind, line, fingerprint, pair,
    UNIQUE(side, name, file, kind, line));
CREATE INDEX function_pair ON function(pair, side);
CREATE VIEW known AS SELECT side, code_id, function_id, pair FROM code c JOIN function f USING (side, name, file, kind, line);
-- All facts of each pair, A's and B's beside each other. Of guards it is the time of a call.
CREATE TABLE total(pair, kind, number, what, a REAL, b REAL);
CREATE INDEX total_pair ON total(pair);

CREATE TABLE thread(side, thread_id, who);
-- What is found, in this order. Integers are durations; NULL: not there.
CREATE TABLE difference(kind, function, place, what, a, b);

-- name: fact
INSERT INTO fact VALUES (?1, ?2, ?5, ?3, ?6, ?4);

-- name: rank
-- The processes that are meant.
SELECT process_id FROM process WHERE ?2 IS NULL OR rank = ?2;

-- name: codes
-- The code objects; of the file its last part. is_own: of a process that is meant.
SELECT code_id, COALESCE(substr(qualname, 1, 2000), ''),
       COALESCE(substr(replace(filename, rtrim(filename, replace(filename, '/', '')), ''), 1, 2000), ''), COALESCE(kind, ''),
       COALESCE(first_line, 0), COALESCE(fingerprint, 0),
       ?2 IS NULL OR process_id IN (SELECT process_id FROM process WHERE rank = ?2)
FROM code
WHERE kind IS NOT 'compiled' AND (?1 IS NULL OR qualname GLOB ?1 OR qualname GLOB '*.' || ?1);

-- name: facts
-- What was counted of code objects, but for calls and checks of guards. Of reasons (number 1) what was seen (sizes,
-- values) is no part; they are counted by recompiles, so that one which only attempts without code had is there, as 0.
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

-- name: checks
-- The time of each check of guards. Checks are many: they are read in their order, which needs no sorting.
SELECT cache_entry_id, duration_ns FROM guard_check k
WHERE duration_ns IS NOT NULL
  AND (?2 IS NULL OR ?2 = (SELECT p.rank FROM lookup l JOIN thread t USING (thread_id) JOIN process p USING (process_id)
                           WHERE l.lookup_id = k.lookup_id));

-- name: entries
-- Cache entries of code objects.
SELECT cache_entry_id, substr(label, 1, 200), code_id FROM cache_entry;

-- name: functions
-- Code objects of one file, name, kind and line are one function, in several processes or defined again. The sum of
-- their fingerprints says whether its bytecode changed; 0 is unknown.
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
-- Directories may differ (another checkout, another machine). Of several that agree the first is that of the first.
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
-- Finds the differences but for times, or (?1 = 1) times. ?2: times that differ by less than this share are alike; own times
-- below 5 ms, and guards of less than a microsecond a call, are noise whatever the ratio. Numbers differ where both
-- traces have the function; reasons where one alone has it.
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
-- A row if one is of the kinds ?1, "outcome,entry", "decisions" or "any": whether all of these are times.
SELECT MIN(kind IN ('guard', 'time')) FROM difference
WHERE instr(',' || ?1 || ',', ',' || kind || ',') OR instr(',' || ?1 || ',', ',any,')
   OR instr(',' || ?1 || ',', ',decisions,') AND kind NOT IN ('guard', 'time', 'lookup')
HAVING COUNT(*) > 0;

-- name: counts
-- How many there are of each kind.
SELECT k.value, COUNT(d.kind) FROM json_each('["function", "code", "outcome", "entry", "reason", "break", "guard", "time", "lookup"]') k
LEFT JOIN difference d ON d.kind = k.value GROUP BY k.key ORDER BY k.key;

-- name: threads
-- Threads that did lookups. Those of A and B that are alike have one name, and the same place among those called so:
-- workers of one pool come in an order. Rank is no part of it: ranks are what is compared.
SELECT t.thread_id, COALESCE(t.name, '?') || ' #' || ROW_NUMBER() OVER (PARTITION BY t.name ORDER BY t.thread_id) AS who
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id
WHERE t.thread_id IN (SELECT DISTINCT thread_id FROM lookup) AND (?2 IS NULL OR p.rank = ?2)
ORDER BY who;

-- name: lookups
-- All lookups of those threads, in that order, as numbers: with texts it would take long to sort them.
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
-- The code objects of side ?1; those of A and B that are one function have one number.
SELECT code_id, pair FROM known WHERE side = ?1;

-- name: same-entries
-- The cache entries of side ?1; those that are called alike have one number.
SELECT cache_entry_id, nth FROM (SELECT *, DENSE_RANK() OVER (ORDER BY label) AS nth FROM entry) WHERE side = ?1;

-- name: same-threads
-- Threads by name, with their places in A and B, from 1, as diff/lookups counts them.
SELECT who, MAX(iif(side = 0, n, NULL)), MAX(iif(side = 1, n, NULL))
FROM (SELECT side, who, ROW_NUMBER() OVER (PARTITION BY side ORDER BY who) AS n FROM thread)
GROUP BY who ORDER BY who;

-- name: lookup
-- Lookup ?1 in words, before and behind the time when it began.
SELECT COALESCE(c.qualname, '?') AS name, COALESCE(replace(c.filename, rtrim(c.filename, replace(c.filename, '/', '')), ''), '?') || ':' || COALESCE(c.first_line, 0) AS place,
       printf('%.300s %s%s%.100s (lookup %d at ', COALESCE(c.qualname, '?'), COALESCE(o.name, '?'), iif(e.label <> '', ' ', ''),
              COALESCE(e.label, ''), l.lookup_id),
       l.start_ns, iif(s.text <> '', '; ' || substr(s.text, 1, 300), '') || ')'
FROM lookup l LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
LEFT JOIN outcomes o ON o.outcome = l.outcome LEFT JOIN signature s ON s.signature_id = l.signature_id
WHERE l.lookup_id = ?1;

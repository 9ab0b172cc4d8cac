-- ranks.sql -- the statements of `dyntrace ranks`. Some read from each trace (processes, events,
-- guards, waits); the others use what has been kept of all traces in a private database
-- (src/cmd/ranks.c).

-- name: tables
-- rank: a rank as its trace has it. Times are times of day, by the common clock of the ranks if they have
-- one. asked, python: the calls that wanted compiled code, and those of them that ran as Python. claims: the
-- number of processes in torch's logs that claim to be this rank. died: by a signal, or with a status other
-- than 0; ended_ns: when it ended.
CREATE TABLE rank(
    rank_id INTEGER PRIMARY KEY, file TEXT, job TEXT, rank INTEGER, world_size INTEGER, doubt_ns INTEGER, host TEXT, pid INTEGER,
    began_ns INTEGER, ended_ns INTEGER, exit_code INTEGER, exit_signal INTEGER, compiles INTEGER, recompiles INTEGER, breaks INTEGER,
    asked INTEGER, python INTEGER, compile_ns INTEGER, wait_ns INTEGER, claims INTEGER,
    died GENERATED ALWAYS AS (exit_signal IS NOT NULL OR COALESCE(exit_code, 0) <> 0));
CREATE TABLE function(function_id INTEGER PRIMARY KEY, filename TEXT, qualname TEXT, first_line INTEGER, UNIQUE(filename, qualname, first_line));
-- event: compile number `nth` of a function in a rank. lookup: the number of the function's lookup that
-- caused it. key: the same number for compiles that are alike. It is made of what may differ between
-- compiles: the outcome; the cause (source, expected, actual); the breaks; the guards (a hash of them); and
-- the code, which is the fingerprint of the function's own code object (NULL if it is not known, or for a
-- resume function). made_by: for a resume function, the break that made it. Texts are those of text_alike
-- (src/trace/alike.h), but expected and actual values are as they were recorded.
CREATE TABLE event(
    event_id INTEGER PRIMARY KEY, rank_id INTEGER, function_id INTEGER, nth INTEGER, at_ns INTEGER, ended_ns INTEGER, lookup INTEGER,
    compile_id INTEGER, outcome TEXT, source TEXT, expected TEXT, actual TEXT, breaks TEXT, made_by TEXT, code INTEGER, guards INTEGER,
    key INTEGER);
CREATE INDEX rank_number ON rank(rank);
CREATE INDEX rank_file ON rank(file, rank);
CREATE INDEX event_place ON event(function_id, nth, rank_id);
CREATE INDEX event_rank ON event(rank_id, function_id);
-- wait: the time of a rank in a collective. There are rows for waits of 5 ms or longer, for the first wait,
-- however short, and for the first 100 barriers. met: the number of the barrier, from 1; NULL for other rows.
CREATE TABLE wait(rank_id INTEGER, start_ns INTEGER, end_ns INTEGER, met INTEGER);
CREATE INDEX wait_rank ON wait(rank_id);
CREATE INDEX wait_start ON wait(start_ns, end_ns, rank_id);
-- ahead: by how much the clock of a host is ahead of the first host's clock, at least and at most, according
-- to the barriers.
CREATE TABLE ahead(host TEXT PRIMARY KEY, least_ns INTEGER, most_ns INTEGER);
-- differs: a group of ranks that differ from most ranks at one place. event_id: a compile of this group;
-- other_id: one of most ranks; NULL if there is no such compile. what: the kind of difference (enum
-- difference of src/cmd/ranks.c). source, here, there: the parts of it that are printed.
CREATE TABLE differs(
    differs_id INTEGER PRIMARY KEY, function_id INTEGER, nth INTEGER, key INTEGER, ranks INTEGER, event_id INTEGER, other_id INTEGER,
    what INTEGER, source TEXT, here TEXT, there TEXT);
CREATE TABLE differing(differs_id INTEGER, rank_id INTEGER);
CREATE INDEX differing_place ON differing(differs_id);
CREATE TABLE side_guard(side INTEGER, ordinal INTEGER, kind TEXT, source TEXT, expression TEXT);

-- name: processes
-- For one trace: its ranks. A rank has the counts of all of its processes, and begins and ends with the first
-- of them. ?1: names of collectives, a JSON array.
WITH one AS MATERIALIZED (
    SELECT process_id, COALESCE(rank, CAST((SELECT value FROM meta WHERE key = 'rank') AS INTEGER)) AS rank FROM process),
compiled AS (SELECT o.rank, SUM(m.cache_entry_id IS NOT NULL) AS compiles, SUM(m.is_recompile) AS recompiles,
                    SUM(MAX(0, COALESCE(m.compile_ns, 0))) AS compile_ns FROM compiles m JOIN one o USING(process_id) GROUP BY 1),
broke AS (SELECT o.rank, COUNT(*) AS breaks FROM graph_break b JOIN compiles m USING(compile_id) JOIN one o USING(process_id) GROUP BY 1),
called AS (SELECT o.rank, SUM(k.counted) AS asked, SUM(k.counted AND k.ran_as_python) AS python FROM calls k JOIN one o USING(process_id) GROUP BY 1),
waited AS (SELECT o.rank, SUM(n.total_ns) AS wait_ns FROM code c JOIN code_total n USING(code_id) JOIN one o USING(process_id)
           WHERE c.filename GLOB '*/distributed_c10d.py' AND c.qualname IN (SELECT value FROM json_each(?1)) GROUP BY 1),
said AS (SELECT MAX(value) FILTER (WHERE key = 'job') AS job, MAX(value) FILTER (WHERE key = 'world_size') AS world_size,
                MAX(value) FILTER (WHERE key = 'clock_doubt_ns') AS doubt_ns, MAX(value) FILTER (WHERE key = 'host') AS host,
                CAST(MAX(value) FILTER (WHERE key = 'started_unix_ns') AS INTEGER) +
                COALESCE(CAST(MAX(value) FILTER (WHERE key = 'clock_offset_ns') AS INTEGER), 0) AS zero_ns FROM meta)
SELECT s.job, o.rank, CAST(s.world_size AS INTEGER), CAST(s.doubt_ns AS INTEGER), COALESCE(p.host, s.host), p.pid, s.zero_ns + p.start_ns,
       s.zero_ns + p.end_ns, p.exit_code, p.exit_signal, COALESCE(c.compiles, 0), COALESCE(c.recompiles, 0), COALESCE(b.breaks, 0),
       COALESCE(k.asked, 0), COALESCE(k.python, 0), COALESCE(c.compile_ns, 0), w.wait_ns,
       (SELECT COUNT(*) FROM one i JOIN process q USING(process_id) WHERE i.rank = o.rank AND q.torch_mode = 'import')
FROM said s CROSS JOIN (SELECT rank, MIN(process_id) AS process_id FROM one WHERE rank >= 0 GROUP BY rank) o
JOIN process p ON p.process_id = o.process_id
LEFT JOIN compiled c ON c.rank = o.rank LEFT JOIN broke b ON b.rank = o.rank LEFT JOIN called k ON k.rank = o.rank
LEFT JOIN waited w ON w.rank = o.rank ORDER BY o.rank;

-- name: events
-- For one trace: the compiles of each rank, in order of time. ?1: a GLOB for functions, or NULL. A resume
-- function has no fingerprint here: it is made from its function's code, whose compile has the fingerprint,
-- and the names in it contain counters that differ between processes.
WITH zero AS (SELECT CAST((SELECT value FROM meta WHERE key = 'started_unix_ns') AS INTEGER) +
                     COALESCE(CAST((SELECT value FROM meta WHERE key = 'clock_offset_ns') AS INTEGER), 0) AS ns)
SELECT COALESCE(p.rank, CAST((SELECT value FROM meta WHERE key = 'rank') AS INTEGER)) AS rank, m.filename, m.qualname, m.first_line,
       z.ns + m.start_ns, z.ns + COALESCE(m.end_ns, m.start_ns),
       (SELECT COUNT(*) FROM lookup l WHERE l.code_id = m.code_id AND l.start_ns <= m.start_ns), m.compile_id, m.outcome,
       iif(m.is_recompile, COALESCE(k.source, k.text), NULL), iif(m.is_recompile, k.expected, NULL), iif(m.is_recompile, k.actual, NULL),
       (SELECT group_concat(said, char(10)) FROM (
            SELECT 'broke at line ' || COALESCE(b.line, '?') || COALESCE(': ' || replace(b.reason, char(10), ' '), '') AS said
            FROM graph_break b WHERE b.compile_id = m.compile_id ORDER BY b.line, b.graph_break_id)),
       iif(c.kind = 'resume' OR c.qualname GLOB $RESUME_GLOB, COALESCE(
           (SELECT 'broke at line ' || COALESCE(b.line, '?') || COALESCE(' of ' || o.qualname, '')
                   || COALESCE(': ' || replace(b.reason, char(10), ' '), '')
            FROM graph_break b JOIN code r ON r.code_id = b.resume_code_id LEFT JOIN code o ON o.code_id = b.code_id
            WHERE r.filename IS c.filename AND r.qualname = c.qualname AND r.process_id = c.process_id LIMIT 1),
           'broke at line ' || c.first_line), NULL),
       iif(c.kind = 'resume' OR c.qualname GLOB $RESUME_GLOB, NULL, NULLIF(c.fingerprint, 0)),
       m.cache_entry_id
FROM zero z CROSS JOIN compiles m JOIN process p USING(process_id) LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN recompile_cause k ON k.rowid = m.cause_id
WHERE m.outcome IS NOT 'skipped' AND m.qualname IS NOT NULL AND (?1 IS NULL OR m.qualname GLOB ?1 OR m.qualname GLOB '*.' || ?1)
ORDER BY m.start_ns, m.compile_id;

-- name: guards
-- For one trace: the guards of each entry, from which keys are made.
SELECT cache_entry_id, kind, source, expression FROM guard NOT INDEXED;

-- name: compile-guards
-- For one trace: the guards of compile ?1.
SELECT g.ordinal, g.kind, g.source, g.expression FROM compile m JOIN guard g ON g.cache_entry_id = m.cache_entry_id
WHERE m.compile_id = ?1 ORDER BY g.ordinal;

-- name: waits
-- For one trace: when each rank was in a collective, one of ?1. These are waits of 5 ms or longer, the first
-- one, and the first 100 barriers that it left by returning. All ranks meet in the same barriers, unless the
-- program makes groups of ranks: then barriers are not numbered.
WITH zero AS (SELECT CAST((SELECT value FROM meta WHERE key = 'started_unix_ns') AS INTEGER) +
                     COALESCE(CAST((SELECT value FROM meta WHERE key = 'clock_offset_ns') AS INTEGER), 0) AS ns),
named AS (SELECT code_id, qualname FROM code WHERE filename GLOB '*/distributed_c10d.py' AND qualname IN (SELECT value FROM json_each(?1))),
grouped AS (SELECT EXISTS (SELECT 1 FROM code WHERE filename GLOB '*/distributed_c10d.py' AND qualname IN ('new_group', 'split_group')) AS any),
waited AS (SELECT COALESCE(p.rank, CAST((SELECT value FROM meta WHERE key = 'rank') AS INTEGER)) AS rank, f.start_ns, f.end_ns, f.exit,
                  n.qualname = 'barrier' AND NOT g.any AS meets
           FROM grouped g CROSS JOIN frame f JOIN named n ON n.code_id = f.code_id JOIN thread t ON t.thread_id = f.thread_id
           JOIN process p ON p.process_id = t.process_id),
met AS (SELECT *, iif(meets, ROW_NUMBER() OVER (PARTITION BY rank, meets ORDER BY start_ns), NULL) AS nth,
               start_ns = MIN(start_ns) OVER (PARTITION BY rank) AS first FROM waited)
SELECT rank, z.ns + start_ns, z.ns + end_ns, iif(nth <= 100 AND exit = $EXIT_RETURN, nth, NULL) FROM met CROSS JOIN zero z
WHERE end_ns - start_ns >= 5000000 OR first OR (nth <= 100 AND exit = $EXIT_RETURN);

-- name: rank
INSERT INTO rank(file, job, rank, world_size, doubt_ns, host, pid, began_ns, ended_ns, exit_code, exit_signal, compiles, recompiles, breaks,
                 asked, python, compile_ns, wait_ns, claims)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: function
INSERT OR IGNORE INTO function(filename, qualname, first_line) VALUES (?1, ?2, ?3);

-- name: event
-- ?1: the file; ?2 to ?16: the columns of the statement `events` up to the fingerprint; ?17: the
-- hash of the guards; ?18: the key.
INSERT INTO event(rank_id, function_id, nth, at_ns, ended_ns, lookup, compile_id, outcome, source, expected, actual, breaks, made_by,
                  code, guards, key)
SELECT r.rank_id, f.function_id, 1 + (SELECT COUNT(*) FROM event e WHERE e.function_id = f.function_id AND e.rank_id = r.rank_id),
       ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18
FROM rank r CROSS JOIN function f
WHERE r.file = ?1 AND r.rank = ?2 AND f.filename IS ?3 AND f.qualname = ?4 AND f.first_line IS ?5;

-- name: compare
-- No rank leaves a barrier before all ranks have come. So a barrier bounds the difference of the clocks of
-- two hosts: by corrected clocks, the last rank that comes on one host does not come later than the first
-- rank leaves on the other, in both directions. The bounds are not used if they contradict each other by more
-- than 2 ms (by so much a trace's own clock may drift from the time of day), or if they contradict the clock
-- of the directory.
INSERT INTO ahead
WITH met AS (SELECT r.host, w.met, MAX(w.start_ns) AS came_ns, MIN(w.end_ns) AS left_ns FROM wait w JOIN rank r USING(rank_id)
             WHERE w.met IS NOT NULL GROUP BY 1, 2)
SELECT b.host, MAX(b.came_ns - a.left_ns), MIN(b.left_ns - a.came_ns) FROM met a JOIN met b USING(met)
WHERE a.host = (SELECT host FROM rank ORDER BY rank LIMIT 1) GROUP BY 1;
DELETE FROM ahead WHERE (SELECT COUNT(*) FROM ahead) < (SELECT COUNT(DISTINCT host) FROM rank) OR EXISTS (
    SELECT 1 FROM ahead, (SELECT iif(COUNT(doubt_ns) = COUNT(*), MAX(doubt_ns) * 2, NULL) AS doubt_ns FROM rank)
    WHERE least_ns > most_ns + 2000000 OR least_ns > doubt_ns OR most_ns < -doubt_ns);
CREATE TEMP TABLE shift AS SELECT r.rank_id, (h.least_ns + h.most_ns) / 2 AS ns FROM rank r JOIN ahead h USING(host);
UPDATE event SET at_ns = at_ns - s.ns, ended_ns = ended_ns - s.ns FROM shift s WHERE s.rank_id = event.rank_id;
UPDATE wait SET start_ns = start_ns - s.ns, end_ns = end_ns - s.ns FROM shift s WHERE s.rank_id = wait.rank_id;
UPDATE rank SET began_ns = began_ns - s.ns, ended_ns = ended_ns - s.ns FROM shift s WHERE s.rank_id = rank.rank_id;
-- The code is compared only for functions whose fingerprint all ranks know. The second statement combines it
-- with the key by XOR, which SQL has only in this form.
UPDATE event SET code = NULL WHERE function_id IN (SELECT function_id FROM event WHERE code IS NULL);
UPDATE event SET key = ~(key & code) & (key | code) WHERE code IS NOT NULL;
-- Most ranks agree on the key of the nth compile of a function, or agree that there is no such
-- compile. A rank that died may not have reached this compile. If two groups are equally large, the
-- ranks that compiled are the ones that differ; if both groups compiled, the group with the lowest
-- rank counts as most.
CREATE TEMP TABLE tally AS
SELECT e.function_id, e.nth, e.key, COUNT(*) AS ranks, SUM(NOT r.died) AS alive, MIN(r.rank) AS least, MIN(e.event_id) AS event_id
FROM event e JOIN rank r USING(rank_id) GROUP BY 1, 2, 3;
INSERT INTO tally SELECT function_id, nth, NULL, (SELECT COUNT(*) FROM rank WHERE NOT died) - SUM(alive), 0, -1, NULL
FROM tally GROUP BY 1, 2 HAVING (SELECT COUNT(*) FROM rank WHERE NOT died) > SUM(alive);
CREATE TEMP TABLE agreed AS
SELECT * FROM (SELECT *, SUM(ranks) OVER w AS everyone, COUNT(*) OVER w AS kinds,
                      ROW_NUMBER() OVER (PARTITION BY function_id, nth ORDER BY ranks DESC, least) AS place
               FROM tally WINDOW w AS (PARTITION BY function_id, nth))
WHERE place = 1 AND kinds > 1 AND ranks * 2 >= everyone;
-- Only the first place at which a rank differs in a function counts.
CREATE TEMP TABLE odd AS
SELECT a.function_id, a.nth, r.rank_id, e.key, e.event_id, a.event_id AS other_id
FROM agreed a CROSS JOIN rank r LEFT JOIN event e ON e.function_id = a.function_id AND e.nth = a.nth AND e.rank_id = r.rank_id
WHERE e.key IS NOT a.key AND (e.event_id IS NOT NULL OR NOT r.died);
DELETE FROM odd WHERE EXISTS (SELECT 1 FROM odd b WHERE b.function_id = odd.function_id AND b.rank_id = odd.rank_id AND b.nth < odd.nth);
INSERT INTO differs(function_id, nth, key, ranks, event_id, other_id)
SELECT o.function_id, o.nth, o.key, COUNT(*), MIN(o.event_id), MIN(o.other_id) FROM odd o LEFT JOIN event e USING(event_id)
LEFT JOIN event t ON t.event_id = o.other_id GROUP BY 1, 2, 3 ORDER BY MIN(COALESCE(e.at_ns, t.at_ns));
INSERT INTO differing SELECT d.differs_id, o.rank_id FROM odd o JOIN differs d ON d.function_id = o.function_id AND d.nth = o.nth AND d.key IS o.key;

-- name: pairs
-- Each difference, with the two compiles that differ; a side without a compile is NULL. moved: the
-- line of the function on that side, if it is another one.
SELECT d.differs_id, d.event_id IS NOT NULL, d.other_id IS NOT NULL, e.outcome, t.outcome, e.breaks, t.breaks, e.source, t.source,
       e.expected, t.expected, e.actual, t.actual, e.guards, t.guards, e.code, t.code, COALESCE(e.made_by, t.made_by), f.first_line,
       iif(d.nth = 1 AND (e.event_id IS NULL OR t.event_id IS NULL),
           (SELECT g.first_line FROM function g JOIN event v ON v.function_id = g.function_id
            WHERE g.filename IS f.filename AND g.qualname = f.qualname AND g.first_line IS NOT f.first_line AND v.nth = 1
              AND (v.rank_id IN (SELECT rank_id FROM differing WHERE differs_id = d.differs_id)) = (e.event_id IS NULL)
            ORDER BY g.first_line LIMIT 1), NULL)
FROM differs d JOIN function f USING(function_id) LEFT JOIN event e ON e.event_id = d.event_id
LEFT JOIN event t ON t.event_id = d.other_id;

-- name: described
UPDATE differs SET what = ?2, source = ?3, here = ?4, there = ?5 WHERE differs_id = ?1;

-- name: unexplained
-- For differences of the guards (kind ?1): the traces and the compiles of the two sides, in which C looks for
-- the guard that differs. Each opens two traces, so at most 50 are returned.
SELECT d.differs_id, a.file, e.compile_id, b.file, t.compile_id, d.source FROM differs d JOIN event e ON e.event_id = d.event_id
JOIN event t ON t.event_id = d.other_id JOIN rank a ON a.rank_id = e.rank_id JOIN rank b ON b.rank_id = t.rank_id
WHERE d.what = ?1 LIMIT 50;

-- name: recompiled
-- For compiles of kinds ?1 and ?2 (recompiled for another cause, or where most ranks hit an entry): the trace
-- and the compile; the function, and the number of its lookup; and one of most ranks, with its trace.
SELECT d.differs_id, a.file, e.compile_id, e.lookup, f.filename, f.qualname, f.first_line, b.file, b.rank
FROM differs d JOIN event e ON e.event_id = d.event_id JOIN rank a ON a.rank_id = e.rank_id JOIN function f ON f.function_id = d.function_id
JOIN rank b ON b.rank_id = (SELECT r.rank_id FROM rank r WHERE NOT r.died AND r.rank_id NOT IN
    (SELECT g.rank_id FROM differing g JOIN differs o USING(differs_id) WHERE o.function_id = d.function_id) ORDER BY r.rank LIMIT 1)
WHERE d.what IN (?1, ?2) AND e.source IS NOT NULL ORDER BY d.differs_id LIMIT 50;

-- name: entry-hit
-- For one trace: the entry that lookup number ?1 of a function (?2, ?3, ?4) hit in rank ?5.
SELECT e.label FROM code c JOIN lookup l ON l.code_id = c.code_id JOIN thread t ON t.thread_id = l.thread_id JOIN process p ON p.process_id = t.process_id
LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id AND l.outcome = $HIT
WHERE c.filename IS ?2 AND c.qualname = ?3 AND c.first_line IS ?4
  AND COALESCE(p.rank, CAST((SELECT value FROM meta WHERE key = 'rank') AS INTEGER)) = ?5 ORDER BY l.start_ns LIMIT 1 OFFSET MAX(0, ?1 - 1);

-- name: cause-of
-- For one trace: the guards of entry ?2 that failed when ?1 was compiled.
SELECT COALESCE(k.source, k.text), k.actual, k.expected FROM recompile_causes k WHERE k.compile_id = ?1 AND k.older_entry = ?2 AND k.decided LIMIT 1;

-- name: guard
INSERT INTO side_guard VALUES (?1, ?2, ?3, ?4, ?5);

-- name: explain
-- The first guard that differs between the sides: its source, the value on side 0 and the value on
-- side 1. A value is NULL if that side has no guard of this kind there.
SELECT a.source, iif(a.side, b.expression, a.expression), iif(a.side, a.expression, b.expression) FROM side_guard a
LEFT JOIN side_guard b ON b.side = 1 - a.side AND b.source IS a.source AND b.kind IS a.kind
 AND NOT EXISTS (SELECT 1 FROM side_guard o WHERE o.side = a.side AND o.source IS b.source AND o.kind IS b.kind AND o.expression IS b.expression)
WHERE NOT EXISTS (SELECT 1 FROM side_guard o WHERE o.side = 1 - a.side AND o.source IS a.source AND o.kind IS a.kind
                  AND o.expression IS a.expression)
ORDER BY a.side, a.ordinal, b.ordinal LIMIT 1;

-- name: about
-- Facts about the whole job: a name and a value.
SELECT 'job', COALESCE((SELECT job FROM rank LIMIT 1), '?')
UNION ALL SELECT 'ranks', COUNT(DISTINCT rank) || ' of ' || MAX(COALESCE(MAX(world_size), 0), MAX(rank) + 1) 
          || CASE COUNT(DISTINCT host) WHEN 0 THEN '' WHEN 1 THEN ', on 1 host' ELSE ', on ' || COUNT(DISTINCT host) || ' hosts' END FROM rank
UNION ALL SELECT 'missing', group_concat(said, ', ') FROM (
    WITH present AS (SELECT rank FROM rank UNION SELECT -1 UNION SELECT MAX(COALESCE(MAX(world_size), 0), MAX(rank) + 1) FROM rank),
    gap AS (SELECT LAG(rank) OVER (ORDER BY rank) + 1 AS least, rank - 1 AS most FROM present)
    SELECT CASE WHEN place = 101 THEN '...' WHEN least = most THEN least ELSE least || '-' || most END AS said
    FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY least) AS place FROM gap WHERE least <= most) WHERE place <= 101)
UNION ALL SELECT 'clocks', CASE WHEN COUNT(DISTINCT host) = 1 THEN 'one machine''s' WHEN EXISTS (SELECT 1 FROM ahead) THEN
    'aligned by the ranks'' barriers, to ' || (SELECT MAX(most_ns - least_ns) / 1000000 + 3 FROM ahead) || ' ms' WHEN COUNT(doubt_ns) = COUNT(*) THEN
    'aligned by the clock of the traces'' directory, to ' || ((MAX(doubt_ns) / 1000000 + 1) * 2) || ' ms' ELSE
    'each machine''s own: times of different machines may be any amount apart' END FROM rank;

-- name: ranks
--title Ranks
--page {rank}  rank
--page {host}  host
--page {pid}  pid
--page {compiles:count}  compiles
--page {recompiles:count}  recompiles
--page {breaks:count}  breaks
--page {eager_percent:share} %  ran as Python
--page {compile_ns:duration}  compile
--page {wait_ns:duration}  wait (time in torch's collectives)
--page {ended}  ended
--page {note}  note
-- The ranks, the most suspicious first. ?1: the number of rows, -1 or NULL for all. A rank for which others
-- wait spends less time in collectives than they do. A time is an outlier if it lies beyond the lowest or
-- highest quarter of the ranks by three times the spread of the middle half, and by some seconds at least. If
-- there are too few processors, all times spread. So a difference in waits or compiles must also be larger
-- than the time that most ranks took to their first collective. A rank is also late if it began later than
-- most ranks, as far as the clocks can tell, or took longer than most from its beginning to its first
-- collective.
WITH came AS MATERIALIZED (SELECT r.rank_id, MIN(w.start_ns) - r.began_ns AS ns FROM wait w JOIN rank r USING(rank_id) GROUP BY r.rank_id),
measured AS (SELECT 'wait' AS what, wait_ns AS ns FROM rank WHERE wait_ns IS NOT NULL UNION ALL SELECT 'compile', -compile_ns FROM rank
             UNION ALL SELECT 'came', ns FROM came UNION ALL SELECT 'began', began_ns FROM rank WHERE began_ns IS NOT NULL),
placed AS (SELECT what, ns, ROW_NUMBER() OVER (PARTITION BY what ORDER BY ns) - 1 AS place, COUNT(*) OVER (PARTITION BY what) AS ranks FROM measured),
quarter AS (SELECT what, MAX(ns) FILTER (WHERE place = (ranks + 2) / 4) AS low_ns, MAX(ns) FILTER (WHERE place = ranks * 3 / 4) AS high_ns
            FROM placed GROUP BY what),
most AS (SELECT COALESCE((SELECT ns FROM came ORDER BY ns LIMIT 1 OFFSET (SELECT COUNT(*) - 1 FROM came) / 2), 0) AS came_ns,
                (SELECT CASE WHEN COUNT(DISTINCT host) = 1 THEN 0 WHEN EXISTS (SELECT 1 FROM ahead) THEN (SELECT MAX(most_ns - least_ns) FROM ahead)
                             WHEN COUNT(doubt_ns) = COUNT(*) THEN MAX(doubt_ns) * 2 END FROM rank) AS doubt_ns),
fence AS (SELECT w.low_ns - MAX(4000000000, 3 * (w.high_ns - w.low_ns), m.came_ns) AS wait_ns,
                 MAX(10000000000, 3 * (c.high_ns - c.low_ns), -c.low_ns, m.came_ns) - c.low_ns AS compile_ns,
                 a.high_ns AS most_came_ns, MAX(4000000000, 3 * (a.high_ns - a.low_ns)) AS came_more_ns,
                 b.high_ns AS most_began_ns, MAX(4000000000, 3 * (b.high_ns - b.low_ns), m.doubt_ns) AS began_more_ns
          FROM most m CROSS JOIN quarter c LEFT JOIN quarter w ON w.what = 'wait' LEFT JOIN quarter a ON a.what = 'came'
          LEFT JOIN quarter b ON b.what = 'began' WHERE c.what = 'compile'),
noted AS (
    SELECT r.*, (SELECT COUNT(*) FROM differing d WHERE d.rank_id = r.rank_id) AS differs,
           CASE WHEN r.exit_signal IS NOT NULL THEN 'died of signal ' || r.exit_signal WHEN r.exit_code <> 0 THEN 'exit ' || r.exit_code
                WHEN r.exit_code IS NULL AND r.ended_ns IS NULL THEN 'no end was seen' END AS ended,
           iif(r.died AND r.ended_ns = (SELECT MIN(ended_ns) FROM rank WHERE died), 'the first to die', NULL) AS before,
           CASE WHEN r.wait_ns < f.wait_ns THEN 'late: others waited for it'
                WHEN r.began_ns - f.most_began_ns > f.began_more_ns THEN printf('late: began %.1f s after most', (r.began_ns - f.most_began_ns) / 1e9)
                WHEN o.ns - f.most_came_ns > f.came_more_ns
                THEN printf('late: %.1f s longer than most to its first collective', (o.ns - f.most_came_ns) / 1e9) END AS late,
           iif(r.compile_ns > f.compile_ns, 'compiled longer than most', NULL) AS slow,
           iif(r.claims > 1, r.claims || ' processes claim this rank', NULL) AS claimed
    FROM rank r CROSS JOIN fence f LEFT JOIN came o ON o.rank_id = r.rank_id)
SELECT rank, host, pid, compiles, recompiles, breaks, iif(asked, 100.0 * python / asked, NULL) AS eager_percent, compile_ns, wait_ns,
       COALESCE(ended, iif(exit_code IS NULL, 'ended', 'exit 0')) AS ended, NULLIF(RTRIM(notes, '; '), '') AS note
FROM (SELECT *, COALESCE(before || '; ', '') || COALESCE(late || '; ', '') || iif(differs, 'differs in ' || differs || iif(differs = 1, ' function; ', ' functions; '), '')
             || COALESCE(slow || '; ', '') || COALESCE(claimed || '; ', '') AS notes FROM noted)
ORDER BY before IS NULL, differs = 0, late IS NULL, ended IS NULL, slow IS NULL, rank LIMIT COALESCE(?1, -1);

-- name: differs
--title Where ranks differ first
--none All ranks compiled alike.
--page {!c}{function}  function
--page {!c}{where}  where
--page {ranks:count}  ranks
--page {compile}  compile
--page {lookup:count}  lookup
--page {!c}{guard}  guard
--page {!c}{here}  here
--page {!c}{others}  others
--page {at_ns:duration}  at
-- Where ranks differ, in order of time. ?1: the number of rows, -1 or NULL for all; ?2: the text is
-- for a program, which gets the compiler's own words.
SELECT f.qualname AS function, f.filename || ':' || f.first_line AS "where",
       (SELECT group_concat(said, ',') FROM (
            SELECT CASE WHEN ROW_NUMBER() OVER (ORDER BY MIN(rank)) = 17 THEN '...' WHEN MIN(rank) = MAX(rank) THEN MIN(rank)
                        ELSE MIN(rank) || '-' || MAX(rank) END AS said
            FROM (SELECT r.rank, r.rank - ROW_NUMBER() OVER (ORDER BY r.rank) AS island FROM differing g JOIN rank r USING(rank_id)
                  WHERE g.differs_id = d.differs_id)
            GROUP BY island ORDER BY MIN(rank) LIMIT 17)) AS ranks, d.nth AS compile, COALESCE(e.lookup, t.lookup) AS lookup,
       iif(?2, d.source, as_written(d.source)) AS guard, iif(?2, substr(d.here, 1, 500), as_written(substr(d.here, 1, 500))) AS here,
       iif(?2, substr(d.there, 1, 500), as_written(substr(d.there, 1, 500))) AS others,
       COALESCE(e.at_ns, t.at_ns) - (SELECT MIN(began_ns) FROM rank) AS at_ns
FROM differs d JOIN function f USING(function_id) LEFT JOIN event e ON e.event_id = d.event_id LEFT JOIN event t ON t.event_id = d.other_id
ORDER BY d.differs_id LIMIT COALESCE(?1, -1);

-- name: storms
--title Compiles for which others waited
--page {rank}  rank
--page {!c}{function}  function
--page {at_ns:duration}  at
--page {took_ns:duration}  took
--page {waiting:count}  waiting (how many ranks)
--page {waited_ns:duration}  waited
-- Compiles during which other ranks waited in collectives. ?1: the number of rows, -1 or NULL for
-- all.
SELECT r.rank, f.qualname AS function, e.at_ns - (SELECT MIN(began_ns) FROM rank) AS at_ns, e.ended_ns - e.at_ns AS took_ns,
       COUNT(DISTINCT w.rank_id) AS waiting, SUM(MIN(w.end_ns, e.ended_ns) - MAX(w.start_ns, e.at_ns)) AS waited_ns
FROM (SELECT * FROM event WHERE ended_ns - at_ns >= 5000000 ORDER BY ended_ns - at_ns DESC LIMIT 200) e
JOIN rank r USING(rank_id) JOIN function f USING(function_id)
JOIN wait w ON w.end_ns - w.start_ns >= 5000000 AND w.start_ns < e.ended_ns AND w.start_ns > e.at_ns - (SELECT MAX(end_ns - start_ns) FROM wait) AND w.end_ns > e.at_ns AND w.rank_id <> e.rank_id
GROUP BY e.event_id HAVING waited_ns >= 5000000 ORDER BY waited_ns DESC LIMIT COALESCE(?1, -1);

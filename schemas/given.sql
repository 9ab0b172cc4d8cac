-- given.sql -- collects the metadata of several traces in a private database, and finds those that
-- do not belong together (src/trace/given.c).

-- name: tables
-- trace: a trace that is not left out. began_ns: when it began, as a time of day; by the common
-- clock of the traces if they have one. given, had: the rows of `meta` and the processes of all
-- traces, including those left out.
CREATE TABLE trace(trace_id INTEGER PRIMARY KEY, file TEXT, job TEXT, began_ns INTEGER);
CREATE TABLE given(trace_id INTEGER, key TEXT, value TEXT);
CREATE TABLE had(trace_id INTEGER, host TEXT, pid INTEGER, rank INTEGER, began_ns INTEGER);
CREATE INDEX had_process ON had(pid, began_ns, host);
CREATE INDEX had_trace ON had(trace_id);
CREATE INDEX had_rank ON had(rank);
CREATE INDEX given_trace ON given(trace_id);

-- name: meta
-- For one trace: its metadata, and whether a compiler decided anything in it.
SELECT key, value FROM meta WHERE value IS NOT NULL AND key <> 'decided'
UNION ALL
SELECT 'decided', EXISTS (SELECT 1 FROM lookup) OR EXISTS (SELECT 1 FROM compile) OR EXISTS (SELECT 1 FROM cache_entry);

-- name: processes
-- The processes of a trace that began at ?1.
SELECT COALESCE(host, (SELECT value FROM meta WHERE key = 'host')), pid,
       COALESCE(rank, CAST((SELECT value FROM meta WHERE key = 'rank') AS INTEGER)),
       iif(ABS(start_ns) < 4000000000000000000, ?1 + start_ns, NULL) FROM process;

-- name: key
INSERT INTO given VALUES (?1, ?2, ?3);

-- name: process
INSERT INTO had VALUES (?1, ?2, ?3, ?4, ?5);

-- name: trace
INSERT INTO trace VALUES (?1, ?2, (SELECT value FROM given WHERE trace_id = ?1 AND key = 'job'), ?3);

-- name: twice
-- Finds a process of trace ?1 that another trace has, too, and the name of that trace.
SELECT h.pid, t.file FROM had h JOIN had o ON o.pid = h.pid AND o.began_ns = h.began_ns AND o.host IS h.host
JOIN trace t ON t.trace_id = o.trace_id WHERE h.trace_id = ?1 AND o.trace_id <> ?1 LIMIT 1;

-- name: others
-- The traces that belong to another job than most, and the traces of a rank that another trace has
-- later: which, and why.
WITH most AS (SELECT job FROM trace WHERE job IS NOT NULL GROUP BY job ORDER BY COUNT(*) DESC, job LIMIT 1)
SELECT trace_id, 'is of job ' || job || ', most are of ' || (SELECT job FROM most), NULL FROM trace WHERE job <> (SELECT job FROM most)
UNION ALL
SELECT a.trace_id, 'rank ' || h.rank || ' is in ' || b.file || ' as well, which began later', MAX(b.began_ns) FROM trace a
JOIN had h ON h.trace_id = a.trace_id JOIN had o ON o.rank = h.rank JOIN trace b ON b.trace_id = o.trace_id AND b.job IS a.job
WHERE COALESCE(a.job = (SELECT job FROM most), TRUE) AND (b.began_ns, b.trace_id) > (a.began_ns, a.trace_id) GROUP BY a.trace_id;

-- name: by-rank
-- The files of the traces in order of rank.
SELECT file FROM trace t ORDER BY (SELECT MIN(rank) FROM had h WHERE h.trace_id = t.trace_id) NULLS LAST, trace_id;

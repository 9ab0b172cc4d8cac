-- fsck-frames.sql -- the statements that `dyntrace fsck` runs after it has read every frame. Statements whose
-- names begin with "rule-" are rules like those of fsck.sql.

-- name: threads
-- For each thread: when its process began and ended, and when its open frames ended. If several rows have the
-- same os_tid (greenlets), the end is NULL, because a greenlet may have ended with its thread, and it is not
-- known when.
SELECT each(t.thread_id, p.start_ns, iif(t.others, NULL, p.end_ns), e.end_ns)
FROM (SELECT *, COUNT(*) OVER (PARTITION BY process_id, os_tid) > 1 AS others FROM thread) t JOIN thread_ends e ON e.thread_id = t.thread_id LEFT JOIN process p ON p.process_id = t.process_id;

-- name: tables
-- seen: for each code object what code_total should have. skipped: its calls with the outcome 'skip'. loose:
-- one of its frames is open, and the end of its process is not known. tally: the number of calls for each
-- outcome; number 10: all frames; number 11: open frames.
CREATE TEMP TABLE seen(code_id INTEGER PRIMARY KEY, calls, total_ns, self_ns, raised, skipped, loose);
CREATE TEMP TABLE tally(number INTEGER PRIMARY KEY, count);

-- name: keep-seen
INSERT INTO seen VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: keep-tally
-- Called once for each number, in order.
INSERT INTO tally SELECT COUNT(*), ?1 FROM tally;

-- name: rule-count
-- meta.frame_count is the number of frames, open_frame_count that of those without an end
SELECT 'meta says ' || COALESCE(m.value, 'nothing') || ', there are ' || c.count || iif(c.number = 11, ' open ones', '')
FROM tally c LEFT JOIN meta m ON m.key = iif(c.number = 10, 'frame_count', 'open_frame_count')
WHERE c.number IN (10, 11) AND m.value IS NOT c.count;

-- name: rule-totals
-- code_total is what the frames add up to, with those that were too short to be stored and those that were counted
WITH counted AS (SELECT code_id, SUM(calls) AS calls, SUM(total_ns) AS total_ns, SUM(self_ns) - SUM(inner_ns) AS self_ns, SUM(raised) AS raised
                 FROM frame_count GROUP BY code_id),
seen AS (SELECT e.code_id, e.calls + COALESCE(f.calls, 0) AS calls, e.total_ns + COALESCE(f.total_ns, 0) AS total_ns,
                e.self_ns + COALESCE(f.self_ns, 0) AS self_ns, e.raised + COALESCE(f.raised, 0) AS raised, e.loose
         FROM temp.seen e LEFT JOIN counted f ON f.code_id = e.code_id)
SELECT s.code_id
FROM seen s LEFT JOIN code_total n ON n.code_id = s.code_id
JOIN (SELECT EXISTS (SELECT 1 FROM meta WHERE key IN ('min_duration_ns', 'thin', 'keep_ns', 'keep_bytes') AND value > 0) AS some,
             EXISTS (SELECT 1 FROM meta WHERE key = 'decisions_only') AS part, EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%') AS full,
             (SELECT value FROM meta WHERE key = 'state') AS state) m
WHERE CASE WHEN m.some AND m.state = 'recovered' THEN 0 -- the totals lack the last frames before the kill
           WHEN m.part THEN COALESCE(n.calls, 0) < s.calls OR COALESCE(n.raised, 0) < s.raised
           WHEN m.some OR m.full THEN COALESCE(n.calls, 0) < s.calls OR COALESCE(n.total_ns, 0) < s.total_ns * (NOT s.loose)
                                      OR COALESCE(n.raised, 0) < s.raised
           ELSE COALESCE(n.calls, 0) <> s.calls OR COALESCE(n.raised, 0) <> s.raised
                OR NOT s.loose AND (COALESCE(n.total_ns, 0) <> s.total_ns OR COALESCE(n.self_ns, 0) <> s.self_ns) END;

-- name: rule-lookups
-- every call that was decided has its lookup
SELECT o.name || ': ' || c.count || ' frames, ' || COALESCE(l.count, 0) || ' lookups'
FROM tally c JOIN outcomes o ON o.outcome = c.number
LEFT JOIN (SELECT outcome, COUNT(*) AS count FROM lookup GROUP BY outcome) l ON l.outcome = c.number
WHERE (o.missed OR o.name = 'hit') AND c.count > COALESCE(l.count, 0)
  AND NOT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'disk:%' OR events IS NULL)
  AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'kept_from_ns'); -- frames that began before the window

-- name: rule-skipped
-- code whose calls were skipped is marked so
SELECT code_id FROM seen WHERE skipped > 0 AND code_id NOT IN (SELECT code_id FROM code_mark WHERE action = 'skip' AND code_id IS NOT NULL);

-- name: counts
-- What the trace has, for the last line of the output.
SELECT (SELECT COUNT(*) FROM process) AS processes, (SELECT COUNT(*) FROM thread) AS threads,
       (SELECT COUNT(*) FROM code) AS "code objects", (SELECT count FROM tally WHERE number = 10) AS frames,
       (SELECT count FROM tally WHERE number = 11) AS "open frames",
       (SELECT COUNT(*) FROM loss WHERE events IS NULL OR events > 0) AS losses;

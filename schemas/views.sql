-- views.sql -- the named questions about a trace, and the definitions of the words that answers use (docs/answers.md).
--
-- The tables are explained in trace.sql. Every command that counts takes its definitions from here, so that SQL on
-- these views gives the numbers that the commands print. Views that read `frame` or `lookup` from end to end say so: on
-- a long recording those take minutes.


-- outcomes: what an outcome means, from src/vocabulary.h.
--   asked          compiled code was wanted: the call counts in shares
--   missed         compiled code was looked for, and none fitted
--   ran_as_python  though compiled code was wanted (a skip: of a function that was given up, see there)
CREATE VIEW outcomes(outcome, name, asked, missed, ran_as_python) AS VALUES $OUTCOME_ROWS;



-- lineage: whose cache entries a process began with: its own, and those of the processes that it was forked from, made
-- until the fork. (Code ids of a process that was started anew are its own, so that it is harmless here.)
CREATE VIEW lineage AS
WITH RECURSIVE up(process_id, ancestor_id, until_ns, depth) AS (
    SELECT process_id, process_id, 9223372036854775807, 0 FROM process
    UNION ALL
    SELECT up.process_id, p.parent_process_id, MIN(up.until_ns, p.start_ns), up.depth + 1
    FROM up JOIN process p ON p.process_id = up.ancestor_id
    WHERE p.parent_process_id <> up.process_id AND up.depth < 60
)
SELECT process_id, ancestor_id, until_ns FROM up;


-- functions: a row per code object with the function that it is: those with one file, name and first line are one
-- function, in several processes or defined again, and function_id is the smallest code_id among them. A resume
-- function is the rest of one after a graph break. is_own: of the program itself, by its file: not the standard library's, not an
-- installed package's, not dyntrace's, not generated: graphs and guards of torch, nor, in a process with torch, what it makes with exec (`<string>`),
-- unless the program itself came with -c.
CREATE VIEW functions AS
SELECT code_id, MIN(code_id) OVER (PARTITION BY filename, qualname, first_line) AS function_id, process_id, filename,
       qualname,
       first_line, kind, origin_code_id,
       kind IS 'resume' OR (kind IS NOT 'compiled' AND qualname GLOB $RESUME_GLOB) AS is_resume,
       NOT (filename GLOB '*/site-packages/*' OR filename GLOB '*/dist-packages/*' OR filename GLOB '*/lib*/python3.[0-9]*/*'
            OR filename GLOB '<frozen *' OR filename IN ('<dyntrace>', '<guard>', '<ptable>') OR filename GLOB '<eval_with_key>*'
            OR filename GLOB '*/python/dyntrace/*.py'
            OR filename = '<string>' AND EXISTS (SELECT 1 FROM process p WHERE p.process_id = code.process_id
                                                 AND p.torch_version IS NOT NULL AND NOT instr(p.argv, '"-c"'))) AS is_own
FROM code;


-- waits: functions of the standard library that wait for others, such as threading's locks: time of their own is waiting. A lock or
-- a sleep that a function waits in directly is in its own time, as both are C code.
CREATE VIEW waits AS
SELECT c.code_id, c.process_id, c.qualname, c.filename, c.first_line
FROM (VALUES ('threading.py', 'Condition.wait'), ('threading.py', 'Event.wait'), ('threading.py', 'Thread.join'),
             ('threading.py', 'Thread._wait_for_tstate_lock'), ('threading.py', 'Semaphore.acquire'), ('threading.py', 'Barrier.wait'),
             ('threading.py', '_shutdown'), ('queue.py', 'Queue.get'), ('queue.py', 'Queue.join'), ('queue.py', 'Queue.put'),
             ('selectors.py', 'EpollSelector.select'), ('selectors.py', '_PollLikeSelector.select'), ('selectors.py', 'SelectSelector.select'),
             ('subprocess.py', 'Popen.wait'), ('subprocess.py', 'Popen._wait'), ('subprocess.py', 'Popen._try_wait'),
             ('subprocess.py', 'Popen.communicate'), ('socket.py', 'socket.accept'), ('socket.py', 'SocketIO.readinto'), ('ssl.py', 'SSLSocket.read'),
             ('multiprocessing/connection.py', 'Connection._recv'), ('multiprocessing/connection.py', 'wait'),
             ('multiprocessing/popen_fork.py', 'Popen.poll'), ('multiprocessing/popen_fork.py', 'Popen.wait'),
             ('concurrent/futures/_base.py', 'Future.result'), ('concurrent/futures/_base.py', 'wait')) w
JOIN code c ON c.qualname = w.column2 AND substr(c.filename, -length(w.column1) - 1) = '/' || w.column1;


-- waited: how long each code object was off the processor and on it, at least, as measured in stretches of a millisecond or more in
-- which no frame began or ended (tables stretch and thread_cpu). queued_ns is the part of waited_ns in which the thread
-- was ready, and other threads had the processors; longest_wait_ns the longest wait for something else.
CREATE VIEW waited AS
SELECT code_id, COUNT(*) AS stretches, SUM(end_ns - start_ns) AS stretch_ns, SUM(ran_ns) AS ran_ns, SUM(waited_ns) AS waited_ns,
       SUM(queued_ns) AS queued_ns, MAX(waited_ns - queued_ns) AS longest_wait_ns
FROM stretch GROUP BY code_id;


-- turned_away: code objects that the compiler turned away unread, such as its own functions: no lookup of them came as
-- far as an entry, and no compile looked at them. Their calls count in no share. Reads `lookup`.
CREATE VIEW turned_away AS
SELECT DISTINCT code_id FROM lookup
WHERE code_id IS NOT NULL
  AND code_id NOT IN (SELECT code_id FROM compile WHERE outcome IS NOT 'skipped' AND code_id IS NOT NULL)
  AND code_id NOT IN (SELECT l.code_id FROM lookup l JOIN outcomes o ON o.outcome = l.outcome
                      WHERE (o.name = 'hit' OR o.missed) AND o.name <> 'declined' AND l.code_id IS NOT NULL);


-- given_up: code objects whose compile failed or declined for good, so that later calls run as Python without a lookup.
-- Code that the compiler's rules exclude ('skipped') is here only if it had an entry before: compiled code was wanted,
-- and one call without tensor operations had the code marked.
CREATE VIEW given_up AS
SELECT DISTINCT code_id FROM compile m
WHERE cache_entry_id IS NULL AND code_id IS NOT NULL
  AND (outcome IS NOT 'skipped' OR code_id IN (SELECT code_id FROM cache_entry))
  AND (sticky OR EXISTS (SELECT 1 FROM code_mark k WHERE k.code_id = m.code_id AND k.action = 'skip' AND k.at_ns >= m.start_ns));


-- skipped_calls: those later calls. What the program (disable, skip_code) or the compiler's own rules exclude is not
-- here. They are known where their frames were stored. Reads `frame` if a function that was given up was called again.
CREATE VIEW skipped_calls AS
SELECT f.frame_id, f.thread_id, f.code_id, f.start_ns
FROM (SELECT 1 FROM given_up g
      JOIN (SELECT NULL AS skipped) older -- of a trace without the column: the name is then this one's
      WHERE COALESCE((SELECT skipped FROM code_total x WHERE x.code_id = g.code_id), 1) > 0 LIMIT 1)
     CROSS JOIN frame f -- in this order: without any, no frame is read
WHERE f.outcome = $SKIP AND f.kind = $FRAME_CALL AND f.code_id IN (SELECT code_id FROM given_up);


-- calls: a row per call of code that the compiler watches, in the process that made it (a forked process shares the
-- code ids of its parent): its lookups, and the calls of what was given up. `counted` is 1 for the calls that shares
-- are taken of: hit share is SUM(is_hit) by SUM(counted), eager share SUM(counted AND ran_as_python) by SUM(counted).
-- Reads `lookup`, and `frame` if any function was given up.
CREATE VIEW calls AS
WITH call AS (
    SELECT lookup_id, frame_id, thread_id, code_id, outcome, cache_entry_id, entries_checked, start_ns, duration_ns FROM lookup
    WHERE outcome IS NOT $SKIP
    UNION ALL
    SELECT NULL, frame_id, thread_id, code_id, $SKIP, NULL, 0, start_ns, 0 FROM skipped_calls
)
SELECT l.lookup_id, l.frame_id, COALESCE(t.process_id, c.process_id) AS process_id, p.pid, l.thread_id, l.code_id,
       c.qualname,
       c.filename, c.first_line, o.name AS outcome, o.asked AND a.code_id IS NULL AS counted, o.name = 'hit' AS is_hit,
       o.missed, o.ran_as_python, l.cache_entry_id, l.entries_checked, l.start_ns, l.duration_ns
FROM call l
LEFT JOIN outcomes o ON o.outcome = l.outcome
LEFT JOIN code c ON c.code_id = l.code_id
LEFT JOIN thread t ON t.thread_id = l.thread_id
LEFT JOIN process p ON p.process_id = COALESCE(t.process_id, c.process_id)
LEFT JOIN turned_away a ON a.code_id = l.code_id;


-- shares: of the calls of each process, how many ran compiled code as it was, and how many ran as Python. Reads what
-- `calls` reads.
CREATE VIEW shares AS
SELECT process_id, pid, SUM(counted) AS calls, SUM(counted AND is_hit) AS hits, SUM(counted AND missed) AS misses,
       SUM(counted AND ran_as_python) AS ran_as_python,
       1.0 * SUM(counted AND is_hit) / NULLIF(SUM(counted), 0) AS hit_share,
       1.0 * SUM(counted AND ran_as_python) / NULLIF(SUM(counted), 0) AS eager_share, SUM(counted = 0) AS turned_away
FROM calls
GROUP BY process_id;


-- compiles: every compile, in the process that ran it. It is a recompile when it made code in a process whose cache had
-- held an entry for that code object before: made there, loaded there, or inherited by fork. cause_id: what decided it,
-- that which did not fit in the newest of the older entries (view recompile_causes).
CREATE VIEW compiles AS
WITH held AS MATERIALIZED ( -- the first entry of each code object in each process
    SELECT COALESCE(t.process_id, c.process_id) AS process_id, code_id,
           MIN(COALESCE(e.born_ns, m.end_ns, m.start_ns)) AS born_ns,
           m.compile_id
    FROM compile m
    LEFT JOIN cache_entry e USING(cache_entry_id, code_id)
    LEFT JOIN thread t USING(thread_id)
    LEFT JOIN code c USING(code_id)
    WHERE m.cache_entry_id IS NOT NULL
    GROUP BY 1, 2
    UNION ALL
    SELECT c.process_id, e.code_id, MIN(e.born_ns), NULL
    FROM cache_entry e JOIN code c ON c.code_id = e.code_id
    WHERE e.compile_id IS NULL
    GROUP BY 1, 2
),
line AS MATERIALIZED (SELECT * FROM lineage)
SELECT m.compile_id, p.process_id, p.pid, p.rank, m.thread_id, m.frame_id, m.code_id, c.qualname, c.filename,
       c.first_line, m.label,
       m.start_ns, m.end_ns, m.end_ns - m.start_ns AS compile_ns, m.outcome, m.cache_entry_id,
       m.cache_entry_id IS NOT NULL AND EXISTS (
           SELECT 1 FROM line l CROSS JOIN held h ON h.process_id = l.ancestor_id AND h.code_id = m.code_id
           WHERE l.process_id = p.process_id AND h.born_ns <= MIN(l.until_ns, COALESCE(m.end_ns, m.start_ns))
             AND h.compile_id IS NOT m.compile_id) AS is_recompile,
       COALESCE((SELECT r.rowid FROM recompile_cause r WHERE r.compile_id = m.compile_id
                 ORDER BY r.ordinal, r.cache_entry_id DESC, r.rowid LIMIT 1), -m.compile_id) AS cause_id, m.reason, m.sticky
FROM compile m
LEFT JOIN thread t ON t.thread_id = m.thread_id
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN process p ON p.process_id = COALESCE(t.process_id, c.process_id);


-- process_tree: processes in the order of a tree (by path), a parent before its children. A process whose parent was
-- not followed, or is itself, is a root. ended: 'exit 1', 'signal 9', 'ended' when only that is known, NULL: no end was seen.
-- command: its command line in words.
CREATE VIEW process_tree AS
WITH RECURSIVE tree(process_id, depth, path) AS (
    SELECT process_id, 0, printf('%020d', process_id) FROM process
    WHERE parent_process_id IS NULL OR parent_process_id = process_id
       OR parent_process_id NOT IN (SELECT process_id FROM process)
    UNION ALL
    SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)
    FROM tree CROSS JOIN process p ON p.parent_process_id = tree.process_id
    WHERE depth < 60 AND p.process_id <> tree.process_id
)
SELECT t.process_id, t.depth, t.path,
       COALESCE('signal ' || p.exit_signal, 'exit ' || p.exit_code, iif(p.end_ns IS NULL, NULL, 'ended')) AS ended,
       iif(json_valid(p.argv), (SELECT group_concat(value, ' ') FROM json_each(iif(json_valid(p.argv), p.argv, '[]'))), p.argv) AS command
FROM tree t JOIN process p ON p.process_id = t.process_id;


-- tracks: the pid and tid under which a timeline has a process (thread_id NULL) or thread. Pids and tids come back, and
-- merged traces have them from several machines: one that is not unique is replaced by a number above 10 million.
CREATE VIEW tracks AS
WITH home AS MATERIALIZED (
    SELECT process_id, CASE WHEN pid IS NULL OR COUNT(*) OVER (PARTITION BY pid) > 1 THEN 10000000 + process_id ELSE pid END AS pid
    FROM process
)
SELECT process_id, NULL AS thread_id, pid, 0 AS tid FROM home
UNION ALL
SELECT t.process_id, t.thread_id, COALESCE(h.pid, 0),
       CASE WHEN t.os_tid IS NULL OR COUNT(*) OVER (PARTITION BY t.os_tid) > 1 THEN 10000000 + t.thread_id ELSE t.os_tid END
FROM thread t LEFT JOIN home h ON h.process_id = t.process_id;


-- recording_end: when the recording ended, as far as that is known; one that does not say how long it is lasts as long as
-- its frames.
CREATE VIEW recording_end(end_ns) AS
SELECT MAX(COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'span_ns' AND value >= 0), (SELECT MAX(end_ns) FROM frame), 0),
           COALESCE((SELECT MAX(end_ns) FROM process), 0),
           COALESCE((SELECT start_ns FROM frame ORDER BY frame_id DESC LIMIT 1), 0));


-- thread_ends: when what never ended by itself did: an open frame ends with its process, at the latest with the recording.
-- (A thread that ends before its process leaves no open frame, but for greenlets that sleep: the recorder ends them there.)
CREATE VIEW thread_ends AS
SELECT t.thread_id, COALESCE(p.end_ns, (SELECT end_ns FROM recording_end)) AS end_ns
FROM thread t LEFT JOIN process p ON p.process_id = t.process_id;


-- frames: every frame, spelled out. An open frame has no end_ns, but lasted until that of its thread (thread_ends). Reads
-- `frame`; give it a range of frame_id or a LIMIT.
CREATE VIEW frames AS
SELECT f.frame_id, f.parent_id, t.process_id, p.pid, f.thread_id, t.name AS thread, f.code_id,
       c.qualname, c.filename, c.first_line, c.kind AS code_kind,
       (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) AS kind,
       (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) AS outcome,
       (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) AS exit,
       f.start_ns, f.end_ns,
       COALESCE(f.end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = f.thread_id)) - f.start_ns AS duration_ns,
       f.cache_entry_id
FROM frame f
LEFT JOIN code c ON c.code_id = f.code_id
LEFT JOIN thread t ON t.thread_id = f.thread_id
LEFT JOIN process p ON p.process_id = t.process_id;


-- spans: every span, spelled out. An open one lasted until the end of its thread.
CREATE VIEW spans AS
SELECT s.span_id, s.parent_span_id, u.name AS parent, s.kind, s.name, s.start_ns, s.end_ns,
       COALESCE(s.end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = s.thread_id)) - s.start_ns AS duration_ns,
       s.attributes, t.process_id, p.pid, s.thread_id, t.name AS thread, s.frame_id
FROM span s
LEFT JOIN span u ON u.span_id = s.parent_span_id
LEFT JOIN thread t ON t.thread_id = s.thread_id
LEFT JOIN process p ON p.process_id = t.process_id
WHERE s.start_ns IS NOT NULL; -- the beginning of others was not recorded


-- span_names: the count and the times of all spans of a name. A span within one of the same name counts in both.
CREATE VIEW span_names AS
WITH timed AS (
    SELECT name, kind, duration_ns, end_ns, ROW_NUMBER() OVER (PARTITION BY name, kind ORDER BY duration_ns) AS place,
           COUNT(*) OVER (PARTITION BY name, kind) AS count
    FROM spans)
SELECT name, kind, COUNT(*) AS spans, SUM(duration_ns) AS total_ns, MAX(duration_ns) FILTER (WHERE place = (count + 1) / 2) AS p50_ns,
       MAX(duration_ns) AS max_ns, SUM(end_ns IS NULL) AS open
FROM timed GROUP BY name, kind
ORDER BY total_ns DESC, name, kind;


-- call_values: arguments and results of calls (run --args) as a person writes them: x=3, name="a".
CREATE VIEW call_values AS
SELECT frame_id,
       (SELECT group_concat(key || '=' || value, ', ') FROM (
            SELECT j.key, CASE j.type WHEN 'true' THEN 'True' WHEN 'false' THEN 'False' WHEN 'null' THEN 'None' WHEN 'text' THEN json_quote(j.value)
                          ELSE j.value END AS value
            FROM json_each(iif(json_valid(a.arguments), a.arguments, '{}')) j ORDER BY j.id)) AS arguments,
       CASE result WHEN 'true' THEN 'True' WHEN 'false' THEN 'False' WHEN 'null' THEN 'None' ELSE result END AS result
FROM call_args a;


-- counted_frames: frames that were counted and have no rows (--frames folded), by function, phase of torch's work and outcome.
CREATE VIEW counted_frames AS
SELECT n.code_id, c.qualname, c.filename, c.first_line, (SELECT name FROM enum WHERE kind = 'phase' AND value = n.phase) AS phase,
       (SELECT name FROM enum WHERE kind = 'outcome' AND value = n.outcome) AS outcome, n.frames, n.calls, n.total_ns, n.self_ns, n.raised,
       n.max_ns, n.first_ns, n.last_ns
FROM frame_count n
LEFT JOIN code c ON c.code_id = n.code_id
WHERE n.frames > 0;


-- hot_functions: where the time went, most own time first. A function that ran in several processes is one row.
-- waited_ns, queued_ns, ran_ns, longest_wait_ns: as in `waited`; NULL: it had no stretch that was measured.
-- Reads the live totals, so it is quick and includes frames that were too short to be stored.
CREATE VIEW hot_functions AS
SELECT c.qualname, c.filename, c.first_line, c.kind,
       SUM(n.calls) AS calls, SUM(n.total_ns) AS total_ns, SUM(n.self_ns) AS self_ns, SUM(n.raised) AS raised,
       SUM(n.total_ns) / NULLIF(SUM(n.calls), 0) AS ns_per_call,
       MIN(n.code_id) AS code_id, COUNT(*) AS code_objects,
       MAX((SELECT max_ns FROM code_total x WHERE x.code_id = n.code_id)) AS max_ns, MAX(c.is_own) AS is_own,
       SUM(w.waited_ns) AS waited_ns, SUM(w.queued_ns) AS queued_ns, SUM(w.ran_ns) AS ran_ns, MAX(w.longest_wait_ns) AS longest_wait_ns
FROM code_total n
LEFT JOIN waited w ON w.code_id = n.code_id
JOIN (SELECT NULL AS max_ns) older -- of a trace without the column: the name is then this one's
LEFT JOIN functions c ON c.code_id = n.code_id
GROUP BY c.function_id, c.kind
ORDER BY self_ns DESC, c.filename, c.qualname, c.first_line, c.kind;


-- losses: what is missing, with names.
CREATE VIEW losses AS
SELECT l.process_id, p.pid, l.thread_id, t.name AS thread, l.at_ns, l.events, l.cause,
       l.cause LIKE $LOSS_STALL || '%' AS is_stall
FROM loss l
LEFT JOIN process p ON p.process_id = l.process_id
LEFT JOIN thread t ON t.thread_id = l.thread_id;


-- call_ledger: a row per call of code that the compiler watches: how it was decided and what that cost. Calls of code that
-- is marked skip, or that has entries while the compiler is off (disabled), have no lookup: they are known where their
-- frames were stored. Reads `lookup`, and `frame` if anything was ever looked up or marked.
CREATE VIEW call_ledger AS
WITH call AS (
    SELECT lookup_id, frame_id, thread_id, code_id, outcome, cache_entry_id, entries_checked, start_ns, duration_ns, signature_id
    FROM lookup
    UNION ALL
    SELECT NULL, f.frame_id, f.thread_id, f.code_id, f.outcome, NULL, 0, f.start_ns, 0, NULL
    FROM (SELECT 1 FROM lookup UNION ALL SELECT 1 FROM code_mark LIMIT 1) CROSS JOIN frame f
    WHERE f.outcome IN ($SKIP, $DISABLED) AND f.kind = $FRAME_CALL
      AND f.frame_id NOT IN (SELECT frame_id FROM lookup WHERE outcome IN ($SKIP, $DISABLED) AND frame_id IS NOT NULL)
)
SELECT l.lookup_id, l.frame_id, t.process_id, l.thread_id, l.code_id, c.qualname, c.filename, c.first_line,
       (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome,
       l.cache_entry_id, e.label AS entry, l.entries_checked,
       l.start_ns, l.duration_ns AS lookup_ns,
       f.start_ns AS frame_start_ns, f.end_ns AS frame_end_ns,
       COALESCE(f.end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = f.thread_id)) - f.start_ns AS frame_ns,
       s.text AS signature
FROM call l
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
LEFT JOIN (SELECT cache_entry_id, SUM(outcome = $HIT) AS hit, MAX(iif(outcome = $COMPILED, start_ns + COALESCE(duration_ns, 0), start_ns)) AS last_use_ns
           FROM lookup WHERE outcome IN ($HIT, $COMPILED) GROUP BY cache_entry_id) uses
       ON uses.cache_entry_id = e.cache_entry_id;


-- cache_events: what happened to caches: an entry was 'born', 'hit' or 'died', a lookup was a 'miss', calls of a code
-- object were 'marked'; and what torch's own caches did for a compile, 'fx_graph_cache_hit' and so on (view compile_caches).
-- Not in order of time: ORDER BY at_ns. detail: the outcome of a miss, why it died, was marked or bypassed. Reads `lookup`.
CREATE VIEW cache_events AS
WITH event(at_ns, event, code_id, thread_id, cache_entry_id, lookup_id, compile_id, detail) AS (
    SELECT e.born_ns, 'born', e.code_id, m.thread_id, e.cache_entry_id, NULL, e.compile_id, NULL
    FROM cache_entry e LEFT JOIN compile m ON m.compile_id = e.compile_id
    UNION ALL
    SELECT died_ns, 'died', code_id, NULL, cache_entry_id, NULL, compile_id, death_cause FROM cache_entry WHERE died_ns IS NOT NULL
    UNION ALL
    SELECT l.start_ns, iif(o.missed, 'miss', 'hit'), l.code_id, l.thread_id, iif(o.missed, NULL, l.cache_entry_id), l.lookup_id, NULL,
           iif(o.missed, o.name, NULL)
    FROM lookup l JOIN outcomes o ON o.outcome = l.outcome
    WHERE o.missed OR o.name = 'hit'
    UNION ALL
    SELECT at_ns, 'marked', code_id, NULL, NULL, NULL, NULL, action || COALESCE(': ' || reason, '') FROM code_mark
    UNION ALL
    SELECT start_ns, cache || '_cache_' || state, code_id, NULL, NULL, NULL, compile_id, COALESCE(reason, 'the key differs: ' || differed)
    FROM compile_caches
)
SELECT v.at_ns, v.event, COALESCE(t.process_id, c.process_id) AS process_id, v.thread_id, v.code_id, c.qualname, c.filename, c.first_line,
       v.cache_entry_id, e.label AS entry, v.lookup_id, v.compile_id, v.detail
FROM event v
LEFT JOIN code c ON c.code_id = v.code_id
LEFT JOIN thread t ON t.thread_id = v.thread_id
LEFT JOIN cache_entry e ON e.cache_entry_id = v.cache_entry_id;


-- recompile_causes: why each recompile was needed: which guard of which older entry, what it expected, and the actual value.
-- `decided` is 1 for the first thing that did not fit in that entry, one row of each; the others would have failed as well. Of a compile whose
-- older entries had all died, why the last one did.
CREATE VIEW recompile_causes AS
SELECT r.rowid AS cause_id, r.compile_id, m.label, m.code_id, c.qualname, c.filename, c.first_line, m.start_ns,
       m.end_ns - m.start_ns AS compile_ns, r.cache_entry_id, e.label AS older_entry, r.ordinal,
       COALESCE(r.ordinal, 0) = 0 AND NOT EXISTS (
           SELECT 1 FROM recompile_cause b WHERE b.compile_id = r.compile_id AND b.cache_entry_id IS r.cache_entry_id
           AND COALESCE(b.ordinal, 0) = 0 AND b.rowid < r.rowid) AS decided,
       r.guard_id, r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text,
       COALESCE(CASE WHEN r.aspect = 'length' AND r.source NOT LIKE 'len(%' THEN 'len(' || r.source || ')' ELSE r.source END || ': expected ' || r.expected || ', actual ' || r.actual, r.text) AS why, r.how
FROM recompile_cause r
LEFT JOIN compile m ON m.compile_id = r.compile_id
LEFT JOIN code c ON c.code_id = m.code_id
LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id
UNION ALL
SELECT -m.compile_id, m.compile_id, m.label, m.code_id, c.qualname, c.filename, c.first_line, m.start_ns, m.end_ns - m.start_ns,
       e.cache_entry_id, e.label, 0, 1, NULL, NULL, NULL, 'alive', NULL, NULL, NULL, e.death_cause,
       COALESCE(e.label, 'entry ' || e.cache_entry_id) || ' had died' || COALESCE(': ' || e.death_cause, ''), 'observed'
FROM compile m
JOIN cache_entry e ON e.cache_entry_id = (
    SELECT d.cache_entry_id FROM cache_entry d
    WHERE d.code_id = m.code_id AND d.died_ns <= m.start_ns AND d.cache_entry_id IS NOT m.cache_entry_id
    ORDER BY d.died_ns DESC, d.cache_entry_id DESC LIMIT 1)
LEFT JOIN code c ON c.code_id = m.code_id
WHERE m.cache_entry_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM recompile_cause r WHERE r.compile_id = m.compile_id);


-- recompiles: the compiles that are recompiles, each with what decided it.
CREATE VIEW recompiles AS
SELECT m.*, k.older_entry, k.kind, k.source, k.aspect, k.dimension, k.expected, k.actual,
       COALESCE(k.why, m.reason) AS why
FROM compiles m
LEFT JOIN recompile_causes k ON k.cause_id = m.cause_id
WHERE m.is_recompile;


-- graph_breaks: where compiles stopped, why, and the function that runs the rest.
CREATE VIEW graph_breaks AS
SELECT b.graph_break_id, b.compile_id, m.label, b.code_id, c.qualname, c.filename, b.line, b.offset, b.reason,
       b.user_stack, b.resume_code_id, r.qualname AS resume_function
FROM graph_break b
LEFT JOIN compile m ON m.compile_id = b.compile_id
LEFT JOIN code c ON c.code_id = b.code_id
LEFT JOIN code r ON r.code_id = b.resume_code_id;

-- entry_calls: how many calls ran the compiled code of each entry: hits, and those that compiled it. Reads `lookup`.
CREATE VIEW entry_calls AS
SELECT cache_entry_id, COUNT(*) AS calls FROM lookup
WHERE outcome IN ($HIT, $COMPILED) AND cache_entry_id IS NOT NULL GROUP BY cache_entry_id;


-- run_times: where the time of the whole recording went, one row. ran_ns: the lives of all processes, together. compile_ns: the part of them
-- in which a compile ran in that process. import_ns: time in imports, of all threads; an import within a compile is in both. NULL where
-- the importer's frames are not recorded. own_ns: own time of the program's own functions, without what they waited; wait_ns: what all
-- functions waited for other things than a processor; queued_ns: for a processor (view waited), of all threads; NULL: not measured. steady_ns: when the last compile ended, if calls were looked up after that.
CREATE VIEW run_times AS
WITH work AS MATERIALIZED (
    SELECT COALESCE(t.process_id, c.process_id) AS process_id, m.start_ns,
           COALESCE(m.end_ns, (SELECT end_ns FROM recording_end)) AS end_ns
    FROM compile m LEFT JOIN thread t ON t.thread_id = m.thread_id LEFT JOIN code c ON c.code_id = m.code_id
),
apart AS (
    SELECT start_ns, end_ns, MAX(end_ns) OVER (PARTITION BY process_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM work
),
ended AS MATERIALIZED (SELECT MAX(end_ns) AS ns FROM work)
SELECT (SELECT COUNT(*) FROM process) AS processes, (SELECT COUNT(*) FROM thread) AS threads,
       COALESCE((SELECT SUM(MAX(COALESCE(end_ns, (SELECT end_ns FROM recording_end)) - start_ns, 0)) FROM process),
                (SELECT NULLIF(end_ns, 0) FROM recording_end)) AS ran_ns,
       (SELECT SUM(MAX(end_ns - MAX(start_ns, COALESCE(before_ns, start_ns)), 0)) FROM apart) AS compile_ns,
       (SELECT SUM(n.total_ns) FROM code c JOIN code_total n ON n.code_id = c.code_id
        WHERE c.qualname = '_find_and_load' AND c.filename = '<frozen importlib._bootstrap>') AS import_ns,
       (SELECT SUM(self_ns - COALESCE(waited_ns, 0)) FROM hot_functions WHERE is_own) AS own_ns,
       (SELECT SUM(waited_ns - queued_ns) FROM waited) AS wait_ns, (SELECT SUM(queued_ns) FROM waited) AS queued_ns,
       (SELECT ns FROM ended WHERE ns < (SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1)) AS steady_ns;


-- findings: what to look at first, the most costly first: of a program with a compiler a row per function that was compiled again, ran
-- eagerly or broke; of another where its own time went, the function whose slowest call stands out most, what waited most. Each figure was
-- measured:
--   kind        'compiles'; 'time', 'slow', 'waits'
--   cost_ns     compiles: time in recompiles and in compiles that failed; NULL: none. time: own time, without what it waited.
--               waits: how long it waited at least, but for a processor. slow: its longest call
--   calls       compiles: calls that wanted compiled code. Else all calls
--   recompiles, again_ns, source   compiles again, their time, and what most of them were for
--   eager, eager_ns, why_eager     calls of these that ran eagerly, since when, and for which reason: 'limit', 'error' or NULL
--   errors, breaks, break_line, break_calls   compiles that raised; graph breaks by place, the first that most calls met, and how many met it;
---                                  break_calls is NULL where no lookups are recorded
--   ns_per_call, share             slow: the mean call; time, waits: part of the own time of all functions
--   ask         what `dyntrace why` is to be asked: its name, or FILE:LINE if others are called so
-- Reads `lookup`, and `frame` if any function was given up.
CREATE VIEW findings AS
WITH own AS MATERIALIZED (SELECT code_id, function_id FROM functions),
every AS MATERIALIZED (SELECT m.*, o.function_id FROM compiles m JOIN own o ON o.code_id = m.code_id),
made AS MATERIALIZED (
    SELECT function_id, SUM(is_recompile) AS recompiles, SUM(iif(is_recompile, compile_ns, NULL)) AS again_ns,
           SUM(outcome IS 'limit') AS limits, SUM(outcome IS 'error') AS errors, SUM(iif(outcome IS 'error', compile_ns, NULL)) AS error_ns
    FROM every GROUP BY function_id
),
causes AS MATERIALIZED (
    SELECT e.function_id, COALESCE(k.source, k.kind) AS source, COUNT(*) AS n, MIN(e.compile_id) AS first
    FROM every e JOIN recompile_causes k ON k.cause_id = e.cause_id WHERE e.is_recompile GROUP BY 1, 2
),
ran AS MATERIALIZED (
    SELECT code_id, SUM(counted) AS calls, SUM(counted AND ran_as_python) AS eager,
           MIN(iif(counted AND ran_as_python, start_ns, NULL)) AS eager_ns, MAX(counted AND outcome = 'limit') AS limited
    FROM calls GROUP BY code_id
),
ran_by AS MATERIALIZED (
    SELECT o.function_id, SUM(r.calls) AS calls, SUM(r.eager) AS eager, MIN(r.eager_ns) AS eager_ns, MAX(r.limited) AS limited
    FROM ran r JOIN own o ON o.code_id = r.code_id GROUP BY 1
),
met AS MATERIALIZED (
    SELECT o.function_id, b.line, iif(EXISTS (SELECT 1 FROM lookup), SUM(COALESCE(u.calls, 0)), NULL) AS calls
    FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id JOIN own o ON o.code_id = COALESCE(b.code_id, m.code_id)
    LEFT JOIN entry_calls u ON u.cache_entry_id = m.cache_entry_id GROUP BY 1, 2
),
broke AS MATERIALIZED (SELECT function_id, COUNT(*) AS breaks, line, MAX(calls) AS calls FROM met GROUP BY function_id),
compiled AS (
    SELECT 'compiles' AS kind, a.function_id,
           NULLIF(COALESCE(m.again_ns, 0) + COALESCE(m.error_ns, 0), 0) AS cost_ns, r.calls, NULLIF(m.recompiles, 0) AS recompiles, m.again_ns,
           (SELECT source FROM causes k WHERE k.function_id = a.function_id ORDER BY n DESC, first LIMIT 1) AS source,
           NULLIF(r.eager, 0) AS eager, r.eager_ns,
           iif(r.eager > 0, CASE WHEN m.limits > 0 OR r.limited THEN 'limit' WHEN m.errors > 0 THEN 'error' END, NULL) AS why_eager,
           NULLIF(m.errors, 0) AS errors, b.breaks, b.line AS break_line, b.calls AS break_calls, NULL AS ns_per_call, NULL AS share
    FROM (SELECT function_id FROM made WHERE recompiles > 0 OR errors > 0 UNION SELECT function_id FROM ran_by WHERE eager > 0
          UNION SELECT function_id FROM broke) a
    LEFT JOIN made m ON m.function_id = a.function_id LEFT JOIN ran_by r ON r.function_id = a.function_id
    LEFT JOIN broke b ON b.function_id = a.function_id
),
spent AS MATERIALIZED (
    SELECT h.code_id AS function_id, h.calls, h.self_ns, h.ns_per_call, h.max_ns, h.is_own, h.waited_ns - h.queued_ns AS waited_ns,
           h.self_ns - COALESCE(h.waited_ns, 0) AS busy_ns, MAX(SUM(h.self_ns) OVER (), 1) / 100 AS percent_ns
    FROM hot_functions h
    WHERE NOT EXISTS (SELECT 1 FROM compile) AND NOT EXISTS (SELECT 1 FROM lookup)
),
plain AS (
    SELECT * FROM (SELECT 'time' AS kind, function_id, busy_ns AS cost_ns, calls, NULL AS ns_per_call, 0.01 * busy_ns / percent_ns AS share
                   FROM spent WHERE is_own AND busy_ns >= percent_ns ORDER BY busy_ns DESC LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT 'slow', function_id, max_ns, calls, ns_per_call, NULL
                   FROM spent WHERE is_own AND calls >= 10 AND max_ns >= 1000000 AND max_ns >= ns_per_call * 10
                   ORDER BY max_ns DESC, function_id LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT 'waits', function_id, waited_ns, calls, NULL, 0.01 * waited_ns / percent_ns
                   FROM spent WHERE waited_ns >= percent_ns ORDER BY waited_ns DESC LIMIT 1)
),
found AS (
    SELECT kind, function_id, cost_ns, calls, recompiles, again_ns, source, eager, eager_ns, why_eager, errors, breaks, break_line, break_calls, ns_per_call,
           share FROM compiled
    UNION ALL
    SELECT kind, function_id, cost_ns, calls, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ns_per_call, share FROM plain
)
SELECT ROW_NUMBER() OVER (ORDER BY COALESCE(f.cost_ns, 0) DESC, COALESCE(f.eager, 0) DESC, COALESCE(f.break_calls, 0) DESC, f.function_id) AS number,
       f.kind, f.function_id AS code_id, c.qualname, c.filename, c.first_line, f.cost_ns, f.calls, f.recompiles, f.again_ns, f.source, f.eager,
       f.eager_ns, f.why_eager, f.errors, f.breaks, f.break_line, f.break_calls, f.ns_per_call, f.share,
       iif(c.qualname = '' OR (SELECT COUNT(DISTINCT filename || ':' || first_line) FROM code o
                               WHERE o.qualname = c.qualname AND o.kind IS NOT 'compiled') > 1,
           c.filename || ':' || c.first_line, c.qualname) AS ask
FROM found f LEFT JOIN code c ON c.code_id = f.function_id
ORDER BY number;


-- compile_phases: where compiles spent their time. Phases lie within one another.
CREATE VIEW compile_phases AS
SELECT p.compile_id, COALESCE(m.label, p.label) AS label, m.code_id, c.qualname, c.filename, c.first_line, p.name,
       p.start_ns, p.end_ns, p.end_ns - p.start_ns AS duration_ns
FROM compile_phase p
LEFT JOIN compile m ON m.compile_id = p.compile_id
LEFT JOIN code c ON c.code_id = m.code_id;


-- compile_caches: what torch's own caches (FX graphs, AOTAutograd, precompiled code) did for each compile: 'hit', 'miss' or
-- 'bypass', why, and what a hit saved by torch's account. differed: of a miss, up to ten parts of the key that the same cache
-- did not have when the function was compiled before (compared_with); NULL: torch gives no parts, or there was none before.
CREATE VIEW compile_caches AS
WITH event AS MATERIALIZED (
    SELECT l.rowid AS listing_id, m.compile_id, m.label, m.code_id, c.qualname, c.filename, c.first_line, m.start_ns,
           substr(l.kind, 1, instr(l.kind, '_cache_') - 1) AS cache, substr(l.kind, instr(l.kind, '_cache_') + 7) AS state,
           ROW_NUMBER() OVER (PARTITION BY m.compile_id, substr(l.kind, 1, instr(l.kind, '_cache_')) ORDER BY l.rowid) AS nth
    FROM compile m
    CROSS JOIN listing l ON l.compile_id = m.compile_id AND l.kind IN (
        'fx_graph_cache_hit', 'fx_graph_cache_miss', 'fx_graph_cache_bypass',
        'aotautograd_cache_hit', 'aotautograd_cache_miss', 'aotautograd_cache_bypass',
        'precompile_cache_hit', 'precompile_cache_miss', 'precompile_cache_bypass', 'dynamo_cache_bypass')
    LEFT JOIN code c ON c.code_id = m.code_id
),
told AS (
    SELECT e.*, iif(json_valid(l.text), l.text, '{}') AS text,
           iif(e.state = 'miss', (SELECT MAX(p.listing_id) FROM event p WHERE p.cache = e.cache AND p.nth = e.nth AND p.compile_id < e.compile_id
                AND p.qualname IS e.qualname AND p.filename IS e.filename AND p.first_line IS e.first_line), NULL) AS before_id
    FROM event e JOIN listing l ON l.rowid = e.listing_id
)
SELECT t.compile_id, t.label, t.code_id, t.qualname, t.filename, t.first_line, t.start_ns, t.cache, t.state, json_extract(t.text, '$.key') AS key,
       substr(COALESCE(json_extract(t.text, '$.cache_bypass_reason'), json_extract(t.text, '$._reason')), 1, 2000) AS reason,
       CAST(json_extract(t.text, '$.time_saved_ms') * 1e6 AS INTEGER) AS saved_ns, b.compile_id AS compared_with,
       (SELECT group_concat(part, ', ') FROM (
            SELECT DISTINCT substr(k.value, instr(k.value, '] ') + 2, instr(k.value || ': ', ': ') - instr(k.value, '] ') - 2) AS part
            FROM json_each(t.text, '$.components') k
            WHERE b.text IS NOT NULL AND k.value NOT IN (SELECT o.value FROM json_each(b.text, '$.components') o) LIMIT 10)) AS differed
FROM told t
LEFT JOIN (SELECT rowid AS listing_id, compile_id, iif(json_valid(text), text, '{}') AS text FROM listing) b ON b.listing_id = t.before_id;


-- code_marks: since when calls of a function, or those that it makes, are not compiled any more, and why.
CREATE VIEW code_marks AS
SELECT k.code_id, c.qualname, c.filename, c.first_line, k.at_ns, k.action, k.recursive_action, k.region_id, k.reason
FROM code_mark k
LEFT JOIN code c ON c.code_id = k.code_id;


-- guard_orders: in which order each process tried an entry's guards, from a moment on; a forked one goes on from the order
-- that its parent had at the fork. (In traces made before guard_order had a process_id, that name is a.process_id: each
-- process has all orders.)
CREATE VIEW guard_orders AS
SELECT a.process_id, o.cache_entry_id, o.from_ns, o.ordinals, o.rowid AS order_id
FROM guard_order o CROSS JOIN lineage a
  ON a.ancestor_id = (SELECT process_id FROM guard_order w WHERE w.rowid = o.rowid) AND o.from_ns <= a.until_ns;


-- guard_evaluation: a row for each guard that ran. Those before the end of a check passed; the one that ended it
-- has the check's own result. share_ns is an estimate: the check's time divided evenly among the guards that ran. Of a check
-- whose guards_run is not known there is only the guard that ended it, without a share.
CREATE VIEW guard_evaluation AS
SELECT k.guard_check_id, k.lookup_id, k.position, k.cache_entry_id, g.guard_id, g.ordinal, g.kind, g.source,
       g.expression,
       CASE WHEN g.guard_id = k.failed_guard_id THEN k.result ELSE $CHECK_PASS END AS result,
       k.duration_ns * 1.0 / NULLIF(k.guards_run, 0) AS share_ns
FROM guard_check k
JOIN lookup l ON l.lookup_id = k.lookup_id
JOIN guard g ON g.cache_entry_id = k.cache_entry_id
LEFT JOIN thread t ON t.thread_id = l.thread_id
LEFT JOIN guard_order o ON o.rowid = (SELECT w.order_id FROM guard_orders w WHERE w.cache_entry_id = k.cache_entry_id
                                      AND w.process_id = t.process_id AND w.from_ns <= l.start_ns
                                      ORDER BY w.from_ns DESC, w.order_id DESC LIMIT 1)
WHERE g.guard_id = k.failed_guard_id
   OR COALESCE((SELECT j.key FROM json_each(iif(json_valid(o.ordinals), o.ordinals, '[]')) j WHERE j.value = g.ordinal), g.ordinal)
      < k.guards_run - (k.failed_guard_id IS NOT NULL); -- the failed one may stand further on: it is the first that an unread value has


-- guard_bill: what guards cost over the whole run, by kind and source, the most costly first: guard_evaluation added
-- up, but checks that ended alike are one before their guards are looked at. Reads `guard_check`.
CREATE VIEW guard_bill AS
WITH checks AS MATERIALIZED (
    SELECT cache_entry_id, failed_guard_id, guards_run,
           CASE WHEN cache_entry_id IN (SELECT cache_entry_id FROM guard_order) THEN
               (SELECT w.order_id FROM lookup l JOIN thread t USING (thread_id)
                JOIN guard_orders w ON w.process_id = t.process_id AND w.from_ns <= l.start_ns
                WHERE w.cache_entry_id = k.cache_entry_id AND l.lookup_id = k.lookup_id
                ORDER BY w.from_ns DESC, w.order_id DESC LIMIT 1) END AS order_id,
           COUNT(*) AS times, SUM(result <> $CHECK_PASS) AS failures, SUM(duration_ns) AS ns
    FROM guard_check k
    GROUP BY 1, 2, 3, 4
)
SELECT g.kind, g.source, SUM(k.times) AS evaluations,
       SUM(iif(g.guard_id = k.failed_guard_id, k.failures, 0)) AS failures,
       SUM(k.ns * 1.0 / NULLIF(k.guards_run, 0)) AS estimated_ns, COUNT(DISTINCT g.cache_entry_id) AS entries
FROM checks k
CROSS JOIN guard g ON g.cache_entry_id = k.cache_entry_id
LEFT JOIN guard_order o ON o.rowid = k.order_id
WHERE g.guard_id = k.failed_guard_id
   OR COALESCE((SELECT j.key FROM json_each(iif(json_valid(o.ordinals), o.ordinals, '[]')) j WHERE j.value = g.ordinal), g.ordinal)
      < k.guards_run - (k.failed_guard_id IS NOT NULL)
GROUP BY g.kind, g.source
ORDER BY estimated_ns DESC;


-- trials: a row per run of `dyntrace try`, beside the figures of its baseline, the unchanged run of the same batch.
--   works  it ended as the baseline did, wrote the same, --compare found no other values, and nothing is said against it.
--          Of a baseline: nothing is said against it
--   gain   it works, and had fewer eager calls than the baseline; or as many, and fewer compiles; then recompiles; then graph
--          breaks. Of the whole run: that of one function is in trial_functions. Where eager calls were not counted there was one
--          at least: a run without any had fewer, two such runs are held to have as many, and else there is no gain
--   note   that in words, or why it does not work; NULL for a baseline that works
CREATE VIEW trials AS
WITH judged AS (
    SELECT t.*, t.trial_id = t.batch AS baseline, b.compiles AS baseline_compiles, b.recompiles AS baseline_recompiles,
           b.breaks AS baseline_breaks, b.eager AS baseline_eager, b.hits AS baseline_hits,
           b.compile_ns AS baseline_compile_ns, b.step_ns AS baseline_step_ns,
           CASE WHEN t.error IS NOT NULL THEN t.error
                WHEN t.trial_id = t.batch THEN NULL
                WHEN b.error IS NOT NULL THEN 'the unchanged run is no answer'
                WHEN t.exit_code IS NOT b.exit_code OR t.exit_signal IS NOT b.exit_signal THEN 'ends otherwise'
                WHEN t.values_same IS 'different' THEN 'changes what it returns'
                WHEN t.output_same IS 0 THEN 'changes its output' || COALESCE(': ' || t.difference, '')
                WHEN t.output_same IS NULL THEN 'its output is never the same' END AS fault
    FROM trial t LEFT JOIN trial b ON b.trial_id = t.batch
),
weighed AS (
    SELECT *, fault IS NULL AS works,
           fault IS NULL AND NOT baseline AND CASE
               WHEN eager IS NULL AND baseline_eager IS NULL
                   THEN COALESCE((compiles, recompiles, breaks) < (baseline_compiles, baseline_recompiles, baseline_breaks), 0)
               WHEN baseline_eager IS NULL THEN baseline_compiles IS NOT NULL AND eager = 0
               ELSE COALESCE((eager, compiles, recompiles, breaks)
                             < (baseline_eager, baseline_compiles, baseline_recompiles, baseline_breaks), 0) END AS gain
    FROM judged
)
SELECT j.trial_id, j.batch, j.setting, j.baseline, j.works, j.gain,
       COALESCE(j.fault, iif(j.baseline, NULL, iif(j.gain, 'gain', 'no gain'))) AS note, j.fault, j.function_id, c.qualname, c.filename, c.first_line, j.compiles, j.baseline_compiles, j.recompiles,
       j.baseline_recompiles, j.breaks, j.baseline_breaks, j.eager, j.baseline_eager, j.hits, j.baseline_hits,
       j.compile_ns, j.baseline_compile_ns, j.step_ns, j.baseline_step_ns, j.duration_ns, j.exit_code, j.exit_signal,
       j.output_same, j.values_same, j.error, j.started_unix_ns, j.command
FROM weighed j LEFT JOIN code c ON c.code_id = j.function_id;


-- trial_functions: the same of each function that any trial of the batch compiled or called: a trial that ran and has no row
-- of it did neither. gain: by the function's own figures.
CREATE VIEW trial_functions AS
WITH tried AS (SELECT DISTINCT t.batch, f.function_id FROM trial_function f JOIN trial t ON t.trial_id = f.trial_id),
counted AS (
    SELECT t.trial_id, t.batch, t.setting, t.baseline, t.works, t.fault, d.function_id,
           COALESCE(f.compiles, t.compiles * 0) AS compiles, COALESCE(f.recompiles, t.compiles * 0) AS recompiles,
           COALESCE(f.breaks, t.compiles * 0) AS breaks, iif(f.trial_id IS NULL, t.compiles * 0, f.eager) AS eager,
           COALESCE(f.hits, t.compiles * 0) AS hits, COALESCE(f.compile_ns, t.compiles * 0) AS compile_ns, f.step_ns,
           t.duration_ns, t.exit_code, t.exit_signal, t.output_same, t.values_same, t.error
    FROM trials t
    JOIN tried d ON d.batch = t.batch
    LEFT JOIN trial_function f ON f.trial_id = t.trial_id AND f.function_id = d.function_id
    WHERE d.function_id IS NOT NULL
),
weighed AS (
    SELECT n.*, b.compiles AS baseline_compiles, b.recompiles AS baseline_recompiles, b.breaks AS baseline_breaks,
           b.eager AS baseline_eager, b.hits AS baseline_hits, b.compile_ns AS baseline_compile_ns, b.step_ns AS baseline_step_ns,
           n.works AND NOT n.baseline AND CASE
               WHEN n.eager IS NULL AND b.eager IS NULL
                   THEN COALESCE((n.compiles, n.recompiles, n.breaks) < (b.compiles, b.recompiles, b.breaks), 0)
               WHEN b.eager IS NULL THEN b.compiles IS NOT NULL AND n.eager = 0
               ELSE COALESCE((n.eager, n.compiles, n.recompiles, n.breaks) < (b.eager, b.compiles, b.recompiles, b.breaks), 0)
               END AS gain
    FROM counted n LEFT JOIN counted b ON b.trial_id = n.batch AND b.function_id = n.function_id
)
SELECT n.trial_id, n.batch, n.setting, n.baseline, n.works, n.gain,
       COALESCE(n.fault, iif(n.baseline, NULL, iif(n.gain, 'gain', 'no gain'))) AS note, n.function_id, c.qualname, c.filename,
       c.first_line, n.compiles, n.baseline_compiles, n.recompiles, n.baseline_recompiles, n.breaks, n.baseline_breaks, n.eager,
       n.baseline_eager, n.hits, n.baseline_hits, n.compile_ns, n.baseline_compile_ns, n.step_ns, n.baseline_step_ns,
       n.duration_ns, n.exit_code, n.exit_signal, n.output_same, n.values_same, n.error
FROM weighed n LEFT JOIN code c ON c.code_id = n.function_id;

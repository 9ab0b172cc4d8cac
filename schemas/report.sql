-- report.sql -- the statements of `dyntrace report`. The most important rows come first; each form
-- of the report decides how many rows it shows. C counts the calls (src/trace/counts.h).
--
-- A table of the report is a statement of this file, whose name is listed in src/cmd/report.c or
-- src/cmd/report/html.c. Lines above the statement describe the table:
--
--   --title words        its heading
--   --id word            its anchor in the page, if that is not its name
--   --link words         the head of the page has a link to it with this text
--   --always             a terminal shows it even without rows. Other tables without rows are left out, and a page leaves
--                        out every table without rows
--   --cell {field}  words   a column in a terminal, and its heading; "--cell?": left out if it is empty in every row
--   --page {field}  words   a column in a browser; an explanation in () may follow; {!c}{field} is set as code
--
-- docs/internals.md, "Templates", describes the fields. A cell is empty if its first field is NULL; it is set as a number if
-- this field is one. In a browser `filename` shows the whole path under the mouse pointer, and `_what` opens to show the two
-- columns after it. --json has every column, by name, except those that begin with _.

-- name: facts
-- Facts about the whole recording: a name; a value, which is a text or a number (nanoseconds for
-- `span`); and a text that says more. C completes the text of `frames`.
WITH about AS MATERIALIZED (SELECT (SELECT value FROM meta WHERE key = 'command') AS command,
                                   (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'started_unix_ns') AS started,
                                   (SELECT ' on ' || substr(value, 1, 200) FROM meta WHERE key = 'host') AS host,
                                   (SELECT ' by dyntrace ' || substr(value, 1, 100) FROM meta WHERE key = 'dyntrace_version') AS version)
SELECT 'command' AS name,
       COALESCE(NULLIF(iif(json_valid(command), (SELECT group_concat(value, ' ') FROM json_each(iif(json_valid(command), command, '[]'))), command), ''),
                'not recorded (--no-argv)') AS value, NULL AS more
FROM about WHERE command IS NOT NULL
UNION ALL
SELECT 'recorded', strftime('%Y-%m-%d %H:%M:%S', started / 1000000000, 'unixepoch', 'localtime') || COALESCE(host, '') || COALESCE(version, ''), NULL
FROM about WHERE started > 0
UNION ALL
SELECT 'span', CAST(value AS INTEGER), NULL FROM meta WHERE key = 'span_ns' AND value >= 0
UNION ALL
SELECT 'recorder', printf('%.2f s of processor time', value / 1e9), NULL FROM meta WHERE key = 'recorder_cpu_ns' AND value >= 0
UNION ALL
SELECT 'frames', NULL, NULL
UNION ALL
SELECT 'processes', COUNT(*), NULL FROM process
UNION ALL
SELECT 'threads', COUNT(*), NULL FROM thread
UNION ALL
SELECT key, value, (SELECT 'times are right within ' || round(value / 1e6, 2) || ' ms, in the mean' FROM meta WHERE key = 'clock_resolution_ns')
FROM meta WHERE key = 'clock'
UNION ALL
SELECT * FROM (
    SELECT 'torch', substr(torch_version, 1, 100) || COALESCE(', ' || substr(torch_mode, 1, 20), '') || iif(COUNT(*) > 1, ', ' || COUNT(*) || ' processes', ''),
           torch_note
    FROM process WHERE torch_version IS NOT NULL
    GROUP BY torch_version, torch_mode, torch_note
    ORDER BY COUNT(*) DESC, torch_version LIMIT 10);

-- name: open_frames
SELECT COUNT(*) FROM (SELECT end_ns FROM frame LIMIT 2000000) WHERE end_ns IS NULL;

-- name: sums
-- Members of --json. ?1 is the number of frames, ?2 the number of open frames.
SELECT ?1 AS frames, ?2 AS open_frames, (SELECT COALESCE(SUM(frames), 0) FROM frame_count) AS counted_frames, (SELECT COUNT(*) FROM process) AS process_count, (SELECT COUNT(*) FROM thread) AS thread_count,
       (SELECT COALESCE(SUM(events), 0) FROM loss) AS lost_events,
       (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'recorder_cpu_ns') AS recorder_cpu_ns;

-- name: cards
-- The numbers at the top of the page: a name, its explanation, a number, the number's type
-- ('count', 'ns', 'percent'), and whether the number is good or bad. ?2: the calls from which
-- shares are computed; ?3 and ?4: hits, and calls that ran as Python; ?5: whether the compiler
-- decided about any call.
--+ <div class="card {kind}" title="{title}"><b>
--| [{?type=count}{value:count}][{?type=ns}{value:duration}][{?type=percent}{value:share} %]</b>{what}</div>
WITH compiled AS MATERIALIZED (
    SELECT COUNT(cache_entry_id) AS made, COUNT(*) AS tries, SUM(compile_ns) AS ns, SUM(is_recompile) AS again,
           (SELECT COUNT(*) FROM graph_break) AS breaks
    FROM compiles)
SELECT iif(COUNT(*) = 1, 'process', 'processes') AS what, 'Python processes that were followed' AS title, COUNT(*) AS value, 'count' AS type, '' AS kind FROM process
UNION ALL
SELECT iif(COUNT(*) = 1, 'thread', 'threads'), 'threads that evaluated a frame', COUNT(*), 'count', '' FROM thread
UNION ALL
SELECT iif(?2 = 1, 'call decided', 'calls decided'), 'calls that a compiler was asked about', ?2, 'count', '' WHERE ?5
UNION ALL
SELECT 'hits', 'of these calls', 100.0 * ?3 / ?2, 'percent', iif(100.0 * ?3 / ?2 >= 90, 'good', '') WHERE ?2 > 0
UNION ALL
SELECT 'ran as Python', 'of these calls', 100.0 * ?4 / ?2, 'percent', iif(100.0 * ?4 / ?2 >= 10, 'bad', '') WHERE ?2 > 0
UNION ALL
SELECT iif(made = 1, 'compile', 'compiles'), 'that made code', made, 'count', '' FROM compiled WHERE made > 0
UNION ALL
SELECT 'in the compiler', 'of all compiles', ns, 'ns', '' FROM compiled WHERE made > 0
UNION ALL
SELECT iif(again = 1, 'recompile', 'recompiles'), 'in a process whose cache had held code for it', again, 'count', iif(again > 0, 'bad', 'good') FROM compiled WHERE made > 0
UNION ALL
SELECT iif(breaks = 1, 'graph break', 'graph breaks'), 'places where a compile had to stop', breaks, 'count', iif(breaks > 0, 'bad', 'good') FROM compiled
WHERE breaks + tries > 0
UNION ALL
SELECT * FROM (SELECT 'in guards', 'of all checks of guards', SUM(duration_ns) AS ns, 'ns', '' FROM guard_check WHERE ?5) WHERE ns IS NOT NULL;

-- name: losses
-- Many losses have the same cause, so there is one row for each cause, the worst first. All waits for
-- the recorder are one row, because only the milliseconds in their causes differ.
--title Losses
--link losses
--cell {_what}
--cell {_events:count}  events
--cell {times:count}  times
--cell {first_ns:duration}  first at
--cell {cause}  cause
--page {_what}  (events are missing, so that what follows may be incomplete; or the program waited for the recorder)
--page {_events:count}  events
--page {times:count}  times
--page {first_ns:duration}  first at
--page {cause}  cause
WITH told AS (SELECT *, iif(cause LIKE $LOSS_WAIT || '%', CAST(substr(cause, length($LOSS_WAIT) + 1) AS REAL), NULL) AS wait_ms
              FROM losses)
SELECT iif(COUNT(*) = 1 OR wait_ms IS NULL, cause,
           printf('%s%.1f ms for the collector, at most %.1f ms at once', $LOSS_WAIT, SUM(wait_ms), MAX(wait_ms))) AS cause,
       COUNT(*) AS times, SUM(events) AS events, MIN(at_ns) AS first_ns, MAX(at_ns) AS last_ns,
       COUNT(DISTINCT process_id) AS processes, is_stall,
       iif(is_stall, 'waited', 'LOSS') AS _what, COALESCE(SUM(events), '?') AS _events, NOT is_stall AS _alarm
FROM told
GROUP BY iif(wait_ms IS NULL, cause, $LOSS_WAIT)
ORDER BY is_stall, events DESC;

-- name: has-doubts
-- Does the trace have losses other than waits for the recorder, after which nothing is missing and all times are true?
SELECT EXISTS (SELECT 1 FROM losses WHERE cause NOT LIKE $LOSS_WAIT || '%');

-- name: processes
--title Processes
--link processes
--always
--cell {_pid}  pid
--cell? {_own_pid}  to itself
--cell {_ended:ended}  ended
--cell {ran_ns:duration}  ran
--cell {threads:count}  threads
--cell {python_version}  python
--cell? {_rank}  rank
--cell? {torch_mode}  torch
--cell {_command}  command
--page {!c}{_pid}  pid
--page? {_own_pid}  to itself (in its pid namespace)
--page {_ended:ended}  ended
--page {ran_ns:duration}  ran
--page {threads:count}  threads
--page {python_version}  python
--page {_rank}  rank
--page {!c}{_command}  command
SELECT t.process_id, p.pid, (SELECT own_pid FROM process o WHERE o.process_id = p.process_id) AS own_pid, p.parent_process_id, t.depth, p.rank, p.local_rank,
       CASE WHEN json_valid(p.argv) THEN json(p.argv) ELSE json_array(CAST(p.argv AS TEXT)) END AS argv, p.executable,
       p.python_version, p.torch_version, p.mode, p.torch_mode, p.torch_note, p.start_ns, p.end_ns, p.exit_code,
       p.exit_signal,
       (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) AS threads,
       p.end_ns - p.start_ns AS ran_ns,
       printf('%*s%s', MIN(t.depth, 60) * 2, '', COALESCE(p.pid, '?')) AS _pid,
       (SELECT NULLIF(own_pid, p.pid) FROM process o WHERE o.process_id = p.process_id) AS _own_pid,
       t.ended AS _ended,
       p.rank || iif(p.local_rank <> p.rank, ' (' || p.local_rank || ' here)', '') AS _rank,
       t.command AS _command
FROM process_tree t
JOIN process p ON p.process_id = t.process_id, (SELECT NULL AS own_pid) older -- of a trace without the column: the name is then this one's
ORDER BY t.path;

-- name: is-copied
-- Did `fsck --recover` copy the trace from a damaged file?
SELECT EXISTS (SELECT 1 FROM loss WHERE cause LIKE 'recovered from a damaged file:%');

-- name: is-several
-- Does the trace have several processes or threads? Otherwise the report does not mention them.
SELECT (SELECT COUNT(*) FROM process) > 1 OR (SELECT COUNT(*) FROM thread) > 1;

-- name: has-own
-- Does the trace have calls of the program's own functions?
SELECT EXISTS (SELECT 1 FROM hot_functions WHERE is_own);

-- name: is-job
-- Does the trace have several ranks, which schemas/ranks.sql can compare?
SELECT COUNT(DISTINCT rank) FILTER (WHERE rank >= 0) > 1 FROM process;

-- name: threads
--title Threads
--always
--cell {pid}  pid
--cell {os_tid}  tid
--cell {name}  name
SELECT t.thread_id, t.process_id, p.pid, t.os_tid, t.name
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id
ORDER BY t.process_id, t.thread_id;

-- name: outcomes
-- How calls were decided. ?1 is the list of outcomes in --json, ?2 the number of calls from which
-- shares are computed.
--title Calls, as they were decided
--always
--cell {calls:count}  calls
--cell {share:share} %  share
--cell {lookup_ns:duration}  lookups
--cell {outcome}  outcome
--page {outcome}  outcome (how a call was decided)
--page {calls:count}  calls
--page {share:share} %  share (of those that count in shares)
--page {lookup_ns:duration}  lookups (time until it was known what runs)
SELECT c.key AS outcome, c.value ->> 'calls' AS calls, iif(o.asked, 100.0 * (c.value ->> 'calls') / ?2, NULL) AS share,
       c.value ->> 'lookup_ns' AS lookup_ns
FROM json_each(?1) c
JOIN outcomes o ON o.name = c.key
WHERE calls > 0
ORDER BY o.outcome;

-- name: call_sums
-- A sentence about all calls. ?1: the calls from which shares are computed; ?2 and ?3: those of
-- them that were hits, and those that ran as Python; ?4: calls of functions that the compiler
-- turned away unread.
--| [{hits:share} % hits, {python:share} % ran as Python, of {asked:count~call}]
--| [not counted: {turned_away:count~call} of functions that the compiler turned away unread (`dyntrace sql FILE skips`)]
SELECT NULLIF(?1, 0) AS asked, 100.0 * ?2 / ?1 AS hits, 100.0 * ?3 / ?1 AS python, NULLIF(?4, 0) AS turned_away;

-- name: compile_sums
-- A sentence about all compiles.
--| {made:count~compile} of {code_objects:count~code object}, {compile_ns:duration}; {recompiles:count~recompile}, {graph_breaks:count~graph break}[; {limits:count} reached the limit][; {errors:count} failed][; {without_code:count~attempt} without code (`dyntrace sql FILE skips`)]
SELECT COUNT(cache_entry_id) AS made, COUNT(DISTINCT CASE WHEN cache_entry_id IS NOT NULL THEN code_id END) AS code_objects,
       COALESCE(SUM(compile_ns), 0) AS compile_ns, COALESCE(SUM(is_recompile), 0) AS recompiles,
       (SELECT COUNT(*) FROM graph_break) AS graph_breaks,
       NULLIF(COUNT(DISTINCT CASE WHEN outcome = 'limit' THEN code_id END), 0) AS limits, NULLIF(SUM(outcome IS 'error'), 0) AS errors,
       NULLIF(SUM(cache_entry_id IS NULL AND outcome IS NOT 'error'), 0) AS without_code
FROM compiles;

-- name: compiles
-- The functions that were compiled, a row for each. Functions that torch only turned away (its own
-- functions, and functions without tensors) are in the query `skips`.
--title Compiles, most recompiles first
--link compiles
--cell {compiles:count}  compiles
--cell {recompiles:count}  recompiles
--cell {graph_breaks:count}  breaks
--cell {compile_ns:duration}  time
--cell {ended}  ended
--cell {!c}{qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {compiles:count}  compiles (that made code)
--page {recompiles:count}  recompiles (in a process whose cache had held code for it)
--page {graph_breaks:count}  breaks (graph breaks)
--page {without_code:count}  without code (attempts that made none)
--page {compile_ns:duration}  time (in the compiler)
--page {limits:count}  at the limit (times it was not compiled for that)
--page {errors:count}  failed (the compiler raised)
WITH broken AS MATERIALIZED (SELECT compile_id, COUNT(*) AS breaks FROM graph_break GROUP BY compile_id),
every AS MATERIALIZED (SELECT * FROM compiles) -- by itself it is quick with thousands of processes
SELECT m.qualname, m.filename, m.first_line, COUNT(m.cache_entry_id) AS compiles, SUM(m.is_recompile) AS recompiles,
       COALESCE(SUM(b.breaks), 0) AS graph_breaks, SUM(m.cache_entry_id IS NULL) AS without_code,
       SUM(m.compile_ns) AS compile_ns,
       SUM(m.outcome IS 'limit') AS limits, SUM(m.outcome IS 'error') AS errors,
       iif(SUM(m.outcome IS 'limit') > 0, 'at the limit', '') || iif(SUM(m.outcome IS 'limit') > 0 AND SUM(m.outcome IS 'error') > 0, ', ', '')
       || CASE SUM(m.outcome IS 'error') WHEN 0 THEN '' WHEN 1 THEN 'failed 1 time' ELSE 'failed ' || SUM(m.outcome IS 'error') || ' times' END
       AS ended
FROM every m
LEFT JOIN broken b ON b.compile_id = m.compile_id
LEFT JOIN functions f ON f.code_id = m.code_id
GROUP BY f.function_id
HAVING COUNT(m.cache_entry_id) + SUM(m.outcome IS 'limit') + SUM(m.outcome IS 'error') > 0
ORDER BY recompiles DESC, graph_breaks DESC, compile_ns DESC, m.qualname;

-- name: eager
-- Functions whose calls ran as Python though compiled code was wanted.
--title Calls that ran eagerly, though a compiler was set
--link eager calls
--cell {eager:count}  eager
--cell {calls:count}  of calls
--cell {eager_ns:duration}  since
--cell? {reason}  because
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {eager:count}  eager (calls that ran as Python)
--page {calls:count}  of calls (that wanted compiled code)
--page {eager_ns:duration}  since
--page? {reason}  because
SELECT qualname, filename, first_line, eager, calls, eager_ns, why_eager,
       CASE why_eager WHEN 'limit' THEN 'limit reached' WHEN 'error' THEN 'compile failed' WHEN 'declined' THEN 'compiler gave no code' END AS reason
FROM findings WHERE eager > 0 ORDER BY eager DESC, number;

-- name: causes
-- The guards that decided recompiles (compiles.cause_id), by function and source. Each recompile
-- counts once. The actual values are a list in order of time, at most a hundred. Columns that begin
-- with _ are for people (src/trace/functions.h).
--id recompiles
--title Recompiles, by what made them needed
--link recompiles
--cell {recompiles:count}  recompiles
--cell {kind}  guard
--cell {_name:80}  source
--cell {_seen:60}  actual
--cell? {_needed:80}  needed by
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {recompiles:count}  recompiles
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {!c}{kind}  guard (its kind)
--page {!c}{_name}  source
--page {!c}{_first}  expected first
--page {!c}{_seen}  actual (one after the other)
--page? {!c}{_needed}  needed by (the line of the program)
--page {first_ns:duration}  first at
--page {last_ns:duration}  last at
WITH decided AS MATERIALIZED (
    SELECT k.compile_id, f.function_id, k.qualname, k.filename, k.first_line, k.start_ns, k.kind, k.source, k.aspect, k.dimension,
           k.expected, k.actual, COALESCE(k.text, '') AS text, k.how, substr(g.user_stack, 1, 4000) AS user_stack
    FROM compiles m JOIN recompile_causes k ON k.cause_id = m.cause_id LEFT JOIN guard g ON g.guard_id = k.guard_id
    LEFT JOIN functions f ON f.code_id = k.code_id
    WHERE m.is_recompile
    ORDER BY k.compile_id
),
ranked AS MATERIALIZED (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY function_id, source, COALESCE(aspect, kind) ORDER BY compile_id) AS n FROM decided
),
grouped AS (
    SELECT qualname, filename, first_line, COUNT(DISTINCT compile_id) AS recompiles, MAX(CASE WHEN n = 1 THEN kind END) AS kind, source,
           iif(MIN(aspect) = MAX(aspect), MIN(aspect), NULL) AS aspect, iif(MIN(dimension) = MAX(dimension), MIN(dimension), NULL) AS dimension,
           MAX(CASE WHEN n = 1 THEN expected END) AS expected,
           group_concat(CASE WHEN n <= 100 THEN substr(actual, 1, 100) END, ', ') AS seen,
           MIN(start_ns) AS first_ns, MAX(start_ns) AS last_ns, substr(MAX(text), 1, 1000) AS text, MIN(how) AS how,
           COALESCE(source, substr(MAX(text), 1, 1000)) AS looked_at,
           MAX(CASE WHEN n = 1 THEN actual END) AS _actual, MAX(CASE WHEN n = 1 THEN user_stack END) AS _stack,
           MAX(CASE WHEN n = 1 THEN text END) AS _text,
           group_concat(CASE WHEN n <= 100 THEN cause_seen(kind, source, aspect, dimension, expected, substr(actual, 1, 100), text) END, ', ') AS _values
    FROM ranked
    GROUP BY function_id, source, COALESCE(ranked.aspect, ranked.kind)
)
SELECT *, iif(source IS NULL AND expected IS NULL AND _actual IS NULL, as_written(looked_at),
              cause_name(kind, source, aspect, dimension, expected, _actual, _text)) AS _name,
       cause_expected(kind, source, aspect, dimension, expected, _actual, _text) AS _first,
       as_written(brief(_values, NULL)) AS _seen, needed_by(_stack, _text, qualname) AS _needed
FROM grouped
ORDER BY recompiles DESC, first_ns, 5, source;

-- name: recompiles
-- Each recompile, with the cause that decided in each of the older entries.
--id each-recompile
--title Each recompile
--page {start_ns:duration}  at
--page {!c}{label}  compile
--page {compile_ns:duration}  took
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {!c}{older_entry}  did not fit (the older entry)
--page {_what}  because (click: the guard, the source lines that it is there for, and the what-if setting that spares it)
SELECT k.compile_id, k.label, k.start_ns, k.compile_ns, k.qualname, k.filename, k.first_line, k.older_entry, k.kind,
       k.source, k.aspect, k.dimension, k.expected, k.actual, substr(k.text, 1, 2000) AS text, -- from `kind` on as cause_read() wants them
       k.guard_id AS _guard_id, k.compile_id AS _compile_id, k.cache_entry_id AS _cache_entry_id, k.how,
       substr(COALESCE(k.why, k.kind, '?'), 1, 400) AS what,
       substr(COALESCE(cause_words(k.kind, k.source, k.aspect, k.dimension, k.expected, k.actual, k.text), as_written(k.why), k.kind, '?'), 1, 400)
           || COALESCE('; needed by ' || needed_by(substr(g.user_stack, 1, 4000), k.text, k.qualname), '') AS _what,
       COALESCE(k.kind, 'guard') || COALESCE(' ' || k.source, '') || COALESCE(': ' || substr(g.expression, 1, 1500), '') ||
       COALESCE(char(10) || substr(k.text, 1, 1500), '') || COALESCE(char(10) || k.how, '') AS _guard,
       COALESCE(substr(g.user_stack, 1, 3000), k.filename || ':' || k.first_line, '') AS _source
FROM compiles m
JOIN recompile_causes k ON k.compile_id = m.compile_id
LEFT JOIN guard g ON g.guard_id = k.guard_id
WHERE m.is_recompile AND k.decided
ORDER BY k.compile_id, k.cache_entry_id;

-- name: breaks
-- Graph breaks by place and first line of the reason. Further lines of the reason depend only on
-- the first line.
--title Graph breaks, by place
--link breaks
--cell {calls:count}  calls
--cell {times:count}  compiles
--cell {what:100}  reason
--cell? {_at:80}  at
--cell {qualname}  function
--cell {filename:path}:{at_line|0}  where
--page {calls:count}  calls (that met it)
--page {times:count}  compiles (that broke there)
--page {!c}{qualname}  function
--page {filename:path}:{at_line|0}  where
--page {what}  reason
--page? {!c}{_at}  at (the innermost line of the program)
--page? {!c}{_path}  by (how the program came there)
--page {!c}{resume_function}  the rest is (function made of what comes after)
SELECT p.qualname, p.filename, p.first_line, p.line, p.times, p.calls, p.what, p.reason, p.user_stack,
       r.qualname AS resume_function, needed_by(p.user_stack, NULL, p.qualname) AS _at, stack_path(p.user_stack) AS _path,
       COALESCE(p.line, p.first_line) AS at_line
FROM (SELECT c.qualname, c.filename, c.first_line, b.line, COUNT(*) AS times,
             iif(EXISTS (SELECT 1 FROM lookup), SUM(COALESCE(u.calls, 0)), NULL) AS calls,
             substr(b.reason, 1, instr(substr(b.reason, 1, 500) || char(10), char(10)) - 1) AS what,
             substr(MAX(b.reason), 1, 4000) AS reason, substr(MAX(b.user_stack), 1, 4000) AS user_stack,
             MAX(b.resume_code_id) AS resume_code_id
      FROM graph_break b
      LEFT JOIN compile m ON m.compile_id = b.compile_id
      LEFT JOIN entry_calls u ON u.cache_entry_id = m.cache_entry_id
      LEFT JOIN functions c ON c.code_id = COALESCE(b.code_id, m.code_id)
      GROUP BY c.function_id, b.line, what) p
LEFT JOIN code r ON r.code_id = p.resume_code_id
ORDER BY p.calls DESC, p.times DESC, p.filename, p.line, p.what;

-- name: trials
-- The results of `dyntrace try` for whole runs. --json also has the results for each function, from
-- the view trial_functions.
--title Trials: the recorded command under settings (dyntrace try)
--link trials
--cell {setting:60}  setting
--cell {compiles:count}  compiles
--cell {recompiles:count}  recompiles
--cell {breaks:count}  breaks
--cell {eager:count}  eager
--cell {hits:count}  hits
--cell {compile_ns:duration}  compile time
--cell {step_ns:duration}  step
--cell? {ended}  ended
--cell? {output}  output
--cell? {values_same}  values
--cell {note:60}  note
--page {!c}{setting}  setting (of run --set)
--page {compiles:count}  compiles (that made code)
--page {recompiles:count}  recompiles
--page {breaks:count}  breaks (graph breaks)
--page {eager:count}  eager (calls that ran as Python; empty where they were not counted)
--page {hits:count}  hits
--page {compile_ns:duration}  compile time
--page {step_ns:duration}  step (median time of a call of the function beside it, after its last compile)
--page? {!c}{of}  of
--page? {ended}  ended
--page? {output}  output (beside the unchanged run)
--page? {values_same}  values (what the function returned)
--page {note}  note
SELECT trial_id, batch, iif(baseline, '(unchanged)', setting) AS setting, baseline, works, gain, compiles, recompiles, breaks, eager, hits, compile_ns,
       step_ns, qualname AS of, COALESCE('signal ' || exit_signal, 'exit ' || exit_code) AS ended,
       CASE output_same WHEN 1 THEN 'same' WHEN 0 THEN 'differs' END AS output, values_same, error, COALESCE(note, '') AS note,
       NOT works AS _alarm
FROM trials ORDER BY trial_id;

-- name: limits
-- Functions at their limit, and since when.
--title Functions that are not compiled any more
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {at_ns:duration}  since
--page {times:count}  times
--page {reason}  reason
SELECT m.qualname, m.filename, m.first_line, MIN(start_ns) AS at_ns, COUNT(*) AS times, substr(MIN(reason), 1, 1000) AS reason
FROM compiles m LEFT JOIN functions f ON f.code_id = m.code_id
WHERE outcome = 'limit'
GROUP BY f.function_id
ORDER BY at_ns;

-- name: guards
--title Guards, most costly first (a check's time is divided evenly among those that ran)
--link guards
--cell {evaluations:count}  evaluations
--cell {failures:count}  failures
--cell {estimated_ns:duration}  time
--cell {kind}  guard
--cell {_name:80}  source
--page {!c}{kind}  guard (its kind)
--page {!c}{_name}  source
--page {evaluations:count}  evaluations
--page {failures:count}  failures
--page {estimated_ns:duration}  time (an estimate: a check's time divided evenly among the guards that ran)
--page {entries:count}  entries (that have it)
-- torch numbers the names by which each entry reaches the builtins, so one guard of the program has
-- many sources
SELECT kind, MIN(source) AS source, SUM(evaluations) AS evaluations, SUM(failures) AS failures,
       CAST(SUM(estimated_ns) AS INTEGER) AS estimated_ns, SUM(entries) AS entries, as_written(MIN(source)) AS _name
FROM guard_bill
GROUP BY kind, iif(source GLOB 'G[[]''__builtins_dict__*', as_written(source), COALESCE(source, ''))
ORDER BY 5 DESC, 3 DESC, kind, source;

-- name: guard_costs
-- Guards by function, where the time of checks was measured.
--title Time in guards, by function
--cell {checks:count}  checks
--cell {failed:count}  failed
--cell {ns:duration}  time
--cell {each_ns:duration}  each
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {checks:count}  checks (of an entry's guards)
--page {failed:count}  failed
--page {ns:duration}  time (as it was measured)
--page {each_ns:duration}  each
SELECT c.qualname, c.filename, c.first_line, SUM(k.checks) AS checks, SUM(k.failed) AS failed, SUM(k.ns) AS ns, SUM(k.ns) / SUM(k.checks) AS each_ns
FROM (SELECT cache_entry_id, COUNT(*) AS checks, SUM(result = $CHECK_FAIL) AS failed, SUM(duration_ns) AS ns
      FROM guard_check WHERE duration_ns IS NOT NULL GROUP BY cache_entry_id) k
JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id JOIN functions c ON c.code_id = e.code_id
GROUP BY c.function_id HAVING SUM(k.ns) > 0 ORDER BY ns DESC, c.qualname;

-- name: own_functions
--title Functions of the program, most self and library time first
--link functions
--cell {calls:count}  calls
--cell {total_ns:duration}  total
--cell {self_ns:duration}  self
--cell? {library_ns:duration}  libraries
--cell {ns_per_call:duration}  per call
--cell? {max_ns:duration}  max
--cell {raised:count}  raised
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {calls:count}  calls (frames entered)
--page {total_ns:duration}  total (callees included)
--page {self_ns:duration}  self (callees excluded)
--page? {library_ns:duration}  libraries (self of library code that it called)
--page {ns_per_call:duration}  per call
--page? {max_ns:duration}  max (the longest)
--page {raised:count}  raised (left by an exception)
SELECT qualname, filename, first_line, kind, calls, total_ns, self_ns, library_ns, ns_per_call, max_ns, raised
FROM hot_functions WHERE is_own
ORDER BY self_ns + COALESCE(library_ns, 0) DESC, calls DESC;

-- name: slowest
-- The longest call of each function of the program that was called more than once, for a program
-- without a compiler.
--title Slowest calls, the longest of each function
--cell {max_ns:duration}  longest
--cell {ns_per_call:duration}  per call
--cell {calls:count}  calls
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
SELECT qualname, filename, first_line, max_ns, ns_per_call, calls
FROM hot_functions WHERE is_own AND calls > 1 AND max_ns > 0 AND NOT EXISTS (SELECT 1 FROM compile)
ORDER BY max_ns DESC, code_id LIMIT 10;

-- name: longest
-- For the HTML page: the longest call of each function of the program that was called more than
-- once, and its place in the recording. ?1: the longest frames of each code object, a JSON array.
--title Longest calls, of each function the longest
--link longest calls
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {longest_ns:duration}  longest
--page {ns_per_call:duration}  per call (the mean)
--page {calls:count}  calls
--page {start_ns:duration}  at (since the recording began)
--page {thread}  thread
--page {frame_id}  call (its number, for dyntrace tree FUNC --call)
WITH found AS MATERIALIZED (
    SELECT f.frame_id, f.code_id, f.start_ns, f.duration_ns, f.thread FROM json_each(?1) j CROSS JOIN frames f ON f.frame_id = j.value
),
one AS MATERIALIZED ( -- the bare columns are those of the longest
    SELECT u.function_id, d.frame_id, d.start_ns, d.thread, MAX(d.duration_ns) AS ns
    FROM found d JOIN functions u ON u.code_id = d.code_id WHERE u.is_own AND d.code_id NOT IN (SELECT code_id FROM waits) GROUP BY 1
),
hot AS MATERIALIZED (SELECT u.function_id, h.* FROM hot_functions h JOIN functions u ON u.code_id = h.code_id WHERE h.calls > 1)
SELECT h.qualname, h.filename, h.first_line, o.ns AS longest_ns, h.ns_per_call, h.calls, o.start_ns, COALESCE(o.thread, '?') AS thread, o.frame_id
FROM one o JOIN hot h ON h.function_id = o.function_id
GROUP BY o.function_id ORDER BY o.ns DESC, o.frame_id LIMIT 20;

-- name: spans
-- The spans in which the program itself says that it spent its time.
--title Spans
--link spans
--cell {total_ns:duration}  total
--cell {spans:count}  spans
--cell {p50_ns:duration}  p50
--cell {max_ns:duration}  max
--cell? {_open:count}  open
--cell? {_kind}  of
--cell {name:60}  name
--page {name:200}  name
--page? {_kind}  of
--page {spans:count}  spans
--page {total_ns:duration}  total (of a span within one of the same name, in both)
--page {p50_ns:duration}  p50
--page {max_ns:duration}  max
--page? {_open:count}  open (never ended)
SELECT name, kind, spans, total_ns, p50_ns, max_ns, open, NULLIF(open, 0) AS _open, NULLIF(kind, 'span') AS _kind
FROM span_names
ORDER BY total_ns DESC, name;

-- name: longest_spans
-- For the HTML page: single spans, the longest first, with their attributes.
--title Longest spans
--page {name:200}  name
--page? {!c}{attributes:400}  attributes
--page {took_ns:duration}  took
--page {start_ns:duration}  at (since the recording began)
--page? {parent}  within
--page {thread}  thread
--page? {!c}{function}  in (the innermost function in which it began)
--page? {frame_id}  call (its number, for dyntrace tree FUNC --call)
SELECT s.name, s.attributes, s.duration_ns AS took_ns, s.start_ns, s.parent, COALESCE(s.thread, '?') AS thread, c.qualname AS function, f.frame_id
FROM spans s LEFT JOIN frame f ON f.frame_id = s.frame_id LEFT JOIN code c ON c.code_id = f.code_id
ORDER BY s.duration_ns DESC, s.span_id LIMIT 50;

-- name: waiting
-- Functions that were off the processor for at least a hundredth of the own time of all functions.
--title Waiting: at least so long off a processor
--cell {waited_ns:duration}  waited
--cell {queued_ns:duration}  for a processor
--cell {longest_wait_ns:duration}  longest
--cell {self_ns:duration}  self
--cell {calls:count}  calls
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {waited_ns:duration}  waited (at least; measured in stretches of a millisecond or more without a call)
--page {queued_ns:duration}  for a processor (of that at most: it was ready to run, and other threads had the processors)
--page {longest_wait_ns:duration}  longest (wait for something else)
--page {self_ns:duration}  self (callees excluded)
--page {calls:count}  calls
SELECT qualname, filename, first_line, waited_ns, queued_ns, longest_wait_ns, self_ns, calls
FROM hot_functions WHERE waited_ns > 0 AND waited_ns >= (SELECT SUM(self_ns) / 100 FROM code_total)
ORDER BY waited_ns DESC, qualname LIMIT 10;

-- name: packages
-- Functions that are not the program's own, by package: the folder below site-packages, or else the
-- module of the standard library.
--title Other functions, by package
--cell {functions:count}  functions
--cell {calls:count}  calls
--cell {self_ns:duration}  self
--cell {package:40}  package
--page {!c}{package}  package
--page {functions:count}  functions
--page {calls:count}  calls
--page {self_ns:duration}  self (callees excluded)
WITH placed AS (
    SELECT calls, self_ns,
           CASE WHEN instr(filename, 'site-packages/') THEN substr(filename, instr(filename, 'site-packages/') + 14)
                WHEN instr(filename, 'dist-packages/') THEN substr(filename, instr(filename, 'dist-packages/') + 14)
                WHEN instr(filename, '<frozen ') THEN replace(replace(filename, '<frozen ', ''), '>', '')
                WHEN instr(filename, '/python3.') THEN substr(filename, instr(filename, '/python3.') + 1 + instr(substr(filename, instr(filename, '/python3.') + 1), '/'))
                ELSE filename END AS rest
    FROM hot_functions WHERE NOT is_own)
SELECT replace(substr(rest, 1, instr(replace(replace(rest, '/', '.'), '.', '/') || '/', '/') - 1), '', '') AS package,
       COUNT(*) AS functions, SUM(calls) AS calls, SUM(self_ns) AS self_ns
FROM placed GROUP BY 1 ORDER BY self_ns DESC, 1;

-- name: functions
--title Functions, most own time first
--link all functions
--always
--cell {calls:count}  calls
--cell {total_ns:duration}  total
--cell {self_ns:duration}  self
--cell {ns_per_call:duration}  per call
--cell? {max_ns:duration}  max
--cell {raised:count}  raised
--cell {qualname}  function
--cell {filename:path}:{first_line|0}  where
--page {!c}{qualname}  function
--page {filename:path}:{first_line|0}  where
--page {calls:count}  calls (frames entered)
--page {total_ns:duration}  total (callees included)
--page {self_ns:duration}  self (callees excluded)
--page {ns_per_call:duration}  per call
--page? {max_ns:duration}  max (the longest)
--page {raised:count}  raised (left by an exception)
SELECT qualname, filename, first_line, kind, calls, total_ns, self_ns, ns_per_call, max_ns, raised
FROM hot_functions
ORDER BY self_ns DESC, calls DESC;

-- name: meta
-- The third column is 1 if the value is JSON already.
SELECT key, CAST(CASE WHEN key IN ('command', 'settings', 'options', 'launcher') AND json_valid(value) THEN json(value) ELSE value END AS TEXT),
       typeof(value) = 'integer' OR (key IN ('command', 'settings', 'options', 'launcher') AND json_valid(value))
FROM meta;

-- name: torch
-- The versions of torch in the trace, a row for each version and each way of watching torch.
SELECT torch_version, torch_mode, torch_note, COUNT(*) AS processes
FROM process
WHERE torch_version IS NOT NULL
GROUP BY torch_version, torch_mode, torch_note
ORDER BY processes DESC, torch_version;

-- name: advised
-- For the HTML page: the first ?1 functions of the findings for which a compiler was used. The
-- columns are the name to pass to `dyntrace why`, the line where the source begins (for a resume
-- function, that of the original function), and the code objects.
SELECT COALESCE(resume_words(f.qualname), NULLIF(f.qualname, ''), '?') AS name, COALESCE(f.filename, '?') AS filename,
       COALESCE((WITH RECURSIVE up(code_id, n) AS (
                     VALUES(f.code_id, 0) UNION ALL
                     SELECT c.origin_code_id, n + 1 FROM up JOIN code c ON c.code_id = up.code_id WHERE c.origin_code_id IS NOT NULL AND n < 100)
                 SELECT c.first_line FROM up JOIN code c ON c.code_id = up.code_id WHERE c.filename = f.filename ORDER BY n DESC LIMIT 1), f.first_line) AS first_line,
       f.ask, (SELECT json_group_array(u.code_id) FROM functions u
               WHERE u.function_id = (SELECT function_id FROM functions o WHERE o.code_id = f.code_id)) AS ids
FROM findings f WHERE f.kind = 'compiles' ORDER BY f.number LIMIT ?1;

-- name: marks
-- What happened because of each line of a function. ?1: the function's code objects, a JSON array.
-- what: 0 if the line forced recompiles, 1 if it broke the graph, 2 if it needs guards. A row has a stack, whose
-- innermost line counts, or a file and a line.
WITH ids AS MATERIALIZED (SELECT value AS code_id FROM json_each(?1)),
stacks AS MATERIALIZED ( -- torch does not give the stack of a guard in each entry that has it
    SELECT g.source, substr(MIN(g.user_stack), 1, 4000) AS stack
    FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id
    WHERE e.code_id IN (SELECT code_id FROM ids) AND g.user_stack IS NOT NULL GROUP BY 1
),
again AS ( -- the bare columns are those of the first
    SELECT COALESCE(substr(g.user_stack, 1, 4000), s.stack) AS stack, MIN(k.cause_id), COUNT(*) AS n, k.kind, k.source, k.aspect, k.dimension, k.expected,
           k.actual, k.text
    FROM compiles m JOIN recompile_causes k ON k.cause_id = m.cause_id JOIN guard g ON g.guard_id = k.guard_id
    LEFT JOIN stacks s ON s.source = g.source
    WHERE m.is_recompile AND m.code_id IN (SELECT code_id FROM ids) GROUP BY 1, COALESCE(k.source, k.kind) HAVING stack IS NOT NULL
),
every AS (
    SELECT substr(g.user_stack, 1, 4000) AS stack, COALESCE(as_written(g.source), g.kind) AS name, g.source, g.kind, MIN(g.guard_id) AS first
    FROM cache_entry e JOIN guard g ON g.cache_entry_id = e.cache_entry_id
    WHERE e.code_id IN (SELECT code_id FROM ids) AND g.user_stack IS NOT NULL GROUP BY 1, 3, 4
),
named AS (SELECT stack, name, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY stack ORDER BY MIN(first)) AS place FROM every GROUP BY 1, 2)
SELECT 0 AS what, stack, NULL AS file, NULL AS line, n AS count,
       COALESCE(cause_words(kind, source, aspect, dimension, expected, actual, text), as_written(source), kind, '?') AS words
FROM again
UNION ALL
SELECT * FROM (
    SELECT 1, NULL, c.filename, b.line, COUNT(*), substr(b.reason, 1, instr(substr(b.reason, 1, 500) || char(10), char(10)) - 1)
    FROM graph_break b JOIN compile m ON m.compile_id = b.compile_id JOIN code c ON c.code_id = COALESCE(b.code_id, m.code_id)
    WHERE m.code_id IN (SELECT code_id FROM ids) GROUP BY c.filename, b.line, 6)
UNION ALL
SELECT * FROM (
    SELECT 2, stack, NULL, NULL, SUM(n), group_concat(iif(place <= 6, substr(name, 1, 60), NULL), ', ') || iif(COUNT(*) > 6, ', ...', '')
    FROM named GROUP BY stack);

-- name: glossary
-- For the HTML page: the words that it uses, explained as in docs/answers.md.
--title What the words mean
--link glossary
--page {!c}{word}  word
--page {meaning}  meaning
WITH here AS (SELECT EXISTS (SELECT 1 FROM compile) OR EXISTS (SELECT 1 FROM lookup) AS compiler, EXISTS (SELECT 1 FROM graph_break) AS breaks,
                     EXISTS (SELECT 1 FROM code_total) AS frames, EXISTS (SELECT 1 FROM trials) AS trials, EXISTS (SELECT 1 FROM losses) AS losses,
                     EXISTS (SELECT 1 FROM spans) AS spans),
words(place, needs, word, meaning) AS (VALUES
    (1, 'frames', 'total, self', 'time from the begin of a call to its end, with and without the functions that it called'),
    (2, 'frames', 'functions of the program', 'by their file: not the standard library''s, not an installed package''s, not generated code'),
    (3, 'frames', 'raised', 'calls that an exception ended'),
    (4, 'frames', 'waiting', 'own time of functions of the standard library that wait for others, such as Condition.wait'),
    (5, 'compiler', 'compile', 'the compiler was asked for code of a function, and made it unless the page says otherwise'),
    (6, 'compiler', 'cache entry', 'one compiled version of a function, with the guards under which it may run'),
    (7, 'compiler', 'guard', 'a condition on which compiled code depends: a type, a size, a value. Its source is the expression that it reads'),
    (8, 'compiler', 'lookup, hit, miss', 'the search for a cache entry whose guards pass; one was found and its code ran; none was found'),
    (9, 'compiler', 'recompile', 'a compile of a function that had a cache entry before, because a guard of it failed'),
    (10, 'compiler', 'expected, actual', 'the value for which a guard passes, and the value that there was'),
    (11, 'compiler', 'eager, ran as Python', 'compiled code was wanted, and the function''s own bytecode ran: the limit was reached, or it was given up'),
    (12, 'compiler', 'limit', 'the number of cache entries that a function may have; calls that none of them fits run eagerly from then on'),
    (13, 'breaks', 'graph break', 'a place where the compiler had to stop; Python runs it, and the rest of the function is compiled on its own'),
    (14, 'breaks', 'resume function', 'the rest of a function after a graph break'),
    (15, 'compiler', 'measured, exact', 'a remedy was tried by running the command again; or its effect was computed from the recorded calls'),
    (16, 'trials', 'trial', 'a run of the recorded command by dyntrace try, unchanged or under a setting'),
    (17, 'spans', 'span', 'a stretch of time that the program named: dyntrace.span, torch''s record_function, NVTX'),
    (18, 'losses', 'loss', 'something that happened and was not recorded, with its cause'))
SELECT word, meaning FROM words, here
WHERE CASE needs WHEN 'frames' THEN frames WHEN 'compiler' THEN compiler WHEN 'breaks' THEN breaks WHEN 'trials' THEN trials WHEN 'spans' THEN spans ELSE losses END
ORDER BY place;

-- name: picture_compiles
-- For the timeline: the longest compiles, with thread, code object, begin, length, label and number
-- of graph breaks.
SELECT m.thread_id, m.code_id, m.start_ns, MAX(0, m.end_ns - m.start_ns), substr(m.label, 1, 60),
       (SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id)
FROM compile m
WHERE m.end_ns IS NOT NULL AND (m.cache_entry_id IS NOT NULL OR m.outcome = 'error')
ORDER BY m.end_ns - m.start_ns DESC
LIMIT 4000;

-- name: picture_codes
-- The names of boxes: id, name, place.
SELECT code_id, substr(COALESCE(NULLIF(qualname, ''), '?'), 1, 200), substr(filename, -200), first_line FROM code;

-- name: picture_threads
-- The names of lanes.
SELECT t.thread_id, substr(COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?'), 1, 80) || ' of ' || COALESCE(p.pid, '?') || COALESCE(', rank ' || p.rank, ''),
       NULL, NULL
FROM thread t
LEFT JOIN process p ON p.process_id = t.process_id;

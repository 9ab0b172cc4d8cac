-- The answer on one screen. Small tables are read at once; figures that need every lookup appear a
-- moment later. The cursor begins on the cause of most recompiles.

--dense
--| [{!b}{command:300}]
--| {!style}{state:40}{!n}[, {span:duration}][, {frames:count~frame}][, still open {open:count}], {processes:count~process}, {threads:count~thread}  => processes
WITH about(state, command, span, frames, open) AS (
  SELECT MAX(iif(key = 'state', value, NULL)), MAX(iif(key = 'command', value, NULL)),
         MAX(iif(key = 'span_ns' AND value >= 0, CAST(value AS INTEGER), NULL)), MAX(iif(key = 'frame_count' AND value >= 0, CAST(value AS INTEGER), NULL)),
         MAX(iif(key = 'open_frame_count' AND value > 0, CAST(value AS INTEGER), NULL))
  FROM meta),
  counted(processes, threads) AS (SELECT (SELECT COUNT(*) FROM process), (SELECT COUNT(*) FROM thread))
SELECT *, iif(state = 'complete', 'n', 'w') AS style
FROM (SELECT COALESCE(state, 'state unknown') AS state, span, frames, open, processes, threads,
             iif(json_valid(command), (SELECT group_concat(value, ' ') FROM json_each(iif(json_valid(command), command, '[]'))), command) AS command
      FROM about, counted);

--call doubts
;

--| {!r}{died:count} of {processes:count~process} died by a signal{!n}  => processes WHERE ended GLOB 'signal *'
SELECT SUM(exit_signal IS NOT NULL) AS died, COUNT(*) AS processes FROM process HAVING died > 0;

-- If there are several threads: the thread whose innermost open call is the newest.
--slow
--start
--|   {!r}{pid} {ended:ended}{!n}[ at {at:seconds}][ in {!b}{function:80}{!n}  {!d}{filename:path60}:{first_line}]  => process {process_id}
--more 4   {!d}more ...  => processes WHERE ended GLOB 'signal *'
WITH died AS MATERIALIZED (SELECT process_id, pid, end_ns FROM process WHERE exit_signal IS NOT NULL ORDER BY end_ns, process_id LIMIT 5),
  open AS MATERIALIZED (
    SELECT t.process_id, MAX(f.frame_id) AS frame_id
    FROM (SELECT 1 FROM died LIMIT 1) CROSS JOIN frame f CROSS JOIN thread t ON t.thread_id = f.thread_id
    WHERE f.end_ns IS NULL AND t.process_id IN (SELECT process_id FROM died) GROUP BY f.thread_id)
SELECT d.process_id, d.pid, t.ended, d.end_ns AS at, c.qualname AS function, c.filename, c.first_line
FROM died d JOIN process_tree t ON t.process_id = d.process_id
     LEFT JOIN frame f ON f.frame_id = (SELECT o.frame_id FROM open o JOIN frame g ON g.frame_id = o.frame_id
                                        WHERE o.process_id = d.process_id ORDER BY g.start_ns DESC LIMIT 1)
     LEFT JOIN code c ON c.code_id = f.code_id
ORDER BY d.end_ns, d.process_id;

--| torch {version:40}, {mode:40}[: {note:200}]  => processes
SELECT torch_version AS version,
       CASE WHEN torch_mode IS NULL THEN 'not watched' WHEN torch_mode = 'shim' THEN 'shim: every guard check was seen' ELSE torch_mode END AS mode,
       torch_note AS note
FROM process WHERE torch_version IS NOT NULL GROUP BY torch_version, torch_mode, torch_note ORDER BY COUNT(*) DESC LIMIT 3;

--| {!r}LOSS{!r}  {events:count|unknown} events: {cause:200}{!n}  figures below may be too low  => losses
SELECT cause, SUM(events) AS events FROM losses WHERE NOT is_stall GROUP BY cause ORDER BY 2 DESC, 1 LIMIT 5;

--| {!d}the program waited for the recorder; nothing is missing for that  => losses
SELECT 1 WHERE EXISTS (SELECT 1 FROM losses WHERE is_stall);

-- The words are those that `report` and `why` print.
--slow # What to look at first
--slow   ...
--call findings
SELECT 1;

-- The shares are those that `report` and `check` print.
--slow # Calls that wanted compiled code
--slow   ...
--none # Calls that wanted compiled code
--none   none: nothing that compiles frames ran
--# Calls that wanted compiled code: {wanted:count}{!n}  {!good}{hit:percent} % hit{!n}, {compiled:percent} % compiled, {!bad}{eager:percent} % ran eagerly  => ledger
--|   {outcome:<15}{!outcome}{share:bar16}{!n} {n:count>8}  {ns:duration} in lookups  => ledger WHERE outcome = {outcome} | {outcome}
WITH decided AS MATERIALIZED (SELECT outcome, COUNT(*) AS n, CAST(TOTAL(duration_ns) AS INTEGER) AS ns, SUM(counted) AS asked, SUM(counted AND ran_as_python) AS python
                              FROM calls GROUP BY outcome),
  sums AS MATERIALIZED (SELECT SUM(n) AS total, SUM(asked) AS wanted, MAX(SUM(asked), 1) / 100.0 AS whole, SUM(asked * (outcome = 'hit')) AS hits,
                               SUM(asked * (outcome = 'compiled')) AS compiled, SUM(python) AS python FROM decided)
SELECT d.outcome, d.n, d.ns, 1.0 * d.n / s.total AS share, s.wanted, s.hits / s.whole AS hit, s.compiled / s.whole AS compiled,
       s.python / s.whole AS eager, iif(s.hits >= s.whole * 90, 'g', 'w') AS good, iif(s.python > s.whole * 10, 'r', 'n') AS bad
FROM decided d, sums s ORDER BY d.n DESC, d.outcome;

--# Compiles: {compiles:count}{!n}  {made:count} gave code, {none:count} did not; together {ns:duration}  => compiles
--| [  {!r}{limits:count} reached a limit, {errors:count} raised]  => compiles WHERE outcome IN ('limit', 'error') | limit or error
SELECT COUNT(*) AS compiles, COUNT(cache_entry_id) AS made, COUNT(*) - COUNT(cache_entry_id) AS none, COALESCE(SUM(end_ns - start_ns), 0) AS ns,
       iif(SUM(outcome IN ('limit', 'error')) > 0, SUM(outcome = 'limit'), NULL) AS limits, SUM(outcome = 'error') AS errors
FROM compile HAVING COUNT(*) OR EXISTS (SELECT 1 FROM lookup);

--# {!style}{n:count~recompile}  => recompiles
SELECT COUNT(*) AS n, iif(COUNT(*), 'r', 'g') AS style FROM compiles WHERE is_recompile HAVING EXISTS (SELECT 1 FROM compile UNION ALL SELECT 1 FROM lookup);

--start
--| [{?one}  {!r}{n:count>4}{!n} x {!b}{function:60}{!n}: [{source:80}: expected {expected:60}, actual {!r}{was:80}{!n}][{text:160}]]  => compile {compile_id}
--| [{?more}  {!r}{n:count>4}{!n} x {!b}{function:60}{!n}: [{source:80}: expected {expected:60}, actual {!r}{was:80}{!n}][{text:160}]]  => causes {compile_id} WHERE id IN (SELECT m.cause_id FROM recompiles m JOIN recompiles o ON o.cause_id = {id} AND COALESCE(m.source, m.kind) IS COALESCE(o.source, o.kind)) AND code_id IN $codes | {function}
--| [        needed by {needed:160}]  => compile {compile_id}
WITH found AS ( -- the bare columns are those of the first
  SELECT cause_id AS id, qualname AS function, COALESCE(source, kind) AS source, COUNT(*) AS n, kind, source AS part, aspect, dimension, actual,
         replace(group_concat(DISTINCT cause_seen(kind, source, aspect, dimension, expected, actual, why)), ',', ', ') AS was,
         expected, why AS text, compile_id, code_id, MIN(start_ns)
  FROM recompiles LEFT JOIN (SELECT code_id, function_id FROM functions) USING (code_id) GROUP BY function_id, 3 ORDER BY 4 DESC, MIN(start_ns) LIMIT 8)
SELECT id, function, iif(was IS NULL OR expected IS NULL, NULL, cause_name(kind, part, aspect, dimension, expected, actual, text)) AS source, n,
       as_written(brief(was, expected)) AS was, cause_expected(kind, part, aspect, dimension, expected, actual, text) AS expected,
       (SELECT needed_by(g.user_stack, r.text, found.function) FROM recompile_cause r JOIN guard g ON g.guard_id = r.guard_id WHERE r.rowid = id) AS needed,
       compile_id, code_id, iif(was IS NULL OR expected IS NULL, as_written(COALESCE(text, '?')), NULL) AS text, iif(n = 1, 1, NULL) AS one, iif(n > 1, 1, NULL) AS more
FROM found;

--# Trials: {n:count~run} of the recorded command by dyntrace try, {!style}{gains:count~gain}{!n}  => trials
SELECT SUM(NOT baseline) AS n, SUM(gain) AS gains, iif(SUM(gain) > 0, 'g', 'n') AS style FROM trials HAVING COUNT(*) > 0;

--|   {!style}{note:<12}{!n} {setting:100}  {compiles:count~compile}, {eager:count~eager call}  => trials
SELECT iif(baseline, 'unchanged', note) AS note, setting, compiles, eager, iif(gain, 'g', iif(works, 'n', 'r')) AS style
FROM trials ORDER BY batch DESC, trial_id LIMIT 8;

--# Spans: {n:count}  => spans
SELECT COUNT(*) AS n FROM spans HAVING COUNT(*) > 0;

--|   {total:duration>9}  {!b}{name:60}{!n}  {n:count~span}, p50 {p50:duration}, longest {longest:duration}  => spans WHERE name = {name} | {name}
SELECT name, spans AS n, total_ns AS total, p50_ns AS p50, max_ns AS longest FROM span_names LIMIT 4;

--# {!style}{n:count~graph break}  => breaks
SELECT COUNT(*) AS n, iif(COUNT(*), 'w', 'g') AS style FROM graph_break HAVING EXISTS (SELECT 1 FROM compile UNION ALL SELECT 1 FROM lookup);

--start
--|   {!w}{times:count>4}{!n} x {!b}{function:60}:{line}{!n} {reason:160}  => break {graph_break_id}
SELECT MIN(b.graph_break_id) AS graph_break_id, substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS reason, COUNT(*) AS times,
       c.qualname AS function, b.line
FROM graph_break b LEFT JOIN functions c ON c.code_id = b.code_id
GROUP BY c.function_id, b.line, 2 ORDER BY 3 DESC, 1 LIMIT 4;

--slow
--# Ran as Python though a compiler was set
--|   {calls:count>6} x {!b}{function:60}{!n}  {outcome:30} since {first:seconds}  => function {code_id}
WITH eager AS MATERIALIZED (SELECT code_id, outcome, COUNT(*) AS calls, MIN(start_ns) AS first FROM calls
                            WHERE counted AND ran_as_python GROUP BY 1, 2)
SELECT MIN(e.code_id) AS code_id, c.qualname AS function, e.outcome, SUM(e.calls) AS calls, MIN(e.first) AS first
FROM eager e LEFT JOIN functions c ON c.code_id = e.code_id
GROUP BY c.function_id, e.outcome ORDER BY 4 DESC, 1 LIMIT 4;

--slow
--# Guards
--|   {n:count~check} of entries took {ns:duration}, {each:duration} each; {failed:count} failed  => guards
SELECT COUNT(*) AS n, COALESCE(SUM(duration_ns), 0) AS ns, COALESCE(SUM(duration_ns), 0) / COUNT(*) AS each, SUM(result = $CHECK_FAIL) AS failed
FROM guard_check HAVING COUNT(*) > 0;

--# Most own time
--|   {self:duration>9}  {!b}{function:60}{!n}  {calls:count~call}  {!d}{filename:path60}:{first_line}  => function {code_id}
--fill 4
--none # Most own time
SELECT MIN(n.code_id) AS code_id, c.qualname AS function, SUM(n.self_ns) AS self, SUM(n.calls) AS calls, c.filename, c.first_line
FROM code_total n LEFT JOIN functions c ON c.code_id = n.code_id
GROUP BY c.function_id, c.kind ORDER BY 3 DESC, 1 LIMIT 200;

--|   {!d}all functions  => functions
;

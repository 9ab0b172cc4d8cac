-- One function: calls, entries, recompiles, graph breaks, source. The page is opened for one code
-- object and shows all code objects of the same function.

--title {function:140}
--subject => function {code_id}
--| {!b}{function:200}{!n}  {!d}{filename:300}:{first_line}{!n}  {kind:30}
--call origin
--none the trace has no such code object
SELECT qualname AS function, origin_code_id, code_id, filename, first_line, kind FROM code WHERE code_id = ?1;

--| [{calls:count~call}, {total:duration} in it, {self:duration} of that its own[; {!w}{raised:count}{!n} ended by an exception]]  => frames WHERE code_id IN $codes | {function}
--| [{!d}{objects} code objects in {processes} processes, {fingerprints} different by fingerprint]
SELECT SUM(calls) AS calls, SUM(total_ns) AS total, SUM(self_ns) AS self, NULLIF(SUM(raised), 0) AS raised,
       (SELECT NULLIF(COUNT(*), 1) FROM code WHERE code_id IN $codes) AS objects,
       (SELECT COUNT(DISTINCT process_id) FROM code WHERE code_id IN $codes) AS processes,
       (SELECT COUNT(DISTINCT fingerprint) FROM code WHERE code_id IN $codes) AS fingerprints,
       (SELECT qualname FROM code WHERE code_id = ?1) AS function
FROM code_total WHERE code_id IN $codes AND EXISTS (SELECT 1 FROM code WHERE code_id = ?1);

--| {waited:duration} waiting at least[, at most {queued:duration} of that for a processor][; {ran:duration} on a processor at least]
SELECT SUM(waited_ns) AS waited, NULLIF(SUM(queued_ns), 0) AS queued, NULLIF(SUM(ran_ns), 0) AS ran
FROM waited WHERE code_id IN $codes HAVING SUM(waited_ns) > 0;

--| {!w}marked {action:30} at {at:seconds}{!n}  {reason:200|asked for}  => compiles WHERE code_id IN $codes | {function}
SELECT at_ns AS at, action, reason, (SELECT qualname FROM code WHERE code_id = ?1) AS function
FROM code_mark WHERE code_id IN $codes ORDER BY at_ns LIMIT 5;

--# Its calls, and when
--start
--|   {name:<15}{n:count>9}  {!name}{wave:spark40}{!n}  {span}  => ledger WHERE code_id IN $codes AND outcome = {name} | {name}
WITH span AS (SELECT COALESCE((SELECT NULLIF(MAX(CAST(value AS INTEGER), 0), 0) FROM meta WHERE key = 'span_ns'),
                              (SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1) + 1, 1) AS ns),
  asked AS (SELECT outcome, MIN(39, MAX(0, CAST(start_ns * 39.999 / (SELECT ns FROM span) AS INTEGER))) AS bucket, COUNT(*) AS n,
                   MIN(start_ns) AS first, MAX(start_ns) AS last
            FROM lookup WHERE code_id IN $codes GROUP BY outcome, 2)
SELECT (SELECT name FROM enum WHERE kind = 'outcome' AND value = a.outcome) AS name, SUM(a.n) AS n, group_concat(a.bucket || ':' || a.n) AS wave,
       printf('%.3f .. %.3f s', MIN(a.first) / 1e9, MAX(a.last) / 1e9) AS span
FROM asked a GROUP BY a.outcome ORDER BY 2 DESC, a.outcome;

--# Recompiles
--|   {label:<7|} {took:duration>6<9|}  [{!b}{source:80}{!n}: expected {expected:100} ({entry:20}), actual {!r}{actual:100}{!n}][{text:200}][, +{alike:count~entry}, same guard]  => compile {compile_id}
--| [                    needed by {needed:160}]  => compile {compile_id}
--more 60   {!d}more ...  => causes WHERE code_id IN $codes | {function}
SELECT compile_id, iif(nth = 1, COALESCE(label, '?'), NULL) AS label, iif(nth = 1, compile_ns, NULL) AS took,
       iif(expected IS NULL OR actual IS NULL, NULL, cause_name(kind, source, aspect, dimension, expected, actual, text)) AS source,
       cause_expected(kind, source, aspect, dimension, expected, actual, text) AS expected, cause_actual(kind, source, aspect, dimension, expected, actual, text) AS actual,
       (SELECT needed_by(g.user_stack, text, qualname) FROM guard g WHERE g.guard_id = n.guard_id) AS needed,
       iif(expected IS NULL OR actual IS NULL, as_written(COALESCE(text, why, '?')), NULL) AS text, COALESCE(older_entry, '?') AS entry, NULLIF(alike - 1, 0) AS alike,
       qualname AS function
FROM (SELECT *, row_number() OVER (PARTITION BY compile_id ORDER BY cause_id) AS nth, row_number() OVER (guard ORDER BY cause_id) AS of_guard, COUNT(*) OVER guard AS alike
      FROM recompile_causes WHERE decided AND compile_id IN (SELECT compile_id FROM compiles WHERE is_recompile AND code_id IN $codes) WINDOW guard AS (PARTITION BY compile_id, COALESCE(source, kind, text))) n
WHERE of_guard = 1 ORDER BY start_ns, cause_id LIMIT 61;

--# Trials of dyntrace try
--|   {!style}{note:<12}{!n} {setting:100}[  {compiles:count~compile}][, {eager:count~eager call}][, {breaks:count~graph break}][, {step:duration} a call]
SELECT iif(baseline, 'unchanged', note) AS note, setting, compiles, eager, breaks, step_ns AS step, iif(gain, 'g', iif(works, 'n', 'r')) AS style
FROM trial_functions WHERE function_id IN $codes ORDER BY batch DESC, trial_id LIMIT 12;

--# Compiles that gave no code
--|   {!w}{outcome:20}{!n} at {at:seconds}: {reason|no reason given}  => compile {compile_id}
SELECT compile_id, outcome, start_ns AS at, substr(reason, 1, instr(reason || char(10), char(10)) - 1) AS reason
FROM compile WHERE code_id IN $codes AND cache_entry_id IS NULL ORDER BY start_ns LIMIT 5;

-- A call that compiled an entry ran the entry when the compile had ended.
--# Cache entries
--|   {!b}{label:<8}{!n} {!style}{hits:count>14~hit}{!n}  {guards:count>10~guard}  born {born:seconds}[, last used {last:seconds}][{!r}, died {died:seconds}: {death_cause:120|?}]  => entry {cache_entry_id}
--more 40   {!d}more ...  => entries WHERE code_id IN $codes | {function}
WITH uses AS MATERIALIZED (SELECT cache_entry_id, SUM(outcome = $HIT) AS hits,
                                  MAX(iif(outcome = $COMPILED, start_ns + COALESCE(duration_ns, 0), start_ns)) AS last
                           FROM lookup WHERE code_id IN $codes AND outcome IN ($HIT, $COMPILED) GROUP BY cache_entry_id)
SELECT e.cache_entry_id, e.label, iif(u.hits > 0, 'n', 'w') AS style, COALESCE(u.hits, 0) AS hits, e.guard_count AS guards, e.born_ns AS born, u.last,
       e.died_ns AS died, e.death_cause, (SELECT qualname FROM code WHERE code_id = ?1) AS function
FROM cache_entry e LEFT JOIN uses u ON u.cache_entry_id = e.cache_entry_id WHERE e.code_id IN $codes ORDER BY e.born_ns LIMIT 41;

--# Graph breaks
--|   line {!b}{line}{!n}  {times:count} x  {reason:200}  => break {graph_break_id}
--| [{?resume_code_id}           the rest runs as {rest:160|?}]  => function {resume_code_id}
SELECT MIN(b.graph_break_id) AS graph_break_id, b.line, substr(b.reason, 1, instr(b.reason || char(10), char(10)) - 1) AS reason, COUNT(*) AS times,
       MIN(b.resume_code_id) AS resume_code_id, MIN(r.qualname) AS rest
FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id
WHERE b.code_id IN $codes GROUP BY b.line, 3 ORDER BY b.line LIMIT 60;

--slow # Durations
--slow   ...
--call spread
SELECT 1 FROM frame LIMIT 1;

--# Source
--call function_source
SELECT filename, first_line FROM code WHERE code_id = ?1 AND filename IS NOT NULL;

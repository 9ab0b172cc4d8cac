-- findings.sql -- what to look at first, in sentences. `report`, `why` without a name, the end of
-- `run`, and the HTML page print these two statements (src/trace/findings.h). schemas/views.sql has
-- the definitions. ?2: the trace as a word of a command line; NULL for the newest trace in this
-- directory.

-- name: time
-- Where the time of the whole recording went.
--+ {ran_ns:duration|time not known}[ in {several:integer} processes together]
--+ [: {compile_ns:duration} compiling[ ({share:rough} %)][, {import_ns:duration} importing][, steady since {steady_ns:duration}][, {?unsteady}compiling to the end]]
--+ [{?plain}[: {own_ns:duration} in functions of the program][, {library_ns:duration} in their library calls][, {wait_ns:duration} waiting][, {queued_ns:duration} waiting for a processor][, {import_ns:duration} importing]]
--| [{?plain}, [{?threads}on all {threads:integer} threads together][{-threads}of one thread]]
SELECT t.ran_ns, iif(t.processes > 1, t.processes, NULL) AS several, t.compile_ns, 100.0 * t.compile_ns / NULLIF(t.ran_ns, 0) AS share,
       t.import_ns, t.steady_ns - COALESCE((SELECT MIN(start_ns) FROM process), 0) AS steady_ns, iif(t.compile_ns IS NOT NULL AND t.steady_ns IS NULL AND EXISTS (SELECT 1 FROM lookup), 1, NULL) AS unsteady,
       iif(t.compile_ns IS NULL AND t.own_ns IS NOT NULL, 1, NULL) AS plain, t.own_ns, iif(t.library_ns > t.ran_ns / 100, t.library_ns, NULL) AS library_ns, NULLIF(t.wait_ns, 0) AS wait_ns, iif(t.queued_ns > t.ran_ns / 20, t.queued_ns, NULL) AS queued_ns,
       iif(t.threads > 1, t.threads, NULL) AS threads
FROM run_times t;

-- name: list
--#
--# {!b}What to look at first{!n}
--fill 3
--none Nothing stands out.
--+ {number:integer}. [{-imported}{!b}{name:100}{!n}][{?imported}{!b}{module:path}{!n}]
--+ [{?exception}: an uncaught {exception:100} ended the program in line {ended_line} of {ended_file:100}, {ended_ns:duration} after its start[; {others:count~process} more ended so]]
--+ [ was compiled again {recompiles:count~time}[, most often for {source:80}]]
--+ [{before_errors} {errors:count~compile} failed]
--+ [{before_eager} {eager:count} of {calls:count~call} ran {eagerly} since {eager_ns:seconds}[, {reason}]]
--+ [[{?before_break};] breaks in line {break_line}[ and {other_breaks:count} more][, met by {break_calls:count~call}]]
--+ [{?unasked}: {calls:count~call} ran without torch.compile, which compiles only forward of a module]
--+ [{?time}: {time:duration} [{-library_ns}of its own ]in {calls:count~call}[, {library_ns:duration} of that in its library calls], {share:rough} % of all functions' own time]
--+ [{?slow}: one call took {slow:duration}, all {calls:count} took {ns_per_call:duration} on average]
--+ [{?imported}: its import took {imported:duration}; all imports took {imports:duration}, {share:rough} % of the time]
--| [{?waits} waited at least {waits:duration} in {calls:count~call}[, longest for {waiter:100}], {share:rough} % of all functions' own time]
--|    [{?compiles}{cost_ns:duration} in these compiles; ]dyntrace why {ask:shell}[ {file:shell}]
WITH RECURSIVE longest AS ( -- the longest wait of a library function that waited
    SELECT s.frame_id FROM findings f JOIN functions u ON u.function_id = f.code_id JOIN stretch s ON s.code_id = u.code_id
    WHERE f.kind = 'waits' AND NOT u.is_own ORDER BY s.waited_ns - s.queued_ns DESC LIMIT 1
),
up(frame_id, parent_id, code_id, is_own) AS ( -- and its callers, up to the first function of the program
    SELECT r.frame_id, r.parent_id, r.code_id, 0 FROM longest JOIN frame r USING (frame_id)
    UNION ALL
    SELECT r.frame_id, r.parent_id, r.code_id, c.is_own FROM up JOIN frame r ON r.frame_id = up.parent_id JOIN own c ON c.code_id = r.code_id WHERE NOT up.is_own
),
own AS MATERIALIZED (SELECT code_id, qualname, is_own FROM functions)
SELECT number, COALESCE(resume_words(qualname), iif(qualname = '', '''''', qualname), '?') AS name, iif(kind = 'compiles', 1, NULL) AS compiles, iif(kind = 'unasked', 1, NULL) AS unasked, cost_ns, calls, recompiles,
       as_written(source) AS source, errors, eager, eager_ns, iif(recompiles > 0, ';', ':') AS before_errors, iif(recompiles > 0 OR errors > 0, ';', ':') AS before_eager,
       iif(recompiles > 0 OR errors > 0 OR eager > 0, 1, NULL) AS before_break,
       iif(EXISTS (SELECT 1 FROM process WHERE torch_version IS NOT NULL), 'eagerly', 'as Python') AS eagerly,
       CASE why_eager WHEN 'limit' THEN 'when the limit was reached' WHEN 'error' THEN 'as its compile failed'
                      WHEN 'declined' THEN 'as the compiler gave no code for it' END AS reason,
       break_line, NULLIF(breaks - 1, 0) AS other_breaks, break_calls,
       iif(kind = 'time', cost_ns, NULL) AS time, iif(library_ns > cost_ns / 10, library_ns, NULL) AS library_ns, iif(kind = 'slow', cost_ns, NULL) AS slow, iif(kind = 'import', cost_ns, NULL) AS imported, filename AS module,
       iif(kind = 'import', ns_per_call, NULL) AS imports, iif(kind = 'waits', cost_ns, NULL) AS waits,
       100.0 * share AS share, ns_per_call, iif(kind = 'waits', (SELECT c.qualname FROM up JOIN own c USING (code_id) WHERE up.is_own), NULL) AS waiter,
       exception, ended_line, filename AS ended_file, ended_ns, NULLIF(processes - 1, 0) AS others, ask, ?2 AS file
FROM findings;

-- profile.sql -- what `dyntrace why` prints about a function for which no compiler was used: how
-- long its calls took, the slowest calls, and the callers. ?2: the profile that C computes from the
-- frames (profile_write_as_json() in src/trace/profile.h); ?3: the ids of the function's code objects, a
-- JSON array; ?4: the function's name; ?5: the trace; ?6: which frames the trace has, or NULL if it
-- has all; ?7: why some of its frames are not stored, or NULL.

-- name: sums
--|
--+ [{?total_ns}{total_ns:duration} in it, {self_ns:duration} of that its own[, {library_ns:duration} in its library calls]]
--+ [{+raised}; {!r}{raised:count~call} ended by an exception{!n}]
--| [{?waited}; it waited at least {waited:duration}[ (at most {queued:duration} of that for a processor)]][; it was on a processor at least {ran:duration}]
--+ [{?p50}[{-parts}{calls:count~stored call}][{?parts}{calls:count~stored part} between yields]]
--| [: p50 {p50:duration}, p95 {p95:duration}, max {max:duration}]
--| [{-p50}How long single calls took is not known: they are not stored[ (frames: {which:200})]]
SELECT SUM(n.total_ns) AS total_ns, SUM(n.self_ns) AS self_ns, SUM(n.raised) AS raised,
       (SELECT NULLIF(SUM(library_ns), 0) FROM hot_functions WHERE code_id IN (SELECT value FROM json_each(?3))) AS library_ns, ?2 ->> 'calls' AS calls, ?2 ->> 'p50_ns' AS p50,
       ?2 ->> 'p95_ns' AS p95, ?2 ->> 'max_ns' AS max, ?6 AS which, NULLIF(SUM(w.waited_ns), 0) AS waited, NULLIF(SUM(w.queued_ns), 0) AS queued, NULLIF(SUM(w.ran_ns), 0) AS ran,
       (SELECT MAX(iif(kind IN ('generator', 'coroutine', 'async_generator'), 1, NULL)) FROM code WHERE code_id IN (SELECT value FROM json_each(?3))) AS parts
FROM code_total n LEFT JOIN waited w USING (code_id) WHERE n.code_id IN (SELECT value FROM json_each(?3));

-- name: bars
-- A histogram, if there is more than one call.
--|   {from:duration>9} [.. {to:duration<12}][{-to}and more       ] {share:bar30} {calls:count>8}
SELECT value ->> 'from_ns' AS "from", value ->> 'to_ns' AS "to", value ->> 'calls' AS calls, 1.0 * (value ->> 'calls') / MAX(value ->> 'calls') OVER () AS share
FROM json_each(?2, '$.histogram') WHERE ?2 ->> 'calls' > 1;

-- name: slowest
-- The slowest calls. If a call of the function encloses another one, only the outer one is listed.
-- `path` leads from the call to the callee that took most of the time.
--#
--# {!b}Slowest calls{!n}: dyntrace tree {function:shell} {file:shell} --call ID
--# [  ({unstored:400}: their time is their callers' own time here)]
--|   {ns:duration>9}  at {at:seconds}[, {thread:60}][ of process {pid:integer}], call {frame_id:integer}[, {?open}still open at the end][, {?exit=raise}ended by an exception]
--| [            {called}([{arguments:300}])][ = {result:200}][            ended here, and returned {at_end:200}]
--|             [{path:2000}, ]{own:duration} of its own[; waited at least {waited:duration}]
--| [            in span {span:100}[ {attributes:200}], {span_ns:duration}]
SELECT s.value ->> 'frame_id' AS frame_id, s.value ->> 'duration_ns' AS ns, s.value ->> 'start_ns' AS at, ?4 AS function, ?5 AS file, f.thread,
       iif((SELECT COUNT(*) FROM process) > 1, f.pid, NULL) AS pid, iif(f.end_ns IS NULL, 1, NULL) AS open, f.exit,
       (SELECT group_concat(name, ' > ') FROM (
            SELECT iif(instr(c.qualname, '<locals>.'), substr(c.qualname, instr(c.qualname, '<locals>.') + 9), COALESCE(c.qualname, '?'))
                   || iif(p.value ->> 'calls' > 1, ' x' || (p.value ->> 'calls'), '') AS name
            FROM json_each(s.value, '$.path') p LEFT JOIN code c ON c.code_id = p.value ->> 'code_id' ORDER BY p.key)) AS path,
       MAX(COALESCE(s.value ->> '$.path[#-1].self_ns', s.value ->> 'self_ns'), 0) AS own,
       (SELECT NULLIF(waited_ns, 0) FROM call_waits w WHERE w.frame_id = f.frame_id) AS waited,
       n.name AS span, n.attributes, n.duration_ns AS span_ns, ?7 AS unstored,
       iif(a.frame_id IS NOT NULL AND f.kind = 'call', ?4, NULL) AS called, a.arguments, iif(f.kind = 'call', a.result, NULL) AS result,
       iif(f.kind <> 'call', a.result, NULL) AS at_end
FROM json_each(?2, '$.slowest') s CROSS JOIN frames f ON f.frame_id = s.value ->> 'frame_id'
LEFT JOIN spans n ON n.span_id = span_of(f.frame_id)
LEFT JOIN call_values a ON a.frame_id = f.frame_id ORDER BY s.key;

-- name: callers
-- The callers. If a call encloses another call of the function, the time counts for the outer one,
-- so a caller of inner calls only has no time.
--#
--# {!b}Called by{!n}
--|   [{?ns}{ns:duration>9}][{-ns} included]  {calls:count>8~call}  {caller:100|the bottom of a stack}[  {file:path200}:{line}]
--more 6   and {left:integer} more; --json has them all
SELECT NULLIF(k.value ->> 'total_ns', 0) AS ns, k.value ->> 'calls' AS calls, c.qualname AS caller, c.filename AS file, c.first_line AS line,
       COUNT(*) OVER () - k.key AS left
FROM json_each(?2, '$.callers') k LEFT JOIN code c ON c.code_id = k.value ->> 'code_id' ORDER BY k.key;

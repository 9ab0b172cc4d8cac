-- tree.sql -- the statements of `dyntrace tree` (src/cmd/tree.c). ?1: the ids of the function's
-- code objects, a JSON array; for `call`, `is-ours` and `code` a single id.

-- name: slowest
-- The longest call of the function. Reads `frame`.
SELECT frame_id FROM frame f WHERE code_id IN (SELECT value FROM json_each(?1))
ORDER BY COALESCE(end_ns, (SELECT e.end_ns FROM thread_ends e WHERE e.thread_id = f.thread_id)) - start_ns DESC, frame_id LIMIT 1;

-- name: is-ours
-- Is frame ?2 a call of the function? A row if there is such a frame.
SELECT f.code_id IN (SELECT value FROM json_each(?1)), COALESCE(c.qualname, '?') FROM frame f LEFT JOIN code c USING (code_id) WHERE f.frame_id = ?2;

-- name: calls
-- The number of calls of the function, as the recorder counted them.
--| All calls[: {calls:count~call}, {total_ns:duration}, {self_ns:duration} of that in the function itself]
SELECT SUM(calls) AS calls, SUM(total_ns) AS total_ns, SUM(self_ns) AS self_ns FROM code_total WHERE code_id IN (SELECT value FROM json_each(?1));

-- name: call
--| Call {frame_id:integer}, {duration_ns:duration} at {start_ns:seconds}[ in {thread:60}] of process {pid:integer|?}[{?open}, still open at the end][{?exit=raise}, ended by an exception][, waited at least {waited:duration}]
--| [{called}([{arguments:300}])][ = {result:200}][ended here, and returned {at_end:200}]
--| [in span {span:100}[ {attributes:200}], {span_ns:duration}]
SELECT f.frame_id, f.duration_ns, f.start_ns, f.thread, f.pid, iif(f.end_ns IS NULL, 1, NULL) AS open, f.exit,
       (SELECT NULLIF(waited_ns, 0) FROM call_waits w WHERE w.frame_id = f.frame_id) AS waited, n.name AS span, n.attributes, n.duration_ns AS span_ns,
       iif(a.frame_id IS NOT NULL AND f.kind = 'call', f.qualname, NULL) AS called, a.arguments,
       iif(f.kind = 'call', a.result, NULL) AS result, iif(f.kind <> 'call', a.result, NULL) AS at_end
FROM frames f LEFT JOIN spans n ON n.span_id = span_of(f.frame_id) LEFT JOIN call_values a ON a.frame_id = f.frame_id WHERE f.frame_id = ?1;

-- name: code
SELECT COALESCE(qualname, '?') AS qualname, COALESCE(filename, '?') AS filename, COALESCE(first_line, 0) AS first_line FROM code WHERE code_id = ?1;

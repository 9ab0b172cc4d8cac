-- spans.sql -- which span a call is in (span_of() of src/trace/functions.h).

-- name: of-frame
-- The innermost span around frame ?1: of those open on its thread when it began, the latest that began in the frame itself or in one
-- around it. A coroutine that goes on after an await has new frames: else it is one that began in an earlier frame of a coroutine around the
-- call, if there is only one, for of two tasks of one coroutine it is not known which goes on.
WITH RECURSIVE up(frame_id, parent_id, code_id, kind, depth) AS (
    SELECT frame_id, parent_id, code_id, kind, 0 FROM frame WHERE frame_id = ?1
    UNION ALL
    SELECT g.frame_id, g.parent_id, g.code_id, g.kind, depth + 1 FROM up JOIN frame g ON g.frame_id = up.parent_id WHERE depth < 1000
),
open AS MATERIALIZED (
    SELECT s.span_id, s.start_ns, s.frame_id FROM frame f JOIN span s ON s.thread_id = f.thread_id AND s.start_ns <= f.start_ns
    WHERE f.frame_id = ?1 AND COALESCE(s.end_ns, f.start_ns) >= f.start_ns
),
carried AS (
    SELECT MAX(o.span_id) AS span_id FROM open o JOIN frame b ON b.frame_id = o.frame_id
    WHERE b.code_id IN (SELECT code_id FROM up WHERE kind = $FRAME_RESUME) AND b.kind <> $FRAME_INHERITED HAVING COUNT(*) = 1
)
SELECT COALESCE((SELECT span_id FROM open WHERE frame_id IN (SELECT frame_id FROM up) ORDER BY start_ns DESC, span_id DESC LIMIT 1),
                (SELECT span_id FROM carried));

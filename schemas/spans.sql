-- spans.sql -- finds the span in which a call ran (span_of() in src/trace/functions.h).

-- name: of-frame
-- The innermost span around frame ?1: of the spans that were open on its thread when the frame
-- began, the latest one that began in the frame or in a caller of it. A coroutine that continues
-- after an await has a new frame. If no span is found, the span may therefore have begun in an
-- earlier frame of a coroutine among the callers. This span is returned only if the coroutine is
-- certainly the same: no other call of its code was suspended then. Calls are counted from their
-- frames, so all of these must be in the trace; above ten million frames that takes too long.
WITH RECURSIVE up(frame_id, parent_id, code_id, kind, depth) AS (
    SELECT frame_id, parent_id, code_id, kind, 0 FROM frame WHERE frame_id = ?1
    UNION ALL
    SELECT g.frame_id, g.parent_id, g.code_id, g.kind, depth + 1 FROM up JOIN frame g ON g.frame_id = up.parent_id WHERE depth < 1000
),
open AS MATERIALIZED (
    SELECT s.span_id, s.start_ns, s.frame_id, f.start_ns AS at_ns FROM frame f JOIN span s ON s.thread_id = f.thread_id AND s.start_ns <= f.start_ns
    WHERE f.frame_id = ?1 AND COALESCE(s.end_ns, f.start_ns) >= f.start_ns
),
carried AS MATERIALIZED (
    SELECT MAX(o.span_id) AS span_id, b.code_id, o.at_ns FROM open o JOIN frame b ON b.frame_id = o.frame_id
    WHERE b.code_id IN (SELECT code_id FROM up WHERE kind = $FRAME_RESUME) AND b.kind <> $FRAME_INHERITED HAVING COUNT(*) = 1
),
counted AS ( -- since CPython 3.11 a coroutine's first frame returns the coroutine, before that it ran to its first await
    SELECT SUM(f.kind = $FRAME_CALL AND f.exit = $EXIT_YIELD) AS began, SUM(f.kind = $FRAME_CALL AND f.exit = $EXIT_RETURN) AS made,
           SUM(f.kind IN ($FRAME_RESUME, $FRAME_THROW) AND f.exit <> $EXIT_YIELD AND f.end_ns <= c.at_ns) AS ended,
           SUM(f.kind = $FRAME_INHERITED) AS inherited
    FROM carried c CROSS JOIN frame f
    WHERE (SELECT MAX(frame_id) FROM frame) < 10000000 AND f.code_id = c.code_id AND f.start_ns <= c.at_ns
)
SELECT COALESCE((SELECT span_id FROM open WHERE frame_id IN (SELECT frame_id FROM up) ORDER BY start_ns DESC, span_id DESC LIMIT 1),
                (SELECT c.span_id FROM carried c, counted n
                 WHERE iif(began, began, made) - ended = 1 AND NOT inherited
                   AND NOT EXISTS (SELECT 1 FROM meta WHERE key IN ('min_duration_ns', 'thin', 'keep_ns', 'keep_bytes') AND value > 0)
                   AND NOT EXISTS (SELECT 1 FROM loss WHERE events IS NULL OR events > 0)));

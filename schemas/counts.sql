-- counts.sql -- the statements that count calls (src/trace/counts.c). A merged trace is read part
-- by part: a part has the rows of one of the traces that were merged. Any other trace is a single
-- part.

-- name: parts
-- Where each part begins, except the first: the ids of the part are greater than these.
SELECT thread_id, code_id, frame_id, lookup_id, guard_check_id FROM merged ORDER BY merged_id LIMIT -1 OFFSET 1;

-- name: threads
-- The threads with ids greater than ?1 and at most ?2, and their processes.
SELECT thread_id, process_id FROM thread WHERE thread_id > ?1 AND thread_id <= ?2 AND process_id IS NOT NULL;

-- name: dropped
-- The lookups of code with ids greater than ?1 and at most ?2 that a recording with a bound dropped, added up. ?3: the process is not known.
SELECT COALESCE(process_id, ?3), code_id, outcome, lookups, duration_ns FROM lookup_count
WHERE code_id > ?1 AND code_id <= ?2 AND lookups > 0 AND outcome IS NOT $SKIP ORDER BY first_ns;

-- name: skipped
-- The rows of the view skipped_calls with code ids greater than ?1 and at most ?2, and frame ids
-- greater than ?3 and at most ?4. The columns are those of `lookup` up to `outcome`.
SELECT 0, 0, f.thread_id, f.code_id, f.start_ns, 0, f.outcome
FROM (SELECT 1 FROM given_up g
      JOIN (SELECT NULL AS skipped) older -- of a trace without the column: the name is then this one's
      WHERE g.code_id > ?1 AND g.code_id <= ?2 AND COALESCE((SELECT skipped FROM code_total x WHERE x.code_id = g.code_id), 1) > 0 LIMIT 1)
     CROSS JOIN frame f -- in this order: without any, no frame is read
WHERE f.frame_id > ?3 AND f.frame_id <= ?4 AND f.outcome = $SKIP AND f.kind = $FRAME_CALL
  AND f.code_id IN (SELECT code_id FROM given_up WHERE code_id > ?1 AND code_id <= ?2);

-- name: examined
-- The code objects that the compiler compiled or examined, with ids greater than ?1 and at most ?2.
SELECT DISTINCT code_id FROM compile WHERE code_id > ?1 AND code_id <= ?2 AND outcome IS NOT 'skipped';

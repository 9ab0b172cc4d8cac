-- attach.sql -- what `dyntrace attach` asks of the trace that is being recorded.

-- name: calls
-- Calls of the functions that ?1 names, which have ended.
SELECT coalesce(sum(t.calls), 0) FROM code_total t JOIN code c USING (code_id)
WHERE c.qualname = ?1 OR c.qualname GLOB '*.' || ?1;

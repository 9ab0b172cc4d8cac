-- import/text.sql -- what `dyntrace import` makes of torch's texts: guards, causes and breaks. src/cmd/import/text.c reads them.

-- name: guards
-- The guards that torch wrote of each entry.
SELECT e.cache_entry_id, l.text, c.filename FROM cache_entry e
 JOIN listing l ON l.compile_id = e.compile_id AND l.kind = 'guards' LEFT JOIN code c ON c.code_id = e.code_id ORDER BY e.cache_entry_id;

-- name: guard
INSERT INTO guard(cache_entry_id, ordinal, kind, source, expression, user_stack)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: guard_count
UPDATE cache_entry SET guard_count = ?2 WHERE cache_entry_id = ?1;

-- name: reasons
-- One reason is logged as it is, several as an array; older torch logs an array always.
SELECT t.compile_id, j.value FROM text t JOIN record r ON r.id = t.id,
  json_each(CASE WHEN json_valid(r.body) AND json_type(r.body) = 'array' THEN r.body ELSE json_array(r.body) END) j
  WHERE t.name = 'recompile_reasons' AND typeof(j.value) = 'text' ORDER BY t.id, j.key;

-- name: entry
-- The entry of that label that was there last: labels are used again after a reset.
SELECT e.cache_entry_id FROM cache_entry e JOIN attempt a ON a.compile_id = e.compile_id JOIN attempt b ON b.compile_id = ?1
  WHERE e.label = ?2 AND a.process_id = b.process_id AND e.compile_id < ?1 ORDER BY e.compile_id DESC LIMIT 1;

-- name: entry_guards
SELECT guard_id, kind, source, expression FROM guard WHERE cache_entry_id = ?1 ORDER BY ordinal;

-- name: cause
-- 0 and -1 are NULL.
INSERT INTO recompile_cause SELECT ?1, NULLIF(?2, 0),
 (SELECT COUNT(*) FROM recompile_cause r WHERE r.compile_id = ?1 AND r.cache_entry_id IS NULLIF(?2, 0)), NULLIF(?3, 0), ?4, ?5,
 CASE WHEN ?9 IS NOT NULL THEN ?9 WHEN ?4 IN ('EQUALS_MATCH', 'CONSTANT_MATCH', 'NONE_MATCH', 'NOT_NONE', 'TRUE_MATCH', 'FALSE_MATCH')
 THEN 'value' WHEN ?4 = 'TYPE_MATCH' THEN 'type' WHEN ?4 = 'ID_MATCH' THEN 'identity' WHEN ?4 GLOB '*LENGTH*' THEN 'length'
 WHEN ?4 GLOB '*CONTAINS' THEN 'keys' WHEN ?4 GLOB '*HASATTR' THEN 'attribute' WHEN ?4 GLOB '*ALIASING' THEN 'relation'
 WHEN ?4 IN ('GLOBAL_STATE', 'DEFAULT_DEVICE', 'TORCH_FUNCTION_MODE_STACK') THEN 'state' END,
 NULLIF(?10, -1), ?6, ?7, ?8, 're-checked';

-- name: breaks
SELECT t.compile_id, r.body, c.filename, c.qualname FROM text t JOIN record r ON r.id = t.id JOIN compile m ON m.compile_id = t.compile_id
  LEFT JOIN code c ON c.code_id = m.code_id WHERE t.name = 'dynamo_graph_break_reason'
  AND COALESCE(m.outcome, 'compiled') = 'compiled' ORDER BY t.id;

-- name: break
-- When torch gives the function up for a break, that is the compile's reason, and nothing goes on after it. A break that makes
-- torch start again is met again: it is one. It is at a line of the compiled function, which may be in the middle of calling
-- another one that torch looked into.
INSERT INTO graph_break(compile_id, code_id, line, reason, user_stack)
SELECT ?1, (SELECT code_id FROM compile WHERE compile_id = ?1), NULLIF(?2, 0), ?3, ?4
WHERE NOT EXISTS (SELECT 1 FROM graph_break b WHERE b.compile_id = ?1 AND b.line IS NULLIF(?2, 0) AND b.reason IS ?3);

-- name: resume
-- The rest after a break is known when it was compiled, too.
UPDATE graph_break SET resume_code_id = (SELECT r.code_id FROM code c JOIN code r ON r.process_id = c.process_id
    AND r.filename IS c.filename AND r.kind = 'resume' WHERE c.code_id = graph_break.code_id
    AND r.qualname = CASE WHEN c.kind = 'resume' THEN substr(c.qualname, 1, length(rtrim(c.qualname, '0123456789')))
                     ELSE 'torch_dynamo_resume_in_' || c.qualname || '_at_' END || graph_break.line);

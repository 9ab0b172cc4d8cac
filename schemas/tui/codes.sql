-- The code objects that are the same function as ?1 and of the same kind, as an SQL list. Compiled
-- code is a kind of its own.
SELECT '(' || COALESCE(group_concat(code_id, ', '), 'NULL') || ')'
FROM (SELECT s.code_id FROM functions s JOIN functions o ON o.code_id = ?1 AND s.function_id = o.function_id AND s.kind IS o.kind ORDER BY 1);

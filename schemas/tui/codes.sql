-- The code objects that are the same function as ?1, of the same kind (compiled code is another), as an SQL list.
SELECT '(' || group_concat(s.code_id, ', ') || ')'
FROM functions s JOIN functions o ON o.code_id = ?1 AND s.function_id = o.function_id AND s.kind IS o.kind;

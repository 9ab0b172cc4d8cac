-- The code objects that are the same function as ?1, as an SQL list.
SELECT '(' || group_concat(code_id, ', ') || ')' FROM functions WHERE function_id = (SELECT function_id FROM functions WHERE code_id = ?1);

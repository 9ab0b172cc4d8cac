-- The guards of an entry.
SELECT guard_id, ordinal, COALESCE(kind, '?'), COALESCE(source, ''), COALESCE(substr(expression, 1, 600), ''), COALESCE(substr(user_stack, 1, 600), '')
FROM guard
WHERE cache_entry_id = ?1 ORDER BY ordinal LIMIT 20000

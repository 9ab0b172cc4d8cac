-- The guards of an entry.
SELECT guard_id, ordinal, kind, source, substr(expression, 1, 600), substr(user_stack, 1, 600) FROM guard
WHERE cache_entry_id = ?1 ORDER BY ordinal LIMIT 20000

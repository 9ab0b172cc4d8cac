-- Names of the nodes of the call tree: id, name.
SELECT code_id, COALESCE(qualname, '?') FROM code ORDER BY code_id LIMIT 400000

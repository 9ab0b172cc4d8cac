-- Names of the nodes of the call tree: id, name, file, line.
SELECT code_id, COALESCE(NULLIF(qualname, ''), '?'), filename, first_line FROM code ORDER BY code_id LIMIT 400000

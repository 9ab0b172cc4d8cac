-- The file, the line and the name of the code that row ?2 of the view ?1 is about.
SELECT c.filename, COALESCE(p.line, c.first_line), c.qualname
FROM (SELECT ?2 AS code_id, NULL AS line WHERE ?1 = 'function'
      UNION ALL SELECT code_id, NULL FROM cache_entry WHERE ?1 = 'entry' AND cache_entry_id = ?2
      UNION ALL SELECT code_id, NULL FROM compile WHERE ?1 IN ('compile', 'causes') AND compile_id = ?2
      UNION ALL SELECT code_id, line FROM graph_break WHERE ?1 = 'break' AND graph_break_id = ?2
      UNION ALL SELECT code_id, NULL FROM lookup WHERE ?1 = 'call' AND lookup_id = -?2
      UNION ALL SELECT code_id, NULL FROM frame WHERE ?1 = 'call' AND frame_id = ?2) p
JOIN code c ON c.code_id = p.code_id
WHERE c.filename IS NOT NULL

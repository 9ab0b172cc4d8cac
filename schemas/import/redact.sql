-- import/redact.sql -- the texts of the new trace that may contain values of secret names, as facts
-- of a recorded program may (src/tracer/redact.c). A row has the table, the column, and the column
-- with the guard source that the text is about.

-- name: texts
SELECT 'guard', 'expression', 'source' UNION ALL
SELECT 'guard', 'user_stack', NULL UNION ALL
SELECT 'compile', 'reason', NULL UNION ALL
SELECT 'recompile_cause', 'expected', 'source' UNION ALL
SELECT 'recompile_cause', 'actual', 'source' UNION ALL
SELECT 'recompile_cause', 'text', 'source' UNION ALL
SELECT 'graph_break', 'reason', NULL UNION ALL
SELECT 'graph_break', 'user_stack', NULL UNION ALL
SELECT 'listing', 'text', NULL;

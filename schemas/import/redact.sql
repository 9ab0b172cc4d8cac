-- import/redact.sql -- texts of the new trace in which values of secret names may stand, as in facts that a recorded program tells
-- (src/tracer/redact.c): the table, the column, and the column with the guard source that the text is about.

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

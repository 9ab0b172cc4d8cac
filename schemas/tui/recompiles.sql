-- Recompiles by function and cause, with the values.

--| function  text 16
--| recompiles  alarm
--| source  text 16
--| expected  differ 13
--| actual  differ 14
--| needed by  text 20
--| kind  text 12
--| compiling  duration
--| first  time
--| last  time
--| where  path 10  => function {code_id}
--| text  text 10
--row => causes WHERE id IN (SELECT m.cause_id FROM recompiles m JOIN recompiles o ON o.cause_id = {id} AND COALESCE(m.aspect, m.kind) IS COALESCE(o.aspect, o.kind) AND m.source IS o.source) AND code_id IN $codes
--subject => function {code_id}
--id id
--none nothing was compiled again
-- The view recompiles decides what counts as a recompile, so the numbers are those of the other
-- views.
WITH decided AS MATERIALIZED (SELECT cause_id AS id, kind, COALESCE(aspect, kind) AS aspect, aspect AS part, dimension, source, expected, actual, why, code_id, function_id, start_ns, compile_ns, filename, qualname, first_line,
         MAX(start_ns) OVER (PARTITION BY function_id, COALESCE(aspect, kind), source) AS last
  FROM recompiles LEFT JOIN (SELECT code_id, function_id FROM functions) USING (code_id)),
seen AS MATERIALIZED (
  SELECT function_id, aspect, source, cause_seen(kind, source, part, dimension, expected, actual, why) AS actual, MIN(start_ns) AS at
  FROM decided WHERE actual IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 5),
grouped AS MATERIALIZED ( -- the bare columns are those of the first
  SELECT id, function_id, filename, qualname, first_line, kind, aspect, part, dimension, source, expected, actual, why, COUNT(*) AS recompiles, SUM(compile_ns) AS ns,
         MIN(start_ns) AS first, last, code_id
  FROM decided GROUP BY function_id, aspect, source)
SELECT d.qualname AS function, d.recompiles AS recompiles,
       iif(d.source IS NULL AND d.expected IS NULL, NULL, cause_name(d.kind, d.source, d.part, d.dimension, d.expected, d.actual, d.why)) AS source,
       cause_expected(d.kind, d.source, d.part, d.dimension, d.expected, d.actual, d.why) AS expected,
       (SELECT as_written(brief(group_concat(substr(v.actual, 1, 60), ', '), NULL))
        FROM (SELECT actual FROM seen v WHERE v.function_id IS d.function_id AND v.aspect IS d.aspect AND v.source IS d.source LIMIT 12) v) AS actual,
       (SELECT needed_by(g.user_stack, r.text, d.qualname) FROM recompile_cause r JOIN guard g ON g.guard_id = r.guard_id WHERE r.rowid = d.id) AS "needed by",
       d.kind AS kind, d.ns AS compiling, d.first AS first, d.last AS last, d.filename || ':' || d.first_line AS "where", COALESCE(cause_words(d.kind, d.source, d.part, d.dimension, d.expected, d.actual, d.why), as_written(d.why)) AS text,
       d.code_id AS code_id, d.id AS id
FROM grouped d ORDER BY d.recompiles DESC, d.ns DESC, d.id;

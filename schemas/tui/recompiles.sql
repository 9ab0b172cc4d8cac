-- Recompiles, by function and cause, with what the values were.

--| function  text 16
--| recompiles  alarm
--| source  text 16
--| expected  text 13
--| then  text 14
--| kind  text 8
--| compiling  duration
--| first  time
--| last  time
--| where  path 10  => function {code_id}
--| text  text 10
--row => causes WHERE kind IS (SELECT r.kind FROM recompile_cause r WHERE r.rowid = {id}) AND source IS (SELECT r.source FROM recompile_cause r WHERE r.rowid = {id}) AND code_id IN $codes
--subject => function {code_id}
--id id
--title function
--none nothing was compiled again
-- One row of each compile and guard: several older entries may have failed by the same.
WITH decided AS MATERIALIZED (
  SELECT r.rowid AS id, r.compile_id, r.kind, r.source, r.expected, r.actual, r.text, m.code_id, m.start_ns, m.compile_ns AS ns, m.filename, m.qualname, m.first_line,
         row_number() OVER (PARTITION BY r.compile_id, r.kind, r.source ORDER BY r.rowid) AS nth
  FROM compiles m JOIN recompile_cause r ON r.compile_id = m.compile_id
  WHERE m.is_recompile AND COALESCE(r.ordinal, 0) = 0),
seen AS MATERIALIZED (
  SELECT filename, qualname, first_line, kind, source, actual, MIN(id) AS id FROM decided WHERE actual IS NOT NULL
  GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 7),
grouped AS MATERIALIZED (
  SELECT MIN(id) AS id, filename, qualname, first_line, kind, source, COUNT(*) AS recompiles, SUM(ns) AS ns,
         MIN(start_ns) AS first, MAX(start_ns) AS last, MIN(code_id) AS code_id
  FROM decided WHERE nth = 1 GROUP BY filename, qualname, first_line, kind, source)
SELECT d.qualname AS function, d.recompiles AS recompiles, d.source AS source, x.expected AS expected,
       (SELECT group_concat(substr(v.actual, 1, 60), ', ')
        FROM (SELECT actual FROM seen v WHERE v.filename IS d.filename AND v.qualname IS d.qualname AND v.first_line IS d.first_line
              AND v.kind IS d.kind AND v.source IS d.source LIMIT 12) v) AS "then",
       d.kind AS kind, d.ns AS compiling, d.first AS first, d.last AS last, d.filename || ':' || d.first_line AS "where", x.text AS text,
       d.code_id AS code_id, d.id AS id
FROM grouped d JOIN decided x ON x.id = d.id ORDER BY d.recompiles DESC, d.ns DESC, d.id;

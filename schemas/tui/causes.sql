-- Each guard that made a recompile necessary.

--| at  time
--| function  text 10  => function {code_id}
--| compile  text 7
--| older entry  text 11  => entry {cache_entry_id}
--| source  text 16
--| expected  differ 13
--| actual  differ 13
--| needed by  text 20
--| kind  text 12
--| compiling  duration
--| ordinal  integer
--| how  text 8
--| text  text 10
--row => compile {compile_id} AT {at}
--id id
--title function
--none nothing was compiled again
SELECT r.start_ns AS at, r.qualname AS function, r.label AS compile, COALESCE(r.older_entry, '#' || r.cache_entry_id) AS "older entry",
       iif(r.source IS NULL AND r.expected IS NULL, NULL, cause_name(r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text)) AS source,
       cause_expected(r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text) AS expected, cause_actual(r.kind, r.source, r.aspect, r.dimension, r.expected, r.actual, r.text) AS actual,
       needed_by(g.user_stack, r.text, r.qualname) AS "needed by", r.kind AS kind, r.compile_ns AS compiling, r.ordinal AS ordinal,
       r.how AS how, r.text AS text, r.compile_id AS compile_id, r.cache_entry_id AS cache_entry_id, r.code_id AS code_id, r.cause_id AS id,
       r.filename || ':' || r.first_line AS "where"
FROM recompile_causes r LEFT JOIN guard g ON g.guard_id = r.guard_id ORDER BY r.start_ns, r.cache_entry_id, r.ordinal;

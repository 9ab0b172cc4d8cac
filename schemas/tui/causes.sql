-- Each guard that made a recompile necessary.

--| at  time
--| function  text 10  => function {code_id}
--| compile  text 6
--| older entry  text 6  => entry {cache_entry_id}
--| source  text 16
--| expected  text 13
--| actual  text 13
--| kind  text 8
--| compiling  duration
--| ordinal  integer
--| how  text 8
--| text  text 10
--row => compile {compile_id}
--subject => compile {compile_id} AT {at}
--id id
--title function
--none nothing was compiled again
SELECT m.start_ns AS at, c.qualname AS function, m.label AS compile, COALESCE(e.label, '#' || r.cache_entry_id) AS "older entry",
       r.source AS source, r.expected AS expected, r.actual AS actual, r.kind AS kind,
       m.end_ns - m.start_ns AS compiling, r.ordinal AS ordinal, r.how AS how, r.text AS text,
       r.compile_id AS compile_id, r.cache_entry_id AS cache_entry_id, m.code_id AS code_id, r.rowid AS id,
       c.filename || ':' || c.first_line AS "where"
FROM recompile_cause r LEFT JOIN compile m ON m.compile_id = r.compile_id LEFT JOIN code c ON c.code_id = m.code_id
     LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id
ORDER BY m.start_ns, r.cache_entry_id, r.ordinal;

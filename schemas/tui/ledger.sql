-- Every call of watched code and how it was decided.

--| lookup_id  integer
--| at  time  => replay {call_id}
--| outcome  outcome 8
--| function  text 20  => function {code_id}
--| entry  text 5  => entry {cache_entry_id}
--| checked  count  => checks WHERE lookup_id = {lookup_id}
--| lookup  duration
--| call  duration
--| thread  integer
--| inputs  text 12
--| where  path 12  => function {code_id}
--row => call {call_id} AT {at}
--window lookup_id
--title function
--none no call was looked up: nothing that compiles frames ran
SELECT l.lookup_id, l.start_ns AS at, (SELECT name FROM enum WHERE kind = 'outcome' AND value = l.outcome) AS outcome,
       c.qualname AS function, e.label AS entry, l.entries_checked AS checked, l.duration_ns AS lookup,
       COALESCE(f.end_ns, (SELECT x.end_ns FROM thread_ends x WHERE x.thread_id = f.thread_id)) - f.start_ns AS call,
       l.thread_id AS thread, s.text AS inputs, c.filename || ':' || c.first_line AS "where", l.code_id AS code_id,
       l.cache_entry_id AS cache_entry_id, t.process_id AS process_id, l.frame_id AS frame_id, -l.lookup_id AS call_id
FROM lookup l LEFT JOIN frame f ON f.frame_id = l.frame_id LEFT JOIN thread t ON t.thread_id = l.thread_id
     LEFT JOIN code c ON c.code_id = l.code_id LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id
     LEFT JOIN signature s ON s.signature_id = l.signature_id;

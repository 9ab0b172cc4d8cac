-- Each time that an entry's guards were run.

--| guard_check_id  integer
--| at  time
--| result  outcome 6
--| function  text 12  => function {code_id}
--| entry  text 5  => entry {cache_entry_id}
--| position  integer
--| ran  count
--| time  duration
--| kind  text 12
--| failed  text 16
--row => call {call_id} AT {at}
--window guard_check_id
--title failed
--none no check was recorded
SELECT k.guard_check_id, l.start_ns AS at, k.result AS result, c.qualname AS function, e.label AS entry, k.position AS position,
       k.guards_run AS ran, k.duration_ns AS time, g.kind AS kind, as_written(COALESCE(NULLIF(g.expression, ''), g.source)) AS failed,
       k.lookup_id AS lookup_id, k.cache_entry_id AS cache_entry_id, k.failed_guard_id AS failed_guard_id, l.code_id AS code_id, -k.lookup_id AS call_id
FROM guard_check k LEFT JOIN lookup l ON l.lookup_id = k.lookup_id LEFT JOIN code c ON c.code_id = l.code_id
     LEFT JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id LEFT JOIN guard g ON g.guard_id = k.failed_guard_id;

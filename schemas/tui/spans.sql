-- Spans: stretches of time that the program or torch has named.

--| span_id  integer
--| at  time  => timeline {thread_id} AT {at}
--| took  duration
--| name  text 20
--| attributes  text 24
--| within  text 12
--| function  text 14  => function {code_id}
--| thread  text 10
--| pid  integer
--| of  text 8
--row => call {frame_id} AT {at}
--window span_id
--title name
--none no spans: dyntrace.span("name") in the program makes them
SELECT s.span_id, s.start_ns AS at, s.duration_ns AS took, s.name, s.attributes, s.parent AS within, c.qualname AS function, s.thread, s.pid,
       NULLIF(s.kind, 'span') AS of, f.frame_id, f.code_id, s.thread_id
FROM spans s LEFT JOIN frame f ON f.frame_id = s.frame_id LEFT JOIN code c ON c.code_id = f.code_id;

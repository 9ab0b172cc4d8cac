-- Every recorded call, of watched code and of other code.

--| frame_id  integer
--| at  time  => timeline {thread_id} AT {at}
--| call  duration
--| ended  text 8
--| outcome  outcome 8
--| function  text 20  => function {code_id}
--| thread  text 10
--| pid  integer
--| where  path 12
--row => call {frame_id} AT {at}
--window frame_id
--title function
--none no call was recorded one by one; those of a recording that goes on are stored at its end
SELECT f.frame_id, f.start_ns AS at, f.duration_ns AS call, COALESCE(f.exit, 'open') AS ended, f.outcome, f.qualname AS function, f.thread, f.pid,
       f.filename || ':' || f.first_line AS "where", f.code_id, f.process_id, f.thread_id, f.parent_id
FROM frames f;

-- What is missing from the trace, and why.

--| at  time
--| events  alarm
--| pid  integer
--| thread  text 8
--| cause  text 20
--row => processes AT {at} WHERE 1
--id id
--title cause
--none nothing is missing, and the program never waited for the recorder
SELECT l.at_ns AS at, l.events AS events, p.pid AS pid, t.name AS thread, l.cause AS cause, l.process_id AS process_id, l.rowid AS id
FROM loss l LEFT JOIN process p ON p.process_id = l.process_id LEFT JOIN thread t ON t.thread_id = l.thread_id
ORDER BY l.cause LIKE $LOSS_STALL || '%', l.at_ns, l.rowid;

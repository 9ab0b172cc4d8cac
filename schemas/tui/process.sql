-- One process: how it ended, and what was running then.

--title {pid}
--| {!b}process {pid}{!n}[, {own_pid} to itself][, rank {rank}][  {command:300}]
--| {!style}{ended:ended}{!n}[ at {at:seconds}][, after {ran:duration}]
--| [python {python:40}][, torch {torch:40}][: {mode:40}]
--| {threads:count~thread}  => timeline
--| [{?looked}calls of watched code]  => ledger WHERE process_id = {process_id} | process {pid}
--none the trace has no such process
SELECT p.process_id, p.pid, (SELECT NULLIF(own_pid, p.pid) FROM process o WHERE o.process_id = p.process_id) AS own_pid, p.rank, COALESCE(t.ended, 'end not seen') AS ended, p.end_ns AS at, p.end_ns - p.start_ns AS ran, p.python_version AS python,
       p.torch_version AS torch, p.torch_mode AS mode, iif(p.exit_signal IS NULL, 'n', 'r') AS style, h.threads,
       (SELECT 1 FROM lookup LIMIT 1) AS looked, t.command
FROM process p JOIN process_tree t USING(process_id), (SELECT COUNT(*) AS threads FROM thread WHERE process_id = ?1) h,
     (SELECT NULL AS own_pid) older -- of a trace without the column: the name is then this one's
WHERE p.process_id = ?1;

--slow ...
--none # No call was open when it ended
--# Open when it ended: thread {thread_id}[ {name:60}], innermost first; lines are where functions begin
--|   {!b}{function:100}{!n}  {!d}{filename:path60}:{first_line}{!n}  since {at:time} s  => call {frame_id}
--more 2000   {!d}more ...  => frames WHERE ended = 'open' AND process_id = {process_id}
SELECT process_id, thread_id, thread AS name, qualname AS function, filename, first_line, frame_id, start_ns AS at
FROM frames WHERE end_ns IS NULL AND process_id = ?1 ORDER BY thread_id, frame_id DESC LIMIT 2001;

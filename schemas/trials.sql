-- trials.sql -- reads and writes the trials that `dyntrace try` stores in a trace, and counts the
-- events of a run (src/trace/trials.c).

-- name: run
-- All trials, oldest first, with the counts of the whole run.
SELECT trial_id, batch, setting, error, values_same, exit_code, exit_signal, output_same, compiles, recompiles, breaks, eager, hits,
       compile_ns, step_ns, baseline, works, gain, note
FROM trials ORDER BY trial_id LIMIT 10000;

-- name: function
-- The trials of each batch in which some trial compiled or called the function with the code ids
-- ?1, a JSON array. The counts are those of the function.
SELECT t.trial_id, t.batch, t.setting, t.error, t.values_same, t.exit_code, t.exit_signal, t.output_same, t.compiles, t.recompiles,
       t.breaks, t.eager, t.hits, t.compile_ns, t.step_ns, t.baseline, t.works, t.gain, t.note
FROM trial_functions t
WHERE t.function_id IN (SELECT function_id FROM functions WHERE code_id IN (SELECT value FROM json_each(?1)))
ORDER BY t.trial_id LIMIT 10000;

-- name: count-run
-- For the trace of a run: the counts of the whole run, as `report` counts them. If the compiler
-- gave up a function, the first call that ran as Python is recorded. Later calls are only frames,
-- which --frames decided does not record, so their number is NULL.
WITH eager AS MATERIALIZED (
    SELECT TOTAL(ran_as_python) AS calls,
           MAX(code_id IN (SELECT code_id FROM code_mark WHERE action = 'skip' AND region_id IS NULL)) AS given_up
    FROM calls WHERE counted AND ran_as_python)
SELECT COUNT(cache_entry_id) AS compiles, TOTAL(is_recompile), (SELECT COUNT(*) FROM graph_break), TOTAL(compile_ns),
       (SELECT iif(given_up, NULL, calls) FROM eager), (SELECT TOTAL(counted AND is_hit) FROM calls)
FROM compiles;

-- name: count-functions
-- The same counts for each function that was compiled or called. step_ns: the median time of the
-- calls that began after the function's last compile in their process, and during which nothing
-- else was compiled. There must be at least five such calls.
WITH function AS MATERIALIZED (SELECT code_id, function_id, filename, qualname, first_line FROM functions),
every AS MATERIALIZED (SELECT * FROM compiles),
broken AS MATERIALIZED (SELECT compile_id, COUNT(*) AS breaks FROM graph_break GROUP BY compile_id),
made AS MATERIALIZED (
    SELECT f.function_id, COUNT(m.cache_entry_id) AS compiles, TOTAL(m.is_recompile) AS recompiles, TOTAL(b.breaks) AS breaks,
           TOTAL(m.compile_ns) AS compile_ns
    FROM every m JOIN function f USING (code_id) LEFT JOIN broken b ON b.compile_id = m.compile_id
    GROUP BY f.function_id),
ran AS MATERIALIZED (
    SELECT f.function_id, TOTAL(l.counted AND l.ran_as_python) AS eager, TOTAL(l.counted AND l.is_hit) AS hits,
           MAX(l.counted AND l.ran_as_python AND l.code_id IN (
               SELECT code_id FROM code_mark WHERE action = 'skip' AND region_id IS NULL)) AS given_up
    FROM calls l JOIN function f USING (code_id)
    GROUP BY f.function_id),
last AS MATERIALIZED (
    SELECT f.function_id, m.process_id, MAX(m.end_ns) AS end_ns
    FROM every m JOIN function f USING (code_id)
    WHERE m.cache_entry_id IS NOT NULL
    GROUP BY f.function_id, m.process_id),
entry AS MATERIALIZED (SELECT thread_id, start_ns FROM compile WHERE cache_entry_id IS NOT NULL),
later AS MATERIALIZED (
    SELECT f.function_id, r.end_ns - r.start_ns AS ns
    FROM last l
    JOIN function f ON f.function_id = l.function_id
    JOIN frame r ON r.code_id = f.code_id
    JOIN thread t ON t.thread_id = r.thread_id AND t.process_id = l.process_id
    WHERE r.kind = $FRAME_CALL AND r.start_ns >= l.end_ns AND r.end_ns IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.thread_id = r.thread_id AND e.start_ns BETWEEN r.start_ns AND r.end_ns)),
step AS MATERIALIZED (
    SELECT function_id, ns FROM (
        SELECT function_id, ns, ROW_NUMBER() OVER (PARTITION BY function_id ORDER BY ns) AS place,
               COUNT(*) OVER (PARTITION BY function_id) AS calls
        FROM later)
    WHERE calls >= 5 AND place = (calls + 1) / 2)
SELECT f.filename, f.qualname, f.first_line, COALESCE(m.compiles, 0), COALESCE(m.recompiles, 0), COALESCE(m.breaks, 0),
       COALESCE(m.compile_ns, 0), iif(r.given_up, NULL, COALESCE(r.eager, 0)), COALESCE(r.hits, 0), s.ns
FROM function f
LEFT JOIN made m ON m.function_id = f.function_id
LEFT JOIN ran r ON r.function_id = f.function_id
LEFT JOIN step s ON s.function_id = f.function_id
WHERE f.code_id = f.function_id
  AND COALESCE(m.compiles, 0) + COALESCE(m.breaks, 0) + COALESCE(r.eager, 0) + COALESCE(r.hits, 0) > 0
ORDER BY f.function_id;

-- name: lost
-- For the trace of a run: what is missing from it.
SELECT cause FROM losses WHERE NOT is_stall AND events IS NOT 0 LIMIT 1;

-- name: ended
-- For the trace of a run: how the command ended, and which settings had no effect.
SELECT exit_code, exit_signal, (SELECT value FROM meta WHERE key = 'settings_unused')
FROM process ORDER BY process_id LIMIT 1;

-- name: function-id
-- For the trace in which trials are stored: the id of the function in file ?1 that is called ?2 and
-- begins at line ?3.
SELECT MIN(code_id) FROM code WHERE filename IS ?1 AND qualname IS ?2 AND first_line IS ?3;

-- name: store
INSERT INTO trial(trial_id, batch, setting, command, function_id, started_unix_ns, duration_ns, exit_code, exit_signal, output_same,
                  values_same, error, step_ns, compiles, recompiles, breaks, compile_ns, eager, hits, difference)
SELECT COALESCE(MAX(trial_id), 0) + 1, COALESCE(?1, MAX(trial_id) + 1, 1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19
FROM trial;

-- name: store-function
INSERT INTO trial_function(trial_id, function_id, compiles, recompiles, breaks, compile_ns, eager, hits, step_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: worst
-- The functions for which to try settings if the user named none, as FILE:LINE, or FILE:LINE:NAME
-- if several begin in that line. The order is that
-- of report/compiles, the worst first.
WITH made AS MATERIALIZED (
    SELECT code_id, SUM(is_recompile) AS recompiles, SUM((SELECT COUNT(*) FROM graph_break b WHERE b.compile_id = m.compile_id)) AS breaks
    FROM compiles m GROUP BY code_id),
ran AS MATERIALIZED (SELECT code_id, SUM(ran_as_python) AS python FROM calls WHERE counted GROUP BY code_id)
SELECT f.filename || ':' || COALESCE(f.first_line, 0)
       || iif((SELECT COUNT(DISTINCT qualname) FROM code o WHERE o.filename = f.filename AND o.first_line IS f.first_line
               AND o.kind IS NOT 'compiled') > 1, ':' || f.qualname, '')
FROM functions f LEFT JOIN made m ON m.code_id = f.code_id LEFT JOIN ran r ON r.code_id = f.code_id
WHERE f.kind IS NOT 'compiled' AND NOT f.is_resume
GROUP BY f.function_id
HAVING TOTAL(recompiles) + TOTAL(python) + TOTAL(breaks) > 0
ORDER BY TOTAL(recompiles) + TOTAL(python) DESC, TOTAL(breaks) DESC, MIN(f.code_id)
LIMIT 20;

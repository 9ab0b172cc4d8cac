-- Lists the tables, views and indexes of the trace that differ from those that this program makes.
-- ?1 describes those that this program makes (trust_make_expected_schema() in src/trace/trust.h). ?2 is this
-- program's version: a trace of another version gives no rows, because what that version makes is
-- not known. ?3 tells whether the trace is still being recorded: two indexes are made only at the
-- end of a recording. The tables and views of trials are made by the first `dyntrace try`, so they
-- may be missing.
SELECT o.value ->> 'name'
FROM json_each(?1) o
LEFT JOIN main.sqlite_schema s ON s.type = o.value ->> 'type' AND s.name = o.value ->> 'name'
WHERE (SELECT value FROM meta WHERE key = 'dyntrace_version') = ?2
  AND s.sql IS NOT o.value ->> 'sql'
  AND NOT (?3 AND s.sql IS NULL AND o.value ->> 'type' = 'index')
  AND NOT (s.name IS NULL AND o.value ->> 'name' IN ('trial', 'trial_function', 'trials', 'trial_functions'));

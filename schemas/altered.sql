-- Which tables, views and indexes are not as this program makes them: ?1 is what it makes (src/trace/db.h), ?2 its
-- version, as nothing is known of another version's, ?3 whether the trace is being recorded: two indexes are made when
-- that ends. Tables and views of trials come with the first one (`dyntrace try`) where the recording had none.
SELECT o.value ->> 'name'
FROM json_each(?1) o
LEFT JOIN main.sqlite_schema s ON s.type = o.value ->> 'type' AND s.name = o.value ->> 'name'
WHERE (SELECT value FROM meta WHERE key = 'dyntrace_version') = ?2
  AND s.sql IS NOT o.value ->> 'sql'
  AND NOT (?3 AND s.sql IS NULL AND o.value ->> 'type' = 'index')
  AND NOT (s.name IS NULL AND o.value ->> 'name' IN ('trial', 'trial_function', 'trials', 'trial_functions'));

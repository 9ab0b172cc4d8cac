-- sqlite.sql -- stands before a question of questions.sql when the trace of a job, made by
-- `dyntrace merge`, is read directly. It defines the tables that the questions read, with job and
-- rank and with times of the day. The file is the database `main`; its views know which compiles
-- are recompiles. Engines do not know the types of the columns that views compute, so these columns
-- are cast.
WITH said AS (SELECT CAST(MAX(CASE WHEN key = 'job' THEN value END) AS VARCHAR) AS job, CAST(CAST(MAX(CASE WHEN key = 'started_unix_ns' THEN value END) AS VARCHAR) AS BIGINT) AS zero_ns
              FROM main.meta),
process AS (SELECT s.job AS job, p.rank AS rank, p.process_id AS process_id, p.host AS host FROM main.process p CROSS JOIN said s),
shares AS (SELECT p.job AS job, p.rank AS rank, p.process_id AS process_id, CAST(v.calls AS BIGINT) AS calls, CAST(v.ran_as_python AS BIGINT) AS ran_as_python
           FROM main.shares v JOIN process p ON p.process_id = CAST(v.process_id AS BIGINT)),
code AS (SELECT p.job AS job, p.rank AS rank, c.code_id AS code_id, c.filename AS filename, c.qualname AS qualname, c.first_line AS first_line
         FROM main.code c JOIN process p ON p.process_id = c.process_id),
cause AS MATERIALIZED (SELECT CAST(k.cause_id AS BIGINT) AS cause_id, COALESCE(k.source, k.text) AS cause FROM main.recompile_causes k),
compile AS (SELECT c.job AS job, c.rank AS rank, m.compile_id AS compile_id, m.code_id AS code_id, m.cache_entry_id AS cache_entry_id, m.label AS label,
                   s.zero_ns + m.start_ns AS start_ns, s.zero_ns + m.end_ns AS end_ns, CAST(m.is_recompile AS BIGINT) AS is_recompile, k.cause AS cause
            FROM main.compiles m JOIN code c ON c.code_id = m.code_id LEFT JOIN cause k ON k.cause_id = CAST(m.cause_id AS BIGINT) CROSS JOIN said s),
cache_entry AS (SELECT c.job AS job, c.rank AS rank, e.cache_entry_id AS cache_entry_id, e.code_id AS code_id
                FROM main.cache_entry e JOIN code c ON c.code_id = e.code_id),
guard_check AS (SELECT e.job AS job, e.rank AS rank, k.cache_entry_id AS cache_entry_id, k.duration_ns AS duration_ns
                FROM main.guard_check k JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id)

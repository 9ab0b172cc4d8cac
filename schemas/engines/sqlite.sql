-- sqlite.sql -- what stands before a question of questions.sql where one trace of a job, as `dyntrace merge` makes it, is read straight: the
-- tables that are asked, with job and rank, and times of the day. The file is the database `main`.
WITH said AS (SELECT CAST(MAX(CASE WHEN key = 'job' THEN value END) AS VARCHAR) AS job, CAST(CAST(MAX(CASE WHEN key = 'started_unix_ns' THEN value END) AS VARCHAR) AS BIGINT) AS zero_ns
              FROM main.meta),
process AS (SELECT s.job AS job, p.rank AS rank, p.process_id AS process_id, p.host AS host FROM main.process p CROSS JOIN said s),
thread AS (SELECT p.job AS job, p.rank AS rank, t.thread_id AS thread_id, t.process_id AS process_id
           FROM main.thread t JOIN process p ON p.process_id = t.process_id),
code AS (SELECT p.job AS job, p.rank AS rank, c.code_id AS code_id, c.qualname AS qualname
         FROM main.code c JOIN process p ON p.process_id = c.process_id),
compile AS (SELECT c.job AS job, c.rank AS rank, m.compile_id AS compile_id, m.code_id AS code_id, m.cache_entry_id AS cache_entry_id, m.label AS label,
                   s.zero_ns + m.start_ns AS start_ns, s.zero_ns + m.end_ns AS end_ns
            FROM main.compile m JOIN code c ON c.code_id = m.code_id CROSS JOIN said s),
recompile_cause AS (SELECT c.job AS job, c.rank AS rank, k.compile_id AS compile_id, k.ordinal AS ordinal, k.source AS source, k.text AS text
                    FROM main.recompile_cause k JOIN compile c ON c.compile_id = k.compile_id),
lookup AS (SELECT c.job AS job, c.rank AS rank, l.lookup_id AS lookup_id, l.thread_id AS thread_id, l.code_id AS code_id, l.outcome AS outcome
           FROM main.lookup l JOIN code c ON c.code_id = l.code_id),
guard_check AS (SELECT l.job AS job, l.rank AS rank, k.lookup_id AS lookup_id, k.duration_ns AS duration_ns
                FROM main.guard_check k JOIN lookup l ON l.lookup_id = k.lookup_id)

-- All cache entries: born, tried, hit, died.

--| function  text 12
--| label  text 5
--| hits  count  => ledger WHERE cache_entry_id = {cache_entry_id} AND outcome = 'hit'
--| tried  count  => checks WHERE cache_entry_id = {cache_entry_id}
--| guards  count
--| born  time  => compile {compile_id}
--| last used  time
--| died  time
--| death cause  text 11
--| backend  text 8
--| region  integer
--| where  path 10  => function {code_id}
--row => entry {cache_entry_id} AT {born}
--id cache_entry_id
--title label
--none no cache entry was recorded
-- A call that compiled an entry ran the entry when the compile had ended.
WITH tries AS MATERIALIZED (SELECT cache_entry_id, COUNT(*) AS tried FROM guard_check WHERE NOT $quick GROUP BY 1),
  uses AS MATERIALIZED (SELECT cache_entry_id, SUM(outcome = $HIT) AS hits,
                               MAX(iif(outcome = $COMPILED, start_ns + COALESCE(duration_ns, 0), start_ns)) AS last
                        FROM lookup WHERE outcome IN ($HIT, $COMPILED) AND NOT $quick GROUP BY 1)
SELECT c.qualname AS function, e.label AS label, iif($quick, NULL, COALESCE(u.hits, 0)) AS hits, iif($quick, NULL, COALESCE(t.tried, 0)) AS tried, e.guard_count AS guards, e.born_ns AS born,
       u.last AS "last used", e.died_ns AS died, e.death_cause AS "death cause", e.backend AS backend, e.region_id AS region,
       c.filename || ':' || c.first_line AS "where", e.compile_id AS compile_id, e.code_id AS code_id, e.cache_entry_id AS cache_entry_id
FROM cache_entry e LEFT JOIN code c ON c.code_id = e.code_id
     LEFT JOIN tries t ON t.cache_entry_id = e.cache_entry_id LEFT JOIN uses u ON u.cache_entry_id = e.cache_entry_id
ORDER BY e.born_ns, e.cache_entry_id;

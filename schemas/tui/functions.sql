-- What each function did and cost. A function that ran in several processes is one row.

--| function  text 24
--| calls  count  => frames WHERE code_id IN $codes
--| hits  count  => ledger WHERE outcome = 'hit' AND code_id IN $codes
--| misses  count  => ledger WHERE outcome IN (SELECT name FROM outcomes WHERE missed) AND code_id IN $codes
--| recompiles  alarm  => causes WHERE code_id IN $codes AND id IN (SELECT cause_id FROM recompiles)
--| breaks  alarm  => breaks WHERE code_id IN $codes
--| entries  count  => entries WHERE code_id IN $codes
--| guards  duration  => checks WHERE code_id IN $codes
--| compiling  duration  => compiles WHERE code_id IN $codes
--| self  duration
--| waiting  duration
--| total  duration
--| per call  duration
--| raised  alarm
--| over time  spark 24  => timeline
--| where  path 16
--| kind  text 8
--row => function {code_id}
--id code_id
--none no function was recorded
WITH made AS MATERIALIZED (SELECT code_id, SUM(is_recompile) AS again, SUM(compile_ns) AS ns FROM compiles GROUP BY code_id),
  broken AS MATERIALIZED (SELECT m.code_id, COUNT(*) AS n FROM graph_break b CROSS JOIN compile m ON m.compile_id = b.compile_id
                          GROUP BY m.code_id),
  entered AS MATERIALIZED (SELECT code_id, COUNT(*) AS n FROM cache_entry GROUP BY code_id),
  span AS (SELECT MAX(1, COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'span_ns'),
                                  (SELECT start_ns FROM lookup ORDER BY lookup_id DESC LIMIT 1), 1)) AS ns),
  asked AS MATERIALIZED (SELECT code_id, outcome, CAST(start_ns * 23.999 / (SELECT ns FROM span) AS INTEGER) AS bucket, COUNT(*) AS n
                         FROM lookup WHERE NOT $quick GROUP BY 1, 2, 3),
  decided AS MATERIALIZED (SELECT a.code_id, SUM(a.n * (o.name = 'hit')) AS hits, SUM(a.n * o.missed) AS misses,
                                  group_concat(a.bucket || ':' || a.n) AS wave
                           FROM asked a LEFT JOIN outcomes o ON o.outcome = a.outcome GROUP BY a.code_id),
  off AS MATERIALIZED (SELECT code_id, NULLIF(SUM(waited_ns - queued_ns), 0) AS ns FROM stretch WHERE NOT $quick GROUP BY code_id),
  checked AS MATERIALIZED (SELECT e.code_id, SUM(k.ns) AS ns
                           FROM (SELECT cache_entry_id, SUM(duration_ns) AS ns FROM guard_check WHERE NOT $quick GROUP BY cache_entry_id) k
                                CROSS JOIN cache_entry e ON e.cache_entry_id = k.cache_entry_id GROUP BY e.code_id)
SELECT c.qualname AS function, SUM(n.calls) AS calls, SUM(d.hits) AS hits, SUM(d.misses) AS misses,
       COALESCE(SUM(m.again), 0) AS recompiles, COALESCE(SUM(b.n), 0) AS breaks,
       COALESCE(SUM(e.n), 0) AS entries, SUM(k.ns) AS guards, SUM(m.ns) AS compiling, SUM(n.self_ns) AS self, SUM(w.ns) AS waiting,
       SUM(n.total_ns) AS total, SUM(n.total_ns) / NULLIF(SUM(n.calls), 0) AS "per call", SUM(n.raised) AS raised, group_concat(d.wave) AS "over time", c.filename || ':' || c.first_line AS "where", c.kind AS kind,
       MIN(c.code_id) AS code_id
FROM functions c LEFT JOIN code_total n ON n.code_id = c.code_id LEFT JOIN made m ON m.code_id = c.code_id
     LEFT JOIN broken b ON b.code_id = c.code_id LEFT JOIN entered e ON e.code_id = c.code_id
     LEFT JOIN decided d ON d.code_id = c.code_id LEFT JOIN checked k ON k.code_id = c.code_id
     LEFT JOIN off w ON w.code_id = c.code_id
GROUP BY c.function_id, c.kind
ORDER BY recompiles DESC, breaks DESC, hits + misses DESC, entries DESC, self DESC, MIN(c.code_id);

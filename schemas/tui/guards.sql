-- What guards cost, by kind and source.

--| kind  text 14
--| source  text 20
--| entries  count  => entries WHERE cache_entry_id IN (SELECT g.cache_entry_id FROM guard g JOIN guard one ON one.guard_id = {guard_id} AND g.kind IS one.kind AND g.source IS one.source)
--| evaluations  count  => checks WHERE cache_entry_id IN (SELECT g.cache_entry_id FROM guard g JOIN guard one ON one.guard_id = {guard_id} AND g.kind IS one.kind AND g.source IS one.source)
--| failures  alarm  => checks WHERE failed_guard_id IN (SELECT g.guard_id FROM guard g JOIN guard one ON one.guard_id = {guard_id} AND g.kind IS one.kind AND g.source IS one.source)
--| time (est.)  duration
--| expression  text 24
--row => checks WHERE iif({failures}, failed_guard_id, cache_entry_id) IN (SELECT iif({failures}, g.guard_id, g.cache_entry_id) FROM guard g JOIN guard one ON one.guard_id = {guard_id} AND g.kind IS one.kind AND g.source IS one.source)
--subject => entry {cache_entry_id}
--id guard_id
--title source
--none no guard was recorded
WITH one AS MATERIALIZED (SELECT kind, source, COUNT(DISTINCT cache_entry_id) AS entries, MIN(expression) AS expression, MIN(guard_id) AS guard_id,
                                 MIN(cache_entry_id) AS cache_entry_id FROM guard GROUP BY kind, source)
SELECT o.kind AS kind, as_written(o.source) AS source, COALESCE(b.entries, o.entries) AS entries, b.evaluations AS evaluations, b.failures AS failures,
       CAST(b.estimated_ns AS INTEGER) AS "time (est.)", o.expression AS expression, o.guard_id AS guard_id, o.cache_entry_id AS cache_entry_id
FROM one o LEFT JOIN (SELECT * FROM guard_bill WHERE NOT $quick) b ON b.kind IS o.kind AND b.source IS o.source
WHERE $quick OR b.evaluations ORDER BY b.estimated_ns DESC, o.guard_id;

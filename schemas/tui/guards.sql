-- What guards cost, by kind and source.

-- What can be said at once: which guards there are.
SELECT kind, source, COUNT(DISTINCT cache_entry_id) AS entries, NULL AS evaluations, NULL AS failures, NULL AS "time (est.)",
       MIN(expression) AS expression, MIN(guard_id) AS guard_id, MIN(cache_entry_id) AS cache_entry_id
FROM guard GROUP BY kind, source ORDER BY COUNT(*) DESC, MIN(guard_id);

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
-- Checks that ended alike are counted first: a row per guard of each check, as the view guard_evaluation has it, would be
-- far more. A guard ran in those checks that got as far as its place in the order of that moment.
WITH ended AS MATERIALIZED (
  SELECT k.cache_entry_id, k.guards_run, k.failed_guard_id, k.result,
         CASE WHEN k.cache_entry_id IN (SELECT cache_entry_id FROM guard_order) THEN
           (SELECT w.order_id FROM lookup l JOIN thread t USING (thread_id)
             JOIN guard_orders w ON w.process_id = t.process_id AND w.from_ns <= l.start_ns
            WHERE w.cache_entry_id = k.cache_entry_id AND l.lookup_id = k.lookup_id
            ORDER BY w.from_ns DESC, w.order_id DESC LIMIT 1) END AS orders,
         COUNT(*) AS n, SUM(k.duration_ns * 1.0 / NULLIF(k.guards_run, 0)) AS share
  FROM guard_check k GROUP BY 1, 2, 3, 4, 5)
SELECT g.kind AS kind, g.source AS source, COUNT(DISTINCT g.cache_entry_id) AS entries, SUM(d.n) AS evaluations,
       SUM(CASE WHEN g.guard_id = d.failed_guard_id AND d.result <> 'pass' THEN d.n ELSE 0 END) AS failures,
       CAST(SUM(d.share) AS INTEGER) AS "time (est.)", MIN(g.expression) AS expression, MIN(g.guard_id) AS guard_id,
       MIN(g.cache_entry_id) AS cache_entry_id
FROM ended d CROSS JOIN guard g ON g.cache_entry_id = d.cache_entry_id LEFT JOIN guard_order o ON o.rowid = d.orders
WHERE g.guard_id = d.failed_guard_id
   OR COALESCE((SELECT j.key FROM json_each(CASE WHEN json_valid(o.ordinals) THEN o.ordinals ELSE '[]' END) j
                WHERE j.value = g.ordinal), g.ordinal) < d.guards_run
GROUP BY g.kind, g.source ORDER BY SUM(d.share) DESC, MIN(g.guard_id);

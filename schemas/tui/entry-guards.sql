-- The guards of an entry, by source; unless ?2 is set, also how often each guard ran and failed.
-- Checks that ended in the same way are joined before their guards are read. Each guard has its
-- place in the order of that moment.
WITH ended AS MATERIALIZED (
  SELECT k.guards_run, k.failed_guard_id, k.result <> $CHECK_PASS AS failed, COUNT(*) AS times,
         CASE WHEN ?1 IN (SELECT cache_entry_id FROM guard_order) THEN
           (SELECT o.order_id FROM lookup l JOIN thread t USING (thread_id)
             JOIN guard_orders o ON o.process_id = t.process_id AND o.from_ns <= l.start_ns
            WHERE o.cache_entry_id = ?1 AND l.lookup_id = k.lookup_id ORDER BY o.from_ns DESC, o.order_id DESC LIMIT 1) END AS order_id
  FROM guard_check k WHERE k.cache_entry_id = ?1 AND NOT ?2 GROUP BY 1, 2, 3, 5),
place AS MATERIALIZED (
  SELECT o.rowid AS order_id, j.value AS ordinal, j.key AS place
  FROM guard_order o JOIN json_each(iif(json_valid(o.ordinals), o.ordinals, '[]')) j WHERE o.rowid IN (SELECT order_id FROM ended)),
ran AS MATERIALIZED (
  SELECT g.guard_id, SUM(r.times) AS ran
  FROM guard g CROSS JOIN ended r LEFT JOIN place p ON p.order_id = r.order_id AND p.ordinal = g.ordinal
  WHERE g.cache_entry_id = ?1 AND (g.guard_id = r.failed_guard_id OR COALESCE(p.place, g.ordinal) < r.guards_run - (r.failed_guard_id IS NOT NULL)) GROUP BY 1)
SELECT g.guard_id, g.ordinal, r.ran, f.failed, COALESCE(g.source, ''), COALESCE(g.kind, '?'), COALESCE(substr(g.expression, 1, 600), ''),
       ltrim(substr(stack, length(rtrim(stack, replace(stack, char(10), ''))) + 1, 600))
FROM (SELECT *, rtrim(user_stack, char(10)) AS stack FROM guard WHERE cache_entry_id = ?1 ORDER BY ordinal LIMIT 20000) g LEFT JOIN ran r ON r.guard_id = g.guard_id
LEFT JOIN (SELECT failed_guard_id, SUM(times) AS failed FROM ended WHERE failed GROUP BY 1) f ON f.failed_guard_id = g.guard_id
ORDER BY g.source, g.ordinal

-- How checks of an entry ended, and how often: guards that ran, which failed, the result, how many, and the order of the
-- guards at that moment, as JSON; NULL: as they are numbered.
SELECT k.guards_run, k.failed_guard_id, k.result, COUNT(*),
       CASE WHEN ?1 IN (SELECT cache_entry_id FROM guard_order) THEN
         (SELECT o.ordinals FROM guard_order o WHERE o.cache_entry_id = ?1
           AND o.from_ns <= (SELECT l.start_ns FROM lookup l WHERE l.lookup_id = k.lookup_id)
          ORDER BY o.from_ns DESC, o.rowid DESC LIMIT 1) END AS ordinals
FROM guard_check k WHERE k.cache_entry_id = ?1 GROUP BY 1, 2, 3, 5

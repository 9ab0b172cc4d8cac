-- Compiles: id, thread, begin, end (?1 if it has none), whether it gave no code, whether it had a
-- graph break.
SELECT m.compile_id, m.thread_id, m.start_ns, COALESCE(m.end_ns, ?1), m.cache_entry_id IS NULL,
       EXISTS (SELECT 1 FROM graph_break b WHERE b.compile_id = m.compile_id)
FROM compile m ORDER BY m.start_ns LIMIT 200000;

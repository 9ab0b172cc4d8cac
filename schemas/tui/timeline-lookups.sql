-- The lookups ?1 to ?2 of thread ?3.
SELECT start_ns, outcome FROM lookup WHERE lookup_id BETWEEN ?1 AND ?2 AND thread_id = ?3;

-- The first frame of thread ?3 from ?1 to ?2.
SELECT frame_id FROM frame WHERE frame_id BETWEEN ?1 AND ?2 AND thread_id = ?3 ORDER BY frame_id LIMIT 1;

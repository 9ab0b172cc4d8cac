-- The frames ?1 to ?2 of thread ?3. ?4 is the end of a frame without an end.
SELECT frame_id, parent_id, code_id, start_ns, COALESCE(end_ns, ?4) FROM frame WHERE frame_id BETWEEN ?1 AND ?2 AND thread_id = ?3;

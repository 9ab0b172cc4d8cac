-- call-lookup.sql -- minus the id of the lookup of frame ?1, which identifies a call that was
-- looked up. The search reads the lookups of the frame's function, so it takes long if there are
-- many.
SELECT -l.lookup_id FROM frame f CROSS JOIN lookup l ON l.code_id = f.code_id
WHERE f.frame_id = ?1 AND f.outcome <> $PLAIN AND l.frame_id = ?1;

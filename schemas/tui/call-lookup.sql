-- call-lookup.sql -- the lookup of frame ?1, negated: the id of a call that had one. It is found among those of its
-- function, which takes as long as those are many.
SELECT -l.lookup_id FROM frame f CROSS JOIN lookup l ON l.code_id = f.code_id
WHERE f.frame_id = ?1 AND f.outcome <> $PLAIN AND l.frame_id = ?1;

-- rates.sql -- the number of hits after lookup ?1, and the id of the last lookup (src/tui/rates.c).
SELECT COALESCE(SUM(outcome = $HIT), 0), MAX(lookup_id) FROM lookup WHERE lookup_id > ?1;

-- rates.sql -- lookups that hit behind lookup ?1, and the last lookup there is: src/tui/rates.c.
SELECT COALESCE(SUM(outcome = $HIT), 0), MAX(lookup_id) FROM lookup WHERE lookup_id > ?1;

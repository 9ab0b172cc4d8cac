-- What `dyntrace fsck` counts: frames, ?1, and those without an end, ?2, it has counted itself.
SELECT (SELECT COUNT(*) FROM process) AS processes, (SELECT COUNT(*) FROM thread) AS threads,
       (SELECT COUNT(*) FROM code) AS "code objects", ?1 AS frames, ?2 AS "open frames",
       (SELECT COUNT(*) FROM loss WHERE events IS NULL OR events > 0) AS losses;

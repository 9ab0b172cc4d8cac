-- sql.sql -- what the prompts of `dyntrace sql` and of the TUI ask.

-- name: words
-- Tables, views and their columns, to be completed.
SELECT DISTINCT name
FROM (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
      UNION ALL SELECT name FROM temp.sqlite_schema
      UNION ALL SELECT c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE s.type = 'table')
WHERE length(name) < 64
ORDER BY name
LIMIT 5000;

-- name: tables
SELECT name, type FROM sqlite_schema WHERE type = 'table' UNION SELECT name, type FROM temp.sqlite_schema ORDER BY type, name;

-- name: schema
-- How the tables and views ?1 are made, with what each column means; NULL: all of them.
SELECT sql || ';'
FROM (SELECT * FROM sqlite_schema WHERE type <> 'view' UNION ALL SELECT * FROM temp.sqlite_schema)
WHERE sql IS NOT NULL AND (?1 IS NULL OR tbl_name LIKE ?1 OR name LIKE ?1);

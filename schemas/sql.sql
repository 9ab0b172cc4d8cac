-- sql.sql -- what the prompts of `dyntrace sql` and of the TUI ask.

-- name: words
-- What can be completed: keywords as they are typed, in capitals or not; tables, views and columns that can be typed as
-- they are, which in a hostile file need not be all.
WITH keyword AS (SELECT value FROM json_each('["all", "and", "as", "asc", "avg", "between", "by", "case", "cast", "coalesce",
    "count", "cross", "desc", "distinct", "else", "end", "except", "exists", "explain", "from", "glob", "group", "having", "in",
    "intersect", "is", "join", "left", "like", "limit", "max", "min", "not", "null", "offset", "on", "or", "order", "over",
    "partition", "query plan", "recursive", "round", "select", "sum", "then", "union", "using", "values", "when", "where",
    "with"]'))
SELECT upper(value) FROM keyword
UNION ALL SELECT value FROM keyword
UNION ALL SELECT * FROM (
    SELECT DISTINCT name
    FROM (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
          UNION ALL SELECT name FROM temp.sqlite_schema
          UNION ALL SELECT c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE s.type = 'table')
    WHERE length(name) < 64 AND name GLOB '[A-Za-z_]*' AND name NOT GLOB '*[^A-Za-z0-9_]*'
    ORDER BY name
    LIMIT 5000);

-- name: tables
SELECT name, type FROM sqlite_schema WHERE type = 'table' UNION SELECT name, type FROM temp.sqlite_schema ORDER BY type, name;

-- name: schema
-- How the tables and views ?1 are made, with what each column means; NULL: all of them.
SELECT sql || ';'
FROM (SELECT * FROM sqlite_schema WHERE type <> 'view' UNION ALL SELECT * FROM temp.sqlite_schema)
WHERE sql IS NOT NULL AND (?1 IS NULL OR tbl_name LIKE ?1 OR name LIKE ?1);

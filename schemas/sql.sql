-- sql.sql -- the statements for the SQL prompts of `dyntrace sql` and of the TUI.

-- name: words
-- Words for completion: keywords in the case in which they are typed, and the tables, views and
-- columns whose names need no quotes. In a hostile file a name may need them.
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
          UNION ALL SELECT c.name FROM sqlite_schema s JOIN pragma_table_xinfo(s.name) c WHERE s.type = 'table')
    WHERE length(name) < 64 AND name GLOB '[A-Za-z_]*' AND name NOT GLOB '*[^A-Za-z0-9_]*'
    ORDER BY name
    LIMIT 5000);

-- name: tables-of
-- The names of all tables and views, to suggest one for an unknown table in the SQL ?1.
SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND ?1 <> ''
UNION SELECT name FROM temp.sqlite_schema WHERE type IN ('table', 'view');

-- name: columns-of
-- Names to suggest for an unknown column in the SQL ?1: the columns of the tables and views that
-- the SQL names.
SELECT DISTINCT c.name
FROM (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
      UNION SELECT name FROM temp.sqlite_schema WHERE type IN ('table', 'view')) t
JOIN pragma_table_xinfo(t.name) c
WHERE instr(lower(?1), lower(t.name));

-- The commands that begin with a dot. The word after the command is the argument; argument(word)
-- has it, or NULL.

-- name: .tables
SELECT name, type FROM sqlite_schema WHERE type = 'table' UNION SELECT name, type FROM temp.sqlite_schema
WHERE sql NOT LIKE 'CREATE TABLE%' ORDER BY type, name;

-- name: .schema
-- The statements that create the tables and views, or the one that the argument names, with the
-- meaning of each column, line by line.
SELECT l.value AS "how it is made"
FROM (SELECT * FROM sqlite_schema WHERE type <> 'view' UNION ALL SELECT * FROM temp.sqlite_schema) s
JOIN argument ON word IS NULL OR tbl_name LIKE word OR name LIKE word
JOIN json_each('["' || replace(trim(replace(json_quote(sql || ';'), '\\', '\u005c'), '"'), '\n', '","') || '"]') l
WHERE sql IS NOT NULL
UNION ALL
SELECT word || ': no such table or view' FROM argument
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE tbl_name LIKE word OR name LIKE word)
  AND NOT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name LIKE word);

-- name: .help
SELECT * FROM (SELECT '.help' AS command, 'this list' AS "what it shows" UNION ALL VALUES
    ('.tables', 'tables and views'), ('.schema [T]', 'how they, or T, are made, with what each column means'), ('.queries', 'the named queries'),
    ('.quit', 'at the prompt: leave it, as Ctrl-D does'), ('NAME', 'the answer of a named query'),
    ('SQL;', 'its rows; at the prompt Tab completes, and Ctrl-C ends a query'));

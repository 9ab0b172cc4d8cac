/* trace/sql_words.c -- what Tab may complete in SQL. See trace/sql_words.h.
 *
 * Runs in: the viewer. */
#include "trace/sql_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "schema.h"

static const char *const keywords[] = {
    "ALL", "AND", "AS", "ASC", "AVG", "BETWEEN", "BY", "CASE", "CAST", "COALESCE", "COUNT", "CROSS", "DESC",
    "DISTINCT", "ELSE", "END", "EXCEPT", "EXISTS", "EXPLAIN", "FROM", "GLOB", "GROUP", "HAVING", "IN",
    "INTERSECT", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "MAX", "MIN", "NOT", "NULL", "OFFSET", "ON", "OR",
    "ORDER", "OVER", "PARTITION", "QUERY PLAN", "RECURSIVE", "ROUND", "SELECT", "SUM", "THEN", "UNION", "USING",
    "VALUES", "WHEN", "WHERE", "WITH",
};

static void word_add(struct sql_words *words, const char *word)
{
    char **more;

    if (!(words->count & (words->count + 1)) && /* 0, 1, 3, 7: room doubles */
        (more = realloc(words->words, (words->count + 1) * 2 * sizeof *more)))
        words->words = more;
    else if (!(words->count & (words->count + 1)))
        return;
    if ((words->words[words->count] = strdup(word)))
        words->count++;
}

/* Keywords are known in both cases; what was typed decides. */
static void word_add_lower(struct sql_words *words, const char *word)
{
    char lower[32];
    size_t i;

    for (i = 0; word[i] && i < sizeof lower - 1; i++)
        lower[i] = (char)tolower((unsigned char)word[i]);
    lower[i] = 0;
    word_add(words, lower);
}

/* A name that can be typed as it is; others, such as a hostile file may have, are left out. */
static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return !*text;
}

void sql_words_gather(struct sql_words *words, struct db *db)
{
    struct query *query = db_query(db,
        "SELECT DISTINCT name FROM (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
        "  UNION ALL SELECT c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c"
        "  WHERE s.type = 'table') WHERE length(name) < 64 ORDER BY name LIMIT 5000");

    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        word_add(words, keywords[i]), word_add_lower(words, keywords[i]);
    for (int i = 0; i < schema_query_count; i++)
        word_add(words, schema_queries[i].name);
    while (query_step(query))
        if (is_name(query_text(query, 0, NULL)))
            word_add(words, query_text(query, 0, NULL));
    query_close(query);
}

void sql_words_free(struct sql_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->words[i]);
    free(words->words);
    *words = (struct sql_words){0};
}

char *sql_match(const char *text, const char *const *list, size_t count, size_t *next, int again)
{
    const char *dot = strrchr(text, '.'), *part = dot ? dot + 1 : text;
    size_t length = strlen(part);
    char *made;

    if (!again)
        *next = 0;
    while (*next < count) {
        const char *word = list[(*next)++];
        if (!strncmp(word, part, length))
            return asprintf(&made, "%.*s%s", (int)(part - text), text, word) < 0 ? NULL : made;
    }
    return NULL;
}

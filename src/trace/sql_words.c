/* trace/sql_words.c -- what Tab may complete in SQL. See trace/sql_words.h.
 *
 * Runs in: the viewer. */
#include "trace/sql_words.h"

#include <ctype.h>
#include <stdio.h>
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

/* In lower case when LOWER. */
static void word_add(struct sql_words *words, const char *word, bool lower)
{
    char *copy = arena_text(&words->arena, word, strlen(word));
    const char **place = copy ? list_add(&words->words) : NULL;

    if (!place)
        return;
    for (char *c = copy; lower && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    *place = copy;
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
    struct query *query = db_query(db, schema_statement("sql/words"));

    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) /* what was typed decides */
        word_add(words, keywords[i], false), word_add(words, keywords[i], true);
    for (int i = 0; i < schema_query_count; i++)
        word_add(words, schema_queries[i].name, false);
    while (query_step(query))
        if (is_name(query_text(query, 0, NULL)))
            word_add(words, query_text(query, 0, NULL), false);
    query_close(query);
}

void sql_words_free(struct sql_words *words)
{
    list_free(&words->words);
    arena_free(&words->arena);
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

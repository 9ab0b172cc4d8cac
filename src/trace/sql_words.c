/* trace/sql_words.c -- what Tab may complete in SQL. See trace/sql_words.h. */
#include "trace/sql_words.h"

#include <stdio.h>
#include <string.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"

void sql_words_gather(struct sql_words *words, struct db *db)
{
    struct query *query = db_query(db, schema_statement("sql/words"));

    for (int i = 0; i < schema_query_count; i++)
        *list_add(&words->words) = schema_queries[i].name;
    while (query_step(query)) {
        size_t bytes;
        const char *word = query_text(query, 0, &bytes);
        *list_add(&words->words) = arena_text(&words->arena, word, bytes);
    }
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

    if (!again)
        *next = 0;
    while (*next < count) {
        const char *word = list[(*next)++];
        if (!strncmp(word, part, length))
            return say_print("%.*s%s", (int)(part - text), text, word);
    }
    return NULL;
}

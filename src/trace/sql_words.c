/* trace/sql_words.c -- finds the words that Tab completes in SQL. See trace/sql_words.h. */
#include "trace/sql_words.h"

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"

void sql_words_gather(struct sql_words *words, struct db *db)
{
    for (int i = 0; i < schema_query_count; i++)
        *list_add(&words->words) = schema_queries[i].name;
    db_rows(query, db, schema_statement("sql/words"))
    {
        size_t bytes;
        const char *word = query_text(query, 0, &bytes);
        *list_add(&words->words) = arena_text(&words->arena, word, bytes);
    }
}

void sql_words_free(struct sql_words *words)
{
    list_free(&words->words);
    arena_free(&words->arena);
}

char *sql_name_of_line(const char *line)
{
    size_t length = strcspn(line, "; \t\n"), to = length + strspn(line + length, "; \t"),
           word = strcspn(line + to, "; \t\n'");
    char *name = say_print("%s%.*s", *line == '.' ? "sql/" : "", (int)length, line);
    char *made = NULL;

    for (const struct schema_query *s = *line == '.' ? schema_statements : schema_queries;
         s->name && !made; s++)
        if (!strcmp(s->name, name) && *line == '.')
            made = say_print("WITH argument(word) AS (SELECT NULLIF('%.*s', ''))\n%s", (int)word,
                             line + to, s->text);
        else if (!strcmp(s->name, name) && !line[to + strspn(line + to, "\n")])
            made = strdup(s->text);
    free(name);
    return made;
}

const char *sql_find_statement(const char *name)
{
    if (!strcmp(name, "trace"))
        return schema_trace_sql;
    if (!strcmp(name, "views"))
        return schema_views_sql;
    for (const struct schema_query *s = schema_queries; s->name; s++)
        if (!strcmp(s->name, name))
            return s->text;
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strcmp(s->name, name))
            return s->text;
    return NULL;
}

char *sql_match_words(const char *text, const char *const *list, size_t count, size_t *next,
                      int again)
{
    const char *dot = strrchr(text, '.');
    const char *part = dot ? dot + 1 : text;
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

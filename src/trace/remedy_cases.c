/* trace/remedy_cases.c -- reads the cases of a cause, for rules of remedies.txt that ask for one.
 * See trace/remedy.h. */
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/remedy.h"

static const char *copy_column(struct arena *arena, struct query *query, int column)
{
    if (query_type(query, column) == QUERY_NULL)
        return NULL;
    return arena_print(arena, "%s", query_text(query, column, NULL));
}

void remedy_cases_read(struct db *db, struct arena *arena, const char *ids,
                       const struct cause *cause, struct remedy_case cases[REMEDY_CASES])
{
    struct query *query = db_query(db, schema_statement("why/about"));
    char *array = say_print("[%s]", ids);
    int count = 0;

    query_bind_text(query, 1, array);
    query_bind_text(query, 2, prose_text_or_other(cause->source, ""));
    query_bind_text(query, 3, prose_text_or_other(cause->aspect, ""));
    query_bind_integer(query, 4, cause->dimension);
    while (query_step(query) && count < REMEDY_CASES - 1) {
        cases[count++] = (struct remedy_case){.is = copy_column(arena, query, 0),
                                              .more = copy_column(arena, query, 1),
                                              .setting = copy_column(arena, query, 2)};
    }
    cases[count] = (struct remedy_case){0};
    query_close(query);
    free(array);
}

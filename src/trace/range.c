/* trace/range.c -- options that select a part of a trace. See trace/range.h. */
#include "trace/range.h"

#include <inttypes.h>

#include "lib/list.h"
#include "schema.h"
#include "trace/db.h"

struct asked {
    const char *what, *value;
};
static LIST(struct asked) asked;

const char *range_read_option(const struct option *option, const char *value)
{
    *list_add(&asked) = (struct asked){option->name, value};
    return *value ? NULL : option_empty;
}

const char *range_read_time_option(const struct option *option, const char *value)
{
    const char *dots = strstr(value, "..");
    const char *ends[] = {dots ? strndup(value, (size_t)(dots - value)) : "", dots ? dots + 2 : ""};
    uint64_t ns[2] = {0};

    for (int i = 0; i < 2 && dots; i++)
        if (*ends[i] && option_duration(&(struct option){.to = &ns[i]}, ends[i]))
            dots = NULL;
        else if (*ends[i])
            *list_add(&asked) = (struct asked){i ? "to" : "from", say_print("%" PRIu64, ns[i])};
    return dots && (*ends[0] || *ends[1]) && (!*ends[1] || ns[0] < ns[1])
               ? NULL
               : "not from a time to a later one, such as 1.5s..2s, 20ms.. or ..1s";
}

bool range_is_given(void)
{
    return asked.count;
}

bool range_limit_views(struct db *db, const char *views)
{
    struct query *query;
    bool there;

    db_run_in_temporary(db, schema_statement("range/asked"));
    if (db_has_failed(db)) /* an error means here that the trace is damaged; it has been reported */
        return false;
    query = db_query(db, schema_statement("range/ask"));
    list_each(ask, &asked) {
        query_bind_text(query, 1, ask->what);
        query_bind_text(query, 2, ask->value);
        query_execute(query);
    }
    query_close(query);
    query = db_query(db, schema_statement("range/nothing"));
    there = !query_step(query);
    if (!there)
        say_error("%s: --%s %s: there is none in this trace", db_get_path(db),
                  query_text(query, 0, NULL), query_text(query, 1, NULL));
    query_close(query);
    return there && db_run(db, schema_statement("range/part")) &&
           (!asked.count || !views || db_run(db, schema_statement(views)));
}

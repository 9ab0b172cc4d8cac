/* trace/whatif/knobs.c -- the settings of a what-if as they are typed. See trace/whatif/knobs.h.
 *
 * Runs in: the viewer. */
#include "trace/whatif/knobs.h"

#include <errno.h>

#include "trace/db.h"
#include "lib/say.h"

static bool refuse(const char *text, const char *why)
{
    say_error("what-if: %s: %s", text, why);
    return false;
}

/* ---- a setting: what is wrong with VALUE, or NULL -------------------------- */

static const char *number(const char *value, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(value, &end, 10);
    return end == value || *end || errno || *number < 1 || *number > INT32_MAX ? "not a number from 1 on" : NULL;
}

static const char *set_limit(struct whatif_knobs *k, const char *value)
{
    return number(value, &k->recompile_limit);
}

static const char *set_accumulated(struct whatif_knobs *k, const char *value)
{
    return number(value, &k->accumulated_limit);
}

static const char *set_order(struct whatif_knobs *k, const char *value)
{
    static const char *const orders[] = {[ORDER_MRU] = "mru", [ORDER_FIFO] = "fifo", [ORDER_STATIC] = "static"};

    for (int i = ORDER_MRU; i <= ORDER_STATIC; i++)
        if (!strcmp(value, orders[i])) {
            k->order = (enum order_policy)i;
            return NULL;
        }
    return "not an order: mru, fifo or static";
}

static const char *set_isolate(struct whatif_knobs *k, const char *value)
{
    k->isolate = !strcmp(value, "region");
    return k->isolate ? NULL : "isolate by what? isolate=region";
}

static const char *set_backend_shared(struct whatif_knobs *k, const char *value)
{
    k->backends_apart = !strcmp(value, "no");
    return k->backends_apart || !strcmp(value, "yes") ? NULL : "backend_shared is yes or no";
}

/* "L['x'][0]", "x[0]", "x": the source, and the dimension if one is given; also "L['x'].size()[0]". */
static const char *set_dynamic(struct whatif_knobs *k, const char *value)
{
    size_t bytes = strlen(value);
    const char *open = bytes && value[bytes - 1] == ']' ? strrchr(value, '[') : NULL;
    struct whatif_dimension *d;

    k->dynamic_all = k->dynamic_all || !strcmp(value, "all");
    if (!strcmp(value, "all"))
        return NULL;
    if (!bytes)
        return "of what? A source and a dimension, L['x'][0], or all";
    if (!(d = list_add(&k->dynamic)))
        return "out of memory";
    d->dimension = -1;
    if (open && open > value && open[1] >= '0' && open[1] <= '9' && open[1 + strspn(open + 1, "0123456789")] == ']') {
        d->dimension = atoi(open + 1);
        bytes = (size_t)(open - value);
        if (bytes >= 7 && !strncmp(open - 7, ".size()", 7))
            bytes -= 7;
    }
    d->source = arena_text(&k->texts, value, bytes);
    return d->source ? NULL : "out of memory";
}

static const char *set_drop(struct whatif_knobs *k, const char *value)
{
    const char **drop = *value ? list_add(&k->drops) : NULL;

    if (!*value)
        return "which? A guard's id, or a kind such as TENSOR_MATCH";
    if (drop)
        *drop = arena_text(&k->texts, value, strlen(value));
    return drop && *drop ? NULL : "out of memory";
}

static const struct {
    const char *name;
    const char *(*set)(struct whatif_knobs *knobs, const char *value);
    const char *unchanged; /* the value that changes nothing, or NULL */
} table[] = {
    {"recompile_limit", set_limit, NULL}, {"accumulated_limit", set_accumulated, NULL}, {"order", set_order, "mru"},
    {"isolate", set_isolate, NULL},       {"backend_shared", set_backend_shared, "yes"}, {"dynamic", set_dynamic, NULL},
    {"drop_guard", set_drop, NULL},
};
#define NAMES "recompile_limit, accumulated_limit, order, isolate, backend_shared, dynamic, drop_guard; or best"

/* ---- several --------------------------------------------------------------- */

/* TEXT is one, and may be changed. */
static bool knob(struct whatif_knobs *k, char *text)
{
    char *value = strchr(text, '='), *all;
    const char *wrong;
    size_t i = 0;

    if (!value)
        return refuse(text, "not KEY=VALUE: " NAMES);
    *value++ = 0;
    while (i < sizeof table / sizeof *table && strcmp(text, table[i].name))
        i++;
    if (i == sizeof table / sizeof *table)
        return refuse(text, "no such setting: " NAMES);
    wrong = table[i].set(k, value);
    value[-1] = '=';
    if (wrong)
        return refuse(text, wrong);
    if (table[i].unchanged && !strcmp(value, table[i].unchanged))
        return true;
    if (asprintf(&all, "%s%s%s", k->text ? k->text : "", k->text ? "," : "", text) < 0)
        return refuse(text, "out of memory");
    free(k->text);
    k->text = all;
    return true;
}

bool whatif_knob(struct whatif_knobs *k, const char *text)
{
    char *copy = strdup(text), *at = copy;
    bool ok = copy != NULL;

    while (ok && at) {
        char *end = at;
        int depth = 0;
        for (; *end && (depth > 0 || *end != ','); end++)
            depth += *end == '[' ? 1 : *end == ']' ? -1 : 0;
        if (*end)
            *end++ = 0;
        else
            end = NULL;
        ok = knob(k, at);
        at = end;
    }
    free(copy);
    return ok;
}

void whatif_knobs_free(struct whatif_knobs *k)
{
    free(k->text);
    list_free(&k->dynamic);
    list_free(&k->drops);
    arena_free(&k->texts);
    *k = (struct whatif_knobs){0};
}

/* Does SQL, with TEXT as its ?1, have a row? True on an error, which was said. */
static bool any_row(struct db *db, const char *sql, const char *text)
{
    struct query *query = db_query(db, sql);
    bool found;

    query_bind_text(query, 1, text);
    found = query_step(query);
    return !query_close(query) || found;
}

bool whatif_knobs_known(const struct whatif_knobs *k, struct db *db)
{
    for (size_t i = 0; i < k->dynamic.count; i++) {
        const char *source = k->dynamic.at[i].source;
        struct query *query;
        if (any_row(db, "SELECT 1 FROM guard WHERE source IN (?1, 'L[''' || ?1 || ''']') LIMIT 1", source))
            continue;
        query = db_query(db, "SELECT '; most recompiles come of ' || source FROM recompile_cause"
                             " WHERE source LIKE 'L[%' GROUP BY source ORDER BY COUNT(*) DESC, source LIMIT 1");
        say_error("what-if: dynamic=%s: no guard looks at that%s", source,
                  query_step(query) ? query_text(query, 0, NULL) : "");
        query_close(query);
        return false;
    }
    for (size_t i = 0; i < k->drops.count; i++)
        if (!any_row(db, "SELECT 1 FROM guard WHERE kind = ?1 OR CAST(guard_id AS TEXT) = ?1 LIMIT 1", k->drops.at[i]))
            return refuse(k->drops.at[i],
                          "no guard has that kind or id; `dyntrace replay --guards LABEL` lists an entry's");
    return !db_damaged(db);
}

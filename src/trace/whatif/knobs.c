/* trace/whatif/knobs.c -- the settings of a what-if as they are typed. See trace/whatif/whatif.h.
 *
 * Runs in: the viewer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/say.h"
#include "trace/whatif/whatif.h"

static bool refuse(const char *text, const char *why)
{
    say_error("what-if: %s: %s", text, why);
    return false;
}

static bool number_of(const char *text, const char *key, int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || *end || errno || *value < 1 || *value > INT32_MAX) {
        say_error("what-if: %s=%s: not a number from 1 on", key, text);
        return false;
    }
    return true;
}

/* "L['x'][0]", "x[0]", "x": the source, and the dimension if one is given. */
static bool dynamic_of(struct whatif_knobs *knobs, const char *text)
{
    size_t bytes = strlen(text);
    struct whatif_dimension *d = &knobs->dynamic[knobs->dynamic_count];
    const char *open = bytes && text[bytes - 1] == ']' ? strrchr(text, '[') : NULL;

    if (!strcmp(text, "all")) {
        knobs->dynamic_all = true;
        return true;
    }
    if (!bytes)
        return refuse("dynamic=", "of what? A source and a dimension, L['x'][0], or all");
    if (knobs->dynamic_count == WHATIF_DYNAMIC)
        return refuse(text, "too many; dynamic=all is all of them");
    d->dimension = -1;
    if (open && open > text && open[1] >= '0' && open[1] <= '9' && open[1 + strspn(open + 1, "0123456789")] == ']') {
        d->dimension = atoi(open + 1);
        bytes = (size_t)(open - text);
        if (bytes >= 7 && !strncmp(text + bytes - 7, ".size()", 7)) /* as causes say it */
            bytes -= 7;
    }
    d->source = strndup(text, bytes);
    knobs->dynamic_count += d->source != NULL;
    return d->source || refuse(text, "out of memory");
}

static bool knob(struct whatif_knobs *knobs, char *text)
{
    char *value = strchr(text, '=');

    if (!value)
        return refuse(text, "not KEY=VALUE: recompile_limit, accumulated_limit, order, isolate, backend_shared, "
                            "dynamic, drop_guard; or best");
    *value++ = 0;
    if (!strcmp(text, "recompile_limit"))
        return number_of(value, text, &knobs->recompile_limit);
    if (!strcmp(text, "accumulated_limit"))
        return number_of(value, text, &knobs->accumulated_limit);
    if (!strcmp(text, "dynamic"))
        return dynamic_of(knobs, value);
    if (!strcmp(text, "order")) {
        knobs->order = !strcmp(value, "fifo") ? ORDER_FIFO : !strcmp(value, "static") ? ORDER_STATIC : ORDER_MRU;
        return knobs->order != ORDER_MRU || !strcmp(value, "mru") || refuse(value, "not an order: mru, fifo or static");
    }
    if (!strcmp(text, "isolate")) {
        knobs->isolate = !strcmp(value, "region");
        return knobs->isolate || refuse(value, "isolate by what? isolate=region");
    }
    if (!strcmp(text, "backend_shared")) {
        knobs->backends_apart = !strcmp(value, "no");
        return knobs->backends_apart || !strcmp(value, "yes") || refuse(value, "backend_shared is yes or no");
    }
    if (!strcmp(text, "drop_guard")) {
        if (!*value || knobs->drop_count == WHATIF_DROPS)
            return refuse("drop_guard", *value ? "too many" : "which? A guard's id, or a kind such as TENSOR_MATCH");
        knobs->drops[knobs->drop_count] = strdup(value);
        knobs->drop_count += knobs->drops[knobs->drop_count] != NULL;
        return true;
    }
    return refuse(text, "no such setting: recompile_limit, accumulated_limit, order, isolate, backend_shared, dynamic, "
                        "drop_guard; or best");
}

bool whatif_knob(struct whatif_knobs *knobs, const char *text)
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
        ok = knob(knobs, at);
        at = end;
    }
    free(copy);
    return ok;
}

void whatif_knobs_free(struct whatif_knobs *knobs)
{
    for (int i = 0; i < knobs->dynamic_count; i++)
        free(knobs->dynamic[i].source);
    for (int i = 0; i < knobs->drop_count; i++)
        free(knobs->drops[i]);
    *knobs = (struct whatif_knobs){0};
}

char *whatif_knobs_text(const struct whatif_knobs *k)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    if (k->recompile_limit)
        fprintf(out, ",recompile_limit=%" PRId64, k->recompile_limit);
    if (k->accumulated_limit)
        fprintf(out, ",accumulated_limit=%" PRId64, k->accumulated_limit);
    if (k->order != ORDER_MRU)
        fprintf(out, ",order=%s", k->order == ORDER_FIFO ? "fifo" : "static");
    if (k->isolate)
        fputs(",isolate=region", out);
    if (k->backends_apart)
        fputs(",backend_shared=no", out);
    if (k->dynamic_all)
        fputs(",dynamic=all", out);
    for (int i = 0; i < k->dynamic_count; i++) {
        fprintf(out, ",dynamic=%s", k->dynamic[i].source);
        if (k->dynamic[i].dimension >= 0)
            fprintf(out, "[%d]", k->dynamic[i].dimension);
    }
    for (int i = 0; i < k->drop_count; i++)
        fprintf(out, ",drop_guard=%s", k->drops[i]);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    if (text && *text)
        memmove(text, text + 1, strlen(text));
    return text;
}

/* Does SQL, with TEXT as its ?1, have a row? */
static bool any_row(struct db *db, const char *sql, const char *text, bool *failed)
{
    struct query *query = db_query(db, sql);
    bool found;

    query_bind_text(query, 1, text);
    found = query_step(query);
    *failed = !query_close(query) || *failed;
    return found;
}

bool whatif_knobs_known(const struct whatif_knobs *k, struct db *db)
{
    bool failed = false;

    for (int i = 0; i < k->dynamic_count && !failed; i++) {
        const char *source = k->dynamic[i].source;
        struct query *query;
        if (any_row(db, "SELECT 1 FROM guard WHERE source IN (?1, 'L[''' || ?1 || ''']') LIMIT 1", source, &failed) ||
            failed)
            continue;
        query = db_query(db, "SELECT source FROM recompile_cause WHERE source LIKE 'L[%' GROUP BY source ORDER BY "
                             "COUNT(*) DESC, source LIMIT 1");
        if (query_step(query))
            say_error("what-if: dynamic=%s: no guard looks at that; most recompiles come of %s", source,
                      query_text(query, 0, NULL));
        else
            say_error("what-if: dynamic=%s: no guard looks at that", source);
        query_close(query);
        return false;
    }
    for (int i = 0; i < k->drop_count && !failed; i++)
        if (!any_row(db, "SELECT 1 FROM guard WHERE kind = ?1 OR CAST(guard_id AS TEXT) = ?1 LIMIT 1", k->drops[i],
                     &failed) &&
            !failed)
            return refuse(k->drops[i],
                          "no guard has that kind or id; `dyntrace replay --guards LABEL` lists an entry's");
    return !failed;
}

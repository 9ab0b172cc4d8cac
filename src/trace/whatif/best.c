/* trace/whatif/best.c -- the smallest change of settings that removes most recompiles. See trace/whatif/whatif.h.
 *
 * Runs in: the viewer.
 *
 * Sizes first: each one that decided a recompile is tried as a dynamic dimension, the one that removes most is kept,
 * then the next beside it, while that still helps. Then the limit: doubled until no call runs as Python because of
 * it, and taken back to the least number that does so. Each try decides all calls again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/db.h"
#include "replay.h"
#include "lib/say.h"
#include "trace/whatif/whatif.h"

enum { CANDIDATES = 24, STEPS = 4, LIMIT_MAX = 128 /* more entries than that are no help */ };

/* The settings that make dynamic what decided most recompiles; *COUNT of them. */
static bool candidates_of(struct db *db, char **made, int *count)
{
    struct query *query = db_query(db, "SELECT " CAUSE_COLUMNS " FROM recompile_cause r WHERE r.aspect IN ('size', 'value')"
                                       " AND r.source LIKE 'L[%' GROUP BY r.source, r.aspect, r.dimension"
                                       " ORDER BY COUNT(*) DESC, r.source LIMIT 100");

    *count = 0;
    while (query_step(query) && *count < CANDIDATES) {
        struct cause cause = cause_read(query, 0);
        char *setting = cause_setting(&cause);
        if (setting && !strncmp(setting, "dynamic=", 8))
            made[(*count)++] = setting;
        else
            free(setting);
        cause_free(&cause);
    }
    return query_close(query);
}

static bool knobs_copy(struct whatif_knobs *to, const struct whatif_knobs *from)
{
    char *text = whatif_knobs_text(from);
    bool ok = text && (!*text || whatif_knob(to, text));

    free(text);
    return ok;
}

/* What is bad in it: less is better. Guesses count for half a recompile. */
static int64_t badness(const struct whatif_result *r)
{
    return 2 * r->total.predicted.compiles + 2 * r->total.predicted.eager + r->total.undecided;
}

static bool try(struct whatif *w, const struct whatif_knobs *base, const char *more, int64_t *bad, int *tried)
{
    struct whatif_knobs knobs = {0};
    struct whatif_result result;
    bool ok = knobs_copy(&knobs, base) && whatif_knob(&knobs, more) && whatif_run(w, &knobs, &result);

    if (ok) {
        *bad = badness(&result);
        ++*tried;
        whatif_result_free(&result);
    }
    whatif_knobs_free(&knobs);
    return ok;
}

static bool best_dimensions(struct whatif *w, char **candidates, int count, struct whatif_knobs *best, int64_t *bad,
                            int *tried)
{
    for (int step = 0; step < STEPS; step++) {
        int64_t least = *bad, now;
        int found = -1;
        for (int i = 0; i < count; i++) {
            if (!candidates[i])
                continue;
            if (!try(w, best, candidates[i], &now, tried))
                return false;
            if (now < least) {
                least = now;
                found = i;
            }
        }
        if (found < 0)
            return true;
        if (!whatif_knob(best, candidates[found]))
            return false;
        free(candidates[found]);
        candidates[found] = NULL;
        *bad = least;
    }
    return true;
}

/* The least limit under which as few calls run as Python as under any. */
static bool best_limit(struct whatif *w, struct whatif_knobs *best, int64_t *bad, int *tried)
{
    int64_t low = 0, high = 2, now, least = *bad;
    char text[48];

    for (; high <= LIMIT_MAX; high *= 2) {
        snprintf(text, sizeof text, "recompile_limit=%" PRId64, high);
        if (!try(w, best, text, &now, tried))
            return false;
        if (now < least)
            least = now, low = high;
        else if (low)
            break;
    }
    if (!low)
        return true;
    for (int64_t from = low / 2; from + 1 < low;) {
        int64_t middle = from + (low - from) / 2;
        snprintf(text, sizeof text, "recompile_limit=%" PRId64, middle);
        if (!try(w, best, text, &now, tried))
            return false;
        if (now <= least)
            low = middle;
        else
            from = middle;
    }
    best->recompile_limit = low;
    *bad = least;
    return true;
}

bool whatif_best(struct whatif *w, struct db *db, struct whatif_knobs *best, struct whatif_result *result, int *tried)
{
    char *candidates[CANDIDATES] = {NULL};
    int count = 0;
    int64_t bad;
    bool ok;

    *best = (struct whatif_knobs){0};
    *tried = 0;
    ok = candidates_of(db, candidates, &count) && whatif_run(w, best, result);
    if (ok) {
        bad = badness(result);
        ok = best_dimensions(w, candidates, count, best, &bad, tried);
        if (ok && result->total.recorded.eager)
            ok = best_limit(w, best, &bad, tried);
        whatif_result_free(result);
        ok = ok && whatif_run(w, best, result);
    }
    for (int i = 0; i < count; i++)
        free(candidates[i]);
    if (!ok)
        whatif_knobs_free(best);
    return ok;
}

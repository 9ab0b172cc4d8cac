/* trace/whatif/best.c -- a what-if as it is typed: settings, or the smallest change that removes most recompiles. See
 * trace/whatif/whatif.h.
 *
 * Runs in: the viewer.
 *
 * Sizes first: each one that decided a recompile is tried as a dynamic dimension, the one that removes most is kept,
 * then the next beside it, while that still helps. Then the limit: doubled until no call runs as Python because of
 * it, and taken back to the least number that does so. Each try decides all calls again. */
#include <inttypes.h>

#include "replay.h"
#include "trace/cause.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/say.h"
#include "trace/whatif/whatif.h"

enum { CANDIDATES = 24, STEPS = 4, LIMIT_MAX = 128 /* more entries than that are no help */ };

/* The settings that make dynamic what decided most recompiles; *COUNT of them. */
static bool candidates_of(struct db *db, char **made, int *count)
{
    struct query *query = db_query(db, "SELECT " CAUSE_COLUMNS " FROM recompile_cause r"
                                       " WHERE r.aspect IN ('size', 'value') AND r.source LIKE 'L[%'"
                                       " GROUP BY r.source, r.aspect, r.dimension"
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

/* What is bad in it: less is better. Guesses count for half a recompile. */
static int64_t badness(const struct whatif_result *r)
{
    return 2 * r->total.predicted.compiles + 2 * r->total.predicted.eager + r->total.undecided;
}

static bool try(struct whatif *w, const struct whatif_knobs *base, const char *more, int64_t *bad, int *tried)
{
    struct whatif_knobs knobs = {.codes = base->codes};
    struct whatif_result result;
    bool ok = (!base->text || whatif_knob(&knobs, base->text)) && whatif_knob(&knobs, more) &&
              whatif_run(w, &knobs, &result);

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
    snprintf(text, sizeof text, "recompile_limit=%" PRId64, low);
    *bad = least;
    return whatif_knob(best, text);
}

/* The smallest change, tried one after the other, and what it gives. BEST is empty when nothing helps. *TRIED is how
 * many were. */
static bool best_of(struct whatif *w, struct db *db, struct whatif_knobs *best, struct whatif_result *result,
                    int *tried)
{
    char *candidates[CANDIDATES] = {NULL};
    int count = 0;
    int64_t bad;
    bool ok;

    *best = (struct whatif_knobs){.codes = best->codes};
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

/* ---- as it is typed -------------------------------------------------------- */

/* The codes of FUNCTION into KNOBS, an array of ANSWER's. */
static bool meant(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    struct found_code found;

    if (!asked->function)
        return true;
    if (find_code(asked->db, asked->function, &found, asked->out, asked->json) != FIND_ONE)
        return false;
    answer->knobs.codes = answer->codes = replay_codes(asked->replay, found.ids);
    found_code_free(&found);
    return answer->codes;
}

bool whatif_ask(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    bool best = asked->count == 1 && !strcmp(asked->settings[0], "best"), ok = true;
    struct whatif *w = NULL;

    *answer = (struct whatif_answer){.tried = -1};
    for (int i = 0; i < asked->count && ok && !best; i++)
        if (!strcmp(asked->settings[i], "best")) {
            say_error("what-if: best stands alone: it looks for the settings");
            ok = false;
        } else {
            ok = whatif_knob(&answer->knobs, asked->settings[i]);
        }
    ok = ok && whatif_knobs_known(&answer->knobs, asked->db) && meant(asked, answer) &&
         (w = whatif_open(asked->db, asked->replay));
    if (ok)
        ok = best ? best_of(w, asked->db, &answer->knobs, &answer->result, &answer->tried)
                  : whatif_run(w, &answer->knobs, &answer->result);
    whatif_free(w);
    return ok;
}

void whatif_answer_free(struct whatif_answer *answer)
{
    whatif_result_free(&answer->result);
    whatif_knobs_free(&answer->knobs);
    free(answer->codes);
    answer->codes = NULL;
}

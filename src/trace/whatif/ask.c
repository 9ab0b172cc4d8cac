/* trace/whatif/ask.c -- a what-if as it is typed: settings, or the smallest change that removes most recompiles. See
 * trace/whatif/whatif.h.
 *
 * Runs in: the viewer.
 *
 * The smallest change: sizes first. Each one that decided a recompile is tried as a dynamic dimension, the one that
 * removes most is kept, then the next beside it, while that still helps. Then the limit: doubled until no call runs as
 * Python because of it, and taken back to the least number that does so. Each try decides all calls again. */
#include <errno.h>
#include <inttypes.h>

#include "lib/say.h"
#include "replay.h"
#include "schema.h"
#include "trace/cause.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/whatif/whatif.h"

enum { CANDIDATES = 24, STEPS = 4, LIMIT_MAX = 128 /* more entries than that are no help */ };

/* ---- settings -------------------------------------------------------------- */

static bool refuse(const char *text, const char *why)
{
    say_error("what-if: %s: %s", text, why);
    return false;
}

/* "L['x'][0]", "x[0]", "x": the source, and the dimension if one is given; also "L['x'].size()[0]". */
static bool add_dynamic(struct whatif_knobs *k, const char *value)
{
    size_t bytes = strlen(value);
    const char *open = bytes && value[bytes - 1] == ']' ? strrchr(value, '[') : NULL;
    struct whatif_dimension made = {.dimension = -1};

    if (!strcmp(value, "all"))
        return k->dynamic_all = true;
    if (open && open > value && open[1] >= '0' && open[1] <= '9' && open[1 + strspn(open + 1, "0123456789")] == ']') {
        made.dimension = atoi(open + 1);
        bytes = (size_t)(open - value);
        if (bytes >= 7 && !strncmp(open - 7, ".size()", 7))
            bytes -= 7;
    }
    made.source = arena_print(&k->texts, memchr(value, '[', bytes) ? "%.*s" : "L['%.*s']", (int)bytes, value);
    *list_add(&k->dynamic) = made;
    return *value;
}

static bool add_drop(struct whatif_knobs *k, const char *value)
{
    *list_add(&k->drops) = arena_text(&k->texts, value, strlen(value));
    return *value;
}

static const struct setting {
    const char *name, *refused; /* what is said of a value that it does not take */
    size_t at;                  /* in the knobs: an int64_t from 1 on, or with WORDS an int, the place of the word */
    const char *words[4];       /* the first changes nothing */
    bool (*add)(struct whatif_knobs *knobs, const char *value);
} table[] = {
    {"recompile_limit", "not a number from 1 on", .at = offsetof(struct whatif_knobs, recompile_limit)},
    {"accumulated_limit", "not a number from 1 on", .at = offsetof(struct whatif_knobs, accumulated_limit)},
    {"order", "not an order: mru, fifo or static", .at = offsetof(struct whatif_knobs, order),
     .words = {[ORDER_MRU] = "mru", [ORDER_FIFO] = "fifo", [ORDER_STATIC] = "static"}},
    {"isolate", "isolate by what? isolate=region", .at = offsetof(struct whatif_knobs, isolate), .words = {"no", "region"}},
    {"backend_shared", "backend_shared is yes or no", .at = offsetof(struct whatif_knobs, backends_apart),
     .words = {"yes", "no"}},
    {"dynamic", "of what? A source and a dimension, L['x'][0], or all", .add = add_dynamic},
    {"drop_guard", "which? A guard's id, or a kind such as TENSOR_MATCH", .add = add_drop},
};
#define NAMES "recompile_limit, accumulated_limit, order, isolate, backend_shared, dynamic, drop_guard; or best"

/* False: S does not take VALUE. */
static bool setting_take(struct whatif_knobs *k, const struct setting *s, const char *value)
{
    void *at = (char *)k + s->at;
    char *end;

    if (s->add)
        return s->add(k, value);
    if (!s->words[0]) {
        int64_t number = strtoll(value, &end, 10); /* the most of all on overflow */
        *(int64_t *)at = number;
        return end > value && !*end && number >= 1 && number <= INT32_MAX;
    }
    for (int i = 0; s->words[i]; i++)
        if (!strcmp(value, s->words[i])) {
            *(int *)at = i;
            return true;
        }
    return false;
}

/* TEXT is one, and may be changed. */
static bool knob(struct whatif_knobs *k, char *text)
{
    char *value = strchr(text, '='), *before = k->text;
    const struct setting *s = table, *end = table + sizeof table / sizeof *table;
    bool taken;

    if (!value)
        return refuse(text, "not KEY=VALUE: " NAMES);
    *value++ = 0;
    while (s < end && strcmp(text, s->name))
        s++;
    if (s == end)
        return refuse(text, "no such setting: " NAMES);
    taken = setting_take(k, s, value);
    value[-1] = '=';
    if (!taken)
        return refuse(text, s->refused);
    if (!s->words[0] || strcmp(value, s->words[0])) {
        k->text = say_print("%s%s%s", before ? before : "", before ? "," : "", text);
        free(before);
    }
    return true;
}

bool whatif_knob(struct whatif_knobs *k, const char *text)
{
    char *copy = strdup(text), *at = copy;
    bool ok = true;

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

/* Does STATEMENT, with TEXT as its ?1, have a row? */
static bool any_row(struct db *db, const char *statement, const char *text)
{
    struct query *query = db_query(db, schema_statement(statement));
    bool found;

    query_bind_text(query, 1, text);
    found = query_step(query);
    query_close(query);
    return found;
}

/* Does DB have what K names, sources and guards? False: it was said what it lacks. */
static bool knobs_known(const struct whatif_knobs *k, struct db *db)
{
    for (size_t i = 0; i < k->dynamic.count; i++) {
        const char *source = k->dynamic.at[i].source;
        struct query *query;
        if (any_row(db, "whatif/source-known", source))
            continue;
        query = db_query(db, schema_statement("whatif/main-source"));
        say_error("what-if: dynamic=%s: no guard looks at that%s", source,
                  query_step(query) ? query_text(query, 0, NULL) : "");
        query_close(query);
        return false;
    }
    for (size_t i = 0; i < k->drops.count; i++)
        if (!any_row(db, "whatif/guard-known", k->drops.at[i]))
            return refuse(k->drops.at[i],
                          "no guard has that kind or id; `dyntrace replay --guards LABEL` lists an entry's");
    return true;
}

/* ---- the smallest change --------------------------------------------------- */

struct search {
    struct whatif *w;          /* borrowed */
    struct whatif_knobs *best; /* borrowed: what was kept so far */
    int64_t bad;               /* what comes of it */
    int tried;
};

/* What is bad in it: less is better. Guesses count for half a recompile. */
static int64_t badness(const struct whatif_result *r)
{
    return 2 * r->total.predicted.compiles + 2 * r->total.predicted.eager + r->total.undecided;
}

/* How bad it would be with the setting MORE as well. */
static int64_t try(struct search *s, const char *more)
{
    struct whatif_knobs knobs = {.codes = s->best->codes};
    struct whatif_result result;
    int64_t bad;

    if (s->best->text)
        whatif_knob(&knobs, s->best->text);
    whatif_knob(&knobs, more);
    whatif_run(s->w, &knobs, &result);
    bad = badness(&result);
    s->tried++;
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
    return bad;
}

static void best_dimensions(struct search *s, char **candidates, int count)
{
    for (int step = 0; step < STEPS; step++) {
        int64_t least = s->bad;
        int found = -1;
        for (int i = 0; i < count; i++) {
            int64_t now = candidates[i] ? try(s, candidates[i]) : least;
            if (now < least) {
                least = now;
                found = i;
            }
        }
        if (found < 0)
            return;
        whatif_knob(s->best, candidates[found]);
        free(candidates[found]);
        candidates[found] = NULL;
        s->bad = least;
    }
}

static int64_t try_limit(struct search *s, int64_t limit)
{
    char text[48];

    snprintf(text, sizeof text, "recompile_limit=%" PRId64, limit);
    return try(s, text);
}

/* The least limit under which as few calls run as Python as under any. */
static void best_limit(struct search *s)
{
    int64_t low = 0, least = s->bad;
    char text[48];

    for (int64_t high = 2; high <= LIMIT_MAX; high *= 2) {
        int64_t now = try_limit(s, high);
        if (now < least)
            least = now, low = high;
        else if (low)
            break;
    }
    if (!low)
        return;
    for (int64_t from = low / 2; from + 1 < low;) {
        int64_t middle = from + (low - from) / 2;
        if (try_limit(s, middle) <= least)
            low = middle;
        else
            from = middle;
    }
    snprintf(text, sizeof text, "recompile_limit=%" PRId64, low);
    whatif_knob(s->best, text);
}

/* The settings that make dynamic what decided most recompiles, which the caller frees; how many. */
static int candidates_of(struct db *db, char **made)
{
    struct query *query = db_query(db, schema_statement("whatif/candidates"));
    int count = 0;

    while (query_step(query) && count < CANDIDATES) {
        struct cause cause = cause_read(query, 0);
        char *setting = cause_setting(&cause);
        if (setting && !strncmp(setting, "dynamic=", 8))
            made[count++] = setting;
        else
            free(setting);
        cause_free(&cause);
    }
    query_close(query);
    return count;
}

/* The smallest change, tried one after the other, into ANSWER; without settings when nothing helps. */
static void best_of(struct whatif *w, struct db *db, struct whatif_answer *answer)
{
    struct search search = {.w = w, .best = &answer->knobs};
    char *candidates[CANDIDATES] = {NULL};
    int count = candidates_of(db, candidates);

    whatif_run(w, &answer->knobs, &answer->result);
    search.bad = badness(&answer->result);
    best_dimensions(&search, candidates, count);
    if (answer->result.total.recorded.eager)
        best_limit(&search);
    whatif_result_free(&answer->result);
    whatif_run(w, &answer->knobs, &answer->result);
    answer->tried = search.tried;
    for (int i = 0; i < count; i++)
        free(candidates[i]);
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
    return true;
}

bool whatif_ask(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    bool best = asked->count == 1 && !strcmp(asked->settings[0], "best");
    struct whatif *w;

    *answer = (struct whatif_answer){.tried = -1};
    for (int i = 0; i < asked->count && !best; i++)
        if (!strcmp(asked->settings[i], "best"))
            return refuse("best", "it stands alone: it looks for the settings");
        else if (!whatif_knob(&answer->knobs, asked->settings[i]))
            return false;
    if (!knobs_known(&answer->knobs, asked->db) || !meant(asked, answer))
        return false;
    w = whatif_open(asked->db, asked->replay);
    if (best)
        best_of(w, asked->db, answer);
    else
        whatif_run(w, &answer->knobs, &answer->result);
    whatif_free(w);
    return !db_failed(asked->db);
}

void whatif_answer_free(struct whatif_answer *answer)
{
    whatif_result_free(&answer->result);
    whatif_knobs_free(&answer->knobs);
    free(answer->codes);
}

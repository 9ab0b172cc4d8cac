/* trace/whatif/ask.c -- reads a what-if as the user typed it, and answers it. See
 * trace/whatif/whatif.h.
 *
 * A what-if is a list of settings, or "best": the smallest change that removes most recompiles. The
 * search for the best change begins with sizes that caused recompiles. It makes each of these sizes
 * dynamic in turn, keeps the one that removes most recompiles, and goes on with the other sizes as
 * long as one of them helps. Then the search doubles the limit until a higher limit does not help,
 * and looks for the least limit with the same effect. Each attempt simulates all calls, and is kept
 * only if its upper bound is lower. Settings that are only predicted to be better go to
 * `unproven`. */
#include <inttypes.h>

#include "lib/say.h"
#include "replay.h"
#include "schema.h"
#include "trace/cause_read.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/whatif/whatif.h"

/* the highest limit that the what-if "best" tries */
enum { CANDIDATES = 24, STEPS = 4, LIMIT_MAX = 128 };

/* ---- reading the settings that the user typed ---------------------------- */

static bool report_error(const char *text, const char *why)
{
    say_error("what-if: %s: %s", text, why);
    return false;
}

/* Return the dimension at the end of VALUE: "[0]" of "x[0]". Returns NULL if VALUE
 * has no dimension. */
static const char *find_dimension(const char *value)
{
    const char *open = strrchr(value, '[');
    size_t digits = open ? strspn(open + 1, "0123456789") : 0;

    if (!digits || open == value)
        return NULL;
    return strcmp(open + 1 + digits, "]") ? NULL : open;
}

/* Add the value of a setting `dynamic=` to the settings. VALUE is a guard source, with a dimension
 * or without ("L['x'][0]", "x[0]", "x", "L['x'].size()[0]"), or "all". */
static bool add_dynamic(struct whatif_knobs *k, const char *value)
{
    size_t bytes = strlen(value);
    const char *open = find_dimension(value);
    struct whatif_dimension made = {.dimension = -1};
    const char *format;

    if (!strcmp(value, "all")) {
        k->dynamic_all = true;
        return true;
    }
    if (open) {
        made.dimension = atoi(open + 1);
        bytes = (size_t)(open - value);
        if (bytes >= 7 && !strncmp(open - 7, ".size()", 7))
            bytes -= 7;
    }
    format = memchr(value, '[', bytes) ? "%.*s" : "L['%.*s']";
    made.source = arena_print(&k->texts, format, (int)bytes, value);
    *list_add(&k->dynamic) = made;
    return *value;
}

static bool add_dropped_guard(struct whatif_knobs *k, const char *value)
{
    *list_add(&k->drops) = arena_text(&k->texts, value, strlen(value));
    return *value;
}

static const struct setting {
    /* name of the setting, and the error message for a value that is not allowed */
    const char *name, *refused;
    /* offset of the setting's member in struct whatif_knobs. The member is an int64_t of at least 1
     * or, if the setting has `words`, an int: the index of the word that was typed */
    size_t at;
    const char *words[4]; /* the words that the setting accepts; the first one changes nothing */
    bool (*add)(struct whatif_knobs *knobs, const char *value);
} table[] = {
    {"recompile_limit", "not a number from 1 on",
     .at = offsetof(struct whatif_knobs, recompile_limit)},
    {"accumulated_limit", "not a number from 1 on",
     .at = offsetof(struct whatif_knobs, accumulated_limit)},
    {"isolate", "isolate by what? isolate=region", .at = offsetof(struct whatif_knobs, isolate),
     .words = {"no", "region"}},
    {"backend_shared", "backend_shared is yes or no",
     .at = offsetof(struct whatif_knobs, backends_apart), .words = {"yes", "no"}},
    {"dynamic", "of what? A source and a dimension, L['x'][0], or all", .add = add_dynamic},
    {"drop_guard", "which? A guard's id, or a kind such as TENSOR_MATCH", .add = add_dropped_guard},
};
#define NAMES \
    "recompile_limit, accumulated_limit, isolate, backend_shared, dynamic, drop_guard; or best"

/* Read VALUE, an integer of at least 1, into *NUMBER. Returns false if VALUE is not one. */
static bool parse_number(const char *value, int64_t *number)
{
    char *end;

    *number = strtoll(value, &end, 10); /* strtoll() returns INT64_MAX if the number is too large */
    return end > value && !*end && *number >= 1 && *number <= INT32_MAX;
}

/* Give one setting the value VALUE. Returns false if the setting does not accept it. */
static bool apply_setting(struct whatif_knobs *k, const struct setting *s, const char *value)
{
    void *at = (char *)k + s->at;

    if (s->add)
        return s->add(k, value);
    if (!s->words[0])
        return parse_number(value, at);
    for (int i = 0; s->words[i]; i++)
        if (!strcmp(value, s->words[i])) {
            *(int *)at = i;
            return true;
        }
    return false;
}

static const struct setting *find_setting(const char *name)
{
    for (size_t i = 0; i < array_count(table); i++)
        if (!strcmp(name, table[i].name))
            return &table[i];
    return NULL;
}

/* Append TEXT, "KEY=VALUE", to the text of all settings. */
static void append_setting_text(struct whatif_knobs *k, const char *text)
{
    char *before = k->text;

    if (before)
        k->text = say_print("%s,%s", before, text);
    else
        k->text = say_print("%s", text);
    free(before);
}

/* Read TEXT, one setting KEY=VALUE. TEXT is changed meanwhile, and then restored. Returns false
 * after reporting an error. */
static bool read_setting(struct whatif_knobs *k, char *text)
{
    char *equal = strchr(text, '=');
    const char *value;
    const struct setting *s;
    bool taken, again;
    unsigned bit;

    if (!equal)
        return report_error(text, "not KEY=VALUE: " NAMES);
    *equal = 0;
    value = equal + 1;
    s = find_setting(text);
    if (!s)
        return report_error(text, "no such setting: " NAMES);
    bit = 1u << (s - table);
    again = !s->add && k->given & bit;
    k->given |= bit;
    taken = apply_setting(k, s, value);
    *equal = '=';
    if (again)
        return report_error(text, "it is set already: one setting has one value");
    if (!taken)
        return report_error(text, s->refused);
    if (!s->words[0] || strcmp(value, s->words[0]))
        append_setting_text(k, text);
    return true;
}

/* Return the first comma in TEXT that is outside brackets, or the end of TEXT. */
static char *find_setting_end(char *text)
{
    int depth = 0;

    for (; *text; text++) {
        if (*text == ',' && depth <= 0)
            break;
        depth += *text == '[';
        depth -= *text == ']';
    }
    return text;
}

bool whatif_read_setting(struct whatif_knobs *k, const char *text)
{
    char *copy = strdup(text);
    char *at = copy;
    bool more = true;
    bool ok = true;

    while (ok && more) {
        char *end = find_setting_end(at);
        more = *end;
        *end = 0;
        ok = read_setting(k, at);
        at = end + 1;
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

/* Does the trace have the source or guard NAME? If not, report the message that STATEMENT
 * ("whatif/unknown-...") selects. It begins with the setting as it was typed: KEY and NAME. */
static bool is_name_in_trace(struct db *db, const char *statement, const char *key,
                             const char *name)
{
    struct query *query = db_query(db, schema_statement(statement));
    bool unknown;

    query_bind_text(query, 1, name);
    unknown = query_step(query);
    if (unknown)
        say_error("what-if: %s%s: %s", key, name, query_text(query, 0, NULL));
    query_close(query);
    return !unknown;
}

/* Does the trace have all sources and guards that the settings name? Returns false after
 * reporting an error. */
static bool are_knobs_in_trace(const struct whatif_knobs *k, struct db *db)
{
    bool ok = true;

    for (size_t i = 0; ok && i < k->dynamic.count; i++)
        ok = is_name_in_trace(db, "whatif/unknown-source", "dynamic=", k->dynamic.at[i].source);
    for (size_t i = 0; ok && i < k->drops.count; i++)
        ok = is_name_in_trace(db, "whatif/unknown-guard", "", k->drops.at[i]);
    return ok;
}

/* ---- "best": the search for the smallest change -------------------------- */

struct search {
    struct whatif *w; /* borrowed */
    /* borrowed: the settings that were kept so far; its arena also holds the texts of settings
     * that were tried */
    struct whatif_knobs *best;
    int64_t bad; /* the result of compute_badness() for the settings that were kept so far */
    /* if true, results are compared by the predicted counts, otherwise by the
     * proven upper bounds */
    bool guess;
    int tried;
};

/* Return how bad a result is: its number of compiles and of calls that run as Python. If GUESS,
 * these are the predicted numbers. Otherwise they are upper bounds, which hold whatever the
 * undecided calls do. */
static int64_t compute_badness(const struct whatif_result *r, bool guess)
{
    const struct whatif_function *all = &r->total;
    int64_t compiles = all->compiles.high;
    int64_t eager = all->eager.high;

    if (guess)
        return all->predicted.compiles + all->predicted.eager + all->unrecorded;
    if (compiles == WHATIF_NO_BOUND || eager == WHATIF_NO_BOUND)
        return INT64_MAX;
    return compiles + eager;
}

/* Simulate the calls under the settings that were kept so far and, unless it is NULL, the setting
 * MORE. Returns compute_badness() of the result. */
static int64_t try_setting(struct search *s, const char *more)
{
    struct whatif_knobs knobs = {.codes = s->best->codes};
    struct whatif_result result;
    int64_t bad;

    if (s->best->text)
        whatif_read_setting(&knobs, s->best->text);
    if (more)
        whatif_read_setting(&knobs, more);
    whatif_run(s->w, &knobs, &result);
    bad = compute_badness(&result, s->guess);
    s->tried++;
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
    return bad;
}

/* Store settings in SETTINGS: for each size that caused a recompile one that makes the size
 * dynamic. The size that caused most recompiles is the first. Returns the number of settings. */
static int find_candidates(struct search *s, struct db *db, const char *settings[CANDIDATES])
{
    int count = 0;

    db_rows(row, db, schema_statement("whatif/candidates"))
    {
        struct cause cause;
        char *setting;
        bool known;
        if (count == CANDIDATES)
            continue;
        cause = cause_read(row, 0);
        setting = arena_keep(&s->best->texts, cause_make_setting(&cause));
        known = !setting || (s->best->text && strstr(s->best->text, setting));
        if (!known && !strncmp(setting, "dynamic=", 8))
            settings[count++] = setting;
    }
    return count;
}

/* Keep the setting of SETTINGS that helps most, and remove it from the array. Returns false if no
 * setting helps. */
static bool keep_best_setting(struct search *s, const char *settings[], int count)
{
    int64_t least = s->bad;
    int found = -1;

    for (int i = 0; i < count; i++) {
        int64_t now = settings[i] ? try_setting(s, settings[i]) : least;
        if (now < least) {
            least = now;
            found = i;
        }
    }
    if (found < 0)
        return false;
    whatif_read_setting(s->best, settings[found]);
    settings[found] = NULL;
    s->bad = least;
    return true;
}

/* Make sizes that caused recompiles dynamic, the most helpful size first, until no
 * other size helps. */
static void search_dimensions(struct search *s, struct db *db)
{
    const char *settings[CANDIDATES];
    int count = find_candidates(s, db, settings);

    for (int step = 0; step < STEPS; step++)
        if (!keep_best_setting(s, settings, count))
            return;
}

static const char *make_limit_setting(struct search *s, int64_t limit)
{
    return arena_print(&s->best->texts, "recompile_limit=%" PRId64, limit);
}

/* Keep the least limit under which the result is as good as under any higher limit. */
static void search_limit(struct search *s)
{
    int64_t low = 0;
    int64_t least = s->bad;
    int64_t from;

    for (int64_t high = 2; high <= LIMIT_MAX; high *= 2) {
        int64_t now = try_setting(s, make_limit_setting(s, high));
        if (now < least) {
            least = now;
            low = high;
        } else if (low) {
            break;
        }
    }
    if (!low)
        return;
    from = low / 2;
    while (from + 1 < low) {
        int64_t middle = from + (low - from) / 2;
        if (try_setting(s, make_limit_setting(s, middle)) <= least)
            low = middle;
        else
            from = middle;
    }
    whatif_read_setting(s->best, make_limit_setting(s, low));
}

static void search_dimensions_and_limit(struct search *s, struct db *db, bool limits)
{
    search_dimensions(s, db);
    if (limits && !s->best->recompile_limit)
        search_limit(s);
}

/* Search for the smallest change and store its settings in ANSWER. If no change is proven to help,
 * ANSWER has no settings. Settings that are only predicted to help more are stored in
 * ANSWER->unproven. */
static void search_best(struct whatif *w, struct db *db, struct whatif_answer *answer)
{
    struct whatif_knobs more = {.codes = answer->knobs.codes};
    struct search proven = {.w = w, .best = &answer->knobs};
    struct search guess = {.w = w, .best = &more, .guess = true};
    struct whatif_tally recorded;
    bool limits;

    whatif_run(w, &answer->knobs, &answer->result);
    recorded = answer->result.total.recorded;
    whatif_result_free(&answer->result);
    proven.bad = recorded.compiles + recorded.eager;
    limits = recorded.eager;
    search_dimensions_and_limit(&proven, db, limits);
    if (answer->knobs.text)
        whatif_read_setting(&more, answer->knobs.text);
    guess.bad = try_setting(&guess, NULL);
    search_dimensions_and_limit(&guess, db, limits);
    if (more.text && !prose_are_texts_equal(more.text, answer->knobs.text))
        answer->unproven = say_print("%s", more.text);
    whatif_knobs_free(&more);
    whatif_run(w, &answer->knobs, &answer->result);
    answer->tried = proven.tried + guess.tried - 1;
}

/* ---- answering a what-if as the user typed it ---------------------------- */

/* Read the settings that the user typed into KNOBS. Returns false after reporting an error. */
static bool read_settings(const struct whatif_asked *asked, struct whatif_knobs *knobs)
{
    for (int i = 0; i < asked->count; i++) {
        const char *setting = asked->settings[i];
        if (!strcmp(setting, "best"))
            return report_error("best", "it stands alone: it looks for the settings");
        if (!whatif_read_setting(knobs, setting))
            return false;
    }
    return are_knobs_in_trace(knobs, asked->db);
}

/* Find the function that the user typed, and store its code objects in ANSWER. Returns false after
 * reporting an error. */
static bool find_function(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    struct found_code found;

    if (find_code(asked->db, asked->function, &found, asked->out, asked->json) != FIND_ONE)
        return false;
    answer->codes = replay_mark_codes(asked->replay, found.ids);
    answer->knobs.codes = answer->codes;
    found_code_free(&found);
    return true;
}

bool whatif_answer_typed(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    bool best = asked->count == 1 && !strcmp(asked->settings[0], "best");
    struct whatif *w;

    *answer = (struct whatif_answer){.tried = -1};
    if (!best && !read_settings(asked, &answer->knobs))
        return false;
    if (asked->function && !find_function(asked, answer))
        return false;
    w = whatif_open(asked->db, asked->replay);
    if (best)
        search_best(w, asked->db, answer);
    else
        whatif_run(w, &answer->knobs, &answer->result);
    whatif_free(w);
    if (db_was_interrupted(asked->db))
        say_error("what-if: cancelled");
    return !db_has_failed(asked->db) && !db_was_interrupted(asked->db);
}

void whatif_answer_free(struct whatif_answer *answer)
{
    whatif_result_free(&answer->result);
    whatif_knobs_free(&answer->knobs);
    free(answer->codes);
    free(answer->unproven);
}

/* trace/whatif/ask.c -- a what-if as it is typed, and its answer in words. See
 * trace/whatif/whatif.h.
 *
 * It is settings, or "best", the smallest change that removes most recompiles. Sizes come first:
 * each one that decided a recompile is tried as a dynamic dimension, the one that removes most is
 * kept, then the next beside it, while that still helps. Then the limit: doubled until no call runs
 * as Python because of it, and taken back to the least number that does so. Each try decides all
 * calls again, and is kept only if its upper bound is better. What is better by a guess is named
 * apart. */
#include <inttypes.h>

#include "lib/say.h"
#include "lib/table.h"
#include "replay.h"
#include "schema.h"
#include "trace/cause_read.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/whatif/whatif.h"

enum { CANDIDATES = 24, STEPS = 4, LIMIT_MAX = 128 /* more entries than that are no help */ };
enum { WIDTH = 70, LISTED = 20, NOTE_COLUMNS = 72 };

/* ---- settings ------------------------------------------------------------ */

static bool refuse(const char *text, const char *why)
{
    say_error("what-if: %s: %s", text, why);
    return false;
}

/* Where the "[0]" begins at the end of "x[0]"; NULL: VALUE has no dimension. */
static const char *dimension_of(const char *value)
{
    const char *open = strrchr(value, '[');
    size_t digits = open ? strspn(open + 1, "0123456789") : 0;

    if (!digits || open == value)
        return NULL;
    return strcmp(open + 1 + digits, "]") ? NULL : open;
}

/* "L['x'][0]", "x[0]", "x": the source, and the dimension if one is given; also "L['x'].size()[0]".
 * */
static bool add_dynamic(struct whatif_knobs *k, const char *value)
{
    size_t bytes = strlen(value);
    const char *open = dimension_of(value);
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

static bool add_drop(struct whatif_knobs *k, const char *value)
{
    *list_add(&k->drops) = arena_text(&k->texts, value, strlen(value));
    return *value;
}

static const struct setting {
    const char *name, *refused; /* what is said of a value that it does not take */
    /* in the knobs: an int64_t from 1 on, or with WORDS an int, the place of the word */
    size_t at;
    const char *words[4]; /* the first changes nothing */
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
    {"drop_guard", "which? A guard's id, or a kind such as TENSOR_MATCH", .add = add_drop},
};
#define NAMES \
    "recompile_limit, accumulated_limit, isolate, backend_shared, dynamic, drop_guard; or best"

/* A whole number from 1 on, into *NUMBER. */
static bool take_number(const char *value, int64_t *number)
{
    char *end;

    *number = strtoll(value, &end, 10); /* the most of all on overflow */
    return end > value && !*end && *number >= 1 && *number <= INT32_MAX;
}

/* False: S does not take VALUE. */
static bool setting_take(struct whatif_knobs *k, const struct setting *s, const char *value)
{
    void *at = (char *)k + s->at;

    if (s->add)
        return s->add(k, value);
    if (!s->words[0])
        return take_number(value, at);
    for (int i = 0; s->words[i]; i++)
        if (!strcmp(value, s->words[i])) {
            *(int *)at = i;
            return true;
        }
    return false;
}

static const struct setting *setting_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name))
            return &table[i];
    return NULL;
}

/* Add TEXT, "KEY=VALUE", to K's text. */
static void text_add(struct whatif_knobs *k, const char *text)
{
    char *before = k->text;

    if (before)
        k->text = say_print("%s,%s", before, text);
    else
        k->text = say_print("%s", text);
    free(before);
}

/* Take TEXT, one KEY=VALUE; it may be changed meanwhile. */
static bool take_setting(struct whatif_knobs *k, char *text)
{
    char *equal = strchr(text, '=');
    const char *value;
    const struct setting *s;
    bool taken, again;
    unsigned bit;

    if (!equal)
        return refuse(text, "not KEY=VALUE: " NAMES);
    *equal = 0;
    value = equal + 1;
    s = setting_named(text);
    if (!s)
        return refuse(text, "no such setting: " NAMES);
    bit = 1u << (s - table);
    again = !s->add && k->given & bit;
    k->given |= bit;
    taken = setting_take(k, s, value);
    *equal = '=';
    if (again)
        return refuse(text, "it is set already: one setting has one value");
    if (!taken)
        return refuse(text, s->refused);
    if (!s->words[0] || strcmp(value, s->words[0]))
        text_add(k, text);
    return true;
}

/* The first comma in TEXT outside of brackets, or its end. */
static char *setting_end(char *text)
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

bool whatif_knob(struct whatif_knobs *k, const char *text)
{
    char *copy = strdup(text);
    char *at = copy;
    bool more = true;
    bool ok = true;

    while (ok && more) {
        char *end = setting_end(at);
        more = *end;
        *end = 0;
        ok = take_setting(k, at);
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

/* Does DB have what STATEMENT, "whatif/unknown-...", looks for by NAME, which was typed after KEY?
 * False: the error has been reported. */
static bool known(struct db *db, const char *statement, const char *key, const char *name)
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

/* The same of all that K names, sources and guards. */
static bool knobs_known(const struct whatif_knobs *k, struct db *db)
{
    bool ok = true;

    for (size_t i = 0; ok && i < k->dynamic.count; i++)
        ok = known(db, "whatif/unknown-source", "dynamic=", k->dynamic.at[i].source);
    for (size_t i = 0; ok && i < k->drops.count; i++)
        ok = known(db, "whatif/unknown-guard", "", k->drops.at[i]);
    return ok;
}

/* ---- the smallest change ------------------------------------------------- */

struct search {
    struct whatif *w;          /* borrowed */
    struct whatif_knobs *best; /* borrowed: what was kept so far; texts that were tried are in it */
    int64_t bad;               /* what comes of it */
    bool guess;                /* by what is predicted; else by what is proven */
    int tried;
};

/* How bad a result is: the recompiles and the calls that run as Python. Proven is the upper bound
 * alone: however the undecided calls end, it is no worse. */
static int64_t badness(const struct whatif_result *r, bool guess)
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

/* How bad it would be with the setting MORE as well; MORE may be NULL. */
static int64_t try(struct search *s, const char *more)
{
    struct whatif_knobs knobs = {.codes = s->best->codes};
    struct whatif_result result;
    int64_t bad;

    if (s->best->text)
        whatif_knob(&knobs, s->best->text);
    if (more)
        whatif_knob(&knobs, more);
    whatif_run(s->w, &knobs, &result);
    bad = badness(&result, s->guess);
    s->tried++;
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
    return bad;
}

/* Settings that make dynamic each size that decided a recompile, the one that decided most first.
 * Returns how many. */
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
        setting = arena_keep(&s->best->texts, cause_setting(&cause));
        known = !setting || (s->best->text && strstr(s->best->text, setting));
        if (!known && !strncmp(setting, "dynamic=", 8))
            settings[count++] = setting;
    }
    return count;
}

/* Keep the setting that helps most, and remove it from SETTINGS. False: none helps. */
static bool keep_best(struct search *s, const char *settings[], int count)
{
    int64_t least = s->bad;
    int found = -1;

    for (int i = 0; i < count; i++) {
        int64_t now = settings[i] ? try(s, settings[i]) : least;
        if (now < least) {
            least = now;
            found = i;
        }
    }
    if (found < 0)
        return false;
    whatif_knob(s->best, settings[found]);
    settings[found] = NULL;
    s->bad = least;
    return true;
}

/* Make dynamic the sizes that decided most recompiles, one beside the other while that helps. */
static void best_dimensions(struct search *s, struct db *db)
{
    const char *settings[CANDIDATES];
    int count = find_candidates(s, db, settings);

    for (int step = 0; step < STEPS; step++)
        if (!keep_best(s, settings, count))
            return;
}

static const char *limit_of(struct search *s, int64_t limit)
{
    return arena_print(&s->best->texts, "recompile_limit=%" PRId64, limit);
}

/* The least limit under which as few calls run as Python as under any. */
static void best_limit(struct search *s)
{
    int64_t low = 0;
    int64_t least = s->bad;
    int64_t from;

    for (int64_t high = 2; high <= LIMIT_MAX; high *= 2) {
        int64_t now = try(s, limit_of(s, high));
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
        if (try(s, limit_of(s, middle)) <= least)
            low = middle;
        else
            from = middle;
    }
    whatif_knob(s->best, limit_of(s, low));
}

static void best_search(struct search *s, struct db *db, bool limits)
{
    best_dimensions(s, db);
    if (limits && !s->best->recompile_limit)
        best_limit(s);
}

/* The smallest change, tried one after the other, into ANSWER; without settings when none is proven
 * to help. Settings that may do more beside it, by what is predicted: into ANSWER->unproven. */
static void best_of(struct whatif *w, struct db *db, struct whatif_answer *answer)
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
    best_search(&proven, db, limits);
    if (answer->knobs.text)
        whatif_knob(&more, answer->knobs.text);
    guess.bad = try(&guess, NULL);
    best_search(&guess, db, limits);
    if (more.text && (!answer->knobs.text || strcmp(more.text, answer->knobs.text)))
        answer->unproven = say_print("%s", more.text);
    whatif_knobs_free(&more);
    whatif_run(w, &answer->knobs, &answer->result);
    answer->tried = proven.tried + guess.tried - 1;
}

/* ---- as it is typed ------------------------------------------------------ */

/* The settings that were typed, into KNOBS. */
static bool take_settings(const struct whatif_asked *asked, struct whatif_knobs *knobs)
{
    for (int i = 0; i < asked->count; i++) {
        const char *setting = asked->settings[i];
        if (!strcmp(setting, "best"))
            return refuse("best", "it stands alone: it looks for the settings");
        if (!whatif_knob(knobs, setting))
            return false;
    }
    return knobs_known(knobs, asked->db);
}

/* The function that was typed. */
static bool take_function(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    struct found_code found;

    if (find_code(asked->db, asked->function, &found, asked->out, asked->json) != FIND_ONE)
        return false;
    answer->codes = replay_codes(asked->replay, found.ids);
    answer->knobs.codes = answer->codes;
    found_code_free(&found);
    return true;
}

bool whatif_ask(const struct whatif_asked *asked, struct whatif_answer *answer)
{
    bool best = asked->count == 1 && !strcmp(asked->settings[0], "best");
    struct whatif *w;

    *answer = (struct whatif_answer){.tried = -1};
    if (!best && !take_settings(asked, &answer->knobs))
        return false;
    if (asked->function && !take_function(asked, answer))
        return false;
    w = whatif_open(asked->db, asked->replay);
    if (best)
        best_of(w, asked->db, answer);
    else
        whatif_run(w, &answer->knobs, &answer->result);
    whatif_free(w);
    if (db_interrupted(asked->db))
        say_error("what-if: cancelled");
    return !db_failed(asked->db) && !db_interrupted(asked->db);
}

void whatif_answer_free(struct whatif_answer *answer)
{
    whatif_result_free(&answer->result);
    whatif_knobs_free(&answer->knobs);
    free(answer->codes);
    free(answer->unproven);
}

/* ---- in words ------------------------------------------------------------ */

static void recorded_print(FILE *out, const struct whatif_tally *t)
{
    char guards[TABLE_HUMAN], compiles[TABLE_HUMAN];

    fprintf(out,
            "  recorded  %7" PRId64 " %7" PRId64 " %7" PRId64 " %8" PRId64 " %7" PRId64 " %7" PRId64
            " %8s %8s\n",
            t->calls, t->hits, t->misses, t->compiles, t->eager, t->checks,
            whatif_checks_timed(t) ? table_duration(guards, t->check_ns) : "-",
            table_duration(compiles, t->compile_ns));
}

/* RANGE in a column of WIDTH: "4", "1-4", "1+". */
static void range_print(FILE *out, int width, const struct whatif_range *range)
{
    char text[WHATIF_RANGE_TEXT];

    if (whatif_range_is_exact(range))
        snprintf(text, sizeof text, "%" PRId64, range->low);
    else if (range->high == WHATIF_NO_BOUND)
        snprintf(text, sizeof text, "%" PRId64 "+", range->low);
    else
        snprintf(text, sizeof text, "%" PRId64 "-%" PRId64, range->low, range->high);
    fprintf(out, " %*s", width, text);
}

/* Checks and times are not known where it is not, which calls make them. */
static void predicted_print(FILE *out, const struct whatif_function *f)
{
    const struct whatif_tally *t = &f->predicted;
    bool exact = whatif_is_exact(f), checks = exact && !f->undecided && !f->either;
    char count[24] = "?", guards[TABLE_HUMAN] = "?", compiles[TABLE_HUMAN] = "?";

    if (checks)
        snprintf(count, sizeof count, "%" PRId64, t->checks);
    if (checks && whatif_checks_timed(t))
        table_duration(guards, t->check_ns);
    else if (checks)
        snprintf(guards, sizeof guards, "-");
    if (whatif_range_is_exact(&f->compiles))
        table_duration(compiles, t->compile_ns);
    fputs("  predicted", out);
    range_print(out, 7, &f->calls);
    range_print(out, 7, &f->hits);
    range_print(out, 7, &f->misses);
    range_print(out, 8, &f->compiles);
    range_print(out, 7, &f->eager);
    fprintf(out, " %7s %8s %8s\n", count, guards, compiles);
}

static void function_print(FILE *out, const struct whatif_function *f)
{
    const struct {
        int64_t count;
        const char *before, *after;
    } more[] = {
        {f->gone, "",
         " of its calls would not be looked up: the caller's code takes them in, or does not make "
         "them"},
        {f->undecided, "", " undecided: the trace does not say how they come out"},
        {f->either, "", " hit one of several entries: which is not known"},
        {f->trusting, "",
         " would run code of which the recording has no compile: it may give none"},
        {f->unrecorded, "",
         " or more further calls may be looked up, of which the trace has nothing"},
    };

    recorded_print(out, &f->recorded);
    predicted_print(out, f);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].count)
            fprintf(out, "  %s%" PRId64 "%s\n", more[i].before, more[i].count, more[i].after);
}

/* Our own words, in lines of a readable length. */
static void note_print(FILE *out, const char *text)
{
    size_t column = 0;

    fputs("  *", out);
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, " ");
        if (column && column + bytes + 1 > NOTE_COLUMNS) {
            fputs("\n   ", out);
            column = 0;
        }
        fprintf(out, " %.*s", (int)bytes, at);
        column += bytes + 1;
        at += bytes + (at[bytes] == ' ');
    }
    putc('\n', out);
}

static void headline(FILE *out, const struct whatif_answer *answer)
{
    const char *settings = answer->knobs.text;

    if (answer->tried >= 0 && !settings) {
        fprintf(out,
                "Of %d settings tried none is proven to have fewer recompiles or fewer calls that "
                "run as Python.\n",
                answer->tried);
        return;
    }
    if (answer->tried >= 0)
        fprintf(out, "Best of %d settings tried: ", answer->tried);
    else
        fputs("What if ", out);
    prose_text(out, settings ? settings : "nothing were changed", WIDTH * 4);
    fputs(answer->tried >= 0
              ? "\n"
              : "? The recorded calls decided again; the program is not run again.\n",
          out);
}

/* How to measure it, once at the end. */
static void measure_print(const struct whatif_asked *asked, const struct whatif_knobs *knobs)
{
    char *words = whatif_try_words(asked, knobs);
    FILE *out = asked->out;

    if (words)
        fprintf(out, "To measure it: dyntrace try %s\n", words);
    else
        fputs("To measure it, change the program and record it again: no setting of `dyntrace "
              "try` does this.\n",
              out);
    free(words);
}

static void unproven_print(const struct whatif_asked *asked, const char *settings)
{
    struct whatif_knobs knobs = {0};

    fputs("\nMay help more, which the trace does not prove: ", asked->out);
    prose_text(asked->out, settings, WIDTH * 4);
    putc('\n', asked->out);
    if (whatif_knob(&knobs, settings))
        measure_print(asked, &knobs);
    whatif_knobs_free(&knobs);
}

/* Are all of F's calls as recorded, for certain? */
static bool is_unchanged(const struct whatif_function *f)
{
    if (f->changed || f->gone || f->undecided)
        return false;
    return whatif_is_exact(f) && !memcmp(&f->recorded, &f->predicted, sizeof f->recorded);
}

/* Is F listed in ANSWER? */
static bool is_listed(const struct whatif_answer *answer, const struct whatif_function *f)
{
    return answer->codes ? answer->codes[f->code] : !is_unchanged(f);
}

static void name_print(const struct whatif_asked *asked, uint32_t code)
{
    char *name = replay_code_name(asked->replay, code);

    prose_text(asked->out, name, WIDTH * 2);
    putc('\n', asked->out);
    free(name);
}

/* The functions of ANSWER. Returns whether all numbers are exact; *SAME: how many functions stay as
 * they are. */
static bool functions_print(const struct whatif_asked *asked, const struct whatif_answer *answer,
                            void (*recorded)(void *context, int64_t code_id), void *context,
                            size_t *same)
{
    const struct whatif_result *r = &answer->result;
    size_t listed = 0;
    bool exact = true;

    *same = 0;
    for (size_t i = 0; i < r->functions.count; i++) {
        const struct whatif_function *f = &r->functions.at[i];
        if (!is_listed(answer, f)) {
            ++*same;
            continue;
        }
        if (++listed > LISTED)
            continue;
        name_print(asked, f->code);
        if (recorded)
            recorded(context, asked->replay->codes.at[f->code].id);
        function_print(asked->out, f);
        exact = exact && whatif_is_exact(f);
    }
    if (listed > LISTED)
        fprintf(asked->out, "(%d of %zu functions; --json has all)\n", LISTED, listed);
    return exact;
}

void whatif_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                 void (*recorded)(void *context, int64_t code_id), void *context)
{
    const struct whatif_result *r = &answer->result;
    FILE *out = asked->out;
    size_t same;
    bool exact;

    headline(out, answer);
    fprintf(out, "\n  %-9s %7s %7s %7s %8s %7s %7s %8s %8s\n", "", "calls", "hits", "misses",
            "compiles", "eager", "checks", "guards", "compile");
    exact = functions_print(asked, answer, recorded, context, &same);
    if (!answer->codes) {
        fprintf(out, "all%s\n", same ? ", also those that stay as they are" : "");
        if (recorded)
            recorded(context, -1);
        function_print(out, &r->total);
        exact = exact && whatif_is_exact(&r->total);
    }
    if (exact && r->total.changed + r->total.gone == 0)
        fputs("\nNo call would come out differently.\n", out);
    if (!exact) {
        fputs("\n1-4: at least 1 and at most 4, whatever the trace does not say; 1+: no upper "
              "bound;\n?: not known.\n",
              out);
        if (answer->knobs.text)
            measure_print(asked, &answer->knobs);
    }
    if (answer->unproven)
        unproven_print(asked, answer->unproven);
    if (r->notes.count)
        fputs("\nTaken for granted:\n", out);
    for (size_t i = 0; i < r->notes.count; i++)
        note_print(out, r->notes.at[i]);
}

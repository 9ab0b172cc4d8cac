/* trace/whatif/whatif.h -- simulates the recorded calls under other settings.
 *
 * `dyntrace replay --what-if` prints the prediction; `why` and the TUI show it beside the recorded
 * figures.
 *
 *     struct whatif_knobs knobs = {0};
 *     struct whatif_result result = {0};
 *     struct whatif *w = whatif_open(db, replay);          replay_open(db, true)
 *     if (whatif_read_setting(&knobs, "recompile_limit=16"))
 *         whatif_run(w, &knobs, &result);
 *     ... result.total.predicted.compiles
 *     whatif_result_free(&result), whatif_knobs_free(&knobs), whatif_free(w);
 *
 * Calls are divided into classes. All calls that ran the same entry are one class. Calls that ran
 * no entry are one class if they have the same signature. A simulated cache holds classes: the
 * class of the call that was compiled stands for the new entry. A call whose outcome is not certain
 * is counted as undecided, and turns the answer into a range. Assumptions are printed as notes.
 * trace/whatif/like.c tells which entries a call fits. */
#ifndef DYNTRACE_WHATIF_H
#define DYNTRACE_WHATIF_H

#include <stdio.h>

#include "lib/list.h"
#include "trace/replay/cache_order.h"

struct db;
struct replay;
struct whatif;

/* A value that the setting dynamic= makes dynamic. */
struct whatif_dimension {
    const char *source; /* "L['x']" */
    int dimension;      /* the dimension that becomes dynamic, or -1 for all dimensions */
};

struct whatif_knobs {
    /* owned: the settings as they were typed, with commas between them; NULL if
     * nothing is changed */
    char *text;
    unsigned given; /* which settings were typed: a bit for each */
    /* the limits to simulate; 0: the recorded limit stays in force */
    int64_t recompile_limit, accumulated_limit;
    int isolate;        /* each torch.compile() call (region) has its own entries and limit */
    int backends_apart; /* each backend has its own entries and limit */
    bool dynamic_all;
    LIST(struct whatif_dimension) dynamic;
    /* which guards are dropped, as it was typed: a kind of guard, or the row id of a guard, which
     * stands for all guards of its kind and source */
    LIST(const char *) drops;
    struct arena texts; /* owns the sources and kinds in `dynamic` and `drops` */
    /* borrowed: for each code object, whether the settings dynamic and drop_guard apply; NULL if
     * they apply to all */
    const bool *codes;
};

struct whatif_tally {
    int64_t calls; /* lookups */
    int64_t hits;
    int64_t misses;   /* number of lookups in which no entry fitted */
    int64_t compiles; /* number of misses that made an entry */
    int64_t eager;    /* number of calls that ran as Python although a compiler was set */
    int64_t checks;   /* number of times that an entry's guards were evaluated */
    int64_t check_ns, compile_ns;
};

/* A number of calls: at least `low` and at most `high`, whatever the undecided calls do. `high` is
 * WHATIF_NO_BOUND if no upper bound is known. */
struct whatif_range {
    int64_t low, high;
};
enum { WHATIF_NO_BOUND = -1, WHATIF_RANGE_TEXT = 64 };

struct whatif_function { /* counts for the calls of one code object */
    struct whatif_tally recorded, predicted;
    int64_t changed;   /* number of calls whose predicted outcome differs from the recorded one */
    int64_t gone;      /* number of calls that are not looked up any more */
    int64_t undecided; /* number of calls whose outcome may differ from the prediction */
    int64_t trusting;  /* number of calls that run code whose compile was not recorded */
    /* number of calls that certainly hit, but it is not certain which entry, so the number of
     * checks is a guess */
    int64_t either;
    /* at least this many lookups happen that are not in the trace */
    int64_t unrecorded;
    /* index of the code object. It is declared behind all int64_t members, because
     * add_function_counts() sums the members that stand before it */
    uint32_t code;
    /* bounds of the predicted counts; where the trace decides every call, low equals high
     * (whatif_is_exact) */
    struct whatif_range compiles, hits, eager, misses, calls;
};

struct whatif_result {
    /* owned: the functions that are looked up, those with most changes first */
    LIST(struct whatif_function) functions;
    struct whatif_function total;
    /* owned: for each lookup its predicted outcome, an enum outcome or WHATIF_GONE;
     * WHATIF_UNDECIDED is added if it is a guess */
    uint8_t *outcomes;
    LIST(const char *) notes; /* the assumptions on which the answer depends, in words */
    /* Predictions may be wrong even if they are not marked as undecided, because of an
     * assumption: events were lost, values were not recorded, or entries are assumed to die at
     * the recorded time. */
    bool uncertain;
};
enum { WHATIF_OUTCOME = 31, WHATIF_GONE = 31, WHATIF_UNDECIDED = 128 };

/* ---- the range of an answer (bounds.c) ----------------------------------- */

static inline bool whatif_range_is_exact(const struct whatif_range *range)
{
    return range->low == range->high;
}

/* Is it certain how many of FUNCTION's calls hit, compile and run as Python? It may still be a
 * guess which entry a call hits, and so how many checks there are. */
bool whatif_is_exact(const struct whatif_function *function);

/* Add the range MORE to SUM. */
void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more);

/* Write RANGE to TEXT as "4", "1-4" or "1+". Returns TEXT. */
char *whatif_format_range(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range);

/* Prepare what-ifs of a trace. DB and REPLAY are borrowed; REPLAY must have been opened with its
 * checks. */
struct whatif *whatif_open(struct db *db, const struct replay *replay);
void whatif_free(struct whatif *whatif);

/* Simulate the recorded calls under KNOBS and store the answer in RESULT. The caller frees RESULT
 * with whatif_result_free(). */
void whatif_run(struct whatif *whatif, const struct whatif_knobs *knobs,
                struct whatif_result *result);
void whatif_result_free(struct whatif_result *result);

/* ---- from typed settings to an answer (ask.c) ---------------------------- */

/* Add the settings in TEXT to KNOBS: one KEY=VALUE, or several with commas between them that are
 * not inside brackets. Returns false after reporting an error. */
bool whatif_read_setting(struct whatif_knobs *knobs, const char *text);
void whatif_knobs_free(struct whatif_knobs *knobs);

struct whatif_asked {
    struct db *db; /* borrowed, like all members of this struct */
    struct replay *replay;
    /* the settings as they were typed; "best" alone searches for the smallest change that removes
     * most recompiles */
    const char *const *settings;
    int count;
    /* answer only for this function, and change only its guards; NULL: answer for all functions */
    const char *function;
    /* if the name fits several functions, they are listed here, as JSON if `json` is set */
    FILE *out;
    bool json;
};

struct whatif_answer { /* all members are owned: call whatif_answer_free(), also after an error */
    struct whatif_knobs knobs;
    struct whatif_result result;
    /* for each code object, whether it belongs to the chosen function; NULL: all
     * functions are chosen */
    bool *codes;
    int tried; /* how many settings "best" has tried; -1 without "best" */
    /* owned: settings that "best" found and that may help more, although no bound
     * proves it; or NULL */
    char *unproven;
};

/* Answer a what-if that the user typed. Returns false after reporting an error. */
bool whatif_answer_typed(const struct whatif_asked *asked, struct whatif_answer *answer);
void whatif_answer_free(struct whatif_answer *answer);

/* ---- printing the answer (page.c) ---------------------------------------- */

/* Print ANSWER: the recorded and the predicted figures of each function. If RECORDED is not NULL,
 * it is called between the name of a function and its figures, with the row id of the code object,
 * or with -1 before the sums of all functions. */
void whatif_print_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                       void (*recorded)(void *context, int64_t code_id), void *context);

/* ---- how to measure the answer (measure.c) ------------------------------- */

/* Return the arguments for `dyntrace try` that change the program as KNOBS change the recorded
 * calls: the trace, the function and the settings, each quoted for a shell. The caller frees the
 * text. Returns NULL if `try` has no such settings. */
char *whatif_make_try_command(const struct whatif_asked *asked, const struct whatif_knobs *knobs);

/* Was the time of all checks in TALLY measured? True as well if there was no check. */
static inline bool whatif_checks_timed(const struct whatif_tally *tally)
{
    return tally->check_ns || !tally->checks;
}

#endif

/* trace/whatif/whatif.h -- simulates the recorded calls under other settings.
 *
 * `dyntrace replay --what-if` prints the prediction; `why` and the TUI show it beside the recorded
 * figures.
 *
 *     struct whatif_knobs knobs = {0};
 *     struct whatif_result result = {0};
 *     struct whatif *w = whatif_open(db, replay);          replay_open(db, true)
 *     if (whatif_knob(&knobs, "recompile_limit=16"))
 *         whatif_run(w, &knobs, &result);
 *     ... result.total.predicted.compiles
 *     whatif_result_free(&result), whatif_knobs_free(&knobs), whatif_free(w);
 *
 * A class is all calls that ran the same entry; calls that ran no entry are one class if they have
 * the same signature. A simulated cache holds classes: the class of the call that was compiled
 * stands for the new entry. A call whose outcome is not certain is counted as undecided, and turns
 * the answer into a range. Assumptions are printed as notes.
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
    int dimension;      /* the dimension, or -1 for all dimensions */
};

struct whatif_knobs {
    /* owned: the settings as typed, separated by commas; NULL if no setting changes anything */
    char *text;
    unsigned given;                             /* a bit for each setting that was typed */
    int64_t recompile_limit, accumulated_limit; /* 0: the recorded limit stays in force */
    int isolate;        /* each torch.compile() call (region) has its own entries and limit */
    int backends_apart; /* each backend has its own entries and limit */
    bool dynamic_all;
    LIST(struct whatif_dimension) dynamic;
    /* guards to drop, as typed: a kind, or the row id of a guard, which stands for all guards of
     * the same kind and source */
    LIST(const char *) drops;
    struct arena texts; /* the sources and kinds in DYNAMIC and DROPS */
    /* borrowed, by index of the code object: true where the settings dynamic and drop_guard apply;
     * NULL if they apply everywhere */
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

/* A number of calls: at least LOW and at most HIGH, whatever the undecided calls do. HIGH is
 * WHATIF_NO_BOUND if there is no known upper bound. */
struct whatif_range {
    int64_t low, high;
};
enum { WHATIF_NO_BOUND = -1, WHATIF_RANGE_TEXT = 64 };

struct whatif_function { /* the counts for one code object */
    struct whatif_tally recorded, predicted;
    int64_t changed;   /* number of calls whose predicted outcome differs from the recorded one */
    int64_t gone;      /* number of calls that would not be looked up any more */
    int64_t undecided; /* number of calls whose outcome may differ from the prediction */
    int64_t trusting;  /* number of calls that would run code whose compile was not recorded */
    /* number of hits for which several entries are possible, so that the number of checks is a
     * guess */
    int64_t either;
    /* least number of lookups that would happen and are not in the trace */
    int64_t unrecorded;
    /* index of the code object; must follow the int64_t members, which function_add() sums */
    uint32_t code;
    /* bounds of the predicted counts; low equals high where the trace decides every call
     * (whatif_is_exact) */
    struct whatif_range compiles, hits, eager, misses, calls;
};

struct whatif_result {
    /* owned: the functions that were looked up, those with the most changes first */
    LIST(struct whatif_function) functions;
    struct whatif_function total;
    /* owned: the predicted outcome of each lookup: enum outcome or WHATIF_GONE, plus
     * WHATIF_UNDECIDED if it is a guess */
    uint8_t *outcomes;
    LIST(const char *) notes; /* the assumptions, in words */
    /* Predictions that are not marked as undecided may still be wrong, because of an assumption:
     * events were lost, values were not recorded, or entries are assumed to die at the recorded
     * time. */
    bool uncertain;
};
enum { WHATIF_OUTCOME = 31, WHATIF_GONE = 31, WHATIF_UNDECIDED = 128 };

/* ---- trace/whatif/bounds.c: the range of an answer ----------------------- */

static inline bool whatif_range_is_exact(const struct whatif_range *range)
{
    return range->low == range->high;
}

/* Are the numbers of FUNCTION's calls that hit, compile and run as Python certain? Which entry a
 * call hits, and so the number of checks, may still be a guess. */
bool whatif_is_exact(const struct whatif_function *function);

/* Add the range MORE to SUM. */
void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more);

/* Write RANGE to TEXT as "4", "1-4" or "1+". Returns TEXT. */
char *whatif_range_text(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range);

/* Prepare what-ifs of a trace. DB and REPLAY are borrowed; REPLAY must have been opened with its
 * checks. */
struct whatif *whatif_open(struct db *db, const struct replay *replay);
void whatif_free(struct whatif *whatif);

/* Simulate the recorded calls under KNOBS and store the answer in RESULT. The caller frees RESULT
 * with whatif_result_free(). */
void whatif_run(struct whatif *whatif, const struct whatif_knobs *knobs,
                struct whatif_result *result);
void whatif_result_free(struct whatif_result *result);

/* ---- trace/whatif/ask.c: from typed settings to an answer ---------------- */

/* Add the settings in TEXT to KNOBS: KEY=VALUE, or several separated by commas that are not within
 * brackets. Returns false after reporting an error. */
bool whatif_knob(struct whatif_knobs *knobs, const char *text);
void whatif_knobs_free(struct whatif_knobs *knobs);

struct whatif_asked {
    struct db *db; /* borrowed, like all members */
    struct replay *replay;
    /* the settings as typed; "best" alone searches for the smallest change that removes most
     * recompiles */
    const char *const *settings;
    int count;
    /* answer for this function only, and change only its guards; NULL: for all functions */
    const char *function;
    /* if FUNCTION fits several functions, they are listed here, as JSON if `json` is set */
    FILE *out;
    bool json;
};

struct whatif_answer { /* all members are owned: call whatif_answer_free(), also after an error */
    struct whatif_knobs knobs;
    struct whatif_result result;
    bool *codes; /* by index: true for the code objects of the chosen function; NULL for all */
    int tried;   /* how many settings "best" tried; -1 if it was not asked for */
    /* owned: settings found by "best" that may help more, though no bound proves it; or NULL */
    char *unproven;
};

/* Answer a what-if as it was typed. Returns false after reporting an error. */
bool whatif_ask(const struct whatif_asked *asked, struct whatif_answer *answer);
void whatif_answer_free(struct whatif_answer *answer);

/* ---- trace/whatif/page.c: prints the answer ------------------------------ */

/* Print ANSWER: the recorded and the predicted figures of each function. RECORDED, unless NULL, is
 * called between a function's name and its figures with the code object's row id, or with -1 before
 * the sums of all functions. */
void whatif_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                 void (*recorded)(void *context, int64_t code_id), void *context);

/* ---- trace/whatif/measure.c: how to measure the answer ------------------- */

/* Return the arguments of `dyntrace try` that change the program as KNOBS change the recorded
 * calls: the trace, the function and the settings, each quoted for a shell. The caller frees the
 * text. NULL if `try` has no such settings. */
char *whatif_try_words(const struct whatif_asked *asked, const struct whatif_knobs *knobs);

/* Was the time of TALLY's checks measured? True also if there was no check. */
static inline bool whatif_checks_timed(const struct whatif_tally *tally)
{
    return tally->check_ns || !tally->checks;
}

#endif

/* trace/whatif/whatif.h -- the recorded calls decided again under other settings.
 *
 * `dyntrace replay --what-if` prints it; `why` and the TUI show it beside what was recorded.
 *
 *     struct whatif_knobs knobs = {0};
 *     struct whatif_result result = {0};
 *     struct whatif *w = whatif_open(db, replay);          replay_open(db, true)
 *     if (whatif_knob(&knobs, "recompile_limit=16"))
 *         whatif_run(w, &knobs, &result);
 *     ... result.total.predicted.compiles
 *     whatif_result_free(&result), whatif_knobs_free(&knobs), whatif_free(w);
 *
 * Calls are of one class when they ran one entry, or, where they ran none, had one signature. A
 * predicted cache holds classes: the one that a compile was made for stands for the entry. What is
 * not known for certain is counted as undecided, and makes the answer a range; what was taken for
 * granted is said in words.
 * trace/whatif/like.c says when an entry fits a call. */
#ifndef DYNTRACE_WHATIF_H
#define DYNTRACE_WHATIF_H

#include <stdio.h>

#include "lib/list.h"
#include "trace/replay/cache_order.h"

struct db;
struct replay;
struct whatif;

/* The settings. */
struct whatif_dimension {
    const char *source; /* "L['x']" */
    int dimension;      /* -1: all of it */
};

struct whatif_knobs {
    char *text; /* owned: them as they were typed, with commas between; NULL: none was changed */
    unsigned given;                             /* a bit for each setting that was */
    int64_t recompile_limit, accumulated_limit; /* 0: as recorded */
    int isolate;        /* entries and limit of each region, torch.compile(), for itself */
    int backends_apart; /* entries and limit of each backend for themselves */
    bool dynamic_all;
    LIST(struct whatif_dimension) dynamic;
    /* kinds of guards, or ids: of one, and of those of its kind and source */
    LIST(const char *) drops;
    struct arena texts; /* what these two name */
    /* borrowed, by index of code: dynamic and drop_guard hold there only; NULL: everywhere */
    const bool *codes;
};

struct whatif_tally {
    int64_t calls; /* lookups */
    int64_t hits;
    int64_t misses;   /* looked for an entry, and none fitted */
    int64_t compiles; /* misses that made one */
    int64_t eager;    /* ran as Python though a compiler was set */
    int64_t checks;   /* entries whose guards were run */
    int64_t check_ns, compile_ns;
};

/* A count of calls: at least LOW and at most HIGH, however the undecided calls come out. HIGH
 * WHATIF_NO_BOUND: it is not known how many at most. */
struct whatif_range {
    int64_t low, high;
};
enum { WHATIF_NO_BOUND = -1, WHATIF_RANGE_TEXT = 64 };

struct whatif_function { /* a code object; those of other processes are others */
    struct whatif_tally recorded, predicted;
    int64_t changed;   /* calls with another outcome */
    int64_t gone;      /* calls that would not be looked up any more */
    int64_t undecided; /* calls that may come out in another way than predicted */
    int64_t trusting;  /* calls that would run code of which the recording has no compile */
    int64_t either;    /* calls that hit, and which entry is a guess: so is the number of checks */
    /* calls, at least, that would be looked up and of which the trace has nothing */
    int64_t unrecorded;
    uint32_t code; /* index; behind the numbers */
    /* of the predicted calls; both ends are equal where the trace decides all (whatif_is_exact) */
    struct whatif_range compiles, hits, eager, misses, calls;
};

struct whatif_result {
    /* owned: those that were looked up, most changed first */
    LIST(struct whatif_function) functions;
    struct whatif_function total;
    /* owned: by lookup, enum outcome, or WHATIF_GONE; with WHATIF_UNDECIDED added */
    uint8_t *outcomes;
    LIST(const char *) notes; /* what was taken for granted */
    /* Something of that may be otherwise without a call being marked as undecided: events were
     * lost, values not recorded, or deaths are taken to come as they did. */
    bool uncertain;
};
enum { WHATIF_OUTCOME = 31, WHATIF_GONE = 31, WHATIF_UNDECIDED = 128 };

/* ---- trace/whatif/bounds.c ----------------------------------------------- */

static inline bool whatif_range_is_exact(const struct whatif_range *range)
{
    return range->low == range->high;
}

/* Does the trace decide how many calls of FUNCTION hit, compile and run as Python? Then its
 * numbers are no guess; which entry a call hits, and so the number of checks, may be one. */
bool whatif_is_exact(const struct whatif_function *function);

/* The calls of MORE are calls of SUM as well. */
void whatif_range_add(struct whatif_range *sum, const struct whatif_range *more);

/* RANGE as "4", "1-4" or "1+" in TEXT, which is returned. */
char *whatif_range_text(char text[WHATIF_RANGE_TEXT], const struct whatif_range *range);

/* REPLAY, borrowed as DB, was opened with its checks. */
struct whatif *whatif_open(struct db *db, const struct replay *replay);
void whatif_free(struct whatif *whatif);

/* The caller ends RESULT with whatif_result_free. */
void whatif_run(struct whatif *whatif, const struct whatif_knobs *knobs,
                struct whatif_result *result);
void whatif_result_free(struct whatif_result *result);

/* ---- trace/whatif/ask.c -------------------------------------------------- */

/* KEY=VALUE or several, with commas between them outside of brackets, added to KNOBS. False: the
 * error has been reported. */
bool whatif_knob(struct whatif_knobs *knobs, const char *text);
void whatif_knobs_free(struct whatif_knobs *knobs);

struct whatif_asked {
    struct db *db; /* borrowed, as all of it */
    struct replay *replay;
    /* as they were typed; "best" alone: look for the smallest change that removes most */
    const char *const *settings;
    int count;
    const char *function; /* that one alone is looked at, and weaker guards are its; or NULL */
    FILE *out;            /* where a name that fits several functions lists them, as JSON or not */
    bool json;
};

struct whatif_answer { /* all owned: whatif_answer_free, also after a failure */
    struct whatif_knobs knobs;
    struct whatif_result result;
    bool *codes; /* by index: the function's; NULL: all */
    int tried;   /* by "best"; else -1 */
    /* by "best", owned: settings that may help more, but no bound proves it; or NULL */
    char *unproven;
};

/* False: the error has been reported. */
bool whatif_ask(const struct whatif_asked *asked, struct whatif_answer *answer);
void whatif_answer_free(struct whatif_answer *answer);

/* ---- trace/whatif/page.c ------------------------------------------------- */

/* Print ANSWER: for each function the recorded figures and the predicted ones. RECORDED, or NULL,
 * is called between a function's name and its figures, with its code id; -1: the sums of all. */
void whatif_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                 void (*recorded)(void *context, int64_t code_id), void *context);

/* ---- trace/whatif/measure.c ---------------------------------------------- */

/* The arguments of `dyntrace try` that do to the program what ANSWER's settings do to the recorded
 * calls: the trace, the function and settings, each as a word of a shell. The caller frees it.
 * NULL: `try` has no such settings. */
char *whatif_try_words(const struct whatif_asked *asked, const struct whatif_knobs *knobs);

/* Guards took time; none was measured where a compiler ran on its own. */
static inline bool whatif_checks_timed(const struct whatif_tally *tally)
{
    return tally->check_ns || !tally->checks;
}

#endif

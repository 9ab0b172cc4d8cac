/* trace/whatif/whatif.h -- the recorded calls decided again under other settings.
 *
 * Runs in: the viewer. `dyntrace replay --what-if` prints it; `why` and the TUI show it beside what was recorded.
 *
 *     struct whatif_knobs knobs = {0};
 *     struct whatif_result result;
 *     struct whatif *w = whatif_open(db, replay);          replay_open(db, REPLAY_CHECKS | REPLAY_TIMES)
 *     if (w && whatif_knob(&knobs, "recompile_limit=16") && whatif_run(w, &knobs, &result))
 *         ... result.total.predicted.compiles
 *     whatif_result_free(&result), whatif_knobs_free(&knobs), whatif_free(w);
 *
 * Calls are of one class when they ran one entry, or, where they ran none, had one signature. A predicted cache holds
 * classes: the one that a compile was made for stands for the entry. What is not known for certain is counted as
 * undecided, and what was taken for granted is told in words. trace/whatif/like.c says when an entry fits a call. */
#ifndef DYNTRACE_WHATIF_H
#define DYNTRACE_WHATIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct replay;
struct whatif;

enum whatif_order { ORDER_MRU, ORDER_FIFO, ORDER_STATIC };

enum { WHATIF_DYNAMIC = 16, WHATIF_DROPS = 16 };

struct whatif_dimension {
    char *source;  /* owned: "L['x']" */
    int dimension; /* -1: all of it */
};

struct whatif_knobs {
    int64_t recompile_limit, accumulated_limit; /* 0: as recorded */
    enum whatif_order order;
    bool isolate;        /* entries and limit of each region, torch.compile(), for itself */
    bool backends_apart; /* entries and limit of each backend for themselves */
    bool dynamic_all;
    struct whatif_dimension dynamic[WHATIF_DYNAMIC];
    int dynamic_count;
    char *drops[WHATIF_DROPS]; /* owned: kinds of guards, or ids: of one, and of those of its kind and source */
    int drop_count;
    const bool *codes; /* borrowed, by index of code: dynamic and drop_guard hold there only; NULL: everywhere */
};

/* KEY=VALUE or several, with commas between them outside of brackets, added to KNOBS. False: it was said why not. */
bool whatif_knob(struct whatif_knobs *knobs, const char *text);
/* Does DB have what KNOBS speak of, sources and guards? False: it was said what it lacks. */
bool whatif_knobs_known(const struct whatif_knobs *knobs, struct db *db);
void whatif_knobs_free(struct whatif_knobs *knobs);
/* KNOBS as they would be typed. The caller frees it; NULL: no memory. */
char *whatif_knobs_text(const struct whatif_knobs *knobs);

struct whatif_tally {
    int64_t calls; /* lookups */
    int64_t hits;
    int64_t misses;   /* found no entry */
    int64_t compiles; /* misses that made one */
    int64_t eager;    /* calls that ran as Python although a compiler was set: limit, run_only, declined */
    int64_t checks;   /* entries whose guards were run */
    int64_t check_ns, compile_ns;
};

struct whatif_function { /* a code object; those of other processes are others */
    uint32_t code;       /* index */
    struct whatif_tally recorded, predicted;
    int64_t changed;    /* calls with another outcome */
    int64_t gone;       /* calls that would not be looked up any more */
    int64_t undecided;  /* calls whose outcome is a guess */
    int64_t trusting;   /* calls that would run code of which the recording has no compile */
    int64_t unrecorded; /* calls, at least, that would be looked up and of which the trace has nothing */
};

struct whatif_result {
    struct whatif_function *functions; /* owned: those that were looked up, most changed first */
    size_t function_count;
    struct whatif_function total;
    uint8_t *outcomes; /* owned: by lookup, enum outcome, or WHATIF_GONE; with WHATIF_UNDECIDED added */
    char **notes;      /* owned: what was taken for granted */
    size_t note_count;
};
enum { WHATIF_OUTCOME = 31, WHATIF_GONE = 31, WHATIF_UNDECIDED = 128 };

/* NULL: it was said why not. DB and REPLAY are borrowed. */
struct whatif *whatif_open(struct db *db, struct replay *replay);
void whatif_free(struct whatif *whatif);

/* False: it was said why not. The caller ends RESULT with whatif_result_free. */
bool whatif_run(struct whatif *whatif, const struct whatif_knobs *knobs, struct whatif_result *result);
void whatif_result_free(struct whatif_result *result);

/* The smallest change that removes most recompiles and eager calls, tried one after the other; and what it gives. KNOBS
 * is empty when nothing helps. *TRIED is how many were. */
bool whatif_best(struct whatif *whatif, struct db *db, struct whatif_knobs *knobs, struct whatif_result *result,
                 int *tried);

#endif

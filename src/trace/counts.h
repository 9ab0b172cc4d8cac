/* trace/counts.h -- the calls of a trace, counted by function and process.
 *
 *     struct counts counts = {.warmup = 0};
 *     if (counts_read(&counts, db, &progress))
 *         for (size_t i = 0; i < counts.all.count; i++)   ... counts.all.at[i]
 *     counts_free(&counts);
 *
 * `check` and `report` take their shares (hits, misses, ...) from here. The definitions are those
 * of the views `calls` and `shares` (schemas/views.sql): a call belongs to its thread's process.
 * Shares are computed from the calls for which compiled code was wanted, except calls of functions
 * that the compiler skipped unread.
 *
 * counts_read reads the lookups once, in order of id, which is several times faster than a sorting
 * GROUP BY, and the calls of functions that the compiler has given up. A merged trace has the parts
 * of which it was merged one after the other. */
#ifndef DYNTRACE_COUNTS_H
#define DYNTRACE_COUNTS_H

#include "lib/list.h"
#include "lib/say.h"
#include "vocabulary.h"

struct db;

/* The calls of one code object in one process. A job with many ranks has hundreds of thousands of
 * these records. */
struct count {
    int64_t code_id, process_id;
    int64_t seen;    /* number of calls, including the warm-up */
    int64_t warm_id; /* lookups with greater ids are after the warm-up */
    /* calls that begin at this time or later are after the warm-up; INT64_MAX if there is no such
     * call */
    int64_t warm_ns;
    unsigned next;    /* index + 1 of the record of the same code object in another process, or 0 */
    unsigned decided; /* index + 1 of this record's first item in counts->decided, or 0 */
    bool turned_away; /* the compiler skipped the function unread (view turned_away) */
};

/* Calls with one outcome, after the warm-up. */
struct count_decided {
    int64_t calls, time_ns;
    unsigned next; /* index + 1 of the next item of the same struct count, or 0 */
    enum outcome outcome;
};

/* A part of a trace that has its own processes: a trace of those that were merged (table `merged`).
 * Its ids of each kind are greater than FROM, and at most TO. */
enum count_id { COUNT_THREADS, COUNT_CODES, COUNT_FRAMES, COUNT_LOOKUPS, COUNT_CHECKS, COUNT_IDS };
struct count_part {
    int64_t from[COUNT_IDS];
    int64_t to[COUNT_IDS];
};

struct counted_call {
    int64_t lookup_id, thread_id, code_id, start_ns;
    enum outcome outcome;
};

struct counts {
    /* number of first calls of each function in each process that are left out as warm-up */
    int64_t warmup;
    void (*each)(void *context,
                 /* a function that is called for each call after the warm-up; or NULL */
                 const struct counted_call *call);
    /* a function that is called when a part has been counted, and then the counts are forgotten, so
     * that memory does not grow with the number of parts; or NULL to keep all counts */
    void (*part)(void *context, const struct count_part *part);
    void *context;
    LIST(struct count) all;
    LIST(struct count_decided) decided;
    /* by_code maps a code_id to an index + 1 in `all`; threads maps a thread_id to a process_id */
    struct map by_code, threads;
    int64_t rows, last_id;
    bool any;                  /* a call was counted */
    struct progress *progress; /* borrowed, like `db` */
    struct db *db;
    struct query *parts;   /* owned: where the following parts begin */
    struct count_part now; /* the part that is being counted */
    bool last_part;
};

/* Count all calls of the trace DB. Returns false after reporting an error. */
bool counts_read(struct counts *counts, struct db *db, struct progress *progress);
void counts_free(struct counts *counts);

/* The calls of a struct count by outcome, and the sum of their times. */
struct count_calls {
    int64_t calls[OUTCOMES], times_ns[OUTCOMES];
};
struct count_calls counts_calls(const struct counts *counts, const struct count *count);

/* Count one row that has been read, for the progress bar. */
void counts_tick(struct counts *counts, int64_t lookup_id);

/* Return the count of CODE_ID in PROCESS_ID, or NULL if CODE_ID had no calls there. Borrowed. */
struct count *counts_find(const struct counts *counts, int64_t code_id, int64_t process_id);

/* Like counts_find, for the process of THREAD_ID. */
struct count *counts_of(const struct counts *counts, int64_t code_id, int64_t thread_id);

/* Sums of CALLS by outcome. `all`: every call. `asked`: calls from which shares are computed,
 * because compiled code was wanted. `python`: calls that ran as Python. */
struct call_sums {
    int64_t all, asked, hits, missed, python;
};
struct call_sums calls_sum(const int64_t calls[OUTCOMES]);

#endif

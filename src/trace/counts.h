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
 * that the compiler skipped without examining them (view turned_away).
 *
 * counts_read reads the lookups once, in order of id, which is several times faster than a sorting
 * GROUP BY. It also reads the calls of functions that the compiler has given up, because these
 * calls have no lookup. A merged trace has one part for each trace that was merged, one part after
 * the other. */
#ifndef DYNTRACE_COUNTS_H
#define DYNTRACE_COUNTS_H

#include "lib/list.h"
#include "lib/say.h"
#include "vocabulary.h"

struct db;

/* The calls of one code object in one process. A job with many ranks has hundreds of thousands of
 * these structs. */
struct count {
    int64_t code_id, process_id;
    int64_t seen;    /* number of calls, including the warm-up */
    int64_t warm_id; /* lookups with a greater lookup_id are after the warm-up */
    /* calls that begin at this time or later are after the warm-up; INT64_MAX if there is no such
     * call */
    int64_t warm_ns;
    /* index + 1 of the same code object's struct for another process; 0 if there is none */
    unsigned next;
    /* index + 1 of this struct's first item in counts->decided; 0 if there is none */
    unsigned decided;
    bool turned_away; /* the compiler skipped the function without examining it */
};

/* The calls of one struct count that had the same outcome, without the warm-up. */
struct count_decided {
    int64_t calls, time_ns;
    unsigned next; /* index + 1 of the next item of the same struct count; 0 at the end */
    enum outcome outcome;
};

/* A part of a merged trace: the rows that came from one of the merged traces (table `merged`). A
 * process is in one part only. The ids of the part are greater than `from` and at most `to`, for
 * each kind of id. */
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
    /* number of calls left out at the beginning, for each function in each process */
    int64_t warmup;
    /* if not NULL, called for each call after the warm-up */
    void (*each)(void *context, const struct counted_call *call);
    /* called when a part has been counted. Then the counts of the part are freed, so that memory
     * does not grow with the number of parts. If NULL, the counts of all parts are kept. */
    void (*part)(void *context, const struct count_part *part);
    void *context;
    LIST(struct count) all;
    LIST(struct count_decided) decided;
    /* by_code maps a code_id to an index + 1 in `all`; threads maps a thread_id to a process_id */
    struct map by_code, threads;
    int64_t rows, last_id;
    bool any;                  /* at least one call was counted */
    struct progress *progress; /* borrowed, like the member `db` */
    struct db *db;
    struct query *parts;   /* owned: a query of the ids at which later parts begin */
    struct count_part now; /* the part of the trace that is being counted */
    bool last_part;
};

/* Count all calls of the trace DB. Returns false after reporting an error. */
bool counts_read(struct counts *counts, struct db *db, struct progress *progress);
void counts_free(struct counts *counts);

/* For each outcome: how many calls of a `struct count` had this outcome, and the sum
 * of their times. */
struct count_calls {
    int64_t calls[OUTCOMES], times_ns[OUTCOMES];
};
struct count_calls counts_sum_calls_by_outcome(const struct counts *counts,
                                               const struct count *count);

/* Tell the progress bar that the row LOOKUP_ID has been read. */
void counts_show_progress(struct counts *counts, int64_t lookup_id);

/* Return the count of CODE_ID in PROCESS_ID, or NULL if CODE_ID had no calls there. Borrowed. */
struct count *counts_find_of_process(const struct counts *counts, int64_t code_id,
                                     int64_t process_id);

/* Like counts_find_of_process(), for the process to which the thread THREAD_ID belongs. */
struct count *counts_find_of_thread(const struct counts *counts, int64_t code_id,
                                    int64_t thread_id);

/* Sums of calls. `all`: every call. `asked`: calls for which compiled code was wanted, from which
 * shares are computed. `python`: those calls of `asked` that ran as Python. */
struct call_sums {
    int64_t all, asked, hits, missed, python;
};
struct call_sums calls_sum_outcomes(const int64_t calls[OUTCOMES]);

#endif

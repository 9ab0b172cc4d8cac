/* trace/counts.h -- the calls of a trace, counted by function and process.
 *
 *     struct counts counts = {.warmup = 0};
 *     if (counts_read(&counts, db, &progress))
 *         for (size_t i = 0; i < counts.all.count; i++)   ... counts.all.at[i]
 *     counts_free(&counts);
 *
 * `check` and `report` take their shares from here. The definitions are those of the views `calls`
 * and `shares` (schemas/views.sql): a call belongs to its thread's process, and counts in shares if
 * compiled code was wanted and the compiler did not skip its function unread. Reads lookups once,
 * in order of id, several times faster than a GROUP BY that sorts; then the calls of given-up
 * functions. */
#ifndef DYNTRACE_COUNTS_H
#define DYNTRACE_COUNTS_H

#include "lib/list.h"
#include "lib/say.h"
#include "vocabulary.h"

struct db;

/* The calls of a code object in a process. A job with many ranks has hundreds of thousands of these
 * records. */
struct count {
    int64_t code_id, process_id;
    int64_t seen;     /* calls, including the warm-up */
    int64_t warm_id;  /* lookups with greater ids are after the warm-up */
    int64_t warm_ns;  /* calls that began then or later; INT64_MAX: none */
    unsigned next;    /* index + 1 of the same code in another process; 0: none */
    unsigned decided; /* index + 1 of its first record in counts->decided */
    bool turned_away; /* the compiler skipped the function unread: view turned_away */
};

/* Calls with one outcome, after the warm-up. */
struct count_decided {
    int64_t calls, time_ns;
    unsigned next; /* index + 1 of its next outcome; 0: none */
    enum outcome outcome;
};

struct counted_call {
    int64_t lookup_id, thread_id, code_id, start_ns;
    enum outcome outcome;
};

struct counts {
    int64_t warmup; /* the first calls of a function in a process that do not count */
    void (*each)(
        void *context,
        const struct counted_call *call); /* called for each call after the warm-up; or NULL */
    void *context;
    LIST(struct count) all;
    LIST(struct count_decided) decided;
    struct map by_code, threads; /* code_id -> the first of all.at[] + 1; thread_id -> process_id */
    int64_t rows, last_id;
    struct progress *progress; /* borrowed */
};

/* False: the error has been reported. */
bool counts_read(struct counts *counts, struct db *db, struct progress *progress);
void counts_free(struct counts *counts);

/* Calls of a count with OUTCOME; 0 if there are none. */
struct count_calls {
    int64_t calls[OUTCOMES], times_ns[OUTCOMES];
};
struct count_calls counts_calls(const struct counts *counts, const struct count *count);

/* Count a lookup that was read. */
void counts_tick(struct counts *counts, int64_t lookup_id);

/* The counts of CODE_ID in PROCESS_ID; NULL: none. */
struct count *counts_find(const struct counts *counts, int64_t code_id, int64_t process_id);

/* The counts of a thread's process. */
struct count *counts_of(const struct counts *counts, int64_t code_id, int64_t thread_id);

/* Sums of CALLS by outcome: all, those that count in shares, misses, those that ran as Python. */
struct call_sums {
    int64_t all, asked, hits, missed, python;
};
struct call_sums calls_sum(const int64_t calls[OUTCOMES]);

#endif

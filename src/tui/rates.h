/* tui/rates.h -- what a program does per second while its recording is followed, and did before. */
#ifndef DYNTRACE_RATES_H
#define DYNTRACE_RATES_H

#include <stddef.h>
#include <stdint.h>

struct db;

enum { RATES = 4 /* calls, hits, compiles, recompiles */, RATES_KEPT = 60 };

struct rates {
    int64_t at_ms;                 /* when it was looked last, 0: not yet */
    int64_t sums[RATES], lookup_id;
    double kept[RATES_KEPT][RATES]; /* per second; the newest at (looks - 1) % RATES_KEPT */
    int looks;
    char compiling[100];           /* what is being compiled now, or "" */
};

/* Look at the trace that is being written. */
void rates_look(struct rates *rates, struct db *db);

/* "compiling train for 4 s  calls 1.2 M/s ▁▃█ ..." for COLUMNS, and the memory of process PID, if it is not 0. LINE has room for BYTES. */
void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes);

#endif

/* cmd/diff/diff.h -- what the parts of `dyntrace diff` share.
 *
 * Runs in: the viewer.
 *
 * cmd/diff.c            the command
 * cmd/diff/functions.c  functions, and how their calls, entries and times differ
 * cmd/diff/reasons.c    why they were compiled again, and where graphs broke
 * cmd/diff/lookups.c    lookup by lookup */
#ifndef DYNTRACE_DIFF_H
#define DYNTRACE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/list.h"
#include "lib/progress.h"
#include "vocabulary.h"

struct query;

enum { DIFF_TICK = 1 << 15 };

enum kind { FUNCTION, CODE, OUTCOME, ENTRY, REASON, BREAK, GUARD, TIME, LOOKUP, KINDS };

struct function { /* at first one for each code object */
    int64_t code_id;
    const char *name, *file, *kind; /* file: the last part of it */
    int64_t line, fingerprint;      /* fingerprint: of all its code objects together */
    int64_t calls, self_ns, outcomes[OUTCOMES], lookups;
    int64_t entries, breaks, checks, guards_ns;
    struct function *moved; /* the same one in another file of the other trace, where this one is not */
};

struct side {
    struct db *db;      /* owned */
    struct arena arena; /* its texts */
    int64_t rank;       /* of --rank; -1: every process */
    LIST(struct function) functions; /* by key */
};

/* A function of A and the same one of B. */
struct pair {
    const struct function *a, *b;
};

struct diff {
    struct side a, b;
    LIST(struct pair) pairs;
    const char *glob; /* borrowed, or NULL */
    bool json, lookups, fail[KINDS];
    double tolerance;
    int64_t limit, rows, found[KINDS]; /* limit -1: all */
    struct table *table;               /* owned */
    struct progress progress;
};

/* The statement NAME of schemas/diff.sql, with --function and --rank as its ?1 and ?2. NULL: it was said why not. */
struct query *diff_ask(const struct diff *diff, const struct side *side, const char *name);

/* A column of SIDE's query as text, empty for NULL; NULL: no memory. What is said then: false. */
const char *diff_text(struct side *side, struct query *query, int column);
bool diff_no_memory(void);

/* A row: F is where; A and B what it is in each, NULL for "not there". */
void diff_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, const char *a,
              const char *b);

/* Both sides' functions, by key. Differences of these kinds as rows. False: it was said why not. */
bool diff_read(struct diff *diff, struct side *side);
bool diff_functions(struct diff *diff);
bool diff_reasons(struct diff *diff);
bool diff_lookups(struct diff *diff);

/* After all else, because every run differs in this: what changed most comes first. */
void diff_times(struct diff *diff);

/* The last part of the file in which B has the function that A has as NAME in FILE. */
const char *diff_file(const struct diff *diff, const char *name, const char *file);

#endif

/* cmd/diff/diff.h -- what the parts of `dyntrace diff` share.
 *
 * Runs in: the viewer.
 *
 * cmd/diff.c       the command; functions and what there is of them
 * cmd/diff/reasons.c   why they were compiled again, and where graphs broke
 * cmd/diff/lookups.c   lookup by lookup */
#ifndef DYNTRACE_DIFF_H
#define DYNTRACE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/progress.h"
#include "vocabulary.h"

struct db;
struct query;
struct table;

enum { DIFF_TICK = 1 << 15 };

enum kind { FUNCTION, CODE, OUTCOME, ENTRY, REASON, BREAK, GUARD, TIME, LOOKUP, KINDS };

struct function {
    char *name, *file, *kind;  /* owned; file: the last part of it */
    int64_t line, fingerprint; /* fingerprint: of all its code objects together */
    int64_t calls, self_ns, outcomes[OUTCOMES], lookups;
    int64_t entries, breaks, checks, guards_ns;
    struct function *moved; /* borrowed: the same one in another file of the other trace, where this one is not */
};

struct code {
    int64_t id;
    struct function f; /* owns its texts until they are given to a side */
};

struct side {
    struct db *db;              /* owned */
    int64_t rank;               /* of --rank; -1: every process */
    struct code *codes;         /* owned, by id */
    size_t code_count;
    struct function *functions; /* owned, by key */
    size_t function_count;
};

/* A function of A and the same one of B. */
struct pair {
    const struct function *a, *b; /* borrowed from the sides */
};

struct diff {
    struct side a, b;
    struct pair *pairs;           /* owned */
    size_t pair_count;
    const char *glob; /* borrowed, or NULL */
    bool json, lookups, fail[KINDS];
    double tolerance;
    int64_t limit, rows, found[KINDS]; /* limit -1: all */
    struct table *table;               /* owned */
    struct progress progress;
};

/* Code of the processes that are meant; ?2 is the rank. */
#define OF_RANK "(?2 IS NULL OR c.process_id IN (SELECT process_id FROM process WHERE rank = ?2))"

/* --function as parameter FIRST, --rank as the next one; NULL where not given. */
void diff_bind(const struct diff *diff, const struct side *side, struct query *query, int first);

/* A row: F is where; A and B what it is in each, NULL for "not there". */
void diff_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, const char *a, const char *b);

/* The last part of the file in which B has the function that A has as NAME in FILE. */
const char *diff_file(const struct diff *diff, const char *name, const char *file);

void function_free(struct function *f);

/* Differences of these kinds as rows. False: it was said why not. */
bool diff_reasons(struct diff *diff);
bool diff_lookups(struct diff *diff);

#endif

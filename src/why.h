/* why.h -- the facts that `dyntrace why` tells: gathered by why.c, written by cmd_why.c.
 *
 * Runs in: the viewer.
 *
 *     struct why why = {.db = db_open(path), .out = stdout};
 *     if (find_code(why.db, name, &why.code, ...) == FIND_ONE) {
 *         why_gather(&why);
 *         ... unless why.failed, everything below is filled in
 *     }
 *     why_free(&why); */
#ifndef DYNTRACE_WHY_H
#define DYNTRACE_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "find_code.h"
#include "progress.h"
#include "remedy.h"

enum { WHY_REMEDIES = 4, WHY_VALUES = 12, WHY_WIDTH = 70 }; /* remedies, values of a history, bytes of a value that are told */

struct call_class { /* calls that were decided alike */
    enum outcome_kind outcome;
    int64_t entry_id;      /* hits: the entry; else 0 */
    char *entry;           /* owned: its label, or NULL */
    int64_t calls, first_ns, last_ns, lookup_ns;
    bool timed;            /* the times are known */
};

struct entry {
    int64_t entry_id, code_id, compile_id, guards, born_ns, died_ns, tried, mismatched, check_ns, hits, first_hit_ns,
        last_hit_ns, lookup_ns;
    char *label, *backend, *death; /* owned */
    bool died;
};

struct compile {
    int64_t compile_id, code_id, entry_id, start_ns, end_ns, signature_id;
    char *label, *outcome, *reason, *inputs; /* owned */
    bool ended, recompile;                   /* recompile: an older compile of the same code object is known */
    size_t first_cause, causes;
};

struct cause {
    int64_t compile_id, entry_id;
    char *entry, *kind, *source, *expected, *actual, *text; /* owned */
    bool observed;
};

struct history { /* what a source that decided recompiles was */
    const char *kind, *source; /* borrowed from a cause */
    const struct cause *cause; /* the last one, borrowed */
    char *aspect;              /* owned: what of the source, "size[0]", or NULL */
    int64_t code_id, recompiles;
    char *values, *json;       /* owned: "16, 18", ["16", "18"] */
};

struct failed_guard {
    char *entry, *kind, *source, *expression, *result; /* owned */
    int64_t times;
};

struct graph_break {
    char *reason, *resume; /* owned */
    int64_t line, times;
};

struct input {
    char *text; /* owned */
    int64_t calls;
};

struct remedy {
    const char *name;
    char *text; /* owned */
};

/* A growing array: `items` owned, each of its kind's size. */
#define LIST(type) struct { type *items; size_t count, room; }

struct ask {
    const char *title; /* borrowed: what it answers */
    char *sql;         /* owned */
};

struct why {
    struct db *db; /* owned */
    struct found_code code;
    FILE *out;     /* borrowed */
    bool json, sql, failed;
    struct progress progress;
    LIST(struct ask) asked;
    LIST(struct call_class) calls;
    LIST(struct entry) entries;
    LIST(struct compile) compiles;
    LIST(struct cause) causes;
    LIST(struct history) histories;
    LIST(struct failed_guard) guards;
    LIST(struct graph_break) breaks;
    LIST(struct input) inputs; /* of the calls that found no entry and ran as Python */
    LIST(struct remedy) remedies;
    int64_t all_calls;         /* of the function, looked up or not; -1 unknown */
    int64_t total_ns;          /* time in it, -1 unknown */
    int64_t undecided;         /* calls without a lookup that were not told apart */
    int64_t checks, check_ns;
    int64_t different_inputs;  /* of all misses, 0: not known */
    bool missing;              /* the recording lost events */
};


/* Fill in all lists. WHY->failed: it was said what went wrong. */
void why_gather(struct why *why);

/* Frees all that WHY owns; it may be half filled. */
void why_free(struct why *why);

/* How many calls had this outcome. */
int64_t why_calls(const struct why *why, enum outcome_kind outcome);

/* The compiler gave code. */
bool compile_made(const struct compile *compile);

/* What of the source a cause is about, "size[0]", owned by the caller; NULL where
 * it is about all of it. Then where the value begins in `expected` and `actual`:
 * 10 for "size[0] = 16". */
char *cause_aspect(const struct cause *cause);
int cause_value_at(const struct cause *cause);

#endif

/* trace/why/why.h -- the facts that `dyntrace why` tells: gathered by trace/why/why.c and trace/why/torch.c, with what follows from them
 * (trace/why/follow.c); written by cmd/why.c, and by trace/why/json.c for programs.
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

#include "trace/find_code.h"
#include "lib/progress.h"
#include "trace/cause.h"
#include "trace/remedy.h"

enum {
    WHY_REMEDIES = 4,       /* told */
    WHY_TORCH_REMEDIES = 6, /* of a program that uses torch */
    WHY_VALUES = 12,        /* of a history */
    WHY_WIDTH = 70,         /* bytes of a value that are told */
    WHY_RESTS = 16,         /* functions made for the rest after a graph break that are looked into */
};

struct call_class { /* calls that were decided alike */
    enum outcome outcome;
    int64_t entry_id;      /* hits: the entry; else 0 */
    char *entry;           /* owned: its label, or NULL */
    int64_t calls, first_ns, last_ns, lookup_ns;
    bool timed;            /* the times are known */
};

struct entry {
    int64_t entry_id, code_id, compile_id, guards, born_ns, died_ns, tried, mismatched, check_ns, hits, first_hit_ns,
        last_hit_ns, lookup_ns, region_id;
    char *label, *backend, *death; /* owned */
    bool died, in_region;          /* in_region: only calls of that region see it */
};

struct parent { /* the recompile of a caller, or of what was before the graph break, that a recompile follows from */
    int64_t compile_id;                              /* 0: none is known */
    char *function, *label, *source, *wanted, *seen; /* owned; LABEL and values may be NULL */
};

struct compile {
    int64_t compile_id, code_id, entry_id, start_ns, end_ns, signature_id, frame_id, thread_id;
    struct parent parent;
    int64_t rank;                            /* of a distributed job, -1 outside one */
    int sticky;                              /* 1: never asked again, 0: asked again, -1: not known */
    char *label, *outcome, *reason, *inputs; /* owned */
    bool ended, recompile;                   /* recompile: an older compile of the same code object is known */
    size_t first_cause, causes;
};

struct history { /* what a source that decided recompiles was */
    const char *kind, *source; /* borrowed from a cause */
    const struct cause *cause; /* the last one, borrowed */
    char *aspect;              /* owned: what of the source, "size[0]", or NULL */
    int64_t code_id, recompiles;
    int64_t refused;           /* attempts that made no code */
    char *values, *json;       /* owned: "16, 18", ["16", "18"] */
};

struct failed_guard {
    char *entry, *kind, *source, *expression, *result; /* owned */
    int64_t times;
};

struct graph_break { /* those alike are one */
    char *reason, *resume, *stack; /* owned: RESUME the name of the function for the rest, STACK the user's frames */
    int64_t line, times;
    struct rest *rest;             /* borrowed: that function, or NULL */
};

struct rest { /* what runs after a graph break, a function of its own */
    char *qualname, *filename; /* owned */
    char *ids;                 /* owned: its code ids for an SQL list */
    int64_t first_line, calls, compiles, entries, recompiles, compile_ns, eager, lookup_ns;
};

struct phase { /* of all compiles of the function */
    char *name;     /* owned */
    int64_t times, total_ns, self_ns;
    bool late;      /* compiled on its own, as backward graphs are */
};

struct mark { /* since when calls are not compiled */
    char *action, *callees, *reason; /* owned */
    int64_t at_ns, region_id;
    bool in_region;
};

struct rank { /* of a distributed job */
    int64_t rank, compiles;
};

struct torch_facts { /* of the processes that the function was seen in */
    int version;                /* torch_version(), of the oldest; 0: none uses torch */
    char *text, *mode, *note;   /* owned: that version, how it was watched, why not otherwise */
    int64_t versions, modes;    /* different ones */
    bool observed;              /* in some process only what can be seen from outside is known */
    bool off;                   /* in some process torch's compiler was not watched */
};

struct input {
    char *text; /* owned */
    int64_t calls;
};

struct remedy {
    const char *name;
    char *text;     /* owned */
    int effort;     /* struct remedy_case */
    char *settings; /* owned: as `replay --what-if` takes them, or NULL where none fits */
    const struct cause *cause; /* borrowed: which they stand for, or NULL */
    bool predicted; /* what follows is what would come of them */
    int64_t compiles, eager;             /* as recorded */
    int64_t would_compile, would_eager;
    int64_t undecided, unrecorded, gone; /* calls: guesses; of which the trace has nothing; not looked up any more */
};

struct forbidder { /* a caller for whose sake calls are not compiled */
    char *function, *reason; /* owned; REASON may be NULL */
    int64_t calls;           /* of those that were looked into */
};

struct guard_cost { /* of guards of a kind, estimated: each of an entry's guards takes the same */
    char *kind; /* owned */
    int64_t guards, ns;
};

/* A growing array: `items` owned, each of its kind's size. */
#define LIST(type) struct { type *items; size_t count, room; }

struct ask {
    const char *title; /* borrowed: what it answers */
    char *sql;         /* owned */
};

struct query;

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
    LIST(struct phase) phases; /* dearest first */
    LIST(struct mark) marks;
    LIST(struct rank) ranks;
    struct rest rests[WHY_RESTS];
    size_t rest_count;
    struct torch_facts torch;
    LIST(struct remedy) remedies;
    LIST(struct forbidder) forbidders;
    LIST(struct guard_cost) costs; /* dearest first; of slow guards only */
    char *disabled_by;         /* owned: the function in which a graph break says that this one is disabled, or NULL */
    char *disabled_words;      /* owned: what it says */
    int64_t disabled_line;
    bool force_whatif;         /* also on a long trace */
    bool long_trace;           /* what-ifs would take long: not answered */
    int64_t guard_ns, guard_calls; /* time in guards over that many calls */
    int64_t share_ns, share_of_ns; /* lookup and all of a usual call that hit; or guards and the time but for compiles */
    bool share_of_hits;
    bool guards_slow;
    int64_t all_calls;         /* of the function, looked up or not; -1 unknown */
    int64_t total_ns;          /* time in it, -1 unknown */
    int64_t undecided;         /* calls without a lookup that were not told apart */
    int64_t checks, check_ns;  /* of guards; CHECK_NS is of TIMED_CHECKS of them */
    int64_t timed_checks;
    int64_t different_inputs;  /* of all misses, 0: not known */
    bool missing;              /* the recording lost events */
};


/* Fill in all lists. WHY->failed: it was said what went wrong. */
void why_gather(struct why *why);

/* Frees all that WHY owns; it may be half filled. */
void why_free(struct why *why);

/* How many calls had this outcome. */
int64_t why_calls(const struct why *why, enum outcome outcome);

/* "as Python" or "eagerly": how calls run that no compiled code is for. */
const char *why_python(const struct why *why);

/* Compiles that made code although older code was there. */
int64_t why_recompiles(const struct why *why);

/* What guards take of a call, in percent; -1: not known. */
double why_guard_share(const struct why *why);

/* All of it as JSON. */
void why_json(struct why *why);

/* Why it gave no code, or NULL: some only say why it was asked. */
const char *compile_refusal(const struct compile *compile);

/* The compiler looked at the function and gave none: a mark without a reason is its, not somebody's who asked for it. */
bool why_turned_away(const struct why *why);

/* The compiler gave code. */
bool compile_made(const struct compile *compile);

/* An older entry that lived and was not looked at, because it belongs to another region than the one that COMPILE made. */
const struct entry *why_other_region(const struct why *why, const struct compile *compile);

/* ---- between the parts that gather ----------------------------------------- */

/* The next free item, zeroed; NULL when out of memory (and `failed` is set). */
void *why_grow(struct why *why, void **items, size_t *count, size_t *room, size_t size);
#define ADD(why, list) \
    ((__typeof__((why)->list.items))why_grow(why, (void **)&(why)->list.items, &(why)->list.count, &(why)->list.room, \
                                             sizeof *(why)->list.items))

/* Ask for the rows of SQL, in which every "$codes" stands for the ids of the function's code objects. TITLE says
 * what it answers, for --sql. NULL: it was said why not. why_asked() ends it. */
struct query *why_ask(struct why *why, const char *title, const char *sql);
void why_asked(struct why *why, struct query *query);

struct compile *why_compile(struct why *why, int64_t compile_id);

void why_gather_torch(struct why *why);
void why_gather_parents(struct why *why); /* of recompiles, and callers that forbid compiling */
void why_gather_cost(struct why *why);    /* of guards */
void why_follow(struct why *why);         /* histories and remedies */

/* The setting of a what-if that raises the limit enough, which the caller frees; NULL: none does. */
char *why_settings_limit(const struct why *why, const struct remedy_facts *facts);

/* What would come of the remedies that have settings. */
void why_whatif(struct why *why);

#endif

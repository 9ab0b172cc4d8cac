/* trace/why/why.h -- what `dyntrace why` says of a function: the facts, and what follows from them.
 *
 * Runs in: the viewer.
 *
 *     struct why why = {.db = db_open(path)};
 *     if (find_code(why.db, name, &why.code, ...) == FIND_ONE) {
 *         why_gather(&why);
 *         ... unless why.failed, everything below is filled in
 *     }
 *     why_free(&why);
 *
 * why.c, torch.c, parent.c and guards.c gather, follow.c and whatif.c conclude; cmd/why.c prints it for people, and
 * fields.c for programs. A member is called as the column that it is read from (schemas/why.sql) and as its key in
 * JSON. */
#ifndef DYNTRACE_WHY_H
#define DYNTRACE_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/list.h"
#include "lib/say.h"
#include "trace/cause.h"
#include "trace/counts.h"
#include "trace/find_code.h"
#include "trace/remedy.h"

enum {
    WHY_REMEDIES = 4,       /* named at most */
    WHY_TORCH_REMEDIES = 6, /* of a program that uses torch */
    WHY_VALUES = 12,        /* of a history */
    WHY_WIDTH = 70,         /* longest value printed, in bytes */
};

#define UNKNOWN INT64_MIN /* an integer that is NULL in the trace, where that differs from 0 */

struct call_class { /* calls that were decided alike */
    int64_t outcome, cache_entry_id; /* the entry of hits, else 0 */
    int64_t calls, first_ns, last_ns, lookup_ns;
    const char *entry; /* its label, or NULL */
};

struct entry {
    int64_t cache_entry_id, code_id, compile_id, guards, born_ns, tried, backend_mismatches, check_ns, hit,
        first_hit_ns, last_hit_ns, lookup_ns;
    int64_t died_ns;   /* UNKNOWN: alive */
    int64_t region_id; /* UNKNOWN: every region sees it */
    const char *label, *backend, *death_cause;
};

struct parent { /* the recompile of a caller, or of what ran before the graph break, that a recompile follows from */
    int64_t compile_id; /* 0: none is known */
    const char *function, *label, *source, *expected, *actual; /* label and values may be NULL */
};

struct compile {
    int64_t compile_id, code_id, cache_entry_id, start_ns, signature_id, frame_id, thread_id;
    int64_t end_ns, rank; /* or UNKNOWN */
    int64_t sticky;       /* 1: never asked again, 0: asked again, or UNKNOWN */
    const char *label, *outcome, *reason, *inputs;
    struct parent follows_from;
    bool recompile; /* it made code although older code was there: view `compiles` */
    size_t first_cause, causes;
};

struct history { /* what a source that decided recompiles was */
    const char *kind, *source, *aspect; /* aspect: what of the source, "size[0]", or NULL */
    const struct cause *cause;          /* the last one, borrowed */
    int64_t code_id, recompiles;
    int64_t refused; /* attempts that made no code */
    const char *text, *values; /* "16, 18", ["16", "18"] */
};

struct failed_guard {
    const char *result, *entry, *kind, *source, *expression;
    int64_t times;
};

struct rest { /* a resume function: what runs after a graph break. Figures are UNKNOWN where the trace has none */
    const char *resume_function, *filename;
    int64_t first_line, rest_calls, rest_eager_calls, rest_compiles, rest_entries, rest_recompiles, rest_compile_ns,
        rest_lookup_ns;
};

struct graph_break { /* those alike are one */
    const char *reason, *user_stack;
    int64_t line, times;
    struct rest rest;
};

struct phase { /* of all compiles of the function */
    const char *name;
    int64_t times, total_ns, self_ns;
    bool late; /* compiled on its own, as backward graphs are */
};

struct mark { /* from when on calls are not compiled */
    const char *action, *recursive_action, *reason;
    int64_t at_ns, region_id; /* region_id: or UNKNOWN */
};

struct rank { /* of a distributed job */
    int64_t rank, compiles;
};

struct torch_facts { /* of the processes that the function was seen in */
    int number;             /* torch_version() of the oldest version; 0: no torch */
    const char *version, *mode, *note; /* that version, how it was watched, why not otherwise */
    int64_t versions, modes; /* different ones */
    bool observed;           /* some process was only observed from outside */
    bool off;                /* in some process torch's compiler was not watched */
};

struct input {
    const char *inputs;
    int64_t calls;
};

struct remedy {
    const char *name, *text;
    const char *what_if; /* settings as `replay --what-if` takes them, or NULL where none fits */
    const struct cause *cause; /* that they stand for, or NULL */
    enum remedy_effort effort;
    bool predicted; /* what follows is known */
    int64_t compiles, eager; /* as recorded */
    int64_t predicted_compiles, predicted_eager;
    int64_t undecided, unrecorded, gone; /* calls: guesses; of which the trace has nothing; not looked up any more */
};

struct forbidder { /* a caller because of which calls are not compiled */
    const char *function, *reason; /* reason: or NULL */
    int64_t calls; /* of those that were looked into */
};

struct guard_cost { /* of guards of a kind, estimated: each of an entry's guards takes the same */
    const char *kind;
    int64_t guards, estimated_ns;
};

struct ask { /* a question that was put to the trace */
    const char *title, *sql;
};

struct query;

struct why {
    struct db *db; /* owned */
    struct found_code code;
    struct arena arena; /* all texts below */
    bool failed, with_sql;
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
    LIST(struct phase) phases; /* most expensive first */
    LIST(struct mark) marks;
    LIST(struct rank) ranks;
    LIST(struct remedy) remedies;
    LIST(struct forbidder) forbidders;
    LIST(struct guard_cost) costs; /* most expensive first; of slow guards only */
    struct torch_facts torch;
    const char *disabled_by;    /* the function in which a graph break says that this one is disabled, or NULL */
    const char *disabled_words; /* what it says */
    int64_t disabled_line;
    bool force_whatif;             /* also on a long trace */
    bool long_trace;               /* what-ifs would take long: not answered */
    int64_t guard_ns, guard_calls; /* time in guards over that many calls */
    int64_t share_ns,
        share_of_ns; /* lookup and all of a usual call that hit; or guards and the time but for compiles */
    bool share_of_hits;
    bool guards_slow;
    int64_t all_calls;        /* of the function, looked up or not; or UNKNOWN */
    struct call_sums shared;  /* of those that count in shares, as check --function counts: docs/answers.md */
    int64_t total_ns;         /* time in it, or UNKNOWN */
    int64_t undecided;        /* calls without a lookup whose outcome is not known */
    int64_t checks, check_ns; /* of guards; check_ns is of timed_checks of them */
    int64_t timed_checks;
    int64_t different_inputs; /* of all misses, 0: not known */
    bool missing;             /* the recording lost events */
};

/* Fill in all lists. WHY->failed: it was said what went wrong. */
void why_gather(struct why *why);

/* Frees all that WHY owns; it may be half filled. */
void why_free(struct why *why);

/* All of it as JSON. */
void why_json(struct why *why, FILE *out);

/* How many calls had this outcome; how many compiles made code, and how many of those although older code was there. */
int64_t why_calls(const struct why *why, enum outcome outcome);
int64_t why_made(const struct why *why);
int64_t why_recompiles(const struct why *why);

/* What guards take of a call, in percent; -1: not known. */
double why_guard_share(const struct why *why);

/* The compiler gave code. */
bool compile_made(const struct compile *compile);

/* Why it gave no code, or NULL: some reasons only say why it was asked. */
const char *compile_refusal(const struct why *why, const struct compile *compile);

/* The compiler looked at the function and gave none: a mark without a reason is its, not one that somebody asked for.
 * */
bool why_turned_away(const struct why *why);

/* An older entry that lived and was not looked at, because it belongs to another region than the one that COMPILE
 * made. */
const struct entry *why_other_region(const struct why *why, const struct compile *compile);

/* ---- between the parts that gather ----------------------------------------- */

/* A new item of a list; NULL when out of memory, which is said. */
#define ADD(why, list) ((__typeof__((why)->list.at))why_added(why, list_add(&(why)->list)))
void *why_added(struct why *why, void *item);

/* The member NAME of a fact, and how it is read from a column of that name and written as JSON. */
struct field {
    const char *name;
    enum field_kind {
        INTEGER, /* NULL reads as 0 */
        ID,      /* the same, and 0 is null in JSON */
        MAYBE,   /* NULL is UNKNOWN */
        TEXT,
        TRUTH,   /* bool */
        OUTCOME, /* a number, in JSON its word */
        HOW,     /* bool, in JSON "observed" or "rechecked" */
        VALUES,  /* a text that is JSON */
        PARENT,  /* struct parent: an object, or null */
        REST,    /* struct rest: its members */
    } kind;
    size_t offset;
    bool hidden; /* not in JSON */
};
extern const struct field entry_fields[], compile_fields[], parent_fields[], cause_fields[], input_fields[],
    mark_fields[], rank_fields[], forbidder_fields[], guard_fields[], break_fields[], rest_fields[], torch_fields[],
    why_fields[];

/* Ask the statement NAME, such as "why/entries". NULL: it was said why not. why_asked() ends it. */
struct query *why_ask(struct why *why, const char *name);
void why_asked(struct why *why, struct query *query);

/* The next row of QUERY into ITEM, as far as FIELDS name its columns. */
bool why_row(struct why *why, struct query *query, const struct field *fields, void *item);

/* The text in a column of the current row, NULL for NULL. */
const char *why_text(struct why *why, struct query *query, int column);

/* "L['x'] size[0]": what a cause is about, and what of it. */
const char *cause_name(struct why *why, const struct cause *cause);

/* OWNED is freed; a copy that lives as long as WHY. */
const char *why_keep(struct why *why, char *owned);

/* All rows of the statement NAME, as they are. */
#define READ(why, list, name, fields)                                              \
    do {                                                                           \
        struct query *query_ = why_ask(why, name);                                 \
        while (query_step(query_) && why_row(why, query_, fields, ADD(why, list))) \
            ;                                                                      \
        why_asked(why, query_);                                                    \
    } while (0)

void why_gather_torch(struct why *why);
void why_gather_parents(struct why *why); /* of recompiles, and callers that forbid compiling */
void why_gather_cost(struct why *why);    /* of guards */
void why_follow(struct why *why);         /* histories and remedies */

/* The setting of a what-if that is a higher limit; NULL: none fits. */
const char *why_settings_limit(struct why *why, const struct remedy_facts *facts);

/* What would come of the remedies that have settings. */
void why_whatif(struct why *why);

#endif

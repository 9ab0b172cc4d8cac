/* facts.h -- facts: records that a traced process writes for the collector, outside its rings.
 *
 * Runs in: the traced process (writes) and the collector (reads).
 *
 * Facts must never be lost or overwritten: names of code objects, guards, compiles. They lie in the
 * process's file (ring.h), in the order in which they were written, and are read again when a
 * session is recovered.
 *
 * A fact is a struct, numbers first, then texts. The process writes one by tracer_fact(GUARD,
 * .entry = 3, ...), and fact_read() gives the collector the same struct. FACTS has the number of
 * numbers and texts of each kind. To add a fact, add a row to FACTS, its struct, its writer, and
 * its reader in collector/facts.c. Ids are given by the process and count from 0 for each kind;
 * clocks are the session's. */
#ifndef DYNTRACE_FACTS_H
#define DYNTRACE_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The kinds of facts: X(number, NAME, number of integer members, number of text members) */
/* clang-format off */
#define FACTS(X) \
    X(1, ARGV, 0, 1) X(2, EXECUTABLE, 0, 1) X(3, PYTHON, 0, 1) X(4, CODE, 5, 2) X(5, THREAD, 2, 1) \
    X(6, LOSS, 2, 1) X(7, RANK, 2, 0) X(8, ENTRY, 5, 2) X(9, GUARD, 2, 4) X(10, ASKED, 3, 0) \
    X(11, COMPILE, 4, 3) X(12, COMPILED, 2, 0) X(13, CAUSE, 5, 6) X(14, ORDER, 2, 1) \
    X(15, DEATH, 2, 1) X(16, SIGNATURE, 1, 1) X(17, TORCH, 0, 3) X(18, NOTE, 2, 3) \
    X(19, GRAPH, 1, 2) X(20, BREAK, 5, 2) X(21, LISTING, 1, 2) X(22, PHASE, 3, 2) \
    X(23, ORIGIN, 2, 1) X(24, MARK, 5, 1) \
    X(25, SETTING, 1, 1) X(26, SPAN_END, 2, 0) X(27, UNCAUGHT, 3, 1)
/* clang-format on */

struct fact_text {
    const char *text; /* borrowed; NULL if there is no text, which the trace stores as NULL */
    int64_t bytes;
};

static inline struct fact_text fact_make_text(const char *text)
{
    return (struct fact_text){text, text ? (int64_t)strlen(text) : 0};
}

struct fact_ARGV {
    struct fact_text argv; /* all arguments, each with its NUL, as in /proc/PID/cmdline */
};
struct fact_EXECUTABLE {
    struct fact_text path;
};
struct fact_PYTHON {
    struct fact_text version; /* the first word of sys.version */
};
/* Bits of fact_CODE.place. They tell code of libraries from the program's own code. */
enum code_place {
    /* the code is in the standard library or an installed package, or was generated */
    CODE_OF_LIBRARY = 1,
    CODE_OF_IMPORT = 2 /* the code is the body of a torch module, which runs at its import */
};
struct fact_CODE {
    int64_t code, first_line, flags, fingerprint, place /* enum code_place */;
    struct fact_text qualname, filename;
};
struct fact_THREAD {
    int64_t thread /* the same id as in CONTROL_THREAD */, os_tid;
    struct fact_text name;
};
struct fact_LOSS {
    int64_t clock, events;
    struct fact_text cause;
};
struct fact_RANK {
    int64_t rank, local_rank; /* -1 if the rank is not known */
};

/* Facts about the shim's decisions: entries, guards, compiles, causes. */
struct fact_ENTRY {
    int64_t entry, code, clock, guards, region /* -1: all regions use the entry */;
    struct fact_text label, backend;
};
struct fact_GUARD {
    int64_t entry, ordinal;
    struct fact_text kind, source, expression, stack;
};
struct fact_ASKED {
    /* the fact ASKED of a compile is written before all other facts of the compile */
    int64_t compile, code, clock;
};
struct fact_COMPILE {
    int64_t compile, code, began, ended;
    struct fact_text label, outcome, reason;
};
struct fact_COMPILED {
    int64_t compile, entry; /* compile number `compile` made cache entry number `entry` */
};
enum fact_how {
    CAUSE_DECIDED /* this guard failed, which ended the check */,
    CAUSE_ALSO /* would have failed, too, but the check ended before this guard */,
    CAUSE_ASKED /* found by a second check after the lookup */,
    CAUSE_CUT /* not a cause: the search for further causes ran out of time */
};
struct fact_CAUSE {
    /* guard: ordinal of the guard; -1: unknown; -2: no guard, because `how` is CAUSE_CUT */
    int64_t compile, entry, guard, how /* enum fact_how */, dimension /* -1: none */;
    struct fact_text kind, source /* "": the guard's own source */, aspect, expected, actual, words;
};
struct fact_ORDER {
    int64_t entry, clock;
    struct fact_text ordinals; /* JSON array of the guards' ordinals, in the order of checking */
};
struct fact_DEATH {
    int64_t entry, clock;
    struct fact_text cause;
};
struct fact_SIGNATURE {
    int64_t signature;
    struct fact_text text;
};

/* Facts from torch's bridge (tracer/torch/bridge.c). */
struct fact_TORCH {
    struct fact_text version, mode, why;
};
struct fact_NOTE {
    int64_t compile, sticky /* 1: later calls, too; 0: this call only; -1: not known */;
    struct fact_text label, outcome, reason;
};
struct fact_GRAPH {
    int64_t compile;
    struct fact_text name, nodes /* five texts for each node, with their NULs */;
};
struct fact_BREAK {
    /* rest: code id of the resume function, or -1 if it is not known. line and offset: -1 if not
     * known */
    int64_t compile, code, line, offset, rest;
    struct fact_text reason, stack;
};
struct fact_LISTING {
    int64_t compile;
    struct fact_text kind, text;
};
struct fact_PHASE {
    int64_t compile /* -1: outside a compile */, start, end /* wall clock, ns */;
    struct fact_text name, label;
};
struct fact_ORIGIN {
    int64_t code, from /* -1: none */;
    struct fact_text kind;
};
struct fact_MARK {
    int64_t code, clock, own, callees, region /* -1: in all regions */;
    struct fact_text reason;
};

/* Whether a setting of `run --set` could be used. */
struct fact_SETTING {
    int64_t setting;      /* index of the setting, from 0 */
    struct fact_text why; /* why the setting could not be used; "" if it was */
};

/* The program's main module ended with an exception. If there are several such facts, the last one
 * counts. */
struct fact_UNCAUGHT {
    int64_t clock, code /* code of the program's innermost line; -1: not known */, line;
    /* name of the exception's class; NULL cancels the earlier facts of this kind */
    struct fact_text type;
};

/* A span ended while its thread's ring had no room for a CONTROL_SPAN_END. */
struct fact_SPAN_END {
    int64_t span, clock;
};

enum fact_kind {
#define X(number, NAME, ...) FACT_##NAME = number,
    FACTS(X)
#undef X
        FACT_KINDS
};

static const struct {
    uint8_t numbers, texts;
} fact_shapes[FACT_KINDS] = {
#define X(number, NAME, numbers, texts) [number] = {numbers, texts},
    FACTS(X)
#undef X
};
#define X(number, NAME, numbers, texts)                                                            \
    _Static_assert(sizeof(struct fact_##NAME) == (numbers)*8 + (texts) * sizeof(struct fact_text), \
                   #NAME);
FACTS(X)
#undef X

/* A decoded fact of any kind. */
union fact_any {
#define X(number, NAME, ...) struct fact_##NAME NAME;
    FACTS(X)
#undef X
    int64_t numbers[5];
};

/* The layout of a fact in the file: this header, then the texts. */
struct fact {
    uint32_t bytes; /* size of the whole record, a multiple of 8 */
    uint16_t kind, reserved;
    /* Written by the collector: the code_id or thread_id of the row it inserted. For an entry,
     * row_more is the id of its first guard. */
    uint32_t row_id, row_more;
    int64_t number[]; /* the integer members, followed by the length of each text */
};

/* Return the size of the record for FACT, a struct fact_KIND. */
static inline size_t fact_size(enum fact_kind kind, const void *fact)
{
    const struct fact_text *texts =
        (const struct fact_text *)((const int64_t *)fact + fact_shapes[kind].numbers);
    size_t bytes = sizeof(struct fact) + 8u * (fact_shapes[kind].numbers + fact_shapes[kind].texts);

    for (unsigned i = 0; i < fact_shapes[kind].texts; i++)
        bytes += (size_t)texts[i].bytes;
    return (bytes + 7) & ~(size_t)7;
}

/* Write FACT, a struct fact_KIND, into the record MADE of BYTES bytes (fact_size). */
static inline void fact_write(struct fact *made, enum fact_kind kind, const void *fact,
                              size_t bytes)
{
    unsigned numbers = fact_shapes[kind].numbers;
    unsigned texts = fact_shapes[kind].texts;
    const struct fact_text *text = (const struct fact_text *)((const int64_t *)fact + numbers);
    char *to = (char *)(made->number + numbers + texts);

    *made = (struct fact){.bytes = (uint32_t)bytes, .kind = (uint16_t)kind};
    memcpy(made->number, fact, numbers * sizeof *made->number);
    for (unsigned i = 0; i < texts; to += text[i++].bytes) {
        made->number[numbers + i] = text[i].bytes;
        if (text[i].bytes)
            memcpy(to, text[i].text, (size_t)text[i].bytes);
    }
}

/* Decode RECORD into the struct MADE, whose texts point into RECORD. Returns false if RECORD is
 * malformed. */
static inline bool fact_read(const struct fact *record, union fact_any *made)
{
    bool known = record->kind && record->kind < FACT_KINDS;
    unsigned numbers = known ? fact_shapes[record->kind].numbers : 0;
    unsigned texts = known ? fact_shapes[record->kind].texts : 0;
    struct fact_text *text = (struct fact_text *)(made->numbers + numbers);
    const char *at = (const char *)(record->number + numbers + texts);
    const char *end = (const char *)record + record->bytes;

    if (record->bytes < sizeof *record || at > end)
        return false;
    memcpy(made->numbers, record->number, numbers * sizeof *record->number);
    for (unsigned i = 0; i < texts; at += text[i++].bytes) {
        text[i] = (struct fact_text){at, record->number[numbers + i]};
        if (text[i].bytes < 0 || text[i].bytes > end - at)
            return false;
    }
    return known;
}

#endif

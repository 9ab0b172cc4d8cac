/* facts.h -- records from a traced process to the collector, beside its rings.
 *
 * Runs in: the traced process (writes) and the collector (reads).
 *
 * Facts must never be lost or overwritten: names of code objects, guards, compiles. They lie in the
 * process's file (ring.h), in the order in which they were written, and are read again when a
 * session is recovered.
 *
 * A fact is a struct, numbers first, then texts: the process fills it in, tracer_fact(GUARD, .entry
 * = 3, ...), and the collector has the same again from fact_read(). FACTS counts the members of
 * each. To add a fact: a row there, its struct, its writer, and its reader in collector/facts.c.
 * Ids are the process's own, each kind from 0; clocks are the session's. */
#ifndef DYNTRACE_FACTS_H
#define DYNTRACE_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* X(number, NAME, numbers, texts) */
/* clang-format off */
#define FACTS(X) \
    X(1, ARGV, 0, 1) X(2, EXECUTABLE, 0, 1) X(3, PYTHON, 0, 1) X(4, CODE, 4, 2) X(5, THREAD, 2, 1) \
    X(6, LOSS, 2, 1) X(7, RANK, 2, 0) X(8, ENTRY, 5, 2) X(9, GUARD, 2, 4) X(10, ASKED, 3, 0) \
    X(11, COMPILE, 4, 3) X(12, COMPILED, 2, 0) X(13, CAUSE, 5, 6) X(14, ORDER, 2, 1) \
    X(15, DEATH, 2, 1) X(16, SIGNATURE, 1, 1) X(17, TORCH, 0, 3) X(18, NOTE, 2, 3) \
    X(19, GRAPH, 1, 2) X(20, BREAK, 5, 2) X(21, LISTING, 1, 2) X(22, PHASE, 3, 2) \
    X(23, ORIGIN, 2, 1) X(24, MARK, 5, 1) \
    X(25, SETTING, 1, 1)
/* clang-format on */

struct fact_text {
    const char *text; /* borrowed; NULL: none, where a row has NULL then */
    int64_t bytes;
};

static inline struct fact_text fact_string(const char *text)
{
    return (struct fact_text){text, text ? (int64_t)strlen(text) : 0};
}

struct fact_ARGV {
    struct fact_text argv; /* each with its NUL, as in /proc/PID/cmdline */
};
struct fact_EXECUTABLE {
    struct fact_text path;
};
struct fact_PYTHON {
    struct fact_text version; /* the first word of sys.version */
};
struct fact_CODE {
    int64_t code, first_line, flags, fingerprint;
    struct fact_text qualname, filename;
};
struct fact_THREAD {
    int64_t thread /* as in CONTROL_THREAD */, os_tid;
    struct fact_text name;
};
struct fact_LOSS {
    int64_t clock, events;
    struct fact_text cause;
};
struct fact_RANK {
    int64_t rank, local_rank; /* -1: not known */
};

/* The shim's. */
struct fact_ENTRY {
    int64_t entry, code, clock, guards, region /* -1: every region sees it */;
    struct fact_text label, backend;
};
struct fact_GUARD {
    int64_t entry, ordinal;
    struct fact_text kind, source, expression, stack;
};
struct fact_ASKED {
    int64_t compile, code, clock; /* written before any other fact of that compile */
};
struct fact_COMPILE {
    int64_t compile, code, began, ended;
    struct fact_text label, outcome, reason;
};
struct fact_COMPILED {
    int64_t compile, entry; /* which it made */
};
enum fact_how {
    CAUSE_DECIDED,
    CAUSE_ALSO /* would have failed as well */,
    CAUSE_ASKED /* decided, as a check afterwards showed */,
    CAUSE_CUT /* no cause: there was no time to ask all others */
};
struct fact_CAUSE {
    int64_t compile, entry, guard /* its ordinal, -1: none, -2: CAUSE_CUT */,
        how /* enum fact_how */, dimension /* -1: none */;
    struct fact_text kind, source /* "": the guard's */, aspect, expected, actual, words;
};
struct fact_ORDER {
    int64_t entry, clock;
    struct fact_text ordinals; /* in the order tried, a JSON array */
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
    int64_t compile, sticky /* 0, 1; -1: not known */;
    struct fact_text label, outcome, reason;
};
struct fact_GRAPH {
    int64_t compile;
    struct fact_text name, nodes /* five texts for each, with their NULs */;
};
struct fact_BREAK {
    int64_t compile, code, line, offset, rest /* -1: not known; REST: code */;
    struct fact_text reason, stack;
};
struct fact_LISTING {
    int64_t compile;
    struct fact_text kind, text;
};
struct fact_PHASE {
    int64_t compile /* -1: none */, start, end /* wall clock, ns */;
    struct fact_text name, label;
};
struct fact_ORIGIN {
    int64_t code, from /* -1: none */;
    struct fact_text kind;
};
struct fact_MARK {
    int64_t code, clock, own, callees, region /* -1: everywhere */;
    struct fact_text reason;
};

/* Of `run --set`: the setting was used, or why it cannot be. */
struct fact_SETTING {
    int64_t setting;      /* which, from 0 */
    struct fact_text why; /* "": it was used */
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

/* One of any kind. */
union fact_any {
#define X(number, NAME, ...) struct fact_##NAME NAME;
    FACTS(X)
#undef X
    int64_t numbers[5];
};

/* Layout in the file: this header, then the texts. */
struct fact {
    uint32_t bytes; /* of the whole record, a multiple of 8 */
    uint16_t kind, reserved;
    /* written by the collector: the code_id or thread_id it gave; of an entry also its first
     * guard's */
    uint32_t row_id, row_more;
    int64_t number[]; /* the numbers, then how long each text is */
};

/* Bytes of a record for FACT, struct fact_KIND. */
static inline size_t fact_bytes(enum fact_kind kind, const void *fact)
{
    const struct fact_text *texts =
        (const struct fact_text *)((const int64_t *)fact + fact_shapes[kind].numbers);
    size_t bytes = sizeof(struct fact) + 8u * (fact_shapes[kind].numbers + fact_shapes[kind].texts);

    for (unsigned i = 0; i < fact_shapes[kind].texts; i++)
        bytes += (size_t)texts[i].bytes;
    return (bytes + 7) & ~(size_t)7;
}

/* Make that record, of BYTES. */
static inline void fact_write(struct fact *made, enum fact_kind kind, const void *fact,
                              size_t bytes)
{
    unsigned numbers = fact_shapes[kind].numbers, texts = fact_shapes[kind].texts;
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

/* Decode a record of BYTES into its struct; the struct's texts point into the record. False:
 * malformed. */
static inline bool fact_read(const struct fact *record, union fact_any *made)
{
    bool known = record->kind && record->kind < FACT_KINDS;
    unsigned numbers = known ? fact_shapes[record->kind].numbers : 0,
             texts = known ? fact_shapes[record->kind].texts : 0;
    struct fact_text *text = (struct fact_text *)(made->numbers + numbers);
    const char *at = (const char *)(record->number + numbers + texts),
               *end = (const char *)record + record->bytes;

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

/* trace/whatif/like.h -- would the guards of one call's entry let another call pass?
 *
 * trace/whatif/learn.c reads what is known from the recorded checks and causes, and takes inputs and
 * guards apart when they are first needed; trace/whatif/like.c answers for trace/whatif/decide.c.
 *
 * A class is an entry that was recorded (its index: the calls that ran it), or, from entry_count on, one signature of
 * calls that ran none. */
#ifndef DYNTRACE_WHATIF_LIKE_H
#define DYNTRACE_WHATIF_LIKE_H

#include "replay.h"
#include "trace/whatif/whatif.h"

enum like { LIKE_NO, LIKE_GUESS_NO, LIKE_GUESS_YES, LIKE_YES };

/* What is taken for granted, in the order in which it is said. */
#define ASSUMPTIONS(X) \
    X(ALIKE, "Calls that ran one entry are alike: what some of them did with another entry, the others would do.") \
    X(SIGNATURE, "Calls whose inputs have one signature (types, shapes, small values) are alike, as far as guards look at" \
                 " inputs.") \
    X(DYNAMIC, "Code with a dynamic size has no other condition on it: a program that tests the size itself compiles more" \
               " often.") \
    X(AUTOMATIC, "torch makes a size or number dynamic once it changes (automatic_dynamic_shapes); with dynamic=False it" \
                 " does not.") \
    X(HIDDEN, "A guard looked at something that signatures do not show (an attribute, a global): which calls are alike is" \
              " a guess.") \
    X(DROPPED, "Without the guard the code is right for all the calls that it told apart. That is for you to know.") \
    X(LAMBDA, "Some guards are functions of the program: which calls an entry that was not recorded would take is a" \
              " guess.") \
    X(TIMES, "A compile takes as long as recorded, or as others of its function; a guard check as long as others of its" \
             " entry. How long calls run is not predicted.") \
    X(LIMIT, "The limit of entries is not recorded, and no call met it: 8, the default, or as many as there were.") \
    X(GROUPS, "A trace does not record of which torch.compile() a call was, or of which of two backends with one name:" \
              " calls of one backend's name are taken for one.") \
    X(SMALL, "torch compiles sizes 0 and 1 apart, and mark_dynamic() on such a size may be refused.") \
    X(UNRECORDED, "Some calls would be looked up of which the trace has nothing: resume functions, or calls of what the" \
                  " compiler was not asked for.") \
    X(COMPILES, "Compiles that were not recorded succeed: a compiler may also say no, and then not be asked again.") \
    X(FRAMES, "Frames are missing from the trace: which calls lie within others is not known for all.") \
    X(OBSERVED, "torch ran on its own evaluator (--torch observe): which entries a call tried was not seen, so fewer" \
                " checks are recorded than there were.") \
    X(VALUES, "Values were not recorded (--values): where a guard compares one, which calls are alike is a guess.") \
    X(LOSSES, "Events were lost while recording: what comes after is uncertain.")

enum assumption {
#define X(name, words) ASSUMED_##name,
    ASSUMPTIONS(X)
#undef X
    ASSUMED_KINDS,
};

/* ---- inputs and guards, taken apart ---------------------------------------- */

enum { DIMENSIONS = 16, SIZE_ANY = -1 };

/* A TENSOR_MATCH's or a signature's sizes. */
struct shape {
    int rank;                 /* -1: not a shape */
    int64_t size[DIMENSIONS]; /* SIZE_ANY: dynamic */
};

struct part {                  /* of a signature: "x: Tensor float32[4, 3] cpu" */
    const char *source, *text; /* "L['x']"; what comes after the name */
    int before, after;         /* of a shape: bytes of TEXT up to '[', and where ']' is */
    struct shape shape;
};

struct signature {
    int64_t id;
    LIST(struct part) parts;
    bool read;
};

struct guard {
    int64_t id;
    const char *kind, *source, *expression;
    struct shape shape; /* of a TENSOR_MATCH */
    int before;         /* bytes of its expression that come before the sizes */
};

struct guards { /* by source, then kind */
    struct guard *at;
    size_t count, room;
    bool read;
};

/* ---- what is known --------------------------------------------------------- */

struct difference { /* why a call did not fit OLDER, so that MADE was compiled: entries */
    uint32_t made, older;
    const char *kind, *source;
    bool shaped;   /* is about a size or stride */
    int dimension; /* of which; -1: not known */
};

/* How strictly the guards of a code object look at something. */
struct name {
    uint32_t code;
    const char *source;
    bool guarded, exact, typed, opaque;
    struct shape shape; /* sizes that all its entries have alike; SIZE_ANY where one has it dynamic */
    uint32_t varied;    /* bits: sizes that were told apart by several entries, none of them dynamic */
    bool several;       /* different exact values */
    const char *value;  /* the first of them */
};

/* What is known of a pair, a class made, and calls of another one: bits. */
enum {
    SEEN_PASS = 1 << 0,
    SEEN_FAIL = 1 << 1,
    FIRST_FAIL = 1 << 2,
    SEEN_MISMATCH = 1 << 3,
    APART_KNOWN = 1 << 4,
    APART = 1 << 5,
    WEAK_KNOWN = 1 << 6,
    WEAK_SHIFT = 8,
};

struct like_class {
    int64_t signature; /* row id, or -1 */
    uint32_t code;
    uint32_t backend; /* number of its name: the one that its calls came with, or REPLAY_NONE */
    bool hidden;      /* something that is not in the signature told its calls apart */
    /* What a check of an entry for it takes that fails, that passes, and a compile: as recorded, else as others of its
     * code. TIMED: the compile was recorded. */
    int64_t check_ns[2], compile_ns;
    bool timed;
    /* of an entry */
    uint32_t founder;     /* the lookup that made it, or REPLAY_NONE */
    struct guards guards; /* owned, read when they are first needed */
};

struct like_code {
    bool lambdas;     /* guards of it are functions */
    bool varied;      /* something that is not in signatures made recompiles */
    bool namesakes;   /* two of its backends have one name, which then does not tell calls apart */
    bool several;     /* its calls are of several regions or backends */
    bool resume;      /* it is a resume function */
    int64_t limit;    /* in force, as far as the trace shows; 0 not known, LIMIT_VARIES */
    bool accumulated; /* it is one of all entries ever */
    bool breaks;      /* its compiled code calls resume functions */
    struct replay_times checks; /* of all its entries */
    int64_t check_ns[2], compile_ns; /* as of a class */
    int64_t compiles;
};
enum { LIMIT_VARIES = -1 /* another one at times, or not one of entries */ };

struct rest { /* RESUME is a resume function of CODE */
    uint32_t code, resume;
};

struct drop {
    uint32_t code;
    const char *kind, *source; /* source NULL: all of the kind */
};

struct whatif {
    struct db *db;                    /* borrowed */
    const struct replay *r;           /* borrowed */
    const struct whatif_knobs *knobs; /* borrowed, while it runs */
    /* What the trace says (whatif_learn): */
    uint32_t *class_of;               /* owned, by lookup */
    LIST(struct like_class) classes;
    struct map pairs; /* made << 32 | other -> bits */
    bool learnt;      /* from now on only so many pairs are remembered */
    int64_t scratch;  /* the bits of a pair that is not */
    LIST(struct signature) signatures; /* by id */
    bool blind;                        /* the trace is without values */
    LIST(struct difference) differences; /* by made */
    LIST(struct name) names;
    struct arena texts;
    struct like_code *codes; /* owned */
    LIST(struct rest) rests; /* by the code that breaks off */
    bool regions;            /* some entries are of a region */
    LIST(uint32_t) forks;    /* caches with a parent, by their process's start */
    bool floats_later;       /* of any process: torch_floats_later() */
    /* What the knobs change (like_begin): */
    LIST(struct drop) drops;     /* guards that are not checked */
    bool weaker;                 /* the knobs make guards weaker */
    bool relaxed;                /* that counts just now */
    bool torch;                  /* the call that is asked about is a torch program's */
    bool assumed[ASSUMED_KINDS]; /* since like_begin */
    /* The calls decided again (decide.c): */
    uint8_t *base;                     /* owned: outcomes without a change, as in a result; NULL the first time */
    struct whatif_function *recorded;  /* owned, by code, with BASE */
    struct sim *sims;                  /* by cache, while it runs */
    struct thread *threads;            /* by thread, while it runs */
    struct whatif_function *functions; /* by code, while it runs */
};

/* Another set of knobs: what was said about them before is forgotten. */
void like_begin(struct whatif *w);

/* Would an entry made for class MADE take the call of LOOKUP? */
enum like like_fits(struct whatif *w, uint32_t made, uint32_t lookup);

/* ---- trace/whatif/learn.c -------------------------------------------------- */

/* Into W, which has its trace. whatif_free forgets it. */
void whatif_learn(struct whatif *w);

/* The region of LOOKUP, as far as the entries show that it ran, RAN, or tried; -1: the common one. */
int64_t like_region(const struct replay *replay, const struct replay_lookup *lookup, uint32_t ran);

/* The bits of a pair, 0 at first; good until the next call. */
int64_t *pair_at(struct whatif *w, uint32_t made, uint32_t other);

/* A copy of TEXT that lives as long as W. */
const char *text_copy(struct whatif *w, const char *text);

/* The signature with that row id; NULL: there is none. */
const struct signature *signature_of(struct whatif *w, int64_t id);

const struct guards *guards_of(struct whatif *w, uint32_t entry);
/* The one with that row id; NULL: there is none. */
const struct guard *guard_of(struct whatif *w, uint32_t entry, int64_t id);

/* Guards of this kind exclude each other when their expressions differ. */
bool guard_exact(const char *kind);

/* Is SOURCE a local, "L['x']", or of one? What follows that in it; NULL: it is another source. */
const char *source_local(const char *source);

#endif

/* trace/whatif/like.h -- would the guards of one call's entry let another call pass?
 *
 * trace/whatif/learn.c reads what is known of calls, trace/whatif/facts.c what is known of the
 * values that guards look at; trace/whatif/like.c answers for trace/whatif/decide.c.
 *
 * A class is an entry that was recorded (its index: the calls that ran it), or, from entry_count
 * on, one signature of calls that ran none. An entry made for such a class has the guards of the
 * recorded entry most like it, on the values of that class (trace/whatif/made.c). */
#ifndef DYNTRACE_WHATIF_LIKE_H
#define DYNTRACE_WHATIF_LIKE_H

#include "replay.h"
#include "trace/whatif/whatif.h"

enum like { LIKE_NO, LIKE_GUESS_NO, LIKE_GUESS_YES, LIKE_YES };

static inline enum like least(enum like a, enum like b)
{
    return a < b ? a : b;
}

/* What is taken for granted, in the order in which it is said. */
#define ASSUMPTIONS(X)                                                                             \
    X(SIGNATURE, "Calls whose inputs have one signature (types, shapes, small values) are alike, " \
                 "as far as guards look at"                                                        \
                 " inputs.")                                                                       \
    X(DYNAMIC, "Code with a dynamic size has no other condition on it: a program that tests the "  \
               "size itself compiles more"                                                         \
               " often.")                                                                          \
    X(AUTOMATIC, "torch makes a size or number dynamic once it changes "                           \
                 "(automatic_dynamic_shapes); with dynamic=False it"                               \
                 " does not.")                                                                     \
    X(HIDDEN, "A guard looked at something that signatures do not show (an attribute, a global): " \
              "which calls are alike is"                                                           \
              " a guess.")                                                                         \
    X(DROPPED, "Without the guard the code is right for all the calls that it told apart. That "   \
               "is for you to know.")                                                              \
    X(LAMBDA, "Some guards are functions of the program: which calls an entry that was not "       \
              "recorded would take is a"                                                           \
              " guess.")                                                                           \
    X(TIMES, "A compile takes as long as recorded, or as others of its function; a guard check "   \
             "as long as others of its"                                                            \
             " entry. How long calls run is not predicted.")                                       \
    X(LIMIT, "The limit of entries is not recorded, and no call met it: 8, the default, or as "    \
             "many as there were.")                                                                \
    X(GROUPS, "A trace does not record of which torch.compile() a call was, or of which of two "   \
              "backends with one name:"                                                            \
              " calls of one backend's name are taken for one.")                                   \
    X(SMALL,                                                                                       \
      "torch compiles sizes 0 and 1 apart, and mark_dynamic() on such a size may be refused.")     \
    X(UNRECORDED, "Some calls would be looked up of which the trace has nothing: resume "          \
                  "functions, or calls of what the"                                                \
                  " compiler was not asked for.")                                                  \
    X(FRAMES,                                                                                      \
      "Frames are missing from the trace: which calls lie within others is not known for all.")    \
    X(OBSERVED, "torch ran on its own evaluator (--torch observe): which entries a call tried "    \
                "was not seen, so fewer"                                                           \
                " checks are recorded than there were.")                                           \
    X(VALUES, "Values were not recorded (--values): where a guard compares one, which calls are "  \
              "alike is a guess.")                                                                 \
    X(RUN_ONLY,                                                                                    \
      "A call that hit may have been under the callback False, for which entries of all "          \
      "backends count: the trace does not hold the callback.")                                     \
    X(DEATHS, "Entries that the program invalidated itself die when they did. Where the cache "    \
              "would have held others, it may have invalidated one of those.")                     \
    X(LOSSES, "Events were lost while recording: what comes after is uncertain.")

enum assumption {
#define X(name, words) ASSUMED_##name,
    ASSUMPTIONS(X)
#undef X
        ASSUMED_KINDS,
};

/* ---- guards and values --------------------------------------------------- */

enum { DIMENSIONS = 16, SIZE_ANY = -1 };

struct shape {
    int rank;                 /* -1: not known */
    int64_t size[DIMENSIONS]; /* SIZE_ANY: not known, or any */
};

struct part {                  /* of a signature: "x: Tensor float32[4, 3] cpu" */
    const char *source, *text; /* "L['x']"; what comes after the name */
    int before, after;         /* of a shape: bytes of TEXT up to '[', and where ']' is */
    struct shape shape;
};

struct signature {
    LIST(struct part) parts;
};

/* What is known of the value at a source, or what a guard wants of it. Texts are NULL where that is
 * not known. */
struct value {
    const char *type;        /* its name */
    const char *literal;     /* "3", "'a'", "None" */
    const char *object;      /* which one, in words */
    const char *keys;        /* of a dict: "(('a', 'b'))" */
    const char *tensor;      /* dtype and the like, as a guard writes them, */
    const struct part *part; /* as a signature does */
    struct shape sizes, strides;
    int64_t length;   /* -1 */
    double low, high; /* of a number; not known: -INFINITY, INFINITY */
    int64_t by;       /* a number is a multiple of this; 0: not known */
    bool something;   /* it is not None */
};

/* What of a value a guard looks at. */
enum about {
    ABOUT_OTHER, /* what is not taken apart */
    ABOUT_TYPE,
    ABOUT_VALUE,
    ABOUT_SOMETHING,
    ABOUT_LENGTH,
    ABOUT_KEYS,
    ABOUT_KEY,
    ABOUT_OBJECT,
    ABOUT_TENSOR,
    ABOUT_NUMBER,
    ABOUT_EQUAL,
    ABOUT_ALIKE, /* of an entry like no recorded one: it wants the type, and perhaps more */
    /* of an entry that was not recorded: it wants something, and it is not known what */
    ABOUT_UNKNOWN,
};

struct guard {
    /* row id. The guards of an entry that was not recorded are copies of recorded guards: such a
     * copy has the row id of its original; or the negative row id, where the copy is a guess; or 0,
     * where it has another kind */
    int64_t id;
    const char *kind, *source, *expression; /* EXPRESSION: NULL of an entry that was not recorded */
    enum about about;
    struct value want;
    /* bits: dimensions of which torch may have made a symbol; 1 of a number, or of a condition: it
     * may be another */
    uint32_t loose;
    bool condition; /* on sizes or numbers */
};

struct guards { /* by source, then kind */
    struct guard *at;
    size_t count, room;
    bool read, unlike; /* UNLIKE: the code has no recorded entry */
};

/* ---- what is known ------------------------------------------------------- */

/* Bits of a pair, a class made, and calls of another one. */
enum {
    FIRST_FAIL = 1 << 0,
    SEEN_MISMATCH = 1 << 1,
    /* what the guards say of calls that hit OTHER: enum like at KNOWN_SHIFT */
    KNOWN = 1 << 2,
    /* of the call that OTHER was made for, or that ran none: the two bits after it */
    KNOWN_FIRST = 1 << 3,
    KNOWN_SHIFT = 4,
};

/* What takes time: a check that fails, one that passes, a compile. */
enum timed { TIMED_FAIL, TIMED_PASS, TIMED_COMPILE, TIMED_KINDS };
struct like_times {
    int64_t ns[TIMED_KINDS], count[TIMED_KINDS];
};

struct like_class {
    int64_t signature; /* row id, or -1 */
    uint32_t code;
    /* number of its name: the one that its calls came with, or REPLAY_NONE */
    uint32_t backend;
    struct like_times times; /* of an entry: those recorded */
    /* of an entry that forks handed on: when the process that made it tried it last */
    int64_t seen_ns;
    uint32_t founder;     /* of an entry: the lookup that made it, or REPLAY_NONE */
    struct guards guards; /* read when they are first needed */
};

struct like_code {
    bool namesakes;   /* two of its backends have one name, which then does not tell calls apart */
    bool several;     /* its calls are of several regions or backends */
    int64_t limit;    /* in force, as far as the trace shows; 0 not known, LIMIT_VARIES */
    int64_t least;    /* with fewer living entries than this, calls were compiled */
    bool accumulated; /* it is one of all entries ever */
    int64_t maybe_ever; /* or may be one, which allows so many; 0: it is none */
    bool breaks;        /* its compiled code calls resume functions */
    bool excluded;      /* the compiler's own rules exclude it, whatever its inputs are */
    bool callees;       /* INLINED was read: */
    /* code objects that have entries of their own and that its compiled code takes in */
    LIST(uint32_t) inlined;
    bool nested_read;        /* NESTED was read: */
    LIST(uint32_t) nested;   /* code objects that were looked up within calls that compiled it */
    struct like_times times; /* of all its entries */
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
    uint32_t *class_of; /* owned, by lookup */
    LIST(struct like_class) classes;
    struct map pairs;      /* made << 32 | other -> bits */
    bool learnt;           /* from now on only so many pairs are remembered */
    int64_t scratch;       /* the bits of a pair that is not */
    struct map signatures; /* row ids -> struct signature *, of those that were asked for */
    bool blind;            /* the trace is without values */
    struct map varying;    /* row ids of guards -> 1, or 2: guards like it vary (like.c) */
    struct map failing;    /* row ids of guards that failed */
    /* failed_key() of those that a call failed which made an entry, or ran none */
    struct map failed_by;
    struct map freed;   /* row ids of entries that torch invalidated for an object's death -> 1 */
    struct map killers; /* row ids of entries that died of what a guard names -> of that guard */
    struct arena texts; /* and what guards and signatures are in */
    struct like_code *codes; /* owned */
    LIST(struct rest) rests; /* by the code that breaks off */
    bool regions;            /* some entries are of a region */
    LIST(uint32_t) forks;    /* caches with a parent, by their process's start */
    /* some torch has floats for constants in the first compile, even with dynamic=True */
    bool floats_later;
    /* What the knobs change (like_begin): */
    LIST(struct drop) drops; /* guards that are not checked */
    /* row ids of conditions -> 1, or 2: on a number that dropped guards looked at (like.c) */
    struct map symbols;
    bool weaker;    /* the knobs make guards weaker */
    bool strangers; /* functions may be called and compiled of which the trace has nothing */
    bool torch;     /* the call that is asked about is a torch program's, */
    /* which guards are known to fail of: what none told apart is taken for the same */
    bool steady;
    bool assumed[ASSUMED_KINDS]; /* since like_begin */
    /* The calls decided again (decide.c): */
    /* owned: outcomes without a change, as in a result; NULL the first time */
    uint8_t *base;
    struct whatif_function *recorded;  /* owned, by code, with BASE */
    struct sim *sims;                  /* by cache, while it runs */
    struct thread *threads;            /* by thread, while it runs */
    struct whatif_function *functions; /* by code, while it runs */
};

static inline const struct replay_entry *entry_at(const struct whatif *w, uint32_t entry)
{
    return &w->r->entries.at[entry];
}

static inline const struct replay_lookup *lookup_at(const struct whatif *w, uint32_t lookup)
{
    return &w->r->lookups.at[lookup];
}

static inline const struct replay_cache *cache_at(const struct whatif *w, uint32_t cache)
{
    return &w->r->caches.at[cache];
}

static inline struct like_class *class_at(const struct whatif *w, uint32_t class_)
{
    return &w->classes.at[class_];
}

/* Is CLASS_ that of a recorded entry? Then it is the entry's index, too. */
static inline bool is_recorded(const struct whatif *w, uint32_t class_)
{
    return class_ < w->r->entries.count;
}

/* The code object of CLASS_, by index. */
static inline uint32_t class_code(const struct whatif *w, uint32_t class_)
{
    return class_at(w, class_)->code;
}

/* The answer depends on ASSUMPTION: it becomes a note. */
static inline void assume(struct whatif *w, enum assumption assumption)
{
    w->assumed[assumption] = true;
}

/* Begin with other knobs: forget everything that depended on the previous ones. */
void like_begin(struct whatif *w);

/* Would an entry made for class MADE take the call of LOOKUP? */
enum like like_fits(struct whatif *w, uint32_t made, uint32_t lookup);

/* Do the guards of ENTRY, a recorded one, but for BUT, or NULL, hold for the call that CLASS_ was
 * made for? Then the conditions on sizes and numbers are those of an entry for CLASS_, too. */
bool like_stands(struct whatif *w, uint32_t entry, uint32_t class_, const struct guard *but);

/* Is an input of CLASS_'s calls made a symbol? */
bool like_symbols(struct whatif *w, uint32_t class_);

/* Does ENTRY still die when it did? */
enum like like_dies(struct whatif *w, uint32_t entry);

/* ---- trace/whatif/learn.c ------------------------------------------------ */

/* Into W, which has its trace. whatif_free forgets it. */
void whatif_learn(struct whatif *w);

/* What KIND takes of an entry for CLASS_: as recorded, else as others of its code. */
int64_t like_cost(const struct whatif *w, uint32_t class_, enum timed kind);

/* The region of LOOKUP, as far as the entries show that it ran, RAN, or tried; -1: the common one.
 * */
int64_t like_region(const struct replay *replay, const struct replay_lookup *lookup, uint32_t ran);

static inline int64_t failed_key(uint32_t class_, int64_t guard)
{
    return (int64_t)((uint64_t)guard ^ (uint64_t)class_ << 36);
}

/* The bits of a pair, 0 at first; good until the next call. */
int64_t *pair_at(struct whatif *w, uint32_t made, uint32_t other);

/* A copy of TEXT that lives as long as W. */
const char *text_copy(struct whatif *w, const char *text);

/* ---- trace/whatif/facts.c ------------------------------------------------ */

/* The guards of an entry made for CLASS_. */
const struct guards *guards_of(struct whatif *w, uint32_t class_);
/* The one with that row id; NULL: there is none. */
const struct guard *guard_of(struct whatif *w, uint32_t entry, int64_t id);

/* What all recorded entries of a code object look at SOURCE for: for (struct look at = {0};
 * guard_next(...); ) at.g. */
struct look {
    uint32_t entry;
    const struct guard *g;
};
bool guard_next(struct whatif *w, uint32_t code, const char *source, struct look *at);

/* Does GUARD hold for calls of class OTHER? FIRST: of the one that its entry was made for.
 * LIKE_GUESS_NO: not known. */
enum like guard_holds(struct whatif *w, const struct guard *guard, uint32_t other, bool first);

/* What is known of what is at SOURCE in calls of class OTHER. */
struct value value_of(struct whatif *w, uint32_t other, bool first, const char *source);

/* The name of V's type; NULL: not known. */
const char *value_type(struct whatif *w, const struct value *v);

/* The signature with that row id, and its part for SOURCE; NULL: there is none. */
const struct signature *signature_of(struct whatif *w, int64_t id);
const struct part *signature_part(const struct signature *signature, const char *source);

/* NUMBER against the conditions that GUARD has for one. */
enum like number_holds(const struct value *want, const struct value *number);

/* The guards of an entry made for CLASS_, which was not recorded, into GUARDS
 * (trace/whatif/made.c). */
void guards_make(struct whatif *w, uint32_t class_, struct guards *guards);

/* ---- trace/whatif/bounds.c ----------------------------------------------- */

/* One call: its predicted outcome, and which other outcomes are possible. */
struct decided {
    unsigned outcome; /* as predicted: enum outcome, or WHATIF_GONE */
    uint32_t class_;
    bool undecided;  /* the prediction is a guess; then */
    bool called;     /* it is looked up for certain, */
    bool hittable;   /* it may hit, for there may be entries, */
    bool runnable;   /* and it may run as Python, */
    bool limited;    /* or because of a limit */
    bool raising;    /* the compiler raised, and may again */
    bool trusting;   /* it makes, or runs, code of which the recording has no compile */
    bool settled;    /* an entry that takes it is there for certain: it is not compiled */
    bool compilable; /* it may be compiled, if nothing fits */
    bool recorded;   /* its class is that of a recorded entry: a compile of it gives code */
    bool alike;      /* and one entry takes all calls of that class, whichever comes first */
    /* Set by bounds_call: */
    bool certain; /* it comes out as predicted */
    bool eager;   /* it may run as Python */
    bool fresh;   /* it may make code of which the trace has nothing */
};

/* How many calls of a predicted cache hit, compile and run as Python, at least and at most. */
struct bounds {
    struct whatif_range compiles, hits, eager, misses, calls;
    int64_t others; /* calls that may end in something else, at most */
    bool open;  /* a compile that was not recorded: nothing after it is certain, until a reset */
    bool lost;  /* the same for good: the cache is not known */
    bool moved; /* a call ended otherwise than recorded, or may have: the cache may be another */
    /* owned: classes of recorded entries, for each of which a compile is in compiles.high */
    LIST(uint32_t) compiled;
};

/* The ranges of MORE are added to those of SUM; F's have no upper bound. */
void ranges_add(struct whatif_function *sum, const struct whatif_function *more);
void ranges_open(struct whatif_function *f);

void bounds_call(struct bounds *bounds, struct decided *decided);
/* The entry of CLASS_ died: its calls may be compiled again. */
void bounds_death(struct bounds *bounds, uint32_t class_);
void bounds_reset(struct bounds *bounds);
/* Into FUNCTION; MOST: no more than that can compile, -1: not known. BOUNDS is freed. */
void bounds_end(struct bounds *bounds, int64_t most, struct whatif_function *function);

#endif

/* trace/whatif/like.h -- would another call pass an entry's guards?
 *
 * trace/whatif/learn.c reads from the trace which entries calls ran and tried. trace/whatif/facts.c
 * reads from it the values that guards check. trace/whatif/like.c answers the question
 * for the simulation in trace/whatif/decide.c.
 *
 * Recorded calls are divided into classes. All calls that ran the same recorded entry are one
 * class, whose number is the index of the entry. Calls that ran no entry are one class if they have
 * the same code object, signature and backend; these classes are numbered from entries.count on. If
 * the simulation compiles a call of such a class, trace/whatif/made.c makes up the guards of the
 * new entry: those of the most similar recorded entry, with the values of the call. */
#ifndef DYNTRACE_WHATIF_LIKE_H
#define DYNTRACE_WHATIF_LIKE_H

#include "replay.h"
#include "trace/whatif/whatif.h"

/* Does a guard hold, or does a call hit an entry? LIKE_GUESS_NO also means "not known". */
enum like { LIKE_NO, LIKE_GUESS_NO, LIKE_GUESS_YES, LIKE_YES };

static inline enum like least(enum like a, enum like b)
{
    return a < b ? a : b;
}

/* X(name, text): the assumptions that an answer may depend on, in the order in which they are
 * printed. */
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

/* ---- values, and the guards that check them ------------------------------ */

enum { DIMENSIONS = 16, SIZE_ANY = -1 };

struct shape {
    int rank;                 /* number of dimensions; -1 if the number is not known */
    int64_t size[DIMENSIONS]; /* SIZE_ANY if a size is not known, or if a guard allows any size */
};

struct part { /* one input in a signature: "x: Tensor float32[4, 3] cpu" */
    /* "L['x']", and the input's description: "Tensor float32[4, 3] cpu" */
    const char *source, *text;
    /* offsets in TEXT of the shape's '[' and ']'; 0 if TEXT has no shape */
    int before, after;
    struct shape shape;
};

struct signature {
    LIST(struct part) parts;
};

/* A value at a guard source: the facts in the trace about it, or a guard's expected value. A text
 * is NULL if it is not known. */
struct value {
    const char *type;        /* name of the value's type */
    const char *literal;     /* the value as Python writes it: "3", "'a'", "None" */
    const char *object;      /* description of the object that an identity guard expects */
    const char *keys;        /* keys of a dict: "(('a', 'b'))" */
    const char *tensor;      /* dtype, device and so on, as a guard's expression writes them */
    const struct part *part; /* the value's description in a signature; NULL if there is none */
    struct shape sizes, strides;
    int64_t length;   /* length of a container; -1 if not known */
    double low, high; /* bounds of a number; -INFINITY and INFINITY if not known */
    int64_t by;       /* the number is known to be a multiple of BY, or BY is 0 */
    bool something;   /* the value is certainly not None */
};

/* The property of a value that a guard checks. */
enum about {
    ABOUT_OTHER, /* another property: the guard's expression is not parsed */
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
    ABOUT_ALIKE, /* a guard made up for an unrecorded entry: it checks the type, and perhaps more */
    /* a guard made up for an unrecorded entry: the expected value is not known */
    ABOUT_UNKNOWN,
};

struct guard {
    /* row id of the guard. A guard made up for an unrecorded entry has the row id of the recorded
     * guard that it is a copy of; the negative row id if the copy is a guess; 0 if the copy has
     * another kind than the original */
    int64_t id;
    const char *kind, *source, *expression; /* the expression is NULL in a made-up guard */
    enum about about;
    struct value want;
    /* For a tensor: a bit for each dimension that torch may have made dynamic. For a number: 1 if
     * torch may have made the number dynamic. For a condition: 1 if the entry may have another
     * condition */
    uint32_t loose;
    bool condition; /* the guard is a condition on sizes or numbers, such as 2 <= size */
};

struct guards { /* The guards of one entry, sorted by source and then by kind. */
    struct guard *at;
    size_t count, room;
    /* READ: the guards have been loaded or made up. UNLIKE: no recorded entry was similar enough to
     * copy its guards */
    bool read, unlike;
};

/* ---- classes of calls, and the state of a what-if ------------------------ */

/* Bits for a pair of classes: class MADE has an entry, and calls of class OTHER may hit this
 * entry. */
enum {
    /* a trace of observe mode shows that MADE's entry did not fit the call that made OTHER's entry,
     * or a call of OTHER that ran no entry */
    FIRST_FAIL = 1 << 0,
    /* a call of OTHER passed over MADE's entry, which belongs to another backend */
    SEEN_MISMATCH = 1 << 1,
    /* MADE's guards have been evaluated for calls that hit OTHER's entry; the two bits at
     * KNOWN_SHIFT hold the result, an enum like */
    KNOWN = 1 << 2,
    /* MADE's guards have been evaluated for the call that made OTHER's entry, or for calls that ran
     * no entry; the two bits at KNOWN_SHIFT + 2 hold the result */
    KNOWN_FIRST = 1 << 3,
    KNOWN_SHIFT = 4,
};

/* The operations whose times are recorded: a check that fails, a check that passes, a compile. */
enum timed { TIMED_FAIL, TIMED_PASS, TIMED_COMPILE, TIMED_KINDS };
struct like_times {
    int64_t ns[TIMED_KINDS], count[TIMED_KINDS];
};

struct like_class {
    int64_t signature; /* row id of the calls' signature, or -1 */
    uint32_t code;
    /* number of the calls' backend name; REPLAY_NONE if the backend is not known */
    uint32_t backend;
    /* recorded times of the class's entry; all 0 if the class has no recorded entry */
    struct like_times times;
    /* for an entry that a fork copied: when the process that made the entry last tried it */
    int64_t seen_ns;
    /* the lookup that made the entry; without an entry, the first lookup; REPLAY_NONE if not
     * recorded */
    uint32_t founder;
    struct guards guards; /* guards of the class's entry; guards_of() fills them in */
};

struct like_code {
    /* two of the code object's backends have the same name, so the name of a call's backend does
     * not tell which of the two the call used */
    bool namesakes;
    bool several; /* the code object was called in several regions or with several backends */
    /* the limit that stopped recorded calls, a number of entries; 0 if not known, or
     * LIMIT_VARIES */
    int64_t limit;
    /* lowest possible limit: a recorded call was still compiled with `least` - 1 living entries */
    int64_t least;
    bool accumulated; /* the limit counts all entries ever made, dead ones too */
    /* if the limit may be the one on all entries ever made: the number of entries that it allows;
     * else 0 */
    int64_t maybe_ever;
    bool breaks; /* the compiled code calls resume functions */
    /* the compiler's rules exclude the code object from compilation, whatever its inputs are */
    bool excluded;
    bool callees; /* `inlined` has been filled in */
    /* code objects that have entries of their own, and are inlined into this code object's compiled
     * code */
    LIST(uint32_t) inlined;
    bool nested_read; /* `nested` has been filled in */
    /* code objects that were looked up during calls that compiled this code object */
    LIST(uint32_t) nested;
    struct like_times times; /* recorded times of all entries of the code object */
};
enum { LIMIT_VARIES = -1 /* the limit changed, or is no number of entries */ };

struct rest { /* a pair of code objects: RESUME is a resume function of CODE */
    uint32_t code, resume;
};

struct drop {
    uint32_t code;
    const char *kind, *source; /* SOURCE is NULL if all guards of KIND are dropped */
};

struct whatif {
    struct db *db;                    /* borrowed */
    const struct replay *r;           /* borrowed */
    const struct whatif_knobs *knobs; /* borrowed during whatif_run() */
    /* The members below are read from the trace by whatif_learn(). */
    uint32_t *class_of; /* owned: the class of each lookup, by index of the lookup */
    LIST(struct like_class) classes;
    struct map pairs; /* maps two classes, MADE << 32 | OTHER, to the bits of the pair */
    /* learning is over: from now on the map of pairs keeps at most PAIRS_MAX pairs */
    bool learnt;
    int64_t scratch; /* memory for the bits of a pair that does not fit into `pairs` */
    /* maps the row id of a signature to its struct signature *, which is read when it is needed */
    struct map signatures;
    bool blind; /* the trace has no values, because of --values */
    /* maps the row id of a guard to 2 if guards of the same kind and source failed or expect
     * several values, otherwise to 1 (has_varying_value() in like.c) */
    struct map varying;
    struct map failing; /* row ids of guards that failed */
    /* failed_key() of each class and guard where the guard failed for the call that made the
     * class's entry, or for a call that ran no entry */
    struct map failed_by;
    struct map freed; /* row ids of entries that torch invalidated because an object died */
    /* maps the row id of an entry that died because an object died to the row id of the guard that
     * names the object */
    struct map killers;
    struct arena texts;      /* memory of texts, guards and signatures */
    struct like_code *codes; /* owned, by index of the code object */
    LIST(struct rest) rests; /* sorted by the code object with the graph break */
    bool regions;            /* some entries belong to a region */
    /* indices of caches that a fork copied, sorted by the time of the fork */
    LIST(uint32_t) forks;
    /* this version of torch treats floats as constants in the first compile, even with
     * dynamic=True */
    bool floats_later;
    /* The members below depend on the settings (knobs); like_begin() resets them. */
    LIST(struct drop) drops; /* guards that the setting drop_guard removes */
    /* maps the row id of a condition to 2 if dropped guards check its number, otherwise to 1
     * (symbol_unsure() in like.c) */
    struct map symbols;
    bool weaker; /* the settings make guards weaker */
    /* the simulation may call and compile functions whose calls are not in the trace */
    bool strangers;
    bool torch; /* the call for which guards are evaluated belongs to a torch program */
    /* the trace shows which guards failed for the call, so guards that never failed are assumed to
     * hold */
    bool steady;
    bool assumed[ASSUMED_KINDS]; /* the assumptions made since like_begin() */
    /* The members below belong to the simulation of the calls (decide.c). */
    /* owned: predicted outcomes by lookup when no setting is changed; NULL during this first run */
    uint8_t *base;
    /* owned: recorded counts by code object, from the first run */
    struct whatif_function *recorded;
    /* owned during a run: simulated caches, by index of the recorded cache */
    struct sim *sims;
    struct thread *threads;            /* owned during a run: state of the threads, by index */
    struct whatif_function *functions; /* owned during a run: counts, by index of the code object */
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

/* Does CLASS_ have a recorded entry? Then CLASS_ is the index of this entry. */
static inline bool is_recorded(const struct whatif *w, uint32_t class_)
{
    return class_ < w->r->entries.count;
}

/* Return the index of the code object of CLASS_. */
static inline uint32_t class_code(const struct whatif *w, uint32_t class_)
{
    return class_at(w, class_)->code;
}

/* Record that the answer depends on ASSUMPTION, so that the assumption is printed as a note. */
static inline void assume(struct whatif *w, enum assumption assumption)
{
    w->assumed[assumption] = true;
}

/* Begin a run with new settings: clear all members that depend on the previous settings. */
void like_begin(struct whatif *w);

/* Would the call of LOOKUP hit the entry of class MADE? */
enum like like_fits(struct whatif *w, uint32_t made, uint32_t lookup);

/* Do the guards of the recorded entry ENTRY hold for the call that made CLASS_'s entry? Guard BUT,
 * which may be NULL, is left out. If the guards hold, an entry for CLASS_ has the same conditions
 * on sizes and numbers as ENTRY. */
bool like_stands(struct whatif *w, uint32_t entry, uint32_t class_, const struct guard *but);

/* Do the settings make an input of CLASS_'s calls dynamic? */
bool like_symbols(struct whatif *w, uint32_t class_);

/* Does ENTRY still die at the recorded time, although the settings drop guards? */
enum like like_dies(struct whatif *w, uint32_t entry);

/* ---- trace/whatif/learn.c: reads the trace ------------------------------- */

/* Read the facts about calls and entries from W's trace. whatif_free() releases the memory. */
void whatif_learn(struct whatif *w);

/* Return the nanoseconds that an operation of KIND takes for an entry of CLASS_: the mean of the
 * recorded times, or else the mean for all entries of the code object; 0 if none
 * was recorded. */
int64_t like_cost(const struct whatif *w, uint32_t class_, enum timed kind);

/* Return the region of LOOKUP: the region of the entry RAN, which the lookup ran, or otherwise the
 * region of the entries that the lookup tried. -1 is the common region. */
int64_t like_region(const struct replay *replay, const struct replay_lookup *lookup, uint32_t ran);

static inline int64_t failed_key(uint32_t class_, int64_t guard)
{
    return (int64_t)((uint64_t)guard ^ (uint64_t)class_ << 36);
}

/* Return the bits for a pair of classes, 0 at first. The pointer is valid until the next call. */
int64_t *pair_at(struct whatif *w, uint32_t made, uint32_t other);

/* Return a copy of TEXT that lives as long as W. */
const char *text_copy(struct whatif *w, const char *text);

/* ---- trace/whatif/facts.c: values and guards ----------------------------- */

/* Return the guards of CLASS_'s entry. They are loaded, or made up for an unrecorded entry, when
 * they are first needed. */
const struct guards *guards_of(struct whatif *w, uint32_t class_);
/* Return ENTRY's guard with row id ID, or NULL. */
const struct guard *guard_of(struct whatif *w, uint32_t entry, int64_t id);

/* Step to the next guard on SOURCE in the recorded entries of a code object. Returns false at the
 * end. Use: for (struct look at = {0}; guard_next(w, code, source, &at);) ... at.g ... */
struct look {
    uint32_t entry;
    const struct guard *g;
};
bool guard_next(struct whatif *w, uint32_t code, const char *source, struct look *at);

/* Does GUARD hold for calls of class OTHER? If FIRST, for the call that made OTHER's entry. Returns
 * LIKE_GUESS_NO if the trace does not tell. */
enum like guard_holds(struct whatif *w, const struct guard *guard, uint32_t other, bool first);

/* Return the facts in the trace about the value at SOURCE in calls of class OTHER. If FIRST, the
 * call that made OTHER's entry is meant. */
struct value value_of(struct whatif *w, uint32_t other, bool first, const char *source);

/* Return the name of V's type, or NULL if it is not known. */
const char *value_type(struct whatif *w, const struct value *v);

/* Return the signature with row id ID, or its input at SOURCE; NULL if there is none. */
const struct signature *signature_of(struct whatif *w, int64_t id);
const struct part *signature_part(const struct signature *signature, const char *source);

/* Does NUMBER satisfy the bounds and the divisor of WANT, a guard's condition? */
enum like number_holds(const struct value *want, const struct value *number);

/* Make up the guards of an entry for CLASS_ that was not recorded, and add them to GUARDS
 * (trace/whatif/made.c). */
void guards_make(struct whatif *w, uint32_t class_, struct guards *guards);

/* ---- trace/whatif/bounds.c: the range of an answer ----------------------- */

/* One call: its predicted outcome, and the other outcomes that are possible. */
struct decided {
    unsigned outcome; /* the predicted outcome: enum outcome, or WHATIF_GONE */
    uint32_t class_;
    bool undecided; /* the prediction is a guess */
    bool called;    /* the call is certainly looked up */
    bool hittable;  /* the call may hit, because the cache may hold entries */
    bool runnable;  /* the call may run as Python */
    bool limited;   /* the call may run as Python because of a limit */
    bool raising;   /* the compiler raised in the recording, and may raise again */
    bool trusting;  /* the call makes or runs code whose compile is not in the recording */
    /* the cache certainly holds an entry that the call hits, so the call is not compiled */
    bool settled;
    bool compilable; /* the call may be compiled if no entry fits */
    bool recorded;   /* the call's class has a recorded entry, so compiling the call gives code */
    /* whichever call of the class is compiled first, all other calls of the class hit its entry */
    bool alike;
    /* The members below are set by bounds_call(). */
    bool certain; /* the predicted outcome is certain */
    bool eager;   /* running as Python is one of the possible outcomes */
    bool fresh;   /* the call may make code of which the trace has no facts */
};

/* The least and the greatest possible number of calls in a simulated cache that hit, compile, run
 * as Python and so on. */
struct bounds {
    struct whatif_range compiles, hits, eager, misses, calls;
    int64_t others; /* greatest number of calls that end in any other way */
    /* an unrecorded compile was predicted: nothing after it is certain, until a reset of the
     * cache */
    bool open;
    bool lost; /* the contents of the cache are not known any more, not even after a reset */
    /* a call ended, or may have ended, in another way than recorded, so the cache may differ from
     * the recorded one */
    bool moved;
    /* owned: classes of recorded entries whose compile has been counted in compiles.high */
    LIST(uint32_t) compiled;
};

/* ranges_add() adds the ranges of MORE to the ranges of SUM; ranges_open() removes the upper bounds
 * of the ranges of F. */
void ranges_add(struct whatif_function *sum, const struct whatif_function *more);
void ranges_open(struct whatif_function *f);

void bounds_call(struct bounds *bounds, struct decided *decided);
/* Store that CLASS_'s entry died: calls of CLASS_ may be compiled again. */
void bounds_death(struct bounds *bounds, uint32_t class_);
void bounds_reset(struct bounds *bounds);
/* Add the ranges of BOUNDS to FUNCTION, and free BOUNDS. At most MOST calls can compile; -1 if that
 * is not known. */
void bounds_end(struct bounds *bounds, int64_t most, struct whatif_function *function);

#endif

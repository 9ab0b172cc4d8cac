/* trace/whatif/like.h -- would another call pass an entry's guards?
 *
 * learn.c reads which entries calls ran and tried from the trace, and facts.c the values that
 * guards check. like.c answers the question for the simulation in decide.c.
 *
 * Recorded calls are divided into classes. All calls that ran the same recorded entry are one
 * class, whose number is the index of the entry. Calls that ran no entry are one class if they
 * have the same code object, signature and backend; these classes are numbered from
 * entries.count on.
 *
 * If the simulation compiles a call of a class without a recorded entry, made.c makes up the
 * guards of the new entry: copies of the guards of the most similar recorded entry, with the
 * values of the call. */
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

struct part { /* One input of a call, as a signature has it: "x: Tensor float32[4, 3] cpu". */
    /* the input's guard source, "L['x']", and its description, "Tensor float32[4, 3] cpu" */
    const char *source, *text;
    /* offsets in `text` of the '[' and ']' around the shape; 0 if there is no shape */
    int before, after;
    struct shape shape;
};

struct signature {
    LIST(struct part) parts;
};

/* The value at a guard source, as far as the trace tells it, or the value that a guard expects. A
 * text is NULL if the trace does not tell it. */
struct value {
    const char *type;        /* name of the value's type, such as "int" */
    const char *literal;     /* the value as Python writes it: "3", "'a'", "None" */
    const char *object;      /* description of the object that an identity guard expects */
    const char *keys;        /* keys of a dict: "(('a', 'b'))" */
    const char *tensor;      /* dtype, device and so on, as the expression of a guard has them */
    const struct part *part; /* the value's description in a signature, or NULL */
    struct shape sizes, strides;
    int64_t length;   /* length of a container, or -1 if not known */
    double low, high; /* bounds of a number: -INFINITY and INFINITY if none are known */
    int64_t by;       /* the number is a multiple of this; 0 if nothing is known */
    bool something;   /* the value is certainly not None */
};

/* The properties that a guard can check of a value. */
enum about {
    ABOUT_OTHER, /* some other property: the guard's expression is not parsed */
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
    /* a made-up guard for an entry that was not recorded: it checks the type, and perhaps more */
    ABOUT_ALIKE,
    /* a made-up guard for an entry that was not recorded: it is not known what it expects */
    ABOUT_UNKNOWN,
};

struct guard {
    /* row id of the guard. A made-up guard has the row id of the recorded guard of which it is a
     * copy. It has the negative row id if the copy is a guess, and 0 if the copy has another kind
     * than the original */
    int64_t id;
    const char *kind, *source, *expression; /* a made-up guard has no expression: it is NULL */
    enum about about;
    struct value want;
    /* What torch may have made dynamic. For a tensor: a bit for each such dimension. For a number:
     * 1 if the number is one. For a condition: 1 if the entry may have another condition instead */
    uint32_t loose;
    bool condition; /* the guard is a condition on sizes or numbers, such as 2 <= size */
};

struct guards { /* The guards of one entry, sorted by source and then by kind. */
    struct guard *at;
    size_t count, room;
    /* read: the guards have been loaded or made up. unlike: no recorded entry was similar enough to
     * copy its guards */
    bool read, unlike;
};

/* ---- classes of calls, and the data of a what-if ------------------------- */

/* Facts about a pair of classes, one bit each. The class MADE has an entry, which calls of the
 * class OTHER may hit. */
enum {
    /* in observe mode: the trace shows that MADE's entry did not fit the call that made OTHER's
     * entry, or a call of OTHER that ran no entry */
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
    int64_t signature; /* row id of the signature that the calls have, or -1 */
    uint32_t code;
    /* number of the backend's name that the calls have; REPLAY_NONE if it is not known */
    uint32_t backend;
    /* recorded times of the entry of this class; all 0 if it has no recorded entry */
    struct like_times times;
    /* if a fork copied the entry: when the process that made it last tried it */
    int64_t seen_ns;
    /* the lookup that made the entry or, without an entry, the first lookup of the class;
     * REPLAY_NONE if not recorded */
    uint32_t founder;
    struct guards guards; /* guards of the entry of this class, filled in by guards_of_class() */
};

struct like_code {
    /* two backends of this code object have the same name, so it is not known which of the two a
     * call with that name used */
    bool namesakes;
    bool several; /* this code object was called in several regions, or with several backends */
    /* the number of entries at which recorded calls met a limit; 0 if not known, or LIMIT_VARIES */
    int64_t limit;
    /* the lowest possible limit: a recorded call was still compiled when there were `least` - 1
     * living entries */
    int64_t least;
    bool accumulated; /* the limit is on all entries ever made, including dead ones */
    /* how many entries the limit allows, if it may be the limit on all entries ever
     * made; otherwise 0 */
    int64_t maybe_ever;
    bool breaks; /* the code had graph breaks, so its compiled code calls resume functions */
    /* whatever its inputs are, the compiler's rules exclude this code object from compilation */
    bool excluded;
    bool callees; /* the list `inlined` has been filled in */
    /* code objects with entries that were inlined into the compiled code of this code object */
    LIST(uint32_t) inlined;
    bool nested_read; /* the list `nested` has been filled in */
    /* code objects that were looked up during calls that compiled this code object */
    LIST(uint32_t) nested;
    struct like_times times; /* recorded times, summed over all entries of this code object */
};
enum { LIMIT_VARIES = -1 /* the limit changed, or it is not a number of entries */ };

struct rest { /* a code object, and one of its resume functions */
    uint32_t code, resume;
};

struct drop {
    uint32_t code;
    const char *kind, *source; /* `source` is NULL if all guards of the kind are dropped */
};

struct whatif {
    struct db *db;                    /* borrowed */
    const struct replay *r;           /* borrowed */
    const struct whatif_knobs *knobs; /* borrowed during whatif_run(): the settings */
    /* The members below are read from the trace by whatif_learn_from_trace(). */
    uint32_t *class_of; /* owned: the class of each lookup, by index of the lookup */
    LIST(struct like_class) classes;
    /* maps a pair of classes, MADE << 32 | OTHER, to the bits that are known about it */
    struct map pairs;
    /* whatif_learn_from_trace() has read all lookups; from now on `pairs` gets no more than
     * PAIRS_MAX pairs */
    bool learnt;
    int64_t scratch; /* keeps the bits of a pair for which `pairs` has no room */
    /* maps the row id of a signature to its struct signature *, which is made when first needed */
    struct map signatures;
    bool blind; /* the trace has no values, because of the option --values */
    /* maps the row id of a guard to 2 if guards of the same kind and source failed or expect
     * several values, otherwise to 1 (has_varying_value in like.c) */
    struct map varying;
    struct map failing; /* row ids of guards that failed in the recording */
    /* make_failed_key() of each class and guard for which is known: the call that made the class's
     * entry, or a call that ran no entry, failed the guard */
    struct map failed_by;
    struct map freed; /* row ids of entries that torch invalidated because an object had died */
    /* maps the row id of an entry that torch invalidated because an object had died to the row id
     * of the guard on this object */
    struct map killers;
    struct arena texts;      /* owns texts, guards and signatures */
    struct like_code *codes; /* owned, at the index of the code object */
    /* resume functions, sorted by the code object that has the graph break */
    LIST(struct rest) rests;
    bool regions; /* some entries belong to a region, not to all calls */
    /* indices of the caches that a fork copied, sorted by the time of the fork */
    LIST(uint32_t) forks;
    /* even with dynamic=True, this version of torch treats floats as constants in
     * the first compile */
    bool floats_later;
    /* The members below depend on the settings; like_begin_simulation() resets them. */
    LIST(struct drop) drops; /* guards that the setting drop_guard removes */
    /* maps the row id of a condition to 2 if dropped guards check its number, otherwise to 1
     * (may_condition_vanish in like.c) */
    struct map symbols;
    bool weaker; /* the settings make some guards weaker */
    /* the simulation may call and compile functions that have no calls in the trace */
    bool strangers;
    bool torch; /* the call for which guards are evaluated belongs to a torch program */
    /* the trace shows which guards the call failed, so it is assumed that it passes guards
     * that never failed */
    bool steady;
    bool assumed[ASSUMED_KINDS]; /* the assumptions that were made since like_begin_simulation() */
    /* The members below are used by the simulation of the calls (decide.c). */
    /* owned: for each lookup, the outcome that is predicted under unchanged settings; NULL while
     * this prediction is made */
    uint8_t *base;
    /* owned: for each code object, the recorded counts; the run under unchanged
     * settings makes them */
    struct whatif_function *recorded;
    /* owned during a run: for each recorded cache, the simulated cache */
    struct sim *sims;
    struct thread *threads;            /* owned during a run: for each thread, its open calls */
    struct whatif_function *functions; /* owned during a run: for each code object, the counts */
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

/* Has the class CLASS_ a recorded entry? If so, CLASS_ is the index of the entry. */
static inline bool is_recorded(const struct whatif *w, uint32_t class_)
{
    return class_ < w->r->entries.count;
}

/* Return the index of the code object of the class CLASS_. */
static inline uint32_t class_code(const struct whatif *w, uint32_t class_)
{
    return class_at(w, class_)->code;
}

/* Note that the answer depends on ASSUMPTION. It is printed below the answer. */
static inline void assume(struct whatif *w, enum assumption assumption)
{
    w->assumed[assumption] = true;
}

/* Begin a run with new settings: clear everything that depends on the previous settings. */
void like_begin_simulation(struct whatif *w);

/* Would the call of LOOKUP hit the entry of the class MADE? */
enum like like_does_entry_fit(struct whatif *w, uint32_t made, uint32_t lookup);

/* Do the guards of the recorded entry ENTRY hold for the call that made the entry of the class
 * CLASS_? The guard BUT is left out, unless it is NULL. If they hold, an entry for CLASS_ has the
 * same conditions on sizes and numbers as ENTRY. */
bool like_do_guards_hold(struct whatif *w, uint32_t entry, uint32_t class_,
                         const struct guard *but);

/* Do the settings make an input of the class's calls dynamic? */
bool like_has_dynamic_input(struct whatif *w, uint32_t class_);

/* The settings drop guards. Does ENTRY die at the recorded time all the same? */
enum like like_does_entry_die(struct whatif *w, uint32_t entry);

/* ---- reading facts about calls and entries from the trace (learn.c) ------ */

/* Read facts about calls and entries from the trace. whatif_free() frees them. */
void whatif_learn_from_trace(struct whatif *w);

/* Return how many nanoseconds an operation of the kind KIND takes for an entry of the class CLASS_.
 * This is the mean of the recorded times, or else the mean for all entries of the code object, or 0
 * if no time was recorded. */
int64_t like_mean_time(const struct whatif *w, uint32_t class_, enum timed kind);

/* Return the region of LOOKUP: that of the entry RAN, if the lookup ran it, otherwise that of the
 * entries that the lookup tried. -1 is the common region. */
int64_t like_region_of_lookup(const struct replay *replay, const struct replay_lookup *lookup,
                              uint32_t ran);

static inline int64_t make_failed_key(uint32_t class_, int64_t guard)
{
    return (int64_t)((uint64_t)guard ^ (uint64_t)class_ << 36);
}

/* Return the address of the bits (FIRST_FAIL, ...) for the classes MADE and OTHER. It is valid
 * until the next call. New bits are 0. */
int64_t *pair_result_at(struct whatif *w, uint32_t made, uint32_t other);

/* Return a copy of TEXT that lives as long as the what-if. */
const char *text_keep_copy(struct whatif *w, const char *text);

/* ---- values, and whether guards hold for them (facts.c) ------------------ */

/* Return the guards of the entry of the class CLASS_. When first needed, they are loaded or, for an
 * entry that was not recorded, made up. */
const struct guards *guards_of_class(struct whatif *w, uint32_t class_);
/* Return the guard of ENTRY that has the row id ID, or NULL. */
const struct guard *guard_find(struct whatif *w, uint32_t entry, int64_t id);

/* Step to the next guard on SOURCE in the recorded entries of a code object. Returns false at the
 * end. Use: for (struct look at = {0}; guard_next_on_source(w, code, source, &at);) ... at.g ... */
struct look {
    uint32_t entry;
    const struct guard *g;
};
bool guard_next_on_source(struct whatif *w, uint32_t code, const char *source, struct look *at);

/* Does GUARD hold for calls of the class OTHER? If FIRST, does it hold for the call that made
 * OTHER's entry? Returns LIKE_GUESS_NO if the trace does not tell. */
enum like guard_holds_for_class(struct whatif *w, const struct guard *guard, uint32_t other,
                                bool first);

/* Return what the trace tells about the value at SOURCE in calls of the class OTHER or, if FIRST,
 * in the call that made OTHER's entry. */
struct value value_at_source(struct whatif *w, uint32_t other, bool first, const char *source);

/* Return the name of the value's type, or NULL if it is not known. */
const char *value_find_type(struct whatif *w, const struct value *v);

/* Return the signature with row id ID, or its input at SOURCE; NULL if there is none. */
const struct signature *signature_with_id(struct whatif *w, int64_t id);
const struct part *signature_find_part(const struct signature *signature, const char *source);

/* Is NUMBER within the bounds that WANT, the condition of a guard, allows, and a multiple
 * of its divisor? */
enum like number_is_in_bounds(const struct value *want, const struct value *number);

/* Make up guards for an entry of the class CLASS_ that was not recorded, and add them to
 * GUARDS (made.c). */
void guards_make_up(struct whatif *w, uint32_t class_, struct guards *guards);

/* ---- the range of an answer (bounds.c) ----------------------------------- */

/* How one call may end: its predicted outcome, and which other outcomes are possible. */
struct decided {
    unsigned outcome; /* the predicted outcome: enum outcome, or WHATIF_GONE */
    uint32_t class_;
    bool undecided; /* the predicted outcome is a guess */
    bool called;    /* the call is certainly looked up */
    bool hittable;  /* the call may hit, because the cache may have entries */
    bool runnable;  /* the call may run as Python, without compiled code */
    bool limited;   /* the call may run as Python because of a limit */
    bool raising;   /* the compiler raised in the recording, and may raise again */
    bool trusting;  /* the call makes or runs code whose compile is not in the recording */
    /* the cache certainly has an entry that the call hits, so the call is not compiled */
    bool settled;
    bool compilable; /* the call may be compiled if no entry fits */
    /* the class of the call has a recorded entry, so compiling the call gives code */
    bool recorded;
    /* whichever call of the class is compiled first, all others hit the new entry */
    bool alike;
    /* The members below are set by bounds_add_call(). */
    bool certain; /* it is certain that the call has the predicted outcome */
    bool eager;   /* running as Python is one of the possible outcomes */
    bool fresh;   /* the call may make code about which the trace tells nothing */
};

/* For one simulated cache: the least and the greatest number of calls that hit, are compiled, run
 * as Python and so on. */
struct bounds {
    struct whatif_range compiles, hits, eager, misses, calls;
    int64_t others; /* the most calls that may end in some other way */
    /* a compile was predicted that is not in the trace: nothing after it is certain, until a
     * reset of the cache */
    bool open;
    bool lost; /* it is not known any more what the cache has, not even after a reset */
    /* a call ended in another way than recorded, or may have, so the cache may differ from
     * the recorded one */
    bool moved;
    /* owned: classes with a recorded entry whose compile has been counted in compiles.high */
    LIST(uint32_t) compiled;
};

/* ranges_add() adds the ranges of the function MORE to those of SUM. ranges_drop_upper_bounds()
 * removes the upper bounds of the function's ranges. */
void ranges_add(struct whatif_function *sum, const struct whatif_function *more);
void ranges_drop_upper_bounds(struct whatif_function *f);

/* Count the call DECIDED in BOUNDS, and set the last members of DECIDED. */
void bounds_add_call(struct bounds *bounds, struct decided *decided);
/* The entry of the class CLASS_ died: note that calls of this class may be compiled again. */
void bounds_add_death(struct bounds *bounds, uint32_t class_);
/* torch removed all entries from the cache: note that the bounds are known again. */
void bounds_reset(struct bounds *bounds);
/* Add the ranges of BOUNDS to FUNCTION, and free BOUNDS. At most MOST calls can be compiled; -1
 * means that this number is not known. */
void bounds_finish(struct bounds *bounds, int64_t most, struct whatif_function *function);

#endif

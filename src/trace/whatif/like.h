/* trace/whatif/like.h -- would the guards of one call's entry let another call pass?
 *
 * Runs in: the viewer. trace/whatif/learn.c reads what is known from the recorded checks
 * and causes, trace/whatif/like.c answers for trace/whatif/whatif.c.
 *
 * A class is an entry that was recorded (its index: the calls that ran it), or, from entry_count on, one signature of
 * calls that ran none. */
#ifndef DYNTRACE_WHATIF_LIKE_H
#define DYNTRACE_WHATIF_LIKE_H

#include "trace/whatif/facts.h"

struct db;
struct replay;
struct replay_lookup;
struct whatif_knobs;

enum like { LIKE_NO, LIKE_GUESS_NO, LIKE_GUESS_YES, LIKE_YES };

/* Assumptions that were made; trace/whatif/whatif.c has the words, and assumptions of its own. */
enum {
    ASSUMED_ALIKE = 1 << 0,     /* calls that ran one entry are alike */
    ASSUMED_SIGNATURE = 1 << 1, /* calls with one signature are alike */
    ASSUMED_DYNAMIC = 1 << 2,   /* dynamic sizes bring no other guards */
    ASSUMED_AUTOMATIC = 1 << 3, /* torch makes sizes dynamic that change */
    ASSUMED_HIDDEN = 1 << 4,    /* what a guard looked at is not in the signature */
    ASSUMED_DROPPED = 1 << 5,   /* what a dropped guard told apart may run the same code */
    ASSUMED_LAMBDA = 1 << 6,    /* guards written in Python */
    ASSUMED_NEXT = 1 << 7,
};

struct difference { /* why a call did not fit OLDER, so that MADE was compiled: entries */
    uint32_t made, older;
    const char *kind, *source;
    bool shaped;   /* is about a size or stride */
    int dimension; /* of which; -1: not known */
};

/* How strictly the guards of a code object look at one of its names. */
struct name {
    uint32_t code;
    const char *name;
    bool guarded, exact, typed, opaque;
    struct shape shape; /* sizes that all its entries have alike; SIZE_ANY where one has it dynamic */
    uint32_t varied;    /* bits: sizes that were told apart by several entries, none of them dynamic */
    bool several;       /* different exact values */
    const char *value;  /* the first of them */
};

/* A value that guards of a code object compare, which is no name. */
struct value {
    uint32_t code;
    const char *source;
    bool several; /* its entries compare it with two values or more */
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
    bool hidden; /* something that is not in the signature told its calls apart */
};

struct cost {
    int64_t compile_ns;  /* -1: not known */
    int64_t check_ns[2]; /* of a check that fails, of one that passes */
};

struct like_code {
    bool lambdas;     /* guards of it are functions */
    bool varied;      /* something that is not in signatures made recompiles */
    bool namesakes;   /* two of its backends have one name, which then does not tell calls apart */
    bool several;     /* its calls are of several regions or backends */
    bool resume;      /* it is a resume function */
    int64_t limit;    /* in force, as far as the trace shows; 0 not known, LIMIT_VARIES */
    bool accumulated; /* it is one of all entries ever */
    struct cost cost; /* of an entry of which nothing is recorded */
};
enum { LIMIT_VARIES = -1 /* another one at times, or not one of entries */ };

struct rest { /* RESUME is a resume function of CODE */
    uint32_t code, resume;
};

struct likeness { /* what is known, and how it is asked */
    struct db *db;                    /* borrowed */
    const struct replay *r;           /* borrowed */
    const struct whatif_knobs *knobs; /* borrowed */
    uint32_t *class_of;               /* owned, by lookup */
    uint32_t *founder;                /* owned, by entry: the lookup that made it, or REPLAY_NONE */
    LIST(struct like_class) classes;
    struct map pairs; /* made << 32 | other -> bits */
    bool learnt;      /* from now on only so many pairs are remembered */
    int64_t scratch;  /* the bits of a pair that is not */
    struct facts facts;
    LIST(struct difference) differences; /* by made */
    LIST(struct name) names;
    LIST(struct value) values;
    struct map backends; /* name -> number */
    struct arena texts;
    struct like_code *codes; /* owned */
    struct cost *costs;      /* owned, by entry */
    LIST(struct rest) rests; /* by the code that breaks off */
    bool regions;            /* some entries are of a region */
    uint32_t *by_fork;       /* owned: caches with a parent, by their process's start */
    size_t forks;
    bool floats_later; /* of any process: see struct replay_process */
    struct drop {
        uint32_t code;
        const char *kind, *source;
    } *drops; /* owned: what the ids in knobs->drops are; SOURCE NULL: that one is a kind */
    bool weaker;  /* the knobs make guards weaker */
    bool relaxed; /* that counts just now */
    bool torch;   /* the call that is asked about is a torch program's */
    bool failed;
    int assumed;  /* since likeness_begin */
};

/* What is known of all pairs from the recorded checks. NULL: it was said why not. */
struct likeness *likeness_open(struct db *db, const struct replay *replay);
void likeness_free(struct likeness *l);

/* Another set of knobs: what was said about them before is forgotten. KNOBS is borrowed until the next. */
void likeness_begin(struct likeness *l, const struct whatif_knobs *knobs);

/* Would an entry made for class MADE take the call of LOOKUP? */
enum like likeness_fits(struct likeness *l, uint32_t made, uint32_t lookup);

/* The region of LOOKUP, as far as the entries show that it ran, RAN, or tried; -1: the common one. */
int64_t likeness_region(const struct replay *replay, const struct replay_lookup *lookup, uint32_t ran);

/* The bits of a pair, 0 at first; good until the next call. */
int64_t *pair_at(struct likeness *l, uint32_t made, uint32_t other);

/* TEXT in L's arena; "", and L has failed, when there is no memory. */
const char *text_copy(struct likeness *l, const char *text);

#endif

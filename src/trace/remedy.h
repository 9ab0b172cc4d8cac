/* trace/remedy.h -- finds the smallest change to a program that would have avoided a recompile, a
 * graph break or an eager call.
 *
 * The rules are in src/trace/remedies.txt, which also explains how to write one. */
#ifndef DYNTRACE_REMEDY_H
#define DYNTRACE_REMEDY_H

#include "lib/list.h"
#include "trace/cause.h"
#include "vocabulary.h"

enum remedy_on {
    ON_CAUSE,
    ON_DEATH,
    ON_OUTCOME,
    ON_BREAK,
    ON_GUARDS,
    ON_AGAIN,
    ON_BEST,
    ON_TRIED,
    ON_UNGUARDED
};

/* A case that the trace shows about a cause or a break, such as many different values. A rule can
 * ask for a case with `is`. */
struct remedy_case {
    const char *is;      /* the name of the case, such as "many" */
    const char *more;    /* what the case is about, for {more} in a rule's text */
    const char *setting; /* a setting of what-if that avoids the case, or NULL */
};

/* The event for which a remedy is wanted. Texts are borrowed and may be NULL. */
struct remedy_facts {
    enum outcome outcome; /* for ON_OUTCOME: the outcome of the calls */
    /* For ON_CAUSE the cause. For other events only two members are set: `text` is the reason, and
     * `source` what the reason is about; `dimension` is -1. */
    struct cause cause;
    /* the values over the recompiles, "16, 18, 20"; for ON_GUARDS the guards' share of a call */
    const char *values;
    const char *function;  /* the function in which the event happened */
    const char *code;      /* the kind of the function, such as "generator" */
    const char *stack;     /* the program's stack at a graph break */
    const char *line_text; /* the program's line that needs the guard or breaks the graph */
    /* the cases of the cause, from the statement why/about; the last element has no `is`. Or
     * NULL */
    const struct remedy_case *cases;
    /* copied from the case that the rule asks for, or NULL */
    const char *more, *setting;
    bool limited;    /* a limit was reached in these calls */
    int64_t count;   /* number of calls, or of recompiles */
    int64_t refused; /* number of compiles that gave no code */
    int64_t needed;  /* number of different inputs, or 0 if not known */
    int64_t line;    /* line of the graph break, or 0 if not known */
    int64_t raised;  /* a limit that is certainly high enough, or 0 if not known */
    /* torch's version as torch_version() returns it, or 0 if the program has a compiler of
     * its own */
    int torch;
};

/* How much a remedy changes. EFFORT_NOW: the call fails without the change. EFFORT_NORMAL: no
 * change is needed. EFFORT_UNGUARDED: there is no remedy; compiled code does not notice a change of
 * the value. */
enum remedy_effort {
    EFFORT_NOW,
    EFFORT_LINE,
    EFFORT_CALLS,
    EFFORT_REWRITE,
    EFFORT_PUT_OFF,
    EFFORT_NORMAL,
    EFFORT_UNGUARDED,
};

/* EFFECT_SAME: the remedy has the effect of the what-if setting for its cause. EFFECT_NONE: the
 * setting does not predict the remedy's effect. */
enum remedy_effect { EFFECT_SAME, EFFECT_NONE };

/* How a line of the program uses a number or a text. */
enum remedy_use {
    USE_ANY,
    USE_COMPUTED, /* calculates with the number */
    USE_COUNTED,  /* changes the number in place, as `n += 1` does; counts as calculating too */
    USE_TESTED,   /* branches on the number */
    USE_SLICED,   /* slices by the number, or loops over a range up to it */
    USE_PASSED,   /* passes the number unchanged to a function */
    USE_KEY,      /* uses the number as a key, table[n]; may be a calculation too */
    USE_STORED,   /* stores a value under the number, table[n] = ...; may be a calculation too */
};

/* Return how LINE of the program uses EXPRESSION. Returns USE_ANY if EXPRESSION is not in LINE, or
 * if LINE is empty. */
enum remedy_use remedy_use_of(const char *line, const char *expression);

struct remedy_rule {
    bool torch;
    enum remedy_on on;
    enum outcome outcome;
    const char *name;
    /* Conditions of the rule; NULL means that the rule allows anything. If `is` is NULL, the rule
     * asks for no case. */
    const char *kind, *source, *aspect, *said, *reason, *words, *code, *is, *expected, *function;
    const char *stack, *line;
    enum remedy_use use;
    enum {
        WHEN_ANY,
        WHEN_SMALL,
        WHEN_NEEDED,
        WHEN_HINT,
        WHEN_LIMITED,
        WHEN_INLINED,
        WHEN_REST
    } when;
    /* versions of torch, coded as remedy_facts.torch; `until` is 0 if no version is the last */
    int since, until;
    enum remedy_effort effort;
    enum remedy_effect effect;
    bool proven; /* the conditions prove that the remedy helps */
    bool beside; /* another fitting rule is printed beside this one */
    /* settings for `run --set` that have the same effect, or NULL if the program must be edited */
    const char *set;
    const char *text;
};

/* Return all rules, ended by a rule without a name (trace/remedy_rules.c). */
const struct remedy_rule *remedy_rules(void);

struct db;

/* Fill CASES with the cases of CAUSE in the trace. IDS are the function's code ids, "3, 7". Texts
 * live in ARENA. */
enum { REMEDY_CASES = 16 };
void remedy_cases_read(struct db *db, struct arena *arena, const char *ids,
                       const struct cause *cause, struct remedy_case cases[REMEDY_CASES]);

/* Return the text of the first rule that fits FACTS, or NULL if no rule fits. *RULE becomes this
 * rule, unless RULE is NULL. The caller frees the text. */
char *remedy_for(enum remedy_on on, const struct remedy_facts *facts,
                 const struct remedy_rule **rule);

/* Like remedy_for, for the next fitting rule that may be printed beside *RULE. Returns NULL if
 * there is none. */
char *remedy_next(enum remedy_on on, const struct remedy_facts *facts,
                  const struct remedy_rule **rule);

/* Return the settings of `run --set` that have the effect of RULE for FACTS, separated by blanks. A
 * setting with a blank is quoted for a shell. Returns NULL if the program must be edited. The
 * caller frees the text. */
char *remedy_setting(const struct remedy_rule *rule, const struct remedy_facts *facts);

#endif

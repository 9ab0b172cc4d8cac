/* trace/remedy.h -- the smallest change to a program that would have avoided a cause.
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

/* Something that the trace shows besides a cause or a break, which a rule can ask for with `is`. */
struct remedy_case {
    const char *is;      /* "many" */
    const char *more;    /* its subject in words, {more} in a text */
    const char *setting; /* a what-if for it, or NULL */
};

/* What happened. Texts are borrowed and may be NULL. */
struct remedy_facts {
    enum outcome outcome; /* ON_OUTCOME */
    /* ON_CAUSE; else only its text, the reason, and its source, what that is about; no dimension:
     * -1 */
    struct cause cause;
    const char *values;    /* "16, 18, 20": over the recompiles; of guards their share of a call */
    const char *function;  /* in which */
    const char *code;      /* what that is: "generator" */
    const char *stack;     /* the user's, of a break */
    const char *line_text; /* the program's line that needs the guard or breaks the graph */
    const struct remedy_case *cases; /* of a cause by why/about; up to one without `is`, or NULL */
    /* of the case that the rule asks for with `is`, or NULL: its facts */
    const char *more, *setting;
    bool limited;    /* a limit was reached */
    int64_t count;   /* calls or recompiles concerned; */
    int64_t refused; /* and compiles that gave no code */
    int64_t needed;  /* different inputs seen, 0 when not known */
    int64_t line;    /* of a break; 0 not known */
    int64_t raised;  /* a limit that is high enough for sure; 0: not known */
    /* 213 for torch 2.13 (torch_version()), 0: the program has a compiler of its own */
    int torch;
};

/* How much to change. "now": the call fails otherwise; "normal": nothing, this is as it should be;
 * "unguarded": no remedy, but compiled code does not notice a change. */
enum remedy_effort {
    EFFORT_NOW,
    EFFORT_LINE,
    EFFORT_CALLS,
    EFFORT_REWRITE,
    EFFORT_PUT_OFF,
    EFFORT_NORMAL,
    EFFORT_UNGUARDED,
};

/* Whether its effect equals that of the setting for its cause, or is less, or different. */
enum remedy_effect { EFFECT_SAME, EFFECT_NONE };

/* How a line of the program uses a number. */
enum remedy_use {
    USE_ANY,
    USE_COMPUTED, /* it calculates with it */
    USE_COUNTED,  /* it changes it in place, which is to calculate as well */
    USE_TESTED,   /* it branches on it */
    USE_SLICED,   /* it cuts by it, or loops over a range up to it */
    USE_PASSED,   /* it passes it as it is to a function */
};

/* How LINE uses EXPRESSION, as the program writes it. USE_ANY: it is not in the line, or the line
 * is not known. */
enum remedy_use remedy_use_of(const char *line, const char *expression);

struct remedy_rule {
    bool torch;
    enum remedy_on on;
    enum outcome outcome;
    const char *name;
    /* NULL: any; is: none */
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
    int since, until; /* as remedy_facts.torch; until 0: still */
    enum remedy_effort effort;
    enum remedy_effect effect;
    bool proven;     /* the conditions show that it helps, not only that it may */
    bool beside;     /* one more rule is taken after this one */
    const char *set; /* the same without an edit, for `run --set`; NULL: it needs one */
    const char *text;
};

/* All rules; the last has no name (trace/remedy_rules.c). */
const struct remedy_rule *remedy_rules(void);

struct db;

/* Fill CASES with facts about CAUSE from the trace. IDS: the function's code ids, "3, 7". Texts
 * live in ARENA. */
enum { REMEDY_CASES = 16 };
void remedy_cases_read(struct db *db, struct arena *arena, const char *ids,
                       const struct cause *cause, struct remedy_case cases[REMEDY_CASES]);

/* The text of the first rule that fits FACTS; the caller frees it. NULL: no rule fits. *RULE is set
 * to the rule if RULE is not NULL. */
char *remedy_for(enum remedy_on on, const struct remedy_facts *facts,
                 const struct remedy_rule **rule);

/* The same for the next fitting rule that may be printed beside *RULE; NULL: none. */
char *remedy_next(enum remedy_on on, const struct remedy_facts *facts,
                  const struct remedy_rule **rule);

/* The settings of `run --set` equivalent to RULE for FACTS, separated by blanks; a setting with a
 * blank is quoted as in a shell. The caller frees it; NULL: the remedy needs an edit. */
char *remedy_setting(const struct remedy_rule *rule, const struct remedy_facts *facts);

#endif

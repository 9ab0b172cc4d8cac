/* trace/remedy.h -- finds the smallest change to a program that would have avoided a recompile, a
 * graph break or an eager call.
 *
 * The rules are in src/trace/remedies.txt, which also explains how to write one. */
#ifndef DYNTRACE_REMEDY_H
#define DYNTRACE_REMEDY_H

#include "lib/list.h"
#include "trace/cause.h"
#include "vocabulary.h"

/* The events for which there are rules; the head of remedies.txt describes them. */
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

/* Something that a trace shows about a cause or a graph break, for example "many": there were many
 * different values. A rule asks for a case by `is`. */
struct remedy_case {
    const char *is;   /* the name of the case, such as "many" */
    const char *more; /* a detail of the case, for {more} in a rule's text */
    /* a setting of `replay --what-if` with which the case does not occur, or NULL */
    const char *setting;
};

/* The event for which a remedy is wanted. Texts are borrowed and may be NULL. */
struct remedy_facts {
    enum outcome outcome; /* for ON_OUTCOME: the outcome of the calls that the remedy is for */
    /* for ON_CAUSE: the cause of the recompile. For other events: `text` is torch's
     * reason, `source` is the subject of the reason, `dimension` is -1, and the other
     * members are not set */
    struct cause cause;
    /* the values in all the recompiles, such as "16, 18, 20"; for ON_GUARDS: which share of a
     * call's time the guards take */
    const char *values;
    const char *function;  /* the function in which the event happened */
    const char *code;      /* the kind of the function's code, such as "generator" */
    const char *stack;     /* the program's stack at a graph break */
    const char *line_text; /* the program's line that needs the guard or breaks the graph */
    /* the cases of the cause, from the statement why/about, or NULL; the last
     * element has no `is` */
    const struct remedy_case *cases;
    /* the members `more` and `setting` of the case that the rule asks for, or NULL;
     * remedy.c sets them */
    const char *more, *setting;
    bool limited;    /* in these calls a limit was reached */
    int64_t count;   /* number of calls, or of recompiles */
    int64_t refused; /* number of compiles that produced no code */
    int64_t needed;  /* number of different inputs, or 0 if not known */
    int64_t line;    /* line of the graph break, or 0 if not known */
    int64_t raised;  /* a value of the limit that is certainly high enough, or 0 if not known */
    /* torch's version as torch_parse_version() returns it, or 0 if the program has a compiler of
     * its own */
    int torch;
};

/* How much work a remedy is for the author of the program. */
enum remedy_effort {
    EFFORT_NOW,     /* the program must be changed in any case, because the call fails */
    EFFORT_LINE,    /* change one line, or an option */
    EFFORT_CALLS,   /* change the code that calls the function */
    EFFORT_REWRITE, /* rewrite a piece of the program */
    EFFORT_PUT_OFF, /* the remedy helps only for a while */
    EFFORT_NORMAL,  /* change nothing: what happened is normal */
    /* nothing can be changed: compiled code does not notice when this value changes */
    EFFORT_UNGUARDED,
};

/* EFFECT_SAME: a what-if setting that avoids the cause predicts the effect of the remedy.
 * EFFECT_NONE: it does not predict the effect. */
enum remedy_effect { EFFECT_SAME, EFFECT_NONE };

/* How a line of the program uses a number or a text. */
enum remedy_use {
    USE_ANY,
    USE_COMPUTED, /* the line calculates with the number */
    /* the line changes the number in place, as `n += 1` does; a rule for
     * USE_COMPUTED fits as well */
    USE_COUNTED,
    USE_TESTED, /* the line branches on the number */
    USE_SLICED, /* the line has x[:n] or range(n), where n is the number */
    USE_PASSED, /* the line passes the number unchanged to a function */
    /* the line uses the number as a key, table[n]; a rule for USE_COMPUTED fits as well */
    USE_KEY,
    /* the line stores a value under the number, table[n] = ...; a rule for
     * USE_COMPUTED fits as well */
    USE_STORED,
};

/* Return how LINE of the program uses EXPRESSION. Returns USE_ANY if EXPRESSION is not in LINE, or
 * if LINE is empty. */
enum remedy_use remedy_find_use(const char *line, const char *expression);

/* Does LINE of the program begin with a test: if, elif, while or assert? */
bool remedy_is_branch(const char *line);

struct remedy_rule {
    bool torch;
    enum remedy_on on;
    enum outcome outcome;
    const char *name;
    /* conditions of the rule: a member that is NULL allows anything, and if `is` is NULL, no
     * case is asked for */
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
    /* versions of torch for which the rule is, coded as remedy_facts.torch; `until` is 0 if the
     * rule is for all later versions */
    int since, until;
    enum remedy_effort effort;
    enum remedy_effect effect;
    bool proven; /* if the conditions of the rule hold, the remedy certainly helps */
    bool beside; /* if this rule fits, the next rule that fits is printed as well */
    /* settings for `run --set` that have the same effect, or NULL if the program must be edited */
    const char *set;
    const char *text;
};

/* Return an array of all rules. Behind the last rule is one without a name
 * (trace/remedy_rules.c). */
const struct remedy_rule *remedy_rules(void);

struct db;

/* Fill CASES with what the trace shows about CAUSE. IDS are the function's code ids, "3, 7". The
 * texts live in ARENA. */
enum { REMEDY_CASES = 24 };
void remedy_cases_read(struct db *db, struct arena *arena, const char *ids,
                       const struct cause *cause, struct remedy_case cases[REMEDY_CASES]);

/* Return the text of the first rule that fits FACTS, or NULL if no rule fits. *RULE becomes this
 * rule, unless RULE is NULL. The caller frees the text. */
char *remedy_find_text(enum remedy_on on, const struct remedy_facts *facts,
                       const struct remedy_rule **rule);

/* Like remedy_find_text(), but return the next rule that fits after *RULE. Returns NULL if there is
 * none, or if *RULE does not want another rule beside it (`beside`). */
char *remedy_find_next_text(enum remedy_on on, const struct remedy_facts *facts,
                            const struct remedy_rule **rule);

/* Return the settings of `run --set` that have the effect of RULE for FACTS, separated by blanks. A
 * setting with a blank is quoted for a shell. Returns NULL if the program must be edited. The
 * caller frees the text. */
char *remedy_make_setting(const struct remedy_rule *rule, const struct remedy_facts *facts);

#endif

/* trace/cause.h -- why an older entry did not fit: a row of recompile_cause. */
#ifndef DYNTRACE_CAUSE_H
#define DYNTRACE_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct cause {                                    /* texts are borrowed, or NULL */
    int64_t compile_id, cache_entry_id, guard_id; /* 0: not known */
    const char *older_entry, *kind, *source, *aspect, *expected, *actual, *text;
    int64_t dimension;      /* -1: none */
    const char *user_stack; /* the program's line that needs the guard: trace/user_stack.h */
    const char *how;        /* "observed" when it happened, or "rechecked" afterwards */
    bool decided;           /* the first guard of that entry that did not hold */
    /* the guard's only failure: dropping the guard and fixing the cause are equivalent */
    bool whole;
};

/* The subject of a cause: its source, else its kind; a name for torch's global flags. The caller
 * frees it. */
char *cause_about(const struct cause *cause);

/* The part of the source, such as "size[0]", if the texts name one. The caller frees it; NULL: the
 * whole source. The expected and actual values of that part are borrowed ("16" of "size[0] = 16");
 * NULL: not known. */
char *cause_part(const struct cause *cause);
const char *cause_wanted(const struct cause *cause);
const char *cause_seen(const struct cause *cause);

/* ---- the words of every page: why, report, HTML, TUI, check, replay ---- */

/* The subject of a cause as the program's own expression: "len(x)", "self.kv.size". The caller
 * frees it. */
char *cause_called(const struct cause *cause);

/* The expected and the actual value, shortened but distinguishable. The caller frees them; NULL:
 * not known. */
char *cause_expected(const struct cause *cause);
char *cause_actual(const struct cause *cause);

/* "n: expected 6, actual 7". The caller frees it; NULL: neither value is known. */
char *cause_sentence(const struct cause *cause);

/* Length of SOURCE without the tested property: that of L['x'] in L['x'].size()[0]. */
int cause_base(const char *source);

/* The setting of `replay --what-if` that spares a cause: "dynamic=L['x'][0]" where a size or number
 * changed, else "drop_guard=12". The caller frees it; NULL: none does. */
char *cause_setting(const struct cause *cause);

/* Is TEXT a number? */
bool cause_number(const char *text);

#endif

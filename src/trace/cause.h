/* trace/cause.h -- why an older cache entry could not run a call: a row of recompile_cause. */
#ifndef DYNTRACE_CAUSE_H
#define DYNTRACE_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct cause {                                    /* each text is borrowed, or NULL if not known */
    int64_t compile_id, cache_entry_id, guard_id; /* each id is 0 if not known */
    const char *older_entry, *kind, *source, *aspect, *expected, *actual, *text;
    int64_t dimension;      /* -1 if the cause is not about one dimension */
    const char *user_stack; /* the program's line that needs the guard: trace/user_stack.h */
    /* "observed" if the guard failed in a lookup, "rechecked" if it was evaluated again
     * afterwards */
    const char *how;
    bool decided; /* this guard is the first guard of the older entry that failed */
    /* the guard has no other cause, so dropping the guard has the same effect as fixing this
     * cause */
    bool whole;
};

/* Return the subject of a cause: its source, or its kind if no source is known. If torch's global
 * flags changed, return their names. The caller frees the text. */
char *cause_about(const struct cause *cause);

/* cause_part: return the part of the source that the expected and actual values name, such as
 * "size[0]", or NULL if they name none. The caller frees the text.
 *
 * cause_wanted, cause_seen: return the expected and the actual value of this part, such as "16" of
 * "size[0] = 16", or NULL if the value is not known. Both are borrowed. */
char *cause_part(const struct cause *cause);
const char *cause_wanted(const struct cause *cause);
const char *cause_seen(const struct cause *cause);

/* ---- words for a cause, for why, report, HTML, TUI, check and replay ---- */

/* Return the subject of a cause as an expression of the program: "len(x)", "self.kv.size". The
 * caller frees the text. */
char *cause_called(const struct cause *cause);

/* Return the expected and the actual value. Long values are shortened, but the two stay different.
 * Returns NULL if the value is not known. The caller frees the text. */
char *cause_expected(const struct cause *cause);
char *cause_actual(const struct cause *cause);

/* Return a sentence such as "n: expected 6, actual 7", or NULL if neither value is known. The
 * caller frees the text. */
char *cause_sentence(const struct cause *cause);

/* Return the length of SOURCE without the tested property: for "L['x'].size()[0]" the length of
 * "L['x']". */
int cause_base(const char *source);

/* Return the setting of `replay --what-if` without which CAUSE would not have forced a recompile:
 * "dynamic=L['x'][0]" if a size or number changed, otherwise "drop_guard=12". Returns NULL if no
 * setting avoids the cause. The caller frees the text. */
char *cause_setting(const struct cause *cause);

/* Is TEXT a decimal number? Texts such as "0x10" and "nan" are not. */
bool cause_number(const char *text);

#endif

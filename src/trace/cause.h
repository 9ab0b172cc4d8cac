/* trace/cause.h -- why an older cache entry could not run a call: a row of recompile_cause. */
#ifndef DYNTRACE_CAUSE_H
#define DYNTRACE_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

/* A cause of a recompile. Texts are borrowed; a text is NULL if it is not known. */
struct cause {
    int64_t compile_id, cache_entry_id, guard_id; /* an id is 0 if it is not known */
    const char *older_entry, *kind, *source, *aspect, *expected, *actual, *text;
    int64_t dimension; /* number of the dimension, or -1 if the cause is not about one */
    /* the program's stack at the line that needs the guard (trace/user_stack.h) */
    const char *user_stack;
    /* "observed" if the guard failed in a lookup, "rechecked" if it failed in a later evaluation */
    const char *how;
    bool decided; /* this guard was the first of the older entry's guards to fail */
    /* no other cause is about this guard, so dropping the guard has the same effect as fixing this
     * cause */
    bool whole;
};

/* Return the subject of a cause: its source, or its kind if no source is known. If torch's global
 * flags changed, return the names of these flags. The caller frees the text. */
char *cause_name_subject(const struct cause *cause);

/* cause_name_part: return the part of the source that the expected and actual values name, such as
 * "size[0]", or NULL if these values name no part. The caller frees the text.
 *
 * cause_expected_value, cause_actual_unshortened: return the expected and the actual value of this
 * part, such as "16" of "size[0] = 16", or NULL if the value is not known. Both are borrowed. */
char *cause_name_part(const struct cause *cause);
const char *cause_expected_value(const struct cause *cause);
const char *cause_actual_unshortened(const struct cause *cause);

/* ---- texts about a cause, for all commands and pages --------------------- */

/* Return the subject of a cause as an expression of the program: "len(x)", "self.kv.size". The
 * caller frees the text. */
char *cause_subject_expression(const struct cause *cause);

/* Return the expected or the actual value. A long value is shortened, but still differs from the
 * other value. Returns NULL if the value is not known. The caller frees the text. */
char *cause_expected(const struct cause *cause);
char *cause_actual(const struct cause *cause);

/* Return a sentence such as "n: expected 6, actual 7", or NULL if neither value is known. The
 * caller frees the text. */
char *cause_make_sentence(const struct cause *cause);

/* Return the length of SOURCE without the property that is checked: for "L['x'].size()[0]" the
 * length of "L['x']". */
int cause_length_of_variable(const char *source);

/* Return the setting of `replay --what-if` under which CAUSE does not force a recompile:
 * "dynamic=L['x'][0]" if a size or number changed, otherwise "drop_guard=12". Returns NULL if there
 * is no such setting. The caller frees the text. */
char *cause_make_setting(const struct cause *cause);

/* Is TEXT a decimal number? Texts such as "0x10" and "nan" are not. */
bool cause_is_number(const char *text);

#endif

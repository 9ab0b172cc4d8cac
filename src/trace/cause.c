/* trace/cause.c -- why an older cache entry could not run a call: a row of recompile_cause. See
 * trace/cause.h. */
#include "trace/cause.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/list.h"
#include "lib/say.h"
#include "trace/brief.h"
#include "trace/expression.h"
#include "trace/prose.h"

char *cause_name_subject(const struct cause *cause)
{
    static const char changed[] = "GLOBAL_STATE changed: ";
    const char *source = prose_null_if_empty(cause->source);
    const char *flags = prose_are_texts_equal(cause->kind, "GLOBAL_STATE") &&
                                (!source || !strcmp(source, "global state")) && cause->text
                            ? strstr(cause->text, changed)
                            : NULL;

    if (flags)
        return strndup(flags + strlen(changed), strcspn(flags + strlen(changed), "\n"));
    if (source)
        return strdup(source);
    if (prose_are_texts_equal(cause->kind, "BACKEND_MATCH"))
        return strdup("the backend");
    return strdup(prose_null_if_empty(cause->kind) ?: "?");
}

enum { HEAD_BYTES = 120 };

/* If the expected and the actual value begin with the name of the aspect, such as "size[0] =
 * " or "dtype ", copy this beginning to HEAD and return its length. Returns 0 if both texts
 * are only values. */
static size_t copy_aspect_prefix(const struct cause *cause, char head[HEAD_BYTES])
{
    size_t length;

    if (!cause->aspect || !cause->actual)
        return 0;
    if (cause->dimension < 0)
        snprintf(head, HEAD_BYTES, "%s ", cause->aspect);
    else
        snprintf(head, HEAD_BYTES, "%s[%" PRId64 "] = ", cause->aspect, cause->dimension);
    length = strlen(head);
    return !strncmp(cause->actual, head, length) && cause->actual[length] &&
                   (!cause->expected || !strncmp(cause->expected, head, length))
               ? length
               : 0;
}

static const char *skip_aspect_prefix(const struct cause *cause, const char *text)
{
    char head[HEAD_BYTES];

    return text && *text ? text + copy_aspect_prefix(cause, head) : NULL;
}

char *cause_name_part(const struct cause *cause)
{
    char head[HEAD_BYTES];

    return copy_aspect_prefix(cause, head) ? strndup(head, strcspn(head, " ")) : NULL;
}

const char *cause_expected_value(const struct cause *cause)
{
    return skip_aspect_prefix(cause, cause->expected);
}

const char *cause_actual_unshortened(const struct cause *cause)
{
    const char *seen = skip_aspect_prefix(cause, cause->actual);
    size_t length = cause->source ? strlen(cause->source) : 0;
    const char *value;

    /* Return only "8" of an actual value such as "L['x'].size()[0] = 8", which the trace has if the
     * guard is an expression. */
    if (!seen || !length || strncmp(seen, cause->source, length))
        return seen;
    value = seen + length;
    if (strncmp(value, " = ", 3) || !value[3])
        return seen;
    return value + 3;
}

/* ---- texts about a cause that all pages share ---------------------------- */

/* To name the subject of CAUSE, must CALL be put around its source, as `len(x)` is for the aspect
 * "length"? No if CAUSE is about a PART of the source, or if ABOUT, the text of the source, begins
 * with CALL already. */
static bool does_subject_need_call(const struct cause *cause, const char *part, const char *about,
                                   const char *aspect, const char *call)
{
    bool is_whole =
        prose_are_texts_equal(cause->aspect, aspect) && !part && prose_null_if_empty(cause->source);

    return is_whole && strncmp(about, call, strlen(call)) != 0;
}

char *cause_subject_expression(const struct cause *cause)
{
    char *about = cause_name_subject(cause);
    char *part = cause_name_part(cause);
    char *written = expression_from_source(about);
    const char *call = does_subject_need_call(cause, part, about, "length", "len(")  ? "len("
                       : does_subject_need_call(cause, part, about, "type", "type(") ? "type("
                                                                                     : NULL;
    char *name = say_print("%s%s%s%s%s", call ? call : "", written, call ? ")" : "",
                           part ? " " : "", part ? part : "");

    free(about);
    free(part);
    free(written);
    return name;
}

static const char equals[] = " == ";

/* Is VALUE an equation such as "L['n'] == 6", with SOURCE, which has BYTES bytes, on its left side?
 * Of an equation a page prints only the right side, because the source stands before the value.
 * "L['n'] == f(L['n']) and L['n'] > 1" names the source twice, and is no equation. */
static bool is_equation(const char *value, const char *source, size_t bytes)
{
    bool begins =
        bytes && !strncmp(value, source, bytes) && !strncmp(value + bytes, equals, strlen(equals));

    return begins && !strstr(value + bytes, source);
}

/* Return VALUE, the expected or actual value of CAUSE, as pages print it. BESIDE is the other of
 * the two. VALUE is shortened, but still differs from BESIDE. The caller frees the text. */
static char *make_value_text(const struct cause *cause, const char *value, const char *beside)
{
    size_t bytes = cause->source ? strlen(cause->source) : 0;
    char *shortened, *written;

    if (!value)
        return NULL;
    if (is_equation(value, cause->source, bytes))
        value += bytes + strlen(equals);
    shortened = brief_make_pair_distinct(value, beside);
    written = expression_from_source(shortened);
    free(shortened);
    return written;
}

char *cause_expected(const struct cause *cause)
{
    return make_value_text(cause, prose_null_if_empty(cause_expected_value(cause)),
                           cause_actual_unshortened(cause));
}

char *cause_actual(const struct cause *cause)
{
    return make_value_text(cause, prose_null_if_empty(cause_actual_unshortened(cause)),
                           cause_expected_value(cause));
}

char *cause_make_sentence(const struct cause *cause)
{
    char *name = cause_subject_expression(cause);
    char *expected = cause_expected(cause);
    char *actual = cause_actual(cause);
    char *words = NULL;

    if (expected || actual)
        words = say_print("%s: %s%s%s%s%s", name, expected ? "expected " : "",
                          expected ? expected : "", expected && actual ? ", " : "",
                          actual ? "actual " : "", actual ? actual : "");
    free(name);
    free(expected);
    free(actual);
    return words;
}

int cause_length_of_variable(const char *source)
{
    static const char *const asked[] = {".size()",
                                        ".shape",
                                        ".stride()",
                                        ".strides",
                                        ".dtype",
                                        ".device",
                                        ".requires_grad",
                                        ".ndim",
                                        ".dim()",
                                        "._dynamo_dynamic_indices",
                                        "._dynamo_weak_dynamic_indices",
                                        "._dynamo_static_indices"};
    const char *dot = strrchr(source, '.');
    size_t bytes = strlen(source);
    bool is_call = !strncmp(source, "len(", 4) || !strncmp(source, "type(", 5);

    if (is_call && source[bytes - 1] == ')')
        return (int)bytes; /* keep the whole call, because a piece of it would not be a source */
    for (size_t i = 0; dot && i < array_count(asked); i++) {
        size_t length = strlen(asked[i]);
        const char *rest = dot + length;
        if (!strncmp(dot, asked[i], length) && !rest[strspn(rest, "[]0123456789-")])
            return (int)(dot - source);
    }
    return (int)bytes;
}

bool cause_is_number(const char *text)
{
    char *end;

    if (!text || !strpbrk(text, "0123456789"))
        return false;
    if (strstr(text, "0x"))
        return false;
    strtod(text, &end);
    return end > text && !*end;
}

char *cause_make_setting(const struct cause *cause)
{
    const char *source = cause->source ? cause->source : "";
    bool is_size = prose_are_texts_equal(cause->aspect, "size") && cause->dimension >= 0;
    bool is_input = !strncmp(source, "L[", 2) && !strpbrk(source, ", ");
    bool is_number = cause_is_number(cause->expected) && cause_is_number(cause->actual);

    if (is_size && cause->source)
        return say_print("dynamic=%.*s[%" PRId64 "]", cause_length_of_variable(source), source,
                         cause->dimension);
    if (is_input && is_number) {
        if (prose_are_texts_equal(cause->aspect, "value"))
            return say_print("dynamic=%s", source);
    }
    return cause->guard_id > 0 ? say_print("drop_guard=%" PRId64, cause->guard_id) : NULL;
}

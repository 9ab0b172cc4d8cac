/* trace/cause.c -- why an older entry did not fit: a row of recompile_cause. See trace/cause.h. */
#include "trace/cause.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/say.h"
#include "trace/db.h"
#include "trace/prose.h"

static const char *text_of(struct query *query, int column)
{
    return query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL);
}

struct cause cause_read(struct query *query, int first)
{
    return (struct cause){.kind = text_of(query, first),
                          .source = text_of(query, first + 1),
                          .aspect = text_of(query, first + 2),
                          .dimension = query_type(query, first + 3) == QUERY_INTEGER
                                           ? query_integer(query, first + 3)
                                           : -1,
                          .expected = text_of(query, first + 4),
                          .actual = text_of(query, first + 5),
                          .text = text_of(query, first + 6),
                          .guard_id = query_integer(query, first + 7),
                          .compile_id = query_integer(query, first + 8),
                          .cache_entry_id = query_integer(query, first + 9)};
}

char *cause_about(const struct cause *cause)
{
    static const char changed[] = "GLOBAL_STATE changed: ";
    const char *source = prose_filled(cause->source),
               *flags = prose_same(cause->kind, "GLOBAL_STATE") &&
                                (!source || !strcmp(source, "global state")) && cause->text
                            ? strstr(cause->text, changed)
                            : NULL;

    if (flags)
        return strndup(flags + strlen(changed), strcspn(flags + strlen(changed), "\n"));
    if (source)
        return strdup(source);
    if (prose_same(cause->kind, "BACKEND_MATCH"))
        return strdup("the backend");
    return strdup(prose_filled(cause->kind) ?: "?");
}

enum { HEAD_BYTES = 120 };

/* The part in words, with what the texts have between it and a value, "size[0] = ", "dtype ", into
 * HEAD; its length. 0: the texts are values only. */
static size_t part_head(const struct cause *cause, char head[HEAD_BYTES])
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

static const char *value_in(const struct cause *cause, const char *text)
{
    char head[HEAD_BYTES];

    return text && *text ? text + part_head(cause, head) : NULL;
}

char *cause_part(const struct cause *cause)
{
    char head[HEAD_BYTES];

    return part_head(cause, head) ? strndup(head, strcspn(head, " ")) : NULL;
}

const char *cause_wanted(const struct cause *cause)
{
    return value_in(cause, cause->expected);
}

const char *cause_seen(const struct cause *cause)
{
    const char *seen = value_in(cause, cause->actual);
    size_t length = cause->source ? strlen(cause->source) : 0;

    /* A guard that is an expression saw "L['x'].size()[0] = 8". */
    if (seen && length && !strncmp(seen, cause->source, length) &&
        !strncmp(seen + length, " = ", 3) && seen[length + 3])
        seen += length + 3;
    return seen;
}

int cause_base(const char *source)
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

    if ((!strncmp(source, "len(", 4) || !strncmp(source, "type(", 5)) && source[bytes - 1] == ')')
        return (int)bytes; /* reads well as it is */
    for (size_t i = 0; dot && i < sizeof asked / sizeof *asked; i++) {
        const char *rest = dot + strlen(asked[i]);
        if (!strncmp(dot, asked[i], strlen(asked[i])) && !rest[strspn(rest, "[]0123456789-")])
            return (int)(dot - source);
    }
    return (int)bytes;
}

bool cause_number(const char *text)
{
    char *end;

    if (!text || !*text || !strpbrk(text, "0123456789") || strstr(text, "0x"))
        return false;
    strtod(text, &end);
    return end > text && !*end;
}

char *cause_setting(const struct cause *cause)
{
    const char *source = cause->source ? cause->source : "";

    if (prose_same(cause->aspect, "size") && cause->dimension >= 0 && cause->source)
        return say_print("dynamic=%.*s[%" PRId64 "]", cause_base(source), source, cause->dimension);
    if (prose_same(cause->aspect, "value") && !strncmp(source, "L[", 2) && !strpbrk(source, ", ") &&
        cause_number(cause->expected) && cause_number(cause->actual))
        return say_print("dynamic=%s", source);
    return cause->guard_id > 0 ? say_print("drop_guard=%" PRId64, cause->guard_id) : NULL;
}

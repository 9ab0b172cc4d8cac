/* trace/cause.c -- why an older entry did not fit: a row of recompile_cause. See trace/cause.h.
 *
 * Runs in: the viewer. */
#include "trace/cause.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/torch_words.h"

struct cause cause_read(struct query *query, int first)
{
    return (struct cause){
        .kind = prose_column(query, first), .source = prose_column(query, first + 1), .aspect = prose_column(query, first + 2),
        .dimension = query_type(query, first + 3) == QUERY_INTEGER ? query_integer(query, first + 3) : -1,
        .expected = prose_column(query, first + 4), .actual = prose_column(query, first + 5),
        .text = prose_column(query, first + 6), .guard_id = query_integer(query, first + 7),
        .compile_id = query_integer(query, first + 8), .entry_id = query_integer(query, first + 9)};
}

void cause_free(struct cause *cause)
{
    free(cause->entry), free(cause->kind), free(cause->source), free(cause->aspect);
    free(cause->expected), free(cause->actual), free(cause->text);
}

static bool aspect_is(const struct cause *cause, const char *aspect)
{
    return cause->aspect && !strcmp(cause->aspect, aspect);
}

char *cause_about(const struct cause *cause)
{
    struct span flags = {0};

    if (cause->kind && !strcmp(cause->kind, "GLOBAL_STATE") && (!cause->source || !strcmp(cause->source, "global state")))
        flags = torch_flags(cause->text);
    if (flags.bytes)
        return strndup(flags.text, flags.bytes);
    return strdup(cause->source && *cause->source ? cause->source : cause->kind ? cause->kind : "?");
}

/* The part in words, with what the texts have between it and a value: "size[0] = ", "dtype ". The caller frees it; NULL:
 * the texts are values only. */
static char *part_head(const struct cause *cause)
{
    char *head = NULL;
    int length = !cause->aspect             ? -1
                 : cause->dimension < 0     ? asprintf(&head, "%s ", cause->aspect)
                                            : asprintf(&head, "%s[%" PRId64 "] = ", cause->aspect, cause->dimension);

    if (length > 0 && cause->actual && !strncmp(cause->actual, head, (size_t)length) && cause->actual[length] &&
        (!cause->expected || !strncmp(cause->expected, head, (size_t)length)))
        return head;
    if (length > 0)
        free(head);
    return NULL;
}

static const char *value_in(const struct cause *cause, const char *text)
{
    char *head = part_head(cause);
    size_t length = head ? strlen(head) : 0;

    free(head);
    return text && *text ? text + length : NULL;
}

char *cause_part(const struct cause *cause)
{
    char *head = part_head(cause);

    if (head)
        head[strcspn(head, " ")] = 0;
    return head;
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
    if (seen && length && !strncmp(seen, cause->source, length) && !strncmp(seen + length, " = ", 3) && seen[length + 3])
        seen += length + 3;
    return seen;
}

int cause_base(const char *source)
{
    static const char *const asked[] = {".size()", ".shape", ".stride()", ".strides", ".dtype", ".device",
                                        ".requires_grad", ".ndim", ".dim()"};
    const char *dot = strrchr(source, '.');

    if ((!strncmp(source, "len(", 4) || !strncmp(source, "type(", 5)) && source[strlen(source) - 1] == ')')
        return (int)strlen(source); /* reads well as it is */
    for (size_t i = 0; dot && i < sizeof asked / sizeof *asked; i++)
        if (!strncmp(dot, asked[i], strlen(asked[i])) && strspn(dot + strlen(asked[i]), "[]0123456789-") == strlen(dot + strlen(asked[i])))
            return (int)(dot - source);
    return (int)strlen(source);
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
    char *made = NULL;
    int length = -1;

    if (aspect_is(cause, "size") && cause->dimension >= 0 && cause->source)
        length = asprintf(&made, "dynamic=%.*s[%" PRId64 "]", cause_base(cause->source), cause->source, cause->dimension);
    else if (aspect_is(cause, "value") && cause->source && !strncmp(cause->source, "L[", 2) && !strpbrk(cause->source, ", ") &&
             cause_number(cause->expected) && cause_number(cause->actual))
        length = asprintf(&made, "dynamic=%s", cause->source);
    else if (cause->guard_id > 0)
        length = asprintf(&made, "drop_guard=%" PRId64, cause->guard_id);
    return length < 0 ? NULL : made;
}

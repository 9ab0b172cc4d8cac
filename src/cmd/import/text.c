/* cmd/import/text.c -- what torch's log has in text alone: guards, causes, breaks. See cmd/import/text.h.
 *
 * Runs in: the viewer.
 *
 * The tree of guards is a listing of managers, each with the guards of its value:
 *
 *     | +- GuardManager: source=L['x'], accessed_by=...
 *     | | +- TENSOR_MATCH: check_tensor(L['x'], ...)    # y = x * k  # a/b.py:4 in f
 *
 * A cause of a recompile is a sentence, "0/1: k == 1" or "0/0: tensor 'x' size mismatch at index 0. expected 2, actual 3",
 * in which locals have their bare names. The guard is the one of that entry that says so; when none does, the sentence is
 * kept and nothing is guessed. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/import/text.h"
#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"

enum { DEPTH = 200, MOST_TEXT = 8000, MOST_SOURCE = 2000 };

/* ---- guards ---------------------------------------------------------------- */

/* The code and the comment of "check(...)   # y = x * k  # a/b.py:4 in f": two blanks and a '#' part them. */
static size_t code_length(const char *text)
{
    size_t length = strlen(text);
    const char *mark = strstr(text, "  # ");

    if (mark)
        length = (size_t)(mark - text);
    while (length && text[length - 1] == ' ')
        length--;
    return length;
}

/* 'File "/x/a/b.py", line 4, in f' of the last "# a/b.py:4 in f" of a comment; NULL: there is none, or it is torch's own code.
 * Torch shortens paths: FILENAME, the compiled function's, stands for what it ends in. The caller frees it. */
static char *user_stack(const char *text, const char *filename)
{
    const char *mark = NULL, *colon, *in;
    size_t shown, whole;

    for (const char *next = text; (next = strstr(next, "# ")); next++)
        mark = next + 2;
    if (!mark || !(in = strstr(mark, " in ")))
        return NULL;
    for (colon = in; colon > mark && colon[-1] != ':'; colon--)
        ;
    if (colon <= mark || strspn(colon, "0123456789") != (size_t)(in - colon) || in == colon)
        return NULL;
    shown = (size_t)(colon - 1 - mark);
    whole = filename ? strlen(filename) : 0;
    if (!strncmp(mark, "_dynamo/", 8) || !strncmp(mark, "torch/", 6))
        return NULL;
    if (shown >= 8 && whole > shown && !strncmp(filename + whole - shown, mark, shown)) {
        mark = filename;
        shown = whole;
    }
    return say_print("File \"%.*s\", line %.*s, in %.*s", (int)shown, mark, (int)(in - colon), colon,
                     (int)strcspn(in + 4, " \n"), in + 4); /* after it there may be a "(HINT: ...)" */
}

/* Of a manager "source=L['x'], accessed_by=..." the source, which TEXT then ends with; NULL: it says none. */
static const char *manager_source(char *text)
{
    char *end;

    if (strncmp(text, "source=", 7) != 0)
        return NULL;
    text += 7;
    end = strstr(text, ", accessed_by=");
    if (!end)
        end = strstr(text, ", type=<class ");
    if (end)
        *end = 0;
    if (strlen(text) > MOST_SOURCE)
        text[MOST_SOURCE] = 0;
    return text;
}

/* What the guards of the whole call look at, as our recorder names it. */
static const char *kind_source(const char *kind, const char *said)
{
    static const char *const table[][2] = {
        {"GLOBAL_STATE", "global state"}, {"TORCH_FUNCTION_MODE_STACK", "torch function modes"},
        {"DEFAULT_DEVICE", "torch.utils._device.CURRENT_DEVICE"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(kind, table[i][0]))
            return table[i][1];
    return strstr(said, "top_saved_tensors_hooks") ? "saved tensors hooks" : NULL;
}

/* A guard that is being read: torch prints each part of a long one on a line of its own. */
struct guard {
    const char *kind, *source; /* borrowed */
    char *stack;               /* owned, or NULL */
    LIST(char) said;           /* empty: there is no guard */
    size_t depth;
};

static void guard_says(struct guard *guard, const char *text)
{
    if (*text)
        memcpy(list_add_many(&guard->said, strlen(text)), text, strlen(text));
}

/* The guard that was read, as a row of ENTRY. */
static void guard_put(struct query *insert, int64_t entry, struct guard *guard, int64_t *count)
{
    if (guard->kind) {
        *list_add(&guard->said) = 0;
        query_bind_integer(insert, 1, entry);
        query_bind_integer(insert, 2, (*count)++);
        query_bind_text(insert, 3, guard->kind);
        query_bind_text(insert, 4, guard->source);
        query_bind_text(insert, 5, guard->said.at);
        query_bind_text(insert, 6, guard->stack);
        query_step(insert);
        query_reset(insert);
    }
    list_free(&guard->said);
    free(guard->stack);
    *guard = (struct guard){0};
}

/* Is what comes next another part of GUARD? Those of OBJECT_ALIASING are guards by themselves, and of LAMBDA_GUARD but for
 * the one of all sizes at the end. */
static bool goes_on(const struct guard *guard, const char *kind, size_t depth)
{
    return guard->kind && guard->depth == depth && !strcmp(guard->kind, kind) && !(depth && !strcmp(kind, "LAMBDA_GUARD")) &&
           strcmp(kind, "OBJECT_ALIASING") != 0;
}

/* The guards of TEXT, which is written over, as rows of ENTRY, for code of FILENAME; how many. */
static int64_t guards_put(struct query *insert, int64_t entry, char *text, const char *filename)
{
    const char *sources[DEPTH] = {0}, *related = NULL;
    char *line, *rest = text, *relation = NULL;
    struct guard guard = {0};
    int64_t count = 0;

    while ((line = strsep(&rest, "\n"))) {
        size_t depth = 0;
        char *kind, *colon, *said, *comment;
        for (; !strncmp(line, "| ", 2); line += 2)
            depth++;
        if (strncmp(line, "+- ", 3) != 0 || depth >= DEPTH)
            continue;
        kind = line + 3;
        colon = strstr(kind, ": ");
        if (!colon && kind[strspn(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")]) /* "RootGuardManager" */
            continue;
        said = colon ? colon + 2 : kind + strlen(kind);
        if (colon)
            *colon = 0;
        if (strstr(kind, "Manager") || strstr(kind, "Accessor")) { /* also "KeyManager: GuardManager: source=..." */
            const char *source = manager_source(!strncmp(said, "GuardManager: ", 14) ? said + 14 : said);
            guard_put(insert, entry, &guard, &count);
            if (source)
                sources[depth] = source;
            memset(sources + depth + 1, 0, (DEPTH - depth - 1) * sizeof *sources);
            continue;
        }
        comment = said + code_length(said);
        if (*comment)
            *comment++ = 0;
        if (goes_on(&guard, kind, depth)) {
            guard_says(&guard, " and ");
            guard_says(&guard, said);
            continue;
        }
        guard_put(insert, entry, &guard, &count);
        if (*said && strstr(kind, "ALIASING")) {
            relation = said;
            related = kind;
        } else if (related && !strcmp(related, kind)) { /* between several values: printed once */
            said = relation;
        }
        guard = (struct guard){.kind = kind, .stack = user_stack(comment, filename), .depth = depth,
                               .source = depth && sources[depth - 1] ? sources[depth - 1] : kind_source(kind, said)};
        guard_says(&guard, said);
    }
    guard_put(insert, entry, &guard, &count);
    return count;
}

static void all_guards(struct db *out)
{
    struct query *lists = db_query(out, schema_statement("import/text/guards"));
    struct query *insert = db_query(out, schema_statement("import/text/guard"));
    struct query *total = db_query(out, schema_statement("import/text/guard_count"));

    while (query_step(lists)) {
        char *text = strdup(query_whole(lists, 1, NULL));
        int64_t count = guards_put(insert, query_integer(lists, 0), text, query_whole(lists, 2, NULL));
        free(text);
        if (!count)
            continue;
        query_bind_integer(total, 1, query_integer(lists, 0));
        query_bind_integer(total, 2, count);
        query_step(total);
        query_reset(total);
    }
    query_close(lists);
    query_close(insert);
    query_close(total);
}

/* ---- causes ---------------------------------------------------------------- */

/* TEXT with locals by their bare names: "x" for "L['x']". */
static const char *bare(struct arena *arena, const char *text, size_t bytes)
{
    char *made = arena_take(arena, bytes + 1), *to = made;

    for (const char *at = text; at < text + bytes;) {
        size_t left = (size_t)(text + bytes - at), name;
        if (left > 4 && !strncmp(at, "L['", 3) && (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_'))) {
            name = strcspn(at + 3, "'");
            if (name + 5 <= left && at[3 + name + 1] == ']') {
                memcpy(to, at + 3, name);
                to += name;
                at += name + 5;
                continue;
            }
        }
        *to++ = *at++;
    }
    *to = 0;
    return made;
}

/* What a reason says: its texts are in an arena, NULL: not said. */
struct said {
    const char *text;   /* without what torch adds about the place; NULL: it has no label */
    const char *label;  /* of the entry */
    const char *tensor; /* of "tensor 'x' ..." */
    const char *narrow; /* ".size()[0]", ".dtype"; NULL: of the whole */
    const char *aspect; /* recompile_cause.aspect; NULL: that of the guard's kind */
    const char *expected, *actual;
    int dimension;      /* -1: none */
    /* Of the guard, once it is found. */
    int64_t guard;      /* 0: not found */
    const char *kind, *source;
};

/* "tensor 'x' size mismatch at index 0. expected 2, actual 3" */
static void tensor_read(struct arena *arena, struct said *said)
{
    static const struct {
        const char *mark, *narrow, *aspect;
    } words[] = {
        {"' size mismatch at index ", ".size()", "size"},
        {"' stride mismatch at index ", ".stride()", "stride"},
        {"' dtype mismatch", ".dtype", "dtype"},
        {"' rank mismatch", ".dim()", "ndim"},
        {"' requires_grad mismatch", ".requires_grad", "requires_grad"},
        {"' dispatch key set mismatch", "", "dispatch_keys"},
    };
    const char *name = said->text + sizeof "tensor '" - 1, *end = NULL, *rest, *expected, *actual;
    size_t found = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i].mark);
        if (at && (!end || at < end)) {
            end = at;
            found = i;
        }
    }
    if (!end)
        return;
    rest = end + strlen(words[found].mark);
    said->tensor = bare(arena, name, (size_t)(end - name));
    said->aspect = words[found].aspect;
    said->narrow = words[found].narrow;
    if (isdigit((unsigned char)*rest) && rest[-1] == ' ') {
        said->dimension = atoi(rest);
        said->narrow = arena_print(arena, "%s[%d]", said->narrow, said->dimension);
    }
    expected = strstr(end, "expected ");
    actual = expected ? strstr(expected, ", actual ") : NULL;
    if (actual) {
        said->expected = arena_text(arena, expected + 9, (size_t)(actual - expected) - 9);
        said->actual = actual + 9;
    }
}

/* "0/1: k == 1   # def f(x, k): ...  # a/b.py:4 in f\nUser stack trace:\n..." */
static struct said said_read(struct arena *arena, const char *reason)
{
    const char *colon = strstr(reason, ": ");
    struct said said = {.dimension = -1};
    char *text;

    if (!colon || strspn(reason, "!0123456789/") != (size_t)(colon - reason))
        return said;
    said.label = arena_text(arena, reason, (size_t)(colon - reason));
    text = arena_text(arena, colon + 2, strcspn(colon + 2, "\n"));
    text[code_length(text)] = 0;
    said.text = text;
    if (!strncmp(text, "tensor '", 8))
        tensor_read(arena, &said);
    else if (strstr(text, " got deallocated"))
        said.aspect = "alive";
    return said;
}

/* TEXT is one of the conditions of ALL, "a and b and c". */
static bool part_of(const char *all, const char *text)
{
    size_t length = strlen(text);

    for (const char *at = all; length && (at = strstr(at, text)); at++)
        if ((at == all || (at - all >= 5 && !strncmp(at - 5, " and ", 5))) && (!at[length] || !strncmp(at + length, " and ", 5)))
            return true;
    return false;
}

/* Of the guards of ENTRY the one that said it. */
static void guard_find(struct arena *arena, struct query *guards, int64_t entry, struct said *said)
{
    static const char flags[] = "GLOBAL_STATE changed: ";
    const char *flag = strncmp(said->text, flags, sizeof flags - 1) ? NULL : said->text + sizeof flags - 1;
    const char *text = bare(arena, said->text, strlen(said->text)), *equals;
    struct arena row = {0};

    query_bind_integer(guards, 1, entry);
    while (!said->guard && query_step(guards)) {
        const char *kind = query_whole(guards, 1, NULL), *looked = query_whole(guards, 2, NULL), *expression = query_whole(guards, 3, NULL);
        const char *plain = bare(&row, said->tensor ? looked : expression, strlen(said->tensor ? looked : expression));
        if (flag ? !strcmp(kind, "GLOBAL_STATE")
            : said->tensor ? !strcmp(kind, "TENSOR_MATCH") && !strcmp(plain, said->tensor)
                           : !strcmp(plain, text) || (!strcmp(kind, "LAMBDA_GUARD") && part_of(plain, text))) {
            said->guard = query_integer(guards, 0);
            said->kind = arena_print(arena, "%s", kind);
            if (flag)
                said->source = arena_text(arena, flag, strcspn(flag, " "));
            else if (query_type(guards, 2) != QUERY_NULL)
                said->source = arena_print(arena, "%s%s", looked, said->narrow ? said->narrow : "");
            if (!strcmp(kind, "EQUALS_MATCH") && !said->expected && (equals = strstr(said->text, " == ")))
                said->expected = equals + 4;
        }
        arena_free(&row);
    }
    query_reset(guards);
}

/* The entry called LABEL that COMPILE found; 0: none is. */
static int64_t entry_find(struct query *entries, int64_t compile, const char *label)
{
    int64_t entry = 0;

    query_bind_integer(entries, 1, compile);
    query_bind_text(entries, 2, label);
    if (query_step(entries))
        entry = query_integer(entries, 0);
    query_reset(entries);
    return entry;
}

static void all_causes(struct db *out)
{
    struct query *reasons = db_query(out, schema_statement("import/text/reasons"));
    struct query *entries = db_query(out, schema_statement("import/text/entry"));
    struct query *guards = db_query(out, schema_statement("import/text/entry_guards"));
    struct query *cause = db_query(out, schema_statement("import/text/cause"));

    while (query_step(reasons)) {
        struct arena arena = {0};
        const char *reason = query_whole(reasons, 1, NULL);
        struct said said = said_read(&arena, reason);
        int64_t compile = query_integer(reasons, 0), entry = said.label ? entry_find(entries, compile, said.label) : 0;
        if (entry)
            guard_find(&arena, guards, entry, &said);
        query_bind_integer(cause, 1, compile);
        query_bind_integer(cause, 2, entry);
        query_bind_integer(cause, 3, said.guard);
        query_bind_text(cause, 4, said.kind);
        query_bind_text(cause, 5, said.source);
        query_bind_text(cause, 6, said.expected);
        query_bind_text(cause, 7, said.actual);
        query_bind_text(cause, 8, said.text ? said.text : reason);
        query_bind_text(cause, 9, said.aspect);
        query_bind_integer(cause, 10, said.dimension);
        query_step(cause);
        query_reset(cause);
        arena_free(&arena);
    }
    query_close(reasons);
    query_close(entries);
    query_close(guards);
    query_close(cause);
}

/* ---- breaks ---------------------------------------------------------------- */

struct place {
    const char *reason, *stack; /* in an arena */
    int64_t line;               /* 0: not known */
};

/* The line of the innermost frame of STACK that is code NAME of FILENAME, 0: none is. The rest of f after a break,
 * torch_dynamo_resume_in_f_at_5, has the name f there. */
static int64_t line_of(const char *stack, const char *filename, const char *name)
{
    static const char resume[] = "torch_dynamo_resume_in_";
    size_t file = strlen(filename), length = strlen(name);
    int64_t line = 0;

    if (!strncmp(name, resume, sizeof resume - 1)) {
        name += sizeof resume - 1;
        length = strlen(name);
        while (length && isdigit((unsigned char)name[length - 1]))
            length--;
        length -= length >= 4 ? 4 : length; /* "_at_" */
    }
    for (const char *at = stack; (at = strstr(at, "File \"")); at++) {
        const char *rest = at + 6;
        char *end;
        int64_t found;
        if (strncmp(rest, filename, file) != 0 || strncmp(rest + file, "\", line ", 8) != 0)
            continue;
        found = strtoll(rest + file + 8, &end, 10);
        if (!strncmp(end, ", in ", 5) && !strncmp(end + 5, name, length) && (end[5 + length] == '\n' || !end[5 + length]))
            line = found;
    }
    return line;
}

/* "Graph break in user code at FILE:LINE\nGraph Break Reason: ...\nUser code traceback:\n  File ..." */
static struct place place_read(struct arena *arena, const char *text)
{
    static const char head[] = " in user code at ";
    struct place place = {0};
    size_t first = strcspn(text, "\n");
    const char *at = strstr(text, head), *colon, *reason, *user = strstr(text, "\nUser code traceback:\n"), *stop;

    if (at && at < text + first) {
        at += sizeof head - 1;
        for (colon = text + first; colon > at && colon[-1] != ':'; colon--)
            ;
        if (colon > at)
            place.line = strtoll(colon, NULL, 10);
    }
    reason = strstr(text, "Reason: ");
    reason = reason && (!user || reason < user) ? reason + 8 : text;
    stop = user ? user : reason + strlen(reason);
    while (stop > reason && (stop[-1] == '\n' || stop[-1] == ' '))
        stop--;
    place.reason = arena_text(arena, reason, (size_t)(stop - reason) < MOST_TEXT ? (size_t)(stop - reason) : MOST_TEXT);
    if (user) {
        user += sizeof "\nUser code traceback:\n" - 1;
        stop = strstr(user, "\n\n"); /* then "NoneType: None", or the exception's own traceback */
        place.stack = arena_text(arena, user, stop ? (size_t)(stop - user) : strnlen(user, MOST_TEXT));
    }
    return place;
}

static void all_breaks(struct db *out)
{
    struct query *logged = db_query(out, schema_statement("import/text/breaks"));
    struct query *insert = db_query(out, schema_statement("import/text/break"));

    while (query_step(logged)) {
        struct arena arena = {0};
        struct place place = place_read(&arena, query_whole(logged, 1, NULL));
        int64_t line = place.stack && query_type(logged, 2) != QUERY_NULL && query_type(logged, 3) != QUERY_NULL
                           ? line_of(place.stack, query_whole(logged, 2, NULL), query_whole(logged, 3, NULL)) : 0;
        query_bind_integer(insert, 1, query_integer(logged, 0));
        query_bind_integer(insert, 2, line > 0 ? line : place.line > 0 ? place.line : 0);
        query_bind_text(insert, 3, place.reason);
        query_bind_text(insert, 4, place.stack);
        query_step(insert);
        query_reset(insert);
        arena_free(&arena);
    }
    query_close(logged);
    query_close(insert);
    db_run(out, schema_statement("import/text/resume"));
}

void import_texts(struct db *out)
{
    all_guards(out);
    all_causes(out);
    all_breaks(out);
}

/* cmd/import/text.c -- what torch's log has in text alone: guards, causes, breaks. See cmd/import/import.h.
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

#include "cmd/import/import.h"
#include "cmd/writer.h"
#include "schema.h"

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
    char *made = NULL;
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
    if (asprintf(&made, "File \"%.*s\", line %.*s, in %.*s", (int)shown, mark, (int)(in - colon), colon,
                 (int)strcspn(in + 4, " \n"), in + 4) < 0) /* after it there may be a "(HINT: ...)" */
        return NULL;
    return made;
}

/* Of a manager "source=L['x'], accessed_by=..." the source. The caller frees it. */
static char *manager_source(const char *text)
{
    const char *end;

    if (strncmp(text, "source=", 7) != 0)
        return NULL;
    text += 7;
    end = strstr(text, ", accessed_by=");
    if (!end)
        end = strstr(text, ", type=<class ");
    return strndup(text, end && end - text < MOST_SOURCE ? (size_t)(end - text) : strnlen(text, MOST_SOURCE));
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
    char *kind, *source; /* borrowed */
    char *said, *stack;  /* owned; SAID NULL: there is none */
    size_t depth;
};

/* The guard that was read, as a row. */
static bool guard_put(struct insert *insert, int64_t entry, struct guard *guard, int64_t *count)
{
    bool ok = true;

    if (guard->said) {
        insert_integer(insert, 1, entry);
        insert_integer(insert, 2, (*count)++);
        insert_text(insert, 3, guard->kind);
        insert_text(insert, 4, guard->source);
        insert_text(insert, 5, guard->said);
        insert_text(insert, 6, guard->stack);
        ok = insert_run(insert);
    }
    free(guard->said);
    free(guard->stack);
    *guard = (struct guard){0};
    return ok;
}

/* Another part of the same guard? Those of OBJECT_ALIASING are guards by themselves, and of LAMBDA_GUARD but for the one
 * of all sizes at the end. */
static bool guard_more(struct guard *guard, const char *kind, size_t depth, const char *said)
{
    char *both = NULL;

    if (!guard->said || guard->depth != depth || strcmp(guard->kind, kind) != 0 || (depth && !strcmp(kind, "LAMBDA_GUARD")) ||
        !strcmp(kind, "OBJECT_ALIASING") || asprintf(&both, "%s and %s", guard->said, said) < 0)
        return false;
    free(guard->said);
    guard->said = both;
    return true;
}

/* The guards of TEXT as rows of ENTRY, for code of FILENAME; how many, -1: it cannot be written. */
static int64_t guards_put(struct insert *insert, int64_t entry, char *text, const char *filename)
{
    char *sources[DEPTH] = {0}, *line, *rest = text, *relation = NULL, *related = NULL;
    struct guard guard = {0};
    int64_t count = 0;
    bool ok = true;

    while (ok && (line = strsep(&rest, "\n"))) {
        size_t depth = 0;
        char *kind, *colon, *said;
        while (!strncmp(line, "| ", 2)) {
            depth++;
            line += 2;
        }
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
            char *source = manager_source(!strncmp(said, "GuardManager: ", 14) ? said + 14 : said);
            ok = guard_put(insert, entry, &guard, &count);
            if (source) {
                free(sources[depth]);
                sources[depth] = source;
            }
            for (size_t deeper = depth + 1; deeper < DEPTH && sources[deeper]; deeper++) {
                free(sources[deeper]);
                sources[deeper] = NULL;
            }
            continue;
        }
        line = said + code_length(said);
        if (*line)
            *line++ = 0;
        if (guard_more(&guard, kind, depth, said))
            continue;
        ok = guard_put(insert, entry, &guard, &count);
        if (*said && strstr(kind, "ALIASING")) {
            relation = said;
            related = kind;
        } else if (related && !strcmp(related, kind)) { /* between several values: printed once */
            said = relation;
        }
        guard = (struct guard){
            .kind = kind, .said = strdup(said), .stack = user_stack(line, filename), .depth = depth,
            .source = depth && sources[depth - 1] ? sources[depth - 1] : (char *)kind_source(kind, said),
        };
    }
    ok = guard_put(insert, entry, &guard, &count) && ok;
    for (size_t depth = 0; depth < DEPTH; depth++)
        free(sources[depth]);
    return ok ? count : -1;
}

static bool all_guards(struct writer *writer)
{
    struct insert *lists = writer_insert(writer, schema_statement("import/text/guards"));
    struct insert *insert = writer_insert(writer, schema_statement("import/text/guard"));
    struct insert *total = writer_insert(writer, schema_statement("import/text/guard_count"));
    bool ok = lists && insert && total;

    while (ok && insert_next(lists)) {
        int64_t entry = insert_get_integer(lists, 0), count;
        const char *text = insert_get_text(lists, 1);
        char *copy = text ? strdup(text) : NULL;
        if (!copy)
            continue;
        count = guards_put(insert, entry, copy, insert_get_text(lists, 2));
        free(copy);
        ok = count >= 0;
        if (count > 0) {
            insert_integer(total, 1, entry);
            insert_integer(total, 2, count);
            ok = insert_run(total);
        }
    }
    insert_close(lists);
    insert_close(insert);
    insert_close(total);
    return ok;
}

/* ---- causes ---------------------------------------------------------------- */

/* TEXT with locals by their bare names: "x" for "L['x']". The caller frees it. */
static char *bare(const char *text, size_t bytes)
{
    char *made = malloc(bytes + 1), *to = made;

    if (!made)
        return NULL;
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

struct said {
    char *text;         /* owned: without what torch adds about the place */
    char *tensor;       /* owned: of "tensor 'x' ...", else NULL */
    char *narrow;       /* owned: ".size()[0]", ".dtype"; NULL: of the whole */
    const char *aspect; /* recompile_cause.aspect; NULL: that of the guard's kind */
    int dimension;      /* -1: none */
    char *expected, *actual; /* owned, NULL: not said */
};

/* "tensor 'x' size mismatch at index 0. expected 2, actual 3" */
static void tensor_read(struct said *said)
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
    const char *name = said->text + sizeof "tensor '" - 1, *end = NULL, *rest = NULL, *expected, *actual;
    size_t found = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i].mark);
        if (at && (!end || at < end)) {
            end = at;
            rest = at + strlen(words[i].mark);
            found = i;
        }
    }
    if (!end)
        return;
    said->tensor = bare(name, (size_t)(end - name));
    said->aspect = words[found].aspect;
    if (isdigit((unsigned char)*rest) && rest[-1] == ' ')
        said->dimension = atoi(rest);
    if (said->dimension < 0 ? (said->narrow = strdup(words[found].narrow)) == NULL
                            : asprintf(&said->narrow, "%s[%d]", words[found].narrow, said->dimension) < 0)
        said->narrow = NULL;
    expected = strstr(end, "expected ");
    actual = expected ? strstr(expected, ", actual ") : NULL;
    if (actual) {
        said->expected = strndup(expected + 9, (size_t)(actual - expected) - 9);
        said->actual = strdup(actual + 9);
    }
}

/* "0/1: k == 1   # def f(x, k): ...  # a/b.py:4 in f\nUser stack trace:\n..." False: it has no label. */
static bool said_read(const char *reason, struct said *said)
{
    const char *colon = strstr(reason, ": ");
    size_t length;

    *said = (struct said){.dimension = -1};
    if (!colon || strspn(reason, "!0123456789/") != (size_t)(colon - reason))
        return false;
    reason = colon + 2;
    length = strcspn(reason, "\n");
    said->text = strndup(reason, length);
    if (!said->text)
        return false;
    said->text[code_length(said->text)] = 0;
    if (!strncmp(said->text, "tensor '", 8))
        tensor_read(said);
    else if (strstr(said->text, " got deallocated"))
        said->aspect = "alive";
    return true;
}

static void said_free(struct said *said)
{
    free(said->text);
    free(said->tensor);
    free(said->narrow);
    free(said->expected);
    free(said->actual);
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

/* The guard of ENTRY that said it. True: GUARD, KIND and SOURCE are set; the caller frees the texts. */
static bool guard_find(struct insert *guards, int64_t entry, struct said *said, int64_t *guard, char **kind, char **source)
{
    static const char flags[] = "GLOBAL_STATE changed: ";
    const char *flag = strncmp(said->text, flags, sizeof flags - 1) ? NULL : said->text + sizeof flags - 1;
    char *text = bare(said->text, strlen(said->text));
    bool found = false;

    insert_integer(guards, 1, entry);
    while (insert_next(guards)) {
        const char *expression = insert_get_text(guards, 3), *looked = insert_get_text(guards, 2), *name = insert_get_text(guards, 1);
        char *plain;
        if (found || !expression || !name || !text) /* read to the end, so that it can be asked anew */
            continue;
        if (flag) {
            found = !strcmp(name, "GLOBAL_STATE");
            if (found) {
                *guard = insert_get_integer(guards, 0);
                *kind = strdup(name);
                *source = strndup(flag, strcspn(flag, " "));
            }
            continue;
        }
        plain = said->tensor ? (looked ? bare(looked, strlen(looked)) : NULL) : bare(expression, strlen(expression));
        if (plain && (said->tensor ? !strcmp(name, "TENSOR_MATCH") && !strcmp(plain, said->tensor)
                                    : !strcmp(plain, text) || (!strcmp(name, "LAMBDA_GUARD") && part_of(plain, text)))) {
            found = true;
            *guard = insert_get_integer(guards, 0);
            *kind = strdup(name);
            if (!strcmp(name, "EQUALS_MATCH") && !said->expected && strstr(said->text, " == "))
                said->expected = strdup(strstr(said->text, " == ") + 4);
            if (looked && asprintf(source, "%s%s", looked, said->narrow ? said->narrow : "") < 0)
                *source = NULL;
        }
        free(plain);
    }
    free(text);
    return found;
}

static bool all_causes(struct writer *writer)
{
    struct insert *reasons = writer_insert(writer, schema_statement("import/text/reasons"));
    struct insert *entries = writer_insert(writer, schema_statement("import/text/entry"));
    struct insert *guards = writer_insert(writer, schema_statement("import/text/entry_guards"));
    struct insert *cause = writer_insert(writer, schema_statement("import/text/cause"));
    bool ok = reasons && entries && guards && cause;

    while (ok && insert_next(reasons)) {
        int64_t compile = insert_get_integer(reasons, 0), entry = 0, guard = 0;
        const char *reason = insert_get_text(reasons, 1);
        struct said said = {0};
        char *kind = NULL, *source = NULL, *label = NULL;
        bool known = false;
        if (!reason)
            continue;
        insert_integer(cause, 1, compile);
        if (said_read(reason, &said)) {
            label = strndup(reason, strcspn(reason, ":"));
            insert_integer(entries, 1, compile);
            insert_text(entries, 2, label);
            known = insert_find(entries, &entry);
            if (known)
                insert_integer(cause, 2, entry);
            if (known && guard_find(guards, entry, &said, &guard, &kind, &source)) {
                insert_integer(cause, 3, guard);
                insert_text(cause, 4, kind);
                insert_text(cause, 5, source);
            }
            insert_text(cause, 6, said.expected);
            insert_text(cause, 7, said.actual);
            insert_text(cause, 9, said.aspect);
            if (said.dimension >= 0)
                insert_integer(cause, 10, said.dimension);
        }
        insert_text(cause, 8, said.text ? said.text : reason);
        ok = insert_run(cause);
        said_free(&said);
        free(label);
        free(kind);
        free(source);
    }
    insert_close(reasons);
    insert_close(entries);
    insert_close(guards);
    insert_close(cause);
    return ok;
}

/* ---- breaks ---------------------------------------------------------------- */

struct place {
    char *reason, *stack; /* owned */
    int64_t line;                /* 0: not known */
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
static struct place place_read(const char *text)
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
    place.reason = strndup(reason, (size_t)(stop - reason) < MOST_TEXT ? (size_t)(stop - reason) : MOST_TEXT);
    if (user) {
        user += sizeof "\nUser code traceback:\n" - 1;
        stop = strstr(user, "\n\n"); /* then "NoneType: None", or the exception's own traceback */
        place.stack = strndup(user, stop ? (size_t)(stop - user) : strnlen(user, MOST_TEXT));
    }
    return place;
}

static bool all_breaks(struct writer *writer)
{
    struct insert *logged = writer_insert(writer, schema_statement("import/text/breaks"));
    struct insert *insert = writer_insert(writer, schema_statement("import/text/break"));
    bool ok = logged && insert;

    while (ok && insert_next(logged)) {
        const char *text = insert_get_text(logged, 1);
        struct place place;
        if (!text)
            continue;
        place = place_read(text);
        if (place.stack && insert_get_text(logged, 2) && insert_get_text(logged, 3)) {
            int64_t line = line_of(place.stack, insert_get_text(logged, 2), insert_get_text(logged, 3));
            place.line = line ? line : place.line;
        }
        insert_integer(insert, 1, insert_get_integer(logged, 0));
        if (place.line > 0)
            insert_integer(insert, 3, place.line);
        insert_text(insert, 4, place.reason);
        insert_text(insert, 5, place.stack);
        ok = insert_run(insert);
        free(place.reason);
        free(place.stack);
    }
    insert_close(logged);
    insert_close(insert);
    return ok && writer_run(writer, schema_statement("import/text/resume"));
}

bool import_texts(struct writer *writer)
{
    return all_guards(writer) && all_causes(writer) && all_breaks(writer);
}

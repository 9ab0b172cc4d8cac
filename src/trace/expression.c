/* trace/expression.c -- guard sources as the program's own expressions. See trace/expression.h.
 *
 * The text is copied, and each guard source in it is rewritten. A source begins with a variable
 * (L['x'], G['x']) or with a helper function of torch around one (___from_numpy(L['x']));
 * attributes and items follow. The texts come from traced programs, so a malformed text is copied
 * unchanged. */
#include "trace/expression.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/list.h"

enum {
    DEPTH_MOST = 40,
    ARGUMENTS_MOST = 3,
    BRACKETS_MOST = 4000 /* the most bytes that stand between two brackets */
};

typedef LIST(char) text_list;

struct reader {
    const char *at, *end;
    text_list out; /* the text written so far, without a NUL at the end */
    int depth;     /* how deep the arguments and indices that are being read are nested */
};

static void append_bytes(text_list *out, const char *text, size_t bytes)
{
    if (bytes)
        memcpy(list_add_many(out, bytes), text, bytes);
}

static void append_text(text_list *out, const char *text)
{
    append_bytes(out, text, strlen(text));
}

/* Does OUT end with TEXT? Only bytes from FROM on count. */
static bool does_output_end_with(const text_list *out, size_t from, const char *text)
{
    size_t bytes = strlen(text);

    return out->count - from >= bytes && !memcmp(out->at + out->count - bytes, text, bytes);
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_identifier(const char *text, size_t bytes)
{
    if (!bytes || isdigit((unsigned char)*text))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (!is_name_byte(text[i]))
            return false;
    return true;
}

static bool is_number(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return bytes > 0;
}

/* Does READER's remaining text begin with TEXT? */
static bool is_reader_at(const struct reader *reader, const char *text)
{
    size_t bytes = strlen(text);

    return (size_t)(reader->end - reader->at) >= bytes && !memcmp(reader->at, text, bytes);
}

/* Return the position behind the string literal that begins at AT. Returns NULL if the literal is
 * not closed before END. */
static const char *find_literal_end(const char *at, const char *end)
{
    char quote = *at;

    for (at++; at < end; at++) {
        if (*at == '\\')
            at++;
        else if (*at == quote)
            return at + 1;
    }
    return NULL;
}

struct part {
    const char *text;
    size_t bytes;
};

/* Return the name inside LITERAL, a string literal such as 'x'. Returns an empty name if LITERAL is
 * no string literal or has escapes. */
static struct part name_in_literal(struct part literal)
{
    bool is_quoted = literal.bytes > 2 && strchr("'\"", *literal.text) &&
                     find_literal_end(literal.text, literal.text + literal.bytes) ==
                         literal.text + literal.bytes;

    if (!is_quoted || memchr(literal.text, '\\', literal.bytes))
        return (struct part){0};
    return (struct part){literal.text + 1, literal.bytes - 2};
}

/* Read the parts between the commas of a pair of brackets. AT is behind the opening bracket. A
 * comma inside nested brackets does not separate parts. Returns the position behind the closing
 * bracket, or NULL if it is missing or if there are too many parts. */
static const char *read_comma_parts(const char *at, const char *end,
                                    struct part parts[ARGUMENTS_MOST], int *count)
{
    const char *begin = at;
    int open = 0;

    *count = 0;
    if (end - at > BRACKETS_MOST)
        end = at + BRACKETS_MOST;
    for (; at < end; at++) {
        bool is_last = !open && strchr(")]}", *at);
        if (*at == '\'' || *at == '"') {
            at = find_literal_end(at, end);
            if (!at)
                return NULL;
            at--;
            continue;
        }
        if (is_last || (!open && *at == ',')) {
            if (*count == ARGUMENTS_MOST)
                return NULL;
            begin += begin < at && *begin == ' ';
            parts[(*count)++] = (struct part){begin, (size_t)(at - begin)};
            begin = at + 1;
        }
        if (is_last)
            return at + 1;
        if (strchr("([{", *at))
            open++;
        else if (strchr(")]}", *at))
            open--;
    }
    return NULL;
}

static void rewrite_text(struct reader *reader);

/* Rewrite PART of READER's text, and append it to the output. */
static void rewrite_part(struct reader *reader, struct part part)
{
    struct reader inner = {part.text, part.text + part.bytes, reader->out, reader->depth + 1};

    if (inner.depth > DEPTH_MOST)
        append_bytes(&inner.out, part.text, part.bytes);
    else
        rewrite_text(&inner);
    reader->out = inner.out;
}

/* ---- the variable or function that a source begins with ------------------ */

/* Write the local variable NAME. If torch or CPython added the variable, the program does not know
 * its name, so a description is written instead. */
static void write_local_name(text_list *out, struct part name)
{
    static const char stack[] = "___stack";
    const size_t bytes = sizeof stack - 1;
    bool is_stack = name.bytes > bytes && !memcmp(name.text, stack, bytes) &&
                    is_number(name.text + bytes, name.bytes - bytes);

    if (name.bytes == 2 && !memcmp(name.text, ".0", 2)) {
        /* CPython names the argument of a comprehension `.0` */
        append_text(out, "(the iterable)");
    } else if (is_stack) {
        append_text(out, "(value ");
        append_bytes(out, name.text + bytes, name.bytes - bytes);
        append_text(out, " at the break)");
    } else {
        append_bytes(out, name.text, name.bytes);
    }
}

/* Write the global variable NAME. __import_torch_dot_nn is written as the module torch.nn. */
static void write_global_name(text_list *out, struct part name)
{
    static const char import[] = "__import_", dot[] = "_dot_";

    if (name.bytes <= sizeof import || memcmp(name.text, import, sizeof import - 1) != 0) {
        append_bytes(out, name.text, name.bytes);
        return;
    }
    for (size_t i = sizeof import - 1; i < name.bytes; i++) {
        if (name.bytes - i > sizeof dot - 1 && !memcmp(name.text + i, dot, sizeof dot - 1)) {
            *list_add(out) = '.';
            i += sizeof dot - 2;
        } else {
            *list_add(out) = name.text[i];
        }
    }
}

/* Rewrite a variable, L['x'] or G['x']. Returns false if READER is not at one. */
static bool rewrite_variable(struct reader *reader)
{
    static const char builtins[] = "__builtins_dict__", key[] = "__dict_key";
    static const char *const scopes[] = {"L[", "G[", "SYNTHETIC_LOCAL["};
    struct part parts[ARGUMENTS_MOST], name;
    const char *behind = NULL;
    bool is_global = is_reader_at(reader, "G[");
    bool is_iterable, is_named;
    int count;

    for (size_t i = 0; i < array_count(scopes) && !behind; i++)
        if (is_reader_at(reader, scopes[i]))
            behind = read_comma_parts(reader->at + strlen(scopes[i]), reader->end, parts, &count);
    if (!behind || count != 1)
        return false;
    name = name_in_literal(parts[0]);
    is_iterable = name.bytes == 2 && !memcmp(name.text, ".0", 2);
    is_named = is_iterable || is_identifier(name.text, name.bytes);
    if (behind[-1] != ']' || !is_named)
        return false;
    if (is_global && name.bytes > sizeof key && !memcmp(name.text, key, sizeof key - 1)) {
        bool is_called = reader->end - behind >= 2 && !memcmp(behind, "()", 2);
        /* this global of torch has a key of an optimizer's state, which is a
         * parameter of the model */
        append_text(&reader->out, "<a parameter>");
        reader->at = behind + (is_called ? 2 : 0);
        return true;
    }
    if (is_global && name.bytes > sizeof builtins &&
        !memcmp(name.text, builtins, sizeof builtins - 1)) {
        bool has_item = behind < reader->end && *behind == '[';
        const char *end =
            has_item ? read_comma_parts(behind + 1, reader->end, parts, &count) : NULL;
        struct part item = end && count == 1 ? name_in_literal(parts[0]) : (struct part){0};
        if (is_identifier(item.text, item.bytes))
            append_bytes(&reader->out, item.text, item.bytes);
        else
            append_text(&reader->out, "builtins.__dict__");
        reader->at = is_identifier(item.text, item.bytes) ? end : behind;
        return true;
    }
    if (is_global)
        write_global_name(&reader->out, name);
    else
        write_local_name(&reader->out, name);
    reader->at = behind;
    return true;
}

/* Functions by which torch reads values in guards. In `form`, $1 and $2 stand for the arguments. $n
 * stands for the name in the last argument, which must be a string literal. */
static const struct helper {
    const char *call;
    int arguments;
    const char *form;
} helpers[] = {
    {"___from_numpy(", 1, "$1"},
    {"___as_tensor(", 1, "$1"},
    {"cast_symbool_to_symint_guardless(", 1, "$1"},
    {"___key_to_id(", 1, "$1"},
    {"___normalize_range_iter(", 1, "$1"},
    {"___normalize_count_iter(", 1, "$1"},
    {"dict.__getitem__(", 2, "$1[$2]"},
    {"list.__getitem__(", 2, "$1[$2]"},
    {"tuple.__getitem__(", 2, "$1[$2]"},
    {"___odict_getitem(", 2, "$1[$2]"},
    {"___tuple_iterator_getitem(", 2, "$1[$2]"},
    {"___tuple_iterator_len(", 1, "len($1)"},
    {"___list_reverseiterator_len(", 1, "len($1)"},
    {"___list_reverseiterator_backing_list(", 1, "the list of $1"},
    {"dict.keys(", 1, "$1.keys()"},
    {"object.__getattribute__(", 2, "$1.$n"},
    {"getattr(", 2, "$1.$n"},
    {"___namedtuple_fields(", 1, "$1._fields"},
    {"___dataclass_fields(", 1, "dataclasses.fields($1)"},
    {"___dict_contains(", 2, "$1 in $2"},
    {"___get_torch_function_mode_stack_at(", 1, "torch function mode $1"},
    {"__import__(", 1, "$n"},
    {"dict(", 1, "$1"}, /* the call dict(...) is rewritten only if its argument ends in .__dict__ */
    {"type(", 1, "type($1)"},
    {"len(", 1, "len($1)"},
};

/* Return the name that $n stands for, which is in the last argument. It may have dots if the
 * helper has only one argument, because such a helper imports a module. The result is empty if
 * there is no such name. */
static struct part name_for_helper(const struct helper *helper, const struct part *parts)
{
    struct part name = name_in_literal(parts[helper->arguments - 1]);
    bool is_module = helper->arguments == 1;

    if (is_module || is_identifier(name.text, name.bytes))
        return name;
    return (struct part){0};
}

static void write_helper_call(struct reader *reader, const struct helper *helper,
                              const struct part *parts, struct part name)
{
    for (const char *form = helper->form; *form; form++) {
        if (*form != '$')
            *list_add(&reader->out) = *form;
        else if (*++form == 'n')
            append_bytes(&reader->out, name.text, name.bytes);
        else
            rewrite_part(reader, parts[*form - '1']);
    }
}

/* Rewrite a call of a helper function of torch. Returns false if READER is not at one. */
static bool rewrite_helper_call(struct reader *reader)
{
    static const char dict[] = ".__dict__";
    struct part parts[ARGUMENTS_MOST];
    struct part name = {0};
    const struct helper *helper = helpers;
    const struct helper *none = helpers + array_count(helpers);
    const char *behind;
    int count;
    bool is_dict;

    while (helper < none && !is_reader_at(reader, helper->call))
        helper++;
    if (helper == none)
        return false;
    behind = read_comma_parts(reader->at + strlen(helper->call), reader->end, parts, &count);
    if (!behind || count != helper->arguments)
        return false;
    if (behind[-1] != ')')
        return false;
    is_dict = parts[0].bytes > sizeof dict - 1 &&
              !memcmp(parts[0].text + parts[0].bytes - sizeof dict + 1, dict, sizeof dict - 1);
    if (!strcmp(helper->call, "dict(") && !is_dict)
        return false;
    if (strstr(helper->form, "$n")) {
        name = name_for_helper(helper, parts);
        if (!name.bytes)
            return false;
    }
    write_helper_call(reader, helper, parts, name);
    reader->at = behind;
    return true;
}

/* ---- the attributes and items that follow in a source -------------------- */

/* Rewrite the item NAME of a dict in which Python or torch keeps attributes: self._modules['a']
 * becomes self.a, and self.layers._modules['0'] becomes self.layers[0]. The source begins at byte
 * FROM of the output. Returns false if the output does not end in such a dict. */
static bool fold_attribute_item(struct reader *reader, size_t from, struct part name)
{
    static const char *const dicts[] = {".__dict__", "._modules", "._parameters", "._buffers"};

    for (size_t i = 0; i < array_count(dicts); i++) {
        bool is_index = i > 0 && is_number(name.text, name.bytes);
        bool is_attribute = is_identifier(name.text, name.bytes);
        bool is_item = is_index || is_attribute;
        if (!is_item || !does_output_end_with(&reader->out, from, dicts[i]))
            continue;
        reader->out.count -= strlen(dicts[i]);
        *list_add(&reader->out) = is_index ? '[' : '.';
        append_bytes(&reader->out, name.text, name.bytes);
        if (is_index)
            *list_add(&reader->out) = ']';
        return true;
    }
    return false;
}

/* Rewrite the item [KEY] of the source that begins at byte FROM of the output. Returns false if no
 * item follows. */
static bool rewrite_item(struct reader *reader, size_t from)
{
    struct part parts[ARGUMENTS_MOST];
    const char *begin = reader->at + 1;
    const char *behind;
    int count;

    if (!is_reader_at(reader, "["))
        return false;
    behind = read_comma_parts(begin, reader->end, parts, &count);
    if (!behind || behind[-1] != ']')
        return false;
    if (count != 1 || !fold_attribute_item(reader, from, name_in_literal(parts[0]))) {
        *list_add(&reader->out) = '[';
        rewrite_part(reader, (struct part){begin, (size_t)(behind - 1 - begin)});
        *list_add(&reader->out) = ']';
    }
    reader->at = behind;
    return true;
}

/* Rewrite x.size()[0] as x.size(0), and x.stride()[0] as x.stride(0). Returns false if READER is
 * not at such an item. */
static bool rewrite_size(struct reader *reader)
{
    static const char *const calls[] = {".size()[", ".stride()["};

    for (size_t i = 0; i < array_count(calls); i++) {
        const char *number = reader->at + strlen(calls[i]);
        const char *at = number;
        if (!is_reader_at(reader, calls[i]))
            continue;
        while (at < reader->end && isdigit((unsigned char)*at))
            at++;
        if (at == number || at == reader->end)
            return false;
        if (*at != ']')
            return false;
        /* copy the text of the call up to its "(" */
        append_bytes(&reader->out, calls[i], strlen(calls[i]) - 2);
        append_bytes(&reader->out, number, (size_t)(at - number));
        *list_add(&reader->out) = ')';
        reader->at = at + 1;
        return true;
    }
    return false;
}

/* Rewrite one attribute, item or call of the source that begins at byte FROM of the output. Returns
 * false if the source ends here. */
static bool rewrite_suffix(struct reader *reader, size_t from)
{
    static const char proxy[] = ".get_base()", negative[] = ".__neg__()";
    const char *at = reader->at + 1;

    /* write the proxy as the source of its object, because both look the same to the program */
    if (is_reader_at(reader, proxy)) {
        reader->at += sizeof proxy - 1;
        return true;
    }
    if (is_reader_at(reader, negative)) {
        reader->at += sizeof negative - 1;
        list_add(&reader->out);
        memmove(reader->out.at + from + 1, reader->out.at + from, reader->out.count - from - 1);
        reader->out.at[from] = '-';
        return true;
    }
    if (rewrite_size(reader) || rewrite_item(reader, from))
        return true;
    if (!is_reader_at(reader, ".") || at >= reader->end)
        return false;
    if (!is_name_byte(*at))
        return false;
    while (at < reader->end && is_name_byte(*at))
        at++;
    append_bytes(&reader->out, reader->at, (size_t)(at - reader->at));
    reader->at = at;
    return true;
}

static bool rewrite_source(struct reader *reader)
{
    size_t from = reader->out.count;

    if (!rewrite_variable(reader) && !rewrite_helper_call(reader))
        return false;
    while (rewrite_suffix(reader, from))
        continue;
    return true;
}

/* Copy one character, string literal or word that does not begin a source. */
static void copy_plain_text(struct reader *reader)
{
    const char *begin = reader->at;
    const char *end;

    if (*begin == '\'' || *begin == '"') {
        end = find_literal_end(begin, reader->end);
        reader->at = end && end <= reader->end ? end : begin + 1;
    } else {
        do
            reader->at++;
        while (reader->at < reader->end && is_name_byte(*begin) && is_name_byte(*reader->at));
    }
    append_bytes(&reader->out, begin, (size_t)(reader->at - begin));
}

static void rewrite_text(struct reader *reader)
{
    bool is_after_dot = false;

    while (reader->at < reader->end) {
        bool is_start = !is_after_dot;
        is_after_dot = *reader->at == '.';
        if (!is_start || !rewrite_source(reader))
            copy_plain_text(reader);
    }
}

char *expression_from_source(const char *text)
{
    struct reader reader = {0};

    if (!text)
        return NULL;
    reader.at = text;
    reader.end = text + strlen(text);
    rewrite_text(&reader);
    *list_add(&reader.out) = 0;
    return reader.out.at;
}

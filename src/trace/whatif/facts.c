/* trace/whatif/facts.c -- what a trace says of inputs and guards, taken apart. See trace/whatif/like.h.
 *
 * Runs in: the viewer.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: parts, one with a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) a guard of torch's: the shape 4 or any, 3
 *     L['x'] is array.array d size (16,) stride (8,) one of ours */
#include "trace/whatif/like.h"

#include <ctype.h>

#include "schema.h"
#include "trace/db.h"

enum { PARTS = 48, GUARDS_MAX = 4096 };

/* ---- texts ----------------------------------------------------------------- */

/* The numbers between TEXT and END; what is no number is dynamic. */
static struct shape shape_of(const char *text, const char *end)
{
    struct shape shape = {.rank = 0};

    while (text < end) {
        const char *stop = memchr(text, ',', (size_t)(end - text));
        if (!stop)
            stop = end;
        while (text < stop && *text == ' ')
            text++;
        if (text < stop) {
            int64_t size = 0;
            bool number = true;
            for (const char *at = text; at < stop && *at != ' '; at++) {
                number = number && isdigit((unsigned char)*at) && size < INT64_MAX / 100;
                size = number ? size * 10 + (*at - '0') : size;
            }
            if (shape.rank == DIMENSIONS)
                return (struct shape){.rank = -1};
            shape.size[shape.rank++] = number ? size : SIZE_ANY;
        }
        text = stop + 1;
    }
    return shape;
}

/* Where the part of a signature that begins at TEXT ends: at a ", " outside of brackets and quotes. */
static char *part_end(char *text)
{
    int depth = 0;
    char quote = 0;

    for (; *text; text++) {
        if (quote) {
            if (*text == '\\' && text[1])
                text++;
            else if (*text == quote)
                quote = 0;
        } else if (*text == '\'' || *text == '"') {
            quote = *text;
        } else if (*text == '[' || *text == '(') {
            depth++;
        } else if (*text == ']' || *text == ')') {
            depth--;
        } else if (depth <= 0 && text[0] == ',' && text[1] == ' ') {
            break;
        }
    }
    return text;
}

/* A part, from AT, which may be changed: "x: int 2". */
static struct part part_of(char *at)
{
    char *colon = strstr(at, ": ");
    struct part part = {.name = at, .text = colon ? colon + 2 : at + strlen(at), .shape.rank = -1};
    const char *open = strchr(part.text, '['), *close = open ? strchr(open, ']') : NULL;

    if (colon)
        *colon = 0;
    /* "Tensor float32[4, 3] cpu", "array.array d[16]"; not "list[3]" */
    if (close && memchr(part.text, ' ', (size_t)(open - part.text)) &&
        !memchr(part.text, '\'', (size_t)(open - part.text))) {
        part.shape = shape_of(open + 1, close);
        part.before = (int)(open - part.text);
        part.after = (int)(close - part.text);
    }
    return part;
}

const struct signature *signature_of(struct likeness *l, int64_t id)
{
    struct signature *s = id <= 0 ? NULL : list_find(&l->signatures, id, id);
    struct query *query;

    if (!s || s->read)
        return s;
    s->read = true;
    query = db_query(l->db, schema_statement("replay/inputs"));
    query_bind_integer(query, 1, id);
    if (query_step(query)) {
        size_t bytes;
        const char *text = query_whole(query, 0, &bytes);
        char *at = arena_text(&l->texts, text, strlen(text));
        while (*at && s->parts.count < PARTS) {
            char *end = part_end(at), *next = *end ? end + 2 : end;
            *end = 0;
            *list_add(&s->parts) = part_of(at);
            at = next;
        }
    }
    query_close(query);
    return s;
}

const struct part *signature_part(const struct signature *s, const char *name)
{
    for (size_t i = 0; i < s->parts.count; i++)
        if (!strcmp(s->parts.at[i].name, name))
            return &s->parts.at[i];
    return NULL;
}

/* ---- guards ---------------------------------------------------------------- */

const char *source_local(const char *source, size_t *bytes, const char **rest)
{
    const char *end = strncmp(source, "L['", 3) ? NULL : strstr(source + 3, "']");

    if (!end)
        return NULL;
    *bytes = (size_t)(end - source - 3);
    *rest = end + 2;
    return source + 3;
}

bool guard_hidden(const struct likeness *l, const char *kind, const char *source)
{
    size_t bytes;
    const char *rest, *local = source_local(source, &bytes, &rest);

    if (!local)
        return strcmp(kind, "LAMBDA") || *source; /* a function of the locals */
    if (*rest)
        return strncmp(rest, ".size()", 7) && strncmp(rest, ".stride()", 9);
    return (l->blind && guard_exact(kind) && strcmp(kind, "TYPE_MATCH")) || !strcmp(kind, "ID_MATCH") ||
           strstr(kind, "FUNCTION") || strstr(kind, "CLOSURE") || !strcmp(kind, "DICT_KEYS");
}

static int by_source(const void *a, const void *b)
{
    const struct guard *x = a, *y = b;
    int order = strcmp(x->source, y->source);

    return order ? order : strcmp(x->kind, y->kind);
}

bool guard_exact(const char *kind)
{
    static const char *const kinds[] = {"EQUALS_MATCH", "CONSTANT_MATCH",  "TYPE_MATCH",    "CLASS_MATCH",
                                        "ID_MATCH",     "FUNCTION_MATCH",  "CLOSURE_MATCH", "BUILTIN_MATCH",
                                        "MODULE_MATCH", "SEQUENCE_LENGTH", "LENGTH_CHECK",  "LIST_LENGTH",
                                        "TUPLE_LENGTH", "DICT_LENGTH",     "DICT_KEYS",     "NONE_MATCH",
                                        "TRUE_MATCH",   "FALSE_MATCH",     "BOOL_MATCH"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i]))
            return true;
    return false;
}

const struct guards *guards_of(struct likeness *l, uint32_t entry)
{
    struct guards *g = &l->guards[entry];
    struct query *query;

    if (g->read)
        return g;
    g->read = true;
    query = db_query(l->db, schema_statement("whatif/guards"));
    query_bind_integer(query, 1, l->r->entries.at[entry].id);
    query_bind_integer(query, 2, GUARDS_MAX);
    while (query_step(query)) {
        struct guard *one = list_add(g);
        const char *open, *close;
        *one = (struct guard){.id = query_integer(query, 0),
                              .kind = text_copy(l, query_text(query, 1, NULL)),
                              .source = text_copy(l, query_text(query, 2, NULL)),
                              .expression = text_copy(l, query_text(query, 3, NULL)),
                              .shape = {.rank = -1}};
        /* torch: "size=[4, None], stride=[...]"; ours: "size (4, 3) stride (3, 1)" */
        if (!strcmp(one->kind, "TENSOR_MATCH") &&
            ((open = strstr(one->expression, "size=[")) || (open = strstr(one->expression, "size (")))) {
            one->before = (int)(open - one->expression);
            open = strpbrk(open, "[(") + 1;
            if ((close = strpbrk(open, "])")))
                one->shape = shape_of(open, close);
        }
    }
    query_close(query);
    if (g->count)
        qsort(g->at, g->count, sizeof *g->at, by_source);
    return g;
}

const struct guard *guard_of(struct likeness *l, uint32_t entry, int64_t id)
{
    const struct guards *g = guards_of(l, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].id == id)
            return &g->at[i];
    return NULL;
}

bool parts_typed_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    return strcspn(b->text, " [") == bytes && !strncmp(a->text, b->text, bytes);
}

/* trace/whatif/facts.c -- what a trace says of inputs and guards, taken apart. See trace/whatif/facts.h.
 *
 * Runs in: the viewer.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: parts, one with a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) a guard of torch's: the shape 4 or any, 3
 *     L['x'] is array.array d size (16,) stride (8,) one of ours */
#include "trace/whatif/facts.h"

#include <ctype.h>

#include "replay.h"
#include "trace/db.h"
#include "trace/doubts.h"

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

/* A part, from AT, which may be changed: "x: int 2". False: no memory. */
static bool part_read(struct signature *s, char *at)
{
    struct part *p = list_add(&s->parts);
    char *colon = strstr(at, ": ");
    const char *open, *close;

    if (!p)
        return false;
    p->name = at;
    p->text = colon ? colon + 2 : at + strlen(at);
    p->shape.rank = -1;
    if (colon)
        *colon = 0;
    /* "Tensor float32[4, 3] cpu", "array.array d[16]"; not "list[3]" */
    open = strchr(p->text, '[');
    close = open ? strchr(open, ']') : NULL;
    if (close && memchr(p->text, ' ', (size_t)(open - p->text)) && !memchr(p->text, '\'', (size_t)(open - p->text))) {
        p->shape = shape_of(open + 1, close);
        p->before = (int)(open - p->text);
        p->after = (int)(close - p->text);
    }
    return true;
}

static void signature_read(struct facts *f, struct signature *s)
{
    struct query *query = db_query(f->db, "SELECT text FROM signature WHERE signature_id = ?1");
    char *at = NULL;
    size_t bytes;

    s->read = true;
    query_bind_integer(query, 1, s->id);
    if (query_step(query)) {
        const char *text = query_whole(query, 0, &bytes);
        at = arena_text(&f->texts, text, strlen(text));
    }
    while (at && *at && s->parts.count < PARTS && !f->failed) {
        char *end = part_end(at), *next = *end ? end + 2 : end;
        *end = 0;
        f->failed = !part_read(s, at);
        at = next;
    }
    if (!query_close(query))
        f->failed = true;
}

const struct signature *facts_signature(struct facts *f, int64_t id)
{
    struct signature *s = id <= 0 ? NULL : list_find(&f->signatures, id, id);

    if (s && !s->read)
        signature_read(f, s);
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

bool guard_hidden(const struct facts *f, const char *kind, const char *source)
{
    size_t bytes;
    const char *rest, *local = source_local(source, &bytes, &rest);

    if (!local)
        return strcmp(kind, "LAMBDA") || *source; /* a function of the locals */
    if (*rest)
        return strncmp(rest, ".size()", 7) && strncmp(rest, ".stride()", 9);
    return (f->blind && guard_exact(kind) && strcmp(kind, "TYPE_MATCH")) || !strcmp(kind, "ID_MATCH") ||
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

static const char *column(struct facts *f, struct query *query, int at)
{
    const char *text = query_text(query, at, NULL), *copy = arena_text(&f->texts, text, strlen(text));

    f->failed = f->failed || !copy;
    return copy ? copy : "";
}

const struct guards *facts_guards(struct facts *f, uint32_t entry)
{
    struct guards *g = &f->guards[entry];
    struct query *query;

    if (g->read)
        return g;
    g->read = true;
    query = db_query(f->db, "SELECT guard_id, kind, source, expression FROM guard WHERE cache_entry_id = ?1 LIMIT ?2");
    query_bind_integer(query, 1, f->r->entries.at[entry].id);
    query_bind_integer(query, 2, GUARDS_MAX);
    while (!f->failed && query_step(query)) {
        struct guard *one = list_add(g);
        const char *open, *close;
        if (!one) {
            f->failed = true;
            break;
        }
        *one = (struct guard){.id = query_integer(query, 0),
                              .kind = column(f, query, 1),
                              .source = column(f, query, 2),
                              .expression = column(f, query, 3),
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
    if (!query_close(query))
        f->failed = true;
    if (g->count)
        qsort(g->at, g->count, sizeof *g->at, by_source);
    return g;
}

const struct guard *facts_guard(struct facts *f, uint32_t entry, int64_t id)
{
    const struct guards *g = facts_guards(f, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].id == id)
            return &g->at[i];
    return NULL;
}

/* ---- all of it ------------------------------------------------------------- */

bool parts_typed_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    return strcspn(b->text, " [") == bytes && !strncmp(a->text, b->text, bytes);
}

bool facts_open(struct facts *f, struct db *db, const struct replay *r)
{
    struct query *query = db_query(db, "SELECT signature_id FROM signature ORDER BY signature_id");

    *f = (struct facts){.db = db, .r = r, .blind = doubts_values(db) != NULL};
    f->guards = calloc(r->entries.count + 1, sizeof *f->guards);
    f->failed = !f->guards;
    while (!f->failed && query_step(query)) {
        struct signature *s = list_add(&f->signatures);
        if (s)
            s->id = query_integer(query, 0);
        f->failed = !s;
    }
    f->failed = !query_close(query) || f->failed;
    return !f->failed;
}

void facts_close(struct facts *f)
{
    for (size_t i = 0; i < f->signatures.count; i++)
        list_free(&f->signatures.at[i].parts);
    for (size_t i = 0; f->guards && i < f->r->entries.count; i++)
        list_free(&f->guards[i]);
    list_free(&f->signatures);
    free(f->guards);
    arena_free(&f->texts);
}

/* trace/whatif/facts.c -- what a trace says of inputs and guards, taken apart. See trace/whatif/facts.h.
 *
 * Runs in: the viewer.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: parts, one with a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) a guard of torch's: the shape 4 or any, 3
 *     L['x'] is array.array d size (16,) stride (8,) one of ours */
#include "trace/whatif/facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "replay.h"

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

static bool signature_read(struct facts *f, struct signature *s)
{
    struct query *query = db_query(f->db, "SELECT text FROM signature WHERE signature_id = ?1");
    char *at;

    s->read = true;
    query_bind_integer(query, 1, s->id);
    if (query_step(query))
        s->copy = strdup(query_whole(query, 0, NULL));
    if (!query_close(query))
        f->failed = true;
    if (!s->copy || !(s->parts = calloc(PARTS, sizeof *s->parts)))
        return false;
    for (at = s->copy; *at && s->count < PARTS;) {
        struct part *p = &s->parts[s->count++];
        char *end = part_end(at), *colon = strstr(at, ": "), *open, *close;
        bool last = !*end;
        *end = 0;
        p->name = at;
        p->text = colon && colon < end ? colon + 2 : end;
        if (colon && colon < end)
            *colon = 0;
        p->shape.rank = -1;
        /* "Tensor float32[4, 3] cpu", "array.array d[16]"; not "list[3]" */
        open = strchr(p->text, '[');
        close = open ? strchr(open, ']') : NULL;
        if (close && memchr(p->text, ' ', (size_t)(open - p->text)) &&
            !memchr(p->text, '\'', (size_t)(open - p->text))) {
            p->shape = shape_of(open + 1, close);
            p->before = (int)(open - p->text);
            p->after = (int)(close - p->text);
        }
        at = last ? end : end + 2;
    }
    return true;
}

const struct signature *facts_signature(struct facts *f, int64_t id)
{
    size_t low = 0, high = f->signature_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->signatures[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (id < 0 || low == f->signature_count || f->signatures[low].id != id)
        return NULL;
    if (!f->signatures[low].read)
        signature_read(f, &f->signatures[low]);
    return f->signatures[low].parts ? &f->signatures[low] : NULL;
}

const struct part *signature_part(const struct signature *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->parts[i].name, name))
            return &s->parts[i];
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
    return (f->blind && guard_exact(kind) && strcmp(kind, "TYPE_MATCH")) || !strcmp(kind, "ID_MATCH") || strstr(kind, "FUNCTION") || strstr(kind, "CLOSURE") ||
           !strcmp(kind, "DICT_KEYS");
}

static int by_source(const void *a, const void *b)
{
    const struct guard *x = a, *y = b;
    int order = strcmp(x->source, y->source);

    return order ? order : strcmp(x->kind, y->kind);
}

static char *column_text(struct query *query, int column)
{
    return strdup(query_text(query, column, NULL));
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
    while (query_step(query)) {
        struct guard *more = realloc(g->items, (g->count + 1) * sizeof *more), *one;
        const char *open;
        if (!more) {
            f->failed = true;
            break;
        }
        g->items = more;
        one = &more[g->count];
        *one = (struct guard){.id = query_integer(query, 0),
                              .kind = column_text(query, 1),
                              .source = column_text(query, 2),
                              .expression = column_text(query, 3),
                              .shape = {.rank = -1}};
        g->count++; /* so that it is freed */
        if (!one->kind || !one->source || !one->expression) {
            f->failed = true;
            break;
        }
        /* torch: "size=[4, None], stride=[...]"; ours: "size (4, 3) stride (3, 1)" */
        if (!strcmp(one->kind, "TENSOR_MATCH") &&
            ((open = strstr(one->expression, "size=[")) || (open = strstr(one->expression, "size (")))) {
            const char *from = strpbrk(open, "[("), *close = strpbrk(from, "])");
            if (close)
                one->shape = shape_of(from + 1, close);
            one->before = (int)(open - one->expression);
        }
    }
    if (!query_close(query))
        f->failed = true;
    if (!f->failed && g->count)
        qsort(g->items, g->count, sizeof *g->items, by_source);
    else if (f->failed)
        g->count = 0;
    return g;
}

/* ---- all of it ------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct signature *)a)->id, y = ((const struct signature *)b)->id;

    return (x > y) - (x < y);
}

static bool load_signatures(struct facts *f)
{
    struct query *query = db_query(f->db, "SELECT signature_id FROM signature ORDER BY signature_id");
    bool ok = true;

    while (ok && query_step(query)) {
        if (!(f->signature_count & (f->signature_count - 1))) {
            struct signature *more =
                realloc(f->signatures, (f->signature_count ? f->signature_count * 2 : 1) * sizeof *more);
            ok = more != NULL;
            f->signatures = ok ? more : f->signatures;
        }
        if (ok)
            f->signatures[f->signature_count++] = (struct signature){.id = query_integer(query, 0)};
    }
    ok = query_close(query) && ok;
    if (f->signature_count)
        qsort(f->signatures, f->signature_count, sizeof *f->signatures, by_id);
    return ok;
}

bool parts_typed_alike(const struct part *a, const struct part *b)
{
    size_t bytes = strcspn(a->text, " [");

    return strcspn(b->text, " [") == bytes && !strncmp(a->text, b->text, bytes);
}

bool facts_open(struct facts *f, struct db *db, const struct replay *r)
{
    *f = (struct facts){.db = db, .r = r, .blind = doubts_values(db) != NULL, .guards = calloc(r->entries.count + 1, sizeof *f->guards)};
    f->failed = !f->guards || !load_signatures(f);
    return !f->failed;
}

void facts_close(struct facts *f)
{
    for (size_t i = 0; i < f->signature_count; i++) {
        free(f->signatures[i].copy);
        free(f->signatures[i].parts);
    }
    for (size_t i = 0; f->guards && i < f->r->entries.count; i++) {
        for (size_t k = 0; k < f->guards[i].count; k++) {
            free(f->guards[i].items[k].kind);
            free(f->guards[i].items[k].source);
            free(f->guards[i].items[k].expression);
        }
        free(f->guards[i].items);
    }
    free(f->signatures);
    free(f->guards);
}

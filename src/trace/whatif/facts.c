/* trace/whatif/facts.c -- what a trace says of the values that guards look at. See
 * trace/whatif/like.h.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: parts, one with a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) a guard of torch's: the shape any or 4, 3
 *     L['x'] is array.array d size (16,) stride (8,) one of ours
 *
 * What an entry's guards wanted was so in each call that ran it; of a call that ran none, or made
 * one, the signature says what its inputs were. Whether a guard holds is asked of that: yes, no, or
 * not known (LIKE_GUESS_NO). */
#include "trace/whatif/like.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "schema.h"
#include "trace/db.h"

enum { PARTS = 48 /* of a signature */ };
#define NOT_KNOWN LIKE_GUESS_NO

/* ---- inputs, taken apart ------------------------------------------------- */

/* The numbers between TEXT and END; what is no number is dynamic. */
static struct shape shape_of(const char *text, const char *end)
{
    struct shape shape = {.rank = 0};

    for (const char *stop; text < end; text = stop + 1) {
        char *rest;
        int64_t size;
        text += strspn(text, " ");
        if (!(stop = memchr(text, ',', (size_t)(end - text))))
            stop = end;
        if (text == stop)
            continue;
        if (shape.rank == DIMENSIONS)
            return (struct shape){.rank = -1};
        size = isdigit((unsigned char)*text) ? strtoll(text, &rest, 10) : SIZE_ANY;
        shape.size[shape.rank++] = size >= 0 && rest >= stop ? size : SIZE_ANY;
    }
    return shape;
}

/* Where the part of a signature that begins at TEXT ends: at a ", " outside of brackets and quotes.
 * */
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
static struct part part_of(struct whatif *w, char *at)
{
    char *colon = strstr(at, ": ");
    struct part part = {.text = colon ? colon + 2 : at + strlen(at), .shape.rank = -1};
    const char *open = strchr(part.text, '['), *close = open ? strchr(open, ']') : NULL;

    if (colon)
        *colon = 0;
    part.source = arena_print(&w->texts, "L['%s']", at);
    /* "Tensor float32[4, 3] cpu", "array.array d[16]"; not "list[3]" */
    if (close && memchr(part.text, ' ', (size_t)(open - part.text)) &&
        !memchr(part.text, '\'', (size_t)(open - part.text))) {
        part.shape = shape_of(open + 1, close);
        part.before = (int)(open - part.text);
        part.after = (int)(close - part.text);
    }
    return part;
}

const struct signature *signature_of(struct whatif *w, int64_t id)
{
    int64_t *known = id > 0 ? map_put(&w->signatures, id) : NULL;
    struct signature *s = known ? (struct signature *)*known : NULL;

    if (!known || s)
        return s;
    s = arena_take(&w->texts, sizeof *s);
    *known = (int64_t)s;
    db_rows(row, w->db, schema_statement("replay/inputs"), id)
    {
        size_t bytes;
        const char *text = query_whole(row, 0, &bytes);
        char *at = arena_text(&w->texts, text, bytes);
        while (*at && s->parts.count < PARTS) {
            char *end = part_end(at), *next = *end ? end + 2 : end;
            *end = 0;
            *list_add(&s->parts) = part_of(w, at);
            at = next;
        }
    }
    arena_keep(&w->texts, s->parts.at);
    return s;
}

const struct part *signature_part(const struct signature *s, const char *source)
{
    for (size_t i = 0; i < s->parts.count; i++)
        if (!strcmp(s->parts.at[i].source, source))
            return &s->parts.at[i];
    return NULL;
}

/* ---- sources ------------------------------------------------------------- */

/* Dimension and source of "L['x']" for a SOURCE like "L['x'].size()[0]", its bytes in *BYTES; -1:
 * it is no size. */
static int source_dimension(const char *source, size_t *bytes)
{
    static const char *const ways[] = {".size()[", ".shape["};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *at = strstr(source, ways[i]), *digits = at ? at + strlen(ways[i]) : NULL;
        char *end;
        if (!at || !isdigit((unsigned char)*digits))
            continue;
        *bytes = (size_t)(at - source);
        long dimension = strtol(digits, &end, 10);
        return end[0] == ']' && !end[1] && dimension < DIMENSIONS ? (int)dimension : -1;
    }
    return -1;
}

/* ---- values -------------------------------------------------------------- */

static const struct value value_unknown = {
    .sizes.rank = -1, .strides.rank = -1, .length = -1, .low = -INFINITY, .high = INFINITY};

/* The type of a literal; NULL: it does not show. */
static const char *literal_type(const char *text)
{
    if (!strcmp(text, "None"))
        return "NoneType";
    if (!strcmp(text, "True") || !strcmp(text, "False"))
        return "bool";
    if (*text == '\'' || *text == '"')
        return "str";
    if (*text == '(' || *text == '[')
        return *text == '(' ? "tuple" : "list";
    if (isdigit((unsigned char)text[*text == '-']))
        return text[strspn(text, "-0123456789")] ? "float" : "int";
    return NULL;
}

/* Does TEXT say all, or was it cut, or the value left out (--values; torch's "type and length of
 * L['x']")? */
static bool text_whole(const char *text)
{
    return !strstr(text, "...") && !strstr(text, "value not recorded") &&
           strncmp(text, "type and length of", 18);
}

/* TEXT is all of the value. */
static void value_is(struct value *v, const char *text)
{
    char *end;

    if (!text_whole(text) || !literal_type(text))
        return;
    v->literal = text;
    v->type = literal_type(text);
    v->something = strcmp(text, "None");
    if (isdigit((unsigned char)text[*text == '-'])) {
        v->low = v->high = strtod(text, &end);
        if (*end)
            v->low = -INFINITY, v->high = INFINITY;
    }
}

static void learn_part(struct value *v, const struct part *p)
{
    size_t word = strcspn(p->text, " [");

    v->part = p;
    v->sizes = p->shape;
    if (p->text[word] == ' ' && p->shape.rank < 0)
        value_is(v, p->text + word + 1);
    if (p->text[word] == '[')
        v->length = strtoll(p->text + word + 1, NULL, 10);
}

/* What a guard that held for it says of a value. */
static void learn_value(struct value *v, const struct value *more)
{
    if (more->literal || !v->type)
        v->type = more->type ? more->type : v->type;
    v->literal = more->literal ? more->literal : v->literal;
    v->object = more->object ? more->object : v->object;
    v->keys = more->keys ? more->keys : v->keys;
    v->tensor = more->tensor ? more->tensor : v->tensor;
    v->length = more->length >= 0 ? more->length : v->length;
    v->low = fmax(v->low, more->low);
    v->high = fmin(v->high, more->high);
    v->by = more->by ? more->by : v->by;
    v->something = v->something || more->something;
    if (v->sizes.rank < 0)
        v->sizes = more->sizes;
    for (int i = 0; i < more->sizes.rank && more->sizes.rank == v->sizes.rank; i++)
        if (v->sizes.size[i] == SIZE_ANY)
            v->sizes.size[i] = more->sizes.size[i];
    if (v->strides.rank < 0)
        v->strides = more->strides;
}

/* ---- guards -------------------------------------------------------------- */

/* What the kinds look at, and the type that one wants besides. */
static const struct {
    const char *kind, *type;
    enum about about;
} kinds[] = {
    {"TYPE_MATCH", NULL, ABOUT_TYPE},        {"EQUALS_MATCH", NULL, ABOUT_VALUE},
    {"CONSTANT_MATCH", NULL, ABOUT_VALUE},   {"NONE_MATCH", NULL, ABOUT_VALUE},
    {"TRUE_MATCH", NULL, ABOUT_VALUE},       {"FALSE_MATCH", NULL, ABOUT_VALUE},
    {"NOT_NONE", NULL, ABOUT_SOMETHING},     {"WEAKREF_ALIVE", NULL, ABOUT_SOMETHING},
    {"SEQUENCE_LENGTH", NULL, ABOUT_LENGTH}, {"LENGTH_CHECK", NULL, ABOUT_LENGTH},
    {"LIST_LENGTH", "list", ABOUT_LENGTH},   {"TUPLE_LENGTH", "tuple", ABOUT_LENGTH},
    {"DICT_LENGTH", "dict", ABOUT_LENGTH},   {"DICT_KEYS", "dict", ABOUT_KEYS},
    {"DICT_CONTAINS", "dict", ABOUT_KEY},    {"DICT_NOT_CONTAINS", "dict", ABOUT_KEY},
    {"ID_MATCH", NULL, ABOUT_OBJECT},        {"FUNCTION_MATCH", NULL, ABOUT_OBJECT},
    {"CLOSURE_MATCH", NULL, ABOUT_OTHER},    {"BUILTIN_MATCH", NULL, ABOUT_OBJECT},
    {"MODULE_MATCH", NULL, ABOUT_OBJECT},    {"CLASS_MATCH", NULL, ABOUT_OBJECT},
    {"TENSOR_MATCH", NULL, ABOUT_TENSOR},    {"SHAPE_BOUND", NULL, ABOUT_NUMBER},
    {"SHAPE_DIVISIBLE", NULL, ABOUT_NUMBER}, {"SHAPE_EQUAL", NULL, ABOUT_EQUAL},
};

/* "2 <= SOURCE <= 20", "SOURCE < 5", "SOURCE is 2 to 9", "is a multiple of 2": bounds of a number.
 * False: something else. */
static bool read_bounds(const char *text, const char *source, struct value *want)
{
    static const struct {
        const char *words;
        int low, high; /* what the number after them is of each: 1 the bound, 2 just not it */
    } ways[] = {{" <= ", 0, 1},          {" < ", 0, 2},          {" >= ", 1, 0}, {" > ", 2, 0},
                {" is at least ", 1, 0}, {" is at most ", 0, 1}, {" is ", 1, 1}};
    const char *at = strstr(text, source), *rest = at ? at + strlen(source) : NULL;
    char *end = (char *)text;
    double number, high;

    if (!at || strstr(rest, source))
        return false;
    /* what torch asks of each float that is a symbol */
    if (!strncmp(text, "not math.isnan(", 15)) {
        want->low = -DBL_MAX, want->high = DBL_MAX;
        return true;
    }
    if (at != text) { /* NUMBER <= SOURCE */
        number = strtod(text, &end);
        if (end == text || (strncmp(end, " <= ", 4) && strncmp(end, " < ", 3)) ||
            end + (end[2] == '=' ? 4 : 3) != at)
            return false;
        want->low = end[2] == '=' ? number : nextafter(number, INFINITY);
    }
    if (sscanf(rest, " is a multiple of %" SCNd64, &want->by) == 1)
        return true;
    if (sscanf(rest, " is %lf to %lf", &number, &high) == 2) {
        want->low = number, want->high = high;
        return true;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *digits = rest + strlen(ways[i].words);
        if (strncmp(rest, ways[i].words, strlen(ways[i].words)))
            continue;
        number = strtod(digits, &end);
        if (end == digits || *end)
            return false;
        if (ways[i].low)
            want->low = ways[i].low == 1 ? number : nextafter(number, INFINITY);
        if (ways[i].high)
            want->high = ways[i].high == 1 ? number : nextafter(number, -INFINITY);
        return true;
    }
    return at != text && !*rest;
}

/* "memoryview d" of "SOURCE is memoryview d size (4,) stride (8,)", and the sizes and strides; of
 * torch's as well. */
static void read_tensor(struct whatif *w, const struct guard *g, struct value *want)
{
    const char *text = g->expression + (strncmp(g->expression, "check_tensor(", 13) ? 0 : 13),
               *open, *close;

    if (!strncmp(text, g->source, strlen(g->source)))
        text += strlen(g->source);
    text += strspn(text, ", ");
    text += strncmp(text, "is ", 3) ? 0 : 3;
    if (!(open = strstr(text, "size=[")) && !(open = strstr(text, "size (")))
        return;
    want->tensor = arena_text(&w->texts, text, (size_t)(open - text));
    open = strpbrk(open, "[(") + 1;
    if (!(close = strpbrk(open, "])")))
        return;
    want->sizes = shape_of(open, close);
    if ((open = strstr(close, "stride=[")) || (open = strstr(close, "stride (")))
        if ((close = strpbrk(open = strpbrk(open, "[(") + 1, "])")))
            want->strides = shape_of(open, close);
}

/* What G, whose texts are known, looks at and wants. */
static void guard_read(struct whatif *w, struct guard *g)
{
    struct value *want = &g->want;
    const char *equal = strstr(g->expression, " == "), *is = strstr(g->expression, " is "), *type;

    *want = value_unknown;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(g->kind, kinds[i].kind)) {
            g->about = kinds[i].about;
            want->type = kinds[i].type;
        }
    want->something = 1u << g->about & (1u << ABOUT_LENGTH | 1u << ABOUT_KEYS | 1u << ABOUT_KEY |
                                        1u << ABOUT_TENSOR | 1u << ABOUT_SOMETHING);
    switch (g->about) {
    /* "type(L['x']) is int"; torch: "___check_type_id(L['x'], 7), type=<class 'int'>" */
    case ABOUT_TYPE:
        if ((type = strstr(g->expression, "type=<class '")))
            want->type = arena_text(&w->texts, type + 13, strcspn(type + 13, "'"));
        else if ((type = strstr(g->expression, ") is ")))
            want->type = type + 5;
        want->something = want->type && strcmp(want->type, "NoneType");
        break;
    case ABOUT_VALUE:
        if (equal || is)
            value_is(want, (equal && strcmp(g->kind, "NONE_MATCH") ? equal : is ? is : equal) + 4);
        break;
    case ABOUT_LENGTH:
        if (equal)
            want->length = strtoll(equal + 4, NULL, 10);
        else if (!strncmp(g->expression, "not ", 4)) /* "not L['x']" */
            want->length = 0;
        else /* torch: "type and length of L['x']" */
            g->about = ABOUT_OTHER;
        break;
    case ABOUT_KEYS:
        want->keys = strstr(g->expression, "...") ? NULL : strstr(g->expression, "((");
        break;
    case ABOUT_OBJECT:
        want->object = is ? is + 4 : g->expression;
        if (is && literal_type(is + 4))
            value_is(want, is + 4);
        break;
    case ABOUT_TENSOR:
        read_tensor(w, g, want);
        break;
    case ABOUT_NUMBER:
    case ABOUT_OTHER:
        g->about =
            *g->source && read_bounds(g->expression, g->source, want) ? ABOUT_NUMBER : ABOUT_OTHER;
    default:
        break;
    }
    g->condition = g->about == ABOUT_NUMBER || g->about == ABOUT_EQUAL ||
                   (strstr(g->kind, "LAMBDA") && !strncmp(g->source, "L[", 2) &&
                    !strstr(g->expression, " is "));
}

static void guards_load(struct whatif *w, uint32_t entry)
{
    db_rows(row, w->db, schema_statement("whatif/guards"), w->r->entries.at[entry].id)
    {
        struct guard *g = list_add(&w->classes.at[entry].guards);
        *g = (struct guard){.id = query_integer(row, 0),
                            .kind = text_copy(w, query_text(row, 1, NULL)),
                            .source = text_copy(w, query_text(row, 2, NULL)),
                            .expression = text_copy(w, query_text(row, 3, NULL))};
        guard_read(w, g);
    }
}

const struct guard *guard_of(struct whatif *w, uint32_t entry, int64_t id)
{
    const struct guards *g = guards_of(w, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].id == id)
            return &g->at[i];
    return NULL;
}

/* Where the guards at SOURCE begin. */
static size_t guards_at(const struct guards *g, const char *source)
{
    return sorted_count(g->count, i, strcmp(g->at[i].source, source) < 0);
}

bool guard_next(struct whatif *w, uint32_t code, const char *source, struct look *at)
{
    for (; at->entry < w->r->entries.count; at->entry++, at->g = NULL) {
        const struct guards *all =
            w->r->entries.at[at->entry].code == code ? guards_of(w, at->entry) : NULL;
        if (!all || !all->count)
            continue;
        at->g = at->g ? at->g + 1 : all->at + guards_at(all, source);
        if (at->g < all->at + all->count && !strcmp(at->g->source, source))
            return true;
    }
    return false;
}

/* ---- what is known of a call's values ------------------------------------ */

struct value value_of(struct whatif *w, uint32_t other, bool first, const char *source)
{
    struct value v = value_unknown, base;
    const struct signature *s = first || other >= w->r->entries.count
                                    ? signature_of(w, w->classes.at[other].signature)
                                    : NULL;
    const struct part *p = s ? signature_part(s, source) : NULL;
    size_t bytes;
    int dimension = source_dimension(source, &bytes);

    if (p)
        learn_part(&v, p);
    if (other < w->r->entries.count) {
        const struct guards *g = guards_of(w, other);
        for (size_t i = guards_at(g, source); i < g->count && !strcmp(g->at[i].source, source); i++)
            learn_value(&v, &g->at[i].want);
    }
    if (dimension >= 0) {
        base = value_of(w, other, first, arena_text(&w->texts, source, bytes));
        if (dimension < base.sizes.rank && base.sizes.size[dimension] != SIZE_ANY)
            v.low = v.high = (double)base.sizes.size[dimension];
    }
    return v;
}

/* ---- does a guard hold? -------------------------------------------------- */

/* "T" of a signature is "module.T" of a guard. */
static bool types_same(const char *a, const char *b)
{
    const char *x = strrchr(a, '.'), *y = strrchr(b, '.');

    return !strcmp(a, b) || (!x != !y && !strcmp(x ? x + 1 : a, y ? y + 1 : b));
}

/* The type of V, as far as it is known: BYTES of a text. */
const char *value_type(struct whatif *w, const struct value *v)
{
    return v->type   ? v->type
           : v->part ? arena_text(&w->texts, v->part->text, strcspn(v->part->text, " ["))
                     : NULL;
}

/* Is TYPE one of TYPES, with a space after each? */
static bool is_one(const char *type, const char *types)
{
    size_t bytes = type ? strlen(type) : 0;

    for (const char *at = types; bytes && (at = strstr(at, type)); at++)
        if ((at == types || at[-1] == ' ') && at[bytes] == ' ')
            return true;
    return false;
}

/* A type that has no items, or none of a size. */
static bool is_scalar(const char *type)
{
    return is_one(type, "int float bool NoneType complex ");
}

static enum like yes(bool is)
{
    return is ? LIKE_YES : LIKE_NO;
}

enum like number_holds(const struct value *want, const struct value *v)
{
    if (v->low > want->high || v->high < want->low)
        return LIKE_NO;
    if (v->low < want->low || v->high > want->high)
        return NOT_KNOWN;
    if (!want->by || (v->by && v->by % want->by == 0))
        return LIKE_YES;
    return v->low == v->high ? yes(fmod(v->low, (double)want->by) == 0) : NOT_KNOWN;
}

/* Are A and B, two numbers, one to a guard? To torch's 0.0 is -0.0, to ours it is not. */
static bool numbers_same(const struct value *a, const struct value *b, bool torch)
{
    return a->low == b->low && (torch || signbit(a->low) == signbit(b->low));
}

static enum like literal_holds(const struct value *want, const char *type, const struct value *v,
                               bool torch)
{
    if (want->literal && v->literal) {
        if (want->low == want->high && v->low == v->high)
            return yes(types_same(want->type, v->type) && numbers_same(want, v, torch));
        return yes(!strcmp(want->literal, v->literal));
    }
    if (v->sizes.rank >= 0 || v->length >= 0)
        return want->literal && (is_scalar(want->type) || !strcmp(want->type, "str")) ? LIKE_NO
                                                                                      : NOT_KNOWN;
    if (want->type && type && !types_same(want->type, type))
        return LIKE_NO;
    if (want->literal && !strcmp(want->literal, "None") && v->something)
        return LIKE_NO;
    return NOT_KNOWN;
}

/* dtype, device and the like. */
static enum like tensors_alike(const struct value *want, const struct value *v)
{
    const struct part *a = want->part, *b = v->part;
    const char *word;
    size_t bytes;

    if (want->tensor && v->tensor)
        return yes(!strcmp(want->tensor, v->tensor));
    if (a && b)
        return yes(a->before == b->before && !strncmp(a->text, b->text, (size_t)a->before) &&
                   !strcmp(a->text + a->after, b->text + b->after));
    if (!b)
        return NOT_KNOWN;
    word = b->text + strcspn(b->text, " ");
    word += *word == ' ';
    bytes = strcspn(word, "[");
    for (const char *at = want->tensor; at && (at = strstr(at, " ")); at++)
        if (!strncmp(strncmp(at, " torch.", 7) ? at + 1 : at + 7, word, bytes))
            return LIKE_YES;
    return LIKE_NO;
}

static enum like tensor_holds(const struct value *want, const char *type, const struct value *v)
{
    enum like like;
    bool fixed = true;

    if (v->literal || is_scalar(type) || is_one(type, "str bytes list tuple dict set "))
        return LIKE_NO;
    if (v->sizes.rank < 0)
        return NOT_KNOWN;
    if (v->sizes.rank != want->sizes.rank)
        return LIKE_NO;
    like = tensors_alike(want, v);
    for (int i = 0; i < want->sizes.rank; i++) {
        fixed = fixed && want->sizes.size[i] != SIZE_ANY;
        if (want->sizes.size[i] == SIZE_ANY || want->sizes.size[i] == v->sizes.size[i])
            continue;
        if (v->sizes.size[i] != SIZE_ANY)
            return LIKE_NO;
        like = least(like, NOT_KNOWN);
    }
    for (int i = 0; fixed && i < want->strides.rank && v->strides.rank == want->strides.rank; i++)
        if (want->strides.size[i] != SIZE_ANY && v->strides.size[i] != SIZE_ANY &&
            want->strides.size[i] != v->strides.size[i])
            return LIKE_NO;
    return like;
}

/* Are the numbers at the sources that "A, B" names equal? */
static enum like equal_holds(struct whatif *w, const struct guard *g, uint32_t other, bool first)
{
    char *at = arena_text(&w->texts, g->source, strlen(g->source));
    struct value before = value_unknown;

    for (bool begun = false; *at; begun = true) {
        char *end = part_end(at), *next = *end ? end + 2 : end;
        struct value v;
        *end = 0;
        v = value_of(w, other, first, at);
        if (v.low != v.high)
            return NOT_KNOWN;
        if (begun && v.low != before.low)
            return LIKE_NO;
        before = v;
        at = next;
    }
    return LIKE_YES;
}

/* Is one the other with a "not "? */
static bool opposite(const char *a, const char *b)
{
    const char *no = strstr(b, "not ");

    return no ? !strncmp(a, b, (size_t)(no - b)) && !strcmp(a + (no - b), no + 4)
              : strstr(a, "not ") && opposite(b, a);
}

/* Do A and B compare one and the same thing, "len(L['x']) == 3", with two values? Then a call that
 * passes one fails the other. Not so of conditions that are put together: both may hold. */
static bool compare_apart(const char *a, const char *b)
{
    static const char *const operators[] = {" == ", " against "};
    static const char *const joints[] = {" and ", " or ", " if "};

    for (size_t i = 0; i < sizeof joints / sizeof *joints; i++)
        if (strstr(a, joints[i]) || strstr(b, joints[i]))
            return false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const char *at = strstr(a, operators[i]);
        size_t head = at ? (size_t)(at - a) + strlen(operators[i]) : 0;
        if (at)
            return !strncmp(a, b, head) && strcmp(a + head, b + head);
    }
    return false;
}

enum like guard_holds(struct whatif *w, const struct guard *g, uint32_t other, bool first)
{
    struct value v;
    const char *type;

    if (first && other < w->r->entries.count && map_get(&w->failed_by, failed_key(other, g->id)))
        return LIKE_NO; /* the call that made the entry failed this very guard */
    if (other < w->r->entries.count && g->expression) {
        const struct guards *held = guards_of(w, other);
        for (size_t i = guards_at(held, g->source);
             i < held->count && !strcmp(held->at[i].source, g->source); i++) {
            const struct guard *h = &held->at[i];
            bool same = !strcmp(h->expression, g->expression);
            if (opposite(h->expression, g->expression))
                return LIKE_NO;
            if (strcmp(h->kind, g->kind))
                continue;
            if (same && strcmp(g->kind, "LAMBDA") && text_whole(g->expression) &&
                !map_get(&w->failed_by, failed_key(other, g->id)))
                return LIKE_YES;
            /* it wants one thing, so that others of its kind at its source want another */
            bool other_value =
                g->about == ABOUT_OTHER &&
                (compare_apart(g->expression, h->expression) || !strcmp(g->kind, "CLOSURE_MATCH"));
            if (!same && (g->about == ABOUT_TYPE || other_value))
                return LIKE_NO;
        }
    }
    if (g->about == ABOUT_OTHER || g->about == ABOUT_UNKNOWN)
        return NOT_KNOWN;
    if (g->about == ABOUT_EQUAL)
        return equal_holds(w, g, other, first);
    v = value_of(w, other, first, g->source);
    type = value_type(w, &v);
    switch (g->about) {
    case ABOUT_TYPE:
        if (!g->want.type || !type)
            return NOT_KNOWN;
        /* two classes may have one name: then one failed the other's guard */
        if (types_same(g->want.type, type))
            for (struct look at = {0}; guard_next(w, w->classes.at[other].code, g->source, &at);)
                if (at.g->about == ABOUT_TYPE && at.g->want.type &&
                    types_same(at.g->want.type, type) &&
                    map_get(&w->failed_by, failed_key(other, at.g->id)))
                    return other < w->r->entries.count && at.g->id == g->id ? LIKE_NO : NOT_KNOWN;
        return yes(types_same(g->want.type, type));
    case ABOUT_VALUE:
        return literal_holds(&g->want, type, &v, w->torch);
    case ABOUT_SOMETHING:
        return v.literal || v.something || type
                   ? yes(v.something || (type && strcmp(type, "NoneType")))
                   : NOT_KNOWN;
    case ABOUT_LENGTH:
        if (is_scalar(type) || (v.length >= 0 && v.length != g->want.length))
            return LIKE_NO;
        return v.length >= 0 && (!g->want.type || (type && !strcmp(type, g->want.type)))
                   ? LIKE_YES
                   : NOT_KNOWN;
    case ABOUT_KEYS:
        if (v.keys && g->want.keys)
            return yes(!strcmp(v.keys, g->want.keys));
        return is_scalar(type) ? LIKE_NO : NOT_KNOWN;
    case ABOUT_OBJECT:
        if (v.object && g->want.object)
            return yes(!strcmp(v.object, g->want.object));
        return v.literal && g->want.literal ? yes(!strcmp(v.literal, g->want.literal)) : NOT_KNOWN;
    case ABOUT_TENSOR:
        return tensor_holds(&g->want, type, &v);
    case ABOUT_NUMBER:
        return number_holds(&g->want, &v);
    case ABOUT_ALIKE:
        if ((type && !types_same(type, g->want.type)) ||
            (v.sizes.rank >= 0 && v.sizes.rank != g->want.sizes.rank))
            return LIKE_NO;
        return (v.literal || v.sizes.rank >= 0) && v.part && g->want.part &&
                       !strcmp(v.part->text, g->want.part->text)
                   ? LIKE_YES
                   : NOT_KNOWN; /* else there is more to it than its signature */
    default:
        return NOT_KNOWN;
    }
}

const struct guards *guards_of(struct whatif *w, uint32_t class_)
{
    struct guards *g = &w->classes.at[class_].guards;

    if (!g->read) {
        g->read = true;
        if (class_ < w->r->entries.count)
            guards_load(w, class_);
        else
            guards_make(w, class_, g);
        arena_keep(&w->texts, g->at);
    }
    return g;
}

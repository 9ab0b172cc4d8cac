/* trace/whatif/facts.c -- finds the values that guards check, as far as the trace shows them. See
 * trace/whatif/like.h.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: two inputs, x has a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) torch's guard on x: None is any size
 *     L['x'] is array.array d size (16,) stride (8,) a guard of the stand-alone shim
 *
 * The values come from two sources. The guards of an entry held in each call that ran the entry.
 * The signature describes the inputs of a call that made an entry or ran no entry. The values show
 * whether a guard holds: yes, no, or not known (LIKE_GUESS_NO). */
#include "secret.h"
#include "trace/whatif/like.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "schema.h"
#include "trace/db.h"

enum { PARTS = 48 /* the most inputs that are read from a signature */ };
#define NOT_KNOWN LIKE_GUESS_NO

/* ---- parsing a signature into the inputs of a call ----------------------- */

static bool is_digit(char letter)
{
    return isdigit((unsigned char)letter);
}

/* Return the number that the text from TEXT to STOP is, or SIZE_ANY if it is no number. */
static int64_t parse_size(const char *text, const char *stop)
{
    char *rest;
    int64_t size;

    if (!is_digit(*text))
        return SIZE_ANY;
    size = strtoll(text, &rest, 10);
    return size >= 0 && rest >= stop ? size : SIZE_ANY;
}

/* Parse the sizes in the text from TEXT to END, "4, 3". A size that is not a number is dynamic. */
static struct shape parse_shape(const char *text, const char *end)
{
    struct shape shape = {.rank = 0};
    const char *stop;

    for (; text < end; text = stop + 1) {
        text += strspn(text, " ");
        stop = memchr(text, ',', (size_t)(end - text));
        if (!stop)
            stop = end;
        if (text == stop)
            continue;
        if (shape.rank == DIMENSIONS)
            return (struct shape){.rank = -1};
        shape.size[shape.rank] = parse_size(text, stop);
        shape.rank++;
    }
    return shape;
}

/* Return the end of the input that begins at TEXT in a signature. An input ends before a ", " that
 * is not inside brackets or quotes. */
static char *find_part_end(char *text)
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
        } else if (depth <= 0 && !strncmp(text, ", ", 2)) {
            break;
        }
    }
    return text;
}

/* Parse the input at AT in a signature, "x: int 2". Changes the text. */
static struct part parse_part(struct whatif *w, char *at)
{
    char *colon = strstr(at, ": ");
    struct part part = {.text = colon ? colon + 2 : at + strlen(at), .shape.rank = -1};
    const char *open = strchr(part.text, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    size_t before;

    if (colon)
        *colon = 0;
    part.source = arena_print(&w->texts, "L['%s']", at);
    if (!close)
        return part;
    /* in "Tensor float32[4, 3] cpu" and "array.array d[16]" the brackets hold a shape, in
     * "list[3]" a length */
    before = (size_t)(open - part.text);
    if (memchr(part.text, ' ', before) && !memchr(part.text, '\'', before)) {
        part.shape = parse_shape(open + 1, close);
        part.before = (int)before;
        part.after = (int)(close - part.text);
    }
    return part;
}

/* Put a NUL behind the input that begins at TEXT. Returns the beginning of the next input. */
static char *cut_part(char *text)
{
    char *end = find_part_end(text);

    if (!*end)
        return end;
    *end = 0;
    return end + 2;
}

const struct signature *signature_with_id(struct whatif *w, int64_t id)
{
    struct signature *s;
    int64_t *known;

    if (id <= 0)
        return NULL;
    known = map_put(&w->signatures, id);
    if (*known)
        return (struct signature *)*known;
    s = arena_take(&w->texts, sizeof *s);
    *known = (int64_t)s;
    db_rows(row, w->db, schema_statement("replay/inputs"), id)
    {
        size_t bytes;
        const char *text = query_whole_value(row, 0, &bytes);
        char *at = arena_text(&w->texts, text, bytes);
        while (*at && s->parts.count < PARTS) {
            char *next = cut_part(at);
            *list_add(&s->parts) = parse_part(w, at);
            at = next;
        }
    }
    arena_keep(&w->texts, s->parts.at);
    return s;
}

const struct part *signature_find_part(const struct signature *s, const char *source)
{
    for (size_t i = 0; i < s->parts.count; i++)
        if (!strcmp(s->parts.at[i].source, source))
            return &s->parts.at[i];
    return NULL;
}

/* ---- parsing guard sources ----------------------------------------------- */

/* Return the dimension that SOURCE names, such as 0 for "L['x'].size()[0]". *BYTES gets the length
 * of the tensor's own source, "L['x']". Returns -1 if SOURCE names no size. */
static int parse_source_dimension(const char *source, size_t *bytes)
{
    static const char *const ways[] = {".size()[", ".shape["};

    for (size_t i = 0; i < array_count(ways); i++) {
        const char *at = strstr(source, ways[i]);
        const char *digits = at ? at + strlen(ways[i]) : "";
        char *end;
        long dimension;
        if (!is_digit(*digits))
            continue;
        *bytes = (size_t)(at - source);
        dimension = strtol(digits, &end, 10);
        return !strcmp(end, "]") && dimension < DIMENSIONS ? (int)dimension : -1;
    }
    return -1;
}

/* ---- learning about a value from texts ----------------------------------- */

static const struct value value_unknown = {
    .sizes.rank = -1, .strides.rank = -1, .length = -1, .low = -INFINITY, .high = INFINITY};

/* Does TEXT begin with a digit, or with a minus and a digit? */
static bool is_number(const char *text)
{
    return is_digit(text[*text == '-']);
}

/* Return the type of the literal TEXT. Returns NULL if TEXT does not show its type. */
static const char *find_literal_type(const char *text)
{
    if (!strcmp(text, "None"))
        return "NoneType";
    if (!strcmp(text, "True") || !strcmp(text, "False"))
        return "bool";
    switch (*text) {
    case '\'':
    case '"':
        return "str";
    case '(':
        return "tuple";
    case '[':
        return "list";
    }
    if (is_number(text))
        return text[strspn(text, "-0123456789")] ? "float" : "int";
    return NULL;
}

/* Is TEXT the whole value? It is not if the text was cut, or if --values or --redact left the value
 * out. Nor is it if torch wrote only "type and length of L['x']". */
static bool is_text_whole(const char *text)
{
    return !strstr(text, "...") && !strstr(text, "value not recorded") &&
           !strstr(text, SECRET_WORD) && strncmp(text, "type and length of", 18);
}

/* If TEXT is a whole literal, such as 3 or 'a', store its value in the value V. */
static void learn_literal(struct value *v, const char *text)
{
    char *end;

    if (!is_text_whole(text) || !find_literal_type(text))
        return;
    v->literal = text;
    v->type = find_literal_type(text);
    v->something = strcmp(text, "None");
    if (is_number(text)) {
        double number = strtod(text, &end);
        v->low = *end ? -INFINITY : number;
        v->high = *end ? INFINITY : number;
    }
}

static void learn_part(struct value *v, const struct part *p)
{
    const char *end = p->text + strcspn(p->text, " [");

    v->part = p;
    v->sizes = p->shape;
    if (*end == ' ' && p->shape.rank < 0)
        learn_literal(v, end + 1);
    if (*end == '[')
        v->length = strtoll(end + 1, NULL, 10);
}

/* For each size that the shape A does not know, copy the size of the shape MORE. */
static void learn_shape(struct shape *a, const struct shape *more)
{
    if (a->rank < 0)
        *a = *more;
    if (a->rank != more->rank)
        return;
    for (int i = 0; i < a->rank; i++)
        if (a->size[i] == SIZE_ANY)
            a->size[i] = more->size[i];
}

/* A guard that expects the value MORE held for V. So what MORE tells is true of V: add it to V. */
static void learn_value(struct value *v, const struct value *more)
{
    bool replaces_type = more->literal || !v->type;

    if (more->type && replaces_type)
        v->type = more->type;
    if (more->literal)
        v->literal = more->literal;
    if (more->object)
        v->object = more->object;
    if (more->keys)
        v->keys = more->keys;
    if (more->tensor)
        v->tensor = more->tensor;
    if (more->length >= 0)
        v->length = more->length;
    if (more->by)
        v->by = more->by;
    if (more->something)
        v->something = true;
    v->low = fmax(v->low, more->low);
    v->high = fmin(v->high, more->high);
    learn_shape(&v->sizes, &more->sizes);
    if (v->strides.rank < 0)
        v->strides = more->strides;
}

/* ---- parsing guards: the property and the value that they expect --------- */

/* For each kind of guard: the property that it checks, and the type of value that this
 * property implies. */
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

/* Operators that stand before a bound in the expression of a guard. LOW, HIGH: the operator sets
 * the lower or the upper bound. ALLOWED: a number equal to the bound satisfies the guard. */
static const struct comparison {
    const char *words;
    bool low, high, allowed;
} comparisons[] = {
    {" <= ", false, true, true},          {" < ", false, true, false},
    {" >= ", true, false, true},          {" > ", true, false, false},
    {" is at least ", true, false, true}, {" is at most ", false, true, true},
    {" is ", true, true, true},
};

/* Parse the text from TEXT to STOP, "NUMBER <= " or "NUMBER < ", and store the number as the lower
 * bound in WANT. */
static bool parse_lower_bound(const char *text, const char *stop, struct value *want)
{
    char *end;
    double number = strtod(text, &end);
    bool allowed = !strncmp(end, " <= ", 4);
    bool less = !strncmp(end, " < ", 3);

    if (end == text)
        return false;
    if (!allowed && !less)
        return false;
    if (end + (allowed ? 4 : 3) != stop)
        return false;
    want->low = allowed ? number : nextafter(number, INFINITY);
    return true;
}

/* Parse the number in REST, the operator C and a number such as " <= 20", and store the bounds that
 * they mean in WANT. */
static bool read_comparison(const char *rest, const struct comparison *c, struct value *want)
{
    const char *digits = rest + strlen(c->words);
    char *end;
    double number = strtod(digits, &end);

    if (end == digits || *end)
        return false;
    if (c->low)
        want->low = c->allowed ? number : nextafter(number, INFINITY);
    if (c->high)
        want->high = c->allowed ? number : nextafter(number, -INFINITY);
    return true;
}

/* Parse TEXT as bounds of the number at SOURCE: "2 <= SOURCE <= 20", "SOURCE < 5", "SOURCE is 2 to
 * 9", "SOURCE is a multiple of 2". Returns false if TEXT has another form. */
static bool read_bounds(const char *text, const char *source, struct value *want)
{
    const char *at = strstr(text, source);
    const char *rest = at ? at + strlen(source) : NULL;
    double low, high;

    if (!at || strstr(rest, source))
        return false;
    /* each dynamic float has this condition of torch */
    if (!strncmp(text, "not math.isnan(", 15)) {
        want->low = -DBL_MAX;
        want->high = DBL_MAX;
        return true;
    }
    if (at != text && !parse_lower_bound(text, at, want))
        return false;
    if (sscanf(rest, " is a multiple of %" SCNd64, &want->by) == 1)
        return true;
    if (sscanf(rest, " is %lf to %lf", &low, &high) == 2) {
        want->low = low;
        want->high = high;
        return true;
    }
    for (size_t i = 0; i < array_count(comparisons); i++) {
        const struct comparison *c = &comparisons[i];
        if (!strncmp(rest, c->words, strlen(c->words)))
            return read_comparison(rest, c, want);
    }
    return at != text && !*rest;
}

/* Return the first number in the brackets behind the text A or the text B in TEXT. *CLOSE gets the
 * closing bracket. Returns NULL if TEXT has neither A nor B. */
static const char *find_bracket_after(const char *text, const char *a, const char *b,
                                      const char **close)
{
    const char *at = strstr(text, a);

    if (!at)
        at = strstr(text, b);
    if (!at)
        return NULL;
    at = strpbrk(at, "[(") + 1;
    *close = strpbrk(at, "])");
    return at;
}

/* Parse a guard on a tensor or array, "SOURCE is memoryview d size (4,) stride (8,)" or
 * torch's "check_tensor(...)". Store the description ("memoryview d"), the sizes and the
 * strides in WANT. */
static void read_tensor(struct whatif *w, const struct guard *g, struct value *want)
{
    const char *text = g->expression;
    const char *sizes, *strides, *close;

    if (!strncmp(text, "check_tensor(", 13))
        text += 13;
    if (!strncmp(text, g->source, strlen(g->source)))
        text += strlen(g->source);
    text += strspn(text, ", ");
    if (!strncmp(text, "is ", 3))
        text += 3;
    sizes = find_bracket_after(text, "size=[", "size (", &close);
    if (!sizes)
        return;
    want->tensor = arena_text(&w->texts, text, (size_t)(sizes - 6 - text));
    if (!close)
        return;
    want->sizes = parse_shape(sizes, close);
    strides = find_bracket_after(close, "stride=[", "stride (", &close);
    if (strides && close)
        want->strides = parse_shape(strides, close);
}

/* Return the type that a guard expects: int for "type(L['x']) is int", or for torch's
 * "___check_type_id(L['x'], 7), type=<class 'int'>". Returns NULL if the guard expects no type. */
static const char *read_type(struct whatif *w, const char *expression)
{
    const char *torch = strstr(expression, "type=<class '");
    const char *own = strstr(expression, ") is ");

    if (torch) {
        const char *name = torch + 13;
        return arena_text(&w->texts, name, strcspn(name, "'"));
    }
    return own ? own + 5 : NULL;
}

/* Return the literal that a guard expects: 3 for "L['x'] == 3", None for "L['x'] is None". Returns
 * NULL if the guard expects no literal. */
static const char *read_literal(const struct guard *g)
{
    const char *equal = strstr(g->expression, " == ");
    const char *is = strstr(g->expression, " is ");

    if (is && !strcmp(g->kind, "NONE_MATCH"))
        equal = NULL;
    if (equal)
        return equal + 4;
    return is ? is + 4 : NULL;
}

/* Return the length that a guard expects: 3 for "len(L['x']) == 3", 0 for "not L['x']". Returns -1
 * if the expression has no length, as torch's "type and length of L['x']". */
static int64_t read_length(const char *expression)
{
    const char *equal = strstr(expression, " == ");

    if (equal)
        return strtoll(equal + 4, NULL, 10);
    return strncmp(expression, "not ", 4) ? -1 : 0;
}

/* Parse a guard on an object's identity, "L['x'] is <object>", and store the object's
 * description in WANT. */
static void parse_identity_guard(const char *expression, struct value *want)
{
    const char *is = strstr(expression, " is ");

    want->object = is ? is + 4 : expression;
    if (is && find_literal_type(is + 4))
        learn_literal(want, is + 4);
}

/* If a guard checks the property ABOUT, does it hold only for values that are not None? */
static bool does_guard_exclude_none(enum about about)
{
    switch (about) {
    case ABOUT_LENGTH:
    case ABOUT_KEYS:
    case ABOUT_KEY:
    case ABOUT_TENSOR:
    case ABOUT_SOMETHING:
        return true;
    default:
        return false;
    }
}

/* Is the guard a condition on sizes or numbers, such as "2 <= L['x'].size()[0]"? */
static bool is_condition_on_numbers(const struct guard *g)
{
    if (g->about == ABOUT_NUMBER || g->about == ABOUT_EQUAL)
        return true;
    if (!strstr(g->kind, "LAMBDA") || strncmp(g->source, "L[", 2))
        return false;
    return !strstr(g->expression, " is ");
}

/* Parse the texts of the guard: set the property that it checks, and the value that it expects. */
static void parse_guard(struct whatif *w, struct guard *g)
{
    struct value *want = &g->want;
    const char *literal;

    *want = value_unknown;
    for (size_t i = 0; i < array_count(kinds); i++)
        if (!strcmp(g->kind, kinds[i].kind)) {
            g->about = kinds[i].about;
            want->type = kinds[i].type;
        }
    want->something = does_guard_exclude_none(g->about);
    switch (g->about) {
    case ABOUT_TYPE:
        want->type = read_type(w, g->expression);
        want->something = want->type && strcmp(want->type, "NoneType");
        break;
    case ABOUT_VALUE:
        literal = read_literal(g);
        if (literal)
            learn_literal(want, literal);
        break;
    case ABOUT_LENGTH:
        want->length = read_length(g->expression);
        if (want->length < 0)
            g->about = ABOUT_OTHER;
        break;
    case ABOUT_KEYS:
        if (!strstr(g->expression, "..."))
            want->keys = strstr(g->expression, "((");
        break;
    case ABOUT_OBJECT:
        parse_identity_guard(g->expression, want);
        break;
    case ABOUT_TENSOR:
        read_tensor(w, g, want);
        break;
    case ABOUT_NUMBER:
    case ABOUT_OTHER:
        g->about = ABOUT_OTHER;
        if (*g->source && read_bounds(g->expression, g->source, want))
            g->about = ABOUT_NUMBER;
        break;
    default:
        break;
    }
    g->condition = is_condition_on_numbers(g);
}

static void load_guards(struct whatif *w, uint32_t entry)
{
    db_rows(row, w->db, schema_statement("whatif/guards"), entry_at(w, entry)->id)
    {
        struct guard *g = list_add(&class_at(w, entry)->guards);
        *g = (struct guard){.id = query_integer(row, 0),
                            .kind = text_keep_copy(w, query_text(row, 1, NULL)),
                            .source = text_keep_copy(w, query_text(row, 2, NULL)),
                            .expression = text_keep_copy(w, query_text(row, 3, NULL))};
        parse_guard(w, g);
    }
}

const struct guard *guard_find(struct whatif *w, uint32_t entry, int64_t id)
{
    const struct guards *g = guards_of_class(w, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].id == id)
            return &g->at[i];
    return NULL;
}

/* Return the index of the first guard on SOURCE. The guards are sorted by source. */
static size_t find_first_guard(const struct guards *g, const char *source)
{
    return sorted_count(g->count, i, strcmp(g->at[i].source, source) < 0);
}

/* Is the guard that ALL has at the index AT a guard on SOURCE? */
static bool is_guard_at(const struct guards *all, size_t at, const char *source)
{
    return at < all->count && !strcmp(all->at[at].source, source);
}

bool guard_next_on_source(struct whatif *w, uint32_t code, const char *source, struct look *at)
{
    for (; is_recorded(w, at->entry); at->entry++) {
        const struct guards *all;
        size_t next;
        if (entry_at(w, at->entry)->code != code)
            continue;
        all = guards_of_class(w, at->entry);
        next = at->g ? (size_t)(at->g - all->at) + 1 : find_first_guard(all, source);
        if (is_guard_at(all, next, source)) {
            at->g = &all->at[next];
            return true;
        }
        at->g = NULL;
    }
    return false;
}

/* ---- finding the values that a call had ---------------------------------- */

/* If SOURCE names a size, "L['x'].size()[0]", and the call's size of L['x'] is known, store the
 * size in the value V. */
static void learn_size(struct whatif *w, uint32_t other, bool first, const char *source,
                       struct value *v)
{
    size_t bytes;
    int dimension = parse_source_dimension(source, &bytes);
    struct value base;

    if (dimension < 0)
        return;
    base = value_at_source(w, other, first, arena_text(&w->texts, source, bytes));
    if (dimension < base.sizes.rank && base.sizes.size[dimension] != SIZE_ANY) {
        v->low = (double)base.sizes.size[dimension];
        v->high = v->low;
    }
}

struct value value_at_source(struct whatif *w, uint32_t other, bool first, const char *source)
{
    struct value v = value_unknown;

    if (first || !is_recorded(w, other)) {
        const struct signature *s = signature_with_id(w, class_at(w, other)->signature);
        const struct part *p = s ? signature_find_part(s, source) : NULL;
        if (p)
            learn_part(&v, p);
    }
    if (is_recorded(w, other)) {
        const struct guards *g = guards_of_class(w, other);
        for (size_t i = find_first_guard(g, source); is_guard_at(g, i, source); i++)
            learn_value(&v, &g->at[i].want);
    }
    learn_size(w, other, first, source, &v);
    return v;
}

/* ---- does a guard hold for the values that are known? -------------------- */

/* Are A and B names of the same type? In a signature the name may be "T", in a guard "module.T". */
static bool is_same_type(const char *a, const char *b)
{
    const char *x = strrchr(a, '.');
    const char *y = strrchr(b, '.');

    if (!x == !y)
        return !strcmp(a, b);
    return !strcmp(x ? x + 1 : a, y ? y + 1 : b);
}

const char *value_find_type(struct whatif *w, const struct value *v)
{
    const char *text = v->part ? v->part->text : NULL;

    if (v->type || !text)
        return v->type;
    return arena_text(&w->texts, text, strcspn(text, " ["));
}

/* Is TYPE in TYPES, a list with a blank behind each name? */
static bool is_in_list(const char *type, const char *types)
{
    size_t bytes = type ? strlen(type) : 0;

    if (!bytes)
        return false;
    for (const char *at = strstr(types, type); at; at = strstr(at + 1, type)) {
        bool begins = at == types || at[-1] == ' ';
        if (begins && at[bytes] == ' ')
            return true;
    }
    return false;
}

/* Is TYPE the name of a type whose values have no length and no sizes? */
static bool is_scalar(const char *type)
{
    return is_in_list(type, "int float bool NoneType complex ");
}

static enum like convert_to_like(bool is)
{
    return is ? LIKE_YES : LIKE_NO;
}

enum like number_is_in_bounds(const struct value *want, const struct value *v)
{
    if (v->low > want->high || v->high < want->low)
        return LIKE_NO;
    if (v->low < want->low || v->high > want->high)
        return NOT_KNOWN;
    if (!want->by)
        return LIKE_YES;
    if (v->by && v->by % want->by == 0)
        return LIKE_YES;
    return v->low == v->high ? convert_to_like(fmod(v->low, (double)want->by) == 0) : NOT_KNOWN;
}

/* Does a guard take the numbers A and B for equal? torch's guards take 0.0 and -0.0 for equal,
 * guards of other compilers do not. */
static bool are_numbers_equal(const struct value *a, const struct value *b, bool torch)
{
    return a->low == b->low && (torch || signbit(a->low) == signbit(b->low));
}

static bool is_number_known(const struct value *v)
{
    return v->low == v->high;
}

/* Is the literal of the value V the literal that WANT expects? */
static enum like do_literals_match(const struct value *want, const struct value *v, bool torch)
{
    if (!is_number_known(want) || !is_number_known(v))
        return convert_to_like(!strcmp(want->literal, v->literal));
    return convert_to_like(is_same_type(want->type, v->type) && are_numbers_equal(want, v, torch));
}

static enum like does_literal_guard_hold(const struct value *want, const char *type,
                                         const struct value *v, bool torch)
{
    bool both_typed;

    if (want->literal && v->literal)
        return do_literals_match(want, v, torch);
    if (v->sizes.rank >= 0 || v->length >= 0) {
        bool plain = want->literal && (is_scalar(want->type) || !strcmp(want->type, "str"));
        return plain ? LIKE_NO : NOT_KNOWN;
    }
    both_typed = want->type && type;
    if (both_typed && !is_same_type(want->type, type))
        return LIKE_NO;
    if (!want->literal || !v->something)
        return NOT_KNOWN;
    return strcmp(want->literal, "None") ? NOT_KNOWN : LIKE_NO;
}

/* Are the descriptions of the inputs A and B equal, apart from their shapes? */
static bool differ_only_in_shape(const struct part *a, const struct part *b)
{
    size_t before = (size_t)a->before;

    if (a->before != b->before || strncmp(a->text, b->text, before))
        return false;
    return !strcmp(a->text + a->after, b->text + b->after);
}

/* Does TENSOR, from the expression of a guard, contain the first BYTES bytes of WORD? It may have
 * "torch." before them. */
static bool has_word(const char *tensor, const char *word, size_t bytes)
{
    if (!tensor)
        return false;
    for (const char *at = strstr(tensor, " "); at; at = strstr(at + 1, " ")) {
        size_t before = strncmp(at, " torch.", 7) ? 1 : 7;
        if (!strncmp(at + before, word, bytes))
            return true;
    }
    return false;
}

/* Does the value V have the dtype, device and so on that WANT expects? */
static enum like do_tensors_match(const struct value *want, const struct value *v)
{
    const char *word;

    if (want->tensor && v->tensor)
        return convert_to_like(!strcmp(want->tensor, v->tensor));
    if (!v->part)
        return NOT_KNOWN;
    if (want->part)
        return convert_to_like(differ_only_in_shape(want->part, v->part));
    word = v->part->text + strcspn(v->part->text, " ");
    word += *word == ' ';
    return convert_to_like(has_word(want->tensor, word, strcspn(word, "[")));
}

/* Are all strides equal that are known both in WANT and in V? */
static bool have_same_strides(const struct shape *want, const struct shape *v)
{
    if (v->rank != want->rank)
        return true;
    for (int i = 0; i < want->rank; i++) {
        bool known = want->size[i] != SIZE_ANY && v->size[i] != SIZE_ANY;
        if (known && want->size[i] != v->size[i])
            return false;
    }
    return true;
}

static enum like does_tensor_guard_hold(const struct value *want, const char *type,
                                        const struct value *v)
{
    enum like like;
    bool fixed = true;

    if (v->literal || is_scalar(type))
        return LIKE_NO;
    if (is_in_list(type, "str bytes list tuple dict set "))
        return LIKE_NO;
    if (v->sizes.rank < 0)
        return NOT_KNOWN;
    if (v->sizes.rank != want->sizes.rank)
        return LIKE_NO;
    like = do_tensors_match(want, v);
    for (int i = 0; i < want->sizes.rank; i++) {
        int64_t size = want->sizes.size[i];
        int64_t actual = v->sizes.size[i];
        if (size == SIZE_ANY)
            fixed = false;
        if (size == SIZE_ANY || size == actual)
            continue;
        if (actual != SIZE_ANY)
            return LIKE_NO;
        like = least(like, NOT_KNOWN);
    }
    if (fixed && !have_same_strides(&want->strides, &v->strides))
        return LIKE_NO;
    return like;
}

/* G is a guard which expects that the numbers at several sources are equal. Its source is their
 * list, "A, B". Does the guard hold? */
static enum like does_equality_guard_hold(struct whatif *w, const struct guard *g, uint32_t other,
                                          bool first)
{
    char *at = arena_text(&w->texts, g->source, strlen(g->source));
    struct value before = value_unknown;

    while (*at) {
        char *next = cut_part(at);
        struct value v = value_at_source(w, other, first, at);
        if (!is_number_known(&v))
            return NOT_KNOWN;
        if (is_number_known(&before) && v.low != before.low)
            return LIKE_NO;
        before = v;
        at = next;
    }
    return LIKE_YES;
}

/* Does the text B become equal to the text A if one "not " is removed? */
static bool has_inserted_not(const char *a, const char *b)
{
    const char *no = strstr(b, "not ");
    size_t before = no ? (size_t)(no - b) : 0;

    return no && !strncmp(a, b, before) && !strcmp(a + before, no + 4);
}

/* Do the texts A and B differ only by one "not "? */
static bool differ_by_not(const char *a, const char *b)
{
    return strstr(b, "not ") ? has_inserted_not(a, b) : has_inserted_not(b, a);
}

/* Do the expressions A and B compare the same thing, "len(L['x'])", with different values? If
 * so, a call that passes A fails B. Expressions with "and", "or" or "if" do not count, because
 * both may hold. */
static bool do_expressions_need_different_values(const char *a, const char *b)
{
    static const char *const operators[] = {" == ", " against "};
    static const char *const joints[] = {" and ", " or ", " if "};

    for (size_t i = 0; i < array_count(joints); i++)
        if (strstr(a, joints[i]) || strstr(b, joints[i]))
            return false;
    for (size_t i = 0; i < array_count(operators); i++) {
        const char *at = strstr(a, operators[i]);
        size_t head;
        if (!at)
            continue;
        head = (size_t)(at - a) + strlen(operators[i]);
        return !strncmp(a, b, head) && strcmp(a + head, b + head);
    }
    return false;
}

/* Did the call that made the entry of the class OTHER fail the guard GUARD? */
static bool did_first_call_fail_guard(const struct whatif *w, uint32_t other, int64_t guard)
{
    return map_get(&w->failed_by, make_failed_key(other, guard));
}

/* Does the guard G hold for a call for which the guard H held? Both have the same
 * kind and source. */
static enum like does_guard_follow_from_other(const struct guard *g, const struct guard *h)
{
    if (!strcmp(h->expression, g->expression))
        return strcmp(g->kind, "LAMBDA") && is_text_whole(g->expression) ? LIKE_YES : NOT_KNOWN;
    /* both expressions check the type, and differ, so the guards expect different types */
    if (g->about == ABOUT_TYPE)
        return LIKE_NO;
    if (g->about != ABOUT_OTHER)
        return NOT_KNOWN;
    if (do_expressions_need_different_values(g->expression, h->expression) ||
        !strcmp(g->kind, "CLOSURE_MATCH"))
        return LIKE_NO;
    return NOT_KNOWN;
}

/* Does the guard G hold for calls of the recorded entry OTHER? Judged only by the entry's own
 * guards, which all held in these calls. */
static enum like does_guard_hold_by_entry_guards(struct whatif *w, const struct guard *g,
                                                 uint32_t other)
{
    const struct guards *held = guards_of_class(w, other);

    for (size_t i = find_first_guard(held, g->source); is_guard_at(held, i, g->source); i++) {
        const struct guard *h = &held->at[i];
        enum like like;
        if (differ_by_not(h->expression, g->expression))
            return LIKE_NO;
        if (strcmp(h->kind, g->kind))
            continue;
        like = does_guard_follow_from_other(g, h);
        if (like == LIKE_NO)
            return LIKE_NO;
        if (like == LIKE_YES && !did_first_call_fail_guard(w, other, g->id))
            return LIKE_YES;
    }
    return NOT_KNOWN;
}

/* Are there two types with the name TYPE? This is known if the call that made OTHER's entry had a
 * value of type TYPE at the guard's source, but failed a guard that expects TYPE there. Then *SAME
 * becomes true if G is the guard that failed. */
static bool has_namesake_type(struct whatif *w, const struct guard *g, uint32_t other,
                              const char *type, bool *same)
{
    for (struct look at = {0}; guard_next_on_source(w, class_code(w, other), g->source, &at);) {
        const char *wanted = at.g->about == ABOUT_TYPE ? at.g->want.type : NULL;
        if (!wanted || !is_same_type(wanted, type))
            continue;
        if (!did_first_call_fail_guard(w, other, at.g->id))
            continue;
        *same = is_recorded(w, other) && at.g->id == g->id;
        return true;
    }
    return false;
}

static enum like does_type_guard_hold(struct whatif *w, const struct guard *g, uint32_t other,
                                      const char *type)
{
    bool same;

    if (!g->want.type || !type)
        return NOT_KNOWN;
    if (!is_same_type(g->want.type, type))
        return LIKE_NO;
    if (has_namesake_type(w, g, other, type, &same))
        return same ? LIKE_NO : NOT_KNOWN;
    return LIKE_YES;
}

static enum like does_not_none_guard_hold(const struct value *v, const char *type)
{
    if (v->something)
        return LIKE_YES;
    if (!v->literal && !type)
        return NOT_KNOWN;
    return convert_to_like(type && strcmp(type, "NoneType"));
}

static enum like does_length_guard_hold(const struct value *want, const struct value *v,
                                        const char *type)
{
    if (is_scalar(type))
        return LIKE_NO;
    if (v->length < 0)
        return NOT_KNOWN;
    if (v->length != want->length)
        return LIKE_NO;
    if (!want->type)
        return LIKE_YES;
    return type && !strcmp(type, want->type) ? LIKE_YES : NOT_KNOWN;
}

static enum like does_keys_guard_hold(const struct value *want, const struct value *v,
                                      const char *type)
{
    if (v->keys && want->keys)
        return convert_to_like(!strcmp(v->keys, want->keys));
    return is_scalar(type) ? LIKE_NO : NOT_KNOWN;
}

static enum like does_object_guard_hold(const struct value *want, const struct value *v)
{
    if (v->object && want->object)
        return convert_to_like(!strcmp(v->object, want->object));
    if (v->literal && want->literal)
        return convert_to_like(!strcmp(v->literal, want->literal));
    return NOT_KNOWN;
}

/* Does a made-up guard (ABOUT_ALIKE) that expects WANT hold for the value V, whose type is TYPE? */
static enum like does_made_up_guard_hold(const struct value *want, const struct value *v,
                                         const char *type)
{
    if (type && !is_same_type(type, want->type))
        return LIKE_NO;
    if (v->sizes.rank >= 0 && v->sizes.rank != want->sizes.rank)
        return LIKE_NO;
    if (!v->part || !want->part)
        return NOT_KNOWN;
    if (strcmp(v->part->text, want->part->text))
        return NOT_KNOWN;
    /* the descriptions are equal, which means equal values only for literals, tensors and arrays */
    return v->literal || v->sizes.rank >= 0 ? LIKE_YES : NOT_KNOWN;
}

/* Does the guard G hold for calls of the class OTHER? Judged by what the trace tells about the
 * value that the guard checks. */
static enum like does_value_fulfil_guard(struct whatif *w, const struct guard *g, uint32_t other,
                                         bool first)
{
    struct value v = value_at_source(w, other, first, g->source);
    const char *type = value_find_type(w, &v);
    const struct value *want = &g->want;

    switch (g->about) {
    case ABOUT_TYPE:
        return does_type_guard_hold(w, g, other, type);
    case ABOUT_VALUE:
        return does_literal_guard_hold(want, type, &v, w->torch);
    case ABOUT_SOMETHING:
        return does_not_none_guard_hold(&v, type);
    case ABOUT_LENGTH:
        return does_length_guard_hold(want, &v, type);
    case ABOUT_KEYS:
        return does_keys_guard_hold(want, &v, type);
    case ABOUT_OBJECT:
        return does_object_guard_hold(want, &v);
    case ABOUT_TENSOR:
        return does_tensor_guard_hold(want, type, &v);
    case ABOUT_NUMBER:
        return number_is_in_bounds(want, &v);
    case ABOUT_ALIKE:
        return does_made_up_guard_hold(want, &v, type);
    default:
        return NOT_KNOWN;
    }
}

enum like guard_holds_for_class(struct whatif *w, const struct guard *g, uint32_t other, bool first)
{
    bool recorded = is_recorded(w, other);
    enum like like = NOT_KNOWN;

    if (recorded && first)
        like = did_first_call_fail_guard(w, other, g->id) ? LIKE_NO : NOT_KNOWN;
    if (like == LIKE_NO)
        return LIKE_NO; /* the call that made the entry of the class failed this guard */
    if (recorded && g->expression)
        like = does_guard_hold_by_entry_guards(w, g, other);
    if (like != NOT_KNOWN)
        return like;
    switch (g->about) {
    case ABOUT_OTHER:
    case ABOUT_UNKNOWN:
        return NOT_KNOWN;
    case ABOUT_EQUAL:
        return does_equality_guard_hold(w, g, other, first);
    default:
        return does_value_fulfil_guard(w, g, other, first);
    }
}

const struct guards *guards_of_class(struct whatif *w, uint32_t class_)
{
    struct guards *g = &class_at(w, class_)->guards;

    if (!g->read) {
        g->read = true;
        if (class_ < w->r->entries.count)
            load_guards(w, class_);
        else
            guards_make_up(w, class_, g);
        arena_keep(&w->texts, g->at);
    }
    return g;
}

/* trace/whatif/learn.c -- what a trace says of which calls are alike. See trace/whatif/like.h.
 *
 *     x: Tensor float32[4, 3] cpu, n: int 2          a signature: parts, one with a shape
 *     check_tensor(L['x'], ..., size=[None, 3], ...) a guard of torch's: the shape 4 or any, 3
 *     L['x'] is array.array d size (16,) stride (8,) one of ours */
#include <ctype.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/torch_words.h"
#include "trace/whatif/like.h"

enum {
    PAIRS_MAX = 1 << 19, /* remembered; more can be found out again */
    PARTS = 48,          /* of a signature */
};

int64_t *pair_at(struct whatif *w, uint32_t made, uint32_t other)
{
    int64_t key = (int64_t)((uint64_t)made << 32 | other), *bits = map_get(&w->pairs, key);

    if (!bits && w->learnt && w->pairs.count >= PAIRS_MAX) {
        w->scratch = 0;
        return &w->scratch;
    }
    return bits ? bits : map_put(&w->pairs, key);
}

const char *text_copy(struct whatif *w, const char *text)
{
    return arena_text(&w->texts, text, strlen(text));
}

/* ---- inputs, taken apart ---------------------------------------------------- */

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
    struct signature *s = id <= 0 ? NULL : list_find(&w->signatures, id, id);
    struct query *query;

    if (!s || s->read)
        return s;
    s->read = true;
    query = db_query(w->db, schema_statement("replay/inputs"));
    query_bind_integer(query, 1, id);
    if (query_step(query)) {
        size_t bytes;
        const char *text = query_whole(query, 0, &bytes);
        char *at = arena_text(&w->texts, text, strlen(text));
        while (*at && s->parts.count < PARTS) {
            char *end = part_end(at), *next = *end ? end + 2 : end;
            *end = 0;
            *list_add(&s->parts) = part_of(w, at);
            at = next;
        }
    }
    query_close(query);
    return s;
}

/* ---- guards ---------------------------------------------------------------- */

const char *source_local(const char *source)
{
    const char *end = strncmp(source, "L['", 3) ? NULL : strstr(source + 3, "']");

    return end ? end + 2 : NULL;
}

/* Does a guard of KIND at SOURCE see something that signatures do not show? */
static bool guard_hidden(const struct whatif *w, const char *kind, const char *source)
{
    const char *rest = source_local(source);

    if (!rest)
        return strcmp(kind, "LAMBDA") || *source; /* a function of the locals */
    if (*rest)
        return strncmp(rest, ".size()", 7) && strncmp(rest, ".stride()", 9);
    return (w->blind && guard_exact(kind) && strcmp(kind, "TYPE_MATCH")) || !strcmp(kind, "ID_MATCH") ||
           strstr(kind, "FUNCTION") || strstr(kind, "CLOSURE") || !strcmp(kind, "DICT_KEYS");
}

bool guard_exact(const char *kind)
{
    static const char kinds[] = " EQUALS_MATCH CONSTANT_MATCH TYPE_MATCH CLASS_MATCH ID_MATCH FUNCTION_MATCH"
                                " CLOSURE_MATCH BUILTIN_MATCH MODULE_MATCH SEQUENCE_LENGTH LENGTH_CHECK LIST_LENGTH TUPLE_LENGTH"
                                " DICT_LENGTH DICT_KEYS NONE_MATCH TRUE_MATCH FALSE_MATCH BOOL_MATCH ";
    size_t bytes = strlen(kind);

    for (const char *at = kinds; bytes && (at = strstr(at, kind)); at++)
        if (at[-1] == ' ' && at[bytes] == ' ')
            return true;
    return false;
}

const struct guards *guards_of(struct whatif *w, uint32_t entry)
{
    struct guards *g = &w->classes.at[entry].guards;
    struct query *query;

    if (g->read)
        return g;
    g->read = true;
    query = db_query(w->db, schema_statement("whatif/guards"));
    query_bind_integer(query, 1, w->r->entries.at[entry].id);
    while (query_step(query)) {
        struct guard *one = list_add(g);
        const char *open, *close;
        *one = (struct guard){.id = query_integer(query, 0),
                              .kind = text_copy(w, query_text(query, 1, NULL)),
                              .source = text_copy(w, query_text(query, 2, NULL)),
                              .expression = text_copy(w, query_text(query, 3, NULL)),
                              .shape = {.rank = -1}};
        /* torch: "size=[4, None], stride=[...]"; ours: "size (4, 3) stride (3, 1)" */
        if (!strcmp(one->kind, "TENSOR_MATCH") &&
            (open = strstr(one->expression, "size=[") ?: strstr(one->expression, "size ("))) {
            one->before = (int)(open - one->expression);
            open = strpbrk(open, "[(") + 1;
            if ((close = strpbrk(open, "])")))
                one->shape = shape_of(open, close);
        }
    }
    query_close(query);
    return g;
}

const struct guard *guard_of(struct whatif *w, uint32_t entry, int64_t id)
{
    const struct guards *g = guards_of(w, entry);

    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].id == id)
            return &g->at[i];
    return NULL;
}

/* ---- rows: each function takes one of schemas/whatif.sql ------------------- */

static bool signature_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;

    list_add(&w->signatures)->id = v[0];
    return true;
}

static bool backend_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    uint32_t entry = replay_index(&w->r->entry_ids, v[0]);

    if (entry != REPLAY_NONE)
        w->classes.at[entry].backend = (uint32_t)v[1];
    return true;
}

static bool code_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    uint32_t code = replay_index(&w->r->code_ids, v[0]);

    if (code != REPLAY_NONE)
        w->codes[code] = (struct like_code){.lambdas = v[1], .several = v[2], .resume = v[3], .accumulated = v[4]};
    return true;
}

static bool rest_row(void *context, const int64_t *v, unsigned nulls)
{
    struct whatif *w = context;
    struct rest rest = {replay_index(&w->r->code_ids, v[0]), replay_index(&w->r->code_ids, v[1])};

    if (rest.code != REPLAY_NONE && rest.resume != REPLAY_NONE) {
        *list_add(&w->rests) = rest;
        w->codes[rest.code].breaks = true;
    }
    return true;
}

/* By entry made, as indices follow row ids. */
static void load_causes(struct whatif *w)
{
    struct query *query = db_query(w->db, schema_statement("whatif/causes"));

    while (query_step(query)) {
        uint32_t made = replay_index(&w->r->entry_ids, query_integer(query, 0)),
                 older = replay_index(&w->r->entry_ids, query_integer(query, 1));
        struct difference c = {.made = made, .older = older, .shaped = query_integer(query, 4), .dimension = -1};
        bool backend;
        if (made == REPLAY_NONE || older == REPLAY_NONE)
            continue;
        c.kind = text_copy(w, query_text(query, 2, NULL));
        c.source = text_copy(w, query_text(query, 3, NULL));
        if (query_type(query, 5) == QUERY_INTEGER)
            c.dimension = (int)query_integer(query, 5);
        *list_add(&w->differences) = c;
        backend = !strcmp(c.kind, "BACKEND_MATCH");
        if (!backend && guard_hidden(w, c.kind, c.source))
            w->codes[w->r->entries.at[made].code].varied = true;
        *pair_at(w, older, made) |= backend ? SEEN_MISMATCH : FIRST_FAIL;
    }
    query_close(query);
}

/* ---- who is like whom ------------------------------------------------------ */

/* The class of a call that ran no entry: its code, its signature, and the guards that failed where those look at
 * something else. KNOWN: what makes a class -> its number + 1. */
static uint32_t miss_class(struct whatif *w, struct map *known, uint32_t lookup)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    int64_t signature = k->signature, *number;
    struct like_class made = {.signature = signature,
                              .code = w->r->caches.at[k->cache].code,
                              .backend = REPLAY_NONE,
                              .hidden = signature <= 0};
    const struct like_code *code = &w->codes[made.code];
    uint64_t key = (uint64_t)made.code * 0x9e3779b97f4a7c15u ^ (uint64_t)signature * 0xc2b2ae3d27d4eb4fu;

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &w->r->checks.at[i];
        int64_t failed = c->failed;
        const struct guard *g;
        if (c->entry == REPLAY_CHECK_NONE)
            continue;
        if (c->result != CHECK_BACKEND_MISMATCH)
            made.backend = w->classes.at[c->entry].backend;
        if (c->result == CHECK_FAIL && failed && (g = guard_of(w, c->entry, failed)) &&
            guard_hidden(w, g->kind, g->source)) {
            made.hidden = true;
            key = key * 31 + (uint64_t)failed;
        }
    }
    number = map_put(known, (int64_t)(key ^ made.backend * 0x9e3779b9u));
    if (!*number) {
        memcpy(made.check_ns, code->check_ns, sizeof made.check_ns);
        made.compile_ns = code->compile_ns;
        *list_add(&w->classes) = made;
        *number = (int64_t)w->classes.count;
    }
    return (uint32_t)*number - 1;
}

/* A call that was seen from outside and found nothing: the entries that were there did not fit. */
static void learn_unseen(struct whatif *w, uint32_t lookup)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    const struct replay_cache *cache = &w->r->caches.at[k->cache];

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &w->r->entries.at[cache->entries[i]];
        if (e->born_ns >= k->start_ns)
            break;
        if (e->died_ns > k->end_ns && e->region < 0 && cache->entries[i] != w->class_of[lookup])
            *pair_at(w, cache->entries[i], w->class_of[lookup]) |= FIRST_FAIL;
    }
}

/* What the checks of LOOKUP, whose class is known, say of pairs. FIRST: it made an entry or ran none. */
static void learn_checks(struct whatif *w, uint32_t lookup, bool first)
{
    const struct replay_lookup *k = &w->r->lookups.at[lookup];
    uint32_t class_ = w->class_of[lookup];

    for (uint32_t i = k->checks; i < k->checks + k->check_count; i++) {
        const struct replay_check *c = &w->r->checks.at[i];
        if (c->entry == REPLAY_CHECK_NONE || c->entry == class_)
            continue;
        if (c->result == CHECK_BACKEND_MISMATCH) {
            if (w->classes.at[c->entry].backend == w->classes.at[class_].backend)
                w->codes[w->r->caches.at[k->cache].code].namesakes = true;
            *pair_at(w, c->entry, class_) |= SEEN_MISMATCH;
        } else if (c->result == CHECK_PASS) {
            *pair_at(w, c->entry, class_) |= SEEN_PASS;
        } else if (c->result == CHECK_FAIL) {
            *pair_at(w, c->entry, class_) |= first ? FIRST_FAIL : SEEN_FAIL;
        }
    }
}

static void learn_pairs(struct whatif *w)
{
    const struct replay *r = w->r;
    struct map known = {0};

    for (uint32_t i = 0; i < r->lookups.count; i++) { /* who made what */
        const struct replay_lookup *k = &r->lookups.at[i];
        struct like_class *made = k->entry == REPLAY_NONE ? NULL : &w->classes.at[k->entry];
        if (made && k->outcome == OUTCOME_COMPILED && made->founder == REPLAY_NONE) {
            made->founder = i;
            made->signature = k->signature;
        }
    }
    for (uint32_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[i];
        bool ran = k->entry != REPLAY_NONE && (k->outcome == OUTCOME_HIT || k->outcome == OUTCOME_COMPILED),
             first = !ran || k->outcome == OUTCOME_COMPILED;
        w->class_of[i] = ran ? k->entry : miss_class(w, &known, i);
        if (k->observed && first)
            learn_unseen(w, i);
        learn_checks(w, i, first);
    }
    map_free(&known);
    w->learnt = true;
}

/* ---- limits, times, forks --------------------------------------------------- */

int64_t like_region(const struct replay *r, const struct replay_lookup *k, uint32_t ran)
{
    int64_t region = ran < r->entries.count ? r->entries.at[ran].region : -1;

    for (uint32_t i = k->checks; i < k->checks + k->check_count && region < 0; i++)
        if (r->checks.at[i].entry != REPLAY_CHECK_NONE)
            region = r->entries.at[r->checks.at[i].entry].region;
    return region;
}

/* Entries that count towards the limit for lookup K, as recorded. */
static int64_t counted_recorded(const struct replay *r, const struct replay_lookup *k)
{
    const struct replay_cache *cache = &r->caches.at[k->cache];
    bool torch = replay_torch(r, k->cache);
    int64_t region = like_region(r, k, k->entry), count = 0;

    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const struct replay_entry *e = &r->entries.at[cache->entries[i]];
        if (e->born_ns >= k->start_ns)
            break;
        if (k->outcome == OUTCOME_COMPILED && cache->entries[i] == k->entry)
            continue; /* observed lookups are timed apart from what they make */
        count += (!torch || e->region == region) && (e->died_ns >= k->start_ns || (torch && !e->reset));
    }
    return count;
}

/* What the trace shows of limits: a call that met one, with how many entries; and none that compiled with as many. */
static void learn_limits(struct whatif *w)
{
    const struct replay *r = w->r;
    int64_t *least = calloc(r->codes.count + 1, sizeof *least); /* by code: the limit must be this at least */

    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *k = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[k->cache].code;
        int64_t count;
        if (k->outcome != OUTCOME_COMPILED && (k->outcome != OUTCOME_LIMIT || w->codes[code].limit))
            continue;
        count = counted_recorded(r, k);
        if (k->outcome == OUTCOME_LIMIT)
            w->codes[code].limit = count ? count : LIMIT_VARIES;
        else if (count >= least[code])
            least[code] = count + 1;
    }
    for (size_t i = 0; i < r->codes.count; i++) {
        if (w->codes[i].limit && w->codes[i].limit < least[i])
            w->codes[i].limit = LIMIT_VARIES;
        w->codes[i].accumulated = w->codes[i].accumulated && w->codes[i].limit > 0;
    }
    free(least);
}

static int64_t mean(const struct replay_times *times, int passed, int64_t otherwise)
{
    return times->count[passed] ? times->ns[passed] / times->count[passed] : otherwise;
}

static void learn_times(struct whatif *w)
{
    const struct replay *r = w->r;

    for (size_t i = 0; i < r->compiles.count; i++) {
        const struct replay_compile *c = &r->compiles.at[i];
        struct like_class *class_ = c->entry == REPLAY_NONE ? NULL : &w->classes.at[c->entry];
        if (!class_)
            continue;
        class_->timed = true;
        class_->compile_ns = c->end_ns > c->start_ns ? c->end_ns - c->start_ns : 0;
        w->codes[c->code].compile_ns += class_->compile_ns;
        w->codes[c->code].compiles++;
    }
    for (size_t i = 0; i < 2 * r->entries.count; i++) {
        struct replay_times *all = &w->codes[r->entries.at[i / 2].code].checks;
        all->ns[i % 2] += r->times[i / 2].ns[i % 2];
        all->count[i % 2] += r->times[i / 2].count[i % 2];
    }
    for (size_t i = 0; i < r->codes.count; i++) {
        struct like_code *c = &w->codes[i];
        for (int passed = 0; passed < 2; passed++)
            c->check_ns[passed] = mean(&c->checks, passed, mean(&c->checks, !passed, 0));
        c->compile_ns /= c->compiles ? c->compiles : 1;
    }
    for (size_t i = 0; i < r->entries.count; i++) {
        struct like_class *class_ = &w->classes.at[i];
        const struct like_code *c = &w->codes[class_->code];
        for (int passed = 0; passed < 2; passed++)
            class_->check_ns[passed] = mean(&r->times[i], passed, c->check_ns[passed]);
        if (!class_->timed)
            class_->compile_ns = c->compile_ns;
    }
}

static int by_code(const void *a, const void *b)
{
    return list_order(((const struct rest *)a)->code, ((const struct rest *)b)->code);
}

static int by_fork_time(const void *a, const void *b, void *context)
{
    const struct replay *r = context;

    return list_order(r->processes.at[r->caches.at[*(const uint32_t *)a].process].start_ns,
                      r->processes.at[r->caches.at[*(const uint32_t *)b].process].start_ns);
}

/* Forks in the order of time. */
static void learn_forks(struct whatif *w)
{
    const struct replay *r = w->r;

    for (uint32_t i = 0; i < r->caches.count; i++)
        if (r->caches.at[i].parent != REPLAY_NONE)
            *list_add(&w->forks) = i;
    if (w->forks.count)
        qsort_r(w->forks.at, w->forks.count, sizeof *w->forks.at, by_fork_time, (void *)r);
}

void whatif_learn(struct whatif *w)
{
    const struct replay *r = w->r;
    struct query *query = db_query(w->db, schema_statement("whatif/torches"));

    w->blind = doubts_values(w->db) != NULL;
    w->class_of = malloc((r->lookups.count + 1) * sizeof *w->class_of);
    w->codes = calloc(r->codes.count + 1, sizeof *w->codes);
    for (size_t i = 0; i < r->entries.count; i++) {
        *list_add(&w->classes) = (struct like_class){
            .code = r->entries.at[i].code, .backend = REPLAY_NONE, .founder = REPLAY_NONE};
        w->regions = w->regions || r->entries.at[i].region >= 0;
    }
    while (query_step(query))
        w->floats_later = w->floats_later || torch_floats_later(torch_version(query_text(query, 0, NULL)));
    query_close(query);
    db_each(w->db, schema_statement("whatif/signatures"), signature_row, w);
    db_each(w->db, schema_statement("whatif/backends"), backend_row, w);
    db_each(w->db, schema_statement("whatif/codes"), code_row, w);
    db_each(w->db, schema_statement("whatif/rests"), rest_row, w);
    list_sort(&w->rests, by_code);
    load_causes(w);
    learn_times(w);
    learn_pairs(w);
    learn_limits(w);
    learn_forks(w);
}

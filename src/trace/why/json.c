/* trace/why/json.c -- what `dyntrace why --json` says: the facts of trace/why/why.h, all of them.
 *
 * Runs in: the viewer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/json.h"
#include "lib/table.h"
#include "trace/why/why.h"

static struct table *member(struct json *json, const char *name, int columns, const char *const *names)
{
    json_key(json, name);
    return table_open(json->out, TABLE_JSON, columns, names);
}

static void breaks_member(struct json *json, struct why *why)
{
    struct table *t = member(json, "graph_breaks", 12, (const char *[]){
        "line", "times", "reason", "user_stack", "resume_function", "rest_calls", "rest_eager_calls", "rest_compiles",
        "rest_entries", "rest_recompiles", "rest_compile_ns", "rest_lookup_ns"});

    for (size_t i = 0; t && i < why->breaks.count; i++) {
        const struct graph_break *b = &why->breaks.items[i];
        const struct rest none = {0}, *rest = b->rest ? b->rest : &none;
        bool known = b->rest && b->rest->ids;
        table_integer(t, b->line);
        table_integer(t, b->times);
        table_string(t, b->reason);
        table_string(t, b->stack);
        table_string(t, b->resume);
        table_maybe(t, known, rest->calls);
        table_maybe(t, known, rest->eager);
        table_maybe(t, known, rest->compiles);
        table_maybe(t, known, rest->entries);
        table_maybe(t, known, rest->recompiles);
        table_maybe(t, known, rest->compile_ns);
        table_maybe(t, known, rest->lookup_ns);
    }
    table_close(t);
}

static void phases_member(struct json *json, struct why *why)
{
    struct table *t = member(json, "phases", 5, (const char *[]){"name", "times", "total_ns", "self_ns", "late"});

    for (size_t i = 0; t && i < why->phases.count; i++) {
        const struct phase *p = &why->phases.items[i];
        table_string(t, p->name);
        table_integer(t, p->times);
        table_integer(t, p->total_ns);
        table_integer(t, p->self_ns);
        table_bool(t, p->late);
    }
    table_close(t);
    t = member(json, "marks", 5, (const char *[]){"at_ns", "action", "recursive_action", "region_id", "reason"});
    for (size_t i = 0; t && i < why->marks.count; i++) {
        const struct mark *m = &why->marks.items[i];
        table_integer(t, m->at_ns);
        table_string(t, m->action);
        table_string(t, m->callees);
        table_maybe(t, m->in_region, m->region_id);
        table_string(t, m->reason);
    }
    table_close(t);
    t = member(json, "ranks", 2, (const char *[]){"rank", "compiles"});
    for (size_t i = 0; t && i < why->ranks.count; i++) {
        table_integer(t, why->ranks.items[i].rank);
        table_integer(t, why->ranks.items[i].compiles);
    }
    table_close(t);
}

/* What a recompile follows from, as a cell. */
static void parent_cell(struct table *table, const struct parent *parent)
{
    char *text = NULL;
    size_t bytes = 0;
    struct json json = {.out = parent->compile_id ? open_memstream(&text, &bytes) : NULL};

    if (json.out) {
        json_object(&json, NULL);
        json_integer(&json, "compile_id", parent->compile_id);
        json_string(&json, "function", parent->function);
        json_string(&json, "label", parent->label);
        json_string(&json, "source", parent->source);
        json_string(&json, "expected", parent->wanted);
        json_string(&json, "actual", parent->seen);
        json_end(&json);
        fclose(json.out);
    }
    table_json(table, text ? text : "null");
    free(text);
}

static void remedies_member(struct json *json, struct why *why)
{
    struct table *t = member(json, "remedies", 10, (const char *[]){"name", "text", "what_if", "compiles", "predicted_compiles",
                             "eager", "predicted_eager", "undecided", "unrecorded", "gone"});

    for (size_t i = 0; t && i < why->remedies.count; i++) {
        const struct remedy *r = &why->remedies.items[i];
        table_string(t, r->name);
        table_string(t, r->text);
        table_string(t, r->settings);
        table_maybe(t, r->predicted, r->compiles);
        table_maybe(t, r->predicted, r->would_compile);
        table_maybe(t, r->predicted, r->eager);
        table_maybe(t, r->predicted, r->would_eager);
        table_maybe(t, r->predicted, r->undecided);
        table_maybe(t, r->predicted, r->unrecorded);
        table_maybe(t, r->predicted, r->gone);
    }
    table_close(t);
}

/* What guards take, callers that forbid compiling, and who says that the function is disabled. */
static void guards_member(struct json *json, struct why *why)
{
    struct table *t;

    json_object(json, "guards");
    json_integer(json, "checks", why->checks);
    json_integer(json, "check_ns", why->check_ns);
    json_integer(json, "calls", why->guard_calls);
    json_integer(json, "ns", why->guard_ns);
    json_real(json, "share_percent", why_guard_share(why) >= 0 ? why_guard_share(why) : NAN, 3);
    json_bool(json, "slow", why->guards_slow);
    json_end(json);
    t = member(json, "guard_costs", 3, (const char *[]){"kind", "guards", "estimated_ns"});
    for (size_t i = 0; t && i < why->costs.count; i++) {
        table_string(t, why->costs.items[i].kind);
        table_integer(t, why->costs.items[i].guards);
        table_integer(t, why->costs.items[i].ns);
    }
    table_close(t);
    t = member(json, "forbidden_by", 3, (const char *[]){"function", "reason", "calls"});
    for (size_t i = 0; t && i < why->forbidders.count; i++) {
        table_string(t, why->forbidders.items[i].function);
        table_string(t, why->forbidders.items[i].reason);
        table_integer(t, why->forbidders.items[i].calls);
    }
    table_close(t);
    json_string(json, "disabled", why->disabled_words);
}

static void json_members(struct json *json, struct why *why)
{
    struct table *t;

    t = member(json, "calls", 7, (const char *[]){"outcome", "cache_entry_id", "entry", "calls", "first_ns", "last_ns", "lookup_ns"});
    for (size_t i = 0; t && i < why->calls.count; i++) {
        const struct call_class *c = &why->calls.items[i];
        table_string(t, outcome_word(c->outcome));
        table_maybe(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_integer(t, c->calls);
        table_maybe(t, c->timed, c->first_ns);
        table_maybe(t, c->timed, c->last_ns);
        table_integer(t, c->lookup_ns);
    }
    table_close(t);
    t = member(json, "compiles", 12, (const char *[]){"compile_id", "code_id", "rank", "label", "start_ns", "end_ns", "outcome",
               "cache_entry_id", "reason", "sticky", "inputs", "follows_from"});
    for (size_t i = 0; t && i < why->compiles.count; i++) {
        const struct compile *c = &why->compiles.items[i];
        table_integer(t, c->compile_id);
        table_integer(t, c->code_id);
        table_maybe(t, c->rank >= 0, c->rank);
        table_string(t, c->label);
        table_integer(t, c->start_ns);
        table_maybe(t, c->ended, c->end_ns);
        table_string(t, c->outcome);
        table_maybe(t, c->entry_id, c->entry_id);
        table_string(t, c->reason);
        table_maybe(t, c->sticky >= 0, c->sticky);
        table_string(t, c->inputs);
        parent_cell(t, &c->parent);
    }
    table_close(t);
    t = member(json, "causes", 10, (const char *[]){"compile_id", "cache_entry_id", "older_entry", "kind", "source", "expected",
               "actual", "text", "how", "decided"});
    for (size_t i = 0; t && i < why->causes.count; i++) {
        const struct cause *c = &why->causes.items[i];
        table_integer(t, c->compile_id);
        table_maybe(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_string(t, c->kind);
        table_string(t, c->source);
        table_string(t, c->expected);
        table_string(t, c->actual);
        table_string(t, c->text);
        table_string(t, c->observed ? "observed" : "rechecked");
        table_bool(t, c->decided);
    }
    table_close(t);
    t = member(json, "histories", 7, (const char *[]){"code_id", "kind", "source", "aspect", "recompiles", "refused", "values"});
    for (size_t i = 0; t && i < why->histories.count; i++) {
        const struct history *h = &why->histories.items[i];
        table_integer(t, h->code_id);
        table_string(t, h->kind);
        table_string(t, h->source);
        table_string(t, h->aspect);
        table_integer(t, h->recompiles);
        table_integer(t, h->refused);
        table_json(t, h->json ? h->json : "[]");
    }
    table_close(t);
    t = member(json, "entries", 13, (const char *[]){
        "cache_entry_id", "code_id", "label", "backend", "region_id", "guards", "born_ns", "tried", "hit", "last_hit_ns",
        "backend_mismatches", "died_ns", "death_cause"});
    for (size_t i = 0; t && i < why->entries.count; i++) {
        const struct entry *e = &why->entries.items[i];
        table_integer(t, e->entry_id);
        table_integer(t, e->code_id);
        table_string(t, e->label);
        table_string(t, e->backend);
        table_maybe(t, e->in_region, e->region_id);
        table_integer(t, e->guards);
        table_integer(t, e->born_ns);
        table_integer(t, e->tried);
        table_integer(t, e->hits);
        table_maybe(t, e->hits, e->last_hit_ns);
        table_integer(t, e->mismatched);
        table_maybe(t, e->died, e->died_ns);
        table_string(t, e->death);
    }
    table_close(t);
    t = member(json, "failed_guards", 6, (const char *[]){"result", "times", "entry", "kind", "source", "expression"});
    for (size_t i = 0; t && i < why->guards.count; i++) {
        const struct failed_guard *g = &why->guards.items[i];
        table_string(t, g->result);
        table_integer(t, g->times);
        table_string(t, g->entry);
        table_string(t, g->kind);
        table_string(t, g->source);
        table_string(t, g->expression);
    }
    table_close(t);
    t = member(json, "eager_inputs", 2, (const char *[]){"calls", "inputs"});
    for (size_t i = 0; t && i < why->inputs.count; i++) {
        table_integer(t, why->inputs.items[i].calls);
        table_string(t, why->inputs.items[i].text);
    }
    table_close(t);
    breaks_member(json, why);
    phases_member(json, why);
    remedies_member(json, why);
    if (why->sql) {
        t = member(json, "sql", 2, (const char *[]){"title", "sql"});
        for (size_t i = 0; t && i < why->asked.count; i++) {
            table_string(t, why->asked.items[i].title);
            table_string(t, why->asked.items[i].sql);
        }
        table_close(t);
    }
    guards_member(json, why);
}

void why_json(struct why *why)
{
    struct json *json = &(struct json){.out = why->out};

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(why->db));
    found_json(json, &why->code);
    json_maybe(json, "call_count", why->all_calls >= 0, why->all_calls);
    json_maybe(json, "total_ns", why->total_ns >= 0, why->total_ns);
    json_integer(json, "calls_not_told_apart", why->undecided);
    json_integer(json, "recompiles", why_recompiles(why));
    json_bool(json, "losses", why->missing);
    if (why->torch.version) {
        json_object(json, "torch");
        json_string(json, "version", why->torch.text);
        json_string(json, "mode", why->torch.mode);
        json_string(json, "note", why->torch.note);
        json_end(json);
    } else {
        json_null(json, "torch");
    }
    json_members(json, why);
    json_end(json);
    putc('\n', why->out);
}

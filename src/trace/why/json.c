/* trace/why/json.c -- what `dyntrace why --json` says: the facts of trace/why/why.h, all of them.
 *
 * Runs in: the viewer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "lib/json.h"
#include "lib/table.h"
#include "trace/why/why.h"

static struct table *member(struct why *why, const char *name, int columns, const char *const *names)
{
    fprintf(why->out, ",\n\"%s\": ", name);
    return table_open(why->out, TABLE_JSON, columns, names);
}

static void maybe_integer(struct table *table, bool known, int64_t value)
{
    if (known)
        table_integer(table, value);
    else
        table_null(table);
}

static void breaks_member(struct why *why)
{
    struct table *t = member(why, "graph_breaks", 12, (const char *[]){
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
        maybe_integer(t, known, rest->calls);
        maybe_integer(t, known, rest->eager);
        maybe_integer(t, known, rest->compiles);
        maybe_integer(t, known, rest->entries);
        maybe_integer(t, known, rest->recompiles);
        maybe_integer(t, known, rest->compile_ns);
        maybe_integer(t, known, rest->lookup_ns);
    }
    table_close(t);
}

static void phases_member(struct why *why)
{
    struct table *t = member(why, "phases", 5, (const char *[]){"name", "times", "total_ns", "self_ns", "late"});

    for (size_t i = 0; t && i < why->phases.count; i++) {
        const struct phase *p = &why->phases.items[i];
        table_string(t, p->name);
        table_integer(t, p->times);
        table_integer(t, p->total_ns);
        table_integer(t, p->self_ns);
        table_json(t, p->late ? "true" : "false");
    }
    table_close(t);
    t = member(why, "marks", 5, (const char *[]){"at_ns", "action", "recursive_action", "region_id", "reason"});
    for (size_t i = 0; t && i < why->marks.count; i++) {
        const struct mark *m = &why->marks.items[i];
        table_integer(t, m->at_ns);
        table_string(t, m->action);
        table_string(t, m->callees);
        maybe_integer(t, m->in_region, m->region_id);
        table_string(t, m->reason);
    }
    table_close(t);
    t = member(why, "ranks", 2, (const char *[]){"rank", "compiles"});
    for (size_t i = 0; t && i < why->ranks.count; i++) {
        table_integer(t, why->ranks.items[i].rank);
        table_integer(t, why->ranks.items[i].compiles);
    }
    table_close(t);
}

/* A text or null. */
static void json_maybe(FILE *out, const char *text)
{
    if (text)
        json_string(out, text, strlen(text));
    else
        fputs("null", out);
}

/* What a recompile follows from, as a cell. */
static void parent_cell(struct table *table, const struct parent *parent)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = parent->compile_id ? open_memstream(&text, &bytes) : NULL;

    if (out) {
        fprintf(out, "{\"compile_id\": %" PRId64 ", \"function\": ", parent->compile_id);
        json_maybe(out, parent->function);
        fputs(", \"label\": ", out);
        json_maybe(out, parent->label);
        fputs(", \"source\": ", out);
        json_maybe(out, parent->source);
        fputs(", \"expected\": ", out);
        json_maybe(out, parent->wanted);
        fputs(", \"actual\": ", out);
        json_maybe(out, parent->seen);
        fputs("}", out);
        fclose(out);
    }
    table_json(table, text ? text : "null");
    free(text);
}

static void remedies_member(struct why *why)
{
    struct table *t = member(why, "remedies", 10, (const char *[]){"name", "text", "what_if", "compiles", "predicted_compiles",
                             "eager", "predicted_eager", "undecided", "unrecorded", "gone"});

    for (size_t i = 0; t && i < why->remedies.count; i++) {
        const struct remedy *r = &why->remedies.items[i];
        table_string(t, r->name);
        table_string(t, r->text);
        table_string(t, r->settings);
        maybe_integer(t, r->predicted, r->compiles);
        maybe_integer(t, r->predicted, r->would_compile);
        maybe_integer(t, r->predicted, r->eager);
        maybe_integer(t, r->predicted, r->would_eager);
        maybe_integer(t, r->predicted, r->undecided);
        maybe_integer(t, r->predicted, r->unrecorded);
        maybe_integer(t, r->predicted, r->gone);
    }
    table_close(t);
}

/* What guards take, callers that forbid compiling, and who says that the function is disabled. */
static void guards_member(struct why *why)
{
    FILE *out = why->out;
    struct table *t;

    fprintf(out, ",\n\"guards\": {\"checks\": %" PRId64 ", \"check_ns\": %" PRId64 ", \"calls\": %" PRId64 ", \"ns\": %" PRId64,
            why->checks, why->check_ns, why->guard_calls, why->guard_ns);
    if (why_guard_share(why) >= 0)
        fprintf(out, ", \"share_percent\": %.3g", why_guard_share(why));
    else
        fputs(", \"share_percent\": null", out);
    fprintf(out, ", \"slow\": %s}", why->guards_slow ? "true" : "false");
    t = member(why, "guard_costs", 3, (const char *[]){"kind", "guards", "estimated_ns"});
    for (size_t i = 0; t && i < why->costs.count; i++) {
        table_string(t, why->costs.items[i].kind);
        table_integer(t, why->costs.items[i].guards);
        table_integer(t, why->costs.items[i].ns);
    }
    table_close(t);
    t = member(why, "forbidden_by", 3, (const char *[]){"function", "reason", "calls"});
    for (size_t i = 0; t && i < why->forbidders.count; i++) {
        table_string(t, why->forbidders.items[i].function);
        table_string(t, why->forbidders.items[i].reason);
        table_integer(t, why->forbidders.items[i].calls);
    }
    table_close(t);
    fputs(",\n\"disabled\": ", out);
    json_maybe(out, why->disabled_words);
}

static void json_members(struct why *why)
{
    struct table *t;

    t = member(why, "calls", 7, (const char *[]){"outcome", "cache_entry_id", "entry", "calls", "first_ns", "last_ns", "lookup_ns"});
    for (size_t i = 0; t && i < why->calls.count; i++) {
        const struct call_class *c = &why->calls.items[i];
        table_string(t, outcome_word(c->outcome));
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_integer(t, c->calls);
        maybe_integer(t, c->timed, c->first_ns);
        maybe_integer(t, c->timed, c->last_ns);
        table_integer(t, c->lookup_ns);
    }
    table_close(t);
    t = member(why, "compiles", 12, (const char *[]){"compile_id", "code_id", "rank", "label", "start_ns", "end_ns", "outcome",
               "cache_entry_id", "reason", "sticky", "inputs", "follows_from"});
    for (size_t i = 0; t && i < why->compiles.count; i++) {
        const struct compile *c = &why->compiles.items[i];
        table_integer(t, c->compile_id);
        table_integer(t, c->code_id);
        maybe_integer(t, c->rank >= 0, c->rank);
        table_string(t, c->label);
        table_integer(t, c->start_ns);
        maybe_integer(t, c->ended, c->end_ns);
        table_string(t, c->outcome);
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->reason);
        maybe_integer(t, c->sticky >= 0, c->sticky);
        table_string(t, c->inputs);
        parent_cell(t, &c->parent);
    }
    table_close(t);
    t = member(why, "causes", 10, (const char *[]){"compile_id", "cache_entry_id", "older_entry", "kind", "source", "expected",
               "actual", "text", "how", "decided"});
    for (size_t i = 0; t && i < why->causes.count; i++) {
        const struct cause *c = &why->causes.items[i];
        table_integer(t, c->compile_id);
        maybe_integer(t, c->entry_id, c->entry_id);
        table_string(t, c->entry);
        table_string(t, c->kind);
        table_string(t, c->source);
        table_string(t, c->expected);
        table_string(t, c->actual);
        table_string(t, c->text);
        table_string(t, c->observed ? "observed" : "rechecked");
        table_json(t, c->decided ? "true" : "false");
    }
    table_close(t);
    t = member(why, "histories", 7, (const char *[]){"code_id", "kind", "source", "aspect", "recompiles", "refused", "values"});
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
    t = member(why, "entries", 13, (const char *[]){
        "cache_entry_id", "code_id", "label", "backend", "region_id", "guards", "born_ns", "tried", "hit", "last_hit_ns",
        "backend_mismatches", "died_ns", "death_cause"});
    for (size_t i = 0; t && i < why->entries.count; i++) {
        const struct entry *e = &why->entries.items[i];
        table_integer(t, e->entry_id);
        table_integer(t, e->code_id);
        table_string(t, e->label);
        table_string(t, e->backend);
        maybe_integer(t, e->in_region, e->region_id);
        table_integer(t, e->guards);
        table_integer(t, e->born_ns);
        table_integer(t, e->tried);
        table_integer(t, e->hits);
        maybe_integer(t, e->hits, e->last_hit_ns);
        table_integer(t, e->mismatched);
        maybe_integer(t, e->died, e->died_ns);
        table_string(t, e->death);
    }
    table_close(t);
    t = member(why, "failed_guards", 6, (const char *[]){"result", "times", "entry", "kind", "source", "expression"});
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
    t = member(why, "eager_inputs", 2, (const char *[]){"calls", "inputs"});
    for (size_t i = 0; t && i < why->inputs.count; i++) {
        table_integer(t, why->inputs.items[i].calls);
        table_string(t, why->inputs.items[i].text);
    }
    table_close(t);
    breaks_member(why);
    phases_member(why);
    remedies_member(why);
    if (why->sql) {
        t = member(why, "sql", 2, (const char *[]){"title", "sql"});
        for (size_t i = 0; t && i < why->asked.count; i++) {
            table_string(t, why->asked.items[i].title);
            table_string(t, why->asked.items[i].sql);
        }
        table_close(t);
    }
    guards_member(why);
}

void why_json(struct why *why)
{
    FILE *out = why->out;

    fputs("{\"file\": ", out);
    json_string(out, db_path(why->db), strlen(db_path(why->db)));
    fputs(",\n\"function\": {\"qualname\": ", out);
    json_string(out, why->code.qualname, strlen(why->code.qualname));
    fputs(", \"filename\": ", out);
    json_string(out, why->code.filename, strlen(why->code.filename));
    fprintf(out, ", \"first_line\": %" PRId64 ", \"kind\": ", why->code.first_line);
    json_string(out, why->code.kind, strlen(why->code.kind));
    fprintf(out, ", \"code_ids\": [%s], \"code_objects\": %" PRId64 "}", why->code.ids, why->code.code_objects);
    fprintf(out, why->all_calls < 0 ? ",\n\"call_count\": null" : ",\n\"call_count\": %" PRId64, why->all_calls);
    fprintf(out, why->total_ns < 0 ? ",\n\"total_ns\": null" : ",\n\"total_ns\": %" PRId64, why->total_ns);
    fprintf(out, ",\n\"calls_not_told_apart\": %" PRId64 ",\n\"recompiles\": %" PRId64 ",\n\"losses\": %s", why->undecided,
            why_recompiles(why), why->missing ? "true" : "false");
    fputs(",\n\"torch\": ", out);
    if (why->torch.version) {
        fputs("{\"version\": ", out);
        json_maybe(out, why->torch.text);
        fputs(", \"mode\": ", out);
        json_maybe(out, why->torch.mode);
        fputs(", \"note\": ", out);
        json_maybe(out, why->torch.note);
        fputs("}", out);
    } else {
        fputs("null", out);
    }
    json_members(why);
    fputs("}\n", out);
}


/* trace/why/follow.c -- what follows from the facts about a function's calls: what failing sources were, and remedies.
 *
 * Runs in: the viewer. See trace/why/why.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "trace/why/why.h"

static const char *value_of(const char *text)
{
    return text && *text ? text : NULL;
}

/* An expression was wanted, not a value. */
static bool wanted_expression(const struct cause *cause)
{
    return cause->kind && (!strncmp(cause->kind, "LAMBDA_GUARD", 12) || strstr(cause->kind, "SHAPE")) &&
           cause->expected && (!cause->source || strstr(cause->expected, cause->source) || strchr(cause->expected, '['));
}

/* ---- histories ------------------------------------------------------------- */

/* CAUSE is about what HISTORY is about. */
static bool history_holds(const struct history *history, const struct cause *cause)
{
    const struct cause *other = history->cause;

    return prose_same(cause->source, other->source) && prose_same(cause->kind, other->kind) &&
           prose_same(cause->aspect, other->aspect) && cause->dimension == other->dimension;
}

/* What SOURCE was before the first recompile, then at each of them, told once
 * while it stays the same. */
static void history_values(struct why *why, struct history *history)
{
    size_t room = 0, json_room = 0, told = 0;
    FILE *out = open_memstream(&history->values, &room), *list = open_memstream(&history->json, &json_room);
    struct json json = {.out = list};
    const char *before = NULL;
    const struct cause *oldest = NULL, *last = NULL;

    if (list)
        json_list(&json, NULL);
    for (size_t i = 0; out && list && i < why->causes.count; i++) {
        const struct cause *c = &why->causes.items[i];
        const struct compile *compile = why_compile(why, c->compile_id);
        const char *values[2] = {NULL, cause_seen(c)};
        if (!compile || compile->code_id != history->code_id || !history_holds(history, c))
            continue;
        if (!last) { /* the oldest entry of the first recompile knows what was before */
            for (size_t j = i; j < why->causes.count && why->causes.items[j].compile_id == c->compile_id; j++) {
                const struct cause *other = &why->causes.items[j];
                if (history_holds(history, other) && (!oldest || other->entry_id < oldest->entry_id))
                    oldest = other;
            }
            values[0] = wanted_expression(oldest) ? NULL : cause_wanted(oldest);
        } else if (last->compile_id == c->compile_id) {
            continue; /* the other entries of the same recompile */
        }
        last = c;
        for (int v = 0; v < 2; v++) {
            if (!values[v] || (before && !strcmp(before, values[v])))
                continue;
            before = values[v];
            if (told < 1000)
                json_string(&json, NULL, values[v]);
            if (told < WHY_VALUES)
                fprintf(out, "%s%.*s", told ? ", " : "", (int)prose_cut(values[v], WHY_WIDTH), values[v]);
            else if (told == WHY_VALUES)
                fputs(", …", out);
            told++;
        }
    }
    if (list)
        json_end(&json);
    if (out)
        fclose(out);
    if (list)
        fclose(list);
    if (!history->values || !history->json)
        why->failed = true;
}

static int history_more(const void *a, const void *b)
{
    const struct history *x = a, *y = b;

    if (x->recompiles + x->refused != y->recompiles + y->refused)
        return x->recompiles + x->refused < y->recompiles + y->refused ? 1 : -1;
    return (x->cause > y->cause) - (x->cause < y->cause);
}

/* One for each source that decided a recompile. A recompile counts for a source
 * once, however many older entries it failed in. */
static void histories_make(struct why *why)
{
    int64_t counted_for = -1;
    size_t counted_from = 0;
    LIST(size_t) counted = {0}; /* histories that this recompile has been counted for */

    for (size_t i = 0; i < why->causes.count && !why->failed; i++) {
        struct cause *c = &why->causes.items[i];
        const struct compile *compile = why_compile(why, c->compile_id);
        struct history *h = NULL;
        bool seen = false;
        if (c->compile_id != counted_for) {
            counted_for = c->compile_id;
            counted.count = 0;
            counted_from = i;
        }
        if (!c->decided || !compile || i > counted_from + 2000)
            continue;
        for (size_t j = 0; j < why->histories.count && !h; j++) {
            struct history *other = &why->histories.items[j];
            if (other->code_id == compile->code_id && history_holds(other, c))
                h = other;
        }
        if (!h) {
            if (why->histories.count >= 200 || !(h = ADD(why, histories)))
                continue;
            *h = (struct history){.kind = c->kind, .source = c->source, .cause = c, .code_id = compile->code_id, .aspect = cause_part(c)};
        }
        for (size_t j = 0; j < counted.count; j++)
            seen = seen || counted.items[j] == (size_t)(h - why->histories.items);
        h->cause = c;
        if (!seen) {
            size_t *slot = why_grow(why, (void **)&counted.items, &counted.count, &counted.room, sizeof *counted.items);
            *(compile_made(compile) ? &h->recompiles : &h->refused) += 1;
            if (slot)
                *slot = (size_t)(h - why->histories.items);
        }
    }
    free(counted.items);
    for (size_t i = 0; i < why->histories.count; i++)
        history_values(why, &why->histories.items[i]);
    if (why->histories.count)
        qsort(why->histories.items, why->histories.count, sizeof *why->histories.items, history_more);
}

/* ---- remedies -------------------------------------------------------------- */

enum { CAUSES_USED = 4, BREAKS_USED = 4, DEATHS_USED = 1000, KEPT = 32 };

/* TEXT and SETTINGS are owned from here on. A remedy is told once. */
static void remedy_add(struct why *why, struct remedy_case found, char *text, char *settings)
{
    struct remedy *remedy;
    bool told = !text || why->remedies.count >= KEPT;

    for (size_t i = 0; i < why->remedies.count && !told; i++)
        told = !strcmp(why->remedies.items[i].text, text);
    if (told || !(remedy = ADD(why, remedies))) {
        free(text);
        free(settings);
        return;
    }
    *remedy = (struct remedy){.name = found.name, .text = text, .effort = found.effort, .settings = settings};
}

bool compile_made(const struct compile *compile)
{
    return !compile->outcome || compile->entry_id || !strcmp(compile->outcome, "ok") || !strcmp(compile->outcome, "compiled");
}

const char *compile_refusal(const struct compile *compile)
{
    const char *reason = value_of(compile->reason);

    return reason && strcmp(reason, "first call") && strcmp(reason, "no entry fitted") ? reason : NULL;
}

bool why_turned_away(const struct why *why)
{
    for (size_t i = 0; i < why->compiles.count; i++)
        if (prose_same(why->compiles.items[i].outcome, "skipped") || prose_same(why->compiles.items[i].outcome, "declined"))
            return true;
    return false;
}

const struct entry *why_other_region(const struct why *why, const struct compile *compile)
{
    const struct entry *made = NULL;

    for (size_t i = 0; i < why->entries.count && !made; i++)
        if (compile->entry_id && why->entries.items[i].entry_id == compile->entry_id)
            made = &why->entries.items[i];
    for (size_t i = why->entries.count; made && i-- > 0;) {
        const struct entry *e = &why->entries.items[i];
        if (e->entry_id < made->entry_id && e->code_id == made->code_id && e->in_region &&
            !(made->in_region && made->region_id == e->region_id) && !(e->died && e->died_ns <= compile->start_ns))
            return e;
    }
    return NULL;
}

/* Reasons of compiles that made nothing, the first of each kind. */
struct reasons {
    const char *limit, *declined, *raised;
};

static struct reasons reasons_of(const struct why *why)
{
    struct reasons found = {0};

    for (size_t i = 0; i < why->compiles.count; i++) {
        const struct compile *c = &why->compiles.items[i];
        const char *reason = why->torch.version ? compile_refusal(c) : value_of(c->reason);
        const char **of = compile_made(c) || !reason                                      ? NULL
                          : !strcmp(c->outcome, "failed") || !strcmp(c->outcome, "error") ? &found.raised
                          : !strcmp(c->outcome, "limit")                                  ? &found.limit
                                                                                          : &found.declined;
        if (of && !*of)
            *of = reason;
    }
    for (size_t i = 0; i < why->marks.count; i++) { /* what was marked without a compile */
        const struct mark *m = &why->marks.items[i];
        if (!found.declined && prose_same(m->action, "skip"))
            found.declined = value_of(m->reason) ? m->reason : why_turned_away(why) ? NULL : "it was asked to";
    }
    return found;
}

/* Torch gave up for something that would elsewhere be a graph break: what to do about that. */
static void add_for_unsupported(struct why *why, const struct remedy_facts *facts)
{
    static const char before[] = "Unsupported: ";
    const char *found = facts->text ? strstr(facts->text, before) : NULL;
    struct remedy_facts more = *facts;
    struct remedy_case which;
    char *text;

    if (!found)
        return;
    more.text = found + sizeof before - 1;
    more.line = 0;
    text = remedy_for_break(&more, &which);
    if (which.effort < 3) /* it knows something */
        remedy_add(why, which, text, NULL);
    else
        free(text);
}

static void add_for_outcome(struct why *why, enum outcome outcome, const struct remedy_facts *facts)
{
    struct remedy_case which = {0};
    char *text = remedy_for_outcome(outcome, facts, &which);

    if (facts->torch && (outcome == OUTCOME_CALLBACK_ERROR || outcome == OUTCOME_SKIP || outcome == OUTCOME_DECLINED))
        add_for_unsupported(why, facts);
    remedy_add(why, which, text, outcome == OUTCOME_LIMIT ? why_settings_limit(why, facts) : NULL);
}

/* What broke calls. */
static void add_for_errors(struct why *why, const struct reasons *reasons, const struct remedy_facts *base)
{
    struct remedy_facts facts = *base;

    if ((facts.count = why_calls(why, OUTCOME_GUARD_ERROR))) {
        for (size_t i = 0; i < why->guards.count; i++)
            if (prose_same(why->guards.items[i].result, "error")) {
                facts.source = why->guards.items[i].source;
                facts.text = why->guards.items[i].expression;
                break;
            }
        add_for_outcome(why, OUTCOME_GUARD_ERROR, &facts);
    }
    if ((facts.count = why_calls(why, OUTCOME_CALLBACK_ERROR))) {
        facts.text = reasons->raised;
        add_for_outcome(why, OUTCOME_CALLBACK_ERROR, &facts);
    }
}

static void add_for_causes(struct why *why, const struct remedy_facts *base)
{
    for (size_t i = 0; i < why->histories.count && i < CAUSES_USED - !base->torch; i++) {
        const struct history *h = &why->histories.items[i];
        struct remedy_facts facts = *base;
        struct remedy_case which = {0};
        char *about = cause_about(h->cause), *text;
        facts.kind = h->kind;
        facts.source = base->torch && h->source && about ? about : h->source;
        facts.expected = h->cause->expected;
        facts.actual = h->cause->actual;
        facts.text = h->cause->text;
        facts.aspect = h->cause->aspect;
        facts.dimension = h->cause->dimension;
        facts.values = h->values;
        facts.count = h->recompiles + h->refused;
        text = remedy_for_cause(&facts, &which);
        remedy_add(why, which, text, cause_setting(h->cause));
        if (why->remedies.count && text == why->remedies.items[why->remedies.count - 1].text)
            why->remedies.items[why->remedies.count - 1].cause = h->cause;
        free(about);
    }
}

static void add_for_deaths(struct why *why, const struct remedy_facts *base)
{
    for (size_t i = 0; i < why->entries.count && i < DEATHS_USED; i++) {
        const struct entry *e = &why->entries.items[i];
        struct remedy_facts facts = *base;
        struct remedy_case which = {0};
        bool told = false, missed = false;
        char *text;
        facts.text = e->death;
        facts.count = 0;
        for (size_t j = 0; j < why->entries.count; j++) {
            told = told || (j < i && why->entries.items[j].died && prose_same(why->entries.items[j].death, e->death));
            facts.count += why->entries.items[j].died && prose_same(why->entries.items[j].death, e->death);
        }
        for (size_t j = 0; e->died && j < why->compiles.count; j++) /* nobody misses an entry that nobody asked for again */
            missed = missed || (why->compiles.items[j].code_id == e->code_id && why->compiles.items[j].start_ns >= e->died_ns);
        if (!e->died || !e->death || !missed || told)
            continue;
        text = remedy_for_death(&facts, &which);
        remedy_add(why, which, text, NULL);
    }
}

static void add_for_breaks(struct why *why, const struct remedy_facts *base)
{
    for (size_t i = 0; base->torch && i < why->breaks.count && i < BREAKS_USED; i++) {
        const struct graph_break *b = &why->breaks.items[i];
        struct remedy_facts facts = *base;
        struct remedy_case which = {0};
        char *text;
        facts.text = b->reason;
        facts.line = b->line;
        facts.count = b->times;
        text = remedy_for_break(&facts, &which);
        remedy_add(why, which, text, NULL);
    }
}

/* Guards that take a good part of the calls. */
static void add_for_guards(struct why *why, const struct remedy_facts *base)
{
    struct remedy_case which = {"fewer guards", 2};
    struct remedy_facts facts = *base;
    char share[32];

    if (!why->guards_slow)
        return;
    snprintf(share, sizeof share, "%.2g %%", why_guard_share(why));
    facts.values = share;
    remedy_add(why, which, remedy_sentence(base->torch ?
        "Guards take {values} of the calls of {function}: pass fewer and simpler inputs and read fewer globals and attributes "
        "in it, or compile a larger function around it. Once all kinds of input have been seen, "
        "torch.compiler.set_stance(skip_guard_eval_unsafe=True) checks only what tells the entries apart." :
        "Guards take {values} of the calls of {function}: make fewer and cheaper guards, or compile a larger function around it.",
        &facts), NULL);
}

/* Stable, because what comes first weighs more. */
static void sort_by_effort(struct why *why)
{
    for (size_t i = 1; i < why->remedies.count; i++) {
        struct remedy moved = why->remedies.items[i];
        size_t at = i;
        for (; at > 0 && why->remedies.items[at - 1].effort > moved.effort; at--)
            why->remedies.items[at] = why->remedies.items[at - 1];
        why->remedies.items[at] = moved;
    }
}

/* Smallest first: what makes recompiles needless, then what lets them happen,
 * then what is not about recompiles. */
static void remedies_make(struct why *why)
{
    static const enum outcome late[] = {OUTCOME_RUN_ONLY, OUTCOME_SKIP, OUTCOME_DECLINED, OUTCOME_DISABLED};
    const struct remedy_facts base = {.function = why->code.qualname, .code = why->code.kind, .torch = why->torch.version};
    struct remedy_facts facts = base;
    struct reasons reasons = reasons_of(why);
    size_t told = base.torch ? WHY_TORCH_REMEDIES : WHY_REMEDIES;

    add_for_errors(why, &reasons, &base);
    add_for_causes(why, &base);
    add_for_deaths(why, &base);
    if ((facts.count = why_calls(why, OUTCOME_LIMIT))) {
        facts.needed = why->different_inputs > (int64_t)why->entries.count ? why->different_inputs : 0;
        facts.text = reasons.limit;
        add_for_outcome(why, OUTCOME_LIMIT, &facts);
    }
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        if (!(facts.count = why_calls(why, late[i])))
            continue;
        facts.needed = late[i] == OUTCOME_RUN_ONLY && why->different_inputs > (int64_t)why->entries.count ? why->different_inputs : 0;
        facts.text = reasons.declined;
        if (late[i] == OUTCOME_RUN_ONLY && why->forbidders.count) {
            facts.text = "called from a caller that forbids it";
            facts.source = why->forbidders.items[0].function;
        }
        add_for_outcome(why, late[i], &facts);
        facts.source = NULL;
    }
    if (why->disabled_words || (why_calls(why, OUTCOME_PLAIN) && why_calls(why, OUTCOME_PLAIN) == why->all_calls)) {
        facts.count = why->all_calls;
        facts.needed = 0;
        facts.text = why->disabled_words;
        add_for_outcome(why, OUTCOME_PLAIN, &facts);
    }
    add_for_breaks(why, &base);
    add_for_guards(why, &base);
    if (base.torch)
        sort_by_effort(why);
    while (why->remedies.count > told)
        free(why->remedies.items[--why->remedies.count].text);
}

void why_follow(struct why *why)
{
    histories_make(why);
    remedies_make(why);
}

/* trace/why/follow.c -- what follows from the facts about a function's calls: what failing sources
 * were, remedies, and what would come of those. See trace/why/why.h. */
#include <inttypes.h>

#include "replay.h"
#include "schema.h"
#include "trace/brief.h"
#include "trace/db.h"
#include "trace/torch_words.h"
#include "trace/whatif/whatif.h"
#include "trace/why/why.h"

const char *cause_name(struct why *why, const struct cause *cause)
{
    char *about = cause_about(cause), *part = cause_part(cause);
    const bool counted =
        prose_same(cause->aspect, "length") && !part && strncmp(about, "len(", 4) != 0;
    const char *name = arena_print(&why->arena, counted ? "len(%s)%s%s" : "%s%s%s", about,
                                   part ? " " : "", part ? part : "");

    free(about), free(part);
    return name;
}

/* ---- histories ----------------------------------------------------------- */

static void histories_make(struct why *why)
{
    static const struct field fields[] = {FIELD(history, TEXT, text)
                                              FIELD(history, INTEGER, place){0}};
    char *sql = say_print("WITH causes AS MATERIALIZED (\n%s)\n%s", schema_statement("why/causes"),
                          schema_statement("why/histories"));
    struct query *query = db_query(why->db, sql);

    find_bind(query, 1, &why->code);
    while (query_step(query)) {
        struct history *h = list_add(&why->histories);
        why_row(why, query, histories_fields, h);
        why_row(why, query, fields, h);
        h->text = why_keep(why, brief_of(h->text, NULL));
        h->cause = &why->causes.at[h->place];
    }
    query_close(query);
    free(sql);
}

/* ---- what became of compiles --------------------------------------------- */

bool compile_made(const struct compile *compile)
{
    return !compile->outcome || compile->cache_entry_id || !strcmp(compile->outcome, "ok") ||
           !strcmp(compile->outcome, "compiled");
}

const char *compile_refusal(const struct why *why, const struct compile *compile)
{
    const char *reason = prose_filled(compile->reason);

    if (!why->torch.number || !reason)
        return reason;
    return strcmp(reason, "first call") && strcmp(reason, "no entry fitted") ? reason : NULL;
}

bool why_turned_away(const struct why *why)
{
    for (size_t i = 0; i < why->compiles.count; i++)
        if (prose_same(why->compiles.at[i].outcome, "skipped") ||
            prose_same(why->compiles.at[i].outcome, "declined"))
            return true;
    return false;
}

const struct entry *why_other_region(const struct why *why, const struct compile *compile)
{
    const struct entry *made = why_entry(why, compile->cache_entry_id);

    for (size_t i = why->entries.count; made && i-- > 0;) {
        const struct entry *e = &why->entries.at[i];
        if (e->cache_entry_id < made->cache_entry_id && e->code_id == made->code_id &&
            e->region_id != UNKNOWN && e->region_id != made->region_id &&
            (e->died_ns == UNKNOWN || e->died_ns > compile->start_ns))
            return e;
    }
    return NULL;
}

/* ---- remedies ------------------------------------------------------------ */

enum { CAUSES_USED = 4, BREAKS_USED = 4, KEPT = 32, LIMIT_MOST = 100000 };
enum { NAMED = 4, TORCH_NAMED = 6 /* at most, of a program that uses torch */ };

/* "7 recompiles and 1 attempt that gave no code": what takes a limit or raises is no recompile. */
static const char *concerned(struct why *why, const struct remedy_facts *facts)
{
    const char *recompiles = arena_print(&why->arena, "%" PRId64 " recompile%s", facts->count,
                                         facts->count == 1 ? "" : "s");
    const char *refused;

    if (!facts->refused)
        return recompiles;
    refused = arena_print(&why->arena, "%" PRId64 " attempt%s that gave no code", facts->refused,
                          facts->refused == 1 ? "" : "s");
    if (!facts->count)
        return refused;
    return arena_print(&why->arena, "%s and %s", recompiles, refused);
}

/* What happened, of which FACTS are, in a line; NULL: the remedy says it. */
static const char *because_of(struct why *why, enum remedy_on on, const struct remedy_facts *facts)
{
    const struct outcome_facts *outcome = &outcome_facts[facts->outcome];
    const struct torch_reason reason = torch_reason_split(facts->cause.text);
    const char *text =
                   facts->torch || on == ON_BREAK ? reason.what : prose_or(facts->cause.text, ""),
               *colon = *text ? ": " : "";
    const char *count = arena_print(&why->arena, "%" PRId64, facts->count),
               *s = facts->count == 1 ? "" : "s";

    if (on == ON_CAUSE)
        return arena_print(&why->arena, "%s%s%s, %s", why_keep(why, cause_called(&facts->cause)),
                           prose_filled(facts->values) ? " was " : ": ",
                           prose_or(facts->values, prose_or(text, "it did not hold")),
                           concerned(why, facts));
    if (on == ON_OUTCOME)
        return arena_print(&why->arena, "%s call%s: %s%s%s", count, s,
                           facts->torch && outcome->torch ? outcome->torch : outcome->words, colon,
                           text);
    if (on == ON_BREAK && facts->line > 0)
        return arena_print(&why->arena, "graph break in line %" PRId64 ", %s time%s%s%s",
                           facts->line, count, s, colon, text);
    return on == ON_DEATH ? arena_print(&why->arena, "%s entr%s died%s%s", count, *s ? "ies" : "y",
                                        colon, text)
                          : NULL;
}

/* The remedy for FACTS, once, before those that are more work; for other compilers than torch's
 * they stay in the order of events. NULL: there is none, or it is there already. */
static struct remedy *remedy_add(struct why *why, enum remedy_on on,
                                 const struct remedy_facts *facts)
{
    const struct remedy_rule *rule = NULL;
    const char *text =
        why->remedies.count < KEPT ? why_keep(why, remedy_for(on, facts, &rule)) : NULL;
    struct remedy *remedy;

    for (size_t i = 0; text && i < why->remedies.count; i++)
        if (!strcmp(why->remedies.at[i].text, text))
            return NULL;
    if (!text)
        return NULL;
    remedy = list_add(&why->remedies);
    for (; facts->torch && remedy > why->remedies.at && remedy[-1].effort > rule->effort; remedy--)
        *remedy = remedy[-1];
    *remedy = (struct remedy){.name = rule->name,
                              .because = because_of(why, on, facts),
                              .text = text,
                              .setting = why_keep(why, remedy_setting(rule, facts)),
                              .effort = rule->effort,
                              .effect = rule->effect,
                              .compiles = UNKNOWN,
                              .predicted_compiles = UNKNOWN,
                              .eager = UNKNOWN,
                              .predicted_eager = UNKNOWN,
                              .undecided = UNKNOWN,
                              .unrecorded = UNKNOWN,
                              .gone = UNKNOWN};
    return remedy;
}

/* Torch gave up for something that would elsewhere be a graph break: what to do about that, where a
 * rule knows it. */
static void add_for_unsupported(struct why *why, const struct remedy_facts *facts)
{
    static const char before[] = "Unsupported: ";
    const char *found = facts->cause.text ? strstr(facts->cause.text, before) : NULL;
    const struct remedy_rule *rule = NULL;
    struct remedy_facts more = *facts;

    if (!found)
        return;
    more.cause.text = found + sizeof before - 1;
    more.line = 0;
    free(remedy_for(ON_BREAK, &more, &rule));
    if (rule && rule->effort < EFFORT_REWRITE)
        remedy_add(why, ON_BREAK, &more);
}

/* A limit that is high enough for sure; 0: none. */
static int64_t limit_raised(const struct why *why, const struct remedy_facts *facts)
{
    int64_t limit = why->made + facts->count; /* an entry for every call */

    if (facts->needed > why->made)
        limit = facts->needed;
    if (limit < 1)
        return 0;
    return limit < LIMIT_MOST ? limit : LIMIT_MOST;
}

/* The setting of a what-if for that; NULL: none fits. */
static const char *setting_of_limit(struct why *why, const struct remedy_facts *facts)
{
    bool accumulated = facts->cause.text && strstr(facts->cause.text, "accumulated");

    if (!facts->raised)
        return NULL;
    return arena_print(&why->arena, "%s=%" PRId64,
                       accumulated ? "accumulated_limit" : "recompile_limit", facts->raised);
}

/* A remedy for calls that ended in OUTCOME, if there are any; TEXT says why they did. */
static void add_for_outcome(struct why *why, enum outcome outcome, struct remedy_facts facts,
                            const char *text)
{
    struct remedy *remedy;

    facts.outcome = outcome;
    facts.cause.text = text;
    if (!facts.count && !(facts.count = why_calls(why, outcome)))
        return;
    if (facts.torch && (outcome == OUTCOME_CALLBACK_ERROR || outcome == OUTCOME_SKIP ||
                        outcome == OUTCOME_DECLINED))
        add_for_unsupported(why, &facts);
    if ((outcome == OUTCOME_LIMIT || outcome == OUTCOME_RUN_ONLY) &&
        why->different_inputs > (int64_t)why->entries.count)
        facts.needed = why->different_inputs;
    facts.raised = limit_raised(why, &facts);
    remedy = remedy_add(why, ON_OUTCOME, &facts);
    if (remedy && outcome == OUTCOME_LIMIT)
        remedy->what_if = setting_of_limit(why, &facts);
}

/* What the trace has about the cause of FACTS besides. */
static void facts_about(struct why *why, struct remedy_facts *facts)
{
    static const struct field fields[] = {FIELD(remedy_facts, TEXT, is) FIELD(
        remedy_facts, TEXT, more) FIELD(remedy_facts, TEXT, setting){0}};
    struct query *query = db_query(why->db, schema_statement("why/about"));

    find_bind(query, 1, &why->code);
    query_bind_text(query, 2, prose_or(facts->cause.source, ""));
    query_bind_text(query, 3, prose_or(facts->cause.aspect, ""));
    query_bind_integer(query, 4, facts->cause.dimension);
    if (query_step(query))
        why_row(why, query, fields, facts);
    query_close(query);
}

static void add_for_causes(struct why *why, const struct remedy_facts *base)
{
    for (size_t i = 0; i < why->histories.count && i < CAUSES_USED - !base->torch; i++) {
        const struct history *h = &why->histories.at[i];
        struct remedy_facts facts = *base;
        const char *about = why_keep(why, cause_about(h->cause)), *setting;
        struct remedy *remedy;
        bool there = false;
        facts.cause = *h->cause;
        facts_about(why, &facts);
        facts.cause.source = base->torch && h->source ? about : h->source;
        facts.values = h->text;
        facts.count = h->recompiles;
        facts.refused = h->refused;
        setting = facts.setting ? facts.setting : why_keep(why, cause_setting(h->cause));
        for (size_t j = 0; setting && j < why->remedies.count; j++)
            there = there || prose_same(why->remedies.at[j].what_if, setting);
        if (!there && (remedy = remedy_add(why, ON_CAUSE, &facts))) {
            /* A dropped guard stands for all of its parts that failed, of which this remedy may
             * mend one. */
            bool same = remedy->effect == EFFECT_SAME &&
                        (h->cause->whole || (setting && strncmp(setting, "drop_guard=", 11)));
            *(same ? &remedy->what_if : &remedy->refused) = setting;
            remedy->cause = h->cause;
        }
    }
}

/* A remedy for each of the reasons that STATEMENT has, with how often: of calls that ended in
 * OUTCOME, or, PLAIN, of entries that died and were asked for again. */
static void add_for_reasons(struct why *why, const struct remedy_facts *base, enum outcome outcome,
                            const char *statement)
{
    struct query *query = db_query(why->db, schema_statement(statement));

    find_bind(query, 1, &why->code);
    while (query_step(query) && (!outcome || why_calls(why, outcome))) {
        struct remedy_facts facts = *base;
        facts.cause.text = query_text(query, 0, NULL);
        facts.count = query_integer(query, 1);
        if (outcome)
            add_for_outcome(why, outcome, facts, facts.cause.text);
        else
            remedy_add(why, ON_DEATH, &facts);
    }
    query_close(query);
}

static void add_for_breaks(struct why *why, const struct remedy_facts *base)
{
    for (size_t i = 0; i < why->breaks.count && i < BREAKS_USED; i++) {
        struct remedy_facts facts = *base;
        facts.cause.text = why->breaks.at[i].reason;
        facts.line = why->breaks.at[i].line;
        facts.is = why->breaks.at[i].made_by;
        facts.count = why->breaks.at[i].times;
        remedy_add(why, ON_BREAK, &facts);
    }
}

/* Smallest first: what makes recompiles needless, then what lets them happen, then what is not
 * about recompiles. */
static void remedies_make(struct why *why)
{
    const struct remedy_facts base = {.function = why->code.qualname,
                                      .code = why->code.kind,
                                      .torch = why->torch.number,
                                      .cause.dimension = -1};
    struct remedy_facts raised = base, run_only = base, plain = base, slow = base;
    size_t most = base.torch ? TORCH_NAMED : NAMED;
    int64_t plain_calls = why_calls(why, OUTCOME_PLAIN);

    if (why->forbidders.count)
        run_only.cause.source = why->forbidders.at[0].function;
    plain.count = why->all_calls;
    slow.values = arena_print(&why->arena, "%.2g %%", why_guard_share(why));
    /* they are first */
    for (size_t i = 0;
         i < why->guards.count && !strcmp(why->guards.at[i].result, check_words[CHECK_ERROR]);
         i++) {
        raised.cause.source = why->guards.at[i].source;
        raised.count = why->guards.at[i].times;
        add_for_outcome(why, OUTCOME_GUARD_ERROR, raised, why->guards.at[i].expression);
    }
    if (!raised.count)
        add_for_outcome(why, OUTCOME_GUARD_ERROR, raised, NULL);
    add_for_reasons(why, &base, OUTCOME_CALLBACK_ERROR, "why/errors");
    add_for_causes(why, &base);
    add_for_reasons(why, &base, OUTCOME_PLAIN, "why/deaths");
    if (why->code.code_objects > why->code.processes && why->made > why->code.processes &&
        !torch_resume(base.function, NULL, NULL))
        remedy_add(why, ON_AGAIN,
                   &(struct remedy_facts){.function = base.function,
                                          .torch = base.torch,
                                          .cause.source = why->code.filename,
                                          .count = why->code.code_objects});
    add_for_outcome(why, OUTCOME_LIMIT, base, why->limit_reason);
    add_for_outcome(why, OUTCOME_RUN_ONLY, run_only,
                    why->forbidders.count ? "called from a caller that forbids it"
                                          : why->declined_reason);
    add_for_outcome(why, OUTCOME_SKIP, base, why->declined_reason);
    add_for_outcome(why, OUTCOME_DECLINED, base, why->declined_reason);
    add_for_outcome(why, OUTCOME_DISABLED, base, why->declined_reason);
    if (why->disabled_words || (plain_calls && plain_calls == why->all_calls))
        add_for_outcome(why, OUTCOME_PLAIN, plain, why->disabled_words);
    add_for_breaks(why, &base);
    if (why->guards_slow)
        remedy_add(why, ON_GUARDS, &slow);
    if (why->remedies.count > most)
        why->remedies.count = most;
}

void why_follow(struct why *why)
{
    histories_make(why);
    remedies_make(why);
}

/* ---- what would come of them -----------------------------------------------------
 *
 * The recorded calls are decided again as `replay --what-if` does. A cause that is a size becomes a
 * dynamic dimension, another one whose guard is known a guard that is not checked, a limit a higher
 * one; of the function that is asked about only. All decisions of a trace are read for it, so a
 * long one is left to `replay`, unless it is asked for. */

enum { LOOKUPS_READ = 200000, CHECKS_READ = 1000000, LOOKUPS_SEARCHED = 20000 };

static void predict(struct whatif *whatif, const bool *codes, struct remedy *remedy)
{
    struct whatif_knobs knobs = {.codes = codes};
    struct whatif_result result = {0};

    if (whatif_knob(&knobs, remedy->what_if))
        whatif_run(whatif, &knobs, &result);
    for (size_t i = 0; i < result.functions.count; i++) {
        const struct whatif_function *f = &result.functions.at[i];
        if (!codes[f->code])
            continue;
        if (remedy->compiles == UNKNOWN)
            remedy->compiles = remedy->predicted_compiles = remedy->eager =
                remedy->predicted_eager = remedy->undecided = remedy->unrecorded = remedy->gone = 0;
        remedy->compiles += f->recorded.compiles;
        remedy->predicted_compiles += f->predicted.compiles;
        remedy->eager += f->recorded.eager;
        remedy->predicted_eager += f->predicted.eager;
        remedy->undecided += f->undecided;
        remedy->unrecorded += f->unrecorded;
        remedy->gone += f->gone;
    }
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
}

int64_t remedy_gain(const struct remedy *remedy)
{
    return remedy->eager - remedy->predicted_eager ?: remedy->compiles - remedy->predicted_compiles;
}

/* By what comes of it, and what is known before what is guessed. */
static int result_order(const struct remedy *a, const struct remedy *b)
{
    int order = list_order(a->predicted_eager, b->predicted_eager);

    if (!order)
        order = list_order(a->predicted_compiles, b->predicted_compiles);
    return order ? order : list_order(a->undecided, b->undecided);
}

/* First what the call fails without, then what is known to help, last what by its own prediction
 * does not. */
static int remedy_rank(const struct remedy *r)
{
    return r->effort == EFFORT_NOW ? 0 : r->compiles == UNKNOWN ? 2 : remedy_gain(r) > 0 ? 1 : 3;
}

static int remedy_order(const void *a, const void *b)
{
    const struct remedy *x = a, *y = b;
    int rank = remedy_rank(x);
    int order = rank - remedy_rank(y);

    if (!order && rank == 1)
        order = result_order(x, y);
    return order ? order : list_order(x->place, y->place);
}

/* What `replay --what-if best` finds, unless a remedy alone does as much. */
static void add_best(struct why *why, struct replay *replay, struct whatif *whatif,
                     const bool *codes)
{
    const struct remedy_facts facts = {.torch = why->torch.number, .cause.dimension = -1};
    const char *function =
        arena_print(&why->arena, "%s:%" PRId64, why->code.filename, why->code.first_line);
    FILE *nowhere = fopen("/dev/null", "w");
    struct whatif_answer answer = {0};
    struct remedy *best;
    char *settings = "", *limit;

    if (nowhere && whatif_ask(&(struct whatif_asked){.db = why->db,
                                                     .replay = replay,
                                                     .settings = (const char *const[]){"best"},
                                                     .count = 1,
                                                     .function = function,
                                                     .out = nowhere},
                              &answer))
        settings = arena_print(&why->arena, "%s", answer.knobs.text ? answer.knobs.text : "");
    /* it is for others */
    if (!why_calls(why, OUTCOME_LIMIT) && (limit = strstr(settings, "recompile_limit=")))
        limit[-(limit > settings)] = 0;
    if (*settings && (best = remedy_add(why, ON_BEST, &facts))) { /* at the end */
        best->what_if = settings;
        predict(whatif, codes, best);
        for (struct remedy *r = why->remedies.at; r < best; r++)
            if (remedy_gain(best) <= 0 || (r->refused && strstr(settings, r->refused)) ||
                (r->compiles != UNKNOWN && result_order(r, best) <= 0))
                why->remedies.count = (size_t)(best - why->remedies.at);
    }
    whatif_answer_free(&answer);
    if (nowhere)
        fclose(nowhere);
}

void why_whatif(struct why *why)
{
    struct replay *replay = NULL;
    struct whatif *whatif = NULL;
    bool *codes = NULL, any = false;
    int64_t lookups;

    for (size_t i = 0; i < why->remedies.count; i++)
        why->remedies.at[i].place = i, any = any || why->remedies.at[i].what_if;
    /* at least as many as there are */
    lookups = any ? db_integer(why->db, 0, "SELECT MAX(lookup_id) FROM lookup") : 0;
    if (!lookups)
        return;
    why->long_trace =
        !why->force_whatif &&
        (lookups > LOOKUPS_READ ||
         db_integer(why->db, 0, "SELECT MAX(guard_check_id) FROM guard_check") > CHECKS_READ);
    if (why->long_trace)
        return;
    replay = replay_open(why->db, true);
    whatif = replay ? whatif_open(why->db, replay) : NULL;
    codes = whatif ? replay_codes(replay, why->code.ids) : NULL;
    for (size_t i = 0; codes && i < why->remedies.count; i++)
        if (why->remedies.at[i].what_if)
            predict(whatif, codes, &why->remedies.at[i]);
    if (codes && strchr(why->code.filename, '/') &&
        (why->force_whatif || lookups <= LOOKUPS_SEARCHED))
        add_best(why, replay, whatif, codes);
    list_sort(&why->remedies, remedy_order);
    free(codes);
    whatif_free(whatif);
    replay_free(replay);
}

/* trace/why/remedies.c -- finds remedies for a function, by its causes and outcomes. See
 * trace/why/why.h. */
#include <inttypes.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/expression.h"
#include "trace/later_use.h"
#include "trace/page_text.h"
#include "trace/torch_words.h"
#include "trace/user_stack.h"
#include "trace/why/why.h"

/* ---- finding remedies ---------------------------------------------------- */

enum { CAUSES_USED = 4, BREAKS_USED = 4, KEPT = 32, LIMIT_MOST = 100000 };
/* a trace with more frames is not searched for changes that no guard checks */
enum { FRAMES_READ = 12000000 };

const char *why_fill_template(struct why *why, const char *name, const struct row_facts *facts)
{
    struct page_text page = {.way = TEMPLATE_PLAIN, .facts = *facts};
    char *made;
    size_t bytes;

    page.out = open_memstream(&made, &bytes);
    page_text_print_row(&page, name, 0);
    fclose(page.out);
    return why_keep_text(why, made);
}

/* Return VALUES as a sentence has them: guard sources such as L['x'] become the
 * program's expressions. */
static const char *rewrite_values(struct why *why, const char *values)
{
    if (values && strstr(values, "['"))
        return why_keep_text(why, expression_from_source(values));
    return prose_null_if_empty(values);
}

/* Return the name of the template that describes an event of the kind ON. Returns NULL if the text
 * of the remedy describes it. */
static const char *choose_because_template(enum remedy_on on, const struct remedy_facts *facts)
{
    switch (on) {
    case ON_CAUSE:
        return "pages/why/because_cause";
    case ON_OUTCOME:
        return "pages/why/because_outcome";
    case ON_BREAK:
        return facts->line > 0 ? "pages/why/because_break" : NULL;
    case ON_DEATH:
        return "pages/why/because_death";
    default:
        return NULL;
    }
}

/* Return a line that describes the event of FACTS. Returns NULL if the text of the
 * remedy describes it. */
static const char *describe_event(struct why *why, enum remedy_on on,
                                  const struct remedy_facts *facts)
{
    const struct outcome_facts *outcome = &outcome_facts[facts->outcome];
    const struct torch_reason reason = torch_reason_split(facts->cause.text);
    const char *block = choose_because_template(on, facts);
    const char *text = facts->cause.text;
    const char *words = outcome->words;
    struct row_facts row = {0};

    if (!block)
        return NULL;
    if (facts->torch || on == ON_BREAK)
        text = reason.what;
    if (facts->torch && outcome->torch)
        words = outcome->torch;
    if (on == ON_CAUSE)
        fact_text(&row, "about", why_keep_text(why, cause_subject_expression(&facts->cause)));
    fact_text(&row, "values", rewrite_values(why, facts->values));
    fact_text(&row, "words", words);
    fact_text(&row, "text", prose_null_if_empty(text));
    fact_integer(&row, "line", facts->line);
    fact_integer(&row, "count", facts->count);
    fact_integer(&row, "refused", facts->refused);
    return why_fill_template(why, block, &row);
}

/* Do the rules ONE and OTHER give the same advice about the same kind of event? They may be about
 * different guard sources. */
static bool is_same_advice(const struct remedy_rule *one, const struct remedy_rule *other)
{
    bool event = one->on == other->on && one->outcome == other->outcome;

    return event && !strcmp(one->name, other->name);
}

/* Add a remedy with TEXT to the list, before all remedies that need more effort. For compilers
 * other than torch, add it at the end. Returns NULL if the list has an equal remedy already. */
static struct remedy *insert_remedy(struct why *why, const struct remedy_rule *rule,
                                    const char *text, const struct remedy_facts *facts)
{
    const char *setting = why_keep_text(why, remedy_make_setting(rule, facts));
    struct remedy *remedy;

    list_each(other, &why->remedies) {
        if (!strcmp(other->text, text))
            return NULL;
        bool same_setting = setting && prose_are_texts_equal(other->setting, setting);
        if (same_setting && is_same_advice(other->rule, rule))
            return NULL;
    }
    remedy = list_add(&why->remedies);
    for (; facts->torch && remedy > why->remedies.at && remedy[-1].effort > rule->effort; remedy--)
        *remedy = remedy[-1];
    *remedy = (struct remedy){.rule = rule,
                              .name = rule->name,
                              .text = text,
                              .setting = setting,
                              .effort = rule->effort,
                              .effect = rule->effect,
                              .fails = rule->torch && rule->effort == EFFORT_NOW,
                              .proven = rule->proven,
                              .trial = UNKNOWN,
                              .compiles = UNKNOWN,
                              .predicted_compiles = UNKNOWN,
                              .measured_compiles = UNKNOWN,
                              .eager = UNKNOWN,
                              .predicted_eager = UNKNOWN,
                              .measured_eager = UNKNOWN,
                              .breaks = UNKNOWN,
                              .measured_breaks = UNKNOWN,
                              .undecided = UNKNOWN,
                              .unrecorded = UNKNOWN,
                              .gone = UNKNOWN};
    return remedy;
}

struct remedy *remedy_add(struct why *why, enum remedy_on on, const struct remedy_facts *facts,
                          void (*complete)(struct why *why, struct remedy *remedy,
                                           const struct remedy_facts *facts))
{
    const struct remedy_rule *rule = NULL;
    struct remedy *remedy = NULL;
    char *text = remedy_find_text(on, facts, &rule);

    while (text && why->remedies.count < KEPT) {
        remedy = insert_remedy(why, rule, why_keep_text(why, text), facts);
        if (remedy)
            remedy->because = describe_event(why, on, facts);
        if (remedy && complete)
            complete(why, remedy, facts);
        text = remedy_find_next_text(on, facts, &rule);
    }
    return remedy;
}

/* Return the text of the innermost line of the program in STACK, or NULL if it is not known. SAID
 * is torch's reason, which may quote the line. */
static const char *find_line(struct why *why, const char *stack, const char *said)
{
    struct lines *lines = db_get_source_lines(why->db);
    char *line = user_stack_innermost_code(stack, said, lines);

    return why_keep_text(why, line);
}

/* Return the text of the program's line that needs the guard of CAUSE. Old versions of torch
 * record this line only for some guards; for others, the line of another guard on the same
 * source is returned. */
static const char *find_line_of_cause(struct why *why, const struct cause *cause)
{
    const char *line = find_line(why, cause->user_stack, cause->text);

    if (!cause->source)
        return line;
    for (size_t i = 0; !line && i < why->causes.count; i++) {
        const struct cause *other = &why->causes.at[i];
        if (!prose_are_texts_equal(other->source, cause->source))
            continue;
        line = find_line(why, other->user_stack, other->text);
    }
    return line;
}

/* Return the text of the line at which the compiler failed with the reason TEXT, or NULL if
 * it is not known. */
static const char *find_line_of_failure(struct why *why, const char *text)
{
    for (size_t i = 0; text && i < why->compiles.count; i++) {
        const struct compile *compile = &why->compiles.at[i];
        if (compile->user_stack && prose_are_texts_equal(compile->reason, text))
            return find_line(why, compile->user_stack, text);
    }
    return NULL;
}

/* torch gave up with `Unsupported: REASON`. Add the remedy that a rule has against graph breaks
 * with the same REASON, unless it needs a rewrite of the program. */
static void add_remedy_for_unsupported(struct why *why, const struct remedy_facts *facts)
{
    static const char before[] = "Unsupported: ";
    const char *found = facts->cause.text ? strstr(facts->cause.text, before) : NULL;
    const struct remedy_rule *rule = NULL;
    struct remedy_facts more = *facts;

    if (!found)
        return;
    more.cause.text = found + sizeof before - 1;
    more.line = 0;
    free(remedy_find_text(ON_BREAK, &more, &rule));
    if (rule && rule->effort < EFFORT_REWRITE)
        remedy_add(why, ON_BREAK, &more, NULL);
}

/* Does OUTCOME mean that the call ran as Python because no new entry could be made? */
static bool could_no_entry_be_made(enum outcome outcome)
{
    return outcome == OUTCOME_LIMIT || outcome == OUTCOME_RUN_ONLY;
}

/* Set `raised` of FACTS to a limit that is certainly high enough, and `needed` to the number
 * of different inputs that need it. Each is 0 if not known. The limit holds for each code
 * object in each process. */
static void set_raised_limit(struct why *why, struct remedy_facts *facts)
{
    struct query *query = db_query(why->db, schema_statement("why/limit"));
    bool inputs_known = could_no_entry_be_made(facts->outcome) && why->different_inputs;
    int64_t limit = 0;

    find_bind_ids(query, 1, &why->code);
    query_bind_integer(query, 2, facts->outcome);
    query_bind_integer(query, 3, inputs_known);
    if (query_step(query)) {
        limit = query_integer(query, 0);
        facts->needed = query_integer(query, 1);
    }
    query_close(query);
    if (limit < 1 && why->code.processes < 2)
        /* enough even if each of these calls needed an entry of its own */
        limit = why->made + facts->count;
    facts->raised = limit < LIMIT_MOST ? limit : LIMIT_MOST;
}

/* Return the what-if setting that raises the limit of FACTS. Returns NULL if it is not known how
 * high the limit must be. */
static const char *make_limit_setting(struct why *why, const struct remedy_facts *facts)
{
    bool accumulated = facts->cause.text && strstr(facts->cause.text, "accumulated");

    if (!facts->raised)
        return NULL;
    return arena_print(&why->arena, "%s=%" PRId64,
                       accumulated ? "accumulated_limit" : "recompile_limit", facts->raised);
}

/* Was an older entry hit after a newer one had been made? If so, inputs come back, and more entries
 * help. If not, inputs are always new, and a higher limit only puts the problem off. */
static bool do_inputs_repeat(const struct why *why)
{
    for (size_t i = 0; i < why->entries.count; i++)
        for (size_t j = i + 1; j < why->entries.count; j++) {
            const struct entry *older = &why->entries.at[i];
            const struct entry *newer = &why->entries.at[j];
            if (newer->code_id == older->code_id && older->last_hit_ns > newer->born_ns)
                return true;
        }
    return false;
}

/* Set the effort and the what-if setting of REMEDY, which raises a limit. */
static void complete_limit_remedy(struct why *why, struct remedy *remedy,
                                  const struct remedy_facts *facts)
{
    remedy->what_if = make_limit_setting(why, facts);
    remedy->effort = do_inputs_repeat(why) ? EFFORT_LINE : EFFORT_PUT_OFF;
}

/* Does OUTCOME mean that torch gave up the function and told the reason? */
static bool is_outcome_given_up(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_CALLBACK_ERROR:
    case OUTCOME_SKIP:
    case OUTCOME_DECLINED:
        return true;
    default:
        return false;
    }
}

/* If there are calls with OUTCOME, add a remedy for them. TEXT is the reason that was recorded. */
static void add_remedy_for_outcome(struct why *why, enum outcome outcome, struct remedy_facts facts,
                                   const char *text)
{
    facts.outcome = outcome;
    facts.cause.text = text;
    facts.line_text = find_line_of_failure(why, text);
    if (!facts.count)
        facts.count = why_count_calls(why, outcome);
    if (!facts.count)
        return;
    if (facts.torch && is_outcome_given_up(outcome))
        add_remedy_for_unsupported(why, &facts);
    set_raised_limit(why, &facts);
    remedy_add(why, ON_OUTCOME, &facts, outcome == OUTCOME_LIMIT ? complete_limit_remedy : NULL);
}

/* REMEDY is for a cause. Set its what-if setting, if one has the same effect. If a setting has
 * another effect, store it in `refused`. */
static void complete_cause_remedy(struct why *why, struct remedy *remedy,
                                  const struct remedy_facts *facts)
{
    const char *setting = NULL;
    bool whole;

    /* prefer the setting of a case, which may make all sizes dynamic that change together */
    for (const struct remedy_case *one = facts->cases; one->is && !setting; one++)
        if (remedy->effect == EFFECT_SAME)
            setting = one->setting;
    if (!setting)
        setting = why_keep_text(why, cause_make_setting(&facts->cause));
    /* The what-if drops the guard, so the guard never fails. The remedy may prevent only one of its
     * failures. Both have the same effect only if the guard failed for no other cause (`whole`). */
    whole = facts->cause.whole || (setting && strncmp(setting, "drop_guard=", 11) != 0);
    if (remedy->effort == EFFORT_NORMAL)
        return;
    if (remedy->effect == EFFECT_SAME && whole)
        remedy->what_if = setting;
    else
        remedy->refused = setting;
}

/* Does the history H repeat an earlier history of the same source? It does if the earlier one has
 * the values, while H has only the condition of a guard. */
static bool does_history_repeat_earlier_one(const struct why *why, const struct history *h)
{
    const struct history *earlier = why->histories.at;

    if (!h->source || prose_null_if_empty(h->text))
        return false;
    for (; earlier < h; earlier++)
        if (prose_are_texts_equal(earlier->source, h->source))
            return true;
    return false;
}

static void add_remedies_for_causes(struct why *why, const struct remedy_facts *base)
{
    size_t left = CAUSES_USED - !base->torch;

    for (size_t i = 0; i < why->histories.count && left; i++) {
        const struct history *h = &why->histories.at[i];
        struct remedy_case cases[REMEDY_CASES] = {0};
        struct remedy_facts facts = *base;
        const char *about = why_keep_text(why, cause_name_subject(h->cause));
        if (h->is_repeated)
            continue;
        left--;
        if (does_history_repeat_earlier_one(why, h))
            continue;
        facts.cause = *h->cause;
        remedy_cases_read(why->db, &why->arena, why->code.ids, &facts.cause, cases);
        facts.cases = cases;
        facts.cause.source = base->torch && h->source ? about : h->source;
        facts.values = h->text;
        facts.line_text = find_line_of_cause(why, h->cause);
        facts.count = h->all_recompiles;
        facts.refused = h->all_refused;
        remedy_add(why, ON_CAUSE, &facts, complete_cause_remedy);
    }
}

/* Add a remedy for each reason that STATEMENT selects with its count. They are the reasons of calls
 * with OUTCOME. For OUTCOME_PLAIN they tell why entries died before a later compile. */
static void add_remedies_for_reasons(struct why *why, const struct remedy_facts *base,
                                     enum outcome outcome, const char *statement)
{
    struct query *query;

    if (outcome && !why_count_calls(why, outcome))
        return;
    query = db_query(why->db, schema_statement(statement));
    find_bind_ids(query, 1, &why->code);
    while (query_step(query)) {
        struct remedy_facts facts = *base;
        facts.cause.text = query_text(query, 0, NULL);
        facts.count = query_integer(query, 1);
        if (outcome)
            add_remedy_for_outcome(why, outcome, facts, facts.cause.text);
        else
            remedy_add(why, ON_DEATH, &facts, NULL);
    }
    query_close(query);
}

/* Add remedies for values that change without a guard on them, so that compiled code does not
 * notice. Only stored frames show such changes. */
static void add_remedies_for_unguarded_values(struct why *why, const struct remedy_facts *base)
{
    struct query *query;

    if (!base->torch || !why_count_calls(why, OUTCOME_HIT))
        return;
    if (db_meta_integer(why->db, "frame_count", -1) > FRAMES_READ)
        return;
    query = db_query(why->db, schema_statement("why/unguarded"));
    find_bind_ids(query, 1, &why->code);
    while (query_step(query)) {
        struct remedy_facts facts = *base;
        facts.cause.text = query_text(query, 0, NULL);
        remedy_add(why, ON_UNGUARDED, &facts, NULL);
    }
    query_close(query);
}

/* Did all compiles of the function make only empty graphs? */
static bool has_no_graph(struct why *why)
{
    struct query *query = db_query(why->db, schema_statement("why/graphs"));
    bool none;

    find_bind_ids(query, 1, &why->code);
    none = query_step(query) && query_integer(query, 0) == 0;
    query_close(query);
    return none;
}

/* Return the line that torch could not handle in the graph break B. In a `try` or `with` block
 * torch breaks the graph at an earlier line, which is the line of B. Then the stack of B has the
 * former line, unless this line is in a function that torch inlined. */
static int64_t find_broken_line(const struct graph_break *b)
{
    static const char before[] = ", line ";
    const char *first = b->user_stack ? strstr(b->user_stack, before) : NULL;
    bool is_inlined = first && strstr(first + 1, before);
    int64_t line = first ? strtoll(first + strlen(before), NULL, 10) : 0;

    return line > 0 && !is_inlined ? line : b->line;
}

/* Does the line of the graph break B need a guard that forced a recompile? If so, moving this line
 * out of the function avoids the break and the recompile, and that remedy comes before others for
 * the recompile. A setting leaves the line where it is, and with it the guard. */
static bool needs_failing_guard(const struct why *why, const struct graph_break *b)
{
    const char *place = b->user_stack ? strrchr(b->user_stack, '\n') : NULL;

    if (!b->user_stack)
        return false;
    place = place ? place + 1 : b->user_stack;
    for (size_t i = 0; i < why->histories.count; i++) {
        const char *stack = why->histories.at[i].cause->user_stack;
        const char *last = stack ? strrchr(stack, '\n') : NULL;
        if (stack && !strcmp(last ? last + 1 : stack, place))
            return true;
    }
    return false;
}

/* Return the case of what later lines do with the number that the line of the graph break B takes
 * from a tensor. Its `is` is NULL if nothing is known of them. */
static struct remedy_case match_later_use(struct why *why, const struct graph_break *b)
{
    static const char *const words[] = {
        [LATER_UNKNOWN] = NULL,
        [LATER_TESTED] = "tested",
        [LATER_LOOPED] = "looped",
        [LATER_PRINTED] = "printed",
    };
    int64_t line = 0;
    char *file = user_stack_innermost_file(b->user_stack, &line);
    char *text = NULL;
    enum later_use use =
        file ? find_later_use(db_get_source_lines(why->db), file, line, &text) : LATER_UNKNOWN;

    free(file);
    return (struct remedy_case){.is = words[use], .more = why_keep_text(why, text)};
}

static void add_remedies_for_graph_breaks(struct why *why, const struct remedy_facts *base)
{
    bool alone = why->breaks.count && has_no_graph(why);

    for (size_t i = 0; i < why->breaks.count && i < BREAKS_USED; i++) {
        const struct graph_break *b = &why->breaks.at[i];
        struct remedy_case cases[4] = {0};
        struct remedy_case *next = cases;
        struct remedy_facts facts = *base;
        struct remedy *remedy;
        if (b->made_by)
            *next++ = (struct remedy_case){.is = b->made_by};
        if (alone)
            *next++ = (struct remedy_case){.is = "alone"};
        *next = match_later_use(why, b);
        facts.cause.text = b->reason;
        facts.line = find_broken_line(b);
        facts.stack = b->user_stack;
        facts.line_text = find_line(why, b->user_stack, b->reason);
        facts.cases = cases;
        facts.count = b->times;
        remedy = remedy_add(why, ON_BREAK, &facts, NULL);
        if (!remedy || remedy->setting)
            continue;
        if (needs_failing_guard(why, b))
            remedy->proven = true;
    }
}

/* Was a limit reached, or did a call fail because a limit was reached? */
static bool was_limit_reached(const struct why *why)
{
    return why_count_calls(why, OUTCOME_LIMIT) > 0 || why->limit_reason ||
           (why->raised_reason && strstr(why->raised_reason, "LimitHit"));
}

/* Add a remedy for each guard that raised. If it is not known which guard did, add one remedy for
 * all calls in which a guard raised. */
static void add_remedies_for_guard_errors(struct why *why, const struct remedy_facts *base)
{
    struct remedy_facts facts = *base;

    list_each(guard, &why->guards) {
        if (strcmp(guard->result, check_words[CHECK_ERROR]) != 0)
            break; /* the list begins with all guards that raised, so no other follows */
        facts.cause.source = guard->source;
        facts.count = guard->times;
        add_remedy_for_outcome(why, OUTCOME_GUARD_ERROR, facts, guard->expression);
    }
    if (!facts.count)
        add_remedy_for_outcome(why, OUTCOME_GUARD_ERROR, facts, NULL);
}

/* If the program creates the function again and again, each new code object is compiled anew: add a
 * remedy for that. */
static void add_remedy_for_new_code_objects(struct why *why, const struct remedy_facts *base)
{
    const struct remedy_facts facts = {
        .function = base->function,
        .torch = base->torch,
        .cause.source = why->code.filename,
        .count = why->code.code_objects,
    };
    int64_t processes = why->code.processes;
    bool again = why->code.code_objects > processes && why->made > processes;

    if (again && !torch_parse_resume_name(base->function, NULL, NULL))
        remedy_add(why, ON_AGAIN, &facts, NULL);
}

/* Is the function a method of a class whose forward was compiled? */
static bool is_beside_forward(struct why *why)
{
    struct query *query = db_query(why->db, schema_statement("why/method"));
    bool found;

    find_bind_ids(query, 1, &why->code);
    found = query_step(query);
    query_close(query);
    return found;
}

static void add_all_remedies(struct why *why)
{
    const struct remedy_facts base = {.function = why->code.qualname,
                                      .code = why->code.kind,
                                      .torch = why->torch.number,
                                      .limited = was_limit_reached(why),
                                      .cause.dimension = -1};
    struct remedy_facts run_only = base;
    struct remedy_facts plain = base;
    struct remedy_facts slow = base;
    const struct remedy_case method[] = {{.is = "method"}, {0}};
    int64_t plain_calls = why_count_calls(why, OUTCOME_PLAIN);
    bool was_unasked = plain_calls && plain_calls == why->all_calls;
    bool has_compiler =
        why->torch.number || db_integer(why->db, 0, schema_statement("why/has-compiler"));

    if (why->forbidders.count)
        run_only.cause.source = why->forbidders.at[0].function;
    plain.count = why->all_calls;
    if (was_unasked && is_beside_forward(why))
        plain.cases = method;
    slow.values = arena_print(&why->arena, "%.2g %%", why_share_of_guards(why));
    add_remedies_for_guard_errors(why, &base);
    add_remedies_for_reasons(why, &base, OUTCOME_CALLBACK_ERROR, "why/errors");
    add_remedies_for_causes(why, &base);
    add_remedies_for_reasons(why, &base, OUTCOME_PLAIN, "why/deaths");
    add_remedy_for_new_code_objects(why, &base);
    add_remedy_for_outcome(why, OUTCOME_LIMIT, base, why->limit_reason);
    add_remedy_for_outcome(why, OUTCOME_RUN_ONLY, run_only,
                           why->forbidders.count ? "called from a caller that forbids it"
                                                 : why->declined_reason);
    add_remedy_for_outcome(why, OUTCOME_SKIP, base, why->declined_reason);
    add_remedy_for_outcome(why, OUTCOME_DECLINED, base, why->declined_reason);
    add_remedy_for_outcome(why, OUTCOME_DISABLED, base, why->declined_reason);
    if (why->disabled_words || (was_unasked && has_compiler))
        add_remedy_for_outcome(why, OUTCOME_PLAIN, plain, why->disabled_words);
    add_remedies_for_graph_breaks(why, &base);
    if (why->guards_slow)
        remedy_add(why, ON_GUARDS, &slow, NULL);
    add_remedies_for_unguarded_values(why, &base);
}

void why_add_remedies(struct why *why)
{
    histories_read(why);
    add_all_remedies(why);
}

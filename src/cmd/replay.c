/* cmd/replay.c -- `dyntrace replay`: steps through the recorded decisions, verifies them, or
 * predicts them under other settings (--what-if).
 *
 * Only the recorded decisions are replayed: no code of the program runs, and no Python is needed.
 * The TUI steps through the decisions; --to prints one of them. trace/replay/cursor.c keeps the
 * position, trace/replay/page.c prints it. */
#include <inttypes.h>
#include <unistd.h>

#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/replay/cursor.h"
#include "trace/result.h"
#include "trace/traces.h"
#include "trace/whatif/whatif.h"
#include "tui.h"

enum { LISTED = 20, LISTED_JSON = 10000 };

/* ---- --verify: checking the recorded lookups ----------------------------- */

/* The names of what a finding of --verify mentions: the cache entry that ran, the entry that should
 * have run, and the code object. All are owned, or NULL. */
struct named {
    char *entry, *wanted, *code;
};

static struct named make_finding_names(const struct replay *r, const struct replay_finding *f)
{
    return (struct named){replay_make_entry_name(r, f->entry), replay_make_entry_name(r, f->wanted),
                          replay_make_code_name(r, r->caches.at[f->lookup->cache].code)};
}

static void free_finding_names(struct named *n)
{
    free(n->entry);
    free(n->wanted);
    free(n->code);
}

static struct {
    const struct replay *replay;
    const struct replay_verdict *verdict;
} verified;

static void print_finding(struct page_text *page, const struct replay_finding *f)
{
    const struct replay *r = verified.replay;
    const struct replay_lookup *l = f->lookup;
    struct named n = make_finding_names(r, f);

    fact(page, "id", l->id);
    fact(page, "at_ns", l->start_ns);
    fact(page, "code", n.code);
    fact(page, "outcome", outcome_to_word(l->outcome));
    fact(page, "why", f->why);
    fact(page, "entry", n.entry);
    fact(page, "wanted", f->wanted == f->entry ? NULL : n.wanted);
    page_text_print_row(page, "pages/replay/finding", 0);
    free_finding_names(&n);
}

static void print_findings(struct page_text *page, const char *name, struct query *row)
{
    const struct replay_verdict *v = verified.verdict;

    for (size_t i = 0; i < v->findings.count && i < LISTED; i++)
        print_finding(page, &v->findings.at[i]);
}

/* Print the template block NAME with the figures of --verify's verdict. */
static void print_verdict_block(struct page_text *page, const char *name)
{
    const struct replay_verdict *v = verified.verdict;
    int64_t listed = LISTED;

    fact(page, "lookups", v->lookups);
    fact(page, "findings", v->findings.count);
    fact(page, "listed", listed);
    fact(page, "more", v->findings.count > LISTED);
    fact(page, "orphans", v->orphans);
    fact(page, "whole", v->whole);
    fact(page, "observed", v->observed);
    fact(page, "before", v->before);
    fact(page, "unsure", v->unsure);
    fact(page, "misses", v->misses);
    fact(page, "by_mark", v->by_mark);
    fact(page, "by_limit", v->by_limit);
    fact(page, "by_false", v->by_false);
    fact(page, "insertion", v->insertion);
    page_text_print_row(page, name, 0);
}

static void print_verdict(const struct replay *r, const struct replay_verdict *v)
{
    struct page_text page = {
        .out = stdout,
        .db = r->db,
        .way = TEMPLATE_LINES,
        .call = print_findings,
    };

    verified.replay = r;
    verified.verdict = v;
    print_verdict_block(&page, "pages/replay/verdict");
    if (v->lookups)
        print_verdict_block(&page, "pages/replay/verified");
    if (v->misses)
        print_verdict_block(&page, "pages/replay/misses");
    if (v->insertion)
        print_verdict_block(&page, "pages/replay/insertion");
}

static void write_verdict_as_json(const struct replay *r, const struct replay_verdict *v)
{
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_integer(&json, "lookups", v->lookups);
    json_integer(&json, "do_not_follow", (int64_t)v->findings.count);
    json_integer(&json, "orphan_checks", v->orphans);
    json_integer(&json, "whole", v->whole);
    json_integer(&json, "in_part_observed", v->observed);
    json_integer(&json, "in_part_before_recording", v->before);
    json_integer(&json, "in_part_overlap", v->unsure);
    json_integer(&json, "insertion_order_processes", v->insertion);
    json_object(&json, "not_asked");
    json_integer(&json, "calls", v->misses);
    json_integer(&json, "by_mark", v->by_mark);
    json_integer(&json, "by_limit", v->by_limit);
    json_integer(&json, "by_callback", v->by_false);
    json_end(&json);
    json_list(&json, "findings");
    json_begin_lines(&json);
    for (size_t i = 0; i < v->findings.count && i < LISTED_JSON; i++) {
        const struct replay_finding *f = &v->findings.at[i];
        const struct replay_lookup *l = f->lookup;
        struct named n = make_finding_names(r, f);
        json_object(&json, NULL);
        json_integer(&json, "lookup_id", l->id);
        json_integer(&json, "start_ns", l->start_ns);
        json_string(&json, "outcome", outcome_to_word(l->outcome));
        json_string(&json, "why", f->why);
        json_string(&json, "function", n.code);
        json_string(&json, "entry", n.entry);
        json_string(&json, "wanted", n.wanted);
        json_end(&json);
        free_finding_names(&n);
    }
    json_end(&json);
    json_end(&json);
    putchar('\n');
}

static int verify_trace(struct replay *r, bool json)
{
    struct replay_verdict verdict;
    int status;

    replay_verify_lookups(r, &verdict);
    (json ? write_verdict_as_json : print_verdict)(r, &verdict);
    status = verdict.findings.count || verdict.orphans ? 1 : 0;
    list_free(&verdict.findings);
    return status;
}

/* ---- --what-if: printing the answer as JSON ------------------------------ */

static void write_tally_as_json(struct json *json, const char *key, const struct whatif_tally *t)
{
    json_object(json, key);
    json_integer(json, "calls", t->calls);
    json_integer(json, "hits", t->hits);
    json_integer(json, "misses", t->misses);
    json_integer(json, "compiles", t->compiles);
    json_integer(json, "eager", t->eager);
    json_integer(json, "checks", t->checks);
    json_integer_or_null(json, "check_ns", whatif_checks_timed(t), t->check_ns);
    json_integer(json, "compile_ns", t->compile_ns);
    json_end(json);
}

/* Write RANGE to JSON as two members, KEY_low and KEY_high. If there is no upper bound, KEY_high is
 * null. */
static void write_range_as_json(struct json *json, const char *key,
                                const struct whatif_range *range)
{
    char member[64];

    snprintf(member, sizeof member, "%s_low", key);
    json_integer(json, member, range->low);
    snprintf(member, sizeof member, "%s_high", key);
    json_integer_or_null(json, member, range->high != WHATIF_NO_BOUND, range->high);
}

static void write_function_figures_as_json(struct json *json, const struct whatif_function *f)
{
    write_tally_as_json(json, "recorded", &f->recorded);
    write_tally_as_json(json, "predicted", &f->predicted);
    json_integer(json, "changed", f->changed);
    json_integer(json, "gone", f->gone);
    json_integer(json, "undecided", f->undecided);
    json_integer(json, "trusting", f->trusting);
    json_integer(json, "either", f->either);
    json_integer(json, "unrecorded", f->unrecorded);
    write_range_as_json(json, "compiles", &f->compiles);
    write_range_as_json(json, "hits", &f->hits);
    write_range_as_json(json, "eager", &f->eager);
    write_range_as_json(json, "misses", &f->misses);
    write_range_as_json(json, "calls", &f->calls);
    json_bool(json, "exact", whatif_is_exact(f));
}

static void write_function_as_json(struct json *json, const struct whatif_asked *asked,
                                   const struct whatif_function *f)
{
    json_object(json, NULL);
    db_rows(row, asked->db, schema_statement("replay/function"),
            asked->replay->codes.at[f->code].id) for (int i = 0; i < query_columns(row); i++)
        result_put_json_member(json, query_name(row, i), row, i);
    write_function_figures_as_json(json, f);
    json_end(json);
}

static void print_whatif_as_json(const struct whatif_asked *asked,
                                 const struct whatif_answer *answer)
{
    const struct whatif_result *r = &answer->result;
    struct json json = {.out = asked->out};
    char *words = whatif_make_try_command(asked, &answer->knobs);

    json_object(&json, NULL);
    json_string(&json, "settings", answer->knobs.text ? answer->knobs.text : "");
    if (answer->tried >= 0)
        json_integer(&json, "tried", answer->tried);
    if (answer->unproven)
        json_string(&json, "unproven", answer->unproven);
    json_string(&json, "try", words);
    write_function_figures_as_json(&json, &r->total);
    json_list(&json, "assumptions");
    for (size_t i = 0; i < r->notes.count; i++)
        json_string(&json, NULL, r->notes.at[i]);
    json_end(&json);
    json_list(&json, "functions");
    json_begin_lines(&json);
    for (size_t i = 0; i < r->functions.count; i++)
        if (!answer->codes || answer->codes[r->functions.at[i].code])
            write_function_as_json(&json, asked, &r->functions.at[i]);
    json_end(&json);
    json_end(&json);
    putc('\n', asked->out);
    free(words);
}

/* Print a row for each recorded call, in order of time. Returns false if writing failed. */
static bool print_predicted_calls(const struct whatif_asked *asked,
                                  const struct whatif_answer *answer)
{
    const struct replay *r = asked->replay;
    struct table *table = table_open(
        asked->out, table_format(asked->out, asked->json), 6,
        (const char *[]){"lookup_id", "at_ns", "function", "recorded", "predicted", "undecided"});
    char **names = calloc(r->codes.count + 1, sizeof *names);

    db_rows(row, asked->db, schema_statement("replay/names"))
    {
        uint32_t code = replay_index_of_id(&r->code_ids, query_integer(row, 0));
        if (code != REPLAY_NONE)
            names[code] = query_copy(row, 1);
    }
    for (size_t i = 0; i < r->lookups.count; i++) {
        const struct replay_lookup *l = &r->lookups.at[r->order[i]];
        uint32_t code = r->caches.at[l->cache].code;
        uint8_t found = answer->result.outcomes[r->order[i]];
        uint8_t predicted = found & WHATIF_OUTCOME;
        if (answer->codes && !answer->codes[code])
            continue;
        table_put_integer(table, l->id);
        table_put_integer(table, l->start_ns);
        table_put_string(table, names[code] ? names[code] : "?");
        table_put_string(table, outcome_to_word(l->outcome));
        table_put_string(table, predicted == WHATIF_GONE ? "gone" : outcome_to_word(predicted));
        table_put_integer(table, found & WHATIF_UNDECIDED ? 1 : 0);
    }
    for (size_t i = 0; i < r->codes.count; i++)
        free(names[i]);
    free(names);
    return table_close(table);
}

static int print_whatif_answer(const struct whatif_asked *asked, bool calls)
{
    struct whatif_answer answer;
    bool ok = whatif_answer_typed(asked, &answer);

    if (ok && !answer.result.total.recorded.calls) {
        say_error("%s: no lookups are recorded, so there is nothing to decide again%s",
                  db_get_path(asked->db),
                  db_integer(asked->db, 0,
                             "SELECT EXISTS (SELECT 1 FROM process WHERE torch_mode = 'import')")
                      ? ": what torch logs, and import reads, is compiles without calls"
                      : "");
        ok = false;
    }
    if (ok && calls)
        ok = print_predicted_calls(asked, &answer);
    else if (ok && asked->json)
        print_whatif_as_json(asked, &answer);
    else if (ok)
        whatif_print_page(asked, &answer, NULL, NULL);
    whatif_answer_free(&answer);
    return ok ? 0 : 2;
}

/* ---- --to: printing one event -------------------------------------------- */

/* Write SLOT to JSON: a cache entry, as it was at the replay position. */
static void write_cache_slot_as_json(struct json *json, const struct replay *r,
                                     const struct replay_slot *slot)
{
    char *name = replay_make_entry_name(r, slot->entry);

    json_object(json, NULL);
    json_string(json, "entry", name);
    json_bool(json, "dead", slot->dead);
    json_integer(json, "hits", slot->hits);
    json_integer_or_null(json, "last_hit_ns", slot->last_hit_ns >= 0, slot->last_hit_ns);
    json_end(json);
    free(name);
}

/* Write the event at C's position to JSON, with the cache entries of its function
 * (cursor_get_cache_state). */
static void write_event_as_json(const struct cursor *c)
{
    const struct replay_event *event = cursor_get_event(c);
    struct json json = {.out = c->out};
    struct replay_state state = {0};

    json_object(&json, NULL);
    json_integer(&json, "event", (int64_t)c->at + 1);
    json_integer(&json, "events", (int64_t)c->r->events.count);
    json_integer(&json, "at_ns", cursor_get_time(c));
    if (event) {
        struct replay_subject about = cursor_get_subject(c);
        char *function = replay_make_code_name(c->r, about.code);
        json_string(&json, "kind", replay_word_of_kind(event->kind));
        json_integer(&json, "id", about.id);
        json_string(&json, "function", function);
        if (event->kind == REPLAY_LOOKUP)
            json_string(&json, "outcome", outcome_to_word(c->r->lookups.at[event->index].outcome));
        else if (event->kind == REPLAY_COMPILE)
            json_bool(&json, "recompile", c->r->compiles.at[event->index].recompile);
        free(function);
    }
    cursor_get_cache_state(c, &state);
    json_list(&json, "cache");
    json_begin_lines(&json);
    for (size_t i = 0; i < state.count; i++)
        write_cache_slot_as_json(&json, c->r, &state.at[i]);
    json_end(&json);
    json_end(&json);
    putchar('\n');
    list_free(&state);
}

/* Print the event at PLACE. Returns the exit status, which is 1 if there is no such event. */
static int print_event_at_place(struct db *db, struct replay *replay, const char *place, bool json)
{
    struct cursor c;
    enum cursor_result result;

    cursor_init(&c, db, replay, stdout);
    result = cursor_run_command(&c, "goto", place);
    if (result == CURSOR_THERE && json)
        write_event_as_json(&c);
    else if (result == CURSOR_THERE)
        replay_print_page(&c);
    cursor_end(&c);
    if (result == CURSOR_ERROR)
        return 2;
    return result == CURSOR_NONE;
}

/* ---- showing the replay on the screen ------------------------------------ */

static int open_replay_screen(char **operands)
{
    struct tui_options options = {.replay = true};
    const char *path = NULL;

    if (!isatty(STDOUT_FILENO)) {
        say_error("replay: standard output is not a terminal: --to N prints an event");
        return 2;
    }
    if (operands[0]) {
        path = traces_make_one_file(operands, MERGE_FRAMES, &options.name);
        if (!path)
            return 2;
    }
    return tui_run(&options, path);
}

/* ---- the command `replay` and its options -------------------------------- */

static struct {
    bool verify, json, calls;
    LIST(const char *) settings; /* the values of all --what-if options */
    const char *function, *to;
} given;

static const char *read_whatif_option(const struct option *option, const char *value)
{
    if (!*value)
        return "not KEY=VALUE, or best";
    *list_add(&given.settings) = value;
    return NULL;
}

static const struct option options[] = {
    {"to", .value = "PLACE", .read = option_text, .to = &given.to,
     .help = "print one event and end: event number 12, or 1.5s, 50%, lookup 20, compile 3, first "
             "miss, last recompile"},
    {"verify", .read = option_flag, .to = &given.verify,
     .help = "decide every recorded lookup again, from its cache's entries, their order and "
             "the results of their guards, and list those that do not follow; exit status 1 if "
             "there are any"},
    {"what-if", .value = "KEY=VALUE", .read = read_whatif_option, .many = true,
     .words = "best recompile_limit= accumulated_limit= "
              "isolate=region backend_shared=no dynamic= dynamic=all drop_guard=",
     .help =
         "decide the recorded calls again under another setting, and print what would come of them "
         "beside what was recorded, and how many calls the trace does not decide. Several hold "
         "together, with commas between them or each with --what-if:\n"
         "  recompile_limit=N, accumulated_limit=N: entries of a function at once, and ever\n"
         "  isolate=region: every torch.compile() has entries and a limit of its own\n"
         "  backend_shared=no: every backend has\n"
         "  dynamic=SOURCE[DIM]: L['x'][0] or x[0], a size that does not matter; dynamic=all\n"
         "  drop_guard=ID|KIND: a guard that is not checked\n"
         "  best: look for the smallest change that removes most recompiles"},
    {"function", .value = "FUNC", .read = option_text, .to = &given.function,
     .help = "that function alone is shown, and dynamic and drop_guard hold for it alone"},
    {"calls", .read = option_flag, .to = &given.calls,
     .help = "a row for each call: what was recorded, what is predicted, whether it is a guess"},
    {"json", .read = option_flag, .to = &given.json, .help = "the same for a program"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

/* Return an error message if an option was given without another one that it needs. Returns NULL if
 * none is missing. */
static const char *find_missing_option(void)
{
    bool asks = given.settings.count > 0;

    if (given.calls && !asks)
        return "--calls goes with --what-if";
    if (given.function && !asks)
        return "--function goes with --what-if";
    if (given.verify || given.to)
        return NULL;
    if (given.json && !asks)
        return "--json goes with --to, --verify or --what-if";
    return NULL;
}

/* Can the given options be combined? If not, reports an error and returns false. */
static bool can_combine_options(void)
{
    const char *alone = find_missing_option();
    int ways = given.verify;

    ways += given.settings.count > 0;
    ways += given.to != NULL;
    if (alone)
        say_error("replay: %s", alone);
    else if (ways > 1)
        say_error("replay: --to, --verify and --what-if are each done alone");
    return !alone && ways <= 1;
}

/* Print the answer to --verify, --to or --what-if. Returns the exit status. */
static int answer_option(const struct whatif_asked *asked)
{
    if (given.verify)
        return verify_trace(asked->replay, given.json);
    if (given.to)
        return print_event_at_place(asked->db, asked->replay, given.to, given.json);
    return print_whatif_answer(asked, given.calls);
}

static int replay_main(int count, char **operands)
{
    struct whatif_asked asked = {.settings = given.settings.at,
                                 .count = (int)given.settings.count,
                                 .function = given.function,
                                 .out = stdout,
                                 .json = given.json};
    int status = 2;

    if (!can_combine_options())
        return 2;
    if (!given.to && !given.verify && !asked.count)
        return open_replay_screen(operands);
    asked.db = find_open_traces(operands);
    if (!asked.db)
        return 2;
    doubts_print_warnings(asked.db, "what is replayed is what it has so far",
                          asked.count ? NULL : "what came after them is uncertain");
    doubts_report_settings(asked.db);
    asked.replay = replay_open(asked.db, given.verify || asked.count);
    if (asked.replay)
        status = answer_option(&asked);
    if (db_has_failed(asked.db))
        status = 2;
    replay_free(asked.replay);
    db_close(asked.db);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "step through the recorded decisions, verify them, or decide them otherwise",
    .operands = "[FILE...]",
    .about = "Steps through the decisions that a trace has recorded, forwards and backwards. It "
             "does not run the program again. FILE is the newest *.db trace here unless given. "
             "On a terminal it opens the TUI's replay view, in which ] and [ step.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = replay_main,
};

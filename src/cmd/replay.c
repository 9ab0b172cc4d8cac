/* cmd/replay.c -- `dyntrace replay`: the recorded decisions again, step by step or verified.
 *
 * Runs in: the viewer.
 *
 * What is replayed are the recorded decisions, not the program: nothing of it runs, and no Python is needed.
 * The stepping is in cmd/replay/step.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/option.h"
#include "trace/prose.h"
#include "replay.h"
#include "cmd/replay/step.h"
#include "cmd/replay/whatif.h"
#include "trace/replay/page.h"
#include "trace/whatif/whatif.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/why/why.h"

enum { LISTED = 20, LISTED_JSON = 10000, WIDTH = 70, SETTINGS = 32 };

struct session {
    struct db *db;         /* owned */
    struct replay *replay; /* owned */
    bool verify, json, calls;
    const char *settings[SETTINGS]; /* of --what-if */
    int setting_count;
    const char *function;
    struct replay_script script;
};

/* ---- --verify -------------------------------------------------------------- */

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void finding_print(const struct replay *r, const struct replay_finding *f, FILE *out)
{
    const struct replay_lookup *l = &r->lookups.at[f->lookup];
    char *entry = replay_entry_name(r, f->entry), *wanted = replay_entry_name(r, f->wanted),
         *code = replay_code_name(r, r->caches.at[l->cache].code);
    char at[TABLE_HUMAN];

    fprintf(out, "  lookup %" PRId64 " at %s of ", l->id, table_duration(at, l->start_ns));
    prose_text(out, code, WIDTH * 2);
    fprintf(out, ", %s: %s", outcome_word(l->outcome), replay_fault_words(f->fault));
    if (entry && f->fault != FAULT_OUTCOME && f->fault != FAULT_POSITION && f->fault != FAULT_COUNT) {
        fputs(f->fault == FAULT_ORDER ? ": " : ", ", out);
        prose_text(out, entry, WIDTH);
    }
    if (wanted && f->fault == FAULT_ORDER) {
        fputs(" where ", out);
        prose_text(out, wanted, WIDTH);
        fputs(" was to be tried", out);
    }
    putc('\n', out);
    free(entry);
    free(wanted);
    free(code);
}

static void verdict_print(const struct replay *r, const struct replay_verdict *v, FILE *out)
{
    const struct {
        int64_t count;
        const char *words;
    } parts[] = {
        {v->observed, "in part: seen from outside of torch's evaluator, so only the entry that ran is known"},
        {v->before, "in part: ran code that was compiled before the recording began"},
        {v->unsure, "in part: the order of their entries depends on how lookups on several threads or processes\n"
                    "            overlapped, or on events that were lost"},
        {(int64_t)v->findings.count, "do not follow"},
    };
    size_t count = v->findings.count;

    if (!v->lookups)
        fputs("No lookups are recorded: there is nothing to verify.\n", out);
    else if (!count && !v->orphans)
        fprintf(out, "%" PRId64 " lookup%s decided again: none contradicts the rules of the cache.\n", v->lookups,
                plural(v->lookups));
    if (count)
        fprintf(out, "%zu of %" PRId64 " lookups do not follow from what is recorded before them. %s:\n", count,
                v->lookups, count == 1 ? "It is" : count > LISTED ? "The first" : "They are");
    for (size_t i = 0; i < count && i < LISTED; i++)
        finding_print(r, &v->findings.at[i], out);
    if (count > LISTED)
        fprintf(out, "  (%d of %zu; --json has more)\n", LISTED, count);
    if (v->orphans)
        fprintf(out, "%" PRId64 " guard check%s of lookups that are not there.\n", v->orphans,
                v->orphans == 1 ? " is" : "s are");
    if (v->lookups)
        fprintf(out, "\n%10" PRId64 "  wholly: entries tried, their order, backends, guard results, outcome\n",
                v->whole);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count)
            fprintf(out, "%10" PRId64 "  %s\n", parts[i].count, parts[i].words);
    if (v->misses)
        fprintf(out,
                "\n%" PRId64 " call%s found no entry and did not compile: %" PRId64
                " after the code was marked so, %" PRId64 " at a limit of\nentries, %" PRId64
                " because only existing code was to run (a callback of False; the trace does not hold callbacks).\n",
                v->misses, plural(v->misses), v->by_mark, v->by_limit, v->by_false);
    if (v->insertion)
        fprintf(out,
                "\nIn %" PRId64
                " process%s torch was set to leave entries where they were put: a hit did not move them.\n",
                v->insertion, v->insertion == 1 ? "" : "es");
}

static void verdict_json(const struct replay *r, const struct replay_verdict *v, FILE *out)
{
    struct json json = {.out = out};

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
    json_lines(&json);
    for (size_t i = 0; i < v->findings.count && i < LISTED_JSON; i++) {
        const struct replay_finding *f = &v->findings.at[i];
        const struct replay_lookup *l = &r->lookups.at[f->lookup];
        char *entry = replay_entry_name(r, f->entry), *wanted = replay_entry_name(r, f->wanted),
             *code = replay_code_name(r, r->caches.at[l->cache].code);
        json_object(&json, NULL);
        json_integer(&json, "lookup_id", l->id);
        json_integer(&json, "start_ns", l->start_ns);
        json_string(&json, "outcome", outcome_word(l->outcome));
        json_string(&json, "why", replay_fault_words(f->fault));
        json_string(&json, "function", code);
        json_string(&json, "entry", entry);
        json_string(&json, "wanted", wanted);
        json_end(&json);
        free(entry);
        free(wanted);
        free(code);
    }
    json_end(&json);
    json_end(&json);
    putc('\n', out);
}

static int verify(struct session *s)
{
    struct replay_verdict verdict;
    int status;

    if (!replay_verify(s->replay, &verdict)) {
        say_error("out of memory");
        return 2;
    }
    (s->json ? verdict_json : verdict_print)(s->replay, &verdict, stdout);
    status = verdict.findings.count || verdict.orphans ? 1 : 0;
    list_free(&verdict.findings);
    return status;
}

/* ---- the command ----------------------------------------------------------- */

static struct session asked;

/* `--commands LIST`, or a command as an option: `--goto PLACE`. */
static const char *command_read(const struct option *option, const char *value)
{
    struct replay_script *script = &asked.script;

    if (option->value && !*value)
        return option_empty;
    if (script->count == REPLAY_COMMANDS)
        return "too many commands; --commands takes a list of any length";
    script->commands[script->count++] = (struct replay_command){
        .name = strcmp(option->name, "commands") ? option->name : NULL, .words = value ? value : ""};
    return NULL;
}

static const char *whatif_read(const struct option *option, const char *value)
{
    (void)option;
    if (!*value)
        return "not KEY=VALUE, or best";
    if (asked.setting_count == SETTINGS)
        return "too many settings";
    asked.settings[asked.setting_count++] = value;
    return NULL;
}

static const struct option options[] = {
    {"commands", .value = "LIST", .read = command_read,
     .help = "do these commands, with ; between them, and end; `help` is one of them. Each is an option as well; they are done in "
             "the order given"},
#define X(name_, brief, words, help_, ...) {name_, .value = words, .read = command_read, .help = help_},
    STEP_COMMANDS(X)
#undef X
    {"verify", .read = option_flag, .to = &asked.verify,
     .help = "decide every recorded lookup again, from its cache's entries, their order and the results of their guards, and list "
             "those that do not follow; exit status 1 if there are any"},
    {"what-if", .value = "KEY=VALUE", .read = whatif_read, .many = true,
     .words = "best recompile_limit= accumulated_limit= order=mru order=fifo order=static isolate=region backend_shared=no dynamic= "
              "dynamic=all drop_guard=",
     .help = "decide the recorded calls again under another setting, and print what would come of them beside what was recorded, "
             "and how many calls the trace does not decide. Several hold together, with commas between them or each with "
             "--what-if:\n"
             "  recompile_limit=N, accumulated_limit=N: entries of a function at once, and ever\n"
             "  order=mru|fifo|static: a hit moves its entry to the front; oldest first; newest first\n"
             "  isolate=region: every torch.compile() has entries and a limit of its own\n"
             "  backend_shared=no: every backend has\n"
             "  dynamic=SOURCE[DIM]: L['x'][0] or x[0], a size that does not matter; dynamic=all\n"
             "  drop_guard=ID|KIND: a guard that is not checked\n"
             "  best: look for the smallest change that removes most recompiles"},
    {"function", .value = "FUNC", .read = option_text, .to = &asked.function,
     .help = "that function alone is shown, and dynamic and drop_guard hold for it alone"},
    {"calls", .read = option_flag, .to = &asked.calls,
     .help = "a row for each call: what was recorded, what is predicted, whether it is a guess"},
    {"json", .read = option_flag, .to = &asked.json, .help = "the same for a program"},
    OPTION_END,
};

/* False after saying which of the options do not go together. */
static bool options_agree(const struct session *s)
{
    const char *needs = s->calls ? "--calls" : s->function ? "--function" : s->json && !s->verify ? "--json" : NULL;

    if (needs && !s->setting_count)
        say_error("replay: %s goes with %s--what-if", needs, strcmp(needs, "--json") ? "" : "--verify or ");
    else if (s->verify + (s->setting_count > 0) + (s->script.count > 0) > 1)
        say_error("replay: --verify, --what-if and commands are each done alone");
    else
        return true;
    return false;
}

static int whatif(const struct session *s)
{
    struct whatif_asked asked_of = {.db = s->db, .replay = s->replay, .settings = s->settings,
                                    .count = s->setting_count, .function = s->function, .out = stdout,
                                    .json = s->json};

    return replay_whatif(&asked_of, s->calls);
}

static int replay_main(int count, char **operands)
{
    struct session *s = &asked;
    int status = 2;

    (void)count;
    if (!options_agree(s))
        return 2;
    if (!(s->db = find_open(operands[0])))
        return 2;
    doubts_say(s->db, "what is replayed is what it has so far",
               s->setting_count ? NULL : "what came after them is uncertain");
    s->replay = replay_open(s->db, s->verify ? REPLAY_CHECKS : s->setting_count ? REPLAY_CHECKS | REPLAY_TIMES : 0);
    if (!s->replay)
        goto out;
    status = s->verify          ? verify(s)
             : s->setting_count ? whatif(s)
                                : replay_step(s->db, s->replay, &s->script, stdout);
    if (db_damaged(s->db))
        status = 2;
out:
    replay_free(s->replay);
    db_close(s->db);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "step through the recorded decisions, verify them, or decide them otherwise",
    .operands = "[FILE]",
    .about = "Steps through the decisions that a trace has recorded, forwards and backwards. It does not run the program again. "
             "FILE is the newest *.db trace here unless given. Commands come from a prompt on a terminal, else from standard "
             "input.",
    .options = options,
    .operands_most = 1,
    .run = replay_main,
};

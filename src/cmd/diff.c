/* cmd/diff.c -- `dyntrace diff`: what is different in B?
 *
 * Runs in: the viewer.
 *
 * Functions are put side by side (cmd/diff/functions.c), then the reasons of their recompiles and graph breaks
 * (cmd/diff/reasons.c). Times differ from run to run: they are a difference beyond --tolerance only. --lookups goes
 * through the lookups of both in order of time (cmd/diff/lookups.c), thread by thread of the same rank and name, up
 * to the first that was decided differently: where one rank began to do what the others did not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/diff/diff.h"
#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/progress.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"

enum { LIMIT = 200 /* rows, unless --limit */ };

static const char *const kind_names[KINDS] = {"function", "code",  "outcome", "entry", "reason",
                                              "break",    "guard", "time",    "lookup"};

/* ---- for the parts ---------------------------------------------------------- */

struct query *diff_ask(const struct diff *diff, const struct side *side, const char *name)
{
    struct query *query = db_query(side->db, schema_statement(name));

    if (query && diff->glob)
        query_bind_text(query, 1, diff->glob);
    if (query && side->rank >= 0)
        query_bind_integer(query, 2, side->rank);
    return query;
}

const char *diff_text(struct side *side, struct query *query, int column)
{
    const char *text = query_type(query, column) == QUERY_NULL ? "" : query_text(query, column, NULL);

    return arena_text(&side->arena, text, strlen(text));
}

bool diff_no_memory(void)
{
    say_error("diff: out of memory");
    return false;
}

void diff_row(struct diff *diff, enum kind kind, const struct function *f, const char *what, const char *a,
              const char *b)
{
    char *where = NULL;

    diff->found[kind]++;
    if (diff->limit >= 0 && ++diff->rows > diff->limit)
        return;
    if (!diff->table)
        diff->table = table_open(stdout, table_format(stdout, diff->json), 6,
                                 (const char *[]){"kind", "function", "where", "what", "a", "b"});
    if (!diff->table)
        return;
    table_string(diff->table, kind_names[kind]);
    table_string(diff->table, f ? f->name : NULL);
    if (f && asprintf(&where, "%s:%" PRId64, f->file, f->line) < 0)
        where = NULL;
    table_string(diff->table, where);
    table_string(diff->table, what);
    table_string(diff->table, a);
    table_string(diff->table, b);
    free(where);
}

/* ---- the result ------------------------------------------------------------ */

static bool side_open(struct side *side, const char *path)
{
    struct query *query;
    bool any = true;

    if (!(side->db = find_open(path)))
        return false;
    db_run(side->db, "PRAGMA cache_size = -12288"); /* what is read once needs no more, and there are two traces */
    if (side->rank >= 0) {
        query = db_query(side->db, schema_statement("diff/rank"));
        query_bind_integer(query, 1, side->rank);
        any = query_step(query);
        if (!query_close(query))
            return false;
    }
    if (!any)
        say_error("%s: no process of rank %" PRId64, path, side->rank);
    doubts_say(side->db, "what is compared is what it has so far", "some differences may be due to that");
    return any;
}

static void side_close(struct side *side)
{
    list_free(&side->functions);
    arena_free(&side->arena);
    db_close(side->db);
}

static int traces_diff(struct diff *diff, const char *a, const char *b)
{
    struct json json = {.out = stdout};
    int64_t all = 0;
    bool ok, fails = false;

    diff->progress = progress_begin("comparing");
    ok = side_open(&diff->a, a) && side_open(&diff->b, b) && diff_read(diff, &diff->a) && diff_read(diff, &diff->b);
    if (ok && diff->glob && !diff->a.functions.count && !diff->b.functions.count) {
        say_error("diff: --function %s: no function of either trace matches, so there is nothing to compare",
                  diff->glob);
        ok = false;
    }
    if (ok && diff->json) {
        json_object(&json, NULL);
        json_lines(&json);
        json_key(&json, "differences");
    }
    if (ok) {
        ok = diff_functions(diff) && diff_reasons(diff) && (!diff->lookups || diff_lookups(diff));
        if (ok)
            diff_times(diff);
    }
    progress_end(&diff->progress);
    if (diff->table && !table_close(diff->table))
        ok = false;
    for (int k = 0; k < KINDS; k++) {
        all += diff->found[k];
        fails = fails || (diff->fail[k] && diff->found[k]);
    }
    if (ok && diff->json) {
        fputs(diff->table ? "" : "[]", stdout);
        json_bool(&json, "fails", fails);
        json_object(&json, "counts");
        for (int k = 0; k < KINDS; k++)
            json_integer(&json, kind_names[k], diff->found[k]);
        json_end(&json);
        json_end(&json);
        putchar('\n');
    } else if (ok && !all) {
        puts("no difference");
    } else if (ok && diff->limit >= 0 && all > diff->limit) {
        say_error("diff: %" PRId64 " of %" PRId64 " differences; --limit 0 shows all", diff->limit, all);
    }
    return !ok ? 2 : fails ? 1 : 0;
}

/* ---- the command line ------------------------------------------------------ */

static struct diff diff = {.limit = LIMIT, .tolerance = 0.2, .a.rank = -1, .b.rank = -1};

/* "outcome,entry" or "any". */
static const char *fail_read(const struct option *option, const char *list)
{
    (void)option;
    while (*list) {
        size_t length = strcspn(list, ",");
        bool known = false;
        for (int k = 0; k < KINDS; k++)
            if ((length == strlen(kind_names[k]) && !strncmp(list, kind_names[k], length)) ||
                (length == 3 && !strncmp(list, "any", 3)))
                diff.fail[k] = known = true;
        if (!known)
            return "not kinds such as outcome,entry, or any; `dyntrace diff --help` lists them";
        list += length;
        list += *list == ',';
    }
    return memchr(diff.fail, true, sizeof diff.fail) ? NULL : option_empty;
}

static const char *rank_read(const struct option *option, const char *value)
{
    char *end;

    (void)option;
    diff.a.rank = diff.b.rank = strtoll(value, &end, 10);
    if (end != value && *end == ',')
        diff.b.rank = strtoll(value = end + 1, &end, 10);
    return end == value || *end || diff.a.rank < 0 || diff.b.rank < 0 ? "not one rank, or two such as 0,1" : NULL;
}

static const struct option options[] = {
    {"fail-on", .value = "KIND,...", .read = fail_read,
     .words = "function code outcome entry reason break guard time lookup any",
     .help = "exit with 1 when there is a difference of these kinds, or of any:\n"
             "  function: compiled in one only\n"
             "  code: its bytecode changed\n"
             "  outcome: how its calls ended\n"
             "  entry: cache entries, that is compiles\n"
             "  reason: of a recompile\n"
             "  break: graph breaks\n"
             "  guard: time of its guards\n"
             "  time: its own time\n"
             "  lookup: a lookup that diverges, with --lookups"},
    {"function", .value = "GLOB", .read = option_text, .to = &diff.glob,
     .help = "only functions whose qualified name, or the last part of it, matches"},
    {"tolerance", .value = "P", .read = option_share, .to = &diff.tolerance,
     .help = "times that differ by less are alike: 0.2 or 20%, the default. Own times below 5 ms and guards below a "
             "microsecond a "
             "call are noise whatever the ratio"},
    {"lookups", .read = option_flag, .to = &diff.lookups,
     .help = "for each thread the first lookup that was decided differently; threads are matched by name, and by rank "
             "when the "
             "traces are of two ranks"},
    {"rank", .value = "R[,S]", .read = rank_read,
     .help = "only processes of rank R of A, and of rank S (or R) of B: `dyntrace diff job.db job.db --rank 0,1 "
             "--lookups` shows "
             "where rank 1 began to do something else"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &diff.limit,
     .help = "rows printed; 0 is all. The default is 200"},
    {"json", .read = option_flag, .to = &diff.json,
     .help = "the same for a program, with the number of differences of each kind"},
    OPTION_END,
};

static int diff_main(int count, char **operands)
{
    int status = 2;

    if (count != 2) {
        say_error("diff: needs two traces: `dyntrace diff A B`");
        return 2;
    }
    if (diff.fail[LOOKUP])
        diff.lookups = true;
    status = traces_diff(&diff, operands[0], operands[1]);
    side_close(&diff.a);
    side_close(&diff.b);
    list_free(&diff.pairs);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what is different in another trace",
    .operands = "A B",
    .about = "What is different in trace B: functions are matched by name and file, then line and fingerprint; one "
             "that moved to "
             "another file, by name and fingerprint.",
    .options = options,
    .more = "Exit status: 0; 1 a difference of --fail-on; 2 bad usage, or a trace that cannot be read.",
    .operands_most = 2,
    .too_many = "two traces at a time",
    .run = diff_main,
};

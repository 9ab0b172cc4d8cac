/* cmd/why.c -- `dyntrace why`: prints how one function's calls were decided, and why.
 *
 * trace/why/why.h gathers the facts, cmd/why/page.c prints them. */
#include "cmd/ranks.h"
#include "cmd/try.h"
#include "cmd/why/page.h"
#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/findings.h"
#include "trace/page_text.h"

/* The values of the options of `dyntrace why`. */
static struct {
    bool sql, json, whatif, ranks, all;
    bool measure; /* --try */
} given;

/* ---- the command `why` --------------------------------------------------- */

static const struct option options[] = {
    {"sql", .read = option_flag, .to = &given.sql, .help = "also print the SQL that answers"},
    {"ranks", .read = option_flag, .to = &given.ranks,
     .help =
         "which of a job's ranks compiled it otherwise, as `dyntrace ranks` says of all functions"},
    {"try", .read = option_flag, .to = &given.measure,
     .help = "first run the recorded command under the settings of its remedies, as `dyntrace try` "
             "does, and measure them"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, complete, times in nanoseconds"},
    TABLE_WIDE_OPTION,
    {"all", .read = option_flag, .to = &given.all, .help = "print all remedies, not only three"},
    {"what-if", .read = option_flag, .to = &given.whatif,
     .help = "decide the recorded calls again for each remedy, on a long trace too. One with more "
             "than 200,000 lookups or a million guard checks would make the answer wait, so that "
             "only the command to ask for it is printed"},
    OPTION_END,
};

/* Print the functions to look at first. Called if the user named no function. */
static void print_worst_functions(struct db *db, const char *file)
{
    struct json *json = &(struct json){.out = stdout};

    db_store_view_as_table(db, "functions");
    if (!given.json) {
        findings_print(db, stdout, page_text_choose_way(stdout, false), file);
        return;
    }
    json_object(json, NULL);
    json_begin_lines(json);
    json_string(json, "file", db_get_path(db));
    findings_write_as_json(db, json);
    json_end(json);
    putchar('\n');
}

static int why_main(int count, char **operands)
{
    struct why why = {.with_sql = given.sql, .force_whatif = given.whatif};
    const char *name;
    char **files;
    enum find_result found;
    int measured = 0;
    int status;

    if (!count) {
        name = NULL;
        files = operands;
    } else if (!find_split_operands("why", count, operands, &name, &files)) {
        return 2;
    }
    if (given.ranks && !name)
        say_error("why: --ranks needs the name of a function; `dyntrace ranks` compares all");
    if (given.ranks)
        return name ? ranks_compare_and_print(files, name, -1, given.json) : 2;
    if (given.measure)
        measured = try_remedies(files, name, false);
    if (!(why.db = find_open_traces(files)))
        return 2;
    /* warn that the recording still runs, but not about losses, which the page itself reports */
    doubts_print_warnings(why.db, "the answer is about what it has so far", NULL);
    why.progress = progress_begin("reading decisions");
    db_set_progress_callback(why.db, progress_spin, &why.progress);
    found = FIND_LISTED;
    if (name)
        found = find_code(why.db, name, &why.code, stdout, given.json);
    if (found == FIND_ONE) {
        why_gather_facts(&why);
        why_add_remedies(&why);
        why_predict_remedies(&why);
    }
    db_set_progress_callback(why.db, NULL, NULL);
    progress_end(&why.progress);
    if (found == FIND_ONE && !db_has_failed(why.db) && given.json)
        why_write_as_json(&why, stdout);
    else if (found == FIND_ONE && !db_has_failed(why.db))
        why_page_print(&why, given.all);
    if (!name)
        print_worst_functions(why.db, *files);
    status = find_exit_status(why.db, found);
    why_free(&why);
    return status ? status : measured;
}

const struct command command_why = {
    .name = "why",
    .summary = "why a function was compiled again, or ran as Python",
    .operands = "[FUNC] [FILE...]",
    .about =
        "What was decided about the calls of a function, and why: hits, compiles and "
        "recompiles with the guard that failed, calls that ran as Python, entries that died, "
        "what would have helped, and how much. Of a function that no compiler had to do with: "
        "how long its calls took, the slowest of them, and who called it. Without FUNC: where "
        "the time of the whole program went, and three things to look at first.\n\n"
        "FUNC is a qualified name, its last part, FILE:LINE[:NAME], a GLOB, a compile such as "
        "0/1, or FUNC@LINE, the rest of FUNC after a graph break in that line. FILE is the newest "
        "*.db trace here unless given.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = why_main,
};

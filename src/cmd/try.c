/* cmd/try.c -- `dyntrace try`: run the recorded command under settings, and measure.
 *
 * The trace has the command, its directory and its interpreter (meta; cmd/run/again.c). The command
 * runs once unchanged, the baseline, and once under each setting. Each run is recorded with
 * --frames decided into a temporary folder. The counts of each run are stored as a trial in the
 * trace that has the command (trace/trials.h). cmd/try/try.h lists the files of `try`. */
#include "cmd/try.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/try/try.h"
#include "command.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/template.h"
#include "trace/traces.h"

enum {
    RUNS = 8,       /* the most runs of the command, unless --runs is given */
    BEST_MOST = 4,  /* how many of the best settings are combined into pairs */
    NOTE_MOST = 90, /* the most bytes of a note in the table */
};

#define UNKNOWN FACT_UNKNOWN

static struct {
    bool yes, json, compare, has_rtol;
    int64_t runs, calls;
    uint64_t timeout_ns;
    double rtol;
} given = {.runs = RUNS, .rtol = 1e-5};

/* Read the value of --runs, a number that includes the unchanged run. */
static const char *read_runs_option(const struct option *option, const char *value)
{
    return !option_count(option, value) && given.runs >= 2
               ? NULL
               : "not a number from 2 on: the unchanged run is one of them";
}

static const char *read_rtol_option(const struct option *option, const char *value)
{
    given.has_rtol = true;
    return option_share(option, value);
}

static const struct option options[] = {
    {"runs", .value = "N", .read = read_runs_option, .to = &given.runs,
     .help = "at most so many runs, the unchanged one among them, where no SETTING is given; 8 "
             "unless given"},
    {"calls", .value = "N", .read = option_count, .to = &given.calls,
     .help = "end each process of a run when FUNC is called for the N+1st time in it"},
    {"timeout", .value = "TIME", .read = option_duration, .to = &given.timeout_ns,
     .help = "stop a run that takes longer, such as 90s; it is no gain then"},
    {"compare", .read = option_flag, .to = &given.compare,
     .help = "compare what FUNC returns, call by call, with the unchanged run: equal, close, "
             "different"},
    {"rtol", .value = "SHARE", .read = read_rtol_option, .to = &given.rtol,
     .help = "of --compare: numbers that differ by this share of them at most are close; 1e-5 "
             "unless given"},
    {"yes", .read = option_flag, .to = &given.yes, .help = "do not ask before the first run"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the result for a program, times in nanoseconds"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

/* ---- the data of one `dyntrace try` -------------------------------------- */

struct result {
    const char *setting;
    int64_t trial_id;
    /* the counts of the named function or, if none was named, of the whole run */
    struct trial_counts counts;
    bool works, gains;
};

struct trying {
    struct plan plan;
    struct attempt_given attempts;
    char folder[PATH_MAX];
    struct db *db; /* owned: the trace in which the trials are stored */
    struct progress progress;
    struct attempt baseline, again;
    struct trial_row baseline_row;
    /* the unchanged command ran a second time, because a run had other output than the baseline */
    bool has_again;
    LIST(struct result) results; /* the results of all runs; the first is the baseline */
    size_t made, wanted;         /* number of runs that were made so far, and that are planned */
    bool stopped;                /* the user pressed Ctrl-C: no further run is started */
};

static void turn_progress_mark(void *context)
{
    struct trying *trying = context;

    progress_spin(&trying->progress);
}

/* ---- the temporary folder for the files of the runs ---------------------- */

static int remove_folder_entry(const char *path, const struct stat *status, int kind,
                               struct FTW *place)
{
    return remove(path);
}

static void remove_folder(const char *path)
{
    if (*path)
        nftw(path, remove_folder_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static bool make_folder(struct trying *trying)
{
    const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};

    for (size_t i = 0; i < array_count(places); i++) {
        if (!places[i] || *places[i] != '/')
            continue;
        snprintf(trying->folder, sizeof trying->folder, "%.4000s/dyntrace-try-XXXXXX", places[i]);
        if (mkdtemp(trying->folder)) {
            trying->attempts.folder = trying->folder;
            return true;
        }
    }
    *trying->folder = 0;
    say_error("try: no place for the traces of the runs: %s", strerror(errno));
    return false;
}

/* Copy our standard input to a file in the folder, so that each run can read it. Returns the file,
 * or -1 if there is no standard input or if it is the terminal. */
static int copy_standard_input(const struct trying *trying)
{
    char path[PATH_MAX + 16];
    char part[1 << 16];
    ssize_t got = 1;
    int file;

    if (isatty(0) || fcntl(0, F_GETFD) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/stdin", trying->folder);
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    while (file >= 0 && got > 0) {
        got = read(0, part, sizeof part);
        if (got > 0 && write(file, part, (size_t)got) != got)
            break;
    }
    return file;
}

/* ---- telling the user what will run -------------------------------------- */

static void print_words(FILE *out, const struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->at[i];
        bool plain = *word && !strpbrk(word, " \t\n'\"\\$`;&|<>()*?[]#~!{}");
        putc(' ', out);
        if (plain)
            say_escaped(out, word, strlen(word));
        else
            prose_print_shell_word(out, word);
    }
}

/* Return the most runs that PLAN may need: the unchanged run, one for each setting and, if `try`
 * chose the settings itself, one for each pair of settings. */
static size_t count_planned_runs(const struct plan *plan)
{
    size_t singles = plan->settings.count;
    size_t pairs = singles * (singles - 1) / 2;
    size_t all = 1 + singles + (plan->chosen && singles > 1 ? pairs : 0);

    return plan->chosen && all > (size_t)given.runs ? (size_t)given.runs : all;
}

static void print_plan(const struct trying *trying)
{
    const struct plan *plan = &trying->plan;
    char human[TABLE_HUMAN];

    fputs("Runs", stderr);
    print_words(stderr, &plan->launcher);
    if (plan->launcher.count)
        fputs(" dyntrace run ...", stderr);
    print_words(stderr, &plan->command);
    fputs("\n  in ", stderr);
    say_escaped(stderr, plan->directory, strlen(plan->directory));
    fprintf(stderr, "\n  %s%zu times: unchanged, then with\n",
            plan->chosen && trying->wanted > 1 + plan->settings.count ? "at most " : "",
            trying->wanted);
    for (size_t i = 0; i < plan->settings.count; i++) {
        fputs("    ", stderr);
        say_escaped(stderr, plan->settings.at[i], strlen(plan->settings.at[i]));
        putc('\n', stderr);
    }
    if (trying->wanted > 1 + plan->settings.count)
        fputs("    and pairs of the best of these\n", stderr);
    fputs("  and once more unchanged if the output differs\n", stderr);
    if (given.timeout_ns)
        fprintf(stderr, "  for %s each at most\n",
                table_duration(human, (int64_t)given.timeout_ns));
}

/* Ask on the terminal whether to continue. Returns the user's answer, or true if there is no
 * terminal. */
static bool ask_to_continue(void)
{
    int terminal = given.yes || !isatty(2) ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC);
    char answer = 0;
    char more = 0;
    bool wanted = terminal < 0;

    if (wanted)
        return true;
    fputs("Go on? [y/N] ", stderr);
    fflush(stderr);
    wanted = read(terminal, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
    while (answer != '\n' && read(terminal, &more, 1) == 1 && more != '\n')
        ;
    close(terminal);
    return wanted;
}

/* ---- judging the result of a run ----------------------------------------- */

/* Store LINE, an error message, in *CONTEXT if it is the first. say_redirect_errors() calls this
 * with each message. */
static void keep_first_line(void *context, const char *line)
{
    char **kept = context;

    if (!*kept)
        *kept = strdup(line);
}

/* What the trace of a run tells: its counts, and how the run ended. */
struct seen {
    struct trial_figures figures;
    bool traced; /* the run has left a trace */
    int64_t exit_code, exit_signal;
    const char *error;
};

/* Read the counts in the trace of the run ATTEMPT into SEEN. */
static void read_trace_counts(struct trying *trying, const struct attempt *attempt,
                              struct seen *seen)
{
    char *files[] = {(char *)attempt->trace, NULL};
    struct arena *arena = &trying->plan.arena;
    char *why = NULL;
    struct db *db = NULL;

    say_redirect_errors(keep_first_line, &why);
    if (access(attempt->trace, R_OK) == 0)
        db = traces_open(files, MERGE_FRAMES);
    if (db)
        seen->traced = trials_count_calls(db, arena, &seen->figures);
    if (seen->traced) {
        db_rows(row, db, schema_statement("trials/ended"))
        {
            bool code = query_type(row, 0) != QUERY_NULL;
            bool killed = query_type(row, 1) != QUERY_NULL;
            seen->exit_code = code ? query_integer(row, 0) : UNKNOWN;
            seen->exit_signal = killed ? query_integer(row, 1) : UNKNOWN;
            if (query_type(row, 2) != QUERY_NULL)
                seen->error = arena_print(arena, "%s", query_text(row, 2, NULL));
        }
        db_rows(lost, db, schema_statement("trials/lost")) if (!seen->error) seen->error =
            arena_print(arena, "its recording is not complete: %s", query_text(lost, 0, NULL));
    } else if (why) {
        seen->error = arena_print(arena, "%s", why);
    }
    if (seen->error)
        ((char *)seen->error)[strcspn(seen->error, "\n")] = 0;
    db_close(db);
    say_redirect_errors(NULL, NULL);
    free(why);
}

/* Store in SEEN how the program of ATTEMPT ended. If the trace does not tell, the exit status of
 * `dyntrace run` does. If a launcher starts the command, the launcher's exit status is used in any
 * case. */
static void read_program_end(const struct plan *plan, const struct attempt *attempt,
                             struct seen *seen)
{
    int status = attempt->status;
    bool told = seen->exit_code != UNKNOWN || seen->exit_signal != UNKNOWN;

    if (told && !plan->launcher.count)
        return;
    seen->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : UNKNOWN;
    seen->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : UNKNOWN;
}

/* Return the last line that ATTEMPT wrote to its standard error. If the recording keeps no values,
 * the line is cut at its first ":", because values of the program may follow. */
static const char *last_error_line(struct trying *trying, const struct attempt *attempt)
{
    const char *line = output_last_line(&trying->plan.arena, attempt->err);

    if (line && !trying->plan.values_get_session_option)
        ((char *)line)[strcspn(line, ":")] = 0;
    return line;
}

/* Return WHY without the words SETTING at its beginning, because the table prints the setting in
 * the same row. */
static const char *strip_setting(const char *why, const char *setting)
{
    size_t length = strlen(setting);

    return length && !strncmp(why, setting, length) && !strncmp(why + length, ": ", 2)
               ? why + length + 2
               : why;
}

/* Return the reason why the counts of ATTEMPT cannot be used, or NULL if they can. */
static const char *find_error_of_attempt(struct trying *trying, const struct attempt *attempt,
                                         const struct seen *seen, const char *setting)
{
    struct arena *arena = &trying->plan.arena;
    const struct trial_row *base = trying->results.count ? &trying->baseline_row : NULL;
    char human[TABLE_HUMAN];
    bool ended_alike =
        base && seen->exit_code == base->exit_code && seen->exit_signal == base->exit_signal;
    const char *why = seen->error;

    if (attempt->timed_out)
        return arena_print(arena, "stopped after %s (--timeout)",
                           table_duration(human, (int64_t)given.timeout_ns));
    if (!seen->traced) {
        const char *said = output_find_own_message(arena, attempt->err);
        why = said ? said : why ? why : last_error_line(trying, attempt);
        why = why ? why : "it left no trace";
    }
    if (why)
        return strip_setting(why, setting);
    if (base && !ended_alike) {
        const char *words = last_error_line(trying, attempt);
        if (seen->exit_signal != UNKNOWN)
            return arena_print(arena, "killed by signal %lld", (long long)seen->exit_signal);
        if (seen->exit_code && words)
            return words;
        return arena_print(arena, "exit status %lld", (long long)seen->exit_code);
    }
    return NULL;
}

/* Does ATTEMPT's output differ from the output of the baseline? */
static bool output_differs(const struct trying *trying, const struct attempt *attempt)
{
    const struct attempt *base = &trying->baseline;
    const struct attempt *again = trying->has_again ? &trying->again : NULL;
    bool job = trying->plan.job;

    return !output_is_same(attempt->out, base->out, again ? again->out : NULL, job) ||
           !output_is_same(attempt->err, base->err, again ? again->err : NULL, job);
}

/* Return a sentence with the first line in which the output of ATTEMPT differs from the baseline's,
 * or NULL. If the recording keeps no values, no line may be quoted, and NULL is returned. */
static const char *describe_difference(struct trying *trying, const struct attempt *attempt)
{
    const struct attempt *base = &trying->baseline;
    const struct attempt *again = trying->has_again ? &trying->again : NULL;
    struct arena *arena = &trying->plan.arena;
    bool job = trying->plan.job;
    const char *words;

    if (!trying->plan.values_get_session_option)
        return NULL;
    words =
        output_describe_difference(arena, attempt->out, base->out, again ? again->out : NULL, job);
    if (words)
        return arena_print(arena, "stdout: %s", words);
    words =
        output_describe_difference(arena, attempt->err, base->err, again ? again->err : NULL, job);
    return words ? arena_print(arena, "stderr: %s", words) : NULL;
}

/* Run the unchanged command a second time, to learn which words of its output differ even then. */
static void run_baseline_again(struct trying *trying)
{
    struct attempt_given attempts = trying->attempts;

    if (trying->has_again || trying->stopped)
        return;
    trying->progress.what = "trying: unchanged once more, as the output differs";
    attempts.against = attempts.compare ? trying->baseline.values : NULL;
    if (!attempt_run_command(&trying->plan, &attempts, "again", "", &trying->again,
                             turn_progress_mark, trying))
        return;
    trying->stopped = trying->again.stopped;
    trying->has_again = !trying->again.stopped && !trying->again.timed_out;
}

/* Is the output of ATTEMPT equal to the baseline's? Returns 1 or 0, or UNKNOWN if two unchanged
 * runs write different lines. */
static int64_t judge_output(struct trying *trying, const struct attempt *attempt)
{
    if (!output_differs(trying, attempt))
        return 1;
    run_baseline_again(trying);
    if (!trying->has_again || !output_differs(trying, attempt))
        return trying->has_again;
    return output_differs(trying, &trying->again) ? UNKNOWN : 0;
}

/* Compare ATTEMPT's return values with those of the baseline, and return the worst verdict. Returns
 * NULL if they were not compared. */
static const char *judge_values(struct trying *trying, const struct attempt *attempt)
{
    const char *found;

    if (!trying->attempts.compare)
        return NULL;
    found = values_worst_verdict(trying->baseline.values, attempt->values);
    if (!found || strcmp(found, "different") != 0)
        return found;
    run_baseline_again(trying);
    if (!trying->has_again)
        return found;
    return prose_are_texts_equal(
               values_worst_verdict(trying->baseline.values, trying->again.values), "different")
               ? NULL
               : found;
}

/* ---- running the command under one setting after the other --------------- */

/* Compare two numbers of eager calls, for sorting. UNKNOWN comes last: it means that there were
 * eager calls, but not how many. */
static int compare_eager_calls(int64_t a, int64_t b)
{
    int order = list_compare_numbers(a == UNKNOWN, b == UNKNOWN);

    return order ? order : list_compare_numbers(a, b);
}

static int compare_counts(const struct trial_counts *a, const struct trial_counts *b)
{
    int order = compare_eager_calls(a->eager, b->eager);

    order = order ? order : list_compare_numbers(a->compiles, b->compiles);
    order = order ? order : list_compare_numbers(a->recompiles, b->recompiles);
    return order ? order : list_compare_numbers(a->breaks, b->breaks);
}

static struct trial_counts choose_counts(const struct trying *trying, const struct seen *seen)
{
    const struct trial_counts *own =
        trying->plan.named ? trials_find_counts(&seen->figures, &trying->plan.function) : NULL;

    if (trying->plan.named && !own)
        return (struct trial_counts){.step_ns = UNKNOWN};
    return own ? *own : seen->figures.run;
}

/* Run the command under SETTING, judge the result and store it. SETTING is "" for the baseline.
 * Returns false if no further run is possible. */
static bool try_setting(struct trying *trying, const char *setting)
{
    struct arena *arena = &trying->plan.arena;
    bool baseline = !trying->results.count;
    const char *name = arena_print(arena, "run%zu", trying->made++);
    struct attempt attempt;
    struct attempt_given attempts = trying->attempts;
    struct seen seen = {.exit_code = UNKNOWN, .exit_signal = UNKNOWN};
    struct result *result;
    struct trial_row row;

    trying->progress =
        progress_begin(arena_print(arena, "trying: run %zu of %zu, %.60s", trying->made,
                                   trying->wanted, baseline ? "unchanged" : setting));
    attempts.against = attempts.compare && !baseline ? trying->baseline.values : NULL;
    if (!attempt_run_command(&trying->plan, &attempts, name, setting, &attempt, turn_progress_mark,
                             trying))
        return false;
    trying->stopped = attempt.stopped;
    if (trying->stopped)
        return false;
    read_trace_counts(trying, &attempt, &seen);
    read_program_end(&trying->plan, &attempt, &seen);
    if (baseline)
        trying->baseline = attempt;
    row = (struct trial_row){
        .batch = baseline ? UNKNOWN : trying->results.at[0].trial_id,
        .setting = setting,
        .command = trying->plan.command_json,
        .function = trying->plan.known ? &trying->plan.function : NULL,
        .started_unix_ns = attempt.started_unix_ns,
        .duration_ns = attempt.duration_ns,
        .exit_code = seen.exit_code,
        .exit_signal = seen.exit_signal,
        .output_same = UNKNOWN,
        .error = find_error_of_attempt(trying, &attempt, &seen, setting),
    };
    if (!baseline && seen.traced && !attempt.timed_out) {
        row.output_same = judge_output(trying, &attempt);
        row.difference = row.output_same ? NULL : describe_difference(trying, &attempt);
        row.values_same = judge_values(trying, &attempt);
    }
    progress_end(&trying->progress);
    if (trying->stopped)
        return false;
    if (baseline)
        trying->baseline_row = row;
    remove_folder(attempt.trace);
    if (!baseline)
        remove_folder(attempt.values);
    result = list_add(&trying->results);
    result->setting = setting;
    result->counts = choose_counts(trying, &seen);
    result->works =
        !row.error && (baseline || (row.output_same == 1 &&
                                    !prose_are_texts_equal(row.values_same, "different")));
    result->gains =
        result->works && compare_counts(&result->counts, &trying->results.at[0].counts) < 0;
    result->trial_id = trials_store(trying->db, &row, seen.traced ? &seen.figures : NULL);
    list_free(&seen.figures.functions);
    if (baseline && row.error)
        say_error("try: the unchanged run is no answer: %s", row.error);
    return result->trial_id && !(baseline && row.error);
}

/* ---- combining settings into pairs --------------------------------------- */

static int compare_by_counts(const void *a, const void *b)
{
    const struct result *x = a;
    const struct result *y = b;
    int order = compare_counts(&x->counts, &y->counts);

    return order ? order : list_compare_numbers(x->trial_id, y->trial_id);
}

/* Do the settings A and B set the same option? Then they cannot be combined. */
static bool sets_same_option(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    bool marks = strstr(a, "mark_") || !strncmp(a, "tensor=", 7);

    return strcspn(b, "=") == length && !memcmp(a, b, length) && !marks;
}

/* Are COUNTS the best that any setting could reach? */
static bool is_optimal(const struct trial_counts *counts)
{
    return !counts->eager && counts->compiles <= 1 && !counts->breaks;
}

/* Try pairs of the settings that worked, the most promising pairs first, until the allowed number
 * of runs is reached. */
static void try_pairs(struct trying *trying)
{
    LIST(struct result) best = {0};
    bool more = true;

    for (size_t i = 1; i < trying->results.count; i++)
        if (trying->results.at[i].works)
            *list_add(&best) = trying->results.at[i];
    if (best.count)
        list_sort(&best, compare_by_counts);
    more = best.count > 1 && !is_optimal(&best.at[0].counts);
    for (size_t sum = 1; more && sum < 2 * BEST_MOST; sum++)
        for (size_t i = 0; more && 2 * i < sum; i++) {
            size_t j = sum - i;
            if (j >= best.count || j >= BEST_MOST)
                continue;
            if (sets_same_option(best.at[i].setting, best.at[j].setting))
                continue;
            more = trying->made < (size_t)given.runs &&
                   try_setting(trying, arena_print(&trying->plan.arena, "%s %s", best.at[i].setting,
                                                   best.at[j].setting));
        }
    list_free(&best);
}

static void try_all_settings(struct trying *trying)
{
    bool more = try_setting(trying, "");

    for (size_t i = 0; more && i < trying->plan.settings.count; i++)
        more = try_setting(trying, trying->plan.settings.at[i]);
    if (more && trying->plan.chosen)
        try_pairs(trying);
}

/* ---- printing the trials ----------------------------------------------------- */

static void put_number_cell(struct table *table, int64_t value)
{
    if (value == UNKNOWN)
        table_put_null(table);
    else
        table_put_integer(table, value);
}

static void put_time_cell(struct table *table, int64_t ns)
{
    char human[TABLE_HUMAN];

    if (ns == UNKNOWN)
        table_put_null(table);
    else
        table_put_figure(table, table_duration(human, ns));
}

static void put_output_cell(struct table *table, const struct trial *trial)
{
    table_put_string(table, trial->output_same == 1   ? "same"
                            : trial->output_same == 0 ? "differs"
                                                      : NULL);
}

static void put_eager_cell(struct table *table, const struct trial *trial)
{
    bool given_up = trial->eager == UNKNOWN && trial->compiles != UNKNOWN;

    if (given_up)
        table_put_figure(table, "not counted");
    else
        put_number_cell(table, trial->eager);
}

static void print_trial(struct table *table, const struct trial *trial, bool compared)
{
    const char *note = trial->note;

    if (!trial->works)
        table_mark_row_red(table);
    table_put_string(table, *trial->setting ? trial->setting : "(unchanged)");
    put_number_cell(table, trial->compiles);
    put_number_cell(table, trial->recompiles);
    put_number_cell(table, trial->breaks);
    put_eager_cell(table, trial);
    put_number_cell(table, trial->hits);
    put_time_cell(table, trial->compile_ns);
    put_time_cell(table, trial->step_ns);
    if (trial->exit_signal != UNKNOWN) {
        char *words = say_print("signal %lld", (long long)trial->exit_signal);
        table_put_figure(table, words);
        free(words);
    } else {
        put_number_cell(table, trial->exit_code);
    }
    put_output_cell(table, trial);
    if (compared)
        table_put_string(table, trial->values_same);
    table_put_text(table, note ? note : "",
                   note ? prose_length_without_cut_character(note, NOTE_MOST) : 0);
}

static void print_trials(const struct trying *trying, const struct trials *trials)
{
    static const char *const names[] = {"setting", "compiles", "recompiles", "breaks",
                                        "eager",   "hits",     "compile",    "step",
                                        "exit",    "output",   "values",     "note"};
    const char *shown[12];
    bool compared = given.compare;
    int columns = 0;
    struct table *table;

    for (size_t i = 0; i < array_count(names); i++)
        if (compared || strcmp(names[i], "values") != 0)
            shown[columns++] = names[i];
    table = table_open(stdout, table_format(stdout, false), columns, shown);
    for (size_t i = 0; i < trials->count; i++)
        print_trial(table, &trials->at[i], compared);
    table_close(table);
}

static void write_trial_as_json(struct json *json, const struct trial *trial)
{
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"compiles", trial->compiles},
        {"recompiles", trial->recompiles},
        {"breaks", trial->breaks},
        {"eager", trial->eager},
        {"hits", trial->hits},
        {"compile_ns", trial->compile_ns},
        {"step_ns", trial->step_ns},
        {"exit_code", trial->exit_code},
        {"exit_signal", trial->exit_signal},
    };
    bool known = trial->output_same != UNKNOWN;

    json_object(json, NULL);
    json_integer(json, "trial_id", trial->trial_id);
    json_string(json, "setting", trial->setting);
    json_bool(json, "baseline", trial->baseline);
    json_bool(json, "works", trial->works);
    json_bool(json, "gain", trial->gain);
    for (size_t i = 0; i < array_count(numbers); i++)
        json_integer_or_null(json, numbers[i].key, numbers[i].value != UNKNOWN, numbers[i].value);
    if (known)
        json_bool(json, "same_output", trial->output_same);
    else
        json_null(json, "same_output");
    json_string(json, "values", trial->values_same);
    json_string(json, "error", trial->error);
    json_string(json, "note", trial->note);
    json_end(json);
}

static void write_trials_as_json(const struct trying *trying, const struct trials *trials)
{
    const struct plan *plan = &trying->plan;
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_begin_lines(&json);
    json_string(&json, "file", plan->path);
    if (plan->named)
        found_write_as_json(&json, &plan->code);
    else
        json_null(&json, "function");
    json_list(&json, "command");
    for (size_t i = 0; i < plan->command.count; i++)
        json_string(&json, NULL, plan->command.at[i]);
    json_end(&json);
    json_string(&json, "directory", plan->directory);
    json_bool(&json, "interrupted", trying->stopped);
    json_list(&json, "trials");
    json_begin_lines(&json);
    for (size_t i = 0; i < trials->count; i++)
        write_trial_as_json(&json, &trials->at[i]);
    json_end(&json);
    json_end(&json);
    putc('\n', stdout);
}

/* Print the trials that this `dyntrace try` has stored, as the trace has them. */
static void print_batch(struct trying *trying)
{
    struct trials all = {0};
    struct trials batch = {0};
    struct arena arena = {0};
    int64_t first = trying->results.count ? trying->results.at[0].trial_id : 0;
    int64_t id = trying->plan.named ? trials_function_id(trying->db, &trying->plan.function) : 0;
    char *ids = id > 0 ? say_print("%lld", (long long)id) : NULL;

    trials_read(trying->db, &arena, ids, &all);
    for (size_t i = 0; i < all.count; i++)
        if (all.at[i].batch == first)
            *list_add(&batch) = all.at[i];
    if (!batch.count && first && ids) {
        say_error("try: %.200s was neither compiled nor called: these are figures of whole runs",
                  trying->plan.function.qualname);
        trials_read(trying->db, &arena, NULL, &batch);
    }
    if (given.json)
        write_trials_as_json(trying, &batch);
    else if (batch.count)
        print_trials(trying, &batch);
    list_free(&all);
    list_free(&batch);
    arena_free(&arena);
    free(ids);
}

/* ---- the command `try` --------------------------------------------------- */

/* Is WORD a setting, NAME=VALUE? Otherwise it is the name of a function. */
static bool is_setting(const char *word)
{
    size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

    return name && word[name] == '=';
}

/* Find the function NAME and the settings to try. If no settings are typed, the remedies for the
 * function are used. Reports an error and returns false if nothing can be tried. */
static bool prepare_plan(struct trying *trying, char *const *files, const char *name,
                         char *const *settings)
{
    struct plan *plan = &trying->plan;
    struct db *db;
    bool found;

    plan->any_owner = given.yes;
    if (given.has_rtol && !given.compare) {
        say_error("try: --rtol bounds what --compare calls close: give --compare as well");
        return false;
    }
    if (!find_is_name_plausible("try", name, files) || !plan_read(plan, files))
        return false;
    db = find_open_traces(files);
    if (!db)
        return false;
    found = plan_find_function(plan, db, name);
    for (; found && *settings; settings++)
        *list_add(&plan->settings) = *settings;
    if (found && !plan->settings.count && given.runs > 1)
        plan_choose_settings(plan, files, db, (size_t)given.runs - 1);
    found = found && !db_has_failed(db);
    db_close(db);
    if (found && (given.calls || given.compare) && !plan->known)
        say_error("try: --calls and --compare need the name of a function");
    else if (found && !plan->settings.count)
        say_error("try: no remedy of `dyntrace why` can be had by a setting: name SETTINGs of "
                  "`dyntrace run --set`");
    else if (found && !plan->chosen && !plan_settings_are_valid(plan))
        return false;
    else
        return found;
    return false;
}

static int try_command(char *const *files, const char *name, char *const *settings, bool print)
{
    static struct trying trying;
    int status = 2;

    bounds_lift_time_limit(); /* no time limit, because a run takes as long as the program */
    trying = (struct trying){.attempts = {.stdin_file = -1,
                                          .timeout_ns = given.timeout_ns,
                                          .calls = given.calls,
                                          .compare = given.compare,
                                          .rtol = given.rtol}};
    if (!prepare_plan(&trying, files, name, settings))
        goto done;
    trying.wanted = count_planned_runs(&trying.plan);
    trying.db = db_open_for_trials(trying.plan.path);
    if (!trying.db || !make_folder(&trying))
        goto done;
    print_plan(&trying);
    if (!ask_to_continue())
        goto done;
    trying.attempts.stdin_file = copy_standard_input(&trying);
    try_all_settings(&trying);
    progress_end(&trying.progress);
    if (print && trying.results.count)
        print_batch(&trying);
    status = trying.stopped                                      ? 128 + SIGINT
             : trying.results.count && !db_has_failed(trying.db) ? 0
                                                                 : 2;
    if (trying.results.count && !trying.results.at[0].works)
        status = 2;
done:
    if (trying.attempts.stdin_file >= 0)
        close(trying.attempts.stdin_file);
    remove_folder(trying.folder);
    list_free(&trying.results);
    db_close(trying.db);
    plan_free(&trying.plan);
    return status;
}

int try_remedies(char *const *files, const char *name, bool table)
{
    return try_command(files, name, (char *const[]){NULL}, table);
}

static int try_main(int count, char **operands)
{
    char *files[2] = {NULL, NULL};
    const char *name = NULL;

    if (count && traces_is_operand(*operands) && !is_setting(*operands))
        files[0] = *operands++;
    if (*operands && !is_setting(*operands))
        name = *operands++;
    for (int i = 0; operands[i]; i++)
        if (!is_setting(operands[i])) {
            say_error("try: %.200s: no setting: it is NAME=VALUE, as for `dyntrace run --set`",
                      operands[i]);
            return 2;
        }
    return try_command(files, name, operands, true);
}

const struct command command_try = {
    .name = "try",
    .summary = "run the recorded command again under settings, and measure",
    .operands = "[TRACE] [FUNC] [SETTING...]",
    .about =
        "Runs the command that TRACE recorded again, with the same arguments, directory and "
        "interpreter and the environment of now: once unchanged, then once under each SETTING of "
        "`dyntrace run --set`. Several settings for one run are one word, with a blank between: "
        "'dynamic=True config.recompile_limit=16'. Without SETTINGs those of `dyntrace why`'s "
        "remedies for FUNC are tried, or without FUNC for the worst functions, and then pairs of "
        "the best.\n\n"
        "It prints what will run and how often, and asks on a terminal. The table has what each "
        "run counted of FUNC, or of the whole program: compiles, recompiles, graph breaks, calls "
        "that ran eagerly, hits, the time in the compiler, the median time of a call after the "
        "last compile, the exit status, and whether it wrote the same. A run that raises, or "
        "writes or returns something else, is never a gain. Results are stored in TRACE.\n\n"
        "What the program reads from standard input is read once, by `try`, and given to each run. "
        "TRACE may be a directory of a job's traces. It is the newest *.db trace here unless "
        "given.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = try_main,
};

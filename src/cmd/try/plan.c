/* cmd/try/plan.c -- finds what `dyntrace try` runs: the recorded command, and the settings to
 * try. See cmd/try/try.h. */
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/run/run.h"
#include "cmd/try/try.h"
#include "lib/say.h"
#include "schema.h"
#include "secret.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/traces.h"
#include "trace/why/why.h"

/* if no function is named, `try` tries the remedies of this many functions */
enum { WORST_FUNCTIONS = 3 };

/* ---- splitting settings into words ---------------------------------------------- */

/* Does TEXT begin with a setting, NAME=VALUE, which may be quoted? */
static bool does_text_begin_with_setting(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    size_t name;

    text += *text == '\'';
    name = strspn(text, letters);
    return name && text[name] == '=';
}

/* Return the word at *TEXT without its quotes, which mean the same as in a shell, and move *TEXT
 * behind the word. */
static char *take_quoted_word(struct arena *arena, const char **text)
{
    const char *at = *text;
    char *word = arena_take(arena, strlen(at) + 1);
    char *end = word;
    bool quoted = false;

    for (; *at && (quoted || *at != ' '); at++) {
        if (*at == '\'')
            quoted = !quoted;
        else if (*at == '\\' && !quoted && at[1])
            *end++ = *++at;
        else
            *end++ = *at;
    }
    *text = at;
    return word;
}

/* Return the setting at *TEXT, and move *TEXT behind it. A setting ends at a blank if another
 * setting follows. Returns NULL if no setting is left. */
static const char *take_setting(struct arena *arena, const char **text)
{
    const char *begin = *text + strspn(*text, " ");
    const char *end = begin;

    *text = begin;
    if (!*begin)
        return NULL;
    if (*begin == '\'')
        return take_quoted_word(arena, text);
    do {
        end += strcspn(end, " ");
        *text = end;
        end += strspn(end, " ");
    } while (*end && !does_text_begin_with_setting(end));
    return arena_text(arena, begin, (size_t)(*text - begin));
}

struct words settings_split_text(struct arena *arena, const char *text)
{
    struct words words = {0};
    const char *word;

    while ((word = take_setting(arena, &text)))
        *list_add(&words) = word;
    return words;
}

/* Return the strings of JSON, an array of strings. */
static struct words read_json_words(struct plan *plan, struct db *db, const char *json)
{
    struct words words = {0};
    struct query *row =
        db_query(db, "SELECT value FROM json_each(iif(json_valid(?1), ?1, '[]')) ORDER BY id");

    query_bind_text(row, 1, json ? json : "[]");
    while (query_step(row)) {
        size_t bytes;
        const char *word = query_whole_value(row, 0, &bytes);
        *list_add(&words) = arena_text(&plan->arena, word, bytes);
    }
    query_close(row);
    return words;
}

/* ---- reading the recorded command from a trace --------------------------- */

static const char *read_meta_text(struct plan *plan, struct db *db, const char *key)
{
    char *text = db_meta(db, key);

    return text ? arena_keep(&plan->arena, text) : NULL;
}

/* Read from the trace which options and settings the recording had. */
static void read_recorded_options(struct plan *plan, struct db *db)
{
    struct words settings = read_json_words(plan, db, read_meta_text(plan, db, "settings"));

    plan->options = read_json_words(plan, db, read_meta_text(plan, db, "options"));
    for (size_t i = 0; i < plan->options.count; i++)
        if (!strcmp(plan->options.at[i], "--python"))
            plan->interpreted = true;
    for (size_t i = 0; i < settings.count; i++) {
        *list_add(&plan->options) = "--set";
        *list_add(&plan->options) = settings.at[i];
    }
    list_free(&settings);
}

/* Is DB the trace of one of several ranks, without the launcher that would start all of them? */
static bool is_rank_without_launcher(struct plan *plan, struct db *db)
{
    return db_meta_integer(db, "world_size", 1) > 1 && !plan->launcher.count;
}

/* Return why the command of the trace DB cannot run again, or NULL if it can. */
static const char *find_reason_not_to_run(struct plan *plan, struct db *db)
{
    char *state = db_meta(db, "state");
    char *imported = db_meta(db, "imported_from");
    char *merged = db_meta(db, "merged_from");
    const char *first = plan->command.count ? plan->command.at[0] : "";
    const char *why = NULL;
    struct stat status;

    if (imported)
        why = "was made of torch's logs, which do not say how to run the program again";
    else if (merged)
        why = "was merged: try one of the traces that it was made of, or their directory";
    else if (state && !strcmp(state, "recording"))
        why = "is still being recorded: try it when that has ended";
    else if (!plan->command.count)
        why = "was recorded with --no-argv, so its command is not known; record it without";
    else if (db_meta_integer(db, "command_redacted", 0))
        why = "has " SECRET_WORD " in its command where a secret was, so the command cannot run "
              "again: record it with --no-redact, or pass the secret in the environment";
    else if (!strcmp(first, "dyntrace.record"))
        why = "was recorded by dyntrace.record() from inside a program: record that with "
              "`dyntrace run`";
    else if (!plan->directory)
        why =
            "was recorded by an older dyntrace, which did not keep the directory: record it again";
    else if (stat(plan->directory, &status) || !S_ISDIR(status.st_mode))
        why = arena_print(&plan->arena, "ran in %s, which is not there", plan->directory);
    else if (is_rank_without_launcher(plan, db))
        why = "is that of a rank whose launcher is not known (torchrun and mpirun are, on one "
              "machine): record the whole job by `dyntrace run torchrun ...`";
    free(state);
    free(imported);
    free(merged);
    return why;
}

/* Can results be stored in the file PATH? A file that nobody may write is meant to stay unchanged,
 * although root could write it. */
static bool is_writable(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && status.st_mode & 0222 && access(path, W_OK) == 0;
}

static bool is_file_of_user(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && status.st_uid == geteuid();
}

bool plan_read(struct plan *plan, char *const *files)
{
    struct traces traces = traces_list(files);
    const char *newest = NULL;
    struct db *db = NULL;
    const char *why = NULL;

    if (traces.paths.count)
        plan->path = arena_print(&plan->arena, "%s", traces.paths.at[0]);
    if (!traces.failed && (plan->path || !*files))
        db = db_open(plan->path);
    traces_free(&traces);
    if (!db)
        return false;
    newest = db_get_path(db);
    plan->path = arena_print(&plan->arena, "%s", newest);
    plan->command_json = read_meta_text(plan, db, "command");
    plan->command = read_json_words(plan, db, plan->command_json);
    plan->launcher = read_json_words(plan, db, read_meta_text(plan, db, "launcher"));
    plan->directory = read_meta_text(plan, db, "directory");
    plan->executable = read_meta_text(plan, db, "executable");
    plan->values_get_session_option =
        prose_are_texts_equal(read_meta_text(plan, db, "values"), "all");
    plan->job = plan->launcher.count ||
                db_integer(db, 0, "SELECT COUNT(DISTINCT rank) > 1 FROM process WHERE rank >= 0");
    read_recorded_options(plan, db);
    why = find_reason_not_to_run(plan, db);
    if (!why && !plan->any_owner && !is_file_of_user(plan->path))
        why = "belongs to another user, and its command would run as you: --yes runs it";
    if (why && !db_has_failed(db))
        say_error("try: %s: %s", plan->path, why);
    else if (!why && !is_writable(plan->path))
        say_error("try: %s: cannot be written, so results have no place: copy the trace to where "
                  "it can be",
                  why = plan->path);
    why = db_has_failed(db) ? plan->path : why;
    db_close(db);
    return !why;
}

/* ---- choosing the function and the settings ------------------------------ */

/* Return the file, name and line of FOUND. They identify the function in the trace of any run. */
static struct trial_function make_trial_function(struct plan *plan, const struct found_code *found)
{
    return (struct trial_function){
        .filename = arena_print(&plan->arena, "%s", found->filename),
        .qualname = arena_print(&plan->arena, "%s", found->qualname),
        .first_line = found->first_line,
    };
}

bool plan_find_function(struct plan *plan, struct db *db, const char *name)
{
    plan->named = name;
    plan->given_name = name;
    if (name) {
        plan->known = find_code(db, name, &plan->code, stderr, false) == FIND_ONE;
    } else {
        struct query *worst = db_query(db, schema_statement("trials/worst"));
        if (query_step(worst)) {
            const char *where = query_text(worst, 0, NULL);
            plan->known = find_code(db, where, &plan->code, stderr, false) == FIND_ONE;
        }
        query_close(worst);
    }
    if (plan->known)
        plan->function = make_trial_function(plan, &plan->code);
    return plan->known || !name;
}

static bool has_setting(const struct plan *plan, const char *setting)
{
    for (size_t i = 0; i < plan->settings.count; i++)
        if (!strcmp(plan->settings.at[i], setting))
            return true;
    return false;
}

/* Add settings from why's remedies for one function, until the plan has MOST settings. NAME names
 * the function, with its file and line. */
static void add_remedy_settings(struct plan *plan, char *const *files, const char *name,
                                size_t most)
{
    struct why why = {.db = find_open_traces(files)};
    bool found = why.db && find_code(why.db, name, &why.code, stderr, false) == FIND_ONE;

    if (found) {
        why_gather_facts(&why);
        why_add_remedies(&why);
        why_predict_remedies(&why);
    }
    for (size_t i = 0; found && i < why.remedies.count; i++) {
        const char *setting = why.remedies.at[i].setting;
        bool wanted = setting && plan->settings.count < most && !has_setting(plan, setting);
        if (wanted)
            *list_add(&plan->settings) = arena_print(&plan->arena, "%s", setting);
    }
    if (why.db)
        why_free(&why);
}

void plan_choose_settings(struct plan *plan, char *const *files, struct db *db, size_t most)
{
    struct words names = {0};

    plan->chosen = true;
    if (plan->named) {
        *list_add(&names) = arena_print(&plan->arena, "%s", plan->given_name);
    } else {
        db_rows(row, db, schema_statement("trials/worst")) if (names.count < WORST_FUNCTIONS) *
            list_add(&names) = arena_print(&plan->arena, "%s", query_text(row, 0, NULL));
    }
    for (size_t i = 0; i < names.count; i++)
        add_remedy_settings(plan, files, names.at[i], most);
    list_free(&names);
}

/* Store the interpreter that PLAN's command runs in T. Stores none if the command is not an
 * interpreter, or if a launcher starts the command. */
static void find_interpreter_of_command(const struct plan *plan, struct program *t)
{
    const char *python = NULL;
    const char *executed = plan->executable ? strrchr(plan->executable, '/') : NULL;

    for (size_t i = 0; i + 1 < plan->options.count; i++)
        if (!strcmp(plan->options.at[i], "--python"))
            python = plan->options.at[i + 1];
    if (!python && executed && !strncmp(executed, "/python", 7))
        python = plan->executable;
    if (plan->launcher.count)
        python = NULL;
    t->python = python;
    snprintf(t->path, sizeof t->path, "%s", prose_text_or_other(python, ""));
}

bool plan_settings_are_valid(const struct plan *plan)
{
    struct program program = {0};
    struct arena arena = {0};
    bool fit = true;

    find_interpreter_of_command(plan, &program);
    for (size_t i = 0; i < plan->settings.count; i++) {
        struct words settings = settings_split_text(&arena, plan->settings.at[i]);
        bool many = settings.count > SETTINGS_MAX;
        struct session_options options = {
            .settings = {settings.at, many ? SETTINGS_MAX : settings.count},
        };
        if (!settings_are_valid(&program, &options, "try: "))
            fit = false;
        list_free(&settings);
    }
    arena_free(&arena);
    return fit;
}

void plan_free(struct plan *plan)
{
    list_free(&plan->command);
    list_free(&plan->options);
    list_free(&plan->launcher);
    list_free(&plan->settings);
    found_code_free(&plan->code);
    arena_free(&plan->arena);
}

/* cmd/sql.c -- `dyntrace sql`: runs SQL on traces.
 *
 * A query comes from the command line, by name from schemas/queries/, from standard input, or from
 * a prompt with history and completion. A query can only read (trace/db.h). Ctrl-C ends the running
 * query, not the prompt. */
#include <editline/readline.h>
#include <errno.h>
#include <unistd.h>

#include "cmd/prompt.h"
#include "command.h"
#include "lib/bounds.h"
#include "lib/list.h"
#include "lib/near.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/sql_words.h"
#include "trace/traces.h"

enum {
    /* the most bytes of SQL that are read from standard input; trace/db.c has the same limit */
    STDIN_MAX = 1 << 20,
    HISTORY_LINES = 1000,
};

static struct {
    bool list, json, arrays, headless;
    const char *print, *then, *bind;
} given;

static const struct option options[] = {
    {"list", .read = option_flag, .to = &given.list,
     .help = "the named queries and what they answer"},
    {"print", .value = "NAME", .read = option_text, .to = &given.print,
     .help = "the text of a named query, of a statement of the sources (report/functions), or of "
             "all `views`"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "an array of objects instead of a table or TSV"},
    {"arrays", .read = option_flag, .to = &given.arrays,
     .help = "JSON for a program that reads row by row: a line with the array of the column names, "
             "then an array for each row; a blob is an object with its `hex`"},
    {"bind", .value = "JSON", .read = option_text, .to = &given.bind,
     .help = "an array, such as '[\"f\", 3]': the values of the query's parameters ?1, ?2, ..."},
    TABLE_WIDE_OPTION,
    {"no-header", .read = option_flag, .to = &given.headless, .help = "no line of column names"},
    {"then", .value = "QUERY", .read = option_text, .to = &given.then,
     .help = "of several traces: run this over the rows of all, which are the table `result`, with "
             "the column `trace` before those of the query"},
    OPTION_END,
};

struct session {
    struct db *db; /* owned */
    enum table_format format;
    const char *bind; /* borrowed: the value of --bind, or NULL */
    /* Used by the prompt, both owned. pending: the lines typed so far of an unfinished statement.
     * history: the path of the history file, or NULL. */
    char *pending, *history;
};

/* ---- running SQL on one trace -------------------------------------------- */

/* Print the rows of QUERY, and close it. Returns false after reporting an error. */
static bool print_result(struct session *session, struct query *query)
{
    struct progress progress = progress_begin("running");
    struct table *table = NULL;
    bool any;
    bool ok = true;

    /* show the progress line until the first row is printed */
    db_set_progress_callback(session->db, progress_spin, &progress);
    prompt_set_running(session->db);
    any = query_step(query);
    db_set_progress_callback(session->db, NULL, NULL);
    progress_end(&progress);
    if (query_columns(query) && !db_has_failed(session->db)) {
        table = result_open(stdout, session->format, query, NULL);
        if (given.headless)
            table_omit_headings(table);
        for (; any; any = query_step(query))
            result_put_row(table, query);
        ok = table_close(table);
    }
    prompt_set_running(NULL);
    query_close(query);
    return out_flush() && ok && !db_has_failed(session->db);
}

static enum table_format choose_format(void)
{
    return given.arrays ? TABLE_ARRAYS : table_format(stdout, given.json);
}

/* Bind the items of BIND, a JSON array, to the parameters of QUERY. If BIND is NULL, binds nothing.
 * Reports an error and returns false if BIND is not an array, or if QUERY has a different number of
 * parameters. */
static bool bind_json_values(struct db *db, struct query *query, const char *bind)
{
    int wanted = query_parameters(query);
    int count = 0;
    /* json_each gives each item an integer as its key only if the value is an array */
    bool is_array = true;
    struct query *values;

    if (!bind)
        return true;
    values =
        db_query(db, "SELECT typeof(key), value FROM json_each(iif(json_valid(?1), ?1, 'null'))");
    query_bind_text(values, 1, bind);
    while (query_step(values)) {
        is_array = is_array && !strcmp(query_text(values, 0, NULL), "integer");
        query_bind_column(query, ++count, values, 1);
    }
    query_close(values);
    if (!is_array)
        say_error("sql: --bind %.100s: not a JSON array", bind);
    else if (count != wanted)
        say_error("sql: the query has %d parameter%s, and the values given are %d", wanted,
                  wanted == 1 ? "" : "s", count);
    return is_array && count == wanted;
}

/* Bind the values of --bind to the parameters of QUERY, a statement of the user's SQL. FIRST: QUERY
 * is the first statement. --arrays and --bind allow only one statement. Reports an error and
 * returns false if QUERY cannot be run. */
static bool bind_statement(struct session *session, struct query *query, bool first)
{
    if (first || !(given.arrays || session->bind))
        return bind_json_values(session->db, query, session->bind);
    say_error("sql: one statement at a time, please: --arrays and --bind are for one");
    return false;
}

/* Run the statements of SQL one after the other until one fails. A line that begins with a dot is a
 * command. */
static bool run_sql_statements(struct session *session, const char *sql)
{
    bool first = true;
    bool ok = true;

    db_allow_retry(session->db);
    while (ok && *(sql += strspn(sql, " \t\r\n;"))) {
        bool dot = *sql == '.';
        char *named = dot ? sql_name_of_line(sql) : NULL;
        const char *rest = sql + strcspn(sql, "\n");
        struct query *query = dot && !named ? NULL
                                            : db_query_next(session->db, named ? named : sql,
                                                            dot ? &(const char *){0} : &rest);
        ok = !db_has_failed(session->db) && (!dot || named);
        if (dot && !named)
            say_error("%.*s: no such command; .help lists them", (int)strcspn(sql, " ;\n"), sql);
        if (query)
            ok = bind_statement(session, query, first);
        if (ok && query && !first && session->format != TABLE_JSON)
            putchar('\n');
        first = first && !query;
        if (query && ok)
            ok = print_result(session, query);
        else
            query_close(query);
        free(named);
        sql = rest;
    }
    return ok;
}

/* ---- running SQL on several traces --------------------------------------- */

/* Create the table `result` in ALL, with the columns of QUERY. Returns the statement that inserts a
 * row, which the caller closes with query_close. */
static struct query *create_result_table(struct db *all, struct query *query)
{
    struct arena names = {0};
    char *made = arena_print(&names, "CREATE TABLE result(trace");
    char *put = arena_print(&names, "INSERT INTO result VALUES (?1");
    struct query *to = NULL;

    for (int i = 0; i < query_columns(query); i++) {
        char *name = arena_print(&names, "%s", query_name(query, i));
        bool taken = !strcasecmp(name, "trace");
        for (int before = 0; before < i; before++)
            taken = taken || !strcasecmp(name, query_name(query, before));
        for (char *quote = name; (quote = strchr(quote, '"'));)
            *quote = '\'';
        made = arena_print(&names, taken ? "%s, \"%s:%d\"" : "%s, \"%s\"", made, name, i + 1);
        put = arena_print(&names, "%s, ?%d", put, i + 2);
    }
    if (db_run(all, arena_print(&names, "%s); BEGIN", made)))
        to = db_query(all, arena_print(&names, "%s)", put));
    arena_free(&names);
    return to;
}

/* Run SQL on DB and add its rows to the table `result` of ALL. *TO is the statement that inserts a
 * row; the call for the first trace creates it. Returns false if SQL is not a query, or if a row
 * could not be added. */
static bool add_rows_to_result(struct db *all, struct query **to, struct db *db, const char *sql)
{
    const char *rest = "";
    struct query *query = db_query_next(db, sql, &rest);
    bool fits = query && query_columns(query) && !rest[strspn(rest, " \t\r\n;")];

    if (!fits && !db_has_failed(db))
        say_error("sql: several traces are asked one statement that has rows");
    fits = fits && bind_json_values(db, query, given.bind);
    if (fits && !*to)
        *to = create_result_table(all, query);
    query_bind_text(*to, 1, db_get_path(db));
    while (fits && query_step(query)) {
        query_bind_row(*to, 2, query, query_columns(query));
        query_execute(*to);
        fits = !db_has_failed(all);
    }
    if (fits && db_has_failed(db))
        traces_count_left_out(1);
    query_close(query);
    return fits;
}

/* Run the query SQL on each of TRACES, then print all rows. Returns the exit status. */
static int query_traces(struct traces *traces, const char *sql)
{
    struct session session = {.format = choose_format(),
                              .db = db_open_scratch("sql", "PRAGMA cache_size = -65536")};
    struct progress progress = progress_begin("running");
    struct query *to = NULL;
    bool ok = true;

    for (struct db *db; ok && (db = traces_open_next(traces)); db_close(db)) {
        progress_tick(&progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        ok = add_rows_to_result(session.db, &to, db, sql);
    }
    progress_end(&progress);
    ok = ok && to;
    query_close(to);
    if (ok)
        ok = run_sql_statements(&session, given.then ? given.then : "SELECT * FROM result");
    db_close(session.db);
    return ok ? 0 : 2;
}

/* ---- reading SQL from a prompt ------------------------------------------- */

static const char *const dot_commands[] = {"exit", "help", "queries", "quit", "schema", "tables"};

/* The words that Tab completes, collected once when the prompt starts. */
static struct sql_words words;
static size_t next_word;

static char *match_sql_word(const char *text, int again)
{
    return sql_match_words(text, words.words.at, words.words.count, &next_word, again);
}

static char *match_dot_command(const char *text, int again)
{
    return sql_match_words(text, dot_commands, array_count(dot_commands), &next_word, again);
}

static char **complete_word(const char *text, int start, int end)
{
    rl_attempted_completion_over = 1; /* no file names */
    return rl_completion_matches(text,
                                 start == 0 && text[0] == '.' ? match_dot_command : match_sql_word);
}

/* Add STATEMENT to the history. Its lines are joined into one, unless it has a `--` comment, which
 * would then hide what follows. */
static void remember_statement(const struct session *session, char *statement)
{
    if (!strstr(statement, "--"))
        for (char *p = statement; *p; p++)
            if (*p == '\n')
                *p = ' ';
    prompt_remember(statement);
    if (session->history)
        write_history(session->history);
}

/* Run LINE if it completes a statement or is a command, otherwise keep it until the statement is
 * complete. Returns false if the user leaves the prompt. */
static bool process_line(struct session *session, char *line)
{
    char *named = *session->pending ? NULL : sql_name_of_line(line);
    char *joined;

    if (!*session->pending && !line[strspn(line, "; \t")])
        return true; /* nothing is to be done for an empty line */
    if (!*session->pending && (line[0] == '.' || named)) {
        remember_statement(session, line);
        if (!strncmp(line, ".quit", 5) || !strncmp(line, ".exit", 5))
            return false;
        run_sql_statements(session, line[0] == '.' ? line : named);
        free(named);
        return true;
    }
    joined = say_print("%s%s%s", session->pending, *session->pending ? "\n" : "", line);
    free(session->pending);
    session->pending = joined;
    if (db_complete(joined)) {
        run_sql_statements(session, joined);
        remember_statement(session, joined);
        *joined = 0;
    }
    return true;
}

static void run_prompt(struct session *session)
{
    bool go_on = true;

    session->pending = strdup("");
    session->history = state_file_path("sql_history");
    prompt_begin();
    rl_completer_word_break_characters = " \t\n\"'`<>=;,|&(){}+*/";
    rl_attempted_completion_function = complete_word;
    stifle_history(HISTORY_LINES);
    if (session->history)
        read_history(session->history);
    sql_words_gather(&words, session->db);

    fputs("dyntrace sql on ", stdout);
    prose_print_text(stdout, db_get_path(session->db), SIZE_MAX - 1);
    puts(" (read only). \".help\" lists the commands.");
    while (go_on) {
        char *line = prompt_read_line(*session->pending ? "   ...> " : "dyntrace> ");
        if (prompt_was_interrupted()) { /* the user pressed Ctrl-C: discard the typed line */
            *session->pending = 0;
        } else if (!line) {
            putchar('\n');
            go_on = false;
        } else {
            go_on = process_line(session, line);
        }
        free(line);
    }
    free(session->pending);
    free(session->history);
    sql_words_free(&words);
}

/* ---- the command `sql` --------------------------------------------------- */

/* Read all of standard input. The caller frees the text. Returns NULL after reporting an error. */
static char *read_standard_input(void)
{
    char *text = calloc(1, STDIN_MAX + 2);
    size_t bytes = fread(text, 1, STDIN_MAX + 1, stdin);
    const char *why = ferror(stdin)            ? strerror(errno)
                      : bytes > STDIN_MAX      ? "too long for a query"
                      : memchr(text, 0, bytes) ? "holds a NUL byte, so is no SQL"
                                               : NULL;

    if (!why)
        return text;
    say_error("stdin: %s", why);
    free(text);
    return NULL;
}

/* Return "; did you mean hot-functions?" for the unknown query NAME, or ";" if no name is
 * similar. */
static const char *suggest_query(struct near *near, const char *name)
{
    *near = near_begin(name);
    for (int i = 0; i < schema_query_count; i++)
        near_offer_name(near, schema_queries[i].name);
    return near_make_question(near, ";");
}

/* Return the SQL that TEXT stands for: TEXT itself if it is SQL, or the query that TEXT names.
 * The caller frees it. If there is no such query, reports an error that ends with WHY and
 * returns NULL. */
static char *find_sql_of_text(const char *text, const char *why)
{
    bool is_name = *text && *text != '.' && !strpbrk(text, " \t\n;(");
    char *named = *text == '.' ? NULL : sql_name_of_line(text);
    struct near near;

    if (named || !is_name)
        return named ? named : strdup(text);
    say_error("%s: %s%s `dyntrace sql --list` lists the named ones", text, why,
              suggest_query(&near, text));
    return NULL;
}

/* Read standard input, which is SQL or the name of a query, and return the SQL (find_sql_of_text).
 * The caller frees it. */
static char *find_sql_of_standard_input(void)
{
    char *typed = read_standard_input();
    char *sql = typed ? find_sql_of_text(typed, "no such query") : NULL;

    free(typed);
    return sql;
}

static bool is_file(const char *argument)
{
    return traces_is_operand(argument) || access(argument, F_OK) == 0;
}

/* Run the SQL in TEXT on FILES. If TEXT is NULL, read SQL from a prompt or from standard input.
 * Returns the exit status. */
static int query_given_files(char **files, const char *text)
{
    struct session session = {.format = choose_format(), .bind = given.bind};
    struct traces traces = traces_list_as_one(files);
    char *typed = NULL;
    int status = 2;

    if (traces.failed || (*files && !traces.paths.count))
        return 2;
    bounds_lift_time_limit(); /* do not limit the time of queries, because Ctrl-C can end a query */
    if (!traces.given && given.then) {
        say_error("sql: --then is for the rows of several traces");
    } else if (traces.given) {
        if (text || (text = typed = find_sql_of_standard_input()))
            status = query_traces(&traces, text);
    } else if ((session.db = given.list
                                 ? db_open_scratch("sql", "")
                                 : db_open(traces.paths.count ? traces.paths.at[0] : NULL))) {
        prompt_catch_sigint();
        bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
        bool for_program = given.json || given.arrays;
        if (!text && !for_program && terminal) {
            run_prompt(&session);
            status = 0;
        } else if (text || (text = typed = find_sql_of_standard_input())) {
            bool ok = run_sql_statements(&session, text);
            status = prompt_was_interrupted() ? 130 : ok ? 0 : 2;
        }
        db_close(session.db);
    }
    traces_free(&traces);
    free(typed);
    return status;
}

/* Print the SQL of the query NAME. Returns the exit status. */
static int print_sql_of_query(const char *name)
{
    const char *text = sql_find_statement(name);
    size_t length = text ? strlen(text) : 0;
    bool whole = length && text[length - 1] == '\n';
    struct near near;

    if (!text) {
        say_error("sql: --print %s: no such query%s `dyntrace sql --list` lists the named ones",
                  name, suggest_query(&near, name));
        return 2;
    }
    fputs(text, stdout);
    if (!whole)
        fputs(";\n", stdout);
    return out_flush() ? 0 : 2;
}

static int sql_main(int count, char **operands)
{
    bool asked = count && !is_file(operands[count - 1]);
    const char *text = asked ? operands[count - 1] : NULL;
    char *sql = NULL;
    int status;

    if (given.print)
        return print_sql_of_query(given.print);
    for (int i = 0; i + 1 < count; i++)
        if (!is_file(operands[i])) {
            say_error("sql: %s: no such file; the query stands last, in quotes", operands[i]);
            return 2;
        }
    if (text && !(sql = find_sql_of_text(text, "no such file and no such query")))
        return 2;
    if (asked)
        operands[count - 1] = NULL;
    status = query_given_files(operands, given.list ? ".queries" : sql);
    free(sql);
    return status;
}

const struct command command_sql = {
    .name = "sql",
    .summary = "ask a trace in SQL, by a named query or at a prompt",
    .operands = "[FILE...] [QUERY|NAME]",
    .about = "Runs SQL on a trace, which is only read. FILE is the newest *.db trace here unless "
             "given. Without a query: a prompt with history and completion on a terminal, else SQL "
             "from standard input. Several traces are asked one after the other, and their rows "
             "have a column `trace`.",
    .options = options,
    .more = "  dyntrace sql hot-functions\n"
            "  dyntrace sql app.db \"SELECT * FROM frames LIMIT 10\"\n"
            "  dyntrace sql ranks/ \"SELECT COUNT(*) AS n FROM recompiles\" --then \"SELECT trace, "
            "n FROM result ORDER BY n DESC\"",
    .operands_most = OPERANDS_ANY,
    .run = sql_main,
};

/* trace/find_code.c -- finds the function that a user's words name. See trace/find_code.h. */
#include "trace/find_code.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/json.h"
#include "lib/list.h"
#include "lib/near.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/traces.h"

enum {
    LISTED = 40, /* if a name fits several functions, at most this many are listed */
    /* the statements find/functions and find/worst begin with this many columns that are printed;
     * their other columns, which are named below, are only read */
    LISTED_COLUMNS = 6,
    COMPILES = LISTED_COLUMNS,
    QUALNAME,
    KIND,
    FILE_NAME,
    LINE,
    IDS,
    CODE_OBJECTS,
    PROCESSES,
    IS_LABEL,
    FUNCTIONS,
};

/* ---- reading one function, or printing a list of several ----------------- */

/* Read the function in the current row of the statement find/functions. Ids and names are read
 * whole, because the ids become part of SQL, and JSON has the names. */
static struct found_code read_found_function(struct query *query, const char *name)
{
    return (struct found_code){
        .compiles = query_integer(query, COMPILES),
        .qualname = strdup(query_whole_value(query, QUALNAME, NULL)),
        .kind = strdup(query_text(query, KIND, NULL)),
        .filename = strdup(query_whole_value(query, FILE_NAME, NULL)),
        .first_line = query_integer(query, LINE),
        .ids = strdup(query_whole_value(query, IDS, NULL)),
        .code_objects = query_integer(query, CODE_OBJECTS),
        .processes = query_integer(query, PROCESSES),
        .label = query_integer(query, IS_LABEL) ? strdup(name) : NULL,
    };
}

void found_code_free(struct found_code *found)
{
    free(found->filename);
    free(found->qualname);
    free(found->kind);
    free(found->ids);
    free(found->label);
    *found = (struct found_code){0};
}

void find_bind_ids(struct query *query, int parameter, const struct found_code *found)
{
    char *array = say_print("[%s]", found->ids);

    query_bind_text(query, parameter, array);
    free(array);
}

static int compare_ids(const void *a, const void *b)
{
    return list_compare_numbers(*(const int64_t *)a, *(const int64_t *)b);
}

struct found_ids found_ids_read(struct db *db, const struct found_code *found)
{
    struct found_ids ids = {0};
    const char *at = found->ids;

    while (*at) {
        char *end;
        *list_add(&ids.codes) = strtoll(at, &end, 10);
        at = end + strspn(end, ", ");
    }
    list_sort(&ids.codes, compare_ids);
    db_rows(query, db, schema_statement("find/same"))
    {
        int64_t code_id = query_integer(query, 0);
        int64_t first = query_integer(query, 1);
        if (code_id != first)
            *map_put(&ids.same, code_id) = first;
    }
    return ids;
}

bool found_ids_has(const struct found_ids *ids, int64_t code_id)
{
    return list_has(&ids->codes, code_id);
}

void found_ids_free(struct found_ids *ids)
{
    list_free(&ids->codes);
    map_free(&ids->same);
}

void found_write_as_json(struct json *json, const struct found_code *found)
{
    json_object(json, "function");
    json_string(json, "qualname", found->qualname);
    json_string(json, "filename", found->filename);
    json_integer(json, "first_line", found->first_line);
    json_string(json, "kind", found->kind);
    json_list(json, "code_ids");
    json_raw(json, NULL, found->ids, strlen(found->ids));
    json_end(json);
    json_integer(json, "code_objects", found->code_objects);
    json_end(json);
}

/* Print a list of COUNT functions: those in the current row of QUERY and in the rows after it. */
static void print_function_list(struct query *query, int64_t count, const char *name,
                                const char *heading, FILE *out, bool json)
{
    struct json j = {.out = out};
    struct table *table;
    const char *columns[LISTED_COLUMNS];
    int listed = 0;

    for (int i = 0; i < LISTED_COLUMNS; i++)
        columns[i] = query_name(query, i);
    if (json) {
        json_object(&j, NULL);
        json_begin_lines(&j);
        json_string(&j, "name", name);
        json_key(&j, "matches");
    } else {
        prose_print_text(out, heading, 300);
        fputs(count ? "\n\n" : "\n", out);
    }
    if (!json && !count)
        return;
    table = table_open(out, table_format(out, json), LISTED_COLUMNS, columns);
    for (bool any = count; any; any = ++listed < LISTED && query_step(query))
        for (int i = 0; i < LISTED_COLUMNS; i++)
            result_put_cell(table, query, i);
    table_close(table);
    if (json) {
        json_integer(&j, "match_count", count);
        json_end(&j);
        putc('\n', out);
    } else if (count > LISTED) {
        fprintf(out, "(%d of %" PRId64 ")\n", LISTED, count);
    }
}

/* ---- reporting that no function has the name ----------------------------- */

/* Give NEAR the names of all functions, so that it can suggest the most similar ones. */
static void offer_functions(struct db *db, struct near *near)
{
    db_rows(query, db, schema_statement("find/names"))
    {
        near_offer_name(near, query_text(query, 0, NULL));
    }
}

/* Is NAME an existing file? Then the user may have meant a trace whose name does
 * not end in ".db". */
static bool is_file(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 && S_ISREG(status.st_mode);
}

/* Report that no function is called NAME. The message names the compiled function that contains
 * NAME's code, if torch has inlined NAME, or the most similar names. */
static void report_unknown_function(struct db *db, const char *name)
{
    const char *last = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
    struct query *query = db_query(db, schema_statement("find/taker"));
    bool is_label = strchr(name, '/') && !name[strspn(name, "0123456789_/")];
    char *left_out = doubts_describe_frames_left_out(db);

    query_bind_text(query, 1, last);
    if (is_file(name)) {
        say_error("%.200s: a file, but no trace by its name, which would end in .db, and no such "
                  "function in %s",
                  name, db_get_path(db));
    } else if (!strcmp(last, "db")) {
        say_error("%.200s: no such file, and no such function in %s", name, db_get_path(db));
    } else if (*last && query_step(query)) {
        say_error(
            "%.200s: no call of it is in %s: torch has taken it into the code of %.200s, see there",
            name, db_get_path(db), query_text(query, 0, NULL));
    } else {
        struct near near = near_begin(name);
        const char *help;
        offer_functions(db, &near);
        help = near_make_question(&near, "");
        if (is_label)
            help = "; `dyntrace sql compiles` lists them";
        else if (!*help && strrchr(name, ':'))
            help = "; FILE:LINE names one by its line";
        /* if a query failed, which has been reported, the function may still exist */
        if (!db_has_failed(db))
            say_error("%.200s: no %s in %s%s%s%s", name,
                      is_label ? "compile or cache entry has this label" : "such function",
                      db_get_path(db), help, left_out ? "; left out: " : "",
                      left_out ? left_out : "");
    }
    query_close(query);
    free(left_out);
}

enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out,
                           bool json)
{
    struct query *query = db_query(db, schema_statement(name ? "find/functions" : "find/worst"));
    enum find_result result = FIND_NONE;
    int64_t count;
    char *heading;
    bool any;

    *found = (struct found_code){0};
    if (name)
        query_bind_text(query, 1, name);
    any = query_step(query);
    count = any ? query_integer(query, FUNCTIONS) : 0;
    if (any ? count > 1 : !name && !db_has_failed(db)) {
        result = name ? FIND_SEVERAL : FIND_LISTED;
        heading = name ? say_print("%.200s is several functions; name one by its qualified name, "
                                   "by FILE:LINE or by FILE:LINE:NAME",
                                   name)
                       : strdup(any ? "What to ask, the worst first: `dyntrace why FUNC`"
                                    : "Nothing was compiled again, broke, or ran as Python though "
                                      "compiled code was wanted");
        print_function_list(query, count, name, heading, out, json);
        free(heading);
    } else if (!any) {
        if (!db_has_failed(db))
            report_unknown_function(db, name);
    } else {
        result = FIND_ONE;
        *found = read_found_function(query, name);
    }
    query_close(query);
    return result;
}

bool find_single_function(struct db *db, const char *name, struct found_code *found)
{
    struct query *query = db_query(db, schema_statement("find/functions"));
    bool is_only;

    query_bind_text(query, 1, name);
    is_only = query_step(query) && query_integer(query, FUNCTIONS) == 1;
    *found = is_only ? read_found_function(query, name) : (struct found_code){0};
    query_close(query);
    return is_only;
}

/* ---- operands of a command that name a function -------------------------- */

bool find_split_operands(const char *command, int count, char **given, const char **name,
                         char ***files)
{
    bool here = count > 0;
    bool turned;

    for (int i = 0; i < count; i++)
        here = here && traces_is_operand(given[i]) &&
               (strpbrk(given[i], "*?[") || access(given[i], F_OK) == 0);
    if (count == 0 || !*given[0]) {
        say_error("%s: needs the name of a function; `dyntrace %s --help` tells more", command,
                  command);
        return false;
    }
    /* the user gave the traces first and the function last, as other commands want it */
    turned = count > 1 && traces_is_operand(given[0]) && !traces_is_operand(given[count - 1]);
    for (int i = turned ? 0 : 1; !here && i < count - turned; i++)
        if (i > 1 && !traces_is_operand(given[i]) && access(given[i], F_OK) != 0) {
            say_error("%s: %s: one function at a time", command, given[i]);
            return false;
        }
    *name = here ? NULL : given[turned ? count - 1 : 0];
    *files = given + (here || turned ? 0 : 1);
    if (turned)
        given[count - 1] = NULL;
    return find_is_name_plausible(command, *name, *files);
}

bool find_is_name_plausible(const char *command, const char *name, char *const *files)
{
    bool is_alone = name && !*files;
    bool is_path = is_alone && (is_file(name) || traces_is_operand(name));
    struct db *db;

    if (!is_path || db_is_trace_in_directory())
        return true;
    db = db_open(name); /* if NAME is missing or is not a trace, db_open() reports that */
    if (db)
        say_error("%.200s: a trace whose name does not end in .db is named after a function: "
                  "`dyntrace %s FUNC %.200s`",
                  name, command, name);
    db_close(db);
    return false;
}

struct db *find_open_traces(char *const *files)
{
    struct db *db = traces_open(files, MERGE_FRAMES);

    if (db)
        db_run(db, "BEGIN");
    return db;
}

int find_exit_status(struct db *db, enum find_result result)
{
    return db_has_failed(db) || result == FIND_NONE ? 2 : result == FIND_SEVERAL;
}

/* trace/functions.c -- SQL functions of the statements in schemas/. See trace/functions.h. */
#include "trace/functions.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/brief.h"
#include "trace/cause.h"
#include "trace/expression.h"
#include "trace/function_ids.h"
#include "trace/lines.h"
#include "trace/torch_words.h"
#include "trace/user_stack.h"

enum { TEXT_MOST = 16384, CAUSE_ARGUMENTS = 7 };

struct functions {
    sqlite3 *handle; /* borrowed */
    struct lines lines;
    bool is_known; /* `lines` can be used, because its member until_ns has been set */
    struct function_ids ids;
};

/* Selects when the recording began. Selects no row if a part of the trace was recorded on another
 * machine, because the program's source files may be missing on this machine. */
static const char began_here[] =
    "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'started_unix_ns' "
    "AND (SELECT COUNT(*) > 0 AND MIN(host) = ?1 AND MAX(host) = ?1 FROM ("
    "SELECT value AS host FROM meta WHERE key = 'host' UNION ALL "
    "SELECT host FROM process WHERE host IS NOT NULL))";

struct lines *functions_get_lines(struct functions *functions)
{
    char host[256] = "";
    sqlite3_stmt *statement = NULL;

    if (functions->is_known)
        return &functions->lines;
    functions->is_known = true;
    gethostname(host, sizeof host - 1);
    if (sqlite3_prepare_v2(functions->handle, began_here, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, host, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW)
            functions->lines.until_ns = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return &functions->lines;
}

/* Return an argument's text. Returns NULL for NULL, and for a text that is longer than any
 * guard. */
static const char *text_of_argument(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);

    return text && sqlite3_value_bytes(value) <= TEXT_MOST ? text : NULL;
}

static void return_sql_text(sqlite3_context *context, char *text)
{
    if (text)
        sqlite3_result_text(context, text, -1, free);
    else
        sqlite3_result_null(context);
}

static void sql_as_written(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *text = text_of_argument(values[0]);

    if (text)
        return_sql_text(context, expression_from_source(text));
    else
        sqlite3_result_value(context, values[0]);
}

static void sql_brief(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *text = text_of_argument(values[0]);

    if (text)
        return_sql_text(context, brief_make_pair_distinct(text, text_of_argument(values[1])));
    else
        sqlite3_result_value(context, values[0]);
}

static struct cause read_cause(sqlite3_value **values)
{
    bool has_dimension = sqlite3_value_type(values[3]) == SQLITE_INTEGER;

    return (struct cause){.kind = text_of_argument(values[0]),
                          .source = text_of_argument(values[1]),
                          .aspect = text_of_argument(values[2]),
                          .dimension = has_dimension ? sqlite3_value_int64(values[3]) : -1,
                          .expected = text_of_argument(values[4]),
                          .actual = text_of_argument(values[5]),
                          .text = text_of_argument(values[6])};
}

static void sql_cause_name(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct cause cause = read_cause(values);

    return_sql_text(context, cause_subject_expression(&cause));
}

static void sql_cause_expected(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct cause cause = read_cause(values);

    return_sql_text(context, cause_expected(&cause));
}

static void sql_cause_actual(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct cause cause = read_cause(values);

    return_sql_text(context, cause_actual(&cause));
}

/* The SQL function cause_seen: return the actual value, not shortened. Statements
 * join such values to a list, and brief() then shortens the whole list. */
static void sql_cause_actual_whole(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct cause cause = read_cause(values);
    const char *value = cause_actual_unshortened(&cause);

    sqlite3_result_text(context, value, -1, SQLITE_TRANSIENT);
}

static void sql_cause_words(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct cause cause = read_cause(values);

    return_sql_text(context, cause_make_sentence(&cause));
}

static void sql_needed_by(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct functions *functions = sqlite3_user_data(context);
    const char *stack = text_of_argument(values[0]);

    if (stack && *stack)
        return_sql_text(context, user_stack_innermost_line(stack, text_of_argument(values[1]),
                                                           text_of_argument(values[2]),
                                                           functions_get_lines(functions)));
}

static void sql_stack_path(sqlite3_context *context, int count, sqlite3_value **values)
{
    return_sql_text(context, user_stack_describe_path(text_of_argument(values[0])));
}

/* The SQL function reason_part: return one part of torch's reason: 'what', 'why' or 'hint'. Returns
 * NULL if the reason has no such part. */
static void sql_reason_part(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *part = text_of_argument(values[1]);
    const struct torch_reason reason = torch_reason_split(text_of_argument(values[0]));
    const char *text = "";

    if (!part)
        return;
    if (!strcmp(part, "what"))
        text = reason.what;
    else if (!strcmp(part, "why"))
        text = reason.why;
    else if (!strcmp(part, "hint"))
        text = reason.hint;
    if (*text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* The SQL function resume_words: return "the rest of f after line 12" for the name of a resume
 * function, and NULL for other names. */
static void sql_resume_words(sqlite3_context *context, int count, sqlite3_value **values)
{
    return_sql_text(context,
                    torch_describe_resume_function(text_of_argument(values[0]), SIZE_MAX - 1));
}

/* The SQL function function_of. It must not be SQLITE_DIRECTONLY, because our view
 * `functions` calls it. */
static void sql_function_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct functions *functions = sqlite3_user_data(context);
    int64_t found = 0;
    int status = SQLITE_OK;

    if (sqlite3_value_type(values[0]) == SQLITE_INTEGER)
        status = function_ids_find(&functions->ids, functions->handle,
                                   sqlite3_value_int64(values[0]), &found);
    if (status != SQLITE_OK)
        sqlite3_result_error_code(context, status);
    else if (found)
        sqlite3_result_int64(context, found);
}

static void sql_span_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct functions *functions = sqlite3_user_data(context);
    sqlite3_stmt *statement = NULL;
    int status = sqlite3_prepare_v2(functions->handle, schema_statement("spans/of-frame"), -1,
                                    &statement, NULL);

    if (status == SQLITE_OK) {
        sqlite3_bind_value(statement, 1, values[0]);
        status = sqlite3_step(statement);
    }
    if (status == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
        sqlite3_result_int64(context, sqlite3_column_int64(statement, 0));
    else if (status != SQLITE_ROW && status != SQLITE_DONE)
        sqlite3_result_error_code(context, status);
    sqlite3_finalize(statement);
}

static const struct {
    const char *name;
    int arguments;
    void (*call)(sqlite3_context *context, int count, sqlite3_value **values);
} functions_made[] = {
    {"as_written", 1, sql_as_written},
    {"brief", 2, sql_brief},
    {"cause_name", CAUSE_ARGUMENTS, sql_cause_name},
    {"cause_expected", CAUSE_ARGUMENTS, sql_cause_expected},
    {"cause_actual", CAUSE_ARGUMENTS, sql_cause_actual},
    {"cause_seen", CAUSE_ARGUMENTS, sql_cause_actual_whole},
    {"cause_words", CAUSE_ARGUMENTS, sql_cause_words},
    {"needed_by", 3, sql_needed_by},
    {"reason_part", 2, sql_reason_part},
    {"resume_words", 1, sql_resume_words},
    {"span_of", 1, sql_span_of},
    {"stack_path", 1, sql_stack_path},
};

struct functions *functions_register(sqlite3 *handle)
{
    struct functions *functions = calloc(1, sizeof *functions);

    functions->handle = handle;
    for (size_t i = 0; i < array_count(functions_made); i++)
        sqlite3_create_function_v2(handle, functions_made[i].name, functions_made[i].arguments,
                                   SQLITE_UTF8 | SQLITE_DIRECTONLY, functions,
                                   functions_made[i].call, NULL, NULL, NULL);
    sqlite3_create_function_v2(handle, "function_of", 1, SQLITE_UTF8 | SQLITE_INNOCUOUS, functions,
                               sql_function_of, NULL, NULL, NULL);
    return functions;
}

void functions_drop_cached_trace(struct functions *functions)
{
    lines_free(&functions->lines);
    function_ids_free(&functions->ids);
    functions->is_known = false;
}

void functions_free(struct functions *functions)
{
    if (functions) {
        lines_free(&functions->lines);
        function_ids_free(&functions->ids);
    }
    free(functions);
}

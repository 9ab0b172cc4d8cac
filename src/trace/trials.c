/* trace/trials.c -- reads and stores the runs of `dyntrace try` that a trace holds. See
 * trace/trials.h. */
#include "trace/trials.h"

#include <unistd.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/template.h"

static int64_t read_integer_or_unknown(struct query *row, int column)
{
    return query_type(row, column) == QUERY_NULL ? FACT_UNKNOWN : query_integer(row, column);
}

static const char *copy_column_text(struct arena *arena, struct query *row, int column)
{
    size_t bytes;
    const char *text = query_text(row, column, &bytes);

    return query_type(row, column) == QUERY_NULL ? NULL : arena_text(arena, text, bytes);
}

bool trials_read(struct db *db, struct arena *arena, const char *ids, struct trials *into)
{
    struct query *row = db_query(db, schema_statement(ids ? "trials/function" : "trials/run"));
    char *array = say_print("[%s]", ids ? ids : "");

    if (ids)
        query_bind_text(row, 1, array);
    while (query_step(row)) {
        const char *setting = copy_column_text(arena, row, 2);
        *list_add(into) = (struct trial){
            .trial_id = query_integer(row, 0),
            .batch = query_integer(row, 1),
            .setting = setting ? setting : "",
            .error = copy_column_text(arena, row, 3),
            .values_same = copy_column_text(arena, row, 4),
            .exit_code = read_integer_or_unknown(row, 5),
            .exit_signal = read_integer_or_unknown(row, 6),
            .output_same = read_integer_or_unknown(row, 7),
            .compiles = read_integer_or_unknown(row, 8),
            .recompiles = read_integer_or_unknown(row, 9),
            .breaks = read_integer_or_unknown(row, 10),
            .eager = read_integer_or_unknown(row, 11),
            .hits = read_integer_or_unknown(row, 12),
            .compile_ns = read_integer_or_unknown(row, 13),
            .step_ns = read_integer_or_unknown(row, 14),
            .baseline = query_integer(row, 15),
            .works = query_integer(row, 16),
            .gain = query_integer(row, 17),
            .note = copy_column_text(arena, row, 18),
        };
    }
    query_close(row);
    free(array);
    return !db_has_failed(db);
}

const char *trials_path_of_trace(const struct db *db)
{
    return access(db_get_path(db), F_OK) ? "TRACE" : db_get_path(db);
}

const struct trial *trials_find_baseline(const struct trials *trials, const struct trial *trial)
{
    for (size_t i = 0; i < trials->count; i++)
        if (trials->at[i].trial_id == trial->batch)
            return &trials->at[i];
    return NULL;
}

/* ---- counting the events of a run ---------------------------------------- */

/* Read the counts in ROW, which begin at column FIRST. The statements trials/count-run and
 * trials/count-functions have the same columns from there on. */
static struct trial_counts read_counts(struct query *row, int first)
{
    return (struct trial_counts){
        .compiles = query_integer(row, first),
        .recompiles = query_integer(row, first + 1),
        .breaks = query_integer(row, first + 2),
        .compile_ns = query_integer(row, first + 3),
        .eager = read_integer_or_unknown(row, first + 4),
        .hits = query_integer(row, first + 5),
        .step_ns = FACT_UNKNOWN,
    };
}

bool trials_count_calls(struct db *db, struct arena *arena, struct trial_figures *figures)
{
    db_rows(row, db, schema_statement("trials/count-run")) figures->run = read_counts(row, 0);
    db_rows(row, db, schema_statement("trials/count-functions"))
    {
        struct trial_function *function = list_add(&figures->functions);
        function->filename = copy_column_text(arena, row, 0);
        function->qualname = copy_column_text(arena, row, 1);
        function->first_line = query_integer(row, 2);
        function->counts = read_counts(row, 3);
        function->counts.step_ns = read_integer_or_unknown(row, 9);
    }
    return !db_has_failed(db);
}

const struct trial_counts *trials_find_counts(const struct trial_figures *figures,
                                              const struct trial_function *find)
{
    list_each(function, &figures->functions) {
        bool same_place = function->first_line == find->first_line &&
                          prose_are_texts_equal(function->filename, find->filename);
        if (same_place && prose_are_texts_equal(function->qualname, find->qualname))
            return &function->counts;
    }
    return NULL;
}

/* ---- storing a run in a trace -------------------------------------------- */

static void bind_or_null(struct query *query, int parameter, int64_t value)
{
    if (value == FACT_UNKNOWN)
        query_bind_text(query, parameter, NULL);
    else
        query_bind_integer(query, parameter, value);
}

/* Bind COUNTS to parameter number PARAMETER of QUERY and those after it. */
static void bind_counts(struct query *query, int parameter, const struct trial_counts *counts)
{
    query_bind_integer(query, parameter, counts->compiles);
    query_bind_integer(query, parameter + 1, counts->recompiles);
    query_bind_integer(query, parameter + 2, counts->breaks);
    query_bind_integer(query, parameter + 3, counts->compile_ns);
    bind_or_null(query, parameter + 4, counts->eager);
    query_bind_integer(query, parameter + 5, counts->hits);
}

int64_t trials_function_id(struct db *db, const struct trial_function *function)
{
    struct query *query = db_query(db, schema_statement("trials/function-id"));
    int64_t id = FACT_UNKNOWN;

    query_bind_text(query, 1, function->filename);
    query_bind_text(query, 2, function->qualname);
    query_bind_integer(query, 3, function->first_line);
    if (query_step(query))
        id = read_integer_or_unknown(query, 0);
    query_close(query);
    return id;
}

/* Return the step time of the function of ROW. Returns FACT_UNKNOWN if ROW has no function, or if
 * the time is not known. */
static int64_t find_step_time(const struct trial_row *row, const struct trial_figures *figures)
{
    const struct trial_counts *counts =
        figures && row->function ? trials_find_counts(figures, row->function) : NULL;

    return counts ? counts->step_ns : FACT_UNKNOWN;
}

static void store_functions(struct db *db, int64_t trial_id, const struct trial_figures *figures)
{
    struct query *put = db_query(db, schema_statement("trials/store-function"));

    list_each(function, &figures->functions) {
        query_bind_integer(put, 1, trial_id);
        bind_or_null(put, 2, trials_function_id(db, function));
        bind_counts(put, 3, &function->counts);
        bind_or_null(put, 9, function->counts.step_ns);
        query_execute(put);
    }
    query_close(put);
}

int64_t trials_store(struct db *db, const struct trial_row *row,
                     const struct trial_figures *figures)
{
    struct query *put;
    int64_t trial_id = 0;

    db_run(db, "BEGIN IMMEDIATE");
    put = db_query(db, schema_statement("trials/store"));
    bind_or_null(put, 1, row->batch);
    query_bind_text(put, 2, row->setting);
    query_bind_text(put, 3, row->command);
    bind_or_null(put, 4, row->function ? trials_function_id(db, row->function) : FACT_UNKNOWN);
    query_bind_integer(put, 5, row->started_unix_ns);
    query_bind_integer(put, 6, row->duration_ns);
    bind_or_null(put, 7, row->exit_code);
    bind_or_null(put, 8, row->exit_signal);
    bind_or_null(put, 9, row->output_same);
    query_bind_text(put, 10, row->values_same);
    query_bind_text(put, 11, row->error);
    bind_or_null(put, 12, find_step_time(row, figures));
    if (figures)
        bind_counts(put, 13, &figures->run);
    query_bind_text(put, 19, row->difference);
    query_execute(put);
    query_close(put);
    trial_id = db_integer(db, 0, "SELECT MAX(trial_id) FROM trial");
    if (figures)
        store_functions(db, trial_id, figures);
    return db_run(db, "COMMIT") ? trial_id : 0;
}

/* trace/trials.c -- the runs of `dyntrace try` that a trace holds. See trace/trials.h. */
#include "trace/trials.h"

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

static int64_t known_integer(struct query *row, int column)
{
    return query_type(row, column) == QUERY_NULL ? PROSE_UNKNOWN : query_integer(row, column);
}

static const char *kept_text(struct arena *arena, struct query *row, int column)
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
        const char *setting = kept_text(arena, row, 2);
        *list_add(into) = (struct trial){
            .trial_id = query_integer(row, 0),
            .batch = query_integer(row, 1),
            .setting = setting ? setting : "",
            .error = kept_text(arena, row, 3),
            .values_same = kept_text(arena, row, 4),
            .exit_code = known_integer(row, 5),
            .exit_signal = known_integer(row, 6),
            .output_same = known_integer(row, 7),
            .compiles = known_integer(row, 8),
            .recompiles = known_integer(row, 9),
            .breaks = known_integer(row, 10),
            .eager = known_integer(row, 11),
            .hits = known_integer(row, 12),
            .compile_ns = known_integer(row, 13),
            .step_ns = known_integer(row, 14),
            .baseline = query_integer(row, 15),
            .works = query_integer(row, 16),
            .gain = query_integer(row, 17),
        };
    }
    query_close(row);
    free(array);
    return !db_failed(db);
}

const struct trial *trials_baseline(const struct trials *trials, const struct trial *trial)
{
    for (size_t i = 0; i < trials->count; i++)
        if (trials->at[i].trial_id == trial->batch)
            return &trials->at[i];
    return NULL;
}

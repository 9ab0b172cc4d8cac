/* collector/totals.c -- code_total made again from the frames. See collector/totals.h.
 *
 * Runs in: the collector, when one before it was killed.
 *
 * collector/decode.c keeps the totals as frames begin and end, in memory that dies with
 * it. They follow from the rows, too: a thread's frames stand in the order in which they
 * began, so its stack at each is known from their parents.
 *
 *     for each frame, by id:
 *         its thread's frames above its parent have ended: close them
 *         push it
 *     close what is left
 *
 * A function that calls itself, through whatever else, is timed once: only its
 * outermost activation on a thread counts for total_ns. */
#include "collector/totals.h"

#include <stdbool.h>
#include <stdint.h>

#include "lib/list.h"
#include "vocabulary.h"

struct total {
    int64_t calls, total_ns, self_ns, raised;
    bool seen;
};

struct frame {
    int64_t frame_id, duration_ns, child_ns;
    uint32_t code_id;
    bool ended;
};

typedef LIST(struct frame) stack;

struct totals {
    LIST(struct total) codes;  /* by code_id */
    LIST(stack) threads;       /* by thread_id */
    struct map active;         /* thread << 32 | code: its activations that are open */
};

/* The innermost frame of THREAD is done with. */
static bool leave(struct totals *t, uint32_t thread_id)
{
    stack *thread = &t->threads.at[thread_id];
    struct frame *frame = &thread->at[--thread->count];
    struct total *total = &t->codes.at[frame->code_id];
    int64_t *active = map_put(&t->active, (int64_t)thread_id << 32 | frame->code_id);

    if (!active)
        return false;
    --*active;
    if (!frame->ended) /* still open when the program died: it has no time */
        return true;
    total->self_ns += frame->duration_ns > frame->child_ns ? frame->duration_ns - frame->child_ns : 0;
    if (!*active)
        total->total_ns += frame->duration_ns;
    if (thread->count)
        thread->at[thread->count - 1].child_ns += frame->duration_ns;
    return true;
}

/* The row that SELECT gives. */
static bool take(struct totals *t, sqlite3_stmt *row)
{
    enum { FRAME, THREAD, PARENT, CODE, KIND, START, END, EXIT };
    uint32_t thread_id = (uint32_t)sqlite3_column_int64(row, THREAD), code_id = (uint32_t)sqlite3_column_int64(row, CODE);
    int64_t duration = sqlite3_column_int64(row, END) - sqlite3_column_int64(row, START), *active;
    bool ended = sqlite3_column_type(row, END) == SQLITE_INTEGER;
    stack *thread = list_reach(&t->threads, thread_id);
    struct total *total = list_reach(&t->codes, code_id);
    struct frame *frame;

    if (!thread || !total)
        return false;
    while (thread->count && thread->at[thread->count - 1].frame_id != sqlite3_column_int64(row, PARENT))
        if (!leave(t, thread_id))
            return false;
    if (!(active = map_put(&t->active, (int64_t)thread_id << 32 | code_id)) || !(frame = list_add(thread)))
        return false;
    ++*active;
    *frame = (struct frame){.frame_id = sqlite3_column_int64(row, FRAME), .duration_ns = ended && duration > 0 ? duration : 0,
                            .code_id = code_id, .ended = ended};
    total->seen = true;
    total->calls += sqlite3_column_int64(row, KIND) == FRAME_CALL;
    total->raised += ended && sqlite3_column_int64(row, EXIT) == EXIT_RAISE;
    return true;
}

static bool say(const struct totals *t, sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    bool done = sqlite3_prepare_v2(db, "INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised)"
                                       " VALUES (?, ?, ?, ?, ?)", -1, &s, NULL) == SQLITE_OK;

    for (size_t id = 0; done && id < t->codes.count; id++) {
        const struct total *total = &t->codes.at[id];
        if (!total->seen)
            continue;
        sqlite3_bind_int64(s, 1, (sqlite3_int64)id);
        sqlite3_bind_int64(s, 2, total->calls);
        sqlite3_bind_int64(s, 3, total->total_ns);
        sqlite3_bind_int64(s, 4, total->self_ns);
        sqlite3_bind_int64(s, 5, total->raised);
        done = sqlite3_step(s) == SQLITE_DONE;
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return done;
}

int totals_from_frames(sqlite3 *db)
{
    struct totals t = {0};
    sqlite3_stmt *rows = NULL;
    bool done = sqlite3_prepare_v2(db, "SELECT frame_id, thread_id, parent_id, code_id, kind, start_ns, end_ns, exit FROM frame"
                                       " ORDER BY frame_id", -1, &rows, NULL) == SQLITE_OK;
    int step = SQLITE_DONE;

    while (done && (step = sqlite3_step(rows)) == SQLITE_ROW)
        done = take(&t, rows);
    sqlite3_finalize(rows);
    for (uint32_t id = 0; done && id < t.threads.count; id++)
        while (done && t.threads.at[id].count)
            done = leave(&t, id);
    done = done && step == SQLITE_DONE && say(&t, db);
    for (size_t id = 0; id < t.threads.count; id++)
        list_free(&t.threads.at[id]);
    list_free(&t.threads);
    list_free(&t.codes);
    map_free(&t.active);
    return done ? 0 : -1;
}

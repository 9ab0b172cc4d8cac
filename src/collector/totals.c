/* collector/totals.c -- code_total made again from the frames. See collector/totals.h.
 *
 * Runs in: the collector, when one before it was killed.
 *
 * collector/decode.c keeps the totals as frames begin and end, in memory that dies with
 * it. The rows tell the same: a thread's frames stand in the order in which they
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
#include <stdlib.h>
#include <string.h>

struct total {
    uint64_t calls, total_ns, self_ns, raised;
    bool seen;
};

struct frame {
    uint64_t frame_id, duration_ns, child_ns;
    uint32_t code_id;
    bool ended;
};

struct thread {
    struct frame *stack; /* owned */
    uint32_t depth, room;
};

/* Activations that are open, of a code object on a thread. */
struct active {
    uint64_t key;        /* thread << 32 | code; 0: free */
    uint32_t count;
};

struct totals {
    struct total *total; /* by code_id; owned */
    uint32_t total_count;
    struct thread *thread; /* by thread_id; owned */
    uint32_t thread_count;
    struct active *active; /* open addressing; owned */
    uint32_t active_room, active_used; /* room: a power of two */
};

/* Room in *ARRAY for element INDEX; new ones are zero. */
static bool room_for(void **array, uint32_t *count, uint32_t index, size_t size)
{
    uint32_t room = *count ? *count : 256;
    char *more;

    if (index < *count)
        return true;
    while (room <= index)
        room = room > UINT32_MAX / 2 ? UINT32_MAX : room * 2;
    more = realloc(*array, room * size);
    if (!more)
        return false;
    memset(more + *count * size, 0, (room - *count) * size);
    *array = more;
    *count = room;
    return true;
}

static struct active *active_find(struct active *active, uint32_t room, uint64_t key)
{
    uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);

    while (active[at].key && active[at].key != key)
        at = (at + 1) & (room - 1);
    return &active[at];
}

static struct active *active_of(struct totals *t, uint32_t thread_id, uint32_t code_id)
{
    uint64_t key = (uint64_t)thread_id << 32 | code_id;
    struct active *found;

    if (t->active_used * 2 >= t->active_room) {
        uint32_t room = t->active_room ? t->active_room * 2 : 1024;
        struct active *more = calloc(room, sizeof *more);
        if (!more)
            return NULL;
        for (uint32_t i = 0; i < t->active_room; i++)
            if (t->active[i].key)
                *active_find(more, room, t->active[i].key) = t->active[i];
        free(t->active);
        t->active = more;
        t->active_room = room;
    }
    found = active_find(t->active, t->active_room, key);
    if (!found->key) {
        found->key = key;
        t->active_used++;
    }
    return found;
}

/* The innermost frame of THREAD is done with. */
static bool leave(struct totals *t, uint32_t thread_id)
{
    struct thread *thread = &t->thread[thread_id];
    struct frame *frame = &thread->stack[--thread->depth];
    struct active *active = active_of(t, thread_id, frame->code_id);
    struct total *total = &t->total[frame->code_id];

    if (!active)
        return false;
    active->count--;
    if (!frame->ended) /* still open when the program died: it has no time */
        return true;
    total->self_ns += frame->duration_ns > frame->child_ns ? frame->duration_ns - frame->child_ns : 0;
    if (!active->count)
        total->total_ns += frame->duration_ns;
    if (thread->depth)
        thread->stack[thread->depth - 1].child_ns += frame->duration_ns;
    return true;
}

/* The row that SELECT gives. */
static bool take(struct totals *t, sqlite3_stmt *row)
{
    enum { FRAME, THREAD, PARENT, CODE, KIND, START, END, EXIT };
    uint64_t parent = (uint64_t)sqlite3_column_int64(row, PARENT);
    uint32_t thread_id = (uint32_t)sqlite3_column_int64(row, THREAD), code_id = (uint32_t)sqlite3_column_int64(row, CODE);
    int64_t duration = sqlite3_column_int64(row, END) - sqlite3_column_int64(row, START);
    bool ended = sqlite3_column_type(row, END) == SQLITE_INTEGER;
    struct thread *thread;
    struct active *active;

    if (!room_for((void **)&t->thread, &t->thread_count, thread_id, sizeof *t->thread) ||
        !room_for((void **)&t->total, &t->total_count, code_id, sizeof *t->total))
        return false;
    thread = &t->thread[thread_id];
    while (thread->depth && thread->stack[thread->depth - 1].frame_id != parent)
        if (!leave(t, thread_id))
            return false;
    active = active_of(t, thread_id, code_id);
    if (!active || !room_for((void **)&thread->stack, &thread->room, thread->depth, sizeof *thread->stack))
        return false;
    active->count++;
    thread->stack[thread->depth++] = (struct frame){
        .frame_id = (uint64_t)sqlite3_column_int64(row, FRAME), .duration_ns = ended && duration > 0 ? (uint64_t)duration : 0,
        .code_id = code_id, .ended = ended};
    t->total[code_id].seen = true;
    t->total[code_id].calls += sqlite3_column_int64(row, KIND) == 0;
    t->total[code_id].raised += ended && sqlite3_column_int64(row, EXIT) == 2;
    return true;
}

static bool say(const struct totals *t, sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    bool done = sqlite3_prepare_v2(db, "INSERT INTO code_total(code_id, calls, total_ns, self_ns, raised)"
                                       " VALUES (?, ?, ?, ?, ?)", -1, &s, NULL) == SQLITE_OK;

    for (uint32_t id = 0; done && id < t->total_count; id++) {
        const struct total *total = &t->total[id];
        if (!total->seen)
            continue;
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)total->calls);
        sqlite3_bind_int64(s, 3, (sqlite3_int64)total->total_ns);
        sqlite3_bind_int64(s, 4, (sqlite3_int64)total->self_ns);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)total->raised);
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
    for (uint32_t id = 0; done && id < t.thread_count; id++)
        while (done && t.thread[id].depth)
            done = leave(&t, id);
    done = done && step == SQLITE_DONE && say(&t, db);
    for (uint32_t id = 0; id < t.thread_count; id++)
        free(t.thread[id].stack);
    free(t.thread);
    free(t.total);
    free(t.active);
    return done ? 0 : -1;
}

/* tui/views/lanes.c -- what the timeline reads. See tui/views/timeline.h.
 *
 * Runs in: the viewer, in threads. */
#include "tui/views/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "trace/stacks.h"

enum { TICK = 1 << 14 };

static int bucket_of(int64_t at_ns, int64_t span_ns)
{
    double share = span_ns > 0 ? (double)at_ns / (double)span_ns : 0;

    return share <= 0 ? 0 : share >= 1 ? BUCKETS - 1 : (int)(share * BUCKETS);
}

/* A time of a row; one that no recording has, from a broken file, is brought near, so that differences can be taken. */
static int64_t time_read(struct query *query, int column)
{
    int64_t ns = query_integer(query, column), most = INT64_MAX / 4;

    return ns > most ? most : ns < -most ? -most : ns;
}

static void id_note(int64_t *first, int64_t *last, int64_t id)
{
    if (!*first || id < *first)
        *first = id;
    if (id > *last)
        *last = id;
}

static int lane_find(const struct lanes_job *job, int64_t thread_id)
{
    for (int i = 0; i < job->count; i++)
        if (job->lanes[i]->thread_id == thread_id)
            return i;
    return -1;
}

static bool lanes_read(struct lanes_job *job, struct db *db)
{
    struct query *query = db_query(db, schema_statement("tui/timeline-threads"));
    bool ok = true;

    if (!(job->lanes = calloc(LANES_MOST, sizeof *job->lanes)))
        ok = false;
    while (ok && query_step(query) && job->count < LANES_MOST) { /* there is no room for more */
        struct lane *lane = calloc(1, sizeof *lane);
        if (!(ok = lane != NULL))
            break;
        job->lanes[job->count++] = lane;
        lane->thread_id = query_integer(query, 0);
        lane->name = prose_column(query, 1);
    }
    if (!ok)
        say_error("out of memory");
    return query_close(query) && ok;
}

static void lookups_read(struct lanes_job *job, struct db *db)
{
    struct query *query = db_query(db, "SELECT lookup_id, thread_id, start_ns, outcome FROM lookup");

    while (query_step(query)) {
        int at = lane_find(job, query_integer(query, 1)), bucket = bucket_of(query_integer(query, 2), job->span_ns);
        int outcome = (int)query_integer(query, 3);
        if (at < 0)
            continue;
        struct lane *lane = job->lanes[at];
        lane->calls++;
        lane->hits[bucket] += outcome == 1;
        lane->misses[bucket] += outcome == 2;
        lane->eager[bucket] += outcome != 1 && outcome != 2;
        id_note(&lane->first_lookup[bucket], &lane->last_lookup[bucket], query_integer(query, 0));
    }
    query_close(query);
}

static void compiles_read(struct lanes_job *job, struct db *db)
{
    struct query *query = db_query(db, schema_statement("tui/timeline-compiles"));
    struct compile_mark *mark;

    query_bind_integer(query, 1, job->span_ns);
    while (query_step(query) && (mark = list_add(&job->compiles)))
        *mark = (struct compile_mark){query_integer(query, 0), time_read(query, 2), time_read(query, 3), lane_find(job, query_integer(query, 1)),
                                      query_integer(query, 4), query_integer(query, 5)};
    query_close(query);
}

static bool frames_tick(void *context, int64_t frame_id)
{
    struct lanes_job *job = context;

    atomic_store(&job->job.done, frame_id);
    return !atomic_load(&job->job.cancelled);
}

/* How deep each stretch of a thread is, and which ids began in it. */
static void frame_note(void *context, struct track *track)
{
    struct lanes_job *job = context;
    const struct open_frame *frame = track_top(track);
    size_t depth = track->stack.count;
    int from = bucket_of(frame->start_ns, job->span_ns), to = bucket_of(frame->end_ns, job->span_ns);
    int at = track->what ? (int)track->what - 1 : lane_find(job, track->thread_id);

    if (at < 0)
        return;
    track->what = (uint32_t)at + 1;
    job->lanes[at]->ended_ns = track->ended_ns;
    for (int i = from; i <= to; i++)
        if (job->lanes[at]->depth[i] < depth)
            job->lanes[at]->depth[i] = (uint16_t)(depth < UINT16_MAX ? depth : UINT16_MAX);
    id_note(&job->lanes[at]->first_frame[from], &job->lanes[at]->last_frame[from], frame->id);
}

static void lanes_run(struct job *base, struct db *db)
{
    struct lanes_job *job = (struct lanes_job *)base;
    struct stacks stacks = {0};

    job->span_ns = db_meta_integer(db, "span_ns", 0);
    if (job->span_ns <= 0) /* while it is recorded */
        job->span_ns = db_integer(db, 1, schema_statement("tui/timeline-span"));
    atomic_store(&base->all, db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"));
    if (!lanes_read(job, db))
        return;
    lookups_read(job, db);
    compiles_read(job, db);
    stacks_walk(db, &stacks, job->span_ns, &(struct walk){.context = job, .tick = frames_tick, .push = frame_note});
    stacks_free(&stacks);
}

static void lanes_free(struct job *base)
{
    struct lanes_job *job = (struct lanes_job *)base;

    for (int i = 0; i < job->count; i++) {
        free(job->lanes[i]->name);
        free(job->lanes[i]);
    }
    free(job->lanes);
    list_free(&job->compiles);
}

struct lanes_job *lanes_ask(struct work *work)
{
    struct lanes_job *job = job_new(sizeof *job, lanes_run, lanes_free, true);

    if (job)
        work_start(work, &job->job);
    return job;
}

/* ---- a part of it ---------------------------------------------------------- */

struct open_box {
    int64_t id, end_ns;
};

static int column_of(const struct detail_job *job, int64_t at_ns)
{
    double share = ((double)at_ns - (double)job->from_ns) / ((double)job->to_ns - (double)job->from_ns);

    return share < 0 ? -1 : share >= 1 ? job->columns : (int)(share * job->columns);
}

/* A frame on its row, wherever it is the longest. */
static void box_put(struct detail_job *job, int depth, int64_t frame_id, int64_t code_id, int64_t start_ns, int64_t end_ns)
{
    int from = column_of(job, start_ns), to = column_of(job, end_ns);

    if (depth >= DETAIL_DEPTH || end_ns < job->from_ns || start_ns > job->to_ns)
        return;
    if (depth >= job->depth)
        job->depth = depth + 1;
    for (int x = from < 0 ? 0 : from; x <= to && x < job->columns; x++)
        if (!job->cells[depth][x].code_id || job->cells[depth][x].ns < end_ns - start_ns)
            job->cells[depth][x] = (struct detail_cell){code_id, frame_id, end_ns - start_ns};
}

/* The frames that were open before the first of the window, outermost first: its callers, or the last one before and its. */
static size_t callers_put(struct detail_job *job, struct db *db, struct open_box *stack, size_t room, int64_t end_ns)
{
    struct query *query = db_query(db, schema_statement("tui/timeline-callers"));
    size_t depth = 0;

    query_bind_integer(query, 1, job->before_frame);
    query_bind_integer(query, 2, end_ns);
    while (query_step(query) && depth < room) {
        stack[depth] = (struct open_box){query_integer(query, 0), time_read(query, 3)};
        if (stack[depth].end_ns < job->from_ns)
            break;
        box_put(job, (int)depth, stack[depth].id, query_integer(query, 1), time_read(query, 2), stack[depth].end_ns);
        depth++;
    }
    query_close(query);
    return depth;
}

static void boxes_read(struct detail_job *job, struct db *db)
{
    enum { ROOM = 4000 };
    struct open_box *stack = calloc(ROOM, sizeof *stack);
    int64_t end_ns = job->to_ns < job->ended_ns ? job->to_ns : job->ended_ns; /* of a frame that has none */
    size_t depth = 0;
    struct query *query;

    if (!stack)
        return;
    if (job->before_frame)
        depth = callers_put(job, db, stack, ROOM, end_ns);
    query = db_query(db, schema_statement("tui/timeline-frames"));
    query_bind_integer(query, 1, job->first_frame);
    query_bind_integer(query, 2, job->last_frame);
    query_bind_integer(query, 3, job->thread_id);
    query_bind_integer(query, 4, end_ns);
    while (job->first_frame && query_step(query)) {
        int64_t parent = query_type(query, 1) == QUERY_NULL ? -1 : query_integer(query, 1);
        while (depth && stack[depth - 1].id != parent)
            depth--;
        if (depth < ROOM)
            stack[depth++] = (struct open_box){query_integer(query, 0), time_read(query, 4)};
        box_put(job, (int)depth - 1, query_integer(query, 0), query_integer(query, 2), time_read(query, 3), time_read(query, 4));
    }
    query_close(query);
    free(stack);
}

static void marks_read(struct detail_job *job, struct db *db)
{
    struct query *query = db_query(db, schema_statement("tui/timeline-lookups"));
    static const char order[] = " .memX";

    query_bind_integer(query, 1, job->first_lookup);
    query_bind_integer(query, 2, job->last_lookup);
    query_bind_integer(query, 3, job->thread_id);
    while (job->first_lookup && query_step(query)) {
        int x = column_of(job, time_read(query, 0));
        int64_t outcome = query_integer(query, 1);
        char mark = outcome == 1 ? '.' : outcome == 2 ? 'm' : outcome == 5 || outcome >= 8 ? 'X' : 'e';
        if (x < 0 || x >= job->columns)
            continue;
        job->lookups[x]++;
        if (!job->marks[x] || strchr(order, mark) > strchr(order, job->marks[x]))
            job->marks[x] = (unsigned char)mark;
    }
    query_close(query);
}

static void names_read(struct detail_job *job, struct db *db)
{
    struct query *query = db_query(db, "SELECT COALESCE(NULLIF(qualname, ''), '?') FROM code WHERE code_id = ?1");

    for (int y = 0; y < job->depth; y++)
        for (int x = 0; x < job->columns; x++) {
            int64_t id = job->cells[y][x].code_id, *name = id ? map_put(&job->names, id) : NULL;
            if (!name || *name)
                continue;
            query_reset(query);
            query_bind_integer(query, 1, id);
            if (query_step(query)) {
                const char *text = query_text(query, 0, NULL);
                *name = (int64_t)(intptr_t)arena_text(&job->arena, text, prose_cut(text, 160));
            }
        }
    query_close(query);
}

const char *detail_name(const struct detail_job *job, int64_t code_id)
{
    const int64_t *name = map_get(&job->names, code_id);

    return name && *name ? (const char *)(intptr_t)*name : "?";
}

static void detail_run(struct job *base, struct db *db)
{
    struct detail_job *job = (struct detail_job *)base;

    boxes_read(job, db);
    marks_read(job, db);
    names_read(job, db);
}

static void detail_free(struct job *base)
{
    struct detail_job *job = (struct detail_job *)base;

    map_free(&job->names);
    arena_free(&job->arena);
}

/* NULL: too much lies in it to be read for one screen. */
struct detail_job *detail_ask(struct work *work, const struct lanes_job *lanes, int at, int64_t from_ns, int64_t to_ns, int columns)
{
    const struct lane *lane = lanes->lanes[at];
    int first = bucket_of(from_ns, lanes->span_ns), last = bucket_of(to_ns, lanes->span_ns);
    struct detail_job *job = job_new(sizeof *job, detail_run, detail_free, false);

    if (!job)
        return NULL;
    job->thread_id = lane->thread_id;
    job->lane = at;
    job->from_ns = from_ns;
    job->to_ns = to_ns > from_ns ? to_ns : from_ns + 1;
    job->ended_ns = lane->ended_ns;
    job->columns = columns < SCREEN_MOST ? columns : SCREEN_MOST;
    for (int i = first; i <= last; i++) {
        if (lane->first_frame[i]) {
            id_note(&job->first_frame, &job->last_frame, lane->first_frame[i]);
            id_note(&job->first_frame, &job->last_frame, lane->last_frame[i]);
        }
        if (lane->first_lookup[i]) {
            id_note(&job->first_lookup, &job->last_lookup, lane->first_lookup[i]);
            id_note(&job->first_lookup, &job->last_lookup, lane->last_lookup[i]);
        }
    }
    for (int i = first; i-- > 0 && !job->before_frame;)
        job->before_frame = lane->last_frame[i];
    if (job->last_frame - job->first_frame > DETAIL_ROWS || job->last_lookup - job->first_lookup > DETAIL_ROWS) {
        free(job);
        return NULL;
    }
    work_start(work, &job->job);
    return job;
}

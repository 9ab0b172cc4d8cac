/* tui/views/lanes.c -- what the timeline reads. See tui/views/lanes.h.
 *
 * Runs in: the viewer, in threads. */
#include "tui/views/lanes.h"

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "vocabulary.h"

enum { NAME_BYTES = 160 };

/* ---- names --------------------------------------------------------------- */

void names_read(struct names *names, struct db *db, const char *statement)
{
    db_rows(row, db, schema_statement(statement))
    {
        const char *text = name_shown(query_text(row, 1, NULL));
        *list_add(&names->all) = (struct name){
            query_integer(row, 0), arena_text(&names->arena, text, prose_cut(text, NAME_BYTES))};
    }
}

void names_free(struct names *names)
{
    list_free(&names->all);
    arena_free(&names->arena);
}

const char *name_find(const struct names *names, int64_t wanted)
{
    const struct name *name = list_find(&names->all, id, wanted);

    return name ? name->text : "?";
}

/* ---- the lanes ----------------------------------------------------------- */

static int bucket_of(int64_t at_ns, int64_t span_ns)
{
    double share = span_ns > 0 ? (double)at_ns / (double)span_ns : 0;

    if (share <= 0)
        return 0;
    return share >= 1 ? BUCKETS - 1 : (int)(share * BUCKETS);
}

/* A time of a row; one that no recording has, from a broken file, is brought near, so that
 * differences can be taken. */
static int64_t time_read(struct query *query, int column)
{
    int64_t ns = query_integer(query, column), most = INT64_MAX / 4;

    if (ns > most)
        return most;
    return ns < -most ? -most : ns;
}

static void ids_add(struct ids *ids, int64_t id)
{
    if (id && (!ids->first || id < ids->first))
        ids->first = id;
    if (id > ids->last)
        ids->last = id;
}

static void lane_note(struct lane *lane, int from, int to)
{
    lane->first = from < lane->first ? from : lane->first;
    lane->last = to > lane->last ? to : lane->last;
}

static int lane_find(const struct lanes_job *job, int64_t thread_id)
{
    int at = (int)job->lanes.count;

    while (at-- > 0 && job->lanes.at[at].thread_id != thread_id)
        ;
    return at;
}

static void lookups_read(struct lanes_job *job, struct db *db)
{
    db_rows(row, db, "SELECT lookup_id, thread_id, start_ns, outcome FROM lookup LIMIT ?1",
            job->job.most ? job->job.most : -1)
    {
        int at = lane_find(job, query_integer(row, 1));
        int64_t outcome = query_integer(row, 3);
        struct bucket *bucket;
        if (at < 0)
            continue;
        bucket = &job->lanes.at[at].buckets[bucket_of(query_integer(row, 2), job->span_ns)];
        lane_note(&job->lanes.at[at], (int)(bucket - job->lanes.at[at].buckets),
                  (int)(bucket - job->lanes.at[at].buckets));
        *(outcome == OUTCOME_HIT        ? &bucket->hits
          : outcome == OUTCOME_COMPILED ? &bucket->misses
                                        : &bucket->eager) += 1;
        ids_add(&bucket->lookups, query_integer(row, 0));
        job->lanes.at[at].calls++;
    }
}

bool frames_tick(void *context, int64_t frame_id)
{
    struct job *job = context;

    atomic_store(&job->done, frame_id);
    return !atomic_load(&job->cancelled) && (!job->most || frame_id < job->most);
}

bool frames_more(const struct job *job)
{
    return job->most && atomic_load(&job->all) > job->most;
}

/* How deep each stretch of a thread is, and which ids began in it. */
static void frame_note(void *context, struct track *track)
{
    struct lanes_job *job = context;
    const struct open_frame *frame = track_top(track);
    int from = bucket_of(frame->start_ns, job->span_ns),
        to = bucket_of(frame->end_ns, job->span_ns);
    int at = track->what ? (int)track->what - 1 : lane_find(job, track->thread_id);
    struct bucket *buckets;

    if (at < 0)
        return;
    track->what = (uint32_t)at + 1;
    job->lanes.at[at].ended_ns = track->ended_ns;
    buckets = job->lanes.at[at].buckets;
    lane_note(&job->lanes.at[at], from, to);
    for (int i = from; i <= to; i++)
        if (buckets[i].depth < track->stack.count)
            buckets[i].depth = (uint32_t)track->stack.count;
    if (job->lanes.at[at].deepest < track->stack.count)
        job->lanes.at[at].deepest = (uint32_t)track->stack.count;
    ids_add(&buckets[from].frames, frame->id);
}

static void lanes_run(struct job *base, struct db *db)
{
    struct lanes_job *job = (struct lanes_job *)base;
    struct stacks stacks = {0};

    job->span_ns = db_meta_integer(db, "span_ns", 0);
    if (job->span_ns <= 0) /* while it is recorded */
        job->span_ns = db_integer(db, 1, schema_statement("tui/timeline-span"));
    atomic_store(&base->all, db_integer(db, 0,
                                        "SELECT MAX(COALESCE((SELECT MAX(frame_id) FROM frame), "
                                        "0), COALESCE((SELECT MAX(lookup_id) FROM lookup), 0))"));
    db_rows(row, db, schema_statement("tui/threads"), LANES_MOST)
    { /* there is no room for more */
        struct lane *lane = list_add(&job->lanes);
        lane->thread_id = query_integer(row, 0);
        lane->buckets = calloc(BUCKETS, sizeof *lane->buckets); /* most of it is never touched */
        lane->first = BUCKETS;
        lane->name = arena_keep(&job->names.arena, query_copy(row, 1));
    }
    lookups_read(job, db);
    db_rows(row, db, schema_statement("tui/timeline-compiles"), job->span_ns) *
        list_add(&job->compiles) =
        (struct compile_mark){.id = query_integer(row, 0),
                              .start_ns = time_read(row, 2),
                              .end_ns = time_read(row, 3),
                              .lane = lane_find(job, query_integer(row, 1)),
                              .bad = query_integer(row, 4),
                              .broke = query_integer(row, 5)};
    names_read(&job->names, db, "tui/code-names");
    stacks_walk(db, &stacks,
                &(struct walk){.context = job, .tick = frames_tick, .push = frame_note});
    stacks_free(&stacks);
}

static void lanes_free(struct job *base)
{
    struct lanes_job *job = (struct lanes_job *)base;

    for (size_t i = 0; i < job->lanes.count; i++)
        free(job->lanes.at[i].buckets);
    list_free(&job->lanes);
    list_free(&job->compiles);
    names_free(&job->names);
}

struct lanes_job *lanes_ask(struct work *work, bool first)
{
    struct lanes_job *job = job_new(sizeof *job, lanes_run, lanes_free, !first);

    job->job.most = first ? FIRST_FRAMES : 0;
    work_start(work, &job->job);
    return job;
}

/* ---- a part of one ------------------------------------------------------- */

static int column_of(const struct detail_job *job, int64_t at_ns)
{
    double share =
        ((double)at_ns - (double)job->from_ns) / ((double)job->to_ns - (double)job->from_ns);

    if (share < 0)
        return -1;
    return share >= 1 ? job->columns : (int)(share * job->columns);
}

typedef LIST(int64_t) frame_stack;

/* The frames FIRST to LAST that STATEMENT asks for: each goes onto STACK above its parent, and on
 * that row of the picture wherever it is the longest. */
static void boxes_put(struct detail_job *job, struct db *db, const char *statement, int64_t first,
                      int64_t last, frame_stack *stack)
{
    /* the end of one that has none */
    int64_t ended_ns = job->to_ns < job->ended_ns ? job->to_ns : job->ended_ns;

    db_rows(frame, db, schema_statement(statement), first, last, job->thread_id, ended_ns)
    {
        int64_t id = query_integer(frame, 0), parent = query_integer(frame, 1),
                code_id = query_integer(frame, 2);
        int64_t start_ns = time_read(frame, 3), end_ns = time_read(frame, 4);
        int from = column_of(job, start_ns), to = column_of(job, end_ns), row;
        while (stack->count &&
               (query_type(frame, 1) == QUERY_NULL || stack->at[stack->count - 1] != parent))
            stack->count--;
        row = (int)stack->count;
        *list_add(stack) = id;
        if (end_ns < job->from_ns || start_ns > job->to_ns)
            continue;
        if (row >= job->depth)
            job->depth = row < DETAIL_DEPTH ? row + 1 : DETAIL_DEPTH;
        for (int x = from < 0 ? 0 : from; x <= to && x < job->columns; x++) {
            job->stack[x] = row >= job->stack[x] ? row + 1 : job->stack[x];
            if (row < DETAIL_DEPTH &&
                (!job->cells[row][x].frame_id || job->cells[row][x].ns < end_ns - start_ns))
                job->cells[row][x] = (struct detail_cell){code_id, id, end_ns - start_ns};
        }
    }
}

static void detail_run(struct job *base, struct db *db)
{
    static const char order[] = {'.', 'm', 'e', 'X', 0};
    struct detail_job *job = (struct detail_job *)base;
    frame_stack stack = {0};

    /* First those that were open before: the last one before, with its callers. */
    boxes_put(job, db, "tui/timeline-callers", job->before, 0, &stack);
    boxes_put(job, db, "tui/timeline-frames", job->frames.first, job->frames.last, &stack);
    list_free(&stack);
    db_rows(row, db, schema_statement("tui/timeline-lookups"), job->lookups.first,
            job->lookups.last, job->thread_id)
    {
        int x = column_of(job, time_read(row, 0));
        int64_t o = query_integer(row, 1);
        char mark = o == OUTCOME_HIT                                 ? '.'
                    : o == OUTCOME_COMPILED                          ? 'm'
                    : o == OUTCOME_LIMIT || o >= OUTCOME_GUARD_ERROR ? 'X'
                                                                     : 'e';
        if (x < 0 || x >= job->columns)
            continue;
        job->lookups_at[x]++;
        if (!job->marks[x] || strchr(order, mark) > strchr(order, job->marks[x]))
            job->marks[x] = mark;
    }
}

static bool ids_many(const struct ids *ids)
{
    return (uint64_t)ids->last - (uint64_t)ids->first > DETAIL_ROWS;
}

struct detail_job *detail_ask(struct work *work, const struct lanes_job *lanes, int at,
                              int64_t from_ns, int64_t to_ns, int columns)
{
    const struct lane *lane = &lanes->lanes.at[at];
    int first = bucket_of(from_ns, lanes->span_ns), last = bucket_of(to_ns, lanes->span_ns);
    struct detail_job *job = job_new(sizeof *job, detail_run, NULL, false);

    for (int i = first; i <= last; i++) {
        ids_add(&job->frames, lane->buckets[i].frames.first);
        ids_add(&job->frames, lane->buckets[i].frames.last);
        ids_add(&job->lookups, lane->buckets[i].lookups.first);
        ids_add(&job->lookups, lane->buckets[i].lookups.last);
    }
    if (ids_many(&job->frames) || ids_many(&job->lookups)) {
        free(job);
        return NULL;
    }
    for (int i = first; i-- > 0 && !job->before;)
        job->before = lane->buckets[i].frames.last;
    job->thread_id = lane->thread_id;
    job->ended_ns = lane->ended_ns;
    job->lane = at;
    job->from_ns = from_ns;
    job->to_ns = to_ns > from_ns ? to_ns : from_ns + 1;
    job->columns = columns < SCREEN_MOST ? columns : SCREEN_MOST;
    work_start(work, &job->job);
    return job;
}

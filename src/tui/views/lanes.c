/* tui/views/lanes.c -- reads what the timeline shows from the trace. See tui/views/lanes.h. Runs
 * in: the viewer, in threads. */
#include "tui/views/lanes.h"

#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "vocabulary.h"

enum { NAME_BYTES = 160 };

/* ---- names of code objects and threads ----------------------------------- */

void names_read_all(struct names *names, struct db *db, const char *statement)
{
    db_rows(row, db, schema_statement(statement))
    {
        const char *text = name_to_show(query_text(row, 1, NULL));
        *list_add(&names->all) = (struct name){
            query_integer(row, 0),
            arena_text(&names->arena, text, prose_length_without_cut_character(text, NAME_BYTES))};
    }
}

void names_free(struct names *names)
{
    list_free(&names->all);
    arena_free(&names->arena);
}

const char *name_find_by_id(const struct names *names, int64_t wanted)
{
    const struct name *name = list_find(&names->all, id, wanted);

    return name ? name->text : "?";
}

/* ---- the overview: all lanes, in BUCKETS intervals ----------------------- */

static int bucket_of_time(int64_t at_ns, int64_t span_ns)
{
    double share = span_ns > 0 ? (double)at_ns / (double)span_ns : 0;

    if (share <= 0)
        return 0;
    return share >= 1 ? BUCKETS - 1 : (int)(share * BUCKETS);
}

/* Read a time from COLUMN. In a broken file it may be any number. So it is limited, so that
 * differences of times cannot overflow. */
static int64_t read_limited_time(struct query *query, int column)
{
    int64_t ns = query_integer(query, column);
    int64_t most = INT64_MAX / 4;

    if (ns > most)
        return most;
    return ns < -most ? -most : ns;
}

static void include_id(struct ids *ids, int64_t id)
{
    if (id && (!ids->first || id < ids->first))
        ids->first = id;
    if (id > ids->last)
        ids->last = id;
}

static void extend_lane(struct lane *lane, int from, int to)
{
    if (from < lane->first)
        lane->first = from;
    if (to > lane->last)
        lane->last = to;
}

static int find_lane_of_thread(const struct lanes_job *job, int64_t thread_id)
{
    for (int at = (int)job->lanes.count; at-- > 0;)
        if (job->lanes.at[at].thread_id == thread_id)
            return at;
    return -1;
}

/* Return the address of the counter in BUCKET for lookups with OUTCOME. */
static uint32_t *counter_of_outcome(struct bucket *bucket, int64_t outcome)
{
    switch (outcome) {
    case OUTCOME_HIT:
        return &bucket->hits;
    case OUTCOME_COMPILED:
        return &bucket->misses;
    default:
        return &bucket->eager;
    }
}

static void read_lookups(struct lanes_job *job, struct db *db)
{
    db_rows(row, db, "SELECT lookup_id, thread_id, start_ns, outcome FROM lookup LIMIT ?1",
            job->job.most ? job->job.most : -1)
    {
        int at = find_lane_of_thread(job, query_integer(row, 1));
        int place = bucket_of_time(query_integer(row, 2), job->span_ns);
        struct lane *lane;
        struct bucket *bucket;
        if (at < 0)
            continue;
        lane = &job->lanes.at[at];
        bucket = &lane->buckets[place];
        lane->calls++;
        lane->marked = true;
        extend_lane(lane, place, place);
        ++*counter_of_outcome(bucket, query_integer(row, 3));
        include_id(&bucket->lookups, query_integer(row, 0));
    }
}

bool frames_continue_reading(void *context, int64_t frame_id)
{
    struct job *job = context;

    atomic_store(&job->done, frame_id);
    return !atomic_load(&job->cancelled) && (!job->most || frame_id < job->most);
}

bool has_more_frames(const struct job *job)
{
    return job->most && atomic_load(&job->all) > job->most;
}

/* Count a frame: raise the depth in all intervals that it covers, and add its id to the interval in
 * which it began. */
static void count_frame_in_intervals(void *context, struct track *track)
{
    struct lanes_job *job = context;
    const struct open_frame *frame = track_top_frame(track);
    int from = bucket_of_time(frame->start_ns, job->span_ns);
    int to = bucket_of_time(frame->end_ns, job->span_ns);
    int at = track->what ? (int)track->what - 1 : find_lane_of_thread(job, track->thread_id);
    uint32_t depth = (uint32_t)track->stack.count;
    struct lane *lane;

    if (at < 0)
        return;
    track->what = (uint32_t)at + 1;
    lane = &job->lanes.at[at];
    lane->ended_ns = track->ended_ns;
    extend_lane(lane, from, to);
    for (int i = from; i <= to; i++)
        if (lane->buckets[i].depth < depth)
            lane->buckets[i].depth = depth;
    if (lane->deepest < depth)
        lane->deepest = depth;
    include_id(&lane->buckets[from].frames, frame->id);
}

static void run_lanes_job(struct job *base, struct db *db)
{
    struct lanes_job *job = (struct lanes_job *)base;
    struct stacks stacks = {0};

    job->span_ns = db_meta_integer(db, "span_ns", 0);
    if (job->span_ns <= 0) /* the length is not known, because the trace is still being recorded */
        job->span_ns = db_integer(db, 1, schema_statement("tui/timeline-span"));
    atomic_store(&base->all, db_integer(db, 0,
                                        "SELECT MAX(COALESCE((SELECT MAX(frame_id) FROM frame), "
                                        "0), COALESCE((SELECT MAX(lookup_id) FROM lookup), 0))"));
    db_rows(row, db, schema_statement("tui/threads"), LANES_MOST)
    {
        struct lane *lane = list_add(&job->lanes);
        lane->thread_id = query_integer(row, 0);
        /* calloc(), because pages of zeros that are never written to take no memory */
        lane->buckets = calloc(BUCKETS, sizeof *lane->buckets);
        lane->first = BUCKETS;
        lane->name = arena_keep(&job->names.arena, query_copy(row, 1));
    }
    read_lookups(job, db);
    db_rows(row, db, schema_statement("tui/timeline-compiles"), job->span_ns)
    {
        struct compile_mark *mark = list_add(&job->compiles);
        mark->id = query_integer(row, 0);
        mark->lane = find_lane_of_thread(job, query_integer(row, 1));
        mark->start_ns = read_limited_time(row, 2);
        mark->end_ns = read_limited_time(row, 3);
        mark->bad = query_integer(row, 4);
        mark->broke = query_integer(row, 5);
        if (mark->lane >= 0)
            job->lanes.at[mark->lane].marked = true;
    }
    names_read_all(&job->names, db, "tui/code-names");
    job->has_unstored = doubts_describe_unstored_frames(db);
    stacks_visit_frames(db, &stacks,
                        &(struct walk){.context = job,
                                       .tick = frames_continue_reading,
                                       .push = count_frame_in_intervals});
    stacks_free(&stacks);
}

static void free_lanes_job(struct job *base)
{
    struct lanes_job *job = (struct lanes_job *)base;

    for (size_t i = 0; i < job->lanes.count; i++)
        free(job->lanes.at[i].buckets);
    list_free(&job->lanes);
    list_free(&job->compiles);
    names_free(&job->names);
}

struct lanes_job *lanes_start(struct work *work, bool first)
{
    struct lanes_job *job = job_make(sizeof *job, run_lanes_job, free_lanes_job, !first);

    job->job.most = first ? FIRST_FRAMES : 0;
    work_start_job(work, &job->job);
    return job;
}

/* ---- the details: single calls of one lane ------------------------------- */

static int column_of_time(const struct detail_job *job, int64_t at_ns)
{
    double from = (double)job->from_ns;
    double span = (double)job->to_ns - from;
    double share = ((double)at_ns - from) / span;

    if (share < 0)
        return -1;
    return share >= 1 ? job->columns : (int)(share * job->columns);
}

typedef LIST(int64_t) frame_stack;

/* Put BOX into the cells of ROW from START_NS to END_NS, but not into cells of longer frames. If
 * the job is sampled, put it only into the column that is being sampled. */
static void put_box_into_cells(struct detail_job *job, struct detail_cell box, int row,
                               int64_t start_ns, int64_t end_ns)
{
    int from = column_of_time(job, start_ns);
    int to = column_of_time(job, end_ns);

    if (end_ns < job->from_ns || start_ns > job->to_ns)
        return;
    if (job->sampled) {
        bool ran = from <= job->sampled_at && to >= job->sampled_at;
        if (!ran)
            return;
        from = job->sampled_at;
        to = from;
    }
    if (row >= job->depth)
        job->depth = row < DETAIL_DEPTH ? row + 1 : DETAIL_DEPTH;
    if (from < 0)
        from = 0;
    for (int x = from; x <= to && x < job->columns; x++) {
        struct detail_cell *cell = row < DETAIL_DEPTH ? &job->cells[row][x] : NULL;
        if (row >= job->stack[x])
            job->stack[x] = row + 1;
        if (cell && (!cell->frame_id || cell->ns < box.ns))
            *cell = box;
    }
}

/* Place the frames that STATEMENT selects for the ids FIRST to LAST. STACK has the open frames.
 * Each frame is pushed above its parent, and its index in the stack is its row on the screen. */
static void put_boxes_of_frames(struct detail_job *job, struct db *db, const char *statement,
                                int64_t first, int64_t last, frame_stack *stack)
{
    /* where a frame ends that has no end in the trace */
    int64_t ended_ns = job->to_ns < job->ended_ns ? job->to_ns : job->ended_ns;

    db_rows(frame, db, schema_statement(statement), first, last, job->thread_id, ended_ns)
    {
        bool outermost = query_type(frame, 1) == QUERY_NULL;
        int64_t parent = query_integer(frame, 1);
        int64_t start_ns = read_limited_time(frame, 3);
        int64_t end_ns = read_limited_time(frame, 4);
        struct detail_cell box = {.frame_id = query_integer(frame, 0),
                                  .code_id = query_integer(frame, 2),
                                  .ns = end_ns - start_ns};
        if (outermost)
            stack->count = 0;
        while (stack->count && stack->at[stack->count - 1] != parent)
            stack->count--;
        put_box_into_cells(job, box, (int)stack->count, start_ns, end_ns);
        *list_add(stack) = box.frame_id;
    }
}

/* Return the mark of a lookup with OUTCOME. */
static char mark_of_outcome(int64_t outcome)
{
    if (outcome == OUTCOME_HIT)
        return '.';
    if (outcome == OUTCOME_COMPILED)
        return 'm';
    return outcome == OUTCOME_LIMIT || outcome >= OUTCOME_GUARD_ERROR ? 'X' : 'e';
}

/* Is the mark A more important than B, so that it replaces B in a column? The order is: hit, miss,
 * eager, limit or error. */
static bool is_mark_more_important(char a, char b)
{
    static const char order[] = ".meX";

    return !b || strchr(order, a) > strchr(order, b);
}

/* For each column, find a call that ran then, and put this call and its callers into the cells. */
static void put_sampled_calls(struct detail_job *job, struct db *db)
{
    frame_stack stack = {0};

    for (int x = 0; x < job->columns && !atomic_load(&job->job.cancelled); x++) {
        const struct ids *ids = &job->samples[x];
        job->sampled_at = x;
        stack.count = 0;
        db_rows(row, db, schema_statement("tui/timeline-sample"), ids->first, ids->last,
                job->thread_id)
        {
            put_boxes_of_frames(job, db, "tui/timeline-callers", query_integer(row, 0), 0, &stack);
        }
    }
    list_free(&stack);
}

static void run_detail_job(struct job *base, struct db *db)
{
    struct detail_job *job = (struct detail_job *)base;
    frame_stack stack = {0};

    if (job->sampled) {
        put_sampled_calls(job, db);
        return;
    }
    /* first place the frames that were open before from_ns: the last one that began before,
     * and its callers */
    put_boxes_of_frames(job, db, "tui/timeline-callers", job->before, 0, &stack);
    put_boxes_of_frames(job, db, "tui/timeline-frames", job->frames.first, job->frames.last,
                        &stack);
    list_free(&stack);
    db_rows(row, db, schema_statement("tui/timeline-lookups"), job->lookups.first,
            job->lookups.last, job->thread_id)
    {
        int x = column_of_time(job, read_limited_time(row, 0));
        char mark = mark_of_outcome(query_integer(row, 1));
        if (x < 0 || x >= job->columns)
            continue;
        job->lookups_at[x]++;
        if (is_mark_more_important(mark, job->marks[x]))
            job->marks[x] = mark;
    }
}

static bool has_many_ids(const struct ids *ids)
{
    return (uint64_t)ids->last - (uint64_t)ids->first > DETAIL_ROWS;
}

/* For each column of JOB, choose the ids of which one is shown: those of frames that began in the
 * column. If there are none, take the last frame that began before it. */
static void choose_sampled_ids(struct detail_job *job, const struct lanes_job *lanes,
                               const struct lane *lane)
{
    double wide = (double)(job->to_ns - job->from_ns) / job->columns;
    double bucket_ns = (double)lanes->span_ns / BUCKETS;

    for (int x = 0; x < job->columns; x++) {
        double at_ns = (double)job->from_ns + wide * (x + 0.5);
        int at = bucket_of_time((int64_t)at_ns, lanes->span_ns);
        double share = at_ns / bucket_ns - at;
        struct ids ids = lane->buckets[at].frames;
        bool is_inside = share > 0 && share < 1;
        if (ids.first && is_inside)
            ids.first += (int64_t)((double)(ids.last - ids.first) * share);
        while (!ids.first && at > 0) {
            at--;
            ids.first = lane->buckets[at].frames.last;
            ids.last = ids.first;
        }
        job->samples[x] = ids;
    }
}

struct detail_job *detail_start(struct work *work, const struct lanes_job *lanes, int at,
                                int64_t from_ns, int64_t to_ns, int columns)
{
    const struct lane *lane = &lanes->lanes.at[at];
    int first = bucket_of_time(from_ns, lanes->span_ns);
    int last = bucket_of_time(to_ns, lanes->span_ns);
    struct detail_job *job = job_make(sizeof *job, run_detail_job, NULL, false);

    for (int i = first; i <= last; i++) {
        const struct bucket *bucket = &lane->buckets[i];
        include_id(&job->frames, bucket->frames.first);
        include_id(&job->frames, bucket->frames.last);
        include_id(&job->lookups, bucket->lookups.first);
        include_id(&job->lookups, bucket->lookups.last);
    }
    job->sampled = has_many_ids(&job->frames) || has_many_ids(&job->lookups);
    for (int i = first; i-- > 0 && !job->before;)
        job->before = lane->buckets[i].frames.last;
    job->thread_id = lane->thread_id;
    job->ended_ns = lane->ended_ns;
    job->lane = at;
    job->from_ns = from_ns;
    job->to_ns = to_ns > from_ns ? to_ns : from_ns + 1;
    job->columns = columns < SCREEN_MOST ? columns : SCREEN_MOST;
    if (job->sampled)
        choose_sampled_ids(job, lanes, lane);
    work_start_job(work, &job->job);
    return job;
}

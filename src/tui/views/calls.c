/* tui/views/calls.c -- parts of the pages `call` and `function` that C functions make
 * (tui/text.h): what ran inside a call, how long all calls of a function took, their callers and
 * callees.
 *
 * Runs in: the viewer, in a thread.
 *
 * For one call, part_inside() reads the callees, and skips the frames below each callee. Frame
 * ids of a thread ascend with time, so the end of a callee is found by bisection, without an
 * index.
 *
 * For all calls of a function, read_spread_of_durations() reads all frames once (trace/stacks.h),
 * which also gives the callers. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sys/param.h>

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/source.h"
#include "trace/stacks.h"
#include "trace/torch_words.h"
#include "tui/text.h"
#include "tui/views/lanes.h"

enum {
    GROUPS_MOST = 100, /* the most callers or callees that are listed */
    /* after this many frames below a callee, the end of the callee is searched for,
     * instead of reading on */
    PASS_OVER = 64,
    QUICK_FRAMES = 30000, /* how many frames are read for a first look */
    FINE_BITS = 7,        /* durations are rounded to 1 part in 2^FINE_BITS */
    FINE = 1 << FINE_BITS,
    SLOWEST = 5,
    BAR = 12,
    /* if the view has this many columns, callers and callees are listed side by side */
    SIDE_BY_SIDE = 100,
};

/* ---- groups: calls of one code object, added up -------------------------- */

struct group {
    int64_t code_id, calls, ns, first_ns, longest_ns, longest_id, first_id, last_id;
};

struct groups {
    LIST(struct group) all;
    struct map at; /* maps the code_id of a group to its index in `all` */
};

/* Add the call FRAME to the group of CODE_ID. WITHIN: a call of the same group encloses this call,
 * so its time has been counted already. */
static void add_call_to_group(struct groups *groups, int64_t code_id,
                              const struct open_frame *frame, bool within)
{
    size_t before = groups->at.count;
    int64_t *at = map_put(&groups->at, code_id);
    int64_t ns = times_span_or_zero(frame->start_ns, frame->end_ns);
    struct group *group;

    if (groups->at.count > before) {
        *at = (int64_t)groups->all.count;
        *list_add(&groups->all) = (struct group){
            .code_id = code_id,
            .first_ns = frame->start_ns,
            .first_id = frame->id,
            .longest_ns = -1,
        };
    }
    group = &groups->all.at[*at];
    group->calls++;
    if (!within)
        group->ns = times_add(group->ns, ns);
    group->last_id = frame->id;
    if (ns > group->longest_ns) {
        group->longest_ns = ns;
        group->longest_id = frame->id;
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;

    if (x->ns != y->ns)
        return list_compare_numbers(y->ns, x->ns);
    return list_compare_numbers(x->first_id, y->first_id);
}

static void free_groups(struct groups *groups)
{
    list_free(&groups->all);
    map_free(&groups->at);
}

/* Return the name of code object CODE_ID, and set *PLACE to its file and line. */
static const char *name_and_place_of_code(struct doc *doc, struct db *db, int64_t code_id,
                                          const char **place)
{
    const char *name = NULL;

    db_rows(row, db,
            "SELECT COALESCE(qualname, '?'), filename, first_line FROM code WHERE code_id = ?1",
            code_id)
    {
        const char *path = prose_shorten_path(query_text(row, 1, NULL));
        name = doc_safe(doc, name_to_show(query_text(row, 0, NULL)), 160);
        *place = doc_print(doc, "%s:%" PRId64, doc_safe(doc, path, 80), query_integer(row, 2));
    }
    if (name)
        return name;
    *place = "";
    return code_id ? "?" : "(nothing: the bottom of a stack)";
}

/* ---- the part `inside` of a page: the callees of one call ---------------- */

/* The beginning of a query for frames. Its columns are those that read_frame_of_row() reads. */
#define SELECT_FRAME "SELECT frame_id, parent_id, code_id, start_ns, end_ns FROM frame WHERE "

/* Prepare a query for the first frame of the thread THREAD_ID whose frame_id is at least ?1. */
static struct query *open_probe_query(struct db *db, int64_t thread_id)
{
    return db_query_with(db,
                         SELECT_FRAME "frame_id >= ?1 AND thread_id = ?2 ORDER BY frame_id LIMIT 1",
                         0, thread_id);
}

/* Return the id of the first frame whose id is MIDDLE or greater, if this id is less than HIGH and
 * the frame began before AT_NS. Otherwise return -1. */
static int64_t find_frame_in_interval(struct query *probe, int64_t middle, int64_t high,
                                      int64_t at_ns)
{
    int64_t id;

    query_reset(probe);
    query_bind_integer(probe, 1, middle);
    if (!query_step(probe))
        return -1;
    id = query_integer(probe, 0);
    return id < high && query_integer(probe, 3) < at_ns ? id : -1;
}

/* Return the last frame of PROBE's thread that began before AT_NS. The search begins at the
 * id FROM, which is returned if no later frame began before AT_NS. GUESS is how far from FROM
 * the frame is expected. The search first takes steps that grow until they pass the frame,
 * and then bisects. */
static int64_t find_last_frame_before(struct query *probe, int64_t from, int64_t at_ns,
                                      int64_t guess)
{
    int64_t low = from;
    int64_t high = INT64_MAX;
    int64_t step = guess;

    while (high - low > 1) {
        int64_t half = (high - low) / 2;
        int64_t middle;
        int64_t found;
        if (step > half)
            middle = low + half;
        else
            middle = high == INT64_MAX ? low + step : high - step;
        found = find_frame_in_interval(probe, middle, high, at_ns);
        if (found >= 0)
            low = found;
        else if (query_failed(probe))
            break;
        else
            high = middle;
        if (low > from && high < INT64_MAX)
            step = INT64_MAX;
        else
            step = step == guess ? 1 : times_add(step, step);
    }
    return low;
}

/* Read a frame from the current row of WALK. If the frame has no end, it is taken to end at
 * ENCLOSING_NS, with its caller. */
static struct open_frame read_frame_of_row(struct query *walk, int64_t enclosing_ns)
{
    bool open = query_type(walk, 4) == QUERY_NULL;

    return (struct open_frame){
        .id = query_integer(walk, 0),
        .code_id = query_integer(walk, 2),
        .start_ns = query_integer(walk, 3),
        .end_ns = open ? enclosing_ns : query_integer(walk, 4),
    };
}

/* Add the callees of FRAME, a call on the thread THREAD_ID, to GROUPS; for a first look only as
 * many as there is time for. Frames below a callee are not needed: after PASS_OVER of them,
 * find_last_frame_before() finds the end of the callee. If the callee before had more than
 * PASS_OVER frames, the search begins at once. */
static void read_callees(struct doc *doc, struct db *db, const struct open_frame *frame,
                         int64_t thread_id, struct groups *groups)
{
    struct query *walk =
        db_query_with(db, SELECT_FRAME "frame_id > ?1 AND thread_id = ?2 ORDER BY frame_id",
                      frame->id, thread_id);
    struct query *probe = open_probe_query(db, thread_id);
    struct open_frame callee = {.id = frame->id};
    int within = 0;
    int left = doc->whole ? INT_MAX : QUICK_FRAMES;
    int64_t apart = 0; /* how far apart the ids of the last two callees are */

    while (left > 0 && !atomic_load(&doc->job.cancelled)) {
        int64_t id, parent, guess;
        if (!query_step(walk))
            break;
        id = query_integer(walk, 0);
        parent = query_integer(walk, 1);
        if (!doc->whole)
            left--;
        if (query_type(walk, 1) == QUERY_NULL || parent < frame->id)
            break;
        within++;
        if (parent == frame->id) {
            apart = id - callee.id;
            callee = read_frame_of_row(walk, frame->end_ns);
            add_call_to_group(groups, callee.code_id, &callee, false);
            within = apart > PASS_OVER ? PASS_OVER : 0;
        }
        if (within != PASS_OVER)
            continue;
        guess = callee.id + apart - id;
        if (guess <= 0)
            guess = PASS_OVER;
        id = find_last_frame_before(probe, id, callee.end_ns, guess);
        query_reset(walk);
        query_bind_integer(walk, 1, id);
        if (!doc->whole)
            left -= PASS_OVER;
    }
    query_close(walk);
    query_close(probe);
    doc->cut = left <= 0;
}

/* Read the frame that DOC is about. If it has no end, it is taken to end with its thread. Returns
 * false if the trace does not have the frame. */
static bool read_frame_of_doc(struct doc *doc, struct db *db, struct open_frame *frame,
                              int64_t *thread_id)
{
    bool found = false;

    db_rows(row, db,
            "SELECT f.frame_id, f.thread_id, f.code_id, f.start_ns, COALESCE(f.end_ns, (SELECT "
            "x.end_ns FROM thread_ends x WHERE x.thread_id = f.thread_id)) FROM frame f WHERE "
            "f.frame_id = iif(?1 > 0, ?1, (SELECT frame_id FROM lookup WHERE lookup_id = -?1))",
            doc->target.id)
    {
        *frame = (struct open_frame){
            .id = query_integer(row, 0),
            .code_id = query_integer(row, 2),
            .start_ns = query_integer(row, 3),
            .end_ns = query_integer(row, 4),
        };
        *thread_id = query_integer(row, 1);
        found = true;
    }
    return found;
}

/* Does DOC show only the call stack? It does in the view beside the timeline. */
static bool shows_doc_only_stack(const struct doc *doc)
{
    return doc->aside && doc->target.about == VIEW_TIMELINE;
}

/* Add a line for the callees in the group G. FRAME is their caller, and took TOOK nanoseconds. */
static void add_line_of_callees(struct doc *doc, struct db *db, const struct open_frame *frame,
                                const struct group *g, int64_t took)
{
    bool wide = doc->columns >= SIDE_BY_SIDE;
    double share = took > 0 ? (double)g->ns / (double)took : 0;
    const char *place;
    const char *name = name_and_place_of_code(doc, db, g->code_id, &place);
    const char *shown = doc_fit(doc, name, wide ? doc->columns / 4 : 18);
    const char *calls;
    char bar[CELL_TEXT];

    doc_line(doc,
             "  " MARK "a%s" MARK "n%8s x " MARK "b%s" MARK "n %9s  first %.6f s, longest %s  " MARK
             "d%s",
             wide ? bar_print(bar, share, BAR) : "", doc_count(doc, g->calls), shown,
             doc_time(doc, g->ns), (double)g->first_ns / 1e9, doc_time(doc, g->longest_ns),
             wide ? place : "");
    if (g->calls == 1) {
        doc_leads(doc, VIEW_CALL, g->longest_id, NULL, NULL);
        return;
    }
    calls = doc_print(doc,
                      "parent_id = %" PRId64 " AND code_id = %" PRId64
                      " AND frame_id BETWEEN %" PRId64 " AND %" PRId64,
                      frame->id, g->code_id, g->first_id, g->last_id);
    doc_leads(doc, VIEW_FRAMES, 0, calls, name);
}

void part_inside(struct doc *doc, struct db *db, struct query *unused)
{
    struct groups inside = {0};
    struct open_frame frame;
    int64_t thread_id;
    int64_t calls = 0;
    int64_t ns = 0;
    int64_t took, more;
    const char *counted, *own;

    if (shows_doc_only_stack(doc) || !read_frame_of_doc(doc, db, &frame, &thread_id))
        return;
    read_callees(doc, db, &frame, thread_id, &inside);
    took = times_span_or_zero(frame.start_ns, frame.end_ns);
    list_each(group, &inside.all) {
        calls += group->calls;
        ns = times_add(ns, group->ns);
    }
    counted = calls ? doc_counted(doc, calls, "call") : "no calls";
    own = doc->cut ? "..." : doc_time(doc, took > ns ? took - ns : 0);
    doc_part(doc, "Inside: %s%s, %s" MARK "n; %s its own",
             doc->cut ? "as far as it was read, " : "", counted, doc_time(doc, ns), own);
    list_sort(&inside.all, compare_groups);
    for (size_t i = 0; i < inside.all.count && i < GROUPS_MOST; i++)
        add_line_of_callees(doc, db, &frame, &inside.all.at[i], took);
    more = (int64_t)inside.all.count - GROUPS_MOST;
    if (more > 0)
        doc_line(doc, "  " MARK "d+ %s", doc_counted(doc, more, "function"));
    free_groups(&inside);
}

/* ---- the part `spread` of a page: durations, callers and callees of a function ---- */

struct near {
    int64_t ns, id, at_ns; /* if the id is 0, there is no such call */
};

struct spread {
    struct doc *doc; /* borrowed; its job may be cancelled by the user */
    /* the code ids of the function as an SQL list, "(1, 2)"; belongs to `doc` */
    const char *list;
    LIST(int64_t) codes; /* the code ids of the function, sorted */
    int64_t calls;
    uint32_t buckets[64 * FINE]; /* for each bucket of durations, the number of calls */
    struct near slowest[SLOWEST];
    struct groups callers, callees;
    /* asked: the call that part_rank() is about. slower, faster: the calls that took the next
     * longer and the next shorter time */
    struct near asked, slower, faster;
    int64_t longer; /* how many calls took longer than `asked` */
};

static int bucket_of_duration(int64_t ns)
{
    int bits, power;

    if (ns <= 0)
        return 0;
    if (ns < FINE)
        return (int)ns;
    bits = 64 - __builtin_clzll((uint64_t)ns);
    power = bits - FINE_BITS;
    return power * FINE + (int)(ns >> (power - 1) & (FINE - 1));
}

/* Return the duration in the middle of the bucket with the index BUCKET. */
static int64_t duration_of_bucket(int bucket)
{
    int power = bucket / FINE;
    int64_t wide, first;

    if (!power)
        return bucket;
    wide = (int64_t)1 << (power - 1);
    first = FINE + bucket % FINE;
    return first * wide + wide / 2;
}

static bool count_frame_and_continue(void *context, int64_t frame_id)
{
    struct spread *spread = context;

    return frames_continue_reading(&spread->doc->job, frame_id);
}

/* Does the call A come before the call B in a list that begins with the longest? If both took the
 * same time, the earlier one comes first. */
static bool is_longer_call(struct near a, struct near b)
{
    if (a.ns != b.ns)
        return a.ns > b.ns;
    return a.id < b.id;
}

/* What open_frame.what means while read_spread_of_durations() walks over the frames. CALL_OF_IT is
 * set if the frame is a call of the function. The other bits are the position of the innermost call
 * of the function among the frame's callers: its index in the stack + 1, or 0 if there is none. */
enum { CALL_OF_IT = 1 << 30 };

/* Return the code object at the position AT of the stack of TRACK: 1 is the outermost.
 * Returns 0 if AT is 0. */
static int64_t code_at_depth(const struct track *track, uint32_t at)
{
    return at ? track->stack.at[at - 1].code_id : 0;
}

/* Is the time of FRAME part of another call's time that its group has counted? Without CALLEE, the
 * other call is a call of the function by the same caller. With CALLEE, it is a call of FRAME's
 * code object by an outer call of the function. */
static bool is_time_counted_already(const struct track *track, const struct open_frame *frame,
                                    bool callee)
{
    const struct open_frame *stack = track->stack.at;
    /* the position of the caller in the stack, from 1 */
    uint32_t place = (uint32_t)(frame - stack);
    const struct open_frame *from = callee ? frame - 1 : frame;
    int64_t other = callee ? frame->code_id : code_at_depth(track, place);
    uint32_t at = from->what & ~CALL_OF_IT;

    while (at) {
        uint32_t beside = callee ? at + 1 : at - 1;
        if (code_at_depth(track, beside) == other)
            return true;
        at = stack[at - 1].what & ~CALL_OF_IT;
    }
    return false;
}

/* If CALL is one of the slowest calls, insert it into their list. */
static void add_to_slowest_calls(struct spread *spread, struct near call)
{
    struct near *slowest = spread->slowest;
    int at = SLOWEST;

    for (; at > 0; at--) {
        struct near other = slowest[at - 1];
        if (other.id && !is_longer_call(call, other))
            break;
        if (at < SLOWEST)
            slowest[at] = other;
    }
    if (at < SLOWEST)
        slowest[at] = call;
}

/* Compare CALL with the call `asked` by duration. Count it if it took longer, and note it if it is
 * the next longer or the next shorter one. */
static void update_neighbours_by_duration(struct spread *spread, struct near call)
{
    struct near *slower = &spread->slower;
    struct near *faster = &spread->faster;

    if (is_longer_call(call, spread->asked)) {
        spread->longer++;
        if (!slower->id || is_longer_call(*slower, call))
            *slower = call;
        return;
    }
    if (call.id == spread->asked.id)
        return;
    if (!faster->id || is_longer_call(call, *faster))
        *faster = call;
}

static void count_call_of_function(struct spread *spread, const struct track *track)
{
    const struct open_frame *frame = track_top_frame(track);
    int64_t caller = code_at_depth(track, (uint32_t)track->stack.count - 1);
    struct near call = {
        .ns = times_span_or_zero(frame->start_ns, frame->end_ns),
        .id = frame->id,
        .at_ns = frame->start_ns,
    };

    spread->calls++;
    spread->buckets[bucket_of_duration(call.ns)]++;
    add_to_slowest_calls(spread, call);
    if (spread->asked.id)
        update_neighbours_by_duration(spread, call);
    else
        add_call_to_group(&spread->callers, caller, frame,
                          is_time_counted_already(track, frame, false));
}

static void note_frame(void *context, struct track *track)
{
    struct spread *spread = context;
    struct open_frame *frame = track_top_frame(track);
    uint32_t callers = (uint32_t)track->stack.count - 1;
    uint32_t above = callers ? frame[-1].what : 0;
    bool called_by_it = above & CALL_OF_IT;

    frame->what = called_by_it ? callers : above;
    if (list_has(&spread->codes, frame->code_id)) {
        frame->what |= CALL_OF_IT;
        count_call_of_function(spread, track);
    }
    if (called_by_it && !spread->asked.id)
        add_call_to_group(&spread->callees, frame->code_id, frame,
                          is_time_counted_already(track, frame, true));
}

/* Read all calls of the function of CODE_ID. If ASKED is a call, only find its number in the order
 * of duration, and the calls before and after it.
 * The caller frees the result with free_spread(). */
static struct spread *read_spread_of_durations(struct doc *doc, struct db *db, int64_t code_id,
                                               struct near asked)
{
    struct spread *spread = calloc(1, sizeof *spread);
    struct walk walk = {.context = spread, .tick = count_frame_and_continue, .push = note_frame};
    struct stacks stacks = {0};
    const char *at;

    spread->doc = doc;
    spread->asked = asked;
    spread->list = page_list_codes(doc, db, code_id);
    at = spread->list + 1;
    for (;;) {
        char *end;
        int64_t code = strtoll(at, &end, 10);
        if (!code || end == at)
            break;
        *list_add(&spread->codes) = code;
        at = end + strspn(end, ", ");
    }
    stacks_visit_frames(db, &stacks, &walk);
    stacks_free(&stacks);
    return spread;
}

static void free_spread(struct spread *spread)
{
    list_free(&spread->codes);
    free_groups(&spread->callers);
    free_groups(&spread->callees);
    free(spread);
}

/* Return "; p: 12 ms" for the key KEY, if CALL took 12 ms. Returns "" if there is no such call. */
static const char *describe_neighbour(struct doc *doc, const char *key, const struct near *call)
{
    return call->id ? doc_print(doc, "; %s: %s", key, doc_time(doc, call->ns)) : "";
}

/* Add a line with the rank of a call among all calls of its function. */
void part_rank(struct doc *doc, struct db *db, struct query *unused)
{
    struct open_frame frame;
    struct near asked = {0};
    struct spread *spread;
    int64_t thread_id;

    if (shows_doc_only_stack(doc) || !read_frame_of_doc(doc, db, &frame, &thread_id))
        return;
    asked.ns = times_span_or_zero(frame.start_ns, frame.end_ns);
    asked.id = frame.id;
    spread = read_spread_of_durations(doc, db, frame.code_id, asked);
    if (spread->slower.id)
        doc->previous = (struct target){.kind = VIEW_CALL, .id = spread->slower.id};
    if (spread->faster.id)
        doc->next = (struct target){.kind = VIEW_CALL, .id = spread->faster.id};
    doc_line(doc, "by time    %s of %s, the slowest first%s%s", doc_count(doc, spread->longer + 1),
             doc_count(doc, spread->calls), describe_neighbour(doc, "p", &spread->slower),
             describe_neighbour(doc, "n", &spread->faster));
    free_spread(spread);
}

/* Return the duration that the part SHARE of the calls (0.5: half) does not exceed, exact to
 * about one percent. */
static int64_t find_quantile(const struct spread *spread, double share)
{
    int64_t left = (int64_t)ceil(share * (double)spread->calls);
    int64_t longest = spread->slowest[0].ns;
    int64_t ns = 0;

    for (int bucket = 0; bucket < 64 * FINE; bucket++) {
        ns = duration_of_bucket(bucket);
        left -= spread->buckets[bucket];
        if (left <= 0)
            break;
    }
    return ns < longest ? ns : longest;
}

enum { DECADES = 20 };

/* Count the calls for each power of ten of nanoseconds. Returns the largest count. */
static int64_t count_calls_by_decade(const struct spread *spread, int64_t counts[DECADES])
{
    int64_t most = 0;

    memset(counts, 0, DECADES * sizeof *counts);
    for (int bucket = 0; bucket < 64 * FINE; bucket++) {
        if (!spread->buckets[bucket])
            continue; /* skip the last buckets, which are for longer times than an int64_t holds */
        int decade = (int)log10((double)duration_of_bucket(bucket) + 0.5);
        counts[decade] += spread->buckets[bucket];
    }
    for (int decade = 0; decade < DECADES; decade++)
        if (counts[decade] > most)
            most = counts[decade];
    return most;
}

/* Add a line for the COUNT calls that took from FROM to TO nanoseconds. It has a bar of which the
 * part SHARE is filled. */
static void add_line_of_decade(struct doc *doc, const struct spread *spread, const char *name,
                               int64_t from, int64_t to, int64_t count, double share)
{
    const char *fastest = doc_time(doc, from);
    const char *slowest = doc_time(doc, to);
    char bar[CELL_TEXT];

    bar_print(bar, share, BAR * 2);
    doc_line(doc, "  %8s .. %-8s " MARK "a%s" MARK "n %8s", fastest, slowest, bar,
             doc_count(doc, count));
    if (count) {
        const char *calls =
            doc_print(doc, "code_id IN %s AND call >= %" PRId64 " AND call < %" PRId64,
                      spread->list, from, to);
        doc_leads(doc, VIEW_FRAMES, 0, calls, name);
    }
}

/* Add a line for each power of ten, from the fastest call to the slowest. */
static void add_lines_of_decades(struct doc *doc, const struct spread *spread, const char *name)
{
    int64_t counts[DECADES];
    int64_t most = count_calls_by_decade(spread, counts);
    int64_t left = spread->calls;
    int64_t from = 0;
    int64_t to = 10;

    for (int decade = 0; left; decade++) {
        int64_t count = counts[decade];
        left -= count;
        if (left < spread->calls) /* skip the powers of ten below the fastest call */
            add_line_of_decade(doc, spread, name, from, to, count, (double)count / (double)most);
        from = to;
        to = decade + 1 < 18 ? to * 10 : INT64_MAX;
    }
}

/* Return a text of COLUMNS columns for group number I of GROUPS. *TARGET gets the view of its
 * function. Returns "" if there is no such group. */
static const char *make_line_of_group(struct doc *doc, struct db *db, const struct groups *groups,
                                      size_t i, int columns, struct target *target)
{
    bool narrow = columns < 60;
    const struct group *g;
    const char *name, *place;

    *target = (struct target){0};
    if (i >= groups->all.count)
        return "";
    g = &groups->all.at[i];
    if (g->code_id)
        *target = (struct target){.kind = VIEW_FUNCTION, .id = g->code_id};
    name = name_and_place_of_code(doc, db, g->code_id, &place);
    name = doc_fit(doc, name, narrow ? columns - 24 : 30);
    if (narrow)
        place = "";
    return doc_print(doc, "%8s x %s %9s  " MARK "d%s", doc_count(doc, g->calls), name,
                     doc_time(doc, g->ns), place);
}

/* Add the heading TITLE, and below it a line for each of GROUPS, which are callers or callees. */
static void add_groups(struct doc *doc, struct db *db, const struct groups *groups,
                       const char *title)
{
    doc_part(doc, "%s", title);
    for (size_t i = 0; i < GROUPS_MOST && i < groups->all.count; i++) {
        struct target target;
        doc_add_line(doc, make_line_of_group(doc, db, groups, i, doc->columns - 2, &target));
        doc_set_target(doc, target);
    }
    if (!groups->all.count)
        doc_line(doc, "  " MARK "dnothing");
}

/* Add the callers at the left and the callees at the right, in COLUMNS columns each. */
static void add_groups_side_by_side(struct doc *doc, struct db *db, const struct spread *spread,
                                    int columns)
{
    size_t callers = spread->callers.all.count;
    size_t callees = spread->callees.all.count;
    size_t most = callers > callees ? callers : callees;

    doc_part(doc, "%s   %s", doc_fit(doc, "Called from", columns), "Calls");
    for (size_t i = 0; i < GROUPS_MOST && i < most; i++) {
        struct target left, right;
        const char *caller = make_line_of_group(doc, db, &spread->callers, i, columns, &left);
        const char *callee = make_line_of_group(doc, db, &spread->callees, i, columns, &right);
        doc_add_halves(doc, caller, columns, callee, right);
        doc_set_target(doc, left);
    }
    if (!most)
        doc_line(doc, "  " MARK "dnothing");
}

/* Add callers and callees, side by side if the view is wide enough. */
static void add_callers_and_callees(struct doc *doc, struct db *db, struct spread *spread)
{
    list_sort(&spread->callers.all, compare_groups);
    list_sort(&spread->callees.all, compare_groups);
    if (doc->columns >= SIDE_BY_SIDE) {
        add_groups_side_by_side(doc, db, spread, (doc->columns - 4) / 2);
        return;
    }
    add_groups(doc, db, &spread->callers, "Called from");
    add_groups(doc, db, &spread->callees, "Calls");
}

static void add_slowest_calls(struct doc *doc, const struct spread *spread)
{
    doc_part(doc, "Slowest calls: p shows the first");
    doc->previous = (struct target){.kind = VIEW_CALL, .id = spread->slowest[0].id};
    for (int i = 0; i < SLOWEST; i++) {
        const struct near *call = &spread->slowest[i];
        if (!call->id)
            break;
        doc_line(doc, "  %9s  at %.6f s", doc_time(doc, call->ns), (double)call->at_ns / 1e9);
        doc_leads(doc, VIEW_CALL, call->id, NULL, NULL);
    }
}

void part_spread(struct doc *doc, struct db *db, struct query *unused)
{
    struct spread *spread = read_spread_of_durations(doc, db, doc->target.id, (struct near){0});
    const char *place;
    const char *name = name_and_place_of_code(doc, db, doc->target.id, &place);

    if (spread->calls) {
        const char *p50 = doc_time(doc, find_quantile(spread, 0.5));
        const char *p95 = doc_time(doc, find_quantile(spread, 0.95));
        doc_part(doc, "Durations of %s: p50 ~%s, p95 ~%s, longest %s",
                 doc_counted(doc, spread->calls, "call"), p50, p95,
                 doc_time(doc, spread->slowest[0].ns));
        add_lines_of_decades(doc, spread, name);
        add_slowest_calls(doc, spread);
        add_callers_and_callees(doc, db, spread);
    }
    free_spread(spread);
}

/* ---- the parts `origin` and `function_source` of the page `function` ----- */

enum { GUTTERS = 400, LINES_MOST = 1000 };

/* Add a line that tells from which function this one was made, if it is a resume function, for
 * example. ROW has the function's name, and the code object from which it was made. */
void part_origin(struct doc *doc, struct db *db, struct query *row)
{
    bool has_origin = query_type(row, 1) != QUERY_NULL;
    char *origin = NULL;
    int64_t line = 0;

    if (torch_parse_resume_name(query_text(row, 0, NULL), &origin, &line))
        doc_line(doc, "the rest of %s after line %" PRId64 ", where its graph broke",
                 doc_safe(doc, doc_keep(doc, origin), 160), line);
    else if (has_origin)
        doc_line(doc, "made from another function: Enter shows it");
    if (has_origin)
        doc_leads(doc, VIEW_FUNCTION, query_integer(row, 1), NULL, NULL);
}

/* Mark a source line whose CALLS calls took SELF of the function's own time ALL. */
static void mark_hot_line(struct doc *doc, struct gutter *gutter, int64_t self, int64_t all,
                          int64_t calls)
{
    /* neither 0 % nor 100 % unless it is exactly that */
    double least = self > 0 ? 1 : 0;
    double most = self < all ? 99 : 100;
    double percent = 100.0 * (double)self / (double)all;
    char style = percent >= 50 ? 'r' : 'w';

    percent = MIN(MAX(percent, least), most);
    gutter->mark = doc_print(doc, MARK "%c%3.0f %%" MARK "n", style, percent);
    gutter->note = doc_print(doc, MARK "d%s own time, %s", doc_time(doc, self),
                             doc_counted(doc, calls, "call"));
}

/* Return what stands beside a source line: a mark at its left, a note behind it. ROW is a row of
 * schemas/tui/function-lines.sql. FIRST and LAST are the first and last line of the function. */
static struct gutter make_gutter_of_line(struct doc *doc, struct query *row, int64_t first,
                                         int64_t last)
{
    enum { IS_CODE, ID, LINE, KIND, NAME, SELF, CALLS, ALL };
    const char *name = query_text(row, NAME, NULL);
    int64_t calls = query_integer(row, CALLS);
    int64_t self = query_integer(row, SELF);
    int64_t all = query_integer(row, ALL);
    int64_t after = 0;
    struct gutter gutter = {
        .line = query_integer(row, LINE),
        .id = query_integer(row, ID),
        .kind = VIEW_FUNCTION,
    };

    if (!query_integer(row, IS_CODE)) {
        gutter.kind = VIEW_BREAK;
        gutter.mark = MARK "rbreak" MARK "n";
        gutter.note = doc_print(doc, MARK "r<- %s", doc_safe(doc, name, 70));
    } else if (torch_parse_resume_name(name, NULL, &after)) {
        if (after >= first && after <= last)
            gutter.line = after;
        gutter.mark = MARK "aresum" MARK "n";
        gutter.note = doc_print(doc, MARK "aresumed: %s", doc_counted(doc, calls, "call"));
    } else if (!strcmp(query_text(row, KIND, NULL), "resume")) {
        gutter.mark = MARK "aresum" MARK "n";
        gutter.note = MARK "athe rest after a graph break";
    } else {
        if (gutter.line == first)
            gutter.kind = VIEW_NONE;
        if (self > 0 && (double)self * 20 >= (double)all)
            mark_hot_line(doc, &gutter, self, all, calls);
    }
    return gutter;
}

/* Add the source of the function, with marks. ROW has the file and the first line
 * of the function. */
void part_function_source(struct doc *doc, struct db *db, struct query *row)
{
    struct source source = source_read(query_text(row, 0, NULL));
    int64_t first = query_integer(row, 1);
    int64_t last = source.text ? source_find_function_end(&source, first) : first;
    struct gutter gutter[GUTTERS];
    size_t count = 0;

    if (last > first + LINES_MOST)
        last = first + LINES_MOST;
    db_rows(line, db, schema_statement("tui/function-lines"), doc->target.id, first, last)
    {
        gutter[count] = make_gutter_of_line(doc, line, first, last);
        if (gutter[count].mark && count + 1 < GUTTERS)
            count++;
    }
    source_add_lines(doc, db, &source, first, last, 0, gutter, count);
    source_free(&source);
}

int64_t frame_find_at_time(struct db *db, int64_t thread_id, int64_t at_ns)
{
    struct query *probe = open_probe_query(db, thread_id);
    int64_t frame_id = find_last_frame_before(probe, 0, times_add(at_ns, 1), PASS_OVER);
    int64_t found = 0;

    query_close(probe);
    while (frame_id && !found) {
        int64_t caller = 0;
        db_rows(row, db, SELECT_FRAME "frame_id = ?1", frame_id)
        {
            bool open = query_type(row, 4) == QUERY_NULL;
            if (open || query_integer(row, 4) > at_ns)
                found = frame_id;
            caller = query_integer(row, 1);
        }
        frame_id = caller < frame_id ? caller : 0;
    }
    return found;
}

/* ---- the view `call` ----------------------------------------------------- */

static void build_call_view(struct doc *doc, struct db *db)
{
    int64_t id = doc->target.id;

    /* opened from the timeline: find the call that ran on this thread at that moment */
    if (doc->target.about == VIEW_TIMELINE) {
        id = frame_find_at_time(db, id, doc->target.at_ns);
        doc->target.id = id;
    }
    if (id > 0 && !doc->quick)
        db_rows(row, db, schema_statement("tui/call-lookup"), id)
        {
            doc->target.id = query_integer(row, 0);
        }
    page_build_doc(doc, db);
}

const struct view_ops view_call = {
    .summary = "one call: how it was decided, what ran inside, and who called; p n: a slower or a "
               "faster one of its function",
    .keys = "Enter opens  p slower  n faster  u caller  t timeline  r replay  v beside  o source",
    .build = build_call_view,
    .all = VIEW_FRAMES,
    .base = &text_ops,
};

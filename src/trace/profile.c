/* trace/profile.c -- reads how long the calls of a function took. See trace/profile.h. */
#include "trace/profile.h"

#include <math.h>

#include "lib/json.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "trace/stacks.h"

struct reading {
    struct profile *profile;
    struct progress *progress; /* borrowed */
    int64_t last_frame;
    struct found_ids ids;
    struct map callers; /* maps the code_id of a caller to 1 + its index in profile->callers */
    /* maps a thread_id to how many calls of the function are open on the thread */
    struct map open;
};

static int compare_durations(const void *a, const void *b)
{
    return list_compare_numbers(*(const int64_t *)a, *(const int64_t *)b);
}

static int compare_callers(const void *a, const void *b)
{
    const struct caller *x = a;
    const struct caller *y = b;
    int order = list_compare_numbers(y->ns, x->ns);

    return order ? order : list_compare_numbers(x->code_id, y->code_id);
}

static bool show_reading_progress(void *context, int64_t frame_id)
{
    struct reading *reading = context;

    progress_tick(reading->progress, frame_id, reading->last_frame);
    return true;
}

/* ---- first pass over the frames: durations and callers ------------------- */

static void add_to_slowest_calls(struct profile *profile, const struct open_frame *frame,
                                 int64_t ns)
{
    struct slow_call *slowest = profile->slowest;
    int at = profile->slow_count;

    while (at > 0 && ns > slowest[at - 1].ns)
        at--;
    if (at == PROFILE_SLOWEST)
        return;
    if (profile->slow_count < PROFILE_SLOWEST)
        profile->slow_count++;
    for (int i = profile->slow_count - 1; i > at; i--)
        slowest[i] = slowest[i - 1];
    slowest[at] = (struct slow_call){
        .frame_id = frame->id,
        .start_ns = frame->start_ns,
        .ns = ns,
    };
}

static void add_time_of_caller(struct reading *reading, int64_t code_id, bool is_call, int64_t ns)
{
    struct profile *profile = reading->profile;
    int64_t *place = map_put(&reading->callers, code_id);
    struct caller *caller;

    if (!*place) {
        list_add(&profile->callers)->code_id = code_id;
        *place = (int64_t)profile->callers.count;
    }
    caller = &profile->callers.at[*place - 1];
    caller->calls += is_call;
    caller->ns = times_add(caller->ns, ns);
}

static void note_call_begin(void *context, struct track *track)
{
    struct reading *reading = context;
    const struct open_frame *frame = track_top_frame(track);
    int64_t caller = track->stack.count > 1 ? frame[-1].code_id : 0;
    int64_t ns = times_span_or_zero(frame->start_ns, frame->end_ns);
    int64_t *open;
    bool is_outermost;

    if (!found_ids_has(&reading->ids, frame->code_id))
        return;
    open = map_put(&reading->open, track->thread_id);
    is_outermost = !*open;
    ++*open;
    *list_add(&reading->profile->durations) = ns;
    if (is_outermost)
        add_to_slowest_calls(reading->profile, frame, ns);
    add_time_of_caller(reading, caller, frame->is_call, is_outermost ? ns : 0);
}

static void note_call_end(void *context, struct track *track)
{
    struct reading *reading = context;

    if (found_ids_has(&reading->ids, track_top_frame(track)->code_id))
        --*map_put(&reading->open, track->thread_id);
}

/* ---- second pass over the frames: callees of the slowest calls ----------- */

/* If FRAME is one of the slowest calls, make it the root of a tree of its callees, and return true.
 * The code_id of the root becomes -1 for the slowest call, -2 for the next, and so on. */
static bool make_slowest_root(void *context, struct open_frame *frame)
{
    const struct reading *reading = context;

    for (int i = 0; i < reading->profile->slow_count; i++) {
        if (reading->profile->slowest[i].frame_id == frame->id) {
            frame->code_id = -1 - i;
            return true;
        }
    }
    return false;
}

/* Follow the callee that took the most time down the tree, as long as this was at least half of its
 * caller's time. */
static void follow_longest_callees(struct slow_call *call, const struct node *nodes, uint32_t at)
{
    call->self_ns = nodes[at].self_ns;
    while (call->steps < PROFILE_PATH) {
        uint32_t child = nodes[at].child;
        if (!child || nodes[child].total_ns < nodes[at].total_ns / 2)
            break;
        call->path[call->steps] = (struct path_step){
            .code_id = nodes[child].code_id,
            .calls = nodes[child].calls,
            .total_ns = nodes[child].total_ns,
            .self_ns = nodes[child].self_ns,
        };
        call->steps++;
        at = child;
    }
}

static void read_paths_of_slowest_calls(struct db *db, struct reading *reading)
{
    const struct walk walk = {
        .context = reading,
        .fold = true,
        .tick = show_reading_progress,
        .root = make_slowest_root,
        .same = &reading->ids.same,
    };
    struct stacks stacks = {0};
    const struct node *nodes;

    stacks_visit_frames(db, &stacks, &walk);
    tree_link_children(&stacks.tree);
    nodes = stacks.tree.nodes.at;
    for (uint32_t at = nodes[0].child; at; at = nodes[at].sibling)
        follow_longest_callees(&reading->profile->slowest[-1 - nodes[at].code_id], nodes, at);
    stacks_free(&stacks);
}

/* ---- both passes together, and what is computed from them ---------------- */

void profile_read(struct db *db, const struct found_code *code, struct profile *profile,
                  struct progress *progress)
{
    struct reading reading = {.profile = profile, .progress = progress};
    const struct walk walk = {
        .context = &reading,
        .tick = show_reading_progress,
        .push = note_call_begin,
        .pop = note_call_end,
        .same = &reading.ids.same,
    };
    struct stacks stacks = {0};

    reading.ids = found_ids_read(db, code);
    reading.last_frame = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame");
    stacks_visit_frames(db, &stacks, &walk);
    stacks_free(&stacks);
    list_sort(&profile->durations, compare_durations);
    list_sort(&profile->callers, compare_callers);
    if (profile->slow_count)
        read_paths_of_slowest_calls(db, &reading);
    found_ids_free(&reading.ids);
    map_free(&reading.callers);
    map_free(&reading.open);
}

void profile_free(struct profile *profile)
{
    list_free(&profile->durations);
    list_free(&profile->callers);
}

int64_t profile_get_quantile(const struct profile *profile, double share)
{
    size_t place = (size_t)ceil(share * (double)profile->durations.count);

    return profile->durations.at[place ? place - 1 : 0];
}

/* Bars of durations begin at the bounds 1, 2, 5, 10, 20, 50, ... or, if COARSE, at 1, 10, 100, ...
 * Return the bound that follows NS. */
static int64_t next_bound_of_bars(int64_t ns, bool coarse)
{
    int64_t power = 1;

    if (ns > INT64_MAX / 10)
        return INT64_MAX;
    if (!ns)
        return 1;
    while (power <= ns / 10)
        power *= 10;
    if (coarse)
        return power * 10;
    if (ns < 2 * power)
        return 2 * power;
    return ns < 5 * power ? 5 * power : 10 * power;
}

/* Return the greatest bound of a bar that is at most NS. See next_bound_of_bars(). */
static int64_t last_bound_of_bars(int64_t ns, bool coarse)
{
    int64_t bound = 0;

    while (next_bound_of_bars(bound, coarse) <= ns)
        bound = next_bound_of_bars(bound, coarse);
    return bound;
}

/* Return how many bars are needed for durations from SHORTEST to LONGEST. Does not count beyond
 * PROFILE_BARS + 1. */
static int count_bars_needed(int64_t shortest, int64_t longest, bool coarse)
{
    int64_t from = last_bound_of_bars(shortest, coarse);
    int count = 0;

    for (; from <= longest && count <= PROFILE_BARS; count++)
        from = next_bound_of_bars(from, coarse);
    return count;
}

int profile_count_bars(const struct profile *profile, struct duration_bar bars[PROFILE_BARS])
{
    size_t calls = profile->durations.count;
    int64_t shortest = profile->durations.at[0];
    int64_t longest = profile->durations.at[calls - 1];
    bool coarse = count_bars_needed(shortest, longest, false) > PROFILE_BARS;
    int64_t from = last_bound_of_bars(shortest, coarse);
    size_t below = 0;
    int count = 0;

    while (count < PROFILE_BARS && below < calls) {
        bool is_last = count == PROFILE_BARS - 1;
        int64_t to = is_last ? INT64_MAX : next_bound_of_bars(from, coarse);
        size_t up_to = sorted_count(calls, i, profile->durations.at[i] < to);
        bars[count] = (struct duration_bar){from, to, (int64_t)((is_last ? calls : up_to) - below)};
        count++;
        below = is_last ? calls : up_to;
        from = to;
    }
    return count;
}

/* ---- writing the profile as JSON ----------------------------------------- */

static void write_bars_as_json(const struct profile *profile, struct json *json)
{
    struct duration_bar bars[PROFILE_BARS];
    int count = profile->durations.count ? profile_count_bars(profile, bars) : 0;

    json_list(json, "histogram");
    for (int i = 0; i < count; i++) {
        const struct duration_bar *bar = &bars[i];
        json_object(json, NULL);
        json_integer(json, "from_ns", bar->from_ns);
        json_integer_or_null(json, "to_ns", bar->to_ns != INT64_MAX, bar->to_ns);
        json_integer(json, "calls", bar->calls);
        json_end(json);
    }
    json_end(json);
}

static void write_path_as_json(const struct slow_call *call, struct json *json)
{
    json_list(json, "path");
    for (int i = 0; i < call->steps; i++) {
        const struct path_step *step = &call->path[i];
        json_object(json, NULL);
        json_integer(json, "code_id", step->code_id);
        json_integer(json, "calls", step->calls);
        json_integer(json, "total_ns", step->total_ns);
        json_integer(json, "self_ns", step->self_ns);
        json_end(json);
    }
    json_end(json);
}

static void write_slowest_calls_as_json(const struct profile *profile, struct json *json)
{
    json_list(json, "slowest");
    for (int i = 0; i < profile->slow_count; i++) {
        const struct slow_call *call = &profile->slowest[i];
        json_object(json, NULL);
        json_integer(json, "frame_id", call->frame_id);
        json_integer(json, "start_ns", call->start_ns);
        json_integer(json, "duration_ns", call->ns);
        json_integer(json, "self_ns", call->self_ns);
        write_path_as_json(call, json);
        json_end(json);
    }
    json_end(json);
}

static void write_callers_as_json(const struct profile *profile, struct json *json)
{
    json_list(json, "callers");
    list_each(caller, &profile->callers) {
        json_object(json, NULL);
        json_integer_or_null(json, "code_id", caller->code_id, caller->code_id);
        json_integer(json, "calls", caller->calls);
        json_integer(json, "total_ns", caller->ns);
        json_end(json);
    }
    json_end(json);
}

/* Write the duration that the part SHARE of the calls did not exceed (a quantile) to JSON, or null
 * if there are no calls. */
static void write_quantile_as_json(const struct profile *profile, struct json *json,
                                   const char *key, double share)
{
    if (profile->durations.count)
        json_integer(json, key, profile_get_quantile(profile, share));
    else
        json_null(json, key);
}

void profile_write_as_json(const struct profile *profile, struct json *json, const char *key)
{
    json_object(json, key);
    json_integer(json, "calls", (int64_t)profile->durations.count);
    write_quantile_as_json(profile, json, "p50_ns", 0.5);
    write_quantile_as_json(profile, json, "p95_ns", 0.95);
    write_quantile_as_json(profile, json, "max_ns", 1);
    write_bars_as_json(profile, json);
    write_slowest_calls_as_json(profile, json);
    write_callers_as_json(profile, json);
    json_end(json);
}

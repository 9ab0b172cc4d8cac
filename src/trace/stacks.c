/* trace/stacks.c -- walks over frames in order of id, and keeps call stacks. See trace/stacks.h. */
#include "trace/stacks.h"

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/scan.h"
#include "vocabulary.h"

enum { TICK_ROWS = 1 << 14, HEADS = 1 << 19 };

int64_t stacks_find_end_time(struct db *db)
{
    return db_integer(db, 0, schema_statement("stacks/end"));
}

/* ---- adding up times in a tree ------------------------------------------- */

static uint32_t *find_hash_head(struct tree *tree, uint32_t parent, int64_t code_id)
{
    uint64_t hash = (uint64_t)code_id * 0x9E3779B97F4A7C15u;

    hash ^= (uint64_t)parent * 0xC2B2AE3D27D4EB4Fu;
    hash ^= hash >> 32;
    return &tree->heads[hash % HEADS];
}

/* Return the node for CODE_ID called from the node PARENT. If there is none, it is created. Returns
 * PARENT if the tree has no room left. */
static uint32_t find_or_add_node(struct tree *tree, uint32_t parent, int64_t code_id)
{
    const struct node *nodes = tree->nodes.at;
    uint32_t *head = find_hash_head(tree, parent, code_id);
    uint32_t at;

    for (at = *head; at; at = nodes[at].next)
        if (nodes[at].parent == parent && nodes[at].code_id == code_id)
            return at;
    if (tree->nodes.count > STACKS_NODES && parent) {
        tree->cut++;
        return parent;
    }
    at = (uint32_t)tree->nodes.count;
    *list_add(&tree->nodes) = (struct node){.code_id = code_id, .parent = parent, .next = *head};
    *head = at;
    return at;
}

/* Compare two nodes for sorting: first by caller, then by total time, longest first. */
static int compare_nodes(const void *a, const void *b, void *context)
{
    const struct node *nodes = context;
    const struct node *x = &nodes[*(const uint32_t *)a];
    const struct node *y = &nodes[*(const uint32_t *)b];

    if (x->parent != y->parent)
        return list_compare_numbers(x->parent, y->parent);
    if (x->total_ns != y->total_ns)
        return list_compare_numbers(y->total_ns, x->total_ns);
    return (x > y) - (x < y);
}

void tree_link_children(struct tree *tree)
{
    uint32_t count = (uint32_t)tree->nodes.count;
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
    struct node *nodes = tree->nodes.at;

    /* go backwards, because each callee has a higher index than its caller */
    for (uint32_t i = count; i-- > 1;) {
        struct node *node = &nodes[i];
        struct node *caller = &nodes[node->parent];
        if (node->self_ns > 0)
            node->total_ns = times_add(node->total_ns, node->self_ns);
        caller->total_ns = times_add(caller->total_ns, node->total_ns);
        order[i] = i;
    }
    qsort_r(order + 1, count - 1, sizeof *order, compare_nodes, nodes);
    for (uint32_t i = count; i-- > 1;) {
        struct node *node = &nodes[order[i]];
        struct node *caller = &nodes[node->parent];
        node->sibling = caller->child;
        caller->child = order[i];
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct node *caller = &nodes[nodes[i].parent];
        nodes[i].depth = caller->depth + 1;
    }
    free(order);
}

/* ---- walking over the frames with a stack for each thread ---------------- */

struct walking {
    const struct walk *walk; /* borrowed, like all pointers of this struct */
    struct stacks *stacks;
    struct track *recent; /* the track of the thread to which the last frame belongs */
    int64_t rows;
};

/* Add the own time of the frame on top of TRACK's stack to the tree, in a node that is found or
 * created. The time is subtracted from the own time of the caller's node. */
static void add_own_time_to_tree(const struct walk *walk, struct tree *tree, struct track *track)
{
    struct open_frame *frame = track_top_frame(track);
    uint32_t caller = track->stack.count > 1 ? frame[-1].what : track->what;
    int64_t length = times_span_or_zero(frame->start_ns, frame->end_ns);
    bool is_below = caller || !walk->root;
    struct node *node;

    if (!is_below && !walk->root(walk->context, frame))
        return;
    frame->what = find_or_add_node(tree, caller, frame->code_id);
    node = &tree->nodes.at[frame->what];
    node->calls += frame->is_call;
    if (length > node->longest_ns || !node->longest_id) {
        node->longest_ns = length;
        node->longest_id = frame->id;
    }
    node->self_ns = times_add(node->self_ns, length);
    if (track->stack.count > 1 && caller) {
        struct node *of_caller = &tree->nodes.at[caller];
        of_caller->self_ns = times_subtract(of_caller->self_ns, length);
    }
}

static void pop_frame_of_track(const struct walk *walk, struct track *track)
{
    if (walk->pop)
        walk->pop(walk->context, track);
    track->stack.count--;
}

/* Take one frame, a row of the table `frame`, into account. Returns false to stop the walk. */
static bool visit_frame(void *context, const int64_t *values, unsigned nulls)
{
    const struct row_frame *row = (const void *)values;
    struct walking *w = context;
    const struct walk *walk = w->walk;
    struct open_frame frame = {
        .id = (int64_t)row->frame_id,
        .code_id = (int64_t)row->code_id,
        .start_ns = row->start_ns,
        .end_ns = row->end_ns,
        .is_call = row->kind == FRAME_CALL,
    };
    int64_t thread_id = (int64_t)row->thread_id;
    int64_t parent_id = (int64_t)row->parent_id;
    struct track *track = w->recent;
    bool root = row_null(nulls, frame, parent_id);
    const int64_t *same = walk->same ? map_get(walk->same, frame.code_id) : NULL;

    w->rows++;
    if (w->rows % TICK_ROWS == 0 && !walk->tick(walk->context, frame.id))
        return false;
    if (!track || track->thread_id != thread_id)
        track = list_find(&w->stacks->tracks, thread_id, thread_id);
    if (!track)
        return true;
    w->recent = track;
    if (same)
        frame.code_id = *same;
    if (row_null(nulls, frame, end_ns))
        frame.end_ns = track->ended_ns;
    if (frame.end_ns < frame.start_ns)
        frame.end_ns = frame.start_ns;
    while (track->stack.count) {
        if (!root && track_top_frame(track)->id == parent_id)
            break;
        pop_frame_of_track(walk, track);
    }
    *list_add(&track->stack) = frame;
    if (walk->fold)
        add_own_time_to_tree(walk, &w->stacks->tree, track);
    if (walk->push)
        walk->push(walk->context, track);
    return true;
}

void stacks_visit_frames(struct db *db, struct stacks *stacks, const struct walk *walk)
{
    struct walking walking = {.walk = walk, .stacks = stacks};

    if (walk->fold) {
        stacks->tree.heads = calloc(HEADS, sizeof *stacks->tree.heads);
        list_add(&stacks->tree.nodes);
    }
    db_rows(query, db, schema_statement("stacks/threads"))
    {
        struct track track = {
            .thread_id = query_integer(query, 0),
            .ended_ns = query_integer(query, 1),
        };
        if (walk->fold && !walk->root)
            track.what = find_or_add_node(&stacks->tree, 0, walk->merge ? 0 : track.thread_id);
        *list_add(&stacks->tracks) = track;
    }
    scan_rows(db, TABLE_frame, visit_frame, &walking);
    if (!walk->pop)
        return;
    list_each(track, &stacks->tracks)
        while (track->stack.count)
            pop_frame_of_track(walk, track);
}

void stacks_free(struct stacks *stacks)
{
    list_each(track, &stacks->tracks)
        list_free(&track->stack);
    list_free(&stacks->tracks);
    list_free(&stacks->tree.nodes);
    free(stacks->tree.heads);
    *stacks = (struct stacks){0};
}

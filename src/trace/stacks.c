/* trace/stacks.c -- frames in order of id, and the call stacks that they form. See
 * trace/stacks.h. */
#include "trace/stacks.h"

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/scan.h"

enum { TICK_ROWS = 1 << 14, HEADS = 1 << 19 };

int64_t stacks_end(struct db *db)
{
    return db_integer(db, 0, schema_statement("stacks/end"));
}

/* ---- the tree ------------------------------------------------------------ */

static uint32_t *tree_head(struct tree *tree, uint32_t parent, int64_t code_id)
{
    uint64_t h =
        ((uint64_t)code_id * 0x9E3779B97F4A7C15u) ^ ((uint64_t)parent * 0xC2B2AE3D27D4EB4Fu);

    return &tree->heads[(h ^ h >> 32) % HEADS];
}

/* Return the node of CODE_ID called from PARENT. The node is created if there is none. Returns
 * PARENT if the tree is full. */
static uint32_t tree_node(struct tree *tree, uint32_t parent, int64_t code_id)
{
    const struct node *nodes = tree->nodes.at;
    uint32_t *head = tree_head(tree, parent, code_id), at = *head;

    while (at && (nodes[at].parent != parent || nodes[at].code_id != code_id))
        at = nodes[at].next;
    if (at)
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

/* Order nodes by caller, then by total time, longest first. */
static int link_order(const void *a, const void *b, void *context)
{
    const struct node *nodes = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct node *x = &nodes[i], *y = &nodes[j];

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return x->total_ns != y->total_ns ? (x->total_ns < y->total_ns ? 1 : -1) : (i > j) - (i < j);
}

void tree_link(struct tree *tree)
{
    uint32_t count = (uint32_t)tree->nodes.count;
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
    struct node *nodes = tree->nodes.at;

    /* callees come after their callers in the list, so this visits callees first */
    for (uint32_t i = count; i-- > 1;) {
        struct node *caller = &nodes[nodes[i].parent];
        nodes[i].total_ns =
            times_sum(nodes[i].total_ns, nodes[i].self_ns > 0 ? nodes[i].self_ns : 0);
        caller->total_ns = times_sum(caller->total_ns, nodes[i].total_ns);
        order[i] = i;
    }
    qsort_r(order + 1, count - 1, sizeof *order, link_order, nodes);
    for (uint32_t i = count; i-- > 1;) {
        struct node *caller = &nodes[nodes[order[i]].parent];
        nodes[order[i]].sibling = caller->child;
        caller->child = order[i];
    }
    for (uint32_t i = 1; i < count; i++)
        nodes[i].depth = nodes[nodes[i].parent].depth + 1;
    free(order);
}

/* ---- a stack per thread -------------------------------------------------- */

struct walking {
    const struct walk *walk; /* borrowed, like the other pointers */
    struct stacks *stacks;
    struct track *recent; /* the track of the last frame's thread */
    int64_t rows;
};

/* Find the node of the frame on top of TRACK's stack, add the frame's time to it, and subtract this
 * time from its caller's own time. */
static void frame_fold(const struct walk *walk, struct tree *tree, struct track *track)
{
    struct open_frame *frame = track_top(track);
    uint32_t caller = track->stack.count > 1 ? frame[-1].what : track->what;
    int64_t length = times_span(frame->start_ns, frame->end_ns);
    bool is_below = caller || !walk->root;
    struct node *node;

    if (!is_below && !walk->root(walk->context, frame))
        return;
    frame->what = tree_node(tree, caller, frame->code_id);
    node = &tree->nodes.at[frame->what];
    node->calls++;
    if (length > node->longest_ns || !node->longest_id) {
        node->longest_ns = length;
        node->longest_id = frame->id;
    }
    node->self_ns = times_sum(node->self_ns, length);
    if (track->stack.count > 1 && caller)
        tree->nodes.at[caller].self_ns = times_difference(tree->nodes.at[caller].self_ns, length);
}

/* Handle one frame, a row of `frame`. Returns false to stop the walk. */
static bool frame_walk(void *context, const int64_t *values, unsigned nulls)
{
    const struct row_frame *row = (const void *)values;
    struct walking *w = context;
    const struct walk *walk = w->walk;
    struct open_frame frame = {.id = (int64_t)row->frame_id,
                               .code_id = (int64_t)row->code_id,
                               .start_ns = row->start_ns,
                               .end_ns = row->end_ns};
    int64_t thread_id = (int64_t)row->thread_id, parent_id = (int64_t)row->parent_id;
    struct track *track = w->recent;
    bool root = row_null(nulls, frame, parent_id);
    const int64_t *same = walk->same ? map_get(walk->same, frame.code_id) : NULL;

    if (!(++w->rows % TICK_ROWS) && !walk->tick(walk->context, frame.id))
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
    for (; track->stack.count && (root || track_top(track)->id != parent_id); track->stack.count--)
        if (walk->pop)
            walk->pop(walk->context, track);
    *list_add(&track->stack) = frame;
    if (walk->fold)
        frame_fold(walk, &w->stacks->tree, track);
    if (walk->push)
        walk->push(walk->context, track);
    return true;
}

void stacks_walk(struct db *db, struct stacks *stacks, const struct walk *walk)
{
    struct walking walking = {.walk = walk, .stacks = stacks};

    if (walk->fold) {
        stacks->tree.heads = calloc(HEADS, sizeof *stacks->tree.heads);
        list_add(&stacks->tree.nodes);
    }
    db_rows(query, db, schema_statement("stacks/threads"))
    {
        struct track track = {.thread_id = query_integer(query, 0),
                              .ended_ns = query_integer(query, 1)};
        if (walk->fold && !walk->root)
            track.what = tree_node(&stacks->tree, 0, walk->merge ? 0 : track.thread_id);
        *list_add(&stacks->tracks) = track;
    }
    scan_rows(db, TABLE_frame, frame_walk, &walking);
    for (size_t i = 0; i < stacks->tracks.count; i++)
        for (struct track *track = &stacks->tracks.at[i]; walk->pop && track->stack.count;
             track->stack.count--)
            walk->pop(walk->context, track);
}

void stacks_free(struct stacks *stacks)
{
    for (size_t i = 0; i < stacks->tracks.count; i++)
        list_free(&stacks->tracks.at[i].stack);
    list_free(&stacks->tracks);
    list_free(&stacks->tree.nodes);
    free(stacks->tree.heads);
    *stacks = (struct stacks){0};
}

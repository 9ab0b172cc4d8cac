/* trace/stacks.c -- frames in order of id, and the stacks that they make. See trace/stacks.h.
 *
 * Runs in: the viewer. */
#include "trace/stacks.h"

#include "lib/say.h"
#include "lib/times.h"
#include "trace/db.h"

enum { TICK_ROWS = 1 << 14, HEADS = 1 << 19 };

/* ---- a stack per thread ---------------------------------------------------- */

bool tracks_read(struct db *db, struct tracks *tracks)
{
    struct query *query = db_query(db, "SELECT t.thread_id, COALESCE(p.end_ns, 9223372036854775807) FROM thread t"
                                       " LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.thread_id");
    bool ok = true;

    while (ok && query_step(query)) {
        struct track *track = list_add(tracks);
        if ((ok = track != NULL))
            *track = (struct track){.thread_id = query_integer(query, 0), .ended_ns = query_integer(query, 1)};
        else
            say_error("%s: out of memory", db_path(db));
    }
    return query_close(query) && ok;
}

void tracks_free(struct tracks *tracks)
{
    for (size_t i = 0; i < tracks->count; i++) {
        list_free(&tracks->at[i].stack);
        if (tracks->at[i].events)
            fclose(tracks->at[i].events);
    }
    list_free(tracks);
}

struct walking {
    const struct walk *walk; /* borrowed, all of them */
    struct tracks *tracks;
    struct track *recent;    /* of the last frame */
    int64_t end_ns, rows;
    bool failed;
};

/* One frame: frame_id, thread_id, parent_id, code_id, start_ns, end_ns. False: no more. */
static bool frame_walk(void *context, const int64_t *values, unsigned nulls)
{
    struct walking *w = context;
    struct walked frame = {values[0], values[2], values[3], values[4], values[5], nulls & 1u << 2};
    struct open_frame open = {.id = frame.id}, *pushed;
    struct track *track = w->recent;

    if (!(++w->rows % TICK_ROWS) && !w->walk->tick(w->walk->context, frame.id))
        return false;
    if (!track || track->thread_id != values[1])
        track = list_find(w->tracks, thread_id, values[1]);
    if (!track)
        return true;
    w->recent = track;
    if (nulls & 1u << 5)
        frame.end_ns = track->ended_ns < w->end_ns ? track->ended_ns : w->end_ns;
    if (frame.end_ns < frame.start_ns)
        frame.end_ns = frame.start_ns;
    while (track->stack.count && (frame.root || track->stack.at[track->stack.count - 1].id != frame.parent_id)) {
        if (w->walk->pop)
            w->walk->pop(w->walk->context, track);
        track->stack.count--;
    }
    open.end_ns = frame.end_ns;
    w->failed = !w->walk->push(w->walk->context, track, &frame, &open.what) || !(pushed = list_add(&track->stack));
    if (!w->failed)
        *pushed = open;
    return !w->failed;
}

bool stacks_walk(struct db *db, struct tracks *tracks, int64_t end_ns, const struct walk *walk)
{
    struct walking walking = {.walk = walk, .tracks = tracks, .end_ns = end_ns};

    return db_each(db, "SELECT each(frame_id, thread_id, parent_id, code_id, start_ns, end_ns) FROM frame NOT INDEXED",
                   frame_walk, &walking) &&
           !walking.failed;
}

/* ---- the tree -------------------------------------------------------------- */

static uint32_t *tree_head(struct tree *tree, uint32_t parent, int64_t code_id)
{
    uint64_t h = ((uint64_t)code_id * 0x9E3779B97F4A7C15u) ^ ((uint64_t)parent * 0xC2B2AE3D27D4EB4Fu);

    return &tree->heads[(h ^ h >> 32) % HEADS];
}

/* The node of CODE_ID called from PARENT, made if need be; PARENT when there is no room. 0: out of memory. */
static uint32_t tree_node(struct tree *tree, uint32_t parent, int64_t code_id)
{
    uint32_t *head, last = parent ? tree->nodes[parent].recent : 0, at = last;

    if (at && tree->nodes[at].code_id == code_id) /* mostly in a loop, or the same calls as before: no need to hash */
        return at;
    at = last ? tree->nodes[last].after : 0;
    if (at && tree->nodes[at].code_id == code_id) {
        tree->nodes[parent].recent = at;
        return at;
    }
    head = tree_head(tree, parent, code_id);
    at = *head;
    while (at && (tree->nodes[at].parent != parent || tree->nodes[at].code_id != code_id))
        at = tree->nodes[at].next;
    if (at) {
        tree->nodes[last].after = at; /* of node 0, which is nobody's, for the first */
        tree->nodes[parent].recent = at;
        return at;
    }
    if (tree->count >= STACKS_NODES && parent) {
        tree->cut++;
        return parent;
    }
    if (tree->count + 1 >= tree->room) {
        uint32_t room = tree->room ? tree->room * 2 : 4096;
        struct node *more = realloc(tree->nodes, room * sizeof *more);
        if (!more)
            return 0;
        tree->nodes = more;
        tree->room = room;
    }
    at = ++tree->count;
    tree->nodes[at] = (struct node){.code_id = code_id, .parent = parent, .next = *head};
    *head = at;
    return at;
}

struct folding {
    struct tree *tree;       /* borrowed, both of them */
    const struct fold *fold;
};

static bool fold_tick(void *context, int64_t frame_id)
{
    const struct folding *f = context;

    return f->fold->tick(f->fold->context, frame_id);
}

static bool fold_push(void *context, struct track *track, const struct walked *frame, uint32_t *what)
{
    struct folding *f = context;
    size_t depth = track->stack.count;
    uint32_t caller = depth ? track->stack.at[depth - 1].what : track->root, node = tree_node(f->tree, caller,
                                                                                              frame->code_id);
    int64_t length = times_span(frame->start_ns, frame->end_ns);

    if (!node)
        return false;
    *what = node;
    f->tree->nodes[node].self_ns = times_sum(f->tree->nodes[node].self_ns, length);
    if (depth)
        f->tree->nodes[caller].self_ns = times_difference(f->tree->nodes[caller].self_ns, length);
    if (f->fold->each)
        f->fold->each(f->fold->context, track, frame, node);
    return true;
}

bool stacks_fold(struct db *db, struct tree *tree, struct tracks *tracks, int64_t end_ns, const struct fold *fold)
{
    struct folding folding = {tree, fold};
    bool ok = (tree->heads = calloc(HEADS, sizeof *tree->heads)) != NULL;

    if (ok && !tracks_read(db, tracks))
        return false;
    for (size_t i = 0; ok && i < tracks->count; i++)
        ok = (tracks->at[i].root = tree_node(tree, 0, tracks->at[i].thread_id)) != 0;
    if (!ok)
        say_error("%s: out of memory", db_path(db));
    return ok && stacks_walk(db, tracks, end_ns, &(struct walk){&folding, fold_tick, NULL, fold_push});
}

/* Callers together, of each the longest first. */
static int link_order(const void *a, const void *b, void *context)
{
    const struct tree *tree = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b, p = tree->nodes[x].parent, q = tree->nodes[y].parent;
    int64_t t = tree->links[x].total_ns, u = tree->links[y].total_ns;

    return p != q ? (p > q) - (p < q) : t != u ? (t < u) - (t > u) : (x > y) - (x < y);
}

bool tree_link(struct tree *tree)
{
    uint32_t *order = malloc(((size_t)tree->count + 1) * sizeof *order);
    struct link *links = tree->links = calloc((size_t)tree->count + 1, sizeof *links);

    if (!order || !links) {
        free(order);
        return false;
    }
    for (uint32_t i = tree->count; i >= 1; i--) { /* what is called comes after its caller */
        struct link *caller = &links[tree->nodes[i].parent];
        links[i].total_ns = times_sum(links[i].total_ns, tree->nodes[i].self_ns > 0 ? tree->nodes[i].self_ns : 0);
        caller->total_ns = times_sum(caller->total_ns, links[i].total_ns);
        order[i - 1] = i;
    }
    qsort_r(order, tree->count, sizeof *order, link_order, tree);
    for (uint32_t i = tree->count; i-- > 0;) {
        struct link *caller = &links[tree->nodes[order[i]].parent];
        links[order[i]].sibling = caller->child;
        caller->child = order[i];
    }
    for (uint32_t i = 1; i <= tree->count; i++)
        links[i].depth = links[tree->nodes[i].parent].depth + 1;
    free(order);
    return true;
}

void tree_free(struct tree *tree)
{
    free(tree->nodes);
    free(tree->links);
    free(tree->heads);
}

/* trace/stacks.c -- frames in order of id, and the stacks that they make.
 *
 * Runs in: the viewer. See trace/stacks.h. */
#include "trace/stacks.h"

#include <stdlib.h>

#include "trace/db.h"
#include "lib/say.h"
#include "lib/times.h"

enum { TICK_ROWS = 1 << 14, HEADS = 1 << 19 };

/* ---- a stack per thread ---------------------------------------------------- */

bool tracks_read(struct db *db, struct tracks *tracks)
{
    struct query *query = db_query(db, "SELECT thread_id FROM thread ORDER BY thread_id");
    size_t room = 0;

    while (query_step(query)) {
        if (tracks->count == room) {
            struct track *more = realloc(tracks->at, (room = room ? room * 2 : 64) * sizeof *more);
            if (!more) {
                say_error("%s: out of memory", db_path(db));
                query_close(query);
                return false;
            }
            tracks->at = more;
        }
        tracks->at[tracks->count++] = (struct track){.thread_id = query_integer(query, 0)};
    }
    return query_close(query);
}

struct track *track_find(struct tracks *tracks, int64_t id)
{
    size_t low = 0, high = tracks->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tracks->at[middle].thread_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tracks->count && tracks->at[low].thread_id == id ? &tracks->at[low] : NULL;
}

void tracks_free(struct tracks *tracks)
{
    for (size_t i = 0; i < tracks->count; i++) {
        free(tracks->at[i].stack);
        if (tracks->at[i].events)
            fclose(tracks->at[i].events);
    }
    free(tracks->at);
}

bool track_push(struct track *track, struct open_frame frame)
{
    if (track->depth == track->room) {
        size_t room = track->room ? track->room * 2 : 64;
        struct open_frame *more = realloc(track->stack, room * sizeof *more);
        if (!more) {
            say_error("out of memory");
            return false;
        }
        track->stack = more;
        track->room = room;
    }
    track->stack[track->depth++] = frame;
    return true;
}

#define COLUMNS "frame_id, thread_id, parent_id, code_id, start_ns, end_ns"
const char stacks_sql[] = "SELECT " COLUMNS " FROM frame ORDER BY frame_id";

static struct walked walked_of(const int64_t *values, unsigned nulls, int64_t end_ns)
{
    struct walked w = {values[0], values[2], values[3], values[4], nulls & 1u << 5 ? end_ns : values[5], nulls & 1u << 2};

    if (w.end_ns < w.start_ns)
        w.end_ns = w.start_ns;
    return w;
}

struct walked walked_read(struct query *query, int64_t end_ns)
{
    struct walked w = {
        .id = query_integer(query, 0), .parent_id = query_integer(query, 2), .code_id = query_integer(query, 3),
        .start_ns = query_integer(query, 4), .end_ns = query_integer(query, 5),
    };

    w.root = !w.parent_id && query_type(query, 2) == QUERY_NULL; /* asking for the type costs as much as the value */
    if (!w.end_ns && query_type(query, 5) == QUERY_NULL)
        w.end_ns = end_ns;
    if (w.end_ns < w.start_ns)
        w.end_ns = w.start_ns;
    return w;
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
    struct tree *tree;     /* borrowed, all of them */
    struct tracks *tracks;
    const struct fold *fold;
    struct track *recent;  /* of the last frame */
    int64_t end_ns, last, rows;
    bool failed;
};

/* One frame; false: no more. */
static bool frame_fold(void *context, const int64_t *values, unsigned nulls)
{
    struct folding *f = context;
    struct walked w = walked_of(values, nulls, f->end_ns);
    struct track *track = f->recent;
    uint32_t caller, node;
    int64_t length = times_span(w.start_ns, w.end_ns);

    if ((f->last >= 0 && w.id > f->last) || (!(++f->rows % TICK_ROWS) && !f->fold->tick(f->fold->context, w.id)))
        return false;
    if (!track || track->thread_id != values[1])
        track = track_find(f->tracks, values[1]);
    if (!track)
        return true;
    f->recent = track;
    while (track->depth && (w.root || track->stack[track->depth - 1].id != w.parent_id))
        track->depth--;
    caller = track->depth ? track->stack[track->depth - 1].what : track->root;
    node = tree_node(f->tree, caller, w.code_id);
    f->failed = !node || !track_push(track, (struct open_frame){w.id, w.end_ns, node});
    if (f->failed)
        return false;
    f->tree->nodes[node].self_ns = times_sum(f->tree->nodes[node].self_ns, length);
    if (track->depth > 1)
        f->tree->nodes[caller].self_ns = times_difference(f->tree->nodes[caller].self_ns, length);
    if (f->fold->each)
        f->fold->each(f->fold->context, track, &w);
    return true;
}

bool stacks_fold(struct db *db, struct tree *tree, struct tracks *tracks, int64_t end_ns, int64_t last, const struct fold *fold)
{
    struct folding folding = {.tree = tree, .tracks = tracks, .fold = fold, .end_ns = end_ns, .last = last};

    tree->heads = calloc(HEADS, sizeof *tree->heads);
    if (!tree->heads)
        say_error("%s: out of memory", db_path(db));
    if (!tree->heads || !tracks_read(db, tracks))
        return false;
    for (size_t i = 0; !folding.failed && i < tracks->count; i++)
        folding.failed = !(tracks->at[i].root = tree_node(tree, 0, tracks->at[i].thread_id));
    return !folding.failed && db_each(db, "SELECT each(" COLUMNS ") FROM frame NOT INDEXED", frame_fold, &folding) && !folding.failed;
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

/* trace/stacks.h -- walks over frames in order of id, and keeps the call stacks that they form.
 *
 * A walk reads the frames and keeps a stack of open frames for each thread:
 *
 *     for each frame: pop until its parent is on top, because the popped frames have ended;
 *                     then push the frame
 *
 * If walk.fold is set, the walk also adds up own times (times without callees) in a tree. A node
 * stands for one code object that is called from one other node. The tree has at most STACKS_NODES
 * nodes. If it has no room for a frame, the frame's time is counted as its caller's time. A frame
 * without an end lasts until its thread ended (view thread_ends). */
#ifndef DYNTRACE_STACKS_H
#define DYNTRACE_STACKS_H

#include "lib/list.h"

struct db;

enum { STACKS_NODES = 2000000 };

struct open_frame {
    int64_t id, code_id, start_ns, end_ns;
    bool is_call; /* false for a later part of a generator or coroutine, after a yield */
    /* index of the frame's node in the tree; without a tree, the caller may store a value of its
     * own */
    uint32_t what;
};

struct track {
    int64_t thread_id;
    int64_t ended_ns; /* when frames of this thread that have no end are taken to have ended */
    LIST(struct open_frame) stack;
    /* index of the thread's node in the tree; without a tree, the caller may store a
     * value of its own */
    uint32_t what;
};

struct node {
    /* the code object whose calls the node stands for; in the root node of a
     * thread its thread_id */
    int64_t code_id;
    int64_t self_ns, calls;
    int64_t longest_ns, longest_id; /* duration and frame_id of the longest frame of this node */
    uint32_t parent;                /* index of the caller's node; 0 in the root node of a thread */
    uint32_t next;                  /* index of the next node with the same hash */

    /* The members below are set by tree_link_children(). */
    int64_t total_ns; /* time of the node's frames, including their callees */
    /* child: index of the callee that took longest. sibling: index of the next callee of the
     * same caller, or 0 */
    uint32_t child, sibling;
    uint32_t depth; /* distance from node 0: 1 in the root node of a thread */
    bool open;      /* for flame.c: the node is unfolded on the screen */
};

struct tree {
    /* Node 0 stands for all threads. Callers come before their callees. */
    LIST(struct node) nodes;
    uint32_t *heads; /* owned: for each hash, the index of its first node */
    uint32_t cut;    /* number of frames for which the tree had no room */
};

/* Zero this struct before a walk, and free it after the walk with stacks_free. */
struct stacks {
    LIST(struct track) tracks; /* one track for each thread, sorted by thread_id */
    struct tree tree;
};

/* What a walk does. The functions `push` and `pop` get a track whose topmost frame
 * begins or ends. */
struct walk {
    void *context;
    bool fold; /* add up own times in a tree */
    /* all threads share one root node, which has thread_id 0 */
    bool merge;
    /* if not NULL, the tree has only the frames for which this function returns true, and their
     * callees; threads have no nodes then. The function may change the frame's code_id, which
     * becomes that of the node */
    bool (*root)(void *context, struct open_frame *frame);
    /* maps a code_id to the code object that is used in its place; or NULL */
    const struct map *same;
    /* called from time to time; returns false to stop the walk */
    bool (*tick)(void *context, int64_t frame_id);
    void (*push)(void *context, struct track *track); /* called when a frame has begun; or NULL */
    void (*pop)(void *context, struct track *track);  /* called when a frame has ended; or NULL */
};

/* Walk over all frames of DB. */
void stacks_visit_frames(struct db *db, struct stacks *stacks, const struct walk *walk);
void tree_link_children(struct tree *tree);
void stacks_free(struct stacks *stacks);

/* Return the time at which the recording ended. If this is not known, return the latest start of a
 * recorded event. */
int64_t stacks_find_end_time(struct db *db);

static inline struct open_frame *track_top_frame(const struct track *track)
{
    return &track->stack.at[track->stack.count - 1];
}

#endif

/* trace/stacks.h -- frames in order of id, and the call stacks that they form.
 *
 * A walk reads the frames and keeps a stack of open frames for each thread:
 *
 *     for each frame: pop until its parent is on top, because the popped frames have ended;
 *                     then push the frame
 *
 * If walk.fold is set, the walk also adds up own times in a tree. A node stands for one code
 * object called from one node. The tree has at most STACKS_NODES nodes; the time of a frame for
 * which there is no room is counted for its caller. A frame without an end lasts until its thread
 * ended (view thread_ends). */
#ifndef DYNTRACE_STACKS_H
#define DYNTRACE_STACKS_H

#include "lib/list.h"

struct db;

enum { STACKS_NODES = 2000000 };

struct open_frame {
    int64_t id, code_id, start_ns, end_ns;
    uint32_t what; /* the frame's node in the tree, or a value of the caller's choice */
};

struct track {
    int64_t thread_id;
    int64_t ended_ns; /* when the thread's frames without an end are assumed to have ended */
    LIST(struct open_frame) stack;
    uint32_t what; /* the thread's node in the tree, or a value of the caller's choice */
};

struct node {
    int64_t code_id; /* the code object of this node; in the root node of a thread the thread_id */
    int64_t self_ns, calls;
    int64_t longest_ns, longest_id; /* duration and id of the longest frame of this node */
    uint32_t parent;                /* index of the caller's node; 0 in the root node of a thread */
    uint32_t next;                  /* the next node with the same hash */

    /* The members below are set by tree_link(). */
    int64_t total_ns; /* time including callees */
    /* `child`: the callee that took longest; `sibling`: the next callee of the same caller, or 0 */
    uint32_t child, sibling;
    uint32_t depth; /* distance from node 0: 1 in the root node of a thread */
    bool open;      /* the node is unfolded on the screen */
};

struct tree {
    /* Node 0 stands for all threads. Callers come before their callees. */
    LIST(struct node) nodes;
    uint32_t *heads; /* owned: the first node of each hash */
    uint32_t cut;    /* number of frames for which the tree had no room */
};

/* Zero this struct before a walk, and free it after the walk with stacks_free. */
struct stacks {
    LIST(struct track) tracks; /* a track for each thread, sorted by thread_id */
    struct tree tree;
};

/* The actions of a walk. `push` and `pop` get the frame on top of TRACK's stack. */
struct walk {
    void *context;
    bool fold; /* build the tree of own times */
    /* the tree joins all threads in one root node, which has thread_id 0 */
    bool merge;
    /* If not NULL, the tree has only the frames for which this function returns true, and the
     * frames below them; threads have no nodes then. The function may change the frame's code_id,
     * which becomes the node's. */
    bool (*root)(void *context, struct open_frame *frame);
    const struct map *same; /* maps a code_id to the code object that replaces it; or NULL */
    /* called now and then; returns false to stop the walk */
    bool (*tick)(void *context, int64_t frame_id);
    void (*push)(void *context, struct track *track); /* called when a frame begins; or NULL */
    void (*pop)(void *context, struct track *track);  /* called when a frame ends; or NULL */
};

/* Walk over all frames of DB. */
void stacks_walk(struct db *db, struct stacks *stacks, const struct walk *walk);
void tree_link(struct tree *tree);
void stacks_free(struct stacks *stacks);

/* Return the end of the recording, or the latest start of any recorded event if the end is not
 * known. */
int64_t stacks_end(struct db *db);

static inline struct open_frame *track_top(const struct track *track)
{
    return &track->stack.at[track->stack.count - 1];
}

#endif

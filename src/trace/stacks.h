/* trace/stacks.h -- frames in order of id, and the stacks that they make.
 *
 * Walks the frames with one stack of open frames for each thread:
 *
 *     a frame comes:  pop until its parent is on top (those have ended),
 *                     then push it
 *
 * and, if that is asked for, counts time of their own in a tree of (caller's node, code), which has
 * at most STACKS_NODES of them; what does not fit is counted for its caller. A frame without an end
 * lasted until that of its thread (view thread_ends). */
#ifndef DYNTRACE_STACKS_H
#define DYNTRACE_STACKS_H

#include "lib/list.h"

struct db;

enum { STACKS_NODES = 2000000 };

struct open_frame {
    int64_t id, code_id, start_ns, end_ns;
    uint32_t what; /* its node, or the walker's own value */
};

struct track {
    int64_t thread_id;
    int64_t ended_ns; /* open frames at its end */
    LIST(struct open_frame) stack;
    uint32_t what; /* its node, or as above */
};

struct node {
    int64_t code_id; /* for a thread's root node: its thread_id */
    int64_t self_ns, calls;
    int64_t longest_ns, longest_id; /* over the node's frames */
    uint32_t parent;                /* 0: a thread's root node */
    uint32_t next;                  /* with the same hash */

    /* by tree_link() */
    int64_t total_ns;        /* including callees */
    uint32_t child, sibling; /* its callees, longest first; 0: no more */
    uint32_t depth;          /* 1 for a thread's root node */
    bool open;               /* used by the viewer */
};

struct tree {
    /* the first node stands for all threads; callers come before their callees */
    LIST(struct node) nodes;
    uint32_t *heads; /* owned: by hash */
    uint32_t cut;    /* frames that had no room */
};

/* Zeroed before, freed after a walk. */
struct stacks {
    LIST(struct track) tracks; /* one for each thread, by thread_id */
    struct tree tree;
};

/* Called during a walk, with the frame on top of TRACK's stack. */
struct walk {
    void *context;
    bool fold; /* make the tree */
    /* a tree that merges all threads, with thread_id 0 */
    bool merge;
    /* The tree has only the frames for which this returns true, and those below them; there are no
     * nodes for threads. It may change a frame's code_id, by which the node is known. Or NULL. */
    bool (*root)(void *context, struct open_frame *frame);
    const struct map *same; /* code_id -> the code object that it counts as; or NULL */
    bool (*tick)(void *context, int64_t frame_id);    /* called at intervals; false: stop */
    void (*push)(void *context, struct track *track); /* called when a frame begins; or NULL */
    void (*pop)(void *context, struct track *track);  /* called when a frame ends; or NULL */
};

/* All frames of DB. */
void stacks_walk(struct db *db, struct stacks *stacks, const struct walk *walk);
void tree_link(struct tree *tree);
void stacks_free(struct stacks *stacks);

/* The end of the recording if known, else the latest start of any recorded event. */
int64_t stacks_end(struct db *db);

static inline struct open_frame *track_top(const struct track *track)
{
    return &track->stack.at[track->stack.count - 1];
}

#endif

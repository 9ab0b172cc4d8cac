/* trace/stacks.h -- frames in order of id, and the stacks that they make.
 *
 * Runs in: the viewer.
 *
 * Walks the frames with one stack of open frames for each thread:
 *
 *     a frame comes:  pop until its parent is on top (those have ended),
 *                     then push it
 *
 * and counts time of their own in a tree of (caller's node, code), which has at
 * most STACKS_NODES of them; what does not fit is counted for its caller. A frame
 * without an end lasted as long as its process did. */
#ifndef DYNTRACE_STACKS_H
#define DYNTRACE_STACKS_H

#include <stdio.h>

#include "lib/list.h"

struct db;

enum { STACKS_NODES = 2000000 };

struct open_frame {
    int64_t id, end_ns;
    uint32_t what; /* whatever who walks has said of it */
};

struct track {
    int64_t thread_id;
    int64_t ended_ns; /* its process, INT64_MAX: not yet, or nobody knows */
    LIST(struct open_frame) stack;
    uint32_t root;    /* folded: the thread's node */
    FILE *events;     /* speedscope: owned */
    int64_t first_ns, last_ns, count;
};

/* One for each thread of the trace, by thread_id. */
struct tracks {
    struct track *at; /* owned */
    size_t count, room;
};

/* False: it was said why. */
bool tracks_read(struct db *db, struct tracks *tracks);
void tracks_free(struct tracks *tracks);

/* A frame as it is walked. */
struct walked {
    int64_t id, parent_id, code_id, start_ns, end_ns;
    bool root;
};

/* Called during a walk. TRACK's stack is that of the callers of FRAME. */
struct walk {
    void *context;
    bool (*tick)(void *context, int64_t frame_id);            /* every so many rows; false: stop, which is no error */
    void (*pop)(void *context, struct track *track);          /* the innermost of its frames has ended; or NULL */
    bool (*push)(void *context, struct track *track, const struct walked *frame, uint32_t *what); /* false: stop, an error */
};

/* All frames of DB, in TRACKS. Those without an end last until END_NS at most. False: it was said why not. */
bool stacks_walk(struct db *db, struct tracks *tracks, int64_t end_ns, const struct walk *walk);

struct node {
    int64_t code_id; /* of a thread's own node: its thread_id */
    int64_t self_ns;
    uint32_t parent; /* 0: a thread's own node */
    uint32_t next;   /* with the same hash */
    uint32_t recent; /* the node that was last found from here */
    uint32_t after;  /* the one that its caller called after this one, the last time */
};

/* Of a node with all that it called. */
struct link {
    int64_t total_ns;
    uint32_t child, sibling; /* what it called, the longest first; 0: no more */
    uint32_t depth;          /* of a thread's own node 1 */
};

struct tree {
    struct node *nodes; /* owned; node 0 is not used, callers come before what they call */
    struct link *links; /* owned: by node; 0 has the threads' own below it. Made by tree_link() */
    uint32_t *heads;    /* owned: by hash */
    uint32_t count, room;
    uint32_t cut;       /* frames that had no room */
};

/* Called while stacks_fold() walks. EACH may be NULL. */
struct fold {
    void *context;
    bool (*tick)(void *context, int64_t frame_id); /* as in struct walk */
    void (*each)(void *context, const struct track *track, const struct walked *frame, uint32_t node); /* counted for NODE */
};

/* Fold all frames of DB into TREE and TRACKS, which are empty. False: it was said why not. */
bool stacks_fold(struct db *db, struct tree *tree, struct tracks *tracks, int64_t end_ns, const struct fold *fold);
bool tree_link(struct tree *tree); /* false: no memory */
void tree_free(struct tree *tree);

#endif

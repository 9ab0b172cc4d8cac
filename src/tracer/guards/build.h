/* tracer/guards/build.h -- the tree object: tracer/guards/build.c makes it, tracer/guards/guard.c checks it.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_TRACER_GUARD_BUILD_H
#define DYNTRACE_TRACER_GUARD_BUILD_H

#include "tracer/guards/tree.h"

struct guard_leaves {
    struct guard_leaf **at;     /* owned array of borrowed leaves, in the order tried */
    uint32_t count;
};

struct guard_node {
    struct guard_step step;
    int slot;                   /* its value is kept there for relations; -1: not */
    bool unread;                /* a root whose value nobody asks for */
    uint32_t fails;
    struct guard_leaves leaves;
    struct guard_node **children; /* owned, in the order tried */
    uint32_t child_count;
    PyObject *text;             /* owned: the source so far */
};

struct guard_watch;

struct guard_tree {
    PyObject_HEAD
    struct guard_leaf *leaves;  /* owned, by ordinal */
    uint32_t count;
    struct guard_node **roots;  /* owned: L, G, ... in the order tried */
    uint32_t root_count;
    struct guard_leaves relations;
    uint32_t slots, widest;     /* values kept; most that one relation takes */
    uint32_t moves;
    uint32_t checking;          /* checks under way, in whatever thread */
    bool cleared;
    PyObject *globals;          /* owned dict for when there is no frame, or NULL */
    struct guard_watch *watch;  /* owned, or NULL: no weak references */
    struct cache_entry **entries; /* owned, and so is each: see guard_tree_bind */
    uint32_t entry_count;
};

extern PyTypeObject guard_watch_type;

/* The tree is going away: weak references that somebody else holds call nothing. */
void guard_watch_detach(struct guard_watch *watch);

#endif

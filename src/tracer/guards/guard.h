/* tracer/guards/guard.h -- native guards: conditions on a call's values, checked in C.
 *
 * Runs in: the traced process, under the GIL.
 *
 * `dyntrace.guards` builds guard trees. The nodes of a tree are access paths (L['x'], then .size,
 * then [0]), and a check reads each path once. The leaves are guards, numbered 0, 1, ... in the
 * order in which they were added. Checking stops at the first leaf that does not hold. */
#ifndef DYNTRACE_TRACER_GUARD_H
#define DYNTRACE_TRACER_GUARD_H

#include "tracer/tracer.h"

/* the type of dyntrace.guards.GuardTree; Python code calls check(f_locals) */
extern PyTypeObject guard_tree_type;

/* Most steps of a path: a check makes a nested C call for each step. */
enum { GUARD_DEEPEST = 200 };

/* From where guards read L[...] and G[...]: from a frame that has not started, or from a dict of
 * locals. */
struct guard_values {
    compat_frame *frame; /* the frame; NULL if `locals` is set */
    PyObject *locals;    /* the dict of locals; NULL if `frame` is set */
    /* without a frame, the globals: guard_tree_check() takes them from the tree */
    PyObject *globals;
};

struct guard_outcome {
    /* GUARD_ERROR: an exception is set */
    enum { GUARD_FAIL = 0, GUARD_PASS = 1, GUARD_ERROR = -1 } result;
    uint32_t guards_run; /* how many leaves were checked, with the one that failed */
    /* ordinal of the leaf that failed or raised; UINT32_MAX if there is none, or if something else
     * raised */
    uint32_t failed;
    uint32_t moved; /* how often this check has changed the order of guards */
};

/* Check the tree. The caller holds a reference to the tree, also for the functions below. If a leaf
 * fails and SEEN is not NULL, *SEEN becomes the value that made it fail (owned); for a relation,
 * the tuple of its values. If no value could be read, *SEEN does not change. */
struct guard_outcome guard_tree_check(PyObject *tree, const struct guard_values *values,
                                      PyObject **seen);

/* Return how many leaves the tree has. */
uint32_t guard_tree_count_leaves(PyObject *tree);
/* Return the leaves of the tree by ordinal: a new tuple of tuples (kind, source, expression). KEEP
 * says which values they may contain. Returns NULL if they cannot be described. A pending exception
 * stays pending, also in guard_tree_explain(). */
PyObject *guard_tree_list(PyObject *tree, enum session_values keep);
/* Return all leaves that do not hold: a new list of (ordinal, expected, actual, aspect or None,
 * dimension or -1). Leaf FAILED has ended a check, with the value SEEN. Other leaves are checked
 * only if this runs no code of the program. The tree is not changed. G[...] is read from the frame,
 * if VALUES has one. */
PyObject *guard_tree_explain(PyObject *tree, const struct guard_values *values, uint32_t failed,
                             PyObject *seen, enum session_values keep);

/* guard_tree_visit_ordinals calls ADD with the ordinal of each guard, in the order in which they
 * are checked now. Runs no Python code. The order changes when a guard fails;
 * guard_tree_count_moves returns how often it has changed. */
void guard_tree_visit_ordinals(PyObject *tree, void (*add)(void *context, uint32_t ordinal),
                               void *context);
uint32_t guard_tree_count_moves(PyObject *tree);

/* What a tree does with an object that is bound to it, which is a cache entry. */
struct guard_binding {
    bool (*is_valid)(PyObject *object);
    /* Make OBJECT invalid for the reason REASON. May run any code. */
    void (*invalidate)(PyObject *object, const char *reason);
};
/* Bind OBJECT, a new cache entry, to the tree. It becomes invalid when an object dies that a guard
 * compares by identity, or at once if one is dead already. The tree and OBJECT hold each other, so
 * before OBJECT is dropped, it must be made invalid, which releases the tree. Returns 0, or -1 with
 * an exception. */
int guard_tree_bind(PyObject *tree, PyObject *object, const struct guard_binding *to);

/* Return a new dict of the frame's variables by name, for guards and callbacks. */
PyObject *guard_frame_locals(compat_frame *frame);

int guard_types_ready(PyObject *module);

#endif

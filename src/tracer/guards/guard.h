/* tracer/guards/guard.h -- native guards: conditions on a call's values, checked in C.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A guard tree is what `dyntrace.guards` builds. Its nodes are access paths (L['x'], then .size,
 * then [0]), and a check reads each of them once. Its leaves are guards, numbered 0, 1, ... in the
 * order in which they were added. Checking stops at the first leaf that does not hold. */
#ifndef DYNTRACE_TRACER_GUARD_H
#define DYNTRACE_TRACER_GUARD_H

#include "tracer/tracer.h"

/* the type of dyntrace.guards.GuardTree; has check(f_locals) for Python callers */
extern PyTypeObject guard_tree_type;

/* The most steps that a path may have, because a check nests as many C calls. */
enum { GUARD_DEEPEST = 200 };

/* Where L[...] and G[...] are read: in a frame that has not started, or in a dict of locals. */
struct guard_values {
    compat_frame *frame; /* NULL if `locals` is set */
    PyObject *locals;    /* a dict; NULL if `frame` is set */
    /* the tree's globals, for a check without a frame; the check itself sets them */
    PyObject *globals;
};

struct guard_outcome {
    /* GUARD_ERROR: an exception is set */
    enum { GUARD_FAIL = 0, GUARD_PASS = 1, GUARD_ERROR = -1 } result;
    uint32_t guards_run; /* number of leaves checked, including the failing one */
    /* ordinal of the leaf that failed or raised; UINT32_MAX if no leaf failed, or if the error did
     * not come from a leaf */
    uint32_t failed;
    uint32_t moved; /* how often this check changed the order in which guards are tried */
};

/* Check the tree. The caller of this and of the following functions holds a reference to the tree.
 * If SEEN is not NULL and a leaf fails, *SEEN becomes the value that the leaf checked (owned); for
 * a relation, the tuple of its values. *SEEN stays unchanged if no value could be read. */
struct guard_outcome guard_tree_check(PyObject *tree, const struct guard_values *values,
                                      PyObject **seen);

/* Return how many leaves the tree has. */
uint32_t guard_tree_count(PyObject *tree);
/* Return the leaves of the tree by ordinal: a new tuple of (kind, source, expression) tuples. KEEP
 * says which values they may contain. Returns NULL if they cannot be described. This function and
 * the next keep the pending exception. */
PyObject *guard_tree_list(PyObject *tree, enum session_values keep);
/* Return every leaf that does not hold: a new list of (ordinal, expected, actual, aspect or None,
 * dimension or -1). Leaf FAILED ended a check, with the value SEEN. Of the other leaves only those
 * are checked that run no code of the program. Does not change the tree. G[...] is read from the
 * frame, if VALUES has one. */
PyObject *guard_tree_explain(PyObject *tree, const struct guard_values *values, uint32_t failed,
                             PyObject *seen, enum session_values keep);

/* guard_tree_each calls ADD with each guard's ordinal, in the current order of checks; runs no
 * Python code. The order changes when a guard fails; guard_tree_moves counts the changes. */
void guard_tree_each(PyObject *tree, void (*add)(void *context, uint32_t ordinal), void *context);
uint32_t guard_tree_moves(PyObject *tree);

/* How a tree treats an object that is bound to it. */
struct guard_binding {
    bool (*is_valid)(PyObject *object);
    /* Make OBJECT invalid for REASON. May run any code. */
    void (*invalidate)(PyObject *object, const char *reason);
};
/* Bind OBJECT, a new cache entry, to the tree: OBJECT becomes invalid when an object guarded by
 * identity dies, or at once if one is dead already. The tree and OBJECT hold each other, so OBJECT
 * must be invalidated, which releases the tree, before it is dropped. Returns 0, or -1 with an
 * exception. */
int guard_tree_bind(PyObject *tree, PyObject *object, const struct guard_binding *to);

/* Return the frame's variables by name, a new dict, for guards and callbacks. */
PyObject *guard_frame_locals(compat_frame *frame);

int guard_types_ready(PyObject *module);

#endif

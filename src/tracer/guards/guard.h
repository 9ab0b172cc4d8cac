/* tracer/guards/guard.h -- native guards: conditions on a call's values, checked in C.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A guard tree is what `dyntrace.guards` builds. Its nodes are access paths (L['x'], then .size,
 * then [0]), each read once per check; its leaves are guards, numbered 0, 1, ... in the order in
 * which they were added. Checking stops at the first leaf that does not hold. */
#ifndef DYNTRACE_TRACER_GUARD_H
#define DYNTRACE_TRACER_GUARD_H

#include "tracer/tracer.h"

/* dyntrace.guards.GuardTree; has check(f_locals) for Python callers */
extern PyTypeObject guard_tree_type;

/* The most steps in a path: a check is that many C calls deep. */
enum { GUARD_DEEPEST = 200 };

/* Where L[...] is read from: a frame that has not started, or a dict. */
struct guard_values {
    compat_frame *frame; /* or NULL */
    PyObject *locals;    /* dict, or NULL if `frame` is set */
    PyObject *globals;   /* the tree's globals, used without a frame; set by the check itself */
};

struct guard_outcome {
    /* ERROR: an exception is set */
    enum { GUARD_FAIL = 0, GUARD_PASS = 1, GUARD_ERROR = -1 } result;
    uint32_t guards_run; /* leaves checked, the failing one included */
    /* ordinal of the leaf that failed or raised; UINT32_MAX: none, or not a leaf's fault */
    uint32_t failed;
    uint32_t moved; /* how many changes of the order of guards this check has made */
};

/* The caller holds the tree, here and below. *SEEN, if SEEN is not NULL: the value that the failed
 * leaf checked (owned); for a relation, the tuple of its values. Unchanged if no value could be
 * read. */
struct guard_outcome guard_tree_check(PyObject *tree, const struct guard_values *values,
                                      PyObject **seen);

/* How many leaves the tree has. */
uint32_t guard_tree_count(PyObject *tree);
/* Leaves of the tree, as (kind, source, expression) tuples in a new tuple, by ordinal. KEEP: which
 * values they may contain. NULL: they cannot be described. This and the next keep the pending
 * exception. */
PyObject *guard_tree_list(PyObject *tree, enum session_values keep);
/* Every leaf that does not hold, as (ordinal, expected, actual, aspect or None, dimension or -1) in
 * a new list: the leaf FAILED, which ended a check, with the value that it has SEEN; and the other
 * leaves that can be checked without running the program's code. Does not change the tree. G[...]
 * is read from the frame, if VALUES has one. */
PyObject *guard_tree_explain(PyObject *tree, const struct guard_values *values, uint32_t failed,
                             PyObject *seen, enum session_values keep);

/* Call ADD with each guard's ordinal, in the current order of checks; runs no Python code. The
 * order changes when a guard fails; guard_tree_moves counts the changes. */
void guard_tree_each(PyObject *tree, void (*add)(void *context, uint32_t ordinal), void *context);
uint32_t guard_tree_moves(PyObject *tree);

/* Functions of an object that is bound to a tree. */
struct guard_binding {
    bool (*is_valid)(PyObject *object);
    void (*invalidate)(PyObject *object, const char *reason); /* may run any code */
};
/* Bind OBJECT, a new cache entry, to the tree: it is invalidated when an object guarded by identity
 * dies; at once if one is dead already. The tree and OBJECT hold each other, so OBJECT must be
 * invalidated before it is dropped, which releases the tree. 0, or -1 with an exception. */
int guard_tree_bind(PyObject *tree, PyObject *object, const struct guard_binding *to);

/* The frame's variables by name: a new dict, for guards and callbacks. */
PyObject *guard_frame_locals(compat_frame *frame);

int guard_types_ready(PyObject *module);

#endif

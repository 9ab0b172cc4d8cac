/* tracer/guards/tree.h -- the parts of a guard tree.
 *
 * Runs in: the traced process, under the GIL.
 *
 *     L['x'] ------------ .size() -- [0]      nodes: how to read a value
 *        |  |                         |
 *        |  TYPE_MATCH  #0            EQUALS_MATCH #2      leaves: what the value must be
 *        +- ['mode']
 *             +- EQUALS_MATCH #1
 *     relations: NO_ALIASING(L['x'], L['y']) #3
 *
 * A check reads each node once, checks its leaves in order, then visits its children in order. At
 * the end it checks the relations, on values kept during the visit. Leaves come before children
 * because they ensure that it is safe to read further.
 *
 * A failing item moves forward, before the items that have failed less often: a leaf among its
 * node's leaves, a node among its siblings, a relation among relations. A leaf that may run the
 * program's code does not move, because a leaf before it may be what keeps it from raising. */
#ifndef DYNTRACE_TRACER_GUARD_TREE_H
#define DYNTRACE_TRACER_GUARD_TREE_H

#include "tracer/guards/guard.h"

/* ---- reading a guard's source (tracer/guards/read.c) ---- */

enum guard_step_kind {
    STEP_UNREAD,    /* its value is not needed: NULL */
    STEP_LOCALS,    /* L: all locals, a dict */
    STEP_GLOBALS,   /* G */
    STEP_BUILTINS,  /* B */
    STEP_STATE,     /* a state of the host: key(), called at each check */
    STEP_LOCAL,     /* L['x'] without the dict */
    STEP_CELL,      /* the cell of x, a free variable */
    STEP_ATTRIBUTE, /* .key */
    STEP_ITEM,      /* [key] */
    STEP_METHOD,    /* .key() */
    STEP_CALL,      /* () */
};

/* Place of an attribute in instances of a type. Valid while the type has this version: CPython
 * changes the version when the type or a base changes. */
struct attribute_cache {
    PyTypeObject *type; /* borrowed, compared only together with: */
    unsigned version;   /* 0: not filled */
    enum { WHERE_UNKNOWN, WHERE_INLINE, WHERE_DICT, WHERE_SLOT } where;
    Py_ssize_t index; /* of inline values; offset of a slot */
};

struct guard_step {
    enum guard_step_kind kind;
    PyObject *key;    /* owned; NULL: at the top */
    Py_ssize_t index; /* where a local was; an item's index; -1: none */
    struct attribute_cache cache;
};

/* 1: *VALUE is a new reference. 0: no value (an unbound local, no such key or attribute, an index
 * out of range, an object without items), and the guards that need it do not hold. -1: any other
 * exception. */
int guard_step_read(struct guard_step *step, PyObject *parent, const struct guard_values *values,
                    PyObject **value);
/* Can it be read without running code of the program's? */
bool guard_step_is_quiet(const struct guard_step *step, PyObject *parent);

/* GuardTree._is_quiet(object, name): the same for an attribute. */
PyObject *guard_is_quiet(PyObject *ignored, PyObject *args);

/* ---- leaves ---- */

/* An object compared by identity. Held weakly if possible: *AT is then the weak reference's own
 * pointer, None once the object is dead. */
struct guard_identity {
    PyObject **at;    /* NULL: no object */
    PyObject *ref;    /* owned weak reference, or NULL */
    PyObject *object; /* owned, for what cannot be referenced weakly, or NULL */
    PyObject *death;  /* owned: the reason when it dies */
};

static inline bool guard_is(const struct guard_identity *identity, PyObject *value)
{
    return *identity->at == value && (value != Py_None || !identity->ref);
}

struct guard_leaf {
    int kind;                      /* tracer/guards/kinds.c has them */
    PyObject *constant;            /* owned: the object to compare with or to call; or None */
    Py_ssize_t number, limit;      /* the kind's own */
    const PyMethodDef *definition; /* of a builtin's method; or NULL */
    struct guard_identity is[2];
    struct guard_tensor *tensor; /* owned: tracer/guards/tensor.c */
    uint32_t *slots;             /* relations, owned: where their values are kept */
    uint32_t slot_count;
    uint32_t ordinal, fails;
    bool relation; /* of several sources, or to be checked last */
    bool stays;    /* may run the program's code: never moves */
};

/* Check that LEAF's parts, given by Python code, fit the kind called NAME. 0, or -1 with an
 * exception. */
int guard_prepare(struct guard_leaf *leaf, const char *name);
extern PyMethodDef guard_methods[];
/* 1 holds, 0 does not, -1 with an exception. VALUES: one for each source, borrowed from the caller,
 * who holds them. */
int guard_check(const struct guard_leaf *leaf, PyObject *const *values);

/* tracer/guards/tensor.c */
int tensor_prepare(struct guard_leaf *leaf);
int tensor_check(const struct guard_leaf *leaf, PyObject *value);
/* Are two dtypes of numpy's the same, with their metadata? -1 with an exception. */
int guard_same_dtype(PyObject *wanted, PyObject *value);
void tensor_free(struct guard_tensor *tensor);
int tensor_traverse(struct guard_tensor *tensor, visitproc visit, void *arg);

/* tracer/guards/check.c: SELF._explain(locals). */
PyObject *guard_tree_failures(PyObject *self, PyObject *locals);

/* ---- the tree: tracer/guards/build.c makes it, tracer/guards/check.c checks it ---- */

struct guard_leaves {
    struct guard_leaf **at; /* owned array of borrowed leaves, in the order tried */
    uint32_t count;
};

struct guard_node {
    struct guard_step step;
    int slot; /* where its value is kept for relations; -1: not kept */
    uint32_t fails;
    struct guard_leaves leaves;
    struct guard_node **children; /* owned, in the order tried */
    uint32_t child_count;
    int at; /* number of its step in the path */
};

struct guard_tree {
    PyObject_HEAD struct guard_leaf *leaves; /* owned, by ordinal */
    uint32_t count;
    struct guard_node top; /* unread; its children are the roots: L['x'], G, ... */
    struct guard_leaves relations;
    uint32_t slots, widest; /* values kept; most that one relation takes */
    uint32_t moves;
    uint32_t checking; /* running checks, in all threads */
    bool cleared;
    PyObject *globals; /* owned dict for when there is no frame, or NULL */
    PyObject *watch;   /* owned: the callback of weak references; NULL: no weak references */
    struct guard_bound {
        PyObject *object; /* owned */
        const struct guard_binding *to;
    } * bound; /* owned: see guard_tree_bind */
    uint32_t bound_count;
};

#endif

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
    STEP_UNREAD,   /* no guard needs the node's own value, so the value is NULL */
    STEP_LOCALS,   /* L: all locals, a dict */
    STEP_GLOBALS,  /* G */
    STEP_BUILTINS, /* B */
    /* S: a state of the program, such as grad mode: the result of key(), which each check calls */
    STEP_STATE,
    STEP_LOCAL,     /* L['x'], read without making a dict of all locals */
    STEP_CELL,      /* the cell of the free variable x */
    STEP_ATTRIBUTE, /* .key */
    STEP_ITEM,      /* [key] */
    STEP_METHOD,    /* .key() */
    STEP_CALL,      /* () */
};

/* The place of an attribute in instances of a type. The place is valid while the type has this
 * version: CPython changes the version when the type or a base changes. */
struct attribute_cache {
    PyTypeObject *type; /* borrowed, and compared only if `version` matches */
    unsigned version;   /* 0 if the cache is empty */
    enum { WHERE_UNKNOWN, WHERE_INLINE, WHERE_DICT, WHERE_SLOT } where;
    Py_ssize_t index; /* index of an inline value, or offset of a slot */
};

struct guard_step {
    enum guard_step_kind kind;
    PyObject *key; /* owned; NULL for the tree's top */
    /* the index of a local at the last check, or of an item in its container; otherwise -1 */
    Py_ssize_t index;
    struct attribute_cache cache;
};

/* Read the value of STEP. Returns 1, and then *VALUE is a new reference. Returns 0 if there is no
 * value (an unbound local, no such key or attribute, an index out of range, an object without
 * items): the guards that need it do not hold. Returns -1 with any other exception. */
int guard_step_read(struct guard_step *step, PyObject *parent, const struct guard_values *values,
                    PyObject **value);
/* Can the value of STEP be read without running code of the program? */
bool guard_step_is_quiet(const struct guard_step *step, PyObject *parent);

/* GuardTree._is_quiet(object, name): can this attribute be read without running code of the
 * program? */
PyObject *guard_is_quiet(PyObject *ignored, PyObject *args);

/* ---- leaves ---- */

/* An object compared by identity. It is held weakly if possible: *AT is then the pointer in the
 * weak reference, which becomes None when the object dies. */
struct guard_identity {
    PyObject **at;    /* points to the pointer to the object; NULL if there is no object */
    PyObject *ref;    /* owned weak reference, or NULL */
    PyObject *object; /* owned: an object that cannot be referenced weakly; or NULL */
    PyObject *death;  /* owned: why an entry becomes invalid when the object dies */
};

static inline bool guard_is(const struct guard_identity *identity, PyObject *value)
{
    return *identity->at == value && (value != Py_None || !identity->ref);
}

struct guard_leaf {
    int kind;                      /* the kind of guard: an enum of tracer/guards/kinds.c */
    PyObject *constant;            /* owned: the object to compare with or to call; or None */
    Py_ssize_t number, limit;      /* two numbers whose meaning depends on `kind` */
    const PyMethodDef *definition; /* definition of a builtin method; or NULL */
    struct guard_identity is[2];
    /* owned: the properties of a tensor (tracer/guards/tensor.c), or NULL */
    struct guard_tensor *tensor;
    /* owned: if the guard is a relation, the slots in which a check keeps the values of the guard's
     * sources */
    uint32_t *slots;
    uint32_t slot_count;
    uint32_t ordinal, fails;
    /* the guard is checked after all others, because it has several sources or because its kind
     * asks for this */
    bool relation;
    bool stays; /* the guard may run the program's code, so it never moves */
};

/* Check that the parts of LEAF, which come from Python code, fit the kind NAME, and set LEAF's
 * kind. Returns 0, or -1 with an exception. */
int guard_prepare(struct guard_leaf *leaf, const char *name);
extern PyMethodDef guard_methods[];
/* Return 1 if LEAF holds, 0 if not, -1 with an exception. VALUES has one value for each source; the
 * caller holds them. */
int guard_check(const struct guard_leaf *leaf, PyObject *const *values);

/* The next functions are in tracer/guards/tensor.c. */
int tensor_prepare(struct guard_leaf *leaf);
int tensor_check(const struct guard_leaf *leaf, PyObject *value);
/* Are two numpy dtypes the same, with their metadata? Returns -1 with an exception. */
int guard_same_dtype(PyObject *wanted, PyObject *value);
void tensor_free(struct guard_tensor *tensor);
int tensor_traverse(struct guard_tensor *tensor, visitproc visit, void *arg);

/* tracer/guards/check.c: the method _explain(locals) of a tree. */
PyObject *guard_tree_failures(PyObject *self, PyObject *locals);

/* ---- the tree: tracer/guards/build.c makes it, tracer/guards/check.c checks it ---- */

struct guard_leaves {
    /* owned array of borrowed leaves, in the order in which they are tried */
    struct guard_leaf **at;
    uint32_t count;
};

struct guard_node {
    struct guard_step step;
    /* the slot in which a check keeps the node's value for relations; -1 if no relation needs the
     * value */
    int slot;
    uint32_t fails;
    struct guard_leaves leaves;
    /* owned array of the children, in the order in which they are tried */
    struct guard_node **children;
    uint32_t child_count;
    int at; /* index of the node's step in its path */
};

struct guard_tree {
    PyObject_HEAD struct guard_leaf *leaves; /* owned array, by ordinal */
    uint32_t count;
    /* the top of the tree, a STEP_UNREAD; its children are the roots: L['x'], G, ... */
    struct guard_node top;
    struct guard_leaves relations;
    /* slots: how many values are kept; widest: the most values that one relation takes */
    uint32_t slots, widest;
    uint32_t moves;
    uint32_t checking; /* number of running checks, in all threads */
    bool cleared;
    PyObject *globals; /* owned: the dict for G if there is no frame; or NULL */
    PyObject *watch;   /* owned: the callback of weak references; NULL if there are none */
    struct guard_bound {
        PyObject *object; /* owned */
        const struct guard_binding *to;
    } * bound; /* owned: the cache entries that become invalid with the tree (guard_tree_bind) */
    uint32_t bound_count;
};

#endif

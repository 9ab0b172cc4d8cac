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
 * the end it checks the relations, on values kept from the nodes. Leaves come before children
 * because they ensure that it is safe to read further.
 *
 * A failing item moves forward, before the items that have failed less often: a leaf among its
 * node's leaves, a node among its siblings, a relation among relations. A leaf that may run the
 * program's code does not move, because an earlier leaf may protect it from raising an
 * exception. */
#ifndef DYNTRACE_TRACER_GUARD_TREE_H
#define DYNTRACE_TRACER_GUARD_TREE_H

#include "tracer/guards/guard.h"

/* ---- read the value of a guard's source, step by step: tracer/guards/read.c ---- */

enum guard_step_kind {
    STEP_UNREAD,   /* the node has no value of its own, because no guard needs it */
    STEP_LOCALS,   /* L: all locals, a dict */
    STEP_GLOBALS,  /* G */
    STEP_BUILTINS, /* B */
    /* S: something about the program that is not in a variable, such as grad mode: the result of
     * key(), which each check calls */
    STEP_STATE,
    STEP_LOCAL,     /* L['x'] alone, read without making a dict of all locals */
    STEP_CELL,      /* the cell of the free variable x */
    STEP_ATTRIBUTE, /* .key */
    STEP_ITEM,      /* [key] */
    STEP_METHOD,    /* .key() */
    STEP_CALL,      /* () */
};

/* Where instances of a type have an attribute. The cache is valid as long as the type has this
 * version: CPython changes the version when the type or a base changes. */
struct attribute_cache {
    PyTypeObject *type; /* borrowed; only compared, and only while `version` matches */
    unsigned version;   /* version of the type; 0 if the cache is empty */
    enum { WHERE_UNKNOWN, WHERE_INLINE, WHERE_DICT, WHERE_SLOT } where;
    Py_ssize_t index; /* index among the inline values, or offset of the slot */
};

struct guard_step {
    enum guard_step_kind kind;
    PyObject *key; /* owned: name or index of the step; NULL for the top of the tree */
    /* of a local: its index at the last check; of an item: its index in the container; otherwise
     * -1 */
    Py_ssize_t index;
    struct attribute_cache cache;
};

/* Read the value of STEP. Returns 1 with a new reference in *VALUE. Returns 0 if there is no such
 * value (an unbound local, no such key or attribute, an index out of range, an object without
 * items), so that the guards that need it do not hold. Returns -1 with any other exception. */
int guard_read_step(struct guard_step *step, PyObject *parent, const struct guard_values *values,
                    PyObject **value);
/* Can the value of STEP be read without running code of the program? */
bool guard_step_is_quiet(const struct guard_step *step, PyObject *parent);

/* GuardTree._is_quiet(object, name): can attribute `name` of `object` be read without running code
 * of the program? */
PyObject *guard_is_quiet(PyObject *ignored, PyObject *args);

/* ---- leaves: one for each guard ---- */

/* An object that a guard compares by identity, held weakly if possible. AT then points into the
 * weak reference, where the pointer becomes None when the object dies. */
struct guard_identity {
    PyObject **at;    /* address of the pointer to the object; NULL if there is no object */
    PyObject *ref;    /* owned: a weak reference to the object, or NULL */
    PyObject *object; /* owned: the object itself, if it has no weak references; or NULL */
    PyObject *death;  /* owned: the reason why entries become invalid when the object dies */
};

static inline bool guard_is_expected_object(const struct guard_identity *identity, PyObject *value)
{
    return *identity->at == value && (value != Py_None || !identity->ref);
}

struct guard_leaf {
    int kind; /* which kind of guard: an enum of tracer/guards/kinds.c */
    /* owned: what the guard compares with, or the function that it calls; or None */
    PyObject *constant;
    Py_ssize_t number, limit;      /* two numbers whose meaning depends on `kind` */
    const PyMethodDef *definition; /* for a guard on a builtin method: its definition; or NULL */
    struct guard_identity is[2];
    /* owned: the expected properties of a tensor (tracer/guards/tensor.c); or NULL */
    struct guard_tensor *tensor;
    /* owned: for a relation, the slots in which a check keeps the values of its sources */
    uint32_t *slots;
    uint32_t slot_count;
    uint32_t ordinal, fails;
    /* a relation is checked after all other guards: it has several sources, or its kind requires
     * this */
    bool relation;
    bool stays; /* the guard keeps its place in the order, because it may run code of the program */
};

/* Check that the members of LEAF, which come from Python code, fit the kind of guard NAME, and set
 * its kind. Returns 0, or -1 with an exception. */
int guard_prepare_leaf(struct guard_leaf *leaf, const char *name);
extern PyMethodDef guard_methods[];
/* Return 1 if LEAF holds, 0 if it does not, -1 with an exception. VALUES has a value for each
 * source of the guard; the caller holds them. */
int guard_check(const struct guard_leaf *leaf, PyObject *const *values);

/* ---- guards on tensors: tracer/guards/tensor.c ---- */
int tensor_prepare_guard(struct guard_leaf *leaf);
int tensor_check_guard(const struct guard_leaf *leaf, PyObject *value);
/* Are two numpy dtypes the same, and their metadata, too? Returns -1 with an exception. */
int guard_are_dtypes_equal(PyObject *wanted, PyObject *value);
void tensor_free_guard(struct guard_tensor *tensor);
int tensor_traverse_guard(struct guard_tensor *tensor, visitproc visit, void *arg);

/* The method GuardTree._explain(locals), in tracer/guards/check.c. */
PyObject *guard_tree_failures(PyObject *self, PyObject *locals);

/* ---- the tree: made by tracer/guards/build.c, checked by tracer/guards/check.c ---- */

struct guard_leaves {
    /* owned array; the leaves are borrowed, and in the order in which they are tried */
    struct guard_leaf **at;
    uint32_t count;
};

struct guard_node {
    struct guard_step step;
    /* the slot in which a check keeps the value of the node for relations; -1 if no relation needs
     * it */
    int slot;
    uint32_t fails;
    struct guard_leaves leaves;
    /* owned array of the nodes below this one, in the order in which they are tried */
    struct guard_node **children;
    uint32_t child_count;
    int at; /* index of the step in the path of dyntrace.guards */
};

struct guard_tree {
    PyObject_HEAD struct guard_leaf *leaves; /* owned array of the leaves, by ordinal */
    uint32_t count;
    /* the top of the tree, without a value; its children are L['x'], G and so on */
    struct guard_node top;
    struct guard_leaves relations;
    /* slots: how many values a check keeps for relations; widest: most values that one relation
     * needs */
    uint32_t slots, widest;
    uint32_t moves;
    uint32_t checking; /* how many checks of this tree are running, in all threads */
    bool cleared;
    PyObject *globals; /* owned: the globals for checks without a frame; or NULL */
    /* owned: what weak references call when an object dies; NULL if there are none */
    PyObject *watch;
    struct guard_bound {
        PyObject *object; /* owned */
        const struct guard_binding *to;
    } * bound; /* owned: the cache entries that the tree makes invalid (guard_tree_bind) */
    uint32_t bound_count;
};

#endif

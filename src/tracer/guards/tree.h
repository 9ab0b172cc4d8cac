/* tracer/guards/tree.h -- what a guard tree is made of.
 *
 * Runs in: the traced process, under the GIL.
 *
 *     L ── ['x'] ──────── .size() ── [0]      nodes: how to get at a value
 *           │  │                      │
 *           │  TYPE_MATCH  #0         EQUALS_MATCH #2      leaves: what it must be
 *           └─ ['mode']
 *               └─ EQUALS_MATCH #1
 *     relations: NO_ALIASING(L['x'], L['y']) #3
 *
 * A check reads a node once, looks at its leaves in order, then goes on to its
 * children in order, and at the end looks at the relations, whose values were
 * kept aside on the way. Leaves stand before children, because they make sure
 * that it is safe to look further.
 *
 * What does not hold moves forward, before all that has failed less often:
 * a leaf among the leaves of its node, a node among its brothers, a relation
 * among relations. A leaf that may run the program's code stays where it is,
 * because one before it may be what keeps it from raising. */
#ifndef DYNTRACE_TRACER_GUARD_TREE_H
#define DYNTRACE_TRACER_GUARD_TREE_H

#include "tracer/guards/guard.h"
#include "tracer/guards/read.h"

/* An object that must be the very one. Held weakly where it can be: *AT is then
 * the weak reference's own idea of the object, None once that is dead. */
struct guard_identity {
    PyObject **at;      /* NULL: names nothing */
    PyObject *ref;      /* owned weak reference, or NULL */
    PyObject *object;   /* owned, for what cannot be referenced weakly, or NULL */
    PyObject *text;     /* owned: the object in words, from when it was alive */
};

static inline bool guard_is(const struct guard_identity *identity, PyObject *value)
{
    return *identity->at == value && (value != Py_None || !identity->ref);
}

struct guard_leaf {
    const struct guard_kind *kind;
    PyObject *constant;             /* owned: what to compare with or call, or NULL */
    Py_ssize_t number, limit;       /* the kind's own */
    struct guard_identity is[2];
    struct guard_tensor *tensor;    /* owned: tracer/guards/tensor.c */
    uint32_t *slots;                /* relations, owned: where their values are kept */
    uint32_t slot_count;
    uint32_t ordinal, fails;
    bool stays;                     /* may run the program's code: never moves */
    PyObject *source, *expression, *expected; /* owned texts */
    PyObject *bare_source;          /* owned text: the source without keys */
    bool shape;                     /* its sources are sizes or strides */
};

/* A kind of guard: one row of the table in tracer/guards/kinds.c. */
struct guard_kind {
    const char *name;
    const char *words;              /* the expression; %s is the source, %e what is expected */
    bool relation;                  /* of several sources, or to be asked last */
    bool stays;
    /* What its texts tell, for a trace that is to be without values (tracer/values.h): a value; what the kind's name
     * says and then a value; a type or the length of a container; a number that may be a tensor's size; what differs
     * of a tensor; nothing of any value. */
    enum { TELLS_VALUE, TELLS_KIND, TELLS_TYPE, TELLS_SIZE, TELLS_TENSOR, TELLS_NOTHING } tells;
    /* Take what Python gave, a tuple; set leaf->expected unless the words have no %e. 0, or -1 with an exception. */
    int (*prepare)(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments);
    /* 1 holds, 0 does not, -1 with an exception. VALUES: one for each source, borrowed from the caller, who holds them. */
    int (*check)(const struct guard_leaf *leaf, PyObject *const *values);
    /* It does not hold: what is there instead? A new string. May put a more exact
     * word, a new reference, in *EXPECTED. NULL, with an exception that is no Exception. */
    PyObject *(*actual)(const struct guard_leaf *leaf, PyObject *const *values, PyObject **expected);
};

const struct guard_kind *guard_kind_find(const char *name);

/* tracer/guards/build.c: may it be told what LEAF wants, and, when it did not hold for VALUES, what was there instead? */
bool guard_leaf_tells(const struct guard_leaf *leaf, PyObject *const *values, enum session_values keep);
/* What LEAF wants, as far as it may be told. A new string. */
PyObject *guard_leaf_wants(const struct guard_leaf *leaf, enum session_values keep);

/* tracer/guards/guard.c: LEAF's identity INDEX is OBJECT; the tree's entries die with it. */
int guard_identify(PyObject *tree, struct guard_leaf *leaf, int index, PyObject *object);

/* tracer/guards/tensor.c */
int tensor_prepare(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments);
int tensor_check(const struct guard_leaf *leaf, PyObject *const *values);
PyObject *tensor_actual(const struct guard_leaf *leaf, PyObject *const *values, PyObject **expected);
void tensor_free(struct guard_tensor *tensor);
int tensor_traverse(struct guard_tensor *tensor, visitproc visit, void *arg);

/* tracer/guards/text.c: values in words, short. New strings. guard_repr calls the
 * program's __repr__ and gives NULL only for no memory, and when that raised
 * what is no Exception; the others run no code of the program. */
enum { GUARD_TEXT = 120 };
PyObject *guard_repr(PyObject *value);
PyObject *guard_type_text(PyTypeObject *type);
PyObject *guard_object_text(PyObject *object);
/* The pending exception in words, its type alone unless WHOLE; it is gone afterwards. */
PyObject *guard_exception_text(bool whole);

#endif

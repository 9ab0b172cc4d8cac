/* tracer/guards/watch.c -- objects that a guard tree names, and what becomes invalid when one dies.
 *
 * Runs in: the traced process, under the GIL; when an object dies, within its finalisation. */
#include "tracer/guards/tree.h"

/* What weak references call: the tree's, for as long as it lives. */
struct guard_watch {
    PyObject_HEAD
    struct guard_tree *tree;    /* borrowed; NULL once it is gone; being freed: no references */
};

int guard_identify(PyObject *object_tree, struct guard_leaf *leaf, int index, PyObject *object)
{
    struct guard_tree *tree = (struct guard_tree *)object_tree;
    struct guard_identity *identity = &leaf->is[index];
    int status = -1;

    Py_INCREF(object);
    identity->text = values_object(object);
    if (!identity->text)
        goto done;
    /* Static types live forever: no need to burden them. */
    if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) &&
        !(PyType_Check(object) && !(((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE))) {
        if (!tree->watch) {
            tree->watch = PyObject_New(struct guard_watch, &guard_watch_type);
            if (!tree->watch)
                goto done;
            tree->watch->tree = tree;
        }
        identity->ref = PyWeakref_NewRef(object, (PyObject *)tree->watch);
        if (identity->ref) {
            identity->at = &((PyWeakReference *)identity->ref)->wr_object;
            status = 0;
            goto done;
        }
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            goto done;
        PyErr_Clear();
    }
    identity->object = Py_NewRef(object);
    identity->at = &identity->object;
    status = 0;
done:
    Py_DECREF(object);
    return status;
}

/* The leaf of TREE that holds REF, or with REF NULL one whose object is dead. */
static struct guard_leaf *leaf_of(struct guard_tree *tree, PyObject *ref, struct guard_identity **identity)
{
    for (uint32_t i = 0; i < tree->count; i++)
        for (int j = 0; j < 2; j++) {
            *identity = &tree->leaves[i].is[j];
            if (ref ? (*identity)->ref == ref : (*identity)->ref && *(*identity)->at == Py_None)
                return &tree->leaves[i];
        }
    return NULL;
}

/* What TREE guards is not valid any more, because the object of LEAF is dead. */
static void invalidate_bound(struct guard_tree *tree, struct guard_leaf *leaf, struct guard_identity *identity)
{
    PyObject *text = PyUnicode_FromFormat("%U died, which guard %u named: %s of %U", identity->text, leaf->ordinal,
                                          leaf->kind->name, leaf->source);
    const char *reason = text ? PyUnicode_AsUTF8(text) : NULL;

    PyErr_Clear();
    while (tree->bound_count) {
        struct guard_bound bound = tree->bound[--tree->bound_count]; /* its reference is ours now */
        bound.to->invalidate(bound.object, reason ? reason : "a guarded object died");
        Py_DECREF(bound.object);
    }
    Py_XDECREF(text);
}

static PyObject *watch_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct guard_tree *tree = ((struct guard_watch *)self)->tree;
    struct guard_identity *identity;
    struct guard_leaf *leaf;

    if (!tree || !Py_REFCNT(tree) || PyTuple_GET_SIZE(args) != 1) /* a tree being freed has nothing bound */
        Py_RETURN_NONE;
    Py_INCREF(tree); /* what is bound may hold the last reference */
    leaf = leaf_of(tree, PyTuple_GET_ITEM(args, 0), &identity);
    if (leaf)
        invalidate_bound(tree, leaf, identity);
    Py_DECREF(tree);
    Py_RETURN_NONE;
}

static void watch_free(PyObject *self)
{
    PyObject_Free(self);
}

PyTypeObject guard_watch_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dyntrace.guards._Watch",
    .tp_basicsize = sizeof(struct guard_watch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Invalidates what a guard tree is bound to when a guarded object dies.",
    .tp_dealloc = watch_free,
    .tp_call = watch_call,
};

int guard_tree_bind(PyObject *object_tree, PyObject *object, const struct guard_binding *to)
{
    struct guard_tree *tree = (struct guard_tree *)object_tree;
    struct guard_bound *more;
    struct guard_identity *identity;
    struct guard_leaf *leaf;

    for (uint32_t i = 0; i < tree->bound_count;) /* the dead ones of an earlier life */
        if (tree->bound[i].to->is_valid(tree->bound[i].object)) {
            i++;
        } else {
            PyObject *dead = tree->bound[i].object;
            tree->bound[i] = tree->bound[--tree->bound_count];
            Py_DECREF(dead);
        }
    more = PyMem_Resize(tree->bound, struct guard_bound, tree->bound_count + 1);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    tree->bound = more;
    tree->bound[tree->bound_count++] = (struct guard_bound){Py_NewRef(object), to};
    leaf = leaf_of(tree, NULL, &identity);
    if (leaf) /* dead before it was born */
        invalidate_bound(tree, leaf, identity);
    return 0;
}

void guard_watch_detach(struct guard_watch *watch)
{
    if (watch)
        watch->tree = NULL;
}

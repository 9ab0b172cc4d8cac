/* tracer/guards/build.c -- makes a guard tree, and defines its Python type.
 *
 * Runs in: the traced process, under the GIL.
 *
 * python/dyntrace/_guard_words.py passes a plain tuple for each guard, in the order of ordinals:
 *
 *     (kind, paths, may run the program's code, objects, constant, number, limit)
 *     ("TYPE_MATCH", ((("l", "x", 1), (".", "mode", 2)),), False, ((str, "class str died, which
 *     ..."),), None, 0, 0)
 *
 * A path is a tuple of steps (kind, key, index of the step in the path of dyntrace.guards). The
 * steps l and m each replace two steps of that path, and have the index of the second. The first
 * step is one of L (all locals), G (globals), B (builtins), S (a state of the host; key is a
 * callable), l (a local variable), c (a free variable's cell). Further steps are "." (attribute),
 * "[" (item), "(" (call), "m" (call of a method). Each of the `objects` is None, or a pair (object
 * to compare with, text). The tree holds the object weakly; the text is the reason why an entry
 * becomes invalid when the object dies. */
#include "tracer/guards/tree.h"

/* ---- make the nodes: one for each step of the sources ---- */

/* Free what NODE owns, and all nodes below it. */
static void free_node_content(struct guard_node *node)
{
    for (uint32_t i = 0; i < node->child_count; i++) {
        free_node_content(node->children[i]);
        PyMem_Free(node->children[i]);
    }
    PyMem_Free(node->children);
    PyMem_Free(node->leaves.at);
    Py_XDECREF(node->step.key);
}

static bool are_keys_equal(PyObject *a, PyObject *b)
{
    int same;

    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b) ||
        !(PyUnicode_CheckExact(a) || PyLong_CheckExact(a) || PyBytes_CheckExact(a)))
        return false;
    same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

/* Is the key of a step of this KIND a name? */
static bool is_key_a_name(int kind)
{
    return kind == STEP_LOCAL || kind == STEP_CELL || kind == STEP_ATTRIBUTE || kind == STEP_METHOD;
}

/* Return the child of PARENT for the step (KIND, KEY). It is made if it is missing; AT is then the
 * index of the step in its path. Returns NULL with MemoryError. */
static struct guard_node *get_or_make_child(struct guard_node *parent, enum guard_step_kind kind,
                                            PyObject *key, int at)
{
    struct guard_node *node, **more;

    for (uint32_t i = 0; i < parent->child_count; i++)
        if (parent->children[i]->step.kind == kind &&
            are_keys_equal(parent->children[i]->step.key, key))
            return parent->children[i];
    more = PyMem_Resize(parent->children, struct guard_node *, parent->child_count + 1);
    if (more)
        parent->children = more;
    node = more ? PyMem_Calloc(1, sizeof *node) : NULL;
    if (!node) {
        PyErr_NoMemory();
        return NULL;
    }
    node->step.kind = kind;
    node->step.key = Py_NewRef(key);
    node->step.index = -1;
    node->slot = -1;
    node->at = at;
    if (kind == STEP_ITEM && PyLong_CheckExact(key)) {
        /* an int that is too large becomes the largest index, which is out of range as well */
        node->step.index = PyNumber_AsSsize_t(key, NULL);
        PyErr_Clear();
    }
    if (is_key_a_name(kind))
        PyUnicode_InternInPlace(&node->step.key);
    parent->children[parent->child_count++] = node;
    return node;
}

/* Return the node at the end of PATH. Nodes that are missing are made. Returns NULL with an
 * exception. */
static struct guard_node *find_or_make_node(struct guard_tree *tree, PyObject *path)
{
    /* the letters that stand for the values of enum guard_step_kind, from STEP_LOCALS on */
    static const char letters[] = "LGBSlc.[m(";
    struct guard_node *node = &tree->top;
    Py_ssize_t count = PyTuple_Check(path) ? PyTuple_GET_SIZE(path) : 0;

    if (count < 1 || count > GUARD_DEEPEST) {
        PyErr_Format(PyExc_ValueError, "a source of %zd steps: there may be 1 to %d", count,
                     GUARD_DEEPEST);
        return NULL;
    }
    for (Py_ssize_t i = 0; node && i < count; i++) {
        int kind = STEP_LOCALS;
        int letter, at;
        PyObject *key;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(path, i), "COi", &letter, &key, &at))
            return NULL;
        while (kind <= STEP_CALL && letters[kind - STEP_LOCALS] != letter)
            kind++;
        if (kind > STEP_CALL || (i == 0) != (kind <= STEP_CELL) ||
            (is_key_a_name(kind) && !PyUnicode_CheckExact(key))) {
            PyErr_SetString(PyExc_TypeError, "a source is not as dyntrace.guards makes it");
            return NULL;
        }
        node = get_or_make_child(node, (enum guard_step_kind)kind, key, at);
    }
    return node;
}

/* ---- make entries invalid when an object that a guard compares with dies ---- */

/* If the object of weak reference REF is dead, make the entries that are bound to TREE invalid. REF
 * is NULL: do so if any object is dead that a guard of TREE compares with. */
static void invalidate_bound_entries(struct guard_tree *tree, PyObject *ref)
{
    const struct guard_identity *dead = NULL;
    PyObject *death;
    const char *reason;

    for (uint32_t i = 0; i < 2 * tree->count && !dead; i++) {
        const struct guard_identity *one = &tree->leaves[i / 2].is[i % 2];
        if (one->ref && (ref ? one->ref == ref : *one->at == Py_None))
            dead = one;
    }
    if (!dead)
        return;
    death = Py_NewRef(dead->death);
    reason = PyUnicode_AsUTF8(death);
    PyErr_Clear();
    while (tree->bound_count) {
        /* the tree's reference to the object is ours from here on */
        struct guard_bound bound = tree->bound[--tree->bound_count];
        bound.to->invalidate(bound.object, reason ? reason : "a guarded object died");
        Py_DECREF(bound.object);
    }
    Py_DECREF(death);
}

/* Called when an object that a guard compares with dies. The context of CAPSULE is the tree; it is
 * NULL once the tree is gone. A tree without references is just being freed. */
static PyObject *handle_object_death(PyObject *capsule, PyObject *ref)
{
    PyObject *tree = PyCapsule_GetContext(capsule);

    if (tree && Py_REFCNT(tree)) {
        /* hold the tree, because the entries drop their references to it */
        Py_INCREF(tree);
        invalidate_bound_entries((struct guard_tree *)tree, ref);
        Py_DECREF(tree);
    }
    Py_RETURN_NONE;
}

static PyObject *make_death_callback(struct guard_tree *tree)
{
    static PyMethodDef method = {"object_died", handle_object_death, METH_O, NULL};
    OWNED PyObject *capsule = PyCapsule_New(&method, NULL, NULL);

    return capsule && !PyCapsule_SetContext(capsule, tree) ? PyCFunction_New(&method, capsule)
                                                           : NULL;
}

/* ---- add leaves: one for each guard ---- */

static int append_leaf(struct guard_leaves *leaves, struct guard_leaf *leaf)
{
    struct guard_leaf **more = PyMem_Resize(leaves->at, struct guard_leaf *, leaves->count + 1);

    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    leaves->at = more;
    more[leaves->count++] = leaf;
    return 0;
}

/* LEAF is a relation: reserve a slot for the value of each of its sources. */
static int reserve_value_slots(struct guard_tree *tree, struct guard_leaf *leaf, PyObject *paths)
{
    Py_ssize_t count = PyTuple_GET_SIZE(paths);

    leaf->slots = PyMem_New(uint32_t, count + 1);
    if (!leaf->slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct guard_node *node = find_or_make_node(tree, PyTuple_GET_ITEM(paths, i));
        if (!node)
            return -1;
        if (node->slot < 0)
            node->slot = (int)tree->slots++;
        leaf->slots[leaf->slot_count++] = (uint32_t)node->slot;
    }
    if (leaf->slot_count > tree->widest)
        tree->widest = leaf->slot_count;
    return append_leaf(&tree->relations, leaf);
}

/* Set number INDEX of the objects that LEAF compares with to OBJECT. When it dies, the entries
 * bound to TREE become invalid for the reason DEATH. */
static int set_expected_object(struct guard_tree *tree, struct guard_leaf *leaf, int index,
                               PyObject *object, PyObject *death)
{
    struct guard_identity *identity = &leaf->is[index];
    bool immortal =
        PyType_Check(object) && !(((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE);

    identity->death = Py_NewRef(death);
    if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && !immortal) {
        if (!tree->watch && !(tree->watch = make_death_callback(tree)))
            return -1;
        identity->ref = PyWeakref_NewRef(object, tree->watch);
        if (!identity->ref && !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
    }
    if (identity->ref) {
        identity->at = &((PyWeakReference *)identity->ref)->wr_object;
    } else {
        identity->object = Py_NewRef(object);
        identity->at = &identity->object;
    }
    return 0;
}

static int make_leaf_from_guard(struct guard_tree *tree, PyObject *guard)
{
    struct guard_leaf *leaf = &tree->leaves[tree->count];
    struct guard_node *node;
    PyObject *paths, *objects, *object, *death;
    const char *name;
    int stays;

    if (!PyTuple_Check(guard)) {
        PyErr_Format(PyExc_TypeError, "a guard is a tuple, not %s", Py_TYPE(guard)->tp_name);
        return -1;
    }
    if (!PyArg_ParseTuple(guard, "sO!pO!Onn", &name, &PyTuple_Type, &paths, &stays, &PyTuple_Type,
                          &objects, &leaf->constant, &leaf->number, &leaf->limit)) {
        leaf->constant = NULL;
        return -1;
    }
    Py_INCREF(leaf->constant);
    leaf->ordinal = tree->count++; /* the tree owns the parts of the leaf from here on */
    leaf->stays = stays;
    leaf->is[0].at = &leaf->is[0].object;
    for (int i = 0; i < 2 && i < PyTuple_GET_SIZE(objects); i++)
        if (PyTuple_GET_ITEM(objects, i) != Py_None &&
            (!PyArg_ParseTuple(PyTuple_GET_ITEM(objects, i), "OU", &object, &death) ||
             set_expected_object(tree, leaf, i, object, death)))
            return -1;
    if (guard_prepare_leaf(leaf, name))
        return -1;
    if (leaf->relation)
        return reserve_value_slots(tree, leaf, paths);
    if (PyTuple_GET_SIZE(paths) != 1) {
        PyErr_Format(PyExc_ValueError, "%s has one source, not %zd", name, PyTuple_GET_SIZE(paths));
        return -1;
    }
    node = find_or_make_node(tree, PyTuple_GET_ITEM(paths, 0));
    return node ? append_leaf(&node->leaves, leaf) : -1;
}

static void free_leaf(struct guard_leaf *leaf)
{
    Py_XDECREF(leaf->constant);
    for (int i = 0; i < 2; i++) {
        Py_XDECREF(leaf->is[i].ref);
        Py_XDECREF(leaf->is[i].object);
        Py_XDECREF(leaf->is[i].death);
    }
    tensor_free_guard(leaf->tensor);
    PyMem_Free(leaf->slots);
}

int guard_tree_bind(PyObject *object_tree, PyObject *object, const struct guard_binding *to)
{
    struct guard_tree *tree = (struct guard_tree *)object_tree;
    struct guard_bound *more;

    /* remove the cache entries that have become invalid */
    for (uint32_t i = 0; i < tree->bound_count;)
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
    /* check now, because such an object may have died before the binding */
    invalidate_bound_entries(tree, NULL);
    return 0;
}

/* ---- make and free a tree ---- */

static int clear_tree(PyObject *self)
{
    struct guard_tree *tree = (struct guard_tree *)self;
    struct guard_tree old = *tree;

    /* keep it whole: a finaliser has given it to another thread, which is checking it */
    if (tree->checking)
        return 0;

    /* empty the tree first, because freeing its parts may run code that sees the tree */
    tree->cleared = true;
    tree->leaves = NULL;
    tree->count = tree->slots = tree->bound_count = 0;
    tree->top = (struct guard_node){.slot = -1};
    tree->relations = (struct guard_leaves){NULL, 0};
    tree->globals = NULL;
    tree->watch = NULL;
    tree->bound = NULL;
    if (old.watch)
        PyCapsule_SetContext(PyCFunction_GET_SELF(old.watch), NULL);
    free_node_content(&old.top);
    for (uint32_t i = 0; i < old.count; i++)
        free_leaf(&old.leaves[i]);
    for (uint32_t i = 0; i < old.bound_count; i++)
        Py_DECREF(old.bound[i].object);
    PyMem_Free(old.leaves);
    PyMem_Free(old.relations.at);
    PyMem_Free(old.bound);
    Py_XDECREF(old.globals);
    Py_XDECREF(old.watch);
    return 0;
}

static void free_tree(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear_tree(self);
    Py_TYPE(self)->tp_free(self);
}

static int traverse_node(struct guard_node *node, visitproc visit, void *arg)
{
    int status;

    Py_VISIT(node->step.key);
    for (uint32_t i = 0; i < node->child_count; i++)
        if ((status = traverse_node(node->children[i], visit, arg)))
            return status;
    return 0;
}

static int traverse_tree(PyObject *self, visitproc visit, void *arg)
{
    struct guard_tree *tree = (struct guard_tree *)self;
    int status = traverse_node(&tree->top, visit, arg);

    if (status)
        return status;
    for (uint32_t i = 0; i < tree->count; i++) {
        struct guard_leaf *leaf = &tree->leaves[i];
        Py_VISIT(leaf->constant);
        for (int j = 0; j < 2; j++) {
            Py_VISIT(leaf->is[j].ref);
            Py_VISIT(leaf->is[j].object);
        }
        if ((status = tensor_traverse_guard(leaf->tensor, visit, arg)))
            return status;
    }
    Py_VISIT(tree->globals);
    return 0;
}

static PyObject *make_tree(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"guards", "globals", NULL};
    PyObject *guards;
    PyObject *globals = Py_None;
    PyObject *list;
    struct guard_tree *tree;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:GuardTree", names, &guards, &globals))
        return NULL;
    if (globals != Py_None && !PyDict_Check(globals))
        return PyErr_Format(PyExc_TypeError, "GuardTree: globals must be a dict, not %s",
                            Py_TYPE(globals)->tp_name);
    list = PySequence_Tuple(guards);
    tree = list ? (struct guard_tree *)type->tp_alloc(type, 0) : NULL;
    if (!tree)
        goto done;
    PyObject_GC_UnTrack(tree); /* hide the tree from the garbage collector until it is complete */
    tree->top = (struct guard_node){.slot = -1};
    tree->globals = globals == Py_None ? NULL : Py_NewRef(globals);
    tree->leaves = PyMem_Calloc((size_t)PyTuple_GET_SIZE(list) + 1, sizeof *tree->leaves);
    if (!tree->leaves) {
        PyErr_NoMemory();
        Py_CLEAR(tree);
        goto done;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); i++)
        if (make_leaf_from_guard(tree, PyTuple_GET_ITEM(list, i))) {
            Py_CLEAR(tree);
            goto done;
        }
    PyObject_GC_Track(tree);
done:
    Py_XDECREF(list);
    return (PyObject *)tree;
}

/* ---- methods of GuardTree in Python ---- */

static void visit_ordinals_of_leaves(const struct guard_leaves *leaves,
                                     void (*add)(void *, uint32_t), void *context)
{
    for (uint32_t i = 0; i < leaves->count; i++)
        add(context, leaves->at[i]->ordinal);
}

static void visit_ordinals_below_node(const struct guard_node *node, void (*add)(void *, uint32_t),
                                      void *context)
{
    visit_ordinals_of_leaves(&node->leaves, add, context);
    for (uint32_t i = 0; i < node->child_count; i++)
        visit_ordinals_below_node(node->children[i], add, context);
}

void guard_tree_visit_ordinals(PyObject *self, void (*add)(void *, uint32_t), void *context)
{
    struct guard_tree *tree = (struct guard_tree *)self;

    visit_ordinals_below_node(&tree->top, add, context);
    visit_ordinals_of_leaves(&tree->relations, add, context);
}

static void append_ordinal(void *context, uint32_t ordinal)
{
    PyObject **list = context;
    OWNED PyObject *number = *list ? PyLong_FromUnsignedLong(ordinal) : NULL;

    if (*list && (!number || PyList_Append(*list, number)))
        Py_CLEAR(*list);
}

uint32_t guard_tree_count_leaves(PyObject *tree)
{
    return ((struct guard_tree *)tree)->count;
}

uint32_t guard_tree_count_moves(PyObject *tree)
{
    return ((struct guard_tree *)tree)->moves;
}

/* Check the tree against LOCALS, a dict of variables. Returns false with an exception. */
static bool check_tree_against_dict(PyObject *self, PyObject *locals, struct guard_outcome *outcome)
{
    struct guard_values values = {.locals = locals};

    *outcome = (struct guard_outcome){.result = GUARD_ERROR};
    if (PyDict_Check(locals))
        *outcome = guard_tree_check(self, &values, NULL);
    else
        PyErr_Format(PyExc_TypeError, "expected the variables as a dict, got %s",
                     Py_TYPE(locals)->tp_name);
    return outcome->result != GUARD_ERROR;
}

static PyObject *check_tree_from_python(PyObject *self, PyObject *locals)
{
    struct guard_outcome outcome;

    return check_tree_against_dict(self, locals, &outcome)
               ? PyBool_FromLong(outcome.result == GUARD_PASS)
               : NULL;
}

/* Check the tree against LOCALS and return (passed, guards run, ordinal of the failed guard or
 * None). */
static PyObject *check_tree_and_report_failure(PyObject *self, PyObject *locals)
{
    struct guard_outcome outcome;
    PyObject *failed;

    if (!check_tree_against_dict(self, locals, &outcome))
        return NULL;
    failed =
        outcome.failed == UINT32_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(outcome.failed);
    return failed ? Py_BuildValue("(NIN)", PyBool_FromLong(outcome.result == GUARD_PASS),
                                  outcome.guards_run, failed)
                  : NULL;
}

static PyObject *list_current_order(PyObject *self, PyObject *ignored)
{
    PyObject *list = PyList_New(0);

    guard_tree_visit_ordinals(self, append_ordinal, &list);
    return list;
}

static PyMethodDef tree_methods[] = {
    {"check", check_tree_from_python, METH_O,
     "check($self, f_locals, /)\n--\n\n"
     "Return whether all guards hold for these variables, by name.\n\n"
     "An exception of a guard is raised."},
    {"check_verbose", check_tree_and_report_failure, METH_O,
     "check_verbose($self, f_locals, /)\n--\n\n"
     "Return (passed, guards run, number of the guard that did not hold or None)."},
    {"_explain", guard_tree_failures, METH_O,
     "_explain($self, f_locals, /)\n--\n\nReturn [(ordinal, step, exception or None, values)]."},
    {"_is_quiet", guard_is_quiet, METH_VARARGS | METH_STATIC,
     "_is_quiet(object, name, /)\n--\n\n"
     "Can the attribute be read without running code of the program?"},
    {"order", list_current_order, METH_NOARGS,
     "order($self, /)\n--\n\n"
     "Return the numbers of the guards in the order in which they are tried now.\n\n"
     "Failures change it."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject guard_tree_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "_dyntrace.GuardTree",
    .tp_basicsize = sizeof(struct guard_tree),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "GuardTree(guards, globals=None)\n--\n\nWhat dyntrace.guards.GuardTree is made of.",
    .tp_new = make_tree,
    .tp_dealloc = free_tree,
    .tp_traverse = traverse_tree,
    .tp_clear = clear_tree,
    .tp_methods = tree_methods,
};

int guard_types_ready(PyObject *module)
{
    return PyType_Ready(&guard_tree_type) || PyModule_AddFunctions(module, guard_methods)
               ? -1
               : PyModule_AddObjectRef(module, "GuardTree", (PyObject *)&guard_tree_type);
}

/* tracer/guards/check.c -- checks a guard tree, and explains failures. See tracer/guards/tree.h.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Guards may run the program's code (tracer/evaluator/cache.h has the rule), which may check the
 * same tree again or let another thread check it. So the caller of a check holds the tree, a check
 * holds every value that it has read, and a check reorders nothing while another check of the tree
 * is running. */
#include "tracer/guards/tree.h"

/* ---- check a tree ---- */

enum { KEPT_ON_STACK = 16 };

/* A check that is running. Invariant: the first tree->slots items of `kept` are owned or NULL. */
struct guard_reading {
    struct guard_tree *tree;
    struct guard_values values;
    PyObject **kept;
    PyObject **seen; /* where to store the value that made a leaf fail; or NULL */
    uint32_t run, failed, moved;
};

/* The item at index AT of LIST has failed: move it before items that have failed less often.
 * FAILS_AT is the offset, in an item, of its count of failures. */
static void move_failed_item_forward(struct guard_reading *r, void **list, uint32_t at,
                                     size_t fails_at)
{
#define FAILS(item) (*(uint32_t *)((char *)(item) + fails_at))
    void *failed = list[at];
    uint32_t to = at;

    if (r->tree->checking != 1 || FAILS(failed) == UINT32_MAX)
        return;
    FAILS(failed)++;
    while (to && FAILS(list[to - 1]) < FAILS(failed))
        to--;
    if (to == at)
        return;
    memmove(list + to + 1, list + to, (at - to) * sizeof *list);
    list[to] = failed;
    r->tree->moves++;
    r->moved++;
#undef FAILS
}

static void move_failed_leaf_forward(struct guard_reading *r, struct guard_leaves *leaves,
                                     uint32_t at)
{
    if (!leaves->at[at]->stays)
        move_failed_item_forward(r, (void **)leaves->at, at, offsetof(struct guard_leaf, fails));
}

static bool uses_value_slot(const struct guard_leaf *leaf, int slot)
{
    for (uint32_t i = 0; i < leaf->slot_count; i++)
        if ((int)leaf->slots[i] == slot)
            return true;
    return false;
}

/* Return the ordinal of the first guard that needs the value of NODE; UINT32_MAX if none does. */
static uint32_t first_guard_that_needs_node(const struct guard_tree *tree,
                                            const struct guard_node *node)
{
    if (node->leaves.count)
        return node->leaves.at[0]->ordinal;
    for (uint32_t i = 0; node->slot >= 0 && i < tree->relations.count; i++)
        if (uses_value_slot(tree->relations.at[i], node->slot))
            return tree->relations.at[i]->ordinal;
    return node->child_count ? first_guard_that_needs_node(tree, node->children[0]) : UINT32_MAX;
}

static int check_node(struct guard_reading *r, struct guard_node *node, PyObject *parent);

/* Check the nodes below NODE, whose value is VALUE. The caller holds VALUE. Returns 1, 0 or -1 as
 * in guard_outcome. */
static inline __attribute__((always_inline)) int
check_children(struct guard_reading *r, struct guard_node *node, PyObject *value)
{
    for (uint32_t i = 0; i < node->child_count; i++) {
        int result = check_node(r, node->children[i], value);
        if (unlikely(result <= 0)) {
            if (result == 0)
                move_failed_item_forward(r, (void **)node->children, i,
                                         offsetof(struct guard_node, fails));
            return result;
        }
    }
    return 1;
}

static int check_node(struct guard_reading *r, struct guard_node *node, PyObject *parent)
{
    PyObject *value = NULL;
    int result = guard_read_step(&node->step, parent, &r->values, &value);

    if (unlikely(result <= 0)) {
        r->run++;
        r->failed = first_guard_that_needs_node(r->tree, node);
        return result;
    }
    for (uint32_t i = 0; i < node->leaves.count; i++) {
        const struct guard_leaf *leaf = node->leaves.at[i];
        r->run++;
        result = guard_check(leaf, &value);
        if (unlikely(result <= 0)) {
            r->failed = leaf->ordinal;
            if (result == 0)
                move_failed_leaf_forward(r, &node->leaves, i);
            if (r->seen)
                *r->seen = Py_NewRef(value);
            goto done;
        }
    }
    result = check_children(r, node, value);
    if (result > 0 && node->slot >= 0 && !r->kept[node->slot]) {
        r->kept[node->slot] = value;
        return 1;
    }
done:
    Py_XDECREF(value);
    return result;
}

static PyObject *make_tuple_of_values(PyObject *const *values, uint32_t count)
{
    PyObject *tuple = PyTuple_New(count);

    for (uint32_t i = 0; tuple && i < count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
    return tuple;
}

/* Check the relations, with the values that were kept for them. VALUES has room for the values of
 * one relation. Returns 1, 0 or -1. */
static int check_relations(struct guard_reading *r, PyObject **values)
{
    struct guard_leaves *relations = &r->tree->relations;

    for (uint32_t i = 0; i < relations->count; i++) {
        const struct guard_leaf *leaf = relations->at[i];
        int result;
        for (uint32_t j = 0; j < leaf->slot_count; j++)
            values[j] = r->kept[leaf->slots[j]];
        r->run++;
        result = guard_check(leaf, values);
        if (result <= 0) {
            r->failed = leaf->ordinal;
            if (result == 0)
                move_failed_leaf_forward(r, relations, i);
            if (result == 0 && r->seen &&
                !(*r->seen = make_tuple_of_values(values, leaf->slot_count)))
                result = -1;
            return result;
        }
    }
    return 1;
}

struct guard_outcome guard_tree_check(PyObject *object, const struct guard_values *values,
                                      PyObject **seen)
{
    struct guard_tree *tree = (struct guard_tree *)object;
    PyObject *on_stack[2 * KEPT_ON_STACK];
    PyObject **kept = on_stack;
    struct guard_reading r = {
        tree, {values->frame, values->locals, tree->globals}, NULL, seen, 0, UINT32_MAX, 0};
    uint32_t room = tree->slots > tree->widest ? tree->slots : tree->widest;
    int result;

    if (unlikely(tree->cleared)) {
        PyErr_SetString(PyExc_RuntimeError, "the guard tree is being collected");
        return (struct guard_outcome){GUARD_ERROR, 0, UINT32_MAX, 0};
    }
    if (unlikely(room > KEPT_ON_STACK)) {
        kept = PyMem_New(PyObject *, 2 * (size_t)room);
        if (!kept) {
            PyErr_NoMemory();
            return (struct guard_outcome){GUARD_ERROR, 0, UINT32_MAX, 0};
        }
    } else {
        room = KEPT_ON_STACK;
    }
    for (uint32_t i = 0; i < tree->slots; i++)
        kept[i] = NULL;
    r.kept = kept;
    tree->checking++;
    result = check_children(&r, &tree->top, NULL);
    if (result > 0 && tree->relations.count)
        result = check_relations(&r, kept + room);
    tree->checking--;
    for (uint32_t i = 0; i < tree->slots; i++)
        Py_XDECREF(kept[i]);
    if (kept != on_stack)
        PyMem_Free(kept);
    return (struct guard_outcome){result > 0    ? GUARD_PASS
                                  : result == 0 ? GUARD_FAIL
                                                : GUARD_ERROR,
                                  r.run, r.failed, r.moved};
}

/* ---- find all leaves of a tree that fail ---- */

/* The explanation of a failed check. QUIET: the check may have run code of the program, which must
 * not run a second time, so the explanation uses the value that the check has read. */
struct explanation {
    const struct guard_tree *tree;
    struct guard_values values;
    bool quiet;
    uint32_t failed; /* ordinal of the leaf that ended the check; UINT32_MAX if it is not known */
    PyObject *seen;  /* borrowed: the value that made this leaf fail; or NULL */
    /* owned: the leaves that fail, as (ordinal, step, exception or None, values) */
    PyObject *list;
    PyObject **kept; /* owned: values of the sources of relations; or NULL */
};

/* Return the pending exception, a new reference, and clear it. If it is not an Exception, it stays
 * pending, and NULL is returned. */
static PyObject *take_exception(void)
{
    OWNED PyObject *type = NULL, *traceback = NULL;
    PyObject *value = NULL;

    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    return value;
}

/* Add LEAF to the list of leaves that fail. RAISED is the exception that its check raised
 * (borrowed), or NULL. VALUES are the COUNT values that the leaf has checked. If a source could not
 * be read, VALUES is NULL and STEP is the step that failed; for a relation it is the number of the
 * source. */
static int add_failed_leaf(struct explanation *x, const struct guard_leaf *leaf, int step,
                           PyObject *raised, PyObject *const *values, uint32_t count)
{
    PyObject *tuple = make_tuple_of_values(values, count);
    OWNED PyObject *item =
        tuple ? Py_BuildValue("(IiON)", leaf->ordinal, step, raised ? raised : Py_None, tuple)
              : NULL;

    return item ? PyList_Append(x->list, item) : -1;
}

static int check_leaf_and_explain(struct explanation *x, const struct guard_leaf *leaf,
                                  PyObject *const *values)
{
    const bool told = x->quiet && (leaf->stays || (x->seen && leaf->ordinal == x->failed));
    int result = told ? 1 : guard_check(leaf, values);
    OWNED PyObject *raised = result < 0 ? take_exception() : NULL;

    if (result == 1 || (result < 0 && !raised))
        return result == 1 ? 0 : -1;
    return add_failed_leaf(x, leaf, -1, raised, values, leaf->relation ? leaf->slot_count : 1);
}

/* Add the leaves at NODE and below it to the list of leaves that fail: their values could not be
 * read. */
static int add_unreadable_leaves(struct explanation *x, const struct guard_node *node, int step,
                                 PyObject *raised)
{
    for (uint32_t i = 0; i < node->leaves.count; i++)
        if (add_failed_leaf(x, node->leaves.at[i], step, raised, NULL, 0))
            return -1;
    for (uint32_t i = 0; i < node->child_count; i++)
        if (add_unreadable_leaves(x, node->children[i], step, raised))
            return -1;
    if (node->slot >= 0)
        Py_XSETREF(x->kept[node->slot], NULL);
    return 0;
}

static int check_node_and_explain(struct explanation *x, struct guard_node *node, PyObject *parent)
{
    /* a copy, because reading changes the attribute cache of a step */
    struct guard_step step = node->step;
    OWNED PyObject *value = NULL, *raised = NULL;
    int status;

    if (x->quiet && !guard_step_is_quiet(&step, parent))
        return !x->seen && first_guard_that_needs_node(x->tree, node) == x->failed
                   ? add_unreadable_leaves(x, node, node->at, NULL)
                   : 0;
    status = guard_read_step(&step, parent, &x->values, &value);
    if (status < 0 && !(raised = take_exception()))
        return -1;
    if (status <= 0)
        return add_unreadable_leaves(x, node, node->at, raised);
    status = 0;
    for (uint32_t i = 0; status == 0 && i < node->leaves.count; i++)
        status = check_leaf_and_explain(x, node->leaves.at[i], &value);
    for (uint32_t i = 0; status == 0 && i < node->child_count; i++)
        status = check_node_and_explain(x, node->children[i], value);
    if (node->slot >= 0)
        Py_XSETREF(x->kept[node->slot], Py_XNewRef(value));
    return status;
}

static int check_relation_and_explain(struct explanation *x, const struct guard_leaf *leaf,
                                      PyObject **values)
{
    for (uint32_t i = 0; i < leaf->slot_count; i++) {
        values[i] = x->kept[leaf->slots[i]];
        if (!values[i])
            return x->quiet && (x->seen || leaf->ordinal != x->failed)
                       ? 0
                       : add_failed_leaf(x, leaf, (int)i, NULL, NULL, 0);
    }
    return check_leaf_and_explain(x, leaf, values);
}

/* Return the leaves that fail, as a new list, which python/dyntrace/_guard_words.py turns into
 * text. */
static PyObject *find_all_failed_leaves(struct guard_tree *tree, struct explanation *x)
{
    PyObject **arguments = PyMem_Calloc(tree->widest + 1, sizeof *arguments);
    const struct guard_leaf *ended = x->seen ? &tree->leaves[x->failed] : NULL;
    int status = -1;

    x->tree = tree;
    x->values.globals = tree->globals;
    x->list = PyList_New(0);
    x->kept = PyMem_Calloc(tree->slots + 1, sizeof *x->kept);
    tree->checking++; /* keeps other checks from reordering the tree meanwhile */
    if (x->list && x->kept && arguments) {
        status = !ended ? 0
                 : ended->relation
                     ? add_failed_leaf(x, ended, -1, NULL, &PyTuple_GET_ITEM(x->seen, 0),
                                       ended->slot_count)
                     : add_failed_leaf(x, ended, -1, NULL, &x->seen, 1);
        if (status == 0)
            status = check_node_and_explain(x, &tree->top, NULL);
        for (uint32_t i = 0; status == 0 && i < tree->relations.count; i++)
            status = check_relation_and_explain(x, tree->relations.at[i], arguments);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    tree->checking--;
    for (uint32_t i = 0; x->kept && i < tree->slots; i++)
        Py_XDECREF(x->kept[i]);
    PyMem_Free(x->kept);
    PyMem_Free(arguments);
    if (status)
        Py_CLEAR(x->list);
    return x->list;
}

PyObject *guard_tree_failures(PyObject *self, PyObject *locals)
{
    struct explanation x = {.values = {.locals = locals}, .failed = UINT32_MAX};

    if (PyDict_Check(locals))
        return find_all_failed_leaves((struct guard_tree *)self, &x);
    return PyErr_Format(PyExc_TypeError, "expected the variables as a dict, got %s",
                        Py_TYPE(locals)->tp_name);
}

/* ---- describe a tree and its failures in words ---- */

/* Call SELF.NAME(FIRST, KEEP); without FIRST if it is NULL. The call is not recorded, traced or
 * counted, as all Python code of ours. Returns a new list, or NULL. An exception that is not an
 * Exception stays pending, for example one from a signal handler. */
static PyObject *call_method_unrecorded(PyObject *self, const char *name, PyObject *first,
                                        enum session_values keep)
{
    OWNED PyObject *kept = PyLong_FromLong(keep);
    PyObject *list;
    struct tracer_exception raised = {0};
    struct torch_quiet quiet;

    torch_quiet_begin(&quiet);
    list = first ? tracer_call_method(self, name, first, kept, NULL)
                 : tracer_call_method(self, name, kept, NULL, NULL);
    if (list && !PyList_CheckExact(list))
        Py_CLEAR(list);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        raised = tracer_put_exception_aside();
    torch_quiet_end(&quiet);
    if (raised.type)
        tracer_restore_exception(&raised);
    return list;
}

PyObject *guard_tree_explain(PyObject *self, const struct guard_values *values, uint32_t failed,
                             PyObject *seen, enum session_values keep)
{
    struct explanation x = {.values = *values, .quiet = true, .failed = failed, .seen = seen};
    OWNED PyObject *found = find_all_failed_leaves((struct guard_tree *)self, &x);

    return found ? call_method_unrecorded(self, "_why", found, keep) : NULL;
}

PyObject *guard_tree_list(PyObject *self, enum session_values keep)
{
    OWNED PyObject *list = call_method_unrecorded(self, "_rows", NULL, keep);
    PyObject *rows = list ? PyList_AsTuple(list) : NULL;
    bool whole = rows && PyTuple_GET_SIZE(rows) == ((struct guard_tree *)self)->count;

    for (Py_ssize_t i = 0; whole && i < PyTuple_GET_SIZE(rows); i++)
        whole = PyTuple_CheckExact(PyTuple_GET_ITEM(rows, i)) &&
                PyTuple_GET_SIZE(PyTuple_GET_ITEM(rows, i)) == 3;
    if (!whole)
        Py_CLEAR(rows);
    return rows;
}

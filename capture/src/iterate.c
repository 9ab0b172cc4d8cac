/* capture/src/iterate.c -- iterators, generators and unpacking. See capture.h.
 *
 * Iterators of CPython compute their next item themselves; the iterator's shadow tells where the
 * item comes from. When a generator is resumed, capture steps through its frame (step.c). The
 * objects of map(), filter() and some of zip() run Python code to compute an item. Capture does not
 * call them: it steps through a Python function (dyntrace._polyfills) that computes the same item
 * from the same iterators. */
#include "capture.h"

/* Add a node for VALUE[I] to the graph. VALUE is the result of another node. Returns the new node's
 * shadow, or NULL. */
static struct shadow *add_item_node(struct capture *c, PyObject *value, struct shadow *of,
                                    Py_ssize_t i)
{
    const bool fixed = has_fixed_shape(c, value, of);
    PyObject *target = get_operator("getitem");
    OWNED PyObject *array = make_node_argument(c, value, of);
    OWNED PyObject *args = array ? Py_BuildValue("(On)", array, i) : NULL;
    OWNED PyObject *node = NULL;

    if (args && target)
        node = node_new(intern_word("call_function"), NULL, target, Py_NewRef(args), NULL);
    PyErr_Clear();
    if (!node || add_node(c, node) || !capture_keep(c, node))
        return NULL;
    return shadow_new_node(c, node, fixed && value_is_array(value), fixed);
}

static bool has_known_length(PyObject *value, const struct shadow *of)
{
    if (is_source(of))
        return true;
    if (!is_kind(of, SHADOW_NODE))
        return false;
    return value_is_array(value) ? of->node.fixed : of->node.counted;
}

/* ---- iterables ---- */

/* How a value provides an iterator. */
enum iterable {
    ITERABLE_NOT,
    ITERABLE_ITSELF, /* a generator or an iterator: iter() of the value returns the value itself */
    ITERABLE_VIEW,   /* a view of a dict, such as d.items(); its shadow is a SHADOW_ITERATOR */
    ITERABLE_RESULT, /* an array, or the result of a graph node */
    ITERABLE_KNOWN,  /* a container, string or range with known items */
};

/* Are the items of VALUE, and their order, known? */
static bool has_known_items(struct capture *c, PyObject *value, struct shadow *of)
{
    if (is_known_set(value, of))
        return true;
    if (PyDict_CheckExact(value) && find_dict_shadow(c, value, of))
        return true;
    if (!of)
        return false;
    if (is_sequence(value))
        return ensure_type_known(c, value, of);
    return (value_is_simple(value) || PyTuple_Check(value)) && ensure_value_known(c, value, of);
}

static enum iterable classify_iterable(struct capture *c, PyObject *value, struct shadow *of)
{
    if (is_graph_value(value, of))
        return ITERABLE_RESULT;
    if (is_kind(of, SHADOW_GENERATOR))
        return ITERABLE_ITSELF;
    if (is_kind(of, SHADOW_ITERATOR))
        return Py_TYPE(value)->tp_iternext ? ITERABLE_ITSELF : ITERABLE_VIEW;
    return has_known_items(c, value, of) ? ITERABLE_KNOWN : ITERABLE_NOT;
}

/* May the graph have a node for each item of VALUE, the result of another node? Returns ENDED_NOT
 * if it may; otherwise breaks the graph. */
static enum ended may_iterate_result(struct capture *c, PyObject *value, struct shadow *of)
{
    enum ended ended;

    if (!has_known_length(value, of) || !ensure_type_known(c, value, of))
        return break_graph(c, "data", "a loop over a result whose length may depend on its data");
    ended = may_add_operation(c, true);
    if (!ended)
        c->shapes_read = true;
    return ended;
}

/* ---- iterators ---- */

enum ended make_iterator(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator,
                         struct shadow **shadow)
{
    const enum iterable iterable = classify_iterable(c, value, of);
    enum ended ended;

    if (iterable == ITERABLE_NOT)
        return break_graph(c, "container", "a loop over a %.200s", Py_TYPE(value)->tp_name);
    if (iterable == ITERABLE_RESULT) {
        ended = may_iterate_result(c, value, of);
        if (ended)
            return ended;
    }
    /* break the graph, because the iterator's shadow would keep VALUE alive until the capture ends,
     * and VALUE's death runs code */
    if (is_container(of) && c->mortal->count && !value_can_die_quietly(value))
        return break_graph(c, "value", "an iterator that may keep what runs code when it dies");
    if (iterable == ITERABLE_ITSELF)
        *shadow = of;
    else if (iterable == ITERABLE_VIEW)
        *shadow = make_iterator_shadow(c, ITERATES_ITEMS, of->value, of->iterator.of);
    else
        *shadow = make_iterator_shadow(c, ITERATES_ITEMS, value, of);
    if (!*shadow) {
        *iterator = NULL;
        return break_at_no_memory(c);
    }
    *iterator = PyObject_GetIter(value);
    return *iterator ? ENDED_NOT : ENDED_RAISED;
}

static bool is_iterator_of_kind(const struct shadow *of, enum iteration how)
{
    return of && of->kind == SHADOW_ITERATOR && of->iterator.how == how;
}

/* Is the next item of the iterator computed only by CPython's own iterators and by generators?
 * False if other Python code runs, e.g. the function of map(). */
static bool is_next_item_computed_by_cpython(const struct shadow *of)
{
    if (!of)
        return false;
    if (of->kind == SHADOW_GENERATOR)
        return !of->generator.lost;
    if (of->kind != SHADOW_ITERATOR)
        return false;
    switch (of->iterator.how) {
    case ITERATES_ITEMS:
    case ITERATES_BACKWARDS:
    case ITERATES_MIRROR:
        return true;
    case ITERATES_ZIP:
    case ITERATES_ENUMERATE:
        break;
    case ITERATES_MAP:
    case ITERATES_FILTER:
    case ITERATES_UNKNOWN:
        return false;
    }
    for (Py_ssize_t i = 0; i < of->count; i++)
        if (!is_next_item_computed_by_cpython(of->items[i]))
            return false;
    return true;
}

static struct shadow *make_shadow_of_returned_item(struct capture *c, struct shadow *of,
                                                   PyObject *iterator, PyObject *item);

/* Make the shadow of ITEM, a tuple that zip() or enumerate() returned. If OF is an enumerate(), the
 * first item of the tuple is a number. */
static struct shadow *make_shadow_of_returned_tuple(struct capture *c, struct shadow *of,
                                                    PyObject *item)
{
    const int numbers = of->iterator.how == ITERATES_ENUMERATE ? 1 : 0;
    struct shadow *made;

    if (!PyTuple_CheckExact(item))
        return NULL;
    made = shadow_new(c, SHADOW_TUPLE, PyTuple_GET_SIZE(item));
    if (!made)
        return NULL;
    if (numbers)
        shadow_add(c, made, NULL, shadow_new_const(c, PyTuple_GET_ITEM(item, 0)));
    for (Py_ssize_t i = 0; i < of->count; i++) {
        PyObject *part = PyTuple_GET_ITEM(item, i + numbers);

        shadow_add(c, made, NULL, make_shadow_of_returned_item(c, of->items[i], of->keys[i], part));
    }
    return made;
}

/* Make the shadow of ITEM, which ITERATOR took from the container that it iterates over. OF is the
 * shadow of the iterator. */
static struct shadow *make_shadow_of_container_item(struct capture *c, struct shadow *of,
                                                    PyObject *iterator, PyObject *item)
{
    Py_ssize_t at;

    if (is_graph_value(of->value, of->iterator.of))
        return add_item_node(c, of->value, of->iterator.of, of->iterator.at++);
    if (!is_sequence(of->value))
        return shadow_new_const(c, item);
    at = PyObject_LengthHint(iterator, 0);
    PyErr_Clear();
    if (of->iterator.how != ITERATES_BACKWARDS)
        at = PySequence_Fast_GET_SIZE(of->value) - at - 1;
    return get_item_shadow_at(c, of->value, of->iterator.of, at);
}

/* Make the shadow of ITEM, which ITERATOR returned. OF is the shadow of the iterator. */
static struct shadow *make_shadow_of_returned_item(struct capture *c, struct shadow *of,
                                                   PyObject *iterator, PyObject *item)
{
    if (!shadow_save_for_undo(c, of))
        return NULL;
    if (of->kind == SHADOW_GENERATOR)
        return of->generator.given;
    if (of->iterator.how == ITERATES_MIRROR)
        return advance_mirror(c, of);
    if (of->iterator.how == ITERATES_ENUMERATE || of->iterator.how == ITERATES_ZIP)
        return make_shadow_of_returned_tuple(c, of, item);
    return make_shadow_of_container_item(c, of, iterator, item);
}

/* Update shadows after iterator OF has ended: allow changes of the containers that OF iterates over
 * by a mirror. If OF is a zip(), it may have taken one item more from some of its iterators than
 * from others; mark an iterator as unknown if capture counts its position itself. */
static void iterator_forget_position(struct capture *c, struct shadow *of)
{
    c->failed |= !shadow_save_for_undo(c, of);
    if (of->kind != SHADOW_ITERATOR)
        return;
    while (of->iterator.how == ITERATES_MIRROR && of->count) {
        struct shadow *in = of->items[--of->count];
        c->failed |= !shadow_save_for_undo(c, in);
        in->mirrors--;
    }
    for (Py_ssize_t i = 0; i < of->count; i++) {
        struct shadow *in = of->items[i];
        iterator_forget_position(c, in);
        if (in->kind != SHADOW_ITERATOR)
            continue;
        if (in->iterator.how == ITERATES_MIRROR || is_graph_value(in->value, in->iterator.of)) {
            c->failed |= !shadow_save_for_undo(c, in);
            in->iterator.how = ITERATES_UNKNOWN;
        }
    }
}

/* Push the next item of a map(), filter() or zip() object: step through a Python function that
 * computes the same item. */
static enum ended push_next_by_polyfill(struct capture *c, struct watched *w, struct shadow *of,
                                        int slots)
{
    const bool filters = of->iterator.how == ITERATES_FILTER;
    OWNED PyObject *iterators = PyTuple_New(of->count);
    struct shadow *all = shadow_new(c, SHADOW_TUPLE, of->count);
    struct operands operands = {{of->value, iterators}, {of->iterator.of, all}};
    const struct call call = {
        .args = operands.values, .shadows = operands.of, .count = 2, .slots = slots};

    if (!iterators || !all)
        return break_at_no_memory(c);
    for (Py_ssize_t i = 0; i < of->count; i++) {
        PyTuple_SET_ITEM(iterators, i, Py_NewRef(of->keys[i]));
        shadow_add(c, all, NULL, of->items[i]);
    }
    if (!of->value) /* zip(), unlike map() and filter(), has no function to call */
        operands.values[0] = Py_None;
    if (!of->iterator.of)
        operands.of[0] = shadow_new_const(c, Py_None);
    return step_through_polyfill(c, w, filters ? "_next_filter" : "_next_map", &call);
}

/* Who computes the next item of an iterator. */
enum giver {
    GIVER_UNKNOWN,
    GIVER_METHOD, /* the method __next__ of a class of the program */
    /* a polyfill for map(), filter(), or a zip() whose iterators run Python code */
    GIVER_POLYFILL,
    GIVER_NATIVE, /* C code: tp_iternext of a built-in iterator; or a generator */
};

static enum giver classify_source_of_items(PyObject *iterator, const struct shadow *of)
{
    if (is_kind(of, SHADOW_OBJECT) || is_source(of))
        return GIVER_METHOD;
    /* next() of a view of a dict raises: the view has a SHADOW_ITERATOR, but is no iterator */
    if (is_next_item_computed_by_cpython(of))
        return PyIter_Check(iterator) ? GIVER_NATIVE : GIVER_UNKNOWN;
    if (is_iterator_of_kind(of, ITERATES_MAP) || is_iterator_of_kind(of, ITERATES_FILTER) ||
        is_iterator_of_kind(of, ITERATES_ZIP))
        return GIVER_POLYFILL;
    return GIVER_UNKNOWN;
}

/* Push the object `end` of dyntrace._polyfills, which means that the iterator has no next item.
 * Keeps the StopIteration in c->raised. */
static enum ended push_end_marker(struct capture *c, struct watched *w, int slots)
{
    struct tracer_exception raised = tracer_put_exception_aside();
    PyObject *end;

    c->raised = capture_keep(c, raised.value);
    tracer_drop_exception(&raised);
    end = get_polyfill("end");
    stack_replace(c, w, slots, Py_XNewRef(end), shadow_new_const(c, end));
    return c->inner_broke ? ENDED_BEHIND : ENDED_NOT;
}

static enum ended break_at_unknown_iterator(struct capture *c, PyObject *iterator)
{
    return break_graph(c, "container", "a loop over a %.200s", Py_TYPE(iterator)->tp_name);
}

static enum ended push_next_of_object(struct capture *c, struct watched *w, PyObject *iterator,
                                      struct shadow *of, int slots)
{
    const struct call call = {.callable = get_builtin("next"),
                              .args = &iterator,
                              .shadows = &of,
                              .count = 1,
                              .slots = slots};
    enum ended ended;

    if (!call.callable)
        return break_at_unknown_iterator(c, iterator);
    c->may_end = true;
    c->ends = false;
    ended = step_special_method(c, w, "__next__", &call);
    c->may_end = false;
    if (!is_instruction_handled(c, ended))
        return break_at_unknown_iterator(c, iterator);
    if (ended != ENDED_RAISED || !PyErr_ExceptionMatches(PyExc_StopIteration))
        return ended;
    if (c->ends)
        c->kind = NULL;
    c->inner_broke = !c->ends;
    return push_end_marker(c, w, slots);
}

static enum ended push_next_of_native(struct capture *c, struct watched *w, PyObject *iterator,
                                      struct shadow *of, int slots)
{
    const struct attempt attempt = attempt_begin(c);
    struct shadow *shadow = NULL;
    enum ended ended;
    PyObject *item;

    if (is_iterator_of_kind(of, ITERATES_ITEMS) && is_graph_value(of->value, of->iterator.of)) {
        ended = may_add_operation(c, true);
        if (ended)
            return ended;
    }
    c->inner_broke = false;
    if (c->sent)
        item = run_call(c->sent);
    else
        item = Py_TYPE(iterator)->tp_iternext(iterator);
    c->sent = NULL;
    if (c->inner_broke)
        attempt_undo(c, &attempt);
    if (item) {
        if (!c->inner_broke)
            shadow = make_shadow_of_returned_item(c, of, iterator, item);
        stack_replace(c, w, slots, item, shadow);
        return c->inner_broke ? ENDED_BEHIND : ENDED_NOT;
    }
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration))
        return ENDED_RAISED;
    iterator_forget_position(c, of);
    return push_end_marker(c, w, slots);
}

enum ended iterator_push_next(struct capture *c, struct watched *w, PyObject *iterator,
                              struct shadow *of, int slots)
{
    switch (classify_source_of_items(iterator, of)) {
    case GIVER_METHOD:
        return push_next_of_object(c, w, iterator, of, slots);
    case GIVER_POLYFILL:
        return push_next_by_polyfill(c, w, of, slots);
    case GIVER_NATIVE:
        return push_next_of_native(c, w, iterator, of, slots);
    case GIVER_UNKNOWN:
        break;
    }
    return break_at_unknown_iterator(c, iterator);
}

/* ---- unpacking ---- */

/* Can capture find the shadow of each item of ITEMS? WHOLE: ITEMS is a tuple or list with a guarded
 * type. */
static bool has_item_shadows(struct capture *c, PyObject *items, struct shadow *of, bool whole)
{
    if (whole)
        return true;
    if (!PyTuple_Check(items) || is_graph_value(items, of) || !of)
        return false;
    return is_varying_shape(of) || ensure_value_known(c, items, of);
}

/* Replace the object on top of the stack by a list with a value for each target of the unpacking,
 * by stepping through _unpack() of dyntrace._polyfills. BEFORE and BEHIND have the same meaning as
 * in execute_unpack(). WHOLE: the object is a tuple or list. */
static enum ended unpack_by_polyfill(struct capture *c, struct watched *w, Py_ssize_t before,
                                     Py_ssize_t behind, bool whole)
{
    OWNED PyObject *items = Py_NewRef(stack_value(w, 0));
    OWNED PyObject *first = PyLong_FromSsize_t(before);
    OWNED PyObject *last = behind < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(behind);
    PyObject *values[] = {items, first, last, whole ? Py_True : Py_False};
    struct shadow *shadows[] = {stack_shadow(w, 0), shadow_new_const(c, first),
                                shadow_new_const(c, last), shadow_new_const(c, values[3])};
    const struct call call = {.args = values, .shadows = shadows, .count = 4, .slots = 1};

    return step_through_polyfill(c, w, "_unpack", &call);
}

enum ended execute_unpack(struct capture *c, struct watched *w, Py_ssize_t before,
                          Py_ssize_t behind)
{
    OWNED PyObject *items = Py_NewRef(stack_value(w, 0));
    struct shadow *of = stack_shadow(w, 0);
    const bool whole =
        is_sequence(items) && !is_graph_value(items, of) && ensure_type_known(c, items, of);
    enum ended ended = ENDED_NOT;

    if (behind >= 0 || !has_item_shadows(c, items, of, whole)) {
        ended = unpack_by_polyfill(c, w, before, behind, whole);
        if (!is_instruction_done(ended))
            return ended;
        Py_SETREF(items, Py_NewRef(stack_value(w, 0)));
        of = stack_shadow(w, 0);
    } else if (PySequence_Fast_GET_SIZE(items) != before) {
        /* let CPython raise, because its error message differs between versions */
        return break_graph(c, "container", "%zd values are unpacked of %zd", before,
                           PySequence_Fast_GET_SIZE(items));
    }
    stack_drop(w, 1);
    for (Py_ssize_t i = PySequence_Fast_GET_SIZE(items); i-- > 0;) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));

        stack_push(w, item, ended ? NULL : get_item_shadow_at(c, items, of, i));
    }
    return ended;
}

/* ---- iter(), reversed() ---- */

enum ended execute_iter_call(struct capture *c, struct watched *w, const struct call *call)
{
    enum ended ended = step_operator_method(c, w, "iter", call);
    struct shadow *shadow;
    PyObject *iterator;

    if (is_instruction_handled(c, ended))
        return ended;
    ended = make_iterator(c, call->args[0], call->shadows[0], &iterator, &shadow);
    if (ended)
        return ended;
    return stack_replace(c, w, call->slots, iterator, shadow);
}

enum ended execute_reversed_call(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *value = call->args[0];
    struct shadow *of = call->shadows[0];
    struct shadow *shadow;

    if (!is_sequence(value) || is_graph_value(value, of) || !ensure_type_known(c, value, of))
        return ENDED_BEFORE;
    shadow = make_iterator_shadow(c, ITERATES_BACKWARDS, value, of);
    if (!shadow || !shadow_save_for_undo(c, of))
        return ENDED_BEFORE;
    /* forbid changes of the list, because the iterator uses the shadows of its items */
    if (PyList_CheckExact(value))
        of->frozen = true;
    return stack_replace(c, w, call->slots, run_call(call), shadow);
}

/* capture/src/iterate.c -- iteration and unpacking: containers, iterators, generators. See
 * capture.h.
 *
 * An iterator of CPython's gives its next item itself, and the shadow follows. A generator's frame
 * is stepped when that is resumed (step.c). map(), filter() and zip() have nothing but iterators
 * and a function: with those a function in Python that is stepped does what they would do
 * (python/dyntrace/_polyfills.py), and they are as if they had done it. */
#include "capture.h"

/* The node of item I of VALUE, one of the graph's: its shadow, or NULL. */
static struct shadow *item_node(struct capture *c, PyObject *value, struct shadow *of, Py_ssize_t i)
{
    OWNED PyObject *array = value_argument(c, value, of),
                   *args = array ? Py_BuildValue("(On)", array, i) : NULL;
    PyObject *target = operator_named("getitem");
    OWNED PyObject *node =
        args && target ? node_new(word_of("call_function"), NULL, target, Py_NewRef(args), NULL)
                       : NULL;

    PyErr_Clear();
    if (!node || add_node(c, node) || !capture_keep(c, node))
        return NULL;
    return shadow_node(c, node, is_fixed(c, value, of) && value_is_array(value),
                       is_fixed(c, value, of));
}

static bool has_known_length(PyObject *value, const struct shadow *of)
{
    return of && (of->kind == SHADOW_SOURCE ||
                  (of->kind == SHADOW_NODE &&
                   (value_is_array(value) ? of->node.fixed : of->node.counted)));
}

/* ---- iterators ---- */

enum ended iterator_of(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator,
                       struct shadow **shadow)
{
    const bool itself = of && (of->kind == SHADOW_GENERATOR ||
                               (of->kind == SHADOW_ITERATOR && Py_TYPE(value)->tp_iternext));
    const bool view = of && of->kind == SHADOW_ITERATOR && !itself; /* a dict's */
    enum ended ended;

    if (is_graph(value, of)) {
        if (!has_known_length(value, of) || !value_type_known(c, value, of))
            return break_at(c, "data", "a loop over a result whose length may depend on its data");
        if ((ended = may_operate(c, true)))
            return ended;
        c->shapes_read = true;
    } else if (!itself && !view && !is_set(value, of) &&
               !(PyDict_CheckExact(value) &&
                 dict_shadow(c, value, of)) && /* its keys are known as CPython gives them */
               (!of || !(is_sequence(value) ? value_type_known(c, value, of)
                                            : (value_is_simple(value) || PyTuple_Check(value)) &&
                                                  value_known(c, value, of)))) {
        return break_at(c, "container", "a loop over a %.200s", Py_TYPE(value)->tp_name);
    }
    /* the capture would keep it */
    if (!itself && is_container(of) && c->mortal->count && !value_dies_quietly(value))
        return break_at(c, "value", "an iterator that may keep what runs code when it dies");
    *shadow = itself ? of
              : view ? iterator_shadow(c, ITERATES_ITEMS, of->value, of->iterator.of)
                     : iterator_shadow(c, ITERATES_ITEMS, value, of);
    *iterator = *shadow ? PyObject_GetIter(value) : NULL;
    return *iterator ? ENDED_NOT : *shadow ? ENDED_RAISED : no_memory_at(c);
}

static bool iterates(const struct shadow *of, enum iteration how)
{
    return of && of->kind == SHADOW_ITERATOR && of->iterator.how == how;
}

/* Does its next item come from CPython alone, and from generators? */
static bool is_native(const struct shadow *of)
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
        if (!is_native(of->items[i]))
            return false;
    return true;
}

static struct shadow *given(struct capture *c, struct shadow *of, PyObject *iterator,
                            PyObject *item);

/* The tuple ITEM that a zip() or, with a number first, an enumerate() has just given. */
static struct shadow *given_tuple(struct capture *c, struct shadow *of, PyObject *item)
{
    const bool counts = of->iterator.how == ITERATES_ENUMERATE;
    struct shadow *made;

    if (!PyTuple_CheckExact(item))
        return NULL;
    made = shadow_new(c, SHADOW_TUPLE, PyTuple_GET_SIZE(item));
    if (made && counts)
        shadow_add(c, made, NULL, shadow_const(c, PyTuple_GET_ITEM(item, 0)));
    for (Py_ssize_t i = 0; made && i < of->count; i++) {
        PyObject *part = PyTuple_GET_ITEM(item, i + counts);
        shadow_add(c, made, NULL, given(c, of->items[i], of->keys[i], part));
    }
    return made;
}

/* ITEM of the container that ITERATOR, of OF, iterates over. */
static struct shadow *given_item(struct capture *c, struct shadow *of, PyObject *iterator,
                                 PyObject *item)
{
    Py_ssize_t at;

    if (is_graph(of->value, of->iterator.of))
        return item_node(c, of->value, of->iterator.of, of->iterator.at++);
    if (!is_sequence(of->value))
        return shadow_const(c, item);
    at = PyObject_LengthHint(iterator, 0);
    PyErr_Clear();
    if (of->iterator.how != ITERATES_BACKWARDS)
        at = PySequence_Fast_GET_SIZE(of->value) - at - 1;
    return value_item(c, of->value, of->iterator.of, at);
}

/* The shadow of ITEM, which ITERATOR, of OF, has just given. */
static struct shadow *given(struct capture *c, struct shadow *of, PyObject *iterator,
                            PyObject *item)
{
    if (!shadow_change(c, of))
        return NULL;
    if (of->kind == SHADOW_GENERATOR)
        return of->generator.given;
    if (of->iterator.how == ITERATES_MIRROR)
        return mirror_next(c, of);
    if (of->iterator.how == ITERATES_ENUMERATE || of->iterator.how == ITERATES_ZIP)
        return given_tuple(c, of, item);
    return given_item(c, of, iterator, item);
}

/* The iterator OF has ended. How far the iterators of a zip() have come is unknown if they do not
 * tell it themselves, and mirrored containers may be changed again. */
static void iterator_forget_position(struct capture *c, struct shadow *of)
{
    c->failed |= !shadow_change(c, of);
    if (of->kind != SHADOW_ITERATOR)
        return;
    while (of->iterator.how == ITERATES_MIRROR && of->count) {
        struct shadow *in = of->items[--of->count];
        c->failed |= !shadow_change(c, in);
        in->mirrors--;
    }
    for (Py_ssize_t i = 0; i < of->count; i++) {
        struct shadow *in = of->items[i];
        iterator_forget_position(c, in);
        if (in->kind != SHADOW_ITERATOR)
            continue;
        if (in->iterator.how == ITERATES_MIRROR || is_graph(in->value, in->iterator.of)) {
            c->failed |= !shadow_change(c, in);
            in->iterator.how = ITERATES_UNKNOWN;
        }
    }
}

/* The call of a function in Python does what map(), filter() or zip() OF does for its next item. */
static enum ended next_of_each(struct capture *c, struct watched *w, struct shadow *of, int slots)
{
    OWNED PyObject *iterators = PyTuple_New(of->count);
    struct shadow *all = shadow_new(c, SHADOW_TUPLE, of->count);
    struct operands operands = {
        {of->value ? of->value : Py_None, iterators},
        {of->iterator.of ? of->iterator.of : shadow_const(c, Py_None), all}};

    for (Py_ssize_t i = 0; iterators && all && i < of->count; i++) {
        PyTuple_SET_ITEM(iterators, i, Py_NewRef(of->keys[i]));
        shadow_add(c, all, NULL, of->items[i]);
    }
    if (!iterators || !all)
        return no_memory_at(c);
    return step_polyfill(
        c, w, of->iterator.how == ITERATES_FILTER ? "_next_filter" : "_next_map",
        &(struct call){
            .args = operands.values, .shadows = operands.of, .count = 2, .slots = slots});
}

enum ended iterator_next(struct capture *c, struct watched *w, PyObject *iterator,
                         struct shadow *of, int slots)
{
    const struct attempt attempt = attempt_begin(c);
    struct tracer_exception raised;
    PyObject *const next = builtin_named("next");
    enum ended ended;
    PyObject *item;

    /* of a class of the program's */
    if (next && of && (of->kind == SHADOW_OBJECT || of->kind == SHADOW_SOURCE)) {
        c->may_end = true;
        c->ends = false;
        ended = special(
            c, w, "__next__",
            &(struct call){
                .callable = next, .args = &iterator, .shadows = &of, .count = 1, .slots = slots});
        c->may_end = false;
        if (ended == ENDED_BEFORE && !c->kind)
            return break_at(c, "container", "a loop over a %.200s", Py_TYPE(iterator)->tp_name);
        if (ended != ENDED_RAISED || !PyErr_ExceptionMatches(PyExc_StopIteration))
            return ended;
        c->kind = c->ends ? NULL : c->kind;
        c->inner_broke = !c->ends;
    } else {
        const bool calls = iterates(of, ITERATES_MAP) || iterates(of, ITERATES_FILTER) ||
                           iterates(of, ITERATES_ZIP);
        if (calls && !is_native(of))
            return next_of_each(c, w, of, slots);
        /* a dict's view has the shadow of an iterator and is none: next() of it raises */
        if (!is_native(of) || !PyIter_Check(iterator))
            return break_at(c, "container", "a loop over a %.200s", Py_TYPE(iterator)->tp_name);
        if (iterates(of, ITERATES_ITEMS) && is_graph(of->value, of->iterator.of) &&
            (ended = may_operate(c, true)))
            return ended;
        c->inner_broke = false;
        item = c->sent ? run_call(c->sent) : Py_TYPE(iterator)->tp_iternext(iterator);
        c->sent = NULL;
        if (c->inner_broke)
            attempt_undo(c, &attempt);
        if (item)
            stack_result(c, w, slots, item, c->inner_broke ? NULL : given(c, of, iterator, item));
        if (item || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration)))
            return !item ? ENDED_RAISED : c->inner_broke ? ENDED_BEHIND : ENDED_NOT;
        iterator_forget_position(c, of);
    }
    raised = tracer_exception_aside();
    c->raised = capture_keep(c, raised.value);
    tracer_exception_drop(&raised);
    item = polyfill("end");
    stack_result(c, w, slots, Py_XNewRef(item), shadow_const(c, item));
    return c->inner_broke ? ENDED_BEHIND : ENDED_NOT;
}

/* ---- instructions ---- */

enum ended unpack(struct capture *c, struct watched *w, Py_ssize_t before, Py_ssize_t behind)
{
    OWNED PyObject *items = Py_NewRef(stack_value(w, 0)), *first = PyLong_FromSsize_t(before),
                   *last = behind < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(behind);
    struct shadow *of = stack_shadow(w, 0);
    const bool whole = is_sequence(items) && !is_graph(items, of) && value_type_known(c, items, of);
    PyObject *values[] = {items, first, last, whole ? Py_True : Py_False};
    struct shadow *shadows[] = {of, shadow_const(c, first), shadow_const(c, last),
                                shadow_const(c, values[3])};
    enum ended ended = ENDED_NOT;

    if (behind >= 0 ||
        !(whole || (PyTuple_Check(items) && !is_graph(items, of) && of &&
                    ((of->kind == SHADOW_SOURCE && of->source.varies == VARIES_SHAPE) ||
                     value_known(c, items, of))))) {
        ended = step_polyfill(
            c, w, "_unpack",
            &(struct call){.args = values, .shadows = shadows, .count = 4, .slots = 1});
        if (ended == ENDED_BEFORE || ended == ENDED_RAISED)
            return ended;
        Py_SETREF(items, Py_NewRef(stack_value(w, 0)));
        of = stack_shadow(w, 0);
    } else if (PySequence_Fast_GET_SIZE(items) != before) {
        /* CPython's words depend on the version */
        return break_at(c, "container", "%zd values are unpacked of %zd", before,
                        PySequence_Fast_GET_SIZE(items));
    }
    stack_drop(w, 1);
    for (Py_ssize_t i = PySequence_Fast_GET_SIZE(items); i-- > 0;)
        stack_push(w, Py_NewRef(PySequence_Fast_GET_ITEM(items, i)),
                   ended ? NULL : value_item(c, items, of, i));
    return ended;
}

enum ended iterate_call(struct capture *c, struct watched *w, const struct call *call,
                        const char *name)
{
    PyObject *value = call->args[0], *iterator;
    struct shadow *of = call->shadows[0], *shadow;
    enum ended ended;

    if (name[0] == 'i') {
        if ((ended = operate_special(c, w, name, call)) != ENDED_BEFORE || c->kind)
            return ended;
        ended = iterator_of(c, value, of, &iterator, &shadow);
        return ended ? ended : stack_result(c, w, call->slots, iterator, shadow);
    }
    if (!is_sequence(value) || is_graph(value, of) || !value_type_known(c, value, of) ||
        !(shadow = iterator_shadow(c, ITERATES_BACKWARDS, value, of)) || !shadow_change(c, of))
        return ENDED_BEFORE;
    of->frozen |= PyList_CheckExact(value); /* its items are those that the shadow has now */
    return stack_result(c, w, call->slots, run_call(call), shadow);
}

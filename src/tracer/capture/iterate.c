/* tracer/capture/iterate.c -- what is gone through and unpacked: containers, iterators, generators. See capture.h.
 *
 * An iterator of CPython's gives its next item itself, and the shadow follows. A generator's frame is stepped when that is resumed
 * (step.c). map(), filter() and zip() have nothing but iterators and a function: what they do is done with those, so that the
 * function can be stepped, and they are as if they had done it. */
#include "tracer/capture/capture.h"

/* The node of item I of VALUE, one of the graph's: its shadow, or NULL. */
static struct shadow *item_node(struct capture *c, PyObject *value, struct shadow *of, Py_ssize_t i)
{
    OWNED PyObject *array = value_argument(c, value, of), *args = array ? Py_BuildValue("(On)", array, i) : NULL;
    PyObject *target = operator_named("getitem");
    OWNED PyObject *node = args && target ? node_new("call_function", NULL, target, Py_NewRef(args), NULL) : NULL;

    PyErr_Clear();
    if (!node || add_node(c, node) || !capture_keep(c, node))
        return NULL;
    return shadow_node(c, node, is_fixed(c, value, of) && value_is_array(value), is_fixed(c, value, of));
}

static bool has_known_length(PyObject *value, const struct shadow *of)
{
    return of && (of->kind == SHADOW_SOURCE || (of->kind == SHADOW_NODE && (value_is_array(value) ? of->fixed : of->counted)));
}

/* ---- iterators ---- */

enum { MANY = 16 };

struct shadow *iterator_shadow(struct capture *c, char how, PyObject *value, struct shadow *of)
{
    struct shadow *made = shadow_new(c, SHADOW_ITERATOR, 0);

    if (made) {
        made->step = how;
        made->value = value ? capture_keep(c, value) : NULL;
        made->parent = of;
    }
    return made;
}

enum ended iterator_of(struct capture *c, PyObject *value, struct shadow *of, PyObject **iterator, struct shadow **shadow)
{
    enum ended ended;

    *shadow = of;
    if (of && of->kind == SHADOW_GENERATOR) {
        *iterator = Py_NewRef(value);
        return ENDED_NOT;
    }
    if (of && of->kind == SHADOW_ITERATOR) {
        if (!Py_TYPE(value)->tp_iternext) /* a dict's view */
            *shadow = iterator_shadow(c, 0, of->value, of->parent);
    } else if (PyDict_CheckExact(value) && dict_shadow(c, value, of)) {
        *shadow = iterator_shadow(c, 0, value, of); /* its keys are known as CPython gives them */
    } else if (is_graph(value, of)) {
        if (!has_known_length(value, of) || !value_type_known(c, value, of))
            return break_at(c, "data", "a loop over a result whose length may depend on its data");
        if ((ended = may_operate(c)))
            return ended;
        c->shapes_read = true;
        *shadow = iterator_shadow(c, 0, value, of);
    } else if (!of || !(is_sequence(value) ? value_type_known(c, value, of) : (value_is_simple(value) || PyTuple_Check(value)) && value_known(c, value, of))) {
        return break_at(c, "container", "a loop over a %.200s", Py_TYPE(value)->tp_name);
    } else {
        *shadow = iterator_shadow(c, 0, value, of);
    }
    *iterator = *shadow ? PyObject_GetIter(value) : NULL;
    return *iterator ? ENDED_NOT : *shadow ? ENDED_RAISED : no_memory_at(c);
}

/* Does its next item come from CPython alone, and from generators? */
static bool is_native(const struct shadow *of)
{
    if (!of || of->kind != SHADOW_ITERATOR || !of->step || of->step == 'r')
        return of && (of->kind == SHADOW_ITERATOR || (of->kind == SHADOW_GENERATOR && !of->counted));
    for (Py_ssize_t i = 0; i < of->count; i++)
        if (!is_native(of->items[i]))
            return false;
    return of->step == 'e' || of->step == 'z';
}

/* The shadow of ITEM, which an iterator with OF has just given. */
static struct shadow *given(struct capture *c, struct shadow *of, PyObject *item)
{
    struct shadow *made;

    if (!shadow_change(c, of))
        return NULL;
    if (of->kind == SHADOW_GENERATOR)
        return of->child;
    if (of->step == 'e' || of->step == 'z') {
        made = PyTuple_CheckExact(item) ? shadow_new(c, SHADOW_TUPLE, PyTuple_GET_SIZE(item)) : NULL;
        if (made && of->step == 'e')
            shadow_add(c, made, NULL, shadow_const(c, PyTuple_GET_ITEM(item, 0)));
        for (Py_ssize_t i = 0; made && i < of->count; i++)
            shadow_add(c, made, NULL, given(c, of->items[i], PyTuple_GET_ITEM(item, i + (of->step == 'e'))));
        return made;
    }
    if (is_graph(of->value, of->parent))
        return item_node(c, of->value, of->parent, of->at++);
    if (!is_sequence(of->value))
        return shadow_const(c, item);
    of->at++;
    return value_item(c, of->value, of->parent, of->step == 'r' ? PySequence_Fast_GET_SIZE(of->value) - of->at : of->at - 1);
}

/* One argument of map(), or an item of zip(), from each iterator of OF: *COUNT of them, or fewer: one has come to its end. */
static enum ended next_of_each(struct capture *c, struct watched *w, const struct shadow *of, PyObject **values, struct shadow **shadows, Py_ssize_t *count)
{
    enum ended ended = ENDED_NOT, one;

    for (*count = 0; *count < of->count && ended != ENDED_RAISED; ++*count) {
        PyObject *iterator = of->keys[*count];
        one = iterator_next(c, w, iterator, of->items[*count], &values[*count], &shadows[*count]);
        if (one == ENDED_BEFORE) {
            values[*count] = Py_TYPE(iterator)->tp_iternext(iterator);
            one = values[*count] || !PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_StopIteration) ? ENDED_BEHIND : ENDED_RAISED;
            if (one == ENDED_BEHIND)
                PyErr_Clear();
        }
        ended = one ? one : ended;
        if (!values[*count])
            break;
    }
    return ended;
}

/* CALL, besides the stack, whose top makes room. */
static enum ended call_aside(struct capture *c, struct watched *w, const struct call *call, PyObject **result, struct shadow **shadow)
{
    const int at = w->variables + w->depth - 1;
    struct shadow *of_top = w->shadow[at];
    PyObject *top = compat_take_local(w->frame, at);
    enum ended ended;

    w->depth--;
    ended = dispatch(c, w, call);
    *result = NULL;
    *shadow = NULL;
    if (ended == ENDED_NOT || ended == ENDED_BEHIND) {
        *result = Py_NewRef(stack_value(w, 0));
        *shadow = ended ? NULL : stack_shadow(w, 0);
        stack_drop(w, 1);
    } else if (ended == ENDED_BEFORE) {
        *result = run_call(call);
        ended = *result ? ENDED_BEHIND : ENDED_RAISED;
    }
    w->depth++;
    w->shadow[at] = of_top;
    compat_give_local(w->frame, at, top);
    return ended;
}

static enum ended next_of_many(struct capture *c, struct watched *w, struct shadow *of, PyObject **item, struct shadow **shadow)
{
    PyObject *values[MANY], *result = NULL;
    struct shadow *shadows[MANY], *of_result = NULL;
    struct call call = {.callable = of->value, .of = of->parent, .args = values, .shadows = shadows};
    enum ended ended = ENDED_NOT, one;
    Py_ssize_t count;
    bool more;
    int is;

    do {
        more = false;
        one = next_of_each(c, w, of, values, shadows, &count);
        ended = one ? one : ended;
        call.count = (int)count;
        if (count < of->count || ended == ENDED_RAISED)
            break;
        if (of->step == 'z') {
            *item = PyTuple_New(count);
            *shadow = shadow_new(c, SHADOW_TUPLE, count);
            for (Py_ssize_t i = 0; *item && *shadow && i < count; i++) {
                PyTuple_SET_ITEM(*item, i, Py_NewRef(values[i]));
                shadow_add(c, *shadow, NULL, shadows[i]);
            }
        } else if (of->step == 'm' || of->value != Py_None) {
            one = call_aside(c, w, &call, &result, &of_result);
            ended = one ? one : ended;
        } else {
            result = Py_NewRef(values[0]);
            of_result = shadows[0];
        }
        if (of->step == 'm') {
            *item = result;
            *shadow = of_result;
        } else if (of->step == 'f' && result) {
            is = ended ? -2 : truth_of(c, result, of_result);
            if (is == -2) {
                ended = ENDED_BEHIND;
                is = PyObject_IsTrue(result);
            }
            *item = is > 0 ? Py_NewRef(values[0]) : NULL;
            *shadow = shadows[0];
            ended = is < 0 ? ENDED_RAISED : ended;
            more = !is;
            Py_DECREF(result);
        }
        while (count > 0)
            Py_DECREF(values[--count]);
    } while (more);
    while (count > 0)
        Py_DECREF(values[--count]);
    return ended;
}

enum ended iterator_next(struct capture *c, struct watched *w, PyObject *iterator, struct shadow *of, PyObject **item, struct shadow **shadow)
{
    const struct attempt attempt = attempt_begin(c);
    enum ended ended = ENDED_NOT;
    PyObject *stopped;

    *item = NULL;
    *shadow = NULL;
    if (!of || !(of->kind == SHADOW_ITERATOR ? is_native(of) || of->step == 'm' || of->step == 'f' || of->step == 'z' : is_native(of)))
        return break_at(c, "container", "a loop over a %.200s", Py_TYPE(iterator)->tp_name);
    if (of->kind == SHADOW_ITERATOR && !of->step && is_graph(of->value, of->parent) && (ended = may_operate(c)))
        return ended;
    if (of->kind == SHADOW_ITERATOR && (of->step == 'm' || of->step == 'f' || of->step == 'z')) {
        ended = next_of_many(c, w, of, item, shadow);
    } else {
        c->inner_broke = false;
        *item = Py_TYPE(iterator)->tp_iternext(iterator);
        if (!*item && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration))
            ended = ENDED_RAISED;
        else if (c->inner_broke)
            ended = ENDED_BEHIND;
        if (ended != ENDED_RAISED && !*item && !_PyGen_FetchStopIterationValue(&stopped)) {
            c->stopped = capture_keep(c, stopped);
            Py_DECREF(stopped);
        }
        if (!ended && *item)
            *shadow = given(c, of, *item);
    }
    if (ended) {
        attempt_undo(c, &attempt);
        *shadow = NULL;
    }
    return ended;
}

enum ended collect(struct capture *c, struct watched *w, PyObject *value, struct shadow *of, Py_ssize_t most, PyObject **list, struct shadow **shadow)
{
    const struct attempt attempt = attempt_begin(c);
    struct shadow *of_iterator, *of_item;
    PyObject *iterator, *item;
    enum ended ended = iterator_of(c, value, of, &iterator, &of_iterator), one;
    OWNED PyObject *held = ended ? NULL : iterator;

    *list = NULL;
    if (ended)
        return ended;
    *list = PyList_New(0);
    *shadow = shadow_new(c, SHADOW_LIST, 0);
    while (*list && *shadow && PyList_GET_SIZE(*list) < most) {
        one = ended ? ENDED_BEFORE : iterator_next(c, w, iterator, of_iterator, &item, &of_item);
        if (one == ENDED_BEFORE && !ended && !PyList_GET_SIZE(*list)) {
            Py_CLEAR(*list);
            return ENDED_BEFORE;
        }
        if (one == ENDED_BEFORE) { /* CPython goes on */
            item = Py_TYPE(iterator)->tp_iternext(iterator);
            one = item || !PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_StopIteration) ? ENDED_BEHIND : ENDED_RAISED;
            if (one == ENDED_BEHIND)
                PyErr_Clear();
        }
        ended = one ? one : ended;
        if (!item || PyList_Append(*list, item) || shadow_add(c, *shadow, NULL, of_item)) {
            Py_XDECREF(item);
            break;
        }
        Py_DECREF(item);
    }
    if (!*list || !*shadow)
        c->failed = true;
    if (ended)
        attempt_undo(c, &attempt);
    if (ended == ENDED_RAISED)
        Py_CLEAR(*list);
    return ended;
}

/* ---- instructions ---- */

enum ended unpack(struct capture *c, struct watched *w, Py_ssize_t before, Py_ssize_t behind)
{
    PyObject *value = stack_value(w, 0), *rest = NULL;
    struct shadow *of = stack_shadow(w, 0), *shadow = NULL, *of_rest = NULL;
    OWNED PyObject *items = NULL;
    const bool graph = is_graph(value, of), starred = behind >= 0;
    enum ended ended = ENDED_NOT;
    Py_ssize_t count = before + (starred ? behind : 0), size;

    if (graph) {
        if (!has_known_length(value, of) || !value_type_known(c, value, of))
            return break_at(c, "data", "a result is unpacked whose length may depend on its data");
        if ((ended = may_operate(c)))
            return ended;
        c->shapes_read = true;
    }
    if (graph || (is_sequence(value) && value_type_known(c, value, of)) || (PyTuple_Check(value) && value_known(c, value, of))) { /* a shape */
        items = PySequence_List(value);
        shadow = items ? shadow_new(c, SHADOW_LIST, PyList_GET_SIZE(items)) : NULL;
        if (!shadow)
            return items ? no_memory_at(c) : ENDED_RAISED;
        size = PyList_GET_SIZE(items);
        if (starred ? size < count : size != count)
            return break_at(c, "container", "%zd values are unpacked of a %.200s of another length", count, Py_TYPE(value)->tp_name);
        for (Py_ssize_t i = 0; i < size; i++)
            shadow_add(c, shadow, NULL, graph ? item_node(c, value, of, i) : is_sequence(value) ? value_item(c, value, of, i) : shadow_const(c, PyList_GET_ITEM(items, i)));
    } else {
        ended = collect(c, w, value, of, starred ? PY_SSIZE_T_MAX : count + 1, &items, &shadow);
        if (ended == ENDED_RAISED || ended == ENDED_BEFORE)
            return ended;
        size = PyList_GET_SIZE(items);
        if (starred ? size < count : size != count) {
            if (size > count)
                PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %zd)", count);
            else
                PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %s%zd, got %zd)", starred ? "at least " : "", count, size);
            return ENDED_RAISED;
        }
    }
    if (starred) {
        rest = PyList_GetSlice(items, before, size - behind);
        of_rest = rest ? shadow_new(c, SHADOW_LIST, size - count) : NULL;
        for (Py_ssize_t i = before; of_rest && i < size - behind; i++)
            shadow_add(c, of_rest, NULL, shadow->items[i]);
        if (!of_rest)
            c->failed = true;
    }
    stack_drop(w, 1);
    for (Py_ssize_t i = count + starred - 1; i >= 0; i--) {
        const Py_ssize_t at = starred && i > before ? size - count - 1 + i : i;
        if (starred && i == before)
            stack_push(w, rest, ended ? NULL : of_rest);
        else
            stack_push(w, Py_NewRef(PyList_GET_ITEM(items, at)), ended ? NULL : shadow->items[at]);
    }
    return ended;
}

enum ended iterate(struct capture *c, struct watched *w)
{
    struct operands operands = {{stack_value(w, 0)}, {stack_shadow(w, 0)}};
    const struct call call = operator_call("iter", 1, 1, &operands);
    PyObject *iterator;
    struct shadow *shadow;
    enum ended ended = operate_special(c, w, "iter", &call);

    if (ended != ENDED_BEFORE || c->kind)
        return ended;
    ended = iterator_of(c, operands.values[0], operands.of[0], &iterator, &shadow);
    return ended ? ended : stack_result(c, w, 1, iterator, shadow);
}

enum ended next_item(struct capture *c, struct watched *w, struct compat_action action)
{
    PyObject *item;
    struct shadow *shadow;
    enum ended ended = iterator_next(c, w, stack_value(w, COMPAT_ABOVE_ITERATOR), stack_shadow(w, COMPAT_ABOVE_ITERATOR), &item, &shadow);

    if (ended == ENDED_BEFORE || ended == ENDED_RAISED)
        return ended;
    if (item) {
        stack_push(w, item, shadow);
        return ended;
    }
    stack_drop(w, 1 + COMPAT_ABOVE_ITERATOR);
    w->next = (int32_t)action.arg;
    return ended;
}

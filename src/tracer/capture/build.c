/* tracer/capture/build.c -- containers: built, read and changed. See capture.h.
 *
 * The shadow of a container that was built here has the shadows of its items, and is changed with it. */
#include "tracer/capture/capture.h"

enum ended no_memory_at(struct capture *c)
{
    c->failed = true;
    PyErr_Clear();
    return break_at(c, "value", "no memory");
}

/* ---- built ---- */

static PyObject *top(const struct watched *w, int count, int i)
{
    return stack_value(w, count - 1 - i);
}

static enum ended build_sequence(struct capture *c, struct watched *w, int count, bool list)
{
    struct shadow *shadow = shadow_new(c, list ? SHADOW_LIST : SHADOW_TUPLE, count);
    PyObject *made = shadow ? list ? PyList_New(count) : PyTuple_New(count) : NULL;

    if (!made)
        return no_memory_at(c);
    for (int i = 0; i < count; i++) {
        PyObject *item = Py_NewRef(top(w, count, i));
        shadow->items[i] = stack_shadow(w, count - 1 - i);
        if (list)
            PyList_SET_ITEM(made, i, item);
        else
            PyTuple_SET_ITEM(made, i, item);
    }
    shadow->count = count;
    return stack_result(c, w, count, made, shadow);
}

static int find_key(const struct shadow *dict, PyObject *key)
{
    for (Py_ssize_t i = 0; i < dict->count; i++)
        if (dict->keys[i] == key || (Py_TYPE(dict->keys[i]) == Py_TYPE(key) && PyObject_RichCompareBool(dict->keys[i], key, Py_EQ) == 1))
            return (int)i;
    return -1;
}

struct shadow *dict_shadow(struct capture *c, PyObject *dict, struct shadow *of)
{
    OWNED PyObject *keys = NULL;
    struct shadow *made;

    if (!of || of->kind == SHADOW_DICT)
        return of && PyDict_GET_SIZE(dict) == of->count ? of : NULL;
    if (of->kind != SHADOW_SOURCE || c->foreign || of->changed || PyDict_GET_SIZE(dict) > 1000 || !value_type_known(c, dict, of) ||
        !(made = shadow_new(c, SHADOW_DICT, 0)) || !(keys = PySequence_Tuple(dict)))
        return PyErr_Clear(), NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i), *value = PyUnicode_CheckExact(key) ? PyDict_GetItemWithError(dict, key) : NULL;
        struct shadow *item = value ? source_read(c, of, '[', key, value) : NULL;
        if (!item || shadow_add(c, made, key, item))
            return NULL;
    }
    if (!of->counted && guard_on(c, of, "DICT_ORDER", keys))
        return NULL;
    of->counted = true;
    return made;
}

/* DICT, of SHADOW, has VALUE under KEY from now on. */
static int put(struct capture *c, PyObject *dict, struct shadow *shadow, PyObject *key, PyObject *value, struct shadow *of)
{
    int at = find_key(shadow, key);

    if (at >= 0)
        shadow->items[at] = of;
    else if (shadow_add(c, shadow, key, of))
        return -1;
    return PyDict_SetItem(dict, key, value);
}

/* Keys that are equal without being of one type, 1 and True, are one key: only words, numbers and tuples of those are taken. */
static bool is_key(struct capture *c, PyObject *key, struct shadow *shadow)
{
    return (PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) && value_known(c, key, shadow);
}

/* KEYED: the keys are a tuple on top. */
static enum ended build_dict(struct capture *c, struct watched *w, int count, bool keyed)
{
    struct shadow *shadow = shadow_new(c, SHADOW_DICT, 0);
    PyObject *keys = keyed ? stack_value(w, 0) : NULL, *made;

    for (int i = 0; i < count; i++)
        if (keyed ? !(PyUnicode_CheckExact(PyTuple_GET_ITEM(keys, i)) || PyLong_CheckExact(PyTuple_GET_ITEM(keys, i)))
                  : !is_key(c, top(w, 2 * count, 2 * i), stack_shadow(w, 2 * count - 1 - 2 * i)))
            return break_at(c, "container", "a dict whose keys are not words or numbers that are known");
    made = shadow ? PyDict_New() : NULL;
    for (int i = 0; made && i < count; i++)
        if (keyed ? put(c, made, shadow, PyTuple_GET_ITEM(keys, i), top(w, count + 1, i), stack_shadow(w, count - i))
                  : put(c, made, shadow, top(w, 2 * count, 2 * i), top(w, 2 * count, 2 * i + 1), stack_shadow(w, 2 * (count - 1 - i))))
            Py_CLEAR(made);
    return made ? stack_result(c, w, keyed ? count + 1 : 2 * count, made, shadow) : no_memory_at(c);
}

static enum ended build_slice(struct capture *c, struct watched *w, int count)
{
    struct shadow *shadow = shadow_new(c, SHADOW_SLICE, 3), *none = shadow_const(c, Py_None);
    PyObject *made;

    if (!shadow || !none)
        return no_memory_at(c);
    for (int i = 0; i < 3; i++)
        if (!(shadow->items[i] = i < count ? stack_shadow(w, count - 1 - i) : none))
            return break_at(c, "value", "a slice whose bounds are not known");
    shadow->count = 3;
    made = PySlice_New(top(w, count, 0), top(w, count, 1), count > 2 ? top(w, count, 2) : NULL);
    return made ? stack_result(c, w, count, made, shadow) : no_memory_at(c);
}

static enum ended build_text(struct capture *c, struct watched *w, int count)
{
    OWNED PyObject *empty = PyUnicode_FromString(""), *parts = PyTuple_New(count);
    struct shadow *shadow;
    PyObject *made;

    for (int i = 0; i < count; i++)
        if (!value_known(c, top(w, count, i), stack_shadow(w, count - 1 - i)))
            return break_at(c, "value", "a text that is not known");
    for (int i = 0; parts && i < count; i++)
        PyTuple_SET_ITEM(parts, i, Py_NewRef(top(w, count, i)));
    made = empty && parts ? PyUnicode_Join(empty, parts) : NULL;
    shadow = made ? shadow_const(c, made) : NULL;
    return shadow ? stack_result(c, w, count, made, shadow) : no_memory_at(c);
}

/* ---- changed ---- */

static enum ended not_ours(struct capture *c, PyObject *container)
{
    return break_at(c, "mutation", "a %.200s is changed that was not made here", Py_TYPE(container)->tp_name);
}

static enum ended append(struct capture *c, struct watched *w, int below)
{
    PyObject *list = stack_value(w, below);
    struct shadow *shadow = stack_shadow(w, below);

    if (!may_change(c, shadow, SHADOW_LIST) || PyList_GET_SIZE(list) != shadow->count || stack_value(w, 0) == list)
        return not_ours(c, list);
    if (shadow_add(c, shadow, NULL, stack_shadow(w, 0)) || PyList_Append(list, stack_value(w, 0)))
        return no_memory_at(c);
    stack_drop(w, 1);
    return ENDED_NOT;
}

static enum ended extend(struct capture *c, struct watched *w, int below)
{
    PyObject *list = stack_value(w, below), *from = stack_value(w, 0);
    struct shadow *shadow = stack_shadow(w, below), *of = stack_shadow(w, 0), *more;
    OWNED PyObject *items = NULL;
    enum ended ended;

    if (!may_change(c, shadow, SHADOW_LIST) || PyList_GET_SIZE(list) != shadow->count || from == list)
        return not_ours(c, list);
    ended = collect(c, w, from, of, PY_SSIZE_T_MAX, &items, &more);
    if (ended == ENDED_BEFORE || ended == ENDED_RAISED)
        return ended;
    if (PyList_SetSlice(list, PyList_GET_SIZE(list), PyList_GET_SIZE(list), items))
        c->failed = true;
    for (Py_ssize_t i = 0; i < more->count && !ended; i++)
        shadow_add(c, shadow, NULL, more->items[i]);
    stack_drop(w, 1);
    return ended;
}

static enum ended map_add(struct capture *c, struct watched *w, int below)
{
    PyObject *dict = stack_value(w, below + 1);
    struct shadow *shadow = stack_shadow(w, below + 1);

    if (!may_change(c, shadow, SHADOW_DICT) || PyDict_GET_SIZE(dict) != shadow->count)
        return not_ours(c, dict);
    if (!is_key(c, stack_value(w, 1), stack_shadow(w, 1)))
        return break_at(c, "container", "a dict whose keys are not words or numbers that are known");
    if (put(c, dict, shadow, stack_value(w, 1), stack_value(w, 0), stack_shadow(w, 0)))
        return no_memory_at(c);
    stack_drop(w, 2);
    return ENDED_NOT;
}

/* The dict on top is put into the one BELOW. */
static enum ended merge(struct capture *c, struct watched *w, int below)
{
    PyObject *dict = stack_value(w, below), *from = stack_value(w, 0);
    struct shadow *shadow = stack_shadow(w, below), *of = stack_shadow(w, 0);

    if (!may_change(c, shadow, SHADOW_DICT) || PyDict_GET_SIZE(dict) != shadow->count || shadow == of)
        return not_ours(c, dict);
    if (!of || !PyDict_CheckExact(from) || !(of = dict_shadow(c, from, of)))
        return break_at(c, "container", "items of a %.200s are taken", Py_TYPE(from)->tp_name);
    for (Py_ssize_t i = 0; i < of->count; i++)
        if (find_key(shadow, of->keys[i]) >= 0) /* of keywords, that raises */
            return break_at(c, "container", "a key of a dict is taken twice");
    for (Py_ssize_t i = 0; i < of->count; i++)
        if (put(c, dict, shadow, of->keys[i], PyDict_GetItemWithError(from, of->keys[i]), of->items[i]))
            return no_memory_at(c);
    stack_drop(w, 1);
    return ENDED_NOT;
}

static enum ended to_tuple(struct capture *c, struct watched *w)
{
    PyObject *list = stack_value(w, 0), *made;
    struct shadow *of = stack_shadow(w, 0), *shadow;

    if (!of || of->kind != SHADOW_LIST || !PyList_CheckExact(list) || PyList_GET_SIZE(list) != of->count)
        return break_at(c, "container", "a tuple is made of a list that is not known");
    shadow = shadow_new(c, SHADOW_TUPLE, of->count);
    made = shadow ? PyList_AsTuple(list) : NULL;
    if (!made)
        return no_memory_at(c);
    if (of->count)
        memcpy(shadow->items, of->items, sizeof *of->items * (size_t)of->count);
    shadow->count = of->count;
    return stack_result(c, w, 1, made, shadow);
}

enum ended build(struct capture *c, struct watched *w, struct compat_action action)
{
    const int count = (int)action.arg;

    switch (action.does) {
    case DOES_BUILD_TUPLE:
    case DOES_BUILD_LIST:
        return build_sequence(c, w, count, action.does == DOES_BUILD_LIST);
    case DOES_BUILD_MAP:
    case DOES_BUILD_KEYED:
        return build_dict(c, w, count, action.does == DOES_BUILD_KEYED);
    case DOES_BUILD_SLICE:
        return build_slice(c, w, count);
    case DOES_BUILD_STRING:
        return build_text(c, w, count);
    case DOES_LIST_APPEND:
        return append(c, w, count);
    case DOES_LIST_EXTEND:
        return extend(c, w, count);
    case DOES_MAP_ADD:
        return map_add(c, w, count);
    case DOES_MERGE:
        return merge(c, w, count);
    default:
        return to_tuple(c, w);
    }
}

/* ---- read and set by key ---- */

/* Is KEY one that makes a part of an array whose shape follows from its own? */
static bool is_plain_key(PyObject *key)
{
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
            if (!is_plain_key(PyTuple_GET_ITEM(key, i)))
                return false;
        return true;
    }
    if (PySlice_Check(key)) {
        const PySliceObject *slice = (const PySliceObject *)key;
        return value_is_simple(slice->start) && value_is_simple(slice->stop) && value_is_simple(slice->step);
    }
    return key == Py_None || key == Py_Ellipsis || PyLong_CheckExact(key);
}

/* CONTAINER[KEY] of the graph; COUNT values of the stack give way. */
static enum ended graph_item(struct capture *c, struct watched *w, int count, PyObject *container, struct shadow *of, PyObject *key,
                             struct shadow *of_key)
{
    struct operation operation;
    enum ended ended = operation_on(c, "getitem", 2, (PyObject *const[]){container, key}, (struct shadow *const[]){of, of_key}, &operation);

    if (ended)
        return ended;
    operation.fixed &= is_plain_key(key) && value_is_array(container);
    return node_result(c, w, count, &operation, PyObject_GetItem(container, key));
}

/* A part of a tuple or list. */
static enum ended part(struct capture *c, struct watched *w, int count, PyObject *container, struct shadow *of, PyObject *key)
{
    struct shadow *shadow = shadow_new(c, PyList_CheckExact(container) ? SHADOW_LIST : SHADOW_TUPLE, 0);
    Py_ssize_t start, stop, step, length;
    PyObject *made;

    if (!shadow || PySlice_Unpack(key, &start, &stop, &step))
        return shadow ? ENDED_RAISED : no_memory_at(c);
    length = PySlice_AdjustIndices(PySequence_Fast_GET_SIZE(container), &start, &stop, step);
    for (Py_ssize_t i = 0; i < length; i++) {
        struct shadow *item = value_item(c, container, of, start + i * step);
        if (!item || shadow_add(c, shadow, NULL, item))
            return break_at(c, "container", "a part of a %.200s that is not known", Py_TYPE(container)->tp_name);
    }
    made = PyObject_GetItem(container, key);
    return stack_result(c, w, count, made, shadow);
}

static enum ended get_item(struct capture *c, struct watched *w, int count, PyObject *container, struct shadow *of, PyObject *key,
                           struct shadow *of_key)
{
    struct shadow *shadow = NULL;
    PyObject *value = NULL;
    enum ended ended;

    if (is_graph(container, of) || is_graph(key, of_key))
        return graph_item(c, w, count, container, of, key, of_key);
    if ((ended = operate_special(c, w, "__getitem__", RUN_GET, count, 2, (PyObject *[]){container, key}, (struct shadow *[]){of, of_key})) != ENDED_BEFORE || c->kind)
        return ended;
    if (!of || !value_known(c, key, of_key))
        return break_at(c, "value", "an item of a %.200s that is not known", Py_TYPE(container)->tp_name);
    if (is_sequence(container) && value_type_known(c, container, of)) {
        if (PySlice_Check(key))
            return part(c, w, count, container, of, key);
        if (PyLong_CheckExact(key)) {
            Py_ssize_t i = PyNumber_AsSsize_t(key, NULL), size = PySequence_Fast_GET_SIZE(container);
            i += i < 0 ? size : 0;
            if (i < 0 || i >= size)
                return PyErr_SetString(PyExc_IndexError, PyList_CheckExact(container) ? "list index out of range" : "tuple index out of range"), ENDED_RAISED;
            shadow = value_item(c, container, of, i);
            value = PySequence_Fast_GET_ITEM(container, i);
        }
    } else if (PyDict_CheckExact(container) && (PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) && (of->changed || value_type_known(c, container, of))) {
        value = PyDict_GetItemWithError(container, key);
        if (value && of->kind == SHADOW_SOURCE)
            shadow = source_read(c, of, '[', key, value);
        else if (value && of->kind == SHADOW_DICT && PyDict_GET_SIZE(container) == of->count && find_key(of, key) >= 0)
            shadow = of->items[find_key(of, key)];
    } else if ((value_is_simple(container) || PyTuple_Check(container)) && value_known(c, container, of)) {
        value = PyObject_GetItem(container, key);
        shadow = value ? shadow_const(c, value) : NULL;
        if (!value)
            return ENDED_RAISED;
        if (shadow && (value_is_simple(value) || PyTuple_Check(value)))
            return stack_result(c, w, count, value, shadow);
        Py_DECREF(value);
        value = NULL;
    }
    PyErr_Clear();
    if (!value || !shadow)
        return break_at(c, "container", "an item of a %.200s", Py_TYPE(container)->tp_name);
    return stack_result(c, w, count, Py_NewRef(value), shadow);
}

/* CONTAINER[KEY] = VALUE; COUNT values go. */
static enum ended set_item(struct capture *c, struct watched *w, int count, PyObject *container, struct shadow *of, PyObject *key,
                           struct shadow *of_key, PyObject *value, struct shadow *of_value)
{
    enum ended ended;

    if (is_graph(container, of)) {
        struct operation operation;
        ended = operation_on(c, "setitem", 3, (PyObject *const[]){container, key, value}, (struct shadow *const[]){of, of_key, of_value}, &operation);
        OWNED PyObject *args = ended ? NULL : operation.args, *node = NULL;
        if (ended || PyObject_SetItem(container, key, value))
            return ended ? ended : ENDED_RAISED;
        node = node_new(operation.op, NULL, operation.target, Py_NewRef(args), NULL);
        if (!node || add_node(c, node))
            c->failed = true;
        PyErr_Clear();
        stack_drop(w, count);
        return ENDED_NOT;
    }
    ended = operate_special(c, w, "__setitem__", RUN_SET, count, 3, (PyObject *[]){container, key, value}, (struct shadow *[]){of, of_key, of_value});
    if (ended == ENDED_NOT || ended == ENDED_BEHIND)
        stack_drop(w, 1);
    if (ended != ENDED_BEFORE || c->kind)
        return ended;
    if (PySlice_Check(key))
        return by_numbers_of(c, w, container, of, "__setitem__", 2, (PyObject *[]){container, key, value}, (struct shadow *[]){of, of_key, of_value}, count);
    if (!value_known(c, key, of_key) || !of_value)
        return break_at(c, "value", "an item is set that is not known");
    if (PyList_CheckExact(container) && PyLong_CheckExact(key) && may_change(c, of, SHADOW_LIST) && value != container) {
        Py_ssize_t i = PyNumber_AsSsize_t(key, NULL), size = PyList_GET_SIZE(container);
        if (size == of->count && i >= -size && i < size && change_item(c, of, of_key, of_value, PyList_GET_ITEM(container, i < 0 ? i + size : i), of->items[i < 0 ? i + size : i])) {
            of->items[i < 0 ? i + size : i] = of_value;
            PyList_SetItem(container, i < 0 ? i + size : i, Py_NewRef(value));
            stack_drop(w, count);
            return ENDED_NOT;
        }
    }
    if (PyDict_CheckExact(container) && may_change(c, of, SHADOW_DICT) && PyDict_GET_SIZE(container) == of->count &&
        is_key(c, key, of_key) && value != container &&
        change_item(c, of, of_key, of_value, PyDict_GetItemWithError(container, key), find_key(of, key) < 0 ? NULL : of->items[find_key(of, key)])) {
        if (put(c, container, of, key, value, of_value))
            return no_memory_at(c);
        stack_drop(w, count);
        return ENDED_NOT;
    }
    if (PyDict_CheckExact(container) && of && of->kind == SHADOW_SOURCE && is_key(c, key, of_key) && (of->changed || value_type_known(c, container, of)))
        return set_in_dict(c, w, count, of, key, value, of_value);
    return not_ours(c, container);
}

/* list * number, del, and what is set in place of a part. */
static PyObject *run_on_self(const struct call *call)
{
    PyObject *self = call->args[-1], *value = call->count > 1 ? call->args[1] : NULL;

    if (call->which == 'm')
        return PyNumber_Multiply(self, call->args[0]);
    return (value ? PyObject_SetItem(self, call->args[0], value) : PyObject_DelItem(self, call->args[0])) ? NULL : Py_NewRef(Py_None);
}

enum ended by_numbers_of(struct capture *c, struct watched *w, PyObject *self, struct shadow *of, const char *method, int count, PyObject **values,
                         struct shadow **shadows, int slots)
{
    const struct call call = {.args = values + 1, .shadows = shadows + 1, .count = count, .slots = slots, .run = run_on_self, .which = method[2]};
    enum ended ended = !of || !(PyList_CheckExact(self) || PyDict_CheckExact(self)) ? not_ours(c, self) : by_numbers(c, w, &call, self, of, method);

    if (method[2] != 'm' && ended == ENDED_NOT)
        stack_drop(w, 1);
    return ended;
}

enum ended delete_item(struct capture *c, struct watched *w)
{
    return by_numbers_of(c, w, stack_value(w, 1), stack_shadow(w, 1), "__delitem__", 1, (PyObject *[]){stack_value(w, 1), stack_value(w, 0)},
                         (struct shadow *[]){stack_shadow(w, 1), stack_shadow(w, 0)}, 2);
}

enum ended subscript(struct capture *c, struct watched *w, struct compat_action action)
{
    const bool sets = action.does == DOES_STORE_SUBSCRIPT || action.does == DOES_STORE_SLICE;
    const bool sliced = action.does == DOES_SLICE || action.does == DOES_STORE_SLICE;
    const int count = 2 + sets + sliced, at = sliced ? 2 : 1; /* VALUE, CONTAINER, KEY or its two bounds */
    OWNED PyObject *slice = NULL;
    struct shadow *of_key = stack_shadow(w, 0);
    PyObject *key = stack_value(w, 0);

    if (sliced) {
        struct shadow *none = shadow_const(c, Py_None);
        key = slice = PySlice_New(stack_value(w, 1), stack_value(w, 0), NULL);
        of_key = shadow_new(c, SHADOW_SLICE, 3);
        if (!slice || !of_key || !none || !stack_shadow(w, 0) || !stack_shadow(w, 1))
            return break_at(c, "value", "a slice whose bounds are not known");
        of_key->items[0] = stack_shadow(w, 1);
        of_key->items[1] = stack_shadow(w, 0);
        of_key->items[2] = none;
        of_key->count = 3;
    }
    if (sets)
        return set_item(c, w, count, stack_value(w, at), stack_shadow(w, at), key, of_key, stack_value(w, at + 1), stack_shadow(w, at + 1));
    return get_item(c, w, count, stack_value(w, at), stack_shadow(w, at), key, of_key);
}

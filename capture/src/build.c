/* capture/src/build.c -- containers: built, read and changed. See capture.h.
 *
 * The shadow of a container that was built here has the shadows of its items, and is changed with
 * it. */
#include "capture.h"

/* ---- built ---- */

/* The COUNT values on top in a tuple: a new reference, and its shadow. NULL: no memory. */
static PyObject *tuple_of(struct capture *c, const struct watched *w, int count, struct shadow **of)
{
    PyObject *made = PyTuple_New(count);

    *of = shadow_new(c, SHADOW_TUPLE, count);
    for (int i = 0; made && *of && i < count; i++) {
        PyTuple_SET_ITEM(made, i, Py_NewRef(stack_value(w, count - 1 - i)));
        shadow_add(c, *of, NULL, stack_shadow(w, count - 1 - i));
    }
    if (made && !*of)
        Py_CLEAR(made);
    return made;
}

static enum ended build_sequence(struct capture *c, struct watched *w, int count, bool list)
{
    struct shadow *of;
    PyObject *made = tuple_of(c, w, count, &of);

    if (made && list) {
        of->kind = SHADOW_LIST;
        Py_SETREF(made, PySequence_List(made));
    }
    return made ? stack_result(c, w, count, made, of) : no_memory_at(c);
}

struct shadow *dict_shadow(struct capture *c, PyObject *dict, struct shadow *of)
{
    OWNED PyObject *keys = NULL;
    struct shadow *made;

    if (!of || of->kind == SHADOW_DICT)
        return of && PyDict_GET_SIZE(dict) == of->count ? of : NULL;
    if (of->kind != SHADOW_SOURCE || c->foreign || of->source.changed ||
        PyDict_GET_SIZE(dict) > 1000 || !value_type_known(c, dict, of) ||
        !(made = shadow_new(c, SHADOW_DICT, 0)) || !(keys = PySequence_Tuple(dict)))
        return PyErr_Clear(), NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i),
                 *value = PyUnicode_CheckExact(key) ? PyDict_GetItemWithError(dict, key) : NULL;
        struct shadow *item = value ? source_read(c, of, '[', key, value) : NULL;
        if (!item || shadow_add(c, made, key, item))
            return NULL;
    }
    if (!of->source.listed && guard_on(c, of, "DICT_ORDER", keys))
        return NULL;
    of->source.listed = true;
    return made;
}

/* Keys that are equal without being of one type, 1 and True, are one key: only words and numbers
 * are taken. */
static bool is_key(struct capture *c, PyObject *key, struct shadow *shadow)
{
    return (PyUnicode_CheckExact(key) || PyLong_CheckExact(key) ||
            (PyTuple_Check(key) && value_is_plain(key))) &&
           value_known(c, key, shadow);
}

/* KEYED: the keys are a tuple on top. */
static enum ended build_dict(struct capture *c, struct watched *w, int count, bool keyed)
{
    const int slots = keyed ? count + 1 : 2 * count;
    struct shadow *shadow = shadow_new(c, SHADOW_DICT, 0), **place;
    PyObject *made = PyDict_New();

    for (int i = 0; made && shadow && i < count; i++) {
        const int from_top = slots - 1 - (keyed ? i : 2 * i + 1);
        PyObject *key =
            keyed ? PyTuple_GET_ITEM(stack_value(w, 0), i) : stack_value(w, from_top + 1);
        if (!is_key(c, key, stack_shadow(w, keyed ? 0 : from_top + 1)))
            return Py_DECREF(made),
                   break_at(c, "container",
                            "a dict whose keys are not words or numbers that are known");
        if ((place = object_place(shadow, key)))
            *place = stack_shadow(w, from_top);
        else
            shadow_add(c, shadow, key, stack_shadow(w, from_top));
        if (PyDict_SetItem(made, key, stack_value(w, from_top)))
            Py_CLEAR(made);
    }
    return made && shadow ? stack_result(c, w, slots, made, shadow) : no_memory_at(c);
}

/* A slice of the COUNT bounds on top: a new reference. NULL: they are not known, or no memory. */
static PyObject *slice_of(struct capture *c, const struct watched *w, int count, struct shadow **of)
{
    OWNED PyObject *bounds = tuple_of(c, w, count, of);

    for (int i = 0; bounds && i < count; i++)
        if (!(*of)->items[i])
            return break_at(c, "value", "a slice whose bounds are not known"), NULL;
    if (!bounds || (count < 3 && shadow_add(c, *of, NULL, shadow_const(c, Py_None))))
        return no_memory_at(c), NULL;
    (*of)->kind = SHADOW_SLICE;
    return PySlice_New(PyTuple_GET_ITEM(bounds, 0), PyTuple_GET_ITEM(bounds, 1),
                       count > 2 ? PyTuple_GET_ITEM(bounds, 2) : NULL);
}

/* The COUNT values on top, which are known, become a set or a text. */
static enum ended build_known(struct capture *c, struct watched *w, int count, bool set)
{
    struct shadow *of, *made = NULL;
    OWNED PyObject *parts = tuple_of(c, w, count, &of), *empty = PyUnicode_FromString("");

    if (!parts || !empty)
        return no_memory_at(c);
    if (!are_known(c, &(struct call){.args = &parts, .shadows = &of, .count = 1}, true) ||
        (set && !(made = made_by(c, shadow_const(c, (PyObject *)&PySet_Type), 1, &of))))
        return break_at(c, "container", "a %s of what is not known", set ? "set" : "text");
    return set ? stack_result(c, w, count, PySet_New(parts), made)
               : known_result(c, w, count, PyUnicode_Join(empty, parts));
}

/* ---- moved ----
 *
 * What moves the items of lists, tuples and dicts without looking at them is done once more, with
 * capsules of the items' shadows in their place. What that makes says where each has gone. */

/* VALUE as WHAT says: e: such a capsule; s: a list, tuple or dict of such; k: itself, which is
 * known. A new reference; NULL: it is not that. */
static PyObject *mirror_of(struct capture *c, PyObject *value, struct shadow *of, char what)
{
    const bool dict = PyDict_CheckExact(value);
    struct shadow *seen = dict && what == 's' ? dict_shadow(c, value, of) : of;
    PyObject *made;

    if (!seen || what != 's')
        return !seen                                                ? NULL
               : what == 'e'                                        ? PyCapsule_New(of, NULL, NULL)
               : value_is_plain(value) && value_known(c, value, of) ? Py_NewRef(value)
                                                                    : NULL;
    made = is_graph(value, of)                                    ? NULL
           : dict                                                 ? PyDict_New()
           : is_sequence(value) && value_type_known(c, value, of) ? PyList_New(0)
                                                                  : NULL;
    for (Py_ssize_t i = 0; made && i < (dict ? seen->count : PySequence_Fast_GET_SIZE(value));
         i++) {
        OWNED PyObject *capsule =
            mirror_of(c, value, dict ? seen->items[i] : value_item(c, value, of, i), 'e');
        if (!capsule ||
            (dict ? PyDict_SetItem(made, seen->keys[i], capsule) : PyList_Append(made, capsule)))
            Py_CLEAR(made);
    }
    if (made && PyTuple_CheckExact(value))
        Py_SETREF(made, PyList_AsTuple(made));
    return made;
}

static struct shadow *mirror_shadow(struct capture *c, PyObject *mirror);

/* OF has the items, and the keys, of MIRROR. */
static void mirror_take(struct capture *c, struct shadow *of, PyObject *mirror)
{
    const bool dict = PyDict_CheckExact(mirror);
    PyObject *key = NULL, *item;
    Py_ssize_t at = 0;

    of->count = 0;
    while (dict ? PyDict_Next(mirror, &at, &key, &item) : at < PySequence_Fast_GET_SIZE(mirror)) {
        if (!dict)
            item = PySequence_Fast_GET_ITEM(mirror, at++);
        shadow_add(c, of, key, mirror_shadow(c, item));
    }
}

/* What is made of MIRROR's items: its shadow. */
static struct shadow *mirror_shadow(struct capture *c, PyObject *mirror)
{
    struct shadow *made;

    if (PyCapsule_CheckExact(mirror))
        return PyCapsule_GetPointer(mirror, NULL);
    if (!is_sequence(mirror) && !PyDict_CheckExact(mirror))
        return shadow_const(c, mirror);
    made = shadow_new(c,
                      PyList_CheckExact(mirror)   ? SHADOW_LIST
                      : PyDict_CheckExact(mirror) ? SHADOW_DICT
                                                  : SHADOW_TUPLE,
                      0);
    if (made)
        mirror_take(c, made, mirror);
    return made;
}

enum ended mirror_iterator(struct capture *c, struct watched *w, const struct call *call)
{
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0;
    struct shadow *made = iterator_shadow(c, ITERATES_MIRROR, NULL, NULL);
    PyObject *args[8] = {NULL}, *mirror = NULL;
    int i = 0;

    for (; i < call->count && i < 8; i++) {
        PyObject *value = call->args[i];
        struct shadow *of = call->shadows[i];
        const bool keyword = i >= call->count - named,
                   items = !keyword && (is_sequence(value) || PyDict_CheckExact(value));
        if (of && of->kind == SHADOW_ITERATOR && of->iterator.how == ITERATES_MIRROR &&
            of->iterator.at == of->iterator.mirrored->iterator.at)
            args[i] = Py_NewRef(of->iterator.mirror);
        else if (items ? of && shadow_change(c, of)
                       : keyword || value_is_simple(value)) /* keyword: fillvalue, an item */
            args[i] = mirror_of(c, value, of, items ? 's' : value_is_simple(value) ? 'k' : 'e');
        if (!args[i])
            break;
        if (made && items) { /* what was mirrored is to stay until that has come to its end */
            of->mirrors++;
            shadow_add(c, made, NULL, of);
        }
    }
    if (made && i == call->count && (made->iterator.mirrored = shadow_new(c, SHADOW_ITERATOR, 0)))
        mirror = PyObject_Vectorcall(call->callable, args, (size_t)(i - named), call->names);
    if (mirror)
        made->iterator.mirror = capture_keep(c, mirror);
    Py_XDECREF(mirror);
    for (i = 0; i < 8; i++)
        Py_XDECREF(args[i]);
    PyErr_Clear();
    return mirror && !c->failed ? stack_result(c, w, call->slots, run_call(call), made)
                                : ENDED_BEFORE;
}

struct shadow *mirror_next(struct capture *c, struct shadow *of)
{
    OWNED PyObject *item = of->iterator.at++ == of->iterator.mirrored->iterator.at++
                               ? Py_TYPE(of->iterator.mirror)->tp_iternext(of->iterator.mirror)
                               : NULL;

    PyErr_Clear();
    return item ? mirror_shadow(c, item) : NULL;
}

/* VALUE is a view of the dict of OF, which must not change any more: iterate() knows what it gives.
 * MIRROR: that of its mirror. */
static struct shadow *view_shadow(struct capture *c, struct shadow *of, PyObject *mirror,
                                  PyObject *value)
{
    OWNED PyObject *shadows = PySequence_Tuple(mirror), *values = PySequence_Tuple(value);

    PyErr_Clear();
    if (!shadows || !values || !shadow_change(c, of))
        return NULL;
    of->frozen = true;
    return iterator_shadow(c, ITERATES_ITEMS, values, mirror_shadow(c, shadows));
}

/* What NAME, a function of operator's or a method, takes besides SELF: as `moves` in
 * dyntrace._polyfills says. NULL: it does more than move items. */
static const char *takes_of(const char *name, PyObject *self)
{
    const char *kind = PyList_CheckExact(self)    ? "list"
                       : PyTuple_CheckExact(self) ? "tuple"
                       : PyDict_CheckExact(self)  ? "dict"
                                                  : NULL;
    PyObject *known = kind ? PyDict_GetItemString(polyfill("moves"), kind) : NULL,
             *takes = known ? PyDict_GetItemString(known, name) : NULL;

    return takes ? PyUnicode_AsUTF8(takes) : NULL;
}

/* May any item of CONTAINER, a list or dict, go? */
static bool all_go(struct capture *c, PyObject *container, struct shadow *of)
{
    if (PyObject_Size(container) != of->count)
        return false;
    for (Py_ssize_t i = 0; i < of->count; i++)
        if (!lets_go(c,
                     PyList_Check(container) ? PyList_GET_ITEM(container, i)
                                             : PyDict_GetItemWithError(container, of->keys[i]),
                     of->items[i]))
            return false;
    return true;
}

/* VALUE is appended to LIST, without looking through that. False: it must not be, or no memory. */
static bool append(struct capture *c, PyObject *list, struct shadow *of, PyObject *value,
                   struct shadow *of_value)
{
    if (!may_change(c, of, SHADOW_LIST) || PyList_GET_SIZE(list) != of->count || value == list ||
        (of->origin && !of_value) ||
        !change(c, of, shadow_const(c, _PyType_Lookup(&PyList_Type, word_of("append"))), NULL, NULL,
                2, (struct shadow *const[]){of, of_value}))
        return false;
    return (!shadow_add(c, of, NULL, of_value) && !PyList_Append(list, value)) ||
           no_memory_at(c) == ENDED_NOT;
}

enum ended move(struct capture *c, struct watched *w, const char *name, const struct call *call)
{
    PyObject *self = call->args[0], *mirrors[8] = {NULL}, *value;
    struct shadow *of = call->shadows[0], *shadow = NULL;
    const int named = call->names ? (int)PyTuple_GET_SIZE(call->names) : 0,
              positional = call->count - named;
    const char *takes = takes_of(name, self);
    const bool changes = takes && takes[0] != '=';
    OWNED PyObject *given = NULL;
    bool does = false;
    int i = 0;

    c->kind = NULL;
    if (!takes || !of || call->count > 8 || positional > (int)strlen(takes) ||
        (named && takes[1] != 's'))
        return ENDED_BEFORE;
    if (!strcmp(name, "append") && call->count == 2 &&
        append(c, self, of, call->args[1], call->shadows[1]))
        return stack_result(c, w, call->slots, Py_NewRef(Py_None), shadow_const(c, Py_None));
    if (changes && (!may_change(c, of, PyList_CheckExact(self) ? SHADOW_LIST : SHADOW_DICT) ||
                    (of->origin && (named || (takes[0] == '-' && !all_go(c, self, of))))))
        return not_ours(c, self);
    for (; i < call->count; i++) {
        const char what = !i ? 's' : i < positional ? takes[i] : 'e';
        if ((what == 'e' && call->args[i] == self) ||
            !(mirrors[i] = mirror_of(c, call->args[i], call->shadows[i], what)))
            break;
    }
    if (i == call->count) {
        given = PyObject_Vectorcall(call->callable, mirrors, (size_t)positional, call->names);
        does =
            !given || !changes ||
            change(c, of, shadow_const(c, call->callable), NULL, NULL, call->count, call->shadows);
    }
    PyErr_Clear();
    value = does ? run_call(call) : NULL; /* it raises if that did */
    if (given && value && changes)
        mirror_take(c, of, mirrors[0]);
    if (given && value)
        shadow = given == mirrors[0] ? of
                 : PyDictViewSet_Check(given) || PyDictValues_Check(given)
                     ? view_shadow(c, of, given, value)
                     : mirror_shadow(c, given);
    for (i = 0; i < 8; i++)
        Py_XDECREF(mirrors[i]);
    return does ? stack_result(c, w, call->slots, value, shadow) : ENDED_BEFORE;
}

/* ---- changed ---- */

static enum ended set_item(struct capture *c, struct watched *w, const struct call *call);
static enum ended subscript(struct capture *c, struct watched *w, int op);

/* What is on top, or all that is in it, is put into what is BELOW, by its METHOD. */
static enum ended put_all(struct capture *c, struct watched *w, int below, const char *method)
{
    struct operands operands = {{stack_value(w, below), stack_value(w, 0)},
                                {stack_shadow(w, below), stack_shadow(w, 0)}};
    struct call call = operator_call(method, 1, 2, &operands);
    PyObject *from = operands.values[1];
    struct shadow *of;
    enum ended ended;

    call.callable = _PyType_Lookup(Py_TYPE(operands.values[0]), word_of(method));
    if (w->op == DICT_MERGE && PyDict_CheckExact(from) &&
        (of = dict_shadow(c, from, operands.of[1])))
        for (Py_ssize_t i = 0; i < of->count; i++)
            if (PyDict_Contains(operands.values[0], of->keys[i])) /* of keywords, that raises */
                return break_at(c, "container", "a key of a dict is taken twice");
    /* dict.update() takes pairs as well */
    if (PyDict_CheckExact(operands.values[0]) && !PyDict_CheckExact(from))
        return break_at(c, "container", "items of a %.200s are taken", Py_TYPE(from)->tp_name);
    ended = call_method(c, w, &call, method);
    if (ended == ENDED_NOT || ended == ENDED_BEHIND)
        stack_drop(w, 1);
    return ended == ENDED_BEFORE && !c->kind ? not_ours(c, operands.values[0]) : ended;
}

enum ended build(struct capture *c, struct watched *w, struct compat_action action)
{
    struct operands operands;
    const int count = (int)action.arg;
    struct shadow *of;
    PyObject *made;
    struct call call;
    enum ended ended;

    switch (action.op) {
    case BUILD_TUPLE:
    case BUILD_LIST:
        return build_sequence(c, w, count, action.op == BUILD_LIST);
    case BUILD_MAP:
        return build_dict(c, w, count, action.flag);
    case BUILD_SLICE:
        made = slice_of(c, w, count, &of);
        return made ? stack_result(c, w, count, made, of) : ENDED_BEFORE;
    case BUILD_SET:
    case BUILD_STRING:
        return build_known(c, w, count, action.op == BUILD_SET);
    case SET_ADD:
        return put_all(c, w, count, action.flag ? "update" : "add");
    case LIST_APPEND:
        return put_all(c, w, count, "append");
    case LIST_EXTEND:
        return put_all(c, w, count, "extend");
    case MAP_ADD:
        operands =
            (struct operands){{stack_value(w, count + 1), stack_value(w, 1), stack_value(w, 0)},
                              {stack_shadow(w, count + 1), stack_shadow(w, 1), stack_shadow(w, 0)}};
        call = operator_call("setitem", 3, 3, &operands);
        return set_item(c, w, &call);
    case DICT_UPDATE:
        return put_all(c, w, count, "update");
    case LIST_TO_TUPLE:
        operands = (struct operands){{stack_value(w, 0)}, {stack_shadow(w, 0)}};
        call = operator_call("tuple", 1, 1, &operands);
        ended = move(c, w, "tuple", &call);
        return ended == ENDED_BEFORE && !c->kind
                   ? break_at(c, "container", "a tuple is made of a list that is not known")
                   : ended;
    case BINARY_SUBSCR:
    case BINARY_SLICE:
    case STORE_SUBSCR:
    case STORE_SLICE:
    case DELETE_SUBSCR:
        return subscript(c, w, action.op);
    default:
        return break_at(c, "instruction", "an instruction that is not followed");
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
    return is_plain_slice(key) || key == Py_None || key == Py_Ellipsis || PyLong_CheckExact(key);
}

static enum ended get_item(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1], *value;
    struct shadow *of = call->shadows[0], *shadow = NULL;
    const bool number = PyLong_CheckExact(key),
               shape = of && of->kind == SHADOW_SOURCE && of->source.varies == VARIES_SHAPE;
    const bool at =
        number && (shape || (is_sequence(container) && value_type_known(c, container, of)));
    Py_ssize_t i;

    if (!of || !value_known(c, key, call->shadows[1]))
        return break_at(c, "value", "an item of a %.200s that is not known",
                        Py_TYPE(container)->tp_name);
    if (!at && !(PyDict_CheckExact(container)
                     ? (number || PyUnicode_CheckExact(key)) &&
                           (of->source.changed || value_type_known(c, container, of))
                     : (value_is_simple(container) || PyTuple_Check(container)) &&
                           value_known(c, container, of)))
        return break_at(c, "container", "an item of a %.200s", Py_TYPE(container)->tp_name);
    if (!(value = run_call(call)))
        return ENDED_RAISED;
    i = at ? PyNumber_AsSsize_t(key, NULL) : 0;
    if (at)
        shadow = value_item(c, container, of, i < 0 ? i + PySequence_Fast_GET_SIZE(container) : i);
    else if (PyDict_CheckExact(container))
        shadow = value_part(c, container, of, key, value);
    else if (value_is_simple(value) || PyTuple_Check(value))
        shadow = shadow_const(c, value);
    if (shadow)
        return stack_result(c, w, call->slots, value, shadow);
    Py_DECREF(value);
    return break_at(c, "container", "an item of a %.200s", Py_TYPE(container)->tp_name);
}

/* All but one of CALL's values go. */
static enum ended set_item(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1], *value = call->args[2], *old = NULL;
    struct shadow *of = call->shadows[0], *of_value = call->shadows[2], **place = NULL;
    const bool list = PyList_CheckExact(container);
    Py_ssize_t i = 0;

    if (!of || !of_value || !is_key(c, key, call->shadows[1]) || (list && !PyLong_CheckExact(key)))
        return break_at(
            c, "container",
            "an item is set that is not known, or whose key is no word or number that is known");
    if (PyDict_CheckExact(container) && of->kind == SHADOW_SOURCE &&
        (of->source.changed || value_type_known(c, container, of)))
        return set_in_dict(c, w, call->slots - 1, of, key, value, of_value);
    if (value == container || !may_change(c, of, list ? SHADOW_LIST : SHADOW_DICT) ||
        PyObject_Size(container) != of->count)
        return not_ours(c, container);
    if (list) {
        i = PyNumber_AsSsize_t(key, NULL);
        i += i < 0 ? of->count : 0;
        place = i >= 0 && i < of->count ? &of->items[i] : NULL;
        old = place ? PyList_GET_ITEM(container, i) : NULL;
    } else if ((place = object_place(of, key))) {
        old = PyDict_GetItemWithError(container, key);
    }
    if ((list && !place) ||
        !change_item(c, of, call->shadows[1], of_value, old, place ? *place : NULL))
        return not_ours(c, container);
    if (place)
        *place = of_value;
    else
        shadow_add(c, of, key, of_value);
    if (PyObject_SetItem(container, key, value))
        return no_memory_at(c);
    stack_drop(w, call->slots - 1);
    return ENDED_NOT;
}

static enum ended subscript(struct capture *c, struct watched *w, int op)
{
    const bool sets = op == STORE_SUBSCR || op == STORE_SLICE, deletes = op == DELETE_SUBSCR;
    const bool sliced = op == BINARY_SLICE || op == STORE_SLICE;
    /* VALUE, CONTAINER, KEY or its two bounds */
    const int at = sliced ? 2 : 1, slots = at + 1 + sets;
    const char *name = deletes ? "delitem" : sets ? "setitem" : "getitem";
    struct operands operands = {
        {stack_value(w, at), stack_value(w, 0), sets ? stack_value(w, at + 1) : NULL},
        {stack_shadow(w, at), stack_shadow(w, 0), sets ? stack_shadow(w, at + 1) : NULL}};
    OWNED PyObject *slice = sliced ? slice_of(c, w, 2, &operands.of[1]) : NULL;
    PyObject *container = operands.values[0],
             *key = sliced ? operands.values[1] = slice : operands.values[1];
    const struct call call = operator_call(name, slots, 2 + sets, &operands);
    enum ended ended;

    if (!key)
        return ENDED_BEFORE;
    if (!deletes &&
        (is_graph(container, operands.of[0]) || (!sets && is_graph(key, operands.of[1]))))
        ended = operate_graph(c, w, name, &call,
                              !sets && is_plain_key(key) && value_is_array(container));
    else if ((ended = operate_special(c, w, name, &call)) == ENDED_BEFORE && !c->kind &&
             (deletes || (PySlice_Check(key) && (sets || is_sequence(container)))))
        ended = move(c, w, name, &call);
    if (ended == ENDED_BEFORE && !c->kind)
        ended = deletes ? not_ours(c, container)
                : sets  ? set_item(c, w, &call)
                        : get_item(c, w, &call);
    if ((sets || deletes) && (ended == ENDED_NOT || ended == ENDED_BEHIND))
        stack_drop(w, 1);
    return ended;
}

/* ---- methods of containers ---- */

enum ended set_call(struct capture *c, struct watched *w, const struct call *call)
{
    const Py_ssize_t size = is_set(call->args[0], call->shadows[0]) && !call->names && !c->foreign
                                ? PySet_GET_SIZE(call->args[0])
                                : -1;
    PyObject *result;
    struct shadow *made;
    bool asks;

    for (int i = 1; size >= 0 && i < call->count; i++)
        if (!is_set(call->args[i], call->shadows[i]) &&
            !are_known(
                c, &(struct call){.args = call->args + i, .shadows = call->shadows + i, .count = 1},
                true))
            return ENDED_BEFORE;
    if (size < 0 || !(result = run_call(call)))
        return size < 0 ? ENDED_BEFORE : ENDED_RAISED;
    /* and does nothing else */
    asks = PyBool_Check(result) && PySet_GET_SIZE(call->args[0]) == size;
    made = asks ? NULL : made_by(c, shadow_const(c, call->callable), call->count, call->shadows);
    c->failed |= !asks && !made;
    if (!PyAnySet_CheckExact(result))
        return known_result(c, w, call->slots, result);
    return stack_result(c, w, call->slots, result,
                        result == call->args[0] ? call->shadows[0] : made);
}

enum ended call_method(struct capture *c, struct watched *w, const struct call *call,
                       const char *name)
{
    struct shadow *of = call->shadows[0];
    enum ended ended;

    c->kind = NULL;
    if (PyAnySet_CheckExact(call->args[0]))
        return set_call(c, w, call);
    if (!strcmp(name, "get") && of && of->kind == SHADOW_SOURCE && !call->names &&
        call->count > 1 && call->count < 4 && PyUnicode_CheckExact(call->args[1]))
        return step_polyfill(c, w, "_get", call);
    ended = move(c, w, name, call);
    return ended == ENDED_BEFORE && !c->kind && !strcmp(name, "extend") && call->count == 2
               ? step_polyfill(c, w, "_extend", call)
               : ended;
}

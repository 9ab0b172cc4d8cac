/* capture/src/build.c -- build, read and change containers. See capture.h.
 *
 * If the captured function builds a container, the container's shadow holds the shadows of the
 * items. Each change of the container changes its shadow in the same way. */
#include "capture.h"

enum {
    /* capture reads most keys of a dict that existed before the watched call */
    MOST_KEYS = 1000,
    /* the most arguments of a call that capture runs a second time, on mirrors of the arguments */
    MOST_MIRRORED = 8,
};

/* ---- building ---- */

/* Make a tuple of the COUNT values on top of the value stack: a new reference. Sets *OF to the
 * tuple's shadow. Returns NULL if there is no memory. */
static PyObject *make_tuple_of_top(struct capture *c, const struct watched *w, int count,
                                   struct shadow **of)
{
    PyObject *made = PyTuple_New(count);

    *of = shadow_new(c, SHADOW_TUPLE, count);
    if (!made || !*of) {
        Py_XDECREF(made);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        const int from_top = count - 1 - i;

        PyTuple_SET_ITEM(made, i, Py_NewRef(stack_value(w, from_top)));
        shadow_add(c, *of, NULL, stack_shadow(w, from_top));
    }
    return made;
}

static enum ended build_sequence(struct capture *c, struct watched *w, int count, bool list)
{
    struct shadow *of;
    PyObject *made = make_tuple_of_top(c, w, count, &of);

    if (made && list) {
        of->kind = SHADOW_LIST;
        Py_SETREF(made, PySequence_List(made));
    }
    return made ? stack_replace(c, w, count, made, of) : break_at_no_memory(c);
}

/* Return a tuple of the keys of DICT, in order. Returns NULL if the watched call made DICT, or if
 * it has more than MOST_KEYS keys. */
static PyObject *copy_keys_of_read_dict(struct capture *c, PyObject *dict, struct shadow *of)
{
    if (!is_source(of) || c->foreign || of->source.changed)
        return NULL;
    if (PyDict_GET_SIZE(dict) > MOST_KEYS || !ensure_type_known(c, dict, of))
        return NULL;
    return PySequence_Tuple(dict);
}

struct shadow *find_dict_shadow(struct capture *c, PyObject *dict, struct shadow *of)
{
    OWNED PyObject *keys = NULL;
    struct shadow *made = NULL;

    if (is_kind(of, SHADOW_DICT))
        return PyDict_GET_SIZE(dict) == of->count ? of : NULL;
    keys = copy_keys_of_read_dict(c, dict, of);
    if (keys)
        made = shadow_new(c, SHADOW_DICT, 0);
    if (!made) {
        PyErr_Clear();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        PyObject *key = PyTuple_GET_ITEM(keys, i);
        PyObject *value = NULL;
        struct shadow *item = NULL;

        if (PyUnicode_CheckExact(key))
            value = PyDict_GetItemWithError(dict, key);
        if (value)
            item = source_read(c, of, '[', key, value);
        if (!item || shadow_add(c, made, key, item))
            return NULL;
    }
    if (!of->source.listed && guard_add(c, of, "DICT_ORDER", keys))
        return NULL;
    of->source.listed = true;
    return made;
}

/* Can capture record the items of a dict that gets the key KEY? Only if KEY is a string, an integer
 * or a tuple of simple values. A key of another type may be equal to one of these, as True is equal
 * to 1, and would be mistaken for a different key. */
static bool can_be_key(struct capture *c, PyObject *key, struct shadow *shadow)
{
    const bool is_tuple = PyTuple_Check(key) && value_is_plain(key);

    if (!is_tuple && !PyUnicode_CheckExact(key) && !PyLong_CheckExact(key))
        return false;
    return ensure_value_known(c, key, shadow);
}

/* Set an item of DICT, which the function is building, and of its shadow. Returns -1 if there is no
 * memory. */
static int set_new_dict_item(struct capture *c, PyObject *dict, struct shadow *of, PyObject *key,
                             PyObject *value, struct shadow *of_value)
{
    struct shadow **place = object_find_place(of, key);

    if (place)
        *place = of_value;
    else
        shadow_add(c, of, key, of_value);
    return PyDict_SetItem(dict, key, value);
}

/* Build a dict of COUNT items. KEYED: the keys are in a tuple on top of the stack. */
static enum ended build_dict(struct capture *c, struct watched *w, int count, bool keyed)
{
    const int slots = keyed ? count + 1 : 2 * count;
    struct shadow *shadow = shadow_new(c, SHADOW_DICT, 0);
    OWNED PyObject *made = PyDict_New();

    if (!made || !shadow)
        return break_at_no_memory(c);
    for (int i = 0; i < count; i++) {
        const int from_top = slots - 1 - (keyed ? i : 2 * i + 1);
        const int key_from_top = keyed ? 0 : from_top + 1;
        PyObject *key = stack_value(w, key_from_top);
        PyObject *value = stack_value(w, from_top);

        if (keyed)
            key = PyTuple_GET_ITEM(key, i);
        if (!can_be_key(c, key, stack_shadow(w, key_from_top)))
            return break_graph(c, "container",
                               "a dict whose keys are not words or numbers that are known");
        if (set_new_dict_item(c, made, shadow, key, value, stack_shadow(w, from_top)))
            return break_at_no_memory(c);
    }
    return stack_replace(c, w, slots, Py_NewRef(made), shadow);
}

/* Make a slice of the top COUNT values: a new reference. Returns NULL if a bound is unknown, or
 * there is no memory. */
static PyObject *make_slice_of_top(struct capture *c, const struct watched *w, int count,
                                   struct shadow **of)
{
    OWNED PyObject *bounds = make_tuple_of_top(c, w, count, of);
    PyObject *step = NULL;

    for (int i = 0; bounds && i < count; i++)
        if (!(*of)->items[i]) {
            break_graph(c, "value", "a slice whose bounds are not known");
            return NULL;
        }
    if (!bounds || (count < 3 && shadow_add(c, *of, NULL, shadow_new_const(c, Py_None)))) {
        break_at_no_memory(c);
        return NULL;
    }
    (*of)->kind = SHADOW_SLICE;
    if (count > 2)
        step = PyTuple_GET_ITEM(bounds, 2);
    return PySlice_New(PyTuple_GET_ITEM(bounds, 0), PyTuple_GET_ITEM(bounds, 1), step);
}

/* Replace the top COUNT values of the stack by one value: with SET by a set of these values,
 * otherwise by the string that joins them (an f-string). */
static enum ended build_set_or_string(struct capture *c, struct watched *w, int count, bool set)
{
    struct shadow *of, *made;
    OWNED PyObject *parts = make_tuple_of_top(c, w, count, &of);
    OWNED PyObject *empty = PyUnicode_FromString("");
    const struct call call = {.args = &parts, .shadows = &of, .count = 1};

    if (!parts || !empty)
        return break_at_no_memory(c);
    if (!ensure_arguments_known(c, &call, true))
        return break_graph(c, "container", "a %s of what is not known", set ? "set" : "text");
    if (!set)
        return stack_replace_known(c, w, count, PyUnicode_Join(empty, parts));
    made = add_creation_effect(c, shadow_new_const(c, (PyObject *)&PySet_Type), 1, &of);
    if (!made)
        return break_graph(c, "container", "a set of what is not known");
    return stack_replace(c, w, count, PySet_New(parts), made);
}

/* ---- operations that only move items ----
 *
 * Some operations only move the items of lists, tuples and dicts, for example list.reverse(). To
 * learn where each item goes, such an operation is run a second time on *mirrors*: containers of
 * the same form that hold, for each item, a capsule with the item's shadow. */

static PyObject *make_item_mirror(struct shadow *of)
{
    return of ? PyCapsule_New(of, NULL, NULL) : NULL;
}

/* Append a mirror of each item of VALUE to the list MADE, which is empty. Returns false if an item
 * is unknown. */
static bool mirror_items(struct capture *c, PyObject *made, PyObject *value, struct shadow *of)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        OWNED PyObject *capsule = make_item_mirror(get_item_shadow_at(c, value, of, i));

        if (!capsule || PyList_Append(made, capsule))
            return false;
    }
    return true;
}

/* Fill the empty dict MADE with a mirror of each item of the dict that has the shadow OF_DICT.
 * Returns false if an item is unknown. */
static bool mirror_dict_items(PyObject *made, const struct shadow *of_dict)
{
    for (Py_ssize_t i = 0; i < of_dict->count; i++) {
        OWNED PyObject *capsule = make_item_mirror(of_dict->items[i]);

        if (!capsule || PyDict_SetItem(made, of_dict->keys[i], capsule))
            return false;
    }
    return true;
}

static PyObject *make_dict_mirror(struct capture *c, PyObject *dict, struct shadow *of)
{
    struct shadow *of_dict = find_dict_shadow(c, dict, of);
    PyObject *made = of_dict && !is_graph_value(dict, of) ? PyDict_New() : NULL;

    if (made && !mirror_dict_items(made, of_dict))
        Py_CLEAR(made);
    return made;
}

static PyObject *make_sequence_mirror(struct capture *c, PyObject *value, struct shadow *of)
{
    PyObject *made;

    if (!of || is_graph_value(value, of) || !is_sequence(value) || !ensure_type_known(c, value, of))
        return NULL;
    made = PyList_New(0);
    if (made && !mirror_items(c, made, value, of))
        Py_CLEAR(made);
    if (made && PyTuple_CheckExact(value))
        Py_SETREF(made, PyList_AsTuple(made));
    return made;
}

/* Make a mirror of VALUE, an argument of an operation that moves items. WHAT is a letter from the
 * table `moves` of dyntrace._polyfills:
 * 'e' an item: a capsule that holds VALUE's shadow;
 * 's' a list, tuple or dict: a container of such capsules;
 * 'k' a known value: VALUE itself, with guards.
 * Returns a new reference; NULL if VALUE does not fit WHAT. */
static PyObject *make_mirror_of(struct capture *c, PyObject *value, struct shadow *of, char what)
{
    switch (what) {
    case 's':
        if (PyDict_CheckExact(value))
            return make_dict_mirror(c, value, of);
        return make_sequence_mirror(c, value, of);
    case 'e':
        return make_item_mirror(of);
    default:
        if (!of || !value_is_plain(value) || !ensure_value_known(c, value, of))
            return NULL;
        return Py_NewRef(value);
    }
}

static struct shadow *make_shadow_from_mirror(struct capture *c, PyObject *mirror);

/* Replace the items and keys of shadow OF by the shadows and keys that MIRROR holds. */
static void copy_items_from_mirror(struct capture *c, struct shadow *of, PyObject *mirror)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;

    of->count = 0;
    if (PyDict_CheckExact(mirror)) {
        while (PyDict_Next(mirror, &at, &key, &item))
            shadow_add(c, of, key, make_shadow_from_mirror(c, item));
        return;
    }
    for (; at < PySequence_Fast_GET_SIZE(mirror); at++)
        shadow_add(c, of, NULL, make_shadow_from_mirror(c, PySequence_Fast_GET_ITEM(mirror, at)));
}

/* Make the shadow of a value from the mirror of this value. */
static struct shadow *make_shadow_from_mirror(struct capture *c, PyObject *mirror)
{
    enum shadow_kind kind;
    struct shadow *made;

    if (PyCapsule_CheckExact(mirror))
        return PyCapsule_GetPointer(mirror, NULL);
    if (PyList_CheckExact(mirror))
        kind = SHADOW_LIST;
    else if (PyDict_CheckExact(mirror))
        kind = SHADOW_DICT;
    else if (PyTuple_CheckExact(mirror))
        kind = SHADOW_TUPLE;
    else
        return shadow_new_const(c, mirror);
    made = shadow_new(c, kind, 0);
    if (made)
        copy_items_from_mirror(c, made, mirror);
    return made;
}

/* Is OF the shadow of an iterator with a mirror, and have both given the same number of items? */
static bool has_iterator_mirror(const struct shadow *of)
{
    if (!is_kind(of, SHADOW_ITERATOR) || of->iterator.how != ITERATES_MIRROR)
        return false;
    return of->iterator.at == of->iterator.mirrored->iterator.at;
}

/* Make a mirror of VALUE, an argument for the iterator whose mirror is MADE: a new reference, or
 * NULL. KEYWORD: VALUE is the keyword argument fillvalue, which is a single item. */
static PyObject *make_argument_mirror(struct capture *c, PyObject *value, struct shadow *of,
                                      bool keyword, struct shadow *made)
{
    PyObject *mirror;

    if (has_iterator_mirror(of))
        return Py_NewRef(of->iterator.mirror);
    if (keyword || !(is_sequence(value) || PyDict_CheckExact(value))) {
        if (value_is_simple(value))
            return make_mirror_of(c, value, of, 'k');
        return keyword ? make_mirror_of(c, value, of, 'e') : NULL;
    }
    if (!of || !shadow_save_for_undo(c, of))
        return NULL;
    mirror = make_mirror_of(c, value, of, 's');
    if (mirror) { /* forbid changes of the container until the iterator has ended */
        of->mirrors++;
        shadow_add(c, made, NULL, of);
    }
    return mirror;
}

/* Call the class of itertools with mirrors of CALL's arguments. Returns a new reference: the mirror
 * of the iterator that CALL makes. Returns NULL if this is impossible. */
static PyObject *make_iterator_mirror(struct capture *c, const struct call *call,
                                      struct shadow *made)
{
    const int positional = call->count - count_names(call);
    PyObject *args[MOST_MIRRORED] = {NULL};
    PyObject *mirror = NULL;
    int i = 0;

    if (call->count > MOST_MIRRORED)
        return NULL;
    for (; i < call->count; i++) {
        args[i] = make_argument_mirror(c, call->args[i], call->shadows[i], i >= positional, made);
        if (!args[i])
            break;
    }
    if (i == call->count)
        mirror = PyObject_Vectorcall(call->callable, args, (size_t)positional, call->names);
    for (i = 0; i < MOST_MIRRORED; i++)
        Py_XDECREF(args[i]);
    PyErr_Clear();
    return mirror;
}

enum ended call_itertools_class(struct capture *c, struct watched *w, const struct call *call)
{
    struct shadow *made = make_iterator_shadow(c, ITERATES_MIRROR, NULL, NULL);
    OWNED PyObject *mirror = NULL;

    if (!made)
        return ENDED_BEFORE;
    made->iterator.mirrored = shadow_new(c, SHADOW_ITERATOR, 0);
    if (made->iterator.mirrored)
        mirror = make_iterator_mirror(c, call, made);
    made->iterator.mirror = capture_keep(c, mirror);
    if (!mirror || c->failed)
        return ENDED_BEFORE;
    return stack_replace(c, w, call->slots, run_call(call), made);
}

struct shadow *advance_mirror(struct capture *c, struct shadow *of)
{
    PyObject *mirror = of->iterator.mirror;
    const bool is_in_step = of->iterator.at == of->iterator.mirrored->iterator.at;
    OWNED PyObject *item = NULL;

    of->iterator.at++;
    of->iterator.mirrored->iterator.at++;
    if (is_in_step)
        item = Py_TYPE(mirror)->tp_iternext(mirror);
    PyErr_Clear();
    return item ? make_shadow_from_mirror(c, item) : NULL;
}

/* Make the shadow of VALUE, a view of a dict such as d.items(). OF is the shadow of the dict.
 * MIRROR is the same view of the dict's mirror. Forbids later changes of the dict. */
static struct shadow *make_view_shadow(struct capture *c, struct shadow *of, PyObject *mirror,
                                       PyObject *value)
{
    OWNED PyObject *shadows = PySequence_Tuple(mirror);
    OWNED PyObject *values = PySequence_Tuple(value);

    PyErr_Clear();
    if (!shadows || !values || !shadow_save_for_undo(c, of))
        return NULL;
    of->frozen = true;
    return make_iterator_shadow(c, ITERATES_ITEMS, values, make_shadow_from_mirror(c, shadows));
}

/* Look up NAME, a method of SELF or a function of operator, in the table `moves` of
 * dyntrace._polyfills. The entry has a letter for each argument. Returns NULL if NAME does more
 * than move items. */
static const char *find_moves_entry(const char *name, PyObject *self)
{
    PyObject *known, *takes;

    if (PyList_CheckExact(self))
        known = get_table_entry("moves", "list");
    else if (PyTuple_CheckExact(self))
        known = get_table_entry("moves", "tuple");
    else if (PyDict_CheckExact(self))
        known = get_table_entry("moves", "dict");
    else
        return NULL;
    takes = known ? PyDict_GetItemString(known, name) : NULL;
    return takes ? PyUnicode_AsUTF8(takes) : NULL;
}

/* May an effect (a change visible outside the function) release all items of CONTAINER, a list or
 * dict? */
static bool can_release_all(struct capture *c, PyObject *container, struct shadow *of)
{
    if (PyObject_Size(container) != of->count)
        return false;
    for (Py_ssize_t i = 0; i < of->count; i++) {
        PyObject *item;

        if (PyList_Check(container))
            item = PyList_GET_ITEM(container, i);
        else
            item = PyDict_GetItemWithError(container, of->keys[i]);
        if (!can_release(c, item, of->items[i]))
            return false;
    }
    return true;
}

/* Append VALUE to LIST, and OF_VALUE to LIST's shadow. Returns false if this is not allowed. */
static bool append_item(struct capture *c, PyObject *list, struct shadow *of, PyObject *value,
                        struct shadow *of_value)
{
    PyObject *method = _PyType_Lookup(&PyList_Type, intern_word("append"));
    struct shadow *const args[] = {of, of_value};

    if (!may_change_container(c, of, SHADOW_LIST) || PyList_GET_SIZE(list) != of->count ||
        value == list)
        return false;
    if (of->origin && !of_value)
        return false;
    if (!add_change_effect(c, of, shadow_new_const(c, method), NULL, NULL, 2, args))
        return false;
    if (shadow_add(c, of, NULL, of_value) || PyList_Append(list, value)) {
        break_at_no_memory(c);
        return false;
    }
    return true;
}

/* A call that only moves items of containers, and the mirrors of its arguments. */
struct moving {
    const struct call *call;
    const char *takes; /* the call's entry in the table `moves`: a letter for each argument */
    bool changes;      /* the call changes its first argument */
    int positional;    /* number of positional arguments */
    /* owned: the mirror of each argument; NULL if an argument has none */
    PyObject *mirrors[MOST_MIRRORED];
    PyObject *given; /* owned: the result of the call with the mirrors, or NULL */
};

/* Is the call allowed to change its first argument, or does it leave this argument unchanged? */
static bool may_change_first_argument(struct capture *c, const struct moving *moving)
{
    PyObject *self = moving->call->args[0];
    struct shadow *of = moving->call->shadows[0];

    if (!moving->changes)
        return true;
    if (!may_change_container(c, of, PyList_CheckExact(self) ? SHADOW_LIST : SHADOW_DICT))
        return false;
    if (!of->origin)
        return true;
    if (moving->call->names)
        return false;
    return moving->takes[0] != '-' || can_release_all(c, self, of);
}

/* Make a mirror of each argument. Returns false if an argument can have no mirror. */
static bool mirror_arguments(struct capture *c, struct moving *moving)
{
    const struct call *call = moving->call;

    for (int i = 0; i < call->count; i++) {
        char what = 'e';

        if (i < moving->positional)
            what = i ? moving->takes[i] : 's';
        if (what == 'e' && call->args[i] == call->args[0])
            return false;
        moving->mirrors[i] = make_mirror_of(c, call->args[i], call->shadows[i], what);
        if (!moving->mirrors[i])
            return false;
    }
    return true;
}

/* Call the operation with the mirrors, and add the call to the effects. Returns false if this
 * effect is not allowed. Returns true if the call with the mirrors raises, because the call itself
 * will raise, too. */
static bool run_operation_on_mirrors(struct capture *c, struct moving *moving)
{
    const struct call *call = moving->call;

    moving->given = PyObject_Vectorcall(call->callable, moving->mirrors, (size_t)moving->positional,
                                        call->names);
    if (!moving->given || !moving->changes)
        return true;
    return add_change_effect(c, call->shadows[0], shadow_new_const(c, call->callable), NULL, NULL,
                             call->count, call->shadows);
}

/* Move the items of the first argument's shadow in the same way as the call has moved the items of
 * the argument. Returns the shadow of VALUE, the result of the call. */
static struct shadow *move_shadows_like_moved_items(struct capture *c, struct moving *moving,
                                                    PyObject *value)
{
    struct shadow *of = moving->call->shadows[0];
    PyObject *given = moving->given;

    if (moving->changes)
        copy_items_from_mirror(c, of, moving->mirrors[0]);
    if (given == moving->mirrors[0])
        return of;
    if (PyDictViewSet_Check(given) || PyDictValues_Check(given))
        return make_view_shadow(c, of, given, value);
    return make_shadow_from_mirror(c, given);
}

static void release_mirrors(struct moving *moving)
{
    Py_XDECREF(moving->given);
    for (int i = 0; i < MOST_MIRRORED; i++)
        Py_XDECREF(moving->mirrors[i]);
}

static enum ended execute_moving_operation(struct capture *c, struct watched *w,
                                           struct moving *moving)
{
    const struct call *call = moving->call;
    struct shadow *shadow = NULL;
    bool may_do;
    PyObject *value;

    if (!may_change_first_argument(c, moving))
        return break_at_mutation(c, call->args[0]);
    may_do = mirror_arguments(c, moving) && run_operation_on_mirrors(c, moving);
    PyErr_Clear();
    if (!may_do)
        return ENDED_BEFORE;
    value = run_call(call);
    if (moving->given && value)
        shadow = move_shadows_like_moved_items(c, moving, value);
    return stack_replace(c, w, call->slots, value, shadow);
}

/* Do the arguments fit TAKES, an entry of the table `moves`? Keyword arguments fit if the entry has
 * an 's' after its first character: they are items for dict.update(). */
static bool do_arguments_fit_moves_entry(const struct call *call, const char *takes)
{
    const int named = count_names(call);

    if (!takes || !call->shadows[0] || call->count > MOST_MIRRORED)
        return false;
    if (call->count - named > (int)strlen(takes))
        return false;
    return !named || takes[1] == 's';
}

enum ended execute_move(struct capture *c, struct watched *w, const char *name,
                        const struct call *call)
{
    PyObject *self = call->args[0];
    struct moving moving = {.call = call, .takes = find_moves_entry(name, self)};
    enum ended ended;

    c->kind = NULL;
    if (!do_arguments_fit_moves_entry(call, moving.takes))
        return ENDED_BEFORE;
    if (!strcmp(name, "append") && call->count == 2 &&
        append_item(c, self, call->shadows[0], call->args[1], call->shadows[1]))
        return stack_replace(c, w, call->slots, Py_NewRef(Py_None), shadow_new_const(c, Py_None));
    moving.changes = moving.takes[0] != '=';
    moving.positional = call->count - count_names(call);
    ended = execute_moving_operation(c, w, &moving);
    release_mirrors(&moving);
    return ended;
}

/* ---- instructions that build or change containers ---- */

static enum ended execute_set_item(struct capture *c, struct watched *w, const struct call *call);
static enum ended execute_subscript(struct capture *c, struct watched *w, int op);

/* Does DICT already have a key of FROM? If so, CPython raises TypeError, as for f(**a, **b). */
static bool would_key_be_given_twice(struct capture *c, PyObject *dict, PyObject *from,
                                     struct shadow *of_from)
{
    struct shadow *of = PyDict_CheckExact(from) ? find_dict_shadow(c, from, of_from) : NULL;

    for (Py_ssize_t i = 0; of && i < of->count; i++)
        if (PyDict_Contains(dict, of->keys[i]))
            return true;
    return false;
}

/* Add items to the container that lies BELOW slots under the top of the stack. METHOD append or
 * add: add the value on top of the stack. METHOD extend or update: add the items of this value. */
static enum ended add_top_to_container(struct capture *c, struct watched *w, int below,
                                       const char *method)
{
    PyObject *container = stack_value(w, below);
    PyObject *from = stack_value(w, 0);
    struct operands operands = {{container, from}, {stack_shadow(w, below), stack_shadow(w, 0)}};
    struct call call = describe_operator_call(method, 1, 2, &operands);
    enum ended ended;

    call.callable = _PyType_Lookup(Py_TYPE(container), intern_word(method));
    if (w->op == DICT_MERGE && would_key_be_given_twice(c, container, from, operands.of[1]))
        return break_graph(c, "container", "a key of a dict is taken twice");
    /* only accept a dict: dict.update() would also accept a list of pairs */
    if (PyDict_CheckExact(container) && !PyDict_CheckExact(from))
        return break_graph(c, "container", "items of a %.200s are taken", Py_TYPE(from)->tp_name);
    ended = call_method(c, w, &call, method);
    if (is_instruction_done(ended))
        stack_drop(w, 1);
    return is_instruction_handled(c, ended) ? ended : break_at_mutation(c, container);
}

/* Set an item of a dict on the stack. From the top, the stack has the value, the key, COUNT - 1
 * other values, and the dict. */
static enum ended add_to_dict(struct capture *c, struct watched *w, int count)
{
    struct operands operands = {
        {stack_value(w, count + 1), stack_value(w, 1), stack_value(w, 0)},
        {stack_shadow(w, count + 1), stack_shadow(w, 1), stack_shadow(w, 0)}};
    const struct call call = describe_operator_call("setitem", 3, 3, &operands);

    return execute_set_item(c, w, &call);
}

static enum ended convert_list_to_tuple(struct capture *c, struct watched *w)
{
    struct operands operands = {{stack_value(w, 0)}, {stack_shadow(w, 0)}};
    const struct call call = describe_operator_call("tuple", 1, 1, &operands);
    enum ended ended = execute_move(c, w, "tuple", &call);

    if (is_instruction_handled(c, ended))
        return ended;
    return break_graph(c, "container", "a tuple is made of a list that is not known");
}

static enum ended build_slice(struct capture *c, struct watched *w, int count)
{
    struct shadow *of;
    PyObject *made = make_slice_of_top(c, w, count, &of);

    return made ? stack_replace(c, w, count, made, of) : ENDED_BEFORE;
}

enum ended execute_build(struct capture *c, struct watched *w, struct compat_action action)
{
    const int count = (int)action.arg;

    switch (action.op) {
    case BUILD_TUPLE:
    case BUILD_LIST:
        return build_sequence(c, w, count, action.op == BUILD_LIST);
    case BUILD_MAP:
        return build_dict(c, w, count, action.flag);
    case BUILD_SLICE:
        return build_slice(c, w, count);
    case BUILD_SET:
    case BUILD_STRING:
        return build_set_or_string(c, w, count, action.op == BUILD_SET);
    case SET_ADD:
        return add_top_to_container(c, w, count, action.flag ? "update" : "add");
    case LIST_APPEND:
        return add_top_to_container(c, w, count, "append");
    case LIST_EXTEND:
        return add_top_to_container(c, w, count, "extend");
    case MAP_ADD:
        return add_to_dict(c, w, count);
    case DICT_UPDATE:
        return add_top_to_container(c, w, count, "update");
    case LIST_TO_TUPLE:
        return convert_list_to_tuple(c, w);
    case BINARY_SUBSCR:
    case BINARY_SLICE:
    case STORE_SUBSCR:
    case STORE_SLICE:
    case DELETE_SUBSCR:
        return execute_subscript(c, w, action.op);
    default:
        return break_graph(c, "instruction", "an instruction that is not followed");
    }
}

/* ---- items by key ---- */

/* Does the shape of array[KEY] follow from the shape of the array? It does not if KEY is an array
 * or a mask. */
static bool keeps_shape_as_key(PyObject *key)
{
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
            if (!keeps_shape_as_key(PyTuple_GET_ITEM(key, i)))
                return false;
        return true;
    }
    return is_plain_slice(key) || key == Py_None || key == Py_Ellipsis || PyLong_CheckExact(key);
}

/* Where an item comes from that the program reads from a container. */
enum item_origin {
    ITEM_UNKNOWN,
    ITEM_AT,    /* item number KEY of a tuple or list */
    ITEM_KEYED, /* item KEY of a dict */
    ITEM_VALUE, /* an item of a known string, range or tuple */
};

static enum item_origin classify_item(struct capture *c, PyObject *container, struct shadow *of,
                                      PyObject *key)
{
    const bool is_number = PyLong_CheckExact(key);

    if (is_number && is_varying_shape(of))
        return ITEM_AT;
    if (is_number && is_sequence(container) && ensure_type_known(c, container, of))
        return ITEM_AT;
    if (PyDict_CheckExact(container)) {
        if (!is_number && !PyUnicode_CheckExact(key))
            return ITEM_UNKNOWN;
        if (is_source(of) && of->source.changed)
            return ITEM_KEYED;
        return ensure_type_known(c, container, of) ? ITEM_KEYED : ITEM_UNKNOWN;
    }
    if (!value_is_simple(container) && !PyTuple_Check(container))
        return ITEM_UNKNOWN;
    return ensure_value_known(c, container, of) ? ITEM_VALUE : ITEM_UNKNOWN;
}

/* Return the shadow of VALUE, which is container[KEY]; NULL if VALUE is unknown. */
static struct shadow *find_item_shadow(struct capture *c, enum item_origin origin,
                                       PyObject *container, struct shadow *of, PyObject *key,
                                       PyObject *value)
{
    Py_ssize_t i;

    switch (origin) {
    case ITEM_AT:
        i = PyNumber_AsSsize_t(key, NULL);
        if (i < 0)
            i += PySequence_Fast_GET_SIZE(container);
        return get_item_shadow_at(c, container, of, i);
    case ITEM_KEYED:
        return get_item_shadow(c, container, of, key, value);
    case ITEM_VALUE:
        if (value_is_simple(value) || PyTuple_Check(value))
            return shadow_new_const(c, value);
        break;
    case ITEM_UNKNOWN:
        break;
    }
    return NULL;
}

static enum ended execute_get_item(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1];
    const char *type = Py_TYPE(container)->tp_name;
    struct shadow *of = call->shadows[0];
    enum item_origin origin;
    struct shadow *shadow;
    PyObject *value;

    if (!of || !ensure_value_known(c, key, call->shadows[1]))
        return break_graph(c, "value", "an item of a %.200s that is not known", type);
    origin = classify_item(c, container, of, key);
    if (origin == ITEM_UNKNOWN)
        return break_graph(c, "container", "an item of a %.200s", type);
    value = run_call(call);
    if (!value)
        return ENDED_RAISED;
    shadow = find_item_shadow(c, origin, container, of, key, value);
    if (shadow)
        return stack_replace(c, w, call->slots, value, shadow);
    Py_DECREF(value);
    return break_graph(c, "container", "an item of a %.200s", Py_TYPE(container)->tp_name);
}

/* Return the address at which OF, the shadow of CONTAINER, stores the shadow of item KEY, and set
 * *OLD to the item. Returns NULL if there is no such item. */
static struct shadow **find_item_shadow_address(PyObject *container, const struct shadow *of,
                                                PyObject *key, PyObject **old)
{
    struct shadow **place;
    Py_ssize_t i;

    *old = NULL;
    if (PyDict_CheckExact(container)) {
        place = object_find_place(of, key);
        if (place)
            *old = PyDict_GetItemWithError(container, key);
        return place;
    }
    i = PyNumber_AsSsize_t(key, NULL);
    if (i < 0)
        i += of->count;
    if (i < 0 || i >= of->count)
        return NULL;
    *old = PyList_GET_ITEM(container, i);
    return &of->items[i];
}

/* Set an item of a list or dict with known items. Drops all stack slots of CALL but one. */
static enum ended set_item_of_known_container(struct capture *c, struct watched *w,
                                              const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1], *value = call->args[2];
    struct shadow *of = call->shadows[0], *of_value = call->shadows[2];
    const bool is_list = PyList_CheckExact(container);
    struct shadow **place;
    PyObject *old;

    if (value == container || !may_change_container(c, of, is_list ? SHADOW_LIST : SHADOW_DICT))
        return break_at_mutation(c, container);
    if (PyObject_Size(container) != of->count)
        return break_at_mutation(c, container);
    place = find_item_shadow_address(container, of, key, &old);
    if (is_list && !place)
        return break_at_mutation(c, container);
    if (!add_item_change_effect(c, of, call->shadows[1], of_value, old, place ? *place : NULL))
        return break_at_mutation(c, container);
    if (place)
        *place = of_value;
    else
        shadow_add(c, of, key, of_value);
    if (PyObject_SetItem(container, key, value))
        return break_at_no_memory(c);
    stack_drop(w, call->slots - 1);
    return ENDED_NOT;
}

/* Execute container[key] = value. Drops all stack slots of CALL but one. */
static enum ended execute_set_item(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1];
    struct shadow *of = call->shadows[0], *of_value = call->shadows[2];
    const bool is_list = PyList_CheckExact(container);

    if (!of || !of_value || !can_be_key(c, key, call->shadows[1]) ||
        (is_list && !PyLong_CheckExact(key)))
        return break_graph(
            c, "container",
            "an item is set that is not known, or whose key is no word or number that is known");
    if (PyDict_CheckExact(container) && is_source(of) &&
        (of->source.changed || ensure_type_known(c, container, of)))
        return set_in_dict(c, w, call->slots - 1, of, key, call->args[2], of_value);
    return set_item_of_known_container(c, w, call);
}

/* The subscript operations: container[key], container[key] = value, del container[key]. */
enum subscript {
    SUBSCRIPT_GET,
    SUBSCRIPT_SET,
    SUBSCRIPT_DELETE,
};

static enum subscript classify_subscript(int op)
{
    if (op == STORE_SUBSCR || op == STORE_SLICE)
        return SUBSCRIPT_SET;
    return op == DELETE_SUBSCR ? SUBSCRIPT_DELETE : SUBSCRIPT_GET;
}

/* Does the graph get a node for x[i], x[i] = y or del x[i]? A deletion gets none. */
static bool is_graph_subscript(enum subscript what, const struct operands *operands)
{
    if (what == SUBSCRIPT_DELETE)
        return false;
    if (is_graph_value(operands->values[0], operands->of[0]))
        return true;
    return what == SUBSCRIPT_GET && is_graph_value(operands->values[1], operands->of[1]);
}

/* Does the subscript operation only move items? It does if KEY is a slice, or if the operation
 * deletes. */
static bool is_moving_subscript(enum subscript what, PyObject *container, PyObject *key)
{
    if (what == SUBSCRIPT_DELETE)
        return true;
    if (!PySlice_Check(key))
        return false;
    return what == SUBSCRIPT_SET || is_sequence(container);
}

static enum ended dispatch_subscript(struct capture *c, struct watched *w, enum subscript what,
                                     const char *name, const struct call *call)
{
    PyObject *container = call->args[0], *key = call->args[1];
    enum ended ended = step_operator_method(c, w, name, call);

    if (is_instruction_handled(c, ended))
        return ended;
    if (is_moving_subscript(what, container, key))
        ended = execute_move(c, w, name, call);
    if (is_instruction_handled(c, ended))
        return ended;
    switch (what) {
    case SUBSCRIPT_SET:
        return execute_set_item(c, w, call);
    case SUBSCRIPT_DELETE:
        return break_at_mutation(c, container);
    case SUBSCRIPT_GET:
        break;
    }
    return execute_get_item(c, w, call);
}

/* Execute an instruction with a subscript. On the stack, from the top: the key, or the two bounds
 * of a slice; the container; the value to set. */
static enum ended execute_subscript(struct capture *c, struct watched *w, int op)
{
    static const char *const names[] = {
        [SUBSCRIPT_GET] = "getitem", [SUBSCRIPT_SET] = "setitem", [SUBSCRIPT_DELETE] = "delitem"};
    const enum subscript what = classify_subscript(op);
    const bool sliced = op == BINARY_SLICE || op == STORE_SLICE, sets = what == SUBSCRIPT_SET;
    const int at = sliced ? 2 : 1, slots = at + 1 + sets;
    struct operands operands = {{stack_value(w, at), stack_value(w, 0)},
                                {stack_shadow(w, at), stack_shadow(w, 0)}};
    OWNED PyObject *slice = sliced ? make_slice_of_top(c, w, 2, &operands.of[1]) : NULL;
    struct call call;
    enum ended ended;

    if (sliced && !slice)
        return ENDED_BEFORE;
    if (sliced)
        operands.values[1] = slice;
    if (sets) {
        operands.values[2] = stack_value(w, at + 1);
        operands.of[2] = stack_shadow(w, at + 1);
    }
    call = describe_operator_call(names[what], slots, sets ? 3 : 2, &operands);
    if (is_graph_subscript(what, &operands)) {
        const bool keeps = what == SUBSCRIPT_GET && keeps_shape_as_key(operands.values[1]) &&
                           value_is_array(operands.values[0]);

        ended = run_graph_operator(c, w, names[what], &call, keeps);
    } else {
        ended = dispatch_subscript(c, w, what, names[what], &call);
    }
    if (what != SUBSCRIPT_GET && is_instruction_done(ended))
        /* drop one more value: the None that a call returned, or the last operand of the
         * instruction */
        stack_drop(w, 1);
    return ended;
}

/* ---- methods of containers ---- */

/* Is each argument after the first known, or a set that the watched call made? */
static bool are_arguments_usable_sets(struct capture *c, const struct call *call)
{
    for (int i = 1; i < call->count; i++) {
        const struct call one = {.args = call->args + i, .shadows = call->shadows + i, .count = 1};

        if (!is_known_set(call->args[i], call->shadows[i]) &&
            !ensure_arguments_known(c, &one, true))
            return false;
    }
    return true;
}

enum ended call_set_operation(struct capture *c, struct watched *w, const struct call *call)
{
    PyObject *set = call->args[0], *result;
    struct shadow *made = NULL;
    Py_ssize_t size;
    bool only_asks;

    if (!is_known_set(set, call->shadows[0]) || call->names || c->foreign)
        return ENDED_BEFORE;
    if (!are_arguments_usable_sets(c, call))
        return ENDED_BEFORE;
    size = PySet_GET_SIZE(set);
    result = run_call(call);
    if (!result)
        return ENDED_RAISED;
    only_asks = PyBool_Check(result) && PySet_GET_SIZE(set) == size;
    if (!only_asks) {
        made =
            add_creation_effect(c, shadow_new_const(c, call->callable), call->count, call->shadows);
        c->failed |= !made;
    }
    if (!PyAnySet_CheckExact(result))
        return stack_replace_known(c, w, call->slots, result);
    return stack_replace(c, w, call->slots, result, result == set ? call->shadows[0] : made);
}

/* Is this a call of dict.get() with a string as the key, on a dict that existed before the watched
 * call? */
static bool is_dict_get(const struct call *call, const char *name)
{
    if (strcmp(name, "get") || !is_source(call->shadows[0]) || call->names)
        return false;
    return call->count > 1 && call->count < 4 && PyUnicode_CheckExact(call->args[1]);
}

enum ended call_method(struct capture *c, struct watched *w, const struct call *call,
                       const char *name)
{
    enum ended ended;

    c->kind = NULL;
    if (PyAnySet_CheckExact(call->args[0]))
        return call_set_operation(c, w, call);
    if (is_dict_get(call, name))
        return step_through_polyfill(c, w, "_get", call);
    ended = execute_move(c, w, name, call);
    if (is_instruction_handled(c, ended) || strcmp(name, "extend") || call->count != 2)
        return ended;
    return step_through_polyfill(c, w, "_extend", call);
}

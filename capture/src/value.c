/* capture/src/value.c -- shadows, and guards on values that were read. See capture.h.
 *
 * A source is the shadow of a value that was read from outside the function, e.g. from an argument
 * or a global. It gets a guard when an operation depends on its value, not when it is read: an
 * argument that the function only passes on needs no guard. If two reads of the same variable,
 * attribute or item give different values, capture discards everything (capture->failed).
 *
 * In a later call all guards are checked before the graph runs. But some array operations run code
 * of the program, and this code may change values: operations on an array whose class belongs to
 * the program and is not registered, and on an array of Python objects. After such an operation
 * (capture->foreign) a read of a value that the code can change breaks the graph, and the resume
 * function reads the value. */
#include "capture.h"

/* ---- arrays ---- */

/* owned: the list of array classes; an instance of one of them, or of a subclass, is an array */
static PyObject *array_types;

static bool is_registered_type(PyTypeObject *type)
{
    for (Py_ssize_t i = array_types ? PyList_GET_SIZE(array_types) : 0; i--;)
        if (PyList_GET_ITEM(array_types, i) == (PyObject *)type)
            return true;
    return false;
}

int register_array_type(PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "expected a class");
        return -1;
    }
    if (!array_types)
        array_types = PyList_New(0);
    if (!array_types)
        return -1;
    return is_registered_type((PyTypeObject *)type) ? 0 : PyList_Append(array_types, type);
}

/* Return attribute NAME of MODULE if the program has imported MODULE: borrowed, or NULL. */
static PyObject *get_attribute_if_imported(const char *module, const char *name)
{
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);

    if (!found || !PyModule_Check(found))
        return NULL;
    return PyDict_GetItemString(PyModule_GetDict(found), name);
}

void register_array_types(void)
{
    static const char *const names[][2] = {
        {"numpy", "ndarray"}, {"numpy", "generic"}, {"torch", "Tensor"}};
    static bool found[3];

    for (int i = 0; i < 3; i++) {
        PyObject *type = NULL;

        if (!found[i])
            type = get_attribute_if_imported(names[i][0], names[i][1]);
        if (type && PyType_Check(type))
            found[i] = !register_array_type(type);
    }
    PyErr_Clear();
}

/* Is TYPE one of the most frequent types? These are not array types, so a search in the list of
 * array types is unnecessary. */
static bool is_common_type(const PyTypeObject *type)
{
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyTuple_Type ||
           type == &PyFloat_Type || type == &PyFunction_Type;
}

bool value_is_array(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);

    if (is_common_type(type) || !array_types)
        return false;
    for (Py_ssize_t i = PyList_GET_SIZE(array_types); i--;) {
        PyTypeObject *array_type = (PyTypeObject *)PyList_GET_ITEM(array_types, i);

        if (PyType_IsSubtype(type, array_type))
            return true;
    }
    return false;
}

/* Return the name of the module of TYPE, or TYPE's own name. Borrowed. */
static const char *get_type_module(PyTypeObject *type)
{
    const char *name = type->tp_name;
    PyObject *module = NULL;

    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        module = _PyType_Lookup(type, intern_word("__module__"));
    if (module && PyUnicode_CheckExact(module))
        name = PyUnicode_AsUTF8(module);
    PyErr_Clear();
    return name;
}

/* Is TYPE a class of numpy or torch? */
static bool is_array_package_type(PyTypeObject *type)
{
    return is_array_package(get_type_module(type));
}

bool value_is_library_array(PyObject *value)
{
    return value_is_array(value) && !value_may_run_code(value) &&
           is_array_package_type(Py_TYPE(value));
}

bool value_is_silent_when_used(PyObject *value)
{
    return value_is_library_array(value) && strncmp(get_type_module(Py_TYPE(value)), "numpy", 5);
}

bool value_may_run_code(PyObject *value)
{
    OWNED PyObject *dtype = NULL, *objects = NULL;
    int failed;

    if (!is_array_package_type(Py_TYPE(value)))
        /* the program has promised, by registering the class, that its operations run no other
         * code */
        return !is_registered_type(Py_TYPE(value));
    failed = compat_optional_attribute(value, intern_word("dtype"), &dtype) < 0;
    if (dtype && !failed)
        failed = compat_optional_attribute(dtype, intern_word("hasobject"), &objects) < 0;
    PyErr_Clear();
    return failed || objects == Py_True;
}

static bool sequence_has_array(PyObject *sequence, int depth)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence) && i < 64; i++)
        if (value_has_array(PySequence_Fast_GET_ITEM(sequence, i), depth))
            return true;
    return false;
}

static bool dict_has_array(PyObject *dict, int depth)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;

    while (PyDict_Next(dict, &at, &key, &item) && at < 256)
        if (value_has_array(item, depth))
            return true;
    return false;
}

bool value_has_array(PyObject *value, int depth)
{
    if (depth && is_sequence(value))
        return sequence_has_array(value, depth - 1) || value_is_array(value);
    if (depth && PyDict_CheckExact(value))
        return dict_has_array(value, depth - 1) || value_is_array(value);
    return value_is_array(value);
}

/* Is VALUE None, Ellipsis, a number, a string or a range? NotImplemented does not count, because
 * its truth value causes a warning. */
static bool is_constant_of_plain_type(PyObject *value)
{
    static const PyTypeObject *const simple[] = {&PyLong_Type,    &PyBool_Type,  &PyFloat_Type,
                                                 &PyUnicode_Type, &PyBytes_Type, &PyComplex_Type,
                                                 &PyRange_Type};
    const PyTypeObject *type = Py_TYPE(value);

    if (value == Py_None || value == Py_Ellipsis)
        return true;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(simple); i++)
        if (type == simple[i])
            return true;
    return false;
}

bool value_is_bound_method(PyObject *value)
{
    PyObject *self = NULL;

    if (PyCFunction_Check(value))
        self = PyCFunction_GET_SELF(value);
    else if (PyMethod_Check(value))
        self = PyMethod_GET_SELF(value);
    return self && !PyModule_Check(self) && !PyType_Check(self);
}

/* Is there a weak reference to VALUE, through which the program can observe VALUE's death? */
static bool has_weak_reference(PyObject *value)
{
    const Py_ssize_t offset = Py_TYPE(value)->tp_weaklistoffset;

    return offset && *(PyObject **)((char *)value + offset);
}

/* Can VALUE, an array of numpy or torch, be released without running code of the program? Checks
 * the arrays of which VALUE is a view, too. */
static bool can_release_array(PyObject *value)
{
    OWNED PyObject *at = Py_NewRef(value);

    for (int depth = 0; depth < 64; depth++) {
        PyObject *base = NULL;

        if (!value_is_array(at) || value_may_run_code(at) || has_weak_reference(at))
            return false;
        /* end the search: the memory of a tensor is in a storage and not in a base array, and a
         * registered class has promised that it runs no other code */
        if (!is_array_package_type(Py_TYPE(at)) || PyObject_HasAttr(at, intern_word("data_ptr")))
            return true;
        if (compat_optional_attribute(at, intern_word("base"), &base) < 0) {
            PyErr_Clear();
            return false;
        }
        Py_SETREF(at, base ? base : Py_NewRef(Py_None));
        if (at == Py_None || PyBytes_CheckExact(at))
            return true;
    }
    return false;
}

static bool does_leaf_die_quietly(PyObject *value)
{
    if (is_constant_of_plain_type(value) || PyModule_Check(value))
        return true;
    if (PyType_Check(value))
        return !has_weak_reference(value);
    if (PyCFunction_Check(value))
        return !value_is_bound_method(value);
    if (value_is_description(value))
        return true;
    return value_is_array(value) && can_release_array(value);
}

/* Does LEAF return true for VALUE, or for each of its items? VALUE may have items if it is a tuple;
 * if DEPTH > 0, also if it is a list or dict. *ITEMS limits how many items are visited. */
static bool is_true_of_all_items(bool (*leaf)(PyObject *value), PyObject *value, int depth,
                                 int *items)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;

    --*items;
    if (*items < 0 || leaf(value))
        return *items >= 0;
    if (PyTuple_CheckExact(value) || (depth > 0 && PyList_CheckExact(value))) {
        for (; at < PySequence_Fast_GET_SIZE(value); at++) {
            /* hold a reference: LEAF may read an attribute of an array, which may run code that
             * empties the list */
            OWNED PyObject *one = Py_NewRef(PySequence_Fast_GET_ITEM(value, at));

            if (!is_true_of_all_items(leaf, one, depth - 1, items))
                return false;
        }
        return true;
    }
    if (depth <= 0 || !PyDict_CheckExact(value))
        return false;
    while (PyDict_Next(value, &at, &key, &item)) {
        OWNED PyObject *one = Py_NewRef(item);

        if (!value_is_simple(key) || !is_true_of_all_items(leaf, one, depth - 1, items))
            return false;
    }
    return true;
}

/* Is VALUE immutable, and do operations on it run no code of the program? */
bool value_is_simple(PyObject *value)
{
    return is_true_of_all_items(is_constant_of_plain_type, value, 0, &(int){1000});
}

bool value_can_die_quietly(PyObject *value)
{
    return is_true_of_all_items(does_leaf_die_quietly, value, 4, &(int){1000});
}

/* ---- shadows ---- */

void *capture_allocate(struct capture *c, size_t size)
{
    void *room = _PyArena_Malloc(c->arena, size);

    if (!room) {
        PyErr_Clear();
        c->failed = true;
    }
    return room ? memset(room, 0, size) : NULL;
}

void capture_count_reference(struct capture *c, PyObject *object)
{
    for (Py_ssize_t i = 0; c->mortal && i < c->mortal->count; i++)
        c->mortal->items[i]->source.references += c->mortal->items[i]->value == object;
}

PyObject *capture_keep(struct capture *c, PyObject *object)
{
    if (object && _PyArena_AddPyObject(c->arena, Py_NewRef(object)) < 0) {
        Py_DECREF(object);
        PyErr_Clear();
        c->failed = true;
        return NULL;
    }
    capture_count_reference(c, object);
    return object;
}

struct shadow *shadow_new(struct capture *c, enum shadow_kind kind, Py_ssize_t room)
{
    struct shadow *made = capture_allocate(c, sizeof *made);

    if (!made)
        return NULL;
    if (room) {
        made->items = capture_allocate(c, sizeof *made->items * (size_t)room);
        if (!made->items)
            return NULL;
    }
    made->kind = kind;
    made->room = room;
    made->serial = ++c->serial;
    return made;
}

struct shadow *shadow_new_const(struct capture *c, PyObject *value)
{
    struct shadow *made = capture_keep(c, value) ? shadow_new(c, SHADOW_CONST, 0) : NULL;

    if (made)
        made->value = value;
    return made;
}

struct shadow *shadow_new_node(struct capture *c, PyObject *node, bool fixed, bool counted)
{
    struct shadow *made = shadow_new(c, SHADOW_NODE, 0);

    if (made) {
        made->node.node = node;
        made->node.fixed = fixed;
        made->node.counted = counted;
    }
    return made;
}

bool shadow_matches_value(const struct shadow *shadow, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);

    switch (shadow->kind) {
    case SHADOW_CONST:
    case SHADOW_SOURCE:
        return !shadow->value || type == Py_TYPE(shadow->value);
    case SHADOW_TUPLE:
        return PyTuple_Check(value);
    case SHADOW_LIST:
        return PyList_Check(value);
    case SHADOW_DICT:
        return PyDict_Check(value);
    case SHADOW_SLICE:
        return PySlice_Check(value);
    case SHADOW_OBJECT: /* compare the class, because the program may have set __class__ */
        if (!shadow->object.of_class->value)
            return true;
        return (PyObject *)type == shadow->object.of_class->value;
    case SHADOW_GENERATOR:
        return value == shadow->value;
    case SHADOW_FUNCTION:
        return PyFunction_Check(value);
    case SHADOW_CELL:
        return PyCell_Check(value);
    case SHADOW_NODE:
    case SHADOW_CALL:
    case SHADOW_SUPER:
    case SHADOW_METHOD:
    case SHADOW_ITERATOR:
    case SHADOW_CHANGED:
        /* accept any value: code that uses a shadow of this kind checks the value itself */
        return true;
    }
    return false;
}

/* Make room for ROOM items in SHADOW and, with KEYED, for ROOM keys. Returns false if there is no
 * memory. */
static bool grow_items(struct capture *c, struct shadow *shadow, Py_ssize_t room, bool keyed)
{
    const size_t before = (size_t)shadow->room;
    struct shadow **items = capture_allocate(c, sizeof *items * (size_t)room);
    PyObject **keys = NULL;

    if (keyed)
        keys = capture_allocate(c, sizeof *keys * (size_t)room);
    if (!items || (keyed && !keys))
        return false;
    if (before)
        memcpy(items, shadow->items, sizeof *items * before);
    if (before && shadow->keys && keyed)
        memcpy(keys, shadow->keys, sizeof *keys * before);
    shadow->items = items;
    shadow->keys = keys;
    shadow->room = room;
    return true;
}

int shadow_add(struct capture *c, struct shadow *container, PyObject *key, struct shadow *item)
{
    const Py_ssize_t at = container->count;

    if (at == container->room && !grow_items(c, container, 2 * at + 4, key))
        return -1;
    if (key)
        container->keys[at] = capture_keep(c, key);
    container->items[at] = item;
    container->count++;
    return c->failed ? -1 : 0;
}

struct shadow *shadow_copy(struct capture *c, const struct shadow *shadow)
{
    struct shadow *made = capture_allocate(c, sizeof *made);

    if (!made)
        return NULL;
    *made = *shadow;
    if (made->room && !grow_items(c, made, made->room, made->keys))
        return NULL;
    return made;
}

/* Are A and B the same object, or equal objects of one immutable type? */
static bool is_same_value(PyObject *a, PyObject *b)
{
    if (a == b)
        return true;
    if (!a || !b || Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (!value_is_simple(a) || !value_is_simple(b))
        return false;
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

struct shadow **object_find_place(const struct shadow *object, PyObject *key)
{
    for (Py_ssize_t i = 0; i < object->count; i++)
        /* compare keys as a dict does: 1 and True are the same key */
        if (PyObject_RichCompareBool(object->keys[i], key, Py_EQ) == 1)
            return &object->items[i];
    return NULL;
}

struct shadow *object_find(const struct shadow *object, PyObject *key)
{
    struct shadow **place = object_find_place(object, key);

    return place ? *place : NULL;
}

/* Is SOURCE the source of the value at STEP KEY of its parent, e.g. of its attribute KEY if STEP is
 * '.'? */
static bool is_source_of_step(const struct shadow *source, char step, PyObject *key)
{
    return source->source.step == step && is_same_value(source->source.key, key);
}

struct shadow *source_find_changed(const struct shadow *parent, char step, PyObject *key)
{
    for (struct shadow *one = parent->source.child; one; one = one->source.next)
        if (one->kind == SHADOW_CHANGED && is_source_of_step(one, step, key))
            return one;
    return NULL;
}

bool shadow_save_for_undo(struct capture *c, struct shadow *shadow)
{
    struct shadow *was;
    struct undo *undo;

    if (shadow->serial > c->innermost->serial || shadow->kept >= c->innermost->serial)
        return true;
    was = shadow_copy(c, shadow);
    undo = capture_allocate(c, sizeof *undo);
    if (!was || !undo)
        return false;
    *undo = (struct undo){c->undo, shadow, *was};
    shadow->kept = c->innermost->serial;
    c->undo = undo;
    return true;
}

void shadows_undo(struct capture *c, struct undo *mark)
{
    for (; c->undo != mark; c->undo = c->undo->before)
        *c->undo->shadow = c->undo->was;
}

/* ---- sources ---- */

PyObject *capture_modules;

/* Can no code of the program change the value that is read from PARENT at STEP? This holds for the
 * value of a variable, and for the items of a tuple in a variable. */
static bool is_read_value_unchangeable(const struct shadow *parent, char step)
{
    if (step == 'l')
        return true;
    if (step != '[' || !parent->source.step)
        return false;
    if (!parent->value || !PyTuple_CheckExact(parent->value))
        return false;
    return is_read_value_unchangeable(parent->source.parent, parent->source.step);
}

/* Is it certain that VALUE, which was read from source SHADOW, has not changed since the call
 * began? */
static bool is_still_valid(const struct capture *c, PyObject *value, const struct shadow *shadow)
{
    if (!c->foreign)
        return true;
    if (PyList_CheckExact(value) || PyDict_CheckExact(value))
        return false;
    return is_read_value_unchangeable(shadow->source.parent, shadow->source.step);
}

/* Handle a second read of source ONE, which found VALUE (NULL if unknown). Returns the shadow of
 * the value. If the value is another one than at the first read, fails the capture and returns
 * NULL. */
static struct shadow *read_source_again(struct capture *c, struct shadow *one, PyObject *value)
{
    const bool is_changed = one->kind == SHADOW_CHANGED;

    if (value && is_changed && one->value != value)
        c->failed = true;
    if (value && !is_changed && !is_same_value(one->value, value))
        c->failed = true;
    if (c->failed)
        return NULL;
    return resolve_alias(c, is_changed ? one->items[0] : one);
}

/* May capture read from PARENT at STEP? A path of many steps is refused: each step has a guard that
 * reads the path from its start, so the cost of the guards grows with the cube of the length. */
static bool may_read_source(struct capture *c, struct shadow *parent, char step, PyObject *value)
{
    if (parent->source.steps == shim->deepest_path / 4)
        return false;
    if (value && compat_is_lazy(value))
        return false;
    if (c->foreign && !is_read_value_unchangeable(parent, step))
        return false;
    return ensure_not_aliased(c, parent);
}

struct shadow *source_read(struct capture *c, struct shadow *parent, char step, PyObject *key,
                           PyObject *value)
{
    struct shadow **last = &parent->source.child;
    struct shadow *one;

    if (!may_read_source(c, parent, step, value))
        return NULL;
    for (; *last; last = &(*last)->source.next)
        if (is_source_of_step(*last, step, key))
            return read_source_again(c, *last, value);
    one = shadow_new(c, SHADOW_SOURCE, 0);
    if (!one)
        return NULL;
    one->source.step = step;
    one->source.steps = parent->source.steps + 1;
    one->source.parent = parent;
    one->source.key = capture_keep(c, key);
    one->value = capture_keep(c, value);
    *last = one;
    return c->failed ? NULL : resolve_alias(c, one);
}

struct shadow *source_read_attribute(struct capture *c, struct shadow *parent, const char *name,
                                     PyObject *value)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? source_read(c, parent, '.', word, value) : NULL;
}

/* Return the key that SOURCE has in its guard path. */
static PyObject *get_path_key(const struct shadow *source)
{
    if (source->source.step == 'S')
        return capture_modules;
    return source->source.key ? source->source.key : Py_None;
}

PyObject *source_make_path(struct capture *c, struct shadow *source)
{
    const bool is_root = !source->source.key || source->source.step == 'C';
    OWNED PyObject *made = NULL;
    PyObject *before;

    if (source->source.path)
        return source->source.path;
    before = is_root ? Py_None : source_make_path(c, source->source.parent);
    if (!before)
        return NULL;
    made = Py_BuildValue("(OCO)", before, source->source.step, get_path_key(source));
    if (made)
        source->source.path = capture_keep(c, made);
    return source->source.path;
}

static bool has_root_source(const struct shadow *source)
{
    while (source->source.key)
        source = source->source.parent;
    return source->source.step != 0;
}

int guard_add(struct capture *c, struct shadow *source, const char *kind, PyObject *value)
{
    /* a constant has no path, nor has a value that was read from a constant */
    PyObject *path = has_root_source(source) ? source_make_path(c, source) : NULL;
    OWNED PyObject *guard = path ? Py_BuildValue("(sOO)", kind, path, value) : NULL;

    if (!guard || PyList_Append(c->guards, guard)) {
        PyErr_Clear();
        c->failed = true;
        return -1;
    }
    capture_count_reference(c, value);
    return 0;
}

void guard_length(struct capture *c, struct shadow *source, const char *kind, Py_ssize_t length)
{
    OWNED PyObject *number = PyLong_FromSsize_t(length);

    if (number)
        guard_add(c, source, kind, number);
}

bool value_is_description(PyObject *value)
{
    static const char *const names[] = {"torch.dtype", "torch.device", "torch.layout",
                                        "torch.memory_format", "torch.Size"};
    const char *name = Py_TYPE(value)->tp_name;

    if (!strncmp(name, "numpy.dtype", 11))
        return true;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

bool is_plain_slice(PyObject *value)
{
    const PySliceObject *slice = (const PySliceObject *)value;

    if (!PySlice_Check(value) || !value_is_simple(slice->start))
        return false;
    return value_is_simple(slice->stop) && value_is_simple(slice->step);
}

/* Are all items of SHADOW known? Adds guards. */
static bool ensure_items_known(struct capture *c, const struct shadow *shadow)
{
    for (Py_ssize_t i = 0; i < shadow->count; i++)
        if (!count_visited_item(c) || !ensure_value_known(c, NULL, shadow->items[i]))
            return false;
    return true;
}

/* Return the kind of a guard which ensures that later calls find the same object as VALUE, or an
 * equal one; NULL if there is no such kind. */
static const char *choose_value_guard_kind(PyObject *value)
{
    if (value == Py_None || PyBool_Check(value))
        return "CONSTANT_MATCH";
    if (PyModule_Check(value))
        return "MODULE_MATCH";
    if (value_is_plain(value))
        return "EQUALS_MATCH";
    if (PyFunction_Check(value) || PyCFunction_Check(value) || PyMethod_Check(value))
        return "FUNCTION_MATCH";
    return PyType_Check(value) || is_array_function(value) ? "FUNCTION_MATCH" : NULL;
}

static bool guard_value(struct capture *c, struct shadow *shadow)
{
    PyObject *value = shadow->value;
    const char *kind;

    if (shadow->source.guarded == GUARDED_VALUE)
        return true;
    if (!value || value_is_array(value) || !is_still_valid(c, value, shadow))
        return false;
    /* refuse a bound method: each read makes a new one, and a guard must not keep the method's
     * object alive */
    if (value_is_bound_method(value))
        return false;
    kind = choose_value_guard_kind(value);
    if (!kind)
        return false;
    guard_add(c, shadow, kind, value);
    shadow->source.guarded = GUARDED_VALUE;
    return !c->failed;
}

bool ensure_value_known(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (!shadow)
        return false;
    switch (shadow->kind) {
    case SHADOW_CONST:
        return true;
    case SHADOW_SOURCE:
        return guard_value(c, shadow);
    case SHADOW_METHOD:
        return ensure_value_known(c, NULL, shadow->method.owner);
    /* the number is known if all numbers from which it was calculated are known */
    case SHADOW_NODE:
        return ensure_items_known(c, shadow) && shadow->node.is_number;
    case SHADOW_TUPLE:
    case SHADOW_LIST:
    case SHADOW_DICT:
    case SHADOW_SLICE:
        return ensure_items_known(c, shadow);
    default:
        return false;
    }
}

bool is_nested(PyObject *value)
{
    if (!PyFunction_Check(value))
        return false;
    return ((PyCodeObject *)PyFunction_GET_CODE(value))->co_flags & CO_NESTED;
}

/* Should a guard on the type of VALUE compare VALUE itself instead? Returns false for an array,
 * tuple, list, nested function or method, because a later call may have another value of this
 * type. */
static bool should_guard_value(PyObject *value)
{
    if (value_is_array(value) || is_sequence(value))
        return false;
    return !is_nested(value) && !PyMethod_Check(value);
}

static void guard_type(struct capture *c, PyObject *value, struct shadow *shadow)
{
    const char *length = PyTuple_CheckExact(value) ? "TUPLE_LENGTH" : "LIST_LENGTH";

    if (value_is_array(value))
        guard_add(c, shadow, "TENSOR_MATCH", value);
    /* guard only the function's code: its cells get guards when they are read */
    else if (is_nested(value))
        guard_add(c, shadow, "CLOSURE_MATCH", value);
    else
        guard_add(c, shadow, "TYPE_MATCH", (PyObject *)Py_TYPE(value));
    if (is_sequence(value))
        guard_length(c, shadow, length, PySequence_Fast_GET_SIZE(value));
}

bool ensure_type_known(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (!shadow)
        return false;
    if (shadow->kind != SHADOW_SOURCE)
        return true;
    value = shadow->value;
    if (!value || !is_still_valid(c, value, shadow))
        return false;
    if (shadow->source.changed && PyDict_CheckExact(value))
        return false;
    if (!ensure_not_aliased(c, shadow))
        return false;
    if (shadow->source.guarded)
        return true;
    if (should_guard_value(value) && ensure_value_known(c, value, shadow))
        return true;
    guard_type(c, value, shadow);
    shadow->source.guarded = GUARDED_TYPE;
    return !c->failed;
}

/* Return the shadow of item KEY of a tuple or list. If the tuple is a shape, a size that is no
 * input of the graph is a constant. */
static struct shadow *get_sequence_item_shadow(struct capture *c, PyObject *value,
                                               struct shadow *of, PyObject *key, PyObject *item)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    Py_ssize_t i = PyLong_AsSsize_t(key);

    if (i < 0)
        i += count;
    if (is_varying_shape(of))
        return of->items[i] ? of->items[i] : shadow_new_const(c, item);
    if (of->kind != SHADOW_TUPLE && of->kind != SHADOW_LIST)
        return NULL;
    return of->count == count ? of->items[i] : NULL;
}

struct shadow *get_item_shadow(struct capture *c, PyObject *value, struct shadow *of, PyObject *key,
                               PyObject *item)
{
    if (of->kind == SHADOW_CONST)
        return shadow_new_const(c, item);
    if (is_source(of) && !is_varying_shape(of)) {
        if (of->source.guarded == GUARDED_VALUE)
            return shadow_new_const(c, item);
        return source_read(c, of, '[', key, item);
    }
    if (of->kind == SHADOW_DICT)
        return PyDict_GET_SIZE(value) == of->count ? object_find(of, key) : NULL;
    return get_sequence_item_shadow(c, value, of, key, item);
}

struct shadow *get_item_shadow_at(struct capture *c, PyObject *value, struct shadow *shadow,
                                  Py_ssize_t i)
{
    OWNED PyObject *number = PyLong_FromSsize_t(i);

    if (!number || i >= PySequence_Fast_GET_SIZE(value))
        return NULL;
    return get_item_shadow(c, value, shadow, number, PySequence_Fast_GET_ITEM(value, i));
}

int shadow_add_items(struct capture *c, struct shadow *container, PyObject *value,
                     struct shadow *of)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        struct shadow *item = get_item_shadow_at(c, value, of, i);

        if (!item || shadow_add(c, container, NULL, item))
            return -1;
    }
    return 0;
}

/* ---- arguments of nodes ---- */

PyObject *node_new(PyObject *op, PyObject *name, PyObject *target, PyObject *args,
                   PyObject *keywords)
{
    static PyObject *module;
    OWNED PyObject *arguments = args, *named = keywords ? keywords : PyDict_New();
    PyTypeObject *type = (PyTypeObject *)find_module_attribute(&module, "dyntrace.graph", "Node");
    const struct {
        const char *name;
        PyObject *value;
    } fields[] = {{"op", op},
                  {"name", name ? name : Py_None},
                  {"target", target},
                  {"args", arguments},
                  {"kwargs", named}};
    PyObject *made;

    if (!type || !PyType_Check((PyObject *)type) || !op || !args || !named)
        return NULL;
    made = type->tp_alloc(type, 0);
    for (size_t i = 0; made && i < Py_ARRAY_LENGTH(fields); i++)
        if (PyObject_SetAttr(made, intern_word(fields[i].name), fields[i].value))
            Py_CLEAR(made);
    return made;
}

bool numbers_may_vary(void)
{
    PyObject *version = get_attribute_if_imported("numpy", "__version__");
    const char *text = version && PyUnicode_Check(version) ? PyUnicode_AsUTF8(version) : "";

    PyErr_Clear();
    return text && strncmp(text, "1.", 2);
}

/* Return VARIES_INPUT if NUMBER differs from the integer that earlier captures had at PATH,
 * otherwise VARIES_NOT. Stores NUMBER for later captures, or None if the integers differ. */
static enum varying compare_with_earlier_number(struct capture *c, PyObject *path, PyObject *number)
{
    PyObject *before = PyDict_GetItemWithError(c->numbers, path);
    enum varying varies = VARIES_NOT;

    if (before && PyObject_RichCompareBool(before, number, Py_EQ) != 1)
        varies = VARIES_INPUT;
    PyDict_SetItem(c->numbers, path, varies == VARIES_INPUT ? Py_None : number);
    return varies;
}

bool is_varying(struct capture *c, struct shadow *shadow)
{
    const struct shadow *root = shadow;
    PyObject *path;

    if (is_kind(shadow, SHADOW_NODE))
        return shadow->node.is_number;
    if (!is_source(shadow) || shadow->source.guarded == GUARDED_VALUE)
        return false;
    if (shadow->source.varies != VARIES_UNKNOWN)
        return shadow->source.varies == VARIES_INPUT;
    if (!shadow->value || !PyLong_CheckExact(shadow->value) || !c->numbers)
        return false;
    while (root->source.parent)
        root = root->source.parent;
    path = root == c->locals ? source_make_path(c, shadow) : NULL;
    if (path)
        shadow->source.varies = compare_with_earlier_number(c, path, shadow->value);
    PyErr_Clear();
    return shadow->source.varies == VARIES_INPUT;
}

/* Return the source of the attribute `shape` of OF's array; NULL if the shape has not been read. */
static struct shadow *find_shape_source(const struct shadow *of)
{
    struct shadow *one = of->source.child;

    while (one && (one->source.step != '.' || one->source.key != intern_word("shape")))
        one = one->source.next;
    return one;
}

/* Is size number I of SHAPE an input of the graph? BEFORE is the shape that earlier captures had,
 * or NULL. _update_dynamic_sizes() in _capture.py must apply the same rule. */
static bool is_size_varying(const struct capture *c, PyObject *shape, PyObject *before,
                            Py_ssize_t i)
{
    PyObject *size = PyTuple_GET_ITEM(shape, i);

    if (PyLong_AsSsize_t(size) <= 1)
        return false;
    if (before && PyTuple_CheckExact(before) && PyTuple_GET_SIZE(before) == PyTuple_GET_SIZE(shape))
        return PyObject_RichCompareBool(PyTuple_GET_ITEM(before, i), size, Py_EQ) != 1;
    return PyTuple_GET_ITEM(c->callback, CAPTURE_DYNAMIC) == Py_True;
}

/* Make a source for SHAPE, the shape of OF's array, if the graph has one of the sizes as an input.
 * Returns NULL if it has none. */
static struct shadow *make_shape_source(struct capture *c, PyObject *shape, PyObject *before,
                                        struct shadow *of)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(shape);
    struct shadow **items = capture_allocate(c, sizeof *items * (size_t)count);
    struct shadow *made = NULL;

    for (Py_ssize_t i = 0; items && i < count; i++) {
        OWNED PyObject *number = PyLong_FromSsize_t(i);

        if (!is_size_varying(c, shape, before, i))
            continue;
        if (!made)
            made = source_read_attribute(c, of, "shape", shape);
        if (made && number)
            items[i] = source_read(c, made, '[', number, PyTuple_GET_ITEM(shape, i));
        if (!items[i])
            return NULL;
        items[i]->source.varies = VARIES_INPUT;
        made->source.varies = VARIES_SHAPE;
        made->items = items;
    }
    return made;
}

struct shadow *find_varying_shape(struct capture *c, PyObject *value, struct shadow *of)
{
    OWNED PyObject *shape = NULL;
    PyObject *path = NULL, *before = NULL;
    struct shadow *made;

    if (!is_source(of) || !of->source.key || !c->numbers || c->foreign)
        return NULL;
    path = source_make_path(c, of);
    shape = path ? PyObject_GetAttr(value, intern_word("shape")) : NULL;
    if (shape && c->sizes)
        before = PyDict_GetItemWithError(c->sizes, path);
    PyErr_Clear();
    if (!shape || !PyTuple_Check(shape) || !PyTuple_GET_SIZE(shape))
        return NULL;
    made = find_shape_source(of);
    if (!made)
        return make_shape_source(c, shape, before, of);
    return PyObject_RichCompareBool(made->value, shape, Py_EQ) == 1 ? made : NULL;
}

/* Return the placeholder node of SOURCE, an array or an integer that is an input of the graph:
 * borrowed. The name of the node is the path of SOURCE until name_nodes() in graph.py has run. */
static PyObject *get_placeholder(struct capture *c, struct shadow *source)
{
    OWNED PyObject *node = NULL;
    PyObject *path;

    if (source->source.placeholder)
        return source->source.placeholder;
    path = source_make_path(c, source);
    if (path)
        node = node_new(intern_word("placeholder"), path, path, PyTuple_New(0), NULL);
    if (!node || PyList_Append(c->placeholders, node) || PyList_Append(c->inputs, source->value) ||
        shadow_add(c, c->taken, NULL, source)) {
        c->failed = true;
        return NULL;
    }
    /* count the reference that c->inputs holds to the value */
    capture_count_reference(c, source->value);
    if (!source->source.varies && value_may_run_code(source->value))
        c->foreign = true;
    source->source.placeholder = capture_keep(c, node);
    return source->source.placeholder;
}

enum { MOST_NESTED = 8, MOST_GUARDS = 10000 };

/* Return the shadow of item I of SHADOW, which is a container or the source of VALUE; or NULL. */
static struct shadow *find_argument_item_shadow(struct capture *c, PyObject *value,
                                                struct shadow *shadow, Py_ssize_t i)
{
    if (!count_visited_item(c))
        return NULL;
    if (shadow->kind != SHADOW_SOURCE)
        return shadow->items[i];
    return PyList_GET_SIZE(c->guards) < MOST_GUARDS ? get_item_shadow_at(c, value, shadow, i)
                                                    : NULL;
}

/* Convert the first COUNT items of SHADOW to arguments of a graph node: a new tuple, or NULL.
 * SHADOW is a container or the source of VALUE. */
static PyObject *make_items_argument(struct capture *c, PyObject *value, struct shadow *shadow,
                                     Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made && i < count; i++) {
        struct shadow *item = find_argument_item_shadow(c, value, shadow, i);
        PyObject *one = NULL;

        if (c->nesting < MOST_NESTED && item) {
            c->nesting++;
            one = make_node_argument(c, NULL, item);
            c->nesting--;
        }
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* Turn an integer that was read into an input of the graph. Returns a new reference to the
 * placeholder node of this input. */
static PyObject *make_number_argument(struct capture *c, struct shadow *shadow)
{
    if (!shadow->source.guarded)
        guard_add(c, shadow, "TYPE_MATCH", (PyObject *)&PyLong_Type);
    shadow->source.guarded = GUARDED_TYPE;
    return Py_XNewRef(get_placeholder(c, shadow));
}

static PyObject *make_source_argument(struct capture *c, struct shadow *shadow)
{
    PyObject *value = shadow->value;
    OWNED PyObject *items = NULL;

    if (!value)
        return NULL;
    if (value_is_array(value))
        return ensure_type_known(c, value, shadow) ? Py_XNewRef(get_placeholder(c, shadow)) : NULL;
    if (is_varying(c, shadow))
        return make_number_argument(c, shadow);
    if (ensure_value_known(c, value, shadow))
        return Py_NewRef(value);
    if (!is_sequence(value) || !ensure_type_known(c, value, shadow))
        return NULL;
    items = make_items_argument(c, value, shadow, PySequence_Fast_GET_SIZE(value));
    if (items && PyList_CheckExact(value))
        return PySequence_List(items);
    return Py_XNewRef(items);
}

static PyObject *make_dict_argument(struct capture *c, struct shadow *shadow)
{
    OWNED PyObject *items = make_items_argument(c, NULL, shadow, shadow->count);
    PyObject *made = items ? PyDict_New() : NULL;

    for (Py_ssize_t i = 0; made && i < shadow->count; i++)
        if (PyDict_SetItem(made, shadow->keys[i], PyTuple_GET_ITEM(items, i)))
            Py_CLEAR(made);
    return made;
}

static PyObject *make_container_argument(struct capture *c, struct shadow *shadow)
{
    OWNED PyObject *items = make_items_argument(c, NULL, shadow, shadow->count);

    if (!items)
        return NULL;
    if (shadow->kind == SHADOW_LIST)
        return PySequence_List(items);
    if (shadow->kind == SHADOW_TUPLE)
        return Py_NewRef(items);
    return PySlice_New(PyTuple_GET_ITEM(items, 0), PyTuple_GET_ITEM(items, 1),
                       PyTuple_GET_ITEM(items, 2));
}

PyObject *make_node_argument(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (!shadow || c->failed)
        return NULL;
    switch (shadow->kind) {
    case SHADOW_CONST:
        return Py_NewRef(shadow->value);
    case SHADOW_NODE:
        return Py_XNewRef(shadow->node.node);
    case SHADOW_SOURCE:
        return make_source_argument(c, shadow);
    /* refuse a list if code of the program may keep it: each run of the graph makes a new list */
    case SHADOW_LIST:
        return c->foreign ? NULL : make_container_argument(c, shadow);
    case SHADOW_TUPLE:
    case SHADOW_SLICE:
        return make_container_argument(c, shadow);
    case SHADOW_DICT:
        return c->foreign ? NULL : make_dict_argument(c, shadow);
    default:
        return NULL;
    }
}

/* ---- shadows of iterators, methods and sets ---- */

struct shadow *make_iterator_shadow(struct capture *c, enum iteration how, PyObject *value,
                                    struct shadow *of)
{
    struct shadow *made = shadow_new(c, SHADOW_ITERATOR, 0);

    if (!made)
        return NULL;
    made->iterator.how = how;
    made->value = value ? capture_keep(c, value) : NULL;
    made->iterator.of = of;
    return made;
}

/* Guard the type of OWNER, so that a plan which reads the method from OWNER again finds the same
 * method. */
static void guard_type_of_owner(struct capture *c, struct shadow *owner)
{
    /* the guard that an array needs as an input of the graph is enough */
    if (value_is_array(owner->value))
        ensure_type_known(c, owner->value, owner);
    else if (!owner->source.guarded)
        guard_add(c, owner, "TYPE_MATCH", (PyObject *)Py_TYPE(owner->value));
}

struct shadow *make_method_shadow(struct capture *c, struct shadow *owner, PyObject *name,
                                  PyObject *function, struct shadow *source, struct shadow *bound)
{
    struct shadow *made = shadow_new(c, SHADOW_METHOD, 0);

    if (made) {
        made->method.owner = owner;
        made->method.name = capture_keep(c, name);
        made->method.source = source;
        made->method.bound = bound;
        made->value = function ? capture_keep(c, function) : NULL;
    }
    if (!function && is_source(owner))
        guard_type_of_owner(c, owner);
    return made;
}

bool is_known_set(PyObject *value, const struct shadow *of)
{
    if (!of || !PyAnySet_CheckExact(value))
        return false;
    return of->kind == SHADOW_CALL || of->kind == SHADOW_CONST;
}

/* Guard the items of a set that existed before the watched call. Returns false if an item is not
 * simple. */
static bool guard_items_of_set(struct capture *c, PyObject *value, struct shadow *of)
{
    OWNED PyObject *items = PySequence_Tuple(value);

    PyErr_Clear();
    if (!items)
        return false;
    if (value_is_simple(items) && !of->source.listed)
        of->source.listed = !guard_add(c, of, "EQUALS_MATCH", value);
    return of->source.listed && !c->failed;
}

bool ensure_set_known(struct capture *c, PyObject *value, struct shadow *of)
{
    if (is_known_set(value, of))
        return true;
    if (!PyAnySet_CheckExact(value) || !is_source(of) || c->foreign)
        return false;
    return guard_items_of_set(c, value, of);
}

/* Is VALUE a list or tuple whose items are simple and known? Adds guards. */
static bool are_items_simple(struct capture *c, PyObject *value, struct shadow *of)
{
    if (!ensure_type_known(c, value, of))
        return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(value, i);

        if (!value_is_simple(item) ||
            !ensure_value_known(c, item, get_item_shadow_at(c, value, of, i)))
            return false;
    }
    return true;
}

bool ensure_arguments_known(struct capture *c, const struct call *call, bool deep)
{
    /* check the types of all arguments before the first guard is added */
    for (int i = 0; i < call->count; i++)
        if (!value_is_plain(call->args[i]) && !(deep && is_sequence(call->args[i])))
            return false;
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];
        struct shadow *of = call->shadows[i];
        bool is_known;

        if (value_is_plain(value))
            is_known = ensure_value_known(c, value, of);
        else
            is_known = are_items_simple(c, value, of);
        if (!is_known)
            return false;
    }
    return true;
}

/* capture/src/value.c -- what is known of values: shadows, sources, and guards on what was read.
 * See capture.h.
 *
 * A source is guarded when something that depends on it has been done, and no earlier: an argument
 * that is only handed on needs none. What is read twice must be the same both times, else nothing
 * that was read is believed (capture->failed).
 *
 * Guards are checked before the graph runs. So behind an operation that may run code of the
 * program's (capture->foreign: an array's class is the program's and was not registered, or its
 * items are objects) nothing is read that such code may change: that is a break, and the resume
 * function reads it. */
#include "capture.h"
#include "tracer/compat/guards.h"

/* ---- arrays ---- */

static PyObject *array_types; /* owned list: instances of theirs and of subclasses are arrays */

static bool is_known_type(PyTypeObject *type)
{
    for (Py_ssize_t i = array_types ? PyList_GET_SIZE(array_types) : 0; i--;)
        if (PyList_GET_ITEM(array_types, i) == (PyObject *)type)
            return true;
    return false;
}

int value_register(PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "expected a class");
        return -1;
    }
    if (!array_types && !(array_types = PyList_New(0)))
        return -1;
    return is_known_type((PyTypeObject *)type) ? 0 : PyList_Append(array_types, type);
}

/* What MODULE, if it has been imported, has as NAME: borrowed, or NULL. */
static PyObject *loaded(const char *module, const char *name)
{
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);

    return found && PyModule_Check(found) ? PyDict_GetItemString(PyModule_GetDict(found), name)
                                          : NULL;
}

void values_begin(void)
{
    static const char *const names[][2] = {
        {"numpy", "ndarray"}, {"numpy", "generic"}, {"torch", "Tensor"}};
    static bool found[3];

    for (int i = 0; i < 3; i++) {
        PyObject *type = found[i] ? NULL : loaded(names[i][0], names[i][1]);
        if (type && PyType_Check(type))
            found[i] = !value_register(type);
    }
    PyErr_Clear();
}

bool value_is_array(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);

    if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyTuple_Type ||
        type == &PyFloat_Type || type == &PyFunction_Type)
        return false;
    for (Py_ssize_t i = array_types ? PyList_GET_SIZE(array_types) : 0; i--;)
        if (PyType_IsSubtype(type, (PyTypeObject *)PyList_GET_ITEM(array_types, i)))
            return true;
    return false;
}

/* The module of TYPE, or the name it is called by. Borrowed. */
static const char *module_of(PyTypeObject *type)
{
    PyObject *module =
        type->tp_flags & Py_TPFLAGS_HEAPTYPE ? _PyType_Lookup(type, word_of("__module__")) : NULL;
    const char *name =
        module && PyUnicode_CheckExact(module) ? PyUnicode_AsUTF8(module) : type->tp_name;

    PyErr_Clear();
    return name;
}

/* Is TYPE a class of numpy's or torch's own? */
static bool is_of_package(PyTypeObject *type)
{
    return is_array_package(module_of(type));
}

bool value_is_theirs(PyObject *value)
{
    return value_is_array(value) && !value_is_foreign(value) && is_of_package(Py_TYPE(value));
}

bool value_is_quiet(PyObject *value)
{
    return value_is_theirs(value) && strncmp(module_of(Py_TYPE(value)), "numpy", 5);
}

bool value_is_foreign(PyObject *value)
{
    OWNED PyObject *dtype = NULL, *objects = NULL;

    if (!is_of_package(Py_TYPE(value)))
        /* registered: the program says what its operations are */
        return !is_known_type(Py_TYPE(value));
    if (compat_optional_attribute(value, word_of("dtype"), &dtype) < 0 ||
        (dtype && compat_optional_attribute(dtype, word_of("hasobject"), &objects) < 0))
        return PyErr_Clear(), true;
    return objects == Py_True;
}

bool value_has_array(PyObject *value, int depth)
{
    if (depth && is_sequence(value))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value) && i < 64; i++)
            if (value_has_array(PySequence_Fast_GET_ITEM(value, i), depth - 1))
                return true;
    if (depth && PyDict_CheckExact(value)) {
        PyObject *key, *item;
        Py_ssize_t at = 0;
        while (PyDict_Next(value, &at, &key, &item) && at < 256)
            if (value_has_array(item, depth - 1))
                return true;
    }
    return value_is_array(value);
}

static bool is_simple(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);

    return value == Py_None || type == &PyLong_Type || type == &PyBool_Type ||
           type == &PyFloat_Type || type == &PyUnicode_Type ||
           /* not NotImplemented: whether that is true is warned of */
           type == &PyBytes_Type || type == &PyComplex_Type || type == &PyRange_Type ||
           value == Py_Ellipsis;
}

bool value_is_bound(PyObject *value)
{
    PyObject *self = PyCFunction_Check(value) ? PyCFunction_GET_SELF(value)
                     : PyMethod_Check(value)  ? PyMethod_GET_SELF(value)
                                              : NULL;

    return self && !PyModule_Check(self) && !PyType_Check(self);
}

/* Is there a weak reference to VALUE? Its death is seen, or runs a callback. */
static bool is_watched(PyObject *value)
{
    const Py_ssize_t offset = Py_TYPE(value)->tp_weaklistoffset;

    return offset && *(PyObject **)((char *)value + offset);
}

/* Does an array of numpy's or torch's die without a trace, and all that it is a view of? */
static bool array_is_quiet(PyObject *value)
{
    OWNED PyObject *at = Py_NewRef(value);

    for (int depth = 0; depth < 64; depth++) {
        PyObject *base = NULL;

        if (!value_is_array(at) || value_is_foreign(at) || is_watched(at))
            return false;
        /* what a program registered says what it is, and a tensor has a storage */
        if (!is_of_package(Py_TYPE(at)) || PyObject_HasAttr(at, word_of("data_ptr")))
            return true;
        if (compat_optional_attribute(at, word_of("base"), &base) < 0)
            return PyErr_Clear(), false;
        Py_SETREF(at, base ? base : Py_NewRef(Py_None));
        if (at == Py_None || PyBytes_CheckExact(at))
            return true;
    }
    return false;
}

static bool is_quiet(PyObject *value)
{
    return is_simple(value) || (PyType_Check(value) && !is_watched(value)) ||
           PyModule_Check(value) || (PyCFunction_Check(value) && !value_is_bound(value)) ||
           value_is_description(value) || (value_is_array(value) && array_is_quiet(value));
}

/* Is VALUE what LEAF asks for, or all that is in it, if it is a tuple, or, to DEPTH, a list or
 * dict? At most so many ITEMS are looked at, each as often as it is in there. */
static bool is_made_of(bool (*leaf)(PyObject *value), PyObject *value, int depth, int *items)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;

    if (--*items < 0 || leaf(value))
        return *items >= 0;
    if (PyTuple_CheckExact(value) || (depth > 0 && PyList_CheckExact(value))) {
        for (; at < PySequence_Fast_GET_SIZE(value); at++) {
            /* an attribute of an array may be code that empties the list */
            OWNED PyObject *one = Py_NewRef(PySequence_Fast_GET_ITEM(value, at));
            if (!is_made_of(leaf, one, depth - 1, items))
                return false;
        }
        return true;
    }
    if (depth <= 0 || !PyDict_CheckExact(value))
        return false;
    while (PyDict_Next(value, &at, &key, &item)) {
        OWNED PyObject *one = Py_NewRef(item);
        if (!value_is_simple(key) || !is_made_of(leaf, one, depth - 1, items))
            return false;
    }
    return true;
}

/* Of a type that nobody can change, and whose operations run no code of the program? */
bool value_is_simple(PyObject *value)
{
    return is_made_of(is_simple, value, 0, &(int){1000});
}

bool value_dies_quietly(PyObject *value)
{
    return is_made_of(is_quiet, value, 4, &(int){1000});
}

/* ---- shadows ---- */

void *capture_room(struct capture *c, size_t size)
{
    void *room = _PyArena_Malloc(c->arena, size);

    if (!room) {
        PyErr_Clear();
        c->failed = true;
    }
    return room ? memset(room, 0, size) : NULL;
}

void capture_holds(struct capture *c, PyObject *object)
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
    capture_holds(c, object);
    return object;
}

struct shadow *shadow_new(struct capture *c, enum shadow_kind kind, Py_ssize_t room)
{
    struct shadow *made = capture_room(c, sizeof *made);

    if (made && room && !(made->items = capture_room(c, sizeof *made->items * (size_t)room)))
        return NULL;
    if (made) {
        made->kind = kind;
        made->room = room;
        made->serial = ++c->serial;
    }
    return made;
}

struct shadow *shadow_const(struct capture *c, PyObject *value)
{
    struct shadow *made = capture_keep(c, value) ? shadow_new(c, SHADOW_CONST, 0) : NULL;

    if (made)
        made->value = value;
    return made;
}

struct shadow *shadow_node(struct capture *c, PyObject *node, bool fixed, bool counted)
{
    struct shadow *made = shadow_new(c, SHADOW_NODE, 0);

    if (made) {
        made->node.node = node;
        made->node.fixed = fixed;
        made->node.counted = counted;
    }
    return made;
}

bool shadow_fits(const struct shadow *shadow, PyObject *value)
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
    case SHADOW_OBJECT: /* __class__ can be set */
        return !shadow->object.of_class->value ||
               (PyObject *)type == shadow->object.of_class->value;
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
        return true; /* who uses it looks at the value */
    }
    return false;
}

/* SHADOW has room for so many items, with keys if they are KEYED. False: no memory. */
static bool make_room(struct capture *c, struct shadow *shadow, Py_ssize_t room, bool keyed)
{
    struct shadow **items = capture_room(c, sizeof *items * (size_t)room);
    PyObject **keys = keyed ? capture_room(c, sizeof *keys * (size_t)room) : NULL;

    if (!items || (keyed && !keys))
        return false;
    if (shadow->room)
        memcpy(items, shadow->items, sizeof *items * (size_t)shadow->room);
    if (shadow->room && shadow->keys && keyed)
        memcpy(keys, shadow->keys, sizeof *keys * (size_t)shadow->room);
    shadow->items = items;
    shadow->keys = keys;
    shadow->room = room;
    return true;
}

/* -1: no memory. */
int shadow_add(struct capture *c, struct shadow *container, PyObject *key, struct shadow *item)
{
    if (container->count == container->room &&
        !make_room(c, container, 2 * container->room + 4, key))
        return -1;
    if (key)
        container->keys[container->count] = capture_keep(c, key);
    container->items[container->count++] = item;
    return c->failed ? -1 : 0;
}

struct shadow *shadow_copy(struct capture *c, const struct shadow *shadow)
{
    struct shadow *made = capture_room(c, sizeof *made);

    if (!made)
        return NULL;
    *made = *shadow;
    return !made->room || make_room(c, made, made->room, made->keys) ? made : NULL;
}

/* One object, or two of a type that nobody can change that are equal? */
static bool is_same(PyObject *a, PyObject *b)
{
    return a == b || (a && b && Py_TYPE(a) == Py_TYPE(b) && value_is_simple(a) &&
                      value_is_simple(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1);
}

struct shadow **object_place(const struct shadow *object, PyObject *key)
{
    for (Py_ssize_t i = 0; i < object->count; i++)
        /* as a dict: 1 and True are one */
        if (PyObject_RichCompareBool(object->keys[i], key, Py_EQ) == 1)
            return &object->items[i];
    return NULL;
}

struct shadow *object_has(const struct shadow *object, PyObject *key)
{
    struct shadow **place = object_place(object, key);

    return place ? *place : NULL;
}

struct shadow *source_changed(const struct shadow *parent, char step, PyObject *key)
{
    for (struct shadow *one = parent->source.child; one; one = one->source.next)
        if (one->kind == SHADOW_CHANGED && one->source.step == step &&
            is_same(one->source.key, key))
            return one;
    return NULL;
}

bool shadow_change(struct capture *c, struct shadow *shadow)
{
    struct shadow *was;
    struct undo *undo;

    if (shadow->serial > c->innermost->serial || shadow->kept >= c->innermost->serial)
        return true;
    was = shadow_copy(c, shadow);
    undo = capture_room(c, sizeof *undo);
    if (!was || !undo)
        return false;
    *undo = (struct undo){c->undo, shadow, *was};
    shadow->kept = c->innermost->serial;
    c->undo = undo;
    return true;
}

void shadows_back(struct capture *c, struct undo *mark)
{
    for (; c->undo != mark; c->undo = c->undo->before)
        *c->undo->shadow = c->undo->was;
}

/* ---- sources ---- */

PyObject *capture_modules;

/* Can no code of the program's change what is read by STEP behind PARENT? */
static bool is_settled(const struct shadow *parent, char step)
{
    return step == 'l' || (step == '[' && parent->source.step && parent->value &&
                           PyTuple_CheckExact(parent->value) &&
                           is_settled(parent->source.parent, parent->source.step));
}

/* Is VALUE, what SHADOW is a source of, as it was when the call began, or can be believed to be? */
static bool is_believed(const struct capture *c, PyObject *value, const struct shadow *shadow)
{
    return !c->foreign || (is_settled(shadow->source.parent, shadow->source.step) &&
                           !PyList_CheckExact(value) && !PyDict_CheckExact(value));
}

struct shadow *source_read(struct capture *c, struct shadow *parent, char step, PyObject *key,
                           PyObject *value)
{
    struct shadow *one, **last = &parent->source.child;

    /* Each step of a path has a guard: the cost of all grows with the cube. */
    if (parent->source.steps == shim->deepest_path / 4 || (value && compat_is_lazy(value)) ||
        (c->foreign && !is_settled(parent, step)) || !is_apart(c, parent))
        return NULL;
    for (one = parent->source.child; one; last = &one->source.next, one = one->source.next)
        if (one->source.step == step && is_same(one->source.key, key)) {
            if (one->kind == SHADOW_CHANGED) {
                c->failed |= value && one->value != value;
                return c->failed ? NULL : one_of(c, one->items[0]);
            }
            c->failed |= value && !is_same(one->value, value); /* it has changed meanwhile */
            return c->failed ? NULL : one_of(c, one);
        }
    one = shadow_new(c, SHADOW_SOURCE, 0);
    if (!one)
        return NULL;
    one->source.step = step;
    one->source.steps = parent->source.steps + 1;
    one->source.parent = parent;
    one->source.key = capture_keep(c, key);
    one->value = capture_keep(c, value);
    *last = one;
    return c->failed ? NULL : one_of(c, one);
}

struct shadow *source_attribute(struct capture *c, struct shadow *parent, const char *name,
                                PyObject *value)
{
    OWNED PyObject *word = PyUnicode_InternFromString(name);

    return word ? source_read(c, parent, '.', word, value) : NULL;
}

PyObject *source_path(struct capture *c, struct shadow *source)
{
    PyObject *before = source->source.key && source->source.step != 'C'
                           ? source_path(c, source->source.parent)
                           : Py_None;
    PyObject *key = source->source.step == 'S' ? capture_modules
                    : source->source.key       ? source->source.key
                                               : Py_None;
    OWNED PyObject *made = source->source.path || !before
                               ? NULL
                               : Py_BuildValue("(OCO)", before, source->source.step, key);

    if (made)
        source->source.path = capture_keep(c, made);
    return source->source.path;
}

static bool is_rooted(const struct shadow *source)
{
    while (source->source.key)
        source = source->source.parent;
    return source->source.step != 0;
}

int guard_on(struct capture *c, struct shadow *source, const char *kind, PyObject *value)
{
    /* not that of a value that is only known */
    PyObject *path = is_rooted(source) ? source_path(c, source) : NULL;
    OWNED PyObject *guard = path ? Py_BuildValue("(sOO)", kind, path, value) : NULL;

    if (!guard || PyList_Append(c->guards, guard)) {
        PyErr_Clear();
        c->failed = true;
        return -1;
    }
    capture_holds(c, value);
    return 0;
}

void guard_length(struct capture *c, struct shadow *source, const char *kind, Py_ssize_t length)
{
    OWNED PyObject *number = PyLong_FromSsize_t(length);

    if (number)
        guard_on(c, source, kind, number);
}

bool value_is_description(PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;

    return !strncmp(name, "numpy.dtype", 11) || !strcmp(name, "torch.dtype") ||
           !strcmp(name, "torch.device") || !strcmp(name, "torch.layout") ||
           !strcmp(name, "torch.memory_format") || !strcmp(name, "torch.Size");
}

bool is_plain_slice(PyObject *value)
{
    const PySliceObject *slice = PySlice_Check(value) ? (const PySliceObject *)value : NULL;

    return slice && value_is_simple(slice->start) && value_is_simple(slice->stop) &&
           value_is_simple(slice->step);
}

bool value_known(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (!shadow)
        return false;
    if (shadow->kind == SHADOW_METHOD)
        return value_known(c, NULL, shadow->method.owner);
    for (Py_ssize_t i = 0;
         (is_container(shadow) || shadow->kind == SHADOW_NODE) && i < shadow->count; i++)
        if (!may_go_on(c) || !value_known(c, NULL, shadow->items[i]))
            return false;
    if (shadow->kind != SHADOW_SOURCE) /* a number is known if those are that it was made of */
        return shadow->kind == SHADOW_CONST || is_container(shadow) ||
               (shadow->kind == SHADOW_NODE && shadow->node.is_number);
    value = shadow->value;
    if (shadow->source.guarded == GUARDED_VALUE)
        return true;
    if (!value || value_is_array(value) || !is_believed(c, value, shadow))
        return false;
    /* made anew each time, and no guard may keep what it is bound to */
    if (value_is_bound(value))
        return false;
    if (!value_is_plain(value) && !PyFunction_Check(value) && !PyCFunction_Check(value) &&
        !PyMethod_Check(value) && !PyType_Check(value) && !PyModule_Check(value) &&
        !is_array_function(value))
        return false;
    guard_on(c, shadow,
             value == Py_None || PyBool_Check(value) ? "CONSTANT_MATCH"
             : PyModule_Check(value)                 ? "MODULE_MATCH"
             : value_is_plain(value)                 ? "EQUALS_MATCH"
                                                     : "FUNCTION_MATCH",
             value);
    shadow->source.guarded = GUARDED_VALUE;
    return !c->failed;
}

/* A function that was made in another: each call of that makes one of the same code. */
bool is_nested(PyObject *value)
{
    return PyFunction_Check(value) &&
           ((PyCodeObject *)PyFunction_GET_CODE(value))->co_flags & CO_NESTED;
}

bool value_type_known(struct capture *c, PyObject *value, struct shadow *shadow)
{
    if (!shadow)
        return false;
    if (shadow->kind != SHADOW_SOURCE)
        return true;
    value = shadow->value;
    if (!value || !is_believed(c, value, shadow) ||
        (shadow->source.changed && PyDict_CheckExact(value)) || !is_apart(c, shadow))
        return false;
    if (shadow->source.guarded)
        return true;
    if (!value_is_array(value) && !is_sequence(value) && !is_nested(value) &&
        !PyMethod_Check(value) /* made anew each time */ && value_known(c, value, shadow))
        return true;
    if (value_is_array(value))
        guard_on(c, shadow, "TENSOR_MATCH", value);
    else if (is_nested(value)) /* its cells are read by themselves */
        guard_on(c, shadow, "CLOSURE_MATCH", value);
    else
        guard_on(c, shadow, "TYPE_MATCH", (PyObject *)Py_TYPE(value));
    if (is_sequence(value))
        guard_length(c, shadow, PyTuple_CheckExact(value) ? "TUPLE_LENGTH" : "LIST_LENGTH",
                     PySequence_Fast_GET_SIZE(value));
    shadow->source.guarded = GUARDED_TYPE;
    return !c->failed;
}

struct shadow *value_part(struct capture *c, PyObject *value, struct shadow *of, PyObject *key,
                          PyObject *item)
{
    Py_ssize_t i;

    if (of->kind == SHADOW_CONST ||
        (of->kind == SHADOW_SOURCE && of->source.guarded == GUARDED_VALUE &&
         of->source.varies != VARIES_SHAPE))
        return shadow_const(c, item);
    if (of->kind == SHADOW_SOURCE && of->source.varies != VARIES_SHAPE)
        return source_read(c, of, '[', key, item);
    if (of->kind == SHADOW_DICT)
        return PyDict_GET_SIZE(value) == of->count ? object_has(of, key) : NULL;
    i = PyLong_AsSsize_t(key);
    i += i < 0 ? PySequence_Fast_GET_SIZE(value) : 0;
    if (is_varying_shape(of))
        return of->items[i] ? of->items[i] : shadow_const(c, item);
    return (of->kind == SHADOW_TUPLE || of->kind == SHADOW_LIST) &&
                   of->count == PySequence_Fast_GET_SIZE(value)
               ? of->items[i]
               : NULL;
}

struct shadow *value_item(struct capture *c, PyObject *value, struct shadow *shadow, Py_ssize_t i)
{
    OWNED PyObject *number = PyLong_FromSsize_t(i);

    return number && i < PySequence_Fast_GET_SIZE(value)
               ? value_part(c, value, shadow, number, PySequence_Fast_GET_ITEM(value, i))
               : NULL;
}

int shadow_add_items(struct capture *c, struct shadow *container, PyObject *value,
                     struct shadow *of)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        struct shadow *item = value_item(c, value, of, i);
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
    PyTypeObject *type = (PyTypeObject *)module_has(&module, "dyntrace.graph", "Node");
    OWNED PyObject *arguments = args, *named = keywords ? keywords : PyDict_New(), *made = NULL;

    if (!type || !PyType_Check((PyObject *)type) || !op || !args || !named)
        return NULL;
    if (!(made = type->tp_alloc(type, 0)) || PyObject_SetAttr(made, word_of("op"), op) ||
        PyObject_SetAttr(made, word_of("name"), name ? name : Py_None) ||
        PyObject_SetAttr(made, word_of("target"), target) ||
        PyObject_SetAttr(made, word_of("args"), arguments) ||
        PyObject_SetAttr(made, word_of("kwargs"), named))
        return NULL;
    return Py_NewRef(made);
}

bool numbers_may_vary(void)
{
    PyObject *version = loaded("numpy", "__version__");
    const char *text = version && PyUnicode_Check(version) ? PyUnicode_AsUTF8(version) : "";

    PyErr_Clear();
    return text && strncmp(text, "1.", 2);
}

bool is_varying(struct capture *c, struct shadow *shadow)
{
    const struct shadow *root = shadow;
    PyObject *path, *before;

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
    if (root == c->locals && (path = source_path(c, shadow))) {
        before = PyDict_GetItemWithError(c->numbers, path);
        shadow->source.varies =
            before && PyObject_RichCompareBool(before, shadow->value, Py_EQ) != 1 ? VARIES_INPUT
                                                                                  : VARIES_NOT;
        PyDict_SetItem(c->numbers, path,
                       shadow->source.varies == VARIES_INPUT ? Py_None : shadow->value);
    }
    PyErr_Clear();
    return shadow->source.varies == VARIES_INPUT;
}

struct shadow *varying_shape(struct capture *c, PyObject *value, struct shadow *of)
{
    PyObject *path = of && of->kind == SHADOW_SOURCE && of->source.key && c->numbers && !c->foreign
                         ? source_path(c, of)
                         : NULL;
    OWNED PyObject *shape = path ? PyObject_GetAttr(value, word_of("shape")) : NULL;
    PyObject *before = shape && c->sizes ? PyDict_GetItemWithError(c->sizes, path) : NULL;
    const Py_ssize_t count = shape && PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 0;
    const bool seen = before && PyTuple_CheckExact(before) && PyTuple_GET_SIZE(before) == count;
    struct shadow *made = count ? of->source.child : NULL,
                  **items = count ? capture_room(c, sizeof *items * (size_t)count) : NULL;

    PyErr_Clear();
    while (made && (made->source.step != '.' || made->source.key != word_of("shape")))
        made = made->source.next;
    if (made)
        return PyObject_RichCompareBool(made->value, shape, Py_EQ) == 1 ? made : NULL;
    for (Py_ssize_t i = 0; items && i < count; i++) { /* as _sizes() in _capture.py */
        OWNED PyObject *number = PyLong_FromSsize_t(i);
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        if (PyLong_AsSsize_t(size) <= 1 ||
            (seen ? PyObject_RichCompareBool(PyTuple_GET_ITEM(before, i), size, Py_EQ) == 1
                  : PyTuple_GET_ITEM(c->callback, CAPTURE_DYNAMIC) != Py_True))
            continue;
        if (!number || (!made && !(made = source_attribute(c, of, "shape", shape))) ||
            !(items[i] = source_read(c, made, '[', number, size)))
            return NULL;
        items[i]->source.varies = VARIES_INPUT;
        made->source.varies = VARIES_SHAPE;
        made->items = items;
    }
    return made;
}

/* The placeholder of SOURCE, an array or a number that varies: borrowed. Its name is yet to be made
 * of its path. */
static PyObject *placeholder(struct capture *c, struct shadow *source)
{
    PyObject *path = source_path(c, source);
    OWNED PyObject *node = NULL;

    if (source->source.placeholder)
        return source->source.placeholder;
    node = path ? node_new(word_of("placeholder"), path, path, PyTuple_New(0), NULL) : NULL;
    if (!node || PyList_Append(c->placeholders, node) || PyList_Append(c->inputs, source->value) ||
        shadow_add(c, c->taken, NULL, source)) {
        c->failed = true;
        return NULL;
    }
    capture_holds(c, source->value); /* as an input */
    c->foreign |= !source->source.varies && value_is_foreign(source->value);
    return source->source.placeholder = capture_keep(c, node);
}

enum { MOST_NESTED = 8, MOST_GUARDS = 10000 };

/* Of COUNT items of SHADOW, a source's VALUE or built here: a new tuple, or NULL. */
static PyObject *items_argument(struct capture *c, PyObject *value, struct shadow *shadow,
                                Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made && i < count; i++) {
        struct shadow *item = !may_go_on(c)                   ? NULL
                              : shadow->kind != SHADOW_SOURCE ? shadow->items[i]
                              : PyList_GET_SIZE(c->guards) < MOST_GUARDS
                                  ? value_item(c, value, shadow, i)
                                  : NULL;
        PyObject *one = c->nesting++ < MOST_NESTED && item ? value_argument(c, NULL, item) : NULL;
        c->nesting--;
        if (one)
            PyTuple_SET_ITEM(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

PyObject *value_argument(struct capture *c, PyObject *value, struct shadow *shadow)
{
    OWNED PyObject *items = NULL;
    PyObject *made;

    if (!shadow || c->failed)
        return NULL;
    switch (shadow->kind) {
    case SHADOW_CONST:
        return Py_NewRef(shadow->value);
    case SHADOW_NODE:
        return Py_XNewRef(shadow->node.node);
    case SHADOW_SOURCE:
        value = shadow->value;
        if (!value)
            return NULL;
        if (value_is_array(value))
            return value_type_known(c, value, shadow) ? Py_XNewRef(placeholder(c, shadow)) : NULL;
        if (is_varying(c, shadow)) {
            if (!shadow->source.guarded)
                guard_on(c, shadow, "TYPE_MATCH", (PyObject *)&PyLong_Type);
            shadow->source.guarded = GUARDED_TYPE;
            return Py_XNewRef(placeholder(c, shadow));
        }
        if (value_known(c, value, shadow))
            return Py_NewRef(value);
        if (!is_sequence(value) || !value_type_known(c, value, shadow))
            return NULL;
        items = items_argument(c, value, shadow, PySequence_Fast_GET_SIZE(value));
        return items && PyList_CheckExact(value) ? PySequence_List(items) : Py_XNewRef(items);
    case SHADOW_LIST: /* a new one each time: the program's code may keep it */
        if (c->foreign)
            return NULL; /* fall through */
    case SHADOW_TUPLE:
    case SHADOW_SLICE:
        items = items_argument(c, NULL, shadow, shadow->count);
        if (items && shadow->kind == SHADOW_SLICE)
            return PySlice_New(PyTuple_GET_ITEM(items, 0), PyTuple_GET_ITEM(items, 1),
                               PyTuple_GET_ITEM(items, 2));
        return items && shadow->kind == SHADOW_LIST ? PySequence_List(items) : Py_XNewRef(items);
    case SHADOW_DICT:
        items = c->foreign ? NULL : items_argument(c, NULL, shadow, shadow->count);
        made = items ? PyDict_New() : NULL;
        for (Py_ssize_t i = 0; made && i < shadow->count; i++)
            if (PyDict_SetItem(made, shadow->keys[i], PyTuple_GET_ITEM(items, i)))
                Py_CLEAR(made);
        return made;
    default:
        return NULL;
    }
}

/* ---- shadows of more ---- */

struct shadow *iterator_shadow(struct capture *c, enum iteration how, PyObject *value,
                               struct shadow *of)
{
    struct shadow *made = shadow_new(c, SHADOW_ITERATOR, 0);

    if (made) {
        made->iterator.how = how;
        made->value = value ? capture_keep(c, value) : NULL;
        made->iterator.of = of;
    }
    return made;
}

struct shadow *method_of(struct capture *c, struct shadow *owner, PyObject *name,
                         PyObject *function, struct shadow *source, struct shadow *self)
{
    struct shadow *made = shadow_new(c, SHADOW_METHOD, 0);

    if (made) {
        made->method.owner = owner;
        made->method.name = capture_keep(c, name);
        made->value = function ? capture_keep(c, function) : NULL;
        made->method.source = source;
        made->method.bound = self;
    }
    if (!function && owner->kind == SHADOW_SOURCE && value_is_array(owner->value))
        /* the plan reads it, which must do as little at each hit */
        value_type_known(c, owner->value, owner);
    else if (!function && owner->kind == SHADOW_SOURCE && !owner->source.guarded)
        guard_on(c, owner, "TYPE_MATCH", (PyObject *)Py_TYPE(owner->value));
    return made;
}

bool is_set(PyObject *value, const struct shadow *of)
{
    return of && PyAnySet_CheckExact(value) &&
           (of->kind == SHADOW_CALL || of->kind == SHADOW_CONST);
}

bool set_known(struct capture *c, PyObject *value, struct shadow *of)
{
    OWNED PyObject *items =
        PyAnySet_CheckExact(value) && of && of->kind == SHADOW_SOURCE && !c->foreign
            ? PySequence_Tuple(value)
            : NULL;

    if (items && value_is_simple(items) && !of->source.listed)
        of->source.listed = !guard_on(c, of, "EQUALS_MATCH", value);
    PyErr_Clear();
    return is_set(value, of) || (items && of->source.listed && !c->failed);
}

bool are_known(struct capture *c, const struct call *call, bool deep)
{
    for (int i = 0; i < call->count; i++)
        if (!value_is_plain(call->args[i]) && !(deep && is_sequence(call->args[i])))
            return false;
    for (int i = 0; i < call->count; i++) {
        PyObject *value = call->args[i];
        struct shadow *of = call->shadows[i];
        const bool plain = value_is_plain(value);
        if (!(plain ? value_known(c, value, of) : value_type_known(c, value, of)))
            return false;
        for (Py_ssize_t j = 0; !plain && j < PySequence_Fast_GET_SIZE(value); j++)
            if (!value_is_simple(PySequence_Fast_GET_ITEM(value, j)) ||
                !value_known(c, PySequence_Fast_GET_ITEM(value, j), value_item(c, value, of, j)))
                return false;
    }
    return true;
}

/* tracer/guards/kinds.c -- the kinds of guards: a row of the table each, and a case of guard_prepare(), guard_check()
 * and guard_actual().
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/guards/tree.h"

#include <string.h>

enum {
    TYPE_MATCH, ID_MATCH, EQUALS_MATCH, NONE_MATCH, NOT_NONE, TRUE_MATCH, FALSE_MATCH, HASATTR, NO_HASATTR, DICT_LENGTH,
    LIST_LENGTH, TUPLE_LENGTH, SEQUENCE_LENGTH, DICT_KEYS, DICT_CONTAINS, DICT_NOT_CONTAINS, FUNCTION_MATCH,
    CLOSURE_MATCH, BUILTIN_MATCH, MODULE_MATCH, WEAKREF_ALIVE, GLOBAL_STATE, TENSOR_MATCH, SHAPE_BOUND, SHAPE_DIVISIBLE,
    SHAPE_EQUAL, NO_ALIASING, LAMBDA,
};

#define KIND(NAME, ...) [NAME] = {#NAME, NAME, __VA_ARGS__}

/* words, aspect, flags, reveals */
static const struct guard_kind kinds[] = {
    KIND(TYPE_MATCH, "type(%U) is %U", "type", 0, REVEALS_TYPE),
    KIND(ID_MATCH, "%U is %U", "identity", 0, REVEALS_VALUE),
    KIND(EQUALS_MATCH, "%U == %U", "value", 0, REVEALS_VALUE),
    KIND(NONE_MATCH, "%U is %U", "value", 0, REVEALS_KIND),
    KIND(NOT_NONE, "%U is %U", "value", 0, REVEALS_KIND),
    KIND(TRUE_MATCH, "%U is %U", "value", 0, REVEALS_KIND),
    KIND(FALSE_MATCH, "%U is %U", "value", 0, REVEALS_KIND),
    KIND(HASATTR, "hasattr(%U, %U)", "attribute", STAYS, REVEALS_VALUE),
    KIND(NO_HASATTR, "not hasattr(%U, %U)", "attribute", STAYS, REVEALS_VALUE),
    KIND(DICT_LENGTH, "len(%U) == %U", "length", 0, REVEALS_TYPE),
    KIND(LIST_LENGTH, "len(%U) == %U", "length", 0, REVEALS_TYPE),
    KIND(TUPLE_LENGTH, "len(%U) == %U", "length", 0, REVEALS_TYPE),
    KIND(SEQUENCE_LENGTH, "len(%U) == %U", "length", STAYS, REVEALS_SIZE),
    KIND(DICT_KEYS, "%U.keys() == set(%U)", "keys", 0, REVEALS_VALUE),
    KIND(DICT_CONTAINS, "%.0U%U in %U", "keys", 0, REVEALS_VALUE),
    KIND(DICT_NOT_CONTAINS, "%.0U%U not in %U", "keys", 0, REVEALS_VALUE),
    KIND(FUNCTION_MATCH, "%U is %U", "identity", 0, REVEALS_VALUE),
    KIND(CLOSURE_MATCH, "%U.__code__ is %U", "identity", 0, REVEALS_VALUE),
    KIND(BUILTIN_MATCH, "%U is %U", "identity", 0, REVEALS_VALUE),
    KIND(MODULE_MATCH, "%U is %U", "identity", 0, REVEALS_VALUE),
    KIND(WEAKREF_ALIVE, "%U is alive", "alive", 0, REVEALS_NOTHING),
    KIND(GLOBAL_STATE, "%U == %U", "state", 0, REVEALS_VALUE),
    KIND(TENSOR_MATCH, "%U is %U", NULL, 0, REVEALS_TENSOR),
    KIND(SHAPE_BOUND, "%U is %U", "value", STAYS, REVEALS_SIZE),
    KIND(SHAPE_DIVISIBLE, "%U is %U", "value", STAYS, REVEALS_SIZE),
    KIND(SHAPE_EQUAL, "%U are equal", "relation", RELATION | STAYS, REVEALS_SIZE),
    KIND(NO_ALIASING, "%U are different objects", "relation", RELATION, REVEALS_NOTHING),
    KIND(LAMBDA, "%.0U%U", NULL, RELATION | STAYS, REVEALS_VALUE),
};

const struct guard_kind *guard_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- what Python gave ---- */

static int expect(struct guard_leaf *leaf, PyObject *text)
{
    Py_XSETREF(leaf->expected, text);
    return text ? 0 : -1;
}

static int expect_object(struct guard_leaf *leaf, PyObject *tree, PyObject *object)
{
    return guard_identify(tree, leaf, 0, object) ? -1 : expect(leaf, Py_NewRef(leaf->is[0].text));
}

/* Of types whose comparison runs no code of the program, down to DEPTH? */
static bool is_simple(PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value);

    if (PyTuple_CheckExact(value)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
            if (!depth || !is_simple(PyTuple_GET_ITEM(value, i), depth - 1))
                return false;
        return true;
    }
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
           type == &PyBytes_Type || type == &PyComplex_Type || value == Py_None;
}

static int expect_value(struct guard_leaf *leaf, PyObject *value)
{
    leaf->constant = Py_NewRef(value);
    leaf->stays |= !is_simple(value, 100);
    return expect(leaf, values_repr(value));
}

static bool is_callable(const struct guard_leaf *leaf, PyObject *object)
{
    if (!PyCallable_Check(object))
        PyErr_Format(PyExc_TypeError, "%s: expected a callable, got %s", leaf->kind->name, Py_TYPE(object)->tp_name);
    return PyCallable_Check(object);
}

/* A method is made anew at each access. What must stay the same of it is its object, is[1], and its function, is[0], or
 * a builtin's definition. */
static int expect_function(struct guard_leaf *leaf, PyObject *tree, PyObject *object)
{
    PyObject *self = PyMethod_Check(object) ? PyMethod_GET_SELF(object) : NULL;

    if (PyCFunction_Check(object) && PyCFunction_GET_SELF(object) && !PyModule_Check(PyCFunction_GET_SELF(object))) {
        self = PyCFunction_GET_SELF(object);
        leaf->definition = ((PyCFunctionObject *)object)->m_ml;
    }
    if (!self)
        return expect_object(leaf, tree, object);
    if (guard_identify(tree, leaf, 1, self))
        return -1;
    if (leaf->definition)
        return expect(leaf, PyUnicode_FromFormat("builtin %s of %U", leaf->definition->ml_name, leaf->is[1].text));
    if (guard_identify(tree, leaf, 0, PyMethod_GET_FUNCTION(object)))
        return -1;
    return expect(leaf, PyUnicode_FromFormat("%U of %U", leaf->is[0].text, leaf->is[1].text));
}

/* What is there already is a weak reference to OBJECT, or what calling one gave. */
static int expect_alive(struct guard_leaf *leaf, PyObject *tree, PyObject *object)
{
    if (PyWeakref_Check(object))
        object = ((PyWeakReference *)object)->wr_object; /* borrowed */
    /* Without references it is being freed. */
    return object == Py_None || !Py_REFCNT(object) ? 0 : guard_identify(tree, leaf, 0, object);
}

static int expect_bound(struct guard_leaf *leaf, PyObject *low, PyObject *high)
{
    leaf->number = low == Py_None ? PY_SSIZE_T_MIN : PyLong_AsSsize_t(low);
    leaf->limit = high == Py_None ? PY_SSIZE_T_MAX : PyErr_Occurred() ? 0 : PyLong_AsSsize_t(high);
    if (PyErr_Occurred())
        return -1;
    if (high == Py_None)
        return expect(leaf, PyUnicode_FromFormat("at least %zd", leaf->number));
    if (low == Py_None)
        return expect(leaf, PyUnicode_FromFormat("at most %zd", leaf->limit));
    if (leaf->number == leaf->limit)
        return expect(leaf, PyUnicode_FromFormat("%zd", leaf->number));
    return expect(leaf, PyUnicode_FromFormat("%zd to %zd", leaf->number, leaf->limit));
}

int guard_prepare(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *object = Py_None, *other;

    switch (leaf->kind->id) {
    case TENSOR_MATCH:
        return tensor_prepare(leaf, tree, arguments);
    case SHAPE_EQUAL:
    case NO_ALIASING:
        return PyArg_ParseTuple(arguments, "") ? 0 : -1;
    case SHAPE_BOUND:
        return PyArg_ParseTuple(arguments, "OO:SHAPE_BOUND", &object, &other) ? expect_bound(leaf, object, other) : -1;
    case LAMBDA:
        if (!PyArg_ParseTuple(arguments, "OU:LAMBDA", &object, &other) || !is_callable(leaf, object))
            return -1;
        leaf->constant = Py_NewRef(object);
        return expect(leaf, Py_NewRef(other));
    case DICT_LENGTH:
    case LIST_LENGTH:
    case TUPLE_LENGTH:
    case SEQUENCE_LENGTH:
        if (!PyArg_ParseTuple(arguments, "n", &leaf->number))
            return -1;
        return expect(leaf, PyUnicode_FromFormat("%zd", leaf->number));
    case SHAPE_DIVISIBLE:
        if (!PyArg_ParseTuple(arguments, "n:SHAPE_DIVISIBLE", &leaf->number))
            return -1;
        if (leaf->number >= 1)
            return expect(leaf, PyUnicode_FromFormat("a multiple of %zd", leaf->number));
        PyErr_Format(PyExc_ValueError, "SHAPE_DIVISIBLE: %zd is no divisor: give 1 or more", leaf->number);
        return -1;
    case TYPE_MATCH:
        if (!PyArg_ParseTuple(arguments, "O!:TYPE_MATCH", &PyType_Type, &object) ||
            guard_identify(tree, leaf, 0, object))
            return -1;
        return expect(leaf, values_type((PyTypeObject *)object));
    case HASATTR:
    case NO_HASATTR:
        if (!PyArg_ParseTuple(arguments, "U", &object) || !(leaf->constant = PyUnicode_FromObject(object)))
            return -1;
        PyUnicode_InternInPlace(&leaf->constant);
        return expect(leaf, values_repr(object));
    case DICT_KEYS:
        return PyArg_ParseTuple(arguments, "O!", &PyTuple_Type, &object) ? expect_value(leaf, object) : -1;
    default:
        break;
    }
    if (!PyArg_ParseTuple(arguments, leaf->kind->id == WEAKREF_ALIVE ? "|O" : "O", &object))
        return -1;
    switch (leaf->kind->id) {
    case WEAKREF_ALIVE:
        return expect_alive(leaf, tree, object);
    case FUNCTION_MATCH:
        return expect_function(leaf, tree, object);
    case BUILTIN_MATCH:
        return is_callable(leaf, object) ? expect_function(leaf, tree, object) : -1;
    case ID_MATCH:
    case MODULE_MATCH:
    case CLOSURE_MATCH:
        return expect_object(leaf, tree, object);
    case NOT_NONE:
        return expect_value(leaf, object) ? -1 : expect(leaf, PyUnicode_FromFormat("not %U", leaf->expected));
    case DICT_CONTAINS:
    case DICT_NOT_CONTAINS:
        return expect_value(leaf, object) || PyObject_Hash(object) == -1 ? -1 : 0;
    default:
        return expect_value(leaf, object);
    }
}

/* ---- does it hold? ---- */

/* Not in line, so that guard_check() needs no stack frame: most guards are short. */
#define APART __attribute__((noinline))

/* Equal and of the same type, down through tuples and lists: 1, True and 1.0 are three. A nan is as good as another. */
static int same(PyObject *wanted, PyObject *value)
{
    int result = 1;

    if (wanted == value)
        return 1;
    if (Py_TYPE(wanted) != Py_TYPE(value))
        return 0;
    if (PyUnicode_CheckExact(wanted))
        return PyUnicode_Compare(wanted, value) == 0;
    if (PyFloat_CheckExact(wanted)) {
        double a = PyFloat_AS_DOUBLE(wanted), b = PyFloat_AS_DOUBLE(value);
        return a == b || (a != a && b != b);
    }
    if (!PyTuple_CheckExact(wanted) && !PyList_CheckExact(wanted))
        return PyObject_RichCompareBool(wanted, value, Py_EQ);
    if (Py_SIZE(wanted) != Py_SIZE(value))
        return 0;
    if (Py_EnterRecursiveCall(" in a guard"))
        return -1;
    for (Py_ssize_t i = 0; result == 1 && i < Py_SIZE(wanted); i++) {
        PyObject *first = Py_NewRef(PySequence_Fast_GET_ITEM(wanted, i));
        PyObject *second = i < Py_SIZE(value) ? Py_NewRef(PySequence_Fast_GET_ITEM(value, i)) : NULL;
        result = second ? same(first, second) : 0; /* none: an __eq__ made it shorter */
        Py_DECREF(first);
        Py_XDECREF(second);
    }
    Py_LeaveRecursiveCall();
    return result;
}

static APART int is_function(const struct guard_leaf *leaf, PyObject *value)
{
    if (!leaf->is[1].at)
        return guard_is(&leaf->is[0], value);
    if (leaf->definition)
        return PyCFunction_Check(value) && ((PyCFunctionObject *)value)->m_ml == leaf->definition &&
               PyCFunction_GET_SELF(value) && guard_is(&leaf->is[1], PyCFunction_GET_SELF(value));
    return PyMethod_Check(value) && guard_is(&leaf->is[0], PyMethod_GET_FUNCTION(value)) &&
           guard_is(&leaf->is[1], PyMethod_GET_SELF(value));
}

/* VALUE is a weak reference, or what calling one gave. */
static APART int is_alive(PyObject *value)
{
    return (PyWeakref_Check(value) ? ((PyWeakReference *)value)->wr_object : value) != Py_None;
}

static APART int has_attribute(const struct guard_leaf *leaf, PyObject *object)
{
    PyObject *value;
    int found = compat_optional_attribute(object, leaf->constant, &value);

    Py_XDECREF(value);
    return found < 0 ? -1 : found == (leaf->kind->id == HASATTR);
}

static APART int has_no_key(const struct guard_leaf *leaf, PyObject *dict)
{
    int found = PyDict_Contains(dict, leaf->constant);

    return found < 0 ? -1 : !found;
}

static APART int has_length(const struct guard_leaf *leaf, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    Py_ssize_t length;

    if (!(type->tp_as_sequence && type->tp_as_sequence->sq_length) &&
        !(type->tp_as_mapping && type->tp_as_mapping->mp_length))
        return 0;
    length = PyObject_Size(value);
    return length < 0 ? -1 : length == leaf->number;
}

/* The same set of keys; order does not matter. */
static APART int has_keys(const struct guard_leaf *leaf, PyObject *dict)
{
    Py_ssize_t count = PyTuple_GET_SIZE(leaf->constant);
    int found = 1;

    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != count)
        return 0;
    for (Py_ssize_t i = 0; found == 1 && i < count; i++)
        found = PyDict_Contains(dict, PyTuple_GET_ITEM(leaf->constant, i));
    return found;
}

/* VALUE as an integer: 1, 0 if it is none (or beyond 64 bits), -1 with an exception. */
static int integer(PyObject *value, long long *number)
{
    PyObject *index = NULL;
    int overflow;

    if (!PyLong_Check(value)) {
        if (!PyIndex_Check(value))
            return 0;
        index = value = PyNumber_Index(value); /* numpy's and torch's integers */
        if (!index)
            return -1;
    }
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    Py_XDECREF(index);
    return !overflow;
}

static APART int fits_shape(const struct guard_leaf *leaf, PyObject *value)
{
    long long number;
    int result = integer(value, &number);

    if (result != 1)
        return result;
    return leaf->kind->id == SHAPE_BOUND ? leaf->number <= number && number <= leaf->limit : number % leaf->number == 0;
}

static APART int are_equal(const struct guard_leaf *leaf, PyObject *const *values)
{
    long long first, other;
    int result = integer(values[0], &first);

    for (uint32_t i = 1; result == 1 && i < leaf->slot_count; i++) {
        result = integer(values[i], &other);
        if (result == 1)
            result = first == other;
    }
    return result;
}

static int by_address(const void *a, const void *b)
{
    PyObject *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

static APART int are_different(const struct guard_leaf *leaf, PyObject *const *values)
{
    uint32_t count = leaf->slot_count;
    PyObject **sorted;
    int result = 1;

    if (count <= 16) {
        for (uint32_t i = 1; i < count; i++)
            for (uint32_t j = 0; j < i; j++)
                if (values[i] == values[j])
                    return 0;
        return 1;
    }
    sorted = PyMem_New(PyObject *, count);
    if (!sorted) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_address);
    for (uint32_t i = 1; i < count && result; i++)
        result = sorted[i] != sorted[i - 1];
    PyMem_Free(sorted);
    return result;
}

static APART int call_lambda(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *result = PyObject_Vectorcall(leaf->constant, values, leaf->slot_count, NULL);
    int passed = result == Py_True;

    if (result && !PyBool_Check(result)) {
        PyErr_Format(PyExc_TypeError, "the guard %U returned %s, not bool", leaf->expected, Py_TYPE(result)->tp_name);
        passed = -1;
    }
    Py_XDECREF(result);
    return result ? passed : -1;
}

int guard_check(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *value = values[0];

    switch (leaf->kind->id) {
    case TYPE_MATCH:
        return guard_is(&leaf->is[0], (PyObject *)Py_TYPE(value));
    case ID_MATCH:
    case MODULE_MATCH:
        return guard_is(&leaf->is[0], value);
    case EQUALS_MATCH:
    case GLOBAL_STATE:
        return same(leaf->constant, value);
    case NONE_MATCH:
    case TRUE_MATCH:
    case FALSE_MATCH:
        return value == leaf->constant;
    case NOT_NONE:
        return value != leaf->constant;
    case HASATTR:
    case NO_HASATTR:
        return has_attribute(leaf, value);
    case DICT_LENGTH:
        return PyDict_Check(value) && PyDict_GET_SIZE(value) == leaf->number;
    case LIST_LENGTH:
        return PyList_Check(value) && PyList_GET_SIZE(value) == leaf->number;
    case TUPLE_LENGTH:
        return PyTuple_Check(value) && PyTuple_GET_SIZE(value) == leaf->number;
    case SEQUENCE_LENGTH:
        return has_length(leaf, value);
    case DICT_KEYS:
        return has_keys(leaf, value);
    case DICT_CONTAINS:
        return PyDict_Check(value) ? PyDict_Contains(value, leaf->constant) : 0;
    case DICT_NOT_CONTAINS:
        return PyDict_Check(value) ? has_no_key(leaf, value) : 0;
    case FUNCTION_MATCH:
    case BUILTIN_MATCH:
        return is_function(leaf, value);
    case CLOSURE_MATCH: /* functions made by the same def share the code object */
        return PyFunction_Check(value) && guard_is(&leaf->is[0], PyFunction_GET_CODE(value));
    case WEAKREF_ALIVE:
        return is_alive(value);
    case TENSOR_MATCH:
        return tensor_check(leaf, value);
    case SHAPE_BOUND:
    case SHAPE_DIVISIBLE:
        return fits_shape(leaf, value);
    case SHAPE_EQUAL:
        return are_equal(leaf, values);
    case NO_ALIASING:
        return are_different(leaf, values);
    case LAMBDA:
        return call_lambda(leaf, values);
    }
    __builtin_unreachable();
}

/* ---- what is there instead ---- */

/* The text of VALUE, which is released. */
static PyObject *repr_of(PyObject *value)
{
    PyObject *text = value ? values_repr(value) : NULL;

    Py_XDECREF(value);
    return text;
}

static PyObject *actual_type(const struct guard_leaf *leaf, PyObject *value, struct guard_words *words)
{
    PyObject *text = values_type(Py_TYPE(value));

    if (text && PyUnicode_Compare(text, leaf->expected) == 0) { /* made twice: a class in a function */
        Py_DECREF(text);
        words->expected = Py_NewRef(leaf->is[0].text);
        return values_object((PyObject *)Py_TYPE(value));
    }
    return text;
}

static PyObject *actual_value(const struct guard_leaf *leaf, PyObject *value, struct guard_words *words)
{
    PyObject *text = values_repr(value);

    if (!text || Py_TYPE(leaf->constant) == Py_TYPE(value) || PyUnicode_Compare(text, leaf->expected))
        return text;
    words->expected = values_format("%U (%U)", Py_NewRef(leaf->expected), values_type(Py_TYPE(leaf->constant)));
    return values_format("%U (%U)", text, values_type(Py_TYPE(value)));
}

static PyObject *actual_length(const struct guard_leaf *leaf, PyObject *value)
{
    Py_ssize_t length = PyObject_Size(value);

    if (length >= 0 && length != leaf->number)
        return PyUnicode_FromFormat("%zd", length);
    if (length < 0 && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    return values_format("a %U", values_type(Py_TYPE(value)));
}

static PyObject *actual_keys(PyObject *dict)
{
    PyObject *keys = PyDict_Keys(dict), *tuple = keys ? PyList_AsTuple(keys) : NULL;

    Py_XDECREF(keys);
    return repr_of(tuple);
}

static PyObject *actual_numbers(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *tuple = PyTuple_New(leaf->slot_count);

    for (uint32_t i = 0; tuple && i < leaf->slot_count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
    return repr_of(tuple);
}

static PyObject *actual_same(const struct guard_leaf *leaf, PyObject *const *values)
{
    for (uint32_t i = 1; i < leaf->slot_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (values[i] == values[j])
                return PyUnicode_FromFormat("number %u and number %u are the same object", j + 1, i + 1);
    return PyUnicode_FromString("different objects by now");
}

PyObject *guard_actual(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    const int id = leaf->kind->id;
    PyObject *value = values[0];

    switch (id) {
    case TYPE_MATCH:
        return actual_type(leaf, value, words);
    case ID_MATCH:
    case MODULE_MATCH:
    case FUNCTION_MATCH:
    case BUILTIN_MATCH:
        return values_object(value);
    case CLOSURE_MATCH:
        return values_object(PyFunction_Check(value) ? PyFunction_GET_CODE(value) : value);
    case EQUALS_MATCH:
    case GLOBAL_STATE:
        return actual_value(leaf, value, words);
    case HASATTR:
    case NO_HASATTR:
        words->expected = PyUnicode_FromFormat(id == HASATTR ? "an attribute %U" : "no attribute %U", leaf->expected);
        return values_format(id == HASATTR ? "%U without it" : "%U with it", values_type(Py_TYPE(value)));
    case DICT_LENGTH:
    case LIST_LENGTH:
    case TUPLE_LENGTH:
    case SEQUENCE_LENGTH:
        return actual_length(leaf, value);
    case DICT_KEYS:
        return PyDict_Check(value) ? actual_keys(value) : values_type(Py_TYPE(value));
    case DICT_CONTAINS:
    case DICT_NOT_CONTAINS:
        if (!PyDict_Check(value))
            return values_type(Py_TYPE(value));
        words->expected = PyUnicode_FromFormat(id == DICT_CONTAINS ? "key %U" : "no key %U", leaf->expected);
        return PyUnicode_FromFormat(id == DICT_CONTAINS ? "no such key among %zd" : "there, one of %zd",
                                    PyDict_GET_SIZE(value));
    case WEAKREF_ALIVE:
        words->expected = PyUnicode_FromString("alive");
        return PyUnicode_FromString("dead");
    case TENSOR_MATCH:
        return tensor_actual(leaf, value, words);
    case SHAPE_EQUAL:
        return actual_numbers(leaf, values);
    case NO_ALIASING:
        words->expected = PyUnicode_FromFormat("%u different objects", leaf->slot_count);
        return actual_same(leaf, values);
    case LAMBDA:
        words->expected = PyUnicode_FromString("True");
        return PyUnicode_FromString("False");
    default:
        return values_repr(value);
    }
}

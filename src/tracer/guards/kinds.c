/* tracer/guards/kinds.c -- the kinds of guards: one row of a table each.
 *
 * Runs in: the traced process, under the GIL.
 *
 * A kind's functions are prepare_KIND (take what Python gave), check_KIND and actual_KIND; similar kinds share them. */
#include "tracer/guards/tree.h"

#include <string.h>

/* ---- texts ---- */

static PyObject *actual_repr(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    return values_repr(values[0]);
}

static PyObject *actual_object(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    return values_object(values[0]);
}

static PyObject *actual_type(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    return values_type(Py_TYPE(values[0]));
}

/* The text of VALUE, which is released. */
static PyObject *repr_of(PyObject *value)
{
    PyObject *text = value ? values_repr(value) : NULL;

    Py_XDECREF(value);
    return text;
}

static int expect(struct guard_leaf *leaf, PyObject *text)
{
    Py_XSETREF(leaf->expected, text);
    return text ? 0 : -1;
}

static bool is_callable(const struct guard_leaf *leaf, PyObject *object)
{
    if (!PyCallable_Check(object))
        PyErr_Format(PyExc_TypeError, "%s: expected a callable, got %s", leaf->kind->name, Py_TYPE(object)->tp_name);
    return PyCallable_Check(object);
}

/* ---- identity ---- */

static int prepare_type(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *type;

    if (!PyArg_ParseTuple(arguments, "O!:TYPE_MATCH", &PyType_Type, &type) || guard_identify(tree, leaf, 0, type))
        return -1;
    return expect(leaf, values_type((PyTypeObject *)type));
}

static int check_type(const struct guard_leaf *leaf, PyObject *const *values)
{
    return guard_is(&leaf->is[0], (PyObject *)Py_TYPE(values[0]));
}

static PyObject *actual_named_type(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    PyObject *text = values_type(Py_TYPE(values[0]));

    if (text && leaf->expected && PyUnicode_Compare(text, leaf->expected) == 0) { /* made twice: a class in a function */
        Py_DECREF(text);
        words->expected = Py_NewRef(leaf->is[0].text);
        return values_object((PyObject *)Py_TYPE(values[0]));
    }
    return text;
}

static int prepare_identity(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *object;

    if (!PyArg_ParseTuple(arguments, "O", &object) || guard_identify(tree, leaf, 0, object))
        return -1;
    return expect(leaf, Py_NewRef(leaf->is[0].text));
}

static int check_identity(const struct guard_leaf *leaf, PyObject *const *values)
{
    return guard_is(&leaf->is[0], values[0]);
}

/* A method is made anew at each access. What must stay the same of it is its object, is[1], and its function, is[0], or a
 * builtin's definition. */
static int prepare_function(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *object, *self = NULL;

    if (!PyArg_ParseTuple(arguments, "O", &object) || !is_callable(leaf, object))
        return -1;
    if (PyMethod_Check(object))
        self = PyMethod_GET_SELF(object);
    else if (PyCFunction_Check(object))
        self = PyCFunction_GET_SELF(object);
    if (!self || PyModule_Check(self))
        return prepare_identity(leaf, tree, arguments);
    if (guard_identify(tree, leaf, 1, self))
        return -1;
    if (PyMethod_Check(object))
        return guard_identify(tree, leaf, 0, PyMethod_GET_FUNCTION(object))
                   ? -1
                   : expect(leaf, PyUnicode_FromFormat("%U of %U", leaf->is[0].text, leaf->is[1].text));
    leaf->definition = ((PyCFunctionObject *)object)->m_ml;
    return expect(leaf, PyUnicode_FromFormat("builtin %s of %U", leaf->definition->ml_name, leaf->is[1].text));
}

static int check_function(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *value = values[0];

    if (!leaf->is[1].at)
        return guard_is(&leaf->is[0], value);
    if (leaf->definition)
        return PyCFunction_Check(value) && ((PyCFunctionObject *)value)->m_ml == leaf->definition &&
               PyCFunction_GET_SELF(value) && guard_is(&leaf->is[1], PyCFunction_GET_SELF(value));
    return PyMethod_Check(value) && guard_is(&leaf->is[0], PyMethod_GET_FUNCTION(value)) &&
           guard_is(&leaf->is[1], PyMethod_GET_SELF(value));
}

/* Functions made by the same def share the code object, which is what must be the same. */
static int check_closure(const struct guard_leaf *leaf, PyObject *const *values)
{
    return PyFunction_Check(values[0]) && guard_is(&leaf->is[0], PyFunction_GET_CODE(values[0]));
}

static PyObject *actual_closure(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    return values_object(PyFunction_Check(values[0]) ? PyFunction_GET_CODE(values[0]) : values[0]);
}

/* What the source gives is a weak reference, or what calling one gave. */
static int prepare_weakref(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *object = Py_None;

    if (!PyArg_ParseTuple(arguments, "|O:WEAKREF_ALIVE", &object))
        return -1;
    if (PyWeakref_Check(object))
        object = ((PyWeakReference *)object)->wr_object; /* borrowed */
    if (!Py_REFCNT(object)) /* it is being freed */
        object = Py_None;
    return object == Py_None ? 0 : guard_identify(tree, leaf, 0, object);
}

static int check_weakref(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *value = values[0];

    if (PyWeakref_Check(value))
        value = ((PyWeakReference *)value)->wr_object;
    return value != Py_None;
}

static PyObject *actual_weakref(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    words->expected = PyUnicode_FromString("alive");
    return words->expected ? PyUnicode_FromString("dead") : NULL;
}

static int check_is_not(const struct guard_leaf *leaf, PyObject *const *values)
{
    return values[0] != leaf->constant;
}

static int check_is(const struct guard_leaf *leaf, PyObject *const *values)
{
    return values[0] == leaf->constant;
}

/* ---- equality ---- */

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

static int prepare_value(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *value;

    if (!PyArg_ParseTuple(arguments, "O", &value))
        return -1;
    leaf->constant = Py_NewRef(value);
    leaf->stays |= !is_simple(value, 100);
    return expect(leaf, values_repr(value));
}

static int prepare_not(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    return prepare_value(leaf, tree, arguments) ? -1 : expect(leaf, PyUnicode_FromFormat("not %U", leaf->expected));
}

static int check_equals(const struct guard_leaf *leaf, PyObject *const *values)
{
    return same(leaf->constant, values[0]);
}

static PyObject *actual_equals(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    PyObject *text = values_repr(values[0]);

    if (!text || Py_TYPE(leaf->constant) == Py_TYPE(values[0]) || PyUnicode_Compare(text, leaf->expected))
        return text;
    words->expected = values_format("%U (%U)", Py_NewRef(leaf->expected), values_type(Py_TYPE(leaf->constant)));
    return values_format("%U (%U)", text, values_type(Py_TYPE(values[0])));
}

/* ---- attributes ---- */

static int prepare_attribute(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *name;

    if (!PyArg_ParseTuple(arguments, "U", &name))
        return -1;
    leaf->constant = PyUnicode_FromObject(name);
    if (!leaf->constant)
        return -1;
    PyUnicode_InternInPlace(&leaf->constant);
    return expect(leaf, values_repr(name));
}

static int check_has_attribute(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *value;
    int found = compat_optional_attribute(values[0], leaf->constant, &value);

    Py_XDECREF(value);
    return found;
}

static int check_no_attribute(const struct guard_leaf *leaf, PyObject *const *values)
{
    int found = check_has_attribute(leaf, values);

    return found < 0 ? -1 : !found;
}

static PyObject *actual_attribute(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    const bool wanted = leaf->kind->check == check_has_attribute;

    words->expected = PyUnicode_FromFormat(wanted ? "an attribute %U" : "no attribute %U", leaf->expected);
    return values_format(wanted ? "%U without it" : "%U with it", values_type(Py_TYPE(values[0])));
}

/* ---- sizes ---- */

static int prepare_number(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    if (!PyArg_ParseTuple(arguments, "n", &leaf->number))
        return -1;
    return expect(leaf, PyUnicode_FromFormat("%zd", leaf->number));
}

static int check_dict_length(const struct guard_leaf *leaf, PyObject *const *values)
{
    return PyDict_Check(values[0]) && PyDict_GET_SIZE(values[0]) == leaf->number;
}

static int check_list_length(const struct guard_leaf *leaf, PyObject *const *values)
{
    return PyList_Check(values[0]) && PyList_GET_SIZE(values[0]) == leaf->number;
}

static int check_tuple_length(const struct guard_leaf *leaf, PyObject *const *values)
{
    return PyTuple_Check(values[0]) && PyTuple_GET_SIZE(values[0]) == leaf->number;
}

static int check_sequence_length(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyTypeObject *type = Py_TYPE(values[0]);
    Py_ssize_t length;

    if (!(type->tp_as_sequence && type->tp_as_sequence->sq_length) &&
        !(type->tp_as_mapping && type->tp_as_mapping->mp_length))
        return 0;
    length = PyObject_Size(values[0]);
    return length < 0 ? -1 : length == leaf->number;
}

static PyObject *actual_length(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    Py_ssize_t length = PyObject_Size(values[0]);

    if (length >= 0 && length != leaf->number)
        return PyUnicode_FromFormat("%zd", length);
    if (length < 0 && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    return values_format("a %U", values_type(Py_TYPE(values[0])));
}

/* ---- keys ---- */

static int prepare_keys(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *keys;

    return PyArg_ParseTuple(arguments, "O!", &PyTuple_Type, &keys) ? prepare_value(leaf, tree, arguments) : -1;
}

/* The same set of keys; order does not matter. */
static int check_keys(const struct guard_leaf *leaf, PyObject *const *values)
{
    Py_ssize_t count = PyTuple_GET_SIZE(leaf->constant);
    int found = 1;

    if (!PyDict_Check(values[0]) || PyDict_GET_SIZE(values[0]) != count)
        return 0;
    for (Py_ssize_t i = 0; found == 1 && i < count; i++)
        found = PyDict_Contains(values[0], PyTuple_GET_ITEM(leaf->constant, i));
    return found;
}

static PyObject *actual_keys(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    PyObject *keys, *tuple;

    if (!PyDict_Check(values[0]))
        return actual_type(leaf, values, words);
    keys = PyDict_Keys(values[0]);
    tuple = keys ? PyList_AsTuple(keys) : NULL;
    Py_XDECREF(keys);
    return repr_of(tuple);
}

static int prepare_key(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    return prepare_value(leaf, tree, arguments) || PyObject_Hash(leaf->constant) == -1 ? -1 : 0;
}

static int check_contains(const struct guard_leaf *leaf, PyObject *const *values)
{
    return PyDict_Check(values[0]) ? PyDict_Contains(values[0], leaf->constant) : 0;
}

static int check_not_contains(const struct guard_leaf *leaf, PyObject *const *values)
{
    int found = PyDict_Check(values[0]) ? PyDict_Contains(values[0], leaf->constant) : 1;

    return found < 0 ? -1 : !found;
}

static PyObject *actual_contains(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    bool wanted = leaf->kind->check == check_contains;

    if (!PyDict_Check(values[0]))
        return actual_type(leaf, values, words);
    words->expected = PyUnicode_FromFormat(wanted ? "key %U" : "no key %U", leaf->expected);
    return PyUnicode_FromFormat(wanted ? "no such key among %zd" : "there, one of %zd", PyDict_GET_SIZE(values[0]));
}

/* ---- shapes ---- */

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

static int check_shape_equal(const struct guard_leaf *leaf, PyObject *const *values)
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

/* The several values of a relation. */
static PyObject *actual_all(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    PyObject *tuple = PyTuple_New(leaf->slot_count);

    for (uint32_t i = 0; tuple && i < leaf->slot_count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(values[i]));
    return repr_of(tuple);
}

static int prepare_bound(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *low, *high;

    if (!PyArg_ParseTuple(arguments, "OO:SHAPE_BOUND", &low, &high))
        return -1;
    leaf->number = low == Py_None ? PY_SSIZE_T_MIN : PyLong_AsSsize_t(low);
    leaf->limit = high == Py_None ? PY_SSIZE_T_MAX : PyErr_Occurred() ? 0 : PyLong_AsSsize_t(high);
    if (PyErr_Occurred())
        return -1;
    if (high == Py_None)
        return expect(leaf, PyUnicode_FromFormat("at least %zd", leaf->number));
    if (low == Py_None)
        return expect(leaf, PyUnicode_FromFormat("at most %zd", leaf->limit));
    return expect(leaf, PyUnicode_FromFormat(leaf->number == leaf->limit ? "%zd" : "%zd to %zd", leaf->number, leaf->limit));
}

static int check_bound(const struct guard_leaf *leaf, PyObject *const *values)
{
    long long number;
    int result = integer(values[0], &number);

    return result == 1 ? leaf->number <= number && number <= leaf->limit : result;
}

static int prepare_divisible(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    if (!PyArg_ParseTuple(arguments, "n:SHAPE_DIVISIBLE", &leaf->number))
        return -1;
    if (leaf->number < 1) {
        PyErr_Format(PyExc_ValueError, "SHAPE_DIVISIBLE: %zd is no divisor: give 1 or more", leaf->number);
        return -1;
    }
    return expect(leaf, PyUnicode_FromFormat("a multiple of %zd", leaf->number));
}

static int check_divisible(const struct guard_leaf *leaf, PyObject *const *values)
{
    long long number;
    int result = integer(values[0], &number);

    return result == 1 ? number % leaf->number == 0 : result;
}

/* ---- relations ---- */

static int by_address(const void *a, const void *b)
{
    PyObject *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

static int check_no_aliasing(const struct guard_leaf *leaf, PyObject *const *values)
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

static PyObject *actual_no_aliasing(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    words->expected = PyUnicode_FromFormat("%u different objects", leaf->slot_count);
    for (uint32_t i = 1; i < leaf->slot_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (values[i] == values[j])
                return PyUnicode_FromFormat("number %u and number %u are the same object", j + 1, i + 1);
    return PyUnicode_FromString("different objects by now");
}

static int prepare_lambda(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *callable, *text;

    if (!PyArg_ParseTuple(arguments, "OU:LAMBDA", &callable, &text) || !is_callable(leaf, callable))
        return -1;
    leaf->constant = Py_NewRef(callable);
    return expect(leaf, Py_NewRef(text));
}

static int check_lambda(const struct guard_leaf *leaf, PyObject *const *values)
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

static PyObject *actual_lambda(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    words->expected = PyUnicode_FromString("True");
    return PyUnicode_FromString("False");
}

static int prepare_nothing(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    return PyArg_ParseTuple(arguments, "") ? 0 : -1;
}

/* ---- the table ---- */

/* name, words, aspect, flags, reveals, prepare, check, actual */
static const struct guard_kind kinds[] = {
    {"TYPE_MATCH", "type(%U) is %U", "type", 0, REVEALS_TYPE, prepare_type, check_type, actual_named_type},
    {"ID_MATCH", "%U is %U", "identity", 0, REVEALS_VALUE, prepare_identity, check_identity, actual_object},
    {"EQUALS_MATCH", "%U == %U", "value", 0, REVEALS_VALUE, prepare_value, check_equals, actual_equals},
    {"NONE_MATCH", "%U is %U", "value", 0, REVEALS_KIND, prepare_value, check_is, actual_repr},
    {"NOT_NONE", "%U is %U", "value", 0, REVEALS_KIND, prepare_not, check_is_not, actual_repr},
    {"TRUE_MATCH", "%U is %U", "value", 0, REVEALS_KIND, prepare_value, check_is, actual_repr},
    {"FALSE_MATCH", "%U is %U", "value", 0, REVEALS_KIND, prepare_value, check_is, actual_repr},
    {"HASATTR", "hasattr(%U, %U)", "attribute", STAYS, REVEALS_VALUE,
     prepare_attribute, check_has_attribute, actual_attribute},
    {"NO_HASATTR", "not hasattr(%U, %U)", "attribute", STAYS, REVEALS_VALUE,
     prepare_attribute, check_no_attribute, actual_attribute},
    {"DICT_LENGTH", "len(%U) == %U", "length", 0, REVEALS_TYPE, prepare_number, check_dict_length, actual_length},
    {"LIST_LENGTH", "len(%U) == %U", "length", 0, REVEALS_TYPE, prepare_number, check_list_length, actual_length},
    {"TUPLE_LENGTH", "len(%U) == %U", "length", 0, REVEALS_TYPE, prepare_number, check_tuple_length, actual_length},
    {"SEQUENCE_LENGTH", "len(%U) == %U", "length", STAYS, REVEALS_SIZE,
     prepare_number, check_sequence_length, actual_length},
    {"DICT_KEYS", "%U.keys() == set(%U)", "keys", 0, REVEALS_VALUE, prepare_keys, check_keys, actual_keys},
    {"DICT_CONTAINS", "%.0U%U in %U", "keys", 0, REVEALS_VALUE, prepare_key, check_contains, actual_contains},
    {"DICT_NOT_CONTAINS", "%.0U%U not in %U", "keys", 0, REVEALS_VALUE, prepare_key, check_not_contains, actual_contains},
    {"FUNCTION_MATCH", "%U is %U", "identity", 0, REVEALS_VALUE, prepare_function, check_function, actual_object},
    {"CLOSURE_MATCH", "%U.__code__ is %U", "identity", 0, REVEALS_VALUE,
     prepare_identity, check_closure, actual_closure},
    {"BUILTIN_MATCH", "%U is %U", "identity", 0, REVEALS_VALUE, prepare_function, check_function, actual_object},
    {"MODULE_MATCH", "%U is %U", "identity", 0, REVEALS_VALUE, prepare_identity, check_identity, actual_object},
    {"WEAKREF_ALIVE", "%U is alive", "alive", 0, REVEALS_NOTHING, prepare_weakref, check_weakref, actual_weakref},
    {"GLOBAL_STATE", "%U == %U", "state", 0, REVEALS_VALUE, prepare_value, check_equals, actual_equals},
    {"TENSOR_MATCH", "%U is %U", NULL, 0, REVEALS_TENSOR, tensor_prepare, tensor_check, tensor_actual},
    {"SHAPE_BOUND", "%U is %U", "value", STAYS, REVEALS_SIZE, prepare_bound, check_bound, actual_repr},
    {"SHAPE_DIVISIBLE", "%U is %U", "value", STAYS, REVEALS_SIZE, prepare_divisible, check_divisible, actual_repr},
    {"SHAPE_EQUAL", "%U are equal", "relation", RELATION | STAYS, REVEALS_SIZE,
     prepare_nothing, check_shape_equal, actual_all},
    {"NO_ALIASING", "%U are different objects", "relation", RELATION, REVEALS_NOTHING,
     prepare_nothing, check_no_aliasing, actual_no_aliasing},
    {"LAMBDA", "%.0U%U", NULL, RELATION | STAYS, REVEALS_VALUE, prepare_lambda, check_lambda, actual_lambda},
};

const struct guard_kind *guard_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

/* tracer/guards/kinds.c -- the kinds of guards: the data of each kind, and the check of a guard.
 * python/dyntrace/_guard_words.py has the text for each kind, and further kinds that are checked
 * like one of these.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/guards/tree.h"

#include <math.h>

/* clang-format off */
#define KINDS(X) \
    X(TYPE_MATCH) X(ID_MATCH) X(EQUALS_MATCH) X(NONE_MATCH) X(NOT_NONE) X(HASATTR) X(NO_HASATTR) \
    X(DICT_LENGTH) X(LIST_LENGTH) X(TUPLE_LENGTH) X(SEQUENCE_LENGTH) X(DICT_KEYS) X(DICT_CONTAINS) \
    X(DICT_NOT_CONTAINS) X(FUNCTION_MATCH) X(CLOSURE_MATCH) X(WEAKREF_ALIVE) X(TENSOR_MATCH) \
    X(SHAPE_BOUND) X(SHAPE_DIVISIBLE) X(SHAPE_EQUAL) X(NO_ALIASING) X(LAMBDA) \
    /* the relations, which are checked after all other kinds */
/* clang-format on */

#define X(NAME) NAME,
enum { KINDS(X) KIND_COUNT };
#undef X

int guard_prepare_leaf(struct guard_leaf *leaf, const char *name)
{
    static const char *const names[] = {
#define X(NAME) #NAME,
        KINDS(X)
#undef X
    };

    while (leaf->kind < KIND_COUNT && strcmp(names[leaf->kind], name) != 0)
        leaf->kind++;
    leaf->relation = leaf->kind >= SHAPE_EQUAL;
    switch (leaf->kind) {
    case TENSOR_MATCH:
        return tensor_prepare_guard(leaf);
    case FUNCTION_MATCH:
        if (PyCFunction_Check(leaf->constant))
            leaf->definition = ((PyCFunctionObject *)leaf->constant)->m_ml;
        /* not needed any more: the leaf holds the object as its identity */
        Py_CLEAR(leaf->constant);
        return 0;
    case HASATTR:
    case NO_HASATTR:
        if (!PyUnicode_CheckExact(leaf->constant))
            break;
        PyUnicode_InternInPlace(&leaf->constant);
        return 0;
    case DICT_KEYS:
        if (!PyTuple_CheckExact(leaf->constant))
            break;
        return 0;
    case SHAPE_DIVISIBLE:
        if (leaf->number < 1)
            break;
        return 0;
    case KIND_COUNT:
        break;
    default:
        return 0;
    }
    PyErr_SetString(PyExc_TypeError, "a guard is not as dyntrace.guards makes it");
    return -1;
}

/* ---- check one guard, by its kind ---- */

/* For functions that guard_check() must not inline: it would need a stack frame, which most guards,
 * being short, do without. */
#define APART __attribute__((noinline))

/* Are WANTED and VALUE equal, and of the same type? Items of tuples and lists, and parts of slices,
 * ranges and complex numbers, are compared in the same way. So 1, True and 1.0 differ, 0.0 and -0.0
 * differ, and range(0, 3, 2) and range(0, 4, 2) differ. All nans are equal. Returns 1 or 0, or -1
 * with an exception. */
static int are_values_and_types_equal(PyObject *wanted, PyObject *value)
{
    int result = 1;

    if (wanted == value)
        return 1;
    if (Py_TYPE(wanted) != Py_TYPE(value))
        return 0;
    if (PyUnicode_CheckExact(wanted))
        return PyUnicode_Compare(wanted, value) == 0;
    if (PyFloat_CheckExact(wanted)) {
        double a = PyFloat_AS_DOUBLE(wanted);
        double b = PyFloat_AS_DOUBLE(value);
        return (a == b && !signbit(a) == !signbit(b)) || (a != a && b != b);
    }
    if (PyComplex_CheckExact(wanted) || PyRange_Check(wanted) || PySlice_Check(wanted)) {
        const char *const parts = PyComplex_CheckExact(wanted) ? "__getnewargs__" : "__reduce__";
        OWNED PyObject *first = PyObject_CallMethod(wanted, parts, NULL),
                       *second = first ? PyObject_CallMethod(value, parts, NULL) : NULL;
        return second ? are_values_and_types_equal(first, second) : -1;
    }
    if (!strncmp(Py_TYPE(wanted)->tp_name, "numpy.dtype", strlen("numpy.dtype")))
        return guard_are_dtypes_equal(wanted, value);
    if (!PyTuple_CheckExact(wanted) && !PyList_CheckExact(wanted))
        return PyObject_RichCompareBool(wanted, value, Py_EQ);
    if (Py_SIZE(wanted) != Py_SIZE(value))
        return 0;
    if (Py_EnterRecursiveCall(" in a guard"))
        return -1;
    for (Py_ssize_t i = 0; result == 1 && i < Py_SIZE(wanted); i++) {
        OWNED PyObject *first = Py_NewRef(PySequence_Fast_GET_ITEM(wanted, i));
        OWNED PyObject *second =
            i < Py_SIZE(value) ? Py_NewRef(PySequence_Fast_GET_ITEM(value, i)) : NULL;
        /* NULL if an __eq__ has shortened the list meanwhile */
        result = second ? are_values_and_types_equal(first, second) : 0;
    }
    Py_LeaveRecursiveCall();
    return result;
}

static APART int is_expected_function(const struct guard_leaf *leaf, PyObject *value)
{
    if (!leaf->is[1].at)
        return guard_is_expected_object(&leaf->is[0], value);
    if (leaf->definition)
        return PyCFunction_Check(value) && ((PyCFunctionObject *)value)->m_ml == leaf->definition &&
               PyCFunction_GET_SELF(value) &&
               guard_is_expected_object(&leaf->is[1], PyCFunction_GET_SELF(value));
    return PyMethod_Check(value) &&
           guard_is_expected_object(&leaf->is[0], PyMethod_GET_FUNCTION(value)) &&
           guard_is_expected_object(&leaf->is[1], PyMethod_GET_SELF(value));
}

/* Is the object of a weak reference alive? VALUE is the weak reference, or what a call of it
 * returned. */
static APART int is_referenced_object_alive(PyObject *value)
{
    return (PyWeakref_Check(value) ? ((PyWeakReference *)value)->wr_object : value) != Py_None;
}

static APART int has_expected_attribute(const struct guard_leaf *leaf, PyObject *object)
{
    PyObject *value;
    int found = compat_optional_attribute(object, leaf->constant, &value);

    Py_XDECREF(value);
    return found < 0 ? -1 : found == (leaf->kind == HASATTR);
}

static APART int has_no_key(const struct guard_leaf *leaf, PyObject *dict)
{
    int found = PyDict_Contains(dict, leaf->constant);

    return found < 0 ? -1 : !found;
}

static APART int has_expected_length(const struct guard_leaf *leaf, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    Py_ssize_t length;

    if (!(type->tp_as_sequence && type->tp_as_sequence->sq_length) &&
        !(type->tp_as_mapping && type->tp_as_mapping->mp_length))
        return 0;
    length = PyObject_Size(value);
    return length < 0 ? -1 : length == leaf->number;
}

/* Has DICT exactly the keys that LEAF expects? Their order does not matter. */
static APART int has_expected_keys(const struct guard_leaf *leaf, PyObject *dict)
{
    Py_ssize_t count = PyTuple_GET_SIZE(leaf->constant);
    int found = 1;

    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != count)
        return 0;
    for (Py_ssize_t i = 0; found == 1 && i < count; i++)
        found = PyDict_Contains(dict, PyTuple_GET_ITEM(leaf->constant, i));
    return found;
}

/* Read VALUE as a 64-bit integer. Returns 1; 0 if it is no integer or too large; -1 with an
 * exception. */
static int read_integer(PyObject *value, long long *number)
{
    OWNED PyObject *index = NULL;
    int overflow;

    if (!PyLong_Check(value)) {
        if (!PyIndex_Check(value))
            return 0;
        /* integers of numpy and torch have __index__ */
        index = value = PyNumber_Index(value);
        if (!index)
            return -1;
    }
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static APART int has_expected_shape(const struct guard_leaf *leaf, PyObject *value)
{
    long long number;
    int result = read_integer(value, &number);

    if (result != 1)
        return result;
    return leaf->kind == SHAPE_BOUND ? leaf->number <= number && number <= leaf->limit
                                     : number % leaf->number == 0;
}

static APART int are_all_values_equal(const struct guard_leaf *leaf, PyObject *const *values)
{
    long long first = 0, other;
    int result = 1;

    for (uint32_t i = 0; result == 1 && i < leaf->slot_count; i++) {
        result = read_integer(values[i], i ? &other : &first);
        if (result == 1 && i)
            result = first == other;
    }
    return result;
}

static int compare_addresses(const void *a, const void *b)
{
    PyObject *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

static APART int are_all_objects_different(const struct guard_leaf *leaf, PyObject *const *values)
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
    qsort(sorted, count, sizeof *sorted, compare_addresses);
    for (uint32_t i = 1; i < count && result; i++)
        result = sorted[i] != sorted[i - 1];
    PyMem_Free(sorted);
    return result;
}

static APART int call_guard_lambda(const struct guard_leaf *leaf, PyObject *const *values)
{
    OWNED PyObject *result = PyObject_Vectorcall(leaf->constant, values, leaf->slot_count, NULL);
    int passed = result == Py_True;

    if (result && !PyBool_Check(result)) {
        PyErr_Format(PyExc_TypeError, "the guard %R returned %s, not bool", leaf->constant,
                     Py_TYPE(result)->tp_name);
        passed = -1;
    }
    return result ? passed : -1;
}

/* ---- functions that LAMBDA guards of capture/ call ---- */

/* Compute NUMBER, which is an int; or (i,) for value number i; or (operator, operands ...) for
 * the operator's result. Returns a new reference; NULL if an operand is no int, or with an
 * exception. */
static PyObject *compute_expression(PyObject *number, PyObject *const *values)
{
    PyObject *operands[2] = {NULL};
    PyObject *made = NULL;
    const Py_ssize_t count = PyTuple_CheckExact(number) ? PyTuple_GET_SIZE(number) - 1 : -1;

    if (!count)
        number = values[PyLong_AsSsize_t(PyTuple_GET_ITEM(number, 0))];
    if (count <= 0)
        return PyLong_CheckExact(number) ? Py_NewRef(number) : NULL;
    for (Py_ssize_t i = 0; i < count && (!i || operands[0]); i++)
        operands[i] = compute_expression(PyTuple_GET_ITEM(number, i + 1), values);
    if (operands[count - 1])
        made = PyObject_Vectorcall(PyTuple_GET_ITEM(number, 0), operands, (size_t)count, NULL);
    Py_XDECREF(operands[0]);
    Py_XDECREF(operands[1]);
    return made;
}

/* compares(*values): has the comparison of the values the expected result? SELF is (comparison,
 * expected result). */
static PyObject *is_comparison_as_expected(PyObject *self, PyObject *const *values,
                                           Py_ssize_t count)
{
    OWNED PyObject *result = compute_expression(PyTuple_GET_ITEM(self, 0), values);

    if (!result && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_ArithmeticError))
        return NULL;
    PyErr_Clear();
    return PyBool_FromLong(result == PyTuple_GET_ITEM(self, 1));
}

/* has_key_order(dict): are the keys of DICT the strings in SELF, in this order? */
static PyObject *has_key_order(PyObject *self, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    Py_ssize_t i = 0;

    if (!PyDict_CheckExact(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(self))
        Py_RETURN_FALSE;
    for (; PyDict_Next(dict, &at, &key, &value); i++)
        if (!PyUnicode_CheckExact(key) || PyUnicode_Compare(key, PyTuple_GET_ITEM(self, i)))
            Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

static PyObject *make_check_function(PyObject *module, PyObject *of)
{
    static PyMethodDef comparison = {"compares",
                                     (PyCFunction)(void (*)(void))is_comparison_as_expected,
                                     METH_FASTCALL, "compares(*numbers)"};
    static PyMethodDef order = {"has_order", has_key_order, METH_O, "has_order(dict)"};

    if (!PyTuple_CheckExact(of))
        return PyErr_Format(PyExc_TypeError, "a check is made of a tuple");
    return PyCFunction_New(PyTuple_GET_SIZE(of) == 2 && PyTuple_CheckExact(PyTuple_GET_ITEM(of, 0))
                               ? &comparison
                               : &order,
                           of);
}

PyMethodDef guard_methods[] = {
    {"_check", make_check_function, METH_O,
     "_check($module, of, /)\n--\n\nReturn a function. _check(words) checks that a dict has "
     "these keys in this order, "
     "_check((comparison, result)) that numbers compare like that."},
    {NULL, NULL, 0, NULL},
};

int guard_check(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *value = values[0];

    switch (leaf->kind) {
    case TYPE_MATCH:
        return guard_is_expected_object(&leaf->is[0], (PyObject *)Py_TYPE(value));
    case ID_MATCH:
        return guard_is_expected_object(&leaf->is[0], value);
    case EQUALS_MATCH:
        return are_values_and_types_equal(leaf->constant, value);
    case NONE_MATCH:
        return value == leaf->constant;
    case NOT_NONE:
        return value != leaf->constant;
    case HASATTR:
    case NO_HASATTR:
        return has_expected_attribute(leaf, value);
    case DICT_LENGTH:
        return PyDict_Check(value) && PyDict_GET_SIZE(value) == leaf->number;
    case LIST_LENGTH:
        return PyList_Check(value) && PyList_GET_SIZE(value) == leaf->number;
    case TUPLE_LENGTH:
        return PyTuple_Check(value) && PyTuple_GET_SIZE(value) == leaf->number;
    case SEQUENCE_LENGTH:
        return has_expected_length(leaf, value);
    case DICT_KEYS:
        return has_expected_keys(leaf, value);
    case DICT_CONTAINS:
        return PyDict_Check(value) ? PyDict_Contains(value, leaf->constant) : 0;
    case DICT_NOT_CONTAINS:
        return PyDict_Check(value) ? has_no_key(leaf, value) : 0;
    case FUNCTION_MATCH:
        return is_expected_function(leaf, value);
    case CLOSURE_MATCH: /* compare the code objects, which all functions made by one def share */
        return PyFunction_Check(value) &&
               guard_is_expected_object(&leaf->is[0], PyFunction_GET_CODE(value));
    case WEAKREF_ALIVE:
        return is_referenced_object_alive(value);
    case TENSOR_MATCH:
        return tensor_check_guard(leaf, value);
    case SHAPE_BOUND:
    case SHAPE_DIVISIBLE:
        return has_expected_shape(leaf, value);
    case SHAPE_EQUAL:
        return are_all_values_equal(leaf, values);
    case NO_ALIASING:
        return are_all_objects_different(leaf, values);
    case LAMBDA:
        return call_guard_lambda(leaf, values);
    default:
        __builtin_unreachable();
    }
}

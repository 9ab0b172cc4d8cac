/* tracer/guards/tensor.c -- TENSOR_MATCH: class, dtype, device, requires_grad, dispatch key, ndim,
 * sizes and strides.
 *
 * Runs in: the traced process, under the GIL.
 *
 * There are three ways to read these properties. The example, the tensor that the guard was made
 * from, chooses the way. A check compares the class first. A value of the same class can be read in
 * the same way.
 *
 *     TENSOR_NUMPY       the first fields of numpy's array struct. They are part of numpy's binary
 *                        interface, compiled into every extension that uses numpy. We use them only
 *                        if, in the example, they agree with the attributes.
 *     TENSOR_ATTRIBUTES  .dtype, .device, .requires_grad, .shape, .stride(): torch.Tensor and
 *                        classes that behave like it
 *     TENSOR_BUFFER      the buffer protocol's format, shape and strides: array.array, memoryview,
 *                        bytearray, mmap */
#include "tracer/guards/tree.h"

#define DYNAMIC PY_SSIZE_T_MIN /* expected size or stride if any value will do */

struct guard_tensor {
    enum { TENSOR_NUMPY, TENSOR_ATTRIBUTES, TENSOR_BUFFER } way;
    int ndim;
    bool strided; /* are strides compared, too? */
    /* owned: a tuple of pairs (name, expected value), the dtype first; empty with TENSOR_BUFFER */
    PyObject *attributes;
    PyObject *dtype; /* borrowed from `attributes`: the expected dtype */
    /* owned, with TENSOR_BUFFER: the buffer's expected format, a str; or NULL */
    PyObject *format;
    const char *format_text; /* text of the str `format`, borrowed */
    Py_ssize_t itemsize;
    /* owned: torch's own check of everything but the class, which is faster than ours; or NULL */
    PyObject *check;
    Py_ssize_t *strides; /* the expected strides; they follow `sizes` in the same block of memory */
    Py_ssize_t sizes[];
};

struct numpy_array { /* the first fields of numpy's PyArrayObject_fields */
    PyObject_HEAD char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
};

static PyObject *shape_name, *stride_name, *strides_name; /* interned */

static int intern_attribute_names(void)
{
    if (!strides_name) {
        shape_name = PyUnicode_InternFromString("shape");
        stride_name = PyUnicode_InternFromString("stride");
        strides_name = shape_name && stride_name ? PyUnicode_InternFromString("strides") : NULL;
    }
    return strides_name ? 0 : -1;
}

static inline bool are_numbers_as_expected(const Py_ssize_t *wanted, const Py_ssize_t *got,
                                           int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (wanted[i] != got[i] && wanted[i] != DYNAMIC)
            return false;
    return true;
}

static int have_dtypes_same_metadata(PyObject *a, PyObject *b);

/* Have the dtypes that are the first items of the tuples X and Y the same metadata? Returns -1 if X
 * or Y is no such tuple. */
static int have_first_items_same_metadata(PyObject *x, PyObject *y)
{
    if (!PyTuple_Check(x) || !PyTuple_GET_SIZE(x))
        return -1;
    if (!PyTuple_Check(y) || !PyTuple_GET_SIZE(y))
        return -1;
    return have_dtypes_same_metadata(PyTuple_GET_ITEM(x, 0), PyTuple_GET_ITEM(y, 0));
}

/* Are X and Y one object? Not compared with ==, which would run code of the program. */
static int is_same_object(PyObject *x, PyObject *y)
{
    return x == y;
}

/* Have the mappings FIRST and SECOND the same keys, and do their values fulfil SAME for each key?
 * Returns -1 with an exception. */
static int have_mappings_same_items(PyObject *first, PyObject *second,
                                    int (*same)(PyObject *x, PyObject *y))
{
    OWNED PyObject *keys = NULL;
    int result = 1;

    if (PyMapping_Size(first) != PyMapping_Size(second))
        return 0;
    keys = PyMapping_Keys(first);
    if (!keys)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys) && result == 1; i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        OWNED PyObject *x = PyObject_GetItem(first, key);
        OWNED PyObject *y = NULL;

        if (x)
            y = PyObject_GetItem(second, key);
        PyErr_Clear(); /* a KeyError means that SECOND lacks the key */
        result = y ? same(x, y) : 0;
    }
    return result;
}

/* A and B are NumPy dtypes that are made of other dtypes, which are in their attribute ATTRIBUTE:
 * "subdtype" if the items are arrays, "fields" if they are records. Have these other dtypes the
 * same metadata in A as in B? Returns -1 with an exception. */
static int have_parts_same_metadata(PyObject *a, PyObject *b, const char *attribute)
{
    OWNED PyObject *first = tracer_get_attribute(a, attribute);
    OWNED PyObject *second = NULL;

    if (first)
        second = tracer_get_attribute(b, attribute);
    if (!second)
        return -1;
    if (first == Py_None || second == Py_None)
        return first == second;
    /* `subdtype` of a dtype whose items are arrays: a tuple (dtype, shape) */
    if (PyTuple_Check(first))
        return have_first_items_same_metadata(first, second);
    return have_mappings_same_items(first, second, have_first_items_same_metadata);
}

/* Have the dtypes A and B, which are equal by ==, the same metadata? == ignores metadata. */
static int have_dtypes_same_metadata(PyObject *a, PyObject *b)
{
    OWNED PyObject *first = NULL;
    OWNED PyObject *second = NULL;
    int result;

    if (a == b)
        return 1;
    first = tracer_get_attribute(a, "metadata");
    if (first)
        second = tracer_get_attribute(b, "metadata");
    if (!second)
        return -1;
    if (first == Py_None || second == Py_None)
        result = first == second;
    else
        result = have_mappings_same_items(first, second, is_same_object);
    if (result == 1)
        result = have_parts_same_metadata(a, b, "fields");
    if (result == 1)
        result = have_parts_same_metadata(a, b, "subdtype");
    return result;
}

int guard_are_dtypes_equal(PyObject *wanted, PyObject *value)
{
    int same = wanted == value ? 1 : PyObject_RichCompareBool(wanted, value, Py_EQ);

    return same == 1 ? have_dtypes_same_metadata(wanted, value) : same;
}

static int compare_numpy_array(const struct guard_tensor *t, PyObject *value)
{
    const struct numpy_array *array = (const struct numpy_array *)value;

    /* compare them by ==, because equal dtypes with fields or another byte order are often two
     * objects */
    if (array->descr != t->dtype) {
        OWNED PyObject *descr = Py_NewRef(array->descr);
        int same = guard_are_dtypes_equal(t->dtype, descr);
        if (same <= 0)
            return same;
    }
    return array->nd == t->ndim && are_numbers_as_expected(t->sizes, array->dimensions, t->ndim) &&
           are_numbers_as_expected(t->strides, array->strides, t->ndim);
}

static int compare_buffer(const struct guard_tensor *t, PyObject *value)
{
    Py_buffer view;
    int result;

    if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO)) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear(); /* no buffer: the memoryview was released, or the mmap closed */
        return 0;
    }
    result = view.itemsize == t->itemsize &&
             strcmp(t->format_text, view.format ? view.format : "B") == 0 && view.ndim == t->ndim &&
             are_numbers_as_expected(t->sizes, view.shape, t->ndim) &&
             are_numbers_as_expected(t->strides, view.strides, t->ndim);
    PyBuffer_Release(&view);
    return result;
}

/* ---- read and compare a tensor's attributes ---- */

static int compare_tensor_attribute(const struct guard_tensor *t, PyObject *value)
{
    int same = 1;

    for (Py_ssize_t i = 0; same == 1 && i < PyTuple_GET_SIZE(t->attributes); i++) {
        PyObject *pair = PyTuple_GET_ITEM(t->attributes, i);
        PyObject *got;
        PyObject *wanted = PyTuple_GET_ITEM(pair, 1);
        same = compat_optional_attribute(value, PyTuple_GET_ITEM(pair, 0), &got);
        if (same > 0 && got != wanted)
            same = PyObject_RichCompareBool(wanted, got, Py_EQ);
        Py_XDECREF(got);
    }
    return same;
}

/* Compare TUPLE with WANTED, the expected sizes or strides. Steals TUPLE, which may be NULL with an
 * exception. */
static int compare_tuple_of_numbers(const struct guard_tensor *t, PyObject *tuple,
                                    const Py_ssize_t *wanted)
{
    int result;

    if (tuple && !PyTuple_Check(tuple))
        Py_SETREF(tuple, PySequence_Tuple(tuple));
    if (!tuple)
        return -1;
    result = PyTuple_GET_SIZE(tuple) == t->ndim;
    for (int i = 0; result == 1 && i < t->ndim; i++) {
        Py_ssize_t got;
        if (wanted[i] == DYNAMIC)
            continue;
        got = PyNumber_AsSsize_t(PyTuple_GET_ITEM(tuple, i), PyExc_OverflowError);
        result = got == -1 && PyErr_Occurred() ? -1 : got == wanted[i];
    }
    Py_DECREF(tuple);
    return result;
}

/* Return the strides of VALUE, a new tuple; NULL if it has none, or with an exception. */
static PyObject *read_strides(PyObject *value)
{
    PyObject *got = NULL;

    if (compat_optional_attribute(value, stride_name, &got) > 0 && PyCallable_Check(got)) {
        Py_DECREF(got);
        return PyObject_CallMethodNoArgs(value, stride_name);
    }
    Py_CLEAR(got);
    if (!PyErr_Occurred())
        compat_optional_attribute(value, strides_name, &got);
    if (got == Py_None) /* None means contiguous in the array interface (cupy and others) */
        Py_CLEAR(got);
    return got;
}

static int compare_tensor_attributes(const struct guard_tensor *t, PyObject *value)
{
    PyObject *strides;
    int result = compare_tensor_attribute(t, value);

    if (result == 1)
        result = compare_tuple_of_numbers(t, PyObject_GetAttr(value, shape_name), t->sizes);
    if (result != 1 || !t->strided)
        return result;
    strides = read_strides(value);
    if (!strides)
        return PyErr_Occurred() ? -1 : 0;
    return compare_tuple_of_numbers(t, strides, t->strides);
}

/* ---- check a TENSOR_MATCH guard ---- */

int tensor_check_guard(const struct guard_leaf *leaf, PyObject *value)
{
    const struct guard_tensor *t = leaf->tensor;
    PyObject *result;

    if (unlikely(!guard_is_expected_object(&leaf->is[0], (PyObject *)Py_TYPE(value))))
        return 0;
    if (likely(t->way == TENSOR_NUMPY))
        return compare_numpy_array(t, value);
    if (!t->check)
        return t->way == TENSOR_BUFFER ? compare_buffer(t, value)
                                       : compare_tensor_attributes(t, value);
    result = PyObject_CallOneArg(t->check, value);
    Py_XDECREF(result); /* `result` stays usable, because a bool is immortal */
    return result ? result == Py_True : -1;
}

void tensor_free_guard(struct guard_tensor *t)
{
    if (!t)
        return;
    Py_XDECREF(t->attributes);
    Py_XDECREF(t->format);
    Py_XDECREF(t->check);
    PyMem_Free(t);
}

int tensor_traverse_guard(struct guard_tensor *t, visitproc visit, void *arg)
{
    if (!t)
        return 0;
    Py_VISIT(t->attributes);
    Py_VISIT(t->check);
    return 0;
}

/* ---- make a TENSOR_MATCH guard from an example ---- */

/* Is VALUE a numpy array whose struct agrees with its attributes, which are in T? */
static bool is_numpy_array(PyObject *value, const struct guard_tensor *t)
{
    const struct numpy_array *array = (const struct numpy_array *)value;
    PyTypeObject *type = Py_TYPE(value);

    while (type && strcmp(type->tp_name, "numpy.ndarray") != 0)
        type = type->tp_base;
    return type && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
           type->tp_basicsize >= (Py_ssize_t)sizeof *array && t->strided && array->nd == t->ndim &&
           array->descr == t->dtype &&
           are_numbers_as_expected(t->sizes, array->dimensions, t->ndim) &&
           are_numbers_as_expected(t->strides, array->strides, t->ndim);
}

/* Read COUNT numbers from a tuple into NUMBERS. None becomes DYNAMIC, for any number. Returns -1
 * with an exception. */
static int read_numbers_of_tuple(PyObject *tuple, Py_ssize_t *numbers, int count)
{
    if (PyTuple_GET_SIZE(tuple) != count)
        PyErr_SetString(PyExc_ValueError, "TENSOR_MATCH: tuples of different lengths");
    for (int i = 0; !PyErr_Occurred() && i < count; i++) {
        PyObject *number = PyTuple_GET_ITEM(tuple, i);
        numbers[i] = number == Py_None ? DYNAMIC : PyNumber_AsSsize_t(number, PyExc_OverflowError);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static bool are_all_pairs(PyObject *attributes)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(attributes); i++) {
        PyObject *pair = PyTuple_GET_ITEM(attributes, i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
            !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0)))
            return false;
    }
    return true;
}

/* Fill in the tensor properties of LEAF from its constant, a tuple that _prepare_tensor() has made
 * for the example (python/dyntrace/_guard_words.py). Releases the constant. Returns 0, or -1 with
 * an exception. */
int tensor_prepare_guard(struct guard_leaf *leaf)
{
    PyObject *value, *attributes, *format, *sizes, *strides, *check;
    Py_ssize_t itemsize, ndim;
    struct guard_tensor *t;

    if (!PyTuple_Check(leaf->constant) ||
        !PyArg_ParseTuple(leaf->constant, "OO!OnO!OO:TENSOR_MATCH", &value, &PyTuple_Type,
                          &attributes, &format, &itemsize, &PyTuple_Type, &sizes, &strides,
                          &check) ||
        intern_attribute_names())
        return -1;
    ndim = PyTuple_GET_SIZE(sizes);
    if (ndim > 1000 || !are_all_pairs(attributes) ||
        (!PyTuple_GET_SIZE(attributes) && !PyUnicode_Check(format)) ||
        (strides != Py_None && !PyTuple_CheckExact(strides))) {
        PyErr_SetString(PyExc_TypeError,
                        "TENSOR_MATCH: arguments that dyntrace.guards does not give");
        return -1;
    }
    leaf->tensor = t = PyMem_Calloc(1, sizeof *t + 2 * (size_t)ndim * sizeof *t->sizes);
    if (!t) {
        PyErr_NoMemory();
        return -1;
    }
    t->ndim = (int)ndim;
    t->strides = t->sizes + ndim;
    t->strided = strides != Py_None;
    t->attributes = Py_NewRef(attributes);
    t->itemsize = itemsize;
    t->check = check == Py_None ? NULL : Py_NewRef(check);
    if (read_numbers_of_tuple(sizes, t->sizes, t->ndim) ||
        (t->strided && read_numbers_of_tuple(strides, t->strides, t->ndim)))
        return -1;
    if (PyTuple_GET_SIZE(attributes)) {
        t->dtype = PyTuple_GET_ITEM(PyTuple_GET_ITEM(attributes, 0), 1);
        t->way = is_numpy_array(value, t) ? TENSOR_NUMPY : TENSOR_ATTRIBUTES;
    } else {
        t->format = Py_NewRef(format);
        t->way = TENSOR_BUFFER;
        if (!(t->format_text = PyUnicode_AsUTF8(format)))
            return -1;
    }
    leaf->stays = t->way == TENSOR_ATTRIBUTES;
    Py_CLEAR(leaf->constant);
    return 0;
}

/* tracer/guards/tensor.c -- TENSOR_MATCH: class, dtype, device, requires_grad, dispatch key, ndim,
 * sizes and strides.
 *
 * Runs in: the traced process, under the GIL.
 *
 * There are three ways to read these properties. The example, the tensor that the guard was made
 * from, chooses the way. The class is compared first, and a value of the same class can be read in
 * the same way.
 *
 *     TENSOR_NUMPY       from numpy's array struct. Its first fields are part of numpy's binary
 *       interface, compiled into every extension that uses it. They are used only if, for the
 *       example, they agree with its attributes.
 *     TENSOR_ATTRIBUTES  .dtype, .device, .requires_grad, .shape, .stride(): torch.Tensor and what
 *                        behaves like it
 *     TENSOR_BUFFER      the buffer protocol's format, shape and strides: array.array, memoryview,
 *                        bytearray, mmap */
#include "tracer/guards/tree.h"

#define DYNAMIC PY_SSIZE_T_MIN /* a size or stride that may have any value */

struct guard_tensor {
    enum { TENSOR_NUMPY, TENSOR_ATTRIBUTES, TENSOR_BUFFER } way;
    int ndim;
    bool strided; /* the guard compares strides, too */
    /* owned: a tuple of (name, expected value), dtype first; empty with TENSOR_BUFFER */
    PyObject *attributes;
    PyObject *dtype;         /* borrowed from `attributes` */
    PyObject *format;        /* owned: a str with TENSOR_BUFFER; or NULL */
    const char *format_text; /* borrowed from `format` */
    Py_ssize_t itemsize;
    /* owned: compares everything except the class, or is NULL; torch's check is faster than ours */
    PyObject *check;
    Py_ssize_t *strides; /* the strides, in the same block of memory after `sizes` */
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

static int names_ready(void)
{
    if (!strides_name) {
        shape_name = PyUnicode_InternFromString("shape");
        stride_name = PyUnicode_InternFromString("stride");
        strides_name = shape_name && stride_name ? PyUnicode_InternFromString("strides") : NULL;
    }
    return strides_name ? 0 : -1;
}

static inline bool same_numbers(const Py_ssize_t *wanted, const Py_ssize_t *got, int ndim)
{
    for (int i = 0; i < ndim; i++)
        if (wanted[i] != got[i] && wanted[i] != DYNAMIC)
            return false;
    return true;
}

static int same_metadata(PyObject *a, PyObject *b);

/* The first items of the tuples X and Y are dtypes. Do both have the same metadata? Returns -1 if X
 * or Y is no such tuple. */
static int same_first(PyObject *x, PyObject *y)
{
    if (!PyTuple_Check(x) || !PyTuple_GET_SIZE(x))
        return -1;
    if (!PyTuple_Check(y) || !PyTuple_GET_SIZE(y))
        return -1;
    return same_metadata(PyTuple_GET_ITEM(x, 0), PyTuple_GET_ITEM(y, 0));
}

/* Are X and Y the same object? Equality is not used, because it would run the program's code. */
static int same_object(PyObject *x, PyObject *y)
{
    return x == y;
}

/* Do the mappings FIRST and SECOND have the same keys, and does SAME accept each pair of items?
 * Returns -1 with an exception. */
static int same_items(PyObject *first, PyObject *second, int (*same)(PyObject *x, PyObject *y))
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
        PyErr_Clear(); /* ignore a KeyError: SECOND lacks the key */
        result = y ? same(x, y) : 0;
    }
    return result;
}

/* Do the parts of the dtypes A and B have the same metadata? The attribute ATTRIBUTE of a dtype
 * holds its parts. */
static int same_parts(PyObject *a, PyObject *b, const char *attribute)
{
    OWNED PyObject *first = tracer_attribute(a, attribute);
    OWNED PyObject *second = NULL;

    if (first)
        second = tracer_attribute(b, attribute);
    if (!second)
        return -1;
    if (first == Py_None || second == Py_None)
        return first == second;
    /* the items of this dtype are arrays: its `subdtype` is the tuple (dtype, shape) */
    if (PyTuple_Check(first))
        return same_first(first, second);
    return same_items(first, second, same_first);
}

/* Do the equal dtypes A and B have the same metadata? == ignores metadata. */
static int same_metadata(PyObject *a, PyObject *b)
{
    OWNED PyObject *first = NULL;
    OWNED PyObject *second = NULL;
    int result;

    if (a == b)
        return 1;
    first = tracer_attribute(a, "metadata");
    if (first)
        second = tracer_attribute(b, "metadata");
    if (!second)
        return -1;
    if (first == Py_None || second == Py_None)
        result = first == second;
    else
        result = same_items(first, second, same_object);
    if (result == 1)
        result = same_parts(a, b, "fields");
    if (result == 1)
        result = same_parts(a, b, "subdtype");
    return result;
}

int guard_same_dtype(PyObject *wanted, PyObject *value)
{
    int same = wanted == value ? 1 : PyObject_RichCompareBool(wanted, value, Py_EQ);

    return same == 1 ? same_metadata(wanted, value) : same;
}

static int compare_numpy(const struct guard_tensor *t, PyObject *value)
{
    const struct numpy_array *array = (const struct numpy_array *)value;

    /* equal dtypes with fields, or with another byte order, are often two objects */
    if (array->descr != t->dtype) {
        OWNED PyObject *descr = Py_NewRef(array->descr);
        int same = guard_same_dtype(t->dtype, descr);
        if (same <= 0)
            return same;
    }
    return array->nd == t->ndim && same_numbers(t->sizes, array->dimensions, t->ndim) &&
           same_numbers(t->strides, array->strides, t->ndim);
}

static int compare_buffer(const struct guard_tensor *t, PyObject *value)
{
    Py_buffer view;
    int result;

    if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO)) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear(); /* the buffer is gone: a released memoryview or a closed mmap */
        return 0;
    }
    result = view.itemsize == t->itemsize &&
             strcmp(t->format_text, view.format ? view.format : "B") == 0 && view.ndim == t->ndim &&
             same_numbers(t->sizes, view.shape, t->ndim) &&
             same_numbers(t->strides, view.strides, t->ndim);
    PyBuffer_Release(&view);
    return result;
}

/* ---- attributes ---- */

static int compare_attribute(const struct guard_tensor *t, PyObject *value)
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

/* Compare TUPLE with WANTED, T's sizes or strides. Steals TUPLE, which may be NULL with an
 * exception. */
static int compare_tuple(const struct guard_tensor *t, PyObject *tuple, const Py_ssize_t *wanted)
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

/* Return VALUE's strides, a new tuple. Returns NULL if VALUE has none, or with an exception. */
static PyObject *strides_of(PyObject *value)
{
    PyObject *got = NULL;

    if (compat_optional_attribute(value, stride_name, &got) > 0 && PyCallable_Check(got)) {
        Py_DECREF(got);
        return PyObject_CallMethodNoArgs(value, stride_name);
    }
    Py_CLEAR(got);
    if (!PyErr_Occurred())
        compat_optional_attribute(value, strides_name, &got);
    if (got == Py_None) /* in the array interface (cupy and others) None means contiguous */
        Py_CLEAR(got);
    return got;
}

static int compare_attributes(const struct guard_tensor *t, PyObject *value)
{
    PyObject *strides;
    int result = compare_attribute(t, value);

    if (result == 1)
        result = compare_tuple(t, PyObject_GetAttr(value, shape_name), t->sizes);
    if (result != 1 || !t->strided)
        return result;
    strides = strides_of(value);
    if (!strides)
        return PyErr_Occurred() ? -1 : 0;
    return compare_tuple(t, strides, t->strides);
}

/* ---- the guard ---- */

int tensor_check(const struct guard_leaf *leaf, PyObject *value)
{
    const struct guard_tensor *t = leaf->tensor;
    PyObject *result;

    if (unlikely(!guard_is(&leaf->is[0], (PyObject *)Py_TYPE(value))))
        return 0;
    if (likely(t->way == TENSOR_NUMPY))
        return compare_numpy(t, value);
    if (!t->check)
        return t->way == TENSOR_BUFFER ? compare_buffer(t, value) : compare_attributes(t, value);
    result = PyObject_CallOneArg(t->check, value);
    Py_XDECREF(result); /* the result is a bool, which is immortal */
    return result ? result == Py_True : -1;
}

void tensor_free(struct guard_tensor *t)
{
    if (!t)
        return;
    Py_XDECREF(t->attributes);
    Py_XDECREF(t->format);
    Py_XDECREF(t->check);
    PyMem_Free(t);
}

int tensor_traverse(struct guard_tensor *t, visitproc visit, void *arg)
{
    if (!t)
        return 0;
    Py_VISIT(t->attributes);
    Py_VISIT(t->check);
    return 0;
}

/* ---- from an example ---- */

/* Is VALUE a numpy array, and does its struct agree with its attributes, which are in T? */
static bool is_numpy(PyObject *value, const struct guard_tensor *t)
{
    const struct numpy_array *array = (const struct numpy_array *)value;
    PyTypeObject *type = Py_TYPE(value);

    while (type && strcmp(type->tp_name, "numpy.ndarray") != 0)
        type = type->tp_base;
    return type && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
           type->tp_basicsize >= (Py_ssize_t)sizeof *array && t->strided && array->nd == t->ndim &&
           array->descr == t->dtype && same_numbers(t->sizes, array->dimensions, t->ndim) &&
           same_numbers(t->strides, array->strides, t->ndim);
}

/* Read COUNT NUMBERS from a tuple. None stands for any number. Returns -1 with an exception. */
static int take_numbers(PyObject *tuple, Py_ssize_t *numbers, int count)
{
    if (PyTuple_GET_SIZE(tuple) != count)
        PyErr_SetString(PyExc_ValueError, "TENSOR_MATCH: tuples of different lengths");
    for (int i = 0; !PyErr_Occurred() && i < count; i++) {
        PyObject *number = PyTuple_GET_ITEM(tuple, i);
        numbers[i] = number == Py_None ? DYNAMIC : PyNumber_AsSsize_t(number, PyExc_OverflowError);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static bool are_pairs(PyObject *attributes)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(attributes); i++) {
        PyObject *pair = PyTuple_GET_ITEM(attributes, i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
            !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0)))
            return false;
    }
    return true;
}

/* LEAF's constant is the tuple that _tensor() made for the example
 * (python/dyntrace/_guard_words.py). It is released. */
int tensor_prepare(struct guard_leaf *leaf)
{
    PyObject *value, *attributes, *format, *sizes, *strides, *check;
    Py_ssize_t itemsize, ndim;
    struct guard_tensor *t;

    if (!PyTuple_Check(leaf->constant) ||
        !PyArg_ParseTuple(leaf->constant, "OO!OnO!OO:TENSOR_MATCH", &value, &PyTuple_Type,
                          &attributes, &format, &itemsize, &PyTuple_Type, &sizes, &strides,
                          &check) ||
        names_ready())
        return -1;
    ndim = PyTuple_GET_SIZE(sizes);
    if (ndim > 1000 || !are_pairs(attributes) ||
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
    if (take_numbers(sizes, t->sizes, t->ndim) ||
        (t->strided && take_numbers(strides, t->strides, t->ndim)))
        return -1;
    if (PyTuple_GET_SIZE(attributes)) {
        t->dtype = PyTuple_GET_ITEM(PyTuple_GET_ITEM(attributes, 0), 1);
        t->way = is_numpy(value, t) ? TENSOR_NUMPY : TENSOR_ATTRIBUTES;
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

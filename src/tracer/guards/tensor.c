/* tracer/guards/tensor.c -- TENSOR_MATCH: class, dtype, device, requires_grad, dispatch key, ndim, sizes and strides.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Three ways to read them, chosen from the example. The class is looked at first, so the way that fitted it fits.
 *
 *     TENSOR_NUMPY       from numpy's array struct. Its first fields are part of numpy's binary interface, compiled into
 *                        every extension that uses it; still, they are believed only after they have given what the
 *                        example's attributes give.
 *     TENSOR_ATTRIBUTES  .dtype, .device, .requires_grad, .shape, .stride(): torch.Tensor and what behaves like it
 *     TENSOR_BUFFER      the buffer protocol's format, shape and strides: array.array, memoryview, bytearray, mmap */
#include "tracer/guards/tree.h"

#include <string.h>

#define DYNAMIC PY_SSIZE_T_MIN /* in sizes and strides: any */

struct guard_tensor {
    enum { TENSOR_NUMPY, TENSOR_ATTRIBUTES, TENSOR_BUFFER } way;
    int ndim;
    bool strided;               /* has strides */
    PyObject *attributes;       /* owned tuple of (name, wanted), dtype's first; none with TENSOR_BUFFER */
    PyObject *dtype;            /* borrowed from there */
    PyObject *format;           /* owned str, TENSOR_BUFFER; or NULL */
    const char *format_text;    /* borrowed from it */
    Py_ssize_t itemsize;
    PyObject *keys;             /* owned tuple: dispatch keys wanted, torch's functions for a tensor's, the thread's included
                                   and excluded ones; or NULL */
    PyObject *torch_check;      /* owned: torch's own check of the same facts, faster than ours; or NULL */
    Py_ssize_t *strides;        /* behind sizes */
    Py_ssize_t sizes[];
};

/* The first thing that is not as expected, in words. */
struct difference {
    struct guard_words *words;
    PyObject *actual;           /* a new string */
};

struct numpy_array {            /* PyArrayObject_fields */
    PyObject_HEAD
    char *data;
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

/* ---- differences ---- */

static PyObject *object_text(const char *what, PyObject *object)
{
    return object ? values_format("%s %U", what, values_repr(object)) : PyUnicode_FromFormat("%s missing", what);
}

static PyObject *number_text(const char *what, int dimension, Py_ssize_t number)
{
    return dimension < 0 ? PyUnicode_FromFormat("%s %zd", what, number)
                         : PyUnicode_FromFormat("%s[%d] = %zd", what, dimension, number);
}

/* The property WHAT, as recompile_cause.aspect, is the object GOT; NULL: it is missing. */
static int differ(struct difference *out, const char *what, PyObject *wanted, PyObject *got)
{
    if (out) {
        out->words->aspect = what;
        out->words->expected = object_text(what, wanted);
        out->actual = out->words->expected ? object_text(what, got) : NULL;
    }
    return 0;
}

static int differ_number(struct difference *out, const char *what, int dimension, Py_ssize_t wanted, Py_ssize_t got)
{
    if (out) {
        *out->words = (struct guard_words){number_text(what, dimension, wanted), what, dimension};
        out->actual = out->words->expected ? number_text(what, dimension, got) : NULL;
    }
    return 0;
}

/* There is no such property: GONE, in words. */
static int differ_gone(struct difference *out, const char *what, const char *gone)
{
    if (out) {
        out->words->aspect = what;
        out->actual = PyUnicode_FromString(gone);
    }
    return 0;
}

static inline int compare_numbers(const Py_ssize_t *wanted, const Py_ssize_t *got, int ndim, const char *what,
                                  struct difference *out)
{
    for (int i = 0; i < ndim; i++)
        if (wanted[i] != got[i] && wanted[i] != DYNAMIC)
            return differ_number(out, what, i, wanted[i], got[i]);
    return 1;
}

/* ---- numpy ---- */

static int compare_numpy(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    const struct numpy_array *array = (const struct numpy_array *)value;

    if (array->descr != t->dtype) { /* byte orders and structures are objects of their own */
        PyObject *descr = Py_NewRef(array->descr);
        int same = PyObject_RichCompareBool(t->dtype, descr, Py_EQ);
        if (same == 0)
            differ(out, "dtype", t->dtype, descr);
        Py_DECREF(descr);
        if (same <= 0)
            return same;
    }
    if (array->nd != t->ndim)
        return differ_number(out, "ndim", -1, t->ndim, array->nd);
    if (!compare_numbers(t->sizes, array->dimensions, t->ndim, "size", out))
        return 0;
    return compare_numbers(t->strides, array->strides, t->ndim, "stride", out);
}

/* ---- the buffer protocol ---- */

static int compare_buffer(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    Py_buffer view;
    int result = 1;

    if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO)) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
            return -1;
        PyErr_Clear(); /* a released memoryview, a closed mmap */
        return differ_gone(out, "type", "no buffer");
    }
    if (view.itemsize != t->itemsize || strcmp(t->format_text, view.format ? view.format : "B")) {
        PyObject *got = out ? PyUnicode_FromString(view.format ? view.format : "B") : NULL;
        result = differ(out, "dtype", t->format, got);
        Py_XDECREF(got);
    } else if (view.ndim != t->ndim) {
        result = differ_number(out, "ndim", -1, t->ndim, view.ndim);
    } else {
        result = compare_numbers(t->sizes, view.shape, t->ndim, "size", out) &&
                 compare_numbers(t->strides, view.strides, t->ndim, "stride", out);
    }
    PyBuffer_Release(&view);
    return result;
}

/* ---- attributes ---- */

static int compare_attribute(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    int same = 1;

    for (Py_ssize_t i = 0; same == 1 && i < PyTuple_GET_SIZE(t->attributes); i++) {
        PyObject *pair = PyTuple_GET_ITEM(t->attributes, i), *got;
        PyObject *name = PyTuple_GET_ITEM(pair, 0), *wanted = PyTuple_GET_ITEM(pair, 1);
        same = compat_optional_attribute(value, name, &got);
        if (same > 0 && got != wanted)
            same = PyObject_RichCompareBool(wanted, got, Py_EQ);
        if (same == 0)
            differ(out, PyUnicode_AsUTF8(name), wanted, got);
        Py_XDECREF(got);
    }
    return same;
}

/* TUPLE (stolen; NULL with an exception) must have T's sizes or strides. */
static int compare_tuple(const struct guard_tensor *t, PyObject *tuple, const Py_ssize_t *wanted, const char *what,
                         struct difference *out)
{
    int result = tuple ? 1 : -1;

    if (tuple && !PyTuple_Check(tuple))
        Py_SETREF(tuple, PySequence_Tuple(tuple));
    if (!tuple)
        return -1;
    if (PyTuple_GET_SIZE(tuple) != t->ndim)
        result = differ_number(out, "ndim", -1, t->ndim, PyTuple_GET_SIZE(tuple));
    for (int i = 0; result == 1 && i < t->ndim; i++) {
        Py_ssize_t got;
        if (wanted[i] == DYNAMIC)
            continue;
        got = PyNumber_AsSsize_t(PyTuple_GET_ITEM(tuple, i), PyExc_OverflowError);
        if (got == -1 && PyErr_Occurred())
            result = -1;
        else if (got != wanted[i])
            result = differ_number(out, what, i, wanted[i], got);
    }
    Py_DECREF(tuple);
    return result;
}

/* A new reference to a tuple, NULL with or without an exception: it has no strides. */
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
    if (got == Py_None) /* nothing to say: contiguous, says cupy's and others' interface */
        Py_CLEAR(got);
    return got;
}

/* What decides where torch's dispatcher goes: the tensor's keys, and the thread's includes and excludes. */
static PyObject *keys_now(PyObject *functions, PyObject *value)
{
    static PyObject *(*const combine[])(PyObject *, PyObject *) = {PyNumber_Or, PyNumber_Subtract};
    PyObject *keys = PyObject_CallOneArg(PyTuple_GET_ITEM(functions, 1), value);

    for (int i = 0; keys && i < 2; i++) {
        PyObject *other = PyObject_CallNoArgs(PyTuple_GET_ITEM(functions, 2 + i));
        Py_SETREF(keys, other ? combine[i](keys, other) : NULL);
        Py_XDECREF(other);
    }
    return keys;
}

static int compare_keys(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    PyObject *wanted = t->keys ? PyTuple_GET_ITEM(t->keys, 0) : NULL, *got;
    int same;

    if (!wanted)
        return 1;
    got = keys_now(t->keys, value);
    same = got ? PyObject_RichCompareBool(wanted, got, Py_EQ) : -1;
    if (same == 0)
        differ(out, "dispatch_keys", wanted, got);
    Py_XDECREF(got);
    return same;
}

static int compare_attributes(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    int result;
    PyObject *strides;

    if ((result = compare_attribute(t, value, out)) != 1 || (result = compare_keys(t, value, out)) != 1 ||
        (result = compare_tuple(t, PyObject_GetAttr(value, shape_name), t->sizes, "size", out)) != 1)
        return result;
    if (!t->strided)
        return 1;
    strides = strides_of(value);
    if (!strides)
        return PyErr_Occurred() ? -1 : differ_gone(out, "stride", "no strides");
    return compare_tuple(t, strides, t->strides, "stride", out);
}

/* ---- the guard ---- */

static int compare(const struct guard_leaf *leaf, PyObject *value, struct difference *out)
{
    const struct guard_tensor *t = leaf->tensor;

    if (unlikely(!guard_is(&leaf->is[0], (PyObject *)Py_TYPE(value)))) {
        if (out) {
            *out->words = (struct guard_words){Py_NewRef(leaf->is[0].text), "type", -1};
            out->actual = values_format("class %U", values_type(Py_TYPE(value)));
        }
        return 0;
    }
    if (likely(t->way == TENSOR_NUMPY))
        return compare_numpy(t, value, out);
    return t->way == TENSOR_BUFFER ? compare_buffer(t, value, out) : compare_attributes(t, value, out);
}

int tensor_check(const struct guard_leaf *leaf, PyObject *value)
{
    PyObject *check = leaf->tensor->torch_check, *result;

    if (likely(!check) || !guard_is(&leaf->is[0], (PyObject *)Py_TYPE(value)))
        return compare(leaf, value, NULL);
    result = PyObject_CallOneArg(check, value);
    Py_XDECREF(result); /* a bool */
    return result ? result == Py_True : -1;
}

PyObject *tensor_actual(const struct guard_leaf *leaf, PyObject *value, struct guard_words *words)
{
    struct difference found = {words, NULL};

    return compare(leaf, value, &found) == 1 ? PyUnicode_FromString("the same by now") : found.actual;
}

void tensor_free(struct guard_tensor *t)
{
    if (!t)
        return;
    Py_XDECREF(t->attributes);
    Py_XDECREF(t->format);
    Py_XDECREF(t->keys);
    Py_XDECREF(t->torch_check);
    PyMem_Free(t);
}

int tensor_traverse(struct guard_tensor *t, visitproc visit, void *arg)
{
    if (!t)
        return 0;
    Py_VISIT(t->attributes);
    Py_VISIT(t->keys);
    Py_VISIT(t->torch_check);
    return 0;
}

/* ---- from an example ---- */

/* Does the struct say of VALUE what its attributes, now in T, say? */
static bool is_numpy(PyObject *value, const struct guard_tensor *t)
{
    const struct numpy_array *array = (const struct numpy_array *)value;
    PyTypeObject *type = Py_TYPE(value);

    while (type && strcmp(type->tp_name, "numpy.ndarray") != 0)
        type = type->tp_base;
    return type && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_basicsize >= (Py_ssize_t)sizeof *array &&
           t->strided && array->nd == t->ndim && array->descr == t->dtype &&
           compare_numbers(t->sizes, array->dimensions, t->ndim, "", NULL) &&
           compare_numbers(t->strides, array->strides, t->ndim, "", NULL);
}

/* COUNT NUMBERS of a tuple; None: any. -1 with an exception. */
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
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0)))
            return false;
    }
    return true;
}

/* The example; (name, wanted) of its attributes, dtype first, or none; its buffer's format and itemsize; its sizes; its
 * strides, or None; keys as in struct guard_tensor, and torch's check, or None; all in words. */
int tensor_prepare(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *value, *attributes, *format, *sizes, *strides, *keys, *check, *words;
    Py_ssize_t itemsize, ndim;
    struct guard_tensor *t;

    if (!PyArg_ParseTuple(arguments, "OO!OnO!OOOU:TENSOR_MATCH", &value, &PyTuple_Type, &attributes, &format, &itemsize,
                          &PyTuple_Type, &sizes, &strides, &keys, &check, &words) ||
        names_ready())
        return -1;
    ndim = PyTuple_GET_SIZE(sizes);
    if (ndim > 1000 || !are_pairs(attributes) || (!PyTuple_GET_SIZE(attributes) && !PyUnicode_Check(format)) ||
        (strides != Py_None && !PyTuple_CheckExact(strides)) ||
        (keys != Py_None && (!PyTuple_CheckExact(keys) || PyTuple_GET_SIZE(keys) != 4))) {
        PyErr_SetString(PyExc_TypeError, "TENSOR_MATCH: arguments that dyntrace.guards does not give");
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
    t->keys = keys == Py_None ? NULL : Py_NewRef(keys);
    t->torch_check = check == Py_None ? NULL : Py_NewRef(check);
    if (take_numbers(sizes, t->sizes, t->ndim) || (t->strided && take_numbers(strides, t->strides, t->ndim)) ||
        guard_identify(tree, leaf, 0, (PyObject *)Py_TYPE(value)))
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
    leaf->expected = values_format("%U %U", values_type(Py_TYPE(value)), Py_NewRef(words));
    return leaf->expected ? 0 : -1;
}

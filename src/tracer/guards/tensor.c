/* tracer/guards/tensor.c -- TENSOR_MATCH: class, dtype, device, requires_grad,
 * dispatch key, ndim, sizes and strides.
 *
 * Runs in: the traced process, under the GIL.
 *
 * Three ways to read them, chosen from the example:
 *
 *     TENSOR_NUMPY       from numpy's array struct. Its first fields are part of
 *                        numpy's binary interface, compiled into every extension
 *                        that uses it; still, they are believed only after they
 *                        have given what the example's attributes give.
 *     TENSOR_ATTRIBUTES  .dtype, .device, .requires_grad, .shape, .stride():
 *                        torch.Tensor and what behaves like it
 *     TENSOR_BUFFER      the buffer protocol's format, shape and strides:
 *                        array.array, memoryview, bytearray, mmap
 *
 * The class is looked at first, so the way that fitted the example fits. */
#include "tracer/guards/tree.h"

#include <string.h>

#define DYNAMIC PY_SSIZE_T_MIN /* in sizes and strides: any */

struct guard_tensor {
    enum { TENSOR_NUMPY, TENSOR_ATTRIBUTES, TENSOR_BUFFER } way;
    int ndim;
    bool strided;               /* has strides */
    PyObject *dtype;            /* owned; NULL with TENSOR_BUFFER */
    char *format;               /* owned, TENSOR_BUFFER */
    Py_ssize_t itemsize;
    PyObject *device, *requires_grad; /* owned, or NULL: has none */
    PyObject *keys, *keys_of, *keys_include, *keys_exclude; /* owned: dispatch keys, and torch's functions; or NULL */
    PyObject *torch_check;      /* owned: torch's own check of the same facts, faster than ours; or NULL */
    Py_ssize_t *strides;        /* behind sizes */
    Py_ssize_t sizes[];
};

/* The first thing that is not as expected. */
struct difference {
    const char *what;           /* a property, as recompile_cause.aspect; NULL: none */
    int dimension;              /* of a size or stride; -1 otherwise */
    const char *gone;           /* the property is not there at all, in words; or NULL */
    Py_ssize_t wanted, got;     /* numbers, if both objects are NULL */
    PyObject *wanted_object, *got_object; /* owned */
};

struct numpy_array {            /* PyArrayObject_fields */
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
};

static struct {
    PyObject *dtype, *device, *requires_grad, *shape, *stride, *strides;
} names;

static int names_ready(void)
{
#define NAME(name)                                                                                                     \
    if (!names.name && !(names.name = PyUnicode_InternFromString(#name)))                                              \
        return -1
    NAME(dtype);
    NAME(device);
    NAME(requires_grad);
    NAME(shape);
    NAME(stride);
    NAME(strides);
#undef NAME
    return 0;
}

/* ---- differences ---- */

static int differ(struct difference *out, const char *what, PyObject *wanted, PyObject *got)
{
    if (out)
        *out = (struct difference){.what = what, .dimension = -1, .wanted_object = Py_XNewRef(wanted), .got_object = Py_XNewRef(got)};
    return 0;
}

static int differ_number(struct difference *out, const char *what, int dimension, Py_ssize_t wanted, Py_ssize_t got)
{
    if (out)
        *out = (struct difference){.what = what, .dimension = dimension, .wanted = wanted, .got = got};
    return 0;
}

static int differ_gone(struct difference *out, const char *what, const char *gone)
{
    if (out)
        *out = (struct difference){.what = what, .dimension = -1, .gone = gone};
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
    if (view.itemsize != t->itemsize || strcmp(view.format ? view.format : "B", t->format) != 0) {
        result = 0;
        if (out) {
            PyObject *wanted = PyUnicode_FromString(t->format), *got = PyUnicode_FromString(view.format ? view.format : "B");
            differ(out, "dtype", wanted, got);
            Py_XDECREF(wanted);
            Py_XDECREF(got);
        }
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

/* The attribute NAME must be WANTED (NULL: not looked at). */
static int compare_attribute(PyObject *value, PyObject *name, PyObject *wanted, struct difference *out)
{
    PyObject *got;
    int same;

    if (!wanted)
        return 1;
    same = compat_optional_attribute(value, name, &got);
    if (same <= 0)
        return same < 0 ? -1 : differ(out, PyUnicode_AsUTF8(name), wanted, NULL);
    same = got == wanted ? 1 : PyObject_RichCompareBool(wanted, got, Py_EQ);
    if (same == 0)
        differ(out, PyUnicode_AsUTF8(name), wanted, got);
    Py_DECREF(got);
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

    if (compat_optional_attribute(value, names.stride, &got) > 0 && PyCallable_Check(got)) {
        Py_DECREF(got);
        return PyObject_CallMethodNoArgs(value, names.stride);
    }
    Py_CLEAR(got);
    if (!PyErr_Occurred())
        compat_optional_attribute(value, names.strides, &got);
    if (got == Py_None) /* nothing to say: contiguous, says cupy's and others' interface */
        Py_CLEAR(got);
    return got;
}

/* What decides where torch's dispatcher goes: the tensor's keys, and the thread's
 * includes and excludes. A new reference. */
static PyObject *keys_now(const struct guard_tensor *t, PyObject *value)
{
    PyObject *keys = PyObject_CallOneArg(t->keys_of, value), *other;

    other = keys ? PyObject_CallNoArgs(t->keys_include) : NULL;
    if (keys)
        Py_SETREF(keys, other ? PyNumber_Or(keys, other) : NULL);
    Py_XDECREF(other);
    other = keys ? PyObject_CallNoArgs(t->keys_exclude) : NULL;
    if (keys)
        Py_SETREF(keys, other ? PyNumber_Subtract(keys, other) : NULL);
    Py_XDECREF(other);
    return keys;
}

static int compare_keys(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    PyObject *got;
    int same;

    if (!t->keys)
        return 1;
    got = keys_now(t, value);
    same = got ? PyObject_RichCompareBool(t->keys, got, Py_EQ) : -1;
    if (same == 0)
        differ(out, "dispatch_keys", t->keys, got);
    Py_XDECREF(got);
    return same;
}

static int compare_attributes(const struct guard_tensor *t, PyObject *value, struct difference *out)
{
    int result;
    PyObject *strides;

    if ((result = compare_attribute(value, names.dtype, t->dtype, out)) != 1 ||
        (result = compare_attribute(value, names.device, t->device, out)) != 1 ||
        (result = compare_attribute(value, names.requires_grad, t->requires_grad, out)) != 1 ||
        (result = compare_keys(t, value, out)) != 1 ||
        (result = compare_tuple(t, PyObject_GetAttr(value, names.shape), t->sizes, "size", out)) != 1)
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

    if (!guard_is(&leaf->is[0], (PyObject *)Py_TYPE(value)))
        return differ_gone(out, "type", NULL);
    if (likely(t->way == TENSOR_NUMPY))
        return compare_numpy(t, value, out);
    return t->way == TENSOR_BUFFER ? compare_buffer(t, value, out) : compare_attributes(t, value, out);
}

int tensor_check(const struct guard_leaf *leaf, PyObject *const *values)
{
    PyObject *check = leaf->tensor->torch_check, *result;

    if (likely(!check) || !guard_is(&leaf->is[0], (PyObject *)Py_TYPE(values[0])))
        return compare(leaf, values[0], NULL);
    result = PyObject_CallOneArg(check, values[0]);
    Py_XDECREF(result); /* a bool */
    return result ? result == Py_True : -1;
}

static PyObject *number_text(const struct difference *d, Py_ssize_t number)
{
    return d->dimension < 0 ? PyUnicode_FromFormat("%s %zd", d->what, number)
                            : PyUnicode_FromFormat("%s[%d] = %zd", d->what, d->dimension, number);
}

static PyObject *object_text(const struct difference *d, PyObject *object)
{
    PyObject *word = object ? values_repr(object) : PyUnicode_FromString("missing");
    PyObject *text = word ? PyUnicode_FromFormat("%s %U", d->what, word) : NULL;

    Py_XDECREF(word);
    return text;
}

PyObject *tensor_actual(const struct guard_leaf *leaf, PyObject *const *values, struct guard_words *words)
{
    struct difference d = {0};
    PyObject *text = NULL, *type;
    int result = compare(leaf, values[0], &d);

    if (result < 0)
        return NULL;
    if (!d.what)
        return PyUnicode_FromString("the same by now");
    words->aspect = d.what;
    words->dimension = d.dimension;
    if (d.gone) {
        text = PyUnicode_FromString(d.gone);
    } else if (strcmp(d.what, "type") == 0) {
        words->expected = Py_NewRef(leaf->is[0].text);
        type = values_type(Py_TYPE(values[0]));
        text = type ? PyUnicode_FromFormat("class %U", type) : NULL;
        Py_XDECREF(type);
    } else if (d.wanted_object || d.got_object) {
        words->expected = object_text(&d, d.wanted_object);
        text = words->expected ? object_text(&d, d.got_object) : NULL;
    } else {
        words->expected = number_text(&d, d.wanted);
        text = words->expected ? number_text(&d, d.got) : NULL;
    }
    Py_XDECREF(d.wanted_object);
    Py_XDECREF(d.got_object);
    return text;
}

void tensor_free(struct guard_tensor *t)
{
    if (!t)
        return;
    Py_XDECREF(t->dtype);
    Py_XDECREF(t->device);
    Py_XDECREF(t->requires_grad);
    Py_XDECREF(t->keys);
    Py_XDECREF(t->keys_of);
    Py_XDECREF(t->keys_include);
    Py_XDECREF(t->keys_exclude);
    Py_XDECREF(t->torch_check);
    PyMem_Free(t->format);
    PyMem_Free(t);
}

int tensor_traverse(struct guard_tensor *t, visitproc visit, void *arg)
{
    if (!t)
        return 0;
    Py_VISIT(t->dtype);
    Py_VISIT(t->device);
    Py_VISIT(t->requires_grad);
    Py_VISIT(t->keys);
    Py_VISIT(t->keys_of);
    Py_VISIT(t->keys_include);
    Py_VISIT(t->keys_exclude);
    Py_VISIT(t->torch_check);
    return 0;
}

/* ---- from an example ---- */

static struct guard_tensor *tensor_new(Py_ssize_t ndim)
{
    struct guard_tensor *t;

    if (ndim < 0 || ndim > 1000) {
        PyErr_Format(PyExc_ValueError, "TENSOR_MATCH: %zd dimensions", ndim);
        return NULL;
    }
    t = PyMem_Calloc(1, sizeof *t + 2 * (size_t)ndim * sizeof *t->sizes);
    if (!t) {
        PyErr_NoMemory();
        return NULL;
    }
    t->ndim = (int)ndim;
    t->strides = t->sizes + ndim;
    return t;
}

static int copy_tuple(PyObject *tuple, Py_ssize_t *numbers, int count)
{
    PyObject *plain = tuple ? PySequence_Tuple(tuple) : NULL;

    if (plain && PyTuple_GET_SIZE(plain) != count)
        PyErr_SetString(PyExc_ValueError, "TENSOR_MATCH: the example has more or fewer strides than sizes");
    for (int i = 0; plain && !PyErr_Occurred() && i < count; i++)
        numbers[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(plain, i), PyExc_OverflowError);
    Py_XDECREF(plain);
    return PyErr_Occurred() ? -1 : 0;
}

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

/* torch's functions, if VALUE is a torch.Tensor of a torch that has them. */
static int find_keys(struct guard_tensor *t, PyObject *value)
{
    static const char *const functions[] = {"_dispatch_keys", "_dispatch_tls_local_include_set",
                                            "_dispatch_tls_local_exclude_set"};
    PyObject **slots[] = {&t->keys_of, &t->keys_include, &t->keys_exclude};
    PyObject *modules = PyImport_GetModuleDict(), *torch, *tensor = NULL, *native = NULL;

    torch = modules ? Py_XNewRef(PyDict_GetItemString(modules, "torch")) : NULL;
    tensor = torch ? tracer_attribute(torch, "Tensor") : NULL;
    if (tensor && PyType_Check(tensor) && PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)tensor))
        native = tracer_attribute(torch, "_C");
    for (int i = 0; native && i < 3; i++)
        if (!(*slots[i] = tracer_attribute(native, functions[i])))
            break;
    if (t->keys_exclude)
        t->keys = keys_now(t, value);
    Py_XDECREF(torch);
    Py_XDECREF(tensor);
    Py_XDECREF(native);
    if (t->keys || !PyErr_Occurred())
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear(); /* not obtainable */
    return 0;
}

static struct guard_tensor *from_attributes(PyObject *value)
{
    PyObject *shape = PyObject_GetAttr(value, names.shape), *strides;
    Py_ssize_t ndim = shape ? PySequence_Size(shape) : -1;
    struct guard_tensor *t = ndim < 0 ? NULL : tensor_new(ndim);

    if (!t || copy_tuple(shape, t->sizes, t->ndim))
        goto err;
    t->way = TENSOR_ATTRIBUTES;
    t->dtype = PyObject_GetAttr(value, names.dtype);
    if (!t->dtype || compat_optional_attribute(value, names.device, &t->device) < 0 ||
        compat_optional_attribute(value, names.requires_grad, &t->requires_grad) < 0 || find_keys(t, value))
        goto err;
    strides = strides_of(value);
    t->strided = strides && !copy_tuple(strides, t->strides, t->ndim);
    Py_XDECREF(strides);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        goto err;
    PyErr_Clear(); /* a sparse tensor has none */
    if (is_numpy(value, t)) {
        t->way = TENSOR_NUMPY;
        Py_CLEAR(t->device); /* numpy 2: always "cpu" */
    }
    Py_DECREF(shape);
    return t;
err:
    Py_XDECREF(shape);
    tensor_free(t);
    return NULL;
}

static struct guard_tensor *from_buffer(PyObject *value)
{
    Py_buffer view;
    struct guard_tensor *t;
    const char *format;

    if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO))
        return NULL;
    t = tensor_new(view.ndim);
    if (t) {
        format = view.format ? view.format : "B";
        t->way = TENSOR_BUFFER;
        t->strided = true;
        t->itemsize = view.itemsize;
        t->format = PyMem_Malloc(strlen(format) + 1);
        if (t->format)
            strcpy(t->format, format);
        for (int i = 0; i < view.ndim; i++) {
            t->sizes[i] = view.shape[i];
            t->strides[i] = view.strides[i];
        }
        if (!t->format) {
            PyErr_NoMemory();
            tensor_free(t);
            t = NULL;
        }
    }
    PyBuffer_Release(&view);
    return t;
}

/* Mark the dimensions that WHICH names (None: none, True: all, or a sequence of indices) as dynamic. */
static int mark_dynamic(const struct guard_tensor *t, PyObject *which, Py_ssize_t *numbers)
{
    PyObject *indices = NULL;
    Py_ssize_t i;

    if (which == Py_None || which == Py_False)
        return 0;
    if (which == Py_True) {
        for (i = 0; i < t->ndim; i++)
            numbers[i] = DYNAMIC;
        return 0;
    }
    indices = PySequence_Tuple(which);
    for (Py_ssize_t at = 0; indices && at < PyTuple_GET_SIZE(indices); at++) {
        i = PyNumber_AsSsize_t(PyTuple_GET_ITEM(indices, at), PyExc_IndexError);
        if (i == -1 && PyErr_Occurred())
            break;
        if (i < -t->ndim || i >= t->ndim) {
            PyErr_Format(PyExc_IndexError, "TENSOR_MATCH: dimension %zd is dynamic, and there are %d", i, t->ndim);
            break;
        }
        numbers[i < 0 ? i + t->ndim : i] = DYNAMIC;
    }
    Py_XDECREF(indices);
    return PyErr_Occurred() ? -1 : 0;
}

/* Where a size is dynamic, the strides of what lies around it are too. Call before
 * the sizes of T are marked; MARKED are the sizes with marks. */
static void follow_sizes(struct guard_tensor *t, const Py_ssize_t *marked)
{
    Py_ssize_t smallest = PY_SSIZE_T_MAX;
    int inner = -1;

    for (int i = 0; i < t->ndim; i++)
        if (marked[i] == DYNAMIC && Py_ABS(t->strides[i]) <= smallest) {
            smallest = Py_ABS(t->strides[i]);
            inner = i; /* of equal ones the last, as in C order */
        }
    for (int i = 0; inner >= 0 && i < t->ndim; i++)
        if (i != inner && (Py_ABS(t->strides[i]) > smallest || (Py_ABS(t->strides[i]) == smallest && i < inner)))
            t->strides[i] = DYNAMIC;
}

/* NUMBERS as torch wants them: [[4, None, 3]]. */
static PyObject *torch_list(const Py_ssize_t *numbers, int count, bool known)
{
    PyObject *list = PyList_New(count);

    for (int i = 0; list && i < count; i++) {
        PyObject *item = known && numbers[i] != DYNAMIC ? PyLong_FromSsize_t(numbers[i]) : Py_NewRef(Py_None);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list ? Py_BuildValue("[N]", list) : NULL;
}

/* torch._C._dynamo.guards.TensorGuards checks a torch.Tensor without making
 * Python objects of its facts. Taken if it is there and holds for the example. */
static int find_torch_check(struct guard_tensor *t, PyObject *value)
{
    PyObject *module, *type = NULL, *guards = NULL, *sizes, *strides, *args = NULL, *keywords = NULL, *result = NULL;

    if (!t->keys)
        return 0;
    module = PyImport_ImportModule("torch._C._dynamo.guards");
    type = module ? tracer_attribute(module, "TensorGuards") : NULL;
    sizes = torch_list(t->sizes, t->ndim, true);
    strides = torch_list(t->strides, t->ndim, t->strided);
    args = PyTuple_Pack(1, value);
    if (type && sizes && strides && args)
        keywords = Py_BuildValue("{sOsO}", "dynamic_dims_sizes", sizes, "dynamic_dims_strides", strides);
    guards = keywords ? PyObject_Call(type, args, keywords) : NULL;
    t->torch_check = guards ? tracer_attribute(guards, "check") : NULL;
    result = t->torch_check ? PyObject_CallOneArg(t->torch_check, value) : NULL;
    if (result != Py_True)
        Py_CLEAR(t->torch_check);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    Py_XDECREF(guards);
    Py_XDECREF(result);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear(); /* another torch: the attributes do */
    return 0;
}

/* "(4, *, 3)" */
static PyObject *numbers_text(const Py_ssize_t *numbers, int count)
{
    PyObject *text = PyUnicode_FromString("(");

    for (int i = 0; text && i < count; i++)
        Py_SETREF(text, numbers[i] == DYNAMIC ? PyUnicode_FromFormat("%U%s*", text, i ? ", " : "")
                                              : PyUnicode_FromFormat("%U%s%zd", text, i ? ", " : "", numbers[i]));
    if (text)
        Py_SETREF(text, PyUnicode_FromFormat(count == 1 ? "%U,)" : "%U)", text));
    return text;
}

/* Add " LABEL WORD" to *TEXT; WORD is stolen. On no memory *TEXT becomes NULL. */
static void append(PyObject **text, const char *label, PyObject *word)
{
    PyObject *longer = *text && word ? PyUnicode_FromFormat("%U %s%U", *text, label, word) : NULL;

    Py_XSETREF(*text, longer);
    Py_XDECREF(word);
}

static PyObject *tensor_text(const struct guard_tensor *t, PyTypeObject *type)
{
    PyObject *text = values_type(type);

    append(&text, "", t->dtype ? values_repr(t->dtype) : PyUnicode_FromString(t->format));
    if (t->device)
        append(&text, "on ", values_repr(t->device));
    if (t->requires_grad)
        append(&text, "requires_grad=", values_repr(t->requires_grad));
    append(&text, "size ", numbers_text(t->sizes, t->ndim));
    if (t->strided)
        append(&text, "stride ", numbers_text(t->strides, t->ndim));
    if (t->keys)
        append(&text, "", values_repr(t->keys));
    return text;
}

int tensor_prepare(struct guard_leaf *leaf, PyObject *tree, PyObject *arguments)
{
    PyObject *value, *dynamic_sizes, *dynamic_strides;
    struct guard_tensor *t = NULL;
    Py_ssize_t *marked = NULL;

    if (!PyArg_ParseTuple(arguments, "OOO:TENSOR_MATCH", &value, &dynamic_sizes, &dynamic_strides) || names_ready())
        return -1;
    if (PyObject_HasAttr(value, names.dtype) && PyObject_HasAttr(value, names.shape)) {
        t = from_attributes(value);
    } else if (PyObject_CheckBuffer(value)) {
        t = from_buffer(value);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "TENSOR_MATCH: the example, a %s, has neither dtype and shape nor the buffer protocol",
                     Py_TYPE(value)->tp_name);
    }
    leaf->tensor = t;
    if (!t || guard_identify(tree, leaf, 0, (PyObject *)Py_TYPE(value)))
        return -1;
    leaf->stays = t->way == TENSOR_ATTRIBUTES;
    marked = PyMem_New(Py_ssize_t, t->ndim + 1);
    if (!marked) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(marked, t->sizes, (size_t)t->ndim * sizeof *marked);
    if (mark_dynamic(t, dynamic_sizes, marked))
        goto err;
    if (dynamic_strides == Py_None)
        follow_sizes(t, marked);
    else if (mark_dynamic(t, dynamic_strides, t->strides))
        goto err;
    memcpy(t->sizes, marked, (size_t)t->ndim * sizeof *marked);
    PyMem_Free(marked);
    if (find_torch_check(t, value))
        return -1;
    leaf->expected = tensor_text(t, Py_TYPE(value));
    return leaf->expected ? 0 : -1;
err:
    PyMem_Free(marked);
    return -1;
}

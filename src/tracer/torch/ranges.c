/* tracer/torch/ranges.c -- record_function and NVTX ranges of torch become spans.
 *
 * Runs in: the traced process, under the GIL, while frames are recorded.
 *
 * Nothing of torch is replaced: the hook sees the frames of these Python functions, whose code has
 * CODE_RANGE. A span begins when the function that begins a range has returned, and ends when the
 * function that ends the range is called:
 *
 *     record_function.__enter__(self), .__exit__(self, ...)    torch/autograd/profiler.py
 *     range_push(msg), range_pop()                             torch/cuda/nvtx.py, by thread
 *     range_start(msg) -> handle, range_end(handle)            torch/cuda/nvtx.py */
#include "tracer/hooks.h"
#include "tracer/span.h"
#include "tracer/torch/torch.h"

#define P tracer_process

/* A dict of the open spans. A value is the list of the spans that one key has opened, the last at
 * the end. The keys: (0, address of a record_function), (1, address of the thread's struct tracer),
 * (2, handle of a range_start()). */
static PyObject *opened;

static const struct {
    const char *file, *name;
    enum range_act act;
} functions[] = {
    {"/torch/autograd/profiler.py", "record_function.__enter__", RANGE_ENTER},
    {"/torch/autograd/profiler.py", "record_function.__exit__", RANGE_EXIT},
    {"/torch/cuda/nvtx.py", "range_push", RANGE_PUSH},
    {"/torch/cuda/nvtx.py", "range_pop", RANGE_POP},
    {"/torch/cuda/nvtx.py", "range_start", RANGE_START},
    {"/torch/cuda/nvtx.py", "range_end", RANGE_END},
};

static bool does_text_end_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

static enum range_act find_range_act(const char *file, const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(name, functions[i].name) && does_text_end_with(file, functions[i].file))
            return functions[i].act;
    return RANGE_NONE;
}

static bool is_range_function(const char *file, const char *name)
{
    return find_range_act(file, name) != RANGE_NONE;
}

/* Return the key under which `opened` has the range of ACT and SUBJECT: a new reference, or
 * NULL. */
static PyObject *make_key_of_range(enum range_act act, PyObject *subject)
{
    switch (act) {
    case RANGE_ENTER:
    case RANGE_EXIT:
        return Py_BuildValue("(in)", 0, (Py_ssize_t)subject);
    case RANGE_PUSH:
    case RANGE_POP:
        return Py_BuildValue("(in)", 1, (Py_ssize_t)tracer_thread);
    default:
        return PyLong_CheckExact(subject) ? Py_BuildValue("(iO)", 2, subject) : NULL;
    }
}

/* Append OPEN to the list of open spans of KEY. Steals the reference. */
static void add_open_span_of_key(PyObject *key, PyObject *open)
{
    OWNED PyObject *held = open;
    OWNED PyObject *made = NULL;
    PyObject *list; /* borrowed */

    if (!opened)
        opened = PyDict_New();
    list = opened ? PyDict_GetItem(opened, key) : NULL;
    if (opened && !list) {
        made = list = PyList_New(0);
        if (!list || PyDict_SetItem(opened, key, list))
            list = NULL;
    }
    if (list)
        PyList_Append(list, open);
    PyErr_Clear();
}

/* Remove the span that was opened last from the list of KEY. Returns a new reference, or NULL. */
static PyObject *take_last_span_of_key(PyObject *key)
{
    PyObject *list = opened ? PyDict_GetItem(opened, key) : NULL; /* borrowed */
    Py_ssize_t count = list ? PyList_GET_SIZE(list) : 0;
    PyObject *open = count ? Py_NewRef(PyList_GET_ITEM(list, count - 1)) : NULL;

    if (count > 1)
        PyList_SetSlice(list, count - 1, count, NULL);
    else if (list)
        PyDict_DelItem(opened, key);
    PyErr_Clear();
    return open;
}

/* Has the class of SELF a descriptor called NAME, such as a property? Reading it could run code of
 * the program. */
static bool has_class_descriptor(PyObject *self, const char *name)
{
    OWNED PyObject *text = PyUnicode_InternFromString(name);
    PyObject *found = text ? _PyType_Lookup(Py_TYPE(self), text) : NULL; /* borrowed */

    return !text || (found && Py_TYPE(found)->tp_descr_get);
}

/* Return the str attribute NAME of the record_function SELF, a new reference, or NULL. Runs no code
 * of the program. */
static PyObject *read_str_attribute(PyObject *self, const char *name)
{
    bool is_plain = Py_TYPE(self)->tp_getattro == PyObject_GenericGetAttr;
    PyObject *value;

    if (!is_plain || has_class_descriptor(self, name))
        return NULL;
    value = tracer_get_attribute(self, name);
    if (value && !PyUnicode_Check(value))
        Py_CLEAR(value);
    return value;
}

static void begin_span_of_range(enum range_act act, PyObject *subject, PyObject *result)
{
    const bool is_function = act == RANGE_ENTER;
    OWNED PyObject *name = is_function ? read_str_attribute(subject, "name") : Py_NewRef(subject);
    OWNED PyObject *args = is_function ? read_str_attribute(subject, "args") : NULL;
    OWNED PyObject *keys = args ? Py_BuildValue("(s)", "args") : NULL;
    OWNED PyObject *key = make_key_of_range(act, act == RANGE_START ? result : subject);
    PyObject *open = NULL;

    PyErr_Clear();
    if (name && !PyUnicode_Check(name))
        return;
    if (key && name)
        open = span_begin(is_function ? SPAN_RECORD_FUNCTION : SPAN_NVTX, name, keys, &args);
    if (open)
        add_open_span_of_key(key, open);
}

static struct range_call range_before_call(compat_frame *frame)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *keep_name = NULL, *keep_file = NULL;
    PyCodeObject *code = compat_get_code(frame);
    size_t bytes;
    const char *name = values_convert_to_utf8(code->co_qualname, 200, &bytes, &keep_name);
    const char *file = values_convert_to_utf8(code->co_filename, 4096, &bytes, &keep_file);
    struct range_call call = {find_range_act(file, name), NULL};
    PyObject *subject = code->co_argcount ? compat_get_local(frame, 0) : Py_None;
    bool ends = call.act == RANGE_EXIT || call.act == RANGE_POP || call.act == RANGE_END;
    OWNED PyObject *key = ends && subject ? make_key_of_range(call.act, subject) : NULL;
    PyObject *open = key ? take_last_span_of_key(key) : NULL;

    PyErr_Clear();
    if (open)
        span_end_open(open);
    if (ends || !subject)
        call.act = RANGE_NONE;
    else
        call.subject = Py_NewRef(subject);
    return call;
}

static void range_after_call(struct range_call *call, PyObject *result)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *subject = call->subject;

    if (result && call->act != RANGE_NONE)
        begin_span_of_range(call->act, subject, result);
}

void ranges_register(void)
{
    tracer_hooks.is_range = is_range_function;
    tracer_hooks.range_before = range_before_call;
    tracer_hooks.range_after = range_after_call;
}

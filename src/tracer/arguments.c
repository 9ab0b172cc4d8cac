/* tracer/arguments.c -- `run --args`: arguments and return values of calls. See
 * tracer/arguments.h.
 *
 * Runs in: the traced process, for frames of code with CODE_ARGS. */
#include "tracer/arguments.h"

#include "tracer/redact.h"

#define P tracer_process

enum { DEPTH = 2 /* containers that are nested deeper than this are written as their types */ };

/* Return how many of CODE's first local variables are its arguments, with *args and **kwargs. */
static int argument_count(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}

/* Write TEXT as a CONTROL_ARGS of the innermost open frame. Making TEXT may have collected garbage,
 * and finalizers may have ended the recording or switched greenlets. */
static void text_write(struct tracer *t, enum call_values which, const struct attributes *text)
{
    uint64_t words[1 + (ATTRIBUTES_BYTES + 7) / 8] = {text->used};
    const uint32_t count = 1 + (uint32_t)((text->used + 7) / 8);

    if (!P.recording || !text->used)
        return;
    tracer_follow(t, PyThreadState_Get(), NULL);
    if (!t->open || t->open->code & OPEN_LOST)
        return;
    memcpy(words + 1, text->text, text->used);
    if (tracer_room_within(t))
        tracer_put_control(t, CONTROL_ARGS, which, count, words);
}

/* Return how secret the return value of CODE is, by the function's name. */
static enum secret result_level(PyCodeObject *code)
{
    KEPT struct tracer_exception pending = tracer_exception_aside();
    OWNED PyObject *keep = NULL;
    size_t bytes;
    const char *name = values_utf8(code->co_name, 200, &bytes, &keep);

    return redact_name(name, bytes);
}

static void arguments_write(struct tracer *t, compat_frame *frame)
{
    KEPT struct tracer_exception pending = tracer_exception_aside();
    PyCodeObject *code = compat_code(frame);
    const int count = argument_count(code);
    OWNED PyObject *keys = PyTuple_GetSlice(code->co_localsplusnames, 0, count);
    PyObject **values = calloc((size_t)count + 1, sizeof *values);
    struct attributes text;

    for (int i = 0; values && i < count; i++) {
        PyObject *value = compat_local(frame, i);
        values[i] = Py_NewRef(value ? value : Py_None);
    }
    if (keys && values) {
        attributes_put(&text, keys, values, DEPTH);
        text_write(t, CALL_ARGUMENTS, &text);
    }
    for (int i = 0; values && i < count; i++)
        Py_DECREF(values[i]);
    free(values);
    PyErr_Clear();
}

enum secret values_begin(struct tracer *t, compat_frame *frame, bool resumed)
{
    const enum secret level = result_level(compat_code(frame));

    if (!resumed)
        arguments_write(t, frame);
    return level;
}

void values_end(struct tracer *t, compat_frame *frame, bool resumed, PyObject *result,
                enum secret level)
{
    KEPT struct tracer_exception pending = tracer_exception_aside();
    struct attributes text;

    if (!result || !P.recording)
        return;
    if (resumed && compat_has_yielded(frame))
        return;
    attributes_put_value(&text, result, level, DEPTH);
    text_write(t, CALL_RESULT, &text);
    PyErr_Clear();
}

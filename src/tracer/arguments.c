/* tracer/arguments.c -- `run --args`: arguments and return values of calls. See
 * tracer/arguments.h.
 *
 * Runs in: the traced process, for frames of code with CODE_ARGS. */
#include "tracer/arguments.h"

#include "tracer/redact.h"
#include "tracer/uncaught.h"

#define P tracer_process

enum { DEPTH = 2 /* containers that are nested deeper than this are written as their types */ };

/* Write TEXT as a CONTROL_ARGS of the innermost open frame. SESSION is the session in which TEXT
 * was made: making it may have collected garbage, and finalizers may have ended that recording,
 * begun another or switched greenlets. */
static void write_argument_text(struct tracer *t, uint32_t session, enum call_values which,
                                const struct attributes *text)
{
    uint64_t words[1 + (ATTRIBUTES_BYTES + 7) / 8] = {text->used};
    const uint32_t count = 1 + (uint32_t)((text->used + 7) / 8);

    if (!P.recording || P.sessions != session || !text->used)
        return;
    tracer_update_running_stack(t, PyThreadState_Get(), NULL);
    if (!t->open || t->open->code & OPEN_LOST)
        return;
    memcpy(words + 1, text->text, text->used);
    if (tracer_make_room_within_frame(t))
        tracer_put_control_record(t, CONTROL_ARGS, which, count, words);
}

/* Return how secret the return value of CODE is, by the function's name. */
static enum secret find_result_secrecy(PyCodeObject *code)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    OWNED PyObject *keep = NULL;
    size_t bytes;
    const char *name = values_convert_to_utf8(code->co_name, SIZE_MAX, &bytes, &keep);

    return redact_name(name, bytes);
}

static void write_arguments(struct tracer *t, uint32_t session, compat_frame *frame)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    PyCodeObject *code = compat_get_code(frame);
    const int count = compat_count_arguments(code);
    OWNED PyObject *keys = PyTuple_GetSlice(code->co_localsplusnames, 0, count);
    PyObject **values = calloc((size_t)count + 1, sizeof *values);
    struct attributes text;

    for (int i = 0; values && i < count; i++) {
        PyObject *value = compat_get_local(frame, i);
        values[i] = Py_NewRef(value ? value : Py_None);
    }
    if (keys && values) {
        attributes_write(&text, keys, values, DEPTH);
        write_argument_text(t, session, CALL_ARGUMENTS, &text);
    }
    for (int i = 0; values && i < count; i++)
        Py_DECREF(values[i]);
    free(values);
    PyErr_Clear();
}

struct values_begun values_before_frame(struct tracer *t, compat_frame *frame, bool resumed)
{
    struct values_begun begun = {SECRET_OF_MODULE, P.sessions};

    if (uncaught_is_watched(compat_get_code(frame)))
        return begun;
    begun.level = find_result_secrecy(compat_get_code(frame));
    if (!resumed)
        write_arguments(t, begun.session, frame);
    return begun;
}

void values_after_frame(struct tracer *t, compat_frame *frame, bool resumed, PyObject *result,
                        struct values_begun begun)
{
    KEPT struct tracer_exception pending = tracer_put_exception_aside();
    struct attributes text;

    if (!P.recording)
        return;
    if (begun.level == SECRET_OF_MODULE) {
        if (!result)
            uncaught_record_exception(&pending);
        return;
    }
    if (!result || P.sessions != begun.session)
        return;
    if (resumed && compat_has_yielded(frame))
        return;
    attributes_write_value(&text, result, begun.level, DEPTH);
    write_argument_text(t, begun.session, CALL_RESULT, &text);
    PyErr_Clear();
}

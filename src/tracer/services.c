/* tracer/services.c -- the functions of the shim that a watcher (capture/) calls. See
 * tracer/evaluator/watcher.h.
 *
 * Runs in: the traced process, under the GIL. */
#include "tracer/evaluator/cache.h"
#include "tracer/record.h"
#include "tracer/resume/resume.h"

static void attach_watcher(const struct watcher *watcher)
{
    shim_watcher = *watcher;
}

static PyObject *evaluate_frame(PyThreadState *ts, compat_frame *frame, int throws)
{
    return record_evaluate(tracer_thread, ts, frame, throws);
}

static struct capture *set_watching_capture(PyThreadState *ts, struct capture *capture)
{
    struct tracer *t = tracer_thread;
    struct capture *before;

    tracer_update_running_stack(t, ts, NULL);
    before = t->capturing;
    t->capturing = capture;
    return before;
}

static struct masked_callback mask_callback(PyThreadState *ts)
{
    struct tracer *t = tracer_thread;
    struct masked_callback masked = {0};

    if (!t)
        return masked;
    tracer_update_running_stack(t, ts, NULL);
    masked.callback = t->callback;
    /* keep the front end, too, because code that runs until unmask_callback() may set torch's */
    masked.front = t->front;
    t->callback = NULL;
    return masked;
}

static void unmask_callback(PyThreadState *ts, struct masked_callback masked)
{
    struct tracer *t = tracer_thread;

    if (t)
        tracer_update_running_stack(t, ts, NULL);
    if (masked.callback && !t->callback) {
        t->callback = masked.callback;
        t->front = masked.front;
    } else {
        Py_XDECREF(masked.callback);
    }
}

static PyObject *take_values_by_plan(PyThreadState *ts, PyObject *plan, compat_frame *frame)
{
    struct tracer *t = tracer_thread;
    struct watched_rest *rest;
    PyObject *values;

    if (!t)
        return NULL;
    tracer_update_running_stack(t, ts, NULL);
    rest = t->replay;
    if (!rest || rest->plan != plan || rest->frame != frame)
        return NULL;
    values = rest->values;
    rest->values = NULL;
    t->replay = NULL;
    return values;
}

static PyObject *call_unrecorded(PyObject *(*work)(void *data), void *data)
{
    struct tracer_exception raised;
    struct torch_quiet quiet;
    PyObject *result;

    torch_quiet_begin(&quiet);
    result = work(data);
    /* put the exception of this call aside, because torch_quiet_end() restores the one from before
     * it */
    raised = tracer_put_exception_aside();
    torch_quiet_end(&quiet);
    if (raised.type)
        tracer_restore_exception(&raised);
    return result;
}

static struct shim_services services = {
    .size = sizeof services,
    .deepest_path = GUARD_DEEPEST,
    .attach = attach_watcher,
    .callback_for_all = tracer_set_callback_for_all_threads,
    .evaluate = evaluate_frame,
    .set_watching = set_watching_capture,
    .mask = mask_callback,
    .unmask = unmask_callback,
    .take_values = take_values_by_plan,
    .quietly = call_unrecorded,
    .is_users = tracer_is_user_code,
    .unbound = UNBOUND,
    .link_of = link_of,
    .link_prepare_to_enter_again = link_prepare_to_enter_again,
};

int services_ready(PyObject *module)
{
    return PyModule_AddObject(module, "_shim", PyCapsule_New(&services, SHIM_SERVICES, NULL));
}

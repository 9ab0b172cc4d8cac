/* tracer/uncaught.c -- records the exception with which the program's main module ended.
 *
 * Runs in: the traced process, when the body of a module ends. No code of the program runs. */
#include "tracer/uncaught.h"

#define P tracer_process

enum {
    /* how many frames of runpy call the module under `python -m`: _run_module_as_main and
     * _run_code */
    CALLERS_OF_MODULE = 2,
    /* Most facts that a process writes. A program that embeds Python may run more main modules, and
     * the trace then does not tell how the last one ended. */
    FACTS_MOST = 64,
    TYPE_BYTES = 200
};

/* May TRACEBACK be that of a main module? It is not in another thread, nor in an exit handler, as
 * far as CPython tells that one is running (compat_is_exiting()). */
static bool may_be_traceback_of_main_module(PyObject *traceback)
{
    OWNED PyObject *globals = NULL;
    PyObject *name;

    if (getpid() != gettid() || compat_is_exiting(P.interpreter))
        return false;
    if (traceback && PyTraceBack_Check(traceback))
        globals = PyFrame_GetGlobals(((PyTracebackObject *)traceback)->tb_frame);
    name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    return name && PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "__main__");
}

/* Was the frame that has just ended the outermost one, not counting the frames of runpy under
 * `python -m`? */
static bool was_outermost_frame(void)
{
    compat_frame *frame = compat_find_python_frame(compat_current_frame(PyThreadState_Get()));
    compat_frame *outermost = frame;
    int callers = 0;

    for (; frame && callers <= CALLERS_OF_MODULE; callers++) {
        outermost = frame;
        frame = compat_find_python_frame(frame->previous);
    }
    if (callers != CALLERS_OF_MODULE)
        return !callers;
    return !PyUnicode_CompareWithASCIIString(compat_get_code(outermost)->co_name,
                                             "_run_module_as_main");
}

/* Find the innermost line of the program's own code in TRACEBACK; if there is none, the line of
 * the main module. Returns the id of the line's code object, and sets *LINE. Both are -1 if not
 * known. */
static int64_t find_innermost_line(PyObject *traceback, int64_t *line)
{
    PyTracebackObject *at = (PyTracebackObject *)traceback;
    int64_t found = -1;

    *line = -1;
    for (; at && PyTraceBack_Check(at); at = at->tb_next) {
        OWNED PyObject *code = (PyObject *)PyFrame_GetCode(at->tb_frame);
        PyCodeObject *const where = (PyCodeObject *)code;
        const uintptr_t mark = tracer_mark_in_slot(compat_get_extra(where, P.extra));
        const bool is_wanted = found < 0 || tracer_is_user_code(where);
        if (!is_wanted || !tracer_has_id(mark))
            continue;
        found = (int64_t)(mark >> CODE_SHIFT);
        *line = at->tb_lineno < 0 ? PyCode_Addr2Line(where, at->tb_lasti) : at->tb_lineno;
    }
    return found;
}

void uncaught_record_exception(const struct tracer_exception *raised)
{
    const bool is_exit =
        raised->type && PyType_Check(raised->type) &&
        PyType_IsSubtype((PyTypeObject *)raised->type, (PyTypeObject *)PyExc_SystemExit);
    struct fact_text type = {NULL, 0};
    int64_t line = -1;
    int64_t code = -1;
    bool is_told;

    if (PyInterpreterState_Get() != P.interpreter || P.uncaught > FACTS_MOST)
        return;
    if (!raised->type || !was_outermost_frame() ||
        !may_be_traceback_of_main_module(raised->traceback))
        return;
    if (is_exit && !P.uncaught)
        return; /* an exit needs no fact, unless an earlier main module has written one */
    P.uncaught++;
    is_told = !is_exit && P.uncaught <= FACTS_MOST;
    if (is_told && PyType_Check(raised->type)) {
        type.text = ((PyTypeObject *)raised->type)->tp_name;
        type.bytes = (int64_t)values_cut_utf8(type.text, strlen(type.text), TYPE_BYTES);
        code = find_innermost_line(raised->traceback, &line);
    }
    tracer_fact(UNCAUGHT, .clock = (int64_t)tracer_read_session_clock(), .code = code, .line = line,
                .type = type);
}

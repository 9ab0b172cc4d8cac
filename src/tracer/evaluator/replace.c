/* tracer/evaluator/replace.c -- run other code in place of a frame.
 *
 * Runs in: the traced process, under the GIL.
 *
 * CPython has no call for "evaluate this code with that frame's arguments". But
 * in a frame that has not started, the arguments are its first locals, in the
 * order: positional, keyword-only, *args, **kwargs. So the compiled code is
 * made "flat", every argument positional, once; a function is made of it with
 * the globals and closure of the original; and a vectorcall of that function
 * with the locals as arguments does what CPython itself does for a call:
 *
 *     frame of f(a, *b, c):   localsplus = [a, c, b, ...]
 *     flat code:              co_argcount 3, no flags for * and **
 *     vectorcall(flat_f, localsplus, 3)
 *
 * When the new frame is about to start, the flat code and the function made of it
 * have done their work: it becomes a frame of the callback's code and the original
 * function, and the old one lets go of the arguments. The old frame was never
 * linked into the thread's stack, so depth, tracebacks and sys._getframe() are as
 * if the original had run. Then it is disposed of.
 * Class bodies, modules and exec() have their namespace in the frame instead
 * and take another road (PyEval_EvalCodeEx). */
#include <string.h>

#include "tracer/evaluator/cache.h"

enum { SMALL_ARGUMENTS = 15, GENERATORS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR };

static int argument_count(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}

/* CODE, ENTRY's, with every argument positional: made once. New reference; NULL with an exception. */
static PyObject *flat_of(struct cache_entry *entry, PyCodeObject *code)
{
    PyObject *replace, *none, *names, *flat = NULL;

    if (entry->flat || (!code->co_kwonlyargcount && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS))))
        return Py_NewRef(entry->flat ? entry->flat : (PyObject *)code);
    replace = tracer_attribute((PyObject *)code, "replace");
    none = PyTuple_New(0);
    names = Py_BuildValue("{s:i,s:i,s:i}", "co_argcount", argument_count(code), "co_kwonlyargcount", 0, "co_flags",
                          code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS));
    if (replace && none && names)
        flat = PyObject_Call(replace, none, names);
    if (flat && !entry->flat && entry->valid)
        entry->flat = Py_NewRef(flat);
    Py_XDECREF(replace);
    Py_XDECREF(none);
    Py_XDECREF(names);
    return flat;
}

/* ---- the function that is called ---- */

/* The kept function between calls: bound to nothing of the program's. The garbage
 * collector does not look into code objects, so whatever their entries keep, and
 * leads back to the code, is never freed: globals do. */
static PyObject *nothing;

static void bind(PyFunctionObject *function, PyObject *globals, PyObject *builtins)
{
    PyObject *old[2] = {function->func_globals, function->func_builtins};

    function->func_globals = Py_NewRef(globals);
    function->func_builtins = Py_NewRef(builtins);
    Py_DECREF(old[0]);
    Py_DECREF(old[1]);
}

static void name_like(PyFunctionObject *function, PyFunctionObject *original)
{
    if (function->func_name != original->func_name)
        Py_SETREF(function->func_name, Py_NewRef(original->func_name));
    if (function->func_qualname != original->func_qualname)
        Py_SETREF(function->func_qualname, Py_NewRef(original->func_qualname));
}

/* A function of ENTRY's flat code (CODE, made flat) that stands for FRAME's. New reference, to be
 * given back with function_done. One is kept in the entry; never with a closure, nor for
 * generators, which keep theirs. */
static PyObject *function_for(struct cache_entry *entry, PyObject *code, compat_frame *frame)
{
    PyFunctionObject *original = compat_function(frame), *made = (PyFunctionObject *)entry->function;
    PyObject *flat;

    if (made && !original->func_closure) {
        Py_INCREF(made); /* a name that goes may be the program's code */
        if (!entry->running) {
            bind(made, frame->f_globals, frame->f_builtins);
            name_like(made, original);
        }
        if ((PyObject *)made == entry->function && made->func_globals == frame->f_globals &&
            made->func_builtins == frame->f_builtins && made->func_qualname == original->func_qualname &&
            made->func_name == original->func_name) {
            entry->running++;
            return (PyObject *)made;
        }
        Py_DECREF(made);
    }
    if (!nothing && !(nothing = PyDict_New()))
        return NULL;
    flat = flat_of(entry, (PyCodeObject *)code);
    made = flat ? (PyFunctionObject *)PyFunction_New(flat, frame->f_globals) : NULL;
    Py_XDECREF(flat);
    if (!made)
        return NULL;
    bind(made, frame->f_globals, frame->f_builtins);
    name_like(made, original);
    if (original->func_closure) {
        Py_XSETREF(made->func_closure, Py_NewRef(original->func_closure));
    } else if (!entry->function && entry->valid && !(((PyCodeObject *)code)->co_flags & GENERATORS)) {
        entry->function = Py_NewRef((PyObject *)made);
        entry->running = 1;
    }
    return (PyObject *)made;
}

static void function_done(struct cache_entry *entry, PyObject *function)
{
    if (entry->function == function && !--entry->running) {
        if (Py_REFCNT(function) == 2)
            bind((PyFunctionObject *)function, nothing, nothing);
        else /* a frame object has it */
            Py_CLEAR(entry->function);
    }
    Py_DECREF(function);
}

static PyObject *call_flat(struct tracer *t, compat_frame *frame, PyObject *code, PyObject *function)
{
    int count = argument_count(compat_code(frame));
    PyObject *small[SMALL_ARGUMENTS + 1], **arguments = small, *result;

    if (count > SMALL_ARGUMENTS && !(arguments = PyMem_Malloc(sizeof *arguments * (size_t)(count + 1))))
        return PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        arguments[i + 1] = compat_local(frame, i);
    /* The next frame of this thread is the function's: let it pass, as one of the
     * code that the callback returned. */
    t->replacement = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
    t->replacement_for = (PyCodeObject *)code;
    t->replaced = frame;
    result = PyObject_Vectorcall(function, arguments + 1, (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (arguments != small)
        PyMem_Free(arguments);
    return result;
}

/* The replaced frame lets go of its arguments: they die when the new one drops them. */
void replace_begin(struct tracer *t, compat_frame *frame)
{
    int count = t->replaced ? argument_count(compat_code(t->replaced)) : 0;

    t->replacement = NULL;
    if (t->replacement_for != compat_code(frame))
        compat_set_code(frame, t->replacement_for);
    for (int i = 0; i < count; i++)
        compat_drop_local(t->replaced, i);
    /* Nobody sees the function that was made. But a generator's frame is laid out
     * by its function's code. */
    if (t->replaced && !(compat_code(frame)->co_flags & GENERATORS))
        compat_set_function(frame, compat_function(t->replaced));
}

PyObject *replace_frame(struct tracer *t, PyThreadState *ts, compat_frame *frame, struct cache_entry *entry,
                        PyObject *code)
{
    PyCodeObject *const awaited = t->replacement, *awaited_for = NULL; /* NULL but below PyEval_EvalCodeEx() */
    compat_frame *replaced = NULL;
    PyObject *function = NULL, *result = NULL;

    if (unlikely(awaited)) {
        awaited_for = t->replacement_for;
        replaced = t->replaced;
    }
    if (!(compat_code(frame)->co_flags & CO_NEWLOCALS)) {
        t->replacement = t->replacement_for = (PyCodeObject *)code;
        t->replaced = NULL;
        /* It makes a function first: what the garbage collector runs then leaves this as it finds it. */
        result = PyEval_EvalCodeEx(code, frame->f_globals, frame->f_locals ? frame->f_locals : frame->f_globals, NULL, 0,
                                   NULL, 0, NULL, 0, NULL, compat_function(frame)->func_closure);
    } else if ((function = function_for(entry, code, frame))) {
        result = call_flat(t, frame, code, function);
    }
    t->replacement = awaited;
    if (unlikely(awaited)) {
        t->replacement_for = awaited_for;
        t->replaced = replaced;
    }
    if (function)
        function_done(entry, function);
    compat_dispose(ts, frame);
    return result;
}

/* tracer/compat/cpython.h -- every difference between CPython versions.
 *
 * The rest of the tracer reads as if there were one CPython. The comment of each macro or function
 * below says which difference it hides, and since which version. An unknown version stops the
 * build, because its frames may have another layout. */
#ifndef DYNTRACE_CPYTHON_COMPAT_H
#define DYNTRACE_CPYTHON_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "versions.h"

/* Gives each opcode that this CPython lacks a number that no instruction has, so that code can name
 * it. opcode.h comes later and redefines the opcodes that exist. */
enum compat_other_opcodes {
    COMPAT_OTHER_OPCODES = 511,
    LOAD_CLOSURE,
    LOAD_FAST_CHECK,
    LOAD_FAST_AND_CLEAR,
    LOAD_FAST_BORROW,
    LOAD_FAST_LOAD_FAST,
    STORE_FAST_LOAD_FAST,
    STORE_FAST_STORE_FAST,
    LOAD_FAST_BORROW_LOAD_FAST_BORROW,
    LOAD_ASSERTION_ERROR,
    LOAD_SMALL_INT,
    LOAD_COMMON_CONSTANT,
    LOAD_METHOD,
    LOAD_SUPER_ATTR,
    UNARY_POSITIVE,
    TO_BOOL,
    BINARY_SUBSCR,
    BINARY_SLICE,
    STORE_SLICE,
    FORMAT_VALUE,
    FORMAT_SIMPLE,
    FORMAT_WITH_SPEC,
    BUILD_CONST_KEY_MAP,
    LIST_TO_TUPLE,
    CALL_INTRINSIC_1,
    PRECALL,
    KW_NAMES,
    CALL_KW,
    SET_FUNCTION_ATTRIBUTE,
    RETURN_CONST,
    BEFORE_WITH,
    POP_ITER,
    NOT_TAKEN,
    POP_JUMP_IF_FALSE,
    POP_JUMP_IF_TRUE,
    POP_JUMP_IF_NONE,
    POP_JUMP_IF_NOT_NONE,
    POP_JUMP_FORWARD_IF_FALSE,
    POP_JUMP_FORWARD_IF_TRUE,
    POP_JUMP_FORWARD_IF_NONE,
    POP_JUMP_FORWARD_IF_NOT_NONE,
    POP_JUMP_BACKWARD_IF_FALSE,
    POP_JUMP_BACKWARD_IF_TRUE,
    POP_JUMP_BACKWARD_IF_NONE,
    POP_JUMP_BACKWARD_IF_NOT_NONE,
    JUMP_IF_FALSE_OR_POP,
    JUMP_IF_TRUE_OR_POP,
    COMPAT_OPCODES
};

#if PY_MAJOR_VERSION != 3 || PY_MINOR_VERSION < CPYTHON_OLDEST || PY_MINOR_VERSION > CPYTHON_NEWEST
    #error "dyntrace does not know this CPython: extend tracer/compat/, then versions.h"
#endif

#define Py_BUILD_CORE 1
#pragma GCC diagnostic push
/* the headers of CPython 3.14 have unused parameters */
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* 3.12 defines _PyGC_FINALIZED both in a public and in an internal header */
#undef _PyGC_FINALIZED
#include <internal/pycore_call.h>
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pyarena.h>
#if PY_VERSION_HEX >= 0x030e0000 /* gh-120834 moved the structs of frames to new headers */
    #include <internal/pycore_interpframe.h>
    #include <internal/pycore_interpframe_structs.h>
    #include <internal/pycore_stackref.h>
    #include <internal/pycore_tstate.h>
#endif
#pragma GCC diagnostic pop
#undef Py_BUILD_CORE
#include <opcode.h>

typedef struct _PyInterpreterFrame compat_frame;

/* A free-threaded build (PEP 703): threads run in parallel, and tracer/world.h says what protects
 * us. Free-threaded builds before 3.14 are not supported (python/build_facts.py). */
#ifdef Py_GIL_DISABLED
    #if PY_VERSION_HEX < 0x030e0000
        #error "dyntrace supports free-threaded builds of CPython from 3.14 on"
    #endif
    #include <internal/pycore_pystate.h>
    #define COMPAT_FREE_THREADED 1
    #define COMPAT_LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
    #define COMPAT_STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)
#else
    #define COMPAT_FREE_THREADED 0
    #define COMPAT_LOAD(variable) (variable)
    #define COMPAT_STORE(variable, value) ((void)((variable) = (value)))
#endif

/* How a frame refers to objects: by tagged references since 3.14. Its code is in f_executable since
 * 3.13, its function in f_funcobj since 3.12. */
#if PY_VERSION_HEX >= 0x030e0000
    #define COMPAT_BORROWED(reference) ((void *)PyStackRef_AsPyObjectBorrow(reference))
    #define COMPAT_OWNED(object) PyStackRef_FromPyObjectNew(object)
#else
    #define COMPAT_BORROWED(reference) ((void *)(reference))
    #define COMPAT_OWNED(object) ((void *)Py_NewRef((PyObject *)(object)))
#endif
#if PY_VERSION_HEX < 0x030d0000
    #define f_executable f_code
#endif
#if PY_VERSION_HEX < 0x030c0000
    #define f_funcobj f_func
#endif

/* Functions that a later version made public, often under another name. They read an optional
 * attribute without the cost of an exception, tell whether the interpreter is shutting down, and
 * keep user data in code objects. Also the recursion depth that is left, which counts Python and C
 * separately since 3.12. */
#if PY_VERSION_HEX >= 0x030d0000
    #define compat_optional_attribute PyObject_GetOptionalAttr
    #define compat_is_finalizing Py_IsFinalizing
#else
    #define compat_optional_attribute _PyObject_LookupAttr
    #define compat_is_finalizing _Py_IsFinalizing
#endif
#if PY_VERSION_HEX >= 0x030c0000
    #define compat_request_extra PyUnstable_Eval_RequestCodeExtraIndex
    #define compat_recursion_remaining(ts) ((ts)->py_recursion_remaining)
#else
    #define compat_request_extra _PyEval_RequestCodeExtraIndex
    #define compat_recursion_remaining(ts) ((ts)->recursion_remaining)
#endif

/* Is the interpreter exiting? Since 3.12 true while exit handlers run; in 3.11 always false for the
 * main interpreter. */
#define compat_is_exiting(interpreter) ((interpreter)->finalizing)

/* Return item number I of LIST, an exact list or tuple: a new reference, or NULL if there is no
 * such item. Without a GIL another thread may change a list meanwhile. */
static inline PyObject *compat_get_list_item(PyObject *list, Py_ssize_t i)
{
#if COMPAT_FREE_THREADED
    if (PyList_CheckExact(list)) {
        PyObject *item = PyList_GetItemRef(list, i);
        if (!item)
            PyErr_Clear();
        return item;
    }
#endif
    return i < PySequence_Fast_GET_SIZE(list) ? Py_NewRef(PySequence_Fast_GET_ITEM(list, i)) : NULL;
}

/* Return the attribute NAME of TYPE or of a base class, without calling its __get__: a new
 * reference, or NULL. Runs no code of the program. */
static inline PyObject *compat_type_lookup(PyTypeObject *type, PyObject *name)
{
#if COMPAT_FREE_THREADED
    return _PyType_LookupRef(type, name);
#else
    return Py_XNewRef(_PyType_Lookup(type, name));
#endif
}

/* Return the frame's code object, borrowed. */
static inline PyCodeObject *compat_get_code(compat_frame *frame)
{
    return COMPAT_BORROWED(frame->f_executable);
}

/* Return how many arguments CODE has, including *args and **kwargs. They are CODE's first local
 * variables. */
static inline int compat_count_arguments(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}

/* Return the function whose call the frame is, borrowed. */
static inline PyFunctionObject *compat_get_function(compat_frame *frame)
{
    return COMPAT_BORROWED(frame->f_funcobj);
}

/* Return local number I of the frame: an argument, cell or variable; borrowed, or NULL. Free
 * variables are NULL before the frame has started. */
static inline PyObject *compat_get_local(compat_frame *frame, int i)
{
#if PY_VERSION_HEX >= 0x030e0000
    if (PyStackRef_IsNull(frame->localsplus[i]))
        return NULL;
#endif
    return COMPAT_BORROWED(frame->localsplus[i]);
}

/* Is local number I of CODE a variable of an inlined comprehension (PEP 709)? Such a variable is
 * not the function's own. */
#if PY_VERSION_HEX >= 0x030c0000
    #define compat_is_hidden(code, i) \
        (_PyLocals_GetKind((code)->co_localspluskinds, i) & CO_FAST_HIDDEN)
#else
    #define compat_is_hidden(code, i) ((void)(code), (void)(i), 0)
#endif

/* Give a frame that has not started another code object, which must have the same variables. */
static inline void compat_set_code(compat_frame *frame, PyCodeObject *code)
{
    PyObject *old = (PyObject *)compat_get_code(frame);

    frame->f_executable = COMPAT_OWNED(code);
#if PY_VERSION_HEX >= 0x030d0000
    frame->instr_ptr = _PyCode_CODE(code);
#else
    frame->prev_instr = _PyCode_CODE(code) - 1;
#endif
#if PY_VERSION_HEX < 0x030c0000 /* in 3.11 a generator gets its code from the function */
    if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        Py_SETREF(frame->f_func->func_code, Py_NewRef((PyObject *)code));
#endif
    Py_DECREF(old);
}

/* Make the frame one of FUNCTION, whose closure and globals must be the same. */
static inline void compat_set_function(compat_frame *frame, PyFunctionObject *function)
{
    PyObject *old = (PyObject *)compat_get_function(frame);

    frame->f_funcobj = COMPAT_OWNED(function);
    Py_DECREF(old);
}

/* Delete local number I of FRAME: release its reference and set it to NULL. */
static inline void compat_drop_local(compat_frame *frame, int i)
{
#if PY_VERSION_HEX >= 0x030e0000
    _PyStackRef old = frame->localsplus[i];
    frame->localsplus[i] = PyStackRef_NULL;
    PyStackRef_XCLOSE(old);
#else
    Py_CLEAR(frame->localsplus[i]);
#endif
}

/* Return local number I of FRAME, with its reference, and leave NULL in its place. Returns NULL if
 * the local has no value. */
static inline PyObject *compat_take_local(compat_frame *frame, int i)
{
#if PY_VERSION_HEX >= 0x030e0000
    _PyStackRef old = frame->localsplus[i];
    frame->localsplus[i] = PyStackRef_NULL;
    return PyStackRef_IsNull(old) ? NULL : PyStackRef_AsPyObjectSteal(old);
#else
    PyObject *old = frame->localsplus[i];
    frame->localsplus[i] = NULL;
    return old;
#endif
}

/* Set local number I of FRAME, which has no value now, to VALUE (steals the reference) or NULL. */
static inline void compat_store_local(compat_frame *frame, int i, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030e0000
    frame->localsplus[i] = value ? PyStackRef_FromPyObjectSteal(value) : PyStackRef_NULL;
#else
    frame->localsplus[i] = value;
#endif
}

/* Return the content of CELL, borrowed. Returns NULL if CELL is empty or no cell. */
static inline PyObject *compat_cell_content(PyObject *cell)
{
    if (!cell || !PyCell_Check(cell))
        return NULL;
    return PyCell_GET(cell);
}

/* May a free variable of a running frame be NULL? Since 3.13 (PEP 667) f_locals skips it; up to
 * 3.12 f_locals assumes that each free variable has a cell. */
#define COMPAT_FREE_MAY_BE_NULL (PY_VERSION_HEX >= 0x030d0000)

/* Hide FRAME from tracebacks, sys._getframe() and others until its next instruction: it looks like
 * a frame that has not started. If it has a frame object, f_lineno becomes the line of the next
 * instruction that has a line. */
static inline void compat_hide_frame(compat_frame *frame)
{
    PyCodeObject *code = compat_get_code(frame);
#if PY_VERSION_HEX >= 0x030d0000
    _Py_CODEUNIT **now = &frame->instr_ptr;
#else
    _Py_CODEUNIT **now = &frame->prev_instr;
#endif
    for (int line = -1, unit = (int)(*now - _PyCode_CODE(code));
         frame->frame_obj && line < 0 && unit < Py_SIZE(code); unit++)
        frame->frame_obj->f_lineno = (line = PyCode_Addr2Line(code, 2 * unit)) < 0 ? 0 : line;
    *now = _PyCode_CODE(code) + code->_co_firsttraceable - 1;
}

/* Return the state of the running thread if it holds the GIL; otherwise NULL, where
 * PyThreadState_Get() would end the process. */
static inline PyThreadState *compat_attached_thread(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* What compat_show_frame_again() needs to make a hidden frame visible again. */
struct compat_hidden {
    _Py_CODEUNIT *now;
    int line;
};
static inline struct compat_hidden compat_hide_frame_temporarily(compat_frame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
    struct compat_hidden hidden = {frame->instr_ptr, 0};
#else
    struct compat_hidden hidden = {frame->prev_instr, 0};
#endif

    if (frame->frame_obj)
        hidden.line = frame->frame_obj->f_lineno;
    compat_hide_frame(frame);
    return hidden;
}
static inline void compat_show_frame_again(compat_frame *frame, struct compat_hidden hidden)
{
#if PY_VERSION_HEX >= 0x030d0000
    frame->instr_ptr = hidden.now;
#else
    frame->prev_instr = hidden.now;
#endif
    if (frame->frame_obj)
        frame->frame_obj->f_lineno = hidden.line;
}

/* Replace FUNCTION's globals and builtins. */
static inline void compat_set_globals_and_builtins(PyFunctionObject *function, PyObject *globals,
                                                   PyObject *builtins)
{
    PyObject *old[2] = {function->func_globals, function->func_builtins};

    function->func_globals = Py_NewRef(globals);
    function->func_builtins = Py_NewRef(builtins);
    Py_DECREF(old[0]);
    Py_DECREF(old[1]);
}

/* Has the frame run already? This is so for a resumed generator, and for a frame that another hook
 * has begun to run. */
static inline int compat_has_started(compat_frame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
    return frame->instr_ptr != _PyCode_CODE(compat_get_code(frame));
#else
    return frame->prev_instr != _PyCode_CODE(compat_get_code(frame)) - 1;
#endif
}

/* Does the frame belong to a generator, coroutine or async generator? Then it is being resumed,
 * because the call that makes a generator has an ordinary frame. */
static inline int compat_is_resumed(const compat_frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

/* After a resumed frame returned without an exception: has it yielded? The frame's memory is still
 * valid, because the evaluator's caller holds a reference to the generator. In 3.15 (gh-143939) the
 * caller reads the answer from the thread state, where the next generator to end overwrites it. So
 * no Python code may run between the frame's end and this call, nor between this call and the
 * evaluator's return. */
static inline int compat_has_yielded(compat_frame *frame)
{
    PyGenObject *generator = (PyGenObject *)((char *)frame - offsetof(PyGenObject, gi_iframe));

    return generator->gi_frame_state < FRAME_EXECUTING;
}

/* A slot of user data in each code object. Reading it is an inline PyUnstable_Code_GetExtra(),
 * which saves a call on every frame.
 *
 * Setting it is our own code, too. CPython's setter makes room for every registered index, and when
 * the code object dies, CPython calls the free function of each index, with NULL for unset slots.
 * So a program that registers an index after us would get calls for every code object that we mark,
 * perhaps when its function can no longer be called. We make room only up to our index. The caller
 * releases the slot's former value. -1 with MemoryError. */
struct compat_extra {
    Py_ssize_t size;
    void *slot[];
};

static inline uintptr_t compat_get_extra(PyCodeObject *code, Py_ssize_t index)
{
    struct compat_extra *extra = COMPAT_LOAD(code->co_extra);

    return extra && index < extra->size ? (uintptr_t)COMPAT_LOAD(extra->slot[index]) : 0;
}

/* Return a copy of EXTRA, which may be NULL, with room up to index MOST. EXTRA itself is never
 * freed, because without a GIL another thread may be reading it. So memory is lost, but only for
 * code objects for which another extension has set an index below ours. */
static inline struct compat_extra *compat_extra_grow(struct compat_extra *extra, Py_ssize_t most)
{
    const size_t bytes = sizeof *extra + (size_t)(most + 1) * sizeof extra->slot[0];
    const Py_ssize_t size = extra ? extra->size : 0;
    struct compat_extra *grown =
        COMPAT_FREE_THREADED ? PyMem_Malloc(bytes) : PyMem_Realloc(extra, bytes);

    if (!grown)
        return NULL;
    if (COMPAT_FREE_THREADED && size)
        memcpy(grown->slot, extra->slot, (size_t)size * sizeof extra->slot[0]);
    memset(grown->slot + size, 0, (size_t)(most + 1 - size) * sizeof grown->slot[0]);
    grown->size = most + 1;
    return grown;
}

/* Without a GIL the caller is in a critical section of CODE. */
static inline int compat_set_extra(PyCodeObject *code, Py_ssize_t index, void *value)
{
    struct compat_extra *extra = code->co_extra;

    if (!extra || index >= extra->size) {
        extra = compat_extra_grow(extra, index);
        if (!extra) {
            PyErr_NoMemory();
            return -1;
        }
        COMPAT_STORE(extra->slot[index], value);
        COMPAT_STORE(code->co_extra, (void *)extra);
        return 0;
    }
    COMPAT_STORE(extra->slot[index], value);
    return 0;
}

/* In 3.12 all interpreters share the static code of frozen modules, even interpreters with a GIL of
 * their own. The main interpreter frees it: tracer/compat/mend.c. (3.11 has one GIL for all
 * interpreters; in 3.13 each interpreter makes its own code.) */
#define COMPAT_SHARES_CODE (PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030d0000)
#if COMPAT_SHARES_CODE
    #define compat_is_shared(code) _Py_IsImmortal((PyObject *)(code))
#else
    #define compat_is_shared(code) ((void)(code), false)
#endif

/* Any PEP 523 hook makes Python functions call each other through C. In 3.12 and 3.13 such a call
 * takes two units of the C recursion limit, so a program would raise RecursionError far sooner than
 * without us. We give the units back. 3.11 has no such limit. 3.14 checks the stack pointer
 * instead. */
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
    #define COMPAT_C_UNITS 2
    #define COMPAT_COUNTS_C_RECURSION true
    #define compat_c_remaining(ts) ((ts)->c_recursion_remaining)
    #define compat_set_c_remaining(ts, n) ((void)((ts)->c_recursion_remaining = (n)))
    #define compat_enter_c(ts) ((void)((ts)->c_recursion_remaining += COMPAT_C_UNITS))
    #define compat_leave_c(ts) ((void)((ts)->c_recursion_remaining -= COMPAT_C_UNITS))
#else
    #define COMPAT_COUNTS_C_RECURSION false
    #define compat_c_remaining(ts) ((void)(ts), 0)
    #define compat_set_c_remaining(ts, n) ((void)(ts), (void)(n))
    #define compat_enter_c(ts) ((void)0)
    #define compat_leave_c(ts) ((void)0)
#endif

/* Raise the recursion depth that is left by N, for the frame that calls a builtin and for the
 * builtin. */
#if PY_VERSION_HEX < 0x030c0000
    #define compat_uncount(ts, n) ((void)((ts)->recursion_remaining += 2 * (n)))
#else
    #define compat_uncount(ts, n)                     \
        ((void)((ts)->py_recursion_remaining += (n)), \
         compat_set_c_remaining(ts, compat_c_remaining(ts) + (n)))
#endif

/* Give each free variable of FRAME a cell, if FRAME has a frame object. FRAME will never start, but
 * a thread that saw it may keep the frame object and read f_locals. Up to 3.12 f_locals assumes a
 * cell in each free variable, and takes the cells of a frame that has not started from the
 * function's closure, which a resume function releases. */
static inline void compat_fill_free_variables(compat_frame *frame)
{
    PyCodeObject *code = compat_get_code(frame);
    const int count = code->co_nfreevars;
    const int first = code->co_nlocalsplus - count;
    PyObject *closure;
    PyObject *cell;

    if (!frame->frame_obj) {
        return;
    }
    closure = compat_get_function(frame)->func_closure;
    for (int i = 0; i < count; i++) {
        if (compat_get_local(frame, first + i)) {
            continue;
        }
        if (closure && i < PyTuple_GET_SIZE(closure)) {
            cell = Py_NewRef(PyTuple_GET_ITEM(closure, i));
        } else {
            cell = PyCell_New(NULL);
        }
        compat_store_local(frame, first + i, cell);
    }
#if PY_VERSION_HEX < 0x030d0000
    if (count && !compat_has_started(frame)) {
        /* make the frame look started, as f_locals itself does */
        frame->prev_instr = _PyCode_CODE(code);
    }
#endif
}

/* Release a frame that has not started, because other code has run in its place
 * (tracer/evaluator/decide.c). In 3.11 the evaluator's caller clears the frame. Since 3.13 CPython
 * exports a function for its JIT that clears a frame. 3.12 has neither, so CPython runs one
 * RETURN_VALUE in the frame. A pending exception stays. */
#if PY_VERSION_HEX >= 0x030d0000
extern void _PyEval_FrameClearAndPop(PyThreadState *, struct _PyInterpreterFrame *);
#endif
static inline void compat_clear_frame(PyThreadState *ts, compat_frame *frame)
{
    compat_fill_free_variables(frame);
#if PY_VERSION_HEX >= 0x030c0000
    PyObject *const pending = ts->current_exception;

    ts->current_exception = NULL;
    #if PY_VERSION_HEX >= 0x030d0000
    _PyEval_FrameClearAndPop(ts, frame);
    #else
    static _Py_CODEUNIT code[2] = {{.op.code = RETURN_VALUE}, {.op.code = RETURN_VALUE}};
    PyFrameObject *object = (PyFrameObject *)Py_XNewRef((PyObject *)frame->frame_obj);
    PyCodeObject *const ended = compat_get_code(frame);
    PyObject *result;

    frame->localsplus[frame->stacktop++] = Py_NewRef(Py_None);
    frame->prev_instr = code; /* as if code[0] had just run: code[1] runs first */
    compat_enter_c(ts);
    result = _PyEval_EvalFrameDefault(ts, frame, 0);
    compat_leave_c(ts);
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    /* the frame object has a copy of the frame now, and must not look for a position in CODE */
    if (object) {
        object->f_frame->prev_instr = _PyCode_CODE(ended) + ended->_co_firsttraceable;
        Py_DECREF(object);
    }
    #endif
    ts->current_exception = pending; /* drop an exception that a finalizer has left */
#endif
}

/* Can a class of the program have __buffer__ (PEP 688)? Then asking an object for its buffer may
 * run code of the program. */
#define COMPAT_HAS_BUFFER_METHOD (PY_VERSION_HEX >= 0x030c0000)

/* Read and set the PEP 523 slot: inline versions of _PyInterpreterState_GetEvalFrameFunc() and
 * _PyInterpreterState_SetEvalFrameFunc(), because in observe mode torch's evaluator changes the
 * slot at each compiled call. Since 3.13 more must be done to set it, so CPython's function is
 * called. We do not call 3.15's _PyInterpreterState_SetEvalFrameAllowSpecialization() (gh-146031):
 * while any hook is set, CPython's loop takes the general path, so a specialised call would only
 * add a failing test (docs/costs.md). */
static inline _PyFrameEvalFunction compat_get_evaluator(PyInterpreterState *interpreter)
{
    const _PyFrameEvalFunction found = COMPAT_LOAD(interpreter->eval_frame);

    return found ? found : _PyEval_EvalFrameDefault;
}
static inline void compat_set_evaluator(PyInterpreterState *interpreter,
                                        _PyFrameEvalFunction evaluator)
{
#if COMPAT_FREE_THREADED
    /* not CPython's function, which would stop the world: the caller has done this */
    if (interpreter->rare_events.set_eval_frame_func < UINT8_MAX)
        interpreter->rare_events.set_eval_frame_func++;
    #if PY_VERSION_HEX >= 0x030f0000
    interpreter->eval_frame_allow_specialization = 0;
    #endif
    COMPAT_STORE(interpreter->eval_frame, evaluator == _PyEval_EvalFrameDefault ? NULL : evaluator);
#elif PY_VERSION_HEX >= 0x030d0000
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluator);
#else
    interpreter->eval_frame = evaluator == _PyEval_EvalFrameDefault ? NULL : evaluator;
#endif
}

/* Since 3.13 an interpreter counts the changes of its PEP 523 slot, up to 255. */
#define COMPAT_COUNTS_SLOT_CHANGES (PY_VERSION_HEX >= 0x030d0000)
static inline unsigned compat_count_slot_changes(PyInterpreterState *interpreter)
{
#if COMPAT_COUNTS_SLOT_CHANGES
    return interpreter->rare_events.set_eval_frame_func;
#else
    (void)interpreter;
    return 0;
#endif
}

/* Does CPython have perf trampolines: -X perf and sys.activate_stack_trampoline()? */
#define COMPAT_HAS_TRAMPOLINES (PY_VERSION_HEX >= 0x030c0000)

/* f_lasti of a frame that has not started, in code units. Since 3.13 a frame points to its next
 * instruction; before 3.13 it points to the last one. */
#define COMPAT_NOT_STARTED (PY_VERSION_HEX >= 0x030d0000 ? 0 : -1)

/* The chunks of memory in which frames lie. The lowest chunk lives as long as the stack of frames.
 * When a library switches stacks (greenlet), it switches the chunks.
 * compat_is_first_frame_on_stack(): is FRAME the first frame of its stack? */
#define compat_chunk(ts) ((ts)->datastack_chunk)
static inline int compat_is_first_frame_on_stack(PyThreadState *ts, const compat_frame *frame)
{
    return ts->datastack_chunk && !ts->datastack_chunk->previous &&
           (const void *)frame == &ts->datastack_chunk->data[1];
}

/* 3.14 has the bounds of the C stack in the thread state. While a thread runs on one of our stack
 * segments, they must be the bounds of the segment. compat_restore_stack_bounds() sets them back to
 * OLD; with LOWEST, only if this moves them down. Beyond the limits CPython postpones the
 * deallocation of objects, and greenlet then drops one reference too many to each postponed
 * object. */
#if PY_VERSION_HEX >= 0x030e0000
struct compat_bounds {
    uintptr_t top, soft, hard;
};
static inline struct compat_bounds compat_set_stack_bounds(PyThreadState *ts, char *base, char *end)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)ts;
    struct compat_bounds old = {impl->c_stack_top, impl->c_stack_soft_limit,
                                impl->c_stack_hard_limit};
    uintptr_t margin = old.soft - old.hard;

    impl->c_stack_top = (uintptr_t)end;
    impl->c_stack_hard_limit = (uintptr_t)base + margin;
    impl->c_stack_soft_limit = (uintptr_t)base + 2 * margin;
    return old;
}
static inline void compat_restore_stack_bounds(PyThreadState *ts, struct compat_bounds old,
                                               bool lowest)
{
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)ts;

    if (lowest && impl->c_stack_soft_limit < old.soft)
        return;
    impl->c_stack_top = old.top;
    impl->c_stack_soft_limit = old.soft;
    impl->c_stack_hard_limit = old.hard;
}
#else
struct compat_bounds {
    char none;
};
    #define compat_set_stack_bounds(ts, base, end) \
        ((void)(ts), (void)(base), (void)(end), (struct compat_bounds){0})
    #define compat_restore_stack_bounds(ts, old, lowest) ((void)(ts), (void)(old), (void)(lowest))
#endif

/* Since 3.12 SEND runs a generator inline. Under a hook it cannot: see tracer/compat/mend.c. */
#define COMPAT_SEND_RAISES_UNDER_HOOK (PY_VERSION_HEX >= 0x030c0000)

/* The innermost Python frame of a thread. Up to 3.12 its pointer is in the struct `cframe`. */
#if PY_VERSION_HEX >= 0x030d0000
    #define compat_current_frame(ts) ((ts)->current_frame)
#else
    #define compat_current_frame(ts) ((ts)->cframe->current_frame)
#endif

/* Return FRAME, or its nearest caller that is a frame of Python code; NULL if there is none. Since
 * 3.12 there are internal frames of the interpreter between them, whose `owner` is greater than
 * that of any Python frame. */
static inline compat_frame *compat_find_python_frame(compat_frame *frame)
{
#if PY_VERSION_HEX >= 0x030c0000
    while (frame && frame->owner > FRAME_OWNED_BY_FRAME_OBJECT)
        frame = frame->previous;
#endif
    return frame;
}

/* Keep faulthandler from crashing during finalizers. 3.12 and 3.13 put an internal frame ("shim",
 * owned by the C stack) below each frame that is called from C, and under a hook all frames are.
 * While a frame ends and its variables die, its shim is the current frame, and a finalizer runs
 * above it with a shim of its own. faulthandler does not expect two shims in a row: 3.13 crashes,
 * 3.12 prints one. So the finalizer's shim is put above the caller's frame instead, as without a
 * hook. compat_step_over_shim() returns the skipped shim, or NULL, for
 * compat_step_back_to_shim(). */
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
static inline compat_frame *compat_step_over_shim(PyThreadState *ts)
{
    compat_frame *current = compat_current_frame(ts);

    if (!current || current->owner != FRAME_OWNED_BY_CSTACK)
        return NULL;
    compat_current_frame(ts) = current->previous;
    return current;
}

static inline void compat_step_back_to_shim(PyThreadState *ts, compat_frame *shim)
{
    if (shim)
        compat_current_frame(ts) = shim;
}
#else
    #define compat_step_over_shim(ts) ((void)(ts), (compat_frame *)NULL)
    #define compat_step_back_to_shim(ts, shim) ((void)(ts), (void)(shim))
#endif

/* In 3.13 CALL_ALLOC_AND_ENTER_INIT runs a Python __init__ without calling the hook; 3.14 calls the
 * hook. See tracer/compat/init.c. */
#define COMPAT_INIT_BYPASSES_HOOK (PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030e0000)

#endif

/* tracer/compat/step.h -- what an instruction does, by CPython version, and a frame that somebody else than CPython steps.
 *
 * Runs in: the traced process, under the GIL. For src/tracer/capture/. */
#ifndef DYNTRACE_COMPAT_STEP_H
#define DYNTRACE_COMPAT_STEP_H

#include "tracer/compat/bytecode.h"

/* What an instruction does. ARG and FLAG of struct compat_action say with what. */
enum compat_does {
    DOES_SOMETHING,     /* what is not known here */
    DOES_NOTHING,
    DOES_LOAD_FAST, DOES_STORE_FAST, DOES_DELETE_FAST, /* variable ARG */
    DOES_TAKE_FAST,     /* LOAD_FAST_AND_CLEAR */
    DOES_TWO,           /* compat_ops[].half, variables ARG >> 4 and ARG & 15 */
    DOES_LOAD_CONST, DOES_LOAD_GLOBAL, /* FLAG: NULL as well */
    DOES_LOAD_DEREF, DOES_STORE_DEREF, DOES_MAKE_CELL, DOES_COPY_FREE,
    DOES_LOAD_ATTR,     /* name ARG. FLAG: as a method, two slots */
    DOES_SUPER_ATTR,    /* likewise, of super(), whose class and object are on the stack */
    DOES_STORE_ATTR, DOES_STORE_GLOBAL, DOES_IMPORT, DOES_IMPORT_FROM, /* name ARG */
    DOES_POP,           /* ARG of them */
    DOES_PUSH_NULL, DOES_COPY, DOES_SWAP,
    DOES_BINARY,        /* ARG: NB_ADD ... */
    DOES_UNARY,         /* ARG: '-', '~', '+' */
    DOES_NOT, DOES_BOOL,
    DOES_COMPARE,       /* ARG: Py_LT ... FLAG: and makes it a bool */
    DOES_IS, DOES_CONTAINS, /* ARG: 1: not */
    DOES_FORMAT,        /* ARG: conversion; FLAG: with a specification */
    DOES_SUBSCRIPT, DOES_STORE_SUBSCRIPT, DOES_DELETE_SUBSCRIPT, DOES_SLICE, DOES_STORE_SLICE,
    DOES_BUILD_TUPLE, DOES_BUILD_LIST, DOES_BUILD_MAP, DOES_BUILD_KEYED, DOES_BUILD_SLICE, DOES_BUILD_STRING, DOES_BUILD_SET,
    DOES_SET_ADD,       /* FLAG: all that is in it */
    DOES_LIST_APPEND, DOES_LIST_EXTEND, DOES_MAP_ADD, DOES_MERGE, DOES_LIST_TO_TUPLE, DOES_UNPACK, DOES_UNPACK_STARRED,
    DOES_ITERATE, DOES_NEXT, /* NEXT: ARG is the unit that the end leads to */
    DOES_JUMP, DOES_JUMP_IF, /* ARG: the unit; JUMP_IF: FLAG is enum compat_condition */
    DOES_JUMP_OR_POP,
    DOES_CALL,          /* ARG arguments; FLAG: their names are on top */
    DOES_NAME_ARGUMENTS, DOES_BEGIN_CALL, /* KW_NAMES, PRECALL: a call's group begins there */
    DOES_CALL_VARIABLE, /* FLAG: with keywords */
    DOES_MAKE_FUNCTION, DOES_FUNCTION_PART, /* ARG: what of it */
    DOES_RETURN, DOES_RETURN_CONST, DOES_YIELD, DOES_WITH,
};
enum compat_condition { IF_FALSE, IF_TRUE, IF_NONE, IF_NOT_NONE };

struct compat_action {
    enum compat_does does;
    uint32_t arg;
    int flag;
};

/* What OP with ARG, at UNIT of a code object, does. */
struct compat_action compat_action(int op, uint32_t arg, int32_t unit);
/* What OP, DOES_LOAD_CONST or DOES_RETURN_CONST, has with ARG in CODE: a new reference. */
PyObject *compat_constant(PyCodeObject *code, int op, uint32_t arg);
/* Slots of the stack above an iterator, for the place in an iteration without one: NULL. */
#define COMPAT_ABOVE_ITERATOR (PY_VERSION_HEX >= 0x030f0000)

/* Public only up to 3.12, exported all the same. */
#if PY_VERSION_HEX >= 0x030d0000
extern void _PyTraceback_Add(const char *function, const char *file, int line);
extern int _PyGen_FetchStopIterationValue(PyObject **value);
#endif

/* ---- the frame ---- */

/* FRAME, which has not started, is the thread's innermost from here on, until compat_step_end(), and counts against the recursion limit. */
static inline void compat_step_begin(PyThreadState *ts, compat_frame *frame)
{
    frame->previous = compat_current_frame(ts);
    compat_current_frame(ts) = frame;
    compat_recursion_remaining(ts)--;
}
static inline void compat_step_end(PyThreadState *ts, compat_frame *frame)
{
    compat_current_frame(ts) = frame->previous;
    frame->previous = NULL;
    compat_recursion_remaining(ts)++;
}

/* The instruction at UNIT runs. */
static inline void compat_step_at(compat_frame *frame, int32_t unit)
{
#if PY_VERSION_HEX >= 0x030d0000
    frame->instr_ptr = _PyCode_CODE(compat_code(frame)) + unit;
#else
    frame->prev_instr = _PyCode_CODE(compat_code(frame)) + unit;
#endif
}

/* Where FRAME, a generator's that is resumed, goes on, and how many slots are in use. */
static inline int32_t compat_resumes_at(compat_frame *frame, int *count)
{
#if PY_VERSION_HEX >= 0x030e0000
    *count = (int)(frame->stackpointer - frame->localsplus);
#else
    *count = frame->stacktop;
#endif
#if PY_VERSION_HEX >= 0x030d0000
    return (int32_t)(frame->instr_ptr - _PyCode_CODE(compat_code(frame)));
#else
    return (int32_t)(frame->prev_instr + 1 - _PyCode_CODE(compat_code(frame)));
#endif
}

/* The frame of GENERATOR. */
static inline compat_frame *compat_frame_of(PyObject *generator)
{
    return (compat_frame *)&((PyGenObject *)generator)->gi_iframe;
}

/* Tracebacks, sys._getframe() and all else pass over frames of CODE, as over those that have not started, but where it ends (with
 * nothing that can be traced, CPython 3.12 does not begin). */
static inline void compat_hide_code(PyCodeObject *code)
{
    code->_co_firsttraceable = (int)Py_SIZE(code) - 1;
}
static inline bool compat_hides(const PyCodeObject *code)
{
    return code->_co_firsttraceable == (int)Py_SIZE(code) - 1;
}

/* COUNT slots of the frame are in use: variables, then the stack. */
static inline void compat_set_depth(compat_frame *frame, int count)
{
#if PY_VERSION_HEX >= 0x030e0000
    frame->stackpointer = frame->localsplus + count;
#else
    frame->stacktop = count;
#endif
}

/* CPython, given the frame, goes on with the instruction at UNIT, or begins if UNIT is 0. */
static inline void compat_go_on(compat_frame *frame, int32_t unit, int count)
{
    compat_set_depth(frame, count);
#if PY_VERSION_HEX >= 0x030d0000
    frame->instr_ptr = _PyCode_CODE(compat_code(frame)) + unit;
#else
    frame->prev_instr = _PyCode_CODE(compat_code(frame)) + unit - 1;
#endif
}

/* CPython, given the frame and told to throw, raises the pending exception at the instruction at UNIT. Since 3.13 a frame says what
 * comes next, and the handler is looked for one unit before that: what the traceback then says is put right behind it. */
static inline void compat_throw_at(compat_frame *frame, int32_t unit, int count)
{
    compat_go_on(frame, unit + 1, count);
}
/* The frame of CODE has ended by an exception, with TRACEBACK (or NULL), after it was told to throw at UNIT. */
static inline void compat_thrown(PyCodeObject *code, PyObject *traceback, int32_t unit)
{
#if PY_VERSION_HEX >= 0x030d0000
    PyTracebackObject *at = (PyTracebackObject *)traceback;
    PyCodeObject *of = at ? PyFrame_GetCode(at->tb_frame) : NULL;

    if (of == code && at->tb_lasti == 2 * (unit + 1)) {
        at->tb_lasti = 2 * unit;
        at->tb_lineno = PyCode_Addr2Line(code, 2 * unit);
    }
    Py_XDECREF(of);
#else
    (void)code, (void)traceback, (void)unit;
#endif
}

#endif

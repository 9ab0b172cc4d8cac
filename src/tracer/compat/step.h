/* tracer/compat/step.h -- what an instruction does, by CPython version; and frames whose
 * instructions capture runs one by one, outside CPython's evaluator.
 *
 * Runs in: the traced process, under the GIL. For capture/src/. */
#ifndef DYNTRACE_COMPAT_STEP_H
#define DYNTRACE_COMPAT_STEP_H

#include "tracer/compat/bytecode.h"

/* The effect of an instruction: that of the opcode OP in a CPython version that has OP, with these
 * exceptions:
 *
 *     LOAD_FAST_LOAD_FAST                  the two instructions compat_ops[].half, with variables
 *                                          ARG >> 4 and ARG & 15
 *     LOAD_GLOBAL, LOAD_ATTR, LOAD_SUPER_ATTR, IMPORT_NAME    ARG is the name's index. FLAG: push
 *                                          two slots, with the NULL of a call, or as a method
 *     BUILD_MAP                            FLAG: the keys are a tuple on top of the stack
 *     SET_ADD                              FLAG: add all items of the topmost object
 *     COMPARE_OP                           ARG: Py_LT ... FLAG: convert the result to a bool
 *     FORMAT_VALUE                         ARG: conversion; FLAG: with a format specification
 *     CALL                                 FLAG: the names of the keyword arguments are on top
 *     CALL_FUNCTION_EX                     FLAG: a dict of keyword arguments is on top
 *     JUMP_FORWARD                         ARG: the unit to jump to
 *     FOR_ITER                             ARG: the unit to jump to at the iterator's end
 *     POP_JUMP_IF_FALSE, JUMP_IF_FALSE_OR_POP    ARG: the unit; FLAG: enum compat_condition
 *     CACHE                                an instruction that is not known here */
struct compat_action {
    int op;
    uint32_t arg;
    int flag;
};
enum compat_condition { IF_FALSE, IF_TRUE, IF_NONE, IF_NOT_NONE };

/* Return the effect of OP with ARG at UNIT of a code object. */
struct compat_action compat_effect_of_instruction(int op, uint32_t arg, int32_t unit);
/* Return the constant of CODE that OP with ARG loads or returns, a new reference. */
PyObject *compat_constant(PyCodeObject *code, int op, uint32_t arg);
/* Has the stack a slot above each iterator, with an index (SLOT_INDEX) or NULL? */
#define COMPAT_ABOVE_ITERATOR (PY_VERSION_HEX >= 0x030f0000)

/* Since 3.13 not in a public header any more, but still exported. */
#if PY_VERSION_HEX >= 0x030d0000
extern void _PyTraceback_Add(const char *function, const char *file, int line);
#endif

/* ---- put a frame on the thread's stack, and step through it ---- */

/* Make FRAME, which has not started, the thread's innermost frame until compat_step_end(). It
 * counts against the recursion limit. */
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

/* Since 3.13 a frame points to its next instruction; before 3.13 it points to the one that ran
 * last. Since 3.14 a frame points to the end of its stack; before 3.14 it has the stack's depth. */
#if PY_VERSION_HEX >= 0x030d0000
    #define compat_instruction instr_ptr
    #define COMPAT_RAN_LAST 0
#else
    #define compat_instruction prev_instr
    #define COMPAT_RAN_LAST 1
#endif
#if PY_VERSION_HEX >= 0x030e0000
    #define compat_depth(frame) ((frame)->stackpointer - (frame)->localsplus)
    #define compat_set_depth(frame, count) ((frame)->stackpointer = (frame)->localsplus + (count))
#else
    #define compat_depth(frame) ((frame)->stacktop)
    #define compat_set_depth(frame, count) ((frame)->stacktop = (count))
#endif

/* Does the program trace or profile the thread, by sys.settrace() or sys.setprofile()? */
static inline bool compat_is_thread_traced(const PyThreadState *ts)
{
    return ts->c_tracefunc || ts->c_profilefunc;
}

/* Set FRAME's current instruction to the one at UNIT. */
static inline void compat_set_current_instruction(compat_frame *frame, int32_t unit)
{
    frame->compat_instruction = _PyCode_CODE(compat_get_code(frame)) + unit;
}

/* Return the code unit at which FRAME, of a generator that is being resumed, continues. Stores in
 * *COUNT how many of its slots are in use. */
static inline int32_t compat_get_resume_position(compat_frame *frame, int *count)
{
    *count = (int)compat_depth(frame);
    return (int32_t)(frame->compat_instruction + COMPAT_RAN_LAST -
                     _PyCode_CODE(compat_get_code(frame)));
}

/* Return the frame of GENERATOR. */
static inline compat_frame *compat_frame_of_generator(PyObject *generator)
{
    return (compat_frame *)&((PyGenObject *)generator)->gi_iframe;
}

/* Make CPython take frames of CODE for frames that have not started, so that tracebacks and
 * sys._getframe() do not show them. CODE's last instruction is excepted, because CPython 3.12 does
 * not start code without any traceable line. */
static inline void compat_hide_frames_of_code(PyCodeObject *code)
{
    code->_co_firsttraceable = (int)Py_SIZE(code) - 1;
}
static inline bool compat_are_frames_hidden(const PyCodeObject *code)
{
    return code->_co_firsttraceable == (int)Py_SIZE(code) - 1;
}

/* Prepare FRAME to continue at code unit UNIT in CPython; 0: to start. COUNT slots are in use: the
 * variables, then the stack. If FRAME is then evaluated with throwflag, CPython raises the pending
 * exception at the instruction before UNIT. Since 3.13 CPython looks for the handler one unit
 * before the next instruction, so compat_correct_traceback() corrects the traceback's line
 * afterwards. */
static inline void compat_prepare_to_continue(compat_frame *frame, int32_t unit, int count)
{
    compat_set_depth(frame, count);
    frame->compat_instruction = _PyCode_CODE(compat_get_code(frame)) + unit - COMPAT_RAN_LAST;
}
/* Correct TRACEBACK (or NULL) of an exception with which a frame of CODE has ended, after it was
 * evaluated with throwflag at UNIT. */
static inline void compat_correct_traceback(PyCodeObject *code, PyObject *traceback, int32_t unit)
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

/* tracer/compat/bytecode.c -- properties of instructions, by CPython version. See
 * tracer/compat/bytecode.h.
 *
 * An opcode that is missing in a table here exists only in another version. */
#include "tracer/compat/bytecode.h"
#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030d0000
    #define NEED_OPCODE_METADATA
    #include <internal/pycore_opcode_metadata.h>
#else
    #define NEED_OPCODE_TABLES
    #include <internal/pycore_opcode.h>
#endif
#undef Py_BUILD_CORE

#define SET_UP "variables are still being set up there"
#define CALLS "a call has begun there"
#define LOOPS "the end of a loop belongs to its beginning"
#define FORWARD    \
    {              \
        .jumps = 1 \
    }
#define BACKWARD    \
    {               \
        .jumps = -1 \
    }
#define ENDS         \
    {                \
        .ends = true \
    }
#define VARIABLE             \
    {                        \
        .has_variable = true \
    }
#define RESULT            \
    {                     \
        .top = SLOT_VALUE \
    } /* the instruction's result replaces the NULL that is below the callable */

const struct compat_op compat_ops[256] = {
    [JUMP_FORWARD] = {.jumps = 1, .ends = true},
    [JUMP_BACKWARD] = {.jumps = -1, .ends = true},
    [JUMP_BACKWARD_NO_INTERRUPT] = {.jumps = -1, .ends = true},
    [FOR_ITER] = FORWARD,
    [SEND] = FORWARD,
#ifdef POP_JUMP_FORWARD_IF_FALSE
    [POP_JUMP_FORWARD_IF_FALSE] = FORWARD,
    [POP_JUMP_FORWARD_IF_TRUE] = FORWARD,
    [POP_JUMP_FORWARD_IF_NONE] = FORWARD,
    [POP_JUMP_FORWARD_IF_NOT_NONE] = FORWARD,
    [POP_JUMP_BACKWARD_IF_FALSE] = BACKWARD,
    [POP_JUMP_BACKWARD_IF_TRUE] = BACKWARD,
    [POP_JUMP_BACKWARD_IF_NONE] = BACKWARD,
    [POP_JUMP_BACKWARD_IF_NOT_NONE] = BACKWARD,
    [JUMP_IF_FALSE_OR_POP] = FORWARD,
    [JUMP_IF_TRUE_OR_POP] = FORWARD,
#else
    [POP_JUMP_IF_FALSE] = FORWARD,
    [POP_JUMP_IF_TRUE] = FORWARD,
    [POP_JUMP_IF_NONE] = FORWARD,
    [POP_JUMP_IF_NOT_NONE] = FORWARD,
#endif

    [RETURN_VALUE] = ENDS,
    [RAISE_VARARGS] = ENDS,
    [RERAISE] = ENDS,
#ifdef RETURN_CONST
    [RETURN_CONST] = ENDS,
#endif

    [LOAD_FAST] = VARIABLE,
    [STORE_FAST] = VARIABLE,
    [DELETE_FAST] = {.has_variable = true, .variable = SLOT_NULL},
    [LOAD_DEREF] = VARIABLE,
    [STORE_DEREF] = VARIABLE,
    [DELETE_DEREF] = VARIABLE,
    [MAKE_CELL] = {.has_variable = true, .variable = SLOT_CELL, .not_before = SET_UP},
#ifdef LOAD_FAST_CHECK
    [LOAD_FAST_CHECK] = VARIABLE,
    [LOAD_FROM_DICT_OR_DEREF] = VARIABLE,
    [LOAD_FAST_AND_CLEAR] = {.has_variable = true, .variable = SLOT_NULL},
#endif
#ifdef LOAD_FAST_BORROW
    [LOAD_FAST_BORROW] = VARIABLE,
    [LOAD_FAST_BORROW_LOAD_FAST_BORROW] = {.half = {LOAD_FAST_BORROW, LOAD_FAST_BORROW}},
#endif
#ifdef LOAD_CLASSDEREF
    [LOAD_CLASSDEREF] = VARIABLE,
#endif
/* before 3.13; since then it is no real instruction, but one of the compiler's */
#if PY_VERSION_HEX < 0x030d0000
    [LOAD_CLOSURE] = VARIABLE,
#else
    [LOAD_FAST_LOAD_FAST] = {.half = {LOAD_FAST, LOAD_FAST}},
    [STORE_FAST_LOAD_FAST] = {.half = {STORE_FAST, LOAD_FAST}},
    [STORE_FAST_STORE_FAST] = {.half = {STORE_FAST, STORE_FAST}},
#endif

    [PUSH_NULL] = {.top = SLOT_NULL},
    [LOAD_GLOBAL] = {.top = SLOT_NULL, .below = !COMPAT_CALLABLE_FIRST, .if_odd = true},
/* LOAD_METHOD pushes two slots: NULL and the attribute, or the function and self */
#if PY_VERSION_HEX < 0x030c0000
    [LOAD_METHOD] = {.top = SLOT_VALUE | SLOT_NULL, .below = true},
#else
    [LOAD_ATTR] = {.top = SLOT_VALUE | SLOT_NULL, .below = !COMPAT_CALLABLE_FIRST, .if_odd = true},
    [LOAD_SUPER_ATTR] = {.top = SLOT_VALUE | SLOT_NULL,
                         .below = !COMPAT_CALLABLE_FIRST,
                         .if_odd = true},
#endif
#ifdef LOAD_SPECIAL
    [LOAD_SPECIAL] = {.top = SLOT_VALUE | SLOT_NULL},
#endif
/* since 3.15 `for` needs no iterator for some types (see SLOT_INDEX) */
#if PY_VERSION_HEX >= 0x030f0000
    [GET_ITER] = {.top = SLOT_INDEX},
#endif
    [PUSH_EXC_INFO] = {.top = SLOT_HANDLER},
    [CALL] = RESULT,
    [CALL_FUNCTION_EX] = RESULT,
#ifdef CALL_KW
    [CALL_KW] = RESULT,
#endif

    [RESUME] = {.not_before = SET_UP},
    [COPY_FREE_VARS] = {.not_before = SET_UP},
#ifdef PRECALL
    [PRECALL] = {.not_behind = CALLS},
#endif
/* KW_NAMES keeps the names of keyword arguments outside the stack, so no split may separate it from
 * its CALL */
#ifdef KW_NAMES
    [KW_NAMES] = {.not_behind = CALLS},
#endif
#if PY_VERSION_HEX >= 0x030d0000 && \
    PY_VERSION_HEX < 0x030e0000 /* in 3.13 FOR_ITER jumps past END_FOR and POP_TOP */
    [END_FOR] = {.not_before = LOOPS, .not_behind = LOOPS},
#elif defined(END_FOR)
    [END_FOR] = {.not_before = LOOPS},
#endif
};

bool compat_update_slots_for_instruction(int op, uint32_t arg, unsigned char *variables,
                                         unsigned char *stack, int before, int depth)
{
    const struct compat_op *is = &compat_ops[op];
    const unsigned char top = before ? stack[before - 1] & (SLOT_VALUE | SLOT_NULL | SLOT_CELL) : 0;

    for (int i = before; i < depth; i++)
        stack[i] = SLOT_VALUE;
    if (is->top && (!is->if_odd || arg & 1)) {
        if (depth < 1 + is->below)
            return false;
        stack[depth - 1 - is->below] = is->top;
    }
    if (is->top == SLOT_INDEX) {
        if (!before)
            return false;
        stack[before - 1] = SLOT_VALUE | SLOT_ITERATED;
    }
    if (op == COPY || op == SWAP) {
        if (!arg || arg > (uint32_t)before)
            return false;
        const unsigned char was = stack[before - (int)arg];
        if (op == SWAP)
            stack[before - (int)arg] = stack[before - 1];
        stack[depth - 1] = was;
    }
#ifdef LOAD_FAST_AND_CLEAR
    if (op == LOAD_FAST_AND_CLEAR)
        stack[depth - 1] = variables[arg];
#endif
    if (is->variable || op == STORE_FAST)
        variables[arg] = is->variable ? is->variable : top ? top : SLOT_VALUE;
    return true;
}

const unsigned char compat_call[] = {
#if COMPAT_CALLABLE_FIRST
    LOAD_CONST, PUSH_NULL,
#else
    PUSH_NULL, LOAD_CONST,
#endif
#ifdef PRECALL
    PRECALL,
#endif
    CALL,       0,
};

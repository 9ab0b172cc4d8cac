/* tracer/compat/bytecode.c -- see bytecode.h. An opcode that is not there is one of another version. */
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX >= 0x030d0000
#define NEED_OPCODE_METADATA
#include <internal/pycore_opcode_metadata.h>
#else
#define NEED_OPCODE_TABLES
#include <internal/pycore_opcode.h>
#endif
#undef Py_BUILD_CORE
#include "tracer/compat/bytecode.h"

/* gh-109095: a callable comes before its NULL or self, not after. */
#if PY_VERSION_HEX >= 0x030d0000
#define CALLABLE_FIRST 1
#else
#define CALLABLE_FIRST 0
#endif

const struct compat_op compat_call[] = {
#if CALLABLE_FIRST
    COMPAT_OP(LOAD_CONST), COMPAT_OP(PUSH_NULL),
#else
    COMPAT_OP(PUSH_NULL), COMPAT_OP(LOAD_CONST),
#endif
#ifdef PRECALL
    COMPAT_OP(PRECALL),
#endif
    COMPAT_OP(CALL),
};
const int compat_call_length = sizeof compat_call / sizeof *compat_call;

#ifdef POP_JUMP_FORWARD_IF_FALSE
const int compat_jump_if_false = POP_JUMP_FORWARD_IF_FALSE;
#else
const int compat_jump_if_false = POP_JUMP_IF_FALSE;
#endif

int compat_caches(int op)
{
    return _PyOpcode_Caches[op];
}

int compat_jumps(int op)
{
    switch (op) {
    case JUMP_FORWARD:
    case FOR_ITER:
    case SEND:
#ifdef POP_JUMP_FORWARD_IF_FALSE
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
#else
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
        return 1;
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
#ifdef POP_JUMP_BACKWARD_IF_FALSE
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
        return -1;
    }
    return 0;
}

bool compat_falls_through(int op)
{
    switch (op) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
    case RETURN_VALUE:
    case RAISE_VARARGS:
    case RERAISE:
#ifdef RETURN_CONST
    case RETURN_CONST:
#endif
        return false;
    }
    return true;
}

bool compat_has_variable(int op)
{
    switch (op) {
    case LOAD_FAST:
    case STORE_FAST:
    case DELETE_FAST:
    case MAKE_CELL:
    case LOAD_DEREF:
    case STORE_DEREF:
    case DELETE_DEREF:
#ifdef LOAD_FAST_CHECK
    case LOAD_FAST_CHECK:
    case LOAD_FAST_AND_CLEAR:
    case LOAD_FROM_DICT_OR_DEREF:
#endif
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW:
#endif
#ifdef LOAD_CLASSDEREF
    case LOAD_CLASSDEREF:
#endif
#if defined(LOAD_CLOSURE) && PY_VERSION_HEX < 0x030d0000 /* later it is the compiler's own */
    case LOAD_CLOSURE:
#endif
        return true;
    }
    return false;
}

bool compat_halves(int op, int half[2])
{
    switch (op) {
#ifdef LOAD_FAST_LOAD_FAST
    case LOAD_FAST_LOAD_FAST:
        half[0] = half[1] = LOAD_FAST;
        return true;
    case STORE_FAST_LOAD_FAST:
        half[0] = STORE_FAST;
        half[1] = LOAD_FAST;
        return true;
    case STORE_FAST_STORE_FAST:
        half[0] = half[1] = STORE_FAST;
        return true;
#endif
#ifdef LOAD_FAST_BORROW_LOAD_FAST_BORROW
    case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
        half[0] = half[1] = LOAD_FAST_BORROW;
        return true;
#endif
    }
    return false;
}

bool compat_correct(int op, uint32_t arg, unsigned char *stack, int before, int depth)
{
    const unsigned char either = SLOT_VALUE | SLOT_NULL;
    unsigned char swapped;

    switch (op) {
    case PUSH_NULL:
        stack[depth - 1] = SLOT_NULL;
        break;
    case LOAD_GLOBAL:
        if (arg & 1)
            stack[CALLABLE_FIRST ? depth - 1 : depth - 2] = SLOT_NULL;
        break;
#if PY_VERSION_HEX < 0x030c0000
    case LOAD_METHOD: /* NULL and the attribute, or a function and its self */
        stack[depth - 2] = either;
        break;
#else
    case LOAD_SUPER_ATTR:
    case LOAD_ATTR:
        if (arg & 1)
            stack[CALLABLE_FIRST ? depth - 1 : depth - 2] = either;
        break;
#endif
#ifdef LOAD_SPECIAL
    case LOAD_SPECIAL:
        stack[depth - 1] = either;
        break;
#endif
    case COPY:
        if (!arg || arg > (uint32_t)before)
            return false;
        stack[depth - 1] = stack[before - (int)arg];
        break;
    case SWAP:
        if (!arg || arg > (uint32_t)before)
            return false;
        swapped = stack[depth - 1];
        stack[depth - 1] = stack[depth - (int)arg];
        stack[depth - (int)arg] = swapped;
        break;
    case CALL: /* the result lies where the NULL was */
    case CALL_FUNCTION_EX:
#ifdef CALL_KW
    case CALL_KW:
#endif
        if (!depth)
            return false;
        stack[depth - 1] = SLOT_VALUE;
        break;
    case PUSH_EXC_INFO:
        stack[depth - 1] = SLOT_HANDLER;
        break;
    case GET_ITER: /* since 3.15 an iteration may need no iterator */
        if (depth > before)
            stack[depth - 1] = SLOT_INDEX;
        break;
    }
    return true;
}

const char *compat_inseparable(int before, int op)
{
    switch (op) {
    case RESUME:
    case MAKE_CELL:
    case COPY_FREE_VARS:
        return "variables are still being set up there";
#ifdef END_FOR
    case END_FOR:
        return "the end of a loop belongs to its beginning";
#endif
    }
    switch (before) {
#ifdef KW_NAMES
    case KW_NAMES: /* the names are not on the stack */
#endif
#ifdef PRECALL
    case PRECALL:
#endif
#if defined(KW_NAMES) || defined(PRECALL)
        return "a call has begun there";
#endif
#if PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030e0000
    case END_FOR: /* FOR_ITER jumps over END_FOR and POP_TOP */
        return "the end of a loop belongs to its beginning";
#endif
    }
    return NULL;
}

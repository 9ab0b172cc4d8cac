/* tracer/compat/step.c -- see step.h. An opcode that is not there is one of another version.
 *
 * 3.14 and later: loads that borrow and iterations without an iterator are not known yet, so nothing is. */
#include "tracer/compat/step.h"

const bool compat_steps = PY_VERSION_HEX < 0x030e0000;

#ifdef TO_BOOL
const int compat_to_bool = TO_BOOL;
#else
const int compat_to_bool = -1;
#endif

#define ACTION(what, ...) ((struct compat_action){DOES_##what, __VA_ARGS__})

/* The unit to which OP, with ARG at UNIT, jumps. */
static uint32_t jump_to(int op, uint32_t arg, int32_t unit)
{
    int32_t behind = unit + 1 + compat_caches(op);

    return (uint32_t)(compat_ops[op].jumps < 0 ? behind - (int32_t)arg : behind + (int32_t)arg);
}

static struct compat_action jump_action(int op, uint32_t arg, int32_t unit)
{
    const uint32_t to = jump_to(op, arg, unit);

    switch (op) {
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
        return ACTION(JUMP, to, 0);
#ifdef POP_JUMP_FORWARD_IF_FALSE
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_FALSE:
        return ACTION(JUMP_IF, to, IF_FALSE);
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_TRUE:
        return ACTION(JUMP_IF, to, IF_TRUE);
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NONE:
        return ACTION(JUMP_IF, to, IF_NONE);
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
        return ACTION(JUMP_IF, to, IF_NOT_NONE);
    case JUMP_IF_FALSE_OR_POP:
        return ACTION(JUMP_OR_POP, to, IF_FALSE);
    case JUMP_IF_TRUE_OR_POP:
        return ACTION(JUMP_OR_POP, to, IF_TRUE);
#else
    case POP_JUMP_IF_FALSE:
        return ACTION(JUMP_IF, to, IF_FALSE);
    case POP_JUMP_IF_TRUE:
        return ACTION(JUMP_IF, to, IF_TRUE);
    case POP_JUMP_IF_NONE:
        return ACTION(JUMP_IF, to, IF_NONE);
    case POP_JUMP_IF_NOT_NONE:
        return ACTION(JUMP_IF, to, IF_NOT_NONE);
#endif
    case FOR_ITER: /* what it jumps to pops the iterator, and is jumped over with that done */
#if PY_VERSION_HEX >= 0x030d0000
        return ACTION(NEXT, to + 2, 0);
#elif PY_VERSION_HEX >= 0x030c0000
        return ACTION(NEXT, to + 1, 0);
#else
        return ACTION(NEXT, to, 0);
#endif
    }
    return ACTION(SOMETHING, 0, 0);
}

/* What is loaded and stored. */
static struct compat_action variable_action(int op, uint32_t arg)
{
    switch (op) {
    case LOAD_FAST:
#ifdef LOAD_FAST_CHECK
    case LOAD_FAST_CHECK:
#endif
        return ACTION(LOAD_FAST, arg, 0);
    case STORE_FAST:
        return ACTION(STORE_FAST, arg, 0);
    case DELETE_FAST:
        return ACTION(DELETE_FAST, arg, 0);
#ifdef LOAD_FAST_AND_CLEAR
    case LOAD_FAST_AND_CLEAR:
        return ACTION(TAKE_FAST, arg, 0);
#endif
    case LOAD_DEREF:
        return ACTION(LOAD_DEREF, arg, 0);
    case STORE_DEREF:
        return ACTION(STORE_DEREF, arg, 0);
    case MAKE_CELL:
        return ACTION(MAKE_CELL, arg, 0);
#if PY_VERSION_HEX < 0x030d0000
    case LOAD_CLOSURE:
        return ACTION(LOAD_CLOSURE, arg, 0);
#endif
    case COPY_FREE_VARS:
        return ACTION(COPY_FREE, arg, 0);
    case LOAD_CONST:
        return ACTION(LOAD_CONST, arg, 0);
    case LOAD_GLOBAL:
        return ACTION(LOAD_GLOBAL, arg >> 1, arg & 1);
#if PY_VERSION_HEX >= 0x030c0000
    case LOAD_ATTR:
        return ACTION(LOAD_ATTR, arg >> 1, arg & 1);
#else
    case LOAD_ATTR:
        return ACTION(LOAD_ATTR, arg, 0);
    case LOAD_METHOD:
        return ACTION(LOAD_ATTR, arg, 1);
#endif
    case STORE_ATTR:
        return ACTION(STORE_ATTR, arg, 0);
    }
    return compat_ops[op].half[0] ? ACTION(TWO, arg, 0) : ACTION(SOMETHING, 0, 0);
}

static struct compat_action compute_action(int op, uint32_t arg)
{
    switch (op) {
    case BINARY_OP:
        return ACTION(BINARY, arg, 0);
    case UNARY_NEGATIVE:
        return ACTION(UNARY, '-', 0);
    case UNARY_INVERT:
        return ACTION(UNARY, '~', 0);
    case UNARY_NOT:
        return ACTION(NOT, 0, 0);
#ifdef TO_BOOL
    case TO_BOOL:
        return ACTION(BOOL, 0, 0);
#endif
#ifdef UNARY_POSITIVE
    case UNARY_POSITIVE:
        return ACTION(UNARY, '+', 0);
#endif
    case COMPARE_OP:
#if PY_VERSION_HEX >= 0x030d0000
        return ACTION(COMPARE, arg >> 5, arg >> 4 & 1);
#elif PY_VERSION_HEX >= 0x030c0000
        return ACTION(COMPARE, arg >> 4, 0);
#else
        return ACTION(COMPARE, arg, 0);
#endif
    case IS_OP:
        return ACTION(IS, arg, 0);
    case CONTAINS_OP:
        return ACTION(CONTAINS, arg, 0);
#ifdef BINARY_SUBSCR
    case BINARY_SUBSCR:
        return ACTION(SUBSCRIPT, 0, 0);
#endif
    case STORE_SUBSCR:
        return ACTION(STORE_SUBSCRIPT, 0, 0);
#ifdef BINARY_SLICE
    case BINARY_SLICE:
        return ACTION(SLICE, 0, 0);
    case STORE_SLICE:
        return ACTION(STORE_SLICE, 0, 0);
#endif
#ifdef FORMAT_VALUE
    case FORMAT_VALUE:
        return ACTION(FORMAT, arg & FVC_MASK, (arg & FVS_MASK) == FVS_HAVE_SPEC);
#else
    case FORMAT_SIMPLE:
        return ACTION(FORMAT, 0, 0);
    case FORMAT_WITH_SPEC:
        return ACTION(FORMAT, 0, 1);
#endif
    }
    return ACTION(SOMETHING, 0, 0);
}

static struct compat_action stack_action(int op, uint32_t arg)
{
    switch (op) {
    case NOP:
    case RESUME:
        return ACTION(NOTHING, 0, 0);
    case POP_TOP:
        return ACTION(POP, 0, 0);
    case PUSH_NULL:
        return ACTION(PUSH_NULL, 0, 0);
    case COPY:
        return ACTION(COPY, arg, 0);
    case SWAP:
        return ACTION(SWAP, arg, 0);
    case BUILD_TUPLE:
        return ACTION(BUILD_TUPLE, arg, 0);
    case BUILD_LIST:
        return ACTION(BUILD_LIST, arg, 0);
    case BUILD_MAP:
        return ACTION(BUILD_MAP, arg, 0);
#ifdef BUILD_CONST_KEY_MAP
    case BUILD_CONST_KEY_MAP:
        return ACTION(BUILD_KEYED, arg, 0);
#endif
    case BUILD_SLICE:
        return ACTION(BUILD_SLICE, arg, 0);
    case BUILD_STRING:
        return ACTION(BUILD_STRING, arg, 0);
    case LIST_APPEND:
        return ACTION(LIST_APPEND, arg, 0);
    case LIST_EXTEND:
        return ACTION(LIST_EXTEND, arg, 0);
    case MAP_ADD:
        return ACTION(MAP_ADD, arg, 0);
    case DICT_MERGE:
    case DICT_UPDATE:
        return ACTION(MERGE, arg, 0);
#ifdef LIST_TO_TUPLE
    case LIST_TO_TUPLE:
        return ACTION(LIST_TO_TUPLE, 0, 0);
#else
    case CALL_INTRINSIC_1:
        return arg == 6 ? ACTION(LIST_TO_TUPLE, 0, 0) : ACTION(SOMETHING, 0, 0); /* INTRINSIC_LIST_TO_TUPLE */
#endif
    case UNPACK_SEQUENCE:
        return ACTION(UNPACK, arg, 0);
    case GET_ITER:
        return ACTION(ITERATE, 0, 0);
    }
    return ACTION(SOMETHING, 0, 0);
}

static struct compat_action call_action(int op, uint32_t arg)
{
    switch (op) {
    case CALL:
        return ACTION(CALL, arg, 0);
#ifdef CALL_KW
    case CALL_KW:
        return ACTION(CALL, arg, 1);
#endif
#ifdef KW_NAMES
    case KW_NAMES:
        return ACTION(NAME_ARGUMENTS, arg, 0);
#endif
#ifdef PRECALL
    case PRECALL:
        return ACTION(BEGIN_CALL, arg, 0);
#endif
    case CALL_FUNCTION_EX:
        return ACTION(CALL_VARIABLE, 0, arg & 1);
    case MAKE_FUNCTION:
        return ACTION(MAKE_FUNCTION, arg, 0);
#ifdef SET_FUNCTION_ATTRIBUTE
    case SET_FUNCTION_ATTRIBUTE:
        return ACTION(FUNCTION_PART, arg, 0);
#endif
    case RETURN_VALUE:
        return ACTION(RETURN, 0, 0);
#ifdef RETURN_CONST
    case RETURN_CONST:
        return ACTION(RETURN_CONST, arg, 0);
#endif
    }
    return ACTION(SOMETHING, 0, 0);
}

struct compat_action compat_action(int op, uint32_t arg, int32_t unit)
{
    struct compat_action action = variable_action(op, arg);

    if (action.does == DOES_SOMETHING)
        action = stack_action(op, arg);
    if (action.does == DOES_SOMETHING)
        action = compute_action(op, arg);
    if (action.does == DOES_SOMETHING)
        action = call_action(op, arg);
    if (action.does == DOES_SOMETHING)
        action = jump_action(op, arg, unit);
    return action;
}

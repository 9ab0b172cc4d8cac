/* tracer/compat/step.c -- see step.h. An opcode that is not there is one of another version. */
#include "tracer/compat/step.h"

/* What an instruction does, with its own argument unless something else is said here. */
static const struct {
    unsigned char does;
    unsigned char shift;     /* its argument is the bits from this one on */
    unsigned char flag_bits; /* and the flag these, if not 0 */
    unsigned char flag;      /* else */
    char arg;                /* it has no argument of its own, but this */
} steps[256] = {
#define STEP(what, ...) {.does = DOES_##what, __VA_ARGS__}
#define NAME_AND_FLAG .shift = 1, .flag_bits = 1

    [LOAD_FAST] = STEP(LOAD_FAST),
    [STORE_FAST] = STEP(STORE_FAST),
    [DELETE_FAST] = STEP(DELETE_FAST),
    [LOAD_DEREF] = STEP(LOAD_DEREF),
    [STORE_DEREF] = STEP(STORE_DEREF),
#ifdef LOAD_FAST_BORROW /* a reference of its own does as well */
    [LOAD_FAST_BORROW] = STEP(LOAD_FAST),
    [LOAD_SMALL_INT] = STEP(LOAD_CONST),
    [LOAD_COMMON_CONSTANT] = STEP(LOAD_CONST),
    [NOT_TAKEN] = STEP(NOTHING),
    [POP_ITER] = STEP(POP, .arg = 1 + COMPAT_ABOVE_ITERATOR),
#endif
    [MAKE_CELL] = STEP(MAKE_CELL),
    [COPY_FREE_VARS] = STEP(COPY_FREE),
    [LOAD_CONST] = STEP(LOAD_CONST),
#ifdef LOAD_ASSERTION_ERROR
    [LOAD_ASSERTION_ERROR] = STEP(LOAD_CONST),
#endif
    [LOAD_GLOBAL] = STEP(LOAD_GLOBAL, NAME_AND_FLAG),
    [STORE_ATTR] = STEP(STORE_ATTR),
    [STORE_GLOBAL] = STEP(STORE_GLOBAL),
#if PY_VERSION_HEX >= 0x030f0000 /* whether it is lazy, and must not be: PEP 810 */
    [IMPORT_NAME] = STEP(IMPORT, .shift = 2),
#else
    [IMPORT_NAME] = STEP(IMPORT),
#endif
    [IMPORT_FROM] = STEP(IMPORT_FROM),
#if PY_VERSION_HEX < 0x030d0000
    [LOAD_CLOSURE] = STEP(LOAD_FAST),
#endif
#if PY_VERSION_HEX < 0x030c0000
    [LOAD_ATTR] = STEP(LOAD_ATTR),
    [LOAD_METHOD] = STEP(LOAD_ATTR, .flag = 1),
#else
    [LOAD_ATTR] = STEP(LOAD_ATTR, NAME_AND_FLAG),
    [LOAD_SUPER_ATTR] = STEP(SUPER_ATTR, .shift = 2, .flag_bits = 1),
    [LOAD_FAST_CHECK] = STEP(LOAD_FAST),
    [LOAD_FAST_AND_CLEAR] = STEP(TAKE_FAST),
#endif

    [NOP] = STEP(NOTHING),
    [RESUME] = STEP(NOTHING),
    [POP_TOP] = STEP(POP, .arg = 1),
    [PUSH_NULL] = STEP(PUSH_NULL),
    [COPY] = STEP(COPY),
    [SWAP] = STEP(SWAP),
    [BUILD_TUPLE] = STEP(BUILD_TUPLE),
    [BUILD_LIST] = STEP(BUILD_LIST),
    [BUILD_MAP] = STEP(BUILD_MAP),
    [BUILD_SLICE] = STEP(BUILD_SLICE),
    [BUILD_STRING] = STEP(BUILD_STRING),
    [BUILD_SET] = STEP(BUILD_SET),
    [SET_ADD] = STEP(SET_ADD),
    [SET_UPDATE] = STEP(SET_ADD, .flag = 1),
    [LIST_APPEND] = STEP(LIST_APPEND),
    [LIST_EXTEND] = STEP(LIST_EXTEND),
    [MAP_ADD] = STEP(MAP_ADD),
    [DICT_MERGE] = STEP(MERGE),
    [DICT_UPDATE] = STEP(MERGE),
    [UNPACK_SEQUENCE] = STEP(UNPACK),
    [UNPACK_EX] = STEP(UNPACK_STARRED),
    [YIELD_VALUE] = STEP(YIELD),
    [GET_ITER] = STEP(ITERATE),
#ifdef BEFORE_WITH
    [BEFORE_WITH] = STEP(WITH),
#endif
#ifdef BUILD_CONST_KEY_MAP
    [BUILD_CONST_KEY_MAP] = STEP(BUILD_KEYED),
#endif
#ifdef LIST_TO_TUPLE
    [LIST_TO_TUPLE] = STEP(LIST_TO_TUPLE),
#else
    [CALL_INTRINSIC_1] = STEP(LIST_TO_TUPLE), /* INTRINSIC_LIST_TO_TUPLE, among others */
#endif

    [BINARY_OP] = STEP(BINARY),
    [UNARY_NEGATIVE] = STEP(UNARY, .arg = '-'),
    [UNARY_INVERT] = STEP(UNARY, .arg = '~'),
#ifdef UNARY_POSITIVE
    [UNARY_POSITIVE] = STEP(UNARY, .arg = '+'),
#endif
    [UNARY_NOT] = STEP(NOT),
    [IS_OP] = STEP(IS),
    [CONTAINS_OP] = STEP(CONTAINS),
#if PY_VERSION_HEX >= 0x030d0000
    [TO_BOOL] = STEP(BOOL),
    [COMPARE_OP] = STEP(COMPARE, .shift = 5, .flag_bits = 16),
#elif PY_VERSION_HEX >= 0x030c0000
    [COMPARE_OP] = STEP(COMPARE, .shift = 4),
#else
    [COMPARE_OP] = STEP(COMPARE),
#endif
#ifdef BINARY_SUBSCR
    [BINARY_SUBSCR] = STEP(SUBSCRIPT),
#endif
    [STORE_SUBSCR] = STEP(STORE_SUBSCRIPT),
    [DELETE_SUBSCR] = STEP(DELETE_SUBSCRIPT),
#ifdef BINARY_SLICE
    [BINARY_SLICE] = STEP(SLICE),
    [STORE_SLICE] = STEP(STORE_SLICE),
#endif
#ifdef FORMAT_VALUE
#define CONVERSION FVC_MASK
    [FORMAT_VALUE] = STEP(FORMAT, .flag_bits = FVS_MASK),
#else
#define CONVERSION 0 /* an instruction of its own */
    [FORMAT_SIMPLE] = STEP(FORMAT),
    [FORMAT_WITH_SPEC] = STEP(FORMAT, .flag = 1),
#endif

    [CALL] = STEP(CALL),
#ifdef CALL_KW
    [CALL_KW] = STEP(CALL, .flag = 1),
#endif
#ifdef KW_NAMES
    [KW_NAMES] = STEP(NAME_ARGUMENTS),
#endif
#ifdef PRECALL
    [PRECALL] = STEP(BEGIN_CALL),
#endif
#if PY_VERSION_HEX >= 0x030e0000 /* they are there, or NULL */
    [CALL_FUNCTION_EX] = STEP(CALL_VARIABLE, .flag = 1),
#else
    [CALL_FUNCTION_EX] = STEP(CALL_VARIABLE, .flag_bits = 1),
#endif
    [MAKE_FUNCTION] = STEP(MAKE_FUNCTION),
#ifdef SET_FUNCTION_ATTRIBUTE
    [SET_FUNCTION_ATTRIBUTE] = STEP(FUNCTION_PART),
#endif
    [RETURN_VALUE] = STEP(RETURN),
#ifdef RETURN_CONST
    [RETURN_CONST] = STEP(RETURN_CONST),
#endif

    [JUMP_FORWARD] = STEP(JUMP),
    [JUMP_BACKWARD] = STEP(JUMP),
    [JUMP_BACKWARD_NO_INTERRUPT] = STEP(JUMP),
    [FOR_ITER] = STEP(NEXT),
#ifdef POP_JUMP_FORWARD_IF_FALSE
    [POP_JUMP_FORWARD_IF_FALSE] = STEP(JUMP_IF, .flag = IF_FALSE),
    [POP_JUMP_BACKWARD_IF_FALSE] = STEP(JUMP_IF, .flag = IF_FALSE),
    [POP_JUMP_FORWARD_IF_TRUE] = STEP(JUMP_IF, .flag = IF_TRUE),
    [POP_JUMP_BACKWARD_IF_TRUE] = STEP(JUMP_IF, .flag = IF_TRUE),
    [POP_JUMP_FORWARD_IF_NONE] = STEP(JUMP_IF, .flag = IF_NONE),
    [POP_JUMP_BACKWARD_IF_NONE] = STEP(JUMP_IF, .flag = IF_NONE),
    [POP_JUMP_FORWARD_IF_NOT_NONE] = STEP(JUMP_IF, .flag = IF_NOT_NONE),
    [POP_JUMP_BACKWARD_IF_NOT_NONE] = STEP(JUMP_IF, .flag = IF_NOT_NONE),
    [JUMP_IF_FALSE_OR_POP] = STEP(JUMP_OR_POP, .flag = IF_FALSE),
    [JUMP_IF_TRUE_OR_POP] = STEP(JUMP_OR_POP, .flag = IF_TRUE),
#else
    [POP_JUMP_IF_FALSE] = STEP(JUMP_IF, .flag = IF_FALSE),
    [POP_JUMP_IF_TRUE] = STEP(JUMP_IF, .flag = IF_TRUE),
    [POP_JUMP_IF_NONE] = STEP(JUMP_IF, .flag = IF_NONE),
    [POP_JUMP_IF_NOT_NONE] = STEP(JUMP_IF, .flag = IF_NOT_NONE),
#endif
};

/* The unit to which OP, with ARG at UNIT, jumps. */
static uint32_t jump_to(int op, uint32_t arg, int32_t unit)
{
    int32_t behind = unit + 1 + compat_caches(op);

    if (op == FOR_ITER) /* what it jumps to pops the iterator, and is jumped over with that done */
        behind += PY_VERSION_HEX >= 0x030d0000 ? 2 : PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;
    return (uint32_t)(compat_ops[op].jumps < 0 ? behind - (int32_t)arg : behind + (int32_t)arg);
}

struct compat_action compat_action(int op, uint32_t arg, int32_t unit)
{
    struct compat_action action = {steps[op].does, steps[op].arg ? (uint32_t)steps[op].arg : arg >> steps[op].shift,
                                   steps[op].flag_bits ? (arg & steps[op].flag_bits) != 0 : steps[op].flag};

    if (compat_ops[op].half[0])
        action.does = DOES_TWO;
    if (compat_ops[op].jumps)
        action.arg = jump_to(op, arg, unit);
    if (action.does == DOES_FORMAT)
        action.arg = arg & CONVERSION;
#ifdef NB_SUBSCR
    if (op == BINARY_OP && arg == NB_SUBSCR)
        action.does = DOES_SUBSCRIPT;
#endif
#if PY_VERSION_HEX >= 0x030f0000 /* a generator's `yield from`; an import that may be lazy */
    if ((op == GET_ITER && arg) || (op == IMPORT_NAME && (arg & 3) != 2))
        action.does = DOES_SOMETHING;
#endif
#ifndef LIST_TO_TUPLE
    if (op == CALL_INTRINSIC_1 && arg != 6)
        action.does = DOES_SOMETHING;
#endif
    return action;
}

PyObject *compat_constant(PyCodeObject *code, int op, uint32_t arg)
{
#ifdef LOAD_ASSERTION_ERROR
    if (op == LOAD_ASSERTION_ERROR)
        return Py_NewRef(PyExc_AssertionError);
#endif
#ifdef LOAD_SMALL_INT
    if (op == LOAD_SMALL_INT)
        return PyLong_FromLong((long)arg);
    if (op == LOAD_COMMON_CONSTANT)
        return Py_NewRef(PyInterpreterState_Get()->common_consts[arg]);
#endif
    return Py_NewRef(PyTuple_GET_ITEM(code->co_consts, arg));
}

/* tracer/compat/step.c -- what an instruction does, for capture, by CPython version. See
 * tracer/compat/step.h. */
#include "tracer/compat/step.h"

#define JUMPS(condition)                     \
    {                                        \
        POP_JUMP_IF_FALSE, .flag = condition \
    }
enum { NAME_AND_FLAG = PY_VERSION_HEX >= 0x030c0000 };

/* For each opcode of this version: the instruction that capture knows and that does the same. An
 * opcode without a row does what its name says, with its own argument and without a flag. */
static const struct {
    unsigned short as;   /* the opcode that capture sees instead; 0: the opcode itself */
    unsigned char shift; /* the argument is shifted right by this many bits */
    /* the flag is set if the argument has one of these bits; 0: `flag` is the flag */
    unsigned char flag_bits;
    unsigned char flag; /* used if flag_bits is 0: the same flag for every argument */
} steps[COMPAT_OPCODES] = {
    /* some of these may push a borrowed reference; capture may push a new one instead */
    [LOAD_CLOSURE] = {LOAD_FAST},
    [LOAD_FAST_CHECK] = {LOAD_FAST},
    [LOAD_FAST_BORROW] = {LOAD_FAST},
    [STORE_FAST_LOAD_FAST] = {LOAD_FAST_LOAD_FAST},
    [STORE_FAST_STORE_FAST] = {LOAD_FAST_LOAD_FAST},
    [LOAD_FAST_BORROW_LOAD_FAST_BORROW] = {LOAD_FAST_LOAD_FAST},
    [LOAD_SMALL_INT] = {LOAD_CONST},
    [LOAD_COMMON_CONSTANT] = {LOAD_CONST},
    [LOAD_ASSERTION_ERROR] = {LOAD_CONST},
    [RESUME] = {NOP},
    [NOT_TAKEN] = {NOP},
    [PRECALL] = {NOP},
    [LOAD_GLOBAL] = {.shift = 1, .flag_bits = 1},
    [LOAD_METHOD] = {LOAD_ATTR, .flag = 1},
    [LOAD_ATTR] = {.shift = NAME_AND_FLAG, .flag_bits = NAME_AND_FLAG},
    [LOAD_SUPER_ATTR] = {.shift = 2, .flag_bits = 1},
    /* in 3.15 the two low bits say whether the import is lazy (PEP 810), which
     * compat_effect_of_instruction() rejects */
    [IMPORT_NAME] = {.shift = PY_VERSION_HEX >= 0x030f0000 ? 2 : 0},
    [SET_UPDATE] = {SET_ADD, .flag = 1},
    [DICT_MERGE] = {DICT_UPDATE},
    [BUILD_CONST_KEY_MAP] = {BUILD_MAP, .flag = 1},
    /* with argument 6, INTRINSIC_LIST_TO_TUPLE; compat_effect_of_instruction() rejects other
     * arguments */
    [CALL_INTRINSIC_1] = {LIST_TO_TUPLE},
    [COMPARE_OP] = {.shift = PY_VERSION_HEX >= 0x030d0000   ? 5
                             : PY_VERSION_HEX >= 0x030c0000 ? 4
                                                            : 0,
                    .flag_bits = PY_VERSION_HEX >= 0x030d0000 ? 16 : 0},
    [FORMAT_VALUE] = {.flag_bits = 4},
    [FORMAT_SIMPLE] = {FORMAT_VALUE},
    [FORMAT_WITH_SPEC] = {FORMAT_VALUE, .flag = 1},
    [CALL_KW] = {CALL, .flag = 1},
    /* since 3.14 the keyword arguments are always on the stack, or NULL in their place */
    [CALL_FUNCTION_EX] = {.flag_bits = PY_VERSION_HEX < 0x030e0000, .flag = 1},
    [JUMP_BACKWARD] = {JUMP_FORWARD},
    [JUMP_BACKWARD_NO_INTERRUPT] = {JUMP_FORWARD},
    [POP_JUMP_IF_FALSE] = JUMPS(IF_FALSE),
    [POP_JUMP_FORWARD_IF_FALSE] = JUMPS(IF_FALSE),
    [POP_JUMP_BACKWARD_IF_FALSE] = JUMPS(IF_FALSE),
    [POP_JUMP_IF_TRUE] = JUMPS(IF_TRUE),
    [POP_JUMP_FORWARD_IF_TRUE] = JUMPS(IF_TRUE),
    [POP_JUMP_BACKWARD_IF_TRUE] = JUMPS(IF_TRUE),
    [POP_JUMP_IF_NONE] = JUMPS(IF_NONE),
    [POP_JUMP_FORWARD_IF_NONE] = JUMPS(IF_NONE),
    [POP_JUMP_BACKWARD_IF_NONE] = JUMPS(IF_NONE),
    [POP_JUMP_IF_NOT_NONE] = JUMPS(IF_NOT_NONE),
    [POP_JUMP_FORWARD_IF_NOT_NONE] = JUMPS(IF_NOT_NONE),
    [POP_JUMP_BACKWARD_IF_NOT_NONE] = JUMPS(IF_NOT_NONE),
    [JUMP_IF_TRUE_OR_POP] = {JUMP_IF_FALSE_OR_POP, .flag = IF_TRUE},
};

/* Return the code unit to which OP at UNIT jumps. ARG is the instruction's argument. */
static uint32_t find_jump_target(int op, uint32_t arg, int32_t unit)
{
    int32_t behind = unit + 1 + compat_caches(op);

    /* skip the instructions there that pop the iterator, because capture has popped it itself */
    if (op == FOR_ITER)
        behind += PY_VERSION_HEX >= 0x030d0000 ? 2 : PY_VERSION_HEX >= 0x030c0000 ? 1 : 0;
    return (uint32_t)(compat_ops[op].jumps < 0 ? behind - (int32_t)arg : behind + (int32_t)arg);
}

struct compat_action compat_effect_of_instruction(int op, uint32_t arg, int32_t unit)
{
    struct compat_action action = {steps[op].as ? steps[op].as : op, arg >> steps[op].shift,
                                   steps[op].flag_bits ? (arg & steps[op].flag_bits) != 0
                                                       : steps[op].flag};

    if (compat_ops[op].jumps)
        action.arg = find_jump_target(op, arg, unit);
    if (op == FORMAT_VALUE)
        action.arg = arg & 3;
    if (op == BINARY_OP && arg == 26 /* NB_SUBSCR */)
        action.op = BINARY_SUBSCR;
    if ((op == CALL_INTRINSIC_1 && arg != 6) ||
        (PY_VERSION_HEX >= 0x030f0000 &&
         ((op == GET_ITER && arg) /* a GET_ITER of a generator's `yield from` */ ||
          (op == IMPORT_NAME && (arg & 3) != 2) /* a lazy import */)))
        action.op = CACHE;
    return action;
}

PyObject *compat_constant(PyCodeObject *code, int op, uint32_t arg)
{
#if PY_VERSION_HEX >= 0x030e0000
    if (op == LOAD_COMMON_CONSTANT)
        return Py_NewRef(PyInterpreterState_Get()->common_consts[arg]);
#endif
    return op == LOAD_SMALL_INT
               ? PyLong_FromLong((long)arg)
               : Py_NewRef(op == LOAD_ASSERTION_ERROR ? PyExc_AssertionError
                                                      : PyTuple_GET_ITEM(code->co_consts, arg));
}

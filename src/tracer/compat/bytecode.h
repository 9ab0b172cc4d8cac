/* tracer/compat/bytecode.h -- the differences between the bytecode of CPython's versions.
 *
 * CPython itself computes how an instruction changes the depth of the stack
 * (PyCompile_OpcodeStackEffectWithJump). This file has the other facts that we need about the
 * bytecode of functions, except generators. */
#ifndef DYNTRACE_COMPAT_BYTECODE_H
#define DYNTRACE_COMPAT_BYTECODE_H

#include "tracer/compat/cpython.h"

/* What a slot of the stack or a local variable may hold. Each kind is a bit, because a slot may
 * hold one of several kinds. */
enum compat_slot {
    SLOT_VALUE = 1,
    SLOT_NULL = 2,
    /* the exception state that CPython puts on the stack while an exception is handled */
    SLOT_HANDLER = 4,
    /* a cell: in its variable, or saved on the stack while an inlined comprehension uses the
     * variable for a cell of its own */
    SLOT_CELL = 8,
    /* the index at which a `for` has arrived in the list or tuple in the slot below, or NULL */
    SLOT_INDEX = 16,
    /* an iterator, or a list or tuple over which a `for` goes by index; such an index lies in the
     * slot above */
    SLOT_ITERATED = 32,
};

/* What an instruction does to variables, stack and jumps. */
struct compat_op {
    /* 1 or -1: the argument is how far the instruction jumps forwards or backwards, counted from
     * the end of its caches; 0: it does not jump */
    signed char jumps;
    bool ends;         /* the instruction after this one does not run next */
    bool has_variable; /* the argument is the number of a variable */
    /* for a combined instruction: the two opcodes, each with one variable; otherwise 0 */
    unsigned char half[2];
    /* what the instruction's variable holds afterwards (enum compat_slot), if that does not depend
     * on the stack; or 0 */
    unsigned char variable;
    /* what the topmost slot holds afterwards (enum compat_slot); 0 if it is unchanged, or a pushed
     * SLOT_VALUE */
    unsigned char top;
    /* below: `top` is about the second slot from the top. if_odd: `top` is true only if the
     * argument is odd */
    bool below, if_odd;
    /* reason why a function cannot be split before or behind the instruction; NULL if it can */
    const char *not_before, *not_behind;
};

extern const struct compat_op compat_ops[256];
/* For each opcode, how many code units of inline cache follow the instruction. */
extern const uint8_t _PyOpcode_Caches[256];
#define compat_caches(op) ((int)_PyOpcode_Caches[op])
/* Update what VARIABLES and STACK may hold for instruction OP. The stack has BEFORE slots before it
 * and DEPTH slots afterwards. Returns false if the bytecode is invalid. */
bool compat_update_slots_for_instruction(int op, uint32_t arg, unsigned char *variables,
                                         unsigned char *stack, int before, int depth);

/* gh-109095: a call has two slots below its arguments. Since 3.13 the lower one has the callable,
 * and the upper one NULL or self; before 3.13 it was the other way round. */
#if PY_VERSION_HEX >= 0x030d0000
    #define COMPAT_CALLABLE_FIRST 1
#else
    #define COMPAT_CALLABLE_FIRST 0
#endif
/* Return the index at which a `for` has arrived (SLOT_INDEX), from slot PLACE of the stack of
 * FRAME, which is calling a builtin; -1 if the slot has none. The slot keeps its index. */
static inline Py_ssize_t compat_loop_index(compat_frame *frame, Py_ssize_t place)
{
#if PY_VERSION_HEX >= 0x030f0000
    const int variables = compat_get_code(frame)->co_nlocalsplus;
    _PyStackRef *slot = frame->localsplus + variables + place;
    const bool is_on_stack = frame->stackpointer && slot < frame->stackpointer;

    if (!is_on_stack)
        return -1;
    if (!PyStackRef_IsTaggedInt(*slot))
        return -1;
    return PyStackRef_UntagInt(*slot);
#else
    return -1;
#endif
}

/* The instructions that call a constant without arguments, up to a 0. The argument of LOAD_CONST is
 * the constant's index; the other instructions have the argument 0. */
extern const unsigned char compat_call[];

/* Read the next number of an exception table at *AT, and move *AT behind it. Returns false if the
 * number goes beyond END. */
static inline bool compat_read_exception_number(const unsigned char **at, const unsigned char *end,
                                                uint32_t *number)
{
    unsigned char byte;

    *number = 0;
    do {
        if (*at == end || *number >> 25)
            return false;
        byte = *(*at)++;
        *number = *number << 6 | (byte & 63);
    } while (byte & 64);
    return true;
}

#endif

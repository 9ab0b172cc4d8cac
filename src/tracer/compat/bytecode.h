/* tracer/compat/bytecode.h -- what differs between the bytecode of CPython's versions.
 *
 * CPython itself tells how an instruction changes the depth of the stack
 * (PyCompile_OpcodeStackEffectWithJump). This file has all other facts that are needed about
 * functions which are no generators. */
#ifndef DYNTRACE_COMPAT_BYTECODE_H
#define DYNTRACE_COMPAT_BYTECODE_H

#include "tracer/compat/cpython.h"

/* What a stack slot or local variable may hold. The values are bits: a slot that may hold one of
 * several kinds has several bits. */
enum compat_slot {
    SLOT_VALUE = 1,
    SLOT_NULL = 2,
    /* the exception state that CPython keeps on the stack while it handles an exception */
    SLOT_HANDLER = 4,
    /* a cell: in its variable, or saved on the stack while an inlined comprehension uses the
     * variable for its own cell */
    SLOT_CELL = 8,
    /* the index of a running iteration over the list or tuple in the slot below, or NULL */
    SLOT_INDEX = 16,
    /* a list or tuple that is being iterated, or an iterator; while it lies below its index, the
     * two belong together */
    SLOT_ITERATED = 32,
};

/* The properties of an instruction. */
struct compat_op {
    /* 1 or -1 if the argument is the distance of a jump forwards or backwards, counted from the end
     * of the instruction's caches; 0 if the instruction does not jump */
    signed char jumps;
    bool ends;         /* the next instruction does not run after this one */
    bool has_variable; /* the argument is the number of a variable */
    /* the two instructions that this one combines, each with one variable; or 0 */
    unsigned char half[2];
    /* the kind (enum compat_slot) of the instruction's variable afterwards, if the kind does not
     * depend on the stack; or 0 */
    unsigned char variable;
    /* the kind of the topmost stack slot afterwards; 0 if the slot is unchanged, or is a pushed
     * SLOT_VALUE */
    unsigned char top;
    /* below: `top` describes the second slot from the top. if_odd: `top` holds only if the argument
     * is odd */
    bool below, if_odd;
    /* why a function cannot be split before or behind the instruction; or NULL */
    const char *not_before, *not_behind;
};

extern const struct compat_op compat_ops[256];
/* How many code units of inline cache follow each opcode. */
extern const uint8_t _PyOpcode_Caches[256];
#define compat_caches(op) ((int)_PyOpcode_Caches[op])
/* Apply OP to the kinds of the variables and stack slots. The stack has BEFORE slots before OP and
 * DEPTH slots afterwards. Returns false if the bytecode is invalid. */
bool compat_run(int op, uint32_t arg, unsigned char *variables, unsigned char *stack, int before,
                int depth);

/* gh-109095: of the two slots below a call's arguments, the lower one holds the callable, and the
 * upper one NULL or self. Before 3.13 the order was the other way round. */
#if PY_VERSION_HEX >= 0x030d0000
    #define COMPAT_CALLABLE_FIRST 1
#else
    #define COMPAT_CALLABLE_FIRST 0
#endif
/* Return the iteration index (SLOT_INDEX) that FRAME, which calls a builtin, has on its stack at
 * PLACE from the bottom. Returns -1 if there is no index. The index stays where it is. */
static inline Py_ssize_t compat_index(compat_frame *frame, Py_ssize_t place)
{
#if PY_VERSION_HEX >= 0x030f0000
    const int variables = compat_code(frame)->co_nlocalsplus;
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

/* Instructions that call a constant without arguments. LOAD_CONST's argument is the constant's
 * index, all other arguments are 0. A 0 ends the array. */
extern const unsigned char compat_call[];

/* Read a number of an exception table at *AT, and move *AT behind the number. Returns false if the
 * number does not end before END. */
static inline bool compat_read_number(const unsigned char **at, const unsigned char *end,
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

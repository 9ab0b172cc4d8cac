/* tracer/compat/bytecode.h -- what differs between the bytecode of CPython's versions.
 *
 * What an instruction does to the depth of the stack CPython says itself
 * (PyCompile_OpcodeStackEffectWithJump). This is the rest, as far as functions need it that are no
 * generators. */
#ifndef DYNTRACE_COMPAT_BYTECODE_H
#define DYNTRACE_COMPAT_BYTECODE_H

#include "tracer/compat/cpython.h"

/* What a stack slot or local variable may hold. Bits: a slot that may hold several kinds has
 * several. */
enum compat_slot {
    SLOT_VALUE = 1,
    SLOT_NULL = 2,
    SLOT_HANDLER = 4, /* what CPython keeps while it handles an exception */
    /* a cell in a variable that has one; while an inlined comprehension has it for its own, or
     * saved on the stack */
    SLOT_CELL = 8,
    /* the place that an iteration has come to in the list or tuple below, or NULL */
    SLOT_INDEX = 16,
};

/* An instruction. */
struct compat_op {
    /* its argument is a way, from behind the caches. 1: forwards, -1: backwards */
    signed char jumps;
    bool ends;             /* the next instruction does not run after it */
    bool has_variable;     /* its argument is the number of one */
    unsigned char half[2]; /* the two instructions with one variable each that it is; or 0 */
    /* what its variable holds after it, if that does not depend on the stack; or 0 */
    unsigned char variable;
    /* kind of the stack's top after it; 0: as it was, or a pushed SLOT_VALUE */
    unsigned char top;
    bool below, if_odd; /* of top: the slot below that one; only if the argument is odd */
    const char *not_before, *not_behind; /* why a function cannot be split there; or NULL */
};

extern const struct compat_op compat_ops[256];
/* Units of cache behind OP. */
extern const uint8_t _PyOpcode_Caches[256];
#define compat_caches(op) ((int)_PyOpcode_Caches[op])
/* Apply OP to the kinds of variables and stack slots; the stack goes from BEFORE to DEPTH slots.
 * False: invalid bytecode. */
bool compat_run(int op, uint32_t arg, unsigned char *variables, unsigned char *stack, int before,
                int depth);

/* gh-109095: a callable comes before its NULL or self, not after: in slot 0, not 1, of the two
 * below the arguments of a call. */
#if PY_VERSION_HEX >= 0x030d0000
    #define COMPAT_CALLABLE_FIRST 1
#else
    #define COMPAT_CALLABLE_FIRST 0
#endif
/* The place in a list, tuple or the like that is in local number I, which then has no value; -1:
 * there is none. */
static inline Py_ssize_t compat_take_index(compat_frame *frame, int i)
{
#if PY_VERSION_HEX >= 0x030f0000
    _PyStackRef old = frame->localsplus[i];
    if (!PyStackRef_IsTaggedInt(old))
        return -1;
    frame->localsplus[i] = PyStackRef_NULL;
    return PyStackRef_UntagInt(old);
#else
    return -1;
#endif
}

/* A call of a constant without arguments: these and a 0, LOAD_CONST with the constant and all else
 * with 0. */
extern const unsigned char compat_call[];

/* A number of an exception table, at *AT, which then points behind it. False: it does not end
 * before END. */
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

/* tracer/compat/bytecode.h -- what differs between the bytecode of CPython's versions.
 *
 * What an instruction does to the depth of the stack CPython says itself (PyCompile_OpcodeStackEffectWithJump). This is the
 * rest, as far as functions need it that are no generators. */
#ifndef DYNTRACE_COMPAT_BYTECODE_H
#define DYNTRACE_COMPAT_BYTECODE_H

#include "tracer/compat/cpython.h"

/* What a slot of the stack or a local variable may hold; those that may be several are added up. */
enum compat_slot {
    SLOT_VALUE = 1,
    SLOT_NULL = 2,
    SLOT_HANDLER = 4, /* what CPython keeps while it handles an exception */
    SLOT_CELL = 8,    /* a cell in a variable that has one; while an inlined comprehension has it for its own, or saved on the stack */
    SLOT_INDEX = 16,  /* the place that an iteration has come to in the list or tuple below, or NULL */
};

/* Units of cache behind an instruction. */
int compat_caches(int op);
/* Is the argument a way to jump? 1: forwards, -1: backwards, from behind the caches. */
int compat_jumps(int op);
/* Does what follows run after it? */
bool compat_falls_through(int op);
/* Is the argument the number of a variable? */
bool compat_has_variable(int op);
/* The two instructions with one variable each that OP, with two, is. False: it is no such. */
bool compat_halves(int op, int half[2]);
/* STACK, of DEPTH after OP and of BEFORE before it, where all that was pushed is a SLOT_VALUE: correct that. False: it makes no
 * sense. */
bool compat_correct(int op, uint32_t arg, unsigned char *stack, int before, int depth);
/* What is not on the stack stands between OP and the instruction before it, or OP belongs to that one: why. */
const char *compat_inseparable(int before, int op);

/* OP with a name, for those who write code. */
struct compat_op {
    int op;
    const char *name;
};
#define COMPAT_OP(name) {name, #name}

/* A call of a constant without arguments: these, the first LOAD_CONST with the constant and all else with 0. */
extern const struct compat_op compat_call[];
extern const int compat_call_length;
/* What jumps forward if the top of the stack, a bool, is False. */
extern const int compat_jump_if_false;

#endif

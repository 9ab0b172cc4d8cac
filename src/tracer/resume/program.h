/* tracer/resume/program.h -- a function's bytecode as steps, what each finds, and new code of it with some more in one place.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_PROGRAM_H
#define DYNTRACE_RESUME_PROGRAM_H

#include "tracer/compat/bytecode.h"

/* An instruction: EXTENDED_ARG before it and caches behind it included. One that is two in one becomes two. */
struct step {
    uint8_t op, size;   /* size: units without caches */
    bool starts;        /* an instruction of the code that was read */
    bool due;           /* analyse.c's */
    bool direct;        /* it jumps to the step itself, not to what was put before that */
    uint32_t arg;
    int32_t to;         /* the step that was read to which it may jump, or -1 */
    int32_t span;       /* or -1 */
    int32_t from;       /* its unit in the code that was read: its place in the source is that one's; -1: it has none */
    int32_t at, kept;   /* one that was read: the new steps that jumps lead to, and that it is. A new one: its unit, and - */
};

/* What a row of the exception table says. */
struct span {
    int32_t to;     /* the step that was read that handles exceptions */
    uint32_t depth; /* of the stack, << 1, | 1: the place of the instruction is pushed, too */
};

struct program {
    PyCodeObject *code; /* borrowed */
    struct step *steps; /* owned: those that were read */
    struct span *spans; /* owned */
    int32_t *step_at;   /* owned: by unit, the step that begins there, or -1 */
    int32_t count, units;
    struct step *made;  /* owned: those of the new code */
    int32_t made_count, made_room;
    bool failed;        /* no memory for them */
    int32_t more;       /* variables, for the stack */
    /* Of one that was opened, by step: the stack's depth, or -1: never reached; and sums of enum compat_slot: the variables, then
     * the stack. Owned; the last of these are worked on. */
    int32_t *depth;
    unsigned char *slots;
    int32_t variables, width;
};

/* 0; 1: that is no bytecode of a compiler; -1: MemoryError. In every case the caller closes it. */
int program_read(struct program *p, PyCodeObject *code);
/* Read, and known what it does. FIRST: it is entered at that step, and what is not reached from there is not reached; or 0. 1: *WHY
 * no function can be split that has CODE (static). */
int program_open(struct program *p, PyCodeObject *code, int32_t first, const char **why);
/* One of the exception table's numbers, at *AT, which goes behind it. False: there is none before END. */
bool program_number(const unsigned char **at, const unsigned char *end, uint32_t *number);
/* Why the function cannot be split before STEP; NULL: it can be. */
const char *program_forbids(const struct program *p, int32_t step);
static inline unsigned char *program_slots(const struct program *p, int32_t step)
{
    return p->slots + (size_t)step * (size_t)p->width;
}
void program_close(struct program *p);
/* The new code's next step, and one more that was read, STEP. What jumps to that jumps to where program_lead() was called for it, if that
 * was; exceptions of what was put are handled by nothing. */
struct step *program_put(struct program *p, int op, uint32_t arg, int32_t from);
struct step *program_keep(struct program *p, int32_t step);
static inline void program_lead(struct program *p, int32_t step)
{
    p->steps[step].at = p->made_count;
}
/* Its code has variables for DEPTH slots of the stack, behind its own and before cells and free variables: all their names, a new
 * tuple, or NULL; WHERE they are. One that was split, or made of a split, has some already. */
#define TEMPORARY "___stack"
PyObject *program_temporary(int32_t slot);
PyObject *program_add_temporaries(struct program *p, int32_t depth, uint32_t *where);
/* Where VARIABLE of the code is behind that. */
static inline int program_moved(const struct program *p, int variable)
{
    return variable < p->code->co_nlocals ? variable : variable + p->more;
}
/* Its code's replace(**CHANGES) with the new steps: a new reference. CHANGES is owned here; NULL: there was an exception. */
PyObject *program_make(struct program *p, PyObject *changes);

#endif

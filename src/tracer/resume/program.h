/* tracer/resume/program.h -- a function's bytecode as an array of steps, and new code made from it
 * with some steps added.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_PROGRAM_H
#define DYNTRACE_RESUME_PROGRAM_H

#include "tracer/compat/bytecode.h"

/* An instruction, together with the EXTENDED_ARGs before it and the caches behind it. An
 * instruction that combines two, such as LOAD_FAST_LOAD_FAST, becomes two steps. *Old* steps were
 * read from the code of a function; *new* steps are the code that is being made. */
struct step {
    uint8_t op, size; /* size: number of code units, without the caches */
    bool starts;      /* false for the second of two steps that are one instruction */
    bool due;         /* analyse.c must still visit this step */
    uint32_t arg;
    int32_t to;   /* index of the old step to which this one may jump, or -1 */
    int32_t span; /* index in `spans` of the row with the step's exception handler, or -1 */
    /* the code unit of the old code from which the step has its source position, or -1; for an old
     * step, its own code unit */
    int32_t from;
    /* of an old step: the new step to which jumps to it will lead, or 0 if that is not set yet; of
     * a new step: its code unit */
    int32_t at;
};

/* A row of the exception table. */
struct span {
    int32_t to; /* index of the old step with which the exception handler begins */
    /* depth of the stack at the handler, times 2; plus 1 if the offset of the raising instruction
     * is pushed, too */
    uint32_t depth;
};

struct program {
    PyCodeObject *code; /* borrowed */
    struct step *steps; /* owned: the old steps, read from `code` */
    struct span *spans; /* owned */
    /* owned: for each code unit of `code`, the index of the old step that begins there, or -1 */
    int32_t *step_at;
    int32_t count, units;
    struct step *made; /* owned: the new steps, for the code that is being made */
    int32_t made_count, made_room;
    bool failed; /* memory has run out, so a new step is missing */
    /* Owned, and set by program_open. depth: the depth of the stack before each step, -1 if the
     * step is never reached. slots: a row for each step with what variables and then stack slots
     * may hold before it (enum compat_slot), and a last row to work with. */
    int32_t *depth;
    unsigned char *slots;
    int32_t variables, width;
};

/* Read CODE into P. Returns -1 with an exception; a ValueError says why such a function cannot be
 * split. The caller must call program_close in any case. */
int program_read(struct program *p, PyCodeObject *code);
/* Read CODE into P, and find out what slots may hold before each step if the code is entered at
 * step FIRST; 0 is its beginning. Returns -1 with an exception. */
int program_open(struct program *p, PyCodeObject *code, int32_t first);
int program_raise_invalid(void); /* set a ValueError that the bytecode is invalid, and return -1 */
static inline unsigned char *program_slots_before_step(const struct program *p, int32_t step)
{
    return p->slots + (size_t)step * (size_t)p->width;
}
void program_close(struct program *p);
/* program_add_step adds a new step. program_redirect_jumps makes jumps to the old step STEP lead to
 * the new step that is added next; p->count is the end of the old code. program_keep_step adds a
 * copy of the old step STEP. */
struct step *program_add_step(struct program *p, int op, uint32_t arg, int32_t from);
static inline void program_redirect_jumps(struct program *p, int32_t step)
{
    p->steps[step].at = p->made_count;
}
struct step *program_keep_step(struct program *p, int32_t step);
/* Return a copy of the code object with the program's instructions and line table: a new reference
 * to code.replace(**CHANGES).
 * Steals CHANGES, which is NULL if an exception is set. */
PyObject *program_make(struct program *p, PyObject *changes);

#endif

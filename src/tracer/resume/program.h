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
    uint8_t op, size; /* size: code units without the caches */
    bool starts;      /* false for the second step of an instruction */
    bool due;         /* analyse.c has to visit the step again */
    uint32_t arg;
    int32_t to;   /* the old step to which this step may jump, or -1 */
    int32_t span; /* index in `spans` of the exception handler that covers the step, or -1 */
    /* the old code unit whose source position the step has (for an old step its own unit), or -1 */
    int32_t from;
    /* for an old step: the new step to which jumps to the old step lead, or 0 if not set yet; for a
     * new step: its code unit */
    int32_t at;
};

/* A row of the exception table. */
struct span {
    int32_t to; /* the old step with which the handler begins */
    /* twice the depth of the stack at the handler; plus 1 if the offset of the raising instruction
     * is pushed, too */
    uint32_t depth;
};

struct program {
    PyCodeObject *code; /* borrowed */
    struct step *steps; /* owned: the old steps */
    struct span *spans; /* owned */
    /* owned: for each code unit of the old code, the old step that begins there, or -1 */
    int32_t *step_at;
    int32_t count, units;
    struct step *made; /* owned: the new steps */
    int32_t made_count, made_room;
    bool failed; /* a new step could not be added, because memory ran out */
    /* Set by program_open, owned. depth: for each step, the depth of the stack before the step, or
     * -1 if the step is never reached. slots: for each step, the kinds (enum compat_slot) that the
     * variables and then the stack may hold before it. The last row of slots is a working copy. */
    int32_t *depth;
    unsigned char *slots;
    int32_t variables, width;
};

/* Read CODE into P. Returns -1 with an exception; a ValueError says why a function with this code
 * cannot be split. In every case the caller calls program_close. */
int program_read(struct program *p, PyCodeObject *code);
/* Read CODE, and find out which kinds of values each step's slots may hold. The code is entered at
 * step FIRST only, or at its beginning if FIRST is 0. Returns -1 with an exception. */
int program_open(struct program *p, PyCodeObject *code, int32_t first);
int program_set_invalid(void); /* set the ValueError for invalid bytecode, and return -1 */
static inline unsigned char *program_slots(const struct program *p, int32_t step)
{
    return p->slots + (size_t)step * (size_t)p->width;
}
void program_close(struct program *p);
/* program_put adds a new step to the new code. program_redirect makes jumps to the old step STEP
 * lead to the new step that is added next; STEP may be p->count, the end of the old code.
 * program_keep adds a copy of the old step STEP to the new code. */
struct step *program_put(struct program *p, int op, uint32_t arg, int32_t from);
static inline void program_redirect(struct program *p, int32_t step)
{
    p->steps[step].at = p->made_count;
}
struct step *program_keep(struct program *p, int32_t step);
/* Return the code's replace(**CHANGES) with the new steps, a new reference. CHANGES is owned here;
 * it is NULL if an exception is set. */
PyObject *program_make(struct program *p, PyObject *changes);

#endif

/* tracer/resume/program.h -- a function's bytecode as an array of steps, and new code made from it
 * with some steps added.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_PROGRAM_H
#define DYNTRACE_RESUME_PROGRAM_H

#include "tracer/compat/bytecode.h"

/* An instruction, together with the EXTENDED_ARGs before it and the caches behind it. An
 * instruction that combines two, such as LOAD_FAST_LOAD_FAST, becomes two steps. */
struct step {
    uint8_t op, size; /* size: code units without the caches */
    bool starts;      /* false for the second step of an instruction */
    bool due;         /* analyse.c must visit the step again */
    uint32_t arg;
    int32_t to;   /* the step of the code that was read to which this one may jump, or -1 */
    int32_t span; /* the span that the step is in, or -1 */
    /* the unit of the code that was read whose place in the source this step has, which is its own
     * for a step that was read; -1: it has no place */
    int32_t from;
    /* of a step that was read: the new step that jumps to it lead to, or 0 if that is the step
     * itself; of a new step: its unit */
    int32_t at;
};

/* A row of the exception table. */
struct span {
    int32_t to; /* the step of the code that was read where the handler begins */
    /* the stack's depth at the handler << 1, | 1 if the raising instruction's offset is pushed,
     * too */
    uint32_t depth;
};

struct program {
    PyCodeObject *code; /* borrowed */
    struct step *steps; /* owned: the steps of the code that was read */
    struct span *spans; /* owned */
    int32_t *step_at;   /* owned: for each unit, the step that begins there, or -1 */
    int32_t count, units;
    struct step *made; /* owned: the steps of the new code */
    int32_t made_count, made_room;
    bool failed; /* there was no memory for the new steps */
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
/* Read CODE, and find out what each step's slots may hold. With FIRST, the program is entered at
 * that step alone; with 0, at its beginning. Returns -1 with an exception. */
int program_open(struct program *p, PyCodeObject *code, int32_t first);
int program_set_invalid(void); /* set the ValueError for invalid bytecode, and return -1 */
static inline unsigned char *program_slots(const struct program *p, int32_t step)
{
    return p->slots + (size_t)step * (size_t)p->width;
}
void program_close(struct program *p);
/* program_put adds a new step to the new code. program_redirect makes jumps to STEP lead to the
 * step that is added next; STEP is a step that was read, or their count, the end of the code.
 * program_keep adds STEP, a step that was read. */
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

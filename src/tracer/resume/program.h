/* tracer/resume/program.h -- a function's bytecode as steps, what each finds, and new code of it
 * with some more in one place.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_PROGRAM_H
#define DYNTRACE_RESUME_PROGRAM_H

#include "tracer/compat/bytecode.h"

/* An instruction: EXTENDED_ARG before it and caches behind it included. One that is two in one
 * becomes two. */
struct step {
    uint8_t op, size; /* size: units without caches */
    bool starts;      /* an instruction of the code that was read */
    bool due;         /* analyse.c's */
    uint32_t arg;
    int32_t to;   /* the step that was read to which it may jump, or -1 */
    int32_t span; /* or -1 */
    /* its unit in the code that was read: its place in the source is that one's; -1: it has none */
    int32_t from;
    /* one that was read: the new step that jumps lead to, or 0: itself. A new one: its unit */
    int32_t at;
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
    struct step *made; /* owned: those of the new code */
    int32_t made_count, made_room;
    bool failed; /* no memory for them */
    /* Of one that was opened, by step: the stack's depth, or -1: never reached; and sums of enum
     * compat_slot: the variables, then the stack. Owned; the last of these are worked on. */
    int32_t *depth;
    unsigned char *slots;
    int32_t variables, width;
};

/* -1: an exception; ValueError says why no function can be split that has CODE. In every case the
 * caller closes it. */
int program_read(struct program *p, PyCodeObject *code);
/* Read, and known what it does. FIRST: it is entered at that step, and what is not reached from
 * there is not reached; or 0. */
int program_open(struct program *p, PyCodeObject *code, int32_t first);
int program_is_none(void); /* -1 with the ValueError of bytecode that makes no sense */
static inline unsigned char *program_slots(const struct program *p, int32_t step)
{
    return p->slots + (size_t)step * (size_t)p->width;
}
void program_close(struct program *p);
/* The new code's next step, and what jumps to STEP, which was read, or is none of them but their
 * count, leads there; and STEP as the next one. */
struct step *program_put(struct program *p, int op, uint32_t arg, int32_t from);
static inline void program_lead(struct program *p, int32_t step)
{
    p->steps[step].at = p->made_count;
}
struct step *program_keep(struct program *p, int32_t step);
/* Its code's replace(**CHANGES) with the new steps: a new reference. CHANGES is owned here; NULL:
 * there was an exception. */
PyObject *program_make(struct program *p, PyObject *changes);

#endif

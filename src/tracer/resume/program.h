/* tracer/resume/program.h -- a function's bytecode as steps that can be moved.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_PROGRAM_H
#define DYNTRACE_RESUME_PROGRAM_H

#include "tracer/compat/bytecode.h"

/* An instruction: EXTENDED_ARG before it and caches behind it included. One that is two in one becomes two. */
struct step {
    uint8_t op;
    bool starts;   /* an instruction of the code that was read */
    bool silent;   /* it has no line */
    uint8_t size;  /* units without caches; made anew by program_code() */
    uint32_t arg;
    int32_t to;    /* the step that it may jump to, or -1 */
    int32_t from;  /* the unit of the code that was read which it comes from, or whose line it has */
    int32_t at;    /* its unit; made by program_code() */
};

/* A row of the exception table: steps [first, end) are handled at step `to`. */
struct span {
    int32_t first, end, to;
    uint32_t depth; /* of the stack, << 1, | 1: the place of the instruction is pushed, too */
};

struct program {
    PyCodeObject *code; /* borrowed */
    struct step *steps; /* owned */
    struct span *spans; /* owned */
    int32_t count, span_count, units;
    int32_t *step_at;   /* owned: by unit, the step that begins there, or -1 */
};

/* 0; 1: that is no bytecode of a compiler; -1: MemoryError. In every case the caller closes it. */
int program_read(struct program *p, PyCodeObject *code);
void program_close(struct program *p);
/* COUNT steps come before step AT, outside of what handles exceptions there; with LED what jumps to it jumps to them. -1:
 * MemoryError. */
int program_insert(struct program *p, int32_t at, const struct step *steps, int32_t count, bool led);
/* co_code, co_linetable and co_exceptiontable: new references. -1 with an exception. */
int program_code(struct program *p, PyObject *made[3]);

#endif

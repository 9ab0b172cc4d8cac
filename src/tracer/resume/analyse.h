/* tracer/resume/analyse.h -- what the stack and the variables hold before each step of a program.
 *
 * Runs in: the traced process, under the GIL. */
#ifndef DYNTRACE_RESUME_ANALYSE_H
#define DYNTRACE_RESUME_ANALYSE_H

#include "tracer/resume/program.h"

/* Sums of enum compat_slot for each step: its variables, then its stack. */
struct analysis {
    struct program program;
    int32_t *depth;         /* owned: of the stack; -1: the step is never reached */
    unsigned char *slots;   /* owned */
    int32_t width, variables;
    int32_t begun;          /* the step behind which the function has been set up; -1: there is none */
};

/* 0; -1: MemoryError; 1: *WHY no function can be split that has CODE (static). In every case the caller closes it. */
int analysis_open(struct analysis *a, PyCodeObject *code, const char **why);
void analysis_close(struct analysis *a);
/* The function is entered at step FIRST: what is not reached from there is not reached. 0; -1: MemoryError. */
int analysis_from(struct analysis *a, int32_t first);
/* Why the function cannot be split before STEP; NULL: it can be. */
const char *analysis_forbids(const struct analysis *a, int32_t step);
static inline unsigned char *analysis_slots(const struct analysis *a, int32_t step)
{
    return a->slots + (size_t)step * (size_t)a->width;
}

#endif

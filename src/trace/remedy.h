/* trace/remedy.h -- the smallest change to a program that would have helped.
 *
 * Runs in: the viewer.
 *
 * A case is a row of a table: what it is recognised by and what to do about it.
 * Rows are tried from the top; the last one of each kind fits always. The cases
 * of programs that bring their own compiler are in trace/remedy.c. Those of torch are
 * in trace/remedy_torch.c: each names the versions of torch that have what it speaks of. */
#ifndef DYNTRACE_REMEDY_H
#define DYNTRACE_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "vocabulary.h"

/* What happened, of which a row speaks. Texts are borrowed and may be NULL. */
struct remedy_facts {
    const char *kind;     /* of the guard */
    const char *source;   /* what it looked at; of a break: the function that was called */
    const char *expected; /* what it wanted */
    const char *actual;   /* what it saw */
    const char *text;     /* all of it in words; a reason, a death's cause */
    const char *aspect;   /* recompile_cause.aspect, and its dimension; -1: none */
    int dimension;
    const char *values;   /* "16, 18, 20": over the recompiles */
    const char *function; /* of which it is told */
    const char *code;     /* what that is: "generator" */
    int64_t count;        /* calls or recompiles that it concerns */
    int64_t needed;       /* different inputs seen, 0 when not known */
    int64_t line;         /* of a break; 0 not known */
    int torch;            /* 213 for torch 2.13 (torch_version()), 0: the program has a compiler of its own */
};

/* Which case it was. */
struct remedy_case {
    const char *name; /* short */
    int effort;       /* how much there is to change: 0 the call fails without, 1 a line or a switch, ... 4 it only puts off */
};

/* What about the input changed. */
enum remedy_change {
    CHANGE_ANY, CHANGE_SIZE, CHANGE_STRIDE, CHANGE_RANK, CHANGE_DTYPE, CHANGE_DEVICE, CHANGE_GRAD, CHANGE_TYPE,
    CHANGE_NUMBER, CHANGE_DEAD,
};

enum remedy_change remedy_change(const struct remedy_facts *facts);

/* Sentences, which the caller frees (NULL: no memory, or nothing to say). *FOUND is
 * the case; FOUND may be NULL. */
char *remedy_for_cause(const struct remedy_facts *facts, struct remedy_case *found);
char *remedy_for_death(const struct remedy_facts *facts, struct remedy_case *found);
char *remedy_for_outcome(enum outcome outcome, const struct remedy_facts *facts, struct remedy_case *found);
char *remedy_for_break(const struct remedy_facts *facts, struct remedy_case *found);

/* ---- for the tables -------------------------------------------------------- */

/* Torch's rows of what is above; FACTS->torch is set. */
char *remedy_torch_cause(const struct remedy_facts *facts, struct remedy_case *found);
char *remedy_torch_death(const struct remedy_facts *facts, struct remedy_case *found);
char *remedy_torch_outcome(enum outcome outcome, const struct remedy_facts *facts, struct remedy_case *found);

/* A row's text with FACTS in place of the names in braces. The caller frees it. */
char *remedy_sentence(const char *text, const struct remedy_facts *facts);

/* TEXT is like the shell pattern, whatever the letters' case. NULL is the empty text. */
bool remedy_like(const char *pattern, const char *text);

#endif

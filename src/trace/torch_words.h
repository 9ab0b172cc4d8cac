/* trace/torch_words.h -- the meaning of torch's names and sentences.
 *
 * Works on strings only, without the trace. The strings come from traced programs and may be
 * malformed; results are never longer than their input. */
#ifndef DYNTRACE_TORCH_WORDS_H
#define DYNTRACE_TORCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 206 for "2.6.0+cpu", 213 for "2.13.1"; 0: no version. */
int torch_version(const char *text);

/* Differences between torch versions, except remedies (trace/remedies.txt). VERSION is
 * torch_version()'s. */
/* The option that limits a code object's current entries or, if EVER, all entries it ever had. */
const char *torch_limit_name(int version, bool ever);

/* Is it a resume function? "Net.torch_dynamo_resume_in_forward_at_12" is: *FUNCTION becomes
 * "Net.forward", which the caller frees, and *LINE 12. Both may be NULL. */
bool torch_resume(const char *qualname, char **function, int64_t *line);

/* "the rest of Net.forward after line 12", at most WIDTH bytes of the name; the caller frees it.
 * NULL: it is no resume function. */
char *torch_rest_words(const char *qualname, size_t width);

/* Torch's reason for a graph break or a failure, taken apart. From 2.7 on it is written so:
 *
 *     Failed to trace builtin operator           what
 *       Explanation: Dynamo does not ...         why
 *       Hint: Avoid calling ...                  hint: the first that says what to do
 *       Developer debug context: builtin ...
 *
 * Other reasons have only WHAT: their first line, joined with the next one if it ends in a colon.
 * Missing parts are empty; each part is one line, cut if longer. */
enum { TORCH_PART = 1000 };
struct torch_reason {
    char what[TORCH_PART], why[TORCH_PART], hint[TORCH_PART];
};

struct torch_reason torch_reason_split(const char *reason);

/* A phase of a compile in words, or NULL. */
const char *torch_phase_words(const char *name);

#endif

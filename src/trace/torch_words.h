/* trace/torch_words.h -- what torch's names and sentences mean.
 *
 * Strings only: nothing here asks the trace. All of them come from traced
 * programs, so nothing is believed and nothing is longer than what was given. */
#ifndef DYNTRACE_TORCH_WORDS_H
#define DYNTRACE_TORCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 206 for "2.6.0+cpu", 213 for "2.13.1"; 0: no version. */
int torch_version(const char *text);

/* What torch's versions do differently, besides what helps against what (trace/remedies.txt).
 * VERSION is torch_version()'s. */
/* The option for the limit on what one code object has, or on what it EVER had. */
const char *torch_limit_name(int version, bool ever);

/* Is it a resume function? "Net.torch_dynamo_resume_in_forward_at_12" is: *FUNCTION becomes
 * "Net.forward", which the caller frees, and *LINE 12. Both may be NULL. */
bool torch_resume(const char *qualname, char **function, int64_t *line);

/* "the rest of Net.forward after line 12"; other names as they are, or as OTHERWISE. */
void torch_name_print(FILE *out, const char *qualname, size_t width);
void torch_kind_print(FILE *out, const char *qualname, const char *otherwise);

/* Torch's reason for a graph break or a failure, taken apart. From 2.7 on it is written so:
 *
 *     Failed to trace builtin operator           what
 *       Explanation: Dynamo does not ...         why
 *       Hint: Avoid calling ...                  hint: the first that says what to do
 *       Developer debug context: builtin ...
 *
 * Others have WHAT alone: their first line, with the next one after a colon. What there is not is
 * empty; each is a line, and what is longer is cut. */
enum { TORCH_PART = 1000 };
struct torch_reason {
    char what[TORCH_PART], why[TORCH_PART], hint[TORCH_PART];
};

struct torch_reason torch_reason_split(const char *reason);

/* What a phase of a compile is about, in words, or NULL. */
const char *torch_phase_words(const char *name);

#endif

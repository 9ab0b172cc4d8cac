/* trace/torch_words.h -- the meaning of torch's names and messages.
 *
 * The functions work on strings only, without the trace. The strings come from traced programs and
 * may be malformed. No result is longer than its input, apart from fixed words. */
#ifndef DYNTRACE_TORCH_WORDS_H
#define DYNTRACE_TORCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Return a version as a number: 206 for "2.6.0+cpu", 213 for "2.13.1". Returns 0 if TEXT is not a
 * version. */
int torch_version(const char *text);

/* Differences between torch versions, except remedies (trace/remedies.txt). VERSION is a result of
 * torch_version(). */
/* Return the name of torch's limit on the entries that a code object has at a time. If EVER, return
 * the name of the limit on all entries that it ever had. */
const char *torch_limit_name(int version, bool ever);

/* Is QUALNAME a resume function, such as "Net.torch_dynamo_resume_in_forward_at_12"? If so, set
 * *FUNCTION to "Net.forward", which the caller frees, and *LINE to 12. Both pointers may
 * be NULL. */
bool torch_resume(const char *qualname, char **function, int64_t *line);

/* Return "the rest of Net.forward after line 12", with at most WIDTH bytes of the name. Returns
 * NULL if QUALNAME is not a resume function. The caller frees the text. */
char *torch_rest_words(const char *qualname, size_t width);

/* torch's reason for a graph break or a failure, split into parts. Since torch 2.7 a reason looks
 * like this:
 *
 *     Failed to trace builtin operator           what
 *       Explanation: Dynamo does not ...         why
 *       Hint: Avoid calling ...                  hint: the first that says what to do
 *       Developer debug context: builtin ...
 *
 * Other reasons have only WHAT: their first line, joined with the next line if it ends in a colon.
 * A missing part is empty. Each part is one line, cut if longer. */
enum { TORCH_PART = 1000 };
struct torch_reason {
    char what[TORCH_PART], why[TORCH_PART], hint[TORCH_PART];
};

struct torch_reason torch_reason_split(const char *reason);

/* Return words for the work of a compile phase, or NULL if NAME is unknown. */
const char *torch_phase_words(const char *name);

#endif

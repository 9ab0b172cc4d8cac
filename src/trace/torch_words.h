/* trace/torch_words.h -- tells what torch's names and messages mean.
 *
 * The functions work on strings only, without the trace. The strings come from traced programs
 * and may be malformed. No result is longer than its input, apart from fixed words. */
#ifndef DYNTRACE_TORCH_WORDS_H
#define DYNTRACE_TORCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Return a version as a number: 206 for "2.6.0+cpu", 213 for "2.13.1". Returns 0 if TEXT is not a
 * version. */
int torch_parse_version(const char *text);

/* Return torch's name for the limit on the cache entries that a code object has at a time. If EVER,
 * return the name for the limit on all cache entries that it ever had. The names depend on VERSION,
 * a result of torch_parse_version(). */
const char *torch_limit_name(int version, bool ever);

/* Is QUALNAME a resume function, such as "Net.torch_dynamo_resume_in_forward_at_12"? If so, set
 * *FUNCTION to "Net.forward", which the caller frees, and *LINE to 12. Both pointers may
 * be NULL. */
bool torch_parse_resume_name(const char *qualname, char **function, int64_t *line);

/* Return "the rest of Net.forward after line 12", with at most WIDTH bytes of the name. Returns
 * NULL if QUALNAME is not a resume function. The caller frees the text. */
char *torch_describe_resume_function(const char *qualname, size_t width);

/* torch's reason for a graph break or a failure, split into parts. Since torch 2.7 a reason
 * looks like this:
 *
 *     Failed to trace builtin operator     -- the member `what`
 *     Explanation: Dynamo does not ...     -- the member `why`
 *     Hint: Avoid calling ...              -- `hint` is the first hint about the program
 *     Developer debug context: builtin ... -- dropped
 *
 * Other reasons have only `what`: their first line, joined with the second one if the first ends
 * in a colon. A part that is missing is empty. Each part is one line, cut to TORCH_PART bytes. */
enum { TORCH_PART = 1000 };
struct torch_reason {
    char what[TORCH_PART], why[TORCH_PART], hint[TORCH_PART];
};

struct torch_reason torch_reason_split(const char *reason);

/* Return words for what a phase of torch's compile does, or NULL if NAME is unknown. */
const char *torch_describe_phase(const char *name);

#endif

/* trace/user_stack.h -- finds the lines of the program that caused a guard, a graph break or a
 * failure.
 *
 * A trace keeps a stack as Python prints a traceback, outermost place first:
 *
 *     File "/home/a/train.py", line 25, in train
 *     File "/home/a/train.py", line 12, in timer
 *
 * Pages print the innermost place, with the text of its line if this text is certain
 * (trace/lines.h). They also print the path from the outermost place to the innermost. */
#ifndef DYNTRACE_USER_STACK_H
#define DYNTRACE_USER_STACK_H

#include <stdint.h>

struct lines;

/* Return the innermost place of STACK: "x = y[n], b/train.py:12 in timer". The function is
 * left out if its name is FUNCTION. SAID is torch's sentence about the event, which may quote
 * the line. FUNCTION and SAID may be NULL. Returns NULL if STACK has no place. The caller
 * frees the result. */
char *user_stack_innermost_line(const char *stack, const char *said, const char *function,
                                struct lines *lines);

/* Return the file of the innermost place of STACK, and set *LINE to its line. Returns NULL if STACK
 * has no place. The caller frees the file. */
char *user_stack_innermost_file(const char *stack, int64_t *line);

/* Return the text of the line at the innermost place of STACK, "x = y[n]", or NULL if the text is
 * not known. The caller frees the result. */
char *user_stack_innermost_code(const char *stack, const char *said, struct lines *lines);

/* Return the places of STACK from the outermost to the innermost: "train (b/train.py:25) -> timer
 * (b/train.py:12)". Returns NULL if there are fewer than two places. The caller frees the
 * result. */
char *user_stack_describe_path(const char *stack);

#endif

/* trace/user_stack.h -- the lines of the program that a guard, a break or a failure is there for.
 *
 * A trace keeps them as Python prints a traceback, outermost first:
 *
 *     File "/home/a/train.py", line 25, in train
 *     File "/home/a/train.py", line 12, in timer
 *
 * Pages print the innermost, with its text where that is certain (trace/lines.h), and the path. */
#ifndef DYNTRACE_USER_STACK_H
#define DYNTRACE_USER_STACK_H

struct lines;

/* The innermost place of STACK: "x = y[n], b/train.py:12 in timer"; without the function if that is
 * the one named FUNCTION, which may be NULL. SAID is torch's sentence, which may quote the line, or
 * NULL. Returns NULL if STACK has no place. The caller frees it. */
char *user_stack_line(const char *stack, const char *said, const char *function,
                      struct lines *lines);

/* The text of the innermost place of STACK alone, "x = y[n]". NULL: it is not known. */
char *user_stack_code(const char *stack, const char *said, struct lines *lines);

/* From the outermost place of STACK to the innermost: "train (b/train.py:25) -> timer
 * (b/train.py:12)". NULL: there are fewer than two places. The caller frees it. */
char *user_stack_path(const char *stack);

#endif

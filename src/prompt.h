/* prompt.h -- a line typed by a person, with history; Ctrl-C ends what runs, not the program.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_PROMPT_H
#define DYNTRACE_PROMPT_H

#include <stdbool.h>

void prompt_begin(void);

/* Once Ctrl-C was typed, until the next prompt_line(). */
bool prompt_interrupted(void);

/* The next line, which the caller frees; "" after Ctrl-C; NULL at the end. */
char *prompt_line(const char *prompt);

#endif

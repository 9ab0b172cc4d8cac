/* cmd/prompt.h -- a line editor with history; Ctrl-C ends the running query, not the program. */
#ifndef DYNTRACE_PROMPT_H
#define DYNTRACE_PROMPT_H

#include <stdbool.h>

struct db;

/* From now on Ctrl-C ends the running query, not the program. */
void prompt_catch_sigint(void);

/* Call prompt_catch_sigint, and initialise the line editor. */
void prompt_begin(void);

/* Set the trace whose query Ctrl-C interrupts. DB is NULL if no query runs. */
void prompt_set_running(struct db *db);

/* Was Ctrl-C typed since the last prompt_read_line()? */
bool prompt_was_interrupted(void);

/* Read a line, which the caller frees. Returns "" after Ctrl-C, and NULL at the end of the
 * input. */
char *prompt_read_line(const char *prompt);

/* Add LINE to the history. */
void prompt_remember(const char *line);

#endif

/* cmd/prompt.h -- a line editor with history; Ctrl-C ends the running query, not the program. */
#ifndef DYNTRACE_PROMPT_H
#define DYNTRACE_PROMPT_H

#include <stdbool.h>

struct db;

/* From here on Ctrl-C is noted, and ends the query that runs. */
void prompt_catch(void);

/* The same, and lines can be typed. */
void prompt_begin(void);

/* Set the trace whose query Ctrl-C interrupts; NULL: no query runs. */
void prompt_running(struct db *db);

/* Was Ctrl-C typed since the last prompt_line()? */
bool prompt_interrupted(void);

/* The next line, which the caller frees; "" after Ctrl-C; NULL at the end. */
char *prompt_line(const char *prompt);

/* Add LINE to the history. */
void prompt_remember(const char *line);

#endif

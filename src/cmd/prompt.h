/* cmd/prompt.h -- a line typed by a person, with history; Ctrl-C ends what runs, not the program.
 * */
#ifndef DYNTRACE_PROMPT_H
#define DYNTRACE_PROMPT_H

#include <stdbool.h>

struct db;

/* From here on Ctrl-C is noted, and ends the query that runs. */
void prompt_catch(void);

/* The same, and lines can be typed. */
void prompt_begin(void);

/* What Ctrl-C interrupts; NULL: no query runs. */
void prompt_running(struct db *db);

/* Once Ctrl-C was typed, until the next prompt_line(). */
bool prompt_interrupted(void);

/* The next line, which the caller frees; "" after Ctrl-C; NULL at the end. */
char *prompt_line(const char *prompt);

/* LINE is one that the up key brings back. */
void prompt_remember(const char *line);

#endif

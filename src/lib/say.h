/* lib/say.h -- messages for people, and text made safe to print.
 *
 * Runs in: the command line (every command).
 *
 * A message is one line: "dyntrace: what: why". The function that knows the facts (path, errno,
 * SQL) prints it; the command decides whether to stop. */
#ifndef DYNTRACE_SAY_H
#define DYNTRACE_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Print "dyntrace: ..." and a newline on stderr. Control bytes in the text are escaped, so that a
 * hostile name cannot control the terminal. */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Make say_error() in this thread pass its line to TO instead of printing it. A full-screen program
 * needs this. The line is escaped and has no "dyntrace: ". If TO is NULL, say_error() prints
 * again. */
void say_redirect_errors(void (*to)(void *context, const char *line), void *context);

bool say_is_redirected(void);

/* Write TEXT (BYTES long) to OUT. Control characters, DEL, C1 controls and malformed UTF-8 are
 * written as \xNN, tabs and newlines as \t and \n. */
void say_escaped(FILE *out, const char *text, size_t bytes);

/* Return the text that say_escaped writes; the caller frees it. Returns NULL if memory has run out,
 * which happens only in the collector. */
char *say_escape(const char *text, size_t bytes);

/* Return a new text as printf would print it; the caller frees it. Never returns NULL in a command
 * that reads traces (lib/bounds.h). */
char *say_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* May OUT be coloured? True for a terminal if NO_COLOR is unset or empty. */
bool say_may_use_colour(FILE *out);

/* A progress line on the terminal. It appears after a second, and only if stderr is a terminal.
 * WHAT says what is being done ("checking"). It is borrowed and may be changed at any time. */
struct progress {
    const char *what;
    int64_t begun_ms, drawn_ms;
    bool terminal, drawn;
};
struct progress progress_begin(const char *what);

/* Show how many percent DONE is of ALL. If ALL is 0, the total is not known: show only the seconds.
 * Cheap enough to be called every few thousand rows. */
void progress_tick(struct progress *progress, int64_t done, int64_t all);

/* Show only the seconds. Can be passed to db_set_progress_callback as a callback. */
void progress_spin(void *progress);

/* Erase the progress line. May be called twice. */
void progress_end(struct progress *progress);

#endif

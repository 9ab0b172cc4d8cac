/* lib/say.h -- messages for people, and text made safe to print.
 *
 * Runs in: the command line (every command).
 *
 * A message is one line: "dyntrace: what: why". It is made where the facts are
 * known (path, errno, SQL); the decision to stop is the command's. */
#ifndef DYNTRACE_SAY_H
#define DYNTRACE_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Print "dyntrace: ..." and a newline on stderr. Control bytes in the text are
 * escaped, so that a hostile name cannot drive the terminal. */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on say_error() in this thread hands its line, already escaped and without "dyntrace: ",
 * to TO and prints nothing: for a full-screen program. NULL restores printing. */
void say_divert(void (*to)(void *context, const char *line), void *context);

bool say_diverted(void);

/* Write TEXT (BYTES long) to OUT with control characters, DEL, C1 controls and
 * malformed UTF-8 spelled as \xNN. Tabs and newlines are escaped too (\t, \n). */
void say_escaped(FILE *out, const char *text, size_t bytes);

/* The same into a malloc'ed string; the caller frees it. NULL when out of memory, in the collector.
 * */
char *say_escape(const char *text, size_t bytes);

/* A new string as printf would print it; the caller frees it. Never NULL in a command that reads
 * (lib/bounds.h). */
char *say_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True when OUT may be coloured: a terminal, and NO_COLOR unset or empty. */
bool say_colour(FILE *out);

/* A progress line on the terminal; nothing in the first second, or if stderr is not a terminal.
 * WHAT ("checking") is borrowed, and may change while it runs. */
struct progress {
    const char *what;
    int64_t begun_ms, drawn_ms;
    bool terminal, drawn;
};
struct progress progress_begin(const char *what);

/* Show DONE of ALL; with ALL 0 (unknown), seconds. Cheap enough for every few thousand rows. */
void progress_tick(struct progress *progress, int64_t done, int64_t all);

/* The same of work without end, for db_on_progress. */
void progress_spin(void *progress);

/* Erase the line. May be called twice. */
void progress_end(struct progress *progress);

#endif

/* cmd/interpreter.h -- ask a Python something, by running it.
 *
 * Runs in: the command line.
 *
 *     struct asked asked = interpreter_ask("python3", "print(1)", NULL);
 *     ...                                            it runs meanwhile
 *     if (interpreter_answer(&asked, text, sizeof text)) */
#ifndef DYNTRACE_INTERPRETER_H
#define DYNTRACE_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct asked {
    pid_t pid;
    int fd; /* -1: nothing was asked */
};

/* PYTHON, found on PATH if it is no path, runs CODE with sys.argv[1] = ARGUMENT. No environment and no site, and nothing on its
 * streams but what it prints. */
struct asked interpreter_ask(const char *python, const char *code, const char *argument);

/* What it printed, cut to ROOM. False: it could not be run, or nothing was asked. */
bool interpreter_answer(struct asked *asked, char *text, size_t room);

#endif

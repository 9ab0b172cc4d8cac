/* python_options.h -- command lines of Python that keep it from loading the recorder.
 *
 * Runs in: the command line, which refuses such a command, and the traced process, which notes such a child.
 *
 * -E and -I make Python ignore the environment, -S leaves out site, which loads sitecustomize. */
#ifndef DYNTRACE_PYTHON_OPTIONS_H
#define DYNTRACE_PYTHON_OPTIONS_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The last part of a path. */
static inline const char *python_base(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash ? slash + 1 : program;
}

/* Is PROGRAM called as a Python is: python, python3, python3.12? */
static inline bool python_is(const char *program)
{
    const char *base = python_base(program);

    return !strncmp(base, "python", 6) && (!base[6] || isdigit((unsigned char)base[6]));
}

/* Of the words after the program's name, up to a NULL: the option by which it will not see us, or 0. */
static inline char python_ignores_us(const char *const *words)
{
    for (; *words && (*words)[0] == '-' && (*words)[1] != '-' && (*words)[1]; words++)
        for (const char *p = *words + 1; *p; p++) {
            if (strchr("IES", *p))
                return *p;
            if (strchr("mc", *p)) /* the rest is the program's */
                return 0;
            if (strchr("WX", *p)) { /* takes a value */
                words += !p[1] && words[1];
                break;
            }
        }
    return 0;
}

#endif

/* inject.h -- how a started interpreter finds the recorder, and which command lines prevent it.
 *
 * Runs in: the command line, which starts the command, and the traced process, which starts
 * children.
 *
 *     PYTHONPATH=INJECT:REST       it was REST
 *     PYTHONPATH=INJECT            it was not set
 *     PYTHONPATH=INJECT/           it was set and empty
 *     DYNTRACE_SESSION=DIRECTORY
 *
 * INJECT is the directory of the installation that contains sitecustomize.py, which removes both
 * variables again. Daemons keep the variables long after the session. So neither variable may name
 * a place where another user can create files: INJECT is as safe as the program dyntrace itself,
 * and DIRECTORY is checked when it is opened (session_check.h). */
#ifndef DYNTRACE_INJECT_H
#define DYNTRACE_INJECT_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INJECT_PATHS "PYTHONPATH"
#define INJECT_SESSION "DYNTRACE_SESSION"
#define INJECT_STANDBY "standby" /* value of DYNTRACE_SESSION that stands for `run --standby` */

/* Is INJECT the first directory in PATHS? */
static inline bool inject_is_first_on_path(const char *inject, const char *paths)
{
    size_t length = strlen(inject);

    return !strncmp(paths, inject, length) &&
           (!paths[length] || paths[length] == ':' || !strcmp(paths + length, "/"));
}

/* Return a new PYTHONPATH: PATHS with INJECT before it. PATHS is NULL if the variable is not set.
 * The caller frees the result, which is NULL without memory. */
static inline char *inject_make_pythonpath(const char *inject, const char *paths)
{
    char *value = NULL;

    if (paths && inject_is_first_on_path(inject, paths))
        return strdup(paths);
    return asprintf(&value, "%s%s%s", inject,
                    !paths   ? ""
                    : *paths ? ":"
                             : "/",
                    paths ? paths : "") < 0
               ? NULL
               : value;
}

/* Set PYTHONPATH and DYNTRACE_SESSION in the C library's environment. A variable that already has
 * the right value is not set again, because other threads may be reading the environment. */
static inline void inject_set_environment(const char *inject, const char *session)
{
    const char *old = getenv(INJECT_PATHS);
    const char *before = getenv(INJECT_SESSION);
    char *paths =
        old && inject_is_first_on_path(inject, old) ? NULL : inject_make_pythonpath(inject, old);

    if (paths)
        setenv(INJECT_PATHS, paths, 1);
    if (!before || strcmp(before, session))
        setenv(INJECT_SESSION, session, 1);
    free(paths);
}

/* Undo inject_set_environment. */
static inline void inject_restore_environment(const char *inject)
{
    const char *paths = getenv(INJECT_PATHS);
    char *rest = NULL;

    unsetenv(INJECT_SESSION);
    if (!paths || !inject_is_first_on_path(inject, paths))
        return;
    paths += strlen(inject);
    rest = *paths ? strdup(paths + 1) : NULL;
    if (!*paths)
        unsetenv(INJECT_PATHS);
    else if (rest)
        setenv(INJECT_PATHS, rest, 1);
    free(rest);
}

/* Is PROGRAM named like a Python interpreter: python, python3, python3.12? */
static inline bool python_is_interpreter_name(const char *program)
{
    const char *base = basename(program);

    return !strncmp(base, "python", 6) && (!base[6] || isdigit((unsigned char)base[6]));
}

/* Return the option that makes a Python ignore our variables, or 0 if there is none among WORDS,
 * its arguments up to a NULL. With -E and -I Python ignores the environment; with -S it does not
 * load site, which loads sitecustomize. */
static inline char python_find_ignoring_option(const char *const *words)
{
    for (; *words && (*words)[0] == '-' && (*words)[1] != '-' && (*words)[1]; words++)
        for (const char *p = *words + 1; *p; p++) {
            if (strchr("IES", *p))
                return *p;
            if (strchr("mc", *p)) /* after -m or -c the words belong to the program */
                return 0;
            if (strchr("WX", *p)) { /* takes a value */
                words += !p[1] && words[1];
                break;
            }
        }
    return 0;
}

#endif

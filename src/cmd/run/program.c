/* cmd/run/program.c -- what `dyntrace run` runs, and whether it can be recorded. See cmd/run/program.h.
 *
 * Runs in: the command line. */
#include "cmd/run/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "lib/say.h"
#include "inject.h"
#include "versions.h"

/* ---- what to run ----------------------------------------------------------- */

/* PROGRAM as a path that can be executed, to be freed; NULL: not there. */
static char *find_program(const char *program)
{
    const char *path = getenv("PATH"), *part;
    struct stat status;

    if (strchr(program, '/'))
        return access(program, X_OK) == 0 && stat(program, &status) == 0 && S_ISREG(status.st_mode) ? strdup(program)
                                                                                                    : NULL;
    for (part = path ? path : "/usr/bin:/bin"; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        int length = (int)strcspn(part, ":");
        char *full = NULL;
        if (asprintf(&full, "%.*s/%s", length ? length : 1, length ? part : ".", program) < 0)
            return NULL;
        if (access(full, X_OK) == 0 && stat(full, &status) == 0 && S_ISREG(status.st_mode))
            return full;
        free(full);
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && !strcmp(text + length - tail, end);
}

int program_find(struct program *t, const char *python, int argc, char **argv)
{
    const char *first = argv[0];
    bool by_python = !strcmp(first, "-m") || !strcmp(first, "-c");
    struct stat status;
    bool there = stat(first, &status) == 0;

    if (by_python && argc < 2) {
        say_error("run: %s needs %s", first, first[1] == 'm' ? "a module's name" : "code");
        return -1;
    }
    t->argv = calloc((size_t)argc + 2, sizeof *t->argv);
    if (!t->argv)
        return -1;
    t->name = by_python ? (first[1] == 'm' ? argv[1] : "command") : first;
    if (!by_python) {
        bool script = ends_with(first, ".py") || ends_with(first, ".pyw") || ends_with(first, ".pyz");
        if (script && !there) {
            say_error("%s: %s", first, strerror(errno));
            return -1;
        }
        t->path = script ? NULL : find_program(first);
        if (!t->path && !there) {
            say_error("%s: neither a script here nor a program on PATH", first);
            return -1;
        }
        if (!t->path && S_ISDIR(status.st_mode)) {
            char *inner = NULL;
            bool runs = asprintf(&inner, "%s/__main__.py", first) > 0 && access(inner, R_OK) == 0;
            free(inner);
            if (!runs) {
                say_error("%s: a directory without __main__.py, which Python cannot run", first);
                return -1;
            }
        } else if (!t->path && access(first, R_OK)) {
            say_error("%s: %s", first, strerror(errno));
            return -1;
        }
        by_python = !t->path;
    }
    if (by_python) {
        t->path = find_program(python);
        if (!t->path) {
            say_error("%s: no such interpreter; name one with --python", python);
            return -1;
        }
        t->argv[0] = (char *)python;
        memcpy(t->argv + 1, argv, (size_t)argc * sizeof *argv);
        t->python = true;
    } else {
        memcpy(t->argv, argv, (size_t)argc * sizeof *argv);
        t->python = python_is(first);
    }
    return 0;
}

void program_free(struct program *t)
{
    free(t->argv);
    free(t->path);
}

/* ---- the interpreter ------------------------------------------------------- */

struct asked program_ask(const struct program *t)
{
    static const char code[] =
        "import sys\n"
        "try:\n"
        "    from _imp import extension_suffixes\n"
        "except ImportError:\n" /* Python 2 */
        "    extension_suffixes = lambda: ['-']\n"
        "name = getattr(getattr(sys, 'implementation', None), 'name', 'cpython')\n"
        "print('%s %d %d %s' % (name, sys.version_info[0], sys.version_info[1], extension_suffixes()[0]))\n";

    return t->python ? interpreter_ask(t->path, code, NULL) : (struct asked){.pid = -1, .fd = -1};
}

bool program_fits(const struct program *t, struct asked *asked, bool quiet)
{
    char text[256], name[64], suffix[128], *path = NULL;
    int major, minor;
    bool fits;

    interpreter_answer(asked, text, sizeof text);
    if (sscanf(text, "%63s %d %d %127s", name, &major, &minor, suffix) < 4)
        return true; /* not an interpreter that answers: it will say so itself */
    fits = versions_supports(name, major, minor);
    if (!fits && !quiet)
        say_error("%s: %s %d.%d is not supported: use " CPYTHON_SUPPORTED ", or run untraced with --frames none", t->path,
                  strcmp(name, "cpython") ? name : "CPython", major, minor);
    if (fits && asprintf(&path, "%s/_dyntrace%s", command_library_directory(), suffix) > 0 && access(path, R_OK)) {
        fits = false;
        if (!quiet)
            say_error("%s: no extension for this CPython %d.%d is built (%s): build it with `make PYTHONS=%s`", t->path, major,
                      minor, path, t->path);
    }
    free(path);
    return fits;
}

/* ---- where it finds us ----------------------------------------------------- */

static char inject[PATH_MAX + 80];

const char *program_inject(void)
{
    const char *library = command_library_directory(), *found = NULL;
    char file[sizeof inject + 32];

    snprintf(inject, sizeof inject, "%s/inject", library);
    snprintf(file, sizeof file, "%s/sitecustomize.py", inject);
    if (access(file, R_OK))
        say_error("%s: not there: run `make`, or reinstall dyntrace", file);
    else if (strchr(library, ':'))
        say_error("%s: Python cannot be led to a directory with a colon in its name; put dyntrace somewhere else", library);
    else
        found = inject;
    return found;
}

bool program_inject_is_for_all(void)
{
    char path[sizeof inject];
    struct stat status;

    memcpy(path, inject, sizeof path);
    for (char *end = path + strlen(path); end > path; end = strrchr(path, '/')) {
        *end = 0;
        if (stat(path, &status) || !(status.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

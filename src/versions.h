/* versions.h -- dyntrace's own version, and the CPython versions that dyntrace supports. No other
 * file spells these numbers.
 *
 * Runs in: the traced process (tracer/compat/cpython.h refuses to be built for any other version)
 * and the command line, whose messages name the versions. python/build_facts.py reads the two minor
 * versions for the build and ./dev, packaging/backend.py reads dyntrace's version, and
 * tests/lint.py compares the docs with them. With a free-threaded build, from CPYTHON_THREADED on,
 * frames are recorded. Code that differs between the CPython versions is in tracer/compat/. */
#ifndef DYNTRACE_VERSIONS_H
#define DYNTRACE_VERSIONS_H

#include <stdbool.h>
#include <string.h>

#define DYNTRACE_VERSION "0.1.0"

/* The oldest and the newest supported minor version of CPython 3. */
#define CPYTHON_OLDEST 11
#define CPYTHON_NEWEST 15
/* the oldest minor version whose free-threaded build is supported */
#define CPYTHON_THREADED 14

#define VERSIONS_TEXT_OF(number) #number
#define VERSIONS_TEXT(number) VERSIONS_TEXT_OF(number)
/* the first minor version with sys.remote_exec() (PEP 768) */
#define CPYTHON_REMOTE_EXEC 14
#define CPYTHON_REMOTE_EXEC_NAME "CPython 3." VERSIONS_TEXT(CPYTHON_REMOTE_EXEC)
#define CPYTHON_SUPPORTED \
    "CPython 3." VERSIONS_TEXT(CPYTHON_OLDEST) " to 3." VERSIONS_TEXT(CPYTHON_NEWEST)

/* Is this interpreter supported? IMPLEMENTATION is the value of sys.implementation.name. */
static inline bool versions_is_supported(const char *implementation, int major, int minor)
{
    return !strcmp(implementation, "cpython") && major == 3 && minor >= CPYTHON_OLDEST &&
           minor <= CPYTHON_NEWEST;
}

/* Is SUFFIX that of a free-threaded build? It is the end of the file names of an interpreter's
 * extension modules: ".cpython-314t-x86_64-linux-gnu.so". */
static inline bool versions_is_free_threaded(const char *suffix)
{
    const char *tag = strstr(suffix, "cpython-");
    size_t digits = tag ? strspn(tag + 8, "0123456789") : 0;

    return digits && tag[8 + digits] == 't';
}

#endif

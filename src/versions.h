/* versions.h -- dyntrace's own version, and the CPython versions that it supports: the only place
 * that names them.
 *
 * Runs in: the traced process (tracer/compat/cpython.h refuses to be built for any other) and the
 * command line, whose messages name them. python/build_facts.py reads the two numbers for the
 * build and ./dev, packaging/backend.py reads the version, and tests/lint.py compares docs with
 * them. What differs between the versions lies in tracer/compat/. */
#ifndef DYNTRACE_VERSIONS_H
#define DYNTRACE_VERSIONS_H

#include <stdbool.h>
#include <string.h>

#define DYNTRACE_VERSION "0.1.0"

/* Minor versions of CPython 3. */
#define CPYTHON_OLDEST 11
#define CPYTHON_NEWEST 15

#define VERSIONS_TEXT_OF(number) #number
#define VERSIONS_TEXT(number) VERSIONS_TEXT_OF(number)
#define CPYTHON_SUPPORTED \
    "CPython 3." VERSIONS_TEXT(CPYTHON_OLDEST) " to 3." VERSIONS_TEXT(CPYTHON_NEWEST)

/* IMPLEMENTATION as sys.implementation.name has it. */
static inline bool versions_supports(const char *implementation, int major, int minor)
{
    return !strcmp(implementation, "cpython") && major == 3 && minor >= CPYTHON_OLDEST &&
           minor <= CPYTHON_NEWEST;
}

#endif

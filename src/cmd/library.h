/* cmd/library.h -- the directory of the extensions and of sitecustomize. */
#ifndef DYNTRACE_LIBRARY_H
#define DYNTRACE_LIBRARY_H

/* Return the directory of dyntrace's data, without symbolic links: "build/lib" beside a program
 * that is not installed, PREFIX/lib/dyntrace, or the package that pip installed. The first
 * directory with an extension whose file name ends with SUFFIX is chosen. If SUFFIX is NULL,
 * returns the result of the last call or, in the first call, the first directory that has inject/.
 * Owned by the callee. */
const char *library_directory(const char *suffix);

#endif

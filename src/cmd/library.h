/* cmd/library.h -- the directory of the extensions and of sitecustomize. */
#ifndef DYNTRACE_LIBRARY_H
#define DYNTRACE_LIBRARY_H

/* Return the directory of dyntrace's data, without symbolic links: "build/lib" beside a program
 * that is not installed, PREFIX/lib/dyntrace, or the package that pip installed. If there are
 * several, the first that has an extension with SUFFIX is chosen. SUFFIX may be NULL: the result of
 * the last call is returned again, or the first directory. Owned by the callee. */
const char *library_directory(const char *suffix);

#endif

/* cmd/library.h -- the directory of the extensions and sitecustomize. */
#ifndef DYNTRACE_LIBRARY_H
#define DYNTRACE_LIBRARY_H

/* The directory of the data: "build/lib" beside an uninstalled program, else PREFIX/lib/dyntrace,
 * or the package that pip installed; of several the first that has an extension with SUFFIX (NULL:
 * as before, or any). No symlinks in it. Owned by the callee. */
const char *library_directory(const char *suffix);

#endif

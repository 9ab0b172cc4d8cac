/* cmd/library.c -- finds the directory of dyntrace's data files. See library.h. */
#include "cmd/library.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "versions.h"

/* The directories that are searched for the data, relative to the directory of the program. In this
 * order: a program that is not installed; after `make install`; after pip, in the layouts of
 * several Pythons; after `pip install --target`. */
static const char *const places[] = {
    "lib",
    "../lib/dyntrace",
    "../lib/python3.%d/site-packages/dyntrace",
    "../lib64/python3.%d/site-packages/dyntrace",
    "../lib/python3.%d/dist-packages/dyntrace",
    "../dyntrace",
    NULL,
};

enum { PLACE_BYTES = PATH_MAX + 64 };

/* Store the directory of this program in SELF. Without /proc, SELF becomes "", so that the search
 * starts at the root directory. The working directory would be unsafe, because other users may be
 * able to write there. */
static void find_own_directory(char self[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);

    self[length > 0 ? length : 0] = 0;
    dirname(self);
}

/* Does the directory PLACE hold the extension whose file name ends with SUFFIX? If SUFFIX is NULL:
 * does it hold inject/, the directory of sitecustomize.py? */
static bool has_data(const char *place, const char *suffix)
{
    char file[PLACE_BYTES + 300];

    if (suffix)
        snprintf(file, sizeof file, "%s/_dyntrace%s", place, suffix);
    else
        snprintf(file, sizeof file, "%s/inject", place);
    return access(file, R_OK) == 0;
}

/* Store the path of the first of `places` that holds the data in FOUND. Returns false if no place
 * holds it. */
static bool find_data(const char *own, const char *suffix, char found[PLACE_BYTES])
{
    char place[PLACE_BYTES], real[PATH_MAX];

    for (int i = 0; places[i]; i++)
        for (int minor = CPYTHON_OLDEST; minor <= CPYTHON_NEWEST; minor++) {
            int length = snprintf(place, sizeof place, "%s/", own);
            snprintf(place + length, sizeof place - length, places[i], minor);
            if (!has_data(place, suffix))
                continue;
            snprintf(found, PLACE_BYTES, "%s", realpath(place, real) ? real : place);
            return true;
        }
    return false;
}

const char *library_directory(const char *suffix)
{
    static char path[PLACE_BYTES];
    char self[PATH_MAX];

    if (path[0] && !suffix)
        return path;
    find_own_directory(self);
    if (!find_data(self, suffix, path) && !path[0])
        snprintf(path, sizeof path, "%s/lib/dyntrace", dirname(self));
    return path;
}

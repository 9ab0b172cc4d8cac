/* lib/state_file.c -- where a user's histories are kept. See lib/state_file.h.
 *
 * Runs in: the viewer. */
#include "lib/state_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *state_file(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int length = -1, fd;

    if (state && *state == '/')
        length = asprintf(&path, "%s/dyntrace/%s", state, name);
    else if (home && *home == '/')
        length = asprintf(&path, "%s/.local/state/dyntrace/%s", home, name);
    if (length < 0)
        return NULL;
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700); /* mostly there already */
        *p = '/';
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fchmod(fd, 0600) != 0) {
        free(path);
        path = NULL;
    }
    if (fd >= 0)
        close(fd);
    return path;
}

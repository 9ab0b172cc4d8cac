/* collector/liveness.c -- does a recording go on? See collector/liveness.h.
 *
 * Runs in: the viewer. */
#include "collector/liveness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A place where sessions are. The name comes from a trace, and to look at some places is to ask a server. */
static bool ours(const char *directory)
{
    const char *places[] = {"/dev/shm", "/tmp", getenv("TMPDIR")};

    for (int i = 0; i < 3; i++) {
        size_t length = places[i] ? strlen(places[i]) : 0;
        if (length && !strncmp(directory, places[i], length) && directory[length] == '/' && !strstr(directory, "/../"))
            return true;
    }
    return false;
}

/* Does the collector of the session in DIRECTORY run? It holds a lock on a file
 * there. /proc/locks tells without touching the lock, which could get in the
 * way of a collector that is just starting. */
enum liveness session_live(const char *directory)
{
    enum liveness live = LIVE_UNKNOWN;
    char *path = NULL, line[256];
    struct stat st;
    FILE *locks = NULL;

    if (!directory || !ours(directory) || asprintf(&path, "%s/collector.lock", directory) < 0)
        return LIVE_UNKNOWN;
    if (stat(path, &st) != 0 || !(locks = fopen("/proc/locks", "re")))
        goto out;
    live = LIVE_NO;
    while (fgets(line, sizeof line, locks)) {
        unsigned long long inode;
        /* "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF" */
        if (sscanf(line, "%*s FLOCK %*s WRITE %*s %*x:%*x:%llu", &inode) == 1 && inode == st.st_ino)
            live = LIVE_YES;
    }
out:
    if (locks)
        fclose(locks);
    free(path);
    return live;
}

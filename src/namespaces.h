/* namespaces.h -- in which pid and time namespaces a process is.
 *
 * Runs in: the traced process and the collector.
 *
 * In a namespace of its own, as in a container, a process has other pids than the recorder sees it
 * by, and two processes may have the same one. The kernel's number of a namespace is the same from
 * everywhere. In a time namespace
 * CLOCK_MONOTONIC is another than the recorder's. */
#ifndef DYNTRACE_NAMESPACES_H
#define DYNTRACE_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* That of PROCESS, a directory of /proc: "self" or a pid. 0: not known, as where there is no
 * /proc. */
static inline uint64_t namespace_of_pids(const char *process)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &status) ? 0 : status.st_ino;
}

/* By how many nanoseconds CLOCK_MONOTONIC is ahead of the machine's in the time namespace of
 * this process; LAST where that cannot be told: the file is about the namespace of children to
 * come, which is another one after unshare(). */
static inline int64_t namespace_clock_ahead(int64_t last)
{
    struct stat own, children;
    long long seconds = 0, ns = 0;
    FILE *offsets;
    bool known;

    if (stat("/proc/self/ns/time", &own) || stat("/proc/self/ns/time_for_children", &children) ||
        own.st_ino != children.st_ino)
        return last;
    offsets = fopen("/proc/self/timens_offsets", "re");
    known = offsets && fscanf(offsets, "monotonic %lld %lld", &seconds, &ns) == 2;
    if (offsets)
        fclose(offsets);
    return known ? seconds * 1000000000 + ns : last;
}

#endif

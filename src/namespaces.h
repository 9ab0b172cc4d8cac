/* namespaces.h -- the pid and time namespaces of a process.
 *
 * Runs in: the traced process and the collector.
 *
 * A process in another pid namespace, as in a container, sees other pids than the recorder does,
 * and two processes in different namespaces may have the same pid. A namespace has the same inode
 * number in every namespace. In a time namespace CLOCK_MONOTONIC may differ from the recorder's. */
#ifndef DYNTRACE_NAMESPACES_H
#define DYNTRACE_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* Return the number of the pid namespace of PROCESS, a directory of /proc: "self" or a pid. Returns
 * 0 if the number is not known, for example because /proc is not mounted. */
static inline uint64_t namespace_read_pid_namespace(const char *process)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &status) ? 0 : status.st_ino;
}

/* Return by how many nanoseconds CLOCK_MONOTONIC in this process's time namespace is ahead of the
 * machine's. Returns LAST if that is not known: timens_offsets describes the namespace of future
 * children, which is not this process's own namespace after unshare(). */
static inline int64_t namespace_read_clock_offset(int64_t last)
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

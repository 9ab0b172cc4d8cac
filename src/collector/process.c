/* collector/process.c -- what the kernel says of a process. See collector/process.h.
 *
 * Runs in: the command line and the collector. */
#include "collector/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What follows the command's name, which may hold spaces, in /proc/PID/stat: in BUFFER; NULL: there
 * is no such process. */
static const char *stat_fields(uint32_t pid, char buffer[1024])
{
    char path[64], *field;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, buffer, 1023);
    if (fd >= 0)
        close(fd);
    buffer[got > 0 ? got : 0] = 0;
    field = strrchr(buffer, ')');
    return field ? field + 1 : NULL;
}

bool process_stat(uint32_t pid, uint32_t *parent, uint64_t *started)
{
    char buffer[1024];
    const char *fields = stat_fields(pid, buffer);

    return fields &&
           sscanf(fields,
                  " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
                  parent, started) == 2;
}

bool process_is_stopped(uint32_t pid)
{
    char buffer[1024];
    const char *fields = stat_fields(pid, buffer);

    return fields && !strncmp(fields, " T", 2);
}

int process_watch(uint32_t pid, uint64_t started)
{
    int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    uint64_t now;
    uint32_t parent;

    /* A pid that is somebody else's by now: ours has ended. */
    if (fd >= 0 && started && process_stat(pid, &parent, &now) && now != started) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool process_is(uint32_t pid, uint64_t started)
{
    int watch = process_watch(pid, started);
    bool lives = process_lives(watch);

    if (watch >= 0)
        close(watch);
    return lives;
}

bool process_lives(int watch)
{
    struct pollfd fd = {watch, POLLIN, 0};

    return watch >= 0 && poll(&fd, 1, 0) == 0;
}

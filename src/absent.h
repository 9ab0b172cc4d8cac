/* absent.h -- Pythons that should be recorded and cannot join the session say so.
 *
 * Runs in: the traced process (tracer/absent.c) and the collector (collector/absent.c).
 *
 * A child that became another user, or lost sight of the session's directory, has its name in the environment and cannot
 * open it. It sends a datagram to the abstract socket of the directory's name, which takes neither rights nor a file, and
 * waits for the answer a moment, so that it can still be looked at. Anybody may send one: what it says is not read. The
 * collector believes the kernel, who sent it, and /proc, whether that is a descendant of the command. */
#ifndef DYNTRACE_ABSENT_H
#define DYNTRACE_ABSENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "session_check.h"

struct absent {
    uint32_t pid, uid;
    struct sockaddr_un address; /* where it waits for the answer */
    socklen_t length;
};

/* The socket of the session in DIRECTORY. */
static inline socklen_t absent_address(struct sockaddr_un *address, const char *directory)
{
    const char *name = session_check_base(directory);
    size_t length = strnlen(name, sizeof address->sun_path - 1);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Listen. -1: that cannot be, and the absent stay unknown. */
int absent_open(const char *directory);
/* The next who spoke on FD; false: nobody has. */
bool absent_next(int fd, struct absent *sender);
void absent_answer(int fd, const struct absent *sender);

#endif

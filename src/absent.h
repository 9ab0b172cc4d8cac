/* absent.h -- Pythons that should be recorded and cannot join the session say so.
 *
 * Runs in: the traced process (tracer/session.c) and the collector (collector/watch.c).
 *
 * A child that became another user, or lost sight of the session's directory, has its name in the environment and
 * cannot open it. It sends a datagram to the abstract socket of the directory's name, which needs neither rights nor a
 * file, and waits briefly for the answer, so that it is still there to be looked at. Anyone may send one: its content
 * is ignored. The kernel says who sent it, and /proc whether that is a descendant of the command. */
#ifndef DYNTRACE_ABSENT_H
#define DYNTRACE_ABSENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "session_check.h"

/* The socket of the session in DIRECTORY. */
static inline socklen_t absent_address(struct sockaddr_un *address, const char *directory)
{
    const char *name = basename(directory);
    size_t length = strnlen(name, sizeof address->sun_path - 1);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

#endif

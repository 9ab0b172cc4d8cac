/* tracer/absent.c -- says that this process cannot join the session. See absent.h.
 *
 * Runs in: the traced process, before anything of the program's has run. */
#include "absent.h"
#include "tracer/tracer.h"

#include <poll.h>

enum { ANSWER_MS = 50 /* the collector looks every few */ };

void tracer_absent(const char *directory)
{
    struct sockaddr_un to, from = {.sun_family = AF_UNIX};
    socklen_t length = absent_address(&to, directory);
    int fd = session_check_name(directory) ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    struct pollfd answer = {fd, POLLIN, 0};

    if (fd < 0)
        return;
    /* A name of the kernel's choice, to be answered at. Nobody listens when the session is over. */
    if (bind(fd, (struct sockaddr *)&from, sizeof from.sun_family) == 0 &&
        sendto(fd, "", 1, MSG_NOSIGNAL, (struct sockaddr *)&to, length) == 1)
        poll(&answer, 1, ANSWER_MS);
    close(fd);
}

/* cmd/interpreter.c -- ask a Python something, by running it. See cmd/interpreter.h.
 *
 * Runs in: the command line. */
#include "cmd/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct asked interpreter_ask(const char *python, const char *code, const char *argument)
{
    struct asked asked = {.pid = -1, .fd = -1};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return asked;
    fflush(NULL);
    asked.pid = fork();
    if (asked.pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        execlp(python, python, "-E", "-S", "-c", code, argument, (char *)NULL); /* Python 2 knows no -I */
        _exit(127);
    }
    close(ends[1]);
    asked.fd = ends[0];
    return asked;
}

bool interpreter_answer(struct asked *asked, char *text, size_t room)
{
    size_t used = 0;
    ssize_t got;
    int status = -1;

    while (asked->fd >= 0 && used < room - 1 &&
           ((got = read(asked->fd, text + used, room - 1 - used)) > 0 || (got < 0 && errno == EINTR)))
        used += got > 0 ? (size_t)got : 0;
    text[used] = 0;
    if (asked->fd >= 0)
        close(asked->fd);
    if (asked->pid > 0)
        waitpid(asked->pid, &status, 0);
    *asked = (struct asked){.pid = -1, .fd = -1};
    return status != -1 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

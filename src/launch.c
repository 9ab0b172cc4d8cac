/* launch.c -- start a collector, and wait for what it made. See launch.h.
 *
 * Runs in: the command line (`run`, `collect`). */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "say.h"

/* The program's standard input and output and what else was handed to it are its
 * own: whoever is at the other end must see them closed when it closes them. We
 * only speak on stderr. Our own descriptors all have FD_CLOEXEC. */
void launch_let_go(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;

    dup2(null, 0);
    dup2(null, 1);
    while (directory && (entry = readdir(directory)))
        if ((fd = atoi(entry->d_name)) > 2 && fd != dirfd(directory) && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            close(fd);
    if (directory)
        closedir(directory);
    if (null >= 0)
        close(null);
}

/* Fork the collector; it lives in a session of its own. 0 with the pipes' ends. */
int launch_collector(struct session *session, const char *argv, uint32_t first, uint32_t root, int *orders,
                           int *result)
{
    int down[2] = {-1, -1}, up[2] = {-1, -1};
    pid_t pid = -1;
    char ready = 0;

    if (pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0) {
        fflush(NULL);
        pid = fork();
    }
    if (pid == 0) {
        static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGXFSZ};
        setsid();
        setpriority(PRIO_PROCESS, 0, -10); /* the program waits for us; refused unless root */
        for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
            signal(ignored[i], SIG_IGN);
        launch_let_go();
        if (chdir("/")) {
            /* Only so that no filesystem is kept busy. */
        }
        close(down[1]);
        close(up[0]);
        _exit(collector_run(session, down[0], up[1], argv, first, root));
    }
    close(down[0]);
    close(up[1]);
    close(session->lock); /* the collector holds it now */
    session->lock = -1;
    *orders = down[1];
    *result = up[0];
    if (pid < 0) {
        say_error("cannot start the collector: %s", strerror(errno));
        return -1;
    }
    while (read(*result, &ready, 1) < 0 && errno == EINTR)
        ;
    if (ready == 'R')
        return 0;
    struct collector_result said = {0};
    if (ready == 'E' && read(*result, &said, sizeof said) == sizeof said)
        say_error("%s", said.error);
    else
        say_error("the collector died at once; nothing was run");
    return -1;
}

/* Wait until the trace is whole. A Ctrl-C stops waiting for stragglers. False:
 * the collector was killed. */
bool launch_wait(int orders, int result, volatile sig_atomic_t *interrupted, struct collector_result *said)
{
    size_t used = 0;

    for (;;) {
        struct pollfd fd = {result, POLLIN, 0};
        ssize_t got;
        if (interrupted && *interrupted) {
            struct collector_order order = {.what = ORDER_STOP};
            *interrupted = 0;
            if (write(orders, &order, sizeof order) != sizeof order)
                return false;
        }
        if (poll(&fd, 1, 200) <= 0)
            continue;
        got = read(result, (char *)said + used, sizeof *said - used);
        if (got <= 0)
            return false;
        used += (size_t)got;
        if (used == sizeof *said)
            return true;
    }
}

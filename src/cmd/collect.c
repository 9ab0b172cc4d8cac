/* cmd/collect.c -- `dyntrace collect`: the collector for a program that records itself.
 *
 * Runs in: the command line. Started by dyntrace.record() (python/dyntrace/record.py):
 *
 *     dyntrace collect -o FILE [--force] [--values WHICH] [--no-argv] --pid PID
 *     prints the session's directory; the program joins it
 *     reads standard input: its end is the end of the recording
 *     prints "done FRAMES" when the trace is whole */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "collector/launch.h"
#include "recorder_sqlite.h"
#include "lib/say.h"

static const char usage[] =
    "usage: dyntrace collect -o FILE [--force] [--values all|types|off] [--no-argv] --pid PID\n\n"
    "Collects what process PID records of itself, until standard input ends. For dyntrace.record().\n";

/* Until standard input ends. A collector that dies meanwhile is replaced. */
static void wait_for_end(struct launch *l)
{
    struct pollfd fds[] = {{0, POLLIN, 0}, {-1, POLLIN, 0}};
    char byte;
    ssize_t got;

    for (;;) {
        int again = launch_look(l);
        fds[1].fd = l->done ? -1 : l->result; /* it says nothing before the end: this is its death */
        if (poll(fds, 2, again) < 0 && errno != EINTR)
            return;
        if (!fds[0].revents)
            continue;
        got = read(0, &byte, 1);
        if (got == 0 || (got < 0 && errno != EINTR))
            return;
    }
}

static int collect(struct session *session, long pid, uint32_t first, uint32_t root)
{
    struct collector_result *said = calloc(1, sizeof *said);
    struct launch l = {.orders = -1, .result = -1};
    int status = 1;

    if (!said || launch_collector(&l, session, "[\"dyntrace.record\"]", first, root))
        goto done;
    launch_order(&l, &(struct collector_order){.what = ORDER_BEGAN, .pid = (int32_t)pid});
    printf("%s\n", session->directory);
    fflush(stdout);
    wait_for_end(&l);
    launch_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = (int32_t)pid});
    if (!launch_wait(&l, NULL, said)) {
        say_error("the collector was killed again and again; `dyntrace fsck --recover %s` may finish the trace", session->trace);
        session->directory[0] = 0; /* keep it for that */
    } else if (said->error[0]) {
        say_error("%s", said->error);
    } else {
        printf("done %llu\n", (unsigned long long)said->frames);
        status = 0;
    }
done:
    free(said);
    launch_close(&l);
    return status;
}

static int run(int argc, char **argv)
{
    struct session_options options = {.frames = SESSION_ALL, .torch = SESSION_TORCH_AUTO, .max_stall_ns = SESSION_MAX_STALL_NS};
    struct session session = SESSION_CLOSED;
    const char *file = NULL;
    char path[PATH_MAX], here[PATH_MAX / 2];
    bool force = false;
    long pid = 0;
    uint32_t first, root;
    int status = 2;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-o") && i + 1 < argc)
            file = argv[++i];
        else if (!strcmp(argv[i], "--pid") && i + 1 < argc)
            pid = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--force"))
            force = true;
        else if (!strcmp(argv[i], "--no-argv"))
            options.no_argv = true;
        else if (!strcmp(argv[i], "--values") && i + 1 < argc && session_values_read(argv[i + 1], &options.values))
            i++;
        else {
            say_error("collect: %s: not understood; `dyntrace collect --help` tells more", argv[i]);
            return 2;
        }
    }
    if (!file || pid <= 0) {
        say_error("collect: needs -o FILE and --pid PID; dyntrace.record() starts it");
        return 2;
    }
    if (!getcwd(here, sizeof here) ||
        snprintf(path, sizeof path, "%s%s%s", *file == '/' ? "" : here, *file == '/' ? "" : "/", file) >= (int)sizeof path) {
        say_error("%s: the path is too long", file);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* a dead collector's pipe */
    if (session_create(&session, path, &options))
        return 2;
    if (access(session.frames, F_OK) == 0)
        say_error("%s: another recording writes this trace (%s is there)", path, session.frames);
    else if (recorder_create(path, session.frames, force, &first, &root) == 0)
        status = collect(&session, pid, first, root);
    session_remove(&session);
    session_close(&session);
    return status;
}

const struct command command_collect = {
    .name = "collect", .summary = "the other half of dyntrace.record()", .usage = usage, .run = run,
};

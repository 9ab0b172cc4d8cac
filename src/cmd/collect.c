/* cmd/collect.c -- `dyntrace collect`: the collector for a program that records itself.
 *
 * Runs in: the command line. Started by dyntrace.record() (python/dyntrace/record.py):
 *
 *     dyntrace collect -o FILE [--force] [--values WHICH] [--no-argv] --pid PID
 *     prints the session's directory; the program joins it
 *     reads standard input: its end is the end of the recording
 *     prints "done FRAMES" when the trace is whole */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/run/trace.h"
#include "command.h"
#include "collector/launch.h"
#include "lib/option.h"
#include "lib/say.h"

static struct {
    const char *file;
    bool force;
    int64_t pid;
    struct session_options session;
} given = {.session = {.frames = SESSION_ALL, .torch = SESSION_TORCH_AUTO, .max_stall_ns = SESSION_MAX_STALL_NS}};

static const struct option options[] = {
    {"output", 'o', "FILE", option_text, &given.file, .help = "write the trace to FILE", .needed = true},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values, .words = SESSION_VALUES_WORDS,
     .help = "all (default), types or off, as `run --values`"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv, .help = "do not keep command lines"},
    {"pid", .value = "PID", .read = option_count, .to = &given.pid, .help = "the process that records itself", .needed = true},
    OPTION_END,
};

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

static int collect(struct session *session, uint32_t first, uint32_t root)
{
    struct collector_result *said = calloc(1, sizeof *said);
    struct launch l = {.orders = -1, .result = -1};
    int status = 1;

    if (!said || launch_collector(&l, session, "[\"dyntrace.record\"]", first, root))
        goto done;
    launch_order(&l, &(struct collector_order){.what = ORDER_BEGAN, .pid = (int32_t)given.pid});
    printf("%s\n", session->directory);
    fflush(stdout);
    wait_for_end(&l);
    launch_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = (int32_t)given.pid});
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

static int run(int count, char **operands)
{
    struct session session = SESSION_CLOSED;
    char *path;
    uint32_t first, root;
    int status = 2;

    (void)count;
    (void)operands;
    if (!given.file || given.pid <= 0) {
        say_error("collect: needs -o FILE and --pid PID; dyntrace.record() starts it");
        return 2;
    }
    path = trace_path(given.file, NULL);
    signal(SIGPIPE, SIG_IGN); /* a dead collector's pipe */
    if (path && trace_begin(&session, path, &given.session, given.force, &first, &root) == 0)
        status = collect(&session, first, root);
    free(path);
    session_remove(&session);
    session_close(&session);
    return status;
}

const struct command command_collect = {
    .name = "collect",
    .summary = "the other half of dyntrace.record()",
    .operands = "",
    .about = "Collects what process PID records of itself, until standard input ends. dyntrace.record() starts it.",
    .options = options,
    .too_many = "not understood",
    .internal = true,
    .run = run,
};

/* collector/launch.c -- starts a collector, replaces it when it dies, and waits for its trace. See
 * collector/launch.h.
 *
 * Runs in: the command line. */
#include "collector/launch.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/bounds.h"
#include "lib/list.h"
#include "lib/say.h"

#define PAUSE_NS UINT64_C(5000000)
#define PAUSE_MAX_NS UINT64_C(1000000000)

enum {
    DEATHS_MAX = 8, /* the most collectors in a row that may die while they finish the trace */
    LOCK_LOOKS = 500,
    LOCK_LOOK_MS = 20,
};

/* Close our copies of the program's standard input and output, and of other descriptors that we
 * inherited. If the program closes its end of a pipe, the reader must see that. We write only to
 * stderr, and our own descriptors all have FD_CLOEXEC. */
void launch_close_descriptors(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd;
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;

    dup2(null, 0);
    dup2(null, 1);
    while (directory && (entry = readdir(directory)))
        if ((fd = atoi(entry->d_name)) > 2 && fd != dirfd(directory) &&
            !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            close(fd);
    if (directory)
        closedir(directory);
    if (null >= 0)
        close(null);
}

/* Raise our limit of open files to the maximum, because we need two descriptors for each recorded
 * process. We may have inherited a low limit that the program's user set. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Fork a collector in a new POSIX session. ALONE: fork twice, so that the collector is not our
 * child, and gets no orders. Returns 0, or -1 with errno. */
static int fork_collector(struct launch *l, const char *argv, bool alone)
{
    struct session *session = l->session;
    int ends[2] = {-1, -1};
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        fflush(NULL);
        pid = fork();
    }
    if (pid == 0) {
        static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGPIPE,
                                      SIGUSR1, SIGUSR2, SIGTSTP, SIGXFSZ};
        sigset_t none;
        setsid();
        if (alone && fork() != 0)
            _exit(0);
        sigemptyset(&none);
        for (size_t i = 0; i < array_count(ignored); i++)
            signal(ignored[i], SIG_IGN);
        sigprocmask(SIG_SETMASK, &none, NULL);
        raise_descriptor_limit();
        /* raise our priority, because the program waits for us; only root may do this */
        setpriority(PRIO_PROCESS, 0, -10);
        launch_close_descriptors();
        if (alone)
            dup2(1, 2);
        if (chdir("/")) {
            /* no harm: only the filesystem of this directory cannot be unmounted while we run */
        }
        close(ends[0]);
        bounds_allow_memory_failure(false);
        _exit(collector_run(session, argv, alone ? -1 : ends[1], ends[1]));
    }
    close(ends[1]);
    close(session->lock); /* close our copy of the lock, which the collector holds from here on */
    session->lock = -1;
    l->link = ends[0];
    l->pid = pid < 0 ? 0 : pid;
    l->born_ns = clock_monotonic_ns();
    if (alone && pid > 0) {
        waitpid(pid, NULL, 0);
        l->pid = 0;
    }
    return pid < 0 ? -1 : 0;
}

/* Wait until the collector is ready. If it fails, returns false, with the reason in SAID->error, or
 * "" if it is not known. */
static bool wait_until_ready(struct launch *l, struct collector_result *said)
{
    ssize_t got;

    while ((got = read(l->link, said, sizeof *said)) < 0 && errno == EINTR)
        ;
    if (got != sizeof *said)
        said->error[0] = 0;
    return got == 1;
}

int launch_collector(struct launch *l, struct session *session, const char *argv)
{
    struct collector_result said;

    *l = (struct launch){.session = session, .link = -1};
    if (fork_collector(l, argv, false)) {
        say_error("cannot start the collector: %s", strerror(errno));
        return -1;
    }
    if (wait_until_ready(l, &said))
        return 0;
    say_error("%s", said.error[0] ? said.error : "the collector died at once; nothing was run");
    return -1;
}

int launch_collector_without_parent(struct launch *l, struct session *session,
                                    struct collector_result *said)
{
    *l = (struct launch){.session = session, .link = -1, .orphan = true};
    return fork_collector(l, NULL, true) == 0 && wait_until_ready(l, said) ? 0 : -1;
}

static void send_order(struct launch *l, const struct collector_order *order)
{
    if (l->link >= 0 && write(l->link, order, sizeof *order) != sizeof *order) {
        /* writing failed because the collector is dead: the next collector gets the order */
    }
}

void launch_send_order(struct launch *l, const struct collector_order *order)
{
    if (order->what == ORDER_BEGAN)
        l->began = *order;
    else
        l->ended = *order;
    send_order(l, order);
}

/* Take the lock of the dead collector. PATIENCE: wait if another command has it, which looks for
 * interrupted recordings (collector/recover.c) and releases it soon. */
static bool take_lock_of_dead_collector(struct session *session, bool patience)
{
    bool taken = session_take_lock(session) == 0;

    for (int i = 0; !taken && patience && errno == EWOULDBLOCK && i < LOCK_LOOKS; i++) {
        usleep(LOCK_LOOK_MS * 1000);
        taken = session_take_lock(session) == 0;
    }
    return taken;
}

/* Start another collector in place of the dead one. */
static void start_replacement_collector(struct launch *l, bool patience)
{
    struct collector_result said;
    bool ready;

    close(l->link);
    l->link = -1;
    if (!take_lock_of_dead_collector(l->session, patience) || fork_collector(l, NULL, false))
        return;
    ready = wait_until_ready(l, &said);
    snprintf(l->why, sizeof l->why, "%s", ready ? "" : said.error);
    if (!ready)
        return;
    l->replaced++;
    if (l->began.pid)
        send_order(l, &l->began);
    if (l->ended.pid)
        send_order(l, &l->ended);
}

/* Read the collector's result into SAID. If the collector has not read all orders, the socket
 * reports an error before the result. */
static bool read_result(const struct launch *l, struct collector_result *said, int flags)
{
    ssize_t got = recv(l->link, said, sizeof *said, flags);

    if (got < 0 && errno == ECONNRESET)
        got = recv(l->link, said, sizeof *said, flags);
    return got == sizeof *said;
}

/* Has the dead collector sent its result? */
static bool has_sent_result(const struct launch *l)
{
    struct collector_result said;

    return read_result(l, &said, MSG_PEEK | MSG_DONTWAIT);
}

int launch_replace_if_dead(struct launch *l)
{
    uint64_t now = clock_monotonic_ns();
    int status = 0;

    if (l->pid && waitpid(l->pid, &status, WNOHANG) != 0) {
        /* Replace the collector at once if it lived for a second. If collectors die soon, wait
         * longer from one start to the next. */
        l->pause_ns = now - l->born_ns >= PAUSE_MAX_NS ? 0 : l->pause_ns * 3 / 2 + PAUSE_NS;
        l->pid = 0;
        l->done = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || has_sent_result(l);
    }
    if (l->pid || l->done)
        return -1;
    if (l->pause_ns > PAUSE_MAX_NS)
        l->pause_ns = PAUSE_MAX_NS;
    if (now - l->born_ns < l->pause_ns)
        return (int)((l->pause_ns - (now - l->born_ns)) / 1000000) + 1;
    l->born_ns = now;
    start_replacement_collector(l, false);
    return l->pid ? -1 : (int)(l->pause_ns / 1000000) + 1;
}

bool launch_wait_for_result(struct launch *l, volatile sig_atomic_t *interrupted,
                            struct collector_result *said)
{
    struct pollfd fd = {.events = POLLIN};

    for (unsigned deaths = 0; deaths < DEATHS_MAX;) {
        if (interrupted && *interrupted) {
            *interrupted = 0;
            send_order(l, &(struct collector_order){.what = ORDER_STOP});
        }
        fd.fd = l->link;
        if (l->link >= 0 && poll(&fd, 1, 200) <= 0)
            continue;
        if (read_result(l, said, 0)) {
            /* The user waits for the command, so do not wait until the collector has released its
             * memory. */
            l->pid = 0;
            return true;
        }
        deaths++;
        if (l->orphan)
            return false;
        if (l->pid)
            waitpid(l->pid, NULL, 0);
        l->pid = 0;
        usleep((useconds_t)(deaths * PAUSE_NS / 1000));
        start_replacement_collector(l, true);
    }
    return false;
}

void launch_close(struct launch *l)
{
    if (l->link >= 0)
        close(l->link);
    l->link = -1;
    if (l->pid)
        waitpid(l->pid, NULL, 0);
    l->pid = 0;
}

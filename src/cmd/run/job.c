/* cmd/run/job.c -- runs the command as a job in the terminal: start, signals, stops, end. See
 * cmd/run/run.h.
 *
 * Runs in: the command line. */
#include "cmd/run/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "collector/process.h"
#include "inject.h"
#include "lib/list.h"
#include "lib/say.h"

static volatile pid_t command_pid;
static volatile pid_t own_pid; /* of the process that passes signals on */
static volatile sig_atomic_t interrupted;

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* Signals by which the terminal stops a process group. `run` ignores them and stops only when the
 * command has stopped. Otherwise the shell could see that `run` has stopped, and take the terminal,
 * while the command still reads from it. */
static const int stops[] = {SIGTSTP, SIGTTIN};
static struct sigaction stops_before[array_count(stops)];

/* The witness, a helper process that reports the signals it gets. The command is in our process
 * group, so a signal to the group reaches it directly, and we must not pass the signal on. A signal
 * that was sent to us alone must be passed on. The kernel does not tell the two cases apart, but
 * the witness gets only signals to the group. */
static struct {
    pid_t pid;
    /* the pipe from which we read the witness's reports: the number of each signal as one byte */
    int fd;
    bool reported[NSIG]; /* signals that the witness has reported, and we have not handled yet */
} witness = {-1, -1, {false}};

/* With --snapshot-on: the signal that requests a snapshot, and the collector that gets the
 * request. */
static int snapshot_signal;
static const struct launch *collector; /* borrowed */

enum {
    WITNESS_MS = 20,        /* how long a signal to the group may take to reach the witness */
    WITNESS_LATE_MS = 1000, /* how long the witness may take to report a signal that it has */
};

static void start_witness(void)
{
    sigset_t set, before;
    siginfo_t info;
    const pid_t parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return;
    sigemptyset(&set);
    for (size_t i = 0; i < array_count(passed_on); i++)
        sigaddset(&set, passed_on[i]);
    /* before fork(), so that the witness misses no signal, however late it gets a processor */
    sigprocmask(SIG_BLOCK, &set, &before);
    witness.pid = fork();
    if (witness.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* the parent was killed before prctl() took effect */
            _exit(0);
        launch_close_descriptors();
        close(ends[0]);
        for (;;) {
            int number = sigwaitinfo(&set, &info);
            unsigned char byte = (unsigned char)number;
            if (number > 0 && info.si_code <= 0 && write(ends[1], &byte, 1) != 1)
                _exit(0);
        }
    }
    close(ends[1]);
    witness.fd = ends[0];
    fcntl(witness.fd, F_SETFL, O_NONBLOCK);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void stop_witness(void)
{
    if (witness.pid > 0) {
        kill(witness.pid, SIGKILL);
        waitpid(witness.pid, NULL, 0);
    }
    if (witness.fd >= 0)
        close(witness.fd);
    witness.pid = witness.fd = -1;
}

/* Does the witness have signal NUMBER, but no processor yet to report it? Called in a signal
 * handler. */
static bool is_witness_late(int number)
{
    char path[40];
    char text[2048];
    int fd;
    ssize_t bytes;
    const char *state, *pending;

    snprintf(path, sizeof path, "/proc/%d/status", (int)witness.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0)
        return false;
    text[bytes] = 0;
    state = strstr(text, "\nState:\t");
    pending = strstr(text, "\nShdPnd:\t");
    if (!state || !pending)
        return false;
    return state[8] != 'S' || strtoull(pending + 9, NULL, 16) >> (number - 1) & 1;
}

/* Wait MS milliseconds for a report of the witness. SIGCHLD may come meanwhile. */
static bool wait_for_witness_report(int ms)
{
    struct pollfd fd = {witness.fd, POLLIN, 0};
    int found;

    do
        found = poll(&fd, 1, ms);
    while (found < 0 && errno == EINTR);
    return found > 0;
}

/* Has the witness reported signal NUMBER? If not, wait MS milliseconds for its next report. */
static bool has_witness_reported(int number, int ms)
{
    unsigned char byte;
    bool is_known;

    if (!witness.reported[number] && wait_for_witness_report(ms))
        while (read(witness.fd, &byte, 1) == 1)
            witness.reported[byte] = true;
    is_known = witness.reported[number];
    witness.reported[number] = false;
    return is_known;
}

/* Did the witness get signal NUMBER, too? Then the signal was sent to the whole group. */
static bool has_witness_seen(int number)
{
    const uint64_t began_ns = clock_monotonic_ns();

    if (witness.fd < 0)
        return false;
    while (!has_witness_reported(number, WITNESS_MS / 2)) {
        uint64_t ms = (clock_monotonic_ns() - began_ns) / 1000000;
        bool may_come = ms < WITNESS_MS || is_witness_late(number);
        if (ms >= WITNESS_LATE_MS || !may_come)
            return false;
    }
    return true;
}

static void pass_signal_on(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    bool is_for_us;

    (void)context;
    if (getpid() != own_pid) /* a child that has not set its own handlers yet */
        return;
    if (number == SIGINT)
        interrupted = 1;
    if (number == snapshot_signal && collector) {
        const struct collector_order order = {.what = ORDER_SNAPSHOT};
        if (write(collector->link, &order, sizeof order) < 0) {
            /* the collector has just died, so there is no snapshot */
        }
        errno = saved_errno;
        return;
    }
    /* si_code > 0 means that the kernel sent the signal: a key was pressed, and the whole group got
     * it */
    is_for_us = info->si_code <= 0 && info->si_pid != command_pid;
    if (is_for_us && command_pid > 0 && !has_witness_seen(number))
        kill(command_pid, number);
    errno = saved_errno;
}

void job_snapshot_on_signal(int number)
{
    snapshot_signal = number;
}

/* Catch the signals that are passed on to the command. Ignore those that stop the process group,
 * because we stop when the command stops. But if SCREEN, the screen has the terminal, not the
 * command, and these signals stop us as usual. */
static void catch_signals(bool screen)
{
    struct sigaction action = {.sa_sigaction = pass_signal_on, .sa_flags = SA_SIGINFO};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    own_pid = getpid();
    /* the handler must not interrupt itself, because it reads the witness's reports */
    for (size_t i = 0; i < array_count(passed_on); i++)
        sigaddset(&action.sa_mask, passed_on[i]);
    for (size_t i = 0; i < array_count(passed_on); i++)
        sigaction(passed_on[i], &action, NULL);
    for (size_t i = 0; i < array_count(stops); i++)
        sigaction(stops[i], screen ? NULL : &ignore, &stops_before[i]);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* In the child process: execute the command T. Does not return. */
static void execute_command(const struct program *t, const struct launch *l, int failure)
{
    struct collector_order order = {.what = ORDER_BEGAN, .pid = getpid()};
    ssize_t put;

    if (l) {
        /* if the collector is dead, this fails, and the command runs unrecorded */
        put = write(l->link, &order, sizeof order);
        inject_set_environment(program_find_inject_directory(), l->session->directory);
        live_connect_command();
    }
    execvp(t->path, t->argv); /* the command is a script without "#!", which /bin/sh runs */
    put = write(failure, &errno, sizeof errno);
    (void)put;
    _exit(126);
}

int job_start(const struct program *t, const struct launch *l, bool screen)
{
    int failure[2] = {-1, -1};
    int error = 0;
    pid_t pid = -1;

    fflush(NULL);
    if (pipe2(failure, O_CLOEXEC) || (pid = fork()) < 0)
        error = errno;
    if (pid == 0)
        execute_command(t, l, failure[1]);
    close(failure[1]);
    command_pid = pid;
    collector = l;
    catch_signals(screen);
    start_witness();
    launch_close_descriptors();
    while (pid > 0 && read(failure[0], &error, sizeof error) < 0 && errno == EINTR)
        ;
    close(failure[0]);
    if (!error)
        return 0;
    say_error("%s: cannot be started: %s", t->path, program_find_reason(t->path, error));
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return -1;
}

enum {
    STOP_LOOK_MS = 20, /* how long a signal to the group needs at most to reach every process */
    STOPPED_LOOK_MS = 50
};

/* What the sentry does, a helper process (see stop_with_command): it waits until the command
 * continues, and then continues the process RUN. Does not return. RUN ends the sentry by the signal
 * in ENOUGH. This signal is blocked, so it cannot arrive between the sentry's check and its
 * SIGCONT. The sentry exits with 0 if it has continued RUN. */
static void run_sentry(pid_t run, const sigset_t *enough)
{
    const struct timespec look = {.tv_nsec = STOPPED_LOOK_MS * 1000000};
    bool stopped = true;

    /* leave the group, so that signals which stop or continue the group do not reach the sentry */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    launch_close_descriptors();
    while (stopped && getppid() == run) {
        if (sigtimedwait(enough, NULL, &look) > 0)
            _exit(1);
        /* check the command first, then RUN: if the command runs again already, wait until RUN has
         * stopped, because a SIGCONT before that would have no effect */
        stopped = process_is_stopped((uint32_t)command_pid);
        stopped = stopped || !process_is_stopped((uint32_t)run);
    }
    if (getppid() == run)
        kill(run, SIGCONT);
    _exit(0);
}

/* Stop this process, because the command has stopped. A SIGCONT to the group continues us and the
 * command. A SIGCONT to the command alone does not reach us: for this case a process, the sentry,
 * waits until the command continues, and then continues us. Returns true if the sentry continued
 * us. */
static bool stop_with_command(void)
{
    const pid_t self = getpid();
    sigset_t enough, before;
    pid_t sentry;
    int status = 0;

    sigemptyset(&enough);
    sigaddset(&enough, SIGTERM);
    sigprocmask(SIG_BLOCK, &enough, &before);
    sentry = fork();
    if (sentry == 0)
        run_sentry(self, &enough);
    sigprocmask(SIG_SETMASK, &before, NULL);
    raise(SIGSTOP);
    if (sentry < 0)
        return false;
    kill(sentry, SIGTERM);
    waitpid(sentry, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void note_child_change(int number)
{
    (void)number;
}

int job_wait(struct launch *l, int *ended)
{
    struct sigaction notice = {.sa_handler = note_child_change};
    sigset_t child, before;
    int status = 0;

    /* SIGCHLD must be delivered only while ppoll() waits */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    sigaction(SIGCHLD, &notice, NULL);
    sigdelset(&before, SIGCHLD);
    for (;;) {
        pid_t got = waitpid(command_pid, &status, WUNTRACED | WNOHANG);
        if (got == 0) {
            int again = l ? launch_replace_if_dead(l) : -1;
            ppoll(NULL, 0,
                  again < 0 ? NULL : &(struct timespec){again / 1000, again % 1000 * 1000000},
                  &before);
            continue;
        }
        if (got < 0)
            status = 0;
        if (got < 0 || !WIFSTOPPED(status))
            break;
        /* give our parent, such as a shell, time to see that the command has stopped; meanwhile the
         * whole group may be continued, and the command runs again */
        usleep(STOP_LOOK_MS * 1000);
        if (process_is_stopped((uint32_t)command_pid)) {
            if (stop_with_command())
                continue; /* the command runs again; waitpid() will report its next stop */
            for (int ms = 0; ms < STOP_LOOK_MS && process_is_stopped((uint32_t)command_pid); ms++)
                usleep(1000);
            /* the SIGCONT was sent to us alone, so pass it on to the command */
            if (process_is_stopped((uint32_t)command_pid))
                kill(command_pid, SIGCONT);
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (ended)
        *ended = status;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

pid_t job_pid(void)
{
    return command_pid;
}

volatile sig_atomic_t *job_interrupted_flag(void)
{
    for (size_t i = 0; i < array_count(stops); i++)
        sigaction(stops[i], &stops_before[i], NULL);
    stop_witness();
    interrupted = 0;
    command_pid = 0;
    collector = NULL;
    return &interrupted;
}

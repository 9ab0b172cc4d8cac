/* cmd/run/live.c -- runs a program while its recording is on the screen: `dyntrace run --live`. See
 * cmd/run/run.h. */
#include "cmd/run/run.h"

#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

#include "lib/list.h"
#include "lib/say.h"
#include "tui.h"

enum { LOOK_MS = 100, QUIET_MS = 300 };

static struct {
    int master, slave; /* the two ends of the pseudo terminal; each is -1 if not open */
    /* copies of the descriptors of the user's terminal, because `run` closes its own standard
     * streams when the command has them */
    int in, out;
    /* standard input is no terminal, so the command keeps it, and the screen reads keys from
     * /dev/tty */
    bool keeps;
    int command; /* a pidfd of the recorded command, or -1 */
    pid_t screen;
    pthread_t thread;
    bool started;
    atomic_bool ended; /* the recorded command has ended */
} live = {.master = -1, .slave = -1, .in = -1, .out = -1, .command = -1};

bool live_open(void)
{
    struct termios modes;
    struct winsize size = {.ws_row = 24, .ws_col = 80};

    int keys = isatty(STDIN_FILENO) ? -1 : open("/dev/tty", O_RDONLY | O_CLOEXEC);

    live.keeps = !isatty(STDIN_FILENO);
    if (keys >= 0)
        close(keys);
    if ((live.keeps && keys < 0) || !isatty(STDOUT_FILENO)) {
        say_error("run: --live needs a terminal; without one, record, and `dyntrace tui --live "
                  "FILE` follows from another");
        return false;
    }
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (openpty(&live.master, &live.slave, NULL, NULL, &size) != 0) {
        say_error("run: --live: no pseudo terminal: %s", strerror(errno));
        return false;
    }
    /* turn off the conversion of line ends here, because the real terminal converts them */
    if (tcgetattr(live.slave, &modes) == 0) {
        modes.c_oflag &= ~(tcflag_t)OPOST;
        modes.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(live.slave, TCSANOW, &modes);
    }
    live.in = live.keeps ? -1 : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    live.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    fcntl(live.master, F_SETFD, FD_CLOEXEC);
    fcntl(live.master, F_SETFL, O_NONBLOCK);
    fcntl(live.slave, F_SETFD, FD_CLOEXEC);
    return true;
}

void live_connect_command(void)
{
    if (live.slave < 0)
        return;
    if (!live.keeps) /* the screen reads the keys and types whole lines into the pseudo terminal */
        dup2(live.slave, STDIN_FILENO);
    dup2(live.slave, STDOUT_FILENO);
    dup2(live.slave, STDERR_FILENO);
}

static int run_screen(const char *trace)
{
    struct tui_options options = {.live = true,
                                  .output_fd = live.master,
                                  .running = true,
                                  .program_fd = live.command,
                                  .program_pid = job_pid(),
                                  .program_reads = !live.keeps};
    static const int given[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < array_count(given); i++)
        signal(given[i], SIG_DFL);
    dup2(live.keeps ? open("/dev/null", O_RDONLY | O_CLOEXEC) : live.in, STDIN_FILENO);
    dup2(live.out, STDOUT_FILENO);
    return tui_run(&options, trace);
}

/* When the screen has ended, pass the lines that the user types on to the command. */
static void pass_typed_lines(void)
{
    struct pollfd polled = {live.in, POLLIN, 0};
    char bytes[4096];
    ssize_t got;

    if (live.in < 0 || atomic_load(&live.ended) ||
        /* if we are in the background, the shell reads the typed lines */
        tcgetpgrp(live.in) != getpgrp() || poll(&polled, 1, 0) <= 0)
        return;
    got = read(live.in, bytes, sizeof bytes);
    if (got == 0)
        bytes[got++] = 4; /* 4 is the character Ctrl-D, which ends the input */
    if (got < 0 || write(live.master, bytes, (size_t)got) < 0) {
        close(live.in);
        live.in = -1;
    }
}

/* The function of a thread: wait for the end of the screen, then copy the command's output to our
 * standard output. */
static void *pass_output_after_screen(void *unused)
{
    char bytes[4096];

    while (waitpid(live.screen, NULL, 0) < 0 && errno == EINTR)
        continue;
    for (;;) {
        struct pollfd polled = {live.master, POLLIN, 0};
        int ready = poll(&polled, 1, atomic_load(&live.ended) ? QUIET_MS : LOOK_MS);
        ssize_t got;
        pass_typed_lines();
        if (ready == 0 && atomic_load(&live.ended))
            /* stop, because the command has ended; another process still keeps the pseudo terminal
             * open */
            break;
        if (ready <= 0)
            continue;
        got = read(live.master, bytes, sizeof bytes);
        if (got <= 0 && errno != EINTR && errno != EAGAIN)
            break;
        for (ssize_t at = 0, put; at < got; at += put)
            if ((put = write(live.out, bytes + at, (size_t)(got - at))) <= 0)
                return NULL;
    }
    return NULL;
}

void live_show_screen(const char *trace)
{
    sigset_t all, old;

    if (live.master < 0)
        return;
    close(live.slave);
    live.slave = -1;
    fflush(NULL);
    /* nobody has waited for the command yet, so its pid cannot have been reused */
    live.command = (int)syscall(SYS_pidfd_open, job_pid(), 0);
    live.screen = fork();
    if (live.screen == 0)
        _exit(run_screen(trace));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    live.started =
        live.screen > 0 && pthread_create(&live.thread, NULL, pass_output_after_screen, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!live.started)
        say_error("run: --live: the screen cannot be started: %s", strerror(errno));
}

void live_close(void)
{
    int *const ends[] = {&live.master, &live.slave, &live.in, &live.out, &live.command};

    atomic_store(&live.ended, true);
    if (live.started)
        pthread_join(live.thread, NULL);
    live.started = false;
    for (size_t i = 0; i < array_count(ends); i++) {
        if (*ends[i] >= 0)
            close(*ends[i]);
        *ends[i] = -1;
    }
}

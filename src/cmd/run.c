/* cmd/run.c -- `dyntrace run`: start a program so that it is recorded.
 *
 * Runs in: the command line. Three processes (docs/internals.md):
 *
 *     run --fork--> collector   in a session of its own: no key press reaches it
 *         --fork--> command     the user's program, in our place in the terminal
 *
 * The command gets our standard streams, directory, signals and environment as
 * they were, with one variable changed. We wait, pass on signals that were sent
 * to us alone, and end with its status. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/collector.h"
#include "command.h"
#include "inject.h"
#include "lib/json.h"
#include "collector/launch.h"
#include "cmd/live.h"
#include "collector/process.h"
#include "python_options.h"
#include "recorder_sqlite.h"
#include "collector/recover.h"
#include "lib/say.h"
#include "collector/session.h"
#include "versions.h"

static struct {
    const char *trace, *python;
    bool force, live;
    struct session_options session;
    const char **globs; /* owned, with their strings */
} given = {.python = "python3", .session.max_stall_ns = SESSION_MAX_STALL_NS};

#define MAX_STALL_MOST_NS (60 * UINT64_C(1000000000)) /* the program is stopped so long if the recorder is killed */

/* ---- options ---- */

static bool duration(const char *text, uint64_t *ns)
{
    static const struct { const char *name; double ns; } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value >= 0) || value > 1e12)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].name)) {
            *ns = (uint64_t)(value * units[i].ns);
            return true;
        }
    return false;
}

static const char *duration_read(const struct option *option, const char *value)
{
    return duration(value, option->to) ? NULL : "not a time such as 500ns, 20us, 1.5ms or 2s";
}

static const char *stall_read(const struct option *option, const char *value)
{
    uint64_t *ns = option->to;

    return duration(value, ns) && *ns <= MAX_STALL_MOST_NS ? NULL : "not a time from 0s to 60s such as 100ms";
}

static const char *depth_read(const struct option *option, const char *value)
{
    int64_t depth;

    if (option_count(&(struct option){.to = &depth}, value) || depth < 1 || depth > INT32_MAX)
        return "not a number from 1 on";
    *(uint32_t *)option->to = (uint32_t)depth;
    return NULL;
}

/* --include or --exclude. */
static const char *glob_read(const struct option *option, const char *value)
{
    uint32_t *count = &given.session.glob_count;
    const char **more = reallocarray(given.globs, *count + 1, sizeof *more);
    char *glob = NULL;

    if (more)
        given.session.globs = given.globs = more;
    if (!more || asprintf(&glob, "%c%s", option->name[0] == 'i' ? '+' : '-', value) < 0)
        return "out of memory";
    given.globs[(*count)++] = glob;
    return NULL;
}

static const struct option options[] = {
    {.letter = 'm', .value = "MODULE", .help = "run a module, as Python does; what follows is the program's"},
    {.letter = 'c', .value = "CODE", .help = "run this code, as Python does; what follows is the program's"},
    {"output", 'o', "FILE", option_any, &given.trace, .help = "write the trace to FILE; the default is the script's or module's name with .db"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"live", .read = option_flag, .to = &given.live,
     .help = "show the recording on the screen while the program runs, as `dyntrace tui` does. What the program prints is kept "
             "apart and printed after the screen has gone; its standard input is empty"},
    {"python", .value = "PY", .read = option_any, .to = &given.python, .help = "run scripts, -m and -c with this interpreter instead of python3"},
    {"frames", .value = "WHICH", .read = option_choice, .to = &given.session.frames, .words = SESSION_FRAMES_WORDS,
     .help = "all (default): every frame\n"
             "user: not the standard library, not site-packages\n"
             "decided: only calls that a compiler decided, at the least cost: outside of them no hook is installed\n"
             "none: processes only, without a hook"},
    {"include", .value = "GLOB", .read = glob_read, .many = true,
     .help = "record only code whose file or qualified name matches; may be repeated: one match is enough"},
    {"exclude", .value = "GLOB", .read = glob_read, .many = true, .help = "do not record code that matches; may be repeated, wins over --include"},
    {"torch", .value = "MODE", .read = option_choice, .to = &given.session.torch, .words = SESSION_TORCH_WORDS,
     .help = "how torch.compile is watched\n"
             "auto (default): shim where this torch and this Python were tested together, else observe\n"
             "shim: it runs on dyntrace's evaluator, and every guard check is seen\n"
             "observe: it runs on its own, and what is seen of it from outside is recorded\n"
             "off: not at all"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values, .words = SESSION_VALUES_WORDS,
     .help = "what is kept of the values of arguments and of what guards compare\n"
             "all (default): numbers, strings and other small values as they are, passwords among them\n"
             "types: types, shapes and dtypes, devices and strides\n"
             "off: nothing"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv, .help = "do not keep command lines, of the program and of its children"},
    {"max-depth", .value = "N", .read = depth_read, .to = &given.session.max_depth,
     .help = "record at most N frames on top of each other, and no lookups of deeper ones"},
    {"min-duration", .value = "TIME", .read = duration_read, .to = &given.session.min_duration_ns,
     .help = "leave out frames shorter than this, such as 500ns, 20us, 1.5ms or 2s; the totals by function still count them; "
             "frames with a lookup are kept"},
    {"max-stall", .value = "TIME", .read = stall_read, .to = &given.session.max_stall_ns,
     .help = "stop the program for at most this long, 1s unless given and 60s at most, when the recorder cannot keep up; then it "
             "goes on, and the frames that are not recorded are counted as a loss"},
    OPTION_END,
};

static void options_free(void)
{
    for (uint32_t i = 0; i < given.session.glob_count; i++)
        free((char *)given.globs[i]);
    free(given.globs);
}

/* ---- what to run ---- */

/* PROGRAM as a path that can be executed, to be freed; NULL: not there. */
static char *find_program(const char *program)
{
    const char *path = getenv("PATH"), *part;
    struct stat status;

    if (strchr(program, '/'))
        return access(program, X_OK) == 0 && stat(program, &status) == 0 && S_ISREG(status.st_mode) ? strdup(program)
                                                                                                    : NULL;
    for (part = path ? path : "/usr/bin:/bin"; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        int length = (int)strcspn(part, ":");
        char *full = NULL;
        if (asprintf(&full, "%.*s/%s", length ? length : 1, length ? part : ".", program) < 0)
            return NULL;
        if (access(full, X_OK) == 0 && stat(full, &status) == 0 && S_ISREG(status.st_mode))
            return full;
        free(full);
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && !strcmp(text + length - tail, end);
}

struct target {
    char **argv;      /* owned (the array only) */
    char *path;       /* owned: what to execute */
    const char *name; /* for the trace's file name */
    bool python;      /* path is an interpreter, argv[1..] its arguments */
};

/* Decide what the words after the options mean. 0, or -1 after saying why not. */
static int target_find(struct target *t, int argc, char **argv)
{
    const char *first = argv[0];
    bool by_python = !strcmp(first, "-m") || !strcmp(first, "-c");
    struct stat status;
    bool there = stat(first, &status) == 0;

    if (by_python && argc < 2) {
        say_error("run: %s needs %s", first, first[1] == 'm' ? "a module's name" : "code");
        return -1;
    }
    t->argv = calloc((size_t)argc + 2, sizeof *t->argv);
    if (!t->argv)
        return -1;
    t->name = by_python ? (first[1] == 'm' ? argv[1] : "command") : first;
    if (!by_python) {
        bool script = ends_with(first, ".py") || ends_with(first, ".pyw") || ends_with(first, ".pyz");
        if (script && !there) {
            say_error("%s: %s", first, strerror(errno));
            return -1;
        }
        t->path = script ? NULL : find_program(first);
        if (!t->path && !there) {
            say_error("%s: neither a script here nor a program on PATH", first);
            return -1;
        }
        if (!t->path && S_ISDIR(status.st_mode)) {
            char *inner = NULL;
            bool runs = asprintf(&inner, "%s/__main__.py", first) > 0 && access(inner, R_OK) == 0;
            free(inner);
            if (!runs) {
                say_error("%s: a directory without __main__.py, which Python cannot run", first);
                return -1;
            }
        } else if (!t->path && access(first, R_OK)) {
            say_error("%s: %s", first, strerror(errno));
            return -1;
        }
        by_python = !t->path;
    }
    if (by_python) {
        t->path = find_program(given.python);
        if (!t->path) {
            say_error("%s: no such interpreter; name one with --python", given.python);
            return -1;
        }
        t->argv[0] = (char *)given.python;
        memcpy(t->argv + 1, argv, (size_t)argc * sizeof *argv);
        t->python = true;
    } else {
        memcpy(t->argv, argv, (size_t)argc * sizeof *argv);
        t->python = python_is(first);
    }
    return 0;
}

/* ---- the interpreter ---- */

/* Asks an interpreter for its version while the session is being made. */
struct probe {
    pid_t pid;
    int fd;
};

static void probe_start(struct probe *p, const char *python)
{
    static const char code[] =
        "import sys\n"
        "name = getattr(getattr(sys, 'implementation', None), 'name', 'cpython')\n"
        "try: from _imp import extension_suffixes\n"
        "except ImportError: extension_suffixes = lambda: '-'\n" /* Python 2 */
        "print('%s %d %d %s' % (name, sys.version_info[0], sys.version_info[1], extension_suffixes()[0]))\n";
    int ends[2];

    *p = (struct probe){-1, -1};
    if (pipe2(ends, O_CLOEXEC))
        return;
    p->pid = fork();
    if (p->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        execl(python, python, "-E", "-S", "-c", code, (char *)NULL); /* Python 2 knows no -I */
        _exit(127);
    }
    close(ends[1]);
    p->fd = ends[0];
}

/* 0: the interpreter is supported and has its extension, or would not say. -1: not,
 * said unless QUIET. */
static int probe_finish(struct probe *p, const char *python, bool quiet)
{
    char text[256] = "", name[64], suffix[128], *path = NULL;
    size_t used = 0;
    ssize_t got;
    int major, minor, result = 0;

    if (p->pid < 0)
        return 0;
    while ((got = read(p->fd, text + used, sizeof text - 1 - used)) > 0 || (got < 0 && errno == EINTR))
        used += got > 0 ? (size_t)got : 0;
    close(p->fd);
    waitpid(p->pid, NULL, 0);
    if (sscanf(text, "%63s %d %d %127s", name, &major, &minor, suffix) < 4)
        return 0; /* not an interpreter that answers: it will say so itself */
    if (!versions_supports(name, major, minor)) {
        if (!quiet)
            say_error("%s: %s %d.%d is not supported: use " CPYTHON_SUPPORTED ", or run untraced with --frames none",
                      python, strcmp(name, "cpython") ? name : "CPython", major, minor);
        result = -1;
    } else if (asprintf(&path, "%s/_dyntrace%s", command_library_directory(), suffix) > 0 && access(path, R_OK)) {
        if (!quiet)
            say_error("%s: no extension for this CPython %d.%d is built (%s): build it with `make PYTHONS=%s`", python,
                      major, minor, path, python);
        result = -1;
    }
    free(path);
    return result;
}

/* ---- the trace's name ---- */

/* The trace's absolute path, to be freed. */
static char *trace_path(const struct target *t)
{
    const char *name = t->name, *slash;
    char *relative = NULL, *path = NULL, here[PATH_MAX];
    size_t length;

    if (given.trace) {
        relative = strdup(given.trace);
    } else {
        length = strlen(name);
        while (length > 1 && name[length - 1] == '/')
            length--;
        for (slash = name + length; slash > name && slash[-1] != '/'; slash--)
            ;
        length -= (size_t)(slash - name);
        if (length > 3 && !strncmp(slash + length - 3, ".py", 3))
            length -= 3;
        if (asprintf(&relative, "%.*s.db", (int)length, slash) < 0)
            relative = NULL;
    }
    if (relative && relative[0] == '/')
        return relative;
    if (relative && getcwd(here, sizeof here) && asprintf(&path, "%s/%s", here, relative) < 0)
        path = NULL;
    free(relative);
    return path;
}

/* Another recorder is writing this trace, or one left it half made? */
static int frames_file_free(const char *trace, const char *frames)
{
    if (access(frames, F_OK))
        return 0;
    say_error("%s: another recording writes this trace (%s is there); wait for it, use -o, or delete that file if "
              "nothing records any more", trace, frames);
    return -1;
}

/* ---- running ---- */

static struct live live = {.master = -1, .slave = -1, .in = -1, .out = -1}; /* --live */
static volatile pid_t command_pid;
static volatile sig_atomic_t interrupted;

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* What the terminal stops the group by. Whether the command stops is its own affair, and we do as it does; a shell that
 * saw us stop first would take the terminal while the command can still read from it. */
static const int stops[] = {SIGTSTP, SIGTTIN};
static struct sigaction stops_before[sizeof stops / sizeof *stops];

/* The command is in our process group, so a signal to the group reaches it
 * without us, and must not reach it twice; one to us alone must be passed on.
 * The kernel does not say which it was. So there is a witness: a process in the
 * same group that does nothing but say which signals it got. */
static struct {
    pid_t pid;
    int fd; /* the witness writes a signal's number, one byte */
} witness = {-1, -1};

enum { WITNESS_MS = 20 }; /* how long it may take to say so */

static void witness_start(void)
{
    sigset_t set;
    siginfo_t info;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return;
    witness.pid = fork();
    if (witness.pid == 0) {
        sigemptyset(&set);
        for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
            sigaddset(&set, passed_on[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        launch_let_go();
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
}

static void witness_stop(void)
{
    if (witness.pid > 0) {
        kill(witness.pid, SIGKILL);
        waitpid(witness.pid, NULL, 0);
    }
    if (witness.fd >= 0)
        close(witness.fd);
    witness.pid = witness.fd = -1;
}

/* Did the witness get signal NUMBER as well? */
static bool witness_saw(int number)
{
    struct pollfd fd = {witness.fd, POLLIN, 0};
    unsigned char byte;
    bool saw = false;

    if (witness.fd < 0 || poll(&fd, 1, WITNESS_MS) <= 0)
        return false;
    while (read(witness.fd, &byte, 1) == 1)
        saw |= byte == number;
    return saw;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    (void)context;
    if (number == SIGINT)
        interrupted = 1;
    /* si_code > 0: from the kernel, a key press, which the whole group gets. */
    if (info->si_code <= 0 && command_pid > 0 && info->si_pid != command_pid && !witness_saw(number))
        kill(command_pid, number);
    errno = saved_errno;
}

static void signals_catch(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaction(passed_on[i], &action, NULL);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        sigaction(stops[i], live.master < 0 ? &ignore : NULL, &stops_before[i]); /* --live: the screen stops us */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static char inject[PATH_MAX + 80]; /* where sitecustomize.py lies: inject.h */

/* 0, or -1 after saying why interpreters will not find it. */
static int inject_find(void)
{
    const char *library = command_library_directory();
    char *file = NULL;
    int result = -1;

    snprintf(inject, sizeof inject, "%s/inject", library);
    if (asprintf(&file, "%s/sitecustomize.py", inject) < 0)
        return -1;
    if (access(file, R_OK))
        say_error("%s: not there: run `make`, or reinstall dyntrace", file);
    else if (strchr(library, ':'))
        say_error("%s: Python cannot be led to a directory with a colon in its name; put dyntrace somewhere else", library);
    else
        result = 0;
    free(file);
    return result;
}

/* Can every user of this machine read what an interpreter needs of us? */
static bool inject_is_for_all(void)
{
    char path[sizeof inject];
    struct stat status;

    memcpy(path, inject, sizeof path);
    for (char *end = path + strlen(path); end > path; end = strrchr(path, '/')) {
        *end = 0;
        if (stat(path, &status) || !(status.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* In the child: become the command. Does not return. */
static void command_become(const struct session *session, const struct target *t, int orders, int failure)
{
    struct collector_order order = {.what = ORDER_BEGAN, .pid = getpid()};
    int error;

    if (session) {
        if (write(orders, &order, sizeof order) != sizeof order) {
            /* The collector is gone already: the command runs all the same. */
        }
        inject_environment(inject, session->directory);
    }
    live_command(&live);
    execv(t->path, t->argv);
    if (errno == ENOEXEC) { /* a script without "#!": what a shell would do */
        size_t count = 0;
        while (t->argv[count])
            count++;
        char **argv = calloc(count + 2, sizeof *argv);
        if (argv) {
            argv[0] = "/bin/sh";
            argv[1] = t->path;
            for (size_t i = 1; i < count; i++)
                argv[i + 1] = t->argv[i];
            execv(argv[0], argv);
        }
    }
    error = errno;
    if (write(failure, &error, sizeof error) != sizeof error)
        _exit(126);
    _exit(126);
}

/* Start the command; 0, or -1 after saying why. */
static int command_fork(const struct session *session, const struct target *t, int orders)
{
    int failure[2], error = 0;
    pid_t pid;

    if (pipe2(failure, O_CLOEXEC)) {
        say_error("%s: cannot be started: %s", t->path, strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        command_become(session, t, orders, failure[1]);
    close(failure[1]);
    command_pid = pid;
    signals_catch();
    witness_start();
    launch_let_go();
    if (pid > 0)
        while (read(failure[0], &error, sizeof error) < 0 && errno == EINTR)
            ;
    else
        error = errno;
    close(failure[0]);
    if (error) {
        say_error("%s: cannot be started: %s", t->path, strerror(error));
        if (pid > 0)
            waitpid(pid, NULL, 0);
        return -1;
    }
    return 0;
}

enum { STOP_LOOK_MS = 20 }; /* how long a signal to the whole group may take to reach all of it */

static void on_child(int number)
{
    (void)number;
}

/* The command's wait status. A collector of L (NULL: none) that dies meanwhile is replaced. */
static int command_wait(struct launch *l)
{
    struct sigaction notice = {.sa_handler = on_child};
    sigset_t child, before;
    int status = 0;

    /* Children's ends wake us from ppoll, and at no other moment. */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    sigaction(SIGCHLD, &notice, NULL);
    sigdelset(&before, SIGCHLD);
    for (;;) {
        pid_t got = waitpid(command_pid, &status, WUNTRACED | WNOHANG);
        if (got == 0) {
            int again = l ? launch_look(l) : -1;
            ppoll(NULL, 0, again < 0 ? NULL : &(struct timespec){again / 1000, again % 1000 * 1000000}, &before);
            continue;
        }
        if (got < 0)
            status = 0;
        if (got < 0 || !WIFSTOPPED(status))
            break;
        /* Whoever waits for us must see that the command has stopped. If the whole group was, and was
         * continued before we come here, it goes on already. */
        usleep(STOP_LOOK_MS * 1000);
        if (process_is_stopped((uint32_t)command_pid)) {
            raise(SIGSTOP);
            for (int ms = 0; ms < STOP_LOOK_MS && process_is_stopped((uint32_t)command_pid); ms++)
                usleep(1000);
            if (process_is_stopped((uint32_t)command_pid)) /* SIGCONT was for us alone */
                kill(command_pid, SIGCONT);
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

static int exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static char *json_command(int argc, char **argv)
{
    char *words = NULL, *made = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&words, &bytes);

    if (!out)
        return NULL;
    for (int i = 0; i < argc; i++)
        fwrite(argv[i], 1, strlen(argv[i]) + 1, out);
    if (fclose(out) == 0)
        made = json_array(words, bytes);
    free(words);
    return made;
}

/* Wait until the trace is whole; a Ctrl-C stops waiting for stragglers. */
static bool wait_for_trace(struct launch *l, struct collector_result *said)
{
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        sigaction(stops[i], &stops_before[i], NULL);
    witness_stop();
    interrupted = 0;
    command_pid = 0;
    return launch_wait(l, &interrupted, said);
}

/* What the user should know at the end. */
static void say_result(const struct session *session, const struct collector_result *said)
{
    bool terminal = isatty(2);

    if (said->error[0])
        say_error("%s", said->error);
    if (said->unsupported[0])
        say_error("%s was not recorded: there is no extension for it (" CPYTHON_SUPPORTED "; `make PYTHONS=...` builds one)",
                  said->unsupported);
    else if (!said->processes && given.session.frames != SESSION_NONE)
        say_error("nothing was recorded: no Python process loaded the recorder; it is not Python, or was started with "
                  "-I, -E or -S, which you would have to leave out%s%s%s", inject_is_for_all() ? "" : ", or as a user who cannot read ",
                  inject_is_for_all() ? "" : inject, inject_is_for_all() ? "" : ": install dyntrace where that user can");
    if (said->torch_note[0])
        say_error("%s", said->torch_note);
    if (said->missing && !said->error[0])
        say_error("%s is not complete: %s%s; `dyntrace report` lists %s", session->trace, said->worst,
                  said->missing > 1 ? ", and more" : "", said->missing > 1 ? "all losses" : "it");
    if (terminal && !said->error[0])
        say_error("%llu frames of %u process%s in %s", (unsigned long long)said->frames, said->processes,
                  said->processes == 1 ? "" : "es", session->trace);
}

static int run_untraced(const struct target *t)
{
    int status = 126;

    if (command_fork(NULL, t, -1) == 0)
        status = exit_status(command_wait(NULL));
    witness_stop();
    return status;
}

static int record(const struct target *t, int argc, char **argv)
{
    struct session session = SESSION_CLOSED;
    struct collector_result *said = calloc(1, sizeof *said);
    struct launch l = {.orders = -1, .result = -1};
    char *trace = trace_path(t), *command = json_command(given.session.no_argv ? 0 : argc, argv);
    struct probe probe = {-1, -1};
    uint32_t first = 0, root = 0;
    int status = 2, ended;
    bool made = false, untraced = false;

    if (t->python)
        probe_start(&probe, t->path);
    recover_all_quietly();
    if (!trace || !command || !said || inject_find() || session_create(&session, trace, &given.session))
        goto done;
    if (frames_file_free(trace, session.frames) || recorder_create(trace, session.frames, given.force, &first, &root))
        goto done;
    made = true;
    untraced = t->python && probe_finish(&probe, t->path, given.session.frames == SESSION_NONE);
    probe.pid = -1;
    if (untraced)
        goto done;
    if (given.live && !live_open(&live))
        goto done;
    if (launch_collector(&l, &session, command, first, root))
        goto done;
    if (command_fork(&session, t, l.orders)) {
        status = 126;
        launch_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = -1});
        wait_for_trace(&l, said);
        goto done;
    }
    made = false;
    l.began = (struct collector_order){.what = ORDER_BEGAN, .pid = command_pid}; /* the child has told it */
    live_show(&live, trace);
    ended = command_wait(&l);
    status = exit_status(ended);
    launch_order(&l, &(struct collector_order){.what = ORDER_ENDED, .pid = command_pid, .status = ended});
    if (!wait_for_trace(&l, said)) {
        say_error("the collector was killed again and again; `dyntrace fsck --recover %s` may finish the trace", trace);
        session.directory[0] = 0; /* keep it for that */
        goto done;
    }
    live_close(&live);
    if (l.replaced)
        say_error("the collector was killed; another took its place");
    say_result(&session, said);
    if (said->error[0] && !said->frames)
        session.directory[0] = 0;
done:
    live_close(&live);
    if (probe.pid > 0)
        probe_finish(&probe, t->path, true);
    if (made) { /* nothing ran: leave nothing behind */
        unlink(trace);
        unlink(session.frames);
    }
    session_remove(&session);
    session_close(&session);
    launch_close(&l);
    free(said);
    free(trace);
    free(command);
    return untraced && given.session.frames == SESSION_NONE ? run_untraced(t) : status;
}

static int run(int count, char **operands)
{
    struct target target = {0};
    int status = 2;
    char ignoring;

    if (!count)
        say_error("run: no program given; `dyntrace run --help` tells more");
    if (!count || target_find(&target, count, operands))
        goto done;
    ignoring = target.python ? python_ignores_us((const char *const *)target.argv + 1) : 0;
    if (ignoring && given.session.frames == SESSION_NONE) {
        status = run_untraced(&target);
    } else if (ignoring) {
        say_error("%s: its option -%c makes it ignore the environment, by which it would be recorded: leave it out, or run "
                  "untraced with --frames none", target.argv[0], ignoring);
    } else {
        status = record(&target, count, operands);
    }
done:
    options_free();
    free(target.argv);
    free(target.path);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a program and record its frames",
    .operands = "[--] script.py | -m MODULE | -c CODE | PROGRAM [ARG]...",
    .about = "Runs the program and records every Python frame that it and its children evaluate. The exit status is the program's "
             "own (128+N when signal N killed it).",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .runs = true,
    .run = run,
};

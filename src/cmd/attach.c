/* cmd/attach.c -- `dyntrace attach` and `detach`: record a program that runs already.
 *
 * Runs in: the command line.
 *
 * What `attach` does, in this order:
 *
 *   1. It forks a collector, as `run` does.
 *   2. It makes the process join the session: by SIGURG, sys.remote_exec() or gdb (inject.c).
 *   3. It waits for Ctrl-C, --for, --calls, `detach`, or the end of the process.
 *   4. It makes each process leave the session, by SIGURG.
 *   5. It waits until the trace is complete.
 *
 * `detach` sets the flag `leave` in the session's file. `attach` polls this flag, and then ends
 * the session. `detach` waits for the session's end. */
#include "cmd/attach/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/run/run.h"
#include "collector/process.h"
#include "command.h"
#include "inject.h"
#include "lib/bounds.h"
#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "versions.h"

enum {
    WHY_BYTES = 600,
    LOOK_MS = 10,
    /* how long a process may take to react to SIGURG before other ways are tried */
    SIGNAL_MS = 2000,
    BLOCKED_MS = 1500, /* how long to wait for a pending call before gdb uses a sleeping thread */
    ANSWER_MS = 10000, /* how long a process may take to join or leave a session */
    COUNT_MS = 250,    /* time between two looks at how many calls there are, for --calls */
    WORDS_MOST = 1000, /* the most words that are read of a process's command line */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static void pause_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* ---- reading the command line of the process that we attach to ----------- */

struct words {
    char text[1 << 16];
    char *at[WORDS_MOST];
    int count;
};

static void words_read(const struct target *target, struct words *words)
{
    char path[64];
    ssize_t got = -1;
    int fd;

    words->count = 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)target->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, words->text, sizeof words->text - 1);
        close(fd);
    }
    words->text[got > 0 ? got : 0] = 0;
    for (ssize_t at = 0; at < got && words->count < WORDS_MOST;
         at += (ssize_t)strlen(words->text + at) + 1)
        words->at[words->count++] = words->text + at;
}

/* The name of the trace without -o: the script's or the module's, else the program's. */
static const char *trace_name(const struct target *target, const struct words *words)
{
    for (int i = 1; target->python && i < words->count; i++) {
        if (!strcmp(words->at[i], "-m") && i + 1 < words->count)
            return words->at[i + 1];
        if (words->at[i][0] != '-')
            return words->at[i];
        if (words->at[i][1] == 'c')
            break;
    }
    return *target->exe ? target->exe : "process";
}

/* ---- the processes of a session, and how they leave it ------------------- */

struct member {
    pid_t pid; /* the pid of a recorded process in our pid namespace */
};

struct members {
    LIST(struct member) all; /* the processes of the session that are still being recorded */
    uint32_t wanted;         /* the process that should join: its pid in its own pid namespace */
    bool joined;             /* the process `wanted` has joined */
};

static void member_add(void *context, const char *name, enum session_place place,
                       const struct process_file *header)
{
    struct members *members = context;

    (void)name;
    (void)place;
    if (!header || !header->ready)
        return;
    members->joined |= header->pid == members->wanted;
    if (header->left || header->finished)
        return;
    *list_add(&members->all) = (struct member){
        .pid = (pid_t)(header->seen_pid ? header->seen_pid : header->pid),
    };
}

/* Wait until nobody records any more, at most MS. */
static bool all_left(const struct session *session, const struct target *target, int ms)
{
    for (; ms >= 0; ms -= LOOK_MS) {
        struct members members = {0};
        struct target other;
        bool any = false;
        session_processes(session, member_add, &members);
        list_each(member, &members.all)
            any |= target_like(&other, target, member->pid);
        list_free(&members.all);
        if (!any)
            return true;
        pause_ms(LOOK_MS);
    }
    return false;
}

/* Ask the processes of the session to leave it. Without FORCE they are asked by SIGURG, and only if
 * they handle it. With FORCE they are asked by the other ways of inject_run(). If that fails, WHY
 * gets the reason. */
static void members_leave(const struct session *session, const struct injector *injector,
                          const struct target *target, bool force, char *why)
{
    struct members members = {0};

    session_processes(session, member_add, &members);
    list_each(member, &members.all) {
        struct target other;
        if (!target_like(&other, target, member->pid))
            continue;
        if (force)
            other.listens = false;
        else if (!other.listens)
            continue;
        if (!other.session[0])
            continue;
        inject_run(injector, &other, NULL, false, why);
    }
    list_free(&members.all);
}

/* Let all processes leave the session. */
static void leave(const struct session *session, const struct injector *injector,
                  const struct target *target)
{
    char why[WHY_BYTES] = "";

    atomic_store(&session->file->leave, 1);
    members_leave(session, injector, target, false, why);
    if (all_left(session, target, SIGNAL_MS))
        return;
    members_leave(session, injector, target, true, why);
    if (all_left(session, target, ANSWER_MS))
        return;
    say_error("process %d, or a child of it, has not run any Python since: it leaves the recording "
              "when it does%s%s",
              (int)target->pid, *why ? "; it " : "", why);
}

/* ---- making the process join the session --------------------------------- */

/* Read what the process has answered instead of joining. */
static bool answer_read(const struct session *session, char *answer, size_t room)
{
    int fd = session_open_in(session->directory, "attach.error", O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, answer, room - 1);

    if (fd >= 0)
        close(fd);
    answer[got > 0 ? got : 0] = 0;
    return fd >= 0 && got > 0;
}

/* Report that the process has given ANSWER. */
static void say_answer(const struct target *target, const char *answer)
{
    static const struct {
        const char *answer, *words;
    } known[] = {
        {"recorded", "is being recorded already; end that recording first"},
        {"another", "has an extension of another version of dyntrace loaded: install the same "
                    "version for both"},
        {"room", "has no room for its part of the recording in /dev/shm or /tmp: make room there"},
        {"memory", "has no memory left for the recording"},
        {"denied", "cannot open the recording's directory, which belongs to another user"},
        {"gone", "cannot see the recording's directory"},
        {"elsewhere", "is not in its main interpreter, which alone can be recorded so"},
    };
    const char *words = NULL;

    for (size_t i = 0; i < array_count(known); i++)
        if (!strcmp(answer, known[i].answer))
            words = known[i].words;
    if (words)
        say_error("attach: process %d %s", (int)target->pid, words);
    else
        say_error("attach: process %d cannot be recorded: %s", (int)target->pid, answer);
}

static bool has_joined(const struct session *session, const struct target *target)
{
    struct members members = {.wanted = target->own_pid};

    session_processes(session, member_add, &members);
    list_free(&members.all);
    return members.joined;
}

/* Wait until the process has joined. Returns false if it has not, which has been reported. */
static bool join_wait(const struct session *session, const struct injector *injector,
                      const struct target *target, bool later)
{
    const char *directory = session->directory + strlen(target->root);
    char why[WHY_BYTES], answer[1000];
    int next_blocked = BLOCKED_MS;

    for (int ms = 0; ms < ANSWER_MS && !stopped; ms += LOOK_MS) {
        if (has_joined(session, target))
            return true;
        if (answer_read(session, answer, sizeof answer)) {
            say_answer(target, answer);
            return false;
        }
        if (!target_lives(target)) {
            say_error("attach: process %d has ended before it could be recorded", (int)target->pid);
            return false;
        }
        if (later && ms >= next_blocked) {
            inject_run(injector, target, directory, true, why);
            next_blocked *= 3;
        }
        pause_ms(LOOK_MS);
    }
    inject_cancel(injector, target);
    if (!stopped)
        say_error("attach: process %d does not come back to Python from what its main thread does "
                  "(a C function, or a system call, in which no Python can run): try again later, "
                  "or start it with `dyntrace run`",
                  (int)target->pid);
    return false;
}

static bool join(const struct session *session, const struct injector *injector,
                 const struct target *target)
{
    const char *directory = session->directory + strlen(target->root);
    char why[WHY_BYTES];
    enum inject_result result = inject_run(injector, target, directory, false, why);

    if (result == INJECT_CANNOT) {
        say_error("attach: process %d %s", (int)target->pid, why);
        return false;
    }
    return join_wait(session, injector, target, result == INJECT_LATER);
}

/* ---- --calls: ending the recording after a number of calls --------------- */

/* Start a process that ends with status 0 once FUNCTION was called CALLS times in TRACE. */
static pid_t counter_start(const char *trace, const char *function, int64_t calls)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int64_t seen = 0; seen < calls; pause_ms(seen < calls ? COUNT_MS : 0)) {
        struct db *db = db_open(trace);
        struct query *query = db ? db_query(db, schema_statement("attach/calls")) : NULL;
        if (!query)
            _exit(1);
        query_bind_text(query, 1, function);
        seen = query_step(query) ? query_integer(query, 0) : 0;
        query_close(query);
        db_close(db);
    }
    _exit(0);
}

/* Split FUNC:N at its last colon. Returns the N, or 0. */
static int64_t calls_split(char *function)
{
    char *colon = strrchr(function, ':'), *end = NULL;
    int64_t calls = colon && colon > function ? strtoll(colon + 1, &end, 10) : 0;

    const bool whole = end && !*end;

    if (!whole || calls < 1)
        return 0;
    *colon = 0;
    return calls;
}

/* ---- the command `attach` ------------------------------------------------ */

/* Wait until the recording is to end. */
static void record_on(struct launch *l, const struct session *session, const struct target *target)
{
    const uint64_t until = clock_monotonic_ns() + attach_given.duration_ns;
    char *function = attach_given.calls ? strdup(attach_given.calls) : NULL;
    pid_t counter = function ? counter_start(session->trace, function, calls_split(function)) : 0;
    bool over = false;

    while (!over && !stopped) {
        over = atomic_load(&session->file->leave) || !target_lives(target) ||
               (attach_given.duration_ns && clock_monotonic_ns() >= until) ||
               (counter && waitpid(counter, NULL, WNOHANG) == counter);
        launch_look(l);
        if (!over)
            pause_ms(LOOK_MS);
    }
    if (counter && kill(counter, SIGKILL) == 0)
        waitpid(counter, NULL, 0);
    free(function);
}

static void say_recorded(const struct session *session, const struct collector_result *said)
{
    if (said->torch_note[0])
        say_error("%s", said->torch_note);
    if (said->missing)
        say_error("%s is not complete: %s%s; `dyntrace report` lists %s", session->trace,
                  said->worst, said->missing > 1 ? ", and more" : "",
                  said->missing > 1 ? "all losses" : "it");
    if (isatty(2))
        say_error("%llu frames of %u process%s in %s", (unsigned long long)said->frames,
                  said->processes, said->processes == 1 ? "" : "es", session->trace);
}

/* Record TARGET. Returns the exit status. */
static int record(const struct injector *injector, const struct target *target)
{
    struct session session = SESSION_CLOSED;
    struct collector_result said = {0};
    struct launch l = {.link = -1};
    struct words *words = calloc(1, sizeof *words);
    bool redacted = false, joined = false, made = false;
    char *command;
    int status = 2;

    words_read(target, words);
    command = again_command(recording_options(), words->count, words->at, &redacted);
    if (trace_begin(&session, trace_name(target, words)) || launch_collector(&l, &session, command))
        goto done;
    launch_order(&l, &(struct collector_order){.what = ORDER_BEGAN, .pid = target->pid});
    made = true;
    joined = join(&session, injector, target);
    if (joined) {
        if (isatty(2))
            say_error("process %d is being recorded into %s; Ctrl-C ends that", (int)target->pid,
                      session.trace);
        record_on(&l, &session, target);
        stopped = 0;
    }
    leave(&session, injector, target);
    launch_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = target->pid});
    if (!trace_end(&l, &stopped, &said))
        goto done;
    if (said.error[0])
        say_error("%s", said.error);
    else if (joined)
        say_recorded(&session, &said);
    status = said.error[0] ? 1 : joined ? 0 : 2;
done:
    if (made && !joined) {
        unlink(session.trace);
        unlink(session.frames);
    }
    launch_close(&l);
    session_remove(&session);
    session_close(&session);
    free(command);
    free(words);
    return status;
}

/* Print that the process TARGET is being recorded already. */
static void say_busy(const struct target *target)
{
    say_error("attach: process %d is being recorded already; `dyntrace detach %d` ends a recording "
              "that attach began",
              (int)target->pid, (int)target->pid);
}

static bool options_fit(void)
{
    const struct session_options *options = recording_options();
    char *function = attach_given.calls ? strdup(attach_given.calls) : NULL;
    const bool bad = function && !calls_split(function);

    free(function);
    if (bad)
        say_error("attach: --calls %s: is not a function and a number of calls, such as step:100",
                  attach_given.calls);
    else if (options->keep_secrets && options->secret_count)
        say_error("attach: --redact leaves out what --no-redact keeps: give one of the two");
    else
        return true;
    return false;
}

static void handle_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < array_count(ending); i++)
        sigaction(ending[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int attach_main(int count, char **operands)
{
    struct target target;
    struct injector injector;
    struct session_options *options = recording_options();
    int status;

    if (!count)
        say_error("attach: no process given; `dyntrace attach --help` tells more");
    if (!count || !options_fit())
        return 2;
    if (!target_read(&target, operands[0], "attach"))
        return 2;
    if (target.session[0]) {
        say_busy(&target);
        return 2;
    }
    if (!inject_open(&injector, &target))
        return 2;
    options->attach_pid = target.own_pid;
    options->root = target.root;
    handle_signals();
    status = record(&injector, &target);
    inject_close(&injector);
    return status;
}

const struct command command_attach = {
    .name = "attach",
    .summary = "record a program that runs already",
    .operands = "PID",
    .about =
        "Records every Python frame that process PID and its children evaluate from now on, until "
        "Ctrl-C, `detach`, --for, --calls or its end. Frames that are running are in the trace as "
        "inherited. The process goes on as if nothing had happened.\n"
        "\n" CPYTHON_REMOTE_EXEC_NAME
        " and later is reached by sys.remote_exec(), older ones with gdb. A program "
        "that was started with `run --standby` needs neither.",
    .options = attach_options,
    .operands_most = 1,
    .too_many = "one process at a time",
    .run = attach_main,
};

/* ---- the command `detach` ------------------------------------------------ */

/* Set `leave` in the session in DIRECTORY. Returns 0, or -1 with errno. */
static int order_leave(const char *directory)
{
    const uint32_t one = 1;
    struct session_file file = {0};
    int fd = session_open_in(directory, "session", O_RDWR);
    int failed = -1;

    if (fd < 0)
        return -1;
    errno = ENOTTY; /* the error if the session belongs to `run` or dyntrace.record() */
    if (pread(fd, &file, sizeof file, 0) == sizeof file && file.attach_pid)
        failed = pwrite(fd, &one, sizeof one, offsetof(struct session_file, leave)) == sizeof one
                     ? 0
                     : -1;
    close(fd);
    return failed;
}

/* Wait until the session in DIRECTORY is gone, at most MS. */
static bool session_wait(const char *directory, int ms)
{
    for (; ms > 0 && access(directory, F_OK) == 0; ms -= LOOK_MS)
        pause_ms(LOOK_MS);
    return access(directory, F_OK) != 0;
}

/* End the recording in DIRECTORY. `attach` does it, if it is there; if it was killed, its collector
 * does, once the process has left. */
static bool session_end(const char *directory, const struct injector *injector,
                        struct target *target)
{
    char why[WHY_BYTES];

    session_wait(directory, SIGNAL_MS + BLOCKED_MS);
    target_look(target);
    if (target->session[0])
        inject_run(injector, target, NULL, false, why);
    for (int ms = 0; target->session[0] && ms < ANSWER_MS; ms += LOOK_MS) {
        pause_ms(LOOK_MS);
        target_look(target);
    }
    return session_wait(directory, ANSWER_MS) && !target->session[0];
}

static int detach_main(int count, char **operands)
{
    struct target target;
    struct injector injector;
    char directory[2 * PATH_MAX];

    if (!count)
        say_error("detach: no process given; `dyntrace detach --help` tells more");
    if (!count || !target_read(&target, operands[0], "detach"))
        return 2;
    if (!target.session[0]) {
        say_error("detach: process %d is not being recorded", (int)target.pid);
        return 2;
    }
    if (!inject_open(&injector, &target))
        return 2;
    snprintf(directory, sizeof directory, "%s%s", target.root, target.session);
    if (order_leave(directory)) {
        say_error(
            "detach: process %d is not recorded by `dyntrace attach`: its recording ends with "
            "what began it",
            (int)target.pid);
        return 2;
    }
    if (session_end(directory, &injector, &target))
        return 0;
    say_error("detach: nobody ends the recording of process %d", (int)target.pid);
    return 1;
}

static const struct option detach_options[] = {
    OPTION_END,
};

const struct command command_detach = {
    .name = "detach",
    .summary = "end the recording that attach began",
    .operands = "PID",
    .about = "Ends the recording of process PID that `attach` began, and returns when the trace is "
             "complete. The process goes on without a hook.",
    .options = detach_options,
    .operands_most = 1,
    .too_many = "one process at a time",
    .run = detach_main,
};

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

static void note_signal(int number)
{
    (void)number;
    stopped = 1;
}

static void sleep_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* ---- reading the command line of the process that we attach to ----------- */

struct words {
    char text[1 << 16];
    char *at[WORDS_MOST];
    int count;
};

static void read_process_words(const struct target *target, struct words *words)
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

/* Return the name for the trace if -o is not given: the name of the script or module, otherwise of
 * the program. */
static const char *choose_trace_name(const struct target *target, const struct words *words)
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

static void note_recorded_process(void *context, const char *name, enum session_place place,
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

/* Wait at most MS milliseconds until no process of the session is recorded any more. Processes of
 * another user than TARGET's are ignored. Returns false if a process has not left. */
static bool wait_until_all_have_left(const struct session *session, const struct target *target,
                                     int ms)
{
    for (; ms >= 0; ms -= LOOK_MS) {
        struct members members = {0};
        struct target other;
        bool any = false;
        session_visit_processes(session, note_recorded_process, &members);
        list_each(member, &members.all)
            any |= target_read_same_user(&other, target, member->pid);
        list_free(&members.all);
        if (!any)
            return true;
        sleep_ms(LOOK_MS);
    }
    return false;
}

/* Ask the processes of the session to leave it. Without FORCE they are asked by SIGURG, and only if
 * they handle it. With FORCE they are asked by the other ways of inject_make_process_run(). If that
 * fails, WHY gets the reason. */
static void ask_processes_to_leave(const struct session *session, const struct injector *injector,
                                   const struct target *target, bool force, char *why)
{
    struct members members = {0};

    session_visit_processes(session, note_recorded_process, &members);
    list_each(member, &members.all) {
        struct target other;
        if (!target_read_same_user(&other, target, member->pid))
            continue;
        if (force)
            other.listens = false;
        else if (!other.listens)
            continue;
        if (!other.session[0])
            continue;
        inject_make_process_run(injector, &other, NULL, false, why);
    }
    list_free(&members.all);
}

/* Make all processes leave the session. Reports if a process does not leave in time. */
static void make_all_processes_leave(const struct session *session, const struct injector *injector,
                                     const struct target *target)
{
    char why[WHY_BYTES] = "";

    atomic_store(&session->file->leave, 1);
    ask_processes_to_leave(session, injector, target, false, why);
    if (wait_until_all_have_left(session, target, SIGNAL_MS))
        return;
    ask_processes_to_leave(session, injector, target, true, why);
    if (wait_until_all_have_left(session, target, ANSWER_MS))
        return;
    say_error("process %d, or a child of it, has not run any Python since: it leaves the recording "
              "when it does%s%s",
              (int)target->pid, *why ? "; it " : "", why);
}

/* ---- making the process join the session --------------------------------- */

/* Read the reason why the process could not join the session into ANSWER. Returns false if the
 * process has given no reason. */
static bool read_join_refusal(const struct session *session, char *answer, size_t room)
{
    int fd = session_open_in(session->directory, "attach.error", O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, answer, room - 1);

    if (fd >= 0)
        close(fd);
    answer[got > 0 ? got : 0] = 0;
    return fd >= 0 && got > 0;
}

/* Report ANSWER, the reason why the process could not join the session. */
static void report_join_refusal(const struct target *target, const char *answer)
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
        {"free-threaded",
         "runs in a free-threaded CPython, which cannot be attached to: record it from "
         "its start with `dyntrace run`"},
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

    session_visit_processes(session, note_recorded_process, &members);
    list_free(&members.all);
    return members.joined;
}

/* Wait until the process has joined the session. LATER: the process joins when it runs a pending
 * call. If that takes long, gdb also tries to make it join in a thread that sleeps in a system
 * call. If the process does not join, reports an error and returns false. */
static bool wait_until_joined(const struct session *session, const struct injector *injector,
                              const struct target *target, bool later)
{
    const char *directory = session->directory + strlen(target->root);
    char why[WHY_BYTES], answer[1000];
    int next_blocked = BLOCKED_MS;

    for (int ms = 0; ms < ANSWER_MS && !stopped; ms += LOOK_MS) {
        if (has_joined(session, target))
            return true;
        if (read_join_refusal(session, answer, sizeof answer)) {
            report_join_refusal(target, answer);
            return false;
        }
        if (!target_is_alive(target)) {
            say_error("attach: process %d has ended before it could be recorded", (int)target->pid);
            return false;
        }
        if (later && ms >= next_blocked) {
            inject_make_process_run(injector, target, directory, true, why);
            next_blocked *= 3;
        }
        sleep_ms(LOOK_MS);
    }
    inject_cancel_pending(injector, target);
    if (!stopped)
        say_error("attach: process %d does not come back to Python from what its main thread does "
                  "(a C function, or a system call, in which no Python can run): try again later, "
                  "or start it with `dyntrace run`",
                  (int)target->pid);
    return false;
}

static bool make_process_join(const struct session *session, const struct injector *injector,
                              const struct target *target)
{
    const char *directory = session->directory + strlen(target->root);
    char why[WHY_BYTES];
    enum inject_result result = inject_make_process_run(injector, target, directory, false, why);

    if (result == INJECT_CANNOT) {
        say_error("attach: process %d %s", (int)target->pid, why);
        return false;
    }
    return wait_until_joined(session, injector, target, result == INJECT_LATER);
}

/* ---- --calls: ending the recording after a number of calls --------------- */

/* Start a child that exits when TRACE has CALLS calls of FUNCTION. Returns the child's pid. */
static pid_t start_call_counter(const char *trace, const char *function, int64_t calls)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int64_t seen = 0; seen < calls; sleep_ms(seen < calls ? COUNT_MS : 0)) {
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

/* Split FUNCTION, such as "FUNC:100", at its last colon: cut the text there, and return the number.
 * Returns 0, and leaves the text unchanged, if it has another form. */
static int64_t cut_off_call_count(char *function)
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

/* Wait for an event that ends the recording: Ctrl-C, `detach`, --for, --calls, or TARGET's end. */
static void wait_for_end(struct launch *l, const struct session *session,
                         const struct target *target)
{
    const uint64_t until = clock_monotonic_ns() + attach_given.duration_ns;
    char *function = attach_given.calls ? strdup(attach_given.calls) : NULL;
    pid_t counter =
        function ? start_call_counter(session->trace, function, cut_off_call_count(function)) : 0;
    bool over = false;

    while (!over && !stopped) {
        over = atomic_load(&session->file->leave) || !target_is_alive(target) ||
               (attach_given.duration_ns && clock_monotonic_ns() >= until) ||
               (counter && waitpid(counter, NULL, WNOHANG) == counter);
        launch_replace_if_dead(l);
        if (!over)
            sleep_ms(LOOK_MS);
    }
    if (counter && kill(counter, SIGKILL) == 0)
        waitpid(counter, NULL, 0);
    free(function);
}

static void report_end_of_recording(const struct session *session,
                                    const struct collector_result *said)
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

/* Record the process TARGET until the recording ends. Returns the exit status. */
static int record_process(const struct injector *injector, const struct target *target)
{
    struct session session = SESSION_CLOSED;
    struct collector_result said = {0};
    struct launch l = {.link = -1};
    struct words *words = calloc(1, sizeof *words);
    bool redacted = false, joined = false, made = false;
    char *command;
    int status = 2;

    read_process_words(target, words);
    command = again_make_command(recording_options(), words->count, words->at, &redacted);
    if (recording_begin(&session, choose_trace_name(target, words)) ||
        launch_collector(&l, &session, command))
        goto done;
    launch_send_order(&l, &(struct collector_order){.what = ORDER_BEGAN, .pid = target->pid});
    made = true;
    joined = make_process_join(&session, injector, target);
    if (joined) {
        if (isatty(2))
            say_error("process %d is being recorded into %s; Ctrl-C ends that", (int)target->pid,
                      session.trace);
        wait_for_end(&l, &session, target);
        stopped = 0;
    }
    make_all_processes_leave(&session, injector, target);
    launch_send_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = target->pid});
    if (!recording_finish(&l, &stopped, &said))
        goto done;
    if (said.error[0])
        say_error("%s", said.error);
    else if (joined)
        report_end_of_recording(&session, &said);
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
static void report_already_recorded(const struct target *target)
{
    say_error("attach: process %d is being recorded already; `dyntrace detach %d` ends a recording "
              "that attach began",
              (int)target->pid, (int)target->pid);
}

static bool are_options_valid(void)
{
    const struct session_options *options = recording_options();
    char *function = attach_given.calls ? strdup(attach_given.calls) : NULL;
    const bool bad = function && !cut_off_call_count(function);

    free(function);
    if (bad)
        say_error("attach: --calls %s: is not a function and a number of calls, such as step:100",
                  attach_given.calls);
    else if (options->keep_secrets && options->secrets.count)
        say_error("attach: --redact leaves out what --no-redact keeps: give one of the two");
    else
        return true;
    return false;
}

static void catch_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = note_signal};

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
    if (!count || !are_options_valid())
        return 2;
    if (!target_read(&target, operands[0], "attach"))
        return 2;
    if (target.session[0]) {
        report_already_recorded(&target);
        return 2;
    }
    if (!inject_open(&injector, &target))
        return 2;
    options->attach_pid = target.own_pid;
    options->root = target.root;
    catch_signals();
    status = record_process(&injector, &target);
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

/* Set the flag `leave` in the file of the session in DIRECTORY, which asks `attach` to end the
 * session. Returns 0, or -1 with errno. */
static int set_leave_flag(const char *directory)
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

/* Wait at most MS milliseconds until the session in DIRECTORY is removed. Returns whether it is. */
static bool wait_session_removed(const char *directory, int ms)
{
    for (; ms > 0 && access(directory, F_OK) == 0; ms -= LOOK_MS)
        sleep_ms(LOOK_MS);
    return access(directory, F_OK) != 0;
}

/* Wait until the recording in DIRECTORY has ended. A running `attach` ends it. If `attach` no
 * longer runs, make the process leave, after which the collector ends the recording. Returns false
 * if the recording goes on. */
static bool wait_recording_end(const char *directory, const struct injector *injector,
                               struct target *target)
{
    char why[WHY_BYTES];

    wait_session_removed(directory, SIGNAL_MS + BLOCKED_MS);
    target_reread_session(target);
    if (target->session[0])
        inject_make_process_run(injector, target, NULL, false, why);
    for (int ms = 0; target->session[0] && ms < ANSWER_MS; ms += LOOK_MS) {
        sleep_ms(LOOK_MS);
        target_reread_session(target);
    }
    return wait_session_removed(directory, ANSWER_MS) && !target->session[0];
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
    if (set_leave_flag(directory)) {
        say_error(
            "detach: process %d is not recorded by `dyntrace attach`: its recording ends with "
            "what began it",
            (int)target.pid);
        return 2;
    }
    if (wait_recording_end(directory, &injector, &target))
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

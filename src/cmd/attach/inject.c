/* cmd/attach/inject.c -- makes a running process run a few lines of Python. See attach.h.
 *
 * Runs in: the command line.
 *
 * Ways that are tried, in this order:
 *
 *   1. SIGURG, if our extension handles it in the process, which is then on standby, or in a
 *      session of `attach`.
 *   2. sys.remote_exec() (PEP 768), called by the process's own interpreter.
 *   3. gdb, with src/cmd/ask/attach_gdb.py.
 *
 * If root attaches to another user's process, this command becomes that user, because it
 * reads files that the process may have written. A helper process keeps root's rights for
 * sys.remote_exec() and gdb. The helper accepts only three requests: join, leave, cancel. */
#include "cmd/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/library.h"
#include "lib/say.h"
#include "session_check.h"
#include "versions.h"

extern const char attach_start_py[], attach_gdb_py[];
/* the library that is preloaded into gdb, made from cmd/attach/gdb_ptrace.c */
extern const unsigned char gdb_ptrace_so[];
extern const unsigned gdb_ptrace_so_bytes;

enum {
    WHY_BYTES = 600,
    ANSWER_BYTES = 1 << 16,
};

#define WAYS_OUT                                                                               \
    "start the program with `dyntrace run --standby`, which needs neither gdb nor ptrace, or " \
    "record it from its start with `dyntrace run`"

struct request {
    pid_t pid;
    bool blocked, cancel;
    char directory[256]; /* "": leave */
};

struct reply {
    enum inject_result result;
    char why[WHY_BYTES];
};

/* ---- making the Python code that the process runs ------------------------ */

static void write_as_hex(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, "%02x", (unsigned char)*text);
}

/* Return the path of inject/, the directory of sitecustomize.py, as TARGET sees it. Returns NULL if
 * TARGET does not see it. Owned by the callee. */
static const char *find_directory_of_sitecustomize(const struct target *target)
{
    static const char *const places[] = {
        "/usr/lib/dyntrace/inject",
        "/usr/local/lib/dyntrace/inject",
        "/usr/local/lib/python3.%d/site-packages/dyntrace/inject",
        "/usr/lib/python3/dist-packages/dyntrace/inject",
    };
    static char path[PATH_MAX];
    char seen[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/inject", library_directory(NULL));
    for (size_t i = 0; i <= sizeof places / sizeof *places; i++) {
        snprintf(seen, sizeof seen, "%s%s/sitecustomize.py", target->root, path);
        if (access(seen, R_OK) == 0)
            return path;
        if (i < sizeof places / sizeof *places)
            snprintf(path, sizeof path, places[i], target->minor);
    }
    return NULL;
}

/* Return Python code that makes the process join the session in DIRECTORY, or leave its session if
 * DIRECTORY is "". The code is in two pieces: the result, and *AFTER. Between them the caller puts
 * the address and the size of the memory page that holds the code, in hexadecimal. If the code is
 * in no such page, the caller puts "0, 0". The caller frees both pieces. */
static char *make_python_code(const char *directory, const char *inject, char **after)
{
    char *before = NULL;
    size_t bytes;
    FILE *out = open_memstream(&before, &bytes);

    fputs("exec(compile(bytes.fromhex('", out);
    write_as_hex(out, "session, inject, page, size = '");
    for (const char *p = directory; *p; p++)
        fprintf(out, "%02x%02x", "0123456789abcdef"[(unsigned char)*p >> 4],
                "0123456789abcdef"[*p & 15]);
    write_as_hex(out, "', '");
    for (const char *p = inject; *p; p++)
        fprintf(out, "%02x%02x", "0123456789abcdef"[(unsigned char)*p >> 4],
                "0123456789abcdef"[*p & 15]);
    write_as_hex(out, "', ");
    fclose(out);
    out = open_memstream(after, &bytes);
    write_as_hex(out, "\n");
    write_as_hex(out, attach_start_py);
    fputs("'),'<dyntrace>','exec'),{})", out);
    fclose(out);
    return before;
}

/* Become the user of TARGET irrevocably. Returns false, with errno set, on error. */
static bool become_user(const struct target *target)
{
    const struct passwd *user = getpwuid(target->uid);
    int failed;

    if (geteuid() == target->uid)
        return true;
    failed = user ? initgroups(user->pw_name, target->gid) : setgroups(0, NULL);
    return !failed && setresgid(target->gid, target->gid, target->gid) == 0 &&
           setresuid(target->uid, target->uid, target->uid) == 0;
}

/* ---- running a program such as gdb as a child ---------------------------- */

/* Wait for the child PID. Returns its waitpid() status, or -1. */
static int wait_for_child(pid_t pid)
{
    int status = -1;

    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Read TEXT, cut to ROOM bytes, from FD until its end. */
static void read_until_end(int fd, char *text, size_t room)
{
    size_t length = 0;

    while (length < room - 1) {
        ssize_t got = read(fd, text + length, room - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    text[length] = 0;
}

/* In a child: execute ARGV, with SOURCE as descriptor 3. If AS is not NULL, run ARGV as the user of
 * the process AS, and in that process's namespaces if they are not ours. */
static void execute_as_user_of_process(const char *const *argv, int source, const struct target *as)
{
    const bool enters = as && *as->root;
    int pidfd = enters ? (int)syscall(SYS_pidfd_open, as->pid, 0) : -1;
    int status;
    pid_t pid = 0;

    if (enters && setns(pidfd, CLONE_NEWNS | CLONE_NEWPID))
        _exit(126);
    if (enters) /* setns() puts only later children into the pid namespace */
        pid = fork();
    if (pid) {
        status = wait_for_child(pid);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 126);
    }
    if (as && !become_user(as))
        _exit(126);
    if (source == 3)
        fcntl(source, F_SETFD, 0);
    else
        dup2(source, 3);
    unsetenv("DEBUGINFOD_URLS");
    unsetenv("LD_PRELOAD"); /* gdb hangs if a sanitizer's runtime is preloaded into it */
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(errno == ENOENT ? 127 : 126);
}

/* Run ARGV, which reads CODE from descriptor 3, and store the program's output in TEXT. The program
 * runs in a new terminal session. Otherwise Ctrl-C could kill it while it has stopped the traced
 * process. AS: see execute_as_user_of_process(). Returns the program's waitpid() status, or -1 with
 * errno. */
static int run_program(const char *const *argv, const char *code, const struct target *as,
                       char *text, size_t room)
{
    int ends[2], source = memfd_create("attach", MFD_CLOEXEC);
    size_t length = strlen(code);
    pid_t pid;

    if (pwrite(source, code, length, 0) != (ssize_t)length || pipe2(ends, O_CLOEXEC))
        return -1;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        setsid();
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execute_as_user_of_process(argv, source, as);
    }
    close(ends[1]);
    close(source);
    read_until_end(ends[0], text, pid > 0 ? room : 1);
    close(ends[0]);
    return wait_for_child(pid);
}

/* ---- making the process run Python code by gdb --------------------------- */

/* Does the kernel allow us to debug process PID? If not, stores the reason in WHY. A child tries
 * PTRACE_SEIZE, which does not stop the process. The child's end detaches from the process. */
static bool is_tracing_allowed(pid_t pid, char *why)
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? errno : 0);
    status = wait_for_child(child);
    if (status == 0)
        return true;
    snprintf(why, WHY_BYTES,
             "may not be debugged (ptrace: %s; kernel.yama.ptrace_scope, seccomp or a missing "
             "CAP_SYS_PTRACE forbid it): run this command as root, or " WAYS_OUT,
             strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EPERM));
    return false;
}

/* Address of the code that gdb has put into the traced process for a pending call, or 0 if there is
 * none. */
static uint64_t pending_page;

static enum inject_result run_by_gdb(const struct target *target, const char *before,
                                     const char *after, bool blocked, char *why)
{
    static const char start[] = "python exec(open('/proc/self/fd/3').read())";
    int made = memfd_create("gdb_ptrace", MFD_CLOEXEC);
    /* use a number from 4 on, because gdb reads the code from descriptor 3 */
    int library = fcntl(made, F_DUPFD, 4);
    bool is_whole = write(made, gdb_ptrace_so, gdb_ptrace_so_bytes) == gdb_ptrace_so_bytes;
    char *preload = say_print(is_whole ? "LD_PRELOAD=/proc/self/fd/%d" : "--", library);
    const char *const argv[] = {"env",
                                preload,
                                "gdb",
                                "-q",
                                "-nx",
                                "-nh",
                                "-batch",
                                "-iex",
                                "set auto-load no",
                                "-iex",
                                "set debuginfod enabled off",
                                "-iex",
                                "set print thread-events off",
                                "-ex",
                                start,
                                NULL};
    char *answer = malloc(ANSWER_BYTES), *line;
    char *code =
        say_print("pid, blocked = %d, %s\nbefore = \"%s\"\nafter = \"%s\"\n%s", (int)target->pid,
                  blocked ? "True" : "False", before, after, attach_gdb_py);
    enum inject_result result = INJECT_CANNOT;
    int status = run_program(argv, code, NULL, answer, ANSWER_BYTES);

    free(code);
    free(preload);
    close(made);
    close(library);
    line = strstr(answer, "\nattach: ");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        snprintf(why, WHY_BYTES,
                 "needs gdb, which is not installed, to get into Pythons "
                 "before " CPYTHON_REMOTE_EXEC_NAME ": install it (apt install gdb), or " WAYS_OUT);
    } else if (!line) {
        snprintf(why, WHY_BYTES, "could not be reached with gdb, which says: %.200s", answer);
        why[strcspn(why, "\n")] = 0;
    } else if (!strncmp(line + 9, "done", 4)) {
        result = INJECT_DONE;
    } else if (sscanf(line + 9, "later %lu", &pending_page) == 1) {
        result = INJECT_LATER;
    } else {
        line[9 + strcspn(line + 9, "\n")] = 0;
        snprintf(why, WHY_BYTES, "%.300s; try again, or " WAYS_OUT, line + 9 + strlen("cannot "));
    }
    free(answer);
    return result;
}

/* ---- making the process run Python code by sys.remote_exec() ------------- */

/* Make TARGET run BEFORE and AFTER by sys.remote_exec(), from a file in the session's DIRECTORY.
 * Returns false if this way does not work. */
static bool run_by_remote_exec(const struct target *target, const char *directory,
                               const char *before, const char *after)
{
    static const char start[] = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
    const bool elsewhere = *target->root;
    char number[16], script[PATH_MAX], seen[PATH_MAX + 64], program[64], answer[1000];
    const char *argv[] = {target->exe, "-I", "-S", "-c", start, number, script, NULL};
    int status, fd;
    FILE *out;

    if (target->minor < CPYTHON_REMOTE_EXEC || !target->python)
        return false;
    snprintf(script, sizeof script, "%.255s/attach.py", directory);
    snprintf(seen, sizeof seen, "%s%s", target->root, directory);
    fd = session_open_in(seen, "attach.py", O_WRONLY | O_CREAT | O_TRUNC);
    out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return false;
    fprintf(out, "%s%s%s\n", before, "302c2030" /* "0, 0" */, after);
    fclose(out);
    snprintf(number, sizeof number, "%u", elsewhere ? target->own_pid : (unsigned)target->pid);
    snprintf(program, sizeof program, "/proc/%d/exe", (int)target->pid);
    if (!elsewhere && access(target->exe, X_OK))
        argv[0] = program; /* the program's file has been replaced since the process started */
    status = run_program(argv, "", target, answer, sizeof answer);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- choosing between sys.remote_exec() and gdb -------------------------- */

static enum inject_result run_by_remote_exec_or_gdb(const struct target *target,
                                                    const struct request *request, char *why)
{
    const char *session = *request->directory ? request->directory : target->session;
    const char *inject = find_directory_of_sitecustomize(target);
    enum inject_result result;
    char *before, *after;

    if (!inject) {
        snprintf(
            why, WHY_BYTES,
            "sees other files than we do, and no dyntrace among them: install the same version "
            "there, for example as %s, or run this command there",
            library_directory(NULL));
        return INJECT_CANNOT;
    }
    before = make_python_code(request->directory, inject, &after);
    if (!request->blocked && run_by_remote_exec(target, session, before, after))
        result = INJECT_LATER;
    else if (!is_tracing_allowed(target->pid, why))
        result = INJECT_CANNOT;
    else
        result = run_by_gdb(target, before, after, request->blocked, why);
    free(before);
    free(after);
    return result;
}

/* Cancel the pending call that run_by_gdb() added to the process: replace the call's code by the
 * empty string. */
static void cancel_pending_call(const struct target *target)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/mem", (int)target->pid);
    fd = pending_page && target_is_alive(target) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (pwrite(fd, "", 1, (off_t)pending_page) != 1) {
        /* the pending call has run already, and has unmapped the page */
    }
    close(fd);
    pending_page = 0;
}

/* ---- the helper process, which keeps root's rights ----------------------- */

static void serve_requests(int link, const struct target *target)
{
    struct request request;

    while (recv(link, &request, sizeof request, 0) == sizeof request) {
        struct reply reply = {INJECT_CANNOT, "belongs to another user by now"};
        struct target other;
        request.directory[sizeof request.directory - 1] = 0;
        if (request.cancel)
            cancel_pending_call(target);
        else if (target_read_same_user(&other, target, request.pid))
            reply.result = run_by_remote_exec_or_gdb(&other, &request, reply.why);
        send(link, &reply, sizeof reply, MSG_NOSIGNAL);
    }
}

bool inject_open(struct injector *injector, const struct target *target)
{
    int ends[2];
    pid_t pid;

    injector->link = -1;
    if (geteuid() == target->uid)
        return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        say_error("attach: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        setsid();
        serve_requests(ends[1], target);
        _exit(0);
    }
    close(ends[1]);
    injector->link = ends[0];
    if (pid < 0 || !become_user(target)) {
        say_error("attach: cannot become the user of process %d: %s", (int)target->pid,
                  strerror(errno));
        return false;
    }
    return true;
}

void inject_close(struct injector *injector)
{
    if (injector->link >= 0)
        close(injector->link);
    injector->link = -1;
}

static enum inject_result send_request_and_wait(const struct injector *injector,
                                                const struct target *target,
                                                const struct request *request, char *why)
{
    struct reply reply = {INJECT_CANNOT, "is out of reach"};

    if (injector->link < 0) {
        if (request->cancel)
            cancel_pending_call(target);
        return request->cancel ? INJECT_DONE : run_by_remote_exec_or_gdb(target, request, why);
    }
    if (send(injector->link, request, sizeof *request, MSG_NOSIGNAL) < 0 ||
        recv(injector->link, &reply, sizeof reply, 0) != sizeof reply)
        reply.result = INJECT_CANNOT;
    memcpy(why, reply.why, sizeof reply.why);
    return reply.result;
}

enum inject_result inject_make_process_run(const struct injector *injector,
                                           const struct target *target, const char *directory,
                                           bool blocked, char *why)
{
    struct request request = {.pid = target->pid, .blocked = blocked};

    why[0] = 0;
    if (target->listens && !blocked) {
        if (kill(target->pid, SIGURG) == 0)
            return INJECT_LATER;
    }
    snprintf(request.directory, sizeof request.directory, "%s", directory ? directory : "");
    return send_request_and_wait(injector, target, &request, why);
}

void inject_cancel_pending(const struct injector *injector, const struct target *target)
{
    const struct request request = {.cancel = true};
    char why[WHY_BYTES];

    send_request_and_wait(injector, target, &request, why);
}

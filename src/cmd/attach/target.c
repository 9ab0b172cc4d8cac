/* cmd/attach/target.c -- reads what /proc tells about a process. See cmd/attach/attach.h.
 *
 * Runs in: the command line. */
#include "cmd/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/process.h"
#include "inject.h"
#include "lib/say.h"
#include "session_check.h"
#include "versions.h"

enum {
    STOPS_MS = 1000, /* how long a process may stay in state D, an uninterruptible system call */
    LOOK_MS = 20,
};

/* Values read from /proc/PID/status. */
struct status {
    char state;
    unsigned tracer, uid, gid, own_pid;
    /* signals that the process handles: bit N - 1 is set if signal N has a handler */
    uint64_t caught;
};

static bool status_read(pid_t pid, struct status *status)
{
    char path[64], line[512];
    FILE *file;

    *status = (struct status){.own_pid = (unsigned)pid};
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *last = strrchr(line, '\t');
        sscanf(line, "State: %c", &status->state);
        sscanf(line, "TracerPid: %u", &status->tracer);
        sscanf(line, "Uid: %*u %u", &status->uid);
        sscanf(line, "Gid: %*u %u", &status->gid);
        sscanf(line, "SigCgt: %lx", &status->caught);
        if (last && !strncmp(line, "NSpid:", 6))
            status->own_pid = (unsigned)strtoul(last, NULL, 10);
    }
    if (file)
        fclose(file);
    return status->state;
}

bool target_is_alive(const struct target *target)
{
    return process_is_same((uint32_t)target->pid, target->started);
}

/* ---- what the process's memory map tells: session, CPython's version ----- */

/* If PATH, a file that the process maps, is a ring file, store the directory of the session that it
 * belongs to in SESSION. */
static void find_session(const char *path, char session[PATH_MAX])
{
    const char *file = strrchr(path, '/');
    size_t length = strlen(path);
    const bool ring = length > 5 && !strncmp(path + length - 5, ".ring", 5);

    if (!ring || !file)
        return;
    snprintf(session, PATH_MAX, "%.*s", (int)(file - path), path);
    if (!session_check_name(session))
        session[0] = 0;
}

/* If the file name PATH tells a version of CPython, store the minor version in MINOR: 12 for
 * libpython3.12.so and for _json.cpython-312-x86_64-linux-gnu.so. */
static void find_python_minor(const char *path, int *minor)
{
    const char *name = basename(path);
    const char *tag = strstr(name, ".cpython-3");
    int found = 0;

    if (sscanf(name, "libpython3.%d", &found) != 1 && tag)
        sscanf(tag, ".cpython-3%d", &found);
    if (found)
        *minor = found;
}

void target_reread_session(struct target *target)
{
    char path[64], line[PATH_MAX + 128];
    struct status status;
    bool extension = false;
    FILE *maps;

    target->session[0] = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)target->pid);
    maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps)) {
        char *name = strchr(line, '/');
        if (!name)
            continue;
        name[strcspn(name, "\n")] = 0;
        find_python_minor(name, &target->minor);
        extension |= !strncmp(basename(name), "_dyntrace.", 10);
        if (!target->session[0])
            find_session(name, target->session);
    }
    if (maps)
        fclose(maps);
    target->listens =
        extension && status_read(target->pid, &status) && status.caught >> (SIGURG - 1) & 1;
}

/* ---- can we attach to the process? --------------------------------------- */

/* Does the process run CPython? CPython may be a mapped library, or linked into the program. */
static bool has_cpython(const struct target *target)
{
    static const char function[] = "PyRun_SimpleString";
    char path[64];
    struct stat status;
    void *program = MAP_FAILED;
    bool has = false;
    int fd;

    if (target->minor)
        return true;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)target->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0)
        program = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (program != MAP_FAILED) {
        has = memmem(program, (size_t)status.st_size, function, sizeof function);
        munmap(program, (size_t)status.st_size);
    }
    if (fd >= 0)
        close(fd);
    return has;
}

/* Does process PID stay in a system call that no signal interrupts (state D) for STOPS_MS? */
static bool is_stuck(pid_t pid)
{
    struct status status;

    for (int ms = 0; ms < STOPS_MS; ms += LOOK_MS) {
        if (!status_read(pid, &status) || status.state != 'D')
            return false;
        usleep(LOOK_MS * 1000);
    }
    return true;
}

/* Return why the process cannot be attached to or, if LEAVES, detached from. Returns NULL if it
 * can. */
static const char *find_refusal(const struct target *target, const struct status *status,
                                bool leaves)
{
    static char text[300];
    const struct passwd *user = getpwuid(status->uid);
    const uid_t own = geteuid();

    if (own && own != status->uid) {
        snprintf(text, sizeof text,
                 "belongs to another user (%s); only that user and root may do this",
                 user ? user->pw_name : "?");
        return text;
    }
    if (status->state == 'Z' || status->state == 'X')
        return "has ended already";
    if (leaves)
        return NULL;
    if (status->state == 'T')
        return "is stopped; `kill -CONT` lets it go on, then attach again";
    if (status->tracer) {
        snprintf(
            text, sizeof text,
            "is being debugged by process %u, and a process has one debugger at most; end that "
            "one first",
            status->tracer);
        return text;
    }
    if (!*target->exe && !own)
        return "shows no program: it is a thread of the kernel, or protected from this user";
    if (!*target->exe)
        return "does not let its own user look at it (it is not dumpable): attach to it as root";
    if (!has_cpython(target))
        return "is not Python";
    if (target->minor && !versions_is_supported("cpython", 3, target->minor)) {
        snprintf(text, sizeof text,
                 "is CPython 3.%d, which is not supported; use " CPYTHON_SUPPORTED, target->minor);
        return text;
    }
    if (is_stuck(target->pid))
        return "does not come back from a system call that cannot be interrupted (state D); try "
               "again when it has";
    return NULL;
}

/* Does process PID see other files than we do? It does in another mount namespace, or with another
 * root directory. */
static bool sees_other_files(pid_t pid)
{
    char path[64], theirs[64] = "", ours[64] = "";
    struct stat root, own;

    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    if (readlink(path, theirs, sizeof theirs - 1) < 0 ||
        readlink("/proc/self/ns/mnt", ours, sizeof ours - 1) < 0)
        return false;
    if (strcmp(theirs, ours))
        return true;
    snprintf(path, sizeof path, "/proc/%d/root/.", (int)pid);
    if (stat(path, &root) || stat("/", &own))
        return false;
    return root.st_dev != own.st_dev || root.st_ino != own.st_ino;
}

/* Fill the members of TARGET other than `pid` and `started`. */
static void target_fill(struct target *target, const struct status *status)
{
    char path[64];

    target->uid = status->uid;
    target->gid = status->gid;
    target->own_pid = status->own_pid;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)target->pid);
    if (readlink(path, target->exe, sizeof target->exe - 1) < 0)
        target->exe[0] = 0;
    target->python = python_is_interpreter_name(target->exe);
    sscanf(basename(target->exe), "python3.%d", &target->minor);
    target_reread_session(target);
    if (sees_other_files(target->pid))
        snprintf(target->root, sizeof target->root, "/proc/%d/root", (int)target->pid);
}

bool target_read_same_user(struct target *other, const struct target *target, pid_t pid)
{
    struct status status;
    uint32_t parent;

    *other = (struct target){.pid = pid};
    if (pid <= 0 || !process_read_parent_and_start((uint32_t)pid, &parent, &other->started))
        return false;
    if (!status_read(pid, &status) || status.state == 'Z')
        return false;
    if (status.uid != target->uid)
        return false;
    target_fill(other, &status);
    return true;
}

bool target_read(struct target *target, const char *word, const char *command)
{
    struct status status;
    char *end;
    long pid = strtol(word, &end, 10);
    const char *why;
    uint32_t parent;
    bool is_pid;

    *target = (struct target){.pid = (pid_t)pid};
    is_pid = !*end && pid > 0 && pid <= INT32_MAX;
    if (!is_pid) {
        say_error("%s: %s: is not a process id", command, word);
        return false;
    }
    if (!process_read_parent_and_start((uint32_t)pid, &parent, &target->started) ||
        !status_read(target->pid, &status)) {
        say_error("%s: process %ld: there is no such process", command, pid);
        return false;
    }
    target_fill(target, &status);
    why = find_refusal(target, &status, !strcmp(command, "detach"));
    if (why) {
        say_error("%s: process %ld %s", command, pid, why);
        return false;
    }
    return true;
}

/* collector/process.c -- looks up processes in /proc. See collector/process.h.
 *
 * Runs in: the command line and the collector. */
#include "collector/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "namespaces.h"

/* Does /proc have the pids of our own pid namespace? It does not if a recorder was started in a new
 * namespace, and nobody mounted a /proc for that namespace. */
static bool is_proc_of_own_namespace(void)
{
    char link[32] = "";

    return readlink("/proc/self", link, sizeof link - 1) > 0 && strtol(link, NULL, 10) == getpid();
}

/* Read /proc/PID/stat into BUFFER. Returns where the fields after the command's name begin, because
 * the name may have spaces. Returns NULL if there is no such process. */
static const char *read_stat_fields(uint32_t pid, char buffer[1024])
{
    char path[64], *field;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    fd = is_proc_of_own_namespace() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    got = fd < 0 ? -1 : read(fd, buffer, 1023);
    if (fd >= 0)
        close(fd);
    buffer[got > 0 ? got : 0] = 0;
    field = strrchr(buffer, ')');
    return field ? field + 1 : NULL;
}

bool process_read_parent_and_start(uint32_t pid, uint32_t *parent, uint64_t *started)
{
    char buffer[1024];
    const char *fields = read_stat_fields(pid, buffer);

    return fields &&
           sscanf(fields,
                  " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
                  parent, started) == 2;
}

bool process_is_stopped(uint32_t pid)
{
    char buffer[1024];
    const char *fields = read_stat_fields(pid, buffer);

    return fields && !strncmp(fields, " T", 2);
}

int process_open_pidfd(uint32_t pid, uint64_t started)
{
    int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    uint64_t now;
    uint32_t parent;

    if (fd < 0 || !started)
        return fd;
    /* our process has ended, because the pid belongs to another process now */
    if (process_read_parent_and_start(pid, &parent, &now) && now != started) {
        close(fd);
        return -1;
    }
    return fd;
}

bool process_is_same(uint32_t pid, uint64_t started)
{
    int watch = process_open_pidfd(pid, started);
    bool lives = process_is_alive(watch);

    if (watch >= 0)
        close(watch);
    return lives;
}

bool process_is_alive(int watch)
{
    struct pollfd fd = {watch, POLLIN, 0};

    return watch >= 0 && poll(&fd, 1, 0) == 0;
}

/* ---- find the process that a file belongs to ---- */

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

/* Return the pid of process PID in its innermost pid namespace, or 0 if that is not known. */
static uint32_t pid_in_innermost_namespace(uint32_t pid)
{
    char path[64], line[1024];
    uint32_t found = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%u/status", pid);
    status = fopen(path, "re");
    if (!status)
        return 0;
    while (!found && fgets(line, sizeof line, status)) {
        const char *last = strrchr(line, '\t');
        if (last && !strncmp(line, "NSpid:", 6))
            found = (uint32_t)strtoul(last, NULL, 10);
    }
    fclose(status);
    return found;
}

/* Does LINE of /proc/PID/maps map the file of CLAIM? On some filesystems /proc shows another device
 * for a file, so the device is not compared. */
static bool is_mapping_of(const char *line, const struct process_claim *claim)
{
    const char *name = strrchr(line, '/');
    unsigned long inode = 0;

    return name && !strncmp(name + 1, claim->file, strlen(claim->file)) &&
           sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == claim->inode;
}

static enum answer has_process_mapped_file(uint32_t pid, const struct process_claim *claim)
{
    enum answer answer = ANSWER_NO;
    char path[64], line[PATH_MAX + 128];
    bool unreadable;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    maps = fopen(path, "re");
    if (!maps)
        return errno == ENOENT ? ANSWER_NO : ANSWER_UNKNOWN;
    errno = 0;
    while (answer == ANSWER_NO && fgets(line, sizeof line, maps))
        if (is_mapping_of(line, claim))
            answer = ANSWER_YES;
    unreadable = errno && errno != ESRCH;
    if (unreadable && answer == ANSWER_NO)
        answer = ANSWER_UNKNOWN;
    fclose(maps);
    return answer;
}

/* Is process PID the one that CLAIM describes? STARTED is its start time, or 0 if not known. */
static enum answer does_process_match_claim(const struct process_claim *claim, uint32_t pid,
                                            uint64_t started)
{
    char name[16];
    bool alike = started && started == claim->started;
    uint32_t own_pid = pid_in_innermost_namespace(pid);
    uint64_t namespace;
    bool known; /* true if we know the pid namespace of PID and that of the claim */
    enum answer mapped;

    snprintf(name, sizeof name, "%u", pid);
    namespace = namespace_read_pid_namespace(name);
    known = namespace && claim->namespace;
    if (own_pid && own_pid != claim->pid)
        return ANSWER_NO;
    if (known && namespace != claim->namespace)
        return ANSWER_NO;
    if (known && alike)
        return ANSWER_YES;
    mapped = has_process_mapped_file(pid, claim);
    return mapped == ANSWER_UNKNOWN && alike ? ANSWER_YES : mapped;
}

/* Fill in FOUND if process PID is the one that CLAIM describes. The pidfd is opened first: as
 * long as it is open, no other process can get this pid, so what is read in /proc is about this
 * process. */
static enum answer open_process_if_it_matches(const struct process_claim *claim, uint32_t pid,
                                              struct process_found *found)
{
    int watch = (int)syscall(SYS_pidfd_open, pid, 0);
    uint64_t started = 0;
    uint32_t parent;
    enum answer answer;

    if (watch < 0)
        return errno == ESRCH ? ANSWER_NO : ANSWER_UNKNOWN;
    if (!process_read_parent_and_start(pid, &parent, &started))
        started = 0;
    answer = does_process_match_claim(claim, pid, started);
    if (answer == ANSWER_YES)
        *found = (struct process_found){pid, started, watch};
    else
        close(watch);
    return answer;
}

/* Search /proc for the process that CLAIM describes. */
static enum process_sight search_all_processes(const struct process_claim *claim,
                                               struct process_found *found)
{
    enum process_sight sight = PROCESS_HIDDEN;
    DIR *directory = opendir("/proc");
    struct dirent *entry;

    if (!directory)
        return sight;
    while (sight != PROCESS_SEEN && (entry = readdir(directory))) {
        uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        bool may_be =
            isdigit((unsigned char)*entry->d_name) && pid_in_innermost_namespace(pid) == claim->pid;
        if (may_be && open_process_if_it_matches(claim, pid, found) == ANSWER_YES)
            sight = PROCESS_SEEN;
    }
    closedir(directory);
    return sight;
}

/* Find a process that CLAIM describes and that is in our own pid namespace. It sees the same pid as
 * we do. */
static enum process_sight find_process_in_own_namespace(const struct process_claim *claim,
                                                        struct process_found *found)
{
    uint32_t parent;

    *found = (struct process_found){claim->pid, claim->started, -1};
    found->watch = (int)syscall(SYS_pidfd_open, claim->pid, 0);
    if (found->watch < 0)
        return errno == ESRCH ? PROCESS_ENDED : PROCESS_HIDDEN;
    if (!process_read_parent_and_start(claim->pid, &parent, &found->started))
        return PROCESS_SEEN;
    if (!claim->started || found->started == claim->started)
        return PROCESS_SEEN;
    /* The start times differ: another process has the pid now, or the process reads another clock
     * in its time namespace. */
    switch (has_process_mapped_file(claim->pid, claim)) {
    case ANSWER_YES:
        return PROCESS_SEEN;
    case ANSWER_NO:
        close(found->watch);
        *found = (struct process_found){claim->pid, claim->started, -1};
        return PROCESS_ENDED;
    default:
        close(found->watch);
        *found = (struct process_found){.watch = -1};
        return PROCESS_HIDDEN;
    }
}

enum process_sight process_find(const struct process_claim *claim, struct process_found *found)
{
    uint64_t ours = namespace_read_pid_namespace("self");

    if (ours && claim->namespace == ours)
        return find_process_in_own_namespace(claim, found);
    *found = (struct process_found){.watch = -1};
    if (!is_proc_of_own_namespace())
        return PROCESS_HIDDEN;
    if (!claim->namespace && open_process_if_it_matches(claim, claim->pid, found) == ANSWER_YES)
        return PROCESS_SEEN;
    return search_all_processes(claim, found);
}

bool process_file_is_used(int fd)
{
    /* While we hold a lease on the file, a process that opens it makes the kernel send us SIGIO. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    bool granted;

    sigaction(SIGIO, &ignore, &before);
    /* the kernel grants a write lease only if no other process has the file open or mapped */
    granted = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    if (granted)
        fcntl(fd, F_SETLEASE, F_UNLCK);
    sigaction(SIGIO, &before, NULL);
    return !granted;
}

/* session.c -- the directory through which a recording is made. See session.h.
 *
 * Runs in: the command line and the collector. */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "say.h"

enum {
    RING_BYTES = 16 << 20,           /* a process's first ring: 50 ms of frames at full speed */
    BUDGET_BYTES = 64 << 20,         /* rings of one process; see tracer_ring.c */
    SHARED_ROOM = 48 << 20,          /* less free than this: not in /dev/shm */
    SESSION_FILE_MAX = 1 << 20,
};

static const char shared_memory[] = "/dev/shm";

const char *session_path(const struct session *s, const char *name)
{
    static char path[sizeof s->directory + 300];

    snprintf(path, sizeof path, "%s/%s", s->directory, name);
    return path;
}

enum session_clock session_clock_choose(void)
{
#if defined __aarch64__
    return SESSION_TSC; /* cntvct is constant by the architecture */
#else
    char name[16] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        if (read(fd, name, sizeof name - 1) < 0)
            name[0] = 0;
        close(fd);
    }
    if (!strncmp(name, "tsc", 3))
        return SESSION_TSC;
    /* A virtual machine may prefer its own clock source over a good counter. */
    if (!strncmp(name, "kvm-clock", 9) || !strncmp(name, "hyperv", 6)) {
        char *line = NULL;
        size_t room = 0;
        FILE *info = fopen("/proc/cpuinfo", "re");
        bool invariant = false;
        while (info && !invariant && getline(&line, &room, info) > 0)
            invariant = !strncmp(line, "flags", 5) && strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
        free(line);
        if (info)
            fclose(info);
        if (invariant)
            return SESSION_TSC;
    }
    return SESSION_MONOTONIC;
#endif
}

static int directory_make(char *path, size_t room, const char *base)
{
    snprintf(path, room, "%s/dyntrace-%u-XXXXXX", base, (unsigned)getuid());
    return mkdtemp(path) ? 0 : -1;
}

bool session_has_room(const char *path)
{
    struct statvfs status;

    return access(path, W_OK | X_OK) == 0 && statvfs(path, &status) == 0 &&
           (uint64_t)status.f_bavail * status.f_frsize >= SHARED_ROOM && !strchr(path, ':');
}

/* Write the session file and map it. */
static int file_make(struct session *s, const struct session_options *o)
{
    size_t bytes = sizeof *s->file + strlen(s->spill) + 1 + strlen(s->trace) + 1, at;
    struct timespec now;
    int fd;

    for (uint32_t i = 0; i < o->glob_count; i++)
        bytes += strlen(o->globs[i]) + 1;
    if (bytes > SESSION_FILE_MAX) {
        errno = E2BIG;
        return -1;
    }
    fd = open(session_path(s, "session"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    s->file = posix_fallocate(fd, 0, (off_t)bytes) ? MAP_FAILED
                                                   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (s->file == MAP_FAILED) {
        s->file = NULL;
        return -1;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(s->file->magic, RING_SESSION_MAGIC, sizeof s->file->magic);
    s->file->format = RING_FORMAT;
    s->file->bytes = (uint32_t)bytes;
    s->file->clock = session_clock_choose();
    s->file->frames = o->frames;
    s->file->max_depth = o->max_depth;
    s->file->torch = o->torch;
    s->file->min_duration_ns = o->min_duration_ns;
    s->file->globs = o->glob_count;
    s->file->ring_bytes = RING_BYTES;
    s->file->budget_bytes = BUDGET_BYTES;
    s->file->start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    s->file->start_clock = s->file->clock == SESSION_MONOTONIC ? clock_monotonic_ns() : clock_counter();
    at = 0;
    at += (size_t)sprintf(s->file->text + at, "%s", s->spill) + 1;
    at += (size_t)sprintf(s->file->text + at, "%s", s->trace) + 1;
    for (uint32_t i = 0; i < o->glob_count; i++)
        at += (size_t)sprintf(s->file->text + at, "%s", o->globs[i]) + 1;
    return 0;
}

int session_create(struct session *s, const char *trace, const struct session_options *options)
{
    char target[PATH_MAX + 64];
    const char *temporary = getenv("TMPDIR");
    int fd;

    *s = (struct session){.lock = -1};
    snprintf(s->trace, sizeof s->trace, "%s", trace);
    snprintf(s->frames, sizeof s->frames, "%s-frames", trace);
    if (!temporary || *temporary != '/' || strlen(temporary) > 200 || strchr(temporary, ':') || access(temporary, W_OK | X_OK))
        temporary = "/tmp";
    if ((!session_has_room(shared_memory) || directory_make(s->directory, sizeof s->directory, shared_memory)) &&
        directory_make(s->directory, sizeof s->directory, temporary)) {
        say_error("%s: cannot make a directory for the recording: %s; set TMPDIR to a place with room", temporary,
                  strerror(errno));
        s->directory[0] = 0;
        return -1;
    }
    if (directory_make(s->spill, sizeof s->spill, temporary))
        snprintf(s->spill, sizeof s->spill, "%s", s->directory);
    snprintf(target, sizeof target, "%s/sitecustomize.py", command_library_directory());
    if (access(target, R_OK)) {
        say_error("%s: not there: run `make`, or reinstall dyntrace", target);
        goto err;
    }
    fd = -1;
    if (mkdir(session_path(s, "inject"), 0700) == 0 && mkdir(session_path(s, "inject" RING_EMPTY_SUFFIX), 0700) == 0 &&
        symlink(target, session_path(s, "inject/sitecustomize.py")) == 0 &&
        symlink(target, session_path(s, "inject" RING_EMPTY_SUFFIX "/sitecustomize.py")) == 0)
        fd = open(session_path(s, "collector.lock"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    s->lock = fd;
    /* Locked before there is a session file, or another `run` would take this
     * for a session whose collector was killed. */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || file_make(s, options)) {
        say_error("%s: cannot set up the recording: %s", s->directory, strerror(errno));
        goto err;
    }
    return 0;
err:
    session_remove(s);
    session_close(s);
    return -1;
}

/* Hold the lock of a session that is left. A traced process that asks whether
 * its collector lives holds it for a moment, hence the patience. */
static int session_lock(struct session *s)
{
    int fd = open(session_path(s, "collector.lock"), O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -1;
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
        if (errno != EWOULDBLOCK || i == 20) {
            close(fd);
            return -1;
        }
        usleep(2000);
    }
    s->lock = fd;
    return 0;
}

int session_open(struct session *s, const char *directory, bool *busy)
{
    struct stat status;
    const char *text;
    int fd;

    *busy = false;
    *s = (struct session){.lock = -1};
    if (strlen(directory) >= sizeof s->directory)
        return -1;
    snprintf(s->directory, sizeof s->directory, "%s", directory);
    fd = open(session_path(s, "session"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && status.st_uid == getuid() && status.st_size > (off_t)sizeof *s->file &&
        status.st_size <= SESSION_FILE_MAX)
        s->file = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (!s->file || s->file == MAP_FAILED) {
        s->file = NULL;
        return -1;
    }
    if (memcmp(s->file->magic, RING_SESSION_MAGIC, sizeof s->file->magic) || s->file->format != RING_FORMAT ||
        s->file->bytes != status.st_size || ((char *)s->file)[status.st_size - 1]) {
        munmap(s->file, (size_t)status.st_size);
        s->file = NULL;
        return -1;
    }
    text = s->file->text; /* the last byte is 0, so the strings end within the file */
    snprintf(s->spill, sizeof s->spill, "%s", text);
    text += strlen(text) + 1;
    snprintf(s->trace, sizeof s->trace, "%s", text < (char *)s->file + status.st_size ? text : "");
    snprintf(s->frames, sizeof s->frames, "%s-frames", s->trace);
    if (session_lock(s)) {
        *busy = true;
        session_close(s);
        return -1;
    }
    return 0;
}

static void directory_remove(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char name[600];

    while (directory && (entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (unlink(name) && (errno == EISDIR || errno == EPERM))
            directory_remove(name);
    }
    if (directory)
        closedir(directory);
    rmdir(path);
}

void session_remove(struct session *s)
{
    if (!s->directory[0])
        return;
    /* The spill directory's name comes from a file: only one of ours is removed. */
    if (strcmp(s->spill, s->directory) && strstr(s->spill, "/dyntrace-"))
        directory_remove(s->spill);
    directory_remove(s->directory);
    s->directory[0] = 0;
}

void session_close(struct session *s)
{
    if (s->lock >= 0)
        close(s->lock);
    if (s->file)
        munmap(s->file, s->file->bytes);
    s->lock = -1;
    s->file = NULL;
}

void session_each(void (*visit)(const char *directory, void *context), void *context)
{
    const char *temporary = getenv("TMPDIR"), *bases[] = {shared_memory, temporary && *temporary == '/' ? temporary : "/tmp"};
    char prefix[64];

    snprintf(prefix, sizeof prefix, "dyntrace-%u-", (unsigned)getuid());
    for (int i = 0; i < 2; i++) {
        DIR *directory = opendir(bases[i]);
        struct dirent *entry;
        while (directory && (entry = readdir(directory))) {
            char path[600];
            struct stat status;
            if (strncmp(entry->d_name, prefix, strlen(prefix)))
                continue;
            snprintf(path, sizeof path, "%s/%s", bases[i], entry->d_name);
            if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid())
                visit(path, context);
        }
        if (directory)
            closedir(directory);
    }
}

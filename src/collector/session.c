/* collector/session.c -- makes, opens and removes the directory of a recording. See
 * collector/session.h.
 *
 * Runs in: the command line and the collector. */
#include "collector/session.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "command.h"
#include "lib/list.h"
#include "lib/say.h"
#include "namespaces.h"

enum {
    /* size of a process's first ring: a program at full speed fills it in 50 ms */
    RING_BYTES = 16 << 20,
    /* the most bytes of all rings of one process together (tracer/ring.c) */
    BUDGET_BYTES = 64 << 20,
    SHARED_ROOM = 48 << 20, /* with less free space than this, /dev/shm is not used */
    SESSION_FILE_MAX = 1 << 20,
    /* how long a directory without a session's file is left alone: a `run` may be making it */
    MAKING_SECONDS = 60,
    PROCESSES_MAX = 1 << 20, /* the most processes in one file; a file with more must be damaged */
};

static const char shared_memory[] = "/dev/shm";

#ifndef __aarch64__
/* Does LINE of /proc/cpuinfo say that the CPU's counter has a constant rate and never stops? */
static bool is_cpu_counter_steady(const char *line)
{
    if (strncmp(line, "flags", 5))
        return false;
    return strstr(line, " constant_tsc") && strstr(line, " nonstop_tsc");
}
#endif

enum session_clock session_clock_choose(void)
{
#if defined __aarch64__
    return SESSION_TSC; /* on aarch64 the counter cntvct always has a constant rate */
#else
    FILE *source = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    FILE *info = NULL;
    char name[16] = "";
    char *line = NULL;
    size_t room = 0;
    bool trusted;

    if (source && !fgets(name, sizeof name, source))
        name[0] = 0;
    trusted = !strncmp(name, "tsc", 3);
    /* In a virtual machine Linux may prefer its own clock although the counter is good. */
    if (!strncmp(name, "kvm-clock", 9) || !strncmp(name, "hyperv", 6))
        info = fopen("/proc/cpuinfo", "re");
    if (info) {
        while (!trusted && getline(&line, &room, info) > 0)
            trusted = is_cpu_counter_steady(line);
        fclose(info);
    }
    free(line);
    if (source)
        fclose(source);
    return trusted ? SESSION_TSC : SESSION_MONOTONIC;
#endif
}

/* May a session's directory be made in directory PATH? */
static bool is_directory_usable(const char *path)
{
    struct stat status;

    return *path == '/' && strlen(path) <= 200 && access(path, W_OK | X_OK) == 0 &&
           stat(path, &status) == 0 && session_check_parent(&status);
}

bool session_has_room(const char *path)
{
    struct statvfs status;

    return is_directory_usable(path) && statvfs(path, &status) == 0 &&
           (uint64_t)status.f_bavail * status.f_frsize >= SHARED_ROOM;
}

static const char *find_temporary_directory(void)
{
    const char *named = getenv("TMPDIR");

    return named && is_directory_usable(named) ? named : "/tmp";
}

/* Make a directory with a new name in directory BASE, and store its path in PATH. Returns its
 * descriptor, or -1 with errno. */
static int make_directory(char *path, size_t room, const char *base)
{
    int fd;

    snprintf(path, room, "%s/dyntrace-%u-XXXXXX", base, (unsigned)geteuid());
    if (!mkdtemp(path))
        return -1;
    fd = session_open_directory(path);
    if (fd < 0) {
        rmdir(path);
        errno = EPERM;
    }
    return fd;
}

/* Make the session's directory where the process of `attach` looks for it (tracer/attach.c). ROOT
 * is the path under which we see that process's files. Returns 0, or -1 with errno. */
static int make_directory_under_root(struct session *s, const char *root)
{
    static const char *const bases[] = {shared_memory, "/tmp", "/var/tmp"};

    errno = EACCES;
    for (size_t i = 0; i < array_count(bases) && s->place[SESSION_MAIN] < 0; i++) {
        char base[256];
        snprintf(base, sizeof base, "%s%s", root, bases[i]);
        if (session_has_room(base))
            s->place[SESSION_MAIN] = make_directory(s->directory, sizeof s->directory, base);
    }
    return s->place[SESSION_MAIN] < 0 ? -1 : 0;
}

/* Make the session's two directories. They have the same name in different places, so that a
 * process that knows the first finds the second. */
static int make_both_directories(struct session *s)
{
    const char *temporary = find_temporary_directory();

    if (session_has_room(shared_memory))
        s->place[SESSION_MAIN] = make_directory(s->directory, sizeof s->directory, shared_memory);
    if (s->place[SESSION_MAIN] < 0) {
        s->place[SESSION_MAIN] = make_directory(s->directory, sizeof s->directory, temporary);
        return s->place[SESSION_MAIN] < 0 ? -1 : 0;
    }
    snprintf(s->spill, sizeof s->spill, "%.200s/%.50s", temporary, basename(s->directory));
    if (mkdir(s->spill, 0700) == 0)
        s->place[SESSION_SPILL] = session_open_directory(s->spill);
    if (s->place[SESSION_SPILL] < 0)
        s->spill[0] = 0;
    return 0;
}

/* Map the session's file FD, and return a copy of it, which the caller frees. The caller checks the
 * copy, because another process could cut the mapped file short. Returns NULL if it cannot be a
 * session's file. */
static struct session_file *copy_session_file(struct session *s, int fd)
{
    struct stat status = {0};
    struct session_file *file;
    void *mapped;
    size_t bytes;

    if (fstat(fd, &status) != 0)
        return NULL;
    if (status.st_size <= (off_t)sizeof *file || status.st_size > SESSION_FILE_MAX)
        return NULL;
    bytes = (size_t)status.st_size;
    file = malloc(bytes);
    if (!file)
        return NULL;
    if (pread(fd, file, bytes, 0) == status.st_size) {
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) {
            s->bytes = bytes;
            s->file = mapped; /* session_close unmaps the file */
            return file;
        }
    }
    free(file);
    return NULL;
}

/* Do the contents of FILE, whose size is BYTES, make sense? */
static bool is_session_file_valid(const struct session_file *file, size_t bytes)
{
    const char *end = (const char *)file + bytes;

    if (memcmp(file->magic, RING_SESSION_MAGIC, sizeof file->magic))
        return false;
    /* the last byte is a NUL, so no string goes beyond the end of the file */
    return file->format == RING_FORMAT && file->bytes == bytes && !end[-1];
}

/* Read the paths of the second directory and of the trace from FILE, which was checked. */
static void read_paths_from_file(struct session *s, const struct session_file *file)
{
    const char *text = file->text;
    const char *end = (const char *)file + s->bytes;
    bool fits = strlen(text) < sizeof s->spill;

    bool of_session = !strcmp(basename(text), basename(s->directory));

    if (s->place[SESSION_SPILL] < 0 && fits) {
        if (of_session)
            s->place[SESSION_SPILL] = session_open_directory(text);
    }
    if (s->place[SESSION_SPILL] >= 0)
        snprintf(s->spill, sizeof s->spill, "%s", text);
    text += strlen(text) + 1;
    snprintf(s->trace, sizeof s->trace, "%s", text < end ? text : "");
    snprintf(s->frames, sizeof s->frames, "%s-frames", s->trace);
}

/* Map the existing session's file, and read the paths of the second directory and of the trace from
 * it. Returns false if it is not a session's file. */
static bool map_session_file(struct session *s)
{
    int fd = session_open_file(s->place[SESSION_MAIN], "session", O_RDWR);
    struct session_file *file;
    bool sound;

    if (fd < 0)
        return false;
    file = copy_session_file(s, fd);
    close(fd);
    sound = file && is_session_file_valid(file, s->bytes);
    if (sound)
        read_paths_from_file(s, file);
    free(file);
    return sound;
}

/* Write a new session's file and map it. Returns 0, or -1 with errno. */
static int make_session_file(struct session *s, const struct session_options *o)
{
    struct session_file file = {.magic = RING_SESSION_MAGIC,
                                .format = RING_FORMAT,
                                .clock = session_clock_choose(),
                                .frames = o->frames,
                                .max_depth = o->max_depth,
                                .torch = o->torch,
                                .values = o->values,
                                .no_argv = o->no_argv,
                                .coarse = o->clock,
                                .capture = o->capture,
                                .thin = o->thin,
                                .min_duration_ns = o->min_duration_ns,
                                .max_stall_ns = o->max_stall_ns,
                                .keep_ns = o->keep_ns,
                                .keep_bytes = o->keep_bytes,
                                .globs = (uint32_t)o->globs.count,
                                .pid_namespace = namespace_read_pid_namespace("self"),
                                .clock_ahead_ns = namespace_read_clock_offset(0),
                                .settings = (uint32_t)o->settings.count,
                                .keep_secrets = o->keep_secrets,
                                .secrets = (uint32_t)o->secrets.count,
                                .arguments = (uint32_t)o->arguments.count,
                                .attach_pid = o->attach_pid,
                                .triggers = (uint32_t)o->triggers.count,
                                .ring_bytes = RING_BYTES,
                                .budget_bytes = BUDGET_BYTES};
    /* in the order of ring.h's `text` */
    const session_texts *const lists[] = {&o->globs, &o->settings, &o->secrets, &o->arguments,
                                          &o->triggers};
    int fd = session_open_file(s->place[SESSION_MAIN], "session", O_RDWR | O_CREAT | O_EXCL);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    struct timespec now;

    if (!out)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    file.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    file.start_clock = file.now = session_now(&file);
    fseek(out, offsetof(struct session_file, text), SEEK_SET);
    fprintf(out, "%s%c%s%c", s->spill, 0, s->trace, 0);
    for (size_t list = 0; list < array_count(lists); list++)
        for (size_t i = 0; i < lists[list]->count; i++)
            fprintf(out, "%s%c", lists[list]->at[i], 0);
    file.bytes = (uint32_t)ftell(out);
    rewind(out);
    fwrite(&file, offsetof(struct session_file, text), 1, out);
    if (fclose(out))
        return -1;
    errno = E2BIG;
    return map_session_file(s) ? 0 : -1;
}

int session_create(struct session *s, const char *trace, const struct session_options *options)
{
    *s = SESSION_CLOSED;
    snprintf(s->trace, sizeof s->trace, "%s", trace);
    snprintf(s->frames, sizeof s->frames, "%s-frames", trace);
    if (options->attach_pid && make_directory_under_root(s, options->root)) {
        say_error("%s: no directory for the recording can be made in its /dev/shm, /tmp or "
                  "/var/tmp: %s; make one of them writable and give it 48 MB of room",
                  *options->root ? options->root : "/", strerror(errno));
        s->directory[0] = 0;
        return -1;
    }
    if (!options->attach_pid && make_both_directories(s)) {
        say_error("%s: cannot make a directory for the recording: %s; set TMPDIR to a place with "
                  "room that is yours, or has its sticky bit set",
                  find_temporary_directory(), strerror(errno));
        s->directory[0] = 0;
        return -1;
    }
    s->lock =
        session_open_file(s->place[SESSION_MAIN], "collector.lock", O_RDWR | O_CREAT | O_EXCL);
    /* Lock before the file exists, or another `run` could take this for the session of a killed
     * collector. */
    if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB) || make_session_file(s, options)) {
        say_error("%s: cannot set up the recording: %s", s->directory, strerror(errno));
        session_remove(s);
        session_close(s);
        return -1;
    }
    return 0;
}

int session_take_lock(struct session *s)
{
    s->lock = session_open_file(s->place[SESSION_MAIN], "collector.lock", O_RDWR);
    if (s->lock >= 0 && flock(s->lock, LOCK_EX | LOCK_NB)) {
        close(s->lock);
        s->lock = -1;
    }
    return s->lock < 0 ? -1 : 0;
}

int session_open(struct session *s, const char *directory, bool *busy)
{
    *s = SESSION_CLOSED;
    if (busy)
        *busy = false;
    if (strlen(directory) < sizeof s->directory) {
        snprintf(s->directory, sizeof s->directory, "%s", directory);
        s->place[SESSION_MAIN] = session_open_directory(directory);
    }
    if (s->place[SESSION_MAIN] >= 0 && (!busy || map_session_file(s))) {
        if (session_take_lock(s) == 0)
            return 0;
        if (busy)
            *busy = true;
    }
    session_close(s);
    return -1;
}

const char *session_find_triggers(const struct session_file *file)
{
    const char *text = file->text;
    const char *end = (const char *)file + file->bytes;
    const uint64_t before = 2ull + file->globs + file->settings + file->secrets + file->arguments;

    for (uint64_t i = 0; i < before && text < end; i++)
        text += strlen(text) + 1;
    return text;
}

int session_open_to_read(struct session *s, const char *directory)
{
    *s = SESSION_CLOSED;
    if (strlen(directory) < sizeof s->directory) {
        snprintf(s->directory, sizeof s->directory, "%s", directory);
        s->place[SESSION_MAIN] = session_open_directory(directory);
    }
    if (s->place[SESSION_MAIN] >= 0 && map_session_file(s))
        return 0;
    session_close(s);
    return -1;
}

bool session_has_full_file(const struct session *s)
{
    int fd = s->file ? session_open_file(s->place[SESSION_MAIN], "session", O_RDONLY) : -1;
    struct stat status;
    bool whole = fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= (off_t)s->bytes;

    if (fd >= 0)
        close(fd);
    return whole;
}

/* Delete directory PATH, which is open as FD, and its files. The session's file comes last: if we
 * are killed before, recovery still learns from it which other files there are. We make no
 * subdirectories, so if there are some that are not empty, they stay. */
static void remove_session_directory(const char *path, int fd)
{
    struct dirent **entries = NULL;
    int count = scandirat(fd, ".", &entries, NULL, NULL);
    int up;

    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        bool stays = !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "session");
        if (!stays && unlinkat(fd, name, 0))
            unlinkat(fd, name, AT_REMOVEDIR);
        free(entries[i]);
    }
    free(entries);
    unlinkat(fd, "session", 0);
    /* rmdir() removes only an empty directory, whatever else may be at PATH now */
    if (rmdir(path) == 0)
        return;
    /* PATH may begin with /proc/PID/root of a process that has ended, and then no longer exists:
     * remove the directory by its parent. */
    up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (up >= 0) {
        unlinkat(up, basename(path), AT_REMOVEDIR);
        close(up);
    }
}

void session_remove(struct session *s)
{
    const uint32_t closed = 1;
    int fd;

    if (!s->directory[0])
        return;
    /* Set `closed` for processes that still run, so that they do not look for the directory
     * again. */
    if ((fd = session_open_file(s->place[SESSION_MAIN], "session", O_WRONLY)) >= 0) {
        (void)!pwrite(fd, &closed, sizeof closed, offsetof(struct session_file, closed));
        close(fd);
    }
    if (s->place[SESSION_SPILL] >= 0)
        remove_session_directory(s->spill, s->place[SESSION_SPILL]);
    if (s->place[SESSION_MAIN] >= 0)
        remove_session_directory(s->directory, s->place[SESSION_MAIN]);
    s->directory[0] = 0;
}

static uint64_t bytes_on_disk(const char *path)
{
    struct stat status;

    return stat(path, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

uint64_t session_count_trace_bytes(const struct session *s)
{
    char log[PATH_MAX + 8];

    snprintf(log, sizeof log, "%s-wal", s->trace);
    return bytes_on_disk(s->trace) + bytes_on_disk(s->frames) + bytes_on_disk(log);
}

void session_close(struct session *s)
{
    for (int i = 0; i < SESSION_PLACES; i++) {
        if (s->place[i] >= 0)
            close(s->place[i]);
        s->place[i] = -1;
    }
    if (s->lock >= 0)
        close(s->lock);
    if (s->file)
        munmap(s->file, s->bytes);
    s->lock = -1;
    s->file = NULL;
}

/* Is the session's directory FD empty, or holds only the lock and an empty session's file? */
static bool is_directory_without_session(int fd)
{
    struct dirent **entries = NULL;
    int count = scandirat(fd, ".", &entries, NULL, NULL);
    bool hollow = count >= 0;
    struct stat status;

    for (int i = 0; i < count; free(entries[i++])) {
        const char *name = entries[i]->d_name;
        bool may_be_there = !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "session") ||
                            !strcmp(name, "collector.lock");
        hollow = hollow && may_be_there;
    }
    free(entries);
    return hollow && (fstatat(fd, "session", &status, 0) || status.st_size == 0);
}

/* May a process be using the directory of session S, which has no session's file? */
static bool is_session_in_use(struct session *s)
{
    bool shared = !strncmp(s->directory, shared_memory, strlen(shared_memory));
    struct stat status;

    if (fstat(s->place[SESSION_MAIN], &status) || time(NULL) - status.st_mtime < MAKING_SECONDS)
        return true;
    if (!is_directory_without_session(s->place[SESSION_MAIN]))
        return true;
    if (fstatat(s->place[SESSION_MAIN], "collector.lock", &status, 0))
        /* outside /dev/shm a directory without a lock may be the second directory of a session */
        return !shared;
    return session_take_lock(s) != 0;
}

void session_remove_stale(const char *directory)
{
    struct session s = SESSION_CLOSED;

    snprintf(s.directory, sizeof s.directory, "%s", directory);
    s.place[SESSION_MAIN] = session_open_directory(s.directory);
    if (s.place[SESSION_MAIN] >= 0 && !is_session_in_use(&s)) {
        snprintf(s.spill, sizeof s.spill, "%.200s/%.50s", find_temporary_directory(),
                 basename(s.directory));
        rmdir(s.spill); /* remove the second directory if it is empty */
        session_remove(&s);
    }
    session_close(&s);
}

static int may_be_session_directory(const struct dirent *entry)
{
    /* the directory may have thousands of other files */
    return !strncmp(entry->d_name, "dyntrace-", 9);
}

void session_visit_all(void (*visit)(const char *directory, void *context), void *context)
{
    const char *bases[] = {shared_memory, find_temporary_directory()};

    for (int i = 0; i < 2; i++) {
        struct dirent **entries = NULL;
        int count = scandir(bases[i], &entries, may_be_session_directory, NULL);
        for (int e = 0; e < count; free(entries[e++])) {
            char path[600];
            int fd;
            snprintf(path, sizeof path, "%s/%s", bases[i], entries[e]->d_name);
            if ((fd = session_open_directory(path)) >= 0) {
                close(fd);
                visit(path, context);
            }
        }
        free(entries);
    }
}

void session_write_process_name(char name[SESSION_NAME], const char *file, uint64_t offset)
{
    if (offset)
        snprintf(name, SESSION_NAME, "%.*s@%lx", (int)strcspn(file, "@"), file, offset);
    else
        snprintf(name, SESSION_NAME, "%s", file);
}

/* Call VISIT for each process in FILE. */
static void visit_file_processes(const struct session *s, const char *file,
                                 enum session_place place, session_visitor *visit, void *context)
{
    const char *end = strrchr(file, '.');
    bool ring = end && !strcmp(end, ".ring") && strlen(file) < SESSION_FILE_NAME;
    int fd = ring ? session_open_file(s->place[place], file, O_RDONLY) : -1;
    uint64_t at = 0;

    if (fd < 0)
        visit(context, file, place, NULL);
    for (int count = 0; fd >= 0 && count < PROCESSES_MAX; count++) {
        /* zeroed, because a file that is just being made may be shorter than the header */
        struct process_file header = {0};
        ssize_t got = pread(fd, &header, sizeof header, (off_t)at);
        char name[SESSION_NAME];
        bool is_short = at && got != sizeof header;
        if (got < 0 || is_short)
            break;
        session_write_process_name(name, file, at);
        visit(context, name, place, &header);
        at = at ? header.next_nested : header.nested;
        if (!at)
            break;
    }
    if (fd >= 0)
        close(fd);
}

void session_visit_processes(const struct session *s, session_visitor *visit, void *context)
{
    for (int place = 0; place < SESSION_PLACES && s->place[place] >= 0; place++) {
        struct dirent **entries = NULL;
        int count = scandirat(s->place[place], ".", &entries, NULL, NULL);
        for (int i = 0; i < count; free(entries[i++]))
            visit_file_processes(s, entries[i]->d_name, (enum session_place)place, visit, context);
        free(entries);
    }
}

/* ---- find out whether a session's collector runs ---- */

static bool is_path_below(const char *directory, const char *place)
{
    size_t length = strlen(place);

    if (strncmp(directory, place, length) || directory[length] != '/')
        return false;
    return !strstr(directory, "/../");
}

/* Is DIRECTORY where we make sessions? Its name comes from a trace, and to look at another place
 * could mean a request to a network file server. */
static bool is_where_sessions_are_made(const char *directory)
{
    const char *places[] = {"/dev/shm", "/tmp", getenv("TMPDIR")};

    for (int i = 0; i < 3; i++) {
        if (places[i] && *places[i] && is_path_below(directory, places[i]))
            return true;
    }
    return false;
}

/* A running collector holds a lock on a file in DIRECTORY. We look for the lock in /proc/locks. To
 * try to take it could disturb a collector that is just starting. */
enum liveness session_has_running_collector(const char *directory)
{
    enum liveness live = LIVE_NO;
    char path[300], line[256];
    unsigned long long inode;
    struct stat st;
    FILE *locks;

    if (!directory || !is_where_sessions_are_made(directory) ||
        (size_t)snprintf(path, sizeof path, "%s/collector.lock", directory) >= sizeof path ||
        stat(path, &st) != 0 || !(locks = fopen("/proc/locks", "re")))
        return LIVE_UNKNOWN;
    while (fgets(line, sizeof line, locks))
        /* a line looks like "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF" */
        if (sscanf(line, "%*s FLOCK %*s WRITE %*s %*x:%*x:%llu", &inode) == 1 && inode == st.st_ino)
            live = LIVE_YES;
    fclose(locks);
    return live;
}

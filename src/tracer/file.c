/* tracer/file.c -- a process's file: how it is made, and its extents. See ring.h.
 *
 * Runs in: the traced process.
 *
 * The program may close every descriptor it finds, become another user, or lose
 * sight of the session's directory. So nothing but the header's mapping is needed
 * to map more of the file (mremap), and the file is as large as it will ever be.
 *
 * A forked child makes a file of its own, or a nested one in its parent's. */
#include "tracer/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "session_check.h"

#define P tracer_process
#define FILE_BYTES (UINT64_C(64) << 30) /* sparse; some thousand nested processes */

/* What this process has mapped of its file; the first is the header at 0. */
static struct mapping {
    char *at;
    size_t bytes;
    uint64_t offset;
} *mappings;
static size_t mapping_count;
static dev_t file_device;
static ino_t file_inode;

/* ---- extents ---- */

int file_reserve(char *at, size_t bytes)
{
    int error = madvise(at, bytes, MADV_POPULATE_WRITE) ? errno : 0;

    if (error == EINVAL) { /* before Linux 5.14: any call that stores something */
        error = 0;
        for (size_t i = 0; i < bytes && !error; i += 4096)
            if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at + i, sizeof(uint64_t)))
                error = errno;
            else
                *(uint64_t *)(at + i) = 0;
    }
    return error == EFAULT ? ENOSPC : error;
}

/* Is there room for BYTES now? What is reserved later should not come as a surprise. */
static bool has_free(size_t bytes)
{
    struct statvfs status;

    return statvfs(P.file_directory, &status) || (uint64_t)status.f_bavail * status.f_frsize >= bytes;
}

static bool mapping_note(void *at, size_t bytes, uint64_t offset)
{
    struct mapping *more = realloc(mappings, (mapping_count + 1) * sizeof *more);

    if (!more)
        return false;
    mappings = more;
    mappings[mapping_count++] = (struct mapping){at, bytes, offset};
    return true;
}

static void mappings_drop(size_t first)
{
    while (mapping_count > first) {
        mapping_count--;
        munmap(mappings[mapping_count].at, mappings[mapping_count].bytes);
    }
}

void *file_at(uint64_t offset)
{
    for (size_t i = 0; i < mapping_count; i++)
        if (offset >= mappings[i].offset && offset - mappings[i].offset < mappings[i].bytes)
            return mappings[i].at + (offset - mappings[i].offset);
    return NULL;
}

/* The file by its name, where that still leads to it; -1: not. */
static int file_again(void)
{
    char name[sizeof P.file_name];
    struct stat status;
    int fd;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(P.file_name, "@"), P.file_name);
    fd = session_open_in(P.file_directory, name, O_RDWR);
    if (fd >= 0 && (fstat(fd, &status) || status.st_dev != file_device || status.st_ino != file_inode)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Map more of the file. mremap() of a shared mapping whose old size is 0 maps the same file once more, from the same
 * place on: no descriptor and no name is needed. NULL with errno. */
static void *map_extent(uint64_t at, size_t bytes)
{
    const struct mapping *near = &mappings[mapping_count - 1];
    const size_t before = at - near->offset;
    char *mapped = mremap(near->at, 0, before + bytes, MREMAP_MAYMOVE);
    int fd;

    if (mapped != MAP_FAILED && before)
        munmap(mapped, before);
    if (mapped != MAP_FAILED) {
        mapped += before;
    } else if ((fd = file_again()) >= 0) { /* valgrind knows no such mremap() */
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
        close(fd);
    }
    if (mapped != MAP_FAILED && !mapping_note(mapped, bytes, at)) {
        munmap(mapped, bytes);
        errno = ENOMEM;
        mapped = MAP_FAILED;
    }
    return mapped == MAP_FAILED ? NULL : mapped;
}

void *file_extent(size_t bytes, size_t reserved, uint64_t *offset)
{
    uint64_t at = atomic_fetch_add(&P.root->used_bytes, bytes), end = at + bytes;
    char *mapped = NULL;
    int error = ENOSPC;

    if (end <= P.root->file_bytes && has_free(bytes)) {
        mapped = map_extent(at, bytes);
        error = mapped ? file_reserve(mapped, reserved) : errno;
    }
    if (mapped && error) {
        mappings_drop(mapping_count - 1);
        mapped = NULL;
    }
    if (!mapped)
        atomic_compare_exchange_strong(&P.root->used_bytes, &end, at);
    *offset = at;
    errno = error;
    return mapped;
}

/* ---- the header ---- */

/* Who this process is, for its header. */
struct birth {
    uint64_t ticks;         /* when it was started, as the kernel has it */
    uint64_t clock;         /* when it was forked, or begins to be recorded */
    const char *parent;     /* file of the process that it was forked from, or "" */
};

/* When this process was started: /proc/PID/stat, field 22. */
static uint64_t start_ticks(void)
{
    char buffer[1024], *field;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, buffer, sizeof buffer - 1);

    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    buffer[got] = 0;
    field = strrchr(buffer, ')'); /* the command's name may hold spaces */
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

/* FILE is zeroed, at OFFSET of a file; facts for it come next. It is whole afterwards. */
static void header_fill(struct process_file *file, const struct birth *birth, uint64_t offset)
{
    memcpy(file->magic, RING_PROCESS_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->word_bytes = sizeof(uint64_t);
    file->pid = (uint32_t)getpid();
    file->parent_pid = (uint32_t)getppid();
    file->start_time = birth->ticks;
    file->born_clock = birth->clock;
    snprintf(file->parent_file, sizeof file->parent_file, "%s", birth->parent);
    if (*birth->parent) {
        file->inherited_codes = P.codes;
        file->inherited_entries = P.entries;
        file->inherited_signatures = P.signatures;
        P.compiles = 0;
    }
    file->mode = P.session->frames;
    file->facts_off = offset + HEADER_BYTES;
    facts_begin((struct facts *)((char *)file + HEADER_BYTES), FIRST_FACTS);
    P.file = file;
    atomic_store_explicit(&file->ready, 1, memory_order_release);
}

/* How large a file may be made: more than the limit is a signal. */
static uint64_t file_bytes_most(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < FILE_BYTES;

    return limited ? limit.rlim_cur & ~UINT64_C(4095) : FILE_BYTES;
}

/* Make the file in DIRECTORY ("": there is none). 0, or an errno. */
static int file_make(const char *directory, const struct birth *birth)
{
    char name[sizeof P.file_name];
    uint64_t bytes = file_bytes_most();
    int at = session_open_directory(directory), fd = -1;
    int error = at < 0 ? errno : bytes < HEADER_BYTES + FIRST_FACTS ? EFBIG : 0;
    size_t before = mapping_count;
    struct process_file *file = MAP_FAILED;
    struct stat status;

    for (int n = 0; fd < 0 && !error; n++) {
        snprintf(name, sizeof name, "%d-%llu-%d.ring", (int)getpid(), (unsigned long long)birth->ticks, n);
        fd = session_open_file(at, name, O_RDWR | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST)
            error = errno;
    }
    while (!error && ftruncate(fd, (off_t)bytes))
        if (errno == EFBIG && bytes > UINT32_MAX)
            bytes /= 2;
        else if (errno != EINTR)
            error = errno;
    if (!error && fstat(fd, &status))
        error = errno;
    if (!error) {
        file = mmap(NULL, HEADER_BYTES + FIRST_FACTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = file == MAP_FAILED ? errno : file_reserve((char *)file, HEADER_BYTES + FIRST_FACTS);
    }
    /* Two mappings: a forked child keeps the header of its parent only. */
    if (!error && !(mapping_note(file, HEADER_BYTES, 0) &&
                    mapping_note((char *)file + HEADER_BYTES, FIRST_FACTS, HEADER_BYTES)))
        error = ENOMEM;
    if (error) {
        mapping_count = before;
        if (file != MAP_FAILED)
            munmap(file, HEADER_BYTES + FIRST_FACTS);
        if (fd >= 0)
            unlinkat(at, name, 0);
    } else {
        memcpy(P.file_name, name, sizeof name);
        P.file_directory = directory;
        file_device = status.st_dev;
        file_inode = status.st_ino;
        file->file_bytes = bytes;
        atomic_store(&file->used_bytes, HEADER_BYTES + FIRST_FACTS);
        P.root = file;
        header_fill(file, birth, 0);
    }
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    return error;
}

/* Make one within the file of the process that this one was forked from. 0, or an errno. */
static int nested_make(const struct birth *birth)
{
    uint64_t offset, newest;
    struct process_file *file = file_extent(HEADER_BYTES + FIRST_FACTS, HEADER_BYTES + FIRST_FACTS, &offset);
    char *end = P.file_name + strcspn(P.file_name, "@");

    if (!file)
        return errno;
    snprintf(end, sizeof P.file_name - (size_t)(end - P.file_name), "@%llx", (unsigned long long)offset);
    header_fill(file, birth, offset);
    newest = atomic_load(&P.root->nested);
    do
        file->next_nested = newest;
    while (!atomic_compare_exchange_weak(&P.root->nested, &newest, offset));
    return 0;
}

/* The session's own directory, or the second one when that is full; a forked child that can make none there has its
 * parent's. When there is no room at all, the parent's file or an empty one lets the collector know. */
void file_open(const char *parent, uint64_t clock)
{
    const bool forked = P.root != NULL;
    const struct birth birth = {start_ticks(), clock, parent};
    char name[sizeof P.file_name];
    int fd, error;

    P.file = NULL;
    if (atomic_load(&P.session->closed))
        return;
    error = file_make(P.session_directory, &birth);
    if (error && file_make(P.spill_directory, &birth) == 0)
        error = 0;
    if (error && forked) {
        error = nested_make(&birth);
        if (error) {
            atomic_fetch_add(&P.root->orphans, 1);
            atomic_store(&P.root->orphan_error, (uint32_t)error);
        }
    } else if (forked) { /* the parent's header */
        munmap(mappings[0].at, mappings[0].bytes);
        memmove(mappings, mappings + 1, --mapping_count * sizeof *mappings);
    } else if (error) {
        snprintf(name, sizeof name, "%d-%llu-%d.lost", (int)getpid(), (unsigned long long)birth.ticks, error);
        fd = session_open_in(P.session_directory, name, O_WRONLY | O_CREAT);
        if (fd >= 0)
            close(fd);
    }
}

void file_forked(void)
{
    mappings_drop(1);
    facts_begin(NULL, 0);
}

void file_close(void)
{
    mappings_drop(0);
    facts_begin(NULL, 0);
    P.file = P.root = NULL;
}

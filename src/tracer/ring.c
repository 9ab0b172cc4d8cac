/* tracer/ring.c -- a process's file, its threads' rings, waiting, and fork.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * The program may close every descriptor it finds, become another user, or lose
 * sight of the session's directory. So nothing but the header's mapping is needed
 * to map more of the file (mremap), and the file is as large as it will ever be.
 *
 * A ring belongs to one thread at a time. When the thread ends the ring goes to
 * a free list; the next thread writes a CONTROL_THREAD word and carries on.
 *
 * A thread that finds its ring full waits, and lets go of the GIL if that takes
 * long. When the collector takes nothing for --max-stall the thread goes on in a
 * *gap*: nothing is written, frames are counted. It ends with the first event for
 * which there is room: a CONTROL_GAP says how many frames were lost and which of
 * the open ones are left, and those that began in the gap are named.
 *
 * Fork: the child handler makes a file for the child, or a nested one (ring.h),
 * and forgets the parent's rings. The child's first event attaches a ring and
 * writes an ENTER for each frame that was open (struct open_frame lies on the C
 * stack, which the child has a copy of), so that what it runs next has its parents. */
#include "tracer/record.h"
#include "tracer/values.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session_check.h"

enum {
    FIRST_FACTS = 128 << 10, /* bytes of the first facts chunk; later ones are larger */
    MORE_FACTS = 512 << 10,
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
    WAIT_MS = 20,            /* between looks whether the session is over */
    HOLD_MS = 5,             /* the GIL is held so long while waiting: as a thread that computes may hold it */
    STALL_MS = 10,           /* a wait longer than this is a row */
    ARGV_MAX = 64 << 10,
    RESERVE_STEP = 2 << 20,  /* bytes of a ring that get memory at a time */
};

#define P tracer_process
#define MS UINT64_C(1000000)
#define FILE_BYTES (UINT64_C(64) << 30) /* sparse; some thousand nested processes */

/* What this process has mapped of its file; the first is the header at 0. */
static struct mapping {
    char *at;
    size_t bytes;
    uint64_t offset;
} *mappings;
static size_t mapping_count, mapping_room;
static struct facts *facts; /* the chunk being filled */
static struct facts **chunks; /* all of them, in order; owned (the array) */
static size_t chunk_count;
static uint64_t ring_bytes_used;
static struct {
    dev_t device;
    ino_t inode;
} ring_file;

/* A thread has waited for as long as it may and the collector has still taken nothing: the others need not wait, too. */
static _Atomic bool stalled;
static _Atomic unsigned sleepers; /* threads that look at their ring without the GIL */
static _Atomic bool closing;      /* ... which must stop that */

/* For everything here that is not a thread's own: interpreters may have GILs of their own, and a thread that ends holds
 * none. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* again: Python code in a handler of fork() */
static pid_t forking_pid; /* the process that is in fork(), 0: none */
static void forked(void);
/* Rings whose thread has ended. */
static struct ring *free_rings[RING_MAX];
static unsigned free_ring_count;

static pthread_key_t thread_key; /* calls thread_ended */
static bool thread_key_made;

/* Handlers of fork() that were registered before ours run before it in the child, and may be Python code: the first thing
 * that comes here does what ours would do. */
static void fork_check(void)
{
    if (unlikely(forking_pid) && getpid() != forking_pid)
        forked();
}

void tracer_lock(void)
{
    fork_check();
    pthread_mutex_lock(&lock);
}

void tracer_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- extents ---- */

/* Memory for [AT, AT + BYTES), or an errno: where a store would be SIGBUS, a system call says so. */
static int reserve(char *at, size_t bytes)
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
    if (mapping_count == mapping_room) {
        size_t room = mapping_room ? mapping_room * 2 : 16;
        struct mapping *more = realloc(mappings, room * sizeof *more);
        if (!more)
            return false;
        mappings = more;
        mapping_room = room;
    }
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

/* The file by its name, where that still leads to it; -1: not. */
static int file_again(void)
{
    char name[sizeof P.file_name];
    struct stat status;
    int fd;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(P.file_name, "@"), P.file_name);
    fd = session_open_in(P.file_directory, name, O_RDWR);
    if (fd >= 0 && (fstat(fd, &status) || status.st_dev != ring_file.device || status.st_ino != ring_file.inode)) {
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

/* BYTES (whole pages) of the file that nobody uses yet, zeroed, RESERVED of them with memory. NULL with errno. */
static void *extent_new(size_t bytes, size_t reserved, uint64_t *offset)
{
    uint64_t at = atomic_fetch_add(&P.root->used_bytes, bytes), end = at + bytes;
    char *mapped = NULL;
    int error = ENOSPC;

    if (end <= P.root->file_bytes && has_free(bytes)) {
        mapped = map_extent(at, bytes);
        error = mapped ? reserve(mapped, reserved) : errno;
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

/* ---- facts ---- */

/* A closed session's names are needed again by the next (tracer_close_session). */
static void chunk_note(struct facts *chunk)
{
    struct facts **more = realloc(chunks, (chunk_count + 1) * sizeof *more);

    if (!more)
        return;
    chunks = more;
    chunks[chunk_count++] = chunk;
}

static struct facts *facts_new(size_t bytes, uint64_t *offset)
{
    struct facts *chunk = extent_new(bytes, bytes, offset);

    if (chunk) {
        chunk->bytes = bytes - sizeof *chunk;
        chunk_note(chunk);
    }
    return chunk;
}

/* Append a record. One that finds no room is dropped: the collector shows its
 * code as unknown. */
static void fact_add(enum fact_kind kind, uint32_t id, const uint64_t number[3],
                 const char *text, size_t bytes, const char *more, size_t more_bytes)
{
    size_t size = (sizeof(struct fact) + bytes + more_bytes + 7) & ~(size_t)7;
    uint64_t used;
    struct fact *fact;

    if (!P.file || !facts)
        return;
    used = atomic_load_explicit(&facts->used, memory_order_relaxed);
    if (size > facts->bytes - used) {
        size_t chunk_bytes = size + sizeof(struct facts) > MORE_FACTS ? size + sizeof(struct facts) : MORE_FACTS;
        uint64_t offset;
        struct facts *chunk = facts_new((chunk_bytes + 4095) & ~(size_t)4095, &offset);
        if (!chunk)
            return;
        facts->next_off = offset;
        facts = chunk;
        used = 0;
    }
    fact = (struct fact *)(facts->data + used);
    *fact = (struct fact){.bytes = (uint32_t)size, .kind = (uint16_t)kind, .id = id,
                          .text_bytes = {(uint32_t)bytes, (uint32_t)more_bytes}};
    if (number)
        memcpy(fact->number, number, sizeof fact->number);
    memcpy(fact->text, text, bytes);
    memcpy(fact->text + bytes, more, more_bytes);
    /* The first record of a chunk also publishes next_off of the one before. */
    atomic_store_explicit(&facts->used, used + size, memory_order_release);
}

void tracer_fact(enum fact_kind kind, uint32_t id, const uint64_t number[3],
                 const char *text, size_t bytes, const char *more, size_t more_bytes)
{
    tracer_lock();
    fact_add(kind, id, number, text, bytes, more, more_bytes);
    tracer_unlock();
}

/* What is true of the whole process image. Not repeated in a forked child. */
static void facts_of_process(void)
{
    static char buffer[ARGV_MAX];
    const char *rank = getenv("RANK"), *local = getenv("LOCAL_RANK"), *version = Py_GetVersion();
    PyObject *executable = PySys_GetObject("executable"); /* borrowed */
    int fd = P.session->no_argv ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;

    if (fd >= 0) {
        while (used < sizeof buffer && (got = read(fd, buffer + used, sizeof buffer - used)) > 0)
            used += (size_t)got;
        close(fd);
        tracer_fact(FACT_ARGV, 0, NULL, buffer, used, "", 0);
    }
    tracer_fact(FACT_PYTHON, 0, NULL, version, strcspn(version, " "), "", 0);
    if (executable && PyUnicode_Check(executable)) {
        Py_ssize_t bytes = 0;
        const char *text = PyUnicode_AsUTF8AndSize(executable, &bytes);
        if (text)
            tracer_fact(FACT_EXECUTABLE, 0, NULL, text, (size_t)bytes, "", 0);
        else
            PyErr_Clear();
    }
    if (rank && *rank >= '0' && *rank <= '9')
        tracer_fact(FACT_RANK, 0, (uint64_t[3]){(uint64_t)atoll(rank) + 1, local && *local >= '0' && *local <= '9' ?
                                                (uint64_t)atoll(local) + 1 : 0}, "", 0, "", 0);
}

/* ---- the process's file ---- */

static uint64_t start_time(void)
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

static uint64_t fork_clock; /* of the last fork() */

/* FILE is zeroed, at OFFSET of a file of BYTES; facts for it come next. Everything but `ready`. */
static void header_fill(struct process_file *file, uint64_t started, const char *parent, uint64_t offset)
{
    memcpy(file->magic, RING_PROCESS_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->word_bytes = sizeof(uint64_t);
    file->pid = (uint32_t)getpid();
    file->parent_pid = (uint32_t)getppid();
    file->start_time = started;
    file->born_clock = *parent ? fork_clock : tracer_now(P.monotonic);
    snprintf(file->parent_file, sizeof file->parent_file, "%s", parent);
    if (*parent) {
        file->inherited_codes = P.codes;
        file->inherited_entries = P.entries;
        file->inherited_signatures = P.signatures;
        P.compiles = 0;
    }
    file->mode = P.session->frames;
    file->facts_off = offset + HEADER_BYTES;
    chunk_count = 0;
    facts = (struct facts *)((char *)file + HEADER_BYTES);
    chunk_note(facts);
    facts->bytes = FIRST_FACTS - sizeof *facts;
    P.file = file;
    ring_bytes_used = 0;
}

/* How large a file may be made: more than the limit is a signal. */
static uint64_t file_bytes_most(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < FILE_BYTES;

    return limited ? limit.rlim_cur & ~UINT64_C(4095) : FILE_BYTES;
}

/* Make the file in DIRECTORY ("": there is none). 0, or an errno. */
static int file_make(const char *directory, uint64_t started, const char *parent)
{
    char name[sizeof P.file_name];
    uint64_t bytes = file_bytes_most();
    int at = session_open_directory(directory), fd = -1;
    int error = at < 0 ? errno : bytes < HEADER_BYTES + FIRST_FACTS ? EFBIG : 0;
    size_t before = mapping_count;
    struct process_file *file = MAP_FAILED;
    struct stat status;

    for (int n = 0; fd < 0 && !error; n++) {
        snprintf(name, sizeof name, "%d-%llu-%d.ring", (int)getpid(), (unsigned long long)started, n);
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
        error = file == MAP_FAILED ? errno : reserve((char *)file, HEADER_BYTES + FIRST_FACTS);
    }
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
        ring_file.device = status.st_dev;
        ring_file.inode = status.st_ino;
        file->file_bytes = bytes;
        atomic_store(&file->used_bytes, HEADER_BYTES + FIRST_FACTS);
        header_fill(file, started, parent, 0);
        P.root = file;
        atomic_store_explicit(&file->ready, 1, memory_order_release);
    }
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    return error;
}

/* Make one within the file of the process that this one was forked from. 0, or an errno. */
static int nested_make(uint64_t started, const char *parent)
{
    uint64_t offset, newest;
    struct process_file *file = extent_new(HEADER_BYTES + FIRST_FACTS, HEADER_BYTES + FIRST_FACTS, &offset);
    char *end = P.file_name + strcspn(P.file_name, "@");

    if (!file)
        return errno;
    snprintf(end, sizeof P.file_name - (size_t)(end - P.file_name), "@%llx", (unsigned long long)offset);
    header_fill(file, started, parent, offset);
    atomic_store_explicit(&file->ready, 1, memory_order_release);
    newest = atomic_load(&P.root->nested);
    do
        file->next_nested = newest;
    while (!atomic_compare_exchange_weak(&P.root->nested, &newest, offset));
    return 0;
}

/* The session's own directory, or the second one when that is full; a forked child that can make none there has its
 * parent's. When there is no room at all, the parent's file or an empty one tells the collector what happened. */
static void file_open(const char *parent)
{
    const bool forked = P.root != NULL;
    uint64_t started = start_time();
    char name[sizeof P.file_name];
    int fd, error;

    P.file = NULL;
    if (atomic_load(&P.session->closed))
        return;
    error = file_make(P.session_directory, started, parent);
    if (error && file_make(P.spill_directory, started, parent) == 0)
        error = 0;
    if (error && forked) {
        error = nested_make(started, parent);
        if (error) {
            atomic_fetch_add(&P.root->orphans, 1);
            atomic_store(&P.root->orphan_error, (uint32_t)error);
        }
    } else if (forked) { /* the parent's header */
        munmap(mappings[0].at, mappings[0].bytes);
        memmove(mappings, mappings + 1, --mapping_count * sizeof *mappings);
    } else if (error) {
        snprintf(name, sizeof name, "%d-%llu-%d.lost", (int)getpid(), (unsigned long long)started, error);
        fd = session_open_in(P.session_directory, name, O_WRONLY | O_CREAT);
        if (fd >= 0)
            close(fd);
    }
}

/* ---- rings ---- */

/* A ring's size falls as the process has more of them, so that hundreds of
 * threads stay near the session's budget: 64 KB each beyond it. */
static struct ring *ring_new(void)
{
    uint64_t left = P.session->budget_bytes > ring_bytes_used ? P.session->budget_bytes - ring_bytes_used : 0;
    uint64_t bytes = P.session->ring_bytes, offset;
    uint32_t n = atomic_load_explicit(&P.file->rings, memory_order_relaxed);
    struct ring *ring = NULL;

    if (n == RING_MAX)
        goto done;
    if (P.file->parent_file[0]) /* forked: often one of many, and short-lived */
        bytes /= 4;
    while (n && bytes > RING_SMALLEST && bytes > left / 4)
        bytes /= 2;
    while (!(ring = extent_new(RING_HEADER + bytes, RING_HEADER + (bytes < RESERVE_STEP ? bytes : RESERVE_STEP), &offset)) &&
           bytes > RING_SMALLEST)
        bytes /= 2;
    if (ring) {
        ring_bytes_used += bytes;
        ring->words = bytes / sizeof(uint64_t);
        ring->reserved = (bytes < RESERVE_STEP ? bytes : RESERVE_STEP) / sizeof(uint64_t);
        ring->offset = offset;
        P.file->ring_off[n] = offset;
        atomic_store_explicit(&P.file->rings, n + 1, memory_order_release);
    }
done:
    if (!ring) {
        atomic_fetch_add(&P.file->lost_threads, 1);
        atomic_store(&P.file->lost_error, (uint32_t)(n == RING_MAX ? EAGAIN : errno));
    }
    return ring;
}

/* A ring whose thread has ended, and of which the collector has taken enough for another to begin. */
static struct ring *ring_reuse(void)
{
    struct ring *ring = NULL;

    tracer_lock();
    for (unsigned i = free_ring_count; i-- > 0 && !ring; ) {
        struct ring *one = free_rings[i];
        if (atomic_load_explicit(&one->head, memory_order_relaxed) -
                atomic_load_explicit(&one->tail, memory_order_acquire) <= one->words / 2) {
            ring = one;
            free_rings[i] = free_rings[--free_ring_count];
        }
    }
    tracer_unlock();
    return ring;
}

/* The thread's name as Python knows it. A thread of `threading` begins with the
 * frame Thread._bootstrap, whose self has it as a plain attribute. "" otherwise.
 * Only ordinary attribute access is used: no code of the program runs. */
static void thread_name(compat_frame *frame, char *name, size_t room)
{
    PyObject *self = frame ? compat_local(frame, 0) : NULL, *value = NULL, *encoded = NULL;

    name[0] = 0;
    if (getpid() == (pid_t)syscall(SYS_gettid)) {
        snprintf(name, room, "MainThread");
        return;
    }
    if (!self || Py_TYPE(self)->tp_getattro != PyObject_GenericGetAttr ||
        PyUnicode_CompareWithASCIIString(compat_code(frame)->co_qualname, "Thread._bootstrap"))
        return;
    value = tracer_attribute(self, "_name");
    encoded = value && PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace") : NULL;
    if (encoded) {
        const char *text = PyBytes_AS_STRING(encoded);
        size_t length = (size_t)PyBytes_GET_SIZE(encoded);
        if (length >= room) /* cut between two characters */
            for (length = room - 1; (text[length] & 0xc0) == 0x80; )
                length--;
        memcpy(name, text, length);
        name[length] = 0;
        if (values_kept() != SESSION_VALUES_ALL)
            values_thread_name(name);
    }
    Py_XDECREF(value);
    Py_XDECREF(encoded);
    PyErr_Clear();
}

/* ---- waiting ---- */

/* Nobody reads it any more: the session is over, or the collector does not trust what it found. */
static bool is_abandoned(void)
{
    return atomic_load(&P.session->closed) || (P.file && atomic_load(&P.file->abandoned));
}

/* Memory for the next part of the ring. False: the filesystem is full. */
static bool reserve_more(struct ring *ring)
{
    uint64_t bytes = (ring->words - ring->reserved) * sizeof(uint64_t);

    if (bytes > RESERVE_STEP)
        bytes = RESERVE_STEP;
    if (reserve((char *)ring + RING_HEADER + ring->reserved * sizeof(uint64_t), bytes))
        return false;
    ring->reserved += bytes / sizeof(uint64_t);
    return true;
}

/* Look at tail again. True when a control word and an event fit; false with no limit: it has no memory. */
static bool has_room(struct tracer *t)
{
    /* D: matches the collector's C. */
    uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);

    t->limit = tail + t->mask + 1 - RING_MARGIN;
    if (t->ring->reserved <= t->mask) { /* its first time round */
        if (t->head + RING_MARGIN >= t->ring->reserved && !reserve_more(t->ring))
            t->limit = 0;
        else if (t->limit > t->ring->reserved - RING_MARGIN)
            t->limit = t->ring->reserved - RING_MARGIN;
    }
    return t->head < t->limit;
}

static bool is_past(const struct ring *ring, uint64_t full)
{
    return (int64_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) - full) > 0;
}

/* The ring is full: sleep until the collector has taken some of it, for --max-stall at most. False when it has not.
 * The first moments with the GIL, as letting go could reorder what threads do where nothing but the recorder is slow; then,
 * if it MAY_LET_GO, without. Then even the session may be another afterwards, and nothing of the ring is touched. */
static bool wait_for_collector(struct tracer *t, bool may_let_go, uint64_t *waited)
{
    const uint64_t began = clock_monotonic_ns(), most = atomic_load(&stalled) ? 0 : P.session->max_stall_ns;
    struct ring *ring = t->ring;
    const uint64_t full = t->head - t->mask - 1 + RING_MARGIN; /* the tail at which there is no room */
    PyThreadState *let_go = NULL;
    uint64_t now = began;
    bool moved;

    atomic_fetch_add(&sleepers, 1);
    while (!(moved = is_past(ring, full)) && now - began < most && !is_abandoned() && !atomic_load(&closing)) {
        uint64_t left = most - (now - began), step = may_let_go && !let_go ? HOLD_MS * MS : WAIT_MS * MS;
        struct timespec timeout = {0, (long)(left < step ? left : step)};
        if (may_let_go && !let_go && now - began >= HOLD_MS * MS)
            let_go = PyEval_SaveThread();
        atomic_store(&ring->waiting, 1);
        if (!is_past(ring, full))
            syscall(SYS_futex, &ring->waiting, FUTEX_WAIT, 1, &timeout, NULL, 0);
        now = clock_monotonic_ns();
    }
    ring->waits++;
    ring->wait_ns += now - began;
    *waited += now - began;
    atomic_store(&stalled, !moved);
    atomic_fetch_sub(&sleepers, 1);
    if (let_go)
        PyEval_RestoreThread(let_go);
    return moved;
}

/* From now on nothing is written, for ERROR, or because the collector takes nothing (0). */
static void gap_begin(struct tracer *t, uint64_t now, int error)
{
    t->limit = 0;
    if (!t->ring->lost_since) {
        t->ring->lost_since = now;
        t->ring->lost_error = (uint64_t)error;
    }
}

static void stop(struct tracer *t, uint64_t now, int error)
{
    t->gone = true;
    gap_begin(t, now, error);
    if (atomic_load(&P.session->closed))
        tracer_record(false);
}

/* Wait for room where no gap may begin while others run. False: there is none. */
static bool room_held(struct tracer *t, uint64_t *now)
{
    uint64_t waited = 0;
    bool room = has_room(t);

    if (!room && t->limit && wait_for_collector(t, false, &waited)) {
        *now = tracer_now(P.monotonic);
        room = has_room(t);
    }
    return room;
}

/* ENTERs of the open frames whose ENTER is not in the ring, the outermost first. False: there was no room for all. */
static bool write_open(struct tracer *t, uint64_t *now)
{
    struct open_frame **stack = NULL, *open;
    size_t depth = 0;
    bool room = true;

    for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
        depth++;
    stack = depth ? malloc(depth * sizeof *stack) : NULL;
    if (depth && !stack)
        return true; /* what runs next has other parents; there is no memory for more */
    for (open = t->open; depth; open = open->outer)
        stack[--depth] = open;
    for (size_t n = 0; stack && room; n++) {
        room = room_held(t, now);
        if (room) {
            stack[n]->ordinal = t->entered++;
            stack[n]->code &= ~OPEN_LOST;
            t->words[t->head++ & t->mask] =
                RING_CONTROL_WORD(CONTROL_ENTER, 2, (uint64_t)RING_INHERITED << 37 | stack[n]->code);
            tracer_put(t, *now);
        }
        if (stack[n] == t->open)
            break;
    }
    free(stack);
    return room;
}

/* Say in the ring what is missing from it. LEFT open frames are those from before the gap. */
static void write_gap(struct tracer *t, uint64_t now, uint64_t left, uint32_t innermost, uint64_t still_open)
{
    struct ring *ring = t->ring;
    uint64_t lost = ring->lost > still_open ? ring->lost - still_open : 0;

    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_GAP, 4, left);
    t->words[t->head++ & t->mask] = now;
    t->words[t->head++ & t->mask] = ring->lost_since;
    ring->lost = ring->lost_since = 0;
    tracer_put(t, (lost > UINT32_MAX ? UINT32_MAX : lost) << 32 | innermost);
    t->epoch = now;
}

/* Is there room again? Then the words go on. */
static bool gap_end(struct tracer *t, uint64_t *now)
{
    uint64_t left = 0, still_open = 0;
    struct open_frame *open = t->open;
    uint32_t innermost;

    if (!has_room(t)) {
        t->limit = 0;
        return false;
    }
    for (; open && open->code & OPEN_LOST; open = open->outer)
        still_open++;
    innermost = open ? open->ordinal : 0;
    for (; open; open = open->outer)
        left++;
    atomic_store(&stalled, false);
    write_gap(t, *now, left, innermost, still_open);
    if (!write_open(t, now)) {
        gap_begin(t, *now, 0);
        for (open = t->open; open && open->code & OPEN_LOST; open = open->outer)
            t->ring->lost++;
    }
    return !t->ring->lost_since;
}

/* ---- threads ---- */

/* Give T a ring and say in it who writes; after a fork also what was running. */
static bool ring_attach(struct tracer *t, compat_frame *frame)
{
    struct ring *ring = P.file ? ring_reuse() : NULL;
    uint64_t now = tracer_now(P.monotonic), number[3] = {(uint64_t)syscall(SYS_gettid)};
    char name[256];
    uint32_t id;

    thread_name(frame, name, sizeof name);
    tracer_lock();
    if (!ring && P.file)
        ring = ring_new();
    id = P.threads;
    if (ring)
        fact_add(FACT_THREAD, P.threads++, number, name, strlen(name), "", 0);
    tracer_unlock();
    if (!ring) {
        t->gone = true;
        return false;
    }
    t->ring = ring;
    t->words = (uint64_t *)((char *)ring + RING_HEADER);
    t->mask = ring->words - 1;
    t->head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    t->entered = 0;
    if (!has_room(t)) { /* half of it is free: it has no memory */
        stop(t, now, ENOSPC);
        return false;
    }
    if (ring->lost_since) /* the thread before ended in a gap */
        write_gap(t, now, 0, 0, 0);
    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_THREAD, 2, id);
    tracer_put(t, now);
    t->epoch = now;
    for (struct open_frame *open = t->open; open; open = open->outer)
        open->code |= OPEN_LOST;
    if (!write_open(t, &now))
        gap_begin(t, now, 0);
    return true;
}

static struct tracer *all_tracers; /* under the lock */

void tracer_forget_callbacks(void)
{
    tracer_lock();
    for (struct tracer *t = all_tracers; t; t = t->next_tracer) {
        t->callback = NULL;
        t->shim = NULL;
        t->active = false;
        t->replacement = t->replacement_for = NULL;
    }
    tracer_unlock();
}

static void thread_ended(void *value)
{
    struct tracer *t = value, **link = &all_tracers;

    tracer_thread = NULL;
    tracer_lock();
    if (t->ring)
        free_rings[free_ring_count++] = t->ring;
    while (*link && *link != t)
        link = &(*link)->next_tracer;
    if (*link)
        *link = t->next_tracer;
    tracer_unlock();
    tracer_stack_release(t);
    free(t);
}

struct tracer *tracer_attach(compat_frame *frame)
{
    int saved_errno = errno;
    PyObject *type, *value, *traceback;
    struct tracer *t;

    PyErr_Fetch(&type, &value, &traceback); /* a throw arrives with its exception set */
    t = aligned_alloc(64, (sizeof *t + 63) & ~(size_t)63);
    if (t) {
        memset(t, 0, sizeof *t);
        t->region = -1;
        t->observed = TRACER_NO_CALLBACK;
        t->stack_low = tracer_stack_low();
        tracer_thread = t;
        tracer_lock();
        t->next_tracer = all_tracers;
        all_tracers = t;
        tracer_unlock();
        if (thread_key_made || (thread_key_made = !pthread_key_create(&thread_key, thread_ended)))
            pthread_setspecific(thread_key, t);
        if (P.session)
            ring_attach(t, frame);
    }
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
    return t;
}

/* Room for an event: one AT_FRAME's beginning or end, where a gap may end and other threads may run meanwhile. */
static bool make_room(struct tracer *t, uint64_t *now, bool at_frame)
{
    uint64_t waited = 0;
    bool room = false;

    fork_check();
    while (!room && P.session && !t->gone) {
        if (!t->ring) { /* the first event after a fork, or of a thread older than the session */
            ring_attach(t, NULL);
            *now = tracer_now(P.monotonic);
        } else if (is_abandoned()) {
            stop(t, *now, 0);
        } else if (t->ring->lost_since) {
            room = at_frame && gap_end(t, now);
            break;
        } else if (has_room(t)) {
            room = true;
        } else if (!t->limit) {
            stop(t, *now, ENOSPC);
        } else {
            bool moved = wait_for_collector(t, at_frame, &waited);
            *now = tracer_now(P.monotonic);
            /* Anything may have happened meanwhile, if the GIL was let go. */
            if (!moved && P.session && t->ring && !is_abandoned())
                gap_begin(t, *now, 0);
        }
    }
    if (room && waited > STALL_MS * MS) {
        t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_STALL, 3, 0);
        t->words[t->head++ & t->mask] = *now;
        tracer_put(t, waited);
    }
    if (room && *now - t->epoch > RING_EPOCH_TICKS) {
        t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0);
        tracer_put(t, *now);
        t->epoch = *now;
    }
    if (unlikely(forking_pid)) /* the next event may be the child's */
        t->limit = 0;
    return room;
}

uint64_t tracer_room(struct tracer *t, uint64_t now)
{
    int saved_errno = errno;
    bool room = !t->quiet && make_room(t, &now, true);

    errno = saved_errno;
    return room ? now : 0;
}

bool tracer_room_within(struct tracer *t)
{
    int saved_errno = errno;
    uint64_t now = tracer_now(P.monotonic);
    bool room = !t->quiet && make_room(t, &now, false);

    errno = saved_errno;
    return room;
}

uint64_t tracer_enter(struct tracer *t, struct open_frame *open, uint32_t code, enum ring_tag tag, uint64_t now)
{
    uint64_t entered = tracer_room(t, now);

    if (entered) {
        record_open(t, open, code, tag, entered, true);
        goto done;
    }
    if (t->quiet || !P.session)
        goto done;
    if (atomic_load_explicit(&P.session->closed, memory_order_relaxed)) {
        if (P.recording || P.hook) /* a sub-interpreter may have been first to see it */
            tracer_record(false);
        goto done;
    }
    if (t->ring)
        t->ring->lost++;
    else if (P.file)
        atomic_fetch_add(&P.file->lost_frames, 1);
    else if (P.root)
        atomic_fetch_add(&P.root->orphan_frames, 1);
    if (t->ring && !t->gone) {
        open->outer = t->open;
        open->code = code | OPEN_LOST;
        open->depth = open->outer ? open->outer->depth + 1 : 0;
        t->open = open;
        entered = tracer_now(P.monotonic);
    }
done:
    return entered;
}

/* ---- fork ---- */

/* Before a fork(). A child has what there was at this time: it may begin to run much later. What the lock guards is whole
 * then. It stays locked where interpreters have GILs of their own, and only there: handlers that run Python code may
 * let go of the GIL. */
static void forking(void)
{
    tracer_lock();
    fork_clock = tracer_now(P.monotonic);
    forking_pid = getpid();
    if (tracer_thread)
        tracer_thread->limit = 0;
    if (!P.interpreters)
        tracer_unlock();
}

/* After it, in the parent. */
static void has_forked(void)
{
    forking_pid = 0;
    if (P.interpreters)
        tracer_unlock();
}

/* In the child, inside fork(): only this thread exists, and little is safe to
 * call. Once, by whoever is first. The parent's rings and facts are unmapped so that nothing can write to
 * them, and its header too once the child has a file of its own. */
static void forked(void)
{
    int saved_errno = errno;
    struct tracer *t = tracer_thread;
    char parent[sizeof P.file_name];

    if (!forking_pid)
        return;
    forking_pid = 0;
    tracer_perf_forked();
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (!P.session)
        return;
    memcpy(parent, P.file_name, sizeof parent);
    if (!P.file)
        parent[0] = 0;
    mappings_drop(1);
    facts = NULL;
    P.threads = 0;
    atomic_store(&sleepers, 0);
    free_ring_count = 0;
    all_tracers = t;
    if (t)
        t->next_tracer = NULL;
    file_open(parent);
    if (t) {
        t->ring = NULL;
        t->words = NULL;
        t->head = t->limit = 0;
        t->gone = !P.file;
    }
    errno = saved_errno;
}

/* ---- session ---- */

/* Names that this session's words may use although an earlier session got their
 * facts: code objects keep their ids. */
static char *kept;
static size_t kept_bytes;

static bool is_kept(const struct fact *fact)
{
    return fact->kind == FACT_CODE || fact->kind == FACT_ENTRY || fact->kind == FACT_GUARD || fact->kind == FACT_ORDER ||
           fact->kind == FACT_SIGNATURE;
}

static void facts_keep(void)
{
    free(kept);
    kept = NULL;
    kept_bytes = 0;
    for (size_t i = 0; i < chunk_count; i++) {
        uint64_t used = atomic_load_explicit(&chunks[i]->used, memory_order_relaxed);
        for (uint64_t at = 0; at < used; ) {
            const struct fact *fact = (const struct fact *)(chunks[i]->data + at);
            char *more = is_kept(fact) ? realloc(kept, kept_bytes + fact->bytes) : NULL;
            if (more) {
                kept = more;
                memcpy(kept + kept_bytes, fact, fact->bytes);
                kept_bytes += fact->bytes;
            }
            at += fact->bytes;
        }
    }
}

static void facts_again(void)
{
    for (size_t at = 0; at < kept_bytes; at += ((struct fact *)(kept + at))->bytes) {
        const struct fact *fact = (const struct fact *)(kept + at);
        tracer_fact((enum fact_kind)fact->kind, fact->id, fact->number, fact->text, fact->text_bytes[0],
                    fact->text + fact->text_bytes[0], fact->text_bytes[1]);
    }
}

/* The GIL is held, so no other thread is writing; those in the middle of a frame
 * find no ring at its end. */
void tracer_close_session(void)
{
    if (!P.session)
        return;
    tracer_record(false);
    if (P.file) {
        facts_keep();
        atomic_store(&P.file->left, 1);
    }
    atomic_store(&closing, true);
    while (atomic_load(&sleepers)) /* they need no GIL to see that */
        usleep(1000);
    atomic_store(&closing, false);
    tracer_lock();
    for (struct tracer *t = all_tracers; t; t = t->next_tracer) {
        t->ring = NULL;
        t->words = NULL;
        t->head = t->limit = 0;
        t->gone = false;
    }
    free_ring_count = 0;
    tracer_unlock();
    mappings_drop(0);
    facts = NULL;
    chunk_count = 0;
    P.file = P.root = NULL;
    munmap((void *)P.session, P.session->bytes);
    P.session = NULL;
    P.threads = 0;
}

static bool fork_watched;

/* The session file of the session in DIRECTORY, mapped. MAP_FAILED with errno. */
static struct session_file *session_map(const char *directory)
{
    int fd = session_open_in(directory, "session", O_RDONLY);
    struct session_file *session = MAP_FAILED;
    struct stat status;

    if (fd < 0)
        return MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof *session && status.st_size <= 1 << 20)
        session = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (session != MAP_FAILED &&
        (memcmp(session->magic, RING_SESSION_MAGIC, sizeof session->magic) || session->format != RING_FORMAT ||
         session->bytes != status.st_size || ((char *)session)[status.st_size - 1] != 0 ||
         session->ring_bytes < RING_SMALLEST || (session->ring_bytes & (session->ring_bytes - 1)))) {
        munmap(session, (size_t)status.st_size);
        session = MAP_FAILED;
        errno = ENOENT;
    }
    return session;
}

const char *tracer_open_session(const char *directory)
{
    struct session_file *session = MAP_FAILED;
    const char *spill;

    errno = ENOENT;
    if (strlen(directory) < sizeof P.session_directory)
        session = session_map(directory);
    if (session == MAP_FAILED)
        return errno == ENOENT ? "gone" : errno == EACCES ? "denied" : "memory";
    if (atomic_load(&session->closed)) {
        munmap(session, session->bytes);
        return "over";
    }
    strcpy(P.session_directory, directory);
    /* Two directories of one name: what the file says is not believed to be anywhere else. */
    spill = session->text;
    P.spill_directory[0] = 0;
    if (strlen(spill) < sizeof P.spill_directory && !strcmp(session_check_base(spill), session_check_base(directory)))
        strcpy(P.spill_directory, spill);
    P.session = session;
    P.monotonic = session->clock == SESSION_MONOTONIC;
    atomic_store(&stalled, false);
    P.decided_only = session->frames == SESSION_DECIDED;
    if (!fork_watched && pthread_atfork(forking, has_forked, forked)) {
        P.session = NULL;
        return "memory";
    }
    fork_watched = true;
    file_open("");
    if (!P.file) {
        P.session = NULL;
        return "room";
    }
    facts_of_process();
    facts_again();
    return NULL;
}

/* tracer_ring.c -- a process's file, its threads' rings, waiting, and fork.
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * The file grows by extents, each reserved before it is mapped (ring.h). No
 * descriptor stays open: a program may close every one it finds.
 *
 * A ring belongs to one thread at a time. When the thread ends the ring goes to
 * a free list; the next thread writes a CONTROL_THREAD word and carries on.
 *
 * Fork: the child handler makes a file for the child and forgets the parent's
 * rings. The child's first event attaches a ring and writes an ENTER for each
 * frame that was open (struct open_frame lies on the C stack, which the child
 * has a copy of), so that what it runs next has its parents. */
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session_check.h"

enum {
    FIRST_FACTS = 128 << 10, /* bytes of the first facts chunk; later ones are larger */
    MORE_FACTS = 512 << 10,
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
    WAIT_MS = 20,            /* between looks whether the collector lives */
    STALL_MS = 10,           /* a wait longer than this is a row */
    ARGV_MAX = 64 << 10,
    RESERVE_STEP = 2 << 20,  /* bytes of a ring that get memory at a time */
};

#define P tracer_process

/* What this process has mapped of its file, to be dropped after a fork. */
static struct mapping {
    void *at;
    size_t bytes;
} *mappings;
static size_t mapping_count, mapping_room;
static struct facts *facts; /* the chunk being filled */
static struct facts **chunks; /* all of them, in order; owned (the array) */
static size_t chunk_count;
static uint64_t ring_bytes_used;

/* Rings whose thread has ended. Thread exit does not hold the GIL. */
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring *free_rings[RING_MAX];
static unsigned free_ring_count;

static pthread_key_t thread_key; /* calls thread_ended */
static bool thread_key_made;

/* ---- extents ---- */

static int reserve(int fd, off_t at, off_t bytes)
{
    int error;

    do
        error = posix_fallocate(fd, at, bytes);
    while (error == EINTR);
    return error;
}

/* Is there room for BYTES now? What is reserved later should not come as a surprise. */
static bool has_free(int fd, size_t bytes)
{
    struct statvfs status;

    return fstatvfs(fd, &status) || (uint64_t)status.f_bavail * status.f_frsize >= bytes;
}

static void *map_extent(int fd, uint64_t at, size_t bytes)
{
    void *mapped;

    if (mapping_count == mapping_room) {
        size_t room = mapping_room ? mapping_room * 2 : 16;
        struct mapping *more = realloc(mappings, room * sizeof *more);
        if (!more)
            return NULL;
        mappings = more;
        mapping_room = room;
    }
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    if (mapped == MAP_FAILED)
        return NULL;
    mappings[mapping_count++] = (struct mapping){mapped, bytes};
    return mapped;
}

/* BYTES (whole pages) more of the process's file, zeroed, RESERVED of them with
 * memory. NULL: no room. */
static void *extent_new(size_t bytes, size_t reserved, uint64_t *offset)
{
    uint64_t at = atomic_load_explicit(&P.file->file_bytes, memory_order_relaxed);
    void *mapped = NULL;
    int fd = session_open_in(P.file_directory, P.file_name, O_RDWR);

    if (fd < 0)
        return NULL;
    if (has_free(fd, bytes) && reserve(fd, (off_t)at, (off_t)reserved) == 0 &&
        (reserved == bytes || ftruncate(fd, (off_t)(at + bytes)) == 0))
        mapped = map_extent(fd, at, bytes);
    close(fd);
    if (!mapped)
        return NULL;
    *offset = at;
    atomic_store_explicit(&P.file->file_bytes, at + bytes, memory_order_release);
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
 * code as unknown. The caller holds the GIL. */
void tracer_fact(enum fact_kind kind, uint32_t id, const uint64_t number[3],
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

/* What is true of the whole process image. Not repeated in a forked child. */
static void facts_of_process(void)
{
    static char buffer[ARGV_MAX];
    const char *rank = getenv("RANK"), *local = getenv("LOCAL_RANK"), *version = Py_GetVersion();
    PyObject *executable = PySys_GetObject("executable"); /* borrowed */
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;

    if (fd >= 0) {
        while (used < sizeof buffer && (got = read(fd, buffer + used, sizeof buffer - used)) > 0)
            used += (size_t)got;
        close(fd);
    }
    tracer_fact(FACT_ARGV, 0, NULL, buffer, used, "", 0);
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

/* Make the file in DIRECTORY ("": there is none). 0, or an errno. */
static int file_make(const char *directory, uint64_t started, const char *parent)
{
    int at = session_open_directory(directory), fd = -1, error = at < 0 ? errno : EEXIST;
    struct process_file *file = NULL;

    P.file_directory = directory;
    for (int n = 0; error == EEXIST; n++) {
        snprintf(P.file_name, sizeof P.file_name, "%d-%llu-%d.ring", (int)getpid(), (unsigned long long)started, n);
        fd = session_open_file(at, P.file_name, O_RDWR | O_CREAT | O_EXCL);
        error = fd < 0 ? errno : reserve(fd, 0, HEADER_BYTES + FIRST_FACTS);
    }
    if (!error) {
        file = map_extent(fd, 0, HEADER_BYTES + FIRST_FACTS);
        error = file ? 0 : ENOMEM;
    }
    if (error && fd >= 0)
        unlinkat(at, P.file_name, 0);
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    if (error)
        return error;
    memcpy(file->magic, RING_PROCESS_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->word_bytes = sizeof(uint64_t);
    file->pid = (uint32_t)getpid();
    file->parent_pid = (uint32_t)getppid();
    file->start_time = started;
    file->born_clock = tracer_now(P.monotonic);
    snprintf(file->parent_file, sizeof file->parent_file, "%s", parent);
    if (*parent) {
        file->inherited_codes = P.codes;
        file->inherited_entries = P.entries;
        file->inherited_signatures = P.signatures;
        P.compiles = 0;
    }
    file->mode = P.session->frames;
    file->facts_off = HEADER_BYTES;
    atomic_store(&file->file_bytes, HEADER_BYTES + FIRST_FACTS);
    chunk_count = 0;
    facts = (struct facts *)((char *)file + HEADER_BYTES);
    chunk_note(facts);
    facts->bytes = FIRST_FACTS - sizeof *facts;
    P.file = file;
    ring_bytes_used = 0;
    atomic_store_explicit(&file->ready, 1, memory_order_release);
    return 0;
}

/* The session's own directory, or the second one when that is full. When
 * neither takes the file, an empty one tells the collector what happened. */
static void file_open(const char *parent)
{
    uint64_t started = start_time();
    char name[64];
    int fd;

    P.file = NULL;
    if (atomic_load(&P.session->closed) || file_make(P.session_directory, started, parent) == 0 ||
        file_make(P.spill_directory, started, parent) == 0)
        return;
    snprintf(name, sizeof name, "%d-%llu.lost", (int)getpid(), (unsigned long long)started);
    fd = session_open_in(P.session_directory, name, O_WRONLY | O_CREAT);
    if (fd >= 0)
        close(fd);
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
        return NULL;
    if (P.file->parent_file[0]) /* forked: often one of many, and short-lived */
        bytes /= 4;
    while (n && bytes > RING_SMALLEST && bytes > left / 4)
        bytes /= 2;
    while (!(ring = extent_new(RING_HEADER + bytes, RING_HEADER + (bytes < RESERVE_STEP ? bytes : RESERVE_STEP), &offset)) &&
           bytes > RING_SMALLEST)
        bytes /= 2;
    if (!ring)
        return NULL;
    ring_bytes_used += bytes;
    ring->words = bytes / sizeof(uint64_t);
    ring->reserved = (bytes < RESERVE_STEP ? bytes : RESERVE_STEP) / sizeof(uint64_t);
    ring->offset = offset;
    P.file->ring_off[n] = offset;
    atomic_store_explicit(&P.file->rings, n + 1, memory_order_release);
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
    }
    Py_XDECREF(value);
    Py_XDECREF(encoded);
    PyErr_Clear();
}

/* ---- waiting ---- */

/* The collector holds a lock as long as it lives; the kernel drops it at its
 * death, across pid namespaces and however it died. */
static bool collector_lives(void)
{
    int fd;
    bool lives;

    if (atomic_load(&P.session->closed) || (P.file && atomic_load(&P.file->abandoned)))
        return false;
    fd = session_open_in(P.session_directory, "collector.lock", O_RDONLY);
    if (fd < 0) /* out of descriptors: it may well live */
        return errno != ENOENT;
    lives = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return lives;
}

/* Memory for the next part of the ring. False: the filesystem is full. */
static bool reserve_more(struct ring *ring)
{
    uint64_t bytes = (ring->words - ring->reserved) * sizeof(uint64_t);
    int fd = session_open_in(P.file_directory, P.file_name, O_RDWR), error = EMFILE;

    if (bytes > RESERVE_STEP)
        bytes = RESERVE_STEP;
    if (fd >= 0) {
        error = reserve(fd, (off_t)(ring->offset + RING_HEADER + ring->reserved * sizeof(uint64_t)), (off_t)bytes);
        close(fd);
    }
    if (!error)
        ring->reserved += bytes / sizeof(uint64_t);
    return !error;
}

/* Look at tail again. True when a control word and an event fit. */
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

/* The ring is full: sleep until the collector has taken some of it. False when
 * there is no collector any more. The GIL stays held: what other threads do
 * next would have to wait as well, and letting go here could reorder them. */
static bool wait_for_collector(struct tracer *t, uint64_t *now)
{
    uint64_t began = clock_monotonic_ns(), waited;

    while (!has_room(t)) {
        struct timespec timeout = {0, WAIT_MS * 1000000L};
        atomic_store(&t->ring->waiting, 1);
        if (has_room(t))
            break;
        if (!t->limit) /* no memory */
            return false;
        if (syscall(SYS_futex, &t->ring->waiting, FUTEX_WAIT, 1, &timeout, NULL, 0) && errno == ETIMEDOUT &&
            !has_room(t) && !collector_lives())
            return false;
    }
    waited = clock_monotonic_ns() - began;
    t->ring->waits++;
    t->ring->wait_ns += waited;
    *now = tracer_now(P.monotonic);
    if (waited > STALL_MS * UINT64_C(1000000)) {
        t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_STALL, 3, 0);
        t->words[t->head++ & t->mask] = *now;
        tracer_put(t, waited);
    }
    return true;
}

static void stop(struct tracer *t)
{
    t->gone = true;
    t->limit = 0;
    if (atomic_load(&P.session->closed))
        tracer_record(false);
}

/* ---- threads ---- */

/* Give T a ring and say in it who writes; after a fork also what was running. */
static bool ring_attach(struct tracer *t, compat_frame *frame)
{
    struct ring *ring = NULL;
    uint64_t now = tracer_now(P.monotonic), number[3] = {(uint64_t)syscall(SYS_gettid)};
    struct open_frame *open, **stack;
    char name[256];
    size_t depth = 0;

    pthread_mutex_lock(&free_lock);
    if (free_ring_count)
        ring = free_rings[--free_ring_count];
    pthread_mutex_unlock(&free_lock);
    if (!ring && P.file && !(ring = ring_new()))
        P.file->lost_threads++;
    if (!ring) {
        t->gone = true;
        return false;
    }
    t->ring = ring;
    t->words = (uint64_t *)((char *)ring + RING_HEADER);
    t->mask = ring->words - 1;
    t->head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    t->entered = 0;
    thread_name(frame, name, sizeof name);
    tracer_fact(FACT_THREAD, P.threads, number, name, strlen(name), "", 0);
    if (!has_room(t) && !wait_for_collector(t, &now)) {
        stop(t);
        return false;
    }
    t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_THREAD, 2, P.threads++);
    tracer_put(t, now);
    t->epoch = now;

    for (open = t->open; open; open = open->outer)
        depth++;
    if (!depth)
        return true;
    stack = malloc(depth * sizeof *stack);
    if (!stack)
        return true;
    for (open = t->open; open; open = open->outer)
        stack[--depth] = open;
    for (size_t n = 0; stack[n]; n++) {
        stack[n]->ordinal = t->entered++;
        if (!has_room(t) && !wait_for_collector(t, &now)) {
            stop(t);
            break;
        }
        tracer_put(t, RING_WORD(RING_INHERITED, stack[n]->code & RING_ID_MASK, now));
        if (stack[n] == t->open)
            break;
    }
    free(stack);
    return !t->gone;
}

static struct tracer *all_tracers; /* under free_lock */

static void thread_ended(void *value)
{
    struct tracer *t = value, **link = &all_tracers;

    tracer_thread = NULL;
    pthread_mutex_lock(&free_lock);
    if (t->ring)
        free_rings[free_ring_count++] = t->ring;
    while (*link && *link != t)
        link = &(*link)->next_tracer;
    if (*link)
        *link = t->next_tracer;
    pthread_mutex_unlock(&free_lock);
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
        pthread_mutex_lock(&free_lock);
        t->next_tracer = all_tracers;
        all_tracers = t;
        pthread_mutex_unlock(&free_lock);
        if (thread_key_made || (thread_key_made = !pthread_key_create(&thread_key, thread_ended)))
            pthread_setspecific(thread_key, t);
        if (P.session)
            ring_attach(t, frame);
    }
    PyErr_Restore(type, value, traceback);
    errno = saved_errno;
    return t;
}

uint64_t tracer_room(struct tracer *t, uint64_t now)
{
    int saved_errno = errno;
    bool room = P.session && !t->gone;

    if (t->quiet)
        return 0;
    if (room && !t->ring) { /* the first event after a fork, or of a thread older than the session */
        room = ring_attach(t, NULL);
        now = tracer_now(P.monotonic);
    }
    if (room && !has_room(t) && !wait_for_collector(t, &now)) {
        stop(t);
        room = false;
    }
    if (room && now - t->epoch > RING_EPOCH_TICKS) {
        t->words[t->head++ & t->mask] = RING_CONTROL_WORD(CONTROL_EPOCH, 2, 0);
        tracer_put(t, now);
        t->epoch = now;
    }
    if (!room && P.session) {
        if (t->ring)
            t->ring->lost++;
        if (P.recording && atomic_load_explicit(&P.session->closed, memory_order_relaxed))
            tracer_record(false);
    }
    errno = saved_errno;
    return room ? now : 0;
}

/* ---- fork ---- */

/* In the child, inside fork(): only this thread exists, and little is safe to
 * call. The parent's rings are unmapped so that nothing can write to them. */
static void forked(void)
{
    int saved_errno = errno;
    struct tracer *t = tracer_thread;
    char parent[sizeof P.file_name];

    if (!P.session)
        return;
    memcpy(parent, P.file_name, sizeof parent);
    if (!P.file)
        parent[0] = 0;
    for (size_t i = 0; i < mapping_count; i++)
        munmap(mappings[i].at, mappings[i].bytes);
    mapping_count = 0;
    facts = NULL;
    P.threads = 0;
    free_ring_count = 0;
    pthread_mutex_init(&free_lock, NULL);
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
    if (P.file)
        facts_keep();
    pthread_mutex_lock(&free_lock);
    for (struct tracer *t = all_tracers; t; t = t->next_tracer) {
        t->ring = NULL;
        t->words = NULL;
        t->head = t->limit = 0;
        t->gone = false;
    }
    free_ring_count = 0;
    pthread_mutex_unlock(&free_lock);
    for (size_t i = 0; i < mapping_count; i++)
        munmap(mappings[i].at, mappings[i].bytes);
    mapping_count = 0;
    facts = NULL;
    chunk_count = 0;
    P.file = NULL;
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
    P.decided_only = session->frames == SESSION_DECIDED;
    if (!fork_watched && pthread_atfork(NULL, NULL, forked)) {
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

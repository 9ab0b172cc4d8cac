/* tracer/file.c -- a process's shared file: creating it, its extents, the facts in it. See ring.h
 * and facts.h.
 *
 * The program may close every descriptor it finds, change its user, or lose access to the session's
 * directory. So mapping more of the file needs only the header's mapping (mremap), and the file has
 * its final size from the start. A forked child makes its own file, or nests it in its parent's.
 *
 * Without a GIL: the list of mappings and the chunk of facts are under tracer_lock(); the file
 * itself is opened and closed while the world is stopped. */
#include "tracer/file.h"
#include "job.h"
#include "tracer/redact.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "namespaces.h"
#include "session_check.h"

#define P tracer_process
/* size of the file, which is sparse: room for some thousand nested processes */
#define FILE_BYTES (UINT64_C(64) << 30)

enum {
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
    FIRST_FACTS = 128 << 10, /* bytes of the first chunk of facts */
    MORE_FACTS = 512 << 10,  /* bytes of each later chunk of facts */
    /* bytes of a forked child's first chunk that get memory at once, which are enough for most
     * children */
    FORKED_FACTS = 16 << 10,
    ARGV_MAX = 64 << 10,
    /* how long to wait for the collector, which looks every few milliseconds */
    LOOKED_NS = 250000000,
};

/* The parts of the file that are mapped. The first is the header at offset 0. */
static struct mapping {
    char *at;
    size_t bytes;
    uint64_t offset;
} * mappings;
static size_t mapping_count;
static dev_t file_device;
static ino_t file_inode;

/* ---- get memory in the file and map it ---- */

int file_reserve_memory(char *at, size_t bytes)
{
    int error = madvise(at, bytes, MADV_POPULATE_WRITE) ? errno : 0;

    /* Linux before 5.14 has no MADV_POPULATE_WRITE: let a system call store to each page. It
     * returns EFAULT where a store of our own would raise SIGBUS. */
    if (error == EINVAL) {
        error = 0;
        for (size_t i = 0; i < bytes && !error; i += 4096)
            if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at + i, sizeof(uint64_t)))
                error = errno;
            else
                *(uint64_t *)(at + i) = 0;
    }
    return error == EFAULT ? ENOSPC : error;
}

/* Has the filesystem BYTES of free space now? If not, reserving memory later would probably
 * fail. */
static bool has_free_space(size_t bytes)
{
    struct statvfs status;

    return statvfs(P.file_directory, &status) ||
           (uint64_t)status.f_bavail * status.f_frsize >= bytes;
}

static bool note_mapping(void *at, size_t bytes, uint64_t offset)
{
    struct mapping *more = realloc(mappings, (mapping_count + 1) * sizeof *more);

    if (!more)
        return false;
    mappings = more;
    mappings[mapping_count++] = (struct mapping){at, bytes, offset};
    return true;
}

static void drop_mappings_from(size_t first)
{
    while (mapping_count > first) {
        mapping_count--;
        munmap(mappings[mapping_count].at, mappings[mapping_count].bytes);
    }
}

/* Return the address at which OFFSET of the file is mapped, or NULL. */
static void *find_mapped_address(uint64_t offset)
{
    for (size_t i = 0; i < mapping_count; i++)
        if (offset >= mappings[i].offset && offset - mappings[i].offset < mappings[i].bytes)
            return mappings[i].at + (offset - mappings[i].offset);
    return NULL;
}

/* Open the process file again by its name. Returns -1 if the name is gone or belongs to another
 * file. */
static int reopen_file(void)
{
    char name[sizeof P.file_name];
    struct stat status;
    int fd;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(P.file_name, "@"), P.file_name);
    fd = session_open_in(P.file_directory, name, O_RDWR);
    if (fd >= 0 &&
        (fstat(fd, &status) || status.st_dev != file_device || status.st_ino != file_inode)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Map BYTES more of the file, from offset AT on. Needs no descriptor and no name: mremap() of a
 * shared mapping with old size 0 maps the same file once more, from the same offset. Returns NULL
 * with errno on failure. */
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
        /* for valgrind, which does not support this use of mremap() */
    } else if ((fd = reopen_file()) >= 0) {
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
        close(fd);
    }
    if (mapped != MAP_FAILED && !note_mapping(mapped, bytes, at)) {
        munmap(mapped, bytes);
        errno = ENOMEM;
        mapped = MAP_FAILED;
    }
    return mapped == MAP_FAILED ? NULL : mapped;
}

void *file_allocate_extent(size_t bytes, size_t reserved, uint64_t *offset)
{
    uint64_t at = atomic_fetch_add(&P.root->used_bytes, bytes);
    uint64_t end = at + bytes;
    char *mapped = NULL;
    int error = ENOSPC;

    if (end <= P.root->file_bytes && has_free_space(bytes)) {
        mapped = map_extent(at, bytes);
        error = mapped ? file_reserve_memory(mapped, reserved) : errno;
    }
    if (mapped && error) {
        drop_mappings_from(mapping_count - 1);
        mapped = NULL;
    }
    if (!mapped)
        atomic_compare_exchange_strong(&P.root->used_bytes, &end, at);
    *offset = at;
    errno = error;
    return mapped;
}

/* ---- write facts ---- */

static struct facts *facts; /* the chunk to which facts are written */

/* Write facts to CHUNK from now on. It has BYTES bytes, of which RESERVED have memory. CHUNK is
 * NULL if there is no file. */
static void begin_facts_chunk(struct facts *chunk, size_t bytes, size_t reserved)
{
    facts = chunk;
    if (facts) {
        facts->bytes = bytes - sizeof *facts;
        facts->reserved = reserved - sizeof *facts;
    }
}

/* Make sure that the first END bytes of the chunk's data have memory: if not, get as much again as
 * there is, or more. Returns false if the filesystem is full. */
static bool reserve_facts_memory(uint64_t end)
{
    uint64_t more = sizeof *facts + facts->reserved;
    uint64_t left = facts->bytes - facts->reserved;

    if (end <= facts->reserved)
        return true;
    if (more < end - facts->reserved)
        more = (end - facts->reserved + 4095) & ~UINT64_C(4095);
    if (more > left)
        more = left;
    if (file_reserve_memory(facts->data + facts->reserved, more))
        return false;
    facts->reserved += more;
    return true;
}

/* Is a session open that takes facts? */
static bool takes_facts(void)
{
    return P.file && facts && !atomic_load_explicit(&P.session->closed, memory_order_relaxed);
}

/* Find room for a fact of SIZE bytes. Returns NULL if there is none. */
static struct fact *find_fact_room(size_t size)
{
    struct facts *before = facts;
    struct facts *chunk;
    uint64_t offset = 0;
    uint64_t used;

    used = atomic_load_explicit(&facts->used, memory_order_relaxed);
    if (size > facts->bytes - used) {
        size_t wanted = size + sizeof *facts > MORE_FACTS
                            ? (size + sizeof *facts + 4095) & ~(size_t)4095
                            : MORE_FACTS;
        if (!(chunk = file_allocate_extent(wanted, wanted, &offset)))
            return NULL;
        begin_facts_chunk(chunk, wanted, wanted);
        before->next_off = offset;
        used = 0;
    }
    if (!reserve_facts_memory(used + size))
        return NULL;
    return (struct fact *)(facts->data + used);
}

/* Publish the fact MADE, which find_fact_room() has found room for. The first fact of a chunk also
 * publishes next_off of the chunk before. */
static void publish_fact(const struct fact *made)
{
    uint64_t end = (uint64_t)((const char *)made - facts->data) + made->bytes;

    atomic_store_explicit(&facts->used, end, memory_order_release);
}

void tracer_put_fact(enum fact_kind kind, const void *given)
{
    struct redacted redacted;
    const void *fact = redact_fact(kind, given, &redacted);
    size_t size = fact_size(kind, fact);
    struct fact *made;

    tracer_lock();
    made = takes_facts() ? find_fact_room(size) : NULL;
    if (made) {
        fact_write(made, kind, fact, size);
        publish_fact(made);
    } else if (takes_facts() && kind != FACT_CODE) {
        /* the collector finds out by itself about code that it has no fact of */
        P.file->lost_facts++;
    }
    tracer_unlock();
    redacted_free(&redacted);
}

void tracer_write_loss(const char *cause)
{
    tracer_fact(LOSS, .clock = (int64_t)tracer_read_session_clock(), .events = 1,
                .cause = fact_make_text(cause));
}

/* Return the number that the job's launcher has set for fact WHICH; -1 if it has set none. */
static int64_t read_rank_of_job(enum job_fact which)
{
    const char *text = job_read_fact(which);

    return text && *text >= '0' && *text <= '9' ? atoll(text) : -1;
}

void write_process_facts(void)
{
    static char buffer[ARGV_MAX];
    const char *version = Py_GetVersion();
    const char *text;
    PyObject *executable = PySys_GetObject("executable"); /* borrowed */
    int fd = P.session->no_argv ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    Py_ssize_t used = 0;
    Py_ssize_t got;

    if (fd >= 0) {
        while (used < ARGV_MAX && (got = read(fd, buffer + used, sizeof buffer - (size_t)used)) > 0)
            used += got;
        close(fd);
        tracer_fact(ARGV, .argv = {buffer, (uint64_t)used});
    }
    tracer_fact(PYTHON, .version = {version, strcspn(version, " ")});
    text = executable && PyUnicode_Check(executable) ? PyUnicode_AsUTF8AndSize(executable, &used)
                                                     : NULL;
    if (text)
        tracer_fact(EXECUTABLE, .path = {text, (uint64_t)used});
    PyErr_Clear();
    if (read_rank_of_job(JOB_RANK) >= 0)
        tracer_fact(RANK, .rank = read_rank_of_job(JOB_RANK),
                    .local_rank = read_rank_of_job(JOB_LOCAL_RANK));
}

/* ---- keep facts for the next session of this process ---- */

static char *kept;
static size_t kept_bytes;
static uint8_t *died; /* one bit for each cache entry: set if the entry has died */
static size_t died_bytes;

void facts_note_entry_death(uint32_t entry)
{
    size_t bytes = entry / 8 + 1;
    uint8_t *more;

    tracer_lock();
    more = bytes > died_bytes ? realloc(died, 2 * bytes) : NULL;
    if (more) {
        memset(more + died_bytes, 0, 2 * bytes - died_bytes);
        died = more;
        died_bytes = 2 * bytes;
    }
    if (bytes <= died_bytes)
        died[entry / 8] |= (uint8_t)(1 << entry % 8);
    tracer_unlock();
}

/* May the next session refer to the id in FACT? Yes for code objects, signatures and living cache
 * entries. */
static bool is_fact_kept_for_next_session(const struct fact *fact)
{
    uint64_t entry = (uint64_t)fact->number[0];

    if (fact->kind == FACT_ENTRY || fact->kind == FACT_GUARD || fact->kind == FACT_ORDER)
        return entry / 8 >= died_bytes || !(died[entry / 8] >> entry % 8 & 1);
    return fact->kind == FACT_CODE || fact->kind == FACT_SIGNATURE;
}

void facts_copy_for_next_session(void)
{
    const struct facts *chunk = find_mapped_address(P.file->facts_off);

    free(kept);
    kept = NULL;
    kept_bytes = 0;
    for (; chunk; chunk = chunk->next_off ? find_mapped_address(chunk->next_off) : NULL) {
        uint64_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
        for (uint64_t at = 0; at < used; at += ((const struct fact *)(chunk->data + at))->bytes) {
            const struct fact *fact = (const struct fact *)(chunk->data + at);
            char *more = is_fact_kept_for_next_session(fact)
                             ? realloc(kept, kept_bytes + fact->bytes)
                             : NULL;
            if (more) {
                kept = more;
                memcpy(kept + kept_bytes, fact, fact->bytes);
                kept_bytes += fact->bytes;
            }
        }
    }
}

void write_kept_facts(void)
{
    tracer_lock();
    for (size_t at = 0; at < kept_bytes; at += ((const struct fact *)(kept + at))->bytes) {
        const struct fact *fact = (const struct fact *)(kept + at);
        struct fact *made = takes_facts() && is_fact_kept_for_next_session(fact)
                                ? find_fact_room(fact->bytes)
                                : NULL;
        if (made) {
            memcpy(made, fact, fact->bytes);
            made->row_id = made->row_more = 0;
            publish_fact(made);
        }
    }
    tracer_unlock();
}

/* ---- make the file, or nest it in the parent's file ---- */

/* When and how this process began, for the header of its file. */
struct birth {
    uint64_t ticks;     /* start time of the process in the kernel's ticks; 0 if not known */
    uint64_t clock;     /* the session's clock at the fork, or when the recording began */
    const char *parent; /* for a forked process: name of its parent's file; else "" */
};

/* Return how many bytes of the first chunk of facts get memory at once. */
static size_t choose_first_facts_bytes(const struct birth *birth)
{
    return *birth->parent ? FORKED_FACTS : FIRST_FACTS;
}

/* Return the start time of this process in ticks: /proc/PID/stat, field 22. Returns 0 if it is not
 * known. */
static uint64_t read_start_ticks(void)
{
    char buffer[1024], *field;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, buffer, sizeof buffer - 1);

    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    buffer[got] = 0;
    /* search from the last ')', because the command's name before it may have spaces */
    field = strrchr(buffer, ')');
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

/* Return the pid namespace of this process; 0 if it is not known. Without /proc, as after chroot(),
 * a child is in its parent's namespace if it can see its parent: a child in a new pid namespace
 * cannot. */
static uint64_t find_pid_namespace(void)
{
    static uint64_t last;
    static pid_t last_pid;
    uint64_t found = namespace_read_pid_namespace("self");

    if (!found && last_pid == getppid())
        found = last;
    last = found;
    last_pid = getpid();
    return found;
}

/* Fill in FILE, the zeroed header at OFFSET of a file. Sets `ready`; from here on facts can be
 * written. */
static void fill_header(struct process_file *file, const struct birth *birth, uint64_t offset)
{
    memcpy(file->magic, RING_PROCESS_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->word_bytes = sizeof(uint64_t);
    file->pid = (uint32_t)getpid();
    file->parent_pid = (uint32_t)getppid();
    file->pid_namespace = find_pid_namespace();
    file->start_time = birth->ticks;
    file->born_clock = birth->clock;
    snprintf(file->parent_file, sizeof file->parent_file, "%s", birth->parent);
    if (*birth->parent) {
        file->inherited_codes = P.codes;
        file->inherited_entries = P.entries;
        file->inherited_signatures = P.signatures;
        file->inherited_spans = P.spans_inherited = P.spans;
    }
    file->mode = P.session->frames;
    file->facts_off = offset + HEADER_BYTES;
    begin_facts_chunk((struct facts *)((char *)file + HEADER_BYTES), FIRST_FACTS,
                      choose_first_facts_bytes(birth));
    P.file = file;
    P.left_out = file->left_out;
    atomic_store_explicit(&file->ready, 1, memory_order_release);
}

/* Make the process file in DIRECTORY, which is "" if there is none. Returns 0 or an errno. */
static int make_process_file(const char *directory, const struct birth *birth)
{
    char name[sizeof P.file_name];
    struct rlimit limit;
    uint64_t bytes = FILE_BYTES;
    int at = session_open_directory(directory);
    int fd = -1;
    int error = at < 0 ? errno : 0;
    size_t before = mapping_count;
    struct process_file *file = MAP_FAILED;
    struct stat status;

    /* not beyond RLIMIT_FSIZE, where writing would raise SIGXFSZ */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        bytes = limit.rlim_cur & ~UINT64_C(4095);
    if (!error && bytes < HEADER_BYTES + FIRST_FACTS)
        error = EFBIG;
    for (int n = 0; fd < 0 && !error; n++) {
        snprintf(name, sizeof name, "%d-%llu-%d.ring", (int)getpid(),
                 (unsigned long long)birth->ticks, n);
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
        error =
            file == MAP_FAILED
                ? errno
                : file_reserve_memory((char *)file, HEADER_BYTES + choose_first_facts_bytes(birth));
    }
    /* two mappings, so that a forked child can keep the header's alone */
    if (!error && !(note_mapping(file, HEADER_BYTES, 0) &&
                    note_mapping((char *)file + HEADER_BYTES, FIRST_FACTS, HEADER_BYTES)))
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
        fill_header(file, birth, 0);
    }
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    return error;
}

/* This forked process could not make a file: give it a header in its parent's file, which the fork
 * has left mapped. Returns 0 or an errno. */
static int nest_header_in_parent_file(const struct birth *birth)
{
    uint64_t offset, newest;
    struct process_file *file = file_allocate_extent(
        HEADER_BYTES + FIRST_FACTS, HEADER_BYTES + choose_first_facts_bytes(birth), &offset);
    char *end = P.file_name + strcspn(P.file_name, "@");

    if (!file)
        return errno;
    snprintf(end, sizeof P.file_name - (size_t)(end - P.file_name), "@%llx",
             (unsigned long long)offset);
    fill_header(file, birth, offset);
    newest = atomic_load(&P.root->nested);
    do
        file->next_nested = newest;
    while (!atomic_compare_exchange_weak(&P.root->nested, &newest, offset));
    return 0;
}

/* If the collector is in another pid namespace, wait a moment until it has looked for this process.
 * Only the collector can find out the pid that it sees, and only as long as the process lives. */
static void wait_until_collector_found_us(void)
{
    const uint64_t recorder = P.session->pid_namespace;
    const uint64_t until = clock_monotonic_ns() + LOOKED_NS;
    const struct timespec most = {.tv_nsec = LOOKED_NS};

    if (!recorder || P.file->pid_namespace == recorder)
        return;
    while (!atomic_load(&P.file->looked) && clock_monotonic_ns() < until)
        if (syscall(SYS_futex, &P.file->looked, FUTEX_WAIT, 0, &most, NULL, 0) && errno != EINTR)
            break;
}

/* Make the process file in the session's directory; if that is full, in the spill directory; if
 * that fails, too, a forked child nests it in its parent's file. If there is no room at all, the
 * collector learns it from `orphans` in the parent's file, or from an empty file. */
void file_open(const char *parent, uint64_t clock)
{
    /* header at the start of the parent's file; NULL if this is no forked child */
    struct process_file *forked = P.root;
    const struct birth birth = {read_start_ticks(), clock, parent};
    char name[sizeof P.file_name];
    int fd, error;

    P.file = NULL;
    P.left_out = tracer_left_uncounted;
    if (atomic_load(&P.session->closed))
        return;
    error = make_process_file(P.session_directory, &birth);
    if (error && make_process_file(P.spill_directory, &birth) == 0)
        error = 0;
    if (error && forked) {
        error = nest_header_in_parent_file(&birth);
        if (error) {
            atomic_fetch_add(&forked->orphans, 1);
            atomic_store(&forked->orphan_error, (uint32_t)error);
        }
        atomic_fetch_sub(&forked->forking, 1);
    } else if (forked) {
        atomic_fetch_sub(&forked->forking, 1);
        munmap(mappings[0].at, mappings[0].bytes);
        memmove(mappings, mappings + 1, --mapping_count * sizeof *mappings);
    } else if (error) {
        snprintf(name, sizeof name, "%d-%llu-%d.lost", (int)getpid(),
                 (unsigned long long)birth.ticks, error);
        fd = session_open_in(P.session_directory, name, O_WRONLY | O_CREAT);
        if (fd >= 0)
            close(fd);
    }
    if (!error)
        wait_until_collector_found_us();
}

void file_unmap_parent_file(void)
{
    drop_mappings_from(1);
    begin_facts_chunk(NULL, 0, 0);
}

void file_close(void)
{
    drop_mappings_from(0);
    begin_facts_chunk(NULL, 0, 0);
    P.file = P.root = NULL;
    P.left_out = tracer_left_uncounted;
}

/* collector/traced.c -- one traced process image, as the collector sees it. See
 * collector/traced.h. */
#include "collector/traced.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collector/process.h"

enum {
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
    /* the ring's tail moves after this number of words (128 KB), so that producers wait less */
    CHUNK_WORDS = 16384,
    WAKE_WORDS = 2 * CHUNK_WORDS,
};

/* ---- times and losses, for all processes ---- */

uint64_t collector_now_ns(const struct collector *c)
{
    return decode_clock_to_ns(&c->decode, session_now(c->session->file));
}

void collector_write_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id,
                              uint32_t thread_id, uint64_t at_ns, uint64_t events,
                              const char *cause)
{
    recorder_put(c->recorder, LOSS,
                 {
                     .rowid = loss_id,
                     .process_id = process_id,
                     .thread_id = thread_id,
                     .at_ns = (int64_t)at_ns,
                     .events = (int64_t)events,
                     .cause = fact_make_text(cause),
                 });
    if (!c->in_words) { /* no decoder is reading words, so the rows of all decoders are committed */
        recorder_commit_if_unrepeatable(c->recorder);
        c->state.file->header.sure[NEXT_LOSS] = c->state.file->header.next[NEXT_LOSS];
    }
}

void collector_write_loss(struct collector *c, uint32_t process_id, uint32_t thread_id,
                          uint64_t at_ns, uint64_t events, const char *cause)
{
    collector_write_loss_row(c, c->state.file->header.next[NEXT_LOSS]++, process_id, thread_id,
                             at_ns, events, cause);
}

void collector_record_loss(struct collector *c, uint32_t process_id, uint64_t events,
                           const char *format, ...)
{
    char cause[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cause, sizeof cause, format, arguments);
    va_end(arguments);
    collector_write_loss(c, process_id, 0, collector_now_ns(c), events, cause);
}

/* ---- map parts of a process file ---- */

static ino_t inode_of_file(int fd)
{
    struct stat status;

    return fstat(fd, &status) ? 0 : status.st_ino;
}

/* Does the file have BYTES from offset AT on, and does a page begin at AT? */
static bool is_part_within_file(struct traced *t, uint64_t at, uint64_t bytes)
{
    struct stat status;

    if (at + bytes < at)
        return false;
    if (at + bytes > t->file_bytes) {
        if (fstat(t->fd, &status))
            return false;
        t->file_bytes = (uint64_t)status.st_size;
    }
    return at + bytes <= t->file_bytes && at % 4096 == 0;
}

void *traced_map_part(struct traced *t, uint64_t at, size_t bytes)
{
    void *mapped = MAP_FAILED;

    if (is_part_within_file(t, at, bytes))
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, (off_t)at);
    else
        errno = ERANGE;
    return mapped == MAP_FAILED ? NULL : mapped;
}

void traced_abandon(struct traced *t)
{
    t->broken = true;
    if (t->file)
        atomic_store(&t->file->abandoned, 1);
}

void traced_mark_broken(struct traced *t, const char *why)
{
    if (t->broken)
        return;
    traced_abandon(t);
    collector_record_loss(t->collector, t->row.process_id, 0,
                          "ring: %s; nothing more of this process was taken", why);
}

void traced_mark_broken_by_map(struct traced *t, const char *what, int error)
{
    char why[200];

    if (error == ERANGE)
        snprintf(why, sizeof why, "%s outside the file", what);
    else
        snprintf(why, sizeof why,
                 "the recorder had no room in its own address space for it (%s; a limit of the "
                 "program's, such as ulimit -v, holds for the recorder too)",
                 strerror(error));
    traced_mark_broken(t, why);
}

/* ---- take words from rings ---- */

/* May a ring have WORDS words? */
static bool is_ring_size(uint64_t words)
{
    bool power_of_two = words && (words & (words - 1)) == 0;

    return power_of_two && words >= RING_SMALLEST / 8 && words <= (UINT64_C(1) << 30) / 8;
}

/* Map the COUNT words of the ring at offset AT twice, the second time right behind the first. So a
 * record that wraps around the ring's end can be read in one piece. Returns NULL with errno, like
 * traced_map_part(). */
static uint64_t *map_ring_words_twice(struct traced *t, uint64_t at, uint64_t count)
{
    size_t bytes = count * 8;
    off_t from = (off_t)(at + RING_HEADER);
    char *area;

    if (!is_ring_size(count) || !is_part_within_file(t, at, RING_HEADER + bytes)) {
        errno = ERANGE;
        return NULL;
    }
    area = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return NULL;
    for (int i = 0; i < 2; i++) {
        void *half = mmap(area + i * bytes, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, t->fd, from);
        if (half == MAP_FAILED) {
            int error = errno;
            munmap(area, 2 * bytes);
            errno = error;
            return NULL;
        }
    }
    return (uint64_t *)area;
}

static bool open_ring(struct traced *t, uint32_t n)
{
    struct collector *c = t->collector;
    uint64_t at = t->file->ring_off[n];
    struct ring *ring = traced_map_part(t, at, RING_HEADER);
    uint64_t count = ring ? ring->words : 0;
    uint64_t *words = ring ? map_ring_words_twice(t, at, count) : NULL;
    struct decode_place *place = words ? collector_state_find_place(&c->state, t->name, n) : NULL;
    struct traced_ring *more = place ? list_add(&t->rings) : NULL;
    int error = errno;

    if (!more) {
        if (words)
            munmap(words, count * 16);
        if (ring)
            munmap(ring, RING_HEADER);
        traced_mark_broken_by_map(t, "a thread's ring lies", error);
        return false;
    }
    *more = (struct traced_ring){.ring = ring, .words = words, .count = count};
    decode_open(&more->decoder, &c->decode, t, &t->codes, place);
    return true;
}

/* Wake the producer of the ring if it waits, and if enough words were taken since it was last
 * woken, or NOW is set. Enough are the words of about a millisecond at full speed, so that no wait
 * is long. */
static void wake_waiting_producer(struct traced_ring *r, uint64_t tail, bool now)
{
    uint64_t enough = r->count / 4 < WAKE_WORDS ? r->count / 4 : WAKE_WORDS;

    if (!now && tail - r->woken < enough)
        return;
    r->woken = tail;
    if (atomic_load(&r->ring->waiting)) {
        atomic_store(&r->ring->waiting, 0);
        syscall(SYS_futex, &r->ring->waiting, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void drain_ring(struct traced *t, struct traced_ring *r)
{
    /* Barrier B of ring.h: it matches barrier A, where the producer has stored the words. */
    uint64_t head = atomic_load_explicit(&r->ring->head, memory_order_acquire);
    uint64_t tail = r->decoder.now.tail;
    uint64_t there = head - tail;

    if (!there)
        return;
    if (there > r->count) {
        traced_mark_broken(t, "a thread's ring holds more than fits");
        return;
    }
    t->words += there;
    t->fullest = MAX(t->fullest, there * 256 / r->count);
    while (tail != head) {
        uint64_t taken;
        t->collector->in_words = true;
        taken = decode_words(&r->decoder, r->words + (tail & (r->count - 1)),
                             MIN(head - tail, CHUNK_WORDS));
        t->collector->in_words = false;
        if (!taken) {
            traced_mark_broken(t, "a thread's ring ends within a record");
            break;
        }
        tail += taken;
        /* Barrier C of ring.h: the words may be overwritten now. It matches barrier D, where the
         * producer reads the tail. */
        atomic_store_explicit(&r->ring->tail, tail, memory_order_release);
        wake_waiting_producer(r, tail, tail == head);
        if (t->collector->keep.rows >= KEEP_LOOK_ROWS)
            t->collector->keep.trim(t->collector);
    }
}

void traced_read_rings(struct traced *t)
{
    uint32_t rings;

    t->words = 0;
    t->fullest = 0;
    if (t->broken || !t->file)
        return;
    t->forking = atomic_load(&t->root->forking);
    t->nested_newest = atomic_load_explicit(&t->root->nested, memory_order_acquire);
    if (t->drained)
        return;
    rings = atomic_load_explicit(&t->file->rings, memory_order_acquire);
    if (rings > RING_MAX) {
        traced_mark_broken(t, "it says it has more rings than a process can have");
        return;
    }
    while (t->rings.count < rings && open_ring(t, (uint32_t)t->rings.count))
        ;
    for (size_t i = 0; i < t->rings.count && !t->broken; i++)
        drain_ring(t, &t->rings.at[i]);
    traced_read_facts(t);
    thread_cpu_read_all(&t->samples, t->collector->recorder, collector_now_ns(t->collector),
                        !t->words);
    if (t->words)
        t->last_words_ns = clock_monotonic_ns();
}

/* ---- note that a process has begun or ended ---- */

/* Is process T the command? If we do not see T, compare the pid that T sees itself: a program that
 * records itself (`collect`) may be outside our pid namespace. */
static bool is_process_of_command(const struct traced *t)
{
    uint32_t pid = t->hidden ? t->row.own_pid : t->row.pid;

    return pid && pid == t->collector->state.file->header.command;
}

/* Free the struct that stood for the command. The command's process file has been found. */
static void free_command_placeholder(struct collector *c)
{
    struct traced **link = &c->traced;

    while (*link != c->command)
        link = &(*link)->next;
    *link = c->command->next;
    traced_free(c->command);
    c->command = NULL;
}

/* Return the row id for process image T: the one that a killed collector has GIVEN it; or that of
 * the command, if T is the command's first image; or a new one. */
static uint32_t choose_process_id(struct traced *t, uint64_t given)
{
    struct collector *c = t->collector;
    struct state_header *header = &c->state.file->header;
    bool was_given = c->resumed && given && given < header->next_process;
    bool of_command = false;
    uint32_t id = was_given ? (uint32_t)given : 0;

    if (c->command && was_given)
        of_command = id == c->command->row.process_id;
    else if (c->command)
        of_command = is_process_of_command(t);
    if (of_command) {
        id = c->command->row.process_id;
        free_command_placeholder(c);
    }
    if (!id) {
        id = header->next_process;
        header->next_process++;
    }
    return id;
}

struct traced *traced_new(struct collector *c, enum session_place place, const char *name)
{
    struct traced *t = calloc(1, sizeof *t);

    if (t) {
        *t = (struct traced){.collector = c, .place = place, .fd = -1, .pidfd = -1};
        snprintf(t->name, sizeof t->name, "%s", name);
    }
    return t;
}

/* Are processes A and B in the same process file, whose name has LENGTH characters? */
static bool do_processes_share_file(const struct traced *a, const struct traced *b, size_t length)
{
    if (a->place != b->place || strcspn(a->name, "@") != length)
        return false;
    return !strncmp(a->name, b->name, length);
}

/* Several processes may use one file. Duplicate the file descriptor of another process that uses
 * the file of T. Returns -1 if there is none. Opening the file again would be wrong:
 * process_file_is_used() works only if we have opened it once. */
static int dup_file_of_sibling(const struct traced *t)
{
    size_t length = strcspn(t->name, "@");

    for (const struct traced *other = t->collector->traced; other; other = other->next)
        if (other->fd >= 0 && do_processes_share_file(other, t, length))
            return fcntl(other->fd, F_DUPFD_CLOEXEC, 0);
    return -1;
}

/* Tell process T that we have looked for it in /proc. The process waits for this
 * (tracer/file.c). */
static void tell_process_it_was_searched_for(struct traced *t)
{
    atomic_store(&t->file->looked, 1);
    if (t->file->pid_namespace != t->collector->session->file->pid_namespace)
        syscall(SYS_futex, &t->file->looked, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Find process T, which writes the process file FILE, and its parent. Note the pids and start times
 * that we see. */
static void find_process_and_parent(struct traced *t, const char *file)
{
    struct process_file *own = t->file;
    uint64_t our_namespace = t->collector->session->file->pid_namespace;
    const struct process_claim claim = {
        .pid = own->pid,
        .started = own->start_time,
        .namespace = own->pid_namespace,
        .file = file,
        .inode = inode_of_file(t->fd),
    };
    struct process_found found = {own->seen_pid, own->seen_start_time, -1};
    bool near = claim.namespace && claim.namespace == our_namespace;
    uint64_t started;

    if (t->collector->resumed && found.pid)
        /* an earlier collector has found the process */
        found.watch = process_open_pidfd(found.pid, found.started);
    else
        t->hidden = process_find(&claim, &found) == PROCESS_HIDDEN;
    own->seen_pid = found.pid;
    own->seen_start_time = found.started;
    t->row.pid = found.pid;
    t->row.own_pid = claim.pid;
    t->started = found.started;
    t->pidfd = found.watch;
    if (near)
        t->parent_pid = own->parent_pid;
    else if (found.watch < 0 || !process_read_parent_and_start(found.pid, &t->parent_pid, &started))
        t->parent_pid = 0;
    if (t->hidden && is_process_of_command(t))
        t->row.pid = claim.pid;
    tell_process_it_was_searched_for(t);
}

bool traced_is_gone(const struct traced *t)
{
    return t->fd >= 0 && !process_file_is_used(t->fd);
}

/* Open the process file FILE of T. Map the header of T at offset AT, and the header at the file's
 * beginning as `root`. Returns false if T's header is not complete yet, or cannot be mapped now. */
static bool open_process_file(struct traced *t, const char *file, uint64_t at)
{
    t->fd = dup_file_of_sibling(t);
    if (t->fd < 0)
        t->fd = session_open_file(t->collector->session->place[t->place], file, O_RDWR);
    t->nested = at;
    if (t->fd >= 0)
        t->file = traced_map_part(t, at, HEADER_BYTES);
    t->root = t->file;
    if (t->file && at)
        t->root = traced_map_part(t, 0, HEADER_BYTES);
    return t->root && atomic_load_explicit(&t->file->ready, memory_order_acquire);
}

/* Has a process of this version of dyntrace made the file? */
static bool is_file_of_our_version(const struct process_file *file)
{
    if (memcmp(file->magic, RING_PROCESS_MAGIC, sizeof file->magic))
        return false;
    return file->format == RING_FORMAT && file->word_bytes == 8;
}

/* Return the process that forked T; NULL if it is not known. */
static struct traced *find_forking_process(const struct traced *t)
{
    const char *file = t->file->parent_file;

    if (!file[0])
        return NULL;
    for (struct traced *parent = t->collector->traced; parent; parent = parent->next)
        if (!strncmp(parent->name, file, sizeof parent->name))
            return parent;
    return NULL;
}

/* Fill in the first columns of the row of process T, whose process file is FILE. */
static void make_process_row(struct traced *t, const char *file)
{
    /* "folded" is written later, when a frame is counted (traced_find_journal) */
    static const char *const modes[] = {"all", "user", "none", "decided", "all"};
    struct collector *c = t->collector;
    unsigned mode = t->file->mode;

    find_process_and_parent(t, file);
    t->row.process_id = choose_process_id(t, t->file->process_id);
    t->file->process_id = t->row.process_id;
    t->row.mode = modes[mode < array_count(modes) ? mode : SESSION_NONE];
    /* not later than now, because the program's clock reading is not trusted */
    t->row.start_ns = MIN(decode_clock_to_ns(&c->decode, t->file->born_clock), collector_now_ns(c));
}

void traced_open(struct traced *t)
{
    struct collector *c = t->collector;
    struct traced *parent;
    char *offset = strchr(t->name, '@');
    uint64_t at = offset ? strtoull(offset + 1, NULL, 16) : 0;
    char file[sizeof t->name];

    snprintf(file, sizeof file, "%.*s", (int)strcspn(t->name, "@"), t->name);
    if (!open_process_file(t, file, at)) {
        /* If we had too few descriptors or too little memory, try again later. */
        bool later = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        t->opened = t->fd >= 0 || later ? TRACED_NOT_YET : TRACED_NONE;
        return;
    }
    if (!is_file_of_our_version(t->file)) {
        collector_record_loss(c, 0, 0,
                              "ring: a file in the session is not a process's ring, or of another "
                              "dyntrace; it was left out");
        return;
    }
    make_process_row(t, file);
    t->last_words_ns = clock_monotonic_ns();
    /* on failure the row of T stays, and T is marked as broken */
    traced_is_next_fact_at(t, t->file->facts_off);
    parent = find_forking_process(t);
    t->row.parent_process_id = parent ? parent->row.process_id : 0;
    traced_write_row(t);
    if (parent)
        traced_copy_ids_of_parent(t, parent);
    traced_read_facts(t);
    c->processes++;
    t->opened = TRACED_OPEN;
    /* A killed collector has finished this process. Its facts were read again only because its
     * children refer to its ids. */
    if (c->resumed && atomic_load(&t->file->finished)) {
        t->row.ended = true;
        traced_finish(t);
    }
}

/* Return the column value for the pid of T. */
static int64_t pid_or_null(const struct traced *t)
{
    return t->row.pid ? t->row.pid : ROW_NONE;
}

void traced_write_row(struct traced *t)
{
    recorder_put(t->collector->recorder, PROCESS,
                 {
                     .process_id = t->row.process_id,
                     .pid = pid_or_null(t),
                     .own_pid = t->row.own_pid ? t->row.own_pid : ROW_NONE,
                     .parent_process_id = t->row.parent_process_id,
                     .mode = fact_make_text(t->row.mode),
                     .start_ns = (int64_t)t->row.start_ns,
                 });
}

void traced_write_status(struct traced *t, int status)
{
    if (status > 0 && WIFEXITED(status))
        traced_note_failure(t);
    if (status >= 0)
        recorder_put(t->collector->recorder, PROCESS_END,
                     {
                         .process_id = t->row.process_id,
                         .pid = pid_or_null(t),
                         .end_ns = ROW_NONE,
                         .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : ROW_NONE,
                         .exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : ROW_NONE,
                     });
    recorder_commit_if_unrepeatable(t->collector->recorder);
}

/* Return the row id of a loss. It is kept in the process file at *KEPT, so that a later collector
 * writes the same row again. If there is none yet, take a new id. */
static uint64_t get_kept_loss_id(struct collector *c, uint64_t *kept)
{
    if (!*kept || *kept >= c->state.file->header.next[NEXT_LOSS])
        *kept = c->state.file->header.next[NEXT_LOSS]++;
    return *kept;
}

/* Record the events that RING lost. */
static void record_ring_loss(struct traced *t, struct ring *ring, uint32_t thread_id)
{
    struct collector *c = t->collector;
    const char *how = c->resumed ? "was gone" : "took nothing";
    uint64_t since_ns;
    char cause[200];

    c->waits += ring->waits;
    c->wait_ns += ring->wait_ns;
    if (!ring->lost)
        return;
    if (ring->lost_error)
        snprintf(cause, sizeof cause,
                 "memory: no room for more of a thread's ring (%s); its frames from here on "
                 "were not recorded",
                 strerror((int)ring->lost_error));
    else
        snprintf(cause, sizeof cause,
                 "collector: it %s while the program ran on; frames from here on were not recorded",
                 how);
    since_ns = decode_clock_to_ns(&c->decode, ring->lost_since);
    collector_write_loss_row(c, get_kept_loss_id(c, &ring->lost_row), t->row.process_id, thread_id,
                             since_ns, ring->lost, cause);
}

/* Record a loss for the threads for which no ring could be made. */
static void record_threads_without_ring(struct traced *t, uint64_t now)
{
    unsigned long long threads = atomic_load(&t->file->lost_threads);
    const char *error = strerror((int)atomic_load(&t->file->lost_error));
    uint64_t frames = atomic_load(&t->file->lost_frames);
    char cause[200];

    if (!threads)
        return;
    snprintf(
        cause, sizeof cause,
        "threads: no rings could be made for %llu of them (%s); their frames were not recorded",
        threads, error);
    collector_write_loss_row(t->collector, get_kept_loss_id(t->collector, &t->file->loss_rows[0]),
                             t->row.process_id, 0, now, frames, cause);
}

/* Record a loss for the forked processes for which no ring could be made. */
static void record_children_without_ring(struct traced *t, uint64_t now)
{
    unsigned long long orphans = atomic_load(&t->file->orphans);
    const char *error = strerror((int)atomic_load(&t->file->orphan_error));
    uint64_t frames = atomic_load(&t->file->orphan_frames);
    char cause[200];

    if (!orphans)
        return;
    snprintf(cause, sizeof cause,
             "children: no ring could be made for %llu forked process%s (%s); their frames "
             "were not recorded",
             orphans, orphans == 1 ? "" : "es", error);
    collector_write_loss_row(t->collector, get_kept_loss_id(t->collector, &t->file->loss_rows[1]),
                             t->row.process_id, 0, now, frames, cause);
}

/* Record a loss for the facts for which the process's file had no room. */
static void record_facts_without_room(struct traced *t, uint64_t now)
{
    unsigned long long lost = atomic_load(&t->file->lost_facts);

    if (!lost)
        return;
    collector_write_loss_row(t->collector, get_kept_loss_id(t->collector, &t->file->loss_rows[2]),
                             t->row.process_id, 0, now, lost,
                             "facts: no room for them: compiles, cache entries, guards, ends of "
                             "spans and the like are missing");
}

/* Record the losses that are known only when the process has ended. */
static void record_losses(struct traced *t)
{
    struct collector *c = t->collector;
    uint64_t now = collector_now_ns(c);
    uint64_t *left_out = t->file ? t->file->left_out : NULL;
    bool decided;

    if (t->broken)
        return;
    /* with --frames decided the numbers of functions and frames left out are not known: the hook
     * does not see them */
    decided = t->file->mode == SESSION_DECIDED;
    recorder_put(c->recorder, PROCESS_LEFT_OUT,
                 {
                     .process_id = t->row.process_id,
                     .left_out_functions = decided ? ROW_NONE : (int64_t)left_out[LEFT_CODES],
                     .left_out_frames = decided ? ROW_NONE : (int64_t)left_out[LEFT_FRAMES],
                     .left_out_decisions = (int64_t)left_out[LEFT_DECISIONS],
                 });
    list_each(r, &t->rings)
        record_ring_loss(t, r->ring, r->decoder.now.thread_id);
    record_threads_without_ring(t, now);
    record_children_without_ring(t, now);
    record_facts_without_room(t, now);
}

static void close_process_file(struct traced *t)
{
    if (t->root && t->root != t->file)
        munmap(t->root, HEADER_BYTES);
    if (t->file)
        munmap(t->file, HEADER_BYTES);
    if (t->fd >= 0)
        close(t->fd);
    t->root = NULL;
    t->file = NULL;
    t->fd = -1;
}

void traced_finish(struct traced *t)
{
    t->drained = true;
    thread_cpu_end(&t->samples, t->collector->recorder);
    /* Close the decoders first: if the file was cut short, the later steps are not reached. */
    list_each(r, &t->rings)
        decode_close(&r->decoder);
    if (t->file)
        record_losses(t);
    for (size_t i = 0; i < t->rings.count; i++) {
        struct traced_ring *r = &t->rings.at[i];
        munmap(r->words, r->count * 16);
        munmap(r->ring, RING_HEADER);
        /* Free the memory of the ring's words. The facts stay in the file for a recovery. */
        if (t->fd >= 0 && !t->broken)
            fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)t->file->ring_off[i] + RING_HEADER, (off_t)(r->count * 8));
    }
    list_free(&t->rings);
    if (t->facts)
        munmap(t->facts, t->facts_bytes);
    t->facts = NULL;
}

void traced_mark_finished(struct traced *t)
{
    if (!t->drained || !t->file)
        return;
    if (!t->broken)
        atomic_store(&t->file->finished, 1);
    if (!t->forking || t->broken) /* keep the file open as long as forked children may join it */
        close_process_file(t);
}

bool traced_delete_file(struct traced *t)
{
    struct collector *c = t->collector;

    if (unlinkat(c->session->place[t->place], t->name, 0))
        return false;
    collector_state_free_places(&c->state, t->name);
    if (t->forked_from)
        t->forked_from->heirs--;
    return true;
}

void traced_free(struct traced *t)
{
    close_process_file(t);
    if (t->pidfd >= 0)
        close(t->pidfd);
    list_free(&t->codes);
    list_free(&t->threads);
    list_free(&t->compiles);
    list_free(&t->signatures);
    list_free(&t->entries);
    free(t);
}

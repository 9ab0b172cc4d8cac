/* collector/traced.c -- one traced process image, as the collector sees it. See collector/traced.h.
 *
 * Runs in: the collector. */
#include "collector/traced.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "collector/collector.h"
#include "lib/json.h"

enum {
    HEADER_BYTES = (sizeof(struct process_file) + 4095) & ~4095,
    FACT_MAX = 64 << 20,      /* bytes of one record that we believe */
    NESTED_MAX = 1 << 20,     /* processes in one file */
    CHUNK_WORDS = 16384,      /* tail moves on every 128 KB, so that producers wait less */
    WAKE_WORDS = 2 * CHUNK_WORDS,
};

/* ---- the file ---- */

/* Is [AT, AT + BYTES) within the file? */
static bool in_file(struct traced *t, uint64_t at, uint64_t bytes)
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

static void *map_file(struct traced *t, uint64_t at, size_t bytes)
{
    void *mapped = in_file(t, at, bytes) ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, (off_t)at)
                                         : MAP_FAILED;

    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Take nothing more, and do not let the program wait for it. */
void traced_abandon(struct traced *t)
{
    t->broken = true;
    if (t->file)
        atomic_store(&t->file->abandoned, 1);
}

static void file_broken(struct traced *t, const char *why)
{
    char cause[200];

    if (t->broken)
        return;
    traced_abandon(t);
    snprintf(cause, sizeof cause, "ring: %s; nothing more of this process was taken", why);
    collector_loss(t->collector, t->row.process_id, 0, collector_now_ns(t->collector), 0, cause);
}

/* ---- facts ---- */

bool traced_room_for(uint32_t **array, uint32_t *count, uint32_t id)
{
    uint32_t room = *count ? *count : 64;
    uint32_t *more;

    if (id < *count)
        return true;
    if (id >= TRACED_IDS_MAX)
        return false;
    while (room <= id)
        room *= 2;
    more = realloc(*array, room * sizeof *more);
    if (!more)
        return false;
    memset(more + *count, 0, (room - *count) * sizeof *more);
    *array = more;
    *count = room;
    return true;
}

uint32_t traced_row_id(struct fact *fact, uint32_t *next, bool resumed)
{
    uint32_t id = fact->row_id;

    if (resumed && id && id < *next)
        return id;
    id = (*next)++;
    fact->row_id = id;
    return id;
}

/* FACT is a copy of SHARED, which may change or go away at any moment; row ids are written there. */
static void fact_take(struct traced *t, const struct fact *fact, struct fact *shared)
{
    struct collector *c = t->collector;
    struct state_header *next = c->state.header;
    uint32_t bytes = fact->text_bytes[0], more = fact->text_bytes[1], id;

    switch (fact->kind) {
    case FACT_ARGV:
        free(t->argv);
        t->argv = json_array(fact->text, bytes);
        t->changed = true;
        break;
    case FACT_EXECUTABLE:
        free(t->executable);
        t->executable = strndup(fact->text, bytes);
        t->changed = true;
        break;
    case FACT_PYTHON:
        free(t->version);
        t->version = strndup(fact->text, bytes);
        t->changed = true;
        break;
    case FACT_RANK:
        t->row.rank = (int64_t)fact->number[0] - 1;
        t->row.local_rank = (int64_t)fact->number[1] - 1;
        t->changed = true;
        break;
    case FACT_LOSS:
        collector_loss_row(c, traced_row_id(shared, &next->next_loss, c->resumed), t->row.process_id, 0,
                           decode_ns(&c->decode, fact->number[0]), fact->number[1],
                           strndupa(fact->text, bytes < ROW_CAUSE_MAX ? bytes : ROW_CAUSE_MAX));
        break;
    case FACT_THREAD:
        if (!traced_room_for(&t->threads, &t->thread_count, fact->id))
            break;
        id = t->threads[fact->id] = traced_row_id(shared, &next->next_thread, c->resumed);
        recorder_thread(c->recorder, id, t->row.process_id, (uint32_t)fact->number[0], fact->text, bytes);
        break;
    case FACT_CODE:
        if (!traced_room_for(&t->codes.id, &t->codes.count, fact->id))
            break;
        id = t->codes.id[fact->id] = traced_row_id(shared, &next->next_code, c->resumed);
        recorder_code(c->recorder, &(struct recorder_code){
            .code_id = id, .process_id = t->row.process_id, .name = fact->text, .name_bytes = bytes,
            .file = fact->text + bytes, .file_bytes = more, .first_line = (int32_t)fact->number[0],
            .flags = (uint32_t)fact->number[1], .fingerprint = fact->number[2]});
        break;
    default:
        traced_shim_fact(t, fact, shared);
        break;
    }
}

/* Go on to the next chunk. False: there is none yet. */
static bool facts_next(struct traced *t, uint64_t at)
{
    struct facts *chunk = map_file(t, at, 4096);
    uint64_t bytes = chunk ? chunk->bytes : 0;

    if (chunk)
        munmap(chunk, 4096);
    chunk = bytes && bytes < UINT32_MAX ? map_file(t, at, bytes + sizeof *chunk) : NULL;
    if (!chunk || (t->facts && at <= t->facts_off)) { /* a chain that leads back would never end */
        if (chunk)
            munmap(chunk, bytes + sizeof *chunk);
        file_broken(t, "its names lie outside the file");
        return false;
    }
    if (t->facts)
        munmap(t->facts, t->facts_bytes);
    t->facts = chunk;
    t->facts_off = at;
    t->facts_bytes = bytes + sizeof *chunk;
    t->facts_read = 0;
    return true;
}

/* SQLite must not meet memory that can go away: texts are copied first. */
static bool copy_room(struct collector *c, size_t bytes)
{
    struct fact *more;

    if (bytes <= c->fact_room)
        return true;
    more = realloc(c->fact, bytes * 2);
    if (!more)
        return false;
    c->fact = more;
    c->fact_room = bytes * 2;
    return true;
}

void traced_facts(struct traced *t)
{
    while (!t->broken && t->facts) {
        uint64_t used = atomic_load_explicit(&t->facts->used, memory_order_acquire), next;
        uint64_t end = t->facts_bytes - sizeof *t->facts;
        while (t->facts_read < used) {
            struct fact *fact = (struct fact *)(t->facts->data + t->facts_read), head;
            if (used > end || end - t->facts_read < sizeof *fact) {
                file_broken(t, "its names do not end where they say");
                return;
            }
            head = *fact; /* what is checked must not change before it is used */
            if (head.bytes < sizeof *fact || head.bytes % 8 || head.bytes > used - t->facts_read || head.bytes > FACT_MAX ||
                (uint64_t)head.text_bytes[0] + head.text_bytes[1] > head.bytes - sizeof *fact) {
                file_broken(t, "a name's length makes no sense");
                return;
            }
            if (!copy_room(t->collector, head.bytes)) {
                file_broken(t, "no memory for a name of it");
                return;
            }
            memcpy(t->collector->fact, fact, head.bytes);
            *t->collector->fact = head;
            fact_take(t, t->collector->fact, fact);
            t->facts_read += head.bytes;
        }
        next = t->facts->next_off;
        if (!next || used != atomic_load_explicit(&t->facts->used, memory_order_acquire) || !facts_next(t, next))
            return;
    }
}

/* ---- what a decoder asks ---- */

static uint32_t host_code(void *context, uint32_t local)
{
    struct traced *t = context;
    struct collector *c = t->collector;

    traced_facts(t);
    if (local < t->codes.count && t->codes.id[local])
        return t->codes.id[local];
    if (!t->unknown_code) { /* its fact found no room, or the ring is not to be trusted */
        static const char name[] = "(unknown code)";
        t->unknown_code = c->state.header->next_code++;
        recorder_code(c->recorder, &(struct recorder_code){
            .code_id = t->unknown_code, .process_id = t->row.process_id, .name = name,
            .name_bytes = sizeof name - 1, .file = "", .file_bytes = 0, .flags = 3});
        collector_loss(c, t->row.process_id, 0, collector_now_ns(c), 0,
                       "names: no room for the names of some code; its frames are of \"(unknown code)\"");
    }
    return t->unknown_code;
}

static uint32_t host_thread(void *context, uint32_t local)
{
    struct traced *t = context;

    traced_facts(t);
    if (local < t->thread_count && t->threads[local])
        return t->threads[local];
    uint32_t id = t->collector->state.header->next_thread++;
    recorder_thread(t->collector->recorder, id, t->row.process_id, 0, "", 0);
    return id;
}

static void host_loss(void *context, uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause)
{
    struct traced *t = context;

    collector_loss(t->collector, t->row.process_id, thread_id, at_ns, events, cause);
}

/* ---- rings ---- */

static bool ring_open(struct traced *t, uint32_t n)
{
    struct collector *c = t->collector;
    uint64_t at = t->file->ring_off[n], words;
    struct ring *ring = map_file(t, at, RING_HEADER);
    struct traced_ring *more;
    char *area = MAP_FAILED;
    size_t bytes = 0;
    struct decode_place *place;

    words = ring ? ring->words : 0;
    if (words && (words & (words - 1)) == 0 && words >= RING_SMALLEST / 8 && words <= (UINT64_C(1) << 30) / 8 &&
        in_file(t, at, RING_HEADER + words * 8)) {
        bytes = words * 8;
        area = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    place = collector_state_place(&c->state, t->name, n);
    if (area == MAP_FAILED || !place ||
        mmap(area, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, t->fd, (off_t)(at + RING_HEADER)) == MAP_FAILED ||
        mmap(area + bytes, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, t->fd, (off_t)(at + RING_HEADER)) == MAP_FAILED) {
        if (area != MAP_FAILED)
            munmap(area, 2 * bytes);
        if (ring)
            munmap(ring, RING_HEADER);
        file_broken(t, "a thread's ring lies outside the file");
        return false;
    }
    more = realloc(t->rings, (n + 1) * sizeof *more);
    if (!more)
        return false;
    t->rings = more;
    t->rings[n] = (struct traced_ring){.ring = ring, .words = (uint64_t *)area, .count = words};
    decode_open(&t->rings[n].decoder, &c->decode,
                (struct decode_host){t, &t->codes, host_code, host_thread, traced_shim_decision, traced_shim_entry,
                                     traced_shim_late_entry, host_loss}, place);
    t->ring_count = n + 1;
    return true;
}

/* Let a waiting producer go on, once enough has been taken to make that worth
 * while: about a millisecond's work, so that it never waits long at once. */
static void wake(struct traced_ring *r, uint64_t tail, bool now)
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

static size_t ring_drain(struct traced *t, struct traced_ring *r, unsigned *fullest)
{
    /* B: matches the producer's A. */
    uint64_t head = atomic_load_explicit(&r->ring->head, memory_order_acquire), tail = r->decoder.now.tail;
    uint64_t there = head - tail;

    if (!there)
        return 0;
    if (there > r->count) {
        file_broken(t, "a thread's ring holds more than fits");
        return 0;
    }
    if (there * 256 / r->count > *fullest)
        *fullest = (unsigned)(there * 256 / r->count);
    while (tail != head) {
        uint64_t span = head - tail < CHUNK_WORDS ? head - tail : CHUNK_WORDS;
        uint64_t taken;
        t->collector->in_words = true;
        taken = decode_words(&r->decoder, r->words + (tail & (r->count - 1)), span);
        t->collector->in_words = false;
        if (!taken) {
            file_broken(t, "a thread's ring ends within a record");
            break;
        }
        tail += taken;
        /* C: the words are no longer needed; matches the producer's D. */
        atomic_store_explicit(&r->ring->tail, tail, memory_order_release);
        wake(r, tail, tail == head);
        if (recorder_log_full(t->collector->recorder))
            recorder_commit(t->collector->recorder);
    }
    return there;
}

size_t traced_drain(struct traced *t, unsigned *fullest)
{
    size_t words = 0;
    uint32_t rings;

    if (t->broken || t->drained || !t->file)
        return 0;
    rings = atomic_load_explicit(&t->file->rings, memory_order_acquire);
    if (rings > RING_MAX) {
        file_broken(t, "it says it has more rings than a process can have");
        return 0;
    }
    while (t->ring_count < rings && ring_open(t, t->ring_count))
        ;
    for (uint32_t i = 0; i < t->ring_count && !t->broken; i++)
        words += ring_drain(t, &t->rings[i], fullest);
    traced_facts(t);
    if (words)
        t->last_words_ns = clock_monotonic_ns();
    return words;
}

/* ---- life ---- */

/* A forked child knows its parent's code objects by the parent's ids. */
static void inherit(struct traced *t)
{
    uint32_t count = t->file->inherited_codes, entries = t->file->inherited_entries;
    uint32_t signatures = t->file->inherited_signatures;
    struct traced *parent = t->collector->traced;
    const char *name = t->file->parent_file;

    while (parent && strncmp(parent->name, name, sizeof parent->name))
        parent = parent->next;
    if (!parent)
        return;
    traced_facts(parent);
    t->row.parent_process_id = parent->row.process_id;
    t->row.rank = parent->row.rank;
    t->row.local_rank = parent->row.local_rank;
    for (int i = 0; i < 3; i++)
        t->torch[i] = parent->torch[i] ? strdup(parent->torch[i]) : NULL;
    t->argv = parent->argv ? strdup(parent->argv) : NULL;
    t->executable = parent->executable ? strdup(parent->executable) : NULL;
    t->version = parent->version ? strdup(parent->version) : NULL;
    if (count && count <= parent->codes.count && traced_room_for(&t->codes.id, &t->codes.count, count - 1))
        memcpy(t->codes.id, parent->codes.id, count * sizeof *t->codes.id);
    if (entries && entries <= parent->entry_count && traced_entry_room(t, entries - 1))
        memcpy(t->entries, parent->entries, entries * sizeof *t->entries);
    if (signatures && signatures <= parent->signature_count &&
        traced_room_for(&t->signatures, &t->signature_count, signatures - 1))
        memcpy(t->signatures, parent->signatures, signatures * sizeof *t->signatures);
}

size_t traced_nested(int fd, uint64_t newest, uint64_t seen, uint64_t **offsets)
{
    size_t count = 0, room = 0;
    struct process_file file;

    *offsets = NULL;
    for (uint64_t at = newest; at && at != seen && count < NESTED_MAX; at = file.next_nested) {
        if (count == room) {
            uint64_t *more = realloc(*offsets, (room = room ? room * 2 : 16) * sizeof *more);
            if (!more)
                break;
            *offsets = more;
        }
        if (at % 4096 || at > INT64_MAX || pread(fd, &file, sizeof file, (off_t)at) != sizeof file)
            break;
        (*offsets)[count++] = at;
    }
    for (size_t i = 0; i < count / 2; i++) {
        uint64_t swap = (*offsets)[i];
        (*offsets)[i] = (*offsets)[count - 1 - i];
        (*offsets)[count - 1 - i] = swap;
    }
    return count;
}

struct traced *traced_open(struct collector *c, enum session_place place, const char *name, bool *retry)
{
    static const char *const modes[] = {"all", "user", "none", "decided"};
    struct traced *t = calloc(1, sizeof *t);
    uint64_t started, id, at = strchr(name, '@') ? strtoull(strchr(name, '@') + 1, NULL, 16) : 0;
    char file[sizeof t->name];

    *retry = false;
    if (!t)
        return NULL;
    t->collector = c;
    t->pidfd = -1;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->place = place;
    snprintf(file, sizeof file, "%.*s", (int)strcspn(name, "@"), name);
    t->fd = session_file(c->session, place, file, O_RDWR);
    t->file = t->fd >= 0 ? map_file(t, at, HEADER_BYTES) : NULL;
    t->root = t->file && at ? map_file(t, 0, HEADER_BYTES) : t->file;
    t->nested = at;
    if (!t->root || !atomic_load_explicit(&t->file->ready, memory_order_acquire)) {
        *retry = t->fd >= 0;
        goto err;
    }
    if (memcmp(t->file->magic, RING_PROCESS_MAGIC, sizeof t->file->magic) || t->file->format != RING_FORMAT ||
        t->file->word_bytes != 8) {
        collector_loss(c, 0, 0, collector_now_ns(c), 0,
                       "ring: a file in the session is not a process's ring, or of another dyntrace; it was left out");
        goto err;
    }
    started = t->file->start_time;
    id = t->file->process_id = collector_process_id(c, t->file->pid, t->file->process_id);
    t->started = started;
    t->row = (struct recorder_process){
        .process_id = (uint32_t)id, .pid = t->file->pid, .rank = -1, .local_rank = -1,
        .mode = modes[t->file->mode < sizeof modes / sizeof *modes ? t->file->mode : SESSION_NONE],
        .start_ns = decode_ns(&c->decode, t->file->born_clock)};
    if (t->row.start_ns > collector_now_ns(c))
        t->row.start_ns = collector_now_ns(c); /* not believed */
    t->last_words_ns = clock_monotonic_ns();
    facts_next(t, t->file->facts_off); /* if not, its row stays, marked as broken */
    t->parent_pid = t->file->parent_pid;
    if (t->file->parent_file[0])
        inherit(t);
    t->changed = true;
    traced_facts(t);
    c->processes++;
    return t;
err:
    traced_free(t);
    return NULL;
}

void traced_say(struct traced *t)
{
    if (!t->changed)
        return;
    t->row.argv = t->argv;
    t->row.executable = t->executable;
    t->row.python_version = t->version;
    t->row.torch_version = t->torch[0];
    t->row.torch_mode = t->torch[1];
    t->row.torch_note = t->torch[2];
    recorder_process(t->collector->recorder, &t->row);
    t->changed = false;
}

/* The row of `loss` whose id is kept in the file, so that it is said once. */
static uint64_t row_of(struct collector *c, uint64_t *kept)
{
    if (!*kept || *kept >= c->state.header->next_loss)
        *kept = c->state.header->next_loss++;
    return *kept;
}

/* What only the end tells. */
static void report_losses(struct traced *t)
{
    struct collector *c = t->collector;
    uint64_t now = collector_now_ns(c), threads, orphans, *row = t->file->loss_rows;
    char cause[200];

    if (t->broken)
        return;
    for (uint32_t i = 0; i < t->ring_count; i++) {
        struct ring *ring = t->rings[i].ring;
        c->waits += ring->waits;
        c->wait_ns += ring->wait_ns;
        if (!ring->lost)
            continue;
        if (ring->lost_error)
            snprintf(cause, sizeof cause, "memory: no room for more of a thread's ring (%s); its frames from here on were not recorded",
                     strerror((int)ring->lost_error));
        else
            snprintf(cause, sizeof cause, "collector: it %s while the program ran on; frames from here on were not recorded",
                     c->resumed ? "was gone" : "took nothing");
        collector_loss_row(c, row_of(c, &ring->lost_row), t->row.process_id, t->rings[i].decoder.now.thread_id,
                           decode_ns(&c->decode, ring->lost_since), ring->lost, cause);
    }
    threads = atomic_load(&t->file->lost_threads);
    if (threads) {
        snprintf(cause, sizeof cause, "threads: no rings could be made for %llu of them (%s); their frames were not recorded",
                 (unsigned long long)threads, strerror((int)atomic_load(&t->file->lost_error)));
        collector_loss_row(c, row_of(c, &row[0]), t->row.process_id, 0, now, atomic_load(&t->file->lost_frames), cause);
    }
    orphans = atomic_load(&t->file->orphans);
    if (orphans) {
        snprintf(cause, sizeof cause, "children: no ring could be made for %llu forked process%s (%s); their frames were not recorded",
                 (unsigned long long)orphans, orphans == 1 ? "" : "es", strerror((int)atomic_load(&t->file->orphan_error)));
        collector_loss_row(c, row_of(c, &row[1]), t->row.process_id, 0, now, atomic_load(&t->file->orphan_frames), cause);
    }
}

static void headers_unmap(struct traced *t)
{
    if (t->root && t->root != t->file)
        munmap(t->root, HEADER_BYTES);
    if (t->file)
        munmap(t->file, HEADER_BYTES);
    t->root = t->file = NULL;
}

void traced_finish(struct traced *t)
{
    t->drained = true;
    t->changed = true;
    /* First what cannot fail, whatever became of the file. */
    for (uint32_t i = 0; i < t->ring_count; i++)
        decode_close(&t->rings[i].decoder);
    if (t->file)
        report_losses(t);
    for (uint32_t i = 0; i < t->ring_count; i++) {
        struct traced_ring *r = &t->rings[i];
        munmap(r->words, r->count * 16);
        munmap(r->ring, RING_HEADER);
        /* The memory goes back; the file keeps its names, which a recovery needs. */
        if (t->fd >= 0 && !t->broken)
            fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)t->file->ring_off[i] + RING_HEADER,
                      (off_t)(r->count * 8));
    }
    free(t->rings);
    t->rings = NULL;
    t->ring_count = 0;
    if (t->facts)
        munmap(t->facts, t->facts_bytes);
    t->facts = NULL;
}

void traced_committed(struct traced *t)
{
    if (!t->drained || !t->file)
        return;
    if (!t->broken)
        atomic_store(&t->file->finished, 1);
    headers_unmap(t);
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

void traced_free(struct traced *t)
{
    headers_unmap(t);
    if (t->fd >= 0)
        close(t->fd);
    if (t->pidfd >= 0)
        close(t->pidfd);
    free(t->codes.id);
    free(t->threads);
    free(t->compiles);
    free(t->signatures);
    free(t->entries);
    free(t->argv);
    free(t->executable);
    for (int i = 0; i < 3; i++)
        free(t->torch[i]);
    free(t->version);
    free(t);
}

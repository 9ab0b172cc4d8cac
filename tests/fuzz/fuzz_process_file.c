/* fuzz_process_file.c -- any bytes as a process's file, through traced_open and traced_read_rings.
 *
 * The input is laid over a file that is well-formed: a list of patches, each
 * where(2 bytes, in units of 8) and 8 bytes. So a few bytes reach every field of
 * the header, the names, the ring's header and its words. */
#include "collector/traced.h"
#include "ring.h"
#include "../unit/frames_db.h"

int fuzz_one(const uint8_t *data, size_t bytes);

enum { HEADER = (sizeof(struct process_file) + 4095) & ~4095, FACTS = 8192, RING = RING_HEADER + RING_SMALLEST, RINGS = 2,
       FILE_BYTES = HEADER + FACTS + RINGS * RING };

static _Alignas(4096) char good[FILE_BYTES];
static char directory[64];
static struct frames_db f;
static struct recorder *recorder;
static struct session session;
static struct session_file options = {.clock = SESSION_MONOTONIC};

static uint32_t fact_add(struct facts *facts, uint32_t used, enum fact_kind kind, const void *fact)
{
    size_t size = fact_size(kind, fact);

    fact_write((struct fact *)(facts->data + used), kind, fact, size);
    return used + (uint32_t)size;
}
#define FACT(facts, used, NAME, ...) fact_add((facts), (used), FACT_##NAME, &(struct fact_##NAME){__VA_ARGS__})

static void good_make(void)
{
    struct process_file *file = (struct process_file *)good;
    struct facts *facts = (struct facts *)(good + HEADER), *more = (struct facts *)(good + HEADER + 4096);
    uint32_t used = 0;

    memcpy(file->magic, RING_PROCESS_MAGIC, sizeof file->magic);
    file->format = RING_FORMAT;
    file->word_bytes = 8;
    file->pid = 4000000;
    file->born_clock = 5;
    file->facts_off = HEADER;
    file->file_bytes = FILE_BYTES;
    file->rings = RINGS;
    file->ready = 1;
    facts->bytes = more->bytes = 4096 - sizeof *facts;
    used = FACT(facts, used, ARGV, .argv = {"python3\0-c\0pass", 16});
    used = FACT(facts, used, PYTHON, .version = fact_make_text("3.11.7"));
    used = FACT(facts, used, EXECUTABLE, .path = fact_make_text("/usr/bin/python3"));
    used = FACT(facts, used, THREAD, .thread = 0, .os_tid = 7, .name = fact_make_text("MainThread"));
    used = FACT(facts, used, CODE, .code = 0, .first_line = 7, .flags = 3, .qualname = fact_make_text("f"), .filename = fact_make_text("/x.py"));
    facts->used = used;
    facts->next_off = HEADER + 4096;
    used = FACT(more, 0, CODE, .code = 1, .first_line = 7, .flags = 3, .qualname = fact_make_text("g<locals>"), .filename = fact_make_text("/y.py"));
    used = FACT(more, used, RANK, .rank = 6, .local_rank = 2);
    used = FACT(more, used, ENTRY, .entry = 0, .code = 1, .clock = 9, .guards = 3, .region = -1);
    more->used = used;
    for (int i = 0; i < RINGS; i++) {
        char *at = good + HEADER + FACTS + i * RING;
        struct ring *ring = (struct ring *)at;
        uint64_t *words = (uint64_t *)(at + RING_HEADER);
        file->ring_off[i] = (uint64_t)(at - good);
        ring->words = RING_SMALLEST / 8;
        words[0] = RING_CONTROL_WORD(CONTROL_THREAD, 2, (unsigned)i);
        words[1] = 10;
        for (int n = 0; n < 40; n++)
            words[2 + n] = RING_WORD(n % 2 ? RING_RETURN : RING_CALL, n % 2 ? n / 2 : n % 3, 20u + (unsigned)n);
        words[42] = RING_WORD(RING_CALL, 1, 70u);
        memcpy(words + 43, (uint64_t[]){RING_CONTROL_WORD(CONTROL_CHECK, 2, 0u), UINT64_C(3) << 44 | 7,
                                        RING_CONTROL_WORD(CONTROL_DECISION, 3, UINT64_C(1) << 8 | 1), 71, 5}, 5 * sizeof *words);
        ring->head = 48;
    }
}

static void clean_up(void)
{
    static const char *const names[] = {"t.db", "t.db-wal", "t.db-shm", "t.db-frames", "1-1-0.ring", "state"};
    char path[128];

    recorder_close(recorder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
    unlink(f.path);
}

static void setup(void)
{
    char path[128], frames[128];
    const char *error;

    snprintf(directory, sizeof directory, "/dev/shm/fuzz-XXXXXX");
    if (!mkdtemp(directory))
        snprintf(directory, sizeof directory, "/tmp/fuzz-XXXXXX"), mkdtemp(directory) ? (void)0 : abort();
    snprintf(path, sizeof path, "%s/t.db", directory);
    snprintf(frames, sizeof frames, "%s/t.db-frames", directory);
    if (recorder_create(path, frames, false) || !(recorder = recorder_open(path, &error)))
        abort();
    frames_db_open(&f);
    session.file = &options;
    session.place[SESSION_MAIN] = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    good_make();
    atexit(clean_up);
}

int fuzz_one(const uint8_t *data, size_t bytes)
{
    static _Alignas(4096) char bad[FILE_BYTES];
    static unsigned runs;
    struct collector *c;
    struct traced *t;
    char path[128];
    int fd;

    if (!recorder)
        setup();
    memcpy(bad, good, sizeof bad);
    for (size_t at = 0; at + 10 <= bytes; at += 10) {
        size_t where = ((size_t)data[at] | (size_t)data[at + 1] << 8) * 8 % sizeof bad;
        memcpy(bad + where, data + at + 2, 8);
    }
    ((struct process_file *)bad)->pid = 4000000; /* no process of this machine */
    snprintf(path, sizeof path, "%s/1-1-0.ring", directory);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bad, sizeof bad) != (ssize_t)sizeof bad)
        abort();
    close(fd);

    frame_pages_close(&f.pages);
    memset(f.window->holds, 0, sizeof f.window->holds);
    f.window->next_page = f.window->written = 0;
    if (ftruncate(f.file, 0) || pwrite(f.file, frames_template, frames_template_bytes, 0) < 0)
        abort();
    c = calloc(1, sizeof *c);
    c->session = &session;
    c->recorder = recorder;
    if (collector_state_open(&c->state, &session, false))
        abort();
    c->state.file->window.first = frames_first;
    memcpy(c->state.file->window.root, frames_root, sizeof frames_root);
    if (frame_pages_open(&c->pages, dup(f.file), &c->state.file->window, false))
        abort();
    lookup_pages_open(&c->lookups, &c->pages, &c->state.file->lookups, c->state.file->header.next, false);
    c->decode = (struct decode_session){.pages = &c->pages, .ns_per_tick_32 = UINT64_C(1) << 32, .next = c->state.file->header.next};
    t = traced_new(c, SESSION_MAIN, "1-1-0.ring");
    traced_open(t);
    if (t->opened == TRACED_OPEN) {
        for (int i = 0; i < 3; i++)
            traced_read_rings(t);
        traced_finish(t);
    }
    traced_free(t);
    lookup_pages_finish(&c->lookups);
    f.finished = frame_pages_finish_file(&c->pages);
    frames_db_read(&f, false);
    if (strcmp(f.integrity, "ok") || f.finished < 0) {
        fprintf(stderr, "%s; finish: %lld\n", f.integrity, (long long)f.finished);
        abort();
    }
    frame_pages_close(&c->pages);
    lookup_pages_close(&c->lookups);
    collector_state_close(&c->state);
    snprintf(path, sizeof path, "%s/state", directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/window", directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/rows", directory);
    unlink(path);
    list_free(&c->counts.places);
    list_free(&c->decode.totals);
    list_free(&c->fact);
    free(c);
    if (++runs % 500 == 0 && !recorder_commit(recorder))
        fprintf(stderr, "%s\n", recorder_error(recorder));
    return 0;
}

/* tracer/fact.c -- facts: what happens once, and what words refer to. See facts.h.
 *
 * Runs in: the traced process; a slow path. */
#include "tracer/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define P tracer_process

enum {
    MORE_FACTS = 512 << 10, /* bytes of a chunk after the first */
    ARGV_MAX = 64 << 10,
};

static struct facts *facts; /* the chunk being filled */

void facts_begin(struct facts *chunk, size_t bytes)
{
    facts = chunk;
    if (facts)
        facts->bytes = bytes - sizeof *facts;
}

/* Room for a record of SIZE bytes, *USED bytes into its chunk. NULL: there is none, and the fact is dropped: the collector
 * shows its code as unknown. */
static struct fact *fact_room(size_t size, uint64_t *used)
{
    struct facts *before = facts, *chunk;
    uint64_t offset = 0;

    if (!P.file || !facts)
        return NULL;
    *used = atomic_load_explicit(&facts->used, memory_order_relaxed);
    if (size > facts->bytes - *used) {
        size_t wanted = size + sizeof *facts > MORE_FACTS ? (size + sizeof *facts + 4095) & ~(size_t)4095 : MORE_FACTS;
        if (!(chunk = file_extent(wanted, wanted, &offset)))
            return NULL;
        facts_begin(chunk, wanted);
        before->next_off = offset;
        *used = 0;
    }
    return (struct fact *)(facts->data + *used);
}

/* The record at USED, of SIZE bytes, is whole. The first of a chunk also publishes next_off of the one before. */
static void fact_made(uint64_t used, size_t size)
{
    atomic_store_explicit(&facts->used, used + size, memory_order_release);
}

void tracer_put_fact(enum fact_kind kind, const void *fact)
{
    size_t size = fact_bytes(kind, fact);
    struct fact *made;
    uint64_t used;

    tracer_lock();
    if ((made = fact_room(size, &used))) {
        fact_write(made, kind, fact, size);
        fact_made(used, size);
    }
    tracer_unlock();
}

void tracer_loss(const char *cause)
{
    tracer_fact(LOSS, .clock = (int64_t)tracer_now(P.monotonic), .events = 1, .cause = fact_string(cause));
}

/* NAME's value in the environment; -1: it is no number. */
static int64_t rank_in(const char *name)
{
    const char *text = getenv(name);

    return text && *text >= '0' && *text <= '9' ? atoll(text) : -1;
}

void facts_of_process(void)
{
    static char buffer[ARGV_MAX];
    const char *version = Py_GetVersion(), *text;
    PyObject *executable = PySys_GetObject("executable"); /* borrowed */
    int fd = P.session->no_argv ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    Py_ssize_t used = 0, got;

    if (fd >= 0) {
        while (used < ARGV_MAX && (got = read(fd, buffer + used, sizeof buffer - (size_t)used)) > 0)
            used += got;
        close(fd);
        tracer_fact(ARGV, .argv = {buffer, (uint64_t)used});
    }
    tracer_fact(PYTHON, .version = {version, strcspn(version, " ")});
    text = executable && PyUnicode_Check(executable) ? PyUnicode_AsUTF8AndSize(executable, &used) : NULL;
    if (text)
        tracer_fact(EXECUTABLE, .path = {text, (uint64_t)used});
    PyErr_Clear();
    if (rank_in("RANK") >= 0)
        tracer_fact(RANK, .rank = rank_in("RANK"), .local_rank = rank_in("LOCAL_RANK"));
}

/* ---- from one session to the next ---- */

static char *kept;
static size_t kept_bytes;
static uint8_t *died; /* a bit for each entry */
static size_t died_bytes;

void facts_entry_died(uint32_t entry)
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

/* Is it about an entry that has died? The next session never sees that one. */
static bool is_over(const struct fact *fact)
{
    bool entry = fact->kind == FACT_ENTRY || fact->kind == FACT_GUARD || fact->kind == FACT_ORDER;
    uint64_t id = (uint64_t)fact->number[0]; /* of all three */

    return entry && id / 8 < died_bytes && died[id / 8] >> id % 8 & 1;
}

static bool is_kept(const struct fact *fact)
{
    return fact->kind == FACT_CODE || fact->kind == FACT_ENTRY || fact->kind == FACT_GUARD || fact->kind == FACT_ORDER ||
           fact->kind == FACT_SIGNATURE;
}

void facts_keep(void)
{
    const struct facts *chunk = file_at(P.file->facts_off);

    free(kept);
    kept = NULL;
    kept_bytes = 0;
    for (; chunk; chunk = chunk->next_off ? file_at(chunk->next_off) : NULL) {
        uint64_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
        for (uint64_t at = 0; at < used; at += ((const struct fact *)(chunk->data + at))->bytes) {
            const struct fact *fact = (const struct fact *)(chunk->data + at);
            char *more = is_kept(fact) ? realloc(kept, kept_bytes + fact->bytes) : NULL;
            if (more) {
                kept = more;
                memcpy(kept + kept_bytes, fact, fact->bytes);
                kept_bytes += fact->bytes;
            }
        }
    }
}

void facts_again(void)
{
    size_t bytes;

    tracer_lock();
    for (size_t at = 0; at < kept_bytes; at += bytes) {
        const struct fact *fact = (const struct fact *)(kept + at);
        uint64_t used;
        struct fact *made;

        bytes = fact->bytes;
        if (!is_over(fact) && (made = fact_room(bytes, &used))) {
            memcpy(made, fact, bytes);
            made->row_id = made->row_more = 0;
            fact_made(used, bytes);
        }
    }
    tracer_unlock();
}

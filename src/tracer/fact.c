/* tracer/fact.c -- facts: what happens once, and what words refer to. See ring.h.
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

/* Append a record. One that finds no room is dropped: the collector shows its
 * code as unknown. */
void tracer_fact(enum fact_kind kind, uint32_t id, const uint64_t number[3],
                 const char *text, size_t bytes, const char *more, size_t more_bytes)
{
    size_t size = (sizeof(struct fact) + bytes + more_bytes + 7) & ~(size_t)7;
    struct facts *before;
    struct fact *fact;
    uint64_t used, offset = 0;

    tracer_lock();
    before = facts;
    if (!P.file || !facts)
        goto done;
    used = atomic_load_explicit(&facts->used, memory_order_relaxed);
    if (size > facts->bytes - used) {
        size_t wanted = size + sizeof *facts > MORE_FACTS ? (size + sizeof *facts + 4095) & ~(size_t)4095 : MORE_FACTS;
        struct facts *chunk = file_extent(wanted, wanted, &offset);
        if (!chunk)
            goto done;
        facts_begin(chunk, wanted);
        before->next_off = offset;
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
done:
    tracer_unlock();
}

static void text_fact(enum fact_kind kind, const char *text, size_t bytes)
{
    tracer_fact(kind, 0, NULL, text, bytes, "", 0);
}

/* NAME's value in the environment + 1; 0: it is none. */
static uint64_t rank_in(const char *name)
{
    const char *text = getenv(name);

    return text && *text >= '0' && *text <= '9' ? (uint64_t)atoll(text) + 1 : 0;
}

void facts_of_process(void)
{
    static char buffer[ARGV_MAX];
    const char *version = Py_GetVersion(), *text;
    PyObject *executable = PySys_GetObject("executable"); /* borrowed */
    int fd = P.session->no_argv ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    uint64_t rank[3] = {rank_in("RANK"), rank_in("LOCAL_RANK")};
    Py_ssize_t used = 0, got;

    if (fd >= 0) {
        while (used < ARGV_MAX && (got = read(fd, buffer + used, sizeof buffer - (size_t)used)) > 0)
            used += got;
        close(fd);
        text_fact(FACT_ARGV, buffer, (size_t)used);
    }
    text_fact(FACT_PYTHON, version, strcspn(version, " "));
    text = executable && PyUnicode_Check(executable) ? PyUnicode_AsUTF8AndSize(executable, &used) : NULL;
    if (text)
        text_fact(FACT_EXECUTABLE, text, (size_t)used);
    PyErr_Clear();
    if (rank[0])
        tracer_fact(FACT_RANK, 0, rank, "", 0, "", 0);
}

/* ---- from one session to the next ---- */

static char *kept;
static size_t kept_bytes;

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
    for (size_t at = 0; at < kept_bytes; at += ((struct fact *)(kept + at))->bytes) {
        const struct fact *fact = (const struct fact *)(kept + at);
        tracer_fact((enum fact_kind)fact->kind, fact->id, fact->number, fact->text, fact->text_bytes[0],
                    fact->text + fact->text_bytes[0], fact->text_bytes[1]);
    }
}

/* collector/state.c -- what a collector must not forget. See collector/state.h.
 *
 * Runs in: the collector, and `run` and `fsck --recover`, which look at it. */
#include "collector/state.h"

#include <sys/mman.h>
#include <sys/param.h>

enum { BLOCK_BYTES = (STATE_BLOCK * sizeof(struct decode_place) + 4095) & ~4095 };

/* Take memory for BYTES at AT of FD. False with errno. */
static bool reserve(int fd, off_t at, size_t bytes)
{
    errno = posix_fallocate(fd, at, (off_t)bytes);
    return !errno;
}

bool collector_state_reserve(const struct collector_state *s)
{
    return reserve(s->fd, 0, sizeof *s->file);
}

/* The file of a new session, with memory for what is written before collector_state_reserve().
 * False with errno. */
static bool make(int fd)
{
    const size_t lookups = offsetof(struct state_file, lookups);

    if (!reserve(fd, 0, offsetof(struct state_file, window.page)))
        return false;
    if (!reserve(fd, (off_t)lookups, sizeof(struct lookup_window)))
        return false;
    return ftruncate(fd, sizeof(struct state_file)) == 0;
}

/* BYTES at AT of FD, with memory for them unless they are SPARSE. NULL with errno. */
static void *map_part(int fd, off_t at, size_t bytes, bool sparse)
{
    void *mapped = MAP_FAILED;

    if (sparse || reserve(fd, at, bytes))
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool is_header(const struct state_header *h)
{
    return !memcmp(h->magic, STATE_MAGIC, sizeof h->magic) && h->format == RING_FORMAT &&
           h->next_process && h->next_thread && h->next_code && h->sure[NEXT_LOSS];
}

/* What was left: is it as long as it was, BYTES, and does it make sense? */
static bool is_sound(const struct state_file *f, off_t bytes)
{
    return is_header(&f->header) &&
           bytes >= (off_t)(sizeof *f + ((size_t)f->header.places + STATE_BLOCK - 1) / STATE_BLOCK *
                                            BLOCK_BYTES) &&
           f->window.written <= f->window.next_page && f->window.first &&
           f->window.root[TREE_FRAME];
}

int collector_state_open(struct collector_state *s, const struct session *session, bool resume)
{
    struct stat status = {0};

    *s =
        (struct collector_state){.fd = session_open_file(session->place[SESSION_MAIN], "state",
                                                         O_RDWR | (resume ? 0 : O_CREAT | O_EXCL))};
    if (s->fd < 0 || fstat(s->fd, &status))
        return -1;
    errno = EINVAL;
    if (resume ? status.st_size >= (off_t)sizeof *s->file : make(s->fd))
        s->file = map_part(s->fd, 0, sizeof *s->file, !resume);
    if (s->file && !resume) {
        s->file->header = (struct state_header){.magic = STATE_MAGIC,
                                                .format = RING_FORMAT,
                                                .next_process = 1,
                                                .next_thread = 1,
                                                .next_code = 1,
                                                .next_entry = 1,
                                                .next_guard = 1,
                                                .next_compile = 1,
                                                .next_signature = 1,
                                                .next_graph = 1,
                                                .next_note = 1,
                                                .next = {1, 1, 1},
                                                .sure = {1, 1, 1}};
    } else if (s->file && !is_sound(s->file, status.st_size)) {
        collector_state_close(s);
        errno = EINVAL;
    }
    return s->file ? 0 : -1;
}

struct state_header collector_state_look(const struct session *session)
{
    int fd = session_open_file(session->place[SESSION_MAIN], "state", O_RDONLY);
    struct state_header header;
    bool read =
        fd >= 0 && pread(fd, &header, sizeof header, 0) == sizeof header && is_header(&header);

    if (fd >= 0)
        close(fd);
    return read ? header : (struct state_header){0};
}

static struct decode_place *place_at(struct collector_state *s, uint32_t n)
{
    while (n / STATE_BLOCK >= s->blocks.count) {
        off_t at = (off_t)(sizeof *s->file + s->blocks.count * BLOCK_BYTES);
        struct decode_place **block = list_add(&s->blocks);
        if (!block)
            return NULL;
        if (!(*block = map_part(s->fd, at, BLOCK_BYTES, false))) {
            s->blocks.count--;
            return NULL;
        }
    }
    return &s->blocks.at[n / STATE_BLOCK][n % STATE_BLOCK];
}

struct decode_place *collector_state_place(struct collector_state *s, const char *file,
                                           uint32_t ring)
{
    struct decode_place *place;

    /* A resumed session has places that no decoder holds yet: find the ring's place by the name of
     * its file. In a live session this search always fails, because each ring asks for its place
     * once. */
    for (uint32_t n = 0; n < s->file->header.places; n++) {
        place = place_at(s, n);
        if (place && place->ring == ring && !strncmp(place->file, file, sizeof place->file))
            return place;
    }
    place = place_at(s, s->file->header.places);
    if (!place)
        return NULL;
    snprintf(place->file, sizeof place->file, "%s", file);
    place->ring = ring;
    s->file->header.places++;
    return place;
}

void collector_state_recall(struct collector_state *s)
{
    struct state_header *header = &s->file->header;

    memcpy(header->next, header->sure, sizeof header->next);
    for (uint32_t n = 0; n < header->places; n++) {
        const struct decode_place *place = place_at(s, n);
        for (int i = 0; place && i < IDS_OF_WORDS; i++)
            header->next[i] = MAX(header->next[i], place->at[place->which & 1].next[i]);
    }
}

static bool holds(const void *mapped, size_t bytes, const void *address)
{
    return (uintptr_t)address - (uintptr_t)mapped < bytes;
}

bool collector_state_holds(const struct collector_state *s, const void *address)
{
    bool held = holds(s->file, sizeof *s->file, address);

    for (size_t i = 0; i < s->blocks.count && !held; i++)
        held = holds(s->blocks.at[i], BLOCK_BYTES, address);
    return held;
}

void collector_state_close(struct collector_state *s)
{
    for (size_t i = 0; i < s->blocks.count; i++)
        munmap(s->blocks.at[i], BLOCK_BYTES);
    list_free(&s->blocks);
    if (s->file)
        munmap(s->file, sizeof *s->file);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct collector_state){.fd = -1};
}

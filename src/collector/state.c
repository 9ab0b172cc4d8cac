/* collector/state.c -- what a collector must not forget. See collector/state.h. */
#include "collector/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 4096,
    BLOCK_BYTES = (STATE_BLOCK * sizeof(struct decode_place) + 4095) & ~4095,
};

/* Map BYTES at AT of FD, of which the first RESERVED get memory now. NULL with errno. */
static void *map_part(int fd, off_t at, size_t bytes, size_t reserved)
{
    void *mapped;

    if ((errno = posix_fallocate(fd, at, (off_t)reserved)))
        return NULL;
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static int file_open(const struct session *session, const char *name, bool resume)
{
    return session_file(session, SESSION_MAIN, name, O_RDWR | (resume ? 0 : O_CREAT | O_EXCL));
}

static bool has_bytes(int fd, size_t bytes)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_size >= (off_t)bytes;
}

/* What was left: is it as long as it was, and does it make sense? */
static bool is_sound(const struct collector_state *s)
{
    const struct state_header *h = s->header;

    return !memcmp(h->magic, STATE_MAGIC, sizeof h->magic) && h->format == RING_FORMAT && h->next_process && h->next_thread &&
           h->next_code && h->next_loss &&
           has_bytes(s->fd, HEADER_BYTES + ((size_t)h->places + STATE_BLOCK - 1) / STATE_BLOCK * BLOCK_BYTES) &&
           s->window->written <= s->window->next_page && s->window->first && s->window->root;
}

/* Map the files, which are open. False: errno. */
static bool files_map(struct collector_state *s, int window, bool resume)
{
    if (s->fd < 0 || s->rows_fd < 0 || window < 0)
        return false;
    if (resume && (!has_bytes(s->fd, HEADER_BYTES) || !has_bytes(window, sizeof *s->window) ||
                   !has_bytes(s->rows_fd, offsetof(struct row_log, data)))) {
        errno = EINVAL;
        return false;
    }
    /* The log gets memory as it is needed (src/recorder_sqlite.c). */
    return !ftruncate(s->rows_fd, sizeof(struct row_log)) && (s->header = map_part(s->fd, 0, HEADER_BYTES, HEADER_BYTES)) &&
           (s->window = map_part(window, 0, sizeof *s->window, sizeof *s->window)) &&
           (s->rows = map_part(s->rows_fd, 0, sizeof *s->rows, offsetof(struct row_log, data)));
}

int collector_state_open(struct collector_state *s, const struct session *session, bool resume)
{
    int window = file_open(session, "window", resume), saved;
    bool done;

    *s = (struct collector_state){.fd = file_open(session, "state", resume), .rows_fd = file_open(session, "rows", resume)};
    done = files_map(s, window, resume);
    if (done && !resume)
        *s->header = (struct state_header){
            .magic = STATE_MAGIC, .format = RING_FORMAT, .next_process = 1, .next_thread = 1, .next_code = 1, .next_entry = 1,
            .next_guard = 1, .next_compile = 1, .next_signature = 1, .next_graph = 1, .next_note = 1, .next_loss = 1,
            .next_lookup = 1, .next_check = 1};
    if (done && resume && !is_sound(s)) {
        errno = EINVAL;
        done = false;
    }
    saved = errno;
    if (window >= 0)
        close(window);
    if (!done)
        collector_state_close(s);
    errno = saved;
    return done ? 0 : -1;
}

static struct decode_place *place_at(struct collector_state *s, uint32_t n)
{
    while (n / STATE_BLOCK >= s->blocks.count) {
        void *mapped = map_part(s->fd, HEADER_BYTES + (off_t)s->blocks.count * BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES);
        struct decode_place **block = mapped ? list_add(&s->blocks) : NULL;
        if (!block) {
            if (mapped)
                munmap(mapped, BLOCK_BYTES);
            return NULL;
        }
        *block = mapped;
    }
    return &s->blocks.at[n / STATE_BLOCK][n % STATE_BLOCK];
}

struct decode_place *collector_state_place(struct collector_state *s, const char *file, uint32_t ring)
{
    struct decode_place *place;

    /* Only a resumed session has places that no decoder holds: they are found by
     * name. A live one asks once for each ring. */
    for (uint32_t n = 0; n < s->header->places; n++) {
        place = place_at(s, n);
        if (place && place->ring == ring && !strncmp(place->file, file, sizeof place->file))
            return place;
    }
    place = place_at(s, s->header->places);
    if (!place)
        return NULL;
    snprintf(place->file, sizeof place->file, "%s", file);
    place->ring = ring;
    s->header->places++;
    return place;
}

uint64_t collector_state_logged(struct collector_state *s)
{
    uint64_t logged = s->rows->sure;

    for (uint32_t n = 0; n < s->header->places; n++) {
        struct decode_place *place = place_at(s, n);
        if (place && place->at[place->which & 1].logged > logged)
            logged = place->at[place->which & 1].logged;
    }
    return logged;
}

static bool holds(const void *mapped, size_t bytes, const void *address)
{
    return mapped && (const char *)address >= (const char *)mapped && (const char *)address < (const char *)mapped + bytes;
}

bool collector_state_holds(const struct collector_state *s, const void *address)
{
    bool held = holds(s->header, HEADER_BYTES, address) || holds(s->window, sizeof *s->window, address) ||
                holds(s->rows, sizeof *s->rows, address);

    for (size_t i = 0; i < s->blocks.count && !held; i++)
        held = holds(s->blocks.at[i], BLOCK_BYTES, address);
    return held;
}

void collector_state_close(struct collector_state *s)
{
    for (size_t i = 0; i < s->blocks.count; i++)
        munmap(s->blocks.at[i], BLOCK_BYTES);
    list_free(&s->blocks);
    if (s->header)
        munmap(s->header, HEADER_BYTES);
    if (s->window)
        munmap(s->window, sizeof *s->window);
    if (s->rows)
        munmap(s->rows, sizeof *s->rows);
    if (s->fd >= 0)
        close(s->fd);
    if (s->rows_fd >= 0)
        close(s->rows_fd);
    *s = (struct collector_state){.fd = -1, .rows_fd = -1};
}

/* collector/state.c -- what a collector must not forget. See collector/state.h.
 *
 * Runs in: the collector. */
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

/* Map BYTES at AT of FD after reserving them; MAP_FAILED with errno. */
static void *map_part(int fd, off_t at, size_t bytes)
{
    int error = posix_fallocate(fd, at, (off_t)bytes);

    if (error) {
        errno = error;
        return MAP_FAILED;
    }
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
}

static int file_open(const struct session *session, const char *name, bool resume)
{
    return session_file(session, SESSION_MAIN, name, O_RDWR | (resume ? 0 : O_CREAT | O_EXCL));
}

/* The log gets memory as it is needed (src/recorder_sqlite.c). */
static void *map_rows(int fd)
{
    if (ftruncate(fd, sizeof(struct row_log)) || posix_fallocate(fd, 0, offsetof(struct row_log, data)))
        return MAP_FAILED;
    return mmap(NULL, sizeof(struct row_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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

int collector_state_open(struct collector_state *s, const struct session *session, bool resume)
{
    int window = -1, saved;

    *s = (struct collector_state){.fd = -1, .rows_fd = -1};
    s->fd = file_open(session, "state", resume);
    s->rows_fd = file_open(session, "rows", resume);
    window = file_open(session, "window", resume);
    if (s->fd < 0 || s->rows_fd < 0 || window < 0)
        goto err;
    if (resume && (!has_bytes(s->fd, HEADER_BYTES) || !has_bytes(window, sizeof *s->window) ||
                   !has_bytes(s->rows_fd, offsetof(struct row_log, data)))) {
        errno = EINVAL;
        goto err;
    }
    s->header = map_part(s->fd, 0, HEADER_BYTES);
    s->window = map_part(window, 0, sizeof *s->window);
    s->rows = map_rows(s->rows_fd);
    if (s->header == MAP_FAILED || s->window == MAP_FAILED || s->rows == MAP_FAILED) {
        s->header = s->header == MAP_FAILED ? NULL : s->header;
        s->window = s->window == MAP_FAILED ? NULL : s->window;
        s->rows = s->rows == MAP_FAILED ? NULL : s->rows;
        goto err;
    }
    close(window);
    window = -1;
    if (resume) {
        if (is_sound(s))
            return 0;
        errno = EINVAL;
        goto err;
    }
    memcpy(s->header->magic, STATE_MAGIC, sizeof s->header->magic);
    s->header->format = RING_FORMAT;
    s->header->next_process = s->header->next_thread = s->header->next_code = 1;
    s->header->next_entry = s->header->next_guard = s->header->next_compile = s->header->next_signature = 1;
    s->header->next_graph = s->header->next_note = s->header->next_loss = 1;
    s->header->next_lookup = s->header->next_check = 1;
    return 0;
err:
    saved = errno;
    if (window >= 0)
        close(window);
    collector_state_close(s);
    errno = saved;
    return -1;
}

static struct decode_place *place_at(struct collector_state *s, uint32_t n)
{
    uint32_t block = n / STATE_BLOCK;

    while (block >= s->block_count) {
        struct decode_place **more = realloc(s->blocks, (s->block_count + 1) * sizeof *more);
        void *mapped;
        if (!more)
            return NULL;
        s->blocks = more;
        mapped = map_part(s->fd, HEADER_BYTES + (off_t)s->block_count * BLOCK_BYTES, BLOCK_BYTES);
        if (mapped == MAP_FAILED)
            return NULL;
        s->blocks[s->block_count++] = mapped;
    }
    return &s->blocks[block][n % STATE_BLOCK];
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

    for (uint32_t i = 0; i < s->block_count && !held; i++)
        held = holds(s->blocks[i], BLOCK_BYTES, address);
    return held;
}

void collector_state_close(struct collector_state *s)
{
    for (uint32_t i = 0; i < s->block_count; i++)
        munmap(s->blocks[i], BLOCK_BYTES);
    free(s->blocks);
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

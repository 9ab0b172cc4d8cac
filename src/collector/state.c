/* collector/state.c -- keeps in a file what the next collector needs after a kill. See
 * collector/state.h.
 *
 * Runs in: the collector, and `run` and `fsck --recover`, which read the file. */
#include "collector/state.h"

#include <sys/mman.h>
#include <sys/param.h>

enum { BLOCK_BYTES = (STATE_BLOCK * sizeof(struct decode_place) + 4095) & ~4095 };

/* Allocate memory for BYTES of file FD from offset AT. Returns false with errno. */
static bool allocate_file_range(int fd, off_t at, size_t bytes)
{
    errno = posix_fallocate(fd, at, (off_t)bytes);
    return !errno;
}

bool collector_state_reserve(const struct collector_state *s)
{
    return allocate_file_range(s->fd, 0, sizeof *s->file);
}

/* Set up the empty state file FD. Allocates memory only for what is written before
 * collector_state_reserve(). Returns false with errno. */
static bool set_up_state_file(int fd)
{
    const size_t lookups = offsetof(struct state_file, lookups);

    if (!allocate_file_range(fd, 0, offsetof(struct state_file, window.page)))
        return false;
    if (!allocate_file_range(fd, (off_t)lookups, sizeof(struct lookup_window)))
        return false;
    return ftruncate(fd, sizeof(struct state_file)) == 0;
}

/* Map BYTES of file FD from offset AT. Without SPARSE, allocate their memory first. Returns NULL
 * with errno. */
static void *map_part_of_file(int fd, off_t at, size_t bytes, bool sparse)
{
    void *mapped = MAP_FAILED;

    if (sparse || allocate_file_range(fd, at, bytes))
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool is_valid_header(const struct state_header *h)
{
    if (memcmp(h->magic, STATE_MAGIC, sizeof h->magic))
        return false;
    if (h->format != RING_FORMAT)
        return false;
    return h->next_process && h->next_thread && h->next_code && h->sure[NEXT_LOSS];
}

/* Return the size of a state file that has PLACES places. */
static off_t size_of_state_file(size_t places)
{
    size_t blocks = (places + STATE_BLOCK - 1) / STATE_BLOCK;

    return (off_t)(sizeof(struct state_file) + blocks * BLOCK_BYTES);
}

/* Does the content of state file F, BYTES long, make sense, and has it all its places? */
static bool is_valid_state(const struct state_file *f, off_t bytes)
{
    const struct frame_window *window = &f->window;

    if (!is_valid_header(&f->header) || bytes < size_of_state_file(f->header.places))
        return false;
    if (window->written > window->next_page)
        return false;
    return window->first && window->root[TREE_FRAME];
}

/* Return the header for a new session. All ids begin at 1. */
static struct state_header make_state_header(void)
{
    return (struct state_header){
        .magic = STATE_MAGIC,
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
        .sure = {1, 1, 1},
    };
}

static struct decode_place *map_decoder_place(struct collector_state *s, uint32_t n)
{
    while (n / STATE_BLOCK >= s->blocks.count) {
        off_t at = size_of_state_file(s->blocks.count * STATE_BLOCK);
        struct decode_place **block = list_add(&s->blocks);
        if (!block)
            return NULL;
        *block = map_part_of_file(s->fd, at, BLOCK_BYTES, false);
        if (!*block) {
            s->blocks.count--;
            return NULL;
        }
    }
    return &s->blocks.at[n / STATE_BLOCK][n % STATE_BLOCK];
}

/* Add place number N to the list of free places. */
static void free_decoder_place(struct collector_state *s, uint32_t n)
{
    uint32_t *unused = list_add(&s->unused);

    if (unused)
        *unused = n;
}

int collector_state_open(struct collector_state *s, const struct session *session, bool resume)
{
    int flags = resume ? O_RDWR : O_RDWR | O_CREAT | O_EXCL;
    struct stat status = {0};
    bool has_file;

    *s = (struct collector_state){0};
    s->fd = session_open_file(session->place[SESSION_MAIN], "state", flags);
    if (s->fd < 0 || fstat(s->fd, &status))
        return -1;
    errno = EINVAL;
    if (resume)
        has_file = status.st_size >= (off_t)sizeof *s->file;
    else
        has_file = set_up_state_file(s->fd);
    if (has_file)
        s->file = map_part_of_file(s->fd, 0, sizeof *s->file, !resume);
    if (!s->file)
        return -1;
    if (!resume) {
        s->file->header = make_state_header();
    } else if (!is_valid_state(s->file, status.st_size)) {
        collector_state_close(s);
        errno = EINVAL;
        return -1;
    }
    s->resumed = resume;
    for (uint32_t n = 0; n < s->file->header.places; n++) {
        const struct decode_place *place = map_decoder_place(s, n);
        if (place && !place->file[0])
            free_decoder_place(s, n);
    }
    return 0;
}

struct state_file *collector_state_map(const struct session *session)
{
    int fd = session_open_file(session->place[SESSION_MAIN], "state", O_RDWR);
    struct state_file *file = NULL;
    struct stat status;

    if (fd < 0)
        return NULL;
    if (!fstat(fd, &status) && status.st_size >= (off_t)sizeof *file)
        file = map_part_of_file(fd, 0, sizeof *file, true);
    close(fd);
    if (file && is_valid_state(file, status.st_size))
        return file;
    if (file)
        munmap(file, sizeof *file);
    return NULL;
}

struct state_header collector_state_read_header(const struct session *session)
{
    int fd = session_open_file(session->place[SESSION_MAIN], "state", O_RDONLY);
    struct state_header header;
    bool read;

    if (fd < 0)
        return (struct state_header){0};
    read = pread(fd, &header, sizeof header, 0) == sizeof header;
    close(fd);
    if (!read || !is_valid_header(&header))
        return (struct state_header){0};
    return header;
}

/* Is PLACE that of ring number RING in process file FILE? */
static bool is_place_of_ring(const struct decode_place *place, const char *file, uint32_t ring)
{
    return place->ring == ring && !strncmp(place->file, file, sizeof place->file);
}

struct decode_place *collector_state_find_place(struct collector_state *s, const char *file,
                                                uint32_t ring)
{
    uint32_t *places = &s->file->header.places;
    struct decode_place *place;
    uint32_t n = *places;

    /* A killed collector may have used a place for this ring: look for one with the ring's file and
     * number. */
    for (uint32_t old = 0; s->resumed && old < *places; old++) {
        place = map_decoder_place(s, old);
        if (place && is_place_of_ring(place, file, ring))
            return place;
    }
    if (s->unused.count)
        n = s->unused.at[s->unused.count - 1];
    place = map_decoder_place(s, n);
    if (!place)
        return NULL;
    if (n < *places) {
        memset(place, 0, sizeof *place);
        s->unused.count--;
    }
    place->ring = ring;
    snprintf(place->file, sizeof place->file, "%s", file);
    *places = MAX(*places, n + 1);
    return place;
}

void collector_state_free_places(struct collector_state *s, const char *file)
{
    struct state_header *header = &s->file->header;

    for (uint32_t n = 0; n < header->places; n++) {
        struct decode_place *place = map_decoder_place(s, n);
        if (!place || strncmp(place->file, file, sizeof place->file))
            continue;
        for (int i = 0; i < IDS_OF_WORDS; i++)
            header->sure[i] = MAX(header->sure[i], place->at[place->which & 1].next[i]);
        place->file[0] = 0;
        free_decoder_place(s, n);
    }
}

void collector_state_restore_ids(struct collector_state *s)
{
    struct state_header *header = &s->file->header;

    memcpy(header->next, header->sure, sizeof header->next);
    for (uint32_t n = 0; n < header->places; n++) {
        const struct decode_place *place = map_decoder_place(s, n);
        const uint64_t *next;
        if (!place || !place->file[0])
            continue;
        next = place->at[place->which & 1].next;
        for (int i = 0; i < IDS_OF_WORDS; i++)
            header->next[i] = MAX(header->next[i], next[i]);
    }
}

static bool contains_address(const void *mapped, size_t bytes, const void *address)
{
    return (uintptr_t)address - (uintptr_t)mapped < bytes;
}

bool collector_state_contains_address(const struct collector_state *s, const void *address)
{
    if (contains_address(s->file, sizeof *s->file, address))
        return true;
    list_each(block, &s->blocks)
        if (contains_address(*block, BLOCK_BYTES, address))
            return true;
    return false;
}

void collector_state_close(struct collector_state *s)
{
    list_each(block, &s->blocks)
        munmap(*block, BLOCK_BYTES);
    list_free(&s->blocks);
    list_free(&s->unused);
    if (s->file)
        munmap(s->file, sizeof *s->file);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct collector_state){.fd = -1};
}

/* collector/counts.c -- frames that are counted instead of getting rows. See collector/counts.h.
 *
 * Runs in: the collector. */
#include "collector/counts.h"

#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>

/* Keep the compiler from moving stores across this call. The CPU needs no barrier: when a process
 * is killed, all stores before some instruction are done, and none after it. */
static inline void prevent_store_reordering(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* ---- make and map blocks of the file ---- */

static off_t offset_of_block(size_t index)
{
    return (off_t)(index * COUNT_BLOCK_BYTES);
}

/* Map the next block of the file, which must be long enough for it. Returns NULL on failure. */
static struct count_block *map_next_block(struct counts *c)
{
    void *mapped = mmap(NULL, COUNT_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd,
                        offset_of_block(c->blocks.count));
    struct count_block **block;

    if (mapped == MAP_FAILED)
        return NULL;
    block = list_add(&c->blocks);
    if (block)
        *block = mapped;
    else
        munmap(mapped, COUNT_BLOCK_BYTES);
    return block ? mapped : NULL;
}

/* Append a block of KIND to the file. Returns NULL without room. */
static struct count_block *append_block(struct counts *c, enum count_block_kind kind)
{
    const off_t at = offset_of_block(c->blocks.count);
    struct count_block *block = NULL;

    if (c->blocks.count >= COUNT_BLOCKS)
        c->full = true;
    if (c->full)
        return NULL;
    if (c->fd < 0)
        c->fd =
            session_open_file(c->session->place[SESSION_MAIN], "counts", O_RDWR | O_CREAT | O_EXCL);
    /* reserve memory here, where a full filesystem gives an error; a later store would raise
     * SIGBUS */
    if (c->fd >= 0 && !posix_fallocate(c->fd, at, COUNT_BLOCK_BYTES))
        block = map_next_block(c);
    if (!block)
        c->full = true;
    else
        block->kind = kind;
    return block;
}

/* ---- find and make cells: the sums for one code object, phase and outcome ---- */

struct count_cell *counts_get_cell(struct counts *c, uint32_t cell)
{
    const uint32_t block = c->cell_blocks.at[cell / COUNT_BLOCK_CELLS];

    return &c->blocks.at[block]->cells[cell % COUNT_BLOCK_CELLS];
}

/* Add cell number CELL to the list of CODE_ID's cells. Returns false without memory. */
static bool add_cell_to_list(struct counts *c, uint32_t cell, uint32_t code_id)
{
    uint32_t *first = list_reach(&c->first, code_id);
    uint32_t *next = list_reach(&c->next, cell);
    bool *changed = list_reach(&c->changed, cell);

    bool has_room = first && next && changed;

    if (!has_room)
        return false;
    *next = *first;
    *first = cell + 1;
    *changed = true;
    return true;
}

/* Return a block with room for one more cell. Makes a block if no block has room. Returns NULL if
 * that fails. */
static struct count_block *find_block_with_room(struct counts *c)
{
    struct count_block *block;
    uint32_t *index;

    if (c->cells < c->cell_blocks.count * COUNT_BLOCK_CELLS)
        return c->blocks.at[c->cell_blocks.at[c->cells / COUNT_BLOCK_CELLS]];
    block = append_block(c, COUNT_CELLS);
    index = block ? list_add(&c->cell_blocks) : NULL;
    if (!index)
        return NULL;
    *index = (uint32_t)c->blocks.count - 1;
    return block;
}

uint32_t counts_find_or_make_cell(struct counts *c, uint32_t code_id, unsigned phase,
                                  unsigned outcome)
{
    struct count_block *block;
    struct count_cell *made;
    uint32_t at = 0;

    if (code_id < c->first.count)
        at = c->first.at[code_id];
    while (at) {
        const struct count_cell *cell = counts_get_cell(c, at - 1);
        if (cell->phase == phase && cell->outcome == outcome)
            return at - 1;
        at = c->next.at[at - 1];
    }
    block = find_block_with_room(c);
    if (!block || !add_cell_to_list(c, c->cells, code_id))
        return COUNT_NONE;
    made = &block->cells[block->used];
    *made = (struct count_cell){0};
    made->code_id = code_id;
    made->phase = (uint8_t)phase;
    made->outcome = (uint8_t)outcome;
    prevent_store_reordering();
    block->used++;
    c->cells++;
    return c->cells - 1;
}

int64_t counts_total_frames(struct counts *c)
{
    int64_t frames = 0;

    for (uint32_t i = 0; i < c->cells; i++)
        frames += counts_get_cell(c, i)->frames;
    return frames;
}

void counts_set_code_place(struct counts *c, uint32_t code_id, int64_t place)
{
    uint8_t *at = place ? list_reach(&c->places, code_id) : NULL;

    if (at)
        *at = (uint8_t)place;
}

/* ---- find the journal of a ring, and add its changes to cells ---- */

struct count_ring *counts_find_journal(struct counts *c, const char *file, uint32_t ring, bool make)
{
    struct count_block *block;

    list_each(b, &c->blocks) {
        struct count_ring *r = &(*b)->ring;
        bool is_ring = (*b)->kind == COUNT_RING && r->ring == ring;
        if (is_ring && !strncmp(r->file, file, sizeof r->file))
            return r;
    }
    block = make ? append_block(c, COUNT_RING) : NULL;
    if (!block)
        return NULL;
    block->ring.ring = ring;
    prevent_store_reordering();
    snprintf(block->ring.file, sizeof block->ring.file, "%s", file);
    return &block->ring;
}

/* Add a frame that has ended, described by CHANGE, to its CELL. */
static void add_ended_frame_to_cell(struct count_cell *cell, const struct count_change *change)
{
    const int64_t start_ns = (int64_t)change->start_ns;
    const int64_t duration_ns = (int64_t)change->duration_ns;
    const bool is_first = !cell->frames;

    if (is_first || start_ns < cell->first_ns)
        cell->first_ns = start_ns;
    if (start_ns > cell->last_ns)
        cell->last_ns = start_ns;
    if (duration_ns > cell->max_ns)
        cell->max_ns = duration_ns;
    cell->frames++;
    cell->calls += change->is_call;
    cell->raised += change->raised;
    cell->self_ns += (int64_t)change->self_ns;
    if (change->outermost)
        cell->total_ns += duration_ns;
}

static bool is_cell_number(const struct counts *c, uint32_t cell)
{
    return cell < c->cells;
}

void counts_add_journal(struct counts *c, struct count_ring *ring, uint32_t count)
{
    if (ring->undoing == ring->applied + 1 && ring->applied < COUNT_CHANGES) {
        /* an earlier collector was killed while it added this change to cells, so restore the cells
         * first */
        const struct count_change *change = &ring->journal[ring->applied];
        if (is_cell_number(c, change->cell))
            *counts_get_cell(c, change->cell) = ring->undo[0];
        if (is_cell_number(c, change->caller))
            *counts_get_cell(c, change->caller) = ring->undo[1];
    }
    for (uint32_t i = ring->applied; i < MIN(count, COUNT_CHANGES); i++) {
        const struct count_change *change = &ring->journal[i];
        struct count_cell *own =
            is_cell_number(c, change->cell) ? counts_get_cell(c, change->cell) : NULL;
        struct count_cell *caller =
            is_cell_number(c, change->caller) ? counts_get_cell(c, change->caller) : NULL;
        if (own)
            ring->undo[0] = *own;
        if (caller)
            ring->undo[1] = *caller;
        prevent_store_reordering();
        ring->undoing = i + 1;
        prevent_store_reordering();
        if (own) {
            add_ended_frame_to_cell(own, change);
            c->changed.at[change->cell] = true;
        }
        if (caller) {
            caller->inner_ns += change->inner_ns;
            c->changed.at[change->caller] = true;
        }
        prevent_store_reordering();
        ring->applied = i + 1;
    }
}

void counts_reset_journal(struct count_ring *ring)
{
    prevent_store_reordering();
    ring->undoing = 0;
    prevent_store_reordering();
    ring->applied = 0;
}

/* ---- open and close the file of counts ---- */

/* Make the lists of cells from the file of a killed collector. Cells get the same numbers as
 * before, because the blocks are in the order in which they were made. */
static void list_existing_cells(struct counts *c)
{
    for (size_t i = 0; i < c->blocks.count; i++) {
        const struct count_block *block = c->blocks.at[i];
        const uint32_t used = MIN(block->used, COUNT_BLOCK_CELLS);
        uint32_t *index;
        if (block->kind != COUNT_CELLS || !(index = list_add(&c->cell_blocks)))
            continue;
        *index = (uint32_t)i;
        for (uint32_t k = 0; k < used; k++) {
            /* limit the id, because memory is allocated for all ids up to it, and the program could
             * have changed this file */
            const uint32_t code_id = MIN(block->cells[k].code_id, RING_ID_MASK);
            if (add_cell_to_list(c, c->cells, code_id))
                c->cells++;
        }
    }
}

void counts_open(struct counts *c, const struct session *session, bool resume)
{
    struct stat status = {0};

    *c = (struct counts){.session = session, .fd = -1};
    if (!resume)
        return;
    c->fd = session_open_file(session->place[SESSION_MAIN], "counts", O_RDWR);
    if (c->fd < 0 || fstat(c->fd, &status))
        return;
    for (off_t end = COUNT_BLOCK_BYTES; end <= status.st_size; end += COUNT_BLOCK_BYTES)
        if (!map_next_block(c))
            break;
    list_existing_cells(c);
}

bool counts_contains_address(const struct counts *c, const void *address)
{
    list_each(block, &c->blocks)
        if ((uintptr_t)address - (uintptr_t)*block < COUNT_BLOCK_BYTES)
            return true;
    return false;
}

void counts_close(struct counts *c)
{
    list_each(block, &c->blocks)
        munmap(*block, COUNT_BLOCK_BYTES);
    list_free(&c->blocks);
    list_free(&c->cell_blocks);
    list_free(&c->first);
    list_free(&c->next);
    list_free(&c->changed);
    list_free(&c->places);
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

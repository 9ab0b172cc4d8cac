/* collector/counts.h -- frames that are counted instead of getting rows.
 *
 * Runs in: the collector.
 *
 * With SESSION_FOLDED, frames of library code inside torch's compiles and imports have no rows.
 * They are added up by code object, phase and outcome. The sums for one such key are a cell, which
 * becomes a row of the table `frame_count`.
 *
 *     ENTER    push: the frame is open              struct count_open
 *     EXIT     pop: its figures join the journal    struct count_change
 *     the journal is full, or the ring ends: add each change to its cell
 *
 * A collector that is killed at any instruction must lose nothing and count nothing twice. So open
 * frames, journals and cells lie in shared memory, in the file `counts` of the session:
 *
 *     open[which]   the open frames as of a ring's last commit (collector/decode.h). The next
 *                   commit writes the other copy
 *     journal       changes below decode_at.changes are committed; later ones are made again
 *     applied       number of changes that were added to their cells. `undo` has copies of the
 *                   cells from before the change that is being applied
 *     cells         only appended; a cell is found by its key
 *
 * The file is made when the first frame is counted, and grows by blocks. Without room for a cell or
 * an open frame, a frame is not counted, and gets a row as usual (begin_frame_without_row() of
 * decode.c). */
#ifndef DYNTRACE_COUNTS_H
#define DYNTRACE_COUNTS_H

#include "collector/session.h"
#include "lib/list.h"
#include "vocabulary.h"

enum {
    COUNT_DEPTH = 2048,   /* the most open frames without a row, for each ring */
    COUNT_CHANGES = 1024, /* the most changes in the journal of a ring */
    COUNT_BLOCK_BYTES = 256 << 10,
    COUNT_BLOCKS = 128, /* the most blocks: 32 MB */
};
#define COUNT_NONE UINT32_MAX

/* An open frame that is counted and has no row. After a kill, the next collector rebuilds the
 * decoder's stack from these. */
struct count_open {
    /* frame_id of the innermost frame around this one that has a row; 0 if there is none */
    uint64_t parent_id;
    uint64_t start_ns;
    uint64_t child_ns; /* time that this frame's callees have taken so far */
    uint32_t code_id;
    uint32_t ordinal;
    uint32_t cell;
    uint32_t begun; /* how many rows the thread had begun before this frame */
    uint8_t phase;
    uint8_t inside;
    uint8_t outcome;
    bool is_call;
};

/* What the end of one frame adds to the sums. The changes of a ring are its journal. */
struct count_change {
    uint64_t start_ns;
    uint64_t duration_ns;
    uint64_t self_ns;
    uint32_t cell; /* number of the cell that counts the frame; COUNT_NONE if the frame has a row */
    /* Number of the cell whose inner_ns changes, or COUNT_NONE. It is a cell of the code object of
     * the innermost frame around this frame that has a row. */
    uint32_t caller;
    int64_t inner_ns; /* added to inner_ns of the cell `caller` */
    bool is_call;
    bool raised;
    bool outermost; /* no other frame of this frame's code object is open on its thread */
};

/* A cell: the sums for one code object, phase and outcome. Each member is a column of table
 * frame_count. */
struct count_cell {
    uint32_t code_id;
    uint8_t phase, outcome;
    int64_t frames;
    int64_t calls;
    int64_t total_ns;
    int64_t self_ns;
    int64_t raised;
    int64_t max_ns;
    int64_t first_ns;
    int64_t last_ns;
    /* For callers of counted frames. Counted frames have no rows, so by the rows alone their time
     * would be their caller's own time. Readers subtract inner_ns from the caller's own time: the
     * time of counted frames that frames with rows of this code object called. The time of frames
     * with rows inside the counted frames is not included. */
    int64_t inner_ns;
};

/* A block of the file, for one ring: the changes of counts that may have to be undone, and the open
 * frames that are counted without rows. */
struct count_ring {
    char file[64]; /* name of the ring's process file, as in decode_place.file */
    uint32_t ring;
    /* while the journal is added to cells: number of changes that have been added */
    uint32_t applied;
    uint32_t undoing; /* 1 + index of the change that `undo` can take back; 0 if there is none */
    /* copies of the two cells that this change adds to, `cell` and `caller`, from before the
     * change */
    struct count_cell undo[2];
    struct count_open open[2][COUNT_DEPTH];
    struct count_change journal[COUNT_CHANGES];
};

struct count_block {
    enum count_block_kind { COUNT_UNUSED, COUNT_CELLS, COUNT_RING } kind;
    uint32_t used; /* cells in it */
    union {
        struct count_cell cells[(COUNT_BLOCK_BYTES - 8) / sizeof(struct count_cell)];
        struct count_ring ring;
    };
};
enum { COUNT_BLOCK_CELLS = sizeof((struct count_block *)0)->cells / sizeof(struct count_cell) };
_Static_assert(sizeof(struct count_block) <= COUNT_BLOCK_BYTES, "a ring's part fits in a block");

struct counts {
    const struct session *session; /* borrowed */
    /* owned: descriptor of the file; -1 before the first frame is counted */
    int fd;
    LIST(struct count_block *) blocks; /* shared */
    LIST(uint32_t) cell_blocks;        /* owned: indexes of blocks with cells */
    uint32_t cells;                    /* number of cells in all blocks */
    /* owned, by code_id: 1 + the number of the code object's newest cell; 0 if it has no cell */
    LIST(uint32_t) first;
    /* owned, by cell number: 1 + the number of the next older cell of the same code object; 0 if
     * there is none */
    LIST(uint32_t) next;
    /* owned, by cell number: has the cell changed since it was written to the trace? */
    LIST(bool) changed;
    LIST(uint8_t) places; /* owned, by code_id: an enum code_place of facts.h */
    bool full;            /* the file has no room for further blocks */
};

/* Start to count in SESSION. With RESUME, read the file of a killed collector. */
void counts_open(struct counts *c, const struct session *session, bool resume);
void counts_close(struct counts *c);
/* Store PLACE, an enum code_place, for code object CODE_ID. It tells library code from user
 * code. */
void counts_set_code_place(struct counts *c, uint32_t code_id, int64_t place);
/* Return the number of the cell for CODE_ID, PHASE and OUTCOME. Makes the cell if there is none.
 * Returns COUNT_NONE without room. */
uint32_t counts_find_or_make_cell(struct counts *c, uint32_t code_id, unsigned phase,
                                  unsigned outcome);
/* Return the cell with the number CELL. */
struct count_cell *counts_get_cell(struct counts *c, uint32_t cell);
/* Return the journal of ring RING of process file FILE. MAKE: make it if there is none. Returns
 * NULL if there is none, or no room to make it. */
struct count_ring *counts_find_journal(struct counts *c, const char *file, uint32_t ring,
                                       bool make);
/* Add the first COUNT changes of RING's journal to their cells, each exactly once, even if a killed
 * collector has already added some of them. The caller then commits an empty journal, and calls
 * counts_reset_journal(). */
void counts_add_journal(struct counts *c, struct count_ring *ring, uint32_t count);
void counts_reset_journal(struct count_ring *ring);
/* Does ADDRESS lie in the mapped file of counts? */
bool counts_contains_address(const struct counts *c, const void *address);
/* Return how many frames were counted. */
int64_t counts_total_frames(struct counts *c);

/* Is CODE_ID library code, whose frames are counted inside torch's compiles and imports? */
static inline bool counts_is_library_code(const struct counts *c, uint32_t code_id)
{
    return code_id < c->places.count && c->places.at[code_id] & CODE_OF_LIBRARY;
}

/* Is CODE_ID the body of a module of torch? */
static inline bool counts_is_torch_module_body(const struct counts *c, uint32_t code_id)
{
    return code_id < c->places.count && c->places.at[code_id] & CODE_OF_IMPORT;
}

#endif

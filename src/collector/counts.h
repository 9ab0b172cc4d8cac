/* collector/counts.h -- frames that are counted and have no rows.
 *
 * Runs in: the collector.
 *
 * With SESSION_FOLDED the library's frames inside torch's compiles and imports are added up by code
 * object, phase and outcome. A sum is a cell: a row of the table `frame_count`.
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
 *     journal       changes below decode_at.changes are certain; more are written again
 *     applied       changes that are in their cells. `undo` is the cell before the change that is
 *                   being applied
 *     cells         only appended; a cell is found by its key
 *
 * The file is made when the first frame is counted, and grows by blocks. Without room for a cell or
 * an open frame, counts_enter() fails, and the frame gets a row as usual. */
#ifndef DYNTRACE_COUNTS_H
#define DYNTRACE_COUNTS_H

#include "collector/session.h"
#include "lib/list.h"
#include "vocabulary.h"

enum {
    COUNT_DEPTH = 2048,   /* most open counted frames of a ring */
    COUNT_CHANGES = 1024, /* most changes in a ring's journal */
    COUNT_BLOCK_BYTES = 256 << 10,
    COUNT_BLOCKS = 128, /* most blocks: 32 MB */
};
#define COUNT_NONE UINT32_MAX

/* A frame that is open and counted, as the next collector needs it. */
struct count_open {
    uint64_t parent_id; /* the innermost frame around it that has a row; 0 if there is none */
    uint64_t start_ns;
    uint64_t child_ns; /* time that its callees have taken so far */
    uint32_t code_id;
    uint32_t ordinal;
    uint32_t cell;
    uint32_t begun; /* number of rows that its thread had begun before this frame */
    uint8_t phase;
    uint8_t inside;
    uint8_t outcome;
    bool is_call;
};

/* What a frame that ends adds to cells. */
struct count_change {
    uint64_t start_ns;
    uint64_t duration_ns;
    uint64_t self_ns;
    uint32_t cell; /* the cell of the frame's key, if it is counted; or COUNT_NONE */
    /* the innermost frame around this one that has a row: a cell of its code object, if its
     * inner_ns changes; else COUNT_NONE */
    uint32_t caller;
    int64_t inner_ns; /* what is added to inner_ns of the cell `caller` */
    bool is_call;
    bool raised;
    bool outermost; /* no other frame of its code object is open on its thread */
};

struct count_cell {
    uint32_t code_id;
    uint8_t phase, outcome;
    int64_t frames; /* columns of table frame_count, like the others */
    int64_t calls;
    int64_t total_ns;
    int64_t self_ns;
    int64_t raised;
    int64_t max_ns;
    int64_t first_ns;
    int64_t last_ns;
    /* By the rows alone, the time of a counted frame would be its caller's own time. So this is the
     * time to subtract: that of counted frames which frames of this code object with rows have
     * called, without the time of frames with rows inside the counted ones. */
    int64_t inner_ns;
};

/* A ring's part of the file. */
struct count_ring {
    char file[64]; /* the ring's process file, like decode_place.file */
    uint32_t ring;
    /* of the journal that is being applied: number of changes that have been added to their
     * cells */
    uint32_t applied;
    uint32_t undoing; /* 1 + index of the change that `undo` is about; 0 if there is none */
    /* copies of that change's two cells, its own and the caller's, from before the change */
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
    const struct session *session;     /* borrowed */
    int fd;                            /* the file; owned; -1 before the first frame is counted */
    LIST(struct count_block *) blocks; /* shared */
    LIST(uint32_t) cell_blocks;        /* owned: indexes of blocks with cells */
    uint32_t cells;                    /* number of cells */
    /* owned, by code_id: the number + 1 of the code object's newest cell; 0 if it has none */
    LIST(uint32_t) first;
    /* owned, by cell: the number + 1 of the next older cell of the same code object; 0 if there is
     * none */
    LIST(uint32_t) next;
    /* owned, by cell: the cell has changed since it was written to the trace */
    LIST(bool) changed;
    LIST(uint8_t) places; /* owned, by code_id: enum code_place */
    bool full;            /* no further cell or block can be made */
};

/* Start to count in SESSION. With RESUME read what a killed collector has left. */
void counts_open(struct counts *c, const struct session *session, bool resume);
void counts_close(struct counts *c);
/* Note where the code of CODE_ID lies: an enum code_place. */
void counts_place(struct counts *c, uint32_t code_id, int64_t place);
/* Return the cell of a key, which is made if there is none; COUNT_NONE without room. */
uint32_t counts_cell(struct counts *c, uint32_t code_id, unsigned phase, unsigned outcome);
/* Return cell number CELL. */
struct count_cell *counts_at(struct counts *c, uint32_t cell);
/* Return the part of ring RING of process file FILE. If there is none, make it with MAKE, or return
 * NULL; NULL without room, too. */
struct count_ring *counts_ring(struct counts *c, const char *file, uint32_t ring, bool make);
/* Add the first COUNT changes of RING's journal to their cells, each once, whatever an earlier
 * collector has added. The caller then commits that the journal is empty, and calls
 * counts_applied(). */
void counts_apply(struct counts *c, struct count_ring *ring, uint32_t count);
void counts_applied(struct count_ring *ring);
/* Does ADDRESS lie in the mapped file? */
bool counts_hold(const struct counts *c, const void *address);
/* Return how many frames were counted. */
int64_t counts_frames(struct counts *c);

/* Is code of CODE_ID the library's, so that its frames are counted inside torch's work? */
static inline bool counts_is_library(const struct counts *c, uint32_t code_id)
{
    return code_id < c->places.count && c->places.at[code_id] & CODE_OF_LIBRARY;
}

/* Is CODE_ID the body of a module of torch? */
static inline bool counts_is_import(const struct counts *c, uint32_t code_id)
{
    return code_id < c->places.count && c->places.at[code_id] & CODE_OF_IMPORT;
}

#endif

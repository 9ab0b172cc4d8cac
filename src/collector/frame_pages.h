/* collector/frame_pages.h -- the `frame` table's pages, written by us.
 *
 * SQLite's own INSERT takes ten times as long as a frame may take. So the leaf pages of `frame` are
 * made here, as SQLite's file format describes them (https://www.sqlite.org/fileformat2.html,
 * "B-tree Pages"), and appended to a database file that SQLite has made with the whole schema:
 *
 *     page 1 .. first-1        SQLite's: the schema, every table empty
 *     first + 0, first + 1 ..  leaf pages, one thread's frames each, or those of
 *                              collector/lookup_pages.h
 *     after them               interior pages and the list of free pages, made at the end
 *     (page 262145, at 1 GiB, is SQLite's lock page and stays unused)
 *
 * A frame's id says where it lies: id = page * 128 + slot + 1. So its end can be written long after
 * its page went to disk, and nothing needs an index.
 *
 *     w = frame_pages_open()
 *     for each thread, as often as it needs room:
 *         page = frame_pages_take(w)
 *         collect rows until frame_row_bytes says the page is full
 *         frame_pages_put(w, page, rows, n)
 *     when an older frame ends:   frame_pages_end(w, id, ...)
 *     at the end:
 *         frame_pages_finish(w)
 *         of a frame that never ended, SQL makes end_ns and exit NULL (collector/trace_files.c):
 *         they are 0
 *
 * Full pages wait in a window of shared memory before they are written in large pieces; the window
 * outlives a collector that is killed. */
#ifndef DYNTRACE_FRAME_PAGES_H
#define DYNTRACE_FRAME_PAGES_H

#include "lib/list.h"
#include "lib/page_bytes.h"

enum {
    FRAME_PAGE_BYTES = 4096,
    FRAME_PAGE_ROWS = 128, /* ids per page; a page rarely holds that many */
    FRAME_PAGE_ROOM = FRAME_PAGE_BYTES - 8,
    FRAME_COLUMNS = 10,
    FRAME_OPEN_BYTES = 10,     /* reserved in a cell for outcome, end and exit */
    FRAME_WINDOW_PAGES = 1024, /* 4 MB */
    FRAME_LOCK_PAGE = (1 << 30) / FRAME_PAGE_BYTES + 1,
    FRAME_PAGE_OTHER = 255, /* in `cells`: a page of another table */
};

struct frame_row {
    uint64_t parent_id; /* 0: none */
    uint64_t start_ns, end_ns;
    uint32_t code_id, thread_id;
    uint8_t kind, outcome, exit; /* enum values of schemas/trace.sql */
    bool ended;
    uint8_t open_bytes, bytes; /* of its cell: while open, and as it is now, without */
    uint8_t entry_bytes;       /* those of cache_entry_id */
    uint32_t cache_entry_id;   /* 0: none */
};

/* The trees that are made here: `frame`, those of collector/lookup_pages.h, and their indexes. */
enum page_tree_of {
    TREE_FRAME,
    TREE_LOOKUP,
    TREE_CHECK,
    TREE_LOOKUP_CODE,
    TREE_CHECK_LOOKUP,
    PAGE_TREES
};

/* A leaf of a tree and what is largest in it; of an index: what stands between it and the next. */
struct page_leaf {
    uint64_t page; /* as taken; while the tree is made, in the file */
    uint64_t key, id;
};
typedef LIST(struct page_leaf) page_leaves;

/* Shared: survives the collector. Pages below `written` are in the file. */
struct frame_window {
    uint32_t next_page; /* the first page nobody has */
    uint32_t written;
    uint32_t first;            /* file page of leaf page 0 */
    uint32_t root[PAGE_TREES]; /* file pages of the roots */
    uint32_t finished;         /* the trees are made: the pages are SQLite's from here on */
    uint32_t holds[FRAME_WINDOW_PAGES]; /* page + 1 in that slot of the window, or 0 */
    _Alignas(4096) uint8_t page[FRAME_WINDOW_PAGES][FRAME_PAGE_BYTES];
};

struct frame_pages {
    int fd;                         /* the database file; owned */
    int error;                      /* errno of the write that failed, 0 = none */
    struct frame_window *window;    /* borrowed, shared */
    LIST(uint8_t) cells;            /* owned: rows in each page, 0 = none or not yet */
    page_leaves leaves[PAGE_TREES]; /* owned: of all but `frame`, in their order */
    bool indexed;                   /* the leaves of both indexes are whole */
    uint32_t limit;                 /* pages from here on are not stored (disk full) */
    uint64_t lost;                  /* rows dropped since */
    uint32_t leaves_of_frames;      /* once it is finished */
};

/* FD becomes the writer's. With RESUME the window and file hold a killed collector's pages. 0, or
 * -1 with errno. */
int frame_pages_open(struct frame_pages *w, int fd, struct frame_window *window, bool resume);
void frame_pages_close(struct frame_pages *w);

uint32_t frame_pages_take(struct frame_pages *w);

static inline uint64_t frame_id(uint32_t page, uint32_t slot)
{
    return (uint64_t)page * FRAME_PAGE_ROWS + slot + 1;
}

/* Bytes of the cell of a row that begins so and is open: FRAME_OPEN_BYTES of them are for what its
 * end brings. */
static inline unsigned frame_row_bytes(uint64_t id, uint64_t parent_id, uint32_t thread_id,
                                       uint32_t code_id, unsigned kind, uint64_t start_ns)
{
    return 1 + (frame_bits(id) + 6) / 7 + 1 + FRAME_COLUMNS + frame_bytes_of(thread_id) +
           frame_bytes_of(parent_id) + frame_bytes_of(code_id) + (kind > 1) +
           frame_bytes_of(start_ns) + FRAME_OPEN_BYTES;
}

/* End a row; returns how many bytes its cell is shorter than while open. Doing it
 * twice is as good as once (collector/decode.h). */
static inline unsigned frame_row_end(struct frame_row *row, uint64_t end_ns, unsigned exit)
{
    unsigned spared = FRAME_OPEN_BYTES - frame_bytes_of(end_ns) - (row->outcome > 1) - (exit > 1);

    row->end_ns = end_ns;
    row->exit = (uint8_t)exit;
    row->ended = true;
    row->bytes = (uint8_t)(row->open_bytes - spared);
    return spared;
}

/* Where the record of row SLOT of a leaf page begins, within the page; its *ID. NULL: there is no
 * such row. */
uint8_t *page_row(uint8_t *page, unsigned slot, uint64_t *id);

/* Store PAGE of another table, MADE, of COUNT rows. False: there is no room, and they are lost. */
bool frame_pages_store(struct frame_pages *w, uint32_t page, const uint8_t *made, uint32_t count);
/* The stored page PAGE, in the window or else in COPY; NULL: there is none. */
uint8_t *frame_pages_at(struct frame_pages *w, uint64_t page, uint8_t copy[FRAME_PAGE_BYTES]);
/* Write the page again, which frame_pages_at() gave as DATA. */
void frame_pages_rewrite(struct frame_pages *w, uint32_t page, const uint8_t *data);

/* Store a page. Rows that have not ended get room to do so later. */
void frame_pages_put(struct frame_pages *w, uint32_t page, const struct frame_row *rows,
                     uint32_t count);

/* What a stored row says of its beginning; false: no such row. */
bool frame_pages_read(struct frame_pages *w, uint64_t id, struct frame_row *row);
/* The last row of THREAD_ID that is stored, in another page than EXCEPT; 0: none. Looks at all
 * pages. */
uint64_t frame_pages_last(struct frame_pages *w, uint32_t thread_id, uint32_t except);
/* Write into a row that was stored before it ended how the call was decided; and its end. */
void frame_pages_decided(struct frame_pages *w, uint64_t id, unsigned outcome);
void frame_pages_end(struct frame_pages *w, uint64_t id, uint64_t end_ns, unsigned outcome,
                     unsigned exit);
/* Take the row away if it is its page's last. */
void frame_pages_drop(struct frame_pages *w, uint64_t id);

/* Write what is left and the interior pages; indexes are left empty unless they are whole
 * (w->indexed). Returns the number of rows, or -1 with w->error. The file is a valid database
 * afterwards, and a collector that resumes changes no page of it. */
int64_t frame_pages_finish(struct frame_pages *w);

#endif

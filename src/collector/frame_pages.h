/* collector/frame_pages.h -- writes the pages of table `frame` without SQLite.
 *
 * SQLite's own INSERT takes ten times as long as a frame may take. So the leaf pages of `frame` are
 * made here, as SQLite's file format describes them (https://www.sqlite.org/fileformat2.html,
 * "B-tree Pages"), and appended to a database file that SQLite has made with the whole schema:
 *
 *     page 1 .. first-1        written by SQLite: the schema, every table empty
 *     first + 0, first + 1 ..  leaf pages; each holds frames of one thread, or rows of
 *                              collector/lookup_pages.h
 *     after the leaf pages     interior pages and the list of free pages, made at the end
 *     (page 262145, at 1 GiB, is SQLite's lock page and stays unused)
 *
 * A frame's id tells where its row lies: id = page * 128 + slot + 1. So the frame's end can be
 * written long after its page went to disk, and no index is needed.
 *
 *     w = frame_pages_open()
 *     for each thread, as often as the thread needs a page:
 *         page = frame_pages_take(w)
 *         collect rows until frame_row_bytes says the page is full
 *         frame_pages_put(w, page, rows, n)
 *     when a frame ends whose page is stored:   frame_pages_end(w, id, ...)
 *     at the end:
 *         frame_pages_finish(w)
 *         end_ns and exit of a frame that never ended are 0; SQL makes them NULL
 *         (collector/trace_files.c)
 *
 * Full pages wait in a window of shared memory before they are written in large pieces. The window
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
    FRAME_OPEN_BYTES = 10,     /* reserved in the cell of an open frame for outcome, end and exit */
    FRAME_WINDOW_PAGES = 1024, /* 4 MB */
    FRAME_LOCK_PAGE = (1 << 30) / FRAME_PAGE_BYTES + 1,
    FRAME_PAGE_OTHER = 255, /* value in frame_pages.cells for a page of another table */
};

struct frame_row {
    uint64_t parent_id; /* 0 if there is none */
    uint64_t start_ns, end_ns;
    uint32_t code_id, thread_id;
    uint8_t kind, outcome, exit; /* enum values of schemas/trace.sql */
    bool ended;
    /* size of the row's cell without cache_entry_id: while the frame is open, and now */
    uint8_t open_bytes, bytes;
    uint8_t entry_bytes;     /* size of cache_entry_id in the cell */
    uint32_t cache_entry_id; /* 0 if there is none */
};

/* The b-trees made here: of `frame`, of the tables in collector/lookup_pages.h, and of their
 * indexes. */
enum page_tree_of {
    TREE_FRAME,
    TREE_LOOKUP,
    TREE_CHECK,
    TREE_LOOKUP_CODE,
    TREE_CHECK_LOOKUP,
    PAGE_TREES
};

/* A leaf page and its largest key. In an index, the key that separates the leaf from the next
 * one. */
struct page_leaf {
    /* page number from frame_pages_take(); levels_make() uses numbers of file pages */
    uint64_t page;
    uint64_t key, id;
};
typedef LIST(struct page_leaf) page_leaves;

/* Shared memory that outlives a killed collector. Pages below `written` are in the file. */
struct frame_window {
    uint32_t next_page; /* number of the first page that was not taken yet */
    uint32_t written;
    uint32_t first;            /* file page of leaf page 0 */
    uint32_t root[PAGE_TREES]; /* file pages of the roots */
    /* With `run --keep`: pages below this number were dropped, and every frame that ended after
     * from_ns is still stored. Both are 0 otherwise. */
    uint32_t low;
    uint64_t from_ns;
    /* frame_pages_finish() has returned: no page may be changed any more */
    uint32_t finished;
    /* page number + 1 of the page in each slot; 0 if the slot is empty */
    uint32_t holds[FRAME_WINDOW_PAGES];
    _Alignas(4096) uint8_t page[FRAME_WINDOW_PAGES][FRAME_PAGE_BYTES];
};

/* With `run --keep`: where a page lies, and what its rows tell about the time. */
struct page_place {
    uint64_t last_start_ns; /* its last row's; 0 while the page is not stored */
    uint64_t last_end_ns;   /* the latest end of a row that has ended */
    uint32_t slot;          /* which page of the file behind `first` */
    uint32_t open;          /* rows that have not ended */
};

/* With `run --keep`: only the newest pages are stored, and the places of older ones are used again.
 *
 *     low                                  next_page
 *      | page | page | page | ... | page |
 *
 * A row that outlasts its page is handed on: it ended after from_ns, or is still open. So every
 * frame of which some part lies behind from_ns is stored, here or by `row`. */
struct page_window {
    bool on;
    uint64_t most;       /* pages to store at most; UINT64_MAX: any number */
    uint64_t before_ns;  /* pages whose frames all began earlier may be dropped */
    uint32_t slots;      /* pages of the file that were given to pages so far */
    uint32_t slots_most; /* the disk is full: there are no more slots than these */
    int shrunk;          /* errno of the write after which pages were dropped early; or 0 */
    bool is_dropping, has_ballast;
    bool is_alone;                  /* on opening: of a killed collector only the file is left */
    LIST(uint32_t) free;            /* owned: slots of pages that were dropped */
    LIST(struct page_place) places; /* owned, by page - base */
    /* Some pages are about to be dropped: store old pages that are being filled. CONTEXT is
     * borrowed. */
    void (*begin)(void *context);
    /* Take a row that outlasts its page. */
    void (*row)(void *context, uint64_t id, const struct frame_row *row);
    /* All those rows were handed on. */
    void (*rows_end)(void *context);
    void *context;
};

struct frame_pages {
    int fd;                      /* the database file; owned */
    int error;                   /* errno of the first failed write; 0 if none failed */
    struct frame_window *window; /* borrowed, shared */
    /* owned, by page - base: number of rows in each page; 0 if the page is empty or not stored
     * yet */
    LIST(uint8_t) cells;
    uint32_t base; /* the lists know nothing of pages below; 0 without a window of pages */
    struct page_window keep;
    page_leaves leaves[PAGE_TREES]; /* owned: leaves of every tree but `frame`, in key order */
    bool indexed;                   /* the leaves of both indexes are complete */
    /* pages from this number on are not stored, because the disk is full */
    uint32_t limit;
    uint64_t lost;             /* number of rows that were not stored for want of room */
    uint32_t leaves_of_frames; /* number of leaves of `frame`; set by frame_pages_finish() */
};

/* Start writing to FD, which the writer then owns. With RESUME, WINDOW and the file hold the pages
 * of a killed collector. Returns 0, or -1 with errno. */
int frame_pages_open(struct frame_pages *w, int fd, struct frame_window *window, bool resume);
/* The same, but store the newest pages only. KEEP has the functions, `most` and `before_ns`. */
int frame_pages_open_window(struct frame_pages *w, int fd, struct frame_window *window, bool resume,
                            const struct page_window *keep);
/* Drop pages that are too many or too old. */
void frame_pages_trim(struct frame_pages *w);
/* Drop the oldest PAGES for the sake of other tables: half of their places stay in the file, free,
 * and the disk gets the other half back. */
void frame_pages_give_back(struct frame_pages *w, uint64_t pages);
/* Copies the pages of a recording that goes on. */
struct page_copy {
    int from,
        to; /* the file of frames, and the copy, which has the first pages already; borrowed */
    const struct frame_window *then; /* its window at the moment of the copy */
    const struct frame_window *now;  /* as it is, shared */
    bool window;                     /* pages are used again */
    bool *found;                     /* owned, by page - then->low: it was copied */
};
/* Return how many slots there are to copy. */
uint32_t page_copy_slots(const struct page_copy *copy);
/* Copy COUNT slots from FIRST on. Returns false with errno. */
bool page_copy_some(struct page_copy *copy, uint32_t first, uint32_t count);
/* Return the number behind the last page that was dropped before it could be copied. All later
 * pages were copied. */
uint32_t page_copy_low(const struct page_copy *copy);
/* Is PAGE, which is being filled, so old that it should be stored before it is dropped? */
bool frame_pages_is_old(const struct frame_pages *w, uint32_t page);
/* Was the page of frame ID dropped? */
static inline bool frame_pages_dropped(const struct frame_pages *w, uint64_t id)
{
    return (id - 1) / FRAME_PAGE_ROWS < w->window->low;
}
void frame_pages_close(struct frame_pages *w);

uint32_t frame_pages_take(struct frame_pages *w);

static inline uint64_t frame_id(uint32_t page, uint32_t slot)
{
    return (uint64_t)page * FRAME_PAGE_ROWS + slot + 1;
}

/* Return the size of the cell of an open row. FRAME_OPEN_BYTES of the size are reserved for
 * outcome, end and exit. */
static inline unsigned frame_row_bytes(uint64_t id, uint64_t parent_id, uint32_t thread_id,
                                       uint32_t code_id, unsigned kind, uint64_t start_ns)
{
    return 1 + (frame_bits(id) + 6) / 7 + 1 + FRAME_COLUMNS + frame_bytes_of(thread_id) +
           frame_bytes_of(parent_id) + frame_bytes_of(code_id) + (kind > 1) +
           frame_bytes_of(start_ns) + FRAME_OPEN_BYTES;
}

/* Set the end of a row. Returns how many bytes shorter its cell becomes. Calling this function
 * twice has the same result as calling it once (collector/decode.h). */
static inline unsigned frame_row_end(struct frame_row *row, uint64_t end_ns, unsigned exit)
{
    unsigned spared = FRAME_OPEN_BYTES - frame_bytes_of(end_ns) - (row->outcome > 1) - (exit > 1);

    row->end_ns = end_ns;
    row->exit = (uint8_t)exit;
    row->ended = true;
    row->bytes = (uint8_t)(row->open_bytes - spared);
    return spared;
}

/* Find row SLOT of leaf PAGE. Returns a pointer to its record and sets *ID, or returns NULL if
 * there is no such row. */
uint8_t *page_row(uint8_t *page, unsigned slot, uint64_t *id);

/* Store MADE, a page of another table with COUNT rows, as PAGE. Returns false if there is no room:
 * the rows are lost. */
bool frame_pages_store(struct frame_pages *w, uint32_t page, const uint8_t *made, uint32_t count);
/* Return the stored page PAGE, either in the window or read into COPY. Returns NULL if it is not
 * stored. */
uint8_t *frame_pages_at(struct frame_pages *w, uint64_t page, uint8_t copy[FRAME_PAGE_BYTES]);
/* Write PAGE back after its bytes were changed. DATA is what frame_pages_at() returned. */
void frame_pages_rewrite(struct frame_pages *w, uint32_t page, const uint8_t *data);

/* Store ROWS as PAGE. Rows of open frames get room for their end. */
void frame_pages_put(struct frame_pages *w, uint32_t page, const struct frame_row *rows,
                     uint32_t count);

/* Read the columns of a stored row that are known at its start. Returns false if there is no such
 * row. */
bool frame_pages_read(struct frame_pages *w, uint64_t id, struct frame_row *row);
/* Return the id of THREAD_ID's last stored row, not counting page EXCEPT; 0 if there is none. Reads
 * all pages. */
uint64_t frame_pages_last(struct frame_pages *w, uint32_t thread_id, uint32_t except);
/* Change a row that was stored while its frame was open: frame_pages_decided() sets its outcome,
 * frame_pages_end() sets outcome, end and exit. */
void frame_pages_decided(struct frame_pages *w, uint64_t id, unsigned outcome);
void frame_pages_end(struct frame_pages *w, uint64_t id, uint64_t end_ns, unsigned outcome,
                     unsigned exit);
/* Delete the row if it is the last row of its page. */
void frame_pages_drop(struct frame_pages *w, uint64_t id);

/* Write the pages in the window to the file. */
void frame_pages_flush(struct frame_pages *w);
/* Write the pages in the window, then the interior pages. Indexes stay empty unless w->indexed.
 * Returns the number of frames, or -1 with w->error. Afterwards the file is a valid database, and a
 * collector that resumes changes no page of the file. */
int64_t frame_pages_finish(struct frame_pages *w);

#endif

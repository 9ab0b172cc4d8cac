/* collector/frame_pages.h -- writes the pages of table `frame` without SQLite.
 *
 * A SQLite INSERT takes ten times as long as we may spend on one frame. So the leaf pages of
 * `frame` are made here, as SQLite's file format describes them
 * (https://www.sqlite.org/fileformat2.html, "B-tree Pages"), and appended to a database file that
 * SQLite has made with the whole schema:
 *
 *     page 1 .. first-1        written by SQLite: the schema, every table empty
 *     first + 0, first + 1 ..  leaf pages; each holds frames of one thread, or rows of
 *                              collector/lookup_pages.h
 *     after the leaf pages     interior pages and the list of free pages, made at the end
 *     (page 262145, at 1 GiB, is SQLite's lock page and stays unused)
 *
 * A frame's id tells where its row is: id = page * 192 + slot + 1. So the frame's end can be
 * written long after its page went to disk, and no index is needed.
 *
 *     w = frame_pages_open()
 *     for each thread, as often as the thread needs a page:
 *         page = frame_pages_reserve_page(w)
 *         collect rows until frame_bytes_of_open_cell says the page is full
 *         when the frame of a row ends: frame_write_filled_cell() of collector/frame_cell.h
 *         frame_pages_store_filled_page(w, page, fill, n, ...)
 *     when a frame ends whose page is stored:   frame_pages_set_frame_end(w, id, ...)
 *     at the end:
 *         frame_pages_finish_file(w)
 *         took_ns of a frame that never ended is -1; SQL makes it and exit NULL
 *         (collector/trace_files.c)
 *
 * Full pages wait in a window of shared memory before they are written in large pieces. The window
 * outlives a collector that is killed. */
#ifndef DYNTRACE_FRAME_PAGES_H
#define DYNTRACE_FRAME_PAGES_H

#include "collector/frame_cell.h"
#include "lib/list.h"

enum {
    FRAME_WINDOW_PAGES = 1024, /* 4 MB */
    FRAME_LOCK_PAGE = (1 << 30) / FRAME_PAGE_BYTES + 1,
    FRAME_PAGE_OTHER = 255, /* in frame_pages.cells: the page belongs to another table */
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

/* A child of an interior page: a leaf, or in make_interior_levels() an interior page. */
struct page_leaf {
    /* number from frame_pages_reserve_page(); in make_interior_levels() the number of a file
     * page */
    uint64_t page;
    /* key: in a table, the page's largest rowid; in an index, the key between this page and the
     * next one. id: in a leaf of a table, its number of rows; in an index, the rowid that belongs
     * to `key` */
    uint64_t key, id;
};
typedef LIST(struct page_leaf) page_leaves;

/* The newest pages, in shared memory that outlives a killed collector. Pages below `written` are in
 * the file. */
struct frame_window {
    uint32_t next_page; /* number of the first page that no thread has taken yet */
    uint32_t written;
    uint32_t first;            /* number of the file page that is leaf page 0 */
    uint32_t root[PAGE_TREES]; /* number of the file page that is each tree's root */
    /* With `run --keep`: pages below `low` were dropped, and every frame that ended after from_ns
     * is still stored. Without it both are 0. */
    uint32_t low;
    uint64_t from_ns;
    /* set at the end of frame_pages_finish_file(): from here on no page may change */
    uint32_t finished;
    /* which page is in each slot: its number + 1; 0 if the slot is empty */
    uint32_t holds[FRAME_WINDOW_PAGES];
    _Alignas(4096) uint8_t page[FRAME_WINDOW_PAGES][FRAME_PAGE_BYTES];
};

/* With `run --keep`: where a page is in the file, and the times of its rows. */
struct page_place {
    /* when the page's last row began; 0 while the page is not stored */
    uint64_t last_start_ns;
    uint64_t last_end_ns; /* the latest end among the page's rows */
    /* number of the page's place in the file, counted from file page `first` */
    uint32_t slot;
    uint32_t open; /* number of the page's rows that have not ended */
};

/* With `run --keep`: only the newest pages are stored, and the places of older pages are reused.
 *
 *     low                                  next_page
 *      | page | page | page | ... | page |
 *
 * When a page is dropped, those of its rows whose frames are open, or ended after from_ns, are
 * passed to row(). So every frame that was open at from_ns or later stays stored: in a page, or by
 * row().
 *
 * Pages are numbered in the order in which threads are decoded. When the collector lags behind, a
 * busy thread may have a whole ring of events that are not decoded yet. The page of a slow thread
 * may then already have frames that began after those events. When that page was dropped, from_ns
 * would move to the end of these early frames, past most stored frames of the busy thread. So the
 * rows of such a page, if they are few, are passed to row(), and from_ns moves less. */
struct page_window {
    bool on;
    uint64_t most;      /* pages to store at most; UINT64_MAX: any number */
    uint64_t before_ns; /* a page may be dropped if all of its frames began before this time */
    uint32_t slots;     /* number of places in the file that have been used so far */
    /* the most places that the file may have: no limit until the disk is full */
    uint32_t slots_most;
    /* errno of the failed write that made us drop pages early; 0 if there was none */
    int shrunk;
    bool is_dropping, has_ballast;
    uint32_t early_rows; /* how many rows of early frames may still be passed to row() */
    /* when opening: a killed collector has left only the file, no shared memory */
    bool is_alone;
    LIST(uint32_t) free; /* owned: slots of pages that were dropped */
    /* owned, by page number - base: where each page is, and its times */
    LIST(struct page_place) places;
    /* Called before pages are dropped, to store old pages that are being filled. CONTEXT is
     * borrowed. */
    void (*begin)(void *context);
    /* Called for each row of a page that is being dropped whose frame is open, or ended recently.
     * It must store the row elsewhere. */
    void (*row)(void *context, uint64_t id, const struct frame_row *row);
    /* Called when row() has been called for all rows of the dropped pages. */
    void (*rows_end)(void *context);
    void *context;
};

struct frame_pages {
    int fd;                      /* the database file; owned */
    int error;                   /* errno of the first failed write; 0 if none failed */
    struct frame_window *window; /* borrowed, shared */
    /* owned, by page number - base: number of rows in each page; 0 if the page is not stored yet */
    LIST(uint8_t) cells;
    uint32_t base; /* number of the first page that the lists have; 0 without --keep */
    struct page_window keep;
    page_leaves leaves[PAGE_TREES]; /* owned: leaves of every tree but `frame`, in key order */
    bool indexed;                   /* the leaves of both indexes are complete */
    /* pages from this number on are not stored, because the disk is full */
    uint32_t limit;
    uint64_t lost;             /* number of rows that were not stored, because the disk was full */
    uint32_t leaves_of_frames; /* number of leaves of `frame`; set by frame_pages_finish_file() */
};

/* Start writing pages to FD, which the writer then owns. RESUME: WINDOW and the file have the pages
 * of a killed collector. Returns 0, or -1 with errno. */
int frame_pages_open(struct frame_pages *w, int fd, struct frame_window *window, bool resume);
/* Like frame_pages_open(), but store only the newest pages. The caller sets `most`, `before_ns` and
 * the functions of KEEP. */
int frame_pages_open_window(struct frame_pages *w, int fd, struct frame_window *window, bool resume,
                            const struct page_window *keep);
/* Drop the pages that are too old or too many. */
void frame_pages_drop_old_pages(struct frame_pages *w);
/* Drop the PAGES oldest pages to make room for other tables. Half of their places stay in the file
 * for new pages. The disk space of the other half is freed. */
void frame_pages_drop_oldest(struct frame_pages *w, uint64_t pages);
/* Copies the pages for a snapshot while the recording goes on. */
struct page_copy {
    int from,
        /* borrowed: from, the file of frames; to, the copy, which has the first pages already */
        to;
    const struct frame_window *then; /* a copy of the window, from the moment of the snapshot */
    const struct frame_window *now;  /* the window that the collector changes, in shared memory */
    /* the recording has --keep, so places in the file are reused */
    bool window;
    /* owned, by page number - then->low: has the page been copied? */
    bool *found;
};
/* Return how many places of the file must be copied. */
uint32_t page_copy_count_slots(const struct page_copy *copy);
/* Copy the pages in COUNT places, from place FIRST on. Returns false with errno. */
bool page_copy_slot_range(struct page_copy *copy, uint32_t first, uint32_t count);
/* Return the number of a page such that this page and all later ones were copied. Earlier pages may
 * have been dropped before they could be copied. */
uint32_t page_copy_first_kept_page(const struct page_copy *copy);
/* Is PAGE old although it is not full yet? Then it should be stored soon, or it will be too old to
 * be kept. */
bool frame_pages_is_page_old(const struct frame_pages *w, uint32_t page);
/* Was the page of frame ID dropped? */
static inline bool frame_pages_is_dropped(const struct frame_pages *w, uint64_t id)
{
    return (id - 1) / FRAME_PAGE_ROWS < w->window->low;
}
void frame_pages_close(struct frame_pages *w);

uint32_t frame_pages_reserve_page(struct frame_pages *w);

/* Find the row in SLOT of the leaf page PAGE. Sets *ID and returns the row's record. Returns NULL
 * if there is no such row. */
uint8_t *page_find_row_cell(uint8_t *page, unsigned slot, uint64_t *id);

/* Store MADE, which has COUNT rows of another table, as page PAGE. Returns false if there is no
 * room, so that the rows are lost. */
bool frame_pages_store_made_page(struct frame_pages *w, uint32_t page, const uint8_t *made,
                                 uint32_t count);
/* Return page PAGE: its address in the window, or COPY, into which it was read from the file.
 * Returns NULL if the page is not stored. */
uint8_t *frame_pages_get_page(struct frame_pages *w, uint64_t page, uint8_t copy[FRAME_PAGE_BYTES]);
/* Write page PAGE back after a change. DATA is what frame_pages_get_page() returned. */
void frame_pages_rewrite_page(struct frame_pages *w, uint32_t page, const uint8_t *data);

/* Store the first COUNT rows of FILL as page PAGE. The cells made so far take AT bytes. Rows of
 * open frames get cells with room for their ends. */
void frame_pages_store_filled_page(struct frame_pages *w, uint32_t page, struct frame_fill *fill,
                                   uint32_t count, uint32_t at);

/* Read the stored row of frame ID. Returns false if there is no such row. */
bool frame_pages_read_row(struct frame_pages *w, uint64_t id, struct frame_row *row);
/* Return the id of the last stored row of thread THREAD_ID, or 0 if it has none. Rows in page
 * EXCEPT do not count. Reads all pages. */
uint64_t frame_pages_find_last_row(struct frame_pages *w, uint32_t thread_id, uint32_t except);
/* Change a row that was stored while its frame was open: frame_pages_set_outcome() sets its
 * outcome, frame_pages_set_frame_end() sets outcome, end and exit. */
void frame_pages_set_outcome(struct frame_pages *w, uint64_t id, unsigned outcome);
void frame_pages_set_frame_end(struct frame_pages *w, uint64_t id, uint64_t end_ns,
                               unsigned outcome, unsigned exit);
/* Delete the row of frame ID if it is the last row of its page. */
void frame_pages_remove_row(struct frame_pages *w, uint64_t id);

/* Write all pages in the window to the file. */
void frame_pages_write_window(struct frame_pages *w);
/* Write the pages in the window, then the interior pages. Indexes stay empty unless `indexed` is
 * set. Returns the number of frames, or -1 with `error`. Afterwards the file is a valid database,
 * and no later collector changes a page of it. */
int64_t frame_pages_finish_file(struct frame_pages *w);

#endif

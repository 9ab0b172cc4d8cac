/* collector/lookup_pages.h -- writes the pages of `lookup`, of `guard_check`, and of their
 * indexes.
 *
 * Like collector/frame_pages.h, this file writes pages without SQLite because INSERT is too slow.
 * Both share one file and one numbering of pages. Unlike frames, these rows are complete when they
 * are written, and ids of a table are consecutive over all threads:
 *
 *     lookup_pages_add(l, PAGES_CHECK, (int64_t[]){lookup_id, ...}, "fail")      the row's id is
 *     l->next[PAGES_CHECK]
 *
 * A row is appended to the unfinished page of its table, in shared memory (struct lookup_window). A
 * decoder commits the ids that were given (decode_at.next). The next collector cuts off the rows
 * that a killed collector wrote without a commit, and decodes their words again.
 *
 * Leaves of the two indexes are made as rows come. In the index of guard_check by lookup, keys come
 * in order. In the index of lookup by code, each code object has leaves of its own. At the end the
 * leaves are only put one behind the other. They are not in shared memory: after a kill SQLite
 * makes the indexes (collector/trace_files.h). */
#ifndef DYNTRACE_LOOKUP_PAGES_H
#define DYNTRACE_LOOKUP_PAGES_H

#include "collector/frame_pages.h"

enum lookup_table { PAGES_LOOKUP, PAGES_CHECK, LOOKUP_TABLES };
/* CHECK_WORD: the column of guard_check that is a text */
enum { LOOKUP_COLUMNS = 10, CHECK_COLUMNS = 8, CHECK_WORD = 4 };

/* Shared memory that outlives a killed collector. */
struct lookup_window {
    /* the unfinished page of each table; a valid leaf page at any moment */
    uint8_t page[LOOKUP_TABLES][FRAME_PAGE_BYTES];
};

/* Keys of an index: those of one code object, or all. `keys` holds the first two keys, then, if
 * there are leaves, the keys after those leaves. */
struct index_run {
    page_leaves keys, leaves; /* owned */
    /* bits that any of its keys or ids has set: they give the widest number */
    uint64_t key_bits, id_bits;
};

struct lookup_pages {
    struct frame_pages *pages;     /* borrowed */
    struct lookup_window *window;  /* borrowed, shared */
    uint64_t *next;                /* borrowed, in shared memory: the next id of each table */
    uint64_t shown[LOOKUP_TABLES]; /* readers of the live trace see the rows with smaller ids */
    /* owned, indexed by code_id: keys of the index of lookup by code */
    LIST(struct index_run) codes;
    struct index_run checks; /* owned: keys of the index of guard_check by lookup */
};

/* Start writing. With RESUME, WINDOW and the file hold rows of a killed collector: keep those with
 * ids below NEXT, and cut off the others. */
void lookup_pages_open(struct lookup_pages *l, struct frame_pages *pages,
                       struct lookup_window *window, uint64_t *next, bool resume);
void lookup_pages_close(struct lookup_pages *l);

/* Write the next row of TABLE. VALUES are its columns after the id; ROW_NONE is NULL. WORD is the
 * text column of a check. */
void lookup_pages_add(struct lookup_pages *l, enum lookup_table table, const int64_t *values,
                      const char *word);

/* Call ROW with the rows of TABLE that are not shown yet, at most those of one page. VALUES[0] is
 * the id; WORD is the text column, and its element of VALUES is the length. */
void lookup_pages_show(struct lookup_pages *l, enum lookup_table table,
                       void (*row)(void *context, enum lookup_table table, int64_t *values,
                                   const char *word),
                       void *context);

/* Store all unfinished pages, so that the file has all rows. */
void lookup_pages_store(struct lookup_pages *l);
/* Store all unfinished pages and index leaves, before frame_pages_finish(). */
void lookup_pages_finish(struct lookup_pages *l);

#endif

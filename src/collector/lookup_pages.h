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
 * A row is appended to the unfinished page of its table, in shared memory (struct lookup_window).
 * When a decoder commits, it stores the next id of each table (decode_at.next). The next collector
 * cuts off rows with larger ids, which a killed collector wrote after the last commit, and decodes
 * their words again.
 *
 * Leaves of the two indexes are made as rows come. In the index of guard_check by lookup, keys come
 * in order. In the index of lookup by code, each code object has separate leaves. At the end all
 * leaves are only put one behind the other. They are not in shared memory: after a kill SQLite
 * makes the indexes (collector/trace_files.h). */
#ifndef DYNTRACE_LOOKUP_PAGES_H
#define DYNTRACE_LOOKUP_PAGES_H

#include "collector/frame_pages.h"

enum lookup_table { PAGES_LOOKUP, PAGES_CHECK, LOOKUP_TABLES };
/* CHECK_WORD: index of the only text column of guard_check */
enum { LOOKUP_COLUMNS = 10, CHECK_COLUMNS = 8, CHECK_WORD = 4 };

/* Pages that are not full yet, in shared memory that outlives a killed collector. */
struct lookup_window {
    /* the unfinished page of each table; a valid leaf page at any moment */
    uint8_t page[LOOKUP_TABLES][FRAME_PAGE_BYTES];
};

/* Keys of an index: all of them, or those of one code object. `keys` has the first two keys, and
 * then those that are in no leaf yet. */
struct index_run {
    page_leaves keys, leaves; /* owned */
    /* all bits that are set in any key or any id, which tell the width of the widest number */
    uint64_t key_bits, id_bits;
};

struct lookup_pages {
    struct frame_pages *pages;    /* borrowed */
    struct lookup_window *window; /* borrowed, in shared memory: pages that are not full */
    uint64_t *next;               /* borrowed, in shared memory: the next row id of each table */
    /* rows below these ids are in trace.db, for readers of the running recording */
    uint64_t shown[LOOKUP_TABLES];
    /* owned, by code_id: keys of the index of lookups by code object */
    LIST(struct index_run) codes;
    struct index_run checks; /* owned: keys of the index of guard checks by lookup */
};

/* Start writing. RESUME: WINDOW and the file have rows of a killed collector; those with ids below
 * NEXT are kept, the others are removed. */
void lookup_pages_open(struct lookup_pages *l, struct frame_pages *pages,
                       struct lookup_window *window, uint64_t *next, bool resume);
void lookup_pages_close(struct lookup_pages *l);

/* Write the next row of TABLE. VALUES are its columns after the id; ROW_NONE is NULL. WORD is the
 * text column of a guard check. */
void lookup_pages_add(struct lookup_pages *l, enum lookup_table table, const int64_t *values,
                      const char *word);

/* Call ROW with rows of TABLE that readers of the running recording cannot see yet: at most the
 * rows of one page. VALUES[0] is the row's id. WORD is the text column; its element of VALUES is
 * the text's length. */
void lookup_pages_visit_new_rows(struct lookup_pages *l, enum lookup_table table,
                                 void (*row)(void *context, enum lookup_table table,
                                             int64_t *values, const char *word),
                                 void *context);

/* Store the unfinished pages, so that the file has all rows. */
void lookup_pages_store_unfinished_pages(struct lookup_pages *l);
/* Store the unfinished pages and the remaining index leaves. frame_pages_finish_file() comes
 * next. */
void lookup_pages_finish(struct lookup_pages *l);

#endif

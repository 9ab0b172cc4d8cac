/* collector/lookup_pages.h -- the pages of `lookup`, of `guard_check`, and of their indexes,
 * written by us.
 *
 * As those of `frame` (collector/frame_pages.h), whose file and numbering they share, and for the
 * same reason. But these rows are whole when they are written, and their ids follow each other,
 * whichever thread they are of:
 *
 *     lookup_pages_add(l, PAGES_CHECK, (int64_t[]){lookup_id, ...}, "fail")      the row's id is
 *     l->next[PAGES_CHECK]
 *
 * A row goes into the page of its table that is being filled, in shared memory (struct
 * lookup_window). A decoder commits the ids that are given (decode_at.next): what a killed
 * collector had written beyond is cut off by the next, which takes those words again.
 *
 * The leaves of the two indexes are made as rows come: that of guard_check by lookup is in the
 * order of both ids, and for lookup by code each code object has leaves of its own. At the end they
 * only need to be put one behind the other. They are not in shared memory: after a kill SQLite
 * makes the indexes (collector/trace_files.h). */
#ifndef DYNTRACE_LOOKUP_PAGES_H
#define DYNTRACE_LOOKUP_PAGES_H

#include "collector/frame_pages.h"

enum lookup_table { PAGES_LOOKUP, PAGES_CHECK, LOOKUP_TABLES };
enum { LOOKUP_COLUMNS = 10, CHECK_COLUMNS = 8, CHECK_WORD = 4 /* the one that is a text */ };

/* Shared: survives the collector. */
struct lookup_window {
    /* being filled: leaf pages that are whole at any moment */
    uint8_t page[LOOKUP_TABLES][FRAME_PAGE_BYTES];
};

/* What an index has to say of one code object, or all of it: the first two keys, then, where there
 * are leaves, those after them. */
struct index_run {
    page_leaves keys, leaves;   /* owned */
    uint64_t key_bits, id_bits; /* that any key has */
};

struct lookup_pages {
    struct frame_pages *pages;     /* borrowed */
    struct lookup_window *window;  /* borrowed, shared */
    uint64_t *next;                /* borrowed, shared: ids, by table */
    uint64_t shown[LOOKUP_TABLES]; /* ids below are where readers see them */
    LIST(struct index_run) codes;  /* owned, by code_id */
    struct index_run checks;       /* owned */
};

/* With RESUME the window and file hold a killed collector's rows: those below NEXT are believed. */
void lookup_pages_open(struct lookup_pages *l, struct frame_pages *pages,
                       struct lookup_window *window, uint64_t *next, bool resume);
void lookup_pages_close(struct lookup_pages *l);

/* Write the next row of TABLE: VALUES are its columns after the id, where ROW_NONE is NULL; WORD is
 * the text of a check. */
void lookup_pages_add(struct lookup_pages *l, enum lookup_table table, const int64_t *values,
                      const char *word);

/* Call ROW with those of TABLE that are not shown yet, of one page. VALUES begin with the id; of
 * the text its bytes, and WORD. */
void lookup_pages_show(struct lookup_pages *l, enum lookup_table table,
                       void (*row)(void *context, enum lookup_table table, int64_t *values,
                                   const char *word),
                       void *context);

/* All rows and leaves are on their way to the file, for frame_pages_finish(). */
void lookup_pages_finish(struct lookup_pages *l);

#endif

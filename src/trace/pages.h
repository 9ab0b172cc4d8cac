/* trace/pages.h -- reads an SQLite file page by page, because SQLite refuses damaged files.
 *
 * The format is described in https://sqlite.org/fileformat2.html: a header, B-trees of pages, and
 * perhaps a write-ahead log with newer pages. The file may be hostile: every offset is checked, and
 * no page is visited twice. */
#ifndef DYNTRACE_PAGES_H
#define DYNTRACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/list.h"

/* An SQLite file, and what its header tells. */
struct pages {
    /* owned: the file and its write-ahead log; `log` is -1 if there is no log */
    int file, log;
    int64_t bytes;       /* the length of the file in bytes */
    uint32_t page_bytes; /* bytes of a page; 0 if the file's header is not SQLite's */
    /* number of pages that the database should have, by its header or its log */
    uint32_t said;
    uint32_t there; /* number of complete pages that the file has */
    bool is_sqlite; /* the file begins with the 16 bytes of every SQLite file */
    bool is_sound;  /* the fields of the file's header have possible values */
    bool log_sound; /* the fields of the log's header have possible values */
    bool log_torn;  /* the log was cut or overwritten after its last complete commit */
    int64_t log_bytes;
    int64_t log_used;  /* bytes of the log up to the end of the last complete commit */
    struct map logged; /* maps a page number to the place of the page's newest version in the log */
    struct map visited;
    LIST(uint32_t) row_pages; /* page numbers of the pages that hold the row read last */
};

/* One B-tree: a table or an index. */
struct tree {
    /* page numbers of pages that cannot be read or are damaged, or that another tree has as well */
    LIST(uint32_t) missing;
    int64_t pages, rows; /* number of pages and of rows of the tree that can be read */
};

/* Called for each readable row. PAYLOAD is a record in SQLite's format, borrowed until the call
 * returns. During the call `row_pages` lists the pages of the row. */
typedef void pages_row(void *context, int64_t rowid, const unsigned char *payload, size_t length);

/* Open PATH. Returns false and sets errno if the file cannot be opened. */
bool pages_open(struct pages *pages, const char *path);
void pages_close(struct pages *pages);

/* Visit the tree that begins at page ROOT, and pass each of its rows to ROW, which may be NULL. The
 * caller frees TREE->missing. */
void pages_visit_tree(struct pages *pages, uint32_t root, struct tree *tree, pages_row *row,
                      void *context);

/* Can HEAD be the first bytes of a page of a tree? One in a hundred random texts passes this
 * test. */
bool pages_is_header_of_database(const unsigned char head[8]);

/* The value of one column of a row. */
struct record_value {
    enum { RECORD_NULL, RECORD_INTEGER, RECORD_REAL, RECORD_TEXT, RECORD_BLOB } type;
    int64_t integer;
    double real;
    const char *text; /* the text or blob, borrowed from the record */
    size_t length;
};

/* Read the first MOST values of the record PAYLOAD. Returns the number of values, or -1 if PAYLOAD
 * is not a record. */
int record_read_values(const unsigned char *payload, size_t length, struct record_value *values,
                       int most);

#endif

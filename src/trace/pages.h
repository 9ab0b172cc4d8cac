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

/* A file and its header's fields. */
struct pages {
    int file, log;       /* owned; log -1: no log */
    int64_t bytes;       /* how long the file is */
    uint32_t page_bytes; /* 0: not in the header */
    uint32_t said;       /* pages by the header */
    uint32_t there;      /* complete pages in the file */
    bool is_sqlite;      /* it begins as SQLite's files do */
    bool is_sound;       /* the header makes sense */
    bool log_sound;      /* so does the log's */
    bool log_torn;       /* the log was cut or overwritten after its used part */
    int64_t log_bytes;
    int64_t log_used;  /* frames up to the end of the last complete commit */
    struct map logged; /* page -> place of its last version in the log */
    struct map visited;
    LIST(uint32_t) row_pages; /* the pages that hold the row which was read last */
};

/* One B-tree: a table or an index. */
struct tree {
    LIST(uint32_t) missing; /* pages that are missing, damaged, or also in another tree */
    int64_t pages, rows;    /* readable ones */
};

/* Called for each readable row. PAYLOAD, a record in SQLite's format, is borrowed until the call
 * returns. Meanwhile the row's pages are in `row_pages`. */
typedef void pages_row(void *context, int64_t rowid, const unsigned char *payload, size_t length);

/* Open PATH. False: it cannot be read, and errno says why. */
bool pages_open(struct pages *pages, const char *path);
void pages_close(struct pages *pages);

/* Visit the tree that begins at page ROOT, and hand each of its rows to ROW, which may be NULL.
 * The caller frees TREE->missing. */
void pages_tree(struct pages *pages, uint32_t root, struct tree *tree, pages_row *row,
                void *context);

/* Are these the first bytes of a page of a tree? Others may be, by chance, one in a hundred. */
bool pages_is_head(const unsigned char head[8]);

/* A value of a record. */
struct record_value {
    enum { RECORD_NULL, RECORD_INTEGER, RECORD_REAL, RECORD_TEXT, RECORD_BLOB } type;
    int64_t integer;
    double real;
    const char *text; /* borrowed from the record; of a blob as well */
    size_t length;
};

/* Read the first MOST values of the record PAYLOAD. Returns the number of values; -1: not a record.
 */
int record_values(const unsigned char *payload, size_t length, struct record_value *values,
                  int most);

#endif

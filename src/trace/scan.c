/* trace/scan.c -- reads tables that hold only numbers from the pages of their file. See
 * trace/scan.h. */
#include "trace/scan.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/page_bytes.h"
#include "lib/say.h"
#include "trace/db.h"
#include "trace/trust.h"

enum {
    PAGE_BYTES = 4096,
    /* bytes that one read() takes; the pages of a table are mostly adjacent */
    PART_BYTES = 64 * PAGE_BYTES,
    COLUMNS_MOST = 16,
    DEPTH_MOST = 20,
};

struct scan {
    struct db *db; /* borrowed, like all pointers of this struct except `part` */
    sqlite3_file *file;
    bool (*row)(void *context, const int64_t *values, unsigned nulls);
    void *context;
    unsigned columns; /* number of the table's columns, of which the first is the key */
    bool of_frames;   /* the table is `frame`, whose records have a form of their own */
    int64_t next;     /* the function `row` has got all rows with lower keys than this */
    bool enough;      /* the function `row` has returned false, so the scan stops */
    uint8_t *part;    /* owned: the part of the file that was read last */
    int64_t part_at;  /* offset of `part` in the file, or -1 if nothing has been read yet */
};

/* Return the page NUMBER, which is valid until the next read. Returns NULL if the page cannot be
 * read. Bytes after the end of the file are 0. */
static const uint8_t *get_page(struct scan *scan, uint64_t number)
{
    int64_t at = ((int64_t)number - 1) * PAGE_BYTES;
    int64_t part_at = at - at % PART_BYTES;
    int status = SQLITE_OK;

    if (at < 0) {
        scan->part_at = -1;
        return NULL;
    }
    if (part_at != scan->part_at)
        status = scan->file->pMethods->xRead(scan->file, scan->part, PART_BYTES, part_at);
    if (status != SQLITE_OK && status != SQLITE_IOERR_SHORT_READ) {
        scan->part_at = -1;
        return NULL;
    }
    scan->part_at = part_at;
    return scan->part + (at - part_at);
}

/* Read an integer of SQLite's serial type TYPE at *P into VALUE, and move *P behind it. Returns
 * false if the value is not an integer, or if it does not end before END. */
static bool scan_number(unsigned type, const uint8_t **p, const uint8_t *end, int64_t *value)
{
    unsigned bytes;

    if (type > 9 || type == 7)
        return false;
    bytes = frame_bytes_of_type[type];
    if (bytes > end - *p)
        return false;
    *value = bytes ? get_signed_big_endian(*p, bytes) : type == 9;
    *p += bytes;
    return true;
}

/* Read the columns of a record, except the key, into VALUES. The record is between TYPES and END.
 * Returns false if it has an unusual form, for example a type that takes more than one byte, or a
 * value that is not an integer. */
static bool scan_record(const struct scan *scan, const uint8_t *types, const uint8_t *end,
                        int64_t *values, unsigned *nulls)
{
    const unsigned header = 1 + scan->columns;
    const uint8_t *p = types + header;

    if (types[0] != header || types[1] || p > end)
        return false;
    for (unsigned i = 1; i < scan->columns; i++) {
        if (!scan_number(types[1 + i], &p, end, &values[i]))
            return false;
        if (!types[1 + i])
            *nulls |= 1u << i;
    }
    return p == end;
}

/* Like scan_record(), for a record of the table `frame` (schemas/trace.sql). Such a record may lack
 * its last columns. But if SQL has written it, it has all columns, and NULL as its key. */
static bool scan_frame_record(const uint8_t *types, const uint8_t *end, int64_t *values,
                              unsigned *nulls)
{
    enum { KEY = FRAME_COLUMNS, STORED };
    int64_t found[STORED] = {0};
    const unsigned header = types[0];
    const unsigned columns = header - 1;
    const uint8_t *p = types + header;
    struct row_frame *row = (struct row_frame *)values;
    const bool is_ours = columns >= FRAME_COLUMNS_LEAST && columns <= STORED;
    /* a bit for each column that is NULL. Of the columns that are not in the record, these two are
     * NULL, and all others are 0 */
    unsigned missing = (1u << COLUMN_ENTRY) | (1u << KEY);

    if (!is_ours || p > end)
        return false;
    for (unsigned i = 0; i < columns; i++) {
        if (!scan_number(types[1 + i], &p, end, &found[i]))
            return false;
        if (types[1 + i])
            missing &= ~(1u << i);
        else
            missing |= 1u << i;
    }
    if (p != end || !(missing >> KEY & 1))
        return false;
    row->thread_id = (uint64_t)found[COLUMN_THREAD];
    row->parent_id = (uint64_t)found[COLUMN_PARENT];
    row->code_id = (uint64_t)found[COLUMN_CODE];
    row->kind = found[COLUMN_KIND];
    row->outcome = found[COLUMN_OUTCOME];
    row->start_ns = found[COLUMN_START];
    row->end_ns = found[COLUMN_TOOK];
    row->cache_entry_id = (uint64_t)found[COLUMN_ENTRY];
    row->exit = found[COLUMN_EXIT];
#define NULL_IF(column, stored) \
    ((missing >> (stored)&1) << offsetof(struct row_frame, column) / sizeof(int64_t))
    *nulls = NULL_IF(thread_id, COLUMN_THREAD) | NULL_IF(code_id, COLUMN_CODE) |
             NULL_IF(kind, COLUMN_KIND) | NULL_IF(outcome, COLUMN_OUTCOME) |
             NULL_IF(start_ns, COLUMN_START) | NULL_IF(cache_entry_id, COLUMN_ENTRY) |
             NULL_IF(exit, COLUMN_EXIT);
    if (missing >> COLUMN_TOOK & 1 || missing >> COLUMN_START & 1) {
        row->end_ns = 0;
        *nulls |= NULL_IF(end_ns, missing >> COLUMN_TOOK & 1 ? COLUMN_TOOK : COLUMN_START);
    } else if (__builtin_add_overflow(row->start_ns, row->end_ns, &row->end_ns)) {
        /* the sum overflows: SQLite would compute another number here, so SQLite
         * must read this row */
        return false;
    }
    if (missing >> COLUMN_PARENT & 1)
        *nulls |= NULL_IF(parent_id, COLUMN_PARENT);
    else if (__builtin_sub_overflow(values[0], found[COLUMN_PARENT], (int64_t *)&row->parent_id))
        return false;
#undef NULL_IF
    return true;
}

/* Read the row in the cell that begins at P, and pass it to the function `row`. Returns false if
 * `row` stops the scan, or if the cell has an unusual form, for example a length that takes more
 * than one byte. */
static bool scan_row(struct scan *scan, const uint8_t *p, const uint8_t *end)
{
    int64_t values[COLUMNS_MOST];
    int64_t id = 0;
    unsigned length = *p++;
    unsigned nulls = 0;
    bool is_long, is_usual;

    for (int i = 0; *p & 0x80 && i < 7; i++)
        id = (id | (*p++ & 0x7f)) << 7;
    id |= *p;
    is_long = (length | *p++) & 0x80;
    if (is_long || length > end - p || !length)
        return false;
    if (id < scan->next)
        return false;
    values[0] = id;
    if (scan->of_frames)
        is_usual = scan_frame_record(p, p + length, values, &nulls);
    else
        is_usual = scan_record(scan, p, p + length, values, &nulls);
    if (!is_usual)
        return false;
    scan->next = id + 1;
    scan->enough = !scan->row(scan->context, values, nulls);
    return !scan->enough;
}

/* Pass the rows of a leaf page to the function `row`. Returns false if a page or row has an unusual
 * form, or if `row` stops the scan. */
static bool scan_leaf_page(struct scan *scan, const uint8_t *page, unsigned cells)
{
    if (!cells || 8 + 2 * cells > PAGE_BYTES)
        return false;
    for (unsigned cell = 0; cell < cells; cell++) {
        unsigned at = get_two_bytes(page + 8 + 2 * cell);
        if (at > PAGE_BYTES - 10)
            return false;
        if (!scan_row(scan, page + at, page + PAGE_BYTES))
            return false;
    }
    return true;
}

/* Pass all rows of the tree below page NUMBER to the function `row`. Returns false if a page or row
 * has an unusual form, or if `row` stops the scan. */
static bool scan_tree(struct scan *scan, uint64_t number, int depth)
{
    const uint8_t *page = get_page(scan, number);
    unsigned cells = page ? get_two_bytes(page + 3) : 0;
    uint8_t inner[PAGE_BYTES];

    if (page && page[0] == PAGE_TABLE)
        return scan_leaf_page(scan, page, cells);
    if (!cells || 12 + 2 * cells > PAGE_BYTES)
        return false;
    if (page[0] != PAGE_TABLE - 8 || depth >= DEPTH_MOST)
        return false;
    if (db_was_interrupted(scan->db)) {
        /* interrupt the statement that scan_rows() runs, so that it fails as well */
        db_interrupt(scan->db);
        return false;
    }
    memcpy(inner, page, sizeof inner);
    for (unsigned cell = 0; cell < cells; cell++) {
        unsigned at = get_two_bytes(inner + 12 + 2 * cell);
        if (at > PAGE_BYTES - 4)
            return false;
        if (!scan_tree(scan, get_big_endian(inner + at, 4), depth + 1))
            return false;
    }
    return scan_tree(scan, get_big_endian(inner + 8, 4), depth + 1);
}

void scan_rows(struct db *db, enum row_table table,
               bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context)
{
    /* This SELECT finds the page at which the table begins. It selects a row only if the table has
     * our own definition, because another table may have other columns, and if no table in `temp`
     * has the same name, because SQL would read that one. */
    static const char tree[] =
        "SELECT s.rootpage FROM main.sqlite_schema s JOIN json_each(?1) o ON o.value ->> 'sql' = "
        "s.sql WHERE s.name = ?2 AND o.value ->> 'name' = s.name AND ?2 NOT IN (SELECT name FROM "
        "temp.sqlite_schema)";
    /* What these bytes of the file's header must be: pages have PAGE_BYTES bytes, none of them
     * reserved, and there is no write-ahead log. */
    static const uint8_t usual[] = {PAGE_BYTES >> 8, 0, 1, 1, 0};
    const struct row_table_facts *facts = &row_tables[table];
    struct query *query = db_query(db, tree);
    struct scan scan = {
        .db = db,
        .row = row,
        .context = context,
        .of_frames = table == TABLE_frame,
        .next = INT64_MIN,
        .part = malloc(PART_BYTES + PAGE_SLACK),
        .part_at = -1,
    };
    char names[COLUMNS_MOST * 32] = "";
    char *rest;
    bool done = false;

    for (const struct row_column *c = facts->columns; c->name; c++) {
        sprintf(names + strlen(names), scan.columns ? ", %s" : "%s", c->name);
        scan.columns++;
    }
    query_bind_text(query, 1, trust_make_expected_schema());
    query_bind_text(query, 2, facts->name);
    sqlite3_file_control(db_sqlite(db), "main", SQLITE_FCNTL_FILE_POINTER, &scan.file);
    /* While this statement runs, nobody can write the file. A connection that only reads has no
     * newer pages in memory, so the pages in the file are up to date. */
    while (query_step(query)) {
        uint64_t root = (uint64_t)query_integer(query, 0);
        if (!sqlite3_db_readonly(db_sqlite(db), "main") || !get_page(&scan, 1))
            continue;
        if (memcmp(scan.part + 16, usual, sizeof usual))
            continue;
        done = scan_tree(&scan, root, 0) || scan.enough;
    }
    rest = say_print("SELECT each(%s) FROM %s NOT INDEXED WHERE %s >= %" PRId64, names, facts->name,
                     facts->columns->name, scan.next);
    /* the function `row` has not got any row, so SQLite reads all of them */
    if (scan.next == INT64_MIN)
        *strstr(rest, " WHERE ") = 0;
    if (!done && !query_failed(query))
        db_visit(db, rest, row, context);
    query_close(query);
    free(scan.part);
    free(rest);
}

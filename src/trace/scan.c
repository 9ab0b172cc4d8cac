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
    /* bytes of one read; the pages of a table are usually adjacent */
    PART_BYTES = 64 * PAGE_BYTES,
    COLUMNS_MOST = 16,
    DEPTH_MOST = 20,
};

struct scan {
    struct db *db; /* borrowed, like the other pointers except `part` */
    sqlite3_file *file;
    bool (*row)(void *context, const int64_t *values, unsigned nulls);
    void *context;
    unsigned columns; /* columns of the table; the first is its key */
    int64_t next;     /* all rows with lower keys have been passed to ROW */
    bool enough;      /* ROW has returned false */
    uint8_t *part;    /* owned: the part of the file read last */
    int64_t part_at;  /* offset of `part` in the file, or -1 if nothing has been read */
};

/* Return page NUMBER, valid until the next read, or NULL if it cannot be read. Bytes past the end
 * of the file are 0. */
static const uint8_t *page_at(struct scan *scan, uint64_t number)
{
    int64_t at = ((int64_t)number - 1) * PAGE_BYTES, part_at = at < 0 ? -1 : at - at % PART_BYTES;
    int status = SQLITE_OK;

    if (part_at != scan->part_at && part_at >= 0)
        status = scan->file->pMethods->xRead(scan->file, scan->part, PART_BYTES, part_at);
    scan->part_at = status == SQLITE_OK || status == SQLITE_IOERR_SHORT_READ ? part_at : -1;
    return scan->part_at < 0 ? NULL : scan->part + (at - part_at);
}

/* Read the row of the cell at P, and pass it to ROW. Returns false if ROW stops, or if the cell has
 * an unusual form: a length or a type that takes more than one byte, or a value that is not an
 * integer. */
static bool row_scan(struct scan *scan, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *types;
    int64_t values[COLUMNS_MOST], id = 0;
    unsigned length = *p++, nulls = 0;

    for (int i = 0; *p & 0x80 && i < 7; i++)
        id = (id | (*p++ & 0x7f)) << 7;
    id |= *p;
    if ((length | *p++) & 0x80 || length > end - p || length < 1 + scan->columns ||
        *p != 1 + scan->columns || p[1] || id < scan->next)
        return false;
    end = p + length;
    types = p + 1;
    p = types + scan->columns;
    values[0] = id;
    for (unsigned i = 1; i < scan->columns; i++) {
        unsigned type = types[i], bytes;
        if (type > 9 || type == 7 || (bytes = frame_bytes_of_type[type]) > end - p)
            return false;
        nulls |= (unsigned)!type << i;
        values[i] = bytes ? get_signed(p, bytes) : type == 9;
        p += bytes;
    }
    if (p != end)
        return false;
    scan->next = id + 1;
    scan->enough = !scan->row(scan->context, values, nulls);
    return !scan->enough;
}

/* Pass the rows below page NUMBER to ROW. Returns false if a page has an unusual form, or if ROW
 * stops. */
static bool tree_scan(struct scan *scan, uint64_t number, int depth)
{
    const uint8_t *page = page_at(scan, number);
    unsigned cells = page ? get16(page + 3) : 0, at;
    uint8_t inner[PAGE_BYTES];
    bool leaf = page && page[0] == PAGE_TABLE,
         all = leaf ? cells > 0 : cells && page[0] == PAGE_TABLE - 8 && depth < DEPTH_MOST;

    if (!all || (leaf ? 8 : 12) + 2 * cells > PAGE_BYTES)
        return false;
    for (unsigned cell = 0; leaf && all && cell < cells; cell++)
        all = (at = get16(page + 8 + 2 * cell)) <= PAGE_BYTES - 10 &&
              row_scan(scan, page + at, page + PAGE_BYTES);
    if (leaf)
        return all;
    if (db_interrupted(scan->db)) {
        db_interrupt(scan->db); /* interrupt the statement in scan_rows */
        return false;
    }
    memcpy(inner, page, sizeof inner);
    for (unsigned cell = 0; all && cell < cells; cell++)
        all = (at = get16(inner + 12 + 2 * cell)) <= PAGE_BYTES - 4 &&
              tree_scan(scan, get_big_endian(inner + at, 4), depth + 1);
    return all && tree_scan(scan, get_big_endian(inner + 8, 4), depth + 1);
}

void scan_rows(struct db *db, enum row_table table,
               bool (*row)(void *context, const int64_t *values, unsigned nulls), void *context)
{
    /* Finds the page at which the table begins. The table must have our own definition, because
     * another one may have other columns. No table in `temp` may have the same name, because SQL
     * would read that table instead. */
    static const char tree[] =
        "SELECT s.rootpage FROM main.sqlite_schema s JOIN json_each(?1) o ON o.value ->> 'sql' = "
        "s.sql WHERE s.name = ?2 AND o.value ->> 'name' = s.name AND ?2 NOT IN (SELECT name FROM "
        "temp.sqlite_schema)";
    /* These bytes of the file's header mean: pages of PAGE_BYTES, no write-ahead log, and no bytes
     * reserved at the end of a page. */
    static const uint8_t usual[] = {PAGE_BYTES >> 8, 0, 1, 1, 0};
    const struct row_table_facts *facts = &row_tables[table];
    struct query *query = db_query(db, tree);
    struct scan scan = {.db = db,
                        .row = row,
                        .context = context,
                        .next = INT64_MIN,
                        .part = malloc(PART_BYTES + PAGE_SLACK),
                        .part_at = -1};
    char names[COLUMNS_MOST * 32] = "", *rest;
    bool done = false;

    for (const struct row_column *c = facts->columns; c->name; c++)
        sprintf(names + strlen(names), scan.columns++ ? ", %s" : "%s", c->name);
    query_bind_text(query, 1, trust_schema_made());
    query_bind_text(query, 2, facts->name);
    sqlite3_file_control(db_sqlite(db), "main", SQLITE_FCNTL_FILE_POINTER, &scan.file);
    /* While the statement is open, nobody can write to the file, and a read-only connection has no
     * newer pages in memory. */
    while (query_step(query))
        if (sqlite3_db_readonly(db_sqlite(db), "main") && page_at(&scan, 1) &&
            !memcmp(scan.part + 16, usual, sizeof usual))
            done = tree_scan(&scan, (uint64_t)query_integer(query, 0), 0) || scan.enough;
    rest = say_print("SELECT each(%s) FROM %s NOT INDEXED WHERE %s >= %" PRId64, names, facts->name,
                     facts->columns->name, scan.next);
    if (scan.next == INT64_MIN) /* no row has been passed to ROW */
        *strstr(rest, " WHERE ") = 0;
    if (!done && !query_failed(query))
        db_each(db, rest, row, context);
    query_close(query);
    free(scan.part);
    free(rest);
}

/* trace/damage.c -- finds damage in a trace's file. See trace/damage.h. */
#include "trace/damage.h"

#include <inttypes.h>
#include <unistd.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"

enum {
    SCHEMA_ROOT = 1, /* page number of the first page of the table sqlite_schema */
    /* number of columns of sqlite_schema: type, name, tbl_name, rootpage and sql */
    SCHEMA_COLUMNS = 5,
    TABLES_MOST = 1000,
    RANGES_MOST = 8, /* a sentence lists at most this many ranges of page numbers */
    COLUMNS_MOST = 64,
    TRACE_PAGE = 4096,
    PAGES_SAMPLED = 1000,
    LOOKED_AT = 512, /* number of bytes read from a file to recognise what kind it is */
};

#define add(list, ...) (*list_add(list) = say_print(__VA_ARGS__))

/* ---- damage of the file as a whole --------------------------------------- */

/* Return words for what kind of file this is, if it is not a database: "a gzip file". HEAD has the
 * first LENGTH bytes of the file. */
static const char *describe_file_kind(const unsigned char *head, size_t length)
{
    static const struct {
        const char *magic;
        size_t length;
        const char *words;
    } kinds[] = {
        {"\x1f\x8b", 2, "a gzip file: unpack it first"},
        {"\x28\xb5\x2f\xfd", 4, "a zstd file: unpack it first"},
        {"\xfd"
         "7zXZ",
         5, "an xz file: unpack it first"},
        {"BZh", 3, "a bzip2 file: unpack it first"},
        {"PK\x03\x04", 4, "a zip file: unpack it first"},
        {"\x7f"
         "ELF",
         4, "a program"},
        {"PAR1", 4, "a Parquet file"},
        {"\x37\x7f\x06\x82", 4, "the log of an SQLite database: name the database, without -wal"},
        {"\x37\x7f\x06\x83", 4, "the log of an SQLite database: name the database, without -wal"},
        {"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8, "the journal of an SQLite database"},
    };
    size_t zeros = 0;
    size_t printable = 0;

    for (size_t i = 0; i < array_count(kinds); i++)
        if (length >= kinds[i].length && !memcmp(head, kinds[i].magic, kinds[i].length))
            return kinds[i].words;
    for (size_t i = 0; i < length; i++) {
        zeros += !head[i];
        printable += head[i] >= ' ' || head[i] == '\n' || head[i] == '\t' || head[i] == '\r';
    }
    if (zeros == length)
        return "zeros where the header should be: a copy that was never filled, or lost blocks";
    if (printable == length)
        return "a text";
    return "not an SQLite database";
}

/* Return how many of the first PAGES_SAMPLED pages look like pages of an SQLite database, if they
 * had the page size of traces. Returns 0 if fewer than half of them do, or if the header of the
 * file is sound. */
static uint32_t count_likely_pages(const struct damage *damage)
{
    int64_t pages = damage->pages.bytes / TRACE_PAGE;
    int64_t most = pages < PAGES_SAMPLED ? pages : PAGES_SAMPLED;
    uint32_t alike = 0;

    for (int64_t i = 1; i < most && !damage->pages.is_sound; i++) {
        unsigned char head[8];
        if (pread(damage->pages.file, head, sizeof head, i * TRACE_PAGE) == sizeof head)
            alike += pages_is_header_of_database(head);
    }
    return alike * 2 >= most ? alike : 0;
}

static void add_fault_of_wrong_kind(struct damage *damage)
{
    unsigned char head[LOOKED_AT];
    ssize_t got = pread(damage->pages.file, head, sizeof head, 0);

    uint32_t pages = count_likely_pages(damage);

    if (pages)
        add(&damage->faults,
            "its first page was overwritten; %" PRIu32 " others are pages of an SQLite database",
            pages);
    else if (damage->pages.is_sound)
        add(&damage->faults,
            "its first 16 bytes were overwritten; what follows is an SQLite header");
    else
        add(&damage->faults, "begins as %s", describe_file_kind(head, got > 0 ? (size_t)got : 0));
}

/* Is any page of the database missing from both the file and its write-ahead log? */
static bool has_missing_page(struct damage *damage)
{
    const struct pages *pages = &damage->pages;

    for (uint32_t page = pages->there; page < pages->said; page++)
        if (!map_get(&damage->pages.logged, page + 1))
            return true;
    return false;
}

static void add_length_faults(struct damage *damage)
{
    const struct pages *pages = &damage->pages;
    int64_t over = pages->bytes % pages->page_bytes;
    bool is_longer = pages->said && pages->there > pages->said;

    if (has_missing_page(damage))
        add(&damage->faults,
            "is cut: it has %" PRIu32 " of its %" PRIu32 " pages of %" PRIu32 " bytes",
            pages->there, pages->said, pages->page_bytes);
    if (over)
        add(&damage->faults,
            "ends within a page: after %" PRIu32 " pages there are %" PRId64 " bytes", pages->there,
            over);
    if (is_longer && !pages->log_bytes)
        add(&damage->faults, "is longer than its header says: %" PRIu32 " pages, not %" PRIu32,
            pages->there, pages->said);
}

/* Is the file only the beginning of the header of an SQLite database? */
static bool is_truncated_header(const struct pages *pages)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic];
    ssize_t got = pread(pages->file, head, sizeof head, 0);

    return pages->bytes < 100 && got > 0 && !memcmp(head, magic, (size_t)got);
}

bool damage_open(struct damage *damage, const char *path)
{
    const struct pages *pages = &damage->pages;

    *damage = (struct damage){0};
    if (!pages_open(&damage->pages, path))
        return false;
    if (!pages->bytes && pages->log_used)
        add(&damage->faults,
            "is empty: all that is left of it is in its log, the file with -wal at "
            "its end");
    else if (!pages->bytes)
        add(&damage->faults, "is empty: it has no bytes");
    else if (is_truncated_header(pages))
        add(&damage->faults, "is cut: it has %" PRId64 " bytes, and a header alone has 100",
            pages->bytes);
    else if (!pages->is_sqlite)
        add_fault_of_wrong_kind(damage);
    else if (!pages->is_sound)
        add(&damage->faults, "its header is damaged: page size, versions or fixed values are none "
                             "that SQLite writes");
    if (pages->page_bytes && pages->bytes)
        add_length_faults(damage);
    if (pages->log_bytes && !pages->log_sound)
        damage->log_fault =
            say_print("its log, the file with -wal at its end, is damaged: what was "
                      "not moved out of it is lost");
    else if (pages->log_torn)
        damage->log_fault =
            say_print("its log, the file with -wal at its end, is cut or overwritten after %" PRId64
                      " of %" PRId64 " bytes: what followed is lost",
                      pages->log_used, pages->log_bytes);
    return true;
}

/* ---- damage of single tables --------------------------------------------- */

/* A row of sqlite_schema: a table or an index, and its B-tree. The texts are owned. */
struct entry {
    char *type, *name, *sql;
    uint32_t root;
    struct tree tree;
};
struct entries {
    LIST(struct entry) list;
    /* gets a sentence for each definition that is not SQL; or NULL, if none is wanted */
    struct damage *damage;
};

static char *copy_text(const struct record_value *value)
{
    return value->type == RECORD_TEXT ? strndup(value->text, value->length) : strdup("");
}

static int compare_page_numbers(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one;
    uint32_t b = *(const uint32_t *)other;

    return (a > b) - (a < b);
}

/* Format PAGES as "3, 20-22". Sorts PAGES. The caller frees the text. */
static char *format_pages(uint32_t *pages, size_t count)
{
    LIST(char) text = {0};
    char part[40];
    int ranges = 0;

    qsort(pages, count, sizeof *pages, compare_page_numbers);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && pages[next] <= pages[next - 1] + 1;)
            next++;
        if (ranges++ == RANGES_MOST)
            snprintf(part, sizeof part, ", ...");
        else if (pages[next - 1] == pages[i])
            snprintf(part, sizeof part, "%s%" PRIu32, i ? ", " : "", pages[i]);
        else
            snprintf(part, sizeof part, "%s%" PRIu32 "-%" PRIu32, i ? ", " : "", pages[i],
                     pages[next - 1]);
        if (ranges <= RANGES_MOST + 1)
            memcpy(list_add_many(&text, strlen(part)), part, strlen(part));
    }
    *list_add(&text) = 0;
    return text.at;
}

/* VALUES is a row of sqlite_schema, which defines a table or view. If its text is not SQL, SQLite
 * refuses the whole file: add a sentence to DAMAGE. A long text is on overflow pages, and only this
 * check finds that they were overwritten. */
static void check_schema_row(struct damage *damage, const struct record_value *values)
{
    char *type = copy_text(&values[0]);
    char *name = copy_text(&values[1]);
    char *sql = copy_text(&values[4]);
    bool can_stand_alone = !strcmp(type, "table") || !strcmp(type, "view");
    bool is_sql = can_stand_alone && *sql;

    if (is_sql && !db_is_sql_complete(sql)) {
        char *numbers = format_pages(damage->pages.row_pages.at, damage->pages.row_pages.count);
        damage->broken++;
        add(&damage->tables,
            "table sqlite_schema, which says where all others are: the definition of the %s %s "
            "cannot be read as SQL (page%s %s)",
            type, name, damage->pages.row_pages.count == 1 ? "" : "s", numbers);
        free(numbers);
    }
    free(type);
    free(name);
    free(sql);
}

static void add_schema_entry(void *context, int64_t rowid, const unsigned char *payload,
                             size_t length)
{
    struct entries *entries = context;
    struct record_value values[SCHEMA_COLUMNS];
    const struct record_value *root;
    struct entry *entry;

    if (record_read_values(payload, length, values, SCHEMA_COLUMNS) < SCHEMA_COLUMNS ||
        entries->list.count >= TABLES_MOST)
        return;
    if (entries->damage)
        check_schema_row(entries->damage, values);
    root = &values[3];
    if (root->type != RECORD_INTEGER)
        return;
    if (root->integer <= 0 || root->integer > UINT32_MAX)
        return;
    entry = list_add(&entries->list);
    entry->type = copy_text(&values[0]);
    entry->name = copy_text(&values[1]);
    entry->sql = copy_text(&values[4]);
    entry->root = (uint32_t)values[3].integer;
}

/* Add a sentence to DAMAGE if some pages of TREE cannot be read. */
static void add_tree_fault(struct damage *damage, const char *type, const char *name,
                           struct tree *tree)
{
    char *numbers;

    if (!tree->missing.count)
        return;
    damage->broken++;
    numbers = format_pages(tree->missing.at, tree->missing.count);
    add(&damage->tables,
        "%s %s: page%s %s cannot be read, nor what is reached through %s; %" PRId64 " row%s can",
        type, name, tree->missing.count == 1 ? "" : "s", numbers,
        tree->missing.count == 1 ? "it" : "them", tree->rows, tree->rows == 1 ? "" : "s");
    free(numbers);
}

/* Read sqlite_schema, the file's list of tables and indexes. If SAY, add a sentence to DAMAGE about
 * what cannot be read of it. */
static struct entries read_schema(struct damage *damage, bool say)
{
    struct entries entries = {.damage = say ? damage : NULL};
    struct tree schema;

    map_free(&damage->pages.visited);
    pages_visit_tree(&damage->pages, SCHEMA_ROOT, &schema, add_schema_entry, &entries);
    if (say)
        add_tree_fault(damage, "table", "sqlite_schema, which says where all others are", &schema);
    list_free(&schema.missing);
    return entries;
}

static void free_schema_entries(struct entries *entries)
{
    for (size_t i = 0; i < entries->list.count; i++) {
        free(entries->list.at[i].type);
        free(entries->list.at[i].name);
        free(entries->list.at[i].sql);
        list_free(&entries->list.at[i].tree.missing);
    }
    list_free(&entries->list);
}

void damage_find(struct damage *damage)
{
    struct entries entries = read_schema(damage, true);
    size_t tables = 0;
    size_t whole = 0;

    list_each(entry, &entries.list) {
        bool is_table = !strcmp(entry->type, "table");
        pages_visit_tree(&damage->pages, entry->root, &entry->tree, NULL, NULL);
        add_tree_fault(damage, is_table ? "table" : "index", entry->name, &entry->tree);
        if (is_table) {
            tables++;
            whole += !entry->tree.missing.count;
            damage->rows += entry->tree.rows;
        }
    }
    if (tables)
        add(&damage->tables,
            "%zu of the %zu tables that can be found are whole; %" PRId64
            " rows of all tables can be read",
            whole, tables, damage->rows);
    else
        add(&damage->tables, "no table can be found in it, so nothing can be read: if it is a "
                             "copy, copy it again");
    free_schema_entries(&entries);
}

/* ---- copying the rows that can be read to a new trace -------------------- */

/* A table of the new trace, into which rows are copied. */
struct target {
    struct db *db;     /* borrowed */
    struct query *put; /* owned: the statement that inserts a row */
    int columns;
    int key; /* the index of the column that is the rowid, or -1 if the table has no such column */
    bool has_rowid;
    /* which columns have the default 0; the default of all others is NULL. A record may have values
     * only for its first columns; the other columns then get their default */
    bool is_zero[COLUMNS_MOST];
    int64_t rows;
};

static void copy_row(void *context, int64_t rowid, const unsigned char *payload, size_t length)
{
    struct target *target = context;
    struct record_value values[COLUMNS_MOST];
    int count = record_read_values(payload, length, values, COLUMNS_MOST);
    int first = target->has_rowid && target->key < 0 ? 2 : 1;

    if (count < 0)
        return;
    if (first == 2)
        query_bind_integer(target->put, 1, rowid);
    for (int i = 0; i < target->columns; i++) {
        const struct record_value *value = &values[i];
        char *text = NULL;
        if (i < count && value->type == RECORD_REAL)
            text = say_print("%.17g", value->real);
        else if (i < count && value->type >= RECORD_TEXT)
            text = strndup(value->text, value->length);
        if (i == target->key)
            query_bind_integer(target->put, first + i, rowid);
        else if (i < count && value->type == RECORD_INTEGER)
            query_bind_integer(target->put, first + i, value->integer);
        else if (i >= count && target->is_zero[i])
            query_bind_integer(target->put, first + i, 0);
        else
            query_bind_text(target->put, first + i, text);
        free(text);
    }
    query_execute(target->put);
    target->rows++;
}

/* Copy SQL without comments and white space. The caller frees the copy. */
static char *strip_sql(const char *sql)
{
    LIST(char) words = {0};

    while (*sql) {
        if (!strncmp(sql, "--", 2))
            sql += strcspn(sql, "\n");
        else if (strchr(" \t\n", *sql))
            sql++;
        else
            *list_add(&words) = *sql++;
    }
    *list_add(&words) = 0;
    return words.at;
}

/* Does the new trace DB have the table of ENTRY, defined by the same SQL apart from comments and
 * white space? If so, the columns have the same order. */
static bool has_same_table(struct db *db, const struct entry *entry)
{
    struct query *query =
        db_query(db, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1");
    bool same = false;

    query_bind_text(query, 1, entry->name);
    if (query_step(query)) {
        char *ours = strip_sql(query_text(query, 0, NULL));
        char *theirs = strip_sql(entry->sql);
        same = !strcmp(ours, theirs);
        free(ours);
        free(theirs);
    }
    query_close(query);
    return same;
}

/* Prepare TARGET for receiving the rows of ENTRY. Returns false if the rows do not fit into
 * the new trace. */
static bool prepare_target(struct target *target, struct db *db, const struct entry *entry)
{
    struct query *columns;
    char *names = strdup("");
    char *marks = strdup("");
    char *sql;

    *target = (struct target){.db = db, .key = -1};
    target->has_rowid = !strstr(entry->sql, "WITHOUT ROWID");
    columns = db_query(
        db, "SELECT name, type = 'INTEGER' AND pk, dflt_value IS '0' FROM pragma_table_info(?1)"
            " ORDER BY cid");
    query_bind_text(columns, 1, entry->name);
    while (query_step(columns) && target->columns < COLUMNS_MOST) {
        char *more =
            say_print("%s%s\"%s\"", names, *names ? ", " : "", query_text(columns, 0, NULL));
        char *more_marks = say_print("%s%s?", marks, *marks ? ", " : "");
        free(names);
        free(marks);
        names = more;
        marks = more_marks;
        if (target->has_rowid && query_integer(columns, 1))
            target->key = target->columns;
        target->is_zero[target->columns] = query_integer(columns, 2);
        target->columns++;
    }
    query_close(columns);
    if (target->has_rowid && target->key < 0)
        sql = say_print("INSERT OR REPLACE INTO \"%s\"(rowid, %s) VALUES (?, %s)", entry->name,
                        names, marks);
    else
        sql = say_print("INSERT OR REPLACE INTO \"%s\"(%s) VALUES (%s)", entry->name, names, marks);
    if (target->columns)
        target->put = db_query(db, sql);
    free(sql);
    free(names);
    free(marks);
    return target->put;
}

static void write_loss_rows(struct damage *damage, struct db *db)
{
    struct query *put = db_query(
        db, "INSERT INTO loss(at_ns, cause) VALUES (0, 'recovered from a damaged file: ' || ?1)");

    if (damage->log_fault) {
        query_bind_text(put, 1, damage->log_fault);
        query_execute(put);
    }
    list_each(fault, &damage->faults) {
        query_bind_text(put, 1, *fault);
        query_execute(put);
    }
    list_each(table, &damage->tables) {
        query_bind_text(put, 1, *table);
        query_execute(put);
    }
    query_close(put);
}

int64_t damage_copy_rows(struct damage *damage, const char *path)
{
    struct db *db = db_create_trace(path);
    struct entries entries;
    int64_t rows = 0;
    bool ok;

    if (!db)
        return -1;
    entries = read_schema(damage, false);
    db_run(db, "BEGIN");
    list_each(entry, &entries.list) {
        struct target target;
        bool is_table = !strcmp(entry->type, "table");
        if (is_table && !has_same_table(db, entry))
            add(&damage->tables, "table %s is none of this dyntrace's, and was left out",
                entry->name);
        if (!is_table || !has_same_table(db, entry))
            continue;
        if (!prepare_target(&target, db, entry))
            continue;
        pages_visit_tree(&damage->pages, entry->root, &entry->tree, copy_row, &target);
        query_close(target.put);
        rows += target.rows;
    }
    write_loss_rows(damage, db);
    db_run(db, schema_statement("recover/copied"));
    db_run(db, "COMMIT");
    ok = db_finish_trace(db);
    free_schema_entries(&entries);
    db_close(db);
    return ok ? rows : -1;
}

void damage_free(struct damage *damage)
{
    for (size_t i = 0; i < damage->faults.count; i++)
        free(damage->faults.at[i]);
    for (size_t i = 0; i < damage->tables.count; i++)
        free(damage->tables.at[i]);
    free(damage->log_fault);
    list_free(&damage->faults);
    list_free(&damage->tables);
    pages_close(&damage->pages);
}

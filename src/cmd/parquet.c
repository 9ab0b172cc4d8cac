/* cmd/parquet.c -- writes traces as Parquet files, one for each table: OUT/lookup.parquet.
 *
 * A table's file has the rows of all traces, sorted by rank, with the columns `job` and `rank`
 * before the table's own. So the number of files does not depend on the size of the job. A row
 * group has rows of many ranks, or a part of one rank's rows; a query for one rank skips the row
 * groups of other ranks by Parquet's statistics.
 *
 * A Python with pyarrow writes the files (src/cmd/ask/parquet_write.py). All readers are tested
 * with Arrow's own library. No Debian release has this library, and its C++ interface changes with
 * each release, but there is a wheel for every Python. So dyntrace can be built without it.
 *
 * Rows are passed to that Python in Arrow's memory layout, column by column, without printing or
 * parsing. The types are those of tables.h. Times are wall-clock times in nanoseconds, by the
 * ranks' common clock. One trace is open at a time.
 *
 * Runs in: the command line. */
#include "cmd/parquet.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/run/run.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/say.h"
#include "schema.h"
#include "tables.h"
#include "trace/db.h"
#include "trace/scan.h"
#include "trace/traces.h"

/* the Python program that writes the files, made of src/cmd/ask/parquet_write.py */
extern const char parquet_write_py[];

enum {
    GROUP_ROWS = 1 << 17, /* the most rows of a row group */
    /* the most bytes of rows in memory; if there are more, the largest table is written */
    HELD_BYTES = 32 << 20,
    TABLES_WRITTEN = ROW_TABLES + 1,
    COLUMNS_WRITTEN = ROW_COLUMNS + 2,
    JOB = 0, /* the index of the column `job` in each table; the next is `rank` */
    RANK,
    OWN, /* index of the first column that comes from the trace itself */
};

/* The columns of the table `shares`, which has a process's calls by outcome (the view `shares`).
 * With this table and the columns added to `compile`, queries need not define again what an eager
 * call or a recompile is. */
static const struct row_column shares[] = {
    {"process_id", ROW_ID, ID_PROCESS},
    {"calls", ROW_NUMBER, ID_NONE},
    {"hits", ROW_NUMBER, ID_NONE},
    {"misses", ROW_NUMBER, ID_NONE},
    {"ran_as_python", ROW_NUMBER, ID_NONE},
    {"turned_away", ROW_NUMBER, ID_NONE},
    {NULL},
};

struct column {
    const char *name; /* borrowed */
    bool is_text, is_time;
    /* one number for each row; for a text it is where the text ends in `bytes` */
    LIST(int64_t) numbers;
    LIST(unsigned char) valid; /* one bit for each row, which is set if the value is not NULL */
    LIST(char) bytes;
};

/* A table of the dataset, and its rows that have not been written yet. */
struct table {
    const char *name; /* borrowed */
    /* owned: the statement that reads the table's rows from a trace, without the columns `job` and
     * `rank` */
    char *select;
    /* the rows are read from the table `from` by scan_rows (trace/scan.h), not by `select` */
    bool scans;
    enum row_table from;
    struct column columns[COLUMNS_WRITTEN];
    int count;
    size_t rows, bytes;
};

struct dataset {
    FILE *to; /* owned: a pipe to the standard input of the Python program that writes the files */
    pid_t pid;
    struct table tables[TABLES_WRITTEN];
    size_t count;
    size_t held; /* bytes of rows in memory, of all tables */
    /* The members below are about the trace that is being read. zero_ns: what is added to the
     * trace's times to get wall-clock times. */
    char *job; /* owned */
    int64_t rank, zero_ns;
    /* how many traces without a rank were read; they get the ranks -1, -2, ... */
    int64_t unranked;
};

/* ---- preparing the tables and their columns ------------------------------ */

static void add_column(struct table *table, const char *name, int holds)
{
    struct column *column = &table->columns[table->count++];

    column->name = name;
    column->is_text = holds == ROW_STRING;
    column->is_time = holds == ROW_TIME;
}

/* Return the SQL expression that reads column NAME of TABLE. */
static const char *choose_sql_of_column(const struct table *table, const char *name)
{
    bool process = table->from == TABLE_process;

    if (process && !strcmp(name, "host"))
        return "COALESCE(host, (SELECT value FROM meta WHERE key = 'host'))";
    return process && !strcmp(name, "own_rank") ? "rank" : name;
}

/* Make the statement that reads the rows of TABLE. SOURCE, from which it selects, is the name of a
 * table or a statement in parentheses. */
static void make_select_statement(struct table *table, const char *source)
{
    char *sql = say_print("SELECT ");

    for (int i = OWN; i < table->count; i++) {
        const char *comma = i > OWN ? ", " : "";
        char *longer =
            say_print("%s%s%s", sql, comma, choose_sql_of_column(table, table->columns[i].name));
        free(sql);
        sql = longer;
    }
    table->select = say_print("%s FROM %s", sql, source);
    free(sql);
}

static struct table *add_table(struct dataset *dataset, const char *name,
                               const struct row_column *columns)
{
    struct table *table = &dataset->tables[dataset->count++];

    table->name = name;
    add_column(table, "job", ROW_STRING);
    add_column(table, "rank", ROW_NUMBER);
    for (const struct row_column *c = columns; c->name && c->id != ID_ROW; c++)
        add_column(table, strcmp(c->name, "rank") ? c->name : "own_rank", c->holds);
    return table;
}

/* Return the statement that selects the rows for TABLE. Returns NULL if the rows are those of the
 * trace's own table. */
static const char *choose_table_statement(enum row_table table, bool frames)
{
    if (table == TABLE_compile)
        return schema_statement("export/compiles");
    if (table == TABLE_frame && !frames)
        return schema_statement("export/skipped");
    return NULL;
}

/* Prepare all tables. If FRAMES, the table `frame` gets every frame, otherwise only the calls of
 * functions that the compiler has given up. */
static void prepare_all_tables(struct dataset *dataset, bool frames)
{
    for (int i = 0; i < ROW_TABLES; i++) {
        const char *name = row_tables[i].name;
        struct table *table = add_table(dataset, name, row_tables[i].columns);
        const char *statement;
        char *source;
        table->from = (enum row_table)i;
        statement = choose_table_statement(table->from, frames);
        table->scans = !statement && (i == TABLE_frame || i == TABLE_lookup);
        if (i == TABLE_compile) {
            add_column(table, "is_recompile", ROW_NUMBER);
            add_column(table, "cause", ROW_STRING);
        }
        if (statement)
            source = say_print("(%s)", statement);
        else
            source = say_print("%s NOT INDEXED", name);
        make_select_statement(table, source);
        free(source);
    }
    make_select_statement(add_table(dataset, "shares", shares), "shares");
}

static void free_tables(struct dataset *dataset)
{
    for (size_t t = 0; t < dataset->count; t++) {
        struct table *table = &dataset->tables[t];
        for (int i = 0; i < table->count; i++) {
            list_free(&table->columns[i].numbers);
            list_free(&table->columns[i].valid);
            list_free(&table->columns[i].bytes);
        }
        free(table->select);
    }
}

/* ---- starting and ending the program that writes the files --------------- */

/* Send the first line to the writer: the columns of each table, and the statements of
 * schemas/engines/questions.sql. These statements become views of the dataset. */
static void send_header_line(struct dataset *dataset)
{
    static const char prefix[] = "engines/questions/";
    struct json json = {.out = dataset->to, .compact = true};

    json_object(&json, NULL);
    json_object(&json, "tables");
    for (size_t t = 0; t < dataset->count; t++) {
        const struct table *table = &dataset->tables[t];
        json_list(&json, table->name);
        for (int i = 0; i < table->count; i++) {
            json_list(&json, NULL);
            json_string(&json, NULL, table->columns[i].name);
            json_bool(&json, NULL, !table->columns[i].is_text);
            json_end(&json);
        }
        json_end(&json);
    }
    json_end(&json);
    json_object(&json, "questions");
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, prefix, sizeof prefix - 1))
            json_string(&json, s->name + sizeof prefix - 1, s->text);
    json_end(&json);
    json_end(&json);
    putc('\n', dataset->to);
}

static bool start_writer_process(struct dataset *dataset, const char *python, const char *folder,
                                 const char *place)
{
    int ends[2];

    /* ignore SIGPIPE: if the writer ends early, it has reported the reason itself */
    signal(SIGPIPE, SIG_IGN);
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) || (dataset->pid = fork()) < 0) {
        say_error("export: %s", strerror(errno));
        return false;
    }
    if (dataset->pid == 0) {
        dup2(ends[0], 0);
        execlp(python, python, "-c", parquet_write_py, folder, place, NULL);
        say_error("export: %s: cannot be started: %s", python, strerror(errno));
        _exit(127);
    }
    close(ends[0]);
    dataset->to = fdopen(ends[1], "w");
    return dataset->to;
}

/* Wait for the writer's end. WHOLE: all rows have been sent to it. Returns true if the writer has
 * written everything. */
static bool end_writer_process(struct dataset *dataset, bool whole)
{
    int status = 1;

    if (whole)
        fputs("end\n", dataset->to);
    fclose(dataset->to);
    waitpid(dataset->pid, &status, 0);
    return whole && status == 0;
}

/* ---- reading rows and sending them column by column ---------------------- */

/* Send the rows of TABLE that are in memory to the writer as a row group. First comes a line with
 * the table's name and the number of rows. Then come, for each column, its validity bits, numbers
 * and bytes. */
static void send_row_group(struct dataset *dataset, struct table *table)
{
    FILE *to = dataset->to;

    if (!table->rows)
        return;
    fprintf(to, "%s %zu\n", table->name, table->rows);
    for (int i = 0; i < table->count; i++) {
        struct column *column = &table->columns[i];
        fwrite(column->valid.at, 1, column->valid.count, to);
        fwrite(column->numbers.at, sizeof *column->numbers.at, column->numbers.count, to);
        if (column->bytes.count)
            fwrite(column->bytes.at, 1, column->bytes.count, to);
        column->valid.count = column->numbers.count = column->bytes.count = 0;
    }
    dataset->held -= table->bytes;
    table->rows = table->bytes = 0;
}

/* Write the table with the most bytes in memory. */
static void send_largest_table(struct dataset *dataset)
{
    struct table *largest = dataset->tables;

    for (size_t t = 1; t < dataset->count; t++)
        if (dataset->tables[t].bytes > largest->bytes)
            largest = &dataset->tables[t];
    send_row_group(dataset, largest);
}

static void count_bytes_in_memory(struct dataset *dataset, struct table *table, size_t bytes)
{
    table->bytes += bytes;
    dataset->held += bytes;
}

static void add_value(struct dataset *dataset, struct table *table, struct column *column,
                      bool valid, int64_t value)
{
    unsigned char *bits = list_reach(&column->valid, table->rows / 8);

    if (valid)
        *bits |= (unsigned char)(1 << table->rows % 8);
    *list_add(&column->numbers) = value;
    count_bytes_in_memory(dataset, table, sizeof value);
}

static void add_number_value(struct dataset *dataset, struct table *table, int i, bool valid,
                             int64_t value)
{
    struct column *column = &table->columns[i];
    bool shifts = valid && column->is_time;
    bool over = shifts && __builtin_add_overflow(value, dataset->zero_ns, &value);

    valid = valid && !over;
    add_value(dataset, table, column, valid, valid ? value : 0);
}

/* Append TEXT to COLUMN's bytes. Parquet allows only UTF-8, so a byte that is not UTF-8 is written
 * as \xNN. */
static void append_as_utf8(struct column *column, const char *text, size_t length)
{
    const char *end = text + length;
    unsigned long rune;

    while (text < end) {
        size_t plain = 0;
        while (text + plain < end && (signed char)text[plain] >= 0)
            plain++;
        if (!plain)
            plain = json_decode_character((const unsigned char *)text, (size_t)(end - text), &rune);
        if (plain) {
            memcpy(list_add_many(&column->bytes, plain), text, plain);
            text += plain;
        } else {
            char hex[5];
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)*text);
            memcpy(list_add_many(&column->bytes, 4), hex, 4);
            text++;
        }
    }
}

/* Add TEXT, which may be NULL, as the value of column I in the current row. */
static void add_text_value(struct dataset *dataset, struct table *table, int i, const char *text,
                           size_t length)
{
    struct column *column = &table->columns[i];
    size_t before = column->bytes.count;

    if (text)
        append_as_utf8(column, text, length);
    count_bytes_in_memory(dataset, table, column->bytes.count - before);
    add_value(dataset, table, column, text, (int64_t)column->bytes.count);
}

/* Begin a row of TABLE: if there are too many rows in memory, write some; then add the values of
 * `job` and `rank`. */
static void begin_row(struct dataset *dataset, struct table *table)
{
    if (table->rows == GROUP_ROWS)
        send_row_group(dataset, table);
    if (dataset->held > HELD_BYTES)
        send_largest_table(dataset);
    add_text_value(dataset, table, JOB, dataset->job, strlen(dataset->job));
    add_value(dataset, table, &table->columns[RANK], true, dataset->rank);
}

struct scanned {
    struct dataset *dataset;
    struct table *table;
};

/* Called by scan_rows with each row of a table that has only numbers: add the row. */
static bool add_scanned_row(void *context, const int64_t *values, unsigned nulls)
{
    struct scanned *to = context;

    begin_row(to->dataset, to->table);
    for (int i = OWN; i < to->table->count; i++)
        add_number_value(to->dataset, to->table, i, !(nulls >> (i - OWN) & 1), values[i - OWN]);
    to->table->rows++;
    return !ferror(to->dataset->to);
}

static void add_query_row(struct dataset *dataset, struct table *table, struct query *row)
{
    begin_row(dataset, table);
    for (int i = OWN; i < table->count; i++) {
        bool is = query_type(row, i - OWN) != QUERY_NULL;
        size_t length = 0;
        if (table->columns[i].is_text) {
            const char *text = is ? query_whole_value(row, i - OWN, &length) : NULL;
            add_text_value(dataset, table, i, text, length);
        } else {
            add_number_value(dataset, table, i, is, is ? query_integer(row, i - OWN) : 0);
        }
    }
    table->rows++;
}

/* Add the rows that the trace DB has for TABLE. */
static void read_table(struct dataset *dataset, struct table *table, struct db *db)
{
    struct query *rows;

    if (table->scans) {
        scan_rows(db, table->from, add_scanned_row, &(struct scanned){dataset, table});
        return;
    }
    rows = db_query(db, table->select);
    while (!ferror(dataset->to) && query_step(rows))
        add_query_row(dataset, table, rows);
    query_close(rows);
}

/* Add the rows of the trace DB. Returns false if it could not be read to its end. */
static bool read_trace(struct dataset *dataset, struct db *db)
{
    dataset->job = db_meta(db, "job") ?: strdup("none");
    dataset->rank = db_integer(db, -1, schema_statement("export/rank"));
    if (dataset->rank < 0)
        dataset->rank = -++dataset->unranked;
    dataset->zero_ns =
        db_meta_integer(db, "started_unix_ns", 0) + db_meta_integer(db, "clock_offset_ns", 0);
    for (size_t t = 0; t < dataset->count && !db_has_failed(db); t++)
        read_table(dataset, &dataset->tables[t], db);
    free(dataset->job);
    return !db_has_failed(db);
}

/* Send the rows of all traces to the writer. Returns false if the dataset could not be
 * completed. */
static bool traces_write(struct dataset *dataset, struct traces *traces)
{
    struct progress progress = progress_begin("exporting");
    size_t written = 0;

    send_header_line(dataset);
    for (struct db *db; !ferror(dataset->to) && (db = traces_open_next(traces)); db_close(db)) {
        progress_tick(&progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        if (read_trace(dataset, db))
            written++;
        else /* the error has been reported; rows that were read before it are kept */
            traces_count_left_out(1);
    }
    for (size_t t = 0; t < dataset->count; t++)
        send_row_group(dataset, &dataset->tables[t]);
    progress_end(&progress);
    return !ferror(dataset->to) && written;
}

int parquet_export_traces(char *const *files, const char *out, const char *python, bool frames)
{
    struct traces traces = {0};
    char *place = realpath(".", NULL);
    char *folder = NULL;
    char *whole;
    struct dataset dataset = {0};
    bool ok = false;

    whole = *out == '/' ? strdup(out) : say_print("%s/%s", place, out);
    for (size_t length = strlen(whole); length > 1 && whole[length - 1] == '/'; length--)
        whole[length - 1] = 0;
    folder = say_print("%s.XXXXXX", whole);
    if (!*files)
        say_error("export: which traces? `dyntrace export DIR --format parquet -o OUT`");
    else if (access(whole, F_OK) == 0)
        say_error("%s: exists already, and a dataset is not added to", out);
    else if (!(traces = traces_list_as_one(files)).paths.count)
        ;
    else if (!mkdtemp(folder))
        say_error("%s: %s", out, strerror(errno));
    else if (start_writer_process(&dataset, python ? python : program_choose_python(), folder,
                                  whole)) {
        traces_sort_by_rank(&traces);
        prepare_all_tables(&dataset, frames);
        ok = end_writer_process(&dataset, traces_write(&dataset, &traces));
        if (ok && rename(folder, whole) != 0) {
            say_error("%s: %s", out, strerror(errno));
            ok = false;
        }
        /* the folder is empty now, because a writer that failed has deleted its files */
        rmdir(folder);
    }
    free_tables(&dataset);
    traces_free(&traces);
    free(place);
    free(folder);
    free(whole);
    return ok ? 0 : 2;
}

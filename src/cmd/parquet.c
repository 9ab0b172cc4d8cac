/* cmd/parquet.c -- traces as a dataset of Parquet files, OUT/table=T/job=J/rank=R/TRACE.parquet.
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

extern const char parquet_write_py[]; /* made of src/cmd/ask/parquet_write.py */

enum {
    BATCH = 1 << 17, /* most rows held in memory; together they become a Parquet row group */
    TEXTS = 8 << 20, /* bytes of text held in memory; a single row may have more */
};

struct writer {
    FILE *to; /* owned: the writer's standard input */
    pid_t pid;
};

static bool writer_start(struct writer *writer, const char *python, const char *folder,
                         const char *place)
{
    int ends[2];

    /* ignore the signal, because a writer that ends early has reported the reason */
    signal(SIGPIPE, SIG_IGN);
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) || (writer->pid = fork()) < 0) {
        say_error("export: %s", strerror(errno));
        return false;
    }
    if (writer->pid == 0) {
        dup2(ends[0], 0);
        execlp(python, python, "-c", parquet_write_py, folder, place, NULL);
        say_error("export: %s: cannot be started: %s", python, strerror(errno));
        _exit(127);
    }
    close(ends[0]);
    writer->to = fdopen(ends[1], "w");
    return writer->to;
}

/* Send the statements of schemas/engines/questions.sql, which become views. Nothing is sent after
 * them. */
static void questions_write(FILE *to)
{
    static const char prefix[] = "engines/questions/";
    struct json json = {.out = to, .compact = true};

    json_object(&json, NULL);
    json_object(&json, "questions");
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, prefix, sizeof prefix - 1))
            json_string(&json, s->name + sizeof prefix - 1, s->text);
    json_end(&json);
    json_end(&json);
    putc('\n', to);
}

/* Finish WRITER. WHOLE: all rows have been sent. Returns true if everything was written. */
static bool writer_end(struct writer *writer, bool whole)
{
    int status = 1;

    if (whole)
        questions_write(writer->to);
    fclose(writer->to);
    waitpid(writer->pid, &status, 0);
    return whole && status == 0;
}

/* Send the header of TABLE's rows: their place in the dataset and the types of the columns. */
static void head_write(FILE *to, enum row_table table, const char *file, const char *job,
                       const char *rank)
{
    const struct row_table_facts *facts = &row_tables[table];
    struct json json = {.out = to, .compact = true};
    const char *name = strrchr(file, '/');

    json_object(&json, NULL);
    json_string(&json, "table", facts->name);
    json_string(&json, "file", name ? name + 1 : file);
    json_string(&json, "job", job ? job : "none");
    json_string(&json, "rank", rank ? rank : "none");
    json_list(&json, "columns");
    for (const struct row_column *c = facts->columns; c->name && c->id != ID_ROW; c++) {
        json_list(&json, NULL);
        json_string(&json, NULL, c->name);
        json_bool(&json, NULL, c->holds != ROW_STRING);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    putc('\n', to);
}

/* ---- rows, column by column ---------------------------------------------- */

struct column {
    bool is_text;
    bool is_time;
    /* owned: BATCH values; for a text the value is the offset of its end in `bytes` */
    int64_t *numbers;
    unsigned char *valid; /* owned: a bit for each row, set if the value is not NULL */
    LIST(char) bytes;
};

struct batch {
    FILE *to; /* borrowed */
    struct column columns[ROW_COLUMNS];
    int count;
    size_t rows, bytes;
    int64_t zero_ns; /* this number is added to times to make them wall-clock times */
};

static void batch_open(struct batch *batch)
{
    for (int i = 0; i < ROW_COLUMNS; i++) {
        batch->columns[i].numbers = malloc(BATCH * sizeof *batch->columns[i].numbers);
        batch->columns[i].valid = calloc(1, BATCH / 8);
    }
}

static void batch_close(struct batch *batch)
{
    for (int i = 0; i < ROW_COLUMNS; i++) {
        free(batch->columns[i].numbers);
        free(batch->columns[i].valid);
        list_free(&batch->columns[i].bytes);
    }
}

/* Send the rows of the batch: their number, and for each column its validity bits, numbers and
 * bytes. */
static void batch_write(struct batch *batch)
{
    size_t bits = (batch->rows + 7) / 8;

    if (batch->rows)
        fprintf(batch->to, "%zu\n", batch->rows);
    for (struct column *column = batch->columns;
         batch->rows && column < batch->columns + batch->count; column++) {
        fwrite(column->valid, 1, bits, batch->to);
        fwrite(column->numbers, sizeof *column->numbers, batch->rows, batch->to);
        if (column->bytes.count)
            fwrite(column->bytes.at, 1, column->bytes.count, batch->to);
        memset(column->valid, 0, bits);
        column->bytes.count = 0;
    }
    batch->rows = batch->bytes = 0;
}

static void row_begin(struct batch *batch)
{
    if (batch->rows == BATCH || batch->bytes > TEXTS)
        batch_write(batch);
}

static void number_put(struct batch *batch, struct column *column, bool is, int64_t value)
{
    if (is && !(column->is_time && __builtin_add_overflow(value, batch->zero_ns, &value)))
        column->valid[batch->rows / 8] |= (unsigned char)(1 << batch->rows % 8);
    else
        value = 0;
    column->numbers[batch->rows] = value;
}

/* Add a text. Parquet allows only UTF-8, so any other byte becomes \xNN. */
static void text_put(struct batch *batch, struct column *column, const char *text, size_t bytes)
{
    unsigned long rune;
    size_t length;
    size_t before = column->bytes.count;

    for (const char *end = text + bytes; text < end; text += length ?: 1) {
        for (length = 0; text + length < end && (signed char)text[length] >= 0; length++)
            ;
        length = length ?: json_rune((const unsigned char *)text, (size_t)(end - text), &rune);
        if (length)
            memcpy(list_add_many(&column->bytes, length), text, length);
        else
            sprintf(list_add_many(&column->bytes, 5), "\\x%02x", (unsigned char)*text),
                column->bytes.count--;
    }
    batch->bytes += column->bytes.count - before;
    column->valid[batch->rows / 8] |= (unsigned char)(1 << batch->rows % 8);
}

/* Add a row of a table that has only numbers (trace/scan.h). */
static bool numbers_put(void *context, const int64_t *values, unsigned nulls)
{
    struct batch *batch = context;

    row_begin(batch);
    for (int i = 0; i < batch->count; i++)
        number_put(batch, &batch->columns[i], !(nulls >> i & 1), values[i]);
    batch->rows++;
    return !ferror(batch->to);
}

static void row_put(struct batch *batch, struct query *row)
{
    row_begin(batch);
    for (int i = 0; i < batch->count; i++) {
        struct column *column = &batch->columns[i];
        bool is = query_type(row, i) != QUERY_NULL;
        size_t bytes;
        if (!column->is_text) {
            number_put(batch, column, is, is ? query_integer(row, i) : 0);
            continue;
        }
        if (is) {
            const char *text = query_whole(row, i, &bytes);
            text_put(batch, column, text, bytes);
        }
        column->numbers[batch->rows] = (int64_t)column->bytes.count;
    }
    batch->rows++;
}

/* Write the rows of TABLE, if it has any. */
static void table_write(struct batch *batch, struct db *db, enum row_table table, const char *job,
                        const char *rank)
{
    const struct row_table_facts *facts = &row_tables[table];
    char *sql = say_print("SELECT ");
    char *longer;
    bool numbers = true;
    struct query *rows;

    batch->count = 0;
    for (const struct row_column *c = facts->columns; c->name && c->id != ID_ROW; c++) {
        struct column *column = &batch->columns[batch->count];
        bool host = table == TABLE_process && !strcmp(c->name, "host");
        column->is_text = c->holds == ROW_STRING;
        column->is_time = c->holds == ROW_TIME;
        numbers = numbers && !column->is_text;
        longer = say_print("%s%s%s", sql, batch->count++ ? ", " : "",
                           host ? "COALESCE(host, (SELECT value FROM meta WHERE key = 'host'))"
                                : c->name);
        free(sql);
        sql = longer;
    }
    longer = say_print("%s FROM %s NOT INDEXED", sql, facts->name);
    rows = db_query(db, longer);
    if (query_step(rows)) {
        head_write(batch->to, table, db_path(db), job, rank);
        if (numbers && (table == TABLE_frame || table == TABLE_lookup)) {
            query_reset(rows);
            scan_rows(db, table, numbers_put, batch);
        } else {
            do
                row_put(batch, rows);
            while (!ferror(batch->to) && query_step(rows));
        }
        batch_write(batch);
        fputs("0\n", batch->to);
    }
    query_close(rows);
    free(longer);
    free(sql);
}

/* Write all traces to TO. Returns false if the output is unusable. */
static bool traces_write(struct traces *traces, FILE *to, bool frames)
{
    struct progress progress = progress_begin("exporting");
    struct batch batch = {.to = to};
    size_t written = 0;

    batch_open(&batch);
    for (struct db *db; !ferror(to) && (db = traces_next(traces)); db_close(db)) {
        char *job = db_meta(db, "job");
        char *rank = db_meta(db, "rank");
        progress_tick(&progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        batch.zero_ns =
            db_meta_integer(db, "started_unix_ns", 0) + db_meta_integer(db, "clock_offset_ns", 0);
        if (!rank) {
            struct query *one =
                db_query(db, "SELECT MIN(rank) FROM process HAVING MIN(rank) = MAX(rank)");
            rank = query_step(one) ? strdup(query_text(one, 0, NULL)) : NULL;
            query_close(one);
        }
        for (int i = 0; i < ROW_TABLES && !db_failed(db); i++)
            if (i != TABLE_frame || frames)
                table_write(&batch, db, (enum row_table)i, job, rank);
        if (db_failed(db)) /* the error has been reported; the rows that were read before stay */
            traces_left_out(1);
        else
            written++;
        free(job);
        free(rank);
    }
    batch_close(&batch);
    progress_end(&progress);
    return !ferror(to) && written;
}

int parquet_export(char *const *files, const char *out, const char *python, bool frames)
{
    struct traces traces = {0};
    char *place = realpath(".", NULL);
    char *folder = NULL;
    char *whole;
    struct writer writer;
    bool ok = false;

    whole = *out == '/' ? strdup(out) : say_print("%s/%s", place, out);
    for (size_t length = strlen(whole); length > 1 && whole[length - 1] == '/'; length--)
        whole[length - 1] = 0;
    folder = say_print("%s.XXXXXX", whole);
    if (!*files)
        say_error("export: which traces? `dyntrace export DIR --format parquet -o OUT`");
    else if (access(whole, F_OK) == 0)
        say_error("%s: exists already, and a dataset is not added to", out);
    else if (!(traces = traces_together(files)).paths.count)
        ;
    else if (!mkdtemp(folder))
        say_error("%s: %s", out, strerror(errno));
    else if (writer_start(&writer, python ? python : program_python(), folder, whole)) {
        ok = writer_end(&writer, traces_write(&traces, writer.to, frames));
        if (ok && rename(folder, whole) != 0) {
            say_error("%s: %s", out, strerror(errno));
            ok = false;
        }
        rmdir(folder); /* the folder is empty, because a writer that failed has deleted its files */
    }
    traces_free(&traces);
    free(place);
    free(folder);
    free(whole);
    return ok ? 0 : 2;
}

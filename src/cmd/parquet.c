/* cmd/parquet.c -- traces as a dataset of Parquet files, OUT/table=T/job=J/rank=R/TRACE.parquet.
 *
 * A Python with pyarrow writes them (src/cmd/ask/parquet_write.py): Arrow's own library is the one that every engine's reader is tested
 * with, it is in no Debian release, and its C++ interface changes with each of its releases, while a wheel of it is there for every Python.
 * So nothing of it is needed to build dyntrace. Times are of the day, in nanoseconds, by the clock that the ranks share. Rows go to it as
 * CSV, a piece at a time, which its reader parses faster than we print; types are those of tables.h. One trace is open at a time.
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
#include "lib/say.h"
#include "lib/table.h"
#include "tables.h"
#include "trace/db.h"
#include "trace/result.h"
#include "trace/traces.h"

extern const char parquet_write_py[]; /* src/cmd/ask/ */

enum { PIECE = 1 << 20 };

struct writer {
    FILE *to;   /* owned: its standard input */
    pid_t pid;
};

static bool writer_start(struct writer *writer, const char *python, const char *folder, const char *place)
{
    int ends[2];

    signal(SIGPIPE, SIG_IGN); /* one that ends early has said why */
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
    return (writer->to = fdopen(ends[1], "w"));
}

/* True when all was written. */
static bool writer_end(struct writer *writer, bool whole)
{
    int status = 1;

    if (whole)
        fputs("null\n", writer->to);
    fclose(writer->to);
    waitpid(writer->pid, &status, 0);
    return whole && status == 0;
}

/* What stands before the rows of TABLE: where they belong, and the types of their columns. */
static void head_write(FILE *to, enum row_table table, const char *file, const char *job, const char *rank)
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

static void piece_write(FILE *to, FILE *piece, char *const *bytes)
{
    long length = (fflush(piece), ftell(piece));

    if (length > 0) {
        fprintf(to, "%ld\n", length);
        fwrite(*bytes, 1, (size_t)length, to);
        rewind(piece);
    }
}

/* The rows of TABLE, as CSV. */
static void table_write(FILE *to, struct db *db, enum row_table table, const char *job, const char *rank)
{
    const struct row_table_facts *facts = &row_tables[table];
    struct arena texts = {0};
    char *sql = arena_print(&texts, "SELECT "), *bytes = NULL;
    const char *names[ROW_COLUMNS];
    int columns = 0;
    size_t room;
    struct query *query;
    FILE *piece;
    struct table *rows;

    for (const struct row_column *c = facts->columns; c->name && c->id != ID_ROW; c++) {
        bool host = table == TABLE_process && !strcmp(c->name, "host");
        char *value = arena_print(&texts, host ? "COALESCE(%s, (SELECT value FROM meta WHERE key = 'host'))" : c->holds == ROW_TIME ? "%s + ?1" : "%s", c->name);
        sql = arena_print(&texts, "%s%sCAST(%s AS %s)", sql, columns ? ", " : "", value, c->holds == ROW_STRING ? "TEXT" : "INTEGER");
        names[columns++] = c->name;
    }
    query = db_query(db, arena_print(&texts, "%s FROM %s NOT INDEXED", sql, facts->name));
    query_bind_integer(query, 1, db_meta_integer(db, "started_unix_ns", 0) + db_meta_integer(db, "clock_offset_ns", 0));
    if (query_step(query)) {
        piece = open_memstream(&bytes, &room);
        rows = table_open(piece, TABLE_CSV, columns, names);
        table_headless(rows);
        head_write(to, table, db_path(db), job, rank);
        do {
            result_row(rows, query);
            if (ftell(piece) > PIECE)
                piece_write(to, piece, &bytes);
        } while (!ferror(to) && query_step(query));
        table_close(rows);
        piece_write(to, piece, &bytes);
        fputs("0\n", to);
        fclose(piece);
        free(bytes);
    }
    query_close(query);
    arena_free(&texts);
}

/* False: what is written is of no use any more. */
static bool traces_write(struct traces *traces, FILE *to, bool frames)
{
    struct progress progress = progress_begin("exporting");
    size_t written = 0;

    for (struct db *db; !ferror(to) && (db = traces_next(traces)); db_close(db)) {
        char *job = db_meta(db, "job"), *rank = db_meta(db, "rank");
        progress_tick(&progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        if (!rank) {
            struct query *one = db_query(db, "SELECT MIN(rank) FROM process HAVING MIN(rank) = MAX(rank)");
            rank = query_step(one) ? strdup(query_text(one, 0, NULL)) : NULL;
            query_close(one);
        }
        for (int i = 0; i < ROW_TABLES && !db_failed(db); i++)
            if (i != TABLE_frame || frames)
                table_write(to, db, (enum row_table)i, job, rank);
        if (db_failed(db)) /* which was said; what was read of it stays */
            traces_left_out(1);
        else
            written++;
        free(job);
        free(rank);
    }
    progress_end(&progress);
    return !ferror(to) && written;
}

int parquet_export(char *const *files, const char *out, const char *python, bool frames)
{
    struct traces traces = {0};
    char *place = realpath(".", NULL), *folder = NULL, *whole;
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
        rmdir(folder); /* the writer has emptied it, where it failed */
    }
    traces_free(&traces);
    free(place);
    free(folder);
    free(whole);
    return ok ? 0 : 2;
}

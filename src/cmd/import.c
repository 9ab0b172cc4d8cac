/* cmd/import.c -- `dyntrace import`: torch's own log as a trace.
 *
 * Runs in: the viewer.
 *
 * With TORCH_TRACE=DIR torch writes a file for each process, of records in JSON.
 * They go into a temporary table as they are; SQL then makes rows of them
 * (schemas/import/map.sql). The log has compiles, not calls: frames, lookups, hits
 * and what guards took are not in it, and so not in the trace. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "command.h"
#include "cmd/import/import.h"
#include "lib/json.h"
#include "lib/out_file.h"
#include "lib/progress.h"
#include "lib/say.h"
#include "cmd/writer.h"
#include "schema.h"

enum { TICK_ROWS = 1 << 8 };

struct import {
    struct writer *writer;        /* owned */
    struct insert *record, *valid, *process, *loss; /* owned */
    struct progress progress;
    int64_t bytes, bytes_all, records, processes, broken;
};

/* ---- records into a table -------------------------------------------------- */

/* The process PID of the FILE that is read; 0: it cannot be written, which was said. */
static int64_t process_of(struct import *import, const char *file, int64_t pid)
{
    int64_t id = 0;
    struct insert *find = writer_insert(import->writer, "SELECT process_id FROM source WHERE file = ?1 AND pid = ?2");

    if (!find)
        return 0;
    insert_text(find, 1, file);
    insert_integer(find, 2, pid);
    if (!insert_find(find, &id)) {
        id = ++import->processes;
        insert_integer(import->process, 1, id);
        insert_text(import->process, 2, file);
        insert_integer(import->process, 3, pid);
        if (!insert_run(import->process))
            id = 0;
    }
    insert_close(find);
    return id;
}

/* Nanoseconds of 1970 as if the record's local time were UTC. Its year is not written: it is no later than the file's. */
static int64_t local_ns(const struct record *record, const struct stat *st)
{
    struct tm tm = {.tm_mon = (int)record->month - 1, .tm_mday = (int)record->day};
    struct tm changed;
    time_t seconds;

    if (!gmtime_r(&st->st_mtime, &changed))
        changed.tm_year = 70;
    tm.tm_year = changed.tm_year;
    seconds = timegm(&tm);
    if (seconds > st->st_mtime + 2 * 86400) { /* written in December, touched in January */
        tm = (struct tm){.tm_mon = (int)record->month - 1, .tm_mday = (int)record->day, .tm_year = changed.tm_year - 1};
        seconds = timegm(&tm);
    }
    return (int64_t)seconds * 1000000000 + record->ns;
}

static bool file_read(struct import *import, const char *path, const char *name)
{
    struct log *log = log_open(path);
    struct record record;
    struct stat st = {0};
    int64_t pid = -1, process = 0, before = import->bytes, valid, broken = 0, rows = 0;
    bool ok = log != NULL;

    if (log && stat(path, &st) != 0)
        st.st_mtime = time(NULL);
    while (ok && log_next(log, &record)) {
        if (!(++rows % TICK_ROWS))
            progress_tick(&import->progress, before + log_place(log), import->bytes_all);
        insert_text(import->valid, 1, record.json);
        if (!insert_find(import->valid, &valid) || !valid) {
            broken++;
            continue;
        }
        if (record.pid != pid) {
            pid = record.pid;
            process = process_of(import, name, pid);
        }
        insert_integer(import->record, 1, process);
        insert_integer(import->record, 2, local_ns(&record, &st));
        insert_text(import->record, 3, record.json);
        insert_text(import->record, 4, record.text);
        ok = process && insert_run(import->record);
        import->records++;
    }
    if (ok) {
        broken += log_broken(log);
        ok = !log_failed(log);
        import->bytes = before + log_place(log);
        import->broken += broken;
    }
    if (ok && broken) {
        char *cause = NULL;
        if (asprintf(&cause, "import: %s: lines and records that are damaged", name) < 0)
            cause = NULL;
        if (process)
            insert_integer(import->loss, 1, process);
        insert_integer(import->loss, 2, broken);
        insert_text(import->loss, 3, cause);
        ok = insert_run(import->loss);
        free(cause);
    }
    log_close(log);
    return ok;
}

/* ---- the directory --------------------------------------------------------- */

static int is_log(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && !strcmp(entry->d_name + length - 4, ".log");
}

/* All logs in DIRECTORY, or that one file. */
static bool logs_read(struct import *import, const char *directory)
{
    struct dirent **entries = NULL;
    struct stat st;
    int count, files = 0;
    bool ok = true;

    if (stat(directory, &st) != 0) {
        say_error("%s: %s", directory, strerror(errno));
        return false;
    }
    if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(directory, '/');
        import->bytes_all = st.st_size;
        return file_read(import, directory, slash ? slash + 1 : directory);
    }
    count = S_ISDIR(st.st_mode) ? scandir(directory, &entries, is_log, alphasort) : -1;
    if (count < 0) {
        say_error("%s: %s", directory, S_ISDIR(st.st_mode) ? strerror(errno) : "neither a directory nor a file");
        return false;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            char *path = NULL;
            if (asprintf(&path, "%s/%s", directory, entries[i]->d_name) < 0) {
                say_error("%s: out of memory", directory);
                ok = false;
                break;
            }
            if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
                if (!pass)
                    import->bytes_all += st.st_size;
                else if (ok) {
                    files++;
                    ok = file_read(import, path, entries[i]->d_name);
                }
            }
            free(path);
        }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    if (ok && !files) {
        say_error("%s: no *.log in it; torch writes them there when TORCH_TRACE=%s is set", directory, directory);
        ok = false;
    }
    return ok;
}

static bool meta_write(struct import *import, const char *directory)
{
    struct insert *meta = writer_insert(import->writer, "INSERT INTO meta VALUES (?1, ?2)");
    char *from = NULL;
    size_t bytes = 0;
    struct json json = {.out = open_memstream(&from, &bytes)};
    bool ok = meta && json.out;

    if (json.out) {
        json_string(&json, NULL, directory);
        fclose(json.out);
    }
    if (ok) {
        const char *values[][2] = {{"dyntrace_version", DYNTRACE_VERSION}, {"state", "complete"}, {"clock", "wall"}, {"imported_from", from}};
        for (size_t i = 0; ok && i < sizeof values / sizeof *values; i++) {
            insert_text(meta, 1, values[i][0]);
            insert_text(meta, 2, values[i][1]);
            ok = insert_run(meta);
        }
    }
    insert_close(meta);
    free(from);
    return ok;
}

static int logs_import(const char *directory, const char *path, bool force)
{
    struct import import = {0};
    struct out_file out = {0};
    bool ok = out_open(&out, path, force);

    if (!ok)
        goto out;
    import.progress = progress_begin("importing");
    ok = (import.writer = writer_open(out.temporary)) && writer_run(import.writer, schema_statement("import/log/tables")) &&
         (import.record = writer_insert(import.writer, schema_statement("import/log/record"))) &&
         (import.valid = writer_insert(import.writer, "SELECT json_valid(?1)")) &&
         (import.process = writer_insert(import.writer, "INSERT INTO source VALUES (?1, ?2, ?3)")) &&
         (import.loss = writer_insert(import.writer, "INSERT INTO loss(process_id, at_ns, events, cause) VALUES (?1, 0, ?2, ?3)")) &&
         logs_read(&import, directory);
    if (ok && !import.records) {
        say_error("%s: nothing in its logs is a record of torch's", directory);
        ok = false;
    }
    import.progress.what = "making the trace";
    ok = ok && meta_write(&import, directory) && writer_run(import.writer, schema_statement("import/map")) && import_texts(import.writer);
    insert_close(import.record);
    insert_close(import.valid);
    insert_close(import.process);
    insert_close(import.loss);
    ok = ok && writer_run(import.writer, "DROP TABLE record; DROP TABLE source") && writer_finish(import.writer);
    progress_end(&import.progress);
    writer_close(import.writer);
    ok = ok && out_commit(&out);
    if (ok && import.broken)
        say_error("%s: %" PRId64 " damaged lines were passed over; `dyntrace report` says where", directory, import.broken);
out:
    out_close(&out);
    return ok ? 0 : 2;
}

static int import_main(int count, char **operands)
{
    if (!count) {
        say_error("import: which directory? `dyntrace import TORCH_TRACE_DIR -o FILE`");
        return 2;
    }
    if (!out_is_named(writer_given.out)) {
        say_error("import: -o FILE names the trace to make");
        return 2;
    }
    if (out_is(writer_given.out, operands[0])) {
        say_error("import: %s: is the log itself", writer_given.out);
        return 2;
    }
    return logs_import(operands[0], writer_given.out, writer_given.force);
}

const struct command command_import = {
    .name = "import",
    .summary = "logs that torch wrote with TORCH_TRACE, as a trace",
    .operands = "TORCH_TRACE_DIR",
    .about = "The logs that torch writes with TORCH_TRACE=DIR, of all ranks, as one trace: compiles and their phases, guards, "
             "recompiles, graph breaks, graphs, bytecode. What torch does not log is NULL or not there: calls, hits, lookups. "
             "Damaged lines are counted in the table `loss`.",
    .options = writer_options,
    .operands_most = 1,
    .too_many = "one directory at a time; `dyntrace merge` joins traces",
    .run = import_main,
};

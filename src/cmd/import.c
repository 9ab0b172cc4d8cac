/* cmd/import.c -- `dyntrace import`: converts torch's own log to a trace.
 *
 * With TORCH_TRACE=DIR torch writes a file for each process, of records:
 *
 *     V1121 15:44:00.566000 28697 torch/_dynamo/utils.py:2350] {...}
 *     <tab>a line of the record's text
 *
 * The records are copied unchanged into a temporary table. From this table SQL makes the rows of a
 * trace (schemas/import/map.sql, text.sql). The log has compiles, but no calls, so the trace has no
 * frames, lookups, hits or guard times.
 *
 * Files may come from strangers, may be cut short by a kill, and may have two writers. A text is
 * therefore imported only if it has the length and the MD5 that its record gives. Otherwise the
 * text is left out, and a row of `loss` has the cause. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <md5.h>
#include <sys/stat.h>
#include <time.h>

#include "command.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "schema.h"
#include "secret.h"
#include "trace/db.h"
#include "versions.h"

enum {
    TICK_ROWS = 1 << 8,
    /* the most bytes of a line or of a record's text; readers accept rows of up to 16 MB */
    MOST = 15 << 20,
};

struct import {
    struct db *out;            /* owned */
    struct query *at, *record; /* owned */
    LIST(char *) files;        /* paths of the log files; the list and the paths are owned */
    struct progress progress;
    int64_t read, bytes; /* bytes read so far, and bytes of all files */
    int64_t damaged;     /* number of lines and texts of the log that were left out */
};

/* ---- reading the records of a log file ----------------------------------- */

struct line {
    char *text; /* owned text of the line, which ends with a NUL */
    size_t length, room;
    bool text_only; /* the line is usable: it has no NUL and is not too long */
};

struct log {
    FILE *file; /* owned */
    struct line head, line;
    LIST(char) text;  /* the text of the record of the log that is being read */
    const char *name; /* borrowed */
    int64_t rank;     /* the rank that the name of the log file has, or -1 */
    int64_t number;   /* line number of the last line that was read */
    /* lines end with "\r\n", for example because the file was copied through Windows */
    bool returns;
    int64_t changed;      /* modification time of the log file, in seconds */
    int64_t pid, process; /* pid and process_id of the last record that became a row */
    int64_t broken;       /* number of lines and records of the log that were skipped */
};

/* A record of torch's log. */
struct record {
    /* borrowed until the next record is read; text: NULL if there is none */
    const char *json, *text;
    size_t length;         /* length of `text` in bytes */
    bool readable;         /* the text is usable: it has no NUL and is not too long */
    char day[5], time[16]; /* date and time of the record, such as "1121" and "15:44:00.566000" */
    int64_t pid, line;     /* line: the line of the file where the record begins */
};

/* Read the next line of LOG, without its line end. Returns false at the end of the file. */
static bool read_next_line(struct import *import, struct log *log, struct line *line)
{
    ssize_t got = getline(&line->text, &line->room, log->file);

    if (got < 0)
        return false;
    import->read += got;
    log->number++;
    line->length = (size_t)got;
    if (line->text[line->length - 1] == '\n')
        line->length--;
    if (log->returns && line->length && line->text[line->length - 1] == '\r')
        line->length--;
    line->text[line->length] = 0;
    line->text_only = line->length <= MOST && strlen(line->text) == line->length;
    return true;
}

/* Read the first line of a record: "V1121 15:44:00.566000 28697 torch/_dynamo/utils.py:2350]
 * {...}", perhaps with "[rank0]:" before it. Returns false if LINE is not such a line. */
static bool parse_record_head(const char *line, struct record *record)
{
    static const char form[] = "%*1[A-Z]%4[0-9] %15[0-9:.] %" SCNd64;
    const char *rank = *line == '[' ? strstr(line, "]:") : NULL;
    const char *json = strstr(line, "] {");

    record->json = json ? json + 2 : NULL;
    return json &&
           sscanf(rank ? rank + 2 : line, form, record->day, record->time, &record->pid) == 3 &&
           record->pid >= 0;
}

/* Is the next line of FILE a line of a record's text? Such lines begin with a tab. */
static bool is_text_next(FILE *file)
{
    return ungetc(getc(file), file) == '\t';
}

/* Append the line that was read last, without its tab, to RECORD's text. */
static void append_record_text(struct log *log, struct record *record)
{
    /* the tab is not copied, so the line and its line end have this length */
    size_t length = log->line.length;
    char *more;

    if (!log->line.text_only || log->text.count + length > MOST)
        record->readable = false;
    if (!record->readable)
        return;
    more = list_add_many(&log->text, length);
    memcpy(more, log->line.text + 1, length - 1);
    more[length - 1] = '\n';
}

/* Read the next record. Returns false at the end of the file. Lines that are not records are
 * skipped and counted. */
static bool read_next_record(struct import *import, struct log *log, struct record *record)
{
    while (read_next_line(import, log, &log->head)) {
        bool is_record;
        if (log->number == 1 && log->head.length)
            log->returns = log->head.text[log->head.length - 1] == '\r';
        is_record = log->head.text_only && parse_record_head(log->head.text, record);
        record->line = log->number;
        record->readable = true;
        record->text = NULL;
        log->text.count = 0;
        while (is_text_next(log->file) && read_next_line(import, log, &log->line)) {
            log->broken += !is_record;
            append_record_text(log, record);
            record->text = "";
        }
        if (is_record && log->text.count) {
            record->length = log->text.count - 1;
            log->text.at[record->length] = 0; /* replace the line end of the last line by a NUL */
            record->text = log->text.at;
        }
        if (is_record)
            return true;
        log->broken += log->head.length > 0;
    }
    return false;
}

/* Return why the text of RECORD must be left out. MD5 is the digest that the record gives, or "".
 * Returns NULL if the text is complete, or if the record has no text. */
static const char *find_text_damage(const struct record *record, const char *md5)
{
    bool is_digest = strlen(md5) == MD5_DIGEST_STRING_LENGTH - 1;
    char hex[MD5_DIGEST_STRING_LENGTH];

    if (!record->text)
        return *md5 ? "is missing" : NULL;
    if (!record->readable)
        return "is longer than 15 MB or has a NUL in it";
    if (!is_digest)
        return "has no md5, so that nobody knows whether it is whole";
    MD5Data((const uint8_t *)record->text, record->length, hex);
    return strcasecmp(hex, md5) ? "was cut or altered: it does not have its md5" : NULL;
}

/* Run STATEMENT with the parameters TEXT, NUMBER and OTHER. Returns its first value, or 0 if there
 * is no row. */
static int64_t run_statement(struct import *import, const char *statement, const char *text,
                             int64_t number, int64_t other)
{
    struct query *query = db_query(import->out, schema_statement(statement));
    int64_t found = 0;

    query_bind_text(query, 1, text);
    query_bind_integer(query, 2, number);
    query_bind_integer(query, 3, other);
    if (query_step(query))
        found = query_integer(query, 0);
    query_close(query);
    return found;
}

/* Store RECORD as a row, without its text if the text is damaged. Returns false if RECORD is not
 * valid. */
static bool store_record(struct import *import, struct log *log, const struct record *record)
{
    struct query *at = import->at;
    struct query *insert = import->record;
    const char *damage;
    bool sound;

    query_bind_text(at, 1, record->json);
    query_bind_text(at, 2, record->day);
    query_bind_text(at, 3, record->time);
    query_bind_integer(at, 4, log->changed);
    sound = query_step(at) && query_type(at, 0) == QUERY_INTEGER;
    if (sound) {
        if (record->pid != log->pid) {
            log->pid = record->pid;
            log->process =
                run_statement(import, "import/log/process", log->name, log->pid, log->rank);
        }
        damage = find_text_damage(record, query_text(at, 1, NULL));
        import->damaged += damage != NULL;
        query_bind_integer(insert, 1, log->process);
        query_bind_column(insert, 2, at, 0);
        query_bind_text(insert, 3, record->json);
        query_bind_text(insert, 4, damage ? NULL : record->text);
        query_bind_integer(insert, 5, record->line);
        query_bind_text(insert, 6, damage);
        query_execute(insert);
    }
    query_reset(at);
    return sound;
}

/* Return the rank in NAME, the name of a log file: 3 for "dedicated_log_torch_trace_rank_3_x1.log".
 * Returns -1 if the name has no rank. */
static int64_t rank_of_name(const char *name)
{
    static const char mark[] = "rank_";
    const char *found = strstr(name, mark);
    int64_t rank = -1;

    if (found && (found == name || !isalnum((unsigned char)found[-1])))
        found += strlen(mark);
    else
        found = "";
    if (isdigit((unsigned char)*found))
        rank = strtoll(found, NULL, 10);
    return rank <= INT32_MAX ? rank : -1;
}

/* Import the file PATH. Reports an error and returns false if the file cannot be read. */
static bool import_log_file(struct import *import, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct log log = {.file = fopen(path, "re"),
                      .name = slash ? slash + 1 : path,
                      .rank = rank_of_name(slash ? slash + 1 : path),
                      .changed = time(NULL),
                      .pid = -1};
    struct record record;
    struct stat st;
    bool whole;

    bounds_set_for_trace(path);
    /* do not limit the time, which grows with the square of the number of compiles */
    bounds_lift_time_limit();
    if (log.file && fstat(fileno(log.file), &st) == 0)
        log.changed = st.st_mtime;
    for (int64_t rows = 1;
         log.file && !db_has_failed(import->out) && read_next_record(import, &log, &record);
         rows++) {
        if (rows % TICK_ROWS == 0)
            progress_tick(&import->progress, import->read, import->bytes);
        log.broken += !store_record(import, &log, &record);
    }
    whole = log.file && (feof(log.file) || db_has_failed(import->out));
    if (!whole)
        say_error("%s: %s", path, strerror(errno));
    import->damaged += log.broken;
    if (log.broken)
        run_statement(import, "import/log/loss", log.name, log.process, log.broken);
    if (log.file)
        fclose(log.file);
    free(log.line.text);
    free(log.head.text);
    list_free(&log.text);
    return whole;
}

/* ---- finding the log files in a directory -------------------------------- */

static int is_named_like_log(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && !strcmp(entry->d_name + length - 4, ".log");
}

static void add_log_file(struct import *import, char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        *list_add(&import->files) = path;
        import->bytes += st.st_size;
    } else {
        free(path);
    }
}

/* Is PATH a regular file whose first line is a record of torch's structured log? */
static bool begins_with_record(const char *path)
{
    struct record record;
    struct stat st;
    char line[4096];
    bool found;
    FILE *file;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    file = fopen(path, "re");
    found = file && fgets(line, sizeof line, file) && parse_record_head(line, &record);
    if (file)
        fclose(file);
    return found;
}

/* Add those of the COUNT ENTRIES of DIRECTORY that are logs. If NAMED, a log is recognized by its
 * name, otherwise by its content. */
static void add_log_entries(struct import *import, const char *directory, struct dirent **entries,
                            int count, bool named)
{
    for (int i = 0; i < count; i++) {
        char *path = say_print("%s/%s", directory, entries[i]->d_name);
        bool is_wanted = named ? is_named_like_log(entries[i]) : begins_with_record(path);
        if (is_wanted)
            add_log_file(import, path);
        else
            free(path);
    }
}

/* Find all logs in DIRECTORY, which may also be a single file. Reports an error and returns false
 * if there are no logs. */
static bool find_log_files(struct import *import, const char *directory)
{
    struct dirent **entries;
    struct stat st;
    int count;

    if (stat(directory, &st) != 0) {
        say_error("%s: %s", directory, strerror(errno));
        return false;
    }
    if (S_ISREG(st.st_mode)) {
        add_log_file(import, strdup(directory));
        return true;
    }
    count = S_ISDIR(st.st_mode) ? scandir(directory, &entries, NULL, alphasort) : -1;
    if (count < 0) {
        say_error("%s: %s", directory,
                  S_ISDIR(st.st_mode) ? strerror(errno) : "neither a directory nor a file");
        return false;
    }
    add_log_entries(import, directory, entries, count, true);
    if (!import->files.count)
        add_log_entries(import, directory, entries, count, false);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    if (!import->files.count)
        say_error(
            "%s: no *.log in it, nor another file that torch writes there when TORCH_TRACE=%s "
            "is set",
            directory, directory);
    return import->files.count;
}

static bool import_all_files(struct import *import, const char *directory)
{
    bool ok = db_run(import->out, schema_statement("import/log/tables"));

    db_run(import->out, "BEGIN");
    import->record = db_query(import->out, schema_statement("import/log/record"));
    import->at = db_query(import->out, schema_statement("import/log/at"));
    for (size_t i = 0; ok && i < import->files.count; i++)
        ok = import_log_file(import, import->files.at[i]);
    query_close(import->record);
    query_close(import->at);
    if (!ok || db_has_failed(import->out))
        return false;
    if (!db_integer(import->out, 0, "SELECT EXISTS (SELECT 1 FROM source)")) {
        say_error("%s: nothing in its logs is a record of torch's", directory);
        return false;
    }
    import->progress.what = "making the trace";
    return true;
}

/* ---- replacing secret values in the new trace ---------------------------- */

static struct {
    LIST(char) patterns; /* values of --redact, each followed by a NUL */
    uint32_t pattern_count;
    bool keep_secrets; /* --no-redact */
} secrets;

/* Read the value of --redact. */
static const char *read_redact_pattern(const struct option *option, const char *value)
{
    size_t bytes = strlen(value) + 1;

    (void)option;
    if (!*value)
        return option_empty;
    memcpy(list_add_many(&secrets.patterns, bytes), value, bytes);
    secrets.pattern_count++;
    return NULL;
}

/* Replace the secret values in a text. ROW has a rowid, the text, and the guard source if the text
 * is about a guard, otherwise NULL. If the text has changed, store it by UPDATE. Returns false if
 * memory ran out. */
static bool redact_text_of_row(struct query *row, struct query *update)
{
    const struct secret_rules rules = {secrets.patterns.at, secrets.pattern_count};
    struct secret_text plain = {0}, literals = {0};
    enum secret level = SECRET_NO;
    size_t bytes;
    const char *text;
    bool has_changed, ok;

    if (query_type(row, 2) != QUERY_NULL) {
        text = query_text(row, 2, &bytes);
        level = secret_classify_source(&rules, text, bytes);
    }
    text = query_whole_value(row, 1, &bytes);
    secret_redact(&rules, false, text, bytes, &plain);
    if (level && plain.text)
        secret_copy_without_literals(&literals, level, plain.text, plain.text + plain.bytes);
    ok = !plain.failed && !literals.failed;
    has_changed = plain.changed || literals.changed;
    if (ok && has_changed) {
        query_reset(update);
        query_bind_text(update, 1, literals.text ? literals.text : plain.text);
        query_bind_integer(update, 2, query_integer(row, 0));
        query_step(update);
    }
    free(plain.text);
    free(literals.text);
    return ok;
}

/* Replace the secret values in all texts of the new trace. Returns false on error, which has been
 * reported. */
static bool redact_all_texts(struct import *import)
{
    char *patterns = json_array(secrets.patterns.at, secrets.patterns.count);
    bool ok = true;

    run_statement(import, "import/log/redact", secrets.keep_secrets ? "off" : patterns, 0, 0);
    free(patterns);
    if (secrets.keep_secrets)
        return true;
    /* overwrite deleted data with zeros, because it contains the secrets that were replaced */
    db_run(import->out, "PRAGMA secure_delete = ON");
    db_rows(texts, import->out, schema_statement("import/redact/texts"))
    {
        const char *table = query_whole_value(texts, 0, NULL);
        const char *column = query_whole_value(texts, 1, NULL);
        const char *source =
            query_type(texts, 2) == QUERY_NULL ? "NULL" : query_whole_value(texts, 2, NULL);
        char *read =
            say_print("SELECT rowid, %s, %s FROM %s WHERE %s <> ''", column, source, table, column);
        char *write = say_print("UPDATE %s SET %s = ?1 WHERE rowid = ?2", table, column);
        struct query *update = db_query(import->out, write);
        db_rows(row, import->out, read)
        {
            ok = redact_text_of_row(row, update) && ok;
        }
        query_close(update);
        free(read);
        free(write);
    }
    if (!ok)
        say_error("import: out of memory");
    return ok;
}

/* Print warnings about the logs in DIRECTORY, which schemas/import/doubt.sql found. */
static void print_warnings(struct import *import, const char *directory)
{
    progress_end(&import->progress);
    db_rows(row, import->out, "SELECT text FROM notice ORDER BY rowid LIMIT 20")
        say_error("%s: %s", directory, query_text(row, 0, NULL));
}

static int import_main(int count, char **operands)
{
    struct import import = {0};
    struct out_file out = {0};
    bool ok = false;

    if (!count) {
        say_error("import: which directory? `dyntrace import TORCH_TRACE_DIR -o FILE`");
        return 2;
    }
    if (!out_is_named(out_given.path)) {
        say_error("import: -o FILE names the trace to make");
        return 2;
    }
    if (out_is_same_file(out_given.path, operands[0])) {
        say_error("import: %s: is the log itself", out_given.path);
        return 2;
    }
    if (!out_open(&out, out_given.path, out_given.force))
        return 2;
    import.progress = progress_begin("importing");
    if (find_log_files(&import, operands[0]) && (import.out = db_create_trace(out.temporary)) &&
        import_all_files(&import, operands[0])) {
        run_statement(&import, "import/log/version", DYNTRACE_VERSION, 0, 0);
        run_statement(&import, "import/log/meta", operands[0], 0, 0);
        db_run(import.out, schema_statement("import/map"));
        db_run(import.out, schema_statement("import/aspects"));
        db_run(import.out, schema_statement("import/text"));
        db_run(import.out, schema_statement("import/tested"));
        db_run(import.out, schema_statement("import/doubt"));
        print_warnings(&import, operands[0]);
        ok = redact_all_texts(&import);
        db_run(import.out, "DROP TABLE record; DROP TABLE source; COMMIT");
        ok = ok && db_finish_trace(import.out);
    }
    progress_end(&import.progress);
    db_close(import.out);
    for (size_t i = 0; i < import.files.count; i++)
        free(import.files.at[i]);
    list_free(&import.files);
    ok = ok && out_commit(&out);
    if (ok && import.damaged)
        say_error("%s: %" PRId64 " damaged line%s or text%s left out; `dyntrace report` says where",
                  operands[0], import.damaged, import.damaged == 1 ? "" : "s",
                  import.damaged == 1 ? " was" : "s were");
    out_close(&out);
    return ok ? 0 : 2;
}

static const struct option options[] = {
    {"output", 'o', "FILE", option_text, &out_given.path, .help = "the trace to make",
     .needed = true},
    {"force", .read = option_flag, .to = &out_given.force, .help = "replace FILE"},
    {"redact", .value = "PATTERN", .read = read_redact_pattern, .many = true,
     .help = "do not keep values whose name or key matches, as `run --redact`; may be repeated. "
             "Values whose names look secret are not kept either: <redacted> stands for them"},
    {"no-redact", .read = option_flag, .to = &secrets.keep_secrets,
     .help = "keep values whose names look secret, too"},
    OPTION_END,
};

const struct command command_import = {
    .name = "import",
    .summary = "logs that torch wrote with TORCH_TRACE, as a trace",
    .operands = "TORCH_TRACE_DIR",
    .about = "The logs that torch writes with TORCH_TRACE=DIR, of all ranks, as one trace: "
             "compiles and their phases, guards, recompiles, graph breaks, graphs, bytecode. What "
             "torch does not log is NULL or not there: calls, hits, lookups. A text that is "
             "missing, cut or altered, by its md5, is left out, and a row of the table `loss`. "
             "Values whose names look secret are left out of texts, as of a recording.",
    .options = options,
    .operands_most = 1,
    .too_many = "one directory at a time; `dyntrace merge` joins traces",
    .run = import_main,
};

/* cmd/merge.c -- `dyntrace merge`: many traces as one.
 *
 * Runs in: the viewer.
 *
 * The traces are copied one after the other, row by row. Ids of each are moved
 * up by what the ones before it have used, of that kind:
 *
 *     A: frames 1..900     B: frames 1..500  ->  901..1400
 *
 * so parents keep smaller ids than their children and a thread's frames follow
 * start time, as within each trace. Times are moved so that they count from the
 * start of the earliest, by the wall clocks of the machines. A process is known
 * by (host, pid, start): `process.host` says the machine where they differ, and a
 * process that two traces have is refused, for its frames would count twice.
 *
 * What a column holds is said once, in `tables`: a new column is a new word. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/progress.h"
#include "lib/say.h"
#include "cmd/writer.h"

enum { TICK_ROWS = 1 << 14, COLUMNS = 20, FRAME_END = 7 /* the column end_ns of `frame` */ };

static struct {
    const char *out;
    bool force;
} given;

static const struct option options[] = {
    {"output", 'o', "FILE", option_text, &given.out, .help = "the trace to make", .needed = true},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE"},
    OPTION_END,
};

/* ---- the tables ------------------------------------------------------------ */

/* After a column's name: ":t" a time, ":X" an id of the kind X. The first column of a table with a * is its key. */
static const struct {
    const char *name, *columns;
} tables[] = {
    {"process", "*process_id:P pid parent_process_id:P rank local_rank argv executable python_version torch_version mode"
                " torch_mode torch_note start_ns:t end_ns:t exit_code exit_signal host"},
    {"thread", "*thread_id:T process_id:P os_tid name"},
    {"code", "*code_id:C process_id:P filename qualname first_line kind origin_code_id:C fingerprint"},
    {"frame", "*frame_id:F thread_id:T parent_id:F code_id:C kind outcome start_ns:t end_ns:t cache_entry_id:E exit"},
    {"code_total", "*code_id:C calls total_ns self_ns raised"},
    {"signature", "*signature_id:S text"},
    {"lookup", "*lookup_id:L frame_id:F thread_id:T code_id:C start_ns:t duration_ns outcome cache_entry_id:E entries_checked"
               " signature_id:S"},
    {"guard_check", "*guard_check_id:K lookup_id:L position cache_entry_id:E result failed_guard_id:G guards_run duration_ns"},
    {"cache_entry", "*cache_entry_id:E code_id:C compile_id:M label backend region_id guard_count born_ns:t died_ns:t death_cause"},
    {"guard", "*guard_id:G cache_entry_id:E ordinal kind source expression user_stack"},
    {"guard_order", "cache_entry_id:E from_ns:t ordinals"},
    {"compile", "*compile_id:M frame_id:F code_id:C thread_id:T label start_ns:t end_ns:t outcome cache_entry_id:E reason sticky"},
    {"compile_phase", "compile_id:M name start_ns:t end_ns:t label"},
    {"code_mark", "code_id:C at_ns:t action recursive_action region_id reason"},
    {"recompile_cause", "compile_id:M cache_entry_id:E ordinal guard_id:G kind source aspect dimension expected actual text how"},
    {"graph_break", "*graph_break_id:B compile_id:M code_id:C line offset reason user_stack resume_code_id:C"},
    {"graph", "*graph_id:R compile_id:M name node_count"},
    {"graph_node", "graph_id:R ordinal opcode name target args kwargs"},
    {"listing", "compile_id:M kind text"},
    {"loss", "process_id:P thread_id:T at_ns:t events cause"},
};
enum { TABLES = sizeof tables / sizeof *tables };

struct merge {
    struct writer *writer; /* owned */
    int64_t base[128];     /* by kind: added to ids of the trace being copied */
    int64_t top[128];      /* by kind: the greatest id written so far */
    int64_t shift_ns;      /* added to its times */
    const char *host;      /* borrowed: its machine, where its rows do not say */
    int64_t *sig_old, *sig_new; /* owned: its signatures; each text is stored once */
    size_t sig_count;
    struct progress progress;
    int64_t rows, frames, open; /* copied */
};

struct column {
    char name[32], kind; /* kind: 0 as it is, 't', or that of an id */
    bool there;          /* the trace has it */
};

/* The columns of the I-th table as DB has them. How many; *KEYED: the first is its key. */
static int columns_of(struct db *db, int i, struct column made[COLUMNS], bool *keyed)
{
    const char *s = tables[i].columns;
    int count = 0;

    *keyed = *s == '*';
    s += *keyed;
    while (*s) {
        size_t length = strcspn(s, " :");
        struct column *c = &made[count++];
        *c = (struct column){.kind = s[length] == ':' ? s[length + 1] : 0};
        memcpy(c->name, s, length);
        c->there = find_column(db, tables[i].name, c->name);
        s += length + (c->kind ? 2 : 0);
        s += *s == ' ';
    }
    return count;
}

/* An id or a time of the trace being copied, as it is in the new one. False: it cannot be. */
static bool moved(struct merge *merge, char kind, int64_t value, int64_t *made)
{
    if (kind == 't')
        return !__builtin_add_overflow(value, merge->shift_ns, made);
    if (kind == 'S') {
        size_t low = 0, high = merge->sig_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (merge->sig_old[middle] < value)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < merge->sig_count && merge->sig_old[low] == value) {
            *made = merge->sig_new[low];
            return true;
        }
    }
    if (value < 0 || __builtin_add_overflow(value, merge->base[(int)kind], made))
        return false;
    if (*made > merge->top[(int)kind])
        merge->top[(int)kind] = *made;
    return true;
}

static bool table_copy(struct merge *merge, struct db *db, int i)
{
    struct column columns[COLUMNS];
    bool keyed, ok = true;
    int count = columns_of(db, i, columns, &keyed);
    char *select = NULL, *into = NULL;
    size_t select_bytes, into_bytes;
    FILE *from = open_memstream(&select, &select_bytes), *to = open_memstream(&into, &into_bytes);
    struct query *query = NULL;
    struct insert *insert = NULL;
    int64_t value = 0;
    bool frames = !strcmp(tables[i].name, "frame");

    if (!from || !to)
        say_error("out of memory");
    if (from && to && columns[0].there) { /* else the table is not there: an older trace */
        fputs("SELECT ", from);
        fprintf(to, "INSERT INTO %s(", tables[i].name);
        for (int c = 0; c < count; c++) {
            fprintf(from, "%s%s", c ? ", " : "", columns[c].there ? columns[c].name : "NULL");
            fprintf(to, "%s%s", c ? ", " : "", columns[c].name);
        }
        fprintf(from, keyed ? " FROM %s ORDER BY %s" : " FROM %s", tables[i].name, columns[0].name);
        fputs(") VALUES (", to);
        for (int c = 0; c < count; c++)
            fprintf(to, "%s?%d", c ? ", " : "", c + 1);
        fputs(")", to);
        fflush(from);
        fflush(to);
        query = db_query(db, select);
        insert = query ? writer_insert(merge->writer, into) : NULL;
        ok = insert != NULL;
        while (ok && query_step(query)) {
            if (!(++merge->rows % TICK_ROWS))
                progress_tick(&merge->progress, 0, 0);
            for (int c = 0; ok && c < count; c++) {
                if (columns[c].kind && query_type(query, c) == QUERY_INTEGER) {
                    ok = moved(merge, columns[c].kind, query_integer(query, c), &value);
                    insert_integer(insert, c + 1, value);
                } else if (i == 0 && query_type(query, c) == QUERY_NULL && !strcmp(columns[c].name, "host")) {
                    insert_text(insert, c + 1, merge->host);
                } else if (keyed && !c) {
                    ok = false; /* a key that is no number */
                } else {
                    insert_copy(insert, c + 1, query, c);
                }
            }
            if (!ok)
                say_error("%s: table %s has an id or a time that cannot be: `dyntrace fsck` tells more", db_path(db), tables[i].name);
            else
                ok = insert_run(insert);
            merge->frames += frames;
            merge->open += frames && query_type(query, FRAME_END) == QUERY_NULL;
        }
        ok = query_close(query) && ok;
        insert_close(insert);
    } else {
        ok = from && to;
    }
    if (from)
        fclose(from);
    if (to)
        fclose(to);
    free(select);
    free(into);
    return ok;
}

/* Signatures: those that are there already keep their number. */
static bool signatures_copy(struct merge *merge, struct db *db)
{
    struct query *query;
    struct insert *find, *insert;
    size_t room = 0;
    bool ok;

    merge->sig_count = 0;
    if (!find_column(db, "signature", "text"))
        return true;
    query = db_query(db, "SELECT signature_id, text FROM signature ORDER BY signature_id");
    find = writer_insert(merge->writer, "SELECT signature_id FROM signature WHERE text = ?1");
    insert = writer_insert(merge->writer, "INSERT INTO signature VALUES (?1, ?2)");
    ok = query && find && insert;
    while (ok && query_step(query)) {
        int64_t id = 0;
        if (merge->sig_count == room) {
            int64_t *old, *new;
            room = room ? room * 2 : 256;
            old = realloc(merge->sig_old, room * sizeof *old);
            merge->sig_old = old ? old : merge->sig_old;
            new = realloc(merge->sig_new, room * sizeof *new);
            merge->sig_new = new ? new : merge->sig_new;
            if (!old || !new) {
                say_error("out of memory");
                ok = false;
                break;
            }
        }
        insert_copy(find, 1, query, 1);
        if (!insert_find(find, &id)) {
            id = ++merge->top['S'];
            insert_integer(insert, 1, id);
            insert_copy(insert, 2, query, 1);
            ok = insert_run(insert);
        }
        merge->sig_old[merge->sig_count] = query_integer(query, 0);
        merge->sig_new[merge->sig_count++] = id;
    }
    insert_close(find);
    insert_close(insert);
    return query_close(query) && ok;
}

static bool trace_copy(struct merge *merge, struct db *db)
{
    bool ok = true;

    memcpy(merge->base, merge->top, sizeof merge->base);
    for (int i = 0; ok && i < TABLES; i++)
        ok = strcmp(tables[i].name, "signature") ? table_copy(merge, db, i) : signatures_copy(merge, db);
    /* There may be hundreds of traces, each with pages in memory. */
    struct query *shrink = db_query(db, "PRAGMA shrink_memory");
    query_step(shrink);
    return query_close(shrink) && ok;
}

/* ---- what the new trace says of itself ------------------------------------- */

struct source {
    struct db *db;        /* owned */
    char *host, *command; /* owned, or NULL */
    int64_t started_ns;
};

/* Read what SOURCE says; false, said, when it cannot be merged. */
static bool source_read(struct source *source, const char *path)
{
    char *state;
    bool ok = false;

    if (!(source->db = db_open(path)))
        return false;
    db_run(source->db, "BEGIN");
    state = db_meta(source->db, "state");
    source->host = db_meta(source->db, "host");
    source->command = db_meta(source->db, "command");
    source->started_ns = db_meta_integer(source->db, "started_unix_ns", 0);
    if (state && !strcmp(state, "recording"))
        say_error("%s: is still being recorded, or was interrupted (then `dyntrace fsck FILE --recover` completes it)", path);
    else if (source->started_ns <= 0)
        say_error("%s: does not say when it began, so its times cannot be put beside those of others", path);
    else
        ok = true;
    free(state);
    return ok;
}

static bool meta_put(struct insert *meta, const char *key, const char *text)
{
    insert_text(meta, 1, key);
    insert_text(meta, 2, text);
    return insert_run(meta);
}

static bool meta_number(struct insert *meta, const char *key, int64_t value)
{
    insert_text(meta, 1, key);
    insert_integer(meta, 2, value);
    return insert_run(meta);
}

/* The value that all sources have, or OTHERWISE. The caller frees it. */
static char *common(const struct source *sources, int count, const char *key, const char *otherwise)
{
    char *first = db_meta(sources[0].db, key);

    for (int i = 1; first && i < count; i++) {
        char *next = db_meta(sources[i].db, key);
        if (!next || strcmp(next, first)) {
            free(first);
            first = NULL;
        }
        free(next);
    }
    return first ? first : otherwise ? strdup(otherwise) : NULL;
}

/* What all sources keep of values; traces of older versions keep all. The caller frees it. */
static char *values_kept(const struct source *sources, int count)
{
    bool differ = false;
    char *first = db_meta(sources[0].db, "values"), *next;

    for (int i = 1; i < count; i++) {
        next = db_meta(sources[i].db, "values");
        differ = differ || strcmp(next ? next : "all", first ? first : "all");
        free(next);
    }
    next = strdup(differ ? "several" : first ? first : "all");
    free(first);
    return next;
}

/* [{"file": ..., "host": ..., "command": ..., "started_unix_ns": ...}, ...]. The caller frees it. */
static char *sources_json(const struct source *sources, int count)
{
    char *made = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&made, &bytes)};

    if (!json.out)
        return NULL;
    json_list(&json, NULL);
    for (int i = 0; i < count; i++) {
        json_object(&json, NULL);
        json_string(&json, "file", db_path(sources[i].db));
        json_string(&json, "host", sources[i].host ? sources[i].host : "");
        json_string(&json, "command", sources[i].command ? sources[i].command : "");
        json_integer(&json, "started_unix_ns", sources[i].started_ns);
        json_end(&json);
    }
    json_end(&json);
    fclose(json.out);
    return made;
}

static bool meta_write(struct merge *merge, const struct source *sources, int count, int64_t started)
{
    struct insert *meta = writer_insert(merge->writer, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)");
    char *host = common(sources, count, "host", "several"), *command = common(sources, count, "command", "[\"dyntrace\", \"merge\"]");
    char *clock = common(sources, count, "clock", "several"), *state = common(sources, count, "state", "recovered");
    char *values = values_kept(sources, count), *from = sources_json(sources, count);
    int64_t span = 0, shortest = 0, ends;
    bool ok = meta && from;

    for (int i = 0; i < count; i++) {
        struct db *db = sources[i].db;
        int64_t shift = sources[i].started_ns - started, least = db_meta_integer(db, "min_duration_ns", 0);
        ends = db_meta_integer(db, "span_ns", 0) + shift;
        span = ends > span ? ends : span;
        shortest = least > shortest ? least : shortest;
    }
    ok = ok && meta_put(meta, "dyntrace_version", DYNTRACE_VERSION) && meta_put(meta, "state", state) && meta_put(meta, "host", host) &&
         meta_put(meta, "command", command) && meta_put(meta, "clock", clock) && meta_put(meta, "values", values) && meta_put(meta, "merged_from", from) &&
         meta_number(meta, "started_unix_ns", started) && meta_number(meta, "span_ns", span) &&
         meta_number(meta, "frame_count", merge->frames) && meta_number(meta, "open_frame_count", merge->open) &&
         meta_number(meta, "min_duration_ns", shortest);
    insert_close(meta);
    free(host);
    free(command);
    free(clock);
    free(values);
    free(state);
    free(from);
    return ok;
}

/* Is a process there twice? Said. */
static bool processes_apart(struct merge *merge)
{
    struct insert *twice = writer_insert(merge->writer,
        "SELECT pid FROM process WHERE pid IS NOT NULL AND start_ns IS NOT NULL GROUP BY host, pid, start_ns HAVING COUNT(*) > 1");
    int64_t pid;
    bool apart = twice != NULL;

    if (twice && insert_find(twice, &pid)) {
        say_error("merge: two of the traces have the process %" PRId64 " of the same machine and moment: its frames would count twice",
                  pid);
        apart = false;
    }
    insert_close(twice);
    return apart;
}

static int traces_merge(char **paths, int count, const char *out_path, bool force)
{
    struct source *sources = calloc((size_t)count, sizeof *sources);
    struct merge merge = {0};
    struct out_file out = {0};
    int64_t started = INT64_MAX, lost = 0;
    bool ok = sources != NULL;

    for (int i = 0; ok && i < count; i++) {
        ok = source_read(&sources[i], paths[i]);
        if (ok && sources[i].started_ns < started)
            started = sources[i].started_ns;
        if (ok && out_is(out_path, paths[i])) {
            say_error("merge: %s: is one of the traces to merge", out_path);
            ok = false;
        }
    }
    ok = ok && out_open(&out, out_path, force);
    if (!ok)
        goto out;
    merge.progress = progress_begin("merging");
    ok = (merge.writer = writer_open(out.temporary)) && writer_run(merge.writer, "CREATE INDEX signature_text ON signature(text)");
    for (int i = 0; ok && i < count; i++) {
        merge.shift_ns = sources[i].started_ns - started;
        merge.host = sources[i].host;
        ok = trace_copy(&merge, sources[i].db);
        if (ok)
            lost += db_integer(sources[i].db, 0, "SELECT SUM(COALESCE(events, 1)) FROM loss WHERE cause NOT LIKE 'stall:%'");
    }
    ok = ok && processes_apart(&merge) && meta_write(&merge, sources, count, started) &&
         writer_run(merge.writer, "DROP INDEX signature_text") && writer_finish(merge.writer);
    progress_end(&merge.progress);
    writer_close(merge.writer);
    ok = ok && out_commit(&out);
    if (ok && lost)
        say_error("%s: the traces lost %" PRId64 " events; `dyntrace report` says where", out_path, lost);
out:
    out_close(&out);
    free(merge.sig_old);
    free(merge.sig_new);
    for (int i = 0; sources && i < count; i++) {
        db_close(sources[i].db);
        free(sources[i].host);
        free(sources[i].command);
    }
    free(sources);
    return ok ? 0 : 2;
}

/* ---- the command line ------------------------------------------------------ */

static int merge_main(int count, char **operands)
{
    if (!out_is_named(given.out)) {
        say_error("merge: -o FILE names the trace to make");
        return 2;
    }
    if (count < 2) {
        say_error("merge: needs two traces or more; `dyntrace merge A B... -o FILE`");
        return 2;
    }
    return traces_merge(operands, count, given.out, given.force);
}

const struct command command_merge = {
    .name = "merge",
    .summary = "many traces as one",
    .operands = "A B...",
    .about = "Many traces as one: of ranks that were recorded by themselves, of machines, of runs. Processes stay apart; times "
             "count from the start of the earliest trace, by the machines' clocks.",
    .options = options,
    .more = "Traces that are still being recorded, and two that have a process in common, are refused.",
    .operands_most = OPERANDS_ANY,
    .run = merge_main,
};

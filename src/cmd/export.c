/* cmd/export.c -- `dyntrace export`: writes a trace in the formats of other programs.
 *
 * A format is a row of FORMATS and a function. The function writes frames while it reads them, and
 * keeps none in memory. So the memory needed depends only on the number of code objects, of threads
 * and, for folded stacks, of different stacks. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "cmd/export/frames.h"
#include "cmd/export/spans.h"
#include "cmd/parquet.h"
#include "command.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/near.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/range.h"
#include "trace/result.h"
#include "trace/stacks.h"
#include "trace/traces.h"

enum {
    TICK = 1 << 14,        /* rows written between two checks of progress and disk space */
    FILES = 200,           /* the most temporary files open at once (speedscope) */
    LARGE = 200 * 1000000, /* if a result has this many bytes, its size is printed */
};

struct export
{
    struct db *db;        /* borrowed */
    struct out_file *out; /* borrowed */
    /* writing must stop, because of an error that was reported, or because writing to `out`
     * failed */
    bool failed;
    /* borrowed: working data of the format speedscope; NULL for other formats */
    struct speedscope *speedscope;
    struct progress progress;
    int64_t end_ns;     /* the end of the recording in nanoseconds */
    int64_t last_frame; /* the greatest frame_id, from which the progress line computes percents */
};

static struct {
    int format;
    const char *out, *table, *python;
    bool force, safe_csv, frames;
} given = {.format = -1};

/* X(format, function that writes it, whether --table is allowed, the fewest bytes of a frame in the
 * result). 0 bytes means not known: the size of folded stacks is known only after folding. */
/* clang-format off */
#define FORMATS(X) \
    X(perfetto, export_chrome, false, 80) X(chrome, export_chrome, false, 80) \
    X(speedscope, export_speedscope, false, 60) X(folded, export_folded, false, 0) \
    X(csv, export_csv, true, 20) X(jsonl, export_jsonl, true, 100) X(parquet, NULL, false, 0)
/* clang-format on */
#define FORMAT_WORD(name, ...) #name " "
#define FORMAT_LISTED(name, ...) " " #name
#define FORMAT_ROW(name, ...) {__VA_ARGS__},

static const struct option options[] = {
    {"format", .value = "FORMAT", .read = option_choice, .to = &given.format,
     .words = FORMATS(FORMAT_WORD),
     .help =
         "perfetto, chrome: Chrome's Trace Event JSON, for ui.perfetto.dev or chrome://tracing: a "
         "slice for each frame, an instant for each lookup, a track for compiles\n"
         "speedscope: frames of each thread, and its spans, for speedscope.app\n"
         "folded: own nanoseconds of every stack, a line each, for flamegraph.pl\n"
         "csv: frames with their names, or the table or view that --table names\n"
         "jsonl: every row of every table as a line of JSON, or of --table\n"
         "parquet: a dataset, OUT/TABLE.parquet for each table, of all traces sorted by rank, "
         "zstd, "
         "for DuckDB, ClickHouse, Spark and the like; frames only of functions that were given up",
     .needed = true},
    {"output", 'o', "OUT", option_text, &given.out,
     .help = "write this file; standard output unless given"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace OUT"},
    {"time", .value = "FROM..TO", .read = range_read_time_option,
     .help = "only what ran between these times since the recording began: 1.5s..2s; either may be "
             "missing. Pictures show of a frame what lies between, tables hold it whole"},
    {"process", .value = "PID", .read = range_read_option, .many = true,
     .help = "only this process; may be repeated"},
    {"thread", .value = "NAME", .read = range_read_option, .many = true,
     .help = "only threads of this name (a glob) or system id; may be repeated"},
    {"function", .value = "GLOB", .read = range_read_option, .many = true,
     .help = "only functions whose qualified name (or the last part of it) matches, and all that "
             "they called; may be repeated"},
    {"table", .value = "NAME", .read = option_text, .to = &given.table,
     .help = "csv, jsonl: this table or view"},
    {"frames", .read = option_flag, .to = &given.frames, .help = "parquet: all frames"},
    {"python", .value = "PY", .read = option_text, .to = &given.python,
     .help = "parquet: the Python that has pyarrow, which writes it; python3 unless given"},
    {"safe-csv", .read = option_flag, .to = &given.safe_csv,
     .help =
         "csv: an apostrophe before texts that a spreadsheet would take for a formula (they begin "
         "with = + - @, a tab or a carriage return); a trace holds names that its program chose"},
    OPTION_END,
};

/* Show progress; called every TICK rows. Returns false if writing must stop. */
static bool show_progress(struct export *export, int64_t done, int64_t all)
{
    progress_tick(&export->progress, done, all);
    export->failed = export->failed || ferror(export->out->file);
    return !export->failed;
}

/* Print BYTES, the size of the result, if it is at least LARGE. AT_LEAST: the size is only a lower
 * bound. */
static void print_large_size(const struct export *export, int64_t bytes, bool at_least)
{
    enum { MB = 1000000 };

    if (bytes >= LARGE)
        say_error("%s: %s%" PRId64
                  " MB will be written; --time, --thread and --function take a part",
                  db_get_path(export->db), at_least ? "at least " : "", bytes / MB);
}

/* ---- reading all frames -------------------------------------------------- */

static bool show_progress_of_frames(void *context, int64_t frame_id)
{
    struct export *export = context;

    return show_progress(export, frame_id, export->last_frame);
}

static struct frames_to make_frame_output(struct export *export)
{
    return (struct frames_to){
        .db = export->db,
        .out = export->out->file,
        .end_ns = export->end_ns,
        .tick = show_progress_of_frames,
        .context = export,
    };
}

/* ---- the formats csv and jsonl ------------------------------------------- */

/* Report that there is no table NAME or, if only a part of the trace is exported, that no part of
 * table NAME can be selected. */
static void report_missing_table(const struct export *export, const char *name)
{
    bool is_part = db_integer(export->db, 0, "SELECT EXISTS (SELECT 1 FROM asked)");
    struct near near = near_begin(name);

    db_rows(row, export->db, schema_statement("sql/tables-of"), 1)
    {
        near_offer_name(&near, query_text(row, 0, NULL));
    }
    say_error("%s: has no table %s%s%s", db_get_path(export->db), name,
              is_part ? " whose rows have a time or are of a process, thread or function" : "",
              near_make_question(&near, ""));
}

/* Write the rows of the table or view NAME in FORMAT. CSV follows RFC 4180, and begins with a line
 * of column names; NULL is an empty cell, an empty text is "". In JSON lines each row names its
 * table. A blob is written in hexadecimal. */
static void write_table_rows(struct export *export, enum table_format format, const char *name)
{
    const char *extra = format == TABLE_LINES ? "table" : NULL;
    /* rows of `frames` come in order of frame_id, so the progress can be computed from it */
    int64_t all = strcmp(name, "frames") ? 0 : export->last_frame;
    struct query *found = db_query(export->db, schema_statement("export/table"));
    struct query *query = NULL;
    struct table *table;
    int64_t rows = 0;

    query_bind_text(found, 1, name);
    query_bind_integer(found, 2, given.table != NULL);
    if (query_step(found))
        query = db_query(export->db, query_whole_value(found, 0, NULL));
    else if (!query_failed(found))
        report_missing_table(export, name);
    query_close(found);
    export->failed = export->failed || !query;
    table = result_open(export->out->file, format, query, extra);
    while (query_step(query)) {
        if (!(++rows % TICK) && !show_progress(export, all ? query_integer(query, 0) : 0, all))
            break;
        if (extra)
            table_put_string(table, name);
        result_put_row(table, query);
    }
    table_close(table);
    query_close(query);
}

static void export_csv(struct export *export)
{
    const struct frames_to to = make_frame_output(export);
    enum table_format format = given.safe_csv ? TABLE_SAFE_CSV : TABLE_CSV;
    bool is_all = !range_is_given() && !given.table;

    export->progress.what = "exporting frames";
    if (!is_all || !frames_write_as_csv(&to, format))
        write_table_rows(export, format, given.table ? given.table : "frames");
}

static void export_jsonl(struct export *export)
{
    if (given.table) {
        write_table_rows(export, TABLE_LINES, given.table);
        return;
    }
    db_rows(tables, export->db, schema_statement("export/tables"))
        write_table_rows(export, TABLE_LINES, query_whole_value(tables, 0, NULL));
}

/* ---- the formats chrome and perfetto: Chrome's trace events -------------- */

/* The format of ui.perfetto.dev and chrome://tracing. An event is a row of a statement of
 * schemas/export.sql, with a member for each column that is not NULL. Columns after `args`
 * become the event's arguments. Example:
 *
 *     {"traceEvents": [
 *     {"ph":"M", ...}           the name of a process or thread,
 *     {"ph":"X", ...}           a frame: ts and dur are in microseconds, with three decimals,
 *     {"ph":"i", ...}           a lookup with its outcome, or the death of a cache entry,
 *     {"ph":"b"}, {"ph":"e"}    begin and end of a compile or a span
 *     ], ...}
 *
 * Slices of a track must be nested, as frames are. So a compile has a track of its own, because the
 * thread's track shows the compiler's frames. A span has one, because spans of asyncio tasks
 * overlap. A frame that has not ended has args.open. */

/* How a column of a row becomes a member of a JSON event. VALUE: unchanged. TIME: nanoseconds,
 * written as microseconds. LENGTH: an end time, written as a duration since the start in the column
 * before. ARGUMENTS: begins the object `args`. FLAG: true if the column is not NULL. */
enum member { VALUE, TIME, LENGTH, ARGUMENTS, FLAG, MEMBERS };
static const char *const special[MEMBERS] = {"", "ts", "dur", "args", "open"};

/* Write a column unchanged. Long texts are cut, because viewers would show all of them. */
static void write_json_member(struct json *json, const char *key, struct query *query, int column)
{
    if (query_type(query, column) == QUERY_TEXT)
        json_string(json, key, query_text(query, column, NULL));
    else
        result_put_json_member(json, key, query, column);
}

static void write_json_time(struct json *json, const char *key, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    json_key(json, key);
    fprintf(json->out, "%s%" PRIu64 ".%03" PRIu64, sign, size / 1000, size % 1000);
}

/* Print an event for each row of STATEMENT. The statement's parameter ?1 gets the end of the
 * recording, where events without an end are cut. WHAT is shown as progress. ALL is the number of
 * rows, or 0 if unknown. */
static void write_chrome_events(struct export *export, struct json *json, const char *statement,
                                const char *what, int64_t all)
{
    struct query *query = db_query(export->db, schema_statement(statement));
    int columns = query_columns(query);
    enum member members[columns + 1];
    const char *names[columns + 1];
    int64_t rows = 0;

    export->progress.what = what;
    query_bind_integer(query, 1, export->end_ns);
    for (int i = 0; i < columns; i++) {
        names[i] = query_name(query, i);
        for (members[i] = FLAG; members[i] != VALUE && strcmp(special[members[i]], names[i]) != 0;)
            members[i]--;
    }
    while (query_step(query)) {
        if (!(++rows % TICK) && !show_progress(export, rows, all))
            break;
        json_object(json, NULL);
        for (int i = 0; i < columns; i++)
            if (members[i] == ARGUMENTS)
                json_object(json, names[i]);
            else if (members[i] == TIME)
                write_json_time(json, names[i], query_integer(query, i));
            else if (members[i] == LENGTH)
                write_json_time(
                    json, names[i],
                    times_span_or_zero(query_integer(query, i - 1), query_integer(query, i)));
            else if (query_type(query, i) != QUERY_NULL && members[i] == FLAG)
                json_bool(json, names[i], true);
            else if (query_type(query, i) != QUERY_NULL)
                write_json_member(json, names[i], query, i);
        json_end(json);
        json_end(json);
    }
    query_close(query);
}

static void export_chrome(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    const struct frames_to to = make_frame_output(export);

    json_object(json, NULL);
    json_list(json, "traceEvents");
    json_begin_lines(json);
    write_chrome_events(export, json, "export/track_names", "exporting", 0);
    export->progress.what = "exporting frames";
    if (range_is_given())
        write_chrome_events(export, json, "export/track_frames", "exporting frames",
                            db_meta_integer(export->db, "frame_count", 0));
    else
        frames_write_as_events(&to, json);
    write_chrome_events(export, json, "export/track_lookups", "exporting lookups",
                        db_integer(export->db, 0, "SELECT MAX(lookup_id) FROM lookup"));
    write_chrome_events(export, json, "export/track_compiles", "exporting compiles",
                        2 * db_integer(export->db, 0, "SELECT COUNT(*) FROM compile"));
    write_chrome_events(export, json, "export/track_deaths", "exporting compiles", 0);
    write_chrome_events(export, json, "export/track_spans", "exporting spans", 0);
    json_end(json);
    json_end_line(json);
    json_string(json, "displayTimeUnit", "ns");
    json_end_line(json);
    json_object(json, "otherData");
    db_rows(query, export->db, schema_statement("export/about"))
        result_put_json_member(json, query_text(query, 0, NULL), query, 1);
    json_end(json);
    json_end(json);
    putc('\n', json->out);
}

/* ---- the formats folded and speedscope ----------------------------------- */

/* The formats folded and speedscope walk the frames in order of id (trace/stacks.h).
 *
 *     folded      "process;thread;outer;inner 1234": own time in nanoseconds, for flamegraph.pl,
 *                 inferno and speedscope.
 *     speedscope  an evented profile for each thread. The events of a thread must be together, so a
 *                 walk over the frames writes them to a temporary file for each thread. A walk
 *                 writes the files of at most FILES threads. */

/* Return the name of ID, a code object or a thread, for a line of folded stacks. QUERY selects the
 * name, whose columns are joined by ';'. A ';' inside a column becomes ':', and line ends are
 * escaped. The caller frees the name. */
static char *read_folded_name(struct query *query, int64_t id)
{
    char *name = strdup("");

    query_reset(query);
    query_bind_integer(query, 1, id);
    if (!query_step(query)) {
        free(name);
        return strdup("?");
    }
    for (int i = 0; i < query_columns(query); i++) {
        size_t bytes;
        const char *text = query_text(query, i, &bytes);
        char *escaped = say_escape(text, bytes);
        char *longer;
        for (char *s = escaped; (s = strchr(s, ';'));)
            *s = ':';
        longer = say_print("%s%s%s", name, i ? ";" : "", escaped);
        free(escaped);
        free(name);
        name = longer;
    }
    return name;
}

/* The names of code objects and threads in folded stacks, each made once. */
struct names {
    LIST(char *) texts;        /* owned */
    struct map codes, threads; /* map an id to 1 + its index in `texts` */
};

/* Return the name of ID, a code object or a thread, borrowed. IDS maps ids to names that were read
 * before; other names are read by QUERY. */
static const char *get_folded_name(struct names *names, struct map *ids, struct query *query,
                                   int64_t id)
{
    int64_t *index = map_put(ids, id);

    if (!*index) {
        *list_add(&names->texts) = read_folded_name(query, id);
        *index = (int64_t)names->texts.count;
    }
    return names->texts.at[*index - 1];
}

/* Does NODE get a line in the folded stacks? A node has none if it stands for a thread or has no
 * own time. */
static bool has_folded_line(const struct node *node)
{
    return node->parent && node->self_ns > 0;
}

static void export_folded(struct export *export)
{
    FILE *out = export->out->file;
    struct stacks stacks = {0};
    struct tree *tree = &stacks.tree;
    struct query *codes = db_query(export->db, schema_statement("export/folded_code"));
    struct query *threads = db_query(export->db, schema_statement("export/folded_thread"));
    struct names names = {0};
    LIST(const char *) path = {0};  /* the names in one line, innermost call first */
    LIST(const char *) texts = {0}; /* a name for each node of the tree */
    LIST(int64_t) lengths = {0};    /* for each node, the bytes of its line's names */
    int64_t bytes = 0;

    export->progress.what = "folding stacks";
    stacks_visit_frames(
        export->db, &stacks,
        &(struct walk){.context = export, .fold = true, .tick = show_progress_of_frames});
    list_add(&texts);
    list_add(&lengths);
    for (uint32_t at = 1; at < tree->nodes.count; at++) {
        const struct node *node = &tree->nodes.at[at];
        const char *name = node->parent
                               ? get_folded_name(&names, &names.codes, codes, node->code_id)
                               : get_folded_name(&names, &names.threads, threads, node->code_id);
        *list_add(&texts) = name;
        *list_add(&lengths) = lengths.at[node->parent] + (int64_t)strlen(name) + 1;
        if (has_folded_line(node))
            bytes += lengths.at[at] + snprintf(NULL, 0, "%" PRId64 "\n", node->self_ns);
    }
    print_large_size(export, bytes, false);
    export->progress.what = "writing stacks";
    for (uint32_t at = 1; at < tree->nodes.count; at++) {
        if (!(at % TICK) && !show_progress(export, at, (int64_t)tree->nodes.count))
            break;
        if (!has_folded_line(&tree->nodes.at[at]))
            continue;
        path.count = 0;
        for (uint32_t up = at; up; up = tree->nodes.at[up].parent)
            *list_add(&path) = texts.at[up];
        for (size_t depth = path.count; depth--;) {
            fputs_unlocked(path.at[depth], out);
            putc_unlocked(depth ? ';' : ' ', out);
        }
        fprintf(out, "%" PRId64 "\n", tree->nodes.at[at].self_ns);
    }
    if (tree->cut)
        say_error("%s: more than %d different stacks: %" PRIu32
                  " frames are counted for their callers",
                  db_get_path(export->db), STACKS_NODES, tree->cut);
    query_close(codes);
    query_close(threads);
    stacks_free(&stacks);
    for (size_t i = 0; i < names.texts.count; i++)
        free(names.texts.at[i]);
    list_free(&names.texts);
    map_free(&names.codes);
    map_free(&names.threads);
    list_free(&path);
    list_free(&texts);
    list_free(&lengths);
}

struct speedscope {
    /* code ids, in the order in which write_shared_frames() wrote the functions to shared.frames */
    LIST(int64_t) codes;
    struct stacks stacks;
    size_t from; /* index of the first thread whose events this walk over the frames writes */
    struct profile {
        /* owned: the temporary file with the thread's events, or NULL if there are none */
        FILE *events;
        int64_t first_ns, last_ns;
    } profiles[FILES];
};

/* Write shared.frames: the functions, then "?" for unknown code objects, then the names of
 * spans. */
static void write_shared_frames(struct export *export, struct json *json)
{
    json_end_line(json);
    json_object(json, "shared");
    json_list(json, "frames");
    db_rows(query, export->db, schema_statement("export/codes"))
    {
        *list_add(&export->speedscope->codes) = query_integer(query, 0);
        json_end_line(json);
        json_object(json, NULL);
        for (int i = 1; i < 4; i++)
            if (query_type(query, i) != QUERY_NULL)
                write_json_member(json, query_name(query, i), query, i);
        json_end(json);
    }
    json_end_line(json);
    json_object(json, NULL);
    json_string(json, "name", "?");
    json_end(json);
    spans_write_names(export->db, json);
    json_end(json);
    json_end(json);
}

/* Write that the frame on top of TRACK's stack opens or closes at the time AT. TYPE is "O" if the
 * frame opens, "C" if it closes. */
static void write_speedscope_event(struct export *export, const struct track *track,
                                   const char *type, int64_t at)
{
    struct speedscope *s = export->speedscope;
    size_t index = (size_t)(track - s->stacks.tracks.at);
    struct profile *profile = &s->profiles[index - s->from];
    struct json json = {.compact = true};

    if (index < s->from || index >= s->from + FILES || export->failed)
        return;
    if (profile->events) {
        fputs(",\n", profile->events);
        /* The viewer requires events in order of time. In a broken trace they may be out of
         * order. */
        if (at < profile->last_ns)
            at = profile->last_ns;
    } else if (!(profile->events = tmpfile())) {
        say_error("a temporary file: %s", strerror(errno));
        export->failed = true;
        return;
    } else {
        profile->first_ns = at;
    }
    profile->last_ns = at;
    json.out = profile->events;
    json_object(&json, NULL);
    json_string(&json, "type", type);
    json_integer(&json, "frame", track_top_frame(track)->what);
    json_integer(&json, "at", at);
    json_end(&json);
}

static void write_frame_opening(void *context, struct track *track)
{
    struct speedscope *s = ((struct export *)context)->speedscope;
    struct open_frame *frame = track_top_frame(track);

    frame->what = (uint32_t)sorted_count(s->codes.count, i, s->codes.at[i] < frame->code_id);
    if (frame->what < s->codes.count && s->codes.at[frame->what] != frame->code_id)
        frame->what = (uint32_t)s->codes.count;
    write_speedscope_event(context, track, "O", frame->start_ns);
}

static void write_frame_closing(void *context, struct track *track)
{
    write_speedscope_event(context, track, "C", track_top_frame(track)->end_ns);
}

/* Write PROFILE, the events of one thread. ABOUT selects the name of the thread. */
static void write_speedscope_profile(struct export *export, struct json *json,
                                     const struct profile *profile, struct query *about)
{
    char buffer[1 << 16];
    size_t got;

    json_end_line(json);
    json_object(json, NULL);
    json_string(json, "type", "evented");
    if (query_step(about))
        write_json_member(json, "name", about, 0);
    json_string(json, "unit", "nanoseconds");
    json_integer(json, "startValue", profile->first_ns);
    json_integer(json, "endValue", profile->last_ns);
    json_list(json, "events");
    json_end_line(json);
    /* open the list of events; their text is copied from the temporary file below */
    json_raw(json, NULL, "", 0);
    rewind(profile->events);
    while ((got = fread(buffer, 1, sizeof buffer, profile->events)) > 0)
        fwrite(buffer, 1, got, json->out);
    if (ferror(profile->events) && !export->failed) {
        say_error("a temporary file: %s", strerror(errno));
        export->failed = true;
    }
    json_end(json);
    json_end(json);
}

static void export_speedscope(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    struct speedscope *s = export->speedscope = calloc(1, sizeof *s);
    struct query *about = db_query(export->db, schema_statement("export/profile"));
    size_t count = FILES;

    json_object(json, NULL);
    json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_end_line(json);
    json_string(json, "exporter", "dyntrace");
    json_string(json, "name", db_get_path(export->db));
    write_shared_frames(export, json);
    export->progress.what = "exporting frames";
    json_end_line(json);
    json_list(json, "profiles");
    for (; s->from < count && !export->failed; s->from += FILES) {
        stacks_free(&s->stacks);
        stacks_visit_frames(export->db, &s->stacks,
                            &(struct walk){.context = export,
                                           .tick = show_progress_of_frames,
                                           .push = write_frame_opening,
                                           .pop = write_frame_closing});
        count = s->stacks.tracks.count;
        for (size_t i = 0; i < FILES; i++) {
            struct profile *profile = &s->profiles[i];
            if (!profile->events)
                continue;
            query_reset(about);
            query_bind_integer(about, 1, s->stacks.tracks.at[s->from + i].thread_id);
            write_speedscope_profile(export, json, profile, about);
            fclose(profile->events);
            profile->events = NULL;
        }
    }
    if (!export->failed)
        spans_write_profiles(export->db, json, (int64_t)s->codes.count + 1);
    json_end(json);
    json_end_line(json);
    json_integer(json, "activeProfileIndex", 0);
    json_end(json);
    putc('\n', json->out);
    query_close(about);
    stacks_free(&s->stacks);
    list_free(&s->codes);
    free(s);
}

/* ---- the command `export` and the list of formats ------------------------ */

static const struct format {
    void (*write)(struct export *export);
    bool tables;         /* the option --table is allowed with this format */
    int64_t frame_bytes; /* the fewest bytes that a frame takes in the result; 0 if not known */
} formats[] = {FORMATS(FORMAT_ROW)};

static int export_main(int count, char **operands)
{
    const struct format *format = given.format < 0 ? NULL : &formats[given.format];
    const char *wrong =
        !format ? "which format? --format names one:" FORMATS(FORMAT_LISTED)
        : given.table && !format->tables                  ? "--table is for csv and jsonl"
        : given.safe_csv && format->write != export_csv   ? "--safe-csv is for csv"
        : format->write && (given.frames || given.python) ? "--frames and --python are for parquet"
        : !format->write && range_is_given()
            ? "parquet is of whole traces: no --time, --process, --thread or --function"
        : !format->write && (!out_is_named(given.out) || given.force)
            ? "parquet is written into a new directory: -o OUT"
        : !given.out && isatty(STDOUT_FILENO)
            ? "-o OUT names the file to write; `-o -` prints it here"
            : NULL;
    struct out_file out = {0};
    struct export export = {.out = &out};
    struct db *db;
    bool ok = false;

    if (wrong)
        say_error("export: %s", wrong);
    if (!wrong && !format->write)
        return parquet_export_traces(operands, given.out, given.python, given.frames);
    if (wrong || !(db = export.db = traces_open(operands, MERGE_FRAMES)))
        return 2;
    if (given.out && traces_has(given.out)) {
        say_error("export: %s: is the trace itself", given.out);
    } else if (out_open(&out, given.out, given.force)) {
        db_run(db, "BEGIN");
        export.end_ns = stacks_find_end_time(db);
        export.failed = !range_limit_views(db, format->tables ? NULL : "range/picture");
        if (!export.failed &&
            export.end_ns > db_integer(db, INT64_MAX, "SELECT to_ns FROM part_window"))
            export.end_ns = db_integer(db, 0, "SELECT to_ns FROM part_window");
        export.last_frame = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame");
        if (!range_is_given() && !given.table)
            print_large_size(&export, db_meta_integer(db, "frame_count", 0) * format->frame_bytes,
                             true);
        export.progress = progress_begin("exporting");
        if (!export.failed)
            format->write(&export);
        progress_end(&export.progress);
        ok = !export.failed && !db_has_failed(db) && out_commit(&out);
    }
    if (ok && !format->tables)
        doubts_report_unstored_frames(db, "their time is their callers' own time in the result");
    if (ok)
        doubts_print_warnings(db, "single frames are stored at the end",
                              "they are not in the result");
    out_close(&out);
    db_close(db);
    return ok ? 0 : 2;
}

const struct command command_export = {
    .name = "export",
    .summary = "write Perfetto, Chrome, speedscope, folded stacks, csv, jsonl, Parquet",
    .operands = "[FILE...]",
    .about = "Writes a trace in the format of another program, reading it once; the result is "
             "there whole or not at all.",
    .options = options,
    .more = "FILE is the newest *.db trace here unless given. Frames that were still open end with "
            "their process.",
    .operands_most = OPERANDS_ANY,
    .run = export_main,
};

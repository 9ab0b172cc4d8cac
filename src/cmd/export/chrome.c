/* cmd/export/chrome.c -- Chrome's Trace Event format, which ui.perfetto.dev and
 * chrome://tracing open.
 *
 * Runs in: the viewer.
 *
 *     {"traceEvents": [
 *       {"ph":"M", ...}   names of processes and threads
 *       {"ph":"X", ...}   a frame: ts and dur in microseconds, to the nanosecond
 *       {"ph":"i", ...}   a lookup, by outcome, on its thread; a cache entry's death
 *       {"ph":"b"}, {"ph":"e"}   a compile: on a track of its own, because the compiler's frames are on the thread's
 *     ], ...}
 *
 * Slices of a track must lie within one another, as frames do. A frame that was
 * still open is drawn to the end of the recording and has args.open.
 *
 * Pids and tids are those of the view `tracks`; where they are not the real ones, the name says those. */
#include <inttypes.h>
#include <string.h>

#include "cmd/export/export.h"
#include "lib/json.h"
#include "lib/times.h"
#include "schema.h"

static void time_put(struct json *json, const char *key, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    json_key(json, key);
    fprintf(json->out, "%s%" PRIu64 ".%03" PRIu64, sign, size / 1000, size % 1000);
}

/* An event of the current row, of kind PH; its track is at column PID. */
static void event_put(struct json *json, const char *ph, struct query *query, int pid)
{
    json_object(json, NULL);
    json_string(json, "ph", ph);
    json_integer(json, "pid", query_integer(query, pid));
    json_integer(json, "tid", query_integer(query, pid + 1));
}

/* Its category, its name, from COLUMN, and the beginning of its arguments. */
static void about_put(struct json *json, const char *category, struct query *query, int column)
{
    json_string(json, "cat", category);
    export_string(json, "name", query, column);
    json_object(json, "args");
}

/* The arguments and the event end. */
static void event_end(struct json *json)
{
    json_end(json);
    json_end(json);
}

/* A member from COLUMN, unless that is NULL. */
static void member_put(struct json *json, struct query *query, int column, const char *key)
{
    if (query_type(query, column) == QUERY_INTEGER)
        json_integer(json, key, query_integer(query, column));
    else if (query_type(query, column) != QUERY_NULL)
        export_string(json, key, query, column);
}

/* The event that gives the current row's process or thread its NAME, from COLUMN. */
static void name_put(struct json *json, struct query *query, const char *what, int column)
{
    event_put(json, "M", query, 0);
    json_string(json, "name", what);
    json_object(json, "args");
    export_string(json, "name", query, column);
    event_end(json);
}

static bool names_put(struct export *export, struct json *json)
{
    struct query *query = db_query(export->db,schema_statement("export/track_processes"));

    json_object(json, NULL);
    json_string(json, "ph", "M");
    json_integer(json, "pid", 0);
    json_integer(json, "tid", 0);
    json_string(json, "name", "process_name");
    json_object(json, "args");
    json_string(json, "name", "processes that are not known");
    event_end(json);
    while (query_step(query)) {
        name_put(json, query, "process_name", 3);
        event_put(json, "M", query, 0);
        json_string(json, "name", "process_sort_index");
        json_object(json, "args");
        json_integer(json, "sort_index", query_integer(query, 2));
        event_end(json);
    }
    if (!query_close(query))
        return false;
    query = db_query(export->db,schema_statement("export/track_threads"));
    while (query_step(query))
        name_put(json, query, "thread_name", 2);
    return query_close(query);
}

static bool frames_put(struct export *export, struct json *json)
{
    struct query *query = db_query(export->db,schema_statement("export/track_frames"));
    int64_t rows = 0;

    export->progress.what = "exporting frames";
    while (query_step(query)) {
        int64_t start = query_integer(query, 3), end = query_integer(query, 4);
        bool open = query_type(query, 4) == QUERY_NULL;
        if (!(++rows % EXPORT_TICK) && !export_tick(export, query_integer(query, 2), export->last_frame))
            break;
        if (open)
            end = export->end_ns;
        event_put(json, "X", query, 0);
        time_put(json, "ts", start);
        time_put(json, "dur", times_span(start, end));
        about_put(json, "frame", query, 5);
        json_integer(json, "frame", query_integer(query, 2));
        member_put(json, query, 6, "file");
        member_put(json, query, 7, "line");
        member_put(json, query, 8, "kind");
        member_put(json, query, 9, "outcome");
        member_put(json, query, 10, "exit");
        if (open)
            json_bool(json, "open", true);
        event_end(json);
    }
    return query_close(query);
}

static bool lookups_put(struct export *export, struct json *json)
{
    struct query *query = db_query(export->db,schema_statement("export/track_lookups"));
    int64_t rows = 0;

    export->progress.what = "exporting lookups";
    while (query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, 0, 0))
            break;
        event_put(json, "i", query, 0);
        time_put(json, "ts", query_integer(query, 3));
        json_string(json, "s", "t");
        about_put(json, "lookup", query, 4);
        json_integer(json, "lookup", query_integer(query, 2));
        member_put(json, query, 5, "function");
        member_put(json, query, 6, "entry");
        member_put(json, query, 7, "entries_checked");
        member_put(json, query, 8, "duration_ns");
        member_put(json, query, 9, "inputs");
        event_end(json);
    }
    return query_close(query);
}

static bool compiles_put(struct export *export, struct json *json)
{
    struct query *query = db_query(export->db,schema_statement("export/track_compiles"));

    while (query_step(query)) {
        int64_t start = query_integer(query, 3), end = query_type(query, 4) == QUERY_NULL ? export->end_ns : query_integer(query, 4);
        for (int part = 0; part < 2; part++) {
            char id[24];
                event_put(json, part ? "e" : "b", query, 0);
            time_put(json, "ts", part && end > start ? end : start);
            snprintf(id, sizeof id, "%" PRId64, query_integer(query, 2));
            json_string(json, "id", id);
            about_put(json, "compile", query, 5);
            json_integer(json, "compile", query_integer(query, 2));
            for (int i = 6; !part && i < 12; i++)
                member_put(json, query, i, (const char *[]){"outcome", "reason", "file", "line", "graph_breaks", "cause"}[i - 6]);
            event_end(json);
        }
    }
    if (!query_close(query))
        return false;
    query = db_query(export->db,schema_statement("export/track_deaths"));
    while (query_step(query)) {
        event_put(json, "i", query, 0);
        time_put(json, "ts", query_integer(query, 2));
        json_string(json, "s", "p");
        json_string(json, "cat", "cache");
        json_string(json, "name", "cache entry died");
        json_object(json, "args");
        member_put(json, query, 3, "entry");
        member_put(json, query, 4, "function");
        member_put(json, query, 5, "cause");
        event_end(json);
    }
    return query_close(query);
}

bool export_chrome(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    struct query *query;
    char lost[24];
    bool ok;

    json_object(json, NULL);
    json_list(json, "traceEvents");
    json_lines(json);
    ok = names_put(export, json) && frames_put(export, json) && lookups_put(export, json) && compiles_put(export, json);
    json_end(json);
    json_line(json);
    json_string(json, "displayTimeUnit", "ns");
    json_line(json);
    json_object(json, "otherData");
    json_string(json, "producer", "dyntrace");
    query = db_query(export->db, schema_statement("export/about"));
    while (query_step(query))
        export_string(json, query_text(query, 0, NULL), query, 1);
    ok = query_close(query) && ok;
    snprintf(lost, sizeof lost, "%" PRId64, db_integer(export->db, 0, schema_statement("export/lost")));
    json_string(json, "lost_events", lost);
    event_end(json);
    putc('\n', json->out);
    return ok;
}

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
 * An event is a row of a statement of schemas/export.sql, a member for each column that is not NULL; those after `args` are
 * its arguments. Slices of a track must lie within one another, as frames do. A frame that was still open has args.open. */
#include <inttypes.h>
#include <string.h>

#include "cmd/export/export.h"
#include "lib/json.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/result.h"

enum member { VALUE, NAME, TIME, LENGTH, ARGUMENTS, FLAG, MEMBERS };

/* Columns that are not written as they are; LENGTH is the end, of what began in the column before it. */
static const char *const special[MEMBERS] = {[NAME] = "name", [TIME] = "ts", [LENGTH] = "dur", [ARGUMENTS] = "args", [FLAG] = "open"};

static void time_put(struct json *json, const char *key, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    json_key(json, key);
    fprintf(json->out, "%s%" PRIu64 ".%03" PRIu64, sign, size / 1000, size % 1000);
}

/* An event for each row of a statement, ALL of them, 0 when nobody knows; ?1 is where what has no end is drawn to. */
static void events_put(struct export *export, struct json *json, const char *statement, const char *what, int64_t all)
{
    struct query *query = db_query(export->db, schema_statement(statement));
    int columns = query_columns(query);
    enum member members[columns + 1];
    const char *names[columns + 1];
    int64_t rows = 0;
    bool arguments = false;

    export->progress.what = what;
    query_bind_integer(query, 1, export->end_ns);
    for (int i = 0; i < columns; i++) {
        names[i] = query_name(query, i);
        members[i] = MEMBERS;
        while (--members[i] != VALUE && strcmp(special[members[i]], names[i]) != 0)
            ;
        arguments = arguments || members[i] == ARGUMENTS;
        if (arguments && members[i] == NAME)
            members[i] = VALUE;
    }
    while (query_step(query)) {
        if (!(++rows % EXPORT_TICK) && !export_tick(export, rows, all))
            break;
        json_object(json, NULL);
        for (int i = 0; i < columns; i++) {
            enum query_type type = query_type(query, i);
            size_t bytes;
            if (members[i] == ARGUMENTS) {
                json_object(json, names[i]);
            } else if (members[i] == TIME) {
                time_put(json, names[i], query_integer(query, i));
            } else if (members[i] == LENGTH) {
                time_put(json, names[i], times_span(query_integer(query, i - 1), query_integer(query, i)));
            } else if (type == QUERY_TEXT) {
                const char *text = query_text(query, i, &bytes);
                json_bytes(json, names[i], text, bytes);
            } else if (type == QUERY_NULL) {
                if (members[i] == NAME)
                    json_string(json, names[i], "?");
            } else if (members[i] == FLAG) {
                json_bool(json, names[i], true);
            } else {
                result_member(json, names[i], query, i);
            }
        }
        json_end(json);
        json_end(json);
    }
    query_close(query);
}

void export_chrome(struct export *export)
{
    struct json *json = &(struct json){.out = export->out->file, .compact = true};
    struct query *query = db_query(export->db, schema_statement("export/about"));

    json_object(json, NULL);
    json_list(json, "traceEvents");
    json_lines(json);
    events_put(export, json, "export/track_names", "exporting", 0);
    events_put(export, json, "export/track_frames", "exporting frames", db_meta_integer(export->db, "frame_count", 0));
    events_put(export, json, "export/track_lookups", "exporting lookups", 0);
    events_put(export, json, "export/track_compiles", "exporting compiles", 0);
    events_put(export, json, "export/track_deaths", "exporting compiles", 0);
    json_end(json);
    json_line(json);
    json_string(json, "displayTimeUnit", "ns");
    json_line(json);
    json_object(json, "otherData");
    while (query_step(query))
        export_string(json, query_text(query, 0, NULL), query, 1);
    query_close(query);
    json_end(json);
    json_end(json);
    putc('\n', json->out);
}

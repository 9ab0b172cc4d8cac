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
 * Pids and tids come back, and merged traces have them from several machines:
 * those that are not unique are replaced by a number above 10 million, and the
 * name says the real one. */
#include <inttypes.h>
#include <string.h>

#include "cmd/export/export.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "lib/times.h"

/* pid and tid of each process and thread, worked out once. */
#define TRACKS \
    "WITH home AS MATERIALIZED (SELECT process_id, CASE WHEN pid IS NULL OR COUNT(*) OVER (PARTITION BY pid) > 1" \
    "  THEN 10000000 + process_id ELSE pid END AS pid FROM process)," \
    " track AS MATERIALIZED (SELECT t.thread_id, COALESCE(h.pid, 0) AS pid, CASE WHEN t.os_tid IS NULL" \
    "  OR COUNT(*) OVER (PARTITION BY t.os_tid) > 1 THEN 10000000 + t.thread_id ELSE t.os_tid END AS tid" \
    "  FROM thread t LEFT JOIN home h ON h.process_id = t.process_id) "

static void time_put(FILE *out, const char *key, int64_t ns)
{
    const char *sign = ns < 0 ? "-" : "";
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    fprintf(out, ",\"%s\":%s%" PRIu64 ".%03" PRIu64, key, sign, size / 1000, size % 1000);
}

/* {"ph":..,"pid":..,"tid":.. of the current row. */
static void event_put(struct export *export, const char *ph, struct query *query, int pid)
{
    fprintf(export->out->file, ",\n{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, ph, query_integer(query, pid),
            query_integer(query, pid + 1));
}

/* ,"KEY":value of a column, unless that is NULL. */
static void member_put(struct export *export, struct query *query, int column, const char *key, bool *first)
{
    FILE *out = export->out->file;

    if (query_type(query, column) == QUERY_NULL)
        return;
    fprintf(out, "%s\"%s\":", *first ? "" : ",", key);
    *first = false;
    if (query_type(query, column) == QUERY_INTEGER)
        fprintf(out, "%" PRId64, query_integer(query, column));
    else
        export_string(export, query, column);
}

static bool names_put(struct export *export)
{
    FILE *out = export->out->file;
    struct query *query = db_query(export->db, TRACKS
        "SELECT h.pid, 0, p.process_id, COALESCE(CASE WHEN json_valid(p.argv) THEN (SELECT group_concat(value, ' ') FROM json_each(p.argv))"
        "       ELSE p.argv END, p.executable, '?') || COALESCE(' (rank ' || p.rank || ')', '') || ' [' || COALESCE(p.pid, '?') || ']' FROM process p"
        " JOIN home h ON h.process_id = p.process_id ORDER BY p.process_id");

    fputs("{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"processes that are not known\"}}", out);
    while (query_step(query)) {
        event_put(export, "M", query, 0);
        fputs(",\"name\":\"process_name\",\"args\":{\"name\":", out);
        export_string(export, query, 3);
        fputs("}}", out);
        event_put(export, "M", query, 0);
        fprintf(out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%" PRId64 "}}", query_integer(query, 2));
    }
    if (!query_close(query))
        return false;
    query = db_query(export->db, TRACKS "SELECT k.pid, k.tid, COALESCE(t.name, 'thread ' || t.os_tid, '?') FROM track k JOIN thread t"
                                        " ON t.thread_id = k.thread_id ORDER BY k.thread_id");
    while (query_step(query)) {
        event_put(export, "M", query, 0);
        fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", out);
        export_string(export, query, 2);
        fputs("}}", out);
    }
    return query_close(query);
}

static bool frames_put(struct export *export)
{
    FILE *out = export->out->file;
    struct query *query = db_query(export->db, TRACKS
        "SELECT k.pid, k.tid, f.frame_id, f.start_ns, f.end_ns, c.qualname, c.filename, c.first_line,"
        "       CASE WHEN f.kind <> 0 THEN (SELECT name FROM enum WHERE kind = 'frame.kind' AND value = f.kind) END,"
        "       CASE WHEN f.outcome <> 0 THEN (SELECT name FROM enum WHERE kind = 'outcome' AND value = f.outcome) END,"
        "       CASE WHEN f.exit <> 0 THEN (SELECT name FROM enum WHERE kind = 'frame.exit' AND value = f.exit) END "
        "FROM frame f LEFT JOIN track k ON k.thread_id = f.thread_id LEFT JOIN code c ON c.code_id = f.code_id ORDER BY f.frame_id");
    int64_t rows = 0;

    export->progress.what = "exporting frames";
    while (query_step(query)) {
        int64_t start = query_integer(query, 3), end = query_integer(query, 4);
        bool open = query_type(query, 4) == QUERY_NULL, first = false;
        if (!(++rows % EXPORT_TICK) && !export_tick(export, query_integer(query, 2), export->last_frame))
            break;
        if (open)
            end = export->end_ns;
        event_put(export, "X", query, 0);
        time_put(out, "ts", start);
        time_put(out, "dur", times_span(start, end));
        fputs(",\"cat\":\"frame\",\"name\":", out);
        export_string(export, query, 5);
        fprintf(out, ",\"args\":{\"frame\":%" PRId64, query_integer(query, 2));
        member_put(export, query, 6, "file", &first);
        member_put(export, query, 7, "line", &first);
        member_put(export, query, 8, "kind", &first);
        member_put(export, query, 9, "outcome", &first);
        member_put(export, query, 10, "exit", &first);
        fputs(open ? ",\"open\":true}}" : "}}", out);
    }
    return query_close(query);
}

static bool lookups_put(struct export *export)
{
    FILE *out = export->out->file;
    struct query *query = db_query(export->db, TRACKS
        "SELECT k.pid, k.tid, l.lookup_id, l.start_ns, COALESCE(o.name, '?'), c.qualname, e.label, l.entries_checked, l.duration_ns,"
        "       s.text "
        "FROM lookup l LEFT JOIN track k ON k.thread_id = l.thread_id LEFT JOIN code c ON c.code_id = l.code_id"
        " LEFT JOIN cache_entry e ON e.cache_entry_id = l.cache_entry_id LEFT JOIN signature s ON s.signature_id = l.signature_id"
        " LEFT JOIN enum o ON o.kind = 'outcome' AND o.value = l.outcome ORDER BY l.lookup_id");
    int64_t rows = 0;

    export->progress.what = "exporting lookups";
    while (query_step(query)) {
        bool first = false;
        if (!(++rows % EXPORT_TICK) && !export_tick(export, 0, 0))
            break;
        event_put(export, "i", query, 0);
        time_put(out, "ts", query_integer(query, 3));
        fputs(",\"s\":\"t\",\"cat\":\"lookup\",\"name\":", out);
        export_string(export, query, 4);
        fprintf(out, ",\"args\":{\"lookup\":%" PRId64, query_integer(query, 2));
        member_put(export, query, 5, "function", &first);
        member_put(export, query, 6, "entry", &first);
        member_put(export, query, 7, "entries_checked", &first);
        member_put(export, query, 8, "duration_ns", &first);
        member_put(export, query, 9, "inputs", &first);
        fputs("}}", out);
    }
    return query_close(query);
}

static bool compiles_put(struct export *export)
{
    FILE *out = export->out->file;
    struct query *query = db_query(export->db, TRACKS
        "SELECT k.pid, k.tid, m.compile_id, m.start_ns, m.end_ns, 'compile ' || COALESCE(c.qualname, '?') || COALESCE(' ' || m.label, ''),"
        "       m.outcome, m.reason, c.filename, c.first_line,"
        "       (SELECT NULLIF(COUNT(*), 0) FROM graph_break b WHERE b.compile_id = m.compile_id),"
        "       (SELECT COALESCE(r.text, r.source || ' was ' || r.actual || ', wanted ' || r.expected) FROM recompile_cause r"
        "        WHERE r.compile_id = m.compile_id ORDER BY r.ordinal, r.cache_entry_id DESC LIMIT 1) "
        "FROM compile m LEFT JOIN track k ON k.thread_id = m.thread_id LEFT JOIN code c ON c.code_id = m.code_id ORDER BY m.compile_id");

    while (query_step(query)) {
        int64_t start = query_integer(query, 3), end = query_type(query, 4) == QUERY_NULL ? export->end_ns : query_integer(query, 4);
        for (int part = 0; part < 2; part++) {
            bool first = false;
            event_put(export, part ? "e" : "b", query, 0);
            time_put(out, "ts", part && end > start ? end : start);
            fprintf(out, ",\"id\":\"%" PRId64 "\",\"cat\":\"compile\",\"name\":", query_integer(query, 2));
            export_string(export, query, 5);
            fprintf(out, ",\"args\":{\"compile\":%" PRId64, query_integer(query, 2));
            for (int i = 6; !part && i < 12; i++)
                member_put(export, query, i, (const char *[]){"outcome", "reason", "file", "line", "graph_breaks", "cause"}[i - 6], &first);
            fputs("}}", out);
        }
    }
    if (!query_close(query))
        return false;
    query = db_query(export->db, TRACKS "SELECT COALESCE(h.pid, 0), 0, e.died_ns, e.label, c.qualname, e.death_cause FROM cache_entry e"
                                 " LEFT JOIN code c ON c.code_id = e.code_id LEFT JOIN home h ON h.process_id = c.process_id"
                                 " WHERE e.died_ns IS NOT NULL ORDER BY e.cache_entry_id");
    while (query_step(query)) {
        bool first = true;
        event_put(export, "i", query, 0);
        time_put(out, "ts", query_integer(query, 2));
        fputs(",\"s\":\"p\",\"cat\":\"cache\",\"name\":\"cache entry died\",\"args\":{", out);
        member_put(export, query, 3, "entry", &first);
        member_put(export, query, 4, "function", &first);
        member_put(export, query, 5, "cause", &first);
        fputs("}}", out);
    }
    return query_close(query);
}

bool export_chrome(struct export *export)
{
    FILE *out = export->out->file;
    struct query *query;
    bool ok;

    fputs("{\"traceEvents\":[\n", out);
    ok = names_put(export) && frames_put(export);
    if (ok && export->decisions)
        ok = lookups_put(export) && compiles_put(export);
    fputs("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"producer\":\"dyntrace\"", out);
    query = db_query(export->db, "SELECT key, CAST(value AS TEXT) FROM meta WHERE value IS NOT NULL AND key IN"
                                 " ('host', 'command', 'started_unix_ns', 'state', 'min_duration_ns') ORDER BY key");
    while (query_step(query)) {
        fputc(',', out);
        export_string(export, query, 0);
        fputc(':', out);
        export_string(export, query, 1);
    }
    ok = query_close(query) && ok;
    fprintf(out, ",\"lost_events\":\"%" PRId64 "\"}}\n",
            db_integer(export->db, 0, "SELECT SUM(COALESCE(events, 1)) FROM loss WHERE cause NOT LIKE 'stall:%'"));
    return ok;
}

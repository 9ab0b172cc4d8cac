/* cmd/report/html.c -- `dyntrace report --html`: one file for a browser.
 *
 * Runs in: the viewer. See cmd/report/report.h.
 *
 * The page is whole without its script: tables and pictures are markup, the
 * script (src/cmd/report/page/report.js) sorts and zooms them. It loads nothing, and its
 * Content-Security-Policy forbids the browser to, or to run any script but the
 * page's own, known by a random nonce: the names in a trace come from anybody.
 * They are escaped besides. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "cmd/report/report.h"
#include "lib/say.h"
#include "lib/table.h"

extern const char report_css[], report_js[]; /* made by src/cmd/report/page/embed.sh */

/* ---- pieces ---------------------------------------------------------------- */

void html_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = text ? prose_cut(text, width) : 0;
    char *safe = text ? say_escape(text, bytes) : NULL;

    for (const char *s = safe ? safe : "?"; *s; s++)
        switch (*s) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default: putc(*s, out);
        }
    if (safe && text[bytes])
        fputs("…", out);
    free(safe);
}

/* A text of several lines for <pre>. */
static void html_lines(FILE *out, const char *text, size_t width)
{
    size_t left = prose_cut(text, width);
    bool more = text[left] != 0;

    while (left) {
        const char *end = memchr(text, '\n', left);
        size_t length = end ? (size_t)(end - text) : left;
        char *line = strndup(text, length);
        if (line)
            html_text(out, line, length);
        free(line);
        if (end)
            putc('\n', out);
        length += end != NULL;
        text += length;
        left -= length;
    }
    if (more)
        fputs("…", out);
}

enum { CELL_TEXT, CELL_COUNT, CELL_TIME, CELL_MOMENT, CELL_CODE };

struct column {
    const char *name, *title; /* title: what it is, shown on hover */
    int type;
};

static void section_begin(struct report *report, const char *id, const char *title)
{
    fprintf(report->out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

static void section_end(struct report *report)
{
    fputs("</section>\n", report->out);
}

static void table_begin(struct report *report, const char *id, const struct column *columns, int count, bool filter)
{
    FILE *out = report->out;

    if (filter)
        fprintf(out, "<div class=\"tools\"><input type=\"search\" data-for=\"%s\" placeholder=\"filter rows\" aria-label=\"filter rows\"></div>\n", id);
    fprintf(out, "<div class=\"scroll\"><table class=\"sort\" id=\"%s\"><thead><tr>", id);
    for (int i = 0; i < count; i++)
        fprintf(out, "<th%s title=\"%s\">%s</th>", columns[i].type == CELL_TEXT || columns[i].type == CELL_CODE ? "" : " class=\"n\"",
                columns[i].title, columns[i].name);
    fputs("</tr></thead><tbody>\n", out);
}

static void rows_end(struct report *report, int64_t rows)
{
    fputs("</tbody></table></div>\n", report->out);
    if (report->limit >= 0 && rows >= report->limit)
        fprintf(report->out, "<p class=\"soft\">The first %" PRId64 "; --limit 0 shows all.</p>\n", rows);
}

static void cell_number(FILE *out, int type, int64_t value)
{
    char human[TABLE_HUMAN];

    fprintf(out, "<td class=\"n\" data-v=\"%" PRId64 "\">%s</td>", value,
            type == CELL_COUNT ? table_count(human, value) : table_duration(human, value));
}

static void cell_empty(FILE *out, int type)
{
    fputs(type == CELL_TEXT || type == CELL_CODE ? "<td class=\"soft\">-</td>" : "<td class=\"n soft\" data-v=\"\">-</td>", out);
}

static void cell_text(FILE *out, int type, const char *text)
{
    fprintf(out, "<td class=\"w%s\">", type == CELL_CODE ? " code" : "");
    html_text(out, text, 400);
    fputs("</td>", out);
}

static void cell_put(FILE *out, int type, struct query *query, int column)
{
    if (query_type(query, column) == QUERY_NULL)
        cell_empty(out, type);
    else if (type == CELL_TEXT || type == CELL_CODE)
        cell_text(out, type, query_text(query, column, NULL));
    else
        cell_number(out, type, query_integer(query, column));
}

/* "module.py:12", the whole path on hover. */
static void cell_where(FILE *out, struct query *query, int filename, int line)
{
    if (query_type(query, filename) == QUERY_NULL) {
        cell_empty(out, CELL_TEXT);
        return;
    }
    fputs("<td class=\"code\" title=\"", out);
    html_text(out, query_text(query, filename, NULL), 1000);
    fputs("\">", out);
    html_text(out, prose_path(query_text(query, filename, NULL)), 200);
    fprintf(out, ":%" PRId64 "</td>", query_integer(query, line));
}

/* ---- the head -------------------------------------------------------------- */

static void fact(FILE *out, const char *name, const char *value)
{
    fprintf(out, "<dt>%s</dt><dd>", name);
    html_text(out, value, 4000);
    fputs("</dd>\n", out);
}

static void card(FILE *out, const char *kind, const char *title, const char *value, const char *what)
{
    fprintf(out, "<div class=\"card%s%s\" title=\"%s\"><b>%s</b>%s</div>\n", *kind ? " " : "", kind, title, value, what);
}

static bool facts_put(struct report *report)
{
    FILE *out = report->out;
    struct db *db = report->db;
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *command = db_meta(db, "command"), *words = command ? report_words(db, command) : NULL, *host = db_meta(db, "host");
    char *version = db_meta(db, "dyntrace_version"), human[TABLE_HUMAN], day[64];
    int64_t started = db_meta_integer(db, "started_unix_ns", 0), span = db_meta_integer(db, "span_ns", -1);
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = report_open_frames(db, frames);
    time_t seconds = (time_t)(started / 1000000000);
    struct query *query;
    struct tm tm;
    bool ok = true;

    fputs("<dl class=\"facts\">\n", out);
    fact(out, "trace", db_path(db));
    fact(out, "state", report_state(report));
    if (words)
        fact(out, "command", *words ? words : "not recorded (--no-argv)");
    if (started > 0 && localtime_r(&seconds, &tm) && strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm))
        fact(out, "recorded", day);
    if (host)
        fact(out, "host", host);
    if (version)
        fact(out, "by dyntrace", version);
    if (span >= 0)
        fact(out, "span", table_duration(human, span));
    fact(out, "frames", frames < 0 ? "not known yet" : table_count(human, frames));
    if (which)
        fact(out, "which", which);
    if (values)
        fact(out, "values", values);
    if (open > 0)
        fact(out, "still open", table_count(human, open));
    if (report->torch) {
        query = db_query(db, report_torch);
        query_bind_integer(query, 1, 10);
        while (query_step(query)) {
            fputs("<dt>torch</dt><dd>", out);
            html_text(out, query_text(query, 0, NULL), 100);
            fputs(", ", out);
            html_text(out, query_text(query, 1, NULL), 20);
            if (query_type(query, 2) != QUERY_NULL) {
                fputs(": ", out);
                html_text(out, query_text(query, 2, NULL), 400);
            }
            fputs("</dd>\n", out);
        }
        ok = query_close(query);
    }
    fputs("</dl>\n", out);
    free(command);
    free(words);
    free(host);
    free(version);
    return ok;
}

/* Losses, before anything that they make doubtful. */
static bool losses_put(struct report *report)
{
    FILE *out = report->out;
    struct query *query = db_query(report->db, report_losses);
    char human[TABLE_HUMAN];

    query_bind_integer(query, 1, report->limit);
    while (query_step(query)) {
        bool stall = query_integer(query, 6) != 0;
        fprintf(out, "<p class=\"%s\">%s: ", stall ? "soft" : "alarm",
                stall ? "The program waited for the recorder" : "Events are missing, so that what follows may be incomplete");
        html_text(out, query_text(query, 0, NULL), 400);
        fprintf(out, " (%s times", table_count(human, query_integer(query, 1)));
        if (!stall && query_type(query, 2) != QUERY_NULL)
            fprintf(out, ", %s events", table_count(human, query_integer(query, 2)));
        fprintf(out, ", first at %s)</p>\n", table_duration(human, query_integer(query, 3)));
    }
    return query_close(query);
}

static void percent_card(FILE *out, double percent, bool good, const char *title, const char *what)
{
    char text[32];

    if (percent < 0)
        return;
    snprintf(text, sizeof text, "%.3g %%", percent);
    card(out, good ? (percent >= 90 ? "good" : "") : percent >= 10 ? "bad" : "", title, text, what);
}

static bool overview_put(struct report *report)
{
    FILE *out = report->out;
    struct query *query;
    char human[TABLE_HUMAN];
    int64_t made = 0, of = 0, ns = 0;
    bool ok;

    section_begin(report, "overview", "Overview");
    ok = facts_put(report);
    fputs("<div class=\"cards\">\n", out);
    card(out, "", "Python processes that were followed", table_count(human, db_integer(report->db, 0, "SELECT COUNT(*) FROM process")), "processes");
    card(out, "", "threads that evaluated a frame", table_count(human, db_integer(report->db, 0, "SELECT COUNT(*) FROM thread")), "threads");
    if (report->lookups && report->calls) {
        card(out, "", "calls that a compiler was asked about", table_count(human, report->calls), "calls decided");
        percent_card(out, report_hit_rate(report), true, "of the calls that could run compiled code", "hits");
        percent_card(out, report_eager_share(report), false, "of the calls that could run compiled code", "ran as Python");
    }
    if (report->compiles) {
        query = db_query(report->db, "SELECT COUNT(cache_entry_id), COUNT(DISTINCT CASE WHEN cache_entry_id IS NOT NULL THEN code_id END),"
                                     " SUM(end_ns - start_ns) FROM compile");
        if (query_step(query)) {
            made = query_integer(query, 0);
            of = query_integer(query, 1);
            ns = query_integer(query, 2);
        }
        ok = query_close(query) && ok;
        if (made) {
            card(out, "", "that made code", table_count(human, made), "compiles");
            card(out, "", "of all compiles", table_duration(human, ns), "in the compiler");
            card(out, made > of ? "bad" : "good", "compiles of code that was compiled already", table_count(human, made - of), "recompiles");
        }
        made = db_integer(report->db, 0, "SELECT COUNT(*) FROM graph_break");
        if (made || ns)
            card(out, made ? "bad" : "good", "places where a compile had to stop", table_count(human, made), "graph breaks");
    }
    if (report->lookups && report->calls && db_integer(report->db, 0, "SELECT EXISTS (SELECT 1 FROM guard_check WHERE duration_ns IS NOT NULL)"))
        card(out, "", "of all checks of guards", table_duration(human, db_integer(report->db, 0, "SELECT SUM(duration_ns) FROM guard_check")), "in guards");
    fputs("</div>\n", out);
    if (report->lookups && report->calls) {
        static const struct column columns[] = {
            {"outcome", "how a call was decided", CELL_TEXT}, {"calls", "", CELL_COUNT}, {"share", "of all of them", CELL_COUNT},
            {"lookups", "time until it was known what runs", CELL_TIME},
        };
        table_begin(report, "outcomes", columns, 4, false);
        for (int o = 0; o < OUTCOMES; o++) {
            if (!report->outcomes[o])
                continue;
            fprintf(out, "<tr><td>%s</td>", outcome_word(o));
            cell_number(out, CELL_COUNT, report->outcomes[o]);
            fprintf(out, "<td class=\"n\" data-v=\"%" PRId64 "\">%.3g %%</td>", report->outcomes[o],
                    100.0 * (double)report->outcomes[o] / (double)report->calls);
            cell_number(out, CELL_TIME, report->times_ns[o]);
            fputs("</tr>\n", out);
        }
        fputs("</tbody></table></div>\n", out);
    }
    section_end(report);
    return ok;
}

/* ---- tables ---------------------------------------------------------------- */

/* FIRST is the query's column of the first cell; cells follow the query's columns. "where" takes two of those. */
static bool rows_put(struct report *report, const char *id, const char *title, const char *none, const char *sql,
                     const struct column *columns, int count, const char *order)
{
    FILE *out = report->out;
    struct query *query = db_query(report->db, sql);
    int64_t rows = 0;

    section_begin(report, id, title);
    query_bind_integer(query, 1, report->limit);
    while (query_step(query)) {
        char name[64];
        snprintf(name, sizeof name, "t-%s", id);
        if (!rows++)
            table_begin(report, name, columns, count, true);
        fputs("<tr>", out);
        for (int i = 0; i < count; i++) {
            int column = order[i] - 'a';
            if (!strcmp(columns[i].name, "where"))
                cell_where(out, query, column, column + 1);
            else
                cell_put(out, columns[i].type, query, column);
        }
        fputs("</tr>\n", out);
    }
    if (rows)
        rows_end(report, rows);
    else
        fprintf(out, "<p class=\"soft\">%s</p>\n", none);
    section_end(report);
    return query_close(query);
}

static bool functions_put(struct report *report)
{
    static const struct column columns[] = {
        {"function", "", CELL_CODE}, {"where", "", CELL_TEXT}, {"calls", "frames entered", CELL_COUNT}, {"total", "callees included", CELL_TIME},
        {"own time", "callees excluded", CELL_TIME}, {"per call", "", CELL_TIME}, {"raised", "left by an exception", CELL_COUNT},
    };

    return rows_put(report, "functions", "Functions, most own time first", "No frames were recorded.", report_hot, columns, 7, "abefghi");
}

static bool compiles_put(struct report *report)
{
    static const struct column columns[] = {
        {"function", "", CELL_CODE}, {"where", "", CELL_TEXT}, {"compiles", "that made code", CELL_COUNT},
        {"recompiles", "of code that was compiled already", CELL_COUNT}, {"breaks", "graph breaks", CELL_COUNT},
        {"without code", "attempts that made none", CELL_COUNT}, {"time", "in the compiler", CELL_TIME},
        {"at the limit", "times it was not compiled for that", CELL_COUNT}, {"failed", "the compiler raised", CELL_COUNT},
    };

    return rows_put(report, "compiles", "Compiles, most recompiles first", "Nothing was compiled.", report_compiled, columns, 9, "abdefghij");
}

static bool recompiles_put(struct report *report)
{
    static const struct column causes[] = {
        {"recompiles", "", CELL_COUNT}, {"function", "", CELL_CODE}, {"where", "", CELL_TEXT}, {"guard", "its kind", CELL_CODE},
        {"looked at", "", CELL_CODE}, {"wanted first", "", CELL_CODE}, {"saw", "one after the other", CELL_CODE},
        {"first at", "", CELL_TIME}, {"last at", "", CELL_TIME},
    };
    static const struct column each[] = {
        {"at", "", CELL_TIME}, {"compile", "", CELL_CODE}, {"took", "", CELL_TIME}, {"function", "", CELL_CODE}, {"where", "", CELL_TEXT},
        {"did not fit", "the older entry", CELL_CODE}, {"guard", "", CELL_CODE}, {"looked at", "", CELL_CODE}, {"wanted", "", CELL_CODE},
        {"saw", "", CELL_CODE}, {"in words", "", CELL_TEXT}, {"how", "observed when it happened, or asked afterwards", CELL_TEXT},
    };

    return rows_put(report, "recompiles", "Recompiles, by what made them needed", "Nothing was compiled again.", report_causes, causes, 9,
                    "dabefghij") &&
           rows_put(report, "each-recompile", "Each recompile", "Nothing was compiled again.", report_recompiles, each, 12, "cbdefhijklmn");
}

static bool breaks_put(struct report *report)
{
    static const struct column columns[] = {
        {"times", "", CELL_COUNT}, {"function", "", CELL_CODE}, {"where", "", CELL_TEXT}, {"reason", "", CELL_TEXT},
        {"the rest is", "function made of what comes after", CELL_CODE},
    };
    FILE *out = report->out;
    struct query *query = db_query(report->db, report_breaks);
    int64_t rows = 0;

    section_begin(report, "breaks", "Graph breaks, by place");
    query_bind_integer(query, 1, report->limit);
    while (query_step(query)) {
        if (!rows++)
            table_begin(report, "t-breaks", columns, 5, true);
        fputs("<tr>", out);
        cell_put(out, CELL_COUNT, query, 4);
        cell_put(out, CELL_CODE, query, 0);
        cell_where(out, query, 1, query_type(query, 3) == QUERY_NULL ? 2 : 3);
        fputs("<td class=\"w\"><details><summary>", out);
        html_text(out, query_text(query, 5, NULL), 300);
        fputs("</summary><pre>", out);
        html_lines(out, query_text(query, 6, NULL), 4000);
        if (query_type(query, 7) != QUERY_NULL) {
            fputs("\n\n", out);
            html_lines(out, query_text(query, 7, NULL), 4000);
        }
        fputs("</pre></details></td>", out);
        cell_put(out, CELL_CODE, query, 8);
        fputs("</tr>\n", out);
    }
    if (rows)
        rows_end(report, rows);
    else
        fputs("<p class=\"soft\">No graph broke.</p>\n", out);
    section_end(report);
    return query_close(query);
}

static bool guards_put(struct report *report)
{
    static const struct column columns[] = {
        {"guard", "its kind", CELL_CODE}, {"looks at", "", CELL_CODE}, {"evaluations", "", CELL_COUNT}, {"failures", "", CELL_COUNT},
        {"time", "an estimate: a check's time divided evenly among the guards that ran", CELL_TIME}, {"entries", "that have it", CELL_COUNT},
    };

    return rows_put(report, "guards", "Guard bill, dearest first", "No guard was checked.", report_guards, columns, 6, "abcdef");
}

static bool limits_put(struct report *report)
{
    static const struct column columns[] = {
        {"function", "", CELL_CODE}, {"where", "", CELL_TEXT}, {"since", "", CELL_TIME}, {"times", "", CELL_COUNT}, {"reason", "", CELL_TEXT},
    };

    return rows_put(report, "limits", "Functions that are not compiled any more", "None reached the limit.", report_reached, columns, 5, "abdef");
}

static bool processes_put(struct report *report)
{
    static const struct column columns[] = {
        {"pid", "", CELL_TEXT}, {"ended", "", CELL_TEXT}, {"ran", "", CELL_TIME}, {"threads", "", CELL_COUNT}, {"python", "", CELL_TEXT},
        {"rank", "", CELL_TEXT}, {"command", "", CELL_CODE},
    };
    FILE *out = report->out;
    struct query *query = db_query(report->db, PROCESS_TREE
        "SELECT t.depth, p.pid, p.exit_code, p.exit_signal, p.end_ns, p.end_ns - p.start_ns, p.rank, p.python_version,"
        "       CASE WHEN json_valid(p.argv) THEN"
        "         (SELECT group_concat(value, ' ') FROM json_each(CASE WHEN json_valid(p.argv) THEN p.argv ELSE '[]' END))"
        "       ELSE p.argv END, (SELECT COUNT(*) FROM thread h WHERE h.process_id = p.process_id) "
        "FROM tree t CROSS JOIN process p ON p.process_id = t.process_id ORDER BY t.path LIMIT ?1");
    int64_t rows = 0;
    char words[64];

    section_begin(report, "processes", "Processes");
    table_begin(report, "t-processes", columns, 7, false);
    query_bind_integer(query, 1, report->limit);
    for (; query_step(query); rows++) {
        fputs("<tr><td class=\"code\">", out);
        for (int64_t i = query_integer(query, 0); i > 0; i--)
            fputs("&#8195;", out);
        fprintf(out, "%" PRId64 "</td><td>%s</td>", query_integer(query, 1), report_ended(report, query, 2, 3, 4, words));
        cell_put(out, CELL_TIME, query, 5);
        cell_put(out, CELL_COUNT, query, 9);
        cell_put(out, CELL_TEXT, query, 7);
        cell_put(out, CELL_TEXT, query, 6);
        cell_put(out, CELL_CODE, query, 8);
        fputs("</tr>\n", out);
    }
    rows_end(report, rows);
    section_end(report);
    return query_close(query);
}

/* ---- the page -------------------------------------------------------------- */

/* A number that who made the trace cannot know. */
static bool nonce_make(char nonce[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        say_error("report: no random numbers from the system");
        return false;
    }
    for (int i = 0; i < 16; i++)
        sprintf(nonce + 2 * i, "%02x", bytes[i]);
    return true;
}

bool report_html(struct report *report)
{
    FILE *out = report->out;
    const char *path = db_path(report->db), *name = strrchr(path, '/');
    char nonce[33];
    bool ok;

    if (!nonce_make(nonce))
        return false;
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
    fprintf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'nonce-%s'; script-src 'nonce-%s';"
                 " base-uri 'none'; form-action 'none'\">\n", nonce, nonce);
    fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n", out);
    fputs("<link rel=\"icon\" href=\"data:,\">\n<title>dyntrace: ", out);
    html_text(out, name ? name + 1 : path, 200);
    fprintf(out, "</title>\n<style nonce=\"%s\">\n%s</style>\n</head>\n<body>\n<header>\n<h1>", nonce, report_css);
    html_text(out, name ? name + 1 : path, 200);
    fputs("</h1>\n<nav><a href=\"#overview\">overview</a> <a href=\"#compiles\">compiles</a> <a href=\"#recompiles\">recompiles</a>"
          " <a href=\"#breaks\">breaks</a> <a href=\"#guards\">guards</a> <a href=\"#functions\">functions</a>"
          " <a href=\"#timeline\">timeline</a> <a href=\"#flame\">flame graph</a> <a href=\"#processes\">processes</a>"
          " <button id=\"theme\" type=\"button\">light / dark</button></nav>\n", out);
    ok = losses_put(report);
    fputs("</header>\n<main>\n", out);
    ok = overview_put(report) && ok;
    if (report->compiles)
        ok = compiles_put(report) && ok;
    if (report->lookups)
        ok = recompiles_put(report) && breaks_put(report) && limits_put(report) && guards_put(report) && ok;
    ok = functions_put(report) && ok;
    ok = report_pictures(report) && ok;
    ok = processes_put(report) && ok;
    fprintf(out, "</main>\n<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n", nonce, report_js);
    return ok;
}

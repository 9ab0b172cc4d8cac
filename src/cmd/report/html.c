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

#include "trace/db.h"
#include "trace/prose.h"
#include "cmd/report/report.h"
#include "lib/say.h"
#include "schema.h"
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

static bool is_text(enum cell type)
{
    return type == CELL_TEXT || type == CELL_CODE || type == CELL_WHERE || type == CELL_REASON;
}

static void table_begin(struct report *report, const char *id, const struct section *section, const char *order,
                        bool filter)
{
    FILE *out = report->out;

    if (filter)
        fprintf(out, "<div class=\"tools\"><input type=\"search\" data-for=\"t-%s\" placeholder=\"filter rows\" aria-label=\"filter rows\"></div>\n", id);
    fprintf(out, "<div class=\"scroll\"><table class=\"sort\" id=\"%s%s\"><thead><tr>", filter ? "t-" : "", id);
    for (int i = 0; order[i]; i++) {
        const struct column *column = section_column(section, order, i);
        fprintf(out, "<th%s title=\"%s\">%s</th>", is_text(column->type) ? "" : " class=\"n\"", column->title,
                column->name);
    }
    fputs("</tr></thead><tbody>\n", out);
}

/* QUERY is at the last of the ROWS that were shown. */
static void rows_end(struct report *report, int64_t rows, struct query *query)
{
    int64_t all = rows;

    fputs("</tbody></table></div>\n", report->out);
    while (rows == report->limit && query_step(query))
        all++;
    if (all > rows)
        fprintf(report->out, "<p class=\"soft\">The first %" PRId64 " of %" PRId64 "; --limit 0 shows all.</p>\n", rows,
                all);
}

static void cell_number(FILE *out, enum cell type, int64_t value)
{
    char human[TABLE_HUMAN];

    fprintf(out, "<td class=\"n\" data-v=\"%" PRId64 "\">%s</td>", value,
            type == CELL_COUNT ? table_count(human, value) : table_duration(human, value));
}

static void cell_empty(FILE *out, enum cell type)
{
    fputs(is_text(type) ? "<td class=\"soft\">-</td>" : "<td class=\"n soft\" data-v=\"\">-</td>", out);
}

static void cell_text(FILE *out, enum cell type, const char *text)
{
    fprintf(out, "<td class=\"w%s\">", type == CELL_CODE ? " code" : "");
    html_text(out, text, 400);
    fputs("</td>", out);
}

static void cell_put(FILE *out, enum cell type, struct query *query, int column)
{
    if (query_type(query, column) == QUERY_NULL)
        cell_empty(out, type);
    else if (is_text(type))
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

/* A line that opens to the texts of the next two columns. */
static void cell_reason(FILE *out, struct query *query, int column)
{
    fputs("<td class=\"w\"><details><summary>", out);
    html_text(out, query_text(query, column, NULL), 300);
    fputs("</summary><pre>", out);
    html_lines(out, query_text(query, column + 1, NULL), 4000);
    if (query_type(query, column + 2) != QUERY_NULL) {
        fputs("\n\n", out);
        html_lines(out, query_text(query, column + 2, NULL), 4000);
    }
    fputs("</pre></details></td>", out);
}

/* ---- the head -------------------------------------------------------------- */

static void fact(void *to, const char *name, const char *value)
{
    FILE *out = to;

    fprintf(out, "<dt>%s</dt><dd>", name);
    html_text(out, value, 4000);
    fputs("</dd>\n", out);
}

static void card(FILE *out, const char *kind, const char *title, const char *value, const char *what)
{
    fprintf(out, "<div class=\"card%s%s\" title=\"%s\"><b>%s</b>%s</div>\n", *kind ? " " : "", kind, title, value,
            what);
}

/* Losses, before anything that they make doubtful. */
static bool losses_put(struct report *report)
{
    FILE *out = report->out;
    struct query *query = db_query(report->db, schema_statement("report/losses"));
    char human[TABLE_HUMAN];

    for (int64_t row = 0; row != report->limit && query_step(query); row++) {
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

static bool compile_cards(struct report *report)
{
    FILE *out = report->out;
    struct query *query = db_query(report->db, schema_statement("report/compile_sums"));
    char human[TABLE_HUMAN];

    if (query_step(query)) {
        int64_t made = query_integer(query, 0), again = query_integer(query, 3), breaks = query_integer(query, 4);
        if (made) {
            card(out, "", "that made code", table_count(human, made), "compiles");
            card(out, "", "of all compiles", table_duration(human, query_integer(query, 2)), "in the compiler");
            card(out, again ? "bad" : "good", "in a process whose cache had held code for it",
                 table_count(human, again), "recompiles");
        }
        if (breaks || query_integer(query, 8))
            card(out, breaks ? "bad" : "good", "places where a compile had to stop", table_count(human, breaks),
                 "graph breaks");
    }
    return query_close(query);
}

static void outcome_row(FILE *out, const char *word, int64_t calls, double percent, int64_t time_ns)
{
    fprintf(out, "<tr><td>%s</td>", word);
    cell_number(out, CELL_COUNT, calls);
    if (percent >= 0)
        fprintf(out, "<td class=\"n\" data-v=\"%" PRId64 "\">%.3g %%</td>", calls, percent);
    else
        cell_empty(out, CELL_COUNT);
    cell_number(out, CELL_TIME, time_ns);
    fputs("</tr>\n", out);
}

static void outcomes_put(struct report *report)
{
    static const struct column columns[] = {
        {'a', 0, CELL_TEXT, "outcome", "how a call was decided", 0}, {'b', 0, CELL_COUNT, "calls", "", 0},
        {'c', 0, CELL_COUNT, "share", "of those that count in shares", 0},
        {'d', 0, CELL_TIME, "lookups", "time until it was known what runs", 0}, {0},
    };
    static const struct section section = {.columns = columns};

    table_begin(report, "outcomes", &section, "abcd", false);
    for (int o = 0; o < OUTCOMES; o++)
        if (report->calls[o])
            outcome_row(report->out, outcome_word(o), report->calls[o],
                        outcome_facts[o].asked ? report_percent(report, report->calls[o]) : -1, report->times_ns[o]);
    if (report->turned_away)
        outcome_row(report->out, "not counted: the compiler turned the function away unread", report->turned_away, -1,
                    report->turned_away_ns);
    fputs("</tbody></table></div>\n", report->out);
}

static bool overview_put(struct report *report)
{
    FILE *out = report->out;
    bool called = report->sums.asked || report->turned_away || report->calls[OUTCOME_PLAIN], ok;
    char human[TABLE_HUMAN];

    fputs("<section id=\"overview\">\n<h2>Overview</h2>\n<dl class=\"facts\">\n", out);
    ok = report_facts(report, fact, out);
    fputs("</dl>\n<div class=\"cards\">\n", out);
    card(out, "", "Python processes that were followed",
         table_count(human, db_integer(report->db, 0, "SELECT COUNT(*) FROM process")), "processes");
    card(out, "", "threads that evaluated a frame",
         table_count(human, db_integer(report->db, 0, "SELECT COUNT(*) FROM thread")), "threads");
    if (called) {
        card(out, "", "calls that a compiler was asked about", table_count(human, report->sums.asked), "calls decided");
        percent_card(out, report_percent(report, report->sums.hits), true, "of these calls", "hits");
        percent_card(out, report_percent(report, report->sums.python), false, "of these calls", "ran as Python");
    }
    ok = compile_cards(report) && ok;
    if (called && db_integer(report->db, 0, "SELECT EXISTS (SELECT 1 FROM guard_check WHERE duration_ns IS NOT NULL)"))
        card(out, "", "of all checks of guards",
             table_duration(human, db_integer(report->db, 0, "SELECT SUM(duration_ns) FROM guard_check")), "in guards");
    fputs("</div>\n", out);
    if (called)
        outcomes_put(report);
    fputs("</section>\n", out);
    return ok;
}

/* ---- tables ---------------------------------------------------------------- */

static bool section_put(struct report *report, const struct section *section)
{
    FILE *out = report->out;
    struct query *query = db_query(report->db, schema_statement(section->statement));
    int64_t rows = 0;

    fprintf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", section->id, section->title);
    for (; rows != report->limit && query_step(query); rows++) {
        if (!rows)
            table_begin(report, section->id, section, section->page, true);
        fputs("<tr>", out);
        for (int i = 0; section->page[i]; i++) {
            const struct column *column = section_column(section, section->page, i);
            if (column->type == CELL_WHERE)
                cell_where(out, query, column->at - 'a', column->line - 'a');
            else if (column->type == CELL_REASON)
                cell_reason(out, query, column->at - 'a');
            else
                cell_put(out, column->type, query, column->at - 'a');
        }
        fputs("</tr>\n", out);
    }
    if (rows)
        rows_end(report, rows, query);
    else
        fprintf(out, "<p class=\"soft\">%s</p>\n", section->none);
    fputs("</section>\n", out);
    return query_close(query);
}

static bool processes_put(struct report *report)
{
    static const struct column columns[] = {
        {'a', 0, CELL_TEXT, "pid", "", 0}, {'b', 0, CELL_TEXT, "ended", "", 0}, {'c', 0, CELL_TIME, "ran", "", 0},
        {'d', 0, CELL_COUNT, "threads", "", 0}, {'e', 0, CELL_TEXT, "python", "", 0}, {'f', 0, CELL_TEXT, "rank", "",
                                                                                       0},
        {'g', 0, CELL_CODE, "command", "", 0}, {0},
    };
    static const struct section section = {.columns = columns};
    FILE *out = report->out;
    struct query *query = db_query(report->db, schema_statement("report/processes"));
    int64_t rows = 0;
    char ended[64], *words;

    fputs("<section id=\"processes\">\n<h2>Processes</h2>\n", out);
    table_begin(report, "t-processes", &section, "abcdefg", false);
    for (; rows != report->limit && query_step(query); rows++) {
        fputs("<tr><td class=\"code\">", out);
        for (int64_t i = query_integer(query, PROCESS_DEPTH); i > 0; i--)
            fputs("&#8195;", out);
        fprintf(out, "%" PRId64 "</td><td>%s</td>", query_integer(query, PROCESS_PID),
                report_ended(report, query, ended));
        cell_put(out, CELL_TIME, query, PROCESS_RAN);
        cell_put(out, CELL_COUNT, query, PROCESS_THREADS);
        cell_put(out, CELL_TEXT, query, PROCESS_PYTHON);
        cell_put(out, CELL_TEXT, query, PROCESS_RANK);
        if (query_type(query, PROCESS_ARGV) == QUERY_NULL) {
            cell_empty(out, CELL_CODE);
        } else {
            words = report_words(report->db, query_text(query, PROCESS_ARGV, NULL));
            cell_text(out, CELL_CODE, words);
            free(words);
        }
        fputs("</tr>\n", out);
    }
    rows_end(report, rows, query);
    fputs("</section>\n", out);
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
    for (const struct section *section = report_sections; section->id; section++)
        ok = section_put(report, section) && ok;
    ok = report_pictures(report) && ok;
    ok = processes_put(report) && ok;
    fprintf(out, "</main>\n<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n", nonce, report_js);
    return ok;
}

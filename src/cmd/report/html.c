/* cmd/report/html.c -- `dyntrace report --html`: one file for a browser. See cmd/report/report.h.
 *
 * Runs in: the viewer.
 *
 * Figures and tables are markup, which the page's script (page/report.js) sorts; the pictures it draws. The page loads
 * nothing, and its Content-Security-Policy forbids the browser to, or to run any script but the page's own, known by a
 * random nonce: the names in a trace come from anybody. They are escaped besides. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cmd/report/report.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

extern const char report_css[], report_js[]; /* made by src/cmd/report/page/embed.sh */

void html_text(FILE *out, const char *text, size_t width)
{
    size_t bytes = prose_cut(text, width);
    char *copy = strndup(text, bytes), *rest = copy, *line;

    while ((line = strsep(&rest, "\n"))) {
        char *safe = say_escape(line, strlen(line));
        for (const char *s = safe; *s; s++)
            switch (*s) {
            case '&': fputs("&amp;", out); break;
            case '<': fputs("&lt;", out); break;
            case '>': fputs("&gt;", out); break;
            case '"': fputs("&quot;", out); break;
            case '\'': fputs("&#39;", out); break;
            default: putc(*s, out);
            }
        free(safe);
        fputs(rest ? "\n" : "", out);
    }
    fputs(text[bytes] ? "…" : "", out);
    free(copy);
}

/* ---- the head ----------------------------------------------------------------- */

static void fact(void *to, const char *name, const char *value)
{
    fprintf(to, "<dt>%s</dt><dd>", name);
    html_text(to, value, 4000);
    fputs("</dd>\n", to);
}

static void cards_put(struct report *report)
{
    struct query *query = db_query(report->db, schema_statement("report/cards"));
    char value[TABLE_HUMAN];

    query_bind_integer(query, 1, report->sums.asked);
    query_bind_integer(query, 2, report->sums.hits);
    query_bind_integer(query, 3, report->sums.python);
    query_bind_integer(query, 4, report_decided(report));
    while (query_step(query)) {
        const char *what = query_text(query, 0, NULL), *title = query_text(query, 1, NULL), *type = query_text(query, 3, NULL);
        if (!strcmp(type, "percent"))
            snprintf(value, sizeof value, "%.3g %%", query_real(query, 2));
        else
            (*type == 'n' ? table_duration : table_count)(value, query_integer(query, 2));
        fprintf(report->out, "<div class=\"card %s\" title=\"%s\"><b>%s</b>%s</div>\n", query_text(query, 4, NULL), title, value, what);
    }
    query_close(query);
}

static void overview_put(struct report *report)
{
    FILE *out = report->out;

    fputs("<section id=\"overview\">\n<h2>Overview</h2>\n<dl class=\"facts\">\n", out);
    report_facts(report, fact, out);
    fputs("</dl>\n<div class=\"cards\">\n", out);
    cards_put(report);
    fputs("</div>\n", out);
    if (report_decided(report))
        report_table(report, "outcomes", true);
    fputs("</section>\n", out);
}

/* ---- the page ----------------------------------------------------------------- */

bool report_html(struct report *report)
{
    static const char *const tables[] = {"compiles", "causes", "recompiles", "breaks", "limits", "guards", "functions"};
    FILE *out = report->out;
    const char *path = db_path(report->db), *name = strrchr(path, '/');
    uint64_t random[2]; /* which who made the trace cannot know */
    char nonce[33];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        say_error("report: no random numbers from the system");
        return false;
    }
    snprintf(nonce, sizeof nonce, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
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
    fputs("</header>\n<main>\n", out);
    report_table(report, "losses", false); /* before anything that they make doubtful */
    overview_put(report);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        report_table(report, tables[i], false);
    pictures_put(report);
    report_table(report, "processes", false);
    fprintf(out, "</main>\n<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n", nonce, report_js);
    return true;
}

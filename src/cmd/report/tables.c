/* cmd/report/tables.c -- the tables of `dyntrace report`, for a terminal and for a browser. See
 * cmd/report/report.h.
 *
 * What a table asks, its heading and its columns are in schemas/report.sql, whose head has the
 * form. */
#include <inttypes.h>

#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/cause_read.h"
#include "trace/db.h"
#include "trace/page_text.h"
#include "trace/prose.h"

enum { COLUMNS = 16 };

struct column {
    const char *name, *heading, *what; /* borrowed */
    int at, line;                      /* in the statement; line: of `filename` */
    size_t width;                      /* bytes of a text that a terminal shows */
    bool code;
};

/* What stands behind WORD in the statement SQL, up to the end of the line; NULL: it has no such
 * line. */
static const char *word_of(const char *sql, const char *word)
{
    const char *at = strstr(sql, word);

    return at ? at + strlen(word) : NULL;
}

static int column_at(struct query *query, const char *name)
{
    int at = query_columns(query);

    while (at-- > 0 && strcmp(query_name(query, at), name) != 0)
        ;
    return at;
}

/* TEXT without the blanks around it. */
static char *trimmed(char *text)
{
    text += strspn(text, " ");
    for (char *end = text + strlen(text); end > text && end[-1] == ' ';)
        *--end = 0;
    return text;
}

/* The columns of SPEC, "`name`? 80: heading (what it is) | ...", which is cut up; those that are
 * optional only if some row has them. */
static int columns_read(struct column *columns, char *spec, struct query *query)
{
    int count = 0, line = column_at(query, "at_line");

    while (count < COLUMNS && spec) {
        char *name = trimmed(strsep(&spec, "|")), *what = name, *heading, *width;
        bool code = *name == '`', optional, any = false;
        strsep(&what, "(");
        heading = name;
        strsep(&heading, ":");
        width = name;
        strsep(&width, " ");
        optional = strchr(name, '?');
        name += code;
        name[strcspn(name, "?`")] = 0;
        if (what)
            what[strcspn(what, ")")] = 0;
        columns[count] = (struct column){
            .name = name,
            .heading = heading ? trimmed(heading) : name,
            .what = what ? what : "",
            .code = code,
            .at = column_at(query, name),
            .line = line < 0 ? column_at(query, "first_line") : line,
            .width = width && *width ? strtoul(width, NULL, 10) : 1 << 16,
        };
        while (optional && query_step(query))
            any = any || query_type(query, columns[count].at) != QUERY_NULL;
        if (optional)
            query_reset(query);
        count += !optional || any;
    }
    return count;
}

/* ---- cells --------------------------------------------------------------- */

static char *ended_words(const struct report *report, struct query *query, int at)
{
    if (query_type(query, at) == QUERY_NULL)
        return strdup(report->live == LIVE_NO ? "end not seen" : "still running");
    return prose_ended(query_text(query, at, NULL));
}

/* The value of COLUMN for people, a text up to WIDTH bytes; the caller frees it. NULL is NULL. */
static char *cell_words(const struct report *report, struct query *query,
                        const struct column *column, size_t width)
{
    char human[TABLE_HUMAN];
    int64_t value = query_integer(query, column->at);
    const char *text;
    size_t bytes;

    if (!strcmp(column->name, "_ended"))
        return ended_words(report, query, column->at);
    switch (query_type(query, column->at)) {
    case QUERY_NULL:
        return NULL;
    case QUERY_REAL:
        return say_print("%.3g %%", query_real(query, column->at));
    case QUERY_INTEGER:
        if (strstr(column->name, "ns_") || strstr(column->name, "_ns"))
            return strdup(table_duration(human, value));
        return strstr(column->name, "id") || !strcmp(column->name, "rank")
                   ? say_print("%" PRId64, value)
                   : strdup(table_count(human, value));
    default:
        text = query_text(query, column->at, NULL);
        if (!strcmp(column->name, "filename"))
            return say_print("%s:%" PRId64, prose_path(text), query_integer(query, column->line));
        bytes = prose_cut(text, width);
        return say_print("%.*s%s", (int)bytes, text, text[bytes] ? "…" : "");
    }
}

static bool is_number(struct query *query, const struct column *column)
{
    enum query_type type = query_type(query, column->at);

    return type == QUERY_INTEGER || type == QUERY_REAL;
}

static void cell_html(const struct report *report, struct query *query, const struct column *column)
{
    FILE *out = report->out;
    char *words = cell_words(report, query, column, 400), *setting = NULL;
    /* behind it are the last two of a cause's columns */
    int guard = !strcmp(column->name, "_what") ? column_at(query, "_guard_id") : -1;

    if (guard >= 0)
        setting = cause_setting(&(struct cause[]){cause_read(query, guard - CAUSE_READ + 3)}[0]);
    if (!words) {
        fputs("<td class=\"soft\">-</td>", out);
        return;
    }
    if (is_number(query, column)) {
        fprintf(out, "<td class=\"n\" data-v=\"%.17g\">", query_real(query, column->at));
    } else if (!strcmp(column->name, "filename")) {
        fputs("<td class=\"code\" title=\"", out);
        html_text(out, query_text(query, column->at, NULL), 1000);
        fputs("\">", out);
    } else {
        fprintf(out, "<td class=\"w%s\">", column->code ? " code" : "");
    }
    if (!strcmp(column->name, "_what")) {
        fputs("<details><summary>", out);
        html_text(out, words, 300);
        fputs("</summary><pre>", out);
        html_text(out, query_text(query, column->at + 1, NULL), 4000);
        fputs("\n\n", out);
        html_text(out, query_text(query, column->at + 2, NULL), 4000);
        if (setting) {
            fputs("\n\nwithout it: dyntrace replay --what-if ", out);
            html_text(out, setting, 400);
        }
        fputs("</pre></details>", out);
    } else {
        html_text(out, words, 400);
    }
    fputs("</td>", out);
    free(setting);
    free(words);
}

/* ---- tables -------------------------------------------------------------- */

static void sums_bind(const void *context, struct query *query)
{
    const struct report *report = context;

    query_bind_integer(query, 1, report->sums.asked);
    query_bind_integer(query, 2, report->sums.hits);
    query_bind_integer(query, 3, report->sums.python);
    query_bind_integer(query, 4, report->turned_away);
}

/* What all calls, or all compiles, were in a sentence. */
static void sums_print(const struct report *report, const char *name)
{
    struct page_text page = {
        .out = report->out,
        .db = report->db,
        .way = TEMPLATE_LINES,
        .context = report,
        .bind = sums_bind,
    };

    if (!strcmp(name, "outcomes"))
        page_text_print(&page, "report/call_sums", report->sums.asked);
    else if (!strcmp(name, "compiles"))
        page_text_print(&page, "report/compile_sums", 0);
}

/* The rows of QUERY, which is at the first if there is ANY, for a terminal. Returns how many. */
static int64_t rows_print(const struct report *report, struct query *query,
                          const struct column *columns, int count, bool any)
{
    const char *names[COLUMNS];
    int alarm = column_at(query, "_alarm");
    struct table *table;
    int64_t rows = 0;

    for (int i = 0; i < count; i++)
        names[i] = columns[i].heading;
    table = table_open(report->out, table_format(report->out, false), count, names);
    for (; any; rows++, any = rows != report->limit && query_step(query)) {
        if (alarm >= 0 && query_integer(query, alarm))
            table_alarm(table);
        for (int i = 0; i < count; i++) {
            char *words = cell_words(report, query, &columns[i], columns[i].width);
            if (words && is_number(query, &columns[i]))
                table_figure(table, words);
            else
                table_string(table, words);
            free(words);
        }
    }
    table_close(table);
    return rows;
}

/* The same for a browser. */
static int64_t rows_html(const struct report *report, struct query *query,
                         const struct column *columns, int count, const char *id)
{
    FILE *out = report->out;
    int alarm = column_at(query, "_alarm");
    int64_t rows = 0;

    fprintf(out, "<div class=\"scroll\"><table class=\"sort\" id=\"t-%s\"><thead><tr>", id);
    for (int i = 0; i < count; i++)
        fprintf(out, "<th%s title=\"%s\">%s</th>",
                is_number(query, &columns[i]) ? " class=\"n\"" : "", columns[i].what,
                columns[i].heading);
    fputs("</tr></thead><tbody>\n", out);
    do {
        fputs(alarm >= 0 && query_integer(query, alarm) ? "<tr class=\"alarm\">" : "<tr>", out);
        for (int i = 0; i < count; i++)
            cell_html(report, query, &columns[i]);
        fputs("</tr>\n", out);
    } while (++rows != report->limit && query_step(query));
    fputs("</tbody></table></div>\n", out);
    return rows;
}

static void heading_put(const struct report *report, const char *name, const char *title)
{
    char *cut = strndup(title, strcspn(title, "\n"));

    if (report->page)
        fprintf(report->out, "<h2>%s</h2>\n<p class=\"soft\">", cut);
    else
        prose_title(report->out, cut);
    sums_print(report, name); /* words of ours and numbers: there is no markup in it */
    if (report->page)
        fputs("</p>\n", report->out);
    free(cut);
}

void report_table(struct report *report, const char *name, bool bare)
{
    char *path = say_print("report/%s", name);

    report_table_of(report, report->db, path, bare);
    free(path);
}

void report_table_of(struct report *report, struct db *db, const char *path, bool bare)
{
    const char *name = strchr(path, '/') + 1;
    char id[32];
    const char *sql, *none;
    char *spec;
    struct column columns[COLUMNS];
    struct query *query;
    FILE *out = report->out;
    int64_t rows = 0, all;
    int count;
    bool any;

    sql = schema_statement(path);
    query = db_query(db, sql);
    if (!strcmp(name, "outcomes")) {
        char *calls = NULL;
        size_t bytes;
        struct json json = {.out = open_memstream(&calls, &bytes)};
        report_outcomes(report, &json, NULL);
        fclose(json.out);
        query_bind_text(query, 1, calls);
        query_bind_integer(query, 2, report->sums.asked);
        free(calls);
    }
    spec = strdup(word_of(sql, report->page ? "--page " : "--text "));
    spec[strcspn(spec, "\n")] = 0;
    none = word_of(sql, "--none ");
    count = columns_read(columns, spec, query);
    any = query_step(query);
    if (!any && !(report->page && none) && !word_of(sql, "--always"))
        goto out;
    if (sscanf(word_of(sql, "--id ") ? word_of(sql, "--id ") : name, "%31[^\n]", id) == 1 &&
        report->page && !bare)
        fprintf(out, "<section id=\"%s\">\n", id);
    heading_put(report, name, word_of(sql, "--title "));
    if (report->page && any && !bare)
        fprintf(out,
                "<div class=\"tools\"><input type=\"search\" data-for=\"t-%s\" "
                "placeholder=\"filter rows\" aria-label=\"filter rows\"></div>\n",
                id);
    if (!report->page)
        rows = rows_print(report, query, columns, count, any);
    else if (any)
        rows = rows_html(report, query, columns, count, id);
    else if (none)
        fprintf(out, "<p class=\"soft\">%.*s</p>\n", (int)strcspn(none, "\n"), none);
    for (all = rows; rows == report->limit && query_step(query);)
        all++;
    if (all > rows)
        fprintf(out,
                report->page ? "<p class=\"soft\">The first %" PRId64 " of %" PRId64
                               "; --limit 0 shows all.</p>\n"
                             : "(%" PRId64 " of %" PRId64 "; --limit 0 shows all)\n",
                rows, all);
    if (report->page && !bare)
        fputs("</section>\n", out);
out:
    query_close(query);
    free(spec);
}

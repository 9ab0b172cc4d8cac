/* cmd/report/html.c -- writes the page of `dyntrace report --html`. See cmd/report/report.h.
 *
 * schemas/pages/html.txt has the markup around the tables. The page's script (page/report.js) sorts
 * the tables and draws the pictures. The page loads nothing: its Content-Security-Policy forbids
 * the browser to load anything, or to run any script but the page's own, which has a random nonce.
 * The names in a trace may be malicious, so the templates escape them, too. */
#include <inttypes.h>
#include <sys/random.h>

#include "cmd/ranks.h"
#include "cmd/report/advice.h"
#include "cmd/report/picture.h"
#include "cmd/report/report.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/findings.h"
#include "trace/page_text.h"

/* the page's style sheet and script, made of the files in page/ by src/cmd/embed.sh */
extern const char report_css[], report_js[];

/* ---- the figures at the head of the page --------------------------------- */

/* The page that is being printed, for the callbacks of its templates (schemas/pages/html.txt). */
static struct {
    struct report *report;
    struct picture *picture;
} now;

static void print_fact_as_html(void *to, const char *name, const char *value)
{
    struct page_text *page = to;

    fact(page, "name", name);
    fact(page, "value", value);
    page_text_print_row(page, "pages/html/fact", 0);
}

static void bind_parameters_of_cards(const void *context, struct query *query)
{
    const struct report *report = context;

    query_bind_integer(query, 2, report->sums.asked);
    query_bind_integer(query, 3, report->sums.hits);
    query_bind_integer(query, 4, report->sums.python);
    query_bind_integer(query, 5, report_has_decisions(report));
}

/* ---- comparing the ranks of the job -------------------------------------- */

/* If the trace is of a finished job with several ranks, compare the ranks. Otherwise return NULL.
 * The caller closes the result with db_close. */
static struct db *compare_ranks(const struct report *report)
{
    char *file = (char *)db_get_file_path(report->db);
    bool ended = report->state && strcmp(report->state, "recording");

    return ended && db_integer(report->db, 0, schema_statement("report/is-job"))
               ? ranks_compare((char *[]){file, NULL}, NULL)
               : NULL;
}

/* ---- printing the page ------------------------------------------------------------ */

/* Print JSON inside an HTML element. Every "<" is escaped, so that no name can end the element. In
 * JSON, "<" occurs only in strings. */
static void print_json_in_html(FILE *out, const char *json)
{
    for (const char *at = json; *at; at++) {
        if (*at == '<')
            fputs("\\u003c", out);
        else
            putc(*at, out);
    }
}

static void print_pictures(FILE *out)
{
    char *json = picture_make_json(now.picture);

    print_json_in_html(out, json);
    free(json);
}

/* Print a link to each section. */
static void print_section_links(struct page_text *page)
{
    list_each(link, &now.report->links) {
        fact(page, "id", link->id);
        fact(page, "words", link->words);
        page_text_print_row(page, "pages/html/link", 0);
    }
}

static void print_part(struct page_text *page, const char *name, struct query *row)
{
    struct report *report = now.report;

    if (!strcmp(name, "css"))
        fputs(report_css, page->out);
    else if (!strcmp(name, "js"))
        fputs(report_js, page->out);
    else if (!strcmp(name, "links"))
        print_section_links(page);
    else if (!strcmp(name, "findings"))
        findings_print(page->db, page->out, TEMPLATE_HTML, NULL);
    else if (!strcmp(name, "facts"))
        report_facts(report, print_fact_as_html, page);
    else if (!strcmp(name, "pictures"))
        print_pictures(page->out);
    else if (!strcmp(name, "outcomes") && report_has_decisions(report))
        report_print_table(report, "outcomes", true);
}

static void print_page_head(struct page_text *page)
{
    const char *path = db_get_path(page->db);
    const char *name = strrchr(path, '/');

    fact(page, "name", name ? name + 1 : path);
    fact(page, "nonce", now.report->nonce);
    page_text_print_row(page, "pages/html/head", 0);
}

/* Print a block of schemas/pages/html.txt that has only one field, the number {one}. */
static void print_template_block(struct page_text *page, const char *block)
{
    int64_t one = 1;

    fact(page, "one", one);
    page_text_print_row(page, block, 0);
}

/* Print the sections in this order: what to do, decisions, times, pictures, facts about the
 * recording. */
static void print_sections(struct page_text *page)
{
    static const char *const compared[] = {"ranks/ranks", "ranks/differs", "ranks/storms"};
    static const char *const tables[] = {"trials",     "spans",         "longest_spans", "causes",
                                         "recompiles", "breaks",        "eager",         "compiles",
                                         "limits",     "own_functions", "longest",       "waiting",
                                         "packages",   "functions",     "guard_costs",   "guards"};
    struct report *report = now.report;
    struct db *ranks = compare_ranks(report);

    /* losses come first, because they make the tables below uncertain */
    if (report_has_doubts(report))
        report_print_table(report, "losses", false);
    report_print_link(report, "overview", "overview");
    print_template_block(page, "pages/html/overview");
    advice_print_html(report, page);
    for (size_t i = 0; ranks && i < array_count(compared); i++)
        report_print_table_of_trace(report, ranks, compared[i], false);
    db_close(ranks);
    for (size_t i = 0; i < array_count(tables); i++)
        report_print_table(report, tables[i], false);
    fact(page, "unstored", doubts_describe_unstored_frames(page->db));
    page_text_print_row(page, "pages/html/pictures", 0);
    report_print_link(report, "recording", "recording");
    print_template_block(page, "pages/html/recording");
    if (!report_has_doubts(report))
        report_print_table(report, "losses", false);
    report_print_table(report, "processes", false);
    report_print_table(report, "glossary", false);
}

/* Print the page to OUT. The sections are made before the head, because the head has a link to each
 * of them. */
static void print_html_page(struct report *report, FILE *out)
{
    struct page_text page = {
        .db = report->db,
        .way = TEMPLATE_HTML,
        .context = report,
        .bind = bind_parameters_of_cards,
        .call = print_part,
    };
    char *sections = NULL;
    size_t bytes;

    report->out = page.out = open_memstream(&sections, &bytes);
    print_sections(&page);
    fclose(page.out);
    report->out = page.out = out;
    print_page_head(&page);
    fwrite(sections, 1, bytes, out);
    fact(&page, "nonce", report->nonce);
    page_text_print_row(&page, "pages/html/foot", 0);
    free(sections);
}

bool report_print_html(struct report *report)
{
    /* random bits for the page's nonce, which the maker of a malicious trace cannot guess */
    uint64_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        say_error("report: no random numbers from the system");
        return false;
    }
    snprintf(report->nonce, sizeof report->nonce, "%016" PRIx64 "%016" PRIx64, random[0],
             random[1]);
    now.report = report;
    now.picture = picture_read(report);
    report->longest = picture_longest_calls(now.picture);
    print_html_page(report, report->out);
    picture_free(now.picture);
    free(report->longest);
    list_free(&report->links);
    return true;
}

/* cmd/report/html.c -- `dyntrace report --html`: one file for a browser. See cmd/report/report.h.
 *
 * schemas/pages/html.txt has the markup around the tables. The page's script (page/report.js) sorts
 * the tables and draws the pictures. The page loads nothing: its Content-Security-Policy forbids
 * the browser to load anything, or to run any script but the page's own, which has a random nonce.
 * Anybody may have chosen the names in a trace. The templates escape them, too. */
#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#include "cmd/ranks.h"
#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/findings.h"
#include "trace/page_text.h"
#include "trace/stacks.h"

extern const char report_css[], report_js[]; /* made by src/cmd/embed.sh */

/* ---- the head ------------------------------------------------------------ */

/* The page that is being printed, by the blocks of schemas/pages/html.txt. */
static struct {
    struct report *report;
    const char *pictures; /* the data of the pictures, as JSON */
} now;

static void fact_html(void *to, const char *name, const char *value)
{
    struct page_text *page = to;

    fact(page, "name", name);
    fact(page, "value", value);
    page_text_row(page, "pages/html/fact", 0);
}

static void cards_bind(const void *context, struct query *query)
{
    const struct report *report = context;

    query_bind_integer(query, 2, report->sums.asked);
    query_bind_integer(query, 3, report->sums.hits);
    query_bind_integer(query, 4, report->sums.python);
    query_bind_integer(query, 5, report_decided(report));
}

/* ---- data of the timeline and the flame graph ----------------------------------- */

/* One walk over the frames (trace/stacks.h) folds their stacks for the flame graph, and keeps the
 * LONGEST longest frames for the timeline. Shorter frames would be thinner than a pixel. The data
 * become rows of JSON, which page/report.js draws and zooms:
 *
 *     span       nanoseconds of the recording
 *     frames     [thread, code, start, length, depth, id]
 *     compiles   [thread, code, start, length, label, graph breaks]
 *     misses     [thread, code, start, 0, outcome, lookup]
 *     outcomes   ["plain", ...]: the word of each outcome's number
 *     all        nanoseconds of the whole flame graph
 *     boxes      [depth, code (thread at depth 0), total nanoseconds, own nanoseconds]; callers
 *                come before their callees
 *     codes      {"7": ["f", "app.py", 12]}
 *     threads    {"1": ["MainThread of 4711"]} */
enum {
    LONGEST = 6000, /* frames of the timeline */
    DEPTH = 40,     /* levels of a thread's frames in the timeline */
    BOXES = 6000,   /* boxes of the flame graph */
    FLAME_DEPTH = 250,
};

struct long_frame {
    int64_t id, thread_id, code_id, start_ns, ns, depth;
};

struct picture {
    struct report *report; /* borrowed */
    struct stacks stacks;
    /* the longest frames so far, and newer ones until the array is full */
    struct long_frame frames[2 * LONGEST];
    size_t count;
    int64_t end_ns, last_frame;
    int64_t least_ns; /* frames that took at most this long are not among the longest */
};

static bool picture_tick(void *context, int64_t frame_id)
{
    struct picture *picture = context;

    progress_tick(&picture->report->progress, frame_id, picture->last_frame);
    return true;
}

static int longest_first(const void *a, const void *b)
{
    const struct long_frame *x = a;
    const struct long_frame *y = b;
    int order = list_order(y->ns, x->ns);

    return order ? order : list_order(x->id, y->id);
}

static void longest_keep(struct picture *picture)
{
    qsort(picture->frames, picture->count, sizeof *picture->frames, longest_first);
    if (picture->count < LONGEST)
        return;
    picture->count = LONGEST;
    picture->least_ns = picture->frames[LONGEST - 1].ns;
}

static void picture_push(void *context, struct track *track)
{
    struct picture *picture = context;
    const struct open_frame *frame = track_top(track);
    int64_t ns = times_span(frame->start_ns, frame->end_ns);
    int64_t depth = (int64_t)track->stack.count - 1;
    struct long_frame *kept = &picture->frames[picture->count];

    if (depth >= DEPTH || ns <= picture->least_ns)
        return;
    picture->count++;
    *kept = (struct long_frame){
        .id = frame->id,
        .thread_id = track->thread_id,
        .code_id = frame->code_id,
        .start_ns = frame->start_ns,
        .ns = ns,
        .depth = depth,
    };
    if (picture->count == 2 * LONGEST)
        longest_keep(picture);
}

struct rows {
    struct json json;
    struct map codes, threads; /* ids that occur in a row */
};

static void row_put(struct rows *rows, size_t count, const int64_t *values)
{
    struct json *json = &rows->json;

    json_list(json, NULL);
    for (size_t i = 0; i < count; i++)
        json_integer(json, NULL, values[i]);
    json_end(json);
}

/* Note that the names of THREAD_ID and CODE_ID are needed. */
static void need_names(struct rows *rows, int64_t thread_id, int64_t code_id)
{
    *map_put(&rows->threads, thread_id) = 1;
    *map_put(&rows->codes, code_id) = 1;
}

/* Write a box of the timeline: thread, code, start, length, and two more values. */
static void lane_row(struct rows *rows, const int64_t values[6])
{
    need_names(rows, values[0], values[1]);
    row_put(rows, 6, values);
}

/* Write a column of the current row. Control characters in text become escapes. */
static void member_put(struct rows *rows, struct query *query, int column)
{
    struct json *json = &rows->json;
    enum query_type type = query_type(query, column);
    const char *text;
    char *safe;
    size_t bytes;

    if (type != QUERY_TEXT) {
        json_maybe(json, NULL, type == QUERY_INTEGER, query_integer(query, column));
        return;
    }
    text = query_text(query, column, &bytes);
    safe = say_escape(text, bytes);
    json_string(json, NULL, safe);
    free(safe);
}

static void timeline_rows(struct rows *rows, struct picture *picture)
{
    struct json *json = &rows->json;
    struct report *report = picture->report;

    json_list(json, "frames");
    for (size_t i = 0; i < picture->count; i++) {
        const struct long_frame *f = &picture->frames[i];
        const int64_t values[] = {
            f->thread_id, f->code_id, f->start_ns, f->ns, f->depth, f->id,
        };
        lane_row(rows, values);
    }
    json_end(json);
    json_list(json, "compiles");
    db_rows(query, report->db, schema_statement("report/picture_compiles"))
    {
        need_names(rows, query_integer(query, 0), query_integer(query, 1));
        json_list(json, NULL);
        for (int i = 0; i < 4; i++)
            json_integer(json, NULL, query_integer(query, i));
        member_put(rows, query, 4);
        member_put(rows, query, 5);
        json_end(json);
    }
    json_end(json);
    json_list(json, "misses");
    for (size_t i = 0; i < report->mark_count; i++) {
        const struct counted_call *m = &report->marks[i];
        const int64_t values[] = {
            m->thread_id, m->code_id, m->start_ns, 0, m->outcome, m->lookup_id,
        };
        lane_row(rows, values);
    }
    json_end(json);
    json_list(json, "outcomes");
    for (int o = 0; o < OUTCOMES; o++)
        json_string(json, NULL, outcome_word(o));
    json_end(json);
}

/* Write the boxes of NODE's callees, the longest first. *LEFT is how many more boxes are
 * allowed. */
static void flame_rows(struct rows *rows, const struct node *nodes, uint32_t node, int *left)
{
    int64_t least_ns = nodes[0].total_ns / 4000 + 1;

    for (uint32_t at = nodes[node].child; at && nodes[at].total_ns >= least_ns && (*left)-- > 0;
         at = nodes[at].sibling) {
        const struct node *n = &nodes[at];
        const int64_t values[] = {
            n->depth - 1,
            n->code_id,
            n->total_ns,
            n->self_ns > 0 ? n->self_ns : 0,
        };
        *map_put(n->parent ? &rows->codes : &rows->threads, n->code_id) = 1;
        row_put(rows, 4, values);
        if (n->depth < FLAME_DEPTH)
            flame_rows(rows, nodes, at, left);
    }
}

/* Write a JSON member KEY: the names that STATEMENT selects for the ids in USED. */
static void names_put(struct rows *rows, struct db *db, const char *key, const char *statement,
                      const struct map *used)
{
    json_object(&rows->json, key);
    db_rows(query, db, schema_statement(statement))
    {
        if (!map_get(used, query_integer(query, 0)))
            continue;
        json_list(&rows->json, query_text(query, 0, NULL));
        for (int i = 1; i < 4; i++)
            member_put(rows, query, i);
        json_end(&rows->json);
    }
    json_end(&rows->json);
}

static void pictures_put(struct report *report, struct page_text *page)
{
    struct picture *picture = calloc(1, sizeof *picture);
    struct tree *tree = &picture->stacks.tree;
    char *made = NULL;
    size_t bytes;
    struct rows rows = {.json = {.out = open_memstream(&made, &bytes), .compact = true}};
    int left = BOXES;

    report->progress.what = "drawing";
    picture->report = report;
    picture->least_ns = -1;
    picture->end_ns = stacks_end(report->db);
    picture->last_frame = db_integer(report->db, 0, "SELECT MAX(frame_id) FROM frame");
    stacks_walk(report->db, &picture->stacks,
                &(struct walk){
                    .context = picture, .fold = true, .tick = picture_tick, .push = picture_push});
    longest_keep(picture);
    tree_link(tree);
    json_object(&rows.json, NULL);
    json_integer(&rows.json, "span", picture->end_ns > 0 ? picture->end_ns : 1);
    timeline_rows(&rows, picture);
    json_integer(&rows.json, "all", tree->nodes.at[0].total_ns);
    json_list(&rows.json, "boxes");
    flame_rows(&rows, tree->nodes.at, 0, &left);
    json_end(&rows.json);
    names_put(&rows, report->db, "codes", "report/picture_codes", &rows.codes);
    names_put(&rows, report->db, "threads", "report/picture_threads", &rows.threads);
    json_end(&rows.json);
    fclose(rows.json.out);
    now.pictures = made;
    page_text_row(page, "pages/html/pictures", 0);
    map_free(&rows.codes);
    map_free(&rows.threads);
    free(made);
    stacks_free(&picture->stacks);
    free(picture);
}

/* ---- ranks --------------------------------------------------------------- */

/* Compare the ranks of the trace if it is a finished job with several ranks, otherwise return NULL.
 * The caller closes the result with db_close. */
static struct db *ranks_of(const struct report *report)
{
    char *file = (char *)db_file(report->db);
    bool ended = report->state && strcmp(report->state, "recording");

    return ended && db_integer(report->db, 0, schema_statement("report/is-job"))
               ? ranks_compared((char *[]){file, NULL}, NULL)
               : NULL;
}

/* ---- printing the page ------------------------------------------------------------ */

/* Print JSON that stands in an HTML element. Every "<" is escaped, so that no name can end the
 * element; in JSON "<" occurs only in strings. */
static void json_html(FILE *out, const char *json)
{
    for (const char *at = json; *at; at++) {
        if (*at == '<')
            fputs("\\u003c", out);
        else
            putc(*at, out);
    }
}

static void part_put(struct page_text *page, const char *name, struct query *row)
{
    struct report *report = now.report;

    if (!strcmp(name, "css"))
        fputs(report_css, page->out);
    else if (!strcmp(name, "js"))
        fputs(report_js, page->out);
    else if (!strcmp(name, "findings"))
        findings_print(page->db, page->out, TEMPLATE_HTML, NULL);
    else if (!strcmp(name, "facts"))
        report_facts(report, fact_html, page);
    else if (!strcmp(name, "pictures"))
        json_html(page->out, now.pictures);
    else if (!strcmp(name, "outcomes") && report_decided(report))
        report_table(report, "outcomes", true);
}

static void head_put(struct page_text *page, const char *nonce, bool has_ranks)
{
    const char *path = db_path(page->db);
    const char *name = strrchr(path, '/');

    fact(page, "name", name ? name + 1 : path);
    fact(page, "nonce", nonce);
    fact(page, "ranks", has_ranks);
    page_text_row(page, "pages/html/head", 0);
}

static void overview_put(struct page_text *page)
{
    int64_t one = 1;

    fact(page, "one", one);
    page_text_row(page, "pages/html/overview", 0);
}

bool report_html(struct report *report)
{
    static const char *const compared[] = {"ranks/ranks", "ranks/differs", "ranks/storms"};
    static const char *const tables[] = {
        "causes",        "recompiles", "breaks",  "eager",    "trials",    "compiles",    "limits",
        "own_functions", "slowest",    "waiting", "packages", "functions", "guard_costs", "guards"};
    struct page_text page = {
        .out = report->out,
        .db = report->db,
        .way = TEMPLATE_HTML,
        .context = report,
        .bind = cards_bind,
        .call = part_put,
    };
    uint64_t random[2]; /* unknown to whoever made the trace */
    char nonce[33];
    struct db *ranks;

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        say_error("report: no random numbers from the system");
        return false;
    }
    snprintf(nonce, sizeof nonce, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    ranks = ranks_of(report);
    now.report = report;
    head_put(&page, nonce, ranks != NULL);
    report_table(report, "losses", false); /* before everything that losses make uncertain */
    overview_put(&page);
    for (size_t i = 0; ranks && i < array_count(compared); i++)
        report_table_of(report, ranks, compared[i], false);
    db_close(ranks);
    for (size_t i = 0; i < array_count(tables); i++)
        report_table(report, tables[i], false);
    pictures_put(report, &page);
    report_table(report, "processes", false);
    fact(&page, "nonce", nonce);
    page_text_row(&page, "pages/html/foot", 0);
    return true;
}

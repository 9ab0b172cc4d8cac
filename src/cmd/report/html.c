/* cmd/report/html.c -- `dyntrace report --html`: one file for a browser. See cmd/report/report.h.
 *
 * Figures and tables are markup, which the page's script (page/report.js) sorts; the pictures it
 * draws. The page loads nothing, and its Content-Security-Policy forbids the browser to, or to run
 * any script but the page's own, known by a random nonce: the names in a trace come from anybody.
 * They are escaped besides. */
#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#include "cmd/ranks.h"
#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "trace/template.h"

extern const char report_css[], report_js[]; /* made by src/cmd/embed.sh */

/* ---- the head ------------------------------------------------------------ */

static void fact(void *to, const char *name, const char *value)
{
    fprintf(to, "<dt>%s</dt><dd>", name);
    html_text(to, value, 4000);
    fputs("</dd>\n", to);
}

static void cards_put(struct report *report)
{
    const struct call_sums *sums = &report->sums;
    char value[TABLE_HUMAN];

    db_rows(query, report->db, schema_statement("report/cards"), sums->asked, sums->hits,
            sums->python, report_decided(report))
    {
        const char *what = query_text(query, 0, NULL), *title = query_text(query, 1, NULL),
                   *type = query_text(query, 3, NULL);
        if (!strcmp(type, "percent"))
            snprintf(value, sizeof value, "%.3g %%", query_real(query, 2));
        else
            (*type == 'n' ? table_duration : table_count)(value, query_integer(query, 2));
        fprintf(report->out, "<div class=\"card %s\" title=\"%s\"><b>%s</b>%s</div>\n",
                query_text(query, 4, NULL), title, value, what);
    }
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

/* ---- timeline and flame graph, as data ----------------------------------- */

/* One pass over the frames (trace/stacks.h) folds their stacks for the flame graph and keeps the
 * LONGEST of them for the timeline: what is shorter would be thinner than a pixel anyway. The page
 * gets them as rows of JSON, which page/report.js draws and zooms:
 *
 *     span       nanoseconds
 *     frames     [thread, code, start, length, depth, id]
 *     compiles   [thread, code, start, length, label, graph breaks]
 *     misses     [thread, code, start, 0, outcome, lookup]
 *     outcomes   ["plain", ...]: by number
 *     all        nanoseconds of the flame graph
 *     boxes      [depth, code, or of depth 0 thread, nanoseconds in all, own]: callers before what
 *                they called
 *     codes      {"7": ["f", "app.py", 12]}
 *     threads    {"1": ["MainThread of 4711"]} */
enum {
    LONGEST = 6000, /* frames of the timeline */
    DEPTH = 40,     /* rows of a lane */
    BOXES = 6000,   /* of the flame graph */
    FLAME_DEPTH = 250,
};

struct long_frame {
    int64_t id, thread_id, code_id, start_ns, ns, depth;
};

struct picture {
    struct report *report; /* borrowed */
    struct stacks stacks;
    /* those that are kept, and new ones until there are as many */
    struct long_frame frames[2 * LONGEST];
    size_t count;
    int64_t end_ns, last_frame;
    int64_t least_ns; /* what is no longer than that is none of the longest */
};

static bool picture_tick(void *context, int64_t frame_id)
{
    struct picture *picture = context;

    progress_tick(&picture->report->progress, frame_id, picture->last_frame);
    return true;
}

static int longest_first(const void *a, const void *b)
{
    const struct long_frame *x = a, *y = b;

    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->id > y->id) - (x->id < y->id);
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
    int64_t ns = times_span(frame->start_ns, frame->end_ns),
            depth = (int64_t)track->stack.count - 1;

    if (depth >= DEPTH || ns <= picture->least_ns)
        return;
    picture->frames[picture->count++] = (struct long_frame){
        frame->id, track->thread_id, frame->code_id, frame->start_ns, ns, depth};
    if (picture->count == 2 * LONGEST)
        longest_keep(picture);
}

struct rows {
    struct json json;
    struct map codes, threads; /* those that are in a row */
};

static void row_put(struct rows *rows, size_t count, const int64_t *values)
{
    json_list(&rows->json, NULL);
    for (size_t i = 0; i < count; i++)
        json_integer(&rows->json, NULL, values[i]);
    json_end(&rows->json);
}

/* A box of the timeline: thread, code, start, length, ... */
static void lane_row(struct rows *rows, const int64_t values[6])
{
    *map_put(&rows->threads, values[0]) = *map_put(&rows->codes, values[1]) = 1;
    row_put(rows, 6, values);
}

/* A value of the current row; text is escaped for people. */
static void member_put(struct rows *rows, struct query *query, int column)
{
    size_t bytes;
    const char *text = query_text(query, column, &bytes);
    char *safe = query_type(query, column) == QUERY_TEXT ? say_escape(text, bytes) : NULL;

    if (safe)
        json_string(&rows->json, NULL, safe);
    else
        json_maybe(&rows->json, NULL, query_type(query, column) == QUERY_INTEGER,
                   query_integer(query, column));
    free(safe);
}

static void timeline_rows(struct rows *rows, struct picture *picture)
{
    struct json *json = &rows->json;
    struct report *report = picture->report;

    json_list(json, "frames");
    for (size_t i = 0; i < picture->count; i++) {
        const struct long_frame *f = &picture->frames[i];
        lane_row(rows, (int64_t[]){f->thread_id, f->code_id, f->start_ns, f->ns, f->depth, f->id});
    }
    json_end(json);
    json_list(json, "compiles");
    db_rows(query, report->db, schema_statement("report/picture_compiles"))
    {
        *map_put(&rows->threads, query_integer(query, 0)) =
            *map_put(&rows->codes, query_integer(query, 1)) = 1;
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
        lane_row(rows,
                 (int64_t[]){m->thread_id, m->code_id, m->start_ns, 0, m->outcome, m->lookup_id});
    }
    json_end(json);
    json_list(json, "outcomes");
    for (int o = 0; o < OUTCOMES; o++)
        json_string(json, NULL, outcome_word(o));
    json_end(json);
}

/* The boxes of NODE's callees, the longest first; LEFT: how many more there may be. */
static void flame_rows(struct rows *rows, const struct node *nodes, uint32_t node, int *left)
{
    int64_t least_ns = nodes[0].total_ns / 4000 + 1;

    for (uint32_t at = nodes[node].child; at && nodes[at].total_ns >= least_ns && (*left)-- > 0;
         at = nodes[at].sibling) {
        const struct node *n = &nodes[at];
        *map_put(n->parent ? &rows->codes : &rows->threads, n->code_id) = 1;
        row_put(
            rows, 4,
            (int64_t[]){n->depth - 1, n->code_id, n->total_ns, n->self_ns > 0 ? n->self_ns : 0});
        if (n->depth < FLAME_DEPTH)
            flame_rows(rows, nodes, at, left);
    }
}

/* The names of those that are USED. */
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

static void pictures_put(struct report *report)
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
    fputs("<section id=\"timeline\">\n<h2>Timeline</h2>\n</section>\n<section "
          "id=\"flame\">\n<h2>Flame graph</h2>\n</section>\n"
          "<noscript><p class=\"soft\">Timeline and flame graph are drawn by a script, and scripts "
          "are off.</p></noscript>\n"
          "<script type=\"application/json\" id=\"pictures\">",
          report->out);
    for (const char *s = made; *s; s++) /* no name may end the element: "<" is only in strings */
        fputs(*s == '<' ? "\\u003c" : (const char[]){*s, 0}, report->out);
    fputs("</script>\n", report->out);
    map_free(&rows.codes);
    map_free(&rows.threads);
    free(made);
    stacks_free(&picture->stacks);
    free(picture);
}

/* ---- ranks --------------------------------------------------------------- */

/* Of a job's ranks how they compare, else NULL. The caller ends it with db_close. */
static struct db *ranks_of(const struct report *report)
{
    char *file = (char *)db_file(report->db);
    bool ended = report->state && strcmp(report->state, "recording");

    return ended && db_integer(report->db, 0, schema_statement("report/is-job"))
               ? ranks_compared((char *[]){file, NULL}, NULL)
               : NULL;
}

/* ---- the page ------------------------------------------------------------ */

bool report_html(struct report *report)
{
    static const char *const compared[] = {"ranks/ranks", "ranks/differs", "ranks/storms"};
    static const char *const tables[] = {"compiles", "causes", "recompiles", "trials",
                                         "breaks",   "limits", "guards",     "functions"};
    FILE *out = report->out;
    const char *path = db_path(report->db), *name = strrchr(path, '/');
    uint64_t random[2]; /* which who made the trace cannot know */
    char nonce[33];
    struct db *ranks;

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        say_error("report: no random numbers from the system");
        return false;
    }
    snprintf(nonce, sizeof nonce, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
    fprintf(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
        "style-src 'nonce-%s'; script-src 'nonce-%s'; base-uri 'none'; form-action 'none'\">\n",
        nonce, nonce);
    fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
          "name=\"referrer\" content=\"no-referrer\">\n",
          out);
    fputs("<link rel=\"icon\" href=\"data:,\">\n<title>dyntrace: ", out);
    html_text(out, name ? name + 1 : path, 200);
    fprintf(out, "</title>\n<style nonce=\"%s\">\n%s</style>\n</head>\n<body>\n<header>\n<h1>",
            nonce, report_css);
    html_text(out, name ? name + 1 : path, 200);
    ranks = ranks_of(report);
    fprintf(out, "</h1>\n<nav><a href=\"#overview\">overview</a> %s",
            ranks ? "<a href=\"#ranks\">ranks</a> " : "");
    fputs("<a href=\"#compiles\">compiles</a> <a href=\"#recompiles\">recompiles</a> <a "
          "href=\"#breaks\">breaks</a> <a href=\"#guards\">guards</a> <a "
          "href=\"#functions\">functions</a> <a href=\"#timeline\">timeline</a> <a "
          "href=\"#flame\">flame graph</a> <a href=\"#processes\">processes</a> <button "
          "id=\"theme\" type=\"button\">light / dark</button></nav>\n",
          out);
    fputs("</header>\n<main>\n", out);
    report_table(report, "losses", false); /* before anything that they make doubtful */
    overview_put(report);
    for (size_t i = 0; ranks && i < sizeof compared / sizeof *compared; i++)
        report_table_of(report, ranks, compared[i], false);
    db_close(ranks);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        report_table(report, tables[i], false);
    pictures_put(report);
    report_table(report, "processes", false);
    fprintf(out, "</main>\n<script nonce=\"%s\">\n%s</script>\n</body>\n</html>\n", nonce,
            report_js);
    return true;
}

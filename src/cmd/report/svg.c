/* cmd/report/svg.c -- timeline and flame graph of the HTML report.
 *
 * Runs in: the viewer. See cmd/report/report.h.
 *
 * One pass over the frames (trace/stacks.h) folds their stacks for the flame graph and
 * keeps the LONGEST ones, in a heap whose top is the shortest of them, for the
 * timeline: what is shorter would be thinner than a pixel anyway.
 *
 *     timeline  a lane for each thread: marks of lookups that were no hit,
 *               compiles, then frames by depth
 *     flame     callers above what they called, wide as their time; a thread
 *               is the outermost box
 *
 * Every box is <g class="f" data-x data-w>, in units of a picture 1200 wide:
 * from those src/cmd/report/page/report.js places it again when one zooms. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "cmd/report/report.h"
#include "lib/say.h"
#include "schema.h"
#include "trace/stacks.h"
#include "lib/table.h"
#include "lib/times.h"

enum {
    WIDTH = 1200, ROW = 16, HEAD = 22, /* of the pictures */
    LONGEST = 6000,                    /* frames of the timeline */
    LANES = 64,                        /* threads of it */
    DEPTH = 40,                        /* rows of a lane */
    BOXES = 6000,                      /* of the flame graph */
    FLAME_DEPTH = 250,
    TICKS = 7,
    LETTER = 7,                        /* a letter is so wide, nearly */
};

struct long_frame {
    int64_t id, thread_id, code_id, start_ns, end_ns;
    int depth;
};

struct lane {
    int64_t thread_id;
    int depth;      /* of its deepest frame that is shown */
    double y;
    bool compiles, marks, used;
};

struct picture {
    struct report *report;    /* borrowed */
    struct tree tree;
    struct tracks tracks;
    struct long_frame *frames; /* owned: a heap, then by id */
    size_t frame_count;
    struct lane *lanes;        /* owned, by thread_id */
    size_t lane_count;
    int64_t span_ns, last_frame;
    struct query *code, *name;   /* owned: names of code and of threads */
    struct db *db;               /* owned when there is a thread: frames are read through it */
    pthread_t thread;
    bool threaded, read;
    atomic_bool cancelled;
    atomic_llong done;           /* id of the last frame read */
};

/* ---- names ----------------------------------------------------------------- */

/* A box's colour: the same for all functions of a file. */
static unsigned colour_of(const char *filename)
{
    uint32_t hash = 2166136261u;

    for (; *filename; filename++)
        hash = (hash ^ (unsigned char)*filename) * 16777619u;
    return (hash >> 8) % 8;
}

/* A box: its place and colour, its title ("name  file:line", then WORDS), and as much of the name as has room. KIND
 * NULL: by file. */
static void box_put(struct picture *picture, int64_t code_id, double x, double width, double y, const char *kind,
                    const char *least,
                    const char *words)
{
    FILE *out = picture->report->out;
    struct query *code = picture->code;
    size_t room = width > 26 ? (size_t)((width - 6) / LETTER) : 0;
    bool known;

    query_reset(code);
    query_bind_integer(code, 1, code_id);
    known = query_step(code);
    fprintf(out, "<g class=\"f\" tabindex=\"-1\" data-x=\"%.6g\" data-w=\"%.6g\"%s><title>", x, width, least);
    html_text(out, known ? query_text(code, 0, NULL) : NULL, 200);
    if (known) {
        fputs("  ", out);
        html_text(out, prose_path(query_text(code, 1, NULL)), 200);
        fprintf(out, ":%" PRId64, query_integer(code, 2));
    }
    fprintf(out, "\n%s</title>", words);
    if (kind)
        fprintf(out, "<rect class=\"%s\"", kind);
    else
        fprintf(out, "<rect class=\"c%u\"", known ? colour_of(query_text(code, 1, NULL)) : 0);
    fprintf(out, " x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>", x, y, *least && width < 1.5 ? 1.5 : width,
            ROW - 1);
    if (room >= 3 && known) {
        fprintf(out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + 11.5);
        html_text(out, query_text(code, 0, NULL), room - 1);
        fputs("</text>", out);
    }
    fputs("</g>\n", out);
}

/* "MainThread of 4711", "worker of 4711, rank 3": a thread's. */
static void thread_put(struct picture *picture, int64_t thread_id)
{
    FILE *out = picture->report->out;
    struct query *thread = picture->name;

    query_reset(thread);
    query_bind_integer(thread, 1, thread_id);
    if (!query_step(thread)) {
        putc('?', out);
        return;
    }
    html_text(out, query_text(thread, 0, NULL), 80);
    fprintf(out, " of %" PRId64, query_integer(thread, 1));
    if (query_type(thread, 2) != QUERY_NULL)
        fprintf(out, ", rank %" PRId64, query_integer(thread, 2));
}

static void svg_begin(struct picture *picture, const char *id, double height, int64_t span_ns, const char *label)
{
    FILE *out = picture->report->out;
    char human[TABLE_HUMAN];

    fprintf(out, "<div class=\"tools\" data-for=\"%s-svg\"><button type=\"button\">all</button>"
                 "<input type=\"search\" placeholder=\"find a function\" aria-label=\"find a function\"><output class=\"soft\"></output>"
                 "<span class=\"soft\">click a box or turn the wheel to zoom, drag to move, double-click for all</span></div>\n", id);
    fprintf(out, "<svg class=\"zoom\" id=\"%s-svg\" tabindex=\"0\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %.0f\" data-span=\"%" PRId64
                 "\" xmlns=\"http://www.w3.org/2000/svg\">\n", id, label, WIDTH, height, span_ns);
    for (int i = 0; i < TICKS; i++) {
        double x = (double)WIDTH * i / (TICKS - 1);
        fprintf(out, "<line class=\"rule\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%d\" y2=\"%.0f\"/><text class=\"tick\" x=\"%.0f\" y=\"13\" text-anchor=\"%s\">%s</text>\n",
                x, x, HEAD - 4, height, x, !i ? "start" : i == TICKS - 1 ? "end" : "middle", table_duration(human, span_ns / (TICKS - 1) * i));
    }
}

/* ---- the pass over frames -------------------------------------------------- */

static bool picture_tick(void *context, int64_t frame_id)
{
    struct picture *picture = context;

    atomic_store(&picture->done, frame_id);
    if (!picture->threaded) {
        progress_tick(&picture->report->progress, frame_id, picture->last_frame);
        return !ferror(picture->report->out);
    }
    return !atomic_load(&picture->cancelled);
}

static int64_t length_of(const struct long_frame *frame)
{
    return times_span(frame->start_ns, frame->end_ns);
}

/* Keep FRAME if it is one of the longest so far. */
static void picture_each(void *context, const struct track *track, const struct walked *frame, uint32_t node)
{
    struct picture *picture = context;
    struct long_frame *heap = picture->frames, new = {frame->id, track->thread_id, frame->code_id, frame->start_ns,
                                                      frame->end_ns,
                                                      (int)track->stack.count};
    size_t at, child;

    (void)node;
    if (new.depth >= DEPTH)
        return;
    if (picture->frame_count < LONGEST) {
        for (at = picture->frame_count++; at && length_of(&heap[(at - 1) / 2]) > length_of(&new); at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = new;
        return;
    }
    if (length_of(&new) <= length_of(&heap[0]))
        return;
    for (at = 0; (child = at * 2 + 1) < LONGEST; at = child) {
        child += child + 1 < LONGEST && length_of(&heap[child + 1]) < length_of(&heap[child]);
        if (length_of(&heap[child]) >= length_of(&new))
            break;
        heap[at] = heap[child];
    }
    heap[at] = new;
}

static int frame_order(const void *a, const void *b)
{
    const struct long_frame *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* ---- the timeline ---------------------------------------------------------- */

static struct lane *lane_find(struct picture *picture, int64_t thread_id)
{
    size_t at = sorted_count(picture->lane_count, i, picture->lanes[i].thread_id < thread_id);

    return at < picture->lane_count && picture->lanes[at].thread_id == thread_id ? &picture->lanes[at] : NULL;
}

/* Give each thread that has something to show its place; returns the picture's height. */
static double lanes_place(struct picture *picture)
{
    struct report *report = picture->report;
    struct query *query;
    double y = HEAD;
    int shown = 0;

    for (size_t i = 0; i < picture->frame_count; i++) {
        struct lane *lane = lane_find(picture, picture->frames[i].thread_id);
        if (!lane)
            continue;
        lane->used = true;
        if (lane->depth < picture->frames[i].depth + 1)
            lane->depth = picture->frames[i].depth + 1;
    }
    for (size_t i = 0; i < report->mark_count; i++) {
        struct lane *lane = lane_find(picture, report->marks[i].thread_id);
        if (lane)
            lane->used = lane->marks = true;
    }
    query = db_query(report->db, schema_statement("report/compiling_threads"));
    while (query_step(query)) {
        struct lane *lane = lane_find(picture, query_integer(query, 0));
        if (lane)
            lane->used = lane->compiles = true;
    }
    query_close(query);
    for (size_t i = 0; i < picture->lane_count; i++) {
        struct lane *lane = &picture->lanes[i];
        if (!lane->used || ++shown > LANES) {
            lane->used = false;
            continue;
        }
        lane->y = y;
        y += ROW * (1 + lane->marks + lane->compiles + lane->depth) + 6;
    }
    return y;
}

static double at_x(const struct picture *picture, int64_t ns)
{
    return (double)ns / (double)picture->span_ns * WIDTH;
}

static void timeline_frames(struct picture *picture)
{
    char words[128], length[TABLE_HUMAN], start[TABLE_HUMAN];

    for (size_t i = 0; i < picture->frame_count; i++) {
        const struct long_frame *f = &picture->frames[i];
        struct lane *lane = lane_find(picture, f->thread_id);
        if (!lane || !lane->used)
            continue;
        snprintf(words, sizeof words, "%s at %s, frame %" PRId64, table_duration(length, length_of(f)),
                 table_duration(start, f->start_ns), f->id);
        box_put(picture, f->code_id, at_x(picture, f->start_ns), at_x(picture, length_of(f)),
                lane->y + ROW * (1 + lane->marks + lane->compiles + f->depth), NULL, "", words);
    }
}

static bool timeline_compiles(struct picture *picture)
{
    struct query *query = db_query(picture->report->db, schema_statement("report/longest_compiles"));
    char words[512], length[TABLE_HUMAN], start[TABLE_HUMAN];

    while (query_step(query)) {
        struct lane *lane = lane_find(picture, query_integer(query, 0));
        int64_t from = query_integer(query, 2), to = query_integer(query, 3), breaks = query_integer(query, 6),
                took = times_span(from, to);
        char *label = prose_column(query, 4);
        if (lane && lane->used) {
            char *escaped = NULL;
            size_t bytes = 0;
            FILE *text = open_memstream(&escaped, &bytes);
            if (text) {
                html_text(text, label, 60);
                fclose(text);
            }
            snprintf(words, sizeof words, "compile %s took %s at %s%s", escaped ? escaped : "?",
                     table_duration(length, took),
                     table_duration(start, from), breaks ? ", its graph broke" : "");
            free(escaped);
            box_put(picture, query_integer(query, 1), at_x(picture, from), at_x(picture, took),
                    lane->y + ROW * (1 + lane->marks), "compile", " data-least=\"1.5\"", words);
        }
        free(label);
    }
    return query_close(query);
}

static void timeline_marks(struct picture *picture)
{
    const struct report *report = picture->report;
    char words[128], start[TABLE_HUMAN];

    for (size_t i = 0; i < report->mark_count; i++) {
        const struct report_mark *mark = &report->marks[i];
        struct lane *lane = lane_find(picture, mark->thread_id);
        if (!lane || !lane->used)
            continue;
        snprintf(words, sizeof words, "%s at %s, lookup %" PRId64, outcome_word(mark->outcome),
                 table_duration(start, mark->start_ns),
                 mark->lookup_id);
        box_put(picture, mark->code_id, at_x(picture, mark->start_ns), 0, lane->y + ROW, "miss", " data-least=\"1.5\"",
                words);
    }
}

static bool timeline_put(struct picture *picture)
{
    struct report *report = picture->report;
    FILE *out = report->out;
    double height = lanes_place(picture);
    int64_t used = 0, hidden = 0;
    bool ok = true;

    fputs("<section id=\"timeline\">\n<h2>Timeline</h2>\n", out);
    for (size_t i = 0; i < picture->lane_count; i++)
        used += picture->lanes[i].used;
    hidden = (int64_t)picture->lane_count - used;
    if (!used) {
        fputs("<p class=\"soft\">Nothing to draw: single frames are stored when a recording ends, and only where they were recorded.</p>\n", out);
    } else {
        fprintf(out, "<p class=\"soft\">The %zu longest frames by depth under each thread, compiles (<span class=\"code\">orange</span>)"
                     " and lookups that were no hit (<span class=\"code\">red</span>)%s.</p>\n", picture->frame_count,
                report->mark_count == REPORT_MARKS || report->mark_count > REPORT_MARKS / 2 ? ", some of them" : "");
        svg_begin(picture, "timeline", height, picture->span_ns, "timeline of threads");
        for (size_t i = 0; i < picture->lane_count; i++) {
            const struct lane *lane = &picture->lanes[i];
            if (!lane->used)
                continue;
            fprintf(out, "<text class=\"lane\" x=\"2\" y=\"%.1f\">", lane->y + 12);
            thread_put(picture, lane->thread_id);
            fputs("</text>\n", out);
        }
        timeline_frames(picture);
        ok = timeline_compiles(picture);
        timeline_marks(picture);
        fputs("</svg>\n", out);
        if (hidden)
            fprintf(out, "<p class=\"soft\">%" PRId64 " more threads are not shown.</p>\n", hidden);
    }
    fputs("</section>\n", out);
    return ok;
}

/* ---- the flame graph ------------------------------------------------------- */

struct flame {
    struct picture *picture; /* borrowed */
    const struct link *links; /* borrowed: by node */
    int64_t all_ns, least_ns;
    int boxes, depth;        /* depth: of the deepest box */
    bool draw;               /* the first time the boxes are only counted */
};

/* NODE from X on, and what it called in it. */
static void flame_box(struct flame *flame, uint32_t node, double x, int depth)
{
    const struct node *n = &flame->picture->tree.nodes[node];
    double width = (double)flame->links[node].total_ns / (double)flame->all_ns * WIDTH, y = HEAD + (double)depth * ROW;
    char words[128], total[TABLE_HUMAN], self[TABLE_HUMAN];

    if (flame->boxes >= BOXES || depth >= FLAME_DEPTH)
        return;
    flame->boxes++;
    if (depth > flame->depth)
        flame->depth = depth;
    if (flame->draw && n->parent) {
        snprintf(words, sizeof words, "%s in all, %s own, %.3g %%", table_duration(total, flame->links[node].total_ns),
                 table_duration(self, n->self_ns > 0 ? n->self_ns : 0), 100.0 * (double)flame->links[node].total_ns / (double)flame->all_ns);
        box_put(flame->picture, n->code_id, x, width, y, NULL, "", words);
    } else if (flame->draw) {
        FILE *out = flame->picture->report->out;
        fprintf(out, "<g class=\"f\" tabindex=\"-1\" data-x=\"%.6g\" data-w=\"%.6g\"><title>", x, width);
        thread_put(flame->picture, n->code_id);
        fprintf(out, "\n%s</title><rect class=\"root\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>",
                table_duration(total, flame->links[node].total_ns),
                x, y, width, ROW - 1);
        if (width > 200) {
            fprintf(out, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + 11.5);
            thread_put(flame->picture, n->code_id);
            fputs("</text>", out);
        }
        fputs("</g>\n", out);
    }
    for (uint32_t child = flame->links[node].child; child &&
         flame->links[child].total_ns >= flame->least_ns; child = flame->links[child].sibling) {
        flame_box(flame, child, x, depth + 1);
        x += (double)flame->links[child].total_ns / (double)flame->all_ns * WIDTH;
    }
}

static void flame_boxes(struct flame *flame, bool draw)
{
    double x = 0;

    flame->draw = draw;
    flame->boxes = flame->depth = 0;
    for (uint32_t root = flame->links[0].child; root &&
         flame->links[root].total_ns >= flame->least_ns; root = flame->links[root].sibling) {
        flame_box(flame, root, x, 0);
        x += (double)flame->links[root].total_ns / (double)flame->all_ns * WIDTH;
    }
}

static bool flame_put(struct picture *picture)
{
    struct tree *tree = &picture->tree;
    FILE *out = picture->report->out;
    struct flame flame = {.picture = picture};
    bool ok = tree_link(tree);

    fputs("<section id=\"flame\">\n<h2>Flame graph</h2>\n", out);
    if (!ok) {
        say_error("%s: out of memory", db_path(picture->report->db));
        goto out;
    }
    flame.links = tree->links;
    flame.all_ns = tree->links[0].total_ns;
    flame.least_ns = flame.all_ns / 4000 + 1;
    if (!flame.all_ns) {
        fputs("<p class=\"soft\">Nothing to draw: single frames are stored when a recording ends, and only where they were recorded.</p>\n", out);
    } else {
        flame_boxes(&flame, false);
        fputs("<p class=\"soft\">Callers above what they call, wide as their time in all. Boxes under a 4000th of it are left out.</p>\n", out);
        svg_begin(picture, "flame", HEAD + (flame.depth + 1) * (double)ROW, flame.all_ns, "flame graph");
        flame_boxes(&flame, true);
        fputs("</svg>\n", out);
    }
out:
    fputs("</section>\n", out);
    return ok;
}

/* ---- both ------------------------------------------------------------------ */

static void *frames_read(void *context)
{
    struct picture *picture = context;
    struct fold fold = {.context = picture, .tick = picture_tick, .each = picture_each};

    picture->read = stacks_fold(picture->db, &picture->tree, &picture->tracks, picture->span_ns, &fold);
    return NULL;
}

bool pictures_begin(struct report *report)
{
    struct db *db = report->db;
    struct picture *picture = report->picture = calloc(1, sizeof *picture);
    int64_t last;

    if (!picture || !(picture->frames = malloc(LONGEST * sizeof *picture->frames))) {
        say_error("%s: out of memory", db_path(db));
        return false;
    }
    picture->report = report;
    picture->db = db;
    picture->span_ns = db_meta_integer(db, "span_ns", 0);
    picture->last_frame = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame");
    last = db_integer(db, 0, "SELECT start_ns FROM frame ORDER BY frame_id DESC LIMIT 1");
    if (last > picture->span_ns)
        picture->span_ns = last;
    if (picture->span_ns < 1)
        picture->span_ns = 1;
    if (db_damaged(db))
        return false;
    /* A trace that is finished is the same for two readers, one that is being recorded has no frames yet. */
    if (report->state && strcmp(report->state, "recording") && (picture->db = db_open(db_path(db)))) {
        db_run(picture->db, "PRAGMA cache_size = -2048"); /* what is read once needs no more */
        picture->threaded = true;
        if (pthread_create(&picture->thread, NULL, frames_read, picture) != 0) {
            picture->threaded = false;
            db_close(picture->db);
        }
    }
    if (!picture->threaded)
        picture->db = db;
    return true;
}

static void frames_wait(struct picture *picture)
{
    struct timespec until;

    if (!picture->threaded)
        return;
    for (;;) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_timedjoin_np(picture->thread, NULL, &until) != ETIMEDOUT)
            break;
        progress_tick(&picture->report->progress, atomic_load(&picture->done), picture->last_frame);
    }
    db_close(picture->db);
    picture->db = picture->report->db;
    picture->threaded = false;
}

void pictures_free(struct report *report)
{
    struct picture *picture = report->picture;

    if (!picture)
        return;
    atomic_store(&picture->cancelled, true);
    frames_wait(picture);
    query_close(picture->code);
    query_close(picture->name);
    tracks_free(&picture->tracks);
    tree_free(&picture->tree);
    free(picture->frames);
    free(picture->lanes);
    free(picture);
    report->picture = NULL;
}

bool report_pictures(struct report *report)
{
    struct db *db = report->db;
    struct picture *picture = report->picture;

    report->progress.what = "drawing";
    if (picture->threaded)
        frames_wait(picture);
    else
        frames_read(picture);
    picture->code = db_query(db, "SELECT COALESCE(NULLIF(qualname, ''), '?'), COALESCE(filename, '?'), first_line FROM code WHERE code_id = ?1");
    picture->name = db_query(db, "SELECT COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?'), p.pid, p.rank FROM thread t"
                                 " LEFT JOIN process p ON p.process_id = t.process_id WHERE t.thread_id = ?1");
    if (!picture->read || !picture->code || !picture->name)
        return false;
    qsort(picture->frames, picture->frame_count, sizeof *picture->frames, frame_order);
    picture->lane_count = picture->tracks.count;
    picture->lanes = calloc(picture->lane_count + 1, sizeof *picture->lanes);
    if (!picture->lanes) {
        say_error("%s: out of memory", db_path(db));
        return false;
    }
    for (size_t i = 0; i < picture->lane_count; i++)
        picture->lanes[i].thread_id = picture->tracks.at[i].thread_id;
    return timeline_put(picture) && flame_put(picture) && !query_failed(picture->code) && !query_failed(picture->name);
}

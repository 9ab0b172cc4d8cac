/* tui/views/flame.c -- the view `flame`: who called whom and what it took, as a tree or as a flame graph.
 *
 * Runs in: the viewer.
 *
 * All frames are read once, in a thread, and folded into a tree of (caller, code)
 * by trace/stacks.c. Tab changes between the two ways to draw it; the chosen node is
 * the same in both.
 *
 *     tree     a line per node, the longest first; Space folds and unfolds
 *     flame    boxes as wide as their time, callers above; + zooms into one */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "lib/list.h"
#include "lib/table.h"
#include "tui/view.h"

enum { NAME_BYTES = 100, ROWS_MOST = 100000 };

struct name {
    int64_t id;
    const char *text, *file; /* in the arena; FILE may be NULL */
    int64_t line;
};
typedef LIST(struct name) names;

struct flame_job {
    struct job job;
    struct stacks stacks;
    bool *open;             /* owned: by node */
    names names, threads;   /* by code_id, by thread_id */
    struct arena arena;
};

struct flame {
    struct view view;
    struct flame_job *job;  /* owned: what is being read */
    struct flame_job *read; /* owned: what is shown */
    char *failed;           /* owned */
    bool graph;             /* the flame graph, not the tree */
    uint32_t chosen, focus; /* nodes */
    LIST(uint32_t) rows;    /* nodes of the tree, as far as it is unfolded */
};

/* ---- reading --------------------------------------------------------------- */

static bool flame_tick(void *context, int64_t frame_id)
{
    struct flame_job *job = context;

    atomic_store(&job->job.done, frame_id);
    return !atomic_load(&job->job.cancelled);
}

static void names_read(struct flame_job *job, struct db *db, const char *statement, names *names)
{
    struct query *query = db_query(db, schema_statement(statement));

    while (query_step(query)) {
        const char *text = query_text(query, 1, NULL), *file = query_type(query, 2) == QUERY_NULL ? NULL : query_text(query, 2, NULL);
        *list_add(names) = (struct name){query_integer(query, 0), arena_text(&job->arena, text, prose_cut(text, NAME_BYTES)),
                                         file ? arena_text(&job->arena, file, strlen(file)) : NULL, query_integer(query, 3)};
    }
    query_close(query);
}

static void flame_run(struct job *base, struct db *db)
{
    struct flame_job *job = (struct flame_job *)base;

    atomic_store(&base->all, db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"));
    stacks_walk(db, &job->stacks, stacks_end(db), &(struct walk){.context = job, .fold = true, .tick = flame_tick});
    names_read(job, db, "tui/flame-code", &job->names);
    names_read(job, db, "tui/flame-threads", &job->threads);
    tree_link(&job->stacks.tree);
    job->open = calloc(job->stacks.tree.nodes.count, sizeof *job->open);
}

static void flame_job_free(struct job *base)
{
    struct flame_job *job = (struct flame_job *)base;

    stacks_free(&job->stacks);
    list_free(&job->names);
    list_free(&job->threads);
    free(job->open);
    arena_free(&job->arena);
}

static void flame_ask(struct flame *flame)
{
    if ((flame->job = job_new(sizeof *flame->job, flame_run, flame_job_free, true)))
        work_start(flame->view.tui->work, &flame->job->job);
}

/* ---- nodes ----------------------------------------------------------------- */

static const struct node *node_at(const struct flame *flame, uint32_t node)
{
    return &flame->read->stacks.tree.nodes.at[node];
}

static const struct name *node_of(const struct flame *flame, uint32_t node)
{
    const names *names = node_at(flame, node)->parent ? &flame->read->names : &flame->read->threads;

    return node ? list_find(names, id, node_at(flame, node)->code_id) : NULL;
}

static const char *node_name(const struct flame *flame, uint32_t node)
{
    const struct name *name = node_of(flame, node);

    return !node ? "all threads" : name && name->text ? name->text : "?";
}

static bool *is_open(const struct flame *flame, uint32_t node)
{
    return &flame->read->open[node];
}

static const struct link *link_of(const struct flame *flame, uint32_t node)
{
    return &flame->read->stacks.tree.links[node];
}

static uint32_t parent(const struct flame *flame, uint32_t node)
{
    return node ? node_at(flame, node)->parent : 0;
}

/* The unfolded part of the tree below FOCUS, as lines. */
static void rows_make(struct flame *flame)
{
    uint32_t at = link_of(flame, flame->focus)->child, *row;

    flame->rows.count = 0;
    while (at && flame->rows.count < ROWS_MOST && (row = list_add(&flame->rows))) {
        *row = at;
        if (*is_open(flame, at) && link_of(flame, at)->child) {
            at = link_of(flame, at)->child;
            continue;
        }
        while (at && at != flame->focus && !link_of(flame, at)->sibling)
            at = parent(flame, at);
        at = at && at != flame->focus ? link_of(flame, at)->sibling : 0;
    }
}

static size_t row_of(const struct flame *flame)
{
    for (size_t i = 0; i < flame->rows.count; i++)
        if (flame->rows.at[i] == flame->chosen)
            return i;
    return 0;
}

/* Unfold from NODE down as long as one callee has most of it. */
static void unfold_hot(struct flame *flame, uint32_t node)
{
    for (int i = 0; node && i < 40; i++) {
        uint32_t child = link_of(flame, node)->child;
        *is_open(flame, node) = true;
        if (!child || link_of(flame, child)->total_ns * 10 < link_of(flame, node)->total_ns * 7)
            break;
        node = child;
    }
}

static void choose(struct flame *flame, uint32_t node)
{
    if (!node)
        return;
    flame->chosen = node;
    for (uint32_t at = parent(flame, node); at && at != flame->focus; at = parent(flame, at))
        *is_open(flame, at) = true;
    rows_make(flame);
}

static void focus(struct flame *flame, uint32_t node)
{
    flame->focus = node;
    rows_make(flame);
    if (!flame->rows.count && node) { /* a leaf has nothing to look into */
        flame->focus = parent(flame, node);
        rows_make(flame);
    }
    bool within = false;
    for (uint32_t at = flame->chosen; at; at = parent(flame, at))
        within = within || at == flame->focus;
    if ((!within && flame->focus) || flame->chosen == flame->focus)
        flame->chosen = link_of(flame, flame->focus)->child;
    flame->view.top = 0;
}

static void answer_take(struct flame *flame)
{
    struct work *work = flame->view.tui->work;
    struct flame_job *job = flame->job;

    free(flame->failed);
    flame->failed = job->job.error ? strdup(job->job.error) : NULL;
    if (flame->failed || !job->open) {
        work_drop(work, flame->job);
        return;
    }
    work_drop(work, flame->read);
    flame->read = job;
    flame->job = NULL;
    flame->focus = 0;
    flame->chosen = link_of(flame, 0)->child;
    unfold_hot(flame, flame->chosen);
    rows_make(flame);
}

static void flame_settle(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    if (flame->job && work_done(view->tui->work, &flame->job->job))
        answer_take(flame);
    view->busy = flame->job != NULL;
    view->note[0] = 0;
    if (flame->job && !view->tui->scripted)
        snprintf(view->note, sizeof view->note, "reading frames: %d %%", job_percent(&flame->job->job));
    else if (flame->read)
        snprintf(view->note, sizeof view->note, "%s  Tab: %s%s", flame->read->stacks.tree.cut ? "cut: too many stacks  " : "", flame->graph ? "tree" : "flame graph",
                 flame->focus ? "  - zooms out" : "");
    snprintf(view->title, sizeof view->title, "%.120s", flame->read && flame->focus ? node_name(flame, flame->focus) : "");
}

/* ---- drawing --------------------------------------------------------------- */

static int heat(const struct flame *flame, uint32_t node)
{
    double all = (double)link_of(flame, 0)->total_ns, self = node ? (double)node_at(flame, node)->self_ns : 0;

    return self * 5 > all ? STYLE_ALARM : self * 20 > all ? STYLE_WARN : STYLE_NORMAL;
}

/* "share  total  self  calls" of a node; NONE: the calls of a thread. */
static void figures_print(const struct flame *flame, uint32_t node, int64_t all, const char *none, char *made, size_t room, const char *format)
{
    char total[TABLE_HUMAN], self[TABLE_HUMAN], calls[TABLE_HUMAN];
    const struct link *b = link_of(flame, node);
    int64_t self_ns = node_at(flame, node)->self_ns;

    snprintf(made, room, format, all > 0 ? 100.0 * (double)b->total_ns / (double)all : 0, table_duration(total, b->total_ns),
             table_duration(self, self_ns > 0 ? self_ns : 0), parent(flame, node) ? table_count(calls, node_at(flame, node)->calls) : none);
}

static void node_draw(struct flame *flame, struct screen *screen, uint32_t node, int y)
{
    struct view *view = &flame->view;
    const struct link *b = link_of(flame, node);
    int selected = node == flame->chosen ? STYLE_SELECTED : 0, style = (parent(flame, node) ? STYLE_NORMAL : STYLE_BOLD) | selected, x;
    int depth = (int)(b->depth - link_of(flame, flame->focus)->depth - 1);
    char line[400] = "";

    if (selected)
        screen_fill(screen, y, 0, view->columns, selected);
    screen_put(screen, y, 0, 1, heat(flame, node) | selected, selected ? ">" : " ");
    figures_print(flame, node, link_of(flame, flame->focus)->total_ns, "", line, sizeof line, "%5.1f %% %9s %10s %8s");
    x = screen_put(screen, y, 1, view->columns - 1, heat(flame, node) | selected, line) + 3;
    x += (depth < 30 ? depth : 30) * (view->columns < 70 ? 1 : 2);
    screen_put(screen, y, x, 2, STYLE_DIM | selected, !b->child ? " " : *is_open(flame, node) ? "▾" : "▸");
    snprintf(line, sizeof line, depth > 30 ? "[%d] " : "", depth);
    x += 2 + screen_put(screen, y, x + 2, view->columns - x - 2, style, line);
    screen_put(screen, y, x, view->columns - x, style, node_name(flame, node));
}

static void tree_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    char line[80];

    view_choose(view, row_of(flame), flame->rows.count, view->rows - 1);
    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    snprintf(line, sizeof line, " %6s %10s %10s %8s  %s", "share", "total", "self", "calls", "function");
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, line);
    for (int i = 0; i < view->rows - 1 && view->top + (size_t)i < flame->rows.count; i++)
        node_draw(flame, screen, flame->rows.at[view->top + (size_t)i], view->y + 1 + i);
}

static void boxes_draw(struct flame *flame, struct screen *screen, uint32_t node, int y, int x, int width, int last)
{
    int64_t total = link_of(flame, node)->total_ns, before = 0;
    int style = node == flame->chosen ? STYLE_MATCH | STYLE_SELECTED : (heat(flame, node) == STYLE_NORMAL ? STYLE_ACCENT : heat(flame, node)) | STYLE_SELECTED;

    if (y > last || width < 1)
        return;
    screen_fill(screen, y, x, width, style);
    screen_put(screen, y, x, 1, style, "│");
    if (width > 2)
        screen_put(screen, y, x + 1, width - 2, style, node_name(flame, node));
    for (uint32_t child = link_of(flame, node)->child; child && total > 0; child = link_of(flame, child)->sibling) {
        int from = x + (int)((double)before / (double)total * width + 0.5);
        before += link_of(flame, child)->total_ns < total - before ? link_of(flame, child)->total_ns : total - before;
        int to = x + (int)((double)before / (double)total * width + 0.5);
        if (to <= from && child == flame->chosen)
            to = from + 1;
        if (to > from)
            boxes_draw(flame, screen, child, y + 1, from, to - from, last);
        else if ((double)link_of(flame, child)->total_ns * width * 2 < (double)total)
            break; /* those after it are smaller still */
    }
}

static void graph_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    char line[400];

    boxes_draw(flame, screen, flame->focus, view->y, 0, view->columns, view->y + view->rows - 3);
    screen_put(screen, view->y + view->rows - 2, 0, view->columns, STYLE_BOLD, node_name(flame, flame->chosen));
    figures_print(flame, flame->chosen, link_of(flame, 0)->total_ns, "0", line, sizeof line, "%.1f %% of all, total %s, self %s, %s calls");
    screen_put(screen, view->y + view->rows - 1, 0, view->columns, STYLE_NORMAL, line);
}

static void flame_draw(struct view *view, struct screen *screen)
{
    struct flame *flame = (struct flame *)view;

    if (flame->failed && !flame->read)
        view_words(view, screen, STYLE_ALARM, flame->failed);
    else if (!flame->read)
        view_words(view, screen, STYLE_DIM, "…");
    else if (!flame->chosen)
        view_words(view, screen, STYLE_DIM, "no frame is in the trace (yet): single frames are stored at the end of a recording");
    else if (flame->graph)
        graph_draw(flame, screen);
    else
        tree_draw(flame, screen);
}

/* ---- requests -------------------------------------------------------------- */

/* The row that `at` is on is the chosen node. */
static void row_take(struct flame *flame)
{
    if (flame->view.at < flame->rows.count)
        flame->chosen = flame->rows.at[flame->view.at];
}

/* In the graph: the box beside, above or below. */
static void graph_move(struct flame *flame, enum request request)
{
    uint32_t node = flame->chosen, up = parent(flame, node);

    if (request == REQUEST_DOWN && link_of(flame, node)->child)
        flame->chosen = link_of(flame, node)->child;
    else if (request == REQUEST_UP && node != flame->focus && up && up != flame->focus)
        flame->chosen = up;
    else if (request == REQUEST_RIGHT && link_of(flame, node)->sibling)
        flame->chosen = link_of(flame, node)->sibling;
    else if (request == REQUEST_LEFT)
        for (uint32_t at = link_of(flame, up)->child; at && at != node; at = link_of(flame, at)->sibling)
            if (link_of(flame, at)->sibling == node)
                flame->chosen = at;
}

static bool flame_request(struct view *view, enum request request, const struct key *key)
{
    struct flame *flame = (struct flame *)view;
    bool *chosen;
    uint32_t up;

    if (request == REQUEST_CANCEL && flame->job) {
        work_cancel(view->tui->work, &flame->job->job);
        return true;
    }
    if (!flame->read || !flame->chosen)
        return false;
    if (flame->graph && (request == REQUEST_UP || request == REQUEST_DOWN || request == REQUEST_LEFT || request == REQUEST_RIGHT)) {
        graph_move(flame, request);
        return true;
    }
    view->at = row_of(flame);
    if (view_move(view, request, flame->rows.count, view->rows - 1)) {
        row_take(flame);
        return true;
    }
    chosen = is_open(flame, flame->chosen);
    up = parent(flame, flame->chosen);
    switch (request) {
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        flame->graph = !flame->graph;
        rows_make(flame);
        choose(flame, flame->chosen);
        return true;
    case REQUEST_RIGHT:
        if (!*chosen)
            unfold_hot(flame, flame->chosen);
        else if (link_of(flame, flame->chosen)->child)
            flame->chosen = link_of(flame, flame->chosen)->child;
        rows_make(flame);
        return true;
    case REQUEST_LEFT:
        if (*chosen && link_of(flame, flame->chosen)->child)
            *chosen = false;
        else if (up && up != flame->focus)
            flame->chosen = up;
        rows_make(flame);
        return true;
    case REQUEST_TOGGLE:
        *chosen = !*chosen;
        rows_make(flame);
        return true;
    case REQUEST_ZOOM_IN:
        focus(flame, flame->chosen);
        return true;
    case REQUEST_ZOOM_OUT:
        focus(flame, parent(flame, flame->focus));
        return true;
    case REQUEST_ZOOM_ALL:
        focus(flame, 0);
        return true;
    case REQUEST_CLICK:
    case REQUEST_DOUBLE:
        if (!flame->graph && key->y > view->y && view->top + (size_t)(key->y - view->y - 1) < flame->rows.count) {
            view->at = view->top + (size_t)(key->y - view->y - 1);
            row_take(flame);
            if (request == REQUEST_DOUBLE)
                *is_open(flame, flame->chosen) = !*is_open(flame, flame->chosen);
            rows_make(flame);
        }
        return true;
    case REQUEST_OPEN:
        if (up) {
            tui_go(view->tui, &(struct target){.kind = VIEW_FUNCTION, .id = node_at(flame, flame->chosen)->code_id});
        } else {
            *chosen = !*chosen;
            rows_make(flame);
        }
        return true;
    default:
        return false;
    }
}

static bool flame_search(struct view *view, const char *text, int direction)
{
    struct flame *flame = (struct flame *)view;
    uint32_t count = flame->read ? (uint32_t)flame->read->stacks.tree.nodes.count - 1 : 0;

    for (uint32_t i = 1; i <= count; i++) {
        uint32_t node = direction > 0 ? (flame->chosen - 1 + i) % count + 1 : (flame->chosen - 1 + count - i) % count + 1;
        if (strcasestr(node_name(flame, node), text)) {
            flame->focus = 0;
            choose(flame, node);
            return true;
        }
    }
    return false;
}

static bool flame_place(struct view *view, char **file, int64_t *line)
{
    struct flame *flame = (struct flame *)view;
    const struct name *name = flame->read ? node_of(flame, flame->chosen) : NULL;

    if (!name || !name->file)
        return false;
    *file = strdup(name->file);
    *line = name->line;
    return *file != NULL;
}

static void flame_subject(struct view *view, struct target *subject)
{
    struct flame *flame = (struct flame *)view;

    if (flame->read && parent(flame, flame->chosen))
        *subject = target_make(VIEW_FUNCTION, node_at(flame, flame->chosen)->code_id, NULL, NULL);
}

static void flame_refresh(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    if (!flame->job)
        flame_ask(flame);
}

static bool flame_open(struct view *view)
{
    flame_ask((struct flame *)view);
    return true;
}

static void flame_close(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    work_drop(view->tui->work, flame->job);
    work_drop(view->tui->work, flame->read);
    list_free(&flame->rows);
    free(flame->failed);
}

const struct view_ops view_flame = {
    .name = "flame", .summary = "who called whom and what it took, as a tree or a flame graph (Tab)", .size = sizeof(struct flame),
    .open = flame_open, .close = flame_close, .settle = flame_settle, .draw = flame_draw, .request = flame_request, .refresh = flame_refresh,
    .search = flame_search, .place = flame_place, .subject = flame_subject,
};

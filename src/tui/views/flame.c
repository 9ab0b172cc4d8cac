/* tui/views/flame.c -- the view `flame`: who called whom and what it took, as a tree or as a flame
 * graph.
 *
 * All frames are read once, in a thread, and folded into a tree of (caller, code)
 * by trace/stacks.c. Tab changes between the two ways to draw it; the chosen node is
 * the same in both.
 *
 *     tree     a line per node, the longest first; Space folds and unfolds
 *     flame    boxes as wide as their time, callers above; + zooms into one */

#include <limits.h>

#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/stacks.h"
#include "tui/views/lanes.h"

enum {
    ROWS_MOST = 100000,
    NARROW = 64 /* columns; from here on there is room for all figures */,
    NAME_LEAST = 18
};

struct flame_job {
    struct job job;
    struct stacks stacks;
    struct names names, threads;
    bool merge;
    int64_t moment_ns; /* not 0: only this is asked for: */
    /* the first thread on which anything ran then, and the code objects that did, the outermost
     * first */
    LIST(int64_t) stack;
};

struct flame {
    struct view view;
    struct flame_job *job;    /* owned: what is being read */
    struct flame_job *moment; /* owned: what ran at a moment */
    struct flame_job *read;   /* owned: what is shown */
    bool merge;               /* all threads are one */
    bool graph;               /* the flame graph, not the tree */
    uint32_t chosen, focus;   /* nodes */
    LIST(uint32_t) rows;      /* nodes of the tree, as far as it is unfolded */
};

/* ---- reading ------------------------------------------------------------- */

static void stack_read(struct flame_job *job, struct db *db)
{
    db_rows(thread, db, "SELECT thread_id FROM thread ORDER BY 1")
    {
        int64_t thread_id = query_integer(thread, 0),
                frame_id = job->stack.count ? 0 : frame_at(db, thread_id, job->moment_ns);
        if (!frame_id)
            continue;
        *list_add(&job->stack) = thread_id;
        db_rows(row, db, schema_statement("tui/timeline-callers"), frame_id) *
            list_add(&job->stack) = query_integer(row, 2);
    }
}

static void flame_run(struct job *base, struct db *db)
{
    struct flame_job *job = (struct flame_job *)base;

    if (job->moment_ns) {
        stack_read(job, db);
        return;
    }
    atomic_store(&base->all, db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"));
    stacks_walk(
        db, &job->stacks,
        &(struct walk){.context = job, .fold = true, .merge = job->merge, .tick = frames_tick});
    if (atomic_load(&base->cancelled))
        return;
    names_read(&job->names, db, "tui/code-names");
    names_read(&job->threads, db, "tui/threads");
    tree_link(&job->stacks.tree);
}

static void flame_job_free(struct job *base)
{
    struct flame_job *job = (struct flame_job *)base;

    stacks_free(&job->stacks);
    names_free(&job->names);
    names_free(&job->threads);
    list_free(&job->stack);
}

/* ---- nodes --------------------------------------------------------------- */

/* Node 0, which has no name, stands for all threads. */
static struct node *node_at(const struct flame *flame, uint32_t node)
{
    return &flame->read->stacks.tree.nodes.at[node];
}

static const char *node_name(const struct flame *flame, uint32_t node)
{
    const struct names *names =
        node_at(flame, node)->parent ? &flame->read->names : &flame->read->threads;

    return node && node_at(flame, node)->code_id ? name_find(names, node_at(flame, node)->code_id)
                                                 : "all threads";
}

/* The unfolded part of the tree below FOCUS, as lines, one of which is the chosen node's. */
static void rows_make(struct flame *flame)
{
    const struct node *nodes = flame->read->stacks.tree.nodes.at;
    uint32_t at = nodes[flame->focus].child;

    flame->rows.count = flame->view.at = 0;
    while (at && flame->rows.count < ROWS_MOST) {
        if (at == flame->chosen)
            flame->view.at = flame->rows.count;
        *list_add(&flame->rows) = at;
        if (nodes[at].open && nodes[at].child) {
            at = nodes[at].child;
            continue;
        }
        while (at != flame->focus && !nodes[at].sibling)
            at = nodes[at].parent;
        at = at != flame->focus ? nodes[at].sibling : 0;
    }
    flame->view.count = flame->rows.count;
}

/* Unfold from NODE down as long as one callee has most of it. */
static void unfold_hot(struct flame *flame, uint32_t node)
{
    for (int i = 0; node && i < 40; i++) {
        uint32_t child = node_at(flame, node)->child;
        node_at(flame, node)->open = true;
        if (!child || node_at(flame, child)->total_ns * 10 < node_at(flame, node)->total_ns * 7)
            break;
        node = child;
    }
}

static void choose(struct flame *flame, uint32_t node)
{
    flame->chosen = node;
    for (uint32_t at = node_at(flame, node)->parent; at && at != flame->focus;
         at = node_at(flame, at)->parent)
        node_at(flame, at)->open = true;
    rows_make(flame);
}

static void focus(struct flame *flame, uint32_t node)
{
    uint32_t at = flame->chosen;

    /* a leaf has nothing to look into */
    flame->focus = node_at(flame, node)->child ? node : node_at(flame, node)->parent;
    while (at && at != flame->focus)
        at = node_at(flame, at)->parent;
    if (at != flame->focus || flame->chosen == flame->focus)
        flame->chosen = node_at(flame, flame->focus)->child;
    flame->view.top = 0;
    rows_make(flame);
}

/* FIRST: for a first look, when there is nothing yet. */
static void ask(struct flame *flame, bool first)
{
    flame->job = job_new(sizeof *flame->job, flame_run, flame_job_free, !first);
    flame->job->merge = flame->merge;
    flame->job->job.most = first ? FIRST_FRAMES : 0;
    work_start(flame->view.tui->work, &flame->job->job);
}

/* The node that PATH leads to, as far as there is one: a thread, or 0 for all, then code objects.
 * */
static uint32_t path_follow(const struct flame *flame, const int64_t *path, size_t count)
{
    uint32_t node = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t child = node_at(flame, node)->child;
        while (child && node_at(flame, child)->code_id != (i || !flame->read->merge ? path[i] : 0))
            child = node_at(flame, child)->sibling;
        if (!child)
            break;
        node = child;
    }
    return node;
}

/* What was unfolded, chosen and zoomed into of the tree WAS is so in the new one, as far as that
 * has it. */
static void state_carry(struct flame *flame, struct flame_job *was)
{
    struct node *before = was->stacks.tree.nodes.at;
    uint32_t *now = calloc(was->stacks.tree.nodes.count, sizeof *now), chosen = flame->chosen,
             focus = flame->focus;

    for (uint32_t at = before[chosen].parent; at; at = before[at].parent)
        before[at].open = true;
    for (uint32_t at = 1; at < was->stacks.tree.nodes.count; at++) { /* callers come first */
        uint32_t parent = before[at].parent,
                 child = parent && !now[parent] ? 0 : node_at(flame, now[parent])->child;
        if (!before[at].open && at != chosen && at != focus)
            continue;
        while (child && node_at(flame, child)->code_id != before[at].code_id &&
               (parent || was->merge == flame->read->merge))
            child = node_at(flame, child)->sibling;
        now[at] = child;
        node_at(flame, child)->open = before[at].open;
    }
    while (chosen && !now[chosen])
        chosen = before[chosen].parent;
    flame->focus = now[focus];
    /* on the first line it stays there, whatever that is now */
    flame->chosen = flame->chosen == before[0].child ? 0 : now[chosen];
    free(now);
}

static void answer_take(struct flame *flame)
{
    struct flame_job *was = flame->read;

    flame->read = NULL; /* what was unfolded is needed once more */
    if (!view_take(&flame->view, flame->job, flame->read)) {
        flame->read = was;
        return;
    }
    if (was)
        state_carry(flame, was);
    work_drop(flame->view.tui->work, was);
    if (!flame->chosen) {
        flame->chosen = node_at(flame, flame->focus)->child;
        unfold_hot(flame, flame->chosen);
    }
    choose(flame, flame->chosen);
    if (frames_more(&flame->read->job))
        ask(flame, false);
}

/* Choose what ran at the moment that was asked for. */
static void moment_take(struct flame *flame)
{
    uint32_t node = path_follow(flame, flame->moment->stack.at, flame->moment->stack.count);

    flame->focus = node ? 0 : flame->focus;
    if (node)
        choose(flame, node);
    work_drop(flame->view.tui->work, flame->moment);
}

static void flame_settle(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    answer_take(flame);
    if (flame->moment && !flame->job && flame->read && flame->chosen &&
        work_done(view->tui->work, &flame->moment->job))
        moment_take(flame);
    view->head = 1;
    view_choose(view, view->at);
    view->note[0] = 0;
    if (flame->job && !view->tui->scripted)
        snprintf(view->note, sizeof view->note, "reading frames: %d %%",
                 job_percent(&flame->job->job));
    else if (flame->read)
        snprintf(view->note, sizeof view->note, "%s  Tab: %s%s",
                 flame->read->stacks.tree.cut ? "cut: too many stacks  " : "",
                 flame->graph ? "tree" : "flame graph", flame->focus ? "  - zooms out" : "");
    snprintf(view->title, sizeof view->title, "%.120s",
             flame->read && flame->focus ? node_name(flame, flame->focus) : "");
}

/* ---- drawing ------------------------------------------------------------- */

static int heat(const struct flame *flame, uint32_t node)
{
    double all = (double)node_at(flame, 0)->total_ns,
           self = node ? (double)node_at(flame, node)->self_ns : 0;

    if (self * 5 > all)
        return STYLE_ALARM;
    return self * 20 > all ? STYLE_WARN : STYLE_NORMAL;
}

/* "share  total  self  calls" of a node; of a thread no calls. */
static void figures_print(const struct flame *flame, uint32_t at, int64_t all, char *made,
                          size_t room, const char *format)
{
    char total[TABLE_HUMAN], self[TABLE_HUMAN], calls[TABLE_HUMAN];
    const struct node *node = node_at(flame, at);

    snprintf(made, room, format, all > 0 ? 100.0 * (double)node->total_ns / (double)all : 0,
             table_duration(total, node->total_ns),
             table_duration(self, node->self_ns > 0 ? node->self_ns : 0),
             node->parent ? table_count(calls, node->calls) : "-");
}

static void node_draw(struct flame *flame, struct screen *screen, uint32_t at, int y)
{
    struct view *view = &flame->view;
    const struct node *node = node_at(flame, at), *focus = node_at(flame, flame->focus);
    int selected = view_row(view, screen, y, at == flame->chosen),
        style = (node->parent ? STYLE_NORMAL : STYLE_BOLD) | selected, x;
    bool narrow = view->columns < NARROW;
    int step = view->columns < 70 ? 1 : 2, used = narrow ? 21 : 40,
        fits = (view->columns - used - NAME_LEAST) / step;
    int depth = (int)(node->depth - focus->depth - 1),
        cursor = (int)(node_at(flame, flame->chosen)->depth - focus->depth - 1);
    int left = cursor > fits ? depth - (cursor - fits) : depth; /* the cursor's name is in sight */
    char line[400] = "";

    figures_print(flame, at, focus->total_ns, line, sizeof line,
                  narrow ? "%5.1f %% %9s" : "%5.1f %% %9s %10s %8s");
    x = screen_put(screen, y, 1, view->columns - 1, heat(flame, at) | selected, line) + 3;
    x += (left < 0 ? 0 : left > fits ? fits : left) * step;
    screen_put(screen, y, x, 2, STYLE_DIM | selected, !node->child ? " " : node->open ? "▾" : "▸");
    snprintf(line, sizeof line, left != depth || depth > fits ? "[%d] " : "", depth);
    x += 2 + screen_put(screen, y, x + 2, view->columns - x - 2, style, line);
    screen_put(screen, y, x, view->columns - x, style, node_name(flame, at));
}

static void tree_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    char line[80];

    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    snprintf(line, sizeof line,
             view->columns < NARROW ? " %6s %10s" : " %6s %10s %10s %8s  function", "share",
             "total", "self", "calls");
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, line);
    for (int i = 0; i < view->rows - 1 && view->top + (size_t)i < flame->rows.count; i++)
        node_draw(flame, screen, flame->rows.at[view->top + (size_t)i], view->y + 1 + i);
}

static void boxes_draw(struct flame *flame, struct screen *screen, uint32_t node, int y, int x,
                       int width, int last)
{
    int64_t total = node_at(flame, node)->total_ns, before = 0;
    int style = node == flame->chosen
                    ? STYLE_MATCH | STYLE_SELECTED
                    : (heat(flame, node) == STYLE_NORMAL ? STYLE_ACCENT : heat(flame, node)) |
                          STYLE_SELECTED;

    if (y > last || width < 1)
        return;
    screen_fill(screen, y, x, width, style);
    screen_put(screen, y, x, 1, style, "│");
    if (width > 2)
        screen_put(screen, y, x + 1, width - 2, style, node_name(flame, node));
    for (uint32_t child = node_at(flame, node)->child; child && total > 0;
         child = node_at(flame, child)->sibling) {
        int from = x + (int)((double)before / (double)total * width + 0.5);
        before += node_at(flame, child)->total_ns < total - before ? node_at(flame, child)->total_ns
                                                                   : total - before;
        int to = x + (int)((double)before / (double)total * width + 0.5);
        if (to <= from && child == flame->chosen)
            to = from + 1;
        if (to > from)
            boxes_draw(flame, screen, child, y + 1, from, to - from, last);
        else if ((double)node_at(flame, child)->total_ns * width * 2 < (double)total)
            break; /* those after it are smaller still */
    }
}

static void graph_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    char line[400];

    boxes_draw(flame, screen, flame->focus, view->y, 0, view->columns, view->y + view->rows - 3);
    screen_put(screen, view->y + view->rows - 2, 0, view->columns, STYLE_BOLD,
               node_name(flame, flame->chosen));
    figures_print(flame, flame->chosen, node_at(flame, 0)->total_ns, line, sizeof line,
                  "%.1f %% of all, total %s, self %s, calls %s");
    screen_put(screen, view->y + view->rows - 1, 0, view->columns, STYLE_NORMAL, line);
}

static void flame_draw(struct view *view, struct screen *screen)
{
    struct flame *flame = (struct flame *)view;

    if (view_empty(view, screen, flame->read))
        return;
    if (!flame->chosen)
        view_words(
            view, screen, STYLE_DIM,
            "no frame is in the trace (yet): single frames are stored at the end of a recording");
    else if (flame->graph)
        graph_draw(flame, screen);
    else
        tree_draw(flame, screen);
}

static void flame_refresh(struct view *view);

/* ---- requests ------------------------------------------------------------ */

/* In the graph: the box beside, above or below. */
static void graph_move(struct flame *flame, enum request request)
{
    uint32_t node = flame->chosen, up = node_at(flame, node)->parent;

    if (request == REQUEST_DOWN && node_at(flame, node)->child)
        flame->chosen = node_at(flame, node)->child;
    else if (request == REQUEST_UP && node != flame->focus && up && up != flame->focus)
        flame->chosen = up;
    else if (request == REQUEST_RIGHT && node_at(flame, node)->sibling)
        flame->chosen = node_at(flame, node)->sibling;
    else if (request == REQUEST_LEFT)
        for (uint32_t at = node_at(flame, up)->child; at && at != node;
             at = node_at(flame, at)->sibling)
            if (node_at(flame, at)->sibling == node)
                flame->chosen = at;
}

static bool flame_request(struct view *view, enum request request, const struct key *key)
{
    struct flame *flame = (struct flame *)view;
    struct node *chosen;
    bool again;

    if (!flame->read || !flame->chosen)
        return false;
    if (flame->graph && (request == REQUEST_UP || request == REQUEST_DOWN ||
                         request == REQUEST_LEFT || request == REQUEST_RIGHT)) {
        graph_move(flame, request);
        rows_make(flame);
        return true;
    }
    if (view_move(view, request)) {
        flame->chosen = flame->rows.at[view->at];
        return true;
    }
    chosen = node_at(flame, flame->chosen);
    switch (request) {
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        flame->graph = !flame->graph;
        choose(flame, flame->chosen);
        break;
    case REQUEST_RIGHT:
        if (!chosen->open)
            unfold_hot(flame, flame->chosen);
        else if (chosen->child)
            flame->chosen = chosen->child;
        break;
    case REQUEST_LEFT:
        if (chosen->open && chosen->child)
            chosen->open = false;
        else if (chosen->parent && chosen->parent != flame->focus)
            flame->chosen = chosen->parent;
        break;
    case REQUEST_ZOOM_IN:
        focus(flame, flame->chosen);
        break;
    case REQUEST_ZOOM_OUT:
        focus(flame, node_at(flame, flame->focus)->parent);
        break;
    case REQUEST_ZOOM_ALL:
        focus(flame, 0);
        break;
    case REQUEST_MERGE:
        flame->merge = !flame->merge;
        work_drop(view->tui->work, flame->job);
        flame_refresh(view);
        break;
    case REQUEST_CLICK:
        if (flame->graph || !view_click(view, key, &again))
            return true;
        flame->chosen = flame->rows.at[view->at];
        node_at(flame, flame->chosen)->open ^= again;
        break;
    case REQUEST_OPEN:
        if (chosen->parent)
            return false;
        /* fallthrough */
    case REQUEST_TOGGLE:
        chosen->open = !chosen->open;
        break;
    default:
        return false;
    }
    rows_make(flame);
    return true;
}

static bool flame_search(struct view *view, const char *text, int direction)
{
    struct flame *flame = (struct flame *)view;
    uint32_t count = flame->read ? (uint32_t)flame->read->stacks.tree.nodes.count - 1 : 0;

    for (uint32_t i = 1; i <= count; i++) {
        uint32_t node = direction > 0 ? (flame->chosen - 1 + i) % count + 1
                                      : (flame->chosen - 1 + count - i) % count + 1;
        if (strcasestr(node_name(flame, node), text)) {
            flame->focus = 0;
            choose(flame, node);
            return true;
        }
    }
    return false;
}

static void flame_subject(struct view *view, struct target *subject)
{
    struct flame *flame = (struct flame *)view;

    if (flame->read && node_at(flame, flame->chosen)->parent)
        *subject =
            (struct target){.kind = VIEW_FUNCTION, .id = node_at(flame, flame->chosen)->code_id};
}

/* For speedscope.app: all of it, or what is zoomed into. */
static bool flame_export(struct view *view, const char *path)
{
    struct flame *flame = (struct flame *)view;
    const char *options = "--format speedscope";

    if (flame->focus && node_at(flame, flame->focus)->parent)
        options = arena_print(&view->arena, "%s --function %s", options,
                              text_quoted(&view->arena, node_name(flame, flame->focus)));
    return view_export(view, options, path);
}

static void flame_lead(struct view *view, struct arena *arena, struct target *target)
{
    struct flame *flame = (struct flame *)view;
    const struct node *chosen = flame->read && flame->chosen ? node_at(flame, flame->chosen) : NULL;

    if (chosen && chosen->parent)
        *target = (struct target){.kind = VIEW_CALL, .id = chosen->longest_id};
}

static void flame_moment(struct view *view, int64_t at_ns, bool near)
{
    struct flame *flame = (struct flame *)view;

    work_drop(view->tui->work, flame->moment);
    flame->moment = job_new(sizeof *flame->moment, flame_run, flame_job_free, false);
    flame->moment->moment_ns = at_ns;
    work_start(view->tui->work, &flame->moment->job);
}

static void flame_refresh(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    if (flame->job)
        return;
    view->failed = NULL;
    ask(flame, !flame->read);
}

static void flame_close(struct view *view)
{
    list_free(&((struct flame *)view)->rows);
}

const struct view_ops view_flame = {
    .summary = "who called whom and what it took, as a tree or a flame graph (Tab)",
    .size = sizeof(struct flame),
    .asked = 2,
    .jobs = 3,
    .open = flame_refresh,
    .close = flame_close,
    .settle = flame_settle,
    .draw = flame_draw,
    .request = flame_request,
    .refresh = flame_refresh,
    .search = flame_search,
    .subject = flame_subject,
    .moment = flame_moment,
    .export = flame_export,
    .writes = "json",
    .lead = flame_lead,
    .keys =
        "Enter longest call  Tab tree or graph  Space fold  + - * zoom  M threads as one  v beside",
};

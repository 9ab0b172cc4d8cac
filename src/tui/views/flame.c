/* tui/views/flame.c -- the view `flame`: who called whom and how long it took, as a tree or as a
 * flame graph.
 *
 * A job reads all frames once, and trace/stacks.c folds them into a tree whose nodes are
 * (caller, code object). Tab switches between tree and flame graph; both have the same chosen
 * node.
 *
 * The tree has a line for each node, the longest first, and Space folds and unfolds a node. The
 * flame graph has boxes that are as wide as their time, with callers above their callees, and +
 * zooms into a box. */

#include <limits.h>

#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/stacks.h"
#include "tui/views/lanes.h"

enum {
    ROWS_MOST = 100000,
    NARROW = 64 /* a view that is narrower than this leaves out the own time and the calls */,
    NAME_LEAST = 18
};

struct flame_job {
    struct job job;
    struct stacks stacks;
    struct names names, threads;
    bool merge;
    bool has_unstored; /* frames have no rows */
    int64_t moment_ns; /* if not 0, the job only finds the stack at this moment */
    /* for moment_ns: the first thread on which a call was running then, and the code objects of
     * this stack, outermost first */
    LIST(int64_t) stack;
};

struct flame {
    struct view view;
    struct flame_job *job;    /* owned: the job that reads the frames, or NULL */
    struct flame_job *moment; /* owned: the job that finds the stack at a moment, or NULL */
    struct flame_job *read;   /* owned: the job whose tree is shown, or NULL */
    bool merge;               /* all threads share one root node */
    bool graph;               /* show the flame graph instead of the tree */
    /* the node that is chosen, and the one that is zoomed into (0: none) */
    uint32_t chosen, focus;
    LIST(uint32_t) rows; /* the nodes that the tree shows, from top to bottom */
};

/* ---- reading frames, in a thread ----------------------------------------- */

static void find_stack_of_moment(struct flame_job *job, struct db *db)
{
    db_rows(thread, db, "SELECT thread_id FROM thread ORDER BY 1")
    {
        int64_t thread_id = query_integer(thread, 0);
        int64_t frame_id = 0;
        if (!job->stack.count)
            frame_id = frame_find_at_time(db, thread_id, job->moment_ns);
        if (!frame_id)
            continue;
        *list_add(&job->stack) = thread_id;
        db_rows(row, db, schema_statement("tui/timeline-callers"), frame_id)
        {
            *list_add(&job->stack) = query_integer(row, 2);
        }
    }
}

static void run_flame_job(struct job *base, struct db *db)
{
    struct flame_job *job = (struct flame_job *)base;

    if (job->moment_ns) {
        find_stack_of_moment(job, db);
        return;
    }
    atomic_store(&base->all, db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"));
    job->has_unstored = doubts_describe_unstored_frames(db);
    stacks_visit_frames(
        db, &job->stacks,
        &(struct walk){
            .context = job, .fold = true, .merge = job->merge, .tick = frames_continue_reading});
    if (atomic_load(&base->cancelled))
        return;
    names_read_all(&job->names, db, "tui/code-names");
    names_read_all(&job->threads, db, "tui/threads");
    tree_link_children(&job->stacks.tree);
}

static void free_flame_job(struct job *base)
{
    struct flame_job *job = (struct flame_job *)base;

    stacks_free(&job->stacks);
    names_free(&job->names);
    names_free(&job->threads);
    list_free(&job->stack);
}

/* ---- nodes: unfolding, choosing and zooming ------------------------------ */

/* Return node number NODE. Node 0 stands for all threads. */
static struct node *node_with_index(const struct flame *flame, uint32_t node)
{
    return &flame->read->stacks.tree.nodes.at[node];
}

static const char *name_of_node(const struct flame *flame, uint32_t node)
{
    const struct node *n = node_with_index(flame, node);

    if (!node || !n->code_id)
        return "all threads";
    return name_find_by_id(n->parent ? &flame->read->names : &flame->read->threads, n->code_id);
}

/* List the nodes below the focus that are visible in `rows`, and put the cursor on
 * the chosen node. */
static void list_visible_nodes(struct flame *flame)
{
    const struct node *nodes = flame->read->stacks.tree.nodes.at;
    uint32_t at = nodes[flame->focus].child;

    flame->rows.count = 0;
    flame->view.at = 0;
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

/* Unfold NODE, then its callee that took longest, and so on, as long as that callee took at least
 * 70 % of its caller's time. */
static void unfold_longest_callees(struct flame *flame, uint32_t node)
{
    for (int i = 0; node && i < 40; i++) {
        struct node *n = node_with_index(flame, node);
        n->open = true;
        if (!n->child || node_with_index(flame, n->child)->total_ns * 10 < n->total_ns * 7)
            break;
        node = n->child;
    }
}

static void choose_node(struct flame *flame, uint32_t node)
{
    flame->chosen = node;
    for (uint32_t at = node_with_index(flame, node)->parent; at && at != flame->focus;
         at = node_with_index(flame, at)->parent)
        node_with_index(flame, at)->open = true;
    list_visible_nodes(flame);
}

static void zoom_into(struct flame *flame, uint32_t node)
{
    uint32_t at = flame->chosen;

    /* a node without callees cannot be zoomed into, so zoom into its caller */
    flame->focus =
        node_with_index(flame, node)->child ? node : node_with_index(flame, node)->parent;
    while (at && at != flame->focus)
        at = node_with_index(flame, at)->parent;
    if (at != flame->focus || flame->chosen == flame->focus)
        flame->chosen = node_with_index(flame, flame->focus)->child;
    flame->view.top = 0;
    list_visible_nodes(flame);
}

/* Start the job that reads the frames. FIRST: it reads only as many as there is time for
 * in a first look. */
static void start_job(struct flame *flame, bool first)
{
    flame->job = job_make(sizeof *flame->job, run_flame_job, free_flame_job, !first);
    flame->job->merge = flame->merge;
    flame->job->job.most = first ? FIRST_FRAMES : 0;
    work_start_job(flame->view.tui->work, &flame->job->job);
}

/* Return the child of NODE for ID, a code object or thread. Returns 0 if there is none. */
static uint32_t find_child(const struct flame *flame, uint32_t node, int64_t id)
{
    uint32_t child = node_with_index(flame, node)->child;

    while (child && node_with_index(flame, child)->code_id != id)
        child = node_with_index(flame, child)->sibling;
    return child;
}

/* Follow PATH from the root: the id of a thread, then code objects. Returns the last node of the
 * path that the tree has. */
static uint32_t follow_path(const struct flame *flame, const int64_t *path, size_t count)
{
    uint32_t node = 0;

    for (size_t i = 0; i < count; i++) {
        bool all = !i && flame->read->merge;
        uint32_t child = find_child(flame, node, all ? 0 : path[i]);
        if (!child)
            break;
        node = child;
    }
    return node;
}

/* Return the node of the new tree for AT, a node of the old tree WAS. NOW is the node of the new
 * tree for the parent of AT. Returns 0 if there is none. */
static uint32_t find_node_in_new_tree(const struct flame *flame, const struct flame_job *was,
                                      uint32_t at, uint32_t now)
{
    const struct node *before = &was->stacks.tree.nodes.at[at];

    if (before->parent && !now)
        return 0;
    /* the threads were merged or separated: take the one that took longest */
    if (!before->parent && was->merge != flame->read->merge)
        return node_with_index(flame, now)->child;
    return find_child(flame, now, before->code_id);
}

/* Let the new tree look as the old tree WAS did: the unfolded nodes, the chosen node and the focus,
 * as far as the new tree has them. */
static void transfer_state_to_new_tree(struct flame *flame, struct flame_job *was)
{
    struct node *before = was->stacks.tree.nodes.at;
    size_t count = was->stacks.tree.nodes.count;
    uint32_t *now = calloc(count, sizeof *now);
    uint32_t chosen = flame->chosen;
    uint32_t focus = flame->focus;

    for (uint32_t at = before[chosen].parent; at; at = before[at].parent)
        before[at].open = true;
    /* callers have lower numbers than callees, so now[parent] has been set */
    for (uint32_t at = 1; at < count; at++) {
        if (!before[at].open && at != chosen && at != focus)
            continue;
        now[at] = find_node_in_new_tree(flame, was, at, now[before[at].parent]);
        node_with_index(flame, now[at])->open = before[at].open;
    }
    while (chosen && !now[chosen])
        chosen = before[chosen].parent;
    flame->focus = now[focus];
    /* if the cursor was on the first line it stays there, even if another node comes to be there */
    flame->chosen = flame->chosen == before[0].child ? 0 : now[chosen];
    free(now);
}

static void take_finished_tree(struct flame *flame)
{
    struct flame_job *was = flame->read;

    /* keep the old tree, because transfer_state_to_new_tree() reads from it which nodes are
     * unfolded */
    flame->read = NULL;
    if (!view_take(&flame->view, flame->job, flame->read)) {
        flame->read = was;
        return;
    }
    if (was)
        transfer_state_to_new_tree(flame, was);
    work_drop(flame->view.tui->work, was);
    if (!flame->chosen) {
        flame->chosen = node_with_index(flame, flame->focus)->child;
        unfold_longest_callees(flame, flame->chosen);
    }
    choose_node(flame, flame->chosen);
    if (has_more_frames(&flame->read->job))
        start_job(flame, false);
}

/* Choose the node for the stack that the job `moment` has found. */
static void choose_node_of_moment(struct flame *flame)
{
    uint32_t node = follow_path(flame, flame->moment->stack.at, flame->moment->stack.count);

    if (node) {
        flame->focus = 0;
        choose_node(flame, node);
    }
    work_drop(flame->view.tui->work, flame->moment);
}

/* Has the job `moment` ended, and is there a tree in which its node can be chosen? */
static bool can_moment_be_chosen(const struct flame *flame)
{
    bool ready = flame->moment && !flame->job && flame->read && flame->chosen;

    return ready && work_done(flame->view.tui->work, &flame->moment->job);
}

static void make_view_note(struct flame *flame)
{
    struct view *view = &flame->view;
    size_t room = sizeof view->note;

    view->note[0] = 0;
    if (flame->job && !view->tui->scripted) {
        snprintf(view->note, room, "reading frames: %d %%", job_percent(&flame->job->job));
    } else if (flame->read) {
        const char *cut = flame->read->stacks.tree.cut ? "cut: too many stacks  " : "";
        const char *other = flame->graph ? "tree" : "flame graph";
        const char *out = flame->focus ? "  - zooms out" : "";
        const char *unstored = flame->read->has_unstored ? DOUBTS_UNSTORED "  " : "";
        snprintf(view->note, room, "%s%s  Tab: %s%s", unstored, cut, other, out);
    }
}

static void flame_update(struct view *view)
{
    struct flame *flame = (struct flame *)view;
    bool zoomed;

    take_finished_tree(flame);
    if (can_moment_be_chosen(flame))
        choose_node_of_moment(flame);
    view->head = 1;
    view_choose(view, view->at);
    make_view_note(flame);
    zoomed = flame->read && flame->focus;
    snprintf(view->title, sizeof view->title, "%.120s",
             zoomed ? name_of_node(flame, flame->focus) : "");
}

/* ---- drawing the tree or the flame graph --------------------------------- */

static int choose_time_style(const struct flame *flame, uint32_t node)
{
    double all = (double)node_with_index(flame, 0)->total_ns;
    double self = node ? (double)node_with_index(flame, node)->self_ns : 0;

    if (self * 5 > all)
        return STYLE_ALARM;
    return self * 20 > all ? STYLE_WARN : STYLE_NORMAL;
}

/* Print share, total time, own time and calls of the node AT into MADE, as FORMAT says. ALL is the
 * time that counts as 100 %. A thread has no calls. */
static void format_node_figures(const struct flame *flame, uint32_t at, int64_t all, char *made,
                                size_t room, const char *format)
{
    char total[TABLE_HUMAN], self[TABLE_HUMAN], calls[TABLE_HUMAN];
    const struct node *node = node_with_index(flame, at);
    double share = all > 0 ? 100.0 * (double)node->total_ns / (double)all : 0;

    table_duration(total, node->total_ns);
    table_duration(self, node->self_ns > 0 ? node->self_ns : 0);
    table_count(calls, node->calls);
    snprintf(made, room, format, share, total, self, node->parent ? calls : "-");
}

/* Return how many levels the node AT is below the focus. */
static int depth_below_focus(const struct flame *flame, uint32_t at)
{
    return (int)(node_with_index(flame, at)->depth - node_with_index(flame, flame->focus)->depth -
                 1);
}

/* Return by how many steps a line of the depth DEPTH is indented. With FITS steps there is still
 * room for a name. If the chosen node is deeper, all lines move left until its name is visible.
 * *MOVED: the indentation is less than the depth. */
static int compute_indent(const struct flame *flame, int depth, int fits, bool *moved)
{
    int hidden = depth_below_focus(flame, flame->chosen) - fits;
    int steps = hidden > 0 ? depth - hidden : depth;

    *moved = hidden > 0 || depth > fits;
    if (steps < 0)
        return 0;
    return steps > fits ? fits : steps;
}

static const char *choose_fold_mark(const struct node *node)
{
    if (!node->child)
        return " ";
    return node->open ? "▾" : "▸";
}

static void draw_node(struct flame *flame, struct screen *screen, uint32_t at, int y)
{
    struct view *view = &flame->view;
    const struct node *node = node_with_index(flame, at);
    int wide = view->columns;
    int selected = view_draw_row_begin(view, screen, y, at == flame->chosen);
    int style = (node->parent ? STYLE_NORMAL : STYLE_BOLD) | selected;
    bool narrow = wide < NARROW;
    int step = wide < 70 ? 1 : 2;
    int figures = narrow ? 21 : 40;
    int depth = depth_below_focus(flame, at);
    bool moved;
    int steps = compute_indent(flame, depth, (wide - figures - NAME_LEAST) / step, &moved);
    const char *format = narrow ? "%5.1f %% %9s" : "%5.1f %% %9s %10s %8s";
    char line[400] = "";
    int x;

    format_node_figures(flame, at, node_with_index(flame, flame->focus)->total_ns, line,
                        sizeof line, format);
    x = 3 + screen_put(screen, y, 1, wide - 1, choose_time_style(flame, at) | selected, line);
    x += steps * step;
    screen_put(screen, y, x, 2, STYLE_DIM | selected, choose_fold_mark(node));
    x += 2;
    if (moved) {
        snprintf(line, sizeof line, "[%d] ", depth);
        x += screen_put(screen, y, x, wide - x, style, line);
    }
    screen_put(screen, y, x, wide - x, style, name_of_node(flame, at));
}

static void draw_tree(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    bool narrow = view->columns < NARROW;
    const char *format = narrow ? " %6s %10s" : " %6s %10s %10s %8s  function";
    char line[80];

    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    snprintf(line, sizeof line, format, "share", "total", "self", "calls");
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, line);
    for (int i = 1; i < view->rows; i++) {
        size_t at = view->top + (size_t)i - 1;
        if (at < flame->rows.count)
            draw_node(flame, screen, flame->rows.at[at], view->y + i);
    }
}

static int choose_box_style(const struct flame *flame, uint32_t node)
{
    int style = choose_time_style(flame, node);

    if (node == flame->chosen)
        style = STYLE_MATCH;
    else if (style == STYLE_NORMAL)
        style = STYLE_ACCENT;
    return style | STYLE_SELECTED;
}

static void draw_box_and_callees(struct flame *flame, struct screen *screen, uint32_t node, int y,
                                 int x, int width, int last);

/* A box of WIDTH columns stands for TOTAL. Return the column where the share PART of it ends. */
static int column_of_edge(int64_t part, int64_t total, int width)
{
    return (int)((double)part / (double)total * width + 0.5);
}

/* Draw the boxes of the callees of NODE in row Y. The box of NODE begins at column X. */
static void draw_boxes_of_callees(struct flame *flame, struct screen *screen, uint32_t node, int y,
                                  int x, int width, int last)
{
    int64_t total = node_with_index(flame, node)->total_ns;
    int64_t before = 0;
    int from = x;

    if (total <= 0)
        return;
    for (uint32_t child = node_with_index(flame, node)->child; child;
         child = node_with_index(flame, child)->sibling) {
        int64_t own = node_with_index(flame, child)->total_ns;
        int to;
        before += own < total - before ? own : total - before;
        to = x + column_of_edge(before, total, width);
        if (to <= from && child == flame->chosen)
            to = from + 1;
        if (to > from)
            draw_box_and_callees(flame, screen, child, y, from, to - from, last);
        else if ((double)own * width * 2 < (double)total)
            break; /* stop here, because the callees that follow took even less time */
        from = x + column_of_edge(before, total, width);
    }
}

static void draw_box_and_callees(struct flame *flame, struct screen *screen, uint32_t node, int y,
                                 int x, int width, int last)
{
    int style = choose_box_style(flame, node);

    if (y > last || width < 1)
        return;
    screen_fill(screen, y, x, width, style);
    screen_put(screen, y, x, 1, style, "│");
    if (width > 2)
        screen_put(screen, y, x + 1, width - 2, style, name_of_node(flame, node));
    draw_boxes_of_callees(flame, screen, node, y + 1, x, width, last);
}

static void draw_flame_graph(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    int wide = view->columns;
    int last = view->y + view->rows - 1;
    char line[400];

    draw_box_and_callees(flame, screen, flame->focus, view->y, 0, wide, last - 2);
    screen_put(screen, last - 1, 0, wide, STYLE_BOLD, name_of_node(flame, flame->chosen));
    format_node_figures(flame, flame->chosen, node_with_index(flame, 0)->total_ns, line,
                        sizeof line, "%.1f %% of all, total %s, self %s, calls %s");
    screen_put(screen, last, 0, wide, STYLE_NORMAL, line);
}

static void flame_draw(struct view *view, struct screen *screen)
{
    struct flame *flame = (struct flame *)view;

    if (view_draw_empty(view, screen, flame->read))
        return;
    if (!flame->chosen)
        view_draw_words(
            view, screen, STYLE_DIM,
            "no frame is in the trace (yet): single frames are stored at the end of a recording");
    else if (flame->graph)
        draw_flame_graph(flame, screen);
    else
        draw_tree(flame, screen);
}

static void flame_refresh(struct view *view);

/* ---- requests of the tree and the flame graph ---------------------------- */

/* Return the sibling before NODE, or NODE if it is the first one. */
static uint32_t find_previous_sibling(const struct flame *flame, uint32_t node)
{
    uint32_t up = node_with_index(flame, node)->parent;
    uint32_t at = node_with_index(flame, up)->child;

    if (at == node)
        return node;
    while (at && node_with_index(flame, at)->sibling != node)
        at = node_with_index(flame, at)->sibling;
    return at ? at : node;
}

/* In the flame graph: choose the box above, below or beside. Returns false for other requests. */
static bool move_in_flame_graph(struct flame *flame, enum request request)
{
    const struct node *node = node_with_index(flame, flame->chosen);
    bool has_caller = flame->chosen != flame->focus && node->parent;

    switch (request) {
    case REQUEST_DOWN:
        if (node->child)
            flame->chosen = node->child;
        return true;
    case REQUEST_UP:
        if (has_caller && node->parent != flame->focus)
            flame->chosen = node->parent;
        return true;
    case REQUEST_RIGHT:
        if (node->sibling)
            flame->chosen = node->sibling;
        return true;
    case REQUEST_LEFT:
        flame->chosen = find_previous_sibling(flame, flame->chosen);
        return true;
    default:
        return false;
    }
}

static bool flame_handle_request(struct view *view, enum request request, const struct key *key)
{
    struct flame *flame = (struct flame *)view;
    struct node *chosen;
    bool again;

    if (!flame->read || !flame->chosen)
        return false;
    if (flame->graph && move_in_flame_graph(flame, request)) {
        list_visible_nodes(flame);
        return true;
    }
    if (view_move(view, request)) {
        flame->chosen = flame->rows.at[view->at];
        return true;
    }
    chosen = node_with_index(flame, flame->chosen);
    switch (request) {
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        flame->graph = !flame->graph;
        choose_node(flame, flame->chosen);
        break;
    case REQUEST_RIGHT:
        if (!chosen->open)
            unfold_longest_callees(flame, flame->chosen);
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
        zoom_into(flame, flame->chosen);
        break;
    case REQUEST_ZOOM_OUT:
        zoom_into(flame, node_with_index(flame, flame->focus)->parent);
        break;
    case REQUEST_ZOOM_ALL:
        zoom_into(flame, 0);
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
        node_with_index(flame, flame->chosen)->open ^= again;
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
    list_visible_nodes(flame);
    return true;
}

static bool flame_search(struct view *view, const char *text, int direction)
{
    struct flame *flame = (struct flame *)view;
    uint32_t count = flame->read ? (uint32_t)flame->read->stacks.tree.nodes.count - 1 : 0;

    for (uint32_t i = 1; i <= count; i++) {
        uint32_t by = direction > 0 ? i : count - i;
        uint32_t node = (flame->chosen - 1 + by) % count + 1;
        if (strcasestr(name_of_node(flame, node), text)) {
            flame->focus = 0;
            choose_node(flame, node);
            return true;
        }
    }
    return false;
}

static void flame_get_subject(struct view *view, struct target *subject)
{
    struct flame *flame = (struct flame *)view;
    const struct node *chosen = flame->read ? node_with_index(flame, flame->chosen) : NULL;

    if (chosen && chosen->parent)
        *subject = (struct target){.kind = VIEW_FUNCTION, .id = chosen->code_id};
}

/* Write a file for speedscope.app: all calls, or those of the function that is zoomed into. */
static bool flame_export(struct view *view, const char *path)
{
    struct flame *flame = (struct flame *)view;
    const char *options = "--format speedscope";

    if (flame->focus && node_with_index(flame, flame->focus)->parent)
        options = arena_print(&view->arena, "%s --function %s", options,
                              text_quoted(&view->arena, name_of_node(flame, flame->focus)));
    return view_export(view, options, path);
}

static void flame_get_target(struct view *view, struct arena *arena, struct target *target)
{
    struct flame *flame = (struct flame *)view;
    const struct node *chosen =
        flame->read && flame->chosen ? node_with_index(flame, flame->chosen) : NULL;

    if (chosen && chosen->parent)
        *target = (struct target){.kind = VIEW_CALL, .id = chosen->longest_id};
}

static void flame_show_moment(struct view *view, int64_t at_ns, bool near)
{
    struct flame *flame = (struct flame *)view;

    work_drop(view->tui->work, flame->moment);
    flame->moment = job_make(sizeof *flame->moment, run_flame_job, free_flame_job, false);
    flame->moment->moment_ns = at_ns;
    work_start_job(view->tui->work, &flame->moment->job);
}

static void flame_refresh(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    if (flame->job)
        return;
    view->failed = NULL;
    start_job(flame, !flame->read);
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
    .update = flame_update,
    .draw = flame_draw,
    .request = flame_handle_request,
    .refresh = flame_refresh,
    .search = flame_search,
    .subject = flame_get_subject,
    .moment = flame_show_moment,
    .export = flame_export,
    .writes = "json",
    .lead = flame_get_target,
    .keys =
        "Enter longest call  Tab tree or graph  Space fold  + - * zoom  M threads as one  v beside",
};

/* tui/views/flame.c -- the view `flame`: who called whom and what it took, as a tree or as a flame graph.
 *
 * Runs in: the viewer.
 *
 * All frames are read once, in a thread, and folded into a tree of (caller, code)
 * by trace/stacks.c. Tab changes between the two ways to draw it; the chosen node is
 * the same in both.
 *
 *     tree     a line per node, dearest first; Space folds and unfolds
 *     flame    boxes as wide as their time, callers above; + zooms into one */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "lib/table.h"
#include "tui.h"

enum { NAME_BYTES = 100, ROWS_MOST = 100000, DEPTH_MOST = 2000, TICK = 1 << 14 };

struct name {
    int64_t id;
    char *text;        /* owned */
    char *file;        /* owned, or NULL */
    int64_t line;
};

struct box { /* of a node */
    int64_t total_ns, calls;
    uint32_t child, sibling; /* dearest first; 0: none */
    uint32_t depth;
    bool open;
};

struct flame_job {
    struct job job;
    struct tree tree;    /* owned */
    struct tracks tracks;
    struct box *boxes;   /* owned: by node; 0 is all of them */
    size_t box_room;
    struct name *names;  /* owned: by code_id; threads have their own */
    size_t name_count;
    struct name *threads; /* owned: by thread_id */
    size_t thread_count;
    atomic_llong done, all;
    bool failed;
};

struct flame {
    struct view view;
    struct flame_job *job;  /* owned: what is being read */
    struct flame_job *read; /* owned: what is shown */
    char *failed;           /* owned */
    bool graph;             /* the flame graph, not the tree */
    uint32_t chosen, focus; /* nodes */
    struct { uint32_t node; } *rows; /* owned: of the tree, as far as it is unfolded */
    size_t row_count, top;
};

/* ---- reading --------------------------------------------------------------- */

static bool flame_tick(void *context, int64_t frame_id)
{
    struct flame_job *job = context;

    atomic_store(&job->done, frame_id);
    return !atomic_load(&job->job.cancelled);
}

static void flame_each(void *context, const struct track *track, const struct walked *frame)
{
    struct flame_job *job = context;
    uint32_t node = track->stack[track->depth - 1].what;

    (void)frame;
    if (node >= job->box_room) {
        size_t room = job->box_room ? job->box_room * 2 : 4096;
        struct box *more;
        while (room <= node)
            room *= 2;
        if (!(more = realloc(job->boxes, room * sizeof *more))) {
            job->failed = true;
            return;
        }
        memset(more + job->box_room, 0, (room - job->box_room) * sizeof *more);
        job->boxes = more;
        job->box_room = room;
    }
    job->boxes[node].calls++;
}

struct by_total {
    uint32_t node;
    int64_t total;
};

static int total_compare(const void *a, const void *b, void *context)
{
    const struct flame_job *job = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t p = job->tree.nodes[x].parent, q = job->tree.nodes[y].parent;
    int64_t t = job->boxes[x].total_ns, u = job->boxes[y].total_ns;

    return p != q ? (p > q) - (p < q) : t != u ? (t < u) - (t > u) : (x > y) - (x < y);
}

/* Totals from the leaves up, then each node's children in a chain, dearest first. */
static bool boxes_link(struct flame_job *job)
{
    uint32_t count = job->tree.count, *order;
    struct box *more = realloc(job->boxes, ((size_t)count + 1) * sizeof *more);

    if (!more)
        return false;
    if (job->box_room < (size_t)count + 1)
        memset(more + job->box_room, 0, ((size_t)count + 1 - job->box_room) * sizeof *more);
    job->boxes = more;
    job->box_room = (size_t)count + 1;
    for (uint32_t i = 1; i <= count; i++)
        job->boxes[i].total_ns = job->tree.nodes[i].self_ns > 0 ? job->tree.nodes[i].self_ns : 0;
    for (uint32_t i = count; i >= 1; i--)
        if (__builtin_add_overflow(job->boxes[job->tree.nodes[i].parent].total_ns, job->boxes[i].total_ns, &job->boxes[job->tree.nodes[i].parent].total_ns))
            job->boxes[job->tree.nodes[i].parent].total_ns = INT64_MAX; /* only in a broken trace */
    for (uint32_t i = 1; i <= count; i++) /* a caller comes before what it calls */
        job->boxes[i].depth = job->boxes[job->tree.nodes[i].parent].depth + 1;
    if (!(order = malloc(((size_t)count + 1) * sizeof *order)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i + 1;
    qsort_r(order, count, sizeof *order, total_compare, job);
    for (uint32_t i = count; i-- > 0;) {
        struct box *parent = &job->boxes[job->tree.nodes[order[i]].parent];
        job->boxes[order[i]].sibling = parent->child;
        parent->child = order[i];
    }
    free(order);
    return true;
}

static struct name *names_read(struct db *db, const char *sql, size_t *count)
{
    struct query *query = db_query(db, sql);
    struct name *names = NULL;
    size_t room = 0;

    while (query_step(query)) {
        const char *text = query_text(query, 1, NULL);
        if (*count == room) {
            struct name *more = realloc(names, (room = room ? room * 2 : 256) * sizeof *more);
            if (!more)
                break;
            names = more;
        }
        names[(*count)++] = (struct name){query_integer(query, 0), strndup(text, prose_cut(text, NAME_BYTES)), prose_column(query, 2), query_integer(query, 3)};
    }
    query_close(query);
    return names;
}

static void flame_run(struct job *base, struct db *db)
{
    struct flame_job *job = (struct flame_job *)base;
    struct fold fold = {job, flame_tick, flame_each};
    int64_t end = db_meta_integer(db, "span_ns", 0);

    atomic_store(&job->all, db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"));
    if (!stacks_fold(db, &job->tree, &job->tracks, end, -1, &fold) || atomic_load(&base->cancelled))
        return;
    job->names = names_read(db, "SELECT code_id, COALESCE(NULLIF(qualname, ''), '?'), filename, first_line FROM code ORDER BY code_id LIMIT 400000", &job->name_count);
    job->threads = names_read(db, "SELECT t.thread_id, COALESCE(NULLIF(t.name, ''), 'thread ' || t.os_tid, '?') || ' [' || COALESCE(p.pid, '?') || ']', NULL, 0"
                                  " FROM thread t LEFT JOIN process p ON p.process_id = t.process_id ORDER BY t.thread_id LIMIT 100000", &job->thread_count);
    job->failed = job->failed || !boxes_link(job);
}

static void flame_job_free(struct job *base)
{
    struct flame_job *job = (struct flame_job *)base;

    tree_free(&job->tree);
    tracks_free(&job->tracks);
    for (size_t i = 0; i < job->name_count; i++)
        free(job->names[i].text), free(job->names[i].file);
    for (size_t i = 0; i < job->thread_count; i++)
        free(job->threads[i].text), free(job->threads[i].file);
    free(job->names);
    free(job->threads);
    free(job->boxes);
    free(job);
}

static void flame_ask(struct flame *flame)
{
    struct flame_job *job = calloc(1, sizeof *job);

    if (!job)
        return;
    job->job.run = flame_run;
    job->job.free = flame_job_free;
    job->job.slow = true;
    flame->job = job;
    work_start(tui_work(flame->view.tui), &job->job);
}

/* ---- nodes ----------------------------------------------------------------- */

static const struct name *name_find(const struct name *names, size_t count, int64_t id)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && names[low].id == id ? &names[low] : NULL;
}

static const struct name *node_of(const struct flame *flame, uint32_t node)
{
    const struct flame_job *read = flame->read;

    if (!node)
        return NULL;
    return read->tree.nodes[node].parent ? name_find(read->names, read->name_count, read->tree.nodes[node].code_id)
                                         : name_find(read->threads, read->thread_count, read->tree.nodes[node].code_id);
}

static const char *node_name(const struct flame *flame, uint32_t node)
{
    const struct name *name = node_of(flame, node);

    return !node ? "all threads" : name && name->text ? name->text : "?";
}

static struct box *box(const struct flame *flame, uint32_t node)
{
    return &flame->read->boxes[node];
}

static uint32_t parent(const struct flame *flame, uint32_t node)
{
    return node ? flame->read->tree.nodes[node].parent : 0;
}

/* The unfolded part of the tree below FOCUS, as lines. */
static void rows_make(struct flame *flame)
{
    uint32_t at = box(flame, flame->focus)->child;

    flame->row_count = 0;
    while (at && flame->row_count < ROWS_MOST) {
        flame->rows[flame->row_count++].node = at;
        if (box(flame, at)->open && box(flame, at)->child) {
            at = box(flame, at)->child;
            continue;
        }
        while (at && at != flame->focus && !box(flame, at)->sibling)
            at = parent(flame, at);
        at = at && at != flame->focus ? box(flame, at)->sibling : 0;
    }
}

static size_t row_of(const struct flame *flame)
{
    for (size_t i = 0; i < flame->row_count; i++)
        if (flame->rows[i].node == flame->chosen)
            return i;
    return 0;
}

/* Unfold from NODE down as long as one callee has most of it. */
static void unfold_hot(struct flame *flame, uint32_t node)
{
    for (int i = 0; node && i < 40; i++) {
        uint32_t child = box(flame, node)->child;
        box(flame, node)->open = true;
        if (!child || box(flame, child)->total_ns * 10 < box(flame, node)->total_ns * 7)
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
        box(flame, at)->open = true;
    rows_make(flame);
}

static void focus(struct flame *flame, uint32_t node)
{
    flame->focus = node;
    rows_make(flame);
    if (!flame->row_count && node) { /* a leaf has nothing to look into */
        flame->focus = parent(flame, node);
        rows_make(flame);
    }
    bool within = false;
    for (uint32_t at = flame->chosen; at; at = parent(flame, at))
        within = within || at == flame->focus;
    if ((!within && flame->focus) || flame->chosen == flame->focus)
        flame->chosen = box(flame, flame->focus)->child;
    flame->top = 0;
}

static void flame_settle(struct view *view)
{
    struct flame *flame = (struct flame *)view;

    if (flame->job && work_done(tui_work(view->tui), &flame->job->job)) {
        struct flame_job *job = flame->job;
        flame->job = NULL;
        free(flame->failed);
        flame->failed = job->job.error ? strdup(job->job.error) : job->failed ? strdup("out of memory") : NULL;
        if (flame->failed || !job->boxes || !(flame->rows = realloc(flame->rows, ROWS_MOST * sizeof *flame->rows))) {
            work_drop(tui_work(view->tui), &job->job);
        } else {
            if (flame->read)
                work_drop(tui_work(view->tui), &flame->read->job);
            flame->read = job;
            flame->focus = 0;
            flame->chosen = box(flame, 0)->child;
            unfold_hot(flame, flame->chosen);
            rows_make(flame);
        }
    }
    view->busy = flame->job != NULL;
    view->note[0] = 0;
    if (flame->job && !tui_scripted(view->tui)) {
        long long all = atomic_load(&flame->job->all), done = atomic_load(&flame->job->done);
        snprintf(view->note, sizeof view->note, "reading frames: %d %%", all > 0 ? (int)(100.0 * (double)done / (double)all) : 0);
    } else if (flame->read) {
        snprintf(view->note, sizeof view->note, "%s  Tab: %s%s", flame->read->tree.cut ? "cut: too many stacks  " : "", flame->graph ? "tree" : "flame graph",
                 flame->focus ? "  - zooms out" : "");
    }
    snprintf(view->title, sizeof view->title, "%.120s", flame->read && flame->focus ? node_name(flame, flame->focus) : "");
}

/* ---- drawing --------------------------------------------------------------- */

static int heat(const struct flame *flame, uint32_t node)
{
    double all = (double)box(flame, 0)->total_ns, self = node ? (double)flame->read->tree.nodes[node].self_ns : 0;

    return self * 5 > all ? STYLE_ALARM : self * 20 > all ? STYLE_WARN : STYLE_NORMAL;
}

static void tree_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    size_t at = row_of(flame), height = view->rows > 1 ? (size_t)view->rows - 1 : 1;
    char total[TABLE_HUMAN], self[TABLE_HUMAN], calls[TABLE_HUMAN], line[400];
    int64_t all = box(flame, flame->focus)->total_ns;

    if (at < flame->top)
        flame->top = at;
    if (at >= flame->top + height)
        flame->top = at - height + 1;
    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    snprintf(line, sizeof line, " %6s %10s %10s %8s  %s", "share", "total", "self", "calls", "function");
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, line);
    for (size_t i = 0; i < height && flame->top + i < flame->row_count; i++) {
        uint32_t node = flame->rows[flame->top + i].node;
        const struct box *b = box(flame, node);
        int y = view->y + 1 + (int)i, selected = node == flame->chosen ? STYLE_SELECTED : 0, x;
        int depth = (int)(b->depth - box(flame, flame->focus)->depth - 1);
        if (selected)
            screen_fill(screen, y, 0, view->columns, selected);
        snprintf(line, sizeof line, "%c%5.1f %% %9s %10s %8s", selected ? '>' : ' ', all > 0 ? 100.0 * (double)b->total_ns / (double)all : 0,
                 table_duration(total, b->total_ns), table_duration(self, flame->read->tree.nodes[node].self_ns > 0 ? flame->read->tree.nodes[node].self_ns : 0),
                 parent(flame, node) ? table_count(calls, b->calls) : "");
        x = screen_put(screen, y, 0, view->columns, heat(flame, node) | selected, line) + 2;
        x += (depth < 30 ? depth : 30) * (view->columns < 70 ? 1 : 2);
        screen_put(screen, y, x, 2, STYLE_DIM | selected, !b->child ? " " : b->open ? "▾" : "▸");
        if (depth > 30) {
            snprintf(line, sizeof line, "[%d] %s", depth, node_name(flame, node));
            screen_put(screen, y, x + 2, view->columns - x - 2, (parent(flame, node) ? STYLE_NORMAL : STYLE_BOLD) | selected, line);
        } else {
            screen_put(screen, y, x + 2, view->columns - x - 2, (parent(flame, node) ? STYLE_NORMAL : STYLE_BOLD) | selected, node_name(flame, node));
        }
    }
}

static void boxes_draw(struct flame *flame, struct screen *screen, uint32_t node, int y, int x, int width, int last)
{
    struct view *view = &flame->view;
    int64_t total = box(flame, node)->total_ns, before = 0;
    int style = node == flame->chosen ? STYLE_MATCH | STYLE_SELECTED : (heat(flame, node) == STYLE_NORMAL ? STYLE_ACCENT : heat(flame, node)) | STYLE_SELECTED;

    if (y > last || width < 1)
        return;
    screen_fill(screen, y, x, width, style);
    if (width > 2) {
        screen_put(screen, y, x + 1, width - 2, style, node_name(flame, node));
        screen_put(screen, y, x, 1, style, "│");
    } else {
        screen_put(screen, y, x, 1, style, "│");
    }
    (void)view;
    for (uint32_t child = box(flame, node)->child; child && total > 0; child = box(flame, child)->sibling) {
        int from = x + (int)((double)before / (double)total * width + 0.5);
        before += box(flame, child)->total_ns < total - before ? box(flame, child)->total_ns : total - before;
        int to = x + (int)((double)before / (double)total * width + 0.5);
        if (to <= from && child == flame->chosen)
            to = from + 1;
        if (to > from)
            boxes_draw(flame, screen, child, y + 1, from, to - from, last);
        else if ((double)box(flame, child)->total_ns * width * 2 < (double)total)
            break; /* those after it are smaller still */
    }
}

static void graph_draw(struct flame *flame, struct screen *screen)
{
    struct view *view = &flame->view;
    char total[TABLE_HUMAN], self[TABLE_HUMAN], calls[TABLE_HUMAN], line[400];
    const struct box *b = box(flame, flame->chosen);
    int64_t all = box(flame, 0)->total_ns;

    boxes_draw(flame, screen, flame->focus, view->y, 0, view->columns, view->y + view->rows - 3);
    snprintf(line, sizeof line, "%s", node_name(flame, flame->chosen));
    screen_put(screen, view->y + view->rows - 2, 0, view->columns, STYLE_BOLD, line);
    snprintf(line, sizeof line, "%.1f %% of all, total %s, self %s, %s calls", all > 0 ? 100.0 * (double)b->total_ns / (double)all : 0,
             table_duration(total, b->total_ns), table_duration(self, flame->read->tree.nodes[flame->chosen].self_ns), table_count(calls, b->calls));
    screen_put(screen, view->y + view->rows - 1, 0, view->columns, STYLE_NORMAL, line);
}

static void flame_draw(struct view *view, struct screen *screen)
{
    struct flame *flame = (struct flame *)view;

    if (flame->failed && !flame->read)
        screen_put(screen, view->y + 1, 2, view->columns - 4, STYLE_ALARM, flame->failed);
    else if (!flame->read)
        screen_put(screen, view->y + 1, 2, view->columns - 4, STYLE_DIM, "…");
    else if (!flame->chosen)
        screen_put(screen, view->y + 1, 2, view->columns - 4, STYLE_DIM, "no frame is in the trace (yet): single frames are stored at the end of a recording");
    else if (flame->graph)
        graph_draw(flame, screen);
    else
        tree_draw(flame, screen);
}

/* ---- requests -------------------------------------------------------------- */

static void row_choose(struct flame *flame, long by)
{
    long at = (long)row_of(flame) + by;

    if (at < 0)
        at = 0;
    if (at >= (long)flame->row_count)
        at = (long)flame->row_count - 1;
    if (at >= 0)
        flame->chosen = flame->rows[at].node;
}

/* In the graph: the box beside, above or below. */
static void graph_move(struct flame *flame, enum request request)
{
    uint32_t node = flame->chosen, up = parent(flame, node);

    if (request == REQUEST_DOWN && box(flame, node)->child)
        flame->chosen = box(flame, node)->child;
    else if (request == REQUEST_UP && node != flame->focus && up && up != flame->focus)
        flame->chosen = up;
    else if (request == REQUEST_RIGHT && box(flame, node)->sibling)
        flame->chosen = box(flame, node)->sibling;
    else if (request == REQUEST_LEFT)
        for (uint32_t at = box(flame, up)->child; at && at != node; at = box(flame, at)->sibling)
            if (box(flame, at)->sibling == node)
                flame->chosen = at;
}

static bool flame_request(struct view *view, enum request request, const struct key *key)
{
    struct flame *flame = (struct flame *)view;
    long page = view->rows > 3 ? view->rows - 2 : 1;

    if (request == REQUEST_CANCEL && flame->job) {
        work_cancel(tui_work(view->tui), &flame->job->job);
        return true;
    }
    if (!flame->read || !flame->chosen)
        return false;
    if (flame->graph && (request == REQUEST_UP || request == REQUEST_DOWN || request == REQUEST_LEFT || request == REQUEST_RIGHT)) {
        graph_move(flame, request);
        return true;
    }
    switch (request) {
    case REQUEST_UP: row_choose(flame, -1); return true;
    case REQUEST_DOWN: row_choose(flame, 1); return true;
    case REQUEST_PAGE_UP: row_choose(flame, -page); return true;
    case REQUEST_PAGE_DOWN: row_choose(flame, page); return true;
    case REQUEST_HALF_UP: row_choose(flame, -page / 2); return true;
    case REQUEST_HALF_DOWN: row_choose(flame, page / 2); return true;
    case REQUEST_WHEEL_UP: row_choose(flame, -3); return true;
    case REQUEST_WHEEL_DOWN: row_choose(flame, 3); return true;
    case REQUEST_HOME: row_choose(flame, -(long)ROWS_MOST); return true;
    case REQUEST_END: row_choose(flame, ROWS_MOST); return true;
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        flame->graph = !flame->graph;
        rows_make(flame);
        choose(flame, flame->chosen);
        return true;
    case REQUEST_RIGHT:
        if (!box(flame, flame->chosen)->open)
            unfold_hot(flame, flame->chosen);
        else
            row_choose(flame, box(flame, flame->chosen)->child ? 1 : 0);
        rows_make(flame);
        return true;
    case REQUEST_LEFT:
        if (box(flame, flame->chosen)->open && box(flame, flame->chosen)->child)
            box(flame, flame->chosen)->open = false;
        else if (parent(flame, flame->chosen) && parent(flame, flame->chosen) != flame->focus)
            flame->chosen = parent(flame, flame->chosen);
        rows_make(flame);
        return true;
    case REQUEST_TOGGLE:
        box(flame, flame->chosen)->open = !box(flame, flame->chosen)->open;
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
        if (!flame->graph && key->y > view->y && flame->top + (size_t)(key->y - view->y - 1) < flame->row_count) {
            flame->chosen = flame->rows[flame->top + (size_t)(key->y - view->y - 1)].node;
            if (request == REQUEST_DOUBLE)
                box(flame, flame->chosen)->open = !box(flame, flame->chosen)->open;
            rows_make(flame);
        }
        return true;
    case REQUEST_OPEN:
        if (parent(flame, flame->chosen)) {
            struct target target = target_make(VIEW_FUNCTION, flame->read->tree.nodes[flame->chosen].code_id, NULL, NULL);
            tui_go(view->tui, &target);
            target_free(&target);
        } else {
            box(flame, flame->chosen)->open = !box(flame, flame->chosen)->open;
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
    uint32_t count = flame->read ? flame->read->tree.count : 0;

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
        *subject = target_make(VIEW_FUNCTION, flame->read->tree.nodes[flame->chosen].code_id, NULL, NULL);
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

    if (flame->job)
        work_drop(tui_work(view->tui), &flame->job->job);
    if (flame->read)
        work_drop(tui_work(view->tui), &flame->read->job);
    free(flame->rows);
    free(flame->failed);
}

const struct view_ops view_flame = {
    .name = "flame", .summary = "who called whom and what it took, as a tree or a flame graph (Tab)", .size = sizeof(struct flame),
    .open = flame_open, .close = flame_close, .settle = flame_settle, .draw = flame_draw, .request = flame_request, .refresh = flame_refresh,
    .search = flame_search, .place = flame_place, .subject = flame_subject,
};

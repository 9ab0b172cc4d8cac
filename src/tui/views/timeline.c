/* tui/views/timeline.c -- the view `timeline`: threads and processes as lanes, with lookups,
 * compiles and calls.
 *
 * What it shows is read by tui/views/lanes.c.
 *
 *     0.000 s ........................ 1.2 s      the part that is shown
 *     MainThread [4711]
 *      ▁▁▃▅▅▅▂                                    how deep calls are
 *      ..CCmm..X                                  C compile, B its graph broke, m miss, e eager, X
 *                                                 limit or error, . hits
 *      │main                                      the chosen lane: calls, when few enough are in
 *                                                 sight
 */
#include <inttypes.h>
#include <limits.h>

#include "lib/table.h"
#include "trace/db.h"
#include "tui/lead.h"
#include "tui/views/lanes.h"

enum { LANE_ROWS = 3, ZOOM_LEAST_NS = 20 };

struct timeline {
    struct view view;
    struct lanes_job *asking; /* owned, as all jobs */
    struct detail_job *detailing;
    struct lanes_job *lanes;
    struct detail_job *detail;
    double from, to, at; /* ns: what is shown, and the cursor */
    /* lane that is drawn; of view.count, view.at is the chosen one */
    int first;
    bool too_much, placed;
    /* the cursor is to be brought into sight, near: and shown from near by */
    bool sought, near;
    /* words in the names of the lanes that are shown, or NULL */
    const char *filter;
};

static int lane_count(const struct timeline *t)
{
    return t->lanes ? (int)t->lanes->lanes.count : 0;
}

/* ---- the part that is shown ---------------------------------------------- */

static double column_wide(const struct timeline *t)
{
    return (t->to - t->from) / (t->view.columns > 0 ? t->view.columns : 1);
}

static int64_t column_ns(const struct timeline *t, int column)
{
    return (int64_t)(t->from + column_wide(t) * column);
}

/* It is the chosen one, or has something in what is shown, and fits the filter. */
static bool lane_shown(const struct timeline *t, int at)
{
    const struct lane *lane = &t->lanes->lanes.at[at];
    double wide = (double)t->lanes->span_ns / BUCKETS;

    if (at == (int)t->view.at)
        return true;
    if ((lane->first + 0.0) * wide > t->to || (lane->last + 1.0) * wide < t->from)
        return false;
    return !t->filter || (lane->name && strcasestr(lane->name, t->filter));
}

/* The next lane that is shown in that direction, or the same. */
static int lane_beside(const struct timeline *t, int by)
{
    int at = (int)t->view.at + by;

    while (at >= 0 && at < lane_count(t) && !lane_shown(t, at))
        at += by;
    return at >= 0 && at < lane_count(t) ? at : (int)t->view.at;
}

/* The column of a moment, within the screen. */
static int column_at(const struct timeline *t, double at)
{
    double column = (at - t->from) / column_wide(t);

    if (!(column >= 0))
        return 0;
    return column >= t->view.columns ? t->view.columns - 1 : (int)column;
}

/* Of the cursor, which may be where a column begins, or as good as there. */
static int cursor_column(const struct timeline *t)
{
    return column_at(t, t->at + column_wide(t) / 1024);
}

static void cursor_set(struct timeline *t, int column)
{
    t->at = t->from + column_wide(t) * column;
}

static void window_set(struct timeline *t, double from, double to)
{
    double span = t->lanes ? (double)t->lanes->span_ns : 1, wide = to - from;

    if (wide < ZOOM_LEAST_NS)
        wide = ZOOM_LEAST_NS;
    if (wide > span)
        wide = span;
    if (from > span - wide)
        from = span - wide;
    t->from = from < 0 ? 0 : from;
    t->to = t->from + wide;
}

static void window_move(struct timeline *t, double by)
{
    window_set(t, t->from + by, t->to + by);
}

static void zoom(struct timeline *t, double by)
{
    window_set(t, t->at - (t->at - t->from) * by, t->at + (t->to - t->at) * by);
}

/* Begin where the target says: at a moment, on the lane where it was. */
static void place(struct timeline *t)
{
    double at = (double)t->view.target.at_ns, wide = (double)t->lanes->span_ns / 40;
    int64_t thread_id = t->view.target.id;

    t->placed = true;
    window_set(t, 0, (double)t->lanes->span_ns);
    for (int i = 0; i < lane_count(t); i++) /* the busiest lane is what one wants to see */
        if (t->lanes->lanes.at[i].calls > t->lanes->lanes.at[t->view.at].calls)
            t->view.at = i;
    if (t->view.target.about == VIEW_CALL)
        db_rows(row, t->view.tui->db,
                "SELECT thread_id FROM frame WHERE frame_id = ?1 UNION ALL SELECT thread_id FROM "
                "lookup WHERE lookup_id = -?1",
                thread_id) thread_id = query_integer(row, 0);
    for (int i = 0; i < lane_count(t) &&
                    (t->view.target.about == VIEW_NONE || t->view.target.about == VIEW_CALL);
         i++)
        if (t->lanes->lanes.at[i].thread_id == thread_id)
            t->view.at = i;
    if (t->view.target.at_ns <= 0 || t->sought)
        return;
    for (size_t i = 0; i < t->lanes->compiles.count; i++) {
        const struct compile_mark *m = &t->lanes->compiles.at[i];
        if (m->start_ns <= t->view.target.at_ns && m->end_ns >= t->view.target.at_ns &&
            m->lane >= 0) {
            t->view.at = m->lane;
            wide = (double)(m->end_ns - m->start_ns) * 4;
        }
    }
    window_set(t, at - wide / 2, at + wide / 2);
    t->at = at;
}

/* A moment from elsewhere: where one is, if that is in sight; NEAR: by itself. */
static void timeline_moment(struct view *view, int64_t at_ns, bool near)
{
    struct timeline *t = (struct timeline *)view;

    t->at = (double)at_ns;
    t->near = near;
    t->sought = true; /* when lanes and window are there */
}

static void moment_settle(struct timeline *t)
{
    double wide = t->near ? (double)t->lanes->span_ns / 40 : t->to - t->from;

    if (wide > t->to - t->from)
        wide = t->to - t->from;
    if (t->near || t->at < t->from || t->at >= t->to)
        window_set(t, t->at - wide / 2, t->at + wide / 2);
    t->near = t->sought = false;
    t->at = t->at < t->to ? t->at : t->to;
}

static bool detail_fits(const struct timeline *t, const struct detail_job *job)
{
    return job && job->lane == (int)t->view.at && job->columns == t->view.columns &&
           job->from_ns == (int64_t)t->from && job->to_ns == (int64_t)t->to;
}

static void lanes_take(struct timeline *t)
{
    struct work *work = t->view.tui->work;

    if (!view_take(&t->view, t->asking, t->lanes))
        return;
    work_drop(work, t->detail);
    work_drop(work, t->detailing);
    t->asking = frames_more(&t->lanes->job) ? lanes_ask(work, false) : NULL;
    t->view.count = t->lanes->lanes.count;
    view_choose(&t->view, t->view.at);
}

/* The calls of the part that is shown, on the chosen lane. */
static void detail_settle(struct timeline *t)
{
    struct work *work = t->view.tui->work;

    view_take(&t->view, t->detailing, t->detail);
    if (detail_fits(t, t->detail) || detail_fits(t, t->detailing))
        return;
    work_drop(work, t->detailing);
    t->detailing = detail_ask(work, t->lanes, (int)t->view.at, (int64_t)t->from, (int64_t)t->to,
                              t->view.columns);
    t->too_much = !t->detailing;
    if (t->too_much)
        work_drop(work, t->detail);
}

static void timeline_settle(struct view *view)
{
    struct timeline *t = (struct timeline *)view;
    char wide[TABLE_HUMAN], lanes[80] = "";
    int shown = 0;

    lanes_take(t);
    if (lane_count(t) && !t->placed)
        place(t);
    if (lane_count(t) && t->sought)
        moment_settle(t);
    for (int i = 0; i < lane_count(t); i++)
        shown += lane_shown(t, i);
    if (lane_count(t))
        detail_settle(t);
    view->note[0] = 0;
    if (t->asking && !view->tui->scripted)
        snprintf(view->note, sizeof view->note, "reading: %d %%", job_percent(&t->asking->job));
    else if (t->lanes) {
        if (shown < lane_count(t))
            snprintf(lanes, sizeof lanes, "%s%.30s%s%d of %d lanes  ", t->filter ? "filter: " : "",
                     t->filter ? t->filter : "", t->filter ? "  " : "", shown, lane_count(t));
        snprintf(view->note, sizeof view->note, "%s%s", lanes,
                 table_duration(wide, (int64_t)(t->to - t->from)));
    }
}

/* ---- what is in a column ------------------------------------------------- */

/* Sums of the buckets in a column. */
static struct bucket column_sums(const struct timeline *t, int at, int column)
{
    const struct bucket *buckets = t->lanes->lanes.at[at].buckets;
    double span = (double)t->lanes->span_ns;
    int from = (int)((double)column_ns(t, column) / span * BUCKETS),
        to = (int)((double)column_ns(t, column + 1) / span * BUCKETS);
    struct bucket sums = {0};

    for (int i = from < 0 ? 0 : from; i < BUCKETS && (i < to || i == from); i++) {
        sums.hits += buckets[i].hits;
        sums.misses += buckets[i].misses;
        sums.eager += buckets[i].eager;
        if (buckets[i].depth > sums.depth)
            sums.depth = buckets[i].depth;
    }
    return sums;
}

/* Of each column the longest compile of lane AT, and whether the graph of one broke. */
struct compiles {
    const struct compile_mark *longest[SCREEN_MOST];
    bool broke[SCREEN_MOST];
};

static struct compiles compiles_find(const struct timeline *t, int at)
{
    struct compiles found = {0};

    for (size_t i = 0; i < t->lanes->compiles.count; i++) {
        const struct compile_mark *m = &t->lanes->compiles.at[i];
        if (m->lane != at || (double)m->end_ns < t->from || (double)m->start_ns >= t->to)
            continue;
        for (int x = column_at(t, (double)m->start_ns); x <= column_at(t, (double)m->end_ns); x++) {
            found.broke[x] = found.broke[x] || m->broke;
            if (!found.longest[x] ||
                found.longest[x]->end_ns - found.longest[x]->start_ns < m->end_ns - m->start_ns)
                found.longest[x] = m;
        }
    }
    return found;
}

/* ---- drawing ------------------------------------------------------------- */

/* The mark of a column: what went wrong, else its compile, else its lookups one by one, or by its
 * sums. */
static const char *column_mark(const struct timeline *t, const struct compiles *compiles,
                               const struct bucket *sums, bool detailed, int x, int *style)
{
    static const struct {
        char mark;
        const char *shown;
        int style;
    } marks[] = {
        {'X', "X", STYLE_ALARM},  {'B', "B", STYLE_WARN}, {'C', "C", STYLE_ACCENT},
        {'m', "m", STYLE_ACCENT}, {'e', "e", STYLE_WARN}, {'h', "▒", STYLE_WARN},
        {'.', "▪", STYLE_GOOD},   {0, " ", STYLE_NORMAL},
    };
    char hits = sums->eager  ? 'h'
                : sums->hits ? '.'
                             : 0,
         sum = sums->misses               ? 'm'
               : sums->eager > sums->hits ? 'e'
                                          : hits;
    char mark = detailed ? t->detail->marks[x] : sum;
    int at = 0;

    if (mark != 'X' && compiles->longest[x])
        mark = compiles->broke[x] ? 'B' : 'C';
    while (marks[at].mark != mark)
        at++;
    *style = marks[at].style;
    return marks[at].shown;
}

static void lane_draw(struct timeline *t, struct screen *screen, int at, int y, int last)
{
    const struct lane *lane = &t->lanes->lanes.at[at];
    struct compiles compiles = compiles_find(t, at);
    bool chosen = at == (int)t->view.at, detailed = chosen && detail_fits(t, t->detail);
    int column = cursor_column(t);
    char calls[TABLE_HUMAN], label[200];

    snprintf(label, sizeof label, lane->calls ? "%c%s  %s calls looked up" : "%c%s",
             chosen ? '>' : ' ', lane->name ? lane->name : "?", table_count(calls, lane->calls));
    screen_put(screen, y, 0, t->view.columns, chosen ? STYLE_BOLD : STYLE_NORMAL, label);
    for (int x = 0; x < t->view.columns && y + 1 <= last; x++) {
        struct bucket sums = column_sums(t, at, x);
        int selected = chosen && x == column ? STYLE_SELECTED : 0, style;
        const char *mark = column_mark(t, &compiles, &sums, detailed, x, &style);
        screen_put(screen, y + 1, x, 1, STYLE_DIM | selected,
                   spark_glyph(sums.depth ? (double)sums.depth / lane->deepest : 0, " "));
        if (y + 2 <= last)
            screen_put(screen, y + 2, x, 1, style | selected, mark);
    }
}

static void detail_draw(struct timeline *t, struct screen *screen, int y, int last)
{
    int column = cursor_column(t), deeper;
    char words[40];

    if (t->too_much || !detail_fits(t, t->detail)) {
        screen_put(screen, y, 1, t->view.columns - 2, STYLE_DIM,
                   t->too_much ? "too many calls to draw: + zooms in" : "…");
        return;
    }
    for (int depth = 0; depth < t->detail->depth && y + depth <= last; depth++)
        for (int x = 0, end; x < t->view.columns; x = end) {
            const struct detail_cell *cell = &t->detail->cells[depth][x];
            bool here;
            int style;
            for (end = x + 1; cell->frame_id && end < t->view.columns &&
                              cell[end - x].frame_id == cell->frame_id;
                 end++)
                ;
            if (!cell->frame_id)
                continue;
            here = column >= x && column < end;
            style = (here ? STYLE_NORMAL : depth % 2 ? STYLE_ACCENT : STYLE_DIM) | STYLE_SELECTED;
            screen_fill(screen, y + depth, x, end - x, style);
            screen_put(screen, y + depth, x, 1, style, "│");
            if (end - x > 2)
                screen_put(screen, y + depth, x + 1, end - x - 1, style,
                           name_find(&t->lanes->names, cell->code_id));
        }
    deeper = t->detail->stack[column] -
             (last - y + 1 < t->detail->depth ? last - y + 1 : t->detail->depth);
    snprintf(words, sizeof words, " +%d deeper: v ", deeper);
    if (deeper > 0)
        screen_put(screen, last, t->view.columns - (int)strlen(words), (int)strlen(words),
                   STYLE_HEAD, words);
}

/* What is under the cursor, in words. */
static void foot_draw(struct timeline *t, struct screen *screen, int y)
{
    struct compiles compiles = compiles_find(t, (int)t->view.at);
    int column = cursor_column(t), used, innermost = 0;
    const struct compile_mark *compile = compiles.longest[column];
    struct bucket sums = column_sums(t, (int)t->view.at, column);
    char line[300], wide[TABLE_HUMAN], took[TABLE_HUMAN];

    used = snprintf(line, sizeof line, "%.6f s (a column is %s)", t->at / 1e9,
                    table_duration(wide, (int64_t)column_wide(t)));
    if (compile)
        used += snprintf(line + used, sizeof line - (size_t)used, "  compile, %s%s%s",
                         table_duration(took, compile->end_ns - compile->start_ns),
                         compiles.broke[column] ? ", graph broke" : "",
                         compile->bad ? ", gave no code" : "");
    if (detail_fits(t, t->detail))
        snprintf(line + used, sizeof line - (size_t)used,
                 t->lanes->lanes.at[t->view.at].calls ? "  %u lookup%s" : "",
                 t->detail->lookups_at[column], t->detail->lookups_at[column] == 1 ? "" : "s");
    else if (t->lanes->lanes.at[t->view.at].calls)
        snprintf(line + used, sizeof line - (size_t)used,
                 "  about here: %u hits, %u compiled, %u eager", sums.hits, sums.misses,
                 sums.eager);
    used = screen_put(screen, y, 0, t->view.columns, STYLE_NORMAL, line);
    /* the stack, the innermost first */
    for (int depth = detail_fits(t, t->detail) ? t->detail->depth : 0; depth-- > 0;)
        if (t->detail->cells[depth][column].frame_id) {
            used += screen_put(screen, y, used, t->view.columns - used, STYLE_DIM,
                               innermost++ ? " < " : "  ");
            used +=
                screen_put(screen, y, used, t->view.columns - used, STYLE_BOLD,
                           name_find(&t->lanes->names, t->detail->cells[depth][column].code_id));
        }
}

/* How many rows lane AT takes at row Y: the chosen one has its calls below it. */
static int lane_rows(const struct timeline *t, int at, int y, int last)
{
    int below = 0, left = last - y - LANE_ROWS, rows;

    if (at != (int)t->view.at)
        return lane_shown(t, at) ? LANE_ROWS : 0;
    for (int other = at + 1; other < lane_count(t); other++)
        below += lane_shown(t, other) ? LANE_ROWS : 0;
    rows = left + 1 - (below < left / 2 ? below : left / 2);
    if (detail_fits(t, t->detail) && t->detail->depth < rows)
        rows = t->detail->depth;
    return LANE_ROWS + (rows < 1 || t->too_much ? 1 : rows);
}

static void timeline_draw(struct view *view, struct screen *screen)
{
    struct timeline *t = (struct timeline *)view;
    int y = view->y + 1, last = view->y + view->rows - 2, room = (last - y + 1) / LANE_ROWS;
    char from[64], to[64];

    if (view_empty(view, screen, t->lanes))
        return;
    if (!lane_count(t)) {
        view_words(view, screen, STYLE_DIM, "no thread was recorded");
        return;
    }
    snprintf(from, sizeof from, "%.6f s", t->from / 1e9);
    snprintf(to, sizeof to, "%.6f s", t->to / 1e9);
    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, from);
    screen_put(screen, view->y, view->columns - (int)strlen(to), (int)strlen(to), STYLE_HEAD, to);
    /* The chosen lane has to be in sight, and what is left of the screen is its. */
    if ((int)t->view.at < t->first)
        t->first = (int)t->view.at;
    for (int at = (int)t->view.at, above = 0; at > t->first; at--)
        if (lane_shown(t, at - 1) && ++above > (room - 1) / 2)
            t->first = at;
    for (int at = t->first, rows; at < lane_count(t) && y <= last; at++, y += rows) {
        rows = lane_rows(t, at, y, last);
        if (!rows)
            continue;
        lane_draw(t, screen, at, y, last);
        if (at == (int)t->view.at)
            detail_draw(t, screen, y + LANE_ROWS, y + rows - 1 < last ? y + rows - 1 : last);
    }
    foot_draw(t, screen, view->y + view->rows - 1);
}

/* ---- requests ------------------------------------------------------------ */

/* At the edge of the screen the window moves, too. */
static void cursor_move(struct timeline *t, int by)
{
    int to = cursor_column(t) + by, edge = to < 0 ? 0 : t->view.columns - 1;

    if (to < 0 || to > edge)
        window_move(t, (to - edge) * column_wide(t));
    cursor_set(t, to < 0 || to > edge ? edge : to);
}

/* Choose the lane that is drawn at row Y. False: it was. */
static bool lane_choose(struct timeline *t, int y)
{
    int last = t->view.y + t->view.rows - 2, top = t->view.y + 1;

    for (int at = t->first, rows; at < lane_count(t) && top <= last; at++, top += rows) {
        rows = lane_rows(t, at, top, last);
        if (y >= top && y < top + rows && at != (int)t->view.at) {
            t->view.at = at;
            return true;
        }
    }
    return false;
}

/* The innermost call under the cursor; 0: none is drawn. */
static int64_t cursor_frame(const struct timeline *t)
{
    for (int depth = detail_fits(t, t->detail) ? t->detail->depth : 0, column = cursor_column(t);
         depth-- > 0;)
        if (t->detail->cells[depth][column].frame_id)
            return t->detail->cells[depth][column].frame_id;
    return 0;
}

static bool timeline_place(struct view *view, const char **file, int64_t *line)
{
    struct timeline *t = (struct timeline *)view;

    return lane_count(t) &&
           view_source(view, &(struct target){.kind = VIEW_CALL, .id = cursor_frame(t)}, file,
                       line);
}

/* What is under the cursor: its compile, else its lookups, else its innermost call. */
static void timeline_lead(struct view *view, struct arena *arena, struct target *target)
{
    struct timeline *t = (struct timeline *)view;
    const struct compile_mark *compile;
    struct bucket sums;
    bool detailed = detail_fits(t, t->detail);
    int column = cursor_column(t);

    if (!lane_count(t) || t->sought)
        return;
    *target = (struct target){.kind = VIEW_CALL,
                              .id = t->lanes->lanes.at[t->view.at].thread_id,
                              .at_ns = (int64_t)t->at,
                              .about = VIEW_TIMELINE};
    if (view->tui->split) /* the whole stack of the moment */
        return;
    compile = compiles_find(t, (int)t->view.at).longest[column];
    sums = column_sums(t, (int)t->view.at, column);
    if (compile)
        *target = (struct target){.kind = VIEW_COMPILE, .id = compile->id};
    else if (detailed ? t->detail->lookups_at[column] > 0
                      : sums.hits + sums.misses + sums.eager > 0)
        *target = (struct target){
            .kind = VIEW_LEDGER,
            .title = "this moment",
            .where =
                arena_print(arena, "at >= %" PRId64 " AND at < %" PRId64 " AND thread = %" PRId64,
                            column_ns(t, column), column_ns(t, column + 1),
                            t->lanes->lanes.at[t->view.at].thread_id)};
    else if (cursor_frame(t)) /* not that of the moment: of several in a column the longest */
        *target = (struct target){.kind = VIEW_CALL, .id = cursor_frame(t)};
}

/* To the next compile of the lane, or the one before. */
static void compile_seek(struct timeline *t, bool next)
{
    const struct compile_mark *to = NULL;
    int64_t here = column_ns(t, cursor_column(t)), after = column_ns(t, cursor_column(t) + 1);

    for (size_t i = 0; i < t->lanes->compiles.count; i++) {
        const struct compile_mark *m = &t->lanes->compiles.at[i];
        if (m->lane == (int)t->view.at && (next ? m->start_ns >= after && !to : m->start_ns < here))
            to = m;
    }
    if (!to) {
        tui_say(t->view.tui, "no compile there on this lane");
        return;
    }
    if ((double)to->start_ns < t->from || (double)to->start_ns >= t->to)
        window_move(t, (double)to->start_ns - (t->from + t->to) / 2);
    t->at = (double)to->start_ns;
}

static bool timeline_request(struct view *view, enum request request, const struct key *key)
{
    struct timeline *t = (struct timeline *)view;
    int page = view->columns / 2;

    if (!lane_count(t))
        return false;
    switch (request) {
    case REQUEST_UP:
    case REQUEST_PREVIOUS_PART:
        t->view.at = lane_beside(t, -1);
        break;
    case REQUEST_DOWN:
    case REQUEST_NEXT_PART:
        t->view.at = lane_beside(t, 1);
        break;
    case REQUEST_LEFT:
        cursor_move(t, -1);
        break;
    case REQUEST_RIGHT:
        cursor_move(t, 1);
        break;
    case REQUEST_HALF_UP:
        cursor_move(t, -8);
        break;
    case REQUEST_HALF_DOWN:
        cursor_move(t, 8);
        break;
    case REQUEST_PAGE_UP:
        cursor_move(t, -cursor_column(t) - page);
        break;
    case REQUEST_PAGE_DOWN:
        cursor_move(t, view->columns - 1 - cursor_column(t) + page);
        break;
    case REQUEST_HOME:
        window_move(t, -t->from);
        t->at = t->from;
        break;
    case REQUEST_END:
        window_move(t, (double)t->lanes->span_ns - t->to);
        cursor_set(t, view->columns - 1);
        break;
    case REQUEST_WHEEL_UP:
    case REQUEST_ZOOM_IN:
        zoom(t, 0.5);
        break;
    case REQUEST_WHEEL_DOWN:
    case REQUEST_ZOOM_OUT:
        zoom(t, 2);
        break;
    case REQUEST_ZOOM_ALL:
        window_set(t, 0, (double)t->lanes->span_ns);
        break;
    case REQUEST_CLICK:
        if (!lane_choose(t, key->y) && key->x == cursor_column(t))
            tui_open(view->tui);
        else if (key->x >= 0 && key->x < view->columns)
            cursor_set(t, key->x);
        break;
    case REQUEST_SEARCH_NEXT:
    case REQUEST_SEARCH_PREVIOUS:
        if (view->searched) /* for a lane */
            return false;
        compile_seek(t, request == REQUEST_SEARCH_NEXT);
        break;
    default:
        return false;
    }
    return true;
}

static bool lane_has(struct view *view, size_t at, const char *text)
{
    const char *name = ((struct timeline *)view)->lanes->lanes.at[at].name;

    return name && strcasestr(name, text);
}

static void timeline_filter(struct view *view, const char *text)
{
    struct timeline *t = (struct timeline *)view;

    t->filter = *text ? arena_print(&view->arena, "%s", text) : NULL;
    if (t->filter && view->count && !lane_has(view, view->at, text))
        view_find(view, 1, lane_has, text);
}

/* The stretch that is shown, for ui.perfetto.dev. */
static bool timeline_export(struct view *view, const char *path)
{
    struct timeline *t = (struct timeline *)view;
    char options[100];

    snprintf(options, sizeof options, "--format perfetto --time %" PRId64 "ns..%" PRId64 "ns",
             (int64_t)t->from, (int64_t)t->to + 1);
    return view_export(view, options, path);
}

static void timeline_subject(struct view *view, struct target *subject)
{
    struct timeline *t = (struct timeline *)view;

    if (t->lanes)
        subject->at_ns = (int64_t)t->at;
}

static void timeline_refresh(struct view *view)
{
    struct timeline *t = (struct timeline *)view;

    if (t->asking)
        return;
    view->failed = NULL;
    t->asking = lanes_ask(view->tui->work, !t->lanes);
}

const struct view_ops view_timeline = {
    .summary = "threads and processes as lanes; + - zoom, n N to the next compile",
    .size = sizeof(struct timeline),
    .asked = 2,
    .jobs = 4,
    .open = timeline_refresh,
    .settle = timeline_settle,
    .draw = timeline_draw,
    .request = timeline_request,
    .refresh = timeline_refresh,
    .subject = timeline_subject,
    .lead = timeline_lead,
    .place = timeline_place,
    .export = timeline_export,
    .writes = "json",
    .has = lane_has,
    .filter = timeline_filter,
    .moment = timeline_moment,
    .keys = "Enter opens  + - * zoom  n N compile  @ moment  / lane  f lanes  v stack beside",
};

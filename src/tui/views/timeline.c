/* tui/views/timeline.c -- the view `timeline`: threads and processes as lanes, with lookups, compiles and calls.
 *
 * Runs in: the viewer. What it shows is read by tui/views/lanes.c.
 *
 *     0.000 s ........................ 1.2 s      the part that is shown
 *     MainThread  pid 4711
 *      ▁▁▃▅▅▅▂                                    how deep calls are
 *      ..CCmm..X                                  C compile, B its graph broke, m miss, e eager, X limit or error, . hits
 *      │main                                      the chosen lane: calls, when few enough are in sight
 */
#include "tui/views/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/table.h"

enum { LANE_ROWS = 3, ZOOM_LEAST_NS = 20 };

struct timeline {
    struct view view;
    struct lanes_job *asking, *lanes; /* owned */
    struct detail_job *detailing, *detail; /* owned */
    char *failed;                     /* owned */
    double from, to;                  /* ns */
    int lane, first, column, built;
    bool too_much, placed;
};

static int64_t column_ns(const struct timeline *t, int column)
{
    return (int64_t)(t->from + (t->to - t->from) * column / (t->view.columns > 0 ? t->view.columns : 1));
}

/* The column of a moment, within the screen. */
static int column_at(const struct timeline *t, double at)
{
    double column = (at - t->from) / (t->to - t->from) * t->view.columns;

    return !(column >= 0) ? 0 : column >= t->view.columns ? t->view.columns - 1 : (int)column;
}

static void window_set(struct timeline *t, double from, double to)
{
    double span = t->lanes ? (double)t->lanes->span_ns : 1;

    if (to - from < ZOOM_LEAST_NS)
        to = from + ZOOM_LEAST_NS;
    if (to - from > span)
        from = 0, to = span;
    if (from < 0)
        to -= from, from = 0;
    if (to > span)
        from -= to - span, to = span;
    t->from = from < 0 ? 0 : from;
    t->to = to;
}

static void zoom(struct timeline *t, double by)
{
    double share = t->view.columns > 0 ? ((double)t->column + 0.5) / t->view.columns : 0.5;
    double at = t->from + (t->to - t->from) * share, wide = (t->to - t->from) * by;

    window_set(t, at - wide * share, at + wide * (1 - share));
}

/* Begin where the target says: at a moment, on the lane where it was. */
static void place(struct timeline *t)
{
    double at = (double)t->view.target.at_ns, wide = (double)t->lanes->span_ns / 40;

    t->placed = true;
    window_set(t, 0, (double)t->lanes->span_ns);
    for (int i = 0; i < t->lanes->count; i++) /* the busiest lane is what one wants to see */
        if (t->lanes->lanes[i]->calls > t->lanes->lanes[t->lane]->calls)
            t->lane = i;
    if (t->view.target.at_ns <= 0)
        return;
    for (size_t i = 0; i < t->lanes->compiles.count; i++) {
        const struct compile_mark *m = &t->lanes->compiles.at[i];
        if (m->start_ns <= t->view.target.at_ns && m->end_ns >= t->view.target.at_ns && m->lane >= 0) {
            t->lane = m->lane;
            wide = (double)(m->end_ns - m->start_ns) * 4;
        }
    }
    window_set(t, at - wide / 2, at + wide / 2);
    t->column = column_at(t, at);
}

static bool detail_fits(const struct timeline *t, const struct detail_job *job)
{
    return job && job->lane == t->lane && job->columns == t->view.columns && job->from_ns == (int64_t)t->from && job->to_ns == (int64_t)t->to;
}

static void timeline_settle(struct view *view)
{
    struct timeline *t = (struct timeline *)view;
    struct work *work = view->tui->work;

    if (t->asking && work_done(work, &t->asking->job)) {
        if (t->asking->job.error || !t->asking->lanes) {
            free(t->failed);
            t->failed = strdup(t->asking->job.error ? t->asking->job.error : "cancelled");
            work_drop(work, t->asking);
        } else {
            work_drop(work, t->lanes);
            work_drop(work, t->detail);
            work_drop(work, t->detailing);
            t->lanes = t->asking;
            t->asking = NULL;
        }
    }
    if (t->lanes && t->lanes->count && !t->placed)
        place(t);
    if (t->lanes && t->lanes->count) {
        if (t->column >= view->columns)
            t->column = view->columns - 1;
        if (t->lane >= t->lanes->count)
            t->lane = t->lanes->count - 1;
        if (t->detailing && work_done(work, &t->detailing->job)) {
            work_drop(work, t->detail);
            t->detail = t->detailing;
            t->detailing = NULL;
        }
        if (!detail_fits(t, t->detail) && !detail_fits(t, t->detailing)) {
            work_drop(work, t->detailing);
            t->detailing = detail_ask(work, t->lanes, t->lane, (int64_t)t->from, (int64_t)t->to, view->columns);
            t->too_much = !t->detailing;
            if (t->too_much)
                work_drop(work, t->detail);
        }
    }
    view->busy = t->asking || t->detailing;
    view->note[0] = 0;
    if (t->asking && !view->tui->scripted) {
        snprintf(view->note, sizeof view->note, "reading: %d %%", job_percent(&t->asking->job));
    } else if (t->lanes) {
        char wide[TABLE_HUMAN];
        snprintf(view->note, sizeof view->note, "%s  + - zoom", table_duration(wide, (int64_t)(t->to - t->from)));
    }
}

/* ---- drawing --------------------------------------------------------------- */

/* What a column is about: sums of the buckets in it. */
struct sums {
    uint64_t hits, misses, eager;
    int depth;
    const struct compile_mark *compile;
    bool broke;
};

static struct sums column_sums(const struct timeline *t, int at, int column)
{
    const struct lane *lane = t->lanes->lanes[at];
    double span = (double)t->lanes->span_ns;
    int from = (int)((double)column_ns(t, column) / span * BUCKETS), to = (int)((double)column_ns(t, column + 1) / span * BUCKETS);
    struct sums sums = {0};

    for (int i = from < 0 ? 0 : from; i < BUCKETS && (i < to || i == from); i++) {
        sums.hits += lane->hits[i];
        sums.misses += lane->misses[i];
        sums.eager += lane->eager[i];
        if (lane->depth[i] > sums.depth)
            sums.depth = lane->depth[i];
    }
    return sums;
}

/* The longest compile of each column. */
static void compiles_find(const struct timeline *t, int at, const struct compile_mark **found, bool *broke)
{
    int columns = t->view.columns;

    for (size_t i = 0; i < t->lanes->compiles.count; i++) {
        const struct compile_mark *m = &t->lanes->compiles.at[i];
        double scale = columns / (t->to - t->from);
        int from, to;
        if (m->lane != at || (double)m->end_ns < t->from || (double)m->start_ns >= t->to)
            continue;
        from = (double)m->start_ns < t->from ? 0 : (int)(((double)m->start_ns - t->from) * scale);
        to = (double)m->end_ns >= t->to ? columns - 1 : (int)(((double)m->end_ns - t->from) * scale);
        for (int x = from; x <= to && x < columns; x++) {
            broke[x] = broke[x] || m->broke;
            if (!found[x] || found[x]->end_ns - found[x]->start_ns < m->end_ns - m->start_ns)
                found[x] = m;
        }
    }
}

static void lane_draw(struct timeline *t, struct screen *screen, int at, int y, int last)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct lane *lane = t->lanes->lanes[at];
    const struct compile_mark *compiles[SCREEN_MOST] = {0};
    bool broke[SCREEN_MOST] = {0}, chosen = at == t->lane;
    bool detailed = chosen && detail_fits(t, t->detail);
    int deepest = 1;
    char calls[TABLE_HUMAN], label[200];

    for (int i = 0; i < BUCKETS; i++)
        if (lane->depth[i] > deepest)
            deepest = lane->depth[i];
    snprintf(label, sizeof label, "%c%s  %s calls looked up", chosen ? '>' : ' ', lane->name ? lane->name : "?", table_count(calls, lane->calls));
    screen_put(screen, y, 0, t->view.columns, chosen ? STYLE_BOLD : STYLE_NORMAL, label);
    compiles_find(t, at, compiles, broke);
    for (int x = 0; x < t->view.columns && y + 1 <= last; x++) {
        struct sums sums = column_sums(t, at, x);
        int selected = chosen && x == t->column ? STYLE_SELECTED : 0, style = STYLE_NORMAL;
        const char *mark = " ";
        screen_put(screen, y + 1, x, 1, STYLE_DIM | selected, bars[sums.depth ? 1 + sums.depth * 7 / deepest : 0]);
        if (y + 2 > last)
            continue;
        if (detailed && t->detail->marks[x] == 'X')
            mark = "X", style = STYLE_ALARM;
        else if (compiles[x])
            mark = broke[x] ? "B" : "C", style = broke[x] ? STYLE_WARN : STYLE_ACCENT;
        else if (detailed && t->detail->marks[x])
            mark = t->detail->marks[x] == 'm' ? "m" : t->detail->marks[x] == 'e' ? "e" : "▪", style = t->detail->marks[x] == '.' ? STYLE_GOOD : STYLE_WARN;
        else if (!detailed && sums.misses)
            mark = "m", style = STYLE_ACCENT;
        else if (!detailed && sums.eager)
            mark = sums.eager > sums.hits ? "e" : "▒", style = STYLE_WARN;
        else if (!detailed && sums.hits)
            mark = "▪", style = STYLE_GOOD;
        screen_put(screen, y + 2, x, 1, style | selected, mark);
    }
}

static void detail_draw(struct timeline *t, struct screen *screen, int y, int last)
{
    if (t->too_much) {
        screen_put(screen, y, 1, t->view.columns - 2, STYLE_DIM, "too many calls to draw: + zooms in");
        return;
    }
    if (!detail_fits(t, t->detail)) {
        screen_put(screen, y, 1, t->view.columns - 2, STYLE_DIM, "…");
        return;
    }
    for (int depth = 0; depth < t->detail->depth && y + depth <= last; depth++)
        for (int x = 0; x < t->view.columns;) {
            const struct detail_cell *cell = &t->detail->cells[depth][x];
            int end = x + 1;
            if (!cell->code_id) {
                x++;
                continue;
            }
            while (end < t->view.columns && t->detail->cells[depth][end].frame_id == cell->frame_id)
                end++;
            bool here = t->column >= x && t->column < end;
            int style = (here ? STYLE_NORMAL : depth % 2 ? STYLE_ACCENT : STYLE_DIM) | STYLE_SELECTED;
            screen_fill(screen, y + depth, x, end - x, style);
            screen_put(screen, y + depth, x, 1, style, "│");
            if (end - x > 2)
                screen_put(screen, y + depth, x + 1, end - x - 1, style, detail_name(t->detail, cell->code_id));
            x = end;
        }
}

/* What is under the cursor, in words. */
static void foot_draw(struct timeline *t, struct screen *screen, int y)
{
    const struct compile_mark *compiles[SCREEN_MOST] = {0};
    bool broke[SCREEN_MOST] = {0};
    struct sums sums = column_sums(t, t->lane, t->column);
    char line[300], wide[TABLE_HUMAN], took[TABLE_HUMAN];
    size_t used;

    compiles_find(t, t->lane, compiles, broke);
    used = (size_t)snprintf(line, sizeof line, "%.6f s (a column is %s)", (double)column_ns(t, t->column) / 1e9,
                            table_duration(wide, (int64_t)((t->to - t->from) / t->view.columns)));
    if (compiles[t->column])
        used += (size_t)snprintf(line + used, sizeof line - used, "  compile, %s%s%s", table_duration(took, compiles[t->column]->end_ns - compiles[t->column]->start_ns),
                                 broke[t->column] ? ", graph broke" : "", compiles[t->column]->bad ? ", gave no code" : "");
    if (detail_fits(t, t->detail))
        snprintf(line + used, sizeof line - used, "  %u lookups", t->detail->lookups[t->column]);
    else
        snprintf(line + used, sizeof line - used, "  about here: %" PRIu64 " hits, %" PRIu64 " compiled, %" PRIu64 " eager", sums.hits, sums.misses, sums.eager);
    screen_put(screen, y, 0, t->view.columns, STYLE_NORMAL, line);
}

/* How many rows lane AT takes at row Y: the chosen one has its calls below it. */
static int lane_rows(const struct timeline *t, int at, int y, int last)
{
    int others = t->lanes->count - 1 - at, below = others * LANE_ROWS, left = last - y - LANE_ROWS, rows;

    if (at != t->lane)
        return LANE_ROWS;
    rows = left + 1 - (below < left / 2 ? below : left / 2);
    if (t->detail && detail_fits(t, t->detail) && t->detail->depth < rows)
        rows = t->detail->depth;
    if (rows < 1 || t->too_much)
        rows = 1;
    return LANE_ROWS + rows;
}

static void timeline_draw(struct view *view, struct screen *screen)
{
    struct timeline *t = (struct timeline *)view;
    int y = view->y, last = view->y + view->rows - 2;
    char from[64], to[64];

    if (t->failed && !t->lanes) {
        view_words(view, screen, STYLE_ALARM, t->failed);
        return;
    }
    if (!t->lanes || !t->lanes->count) {
        view_words(view, screen, STYLE_DIM, t->lanes ? "no thread was recorded" : "…");
        return;
    }
    snprintf(from, sizeof from, "%.6f s", t->from / 1e9);
    snprintf(to, sizeof to, "%.6f s", t->to / 1e9);
    screen_fill(screen, y, 0, view->columns, STYLE_HEAD);
    screen_put(screen, y, 0, view->columns, STYLE_HEAD, from);
    screen_put(screen, y, view->columns - (int)strlen(to), (int)strlen(to), STYLE_HEAD, to);
    y++;
    /* The chosen lane has to be in sight, and what is left of the screen is its. */
    int room = (last - y + 1) / LANE_ROWS;
    if (t->lane < t->first)
        t->first = t->lane;
    if (t->lane - t->first > (room - 1) / 2)
        t->first = t->lane - (room - 1) / 2;
    for (int at = t->first, rows; at < t->lanes->count && y <= last; at++, y += rows) {
        rows = lane_rows(t, at, y, last);
        lane_draw(t, screen, at, y, last);
        if (at == t->lane)
            detail_draw(t, screen, y + LANE_ROWS, y + rows - 1 < last ? y + rows - 1 : last);
    }
    foot_draw(t, screen, view->y + view->rows - 1);
}

/* ---- requests -------------------------------------------------------------- */

static void cursor_move(struct timeline *t, int by)
{
    double step = (t->to - t->from) / (t->view.columns > 0 ? t->view.columns : 1);
    int to = t->column + by;

    if (to < 0)
        window_set(t, t->from + to * step, t->to + to * step);
    else if (to >= t->view.columns)
        window_set(t, t->from + (to - t->view.columns + 1) * step, t->to + (to - t->view.columns + 1) * step);
    t->column = to < 0 ? 0 : to >= t->view.columns ? t->view.columns - 1 : to;
}

/* The lane that is drawn at row Y. */
static void lane_choose(struct timeline *t, int y)
{
    int last = t->view.y + t->view.rows - 2, top = t->view.y + 1;

    for (int at = t->first, rows; at < t->lanes->count && top <= last; at++, top += rows) {
        rows = lane_rows(t, at, top, last);
        if (y >= top && y < top + rows) {
            t->lane = at;
            return;
        }
    }
}

/* Deeper from what is under the cursor: its compile, else its lookups, else its innermost call. */
static void cursor_open(struct timeline *t)
{
    const struct compile_mark *compiles[SCREEN_MOST] = {0};
    bool broke[SCREEN_MOST] = {0};
    struct sums sums = column_sums(t, t->lane, t->column);
    bool detailed = detail_fits(t, t->detail);
    struct target target = {0};
    char where[200];

    compiles_find(t, t->lane, compiles, broke);
    if (compiles[t->column]) {
        target = target_make(VIEW_COMPILE, compiles[t->column]->id, NULL, NULL);
    } else if (detailed ? t->detail->lookups[t->column] > 0 : sums.hits + sums.misses + sums.eager > 0) {
        snprintf(where, sizeof where, "at >= %" PRId64 " AND at < %" PRId64 " AND thread = %" PRId64, column_ns(t, t->column), column_ns(t, t->column + 1),
                 t->lanes->lanes[t->lane]->thread_id);
        target = target_make(VIEW_LEDGER, 0, where, "this moment");
    } else if (detailed) {
        for (int depth = t->detail->depth; depth-- > 0 && !target.kind;)
            if (t->detail->cells[depth][t->column].code_id)
                target = target_make(VIEW_FUNCTION, t->detail->cells[depth][t->column].code_id, NULL, NULL);
    }
    if (target.kind)
        tui_go(t->view.tui, &target);
    else
        tui_say(t->view.tui, "nothing is here");
    target_free(&target);
}

static bool timeline_request(struct view *view, enum request request, const struct key *key)
{
    struct timeline *t = (struct timeline *)view;
    int page = view->columns / 2;

    if (request == REQUEST_CANCEL && t->asking) {
        work_cancel(view->tui->work, &t->asking->job);
        return true;
    }
    if (!t->lanes || !t->lanes->count)
        return false;
    switch (request) {
    case REQUEST_UP: t->lane -= t->lane > 0; return true;
    case REQUEST_DOWN: t->lane += t->lane + 1 < t->lanes->count; return true;
    case REQUEST_PREVIOUS_PART: t->lane = t->lane > 0 ? t->lane - 1 : t->lanes->count - 1; return true;
    case REQUEST_NEXT_PART: t->lane = (t->lane + 1) % t->lanes->count; return true;
    case REQUEST_LEFT: cursor_move(t, -1); return true;
    case REQUEST_RIGHT: cursor_move(t, 1); return true;
    case REQUEST_HALF_UP: cursor_move(t, -8); return true;
    case REQUEST_HALF_DOWN: cursor_move(t, 8); return true;
    case REQUEST_PAGE_UP: cursor_move(t, -t->column - page); return true;
    case REQUEST_PAGE_DOWN: cursor_move(t, view->columns - 1 - t->column + page); return true;
    case REQUEST_HOME: window_set(t, 0, t->to - t->from); t->column = 0; return true;
    case REQUEST_END: window_set(t, (double)t->lanes->span_ns - (t->to - t->from), (double)t->lanes->span_ns); t->column = view->columns - 1; return true;
    case REQUEST_ZOOM_IN: zoom(t, 0.5); return true;
    case REQUEST_ZOOM_OUT: zoom(t, 2); return true;
    case REQUEST_WHEEL_UP: zoom(t, 0.5); return true;
    case REQUEST_WHEEL_DOWN: zoom(t, 2); return true;
    case REQUEST_ZOOM_ALL: window_set(t, 0, (double)t->lanes->span_ns); return true;
    case REQUEST_CLICK: /* of a double one, the first press chose the lane, which may stand elsewhere since */
        lane_choose(t, key->y); /* fall through */
    case REQUEST_DOUBLE:
        t->column = key->x < view->columns && key->x >= 0 ? key->x : t->column;
        if (request == REQUEST_DOUBLE)
            cursor_open(t);
        return true;
    case REQUEST_OPEN: cursor_open(t); return true;
    case REQUEST_SEARCH_NEXT:
    case REQUEST_SEARCH_PREVIOUS: { /* to the next compile */
        const struct compile_mark *to = NULL;
        int64_t here = column_ns(t, t->column), next = column_ns(t, t->column + 1);
        for (size_t i = 0; i < t->lanes->compiles.count; i++) {
            const struct compile_mark *m = &t->lanes->compiles.at[i];
            if (m->lane == t->lane && (request == REQUEST_SEARCH_NEXT ? m->start_ns >= next && !to : m->start_ns < here))
                to = m;
        }
        if (to) {
            double wide = t->to - t->from, at = (double)to->start_ns;
            if (at < t->from || at >= t->to)
                window_set(t, at - wide / 2, at + wide / 2);
            t->column = column_at(t, at);
        } else {
            tui_say(view->tui, "no compile there on this lane");
        }
        return true;
    }
    default: return false;
    }
}

static void timeline_subject(struct view *view, struct target *subject)
{
    struct timeline *t = (struct timeline *)view;

    if (t->lanes)
        subject->at_ns = column_ns(t, t->column);
}

static void timeline_refresh(struct view *view)
{
    struct timeline *t = (struct timeline *)view;

    if (!t->asking)
        t->asking = lanes_ask(view->tui->work);
}

static bool timeline_open(struct view *view)
{
    timeline_refresh(view);
    return true;
}

static void timeline_close(struct view *view)
{
    struct timeline *t = (struct timeline *)view;
    struct work *work = view->tui->work;

    work_drop(work, t->detail);
    work_drop(work, t->detailing);
    work_drop(work, t->asking);
    work_drop(work, t->lanes);
    free(t->failed);
}

const struct view_ops view_timeline = {
    .name = "timeline", .summary = "threads and processes as lanes; + - zoom, n N to the next compile", .size = sizeof(struct timeline),
    .open = timeline_open, .close = timeline_close, .settle = timeline_settle, .draw = timeline_draw, .request = timeline_request,
    .refresh = timeline_refresh, .subject = timeline_subject,
};

/* tui/views/timeline.c -- the view `timeline`: a lane for each thread, with its lookups,
 * compiles and calls over time.
 *
 * tui/views/lanes.c reads what the view shows. This is a screen, with an explanation of each
 * line:
 *
 *     0.000 s ........................ 1.2 s   the interval that is shown;
 *     MainThread [4711]                        the name of a lane;
 *      ▁▁▃▅▅▅▂                                 how deep the stack is;
 *      ..CCmm..X                               C compile, B its graph broke, m miss, e eager,
 *                                              X limit or error, . hits (left out if the thread
 *                                              had neither compiles nor lookups);
 *      │main                                   below the chosen lane its calls, or one call in
 *                                              each column if there are too many to draw;
 *     ▁█ stack depth  C compile                the legend. */
#include <inttypes.h>
#include <limits.h>

#include "lib/table.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "tui/lead.h"
#include "tui/views/lanes.h"

enum {
    LANE_ROWS = 3,
    ZOOM_LEAST_NS = 20,
    LEGEND_ROWS = 14, /* a view with fewer rows has no legend */
};

struct timeline {
    struct view view;
    /* owned, or NULL: the two jobs that run, and then the two jobs whose results are shown */
    struct lanes_job *asking;
    struct detail_job *detailing;
    struct lanes_job *lanes;
    struct detail_job *detail;
    double from, to; /* the interval that is shown, in ns */
    double at;       /* the moment of the cursor, in ns */
    /* index of the first lane on the screen; view.at is the chosen one of view.count lanes */
    int first;
    bool placed;
    bool sought; /* move the window so that the cursor is visible */
    bool near;   /* zoom in on the cursor, too */
    /* only lanes whose name contains this text are shown; or NULL */
    const char *filter;
};

static int count_lanes(const struct timeline *t)
{
    return t->lanes ? (int)t->lanes->lanes.count : 0;
}

static struct lane *lane_with_index(const struct timeline *t, int at)
{
    return &t->lanes->lanes.at[at];
}

static int index_of_chosen_lane(const struct timeline *t)
{
    return (int)t->view.at;
}

static double length_of_window(const struct timeline *t)
{
    return t->lanes ? (double)t->lanes->span_ns : 1;
}

/* ---- the window: the interval of time that is shown ---------------------- */

static double time_per_column(const struct timeline *t)
{
    return (t->to - t->from) / (t->view.columns > 0 ? t->view.columns : 1);
}

static int64_t time_of_column(const struct timeline *t, int column)
{
    return (int64_t)(t->from + time_per_column(t) * column);
}

/* Is the lane AT shown? The chosen lane always is. Another lane is if something happened on it in
 * the window, and if its name fits the filter. */
static bool is_lane_visible(const struct timeline *t, int at)
{
    const struct lane *lane = lane_with_index(t, at);
    double wide = length_of_window(t) / BUCKETS;
    double from = (lane->first + 0.0) * wide;
    double to = (lane->last + 1.0) * wide;

    if (at == index_of_chosen_lane(t))
        return true;
    if (from > t->to || to < t->from)
        return false;
    return !t->filter || (lane->name && strcasestr(lane->name, t->filter));
}

/* Return the next lane that is shown above (BY is -1) or below (1) the chosen one. Returns the
 * chosen lane if there is none. */
static int find_next_lane(const struct timeline *t, int by)
{
    for (int at = index_of_chosen_lane(t) + by; at >= 0 && at < count_lanes(t); at += by)
        if (is_lane_visible(t, at))
            return at;
    return index_of_chosen_lane(t);
}

/* Return the column of the moment AT. If it is outside of the window, return the nearest column. */
static int column_of_time(const struct timeline *t, double at)
{
    double column = (at - t->from) / time_per_column(t);

    if (!(column >= 0))
        return 0;
    return column >= t->view.columns ? t->view.columns - 1 : (int)column;
}

/* Return the column of the cursor. If the cursor is at the left edge of a column, rounding may put
 * it slightly to the left of it; a small addition corrects that. */
static int column_of_cursor(const struct timeline *t)
{
    return column_of_time(t, t->at + time_per_column(t) / 1024);
}

static void put_cursor_at_column(struct timeline *t, int column)
{
    t->at = t->from + time_per_column(t) * column;
}

static void set_window(struct timeline *t, double from, double to)
{
    double span = length_of_window(t);
    double wide = to - from;

    if (wide < ZOOM_LEAST_NS)
        wide = ZOOM_LEAST_NS;
    if (wide > span)
        wide = span;
    if (from > span - wide)
        from = span - wide;
    t->from = from < 0 ? 0 : from;
    t->to = t->from + wide;
}

static void move_window(struct timeline *t, double by)
{
    set_window(t, t->from + by, t->to + by);
}

static void zoom_window(struct timeline *t, double by)
{
    double before = (t->at - t->from) * by;
    double after = (t->to - t->at) * by;

    set_window(t, t->at - before, t->at + after);
}

/* Return the lane that has most lookups. */
static int find_busiest_lane(const struct timeline *t)
{
    int busiest = index_of_chosen_lane(t);

    for (int i = 0; i < count_lanes(t); i++)
        if (lane_with_index(t, i)->calls > lane_with_index(t, busiest)->calls)
            busiest = i;
    return busiest;
}

/* Return the id of the thread that the view's target is about. */
static int64_t thread_of_target(const struct timeline *t)
{
    int64_t thread_id = t->view.target.id;

    if (t->view.target.about != VIEW_CALL)
        return thread_id;
    db_rows(row, t->view.tui->db,
            "SELECT thread_id FROM frame WHERE frame_id = ?1 UNION ALL SELECT thread_id FROM "
            "lookup WHERE lookup_id = -?1",
            thread_id)
    {
        thread_id = query_integer(row, 0);
    }
    return thread_id;
}

/* Choose the lane of the thread that the view's target is about, or the busiest lane if it
 * is about none. */
static void choose_lane_of_target(struct timeline *t)
{
    enum view_kind about = t->view.target.about;
    int64_t thread_id = thread_of_target(t);

    t->view.at = find_busiest_lane(t);
    if (about != VIEW_NONE && about != VIEW_CALL)
        return;
    for (int i = 0; i < count_lanes(t); i++)
        if (lane_with_index(t, i)->thread_id == thread_id)
            t->view.at = i;
}

/* Set the window when the view is opened: around the moment of the target, or the whole recording.
 * If a compile was running at that moment, choose its lane. */
static void set_window_of_target(struct timeline *t)
{
    int64_t at_ns = t->view.target.at_ns;
    double at = (double)at_ns;
    double wide = length_of_window(t) / 40;

    t->placed = true;
    set_window(t, 0, length_of_window(t));
    choose_lane_of_target(t);
    if (at_ns <= 0 || t->sought)
        return;
    list_each(m, &t->lanes->compiles) {
        bool during = m->start_ns <= at_ns && m->end_ns >= at_ns;
        if (during && m->lane >= 0) {
            t->view.at = m->lane;
            wide = (double)(m->end_ns - m->start_ns) * 4;
        }
    }
    set_window(t, at - wide / 2, at + wide / 2);
    t->at = at;
}

/* Move the cursor to the moment AT_NS. The window moves only if the moment is not visible. If NEAR,
 * it zooms in on the moment. */
static void timeline_show_moment(struct view *view, int64_t at_ns, bool near)
{
    struct timeline *t = (struct timeline *)view;

    t->at = (double)at_ns;
    t->near = near;
    t->sought = true; /* move_to_wanted_moment() moves the window when the lanes have been read */
}

static void move_to_wanted_moment(struct timeline *t)
{
    double shown = t->to - t->from;
    double wide = t->near ? length_of_window(t) / 40 : shown;
    bool in_sight = t->at >= t->from && t->at < t->to;

    if (wide > shown)
        wide = shown;
    if (t->near || !in_sight)
        set_window(t, t->at - wide / 2, t->at + wide / 2);
    t->near = false;
    t->sought = false;
    if (t->at > t->to)
        t->at = t->to;
}

static bool does_detail_fit_window(const struct timeline *t, const struct detail_job *job)
{
    if (!job || job->lane != index_of_chosen_lane(t) || job->columns != t->view.columns)
        return false;
    return job->from_ns == (int64_t)t->from && job->to_ns == (int64_t)t->to;
}

/* Return the calls of the chosen lane in the window. Returns NULL if they have not been read. */
static const struct detail_job *detail_of_window(const struct timeline *t)
{
    return does_detail_fit_window(t, t->detail) ? t->detail : NULL;
}

/* Return the single lookups of the chosen lane in the window. Returns NULL if they have
 * not been read. */
static const struct detail_job *lookups_of_window(const struct timeline *t)
{
    const struct detail_job *detail = detail_of_window(t);

    return detail && !detail->sampled ? detail : NULL;
}

/* Return how many rows of the screen the calls of DETAIL take. */
static int count_detail_rows(const struct detail_job *detail)
{
    return detail ? detail->depth : 0;
}

static void take_finished_lanes(struct timeline *t)
{
    struct work *work = t->view.tui->work;

    if (!view_take(&t->view, t->asking, t->lanes))
        return;
    work_drop(work, t->detail);
    work_drop(work, t->detailing);
    t->asking = has_more_frames(&t->lanes->job) ? lanes_start(work, false) : NULL;
    t->view.count = t->lanes->lanes.count;
    view_choose(&t->view, t->view.at);
}

/* Start reading the calls of the chosen lane in the window, unless they have been read. */
static void start_reading_detail(struct timeline *t)
{
    struct work *work = t->view.tui->work;

    view_take(&t->view, t->detailing, t->detail);
    if (does_detail_fit_window(t, t->detail) || does_detail_fit_window(t, t->detailing))
        return;
    work_drop(work, t->detailing);
    t->detailing = detail_start(work, t->lanes, index_of_chosen_lane(t), (int64_t)t->from,
                                (int64_t)t->to, t->view.columns);
}

/* Print how many lanes are shown into MADE: "filter: main 2 of 5 lanes". Prints
 * nothing if all are. */
static void print_number_of_lanes(const struct timeline *t, char *made, size_t room)
{
    const char *format = t->filter ? "filter: %.30s  %d of %d lanes  " : "%.0s%d of %d lanes  ";
    int shown = 0;

    for (int i = 0; i < count_lanes(t); i++)
        shown += is_lane_visible(t, i);
    made[0] = 0;
    if (shown < count_lanes(t))
        snprintf(made, room, format, t->filter ? t->filter : "", shown, count_lanes(t));
}

static void make_view_note(struct timeline *t)
{
    struct view *view = &t->view;
    char wide[TABLE_HUMAN], lanes[80];

    view->note[0] = 0;
    if (t->asking && !view->tui->scripted) {
        snprintf(view->note, sizeof view->note, "reading: %d %%", job_percent(&t->asking->job));
    } else if (t->lanes) {
        print_number_of_lanes(t, lanes, sizeof lanes);
        table_duration(wide, (int64_t)(t->to - t->from));
        snprintf(view->note, sizeof view->note, "%s%s%s",
                 t->lanes->has_unstored ? DOUBTS_UNSTORED "  " : "", lanes, wide);
    }
}

static void timeline_update(struct view *view)
{
    struct timeline *t = (struct timeline *)view;

    take_finished_lanes(t);
    if (count_lanes(t)) {
        if (!t->placed)
            set_window_of_target(t);
        if (t->sought)
            move_to_wanted_moment(t);
        start_reading_detail(t);
    }
    make_view_note(t);
}

/* Is the view high enough for a legend? */
static bool has_room_for_legend(const struct timeline *t)
{
    return t->view.rows >= LEGEND_ROWS;
}

/* Return the last row of the screen that lanes can take. */
static int get_last_lane_row(const struct timeline *t)
{
    return t->view.y + t->view.rows - (has_room_for_legend(t) ? 3 : 2);
}

/* ---- the lookups and compiles in a column -------------------------------- */

/* Return the bucket of the lookups in which COLUMN of the screen begins. */
static int bucket_of_column(const struct timeline *t, int column)
{
    return (int)((double)time_of_column(t, column) / length_of_window(t) * BUCKETS);
}

/* Return the sums over the buckets of the lane AT that are in COLUMN. */
static struct bucket sum_buckets_of_column(const struct timeline *t, int at, int column)
{
    const struct bucket *buckets = lane_with_index(t, at)->buckets;
    int from = bucket_of_column(t, column);
    int to = bucket_of_column(t, column + 1);
    struct bucket sums = {0};

    if (to <= from)
        to = from + 1;
    if (from < 0)
        from = 0;
    for (int i = from; i < BUCKETS && i < to; i++) {
        const struct bucket *bucket = &buckets[i];
        sums.hits += bucket->hits;
        sums.misses += bucket->misses;
        sums.eager += bucket->eager;
        if (bucket->depth > sums.depth)
            sums.depth = bucket->depth;
    }
    return sums;
}

/* For each column of a lane: the longest compile, and whether some compile had a graph break. */
struct compiles {
    const struct compile_mark *longest[SCREEN_MOST];
    bool broke[SCREEN_MOST];
};

static int64_t duration_of_compile(const struct compile_mark *m)
{
    return m->end_ns - m->start_ns;
}

/* Add a compile to the columns from FROM to TO. */
static void add_compile_to_columns(struct compiles *found, const struct compile_mark *m, int from,
                                   int to)
{
    for (int x = from; x <= to; x++) {
        const struct compile_mark *longest = found->longest[x];
        if (m->broke)
            found->broke[x] = true;
        if (!longest || duration_of_compile(longest) < duration_of_compile(m))
            found->longest[x] = m;
    }
}

static struct compiles find_compiles_of_lane(const struct timeline *t, int at)
{
    struct compiles found = {0};

    list_each(m, &t->lanes->compiles) {
        double start = (double)m->start_ns;
        double end = (double)m->end_ns;
        if (m->lane == at && end >= t->from && start < t->to)
            add_compile_to_columns(&found, m, column_of_time(t, start), column_of_time(t, end));
    }
    return found;
}

/* ---- drawing the lanes --------------------------------------------------- */

/* Return the mark for the lookups that SUMS counts, or 0 if there are none. */
static char mark_of_sums(const struct bucket *sums)
{
    if (sums->misses)
        return 'm';
    if (sums->eager > sums->hits)
        return 'e';
    if (sums->eager)
        return 'h';
    return sums->hits ? '.' : 0;
}

/* The marks in the line of lookups and compiles, the most serious first. */
/* clang-format off */
static const struct lane_mark {
    char mark;
    const char *shown;
    int style;
    const char *words; /* what the legend says about the mark, or NULL */
} lane_marks[] = {
    {'X', "X", STYLE_ALARM, " limit"},
    {'B', "B", STYLE_WARN, " broke"},
    {'C', "C", STYLE_ACCENT, " compile"},
    {'m', "m", STYLE_ACCENT, " miss"},
    {'e', "e", STYLE_WARN, " eager"},
    {'h', "▒", STYLE_WARN, " some eager"},
    {'.', "▪", STYLE_GOOD, " hits"},
    {0, " ", STYLE_NORMAL, NULL},
};
/* clang-format on */
enum { MARKS = array_count(lane_marks) };

/* Return the mark of column X: that of an error or a limit, otherwise of a compile, otherwise of
 * the lookups. DETAILED: single lookups have been read; if not, SUMS has their counts. */
static const char *mark_of_column(const struct timeline *t, const struct compiles *compiles,
                                  const struct bucket *sums, bool detailed, int x, int *style)
{
    char mark = detailed ? t->detail->marks[x] : mark_of_sums(sums);
    int at = 0;

    if (mark != 'X' && compiles->longest[x])
        mark = compiles->broke[x] ? 'B' : 'C';
    while (lane_marks[at].mark != mark)
        at++;
    *style = lane_marks[at].style;
    return lane_marks[at].shown;
}

/* Draw the label of the lane AT: ">MainThread [4711] 12 calls looked up". */
static void draw_lane_label(const struct timeline *t, struct screen *screen, int at, int y)
{
    const struct lane *lane = lane_with_index(t, at);
    const char *format = lane->calls ? "%c%s  %s calls looked up" : "%c%s";
    bool chosen = at == index_of_chosen_lane(t);
    char calls[TABLE_HUMAN], label[200];

    table_count(calls, lane->calls);
    snprintf(label, sizeof label, format, chosen ? '>' : ' ', lane->name ? lane->name : "?", calls);
    screen_put(screen, y, 0, t->view.columns, chosen ? STYLE_BOLD : STYLE_NORMAL, label);
}

static void draw_lane(struct timeline *t, struct screen *screen, int at, int y, int last)
{
    double deepest = lane_with_index(t, at)->deepest;
    struct compiles compiles = find_compiles_of_lane(t, at);
    bool chosen = at == index_of_chosen_lane(t);
    bool detailed = chosen && lookups_of_window(t);
    int column = chosen ? column_of_cursor(t) : -1;

    draw_lane_label(t, screen, at, y);
    for (int x = 0; x < t->view.columns && y + 1 <= last; x++) {
        struct bucket sums = sum_buckets_of_column(t, at, x);
        double depth = sums.depth ? sums.depth / deepest : 0;
        int selected = x == column ? STYLE_SELECTED : 0;
        int style;
        const char *mark = mark_of_column(t, &compiles, &sums, detailed, x, &style);
        screen_put(screen, y + 1, x, 1, STYLE_DIM | selected, spark_choose_glyph(depth, " "));
        if (lane_with_index(t, at)->marked && y + 2 <= last)
            screen_put(screen, y + 2, x, 1, style | selected, mark);
    }
}

/* Draw a box for the call at the depth DEPTH of the stack, in row Y from column X to END. */
static void draw_call_box(const struct timeline *t, struct screen *screen, int depth, int y, int x,
                          int end)
{
    const struct detail_cell *cell = &t->detail->cells[depth][x];
    int column = column_of_cursor(t);
    bool here = column >= x && column < end;
    int style = depth % 2 ? STYLE_ACCENT : STYLE_DIM;

    if (here)
        style = STYLE_NORMAL;
    style |= STYLE_SELECTED;
    screen_fill(screen, y, x, end - x, style);
    screen_put(screen, y, x, 1, style, "│");
    if (end - x > 2) {
        const char *name = name_find_by_id(&t->lanes->names, cell->code_id);
        screen_put(screen, y, x + 1, end - x - 1, style, name);
    }
}

/* Do columns X and X + 1 show one box at DEPTH? They do for the same call, or for two samples of
 * one function that have the same callers. */
static bool do_columns_show_one_box(const struct detail_job *detail, int depth, int x)
{
    for (int above = depth; above >= 0; above--) {
        const struct detail_cell *left = &detail->cells[above][x];
        const struct detail_cell *right = left + 1;
        bool alike = detail->sampled && right->frame_id && left->code_id == right->code_id;
        if (left->frame_id == right->frame_id)
            return true;
        if (!alike)
            return false;
    }
    return true;
}

/* Draw the calls at the depth DEPTH of the stack in row Y. */
static void draw_calls_at_depth(const struct timeline *t, struct screen *screen, int depth, int y)
{
    const struct detail_cell *cells = t->detail->cells[depth];

    for (int x = 0, end; x < t->view.columns; x = end) {
        end = x + 1;
        if (!cells[x].frame_id)
            continue;
        while (end < t->view.columns && do_columns_show_one_box(t->detail, depth, end - 1))
            end++;
        draw_call_box(t, screen, depth, y, x, end);
    }
}

/* Draw the calls of the chosen lane in the rows from Y to LAST, or why there are none. */
static void draw_calls_of_lane(const struct timeline *t, struct screen *screen, int y, int last)
{
    const struct detail_job *detail = detail_of_window(t);
    int rows = last - y + 1;
    int deeper, bytes;
    char words[40];

    if (!detail) {
        screen_put(screen, y, 1, t->view.columns - 2, STYLE_DIM, "…");
        return;
    }
    if (rows > detail->depth)
        rows = detail->depth;
    for (int depth = 0; depth < rows; depth++)
        draw_calls_at_depth(t, screen, depth, y + depth);
    deeper = detail->stack[column_of_cursor(t)] - rows;
    bytes = snprintf(words, sizeof words, " +%d deeper: v ", deeper);
    if (deeper > 0)
        screen_put(screen, last, t->view.columns - bytes, bytes, STYLE_HEAD, words);
}

/* Write a description of the compile under the cursor to OUT. */
static void describe_compile(const struct compile_mark *compile, bool broke, FILE *out)
{
    char took[TABLE_HUMAN];

    if (!compile)
        return;
    fprintf(out, "  compile, %s", table_duration(took, duration_of_compile(compile)));
    if (broke)
        fputs(", graph broke", out);
    if (compile->bad)
        fputs(", gave no code", out);
}

/* Write a description of the lookups under the cursor to OUT. */
static void describe_lookups(const struct timeline *t, int column, FILE *out)
{
    const struct detail_job *detail = lookups_of_window(t);

    if (!lane_with_index(t, index_of_chosen_lane(t))->calls)
        return;
    if (detail) {
        unsigned count = detail->lookups_at[column];
        fprintf(out, "  %u lookup%s", count, count == 1 ? "" : "s");
    } else {
        struct bucket sums = sum_buckets_of_column(t, index_of_chosen_lane(t), column);
        fprintf(out, "  about here: %u hits, %u compiled, %u eager", sums.hits, sums.misses,
                sums.eager);
    }
}

/* Draw the names of the calls under the cursor in row Y from column X on, the innermost first. */
static void draw_stack_under_cursor(const struct timeline *t, struct screen *screen, int y, int x)
{
    const struct detail_job *detail = detail_of_window(t);
    int column = column_of_cursor(t);
    int wide = t->view.columns;
    const char *before = "  ";

    for (int depth = count_detail_rows(detail); depth-- > 0;) {
        const struct detail_cell *cell = &detail->cells[depth][column];
        const char *name;
        if (!cell->frame_id)
            continue;
        name = name_find_by_id(&t->lanes->names, cell->code_id);
        x += screen_put(screen, y, x, wide - x, STYLE_DIM, before);
        x += screen_put(screen, y, x, wide - x, STYLE_BOLD, name);
        before = " < ";
    }
}

/* Draw the last line: the moment under the cursor, and what happened then. */
static void draw_last_line(struct timeline *t, struct screen *screen, int y)
{
    struct compiles compiles = find_compiles_of_lane(t, index_of_chosen_lane(t));
    int column = column_of_cursor(t);
    char line[300] = "";
    char wide[TABLE_HUMAN];
    FILE *out = fmemopen(line, sizeof line - 1, "w");
    int used;

    table_duration(wide, (int64_t)time_per_column(t));
    fprintf(out, "%.6f s (a column is %s)", t->at / 1e9, wide);
    describe_compile(compiles.longest[column], compiles.broke[column], out);
    describe_lookups(t, column, out);
    fclose(out);
    used = screen_put(screen, y, 0, t->view.columns, STYLE_NORMAL, line);
    draw_stack_under_cursor(t, screen, y, used);
}

/* Return how many rows the lane AT takes without its calls. */
static int count_rows_without_calls(const struct timeline *t, int at)
{
    return lane_with_index(t, at)->marked ? LANE_ROWS : LANE_ROWS - 1;
}

/* Return how many rows the lane AT takes if it begins in row Y. The chosen lane has its
 * calls below it. */
static int count_rows_of_lane(const struct timeline *t, int at, int y, int last)
{
    const struct detail_job *detail = detail_of_window(t);
    int left = last - y - count_rows_without_calls(t, at);
    int below = 0;
    int rows;

    if (at != index_of_chosen_lane(t))
        return is_lane_visible(t, at) ? count_rows_without_calls(t, at) : 0;
    for (int other = at + 1; other < count_lanes(t); other++)
        if (is_lane_visible(t, other))
            below += count_rows_without_calls(t, other);
    if (below > left / 2)
        below = left / 2;
    rows = left + 1 - below;
    if (detail && detail->depth < rows)
        rows = detail->depth;
    if (rows < 1)
        rows = 1;
    return count_rows_without_calls(t, at) + rows;
}

/* Draw the line above the lanes: at which moments the window begins and ends. */
static void draw_window_bounds(const struct timeline *t, struct screen *screen)
{
    const struct view *view = &t->view;
    const struct detail_job *detail = detail_of_window(t);
    bool sampled = detail && detail->sampled;
    const char *words = sampled ? "one call a column; + for each" : "";
    char from[64], to[64];
    int middle;
    int bytes = snprintf(to, sizeof to, "%.6f s", t->to / 1e9);

    snprintf(from, sizeof from, "%.6f s", t->from / 1e9);
    screen_fill(screen, view->y, 0, view->columns, STYLE_HEAD);
    screen_put(screen, view->y, 0, view->columns, STYLE_HEAD, from);
    middle = (view->columns - (int)strlen(words)) / 2;
    screen_put(screen, view->y, middle, view->columns, STYLE_HEAD, words);
    screen_put(screen, view->y, view->columns - bytes, bytes, STYLE_HEAD, to);
}

/* Draw the legend in row Y: what the marks in the lanes mean. */
static void draw_legend(const struct timeline *t, struct screen *screen, int y)
{
    const char *words;
    bool marked = false;
    int left, x;

    for (int at = 0; at < count_lanes(t); at++)
        marked = marked || lane_with_index(t, at)->marked;
    words = marked ? "▁█ depth" : "▁█ depth  │ calls below the chosen lane";
    x = screen_put(screen, y, 0, t->view.columns, STYLE_DIM, words);
    for (size_t i = 0; marked && i < MARKS; i++) {
        const struct lane_mark *mark = &lane_marks[i];
        if (!mark->words)
            continue;
        x += 2; /* a gap */
        left = t->view.columns - x;
        if (left < (int)strlen(mark->words))
            break;
        x += screen_put(screen, y, x, left, mark->style, mark->shown);
        x += screen_put(screen, y, x, left, STYLE_DIM, mark->words);
    }
}

/* Return the first lane to draw, if there is room for ROOM lanes, so that the chosen lane is in
 * the upper half. */
static int find_first_lane_to_draw(const struct timeline *t, int room)
{
    int first = t->first;
    int above = 0;

    if (index_of_chosen_lane(t) < first)
        return index_of_chosen_lane(t);
    for (int at = index_of_chosen_lane(t); at > first; at--) {
        if (is_lane_visible(t, at - 1))
            above++;
        if (above > (room - 1) / 2)
            return at;
    }
    return first;
}

static void timeline_draw(struct view *view, struct screen *screen)
{
    struct timeline *t = (struct timeline *)view;
    int y = view->y + 1;
    int last = get_last_lane_row(t);

    if (view_draw_empty(view, screen, t->lanes))
        return;
    if (!count_lanes(t)) {
        view_draw_words(view, screen, STYLE_DIM, "no thread was recorded");
        return;
    }
    draw_window_bounds(t, screen);
    t->first = find_first_lane_to_draw(t, (last - y + 1) / LANE_ROWS);
    for (int at = t->first; at < count_lanes(t) && y <= last; at++) {
        int rows = count_rows_of_lane(t, at, y, last);
        if (rows)
            draw_lane(t, screen, at, y, last);
        y += rows;
        if (at == index_of_chosen_lane(t))
            draw_calls_of_lane(t, screen, y - rows + count_rows_without_calls(t, at),
                               y - 1 < last ? y - 1 : last);
    }
    if (has_room_for_legend(t))
        draw_legend(t, screen, view->y + view->rows - 2);
    draw_last_line(t, screen, view->y + view->rows - 1);
}

/* ---- moving, zooming, opening -------------------------------------------- */

/* Move the cursor by BY columns. At an edge of the screen the window moves instead. */
static void move_cursor(struct timeline *t, int by)
{
    int to = column_of_cursor(t) + by;
    int edge = to < 0 ? 0 : t->view.columns - 1;

    if (to < 0 || to > edge) {
        move_window(t, (to - edge) * time_per_column(t));
        to = edge;
    }
    put_cursor_at_column(t, to);
}

/* Choose the lane that is drawn in row Y. Returns false if it is chosen already, or if
 * there is none. */
static bool choose_lane_at_row(struct timeline *t, int y)
{
    int last = get_last_lane_row(t);
    int top = t->view.y + 1;

    for (int at = t->first; at < count_lanes(t) && top <= last; at++) {
        int end = top + count_rows_of_lane(t, at, top, last);
        bool here = y >= top && y < end;
        if (here && at != index_of_chosen_lane(t)) {
            t->view.at = at;
            return true;
        }
        top = end;
    }
    return false;
}

/* Return the id of the innermost call under the cursor, or 0 if no call is drawn there. */
static int64_t find_frame_under_cursor(const struct timeline *t)
{
    const struct detail_job *detail = detail_of_window(t);
    int column = column_of_cursor(t);

    for (int depth = count_detail_rows(detail); depth-- > 0;) {
        int64_t frame_id = detail->cells[depth][column].frame_id;
        if (frame_id)
            return frame_id;
    }
    return 0;
}

static bool timeline_find_source_place(struct view *view, const char **file, int64_t *line)
{
    struct timeline *t = (struct timeline *)view;

    struct target call = {.kind = VIEW_CALL, .id = count_lanes(t) ? find_frame_under_cursor(t) : 0};

    return count_lanes(t) && view_find_source(view, &call, file, line);
}

/* Were there lookups in COLUMN of the chosen lane? */
static bool has_lookups_in_column(const struct timeline *t, int column)
{
    const struct detail_job *detail = lookups_of_window(t);
    struct bucket sums;

    if (detail)
        return detail->lookups_at[column] > 0;
    sums = sum_buckets_of_column(t, index_of_chosen_lane(t), column);
    return sums.hits + sums.misses + sums.eager > 0;
}

/* Return a target that shows the lookups of the chosen lane in COLUMN. Its
 * condition is in ARENA. */
static struct target target_of_lookups(const struct timeline *t, int column, struct arena *arena)
{
    const char *where =
        arena_print(arena, "at >= %" PRId64 " AND at < %" PRId64 " AND thread = %" PRId64,
                    time_of_column(t, column), time_of_column(t, column + 1),
                    lane_with_index(t, index_of_chosen_lane(t))->thread_id);

    return (struct target){.kind = VIEW_LEDGER, .title = "this moment", .where = where};
}

/* Set TARGET to what is under the cursor: a compile, otherwise lookups, otherwise the
 * innermost call. */
static void timeline_get_target(struct view *view, struct arena *arena, struct target *target)
{
    struct timeline *t = (struct timeline *)view;
    const struct compile_mark *compile;
    int column = column_of_cursor(t);
    int64_t frame_id;

    if (!count_lanes(t) || t->sought)
        return;
    *target = (struct target){.kind = VIEW_CALL,
                              .id = lane_with_index(t, index_of_chosen_lane(t))->thread_id,
                              .at_ns = (int64_t)t->at,
                              .about = VIEW_TIMELINE};
    if (view->tui->split) /* on a split screen the other half shows the whole stack at the moment */
        return;
    compile = find_compiles_of_lane(t, index_of_chosen_lane(t)).longest[column];
    /* the longest call in the column, which perhaps did not run at the exact moment */
    frame_id = find_frame_under_cursor(t);
    if (compile)
        *target = (struct target){.kind = VIEW_COMPILE, .id = compile->id};
    else if (has_lookups_in_column(t, column))
        *target = target_of_lookups(t, column, arena);
    else if (frame_id)
        *target = (struct target){.kind = VIEW_CALL, .id = frame_id};
}

/* Return the first compile of the chosen lane after the cursor. If not NEXT, return the last one
 * before it. Returns NULL if there is none. */
static const struct compile_mark *find_next_compile(const struct timeline *t, bool next)
{
    int column = column_of_cursor(t);
    int64_t here = time_of_column(t, column);
    int64_t after = time_of_column(t, column + 1);
    const struct compile_mark *last = NULL;

    list_each(m, &t->lanes->compiles) {
        if (m->lane != index_of_chosen_lane(t))
            continue;
        if (next && m->start_ns >= after)
            return m;
        if (!next && m->start_ns < here)
            last = m;
    }
    return last;
}

/* Move the cursor to the next compile of the chosen lane or, if not NEXT, to the one before. */
static void move_to_next_compile(struct timeline *t, bool next)
{
    const struct compile_mark *compile = find_next_compile(t, next);
    double to;

    if (!compile) {
        tui_say(t->view.tui, "no compile there on this lane");
        return;
    }
    to = (double)compile->start_ns;
    if (to < t->from || to >= t->to)
        move_window(t, to - (t->from + t->to) / 2);
    t->at = to;
}

static bool timeline_handle_request(struct view *view, enum request request, const struct key *key)
{
    struct timeline *t = (struct timeline *)view;
    int page = view->columns / 2;

    if (!count_lanes(t))
        return false;
    switch (request) {
    case REQUEST_UP:
    case REQUEST_PREVIOUS_PART:
        t->view.at = find_next_lane(t, -1);
        break;
    case REQUEST_DOWN:
    case REQUEST_NEXT_PART:
        t->view.at = find_next_lane(t, 1);
        break;
    case REQUEST_LEFT:
        move_cursor(t, -1);
        break;
    case REQUEST_RIGHT:
        move_cursor(t, 1);
        break;
    case REQUEST_HALF_UP:
        move_cursor(t, -8);
        break;
    case REQUEST_HALF_DOWN:
        move_cursor(t, 8);
        break;
    case REQUEST_PAGE_UP:
        move_cursor(t, -column_of_cursor(t) - page);
        break;
    case REQUEST_PAGE_DOWN:
        move_cursor(t, view->columns - 1 - column_of_cursor(t) + page);
        break;
    case REQUEST_HOME:
        move_window(t, -t->from);
        t->at = t->from;
        break;
    case REQUEST_END:
        move_window(t, length_of_window(t) - t->to);
        put_cursor_at_column(t, view->columns - 1);
        break;
    case REQUEST_WHEEL_UP:
    case REQUEST_ZOOM_IN:
        zoom_window(t, 0.5);
        break;
    case REQUEST_WHEEL_DOWN:
    case REQUEST_ZOOM_OUT:
        zoom_window(t, 2);
        break;
    case REQUEST_ZOOM_ALL:
        set_window(t, 0, length_of_window(t));
        break;
    case REQUEST_CLICK:
        if (!choose_lane_at_row(t, key->y) && key->x == column_of_cursor(t))
            tui_open_target(view->tui);
        else if (key->x >= 0 && key->x < view->columns)
            put_cursor_at_column(t, key->x);
        break;
    case REQUEST_SEARCH_NEXT:
    case REQUEST_SEARCH_PREVIOUS:
        if (view->searched) /* the last search was for a lane, so the key n continues it */
            return false;
        move_to_next_compile(t, request == REQUEST_SEARCH_NEXT);
        break;
    default:
        return false;
    }
    return true;
}

static bool does_lane_contain(struct view *view, size_t at, const char *text)
{
    const char *name = ((struct timeline *)view)->lanes->lanes.at[at].name;

    return name && strcasestr(name, text);
}

static void timeline_set_filter(struct view *view, const char *text)
{
    struct timeline *t = (struct timeline *)view;

    t->filter = *text ? arena_print(&view->arena, "%s", text) : NULL;
    if (t->filter && view->count && !does_lane_contain(view, view->at, text))
        view_find_line(view, 1, does_lane_contain, text);
}

/* Write what is in the window to a file for ui.perfetto.dev. */
static bool timeline_export(struct view *view, const char *path)
{
    struct timeline *t = (struct timeline *)view;
    char options[100];

    snprintf(options, sizeof options, "--format perfetto --time %" PRId64 "ns..%" PRId64 "ns",
             (int64_t)t->from, (int64_t)t->to + 1);
    return view_export(view, options, path);
}

static void timeline_get_subject(struct view *view, struct target *subject)
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
    t->asking = lanes_start(view->tui->work, !t->lanes);
}

const struct view_ops view_timeline = {
    .summary = "threads and processes as lanes; + - zoom, n N to the next compile",
    .size = sizeof(struct timeline),
    .asked = 2,
    .jobs = 4,
    .open = timeline_refresh,
    .update = timeline_update,
    .draw = timeline_draw,
    .request = timeline_handle_request,
    .refresh = timeline_refresh,
    .subject = timeline_get_subject,
    .lead = timeline_get_target,
    .place = timeline_find_source_place,
    .export = timeline_export,
    .writes = "json",
    .has = does_lane_contain,
    .filter = timeline_set_filter,
    .moment = timeline_show_moment,
    .keys = "Enter opens  + - * zoom  n N compile  @ moment  / lane  f lanes  v stack beside",
};

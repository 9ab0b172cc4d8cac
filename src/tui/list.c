/* tui/list.c -- a view that is a table of rows. See tui/list.h.
 *
 * Runs in: the viewer. */
#include "tui/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "lib/table.h"
#include "tui/list_ask.h"
#include "vocabulary.h"

enum {
    FETCH_WAIT_MS = 8,   /* for a window, before the screen is drawn without it */
    WINDOW_MARGIN = 100, /* rows fetched beyond the screen */
    TEXT_WIDEST = 72,    /* of a text column, while there is room */
    GAP = 2,             /* between columns */
};

static bool is_text(const struct list_column *column)
{
    return column->format == AS_TEXT || column->format == AS_PATH || column->format == AS_SPARK || column->format == AS_OUTCOME;
}

/* ---- rows ------------------------------------------------------------------ */

static bool windowed(const struct list *list)
{
    return list->spec && list->spec->key;
}

/* The values of the row that is shown as number AT, or NULL. */
static const struct value *row_at(const struct list *list, size_t at)
{
    if (at >= list->shown)
        return NULL;
    if (!windowed(list))
        return &list->values[(size_t)list->order[at] * (size_t)list->column_count];
    if (at < list->window || at >= list->window + list->window_count)
        return NULL;
    return &list->values[(at - list->window) * (size_t)list->column_count];
}

/* The id of the row that is shown as number AT; the first column of whole lists. */
static int64_t id_at(const struct list *list, size_t at)
{
    const struct value *row;

    if (at >= list->shown)
        return -1;
    if (windowed(list))
        return list->ids[at];
    row = row_at(list, at);
    return row && row->type == QUERY_INTEGER ? row->integer : -1;
}

int64_t list_id(const struct list *list)
{
    return id_at(list, list->at);
}

const struct value *list_value(const struct list *list, const char *column)
{
    const struct value *row = row_at(list, list->at);

    for (int i = 0; row && i < list->column_count; i++)
        if (!strcmp(list->columns[i].name, column))
            return &row[i];
    return NULL;
}

bool list_place(struct list *list, const char *column, char **file, int64_t *line)
{
    const struct value *value = list_value(list, column);
    const char *colon = value && value->type == QUERY_TEXT ? strrchr(value->text, ':') : NULL;

    if (!colon)
        return false;
    *line = strtoll(colon + 1, NULL, 10);
    *file = strndup(value->text, (size_t)(colon - value->text));
    return *file != NULL;
}

/* Every word of the filter is somewhere in the row. */
static bool row_fits(const struct list *list, const struct value *row)
{
    char word[128], made[CELL_TEXT];

    if (!list->filter || list->filter_sql)
        return true;
    for (const char *words = list->filter; *(words += strspn(words, " "));) {
        size_t length = strcspn(words, " ");
        bool any = false;
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        words += length;
        for (int i = 0; i < list->column_count && !any; i++) {
            if (list->columns[i].format == AS_HIDDEN)
                continue;
            value_print(made, &row[i], AS_TEXT);
            any = strcasestr(made, word) != NULL;
        }
        if (!any)
            return false;
    }
    return true;
}

struct order_context {
    const struct list *list;
};

static int order_compare(const void *a, const void *b, void *context)
{
    const struct list *list = ((struct order_context *)context)->list;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t columns = (size_t)list->column_count;
    int less = value_compare(&list->values[x * columns + (size_t)list->sort], &list->values[y * columns + (size_t)list->sort]);

    if (list->descending)
        less = -less;
    return less ? less : (x > y) - (x < y);
}

static void at_set(struct list *list, size_t at)
{
    int height = list->view.rows - 1;

    if (at >= list->shown)
        at = list->shown ? list->shown - 1 : 0;
    list->at = at;
    if (height < 1)
        height = 1;
    if (list->at < list->top)
        list->top = list->at;
    if (list->at >= list->top + (size_t)height)
        list->top = list->at - (size_t)height + 1;
    if (list->top + (size_t)height > list->shown)
        list->top = list->shown > (size_t)height ? list->shown - (size_t)height : 0;
}

/* Go to the row with this id, or stay near where it was. */
static void at_restore(struct list *list)
{
    size_t above = list->at >= list->top ? list->at - list->top : 0;

    if (list->want)
        for (size_t i = 0; i < list->shown; i++)
            if (id_at(list, i) == list->wanted_id) {
                list->at = i;
                list->top = i >= above ? i - above : 0;
                break;
            }
    list->want = false;
    if (list->follow && list->shown)
        list->at = list->shown - 1;
    at_set(list, list->at);
}

/* Whole lists: filter and sort what is there. */
static void order_make(struct list *list)
{
    struct order_context context = {list};

    if (windowed(list) || !list->order)
        return;
    list->shown = 0;
    for (size_t i = 0; i < list->row_count; i++)
        if (row_fits(list, &list->values[i * (size_t)list->column_count]))
            list->order[list->shown++] = (uint32_t)i;
    if (list->sort >= 0)
        qsort_r(list->order, list->shown, sizeof *list->order, order_compare, &context);
    at_restore(list);
}

/* ---- asking ---------------------------------------------------------------- */

static void drop(struct list *list, struct list_job **job)
{
    if (*job)
        work_drop(tui_work(list->view.tui), &(*job)->job);
    *job = NULL;
}

static void ask(struct list *list, bool first)
{
    drop(list, &list->asking);
    if (!(list->asking = list_ask(list, windowed(list) ? ASK_IDS : ASK_ROWS, first)))
        return;
    work_start(tui_work(list->view.tui), &list->asking->job);
}

void list_restart(struct list *list)
{
    drop(list, &list->seeking);
    drop(list, &list->fetching);
    list->want = list->ready && list->shown > 0;
    list->wanted_id = list_id(list);
    ask(list, windowed(list) || (list->spec && list->spec->quick && !list->ready));
}

static void rows_forget(struct list *list)
{
    values_free(list->values, (windowed(list) ? list->window_count : list->row_count) * (size_t)list->column_count);
    list->values = NULL;
    list->window_count = 0;
    free(list->order);
    list->order = NULL;
    free(list->ids);
    list->ids = NULL;
    list->row_count = list->shown = 0;
}

/* Columns of SQL that no spec describes: what their names say. */
static void columns_take(struct list *list, struct list_job *job)
{
    static const struct { const char *name; enum view_kind kind; } follow[] = {
        {"code_id", VIEW_FUNCTION}, {"origin_code_id", VIEW_FUNCTION}, {"resume_code_id", VIEW_FUNCTION}, {"cache_entry_id", VIEW_ENTRY},
        {"compile_id", VIEW_COMPILE}, {"lookup_id", VIEW_CALL}, {"graph_break_id", VIEW_BREAK},
    };

    for (int i = 0; i < list->column_count && list->names; i++)
        free(list->names[i]);
    free(list->names);
    free(list->columns);
    list->names = job->names;
    job->names = NULL;
    list->column_count = job->columns;
    list->columns = calloc((size_t)job->columns + 1, sizeof *list->columns);
    if (!list->columns || !list->names) {
        list->column_count = 0;
        return;
    }
    for (int i = 0; i < list->column_count; i++) {
        struct list_column *c = &list->columns[i];
        *c = (struct list_column){.name = list->names[i] ? list->names[i] : "?", .format = AS_INTEGER, .width = 4};
        for (size_t row = 0; row < job->row_count; row++)
            if (job->values[row * (size_t)job->columns + (size_t)i].type == QUERY_TEXT)
                c->format = AS_TEXT, c->width = 8;
        for (int k = 0; k < LENGTH(follow); k++)
            if (!strcmp(c->name, follow[k].name))
                c->follow = follow[k].kind;
    }
    if (list->sort >= list->column_count)
        list->sort = -1;
    if (list->column >= list->column_count)
        list->column = 0;
}

/* What asking found becomes what is shown. */
static void answer_take(struct list *list)
{
    struct list_job *job = list->asking;
    bool more = job->first && !job->job.error && !atomic_load(&job->job.cancelled) &&
                (windowed(list) ? job->row_count >= 400 : list->spec && list->spec->quick);

    free(list->failed);
    list->failed = NULL;
    if (job->job.error) {
        list->failed = strdup(job->job.error);
        /* What was shown is still true, unless the question is another one. */
        if (!list->ready || !atomic_load(&job->job.cancelled))
            rows_forget(list);
    } else {
        rows_forget(list);
        if (windowed(list)) {
            list->ids = job->ids;
            job->ids = NULL;
            list->row_count = list->shown = job->row_count;
        } else {
            if (!list->spec)
                columns_take(list, job);
            for (int i = 0; list->spec && i < list->column_count && i < job->columns && job->names; i++)
                if (job->names[i] && strcmp(job->names[i], list->columns[i].name))
                    job->columns = 0; /* a list whose SQL has other columns than it says */
            if (job->columns == list->column_count) {
                list->values = job->values;
                job->values = NULL;
                list->row_count = job->row_count;
            }
            job->row_count = 0;
            list->order = calloc(list->row_count + 1, sizeof *list->order);
            if (!list->order)
                list->row_count = 0;
        }
        list->cut = job->cut;
    }
    list->ready = true;
    drop(list, &list->asking);
    if (more) {
        /* The place that is wanted may be further down: it is looked for among all of them. */
        if (windowed(list)) {
            at_set(list, list->at);
        } else {
            order_make(list);
            list->want = list->at > 0;
            list->wanted_id = list_id(list);
        }
        ask(list, false);
        return;
    }
    if (windowed(list))
        at_restore(list);
    else
        order_make(list);
}

/* Windowed lists: see that the rows on the screen are there, or asked for. */
static void window_settle(struct list *list)
{
    struct work *work = tui_work(list->view.tui);
    size_t from = list->top > WINDOW_MARGIN ? list->top - WINDOW_MARGIN : 0;
    size_t to = list->top + (size_t)list->view.rows + WINDOW_MARGIN;

    if (to > list->shown)
        to = list->shown;
    if (list->fetching && work_done(work, &list->fetching->job)) {
        struct list_job *job = list->fetching;
        if (!job->job.error && job->columns == list->column_count) {
            values_free(list->values, list->window_count * (size_t)list->column_count);
            list->values = job->values;
            list->window = job->from;
            list->window_count = job->row_count;
            job->values = NULL;
            job->row_count = 0;
        } else if (job->job.error && !list->failed) {
            list->failed = strdup(job->job.error);
        }
        drop(list, &list->fetching);
    }
    if (list->failed || from >= to || !list->view.rows)
        return;
    size_t last = list->top + (size_t)list->view.rows;
    if (list->values && list->window <= list->top && (last < to ? last : to) <= list->window + list->window_count)
        return;
    if (list->fetching && list->fetching->from == from)
        return;
    drop(list, &list->fetching);
    if (!(list->fetching = list_ask(list, ASK_WINDOW, false)))
        return;
    list->fetching->from = from;
    list->fetching->id_count = to - from;
    list->fetching->ids = malloc((to - from) * sizeof *list->ids);
    if (list->fetching->ids)
        memcpy(list->fetching->ids, list->ids + from, (to - from) * sizeof *list->ids);
    else
        list->fetching->id_count = 0;
    work_start(work, &list->fetching->job);
    if (work_wait(work, &list->fetching->job, FETCH_WAIT_MS))
        window_settle(list);
}

static void note_make(struct list *list)
{
    struct view *view = &list->view;
    char rows[TABLE_HUMAN];
    size_t used = 0;

#define NOTE(...) (used += used < sizeof view->note ? (size_t)snprintf(view->note + used, sizeof view->note - used, __VA_ARGS__) : 0)
    view->note[0] = 0;
    view->busy = list->asking || list->seeking || list->exporting || list->fetching;
    if (list->filter)
        NOTE("%s: %.40s  ", list->filter_sql ? "where" : "filter", list->filter);
    if (list->sort >= 0 && list->sort < list->column_count)
        NOTE("by %.24s %s  ", list->columns[list->sort].name, list->descending ? "↓" : "↑");
    if (list->ready) {
        if (list->shown < 100000)
            snprintf(rows, sizeof rows, "%zu", list->shown);
        else
            table_count(rows, (int64_t)list->shown);
        NOTE("%zu/%s%s", list->shown ? list->at + 1 : 0, rows, list->cut ? "+" : "");
    }
#undef NOTE
}

void list_settle(struct view *view)
{
    struct list *list = (struct list *)view;
    struct work *work = tui_work(view->tui);

    if (list->asking && work_done(work, &list->asking->job))
        answer_take(list);
    if (list->seeking && work_done(work, &list->seeking->job)) {
        if (list->seeking->found)
            at_set(list, list->seeking->at);
        else if (!atomic_load(&list->seeking->job.cancelled))
            tui_alarm(view->tui, "%s: not found", list->seeking->text);
        drop(list, &list->seeking);
    }
    if (list->exporting && work_done(work, &list->exporting->job)) {
        if (list->exporting->found)
            tui_say(view->tui, "%s: %zu rows written", list->exporting->text, list->exporting->row_count);
        else
            tui_alarm(view->tui, "not exported: %s", list->exporting->job.error ? list->exporting->job.error : "cancelled");
        drop(list, &list->exporting);
    }
    if (list->ready)
        at_set(list, list->at);
    if (windowed(list) && list->ready)
        window_settle(list);
    note_make(list);
}

/* ---- drawing --------------------------------------------------------------- */

struct layout {
    int count;
    struct { int column, x, width; } at[64];
};

/* What a column would like to be wide, by its heading and by the rows that are there. */
static int natural_width(const struct list *list, const struct screen *screen, int column)
{
    const struct list_column *c = &list->columns[column];
    int width = screen_width(screen, c->name, TEXT_WIDEST), least = is_text(c) ? c->width : 0;
    size_t from = windowed(list) ? list->window : list->top, to = windowed(list) ? from + list->window_count : from + (size_t)list->view.rows * 2;
    char made[CELL_TEXT];

    width += list->sort == column; /* the arrow */
    for (size_t i = from; i < to; i++) {
        const struct value *row = row_at(list, i);
        if (!row)
            continue;
        value_print(made, &row[column], c->format);
        int wide = screen_width(screen, made, TEXT_WIDEST);
        if (wide > width)
            width = wide;
    }
    return width > least ? width : least;
}

/* The columns that fit, from `scroll` on, after the first, which stays. Texts share what is left. */
static struct layout layout_make(const struct list *list, const struct screen *screen)
{
    struct layout layout = {0};
    int room = list->view.columns - 1, left, natural[64], shown = 0;

    for (int i = 0; i < list->column_count && layout.count < 64; i++) {
        const struct list_column *c = &list->columns[i];
        int width;
        if (c->format == AS_HIDDEN || (shown++ > 0 && i < list->scroll))
            continue;
        natural[layout.count] = natural_width(list, screen, i);
        width = natural[layout.count];
        if (is_text(c) && width > c->width)
            width = c->width;
        if (!layout.count && width > room / 2) /* the first leaves room for others, and takes what they leave */
            width = room / 2;
        if (layout.count && room < width + GAP)
            break;
        if (width > room - (layout.count ? GAP : 0))
            width = room - (layout.count ? GAP : 0);
        room -= width + (layout.count ? GAP : 0);
        layout.at[layout.count].column = i;
        layout.at[layout.count++].width = width;
    }
    /* What is left goes to texts, a column each in turn, until they have all they want. */
    for (left = 1; room > 0 && left > 0;) {
        left = 0;
        for (int i = 0; i < layout.count && room > 0; i++)
            if (layout.at[i].width < natural[i])
                layout.at[i].width++, room--, left++;
    }
    for (int i = 0, x = list->view.x + 1; i < layout.count; i++) {
        layout.at[i].x = x;
        x += layout.at[i].width + GAP;
    }
    return layout;
}

static int cell_style(const struct list_column *column, const struct value *value, const char *text)
{
    static const struct { const char *word; int style; } words[] = {
#define X(number, NAME, word, asked, missed, python, style, ...) {word, STYLE_##style},
        OUTCOME_ROWS(X)
#undef X
#define X(number, NAME, word, style) {word, STYLE_##style},
        CHECK_ROWS(X)
#undef X
        {"skipped", STYLE_DIM}, /* compile.outcome */
    };

    if (column->format == AS_OUTCOME)
        for (int i = 0; i < LENGTH(words); i++)
            if (!strcmp(words[i].word, text))
                return words[i].style;
    if (column->format == AS_ALARM_COUNT)
        return value->type != QUERY_NULL && value->integer > 0 ? STYLE_ALARM : STYLE_DIM;
    if (column->format == AS_COUNT && value->type == QUERY_INTEGER && value->integer == 0)
        return STYLE_DIM;
    return column->format == AS_PATH ? STYLE_DIM : STYLE_NORMAL;
}

static void cell_draw(struct screen *screen, int y, int x, int width, int style, const char *text, bool right)
{
    int wide = screen_width(screen, text, width);

    screen_put(screen, y, right ? x + width - wide : x, right ? wide : width, style, text);
}

static void head_draw(struct list *list, struct screen *screen, const struct layout *layout)
{
    screen_fill(screen, list->view.y, list->view.x, list->view.columns, STYLE_HEAD);
    for (int i = 0; i < layout->count; i++) {
        int c = layout->at[i].column;
        char text[160];
        snprintf(text, sizeof text, "%.120s%s", list->columns[c].name, c != list->sort ? "" : list->descending ? "↓" : "↑");
        cell_draw(screen, list->view.y, layout->at[i].x, layout->at[i].width, c == list->column ? STYLE_HEAD | STYLE_SELECTED : STYLE_HEAD,
                  text, !is_text(&list->columns[c]));
    }
}

void list_draw(struct view *view, struct screen *screen)
{
    struct list *list = (struct list *)view;
    struct layout layout = layout_make(list, screen);
    char made[CELL_TEXT];
    int y = view->y + 1;

    head_draw(list, screen, &layout);
    if (list->failed && !list->shown) {
        screen_put(screen, y + 1, view->x + 2, view->columns - 4, STYLE_ALARM, list->failed);
        return;
    }
    if (!list->shown) {
        const char *words = !list->ready || list->asking ? "…" : list->filter ? "nothing fits the filter; f and Enter end it"
                            : list->spec && list->spec->empty ? list->spec->empty : "no rows";
        screen_put(screen, y + 1, view->x + 2, view->columns - 4, STYLE_DIM, words);
        return;
    }
    for (size_t at = list->top; at < list->shown && y < view->y + view->rows; at++, y++) {
        const struct value *row = row_at(list, at);
        int selected = at == list->at ? STYLE_SELECTED : 0;
        if (selected) {
            screen_fill(screen, y, view->x, view->columns, STYLE_NORMAL | STYLE_SELECTED);
            screen_put(screen, y, view->x, 1, STYLE_NORMAL | STYLE_SELECTED, ">");
        }
        for (int i = 0; i < layout.count; i++) {
            int c = layout.at[i].column, style;
            if (!row) {
                screen_put(screen, y, layout.at[i].x, 1, STYLE_DIM | selected, "…");
                continue;
            }
            value_print(made, &row[c], list->columns[c].format);
            style = selected && c == list->column ? STYLE_MATCH | STYLE_SELECTED : cell_style(&list->columns[c], &row[c], made) | selected;
            if (tui_searched(view->tui)[0] && strcasestr(made, tui_searched(view->tui)))
                style = STYLE_MATCH | selected;
            cell_draw(screen, y, layout.at[i].x, layout.at[i].width, style, made, !is_text(&list->columns[c]) || row[c].type != QUERY_TEXT);
        }
    }
}

/* ---- requests -------------------------------------------------------------- */

/* The next column that can be seen, in that direction, and scroll to it. */
static void column_move(struct list *list, int by)
{
    int to = list->column, first = 0;

    while (first < list->column_count && list->columns[first].format == AS_HIDDEN)
        first++;
    do
        to += by;
    while (to >= 0 && to < list->column_count && list->columns[to].format == AS_HIDDEN);
    if (to < 0 || to >= list->column_count)
        return;
    list->column = to;
    if (to <= first + 1 || to < list->scroll)
        list->scroll = to <= first + 1 ? 0 : to;
    for (int tries = 0; tries < list->column_count; tries++) {
        struct layout layout = layout_make(list, tui_screen(list->view.tui));
        bool seen = false;
        for (int i = 0; i < layout.count; i++)
            seen = seen || layout.at[i].column == to;
        if (seen)
            break;
        list->scroll = list->scroll > first ? list->scroll + 1 : first + 2;
    }
}

static void sort_set(struct list *list, int column, bool descending)
{
    if (column < 0 || column >= list->column_count)
        return;
    list->sort = column;
    list->descending = descending;
    list->want = list->shown > 0;
    list->wanted_id = list_id(list);
    if (windowed(list))
        list_restart(list);
    else if (list->ready)
        order_make(list);
}

/* What the row is called in titles of what it opens. */
static void row_title(const struct list *list, char *made, size_t room)
{
    const struct value *row = row_at(list, list->at);
    char text[CELL_TEXT] = "";
    int column = list->spec ? list->spec->title_column : 0;

    if (row && column < list->column_count)
        value_print(text, &row[column], list->columns[column].format);
    snprintf(made, room, "%.*s", (int)prose_cut(text, room - 1), text);
}

static void row_open(struct list *list)
{
    const struct value *row = row_at(list, list->at);
    const struct list_column *column = list->column < list->column_count ? &list->columns[list->column] : NULL;
    enum view_kind kind = list->spec ? list->spec->row : VIEW_NONE;
    const char *pattern = list->spec ? list->spec->row_where : NULL;
    const char *named = list->spec ? list->spec->row_id : NULL;
    int64_t id = list_id(list);
    struct target target;
    char where[2048], title[CELL_TEXT];

    if (!row)
        return;
    if (column && column->follow != VIEW_NONE) {
        kind = column->follow;
        pattern = column->where;
        named = column->id;
        if (!list->spec) {
            id = row[list->column].integer;
            if (row[list->column].type != QUERY_INTEGER)
                kind = VIEW_NONE;
        }
    }
    if (named) {
        const struct value *value = list_value(list, named);
        if (!value || value->type != QUERY_INTEGER)
            kind = VIEW_NONE;
        else
            id = value->integer;
    }
    if (kind == VIEW_NONE) {
        tui_say(list->view.tui, "this leads nowhere further");
        return;
    }
    row_title(list, title, sizeof title);
    if (pattern)
        snprintf(where, sizeof where, pattern, (long long)id, (long long)id, (long long)id, (long long)id);
    target = target_make(kind, id, pattern ? where : NULL, title);
    tui_go(list->view.tui, &target);
    target_free(&target);
}

/* A click: on the heading it sorts, on a row it chooses, on the chosen one it opens. */
static void click(struct list *list, const struct key *key, bool twice)
{
    struct layout layout = layout_make(list, tui_screen(list->view.tui));
    int column = -1;
    size_t row = list->top + (size_t)(key->y - list->view.y - 1);

    for (int i = 0; i < layout.count; i++)
        if (key->x >= layout.at[i].x && key->x < layout.at[i].x + layout.at[i].width + GAP)
            column = layout.at[i].column;
    if (key->y == list->view.y) {
        if (column >= 0)
            sort_set(list, column, list->sort == column ? !list->descending : !is_text(&list->columns[column]));
        list->column = column >= 0 ? column : list->column;
        return;
    }
    if (key->y <= list->view.y || row >= list->shown)
        return;
    bool again = row == list->at && (column < 0 || column == list->column);
    at_set(list, row);
    if (column >= 0)
        list->column = column;
    if (twice || again)
        row_open(list);
}

bool list_request(struct view *view, enum request request, const struct key *key)
{
    struct list *list = (struct list *)view;
    size_t page = view->rows > 2 ? (size_t)view->rows - 2 : 1;

    switch (request) {
    case REQUEST_UP:
        at_set(list, list->at ? list->at - 1 : 0);
        return true;
    case REQUEST_DOWN:
        at_set(list, list->at + 1);
        return true;
    case REQUEST_HALF_UP:
        page = (page + 1) / 2; /* fall through */
    case REQUEST_PAGE_UP:
        list->top = list->top > page ? list->top - page : 0;
        at_set(list, list->at > page ? list->at - page : 0);
        return true;
    case REQUEST_HALF_DOWN:
        page = (page + 1) / 2; /* fall through */
    case REQUEST_PAGE_DOWN:
        list->top += page;
        at_set(list, list->at + page);
        return true;
    case REQUEST_HOME:
        at_set(list, 0);
        return true;
    case REQUEST_END:
        at_set(list, list->shown);
        return true;
    case REQUEST_WHEEL_UP:
        at_set(list, list->at > 3 ? list->at - 3 : 0);
        return true;
    case REQUEST_WHEEL_DOWN:
        at_set(list, list->at + 3);
        return true;
    case REQUEST_LEFT:
        column_move(list, -1);
        return true;
    case REQUEST_RIGHT:
        column_move(list, 1);
        return true;
    case REQUEST_SORT:
        if (list->column < list->column_count)
            sort_set(list, list->column, list->sort == list->column ? !list->descending : !is_text(&list->columns[list->column]));
        return true;
    case REQUEST_SORT_TURN:
        sort_set(list, list->sort >= 0 ? list->sort : list->column, !list->descending);
        return true;
    case REQUEST_OPEN:
        row_open(list);
        return true;
    case REQUEST_CLICK:
    case REQUEST_DOUBLE:
        click(list, key, request == REQUEST_DOUBLE);
        return true;
    case REQUEST_CANCEL:
        if (!view->busy)
            return false;
        for (int i = 0; i < 3; i++) {
            struct list_job *job = (struct list_job *[]){list->asking, list->seeking, list->exporting}[i];
            if (job)
                work_cancel(tui_work(view->tui), &job->job);
        }
        tui_say(view->tui, "cancelled");
        return true;
    default:
        return false;
    }
}

bool list_search(struct view *view, const char *text, int direction)
{
    struct list *list = (struct list *)view;
    char made[CELL_TEXT];

    if (!list->shown)
        return false;
    if (windowed(list)) {
        drop(list, &list->seeking);
        if (!(list->seeking = list_ask(list, ASK_SEEK, false)))
            return false;
        list->seeking->text = strdup(text);
        list->seeking->direction = direction;
        list->seeking->from = list->at;
        list->seeking->id_count = list->shown;
        list->seeking->ids = malloc(list->shown * sizeof *list->ids);
        list->seeking->formats = calloc((size_t)list->column_count + 1, 1);
        if (!list->seeking->text || !list->seeking->ids || !list->seeking->formats)
            list->seeking->id_count = 0;
        else
            memcpy(list->seeking->ids, list->ids, list->shown * sizeof *list->ids);
        for (int i = 0; i < list->column_count && list->seeking->formats; i++)
            list->seeking->formats[i] = (unsigned char)list->columns[i].format;
        work_start(tui_work(view->tui), &list->seeking->job);
        return true;
    }
    for (size_t i = 1; i <= list->shown; i++) {
        size_t at = direction > 0 ? (list->at + i) % list->shown : (list->at + list->shown - i) % list->shown;
        const struct value *row = row_at(list, at);
        for (int c = 0; c < list->column_count; c++) {
            if (list->columns[c].format == AS_HIDDEN)
                continue;
            value_print(made, &row[c], list->columns[c].format);
            if (strcasestr(made, text)) {
                at_set(list, at);
                return true;
            }
        }
    }
    return false;
}

/* It has an operator or a word of SQL: then it is a condition, not words to look for. */
static bool looks_like_sql(const char *text)
{
    static const char *const words[] = {"LIKE", "GLOB", "IN", "IS", "BETWEEN", "NOT"};

    if (strpbrk(text, "=<>"))
        return true;
    for (int i = 0; i < LENGTH(words); i++) {
        const char *at = strcasestr(text, words[i]);
        size_t length = strlen(words[i]);
        if (at && at > text && at[-1] == ' ' && (at[length] == ' ' || at[length] == '('))
            return true;
    }
    return false;
}

void list_filter(struct view *view, const char *text)
{
    struct list *list = (struct list *)view;
    bool was_sql = list->filter_sql;

    free(list->filter);
    list->filter = *text ? strdup(text) : NULL;
    list->filter_sql = list->filter && looks_like_sql(text);
    if (windowed(list) || list->filter_sql || was_sql) {
        list_restart(list);
    } else if (list->ready) {
        list->want = list->shown > 0;
        list->wanted_id = list_id(list);
        order_make(list);
    }
}

void list_refresh(struct view *view)
{
    struct list *list = (struct list *)view;

    if (!list->asking && (list->spec || list->sql_text)) {
        if (windowed(list)) { /* rows of the window may have changed, too */
            values_free(list->values, list->window_count * (size_t)list->column_count);
            list->values = NULL;
            list->window_count = 0;
        }
        list_restart(list);
    }
}

char *list_sql(struct view *view)
{
    struct list *list = (struct list *)view;
    char *sql = NULL, *inner;
    size_t bytes;
    FILE *out;

    if (!list->spec && !list->sql_text)
        return NULL;
    inner = list_query(list, ASK_ROWS, false);
    if (!inner || !(out = open_memstream(&sql, &bytes)))
        return inner;
    fputs(inner, out);
    if (list->spec && list->sort >= 0) {
        if (!windowed(list) || !strstr(inner, " ORDER BY ")) {
            fputs(" ORDER BY ", out);
            sql_name(out, list->columns[list->sort].name);
            fputs(list->descending ? " DESC" : "", out);
        }
    }
    free(inner);
    fclose(out);
    return sql;
}

bool list_export(struct view *view, const char *path)
{
    struct list *list = (struct list *)view;
    char *sql = list_sql(view);

    drop(list, &list->exporting);
    if (!sql || !(list->exporting = list_ask(list, ASK_EXPORT, false))) {
        free(sql);
        return false;
    }
    free(list->exporting->sql);
    list->exporting->sql = sql;
    list->exporting->text = strdup(path);
    work_start(tui_work(view->tui), &list->exporting->job);
    return true;
}

/* ---- opening and closing --------------------------------------------------- */

bool list_open(struct list *list, const struct list_spec *spec)
{
    list->spec = spec;
    list->sort = -1;
    list->column_count = spec->column_count;
    list->columns = calloc((size_t)spec->column_count + 1, sizeof *list->columns);
    if (!list->columns)
        return false;
    memcpy(list->columns, spec->columns, (size_t)spec->column_count * sizeof *list->columns);
    for (int i = 0; i < spec->column_count; i++)
        if (spec->sort && !strcmp(spec->columns[i].name, spec->sort))
            list->sort = i;
    list->descending = spec->descending;
    while (list->column < list->column_count && list->columns[list->column].format == AS_HIDDEN)
        list->column++;
    if (list->view.target.title)
        snprintf(list->view.title, sizeof list->view.title, "%s", list->view.target.title);
    ask(list, windowed(list) || spec->quick);
    return true;
}

bool list_open_sql(struct list *list, const char *sql)
{
    char *copy = strdup(sql), *end;

    if (!copy)
        return false;
    for (end = copy + strlen(copy); end > copy && strchr("; \t\r\n", end[-1]); end--)
        end[-1] = 0;
    free(list->sql_text);
    list->sql_text = copy;
    free(list->filter);
    list->filter = NULL;
    list->filter_sql = false;
    list->sort = -1;
    list->column = list->scroll = 0;
    list->at = list->top = 0;
    rows_forget(list);
    list->ready = false;
    ask(list, false);
    return true;
}

void list_close(struct view *view)
{
    struct list *list = (struct list *)view;

    drop(list, &list->asking);
    drop(list, &list->fetching);
    drop(list, &list->seeking);
    drop(list, &list->exporting);
    rows_forget(list);
    if (!list->spec)
        for (int i = 0; list->names && i < list->column_count; i++)
            free(list->names[i]);
    free(list->names);
    free(list->columns);
    free(list->failed);
    free(list->filter);
    free(list->sql_text);
}

/* tui/list.c -- draws a view that is a table of rows, and handles its keys. See tui/list.h. */
#include "tui/list.h"

#include <ctype.h>

#include "lib/table.h"
#include "lib/times.h"
#include "trace/db.h"

enum {
    TEXT_WIDEST = 72, /* the most columns of the screen that a text column takes */
    GAP = 2,          /* blanks between two columns */
    LAYOUT_MOST = 64,
};

static bool is_text_column(const struct list_column *column)
{
    return column->format <= AS_SPARK;
}

/* ---- drawing the table --------------------------------------------------- */

struct layout {
    int count;
    struct {
        int column, x, width;
    } at[LAYOUT_MOST];
};

/* Write a column's heading into MADE: its name, the unit of a time, and an arrow if the rows
 * are sorted by it. */
static const char *write_heading(char made[160], const struct list *list, int column)
{
    const struct list_column *c = column_at(list, column);
    const char *unit = c->format == AS_TIME ? " (s)" : "";
    const char *order = "";

    if (column == list->q.sort)
        order = list->q.descending ? "↓" : "↑";
    snprintf(made, 160, "%.120s%s%s", c->name, unit, order);
    return made;
}

/* Return how wide COLUMN must be to show its heading and the rows that have been
 * fetched without cuts. */
static int natural_width(const struct list *list, const struct screen *screen, int column)
{
    const struct list_column *c = column_at(list, column);
    const struct list_job *window = list->window;
    char made[CELL_TEXT];
    int width = screen_width(screen, write_heading(made, list, column), TEXT_WIDEST);
    size_t from = window ? window->from : list->view.top;
    size_t count = window ? window->row_count : (size_t)list->view.rows * 2;

    for (size_t i = from; i < from + count; i++) {
        const struct value *row = row_at(list, i);
        int wide;
        if (!row)
            continue;
        value_print(made, &row[column], c->format, c->width);
        wide = screen_width(screen, made, TEXT_WIDEST);
        if (wide > width)
            width = wide;
    }
    return width;
}

/* Widen each column that is narrower than natural_width() by one, as long as there is *ROOM.
 * Returns false if none was widened. */
static bool widen_columns(struct layout *layout, const int natural[], int *room)
{
    bool wider = false;

    for (int i = 0; i < layout->count; i++) {
        if (*room <= 0)
            break;
        if (layout->at[i].width >= natural[i])
            continue;
        layout->at[i].width++;
        --*room;
        wider = true;
    }
    return wider;
}

/* Choose the columns that fit on the screen, and their widths. The first column is always shown,
 * and the column number `scroll` comes next. Text columns share the space that is left. */
static struct layout choose_layout(const struct list *list, const struct screen *screen)
{
    struct layout layout = {0};
    int room = list->view.columns - 1;
    int natural[LAYOUT_MOST];
    int x = 1;

    for (int i = 0; i < column_count(list) && layout.count < LAYOUT_MOST; i++) {
        const struct list_column *c = column_at(list, i);
        int width;
        int gap = layout.count ? GAP : 0;
        bool scrolled_away = i > 0 && i < list->scroll;
        if (!is_column_shown(list, i) || scrolled_away)
            continue;
        width = natural_width(list, screen, i);
        natural[layout.count] = width;
        if (is_text_column(c) && width > c->width)
            width = c->width;
        /* at first, the first column takes at most half of the line */
        if (!gap && width > room / 2)
            width = room / 2;
        if (room < width + gap)
            break;
        room -= width + gap;
        layout.at[layout.count].column = i;
        layout.at[layout.count].width = width;
        layout.count++;
    }
    while (room > 0 && widen_columns(&layout, natural, &room))
        ;
    for (int i = 0; i < layout.count; i++) {
        layout.at[i].x = x;
        x += layout.at[i].width + GAP;
    }
    return layout;
}

static int choose_cell_style(const struct list_column *column, const struct value *value,
                             const char *text)
{
    bool is_zero = value->type == QUERY_INTEGER && value->integer == 0;
    bool is_some = value->type != QUERY_NULL && value->integer > 0;

    switch (column->format) {
    case AS_OUTCOME:
        return word_choose_style(text);
    case AS_ALARM_COUNT:
        return is_some ? STYLE_ALARM : STYLE_DIM;
    case AS_COUNT:
        return is_zero ? STYLE_DIM : STYLE_NORMAL;
    case AS_PATH:
        return STYLE_DIM;
    default:
        return STYLE_NORMAL;
    }
}

static void draw_cell(struct screen *screen, int y, int x, int width, int style, const char *text,
                      bool right)
{
    if (right) {
        int wide = screen_width(screen, text, width);
        x += width - wide;
        width = wide;
    }
    screen_put(screen, y, x, width, style, text);
}

/* The columns `expected` and `actual` have the format AS_DIFFER. Return the text of the one that is
 * not COLUMN, or NULL. */
static const char *find_other_text(const struct list *list, const struct value *row, int column)
{
    const char *beside = NULL;

    for (int i = 0; i < column_count(list); i++) {
        bool is_column_with_operator = i != column && column_at(list, i)->format == AS_DIFFER;
        if (is_column_with_operator && row[i].type == QUERY_TEXT)
            beside = row[i].text;
    }
    return beside;
}

/* Is BYTE inside a UTF-8 character, but not its first byte? */
static bool is_inside_letter(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* If MADE does not fit into WIDTH columns, make the first difference from the text of the other
 * column visible: replace what comes long before it by "…". */
static void show_first_difference(char made[CELL_TEXT], const struct list *list,
                                  const struct screen *screen, const struct value *row, int column,
                                  int width)
{
    const char *text = made;
    const char *other = find_other_text(list, row, column);
    size_t same = 0;
    size_t room;
    int used;

    if (!other)
        return;
    while (text[same] && text[same] == other[same])
        same++;
    room = text_bytes_that_fit(text, width / 2, &used);
    if (same <= room || screen_width(screen, text, TEXT_WIDEST * 8) <= width)
        return;
    same -= room;
    while (same && is_inside_letter(text[same]))
        same--;
    if (same > strlen("…"))
        snprintf(made, CELL_TEXT, "…%s", strdupa(text + same));
}

static void draw_headings(struct list *list, struct screen *screen, const struct layout *layout)
{
    int y = list->view.y;

    screen_fill(screen, y, 0, list->view.columns, STYLE_HEAD);
    for (int i = 0; i < layout->count; i++) {
        int c = layout->at[i].column;
        int x = layout->at[i].x;
        int width = layout->at[i].width;
        int selected = c == list->column ? STYLE_SELECTED : 0;
        bool right = !is_text_column(column_at(list, c));
        char text[160];
        write_heading(text, list, c);
        draw_cell(screen, y, x, width, STYLE_HEAD | selected, text, right);
    }
}

/* Draw the value of ROW in column C. It begins at row Y, column X of the screen, and is
 * WIDTH columns wide. */
static void draw_value(const struct list *list, struct screen *screen, const struct value *row,
                       int c, int y, int x, int width, int selected)
{
    const struct list_column *column = column_at(list, c);
    const struct value *value = &row[c];
    const char *searched = list->view.tui->searched;
    bool chosen = selected && c == list->column;
    bool right = !is_text_column(column) || value->type != QUERY_TEXT;
    bool found;
    char made[CELL_TEXT];
    int style;

    value_print(made, value, column->format, column->width);
    if (column->format == AS_DIFFER)
        show_first_difference(made, list, screen, row, c, width);
    style = choose_cell_style(column, value, made);
    found = searched[0] && strcasestr(made, searched);
    if (chosen || found)
        style = STYLE_MATCH;
    draw_cell(screen, y, x, width, style | selected, made, right);
}

static void draw_row(struct list *list, struct screen *screen, const struct layout *layout,
                     size_t at, int y)
{
    const struct value *row = row_at(list, at);
    int selected = view_draw_row_begin(&list->view, screen, y, at == list->view.at);

    for (int i = 0; i < layout->count; i++) {
        int c = layout->at[i].column;
        int x = layout->at[i].x;
        int width = layout->at[i].width;
        if (row)
            draw_value(list, screen, row, c, y, x, width, selected);
        else
            screen_put(screen, y, x, 1, STYLE_DIM | selected, "…");
    }
}

/* Return what is drawn if the list has no rows. The text may be written into MADE. */
static const char *empty_message(const struct list *list, char *made, size_t bytes)
{
    const char *none = block_text_after_word(list->block, "none");

    if (list->failed[0])
        return list->failed;
    if (!list->ready || list->asking)
        return "…";
    if (list->q.filter)
        return "nothing fits the filter; f and Enter end it";
    if (!list->q.where || !list->block)
        return none ? none : "no rows";
    snprintf(made, bytes, "there are none here; :%s has those of the whole trace",
             view_name(list->view.target.kind));
    return made;
}

static void list_draw(struct view *view, struct screen *screen)
{
    struct list *list = (struct list *)view;
    struct layout layout = choose_layout(list, screen);
    size_t rows = view->rows > 1 ? (size_t)view->rows - 1 : 0;
    int y = view->y + 1;
    char made[120];

    draw_headings(list, screen, &layout);
    if (!view->count) {
        int style = *list->failed ? STYLE_ALARM : STYLE_DIM;
        view_draw_words(view, screen, style, empty_message(list, made, sizeof made));
    }
    for (size_t at = view->top; at < view->top + rows && at < view->count; at++) {
        draw_row(list, screen, &layout, at, y);
        y++;
    }
}

/* ---- moving, sorting, searching, filtering ------------------------------- */

static bool is_selectable_column(const struct list *list, int column)
{
    return column >= 0 && column < column_count(list);
}

static bool is_on_screen(const struct list *list, int column)
{
    struct layout layout = choose_layout(list, list->view.tui->screen);

    for (int i = 0; i < layout.count; i++)
        if (layout.at[i].column == column)
            return true;
    return false;
}

/* Choose the next visible column to the right (BY is 1) or left (-1), and scroll to it. */
static void choose_next_column(struct list *list, int by)
{
    int to = list->column + by;

    while (is_selectable_column(list, to) && !is_column_shown(list, to))
        to += by;
    if (!is_selectable_column(list, to))
        return;
    list->column = to;
    if (to <= 1)
        list->scroll = 0;
    else if (to < list->scroll)
        list->scroll = to;
    for (int tries = 0; tries < column_count(list); tries++) {
        if (is_on_screen(list, to))
            return;
        list->scroll = list->scroll > 0 ? list->scroll + 1 : 2;
    }
}

/* Sort by COLUMN; numbers begin with the largest. If the rows are sorted by COLUMN already,
 * reverse the order. */
static void sort_by_column(struct list *list, int column)
{
    struct question *q = &list->q;

    if (!is_selectable_column(list, column))
        return;
    if (q->sort == column)
        q->descending = !q->descending;
    else
        q->descending = !is_text_column(column_at(list, column));
    q->sort = column;
    rows_filter_and_sort(list, false);
    /* show the first row of the new order, and do not follow the chosen row */
    list->wanted_id = -1;
    view_choose(&list->view, 0);
}

/* Return the target for the chosen row that TEXT, a line of the template, names. If TEXT is NULL,
 * return the target that all columns of the row share. */
static struct target target_of_chosen_row(const struct list *list, struct arena *arena,
                                          const char *text)
{
    const char *lead = text ? text : block_text_after_word(list->block, "row");
    const char *names[column_count(list) + 1];
    struct row row = {
        .values = lead ? row_at(list, list->view.at) : NULL,
        .names = names,
        .count = column_count(list),
    };

    if (!row.values)
        return (struct target){0};
    for (int i = 0; i < row.count; i++)
        names[i] = column_at(list, i)->name;
    return target_from_template(arena, &row, lead);
}

static void list_get_target(struct view *view, struct arena *arena, struct target *target)
{
    struct list *list = (struct list *)view;
    const struct value *row = row_at(list, view->at);
    int title = column_named(list, block_text_after_word(list->block, "title"));
    const char *lead = NULL;

    if (list->column < column_count(list))
        lead = column_at(list, list->column)->lead;
    if (title < 0)
        title = 0;
    *target = target_of_chosen_row(list, arena, lead);
    if (row && !target->title) /* the target has no title of its own: use the row's title */
        target->title = value_print(arena_take(arena, CELL_TEXT), &row[title], AS_TEXT, 0);
}

static void list_get_subject(struct view *view, struct target *subject)
{
    struct list *list = (struct list *)view;

    *subject =
        target_of_chosen_row(list, &view->arena, block_text_after_word(list->block, "subject"));
}

/* Return the column that is drawn at column X of the screen, or -1 if there is none. */
static int find_clicked_column(const struct list *list, int x)
{
    struct layout layout = choose_layout(list, list->view.tui->screen);
    int column = -1;

    for (int i = 0; i < layout.count; i++) {
        int from = layout.at[i].x;
        int to = from + layout.at[i].width + GAP;
        if (x >= from && x < to)
            column = layout.at[i].column;
    }
    return column;
}

/* Handle a click. On a heading: sort by this column. On a row: choose the row. On the chosen cell:
 * open its target. */
static void handle_click_on_list(struct list *list, const struct key *key)
{
    int column = find_clicked_column(list, key->x);
    bool heading = key->y == list->view.y;
    bool again = false;

    if (heading)
        sort_by_column(list, column);
    else if (!view_click(&list->view, key, &again))
        return;
    if (column >= 0 && column != list->column) {
        list->column = column;
        again = false;
    }
    if (again)
        tui_open_target(list->view.tui);
}

static bool list_handle_request(struct view *view, enum request request, const struct key *key)
{
    struct list *list = (struct list *)view;

    if (view_move(view, request))
        return true;
    switch (request) {
    case REQUEST_LEFT:
        choose_next_column(list, -1);
        break;
    case REQUEST_RIGHT:
        choose_next_column(list, 1);
        break;
    case REQUEST_SORT:
        sort_by_column(list, list->column);
        break;
    case REQUEST_SORT_TURN:
        sort_by_column(list, list->q.sort >= 0 ? list->q.sort : list->column);
        break;
    case REQUEST_CLICK:
        handle_click_on_list(list, key);
        break;
    default:
        return false;
    }
    return true;
}

static bool does_row_match_text(struct view *view, size_t at, const char *text)
{
    struct list *list = (struct list *)view;

    return row_contains_text(&list->q.columns, row_at(list, at), text, false);
}

static bool list_search(struct view *view, const char *text, int direction)
{
    struct list *list = (struct list *)view;
    bool was_cut = list->read && list->read->cut;
    bool found;

    if (is_windowed(list) && list->asking) /* the ids in which to search have not all been read */
        return false;
    if (view->count && is_windowed(list)) {
        /* a job searches; later go_to_found_row() goes to the row that the job found */
        rows_start_search(list, text, direction);
        return true;
    }
    found = view_find_line(view, direction, does_row_match_text, text);
    if (!found && was_cut)
        tui_alarm(view->tui, "%s: not in the first %zu rows; f looks in all of them", text,
                  list->read->row_count);
    return found || was_cut;
}

/* Return the first comparison operator in TEXT, or NULL. A filter with an operator is an SQL
 * condition; without one it is words to look for. */
static const char *find_operator(const char *text)
{
    static const char *const words[] = {
        " LIKE ", " GLOB ", " IN ", " IN(", " IS ", " BETWEEN ", " NOT ",
    };
    const char *first = strpbrk(text, "=<>");

    for (size_t i = 0; i < array_count(words); i++) {
        const char *word = strcasestr(text, words[i]);
        if (!word)
            continue;
        if (!first || word < first)
            first = word;
    }
    return first;
}

/* Return the length of the word (letters, digits, _) at TEXT. */
static size_t length_of_word(const char *text)
{
    size_t bytes = 0;

    while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
        bytes++;
    return bytes;
}

/* Return the length of the quoted or bracketed text that begins at TEXT, with its quotes. Returns 0
 * if TEXT does not begin with a quote or bracket. */
static size_t length_of_quoted_text(const char *text)
{
    bool opens = strchr("'\"[", *text);
    const char *end = opens ? strchr(text + 1, *text == '[' ? ']' : *text) : NULL;

    return end ? (size_t)(end + 1 - text) : 0;
}

/* If the number at TEXT has a unit (10ms, 2k, 3M), write the number that it means; a time in
 * nanoseconds. Returns how many bytes the number and its unit have, or 0 if there is no unit. */
static size_t write_number_of_unit(FILE *out, const char *text)
{
    char *unit;
    double number = strtod(text, &unit);
    size_t letters = length_of_word(unit);
    double factor;

    if (letters == 1 && *unit == 'k')
        factor = 1e3;
    else if (letters == 1 && *unit == 'M')
        factor = 1e6;
    else
        factor = times_parse_unit(unit, letters);
    if (!factor)
        return 0;
    fprintf(out, "%.0f", number * factor);
    return (size_t)(unit - text) + letters;
}

/* Is the word at TEXT, which has LENGTH bytes, the name of a column, and does an
 * operator follow? */
static bool is_column_with_operator(const struct list *list, struct arena *arena, const char *text,
                                    size_t length)
{
    const char *rest = text + length;
    const char *operator= find_operator(text);

    if (column_named(list, arena_text(arena, text, length)) < 0 || !operator)
        return false;
    return operator<= rest + strspn(rest, " !");
}

static size_t length_of_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return (size_t)(end - text);
}

/* Make SQL of the condition that the user typed. Numbers with units (10ms, 2k, 3M) become plain
 * numbers. Columns before an operator are quoted, because a column may be called `where`. What the
 * user quoted stays. */
static const char *make_sql_condition(const struct list *list, struct arena *arena,
                                      const char *text)
{
    size_t bytes;
    char *made;
    FILE *out = open_memstream(&made, &bytes);

    while (*text) {
        bool is_number = isdigit((unsigned char)*text);
        bool is_word = isalpha((unsigned char)*text) || *text == '_';
        size_t length = length_of_quoted_text(text);
        bool compared = false;
        if (is_number) {
            size_t unit = write_number_of_unit(out, text);
            text += unit;
            if (unit)
                continue;
            length = length_of_number(text);
        } else if (is_word) {
            length = length_of_word(text);
            compared = is_column_with_operator(list, arena, text, length);
        }
        if (!length)
            length = 1;
        fprintf(out, compared ? "\"%.*s\"" : "%.*s", (int)length, text);
        text += length;
    }
    fclose(out);
    return arena_keep(arena, made);
}

static void list_set_filter(struct view *view, const char *text)
{
    struct list *list = (struct list *)view;
    const char *was = list->q.condition;

    list->q.filter = *text ? arena_print(&view->arena, "%s", text) : NULL;
    list->q.condition = find_operator(text) ? make_sql_condition(list, &view->arena, text) : NULL;
    rows_filter_and_sort(list, list->q.condition || was);
}

static const char *list_column(struct view *view, size_t at)
{
    const struct list *list = (struct list *)view;
    const char *name = at < list->q.columns.count ? column_at(list, (int)at)->name : NULL;
    bool plain = !name || !name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")];

    return plain ? name : arena_print(&view->arena, "\"%s\"", name);
}

static void list_refresh(struct view *view)
{
    struct list *list = (struct list *)view;

    if (list->asking || !list->q.sql)
        return;
    /* drop the job, because the rows that it fetches may be out of date */
    work_drop(list->view.tui->work, list->window);
    rows_filter_and_sort(list, true);
    /* if the cursor is in the first row it stays there, even if another row comes
     * to be the first */
    if (!view->at)
        list->wanted_id = -1;
}

static char *list_sql(struct view *view)
{
    struct list *list = (struct list *)view;

    return list->q.sql ? question_make_sql(&list->q, ASK_EXPORT, false) : NULL;
}

/* ---- opening and closing the list ---------------------------------------- */

/* Add the column that LINE of a template describes: "name   format width  => lead". Writes a NUL
 * behind the name. The column's texts point into LINE. */
static void read_column_line(struct list *list, char *line)
{
    char *end = strstr(line, "  ");
    const char *format = end + strspn(end, " ");
    size_t word = strcspn(format, " ");
    struct list_column *column = list_add(&list->q.columns);

    *end = 0;
    *column = (struct list_column){
        .name = line,
        .format = format_from_name(format, word),
        .width = (int)strtol(format + word, NULL, 10),
        .lead = strstr(format, "=> "),
    };
}

static void list_open(struct view *view)
{
    struct list *list = (struct list *)view;
    struct question *q = &list->q;
    const struct template_block *block;

    view_template_open(&list->template, view_name(view->target.kind), NULL);
    block = &list->template.blocks.at[0];
    list->block = block;
    *q = (struct question){.where = view->target.where};
    q->sql = text_replace(&view->arena, block->sql, "$quick", "0");
    if (strstr(block->sql, "$quick"))
        q->quick = text_replace(&view->arena, block->sql, "$quick", "1");
    q->key = block_text_after_word(block, "window");
    q->id = q->key ? q->key : block_text_after_word(block, "id");
    list_each(line, &block->lines) {
        if (!strcmp(line->word, "|"))
            read_column_line(list, line->rest);
    }
    q->sort = column_named(list, q->key);
    view->head = 1;
    rows_start_query(list);
}

static void list_close(struct view *view)
{
    struct list *list = (struct list *)view;

    free(list->order);
    list_free(&list->q.columns);
    arena_free(&list->names);
    template_close(&list->template);
}

const struct view_ops list_ops = {
    .size = sizeof(struct list),
    .asked = 4,
    .jobs = 6,
    .open = list_open,
    .close = list_close,
    .update = list_update,
    .draw = list_draw,
    .request = list_handle_request,
    .refresh = list_refresh,
    .sql = list_sql,
    .search = list_search,
    .filter = list_set_filter,
    .column = list_column,
    .export = list_export,
    .lead = list_get_target,
    .moment = list_show_moment,
    .subject = list_get_subject,
    .writes = "csv",
    .keys = "Enter opens  s sort  f filter  / search  v beside",
};

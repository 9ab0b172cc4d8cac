/* tui/places.c -- the stack of open views. See tui/places.h. */
#include "tui/places.h"

#include <ctype.h>

enum {
    /* if the screen has this many columns, the halves of a split screen stand side by side */
    BESIDE_COLUMNS = 120
};

/* ---- creating and freeing views ------------------------------------------ */

/* Do the halves of a split screen stand side by side? If not, one stands below the other. */
static bool are_halves_side_by_side(const struct screen *screen)
{
    return screen->columns >= BESIDE_COLUMNS;
}

/* Set position and size of VIEW. On a split screen, a view that is ASIDE is in the right or lower
 * half, whose first line is left for the view's name. */
static void set_view_size(const struct places *places, struct view *view, bool aside)
{
    const struct screen *screen = places->tui->screen;
    int rows = screen->rows - 2 - places->tui->below;
    int half;

    if (rows < 2)
        rows = 1;
    view->x = 0;
    view->y = 1;
    view->rows = rows;
    view->columns = screen->columns;
    if (!places->tui->split)
        return;
    if (are_halves_side_by_side(screen)) {
        half = screen->columns / 2;
        view->x = aside ? half + 1 : 0;
        view->columns = aside ? screen->columns - half - 1 : half;
    } else {
        half = rows / 2;
        view->y = aside ? 1 + half : 1;
        view->rows = aside ? rows - half : half;
    }
    if (!aside)
        return;
    view->y++;
    if (view->rows > 1)
        view->rows--;
}

static struct view *create_view(struct places *places, const struct target *target, bool aside)
{
    const struct view_ops *ops = view_find_ops(places->tui, target->kind);
    struct view *view = calloc(1, view_op(ops, size));

    view->ops = ops;
    view->tui = places->tui;
    view->aside = aside;
    view->target = target_copy(&view->arena, target);
    snprintf(view->title, sizeof view->title, "%s", target->title ? target->title : "");
    set_view_size(places, view, aside);
    view_do(view, open);
    return view;
}

static void free_view(struct view *view)
{
    if (!view)
        return;
    view_close(view);
    arena_free(&view->arena);
    free(view);
}

/* ---- opening views and going back ---------------------------------------- */

bool is_place(const struct target *target)
{
    bool numbered = false;

    if (target->id || target->at_ns || target->where)
        return false;
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++) {
        const struct binding *binding = &bindings[i];
        if (binding->view == target->kind && isdigit(binding->keys[0]))
            numbered = true;
    }
    return numbered;
}

static bool is_same_target(const struct target *a, const struct target *b)
{
    const char *a_where = a->where ? a->where : "";
    const char *b_where = b->where ? b->where : "";

    if (a->kind != b->kind || a->about != b->about)
        return false;
    if (a->id != b->id || a->at_ns != b->at_ns)
        return false;
    return !strcmp(a_where, b_where);
}

/* VIEW has left the stack. Free it, unless it is a place, which is kept. */
static void free_view_unless_kept(struct places *places, struct view *view)
{
    bool kept = view == places->kept[view->target.kind];

    if (!kept)
        free_view(view);
}

/* Close the views on top until DEPTH views are left. */
static void close_views_above(struct places *places, int depth)
{
    while (places->depth > depth) {
        places->depth--;
        free_view_unless_kept(places, places->stack[places->depth]);
    }
}

/* Return the index of VIEW on the stack, or -1 if it is not on the stack. */
static int depth_of_view(const struct places *places, const struct view *view)
{
    for (int i = 0; view && i < places->depth; i++)
        if (places->stack[i] == view)
            return i;
    return -1;
}

/* Push VIEW on the stack. If the stack is full, drop its second view: the first one stays, because
 * the user began there. */
static void push_view(struct places *places, struct view *view)
{
    struct view **stack = places->stack;

    if (places->depth == PLACES_DEEP) {
        free_view_unless_kept(places, stack[1]);
        memmove(&stack[1], &stack[2], (PLACES_DEEP - 2) * sizeof *stack);
        places->depth--;
    }
    stack[places->depth] = view;
    places->depth++;
}

bool places_open(struct places *places, const struct target *target)
{
    struct view **kept = is_place(target) ? &places->kept[target->kind] : NULL;
    struct view *view = kept ? *kept : NULL;
    int at = depth_of_view(places, view);

    if (!view_find_ops(places->tui, target->kind))
        return false;
    if (at >= 0) {
        bool again = at == places->depth - 1;
        close_views_above(places, at + 1);
        if (again) {
            free_view(view);
            *kept = create_view(places, target, false);
            places->stack[at] = *kept;
        }
        return again;
    }
    if (places->depth && !kept) {
        bool shown = is_same_target(&places_top(places)->target, target);
        if (shown)
            return false;
    }
    if (view) {
        set_view_size(places, view, false);
        if (!places->tui->scripted)
            view_do(view, refresh);
    }
    view = view ? view : create_view(places, target, false);
    if (kept)
        *kept = view;
    push_view(places, view);
    return false;
}

bool places_go_back(struct places *places)
{
    bool back = places->depth > 1;

    if (back)
        close_views_above(places, places->depth - 1);
    return back;
}

void places_split(struct places *places)
{
    places->tui->split = !places->tui->split;
    if (!places->tui->split) {
        free_view(places->aside);
        places->aside = NULL;
    }
    places_set_sizes(places);
}

struct target places_get_target(struct places *places)
{
    struct view *view = places_top(places);
    struct target target = {0};

    arena_free(&places->lead);
    if (view_op(view->ops, lead))
        view_op(view->ops, lead)(view, &places->lead, &target);
    else
        view_do(view, subject, &target);
    return target;
}

void places_set_sizes(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        set_view_size(places, places->stack[i], false);
    if (places->aside)
        set_view_size(places, places->aside, true);
}

void places_refresh(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        view_do(places->stack[i], refresh);
}

/* On a split screen, show what Enter would open beside the view on top. */
static void update_view_aside(struct places *places)
{
    struct target target = places_get_target(places);
    bool is_known = target.kind || !places_top(places)->busy;

    if (places->aside && is_same_target(&places->aside->target, &target))
        return;
    if (!is_known)
        return;
    free_view(places->aside);
    places->aside = NULL;
    if (target.kind)
        places->aside = create_view(places, &target, true);
}

void places_update(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        view_update(places->stack[i]);
    if (places->tui->split)
        update_view_aside(places);
    if (places->aside)
        view_update(places->aside);
}

/* ---- drawing the views and the lines around them, and clicks there ------- */

static void draw_view(struct places *places, struct view *view)
{
    struct screen *screen = places->tui->screen;

    screen_set_window(screen, view->x, view->columns);
    view_op(view->ops, draw)(view, screen);
    screen_set_window(screen, 0, screen->columns);
}

/* Two views are side by side. For the view that is not on top, draw its name above it and a line at
 * its left edge. */
static void draw_edge_of_view(const struct places *places, const struct view *edge)
{
    struct screen *screen = places->tui->screen;
    const struct view *aside = places->aside;
    char words[220] = " this line leads nowhere further ";
    int above = edge->y - 1;

    if (aside) {
        bool busy = aside->busy && !places->tui->scripted;
        snprintf(words, sizeof words, " %s %.160s%s", view_name(aside->target.kind), aside->title,
                 busy ? " ..." : "");
    }
    for (int y = above; edge->x && y < edge->y + edge->rows; y++)
        screen_put(screen, y, edge->x - 1, 1, STYLE_DIM, "│");
    screen_fill(screen, above, edge->x, edge->columns, STYLE_BAR);
    screen_put(screen, above, edge->x, edge->columns, STYLE_BAR, words);
}

void places_draw(struct places *places)
{
    struct view edge = {0};

    draw_view(places, places_top(places));
    if (!places->tui->split)
        return;
    set_view_size(places, &edge, true);
    if (places->aside)
        draw_view(places, places->aside);
    draw_edge_of_view(places, &edge);
}

/* Draw the note of the view on top at the right of the screen's first line. Returns how many
 * columns of this line are left. */
static int draw_note_of_view(const struct places *places, const struct view *view)
{
    struct screen *screen = places->tui->screen;
    int note = screen_width(screen, view->note, screen->columns / 2);
    int left = screen->columns - note;

    screen_put(screen, 0, left - 1, note, STYLE_BAR, view->note);
    if (view->busy && !places->tui->scripted)
        screen_put(screen, 0, left - 5, 3, STYLE_BAR, "...");
    return left - 6;
}

/* Return the index of the last place on the stack. The path on the screen leaves out the views
 * between the first view and this place, so that number keys do not make the path longer. */
static int find_last_place(const struct places *places)
{
    int at = places->depth - 1;

    while (at > 1 && !is_place(&places->stack[at]->target))
        at--;
    return at > 1 ? at : 1;
}

/* Draw the path to the view on top in WIDE columns from column X on. If not all names fit, the
 * first ones are left out. `crumbs` gets where each name stands, for clicks. */
static void draw_path(struct places *places, int x, int wide)
{
    struct screen *screen = places->tui->screen;
    const char *title = places_top(places)->title;
    /* the text of the path: " > functions > function scale" */
    char path[160 + PLACES_DEEP * 44];
    char *end = path;
    const char *starts[PLACES_DEEP] = {NULL};
    int last = places->depth - 1;
    int place = find_last_place(places);
    int from = 0;
    int used;

    *path = 0;
    for (int i = 0; i <= last; i++) {
        const char *name = view_name(places->stack[i]->target.kind);
        if (i && i < place)
            continue;
        starts[i] = end;
        end += sprintf(end, " > %.40s", name);
    }
    if (*title)
        sprintf(end, " %s", title);
    while (from < last && screen_width(screen, starts[from], SCREEN_MOST) > wide)
        from = from ? from + 1 : place;
    used = screen_put(screen, 0, x, wide, STYLE_BAR, starts[from]);
    memset(places->crumbs, 0, sizeof places->crumbs);
    for (int i = from; i <= last; i++)
        if (starts[i])
            places->crumbs[i] = x + (int)(starts[i] - starts[from]);
    places->crumbs[places->depth] = x + used;
}

void places_bar_draw(struct places *places, const char *name, const char *state)
{
    struct screen *screen = places->tui->screen;
    int room;
    int x = 1;

    screen_fill(screen, 0, 0, screen->columns, STYLE_BAR);
    room = draw_note_of_view(places, places_top(places));
    x += screen_put(screen, 0, x, room / 3, STYLE_BAR, name);
    x += screen_put(screen, 0, x, room - x, STYLE_BAR, state);
    draw_path(places, x, room - x);
}

/* Write the hint to LINE, which has room for SCREEN_MOST bytes: as many keys as fit, with what they
 * do in the view on top. Keys for going back and for ending come first. */
static void write_hint_line(const struct places *places, char *line)
{
    const char *own = view_op(places_top(places)->ops, keys);
    const char *back = places->depth > 1 ? bindings[REQUEST_BACK].foot : NULL;
    const char *quit = back ? bindings[REQUEST_QUIT].foot : "q quits";
    size_t room = (size_t)places->tui->screen->columns;
    const char *at, *words;
    char all[SCREEN_MOST];
    size_t used = 0;
    int bytes;

    snprintf(all, sizeof all, "%s%s%s  %s%s%s  %s  %s", back ? back : "", back ? "  " : "",
             bindings[REQUEST_HELP].foot, quit, own ? "  " : "", own ? own : "",
             bindings[REQUEST_VIEW_1].foot, bindings[REQUEST_COMMAND].foot);
    *line = 0;
    at = all;
    while ((words = view_read_key_words(&at, &bytes))) {
        const char *gap = used ? "  " : "";
        bool fits = used + (size_t)bytes + 2 < room;
        if (fits)
            used += (size_t)sprintf(line + used, "%s%.*s", gap, bytes, words);
    }
}

void places_hint_draw(struct places *places)
{
    struct screen *screen = places->tui->screen;
    char line[SCREEN_MOST];

    write_hint_line(places, line);
    screen_put(screen, screen->rows - 1, 0, screen->columns, STYLE_DIM, line);
}

/* WORDS, which has BYTES bytes, is a part of the hint, such as "+ - * zoom". Return the key for a
 * click on its column X: the key that is drawn there, otherwise the first key. If WORDS does not
 * begin with a key, return the key of the help. */
static int find_key_of_hint(const char *words, int bytes, int x)
{
    int code = KEY_NONE;

    for (int at = 0; at < bytes; at++) {
        int end = at + (int)strcspn(words + at, " ");
        int one = key_from_name(words + at, (size_t)((end < bytes ? end : bytes) - at));
        if (one == KEY_NONE)
            break;
        if (code == KEY_NONE || at <= x)
            code = one;
        at = end;
    }
    return code == KEY_NONE ? '?' : code;
}

int places_find_hint_key(const struct places *places, int x)
{
    char line[SCREEN_MOST];
    const char *at = line;
    const char *words;
    int bytes;

    write_hint_line(places, line);
    while ((words = view_read_key_words(&at, &bytes))) {
        int from = (int)(words - line);
        if (x >= from && x < from + bytes)
            return find_key_of_hint(words, bytes, x - from);
    }
    return KEY_NONE;
}

/* Return the index of the view whose name is drawn at column X of the first line, or -1 if
 * there is none. */
static int find_view_name_at_column(const struct places *places, int x)
{
    const int *crumbs = places->crumbs;

    if (x >= crumbs[places->depth])
        return -1;
    for (int i = places->depth - 1; i >= 0; i--) {
        bool shown = crumbs[i];
        if (shown && x >= crumbs[i])
            return i;
    }
    return -1;
}

bool places_handle_click(struct places *places, struct key *key)
{
    const struct view *view = places_top(places);
    const struct view *aside = places->aside;
    bool is_below = key->y >= view->y + view->rows;
    bool is_beside = is_below || key->x >= view->columns;

    if (key->y == 0) {
        int crumb = find_view_name_at_column(places, key->x);
        if (crumb >= 0)
            close_views_above(places, crumb + 1);
        return false;
    }
    if (!places->tui->split || !is_beside)
        return true;
    if (aside && key->y < places->tui->screen->rows - 1)
        tui_open_view(places->tui, &aside->target);
    return false;
}

void places_close(struct places *places)
{
    close_views_above(places, 0);
    for (int kind = 0; kind < VIEW_KINDS; kind++)
        free_view(places->kept[kind]);
    free_view(places->aside);
    arena_free(&places->lead);
    *places = (struct places){.tui = places->tui};
}

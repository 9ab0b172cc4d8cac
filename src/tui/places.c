/* tui/places.c -- the views that are open. See tui/places.h. */
#include "tui/places.h"

#include <ctype.h>

enum { BESIDE_COLUMNS = 120 /* from here on a split screen has its halves side by side */ };

/* ---- views begin and end ------------------------------------------------- */

static bool beside(const struct screen *screen)
{
    return screen->columns >= BESIDE_COLUMNS;
}

/* Its part of the screen: ASIDE is the lower or the right half, which has a line of its own for
 * what it is. */
static void view_fit(const struct places *places, struct view *view, bool aside)
{
    const struct screen *screen = places->tui->screen;
    int rows = screen->rows > 3 + places->tui->below ? screen->rows - 2 - places->tui->below : 1;
    int half = beside(screen) ? screen->columns / 2 : rows / 2;

    view->x = 0;
    view->y = 1;
    view->rows = rows;
    view->columns = screen->columns;
    if (!places->tui->split)
        return;
    if (beside(screen)) {
        view->x = aside ? half + 1 : 0;
        view->columns = aside ? screen->columns - half - 1 : half;
    } else {
        view->rows = aside ? rows - half : half;
        view->y = aside ? 1 + half : 1;
    }
    view->y += aside;
    view->rows -= aside && view->rows > 1;
}

static struct view *view_begin(struct places *places, const struct target *target, bool aside)
{
    const struct view_ops *ops = view_of(places->tui, target->kind);
    struct view *view = calloc(1, view_op(ops, size));

    view->ops = ops;
    view->tui = places->tui;
    view->aside = aside;
    view->target = target_keep(&view->arena, target);
    snprintf(view->title, sizeof view->title, "%s", target->title ? target->title : "");
    view_fit(places, view, aside);
    view_do(view, open);
    return view;
}

static void view_end(struct view *view)
{
    if (!view)
        return;
    view_close(view);
    arena_free(&view->arena);
    free(view);
}

/* ---- going --------------------------------------------------------------- */

bool place_is(const struct target *target)
{
    bool numbered = false;

    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++)
        numbered = numbered || (bindings[i].view == target->kind && isdigit(bindings[i].keys[0]));
    return numbered && !target->id && !target->at_ns && !target->where;
}

static bool target_same(const struct target *a, const struct target *b)
{
    const char *was = a->where ? a->where : "";
    const char *is = b->where ? b->where : "";

    return a->kind == b->kind && a->id == b->id && a->at_ns == b->at_ns && a->about == b->about &&
           !strcmp(was, is);
}

/* A view that is on no way any more; a place is kept. */
static void leave(struct places *places, struct view *view)
{
    if (view != places->kept[view->target.kind])
        view_end(view);
}

/* Back to the view before DEPTH. */
static void leave_to(struct places *places, int depth)
{
    while (places->depth > depth)
        leave(places, places->stack[--places->depth]);
}

bool places_go(struct places *places, const struct target *target)
{
    struct view **kept = place_is(target) ? &places->kept[target->kind] : NULL;
    struct view *view = kept ? *kept : NULL;
    int at = 0;

    if (!view_of(places->tui, target->kind))
        return false;
    while (view && at < places->depth && places->stack[at] != view)
        at++;
    if (view && at < places->depth) {
        bool again = at == places->depth - 1;
        leave_to(places, at + 1);
        if (again) {
            view_end(view);
            places->stack[at] = *kept = view_begin(places, target, false);
        }
        return again;
    }
    if (places->depth && !kept && target_same(&places_top(places)->target, target))
        return false; /* it is shown */
    if (view) {
        view_fit(places, view, false);
        if (!places->tui->scripted)
            view_do(view, refresh);
    }
    if (places->depth == PLACES_DEEP) {
        leave(places, places->stack[1]);
        memmove(&places->stack[1], &places->stack[2], (PLACES_DEEP - 2) * sizeof *places->stack);
        places->depth--;
    }
    view = view ? view : view_begin(places, target, false);
    if (kept)
        *kept = view;
    places->stack[places->depth++] = view;
    return false;
}

bool places_back(struct places *places)
{
    bool back = places->depth > 1;

    if (back)
        leave_to(places, places->depth - 1);
    return back;
}

void places_split(struct places *places)
{
    places->tui->split = !places->tui->split;
    if (!places->tui->split) {
        view_end(places->aside);
        places->aside = NULL;
    }
    places_fit(places);
}

struct target places_lead(struct places *places)
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

void places_fit(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        view_fit(places, places->stack[i], false);
    if (places->aside)
        view_fit(places, places->aside, true);
}

void places_refresh(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        view_do(places->stack[i], refresh);
}

/* The view beside the one on top is that of the line under its cursor. */
static void aside_settle(struct places *places)
{
    struct target target = places_lead(places);

    if (places->aside && target_same(&places->aside->target, &target))
        return;
    if (!target.kind && places_top(places)->busy) /* it is not known yet */
        return;
    view_end(places->aside);
    places->aside = target.kind ? view_begin(places, &target, true) : NULL;
}

void places_settle(struct places *places)
{
    for (int i = 0; i < places->depth; i++)
        view_settle(places->stack[i]);
    if (places->tui->split)
        aside_settle(places);
    if (places->aside)
        view_settle(places->aside);
}

/* ---- drawing ------------------------------------------------------------- */

static void view_show(struct places *places, struct view *view)
{
    struct screen *screen = places->tui->screen;

    screen_window(screen, view->x, view->columns);
    view_op(view->ops, draw)(view, screen);
    screen_window(screen, 0, screen->columns);
}

/* "│" to the left of the view that stands beside the one on top, and the words above it. */
static void edge_draw(const struct places *places, const struct view *edge)
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

    view_show(places, places_top(places));
    if (!places->tui->split)
        return;
    view_fit(places, &edge, true);
    if (places->aside)
        view_show(places, places->aside);
    edge_draw(places, &edge);
}

/* The note of the view on top, at the right. Returns the columns that are left beside it. */
static int note_draw(const struct places *places, const struct view *view)
{
    struct screen *screen = places->tui->screen;
    int note = screen_width(screen, view->note, screen->columns / 2);
    int left = screen->columns - note;

    screen_put(screen, 0, left - 1, note, STYLE_BAR, view->note);
    if (view->busy && !places->tui->scripted)
        screen_put(screen, 0, left - 5, 3, STYLE_BAR, "...");
    return left - 6;
}

/* The names of as many of the last views as fit into WIDE columns from X on, and where each is. */
static void path_draw(struct places *places, int x, int wide)
{
    struct screen *screen = places->tui->screen;
    const char *title = places_top(places)->title;
    char path[160 + PLACES_DEEP * 44]; /* " > functions > function scale" */
    char *end = path;
    const char *starts[PLACES_DEEP];
    int last = places->depth - 1;
    int from = 0;
    int used;

    for (int i = 0; i <= last; i++) {
        starts[i] = end;
        end += sprintf(end, " > %.40s", view_name(places->stack[i]->target.kind));
    }
    sprintf(end, "%s%s", *title ? " " : "", title);
    while (from < last && screen_width(screen, starts[from], SCREEN_MOST) > wide)
        from++;
    used = screen_put(screen, 0, x, wide, STYLE_BAR, starts[from]);
    memset(places->crumbs, 0, sizeof places->crumbs);
    for (int i = from; i <= last; i++)
        places->crumbs[i] = x + (int)(starts[i] - starts[from]);
    places->crumbs[places->depth] = x + used;
}

/* The trace, as many of the last views as there is room for, and the note of the one on top. */
void places_bar_draw(struct places *places, const char *name, const char *state)
{
    struct screen *screen = places->tui->screen;
    int room;
    int x = 1;

    screen_fill(screen, 0, 0, screen->columns, STYLE_BAR);
    room = note_draw(places, places_top(places));
    x += screen_put(screen, 0, x, room / 3, STYLE_BAR, name);
    x += screen_put(screen, 0, x, room - x, STYLE_BAR, state);
    path_draw(places, x, room - x);
}

void places_hint_draw(struct places *places)
{
    struct screen *screen = places->tui->screen;
    size_t wide = (size_t)screen->columns;
    const char *own = view_op(places_top(places)->ops, keys);
    const char *at, *words;
    char all[SCREEN_MOST];
    char line[SCREEN_MOST] = "";
    size_t used = 0;
    int bytes;

    snprintf(all, sizeof all, "%s  %s  %s%s%s  %s  %s", bindings[REQUEST_BACK].foot,
             bindings[REQUEST_HELP].foot, own ? own : "", own ? "  " : "",
             bindings[REQUEST_VIEW_1].foot, bindings[REQUEST_COMMAND].foot,
             bindings[REQUEST_QUIT].foot);
    at = all;
    while ((words = view_keys(&at, &bytes)))
        if (used + (size_t)bytes + 2 < wide) /* as far as there is room */
            used += (size_t)sprintf(line + used, "%s%.*s", used ? "  " : "", bytes, words);
    screen_put(screen, screen->rows - 1, 0, screen->columns, STYLE_DIM, line);
}

/* The view whose name is at column X of the first line; -1: none. */
static int crumb_at(const struct places *places, int x)
{
    if (x >= places->crumbs[places->depth])
        return -1;
    for (int i = places->depth; i-- > 0;)
        if (places->crumbs[i] && x >= places->crumbs[i])
            return i;
    return -1;
}

bool places_click(struct places *places, struct key *key)
{
    const struct view *view = places_top(places);
    const struct view *aside = places->aside;
    bool beside = key->y >= view->y + view->rows || key->x >= view->columns;

    if (key->y == 0) {
        int crumb = crumb_at(places, key->x);
        if (crumb >= 0)
            leave_to(places, crumb + 1);
        return false;
    }
    if (!places->tui->split || !beside)
        return true;
    if (aside && key->y < places->tui->screen->rows - 1)
        tui_go(places->tui, &aside->target);
    return false;
}

void places_close(struct places *places)
{
    leave_to(places, 0);
    for (int kind = 0; kind < VIEW_KINDS; kind++)
        view_end(places->kept[kind]);
    view_end(places->aside);
    arena_free(&places->lead);
    *places = (struct places){.tui = places->tui};
}

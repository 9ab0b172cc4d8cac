/* tui/view.c -- what all views have in common: targets, and the chosen line. See tui/view.h.
 *
 * Runs in: the viewer. */
#include "tui/view.h"

struct target target_keep(struct arena *arena, const struct target *target)
{
    struct target kept = *target;

    kept.where = target->where ? arena_print(arena, "%s", target->where) : NULL;
    kept.title = target->title ? arena_print(arena, "%s", target->title) : NULL;
    return kept;
}

void view_choose(struct view *view, size_t at)
{
    size_t shown = view->rows > view->head ? (size_t)(view->rows - view->head) : 1, count = view->count;

    view->at = at < count ? at : count ? count - 1 : 0;
    if (view->at < view->top)
        view->top = view->at;
    if (view->at >= view->top + shown)
        view->top = view->at - shown + 1;
    if (view->top + shown > count)
        view->top = count > shown ? count - shown : 0;
}

bool view_move(struct view *view, enum request request)
{
    long height = view->rows - view->head, page = height > 1 ? height - 1 : 1, by = 0, scroll = 0;

    switch (request) {
    case REQUEST_UP: by = -1; break;
    case REQUEST_DOWN: by = 1; break;
    case REQUEST_WHEEL_UP: by = -3; break;
    case REQUEST_WHEEL_DOWN: by = 3; break;
    case REQUEST_PAGE_UP: by = scroll = -page; break;
    case REQUEST_PAGE_DOWN: by = scroll = page; break;
    case REQUEST_HALF_UP: by = scroll = -(page + 1) / 2; break;
    case REQUEST_HALF_DOWN: by = scroll = (page + 1) / 2; break;
    case REQUEST_HOME: by = -(long)view->at; break;
    case REQUEST_END: by = (long)view->count; break;
    default: return false;
    }
    view->top = (long)view->top + scroll > 0 ? view->top + (size_t)scroll : 0;
    view_choose(view, (long)view->at + by > 0 ? view->at + (size_t)by : 0);
    return true;
}

bool view_find(struct view *view, int direction, view_fits *fits, const char *text)
{
    for (size_t i = 1, count = view->count; i <= count; i++) {
        size_t at = direction > 0 ? (view->at + i) % count : (view->at + count - i % count) % count;
        if (fits(view, at, text)) {
            view_choose(view, at);
            return true;
        }
    }
    return false;
}

bool view_click(struct view *view, enum request request, const struct key *key, bool *again)
{
    int line = key->y - view->y - view->head;
    size_t at = view->top + (size_t)line;

    if (line < 0 || line >= view->rows - view->head || at >= view->count)
        return false;
    *again = at == view->at || request == REQUEST_DOUBLE;
    view_choose(view, at);
    return true;
}

void view_words(struct view *view, struct screen *screen, int style, const char *words)
{
    screen_put(screen, view->y + 1, 2, view->columns - 4, style, words);
}

int view_row(const struct view *view, struct screen *screen, int y, bool chosen)
{
    if (!chosen)
        return STYLE_NORMAL;
    screen_fill(screen, y, 0, view->columns, STYLE_SELECTED);
    screen_put(screen, y, 0, 1, STYLE_SELECTED, ">");
    return STYLE_SELECTED;
}

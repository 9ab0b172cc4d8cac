/* tui/views/marks.c -- the view `marks`: what was marked (tui/places.h), as lines that lead there. */
#include "tui/view.h"

static void marks_settle(struct view *view)
{
    view->count = view->tui->marks->all.count;
    view_choose(view, view->at);
}

static void marks_draw(struct view *view, struct screen *screen)
{
    if (!view->count)
        view_words(view, screen, STYLE_DIM, "nothing was marked: m marks what a line leads to");
    for (size_t at = view->top; at < view->count && at < view->top + (size_t)view->rows; at++) {
        int y = view->y + (int)(at - view->top), style = view_row(view, screen, y, at == view->at);
        screen_put(screen, y, 2, view->columns - 2, style, view->tui->marks->all.at[at].words);
    }
}

static void marks_lead(struct view *view, struct arena *arena, struct target *target)
{
    if (view->at < view->tui->marks->all.count)
        *target = view->tui->marks->all.at[view->at].target;
}

const struct view_ops view_marks = {
    .name = "marks", .summary = "what was marked with m", .keys = "Enter opens  v beside", .size = sizeof(struct view), .settle = marks_settle,
    .draw = marks_draw, .request = view_pick, .lead = marks_lead,
};

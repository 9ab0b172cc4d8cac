/* tui/places.h -- the open views: a stack of them, and one beside the top.
 *
 * If the user opened `functions` from the overview and then a function, the stack has the views
 *
 *     overview > functions > function slow
 *
 * The last view is on top, and Esc goes back to the one before. On a split screen, `aside` is a
 * view beside the one on top: it shows what Enter would open, and follows the cursor.
 *
 * A view that a number key opens is a place: there is only one of it. A place keeps its filter,
 * order and cursor after Esc has closed it, until its number is typed again. */
#ifndef DYNTRACE_PLACES_H
#define DYNTRACE_PLACES_H

#include "tui/view.h"

/* the most views on the stack; if more are opened, the second oldest is closed */
enum { PLACES_DEEP = 64 };

struct places {
    struct tui *tui;                 /* borrowed */
    struct view *stack[PLACES_DEEP]; /* owned, except views that are places, which `kept` owns */
    int depth;                       /* number of views on the stack; the last one is on top */
    /* owned: the places that have been opened; NULL for others. `stack` borrows them */
    struct view *kept[VIEW_KINDS];
    /* owned: the view beside the one on top. NULL if the screen is not split, or if the line under
     * the cursor leads nowhere */
    struct view *aside;
    struct arena lead; /* owns the strings of the target that places_get_target() returned last */
    /* for each view on the stack, the column of the first screen line where its name
     * was drawn, or 0 */
    int crumbs[PLACES_DEEP + 1];
};

static inline struct view *places_top(const struct places *places)
{
    return places->depth ? places->stack[places->depth - 1] : NULL;
}

/* Is TARGET a place: a view that a number key opens? */
bool is_place(const struct target *target);

/* Open the view that TARGET names. If it is a place that is on the stack already, go back to it. If
 * TARGET is on top already, a place is opened anew, and true is returned; any other view stays as
 * it is. Returns false in all other cases. */
bool places_open(struct places *places, const struct target *target);

/* Close the view on top and go back to the one below. Returns false if there is none below. */
bool places_go_back(struct places *places);

/* Split the screen: beside the view on top, show what Enter would open. If the screen is split
 * already, end that. */
void places_split(struct places *places);

/* Return what Enter would open from the view on top. The strings of the target are valid until
 * the next call. */
struct target places_get_target(struct places *places);

/* After the screen was resized or split: give each view its new position and size. */
void places_set_sizes(struct places *places);

void places_update(struct places *places);
void places_refresh(struct places *places);

/* places_draw() draws the view on top, and the one beside it. places_bar_draw() draws the first
 * line of the screen: the NAME and STATE of the trace, and the path to the view on top. The path
 * has the first view, and the views from the last place on. */
void places_draw(struct places *places);
void places_bar_draw(struct places *places, const char *name, const char *state);

/* Draw the keys of the view on top, with what they do, in the last line of the screen. */
void places_hint_draw(struct places *places);

/* Return the key that is drawn in column X of the last line, or KEY_NONE. A click on the words
 * behind a key counts as a click on the key. */
int places_find_hint_key(const struct places *places, int x);

/* Handle the click KEY. On a view's name in the first line: go back to that view. On the view
 * beside: open it. If the click is inside the view on top, returns true, because the request() of
 * that view has to handle it. */
bool places_handle_click(struct places *places, struct key *key);

void places_close(struct places *places);

#endif

/* tui/places.h -- the open views: a stack of them, and one beside the top.
 *
 *     overview > functions > function slow          stack, up to `depth`: Esc goes back
 *     [ functions         ]
 *     [ > slow            ]
 *     [ function slow     ]                         aside: what Enter would open; follows the
 *                                                   cursor
 *
 * A view that a number key opens is a place: there is only one of it. A place keeps its filter,
 * order and cursor after Esc has closed it, until its number is typed again. */
#ifndef DYNTRACE_PLACES_H
#define DYNTRACE_PLACES_H

#include "tui/view.h"

enum { PLACES_DEEP = 64 /* views; if more are opened, the second oldest is closed */ };

struct places {
    struct tui *tui;                 /* borrowed */
    struct view *stack[PLACES_DEEP]; /* owned, except places, which `kept` owns */
    int depth;                       /* how many views are on the stack; the last is on top */
    /* owned: the places that have been opened, or NULL; `stack` borrows them */
    struct view *kept[VIEW_KINDS];
    /* owned: the view beside the one on top; NULL if the screen is not split, or if the line under
     * the cursor has no target */
    struct view *aside;
    struct arena lead; /* holds the strings of the target that places_lead() returned */
    /* the column of the first screen line where each view's name was drawn, or 0 if it was not
     * drawn */
    int crumbs[PLACES_DEEP + 1];
};

static inline struct view *places_top(const struct places *places)
{
    return places->depth ? places->stack[places->depth - 1] : NULL;
}

/* Is TARGET a place: a view that a number key opens? */
bool place_is(const struct target *target);

/* Open the view that TARGET names. If TARGET is a place that is on the stack already, go back to
 * it. If TARGET is on top already, a place is opened afresh (returns true), and other views
 * stay. Returns false in all other cases. */
bool places_go(struct places *places, const struct target *target);

/* Close the view on top and go back to the one below. Returns false if there is none below. */
bool places_back(struct places *places);

/* Split the screen, so that the view that Enter would open is shown beside the one on top; or
 * end the split. */
void places_split(struct places *places);

/* Return the target that Enter would open from the view on top. The target's strings are valid
 * until the next call. */
struct target places_lead(struct places *places);

/* Give each view its new position and size, after the screen was resized or split. */
void places_fit(struct places *places);

void places_settle(struct places *places);
void places_refresh(struct places *places);

/* places_draw() draws the view on top, and the one beside it. places_bar_draw() draws the first
 * line of the screen: the NAME and STATE of the trace, then the path to the view on top: the first
 * view, and the views from the last place on. */
void places_draw(struct places *places);
void places_bar_draw(struct places *places, const char *name, const char *state);

/* Draw the keys of the view on top in the last line of the screen. */
void places_hint_draw(struct places *places);

/* Return the key that stands in column X of that line, or KEY_NONE. A click on a key's words is a
 * click on the key. */
int places_hint_click(const struct places *places, int x);

/* Handle the click KEY, unless it is inside the view on top: a view's name in the first line
 * goes back to that view, the view beside opens. Returns true if the click is inside the view on
 * top, whose request() has to handle it. */
bool places_click(struct places *places, struct key *key);

void places_close(struct places *places);

#endif

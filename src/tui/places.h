/* tui/places.h -- the views that are open: the way to the one on top, and the one beside it.
 *
 *     overview > functions > function slow          stack, up to `depth`: Esc goes back
 *     [ functions         ]
 *     [ > slow            ]
 *     [ function slow     ]                         aside: what Enter would open, and follows the
 *                                                   cursor
 *
 * The views of the number keys are places: there is one of each, with its filter, order and cursor,
 * which is kept when the way to it is left, until its number is typed again. */
#ifndef DYNTRACE_PLACES_H
#define DYNTRACE_PLACES_H

#include "tui/view.h"

enum { PLACES_DEEP = 64 /* views; the oldest but the first goes when there are more */ };

struct places {
    struct tui *tui;                 /* borrowed */
    struct view *stack[PLACES_DEEP]; /* owned, but for places */
    int depth;                       /* the view on top is the one before it */
    struct view *kept[VIEW_KINDS];   /* owned: the places, which the stack borrows; or NULL */
    /* owned: while tui->split; or NULL: what the cursor is on leads nowhere */
    struct view *aside;
    struct arena lead; /* the texts of its target */
    /* where the names of views begin in the uppermost line, as it was drawn; 0: not there */
    int crumbs[PLACES_DEEP + 1];
};

static inline struct view *places_top(const struct places *places)
{
    return places->depth ? places->stack[places->depth - 1] : NULL;
}

/* TARGET names a view that there is one of. */
bool place_is(const struct target *target);

/* Open what TARGET names, or go there. On top already: a place begins anew (true), others stay. */
bool places_go(struct places *places, const struct target *target);

/* One view back; false: there is none. */
bool places_back(struct places *places);

/* Show what Enter opens beside the view on top, or no more. */
void places_split(struct places *places);

/* Where the line under the cursor leads; its texts hold until the next call. */
struct target places_lead(struct places *places);

/* The size of the screen, or how it is split, has changed. */
void places_fit(struct places *places);

void places_settle(struct places *places);
void places_refresh(struct places *places);

/* The view on top and the one beside it, then the way to it, after the NAME of the trace and what
 * is said of that. */
void places_draw(struct places *places);
void places_bar_draw(struct places *places, const char *name, const char *state);

/* The keys of the view on top, where nothing is to be said. */
void places_hint_draw(struct places *places);

/* KEY, of the mouse, is in the view on top, by whose columns it is then; false: it is elsewhere,
 * and that is done. */
bool places_click(struct places *places, struct key *key);

void places_close(struct places *places);

#endif

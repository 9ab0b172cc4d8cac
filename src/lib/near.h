/* lib/near.h -- "did you mean": the names that are most like a mistyped name.
 *
 *     struct near near = near_begin("reprot");
 *     for each name that exists
 *         near_offer_name(&near, name);
 *     near_make_question(&near, "")     "; did you mean report?", or "" if no name is like it */
#ifndef DYNTRACE_NEAR_H
#define DYNTRACE_NEAR_H

enum {
    NEAR_KEPT = 3,    /* the most names that are proposed */
    NEAR_BYTES = 200, /* bytes of the longest name that is proposed */
};

struct near_name {
    char text[NEAR_BYTES + 1];
    int distance; /* the cost of the changes that turn the typed name into this one */
};

struct near {
    const char *typed;                /* borrowed */
    struct near_name kept[NEAR_KEPT]; /* the proposed names, the nearest first */
    int count;
    char question[NEAR_KEPT * (NEAR_BYTES + 8) + 32];
};

/* Begin to look for names like TYPED, which is borrowed until near_make_question. */
struct near near_begin(const char *typed);

/* If NAME is like the typed name, and among the nearest so far, keep a copy of NAME. The user may
 * have meant the last part of a dotted NAME ("Net.forward"). */
void near_offer_name(struct near *near, const char *name);

/* Return "; did you mean a, b or c?", which lives as long as NEAR. Returns OTHERWISE if no offered
 * name is like the typed one. */
const char *near_make_question(struct near *near, const char *otherwise);

#endif

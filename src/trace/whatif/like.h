/* trace/whatif/like.h -- would the guards of one call's entry let another call pass?
 *
 * Runs in: the viewer. Between trace/whatif/whatif.c and trace/whatif/like.c.
 *
 * A class is an entry that was recorded (its index: the calls that ran it), or, from entry_count on, one signature of
 * calls that ran none. */
#ifndef DYNTRACE_WHATIF_LIKE_H
#define DYNTRACE_WHATIF_LIKE_H

#include <stdbool.h>
#include <stdint.h>

#include "replay.h"
#include "trace/whatif/whatif.h"

enum like { LIKE_NO, LIKE_GUESS_NO, LIKE_GUESS_YES, LIKE_YES };

struct likeness; /* what is known of classes and pairs of them */

/* What is known of all pairs from the recorded checks. NULL: no memory, or the trace could not be read. */
struct likeness *likeness_open(struct db *db, const struct replay *replay);
void likeness_free(struct likeness *l);

/* The class of lookup LOOKUP. */
uint32_t likeness_class(const struct likeness *l, uint32_t lookup);
uint32_t likeness_classes(const struct likeness *l);

/* The number of a backend's name; of a class: the one its calls came with, or REPLAY_NONE. */
uint32_t likeness_backend(const struct likeness *l, uint32_t class_);

/* Did calls of CODE pass over entries of another backend that has the same name? Then names do not tell them apart. */
bool likeness_namesakes(const struct likeness *l, uint32_t code);

/* Another set of knobs: what was said about them before is forgotten. KNOBS is borrowed until the next. */
void likeness_begin(struct likeness *l, const struct whatif_knobs *knobs);

/* Would an entry made for class MADE take the call of LOOKUP? */
enum like likeness_fits(struct likeness *l, uint32_t made, uint32_t lookup);

/* Which assumptions were made since likeness_begin. */
enum {
    ASSUMED_ALIKE = 1,     /* calls that ran one entry are alike */
    ASSUMED_SIGNATURE = 2, /* calls with one signature are alike */
    ASSUMED_DYNAMIC = 4,   /* dynamic sizes bring no other guards */
    ASSUMED_AUTOMATIC = 8, /* torch makes sizes dynamic that change */
    ASSUMED_HIDDEN = 16,   /* what a guard looked at is not in the signature */
    ASSUMED_DROPPED = 32,  /* what a dropped guard told apart may run the same code */
    ASSUMED_LAMBDA = 64,   /* guards written in Python */
};
int likeness_assumed(const struct likeness *l);

#endif

/* trace/whatif/knobs.h -- the settings of a what-if.
 *
 * Runs in: the viewer. A setting is a row of the table in trace/whatif/knobs.c. */
#ifndef DYNTRACE_WHATIF_KNOBS_H
#define DYNTRACE_WHATIF_KNOBS_H

#include "lib/list.h"
#include "trace/replay/cache_order.h"

struct db;

struct whatif_dimension {
    const char *source; /* "L['x']" */
    int dimension;      /* -1: all of it */
};

struct whatif_knobs {
    char *text; /* owned: them as they were typed, with commas between; NULL: none was changed */
    int64_t recompile_limit, accumulated_limit; /* 0: as recorded */
    enum order_policy order;
    bool isolate;        /* entries and limit of each region, torch.compile(), for itself */
    bool backends_apart; /* entries and limit of each backend for themselves */
    bool dynamic_all;
    LIST(struct whatif_dimension) dynamic;
    LIST(const char *) drops; /* kinds of guards, or ids: of one, and of those of its kind and source */
    struct arena texts;       /* what these two name */
    const bool *codes; /* borrowed, by index of code: dynamic and drop_guard hold there only; NULL: everywhere */
};

/* KEY=VALUE or several, with commas between them outside of brackets, added to KNOBS. False: it was said why not. */
bool whatif_knob(struct whatif_knobs *knobs, const char *text);
/* Does DB have what KNOBS name, sources and guards? False: it was said what it lacks. */
bool whatif_knobs_known(const struct whatif_knobs *knobs, struct db *db);
void whatif_knobs_free(struct whatif_knobs *knobs);

#endif

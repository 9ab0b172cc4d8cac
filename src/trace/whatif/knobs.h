/* trace/whatif/knobs.h -- the settings of a what-if. How they are typed is in trace/whatif/ask.c.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_WHATIF_KNOBS_H
#define DYNTRACE_WHATIF_KNOBS_H

#include "lib/list.h"
#include "trace/replay/cache_order.h"

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

#endif

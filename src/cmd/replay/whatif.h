/* cmd/replay/whatif.h -- `dyntrace replay --what-if`.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_WHATIF_H
#define DYNTRACE_REPLAY_WHATIF_H

#include <stdbool.h>

struct whatif_asked;

/* CALLS: a row for each call. The exit status. */
int replay_whatif(const struct whatif_asked *asked, bool calls);

#endif

/* doubts.c -- what makes any answer from a trace uncertain. See doubts.h.
 *
 * Runs in: the viewer. */
#include "doubts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "say.h"

struct doubts doubts_say(struct db *db, const char *so_far, const char *missing)
{
    char *state = db_meta(db, "state");
    struct doubts doubts = {
        .recording = state && !strcmp(state, "recording"),
        .lost = db_integer(db, 0, "SELECT SUM(COALESCE(events, 1)) FROM loss WHERE cause NOT LIKE 'stall:%'"),
    };

    if (doubts.recording && so_far)
        say_error("%s: is still being recorded, or was interrupted: %s", db_path(db), so_far);
    if (doubts.lost > 0 && missing)
        say_error("%s: %" PRId64 " events were lost (`dyntrace report` says where): %s", db_path(db), doubts.lost, missing);
    free(state);
    return doubts;
}

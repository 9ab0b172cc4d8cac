/* trace/doubts.c -- what makes any answer from a trace uncertain. See trace/doubts.h. */
#include "trace/doubts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/say.h"
#include "trace/db.h"

struct doubts doubts_say(struct db *db, const char *so_far, const char *missing)
{
    char *state = db_meta(db, "state");
    struct doubts doubts = {
        .recording = state && !strcmp(state, "recording"),
        .lost = db_integer(db, 0, "SELECT SUM(COALESCE(events, 1)) FROM losses WHERE NOT is_stall"),
    };

    if (doubts.recording && so_far)
        say_error("%s: is still being recorded, or was interrupted: %s", db_path(db), so_far);
    if (doubts.lost > 0 && missing)
        say_error("%s: %" PRId64 " events were lost (`dyntrace report` says where): %s",
                  db_path(db), doubts.lost, missing);
    free(state);
    return doubts;
}

const char *doubts_frames(struct db *db)
{
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'decided')"))
        return "only calls that a compiler decided (--frames decided)";
    if (db_integer(db, 0, "SELECT EXISTS (SELECT 1 FROM process WHERE mode = 'user')"))
        return "not the standard library's, not site-packages' (--frames user)";
    return NULL;
}

const char *doubts_values(struct db *db)
{
    char *kept = db_meta(db, "values");
    const char *words =
        !kept || !strcmp(kept, "all") ? NULL
        : !strcmp(kept, "types")
            ? "types, shapes and dtypes were recorded, no values (--values types)"
        : !strcmp(kept, "off")
            ? "nothing of arguments and of what guards compare was recorded (--values off)"
            : "of some processes values were not recorded (--values)";

    free(kept);
    return words;
}

/* trace/why/whatif.c -- what would come of a remedy: the recorded calls decided again as `replay --what-if` does. See
 * trace/why/why.h.
 *
 * Runs in: the viewer.
 *
 * A cause that is a size becomes a dynamic dimension, another one whose guard is known a guard that is not checked, a
 * limit a higher one; of the function that is asked about only. Other remedies have no setting and get no figure. All
 * decisions of a trace are read for it, so a long one is left to `replay`, unless it is asked for. */
#include <stdlib.h>

#include "trace/db.h"
#include "replay.h"
#include "lib/say.h"
#include "trace/whatif/whatif.h"
#include "trace/why/why.h"

enum { LOOKUPS_READ = 200000, CHECKS_READ = 1000000 };

static void predict(struct whatif *whatif, const bool *codes, struct remedy *remedy)
{
    struct whatif_knobs knobs = {.codes = codes};
    struct whatif_result result = {0};

    if (whatif_knob(&knobs, remedy->what_if)) {
        whatif_run(whatif, &knobs, &result);
        for (size_t i = 0; i < result.functions.count; i++) {
            const struct whatif_function *f = &result.functions.at[i];
            if (!codes[f->code])
                continue;
            if (remedy->compiles == UNKNOWN)
                remedy->compiles = remedy->predicted_compiles = remedy->eager = remedy->predicted_eager =
                    remedy->undecided = remedy->unrecorded = remedy->gone = 0;
            remedy->compiles += f->recorded.compiles;
            remedy->predicted_compiles += f->predicted.compiles;
            remedy->eager += f->recorded.eager;
            remedy->predicted_eager += f->predicted.eager;
            remedy->undecided += f->undecided;
            remedy->unrecorded += f->unrecorded;
            remedy->gone += f->gone;
        }
    }
    whatif_result_free(&result);
    whatif_knobs_free(&knobs);
}

void why_whatif(struct why *why)
{
    struct replay *replay = NULL;
    struct whatif *whatif = NULL;
    bool *codes = NULL, any = false;
    int64_t lookups;

    for (size_t i = 0; i < why->remedies.count; i++)
        any = any || why->remedies.at[i].what_if;
    lookups = any ? db_integer(why->db, 0, "SELECT MAX(lookup_id) FROM lookup") : 0; /* at least as many as there are */
    if (!lookups)
        return;
    why->long_trace =
        !why->force_whatif &&
        (lookups > LOOKUPS_READ || db_integer(why->db, 0, "SELECT MAX(guard_check_id) FROM guard_check") > CHECKS_READ);
    if (why->long_trace)
        return;
    replay = replay_open(why->db, true);
    whatif = replay ? whatif_open(why->db, replay) : NULL;
    codes = whatif ? replay_codes(replay, why->code.ids) : NULL;
    for (size_t i = 0; codes && i < why->remedies.count; i++)
        if (why->remedies.at[i].what_if)
            predict(whatif, codes, &why->remedies.at[i]);
    free(codes);
    whatif_free(whatif);
    replay_free(replay);
}

/* recover.c -- finish recordings whose collector was killed. See recover.h.
 *
 * Runs in: the command line (`fsck --recover`, and `run` before it starts).
 *
 * What a recording needs to be finished lies in its session directory: the
 * rings, the pages in the window, the decoders' places (collector_state.h).
 * collector_recover carries on from there. */
#include "recover.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"
#include "recorder_sqlite.h"
#include "say.h"
#include "session.h"

struct recovery {
    const char *trace; /* only this one; NULL: all */
    bool quiet;        /* in the way of another command: speak to a person only */
    int found, failed;
};

static void visit(const char *directory, void *context)
{
    struct recovery *r = context;
    struct session session;
    struct collector_result *result = calloc(1, sizeof *result);
    bool busy;

    if (!result || session_open(&session, directory, &busy)) {
        free(result);
        return;
    }
    if (r->trace && strcmp(r->trace, session.trace))
        goto done;
    if (!recorder_is_of(session.trace, session.frames, session.directory) ||
        faccessat(session.place[SESSION_MAIN], "state", F_OK, 0)) {
        /* The trace was deleted or replaced, the collector died before it recorded anything, or the session's file was
         * written over: nothing that is not this recording's is touched. */
        session_remove(&session);
        goto done;
    }
    r->found++;
    if (collector_recover(&session, 0, -1, result)) {
        say_error("%s", result->error);
        r->failed++;
        goto done;
    }
    if (!r->quiet || isatty(2))
        say_error("%s: recovered an interrupted recording: %llu frames of %u process%s", session.trace,
                  (unsigned long long)result->frames, result->processes, result->processes == 1 ? "" : "es");
    session_remove(&session);
done:
    session_close(&session);
    free(result);
}

int recover_trace(const char *path)
{
    struct recovery r = {0};
    char *full = path ? realpath(path, NULL) : NULL;

    r.trace = full ? full : path;
    session_each(visit, &r);
    if (!r.found)
        say_error("%s%sno interrupted recording was found; nothing to recover", path ? path : "", path ? ": " : "");
    free(full);
    return r.failed ? 1 : 0;
}

void recover_all_quietly(void)
{
    struct recovery r = {.quiet = true};

    session_each(visit, &r);
}

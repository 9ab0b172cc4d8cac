/* cmd/run/trace.h -- the trace that a recording writes: `run` and `collect`.
 *
 * Runs in: the command line. */
#ifndef DYNTRACE_RUN_TRACE_H
#define DYNTRACE_RUN_TRACE_H

#include "collector/session.h"

/* GIVEN, or if that is NULL the last part of NAME with .db, as an absolute path that the caller frees; NULL after saying why
 * not. */
char *trace_path(const char *given, const char *name);

/* Make the session and the empty trace at PATH; FORCE replaces one. FIRST, ROOT: recorder_create's. 0, or -1 after saying why
 * not; the session is the caller's to remove and close in both cases. */
int trace_begin(struct session *session, const char *path, const struct session_options *options, bool force, uint32_t *first,
                uint32_t *root);

#endif

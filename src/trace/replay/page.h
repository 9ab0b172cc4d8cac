/* trace/replay/page.h -- what is shown of the place where a cursor is.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_PAGE_H
#define DYNTRACE_REPLAY_PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct cursor;
struct db;

struct replay_page {
    struct db *db; /* borrowed, as all of it */
    const struct cursor *c;
    FILE *out;
    bool checks_indexed; /* false while the trace is written */
};

/* Event, cache, stack and source; BRIEF: only the event. */
void replay_page_print(struct replay_page *page, bool brief);

/* ALL entries of the cache as it stood. False: there is none here. */
bool replay_page_cache(struct replay_page *page, bool all);

/* The whole stack. False: no frame is known here. */
bool replay_page_stack(struct replay_page *page);
void replay_page_source(struct replay_page *page);

/* The guards of the entries with LABEL; for NULL, of the entry that the event is about. False: none has that label. */
bool replay_page_guards(struct replay_page *page, const char *label);

#endif

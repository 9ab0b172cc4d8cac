/* trace/replay/page.h -- what there is to say about the place where a cursor is.
 *
 * Runs in: the viewer. It goes to the cursor's OUT. */
#ifndef DYNTRACE_REPLAY_PAGE_H
#define DYNTRACE_REPLAY_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct cursor;
struct replay;

enum page_part { PAGE_EVENT, PAGE_CACHE, PAGE_STACK, PAGE_SOURCE, PAGE_GUARDS };

/* The event, and the cache, stack and source there, each cut to a few lines. */
void replay_page(const struct cursor *cursor);

/* All of one part. LABEL: of PAGE_GUARDS, the entries with that label; NULL: the entry that the event is about. False:
 * there is none here. */
bool replay_page_part(const struct cursor *cursor, enum page_part part, const char *label);

/* "0/1" of an entry, "#7" where it has no label; "f (app/f.py:3)" of a code object. By index; the caller frees them;
 * NULL: there is none, or no memory. */
char *replay_entry_name(const struct replay *replay, uint32_t entry);
char *replay_code_name(const struct replay *replay, uint32_t code);

#endif

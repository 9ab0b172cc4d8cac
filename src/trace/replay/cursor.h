/* trace/replay/cursor.h -- a place among a trace's decisions, moved either way.
 *
 * The TUI moves it by keys, `dyntrace replay --to` once.
 *
 *     struct cursor c;
 *     cursor_begin(&c, db, replay_open(db, false), stdout);
 *     cursor_filter(&c, "function Net.forward");
 *     while (cursor_step(&c, NEXT_MISS, 1) == CURSOR_THERE)
 *         cursor_cache(&c, &state);             the function's entries as they stood
 *     cursor_end(&c);
 *
 * It is on an event (a lookup, a compile, a graph break, the death of an entry) or,
 * after a jump to a moment, in the gap before one:
 *
 *     events   ... [41] [42] [43] ...
 *                    ^    on 42:  next is 43, previous 41
 *                   ^     gap before 42:  next is 42, previous 41
 *
 * What fails here has been said on stderr, in one line. */
#ifndef DYNTRACE_REPLAY_CURSOR_H
#define DYNTRACE_REPLAY_CURSOR_H

#include "replay.h"

enum cursor_what {
    NEXT_LOOKUP,
    NEXT_COMPILE,
    NEXT_RECOMPILE,
    NEXT_BREAK,
    NEXT_DEATH,
    NEXT_HIT,
    NEXT_MISS,
    NEXT_EVENT,
    NEXT_KINDS,
};
extern const char *const cursor_whats[NEXT_KINDS]; /* "lookup", ... */

/* ERROR: the error has been reported. */
enum cursor_result { CURSOR_THERE, CURSOR_NONE, CURSOR_ERROR };

struct cursor_stop {
    char *text; /* owned: as it was typed */
    enum cursor_what when;
    bool *marks; /* owned: of which codes, by index; of NEXT_HIT and NEXT_DEATH of which entries */
};

enum { FILTER_CODE, FILTER_THREAD, FILTER_OUTCOME, FILTER_WHERE, FILTERS };

struct cursor {
    struct db *db;    /* borrowed */
    struct replay *r; /* borrowed */
    /* borrowed: what commands come to, and pages; a name that fits several functions lists them */
    FILE *out;
    bool (*interrupted)(void *context); /* asked while it runs on to a stop */
    void *context;
    size_t at; /* the event that it is on, or before which it is */
    bool gap;
    int64_t gap_ns;         /* in a gap: the moment that was jumped to */
    bool *filters[FILTERS]; /* owned: what passes, by index of codes, threads, lookups; NULL: all */
    char *filtered;         /* owned: words for them, or NULL */
    LIST(struct cursor_stop) stops;
};

/* In the gap before the first event. The caller ends it with cursor_end. */
void cursor_begin(struct cursor *cursor, struct db *db, struct replay *replay, FILE *out);
void cursor_end(struct cursor *cursor);

/* "miss", "misses", "break": what a word stands for. */
bool cursor_what(const char *word, enum cursor_what *what);

/* On to the next WHAT that passes the filter, DIRECTION 1, or back, -1. It stays where it is when
 * there is none. */
enum cursor_result cursor_step(struct cursor *cursor, enum cursor_what what, int direction);

/* The first WHAT that passes the filter, or the LAST. */
enum cursor_result cursor_far(struct cursor *cursor, enum cursor_what what, bool last);

/* WHAT with this row id; of NEXT_EVENT its number from 1, of NEXT_DEATH the entry's row id. */
enum cursor_result cursor_to(struct cursor *cursor, enum cursor_what what, int64_t id);

/* The gap before the first event at AT_NS or later. */
void cursor_to_time(struct cursor *cursor, int64_t at_ns);

/* To PLACE: "12" (an event), "1.5s", "50%", "lookup 20", "first miss", "last compile".
 * NONE: no such event; *WHAT is the kind that was looked for. */
enum cursor_result cursor_goto(struct cursor *cursor, const char *place, enum cursor_what *what);

/* "function NAME", "file GLOB", "thread ID", "process ID", "outcome NAME,NAME", "where SQL".
 * Filters of several kinds hold together; one of the same kind takes the place of the former.
 * False: the error has been reported. */
bool cursor_filter(struct cursor *cursor, const char *by);
void cursor_filter_off(struct cursor *cursor);
size_t cursor_passing(const struct cursor *cursor); /* how many events pass it */

/* "when FUNC recompiles", "when entry 0/3 is hit". False: the error has been reported. */
bool cursor_stop_add(struct cursor *cursor, const char *when);
void cursor_stops_off(struct cursor *cursor);

/* The stop that the event which it is on is one for, or NULL. */
const struct cursor_stop *cursor_stopped(const struct cursor *cursor);

/* The command NAME: next, previous, goto, filter, stop, continue, back, with what follows it; its
 * words go to OUT, in a line. THERE: it has moved. NONE: it has not, or to the end. */
enum cursor_result cursor_do(struct cursor *cursor, const char *name, const char *rest);

/* What it is on: NULL in a gap. */
const struct replay_event *cursor_event(const struct cursor *cursor);
int64_t cursor_ns(const struct cursor *cursor);
/* What that event is about. It is on one. */
struct replay_subject cursor_subject(const struct cursor *cursor);

/* The row id of the frame that it is at, 0 if none is known. */
int64_t cursor_frame(const struct cursor *cursor);

/* The cache that the event is about, as it stood: a lookup's as it found it, others' after them.
 * False: there is none here. The caller frees STATE (list_free). */
bool cursor_cache(const struct cursor *cursor, struct replay_state *state);

/* ---- trace/replay/page.c: what there is to say about the place, to the cursor's OUT ---- */

/* The event, and the cache, stack and source there, each cut to a few lines. */
void replay_page(const struct cursor *cursor);
/* "lookup", "compile", "break", "death". */
const char *replay_kind_word(uint32_t kind);

#endif

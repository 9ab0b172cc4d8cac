/* trace/replay/cursor.h -- a cursor that moves through a trace's events.
 *
 * The TUI moves the cursor by keys; `dyntrace replay --to` moves it once.
 *
 *     struct cursor c;
 *     cursor_init(&c, db, replay_open(db, false), stdout);
 *     cursor_add_filter(&c, "function Net.forward");
 *     while (cursor_move_by_step(&c, NEXT_MISS, 1) == CURSOR_THERE)
 *         cursor_get_cache_state(&c, &state);             the function's entries before this miss
 *     cursor_end(&c);
 *
 * The cursor is on an event (a lookup, a compile, a graph break, the death of an entry) or, after a
 * jump to a time, in the gap before an event:
 *
 *     events   ... [41] [42] [43] ...
 *                    ^    on 42:  next is 43, previous 41
 *                   ^     gap before 42:  next is 42, previous 41
 *
 * Each error is reported on stderr, in one line. */
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
/* the names of the kinds of events: "lookup", ... */
extern const char *const cursor_whats[NEXT_KINDS];

/* THERE: the cursor is on the event. NONE: there is no such event. ERROR: an error was reported. */
enum cursor_result { CURSOR_THERE, CURSOR_NONE, CURSOR_ERROR };

enum { FILTER_CODE, FILTER_THREAD, FILTER_OUTCOME, FILTER_WHERE, FILTERS };

struct cursor {
    struct db *db;    /* borrowed */
    struct replay *r; /* borrowed */
    /* borrowed: commands and pages are printed to this file, and the list of functions if a
     * name is ambiguous */
    FILE *out;
    size_t at; /* index of the event at the cursor; in a gap, of the event after the cursor */
    bool gap;
    int64_t gap_ns; /* in a gap: the time to which the cursor jumped */
    /* owned: an array for each kind of filter, or NULL. A code object, thread or lookup passes the
     * filter if the array has true at its index */
    bool *filters[FILTERS];
    char *filtered; /* owned: the filters as the user typed them, or NULL */
};

/* Put CURSOR before the first event. The caller ends it with cursor_end(). */
void cursor_init(struct cursor *cursor, struct db *db, struct replay *replay, FILE *out);
void cursor_end(struct cursor *cursor);

/* Store in *WHAT the kind of event that WORD names: "miss", "misses", "break". Returns false if
 * WORD names no kind. */
bool cursor_parse_event_kind(const char *word, enum cursor_what *what);

/* Move to the next event of the kind WHAT that passes the filters (DIRECTION 1), or to the previous
 * one (DIRECTION -1). If there is no such event, the cursor stays where it is. */
enum cursor_result cursor_move_by_step(struct cursor *cursor, enum cursor_what what, int direction);

/* Move to the first event of the kind WHAT that passes the filters, or to the last such event if
 * LAST. */
enum cursor_result cursor_move_to_first_or_last(struct cursor *cursor, enum cursor_what what,
                                                bool last);

/* Move to the event of the kind WHAT with row id ID. For NEXT_EVENT, ID is the number of the event,
 * counted from 1; for NEXT_DEATH, the row id of the entry. */
enum cursor_result cursor_move_to_id(struct cursor *cursor, enum cursor_what what, int64_t id);

/* Move to the gap before the first event at AT_NS or later. */
void cursor_move_to_time(struct cursor *cursor, int64_t at_ns);

/* Move to PLACE, which the user typed: "12" (an event), "1.5s", "50%", "lookup 20", "first miss",
 * "last compile". If there is no such event, *WHAT is the kind that was searched for. */
enum cursor_result cursor_move_to_place(struct cursor *cursor, const char *place,
                                        enum cursor_what *what);

/* Add the filter BY: "function NAME", "file GLOB", "thread ID", "process ID", "outcome NAME,NAME"
 * or "where SQL". It replaces an earlier filter of the same kind. An event must pass the filters of
 * all kinds. Returns false after reporting an error. */
bool cursor_add_filter(struct cursor *cursor, const char *by);
void cursor_remove_filters(struct cursor *cursor);
size_t
cursor_count_passing(const struct cursor *cursor); /* Return how many events pass the filters. */

/* Run the user's command NAME (next, previous, goto, filter) with the arguments REST. If no event
 * is found, or if the filters change, a line is printed to the cursor's file. Returns CURSOR_THERE
 * if the cursor moved to an event, and CURSOR_NONE if it did not move. */
enum cursor_result cursor_run_command(struct cursor *cursor, const char *name, const char *rest);

/* Return the event at the cursor, or NULL in a gap. */
const struct replay_event *cursor_get_event(const struct cursor *cursor);
int64_t cursor_get_time(const struct cursor *cursor);
/* Return the subject of the event at the cursor: its entry, code object and so on. The cursor must
 * not be in a gap. */
struct replay_subject cursor_get_subject(const struct cursor *cursor);

/* Return the row id of the frame of the event at the cursor, or 0 if it is not known. */
int64_t cursor_find_frame(const struct cursor *cursor);

/* Store in STATE the cache of the event at the cursor: for a lookup, the cache before the event;
 * for other events, after it. Returns false in a gap, or if the event has no cache. The caller
 * frees STATE (list_free). */
bool cursor_get_cache_state(const struct cursor *cursor, struct replay_state *state);

/* ---- printing the event at the cursor (trace/replay/page.c) -------------- */

/* Print the event at the cursor, and its cache, call stack and source, each cut to a few lines. */
void replay_print_page(const struct cursor *cursor);
/* Return the name of KIND, an enum replay_kind: "lookup", "compile", "break", "death". */
const char *replay_word_of_kind(uint32_t kind);

#endif

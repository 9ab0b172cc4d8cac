/* tui/views/lanes.h -- where the view `timeline` (tui/views/timeline.c) meets what it reads
 * (tui/views/lanes.c).
 *
 * Runs in: the viewer; both jobs in threads.
 *
 * The whole time is cut into BUCKETS equal stretches. One pass over lookups and
 * frames says for each thread what was in each stretch, and which ids lie in it:
 * so that any part of a long recording can be read again by its ids alone, when
 * the screen shows so little of it that single calls can be seen. */
#ifndef DYNTRACE_TUI_LANES_H
#define DYNTRACE_TUI_LANES_H

#include "lib/list.h"
#include "tui/lead.h"

enum {
    BUCKETS = 4096,
    LANES_MOST = 1000,    /* threads */
    DETAIL_ROWS = 400000, /* read for one screen */
    DETAIL_DEPTH = 40,
};

/* Names of code objects or threads, by id. */
struct name {
    int64_t id;
    const char *text; /* in the arena */
};

struct names {
    LIST(struct name) all;
    struct arena arena;
};

/* STATEMENT asks for id and name, by id. */
void names_read(struct names *names, struct db *db, const char *statement);
void names_free(struct names *names);
const char *name_find(const struct names *names, int64_t id); /* one that is not there is "?" */

/* The innermost call of a thread at a moment; 0: nothing ran then (tui/views/calls.c). */
int64_t frame_at(struct db *db, int64_t thread_id, int64_t at_ns);

/* Of a walk over frames (trace/stacks.h) for a job, which ends after job.most; frames_more: that
 * was not all. */
enum { FIRST_FRAMES = 300000 /* a tenth of a second */ };
bool frames_tick(void *job, int64_t frame_id);
bool frames_more(const struct job *job);

/* Ids that began in a stretch of time; 0: none. */
struct ids {
    int64_t first, last;
};

struct lane {
    int64_t thread_id, ended_ns; /* ended_ns: its process */
    const char *name;            /* in the arena of names */
    int64_t calls;               /* lookups */
    struct bucket {
        uint32_t hits, misses, eager; /* lookups that began there */
        uint32_t depth;               /* of frames, the deepest */
        struct ids frames, lookups;
    } * buckets;     /* owned: BUCKETS */
    int first, last; /* those that have anything */
    uint32_t deepest;
};

struct compile_mark {
    int64_t id, start_ns, end_ns;
    int lane;
    bool bad, broke; /* it gave no code; its graph broke */
};

struct lanes_job {
    struct job job;
    LIST(struct lane) lanes;
    LIST(struct compile_mark) compiles; /* by start */
    struct names names;                 /* of code */
    int64_t span_ns;
};

/* One lane's calls between two moments, as boxes on so many columns. */
struct detail_job {
    struct job job;
    int64_t thread_id, ended_ns, from_ns, to_ns;
    int64_t before; /* the last frame that began earlier */
    struct ids frames, lookups;
    int columns, lane;
    int depth;              /* rows that have something */
    int stack[SCREEN_MOST]; /* how many calls are in the deepest stack of a column */
    struct detail_cell {
        int64_t code_id, frame_id, ns; /* the longest frame there; frame_id 0: none */
    } cells[DETAIL_DEPTH][SCREEN_MOST];
    char marks[SCREEN_MOST]; /* '.', 'm', 'e', 'X': what lookups came to */
    uint32_t lookups_at[SCREEN_MOST];
};

/* FIRST: for a first look; if more of its lookups or frames are there, frames_more. */
struct lanes_job *lanes_ask(struct work *work, bool first);

/* NULL: too much lies in it to be read for one screen. */
struct detail_job *detail_ask(struct work *work, const struct lanes_job *lanes, int lane,
                              int64_t from_ns, int64_t to_ns, int columns);

#endif

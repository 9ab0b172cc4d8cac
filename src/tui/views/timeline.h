/* tui/views/timeline.h -- where the view `timeline` (tui/views/timeline.c) meets what it reads (tui/views/lanes.c).
 *
 * Runs in: the viewer; both jobs in threads.
 *
 * The whole time is cut into BUCKETS equal stretches. One pass over lookups and
 * frames says for each thread what was in each stretch, and which ids lie in it:
 * so that any part of a long recording can be read again by its ids alone, when
 * the screen shows so little of it that single calls can be seen. */
#ifndef DYNTRACE_TUI_TIMELINE_H
#define DYNTRACE_TUI_TIMELINE_H

#include "lib/list.h"
#include "tui/view.h"

enum {
    BUCKETS = 4096,
    LANES_MOST = 128,      /* threads */
    DETAIL_ROWS = 400000,  /* read for one screen */
    DETAIL_DEPTH = 40,
};

struct lane {
    int64_t thread_id;
    char *name;            /* owned */
    uint32_t hits[BUCKETS], misses[BUCKETS], eager[BUCKETS]; /* lookups that began there */
    uint16_t depth[BUCKETS];                  /* of frames, the deepest */
    int64_t first_frame[BUCKETS], last_frame[BUCKETS];   /* that began there; 0: none */
    int64_t first_lookup[BUCKETS], last_lookup[BUCKETS];
    int64_t calls;         /* lookups */
    int64_t ended_ns;      /* its process */
};

struct compile_mark {
    int64_t id, start_ns, end_ns;
    int lane;
    bool bad, broke;       /* it gave no code; its graph broke */
};

struct lanes_job {
    struct job job;
    struct lane **lanes;   /* owned, each too */
    int count;
    int64_t span_ns;
    LIST(struct compile_mark) compiles; /* by start */
};

/* One lane's calls between two moments, as boxes on so many columns. */
struct detail_job {
    struct job job;
    int64_t thread_id, ended_ns, from_ns, to_ns, first_frame, last_frame, before_frame, first_lookup, last_lookup;
    int columns, lane;
    int depth;             /* rows that have something */
    struct detail_cell {
        int64_t code_id, frame_id, ns; /* the longest frame there; code_id 0: none */
    } cells[DETAIL_DEPTH][SCREEN_MOST];
    unsigned char marks[SCREEN_MOST]; /* '.', 'm', 'e', 'X': what lookups came to */
    uint32_t lookups[SCREEN_MOST];
    struct map names;      /* by code id: where in ARENA the name is */
    struct arena arena;
};

struct lanes_job *lanes_ask(struct work *work);
struct detail_job *detail_ask(struct work *work, const struct lanes_job *lanes, int lane, int64_t from_ns, int64_t to_ns, int columns);
const char *detail_name(const struct detail_job *detail, int64_t code_id);

#endif

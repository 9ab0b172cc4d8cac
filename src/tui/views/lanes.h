/* tui/views/lanes.h -- what the view `timeline` (timeline.c) reads from the trace (lanes.c).
 *
 * Runs in: the viewer; both jobs in threads.
 *
 * The recording's time is divided into BUCKETS equal intervals. One pass over lookups and frames
 * counts for each thread what began in each interval, and which ids began in it. When the screen
 * shows an interval so short that single calls can be drawn, a second job reads those calls by
 * their ids, without a search in the whole trace. */
#ifndef DYNTRACE_TUI_LANES_H
#define DYNTRACE_TUI_LANES_H

#include "lib/list.h"
#include "tui/lead.h"

enum {
    BUCKETS = 4096,
    LANES_MOST = 1000, /* threads that are shown; more are left out */
    /* rows that are read for one screen; with more, single calls are not drawn */
    DETAIL_ROWS = 400000,
    DETAIL_DEPTH = 40,
};

/* The name of a code object or a thread. */
struct name {
    int64_t id;
    const char *text; /* in the arena */
};

struct names {
    LIST(struct name) all;
    struct arena arena;
};

/* Read names by STATEMENT, which returns ids and names in order of id. */
void names_read(struct names *names, struct db *db, const char *statement);
void names_free(struct names *names);
/* Return the name of ID, or "?" if it has none. */
const char *name_find(const struct names *names, int64_t id);

/* Return the innermost frame of a thread at a moment, or 0 if none was running
 * (tui/views/calls.c). */
int64_t frame_at(struct db *db, int64_t thread_id, int64_t at_ns);

/* Limit a walk over frames (trace/stacks.h) in a job to the first job.most frames. frames_tick()
 * counts the frames, and returns false when the walk has to end. frames_more() tells whether the
 * trace has more frames. */
enum { FIRST_FRAMES = 300000 /* frames that are read in about 0.1 s */ };
bool frames_tick(void *job, int64_t frame_id);
bool frames_more(const struct job *job);

/* The first and last id that began in an interval of time; both are 0 if none did. */
struct ids {
    int64_t first, last;
};

struct lane {
    int64_t thread_id, ended_ns; /* ended_ns: when the thread's process ended */
    const char *name;            /* borrowed from the job's `names` */
    bool marked;                 /* the thread made lookups or compiles */
    int64_t calls;               /* how many lookups the thread made */
    struct bucket {
        uint32_t hits, misses, eager; /* lookups that began in the interval, by outcome */
        uint32_t depth;               /* the largest depth of the stack in the interval */
        struct ids frames, lookups;
    } * buckets;     /* owned: BUCKETS of them */
    int first, last; /* the first and the last interval that is not empty */
    uint32_t deepest;
};

struct compile_mark {
    int64_t id, start_ns, end_ns;
    int lane;
    bool bad, broke; /* bad: the compile gave no code; broke: its graph broke */
};

struct lanes_job {
    struct job job;
    LIST(struct lane) lanes;
    LIST(struct compile_mark) compiles; /* in order of start */
    struct names names;                 /* the names of code objects */
    int64_t span_ns;
    bool has_counted; /* frames were counted and have no rows */
};

/* A job that reads the calls of one lane between two moments, and places them in COLUMNS columns
 * of the screen. If there are too many for one screen, it is `sampled`: it reads only
 * one call that ran in each column, with its callers. It reads no lookups then. */
struct detail_job {
    struct job job;
    int64_t thread_id, ended_ns, from_ns, to_ns;
    int64_t before; /* the last frame that began before from_ns; its callers may be open still */
    struct ids frames, lookups;
    int columns, lane;
    bool sampled;
    int sampled_at;                  /* the column that is being sampled */
    struct ids samples[SCREEN_MOST]; /* for each column: the ids from which its sample is taken */
    int depth;                       /* how many rows of `cells` have calls */
    /* for each column: the depth of its deepest stack, also beyond DETAIL_DEPTH */
    int stack[SCREEN_MOST];
    struct detail_cell {
        /* the longest frame in this column; frame_id is 0 if there is none */
        int64_t code_id, frame_id, ns;
    } cells[DETAIL_DEPTH][SCREEN_MOST];
    /* for each column: its most serious lookup: '.' hit, 'm' miss, 'e' eager, 'X' limit or error */
    char marks[SCREEN_MOST];
    uint32_t lookups_at[SCREEN_MOST];
};

/* Start the job that reads all lanes. FIRST limits it to what a first look has time for; then
 * frames_more() tells whether the trace has more. */
struct lanes_job *lanes_ask(struct work *work, bool first);

/* Start the job that reads the calls of LANE from FROM_NS to TO_NS. */
struct detail_job *detail_ask(struct work *work, const struct lanes_job *lanes, int lane,
                              int64_t from_ns, int64_t to_ns, int columns);

#endif

/* tui/views/lanes.h -- reads what the view `timeline` shows from the trace.
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
    LANES_MOST = 1000, /* the most threads that are shown */
    /* the most rows that are read for one screen; if there are more, single calls are not drawn */
    DETAIL_ROWS = 400000,
    DETAIL_DEPTH = 40,
};

/* The name of a code object or a thread, for its id. */
struct name {
    int64_t id;
    const char *text; /* in the arena */
};

struct names {
    LIST(struct name) all;
    struct arena arena;
};

/* Read names by STATEMENT, which returns ids and names in order of id. */
void names_read_all(struct names *names, struct db *db, const char *statement);
void names_free(struct names *names);
/* Return the name of ID, or "?" if it has none. */
const char *name_find_by_id(const struct names *names, int64_t id);

/* Return the innermost frame of a thread at a moment, or 0 if none was running
 * (tui/views/calls.c). */
int64_t frame_find_at_time(struct db *db, int64_t thread_id, int64_t at_ns);

/* Limit a walk over frames (trace/stacks.h) to the first job.most frames. frames_continue_reading()
 * counts a frame, and returns false when the walk must end. has_more_frames() tells whether
 * the trace has more frames. */
enum { FIRST_FRAMES = 300000 /* reading this many frames takes about 0.1 s */ };
bool frames_continue_reading(void *job, int64_t frame_id);
bool has_more_frames(const struct job *job);

/* The first and last id of what began in an interval of time. Both are 0 if nothing did. */
struct ids {
    int64_t first, last;
};

struct lane {
    int64_t thread_id, ended_ns; /* ended_ns: when the thread's process ended */
    const char *name;            /* borrowed from the job's `names` */
    bool marked;                 /* the thread made lookups or compiles, which are drawn as marks */
    int64_t calls;               /* how many lookups the thread made */
    struct bucket {
        uint32_t hits, misses, eager; /* number of lookups that began in the interval, by outcome */
        uint32_t depth;               /* how deep the stack was at most in the interval */
        struct ids frames, lookups;
    } * buckets;     /* owned: an array of BUCKETS elements */
    int first, last; /* the first and the last interval that is not empty */
    uint32_t deepest;
};

struct compile_mark {
    int64_t id, start_ns, end_ns;
    int lane;
    bool bad, broke; /* bad: the compile produced no code. broke: it had a graph break */
};

struct lanes_job {
    struct job job;
    LIST(struct lane) lanes;
    LIST(struct compile_mark) compiles; /* all compiles, in order of their start */
    struct names names;                 /* the names of code objects */
    int64_t span_ns;
    bool has_unstored; /* frames have no rows */
};

/* A job that reads the calls of one lane between two moments, and places them in COLUMNS columns of
 * the screen. If there are too many calls for one screen, the job is `sampled`: for each column it
 * reads only one call that ran then, and its callers, and it reads no lookups. */
struct detail_job {
    struct job job;
    int64_t thread_id, ended_ns, from_ns, to_ns;
    /* the last frame that began before from_ns; it and its callers may still be open */
    int64_t before;
    struct ids frames, lookups;
    int columns, lane;
    bool sampled;
    int sampled_at; /* if sampled: the column for which a call is being read */
    /* if sampled: for each column, the ids of frames of which one is shown */
    struct ids samples[SCREEN_MOST];
    int depth; /* number of rows of `cells` that have calls */
    /* for each column, how deep the stack was at most, even if it was deeper than DETAIL_DEPTH */
    int stack[SCREEN_MOST];
    struct detail_cell {
        /* the longest frame in this column; if there is none, frame_id is 0 */
        int64_t code_id, frame_id, ns;
    } cells[DETAIL_DEPTH][SCREEN_MOST];
    /* for each column, a mark for its most serious lookup: '.' hit, 'm' miss, 'e' eager, 'X'
     * limit or error */
    char marks[SCREEN_MOST];
    uint32_t lookups_at[SCREEN_MOST];
};

/* Start the job that reads all lanes. FIRST: it reads only as much as there is time for in a first
 * look; has_more_frames() then tells whether the trace has more. */
struct lanes_job *lanes_start(struct work *work, bool first);

/* Start the job that reads the calls of LANE from FROM_NS to TO_NS. */
struct detail_job *detail_start(struct work *work, const struct lanes_job *lanes, int lane,
                                int64_t from_ns, int64_t to_ns, int columns);

#endif

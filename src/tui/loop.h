/* tui/loop.h -- the loop of `dyntrace tui`: where the door (tui.c) meets what it does itself with
 * keys (tui/requests.c) and with the trace's file (tui/trace_file.c). */
#ifndef DYNTRACE_LOOP_H
#define DYNTRACE_LOOP_H

#include <sys/stat.h>

#include "trace/sql_words.h"
#include "tui/places.h"
#include "tui/prompt.h"

/* What the program does per second while its recording is followed, and did before (tui/rates.c).
 * */
enum { RATES = 4 /* calls, hits, compiles, recompiles */, RATES_KEPT = 60 };

struct rates {
    int64_t at_ms; /* when it was looked last, 0: not yet */
    int64_t sums[RATES], lookup_id;
    double kept[RATES_KEPT][RATES]; /* per second; the newest last */
    int looks;                      /* of them */
    char compiling[100];            /* what is being compiled now, or "" */
};

/* Look at the trace that is being written. */
void rates_look(struct rates *rates, struct db *db);

/* "compiling train for 4 s  calls 1.2 M/s ▁▃█ ..." for COLUMNS, and the memory of process PID, if
 *                           it is not 0. LINE has room for BYTES. */
void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes);

enum { SAY = 400 };

struct tui_options;

struct loop {
    struct tui face;                   /* screen, work and db are owned */
    const struct tui_options *options; /* borrowed */
    struct places places;              /* owned: the views */
    struct prompt prompt;
    enum request asked;     /* what the prompt is for */
    struct sql_words words; /* owned; gathered when first needed */
    size_t next_word;
    char message[SAY];
    bool alarm, quit;
    int64_t opened_ms;      /* when a click opened a view */
    bool waits;             /* the last key is about what is still being asked */
    LIST(struct key) typed; /* owned: that one and those that came since */
    struct output output;   /* owned: what the program printed */

    /* the trace, whose file may be deleted, replaced or written to */
    char *path;          /* owned: absolute */
    const char *name;    /* borrowed: what it is called */
    int ended_fd;        /* owned: readable when a job has ended */
    struct stat file;    /* as it was opened */
    bool gone, replaced; /* there is none of that name any more, or another */
    bool live, hold;
    int64_t ticked_ms;
    struct rates rates; /* while it is live */
    int killed;         /* how often the program was told to end */
    int64_t version;    /* of its rows when it was looked at last, 0: not yet */
};

/* What struct tui gives the views: calls (tui/requests.c) and tables (tui/view_table.c). */
extern const struct tui_calls loop_calls;
extern const struct view_ops *const loop_views[VIEW_KINDS];
extern const struct page_part *const loop_parts;

static inline struct view *loop_top(const struct loop *loop)
{
    return places_top(&loop->places);
}

/* tui/requests.c: what no view takes, and what was typed for ASKED. */
void loop_request(struct loop *loop, enum request request, const struct key *key);
void loop_answer(struct loop *loop, enum request asked, char *text);

/* Of the prompt, for a struct loop: names of commands, then of views; for a filter the columns
 * first; for SQL the trace's own words. */
char *loop_complete(void *context, const char *word, bool first, int again);

/* tui/trace_file.c */
/* Show the trace at PATH, or NULL for the newest here, in place of the one before. False on error,
 * which has been reported. */
bool loop_take(struct loop *loop, const char *path);
/* The same, and begin with its overview. */
void loop_open(struct loop *loop, const char *path);
/* Open the file that has the trace's name now, unless it cannot be read. */
void loop_reopen(struct loop *loop);
/* See whether the file is still there, and has other rows. */
void loop_look(struct loop *loop);
/* Close the trace and all views of it. */
void loop_leave(struct loop *loop);

#endif

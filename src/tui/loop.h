/* tui/loop.h -- the main loop of `dyntrace tui`: its state, and the functions that tui.c,
 * tui/requests.c and tui/trace_file.c share. */
#ifndef DYNTRACE_LOOP_H
#define DYNTRACE_LOOP_H

#include <sys/stat.h>

#include "trace/sql_words.h"
#include "tui/places.h"
#include "tui/prompt.h"

/* How many calls, hits, compiles and recompiles per second the recorded program makes, now and
 * at the last RATES_KEPT looks (tui/rates.c). */
enum { RATES = 4 /* calls, hits, compiles, recompiles */, RATES_KEPT = 60 };

struct rates {
    int64_t at_ms; /* when the trace was read last (monotonic clock), or 0 if never */
    int64_t sums[RATES], lookup_id;
    double kept[RATES_KEPT][RATES]; /* rates per second at each look; the newest is last */
    int looks;                      /* how many entries of `kept` are filled */
    char compiling[100];            /* "compiling NAME for 4 s" while a compile runs, or "" */
};

/* Read the trace that is being recorded, and update RATES. */
void rates_look(struct rates *rates, struct db *db);

/* Print the rates into LINE, which has room for BYTES: "compiling train for 4 s  calls 1.2 M/s
 * ▁▃█ ...", in COLUMNS columns. If PID is not 0, the memory use of process PID follows. */
void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes);

enum { SAY = 400 };

struct tui_options;

struct loop {
    /* the loop as views see it; its screen, work and db are owned */
    struct tui face;
    const struct tui_options *options; /* borrowed */
    struct places places;              /* owned: the open views */
    struct prompt prompt;
    enum request asked;     /* the request whose question the prompt asks */
    struct sql_words words; /* owned: words for SQL completion, gathered when first needed */
    size_t next_word;
    char message[SAY];
    bool alarm, quit;
    bool hinted; /* the last line of the screen shows the keys of the view on top */
    /* when a click opened a view; the second click of a double click is ignored */
    int64_t opened_ms;
    bool waits;             /* the last key waits for a query to finish */
    LIST(struct key) typed; /* owned: the key that waits, and the keys that were typed after it */
    struct output output;   /* owned: what the program under `run --live` printed */

    /* ---- the trace; its file may be deleted, replaced or written to at any time ---- */
    char *path;          /* owned: the absolute path of the trace */
    const char *name;    /* borrowed: the name of the trace on the screen */
    int ended_fd;        /* owned: an eventfd that is readable when a job has ended */
    struct stat file;    /* the trace file's stat() when it was opened */
    bool gone, replaced; /* gone: the file was deleted; replaced: another file has its name */
    bool live, hold;
    int64_t ticked_ms;
    struct rates rates; /* rates of the program while its recording is live */
    int killed;         /* how often the user asked to end the program (K) */
    int64_t version;    /* SQLite's data_version at the last look, or 0 before the first */
};

/* What struct tui gives the views: functions of the loop (tui/requests.c), and the tables of
 * views and page parts (tui/view_table.c). */
extern const struct tui_calls loop_calls;
extern const struct view_ops *const loop_views[VIEW_KINDS];
extern const struct page_part *const loop_parts;

static inline struct view *loop_top(const struct loop *loop)
{
    return places_top(&loop->places);
}

/* Handle a REQUEST, unless the view on top does; and use TEXT, which the user typed in answer to
 * the prompt of the request ASKED (tui/requests.c). */
void loop_request(struct loop *loop, enum request request, const struct key *key);
void loop_answer(struct loop *loop, enum request asked, char *text);

/* Return the completion number AGAIN of WORD, or NULL; the caller frees it. In a command the
 * names of commands and views complete WORD, in a filter first the columns, in SQL the trace's
 * tables and columns. CONTEXT is a struct loop. */
char *loop_complete(void *context, const char *word, bool first, int again);

/* ---- tui/trace_file.c: the trace that the loop shows ---- */
/* Show the trace at PATH in place of the present one. If PATH is NULL, show the newest trace in
 * this directory. Returns false on error, which has been reported. */
bool loop_take(struct loop *loop, const char *path);
/* Show the trace at PATH in place of the present one, and open its overview. */
void loop_open(struct loop *loop, const char *path);
/* Open the trace's path again, because another file has been put there. If that file cannot be
 * read, the old one stays open. */
void loop_reopen(struct loop *loop);
/* Check whether the trace file was deleted, replaced or written to, and refresh the views of a
 * live trace. */
void loop_look(struct loop *loop);
/* Close the trace and all views of it. */
void loop_leave(struct loop *loop);

#endif

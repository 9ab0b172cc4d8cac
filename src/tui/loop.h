/* tui/loop.h -- what the files of the main loop of `dyntrace tui` share: tui.c, tui/requests.c and
 * tui/trace_file.c. */
#ifndef DYNTRACE_LOOP_H
#define DYNTRACE_LOOP_H

#include <sys/stat.h>

#include "trace/sql_words.h"
#include "tui/places.h"
#include "tui/prompt.h"

/* How many calls, hits, compiles and recompiles per second the recorded program makes. `kept` has
 * the rates at the last RATES_KEPT looks at the trace (tui/rates.c). */
enum { RATES = 4 /* calls, hits, compiles, recompiles */, RATES_KEPT = 60 };

struct rates {
    int64_t at_ms; /* when the trace was read last (monotonic clock), or 0 if never */
    int64_t sums[RATES], lookup_id;
    double kept[RATES_KEPT][RATES]; /* rates per second of each reading; the newest is last */
    int looks;                      /* number of readings in `kept` */
    char compiling[100];            /* "compiling NAME for 4 s" while a compile runs, or "" */
};

/* Read from DB, a trace that is being recorded, how the rates are now. */
void rates_read_counts(struct rates *rates, struct db *db);

/* Print the rates into LINE, which has room for BYTES bytes, in COLUMNS columns, for example
 * "compiling train for 4 s calls 1.2 M/s ▁▃█ ...". If PID is not 0, the memory that process PID
 * uses follows. */
void rates_print(const struct rates *rates, int pid, int columns, char *line, size_t bytes);

enum { SAY = 400 };

struct tui_options;

struct loop {
    /* what views see of the loop; its members screen, work and db are owned */
    struct tui face;
    const struct tui_options *options; /* borrowed */
    struct places places;              /* owned: the open views */
    struct prompt prompt;
    enum request asked;     /* the request for which the prompt asks the user */
    struct sql_words words; /* owned: words that Tab completes in SQL, gathered when first needed */
    size_t next_word;
    char message[SAY];
    bool alarm, quit;
    bool hinted; /* the last line of the screen shows the keys of the view on top */
    /* when a click opened a view; the second click of a double click is ignored */
    int64_t opened_ms;
    bool waits;             /* the last key is kept until a query has finished */
    LIST(struct key) typed; /* owned: the key that waits, and the keys that were typed after it */
    struct output output;   /* owned: what the program under `run --live` printed */

    /* ---- the trace that is shown; its file may be deleted, replaced or written to
     * at any time ---- */
    char *path;          /* owned: the absolute path of the trace */
    const char *name;    /* borrowed: the name of the trace on the screen */
    int ended_fd;        /* owned: an eventfd that is readable when a job has ended */
    struct stat file;    /* the trace file's stat() when it was opened */
    bool gone, replaced; /* gone: the file was deleted; replaced: another file has its name */
    bool live, hold;
    int64_t ticked_ms;
    struct rates rates; /* rates of the program while it is recorded */
    int killed;         /* how often the user asked to end the program (K) */
    /* SQLite's data_version when the file was checked last; 0 before the first check */
    int64_t version;
};

/* Functions of the loop (tui/requests.c) and tables of views and page parts (tui/view_table.c) that
 * views get through struct tui. */
extern const struct tui_calls loop_calls;
extern const struct view_ops *const loop_views[VIEW_KINDS];
extern const struct page_part *const loop_parts;

static inline struct view *loop_top(const struct loop *loop)
{
    return places_top(&loop->places);
}

/* loop_handle_request() handles REQUEST, unless the view on top does. loop_handle_answer() handles
 * TEXT, which the user typed at the prompt of the request `asked`. Both are in tui/requests.c. */
void loop_handle_request(struct loop *loop, enum request request, const struct key *key);
void loop_handle_answer(struct loop *loop, enum request asked, char *text);

/* Return a completion of WORD, which the caller frees: the first one if AGAIN is 0, the second one
 * if it is 1, and so on. Returns NULL if there are no more. In a command, names of commands and
 * views complete the word; in a filter, columns do; in SQL, tables and columns of the trace.
 * CONTEXT is a struct loop. */
char *loop_complete_word(void *context, const char *word, bool first, int again);

/* ---- opening and watching the trace that the loop shows (tui/trace_file.c) ---- */
/* Show the trace at PATH in place of the one that is shown. If PATH is NULL, show the newest trace
 * in this directory. Returns false on error, which has been reported. */
bool loop_take_trace(struct loop *loop, const char *path);
/* Show the trace at PATH in place of the one that is shown, and open its overview. */
void loop_open(struct loop *loop, const char *path);
/* Another file has been put where the trace was: open the path again. If the new file cannot be
 * read, the old one stays open. */
void loop_reopen(struct loop *loop);
/* Check whether the trace file was deleted, replaced or written to, and refresh the views of a
 * live trace. */
void loop_check_file(struct loop *loop);
/* Close the trace and all views of it. */
void loop_close_trace(struct loop *loop);

#endif

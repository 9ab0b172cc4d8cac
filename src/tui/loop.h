/* tui/loop.h -- the loop of `dyntrace tui`: where the door (tui.c) meets what it does itself with keys (tui/requests.c). */
#ifndef DYNTRACE_LOOP_H
#define DYNTRACE_LOOP_H

#include <sys/stat.h>

#include "trace/sql_words.h"
#include "tui/places.h"
#include "tui/prompt.h"
#include "tui/rates.h"

enum { SAY = 400 };

struct tui_options;

struct loop {
    struct tui face;        /* screen, work and db are owned */
    const struct tui_options *options; /* borrowed */
    struct places places;   /* owned: the views */
    struct prompt prompt;
    enum request asked;     /* what the prompt is for */
    struct sql_words words; /* owned; gathered when first needed */
    size_t next_word;
    char message[SAY];
    bool alarm, quit;
    bool clicked;           /* the last key was a click, and opened a view */
    struct output output;   /* owned: what the program printed */

    /* the trace, whose file may be deleted, replaced or written to */
    char *path;             /* owned: absolute */
    const char *name;       /* borrowed: what it is called */
    int ended_fd;           /* owned: readable when a job has ended */
    struct stat file;       /* as it was opened */
    bool gone, replaced;    /* there is none of that name any more, or another */
    bool live, hold;
    int64_t ticked_ms;
    struct rates rates;     /* while it is live */
    int killed;             /* how often the program was told to end */
    int64_t version;        /* of its rows when it was looked at last, 0: not yet */
};

static inline struct view *loop_top(const struct loop *loop)
{
    return places_top(&loop->places);
}

/* What no view takes, and what was typed for ASKED. */
void loop_request(struct loop *loop, enum request request, const struct key *key);
void loop_answer(struct loop *loop, enum request asked, char *text);

/* Of the prompt, for a struct loop: names of commands, then of views; for a filter the columns first; for SQL the trace's own words. */
char *loop_complete(void *context, const char *word, bool first, int again);

/* The file that has the trace's name now becomes the trace, or another, unless it cannot be read. */
void loop_reopen(struct loop *loop);
void loop_open(struct loop *loop, const char *path);

#endif

/* cmd/report/report.h -- what the forms of `dyntrace report` share.
 *
 * Runs in: the viewer.
 *
 * cmd/report.c           the command, and the page for a terminal
 * cmd/report/facts.c     what is known of the recording as a whole; the calls
 * cmd/report/sections.c  the tables, as data: what each asks (schemas/report.sql) and shows
 * cmd/report/json.c      for programs
 * cmd/report/html.c      for a browser: numbers and tables
 * cmd/report/svg.c       its timeline and flame graph */
#ifndef DYNTRACE_REPORT_H
#define DYNTRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/liveness.h"
#include "lib/progress.h"
#include "trace/counts.h"

struct db;
struct picture;
struct query;

enum { REPORT_MARKS = 4096 };

/* A lookup that was no hit, for the timeline. */
struct report_mark {
    int64_t lookup_id, thread_id, code_id, start_ns;
    int outcome;
};

struct report {
    struct db *db; /* owned */
    FILE *out;     /* borrowed */
    int64_t limit; /* -1: all */
    bool json;
    char *state;   /* owned: meta.state */
    enum liveness live;
    int64_t calls[OUTCOMES], times_ns[OUTCOMES]; /* by outcome, and how long their lookups took; but for */
    int64_t turned_away, turned_away_ns;         /* those of functions that the compiler turned away unread */
    struct call_sums sums;                       /* of the former */
    struct report_mark *marks;                   /* owned: some of those that were no hits, evenly over the run */
    size_t mark_count;
    struct picture *picture;                     /* owned: the frames, while they are read */
    struct progress progress;
};

/* Read what is known of lookups into REPORT; false: it was said why not. */
bool report_read(struct report *report);

/* PART of the calls that count in shares, as a percentage; negative when there are none. */
double report_percent(const struct report *report, int64_t part);

/* What is known of the recording, one after the other: "span" and "2.5 s". False: it was said why not. */
bool report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value), void *to);

/* Frames still open: counted by the recorder, or here where that is quick; else -1. FRAMES is how many there are. */
int64_t report_open_frames(struct db *db, int64_t frames);

/* Columns of the statement `processes` that both pages show. */
enum { PROCESS_PID = 1, PROCESS_DEPTH = 3, PROCESS_RANK, PROCESS_LOCAL_RANK, PROCESS_PYTHON = 8,
      PROCESS_TORCH_MODE = 11,
       PROCESS_END = 14, PROCESS_CODE, PROCESS_SIGNAL, PROCESS_THREADS, PROCESS_RAN, PROCESS_ARGV };

/* How the process that QUERY is at ended. Returns MADE or a constant. */
const char *report_ended(const struct report *report, struct query *query, char made[64]);

/* The words of a JSON array with blanks between them. The caller frees it. */
char *report_words(struct db *db, const char *json);

/* ---- the tables ------------------------------------------------------------- */

enum cell {
    CELL_TEXT, CELL_CODE, CELL_NUMBER, CELL_COUNT, CELL_TIME,
    CELL_WHERE,  /* a file, and the line in the column LINE */
    CELL_REASON, /* a line, and in a browser the next two columns behind it, as they are */
};

struct column {
    char at, line; /* of the statement: 'a' is the first */
    enum cell type;
    const char *name, *title; /* title: what it is, where the name does not say */
    size_t width;             /* bytes of a text that a terminal shows; 0: all */
};

struct section {
    const char *id, *title, *statement;
    const char *none;             /* what a page says when there are no rows; in a terminal the section is left out */
    bool always;                  /* not even then */
    const struct column *columns; /* the last has no name */
    const char *text, *page;      /* the columns of a terminal and a browser, by the letter of AT; NULL: it is not shown */
};

extern const struct section report_threads, report_sections[]; /* the last has no id */

/* The I-th column of SECTION in the order ORDER. */
const struct column *section_column(const struct section *section, const char *order, int i);

/* ---- the forms --------------------------------------------------------------- */

bool report_json(struct report *report);
bool report_html(struct report *report);

/* The timeline and the flame graph, a section each: cmd/report/svg.c. Frames are read from pictures_begin() on, in a
 * thread of their own, while the rest of the page is made. */
bool pictures_begin(struct report *report);
bool report_pictures(struct report *report);
void pictures_free(struct report *report);

/* TEXT for HTML: markup is spelled out, so are controls; cut to WIDTH bytes. NULL is "?". */
void html_text(FILE *out, const char *text, size_t width);

#endif

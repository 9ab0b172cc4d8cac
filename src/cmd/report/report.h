/* cmd/report/report.h -- what the forms of `dyntrace report` share.
 *
 * cmd/report.c           the command; for a terminal and for programs
 * cmd/report/facts.c     the recording as a whole, and its calls
 * cmd/report/tables.c    the tables, whose columns schemas/report.sql lists
 * cmd/report/html.c      for a browser; timeline and flame graph are data that page/report.js draws
 *                        */
#ifndef DYNTRACE_REPORT_H
#define DYNTRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/session.h"
#include "lib/say.h"
#include "trace/counts.h"

struct db;
struct json;

enum { REPORT_MARKS = 4096 };

struct report {
    struct db *db; /* owned */
    FILE *out;     /* borrowed */
    bool page;     /* --html */
    int64_t limit; /* rows of a table; -1: all */
    char *state;   /* owned: meta.state */
    enum liveness live;
    /* as the recorder counted them; the latter here, where that is quick; -1: not known */
    int64_t frames, open_frames;
    /* by outcome, and how long their lookups took; but for */
    int64_t calls[OUTCOMES], times_ns[OUTCOMES];
    /* those of functions that the compiler turned away unread */
    int64_t turned_away, turned_away_ns;
    struct call_sums sums; /* of the former */
    /* some of those that were no hits, evenly over the run, for the timeline */
    struct counted_call marks[REPORT_MARKS];
    size_t mark_count;
    /* how many there were; every STRIDEth of them is kept */
    int64_t missed, stride;
    struct progress progress;
};

/* Count the calls of the trace, by outcome, and its open frames. */
void report_calls_read(struct report *report);

/* True when any call was decided. PART of the calls that count in shares, in percent; negative when
 * there are none. */
bool report_decided(const struct report *report);
double report_percent(const struct report *report, int64_t part);

/* The trace's state in words: "still recording". */
const char *report_state(const struct report *report);

/* What is known of the recording, one after the other: "span" and "2.5 s". */
void report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value),
                  void *to);

/* The table NAME of schemas/report.sql, with its heading, and on a page as a section of its own
 * unless BARE. */
void report_table(struct report *report, const char *name, bool bare);

/* The same of another database, by the statement PATH, "ranks/storms". */
void report_table_of(struct report *report, struct db *db, const char *path, bool bare);

/* {"hit": {"calls": 5, "lookup_ns": 2500}, ...} */
void report_outcomes(const struct report *report, struct json *json, const char *key);

bool report_html(struct report *report); /* false: the error has been reported */

#endif

/* cmd/report/report.h -- shared by the files of `dyntrace report`.
 *
 * cmd/report.c           the command; prints for a terminal and for programs
 * cmd/report/facts.c     facts about the recording as a whole, and its calls
 * cmd/report/tables.c    the tables, whose columns schemas/report.sql lists
 * cmd/report/html.c      prints for a browser
 * cmd/report/advice.c    the page's section of remedies and source lines
 * cmd/report/picture.c   data of its pictures, which page/report.js draws
 * cmd/report/browser.c   opens the page */
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

/* A link at the head of an HTML page, to the section ID. */
struct link {
    char id[32], words[32];
};

struct report {
    struct db *db; /* owned */
    FILE *out;     /* borrowed */
    bool page;     /* the report is an HTML page, because --html was given */
    int64_t limit; /* rows that are printed of each table, or -1 for all */
    /* owned: whether the recording runs or how it ended (`state` in the table meta) */
    char *state;
    enum liveness live;
    /* Numbers of frames in the trace, -1 if not known. If the recorder has not counted the open
     * frames, report_read_calls() counts them, unless there are too many frames. */
    int64_t frames, open_frames;
    /* Number of calls, and the time of their lookups, by outcome. Calls of functions that the
     * compiler skipped without examining them (view turned_away) are not included. */
    int64_t calls[OUTCOMES], times_ns[OUTCOMES];
    /* number of calls in the view turned_away, and the time of their lookups */
    int64_t turned_away, turned_away_ns;
    struct call_sums sums; /* sums over `calls`, from which shares are computed */
    /* some of the calls that missed, evenly distributed over the run; the timeline shows them */
    struct counted_call marks[REPORT_MARKS];
    size_t mark_count;
    /* missed: how many calls missed; every STRIDEth of them is in `marks` */
    int64_t missed, stride;
    struct progress progress;
    /* The members below are used only for an HTML page. */
    char nonce[33]; /* a random text; the `nonce` attribute of the page's styles and script */
    char *longest;  /* owned: ids of frames as JSON, see picture_longest_calls() */
    LIST(struct link) links;
};

/* Count the trace's calls by outcome, and its open frames. */
void report_read_calls(struct report *report);

/* report_has_decisions: was any call decided by a compiler?
 *
 * report_share_in_percent: return PART in percent of the calls from which shares are computed
 * (trace/counts.h), or a negative number if there are no such calls. */
bool report_has_decisions(const struct report *report);
double report_share_in_percent(const struct report *report, int64_t part);

/* Is something missing from the trace, or are its times in doubt? If the program only waited for
 * the recorder, no. */
bool report_has_doubts(const struct report *report);

/* Return the state of the trace in words, such as "still recording". */
const char *report_describe_state(const struct report *report);

/* Call PUT for each fact about the recording, with the fact's name and value, such as "span" and
 * "2.5 s". TO is the first argument of PUT. */
void report_facts(struct report *report, void (*put)(void *to, const char *name, const char *value),
                  void *to);

/* Print the table NAME of schemas/report.sql with its heading. On an HTML page it becomes a
 * section, unless BARE. */
void report_print_table(struct report *report, const char *name, bool bare);

/* Like report_print_table, but for the statement PATH, such as "ranks/storms", on another
 * database. */
void report_print_table_of_trace(struct report *report, struct db *db, const char *path, bool bare);

/* Add a link to the section ID to the head of the page. WORDS is the text of the link. */
void report_print_link(struct report *report, const char *id, const char *words);

/* Write the number of calls by outcome to JSON as the member KEY: {"hit": {"calls": 5, "lookup_ns":
 * 2500}, ...}. */
void report_write_outcomes(const struct report *report, struct json *json, const char *key);

/* Print the report as an HTML page. Returns false on error, which has been reported. */
bool report_print_html(struct report *report);

#endif

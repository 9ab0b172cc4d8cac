/* cmd/report/report.h -- what the forms of `dyntrace report` share.
 *
 * Runs in: the viewer.
 *
 * cmd/report.c    the command, and the page for a terminal
 * cmd/report/facts.c  the questions: SQL, and one pass over lookups
 * cmd/report/json.c   for programs
 * cmd/report/html.c   for a browser: numbers and tables
 * cmd/report/svg.c    its timeline and flame graph */
#ifndef DYNTRACE_REPORT_H
#define DYNTRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/liveness.h"
#include "lib/progress.h"
#include "vocabulary.h"

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
    bool torch;    /* the trace says how torch was watched */
    bool compiles; /* it has the tables about compiles */
    bool lookups;  /* and those about lookups and guards */
    int64_t outcomes[OUTCOMES]; /* lookups by outcome, and how long they took */
    int64_t times_ns[OUTCOMES];
    int64_t calls;                     /* all of them */
    struct report_mark *marks;         /* owned: some of those that were no hits, evenly over the run */
    size_t mark_count;
    struct picture *picture;           /* owned: the frames, while they are read */
    struct progress progress;
};

/* Read what is known of lookups into REPORT; false: it was said why not. */
bool report_read(struct report *report);

/* Of the calls that the compiler was asked about and did not turn away for good, those that ran compiled code as it was:
 * a percentage, negative when there were none. */
double report_hit_rate(const struct report *report);

/* Of the same, those that ran as Python. */
double report_eager_share(const struct report *report);

/* Questions; ?1 is the limit of rows. */
extern const char report_losses[], report_compiled[], report_torch[], report_hot[];
extern const char report_causes[];     /* recompiles by function and cause */
extern const char report_recompiles[]; /* each recompile */
extern const char report_breaks[];     /* graph breaks by place and reason */
extern const char report_guards[];     /* what guards cost, by kind and source */
extern const char report_reached[];    /* functions at the limit, and since when */

/* Processes in the order of a tree, a parent before its children. A process
 * whose parent was not followed, or is itself, is a root. */
#define PROCESS_TREE \
    "WITH RECURSIVE tree(process_id, depth, path) AS (" \
    "  SELECT process_id, 0, printf('%020d', process_id) FROM process" \
    "  WHERE parent_process_id IS NULL OR parent_process_id = process_id" \
    "     OR parent_process_id NOT IN (SELECT process_id FROM process)" \
    "  UNION ALL" \
    "  SELECT p.process_id, depth + 1, path || printf('%020d', p.process_id)" \
    "  FROM tree CROSS JOIN process p ON p.parent_process_id = tree.process_id" \
    "  WHERE depth < 60 AND p.process_id <> tree.process_id) "

const char *report_state(const struct report *report);

/* The words of a JSON array with spaces between them. The caller frees it. */
char *report_words(struct db *db, const char *json);

/* Frames still open: counted by the recorder, or here where that is quick; else -1. FRAMES is how many there are. */
int64_t report_open_frames(struct db *db, int64_t frames);

/* How a process ended. Returns MADE or a constant. */
const char *report_ended(const struct report *report, struct query *query, int code, int signal_, int end, char made[64]);

bool report_json(struct report *report);
bool report_html(struct report *report);

/* The timeline and the flame graph, a section each: cmd/report/svg.c. Frames are read from pictures_begin() on, in a thread
 * of their own, while the rest of the page is made. */
bool pictures_begin(struct report *report);
bool report_pictures(struct report *report);
void pictures_free(struct report *report);

/* TEXT for HTML: markup is spelled out, so are controls; cut to WIDTH bytes. NULL is "?". */
void html_text(FILE *out, const char *text, size_t width);

#endif

/* trace/traces.h -- the words of a command line as traces.
 *
 * A word is a file, a directory, which is every *.db in it, or a pattern such as 'rank*.db'. One
 * trace is opened as it is. Several traces are first merged (trace/merge.h) into a temporary file,
 * with one of them open at a time, so that a command answers as for the output of `dyntrace merge`.
 * Other files in a directory, unreadable traces, and traces that do not belong together
 * (trace/given.h) are reported in a line each and left out; the command then ends with status 3,
 * unless it has another error status. */
#ifndef DYNTRACE_TRACES_H
#define DYNTRACE_TRACES_H

#include "lib/list.h"
#include "trace/merge.h"

struct db;

enum { TRACES_LEFT_OUT = 3 }; /* the exit status for that */

/* May WORD name traces (rather than a function or a query)? */
bool traces_named(const char *word);

struct traces {
    LIST(char *) paths; /* each owned, in the order of the words; the files of one word by name */
    struct db *given;   /* owned: what each says, trace/given.h; NULL: fewer than two were named */
    size_t next;
    bool failed;
};

/* The traces of WORDS, which ends with a NULL; none, FAILED, after saying that a word is no file at
 * all. traces_together: without those that do not go together with the others. */
struct traces traces_list(char *const *words);
struct traces traces_together(char *const *words);

/* The next readable trace, for commands that answer for one trace after the other; NULL: no more.
 * Traces still being recorded are left out. The caller ends it with db_close. */
struct db *traces_next(struct traces *traces);
void traces_free(struct traces *traces);

/* The traces of WORDS as one; without a word the newest *.db here. Of several it has the frames
 * that FRAMES says. NULL: the error has been reported. The caller ends it with db_close. */
struct db *traces_open(char *const *words, enum merge_frames frames);

/* The same as a file: the only one itself, or a temporary one without a name (lib/out_file.h).
 * NULL: the error has been reported. Borrowed. *NAME: what to call it, borrowed, or NULL. */
const char *traces_file(char *const *words, enum merge_frames frames, const char **name);

/* Is PATH among the listed traces? An output must not be an input. */
bool traces_has(const char *path);

/* Add MORE to the number of traces left out; returns it. */
size_t traces_left_out(size_t more);

#endif

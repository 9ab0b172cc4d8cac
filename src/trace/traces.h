/* trace/traces.h -- finds and opens the traces that a command line names.
 *
 * An operand is a file, a directory, which stands for every *.db in it, or a pattern such as
 * 'rank*.db'. A single trace is opened directly. Several traces are first merged (trace/merge.h)
 * into a temporary file, so that a command answers as it would for the output of `dyntrace merge`.
 *
 * Other files in a directory, unreadable traces, and traces that do not belong together
 * (trace/given.h) are left out, each with a message. The command then ends with status 3, unless it
 * has another error status. */
#ifndef DYNTRACE_TRACES_H
#define DYNTRACE_TRACES_H

#include "lib/list.h"
#include "trace/merge.h"

struct db;

enum { TRACES_LEFT_OUT = 3 }; /* the exit status of a command that left out traces */

/* Is WORD meant as a trace, not as a function or a query? */
bool traces_is_operand(const char *word);

struct traces {
    /* owned: the paths in the order of the operands; the files of one operand are sorted by name */
    LIST(char *) paths;
    /* owned: a database with the metadata of the traces (trace/given.h); NULL if only one
     * trace was named */
    struct db *given;
    size_t next;
    bool failed;
};

/* traces_list: return the traces that WORDS name; WORDS ends with a NULL. If a word is not an
 * existing file, this is reported, and the result is empty with FAILED set.
 *
 * traces_list_as_one: the same, without the traces that do not belong together with the others. */
struct traces traces_list(char *const *words);
struct traces traces_list_as_one(char *const *words);

/* Sort TRACES, a result of traces_list_as_one(), by rank, so that traces_open_next() opens them in
 * this order. Traces without a rank are last. */
void traces_sort_by_rank(struct traces *traces);

/* Open the next readable trace, for commands that answer for one trace after the other. Traces that
 * are still being recorded are left out. Returns NULL after the last trace. The caller closes the
 * result with db_close. */
struct db *traces_open_next(struct traces *traces);
void traces_free(struct traces *traces);

/* Open the traces of WORDS as one trace, or the newest *.db of the current directory if WORDS is
 * empty. FRAMES tells which frames are copied if several traces are merged. Returns NULL on error,
 * which has been reported. The caller closes the result with db_close. */
struct db *traces_open(char *const *words, enum merge_frames frames);

/* Return the path of a file that has the traces of WORDS as one trace: the trace's own file if
 * there is only one, otherwise a temporary file without a name (lib/out_file.h). *NAME becomes what
 * messages call the temporary file, or NULL. Returns NULL on error, which has been reported. Both
 * texts are borrowed. */
const char *traces_make_one_file(char *const *words, enum merge_frames frames, const char **name);

/* Is PATH one of the listed traces? An output file must not be an input file. */
bool traces_has(const char *path);

/* Add MORE to the number of traces that were left out, and return the sum. */
size_t traces_count_left_out(size_t more);

#endif

/* trace/find_code.h -- finds the function that a user's words name.
 *
 *     struct found_code f;
 *     switch (find_code(db, "Net.forward", &f, ...)) ...
 *     ... "SELECT ... WHERE code_id IN (" f.ids ")"
 *     found_code_free(&f);
 *
 * One function can have several code objects, because several processes run it or because one
 * process defines it several times. Code objects with the same file, qualified name, first line and
 * kind are one function. */
#ifndef DYNTRACE_FIND_CODE_H
#define DYNTRACE_FIND_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/list.h"

struct db;
struct json;
struct query;

struct found_code {
    /* owned: name, file and kind of the function; "?" if not known */
    char *qualname, *filename, *kind;
    int64_t first_line;
    char *ids; /* owned: the code ids of the function as an SQL list, "3, 7" */
    /* number of code objects of the function, including those that did not fit into `ids` */
    int64_t code_objects;
    int64_t processes;
    int64_t compiles;
    /* owned: the label of a compile, such as "0/1", if the user typed one; otherwise NULL */
    char *label;
};

enum find_result { FIND_ONE, FIND_SEVERAL, FIND_NONE, FIND_LISTED };

/* Find the function that NAME names. NAME is a qualified name, the last part of one, FILE:LINE,
 * FILE:LINE:NAME, a GLOB pattern, or the label of a compile such as 0/1. If NAME is NULL, list
 * the functions most worth explaining. Returns one of:
 *
 *     FIND_ONE      FOUND is filled; the caller frees it with found_code_free.
 *     FIND_SEVERAL  Several functions fit, and have been listed on OUT with their counts.
 *     FIND_LISTED   NAME is NULL, and the functions have been listed on OUT.
 *     FIND_NONE     No function fits, which has been reported on stderr. If db_has_failed(), an
 *                   error may be the reason. */
enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out,
                           bool json);

/* Find the only function that NAME names, and fill FOUND. Returns false if no function or several
 * functions fit, and prints nothing. */
bool find_single_function(struct db *db, const char *name, struct found_code *found);

void found_code_free(struct found_code *found);

/* Bind the code ids of FOUND to a parameter of QUERY, as a JSON array. */
void find_bind_ids(struct query *query, int parameter, const struct found_code *found);

/* The code objects of a function, in a form in which frames are looked up quickly. */
struct found_ids {
    LIST(int64_t) codes; /* sorted */
    /* maps the other code ids of a function to its first code_id, which is not in the map itself */
    struct map same;
};

struct found_ids found_ids_read(struct db *db, const struct found_code *found);
bool found_ids_has(const struct found_ids *ids, int64_t code_id);
void found_ids_free(struct found_ids *ids);

/* Write FOUND to JSON as the member "function". */
void found_write_as_json(struct json *json, const struct found_code *found);

/* Divide GIVEN, the operands of `why` or `show`, into the name of a function and traces. The
 * name comes first or last; *NAME is NULL if all operands are traces. *FILES ends with a NULL
 * and points into the array GIVEN. If that fails, reports an error that begins with COMMAND, and
 * returns false. */
bool find_split_operands(const char *command, int count, char **given, const char **name,
                         char ***files);

/* Can NAME be meant as a function? In `dyntrace why my.trace` the user gave a file instead. If NAME
 * is an existing file or ends in ".db", FILES is empty, and the current directory has no trace,
 * reports an error and returns false. COMMAND ("why") is the command that the error suggests. */
bool find_is_name_plausible(const char *command, const char *name, char *const *files);

/* Open the traces that FILES name, or the newest trace in the current directory if FILES is empty.
 * All queries see one snapshot, so that figures agree while the recording continues. Returns NULL
 * after reporting an error. */
struct db *find_open_traces(char *const *files);

/* Return the exit status for RESULT: 0 for an answer, 1 if several functions were listed, 2 on
 * failure. */
int find_exit_status(struct db *db, enum find_result result);

#endif

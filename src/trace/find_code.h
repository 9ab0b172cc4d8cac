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
    char *qualname, *filename, *kind; /* owned; "?" if not known */
    int64_t first_line;
    char *ids; /* owned: the code ids as an SQL list, "3, 7" */
    /* the number of code objects, including those that did not fit into IDS */
    int64_t code_objects;
    int64_t processes;
    int64_t compiles;
    char *label; /* owned: the label "0/1" if the user named a compile, otherwise NULL */
};

enum find_result { FIND_ONE, FIND_SEVERAL, FIND_NONE, FIND_LISTED };

/* Find the function that NAME names. NAME is a qualified name, the last part of one, FILE:LINE, a
 * GLOB pattern, or the label of a compile such as 0/1. If NAME is NULL, list the functions most
 * worth explaining.
 *
 *    FIND_ONE      FOUND is filled; the caller frees it with found_code_free
 *    FIND_SEVERAL  several functions fit and have been listed on OUT, with their counts
 *    FIND_LISTED   NAME is NULL, and the functions have been listed on OUT
 *    FIND_NONE     no function fits, which has been reported on stderr. db_failed() tells
 *                  whether an error may be the reason */
enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out,
                           bool json);

/* Find the only function that NAME names, and fill FOUND. Returns false if no function or several
 * functions fit, and prints nothing. */
bool find_only(struct db *db, const char *name, struct found_code *found);

void found_code_free(struct found_code *found);

/* Bind the code ids of FOUND to a parameter of QUERY, as a JSON array. */
void find_bind(struct query *query, int parameter, const struct found_code *found);

/* The code objects of a function, prepared for looking up frames. */
struct found_ids {
    LIST(int64_t) codes; /* sorted */
    /* maps a code_id to the first code object of the same function; has no entry for code objects
     * that are the first */
    struct map same;
};

struct found_ids found_ids_read(struct db *db, const struct found_code *found);
bool found_ids_has(const struct found_ids *ids, int64_t code_id);
void found_ids_free(struct found_ids *ids);

/* Write FOUND to JSON as the member "function". */
void found_json(struct json *json, const struct found_code *found);

/* Divide GIVEN, the operands of `why` or `show`, into a function's name and traces. The name comes
 * first or last; *NAME is NULL if every operand is an existing file. *FILES ends with a NULL and
 * may use GIVEN's array. Returns false after reporting an error in the name of COMMAND. */
bool find_operands(const char *command, int count, char **given, const char **name, char ***files);

/* Did the user mean NAME as a function? In `dyntrace why my.trace` the user gave a file instead.
 * Returns false if NAME is an existing file, no FILES are given, and the current directory has no
 * trace. This has been reported as COMMAND's error. */
bool find_name_fits(const char *command, const char *name, char *const *files);

/* Open the traces that FILES name, or the newest trace here if there are none. All queries see one
 * snapshot, so that figures agree while the recording continues. Returns NULL after reporting an
 * error. */
struct db *find_open(char *const *files);

/* Return the exit status for RESULT: 0 for an answer, 1 if several functions were listed, 2 on
 * failure. */
int find_status(struct db *db, enum find_result result);

#endif

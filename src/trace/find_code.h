/* trace/find_code.h -- finds the function that a user's words name.
 *
 *     struct found_code f;
 *     switch (find_code(db, "Net.forward", &f, ...)) ...
 *     ... "SELECT ... WHERE code_id IN (" f.ids ")"
 *     found_code_free(&f);
 *
 * Code objects with the same file, qualified name, first line and kind are one function: in several
 * processes, or defined again. */
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
    char *qualname, *filename, *kind; /* owned, "?" when not known */
    int64_t first_line;
    char *ids;            /* owned: code ids for an SQL list, "3, 7" */
    int64_t code_objects; /* all code objects, including those that IDS has no room for */
    int64_t processes;
    int64_t compiles;
    char *label; /* owned: the compile that was named, "0/1", or NULL */
};

enum find_result { FIND_ONE, FIND_SEVERAL, FIND_NONE, FIND_LISTED };

/* Find NAME (NULL: the functions most worth explaining): a qualified name, its last part,
 * FILE:LINE, a GLOB, or a compile's label such as 0/1.
 *
 *   FIND_ONE      FOUND is filled; the caller ends it with found_code_free
 *   FIND_SEVERAL  several matched and have been listed on OUT with their counts
 *   FIND_LISTED   the same without a NAME
 *   FIND_NONE     reported on stderr; db_failed() tells whether an error may have hidden it */
enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out,
                           bool json);
void found_code_free(struct found_code *found);

/* Its ids as a parameter of QUERY: a JSON array. */
void find_bind(struct query *query, int parameter, const struct found_code *found);

/* The code objects of a function by which its frames are known, where those of one function in
 * several processes count as one. */
struct found_ids {
    LIST(int64_t) codes; /* sorted */
    struct map same;     /* code_id -> the first code object of its function; without those */
};

struct found_ids found_ids_read(struct db *db, const struct found_code *found);
bool found_ids_has(const struct found_ids *ids, int64_t code_id);
void found_ids_free(struct found_ids *ids);

/* FOUND as the member "function". */
void found_json(struct json *json, const struct found_code *found);

/* Divide GIVEN, the operands of `why` or `show`, into a function's name and traces. The name comes
 * first or last; *NAME is NULL if every operand is an existing file. *FILES ends with a NULL and
 * may reuse GIVEN's array. False on an error, which has been reported under the name COMMAND. */
bool find_operands(const char *command, int count, char **given, const char **name, char ***files);

/* False, after saying why, as COMMAND: NAME is a file, FILES are none, and no trace is here that
 * could have a function of that name. */
bool find_name_fits(const char *command, const char *name, char *const *files);

/* Open the traces that FILES name, or the newest one, for an answer about decisions: one snapshot,
 * so that the facts agree while the recording goes on. NULL: the error has been reported. */
struct db *find_open(char *const *files);

/* The exit status of an answer: 0, 1 when several functions were listed, 2 when it failed. */
int find_status(struct db *db, enum find_result result);

#endif

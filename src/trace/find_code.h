/* trace/find_code.h -- from what a user types to a function of a trace.
 *
 *     struct found_code f;
 *     switch (find_code(db, "Net.forward", &f, ...)) ...
 *     ... "SELECT ... WHERE code_id IN (" f.ids ")"
 *     found_code_free(&f);
 *
 * A function is what its file, qualified name, first line and kind say: code
 * objects that agree in those are the same function in several processes, or
 * one that was defined again. */
#ifndef DYNTRACE_FIND_CODE_H
#define DYNTRACE_FIND_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct db;
struct json;
struct query;

struct found_code {
    char *qualname, *filename, *kind; /* owned, "?" when not known */
    int64_t first_line;
    char *ids;            /* owned: code ids for an SQL list, "3, 7" */
    int64_t code_objects; /* all there are, also those that IDS has no room for */
    int64_t processes;
    int64_t compiles;
    char *label; /* owned: the compile that was named, "0/1", or NULL */
};

enum find_result { FIND_ONE, FIND_SEVERAL, FIND_NONE, FIND_LISTED };

/* Find NAME (NULL: what is most worth asking about): a qualified name, its last part, FILE:LINE, a
 * GLOB, or a compile's label such as 0/1. FIND_ONE fills FOUND, which the caller ends with
 * found_code_free. FIND_SEVERAL: they were listed on OUT with their counts.
 * FIND_LISTED: the same without a NAME. FIND_NONE: it was said on stderr; db_failed() when it may
 * be there all the same. */
enum find_result find_code(struct db *db, const char *name, struct found_code *found, FILE *out,
                           bool json);
void found_code_free(struct found_code *found);

/* Its ids as a parameter of QUERY: a JSON array. */
void find_bind(struct query *query, int parameter, const struct found_code *found);

/* FOUND as the member "function". */
void found_json(struct json *json, const struct found_code *found);

/* What `why` and `show` have in common: FUNC and FILEs, FUNC first or last; FILEs alone that are
 * there leave *NAME NULL. *FILES ends with a NULL, for which GIVEN, the operands, may be changed.
 * False after saying what is missing or too much, as COMMAND. */
bool find_operands(const char *command, int count, char **given, const char **name, char ***files);

/* Open the traces that FILES name, or the newest one, for an answer about decisions: one snapshot,
 * so that the facts agree while the recording goes on. NULL: the error has been reported. */
struct db *find_open(char *const *files);

/* The exit status of an answer: 0, 1 when several functions were listed, 2 when it failed. */
int find_status(struct db *db, enum find_result result);

#endif

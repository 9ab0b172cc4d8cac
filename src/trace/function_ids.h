/* trace/function_ids.h -- the function of a code object, as defined by the view `functions`.
 *
 * That view numbers functions by sorting all code objects, anew in each statement that groups by
 * function_id. Connections of ours look the number up here instead: trace/trust.c puts the SQL
 * function function_of(code_id) into our own copy of the view. Code objects are read once; an
 * unknown id causes newer ones to be read. */
#ifndef DYNTRACE_FUNCTION_IDS_H
#define DYNTRACE_FUNCTION_IDS_H

#include <stdint.h>

#include "lib/list.h"

struct sqlite3;
struct sqlite3_stmt;

/* The view's expression for it, and its replacement in our copy. */
#define FUNCTION_ID_VIEW "MIN(code_id) OVER (PARTITION BY filename, qualname, first_line)"
#define FUNCTION_ID_OURS "function_of(code_id)"

/* A function: texts are NULL where the trace has none. */
struct function_id {
    const char *filename, *qualname; /* of the arena */
    int64_t first_line;
    bool is_lined;       /* it has a first line */
    int64_t function_id; /* the smallest code_id */
    size_t before;       /* 1 + the index of another one with its hash; 0: none */
};

/* Empty when it is zero. */
struct function_ids {
    struct map codes;  /* code_id -> function_id */
    struct map hashes; /* -> 1 + an index of `functions` */
    LIST(struct function_id) functions;
    struct arena texts;
    int64_t last; /* code objects up to this one were read */
};

/* Store the function of CODE_ID in *FOUND, 0 if there is no such code object. Returns 0 or an
 * SQLite error. */
int function_ids_find(struct function_ids *ids, struct sqlite3 *handle, int64_t code_id,
                      int64_t *found);
void function_ids_free(struct function_ids *ids);

#endif

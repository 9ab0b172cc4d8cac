/* trace/function_ids.h -- the function of a code object, as defined by the view `functions`.
 *
 * The view `functions` computes function_id by sorting all code objects, once for each statement
 * that groups by function_id. Our own connections look function_id up instead: trace/trust.c puts
 * the SQL function function_of(code_id), which is made of the functions below, into our copy of the
 * view. Code objects are read once; code objects that were added later are read when an unknown id
 * is looked up. */
#ifndef DYNTRACE_FUNCTION_IDS_H
#define DYNTRACE_FUNCTION_IDS_H

#include <stdint.h>

#include "lib/list.h"

struct sqlite3;
struct sqlite3_stmt;

/* FUNCTION_ID_VIEW: how the view computes function_id. FUNCTION_ID_OURS: the expression that
 * replaces it in our copy of the view. */
#define FUNCTION_ID_VIEW "MIN(code_id) OVER (PARTITION BY filename, qualname, first_line)"
#define FUNCTION_ID_OURS "function_of(code_id)"

/* A function. A text is NULL if it is NULL in the trace. */
struct function_id {
    const char *filename, *qualname; /* borrowed from the arena `texts` */
    int64_t first_line;
    bool is_lined;       /* false if the column first_line is NULL in the trace */
    int64_t function_id; /* the smallest code_id of the function's code objects */
    size_t before;       /* 1 + the index of an earlier function with the same hash, or 0 */
};

/* The functions of a trace. Must be zeroed before use. */
struct function_ids {
    struct map codes; /* maps a code_id to the function_id of its function */
    /* maps a hash of file, name and line to 1 + the index of a function in `functions` */
    struct map hashes;
    LIST(struct function_id) functions;
    struct arena texts;
    int64_t last; /* the greatest code_id that was read so far */
};

/* Store the function_id of CODE_ID in *FOUND, or 0 if there is no such code object. Returns 0 or an
 * SQLite error. */
int function_ids_find(struct function_ids *ids, struct sqlite3 *handle, int64_t code_id,
                      int64_t *found);
void function_ids_free(struct function_ids *ids);

#endif

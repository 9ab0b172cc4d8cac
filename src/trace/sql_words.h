/* trace/sql_words.h -- words for SQL: what Tab may complete, and what stands for a whole query. */
#ifndef DYNTRACE_SQL_WORDS_H
#define DYNTRACE_SQL_WORDS_H

#include "lib/list.h"

struct db;

struct sql_words {
    LIST(const char *) words; /* of ARENA */
    struct arena arena;
};

void sql_words_gather(struct sql_words *words, struct db *db);
void sql_words_free(struct sql_words *words);

/* The SQL that the first line of LINE names, which the caller frees: a query of schemas/queries/,
 * or a command such as ".schema frame". NULL: it names none. */
char *sql_named(const char *line);

/* The text called NAME below schemas/: a named query, a statement ("report/functions"), "views" or
 * "trace". NULL: there is none. */
const char *sql_text(const char *name);

/* One match of TEXT in LIST after the other; the first with AGAIN 0. NEXT is kept for the search
 * between two calls. TEXT may be "f.par": what stands before the last dot is kept. The caller frees
 * it; NULL: no more. */
char *sql_match(const char *text, const char *const *list, size_t count, size_t *next, int again);

#endif

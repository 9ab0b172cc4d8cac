/* trace/sql_words.h -- words that Tab completes in SQL, and named queries. */
#ifndef DYNTRACE_SQL_WORDS_H
#define DYNTRACE_SQL_WORDS_H

#include "lib/list.h"

struct db;

struct sql_words {
    LIST(const char *) words; /* the texts are in ARENA */
    struct arena arena;
};

void sql_words_gather(struct sql_words *words, struct db *db);
void sql_words_free(struct sql_words *words);

/* Return the SQL that LINE names, which the caller frees: a query of schemas/queries/, or a command
 * such as ".schema frame". Returns NULL if LINE names neither. */
char *sql_named(const char *line);

/* Return the SQL called NAME in schemas/: a named query, a statement such as "report/functions",
 * "views" or "trace". Returns NULL if there is none. */
const char *sql_text(const char *name);

/* Return the next word of LIST that begins with TEXT. AGAIN is 0 in the first call of a search,
 * whose position is kept in *NEXT. TEXT may be "f.par": the part up to the last dot is kept.
 * Returns NULL if there is no further match. The caller frees the word. */
char *sql_match(const char *text, const char *const *list, size_t count, size_t *next, int again);

#endif

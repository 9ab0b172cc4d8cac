/* trace/sql_words.h -- words for SQL: Tab completion, and names of whole queries. */
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

/* The next match of TEXT in LIST; AGAIN 0 starts the search, whose position is in NEXT. TEXT may be
 * "f.par": the part before the last dot is kept. The caller frees it; NULL: no more. */
char *sql_match(const char *text, const char *const *list, size_t count, size_t *next, int again);

#endif

/* trace/sql_words.h -- finds the words that Tab completes in SQL, and named queries. */
#ifndef DYNTRACE_SQL_WORDS_H
#define DYNTRACE_SQL_WORDS_H

#include "lib/list.h"

struct db;

struct sql_words {
    LIST(const char *) words; /* the words; their texts are in `arena` */
    struct arena arena;
};

void sql_words_gather(struct sql_words *words, struct db *db);
void sql_words_free(struct sql_words *words);

/* Return the SQL that LINE names. LINE may be the name of a query in schemas/queries/, or a command
 * such as ".schema frame". Returns NULL if it is neither. The caller frees the SQL. */
char *sql_name_of_line(const char *line);

/* Return the SQL that is called NAME in schemas/: "hot-functions" (a query), "report/functions" (a
 * statement), "views" or "trace". Returns NULL if there is none. */
const char *sql_find_statement(const char *name);

/* Return the next word of LIST that begins with TEXT. If TEXT has a dot, as in "f.par", only the
 * text behind the dot is compared, and the result begins with what stands before it. AGAIN is 0 in
 * the first call of a search; *NEXT remembers where the search continues. Returns NULL if no other
 * word fits. The caller frees the result. */
char *sql_match_words(const char *text, const char *const *list, size_t count, size_t *next,
                      int again);

#endif

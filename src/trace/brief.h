/* trace/brief.h -- shortens the program's values, but keeps them distinguishable. */
#ifndef DYNTRACE_BRIEF_H
#define DYNTRACE_BRIEF_H

/* Copy TEXT with each floating-point number rounded to four significant digits:
 * "0.3705904774487397, 0.25" becomes "0.3706, 0.25". More digits are kept where two different
 * numbers of TEXT and BESIDE would print the same. BESIDE is the text that is printed next to TEXT,
 * or NULL. Returns NULL if TEXT is NULL. The caller frees the copy. */
char *brief_make_pair_distinct(const char *text, const char *beside);

#endif

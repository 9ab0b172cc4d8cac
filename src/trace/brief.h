/* trace/brief.h -- shortens the program's values, but keeps them distinguishable. */
#ifndef DYNTRACE_BRIEF_H
#define DYNTRACE_BRIEF_H

/* TEXT with each floating-point number in it rounded to four significant digits, or more where two
 * different numbers in TEXT and BESIDE would become equal: "0.3706, 0.25" of "0.3705904774487397,
 * 0.25". Other text is copied. BESIDE may be NULL. NULL for NULL; the caller frees it. */
char *brief_of(const char *text, const char *beside);

#endif

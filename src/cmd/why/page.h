/* cmd/why/page.h -- the page of `dyntrace why`, for people.
 *
 * schemas/pages/why.txt has the words and the layout of the page, section by section. page.c sets
 * the fields that it uses. For a program that uses torch the page uses torch's words, for example
 * "eagerly" instead of "as Python". */
#ifndef DYNTRACE_CMD_WHY_PAGE_H
#define DYNTRACE_CMD_WHY_PAGE_H

#include <stdbool.h>

#include "trace/why/why.h"

/* Print WHY, which must be filled in. If ALL, print all remedies, not only the first ones. */
void why_page_print(struct why *why, bool all);

/* Print the remedies of WHY to OUT as they are on that page. */
void why_remedies_print(struct why *why, FILE *out, enum template_way way);

#endif

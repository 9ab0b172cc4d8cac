/* cmd/why/page.h -- prints the page of `dyntrace why`, for people.
 *
 * schemas/pages/why.txt has the words and the layout of the page, section by section. page.c sets
 * the fields of the templates. For a program that uses torch, the page has torch's words, such as
 * "eagerly" where it otherwise has "as Python". */
#ifndef DYNTRACE_CMD_WHY_PAGE_H
#define DYNTRACE_CMD_WHY_PAGE_H

#include <stdbool.h>

#include "trace/why/why.h"

/* Print the page about WHY. why_gather_facts(), why_add_remedies() and why_predict_remedies() must
 * have filled WHY. If ALL, print all remedies, not only the first ones. */
void why_page_print(struct why *why, bool all);

/* Print the remedies of WHY to OUT, as on the page of `dyntrace why`. */
void why_remedies_print(struct why *why, FILE *out, enum template_way way);

#endif

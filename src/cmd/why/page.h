/* cmd/why/page.h -- the page of `dyntrace why`, for people.
 *
 * schemas/pages/why.txt has its words and its layout, section by section; page.c gives each fact
 * the name that it has there. Of a program that uses torch the page is in torch's words: its labels
 * and names, "eagerly" for what others call "as Python". */
#ifndef DYNTRACE_CMD_WHY_PAGE_H
#define DYNTRACE_CMD_WHY_PAGE_H

#include <stdbool.h>

#include "trace/why/why.h"

/* Print WHY, which is filled in; ALL its remedies, not only the first ones. */
void why_page_print(struct why *why, bool all);

#endif

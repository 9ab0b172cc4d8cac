/* cmd/report/advice.h -- the section "What would help" of `dyntrace report --html`. */
#ifndef DYNTRACE_REPORT_ADVICE_H
#define DYNTRACE_REPORT_ADVICE_H

struct page_text;
struct report;

/* Print the section: for each of the three functions of the findings that a compiler had to do with
 * its remedies, and its source with the lines that need guards, that broke graphs, and that forced
 * recompiles. Prints nothing if there is no such function. */
void advice_html(struct report *report, struct page_text *page);

#endif

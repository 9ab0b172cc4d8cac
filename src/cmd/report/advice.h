/* cmd/report/advice.h -- the section "What would help" of `dyntrace report --html`. */
#ifndef DYNTRACE_REPORT_ADVICE_H
#define DYNTRACE_REPORT_ADVICE_H

struct page_text;
struct report;

/* Print the section. It shows up to three functions: those of the findings that a compiler handled.
 * For each function it prints the remedies, and the source with marks on lines that need guards,
 * that broke graphs, or that forced recompiles. Prints nothing if there is no such function. */
void advice_print_html(struct report *report, struct page_text *page);

#endif

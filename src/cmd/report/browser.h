/* cmd/report/browser.h -- opens a file in the user's browser. */
#ifndef DYNTRACE_REPORT_BROWSER_H
#define DYNTRACE_REPORT_BROWSER_H

#include <stdbool.h>

/* Create a directory for temporary files and return the path of the page about TRACE in it, such
 * as "/tmp/dyntrace.x1y2z3/train.html". The caller frees the path. Returns NULL on error, which has
 * been reported. */
char *browser_make_page_path(const char *trace);

/* Remove the temporary directory of PLACE, a path from browser_make_page_path(), if the directory
 * is empty. */
void browser_remove_page(const char *place);

/* Show the file PATH in a browser. The commands of $BROWSER are tried first, then those of the
 * system. If none of them works, reports that and returns false. */
bool browser_open(const char *path);

#endif

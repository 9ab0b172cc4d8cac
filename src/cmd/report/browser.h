/* cmd/report/browser.h -- opens a page that has been written in the user's browser. */
#ifndef DYNTRACE_REPORT_BROWSER_H
#define DYNTRACE_REPORT_BROWSER_H

#include <stdbool.h>

/* Create a directory for temporary files and return the path of the page about TRACE in it, such
 * as "/tmp/dyntrace.x1y2z3/train.html". The caller frees the path. Returns NULL on error, which has
 * been reported. */
char *browser_place(const char *trace);

/* Remove the directory of PLACE, which browser_place() returned, if it is empty. */
void browser_place_remove(const char *place);

/* Show the file PATH in a browser: by the commands of $BROWSER, else by the system's. Returns false
 * if none of them works, which has been reported. */
bool browser_open(const char *path);

#endif

/* trace/findings.h -- prints what to look at first in a trace: a line about the time of the run,
 * and at most three findings.
 *
 * The figures come from the views run_times and findings (schemas/views.sql), the text from
 * schemas/findings.sql. */
#ifndef DYNTRACE_FINDINGS_H
#define DYNTRACE_FINDINGS_H

#include <stdio.h>

#include "trace/template.h"

struct db;
struct json;

/* Print the line about the run's time and the findings. The text advises commands such as `dyntrace
 * why f FILE`. FILE is NULL for the newest trace, which commands read by default. */
void findings_print(struct db *db, FILE *out, enum template_way way, const char *file);

/* Write the run's times to JSON as the member "time", and all findings as the member "findings". */
void findings_write_as_json(struct db *db, struct json *json);

#endif

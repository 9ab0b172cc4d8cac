/* trace/findings.h -- what to look at first in a trace: one line of time, and three findings.
 *
 * The views run_times and findings (schemas/views.sql) have them, schemas/findings.sql the words.
 */
#ifndef DYNTRACE_FINDINGS_H
#define DYNTRACE_FINDINGS_H

#include <stdio.h>

#include "trace/template.h"

struct db;
struct json;

/* Print them; the commands that they name ask about FILE, or about the newest trace if it is NULL.
 */
void findings_print(struct db *db, FILE *out, enum template_way way, const char *file);

/* The same as the members "time" and "findings", all of these. */
void findings_json(struct db *db, struct json *json);

#endif

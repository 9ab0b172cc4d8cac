/* tui/lead.h -- read a view's template from schemas/tui/, and find the target of a row. */
#ifndef DYNTRACE_TUI_LEAD_H
#define DYNTRACE_TUI_LEAD_H

#include "trace/template.h"
#include "tui/view.h"

/* Read the template file of the view NAME into TEMPLATE, which is empty. CODES replaces "$codes"
 * in the file; if CODES is NULL, an SQL subquery replaces "$codes". */
void view_template_open(struct template *template, const char *name, const char *codes);

/* Return the view that shows the row with this ID, by the name of the column that holds the ID:
 * a `compile_id` leads to the view `compile`. Returns the kind VIEW_NONE for other columns. NAME
 * is a column of an SQL result or of a command's output. */
struct target id_target(const char *name, int64_t id);

/* Return the target that TEXT, a line of a template, names after "=>" for ROW. Returns the kind
 * VIEW_NONE if TEXT has no "=>". The target's strings are allocated in ARENA. */
struct target row_target(struct arena *arena, const struct row *row, const char *text);

#endif

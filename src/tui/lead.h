/* tui/lead.h -- reads the template of a view from schemas/tui/, and finds what a row leads to. */
#ifndef DYNTRACE_TUI_LEAD_H
#define DYNTRACE_TUI_LEAD_H

#include "trace/template.h"
#include "tui/view.h"

/* Read the template file of the view NAME into TEMPLATE, which is empty. "$codes" in the file is
 * replaced by CODES, a list of code ids, or by an SQL subquery if CODES is NULL. */
void view_template_open(struct template *template, const char *name, const char *codes);

/* Return the target for the row with this ID: the view that shows such a row. The column with the
 * id tells which: a `compile_id` leads to the view `compile`. NAME is the column's name in an SQL
 * result or in a command's output. Returns a target of the kind VIEW_NONE for other columns. */
struct target target_from_id_column(const char *name, int64_t id);

/* Return the target for ROW that TEXT, a line of a template, names behind "=>". Returns a target of
 * the kind VIEW_NONE if TEXT has no "=>". The target's strings are allocated in ARENA. */
struct target target_from_template(struct arena *arena, const struct row *row, const char *text);

#endif

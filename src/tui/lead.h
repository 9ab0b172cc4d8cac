/* tui/lead.h -- templates of the screen: a view's file in schemas/tui/, and where its rows lead. */
#ifndef DYNTRACE_TUI_LEAD_H
#define DYNTRACE_TUI_LEAD_H

#include "trace/template.h"
#include "tui/view.h"

/* The view NAME's file, with CODES for "$codes", or NULL, as the blocks of an empty TEMPLATE. */
void view_template_open(struct template *template, const char *name, const char *codes);

/* What a column called NAME, of SQL or of a command's output, leads to by the ID in it; VIEW_NONE:
 * nowhere. */
struct target id_target(const char *name, int64_t id);

/* Where TEXT leads, by its "=>"; VIEW_NONE: nowhere. Its texts are in ARENA. */
struct target row_target(struct arena *arena, const struct row *row, const char *text);

#endif

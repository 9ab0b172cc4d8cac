/* cmd/import/text.h -- what torch's log has in text alone: guards, causes, breaks.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_IMPORT_TEXT_H
#define DYNTRACE_IMPORT_TEXT_H

struct db;

/* What schemas/import/map.sql has left as text in OUT becomes guards, causes and breaks. */
void import_texts(struct db *out);

#endif

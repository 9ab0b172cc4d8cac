/* tui/views/overview.c -- what C makes of the page `overview`: what was recorded, and how whole it is.
 *
 * Runs in: the viewer, in a thread. */
#include <stdlib.h>
#include <string.h>

#include "trace/db.h"
#include "trace/doubts.h"
#include "tui/page.h"

static void overview_part(struct doc *doc, struct db *db, struct query *row, const char *name)
{
    const char *which = doubts_frames(db), *values = doubts_values(db);
    char *state = db_meta(db, "state"), *command = db_meta(db, "command");
    int64_t frames = db_meta_integer(db, "frame_count", -1), open = db_meta_integer(db, "open_frame_count", 0);
    int64_t span = db_meta_integer(db, "span_ns", -1), processes = db_integer(db, 0, "SELECT COUNT(*) FROM process");
    int64_t threads = db_integer(db, 0, "SELECT COUNT(*) FROM thread");
    struct query *words = db_query(db, "SELECT iif(json_valid(?1), (SELECT group_concat(value, ' ')"
                                       " FROM json_each(iif(json_valid(?1), ?1, '[]'))), ?1)");

    (void)row;
    (void)name;
    query_bind_text(words, 1, command ? command : "");
    if (command && query_step(words))
        doc_line(doc, MARK "b%s", doc_safe(doc, query_text(words, 0, NULL), 300));
    query_close(words);
    doc_line(doc, "%s%s" MARK "n%s%s, %s frames%s%s, %s process%s, %s thread%s", state && !strcmp(state, "complete") ? "" : MARK "w",
             doc_safe(doc, state ? state : "state unknown", 40), span >= 0 ? ", " : "", span >= 0 ? doc_time(doc, span) : "",
             frames < 0 ? "?" : doc_count(doc, frames), open > 0 ? ", still open " : "", open > 0 ? doc_count(doc, open) : "",
             doc_count(doc, processes), processes == 1 ? "" : "es", doc_count(doc, threads), threads == 1 ? "" : "s");
    doc_leads(doc, VIEW_PROCESSES, 0, NULL, NULL);
    if (which)
        doc_line(doc, MARK "d%s", which);
    if (values)
        doc_line(doc, MARK "d%s", values);
    free(state);
    free(command);
}

const struct view_ops view_overview = {.name = "overview", .summary = "the answer on one screen", .part = overview_part, PAGE_OPS};

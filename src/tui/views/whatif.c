/* tui/views/whatif.c -- the view `what-if`: what a change would have made of the recorded calls, beside what was recorded.
 *
 * Runs in: the viewer. The prediction is that of `dyntrace replay --what-if` (trace/whatif/whatif.h). Opened from a recompile it begins with the
 * change that would have spared that one; i asks for others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cause.h"
#include "trace/db.h"
#include "replay.h"
#include "trace/whatif/whatif.h"
#include "tui/text.h"

/* The setting that spares a recompile. The caller frees it; NULL: none does. */
static char *knob_for(struct db *db, int64_t compile_id)
{
    struct query *query = db_query(db, "SELECT " CAUSE_COLUMNS " FROM recompile_cause r WHERE r.compile_id = ?1 AND COALESCE(r.ordinal, 0) = 0"
                                       " ORDER BY r.rowid LIMIT 1");
    char *made = NULL;

    query_bind_integer(query, 1, compile_id);
    if (query_step(query)) {
        struct cause cause = cause_read(query, 0);
        made = cause_setting(&cause);
        cause_free(&cause);
    }
    query_close(query);
    return made;
}

/* A prediction's page, while it becomes lines of DOC. */
struct page {
    struct doc *doc;  /* borrowed */
    FILE *out;        /* owned: to TEXT */
    char *text;       /* owned */
    size_t bytes, taken;
    bool lead;        /* the next line says what was recorded of CODE_ID, -1: of all */
    int64_t code_id;
};

/* What has come since is lines now; the next one says what was recorded of CODE_ID, and leads to those calls. */
static void page_take(void *context, int64_t code_id)
{
    struct page *page = context;
    struct doc *doc = page->doc;
    size_t first = doc->lines.count;
    bool all = page->code_id < 0;

    fflush(page->out);
    doc_text(doc, page->text + page->taken, 1, 400);
    if (page->lead && first < doc->lines.count)
        doc->lines.at[first].target = (struct target){.kind = VIEW_LEDGER, .title = all ? NULL : "its calls",
                                                      .where = all ? NULL : doc_print(doc, "code_id = %" PRId64, page->code_id)};
    page->taken = page->bytes;
    page->lead = true;
    page->code_id = code_id;
}

/* One prediction as a part of DOC. */
static void predict(struct doc *doc, struct db *db, struct replay *replay, const char *setting)
{
    struct page page = {.doc = doc};
    struct whatif_asked asked = {.db = db, .replay = replay, .settings = &setting, .count = 1};
    struct whatif_answer answer;

    asked.out = page.out = open_memstream(&page.text, &page.bytes);
    doc_part(doc, "%s", !strcmp(setting, "best") ? "The best of several settings" : doc_safe(doc, setting, 200));
    if (!doc->start)
        doc->start = doc->lines.count - 1;
    if (whatif_ask(&asked, &answer))
        whatif_page(&asked, &answer, page_take, &page);
    whatif_answer_free(&answer);
    page_take(&page, -1);
    fclose(page.out);
    free(page.text);
}

static void whatif_build(struct doc *doc, struct db *db)
{
    struct replay *replay = NULL;
    char *knob = NULL;

    doc_line(doc, "Predicted from the recorded calls, beside what was recorded. " MARK "ai" MARK "n asks for other settings:");
    doc_line(doc, MARK "drecompile_limit=N accumulated_limit=N order=mru|fifo|static isolate=region backend_shared=no");
    doc_line(doc, MARK "ddynamic=SOURCE[DIM]|all drop_guard=ID|KIND, with commas between them, or best");
    if (doc->target.where)
        snprintf(doc->title, sizeof doc->title, "%.100s", doc_safe(doc, doc->target.where, 100));
    else if (doc->target.about == VIEW_COMPILE && doc->target.id > 0)
        knob = knob_for(db, doc->target.id);
    replay = replay_open(db, true);
    if (replay && !replay->lookups.count)
        doc_line(doc, "There is nothing to decide again: no lookup was recorded.");
    if (replay && replay->lookups.count) {
        if (doc->target.where || knob)
            predict(doc, db, replay, doc->target.where ? doc->target.where : knob);
        if (!doc->target.where)
            predict(doc, db, replay, "best");
    }
    replay_free(replay);
    free(knob);
}

static bool whatif_request(struct view *view, enum request request, const struct key *key)
{
    if (request == REQUEST_INPUT || request == REQUEST_WHATIF) {
        tui_ask(view->tui, "what if: ", view->target.where ? view->target.where : "", false);
        return true;
    }
    return text_ops.request(view, request, key);
}

static void whatif_input(struct view *view, const char *text)
{
    if (!*text)
        return;
    view->target.where = arena_print(&view->arena, "%s", text);
    text_restart(view);
}

const struct view_ops view_whatif = {
    .name = "what-if", .summary = "what a change would have made of the recorded calls", .base = &text_ops, .request = whatif_request,
    .input = whatif_input, .build = whatif_build, .slow = true,
};

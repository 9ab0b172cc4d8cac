/* tui_whatif.c -- the view `what-if`: what a change would have made of the recorded calls, beside what was recorded.
 *
 * Runs in: the viewer. The prediction is that of `dyntrace replay --what-if` (whatif.h). Opened from a recompile it begins with the
 * change that would have spared that one; i asks for others. */
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "prose.h"
#include "replay.h"
#include "replay_whatif.h"
#include "tui_text.h"

/* The change that a recompile calls for: its source made dynamic where a size or a number changed. The caller frees it;
 * NULL: none comes to mind. */
static char *knob_for(struct db *db, int64_t compile_id)
{
    struct query *query = db_query(db,
        "SELECT COALESCE(r.source, g.source), r.expected, COALESCE(r.kind, g.kind) FROM recompile_cause r LEFT JOIN guard g ON g.guard_id = r.guard_id"
        " WHERE r.compile_id = ?1 AND COALESCE(r.ordinal, 0) = 0 ORDER BY r.rowid LIMIT 1");
    char *made = NULL;

    query_bind_integer(query, 1, compile_id);
    if (query_step(query) && query_type(query, 0) != QUERY_NULL) {
        char *source = prose_column(query, 0), *at = source ? strstr(source, ".size()[") : NULL;
        const char *expected = query_text(query, 1, NULL), *kind = query_text(query, 2, NULL);
        if (at)
            memmove(at, at + 7, strlen(at + 7) + 1); /* "L['x'][0]" */
        if (source && (at || !strncmp(expected, "size[", 5) || !strcmp(kind, "EQUALS_MATCH") || !strcmp(kind, "CONSTANT_MATCH")) && !strncmp(source, "L[", 2)) {
            if (asprintf(&made, "dynamic=%s%.*s", source, !strncmp(expected, "size[", 5) ? (int)strcspn(expected + 4, "]") + 1 : 0, expected + 4) < 0)
                made = NULL;
        } else if (asprintf(&made, "drop_guard=%s", kind) < 0) {
            made = NULL;
        }
        free(source);
    }
    query_close(query);
    return made;
}

/* The function that TEXT, "NAME  FILE:LINE", names, as a condition on calls. The caller frees it; NULL: there is none. */
static char *calls_of(struct db *db, const char *text)
{
    const char *gap = text, *colon = strrchr(text, ':');
    char *name, *where = NULL;
    struct query *query;

    for (const char *at = text; (at = strstr(at, "  ")); at++)
        gap = at;
    if (gap == text || !colon || !(name = strndup(text, (size_t)(gap - text))))
        return NULL;
    query = db_query(db, "SELECT group_concat(code_id) FROM code WHERE qualname = ?1 AND first_line = ?2");
    query_bind_text(query, 1, name);
    query_bind_integer(query, 2, atoll(colon + 1));
    if (query_step(query) && query_type(query, 0) != QUERY_NULL && asprintf(&where, "code_id IN (%.2000s)", query_text(query, 0, NULL)) < 0)
        where = NULL;
    query_close(query);
    free(name);
    return where;
}

/* Lines of DOC from FIRST on that say what was recorded lead to those calls. */
static void lead_to_calls(struct doc *doc, struct db *db, size_t first)
{
    for (size_t i = first + 1; i < doc->count; i++) {
        const char *text = doc->lines[i].text, *above = doc->lines[i - 1].text;
        char *where;
        text += strspn(text, " ");
        above += strspn(above, " ");
        if (strncmp(text, "recorded ", 9) != 0)
            continue;
        where = calls_of(db, above);
        if (where || !strncmp(above, "all,", 4))
            doc->lines[i].target = target_make(VIEW_LEDGER, 0, where, where ? "its calls" : NULL);
        free(where);
    }
}

/* One prediction as a part of DOC. */
static void predict(struct doc *doc, struct db *db, struct replay *replay, const char *setting)
{
    struct replay_whatif asked = {.settings = {setting}, .count = 1};
    char *page = NULL;
    size_t bytes, first;

    if (!(asked.out = open_memstream(&page, &bytes))) {
        doc->failed = true;
        return;
    }
    replay_whatif(db, replay, &asked);
    fclose(asked.out);
    doc_part(doc, "%s", !strcmp(setting, "best") ? "The best of several settings" : doc_safe(doc, setting, 200));
    if (!doc->start)
        doc->start = doc->count - 1;
    first = doc->count;
    doc_text(doc, page, 1, 400);
    lead_to_calls(doc, db, first);
    free(page);
}

static void whatif_build(struct doc *doc, struct db *db)
{
    struct replay *replay = NULL;
    char *knob = NULL;

    doc_line(doc, "Predicted from the recorded calls, beside what was recorded. " MARK "ai" MARK "n asks for other settings:");
    doc_line(doc, MARK "drecompile_limit=N accumulated_limit=N order=mru|fifo|static isolate=region backend_shared=no");
    doc_line(doc, MARK "ddynamic=SOURCE[DIM]|all drop_guard=ID|KIND, with commas between them, or best");
    if (doc->target.where) {
        snprintf(doc->title, sizeof doc->title, "%.100s", doc_safe(doc, doc->target.where, 100));
    } else if (doc->target.about == VIEW_COMPILE && doc->target.id > 0) {
        knob = knob_for(db, doc->target.id);
    }
    if ((replay = replay_open(db, REPLAY_CHECKS | REPLAY_TIMES))) {
        if (!replay->lookup_count)
            doc_line(doc, "There is nothing to decide again: no lookup was recorded.");
        else if (doc->target.where)
            predict(doc, db, replay, doc->target.where);
        else if (knob)
            predict(doc, db, replay, knob);
        if (replay->lookup_count && !doc->target.where)
            predict(doc, db, replay, "best");
    }
    replay_free(replay);
    free(knob);
}

static const struct text_spec whatif_spec = {.build = whatif_build, .slow = true};

static bool whatif_open_view(struct view *view)
{
    return text_open((struct text *)view, &whatif_spec);
}

static bool whatif_request(struct view *view, enum request request, const struct key *key)
{
    if (request == REQUEST_INPUT || request == REQUEST_WHATIF) {
        tui_ask(view->tui, "what if: ", view->target.where ? view->target.where : "", NULL);
        return true;
    }
    return text_request(view, request, key);
}

static void whatif_input(struct view *view, const char *text)
{
    if (!*text)
        return;
    free(view->target.where);
    view->target.where = strdup(text);
    text_restart((struct text *)view);
}

const struct view_ops view_whatif = {
    .name = "what-if", .summary = "what a change would have made of the recorded calls", .size = sizeof(struct text), .open = whatif_open_view,
    .close = text_close, .settle = text_settle, .draw = text_draw, .request = whatif_request, .refresh = text_refresh, .sql = text_sql,
    .search = text_search, .export = text_export, .place = text_place, .subject = text_subject, .input = whatif_input,
};

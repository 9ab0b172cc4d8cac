/* tui/text.c -- a view that is lines of text. See tui/text.h. */
#include "tui/text.h"

#include "lib/out_file.h"
#include "trace/db.h"

enum { LINES_MOST = 200000 };

struct doc_line *doc_add(struct doc *doc, const char *text)
{
    if (doc->lines.count < LINES_MOST)
        list_add(&doc->lines)->text = text;
    return &doc->lines.at[doc->lines.count - 1];
}

void doc_add_part(struct doc *doc, const char *text)
{
    if (doc->lines.count && !doc->dense)
        doc_add(doc, "");
    doc_line(doc, MARK "h%s", text)->part = true;
}

void doc_target(struct doc *doc, struct target target)
{
    struct doc_line *last = doc->lines.count ? &doc->lines.at[doc->lines.count - 1] : NULL;

    if (last && last->target.kind == VIEW_NONE)
        last->target = target;
}

void doc_text(struct doc *doc, const char *text, int indent, size_t most)
{
    for (size_t lines = 0; *text && lines < most; lines++) {
        size_t length = strcspn(text, "\n");
        const char *line = doc_print(doc, "%*s%s", indent, "",
                                     doc_safe(doc, arena_text(&doc->arena, text, length), 1000));
        if (strstr(line + strspn(line, " "), "  ")) /* of a table */
            doc_add(doc, line);
        else
            doc_wrap(doc, line, (struct target){0});
        text += length + (text[length] == '\n');
    }
    if (*text)
        doc_line(doc, "%*s" MARK "d(more: dyntrace show prints all)", indent, "");
}

void doc_beside(struct doc *doc, const char *left, int columns, const char *right,
                struct target target)
{
    struct doc_line *line =
        doc_line(doc, "%s " MARK "d│" MARK "n %s", doc_fit(doc, left, columns), right);

    line->half = target.kind ? columns + 2 : 0;
    line->beside = target;
}

void doc_wrap(struct doc *doc, const char *text, struct target target)
{
    int indent = (int)strspn(text, " ");
    int width = doc->columns > 40 ? doc->columns - 2 : 38;
    int used;
    char style = 'n';

    for (;;) {
        size_t room = text_room(text, width, &used);
        size_t cut = room;
        while (text[room] && cut && text[cut] != ' ')
            cut--;
        if (!text[room])
            break;
        /* no word fits: one that a whole line has room for gets it */
        if (cut <= strspn(text, " ")) {
            const char *word = text + strspn(text, " ");
            cut = room;
            if (word > text && text_room(word, width, &used) >= strcspn(word, " ")) {
                text = word;
                continue;
            }
        }
        doc_line(doc, "%.*s", (int)cut, text);
        doc_target(doc, target);
        for (size_t i = 0; i + 1 < cut; i++)
            style = text[i] == MARK[0] ? text[i + 1] : style;
        indent = indent < width / 2 ? indent : width / 2;
        text = doc_print(doc, "%*s" MARK "%c%s", indent + 4, "", style,
                         text + cut + strspn(text + cut, " "));
    }
    doc_add(doc, text);
    doc_target(doc, target);
}

static void doc_run(struct job *job, struct db *db)
{
    struct doc *doc = (struct doc *)job;

    view_op(doc->ops, build)(doc, db);
}

static void doc_free(struct job *job)
{
    struct doc *doc = (struct doc *)job;

    list_free(&doc->lines);
    arena_free(&doc->arena);
}

static void ask(struct text *text, bool quick, bool whole)
{
    struct work *work = text->view.tui->work;
    struct doc *doc = job_new(sizeof *doc, doc_run, doc_free, !quick);

    work_drop(work, text->asked);
    doc->ops = text->view.ops;
    doc->target = target_keep(&doc->arena, &text->view.target);
    doc->quick = quick;
    doc->whole = whole;
    doc->columns = text->view.columns;
    doc->rows = text->view.rows;
    doc->aside = text->view.aside;
    doc->tui = text->view.tui;
    text->asked = doc;
    if (doc->ops->at_once) {
        doc->ops->build(doc, NULL);
        doc->job.ended = true;
    } else {
        work_start(work, &doc->job);
    }
}

void text_restart(struct view *view)
{
    ((struct text *)view)->stale = true;
    ask((struct text *)view, !view->ops->slow, view->ops->slow);
}

void text_input(struct view *view, const char *text)
{
    if (!*text)
        return;
    view->target.where = arena_print(&view->arena, "%s", text);
    text_restart(view);
}

static void text_refresh(struct view *view)
{
    struct text *text = (struct text *)view;

    if (!text->asked)
        ask(text, false, true);
}

/* The chosen line, or NULL. */
static const struct doc_line *line_at(const struct text *text)
{
    return text->view.at < text->view.count && !text->stale ? &text->doc->lines.at[text->view.at]
                                                            : NULL;
}

/* The half of the chosen line is chosen. False: it has none there. */
static bool half_choose(struct text *text, bool right)
{
    if (!line_at(text) || !line_at(text)->half || text->right == right)
        return false;
    text->right = right;
    return true;
}

/* Show what is before or after it, another of its kind in its place. */
static bool beside_go(struct text *text, const struct target *target)
{
    if (target->kind == text->view.target.kind) {
        text->view.target = *target;
        text_restart(&text->view);
    } else if (target->kind) {
        tui_go(text->view.tui, target);
    }
    return target->kind;
}

/* What DOC has is not all: its first line says why, and nothing is waited for any more. */
static void doc_failed(struct doc *doc, const char *why)
{
    struct doc_line *lines;
    const char *words;

    if (doc->failed)
        return;
    doc->failed = true;
    for (size_t i = 0; i < doc->lines.count; i++)
        if (!strcmp(doc->lines.at[i].text, "  ..."))
            doc->lines.at[i].text = "  ?";
    list_add(&doc->lines);
    lines = doc->lines.at;
    memmove(lines + 1, lines, (doc->lines.count - 1) * sizeof *lines);
    words = doc_print(doc, MARK "rthis is not all: %s", doc_safe(doc, why, 400));
    lines[0] = (struct doc_line){.text = words};
    if (doc->start)
        doc->start++;
}

/* The answer failed: the text that is shown is still true. */
static void keep_shown(struct text *text, struct doc *failed)
{
    struct view *view = &text->view;
    struct doc *doc = text->doc;

    tui_alarm(view->tui, "%s", failed->job.error);
    view->at += !doc->failed;
    doc_failed(doc, failed->job.error);
    view->count = doc->lines.count;
    doc->columns = failed->columns; /* not asked for again */
    doc->rows = failed->rows;
    work_drop(view->tui->work, failed);
}

static void answer_take(struct text *text)
{
    struct view *view = &text->view;
    struct doc *doc = text->asked;
    const char *error = doc->job.error;
    size_t start = text->doc ? text->doc->start : 0;

    text->asked = NULL;
    text->stale = false;
    if (error && text->doc) {
        keep_shown(text, doc);
        return;
    }
    work_drop(view->tui->work, text->doc);
    text->doc = doc;
    if (error && doc->lines.count)
        doc_failed(doc, error);
    view->count = doc->lines.count;
    if (doc->title[0])
        snprintf(view->title, sizeof view->title, "%s", doc->title);
    /* as far down as need be, the beginning stays in sight */
    if (view->at == start && doc->start) {
        view->top = 0;
        view_choose(view, doc->start);
    }
    if (!error && (doc->more || doc->cut))
        ask(text, doc->cut, true);
}

/* Is the text made for another size of the screen? Lines are as wide as it. */
static bool is_resized(const struct text *text)
{
    const struct view *view = &text->view;
    const struct doc *doc = text->doc;

    if (!doc || view->ops->slow)
        return false;
    return doc->columns != view->columns || (doc->fills && doc->rows != view->rows);
}

static void text_settle(struct view *view)
{
    struct text *text = (struct text *)view;
    const char *format;

    if (text->asked && work_done(view->tui->work, &text->asked->job))
        answer_take(text);
    else if (!text->asked && is_resized(text))
        ask(text, false, true);
    view_choose(view, view->at);
    format = view->count > (size_t)view->rows ? "%zu/%zu" : "";
    snprintf(view->note, sizeof view->note, format, view->at + 1, view->count);
}

static void line_draw(const struct text *text, struct screen *screen, size_t at)
{
    const struct view *view = &text->view;
    const struct doc_line *line = &text->doc->lines.at[at];
    const char *searched = view->tui->searched;
    int y = view->y + (int)(at - view->top);
    int selected = view_row(view, screen, y, at == view->at);
    bool found = searched[0] && strcasestr(line->text, searched);
    int style = (found ? STYLE_MATCH : STYLE_NORMAL) | selected;
    int half = line->half - text->skip; /* the column where the right half begins */

    screen_text(screen, y, 1, view->columns - 1, text->skip, style, line->text, true);
    if (selected && text->right && half > 0) {
        screen_put(screen, y, 0, 1, style, " ");
        screen_put(screen, y, half, 1, style, ">");
    }
}

static void text_draw(struct view *view, struct screen *screen)
{
    struct text *text = (struct text *)view;
    size_t end = view->top + (size_t)view->rows;

    if (!view_empty(view, screen, text->doc) && text->doc->job.error && !view->count)
        view_words(view, screen, STYLE_ALARM, text->doc->job.error);
    for (size_t at = view->top; at < end && at < view->count; at++)
        line_draw(text, screen, at);
}

static bool line_has(struct view *view, size_t at, const char *wanted)
{
    return strcasestr(((struct text *)view)->doc->lines.at[at].text, wanted) != NULL;
}

static bool line_is_part(struct view *view, size_t at, const char *unused)
{
    return ((struct text *)view)->doc->lines.at[at].part;
}

/* Where the chosen line, or the half of it, leads. */
static void text_lead(struct view *view, struct arena *arena, struct target *target)
{
    struct text *text = (struct text *)view;
    const struct doc_line *line = line_at(text);

    if (line)
        *target = line->half && text->right ? line->beside : line->target;
}

static bool text_request(struct view *view, enum request request, const struct key *key)
{
    struct text *text = (struct text *)view;
    bool again;

    if (view_move(view, request)) {
        text->skip = request == REQUEST_HOME ? 0 : text->skip;
        return true;
    }
    switch (request) {
    case REQUEST_PREVIOUS:
        return text->doc && !text->stale && beside_go(text, &text->doc->previous);
    case REQUEST_SEARCH_NEXT:
        return text->doc && !text->stale && !view->searched && beside_go(text, &text->doc->next);
    case REQUEST_LEFT:
    case REQUEST_RIGHT:
        if (half_choose(text, request == REQUEST_RIGHT))
            break;
        if (request == REQUEST_LEFT)
            text->skip = text->skip > 8 ? text->skip - 8 : 0;
        else
            text->skip += text->skip < 4000 ? 8 : 0;
        break;
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        if (view_find(view, request == REQUEST_NEXT_PART ? 1 : -1, line_is_part, NULL)) {
            view->top = view->at;
            view_choose(view, view->at);
        }
        break;
    case REQUEST_CLICK:
        if (!view_click(view, key, &again))
            break;
        if (!half_choose(text, key->x >= text->doc->lines.at[view->at].half) && again)
            tui_open(view->tui);
        break;
    default:
        return false;
    }
    return true;
}

static bool text_export(struct view *view, const char *path)
{
    struct text *text = (struct text *)view;
    struct out_file out;
    bool ok;

    if (tui_wait(view->tui) || !out_open(&out, path, false)) /* it is not whole yet */
        return false;
    for (size_t i = 0; i < view->count; i++) {
        for (const char *p = text->doc->lines.at[i].text; *p; p++)
            if (*p == MARK[0] && p[1])
                p++;
            else
                putc(*p, out.file);
        putc('\n', out.file);
    }
    ok = out_commit(&out);
    out_close(&out);
    if (ok)
        tui_say(view->tui, "%s: %zu line%s written", path, view->count,
                view->count == 1 ? "" : "s");
    return ok;
}

/* Of a line of source. */
static bool text_place(struct view *view, const char **file, int64_t *line)
{
    struct text *text = (struct text *)view;
    const struct doc_line *chosen = line_at(text);

    if (!chosen || !chosen->source_line)
        return false;
    if (!(*file = chosen->file) && !view_source(view, &text->doc->subject, file, line))
        return false;
    *line = chosen->source_line;
    return true;
}

static void text_subject(struct view *view, struct target *subject)
{
    struct text *text = (struct text *)view;
    enum view_kind kind = line_at(text) ? line_at(text)->target.kind : VIEW_NONE;

    if (!text->doc || text->stale)
        return;
    *subject = text->doc->subject;
    /* A line that leads to a decision is about that; others are about what the whole text is about.
     * */
    if (kind == VIEW_CALL || kind == VIEW_COMPILE || kind == VIEW_BREAK || !subject->kind)
        *subject = kind ? line_at(text)->target : *subject;
    if (!subject->at_ns)
        subject->at_ns = text->doc->subject.at_ns;
}

const struct view_ops text_ops = {
    .size = sizeof(struct text),
    .asked = 1,
    .jobs = 2,
    .open = text_restart,
    .settle = text_settle,
    .draw = text_draw,
    .request = text_request,
    .refresh = text_refresh,
    .has = line_has,
    .export = text_export,
    .lead = text_lead,
    .place = text_place,
    .subject = text_subject,
    .writes = "txt",
    .keys = "Enter opens  Tab next part  / search  v beside  o source",
};

/* tui/text.c -- a view that consists of lines of text, and functions that make the lines.
 * See tui/text.h. */
#include "tui/text.h"

#include "lib/out_file.h"
#include "trace/db.h"

enum { LINES_MOST = 200000 };

struct doc_line *doc_add_line(struct doc *doc, const char *text)
{
    if (doc->lines.count < LINES_MOST)
        list_add(&doc->lines)->text = text;
    return &doc->lines.at[doc->lines.count - 1];
}

void doc_add_part(struct doc *doc, const char *text)
{
    if (doc->lines.count && !doc->dense)
        doc_add_line(doc, "");
    doc_line(doc, MARK "h%s", text)->part = true;
}

void doc_set_target(struct doc *doc, struct target target)
{
    struct doc_line *last = doc->lines.count ? &doc->lines.at[doc->lines.count - 1] : NULL;

    if (last && last->target.kind == VIEW_NONE)
        last->target = target;
}

void doc_add_wrapped_text(struct doc *doc, const char *text, int indent, size_t most)
{
    for (size_t lines = 0; *text && lines < most; lines++) {
        size_t length = strcspn(text, "\n");
        const char *safe = doc_safe(doc, arena_text(&doc->arena, text, length), 1000);
        const char *line = doc_print(doc, "%*s%s", indent, "", safe);
        bool is_table = strstr(line + strspn(line, " "), "  ");
        if (is_table)
            doc_add_line(doc, line);
        else
            doc_add_wrapped_line(doc, line, (struct target){0});
        text += length;
        text += *text == '\n';
    }
    if (*text)
        doc_line(doc, "%*s" MARK "d(more: dyntrace show prints all)", indent, "");
}

void doc_add_halves(struct doc *doc, const char *left, int columns, const char *right,
                    struct target target)
{
    struct doc_line *line =
        doc_line(doc, "%s " MARK "d│" MARK "n %s", doc_fit(doc, left, columns), right);

    line->half = target.kind ? columns + 2 : 0;
    line->beside = target;
}

/* Return the letter of the style that the text has behind the first BYTES of TEXT. At the beginning
 * it has the style STYLE. */
static char find_style_at_end(const char *text, size_t bytes, char style)
{
    for (size_t i = 0; i + 1 < bytes; i++)
        if (text[i] == MARK[0])
            style = text[i + 1];
    return style;
}

void doc_add_wrapped_line(struct doc *doc, const char *text, struct target target)
{
    int indent = (int)strspn(text, " ");
    int width = doc->columns > 40 ? doc->columns - 2 : 38;
    int used;
    char style = 'n';

    for (;;) {
        size_t room = text_bytes_that_fit(text, width, &used);
        size_t cut = text_cut_length(text, room);
        size_t leading = strspn(text, " ");
        const char *rest;
        if (!text[room])
            break;
        /* not even one word fits: remove the indentation if the word fits without it */
        if (cut <= leading) {
            const char *word = text + leading;
            cut = room;
            if (leading && text_bytes_that_fit(word, width, &used) >= strcspn(word, " ")) {
                text = word;
                continue;
            }
        }
        doc_line(doc, "%.*s", (int)cut, text);
        doc_set_target(doc, target);
        style = find_style_at_end(text, cut, style);
        if (indent > width / 2)
            indent = width / 2;
        rest = text + cut;
        rest += strspn(rest, " ");
        text = doc_print(doc, "%*s" MARK "%c%s", indent + 4, "", style, rest);
    }
    doc_add_line(doc, text);
    doc_set_target(doc, target);
}

static void run_doc_job(struct job *job, struct db *db)
{
    struct doc *doc = (struct doc *)job;

    view_op(doc->ops, build)(doc, db);
}

static void free_doc_job(struct job *job)
{
    struct doc *doc = (struct doc *)job;

    list_free(&doc->lines);
    arena_free(&doc->arena);
}

static void start_doc_build(struct text *text, bool quick, bool whole)
{
    const struct view *view = &text->view;
    struct work *work = view->tui->work;
    struct doc *doc = job_make(sizeof *doc, run_doc_job, free_doc_job, !quick);

    work_drop(work, text->asked);
    doc->ops = view->ops;
    doc->target = target_copy(&doc->arena, &view->target);
    doc->quick = quick;
    doc->whole = whole;
    doc->columns = view->columns;
    doc->rows = view->rows;
    doc->aside = view->aside;
    doc->tui = view->tui;
    text->asked = doc;
    if (doc->ops->at_once) {
        doc->ops->build(doc, NULL);
        doc->job.ended = true;
    } else {
        work_start_job(work, &doc->job);
    }
}

void text_build_again(struct view *view)
{
    struct text *text = (struct text *)view;
    bool slow = view->ops->slow;

    text->stale = true;
    start_doc_build(text, !slow, slow);
}

void text_input(struct view *view, const char *text)
{
    if (!*text)
        return;
    view->target.where = arena_print(&view->arena, "%s", text);
    text_build_again(view);
}

static void text_refresh(struct view *view)
{
    struct text *text = (struct text *)view;

    if (!text->asked)
        start_doc_build(text, false, true);
}

/* Return the chosen line. Returns NULL if there is none, or if the text is out of date. */
static const struct doc_line *get_chosen_line(const struct text *text)
{
    const struct view *view = &text->view;

    if (text->stale || view->at >= view->count)
        return NULL;
    return &text->doc->lines.at[view->at];
}

/* Choose the right or the left half of the chosen line. Returns false if the line has no halves, or
 * if that half is chosen already. */
static bool choose_half_of_line(struct text *text, bool right)
{
    const struct doc_line *line = get_chosen_line(text);
    bool has_half = line && line->half;

    if (!has_half || text->right == right)
        return false;
    text->right = right;
    return true;
}

/* Go to TARGET, the row for the key p or n. If a view of the same kind shows it, this view shows
 * TARGET from now on. Returns false if TARGET is empty. */
static bool show_neighbouring_row(struct text *text, const struct target *target)
{
    if (target->kind == text->view.target.kind) {
        text->view.target = *target;
        text_build_again(&text->view);
    } else if (target->kind) {
        tui_open_view(text->view.tui, target);
    }
    return target->kind;
}

/* Mark DOC as incomplete: WHY, the reason, becomes its first line. Each line " ...", which
 * announces text to come, becomes " ?". */
static void mark_doc_incomplete(struct doc *doc, const char *why)
{
    struct doc_line *lines;
    const char *words;

    if (doc->failed)
        return;
    doc->failed = true;
    list_each(line, &doc->lines)
        if (!strcmp(line->text, "  ..."))
            line->text = "  ?";
    list_add(&doc->lines);
    lines = doc->lines.at;
    memmove(lines + 1, lines, (doc->lines.count - 1) * sizeof *lines);
    words = doc_print(doc, MARK "rthis is not all: %s", doc_safe(doc, why, 400));
    lines[0] = (struct doc_line){.text = words};
    if (doc->start)
        doc->start++;
}

/* Drop FAILED, a text that could not be made. The text that is shown stays, because it is still
 * true, and gets a line with the error. */
static void keep_shown_text(struct text *text, struct doc *failed)
{
    struct view *view = &text->view;
    struct doc *doc = text->doc;

    tui_alarm(view->tui, "%s", failed->job.error);
    view->at += !doc->failed;
    mark_doc_incomplete(doc, failed->job.error);
    view->count = doc->lines.count;
    /* let is_view_resized() return false, so that the text is not made again */
    doc->columns = failed->columns;
    doc->rows = failed->rows;
    work_drop(view->tui->work, failed);
}

static void take_finished_doc(struct text *text)
{
    struct view *view = &text->view;
    struct doc *doc = text->asked;
    const char *error = doc->job.error;
    size_t start = text->doc ? text->doc->start : 0;
    bool more;

    text->asked = NULL;
    text->stale = false;
    if (error && text->doc) {
        keep_shown_text(text, doc);
        return;
    }
    work_drop(view->tui->work, text->doc);
    text->doc = doc;
    if (error && doc->lines.count)
        mark_doc_incomplete(doc, error);
    view->count = doc->lines.count;
    if (doc->title[0])
        snprintf(view->title, sizeof view->title, "%s", doc->title);
    /* If the cursor has not been moved, put it on the line where the text begins, and scroll
     * only as far as necessary. */
    if (view->at == start && doc->start) {
        view->top = 0;
        view_choose(view, doc->start);
    }
    more = doc->more || doc->cut;
    if (more && !error)
        start_doc_build(text, doc->cut, true);
}

/* Was the text made for another size of the view? Its lines are wrapped at the
 * width of the view. */
static bool is_view_resized(const struct text *text)
{
    const struct view *view = &text->view;
    const struct doc *doc = text->doc;

    if (!doc || view->ops->slow)
        return false;
    if (doc->fills && doc->rows != view->rows)
        return true;
    return doc->columns != view->columns;
}

static void text_update(struct view *view)
{
    struct text *text = (struct text *)view;
    bool done = text->asked && work_done(view->tui->work, &text->asked->job);

    if (done)
        take_finished_doc(text);
    else if (!text->asked && is_view_resized(text))
        start_doc_build(text, false, true);
    view_choose(view, view->at);
    view->note[0] = 0;
    if (view->count > (size_t)view->rows)
        snprintf(view->note, sizeof view->note, "%zu/%zu", view->at + 1, view->count);
}

static void draw_line(const struct text *text, struct screen *screen, size_t at)
{
    const struct view *view = &text->view;
    const struct doc_line *line = &text->doc->lines.at[at];
    const char *searched = view->tui->searched;
    int y = view->y + (int)(at - view->top);
    int selected = view_draw_row_begin(view, screen, y, at == view->at);
    bool found = searched[0] && strcasestr(line->text, searched);
    int style = (found ? STYLE_MATCH : STYLE_NORMAL) | selected;
    int half = line->half - text->skip; /* the column of the screen where the right half begins */
    bool chose_right = selected && text->right;

    screen_put_text(screen, y, 1, view->columns - 1, text->skip, style, line->text, true);
    if (chose_right && half > 0) {
        screen_put(screen, y, 0, 1, style, " ");
        screen_put(screen, y, half, 1, style, ">");
    }
}

static void text_draw(struct view *view, struct screen *screen)
{
    struct text *text = (struct text *)view;
    size_t end = view->top + (size_t)view->rows;
    bool empty = view_draw_empty(view, screen, text->doc);
    const char *error = empty ? NULL : text->doc->job.error;

    if (error && !view->count)
        view_draw_words(view, screen, STYLE_ALARM, error);
    if (end > view->count)
        end = view->count;
    for (size_t at = view->top; at < end; at++)
        draw_line(text, screen, at);
}

static const struct doc_line *line_at_index(struct view *view, size_t at)
{
    return &((struct text *)view)->doc->lines.at[at];
}

static bool does_line_contain(struct view *view, size_t at, const char *wanted)
{
    return strcasestr(line_at_index(view, at)->text, wanted);
}

static bool does_line_begin_part(struct view *view, size_t at, const char *unused)
{
    return line_at_index(view, at)->part;
}

/* Set TARGET to what the chosen line leads to; if the line has halves, what the chosen
 * half leads to. */
static void text_find_target(struct view *view, struct arena *arena, struct target *target)
{
    struct text *text = (struct text *)view;
    const struct doc_line *line = get_chosen_line(text);

    if (!line)
        return;
    if (line->half && text->right)
        *target = line->beside;
    else
        *target = line->target;
}

/* Scroll long lines by 8 columns, to the right if RIGHT, otherwise back. */
static void text_scroll(struct text *text, bool right)
{
    if (right && text->skip < 4000)
        text->skip += 8;
    else if (!right)
        text->skip = text->skip > 8 ? text->skip - 8 : 0;
}

static void text_click(struct text *text, const struct key *key)
{
    struct view *view = &text->view;
    bool again, right;

    if (!view_click(view, key, &again))
        return;
    right = key->x >= line_at_index(view, view->at)->half;
    if (!choose_half_of_line(text, right) && again)
        tui_open_target(view->tui);
}

static bool text_handle_request(struct view *view, enum request request, const struct key *key)
{
    struct text *text = (struct text *)view;
    bool is_shown = text->doc && !text->stale;
    int direction = request == REQUEST_NEXT_PART ? 1 : -1;

    if (view_move(view, request)) {
        if (request == REQUEST_HOME)
            text->skip = 0;
        return true;
    }
    switch (request) {
    case REQUEST_PREVIOUS:
        return is_shown && show_neighbouring_row(text, &text->doc->previous);
    case REQUEST_SEARCH_NEXT:
        if (!is_shown || view->searched)
            return false;
        return show_neighbouring_row(text, &text->doc->next);
    case REQUEST_LEFT:
    case REQUEST_RIGHT:
        if (!choose_half_of_line(text, request == REQUEST_RIGHT))
            text_scroll(text, request == REQUEST_RIGHT);
        break;
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        if (view_find_line(view, direction, does_line_begin_part, NULL)) {
            view->top = view->at;
            view_choose(view, view->at);
        }
        break;
    case REQUEST_CLICK:
        text_click(text, key);
        break;
    default:
        return false;
    }
    return true;
}

/* Write LINE without its style marks. */
static void write_line_to_file(const struct doc_line *line, FILE *out)
{
    for (const char *p = line->text; *p; p++) {
        bool is_mark = *p == MARK[0] && p[1];
        if (is_mark)
            p++; /* skip the letter that follows a style mark */
        else
            putc(*p, out);
    }
    putc('\n', out);
}

static bool text_export(struct view *view, const char *path)
{
    const char *plural = view->count == 1 ? "" : "s";
    struct out_file out;
    bool ok;

    if (tui_wait_for_queries(view->tui)) /* do not export a text that is still being made */
        return false;
    if (!out_open(&out, path, false))
        return false;
    for (size_t i = 0; i < view->count; i++)
        write_line_to_file(line_at_index(view, i), out.file);
    ok = out_commit(&out);
    out_close(&out);
    if (ok)
        tui_say(view->tui, "%s: %zu line%s written", path, view->count, plural);
    return ok;
}

/* Find the file and line of the source that the chosen line shows. */
static bool text_find_source_place(struct view *view, const char **file, int64_t *line)
{
    struct text *text = (struct text *)view;
    const struct doc_line *chosen = get_chosen_line(text);

    if (!chosen || !chosen->source_line)
        return false;
    *file = chosen->file;
    if (!*file && !view_find_source(view, &text->doc->subject, file, line))
        return false;
    *line = chosen->source_line;
    return true;
}

static bool is_view_of_decision(enum view_kind kind)
{
    return kind == VIEW_CALL || kind == VIEW_COMPILE || kind == VIEW_BREAK;
}

/* If the chosen line leads to a call, a compile or a graph break, set SUBJECT to that. Otherwise
 * set it to what the whole text is about. */
static void text_get_subject(struct view *view, struct target *subject)
{
    struct text *text = (struct text *)view;
    const struct doc_line *line = get_chosen_line(text);
    enum view_kind kind = line ? line->target.kind : VIEW_NONE;

    if (!text->doc || text->stale)
        return;
    *subject = text->doc->subject;
    if (is_view_of_decision(kind) || (kind && !subject->kind))
        *subject = line->target;
    if (!subject->at_ns)
        subject->at_ns = text->doc->subject.at_ns;
}

const struct view_ops text_ops = {
    .size = sizeof(struct text),
    .asked = 1,
    .jobs = 2,
    .open = text_build_again,
    .update = text_update,
    .draw = text_draw,
    .request = text_handle_request,
    .refresh = text_refresh,
    .has = does_line_contain,
    .export = text_export,
    .lead = text_find_target,
    .place = text_find_source_place,
    .subject = text_get_subject,
    .writes = "txt",
    .keys = "Enter opens  Tab next part  / search  v beside  o source",
};

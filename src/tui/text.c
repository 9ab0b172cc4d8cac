/* tui/text.c -- a view that is lines of text. See tui/text.h.
 *
 * Runs in: the viewer. */
#include "tui/text.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/db.h"
#include "trace/prose.h"
#include "tui/value.h"

enum { LINES_MOST = 200000 };

/* ---- a doc ----------------------------------------------------------------- */

static void doc_free(struct doc *doc)
{
    if (!doc)
        return;
    for (size_t i = 0; i < doc->lines.count; i++)
        target_free(&doc->lines.at[i].target);
    list_free(&doc->lines);
    arena_free(&doc->arena);
    free(doc->file);
    target_free(&doc->subject);
    free(doc);
}

/* TEXT in the arena; TEXT itself is freed. */
static const char *keep(struct doc *doc, char *text)
{
    const char *kept = text ? arena_text(&doc->arena, text, strlen(text)) : NULL;

    free(text);
    doc->failed = doc->failed || !kept;
    return kept ? kept : "?";
}

static const char *printed(struct doc *doc, const char *before, const char *format, va_list arguments)
{
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (out) {
        fputs(before, out);
        vfprintf(out, format, arguments);
        fclose(out);
    }
    return keep(doc, made);
}

static void line_add(struct doc *doc, const char *text, bool part)
{
    struct doc_line *line = doc->lines.count < LINES_MOST ? list_add(&doc->lines) : NULL;

    if (line)
        *line = (struct doc_line){.text = text, .part = part};
}

void doc_line(struct doc *doc, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line_add(doc, printed(doc, "", format, arguments), false);
    va_end(arguments);
}

void doc_part(struct doc *doc, const char *format, ...)
{
    va_list arguments;

    if (doc->lines.count && !doc->dense)
        line_add(doc, "", false);
    va_start(arguments, format);
    line_add(doc, printed(doc, MARK "h", format, arguments), true);
    va_end(arguments);
}

void doc_target(struct doc *doc, struct target target)
{
    struct doc_line *last = doc->lines.count ? &doc->lines.at[doc->lines.count - 1] : NULL;

    if (last && target.kind != VIEW_NONE && last->target.kind == VIEW_NONE)
        last->target = target;
    else
        target_free(&target);
}

void doc_leads(struct doc *doc, enum view_kind kind, int64_t id, const char *where, const char *title)
{
    doc_target(doc, target_make(kind, id, where, title));
}

void doc_source(struct doc *doc, int64_t line)
{
    if (doc->lines.count)
        doc->lines.at[doc->lines.count - 1].source_line = line;
}

const char *doc_safe(struct doc *doc, const char *text, size_t width)
{
    char *made = NULL;
    size_t bytes;
    FILE *out;

    if (!text)
        return "?";
    if ((out = open_memstream(&made, &bytes))) {
        prose_text(out, text, width);
        fclose(out);
    }
    return keep(doc, made);
}

const char *doc_count(struct doc *doc, int64_t count)
{
    char made[TABLE_HUMAN];

    return keep(doc, strdup(table_count(made, count)));
}

const char *doc_time(struct doc *doc, int64_t ns)
{
    char made[TABLE_HUMAN];

    return keep(doc, strdup(table_duration(made, ns)));
}

const char *doc_print(struct doc *doc, const char *format, ...)
{
    va_list arguments;
    const char *made;

    va_start(arguments, format);
    made = printed(doc, "", format, arguments);
    va_end(arguments);
    return made;
}

const char *doc_fit(struct doc *doc, const char *text, int columns)
{
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (out) {
        text_fit(out, text, columns);
        fclose(out);
    }
    return keep(doc, made);
}

void doc_text(struct doc *doc, const char *text, int indent, size_t most)
{
    size_t lines = 0;

    for (; *text && lines < most; lines++) {
        size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        doc_line(doc, "%*s%s", indent, "", doc_safe(doc, line ? line : "", 1000));
        free(line);
        text += length + (text[length] == '\n');
    }
    if (*text)
        doc_line(doc, "%*s" MARK "d(more: dyntrace show prints all)", indent, "");
}

void doc_wrap(struct doc *doc, const char *before, int indent, const char *text, size_t most)
{
    int width = doc->columns - indent - 2;
    const char *at = doc_safe(doc, text, most);

    if (width < 20)
        width = 20;
    for (bool first = true; *at; first = false) {
        size_t room = 0, cut = 0;
        int columns = 0;
        /* As many whole words as fit; a word that is longer than the line is cut. */
        while (at[room] && columns < width) {
            size_t size = 1;
            while ((at[room + size] & 0xc0) == 0x80)
                size++;
            columns++;
            room += size;
            if (at[room] == ' ' || !at[room])
                cut = room;
        }
        if (!cut || !at[room])
            cut = room;
        doc_line(doc, "%*s%s%.*s", indent, "", first ? before : "", (int)cut, at);
        at += cut;
        at += strspn(at, " ");
        if (first) /* `before` has taken some of the first line, or a mark alone */
            indent += 2, width -= 2;
    }
}

/* ---- the job --------------------------------------------------------------- */

struct text_job {
    struct job job;
    struct doc *doc;      /* owned */
    struct target target; /* owned */
};

static void text_run(struct job *job, struct db *db)
{
    struct doc *doc = ((struct text_job *)job)->doc;

    doc->ops->build(doc, db);
    if (doc->failed)
        say_error("out of memory");
}

static void text_job_free(struct job *job)
{
    struct text_job *ask = (struct text_job *)job;

    doc_free(ask->doc);
    target_free(&ask->target);
}

static void ask(struct text *text, bool quick)
{
    struct work *work = text->view.tui->work;
    struct text_job *job = job_new(sizeof *job, text_run, text_job_free, !quick);
    int columns = text->view.columns ? text->view.columns : text->view.tui->screen->columns;

    work_drop(work, text->job);
    if (!job || !(job->doc = calloc(1, sizeof *job->doc))) {
        free(job);
        return;
    }
    job->target = target_copy(&text->view.target);
    *job->doc = (struct doc){.ops = text->view.ops, .target = job->target, .quick = quick, .columns = columns};
    text->built = columns;
    text->job = job;
    work_start(work, &job->job);
}

void text_restart(struct text *text)
{
    ask(text, !text->view.ops->slow);
}

bool text_open(struct view *view)
{
    if (view->target.title)
        snprintf(view->title, sizeof view->title, "%s", view->target.title);
    text_restart((struct text *)view);
    return true;
}

void text_close(struct view *view)
{
    struct text *text = (struct text *)view;

    work_drop(view->tui->work, text->job);
    doc_free(text->doc);
    free(text->failed);
}

void text_refresh(struct view *view)
{
    struct text *text = (struct text *)view;

    if (!text->job)
        ask(text, false);
}

static size_t count_of(const struct text *text)
{
    return text->doc ? text->doc->lines.count : 0;
}

static void choose(struct text *text, size_t at)
{
    view_choose(&text->view, at, count_of(text), text->view.rows);
}

/* The chosen line, or NULL. */
static const struct doc_line *line_at(const struct text *text)
{
    return text->view.at < count_of(text) ? &text->doc->lines.at[text->view.at] : NULL;
}

static void answer_take(struct text *text)
{
    struct view *view = &text->view;
    struct text_job *job = text->job;
    bool more = job->doc->more && !job->job.error;

    free(text->failed);
    text->failed = job->job.error ? strdup(job->job.error) : NULL;
    if (job->job.error && text->doc) {
        tui_alarm(view->tui, "%s", job->job.error);
    } else {
        doc_free(text->doc);
        text->doc = job->doc;
        text->doc->target = (struct target){0};
        job->doc = NULL;
        if (text->doc->title[0])
            snprintf(view->title, sizeof view->title, "%s", text->doc->title);
        if (!text->moved && text->doc->start) { /* as far down as need be, the beginning stays in sight */
            view->top = 0;
            choose(text, text->doc->start);
        }
    }
    work_drop(view->tui->work, text->job);
    if (more)
        ask(text, false);
}

void text_settle(struct view *view)
{
    struct text *text = (struct text *)view;

    if (text->job && work_done(view->tui->work, (struct job *)text->job))
        answer_take(text);
    else if (!text->job && !view->ops->slow && text->doc && text->built != view->columns)
        ask(text, false); /* lines are as wide as the screen */
    choose(text, view->at);
    view->busy = text->job != NULL;
    snprintf(view->note, sizeof view->note, count_of(text) > (size_t)view->rows ? "%zu/%zu" : "", view->at + 1, count_of(text));
}

void text_draw(struct view *view, struct screen *screen)
{
    struct text *text = (struct text *)view;
    const char *searched = view->tui->searched;

    if (text->failed && !count_of(text))
        view_words(view, screen, STYLE_ALARM, text->failed);
    else if (!text->doc)
        view_words(view, screen, STYLE_DIM, "…");
    for (int i = 0; i < view->rows && view->top + (size_t)i < count_of(text); i++) {
        const struct doc_line *line = &text->doc->lines.at[view->top + (size_t)i];
        int selected = line == line_at(text) ? STYLE_SELECTED : 0, y = view->y + i;
        int style = searched[0] && strcasestr(line->text, searched) ? STYLE_MATCH : STYLE_NORMAL;
        if (selected) {
            screen_fill(screen, y, 0, view->columns, selected);
            screen_put(screen, y, 0, 1, selected, ">");
        }
        screen_put_marked(screen, y, 1, view->columns - 1, text->skip, style | selected, line->text);
    }
}

/* The next heading in that direction. */
static void part_move(struct text *text, int direction)
{
    size_t count = count_of(text);

    for (size_t i = 1; i <= count; i++) {
        size_t at = view_around(&text->view, i, direction, count);
        if (text->doc->lines.at[at].part) {
            text->view.top = at;
            choose(text, at);
            return;
        }
    }
}

static void line_open(struct text *text)
{
    const struct doc_line *line = line_at(text);
    struct target target;

    if (!line)
        return;
    target = target_copy(&line->target);
    if (target.kind == VIEW_NONE)
        tui_say(text->view.tui,
                line->source_line ? "a line of the source: o opens it in $EDITOR" : "this line leads nowhere further");
    else
        tui_go(text->view.tui, &target);
    target_free(&target);
}

static bool request_do(struct text *text, enum request request, const struct key *key)
{
    struct view *view = &text->view;

    if (view_move(view, request, count_of(text), view->rows)) {
        text->skip = request == REQUEST_HOME ? 0 : text->skip;
        return true;
    }
    switch (request) {
    case REQUEST_LEFT:
        text->skip = text->skip > 8 ? text->skip - 8 : 0;
        return true;
    case REQUEST_RIGHT:
        text->skip += text->skip < 4000 ? 8 : 0;
        return true;
    case REQUEST_NEXT_PART:
    case REQUEST_PREVIOUS_PART:
        part_move(text, request == REQUEST_NEXT_PART ? 1 : -1);
        return true;
    case REQUEST_OPEN:
        line_open(text);
        return true;
    case REQUEST_CLICK:
    case REQUEST_DOUBLE:
        if (key->y >= view->y && key->y < view->y + view->rows) {
            size_t at = view->top + (size_t)(key->y - view->y);
            bool again = at == view->at;
            choose(text, at);
            if (again || request == REQUEST_DOUBLE)
                line_open(text);
        }
        return true;
    case REQUEST_CANCEL:
        if (!text->job)
            return false;
        work_cancel(view->tui->work, &text->job->job);
        tui_say(view->tui, "cancelled");
        return true;
    default:
        return false;
    }
}

bool text_request(struct view *view, enum request request, const struct key *key)
{
    struct text *text = (struct text *)view;
    bool done = request_do(text, request, key);

    /* Keys that are not this view's, such as one that opens another before this has been read, choose no line. */
    text->moved |= done;
    return done;
}

bool text_search(struct view *view, const char *wanted, int direction)
{
    struct text *text = (struct text *)view;
    size_t count = count_of(text);

    for (size_t i = 1; i <= count; i++) {
        size_t at = view_around(view, i, direction, count);
        if (strcasestr(text->doc->lines.at[at].text, wanted)) {
            choose(text, at);
            return true;
        }
    }
    return false;
}

bool text_export(struct view *view, const char *path)
{
    struct text *text = (struct text *)view;
    struct out_file out = {0};
    struct stat st;
    bool ok = false;

    if (lstat(path, &st) == 0)
        tui_alarm(view->tui, "not exported: %s: exists already; choose another name", path);
    else if (out_open(&out, path, false)) {
        for (size_t i = 0; i < count_of(text); i++) {
            for (const char *p = text->doc->lines.at[i].text; *p; p++)
                if (*p == MARK[0] && p[1])
                    p++;
                else
                    putc(*p, out.file);
            putc('\n', out.file);
        }
        errno = 0;
        ok = out_commit(&out);
        out_close(&out);
        if (ok)
            tui_say(view->tui, "%s: %zu lines written", path, count_of(text));
    }
    return ok;
}

bool text_place(struct view *view, char **file, int64_t *line)
{
    struct text *text = (struct text *)view;

    if (!text->doc || !text->doc->file)
        return false;
    *line = line_at(text) ? line_at(text)->source_line : 0;
    if (!*line)
        *line = text->doc->file_line;
    *file = strdup(text->doc->file);
    return *file != NULL;
}

void text_subject(struct view *view, struct target *subject)
{
    struct text *text = (struct text *)view;
    const struct target *line = line_at(text) ? &line_at(text)->target : NULL;

    if (!text->doc)
        return;
    *subject = target_copy(&text->doc->subject);
    /* A line that leads to a decision is about that; others are about what the whole text is about. */
    if (line && (line->kind == VIEW_CALL || line->kind == VIEW_COMPILE || line->kind == VIEW_BREAK || (line->kind && !subject->kind))) {
        int64_t at_ns = subject->at_ns;
        target_free(subject);
        *subject = target_copy(line);
        subject->at_ns = subject->at_ns ? subject->at_ns : at_ns;
    }
}

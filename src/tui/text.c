/* tui/text.c -- a view that is lines of text. See tui/text.h.
 *
 * Runs in: the viewer. */
#include "tui/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/db.h"
#include "lib/json.h"
#include "lib/out_file.h"
#include "trace/prose.h"
#include "lib/say.h"
#include "lib/table.h"

enum { LINES_MOST = 200000 };

/* ---- a doc ----------------------------------------------------------------- */

static void doc_free(struct doc *doc)
{
    if (!doc)
        return;
    for (size_t i = 0; i < doc->count; i++) {
        free(doc->lines[i].text);
        target_free(&doc->lines[i].target);
    }
    for (size_t i = 0; i < doc->scrap_count; i++)
        free(doc->scraps[i]);
    free(doc->lines);
    free(doc->scraps);
    free(doc->file);
    free(doc->sql);
    target_free(&doc->subject);
    free(doc);
}

static size_t line_add(struct doc *doc, char *text, bool part)
{
    if (doc->count == doc->room) {
        size_t room = doc->room ? doc->room * 2 : 64;
        struct doc_line *more = realloc(doc->lines, room * sizeof *more);
        if (!more) {
            doc->failed = true;
            free(text);
            return doc->count;
        }
        doc->lines = more;
        doc->room = room;
    }
    if (!text || doc->count >= LINES_MOST) {
        doc->failed = doc->failed || !text;
        free(text);
        return doc->count;
    }
    doc->lines[doc->count] = (struct doc_line){.text = text, .part = part};
    return doc->count++;
}

static char *printed(const char *before, const char *format, va_list arguments)
{
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (!out)
        return NULL;
    fputs(before, out);
    vfprintf(out, format, arguments);
    fclose(out);
    return made;
}

size_t doc_line(struct doc *doc, const char *format, ...)
{
    va_list arguments;
    size_t line;

    va_start(arguments, format);
    line = line_add(doc, printed("", format, arguments), false);
    va_end(arguments);
    return line;
}

size_t doc_part(struct doc *doc, const char *format, ...)
{
    va_list arguments;
    size_t line;

    if (doc->count && !doc->dense)
        doc_line(doc, "%s", "");
    va_start(arguments, format);
    line = line_add(doc, printed(MARK "h", format, arguments), true);
    va_end(arguments);
    return line;
}

void doc_leads(struct doc *doc, enum view_kind kind, int64_t id, const char *where, const char *title)
{
    if (doc->count && doc->lines[doc->count - 1].target.kind == VIEW_NONE)
        doc->lines[doc->count - 1].target = target_make(kind, id, where, title);
}

void doc_source(struct doc *doc, int64_t line)
{
    if (doc->count)
        doc->lines[doc->count - 1].source_line = line;
}

/* TEXT is owned by DOC from here on. */
static const char *scrap_keep(struct doc *doc, char *text)
{
    if (!text) {
        doc->failed = true;
        return "?";
    }
    if (doc->scrap_count == doc->scrap_room) {
        size_t room = doc->scrap_room ? doc->scrap_room * 2 : 64;
        char **more = realloc(doc->scraps, room * sizeof *more);
        if (!more) {
            doc->failed = true;
            free(text);
            return "?";
        }
        doc->scraps = more;
        doc->scrap_room = room;
    }
    return doc->scraps[doc->scrap_count++] = text;
}

const char *doc_safe(struct doc *doc, const char *text, size_t width)
{
    char *made = NULL;
    size_t bytes;
    FILE *out;

    if (!text)
        return "?";
    if (!(out = open_memstream(&made, &bytes)))
        return scrap_keep(doc, NULL);
    prose_text(out, text, width);
    fclose(out);
    return scrap_keep(doc, made);
}

const char *doc_column(struct doc *doc, struct query *query, int column, size_t width)
{
    return query_type(query, column) == QUERY_NULL ? "?" : doc_safe(doc, query_text(query, column, NULL), width);
}

const char *doc_count(struct doc *doc, int64_t count)
{
    char made[TABLE_HUMAN];

    return scrap_keep(doc, strdup(table_count(made, count)));
}

const char *doc_time(struct doc *doc, int64_t ns)
{
    char made[TABLE_HUMAN];

    return scrap_keep(doc, strdup(table_duration(made, ns)));
}

const char *doc_print(struct doc *doc, const char *format, ...)
{
    va_list arguments;
    char *made;

    va_start(arguments, format);
    made = printed("", format, arguments);
    va_end(arguments);
    return scrap_keep(doc, made);
}

const char *doc_fit(struct doc *doc, const char *text, int columns)
{
    char *made = NULL;
    size_t bytes, length = strlen(text);
    FILE *out = open_memstream(&made, &bytes);
    int used = 0;

    if (!out)
        return scrap_keep(doc, NULL);
    for (size_t i = 0; i < length;) {
        unsigned long rune = 0;
        size_t size = json_rune((const unsigned char *)text + i, length - i, &rune);
        int width = !size || rune < 0x80 ? 1 : wcwidth((wchar_t)rune);
        if (text[i] == MARK[0] && text[i + 1]) { /* a style takes no room */
            fwrite(text + i, 1, 2, out);
            i += 2;
            continue;
        }
        if (width < 0)
            width = 6;
        if (used + width > columns - (i + (size ? size : 1) < length)) {
            fputs(columns > used ? "…" : "", out);
            used += columns > used;
            break;
        }
        fwrite(text + i, 1, size ? size : 1, out);
        used += width;
        i += size ? size : 1;
    }
    fprintf(out, "%*s", columns - used > 0 ? columns - used : 0, "");
    fclose(out);
    return scrap_keep(doc, made);
}

const char *doc_spark(struct doc *doc, const int64_t *numbers, int count)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    char *made = NULL;
    size_t bytes;
    int64_t most = 0;
    FILE *out = open_memstream(&made, &bytes);

    if (!out)
        return scrap_keep(doc, NULL);
    for (int i = 0; i < count; i++)
        if (numbers[i] > most)
            most = numbers[i];
    for (int i = 0; i < count; i++) {
        double share = most ? (double)numbers[i] / (double)most : 0;
        fputs(numbers[i] <= 0 ? "·" : bars[(int)(share * 7.999)], out);
    }
    fclose(out);
    return scrap_keep(doc, made);
}

const char *doc_bar(struct doc *doc, int64_t part, int64_t whole, int columns)
{
    int full = whole > 0 ? (int)((double)part / (double)whole * columns + 0.5) : 0;
    char *made = NULL;
    size_t bytes;
    FILE *out = open_memstream(&made, &bytes);

    if (!out)
        return scrap_keep(doc, NULL);
    if (full == 0 && part > 0)
        full = 1;
    for (int i = 0; i < columns; i++)
        fputs(i < full ? "█" : " ", out);
    fclose(out);
    return scrap_keep(doc, made);
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
    struct doc *doc; /* owned */
    struct target target; /* owned */
    void (*build)(struct doc *doc, struct db *db);
};

static void text_run(struct job *job, struct db *db)
{
    struct text_job *ask = (struct text_job *)job;

    ask->doc->target = ask->target;
    ask->build(ask->doc, db);
    ask->doc->target = (struct target){0};
    if (ask->doc->failed)
        say_error("out of memory");
}

static void text_job_free(struct job *job)
{
    struct text_job *ask = (struct text_job *)job;

    doc_free(ask->doc);
    target_free(&ask->target);
    free(ask);
}

static void ask(struct text *text, bool quick)
{
    struct text_job *job = calloc(1, sizeof *job);

    if (text->job)
        work_drop(tui_work(text->view.tui), &text->job->job);
    text->job = NULL;
    if (!job || !(job->doc = calloc(1, sizeof *job->doc))) {
        free(job);
        return;
    }
    job->job.run = text_run;
    job->job.free = text_job_free;
    job->job.slow = text->spec->slow || (text->spec->staged && !quick);
    job->build = text->spec->build;
    job->target = target_copy(&text->view.target);
    job->doc->quick = quick;
    job->doc->ascii = tui_screen(text->view.tui)->ascii;
    job->doc->columns = text->built = text->view.columns ? text->view.columns : tui_screen(text->view.tui)->columns;
    text->job = job;
    work_start(tui_work(text->view.tui), &job->job);
}

bool text_open(struct text *text, const struct text_spec *spec)
{
    text->spec = spec;
    if (text->view.target.title)
        snprintf(text->view.title, sizeof text->view.title, "%s", text->view.target.title);
    ask(text, spec->staged);
    return true;
}

void text_close(struct view *view)
{
    struct text *text = (struct text *)view;

    if (text->job)
        work_drop(tui_work(view->tui), &text->job->job);
    doc_free(text->doc);
    free(text->failed);
}

void text_restart(struct text *text)
{
    ask(text, text->spec->staged);
}

void text_refresh(struct view *view)
{
    struct text *text = (struct text *)view;

    if (!text->job)
        ask(text, false);
}

static size_t count_of(const struct text *text)
{
    return text->doc ? text->doc->count : 0;
}

static void at_set(struct text *text, size_t at)
{
    size_t count = count_of(text), height = text->view.rows > 0 ? (size_t)text->view.rows : 1;

    if (at >= count)
        at = count ? count - 1 : 0;
    text->at = at;
    if (at < text->top)
        text->top = at;
    if (at >= text->top + height)
        text->top = at - height + 1;
    if (text->top + height > count)
        text->top = count > height ? count - height : 0;
}

void text_settle(struct view *view)
{
    struct text *text = (struct text *)view;

    if (text->job && work_done(tui_work(view->tui), &text->job->job)) {
        struct text_job *job = text->job;
        bool more = job->doc->quick && !job->doc->whole && !job->job.error;
        free(text->failed);
        text->failed = job->job.error ? strdup(job->job.error) : NULL;
        if (!job->job.error || !text->doc) {
            doc_free(text->doc);
            text->doc = job->doc;
            job->doc = NULL;
            if (text->doc->title[0])
                snprintf(view->title, sizeof view->title, "%s", text->doc->title);
            if (!text->moved && text->doc->start) { /* as far down as need be, the beginning stays in sight */
                text->top = 0;
                at_set(text, text->doc->start);
            }
        } else {
            tui_alarm(view->tui, "%s", job->job.error);
        }
        work_drop(tui_work(view->tui), &job->job);
        text->job = NULL;
        if (more)
            ask(text, false);
    } else if (!text->job && text->spec->wide && text->doc && text->built != view->columns) {
        ask(text, false);
    }
    at_set(text, text->at);
    view->busy = text->job != NULL;
    snprintf(view->note, sizeof view->note, count_of(text) > (size_t)view->rows ? "%zu/%zu" : "", text->at + 1, count_of(text));
}

void text_draw(struct view *view, struct screen *screen)
{
    struct text *text = (struct text *)view;

    if (text->failed && !count_of(text))
        screen_put(screen, view->y + 1, view->x + 2, view->columns - 4, STYLE_ALARM, text->failed);
    else if (!text->doc)
        screen_put(screen, view->y + 1, view->x + 2, view->columns - 4, STYLE_DIM, "…");
    for (int i = 0; i < view->rows && text->top + (size_t)i < count_of(text); i++) {
        size_t at = text->top + (size_t)i;
        const struct doc_line *line = &text->doc->lines[at];
        int selected = at == text->at ? STYLE_SELECTED : 0, y = view->y + i;
        const char *searched = tui_searched(view->tui);
        int style = searched[0] && strcasestr(line->text, searched) ? STYLE_MATCH : STYLE_NORMAL;
        if (selected)
            screen_fill(screen, y, view->x, view->columns, selected);
        if (selected)
            screen_put(screen, y, view->x, 1, selected, ">");
        screen_put_marked(screen, y, view->x + 1, view->columns - 1, text->skip, style | selected, line->text);
    }
}

/* The next heading in that direction. */
static void part_move(struct text *text, int by)
{
    size_t count = count_of(text), at = text->at;

    for (size_t i = 0; i < count; i++) {
        at = (at + count + (size_t)by) % count;
        if (text->doc->lines[at].part) {
            at_set(text, count - 1);
            at_set(text, at);
            text->top = at;
            at_set(text, at);
            return;
        }
    }
}

static bool line_open(struct text *text)
{
    struct target target;

    if (!count_of(text))
        return true;
    target = target_copy(&text->doc->lines[text->at].target);
    if (target.kind == VIEW_NONE)
        tui_say(text->view.tui, text->doc->lines[text->at].source_line ? "a line of the source: o opens it in $EDITOR"
                                                                       : "this line leads nowhere further");
    else
        tui_go(text->view.tui, &target);
    target_free(&target);
    return true;
}

static bool request_do(struct text *text, enum request request, const struct key *key)
{
    struct view *view = &text->view;
    size_t page = view->rows > 2 ? (size_t)view->rows - 1 : 1;

    switch (request) {
    case REQUEST_UP:
        at_set(text, text->at ? text->at - 1 : 0);
        return true;
    case REQUEST_DOWN:
        at_set(text, text->at + 1);
        return true;
    case REQUEST_HALF_UP:
        page = (page + 1) / 2; /* fall through */
    case REQUEST_PAGE_UP:
        text->top = text->top > page ? text->top - page : 0;
        at_set(text, text->at > page ? text->at - page : 0);
        return true;
    case REQUEST_HALF_DOWN:
        page = (page + 1) / 2; /* fall through */
    case REQUEST_PAGE_DOWN:
        text->top += page;
        at_set(text, text->at + page);
        return true;
    case REQUEST_HOME:
        text->skip = 0;
        at_set(text, 0);
        return true;
    case REQUEST_END:
        at_set(text, count_of(text));
        return true;
    case REQUEST_WHEEL_UP:
        at_set(text, text->at > 3 ? text->at - 3 : 0);
        return true;
    case REQUEST_WHEEL_DOWN:
        at_set(text, text->at + 3);
        return true;
    case REQUEST_LEFT:
        text->skip = text->skip > 8 ? text->skip - 8 : 0;
        return true;
    case REQUEST_RIGHT:
        text->skip += text->skip < 4000 ? 8 : 0;
        return true;
    case REQUEST_NEXT_PART:
        part_move(text, 1);
        return true;
    case REQUEST_PREVIOUS_PART:
        part_move(text, -1);
        return true;
    case REQUEST_OPEN:
        return line_open(text);
    case REQUEST_CLICK:
    case REQUEST_DOUBLE:
        if (key->y >= view->y && key->y < view->y + view->rows) {
            size_t at = text->top + (size_t)(key->y - view->y);
            bool again = at == text->at;
            at_set(text, at);
            if (again || request == REQUEST_DOUBLE)
                line_open(text);
        }
        return true;
    case REQUEST_CANCEL:
        if (!text->job)
            return false;
        work_cancel(tui_work(view->tui), &text->job->job);
        tui_say(view->tui, "cancelled");
        return true;
    default:
        return false;
    }
}

bool text_request(struct view *view, enum request request, const struct key *key)
{
    struct text *text = (struct text *)view;
    size_t at = text->at, top = text->top;
    bool done = request_do(text, request, key);

    /* Keys that are not this view's, such as one that opens another before this has been read, choose no line. */
    text->moved |= done || text->at != at || text->top != top;
    return done;
}

char *text_sql(struct view *view)
{
    struct text *text = (struct text *)view;

    return text->doc && text->doc->sql ? strdup(text->doc->sql) : NULL;
}

bool text_search(struct view *view, const char *wanted, int direction)
{
    struct text *text = (struct text *)view;
    size_t count = count_of(text);

    for (size_t i = 1; i <= count; i++) {
        size_t at = direction > 0 ? (text->at + i) % count : (text->at + count - i) % count;
        if (strcasestr(text->doc->lines[at].text, wanted)) {
            at_set(text, at);
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
            for (const char *p = text->doc->lines[i].text; *p; p++)
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
    *line = text->at < text->doc->count ? text->doc->lines[text->at].source_line : 0;
    if (!*line)
        *line = text->doc->file_line;
    *file = strdup(text->doc->file);
    return *file != NULL;
}

void text_subject(struct view *view, struct target *subject)
{
    struct text *text = (struct text *)view;

    const struct target *line;

    if (!text->doc)
        return;
    *subject = target_copy(&text->doc->subject);
    line = text->at < text->doc->count ? &text->doc->lines[text->at].target : NULL;
    /* A line that leads to a decision is about that; others are about what the whole text is about. */
    if (line && line->kind && (line->kind == VIEW_CALL || line->kind == VIEW_COMPILE || line->kind == VIEW_BREAK || !subject->kind)) {
        int64_t at_ns = subject->at_ns;
        target_free(subject);
        *subject = target_copy(line);
        subject->at_ns = subject->at_ns ? subject->at_ns : at_ns;
    }
}

/* tui/source.c -- lines of source in a text, with marks at their left. See tui/text.h.
 *
 * Runs in: the viewer. */
#include "trace/source.h"

#include <inttypes.h>
#include <string.h>

#include "trace/db.h"
#include "tui/text.h"

enum { GUTTER = 6 };

static int indentation(const char *line)
{
    int columns = 0;

    for (; *line == ' ' || *line == '\t'; line++)
        columns = *line == '\t' ? (columns / 8 + 1) * 8 : columns + 1;
    return *line ? columns : -1; /* an empty line has none */
}

int64_t source_end(const struct source *source, int64_t first)
{
    int64_t last = first;
    int outer;
    bool body = false;

    if (first < 1 || first > (int64_t)source->count)
        return first;
    outer = indentation(source->lines[first - 1]);
    for (int64_t line = first + 1; line <= (int64_t)source->count; line++) {
        int here = indentation(source->lines[line - 1]);
        const char *text = source->lines[line - 1];
        if (here < 0)
            continue;
        text += strspn(text, " \t");
        /* Decorators, the closing bracket of a long head, and comments at the margin do not end it. */
        if (here <= outer && (body || (*text != ')' && strncmp(text, "def ", 4) && strncmp(text, "async ", 6) && strncmp(text, "class ", 6) && *text != '@')) &&
            *text != '#')
            break;
        body = body || here > outer;
        last = line;
    }
    return last;
}

/* TEXT with tabs as spaces and not too long. Borrowed from DOC. */
static const char *line_shown(struct doc *doc, const char *text)
{
    char made[1200];
    size_t used = 0;

    for (; *text && used < sizeof made - 10; text++) {
        if (*text == '\t')
            do
                made[used++] = ' ';
            while (used % 8);
        else
            made[used++] = *text;
    }
    made[used] = 0;
    return doc_safe(doc, made, 1000);
}

void source_put(struct doc *doc, struct db *db, const struct source *source, int64_t from, int64_t to, int64_t at, const struct gutter *gutter,
                size_t gutters)
{
    int64_t started = db_meta_integer(db, "started_unix_ns", 0);

    if (!source->text) {
        doc_line(doc, "  " MARK "w%s", doc_safe(doc, source->why, 200));
        return;
    }
    if (from < 1 || from > (int64_t)source->count) {
        doc_line(doc, "  " MARK "wthe source file has changed since: it has %zu lines, and this was at line %" PRId64, source->count, from);
        return;
    }
    if (started > 0 && source->changed_ns > started)
        doc_line(doc, "  " MARK "wthe source file was changed after this was recorded: lines may have moved");
    for (int64_t line = from; line <= to && line <= (int64_t)source->count; line++) {
        const struct gutter *mark = NULL;
        const char *note = NULL;
        for (size_t i = 0; i < gutters; i++)
            if (gutter[i].line == line) {
                if (!mark)
                    mark = &gutter[i];
                if (gutter[i].note && !note)
                    note = gutter[i].note;
            }
        doc_line(doc, "%s " MARK "d%5" PRId64 MARK "n %s%s%s%s", doc_fit(doc, mark ? mark->mark : line == at ? MARK "r-->" MARK "n" : "", GUTTER), line,
                 line == at ? MARK "b" : "", line_shown(doc, source->lines[line - 1]), note ? "   " : "", note ? note : "");
        doc->lines.at[doc->lines.count - 1].source_line = line;
        if (mark && mark->kind)
            doc_leads(doc, (enum view_kind)mark->kind, mark->id, NULL, NULL);
    }
}

/* tui/view.c -- what views have in common: names, targets, and the chosen line. See tui/view.h. */
#include "tui/view.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/prose.h"

#define X(kind, made, name, ...) [VIEW_##kind] = name,
static const char *const view_names[VIEW_KINDS] = {VIEWS(X)};
#undef X

const char *view_keys(const char **at, int *bytes)
{
    const char *from = *at;
    const char *end = from ? strstr(from, "  ") : NULL;

    if (!from || !*from)
        return NULL;
    *bytes = (int)(end ? (size_t)(end - from) : strlen(from));
    *at = end ? end + 2 : from + *bytes;
    return from;
}

const char *view_name(enum view_kind kind)
{
    return kind < VIEW_KINDS ? view_names[kind] : NULL;
}

enum view_kind view_named(const char *name, size_t bytes)
{
    for (int kind = VIEW_NONE + 1; kind < VIEW_KINDS; kind++) {
        const char *known = view_names[kind];
        if (strlen(known) == bytes && !memcmp(known, name, bytes))
            return (enum view_kind)kind;
    }
    return VIEW_NONE;
}

struct target target_keep(struct arena *arena, const struct target *target)
{
    struct target kept = *target;

    kept.where = target->where ? arena_print(arena, "%s", target->where) : NULL;
    kept.title = target->title ? arena_print(arena, "%s", target->title) : NULL;
    return kept;
}

char *text_with(struct arena *arena, const char *text, const char *name, const char *value)
{
    char *made = arena_print(arena, "%s", "");

    for (const char *at; (at = strstr(text, name)); text = at + strlen(name))
        made = arena_print(arena, "%s%.*s%s", made, (int)(at - text), text, value);
    return arena_print(arena, "%s%s", made, text);
}

bool view_export(struct view *view, const char *options, const char *path)
{
    const char *words =
        arena_print(&view->arena, "export %s -o %s", options, text_quoted(&view->arena, path));

    tui_go(view->tui, &(struct target){.kind = VIEW_DYNTRACE, .where = words});
    return true;
}

/* The row of schemas/tui/place.sql for TARGET, on which the caller's query_close is then due; NULL:
 * there is none, as of a call that is still to be found: what ran on a thread at a moment. */
static struct query *place_find(struct tui *tui, const struct target *target)
{
    struct query *query = target->kind && target->id && target->about != VIEW_TIMELINE
                              ? db_query(tui->db, schema_statement("tui/place"))
                              : NULL;

    if (!query)
        return NULL;
    query_bind_text(query, 1, view_name(target->kind));
    query_bind_integer(query, 2, target->id);
    if (query_step(query))
        return query;
    query_close(query);
    return NULL;
}

bool view_source(struct view *view, const struct target *target, const char **file, int64_t *line)
{
    struct query *query = place_find(view->tui, target);

    if (query) {
        *file = arena_print(&view->arena, "%s", query_text(query, 0, NULL));
        *line = query_integer(query, 1);
    }
    query_close(query);
    return query;
}

const char *target_words(struct tui *tui, struct arena *arena, const struct target *target,
                         int64_t at_ns)
{
    struct query *query = target->title ? NULL : place_find(tui, target);
    const char *words = target->title   ? target->title
                        : query         ? query_text(query, 2, NULL)
                        : target->where ? target->where
                                        : "";

    words = arena_print(arena, at_ns ? "%s%s%.160s at %.6f s" : "%s%s%.160s",
                        view_name(target->kind), *words ? " " : "", words, (double)at_ns / 1e9);
    query_close(query);
    return words;
}

static const char *editor_name(void)
{
    const char *editor = prose_filled(getenv("VISUAL"));

    if (!editor)
        editor = prose_filled(getenv("EDITOR"));
    return editor ? editor : "vi";
}

/* The place of the line under the cursor: its own, else that of where it leads, or is about. */
static bool find_place(struct view *view, const char **file, int64_t *line)
{
    bool (*own)(struct view * view, const char **file, int64_t *line) = view_op(view->ops, place);
    struct target leads = {0};
    struct target about = {0};

    view_do(view, lead, &view->arena, &leads);
    view_do(view, subject, &about);
    if (own && own(view, file, line))
        return true;
    return view_source(view, &leads, file, line) || view_source(view, &about, file, line);
}

/* $VISUAL or $EDITOR at a line of a file. The file's name came from the trace: it is an argument of
 * its own, never part of a command line, and does not begin with a dash. */
void view_edit(struct view *view)
{
    const char *editor = editor_name();
    const char *file;
    char *path, line[32];
    int64_t number = 0;
    struct stat st;

    if (!find_place(view, &file, &number)) {
        if (!tui_wait(view->tui))
            tui_say(view->tui, "no source belongs to this line");
        return;
    }
    path = say_print("%s%s", file[0] == '/' ? "" : "./", file);
    snprintf(line, sizeof line, "+%" PRId64, number > 0 ? number : 1);
    if (stat(file, &st) != 0) {
        tui_alarm(view->tui, "%s: %s", file, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        tui_alarm(view->tui, "%s: not a regular file", file);
    } else if (!view->tui->screen->terminal) {
        tui_say(view->tui, "%s %s %s", editor, line, file);
    } else {
        const char *const argv[] = {"sh", "-c", "exec $0 \"$@\"", editor, line, path, NULL};
        if (!screen_shell(argv))
            tui_alarm(view->tui, "%s: cannot be run; set EDITOR", editor);
    }
    free(path);
}

bool moment_read(const char *text, bool sure, int64_t from_ns, int64_t *ns)
{
    bool asked = sure || strchr("@+-.", *text) || strchr(text, '.') ||
                 isalpha((unsigned char)text[strspn(text, "0123456789")]);
    double number, unit_ns;
    char *end;

    text += strspn(text, "@ ");
    number = strtod(text, &end);
    end += strspn(end, " ");
    unit_ns = *end ? times_unit(end, strlen(end)) : 1e9;
    if (!asked || end == text || isalpha((unsigned char)*text) || !unit_ns ||
        !(fabs(number * unit_ns) < 4e18))
        return false;
    *ns = times_sum(*text == '+' || *text == '-' ? from_ns : 0, (int64_t)llround(number * unit_ns));
    return true;
}

void view_choose(struct view *view, size_t at)
{
    size_t shown = view->rows > view->head ? (size_t)(view->rows - view->head) : 1;
    size_t count = view->count;

    view->at = at < count ? at : count ? count - 1 : 0;
    if (view->at < view->top)
        view->top = view->at;
    if (view->at >= view->top + shown)
        view->top = view->at - shown + 1;
    if (view->top + shown > count)
        view->top = count > shown ? count - shown : 0;
}

bool view_move(struct view *view, enum request request)
{
    long height = view->rows - view->head;
    long page = height > 1 ? height - 1 : 1;
    long by = 0;
    long scroll = 0;

    switch (request) {
    case REQUEST_UP:
        by = -1;
        break;
    case REQUEST_DOWN:
        by = 1;
        break;
    case REQUEST_WHEEL_UP:
        by = -3;
        break;
    case REQUEST_WHEEL_DOWN:
        by = 3;
        break;
    case REQUEST_PAGE_UP:
        by = scroll = -page;
        break;
    case REQUEST_PAGE_DOWN:
        by = scroll = page;
        break;
    case REQUEST_HALF_UP:
        by = scroll = -(page + 1) / 2;
        break;
    case REQUEST_HALF_DOWN:
        by = scroll = (page + 1) / 2;
        break;
    case REQUEST_HOME:
        by = -(long)view->at;
        break;
    case REQUEST_END:
        by = (long)view->count;
        break;
    default:
        return false;
    }
    /* the last line may still come */
    if ((!view->count || request == REQUEST_END) && tui_wait(view->tui))
        return true;
    view->top = (long)view->top + scroll > 0 ? view->top + (size_t)scroll : 0;
    view_choose(view, (long)view->at + by > 0 ? view->at + (size_t)by : 0);
    return true;
}

bool view_find(struct view *view, int direction, view_fits *fits, const char *text)
{
    for (size_t i = 1, count = view->count; i <= count; i++) {
        size_t at = direction > 0 ? (view->at + i) % count : (view->at + count - i % count) % count;
        if (fits(view, at, text)) {
            view_choose(view, at);
            return true;
        }
    }
    return false;
}

bool view_click(struct view *view, const struct key *key, bool *again)
{
    int line = key->y - view->y - view->head;
    size_t at = view->top + (size_t)line;

    if (line < 0 || line >= view->rows - view->head || at >= view->count)
        return false;
    *again = at == view->at;
    view_choose(view, at);
    return true;
}

void view_words(struct view *view, struct screen *screen, int style, const char *words)
{
    int used;

    for (int y = view->y + view->head + 1; *words && y < view->y + view->rows; y++) {
        size_t room = text_room(words, view->columns - 4, &used);
        size_t cut = room;
        while (words[room] && cut && words[cut] != ' ')
            cut--;
        cut = cut ? cut : room ? room : strlen(words);
        screen_put(screen, y, 2, view->columns - 4, style, strndupa(words, cut));
        words += cut + (words[cut] == ' ');
    }
}

bool view_empty(struct view *view, struct screen *screen, const void *shown)
{
    if (!shown)
        view_words(view, screen, view->failed ? STYLE_ALARM : STYLE_DIM,
                   view->failed ? view->failed : "…");
    return !shown;
}

void view_settle(struct view *view)
{
    view_do(view, settle);
    view->busy = false;
    for (int i = 0; i < view_op(view->ops, asked); i++)
        view->busy = view->busy || ((job_held *)(view + 1))[i];
}

void view_close(struct view *view)
{
    for (int i = 0; i < view_op(view->ops, jobs); i++)
        work_drop(view->tui->work, ((job_held *)(view + 1))[i]);
    view_do(view, close);
}

bool view_take_(struct view *view, job_held *asked, job_held *shown)
{
    struct job *job = *asked;

    if (!job || !work_done(view->tui->work, job))
        return false;
    view->failed = job->error                     ? arena_print(&view->arena, "%s", job->error)
                   : atomic_load(&job->cancelled) ? "cancelled"
                                                  : NULL;
    *asked = view->failed ? job : *shown;
    *shown = view->failed ? *shown : job;
    work_drop(view->tui->work, *asked);
    return !view->failed;
}

int view_row(const struct view *view, struct screen *screen, int y, bool chosen)
{
    if (!chosen || view->aside)
        return STYLE_NORMAL;
    screen_fill(screen, y, 0, view->columns, STYLE_SELECTED);
    screen_put(screen, y, 0, 1, STYLE_SELECTED, ">");
    return STYLE_SELECTED;
}

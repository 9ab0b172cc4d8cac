/* tui/view.c -- functions that all views share: names, targets, the editor, the chosen line.
 * See tui/view.h. */
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

const char *view_read_key_words(const char **at, int *bytes)
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

struct target target_copy(struct arena *arena, const struct target *target)
{
    struct target kept = *target;

    kept.where = target->where ? arena_print(arena, "%s", target->where) : NULL;
    kept.title = target->title ? arena_print(arena, "%s", target->title) : NULL;
    return kept;
}

char *text_replace(struct arena *arena, const char *text, const char *name, const char *value)
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

    tui_open_view(view->tui, &(struct target){.kind = VIEW_DYNTRACE, .where = words});
    return true;
}

/* Return a query that is at the row for TARGET in schemas/tui/place.sql; the caller closes it.
 * Returns NULL if there is no row. Also returns NULL if TARGET is a moment of the timeline, whose
 * call has not been looked up yet. */
static struct query *find_place_row(struct tui *tui, const struct target *target)
{
    bool has_row = target->kind && target->id;
    struct query *query;

    if (!has_row || target->about == VIEW_TIMELINE)
        return NULL;
    query = db_query(tui->db, schema_statement("tui/place"));
    if (!query)
        return NULL;
    query_bind_text(query, 1, view_name(target->kind));
    query_bind_integer(query, 2, target->id);
    if (query_step(query))
        return query;
    query_close(query);
    return NULL;
}

bool view_find_source(struct view *view, const struct target *target, const char **file,
                      int64_t *line)
{
    struct query *query = find_place_row(view->tui, target);

    if (query) {
        *file = arena_print(&view->arena, "%s", query_text(query, 0, NULL));
        *line = query_integer(query, 1);
    }
    query_close(query);
    return query;
}

const char *target_describe(struct tui *tui, struct arena *arena, const struct target *target,
                            int64_t at_ns)
{
    struct query *query = target->title ? NULL : find_place_row(tui, target);
    const char *format = at_ns ? "%s%s%.160s at %.6f s" : "%s%s%.160s";
    const char *name = view_name(target->kind);
    const char *words = "";

    if (target->title)
        words = target->title;
    else if (query)
        words = query_text(query, 2, NULL);
    else if (target->where)
        words = target->where;
    words = arena_print(arena, format, name, *words ? " " : "", words, (double)at_ns / 1e9);
    query_close(query);
    return words;
}

static const char *choose_editor(void)
{
    const char *editor = prose_null_if_empty(getenv("VISUAL"));

    if (!editor)
        editor = prose_null_if_empty(getenv("EDITOR"));
    return editor ? editor : "vi";
}

/* Find the source for the line under the cursor: that of the line itself, or else of what the line
 * leads to, or else of the row that the line is about. */
static bool find_source_place(struct view *view, const char **file, int64_t *line)
{
    bool has_own = view_op(view->ops, place);
    struct target leads = {0};
    struct target about = {0};

    view_do(view, lead, &view->arena, &leads);
    view_do(view, subject, &about);
    if (has_own && view_op(view->ops, place)(view, file, line))
        return true;
    if (view_find_source(view, &leads, file, line))
        return true;
    return view_find_source(view, &about, file, line);
}

/* Run $VISUAL or $EDITOR for a line of a file. The file's name comes from the trace. So it is
 * passed as an argument of its own, never inside a shell command, and never begins with a dash. */
void view_open_editor(struct view *view)
{
    const char *editor = choose_editor();
    const char *file;
    char *path, line[32];
    int64_t number = 0;
    struct stat st;

    if (!find_source_place(view, &file, &number)) {
        if (!tui_wait_for_queries(view->tui))
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
        if (!screen_run_command(argv))
            tui_alarm(view->tui, "%s: cannot be run; set EDITOR", editor);
    }
    free(path);
}

/* Has TEXT a sign, a point or a unit? Then it is a moment, not the number of a line. */
static bool does_text_look_like_moment(const char *text)
{
    const char *after = text + strspn(text, "0123456789");
    bool has_sign = strchr("@+-.", *text);

    if (has_sign || strchr(text, '.'))
        return true;
    return isalpha((unsigned char)*after);
}

bool moment_parse(const char *text, bool sure, int64_t from_ns, int64_t *ns)
{
    bool asked = sure || does_text_look_like_moment(text);
    bool relative, is_number;
    double number, unit_ns;
    char *end;

    text += strspn(text, "@ ");
    number = strtod(text, &end);
    is_number = end != text && !isalpha((unsigned char)*text);
    end += strspn(end, " ");
    unit_ns = *end ? times_parse_unit(end, strlen(end)) : 1e9;
    if (!asked || !is_number)
        return false;
    number *= unit_ns;
    if (!unit_ns || !(fabs(number) < 4e18))
        return false;
    relative = *text == '+' || *text == '-';
    *ns = times_add(relative ? from_ns : 0, (int64_t)llround(number));
    return true;
}

void view_choose(struct view *view, size_t at)
{
    size_t shown = view->rows > view->head ? (size_t)(view->rows - view->head) : 1;
    size_t count = view->count;

    if (at >= count)
        at = count ? count - 1 : 0;
    view->at = at;
    if (at < view->top)
        view->top = at;
    if (at >= view->top + shown)
        view->top = at - shown + 1;
    if (view->top + shown > count)
        view->top = count > shown ? count - shown : 0;
}

bool view_move(struct view *view, enum request request)
{
    long height = view->rows - view->head;
    long page = height > 1 ? height - 1 : 1;
    long by = 0;
    bool scrolls = false; /* true if the view scrolls by as many lines as the cursor moves */
    bool may_come;
    long top, at;

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
        by = -page;
        scrolls = true;
        break;
    case REQUEST_PAGE_DOWN:
        by = page;
        scrolls = true;
        break;
    case REQUEST_HALF_UP:
        by = -(page + 1) / 2;
        scrolls = true;
        break;
    case REQUEST_HALF_DOWN:
        by = (page + 1) / 2;
        scrolls = true;
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
    /* true if the line to go to may not have been read yet */
    may_come = !view->count || request == REQUEST_END;
    if (may_come && tui_wait_for_queries(view->tui))
        return true;
    top = (long)view->top + (scrolls ? by : 0);
    at = (long)view->at + by;
    view->top = top > 0 ? (size_t)top : 0;
    view_choose(view, at > 0 ? (size_t)at : 0);
    return true;
}

bool view_find_line(struct view *view, int direction, view_fits *fits, const char *text)
{
    size_t count = view->count;
    size_t step = direction > 0 ? 1 : count - 1;
    size_t at = view->at;

    for (size_t i = 0; i < count; i++) {
        at = (at + step) % count;
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
    bool is_line = line >= 0 && line < view->rows - view->head;

    if (!is_line || at >= view->count)
        return false;
    *again = at == view->at;
    view_choose(view, at);
    return true;
}

size_t text_cut_length(const char *text, size_t room)
{
    size_t cut = room;

    if (!text[room])
        return room;
    while (cut && text[cut] != ' ')
        cut--;
    return cut;
}

void view_draw_words(struct view *view, struct screen *screen, int style, const char *words)
{
    int width = view->columns - 4;
    int last = view->y + view->rows - 1;
    int used;

    for (int y = view->y + view->head + 1; *words && y <= last; y++) {
        size_t room = text_bytes_that_fit(words, width, &used);
        size_t cut = text_cut_length(words, room);
        if (!cut)
            cut = room ? room : strlen(words);
        screen_put(screen, y, 2, width, style, strndupa(words, cut));
        words += cut;
        words += *words == ' ';
    }
}

bool view_draw_empty(struct view *view, struct screen *screen, const void *shown)
{
    int style = view->failed ? STYLE_ALARM : STYLE_DIM;
    const char *words = view->failed ? view->failed : "…";

    if (!shown)
        view_draw_words(view, screen, style, words);
    return !shown;
}

/* Return the view's array of pointers to jobs. It stands behind the struct view, at the beginning
 * of the view's own struct. */
static job_held *job_pointers_of_view(struct view *view)
{
    return (job_held *)(view + 1);
}

void view_update(struct view *view)
{
    int asked = view_op(view->ops, asked);

    view_do(view, update);
    view->busy = false;
    for (int i = 0; i < asked; i++)
        if (job_pointers_of_view(view)[i])
            view->busy = true;
}

void view_close(struct view *view)
{
    int jobs = view_op(view->ops, jobs);

    for (int i = 0; i < jobs; i++)
        work_drop(view->tui->work, job_pointers_of_view(view)[i]);
    view_do(view, close);
}

bool take_job_(struct view *view, job_held *asked, job_held *shown)
{
    struct work *work = view->tui->work;
    struct job *job = *asked;

    if (!job || !work_done(work, job))
        return false;
    view->failed = NULL;
    if (job->error)
        view->failed = arena_print(&view->arena, "%s", job->error);
    else if (atomic_load(&job->cancelled))
        view->failed = "cancelled";
    if (!view->failed) {
        *asked = *shown;
        *shown = job;
    }
    work_drop(work, *asked);
    return !view->failed;
}

int view_draw_row_begin(const struct view *view, struct screen *screen, int y, bool chosen)
{
    if (!chosen || view->aside)
        return STYLE_NORMAL;
    screen_fill(screen, y, 0, view->columns, STYLE_SELECTED);
    screen_put(screen, y, 0, 1, STYLE_SELECTED, ">");
    return STYLE_SELECTED;
}

/* cmd/report/advice.c -- prints remedies and source lines for the HTML page. See advice.h.
 *
 * The remedies are those of `dyntrace why` (trace/why/why.h). A trace does not contain source code,
 * so source lines are read from the program's files. They are shown only if the file certainly has
 * not changed since the recording (trace/lines.h). */
#include "cmd/report/advice.h"

#include <string.h>

#include "cmd/report/report.h"
#include "cmd/why/page.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/lines.h"
#include "trace/page_text.h"
#include "trace/user_stack.h"
#include "trace/why/why.h"

enum {
    FUNCTIONS_MOST = 3,
    /* a function with more lines than this is shown only around its marked lines */
    LINES_WHOLE = 60,
    LINES_AROUND = 3, /* lines shown before and after a marked line */
    /* most marked lines shown of functions that were inlined into the advised function */
    ELSEWHERE_MOST = 60
};

/* Why a line of source is marked. The statement report/marks uses these numbers. */
enum { MARK_RECOMPILE, MARK_BREAK, MARK_GUARD };

struct source_mark {
    char *file; /* owned */
    int64_t line;
    int64_t what;
    int64_t count;
    const char *words; /* the text of the mark, in `arena` of struct source_marks */
};

struct source_marks {
    LIST(struct source_mark) at; /* the marks, sorted by file, then line, then `what` */
    struct arena arena;
};

/* A function for which the section shows remedies. All texts are in the arena of
 * advice_print_html(). */
struct advised {
    const char *name, *file;
    const char *ask; /* what the user types as FUNC to get this function from `dyntrace why` */
    const char *ids; /* the function's code ids, as a JSON array */
    int64_t first_line;
};

/* The function about which the page is being printed. */
static struct {
    struct report *report;
    const struct advised *advised;
} now;

/* ---- reading the marks of source lines ----------------------------------- */

static int compare_marks(const void *a, const void *b)
{
    const struct source_mark *x = a;
    const struct source_mark *y = b;
    int order = strcmp(x->file, y->file);

    if (!order)
        order = list_compare_numbers(x->line, y->line);
    return order ? order : list_compare_numbers(x->what, y->what);
}

static struct source_marks read_source_marks(struct db *db)
{
    enum { WHAT, STACK, FILE_NAME, LINE, COUNT, WORDS };
    struct query *query = db_query(db, schema_statement("report/marks"));
    struct source_marks marks = {0};

    query_bind_text(query, 1, now.advised->ids);
    while (query_step(query)) {
        struct source_mark mark = {
            .what = query_integer(query, WHAT),
            .line = query_integer(query, LINE),
            .count = query_integer(query, COUNT),
        };
        if (query_type(query, FILE_NAME) == QUERY_TEXT)
            mark.file = query_copy(query, FILE_NAME);
        else
            mark.file = user_stack_innermost_file(query_text(query, STACK, NULL), &mark.line);
        if (!mark.file)
            continue;
        mark.words = arena_print(&marks.arena, "%s", query_text(query, WORDS, NULL));
        *list_add(&marks.at) = mark;
    }
    query_close(query);
    list_sort(&marks.at, compare_marks);
    return marks;
}

static void free_source_marks(struct source_marks *marks)
{
    list_each(mark, &marks->at)
        free(mark->file);
    list_free(&marks->at);
    arena_free(&marks->arena);
}

static bool is_mark_at_line(const struct source_mark *mark, const char *file, int64_t line)
{
    return mark->line == line && !strcmp(mark->file, file);
}

/* Is any line of FILE from FIRST to LAST marked? */
static bool is_marked(const struct source_marks *marks, const char *file, int64_t first,
                      int64_t last)
{
    list_each(mark, &marks->at) {
        bool is_between = mark->line >= first && mark->line <= last;
        if (is_between && !strcmp(mark->file, file))
            return true;
    }
    return false;
}

/* ---- printing source lines ----------------------------------------------- */

/* Print line LINE of FILE with its marks. TEXT is the line's source, or NULL. PLACE is NULL, or the
 * file's name if the line is outside of the function that is being printed. */
static void print_source_line(struct page_text *page, const struct source_marks *marks,
                              const char *file, int64_t line, const char *text, const char *place)
{
    fact(page, "line", line);
    fact(page, "place", place);
    fact(page, "text", text);
    fact(page, "marked", is_marked(marks, file, line, line));
    page_text_print_row(page, "pages/html/line", 0);
    list_each(mark, &marks->at) {
        if (!is_mark_at_line(mark, file, line))
            continue;
        fact(page, "what", mark->what);
        fact(page, "count", mark->count);
        fact(page, "words", mark->words);
        page_text_print_row(page, "pages/html/mark", 0);
    }
    page_text_print_row(page, "pages/html/line_end", 0);
}

/* Print the source of the function: all lines or, if there are many, only the lines around its
 * marks. LAST is the function's last line. */
static void print_function_source(struct page_text *page, const struct source_marks *marks,
                                  const struct source *source, int64_t last)
{
    bool is_whole = last - now.advised->first_line < LINES_WHOLE;
    bool is_gap = false;

    page_text_print_row(page, "pages/html/source", 0);
    for (int64_t line = now.advised->first_line; line <= last; line++) {
        bool is_near =
            is_marked(marks, now.advised->file, line - LINES_AROUND, line + LINES_AROUND);
        bool is_shown = is_whole || is_near || line == now.advised->first_line;
        if (is_shown) {
            print_source_line(page, marks, now.advised->file, line, source->lines[line - 1], NULL);
            is_gap = false;
        } else if (!is_gap) {
            page_text_print_row(page, "pages/html/gap", 0);
            is_gap = true;
        }
    }
    page_text_print_row(page, "pages/html/source_end", 0);
}

/* Is MARK inside the function that is being printed, whose last line is LAST? */
static bool is_mark_inside_function(const struct source_mark *mark, int64_t last)
{
    bool is_between = mark->line >= now.advised->first_line && mark->line <= last;

    return is_between && !strcmp(mark->file, now.advised->file);
}

/* Is MARK outside of the function that is being printed, whose last line is LAST? If a line has
 * several marks, returns true only for the first mark. */
static bool is_first_mark_outside_function(const struct source_marks *marks,
                                           const struct source_mark *mark, int64_t last)
{
    bool is_first = mark == marks->at.at || !is_mark_at_line(mark - 1, mark->file, mark->line);

    return is_first && !is_mark_inside_function(mark, last);
}

/* Print the marked lines outside of the function that is being printed. They belong to functions
 * that it calls and that were compiled with it (inlined). LAST is the function's last line. */
static void print_marked_lines_elsewhere(struct page_text *page, const struct source_marks *marks,
                                         int64_t last)
{
    struct lines *lines = db_get_source_lines(page->db);
    int64_t count = 0;
    int64_t important = 0; /* number of marks that are not about guards */
    int64_t left;

    list_each(mark, &marks->at) {
        count += is_first_mark_outside_function(marks, mark, last);
        important += !is_mark_inside_function(mark, last) && mark->what != MARK_GUARD;
    }
    if (!count)
        return;
    fact(page, "count", count);
    fact(page, "important", important);
    page_text_print_row(page, "pages/html/elsewhere", 0);
    left = ELSEWHERE_MOST;
    list_each(mark, &marks->at) {
        if (!is_first_mark_outside_function(marks, mark, last) || left-- <= 0)
            continue;
        print_source_line(page, marks, mark->file, mark->line,
                          lines_get_line(lines, mark->file, mark->line), mark->file);
    }
    left = count - ELSEWHERE_MOST;
    fact(page, "left", left > 0 ? left : FACT_UNKNOWN);
    page_text_print_row(page, "pages/html/elsewhere_end", 0);
}

static void print_source_section(struct page_text *page)
{
    struct source_marks marks = read_source_marks(page->db);
    const char *why_not = NULL;
    const struct source *source =
        lines_read_file(db_get_source_lines(page->db), now.advised->file, &why_not);
    int64_t last = now.advised->first_line;
    bool has_line;

    /* check `last`, because a program can give a code object any first line, even 0 */
    has_line = last >= 1 && source && last <= (int64_t)source->count;
    if (source && !has_line)
        why_not = last < 1 ? "the function has no line" : "the file has no such line any more";
    if (has_line)
        last = source_find_function_end(source, last);
    else
        source = NULL;
    if (source && marks.at.count) {
        print_function_source(page, &marks, source, last);
    } else if (marks.at.count) {
        fact(page, "why_not", why_not);
        page_text_print_row(page, "pages/html/sourceless", 0);
        last = 0;
    }
    print_marked_lines_elsewhere(page, &marks, last);
    free_source_marks(&marks);
}

/* ---- printing the section "What would help" ------------------------------ */

static void print_remedies(struct page_text *page, const char *ask)
{
    struct why why = {.db = page->db, .progress = now.report->progress};

    if (find_single_function(page->db, ask, &why.code)) {
        why_gather_facts(&why);
        why_add_remedies(&why);
        why_predict_remedies(&why);
        if (!db_has_failed(page->db))
            why_remedies_print(&why, page->out, page->way);
    }
    why.db = NULL; /* keep why_free() from closing the database, which the report owns */
    why_free(&why);
}

static void print_advised_function(struct report *report, struct page_text *page,
                                   const struct advised *advised)
{
    now.report = report;
    now.advised = advised;
    fact(page, "name", advised->name);
    fact(page, "file", advised->file);
    fact(page, "line", advised->first_line);
    page_text_print_row(page, "pages/html/advised", 0);
    print_remedies(page, advised->ask);
    page_text_print_row(page, "pages/html/remedies_end", 0);
    print_source_section(page);
    page_text_print_row(page, "pages/html/advised_end", 0);
}

void advice_print_html(struct report *report, struct page_text *page)
{
    enum { NAME, FILE_NAME, FIRST_LINE, ASK, IDS };
    struct query *query = db_query(page->db, schema_statement("report/advised"));
    LIST(struct advised) all = {0};
    struct arena arena = {0};

    query_bind_integer(query, 1, FUNCTIONS_MOST);
    while (query_step(query))
        *list_add(&all) = (struct advised){
            .name = arena_print(&arena, "%s", query_text(query, NAME, NULL)),
            .file = arena_print(&arena, "%s", query_text(query, FILE_NAME, NULL)),
            .first_line = query_integer(query, FIRST_LINE),
            .ask = arena_print(&arena, "%s", query_text(query, ASK, NULL)),
            .ids = arena_print(&arena, "%s", query_whole_value(query, IDS, NULL)),
        };
    /* close it first, because db_visit() requires that no statement is running */
    query_close(query);
    if (all.count) {
        report_print_link(report, "advice", "what would help");
        page_text_print_row(page, "pages/html/advice", 0);
        list_each(advised, &all) {
            print_advised_function(report, page, advised);
        }
        page_text_print_row(page, "pages/html/advice_end", 0);
    }
    list_free(&all);
    arena_free(&arena);
}

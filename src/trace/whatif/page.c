/* trace/whatif/page.c -- prints the answer to a what-if as a page. See trace/whatif/whatif.h.
 *
 * The words and columns are in schemas/pages/whatif.txt; this file decides which blocks of it are
 * printed, and passes their figures. */
#include <inttypes.h>

#include "replay.h"
#include "trace/page_text.h"
#include "trace/whatif/whatif.h"

enum { LISTED = 20, NOTE_COLUMNS = 72 };

/* A page that is being printed. All pointers are borrowed. */
struct answer_page {
    struct page_text text;
    const struct whatif_asked *asked;
    const struct whatif_answer *answer;
    /* if not NULL, a function that is called before each recorded row */
    void (*recorded)(void *context, int64_t code_id);
    void *context;
    /* number of functions that have been listed, and number of those that were left out because
     * nothing changes */
    size_t listed, unchanged;
    bool exact; /* all figures that were printed so far are exact */
};

/* ---- printing the figures of one function -------------------------------- */

static void print_recorded(struct page_text *page, const struct whatif_tally *t)
{
    fact(page, "calls", t->calls);
    fact(page, "hits", t->hits);
    fact(page, "misses", t->misses);
    fact(page, "compiles", t->compiles);
    fact(page, "eager", t->eager);
    fact(page, "checks", t->checks);
    fact(page, "check_ns", whatif_checks_timed(t) ? t->check_ns : FACT_UNKNOWN);
    fact(page, "compile_ns", t->compile_ns);
    page_text_print_row(page, "pages/whatif/recorded", 0);
}

/* Add the number of checks and their time, for the predicted calls of the function, to PAGE. If it
 * is not known which entries the calls hit, these figures are not known either. */
static void add_predicted_sums(struct page_text *page, const struct whatif_function *f)
{
    const struct whatif_tally *t = &f->predicted;
    bool same_entries = !f->undecided && !f->either;
    bool checks_known = same_entries && whatif_is_exact(f);
    bool time_known = checks_known && whatif_checks_timed(t);
    bool compiles_known = whatif_range_is_exact(&f->compiles);

    fact(page, "checks", checks_known ? t->checks : FACT_UNKNOWN);
    fact(page, "check_ns", time_known ? t->check_ns : FACT_UNKNOWN);
    fact(page, "compile_ns", compiles_known ? t->compile_ns : FACT_UNKNOWN);
}

static void print_predicted(struct page_text *page, const struct whatif_function *f)
{
    /* clang-format off */
    const struct {
        const char *name;
        const struct whatif_range *range;
    } columns[] = {
        {"calls", &f->calls},
        {"hits", &f->hits},
        {"misses", &f->misses},
        {"compiles", &f->compiles},
        {"eager", &f->eager},
    };
    /* clang-format on */
    enum { COLUMNS = array_count(columns) };
    /* the texts of the row, which must live until the row is printed */
    char texts[COLUMNS][WHATIF_RANGE_TEXT];

    for (int i = 0; i < COLUMNS; i++)
        fact(page, columns[i].name, whatif_format_range(texts[i], columns[i].range));
    add_predicted_sums(page, f);
    fact(page, "gone", f->gone);
    fact(page, "undecided", f->undecided);
    fact(page, "either", f->either);
    fact(page, "trusting", f->trusting);
    fact(page, "unrecorded", f->unrecorded);
    page_text_print_row(page, "pages/whatif/predicted", 0);
}

/* Print the recorded and the predicted figures of the function. CODE_ID is -1 for the sums over
 * all functions. */
static void print_figures(struct answer_page *page, const struct whatif_function *f,
                          int64_t code_id)
{
    if (page->recorded)
        page->recorded(page->context, code_id);
    print_recorded(&page->text, &f->recorded);
    print_predicted(&page->text, f);
    page->exact = page->exact && whatif_is_exact(f);
}

static void print_function(struct answer_page *page, const struct whatif_function *f)
{
    const struct replay *replay = page->asked->replay;
    char *name = replay_make_code_name(replay, f->code);

    fact(&page->text, "name", name);
    page_text_print_row(&page->text, "pages/whatif/function", 0);
    free(name);
    print_figures(page, f, replay->codes.at[f->code].id);
}

/* ---- printing the list of functions, and the sums ------------------------ */

/* Do all calls of the function certainly end as recorded? */
static bool is_unchanged(const struct whatif_function *f)
{
    bool moved = f->changed || f->gone;

    if (moved || f->undecided)
        return false;
    return whatif_is_exact(f) && !memcmp(&f->recorded, &f->predicted, sizeof f->recorded);
}

/* Is the function listed on the page of ANSWER? */
static bool is_listed(const struct whatif_answer *answer, const struct whatif_function *f)
{
    return answer->codes ? answer->codes[f->code] : !is_unchanged(f);
}

static void print_functions(struct answer_page *page)
{
    const struct whatif_result *r = &page->answer->result;

    list_each(f, &r->functions) {
        if (!is_listed(page->answer, f)) {
            page->unchanged++;
            continue;
        }
        page->listed++;
        if (page->listed <= LISTED)
            print_function(page, f);
    }
    if (page->listed <= LISTED)
        return;
    fact_integer(&page->text.facts, "listed", LISTED);
    fact_integer(&page->text.facts, "functions", (int64_t)page->listed);
    page_text_print_row(&page->text, "pages/whatif/more", 0);
}

static void print_sums(struct answer_page *page)
{
    fact_bool(&page->text.facts, "same", page->unchanged > 0);
    page_text_print_row(&page->text, "pages/whatif/all", 0);
    print_figures(page, &page->answer->result.total, -1);
}

/* ---- printing the headline, how to measure, and the notes ---------------- */

static void print_headline(struct answer_page *page)
{
    const struct whatif_answer *answer = page->answer;

    fact_integer(&page->text.facts, "tried", answer->tried < 0 ? FACT_UNKNOWN : answer->tried);
    fact(&page->text, "settings", answer->knobs.text);
    page_text_print_row(&page->text, "pages/whatif/headline", 0);
}

/* Print the command that measures what the settings KNOBS do. */
static void print_measure_command(struct answer_page *page, const struct whatif_knobs *knobs)
{
    char *words = whatif_make_try_command(page->asked, knobs);

    fact(&page->text, "words", words);
    page_text_print_row(&page->text, "pages/whatif/measure", 0);
    free(words);
}

static void print_unproven_notice(struct answer_page *page)
{
    struct whatif_knobs knobs = {0};

    fact(&page->text, "settings", page->answer->unproven);
    page_text_print_row(&page->text, "pages/whatif/unproven", 0);
    if (whatif_read_setting(&knobs, page->answer->unproven))
        print_measure_command(page, &knobs);
    whatif_knobs_free(&knobs);
}

/* Print the text of an assumption, wrapped into lines of NOTE_COLUMNS columns. */
static void print_note(FILE *out, const char *text)
{
    size_t column = 0;

    fputs("  *", out);
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, " ");
        if (column && column + bytes + 1 > NOTE_COLUMNS) {
            fputs("\n   ", out);
            column = 0;
        }
        fprintf(out, " %.*s", (int)bytes, at);
        column += bytes + 1;
        at += bytes + (at[bytes] == ' ');
    }
    putc('\n', out);
}

static void print_notes(struct answer_page *page)
{
    const struct whatif_result *r = &page->answer->result;

    if (r->notes.count)
        page_text_print_row(&page->text, "pages/whatif/granted", 0);
    for (size_t i = 0; i < r->notes.count; i++)
        print_note(page->text.out, r->notes.at[i]);
}

void whatif_print_page(const struct whatif_asked *asked, const struct whatif_answer *answer,
                       void (*recorded)(void *context, int64_t code_id), void *context)
{
    const struct whatif_function *total = &answer->result.total;
    bool same = !total->changed && !total->gone;
    struct answer_page page = {
        .text = {.out = asked->out, .way = TEMPLATE_LINES},
        .asked = asked,
        .answer = answer,
        .recorded = recorded,
        .context = context,
        .exact = true,
    };

    print_headline(&page);
    print_functions(&page);
    if (!answer->codes)
        print_sums(&page);
    if (page.exact && same)
        page_text_print_row(&page.text, "pages/whatif/same", 0);
    if (!page.exact)
        page_text_print_row(&page.text, "pages/whatif/legend", 0);
    if (!page.exact && answer->knobs.text)
        print_measure_command(&page, &answer->knobs);
    if (answer->unproven)
        print_unproven_notice(&page);
    print_notes(&page);
}

/* cmd/why/page.c -- prints the page of `dyntrace why`. See cmd/why/page.h. */
#include "cmd/why/page.h"
#include "cmd/why/profile.h"
#include "lib/times.h"
#include "trace/brief.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/expression.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/torch_words.h"
#include "trace/trials.h"
#include "trace/user_stack.h"

enum {
    HITS_SHOWN = 6,
    COMPILES_FIRST = 4,
    COMPILES_LAST = 2,
    /* the most causes that are read of a compile, because each cause is compared with all others */
    CAUSES_READ = 200,
    NAME_BYTES = 200,
};

static struct why *why; /* borrowed: what the page is about, while it is printed */
static bool print_all;  /* print all remedies, not only the first ones */

/* The objects that a --call line of a template prints (print_part). They are set before a block
 * with such a line is printed. */
static struct {
    const struct remedy *remedy;
    const struct compile *compile;
    /* from, end: the array of causes of the compile, or the one cause of a history */
    const struct cause *from, *end;
    /* the cause that is being printed, one of those from `from` to `end` */
    const struct cause *cause;
    const struct graph_break *broken;
} now;

/* Return what torch's REASON tells first: what happened. Returns NULL if REASON is NULL. */
static const char *first_part_of_reason(const char *reason)
{
    struct torch_reason parts;

    if (!reason)
        return NULL;
    parts = torch_reason_split(reason);
    return arena_print(&why->arena, "%s", parts.what);
}

static const char *name_of_entry(const struct cause *cause)
{
    return prose_text_or_other(cause->older_entry, "an older entry");
}

/* Return the innermost line in STACK that is the program's own code. SAID is a sentence of torch
 * that may quote this line, or NULL. */
static const char *find_user_line(const char *stack, const char *said)
{
    struct lines *lines = db_get_source_lines(why->db);
    char *line = user_stack_innermost_line(stack, said, why->code.qualname, lines);

    return why_keep_text(why, line);
}

static double share_in_percent(int64_t part, int64_t all)
{
    return 100.0 * (double)part / (double)all;
}

/* Set the field {left}, which the --more line of a template prints: how many of COUNT rows are left
 * from row I on. */
static void set_rows_left_field(struct page_text *page, size_t count, size_t i)
{
    int64_t left = (int64_t)(count - i);

    fact(page, "left", left);
}

/* Set the fields that every template block may use. */
static void set_shared_fields(struct page_text *page)
{
    bool torch = why->torch.number;

    fact(page, "torch", torch);
    fact(page, "mode", why->torch.mode);
    fact(page, "function", why->code.qualname);
    why_add_facts(&page->facts, single_fields, why);
    why_add_facts(&page->facts, sum_fields, why);
}

/* ---- moments: times since the recording began ---------------------------------- */

enum { DECIMALS_LEAST = 3, DECIMALS_MOST = 9 };

/* How many decimals printed moments have: enough to distinguish all moments in a list. */
static int decimals = DECIMALS_LEAST;

static int64_t truncate_moment(int64_t ns, int digits)
{
    int64_t unit = 1000000000;

    while (digits-- > 0)
        unit /= 10;
    return ns / unit;
}

static void add_decimals_until_different(int64_t before, int64_t after)
{
    bool are_known = before != UNKNOWN && after != UNKNOWN && before != after;

    while (are_known && decimals < DECIMALS_MOST &&
           truncate_moment(before, decimals) == truncate_moment(after, decimals))
        decimals++;
}

static void choose_decimals_of_moments(void)
{
    size_t most = HITS_SHOWN + OUTCOMES;

    decimals = DECIMALS_LEAST;
    for (size_t i = 1; i < why->compiles.count; i++) {
        const struct compile *compile = &why->compiles.at[i];
        add_decimals_until_different(compile[-1].start_ns, compile->start_ns);
    }
    for (size_t i = 0; i < why->calls.count; i++) {
        const struct call_class *class = &why->calls.at[i];
        add_decimals_until_different(class->first_ns, class->last_ns);
        for (size_t j = 0; j < i && j < most; j++)
            add_decimals_until_different(why->calls.at[j].first_ns, class->first_ns);
    }
}

/* Return the moment NS after the recording's beginning as "1.093 s". Returns NULL if NS is
 * UNKNOWN. */
static const char *format_moment(int64_t ns)
{
    int64_t unit = 1000000000;

    if (ns == UNKNOWN)
        return NULL;
    if (ns < 0)
        return arena_print(&why->arena, "%.*f s", decimals, (double)ns / 1e9);
    return arena_print(&why->arena, "%jd.%0*jd s", (intmax_t)(ns / unit), decimals,
                       (intmax_t)truncate_moment(ns % unit, decimals));
}

/* ---- printing the head of the page --------------------------------------- */

/* Print the shares of calls by how they ran, as "16 calls: 56.2 % ran compiled code, ...". */
static void print_call_shares(struct page_text *page)
{
    int64_t hits = why_count_calls(why, OUTCOME_HIT);
    int64_t compiled = why_count_calls(why, OUTCOME_COMPILED);
    int64_t skips = why_count_calls(why, OUTCOME_SKIP);
    int64_t disabled = why_count_calls(why, OUTCOME_DISABLED);
    int64_t compiles = (int64_t)why->compiles.count;
    int64_t asked = why->shared.asked;

    set_shared_fields(page);
    fact(page, "compiles", compiles);
    fact(page, "without_lookup", skips + disabled);
    fact(page, "asked", asked);
    fact(page, "others", why->all_calls - asked);
    if (asked) {
        fact(page, "compiled", share_in_percent(hits + compiled, asked));
        fact(page, "python", share_in_percent(why->shared.python, asked));
    }
    fact(page, "without_code", compiles - why->made);
    page_text_print_row(page, "pages/why/shares", 0);
}

static void print_head(struct page_text *page)
{
    const struct found_code *code = &why->code;
    const char *rest =
        why_keep_text(why, torch_describe_resume_function(code->qualname, NAME_BYTES));
    char *settings = doubts_describe_settings(why->db);

    set_shared_fields(page);
    fact(page, "file", code->filename);
    fact(page, "line", code->first_line);
    fact(page, "kind", rest ? rest : code->kind);
    fact(page, "code_objects", code->code_objects);
    fact(page, "processes", code->processes);
    fact(page, "values", doubts_describe_stored_values(why->db));
    fact(page, "settings", settings);
    page_text_print_row(page, "pages/why/head", 0);
    free(settings);
}

/* Does rank NEXT belong to the range of ranks that ends with LAST? The ranks of a range follow one
 * another and have the same number of compiles. */
static bool is_next_rank(const struct rank *last, const struct rank *next)
{
    bool alike = next->compiles == last->compiles;

    return alike && next->rank == last->rank + 1;
}

/* Return the last rank of the range that begins with the rank FIRST. The ranks of a range have the
 * same number of compiles. */
static size_t find_ranks_end(size_t first)
{
    const struct rank *ranks = why->ranks.at;
    const size_t count = why->ranks.count;
    size_t last = first;

    while (last + 1 < count && is_next_rank(&ranks[last], &ranks[last + 1]))
        last++;
    return last;
}

/* Print the compiles of each rank. Ranks should compile alike, because a rank that compiles alone
 * makes the others wait. */
static void print_ranks(struct page_text *page)
{
    const size_t count = why->ranks.count;
    const struct rank *ranks = why->ranks.at;
    bool differ = false;
    bool more = true;
    int64_t row = 0;

    for (size_t i = 0; i < count; i++)
        differ = differ || ranks[i].compiles != ranks[0].compiles;
    for (size_t i = 0; i < count && more; row++) {
        size_t last = find_ranks_end(i);
        why_add_facts(&page->facts, ranks_fields, &ranks[i]);
        if (last > i)
            fact(page, "last", ranks[last].rank);
        fact(page, "several", count > 1);
        fact(page, "differ", differ);
        fact(page, "later", i > 0);
        set_rows_left_field(page, count, i);
        more = page_text_print_row(page, "pages/why/rank", row);
        i = last + 1;
    }
    fact(page, "differ", differ);
    page_text_print_row(page, "pages/why/ranks", 0);
}

/* Print the mode in which torch was recorded, and the ranks. */
static void print_torch_mode(struct page_text *page)
{
    if (why->torch.number || why->ranks.count)
        putc('\n', page->out);
    why_add_facts(&page->facts, torch_fields, &why->torch);
    why_add_facts(&page->facts, torches_fields, &why->torch);
    if (why->torch.number)
        page_text_print_row(page, "pages/why/torch", 0);
    page->facts.count = 0;
    if (why->ranks.count)
        print_ranks(page);
}

/* ---- printing the calls by outcome --------------------------------------- */

static const char *get_outcome_words(int64_t outcome)
{
    const struct outcome_facts *facts = &outcome_facts[outcome];

    if (!why->torch.number || !facts->torch)
        return facts->words;
    return outcome == OUTCOME_PLAIN && why->torch.observed
               ? "ran eagerly; whether torch was asked was not seen"
               : facts->torch;
}

/* Print the template block NAME with the number CALLS and its share of all calls. */
static void print_calls_row(struct page_text *page, const char *name, int64_t calls)
{
    int64_t all = why->all_calls;
    double share = all > 0 ? share_in_percent(calls, all) : 100.0;

    fact(page, "calls", calls);
    fact(page, "share", share);
    page_text_print_row(page, name, 0);
}

static void print_call_class(struct page_text *page, const struct call_class *class)
{
    why_add_facts(&page->facts, calls_fields, class);
    fact(page, "words", get_outcome_words(class->outcome));
    fact(page, "first", format_moment(class->first_ns));
    fact(page, "last", format_moment(class->last_ns));
    print_calls_row(page, "pages/why/call", class->calls);
}

static void print_disabled_calls(struct page_text *page)
{
    set_shared_fields(page);
    fact(page, "reason", first_part_of_reason(why->disabled_words));
    page_text_print_row(page, "pages/why/disabled", 0);
}

/* Print the number of calls by outcome. Hits are printed for each cache entry. After HITS_SHOWN
 * entries, the hits of all others share one line. */
static void print_calls_by_outcome(struct page_text *page)
{
    int64_t folded = 0;
    int64_t entries = 0;
    int64_t hits = 0;

    if (!why->calls.count && !why->undecided)
        return;
    if (why->is_plain && why_count_calls(why, OUTCOME_PLAIN) + why->undecided == why->all_calls)
        return; /* the head of the page already says that no compiler handled the calls */
    page_text_print_row(page, "pages/why/calls", 0);
    list_each(class, &why->calls) {
        bool is_hit = class->outcome == OUTCOME_HIT;
        hits += is_hit;
        if (is_hit && hits > HITS_SHOWN) {
            folded += class->calls;
            entries++;
        } else {
            print_call_class(page, class);
        }
    }
    if (folded) {
        fact(page, "entries", entries);
        print_calls_row(page, "pages/why/other_hits", folded);
    }
    if (why->disabled_words)
        print_disabled_calls(page);
    if (why->undecided)
        print_calls_row(page, "pages/why/undecided", why->undecided);
}

/* ---- printing the causes of recompiles ----------------------------------- */

/* Do both causes have the same source with the same actual value? Then they are printed as one
 * cause, although several guards of several older entries may have failed. */
static bool is_same_cause(const struct cause *one, const struct cause *other)
{
    if (one->dimension != other->dimension)
        return false;
    if (!prose_are_texts_equal(one->aspect, other->aspect))
        return false;
    if (!prose_are_texts_equal(one->source, other->source))
        return false;
    return prose_are_texts_equal(one->actual, other->actual);
}

static bool has_values(const struct cause *cause)
{
    return prose_null_if_empty(cause->expected) || prose_null_if_empty(cause->actual);
}

/* Are the causes ONE and OTHER printed together, as one? Causes without values must also have the
 * same entry, kind and text. */
static bool are_causes_printed_together(const struct cause *one, const struct cause *other)
{
    if (!is_same_cause(one, other))
        return false;
    if (has_values(one))
        return true;
    if (one->cache_entry_id != other->cache_entry_id)
        return false;
    if (!prose_are_texts_equal(one->kind, other->kind))
        return false;
    return prose_are_texts_equal(one->text, other->text);
}

/* Return the text in the member of CAUSE that is at OFFSET (offsetof). */
static const char *read_text_at(const struct cause *cause, size_t offset)
{
    return *(const char *const *)((const char *)cause + offset);
}

/* Are ONE and OTHER printed together, and are their texts in the member at OFFSET (offsetof)
 * equal? */
static bool are_printed_together_with_same_text(const struct cause *one, const struct cause *other,
                                                size_t offset)
{
    if (!are_causes_printed_together(one, other))
        return false;
    return prose_are_texts_equal(read_text_at(one, offset), read_text_at(other, offset));
}

/* Is CAUSE printed together with now.cause, and is it the first such cause with its text in the
 * member at OFFSET (offsetof)? */
static bool is_first_with_text(const struct cause *cause, size_t offset)
{
    const struct cause *at = now.from;

    if (!are_causes_printed_together(cause, now.cause))
        return false;
    while (at < cause && !are_printed_together_with_same_text(at, cause, offset))
        at++;
    return at == cause;
}

/* Print the older entries that expected the same value as now.cause's entry. If IS_COUNTED, print
 * nothing. Returns how many they are. */
static int64_t print_expecting_entries(struct page_text *page, bool is_counted)
{
    const size_t expected = offsetof(struct cause, expected);
    const struct cause *last = NULL;
    int64_t count = 0;
    int64_t all = is_counted ? 0 : print_expecting_entries(page, true);
    bool more = true;

    for (const struct cause *c = now.cause; c < now.end && more; c++) {
        bool is_repeated = last && last->cache_entry_id == c->cache_entry_id;
        if (is_repeated)
            continue;
        if (!are_printed_together_with_same_text(c, now.cause, expected))
            continue;
        last = c;
        if (!is_counted) {
            fact(page, "later", count > 0);
            fact(page, "entry", name_of_entry(c));
            fact(page, "left", all - count);
            more = page_text_print_row(page, "pages/why/expecting", count);
        }
        count++;
    }
    return count;
}

/* Print the expected values: "expected 16 (0/0, 0/2), 18 (0/1)". Values of causes that differ
 * only in the older entry are printed once. If IS_COUNTED, print nothing. Returns the number of
 * values. */
static int64_t print_expected_values(struct page_text *page, bool is_counted)
{
    const size_t expected = offsetof(struct cause, expected);
    const struct cause *first = now.cause;
    int64_t count = 0;
    int64_t all = is_counted ? 0 : print_expected_values(page, true);
    bool more = true;

    for (const struct cause *c = now.from; c < now.end && more; c++) {
        if (!is_first_with_text(c, expected))
            continue;
        if (!is_counted) {
            fact(page, "later", count > 0);
            fact(page, "expected", why_keep_text(why, cause_expected(c)));
            fact(page, "left", all - count);
            now.cause = c;
            more = page_text_print_row(page, "pages/why/expected", count);
            now.cause = first;
        }
        count++;
    }
    return count;
}

/* Print the kinds of the guards that failed for now.cause: "EQUALS_MATCH, LAMBDA_GUARD". If
 * IS_COUNTED, print nothing. Returns the number of kinds. */
static int64_t print_guard_kinds(struct page_text *page, bool is_counted)
{
    const size_t kind = offsetof(struct cause, kind);
    int64_t count = 0;

    for (const struct cause *c = now.from; c < now.end; c++) {
        if (!prose_null_if_empty(c->kind) || !is_first_with_text(c, kind))
            continue;
        if (!is_counted) {
            fact(page, "later", count > 0);
            fact(page, "kind", c->kind);
            page_text_print_row(page, "pages/why/kind", count);
        }
        count++;
    }
    return count;
}

/* Print the lines of the user's program that made torch add the guards of now.cause. NAME is the
 * template block that prints a line. */
static void print_lines_that_need_guards(struct page_text *page, const char *name)
{
    const size_t user_stack = offsetof(struct cause, user_stack);
    int64_t shown = 0;
    bool more = true;

    for (const struct cause *c = now.from; c < now.end && more; c++) {
        if (!prose_null_if_empty(c->user_stack) || !is_first_with_text(c, user_stack))
            continue;
        fact(page, "line", find_user_line(c->user_stack, c->text));
        more = page_text_print_row(page, name, shown);
        shown++;
    }
}

/* Set the fields about now.cause, a change of the backend: the backend of the older entry, and that
 * of the new entry. */
static void set_backend_fields(struct page_text *page)
{
    const struct entry *older = why_find_entry(why, now.cause->cache_entry_id);
    const struct entry *made = why_find_entry(why, now.compile->cache_entry_id);
    const char *before = older ? older->backend : NULL;
    const char *after = before && made ? made->backend : NULL;
    bool is_same_name = after && !strcmp(before, after);

    fact(page, "backend", true);
    fact(page, "before", before);
    fact(page, "now", after);
    fact(page, "same", is_same_name);
}

/* Did torch recompile because of now.cause, or of a cause that is printed together with it? */
static bool has_forced_recompile(void)
{
    for (const struct cause *other = now.from; other < now.end; other++) {
        if (!other->decided)
            continue;
        if (are_causes_printed_together(other, now.cause))
            return true;
    }
    return false;
}

/* Does CAUSE mean that the older entry was compiled with another backend? */
static bool is_backend_change(const struct cause *cause)
{
    static const char kind[] = "BACKEND_";

    if (!why->torch.number || !cause->kind)
        return false;
    return !strncmp(cause->kind, kind, strlen(kind));
}

/* Print now.cause, together with the causes that are printed as one with it, as number NUMBER of
 * ALL. Returns false if the causes after it are to be left out. */
static bool print_cause(struct page_text *page, int64_t number, int64_t all)
{
    const struct cause *c = now.cause;
    const char *reason = prose_text_or_other(c->source, "no reason was recorded");

    fact(page, "decided", has_forced_recompile());
    fact(page, "entry", name_of_entry(c));
    if (has_values(c)) {
        fact(page, "about", why_keep_text(why, cause_subject_expression(c)));
        fact(page, "expected", prose_null_if_empty(c->expected));
        fact(page, "actual", why_keep_text(why, cause_actual(c)));
    } else if (is_backend_change(c)) {
        set_backend_fields(page);
    } else {
        fact(page, "reason", prose_text_or_other(c->text, reason));
    }
    fact(page, "kinds", print_guard_kinds(page, true));
    fact(page, "how", c->how);
    fact(page, "left", all - number);
    return page_text_print_row(page, "pages/why/cause", number);
}

/* Is CAUSE the first of the causes that are printed together with it? */
static bool is_first_of_cause(const struct cause *cause)
{
    const struct cause *at = now.from;

    while (at < cause && !are_causes_printed_together(at, cause))
        at++;
    return at == cause;
}

/* Print the causes of now.compile, a recompile. Causes that are printed together take one line. */
static void print_recompile_causes(struct page_text *page)
{
    size_t count = now.compile->causes;
    int64_t shown = 0;
    int64_t all = 0;
    bool more = true;

    now.from = &why->causes.at[now.compile->first_cause];
    now.end = now.from + (count < CAUSES_READ ? count : CAUSES_READ);
    for (const struct cause *c = now.from; c < now.end; c++)
        all += is_first_of_cause(c);
    for (const struct cause *c = now.from; c < now.end && more; c++) {
        if (!is_first_of_cause(c))
            continue;
        now.cause = c;
        more = print_cause(page, shown, all);
        shown++;
    }
}

/* Print why now.compile was a recompile although no guard failed: because older entries had died,
 * or because an entry belongs to another region (another torch.compile() call). Returns false if
 * neither was the case. */
static bool print_deaths_before_recompile(struct page_text *page)
{
    const struct compile *compile = now.compile;
    const struct entry *other = why_find_other_region(why, compile);
    int64_t shown = 0;
    bool more = true;

    for (size_t left = why->entries.count; left > 0 && more; left--) {
        const struct entry *e = &why->entries.at[left - 1];
        bool is_dead = e->died_ns != UNKNOWN && e->died_ns <= compile->start_ns;
        if (e->code_id != compile->code_id)
            continue;
        if (!is_dead)
            continue;
        fact(page, "label", e->label);
        fact(page, "died", format_moment(e->died_ns));
        fact(page, "cause", prose_null_if_empty(e->death_cause));
        more = page_text_print_row(page, "pages/why/death", shown);
        shown++;
    }
    if (other) {
        why_add_facts(&page->facts, entries_fields, other);
        page_text_print_row(page, "pages/why/other_region", 0);
    }
    return shown || other;
}

static void print_causes(struct page_text *page)
{
    bool is_unexplained = now.compile->recompile && !now.compile->causes;

    if (now.compile->causes)
        print_recompile_causes(page);
    if (!is_unexplained || print_deaths_before_recompile(page) || !compile_has_code(now.compile))
        return;
    fact(page, "reason", prose_null_if_empty(now.compile->reason));
    page_text_print_row(page, "pages/why/no_cause", 0);
}

/* ---- printing the compiles of the function ------------------------------- */

/* Set the fields about STACK, a stack of the user's program: its innermost line, and the calls that
 * lead there. */
static void set_stack_fields(struct page_text *page, const char *stack)
{
    fact(page, "user_line", find_user_line(stack, NULL));
    fact(page, "user_path", why_keep_text(why, user_stack_describe_path(stack)));
}

/* Return INPUTS, shortened. Inputs that torch itself adds to resume functions are left out. */
static const char *shorten_inputs(const char *inputs)
{
    inputs = why_keep_text(why, brief_make_pair_distinct(inputs, NULL));
    while (inputs && !strncmp(inputs, "__nested_", 9) && strstr(inputs, ", "))
        inputs = strstr(inputs, ", ") + 2;
    return inputs;
}

static void set_parent_fields(struct page_text *page, const struct parent *parent)
{
    char *source, *expected, *actual;

    if (!parent->compile_id)
        return;
    source = expression_from_source(parent->source);
    expected = brief_make_pair_distinct(parent->expected, parent->actual);
    actual = brief_make_pair_distinct(parent->actual, parent->expected);
    fact(page, "parent", prose_text_or_other(parent->function, "?"));
    fact(page, "parent_label", parent->label);
    fact(page, "parent_source", why_keep_text(why, source));
    fact(page, "parent_expected", why_keep_text(why, expected));
    fact(page, "parent_actual", why_keep_text(why, actual));
}

static void print_compile(struct page_text *page, const struct compile *compile)
{
    bool is_ended = compile->end_ns != UNKNOWN;
    int64_t took = is_ended ? times_span_or_zero(compile->start_ns, compile->end_ns) : UNKNOWN;
    const char *refusal = first_part_of_reason(compile_find_refusal(why, compile));
    const char *inputs = compile->inputs ? shorten_inputs(compile->inputs) : NULL;

    set_shared_fields(page);
    fact(page, "is_made", compile_has_code(compile));
    fact(page, "label", prose_null_if_empty(compile->label));
    fact(page, "ranks", why->ranks.count);
    fact(page, "rank", compile->rank);
    fact(page, "at", format_moment(compile->start_ns));
    fact(page, "took", took);
    fact(page, "outcome", compile->outcome);
    fact(page, "sticky", compile->sticky);
    fact(page, "refusal", refusal);
    fact(page, "again", compile->recompile || compile->causes);
    set_stack_fields(page, compile->user_stack);
    set_parent_fields(page, &compile->follows_from);
    fact(page, "inputs", inputs);
    now.compile = compile;
    page_text_print_row(page, "pages/why/compile", 0);
}

/* Print the first and the last compiles of the function. */
static void print_compiles(struct page_text *page)
{
    size_t count = why->compiles.count;
    size_t most = COMPILES_FIRST + COMPILES_LAST;

    if (count)
        page_text_print_row(page, "pages/why/compiles", 0);
    for (size_t i = 0; i < count; i++) {
        if (count > most && i == COMPILES_FIRST) {
            set_rows_left_field(page, count, most);
            page_text_print_row(page, "pages/why/compiles_left", 0);
            i = count - COMPILES_LAST;
        }
        print_compile(page, &why->compiles.at[i]);
    }
}

static void print_histories(struct page_text *page)
{
    int64_t shown = 0;
    bool more = true;

    for (size_t i = 0; i < why->histories.count && more; i++) {
        const struct history *h = &why->histories.at[i];
        struct history sum = *h;
        if (!prose_null_if_empty(h->text))
            continue;
        if (h->is_repeated)
            continue;
        sum.recompiles = h->all_recompiles;
        sum.refused = h->all_refused;
        now.from = h->cause;
        now.cause = h->cause;
        now.end = h->cause + 1;
        why_add_facts(&page->facts, histories_fields, &sum);
        fact(page, "about", why_keep_text(why, cause_subject_expression(h->cause)));
        fact(page, "text", h->text);
        fact(page, "how", h->cause->how);
        more = page_text_print_row(page, "pages/why/history", shown);
        shown++;
    }
}

/* ---- printing cache entries, limits and guards --------------------------- */

static void print_cache_entries(struct page_text *page)
{
    bool more = true;

    for (size_t i = 0; i < why->entries.count && more; i++) {
        const struct entry *e = &why->entries.at[i];
        why_add_facts(&page->facts, entries_fields, e);
        fact(page, "mode", why->torch.mode);
        fact(page, "observed", why->torch.observed);
        fact(page, "last", format_moment(e->last_hit_ns));
        fact(page, "died", format_moment(e->died_ns));
        fact(page, "cause", prose_null_if_empty(e->death_cause));
        set_rows_left_field(page, why->entries.count, i);
        more = page_text_print_row(page, "pages/why/entry", (int64_t)i);
    }
}

/* Return why torch set MARK, which keeps it from compiling the function's calls. Returns NULL if no
 * reason was recorded. */
static const char *find_mark_reason(const struct mark *mark)
{
    bool is_run_only = prose_are_texts_equal(mark->action, "run_only");
    bool is_skip = prose_are_texts_equal(mark->action, "skip");

    /* the mark's own reason tells only how torch prevents compiles, so prefer the limit that was
     * reached */
    if (is_run_only && why->limit_reason)
        return why->limit_reason;
    if (prose_null_if_empty(mark->reason))
        return first_part_of_reason(mark->reason);
    return is_skip && why_was_skipped(why) ? first_part_of_reason(why->declined_reason) : NULL;
}

static void print_marks(struct page_text *page)
{
    bool more = true;

    for (size_t i = 0; i < why->marks.count && more; i++) {
        const struct mark *m = &why->marks.at[i];
        set_shared_fields(page);
        fact(page, "at", format_moment(m->at_ns));
        fact(page, "why", find_mark_reason(m));
        fact(page, "turned_away", why_was_skipped(why));
        why_add_facts(&page->facts, marks_fields, m);
        set_rows_left_field(page, why->marks.count, i);
        more = page_text_print_row(page, "pages/why/mark", (int64_t)i);
    }
}

static void print_limit(struct page_text *page, const struct call_class *class)
{
    const char *limit = why->limit_reason;
    bool is_unsaid = limit && !strstr(limit, "reached");

    set_shared_fields(page);
    why_add_facts(&page->facts, calls_fields, class);
    fact(page, "unsaid", is_unsaid);
    fact(page, "first", format_moment(class->first_ns));
    fact(page, "last", format_moment(class->last_ns));
    page_text_print_row(page, "pages/why/limit", 0);
}

/* Print the calls that found no entry and were not compiled: when they happened, their inputs, and
 * the callers in which torch does not compile them. */
static void print_limits(struct page_text *page)
{
    bool is_limited = why_count_calls(why, OUTCOME_LIMIT);
    bool more = true;

    for (size_t i = 0; i < why->calls.count; i++)
        if (why->calls.at[i].outcome == OUTCOME_LIMIT)
            print_limit(page, &why->calls.at[i]);
    if (!is_limited && why->inputs.count + why->forbidders.count)
        page_text_print_row(page, "pages/why/unfitted", 0);
    for (size_t i = 0; i < why->forbidders.count && more; i++) {
        const struct forbidder *forbidder = &why->forbidders.at[i];
        why_add_facts(&page->facts, forbidders_fields, forbidder);
        fact(page, "why", first_part_of_reason(forbidder->reason));
        more = page_text_print_row(page, "pages/why/forbidder", (int64_t)i);
    }
    more = true;
    for (size_t i = 0; i < why->inputs.count && more; i++) {
        const struct input *input = &why->inputs.at[i];
        fact(page, "calls", input->calls);
        fact(page, "inputs", shorten_inputs(prose_text_or_other(input->inputs, "?")));
        more = page_text_print_row(page, "pages/why/input", (int64_t)i);
    }
}

static void print_guard_times(struct page_text *page)
{
    int64_t checks = why->timed_checks;
    double share = why_share_of_guards(why);
    bool is_told = checks || why->guards_slow;

    set_shared_fields(page);
    if (checks)
        fact(page, "each_ns", why->check_ns / checks);
    if (is_told && share >= 0) {
        fact(page, "call_ns", why->guard_ns / why->guard_calls);
        fact(page, "share", share);
    }
    page_text_print_row(page, "pages/why/guards", 0);
}

static bool print_failed_guard(struct page_text *page, size_t i)
{
    const struct failed_guard *g = &why->guards.at[i];
    char *about = expression_from_source(prose_text_or_other(g->source, g->expression));

    why_add_facts(&page->facts, guards_fields, g);
    set_rows_left_field(page, why->guards.count, i);
    fact(page, "about", why_keep_text(why, about));
    fact(page, "line", find_user_line(g->user_stack, NULL));
    return page_text_print_row(page, "pages/why/failed_guard", (int64_t)i);
}

static void print_guards(struct page_text *page)
{
    int64_t all = why->check_ns;
    bool more = true;

    if (!why->timed_checks && !why->guards.count && !why->guards_slow)
        return;
    print_guard_times(page);
    for (size_t i = 0; i < why->costs.count && more; i++) {
        const struct guard_cost *cost = &why->costs.at[i];
        why_add_facts(&page->facts, costs_fields, cost);
        if (all > 0)
            fact(page, "share", share_in_percent(cost->estimated_ns, all));
        more = page_text_print_row(page, "pages/why/cost", (int64_t)i);
    }
    more = true;
    for (size_t i = 0; i < why->guards.count && more; i++)
        more = print_failed_guard(page, i);
}

/* ---- printing graph breaks and phases ------------------------------------ */

/* Print the figures of the resume function that continues after now.broken. torch calls, looks up
 * and compiles it like any other function. */
static void print_resume_function(struct page_text *page)
{
    const struct graph_break *rest = now.broken;
    char *words;
    char *function = NULL;
    int64_t line = UNKNOWN;
    bool has_more = rest->rest_recompiles > 0 || rest->rest_eager_calls > 0;

    if (!rest->resume_function)
        return;
    words = torch_describe_resume_function(rest->resume_function, WHY_WIDTH);
    torch_parse_resume_name(rest->resume_function, &function, &line);
    why_add_facts(&page->facts, breaks_fields, rest);
    fact(page, "words", why_keep_text(why, words));
    fact(page, "before", has_more ? function : NULL);
    fact(page, "before_line", line);
    page_text_print_row(page, "pages/why/rest", 0);
    free(function);
}

/* Did torch break the graph at a statement before the one that it cannot handle, without making a
 * resume function? */
static bool lacks_resume_function(const struct graph_break *b)
{
    static const char step[] = "step_unsupported";

    return !b->resume_function && b->reason && !strncmp(b->reason, step, strlen(step));
}

static void print_graph_breaks(struct page_text *page)
{
    bool more = true;

    for (size_t i = 0; i < why->breaks.count && more; i++) {
        const struct graph_break *b = &why->breaks.at[i];
        const struct torch_reason reason = torch_reason_split(b->reason);
        now.broken = b;
        fact(page, "line", b->line);
        fact(page, "times", b->times);
        fact(page, "what", reason.what);
        fact(page, "why", reason.why);
        fact_bool(&page->facts, "unresumed", lacks_resume_function(b));
        set_stack_fields(page, b->user_stack);
        set_rows_left_field(page, why->breaks.count, i);
        more = page_text_print_row(page, "pages/why/break", (int64_t)i);
    }
}

/* Print the phases in which compiles spent their time. A phase's own time does not include nested
 * phases. */
static void print_phases(struct page_text *page)
{
    int64_t all = 0;
    int64_t late = 0;
    int64_t shown = 0;
    bool more = true;

    if (why->caches) {
        set_shared_fields(page);
        page_text_print_row(page, "pages/why/caches", 0);
    }
    list_each(p, &why->phases) {
        all += p->self_ns;
        late += p->late ? p->self_ns : 0;
    }
    for (size_t i = 0; i < why->phases.count && all > 0 && more; i++) {
        const struct phase *p = &why->phases.at[i];
        if (p->self_ns * 100 < all) /* leave out a phase with less than one percent of the time */
            continue;
        why_add_facts(&page->facts, phases_fields, p);
        fact(page, "share", share_in_percent(p->self_ns, all));
        fact(page, "words", torch_describe_phase(p->name));
        more = page_text_print_row(page, "pages/why/phase", shown);
        shown++;
    }
    if (all <= 0 || !late)
        return;
    fact(page, "self_ns", late);
    fact(page, "share", share_in_percent(late, all));
    page_text_print_row(page, "pages/why/late", 0);
}

/* ---- printing the remedies ----------------------------------------------- */

/* Set the field NAME to FIGURE, the value with the remedy, and the field BEFORE_NAME to BEFORE, the
 * value without it. If both values are equal, the field BEFORE_NAME becomes NULL. */
static void set_figure_field(struct page_text *page, const char *name, int64_t figure,
                             const char *before_name, int64_t before)
{
    fact(page, name, figure);
    fact(page, before_name, figure == before ? UNKNOWN : before);
}

/* Print the figures of now.remedy: "1 compile instead of 8, 0 eager calls instead of 4". */
static void print_remedy_figures(struct page_text *page)
{
    const struct remedy *r = now.remedy;
    bool is_measured = r->measured_compiles != UNKNOWN;
    int64_t compiles = is_measured ? r->measured_compiles : r->predicted_compiles;
    int64_t eager = is_measured ? r->measured_eager : r->predicted_eager;
    int64_t breaks = is_measured ? r->measured_breaks : r->breaks;
    bool is_counted = r->eager != UNKNOWN && eager != UNKNOWN;
    bool has_eager = is_counted && (r->eager || eager);

    fact(page, "trial", r->trial);
    fact(page, "what_if", r->what_if);
    set_figure_field(page, "compiles", compiles, "compiles_before", r->compiles);
    fact(page, "eager_uncounted", eager == UNKNOWN);
    fact(page, "some_eager", is_counted ? UNKNOWN : eager);
    set_figure_field(page, "eager", has_eager ? eager : UNKNOWN, "eager_before", r->eager);
    set_figure_field(page, "breaks", breaks, "breaks_before", r->breaks);
    fact(page, "gone", r->gone);
    fact(page, "gain", r->gain);
    page_text_print_row(page, "pages/why/figures", 0);
}

/* Print the commands that measure how much now.remedy helps. */
static void print_measure_commands(struct page_text *page)
{
    set_shared_fields(page);
    fact(page, "file", db_get_path(why->db));
    fact(page, "tried", trials_path_of_trace(why->db));
    why_add_facts(&page->facts, remedies_fields, now.remedy);
    page_text_print_row(page, "pages/why/unmeasured", 0);
}

/* Print the settings of now.remedy, each quoted as one word of a shell. */
static void print_settings(struct page_text *page)
{
    bool is_tried = now.remedy->trial != UNKNOWN;
    const char *setting = is_tried ? "" : prose_text_or_other(now.remedy->setting, "");
    bool is_quoted = *setting == '\'';
    size_t bytes;

    for (; *setting; setting += strspn(setting, " ")) {
        bytes = is_quoted ? strlen(setting) : strcspn(setting, " ");
        fact(page, "mode", why->torch.mode);
        fact(page, "quoted", is_quoted);
        fact(page, "setting", arena_text(&why->arena, setting, bytes));
        page_text_print_row(page, "pages/why/setting", 0);
        setting += bytes;
    }
}

static void print_remedy_outcome(struct page_text *page)
{
    if (remedy_has_counts(now.remedy))
        print_remedy_figures(page);
    else
        print_measure_commands(page);
}

/* Print the remedies that are only notes. A note tells, for example, that something is normal and
 * needs no change. */
static void print_notes(struct page_text *page)
{
    int64_t shown = 0;
    bool more = true;

    for (size_t i = 0; i < why->remedies.count && more; i++) {
        const struct remedy *r = &why->remedies.at[i];
        bool is_normal = r->effort == EFFORT_NORMAL;
        if (!is_normal && r->effort != EFFORT_UNGUARDED)
            continue;
        fact(page, "normal", is_normal);
        fact(page, "text", r->text);
        more = page_text_print_row(page, "pages/why/note", shown);
        shown++;
    }
}

/* Print the settings under which a trial compiled less, but the output of the program was
 * different. Only the author of the program can decide whether this matters. It does not if, for
 * example, the program prints how often it compiled. */
static void print_settings_with_other_output(struct page_text *page)
{
    int64_t shown = 0;

    list_each(r, &why->remedies) {
        if (!r->other_output)
            continue;
        why_add_facts(&page->facts, remedies_fields, r);
        fact(page, "other_output", r->other_output);
        page_text_print_row(page, "pages/why/other_output", shown);
        shown++;
    }
}

/* Did all calls run compiled code, without recompiles and graph breaks? */
static bool are_all_calls_compiled_without_trouble(void)
{
    bool is_compiled = why->shared.asked && !why->shared.python;
    bool is_once = !why->recompiles && !why->breaks.count;

    return is_compiled && is_once && !why->undecided;
}

static void print_remedies_head(struct page_text *page)
{
    bool is_any = false;

    for (size_t i = 0; i < why->remedies.count; i++)
        is_any = is_any || !why->remedies.at[i].rejected;
    set_shared_fields(page);
    if (is_any)
        page_text_print_row(page, "pages/why/remedies", 0);
    else if (are_all_calls_compiled_without_trouble())
        page_text_print_row(page, "pages/why/nothing", 0);
    page->facts.count = 0;
}

static void print_remedies(struct page_text *page)
{
    int64_t shown = 0;
    int64_t all = 0;
    bool more = true;

    print_remedies_head(page);
    page->all = print_all;
    for (size_t i = 0; i < why->remedies.count; i++)
        all += remedy_is_shown(&why->remedies.at[i]);
    for (size_t i = 0; i < why->remedies.count && more; i++) {
        const struct remedy *r = &why->remedies.at[i];
        if (!remedy_is_shown(r))
            continue;
        now.remedy = r;
        fact(page, "number", shown + 1);
        fact(page, "left", all - shown);
        fact(page, "function", why->code.qualname);
        fact(page, "text", r->text);
        fact(page, "because", r->because);
        more = page_text_print_row(page, "pages/why/remedy", shown);
        shown++;
    }
    print_notes(page);
    page->all = false;
    print_settings_with_other_output(page);
}

static void print_profile(struct page_text *page)
{
    if (why->is_plain)
        why_profile_print(page, why);
}

static void print_sql(struct page_text *page)
{
    for (size_t i = 0; why->with_sql && i < why->asked.count; i++) {
        why_add_facts(&page->facts, asked_fields, &why->asked.at[i]);
        page_text_print_row(page, "pages/why/sql", (int64_t)i);
    }
}

/* ---- what a template prints by a line `--call NAME` ---------------------- */

static void print_part_expected(struct page_text *page)
{
    if (prose_null_if_empty(now.cause->expected))
        print_expected_values(page, false);
}

static void print_part_entries(struct page_text *page)
{
    print_expecting_entries(page, false);
}

static void print_part_kinds(struct page_text *page)
{
    print_guard_kinds(page, false);
}

static void print_part_needing_lines(struct page_text *page)
{
    print_lines_that_need_guards(page, "pages/why/needed");
}

static void print_part_history_lines(struct page_text *page)
{
    print_lines_that_need_guards(page, "pages/why/history_needed");
}

/* Print what the line `--call NAME` of a template stands for. */
static void print_part(struct page_text *page, const char *name, struct query *row)
{
    static const struct {
        const char *name;
        void (*print)(struct page_text *page);
    } parts[] = {
        {"shares", print_call_shares},
        {"outcome", print_remedy_outcome},
        {"settings", print_settings},
        {"causes", print_causes},
        {"expected", print_part_expected},
        {"entries", print_part_entries},
        {"kinds", print_part_kinds},
        {"needed", print_part_needing_lines},
        {"history_needed", print_part_history_lines},
        {"rest", print_resume_function},
    };

    for (size_t i = 0; i < array_count(parts); i++)
        if (!strcmp(parts[i].name, name))
            parts[i].print(page);
}

void why_remedies_print(struct why *of, FILE *out, enum template_way way)
{
    struct page_text page = {
        .out = out,
        .db = of->db,
        .way = way,
        .call = print_part,
    };

    why = of;
    print_all = false;
    print_remedies(&page);
}

void why_page_print(struct why *of, bool all)
{
    static void (*const sections[])(struct page_text * page) = {
        print_head,
        print_profile,
        print_remedies,
        print_torch_mode,
        print_calls_by_outcome,
        print_compiles,
        print_histories,
        print_cache_entries,
        print_marks,
        print_limits,
        print_guards,
        print_graph_breaks,
        print_phases,
        print_sql,
    };
    struct page_text page = {
        .out = stdout,
        .db = of->db,
        .way = page_text_choose_way(stdout, false),
        .call = print_part,
    };

    why = of;
    print_all = all;
    choose_decimals_of_moments();
    for (size_t i = 0; i < array_count(sections); i++)
        sections[i](&page);
}

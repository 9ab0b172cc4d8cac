/* tui/views/pages.c -- parts of pages that C functions make (tui/text.h), because SQL cannot make
 * them or is slower. Also the views `what-if` and `help`. Runs in: the viewer, in a thread. */
#include <ctype.h>
#include <inttypes.h>

#include "lib/say.h"
#include "replay.h"
#include "schema.h"
#include "trace/cause_read.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/findings.h"
#include "trace/prose.h"
#include "trace/remedy.h"
#include "trace/source.h"
#include "trace/torch_words.h"
#include "trace/user_stack.h"
#include "trace/whatif/whatif.h"
#include "tui/lead.h"
#include "tui/text.h"

void part_doubts(struct doc *doc, struct db *db, struct query *unused)
{
    const char *which = doubts_describe_stored_frames(db);
    const char *values = doubts_describe_stored_values(db);
    char *settings = doubts_describe_settings(db);

    if (which)
        doc_line(doc, MARK "d%s", which);
    if (values)
        doc_line(doc, MARK "d%s", values);
    if (settings)
        doc_line(doc, MARK "drecorded under %s", doc_safe(doc, settings, 1000));
    free(settings);
}

/* Add the findings that `dyntrace report` prints. Each finding leads to the view
 * of its function. */
void part_findings(struct doc *doc, struct db *db, struct query *unused)
{
    struct query *query;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    char *rest;
    char *line;

    db_store_view_as_table(db, "functions");
    db_store_view_as_table(db, "findings");
    query = db_query(db, "SELECT code_id, qualname FROM findings");
    findings_print(db, out, TEMPLATE_MARKED, NULL);
    fclose(out);
    rest = text;
    while ((line = strsep(&rest, "\n")) && rest) {
        doc_line(doc, "%s", line);
        bool is_finding = isdigit((unsigned char)*line) && line[1] == '.';
        if (!is_finding || !query_step(query))
            continue;
        doc_leads(doc, VIEW_FUNCTION, query_integer(query, 0), NULL,
                  doc_safe(doc, query_text(query, 1, NULL), 60));
    }
    query_close(query);
    free(text);
}

/* ---- cache entry: guards as a tree of their sources, and bytecode -------- */

/* Is the guard source INNER reached through OUTER, as L['self'].fc is through L['self']? */
static bool is_reached_through(const char *inner, const char *outer)
{
    size_t length = strlen(outer);

    if (!length || strncmp(inner, outer, length))
        return false;
    return inner[length] == '.' || inner[length] == '[';
}

enum { PATH_MOST = 64 };

/* The source of the guard that was added last, and the sources through which it is reached,
 * outermost first. */
struct path {
    const char *at[PATH_MOST];
    size_t depth;
};

/* Make SOURCE the end of PATH. Returns what SOURCE has more than its parent in PATH: ".fc" for
 * L['self'].fc below L['self']. */
static const char *extend_source_path(struct path *path, const char *source)
{
    const char *shown = source;

    while (path->depth && !is_reached_through(source, path->at[path->depth - 1]))
        path->depth--;
    if (path->depth)
        shown += strlen(path->at[path->depth - 1]);
    if (path->depth < PATH_MOST) {
        path->at[path->depth] = source;
        path->depth++;
    }
    return shown;
}

/* Return the text for a source: SHOWN or, if AGAIN, "(the same)", because the guard before has
 * the same source. */
static const char *text_of_source(struct doc *doc, const char *shown, bool again)
{
    if (again)
        return MARK "d(the same)" MARK "n";
    return doc_print(doc, MARK "a%s", *shown ? doc_safe(doc, shown, 120) : "(no source)");
}

/* Return what the line of the guard GUARD_ID leads to: the checks that it FAILED, or all checks of
 * the cache entry if it never failed. KIND is the title. */
static struct target target_of_checks(struct doc *doc, int64_t guard_id, const char *kind,
                                      int64_t failed)
{
    struct target target = {.kind = VIEW_CHECKS, .title = failed ? kind : "its checks"};

    if (failed)
        target.where = doc_print(doc, "failed_guard_id = %" PRId64, guard_id);
    else
        target.where = doc_print(doc, "cache_entry_id = %" PRId64, doc->target.id);
    return target;
}

void part_guards(struct doc *doc, struct db *db, struct query *unused)
{
    enum { ID, ORDINAL, CHECKS, FAILED, SOURCE, KIND, EXPRESSION, STACK };
    struct path path = {0};
    const char *before = NULL;

    db_rows(query, db, schema_statement("tui/entry-guards"), doc->target.id, doc->quick)
    {
        int64_t failed = query_integer(query, FAILED);
        const char *source = doc_print(doc, "%s", query_text(query, SOURCE, NULL));
        const char *kind = doc_safe(doc, query_text(query, KIND, NULL), 40);
        const char *expression = doc_safe(doc, query_text(query, EXPRESSION, NULL), 300);
        const char *stack = query_text(query, STACK, NULL);
        bool again = before && !strcmp(source, before);
        const char *shown =
            text_of_source(doc, again ? "" : extend_source_path(&path, source), again);
        int depth = (int)path.depth;
        const char *branch = depth > 1 ? "└ " : "";
        const char *checks = "...";
        const char *failures = "...";
        const char *line;
        if (!doc->quick) {
            checks = doc_count(doc, query_integer(query, CHECKS));
            failures = doc_count(doc, failed);
        }
        line = doc_print(
            doc, "  %5" PRId64 " %9s %s%8s" MARK "n  %*s%s%s " MARK "b%s" MARK "n  " MARK "d%s",
            query_integer(query, ORDINAL), checks, failed ? MARK "r" : MARK "d", failures,
            (depth - 1) * 2, "", branch, shown, kind, expression);
        doc_add_wrapped_line(doc, line,
                             target_of_checks(doc, query_integer(query, ID), kind, failed));
        if (*stack)
            doc_line(doc, "  %*s" MARK "dfor %s", 27 + depth * 2, "", doc_safe(doc, stack, 600));
        before = source;
    }
}

enum { BYTECODE_MOST = 4000 };

/* Return the next line of *TEXT, and move *TEXT behind it. Returns "" at the end. */
static const char *take_next_line(struct doc *doc, char **text)
{
    return doc_safe(doc, *text ? strsep(text, "\n") : "", 400);
}

/* Add the lines of two texts side by side, each in HALF columns. */
static void add_texts_side_by_side(struct doc *doc, const char *left, const char *right, int half)
{
    char *a = doc_print(doc, "%s", left);
    char *b = doc_print(doc, "%s", right);

    for (int count = 0; (a || b) && count < BYTECODE_MOST; count++) {
        const char *original = take_next_line(doc, &a);
        const char *modified = take_next_line(doc, &b);
        const char *line = doc_print(doc, "  %s", original);
        doc_add_halves(doc, line, half + 2, modified, (struct target){0});
    }
}

/* Add the original and the modified bytecode, side by side if the view is wide enough, otherwise
 * one below the other. */
void part_bytecode(struct doc *doc, struct db *db, struct query *row)
{
    static const char *const titles[] = {"Original bytecode", "Modified bytecode"};
    const char *texts[2] = {NULL, NULL};
    int half = (doc->columns - 6) / 2;
    bool both;

    for (int i = 0; i < 2; i++)
        if (query_type(row, i) != QUERY_NULL)
            texts[i] = doc_print(doc, "%s", query_whole_value(row, i, NULL));
    both = texts[0] && texts[1];
    if (both && half >= 44) {
        doc_part(doc, "%s%s", doc_fit(doc, titles[0], half + 3), titles[1]);
        add_texts_side_by_side(doc, texts[0], texts[1], half);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!texts[i])
            continue;
        doc_part(doc, "%s", titles[i]);
        doc_add_wrapped_text(doc, texts[i], 2, BYTECODE_MOST);
    }
}

/* ---- compile and graph break: remedies, and source ----------------------- */

/* Return the id of the code object that COMPILE_ID compiled, as a string in ARENA. */
static const char *code_of_compile(struct db *db, struct arena *arena, int64_t compile_id)
{
    const char *statement =
        arena_print(arena, "SELECT code_id FROM compile WHERE compile_id = %" PRId64, compile_id);

    return arena_print(arena, "%" PRId64, db_integer(db, 0, statement));
}

static void add_remedy_text(struct doc *doc, const char *indent, const char *remedy)
{
    const char *line = doc_print(doc, "%s%s", indent, doc_safe(doc, remedy, 800));

    doc_add_wrapped_line(doc, line, (struct target){0});
}

/* Add the remedy for the first cause of a compile, in the words of `dyntrace why`. ROW has
 * these columns: number of the cause, whether it decided, the cause, function, kind of code,
 * torch's version. */
void part_compile_remedy(struct doc *doc, struct db *db, struct query *row)
{
    enum { NUMBER, DECIDED, CAUSE, FUNCTION = CAUSE + CAUSE_READ, KIND, TORCH };
    const struct target whatif = {.kind = VIEW_WHATIF, .id = doc->target.id, .about = VIEW_COMPILE};
    struct remedy_case cases[REMEDY_CASES] = {0};
    struct remedy_facts facts = {.cases = cases, .count = 1};
    struct arena arena = {0};
    struct cause *cause = &facts.cause;
    const char *remedy, *code;
    char *line_text;

    if (query_integer(row, NUMBER) != 1)
        return;
    if (query_type(row, DECIDED) == QUERY_NULL)
        return;
    *cause = cause_read(row, CAUSE);
    if (cause->expected && cause->actual)
        facts.values = doc_print(doc, "%.100s, %.100s", cause_expected_value(cause),
                                 cause_actual_unshortened(cause));
    code = code_of_compile(db, &arena, cause->compile_id);
    remedy_cases_read(db, &arena, code, cause, cases);
    line_text = user_stack_innermost_code(cause->user_stack, cause->text, db_get_source_lines(db));
    facts.function = doc_keep(doc, query_copy(row, FUNCTION));
    facts.code = doc_keep(doc, query_copy(row, KIND));
    facts.line_text = doc_keep(doc, line_text);
    facts.torch = torch_parse_version(query_text(row, TORCH, NULL));
    remedy = doc_keep(doc, remedy_find_text(ON_CAUSE, &facts, NULL));
    if (remedy) {
        doc_line(doc, "    " MARK "gWhat would have helped" MARK
                      "n, and what it would have made of the run: Enter");
        doc_set_target(doc, whatif);
        add_remedy_text(doc, "    ", remedy);
    }
    arena_free(&arena);
}

/* Add the remedy for a graph break. ROW has these columns: reason, function, line,
 * torch's version. */
void part_break_remedy(struct doc *doc, struct db *db, struct query *row)
{
    struct remedy_facts facts = {
        .cause.text = doc_keep(doc, query_copy(row, 0)),
        .function = doc_keep(doc, query_copy(row, 1)),
        .line = query_integer(row, 2),
        .torch = torch_parse_version(query_text(row, 3, NULL)),
        .count = 1,
    };
    const char *remedy = doc_keep(doc, remedy_find_text(ON_BREAK, &facts, NULL));

    if (!remedy)
        return;
    doc_part(doc, "What would have helped");
    add_remedy_text(doc, "  ", remedy);
}

/* Add the source lines around a graph break. ROW has its file and line. */
void part_break_source(struct doc *doc, struct db *db, struct query *row)
{
    int64_t line = query_integer(row, 1);
    struct source source = source_read(query_text(row, 0, NULL));

    source_add_lines(doc, db, &source, line > 6 ? line - 6 : 1, line + 6, line, NULL, 0);
    source_free(&source);
}

/* ---- the view `what-if`: simulated settings ------------------------------ */

/* This view prints the simulation of `dyntrace replay --what-if`. If the view is opened from a
 * recompile, the first setting is one that would have avoided that recompile. Key i asks for
 * other settings. */

/* The text that a simulation writes. move_written_text_to_page() moves it into DOC line by line. */
struct page {
    struct doc *doc; /* borrowed */
    FILE *out;       /* owned: a stream that writes to `text` */
    char *text;      /* owned */
    size_t bytes, taken;
    struct db *db; /* borrowed */
    /* the next line is about recorded calls of code_id, or of all functions if that is -1 */
    bool lead;
    int64_t code_id;
};

/* LINE is about the function of the page, or about all functions: let it lead to the
 * recorded calls. */
static void set_target_of_line(const struct page *page, struct doc_line *line)
{
    struct doc *doc = page->doc;

    line->target = (struct target){.kind = VIEW_LEDGER};
    if (page->code_id < 0)
        return;
    line->target.title = "its calls";
    line->target.where = doc_print(doc, "code_id = %" PRId64, page->code_id);
    db_rows(row, page->db,
            "SELECT filename, first_line FROM code WHERE code_id = ?1 AND filename NOTNULL",
            page->code_id)
    {
        line->file = doc_print(doc, "%s", query_text(row, 0, NULL));
        line->source_line = query_integer(row, 1);
    }
}

/* Add what was written since the last call to DOC. What is written next is about the recorded calls
 * of CODE_ID, so its first line will lead to them. */
static void move_written_text_to_page(void *context, int64_t code_id)
{
    struct page *page = context;
    struct doc *doc = page->doc;
    size_t first = doc->lines.count;

    fflush(page->out);
    doc_add_wrapped_text(doc, page->text + page->taken, 1, 400);
    if (page->lead && first < doc->lines.count)
        set_target_of_line(page, &doc->lines.at[first]);
    page->taken = page->bytes;
    page->lead = true;
    page->code_id = code_id;
}

/* Simulate the calls under SETTING, and add the result to DOC. */
static void simulate_setting(struct doc *doc, struct db *db, struct replay *replay,
                             const char *setting)
{
    struct page page = {.doc = doc, .db = db};
    struct whatif_asked asked = {
        .db = db,
        .replay = replay,
        .settings = &setting,
        .count = 1,
    };
    struct whatif_answer answer;

    page.out = open_memstream(&page.text, &page.bytes);
    asked.out = page.out;
    if (!strcmp(setting, "best"))
        doc_part(doc, "The best of several settings");
    else
        doc_part(doc, "%s", doc_safe(doc, setting, 200));
    if (!doc->start)
        doc->start = doc->lines.count - 1;
    if (whatif_answer_typed(&asked, &answer))
        whatif_print_page(&asked, &answer, move_written_text_to_page, &page);
    whatif_answer_free(&answer);
    move_written_text_to_page(&page, -1);
    fclose(page.out);
    free(page.text);
}

/* Return a setting that avoids the recompile COMPILE_ID. Returns NULL if there is none. */
static const char *find_setting_that_avoids_recompile(struct doc *doc, struct db *db,
                                                      int64_t compile_id)
{
    const char *setting = NULL;

    db_rows(row, db,
            "SELECT " CAUSE_COLUMNS " FROM recompile_cause r WHERE r.compile_id = ?1 AND "
            "COALESCE(r.ordinal, 0) = 0 ORDER BY r.rowid LIMIT 1",
            compile_id)
    {
        struct cause cause = cause_read(row, 0);
        setting = doc_keep(doc, cause_make_setting(&cause));
    }
    return setting;
}

static void build_whatif_view(struct doc *doc, struct db *db)
{
    const struct target nowhere = {0};
    const char *asked = doc->target.where;
    const char *knob = asked;
    struct replay *replay;

    doc->subject = (struct target){
        .kind = doc->target.about,
        .id = doc->target.id,
        .at_ns = doc->target.at_ns,
    };
    doc_add_wrapped_line(doc,
                         "Predicted from the recorded calls, beside what was recorded. " MARK
                         "ai" MARK "n asks for other settings:",
                         nowhere);
    doc_add_wrapped_line(
        doc,
        MARK "drecompile_limit=N accumulated_limit=N isolate=region "
             "backend_shared=no dynamic=SOURCE[DIM]|all drop_guard=ID|KIND, with commas "
             "between them, or best",
        nowhere);
    if (asked)
        snprintf(doc->title, sizeof doc->title, "%.100s", doc_safe(doc, asked, 100));
    else if (doc->target.about == VIEW_COMPILE)
        knob = find_setting_that_avoids_recompile(doc, db, doc->target.id);
    replay = replay_open(db, true);
    if (replay && !replay->lookups.count) {
        doc_line(doc, "There is nothing to decide again: no lookup was recorded.");
    } else if (replay) {
        if (knob)
            simulate_setting(doc, db, replay, knob);
        if (!asked)
            simulate_setting(doc, db, replay, "best");
    }
    replay_free(replay);
}

const struct view_ops view_whatif = {
    .summary = "what a change would have made of the recorded calls",
    .base = &text_ops,
    .asks = "what if: ",
    .input = text_input,
    .build = build_whatif_view,
    .slow = true,
};

/* ---- the view `help`, made from the tables of keys and views ------------- */

/* Return how many bytes the keys at the beginning of WORDS take: 5 for "+ - * zoom". */
static int length_of_keys(const char *words)
{
    int keys = (int)strcspn(words, " ");

    for (;;) {
        const char *next = words + keys;
        bool has_next = next[0] == ' ' && next[1];
        if (!has_next || next[2] != ' ')
            return keys;
        keys += 2;
    }
}

/* Add the keys of FROM, the view from which the help was opened. */
static void add_keys_of_view(struct doc *doc, const struct view_ops *from)
{
    const char *at = view_op(from, keys);
    const char *name = view_name(doc->target.about);
    const char *title;
    const char *words;
    int bytes;

    title = doc_print(doc, MARK "bIn this view" MARK "n, %s: %s", name, from->summary);
    doc_add_wrapped_line(doc, title, (struct target){0});
    while ((words = view_read_key_words(&at, &bytes))) {
        int key = length_of_keys(words);
        const char *keys = doc_fit(doc, doc_print(doc, "%.*s", key, words), 15);
        doc_line(doc, "  " MARK "a%s" MARK "n%.*s", keys, bytes - key, words + key);
    }
    doc_line(doc, "%s", "");
}

static void add_key_binding(struct doc *doc, const struct binding *binding)
{
    const char *line;
    char keys[80] = "";
    char made[16];

    if (binding->group)
        doc_part(doc, "%s", binding->group);
    for (int k = 0; k < 4 && binding->keys[k]; k++) {
        strcat(keys, k ? " " : "");
        strcat(keys, key_make_label(binding->keys[k], made));
    }
    line = doc_print(doc, "  " MARK "a%s" MARK "n %s  " MARK "d:%s", doc_fit(doc, keys, 15),
                     binding->help, binding->name);
    doc_add_wrapped_line(doc, line, (struct target){0});
}

static void build_help_view(struct doc *doc, struct db *db)
{
    static const char *const typed[] = {
        "  f takes words, all of which must be in a row, or an SQL condition on the columns: "
        "lookup > 1us AND outcome = 'hit'.",
        "  : also takes a moment, 0.3 or +100ms, open FILE, and check, diff, fsck, report, "
        "show, verify and why with what they take.",
        "  Times without a unit are nanoseconds. Up and Down bring back what was typed "
        "before, Tab completes.",
        "  In a table, the chosen column (Left, Right) is what Enter follows and s sorts by.",
    };
    const struct view_ops *from = view_find_ops(doc->tui, doc->target.about);

    if (from && view_op(from, keys))
        add_keys_of_view(doc, from);
    doc_line(doc, MARK "bKeys" MARK "n, and the names that : knows them by");
    for (int request = REQUEST_NONE + 1; request < REQUESTS; request++)
        add_key_binding(doc, &bindings[request]);
    doc_part(doc, "Views, by name: :functions, :ledger outcome = 'limit'");
    for (enum view_kind kind = VIEW_NONE + 1; kind < VIEW_KINDS; kind++) {
        const char *name = doc_fit(doc, view_name(kind), 15);
        const char *line = doc_print(doc, "  " MARK "a%s" MARK "n %s", name,
                                     view_find_ops(doc->tui, kind)->summary);
        doc_add_wrapped_line(doc, line, (struct target){.kind = kind});
    }
    doc_part(doc, "What is typed");
    for (size_t i = 0; i < array_count(typed); i++)
        doc_add_wrapped_line(doc, typed[i], (struct target){0});
}

const struct view_ops view_help = {
    .summary = "this",
    .build = build_help_view,
    .at_once = true,
    .base = &text_ops,
};

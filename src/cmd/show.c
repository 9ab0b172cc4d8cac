/* cmd/show.c -- `dyntrace show`: what each compile of a function made.
 *
 * A compile, then the rows of each section about it (schemas/show.sql): why it was needed, the
 * guards of its entry and the user's lines that they are there for, graph breaks, graphs, where its
 * time went, and the listings that were recorded, such as the bytecode before and after. The JSON
 * is the same rows. */
#include <stdlib.h>

#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/cause.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/expression.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/torch_words.h"
#include "trace/user_stack.h"

enum {
    COMPILES = 10,    /* shown, unless --full */
    ROWS = 60,        /* of a section */
    LINES = 120,      /* of a listing */
    WIDTH = 100,      /* bytes of a text within a line */
    PHASE_DEPTH = 64, /* deeper ones are shown beside the one that they lie in */
    ALL = 1000000,    /* rows with --full */
    JSON_ROWS = 10000,
    NODE_CELLS = 5,
};

static struct {
    bool full, json;
} given;

static struct {
    struct db *db; /* owned */
    struct found_code code;
    bool torch;   /* some process that it ran in uses torch */
    char *before; /* owned: the bytecode that was last shown as before a compile */
    int64_t ends[PHASE_DEPTH], longest; /* of the phases around the current one; of the compile */
    int depth;
} show;

/* ---- rows ---------------------------------------------------------------- */

/* The statement NAME about ID, at most LIMIT rows unless --full. */
static struct query *ask(const char *name, int64_t id, int64_t limit)
{
    char path[32];
    struct query *query;

    snprintf(path, sizeof path, "show/%s", name);
    query = db_query(show.db, schema_statement(path));
    if (strcmp(name, "compiles"))
        query_bind_integer(query, 1, id);
    else if (show.code.label)
        query_bind_text(query, 1, show.code.label);
    query_bind_integer(query, 2, given.full ? ALL : limit);
    find_bind(query, 3, &show.code);
    return query;
}

static int column(struct query *query, const char *name)
{
    int i = 0;

    while (i < query_columns(query) && strcmp(query_name(query, i), name))
        i++;
    return i;
}

/* A text in the current row, NULL for NULL; an integer, PROSE_UNKNOWN for NULL. */
static const char *text(struct query *query, const char *name)
{
    int i = column(query, name);

    return query_type(query, i) == QUERY_NULL ? NULL : query_whole(query, i, NULL);
}

static const char *filled(struct query *query, const char *name)
{
    return prose_filled(text(query, name));
}

static int64_t integer(struct query *query, const char *name)
{
    int i = column(query, name);

    return query_type(query, i) == QUERY_NULL ? PROSE_UNKNOWN : query_integer(query, i);
}

/* The longest that a text is printed. */
static int wide(int width)
{
    return given.full ? 1 << 20 : width;
}

/* A text line by line, MOST of them. */
static void lines(const char *listing, int indent, long most)
{
    prose_lines(stdout, listing, indent, given.full ? -1 : most);
}

/* ---- the sections, for people -------------------------------------------- */

static void cause_row(struct query *query)
{
    struct cause cause = {.kind = text(query, "kind"),
                          .source = text(query, "source"),
                          .aspect = text(query, "aspect"),
                          .dimension = query_type(query, column(query, "dimension")) == QUERY_NULL
                                           ? -1
                                           : integer(query, "dimension"),
                          .expected = text(query, "expected"),
                          .actual = text(query, "actual"),
                          .text = text(query, "text")};
    char *words = cause_sentence(&cause), *written = expression_of(cause.text);
    char *line = user_stack_line(text(query, "user_stack"), cause.text, show.code.qualname,
                                 db_lines(show.db));

    prose_print(stdout, "    {%.*s: }{%.*s }", wide(40), text(query, "older_entry"), wide(40),
                cause.kind);
    prose_print(stdout, "%.*s", wide(3 * WIDTH), words ? words : written);
    prose_print(stdout, "{; needed by %.*s}", wide(3 * WIDTH), line);
    free(words);
    free(written);
    free(line);
    printf("  [%s]\n", filled(query, "how") && strcmp(text(query, "how"), "observed") ? "re-checked"
                                                                                      : "observed");
}

static void guard_row(struct query *query)
{
    const char *stack = text(query, "user_stack");
    char *source = expression_of(text(query, "source"));
    char *line = user_stack_line(stack, NULL, show.code.qualname, db_lines(show.db));

    prose_print(stdout, "    %3jd  %.*s  %.*s{  %.*s}", integer(query, "ordinal"), wide(40),
                text(query, "kind"), wide(WIDTH), source, wide(WIDTH), text(query, "expression"));
    if (!given.full)
        prose_print(stdout, "{  # %.*s}", wide(3 * WIDTH), line);
    free(source);
    free(line);
    putchar('\n');
    if (stack && given.full)
        lines(stack, 9, 0);
}

static void break_row(struct query *query)
{
    const struct torch_reason reason = torch_reason_split(text(query, "reason"));
    char *line;

    prose_print(stdout, "    line %jd: ", integer(query, "line"));
    prose_print(stdout, "%.200s{\n      %.300s}{\n      hint: %.300s}", reason.what, reason.why,
                reason.hint);
    if (filled(query, "resume_function")) {
        fputs("\n      goes on in ", stdout);
        torch_name_print(stdout, text(query, "resume_function"), WIDTH);
        prose_print(stdout, "{ (%.*s)}", wide(WIDTH),
                    show.torch ? text(query, "resume_function") : NULL);
    }
    putchar('\n');
    line = user_stack_line(text(query, "user_stack"), NULL, show.code.qualname, db_lines(show.db));
    prose_print(stdout, "{      at %.*s\n}", wide(3 * WIDTH), line);
    if (filled(query, "user_stack"))
        lines(text(query, "user_stack"), 6, 10);
    free(line);
}

/* A graph's nodes, their cells below one another. */
static void nodes_print(int64_t graph_id)
{
    static const char *const heads[NODE_CELLS] = {"opcode", "name", "target", "args", "kwargs"};
    size_t columns[NODE_CELLS] = {0}, width = given.full ? 1 << 20 : WIDTH;
    struct query *query = ask("nodes", graph_id, ROWS + 1);
    int64_t count = 0;

    for (int i = 0; i < NODE_CELLS - 1; i++)
        columns[i] = strlen(heads[i]);
    while (query_step(query) && count++ < ROWS) /* those after these may stick out */
        for (int i = 0; i < NODE_CELLS - 1; i++) {
            size_t needed = prose_columns(text(query, heads[i]), width);
            if (needed > columns[i] && needed <= 60)
                columns[i] = needed;
        }
    query_reset(query);
    for (count = 0; query_step(query); count++) {
        for (int i = 0; !count && i < NODE_CELLS; i++)
            printf("%s%-*s%s", i ? "  " : "    ", (int)columns[i], heads[i],
                   i < NODE_CELLS - 1 ? "" : "\n");
        if (count >= ROWS && !given.full)
            break;
        for (int i = 0; i < NODE_CELLS; i++) {
            fputs(i ? "  " : "    ", stdout);
            prose_cell(stdout, text(query, heads[i]), width, columns[i]);
        }
        putchar('\n');
    }
    if (count >= ROWS && query_step(query))
        printf("    (the first %d; --full shows all)\n", ROWS);
    query_close(query);
}

static void graph_row(struct query *query)
{
    int64_t nodes = integer(query, "node_count"); /* an imported graph is a text alone */

    prose_print(stdout, "  graph{ %.*s}{, %jd node(s)}%s\n", wide(WIDTH), filled(query, "name"),
                nodes, nodes == PROSE_UNKNOWN ? ": its text alone is known; --full shows it" : "");
    nodes_print(integer(query, "graph_id"));
}

/* Phases within one another, those of at least a percent of the compile unless --full. */
static void phase_row(struct query *query)
{
    int64_t start = integer(query, "start_ns"), end = integer(query, "end_ns"),
            took = start >= 0 && end > start ? end - start : 0;
    const char *words = torch_phase_words(text(query, "name"));

    while (show.depth > 0 && show.ends[show.depth - 1] <= start)
        show.depth--;
    if (took > show.longest)
        show.longest = took;
    if (given.full || (double)took >= (double)show.longest * 0.01) {
        bool own = words && strstr(words, "but for"); /* said of what a phase took by itself */
        prose_print(stdout, "  %+9jd  ", took);
        printf("%*s", show.depth * 2, "");
        prose_print(stdout, "%.*s{: %s}\n", wide(WIDTH), text(query, "name"), own ? NULL : words);
    }
    if (show.depth < PHASE_DEPTH)
        show.ends[show.depth++] = end;
}

static void listing_row(struct query *query)
{
    const char *kind = query_text(query, 0, NULL), *listing = query_whole(query, 1, NULL);
    bool before = !strcmp(kind, "original_bytecode");

    if (show.torch && !given.full && (!strcmp(kind, "guards") || !strcmp(kind, "graph")))
        return; /* torch's own texts of what is above */
    prose_print(stdout, "  %.40s",
                before                               ? "bytecode before"
                : !strcmp(kind, "modified_bytecode") ? "bytecode after"
                                                     : kind);
    if (before && show.before && !strcmp(show.before, listing)) {
        fputs(": as of the compile above\n", stdout);
        return;
    }
    if (before) {
        free(show.before);
        show.before = strdup(listing);
    }
    putchar('\n');
    lines(listing, 4, LINES);
}

static const struct section {
    const char *name;    /* of its statement, and in JSON */
    const char *heading; /* NULL: each row has its own */
    int64_t rows, json_rows;
    void (*row)(struct query *query);
} sections[] = {
    {"causes", "needed because", ROWS, JSON_ROWS, cause_row},
    {"guards", "guards, in order", ROWS, JSON_ROWS, guard_row},
    {"graph_breaks", "graph breaks", ROWS, JSON_ROWS, break_row},
    {"graphs", NULL, ROWS, 1000, graph_row},
    {"phases", "where its time went", JSON_ROWS, JSON_ROWS, phase_row},
    {"listings", NULL, ROWS, 1000, listing_row},
};
#define SECTIONS (sizeof sections / sizeof *sections)

static void section_print(const struct section *section, int64_t compile_id)
{
    struct query *query = ask(section->name, compile_id, section->rows + 1);
    int64_t count = 0;

    show.depth = 0;
    show.longest = 0;
    for (; query_step(query) && (count < section->rows || given.full); count++) {
        if (!count && section->heading)
            printf("  %s\n", section->heading);
        section->row(query);
    }
    if (count == section->rows && section->heading && query_step(query))
        printf("    (the first %d; --full shows all)\n", (int)section->rows);
    query_close(query);
}

/* ---- a compile ----------------------------------------------------------- */

static void entry_print(struct query *query)
{
    int64_t died = integer(query, "died_ns");

    if (integer(query, "cache_entry_id") == PROSE_UNKNOWN) {
        fputs("  made no entry\n", stdout);
        return;
    }
    prose_print(
        stdout,
        "  made entry %.40s{ by %.*s}{, region %jd}, %jd guard(s){; died at %+jd}{: %.*s}\n",
        text(query, "entry"), wide(40), text(query, "backend"), integer(query, "region_id"),
        integer(query, "guard_count"), died, wide(WIDTH),
        died == PROSE_UNKNOWN ? NULL : text(query, "death_cause"));
}

static void compile_print(struct query *query)
{
    const char *reason = filled(query, "reason"), *rest = reason ? strchr(reason, '\n') : NULL;
    int64_t start = integer(query, "start_ns"), end = integer(query, "end_ns"),
            sticky = integer(query, "sticky");
    bool ended = end != PROSE_UNKNOWN;

    fputs(say_colour(stdout) ? "\n\033[1mcompile " : "\ncompile ", stdout);
    prose_print(stdout, "%.40s", filled(query, "label") ? text(query, "label") : "without a label");
    fputs(say_colour(stdout) ? "\033[0m" : "", stdout);
    prose_print(stdout, " at %+jd{, took %+jd}%s: %.40s%s", start,
                ended ? times_span(start, end) : PROSE_UNKNOWN, ended ? "" : ", did not end",
                text(query, "outcome"),
                sticky == PROSE_UNKNOWN ? ""
                : sticky                ? ", for good"
                                        : ", for this call");
    prose_print(stdout, "{: %.*s}\n", show.torch ? WIDTH * 2 : wide(WIDTH * 2),
                show.torch ? torch_reason_split(reason).what : reason);
    if (rest && show.torch)
        lines(rest + 1, 2, 8);
    section_print(&sections[0], integer(query, "compile_id"));
    entry_print(query);
    for (size_t i = 1; i < SECTIONS; i++)
        section_print(&sections[i], integer(query, "compile_id"));
}

static void show_print(void)
{
    const struct found_code *code = &show.code;
    struct query *query = ask("compiles", 0, COMPILES);
    int64_t count = code->label ? 0 : code->compiles, shown = 0;
    char *settings = doubts_settings(show.db);

    prose_print(stdout, "%.200s  %.300s:%jd  ", code->qualname, code->filename, code->first_line);
    torch_kind_print(stdout, code->qualname, code->kind);
    putchar('\n');
    prose_print(stdout, "{recorded under %.2000s\n}", settings);
    free(settings);
    for (; query_step(query); shown++)
        compile_print(query);
    query_close(query);
    if (!shown && !db_failed(show.db))
        fputs("\nIt was never compiled in this recording; `dyntrace why` tells what happened to "
              "its calls.\n",
              stdout);
    else if (count > shown)
        prose_print(stdout,
                    "\n(%jd of %jd compiles; --full shows all, `dyntrace show LABEL` shows one)\n",
                    shown, count);
}

/* ---- for programs -------------------------------------------------------- */

/* The current row of QUERY as an object, still open. */
static void row_put(struct json *json, struct query *query)
{
    json_object(json, NULL);
    for (int i = 0; i < query_columns(query); i++)
        result_member(json, query_name(query, i), query, i);
}

static void rows_put(struct json *json, const char *name, int64_t id, int64_t limit)
{
    struct query *query = ask(name, id, limit);

    json_line(json);
    json_list(json, name), json_lines(json);
    while (query_step(query)) {
        row_put(json, query);
        if (!strcmp(name, "graphs"))
            rows_put(json, "nodes", integer(query, "graph_id"), JSON_ROWS);
        json_end(json);
    }
    json_end(json);
    query_close(query);
}

static void show_json(void)
{
    struct json *json = &(struct json){.out = stdout};
    struct query *query = ask("compiles", 0, COMPILES);

    json_object(json, NULL), json_lines(json);
    json_string(json, "file", db_path(show.db));
    doubts_json_settings(show.db, json);
    found_json(json, &show.code);
    json_integer(json, "compile_count", show.code.label ? 1 : show.code.compiles);
    json_list(json, "compiles"), json_lines(json);
    while (query_step(query)) {
        row_put(json, query);
        for (size_t i = 0; i < SECTIONS; i++)
            rows_put(json, sections[i].name, integer(query, "compile_id"), sections[i].json_rows);
        json_end(json);
    }
    json_end(json), json_end(json);
    putchar('\n');
    query_close(query);
}

/* ---- the command --------------------------------------------------------- */

static const struct option options[] = {
    {"full", .read = option_flag, .to = &given.full,
     .help = "all compiles, guards, nodes, phases and lines, uncut; torch's own texts of guards "
             "and graphs"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, times in nanoseconds"},
    OPTION_END,
};

static int show_main(int count, char **operands)
{
    const char *name;
    char **files;
    struct query *torch;
    enum find_result found;
    int status;

    if (!find_operands("show", count, operands, &name, &files) || !(show.db = find_open(files)))
        return 2;
    doubts_say(show.db, "what is shown is what it has so far", "there may be more");
    found = find_code(show.db, name, &show.code, stdout, given.json);
    if (found == FIND_ONE) {
        torch = ask("torch", 0, 1);
        show.torch = query_step(torch);
        query_close(torch);
        (given.json ? show_json : show_print)();
    }
    status = find_status(show.db, found);
    found_code_free(&show.code);
    free(show.before);
    db_close(show.db);
    return status;
}

const struct command command_show = {
    .name = "show",
    .summary = "what each compile of a function made: guards, bytecode, graphs",
    .operands = "FUNC [FILE...]",
    .about = "What each compile of a function made: cache entry, guards, graphs, graph breaks, "
             "where its time went, bytecode before and after, as far as the recording has them.\n\n"
             "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, FUNC@LINE (the rest of "
             "FUNC after a graph break in that line), or a compile such as 0/1, which is then "
             "shown alone. FILE is the newest *.db trace here unless given.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = show_main,
};

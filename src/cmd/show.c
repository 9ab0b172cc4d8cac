/* cmd/show.c -- `dyntrace show`: prints what each compile of a function produced.
 *
 * A compile has these sections: its cause, the guards of its cache entry with the user's lines that
 * need them, graph breaks, graphs, time by phase, and recorded listings such as the bytecode before
 * and after the compile. Statements and templates are in schemas/show.sql; C prints the parts that
 * a template cannot express. The JSON has the same rows. */
#include <stdlib.h>

#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/torch_words.h"

enum {
    COMPILES = 10, /* the most compiles in JSON, unless --full is given */
    ROWS = 60,     /* the most nodes of a graph, unless --full is given */
    LINES = 120,   /* the most lines of a listing, unless --full is given */
    WIDTH = 100,   /* the most bytes of a text that stands within a line */
    /* the most levels of nested phases that are indented */
    PHASE_DEPTH = 64,
    ALL = 1000000, /* the most rows if --full is given */
    JSON_ROWS = 10000,
    NODE_CELLS = 5,
};

static struct {
    bool full, json;
} given;

static struct {
    struct db *db; /* owned */
    struct found_code code;
    bool torch;     /* some process that ran the function uses torch */
    char *settings; /* owned: the settings of the recording, or NULL */
    char *before;   /* owned: the bytecode that was printed last under "bytecode before" */
    /* For printing the phases of one compile. ends: when the phases around the current phase end,
     * outermost first; there are `depth` of them. longest: the longest duration so far, which is
     * that of the whole compile. */
    int64_t ends[PHASE_DEPTH], longest;
    int depth;
} show;

/* ---- reading rows and their columns -------------------------------------- */

/* Bind the parameters from ?3 on. They are the same in all statements; see schemas/show.sql. */
static void bind_shared_parameters(struct query *query)
{
    find_bind_ids(query, 3, &show.code);
    query_bind_text(query, 4, show.code.qualname);
    query_bind_integer(query, 5, given.full || given.json);
    query_bind_integer(query, 6, show.torch);
    if (show.code.label)
        query_bind_text(query, 7, show.code.label);
    if (show.settings)
        query_bind_text(query, 8, show.settings);
}

/* Query the statement NAME about the row ID. Reads at most LIMIT rows, or all if --full was
 * given. */
static struct query *query_section(const char *name, int64_t id, int64_t limit)
{
    char path[32];
    struct query *query;

    snprintf(path, sizeof path, "show/%s", name);
    query = db_query(show.db, schema_statement(path));
    query_bind_integer(query, 1, id);
    query_bind_integer(query, 2, given.full ? ALL : limit);
    bind_shared_parameters(query);
    return query;
}

static int column_index(struct query *query, const char *name)
{
    int i = 0;

    while (i < query_columns(query) && strcmp(query_name(query, i), name))
        i++;
    return i;
}

/* Return the text of the column NAME in the current row, or NULL. */
static const char *column_text(struct query *query, const char *name)
{
    int i = column_index(query, name);

    return query_type(query, i) == QUERY_NULL ? NULL : query_whole_value(query, i, NULL);
}

static int64_t column_integer(struct query *query, const char *name)
{
    return query_integer(query, column_index(query, name));
}

/* ---- printing what templates cannot express ------------------------------ */

/* Print the nodes of the graph in the current row of GRAPH as a table. */
static void print_graph_nodes(struct query *graph)
{
    static const char *const heads[NODE_CELLS] = {"opcode", "name", "target", "args", "kwargs"};
    size_t columns[NODE_CELLS] = {0};
    size_t width = given.full ? 1 << 20 : WIDTH;
    struct query *query = query_section("nodes", column_integer(graph, "graph_id"), ROWS + 1);
    int64_t count = 0;

    for (int i = 0; i < NODE_CELLS - 1; i++)
        columns[i] = strlen(heads[i]);
    /* the first ROWS rows decide the widths of the columns; later rows may be wider */
    while (query_step(query) && count++ < ROWS)
        for (int i = 0; i < NODE_CELLS - 1; i++) {
            size_t needed = prose_count_columns(column_text(query, heads[i]), width);
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
            prose_print_cell(stdout, column_text(query, heads[i]), width, columns[i]);
        }
        putchar('\n');
    }
    if (count >= ROWS && query_step(query))
        printf("    (the first %d; --full shows all)\n", ROWS);
    query_close(query);
}

/* Print the phase in the current row, indented below the phase that encloses it. Without --full,
 * phases under one percent of the compile's time are left out. */
static void print_phase(struct query *query)
{
    int64_t start = column_integer(query, "start_ns");
    int64_t end = column_integer(query, "end_ns");
    int64_t took = start >= 0 && end > start ? end - start : 0;
    char human[TABLE_HUMAN];
    const char *words = torch_describe_phase(column_text(query, "name"));

    while (show.depth > 0 && show.ends[show.depth - 1] <= start)
        show.depth--;
    if (took > show.longest)
        show.longest = took;
    if (given.full || (double)took >= (double)show.longest * 0.01) {
        /* A description with "but for" is about the time of this phase without nested phases.
         * The duration that is printed here includes nested phases, so such a description is
         * left out. */
        bool own = words && strstr(words, "but for");
        printf("  %9s  %*s", table_duration(human, took), show.depth * 2, "");
        prose_print_text(stdout, column_text(query, "name"), given.full ? SIZE_MAX - 1 : WIDTH);
        if (words && !own)
            printf(": %s", words);
        putchar('\n');
    }
    if (show.depth < PHASE_DEPTH)
        show.ends[show.depth++] = end;
}

static void print_listing(struct query *query)
{
    const char *kind = query_text(query, 0, NULL);
    const char *listing = query_whole_value(query, 1, NULL);
    bool before = !strcmp(kind, "original_bytecode");

    const char *title = kind;

    if (before)
        title = "bytecode before";
    else if (!strcmp(kind, "modified_bytecode"))
        title = "bytecode after";
    fputs("  ", stdout);
    prose_print_text(stdout, title, 40);
    if (before && show.before && !strcmp(show.before, listing)) {
        fputs(": as of the compile above\n", stdout);
        return;
    }
    if (before) {
        free(show.before);
        show.before = strdup(listing);
    }
    putchar('\n');
    prose_print_lines(stdout, listing, 4, given.full ? -1 : LINES);
}

static void print_part(struct page_text *page, const char *name, struct query *row)
{
    if (!strcmp(name, "nodes")) {
        print_graph_nodes(row);
    } else if (!strcmp(name, "phase")) {
        print_phase(row);
    } else if (!strcmp(name, "listing")) {
        print_listing(row);
    } else { /* this phase belongs to another compile */
        show.depth = 0;
        show.longest = 0;
    }
}

static void bind_page_parameters(const void *context, struct query *query)
{
    query_bind_integer(query, 2, given.full ? ALL : JSON_ROWS);
    bind_shared_parameters(query);
}

static void print_page(void)
{
    struct page_text page = {
        .out = stdout,
        .db = show.db,
        .way = page_text_choose_way(stdout, given.full),
        .bind = bind_page_parameters,
        .call = print_part,
    };

    show.settings = doubts_describe_settings(show.db);
    page_text_print_rows(&page, "show/function", 0);
    page_text_print_rows(&page, "show/compiles", 0);
    free(show.settings);
    show.settings = NULL;
}

/* ---- printing the compiles as JSON --------------------------------------- */

static const struct {
    const char *name; /* name of the statement, and of the member in JSON */
    int64_t rows;
} sections[] = {
    {"causes", JSON_ROWS}, {"guards", JSON_ROWS}, {"graph_breaks", JSON_ROWS},
    {"graphs", 1000},      {"phases", JSON_ROWS}, {"listings", 1000},
};
#define SECTIONS (array_count(sections))

/* Write the current row of QUERY as a JSON object. The object stays open, so that the caller can
 * add members. */
static void begin_row_as_json(struct json *json, struct query *query)
{
    json_object(json, NULL);
    for (int i = 0; i < query_columns(query); i++)
        /* leave out columns that begin with `_`, which are for people */
        if (*query_name(query, i) != '_')
            result_put_json_member(json, query_name(query, i), query, i);
}

static void write_section_as_json(struct json *json, const char *name, int64_t id, int64_t limit)
{
    struct query *query = query_section(name, id, limit);

    json_end_line(json);
    json_list(json, name);
    json_begin_lines(json);
    while (query_step(query)) {
        begin_row_as_json(json, query);
        if (!strcmp(name, "graphs"))
            write_section_as_json(json, "nodes", column_integer(query, "graph_id"), JSON_ROWS);
        json_end(json);
    }
    json_end(json);
    query_close(query);
}

static void write_page_as_json(void)
{
    struct json *json = &(struct json){.out = stdout};
    struct query *query = query_section("compiles", 0, COMPILES);

    json_object(json, NULL);
    json_begin_lines(json);
    json_string(json, "file", db_get_path(show.db));
    doubts_write_settings_as_json(show.db, json);
    found_write_as_json(json, &show.code);
    json_integer(json, "compile_count", show.code.label ? 1 : show.code.compiles);
    json_list(json, "compiles");
    json_begin_lines(json);
    while (query_step(query)) {
        begin_row_as_json(json, query);
        for (size_t i = 0; i < SECTIONS; i++)
            write_section_as_json(json, sections[i].name, column_integer(query, "compile_id"),
                                  sections[i].rows);
        json_end(json);
    }
    json_end(json);
    json_end(json);
    putchar('\n');
    query_close(query);
}

/* ---- the command `show` -------------------------------------------------- */

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

    if (!find_split_operands("show", count, operands, &name, &files) ||
        !(show.db = find_open_traces(files)))
        return 2;
    doubts_print_warnings(show.db, "what is shown is what it has so far", "there may be more");
    found = find_code(show.db, name, &show.code, stdout, given.json);
    if (found == FIND_ONE) {
        torch = query_section("torch", 0, 1);
        show.torch = query_step(torch);
        query_close(torch);
        (given.json ? write_page_as_json : print_page)();
    }
    status = find_exit_status(show.db, found);
    found_code_free(&show.code);
    free(show.before);
    db_close(show.db);
    return status;
}

const struct command command_show = {
    .name = "show",
    .summary = "what each compile of a function made: guards, bytecode, graphs",
    .operands = "FUNC [FILE...]",
    .about =
        "What each compile of a function made: cache entry, guards, graphs, graph breaks, "
        "where its time went, bytecode before and after, as far as the recording has them.\n\n"
        "FUNC is a qualified name, its last part, FILE:LINE[:NAME], a GLOB, FUNC@LINE (the "
        "rest of FUNC after a graph break in that line), or a compile such as 0/1, which is then "
        "shown alone. FILE is the newest *.db trace here unless given.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = show_main,
};

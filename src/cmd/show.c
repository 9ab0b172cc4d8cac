/* cmd/show.c -- `dyntrace show`: what each compile of a function made.
 *
 * Runs in: the viewer.
 *
 * A compile, then the rows of each section about it (schemas/show.sql): why it was needed, the guards of its entry
 * and the user's lines that they are there for, graph breaks, graphs, where its time went, and the listings that were
 * recorded, such as the bytecode before and after. The JSON is the same rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "trace/torch_words.h"

enum {
    COMPILES = 10,       /* shown, unless --full */
    ROWS = 60,           /* of a section */
    LINES = 120,         /* of a listing */
    WIDTH = 100,         /* bytes of a text within a line */
    PHASE_DEPTH = 64,    /* deeper ones are shown beside the one that they lie in */
    ALL = 1000000,       /* rows with --full */
    JSON_ROWS = 10000,
    NODE_CELLS = 5,
};

struct show {
    struct db *db; /* owned */
    struct found_code code;
    FILE *out;     /* borrowed */
    bool full;
    bool torch;    /* some process that it ran in uses torch */
    char *before;  /* owned: the bytecode that was last shown as before a compile */
    int64_t ends[PHASE_DEPTH], longest; /* of the phases around the current one; of the compile */
    int depth;
};

/* ---- rows ------------------------------------------------------------------- */

/* The statement NAME about ID, at most LIMIT rows unless --full. */
static struct query *ask(struct show *show, const char *name, int64_t id, int64_t limit)
{
    char path[32];
    struct query *query;

    snprintf(path, sizeof path, "show/%s", name);
    query = db_query(show->db, schema_statement(path));
    if (strcmp(name, "compiles"))
        query_bind_integer(query, 1, id);
    else if (show->code.label)
        query_bind_text(query, 1, show->code.label);
    query_bind_integer(query, 2, show->full ? ALL : limit);
    find_bind(query, 3, &show->code);
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
static int wide(const struct show *show, int width)
{
    return show->full ? 1 << 20 : width;
}

/* BEFORE, the text in a column, and AFTER, if there is one. */
static void cell(struct show *show, struct query *query, const char *name, int width, const char *before,
                 const char *after)
{
    if (filled(query, name))
        prose_print(show->out, "%s%.*s%s", before, wide(show, width), text(query, name), after);
}

/* How many lines of a text are printed. */
static long lines(const struct show *show, long most)
{
    return show->full ? -1 : most;
}

/* ---- the sections, for people ------------------------------------------------ */

static void cause_row(struct show *show, struct query *query)
{
    fputs("    ", show->out);
    cell(show, query, "older_entry", 40, "", ": ");
    cell(show, query, "kind", 40, "", " ");
    cell(show, query, "source", WIDTH, "", " ");
    if (filled(query, "expected") || filled(query, "actual"))
        prose_print(show->out, "wanted %.*s, was %.*s", wide(show, WIDTH), text(query, "expected"), wide(show, WIDTH),
                    text(query, "actual"));
    else
        prose_print(show->out, "%.*s", wide(show, WIDTH), text(query, "text"));
    fprintf(show->out, "  [%s]\n",
            filled(query, "how") && strcmp(text(query, "how"), "observed") ? "re-checked" : "observed");
}

static void guard_row(struct show *show, struct query *query)
{
    prose_print(show->out, "    %3jd  %.*s  %.*s", integer(query, "ordinal"), wide(show, 40), text(query, "kind"),
                wide(show, WIDTH), text(query, "source"));
    cell(show, query, "expression", WIDTH, "  ", "");
    if (filled(query, "user_stack") && !show->full)
        prose_place(show->out, "  # ", text(query, "user_stack"));
    putc('\n', show->out);
    if (filled(query, "user_stack") && show->full)
        prose_lines(show->out, text(query, "user_stack"), 9, -1);
}

static void break_row(struct show *show, struct query *query)
{
    const struct torch_reason reason = torch_reason_split(text(query, "reason"));
    FILE *out = show->out;

    prose_print(out, "    line %jd: ", integer(query, "line"));
    if (show->torch)
        prose_print(out, "%.200s{\n      %.300s}{\n      hint: %.300s}", reason.what, reason.why, reason.hint);
    else
        prose_print(out, "%.*s", wide(show, WIDTH * 2), text(query, "reason"));
    if (filled(query, "resume_function")) {
        fputs(show->torch ? "\n      goes on in " : "; goes on in ", out);
        torch_name_print(out, text(query, "resume_function"), WIDTH);
        if (show->torch)
            cell(show, query, "resume_function", WIDTH, " (", ")");
    }
    putc('\n', out);
    if (filled(query, "user_stack"))
        prose_lines(out, text(query, "user_stack"), 6, lines(show, 10));
}

/* A graph's nodes, their cells below one another. */
static void nodes_print(struct show *show, int64_t graph_id)
{
    static const char *const heads[NODE_CELLS] = {"opcode", "name", "target", "args", "kwargs"};
    size_t columns[NODE_CELLS] = {0}, width = show->full ? 1 << 20 : WIDTH;
    struct query *query = ask(show, "nodes", graph_id, ROWS + 1);
    FILE *out = show->out;
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
            fprintf(out, "%s%-*s%s", i ? "  " : "    ", (int)columns[i], heads[i], i < NODE_CELLS - 1 ? "" : "\n");
        if (count >= ROWS && !show->full)
            break;
        for (int i = 0; i < NODE_CELLS; i++) {
            fputs(i ? "  " : "    ", out);
            prose_cell(out, text(query, heads[i]), width, columns[i]);
        }
        putc('\n', out);
    }
    if (count >= ROWS && query_step(query))
        fprintf(out, "    (the first %d; --full shows all)\n", ROWS);
    query_close(query);
}

static void graph_row(struct show *show, struct query *query)
{
    prose_print(show->out, "  graph %.*s, %jd node(s)\n", wide(show, WIDTH), text(query, "name"),
                integer(query, "node_count"));
    nodes_print(show, integer(query, "graph_id"));
}

/* Phases within one another, those of at least a percent of the compile unless --full. */
static void phase_row(struct show *show, struct query *query)
{
    int64_t start = integer(query, "start_ns"), end = integer(query, "end_ns"),
            took = start >= 0 && end > start ? end - start : 0;
    const char *words = torch_phase_words(text(query, "name"));

    while (show->depth > 0 && show->ends[show->depth - 1] <= start)
        show->depth--;
    if (took > show->longest)
        show->longest = took;
    if (show->full || (double)took >= (double)show->longest * 0.01) {
        bool said = words && !strstr(words, "but for"); /* said of what a phase took by itself */
        prose_print(show->out, "  %+9jd  ", took);
        fprintf(show->out, "%*s", show->depth * 2, "");
        prose_print(show->out, "%.*s%s%s\n", wide(show, WIDTH), text(query, "name"), said ? ": " : "", said ? words : "");
    }
    if (show->depth < PHASE_DEPTH)
        show->ends[show->depth++] = end;
}

static void listing_row(struct show *show, struct query *query)
{
    const char *kind = text(query, "kind") ? text(query, "kind") : "",
               *listing = text(query, "text") ? text(query, "text") : "";
    bool before = !strcmp(kind, "original_bytecode");

    if (show->torch && !show->full && (!strcmp(kind, "guards") || !strcmp(kind, "graph")))
        return; /* torch's own texts of what is above */
    prose_print(show->out, "  %.40s",
                before                               ? "bytecode before"
                : !strcmp(kind, "modified_bytecode") ? "bytecode after"
                                                     : kind);
    if (before && show->before && !strcmp(show->before, listing)) {
        fputs(": as of the compile above\n", show->out);
        return;
    }
    if (before) {
        free(show->before);
        show->before = strdup(listing);
    }
    putc('\n', show->out);
    prose_lines(show->out, listing, 4, lines(show, LINES));
}

static const struct section {
    const char *name;    /* of its statement, and in JSON */
    const char *heading; /* NULL: each row has its own */
    int64_t rows, json_rows;
    void (*row)(struct show *show, struct query *query);
} sections[] = {
    {"causes", "needed because", ROWS, JSON_ROWS, cause_row},
    {"guards", "guards, in order", ROWS, JSON_ROWS, guard_row},
    {"graph_breaks", "graph breaks", ROWS, JSON_ROWS, break_row},
    {"graphs", NULL, ROWS, 1000, graph_row},
    {"phases", "where its time went", JSON_ROWS, JSON_ROWS, phase_row},
    {"listings", NULL, ROWS, 1000, listing_row},
};
#define SECTIONS (sizeof sections / sizeof *sections)

static void section_print(struct show *show, const struct section *section, int64_t compile_id)
{
    struct query *query = ask(show, section->name, compile_id, section->rows + 1);
    int64_t count = 0;

    show->depth = 0;
    show->longest = 0;
    for (; query_step(query) && (count < section->rows || show->full); count++) {
        if (!count && section->heading)
            fprintf(show->out, "  %s\n", section->heading);
        section->row(show, query);
    }
    if (count == section->rows && section->heading && query_step(query))
        fprintf(show->out, "    (the first %d; --full shows all)\n", (int)section->rows);
    query_close(query);
}

/* ---- a compile ----------------------------------------------------------------- */

static void entry_print(struct show *show, struct query *query)
{
    if (integer(query, "cache_entry_id") == PROSE_UNKNOWN) {
        fputs("  made no entry\n", show->out);
        return;
    }
    prose_print(show->out, "  made entry %.40s{ by %.*s}{, region %jd}, %jd guard(s){; died at %+jd}", text(query, "entry"),
                wide(show, 40), text(query, "backend"), integer(query, "region_id"), integer(query, "guard_count"),
                integer(query, "died_ns"));
    if (integer(query, "died_ns") != PROSE_UNKNOWN)
        cell(show, query, "death_cause", WIDTH, ": ", "");
    putc('\n', show->out);
}

static void compile_print(struct show *show, struct query *query)
{
    FILE *out = show->out;
    const char *reason = filled(query, "reason"), *rest = reason ? strchr(reason, '\n') : NULL;
    int64_t start = integer(query, "start_ns"), end = integer(query, "end_ns"), sticky = integer(query, "sticky");
    bool ended = end != PROSE_UNKNOWN;

    fputs(say_colour(out) ? "\n\033[1mcompile " : "\ncompile ", out);
    prose_print(out, "%.40s", filled(query, "label") ? text(query, "label") : "without a label");
    fputs(say_colour(out) ? "\033[0m" : "", out);
    prose_print(out, " at %+jd{, took %+jd}%s: %.40s%s", start, ended ? times_span(start, end) : PROSE_UNKNOWN,
                ended ? "" : ", did not end", text(query, "outcome"),
                sticky == PROSE_UNKNOWN ? "" : sticky ? ", for good" : ", for this call");
    if (reason && show->torch)
        prose_print(out, ": %.200s", torch_reason_split(reason).what);
    else
        cell(show, query, "reason", WIDTH * 2, ": ", "");
    putc('\n', out);
    if (rest && show->torch)
        prose_lines(out, rest + 1, 2, lines(show, 8));
    section_print(show, &sections[0], integer(query, "compile_id"));
    entry_print(show, query);
    for (size_t i = 1; i < SECTIONS; i++)
        section_print(show, &sections[i], integer(query, "compile_id"));
}

static void show_print(struct show *show)
{
    const struct found_code *code = &show->code;
    struct query *query = ask(show, "compiles", 0, COMPILES);
    int64_t count = code->label ? 0 : code->compiles, shown = 0;

    prose_print(show->out, "%.200s  %.300s:%jd  ", code->qualname, code->filename, code->first_line);
    torch_kind_print(show->out, code->qualname, code->kind);
    putc('\n', show->out);
    for (; query_step(query); shown++)
        compile_print(show, query);
    query_close(query);
    if (!shown && !db_failed(show->db))
        fputs("\nIt was never compiled in this recording; `dyntrace why` tells what happened to its calls.\n",
              show->out);
    else if (count > shown)
        prose_print(show->out, "\n(%jd of %jd compiles; --full shows all, `dyntrace show LABEL` shows one)\n", shown,
                    count);
}

/* ---- for programs ---------------------------------------------------------- */

/* The current row of QUERY as an object, still open. */
static void row_put(struct json *json, struct query *query)
{
    json_object(json, NULL);
    for (int i = 0; i < query_columns(query); i++)
        result_member(json, query_name(query, i), query, i);
}

static void rows_put(struct show *show, struct json *json, const char *name, int64_t id, int64_t limit)
{
    struct query *query = ask(show, name, id, limit);

    json_line(json);
    json_list(json, name), json_lines(json);
    while (query_step(query)) {
        row_put(json, query);
        if (!strcmp(name, "graphs"))
            rows_put(show, json, "nodes", integer(query, "graph_id"), JSON_ROWS);
        json_end(json);
    }
    json_end(json);
    query_close(query);
}

static void show_json(struct show *show)
{
    struct json *json = &(struct json){.out = show->out};
    struct query *query = ask(show, "compiles", 0, COMPILES);

    json_object(json, NULL), json_lines(json);
    json_string(json, "file", db_path(show->db));
    found_json(json, &show->code);
    json_integer(json, "compile_count", show->code.label ? 1 : show->code.compiles);
    json_list(json, "compiles"), json_lines(json);
    while (query_step(query)) {
        row_put(json, query);
        for (size_t i = 0; i < SECTIONS; i++)
            rows_put(show, json, sections[i].name, integer(query, "compile_id"), sections[i].json_rows);
        json_end(json);
    }
    json_end(json), json_end(json);
    putc('\n', show->out);
    query_close(query);
}

/* ---- the command ----------------------------------------------------------- */

static struct {
    bool full, json;
} given;

static const struct option options[] = {
    {"full", .read = option_flag, .to = &given.full,
     .help = "all compiles, guards, nodes, phases and lines, uncut; torch's own texts of guards and graphs"},
    {"json", .read = option_flag, .to = &given.json, .help = "the same for a program, times in nanoseconds"},
    OPTION_END,
};

static int show_main(int count, char **operands)
{
    struct show show = {.out = stdout, .full = given.full};
    const char *name, *path;
    struct query *torch;
    enum find_result found;
    int status;

    if (!find_operands("show", count, operands, &name, &path) || !(show.db = find_open(path)))
        return 2;
    doubts_say(show.db, "what is shown is what it has so far", "there may be more");
    found = find_code(show.db, name, &show.code, stdout, given.json);
    if (found == FIND_ONE) {
        torch = ask(&show, "torch", 0, 1);
        show.torch = query_step(torch);
        query_close(torch);
        (given.json ? show_json : show_print)(&show);
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
    .operands = "FUNC [FILE]",
    .about = "What each compile of a function made: cache entry, guards, graphs, graph breaks, where its time went, "
             "bytecode before and after, as far as the recording has them.\n\n"
             "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, FUNC@LINE (the rest of FUNC after a graph "
             "break in that line), or a compile such as 0/1, which is then shown alone. FILE is the newest *.db trace here "
             "unless given.",
    .options = options,
    .operands_most = 2,
    .too_many = "one function and one trace at a time",
    .run = show_main,
};

/* cmd/show.c -- `dyntrace show`: what each compile of a function made.
 *
 * Runs in: the viewer.
 *
 * For each compile: why it was needed, the entry that it made, its guards and
 * the user's lines that they are there for, its graph breaks and graphs, where
 * its time went, and the listings that were recorded, such as the bytecode
 * before and after. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "lib/json.h"
#include "trace/prose.h"
#include "trace/result.h"
#include "lib/say.h"
#include "lib/table.h"
#include "trace/torch_words.h"

enum {
    COMPILES = 10,     /* shown, unless --full */
    ROWS = 60,         /* guards, nodes of a graph, causes of a compile */
    LINES = 120,       /* of a listing */
    WIDTH = 100,       /* bytes of a text within a line */
    PHASE_DEPTH = 64,  /* deeper ones are shown beside the one that they lie in */
};

struct show {
    struct db *db; /* owned */
    struct found_code code;
    FILE *out;     /* borrowed */
    bool json, full, failed;
    bool torch;                   /* some process that it was seen in uses torch */
    char *before;                 /* owned: the bytecode that was last shown as before a compile */
    bool sticky, stacks, phases;  /* the trace has compile.sticky, guard.user_stack, compile_phase */
};

/* ---- the questions; ?1 is a compile, ?2 how many rows ---------------------- */

/* A column in braces is NULL where the trace is too old to have it. */
/* ?1 here: a label or NULL. */
static const char compiles_sql[] =
    "SELECT m.compile_id, m.label, m.code_id, m.start_ns, m.end_ns, m.outcome, substr(m.reason, 1, 4000) AS reason,"
    "       {m.sticky} AS sticky, e.region_id, e.cache_entry_id, e.label AS entry, e.backend, e.guard_count, e.born_ns,"
    "       e.died_ns, substr(e.death_cause, 1, 2000) AS death_cause "
    "FROM compile m LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id "
    "WHERE m.code_id IN ($codes) AND (?1 IS NULL OR m.label = ?1) ORDER BY m.compile_id LIMIT ?2";
enum {
    C_ID, C_LABEL, C_CODE, C_START, C_END, C_OUTCOME, C_REASON, C_STICKY, C_REGION, C_ENTRY_ID, C_ENTRY, C_BACKEND, C_GUARDS,
    C_BORN, C_DIED, C_DEATH,
};

static const char causes_sql[] =
    "SELECT e.label AS older_entry, r.kind, r.source,"
    "       substr(r.expected, 1, 2000) AS expected, substr(r.actual, 1, 2000) AS actual,"
    "       substr(r.text, 1, 2000) AS text, r.how "
    "FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id "
    "WHERE r.compile_id = ?1 "
    "ORDER BY COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id, r.rowid LIMIT ?2";

static const char guards_sql[] =
    "SELECT g.ordinal, g.kind, g.source, substr(g.expression, 1, 2000) AS expression,"
    "       substr({g.user_stack}, 1, 4000) AS user_stack "
    "FROM compile m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id "
    "WHERE m.compile_id = ?1 ORDER BY g.ordinal, g.guard_id LIMIT ?2";

static const char breaks_sql[] =
    "SELECT b.line, b.offset, substr(b.reason, 1, 4000) AS reason, substr(b.user_stack, 1, 4000) AS user_stack,"
    "       r.qualname AS resume_function "
    "FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id "
    "WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT ?2";

static const char graphs_sql[] =
    "SELECT graph_id, name, node_count FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT ?2";

static const char nodes_sql[] = /* ?1: a graph */
    "SELECT ordinal, opcode, name, substr(target, 1, 2000) AS target, substr(args, 1, 2000) AS args,"
    "       substr(kwargs, 1, 2000) AS kwargs "
    "FROM graph_node WHERE graph_id = ?1 ORDER BY ordinal LIMIT ?2";

static const char phases_sql[] =
    "SELECT COALESCE(name, '?') AS name, start_ns, end_ns FROM compile_phase WHERE compile_id = ?1 "
    "ORDER BY start_ns, end_ns DESC LIMIT ?2";

static const char listings_sql[] =
    "SELECT kind, substr(text, 1, 262144) AS text FROM listing WHERE compile_id = ?1 "
    "ORDER BY CASE kind WHEN 'original_bytecode' THEN 0 WHEN 'modified_bytecode' THEN 1 ELSE 2 END, kind LIMIT ?2";

/* SQL with $codes, and {columns} that the trace may lack. */
static struct query *query_made(struct show *show, const char *sql)
{
    struct query *query = NULL;
    char *made = NULL;
    size_t room = 0;
    FILE *out = open_memstream(&made, &room);

    for (size_t length; out && *sql; sql += length) {
        length = strcspn(sql, "{$");
        fwrite(sql, 1, length, out);
        if (sql[length] == '$') {
            fputs(show->code.ids, out);
            length += strlen("$codes");
        } else if (sql[length] == '{') {
            size_t name = strcspn(sql + length, "}") - 1;
            bool has = !strncmp(sql + length + 1, "m.sticky", name) ? show->sticky : show->stacks;
            fprintf(out, "%.*s", has ? (int)name : 4, has ? sql + length + 1 : "NULL");
            length += name + 2;
        }
    }
    if (out && fclose(out) == 0 && made)
        query = db_query(show->db, made);
    free(made);
    return query;
}

/* SQL about ID, at most LIMIT rows unless --full. */
static struct query *ask(struct show *show, const char *sql, int64_t id, int64_t limit)
{
    struct query *query = query_made(show, sql);

    query_bind_integer(query, 1, id);
    query_bind_integer(query, 2, show->full ? 1000000 : limit);
    return query;
}

static void asked(struct show *show, struct query *query)
{
    if (!query_close(query))
        show->failed = true;
}

static struct query *ask_compiles(struct show *show)
{
    struct query *query = query_made(show, compiles_sql);

    if (show->code.label)
        query_bind_text(query, 1, show->code.label);
    query_bind_integer(query, 2, show->full ? 1000000 : COMPILES);
    return query;
}

/* What of the newer tables and columns there is, and whether this is about torch. */
static void look_round(struct show *show)
{
    struct query *query;

    show->sticky = find_column(show->db, "compile", "sticky");
    show->stacks = find_column(show->db, "guard", "user_stack");
    show->phases = find_column(show->db, "compile_phase", "start_ns");
    query = query_made(show, "SELECT 1 FROM process WHERE torch_version IS NOT NULL"
                             " AND process_id IN (SELECT process_id FROM code WHERE code_id IN ($codes)) LIMIT 1");
    show->torch = query_step(query);
    asked(show, query);
}

static int64_t compile_count(struct show *show)
{
    char *sql = NULL;
    int64_t count = 0;

    if (!show->code.label && asprintf(&sql, "SELECT COUNT(*) FROM compile WHERE code_id IN (%s)", show->code.ids) >= 0)
        count = db_integer(show->db, 0, sql);
    free(sql);
    return count;
}

/* ---- for people ------------------------------------------------------------ */

static void cell(struct show *show, struct query *query, int column, size_t width)
{
    prose_text(show->out, query_type(query, column) == QUERY_NULL ? NULL : query_whole(query, column, NULL),
               show->full ? (size_t)1 << 20 : width);
}

static bool filled(struct query *query, int column)
{
    return query_type(query, column) != QUERY_NULL && *query_text(query, column, NULL);
}

static void cut_print(struct show *show, int64_t count)
{
    if (!show->full && count > ROWS)
        fprintf(show->out, "    (the first %d; --full shows all)\n", ROWS);
}

static void causes_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, causes_sql, compile_id, ROWS + 1);
    FILE *out = show->out;
    int64_t count = 0;

    while (query_step(query)) {
        if (!count++)
            fputs("  needed because\n", out);
        if (count > ROWS && !show->full)
            continue;
        fputs("    ", out);
        if (filled(query, 0))
            cell(show, query, 0, 40), fputs(": ", out);
        if (filled(query, 1))
            cell(show, query, 1, 40), putc(' ', out);
        if (filled(query, 2))
            cell(show, query, 2, WIDTH), putc(' ', out);
        if (filled(query, 3) || filled(query, 4)) {
            fputs("wanted ", out);
            cell(show, query, 3, WIDTH);
            fputs(", was ", out);
            cell(show, query, 4, WIDTH);
        } else {
            cell(show, query, 5, WIDTH);
        }
        fprintf(out, "  [%s]\n", filled(query, 6) && strcmp(query_text(query, 6, NULL), "observed") ? "re-checked" : "observed");
    }
    cut_print(show, count);
    asked(show, query);
}

static void guards_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, guards_sql, compile_id, ROWS + 1);
    FILE *out = show->out;
    int64_t count = 0;

    while (query_step(query)) {
        if (!count++)
            fputs("  guards, in order\n", out);
        if (count > ROWS && !show->full)
            continue;
        fprintf(out, "    %3" PRId64 "  ", query_integer(query, 0));
        cell(show, query, 1, 40);
        fputs("  ", out);
        cell(show, query, 2, WIDTH);
        if (filled(query, 3))
            fputs("  ", out), cell(show, query, 3, WIDTH);
        if (filled(query, 4) && !show->full)
            prose_place(out, "  # ", query_text(query, 4, NULL));
        putc('\n', out);
        if (filled(query, 4) && show->full)
            prose_lines(out, query_text(query, 4, NULL), 9, -1);
    }
    cut_print(show, count);
    asked(show, query);
}

static void breaks_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, breaks_sql, compile_id, ROWS + 1);
    FILE *out = show->out;
    int64_t count = 0;

    while (query_step(query)) {
        if (!count++)
            fputs("  graph breaks\n", out);
        if (count > ROWS && !show->full)
            continue;
        fprintf(out, "    line %" PRId64 ": ", query_integer(query, 0));
        if (show->torch) {
            struct torch_reason reason = torch_reason_split(query_text(query, 2, NULL));
            span_print(out, reason.what, WIDTH * 2);
            if (reason.why.text)
                fputs("\n      ", out), span_print(out, reason.why, WIDTH * 3);
            if (reason.hint.text)
                fputs("\n      hint: ", out), span_print(out, reason.hint, WIDTH * 3);
        } else {
            cell(show, query, 2, WIDTH * 2);
        }
        if (filled(query, 4)) {
            fputs(show->torch ? "\n      goes on in " : "; goes on in ", out);
            torch_name_print(out, query_text(query, 4, NULL), WIDTH);
            if (show->torch)
                fputs(" (", out), cell(show, query, 4, WIDTH), putc(')', out);
        }
        putc('\n', out);
        if (filled(query, 3))
            prose_lines(out, query_text(query, 3, NULL), 6, show->full ? -1 : 10);
    }
    cut_print(show, count);
    asked(show, query);
}

/* A graph's nodes, their cells below one another. */
static void nodes_print(struct show *show, int64_t graph_id)
{
    static const char *const heads[] = {"opcode", "name", "target", "args", "kwargs"};
    size_t columns[4] = {0}, width = show->full ? (size_t)1 << 20 : WIDTH;
    struct query *query = ask(show, nodes_sql, graph_id, ROWS + 1);
    FILE *out = show->out;
    int64_t count = 0;

    for (int i = 0; i < 4; i++)
        columns[i] = strlen(heads[i]);
    while (query_step(query) && count++ < ROWS) /* those after these may stick out */
        for (int i = 0; i < 4; i++) {
            size_t needed = prose_columns(query_text(query, i + 1, NULL), width);
            if (needed > columns[i] && needed <= 60)
                columns[i] = needed;
        }
    query_reset(query);
    query_bind_integer(query, 1, graph_id);
    query_bind_integer(query, 2, show->full ? 1000000 : ROWS + 1);
    for (count = 0; query_step(query); ) {
        if (!count++) {
            fputs("    ", out);
            for (int i = 0; i < 5; i++)
                fprintf(out, "%s%-*s", i ? "  " : "", i < 4 ? (int)columns[i] : 0, heads[i]);
            putc('\n', out);
        }
        if (count > ROWS && !show->full)
            continue;
        fputs("    ", out);
        for (int i = 0; i < 5; i++) {
            fputs(i ? "  " : "", out);
            prose_cell(out, query_text(query, i + 1, NULL), width, i < 4 ? columns[i] : 0);
        }
        putc('\n', out);
    }
    cut_print(show, count);
    asked(show, query);
}

static void graphs_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, graphs_sql, compile_id, ROWS);
    FILE *out = show->out;

    while (query_step(query)) {
        fputs("  graph ", out);
        cell(show, query, 1, WIDTH);
        fprintf(out, ", %" PRId64 " node%s\n", query_integer(query, 2), query_integer(query, 2) == 1 ? "" : "s");
        nodes_print(show, query_integer(query, 0));
    }
    asked(show, query);
}

/* Phases within one another, those of at least a percent of the compile unless --full. */
static void phases_print(struct show *show, int64_t compile_id)
{
    int64_t ends[PHASE_DEPTH], all = 0;
    struct query *query;
    FILE *out = show->out;
    char human[TABLE_HUMAN];
    int depth = 0;
    int64_t count = 0;

    if (!show->phases)
        return;
    query = ask(show, phases_sql, compile_id, 10000);
    while (query_step(query)) {
        int64_t start = query_integer(query, 1), end = query_integer(query, 2);
        int64_t took = start >= 0 && end > start ? end - start : 0;
        const char *words = torch_phase_words(query_text(query, 0, NULL));
        while (depth > 0 && ends[depth - 1] <= start)
            depth--;
        if (took > all)
            all = took;
        if (show->full || took * 1.0 >= all * 0.01) {
            if (!count++)
                fputs("  where its time went\n", out);
            fprintf(out, "  %9s  %*s", table_duration(human, took), depth * 2, "");
            cell(show, query, 0, WIDTH);
            if (words && !strstr(words, "but for")) /* said of what a phase took by itself */
                fprintf(out, ": %s", words);
            putc('\n', out);
        }
        if (depth < PHASE_DEPTH)
            ends[depth++] = end;
    }
    asked(show, query);
}

static void listings_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, listings_sql, compile_id, ROWS);
    FILE *out = show->out;

    while (query_step(query)) {
        const char *kind = query_text(query, 0, NULL);
        if (show->torch && !show->full && (!strcmp(kind, "guards") || !strcmp(kind, "graph")))
            continue; /* torch's own texts of what is above */
        fputs("  ", out);
        if (!strcmp(kind, "original_bytecode")) {
            fputs("bytecode before", out);
            if (show->before && !strcmp(show->before, query_whole(query, 1, NULL))) {
                fputs(": as of the compile above\n", out);
                continue;
            }
            free(show->before);
            show->before = strdup(query_whole(query, 1, NULL));
        } else if (!strcmp(kind, "modified_bytecode"))
            fputs("bytecode after", out);
        else
            cell(show, query, 0, 40);
        putc('\n', out);
        prose_lines(out, query_whole(query, 1, NULL), 4, show->full ? -1 : LINES);
    }
    asked(show, query);
}

static void compile_print(struct show *show, struct query *query)
{
    FILE *out = show->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN];
    bool colour = say_colour(out);

    fprintf(out, "\n%scompile ", colour ? "\033[1m" : "");
    if (filled(query, C_LABEL))
        cell(show, query, C_LABEL, 40);
    else
        fputs("without a label", out);
    fprintf(out, "%s at %s", colour ? "\033[0m" : "", table_duration(a, query_integer(query, C_START)));
    if (query_type(query, C_END) == QUERY_NULL)
        fputs(", did not end", out);
    else
        fprintf(out, ", took %s", table_duration(b, query_integer(query, C_END) - query_integer(query, C_START)));
    fputs(": ", out);
    cell(show, query, C_OUTCOME, 40);
    if (query_type(query, C_STICKY) != QUERY_NULL)
        fputs(query_integer(query, C_STICKY) ? ", for good" : ", for this call", out);
    if (filled(query, C_REASON)) {
        fputs(": ", out);
        if (show->torch)
            span_print(out, torch_reason_split(query_text(query, C_REASON, NULL)).what, WIDTH * 2);
        else
            cell(show, query, C_REASON, WIDTH * 2);
    }
    putc('\n', out);
    if (show->torch && filled(query, C_REASON)) { /* the rest of the reason */
        const char *rest = strchr(query_text(query, C_REASON, NULL), '\n');
        if (rest)
            prose_lines(out, rest + 1, 2, show->full ? -1 : 8);
    }
    causes_print(show, query_integer(query, C_ID));
    if (query_type(query, C_ENTRY_ID) != QUERY_NULL) {
        fputs("  made entry ", out);
        cell(show, query, C_ENTRY, 40);
        if (filled(query, C_BACKEND))
            fputs(" by ", out), cell(show, query, C_BACKEND, 40);
        if (query_type(query, C_REGION) != QUERY_NULL)
            fprintf(out, ", region %" PRId64, query_integer(query, C_REGION));
        fprintf(out, ", %" PRId64 " guard%s", query_integer(query, C_GUARDS), query_integer(query, C_GUARDS) == 1 ? "" : "s");
        if (query_type(query, C_DIED) != QUERY_NULL) {
            fprintf(out, "; died at %s", table_duration(a, query_integer(query, C_DIED)));
            if (filled(query, C_DEATH))
                fputs(": ", out), cell(show, query, C_DEATH, WIDTH);
        }
        putc('\n', out);
    } else {
        fputs("  made no entry\n", out);
    }
    guards_print(show, query_integer(query, C_ID));
    breaks_print(show, query_integer(query, C_ID));
    graphs_print(show, query_integer(query, C_ID));
    phases_print(show, query_integer(query, C_ID));
    listings_print(show, query_integer(query, C_ID));
}

static void show_print(struct show *show)
{
    FILE *out = show->out;
    struct query *query;
    int64_t count = compile_count(show), shown = 0, line;
    char *rest_of = NULL;

    prose_text(out, show->code.qualname, 200);
    fputs("  ", out);
    prose_text(out, show->code.filename, 300);
    fprintf(out, ":%" PRId64 "  ", show->code.first_line);
    if (torch_resume(show->code.qualname, &rest_of, &line))
        torch_name_print(out, show->code.qualname, 200);
    else
        prose_text(out, show->code.kind, 40);
    free(rest_of);
    putc('\n', out);
    query = ask_compiles(show);
    while (query_step(query)) {
        compile_print(show, query);
        shown++;
    }
    asked(show, query);
    if (!shown && !show->failed)
        fputs("\nIt was never compiled in this recording; `dyntrace why` tells what happened to its calls.\n", out);
    else if (count > shown)
        fprintf(out, "\n(%" PRId64 " of %" PRId64 " compiles; --full shows all, `dyntrace show LABEL` shows one)\n", shown, count);
}

/* ---- for programs ---------------------------------------------------------- */

/* The current row of QUERY as members of an object that is open. */
static void row_members(struct json *json, struct query *query)
{
    for (int i = 0; i < query_columns(query); i++)
        result_member(json, query_name(query, i), query, i);
}

/* The rows of SQL as a member NAME; each may get more members from MORE. */
static void rows_member(struct show *show, struct json *json, const char *name, const char *sql, int64_t id, int64_t limit,
                        void (*more)(struct show *show, struct json *json, struct query *query))
{
    struct query *query = ask(show, sql, id, limit);

    json_line(json);
    json_list(json, name);
    json_lines(json);
    while (query_step(query)) {
        json_object(json, NULL);
        row_members(json, query);
        if (more)
            more(show, json, query);
        json_end(json);
    }
    json_end(json);
    asked(show, query);
}

static void nodes_member(struct show *show, struct json *json, struct query *graph)
{
    rows_member(show, json, "nodes", nodes_sql, query_integer(graph, 0), 10000, NULL);
}

static void show_json(struct show *show)
{
    struct json *json = &(struct json){.out = show->out};
    struct query *query;

    json_object(json, NULL);
    json_lines(json);
    json_string(json, "file", db_path(show->db));
    found_json(json, &show->code);
    json_integer(json, "compile_count", show->code.label ? 1 : compile_count(show));
    json_list(json, "compiles");
    json_lines(json);
    query = ask_compiles(show);
    while (query_step(query)) {
        int64_t id = query_integer(query, C_ID);
        json_object(json, NULL);
        row_members(json, query);
        rows_member(show, json, "causes", causes_sql, id, 10000, NULL);
        rows_member(show, json, "guards", guards_sql, id, 10000, NULL);
        rows_member(show, json, "graph_breaks", breaks_sql, id, 10000, NULL);
        rows_member(show, json, "graphs", graphs_sql, id, 1000, nodes_member);
        if (show->phases)
            rows_member(show, json, "phases", phases_sql, id, 10000, NULL);
        rows_member(show, json, "listings", listings_sql, id, 1000, NULL);
        json_end(json);
    }
    json_end(json);
    json_end(json);
    putc('\n', show->out);
    asked(show, query);
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
    const char *name, *path;
    struct query *snapshot;
    struct show show = {.out = stdout, .full = given.full, .json = given.json};
    int status = 2;

    if (!find_operands("show", count, operands, &name, &path))
        return 2;
    setlocale(LC_CTYPE, "");
    show.db = db_open(path);
    if (!show.db)
        return 2;
    snapshot = db_query(show.db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    if (!find_tables(show.db))
        goto out;
    doubts_say(show.db, "what is told is what it has so far", "there may be more");
    switch (find_code(show.db, name, &show.code, stdout, show.json)) {
    case FIND_ONE:
        look_round(&show);
        (show.json ? show_json : show_print)(&show);
        status = show.failed ? 2 : 0;
        break;
    case FIND_SEVERAL:
        status = 1;
        break;
    default:
        break;
    }
out:
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say_error("output: cannot be written");
        status = 2;
    }
    if (db_damaged(show.db))
        status = 2;
    found_code_free(&show.code);
    free(show.before);
    db_close(show.db);
    return status;
}

const struct command command_show = {
    .name = "show",
    .summary = "what each compile of a function made: guards, bytecode, graphs",
    .operands = "FUNC [FILE]",
    .about = "What each compile of a function made: cache entry, guards, graphs, graph breaks, where its time went, bytecode "
             "before and after, as far as the recording has them.\n\n"
             "FUNC is a qualified name, its last part, FILE:LINE, a GLOB, FUNC@LINE (the rest of FUNC after a graph break in "
             "that line), or a compile such as 0/1, which is then shown alone. FILE is the newest *.db trace here unless given.",
    .options = options,
    .operands_most = 2,
    .too_many = "one function and one trace at a time",
    .run = show_main,
};

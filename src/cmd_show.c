/* cmd_show.c -- `dyntrace show`: what each compile of a function made.
 *
 * Runs in: the viewer.
 *
 * For each compile: why it was needed, the entry that it made, its guards with
 * how often each failed, its graph breaks and graphs, and the listings that were
 * recorded, such as the bytecode before and after. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "db.h"
#include "find_code.h"
#include "json.h"
#include "prose.h"
#include "result.h"
#include "say.h"
#include "table.h"

enum {
    COMPILES = 10,     /* shown, unless --full */
    ROWS = 60,         /* guards, nodes of a graph, causes of a compile */
    LINES = 120,       /* of a listing */
    WIDTH = 100,       /* bytes of a text within a line */
};

static const char usage[] =
    "usage: dyntrace show FUNC [FILE] [--full] [--json]\n\n"
    "What each compile of a function made: cache entry, guards, graphs, bytecode before and after,\n"
    "as far as the recording has them. FUNC is a qualified name, its last part, FILE:LINE, a GLOB,\n"
    "or a compile such as 0/1, of which alone it then tells. FILE is the newest *.db trace here\n"
    "unless given.\n\n"
    "  --full  all compiles, guards, nodes and lines\n"
    "  --json  the same for a program, times in nanoseconds\n";

struct show {
    struct db *db; /* owned */
    struct found_code code;
    FILE *out;     /* borrowed */
    bool json, full, failed;
};

/* ---- the questions; ?1 is a compile, ?2 how many rows ---------------------- */

/* ?1 here: a label or NULL. */
static const char compiles_sql[] =
    "SELECT m.compile_id, m.label, m.code_id, m.start_ns, m.end_ns, m.outcome, substr(m.reason, 1, 2000) AS reason,"
    "       e.cache_entry_id, e.label AS entry, e.backend, e.guard_count, e.born_ns, e.died_ns,"
    "       substr(e.death_cause, 1, 2000) AS death_cause "
    "FROM compile m LEFT JOIN cache_entry e ON e.cache_entry_id = m.cache_entry_id "
    "WHERE m.code_id IN ($codes) AND (?1 IS NULL OR m.label = ?1) ORDER BY m.compile_id LIMIT ?2";
enum { C_ID, C_LABEL, C_CODE, C_START, C_END, C_OUTCOME, C_REASON, C_ENTRY_ID, C_ENTRY, C_BACKEND, C_GUARDS, C_BORN, C_DIED, C_DEATH };

static const char causes_sql[] =
    "SELECT e.label AS older_entry, COALESCE(NULLIF(r.kind, ''), g.kind) AS kind, COALESCE(NULLIF(r.source, ''), g.source) AS source,"
    "       substr(r.expected, 1, 2000) AS expected, substr(r.actual, 1, 2000) AS actual,"
    "       substr(COALESCE(NULLIF(r.text, ''), g.expression), 1, 2000) AS text, r.how "
    "FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id "
    "LEFT JOIN guard g ON g.guard_id = r.guard_id WHERE r.compile_id = ?1 "
    "ORDER BY COALESCE(r.how, 'observed') <> 'observed', r.ordinal, r.cache_entry_id LIMIT ?2";

static const char guards_sql[] =
    "SELECT g.ordinal, g.kind, g.source, substr(g.expression, 1, 2000) AS expression "
    "FROM compile m CROSS JOIN guard g ON g.cache_entry_id = m.cache_entry_id "
    "WHERE m.compile_id = ?1 ORDER BY g.ordinal, g.guard_id LIMIT ?2";

static const char breaks_sql[] =
    "SELECT b.line, b.offset, substr(b.reason, 1, 2000) AS reason, substr(b.user_stack, 1, 4000) AS user_stack,"
    "       r.qualname AS resume_function "
    "FROM graph_break b LEFT JOIN code r ON r.code_id = b.resume_code_id "
    "WHERE b.compile_id = ?1 ORDER BY b.graph_break_id LIMIT ?2";

static const char graphs_sql[] =
    "SELECT graph_id, name, node_count FROM graph WHERE compile_id = ?1 ORDER BY graph_id LIMIT ?2";

static const char nodes_sql[] = /* ?1: a graph */
    "SELECT ordinal, opcode, name, substr(target, 1, 2000) AS target, substr(args, 1, 2000) AS args,"
    "       substr(kwargs, 1, 2000) AS kwargs "
    "FROM graph_node WHERE graph_id = ?1 ORDER BY ordinal LIMIT ?2";

static const char listings_sql[] =
    "SELECT kind, substr(text, 1, 262144) AS text FROM listing WHERE compile_id = ?1 "
    "ORDER BY CASE kind WHEN 'original_bytecode' THEN 0 WHEN 'modified_bytecode' THEN 1 ELSE 2 END, kind LIMIT ?2";

/* SQL about ID, at most LIMIT rows unless --full. */
static struct query *ask(struct show *show, const char *sql, int64_t id, int64_t limit)
{
    struct query *query = db_query(show->db, sql);

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
    const char *codes = strstr(compiles_sql, "$codes");
    struct query *query = NULL;
    char *sql = NULL;

    if (asprintf(&sql, "%.*s%s%s", (int)(codes - compiles_sql), compiles_sql, show->code.ids, codes + 6) >= 0)
        query = db_query(show->db, sql);
    free(sql);
    if (show->code.label)
        query_bind_text(query, 1, show->code.label);
    query_bind_integer(query, 2, show->full ? 1000000 : COMPILES);
    return query;
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
    prose_text(show->out, query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL),
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
        putc('\n', out);
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
        cell(show, query, 2, WIDTH * 2);
        if (filled(query, 4))
            fputs("; goes on in ", out), cell(show, query, 4, WIDTH);
        putc('\n', out);
        if (filled(query, 3))
            prose_lines(out, query_text(query, 3, NULL), 6, show->full ? -1 : 10);
    }
    cut_print(show, count);
    asked(show, query);
}

static void graphs_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, graphs_sql, compile_id, ROWS);
    FILE *out = show->out;

    while (query_step(query)) {
        struct query *nodes = ask(show, nodes_sql, query_integer(query, 0), ROWS + 1);
        int64_t count = 0;
        fputs("  graph ", out);
        cell(show, query, 1, WIDTH);
        fprintf(out, ", %" PRId64 " node%s\n", query_integer(query, 2), query_integer(query, 2) == 1 ? "" : "s");
        while (query_step(nodes)) {
            if (count++ >= ROWS && !show->full)
                continue;
            fprintf(out, "    %3" PRId64 "  ", query_integer(nodes, 0));
            for (int column = 1; column < 6; column++) {
                if (column == 5 && (!filled(nodes, 5) || !strcmp(query_text(nodes, 5, NULL), "{}")))
                    break;
                fputs(column > 1 ? "  " : "", out);
                if (filled(nodes, column))
                    cell(show, nodes, column, WIDTH);
                else
                    putc('-', out);
            }
            putc('\n', out);
        }
        cut_print(show, count);
        asked(show, nodes);
    }
    asked(show, query);
}

static void listings_print(struct show *show, int64_t compile_id)
{
    struct query *query = ask(show, listings_sql, compile_id, ROWS);
    FILE *out = show->out;

    while (query_step(query)) {
        const char *kind = query_text(query, 0, NULL);
        fputs("  ", out);
        if (!strcmp(kind, "original_bytecode"))
            fputs("bytecode before", out);
        else if (!strcmp(kind, "modified_bytecode"))
            fputs("bytecode after", out);
        else
            cell(show, query, 0, 40);
        putc('\n', out);
        prose_lines(out, query_text(query, 1, NULL), 4, show->full ? -1 : LINES);
    }
    asked(show, query);
}

static void compile_print(struct show *show, struct query *query)
{
    FILE *out = show->out;
    char a[TABLE_HUMAN], b[TABLE_HUMAN];
    bool colour = say_colour(out);

    fprintf(out, "\n%scompile ", colour ? "\033[1m" : "");
    cell(show, query, C_LABEL, 40);
    fprintf(out, "%s at %s", colour ? "\033[0m" : "", table_duration(a, query_integer(query, C_START)));
    if (query_type(query, C_END) == QUERY_NULL)
        fputs(", did not end", out);
    else
        fprintf(out, ", took %s", table_duration(b, query_integer(query, C_END) - query_integer(query, C_START)));
    fputs(": ", out);
    cell(show, query, C_OUTCOME, 40);
    if (filled(query, C_REASON))
        fputs(": ", out), cell(show, query, C_REASON, WIDTH * 2);
    putc('\n', out);
    causes_print(show, query_integer(query, C_ID));
    if (query_type(query, C_ENTRY_ID) != QUERY_NULL) {
        fputs("  made entry ", out);
        cell(show, query, C_ENTRY, 40);
        if (filled(query, C_BACKEND))
            fputs(" by ", out), cell(show, query, C_BACKEND, 40);
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
    listings_print(show, query_integer(query, C_ID));
}

static void show_print(struct show *show)
{
    FILE *out = show->out;
    struct query *query;
    int64_t count = compile_count(show), shown = 0;

    prose_text(out, show->code.qualname, 200);
    fputs("  ", out);
    prose_text(out, show->code.filename, 300);
    fprintf(out, ":%" PRId64 "  ", show->code.first_line);
    prose_text(out, show->code.kind, 40);
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
static void row_members(struct show *show, struct query *query)
{
    FILE *out = show->out;
    int columns = query_columns(query);

    for (int i = 0; i < columns; i++) {
        size_t bytes;
        const char *name = query_name(query, i), *text;
        fputs(i ? ", " : "", out);
        json_string(out, name, strlen(name));
        fputs(": ", out);
        if (query_type(query, i) == QUERY_NULL) {
            fputs("null", out);
        } else if (query_type(query, i) == QUERY_INTEGER) {
            fprintf(out, "%" PRId64, query_integer(query, i));
        } else {
            text = query_text(query, i, &bytes);
            json_string(out, text, bytes);
        }
    }
}

/* The rows of SQL as a member NAME; each may get more members from MORE. */
static void rows_member(struct show *show, const char *name, const char *sql, int64_t id, int64_t limit,
                        void (*more)(struct show *show, struct query *query))
{
    struct query *query = ask(show, sql, id, limit);

    fprintf(show->out, ",\n  \"%s\": [", name);
    for (bool first = true; query_step(query); first = false) {
        fputs(first ? "\n   {" : ",\n   {", show->out);
        row_members(show, query);
        if (more)
            more(show, query);
        putc('}', show->out);
    }
    putc(']', show->out);
    asked(show, query);
}

static void nodes_member(struct show *show, struct query *graph)
{
    rows_member(show, "nodes", nodes_sql, query_integer(graph, 0), 10000, NULL);
}

static void show_json(struct show *show)
{
    FILE *out = show->out;
    struct query *query;

    fputs("{\"file\": ", out);
    json_string(out, db_path(show->db), strlen(db_path(show->db)));
    fputs(",\n\"function\": {\"qualname\": ", out);
    json_string(out, show->code.qualname, strlen(show->code.qualname));
    fputs(", \"filename\": ", out);
    json_string(out, show->code.filename, strlen(show->code.filename));
    fprintf(out, ", \"first_line\": %" PRId64 ", \"kind\": ", show->code.first_line);
    json_string(out, show->code.kind, strlen(show->code.kind));
    fprintf(out, ", \"code_ids\": [%s]},\n\"compile_count\": %" PRId64 ",\n\"compiles\": [", show->code.ids,
            show->code.label ? 1 : compile_count(show));
    query = ask_compiles(show);
    for (bool first = true; query_step(query); first = false) {
        int64_t id = query_integer(query, C_ID);
        fputs(first ? "\n {" : ",\n {", out);
        row_members(show, query);
        rows_member(show, "causes", causes_sql, id, 10000, NULL);
        rows_member(show, "guards", guards_sql, id, 10000, NULL);
        rows_member(show, "graph_breaks", breaks_sql, id, 10000, NULL);
        rows_member(show, "graphs", graphs_sql, id, 1000, nodes_member);
        rows_member(show, "listings", listings_sql, id, 1000, NULL);
        putc('}', out);
    }
    fputs("]}\n", out);
    asked(show, query);
}

/* ---- the command ----------------------------------------------------------- */

static int show_main(int argc, char **argv)
{
    static const char *const options[] = {"--full", "--json", NULL};
    struct show show = {.out = stdout};
    const char *name, *path;
    bool set[2] = {false};
    struct query *snapshot;
    int status = find_arguments(argc, argv, usage, options, set, &name, &path);

    if (status >= 0)
        return status;
    show.full = set[0];
    show.json = set[1];
    status = 2;
    setlocale(LC_CTYPE, "");
    show.db = db_open(path);
    if (!show.db)
        return 2;
    snapshot = db_query(show.db, "BEGIN");
    query_step(snapshot);
    query_close(snapshot);
    if (!find_tables(show.db))
        goto out;
    switch (find_code(show.db, name, &show.code, stdout, show.json)) {
    case FIND_ONE:
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
    found_code_free(&show.code);
    db_close(show.db);
    return status;
}

const struct command command_show = {
    "show", "what each compile of a function made: guards, bytecode, graphs", usage, show_main,
};

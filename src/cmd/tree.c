/* cmd/tree.c -- `dyntrace tree`: prints what a function's calls called, as a tree with times.
 *
 * This is the output for a function `handle`, which calls `Pricing.quote`:
 *
 *     total   share     self  calls  function
 *    584 ms  100.0 %  1.2 ms      1  handle
 *    582 ms   99.7 %  310 us      1    Pricing.quote
 *
 * One walk over the frames (trace/stacks.h) adds up the stacks below all calls of the function,
 * or below one of its calls. A recursive function is a callee of itself. */
#include <inttypes.h>
#include <math.h>

#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/doubts.h"
#include "trace/find_code.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/stacks.h"
#include "trace/template.h"

enum {
    LIMIT = 100, /* the most lines that are printed, unless --limit is given */
    INDENT_MOST = 40,
};
/* a line is printed only if its function has this share of the root's time, unless --least is
 * given */
#define LEAST_SHARE 0.01

static struct {
    bool json, slowest;
    int64_t call;  /* the value of --call, a frame_id; 0 if not given */
    double least;  /* the value of --least; negative if not given */
    int64_t limit; /* the value of --limit; 0 if not given, -1 for all */
} given = {.least = -1};

static struct {
    struct db *db; /* owned */
    struct found_code code;
    struct found_ids ids;
    /* the call whose tree is printed, a frame_id; 0 for all calls of the function */
    int64_t frame_id;
    struct stacks stacks;
    struct progress progress;
    int64_t last_frame;
    int64_t lines, left; /* number of lines that were printed, and of those that --limit left out */
} tree;

/* ---- reading frames into the tree ---------------------------------------- */

static bool show_progress(void *context, int64_t frame_id)
{
    progress_tick(&tree.progress, frame_id, tree.last_frame);
    return true;
}

static bool is_root_of_tree(void *context, struct open_frame *frame)
{
    if (tree.frame_id)
        return frame->id == tree.frame_id;
    return found_ids_has(&tree.ids, frame->code_id);
}

static void read_frames_into_tree(void)
{
    const struct walk walk = {
        .fold = true,
        .tick = show_progress,
        .root = is_root_of_tree,
        .same = &tree.ids.same,
    };

    tree.ids = found_ids_read(tree.db, &tree.code);
    tree.last_frame = db_integer(tree.db, 0, "SELECT MAX(frame_id) FROM frame");
    tree.progress = progress_begin("reading frames");
    stacks_visit_frames(tree.db, &tree.stacks, &walk);
    progress_end(&tree.progress);
    tree_link_children(&tree.stacks.tree);
}

/* ---- printing the tree --------------------------------------------------- */

static const struct node *node_with_index(uint32_t at)
{
    return &tree.stacks.tree.nodes.at[at];
}

/* Call PUT for each node in the order of a tree: a function comes before its own callees. Nodes
 * with less time than LEAST_NS are left out. After --limit nodes, the others are only counted. Does
 * not recurse, because a tree may be deeper than the C stack allows. */
static void visit_nodes(int64_t least_ns, void (*put)(void *to, const struct node *), void *to)
{
    int64_t limit = given.limit ? given.limit : LIMIT;
    uint32_t at = node_with_index(0)->child;

    while (at) {
        bool is_shown = node_with_index(at)->total_ns >= least_ns;
        bool has_room = limit <= 0 || tree.lines < limit;
        if (is_shown && has_room) {
            tree.lines++;
            put(to, node_with_index(at));
        } else if (is_shown) {
            tree.left++;
        }
        if (is_shown && node_with_index(at)->child) {
            at = node_with_index(at)->child;
            continue;
        }
        while (at && !node_with_index(at)->sibling)
            at = node_with_index(at)->parent;
        at = node_with_index(at)->sibling; /* 0 ends the loop here, because node 0 has no sibling */
    }
}

static int64_t root_total_ns(void)
{
    return node_with_index(0)->total_ns;
}

static double node_percent(const struct node *node)
{
    return root_total_ns() > 0 ? 100.0 * (double)node->total_ns / (double)root_total_ns() : 0;
}

static struct query *query_code_of_node(const struct node *node)
{
    struct query *query = db_query_with(tree.db, schema_statement("tree/code"), node->code_id);

    query_step(query);
    return query;
}

static void print_node(void *to, const struct node *node)
{
    struct query *code = query_code_of_node(node);
    uint32_t indent = (node->depth - 1) * 2;
    char human[TABLE_HUMAN];
    char share[CELL_TEXT];
    struct value percent = {.type = QUERY_REAL, .real = node_percent(node)};
    char *words;

    table_put_figure(to, table_duration(human, node->total_ns));
    words = say_print("%s %%", value_print(share, &percent, AS_PERCENT, 0));
    table_put_figure(to, words);
    free(words);
    table_put_figure(to, table_duration(human, node->self_ns > 0 ? node->self_ns : 0));
    table_put_figure(to, table_count(human, node->calls));
    words = say_print("%*s%s", (int)(indent < INDENT_MOST ? indent : INDENT_MOST), "",
                      query_text(code, 0, NULL));
    table_put_string(to, words);
    free(words);
    words = say_print("%s:%" PRId64, prose_shorten_path(query_text(code, 1, NULL)),
                      query_integer(code, 2));
    table_put_string(to, words);
    free(words);
    query_close(code);
}

static void write_node_as_json(void *to, const struct node *node)
{
    struct json *json = to;
    struct query *code = query_code_of_node(node);

    json_object(json, NULL);
    json_integer(json, "depth", node->depth - 1);
    json_integer(json, "code_id", node->code_id);
    json_string(json, "qualname", query_text(code, 0, NULL));
    json_string(json, "filename", query_whole_value(code, 1, NULL));
    json_integer(json, "first_line", query_integer(code, 2));
    json_integer(json, "calls", node->calls);
    json_integer(json, "total_ns", node->total_ns);
    json_integer(json, "self_ns", node->self_ns > 0 ? node->self_ns : 0);
    json_integer(json, "longest_ns", node->longest_ns);
    json_integer(json, "longest_frame_id", node->longest_id);
    json_end(json);
    query_close(code);
}

static int64_t least_shown_ns(void)
{
    double least = given.least < 0 ? LEAST_SHARE : given.least;

    return (int64_t)ceil((double)root_total_ns() * least);
}

static void bind_call_parameters(const void *context, struct query *query)
{
    if (!tree.frame_id)
        find_bind_ids(query, 1, &tree.code);
}

static void print_tree(void)
{
    static const char *const names[] = {"total", "share", "self", "calls", "function", "where"};
    struct page_text page = {
        .out = stdout,
        .db = tree.db,
        .way = page_text_choose_way(stdout, false),
        .bind = bind_call_parameters,
    };
    struct table *table;

    page_text_print_rows(&page, tree.frame_id ? "tree/call" : "tree/calls", tree.frame_id);
    putchar('\n');
    table = table_open(stdout, table_format(stdout, false), 6, names);
    visit_nodes(least_shown_ns(), print_node, table);
    table_close(table);
    if (tree.stacks.tree.cut)
        printf("(%" PRIu32 " calls are counted in their callers' own time: there are more than "
               "%d different stacks)\n",
               tree.stacks.tree.cut, STACKS_NODES);
    if (tree.left)
        printf("(%" PRId64 " more; --limit 0 shows all)\n", tree.left);
}

static void write_tree_as_json(void)
{
    struct json *json = &(struct json){.out = stdout};

    json_object(json, NULL);
    json_begin_lines(json);
    json_string(json, "file", db_get_path(tree.db));
    found_write_as_json(json, &tree.code);
    json_integer_or_null(json, "frame_id", tree.frame_id, tree.frame_id);
    json_list(json, "nodes");
    json_begin_lines(json);
    visit_nodes(least_shown_ns(), write_node_as_json, json);
    json_end(json);
    json_integer(json, "left_out", tree.left);
    json_integer(json, "counted_in_callers", tree.stacks.tree.cut);
    json_end(json);
    putchar('\n');
}

/* ---- the command `tree` -------------------------------------------------- */

/* Find the call of --call or --slowest, and store its id in tree.frame_id. Returns false after
 * reporting an error. */
static bool choose_call(void)
{
    struct query *query;
    bool is_ours = true;

    query = db_query(tree.db, schema_statement(given.call ? "tree/is-ours" : "tree/slowest"));
    find_bind_ids(query, 1, &tree.code);
    if (given.call) {
        query_bind_integer(query, 2, given.call);
        is_ours = query_step(query) && query_integer(query, 0);
        tree.frame_id = given.call;
    } else if (given.slowest && query_step(query)) {
        tree.frame_id = query_integer(query, 0);
    }
    if (!is_ours && query_text(query, 1, NULL)[0])
        say_error("tree: --call %" PRId64 ": is a call of %s, not of %s", given.call,
                  query_text(query, 1, NULL), tree.code.qualname);
    else if (!is_ours)
        say_error("tree: --call %" PRId64 ": no such call is stored in %s; `dyntrace why %s` has "
                  "the ids of the slowest",
                  given.call, db_get_path(tree.db), tree.code.qualname);
    query_close(query);
    return is_ours;
}

/* Report that the trace stores no frame that can be the root of a tree. */
static void report_no_call(void)
{
    const char *which = doubts_describe_stored_frames(tree.db);

    say_error("tree: no call of %s is stored in %s%s%s; `dyntrace why %s` has its totals",
              tree.code.qualname, db_get_path(tree.db), which ? ", which has these frames: " : "",
              which ? which : "", tree.code.qualname);
}

static const struct option options[] = {
    {"slowest", .read = option_flag, .to = &given.slowest, .help = "of its longest call alone"},
    {"call", .value = "ID", .read = option_count, .to = &given.call,
     .help = "of this call alone: a frame_id, as `why` prints those of the slowest calls"},
    {"least", .value = "SHARE", .read = option_share, .to = &given.least,
     .help = "leave out below this share of the whole time, 0.05 or 5%. The default is 1%"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "lines that are printed; 0 is all. The default is 100"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, times in nanoseconds"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

/* Make the tree of the function that was found, and print it. Reports an error and returns false if
 * the function has no stored call. */
static bool tree_build_and_print(void)
{
    if (!choose_call())
        return false;
    read_frames_into_tree();
    if (db_has_failed(tree.db))
        return false;
    if (!node_with_index(0)->child) {
        report_no_call();
        return false;
    }
    doubts_report_unstored_frames(tree.db, "their time is their callers' own time in the tree");
    if (given.json)
        write_tree_as_json();
    else
        print_tree();
    return true;
}

static int tree_main(int count, char **operands)
{
    const char *name;
    char **files;
    enum find_result found;
    int status;

    if (given.call && given.slowest) {
        say_error("tree: --call and --slowest: one of the two");
        return 2;
    }
    if (given.least > 1) {
        say_error("tree: --least: no call takes more than 1, the whole time");
        return 2;
    }
    if (!find_split_operands("tree", count, operands, &name, &files))
        return 2;
    if (!name) {
        say_error("tree: needs the name of a function; `dyntrace tree --help` tells more");
        return 2;
    }
    if (!(tree.db = find_open_traces(files)))
        return 2;
    doubts_print_warnings(tree.db, "the tree has what is stored so far", "there may be more");
    doubts_report_settings(tree.db);
    found = find_code(tree.db, name, &tree.code, stdout, given.json);
    status = find_exit_status(tree.db, found);
    if (found == FIND_ONE && !tree_build_and_print())
        status = 2;
    stacks_free(&tree.stacks);
    found_ids_free(&tree.ids);
    found_code_free(&tree.code);
    db_close(tree.db);
    return status;
}

const struct command command_tree = {
    .name = "tree",
    .summary = "what a function's calls called, as a tree with times",
    .operands = "FUNC [FILE...]",
    .about =
        "What the calls of a function called, and what these called, with the time that each "
        "took: of all its calls together, of the longest, or of one.\n\n"
        "FUNC is a qualified name, its last part, FILE:LINE[:NAME] or a GLOB. FILE is the "
        "newest *.db trace here unless given. total has callees in it, self has not; shares are of "
        "the time in FUNC.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = tree_main,
};

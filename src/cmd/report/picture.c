/* cmd/report/picture.c -- collects the data of the timeline and the flame graph of `dyntrace report
 * --html`. See cmd/report/picture.h. */
#include "cmd/report/picture.h"

#include "cmd/report/report.h"
#include "lib/json.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/stacks.h"

/* One walk over the frames (trace/stacks.h) folds their stacks for the flame graph, and keeps the
 * LONGEST longest frames for the timeline. Shorter frames would be thinner than a pixel. The data
 * become rows of JSON, which page/report.js draws and zooms:
 *
 *     span       nanoseconds of the recording
 *     frames     [thread, code, start, length, depth, id]
 *     compiles   [thread, code, start, length, label, graph breaks]
 *     misses     [thread, code, start, 0, outcome, lookup]
 *     outcomes   ["plain", ...]: the word of each outcome's number
 *     all        nanoseconds of the whole flame graph
 *     boxes      [depth, code (thread at depth 0), total nanoseconds, own nanoseconds]; callers
 *                come before their callees
 *     codes      {"7": ["f", "app.py", 12]}
 *     threads    {"1": ["MainThread of 4711"]} */
enum {
    LONGEST = 6000, /* the most frames that the timeline shows */
    DEPTH = 40,     /* the most levels of a thread's frames that the timeline shows */
    BOXES = 6000,   /* the most boxes that the flame graph has */
    FLAME_DEPTH = 250,
    LONGEST_CODES = 2000, /* most code objects whose longest calls are listed */
};

struct long_frame {
    int64_t id, thread_id, code_id, start_ns, ns, depth;
};

struct picture {
    struct report *report; /* borrowed */
    struct stacks stacks;
    /* the longest frames so far, then candidates in order of time; if the array is full,
     * keep_longest_frames removes the shorter half */
    struct long_frame frames[2 * LONGEST];
    size_t count;
    int64_t end_ns, last_frame;
    int64_t least_ns; /* frames that are not longer than this are not kept */
};

static bool count_frame_and_continue(void *context, int64_t frame_id)
{
    struct picture *picture = context;

    progress_tick(&picture->report->progress, frame_id, picture->last_frame);
    return true;
}

static int compare_longest_first(const void *a, const void *b)
{
    const struct long_frame *x = a;
    const struct long_frame *y = b;
    int order = list_compare_numbers(y->ns, x->ns);

    return order ? order : list_compare_numbers(x->id, y->id);
}

static void keep_longest_frames(struct picture *picture)
{
    qsort(picture->frames, picture->count, sizeof *picture->frames, compare_longest_first);
    if (picture->count < LONGEST)
        return;
    picture->count = LONGEST;
    picture->least_ns = picture->frames[LONGEST - 1].ns;
}

static void keep_frame_for_picture(void *context, struct track *track)
{
    struct picture *picture = context;
    const struct open_frame *frame = track_top_frame(track);
    int64_t ns = times_span_or_zero(frame->start_ns, frame->end_ns);
    int64_t depth = (int64_t)track->stack.count - 1;
    struct long_frame *kept = &picture->frames[picture->count];

    if (depth >= DEPTH || ns <= picture->least_ns)
        return;
    picture->count++;
    *kept = (struct long_frame){
        .id = frame->id,
        .thread_id = track->thread_id,
        .code_id = frame->code_id,
        .start_ns = frame->start_ns,
        .ns = ns,
        .depth = depth,
    };
    if (picture->count == 2 * LONGEST)
        keep_longest_frames(picture);
}

struct rows {
    struct json json;
    struct map codes, threads; /* ids that occur in the rows, whose names are written at the end */
};

static void write_row(struct rows *rows, size_t count, const int64_t *values)
{
    struct json *json = &rows->json;

    json_list(json, NULL);
    for (size_t i = 0; i < count; i++)
        json_integer(json, NULL, values[i]);
    json_end(json);
}

/* Note that the names of THREAD_ID and CODE_ID must be written. */
static void mark_needed_names(struct rows *rows, int64_t thread_id, int64_t code_id)
{
    *map_put(&rows->threads, thread_id) = 1;
    *map_put(&rows->codes, code_id) = 1;
}

/* Write a row of the timeline: thread, code, start, length, and two more values. */
static void write_timeline_row(struct rows *rows, const int64_t values[6])
{
    mark_needed_names(rows, values[0], values[1]);
    write_row(rows, 6, values);
}

/* Write one column of QUERY's current row. Control characters in a text become escapes. */
static void write_row_member(struct rows *rows, struct query *query, int column)
{
    struct json *json = &rows->json;
    enum query_type type = query_type(query, column);
    const char *text;
    char *safe;
    size_t bytes;

    if (type != QUERY_TEXT) {
        json_integer_or_null(json, NULL, type == QUERY_INTEGER, query_integer(query, column));
        return;
    }
    text = query_text(query, column, &bytes);
    safe = say_escape(text, bytes);
    json_string(json, NULL, safe);
    free(safe);
}

static void write_timeline_rows(struct rows *rows, struct picture *picture)
{
    struct json *json = &rows->json;
    struct report *report = picture->report;

    json_list(json, "frames");
    for (size_t i = 0; i < picture->count; i++) {
        const struct long_frame *f = &picture->frames[i];
        const int64_t values[] = {
            f->thread_id, f->code_id, f->start_ns, f->ns, f->depth, f->id,
        };
        write_timeline_row(rows, values);
    }
    json_end(json);
    json_list(json, "compiles");
    db_rows(query, report->db, schema_statement("report/picture_compiles"))
    {
        mark_needed_names(rows, query_integer(query, 0), query_integer(query, 1));
        json_list(json, NULL);
        for (int i = 0; i < 4; i++)
            json_integer(json, NULL, query_integer(query, i));
        write_row_member(rows, query, 4);
        write_row_member(rows, query, 5);
        json_end(json);
    }
    json_end(json);
    json_list(json, "misses");
    for (size_t i = 0; i < report->mark_count; i++) {
        const struct counted_call *m = &report->marks[i];
        const int64_t values[] = {
            m->thread_id, m->code_id, m->start_ns, 0, m->outcome, m->lookup_id,
        };
        write_timeline_row(rows, values);
    }
    json_end(json);
    json_list(json, "outcomes");
    for (int o = 0; o < OUTCOMES; o++)
        json_string(json, NULL, outcome_to_word(o));
    json_end(json);
}

/* Write the boxes of the functions that NODE called, and of those that these called, the longest
 * first. *LEFT is the number of boxes that may still be written. */
static void write_flame_rows(struct rows *rows, const struct node *nodes, uint32_t node, int *left)
{
    int64_t least_ns = nodes[0].total_ns / 4000 + 1;

    for (uint32_t at = nodes[node].child; at && nodes[at].total_ns >= least_ns && (*left)-- > 0;
         at = nodes[at].sibling) {
        const struct node *n = &nodes[at];
        const int64_t values[] = {
            n->depth - 1,
            n->code_id,
            n->total_ns,
            n->self_ns > 0 ? n->self_ns : 0,
        };
        *map_put(n->parent ? &rows->codes : &rows->threads, n->code_id) = 1;
        write_row(rows, 4, values);
        if (n->depth < FLAME_DEPTH)
            write_flame_rows(rows, nodes, at, left);
    }
}

/* Write the JSON member KEY: an object with the name of each id in USED. STATEMENT selects the name
 * of an id. */
static void write_used_names(struct rows *rows, struct db *db, const char *key,
                             const char *statement, const struct map *used)
{
    json_object(&rows->json, key);
    db_rows(query, db, schema_statement(statement))
    {
        if (!map_get(used, query_integer(query, 0)))
            continue;
        json_list(&rows->json, query_text(query, 0, NULL));
        for (int i = 1; i < 4; i++)
            write_row_member(rows, query, i);
        json_end(&rows->json);
    }
    json_end(&rows->json);
}

struct picture *picture_read(struct report *report)
{
    struct picture *picture = calloc(1, sizeof *picture);

    report->progress.what = "drawing";
    picture->report = report;
    picture->least_ns = -1;
    picture->end_ns = stacks_find_end_time(report->db);
    picture->last_frame = db_integer(report->db, 0, "SELECT MAX(frame_id) FROM frame");
    stacks_visit_frames(report->db, &picture->stacks,
                        &(struct walk){.context = picture,
                                       .fold = true,
                                       .tick = count_frame_and_continue,
                                       .push = keep_frame_for_picture});
    keep_longest_frames(picture);
    tree_link_children(&picture->stacks.tree);
    return picture;
}

char *picture_make_json(struct picture *picture)
{
    struct report *report = picture->report;
    const struct tree *tree = &picture->stacks.tree;
    char *made = NULL;
    size_t bytes;
    struct rows rows = {.json = {.out = open_memstream(&made, &bytes), .compact = true}};
    int left = BOXES;

    json_object(&rows.json, NULL);
    json_integer(&rows.json, "span", picture->end_ns > 0 ? picture->end_ns : 1);
    write_timeline_rows(&rows, picture);
    json_integer(&rows.json, "all", tree->nodes.at[0].total_ns);
    json_list(&rows.json, "boxes");
    write_flame_rows(&rows, tree->nodes.at, 0, &left);
    json_end(&rows.json);
    write_used_names(&rows, report->db, "codes", "report/picture_codes", &rows.codes);
    write_used_names(&rows, report->db, "threads", "report/picture_threads", &rows.threads);
    json_end(&rows.json);
    fclose(rows.json.out);
    map_free(&rows.codes);
    map_free(&rows.threads);
    return made;
}

/* ---- finding the longest call of each code object ------------------------ */

static int compare_nodes_longest_first(const void *a, const void *b)
{
    const struct node *x = *(const struct node *const *)a;
    const struct node *y = *(const struct node *const *)b;
    int order = list_compare_numbers(y->longest_ns, x->longest_ns);

    return order ? order : list_compare_numbers(x->longest_id, y->longest_id);
}

char *picture_longest_calls(const struct picture *picture)
{
    const struct tree *tree = &picture->stacks.tree;
    LIST(const struct node *) longest = {0};
    struct map seen = {0}; /* code_id */
    char *made = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&made, &bytes), .compact = true};
    int left = LONGEST_CODES;

    for (size_t i = 1; i < tree->nodes.count; i++)
        if (tree->nodes.at[i].parent)
            *list_add(&longest) = &tree->nodes.at[i];
    list_sort(&longest, compare_nodes_longest_first);
    json_list(&json, NULL);
    for (size_t i = 0; i < longest.count && left; i++) {
        const struct node *node = longest.at[i];
        int64_t *is_seen = map_put(&seen, node->code_id);
        if (*is_seen)
            continue;
        *is_seen = 1;
        left--;
        json_integer(&json, NULL, node->longest_id);
    }
    json_end(&json);
    fclose(json.out);
    list_free(&longest);
    map_free(&seen);
    return made;
}

void picture_free(struct picture *picture)
{
    stacks_free(&picture->stacks);
    free(picture);
}

/* cmd/export/spans.c -- writes spans as profiles of speedscope.
 *
 * The events of a profile must nest, and spans of tasks overlap on their thread. So the spans of a
 * thread are divided into lanes, in each of which they nest, and each lane is a profile:
 *
 *     lane 1    [request  [parse] [query      ]]
 *     lane 2         [request     [parse  ]         ]
 *
 * A span is put into the first lane in which all open spans end when it ends, or later. */
#include "cmd/export/spans.h"

#include <inttypes.h>

#include "lib/json.h"
#include "lib/list.h"
#include "schema.h"
#include "trace/db.h"

enum { LANES = 100 /* the most lanes of a thread */ };

struct item {
    /* name: the index of the span's name among all names of spans */
    int64_t start_ns, end_ns, name;
};

struct lane {
    LIST(struct item) items; /* the spans of the lane, in order of start_ns */
    /* spans that were still open when the newest span of the lane began, outermost first */
    LIST(struct item) open;
};

struct lanes {
    struct lane at[LANES];
    size_t used;
    int64_t left_out; /* number of spans that fitted into no lane */
};

static struct item *find_innermost_open_span(struct lane *lane)
{
    return lane->open.count ? &lane->open.at[lane->open.count - 1] : NULL;
}

/* Does the span ITEM nest in the open spans of LANE? Open spans that ended before ITEM began are
 * removed from the lane. */
static bool fits_in_lane(struct lane *lane, const struct item *item)
{
    while (lane->open.count && find_innermost_open_span(lane)->end_ns <= item->start_ns)
        lane->open.count--;
    return !lane->open.count || find_innermost_open_span(lane)->end_ns >= item->end_ns;
}

static void add_span_to_lane(struct lanes *lanes, struct item item)
{
    size_t at = 0;

    while (at < lanes->used && !fits_in_lane(&lanes->at[at], &item))
        at++;
    if (at == LANES) {
        lanes->left_out++;
        return;
    }
    if (at == lanes->used)
        lanes->used++;
    *list_add(&lanes->at[at].items) = item;
    *list_add(&lanes->at[at].open) = item;
}

static void write_span_event(struct json *json, const char *type, int64_t frame, int64_t at)
{
    json_end_line(json);
    json_object(json, NULL);
    json_string(json, "type", type);
    json_integer(json, "frame", frame);
    json_integer(json, "at", at);
    json_end(json);
}

/* Write the end of each open span of LANE that ends at AT or earlier. FIRST is the index of the
 * first span name in shared.frames. */
static void write_span_ends(struct json *json, struct lane *lane, int64_t first, int64_t at)
{
    while (lane->open.count && find_innermost_open_span(lane)->end_ns <= at) {
        write_span_event(json, "C", first + find_innermost_open_span(lane)->name,
                         find_innermost_open_span(lane)->end_ns);
        lane->open.count--;
    }
}

/* Write LANE as a profile: lane NUMBER of the spans of THREAD. FIRST is the index of the first span
 * name in shared.frames. */
static void write_lane_as_profile(struct json *json, struct lane *lane, int64_t first,
                                  const char *thread, size_t number)
{
    char *name = say_print(number ? "%s: spans %zu" : "%s: spans", thread, number + 1);
    int64_t end_ns = lane->items.at[0].start_ns;

    list_each(item, &lane->items)
        if (item->end_ns > end_ns)
            end_ns = item->end_ns;
    json_end_line(json);
    json_object(json, NULL);
    json_string(json, "type", "evented");
    json_string(json, "name", name);
    json_string(json, "unit", "nanoseconds");
    json_integer(json, "startValue", lane->items.at[0].start_ns);
    json_integer(json, "endValue", end_ns);
    json_list(json, "events");
    lane->open.count = 0;
    list_each(item, &lane->items) {
        write_span_ends(json, lane, first, item->start_ns);
        write_span_event(json, "O", first + item->name, item->start_ns);
        *list_add(&lane->open) = *item;
    }
    write_span_ends(json, lane, first, INT64_MAX);
    json_end(json);
    json_end(json);
    free(name);
}

void spans_write_names(struct db *db, struct json *json)
{
    db_rows(query, db, schema_statement("export/span_names"))
    {
        json_end_line(json);
        json_object(json, NULL);
        json_string(json, "name", query_text(query, 0, NULL));
        json_end(json);
    }
}

void spans_write_profiles(struct db *db, struct json *json, int64_t first)
{
    struct lanes lanes = {0};
    struct query *spans = db_query(db, schema_statement("export/thread_spans"));

    db_rows(thread, db, schema_statement("export/span_threads"))
    {
        lanes.used = 0;
        query_reset(spans);
        query_bind_integer(spans, 1, query_integer(thread, 0));
        while (query_step(spans))
            add_span_to_lane(&lanes, (struct item){query_integer(spans, 0), query_integer(spans, 1),
                                                   query_integer(spans, 2)});
        for (size_t i = 0; i < lanes.used; i++) {
            write_lane_as_profile(json, &lanes.at[i], first, query_text(thread, 1, NULL), i);
            list_free(&lanes.at[i].items);
            list_free(&lanes.at[i].open);
        }
    }
    if (lanes.left_out)
        say_error("%s: %" PRId64 " spans of threads with more than %d at once are left out",
                  db_get_path(db), lanes.left_out, LANES);
    query_close(spans);
}

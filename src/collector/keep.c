/* collector/keep.c -- keeps a recording within its bounds of time and bytes. See collector/keep.h.
 *
 * Runs in: the collector. */
#include "collector/keep.h"

#include <limits.h>
#include <sys/param.h>
#include <sys/stat.h>

#include "collector/trace_files.h"
#include "schema.h"
#include "vocabulary.h"

#define SWEEP_NS UINT64_C(5000000000)

enum {
    PAGE = FRAME_PAGE_BYTES,
    LOG_SHARE = 16,     /* SQLite's log may take 1/16 of the bound, but not more than LOG_MOST */
    LOG_MOST = 4 << 20, /* the most bytes that SQLite's log may take */
    /* of the pages of frames at most one in 128 is an interior page, not a leaf */
    TREE_SHARE = 128,
    /* number of pages of frames that are always kept, even if they exceed the bound */
    PAGES_LEAST = 256,
    /* when frames take only PAGES_LEAST pages, a step drops the oldest 1/16 of other tables'
     * rows */
    STEP_SHARE = 16,
    SLACK_PAGES = 64, /* pages that may be written between two calls of keep_drop_old_rows() */
    LIVE_WEIGHT = 4,  /* how many times trace.db counts against the bound: see keep.h */
    ROW_BYTES = 100,  /* the most bytes of a row that can be dropped */
};

/* Store old pages before they are full: a thread with few frames would fill its page too slowly. */
static void store_old_pages(void *context)
{
    struct collector *c = context;

    for (struct traced *t = c->traced; t; t = t->next)
        list_each(r, &t->rings)
            decode_store_old_page(&r->decoder);
}

static void put_long_frame(void *context, uint64_t id, const struct frame_row *row)
{
    struct collector *c = context;

    recorder_put(c->recorder, LONG_FRAME,
                 {
                     .frame_id = id,
                     .thread_id = row->thread_id,
                     .parent_id = row->parent_id,
                     .code_id = row->code_id,
                     .kind = row->kind,
                     .outcome = row->outcome,
                     .start_ns = (int64_t)row->start_ns,
                     .end_ns = row->ended ? (int64_t)row->end_ns : ROW_NONE,
                     .cache_entry_id = row->cache_entry_id,
                     .exit = row->ended ? row->exit : ROW_NONE,
                 });
}

static void commit_long_frames(void *context)
{
    struct collector *c = context;

    recorder_commit_if_unrepeatable(c->recorder);
}

void keep_read_bounds(struct collector *c)
{
    struct keep *keep = &c->keep;
    uint64_t from_ns = 0;

    keep->ns = c->session->file->keep_ns;
    keep->bytes = c->session->file->keep_bytes;
    if (c->resumed)
        recorder_read_keep_bounds(c->session->trace, &keep->ns, &keep->bytes, &from_ns);
    c->state.file->window.from_ns = MAX(c->state.file->window.from_ns, from_ns);
    keep->from_ns = c->state.file->window.from_ns;
    keep->ended = c->state.file->window.finished;
}

struct page_window keep_page_window(struct collector *c)
{
    return (struct page_window){
        .on = keep_is_set(&c->keep),
        .most = UINT64_MAX,
        .is_alone = c->salvaged,
        .begin = store_old_pages,
        .row = put_long_frame,
        .rows_end = commit_long_frames,
        .context = c,
    };
}

/* Return how many bytes SQLite's log may take. */
static uint64_t most_bytes_of_log(const struct keep *keep)
{
    return keep->bytes ? MIN(keep->bytes / LOG_SHARE, (uint64_t)LOG_MOST) : LOG_MOST;
}

/* Set pages.keep.most: how many pages of frames the bound has room for. */
static void set_page_limit(struct collector *c)
{
    struct keep *keep = &c->keep;
    uint64_t rest = LIVE_WEIGHT * keep->live_bytes + most_bytes_of_log(keep) + SLACK_PAGES * PAGE;
    uint64_t pages = keep->bytes > rest ? (keep->bytes - rest) / PAGE : 0;

    if (!keep->bytes)
        return;
    pages -= pages / TREE_SHARE;
    c->pages.keep.most = MAX(pages, (uint64_t)PAGES_LEAST);
}

/* Return the size of trace.db without its log. */
static uint64_t size_of_live_trace(struct collector *c)
{
    return (uint64_t)recorder_query_number(c->recorder, "PRAGMA page_count") * PAGE;
}

static uint64_t used_bytes_of_live_trace(struct collector *c)
{
    return keep_is_set(&c->keep)
               ? size_of_live_trace(c) -
                     (uint64_t)recorder_query_number(c->recorder, "PRAGMA freelist_count") * PAGE
               : 0;
}

void keep_begin(struct collector *c)
{
    struct keep *keep = &c->keep;

    if (!keep_is_set(keep))
        return;
    keep->trim = keep_drop_old_rows;
    recorder_run(c->recorder, "recorder/keep_begin");
    recorder_bound_log(c->recorder, (int)(most_bytes_of_log(keep) / 2 / PAGE));
    if (keep->ns)
        recorder_set_meta(c->recorder, "keep_ns", NULL, (int64_t)keep->ns);
    if (keep->bytes)
        recorder_set_meta(c->recorder, "keep_bytes", NULL, (int64_t)keep->bytes);
    recorder_set_meta(c->recorder, "kept_from_ns", NULL, (int64_t)keep->from_ns);
    keep->live_bytes = size_of_live_trace(c);
    set_page_limit(c);
}

/* Return a time such that 1/16 of the kept time is before it, or 1/16 of the kept lookups if that
 * is earlier: the last lookups may be from long ago. */
static uint64_t choose_next_start_of_kept_time(struct collector *c, uint64_t last_ns)
{
    const uint64_t from_ns = c->keep.from_ns;
    const uint64_t by_time = from_ns + (last_ns - from_ns) / STEP_SHARE;
    const uint64_t by_lookups =
        (uint64_t)recorder_query_number(c->recorder, schema_statement("recorder/keep_step"));

    return by_lookups > from_ns ? MIN(by_lookups, by_time) : by_time;
}

/* Drop pages of frames that are too old, and set keep->from_ns: the time since which all events are
 * kept. */
static void drop_frames_before_new_start(struct collector *c)
{
    struct keep *keep = &c->keep;
    const uint64_t last_ns = c->decode.last_ns;
    const uint64_t most = c->pages.keep.most;

    if (keep->ns && last_ns > keep->ns)
        c->pages.keep.before_ns = last_ns - keep->ns;
    store_old_pages(c);
    frame_pages_drop_old_pages(&c->pages);
    keep->from_ns = MAX(keep->from_ns, c->state.file->window.from_ns);
    keep->from_ns = MAX(keep->from_ns, c->pages.keep.before_ns);
    if (!keep->bytes || most > PAGES_LEAST)
        return;
    /* Frames cannot be dropped any more, but rows of other tables exceed the bound: drop the oldest
     * of them. */
    if (LIVE_WEIGHT * used_bytes_of_live_trace(c) + most * PAGE > keep->bytes &&
        last_ns > keep->from_ns)
        keep->from_ns = choose_next_start_of_kept_time(c, last_ns);
}

/* Drop old rows of tables that are not in order of time, which means to read the whole tables. */
static void drop_rows_of_unordered_tables(struct collector *c)
{
    recorder_run(c->recorder, "recorder/keep_sweep");
    c->keep.swept_ns = clock_monotonic_ns();
}

/* Set keep->over_bytes: how far rows that are never dropped exceed the bound. */
static void set_bytes_over_bound(struct collector *c)
{
    struct keep *keep = &c->keep;
    uint64_t rows =
        (uint64_t)recorder_query_number(c->recorder, schema_statement("recorder/kept_rows"));
    uint64_t used = used_bytes_of_live_trace(c);
    uint64_t always = used > rows * ROW_BYTES ? used - rows * ROW_BYTES : 0;
    uint64_t needed = LIVE_WEIGHT * always + most_bytes_of_log(keep) + PAGES_LEAST * PAGE;

    if (keep->bytes && needed > keep->bytes)
        keep->over_bytes = needed - keep->bytes;
}

void keep_drop_old_rows(struct collector *c)
{
    struct keep *keep = &c->keep;

    if (!keep_is_set(keep) || keep->ended)
        return;
    keep->rows = 0;
    if (recorder_is_log_held(c->recorder))
        return; /* deleting rows would only make the log longer, because SQLite cannot reuse it */
    keep->live_bytes = size_of_live_trace(c);
    set_page_limit(c);
    drop_frames_before_new_start(c);
    recorder_set_meta(c->recorder, "kept_from_ns", NULL, (int64_t)keep->from_ns);
    recorder_set_meta(c->recorder, "kept_frame_id", NULL,
                      (int64_t)frame_id(c->state.file->window.low, 0));
    recorder_set_meta(c->recorder, "kept_frame_ns", NULL, (int64_t)c->state.file->window.from_ns);
    recorder_run(c->recorder, "recorder/keep_lookups");
    if (clock_monotonic_ns() - keep->swept_ns > SWEEP_NS)
        drop_rows_of_unordered_tables(c);
}

void keep_end(struct collector *c)
{
    struct keep *keep = &c->keep;

    if (!keep_is_set(keep))
        return;
    if (recorder_is_log_held(c->recorder))
        recorder_bound_log(c->recorder, INT_MAX);
    /* make room for the tables, because the disk was full */
    if (!keep->ended && c->pages.keep.shrunk)
        frame_pages_drop_oldest(&c->pages,
                                2 * SLACK_PAGES + 2 * LIVE_WEIGHT * size_of_live_trace(c) / PAGE);
    keep_drop_old_rows(c);
    keep->ended = true; /* frame_pages_finish_file() comes next, so no more pages may be dropped */
    drop_rows_of_unordered_tables(c);
    set_bytes_over_bound(c);
    if (keep->over_bytes)
        recorder_set_meta(c->recorder, "keep_over_bytes", NULL, (int64_t)keep->over_bytes);
    if (keep->uncounted)
        collector_record_loss(
            c, 0, keep->uncounted,
            "reader: while it held a transaction on the trace open, lookups could not "
            "be stored (--keep bounds the log, too)");
    if (c->pages.keep.shrunk)
        collector_record_loss(
            c, 0, 0,
            "disk: the trace could not grow (%s): --keep kept fewer frames than it "
            "allows",
            strerror(c->pages.keep.shrunk));
}

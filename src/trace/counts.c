/* trace/counts.c -- the calls of a trace, counted by function and process. See trace/counts.h. */
#include "trace/counts.h"

#include "lib/times.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/scan.h"

enum {
    TICK_ROWS = 1 << 15,
    SKIPPED_COLUMNS = 7, /* number of columns of the statement counts/skipped */
};

/* The process_id of a call whose thread has no row in `thread`. end_trace_part() replaces it by the
 * process of the call's code object. */
static const int64_t NO_PROCESS = INT64_MIN;

struct count *counts_find_of_process(const struct counts *counts, int64_t code_id,
                                     int64_t process_id)
{
    int64_t *first = map_get(&counts->by_code, code_id);

    for (size_t at = first ? (size_t)*first : 0; at; at = counts->all.at[at - 1].next)
        if (counts->all.at[at - 1].process_id == process_id)
            return &counts->all.at[at - 1];
    return NULL;
}

static int64_t find_process_of_thread(const struct counts *counts, int64_t thread_id)
{
    int64_t *process = map_get(&counts->threads, thread_id);

    return process ? *process : NO_PROCESS;
}

struct count *counts_find_of_thread(const struct counts *counts, int64_t code_id, int64_t thread_id)
{
    return counts_find_of_process(counts, code_id, find_process_of_thread(counts, thread_id));
}

/* Like counts_find_of_process(), but add a count if there is none. */
static struct count *find_or_add_count(struct counts *counts, int64_t code_id, int64_t process_id)
{
    int64_t never = counts->warmup ? INT64_MAX : INT64_MIN;
    int64_t *first;
    struct count *count = counts_find_of_process(counts, code_id, process_id);

    if (count)
        return count;
    first = map_put(&counts->by_code, code_id);
    count = list_add(&counts->all);
    *count = (struct count){.code_id = code_id,
                            .process_id = process_id,
                            .turned_away = true,
                            .next = (unsigned)*first,
                            .warm_id = never,
                            .warm_ns = never};
    *first = (int64_t)counts->all.count;
    return count;
}

/* Return the record of those calls of COUNT that had OUTCOME. If there is no record,
 * it is created. */
static struct count_decided *find_or_add_outcome(struct counts *counts, struct count *count,
                                                 enum outcome outcome)
{
    struct count_decided *decided;

    for (unsigned at = count->decided; at; at = decided->next)
        if ((decided = &counts->decided.at[at - 1])->outcome == outcome)
            return decided;
    decided = list_add(&counts->decided);
    *decided = (struct count_decided){.outcome = outcome, .next = count->decided};
    count->decided = (unsigned)counts->decided.count;
    return decided;
}

struct count_calls counts_sum_calls_by_outcome(const struct counts *counts,
                                               const struct count *count)
{
    struct count_calls calls = {0};

    for (unsigned at = count->decided; at; at = counts->decided.at[at - 1].next) {
        const struct count_decided *decided = &counts->decided.at[at - 1];
        calls.calls[decided->outcome] = decided->calls;
        calls.times_ns[decided->outcome] = decided->time_ns;
    }
    return calls;
}

void counts_show_progress(struct counts *counts, int64_t lookup_id)
{
    if (!(++counts->rows % TICK_ROWS))
        progress_tick(counts->progress, lookup_id, counts->last_id);
}

/* Count one call. VALUES is a row of `lookup`; lookup_id is 0 if the call had no lookup. */
static bool count_call_of_row(void *context, const int64_t *values, unsigned nulls)
{
    const struct row_lookup *l = (const void *)values;
    int64_t id = (int64_t)l->lookup_id;
    int64_t code_id = (int64_t)l->code_id;
    int64_t thread_id = (int64_t)l->thread_id;
    struct counts *counts = context;
    enum outcome outcome = outcome_from_number(l->outcome);
    struct count_decided *decided;
    struct count *count;
    bool looked_up;

    /* leave out a skipped call, because count_calls_given_up() counts it */
    if (id && outcome == OUTCOME_SKIP)
        return true;
    counts_show_progress(counts, id);
    count = find_or_add_count(counts, code_id, find_process_of_thread(counts, thread_id));
    looked_up = outcome == OUTCOME_HIT || outcome_facts[outcome].missed;
    if (looked_up && outcome != OUTCOME_DECLINED)
        count->turned_away = false;
    count->seen++;
    if (count->seen <= counts->warmup)
        return true;
    if (counts->warmup && count->seen == counts->warmup + 1) {
        count->warm_id = id ? id - 1 : INT64_MAX;
        count->warm_ns = l->start_ns;
    }
    decided = find_or_add_outcome(counts, count, outcome);
    decided->calls++;
    decided->time_ns = times_add(decided->time_ns, l->duration_ns);
    if (counts->each)
        counts->each(counts->context,
                     &(struct counted_call){id, thread_id, code_id, l->start_ns, outcome});
    return true;
}

/* Count the lookups of the current part that `run --keep` has dropped. Their sums are in the table
 * `lookup_count`. They were before all stored lookups, but their order is not known. So the first
 * rows are taken as the warm-up. */
static void count_dropped_lookups(struct counts *counts)
{
    db_rows(row, counts->db, schema_statement("counts/dropped"), counts->now.from[COUNT_CODES],
            counts->now.to[COUNT_CODES], NO_PROCESS)
    {
        struct count *count =
            find_or_add_count(counts, query_integer(row, 1), query_integer(row, 0));
        enum outcome outcome = outcome_from_number(query_integer(row, 2));
        int64_t lookups = query_integer(row, 3);
        int64_t warming = counts->warmup - count->seen;
        bool is_miss = outcome_facts[outcome].missed && outcome != OUTCOME_DECLINED;
        struct count_decided *decided;
        if (outcome == OUTCOME_HIT || is_miss)
            count->turned_away = false;
        count->seen = times_add(count->seen, lookups);
        if (warming >= lookups)
            continue;
        decided = find_or_add_outcome(counts, count, outcome);
        decided->calls = times_add(decided->calls, lookups - (warming > 0 ? warming : 0));
        decided->time_ns = times_add(decided->time_ns, query_integer(row, 4));
    }
}

/* Note that the compiler compiled or examined the code object CODE_ID: clear `turned_away` in the
 * object's counts of all processes. */
static void note_examined_code(struct counts *counts, int64_t code_id)
{
    int64_t *first = map_get(&counts->by_code, code_id);

    for (size_t at = first ? (size_t)*first : 0; at; at = counts->all.at[at - 1].next)
        counts->all.at[at - 1].turned_away = false;
}

/* Read the threads of the current part, and the process of each thread. */
static void read_threads_of_part(struct counts *counts)
{
    int64_t from = counts->now.from[COUNT_THREADS];
    int64_t to = counts->now.to[COUNT_THREADS];

    db_rows(row, counts->db, schema_statement("counts/threads"), from, to)
    {
        int64_t *process = map_put(&counts->threads, query_integer(row, 0));
        *process = query_integer(row, 1);
    }
}

/* Begin the next part of a merged trace: store the range of its ids. The range ends where the
 * next part begins; the last range has no end. Parts do not overlap even if the table
 * `merged` is damaged. */
static void begin_trace_part(struct counts *counts)
{
    struct count_part *part = &counts->now;

    counts->last_part = !counts->parts || !query_step(counts->parts);
    for (int i = 0; i < COUNT_IDS; i++) {
        int64_t to = INT64_MAX;
        if (!counts->last_part)
            to = query_integer(counts->parts, i);
        part->from[i] = part->to[i];
        if (to > part->from[i])
            part->to[i] = to;
    }
    read_threads_of_part(counts);
    count_dropped_lookups(counts);
}

/* Count the calls of functions that the compiler has given up. These calls have no
 * row in `lookup`. */
static void count_calls_given_up(struct counts *counts)
{
    const int64_t *from = counts->now.from;
    const int64_t *to = counts->now.to;
    int64_t call[SKIPPED_COLUMNS];

    db_rows(row, counts->db, schema_statement("counts/skipped"), from[COUNT_CODES], to[COUNT_CODES],
            from[COUNT_FRAMES], to[COUNT_FRAMES])
    {
        for (int i = 0; i < SKIPPED_COLUMNS; i++)
            call[i] = query_integer(row, i);
        count_call_of_row(counts, call, 0);
    }
}

/* End the current part: count calls that have no lookup, because the compiler has given up their
 * function, and find the functions that the compiler examined. Then call counts->part, and empty
 * the counts for the next part. */
static void end_trace_part(struct counts *counts)
{
    int64_t from = counts->now.from[COUNT_CODES];
    int64_t to = counts->now.to[COUNT_CODES];

    count_calls_given_up(counts);
    list_each(count, &counts->all) {
        if (!count->turned_away)
            note_examined_code(counts, count->code_id);
        if (count->process_id != NO_PROCESS)
            continue;
        db_rows(home, counts->db, "SELECT process_id FROM code WHERE code_id = ?1", count->code_id)
            count->process_id = query_integer(home, 0);
    }
    db_rows(compiled, counts->db, schema_statement("counts/examined"), from, to)
    {
        note_examined_code(counts, query_integer(compiled, 0));
    }
    counts->any = counts->any || counts->all.count;
    if (!counts->part)
        return;
    counts->part(counts->context, &counts->now);
    counts->all.count = counts->decided.count = 0;
    map_free(&counts->by_code);
    map_free(&counts->threads);
}

/* Count a lookup. If it belongs to a later part, end the current part first, and begin the next. */
static bool count_lookup(void *context, const int64_t *values, unsigned nulls)
{
    struct counts *counts = context;

    while (!counts->last_part && values[0] > counts->now.to[COUNT_LOOKUPS]) {
        end_trace_part(counts);
        begin_trace_part(counts);
    }
    return count_call_of_row(context, values, nulls);
}

bool counts_read(struct counts *counts, struct db *db, struct progress *progress)
{
    counts->progress = progress;
    counts->db = db;
    counts->last_id = db_integer(db, 0, "SELECT MAX(lookup_id) FROM lookup");
    for (int i = 0; i < COUNT_IDS; i++)
        counts->now.to[i] = INT64_MIN;
    counts->parts = counts->part ? db_query(db, schema_statement("counts/parts")) : NULL;
    begin_trace_part(counts);
    scan_rows(db, TABLE_lookup, count_lookup, counts);
    end_trace_part(counts);
    while (!counts->last_part) {
        begin_trace_part(counts);
        end_trace_part(counts);
    }
    query_close(counts->parts);
    return !db_has_failed(db);
}

void counts_free(struct counts *counts)
{
    list_free(&counts->all);
    list_free(&counts->decided);
    map_free(&counts->by_code);
    map_free(&counts->threads);
}

struct call_sums calls_sum_outcomes(const int64_t calls[OUTCOMES])
{
    struct call_sums sums = {.hits = calls[OUTCOME_HIT]};

    for (int o = 0; o < OUTCOMES; o++) {
        sums.all += calls[o];
        sums.asked += outcome_facts[o].asked ? calls[o] : 0;
        sums.missed += outcome_facts[o].missed ? calls[o] : 0;
        sums.python += outcome_facts[o].python ? calls[o] : 0;
    }
    return sums;
}

/* cmd/ranks.c -- `dyntrace ranks`: finds which rank of a job differs from the others, where it
 * differs first, and what that cost.
 *
 * The ranks of a job should do the same, so what most ranks do counts as intended. Only one trace
 * is open at a time. Its ranks, compiles and longer waits are copied into a database in memory
 * (schemas/ranks.sql).
 *
 * A compile has a key, which is made of its outcome, its cause, its graph breaks, its entry's
 * guards and the function's code. A rank differs if its nth compile of a function has another key
 * than in most ranks, or is missing. If only the guards differ, the two traces are opened again to
 * find the guard.
 *
 * Process-specific parts of texts, such as addresses, are not compared (trace/alike.h). */
#include "cmd/ranks.h"

#include <inttypes.h>

#include "command.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "lib/table.h"
#include "schema.h"
#include "trace/alike.h"
#include "trace/db.h"
#include "trace/result.h"
#include "trace/torch_words.h"
#include "trace/traces.h"

enum {
    LIMIT = 20,            /* the most rows of each table, unless --limit is given */
    FRAMES_READ = 5000000, /* a trace with more frames is not searched for waits */
};

/* Functions of torch/distributed/distributed_c10d.py in which ranks wait for each other. */
static const char collectives[] =
    "[\"init_process_group\",\"barrier\",\"monitored_barrier\",\"all_reduce\",\"all_gather\",\"all_"
    "gather_into_tensor\",\"all_gather_object\",\"reduce\",\"reduce_scatter\",\"reduce_scatter_"
    "tensor\",\"broadcast\",\"broadcast_object_list\",\"all_to_all\",\"all_to_all_single\","
    "\"gather\",\"scatter\",\"send\",\"recv\"]";

struct ranks {
    struct db *all;                               /* owned */
    struct query *rank, *function, *event, *wait; /* owned: the statements that insert a row */
    const char *glob;                             /* borrowed: the pattern of --function, or NULL */
    /* owned: paths of traces that could not be opened again, which has been reported */
    LIST(char *) gone;
    struct progress progress;
};

/* ---- hashes of what differs between compiles ----------------------------- */

/* Continue HASH with TEXT. Parts of TEXT that differ from process to process, such as addresses,
 * are left out. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    char *alike = text_alike(text);

    for (const char *at = alike; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    free(alike);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* Return a map from each cache entry of DB to a hash of its guards. This hash is the sum of the
 * hashes of single guards, so the order of the guards does not matter. */
static struct map hash_guards(struct db *db)
{
    struct map entries = {0};

    db_rows(row, db, schema_statement("ranks/guards"))
    {
        uint64_t hash = hash_text(0, query_text(row, 1, NULL));
        hash = hash_text(hash, query_text(row, 2, NULL));
        hash = hash_text(hash, query_text(row, 3, NULL));
        int64_t *sum = map_put(&entries, query_integer(row, 0));
        *sum = (int64_t)((uint64_t)*sum + hash);
    }
    return entries;
}

/* Bind the text in COLUMN of FROM's current row to PARAMETER of TO. Parts of the text that differ
 * from process to process are left out. */
static void bind_comparable_text(struct query *to, int parameter, struct query *from, int column)
{
    char *alike = NULL;

    if (query_type(from, column) != QUERY_NULL)
        alike = text_alike(query_text(from, column, NULL));
    query_bind_text(to, parameter, alike);
    free(alike);
}

/* ---- copying a trace's ranks, compiles and waits -------------------------------- */

/* The columns of the statement `events`, a row for each compile. Those up to EVENT_CODE are also
 * columns of the table `event`. */
enum event_column {
    EVENT_RANK,
    EVENT_FILENAME,
    EVENT_QUALNAME,
    EVENT_LINE,
    EVENT_BEGAN,
    EVENT_ENDED,
    EVENT_LOOKUP,
    EVENT_COMPILE,
    EVENT_OUTCOME,
    EVENT_SOURCE,
    EVENT_EXPECTED,
    EVENT_ACTUAL,
    EVENT_BREAKS,
    EVENT_MADE_BY,
    EVENT_CODE,
    EVENT_ENTRY,
};

/* Add the compile in the current row of EVENTS to the table `event`. GUARDS is the hash of its
 * entry's guards. */
static void insert_compile_event(struct ranks *ranks, struct db *db, struct query *events,
                                 uint64_t guards)
{
    uint64_t key = guards;

    bind_comparable_text(ranks->function, 1, events, EVENT_FILENAME);
    bind_comparable_text(ranks->function, 2, events, EVENT_QUALNAME);
    query_bind_column(ranks->function, 3, events, EVENT_LINE);
    query_execute(ranks->function);

    for (int i = EVENT_OUTCOME; i <= EVENT_BREAKS; i++)
        key = hash_text(key, query_text(events, i, NULL));
    query_bind_text(ranks->event, 1, db_get_path(db));
    query_bind_row(ranks->event, 2, events, EVENT_CODE + 1);
    bind_comparable_text(ranks->event, EVENT_FILENAME + 2, events, EVENT_FILENAME);
    bind_comparable_text(ranks->event, EVENT_QUALNAME + 2, events, EVENT_QUALNAME);
    bind_comparable_text(ranks->event, EVENT_SOURCE + 2, events, EVENT_SOURCE);
    bind_comparable_text(ranks->event, EVENT_BREAKS + 2, events, EVENT_BREAKS);
    bind_comparable_text(ranks->event, EVENT_MADE_BY + 2, events, EVENT_MADE_BY);
    query_bind_integer(ranks->event, EVENT_CODE + 3, (int64_t)guards);
    query_bind_integer(ranks->event, EVENT_CODE + 4, (int64_t)key);
    query_execute(ranks->event);
}

static void read_compile_events(struct ranks *ranks, struct db *db)
{
    struct map guards = hash_guards(db);
    struct query *events = db_query(db, schema_statement("ranks/events"));

    query_bind_text(events, 1, ranks->glob);
    while (query_step(events)) {
        const int64_t *entry = map_get(&guards, query_integer(events, EVENT_ENTRY));
        insert_compile_event(ranks, db, events, entry ? (uint64_t)*entry : 0);
    }
    query_close(events);
    map_free(&guards);
}

static void read_waits(struct ranks *ranks, struct db *db)
{
    struct query *waits = db_query(db, schema_statement("ranks/waits"));

    query_bind_text(waits, 1, collectives);
    while (query_step(waits)) {
        query_bind_text(ranks->wait, 1, db_get_path(db));
        query_bind_row(ranks->wait, 2, waits, 4);
        query_execute(ranks->wait);
    }
    query_close(waits);
}

/* Copy the ranks of the trace DB. Reports an error and returns false if the trace has no rank or
 * cannot be read. */
static bool read_trace_of_rank(struct ranks *ranks, struct db *db)
{
    struct query *processes = db_query(db, schema_statement("ranks/processes"));
    bool any = false;
    bool waited = false;

    query_bind_text(processes, 1, collectives);
    for (; query_step(processes); any = true) {
        query_bind_text(ranks->rank, 1, db_get_path(db));
        query_bind_row(ranks->rank, 2, processes, 18);
        waited = waited || query_type(processes, 16) != QUERY_NULL;
        query_execute(ranks->rank);
    }
    query_close(processes);
    if (any)
        read_compile_events(ranks, db);
    if (waited && db_meta_integer(db, "frame_count", 0) <= FRAMES_READ)
        read_waits(ranks, db);
    if (!any && !db_has_failed(db))
        say_error("%s: has no rank: no launcher said which it was", db_get_path(db));
    return any && !db_has_failed(db);
}

/* Copy the ranks of all TRACES. Returns false if there are no ranks to compare, or after reporting
 * an error. */
static bool read_all_traces(struct ranks *ranks, struct traces *traces)
{
    ranks->rank = db_query(ranks->all, schema_statement("ranks/rank"));
    ranks->function = db_query(ranks->all, schema_statement("ranks/function"));
    ranks->event = db_query(ranks->all, schema_statement("ranks/event"));
    ranks->wait = db_query(
        ranks->all,
        "INSERT INTO wait SELECT rank_id, ?3, ?4, ?5 FROM rank WHERE file = ?1 AND rank = ?2");
    for (struct db *db; !db_has_failed(ranks->all) && (db = traces_open_next(traces));
         db_close(db)) {
        progress_tick(&ranks->progress, (int64_t)traces->next, (int64_t)traces->paths.count);
        db_run(ranks->all, "SAVEPOINT one");
        if (!read_trace_of_rank(ranks, db) && db_run(ranks->all, "ROLLBACK TO one"))
            traces_count_left_out(1);
        db_run(ranks->all, "RELEASE one");
    }
    query_close(ranks->rank);
    query_close(ranks->function);
    query_close(ranks->event);
    query_close(ranks->wait);
    return !db_has_failed(ranks->all) && db_integer(ranks->all, 0, "SELECT COUNT(*) FROM rank");
}

/* ---- describing where and how ranks differ ------------------------------- */

/* How two compiles differ. If they differ in several ways, the first of these kinds is used. */
enum difference {
    DIFFERS_MISSING, /* the ranks that differ lack a compile that most ranks have */
    DIFFERS_EXTRA,   /* the ranks that differ have a compile that most ranks lack */
    DIFFERS_OUTCOME, /* the two compiles ended differently */
    DIFFERS_BREAKS,  /* the two compiles have different graph breaks */
    DIFFERS_CAUSE,   /* the two compiles were caused by different values */
    DIFFERS_GUARDS,  /* the guards of the two cache entries differ */
    DIFFERS_CODE,    /* only the code of the function differs */
};

/* One of the two compiles of a pair. Texts are borrowed, and "" if not known. */
struct side {
    bool there;
    const char *outcome, *breaks, *source, *expected, *actual;
    int64_t guards, code;
};

struct pair {
    int64_t differs_id, line,
        /* moved: the function's line in the ranks that lack the compile, if it has another line
         * there; otherwise 0 */
        moved;
    struct side here, most;
    /* borrowed: the graph break before the resume function, or "" for other functions */
    const char *made_by;
};

/* The texts that describe how a rank differs from most ranks. Owned. */
struct words {
    char *source, *here, *most;
};

static const char code_differs[] = "code differs";
static const char none_such[] = "no such compile";
static const char not_recorded[] = "not recorded";
static const char no_recompile[] = "no recompile";

static struct pair read_pair(struct query *row)
{
    struct pair pair = {
        .differs_id = query_integer(row, 0),
        .made_by = query_text(row, 17, NULL),
        .line = query_integer(row, 18),
        .moved = query_integer(row, 19),
    };

    for (int i = 0; i < 2; i++) {
        struct side *side = i ? &pair.most : &pair.here;
        side->there = query_integer(row, 1 + i);
        side->outcome = query_text(row, 3 + i, NULL);
        side->breaks = query_text(row, 5 + i, NULL);
        side->source = query_text(row, 7 + i, NULL);
        side->expected = query_text(row, 9 + i, NULL);
        side->actual = query_text(row, 11 + i, NULL);
        side->guards = query_integer(row, 13 + i);
        side->code = query_integer(row, 15 + i);
    }
    return pair;
}

static bool are_texts_alike(const char *one, const char *other)
{
    char *mine = text_alike(one);
    char *others = text_alike(other);
    bool same = !strcmp(mine, others);

    free(mine);
    free(others);
    return same;
}

static bool is_same_cause(const struct side *one, const struct side *other)
{
    return !strcmp(one->source, other->source) && are_texts_alike(one->expected, other->expected) &&
           are_texts_alike(one->actual, other->actual);
}

static enum difference classify_difference(const struct pair *pair)
{
    const struct side *here = &pair->here;
    const struct side *most = &pair->most;

    if (!here->there)
        return DIFFERS_MISSING;
    if (!most->there)
        return DIFFERS_EXTRA;
    if (strcmp(here->outcome, most->outcome) != 0)
        return DIFFERS_OUTCOME;
    if (strcmp(here->breaks, most->breaks) != 0)
        return DIFFERS_BREAKS;
    if (!is_same_cause(here, most))
        return DIFFERS_CAUSE;
    return here->guards != most->guards ? DIFFERS_GUARDS : DIFFERS_CODE;
}

/* Return words for OUTCOME, which tells how a compile ended. Borrowed. */
static const char *describe_outcome(const char *outcome)
{
    if (!strcmp(outcome, "limit"))
        return "limit reached";
    if (!strcmp(outcome, "declined"))
        return "declined: the compiler gave no code";
    if (!strcmp(outcome, "error"))
        return "the compiler raised an error";
    return *outcome ? outcome : "outcome not known";
}

/* Return VALUE, or OTHERWISE if VALUE is empty. */
static const char *text_or_replacement(const char *value, const char *otherwise)
{
    return *value ? value : otherwise;
}

/* Is LINE one of the lines of TEXT? */
static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);

    while (*text) {
        size_t own = strcspn(text, "\n");
        if (own == length && !strncmp(text, line, length))
            return true;
        text += own;
        if (*text)
            text++;
    }
    return false;
}

/* Return the first graph break in BREAKS, a line each, that OTHERS does not have, or "no such
 * break". The caller frees it. */
static char *find_other_break(const char *breaks, const char *others)
{
    char *copy = strdup(breaks);
    char *rest = copy;
    char *line;
    char *found = NULL;

    while (!found && (line = strsep(&rest, "\n")))
        if (*line && !has_line(others, line))
            found = strdup(line);
    free(copy);
    return found ? found : strdup("no such break");
}

/* Return the length of the first sentence of a graph break's REASON. torch's explanation and hints
 * follow it on indented lines; the statement `events` has joined all lines. */
static size_t headline_length(const char *reason)
{
    const char *end = strstr(reason, "   ");

    return end ? (size_t)(end - reason) : strlen(reason);
}

static void cut_to_headline(char *reason)
{
    reason[headline_length(reason)] = 0;
}

static bool has_same_headline(const char *one, const char *other)
{
    size_t length = headline_length(one);

    return length == headline_length(other) && !strncmp(one, other, length);
}

/* Is TEXT the actual value because of which SIDE recompiled? */
static bool is_actual_value_of_side(const struct side *side, const char *text)
{
    return *side->source && *side->actual && !strcmp(text, side->actual);
}

/* Describe a compile that only SIDE has: *ITS gets the text about SIDE, *OTHERS the text about the
 * other side, and WORDS->source the text about the compile. */
static void describe_lone_compile(const struct pair *pair, const struct side *side,
                                  struct words *words, char **its, char **others)
{
    bool was_compiled = !strcmp(side->outcome, "compiled");
    bool has_value = *side->source && *side->actual && was_compiled;

    if (pair->moved) {
        words->source = strdup(code_differs);
        *its = say_print("at line %" PRId64, pair->line);
        *others = say_print("at line %" PRId64, pair->moved);
    } else if (*pair->made_by) {
        words->source = strdup("graph break");
        *its = strdup(pair->made_by);
        cut_to_headline(*its);
        *others = strdup("no such break");
    } else {
        words->source = strdup(text_or_replacement(side->source, "compile"));
        *its = strdup(has_value ? side->actual : describe_outcome(side->outcome));
        *others = strdup(none_such);
    }
}

/* Describe how the causes of two compiles differ. */
static struct words describe_causes(const struct side *here, const struct side *most)
{
    const char *source = text_or_replacement(here->source, most->source);
    struct words words = {.source = strdup(text_or_replacement(source, "compile"))};
    bool same_source = !strcmp(here->source, most->source);

    if (same_source && are_texts_alike(here->actual, most->actual)) {
        words.here = say_print("expected %s", text_or_replacement(here->expected, not_recorded));
        words.most = say_print("expected %s", text_or_replacement(most->expected, not_recorded));
    } else if (same_source) {
        words.here = strdup(text_or_replacement(here->actual, not_recorded));
        words.most = strdup(text_or_replacement(most->actual, not_recorded));
    } else if (*here->source) {
        words.here = strdup(text_or_replacement(here->actual, not_recorded));
        words.most = strdup(text_or_replacement(here->expected, no_recompile));
    } else {
        words.here = strdup(no_recompile);
        words.most = strdup(text_or_replacement(most->actual, not_recorded));
    }
    return words;
}

static struct words describe_pair(const struct pair *pair, enum difference what)
{
    const struct side *here = &pair->here;
    const struct side *most = &pair->most;
    struct words words = {0};

    switch (what) {
    case DIFFERS_MISSING:
        describe_lone_compile(pair, most, &words, &words.most, &words.here);
        break;
    case DIFFERS_EXTRA:
        describe_lone_compile(pair, here, &words, &words.here, &words.most);
        if (is_actual_value_of_side(here, words.here) && *here->expected) {
            /* most ranks have the value that this rank's entry expects, so they hit an entry */
            free(words.most);
            words.most = strdup(here->expected);
        }
        break;
    case DIFFERS_OUTCOME:
        words.source =
            strdup(text_or_replacement(text_or_replacement(here->source, most->source), "outcome"));
        words.here = strdup(describe_outcome(here->outcome));
        words.most = strdup(describe_outcome(most->outcome));
        break;
    case DIFFERS_BREAKS:
        words.source = strdup("graph break");
        words.here = find_other_break(here->breaks, most->breaks);
        words.most = find_other_break(most->breaks, here->breaks);
        if (has_same_headline(words.here, words.most))
            break;
        cut_to_headline(words.here);
        cut_to_headline(words.most);
        break;
    case DIFFERS_CAUSE:
        words = describe_causes(here, most);
        break;
    case DIFFERS_GUARDS:
        words.source = strdup("guards");
        words.here = strdup("other guards than most");
        words.most = strdup("not looked up");
        break;
    case DIFFERS_CODE:
        words.source = strdup(code_differs);
        words.here = say_print("code %016" PRIx64, (uint64_t)here->code);
        words.most = say_print("code %016" PRIx64, (uint64_t)most->code);
        break;
    }
    return words;
}

/* Store the texts WORDS as the description of difference ID, and free them. Parts that differ from
 * process to process are hidden, unless the texts differ only in them. */
static void store_difference_texts(struct ranks *ranks, int64_t id, enum difference what,
                                   struct words words)
{
    struct query *to = db_query(ranks->all, schema_statement("ranks/described"));
    char *here = text_alike(words.here);
    char *most = text_alike(words.most);
    char *source = text_alike(words.source);
    bool same = !strcmp(here, most);

    query_bind_integer(to, 1, id);
    query_bind_integer(to, 2, what);
    query_bind_text(to, 3, source);
    query_bind_text(to, 4, same ? words.here : here);
    query_bind_text(to, 5, same ? words.most : most);
    query_step(to);
    query_close(to);
    free(here);
    free(most);
    free(source);
    free(words.source);
    free(words.here);
    free(words.most);
}

static void describe_differences(struct ranks *ranks)
{
    db_rows(row, ranks->all, schema_statement("ranks/pairs"))
    {
        struct pair pair = read_pair(row);
        enum difference what = classify_difference(&pair);
        struct words words = describe_pair(&pair, what);
        bool both = pair.here.code && pair.most.code;
        if (both && pair.here.code != pair.most.code && what != DIFFERS_CODE) {
            char *source = say_print("%s; %s", code_differs, words.source);
            free(words.source);
            words.source = source;
        }
        store_difference_texts(ranks, pair.differs_id, what, words);
    }
}

/* Open the trace FILE again. If that fails, the error is reported only once, and the trace counts
 * as left out. */
static struct db *reopen_trace(struct ranks *ranks, const char *file)
{
    struct db *db;

    list_each(gone, &ranks->gone)
        if (!strcmp(*gone, file))
            return NULL;
    db = db_open_single_trace(file, true);
    if (!db) {
        *list_add(&ranks->gone) = strdup(file);
        traces_count_left_out(1);
    }
    return db;
}

/* Store the guards of compile COMPILE_ID, which is in the trace FILE, as the guards of SIDE.
 * Returns false if the trace cannot be read. */
static bool read_guards_of_side(struct ranks *ranks, int side, const char *file, int64_t compile_id)
{
    struct db *db = reopen_trace(ranks, file);
    struct query *to = db_query(ranks->all, schema_statement("ranks/guard"));
    bool read = db;

    if (db)
        db_rows(row, db, schema_statement("ranks/compile-guards"), compile_id)
        {
            query_bind_integer(to, 1, side);
            query_bind_row(to, 2, row, 2);
            bind_comparable_text(to, 4, row, 2);
            bind_comparable_text(to, 5, row, 3);
            query_execute(to);
        }
    query_close(to);
    db_close(db);
    return read;
}

/* Find the guard in which sides 0 and 1 differ. The differing parts of its expression become the
 * description of difference ID. BEFORE is the description so far. */
static void explain_differing_guard(struct ranks *ranks, int64_t id, const char *before)
{
    bool other_code = !strncmp(before, code_differs, strlen(code_differs));

    db_rows(row, ranks->all, schema_statement("ranks/explain"))
    {
        const char *here = query_text(row, 1, NULL);
        const char *most = query_text(row, 2, NULL);
        bool both = *here && *most;
        struct words words = {
            .source = say_print("%s%s%s", other_code ? code_differs : "", other_code ? "; " : "",
                                text_or_replacement(query_text(row, 0, NULL), "guards")),
            .here = both ? text_differing(here, most)
                         : strdup(text_or_replacement(here, "no such guard")),
            .most = both ? text_differing(most, here)
                         : strdup(text_or_replacement(most, "no such guard")),
        };
        store_difference_texts(ranks, id, DIFFERS_GUARDS, words);
    }
}

static void explain_all_guards(struct ranks *ranks)
{
    db_rows(row, ranks->all, schema_statement("ranks/unexplained"), DIFFERS_GUARDS)
    {
        if (read_guards_of_side(ranks, 0, query_text(row, 1, NULL), query_integer(row, 2)) &&
            read_guards_of_side(ranks, 1, query_text(row, 3, NULL), query_integer(row, 4)))
            explain_differing_guard(ranks, query_integer(row, 0), query_text(row, 5, NULL));
        db_run(ranks->all, "DELETE FROM side_guard");
    }
}

/* Explain why a rank compiled in a call in which most ranks hit an entry. The rank has an entry
 * with the same label: store why this entry missed. Misses of the rank's other entries explain
 * nothing, because they may have happened in all ranks. */
static void explain_recompile(struct ranks *ranks, struct query *row, struct db *here,
                              struct db *there)
{
    struct query *hit = db_query(there, schema_statement("ranks/entry-hit"));
    struct query *cause = db_query(here, schema_statement("ranks/cause-of"));

    query_bind_column(hit, 1, row, 3);
    query_bind_column(hit, 2, row, 4);
    query_bind_column(hit, 3, row, 5);
    query_bind_column(hit, 4, row, 6);
    query_bind_column(hit, 5, row, 8);
    query_bind_column(cause, 1, row, 2);
    if (query_step(hit))
        query_bind_column(cause, 2, hit, 0);
    if (query_step(cause)) {
        struct words words = {
            .source = strdup(query_text(cause, 0, NULL)),
            .here = strdup(text_or_replacement(query_text(cause, 1, NULL), not_recorded)),
            .most = strdup(text_or_replacement(query_text(cause, 2, NULL), not_recorded)),
        };
        store_difference_texts(ranks, query_integer(row, 0), DIFFERS_CAUSE, words);
    }
    query_close(hit);
    query_close(cause);
}

static void explain_all_recompiles(struct ranks *ranks)
{
    db_rows(row, ranks->all, schema_statement("ranks/recompiled"), DIFFERS_EXTRA, DIFFERS_CAUSE)
    {
        struct db *here = reopen_trace(ranks, query_text(row, 1, NULL));
        struct db *there = here ? reopen_trace(ranks, query_text(row, 7, NULL)) : NULL;
        if (there)
            explain_recompile(ranks, row, here, there);
        db_close(here);
        db_close(there);
    }
}

/* ---- printing how the ranks differ --------------------------------------- */

/* Print the rows of the statement NAME under TITLE. Columns whose names end with _ns are durations,
 * which are printed with a unit unless JSON. Returns the number of rows. */
static int64_t print_rows_of_statement(struct db *all, const char *name, const char *title,
                                       int64_t limit, bool json)
{
    struct query *query = db_query(all, schema_statement(name));
    const int columns = query_columns(query);
    struct arena names = {0};
    const char *heads[columns + 1];
    struct table *table = NULL;
    char human[TABLE_HUMAN];
    int64_t rows = 0;

    for (int i = 0; i < columns; i++) {
        char *head = arena_print(&names, "%s", query_name(query, i));
        char *unit = strstr(head, "_ns");
        if (unit && !json)
            *unit = 0;
        heads[i] = head;
    }
    query_bind_integer(query, 1, limit);
    query_bind_integer(query, 2, json);
    for (; query_step(query); rows++) {
        if (!rows && title)
            printf("\n%s\n", title);
        if (!table)
            table = table_open(stdout, table_format(stdout, json), columns, heads);
        for (int i = 0; i < columns; i++)
            if (!json && strstr(query_name(query, i), "_ns") &&
                query_type(query, i) == QUERY_INTEGER)
                table_put_figure(table, table_duration(human, query_integer(query, i)));
            else
                result_put_cell(table, query, i);
    }
    if (table)
        table_close(table);
    else if (json)
        fputs("[]", stdout);
    query_close(query);
    arena_free(&names);
    return rows;
}

static void print_answer(struct db *all, int64_t limit)
{
    db_rows(row, all, schema_statement("ranks/about")) if (query_type(row, 1) != QUERY_NULL)
        printf("%-10s %s\n", query_text(row, 0, NULL), query_text(row, 1, NULL));
    print_rows_of_statement(all, "ranks/ranks", "Ranks, those that differ first", limit, false);
    if (!print_rows_of_statement(all, "ranks/differs",
                                 "Where ranks differ first, and what the others have", limit,
                                 false))
        puts("\nAll ranks compiled alike.");
    print_rows_of_statement(all, "ranks/storms", "Compiles for which others waited", limit, false);
}

/* Print the result as JSON. All rows are printed, even if LIMIT is smaller. */
static void print_answer_as_json(struct db *all, int64_t limit)
{
    static const char *const lists[] = {"ranks", "differs", "storms"};
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_begin_lines(&json);
    db_rows(row, all, schema_statement("ranks/about"))
        result_put_json_member(&json, query_text(row, 0, NULL), row, 1);
    for (int i = 0; i < 3; i++) {
        char *name = say_print("ranks/%s", lists[i]);
        json_key(&json, i ? lists[i] : "table");
        print_rows_of_statement(all, name, NULL, -1, true);
        free(name);
    }
    json_end(&json);
    putchar('\n');
}

struct db *ranks_compare(char *const *files, const char *function)
{
    struct traces traces = traces_list_as_one(files);
    struct ranks ranks = {.glob = function, .progress = progress_begin("reading")};
    bool ok = !traces.failed &&
              (ranks.all = db_open_scratch("ranks", schema_statement("ranks/tables"))) &&
              db_run(ranks.all, "PRAGMA cache_size = -8192; BEGIN") &&
              read_all_traces(&ranks, &traces);

    traces_free(&traces);
    if (ok) {
        ranks.progress.what = "comparing";
        db_set_progress_callback(ranks.all, progress_spin, &ranks.progress);
        ok = db_run(ranks.all, schema_statement("ranks/compare"));
        if (ok) {
            describe_differences(&ranks);
            explain_all_guards(&ranks);
            explain_all_recompiles(&ranks);
        }
        db_set_progress_callback(ranks.all, NULL, NULL);
        ok = ok && !db_has_failed(ranks.all);
    }
    progress_end(&ranks.progress);
    list_each(gone, &ranks.gone)
        free(*gone);
    list_free(&ranks.gone);
    if (ok)
        return ranks.all;
    db_close(ranks.all);
    return NULL;
}

int ranks_compare_and_print(char *const *files, const char *function, int64_t limit, bool json)
{
    struct db *all = *files ? ranks_compare(files, function) : NULL;
    bool ok;

    if (!*files)
        say_error("ranks: which traces? `dyntrace ranks DIR`");
    else if (all)
        (json ? print_answer_as_json : print_answer)(all, limit);
    ok = all && !db_has_failed(all);
    db_close(all);
    return ok ? 0 : 2;
}

/* ---- the command `ranks` ------------------------------------------------- */

static struct {
    const char *function;
    bool json;
    int64_t limit;
} given = {.limit = LIMIT};

static const struct option options[] = {
    {"function", .value = "GLOB", .read = option_text, .to = &given.function,
     .help = "only functions whose qualified name, or the last part of it, matches"},
    {"limit", .value = "ROWS", .read = option_rows, .to = &given.limit,
     .help = "rows of each table; 0 is all. The default is 20"},
    {"json", .read = option_flag, .to = &given.json,
     .help = "the same for a program, complete, times in nanoseconds"},
    TABLE_WIDE_OPTION,
    OPTION_END,
};

static int ranks_main(int count, char **operands)
{
    return ranks_compare_and_print(operands, given.function, given.limit, given.json);
}

const struct command command_ranks = {
    .name = "ranks",
    .summary = "which rank of a job differs, where first, and what it cost",
    .operands = "FILE...",
    .about = "Compares the ranks of a job: which are missing or died, which compiled something "
             "else than most and at which guard first, with the values on each side, for which the "
             "others waited. FILE is a trace, a directory of *.db or a pattern, mostly what "
             "`dyntrace run -o DIR/` made.",
    .options = options,
    .more = "Waits are known where frames of torch's collectives were recorded. Traces without a "
            "rank are said and left out; the exit status is then 3.",
    .operands_most = OPERANDS_ANY,
    .run = ranks_main,
};

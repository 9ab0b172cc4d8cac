/* cmd/fsck.c -- `dyntrace fsck`: checks a trace for damage and against the rules of its schema.
 *
 * A truncated or overwritten file is read page by page (trace/damage.h) to find which tables are
 * damaged, where, and which rows are still readable.
 *
 * A rule is a sentence that should be true. Most rules are queries of schemas/fsck.sql that return
 * the rows which break the rule. The rules about frames are checked in C: one pass reads all frames
 * in order of frame_id, and keeps a stack of open frames for each thread. If a frame's parent is
 * not on the stack, the parent's row is read and pushed. schemas/fsck-frames.sql compares the
 * counts of this pass with other tables. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/launch.h"
#include "collector/session.h"
#include "command.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/option.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "lib/table.h"
#include "lib/times.h"
#include "schema.h"
#include "trace/damage.h"
#include "trace/db.h"
#include "trace/traces.h"
#include "trace/trust.h"
#include "versions.h"
#include "vocabulary.h"

enum {
    SHOWN = 5, /* how many rows are quoted for a broken rule */
    TICK_FRAMES = 1 << 14,
};

static struct {
    bool json, recover;
} given;

static const struct option options[] = {
    {"recover", .read = option_flag, .to = &given.recover,
     .help = "first finish a recording whose recorder was killed, or go on with it while its "
             "program lives; without FILE: every such recording of this user. What can be read of "
             "a damaged FILE is written to FILE.recovered.db"},
    {"json", .read = option_flag, .to = &given.json, .help = "the result for a program"},
    OPTION_END,
};

/* ---- the rules, and counting the rows that break them -------------------- */

/* The rules that are checked in C. All other rules are statements of schemas/fsck.sql. */
enum rule_id {
    RULE_FILE,
    RULE_SCHEMA,
    RULE_RECORDER,
    RULE_THREAD,
    RULE_CODE,
    RULE_SPAN,
    RULE_ORDER,
    RULE_ENUM,
    RULE_PARENT,
    RULE_PARENT_ID,
    RULE_PARENT_THREAD,
    RULE_ENCLOSED,
    RULE_PARENT_OPEN,
    RULE_SIBLINGS,
    RULE_LIFE,
    RULES_HERE
};
static const char *const rules_here[] = {
    [RULE_FILE] = "the file is whole",
    [RULE_SCHEMA] = "tables, views and indexes are those of the schema",
    [RULE_RECORDER] = "what is being recorded has a recorder",
    [RULE_THREAD] = "a frame's thread exists",
    [RULE_CODE] = "a frame's code exists",
    [RULE_SPAN] = "a frame has a start, and ends no earlier",
    [RULE_ORDER] = "on a thread, frame ids follow start time",
    [RULE_ENUM] = "a frame's kind, outcome and exit are in `enum`",
    [RULE_PARENT] = "a frame's parent exists",
    [RULE_PARENT_ID] = "a parent has a smaller id than its child",
    [RULE_PARENT_THREAD] = "a parent is on its child's thread",
    [RULE_ENCLOSED] = "a parent begins before its child and ends after it",
    [RULE_PARENT_OPEN] = "a frame that has ended has no open child",
    [RULE_SIBLINGS] = "siblings do not overlap",
    [RULE_LIFE] = "a frame lies within the life of its process",
};

static LIST(struct rule {
    const char *what;         /* the rule: a sentence that should be true */
    int64_t broken;           /* number of rows that break this rule */
    const char *shown[SHOWN]; /* the first of the rows that break this rule, as text */
}) rules;                     /* those of enum rule_id, then the rules that are SQL statements */
static struct arena texts;
static LIST(const char *) damages; /* sentences about the damage in a file */

/* Count one more row that breaks rule ID. TEXT describes the row. */
static void count_broken_row(size_t id, const char *text)
{
    struct rule *rule = &rules.at[id];

    if (rule->broken < SHOWN)
        rule->shown[rule->broken] = arena_text(&texts, text, strlen(text));
    rule->broken++;
}

static void count_broken_frame(enum rule_id id, int64_t frame_id)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, frame_id);
    count_broken_row(id, text);
}

static void count_broken_rows(size_t id, struct query *query)
{
    while (query_step(query))
        count_broken_row(id, query_text(query, 0, NULL));
    query_close(query);
}

/* ---- checking the schema, and that the recorder is alive ----------------- */

/* Compare the trace's schema with the schema of this version. A trace of another version is not
 * compared, because dyntrace reads every trace with its own views. */
static void check_schema(struct db *db, bool recording)
{
    struct query *query = db_query(db, schema_statement("altered"));

    query_bind_text(query, 1, trust_make_expected_schema());
    query_bind_text(query, 2, DYNTRACE_VERSION);
    query_bind_integer(query, 3, recording);
    count_broken_rows(RULE_SCHEMA, query);
}

/* If the trace says that a recording writes it, check that the recorder is alive. */
static void check_recorder_is_alive(struct db *db)
{
    char *session = db_meta(db, "session");
    char *host = db_meta(db, "host");
    char here[256] = "";
    bool elsewhere = gethostname(here, sizeof here - 1) == 0 && host && strcmp(host, here);

    if (session && !elsewhere && session_has_running_collector(session) == LIVE_NO)
        count_broken_row(RULE_RECORDER,
                         given.recover ? "its session cannot be read, so what was committed before "
                                         "it was killed is all there is"
                                       : "it was killed; `--recover` finishes the recording");
    else if (session && !elsewhere && access(session, F_OK) != 0 && errno == ENOENT)
        count_broken_row(RULE_RECORDER,
                         "its session is gone, so what was committed before that is all there is");
    free(session);
    free(host);
}

/* ---- reading all frames in order, and checking them ---------------------- */

struct frame {
    int64_t id, thread_id, start_ns, end_ns, last_child_end_ns, child_ns;
    struct total *total; /* totals of the frame's code object; NULL if the code object is unknown */
    bool open;           /* this frame has no end in the trace */
    bool child_open;     /* a child of this frame has not ended; no other child may follow */
};

/* A thread and its stack of open frames. Frames without a parent count as children of `root`. */
struct thread_state {
    /* when the thread's process began and ended; a frame that never ended counts as ended at
     * ended_ns */
    int64_t began_ns, ended_ns;
    bool ended; /* is ended_ns known? */
    int64_t last_start_ns;
    struct frame root;
    LIST(struct frame) stack;
};

/* The totals that a code object should have in the table code_total, added up from its frames. They
 * become a row of the table `seen`. */
struct total {
    int64_t code_id, calls, total_ns, self_ns, raised, skipped, loose;
};
enum {
    TOTAL_COLUMNS = sizeof(struct total) / sizeof(int64_t),
    COUNT_FRAMES = OUTCOMES,
    COUNT_OPEN,
    COUNTS
};

struct pass {
    struct progress progress;
    /* map a thread_id to its index in `states`, a code_id to its index in `totals` */
    struct map threads, codes;
    /* number of a code object's frames on a thread's stack; the key is thread index << 32 | code
     * index */
    struct map active;
    LIST(struct thread_state) states;
    LIST(struct total) totals; /* the totals of each code object, at the index that `codes` has */
    /* number of calls by outcome, and of frames; they become the table `tally` */
    int64_t counted[COUNTS];
    struct query *fetch;
    int64_t last_id;
    /* frames are missing in the trace, so a frame without a parent may have had one */
    bool is_part;
};

/* Add a thread. VALUES: thread_id, start of its process, end of its process, and the end for frames
 * of this thread that never ended. */
static bool add_thread_state(void *context, const int64_t *values, unsigned nulls)
{
    struct pass *pass = context;

    *map_put(&pass->threads, values[0]) = (int64_t)pass->states.count;
    *list_add(&pass->states) =
        (struct thread_state){values[1], values[3], !(nulls & 1 << 2), .last_start_ns = INT64_MIN,
                              .root.last_child_end_ns = INT64_MIN};
    return true;
}

static bool add_code_total(void *context, const int64_t *v, unsigned nulls)
{
    struct pass *pass = context;

    *map_put(&pass->codes, v[0]) = (int64_t)pass->totals.count;
    list_add(&pass->totals)->code_id = v[0];
    return true;
}

/* Return the address of the counter of TOTAL's code object on THREAD's stack: it counts how many of
 * the object's frames are on the stack. */
static int64_t *find_count_of_open_frames(struct pass *pass, const struct thread_state *thread,
                                          const struct total *total)
{
    return map_put(&pass->active, (thread - pass->states.at) << 32 | (total - pass->totals.at));
}

/* Pop THREAD's innermost frame, and add the frame's times to the totals of its code object. The
 * collector does the same (decode_pop_frame). */
static void pop_frame(struct pass *pass, struct thread_state *thread)
{
    struct frame *frame = &thread->stack.at[--thread->stack.count];
    struct total *total = frame->total;
    int64_t length =
        times_span_or_zero(frame->start_ns, frame->open ? thread->ended_ns : frame->end_ns);

    if (thread->stack.count)
        frame[-1].child_ns = times_add(frame[-1].child_ns, length);
    if (!total)
        return;
    total->loose |= frame->open && !thread->ended;
    total->self_ns =
        times_add(total->self_ns, length > frame->child_ns ? length - frame->child_ns : 0);
    if (!--*find_count_of_open_frames(pass, thread, total))
        total->total_ns = times_add(total->total_ns, length);
}

/* Pop frames from THREAD's stack until frame ID is on top, and return this frame. If frame ID is
 * not on the stack, its row is read and pushed. Returns NULL if the trace has no such frame. */
static struct frame *pop_until_frame(struct pass *pass, struct thread_state *thread, int64_t id)
{
    struct frame *place;

    while (thread->stack.count && thread->stack.at[thread->stack.count - 1].id != id)
        pop_frame(pass, thread);
    if (thread->stack.count)
        return &thread->stack.at[thread->stack.count - 1];
    query_reset(pass->fetch);
    query_bind_integer(pass->fetch, 1, id);
    if (!query_step(pass->fetch))
        return NULL;
    place = list_add(&thread->stack);
    *place = (struct frame){id,
                            query_integer(pass->fetch, 0),
                            query_integer(pass->fetch, 1),
                            query_integer(pass->fetch, 2),
                            INT64_MIN,
                            .open = query_type(pass->fetch, 2) == QUERY_NULL};
    return place;
}

/* Check that FRAME does not overlap with the earlier children of PARENT. */
static void check_overlap_with_siblings(const struct frame *frame, struct frame *parent)
{
    if (parent->child_open || frame->start_ns < parent->last_child_end_ns)
        count_broken_frame(RULE_SIBLINGS, frame->id);
    parent->child_open = frame->open;
    if (!frame->open)
        parent->last_child_end_ns = frame->end_ns;
}

static void check_frame_within_parent(const struct frame *frame, struct frame *parent)
{
    if (parent->id >= frame->id)
        count_broken_frame(RULE_PARENT_ID, frame->id);
    if (parent->thread_id != frame->thread_id)
        count_broken_frame(RULE_PARENT_THREAD, frame->id);
    if (frame->start_ns < parent->start_ns ||
        (!frame->open && !parent->open && frame->end_ns > parent->end_ns))
        count_broken_frame(RULE_ENCLOSED, frame->id);
    if (frame->open && !parent->open)
        count_broken_frame(RULE_PARENT_OPEN, frame->id);
    check_overlap_with_siblings(frame, parent);
}

/* Check one frame. VALUES: frame_id, thread_id, start_ns, end_ns, code_id, parent_id, kind,
 * outcome, exit. */
static bool check_frame(void *context, const int64_t *values, unsigned nulls)
{
    struct pass *pass = context;
    struct frame frame = {values[0], values[1], values[2],
                          values[3], INT64_MIN, .open = nulls >> 3 & 1};
    struct frame *parent;
    int64_t *index = nulls & 1 << 1 ? NULL : map_get(&pass->threads, frame.thread_id);
    int64_t *code = nulls & 1 << 4 ? NULL : map_get(&pass->codes, values[4]);
    struct thread_state *thread = index ? &pass->states.at[*index] : NULL;
    bool child = !(nulls & 1 << 5);
    bool call = values[6] == FRAME_CALL;

    if (!(++pass->counted[COUNT_FRAMES] % TICK_FRAMES))
        progress_tick(&pass->progress, frame.id, pass->last_id);
    pass->counted[COUNT_OPEN] += frame.open;
    if (!code)
        count_broken_frame(RULE_CODE, frame.id);
    if (nulls & 1 << 2 || (!frame.open && frame.end_ns < frame.start_ns))
        count_broken_frame(RULE_SPAN, frame.id);
    if ((uint64_t)values[6] >= FRAME_KINDS || (uint64_t)values[7] >= OUTCOMES ||
        (uint64_t)values[8] >= FRAME_EXITS)
        count_broken_frame(RULE_ENUM, frame.id);
    else
        pass->counted[values[7]] += call;
    if (!thread) {
        count_broken_frame(RULE_THREAD, frame.id);
        return true;
    }
    if (frame.start_ns < thread->last_start_ns)
        count_broken_frame(RULE_ORDER, frame.id);
    if (frame.start_ns < thread->began_ns ||
        (thread->ended && !frame.open && frame.end_ns > thread->ended_ns))
        count_broken_frame(RULE_LIFE, frame.id);
    thread->last_start_ns = frame.start_ns;
    if (!child && !pass->is_part)
        check_overlap_with_siblings(&frame, &thread->root);
    while (!child && thread->stack.count)
        pop_frame(pass, thread);
    if (child && (parent = pop_until_frame(pass, thread, values[5])))
        check_frame_within_parent(&frame, parent);
    else if (child)
        count_broken_frame(RULE_PARENT, frame.id);
    if (code) {
        frame.total = &pass->totals.at[*code];
        frame.total->calls += call;
        frame.total->raised += values[8] == EXIT_RAISE;
        frame.total->skipped += call && values[7] == OUTCOME_SKIP;
        ++*find_count_of_open_frames(pass, thread, frame.total);
    }
    *list_add(&thread->stack) = frame;
    return true;
}

/* Insert COUNT rows into a table by STATEMENT. ROWS has COLUMNS numbers for each row. */
static void insert_number_rows(struct db *db, const char *statement, const int64_t *rows,
                               size_t count, int columns)
{
    struct query *put = db_query(db, schema_statement(statement));

    for (size_t i = 0; i < count; i++, query_reset(put), rows += columns) {
        for (int n = 0; n < columns; n++)
            query_bind_integer(put, n + 1, rows[n]);
        query_step(put);
    }
    query_close(put);
}

/* Check every frame. The totals and counts of this pass are stored for schemas/fsck-frames.sql. */
static void check_all_frames(struct db *db)
{
    struct pass pass = {
        .progress = progress_begin("checking frames"),
        .fetch = db_query(db, "SELECT thread_id, start_ns, end_ns FROM frame WHERE frame_id = ?1"),
        .last_id = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame"),
        .is_part = db_meta_integer(db, "decisions_only", 0)};

    db_visit(db, schema_statement("fsck-frames/threads"), add_thread_state, &pass);
    db_visit(db, "SELECT each(code_id) FROM code", add_code_total, &pass);
    db_visit(
        db,
        "SELECT each(frame_id, thread_id, start_ns, end_ns, code_id, parent_id, kind, outcome, "
        "exit) FROM frame NOT INDEXED",
        check_frame, &pass);
    progress_end(&pass.progress);
    for (size_t i = 0; i < pass.states.count; i++) {
        while (pass.states.at[i].stack.count)
            pop_frame(&pass, &pass.states.at[i]);
        list_free(&pass.states.at[i].stack);
    }
    insert_number_rows(db, "fsck-frames/keep-seen", (const int64_t *)pass.totals.at,
                       pass.totals.count, TOTAL_COLUMNS);
    insert_number_rows(db, "fsck-frames/keep-tally", pass.counted, COUNTS, 1);
    query_close(pass.fetch);
    map_free(&pass.threads);
    map_free(&pass.codes);
    map_free(&pass.active);
    list_free(&pass.states);
    list_free(&pass.totals);
}

/* ---- printing the broken rules, and checking the rules in SQL ------------ */

static void print_result_as_json(const char *path, bool ok, struct query *counts)
{
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_begin_lines(&json);
    json_string(&json, "file", path);
    json_bool(&json, "ok", ok);
    json_object(&json, "rows");
    for (int i = 0; counts && i < query_columns(counts); i++)
        json_integer(&json, query_name(counts, i), query_integer(counts, i));
    json_end(&json);
    json_list(&json, "damage");
    for (size_t i = 0; i < damages.count; i++)
        json_string(&json, NULL, damages.at[i]);
    json_end(&json);
    json_list(&json, "rules");
    json_begin_lines(&json);
    list_each(rule, &rules) {
        json_object(&json, NULL);
        json_string(&json, "rule", rule->what);
        json_integer(&json, "broken", rule->broken);
        json_list(&json, "rows");
        for (int j = 0; j < SHOWN && rule->shown[j]; j++)
            json_string(&json, NULL, rule->shown[j]);
        json_end(&json);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    putchar('\n');
}

static void print_result_as_text(const char *path, bool ok, bool complete, struct query *counts)
{
    bool colour = say_may_use_colour(stdout);

    list_each(rule, &rules) {
        if (!rule->broken)
            continue;
        printf("%sbroken%s: %s: %" PRId64 " row%s: ", colour ? "\033[31m" : "",
               colour ? "\033[0m" : "", rule->what, rule->broken, rule->broken == 1 ? "" : "s");
        for (int j = 0; j < SHOWN && rule->shown[j]; j++) {
            fputs(j ? ", " : "", stdout);
            say_escaped(stdout, rule->shown[j], strnlen(rule->shown[j], 300));
        }
        puts(rule->broken > SHOWN ? ", ..." : "");
    }
    for (size_t i = 0; i < damages.count; i++) {
        fputs("  ", stdout);
        say_escaped(stdout, damages.at[i], strlen(damages.at[i]));
        putchar('\n');
    }
    say_escaped(stdout, path, strlen(path));
    if (ok)
        printf(": ok: %zu rules hold", rules.count);
    else
        fputs(complete ? ": broken" : ": broken; not everything could be checked", stdout);
    for (int i = 0; counts && i < query_columns(counts); i++)
        printf("%s %s %" PRId64, i ? "," : ";", query_name(counts, i), query_integer(counts, i));
    putchar('\n');
}

/* Check each SQL rule whose statement has a name that begins with NAMES. The first line of the
 * statement is the rule, such as "-- a thread's process exists". */
static void check_sql_rules(struct db *db, const char *names)
{
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, names, strlen(names))) {
            list_add(&rules)->what = arena_text(&texts, s->text + 3, strcspn(s->text + 3, "\n"));
            count_broken_rows(rules.count - 1, db_query(db, s->text));
        }
}

/* ---- finding damage in a file, and checking a trace ---------------------- */

/* Describe the damage of the write-ahead log of the file PATH in a sentence, which the caller
 * frees. Returns NULL if the log is not damaged. */
static char *find_log_fault(const char *path)
{
    struct damage damage = {0};
    struct stat st;
    char *fault = NULL;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !damage_open(&damage, path))
        return NULL;
    if (damage.log_fault)
        fault = strdup(damage.log_fault);
    damage_free(&damage);
    return fault;
}

/* Check the length and the header of the file PATH, and count their damage as breaking RULE_FILE.
 * Returns true if there is damage. */
static bool check_file_bytes(const char *path)
{
    struct damage damage = {0};
    struct stat st;
    size_t faults;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !damage_open(&damage, path))
        return false;
    for (size_t i = 0; i < damage.faults.count; i++)
        count_broken_row(RULE_FILE, damage.faults.at[i]);
    faults = damage.faults.count;
    /* close the file before SQLite opens it: close() drops all locks that the process has on the
     * file */
    damage_free(&damage);
    return faults;
}

/* Copy the readable rows of the damaged file PATH to a file beside it. */
static void copy_readable_rows(struct damage *damage, const char *path)
{
    char *made = say_print("%s.recovered.db", path);
    struct out_file out = {0};
    int64_t rows = -1;

    if (out_open(&out, made, false)) {
        rows = damage_copy_rows(damage, out.temporary);
        if (rows >= 0 && out_commit(&out))
            say_error("%s: what can be read of it, %" PRId64 " rows, is in %s", path, rows, made);
        out_close(&out);
    }
    free(made);
}

/* Find the damage in the file PATH, and list it in `damages`. SURE: the file is known to be
 * damaged. With --recover, copy the readable rows to a new file. Returns false if no damage was
 * found. */
static bool report_damage(const char *path, bool sure)
{
    struct damage damage = {0};
    struct stat st;
    bool found;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !damage_open(&damage, path))
        return false;
    damage_find(&damage);
    found = sure || damage.faults.count || damage.broken;
    for (size_t i = 0; found && i < damage.tables.count; i++)
        *list_add(&damages) = arena_text(&texts, damage.tables.at[i], strlen(damage.tables.at[i]));
    if (found && given.recover && damage.rows)
        copy_readable_rows(&damage, path);
    else if (found && damage.rows)
        *list_add(&damages) = arena_print(
            &texts, "`dyntrace fsck --recover %s` writes what can be read to %s.recovered.db", path,
            path);
    damage_free(&damage);
    return found;
}

/* Called when the file PATH could not be opened as a trace, which has been reported. Print the
 * damage that the bytes of the file show. Returns the exit status. */
static int report_unreadable_file(const char *path)
{
    bool found = report_damage(path, rules.at[RULE_FILE].broken > 0);

    /* list only RULE_FILE, because the other rules could not be checked */
    rules.count = RULE_FILE + 1;
    if (found && given.json)
        print_result_as_json(path, false, NULL);
    else if (found)
        print_result_as_text(path, false, false, NULL);
    return 2;
}

/* Is RULE the rule that SQLite's integrity_check checks? */
static bool is_integrity_rule(const struct rule *rule)
{
    return strstr(rule->what, "integrity_check") != NULL;
}

static void free_results(void)
{
    list_free(&rules);
    list_free(&damages);
    arena_free(&texts);
}

/* Check the trace at PATH and print the result. LOG describes the damage in the trace's write-ahead
 * log, or is NULL. Returns the exit status. */
static int check_trace_file(const char *path, const char *log)
{
    struct db *db;
    struct progress progress;
    struct query *counts;
    char *state;
    bool ok, recording, damaged, whole;

    for (int i = 0; i < RULES_HERE; i++)
        list_add(&rules)->what = rules_here[i];
    damaged = check_file_bytes(path);
    db = db_open(path);
    if (!db) {
        if (log)
            count_broken_row(RULE_FILE, log);
        int status = report_unreadable_file(path);
        free_results();
        return status;
    }
    /* read one snapshot of the database, because the recording may continue meanwhile */
    db_run(db, "BEGIN");
    db_run_in_temporary(db, schema_statement("fsck-frames/tables"));
    progress = progress_begin("checking the file");
    db_set_progress_callback(db, progress_spin, &progress);
    state = db_meta(db, "state");
    recording = state && !strcmp(state, "recording");
    if (log && !recording) {
        count_broken_row(RULE_FILE, log);
        damaged = true;
    }
    check_schema(db, recording);
    if (recording)
        check_recorder_is_alive(db);
    check_sql_rules(db, "fsck/");
    db_set_progress_callback(db, NULL, NULL);
    progress_end(&progress);
    check_all_frames(db);
    if (state && !recording)
        check_sql_rules(db, "fsck-frames/rule-");
    counts = db_query(db, schema_statement("fsck-frames/counts"));
    query_step(counts);
    whole = !db_has_failed(db);
    ok = whole;
    for (size_t i = 0; i < rules.count; i++) {
        ok = ok && !rules.at[i].broken;
        damaged = damaged || (is_integrity_rule(&rules.at[i]) && rules.at[i].broken);
    }
    if (damaged || !whole)
        report_damage(path, true);
    if (given.json)
        print_result_as_json(path, ok, counts);
    else
        print_result_as_text(path, ok, whole, counts);
    if (!given.json && recording && !rules.at[RULE_RECORDER].broken)
        puts("it says that it is still being recorded; if not, `--recover` completes it");
    query_close(counts);
    free_results();
    free(state);
    db_close(db);
    return ok ? 0 : 1;
}

/* ---- the command `fsck` -------------------------------------------------- */

static int fsck_main(int count, char **operands)
{
    struct traces traces = traces_list(operands);
    int worst = 0;
    int status = 0;

    db_describe_damage("the file is damaged");

    if (!*operands && !given.recover) {
        say_error("fsck: which file? `dyntrace fsck FILE`");
        worst = 2;
    } else if (!*operands) {
        worst = recover_trace(NULL) == RECOVER_FAILED;
    }
    for (size_t i = 0; i < traces.paths.count; i++) {
        const char *path = traces.paths.at[i];
        /* check the log before recover_trace moves it into the file */
        char *log = find_log_fault(path);
        status = given.recover ? recover_trace(path) : RECOVER_NOTHING;
        if (status == RECOVER_DONE || status == RECOVER_NOTHING)
            status = check_trace_file(path, status == RECOVER_NOTHING ? log : NULL);
        free(log);
        worst = status > worst ? status : worst;
    }
    worst = *operands && !traces.paths.count ? 2 : worst;
    traces_free(&traces);
    return worst;
}

const struct command command_fsck = {
    .name = "fsck",
    .summary = "check a trace, or recover an interrupted one",
    .operands = "[FILE...]",
    .about = "Checks that a trace is undamaged and keeps the promises of its schema. Exit status: "
             "0 all is well, 1 something is broken, 2 it cannot be read.",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .run = fsck_main,
};

/* cmd/fsck.c -- `dyntrace fsck`: is this trace whole, and does it hold what a
 * trace promises?
 *
 * Runs in: the viewer.
 *
 * Three kinds of questions:
 *
 *   the file    PRAGMA integrity_check
 *   frames      one pass in order of frame_id, in bounded memory: the last frames
 *               are remembered by id, and a parent that is no longer among them
 *               is fetched by primary key. Such a parent forgets which child it
 *               had last, so overlapping siblings more than CACHE frames apart
 *               are not found.
 *   the rest    one query per promise, each returning the rows that break it (schemas/fsck.sql)
 *   the schema  the statements of sqlite_schema against those of schemas/
 *
 * A rule is a sentence that should be true. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "command.h"
#include "schema.h"
#include "vocabulary.h"
#include "trace/db.h"
#include "lib/json.h"
#include "lib/list.h"
#include "lib/option.h"
#include "collector/session.h"
#include "collector/launch.h"
#include "lib/say.h"
#include "lib/table.h"

enum {
    SHOWN = 5,         /* offending rows quoted for each rule */
    CACHE = 1 << 16,   /* frames remembered, a power of two */
    TICK_FRAMES = 1 << 14,
};

static struct {
    bool json, recover;
} given;

static const struct option options[] = {
    {"recover", .read = option_flag, .to = &given.recover,
     .help = "first finish a recording whose recorder was killed, or go on with it while its program lives; without FILE: every "
             "such recording of this user"},
    {"json", .read = option_flag, .to = &given.json, .help = "the result for a program"},
    OPTION_END,
};

/* ---- rules ----------------------------------------------------------------- */

/* Those that are held here; the others are statements of schemas/fsck.sql. */
#define RULES(X) \
    X(FILE, "the file is undamaged (integrity_check)") \
    X(SCHEMA, "tables, views and indexes are those of the schema") \
    X(RECORDER, "what is being recorded has a recorder") \
    X(THREAD, "a frame's thread exists") \
    X(CODE, "a frame's code exists") \
    X(SPAN, "a frame has a start, and ends no earlier") \
    X(ORDER, "on a thread, frame ids follow start time") \
    X(ENUM, "a frame's kind, outcome and exit are in `enum`") \
    X(PARENT, "a frame's parent exists") \
    X(PARENT_ID, "a parent has a smaller id than its child") \
    X(PARENT_THREAD, "a parent is on its child's thread") \
    X(ENCLOSED, "a parent begins before its child and ends after it") \
    X(PARENT_OPEN, "a frame that has ended has no open child") \
    X(SIBLINGS, "siblings do not overlap") \
    X(COUNT, "meta.frame_count is the number of frames")

enum rule_id {
#define X(id, what) RULE_##id,
    RULES(X)
#undef X
    RULES_HERE
};

struct rule {
    const char *what;         /* what should hold */
    const char *sql;          /* what finds rows that break it, or NULL */
    int64_t broken;           /* how many rows do */
    const char *shown[SHOWN]; /* the first of them */
};

static LIST(struct rule) rules; /* by rule_id, then those of schemas/fsck.sql */
static struct arena texts;

static void rules_begin(void)
{
    static const char *const here[] = {
#define X(id, what) what,
        RULES(X)
#undef X
    };

    for (int i = 0; i < RULES_HERE; i++)
        list_add(&rules)->what = here[i];
    for (const struct schema_query *s = schema_statements; s->name; s++)
        if (!strncmp(s->name, "fsck/", 5)) { /* "-- a thread's process exists" */
            const char *what = arena_text(&texts, s->text + 3, strcspn(s->text + 3, "\n"));
            *list_add(&rules) = (struct rule){.what = what, .sql = s->text};
        }
}

/* Count one more row that breaks rule ID. TEXT is copied. */
static void rule_broken(size_t id, const char *text)
{
    struct rule *rule = &rules.at[id];

    if (rule->broken < SHOWN)
        rule->shown[rule->broken] = arena_text(&texts, text, strlen(text));
    rule->broken++;
}

static void frame_broken(enum rule_id id, int64_t frame_id)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, frame_id);
    rule_broken(id, text);
}

/* Ask a rule's query. */
static void rule_ask(struct db *db, size_t id, const char *sql)
{
    struct query *query = db_query(db, sql);

    while (query_step(query)) {
        const char *text = query_text(query, 0, NULL);
        if (id != RULE_FILE || strcmp(text, "ok"))
            rule_broken(id, text);
    }
    query_close(query);
}

/* ---- the schema, and who records ------------------------------------------- */

/* What this version makes is there as it makes it. Of another version's trace that is not known; readers take their own
 * views in any case. */
static void schema_check(struct db *db, bool recording)
{
    struct query *query = db_query(db, schema_statement("altered"));
    char *made = db_schema_made();

    query_bind_text(query, 1, made);
    query_bind_text(query, 2, DYNTRACE_VERSION);
    query_bind_integer(query, 3, recording);
    while (query_step(query))
        rule_broken(RULE_SCHEMA, query_text(query, 0, NULL));
    query_close(query);
    free(made);
}

/* A trace that says it is being recorded: is it? RECOVERED: that was tried just now. */
static void recorder_check(struct db *db, bool recovered)
{
    char *session = db_meta(db, "session"), *host = db_meta(db, "host"), here[256] = "";
    bool elsewhere = gethostname(here, sizeof here - 1) == 0 && host && strcmp(host, here);

    if (session && !elsewhere && session_live(session) == LIVE_NO)
        rule_broken(RULE_RECORDER,
                    recovered ? "its session cannot be read, so what was committed before it was killed is all there is"
                              : "it was killed; `--recover` finishes the recording");
    else if (session && !elsewhere && access(session, F_OK) != 0 && errno == ENOENT)
        rule_broken(RULE_RECORDER, "its session is gone, so what was committed before that is all there is");
    free(session);
    free(host);
}

/* ---- the pass over frames -------------------------------------------------- */

struct frame {
    int64_t id; /* 0: this place of the cache is free */
    int64_t thread_id, start_ns, end_ns;
    int64_t last_child_end_ns;
    bool open;       /* no end */
    bool child_open; /* a child without an end was seen; only the last may be one */
};

/* Where a thread stands: its frames without a parent are children of a frame that is always there. */
struct thread_state {
    int64_t last_start_ns;
    struct frame root;
};

struct pass {
    struct progress progress;
    struct map threads, codes; /* row id -> index */
    LIST(struct thread_state) states;
    struct frame *cache; /* owned, by id % CACHE */
    struct query *fetch;
    int64_t last_id, frames, open;
};

static bool thread_row(void *context, const int64_t *v, unsigned nulls)
{
    struct pass *pass = context;

    (void)nulls;
    *map_put(&pass->threads, v[0]) = (int64_t)pass->states.count;
    *list_add(&pass->states) = (struct thread_state){INT64_MIN, {.last_child_end_ns = INT64_MIN}};
    return true;
}

static bool code_row(void *context, const int64_t *v, unsigned nulls)
{
    struct pass *pass = context;

    (void)nulls;
    map_put(&pass->codes, v[0]);
    return true;
}

/* The frame ID, remembered or fetched; NULL when there is none. */
static struct frame *frame_find(struct pass *pass, int64_t id)
{
    struct frame *place = &pass->cache[(uint64_t)id % CACHE];

    if (place->id == id && id)
        return place;
    query_reset(pass->fetch);
    query_bind_integer(pass->fetch, 1, id);
    if (!query_step(pass->fetch))
        return NULL;
    *place = (struct frame){.id = id,
                            .thread_id = query_integer(pass->fetch, 0),
                            .start_ns = query_integer(pass->fetch, 1),
                            .end_ns = query_integer(pass->fetch, 2),
                            .last_child_end_ns = INT64_MIN,
                            .open = query_type(pass->fetch, 2) == QUERY_NULL};
    return place;
}

/* FRAME against what PARENT's children were before it. */
static void siblings_check(const struct frame *frame, struct frame *parent)
{
    if (parent->child_open || frame->start_ns < parent->last_child_end_ns)
        frame_broken(RULE_SIBLINGS, frame->id);
    parent->child_open = frame->open;
    if (!frame->open)
        parent->last_child_end_ns = frame->end_ns;
}

static void parent_check(const struct frame *frame, struct frame *parent)
{
    if (parent->id >= frame->id)
        frame_broken(RULE_PARENT_ID, frame->id);
    if (parent->thread_id != frame->thread_id)
        frame_broken(RULE_PARENT_THREAD, frame->id);
    if (frame->start_ns < parent->start_ns || (!frame->open && !parent->open && frame->end_ns > parent->end_ns))
        frame_broken(RULE_ENCLOSED, frame->id);
    if (frame->open && !parent->open)
        frame_broken(RULE_PARENT_OPEN, frame->id);
    siblings_check(frame, parent);
}

/* frame_id, thread_id, start_ns, end_ns, code_id, parent_id, kind, outcome, exit */
static bool frame_row(void *context, const int64_t *v, unsigned nulls)
{
    struct pass *pass = context;
    struct frame frame = {v[0], v[1], v[2], v[3], INT64_MIN, nulls >> 3 & 1, false}, *parent;
    int64_t *index = nulls & 1 << 1 ? NULL : map_get(&pass->threads, frame.thread_id);
    struct thread_state *thread = index ? &pass->states.at[*index] : NULL;
    bool child = !(nulls & 1 << 5);

    if (!(++pass->frames % TICK_FRAMES))
        progress_tick(&pass->progress, frame.id, pass->last_id);
    pass->open += frame.open;
    if (!thread)
        frame_broken(RULE_THREAD, frame.id);
    if (nulls & 1 << 4 || !map_get(&pass->codes, v[4]))
        frame_broken(RULE_CODE, frame.id);
    if (nulls & 1 << 2 || (!frame.open && frame.end_ns < frame.start_ns))
        frame_broken(RULE_SPAN, frame.id);
    if ((uint64_t)v[6] >= FRAME_KINDS || (uint64_t)v[7] >= OUTCOMES || (uint64_t)v[8] >= FRAME_EXITS)
        frame_broken(RULE_ENUM, frame.id);
    if (thread && frame.start_ns < thread->last_start_ns)
        frame_broken(RULE_ORDER, frame.id);
    if (thread)
        thread->last_start_ns = frame.start_ns;
    if (thread && !child)
        siblings_check(&frame, &thread->root);
    if (child && (parent = frame_find(pass, v[5])))
        parent_check(&frame, parent);
    else if (child)
        frame_broken(RULE_PARENT, frame.id);
    pass->cache[(uint64_t)frame.id % CACHE] = frame;
    return true;
}

/* Check every frame. *FRAMES and *OPEN count them. */
static void frames_check(struct db *db, int64_t *frames, int64_t *open)
{
    struct pass pass = {.progress = progress_begin("checking frames"),
                        .cache = calloc(CACHE, sizeof *pass.cache),
                        .fetch = db_query(db, "SELECT thread_id, start_ns, end_ns FROM frame WHERE frame_id = ?1"),
                        .last_id = db_integer(db, 0, "SELECT MAX(frame_id) FROM frame")};

    db_each(db, "SELECT each(thread_id) FROM thread", thread_row, &pass);
    db_each(db, "SELECT each(code_id) FROM code", code_row, &pass);
    db_each(db,
            "SELECT each(frame_id, thread_id, start_ns, end_ns, code_id, parent_id, kind, outcome, exit)"
            " FROM frame NOT INDEXED",
            frame_row, &pass);
    progress_end(&pass.progress);
    *frames = pass.frames;
    *open = pass.open;
    query_close(pass.fetch);
    map_free(&pass.threads);
    map_free(&pass.codes);
    list_free(&pass.states);
    free(pass.cache);
}

/* ---- the result ------------------------------------------------------------ */

struct count {
    const char *table;
    int64_t rows;
};

static void result_json(const char *path, bool ok, const struct count *counts)
{
    struct json json = {.out = stdout};

    json_object(&json, NULL);
    json_lines(&json);
    json_string(&json, "file", path);
    json_bool(&json, "ok", ok);
    json_object(&json, "rows");
    for (int i = 0; counts[i].table; i++)
        json_integer(&json, counts[i].table, counts[i].rows);
    json_end(&json);
    json_list(&json, "rules");
    json_lines(&json);
    for (size_t i = 0; i < rules.count; i++) {
        const struct rule *rule = &rules.at[i];
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

static void result_print_text(const char *path, bool ok, bool complete, const struct count *counts)
{
    bool colour = say_colour(stdout);

    for (size_t i = 0; i < rules.count; i++) {
        const struct rule *rule = &rules.at[i];
        if (!rule->broken)
            continue;
        printf("%sbroken%s: %s: %" PRId64 " row%s: ", colour ? "\033[31m" : "", colour ? "\033[0m" : "", rule->what,
               rule->broken, rule->broken == 1 ? "" : "s");
        for (int j = 0; j < SHOWN && rule->shown[j]; j++) {
            fputs(j ? ", " : "", stdout);
            say_escaped(stdout, rule->shown[j], strnlen(rule->shown[j], 300));
        }
        puts(rule->broken > SHOWN ? ", ..." : "");
    }
    say_escaped(stdout, path, strlen(path));
    if (ok)
        printf(": ok: %zu rules hold", rules.count);
    else
        fputs(complete ? ": broken" : ": broken; not everything could be checked", stdout);
    for (int i = 0; counts[i].table; i++)
        printf("%s %s %" PRId64, i ? "," : ";", counts[i].table, counts[i].rows);
    putchar('\n');
}

/* Check the trace at PATH and say the result. The exit status. */
static int trace_check(const char *path, bool json, bool recovered)
{
    struct db *db = db_open(path);
    struct progress progress;
    int64_t frames, open, known;
    char *state, text[96];
    bool ok, recording;

    if (!db)
        return 2;
    rules_begin();
    db_run(db, "BEGIN"); /* one snapshot: the recording may go on */
    progress = progress_begin("checking the file");
    db_on_progress(db, progress_spin, &progress);
    rule_ask(db, RULE_FILE, "PRAGMA integrity_check(100)");
    progress.what = "checking tables";
    state = db_meta(db, "state");
    recording = state && !strcmp(state, "recording");
    schema_check(db, recording);
    if (recording)
        recorder_check(db, recovered);
    for (size_t i = RULES_HERE; i < rules.count; i++)
        rule_ask(db, i, rules.at[i].sql);
    db_on_progress(db, NULL, NULL);
    progress_end(&progress);
    frames_check(db, &frames, &open);
    known = db_meta_integer(db, "frame_count", -1);
    if (state && !recording && known != frames) {
        snprintf(text, sizeof text, "meta says %" PRId64 ", there are %" PRId64, known, frames);
        rule_broken(RULE_COUNT, text);
    }
    const struct count counts[] = {
        {"processes", db_integer(db, 0, "SELECT COUNT(*) FROM process")},
        {"threads", db_integer(db, 0, "SELECT COUNT(*) FROM thread")},
        {"code objects", db_integer(db, 0, "SELECT COUNT(*) FROM code")},
        {"frames", frames},
        {"open frames", open},
        {"losses", db_integer(db, 0, "SELECT COUNT(*) FROM loss WHERE events IS NULL OR events > 0")},
        {NULL, 0},
    };
    ok = !db_failed(db);
    for (size_t i = 0; i < rules.count; i++)
        ok = ok && !rules.at[i].broken;
    if (json)
        result_json(path, ok, counts);
    else
        result_print_text(path, ok, !db_failed(db), counts);
    if (!json && recording && !rules.at[RULE_RECORDER].broken)
        puts("it says that it is still being recorded; if not, `--recover` completes it");
    list_free(&rules);
    arena_free(&texts);
    free(state);
    db_close(db);
    return ok ? 0 : 1;
}

/* ---- the command ----------------------------------------------------------- */

static int fsck_main(int count, char **operands)
{
    const char *path = operands[0];
    int status;

    (void)count;
    if (!path && !given.recover) {
        say_error("fsck: which file? `dyntrace fsck FILE`");
        return 2;
    }
    if (given.recover) {
        status = recover_trace(path);
        if (status != 0 || !path)
            return status;
    }
    return trace_check(path, given.json, given.recover);
}

const struct command command_fsck = {
    .name = "fsck",
    .summary = "check a trace, or recover an interrupted one",
    .operands = "[FILE]",
    .about = "Checks that a trace is undamaged and keeps the promises of its schema. Exit status: 0 all is well, 1 something is "
             "broken, 2 it cannot be read.",
    .options = options,
    .operands_most = 1,
    .run = fsck_main,
};

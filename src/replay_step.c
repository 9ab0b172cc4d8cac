/* replay_step.c -- a trace's decisions one by one, told by commands. See replay_step.h.
 *
 * Runs in: the viewer.
 *
 * The cursor is on an event (a lookup, a compile, a graph break, the death of an entry) or, after a jump or a step
 * over frames, in the gap before one:
 *
 *     events   ... [41] [42] [43] ...
 *                    ^    on 42:  next is 43, previous 41
 *                   ^     gap before 42:  next is 42, previous 41
 *
 * Each command is a row of a table, which `help` prints. What is printed comes from the trace or from a source file
 * that it names, so all of it is escaped. */
#include "replay_step.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db.h"
#include "find_code.h"
#include "prompt.h"
#include "prose.h"
#include "replay.h"
#include "say.h"
#include "table.h"
#include "why.h"

enum {
    WIDTH = 70,
    STACK_SHOWN = 4, STACK_ALL = 200,
    ENTRIES_SHOWN = 16,
    SOURCE_AROUND = 2,
    SOURCE_MAX = 8 << 20,  /* bytes of a source file */
    GUARDS_SHOWN = 40,
    STOPS_MAX = 16,
    PLAY_GAP_MS = 5000,    /* no longer than that is waited between two events */
};

enum what { NEXT_LOOKUP, NEXT_COMPILE, NEXT_RECOMPILE, NEXT_BREAK, NEXT_DEATH, NEXT_HIT, NEXT_MISS, NEXT_EVENT, NEXT_FRAME, NEXT_KINDS };
static const char *const what_names[] = {"lookup", "compile", "recompile", "break", "death", "hit", "miss", "event", "frame"};

struct stop {
    char *text;       /* owned: as it was typed */
    enum { STOP_RECOMPILE, STOP_COMPILE, STOP_MISS, STOP_HIT, STOP_DEATH, STOP_LOOKUP } when;
    bool *codes, *entries; /* owned, or NULL: any */
};

struct stepper {
    struct db *db;       /* borrowed */
    struct replay *r;    /* borrowed */
    FILE *out;           /* borrowed */
    size_t at;           /* the event that the cursor is on, or before which it is */
    bool gap;
    int64_t frame_id;    /* after a step over frames: that frame; else 0 */
    int64_t frame_thread, frame_ns;
    enum what last;      /* what `next` alone goes to */
    double speed;
    bool failed;         /* a command could not be done */
    bool checks_indexed; /* false while the trace is written */
    /* The filter; NULL: all. */
    bool *codes, *threads, *lookups;
    bool outcomes[CALL_KINDS + 1], by_outcome;
    char *filtered;      /* owned: words for it, or NULL */
    struct stop stops[STOPS_MAX];
    int stop_count;
};

/* ---- finding the next event ------------------------------------------------ */

static uint32_t event_code(const struct replay *r, const struct replay_event *e)
{
    return e->kind == REPLAY_LOOKUP    ? r->caches[r->lookups[e->index].cache].code
           : e->kind == REPLAY_COMPILE ? r->compiles[e->index].code
           : e->kind == REPLAY_DEATH   ? r->entries[e->index].code
           : r->breaks[e->index].compile == REPLAY_NONE ? REPLAY_NONE : r->compiles[r->breaks[e->index].compile].code;
}

static uint32_t event_thread(const struct replay *r, const struct replay_event *e)
{
    return e->kind == REPLAY_LOOKUP    ? r->lookups[e->index].thread
           : e->kind == REPLAY_COMPILE ? r->compiles[e->index].thread
           : e->kind == REPLAY_DEATH || r->breaks[e->index].compile == REPLAY_NONE ? REPLAY_NONE
                                       : r->compiles[r->breaks[e->index].compile].thread;
}

static bool is_miss(const struct replay_lookup *l)
{
    return l->outcome != CALL_HIT;
}

static bool event_is(const struct replay *r, const struct replay_event *e, enum what what)
{
    switch (what) {
    case NEXT_LOOKUP:
        return e->kind == REPLAY_LOOKUP;
    case NEXT_COMPILE:
        return e->kind == REPLAY_COMPILE;
    case NEXT_RECOMPILE:
        return e->kind == REPLAY_COMPILE && r->compiles[e->index].recompile;
    case NEXT_BREAK:
        return e->kind == REPLAY_BREAK;
    case NEXT_DEATH:
        return e->kind == REPLAY_DEATH;
    case NEXT_HIT:
        return e->kind == REPLAY_LOOKUP && !is_miss(&r->lookups[e->index]);
    case NEXT_MISS:
        return e->kind == REPLAY_LOOKUP && is_miss(&r->lookups[e->index]);
    default:
        return true;
    }
}

static bool passes(const struct stepper *s, const struct replay_event *e)
{
    uint32_t code, thread;

    if (s->codes && ((code = event_code(s->r, e)) == REPLAY_NONE || !s->codes[code]))
        return false;
    if (s->threads && ((thread = event_thread(s->r, e)) == REPLAY_NONE || !s->threads[thread]))
        return false;
    if ((s->by_outcome || s->lookups) && e->kind != REPLAY_LOOKUP)
        return false;
    if (s->by_outcome && !s->outcomes[s->r->lookups[e->index].outcome < CALL_KINDS ? s->r->lookups[e->index].outcome : CALL_KINDS])
        return false;
    return !s->lookups || s->lookups[e->index];
}

/* The next WHAT from the cursor on, DIRECTION 1 or -1. False: there is none. */
static bool find(const struct stepper *s, enum what what, int direction, size_t *found)
{
    size_t at = s->at;

    if (direction > 0) {
        for (at += !s->gap; at < s->r->event_count; at++)
            if (event_is(s->r, &s->r->events[at], what) && passes(s, &s->r->events[at])) {
                *found = at;
                return true;
            }
    } else {
        while (at-- > 0)
            if (event_is(s->r, &s->r->events[at], what) && passes(s, &s->r->events[at])) {
                *found = at;
                return true;
            }
    }
    return false;
}

static void go(struct stepper *s, size_t at)
{
    s->at = at;
    s->gap = false;
    s->frame_id = 0;
}

static int64_t now_ns(const struct stepper *s)
{
    return s->frame_id ? s->frame_ns : s->at < s->r->event_count ? s->r->events[s->at].at_ns : s->r->last_ns;
}

/* ---- what is printed ------------------------------------------------------- */

static void say(struct stepper *s, const char *what, const char *why)
{
    s->failed = true;
    say_error("replay: %s: %s", what, why);
}

static void text_print(struct stepper *s, struct query *query, int column)
{
    prose_text(s->out, query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL), WIDTH);
}

/* "f (app/f.py:3)" of a code object's row id. */
static void code_print(struct stepper *s, int64_t code_id)
{
    struct query *query = db_query(s->db, "SELECT qualname, filename, first_line FROM code WHERE code_id = ?1");

    query_bind_integer(query, 1, code_id);
    if (query_step(query)) {
        char *file = prose_column(query, 1);
        text_print(s, query, 0);
        fputs(" (", s->out);
        prose_text(s->out, prose_path(file ? file : "?"), WIDTH);
        fprintf(s->out, ":%" PRId64 ")", query_integer(query, 2));
        free(file);
    } else {
        fprintf(s->out, "code %" PRId64, code_id);
    }
    query_close(query);
}

static void label_print(struct stepper *s, uint32_t entry)
{
    struct query *query;

    if (entry == REPLAY_NONE) {
        fputs("an entry that the trace has not", s->out);
        return;
    }
    query = db_query(s->db, "SELECT COALESCE(NULLIF(label, ''), '#' || cache_entry_id) FROM cache_entry WHERE cache_entry_id = ?1");
    query_bind_integer(query, 1, s->r->entries[entry].id);
    if (query_step(query))
        text_print(s, query, 0);
    query_close(query);
}

/* What lookup LOOKUP_ID did with ENTRY_ID: "fail: L['x'] == 3", "pass", or nothing. */
static void check_print(struct stepper *s, int64_t lookup_id, int64_t entry_id)
{
    struct query *query;

    if (!s->checks_indexed)
        return;
    query = db_query(s->db, "SELECT k.result, g.kind, COALESCE(NULLIF(g.expression, ''), g.source) FROM guard_check k LEFT JOIN guard g"
                            " ON g.guard_id = k.failed_guard_id WHERE k.lookup_id = ?1 AND k.cache_entry_id = ?2 LIMIT 1");
    query_bind_integer(query, 1, lookup_id);
    query_bind_integer(query, 2, entry_id);
    if (query_step(query)) {
        fputs("  ", s->out);
        text_print(s, query, 0);
        if (query_type(query, 2) != QUERY_NULL) {
            fputs(": ", s->out);
            text_print(s, query, 1);
            putc(' ', s->out);
            text_print(s, query, 2);
        }
    }
    query_close(query);
}

static void cell(struct stepper *s, const char *text, int columns)
{
    prose_cell(s->out, text, (size_t)columns, (size_t)columns);
    putc(' ', s->out);
}

/* STATE, entries in the order in which they are tried; beside each what LOOKUP did with it, if that is one. */
static void state_print(struct stepper *s, const struct replay_state *state, uint32_t lookup, bool all)
{
    char a[TABLE_HUMAN];
    bool regions = false;

    if (!state->count) {
        fputs("    (empty)\n", s->out);
        return;
    }
    for (size_t i = 0; i < state->count; i++)
        regions = regions || s->r->entries[state->slots[i].entry].region >= 0;
    fprintf(s->out, "     # entry      backend    %s  hits born       last hit   guards\n", regions ? "region" : "");
    for (size_t i = 0; i < state->count && (all || i < ENTRIES_SHOWN); i++) {
        const struct replay_slot *slot = &state->slots[i];
        const struct replay_entry *e = &s->r->entries[slot->entry];
        struct query *query = db_query(s->db, "SELECT label, backend, guard_count, death_cause FROM cache_entry WHERE cache_entry_id = ?1");
        bool there;
        query_bind_integer(query, 1, e->id);
        there = query_step(query);
        if (slot->dead)
            fputs("     - ", s->out);
        else
            fprintf(s->out, "    %2zu ", i);
        cell(s, there ? query_text(query, 0, NULL) : NULL, 10);
        cell(s, there ? query_text(query, 1, NULL) : NULL, 10);
        if (regions && e->region >= 0)
            fprintf(s->out, "%6" PRId64, e->region);
        else if (regions)
            fputs("     -", s->out);
        fprintf(s->out, " %5" PRIu32 " ", slot->hits);
        cell(s, table_duration(a, e->born_ns), 10);
        cell(s, slot->last_hit_ns < 0 ? NULL : table_duration(a, slot->last_hit_ns), 10);
        fprintf(s->out, "%6" PRId64, there ? query_integer(query, 2) : 0);
        if (slot->dead) {
            fprintf(s->out, "  died %s: ", table_duration(a, e->died_ns));
            prose_text(s->out, there && query_type(query, 3) != QUERY_NULL ? query_text(query, 3, NULL) : "?", WIDTH);
        } else if (lookup != REPLAY_NONE) {
            check_print(s, s->r->lookups[lookup].id, e->id);
        }
        query_close(query);
        putc('\n', s->out);
    }
    if (!all && state->count > ENTRIES_SHOWN)
        fprintf(s->out, "    (%d of %zu; `cache` prints all)\n", ENTRIES_SHOWN, state->count);
}

/* The cache that the cursor's event is about. */
static void cache_print(struct stepper *s, bool all)
{
    const struct replay *r = s->r;
    const struct replay_event *e = s->at < r->event_count && !s->frame_id && !s->gap ? &r->events[s->at] : NULL;
    struct replay_state state = {0};
    uint32_t cache = REPLAY_NONE;
    bool ok = true;

    if (!e) {
        if (all)
            say(s, "cache", "here is no decision; `next` goes to one");
        return;
    }
    if (e->kind == REPLAY_LOOKUP) {
        fputs("  cache as this lookup found it, in the order tried\n", s->out);
        ok = replay_state_at(r, e->index, &state);
    } else {
        uint32_t thread = event_thread(r, e), process = thread == REPLAY_NONE ? REPLAY_NONE : r->threads[thread].process;
        if (e->kind == REPLAY_DEATH)
            process = r->entries[e->index].process;
        if (event_code(r, e) != REPLAY_NONE)
            cache = replay_map_get(&r->cache_ids, (int64_t)event_code(r, e) << 32 | (int64_t)process);
        if (cache == REPLAY_NONE)
            return;
        fputs("  cache at that moment, in the order tried\n", s->out);
        ok = replay_state_when(r, cache, e->at_ns, &state);
    }
    if (ok)
        state_print(s, &state, e->kind == REPLAY_LOOKUP ? e->index : REPLAY_NONE, all);
    else
        say(s, "cache", "out of memory");
    replay_state_free(&state);
}

/* The row id of the frame that the cursor is at, 0 if none is known. */
static int64_t frame_here(struct stepper *s)
{
    const struct replay_event *e = &s->r->events[s->at];
    struct query *query;
    int64_t id = 0;

    if (s->frame_id)
        return s->frame_id;
    if (s->gap || s->at >= s->r->event_count || (e->kind != REPLAY_LOOKUP && e->kind != REPLAY_COMPILE))
        return 0;
    query = db_query(s->db, e->kind == REPLAY_LOOKUP ? "SELECT frame_id FROM lookup WHERE lookup_id = ?1"
                                                     : "SELECT frame_id FROM compile WHERE compile_id = ?1");
    query_bind_integer(query, 1, e->kind == REPLAY_LOOKUP ? s->r->lookups[e->index].id : s->r->compiles[e->index].id);
    if (query_step(query))
        id = query_integer(query, 0);
    query_close(query);
    return id;
}

static void stack_print(struct stepper *s, int most)
{
    struct query *query;
    int64_t id = frame_here(s), before = INT64_MAX;
    int depth = 0;

    if (!id)
        return;
    query = db_query(s->db, "SELECT parent_id, code_id FROM frame WHERE frame_id = ?1");
    fputs("  call stack\n", s->out);
    while (id > 0 && id < before && depth < most) { /* parents are older */
        query_reset(query);
        query_bind_integer(query, 1, id);
        if (!query_step(query)) {
            fputs(depth ? "    (what called it is not recorded)\n" : "    (its frame is not in the trace: too short, or not written yet)\n", s->out);
            break;
        }
        before = id;
        fputs("    ", s->out);
        code_print(s, query_integer(query, 1));
        putc('\n', s->out);
        id = query_integer(query, 0);
        depth++;
    }
    if (depth == most && id > 0)
        fputs("    ...\n", s->out);
    query_close(query);
}

/* The lines around LINE of FILENAME, which a trace names: only a regular file of a sane size is read. */
static void lines_print(struct stepper *s, const char *filename, int64_t line)
{
    int file = open(filename, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    FILE *in = NULL;
    char *text = NULL;
    size_t room = 0;
    ssize_t got;
    int64_t at = 0;

    if (file < 0 || fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX || !(in = fdopen(file, "r")))
        goto out;
    fputs("  source ", s->out);
    prose_text(s->out, prose_path(filename), WIDTH);
    if (st.st_mtime > db_meta_integer(s->db, "started_unix_ns", INT64_MAX) / 1000000000)
        fputs(" (changed since the recording)", s->out);
    putc('\n', s->out);
    while (at++ < line + SOURCE_AROUND && (got = getline(&text, &room, in)) >= 0) {
        if (at < line - SOURCE_AROUND)
            continue;
        while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r'))
            text[--got] = 0;
        fprintf(s->out, "  %s %4" PRId64 "  ", at == line ? ">" : " ", at);
        prose_text(s->out, text, 110);
        putc('\n', s->out);
    }
out:
    free(text);
    if (in)
        fclose(in);
    else if (file >= 0)
        close(file);
}

static void source_print(struct stepper *s)
{
    const struct replay_event *e = s->at < s->r->event_count && !s->gap ? &s->r->events[s->at] : NULL;
    struct query *query = NULL;

    if (s->frame_id) {
        query = db_query(s->db, "SELECT c.filename, c.first_line FROM frame f JOIN code c ON c.code_id = f.code_id WHERE f.frame_id = ?1");
        query_bind_integer(query, 1, s->frame_id);
    } else if (e && e->kind == REPLAY_BREAK) {
        query = db_query(s->db, "SELECT c.filename, b.line FROM graph_break b JOIN code c ON c.code_id = b.code_id WHERE b.graph_break_id = ?1");
        query_bind_integer(query, 1, s->r->breaks[e->index].id);
    } else if (e && event_code(s->r, e) != REPLAY_NONE) {
        query = db_query(s->db, "SELECT filename, first_line FROM code WHERE code_id = ?1");
        query_bind_integer(query, 1, s->r->codes[event_code(s->r, e)].id);
    }
    if (query && query_step(query) && query_type(query, 0) == QUERY_TEXT && query_integer(query, 1) > 0 && query_integer(query, 1) < INT32_MAX)
        lines_print(s, query_text(query, 0, NULL), query_integer(query, 1));
    query_close(query);
}

static void lookup_print(struct stepper *s, const struct replay_lookup *l)
{
    char a[TABLE_HUMAN];
    struct query *query;

    code_print(s, s->r->codes[s->r->caches[l->cache].code].id);
    fprintf(s->out, ": %s", l->outcome == REPLAY_OUTCOME_UNKNOWN ? "?" : why_outcome((enum outcome_kind)l->outcome));
    if (l->named || l->outcome == CALL_HIT) {
        putc(' ', s->out);
        if (l->named)
            label_print(s, l->entry);
        else
            fputs("code from before the recording", s->out);
    }
    if (l->observed)
        fputs(", seen from outside: which entries were tried is not known", s->out);
    else
        fprintf(s->out, ", %u entr%s checked", l->checked, l->checked == 1 ? "y" : "ies");
    fprintf(s->out, ", %s\n", table_duration(a, l->end_ns - l->start_ns));
    query = db_query(s->db, "SELECT s.text FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = ?1");
    query_bind_integer(query, 1, l->id);
    if (query_step(query)) {
        fputs("  inputs: ", s->out);
        prose_text(s->out, query_text(query, 0, NULL), WIDTH * 2);
        putc('\n', s->out);
    }
    query_close(query);
}

static void compile_print(struct stepper *s, const struct replay_compile *c)
{
    struct query *query = db_query(s->db, "SELECT label, outcome, reason, end_ns - start_ns FROM compile WHERE compile_id = ?1");
    char a[TABLE_HUMAN];

    code_print(s, s->r->codes[c->code].id);
    query_bind_integer(query, 1, c->id);
    if (query_step(query)) {
        fputs(": ", s->out);
        text_print(s, query, 1);
        if (query_type(query, 0) == QUERY_TEXT && *query_text(query, 0, NULL)) {
            putc(' ', s->out);
            text_print(s, query, 0);
        }
        if (query_type(query, 3) != QUERY_NULL)
            fprintf(s->out, ", %s", table_duration(a, query_integer(query, 3)));
        if (query_type(query, 2) == QUERY_TEXT) {
            fputs("; ", s->out);
            text_print(s, query, 2);
        }
    }
    query_close(query);
    putc('\n', s->out);
    query = db_query(s->db, "SELECT COALESCE(e.label, '#' || r.cache_entry_id), r.kind, r.source, r.expected, r.actual, r.text FROM recompile_cause r"
                            " LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id WHERE r.compile_id = ?1 AND r.how IS NOT 're-checked'"
                            " ORDER BY r.rowid LIMIT 8");
    query_bind_integer(query, 1, c->id);
    while (query_step(query)) {
        fputs("  ", s->out);
        text_print(s, query, 0);
        fputs(" did not fit: ", s->out);
        text_print(s, query, 1);
        putc(' ', s->out);
        text_print(s, query, 2);
        if (query_type(query, 3) == QUERY_TEXT && *query_text(query, 3, NULL)) {
            fputs(", wanted ", s->out);
            text_print(s, query, 3);
            fputs(", saw ", s->out);
            text_print(s, query, 4);
        } else if (query_type(query, 5) == QUERY_TEXT && *query_text(query, 5, NULL)) {
            fputs(": ", s->out);
            text_print(s, query, 5);
        }
        putc('\n', s->out);
    }
    query_close(query);
}

static void break_print(struct stepper *s, const struct replay_break *b)
{
    struct query *query = db_query(s->db, "SELECT code_id, line, reason FROM graph_break WHERE graph_break_id = ?1");

    query_bind_integer(query, 1, b->id);
    if (query_step(query)) {
        code_print(s, query_integer(query, 0));
        fprintf(s->out, ": line %" PRId64 ": ", query_integer(query, 1));
        text_print(s, query, 2);
    }
    putc('\n', s->out);
    query_close(query);
}

static void thread_print(struct stepper *s, int64_t thread_id)
{
    struct query *query = db_query(s->db, "SELECT t.name, p.pid FROM thread t LEFT JOIN process p ON p.process_id = t.process_id WHERE t.thread_id = ?1");

    query_bind_integer(query, 1, thread_id);
    fprintf(s->out, "thread %" PRId64, thread_id);
    if (query_step(query)) {
        if (query_type(query, 0) == QUERY_TEXT && *query_text(query, 0, NULL)) {
            fputs(" (", s->out);
            text_print(s, query, 0);
            putc(')', s->out);
        }
        fprintf(s->out, " of process %" PRId64, query_integer(query, 1));
    }
    query_close(query);
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* Where the cursor is. BRIEF: one line. */
static void here_print(struct stepper *s, bool brief)
{
    static const char *const kinds[] = {"lookup", "compile", "break", "death"};
    const struct replay *r = s->r;
    const struct replay_event *e = s->at < r->event_count ? &r->events[s->at] : NULL;
    char a[TABLE_HUMAN];
    double percent = r->last_ns > 0 ? 100.0 * (double)now_ns(s) / (double)r->last_ns : 0;

    if (s->frame_id) {
        struct query *query = db_query(s->db, "SELECT f.code_id, f.end_ns - f.start_ns, (SELECT name FROM enum WHERE kind = 'outcome' AND"
                                              " value = f.outcome) FROM frame f WHERE f.frame_id = ?1");
        query_bind_integer(query, 1, s->frame_id);
        fprintf(s->out, "frame %" PRId64 "  %.6f s  %.1f %%  ", s->frame_id, seconds(s->frame_ns), percent);
        thread_print(s, s->frame_thread);
        fputs("\n  ", s->out);
        if (query_step(query)) {
            code_print(s, query_integer(query, 0));
            fputs(": ", s->out);
            text_print(s, query, 2);
            if (query_type(query, 1) == QUERY_NULL)
                fputs(", never ended\n", s->out);
            else
                fprintf(s->out, ", %s\n", table_duration(a, query_integer(query, 1)));
        }
        query_close(query);
    } else if (!e || s->gap) {
        if (e)
            fprintf(s->out, "before event %zu of %zu  %.6f s  %.1f %%\n", s->at + 1, r->event_count, seconds(now_ns(s)), percent);
        else
            fprintf(s->out, "after the last of %zu events\n", r->event_count);
        return;
    } else {
        int64_t id = e->kind == REPLAY_LOOKUP    ? r->lookups[e->index].id
                     : e->kind == REPLAY_COMPILE ? r->compiles[e->index].id
                     : e->kind == REPLAY_BREAK   ? r->breaks[e->index].id : r->entries[e->index].id;
        uint32_t thread = event_thread(r, e);
        fprintf(s->out, "%s %" PRId64 "  event %zu of %zu  %.6f s  %.1f %%", kinds[e->kind], id, s->at + 1, r->event_count,
                seconds(e->at_ns), percent);
        if (thread != REPLAY_NONE) {
            fputs("  ", s->out);
            thread_print(s, r->threads[thread].id);
        }
        fputs("\n  ", s->out);
        if (e->kind == REPLAY_LOOKUP)
            lookup_print(s, &r->lookups[e->index]);
        else if (e->kind == REPLAY_COMPILE)
            compile_print(s, &r->compiles[e->index]);
        else if (e->kind == REPLAY_BREAK)
            break_print(s, &r->breaks[e->index]);
        else {
            code_print(s, r->codes[r->entries[e->index].code].id);
            fputs(": entry ", s->out);
            label_print(s, e->index);
            fputs(" died\n", s->out);
        }
    }
    if (brief)
        return;
    cache_print(s, false);
    stack_print(s, STACK_SHOWN);
    source_print(s);
}

/* ---- frames ---------------------------------------------------------------- */

/* The next frame of the thread that the cursor is on; frames stay in the file. False: there is none. */
static bool frame_step(struct stepper *s, int direction)
{
    struct query *query;
    int64_t from = frame_here(s), thread = s->frame_thread;
    bool found;

    if (!s->frame_id && s->at < s->r->event_count && !s->gap && event_thread(s->r, &s->r->events[s->at]) != REPLAY_NONE)
        thread = s->r->threads[event_thread(s->r, &s->r->events[s->at])].id;
    if (!from)
        query = db_query(s->db, direction > 0 ? "SELECT frame_id, start_ns, thread_id FROM frame WHERE start_ns >= ?1 ORDER BY frame_id LIMIT 1"
                                              : "SELECT frame_id, start_ns, thread_id FROM frame WHERE start_ns < ?1 ORDER BY frame_id DESC LIMIT 1");
    else
        query = db_query(s->db, direction > 0 ? "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id > ?1 AND thread_id = ?2"
                                                " ORDER BY frame_id LIMIT 1"
                                              : "SELECT frame_id, start_ns, thread_id FROM frame WHERE frame_id < ?1 AND thread_id = ?2"
                                                " ORDER BY frame_id DESC LIMIT 1");
    query_bind_integer(query, 1, from ? from : now_ns(s));
    if (from)
        query_bind_integer(query, 2, thread);
    found = query_step(query);
    if (found) {
        s->frame_id = query_integer(query, 0);
        s->frame_ns = query_integer(query, 1);
        s->frame_thread = query_integer(query, 2);
        s->at = replay_seek(s->r, s->frame_ns);
        s->gap = true;
    }
    query_close(query);
    return found;
}

/* ---- commands -------------------------------------------------------------- */

/* The next word of *TEXT, ended in place; NULL at the end. */
static char *word_next(char **text)
{
    char *at = *text + strspn(*text, " \t"), *end;

    if (!*at)
        return NULL;
    end = at + strcspn(at, " \t");
    *text = end + (*end != 0);
    *end = 0;
    return at;
}

static char *rest_of(char *text)
{
    char *end;

    text += strspn(text, " \t");
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = 0;
    return text;
}

static bool what_of(const char *word, enum what *what)
{
    size_t length = strlen(word);

    for (int i = 0; i < NEXT_KINDS; i++)
        if (length && (!strcmp(what_names[i], word) || (length == strlen(what_names[i]) + 1 && !strncmp(what_names[i], word, length - 1) && word[length - 1] == 's'))) {
            *what = (enum what)i;
            return true;
        }
    return false;
}

static void step(struct stepper *s, char *rest, int direction)
{
    const char *word = word_next(&rest);
    size_t found;

    if (word && !what_of(word, &s->last)) {
        say(s, word, "no such event: lookup, compile, recompile, break, death, hit, miss, event or frame");
        return;
    }
    if (s->last == NEXT_FRAME) {
        if (frame_step(s, direction))
            here_print(s, false);
        else
            fprintf(s->out, "(no %s frame on this thread)\n", direction > 0 ? "later" : "earlier");
    } else if (find(s, s->last, direction, &found)) {
        go(s, found);
        here_print(s, false);
    } else {
        fprintf(s->out, "(no %s %s%s)\n", direction > 0 ? "later" : "earlier", what_names[s->last], s->filtered ? " that passes the filter" : "");
    }
}

static void do_next(struct stepper *s, char *rest)
{
    step(s, rest, 1);
}

static void do_previous(struct stepper *s, char *rest)
{
    step(s, rest, -1);
}

static void do_here(struct stepper *s, char *rest)
{
    (void)rest;
    here_print(s, false);
}

/* "1.5s", "20ms", "3us", "7ns": nanoseconds, or -1. */
static int64_t time_from(const char *word)
{
    static const struct { const char *unit; double ns; } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end;
    double value = strtod(word, &end);

    for (size_t i = 0; end != word && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && value >= 0 && value * units[i].ns < 9e18)
            return (int64_t)(value * units[i].ns);
    return -1;
}

static void do_goto(struct stepper *s, char *rest)
{
    char *word = word_next(&rest), *more = word ? word_next(&rest) : NULL, *end;
    struct replay *r = s->r;
    enum what what;
    size_t found;
    int64_t ns;
    double percent;

    if (!word) {
        say(s, "goto", "where to? A time (1.5s), a part (50%), lookup 20, first miss, last compile");
        return;
    }
    if (!strcmp(word, "first") || !strcmp(word, "last")) {
        struct stepper end_of = *s;
        end_of.at = !strcmp(word, "first") ? 0 : r->event_count;
        end_of.gap = true;
        what = NEXT_EVENT;
        if ((more && !what_of(more, &what)) || what == NEXT_FRAME)
            say(s, more, "no such event: lookup, compile, recompile, break, death, hit, miss or event");
        else if (!find(&end_of, what, *word == 'f' ? 1 : -1, &found))
            fprintf(s->out, "(no %s%s)\n", what_names[what], s->filtered ? " that passes the filter" : "");
        else {
            go(s, found);
            here_print(s, false);
        }
        return;
    }
    if (more && what_of(word, &what)) {
        int64_t id = strtoll(more, &end, 10);
        size_t at = r->event_count;
        if (*end || end == more) {
            say(s, more, "not a number");
            return;
        }
        if (what == NEXT_LOOKUP || what == NEXT_HIT || what == NEXT_MISS) {
            uint32_t lookup = replay_lookup_at(r, id);
            if (lookup != REPLAY_NONE)
                at = replay_event_of(r, REPLAY_LOOKUP, lookup);
        } else if (what == NEXT_EVENT) {
            at = id > 0 && (uint64_t)id <= r->event_count ? (size_t)id - 1 : r->event_count;
        } else if (what == NEXT_FRAME) {
            struct query *query = db_query(s->db, "SELECT start_ns, thread_id FROM frame WHERE frame_id = ?1");
            query_bind_integer(query, 1, id);
            if (query_step(query)) {
                s->frame_id = id;
                s->frame_ns = query_integer(query, 0);
                s->frame_thread = query_integer(query, 1);
                s->at = replay_seek(r, s->frame_ns);
                s->gap = true;
                query_close(query);
                here_print(s, false);
                return;
            }
            query_close(query);
        } else {
            uint32_t index = what == NEXT_DEATH ? replay_map_get(&r->entry_ids, id) : replay_map_get(&r->compile_ids, id);
            if (what == NEXT_BREAK)
                for (index = 0; index < r->break_count && r->breaks[index].id != id;)
                    index++;
            if (what == NEXT_BREAK ? index < r->break_count : index != REPLAY_NONE && (what != NEXT_DEATH || r->entries[index].died_ns != REPLAY_NEVER))
                at = replay_event_of(r, what == NEXT_BREAK ? REPLAY_BREAK : what == NEXT_DEATH ? REPLAY_DEATH : REPLAY_COMPILE, index);
        }
        if (at == r->event_count) {
            say(s, more, "the trace has none with that number");
        } else {
            go(s, at);
            here_print(s, false);
        }
        return;
    }
    percent = strtod(word, &end);
    ns = end != word && !strcmp(end, "%") && percent >= 0 && percent <= 100 ? (int64_t)((double)r->last_ns * percent / 100) : time_from(word);
    if (ns < 0 || more) {
        say(s, word, "not a time (1.5s, 20ms), a part (50%) or an event (lookup 20, first miss)");
        return;
    }
    s->at = replay_seek(r, ns);
    s->gap = true;
    s->frame_id = 0;
    here_print(s, false);
}

/* Marks in a new array the codes of the functions that NAME is; NULL: it was said why not. */
static bool *codes_named(struct stepper *s, const char *name)
{
    struct found_code found;
    bool *codes = NULL;

    if (find_code(s->db, name, &found, s->out, false) != FIND_ONE) {
        s->failed = true;
        return NULL;
    }
    codes = calloc(s->r->code_count + 1, sizeof *codes);
    for (char *at = found.ids; codes && at && *at; at += strspn(at, ", ")) {
        uint32_t code = replay_map_get(&s->r->code_ids, strtoll(at, &at, 10));
        if (code != REPLAY_NONE)
            codes[code] = true;
    }
    found_code_free(&found);
    return codes;
}

/* Marks in ALREADY, or in a new array of COUNT, what MAP gives for the ids of a query's rows. TEXT is its ?1. */
static bool *ids_marked(struct stepper *s, const char *sql, const char *text, const struct replay_map *map, size_t count)
{
    struct query *query = db_query(s->db, sql);
    bool *marked = query ? calloc(count + 1, sizeof *marked) : NULL, any = false;

    query_bind_text(query, 1, text);
    while (marked && query_step(query)) {
        uint32_t at = map ? replay_map_get(map, query_integer(query, 0)) : replay_lookup_at(s->r, query_integer(query, 0));
        if (at != REPLAY_NONE)
            any = marked[at] = true;
    }
    if (!query_close(query)) {
        s->failed = true;
        free(marked);
        return NULL;
    }
    if (!any) {
        say(s, text, "nothing recorded is like that");
        free(marked);
        return NULL;
    }
    return marked;
}

static void filter_off(struct stepper *s)
{
    free(s->codes);
    free(s->threads);
    free(s->lookups);
    free(s->filtered);
    s->codes = s->threads = s->lookups = NULL;
    s->filtered = NULL;
    s->by_outcome = false;
    memset(s->outcomes, 0, sizeof s->outcomes);
}

static bool outcomes_of(struct stepper *s, char *list)
{
    bool chosen[CALL_KINDS + 1] = {false};

    for (char *name = strtok(list, ", "); name; name = strtok(NULL, ", ")) {
        int i = 0;
        while (i < CALL_KINDS && strcmp(name, why_outcome((enum outcome_kind)i)))
            i++;
        if (i == CALL_KINDS) {
            say(s, name, "no such outcome: plain, hit, compiled, run_only, skip, limit, declined, disabled, guard_error or callback_error");
            return false;
        }
        chosen[i] = true;
    }
    memcpy(s->outcomes, chosen, sizeof chosen);
    s->by_outcome = true;
    return true;
}

/* Filters of several kinds hold together; one of the same kind takes the place of the former. */
static void do_filter(struct stepper *s, char *rest)
{
    char *kind, *words = strdup(rest_of(rest)), *sql = NULL, *more = NULL;
    bool *marked = NULL, ok = false;

    kind = word_next(&rest);
    rest = rest_of(rest);
    if (!kind) {
        fputs(s->filtered ? "filter: " : "no filter\n", s->out);
        if (s->filtered) {
            prose_text(s->out, s->filtered, WIDTH * 4);
            putc('\n', s->out);
        }
    } else if (!strcmp(kind, "off")) {
        filter_off(s);
        fputs("no filter\n", s->out);
    } else if (!*rest) {
        say(s, kind, "filter by what? function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL; or off");
    } else if (!strcmp(kind, "function") || !strcmp(kind, "file")) {
        marked = !strcmp(kind, "function") ? codes_named(s, rest)
                 : ids_marked(s, "SELECT code_id FROM code WHERE filename GLOB ?1 OR filename GLOB '*/' || ?1", rest, &s->r->code_ids, s->r->code_count);
        if (marked) {
            free(s->codes);
            s->codes = marked;
            ok = true;
        }
    } else if (!strcmp(kind, "thread") || !strcmp(kind, "process")) {
        marked = ids_marked(s, !strcmp(kind, "thread") ? "SELECT thread_id FROM thread WHERE thread_id = CAST(?1 AS INTEGER) OR name = ?1"
                                                       : "SELECT t.thread_id FROM thread t JOIN process p ON p.process_id = t.process_id"
                                                         " WHERE p.process_id = CAST(?1 AS INTEGER) OR p.pid = CAST(?1 AS INTEGER)",
                            rest, &s->r->thread_ids, s->r->thread_count);
        if (marked) {
            free(s->threads);
            s->threads = marked;
            ok = true;
        }
    } else if (!strcmp(kind, "outcome")) {
        ok = outcomes_of(s, rest);
    } else if (!strcmp(kind, "where")) {
        if (asprintf(&sql, "SELECT lookup_id FROM call_ledger WHERE (%s\n) AND ?1 IS NOT NULL", rest) >= 0 &&
            (marked = ids_marked(s, sql, rest, NULL, s->r->lookup_count))) {
            free(s->lookups);
            s->lookups = marked;
            ok = true;
        } else {
            s->failed = true;
        }
        free(sql);
    } else {
        say(s, kind, "no such filter: function, file, thread, process, outcome, where; or off");
    }
    if (ok && words && asprintf(&more, "%s%s%s", s->filtered ? s->filtered : "", s->filtered ? ", " : "", words) >= 0) {
        free(s->filtered);
        s->filtered = more;
    }
    if (ok) {
        size_t count = 0;
        for (size_t i = 0; i < s->r->event_count; i++)
            count += passes(s, &s->r->events[i]);
        fprintf(s->out, "%zu of %zu events pass\n", count, s->r->event_count);
    }
    free(words);
}

static void stop_free(struct stop *stop)
{
    free(stop->text);
    free(stop->codes);
    free(stop->entries);
}

/* "stop when FUNC recompiles", "stop when entry 0/3 is hit"; "when" and "is" may be left out. */
static void do_stop(struct stepper *s, char *rest)
{
    static const struct { const char *verb; int when; } verbs[] = {
        {"recompiles", STOP_RECOMPILE}, {"compiles", STOP_COMPILE}, {"misses", STOP_MISS}, {"called", STOP_LOOKUP}, {"hit", STOP_HIT}, {"dies", STOP_DEATH},
    };
    struct stop stop = {0};
    char *word, *subject = NULL;
    bool entry = false, known = false;

    rest = rest_of(rest);
    if (!*rest) {
        for (int i = 0; i < s->stop_count; i++) {
            fprintf(s->out, "%d. ", i + 1);
            prose_text(s->out, s->stops[i].text, WIDTH * 2);
            putc('\n', s->out);
        }
        if (!s->stop_count)
            fputs("no stops\n", s->out);
        return;
    }
    if (!strcmp(rest, "off")) {
        while (s->stop_count)
            stop_free(&s->stops[--s->stop_count]);
        fputs("no stops\n", s->out);
        return;
    }
    if (s->stop_count == STOPS_MAX) {
        say(s, "stop", "no room for more; `stop off` takes all away");
        return;
    }
    stop.text = strdup(rest);
    while ((word = word_next(&rest))) {
        if (!strcmp(word, "when") && !subject)
            continue;
        if (!strcmp(word, "entry") && !subject)
            entry = true;
        else if (!subject)
            subject = word;
        else if (strcmp(word, "is"))
            for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
                if (!strcmp(word, verbs[i].verb)) {
                    stop.when = verbs[i].when;
                    known = true;
                }
    }
    if (!known || !subject || entry != (stop.when == STOP_HIT || stop.when == STOP_DEATH)) {
        say(s, "stop", "when what? FUNC recompiles, compiles, misses or is called; entry LABEL is hit or dies");
        stop_free(&stop);
        return;
    }
    if (entry)
        stop.entries = ids_marked(s, "SELECT cache_entry_id FROM cache_entry WHERE label = ?1", subject, &s->r->entry_ids, s->r->entry_count);
    else
        stop.codes = codes_named(s, subject);
    if (!stop.codes && !stop.entries) {
        stop_free(&stop);
        return;
    }
    s->stops[s->stop_count++] = stop;
}

static const struct stop *stopped_by(const struct stepper *s, const struct replay_event *e)
{
    const struct replay *r = s->r;
    uint32_t code = event_code(r, e);

    for (int i = 0; i < s->stop_count; i++) {
        const struct stop *stop = &s->stops[i];
        const struct replay_lookup *l = e->kind == REPLAY_LOOKUP ? &r->lookups[e->index] : NULL;
        if (stop->codes && (code == REPLAY_NONE || !stop->codes[code]))
            continue;
        if ((stop->when == STOP_RECOMPILE && e->kind == REPLAY_COMPILE && r->compiles[e->index].recompile) ||
            (stop->when == STOP_COMPILE && e->kind == REPLAY_COMPILE) || (stop->when == STOP_MISS && l && is_miss(l)) ||
            (stop->when == STOP_LOOKUP && l) || (stop->when == STOP_HIT && l && !is_miss(l) && l->entry != REPLAY_NONE && stop->entries[l->entry]) ||
            (stop->when == STOP_DEATH && e->kind == REPLAY_DEATH && stop->entries[e->index]))
            return stop;
    }
    return NULL;
}

/* On to a stop, DIRECTION 1 or -1; PLAY: print what passes, in time. */
static void run_on(struct stepper *s, int direction, bool play)
{
    const struct stop *stop = NULL;
    int64_t before = now_ns(s);
    size_t found, passed = 0;

    while (!stop && !prompt_interrupted() && find(s, NEXT_EVENT, direction, &found)) {
        const struct replay_event *e = &s->r->events[found];
        if (play) {
            double ms = (double)(e->at_ns - before) / 1e6 / s->speed;
            if (ms > PLAY_GAP_MS)
                ms = PLAY_GAP_MS;
            if (ms >= 1) {
                fflush(s->out);
                nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)((ms - 1000 * (double)(time_t)(ms / 1000)) * 1e6)}, NULL);
                if (prompt_interrupted())
                    break;
            }
            before = e->at_ns;
        }
        go(s, found);
        passed++;
        stop = stopped_by(s, e);
        if (play && !stop)
            here_print(s, true);
    }
    if (stop) {
        fputs("stopped: ", s->out);
        prose_text(s->out, stop->text, WIDTH * 2);
        putc('\n', s->out);
        here_print(s, false);
    } else {
        fprintf(s->out, "(%s after %zu events)\n", prompt_interrupted() ? "interrupted" : direction > 0 ? "the end" : "the beginning", passed);
    }
}

static void do_continue(struct stepper *s, char *rest)
{
    (void)rest;
    run_on(s, 1, false);
}

static void do_back(struct stepper *s, char *rest)
{
    (void)rest;
    run_on(s, -1, false);
}

static void do_play(struct stepper *s, char *rest)
{
    char *word = word_next(&rest), *end = NULL;
    double speed = word ? strtod(word, &end) : s->speed;

    if (word && (*end || !(speed > 0 && speed < 1e9))) {
        say(s, word, "not a speed: 1 is as recorded, 10 ten times as fast");
        return;
    }
    s->speed = speed;
    run_on(s, 1, true);
}

static void do_cache(struct stepper *s, char *rest)
{
    (void)rest;
    cache_print(s, true);
}

static void do_stack(struct stepper *s, char *rest)
{
    (void)rest;
    if (!frame_here(s))
        fputs("(no frame is known here)\n", s->out);
    stack_print(s, STACK_ALL);
}

static void do_source(struct stepper *s, char *rest)
{
    (void)rest;
    source_print(s);
}

/* The guards of the entries with a label; without one, of the entry that the cursor's event is about. */
static void do_guards(struct stepper *s, char *rest)
{
    const struct replay_event *e = s->at < s->r->event_count && !s->gap ? &s->r->events[s->at] : NULL;
    struct query *query;
    char *word = word_next(&rest);
    int64_t entry = -1;
    bool any = false;

    if (e && e->kind == REPLAY_LOOKUP && s->r->lookups[e->index].entry != REPLAY_NONE)
        entry = s->r->entries[s->r->lookups[e->index].entry].id;
    if (e && e->kind == REPLAY_DEATH)
        entry = s->r->entries[e->index].id;
    if (e && e->kind == REPLAY_COMPILE && s->r->compiles[e->index].entry != REPLAY_NONE)
        entry = s->r->entries[s->r->compiles[e->index].entry].id;
    query = db_query(s->db, word ? "SELECT e.label, g.ordinal, g.kind, g.source, g.expression FROM cache_entry e JOIN guard g"
                                   " ON g.cache_entry_id = e.cache_entry_id WHERE e.label = ?1 ORDER BY e.cache_entry_id, g.ordinal LIMIT ?2"
                                 : "SELECT e.label, g.ordinal, g.kind, g.source, g.expression FROM cache_entry e JOIN guard g"
                                   " ON g.cache_entry_id = e.cache_entry_id WHERE e.cache_entry_id = ?1 ORDER BY g.ordinal LIMIT ?2");
    if (word)
        query_bind_text(query, 1, word);
    else
        query_bind_integer(query, 1, entry);
    query_bind_integer(query, 2, GUARDS_SHOWN);
    while (query_step(query)) {
        any = true;
        fputs("  ", s->out);
        text_print(s, query, 0);
        fprintf(s->out, " %3" PRId64 "  ", query_integer(query, 1));
        cell(s, query_text(query, 2, NULL), 20);
        cell(s, query_text(query, 3, NULL), 24);
        text_print(s, query, 4);
        putc('\n', s->out);
    }
    if (query_close(query) && !any)
        fputs("(no guards)\n", s->out);
}

static void do_help(struct stepper *s, char *rest);

static const struct step_command {
    const char *name, *brief, *words, *help;
    void (*run)(struct stepper *s, char *rest);
} commands[] = {
    {"next", "n", "[WHAT]", "the next lookup, compile, recompile, break, death, hit, miss, event or frame; alone: as before", do_next},
    {"previous", "p", "[WHAT]", "the one before", do_previous},
    {"goto", "g", "PLACE", "1.5s, 50%, lookup 20, compile 3, frame 7, first miss, last compile", do_goto},
    {"here", ".", "", "print this place again", do_here},
    {"filter", "f", "[BY WHAT]", "function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL (of call_ledger); off", do_filter},
    {"stop", "s", "[WHEN]", "when FUNC recompiles, compiles, misses, is called; when entry 0/3 is hit, dies; off", do_stop},
    {"continue", "c", "", "on to the next stop, or the end", do_continue},
    {"back", "b", "", "back to the stop before, or the beginning", do_back},
    {"play", "", "[SPEED]", "tell one event after the other in recorded time; Ctrl-C stops", do_play},
    {"cache", "", "", "all entries of the cache, as they stood", do_cache},
    {"guards", "", "[LABEL]", "the guards of this entry, or of the one with that label", do_guards},
    {"stack", "", "", "the whole call stack", do_stack},
    {"source", "", "", "source lines", do_source},
    {"help", "h", "", "this", do_help},
    {"quit", "q", "", "or Ctrl-D", NULL},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void do_help(struct stepper *s, char *rest)
{
    (void)rest;
    for (int i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].words);
        fprintf(s->out, "  %-2s %-20s %s\n", commands[i].brief, left, commands[i].help);
    }
    fputs("Recorded decisions are replayed, not the program: nothing of it runs.\n", s->out);
}

/* One command. False: that was the last one. */
static bool do_one(struct stepper *s, char *line)
{
    char *rest = line, *word = word_next(&rest);

    if (!word)
        return true;
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(word, commands[i].name) || (*commands[i].brief && !strcmp(word, commands[i].brief))) {
            if (!commands[i].run)
                return false;
            commands[i].run(s, rest);
            return true;
        }
    say(s, word, "no such command; `help` lists them");
    return true;
}

/* Commands with ';' or line ends between them; a ';' within quotes is not one. */
static bool do_list(struct stepper *s, char *list)
{
    while (*list) {
        char *end = list, quote = 0;
        bool last;
        for (; *end && (quote || (*end != ';' && *end != '\n')); end++)
            if (*end == '\'' || *end == '"')
                quote = !quote ? *end : quote == *end ? 0 : quote;
        last = !*end;
        *end = 0;
        if (!do_one(s, list))
            return false;
        list = last ? end : end + 1;
    }
    return true;
}

int replay_step(struct db *db, struct replay *replay, const char *script, double speed, FILE *out)
{
    struct stepper s = {.db = db, .r = replay, .out = out, .gap = true, .speed = speed, .last = NEXT_LOOKUP};
    bool terminal = !script && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO), go_on = true;
    char *line = NULL;
    size_t room = 0;

    s.checks_indexed = db_integer(db, 0, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'index' AND name = 'guard_check_lookup'") > 0;
    s.frame_thread = db_integer(db, 0, "SELECT MIN(thread_id) FROM thread");
    if (terminal) {
        fputs("Replays the decisions recorded in ", out);
        prose_text(out, db_path(db), WIDTH);
        fprintf(out, " (%zu lookups, %zu compiles), not the program. \"help\" tells more.\n", replay->lookup_count, replay->compile_count);
        prompt_begin();
    }
    if (script) {
        line = strdup(script);
        if (line)
            do_list(&s, line);
    }
    while (!script && go_on) {
        if (terminal) {
            free(line);
            line = prompt_line("replay> ");
            if (!line)
                putc('\n', out);
        }
        if (terminal ? !line : getline(&line, &room, stdin) < 0)
            break;
        go_on = do_list(&s, line);
    }
    free(line);
    filter_off(&s);
    while (s.stop_count)
        stop_free(&s.stops[--s.stop_count]);
    return s.failed && !terminal ? 2 : 0;
}

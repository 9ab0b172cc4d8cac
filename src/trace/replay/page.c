/* trace/replay/page.c -- what is shown of the place where a cursor is. See trace/replay/page.h.
 *
 * Runs in: the viewer.
 *
 * What is printed comes from the trace or from a source file that it names, so all of it is escaped. */
#include "trace/replay/page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/replay/cursor.h"
#include "lib/table.h"
#include "trace/why/why.h"

enum {
    WIDTH = 70,
    STACK_SHOWN = 4,
    STACK_ALL = 200,
    ENTRIES_SHOWN = 16,
    SOURCE_AROUND = 2,
    SOURCE_MAX = 8 << 20, /* bytes of a source file */
    GUARDS_SHOWN = 40,
};

/* ---- names ----------------------------------------------------------------- */

static void text_print(struct replay_page *p, struct query *query, int column)
{
    prose_text(p->out, query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL), WIDTH);
}

/* "f (app/f.py:3)" of a code object's row id. */
static void code_print(struct replay_page *p, int64_t code_id)
{
    struct query *query = db_query(p->db, "SELECT qualname, filename, first_line FROM code WHERE code_id = ?1");

    query_bind_integer(query, 1, code_id);
    if (query_step(query)) {
        char *file = prose_column(query, 1);
        text_print(p, query, 0);
        fputs(" (", p->out);
        prose_text(p->out, prose_path(file ? file : "?"), WIDTH);
        fprintf(p->out, ":%" PRId64 ")", query_integer(query, 2));
        free(file);
    } else {
        fprintf(p->out, "code %" PRId64, code_id);
    }
    query_close(query);
}

static void label_print(struct replay_page *p, uint32_t entry)
{
    struct query *query;

    if (entry == REPLAY_NONE) {
        fputs("an entry that the trace has not", p->out);
        return;
    }
    query = db_query(
        p->db, "SELECT COALESCE(NULLIF(label, ''), '#' || cache_entry_id) FROM cache_entry WHERE cache_entry_id = ?1");
    query_bind_integer(query, 1, p->c->r->entries[entry].id);
    if (query_step(query))
        text_print(p, query, 0);
    query_close(query);
}

/* ---- the cache ------------------------------------------------------------- */

/* What lookup LOOKUP_ID did with ENTRY_ID: "fail: L['x'] == 3", "pass", or nothing. */
static void check_print(struct replay_page *p, int64_t lookup_id, int64_t entry_id)
{
    struct query *query;

    if (!p->checks_indexed)
        return;
    query = db_query(
        p->db,
        "SELECT k.result, g.kind, COALESCE(NULLIF(g.expression, ''), g.source) FROM guard_check k LEFT JOIN guard g"
        " ON g.guard_id = k.failed_guard_id WHERE k.lookup_id = ?1 AND k.cache_entry_id = ?2 LIMIT 1");
    query_bind_integer(query, 1, lookup_id);
    query_bind_integer(query, 2, entry_id);
    if (query_step(query)) {
        fputs("  ", p->out);
        text_print(p, query, 0);
        if (query_type(query, 2) != QUERY_NULL) {
            fputs(": ", p->out);
            text_print(p, query, 1);
            putc(' ', p->out);
            text_print(p, query, 2);
        }
    }
    query_close(query);
}

static void cell(struct replay_page *p, const char *text, int columns)
{
    prose_cell(p->out, text, (size_t)columns, (size_t)columns);
    putc(' ', p->out);
}

/* STATE, entries in the order in which they are tried; beside each what LOOKUP did with it, if that is one. */
static void state_print(struct replay_page *p, const struct replay_state *state, uint32_t lookup, bool all)
{
    char a[TABLE_HUMAN];
    bool regions = false;

    if (!state->count) {
        fputs("    (empty)\n", p->out);
        return;
    }
    for (size_t i = 0; i < state->count; i++)
        regions = regions || p->c->r->entries[state->slots[i].entry].region >= 0;
    fprintf(p->out, "     # entry      backend    %s  hits born       last hit   guards\n", regions ? "region" : "");
    for (size_t i = 0; i < state->count && (all || i < ENTRIES_SHOWN); i++) {
        const struct replay_slot *slot = &state->slots[i];
        const struct replay_entry *e = &p->c->r->entries[slot->entry];
        struct query *query = db_query(
            p->db, "SELECT label, backend, guard_count, death_cause FROM cache_entry WHERE cache_entry_id = ?1");
        bool there;
        query_bind_integer(query, 1, e->id);
        there = query_step(query);
        if (slot->dead)
            fputs("     - ", p->out);
        else
            fprintf(p->out, "    %2zu ", i);
        cell(p, there ? query_text(query, 0, NULL) : NULL, 10);
        cell(p, there ? query_text(query, 1, NULL) : NULL, 10);
        if (regions && e->region >= 0)
            fprintf(p->out, "%6" PRId64, e->region);
        else if (regions)
            fputs("     -", p->out);
        fprintf(p->out, " %5" PRIu32 " ", slot->hits);
        cell(p, table_duration(a, e->born_ns), 10);
        cell(p, slot->last_hit_ns < 0 ? NULL : table_duration(a, slot->last_hit_ns), 10);
        fprintf(p->out, "%6" PRId64, there ? query_integer(query, 2) : 0);
        if (slot->dead) {
            fprintf(p->out, "  died %s: ", table_duration(a, e->died_ns));
            prose_text(p->out, there && query_type(query, 3) != QUERY_NULL ? query_text(query, 3, NULL) : "?", WIDTH);
        } else if (lookup != REPLAY_NONE) {
            check_print(p, p->c->r->lookups[lookup].id, e->id);
        }
        query_close(query);
        putc('\n', p->out);
    }
    if (!all && state->count > ENTRIES_SHOWN)
        fprintf(p->out, "    (%d of %zu; `cache` prints all)\n", ENTRIES_SHOWN, state->count);
}

bool replay_page_cache(struct replay_page *p, bool all)
{
    const struct replay_event *e = cursor_event(p->c);
    struct replay_state state = {0};
    enum cursor_result result = cursor_cache(p->c, &state);

    if (result == CURSOR_THERE) {
        fputs(e->kind == REPLAY_LOOKUP ? "  cache as this lookup found it, in the order tried\n"
                                       : "  cache at that moment, in the order tried\n",
              p->out);
        state_print(p, &state, e->kind == REPLAY_LOOKUP ? e->index : REPLAY_NONE, all);
    }
    replay_state_free(&state);
    return result == CURSOR_THERE;
}

/* ---- stack and source ------------------------------------------------------ */

static void stack_print(struct replay_page *p, int most)
{
    struct query *query;
    int64_t id = cursor_frame(p->c), before = INT64_MAX;
    int depth = 0;

    if (!id)
        return;
    query = db_query(p->db, "SELECT parent_id, code_id FROM frame WHERE frame_id = ?1");
    fputs("  call stack\n", p->out);
    while (id > 0 && id < before && depth < most) { /* parents are older */
        query_reset(query);
        query_bind_integer(query, 1, id);
        if (!query_step(query)) {
            fputs(depth ? "    (what called it is not recorded)\n"
                        : "    (its frame is not in the trace: too short, or not written yet)\n",
                  p->out);
            break;
        }
        before = id;
        fputs("    ", p->out);
        code_print(p, query_integer(query, 1));
        putc('\n', p->out);
        id = query_integer(query, 0);
        depth++;
    }
    if (depth == most && id > 0)
        fputs("    ...\n", p->out);
    query_close(query);
}

/* The lines around LINE of FILENAME, which a trace names: only a regular file of a sane size is read. */
static void lines_print(struct replay_page *p, const char *filename, int64_t line)
{
    int file = open(filename, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    FILE *in = NULL;
    char *text = NULL;
    size_t room = 0;
    ssize_t got;
    int64_t at = 0;

    if (file < 0 || fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX ||
        !(in = fdopen(file, "r")))
        goto out;
    fputs("  source ", p->out);
    prose_text(p->out, prose_path(filename), WIDTH);
    if (st.st_mtime > db_meta_integer(p->db, "started_unix_ns", INT64_MAX) / 1000000000)
        fputs(" (changed since the recording)", p->out);
    putc('\n', p->out);
    while (at++ < line + SOURCE_AROUND && (got = getline(&text, &room, in)) >= 0) {
        if (at < line - SOURCE_AROUND)
            continue;
        while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r'))
            text[--got] = 0;
        fprintf(p->out, "  %s %4" PRId64 "  ", at == line ? ">" : " ", at);
        prose_text(p->out, text, 110);
        putc('\n', p->out);
    }
out:
    free(text);
    if (in)
        fclose(in);
    else if (file >= 0)
        close(file);
}

void replay_page_source(struct replay_page *p)
{
    const struct replay_event *e = cursor_event(p->c);
    struct query *query = NULL;

    if (p->c->frame_id) {
        query = db_query(
            p->db,
            "SELECT c.filename, c.first_line FROM frame f JOIN code c ON c.code_id = f.code_id WHERE f.frame_id = ?1");
        query_bind_integer(query, 1, p->c->frame_id);
    } else if (e && e->kind == REPLAY_BREAK) {
        query = db_query(p->db, "SELECT c.filename, b.line FROM graph_break b JOIN code c ON c.code_id = b.code_id "
                                "WHERE b.graph_break_id = ?1");
        query_bind_integer(query, 1, p->c->r->breaks[e->index].id);
    } else if (e && cursor_code(p->c->r, e) != REPLAY_NONE) {
        query = db_query(p->db, "SELECT filename, first_line FROM code WHERE code_id = ?1");
        query_bind_integer(query, 1, p->c->r->codes[cursor_code(p->c->r, e)].id);
    }
    if (query && query_step(query) && query_type(query, 0) == QUERY_TEXT && query_integer(query, 1) > 0 &&
        query_integer(query, 1) < INT32_MAX)
        lines_print(p, query_text(query, 0, NULL), query_integer(query, 1));
    query_close(query);
}

/* ---- the event ------------------------------------------------------------- */

static void lookup_print(struct replay_page *p, const struct replay_lookup *l)
{
    char a[TABLE_HUMAN];
    struct query *query;

    code_print(p, p->c->r->codes[p->c->r->caches[l->cache].code].id);
    fprintf(p->out, ": %s", outcome_word(l->outcome));
    if (l->named || l->outcome == OUTCOME_HIT) {
        putc(' ', p->out);
        if (l->named)
            label_print(p, l->entry);
        else
            fputs("code from before the recording", p->out);
    }
    if (l->observed)
        fputs(", seen from outside: which entries were tried is not known", p->out);
    else
        fprintf(p->out, ", %u entr%s checked", l->checked, l->checked == 1 ? "y" : "ies");
    fprintf(p->out, ", %s\n", table_duration(a, l->end_ns - l->start_ns));
    query = db_query(
        p->db,
        "SELECT s.text FROM lookup l JOIN signature s ON s.signature_id = l.signature_id WHERE l.lookup_id = ?1");
    query_bind_integer(query, 1, l->id);
    if (query_step(query)) {
        fputs("  inputs: ", p->out);
        prose_text(p->out, query_text(query, 0, NULL), WIDTH * 2);
        putc('\n', p->out);
    }
    query_close(query);
}

static void compile_print(struct replay_page *p, const struct replay_compile *c)
{
    struct query *query =
        db_query(p->db, "SELECT label, outcome, reason, end_ns - start_ns FROM compile WHERE compile_id = ?1");
    char a[TABLE_HUMAN];

    code_print(p, p->c->r->codes[c->code].id);
    query_bind_integer(query, 1, c->id);
    if (query_step(query)) {
        fputs(": ", p->out);
        text_print(p, query, 1);
        if (query_type(query, 0) == QUERY_TEXT && *query_text(query, 0, NULL)) {
            putc(' ', p->out);
            text_print(p, query, 0);
        }
        if (query_type(query, 3) != QUERY_NULL)
            fprintf(p->out, ", %s", table_duration(a, query_integer(query, 3)));
        if (query_type(query, 2) == QUERY_TEXT) {
            fputs("; ", p->out);
            text_print(p, query, 2);
        }
    }
    query_close(query);
    putc('\n', p->out);
    query = db_query(p->db, "SELECT COALESCE(e.label, '#' || r.cache_entry_id), r.kind, r.source, r.expected, "
                            "r.actual, r.text FROM recompile_cause r"
                            " LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id WHERE r.compile_id = ?1 "
                            "AND r.how IS NOT 're-checked'"
                            " ORDER BY r.rowid LIMIT 8");
    query_bind_integer(query, 1, c->id);
    while (query_step(query)) {
        fputs("  ", p->out);
        text_print(p, query, 0);
        fputs(" did not fit: ", p->out);
        text_print(p, query, 1);
        putc(' ', p->out);
        text_print(p, query, 2);
        if (query_type(query, 3) == QUERY_TEXT && *query_text(query, 3, NULL)) {
            fputs(", wanted ", p->out);
            text_print(p, query, 3);
            fputs(", saw ", p->out);
            text_print(p, query, 4);
        } else if (query_type(query, 5) == QUERY_TEXT && *query_text(query, 5, NULL)) {
            fputs(": ", p->out);
            text_print(p, query, 5);
        }
        putc('\n', p->out);
    }
    query_close(query);
}

static void break_print(struct replay_page *p, const struct replay_break *b)
{
    struct query *query = db_query(p->db, "SELECT code_id, line, reason FROM graph_break WHERE graph_break_id = ?1");

    query_bind_integer(query, 1, b->id);
    if (query_step(query)) {
        code_print(p, query_integer(query, 0));
        fprintf(p->out, ": line %" PRId64 ": ", query_integer(query, 1));
        text_print(p, query, 2);
    }
    putc('\n', p->out);
    query_close(query);
}

static void thread_print(struct replay_page *p, int64_t thread_id)
{
    struct query *query = db_query(
        p->db,
        "SELECT t.name, p.pid FROM thread t LEFT JOIN process p ON p.process_id = t.process_id WHERE t.thread_id = ?1");

    query_bind_integer(query, 1, thread_id);
    fprintf(p->out, "thread %" PRId64, thread_id);
    if (query_step(query)) {
        if (query_type(query, 0) == QUERY_TEXT && *query_text(query, 0, NULL)) {
            fputs(" (", p->out);
            text_print(p, query, 0);
            putc(')', p->out);
        }
        fprintf(p->out, " of process %" PRId64, query_integer(query, 1));
    }
    query_close(query);
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

void replay_page_print(struct replay_page *p, bool brief)
{
    static const char *const kinds[] = {"lookup", "compile", "break", "death"};
    const struct replay *r = p->c->r;
    const struct replay_event *e = p->c->at < r->event_count ? &r->events[p->c->at] : NULL;
    char a[TABLE_HUMAN];
    double percent = r->last_ns > 0 ? 100.0 * (double)cursor_ns(p->c) / (double)r->last_ns : 0;

    if (p->c->frame_id) {
        struct query *query =
            db_query(p->db, "SELECT f.code_id, f.end_ns - f.start_ns, (SELECT name FROM enum WHERE kind = 'outcome' AND"
                            " value = f.outcome) FROM frame f WHERE f.frame_id = ?1");
        query_bind_integer(query, 1, p->c->frame_id);
        fprintf(p->out, "frame %" PRId64 "  %.6f s  %.1f %%  ", p->c->frame_id, seconds(p->c->frame_ns), percent);
        thread_print(p, p->c->frame_thread);
        fputs("\n  ", p->out);
        if (query_step(query)) {
            code_print(p, query_integer(query, 0));
            fputs(": ", p->out);
            text_print(p, query, 2);
            if (query_type(query, 1) == QUERY_NULL)
                fputs(", never ended\n", p->out);
            else
                fprintf(p->out, ", %s\n", table_duration(a, query_integer(query, 1)));
        }
        query_close(query);
    } else if (!e || p->c->gap) {
        if (e)
            fprintf(p->out, "before event %zu of %zu  %.6f s  %.1f %%\n", p->c->at + 1, r->event_count,
                    seconds(cursor_ns(p->c)), percent);
        else
            fprintf(p->out, "after the last of %zu events\n", r->event_count);
        return;
    } else {
        int64_t id = e->kind == REPLAY_LOOKUP    ? r->lookups[e->index].id
                     : e->kind == REPLAY_COMPILE ? r->compiles[e->index].id
                     : e->kind == REPLAY_BREAK   ? r->breaks[e->index].id
                                                 : r->entries[e->index].id;
        uint32_t thread = cursor_thread(r, e);
        fprintf(p->out, "%s %" PRId64 "  event %zu of %zu  %.6f s  %.1f %%", kinds[e->kind], id, p->c->at + 1,
                r->event_count, seconds(e->at_ns), percent);
        if (thread != REPLAY_NONE) {
            fputs("  ", p->out);
            thread_print(p, r->threads[thread].id);
        }
        fputs("\n  ", p->out);
        if (e->kind == REPLAY_LOOKUP)
            lookup_print(p, &r->lookups[e->index]);
        else if (e->kind == REPLAY_COMPILE)
            compile_print(p, &r->compiles[e->index]);
        else if (e->kind == REPLAY_BREAK)
            break_print(p, &r->breaks[e->index]);
        else {
            code_print(p, r->codes[r->entries[e->index].code].id);
            fputs(": entry ", p->out);
            label_print(p, e->index);
            fputs(" died\n", p->out);
        }
    }
    if (brief)
        return;
    replay_page_cache(p, false);
    stack_print(p, STACK_SHOWN);
    replay_page_source(p);
}

bool replay_page_stack(struct replay_page *p)
{
    stack_print(p, STACK_ALL);
    return cursor_frame(p->c) != 0;
}

bool replay_page_guards(struct replay_page *p, const char *label)
{
    const struct replay *r = p->c->r;
    const struct replay_event *e = cursor_event(p->c);
    struct query *query;
    int64_t entry = -1;
    bool any = false;

    if (e && e->kind == REPLAY_LOOKUP && r->lookups[e->index].entry != REPLAY_NONE)
        entry = r->entries[r->lookups[e->index].entry].id;
    if (e && e->kind == REPLAY_DEATH)
        entry = r->entries[e->index].id;
    if (e && e->kind == REPLAY_COMPILE && r->compiles[e->index].entry != REPLAY_NONE)
        entry = r->entries[r->compiles[e->index].entry].id;
    query = db_query(
        p->db,
        label
            ? "SELECT e.label, g.ordinal, g.kind, g.source, g.expression FROM cache_entry e LEFT JOIN guard g"
              " ON g.cache_entry_id = e.cache_entry_id WHERE e.label = ?1 ORDER BY e.cache_entry_id, g.ordinal LIMIT ?2"
            : "SELECT e.label, g.ordinal, g.kind, g.source, g.expression FROM cache_entry e LEFT JOIN guard g"
              " ON g.cache_entry_id = e.cache_entry_id WHERE e.cache_entry_id = ?1 ORDER BY g.ordinal LIMIT ?2");
    if (label)
        query_bind_text(query, 1, label);
    else
        query_bind_integer(query, 1, entry);
    query_bind_integer(query, 2, GUARDS_SHOWN);
    while (query_step(query)) {
        any = true;
        if (query_type(query, 1) == QUERY_NULL) {
            fputs("(no guards)\n", p->out);
            continue;
        }
        fputs("  ", p->out);
        text_print(p, query, 0);
        fprintf(p->out, " %3" PRId64 "  ", query_integer(query, 1));
        cell(p, query_text(query, 2, NULL), 20);
        cell(p, query_text(query, 3, NULL), 24);
        text_print(p, query, 4);
        putc('\n', p->out);
    }
    if (!query_close(query) || any)
        return true;
    if (!label)
        fputs("(no guards)\n", p->out);
    return !label;
}

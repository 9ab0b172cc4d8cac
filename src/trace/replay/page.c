/* trace/replay/page.c -- what there is to say about the place where a cursor is. See trace/replay/page.h.
 *
 * Runs in: the viewer.
 *
 * What is printed comes from the trace or from a source file that it names, so all of it is escaped. */
#include "trace/replay/page.h"

#include <inttypes.h>

#include "trace/db.h"
#include "trace/prose.h"
#include "trace/replay/cursor.h"
#include "trace/source.h"
#include "lib/table.h"

enum {
    WIDTH = 70,
    STACK_SHOWN = 4,
    STACK_ALL = 200,
    ENTRIES_SHOWN = 16,
    SOURCE_AROUND = 2,
    GUARDS_SHOWN = 40,
};

/* ---- rows and names -------------------------------------------------------- */

/* SQL with ID as its ?1, at its first row; NULL: it has none. The caller closes it. */
static struct query *row_of(struct db *db, const char *sql, int64_t id)
{
    struct query *query = db_query(db, sql);

    query_bind_integer(query, 1, id);
    if (query_step(query))
        return query;
    query_close(query);
    return NULL;
}

/* FORMAT, where each % is the next column of QUERY's row from COLUMN on. */
static void row_print(const struct cursor *c, const char *format, struct query *query, int column)
{
    for (; *format; format++)
        if (*format != '%') {
            putc(*format, c->out);
        } else {
            prose_text(c->out, query_type(query, column) == QUERY_NULL ? NULL : query_text(query, column, NULL), WIDTH);
            column++;
        }
}

char *replay_entry_name(const struct replay *r, uint32_t entry)
{
    struct query *query = entry == REPLAY_NONE
                              ? NULL
                              : row_of(r->db,
                                       "SELECT COALESCE(NULLIF(label, ''), '#' || cache_entry_id) FROM cache_entry"
                                       " WHERE cache_entry_id = ?1",
                                       r->entries.at[entry].id);
    char *name = query ? prose_column(query, 0) : NULL;

    query_close(query);
    return name;
}

/* The same by row id. */
static char *code_name(struct db *db, int64_t code_id)
{
    struct query *query = row_of(db, "SELECT qualname, filename, first_line FROM code WHERE code_id = ?1", code_id);
    char *made = NULL;
    int bytes;

    if (query)
        bytes = asprintf(&made, "%s (%s:%" PRId64 ")", query_text(query, 0, NULL),
                         prose_path(query_text(query, 1, NULL)), query_integer(query, 2));
    else
        bytes = asprintf(&made, "code %" PRId64, code_id);
    query_close(query);
    return bytes < 0 ? NULL : made;
}

char *replay_code_name(const struct replay *r, uint32_t code)
{
    return code == REPLAY_NONE ? NULL : code_name(r->db, r->codes.at[code].id);
}

/* NAME, which is freed. */
static void name_print(const struct cursor *c, char *name)
{
    prose_text(c->out, name, WIDTH * 2);
    free(name);
}

static void cell(const struct cursor *c, const char *text, int columns)
{
    prose_cell(c->out, text, (size_t)columns, (size_t)columns);
    putc(' ', c->out);
}

/* ---- the cache ------------------------------------------------------------- */

/* What lookup LOOKUP_ID did with ENTRY_ID: "fail: L['x'] == 3", "pass", or nothing. */
static void check_print(const struct cursor *c, int64_t lookup_id, int64_t entry_id)
{
    struct query *query = db_query(
        c->db, "SELECT k.result, COALESCE(': ' || g.kind, ''),"
               " COALESCE(' ' || COALESCE(NULLIF(g.expression, ''), g.source), '') FROM guard_check k"
               " LEFT JOIN guard g ON g.guard_id = k.failed_guard_id"
               " WHERE k.lookup_id = ?1 AND k.cache_entry_id = ?2 LIMIT 1");

    query_bind_integer(query, 1, lookup_id);
    query_bind_integer(query, 2, entry_id);
    if (query_step(query))
        row_print(c, "  %%%", query, 0);
    query_close(query);
}

/* SLOT's line; CHECKED: the lookup that tried it, or REPLAY_NONE. */
static void slot_print(const struct cursor *c, const struct replay_slot *slot, size_t at, bool regions,
                       uint32_t checked)
{
    const struct replay_entry *e = &c->r->entries.at[slot->entry];
    struct query *query = row_of(
        c->db, "SELECT label, backend, guard_count, death_cause FROM cache_entry WHERE cache_entry_id = ?1", e->id);
    char a[TABLE_HUMAN];

    if (!query)
        return;
    if (slot->dead)
        fputs("     - ", c->out);
    else
        fprintf(c->out, "    %2zu ", at);
    cell(c, query_text(query, 0, NULL), 10);
    cell(c, query_text(query, 1, NULL), 10);
    if (regions && e->region >= 0)
        fprintf(c->out, "%6" PRId64, e->region);
    else if (regions)
        fputs("     -", c->out);
    fprintf(c->out, " %5" PRIu32 " ", slot->hits);
    cell(c, table_duration(a, e->born_ns), 10);
    cell(c, slot->last_hit_ns < 0 ? NULL : table_duration(a, slot->last_hit_ns), 10);
    fprintf(c->out, "%6" PRId64, query_integer(query, 2));
    if (slot->dead) {
        fprintf(c->out, "  died %s: ", table_duration(a, e->died_ns));
        row_print(c, "%", query, 3);
    } else if (checked != REPLAY_NONE) {
        check_print(c, c->r->lookups.at[checked].id, e->id);
    }
    query_close(query);
    putc('\n', c->out);
}

/* Entries in the order in which they are tried; beside each what the lookup did with it, where the cursor is on one. */
static bool cache_print(const struct cursor *c, bool all)
{
    const struct replay_event *e = cursor_event(c);
    struct replay_state state = {0};
    bool there = cursor_cache(c, &state) == CURSOR_THERE, regions = false;
    uint32_t checked = there && e->kind == REPLAY_LOOKUP ? e->index : REPLAY_NONE;

    if (there)
        fprintf(c->out, "  cache %s, in the order tried\n",
                checked == REPLAY_NONE ? "at that moment" : "as this lookup found it");
    if (there && !state.count)
        fputs("    (empty)\n", c->out);
    /* Without this index, while the trace is written, finding a check reads them all. */
    if (checked != REPLAY_NONE &&
        !db_integer(c->db, 0, "SELECT 1 FROM sqlite_schema WHERE name = 'guard_check_lookup'"))
        checked = REPLAY_NONE;
    for (size_t i = 0; i < state.count; i++)
        regions = regions || c->r->entries.at[state.at[i].entry].region >= 0;
    if (state.count)
        fprintf(c->out, "     # entry      backend    %s  hits born       last hit   guards\n",
                regions ? "region" : "");
    for (size_t i = 0; i < state.count && (all || i < ENTRIES_SHOWN); i++)
        slot_print(c, &state.at[i], i, regions, checked);
    if (!all && state.count > ENTRIES_SHOWN)
        fprintf(c->out, "    (%d of %zu; `cache` prints all)\n", ENTRIES_SHOWN, state.count);
    list_free(&state);
    return there;
}

/* ---- stack and source ------------------------------------------------------ */

static bool stack_print(const struct cursor *c, bool all)
{
    int64_t id = cursor_frame(c), before = INT64_MAX;
    int depth = 0, most = all ? STACK_ALL : STACK_SHOWN;

    if (!id)
        return false;
    fputs("  call stack\n", c->out);
    while (id > 0 && id < before && depth++ < most) { /* parents are older */
        struct query *query = row_of(c->db, "SELECT parent_id, code_id FROM frame WHERE frame_id = ?1", id);
        if (!query) {
            fputs(depth > 1 ? "    (what called it is not recorded)\n"
                            : "    (its frame is not in the trace: too short, or not written yet)\n",
                  c->out);
            return true;
        }
        before = id;
        id = query_integer(query, 0);
        fputs("    ", c->out);
        name_print(c, code_name(c->db, query_integer(query, 1)));
        putc('\n', c->out);
        query_close(query);
    }
    if (depth > most)
        fputs("    ...\n", c->out);
    return true;
}

/* The lines around LINE of FILENAME, where it can be read. */
static void lines_print(const struct cursor *c, const char *filename, int64_t line)
{
    struct source source = source_read(filename);
    int64_t at = line > SOURCE_AROUND ? line - SOURCE_AROUND : 1;

    if (source.text) {
        fputs("  source ", c->out);
        prose_text(c->out, prose_path(filename), WIDTH);
        fputs(source.changed_ns / 1000000000 > db_meta_integer(c->db, "started_unix_ns", INT64_MAX) / 1000000000
                  ? " (changed since the recording)\n" : "\n", c->out);
    }
    for (; at <= line + SOURCE_AROUND && at <= (int64_t)source.count; at++) {
        fprintf(c->out, "  %s %4" PRId64 "  ", at == line ? ">" : " ", at);
        prose_text(c->out, source.lines[at - 1], 110);
        putc('\n', c->out);
    }
    source_free(&source);
}

static bool source_print(const struct cursor *c, bool all)
{
    const struct replay_event *e = cursor_event(c);
    struct query *query = NULL;

    (void)all;
    if (c->frame_id)
        query = row_of(c->db,
                       "SELECT c.filename, c.first_line FROM frame f JOIN code c ON c.code_id = f.code_id"
                       " WHERE f.frame_id = ?1",
                       c->frame_id);
    else if (e && e->kind == REPLAY_BREAK)
        query = row_of(c->db,
                       "SELECT c.filename, b.line FROM graph_break b JOIN code c ON c.code_id = b.code_id"
                       " WHERE b.graph_break_id = ?1",
                       cursor_subject(c).id);
    else if (e)
        query = row_of(c->db, "SELECT filename, first_line FROM code WHERE code_id = ?1",
                       c->r->codes.at[cursor_subject(c).code].id);
    if (query && query_type(query, 0) == QUERY_TEXT && query_integer(query, 1) > 0 &&
        query_integer(query, 1) < INT32_MAX)
        lines_print(c, query_text(query, 0, NULL), query_integer(query, 1));
    query_close(query);
    return true;
}

/* ---- the event ------------------------------------------------------------- */

static void lookup_print(const struct cursor *c, const struct replay_lookup *l)
{
    char a[TABLE_HUMAN];
    struct query *query;

    fprintf(c->out, ": %s", outcome_word(l->outcome));
    if (l->named && l->entry == REPLAY_NONE) {
        fputs(" an entry that the trace does not have", c->out);
    } else if (l->named) {
        putc(' ', c->out);
        name_print(c, replay_entry_name(c->r, l->entry));
    } else if (l->outcome == OUTCOME_HIT) {
        fputs(" code from before the recording", c->out);
    }
    if (l->observed)
        fputs(", seen from outside: which entries were tried is not known", c->out);
    else
        fprintf(c->out, ", %u entr%s checked", l->checked, l->checked == 1 ? "y" : "ies");
    fprintf(c->out, ", %s\n", table_duration(a, l->end_ns - l->start_ns));
    query = row_of(c->db,
                   "SELECT s.text FROM lookup l JOIN signature s ON s.signature_id = l.signature_id"
                   " WHERE l.lookup_id = ?1",
                   l->id);
    if (query) {
        fputs("  inputs: ", c->out);
        prose_text(c->out, query_text(query, 0, NULL), WIDTH * 2);
        putc('\n', c->out);
        query_close(query);
    }
}

static void compile_print(const struct cursor *c, int64_t id)
{
    struct query *query = row_of(c->db,
                                 "SELECT outcome, COALESCE(' ' || NULLIF(label, ''), ''), COALESCE('; ' || reason, ''),"
                                 " end_ns - start_ns FROM compile WHERE compile_id = ?1",
                                 id);
    char a[TABLE_HUMAN];

    if (query) {
        row_print(c, ": %%", query, 0);
        if (query_type(query, 3) != QUERY_NULL)
            fprintf(c->out, ", %s", table_duration(a, query_integer(query, 3)));
        row_print(c, "%", query, 2);
    }
    query_close(query);
    putc('\n', c->out);
    query = row_of(c->db,
                   "SELECT COALESCE(e.label, '#' || r.cache_entry_id), r.kind, r.source,"
                   " COALESCE(', wanted ' || NULLIF(r.expected, ''), ': ' || NULLIF(r.text, ''), ''),"
                   " CASE WHEN r.expected <> '' THEN ', saw ' || COALESCE(r.actual, '?') ELSE '' END"
                   " FROM recompile_cause r LEFT JOIN cache_entry e ON e.cache_entry_id = r.cache_entry_id"
                   " WHERE r.compile_id = ?1 AND r.how IS NOT 're-checked' ORDER BY r.rowid LIMIT 8",
                   id);
    if (!query)
        return;
    do
        row_print(c, "  % did not fit: % %%%\n", query, 0);
    while (query_step(query));
    query_close(query);
}

static void break_print(const struct cursor *c, int64_t id)
{
    struct query *query =
        row_of(c->db, "SELECT line, reason, code_id FROM graph_break WHERE graph_break_id = ?1", id);

    if (query) {
        name_print(c, code_name(c->db, query_integer(query, 2)));
        row_print(c, ": line %: %", query, 0);
    }
    query_close(query);
    putc('\n', c->out);
}

static void thread_print(const struct cursor *c, int64_t thread_id)
{
    struct query *query = row_of(c->db,
                                 "SELECT COALESCE(' (' || NULLIF(t.name, '') || ')', ''), COALESCE(p.pid, 0)"
                                 " FROM thread t LEFT JOIN process p ON p.process_id = t.process_id"
                                 " WHERE t.thread_id = ?1",
                                 thread_id);

    fprintf(c->out, "  thread %" PRId64, thread_id);
    if (query)
        row_print(c, "% of process %", query, 0);
    query_close(query);
}

static void frame_print(const struct cursor *c)
{
    struct query *query = row_of(c->db,
                                 "SELECT code_id, end_ns - start_ns, (SELECT name FROM enum WHERE kind = 'outcome'"
                                 " AND value = frame.outcome) FROM frame WHERE frame_id = ?1",
                                 c->frame_id);
    char a[TABLE_HUMAN];

    if (!query)
        return;
    name_print(c, code_name(c->db, query_integer(query, 0)));
    row_print(c, ": %", query, 2);
    if (query_type(query, 1) == QUERY_NULL)
        fputs(", never ended\n", c->out);
    else
        fprintf(c->out, ", %s\n", table_duration(a, query_integer(query, 1)));
    query_close(query);
}

static bool event_print(const struct cursor *c, bool all)
{
    static const char *const kinds[] = {"lookup", "compile", "break", "death"};
    const struct replay *r = c->r;
    const struct replay_event *e = cursor_event(c);
    double at = (double)cursor_ns(c) / 1e9, percent = r->last_ns > 0 ? at * 1e11 / (double)r->last_ns : 0;
    struct replay_subject s;

    (void)all;
    if (c->frame_id) {
        fprintf(c->out, "frame %" PRId64 "  %.6f s  %.1f %%", c->frame_id, at, percent);
        thread_print(c, c->frame_thread);
        fputs("\n  ", c->out);
        frame_print(c);
        return true;
    }
    if (!e) {
        if (c->at < r->events.count)
            fprintf(c->out, "before event %zu of %zu  %.6f s  %.1f %%\n", c->at + 1, r->events.count, at, percent);
        else
            fprintf(c->out, "after the last of %zu events\n", r->events.count);
        return false;
    }
    s = cursor_subject(c);
    fprintf(c->out, "%s %" PRId64 "  event %zu of %zu  %.6f s  %.1f %%", kinds[e->kind], s.id, c->at + 1,
            r->events.count, at, percent);
    if (s.thread != REPLAY_NONE)
        thread_print(c, r->threads.at[s.thread].id);
    fputs("\n  ", c->out);
    if (e->kind != REPLAY_BREAK)
        name_print(c, replay_code_name(r, s.code));
    if (e->kind == REPLAY_LOOKUP) {
        lookup_print(c, &r->lookups.at[e->index]);
    } else if (e->kind == REPLAY_COMPILE) {
        compile_print(c, s.id);
    } else if (e->kind == REPLAY_BREAK) {
        break_print(c, s.id);
    } else {
        fputs(": entry ", c->out);
        name_print(c, replay_entry_name(r, s.entry));
        fputs(" died\n", c->out);
    }
    return true;
}

static bool guards_print(const struct cursor *c, const char *label)
{
    uint32_t entry = cursor_event(c) ? cursor_subject(c).entry : REPLAY_NONE;
    struct query *query = db_query(
        c->db, "SELECT e.label, g.ordinal, g.kind, g.source, g.expression FROM cache_entry e LEFT JOIN guard g"
               " ON g.cache_entry_id = e.cache_entry_id WHERE e.cache_entry_id = ?1 OR e.label = ?2"
               " ORDER BY e.cache_entry_id, g.ordinal LIMIT ?3");
    bool any = false;

    if (label)
        query_bind_text(query, 2, label);
    else
        query_bind_integer(query, 1, entry == REPLAY_NONE ? -1 : c->r->entries.at[entry].id);
    query_bind_integer(query, 3, GUARDS_SHOWN);
    for (; query_step(query); any = true) {
        if (query_type(query, 1) == QUERY_NULL) {
            fputs("(no guards)\n", c->out);
            continue;
        }
        row_print(c, "  %", query, 0);
        fprintf(c->out, " %3" PRId64 "  ", query_integer(query, 1));
        cell(c, query_text(query, 2, NULL), 20);
        cell(c, query_text(query, 3, NULL), 24);
        row_print(c, "%\n", query, 4);
    }
    if (!query_close(query) || any)
        return true;
    if (!label)
        fputs("(no guards)\n", c->out);
    return !label;
}

/* ---- the page -------------------------------------------------------------- */

/* By part. False: there is none here. */
static bool (*const parts[])(const struct cursor *c, bool all) = {event_print, cache_print, stack_print, source_print};

void replay_page(const struct cursor *c)
{
    if (!parts[PAGE_EVENT](c, false))
        return;
    for (int i = PAGE_CACHE; i <= PAGE_SOURCE; i++)
        parts[i](c, false);
}

bool replay_page_part(const struct cursor *c, enum page_part part, const char *label)
{
    return part == PAGE_GUARDS ? guards_print(c, label) : parts[part](c, true);
}

/* trace/replay/page.c -- prints the event at a cursor, its cache, stack and source. See
 * trace/replay/cursor.h.
 *
 * Printed text comes from the trace, or from a source file that the trace names, so it is
 * escaped. */
#include <inttypes.h>

#include "lib/say.h"
#include "schema.h"
#include "trace/db.h"
#include "trace/page_text.h"
#include "trace/prose.h"
#include "trace/replay/cursor.h"
#include "trace/source.h"

enum {
    WIDTH = 70,
    STACK_SHOWN = 4,
    ENTRIES_SHOWN = 16,
    SOURCE_AROUND = 2,
};

/* ---- printing names of entries and functions, and rows ------------------- */

char *replay_make_entry_name(const struct replay *r, uint32_t entry)
{
    char *name = NULL;

    db_rows(row, r->db, schema_statement("replay/entry-name"),
            entry == REPLAY_NONE ? 0 : r->entries.at[entry].id) name = query_copy(row, 0);
    return name;
}

/* Return the name of the code object with this row id: "f (app/f.py:3)". The caller frees it. */
static char *name_of_code(struct db *db, int64_t code_id)
{
    char *name = NULL;

    db_rows(row, db, schema_statement("replay/code"), code_id) name =
        say_print("%s (%s:%" PRId64 ")", query_text(row, 0, NULL),
                  prose_shorten_path(query_text(row, 1, NULL)), query_integer(row, 2));
    return name ? name : say_print("code %" PRId64, code_id);
}

char *replay_make_code_name(const struct replay *r, uint32_t code)
{
    return code == REPLAY_NONE ? NULL : name_of_code(r->db, r->codes.at[code].id);
}

/* Print NAME, shortened if it is long. Frees NAME. */
static void print_shortened_name(const struct cursor *c, char *name)
{
    prose_print_text(c->out, name, WIDTH * 2);
    free(name);
}

/* Return a page that prints templates of schemas/ to the cursor's file. */
static struct page_text begin_cursor_page(const struct cursor *c)
{
    return (struct page_text){.out = c->out, .db = c->db, .way = TEMPLATE_LINES};
}

/* Print all rows of STATEMENT, whose parameter ?1 is ID. */
static void print_rows_of_statement(const struct cursor *c, const char *statement, int64_t id)
{
    struct page_text page = begin_cursor_page(c);

    page_text_print_rows(&page, statement, id);
}

/* ---- printing the entries of the cache at the cursor --------------------- */

/* Print a line about SLOT, which is entry number AT of the cache. CHECKED is the row id of
 * the lookup whose check of this entry is printed too, or 0. If REGIONS, the entry's
 * region is printed. */
static void print_cache_slot(const struct cursor *c, const struct replay_slot *slot, size_t at,
                             bool regions, int64_t checked)
{
    const struct replay_entry *e = &c->r->entries.at[slot->entry];
    struct query *query = db_query_with(c->db, schema_statement("replay/entry"), e->id, checked);
    struct page_text page = begin_cursor_page(c);
    int64_t hits = slot->hits;
    int64_t place = (int64_t)at;
    int64_t region = e->region;
    int64_t last_hit_ns = slot->last_hit_ns;
    const char *cause = NULL;

    query_step(query);
    if (query_type(query, 3) != QUERY_NULL)
        cause = query_text(query, 3, NULL);
    if (slot->dead)
        place = FACT_UNKNOWN;
    if (region < 0)
        region = FACT_UNKNOWN;
    if (last_hit_ns < 0)
        last_hit_ns = FACT_UNKNOWN;
    fact(&page, "at", place);
    fact(&page, "label", prose_null_if_empty(query_text(query, 0, NULL)));
    fact(&page, "backend", prose_null_if_empty(query_text(query, 1, NULL)));
    fact(&page, "guards", query_integer(query, 2));
    fact(&page, "cause", cause);
    fact(&page, "check", query_text(query, 4, NULL));
    fact(&page, "regions", regions);
    fact(&page, "region", region);
    fact(&page, "hits", hits);
    fact(&page, "born_ns", e->born_ns);
    fact(&page, "died_ns", e->died_ns);
    fact(&page, "last_hit_ns", last_hit_ns);
    page_text_print_row(&page, "pages/replay/slot", 0);
    query_close(query);
}

/* Print the entries of the cache, in the order in which a lookup tries them. If the cursor is on a
 * lookup, each line tells what this lookup did with the entry. */
static void print_cache(const struct cursor *c)
{
    const struct replay_event *e = cursor_get_event(c);
    struct replay_state state = {0};
    bool regions = false;
    int64_t checked = e && e->kind == REPLAY_LOOKUP ? c->r->lookups.at[e->index].id : 0;

    if (!cursor_get_cache_state(c, &state))
        return;
    fprintf(c->out, "  cache %s, in the order tried\n",
            checked ? "as this lookup found it" : "at that moment");
    if (!state.count)
        fputs("    (empty)\n", c->out);
    /* While a trace is being written, it lacks the index guard_check_lookup. Without it, the search
     * for one check would read the whole table, so no checks are printed. */
    if (!db_integer(c->db, 0, "SELECT 1 FROM sqlite_schema WHERE name = 'guard_check_lookup'"))
        checked = 0;
    for (size_t i = 0; i < state.count; i++)
        regions = regions || c->r->entries.at[state.at[i].entry].region >= 0;
    if (state.count)
        fprintf(c->out, "     # entry      backend    %s  hits born       last hit   guards\n",
                regions ? "region" : "");
    for (size_t i = 0; i < state.count && i < ENTRIES_SHOWN; i++)
        print_cache_slot(c, &state.at[i], i, regions, checked);
    if (state.count > ENTRIES_SHOWN)
        fprintf(c->out, "    (%d of %zu; --json has all)\n", ENTRIES_SHOWN, state.count);
    list_free(&state);
}

/* ---- printing the call stack and the source ------------------------------ */

static void print_call_stack(const struct cursor *c)
{
    int64_t id = cursor_find_frame(c);
    int depth = 0;

    if (!id)
        return;
    fputs("  call stack\n", c->out);
    db_rows(row, c->db, schema_statement("replay/stack"), id,
            STACK_SHOWN + 1) if (++depth > STACK_SHOWN)
    {
        fputs("    ...\n", c->out);
    }
    else if (query_type(row, 1) == QUERY_NULL)
    {
        fputs(depth > 1 ? "    (what called it is not recorded)\n"
                        : "    (its frame is not in the trace: too short, or not written yet)\n",
              c->out);
    }
    else
    {
        fputs("    ", c->out);
        print_shortened_name(c, name_of_code(c->db, query_integer(row, 0)));
        putc('\n', c->out);
    }
}

/* Print the lines around LINE of FILENAME, if the file can be read. */
static void print_source_lines(const struct cursor *c, const char *filename, int64_t line)
{
    struct source source = source_read(filename);
    int64_t at = line > SOURCE_AROUND ? line - SOURCE_AROUND : 1;
    int64_t started = db_meta_integer(c->db, "started_unix_ns", INT64_MAX);
    struct page_text page = begin_cursor_page(c);

    if (source.text) {
        fact(&page, "file", prose_shorten_path(filename));
        fact(&page, "changed", source.changed_ns / 1000000000 > started / 1000000000);
        page_text_print_row(&page, "pages/replay/source", 0);
    }
    for (; at <= line + SOURCE_AROUND && at <= (int64_t)source.count; at++) {
        fact(&page, "here", at == line);
        fact(&page, "line", at);
        fact(&page, "text", source.lines[at - 1]);
        page_text_print_row(&page, "pages/replay/line", 0);
    }
    source_free(&source);
}

static void print_source_of_event(const struct cursor *c)
{
    const struct replay_event *e = cursor_get_event(c);
    const char *statement = "replay/line-of-code";
    int64_t id = c->r->codes.at[cursor_get_subject(c).code].id;

    if (e->kind == REPLAY_BREAK) {
        id = cursor_get_subject(c).id;
        statement = "replay/line-of-break";
    }
    db_rows(row, c->db, schema_statement(statement), id)
        print_source_lines(c, query_text(row, 0, NULL), query_integer(row, 1));
}

/* ---- printing what happened at the cursor -------------------------------- */

static void print_moment(const struct cursor *c)
{
    int64_t last_ns = c->r->last_ns;
    double at_ns = (double)cursor_get_time(c);

    fprintf(c->out, "  %.6f s  %.1f %%", at_ns / 1e9,
            last_ns > 0 ? at_ns * 100 / (double)last_ns : 0);
}

const char *replay_word_of_kind(uint32_t kind)
{
    static const char *const words[] = {"lookup", "compile", "break", "death"};

    return words[kind];
}

static void print_event(const struct cursor *c)
{
    const struct replay *r = c->r;
    const struct replay_event *e = cursor_get_event(c);
    struct replay_subject s = cursor_get_subject(c);

    fprintf(c->out, "%s %" PRId64 "  event %zu of %zu", replay_word_of_kind(e->kind), s.id,
            c->at + 1, r->events.count);
    print_moment(c);
    if (s.thread != REPLAY_NONE)
        print_rows_of_statement(c, "replay/thread", r->threads.at[s.thread].id);
    fputs("\n  ", c->out);
    if (e->kind != REPLAY_BREAK)
        print_shortened_name(c, replay_make_code_name(r, s.code));
    switch ((enum replay_kind)e->kind) {
    case REPLAY_LOOKUP:
        print_rows_of_statement(c, "replay/lookup", s.id);
        print_rows_of_statement(c, "replay/inputs-of", s.id);
        break;
    case REPLAY_COMPILE:
        print_rows_of_statement(c, "replay/compile", s.id);
        print_rows_of_statement(c, "replay/causes", s.id);
        break;
    case REPLAY_BREAK:
        print_rows_of_statement(c, "replay/break", s.id);
        break;
    default:
        print_rows_of_statement(c, "replay/death", s.id);
    }
}

/* ---- printing the whole page --------------------------------------------- */

void replay_print_page(const struct cursor *c)
{
    if (cursor_get_event(c)) {
        print_event(c);
        print_cache(c);
        print_call_stack(c);
        print_source_of_event(c);
    } else if (c->at < c->r->events.count) {
        fprintf(c->out, "before event %zu of %zu", c->at + 1, c->r->events.count);
        print_moment(c);
        putc('\n', c->out);
    } else {
        fprintf(c->out, "after the last of %zu events\n", c->r->events.count);
    }
}

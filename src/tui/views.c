/* tui/views.c -- which views there are.
 *
 * Runs in: the viewer. A list or a page is its file in schemas/tui/; the others, and what C makes of a page, are in tui/views/. */
#include "tui/list.h"
#include "tui/text.h"

#define LIST_VIEW(name_, summary_) &(const struct view_ops){.name = name_, .summary = summary_, .open = list_open, LIST_OPS}
#define PAGE_VIEW(name_, summary_, all_) &(const struct view_ops){.name = name_, .summary = summary_, .all = all_, PAGE_OPS}

extern const struct view_ops view_overview, view_function, view_entry, view_compile, view_break, view_sql, view_help, view_flame,
    view_timeline, view_replay, view_whatif, view_output;

static const struct view_ops *const views[VIEW_KINDS] = {
    [VIEW_OVERVIEW] = &view_overview,
    [VIEW_FUNCTIONS] = LIST_VIEW("functions", "what each function did and cost"),
    [VIEW_FUNCTION] = &view_function,
    [VIEW_ENTRIES] = LIST_VIEW("entries", "all cache entries: born, tried, hit, died"),
    [VIEW_ENTRY] = &view_entry,
    [VIEW_RECOMPILES] = LIST_VIEW("recompiles", "recompiles, by function and cause, with what the values were"),
    [VIEW_CAUSES] = LIST_VIEW("causes", "each guard that made a recompile necessary"),
    [VIEW_COMPILES] = LIST_VIEW("compiles", "every run of the compiler"),
    [VIEW_COMPILE] = &view_compile,
    [VIEW_BREAKS] = LIST_VIEW("breaks", "graph breaks, by reason and place"),
    [VIEW_BREAK] = &view_break,
    [VIEW_LEDGER] = LIST_VIEW("ledger", "every call of watched code and how it was decided"),
    [VIEW_CALL] = PAGE_VIEW("call", "one call: what was tried, and who called", VIEW_LEDGER),
    [VIEW_REPLAY] = &view_replay,
    [VIEW_TIMELINE] = &view_timeline,
    [VIEW_FLAME] = &view_flame,
    [VIEW_GUARDS] = LIST_VIEW("guards", "what guards cost, by kind and source; Enter: where they failed"),
    [VIEW_CHECKS] = LIST_VIEW("checks", "each time that an entry's guards were run"),
    [VIEW_PROCESSES] = LIST_VIEW("processes", "the processes that were followed, as a tree; Enter: its calls"),
    [VIEW_LOSSES] = LIST_VIEW("losses", "what is missing from the trace, and why"),
    [VIEW_SQL] = &view_sql,
    [VIEW_HELP] = &view_help,
    [VIEW_WHATIF] = &view_whatif,
    [VIEW_OUTPUT] = &view_output,
};

const struct view_ops *view_of(int kind)
{
    return kind >= 0 && kind < VIEW_KINDS ? views[kind] : NULL;
}

enum view_kind view_named(const char *name, size_t bytes)
{
    for (int kind = 0; kind < VIEW_KINDS; kind++)
        if (views[kind] && strlen(views[kind]->name) == bytes && !memcmp(views[kind]->name, name, bytes))
            return (enum view_kind)kind;
    return VIEW_NONE;
}

/* tui/views.h -- the list of all views: how each is made, its name, its description in the help.
 *
 * To add a view, add a line to VIEWS and write its file. There are three kinds:
 *
 *   - LIST: described wholly by schemas/tui/NAME.sql (tui/list.h). Arguments: name, description.
 *   - PAGE: described by schemas/tui/NAME.sql, too (tui/text.h). Arguments: name, the view that
 *     lists all such rows or NONE, description, and other members of struct view_ops.
 *   - OWN: written in C. Arguments: name, a struct view_ops of a file in tui/views/. */
#ifndef DYNTRACE_TUI_VIEWS_H
#define DYNTRACE_TUI_VIEWS_H

/* clang-format off */
#define VIEWS(X)                                                                                   \
    X(OVERVIEW, PAGE, "overview", NONE, "the answer on one screen")                                \
    X(FUNCTIONS, LIST, "functions", "what each function did and cost")                             \
    X(FUNCTION, PAGE, "function", FUNCTIONS,                                                       \
      "one function: calls, entries, recompiles, breaks, durations, callers and callees, source",  \
      .keys = "Enter opens  p slowest call  Tab next part  / search  v beside  o source")          \
    X(ENTRIES, LIST, "entries", "all cache entries: born, tried, hit, died")                       \
    X(ENTRY, PAGE, "entry", ENTRIES, "one cache entry: guards as a tree, graphs, bytecode")        \
    X(RECOMPILES, LIST, "recompiles",                                                              \
      "recompiles, by function and cause, with what the values were")                              \
    X(CAUSES, LIST, "causes", "each guard that made a recompile necessary")                        \
    X(COMPILES, LIST, "compiles", "every run of the compiler")                                     \
    X(COMPILE, PAGE, "compile", COMPILES, "one run of the compiler, and why it was needed")        \
    X(BREAKS, LIST, "breaks", "graph breaks, by reason and place")                                 \
    X(BREAK, PAGE, "break", BREAKS, "one graph break, with its stack and source")                  \
    X(TRIALS, LIST, "trials", "what dyntrace try measured: the command under each setting")        \
    X(SPANS, LIST, "spans", "named stretches of time, as the program or torch names them")         \
    X(LEDGER, LIST, "ledger", "every call of watched code and how it was decided")                 \
    X(FRAMES, LIST, "frames", "every call that was recorded, of any function")                     \
    X(CALL, OWN, "call", view_call)                                                                \
    X(REPLAY, OWN, "replay", view_replay)                                                          \
    X(TIMELINE, OWN, "timeline", view_timeline)                                                    \
    X(FLAME, OWN, "flame", view_flame)                                                             \
    X(GUARDS, LIST, "guards",                                                                      \
      "what guards cost, by kind and source; Enter: where they failed, or ran")                    \
    X(CHECKS, LIST, "checks", "each time that an entry's guards were run")                         \
    X(PROCESSES, LIST, "processes", "the processes that were followed, as a tree")                 \
    X(PROCESS, PAGE, "process", PROCESSES, "one process: how it ended, and what was running then") \
    X(LOSSES, LIST, "losses", "what is missing from the trace, and why")                           \
    X(SQL, OWN, "sql", view_sql)                                                                   \
    X(HELP, OWN, "help", view_help)                                                                \
    X(DYNTRACE, OWN, "dyntrace", view_dyntrace)                                                    \
    X(WHATIF, OWN, "what-if", view_whatif)                                                         \
    X(OUTPUT, OWN, "output", view_output)
/* clang-format on */

#define VIEW_KIND_(kind, ...) VIEW_##kind,
enum view_kind { VIEW_NONE, VIEWS(VIEW_KIND_) VIEW_KINDS };
#undef VIEW_KIND_

#endif

/* cmd/replay/step.h -- a trace's decisions one by one, by commands.
 *
 * Runs in: the viewer. */
#ifndef DYNTRACE_REPLAY_STEP_H
#define DYNTRACE_REPLAY_STEP_H

#include "lib/list.h"

struct db;
struct replay;

/* The commands, which are options as well: name, short name, what follows it or NULL, help, who does it with what. */
#define STEP_COMMANDS(X) \
    X("next", "n", "WHAT", \
      "the next lookup, compile, recompile, break, death, hit, miss, event or frame; alone: as before", do_step, 1) \
    X("previous", "p", "WHAT", "the one before", do_step, -1) \
    X("goto", "g", "PLACE", "1.5s, 50%, lookup 20, compile 3, frame 7, first miss, last compile", do_goto, 0) \
    X("here", ".", NULL, "print this place", do_here, 0) \
    X("filter", "f", "BY", \
      "function NAME, file GLOB, thread ID, process ID, outcome NAME, where SQL (of call_ledger); off", do_filter, 0) \
    X("stop", "s", "WHEN", "when FUNC recompiles, compiles, misses, is called; when entry 0/3 is hit, dies; off", \
      do_stop, 0) \
    X("continue", "c", NULL, "on to the next stop, or the end", do_run, 1) \
    X("back", "b", NULL, "back to the stop before, or the beginning", do_run, -1) \
    X("cache", "", NULL, "all entries of the cache, as they stood", do_part, PAGE_CACHE) \
    X("guards", "", "LABEL", "the guards of this entry, or of the one with that label", do_part, PAGE_GUARDS) \
    X("stack", "", NULL, "the whole call stack", do_part, PAGE_STACK) \
    X("source", "", NULL, "source lines", do_part, PAGE_SOURCE)

/* What to do, in order: a command with its words, or with NAME NULL a list of them with ';' between. */
struct replay_command {
    const char *name, *words; /* borrowed */
};
typedef LIST(struct replay_command) replay_script;

/* Do SCRIPT, or, when that is empty, what is typed at a prompt or comes from stdin. The exit status: 2 when a command
 * of a script could not be done. */
int replay_step(struct db *db, struct replay *replay, const replay_script *script);

#endif

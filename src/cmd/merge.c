/* cmd/merge.c -- `dyntrace merge`: joins several traces into one. See trace/merge.h. */
#include <inttypes.h>

#include "command.h"
#include "lib/out_file.h"
#include "lib/say.h"
#include "trace/traces.h"

static bool without_frames;

static const struct option options[] = {
    {"output", 'o', "FILE", option_text, &out_given.path, .help = "the trace to make",
     .needed = true},
    {"force", .read = option_flag, .to = &out_given.force, .help = "replace FILE"},
    {"decisions-only", .read = option_flag, .to = &without_frames,
     .help = "leave frames out, but for calls that a compiler had to do with and that have no "
             "lookup: what is left is what `report`, `check` and `diff` read"},
    OPTION_END,
};

/* Merge TRACES into the file of --output. Returns the exit status. */
static int merge_into_output(const struct traces *traces)
{
    struct out_file out = {0};
    size_t merged = 0;
    char *lost = NULL;
    bool ok;

    if (traces->paths.count < 2) {
        if (!traces_count_left_out(0) && !traces->failed)
            say_error("merge: needs two traces or more; `dyntrace merge A B... -o FILE`");
        return 2;
    }
    if (traces_has(out_given.path)) {
        say_error("merge: %s: is one of the traces to merge", out_given.path);
        return 2;
    }
    if (!out_open(&out, out_given.path, out_given.force))
        return 2;
    ok = merge_traces(out.temporary, traces->given, without_frames ? MERGE_DECISIONS : MERGE_FRAMES,
                      &merged, &lost);
    traces_count_left_out(traces->paths.count - merged);
    /* if only one trace is left, nothing is merged, and that has been reported */
    ok = ok && merged > 1 && out_commit(&out);
    if (ok && lost)
        say_error("%s: %s; `dyntrace report` says where", out_given.path, lost);
    free(lost);
    out_close(&out);
    return ok ? 0 : 2;
}

static int merge_main(int count, char **operands)
{
    struct traces traces = {0};
    int status = 2;

    if (!out_is_named(out_given.path)) {
        say_error("merge: -o FILE names the trace to make");
    } else {
        traces = traces_list_as_one(operands);
        status = merge_into_output(&traces);
    }
    traces_free(&traces);
    return status;
}

const struct command command_merge = {
    .name = "merge",
    .summary = "many traces as one",
    .operands = "FILE...",
    .about = "Many traces as one: of ranks that were recorded by themselves, of machines, of runs. "
             "Processes stay apart; times count from the start of the earliest trace, by the "
             "machines' clocks. FILE is a trace, a directory of *.db or a pattern.",
    .options = options,
    .more = "Traces that are still being recorded, that cannot be read, have a process that "
            "another has, too, are of another job than most, or of a rank that began once more "
            "later are said and left out. Exit status: 0; 3 something was left out; 2 bad usage, "
            "or fewer than two traces are left.",
    .operands_most = OPERANDS_ANY,
    .run = merge_main,
};

/* cmd/run.c -- `dyntrace run`: start a program so that it is recorded.
 *
 * Runs in: the command line. Three processes (docs/internals.md):
 *
 *     run --fork--> collector   in a session of its own: no key press reaches it
 *         --fork--> command     the user's program, in our place in the terminal (cmd/run/job.h)
 *
 * We wait, and end with the command's status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/run/job.h"
#include "cmd/run/live.h"
#include "cmd/run/program.h"
#include "cmd/run/trace.h"
#include "collector/collector.h"
#include "collector/launch.h"
#include "collector/recover.h"
#include "collector/session.h"
#include "command.h"
#include "lib/json.h"
#include "lib/option.h"
#include "lib/say.h"
#include "inject.h"
#include "versions.h"

static struct {
    const char *trace, *python;
    bool force, live;
    struct session_options session;
    const char **globs; /* owned, with their strings */
} given = {.python = "python3", .session.max_stall_ns = SESSION_MAX_STALL_NS};

#define MAX_STALL_MOST_NS (60 * UINT64_C(1000000000)) /* the program is stopped so long if the recorder is killed */

/* ---- options ---- */

static bool duration(const char *text, uint64_t *ns)
{
    static const struct { const char *name; double ns; } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value >= 0) || value > 1e12)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].name)) {
            *ns = (uint64_t)(value * units[i].ns);
            return true;
        }
    return false;
}

static const char *duration_read(const struct option *option, const char *value)
{
    return duration(value, option->to) ? NULL : "not a time such as 500ns, 20us, 1.5ms or 2s";
}

static const char *stall_read(const struct option *option, const char *value)
{
    uint64_t *ns = option->to;

    return duration(value, ns) && *ns <= MAX_STALL_MOST_NS ? NULL : "not a time from 0s to 60s such as 100ms";
}

static const char *depth_read(const struct option *option, const char *value)
{
    int64_t depth;

    if (option_count(&(struct option){.to = &depth}, value) || depth < 1 || depth > INT32_MAX)
        return "not a number from 1 on";
    *(uint32_t *)option->to = (uint32_t)depth;
    return NULL;
}

/* --include or --exclude. */
static const char *glob_read(const struct option *option, const char *value)
{
    uint32_t *count = &given.session.glob_count;
    const char **more = reallocarray(given.globs, *count + 1, sizeof *more);
    char *glob = NULL;

    if (more)
        given.session.globs = given.globs = more;
    if (!more || asprintf(&glob, "%c%s", option->name[0] == 'i' ? '+' : '-', value) < 0)
        return "out of memory";
    given.globs[(*count)++] = glob;
    return NULL;
}

static const struct option options[] = {
    {.letter = 'm', .value = "MODULE", .help = "run a module, as Python does; what follows is the program's"},
    {.letter = 'c', .value = "CODE", .help = "run this code, as Python does; what follows is the program's"},
    {"output", 'o', "FILE", option_any, &given.trace, .help = "write the trace to FILE; the default is the script's or module's name with .db"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"live", .read = option_flag, .to = &given.live,
     .help = "show the recording on the screen while the program runs, as `dyntrace tui` does. What the program prints is kept "
             "apart and printed after the screen has gone; its standard input is empty"},
    {"python", .value = "PY", .read = option_any, .to = &given.python, .help = "run scripts, -m and -c with this interpreter instead of python3"},
    {"frames", .value = "WHICH", .read = option_choice, .to = &given.session.frames, .words = SESSION_FRAMES_WORDS,
     .help = "all (default): every frame\n"
             "user: not the standard library, not site-packages\n"
             "decided: only calls that a compiler decided, at the least cost: outside of them no hook is installed\n"
             "none: processes only, without a hook"},
    {"include", .value = "GLOB", .read = glob_read, .many = true,
     .help = "record only code whose file or qualified name matches; may be repeated: one match is enough"},
    {"exclude", .value = "GLOB", .read = glob_read, .many = true, .help = "do not record code that matches; may be repeated, wins over --include"},
    {"torch", .value = "MODE", .read = option_choice, .to = &given.session.torch, .words = SESSION_TORCH_WORDS,
     .help = "how torch.compile is watched\n"
             "auto (default): shim where this torch and this Python were tested together, else observe\n"
             "shim: it runs on dyntrace's evaluator, and every guard check is seen\n"
             "observe: it runs on its own, and what is seen of it from outside is recorded\n"
             "off: not at all"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values, .words = SESSION_VALUES_WORDS,
     .help = "what is kept of the values of arguments and of what guards compare\n"
             "all (default): numbers, strings and other small values as they are, passwords among them\n"
             "types: types, shapes and dtypes, devices and strides\n"
             "off: nothing"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv, .help = "do not keep command lines, of the program and of its children"},
    {"max-depth", .value = "N", .read = depth_read, .to = &given.session.max_depth,
     .help = "record at most N frames on top of each other, and no lookups of deeper ones"},
    {"min-duration", .value = "TIME", .read = duration_read, .to = &given.session.min_duration_ns,
     .help = "leave out frames shorter than this, such as 500ns, 20us, 1.5ms or 2s; the totals by function still count them; "
             "frames with a lookup are kept"},
    {"max-stall", .value = "TIME", .read = stall_read, .to = &given.session.max_stall_ns,
     .help = "stop the program for at most this long, 1s unless given and 60s at most, when the recorder cannot keep up; then it "
             "goes on, and the frames that are not recorded are counted as a loss"},
    OPTION_END,
};

static void options_free(void)
{
    for (uint32_t i = 0; i < given.session.glob_count; i++)
        free((char *)given.globs[i]);
    free(given.globs);
}

/* ---- running ---- */

static char *json_command(int argc, char **argv)
{
    char *words = NULL, *made = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&words, &bytes);

    if (!out)
        return NULL;
    for (int i = 0; i < argc; i++)
        fwrite(argv[i], 1, strlen(argv[i]) + 1, out);
    if (fclose(out) == 0)
        made = json_array(words, bytes);
    free(words);
    return made;
}

/* What the user should know at the end. */
static void say_result(const struct session *session, const struct collector_result *said)
{
    bool terminal = isatty(2);

    if (said->error[0])
        say_error("%s", said->error);
    if (said->unsupported[0])
        say_error("%s was not recorded: there is no extension for it (" CPYTHON_SUPPORTED "; `make PYTHONS=...` builds one)",
                  said->unsupported);
    else if (!said->processes && given.session.frames != SESSION_NONE)
        say_error("nothing was recorded: no Python process loaded the recorder; it is not Python, or was started with "
                  "-I, -E or -S, which you would have to leave out%s%s%s", program_inject_is_for_all() ? "" : ", or as a user who cannot read ",
                  program_inject_is_for_all() ? "" : program_inject(), program_inject_is_for_all() ? "" : ": install dyntrace where that user can");
    if (said->torch_note[0])
        say_error("%s", said->torch_note);
    if (said->missing && !said->error[0])
        say_error("%s is not complete: %s%s; `dyntrace report` lists %s", session->trace, said->worst,
                  said->missing > 1 ? ", and more" : "", said->missing > 1 ? "all losses" : "it");
    if (terminal && !said->error[0])
        say_error("%llu frames of %u process%s in %s", (unsigned long long)said->frames, said->processes,
                  said->processes == 1 ? "" : "es", session->trace);
}

static int exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_untraced(const struct program *t)
{
    int status = 126;

    if (job_start(t, NULL) == 0)
        status = exit_status(job_wait(NULL));
    job_end();
    return status;
}

static int record(const struct program *t, int argc, char **argv)
{
    struct session session = SESSION_CLOSED;
    struct collector_result *said = calloc(1, sizeof *said);
    struct launch l = {.orders = -1, .result = -1};
    struct live live = LIVE_CLOSED;
    struct asked asked = program_ask(t);
    char *trace = trace_path(given.trace, t->name), *command = json_command(given.session.no_argv ? 0 : argc, argv);
    uint32_t first = 0, root = 0;
    int status = 2, ended;
    bool made = false, untraced = false;

    recover_all_quietly();
    if (!trace || !command || !said || !program_inject() ||
        trace_begin(&session, trace, &given.session, given.force, &first, &root))
        goto done;
    made = true;
    if (!program_fits(t, &asked, given.session.frames == SESSION_NONE)) {
        untraced = given.session.frames == SESSION_NONE;
        goto done;
    }
    if ((given.live && !live_open(&live)) || launch_collector(&l, &session, command, first, root))
        goto done;
    if (job_start(t, &(struct job_recording){&session, l.orders, &live})) {
        status = 126;
        launch_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = -1});
        launch_wait(&l, job_end(), said);
        goto done;
    }
    made = false;
    l.began = (struct collector_order){.what = ORDER_BEGAN, .pid = job_pid()}; /* the child has told it */
    live_show(&live, trace);
    ended = job_wait(&l);
    status = exit_status(ended);
    launch_order(&l, &(struct collector_order){.what = ORDER_ENDED, .pid = job_pid(), .status = ended});
    if (!launch_wait(&l, job_end(), said)) { /* a Ctrl-C ends the wait for stragglers */
        say_error("the collector was killed again and again; `dyntrace fsck --recover %s` may finish the trace", trace);
        session.directory[0] = 0; /* keep it for that */
        goto done;
    }
    live_close(&live);
    if (l.replaced)
        say_error("the collector was killed; another took its place");
    say_result(&session, said);
    if (said->error[0] && !said->frames)
        session.directory[0] = 0;
done:
    live_close(&live);
    program_fits(t, &asked, true); /* it is waited for in any case */
    if (made) { /* nothing ran: leave nothing behind */
        unlink(trace);
        unlink(session.frames);
    }
    session_remove(&session);
    session_close(&session);
    launch_close(&l);
    free(said);
    free(trace);
    free(command);
    return untraced ? run_untraced(t) : status;
}

static int run(int count, char **operands)
{
    struct program program = {0};
    int status = 2;
    char ignoring;

    if (!count)
        say_error("run: no program given; `dyntrace run --help` tells more");
    if (!count || program_find(&program, given.python, count, operands))
        goto done;
    ignoring = program.python ? python_ignores_us((const char *const *)program.argv + 1) : 0;
    if (ignoring && given.session.frames == SESSION_NONE) {
        status = run_untraced(&program);
    } else if (ignoring) {
        say_error("%s: its option -%c makes it ignore the environment, by which it would be recorded: leave it out, or run "
                  "untraced with --frames none", program.argv[0], ignoring);
    } else {
        status = record(&program, count, operands);
    }
done:
    options_free();
    program_free(&program);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a program and record its frames",
    .operands = "[--] script.py | -m MODULE | -c CODE | PROGRAM [ARG]...",
    .about = "Runs the program and records every Python frame that it and its children evaluate. The exit status is the program's "
             "own (128+N when signal N killed it).",
    .options = options,
    .operands_most = OPERANDS_ANY,
    .runs = true,
    .run = run,
};

/* cmd/run.c -- `dyntrace run`: starts and records a program. `dyntrace collect`: records a
 * running program that has asked for it.
 *
 * `run` starts two processes (docs/internals.md):
 *
 *     run --fork--> collector  in a session of its own, so that no key press reaches it,
 *         --fork--> command    the user's program, which takes run's place in the terminal
 *                              (cmd/run/job.c).
 *
 * `run` waits for both, and exits with the command's exit status.
 *
 * dyntrace.record() starts `collect` (python/dyntrace/record.py):
 *
 *     dyntrace collect -o FILE [--force] [--values WHICH] [--no-argv] --pid PID
 *
 * `collect` prints the session's directory, and the program joins this session. Then `collect`
 * reads its standard input, whose end is the end of the recording. When the trace is complete,
 * `collect` prints "done FRAMES". */
#include <poll.h>

#include "cmd/run/run.h"
#include "collector/keep.h"
#include "collector/process.h"
#include "collector/trace_files.h"
#include "command.h"
#include "inject.h"
#include "lib/bounds.h"
#include "lib/json.h"
#include "lib/option.h"
#include "trace/db.h"
#include "trace/findings.h"
#include "trace/page_text.h"
#include "versions.h"

static struct {
    const char *trace, *python, *metrics;
    bool force, live, quiet, standby;
    int64_t pid; /* the value of --pid, an option of `collect` */
    struct session_options session;
    int snapshot_signal; /* the signal that requests a snapshot, or 0 if there is none */
} given = {.session.frames = SESSION_FOLDED, .session.max_stall_ns = SESSION_MAX_STALL_NS};

#define KEEP_LEAST_NS UINT64_C(1000000000)
/* the greatest value of --max-stall: how long the program waits if the recorder is killed */
#define MAX_STALL_MOST_NS (60 * UINT64_C(1000000000))

/* ---- reading the values of options --------------------------------------- */

static const char *read_max_stall_option(const struct option *option, const char *value)
{
    return !option_duration(option, value) && given.session.max_stall_ns <= MAX_STALL_MOST_NS
               ? NULL
               : "not a time from 0s to 60s such as 100ms";
}

static const char *read_max_depth_option(const struct option *option, const char *value)
{
    int64_t depth;

    if (option_count(&(struct option){.to = &depth}, value) || depth < 1 || depth > INT32_MAX)
        return "not a number from 1 on";
    *(uint32_t *)option->to = (uint32_t)depth;
    return NULL;
}

/* Read the value of --keep: a time or a size. */
static const char *read_keep_option(const struct option *option, const char *value)
{
    const struct option time = {.to = &given.session.keep_ns};
    const struct option size = {.to = &given.session.keep_bytes};

    (void)option;
    if (!option_duration(&time, value))
        return given.session.keep_ns >= KEEP_LEAST_NS ? NULL : "less than a second";
    if (!option_size(&size, value))
        return given.session.keep_bytes >= KEEP_LEAST ? NULL : "less than 16M";
    return "not a time such as 60s or 10min, or a size such as 500M or 2G";
}

/* Return the number of the signal NAME, such as "USR1" or "SIGUSR1". Returns 0 if it is not a
 * signal that can request a snapshot. */
static int signal_number(const char *name)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP};

    if (!strncmp(name, "SIG", 3))
        name += 3;
    for (size_t i = 0; i < array_count(signals); i++)
        if (!strcmp(name, sigabbrev_np(signals[i])))
            return signals[i];
    return 0;
}

/* Read the value of --snapshot-on. */
static const char *read_snapshot_on_option(const struct option *option, const char *value)
{
    uint64_t limit_ns;
    const struct option time = {.to = &limit_ns};
    const char *limit = strrchr(value, '>');
    int number = signal_number(value);
    bool is_call = limit && limit > value && !option_duration(&time, limit + 1);

    (void)option;
    if (number)
        given.snapshot_signal = number;
    else if (!is_call && strcmp(value, "exception"))
        return "not 'FUNC>TIME' such as 'handle>200ms', exception, USR1, USR2 or HUP";
    *list_add(&given.session.triggers) = value;
    return NULL;
}

/* Read the value of --include or --exclude. */
static const char *read_pattern_option(const struct option *option, const char *value)
{
    *list_add(&given.session.globs) = say_print("%c%s", option->name[0] == 'i' ? '+' : '-', value);
    return NULL;
}

/* Read the value of --set. settings_are_valid() checks it later, by the list in
 * python/dyntrace/_settings.py. */
static const char *read_set_option(const struct option *option, const char *value)
{
    if (given.session.settings.count >= SETTINGS_MAX)
        return "more than 64 settings";
    *list_add(&given.session.settings) = value;
    return NULL;
}

/* Append VALUE, of --args or --redact, to the session_texts that OPTION->to points to. */
static const char *read_text_into_list(const struct option *option, const char *value)
{
    session_texts *texts = option->to;

    if (!*value)
        return option_empty;
    *list_add(texts) = value;
    return NULL;
}

static const struct option run_options[] = {
    {.letter = 'm',
     .value = "MODULE",
     .help = "run a module, as Python does; what follows is the program's"},
    {.letter = 'c',
     .value = "CODE",
     .help = "run this code, as Python does; what follows is the program's"},
    {"output", 'o', "FILE", option_any, &given.trace,
     .help = "write the trace to FILE; the default is the script's or module's name with .db. For "
             "each rank of a job by itself: DIR/, or a FILE with %h, %r, %p in its name, the host, "
             "the rank that torchrun, mpirun, srun or ray say, and the process; DIR/ is "
             "DIR/%h-%r-%p.db. Such a trace is recorded on a local disk ($TMPDIR or /var/tmp) and "
             "moved to its place when it is whole"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"quiet", .read = option_flag, .to = &given.quiet,
     .help =
         "do not print at the end what to look at first, as `dyntrace why` does; that is printed "
         "on a terminal only"},
    {"live", .read = option_flag, .to = &given.live,
     .help =
         "show the recording on the screen while the program runs, as `dyntrace tui` does. What "
         "the program prints is kept apart and printed after the screen has gone; it keeps its "
         "standard input, and where that is the terminal lines are typed to it from the screen"},
    {"standby", .read = option_flag, .to = &given.standby,
     .help = "load dyntrace into the program, but record nothing, until `attach` or "
             "dyntrace.record() does. Until then there is no hook, and no recorder runs"},
    {"python", .value = "PY", .read = option_any, .to = &given.python,
     .help = "run scripts, -m and -c with this interpreter, not that of dyntrace's virtual "
             "environment or python3 on PATH"},
    {"frames", .value = "WHICH", .read = option_choice, .to = &given.session.frames,
     .words = SESSION_FRAMES_WORDS,
     .help = "folded (default): every frame, but library frames inside torch's compiles and "
             "imports are counted by function and not stored one by one\n"
             "all: every frame\n"
             "user: not the standard library, not site-packages, but for what a compiler decided\n"
             "decided: only calls that a compiler decided, at the least cost: outside of them no "
             "hook is installed\n"
             "none: processes only, without a hook"},
    {"include", .value = "GLOB", .read = read_pattern_option, .many = true,
     .help = "record only code whose file or qualified name matches; may be repeated: one match is "
             "enough"},
    {"exclude", .value = "GLOB", .read = read_pattern_option, .many = true,
     .help = "do not record code that matches; may be repeated, wins over --include"},
    {"args", .value = "GLOB", .read = read_text_into_list, .to = &given.session.arguments,
     .many = true,
     .help = "record arguments and return values of functions whose file or qualified name "
             "matches; may be repeated. Of generators and coroutines the value that they return at "
             "their end, not those that they yield. Numbers, strings and containers of them are "
             "kept in short, "
             "of arrays type and shape, of other values the type; see --values and --redact"},
    {"torch", .value = "MODE", .read = option_choice, .to = &given.session.torch,
     .words = SESSION_TORCH_WORDS,
     .help = "how torch.compile is watched\n"
             "auto (default): shim where this torch and this Python were tested together, else "
             "observe\n"
             "shim: it runs on dyntrace's evaluator, and every guard check is seen\n"
             "observe: it runs on its own, and what is seen of it from outside is recorded\n"
             "off: not at all"},
    {"set", .value = "SETTING", .read = read_set_option, .many = true,
     .help = "run the program under a setting that its source does not have; may be repeated. "
             "SETTING@FUNC is for one function only\n"
             "dynamic=, fullgraph=, backend=, mode=, isolate_recompiles=: as every torch.compile() "
             "had them\n"
             "stance=: of torch.compiler.set_stance()\n"
             "config.NAME=VALUE: of torch._dynamo.config, torch._inductor.config, "
             "torch.compiler.config or torch.fx.experimental._config\n"
             "mark_dynamic=, maybe_mark_dynamic=, mark_unbacked=, mark_static=SOURCE[DIM]: as the "
             "functions of that name\n"
             "tensor=SOURCE: a number becomes a tensor before torch sees the call\n"
             "guard_filter_fn=HELPER, drop_guard='KIND SOURCE', skip_guard_eval_unsafe=CALLS, "
             "use_recursive_dict_tags_for_guards=, install_free_tensors=: of torch's guards\n"
             "limit=, accumulated_limit=: entries of a code object, under a compiler of one's own"},
    {"capture", .read = option_flag, .to = &given.session.capture,
     .help = "run every function of the program, but the standard library's and installed "
             "packages', under dyntrace.compile: its operations on numpy's and torch's arrays are "
             "captured as graphs, and what breaks them is in the trace"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values,
     .words = SESSION_VALUES_WORDS,
     .help = "what is kept of the values of arguments and of what guards compare\n"
             "all (default): numbers, strings and other small values as they are, but for those "
             "whose names look secret (--redact)\n"
             "types: types, shapes and dtypes, devices and strides\n"
             "off: nothing"},
    {"redact", .value = "PATTERN", .read = read_text_into_list, .to = &given.session.secrets,
     .many = true,
     .help = "do not keep values whose name matches, such as 'iban*', whatever the case; may be "
             "repeated. Values of names that look secret (password, api_key, ...) are never kept, "
             "nor are they in command lines: <redacted> stands for them"},
    {"no-redact", .read = option_flag, .to = &given.session.keep_secrets,
     .help = "keep values whose names look secret, too"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv,
     .help = "do not keep command lines, of the program and of its children"},
    {"clock", .value = "WHICH", .read = option_choice, .to = &given.session.clock,
     .words = SESSION_READING_WORDS,
     .help =
         "what the times of frames are read from\n"
         "exact (default): the processor's counter, or the kernel's clock where that cannot be "
         "trusted\n"
         "coarse: a word in memory which the recorder sets 10,000 times a second, where reading "
         "the counter is slow, as on some virtual machines. Order and numbers of calls stay exact; "
         "single calls mostly take no time or a tenth of a millisecond, sums over many are right"},
    {"max-depth", .value = "N", .read = read_max_depth_option, .to = &given.session.max_depth,
     .help = "record at most N frames on top of each other, and no lookups of deeper ones"},
    {"keep", .value = "BOUND", .read = read_keep_option, .many = true,
     .help =
         "keep the frames and lookups of the last BOUND only: a time such as 60s or 10min, or a "
         "size such as 500M or 2G, which the trace never outgrows; may be given twice, one of "
         "each. Compiles, causes, entries, totals and losses are always kept, and lookups that "
         "were dropped are counted"},
    {"metrics", .value = "FILE.prom", .read = option_text, .to = &given.metrics,
     .help = "write counters to this file as Prometheus text, every five seconds, for "
             "node_exporter's textfile collector: calls, lookups, compiles, recompiles, losses, "
             "bytes. It stays at the end, with dyntrace_recording 0"},
    {"snapshot-on", .value = "WHAT", .read = read_snapshot_on_option, .many = true,
     .help = "write a snapshot beside the trace, as `dyntrace snapshot` does, TRACE-snapshot-1.db "
             "and so on, when WHAT happens; may be repeated. One in ten seconds, and ten at most\n"
             "'FUNC>TIME': a call of FUNC, whose file or qualified name matches, took longer\n"
             "exception: one that nobody caught ended a thread or a process\n"
             "USR1, USR2, HUP: this process gets the signal, which the program then does not get"},
    {"min-duration", .value = "TIME", .read = option_duration, .to = &given.session.min_duration_ns,
     .help = "leave out frames shorter than this, such as 500ns, 20us, 1.5ms or 2s; the totals by "
             "function still count them; frames with a lookup are kept"},
    {"thin", .read = option_flag, .to = &given.session.thin,
     .help =
         "of functions that are called over a million times store the first million calls, then "
         "the slowest and one in a thousand of the rest; the totals by function count all, and "
         "frames with a lookup are kept"},
    {"max-stall", .value = "TIME", .read = read_max_stall_option, .to = &given.session.max_stall_ns,
     .help = "stop the program for at most this long, 1s unless given and 60s at most, when the "
             "recorder cannot keep up; then it goes on, and the frames that are not recorded are "
             "counted as a loss"},
    OPTION_END,
};

static const struct option collect_options[] = {
    {"output", 'o', "FILE", option_text, &given.trace, .help = "write the trace to FILE",
     .needed = true},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values,
     .words = SESSION_VALUES_WORDS, .help = "all (default), types or off, as `run --values`"},
    {"args", .value = "GLOB", .read = read_text_into_list, .to = &given.session.arguments,
     .many = true,
     .help = "record arguments and return values of functions that match, as `run --args`"},
    {"keep", .value = "BOUND", .read = read_keep_option, .many = true, .help = "as `run --keep`"},
    {"redact", .value = "PATTERN", .read = read_text_into_list, .to = &given.session.secrets,
     .many = true, .help = "do not keep values whose name matches, as `run --redact`"},
    {"no-redact", .read = option_flag, .to = &given.session.keep_secrets,
     .help = "keep values whose names look secret, too"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv,
     .help = "do not keep command lines"},
    {"pid", .value = "PID", .read = option_count, .to = &given.pid,
     .help = "the process that records itself", .needed = true},
    OPTION_END,
};

const struct option attach_options[] = {
    {"output", 'o', "FILE", option_text, &given.trace,
     .help = "write the trace to FILE; the default is the program's name with .db"},
    {"force", .read = option_flag, .to = &given.force, .help = "replace FILE if it is there"},
    {"for", .value = "TIME", .read = option_duration, .to = &attach_given.duration_ns,
     .help = "record for this long, such as 10s or 500ms; without it until Ctrl-C, `detach` or the "
             "end of the process"},
    {"calls", .value = "FUNC:N", .read = option_text, .to = &attach_given.calls,
     .help = "record until FUNC was called N times. The calls are counted four times a second, so "
             "some more may be in the trace"},
    {"frames", .value = "WHICH", .read = option_choice, .to = &given.session.frames,
     .words = SESSION_FRAMES_WORDS, .help = "which frames to record, as `run --frames`"},
    {"include", .value = "GLOB", .read = read_pattern_option, .many = true,
     .help = "record only code whose file or qualified name matches, as `run --include`"},
    {"exclude", .value = "GLOB", .read = read_pattern_option, .many = true,
     .help = "do not record code that matches, as `run --exclude`"},
    {"args", .value = "GLOB", .read = read_text_into_list, .to = &given.session.arguments,
     .many = true,
     .help = "record arguments and return values of functions that match, as `run --args`"},
    {"values", .value = "WHICH", .read = option_choice, .to = &given.session.values,
     .words = SESSION_VALUES_WORDS, .help = "all (default), types or off, as `run --values`"},
    {"redact", .value = "PATTERN", .read = read_text_into_list, .to = &given.session.secrets,
     .many = true, .help = "do not keep values whose name matches, as `run --redact`"},
    {"no-redact", .read = option_flag, .to = &given.session.keep_secrets,
     .help = "keep values whose names look secret, too"},
    {"no-argv", .read = option_flag, .to = &given.session.no_argv,
     .help = "do not keep command lines"},
    OPTION_END,
};

struct attach_given attach_given;

/* ---- beginning and ending a recording, for `run`, `collect` and `attach` ---- */

struct session_options *recording_options(void)
{
    return &given.session;
}

/* Store the absolute path of --metrics in SESSION. Returns false if nothing can be written there,
 * which has been reported. */
static bool store_metrics_path(struct session *session)
{
    char path[2 * PATH_MAX];
    char here[PATH_MAX] = "";
    const char *why = NULL;
    char *end;

    if (!given.metrics)
        return true;
    if (*given.metrics != '/' && !getcwd(here, sizeof here))
        why = strerror(errno);
    snprintf(path, sizeof path, "%s%s%s", here, *here ? "/" : "", given.metrics);
    if (!why && strlen(path) >= sizeof session->metrics - 32)
        why = strerror(ENAMETOOLONG);
    if (!why) {
        snprintf(session->metrics, sizeof session->metrics, "%.*s", PATH_MAX - 1, path);
        end = strrchr(path, '/');
        *end = 0;
        if (access(*path ? path : "/", W_OK))
            why = strerror(errno);
    }
    if (why)
        say_error("run: --metrics %s: cannot be written: %s", given.metrics, why);
    return !why;
}

int recording_begin(struct session *session, const char *name)
{
    char here[PATH_MAX] = "";
    char base[PATH_MAX], path[2 * PATH_MAX];
    bool rooted = given.trace && *given.trace == '/';
    /* owned: where the trace is moved after the recording, if it is recorded on a local disk: the
     * value of -o, or the default path; otherwise NULL */
    char *apart = NULL;
    struct session place = SESSION_CLOSED;
    size_t length;

    if (!rooted && !getcwd(here, sizeof here)) {
        say_error("%s: cannot be a trace: there is no working directory",
                  given.trace ? given.trace : name);
        return -1;
    }
    if (given.trace && output_is_per_rank(given.trace)) {
        apart = strdup(given.trace);
    } else if (given.trace) {
        snprintf(path, sizeof path, "%s%s%s", here, rooted ? "" : "/", given.trace);
    } else {
        snprintf(base, sizeof base, "%s", name);
        for (length = strlen(base); length > 1 && base[length - 1] == '/'; length--)
            base[length - 1] = 0;
        name = basename(base);
        length = strlen(name);
        length -= length > 3 && !strcmp(name + length - 3, ".py") ? 3 : 0;
        snprintf(path, sizeof path, "%s/%.*s.db", here, (int)length, name);
    }
    if (!apart && !rank_locks_work(path))
        apart = strdup(path);
    if (apart && !rank_choose_output(&place, apart, here, given.force, path, sizeof path)) {
        free(apart);
        return -1;
    }
    free(apart);
    bounds_allow_memory_failure(false);
    if (session_create(session, path, &given.session))
        return -1;
    if (!store_metrics_path(session))
        return -1;
    memcpy(session->destination, place.destination, sizeof session->destination);
    session->clock_offset_ns = place.clock_offset_ns;
    session->clock_doubt_ns = place.clock_doubt_ns;
    if (access(session->frames, F_OK) == 0) {
        say_error("%s: another recording writes this trace (%s is there); wait for it, use -o, or "
                  "delete that file if nothing records any more",
                  path, session->frames);
        return -1;
    }
    return recorder_create(path, session->frames, given.force);
}

bool recording_finish(struct launch *l, volatile sig_atomic_t *interrupted,
                      struct collector_result *said)
{
    if (launch_wait_for_result(l, interrupted, said))
        return true;
    if (l->why[0])
        say_error("%s; `dyntrace fsck --recover %s` tries again", l->why, l->session->trace);
    else
        say_error("the collector was killed again and again; `dyntrace fsck --recover %s` may "
                  "finish the trace",
                  l->session->trace);
    /* keep the session's files, because `dyntrace fsck --recover` needs them */
    l->session->directory[0] = 0;
    return false;
}

/* ---- the command `run` --------------------------------------------------- */

enum {
    BIG = 200 << 20, /* a trace of this many bytes is large */
    MB = 1 << 20,
    /* a trace with more frames is not read at the end of a run, because that takes a second */
    FRAMES_READ = 2000000,
};

/* Suggest --frames decided if the trace is large and the program used torch. */
static void suggest_frames_decided(const struct session *session,
                                   const struct collector_result *said)
{
    struct stat file;

    if (said->undecided && given.session.frames != SESSION_DECIDED &&
        !stat(session->trace, &file) && file.st_size >= BIG)
        say_error("%s has %lld MB; --frames decided would have made %lld MB at most, with the same "
                  "decisions",
                  session->trace, (long long)file.st_size / MB,
                  ((long long)file.st_size - (long long)said->undecided) / MB + 1);
}

/* Print to the terminal what to look at first in the trace. */
static void print_findings(const struct session *session, const struct collector_result *said)
{
    char *here = getcwd(NULL, 0);
    size_t bytes = here ? strlen(here) : 0;
    const char *path = session->trace;
    bool is_here = bytes && !strncmp(path, here, bytes);
    bool is_recorded = said->processes && !said->error[0];
    bool is_wanted = is_recorded && !given.quiet;
    struct db *db;

    if (is_here && path[bytes] == '/')
        path += bytes + 1;
    if (!is_wanted || !isatty(2)) {
        free(here);
        return;
    }
    if (said->frames > FRAMES_READ) {
        say_error("`dyntrace why %s` prints what to look at first", path);
    } else if ((db = db_open(path))) {
        findings_print(db, stderr, page_text_choose_way(stderr, false), path);
        db_close(db);
    }
    free(here);
}

/* Print warnings about the recording at the end of a run. */
static void print_recording_warnings(const struct session *session,
                                     const struct collector_result *said, const struct program *t,
                                     int ended)
{
    bool terminal = isatty(2);
    char cpu[80] = "";
    char name[64], remedy[PATH_MAX + 80];
    int major, minor;
    int path = 0;

    if (said->error[0])
        say_error("%s", said->error);
    if (said->unsupported[0] &&
        sscanf(said->unsupported, "%63s %d.%d at %n", name, &major, &minor, &path) == 3 &&
        versions_is_supported(name, major, minor))
        say_error("%s was not recorded: there is no extension of dyntrace " DYNTRACE_VERSION
                  " for it: %s",
                  said->unsupported, extension_describe_remedy(said->unsupported + path, remedy));
    else if (said->unsupported[0])
        say_error("%s was not recorded: it is not supported; use " CPYTHON_SUPPORTED,
                  said->unsupported);
    else if (!said->processes && !said->error[0] && given.session.frames != SESSION_NONE)
        program_report_unrecorded(t, ended);
    if (said->torch_note[0])
        say_error("%s", said->torch_note);
    if (said->missing && !said->error[0])
        say_error("%s is not complete: %s%s; `dyntrace report` lists %s", session->trace,
                  said->worst, said->missing > 1 ? ", and more" : "",
                  said->missing > 1 ? "all losses" : "it");
    if (said->over)
        say_error(
            "%s: what is always kept (compiles, causes, code, totals) takes %llu MB more than "
            "--keep allows; it is all there",
            session->trace, (unsigned long long)(said->over / 1000000 + 1));
    if (said->cpu_ns > 0)
        snprintf(cpu, sizeof cpu, "; the recorder took %.2f s of processor time",
                 (double)said->cpu_ns / 1e9);
    if (terminal && !said->error[0])
        say_error("%llu frames of %u process%s in %s%s", (unsigned long long)said->frames,
                  said->processes, said->processes == 1 ? "" : "es", session->trace, cpu);
}

static int run_unrecorded(const struct program *t)
{
    int status = job_start(t, NULL, false) == 0 ? job_wait(NULL, NULL) : 126;

    job_interrupted_flag();
    return status;
}

static int record_program(const struct program *t, int argc, char **argv)
{
    struct session session = SESSION_CLOSED;
    struct collector_result said = {0};
    struct launch l = {.link = -1};
    struct asked asked = program_ask_version(t, given.session.capture);
    bool redacted = false;
    char *command = again_make_command(&given.session, argc, argv, &redacted);
    int status = 2;
    int ended;
    bool made = false;
    bool untraced = false;

    recover_all_quietly();
    if (!program_find_inject_directory() || recording_begin(&session, t->name))
        goto done;
    made = true;
    session.again.redacted = redacted;
    again_read_command(&session.again, t, &given.session);
    if (!program_can_be_recorded(t, &asked, given.session.capture,
                                 given.session.frames == SESSION_NONE)) {
        untraced = given.session.frames == SESSION_NONE;
        goto done;
    }
    if ((given.live && !live_open()) || launch_collector(&l, &session, command))
        goto done;
    job_snapshot_on_signal(given.snapshot_signal);
    if (job_start(t, &l, given.live)) {
        status = 126;
        launch_send_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = -1});
        launch_wait_for_result(&l, job_interrupted_flag(), &said);
        goto done;
    }
    made = false;
    /* the child has sent this order already; `l` keeps it for a collector that may replace this
     * one */
    l.began = (struct collector_order){.what = ORDER_BEGAN, .pid = job_pid()};
    live_show_screen(session.trace);
    status = job_wait(&l, &ended);
    launch_send_order(
        &l, &(struct collector_order){.what = ORDER_ENDED, .pid = job_pid(), .status = ended});
    /* end the trace; if other processes are still running, Ctrl-C ends the wait for them */
    if (!recording_finish(&l, job_interrupted_flag(), &said))
        goto done;
    live_close();
    if (l.replaced)
        say_error("the collector was killed; another took its place");
    if (*session.destination &&
        /* the trace is not at its old path any more: it was moved to its destination */
        access(session.trace, F_OK) != 0)
        memcpy(session.trace, session.destination, sizeof session.trace);
    print_recording_warnings(&session, &said, t, ended);
    suggest_frames_decided(&session, &said);
    print_findings(&session, &said);
    if (settings_print_unused(said.settings))
        status = 2;
    if (said.error[0] && !said.frames)
        session.directory[0] = 0;
done:
    live_close();
    /* here this only waits until the interpreter that program_ask_version() started has ended */
    program_can_be_recorded(t, &asked, false, true);
    if (made) { /* the program was not started: remove the trace */
        unlink(session.trace);
        unlink(session.frames);
        /* remove the directory, too, which rank_choose_output() made only for this trace */
        if (*session.destination) {
            *strrchr(session.trace, '/') = 0;
            rmdir(session.trace);
        }
    }
    session_remove(&session);
    again_free(&session.again);
    session_close(&session);
    launch_close(&l);
    free(command);
    return untraced ? run_unrecorded(t) : status;
}

/* Can --capture be combined with the other options? */
static bool can_combine_capture_option(void)
{
    const enum session_torch torch = given.session.torch;

    if (!given.session.capture)
        return true;
    if (given.session.frames == SESSION_NONE)
        say_error(
            "run: --capture needs the hook that --frames none leaves out: give one of the two");
    else if (torch == SESSION_TORCH_SHIM || torch == SESSION_TORCH_OBSERVE)
        say_error(
            "run: --capture compiles, and --torch %s watches torch compile: give one of the two",
            torch == SESSION_TORCH_SHIM ? "shim" : "observe");
    else
        return true;
    return false;
}

/* Can --redact be combined with the other options? */
static bool can_combine_redact_option(void)
{
    if (!given.session.keep_secrets || !given.session.secrets.count)
        return true;
    say_error("run: --redact leaves out what --no-redact keeps: give one of the two");
    return false;
}

/* Can --set be combined with the other options? */
static bool can_combine_set_option(void)
{
    if (!given.session.settings.count || given.session.frames != SESSION_NONE)
        return true;
    say_error("run: --set needs the hook that --frames none leaves out: give one of the two");
    return false;
}

/* Can --standby be combined with the other options? */
static bool can_combine_standby_option(void)
{
    const char *other = given.trace ? "-o" : given.live ? "--live" : NULL;

    if (!given.standby || !other)
        return true;
    say_error("run: --standby records nothing, so it makes no use of %s: give that to attach",
              other);
    return false;
}

static bool can_combine_options(void)
{
    return can_combine_standby_option() && can_combine_capture_option() &&
           can_combine_set_option() && can_combine_redact_option();
}

/* Execute T, prepared for a later recording (--standby), in place of this process. Returns only on
 * error, with the exit status. */
static int execute_prepared_program(const struct program *t)
{
    struct asked asked = program_ask_version(t, false);
    const char *inject = program_find_inject_directory();

    if (!inject || !program_can_be_recorded(t, &asked, false, false))
        return 2;
    inject_set_environment(inject, INJECT_STANDBY);
    bounds_reset_in_child();
    execvp(t->path, t->argv); /* `t->path` is a script without "#!", which /bin/sh runs */
    say_error("%s: %s", t->path, program_find_reason(t->path, errno));
    return 126;
}

static int run_main(int count, char **operands)
{
    struct program program = {0};
    int status = 2;
    char ignoring;

    if (!count)
        say_error("run: no program given; `dyntrace run --help` tells more");
    if (!count || !can_combine_options() ||
        program_find(&program, given.python ? given.python : program_choose_python(), count,
                     operands))
        goto done;
    ignoring =
        program.python ? python_find_ignoring_option((const char *const *)program.argv + 1) : 0;
    if (ignoring && given.session.frames == SESSION_NONE)
        status = run_unrecorded(&program);
    else if (ignoring)
        say_error("%s: not started: its option -%c makes it ignore the environment, by which it "
                  "would be recorded: leave it out, or run untraced with --frames none",
                  program.argv[0], ignoring);
    else if (given.standby)
        status = execute_prepared_program(&program);
    else if (!given.session.settings.count ||
             settings_are_valid(&program, &given.session, "run: --set "))
        status = record_program(&program, count, operands);
done:
    free(program.argv);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a program and record its frames",
    .operands = "[--] script.py | -m MODULE | -c CODE | PROGRAM [ARG]...",
    .about =
        "Runs the program and records every Python frame that it and its children evaluate. "
        "The exit status is the program's own (128+N when signal N killed it), or 2 when a setting "
        "of --set did nothing.",
    .options = run_options,
    .operands_most = OPERANDS_ANY,
    .runs = true,
    .run = run_main,
};

/* ---- the command `collect` ----------------------------------------------- */

enum {
    LEFT_LOOK_MS = 20, /* time between two looks at whether the program has left the session */
    MAPS_LOOKS = 50,   /* every so many looks, look whether a process has called exec() */
};

/* A session of dyntrace.record(): which program it records, and what a look at its processes has
 * found. */
struct recorded {
    const char *name; /* last part of the path of the session's directories */
    uint32_t program; /* pid of the program that called record() */
    bool maps;        /* also look whether a process has called exec(), which ends its recording */
    /* left: the program has left the session. any: some process is being recorded */
    bool left, any;
};

/* Has process PID mapped a file below a directory with the name NAME? Returns true if that cannot
 * be found out. */
static bool has_mapped_below(uint32_t pid, const char *name)
{
    char path[64], line[PATH_MAX + 128];
    bool found = false;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    maps = fopen(path, "re");
    if (!maps)
        return true;
    errno = 0;
    while (!found && fgets(line, sizeof line, maps))
        found = strstr(line, name);
    found |= errno != 0;
    fclose(maps);
    return found;
}

static void note_recorded_process(void *context, const char *name, enum session_place place,
                                  const struct process_file *header)
{
    struct recorded *recorded = context;
    bool is_recorded;

    (void)name;
    (void)place;
    if (!header || !header->ready)
        return;
    recorded->left |= header->left && header->pid == recorded->program;
    /* count the process as recorded until the collector has looked for it */
    recorded->any |= !header->looked;
    is_recorded = !header->left && !header->finished && header->seen_pid;
    if (!is_recorded || !process_is_same(header->seen_pid, header->seen_start_time))
        return;
    recorded->any |= !recorded->maps || has_mapped_below(header->seen_pid, recorded->name);
}

/* Does the recording still go on? LOOKS is how often this was called before. */
static bool is_program_recorded(const struct session *session, unsigned looks)
{
    struct recorded recorded = {
        .name = basename(session->directory),
        .program = (uint32_t)given.pid,
        .maps = looks % MAPS_LOOKS == 0,
    };

    session_visit_processes(session, note_recorded_process, &recorded);
    return recorded.any && !recorded.left;
}

/* Wait until the program has left its block of record(), or until it and its forked children
 * have ended. If the collector dies meanwhile, it is replaced.
 *
 * Standard input ends in both cases. But it also ends if the program closes descriptors that it
 * did not open, and then the recording goes on. So after the end of standard input, the
 * session's files tell when the recording ends. */
static void wait_for_program(struct launch *l, const struct session *session)
{
    struct pollfd fds[] = {{0, POLLIN, 0}, {-1, POLLIN, 0}};
    unsigned looks = 0;
    char byte;
    ssize_t got;

    for (;;) {
        int again = launch_replace_if_dead(l);
        bool closed = fds[0].fd < 0;
        /* until the collector's result has come, an event on the link means that the collector
         * died */
        fds[1].fd = l->done ? -1 : l->link;
        if (closed && (again < 0 || again > LEFT_LOOK_MS))
            again = LEFT_LOOK_MS;
        if (poll(fds, 2, again) < 0 && errno != EINTR)
            return;
        got = fds[0].fd >= 0 && fds[0].revents ? read(0, &byte, 1) : 1;
        if (got == 0 || (got < 0 && errno != EINTR))
            fds[0].fd = -1;
        if (fds[0].fd < 0 && !is_program_recorded(session, looks++))
            return;
    }
}

static int collect_main(int count, char **operands)
{
    struct session session = SESSION_CLOSED;
    struct collector_result said = {0};
    struct launch l = {.link = -1};
    int status = 2;

    if (!given.trace || given.pid <= 0) {
        say_error("collect: needs -o FILE and --pid PID; dyntrace.record() starts it");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* the collector may be dead when we write to its pipe */
    if (recording_begin(&session, NULL))
        goto done;
    status = 1;
    if (launch_collector(&l, &session, "[\"dyntrace.record\"]"))
        goto done;
    launch_send_order(&l,
                      &(struct collector_order){.what = ORDER_BEGAN, .pid = (int32_t)given.pid});
    /* a NUL ends each path, because a path may have all other bytes */
    printf("%s%c%s%c", session.directory, 0, session.destination, 0);
    fflush(stdout);
    wait_for_program(&l, &session);
    launch_send_order(&l, &(struct collector_order){.what = ORDER_DONE, .pid = (int32_t)given.pid});
    if (!recording_finish(&l, NULL, &said))
        goto done;
    if (said.error[0]) {
        say_error("%s", said.error);
    } else {
        printf("%cdone", 0);
        status = 0;
    }
done:
    launch_close(&l);
    session_remove(&session);
    session_close(&session);
    return status;
}

const struct command command_collect = {
    .name = "collect",
    .summary = "the other half of dyntrace.record()",
    .operands = "",
    .about =
        "Collects what process PID records of itself, until standard input ends and PID records "
        "no more. dyntrace.record() starts it.",
    .options = collect_options,
    .too_many = "not understood",
    .internal = true,
    .run = collect_main,
};

/* collector/trigger.c -- takes snapshots when a condition is met. See collector/trigger.h. */
#include "collector/trigger.h"

#include <fnmatch.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "lib/option.h"

#define PAUSE_NS UINT64_C(10000000000) /* least time between the starts of two snapshots */

enum {
    MOST = 10, /* the most snapshots of one recording that conditions trigger */
    NAME_BYTES = 1024,
};

static struct {
    unsigned taken;
    pid_t pid; /* pid of the child that is taking a snapshot; 0 if there is none */
    uint64_t began_ns;
    char name[PATH_MAX + 32];
    LIST(char) said; /* a line for each snapshot, for row `snapshots` of meta */
} snapshots;

/* Read TEXT, such as "f>10ms", into CONDITION. Returns false if it is another kind of condition. */
static bool parse_snapshot_condition(const char *text, struct trigger_condition *condition)
{
    const char *limit = strrchr(text, '>');
    const struct option option = {.to = &condition->limit_ns};

    if (!limit || option_duration(&option, limit + 1))
        return false;
    condition->pattern = strndup(text, (size_t)(limit - text));
    return condition->pattern;
}

void trigger_begin(struct collector *c)
{
    const struct session_file *file = c->session->file;
    const char *text = session_find_triggers(file);
    const char *end = (const char *)file + file->bytes;

    for (uint32_t i = 0; i < file->triggers && text < end; i++, text += strlen(text) + 1) {
        struct trigger_condition condition = {0};
        struct trigger_condition *added;
        bool is_exception = !strcmp(text, "exception");
        if (is_exception)
            c->trigger.on_exception = true;
        if (!parse_snapshot_condition(text, &condition))
            continue;
        added = list_add(&c->trigger.conditions);
        if (added)
            *added = condition;
    }
    c->decode.limits_on = c->trigger.conditions.count || c->trigger.on_exception;
}

/* Start a child process that takes a snapshot. */
static void start_snapshot_process(struct collector *c)
{
    const char *trace = c->session->trace;
    size_t stem = strlen(trace);

    stem -= stem > 3 && !strcmp(trace + stem - 3, ".db") ? 3 : 0;
    snapshots.taken++;
    snprintf(snapshots.name, sizeof snapshots.name, "%.*s-snapshot-%u.db", (int)stem, trace,
             snapshots.taken);
    snapshots.began_ns = clock_monotonic_ns();
    snapshots.pid = fork();
    if (snapshots.pid == 0) {
        /* print no errors to the user's terminal; the snapshots are reported at the end */
        dup2(1, 2);
        execl("/proc/self/exe", "dyntrace", "snapshot", trace, "-o", snapshots.name, NULL);
        _exit(127);
    }
}

/* The process that took a snapshot has ended with STATUS: note whether it succeeded. */
static void note_snapshot_end(struct collector *c, int status)
{
    const bool is_taken = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    char line[sizeof snapshots.name + NAME_BYTES];
    size_t bytes;
    char *end;

    snapshots.pid = 0;
    if (is_taken)
        snprintf(line, sizeof line, "%s: %s\n", snapshots.name, c->trigger.why);
    else
        snprintf(line, sizeof line, "%s: not taken: %s\n", snapshots.name, c->trigger.why);
    bytes = strlen(line);
    end = list_add_many(&snapshots.said, bytes);
    if (end)
        memcpy(end, line, bytes);
}

void trigger_serve_requests(struct collector *c)
{
    bool is_busy = trigger_is_busy(c);
    bool is_early;

    if (!c->decode.tripped)
        return;
    c->decode.tripped = false;
    is_early = snapshots.taken && clock_monotonic_ns() - snapshots.began_ns < PAUSE_NS;
    if (is_busy || is_early)
        return;
    if (snapshots.taken == MOST)
        return;
    snprintf(c->trigger.why, sizeof c->trigger.why, "%s", c->decode.why_tripped);
    start_snapshot_process(c);
}

bool trigger_is_busy(struct collector *c)
{
    int status = 0;

    if (snapshots.pid > 0 && waitpid(snapshots.pid, &status, WNOHANG) == snapshots.pid)
        note_snapshot_end(c, status);
    return snapshots.pid > 0;
}

void trigger_end(struct collector *c)
{
    int status = 0;

    if (snapshots.pid > 0) {
        kill(snapshots.pid, SIGTERM);
        waitpid(snapshots.pid, &status, 0);
        note_snapshot_end(c, status);
    }
    if (snapshots.said.count && list_add(&snapshots.said))
        recorder_set_meta(c->recorder, "snapshots", snapshots.said.at, 0);
}

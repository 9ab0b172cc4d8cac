/* cmd/snapshot.c -- `dyntrace snapshot`: writes what a recording has so far as a trace. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cmd/recordings.h"
#include "collector/trace_files.h"
#include "command.h"
#include "lib/bounds.h"
#include "lib/out_file.h"

/* Is TEXT a number? Then it is a process id, not the path of a trace. */
static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static bool is_pid_in_recording(const struct recording *recording, uint32_t pid)
{
    list_each(own, &recording->pids)
        if (*own == pid)
            return true;
    return recording->pid == pid;
}

static struct recording *find_recording_of_pid(recording_list *list, uint32_t pid)
{
    list_each(recording, list)
        if (is_pid_in_recording(recording, pid))
            return recording;
    return NULL;
}

static struct recording *find_recording_of_trace(recording_list *list, const char *path)
{
    char *full = realpath(path, NULL);
    struct recording *found = NULL;

    list_each(recording, list)
        if (full && !strcmp(recording->session.trace, full))
            found = recording;
    free(full);
    return found;
}

/* Report why process PID has no recording. */
static void report_pid_not_recorded(uint32_t pid)
{
    if (kill((pid_t)pid, 0) && errno == ESRCH)
        say_error("process %u: there is no such process", pid);
    else if (errno == EPERM)
        say_error("process %u: it belongs to another user, who alone can take a snapshot", pid);
    else
        say_error("process %u: it is not being recorded; `dyntrace ls` lists what is", pid);
}

/* Report why trace PATH has no recording. */
static void report_trace_not_recorded(const char *path)
{
    char frames[PATH_MAX + 8];

    snprintf(frames, sizeof frames, "%s-frames", path);
    if (access(path, F_OK))
        say_error("%s: %s", path, strerror(errno));
    else if (!access(frames, F_OK))
        say_error("%s: its recorder was killed; `dyntrace fsck --recover %s` finishes it", path,
                  path);
    else
        say_error("%s: it is not being recorded; a whole trace can be copied", path);
}

static struct recording *find_recording(recording_list *list, const char *what)
{
    const bool is_pid = is_number(what);
    const uint32_t pid = is_pid ? (uint32_t)strtoul(what, NULL, 10) : 0;
    struct recording *found =
        is_pid ? find_recording_of_pid(list, pid) : find_recording_of_trace(list, what);

    if (!found && is_pid)
        report_pid_not_recorded(pid);
    else if (!found)
        report_trace_not_recorded(what);
    return found;
}

/* Write a snapshot of RECORDING to the file of -o. Returns the exit status. */
static int write_snapshot(const struct recording *recording)
{
    struct recorder_end end = {0};
    struct out_file out;
    bool done;

    if (out_is_same_file(out_given.path, recording->session.trace)) {
        say_error("snapshot: %s is the trace that is being recorded; -o needs another name",
                  out_given.path);
        return 2;
    }
    if (!out_open(&out, out_given.path, out_given.force))
        return 2;
    bounds_allow_memory_failure(false);
    done = recorder_snapshot(&recording->session, out.temporary, &end);
    if (!done)
        say_error("%s: no snapshot was taken: %s", recording->session.trace, end.error);
    done = done && out_commit(&out);
    out_close(&out);
    return done ? 0 : 2;
}

static int snapshot_main(int count, char **operands)
{
    recording_list list = {0};
    struct recording *recording;
    int status = 2;

    if (!count) {
        say_error("snapshot: needs a process or a trace; `dyntrace ls` lists what is recorded");
        return 2;
    }
    if (!out_is_named(out_given.path)) {
        say_error("snapshot: needs -o FILE, a file to write");
        return 2;
    }
    recordings_find(&list);
    recording = find_recording(&list, operands[0]);
    if (recording)
        status = write_snapshot(recording);
    recordings_free(&list);
    return status;
}

const struct command command_snapshot = {
    .name = "snapshot",
    .summary = "write the trace of a program that is being recorded, as it is now",
    .operands = "PID | TRACE",
    .about =
        "Writes what a recording has so far, with `run --keep` its window, as a whole trace, while "
        "the "
        "program runs on. The recording and the program are not stopped. Frames that are open at "
        "that moment have no end. The file appears when it is whole.",
    .options = out_options,
    .operands_most = 1,
    .too_many = "one recording at a time",
    .run = snapshot_main,
};

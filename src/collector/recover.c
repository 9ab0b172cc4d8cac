/* collector/recover.c -- recordings whose collector was killed. See collector/launch.h.
 *
 * Runs in: the command line (`fsck --recover`, and `run` before it starts).
 *
 * A session directory whose lock nobody holds belongs to a dead collector. If the
 * `run` or `collect` that started it lives, that puts another in its place, and
 * we keep away. Otherwise we start one (launch_orphan): it goes on recording as
 * long as the command lives, or finishes the trace at once if nothing does. */
#include "collector/launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/process.h"
#include "collector/state.h"
#include "collector/trace_files.h"
#include "lib/say.h"

enum {
    RECORDED_MAX = 1 << 20, /* processes in one file that we believe */
    LOCK_LOOKS = 50, LOCK_LOOK_MS = 20,
};

struct recovery {
    const char *trace; /* only this one; NULL: all */
    bool quiet;        /* in the way of another command: speak to a person only */
    int found, failed;
};

static bool lives(uint32_t pid, uint64_t started)
{
    int watch = process_watch(pid, started);
    bool living = process_lives(watch);

    if (watch >= 0)
        close(watch);
    return living;
}

/* A process that records into the file NAME, 0: none lives. */
static uint32_t recorded_in(const struct session *session, enum session_place place, const char *name)
{
    const char *end = strrchr(name, '.');
    int fd = end && !strcmp(end, ".ring") ? session_file(session, place, name, O_RDONLY) : -1;
    struct process_file header;
    uint64_t at = 0;
    uint32_t found = 0;

    for (int count = 0; fd >= 0 && !found && count < RECORDED_MAX && pread(fd, &header, sizeof header, (off_t)at) == sizeof header; count++) {
        if (!header.finished && !header.left && lives(header.pid, header.start_time))
            found = header.pid;
        at = at ? header.next_nested : header.nested;
        if (!at)
            break;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* A process that records into one of the session's files, 0: none lives. */
static uint32_t recorded_process(const struct session *session)
{
    uint32_t found = 0;

    for (int place = 0; place < SESSION_PLACES && session->place[place] >= 0; place++) {
        struct dirent **entries = NULL;
        int count = scandirat(session->place[place], ".", &entries, NULL, NULL);
        for (int i = 0; i < count; free(entries[i++]))
            found = found ? found : recorded_in(session, (enum session_place)place, entries[i]->d_name);
        free(entries);
    }
    return found;
}

/* What the killed collector knew of its session; zeroes if that is not whole. */
static void state_read(const struct session *session, struct state_header *state)
{
    int fd = session_file(session, SESSION_MAIN, "state", O_RDONLY);

    if (fd < 0 || pread(fd, state, sizeof *state, 0) != sizeof *state)
        *state = (struct state_header){0};
    if (fd >= 0)
        close(fd);
}

/* Start a collector for what was left of SESSION, and wait for it unless PROCESS lives on. */
static void recover(struct recovery *r, struct session *session, uint32_t process, struct collector_result *result)
{
    struct launch l;
    char word = 0;

    if (launch_orphan(&l, session) || read(l.result, &word, 1) != 1) {
        say_error("%s: cannot be recovered: no collector could be started, or it was killed as well", session->trace);
        r->failed++;
    } else if (word == 'R' && process) {
        if (!r->quiet || isatty(2))
            say_error("%s: process %u is still being recorded, by a new collector; the trace is finished when it ends",
                      session->trace, process);
    } else if (!launch_wait(&l, NULL, result) || result->error[0]) {
        say_error("%s", result->error[0] ? result->error : "the collector was killed while it finished the trace; try again");
        r->failed++;
    } else {
        if (!r->quiet || isatty(2))
            say_error("%s: recovered an interrupted recording: %llu frames of %u process%s", session->trace,
                      (unsigned long long)result->frames, result->processes, result->processes == 1 ? "" : "es");
        session_remove(session);
    }
    launch_close(&l);
}

static void visit(const char *directory, void *context)
{
    struct recovery *r = context;
    struct session session;
    struct state_header state = {0};
    struct collector_result *result = calloc(1, sizeof *result);
    uint32_t process;
    bool busy;

    if (!result || session_open(&session, directory, &busy)) {
        free(result);
        return;
    }
    if (r->trace && strcmp(r->trace, session.trace))
        goto done;
    state_read(&session, &state);
    process = lives(state.command, state.command_started) ? state.command : recorded_process(&session);
    if (lives(state.parent, state.parent_started)) {
        r->found++; /* it is just about to replace its collector, or to clear up */
        if (!r->quiet)
            say_error("%s: is still being recorded by process %u", session.trace, state.parent);
    } else if (recorder_is_of(session.trace, session.frames, session.directory) &&
               !faccessat(session.place[SESSION_MAIN], "state", F_OK, 0)) {
        r->found++;
        recover(r, &session, process, result);
    } else if (!process) {
        /* The trace was deleted or replaced, the collector died before it recorded anything, or the session's file was
         * written over: nothing that is not this recording's is touched. */
        session_remove(&session);
    }
done:
    session_close(&session);
    free(result);
}

/* Is there a session to carry on in DIRECTORY (NULL: no), now or once somebody lets go of its lock? */
static bool is_there(const char *directory)
{
    struct session session;
    bool busy = false, there = directory && session_open(&session, directory, &busy) == 0;

    if (there)
        session_close(&session);
    return there || busy;
}

/* TRACE says that it is being recorded, by this machine, and there is no session to carry on. */
static void recover_without_session(struct recovery *r, const char *trace)
{
    struct collector_result *result = calloc(1, sizeof *result);
    struct session session = SESSION_CLOSED;
    char frames[PATH_MAX + 8], *directory = recorder_session(trace);
    int window = -1;

    snprintf(frames, sizeof frames, "%s-frames", trace);
    if (!result || is_there(directory) || !directory || session_live(directory) == LIVE_YES ||
        !recorder_is_of(trace, frames, directory))
        goto done;
    r->found++;
    if (session_open_damaged(&session, directory) == 0)
        window = session_file(&session, SESSION_MAIN, "window", O_RDONLY);
    if (recorder_salvage(trace, frames, window, &result->frames, &result->processes, result->error, sizeof result->error)) {
        say_error("%s", result->error);
        r->failed++;
    } else {
        say_error("%s: recovered what was written of an interrupted recording: %llu frames; its session is gone, or damaged", trace,
                  (unsigned long long)result->frames);
        session_remove(&session);
    }
    if (window >= 0)
        close(window);
    session_close(&session);
done:
    free(directory);
    free(result);
}

int recover_trace(const char *path)
{
    struct recovery r = {0};
    char *full = path ? realpath(path, NULL) : NULL;

    r.trace = full ? full : path;
    session_each(visit, &r);
    /* A collector that was just killed holds its lock until it is gone; one that finishes a trace removes the session. */
    for (int i = 0; i < LOCK_LOOKS && !r.found && r.trace; i++) {
        char *directory = recorder_session(r.trace);
        bool there = is_there(directory);
        free(directory);
        if (!there)
            break;
        usleep(LOCK_LOOK_MS * 1000);
        session_each(visit, &r);
    }
    if (!r.found && r.trace)
        recover_without_session(&r, r.trace);
    if (!r.found)
        say_error("%s%sno interrupted recording was found; nothing to recover", path ? path : "", path ? ": " : "");
    free(full);
    return r.failed ? 1 : 0;
}

void recover_all_quietly(void)
{
    struct recovery r = {.quiet = true};

    session_each(visit, &r);
}

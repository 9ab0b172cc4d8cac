/* collector/recover.c -- finishes recordings whose collector was killed. See collector/launch.h.
 *
 * Runs in: the command line (`fsck --recover`, and `run` before it starts).
 *
 * A session directory whose lock nobody holds belongs to a dead collector. If the `run` or
 * `collect` that started the collector lives, that command replaces it, and we do nothing.
 * Otherwise we start a collector (launch_collector_without_parent). It goes on recording as long as
 * the command lives, or finishes the trace at once if no process lives. */
#include "collector/launch.h"

#include "collector/process.h"
#include "collector/state.h"
#include "collector/trace_files.h"

enum { LOCK_LOOKS = 50, LOCK_LOOK_MS = 20 };

struct recovery {
    const char *trace; /* the trace to recover; NULL: all interrupted recordings */
    /* called by `run`: say nothing if there is nothing to do, and print only to a terminal */
    bool quiet;
    int found, failed;
};

struct search {
    const struct session *session;
    /* pid of a living process that still records into the session; 0 if there is none */
    uint32_t found;
};

/* Is the process alive that wrote HEADER, the header in process file NAME of directory PLACE? */
static bool is_process_recording(const struct session *session, const char *name,
                                 enum session_place place, const struct process_file *header)
{
    struct process_claim claim = {header->pid, header->start_time, header->pid_namespace, name, 0};
    struct process_found found = {.watch = -1};
    char file[SESSION_NAME];
    bool lives = false;
    struct stat status;
    int fd;

    if (header->seen_pid)
        return process_is_same(header->seen_pid, header->seen_start_time);
    snprintf(file, sizeof file, "%.*s", (int)strcspn(name, "@"), name);
    fd = session_open_file(session->place[place], file, O_RDWR);
    if (fd >= 0 && fstat(fd, &status) == 0) {
        claim.file = file;
        claim.inode = status.st_ino;
        switch (process_find(&claim, &found)) {
        case PROCESS_SEEN:
            lives = process_is_alive(found.watch);
            break;
        case PROCESS_HIDDEN:
            lives = process_file_is_used(fd);
            break;
        case PROCESS_ENDED:
            break;
        }
    }
    if (found.watch >= 0)
        close(found.watch);
    if (fd >= 0)
        close(fd);
    return lives;
}

static void note_process_if_recording(void *context, const char *name, enum session_place place,
                                      const struct process_file *header)
{
    struct search *search = context;

    if (search->found || !header)
        return;
    if (header->finished || header->left)
        return;
    if (is_process_recording(search->session, name, place, header))
        search->found = header->seen_pid ? header->seen_pid : header->pid;
}

/* Start a collector for the interrupted SESSION. PROCESS is a process that is still being recorded,
 * or 0: then wait until the trace is finished. */
static void recover_session(struct recovery *r, struct session *session, uint32_t process)
{
    struct collector_result result = {0};
    struct launch l;

    if (launch_collector_without_parent(&l, session, &result)) {
        if (result.error[0])
            say_error("an interrupted recording cannot be carried on: %s", result.error);
        else
            say_error(
                "%s: cannot be recovered: no collector could be started, or it was killed as well",
                session->trace);
        r->failed++;
    } else if (process) {
        if (!r->quiet || isatty(2))
            say_error("%s: process %u is still being recorded, by a new collector; the trace is "
                      "finished when it ends",
                      session->trace, process);
    } else if (!launch_wait_for_result(&l, NULL, &result) || result.error[0]) {
        say_error("%s", result.error[0]
                            ? result.error
                            : "the collector was killed while it finished the trace; try again");
        r->failed++;
    } else {
        if (!r->quiet || isatty(2))
            say_error("%s: recovered an interrupted recording: %llu frames of %u process%s",
                      session->trace, (unsigned long long)result.frames, result.processes,
                      result.processes == 1 ? "" : "es");
        session_remove(session);
    }
    launch_close(&l);
}

static void recover_session_in_directory(const char *directory, void *context)
{
    struct recovery *r = context;
    struct session session;
    struct state_header left;
    struct search search = {.session = &session};
    uint32_t process;
    bool busy;

    if (session_open(&session, directory, &busy)) {
        if (!busy)
            session_remove_stale(directory);
        return;
    }
    if (r->trace && strcmp(r->trace, session.trace)) {
        session_close(&session);
        return;
    }
    left = collector_state_read_header(&session);
    if (process_is_same(left.command, left.command_started))
        search.found = left.command;
    else
        session_visit_processes(&session, note_process_if_recording, &search);
    process = search.found;
    if (process_is_same(left.parent, left.parent_started)) {
        /* found, but process `parent` will replace the collector itself, or remove the session */
        r->found++;
        if (!r->quiet)
            say_error("%s: is still being recorded by process %u", session.trace, left.parent);
    } else if (recorder_are_files_of_session(session.trace, session.frames, session.directory)) {
        r->found++;
        recover_session(r, &session, process);
    } else if (!process) {
        /* Remove the session's directory and nothing else: the trace was deleted or replaced, or
         * the session's file was overwritten, so the file at the trace's path is not of this
         * recording. */
        session_remove(&session);
    }
    session_close(&session);
}

/* Does DIRECTORY hold a session that can be opened, now or when another process has released its
 * lock? DIRECTORY may be NULL. */
static bool holds_usable_session(const char *directory)
{
    struct session session;
    bool busy = false;
    bool there = directory && session_open(&session, directory, &busy) == 0;

    if (there)
        session_close(&session);
    return there || busy;
}

/* Recover TRACE, which was recorded on this machine, but whose session cannot be opened. Finish the
 * trace with the files that are left of the session, or with a new session. */
static void recover_without_session(struct recovery *r, const char *trace)
{
    struct session session = SESSION_CLOSED;
    char frames[PATH_MAX + 8];
    char *directory = recorder_read_session_path(trace);

    snprintf(frames, sizeof frames, "%s-frames", trace);
    if (directory && !holds_usable_session(directory) &&
        session_has_running_collector(directory) != LIVE_YES &&
        recorder_are_files_of_session(trace, frames, directory)) {
        r->found++;
        if (session_open(&session, directory, NULL) == 0) {
            snprintf(session.trace, sizeof session.trace, "%s", trace);
            snprintf(session.frames, sizeof session.frames, "%s", frames);
            recover_session(r, &session, 0);
        } else if (session_create(&session, trace, &(struct session_options){0}) == 0) {
            recover_session(r, &session, 0);
        } else {
            r->failed++;
        }
        session_close(&session);
    }
    free(directory);
}

enum recovered recover_trace(const char *path)
{
    struct recovery r = {0};
    char *full = path ? realpath(path, NULL) : NULL;

    r.trace = full ? full : path;
    session_visit_all(recover_session_in_directory, &r);
    /* Look again for a while: a killed collector holds its lock until its exit is complete, and a
     * collector that is just finishing a trace will remove the session. */
    for (int i = 0; i < LOCK_LOOKS && !r.found && r.trace; i++) {
        char *directory = recorder_read_session_path(r.trace);
        bool there = holds_usable_session(directory);
        free(directory);
        if (!there)
            break;
        usleep(LOCK_LOOK_MS * 1000);
        session_visit_all(recover_session_in_directory, &r);
    }
    if (!r.found && r.trace)
        recover_without_session(&r, r.trace);
    if (!r.found)
        say_error("%s%sno interrupted recording was found; nothing to recover", path ? path : "",
                  path ? ": " : "");
    free(full);
    if (r.failed)
        return RECOVER_FAILED;
    return r.found ? RECOVER_DONE : RECOVER_NOTHING;
}

void recover_all_quietly(void)
{
    struct recovery r = {.quiet = true};

    session_visit_all(recover_session_in_directory, &r);
}

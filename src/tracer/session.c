/* tracer/session.c -- joining a session, leaving it, and fork().
 *
 * Runs in: the traced process; everything here is a slow path.
 *
 * fork()'s handler makes a file for the child, or a nested one (ring.h), and drops the parent's
 * rings. The child's first event attaches a ring and writes an ENTER for each frame that was open
 * (tracer/ring.c).
 *
 * Without a GIL: a session is joined and left inside tracer_gate, and begins and ends for the other
 * threads while the world is stopped. tracer_lock() is held during a fork. */
#include "inject.h"
#include "namespaces.h"
#include "session_check.h"
#include "tracer/file.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#define P tracer_process

/* ---- what is done before and after a fork() ---- */

static uint64_t fork_clock; /* the session's clock at the last fork() */
/* our functions before and after fork() are registered with pthread_atfork() */
static bool watched;

/* Measure how far this process's CLOCK_MONOTONIC is ahead of the recorder's, because the process
 * may be in another time namespace. */
static void measure_clock_of_namespace(void)
{
    static int64_t own_ahead;

    if (P.clock != SESSION_MONOTONIC)
        return;
    own_ahead = namespace_read_clock_offset(own_ahead);
    P.clock_ahead_ns = own_ahead - P.session->clock_ahead_ns;
}

/* Called before a fork(). The child starts with a copy of the memory, so everything that the lock
 * guards must be consistent now. The lock stays held during the fork only if interpreters have
 * their own GILs, or if there is no GIL. Otherwise holding it would deadlock with fork handlers
 * that run Python code and release the GIL. */
static void prepare_fork(void)
{
    /* without a GIL os.fork() has stopped the world, so no Python code may run: not
     * slot_check_hook() */
    if (COMPAT_FREE_THREADED)
        slot_compare_with_hook();
    else
        slot_check_hook(true);
    tracer_lock();
    fork_clock = tracer_read_session_clock();
    fork_note_begin();
    if (P.root)
        atomic_fetch_add(&P.root->forking, 1);
    if (tracer_thread)
        tracer_thread->limit = 0;
    if (!P.interpreters)
        tracer_unlock();
}

/* Called after a fork() in the parent. */
static void finish_fork(void)
{
    fork_note_end_in_parent();
    if (P.interpreters)
        tracer_unlock();
}

/* Called in the child of a fork(), where this is the only thread and little is safe to call. The
 * first caller does the work. The parent's rings and facts are unmapped, so that nothing can write
 * to them. Its header is unmapped when the child has a file of its own. */
void session_handle_fork_in_child(void)
{
    int saved_errno = errno;
    struct tracer *t = tracer_thread;
    char parent[sizeof P.file_name];

    tracer_remove_hook_in_forked_child();
    rings_drop_after_fork(t);
    if (!P.session)
        return;
    memcpy(parent, P.file_name, sizeof parent);
    if (!P.file)
        parent[0] = 0;
    file_unmap_parent_file();
    measure_clock_of_namespace();
    file_open(parent, *parent ? fork_clock : tracer_read_session_clock());
    if (t)
        t->gone = !P.file;
    slot_report_after_fork();
    errno = saved_errno;
}

/* ---- join a session, and leave it ---- */

enum {
    /* how long to wait for the collector's answer: it looks every few milliseconds */
    ANSWER_MS = 50
};

/* Report to the collector of the session in DIRECTORY, if it still listens, that this process
 * cannot join. */
static void report_unable_to_join(const char *directory)
{
    struct sockaddr_un to;
    struct sockaddr_un from = {.sun_family = AF_UNIX};
    socklen_t length = absent_set_address(&to, directory);
    int fd = session_check_name(directory)
                 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                 : -1;
    struct pollfd answer = {fd, POLLIN, 0};

    if (fd < 0)
        return;
    /* Bind to a name that the kernel chooses, to which the collector can answer. After the
     * session's end nobody answers. */
    if (bind(fd, (struct sockaddr *)&from, sizeof from.sun_family) == 0 &&
        sendto(fd, "", 1, MSG_NOSIGNAL, (struct sockaddr *)&to, length) == 1)
        poll(&answer, 1, ANSWER_MS);
    close(fd);
}

/* Map the session's file in DIRECTORY. Returns MAP_FAILED with errno on failure. */
static struct session_file *map_session_file(const char *directory)
{
    int fd = session_open_in(directory, "session", O_RDONLY);
    struct session_file *session = MAP_FAILED;
    struct stat status;

    if (fd < 0)
        return MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof *session &&
        status.st_size <= 1 << 20)
        session = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (session != MAP_FAILED &&
        (memcmp(session->magic, RING_SESSION_MAGIC, sizeof session->magic) ||
         session->format != RING_FORMAT || session->bytes != status.st_size ||
         ((char *)session)[status.st_size - 1] != 0 || session->ring_bytes < RING_SMALLEST ||
         (session->ring_bytes & (session->ring_bytes - 1)))) {
        /* EPROTO if another version of dyntrace has made the session */
        errno = session->format != RING_FORMAT ? EPROTO : ENOENT;
        munmap(session, (size_t)status.st_size);
        session = MAP_FAILED;
    }
    return session;
}

/* Return a hash of those options of SESSION that select code: --include, --exclude and --frames
 * user. */
static uint64_t hash_selection_options(const struct session_file *session)
{
    const char *glob = session->text;
    uint64_t hash = session->frames == SESSION_USER;

    glob += strlen(glob) + 1; /* the first string is the spill directory */
    glob += strlen(glob) + 1; /* the second string is the path of the trace */
    for (uint32_t n = 0; n < session->globs; n++) {
        size_t bytes = strlen(glob) + 1;
        for (size_t i = 0; i < bytes; i++)
            hash = (hash ^ (uint8_t)glob[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
        glob += bytes;
    }
    return hash;
}

/* Write a loss row if this session selects other code than the process's first session. A code
 * object gets its mark when it is first called, and keeps it in later sessions. */
static void report_changed_selection(void)
{
    const uint64_t selection = hash_selection_options(P.session);

    if (P.sessions == 1)
        P.selection = selection;
    if (selection != P.selection)
        tracer_write_loss("selection: an earlier recording of this process had other --include, "
                          "--exclude or --frames: functions that were called then are recorded, or "
                          "left out, as they were then");
}

/* Join SESSION in directory DIRECTORY: set the members of tracer_process, and make the process
 * file. Returns NULL, or the reason why this failed. */
static const char *join_mapped_session(struct session_file *session, const char *directory)
{
    const char *spill;

    strcpy(P.session_directory, directory);
    /* use the spill directory only if it has the same name as the session's directory */
    spill = session->text;
    P.spill_directory[0] = 0;
    if (strlen(spill) < sizeof P.spill_directory && !strcmp(basename(spill), basename(directory)))
        strcpy(P.spill_directory, spill);
    P.session = session;
    P.sessions++;
    P.spans_inherited = 0;
    P.clock = session->coarse                 ? SESSION_COARSE
              : session->clock != SESSION_TSC ? SESSION_MONOTONIC
                                              : SESSION_TSC;
    P.now = session->coarse ? &session->now : NULL;
    measure_clock_of_namespace();
    P.decided_only = session->frames == SESSION_DECIDED;
    P.max_depth = session->max_depth;
    P.rechecks = P.sessions > 1 && (session->arguments || P.had_arguments);
    P.had_arguments |= session->arguments > 0;
    if (P.rechecks && !P.max_depth)
        P.max_depth = UINT32_MAX;
    if (!watched && pthread_atfork(prepare_fork, finish_fork, fork_note_child)) {
        P.session = NULL;
        return "memory";
    }
    watched = true;
    file_open("", tracer_read_session_clock());
    if (!P.file) {
        P.session = NULL;
        return "room";
    }
    return NULL;
}

static const char *map_and_join_session(const char *directory)
{
    struct session_file *session = MAP_FAILED;
    const char *why;

    errno = ENOENT;
    if (strlen(directory) < sizeof P.session_directory)
        session = map_session_file(directory);
    if (session == MAP_FAILED)
        return errno == ENOENT   ? "gone"
               : errno == EACCES ? "denied"
               : errno == EPROTO ? "another"
                                 : "memory";
    if (atomic_load(&session->closed)) {
        munmap(session, session->bytes);
        return "over";
    }
    world_stop(P.interpreter);
    why = join_mapped_session(session, directory);
    world_start(P.interpreter);
    if (why)
        return why;
    write_process_facts();
    write_kept_facts();
    report_changed_selection();
    return NULL;
}

const char *tracer_open_session(const char *directory)
{
    const char *why = map_and_join_session(directory);

    if (why && strcmp(why, "over") && strcmp(why, "room") && strcmp(why, "another"))
        report_unable_to_join(directory);
    return why;
}

/* Undo our changes of the environment, so that programs that start after the end of `dyntrace
 * attach` get the same variables as before it. */
static void restore_environment(void)
{
    const char *session = getenv(INJECT_SESSION);

    if (!P.inject_directory || !session)
        return;
    if (strcmp(session, P.session_directory))
        return;
    if (P.standby)
        inject_set_environment(P.inject_directory, INJECT_STANDBY);
    else if (P.inherits)
        inject_restore_environment(P.inject_directory);
}

/* Leave the session. No other thread is writing, because the GIL is held or the world is stopped. A
 * thread that is inside a recorded frame finds that it has no ring when the frame ends. */
static void leave_session(void)
{
    if (P.file) {
        facts_copy_for_next_session();
        atomic_store(&P.file->left, 1);
    }
    rings_leave_session();
    file_close();
    restore_environment();
    free(P.inject_directory); /* NULL, so that programs started from now on are not recorded */
    P.inject_directory = NULL;
    P.inherits = false;
    P.now = NULL;
    P.max_depth = 0;
    munmap((void *)P.session, P.session->bytes);
    P.session = NULL;
}

void tracer_close_session(void)
{
    if (!P.session)
        return;
    slot_check_last_time();
    tracer_set_recording(false);
    world_stop(P.interpreter);
    leave_session();
    world_start(P.interpreter);
}

/* collector/collector.c -- drains the rings of a session into its trace. See collector/launch.h.
 *
 *     until the command and its children have ended:
 *         new files in the session's directories -> struct traced
 *         drain every ring, then sleep about a millisecond
 *         now and then: write totals and commit, so that readers see rows
 *     finish: close every decoder, finish the pages, join the two files
 *
 * If a collector is killed, a new collector continues from the state in shared memory
 * (collector/state.h). The parent process, which waits for the collector, starts the new collector.
 * If the parent is dead, too, the next `dyntrace run` or `fsck --recover` starts it
 * (collector/recover.c). A collector without a parent is an orphan: it watches the command itself,
 * and removes the session's directories at the end.
 *
 * The sleep is long enough that the collector does not fight the producer for the cache line of
 * `head`. It is short compared with the time in which a program at full speed fills a ring. */
#include "collector/launch.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "collector/keep.h"
#include "collector/metrics.h"
#include "collector/process.h"
#include "collector/trace_files.h"
#include "collector/trigger.h"
#include "collector/watch.h"
#include "command.h"
#include "job.h"
#include "versions.h"
#include "vocabulary.h"

#define MS UINT64_C(1000000)
#define CALIBRATE_NS (10 * MS) /* how long the rate of the CPU's counter is measured at least */
#define COMMIT_NS (250 * MS)   /* time between commits of the tables that SQLite writes */
/* Time between writes of the frame counts (collector/counts.h). The counts are thousands of rows
 * while torch compiles. A kill loses no count: the next collector finds the counts in their
 * file. */
#define COUNTS_NS (1000 * MS)
/* if we still wait after this time from the command's end, we print why */
#define SAY_NS (500 * MS)
#define DETACHED_NS (1000 * MS) /* how long a daemon is recorded after the command's end */
/* after the command's end we stop waiting for a child that has written nothing for this long */
#define IDLE_NS (5000 * MS)

/* STILL_NS: if the coarse clock was not set for longer than this, a loss is recorded */
enum { TICK_NS = 100000, STILL_NS = 20000000 };
enum {
    POLL_MS = 1,
    IDLE_POLL_MS = 4,
    IDLE_ROUNDS = 64,
    STATUS_TRIES = 10,
    SNAPSHOT_END_MS = 1000, /* how long the end of a recording waits for a snapshot */
    SNAPSHOT_WAITS = 200,   /* 40 ms in all */
    SNAPSHOT_WAIT_US = 200,
    COMMAND_ID = 1 /* process_id of the command */
};
enum {
    SHOW_ROOM =
        64 << 20 /* copy_lookups_to_live_trace() copies nothing if the disk has fewer free bytes */
};

/* The CPU's counter and CLOCK_MONOTONIC, read at one moment. */
struct clocks {
    uint64_t ticks, ns;
};

struct run {
    struct collector c;
    struct clocks then; /* the clocks when the calibration began */
    struct watch watch;
    int orders;
    pid_t parent;
    int64_t cpu_before_ns; /* processor time that killed collectors of this recording used */
    uint64_t last_commit;  /* time of the last commit (CLOCK_MONOTONIC) */
    uint64_t last_counts;  /* time of the last write of the frame counts (CLOCK_MONOTONIC) */
    /* without a parent: descriptor to poll for the command's end (process_open_pidfd); else -1 */
    int command_watch;
    bool orphan; /* the `run` or `collect` that started us is dead */
    bool ended, stop, said;
    /* the parent sent ORDER_DONE: the program has stopped its own recording, so a process that
     * still runs is no loss */
    bool done;
    int status;
    uint64_t ended_ns; /* when the command ended (CLOCK_MONOTONIC) */
    /* for --clock coarse: the thread that sets the clock */
    pthread_t ticker;
    _Atomic bool ticking;
    /* how often the coarse clock was set, the total of the times between, and the longest of
     * them */
    uint64_t ticks, ticked_ns, still_ns;
};

/* ---- set the clock that programs read with --clock coarse ---- */

static void *update_coarse_clock(void *of)
{
    struct run *run = of;
    struct session_file *file = run->c.session->file;
    uint64_t began = clock_monotonic_ns();
    uint64_t before = began;
    uint64_t now = began;

    prctl(PR_SET_TIMERSLACK, 1);
    while (run->ticking) {
        nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
        atomic_store_explicit(&file->now, session_now(file), memory_order_relaxed);
        now = clock_monotonic_ns();
        run->ticks++;
        run->still_ns = MAX(run->still_ns, now - before);
        before = now;
    }
    run->ticked_ns = now - began;
    return NULL;
}

/* With --clock coarse start the thread that sets the clock. Returns false if the thread cannot be
 * made. */
static bool start_coarse_clock_thread(struct run *run)
{
    const struct session_file *file = run->c.session->file;
    sigset_t all, old;

    if (!file->coarse)
        return true;
    /* between two collectors nobody set the clock */
    run->still_ns =
        decode_clock_to_ns(&run->c.decode, file->start_clock + (session_now(file) - file->now));
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    run->ticking = true; /* set before the thread starts, which ends when `ticking` is false */
    run->ticking = pthread_create(&run->ticker, NULL, update_coarse_clock, run) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return run->ticking;
}

static void stop_coarse_clock_thread(struct run *run)
{
    if (!run->ticking)
        return;
    run->ticking = false;
    pthread_join(run->ticker, NULL);
    recorder_set_meta(run->c.recorder, "clock_resolution_ns", NULL,
                      (int64_t)(run->ticked_ns / MAX(run->ticks, 1)));
    if (run->still_ns > STILL_NS)
        collector_record_loss(&run->c, 0, 0,
                              LOSS_STALL
                              "for up to %.0f ms the recorder did not set the clock (--clock "
                              "coarse): times may be wrong by as much",
                              (double)run->still_ns / 1e6);
}

/* ---- record until the command and its children have ended ---- */

static void copy_row_to_live_trace(void *context, enum lookup_table table, int64_t *values,
                                   const char *word)
{
    recorder_write_values(context, table == PAGES_LOOKUP ? PUT_LOOKUP : PUT_CHECK, values, &word);
}

static bool has_room_on_disk(const struct collector *c)
{
    struct statvfs disk;

    return fstatvfs(c->pages.fd, &disk) == 0 && disk.f_bavail * disk.f_frsize >= SHOW_ROOM;
}

/* Copy some rows of lookup and guard_check from our pages to trace.db, where readers of the running
 * recording see them. This takes at most a sixth of POLL_MS. On a nearly full disk copy nothing,
 * because the pages need the room. */
static void copy_lookups_to_live_trace(struct collector *c)
{
    if (keep_is_set(&c->keep))
        return; /* with --keep SQLite has written these rows already */
    for (int table = 0; table < LOOKUP_TABLES; table++)
        if (c->lookups.shown[table] < c->lookups.next[table] && has_room_on_disk(c))
            lookup_pages_visit_new_rows(&c->lookups, table, copy_row_to_live_trace, c->recorder);
}

static void read_orders_of_parent(struct run *run);

/* Read the CPU's counter and CLOCK_MONOTONIC at one moment. */
static struct clocks clocks_read(void)
{
    struct clocks read = {0};
    uint64_t best = UINT64_MAX;

    /* read 8 times, and use the reading that took the least time */
    for (int i = 0; i < 8; i++) {
        uint64_t before = clock_counter();
        uint64_t now = clock_monotonic_ns();
        uint64_t took = clock_counter() - before;
        if (took < best) {
            best = took;
            read = (struct clocks){.ticks = before + took / 2, .ns = now * CLOCK_TIMES};
        }
    }
    return read;
}

/* Measure how many nanoseconds a tick of the CPU's counter takes, from the collector's start until
 * now. Wait until CALIBRATE_NS have passed, so that the result is precise; no Python has started by
 * then. If the command ends earlier, use the less precise result: the trace is short. */
static void calibrate_clock(struct run *run)
{
    struct collector *c = &run->c;
    struct session_file *file = c->session->file;
    struct clocks now;
    uint64_t ticks;

    if (c->decode.ns_per_tick_32)
        return;
    if (file->clock == SESSION_MONOTONIC) {
        file->ns_per_tick_32 = c->decode.ns_per_tick_32 = UINT64_C(1) << 32;
        return;
    }
    for (now = clocks_read(); !run->ended && now.ns - run->then.ns < CALIBRATE_NS * CLOCK_TIMES;
         now = clocks_read()) {
        poll(&(struct pollfd){run->orders, POLLIN, 0}, 1, 1);
        read_orders_of_parent(run);
    }
    ticks = MAX(now.ticks - run->then.ticks, UINT64_C(1));
    file->ns_per_tick_32 = c->decode.ns_per_tick_32 =
        (uint64_t)(((unsigned __int128)(now.ns - run->then.ns) << 32) / ticks);
}

/* Set stretch_ns: if a thread begins and ends no frame for this long, decoders report a stretch
 * (traced_write_quiet_stretch). The row of a stretch refers to a frame, and frames shorter than
 * --min-duration may have no row. So stretch_ns is at least --min-duration. The clock must be
 * calibrated, because decoders compare ticks. */
static void set_stretch_length(struct decode_session *session)
{
    uint64_t ns = MAX((uint64_t)STRETCH_NS, session->min_duration_ns);

    session->stretch_ns = ns;
    session->stretch_ticks = (uint64_t)(((unsigned __int128)ns << 32) / session->ns_per_tick_32);
}

static bool has_process_left_session(const struct traced *t)
{
    return t->file && !t->broken && atomic_load(&t->file->left);
}

static void write_code_totals(struct collector *c)
{
    for (uint32_t id = 1; id < c->decode.totals.count; id++) {
        struct decode_total *total = &c->decode.totals.at[id];
        if (!total->changed)
            continue;
        recorder_put(c->recorder, TOTAL,
                     {
                         .code_id = id,
                         .calls = (int64_t)total->calls,
                         .total_ns = (int64_t)total->total_ns,
                         .self_ns = (int64_t)total->self_ns,
                         .raised = (int64_t)total->raised,
                         .max_ns = (int64_t)total->max_ns,
                         .skipped = (int64_t)total->skipped,
                         .library_ns = (int64_t)total->library_ns,
                     });
        /* the row has these totals now, so count from 0 again */
        *total = (struct decode_total){.owner = total->owner};
    }
}

/* Write the sums of counted frames that have changed since they were last written. The rowid of a
 * sum is its index + 1. */
static void write_frame_counts(struct collector *c)
{
    for (uint32_t i = 0; i < c->counts.cells; i++) {
        const struct count_cell *cell = counts_get_cell(&c->counts, i);
        const bool has_frames = cell->frames > 0;
        bool *changed = &c->counts.changed.at[i];
        if (!*changed)
            continue;
        *changed = false;
        recorder_put(c->recorder, COUNTED,
                     {
                         .rowid = i + 1,
                         .code_id = cell->code_id,
                         .phase = cell->phase,
                         .outcome = cell->outcome,
                         .frames = cell->frames,
                         .calls = cell->calls,
                         .total_ns = cell->total_ns,
                         .self_ns = cell->self_ns,
                         .raised = cell->raised,
                         .max_ns = has_frames ? cell->max_ns : ROW_NONE,
                         .first_ns = has_frames ? cell->first_ns : ROW_NONE,
                         .last_ns = has_frames ? cell->last_ns : ROW_NONE,
                         .inner_ns = cell->inner_ns,
                     });
    }
}

/* Watch the command ourselves, because the parent is gone. */
static void become_orphan(struct run *run)
{
    struct state_header *header = &run->c.state.file->header;

    if (run->orphan)
        return;
    run->orphan = true;
    if (run->orders >= 0)
        close(run->orders);
    run->orders = -1;
    run->command_watch = process_open_pidfd(header->command, header->command_started);
}

static bool is_process_of_command(const struct run *run, const struct traced *t)
{
    return t == run->c.command || (t->row.pid && t->row.pid == run->c.state.file->header.command);
}

/* Is the command alive, and does it still record? */
static bool is_command_recording(struct run *run)
{
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (is_process_of_command(run, t) && !t->row.ended && has_process_left_session(t))
            return false;
    return process_is_alive(run->command_watch);
}

/* Write the processor time of all collectors so far to the state file and to `meta`. The time that
 * a killed collector used after its last write is missing. */
static void write_cpu_time(struct run *run)
{
    int64_t cpu_ns = run->cpu_before_ns + recorder_cpu_ns();

    if (run->c.salvaged)
        return; /* the state is lost, so the time of earlier collectors is not known */
    run->c.state.file->header.cpu_ns = cpu_ns;
    recorder_set_meta(run->c.recorder, "recorder_cpu_ns", NULL, cpu_ns);
}

static void commit_if_time_has_come(struct run *run, bool now)
{
    struct collector *c = &run->c;
    uint64_t at = clock_monotonic_ns();

    if (!now && at - run->last_commit < COMMIT_NS)
        return;
    watch_retry_exit_statuses(c);
    keep_drop_old_rows(c);
    write_code_totals(c);
    if (now || at - run->last_counts >= COUNTS_NS) {
        write_frame_counts(c);
        run->last_counts = at;
    }
    recorder_set_meta(c->recorder, "span_ns", NULL, (int64_t)c->decode.last_ns);
    write_cpu_time(run);
    /* a collector that has only the two files knows no processes */
    if (recorder_commit(c->recorder) && !c->salvaged)
        watch_free_ended_processes(&run->watch);
    metrics_write(c, false);
    if (getppid() != run->parent)
        become_orphan(run);
    run->last_commit = clock_monotonic_ns();
}

/* Note that the command has ended. STATUS is from waitpid(), or -1 if the status is not known. */
static void record_command_end(struct run *run, int status)
{
    run->ended = true;
    run->status = status;
    run->ended_ns = clock_monotonic_ns();
}

/* Write the row of the command. Later the command's interpreter makes a process file, and its facts
 * fill in the same row. */
static void write_row_of_command(struct run *run)
{
    struct collector *c = &run->c;

    if (c->command)
        c->command->row.pid = c->state.file->header.command;
    recorder_put(c->recorder, PROCESS,
                 {
                     .process_id = COMMAND_ID,
                     .pid = c->state.file->header.command,
                     .own_pid = ROW_NONE,
                     .start_ns = ROW_NONE,
                 });
}

static void read_orders_of_parent(struct run *run)
{
    struct collector *c = &run->c;
    struct state_header *header = &c->state.file->header;
    struct collector_order order;
    ssize_t got = -1;
    uint32_t parent;

    while (run->orders >= 0 && (got = read(run->orders, &order, sizeof order)) == sizeof order) {
        if (order.what == ORDER_BEGAN) {
            header->command = (uint32_t)order.pid;
            process_read_parent_and_start(header->command, &parent, &header->command_started);
            write_row_of_command(run);
        } else if (order.what == ORDER_ENDED) {
            record_command_end(run, order.status);
        } else if (order.what == ORDER_SNAPSHOT) {
            snprintf(c->decode.why_tripped, sizeof c->decode.why_tripped, "signal");
            c->decode.tripped = true;
        } else {
            run->stop = true;
        }
        if (order.what == ORDER_DONE) {
            run->done = true;
            record_command_end(run, -1);
        }
    }
    if (got == 0)
        become_orphan(run);
    if (run->orphan && !run->ended && !is_command_recording(run))
        record_command_end(run, -1);
}

/* After the command's end: should we wait for process T? */
static bool should_wait_for_process(struct run *run, struct traced *t, uint64_t now)
{
    uint64_t since = now - run->ended_ns;
    const pid_t ours = run->c.state.file->header.session_id;
    pid_t session = t->row.pid ? getsid((pid_t)t->row.pid) : ours;

    if (has_process_left_session(t))
        return false;
    if (since < DETACHED_NS)
        return true;
    if (session < 0 || session != ours)
        return false; /* the process is a daemon: it has left the command's POSIX session */
    return now - (t->last_words_ns > run->ended_ns ? t->last_words_ns : run->ended_ns) < IDLE_NS;
}

/* After the command's end: should some child still be recorded? */
static bool is_child_still_recording(struct run *run)
{
    uint64_t now = clock_monotonic_ns();
    uint32_t waiting = 0;
    uint32_t pid = 0;
    /* true while a process has made its file, but the header is not complete yet */
    bool coming = run->watch.pending.count;

    if (run->stop)
        return false;
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (!t->row.ended && should_wait_for_process(run, t, now)) {
            waiting++;
            pid = t->row.pid ? t->row.pid : t->row.own_pid;
        } else if (t->forking) {
            coming = true;
        }
    if (waiting && !run->said && !run->orphan && now - run->ended_ns > SAY_NS) {
        say_error("the command has ended; still recording %u process%s that outlived it (pid "
                  "%u%s); Ctrl-C stops waiting",
                  waiting, waiting == 1 ? "" : "es", pid, waiting == 1 ? "" : ", ...");
        run->said = true;
    }
    return waiting > 0 || (coming && now - run->ended_ns < DETACHED_NS);
}

/* Has process T ended? SEEN: poll() has reported that its pidfd is readable. */
static bool has_process_ended(const struct traced *t, bool seen)
{
    if (t->pidfd >= 0)
        return seen;
    return !t->hidden || traced_is_gone(t);
}

/* Sleep until an event or for MILLISECONDS, then record the end of processes that have ended. */
static void wait_and_record_exits(struct run *run, int milliseconds)
{
    static LIST(struct pollfd) fds;
    size_t count = 1;

    for (struct traced *t = run->c.traced; t; t = t->next)
        count += !t->row.ended;
    if (!list_reach(&fds, count)) {
        usleep(1000);
        return;
    }
    fds.at[0] = (struct pollfd){run->orders, POLLIN, 0};
    count = 1;
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (!t->row.ended)
            /* Do not wake up for the command's end until `ended` is set: the parent reports the
             * end, and an orphan checks for it in read_orders_of_parent(). */
            fds.at[count++] = (struct pollfd){
                is_process_of_command(run, t) && !run->ended ? -1 : t->pidfd, POLLIN, 0};
    poll(fds.at, count, milliseconds);
    count = 1;
    for (struct traced *t = run->c.traced; t; t = t->next) {
        if (t->row.ended || !has_process_ended(t, fds.at[count++].revents))
            continue;
        if (is_process_of_command(run, t) && !run->ended)
            continue; /* the parent will report the status */
        if (is_process_of_command(run, t))
            traced_write_status(t, run->status);
        if (!is_process_of_command(run, t) || run->orphan)
            watch_record_exit_status(t);
        watch_record_end(t, collector_now_ns(&run->c));
    }
}

struct drained {
    uint64_t words;   /* number of words that were taken from all rings */
    uint64_t fullest; /* how full the fullest ring was, in 256ths */
};

/* Take what all processes have written, and find new processes. */
static struct drained drain_all_processes(struct run *run)
{
    struct drained drained = {0};

    for (struct traced *t = run->c.traced; t; t = t->next) {
        watch_drain_process(t);
        drained.words += t->words;
        drained.fullest = MAX(drained.fullest, t->fullest);
        watch_find_nested(&run->watch, t);
    }
    /* Look for new files only now, after traced_read_rings() has read `forking`: a child that is no
     * longer counted in `forking` has made its file. */
    watch_find_new(&run->watch);
    return drained;
}

/* If `dyntrace snapshot` waits for us, write all events so far to the two files. Then wait, at most
 * 40 ms, until `snapshot` has noted where the files' pages are. */
static void serve_snapshot_request(struct run *run)
{
    struct collector *c = &run->c;
    struct state_header *header = &c->state.file->header;
    const uint32_t asked = atomic_load(&header->snapshot_asked);

    if (asked == atomic_load(&header->snapshot_ready))
        return;
    drain_all_processes(
        run); /* what the program wrote after the last drain and before the question */
    for (struct traced *t = c->traced; t; t = t->next)
        list_each(r, &t->rings)
            decode_store_open_page(&r->decoder);
    lookup_pages_store_unfinished_pages(&c->lookups);
    frame_pages_write_window(&c->pages);
    commit_if_time_has_come(run, true);
    header->snapshot_held = recorder_is_log_held(c->recorder);
    header->snapshot_ns = c->decode.last_ns;
    atomic_store(&header->snapshot_ready, asked);
    for (int i = 0; i < SNAPSHOT_WAITS && atomic_load(&header->snapshot_taken) != asked; i++)
        usleep(SNAPSHOT_WAIT_US);
    atomic_store(&header->snapshot_over, asked);
}

static void drain_until_end(struct run *run)
{
    int idle = 0;

    for (;;) {
        uint32_t changes = run->c.changes;
        struct drained drained;
        bool go_on = true;

        read_orders_of_parent(run);
        drained = drain_all_processes(run);
        trigger_serve_requests(&run->c);
        serve_snapshot_request(run);
        if (drained.fullest <= 64 && !run->ended)
            copy_lookups_to_live_trace(&run->c);
        commit_if_time_has_come(run, false);
        idle = drained.words ? 0 : idle + 1;
        if (run->ended) {
            /* notice the end of processes first: is_child_still_recording() must not wait for these
             * processes */
            wait_and_record_exits(run, 0);
            /* go on, because a process that came or ended may have forked */
            go_on = is_child_still_recording(run) || run->c.changes != changes;
        }
        /* Do not sleep if a ring is a quarter full or more, because it could overflow meanwhile.
         * Nor if a process came or ended, because it may have forked. */
        wait_and_record_exits(run, drained.fullest > 64 || !go_on || run->c.changes != changes ? 0
                                   : idle > IDLE_ROUNDS ? IDLE_POLL_MS
                                                        : POLL_MS);
        if (!go_on)
            break;
    }
}

/* ---- finish the trace ---- */

/* Set the error message of RESULT. An earlier message stays. */
static __attribute__((format(printf, 2, 3))) void set_result_error(struct collector_result *result,
                                                                   const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!result->error[0])
        vsnprintf(result->error, sizeof result->error, format, arguments);
    va_end(arguments);
}

/* Move the finished TRACE to the path that `meta` has as its destination. */
static void move_trace_to_destination(const char *trace, struct collector_result *result)
{
    const char *why = NULL;

    if (!recorder_move(trace, &why))
        set_result_error(result, "%s: is whole, but cannot be moved to its place: %s", trace, why);
}

/* Set the error message of RESULT: the two files of SESSION could not be joined, because of
 * END->error. */
static void report_join_failure(const struct session *session, const struct recorder_end *end,
                                struct collector_result *result)
{
    const char *trace = session->trace;

    result->error[0] = 0;
    if (access(session->frames, F_OK) && (errno == ENOENT || errno == ENOTDIR))
        set_result_error(
            result,
            "%s: cannot be finished: the trace or its directory was deleted or renamed while it "
            "was recorded; with %s in its place again `dyntrace fsck --recover %s` finishes it",
            trace, session->frames, trace);
    else
        set_result_error(result,
                         "%s: cannot be finished: %s; %s`dyntrace fsck --recover %s` tries again",
                         trace, end->error, end->full ? "make room, then " : "", trace);
    result->frames = 0;
}

/* Return how to join the two files of this trace, as bits of enum join_how. */
static unsigned choose_join_flags(const struct collector *c)
{
    unsigned how = 0;

    if (c->resumed)
        how |= JOIN_RECOVERED;
    if (c->salvaged)
        how |= JOIN_SALVAGED;
    if (c->pages.indexed || keep_is_set(&c->keep))
        how |= JOIN_INDEXED;
    if (keep_is_set(&c->keep))
        how |= JOIN_KEPT;
    return how;
}

/* For a torch program, estimate how many bytes of the trace are rows of frames without a cache
 * lookup. FRAMES is the number of all frames. Returns 0 for other programs. */
static uint64_t estimate_bytes_without_lookups(const struct collector *c, uint64_t frames)
{
    uint64_t lookups = c->lookups.next[PAGES_LOOKUP] - 1;

    if (keep_is_set(&c->keep))
        return 0;
    if (!c->torch || frames <= lookups)
        return 0;
    return c->pages.leaves_of_frames * (frames - lookups) / frames * FRAME_PAGE_BYTES;
}

/* Finish the trace, after all its FRAMES frames were written: write the totals and the last rows of
 * `meta`, and join the two files. */
static void finish_trace(struct run *run, int64_t frames, struct collector_result *result)
{
    struct collector *c = &run->c;
    const char *trace = c->session->trace;
    struct recorder_end end = {.cpu_ns = run->cpu_before_ns};
    unsigned how = choose_join_flags(c);
    const char *why;
    bool moves;

    result->frames = (uint64_t)frames;
    result->undecided = estimate_bytes_without_lookups(c, (uint64_t)frames);
    recorder_set_meta(c->recorder, "frame_count", NULL, frames);
    recorder_set_meta(c->recorder, "open_frame_count", NULL, (int64_t)c->decode.open_frames);
    if (counts_total_frames(&c->counts))
        recorder_set_meta(c->recorder, "counted_frame_count", NULL,
                          counts_total_frames(&c->counts));
    settings_report_without_effect(c, result);
    recorder_run(c->recorder, "recorder/stretches");
    commit_if_time_has_come(run, true);
    metrics_write_last(c);
    result->over = c->keep.over_bytes;
    result->missing = recorder_count_losses(c->recorder, result->worst, sizeof result->worst);
    why = recorder_error(c->recorder);
    if (why) {
        how |= JOIN_TOTALS;
        set_result_error(result, "%s: %s", trace, why);
    }
    frame_pages_close(&c->pages);
    lookup_pages_close(&c->lookups);
    if (!recorder_join_files(c->recorder, trace, c->session->frames, how, &end))
        report_join_failure(c->session, &end, result);
    else if (c->resumed)
        recorder_is_trace_finished(trace, &result->frames, &result->processes);
    result->cpu_ns = c->salvaged ? 0 : end.cpu_ns;
    /* moving opens the trace again: do it only if there may be a destination (after a kill only
     * `meta` knows) */
    moves = c->resumed || *c->session->destination;
    if (moves && (result->frames || !result->error[0]))
        move_trace_to_destination(trace, result);
}

static void finish_recording(struct run *run, struct collector_result *result)
{
    struct collector *c = &run->c;
    const char *why;
    int64_t frames;

    for (int i = 0; i < SNAPSHOT_END_MS && trigger_is_busy(c); i++) {
        serve_snapshot_request(run);
        usleep(1000);
    }
    trigger_end(c);
    atomic_store(&c->session->file->closed, 1);
    stop_coarse_clock_thread(run);
    for (struct traced *t = c->traced; t; t = t->next) {
        if (t->row.ended)
            continue;
        if (!run->done && !has_process_left_session(t))
            collector_record_loss(c, t->row.process_id, 0,
                                  "recording ended: process %u was still running",
                                  t->row.pid ? t->row.pid : t->row.own_pid);
        watch_finish_process(t);
    }
    watch_record_unopened(&run->watch);
    for (int i = 0; i < STATUS_TRIES && watch_retry_exit_statuses(c); i++)
        usleep(1000);
    lookup_pages_finish(&c->lookups);
    keep_end(c);
    frames = frame_pages_finish_file(&c->pages);
    if (c->pages.error) {
        why = strerror(c->pages.error);
        collector_record_loss(
            c, 0, c->pages.lost,
            "disk: the trace could not grow (%s); the frames and lookups after that are not in it",
            why);
        set_result_error(
            result,
            "%s: %s; the program went on, %lu rows could not be stored, the trace holds those "
            "before",
            c->session->trace, why, c->pages.lost);
    }
    result->processes = c->processes;
    if (frames >= 0)
        finish_trace(run, frames, result);
    snprintf(result->torch_note, sizeof result->torch_note, "%s", c->torch_note);
    snprintf(result->unsupported, sizeof result->unsupported, "%s",
             c->state.file->header.unsupported);
}

/* Open the state that a killed collector left, or make a new one. If the session is damaged or
 * gone, the recording cannot go on: only the rows in the two files are recovered, and the pages of
 * the window if the state file is still there. Returns false with *ERROR. */
static bool open_state(struct collector *c, const char **error)
{
    /* stands in for the session's file, which was cut short, so that reading it would raise
     * SIGBUS */
    static struct session_file damaged;
    struct session *session = c->session;
    int failed;

    if (!session_has_full_file(session)) {
        c->salvaged = c->resumed = true;
        session->file = &damaged;
    }
    failed = collector_state_open(&c->state, session, c->resumed);
    if (!failed && c->resumed)
        return true;
    if (failed && c->resumed && (errno == EINVAL || errno == ENOENT)) {
        c->salvaged = true;
        unlinkat(session->place[SESSION_MAIN], "state", 0);
        failed = collector_state_open(&c->state, session, false);
        if (!failed)
            memcpy(c->state.file->header.sure, (uint64_t[]){UINT64_MAX, UINT64_MAX, 1u << 31},
                   sizeof c->state.file->header.sure);
    }
    *error = failed ? strerror(errno) : "its frames are not there, or damaged";
    return !failed && recorder_open_window(session->frames, !c->resumed, &c->state.file->window);
}

/* Open the file of frames, and start to watch the session's processes. Returns false with errno. */
static bool open_frames_file(struct run *run, const struct session *session)
{
    struct collector *c = &run->c;
    int fd = open(session->frames, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct page_window keep;

    if (fd < 0)
        return false;
    keep_read_bounds(c);
    keep = keep_page_window(c);
    if (frame_pages_open_window(&c->pages, fd, &c->state.file->window, c->resumed, &keep))
        return false;
    return c->salvaged || watch_open(&run->watch, c);
}

/* Open everything that a collector needs. Returns false with *ERROR. */
static bool collector_open(struct run *run, struct session *session, bool resume,
                           const char **error)
{
    struct collector *c = &run->c;

    *c = (struct collector){.session = session, .resumed = resume};
    run->then = clocks_read();
    if (!open_state(c, error))
        return false;
    if (!open_frames_file(run, session)) {
        *error = strerror(errno);
        return false;
    }
    if (c->resumed)
        collector_state_restore_ids(&c->state);
    run->cpu_before_ns = c->state.file->header.cpu_ns;
    lookup_pages_open(&c->lookups, &c->pages, &c->state.file->lookups, c->state.file->header.next,
                      c->resumed && !keep_is_set(&c->keep));
    c->recorder = recorder_open(session->trace, error);
    if (!c->recorder)
        return false;
    c->decode.pages = &c->pages;
    c->decode.start_clock = session->file->start_clock;
    c->decode.ns_per_tick_32 = session->file->ns_per_tick_32;
    c->decode.min_duration_ns = session->file->min_duration_ns;
    c->decode.thin = session->file->thin;
    c->decode.next = c->state.file->header.next;
    c->decode.last_ns = c->state.file->header.last_ns;
    /* a collector that was killed may have been waiting for a snapshot */
    atomic_store(&c->state.file->header.snapshot_over,
                 atomic_load(&c->state.file->header.snapshot_ready));
    counts_open(&c->counts, session, c->resumed && !c->salvaged);
    if (session->file->frames == SESSION_FOLDED)
        c->decode.counts = &c->counts;
    return true;
}

static void write_stats(const struct collector *c, const struct collector_result *result)
{
    const char *path = getenv("DYNTRACE_STATS");
    struct rusage usage;
    /* "x": do not overwrite an existing file that the variable names */
    FILE *out = path && *path ? fopen(path, "wxe") : NULL;

    if (!out)
        return;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(out,
            "{\"collector_cpu_s\": %.6f, \"collector_peak_rss_kb\": %ld, \"frames\": %llu, "
            "\"waits\": %llu, \"wait_ns\": %llu}\n",
            (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            usage.ru_maxrss, (unsigned long long)result->frames, (unsigned long long)c->waits,
            (unsigned long long)c->wait_ns);
    fclose(out);
}

/* Make the struct that stands for the command until its interpreter's process file is found.
 * Returns false without memory. */
static bool new_command_process(struct collector *c)
{
    c->command = traced_new(c, SESSION_MAIN, "");
    c->traced = c->command;
    if (c->command) {
        c->command->row.process_id = COMMAND_ID;
        c->command->row.pid = c->state.file->header.command;
    }
    return c->command;
}

/* Write to `meta` how to run the command again, for `dyntrace try`. */
static void write_rerun_command(struct recorder *r, const struct session_again *again)
{
    const struct {
        const char *key, *text;
    } rows[] = {
        {"directory", again->directory},
        {"executable", again->executable},
        {"options", again->options},
        {"launcher", again->launcher},
    };

    for (size_t i = 0; i < array_count(rows); i++)
        if (rows[i].text)
            recorder_set_meta(r, rows[i].key, rows[i].text, 0);
}

/* Write the job's id, ranks and world size to `meta`, if a launcher such as torchrun set them. */
static void write_job_ids(struct recorder *r)
{
    static const char *const keys[JOB_FACTS] = {JOB_KEYS};

    for (int i = 0; i < JOB_FACTS; i++) {
        const char *fact = job_read_fact((enum job_fact)i);
        if (fact)
            recorder_set_meta(r, keys[i], fact, 0);
    }
}

static const char *name_of_clock(const struct session_file *file)
{
    if (file->coarse)
        return "coarse";
    return file->clock == SESSION_MONOTONIC ? "monotonic" : "tsc";
}

/* Write the first rows of a new recording. Returns false if that failed. */
static bool write_first_rows(struct collector *c, const char *argv)
{
    /* words for enum session_values */
    static const char *const values[] = {"all", "types", "off"};
    struct session_file *file = c->session->file;
    struct state_header *header = &c->state.file->header;
    struct recorder *r = c->recorder;
    uint32_t parent;
    char host[256] = "";

    header->next_process = COMMAND_ID + 1;
    header->session_id = getsid(getppid());
    header->parent = (uint32_t)getppid();
    process_read_parent_and_start(header->parent, &parent, &header->parent_started);
    gethostname(host, sizeof host - 1);
    recorder_put(r, PROCESS,
                 {
                     .process_id = COMMAND_ID,
                     .pid = ROW_NONE,
                     .own_pid = ROW_NONE,
                     .mode = fact_make_text("none"),
                 });
    recorder_put(r, PROCESS_SAYS,
                 {.process_id = COMMAND_ID, .argv = fact_make_text(file->no_argv ? NULL : argv)});
    recorder_set_meta(r, "dyntrace_version", DYNTRACE_VERSION, 0);
    recorder_set_meta(r, "state", "recording", 0);
    recorder_set_meta(r, "host", host, 0);
    recorder_set_meta(r, "command", argv, 0);
    write_rerun_command(r, &c->session->again);
    recorder_set_meta(r, "values", values[MIN(file->values, SESSION_VALUES_OFF)], 0);
    recorder_set_meta(r, "clock", name_of_clock(file), 0);
    if (file->coarse)
        /* stop_coarse_clock_thread writes the measured resolution over this value */
        recorder_set_meta(r, "clock_resolution_ns", NULL, TICK_NS);
    recorder_set_meta(r, "session", c->session->directory, 0);
    recorder_set_meta(r, "started_unix_ns", NULL, (int64_t)file->start_unix_ns);
    recorder_set_meta(r, "min_duration_ns", NULL, (int64_t)file->min_duration_ns);
    if (file->thin)
        recorder_set_meta(r, "thin", NULL, THIN_SHARE);
    write_job_ids(r);
    settings_write_meta(c);
    secrets_write_meta(c);
    if (*c->session->destination)
        recorder_set_meta(r, "destination", c->session->destination, 0);
    if (c->session->clock_doubt_ns) {
        recorder_set_meta(r, "clock_offset_ns", NULL, c->session->clock_offset_ns);
        recorder_set_meta(r, "clock_doubt_ns", NULL, c->session->clock_doubt_ns);
    }
    return new_command_process(c) && recorder_commit(r);
}

/* ---- continue the recording of a killed collector ---- */

/* Read the processes of a killed collector's recording, and record which of them have ended. */
static void take_over_from_killed_collector(struct run *run)
{
    struct collector *c = &run->c;
    const struct state_header *header = &c->state.file->header;
    uint64_t last_ns = c->decode.last_ns;
    /* Can the recording go on? Yes, if the command is alive, or if its start may still be
     * ordered. */
    bool lives = header->command ? process_is_same(header->command, header->command_started)
                                 : run->orders >= 0;

    new_command_process(c);
    if (c->state.file->header.command)
        write_row_of_command(run);
    watch_add_processes_of_killed_recording(&run->watch);
    for (struct traced *t = c->traced; t; t = t->next) {
        if (t->row.ended || t == c->command)
            continue;
        if (!has_process_ended(t, !process_is_alive(t->pidfd))) {
            lives = true;
            continue;
        }
        do
            watch_drain_process(t);
        while (t->words && !t->broken);
        if (is_process_of_command(run, t) && !run->orphan)
            continue; /* do not record the command's exit status, which the parent will report */
        watch_record_exit_status(t);
        watch_record_end(t, c->decode.last_ns);
    }
    collector_write_loss(c, 0, 0, last_ns, 0,
                         lives ? LOSS_KILLED ", and another took its place"
                               : LOSS_KILLED
                             "; this trace was finished from what it and the programs left");
}

/* If a killed collector had written all rows, do its last steps: join the two files, and move the
 * trace. Returns false if rows are missing, so that a collector must continue the recording. */
static bool finish_written_trace(struct session *session, struct collector_result *result)
{
    const char *error = NULL;

    if (recorder_is_trace_finished(session->trace, &result->frames, &result->processes)) {
        unlink(session->frames);
        move_trace_to_destination(session->trace, result);
        return true;
    }
    if (!recorder_is_trace_finished(session->frames, &result->frames, &result->processes))
        return false;
    if (!recorder_rename_joined_file(session->trace, session->frames, &error))
        set_result_error(result, "%s: cannot be recovered: %s", session->trace, error);
    else
        move_trace_to_destination(session->trace, result);
    return true;
}

/* ---- the main function of a collector ---- */

/* Record until the end. collector_open() has succeeded. With c->resumed continue a killed
 * collector's recording. Returns false with *ERROR. */
static bool record_until_end(struct run *run, const char *argv, int to,
                             struct collector_result *result, const char **error)
{
    struct collector *c = &run->c;

    if (!c->resumed && !write_first_rows(c, argv)) {
        *error = recorder_error(c->recorder);
        return false;
    }
    if (!start_coarse_clock_thread(run)) {
        *error = "there is no thread for --clock coarse";
        return false;
    }
    if (run->orders < 0)
        become_orphan(run);
    else
        fcntl(run->orders, F_SETFL, O_NONBLOCK);
    if (write(to, "", 1) != 1) { /* this byte tells the parent that the command may start */
        *error = "the parent is gone";
        return false;
    }
    if (!collector_state_reserve(&c->state)) {
        static char room[sizeof c->session->directory + 128];
        atomic_store(&c->session->file->closed, 1);
        snprintf(room, sizeof room, "not recorded: no room in %s for what is on its way (%s)",
                 c->session->directory, strerror(errno));
        *error = room;
        return false;
    }
    recorder_add_views(c->recorder);
    keep_begin(c);
    trigger_begin(c);
    if (c->salvaged) {
        collector_write_loss(
            c, 0, 0, 0, (uint64_t)ROW_NONE,
            LOSS_KILLED ", and the state that it left was damaged or is gone; frames that were not "
                        "yet written, and what the programs had not handed over, are missing");
    } else {
        calibrate_clock(run);
        set_stretch_length(&c->decode);
        if (c->resumed)
            take_over_from_killed_collector(run);
        drain_until_end(run);
    }
    finish_recording(run, result);
    write_stats(c, result);
    return true;
}

int collector_run(struct session *session, const char *argv, int orders, int to)
{
    /* static, because it is used once in a process, and freed by the process's exit */
    static struct run run;
    struct collector_result result = {0};
    const char *error = NULL;

    run = (struct run){.orders = orders, .command_watch = -1, .parent = getppid()};
    if (!argv && finish_written_trace(session, &result)) {
        if (write(to, "", 1) != 1)
            return 1;
    } else if (!collector_open(&run, session, !argv, &error) ||
               !record_until_end(&run, argv, to, &result, &error)) {
        recorder_close(run.c.recorder);
        set_result_error(&result, "%s: %s", session->trace, error ? error : strerror(ENOMEM));
        if (write(to, &result, sizeof result)) {
            /* writing fails if the parent is gone; then nobody would read the result */
        }
        return 1;
    }
    if (write(to, &result, sizeof result) == sizeof result) {
        /* Exit only after the parent has removed the session's directories. The kernel frees their
         * disk space when the last descriptor is closed, which takes milliseconds: here it delays
         * nobody. */
        poll(&(struct pollfd){to, POLLIN, 0}, 1, -1);
        return 0;
    }
    /* No parent reads the result, so the session's directories are removed here. */
    if (!result.error[0] || result.frames)
        session_remove(session);
    return 1;
}

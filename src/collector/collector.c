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
#define CALIBRATE_NS (10 * MS)  /* the CPU's counter is measured over at least this time */
#define COMMIT_NS (250 * MS)    /* time between commits of the tables that SQLite writes */
#define SAY_NS (500 * MS)       /* time after the command's end before we print why we wait */
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
enum { SHOW_ROOM = 64 << 20 /* free bytes on the disk that show() needs */ };

struct run {
    struct collector c;
    uint64_t counter_then, ns_then; /* clock readings when the calibration began */
    struct watch watch;
    int orders;
    pid_t parent;
    int64_t cpu_before_ns; /* processor time that killed collectors of this recording used */
    uint64_t last_commit;  /* time of the last commit (CLOCK_MONOTONIC) */
    int command_watch;     /* for an orphan: the command's process_watch(); else -1 */
    bool orphan;           /* no parent is alive */
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

static void *tick(void *of)
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

/* Start the thread that sets the clock, if the session has --clock coarse. Returns false if the
 * thread cannot be made. */
static bool ticker_start(struct run *run)
{
    const struct session_file *file = run->c.session->file;
    sigset_t all, old;

    if (!file->coarse)
        return true;
    /* between two collectors nobody set the clock */
    run->still_ns = decode_ns(&run->c.decode, file->start_clock + (session_now(file) - file->now));
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    run->ticking = true; /* set before the thread reads it */
    run->ticking = pthread_create(&run->ticker, NULL, tick, run) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return run->ticking;
}

static void ticker_stop(struct run *run)
{
    if (!run->ticking)
        return;
    run->ticking = false;
    pthread_join(run->ticker, NULL);
    recorder_meta(run->c.recorder, "clock_resolution_ns", NULL,
                  (int64_t)(run->ticked_ns / MAX(run->ticks, 1)));
    if (run->still_ns > STILL_NS)
        collector_lost(&run->c, 0, 0,
                       LOSS_STALL "for up to %.0f ms the recorder did not set the clock (--clock "
                                  "coarse): times may be wrong by as much",
                       (double)run->still_ns / 1e6);
}

/* ---- record until the command and its children have ended ---- */

static void show_row(void *context, enum lookup_table table, int64_t *values, const char *word)
{
    recorder_values(context, table == PAGES_LOOKUP ? PUT_LOOKUP : PUT_CHECK, values, &word);
}

static bool has_room(const struct collector *c)
{
    struct statvfs disk;

    return fstatvfs(c->pages.fd, &disk) == 0 && disk.f_bavail * disk.f_frsize >= SHOW_ROOM;
}

/* Copy some lookups and checks from pages to the live file, where readers see them. This takes
 * at most a sixth of a round of POLL_MS. On a nearly full disk copy nothing: the pages need the
 * room. */
static void show(struct collector *c)
{
    if (keep_is_on(&c->keep))
        return; /* with --keep SQLite has written these rows already */
    for (int table = 0; table < LOOKUP_TABLES; table++)
        if (c->lookups.shown[table] < c->lookups.next[table] && has_room(c))
            lookup_pages_show(&c->lookups, table, show_row, c->recorder);
}

static void orders_take(struct run *run);

/* Measure the nanoseconds per tick of the CPU's counter since the collector began. Waits until the
 * measurement is good, which is before a Python has started. If the command ends earlier, there is
 * little to measure, and a worse result will do. */
static void calibrate(struct run *run)
{
    struct collector *c = &run->c;
    struct session_file *file = c->session->file;
    uint64_t ticks = 1;
    uint64_t ns = 1;
    uint64_t best = UINT64_MAX;
    bool has_counter = file->clock != SESSION_MONOTONIC;

    if (c->decode.ns_per_tick_32)
        return;
    while (has_counter && !run->ended) {
        if (clock_monotonic_ns() - run->ns_then >= CALIBRATE_NS)
            break;
        poll(&(struct pollfd){run->orders, POLLIN, 0}, 1, 1);
        orders_take(run);
    }
    for (int i = 0; has_counter && i < 8; i++) {
        uint64_t before = clock_counter();
        uint64_t now = clock_monotonic_ns();
        uint64_t after = clock_counter();
        /* of the 8 readings use the one with the shortest interruption */
        if (after - before < best) {
            best = after - before;
            ticks = before + (after - before) / 2 - run->counter_then;
            ns = now - run->ns_then;
        }
    }
    file->ns_per_tick_32 = c->decode.ns_per_tick_32 =
        (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}

/* Set the length from which on decoders report stretches (traced_stretch), in ticks of the clock,
 * whose frequency is known now. The row of a stretch names a frame, so no stretch is shorter than
 * the frames that --min-duration leaves out. */
static void stretches_begin(struct decode_session *session)
{
    uint64_t ns = MAX((uint64_t)STRETCH_NS, session->min_duration_ns);

    session->stretch_ns = ns;
    session->stretch_ticks = (uint64_t)(((unsigned __int128)ns << 32) / session->ns_per_tick_32);
}

static bool has_left(const struct traced *t)
{
    return t->file && !t->broken && atomic_load(&t->file->left);
}

static void say_totals(struct collector *c)
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
                     });
        *total = (struct decode_total){0}; /* the row has these totals now, so count from 0 again */
    }
}

/* Write the cells of frames that were counted since the last time. A cell's row has its number. */
static void say_counts(struct collector *c)
{
    for (uint32_t i = 0; i < c->counts.cells; i++) {
        const struct count_cell *cell = counts_at(&c->counts, i);
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
static void orphaned(struct run *run)
{
    struct state_header *header = &run->c.state.file->header;

    if (run->orphan)
        return;
    run->orphan = true;
    if (run->orders >= 0)
        close(run->orders);
    run->orders = -1;
    run->command_watch = process_watch(header->command, header->command_started);
}

static bool is_command(const struct run *run, const struct traced *t)
{
    return t == run->c.command || (t->row.pid && t->row.pid == run->c.state.file->header.command);
}

/* Is the command alive, and does it still record? */
static bool command_goes_on(struct run *run)
{
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (is_command(run, t) && !t->row.ended && has_left(t))
            return false;
    return process_lives(run->command_watch);
}

/* Note the processor time of this collector and of those before it, as far as they noted theirs. */
static void note_cpu(struct run *run)
{
    int64_t cpu_ns = run->cpu_before_ns + recorder_cpu_ns();

    if (run->c.salvaged)
        return; /* the state is lost, so the time of earlier collectors is not known */
    run->c.state.file->header.cpu_ns = cpu_ns;
    recorder_meta(run->c.recorder, "recorder_cpu_ns", NULL, cpu_ns);
}

static void commit_sometimes(struct run *run, bool now)
{
    struct collector *c = &run->c;
    uint64_t at = clock_monotonic_ns();

    if (!now && at - run->last_commit < COMMIT_NS)
        return;
    watch_statuses(c);
    keep_trim(c);
    say_totals(c);
    say_counts(c);
    recorder_meta(c->recorder, "span_ns", NULL, (int64_t)c->decode.last_ns);
    note_cpu(run);
    if (recorder_commit(c->recorder))
        watch_committed(c);
    metrics_write(c, false);
    if (getppid() != run->parent)
        orphaned(run);
    run->last_commit = clock_monotonic_ns();
}

/* Note that the command has ended, with STATUS as from waitpid(), or -1 if it is not known. */
static void command_ended(struct run *run, int status)
{
    run->ended = true;
    run->status = status;
    run->ended_ns = clock_monotonic_ns();
}

/* Write the command's row while no interpreter has claimed it. */
static void command_say(struct run *run)
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

static void orders_take(struct run *run)
{
    struct collector *c = &run->c;
    struct state_header *header = &c->state.file->header;
    struct collector_order order;
    ssize_t got = -1;
    uint32_t parent;

    while (run->orders >= 0 && (got = read(run->orders, &order, sizeof order)) == sizeof order) {
        if (order.what == ORDER_BEGAN) {
            header->command = (uint32_t)order.pid;
            process_stat(header->command, &parent, &header->command_started);
            command_say(run);
        } else if (order.what == ORDER_ENDED) {
            command_ended(run, order.status);
        } else if (order.what == ORDER_SNAPSHOT) {
            snprintf(c->decode.why_tripped, sizeof c->decode.why_tripped, "signal");
            c->decode.tripped = true;
        } else {
            run->stop = true;
        }
        if (order.what == ORDER_DONE) {
            run->done = true;
            command_ended(run, -1);
        }
    }
    if (got == 0)
        orphaned(run);
    if (run->orphan && !run->ended && !command_goes_on(run))
        command_ended(run, -1);
}

/* After the command's end: should we wait for process T? */
static bool is_waited_for(struct run *run, struct traced *t, uint64_t now)
{
    uint64_t since = now - run->ended_ns;
    const pid_t ours = run->c.state.file->header.session_id;
    pid_t session = t->row.pid ? getsid((pid_t)t->row.pid) : ours;

    if (has_left(t))
        return false;
    if (since < DETACHED_NS)
        return true;
    if (session < 0 || session != ours)
        return false; /* the process is a daemon: it has left the command's POSIX session */
    return now - (t->last_words_ns > run->ended_ns ? t->last_words_ns : run->ended_ns) < IDLE_NS;
}

/* After the command's end: returns true while some child should still be recorded. */
static bool stragglers(struct run *run)
{
    uint64_t now = clock_monotonic_ns();
    uint32_t waiting = 0;
    uint32_t pid = 0;
    /* true while a process has made its file, but the header is not complete yet */
    bool coming = run->watch.pending.count;

    if (run->stop)
        return false;
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (!t->row.ended && is_waited_for(run, t, now)) {
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
static bool has_ended(const struct traced *t, bool seen)
{
    if (t->pidfd >= 0)
        return seen;
    return !t->hidden || traced_is_gone(t);
}

/* Sleep until an event or for MILLISECONDS, then record the end of processes that have ended. */
static void wait_for_events(struct run *run, int milliseconds)
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
             * end, and an orphan checks for it in read_orders(). */
            fds.at[count++] =
                (struct pollfd){is_command(run, t) && !run->ended ? -1 : t->pidfd, POLLIN, 0};
    poll(fds.at, count, milliseconds);
    count = 1;
    for (struct traced *t = run->c.traced; t; t = t->next) {
        if (t->row.ended || !has_ended(t, fds.at[count++].revents))
            continue;
        if (is_command(run, t) && !run->ended)
            continue; /* the parent will report the status */
        if (is_command(run, t))
            traced_status(t, run->status);
        if (!is_command(run, t) || run->orphan)
            watch_status(t);
        watch_ended(t, collector_now_ns(&run->c));
    }
}

/* Write all that is known to the two files for `dyntrace snapshot`, and wait until it has begun to
 * read them, a moment at most. */
static void snapshot_serve(struct run *run)
{
    struct collector *c = &run->c;
    struct state_header *header = &c->state.file->header;
    const uint32_t asked = atomic_load(&header->snapshot_asked);

    if (asked == atomic_load(&header->snapshot_ready))
        return;
    for (struct traced *t = c->traced; t; t = t->next)
        list_each(r, &t->rings)
            decode_store(&r->decoder);
    lookup_pages_store(&c->lookups);
    frame_pages_flush(&c->pages);
    commit_sometimes(run, true);
    header->snapshot_held = recorder_is_held(c->recorder);
    header->snapshot_ns = c->decode.last_ns;
    atomic_store(&header->snapshot_ready, asked);
    for (int i = 0; i < SNAPSHOT_WAITS && atomic_load(&header->snapshot_taken) != asked; i++)
        usleep(SNAPSHOT_WAIT_US);
}

static void drain_until_end(struct run *run)
{
    int idle = 0;

    for (;;) {
        uint64_t words = 0;
        uint64_t fullest = 0;
        uint32_t changes = run->c.changes;
        bool go_on = true;

        orders_take(run);
        for (struct traced *t = run->c.traced; t; t = t->next) {
            watch_drain(t);
            words += t->words;
            fullest = MAX(fullest, t->fullest);
            watch_nested(&run->watch, t);
        }
        /* Look after `forking` was read: a child that is no longer counted there has a file. */
        watch_new(&run->watch);
        trigger_serve(&run->c);
        snapshot_serve(run);
        if (fullest <= 64 && !run->ended)
            show(&run->c);
        commit_sometimes(run, false);
        idle = words ? 0 : idle + 1;
        if (run->ended) {
            /* notice ended processes first, so that stragglers() does not wait for them */
            wait_for_events(run, 0);
            /* a process that came or ended may have forked */
            go_on = stragglers(run) || run->c.changes != changes;
        }
        /* Do not sleep if a ring is at least a quarter full, since it fills meanwhile, or if a
         * process came or ended, since it may have forked. */
        wait_for_events(run, fullest > 64 || !go_on || run->c.changes != changes ? 0
                             : idle > IDLE_ROUNDS                                ? IDLE_POLL_MS
                                                                                 : POLL_MS);
        if (!go_on)
            break;
    }
}

/* ---- finish the trace ---- */

/* Set the error of RESULT, unless an earlier error is there. */
static __attribute__((format(printf, 2, 3))) void fail(struct collector_result *result,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!result->error[0])
        vsnprintf(result->error, sizeof result->error, format, arguments);
    va_end(arguments);
}

/* Move the finished TRACE to the destination in its `meta`. */
static void move(const char *trace, struct collector_result *result)
{
    const char *why = NULL;

    if (!recorder_move(trace, &why))
        fail(result, "%s: is whole, but cannot be moved to its place: %s", trace, why);
}

/* Set the error message of RESULT: the two files of SESSION could not be joined, because of
 * END->error. */
static void fail_to_join(const struct session *session, const struct recorder_end *end,
                         struct collector_result *result)
{
    const char *trace = session->trace;

    result->error[0] = 0;
    if (access(session->frames, F_OK) && (errno == ENOENT || errno == ENOTDIR))
        fail(result,
             "%s: cannot be finished: the trace or its directory was deleted or renamed while it "
             "was recorded; with %s in its place again `dyntrace fsck --recover %s` finishes it",
             trace, session->frames, trace);
    else
        fail(result, "%s: cannot be finished: %s; %s`dyntrace fsck --recover %s` tries again",
             trace, end->error, end->full ? "make room, then " : "", trace);
    result->frames = 0;
}

/* Return the JOIN_ bits for this trace. */
static unsigned join_how(const struct collector *c)
{
    unsigned how = 0;

    if (c->resumed)
        how |= JOIN_RECOVERED;
    if (c->salvaged)
        how |= JOIN_SALVAGED;
    if (c->pages.indexed || keep_is_on(&c->keep))
        how |= JOIN_INDEXED;
    if (keep_is_on(&c->keep))
        how |= JOIN_KEPT;
    return how;
}

/* For a torch program, estimate how many bytes of the trace are rows of frames without a cache
 * lookup. FRAMES is the number of all frames. Returns 0 for other programs. */
static uint64_t undecided_bytes(const struct collector *c, uint64_t frames)
{
    uint64_t lookups = c->lookups.next[PAGES_LOOKUP] - 1;

    if (keep_is_on(&c->keep))
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
    unsigned how = join_how(c);
    const char *why;
    bool moves;

    result->frames = (uint64_t)frames;
    result->undecided = undecided_bytes(c, (uint64_t)frames);
    recorder_meta(c->recorder, "frame_count", NULL, frames);
    recorder_meta(c->recorder, "open_frame_count", NULL, (int64_t)c->decode.open_frames);
    if (counts_frames(&c->counts))
        recorder_meta(c->recorder, "counted_frame_count", NULL, counts_frames(&c->counts));
    settings_end(c, result);
    recorder_run(c->recorder, "recorder/stretches");
    commit_sometimes(run, true);
    metrics_end(c);
    result->over = c->keep.over_bytes;
    result->missing = recorder_missing(c->recorder, result->worst, sizeof result->worst);
    why = recorder_error(c->recorder);
    if (why) {
        how |= JOIN_TOTALS;
        fail(result, "%s: %s", trace, why);
    }
    frame_pages_close(&c->pages);
    lookup_pages_close(&c->lookups);
    if (!recorder_join(c->recorder, trace, c->session->frames, how, &end))
        fail_to_join(c->session, &end, result);
    else if (c->resumed)
        recorder_finished(trace, &result->frames, &result->processes);
    result->cpu_ns = c->salvaged ? 0 : end.cpu_ns;
    /* moving opens the trace again: do it only if there may be a destination (after a kill only
     * `meta` knows) */
    moves = c->resumed || *c->session->destination;
    if (moves && (result->frames || !result->error[0]))
        move(trace, result);
}

static void finish(struct run *run, struct collector_result *result)
{
    struct collector *c = &run->c;
    const char *why;
    int64_t frames;

    for (int i = 0; i < SNAPSHOT_END_MS && trigger_is_busy(c); i++) {
        snapshot_serve(run);
        usleep(1000);
    }
    trigger_end(c);
    atomic_store(&c->session->file->closed, 1);
    ticker_stop(run);
    for (struct traced *t = c->traced; t; t = t->next) {
        if (t->row.ended)
            continue;
        if (!run->done && !has_left(t))
            collector_lost(c, t->row.process_id, 0, "recording ended: process %u was still running",
                           t->row.pid ? t->row.pid : t->row.own_pid);
        watch_finish(t);
    }
    watch_unopened(&run->watch);
    for (int i = 0; i < STATUS_TRIES && watch_statuses(c); i++)
        usleep(1000);
    lookup_pages_finish(&c->lookups);
    keep_end(c);
    frames = frame_pages_finish(&c->pages);
    if (c->pages.error) {
        why = strerror(c->pages.error);
        collector_lost(
            c, 0, c->pages.lost,
            "disk: the trace could not grow (%s); the frames and lookups after that are not in it",
            why);
        fail(result,
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
static bool state_open(struct collector *c, const char **error)
{
    /* stands in for the session's file, which was cut short, so that reading it would raise
     * SIGBUS */
    static struct session_file damaged;
    struct session *session = c->session;
    int failed;

    if (!session_whole(session)) {
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
    return !failed && recorder_window(session->frames, !c->resumed, &c->state.file->window);
}

/* Open the file of frames, and start to watch the session's processes. Returns false with errno. */
static bool frames_open(struct run *run, const struct session *session)
{
    struct collector *c = &run->c;
    int fd = open(session->frames, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct page_window keep;

    if (fd < 0)
        return false;
    keep_find(c);
    keep = keep_window(c);
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
    run->counter_then = clock_counter();
    run->ns_then = clock_monotonic_ns();
    if (!state_open(c, error))
        return false;
    if (!frames_open(run, session)) {
        *error = strerror(errno);
        return false;
    }
    if (c->resumed)
        collector_state_recall(&c->state);
    run->cpu_before_ns = c->state.file->header.cpu_ns;
    lookup_pages_open(&c->lookups, &c->pages, &c->state.file->lookups, c->state.file->header.next,
                      c->resumed && !keep_is_on(&c->keep));
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
static bool command_new(struct collector *c)
{
    c->command = traced_new(c, SESSION_MAIN, "");
    c->traced = c->command;
    if (c->command) {
        c->command->row.process_id = COMMAND_ID;
        c->command->row.pid = c->state.file->header.command;
    }
    return c->command;
}

/* Write to `meta` how the command can run again. */
static void again_write(struct recorder *r, const struct session_again *again)
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
            recorder_meta(r, rows[i].key, rows[i].text, 0);
}

/* Write the job's id, ranks and world size to `meta`, if a launcher such as torchrun set them. */
static void job_write(struct recorder *r)
{
    static const char *const keys[JOB_FACTS] = {JOB_KEYS};

    for (int i = 0; i < JOB_FACTS; i++) {
        const char *fact = job_fact((enum job_fact)i);
        if (fact)
            recorder_meta(r, keys[i], fact, 0);
    }
}

static const char *clock_word(const struct session_file *file)
{
    if (file->coarse)
        return "coarse";
    return file->clock == SESSION_MONOTONIC ? "monotonic" : "tsc";
}

/* Write the first rows of a new recording. Returns false if that fails. */
static bool begin(struct collector *c, const char *argv)
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
    process_stat(header->parent, &parent, &header->parent_started);
    gethostname(host, sizeof host - 1);
    recorder_put(r, PROCESS,
                 {
                     .process_id = COMMAND_ID,
                     .pid = ROW_NONE,
                     .own_pid = ROW_NONE,
                     .mode = fact_string("none"),
                 });
    recorder_put(r, PROCESS_SAYS,
                 {.process_id = COMMAND_ID, .argv = fact_string(file->no_argv ? NULL : argv)});
    recorder_meta(r, "dyntrace_version", DYNTRACE_VERSION, 0);
    recorder_meta(r, "state", "recording", 0);
    recorder_meta(r, "host", host, 0);
    recorder_meta(r, "command", argv, 0);
    again_write(r, &c->session->again);
    recorder_meta(r, "values", values[MIN(file->values, SESSION_VALUES_OFF)], 0);
    recorder_meta(r, "clock", clock_word(file), 0);
    if (file->coarse)
        /* ticker_stop replaces this value with the measured one */
        recorder_meta(r, "clock_resolution_ns", NULL, TICK_NS);
    recorder_meta(r, "session", c->session->directory, 0);
    recorder_meta(r, "started_unix_ns", NULL, (int64_t)file->start_unix_ns);
    recorder_meta(r, "min_duration_ns", NULL, (int64_t)file->min_duration_ns);
    if (file->thin)
        recorder_meta(r, "thin", NULL, THIN_SHARE);
    job_write(r);
    settings_begin(c);
    secrets_begin(c);
    if (*c->session->destination)
        recorder_meta(r, "destination", c->session->destination, 0);
    if (c->session->clock_doubt_ns) {
        recorder_meta(r, "clock_offset_ns", NULL, c->session->clock_offset_ns);
        recorder_meta(r, "clock_doubt_ns", NULL, c->session->clock_doubt_ns);
    }
    return command_new(c) && recorder_commit(r);
}

/* ---- continue the recording of a killed collector ---- */

/* Carry on from where the killed collector stopped. */
static void carry_on(struct run *run)
{
    struct collector *c = &run->c;
    const struct state_header *header = &c->state.file->header;
    uint64_t last_ns = c->decode.last_ns;
    /* Can the recording go on? Yes, if the command is alive, or if its start may still be
     * ordered. */
    bool lives =
        header->command ? process_is(header->command, header->command_started) : run->orders >= 0;

    command_new(c);
    if (c->state.file->header.command)
        command_say(run);
    watch_left(&run->watch);
    for (struct traced *t = c->traced; t; t = t->next) {
        if (t->row.ended || t == c->command)
            continue;
        if (!has_ended(t, !process_lives(t->pidfd))) {
            lives = true;
            continue;
        }
        do
            watch_drain(t);
        while (t->words && !t->broken);
        if (is_command(run, t) && !run->orphan)
            continue; /* the parent will report the status */
        watch_status(t);
        watch_ended(t, c->decode.last_ns);
    }
    collector_loss(c, 0, 0, last_ns, 0,
                   lives ? LOSS_KILLED ", and another took its place"
                         : LOSS_KILLED
                       "; this trace was finished from what it and the programs left");
}

/* Finish what is left if the last collector was killed at the very end. Returns false if the trace
 * is not complete. */
static bool is_finished(struct session *session, struct collector_result *result)
{
    const char *error = NULL;

    if (recorder_finished(session->trace, &result->frames, &result->processes)) {
        unlink(session->frames);
        move(session->trace, result);
        return true;
    }
    if (!recorder_finished(session->frames, &result->frames, &result->processes))
        return false;
    if (!recorder_publish(session->trace, session->frames, &error))
        fail(result, "%s: cannot be recovered: %s", session->trace, error);
    else
        move(session->trace, result);
    return true;
}

/* ---- the main function of a collector ---- */

/* Record until the end, or carry on with a recording; everything is open. Returns false with
 * *ERROR. */
static bool record(struct run *run, const char *argv, int to, struct collector_result *result,
                   const char **error)
{
    struct collector *c = &run->c;

    if (!c->resumed && !begin(c, argv)) {
        *error = recorder_error(c->recorder);
        return false;
    }
    if (!ticker_start(run)) {
        *error = "there is no thread for --clock coarse";
        return false;
    }
    if (run->orders < 0)
        orphaned(run);
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
    recorder_views(c->recorder);
    keep_begin(c);
    trigger_begin(c);
    if (c->salvaged) {
        collector_loss(c, 0, 0, 0, (uint64_t)ROW_NONE,
                       LOSS_KILLED
                       ", and the state that it left was damaged or is gone; frames that were not "
                       "yet written, and what the programs had not handed over, are missing");
    } else {
        calibrate(run);
        stretches_begin(&c->decode);
        if (c->resumed)
            carry_on(run);
        drain_until_end(run);
    }
    finish(run, result);
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
    if (!argv && is_finished(session, &result)) {
        if (write(to, "", 1) != 1)
            return 1;
    } else if (!collector_open(&run, session, !argv, &error) ||
               !record(&run, argv, to, &result, &error)) {
        recorder_close(run.c.recorder);
        fail(&result, "%s: %s", session->trace, error ? error : strerror(ENOMEM));
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

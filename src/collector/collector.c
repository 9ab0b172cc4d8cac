/* collector/collector.c -- drains the rings of a session into its trace. See collector/collector.h.
 *
 * Runs in: the collector.
 *
 *     until the command has ended and its children with it:
 *         new files in the session's directories -> struct traced
 *         drain every ring, then sleep about a millisecond
 *         now and then: totals and a commit, so that readers see something
 *     finish: close every decoder, the frame pages, join the two files
 *
 * A collector that is killed is replaced by the next, from what lies in shared
 * memory (collector/state.h): by the parent, which waits for it, or, when that is
 * dead as well, by the next `dyntrace run` or `fsck --recover` (collector/recover.c). One
 * without a parent is an orphan: it watches the command itself, and clears up.
 *
 * The sleep is long enough that the collector does not fight the producer for
 * the cache line of `head`, and short beside the 25 ms that a ring holds at full
 * speed. */
#include "collector/collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absent.h"
#include "clock.h"
#include "command.h"
#include "collector/process.h"
#include "collector/salvage.h"
#include "lib/say.h"
#include "vocabulary.h"

#define MS UINT64_C(1000000)
#define CALIBRATE_NS (10 * MS)   /* the counter is measured over at least this */
#define COMMIT_NS (250 * MS)     /* between commits of the small tables */
#define SAY_NS (500 * MS)        /* after the command's end: tell why we wait */
#define DETACHED_NS (1000 * MS)  /* what a daemon gets after the command's end */
#define IDLE_NS (5000 * MS)      /* what another child gets while it does nothing */

enum { ABSENT_A_ROUND = 4, ABSENT_MAX = 1000 };
enum { POLL_MS = 1, IDLE_POLL_MS = 4, IDLE_ROUNDS = 64, STATUS_TRIES = 10 };

struct run {
    struct collector c;
    uint64_t counter_then, ns_then;  /* calibration began */
    int orders, watch, spill_watch;
    pid_t parent;
    uint64_t last_commit;            /* CLOCK_MONOTONIC */
    pid_t command;
    int command_watch;               /* process_watch of it, once there is no parent who tells */
    bool orphan;                     /* there is none */
    int absent;                      /* absent_open(), -1 = none */
    uint32_t absent_told;
    bool ended, stop, said;
    bool damaged;                    /* what was left of the state cannot be carried on */
    bool done;                       /* processes that live on are no loss */
    int status;
    uint64_t ended_ns;               /* CLOCK_MONOTONIC */
    struct pending {                 /* files whose header is not whole yet */
        struct pending *next;
        bool spill;
        char name[64];
    } *pending;
};

/* ---- a file that shrinks under us ---- */

static sigjmp_buf guard;
static volatile sig_atomic_t guarded;
static struct collector *guarded_collector;

/* Only the program's files may be cut short and we go on. In the middle of SQLite or of our own state there is no
 * going on: the next collector begins from what was certain. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (guarded && !recorder_in_sqlite && !collector_state_holds(&guarded_collector->state, info->si_addr))
        siglongjmp(guard, 1);
    _exit(125);
}

static void guard_install(struct collector *c)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_NODEFER | SA_SIGINFO};

    guarded_collector = c;
    sigaction(SIGBUS, &action, NULL);
}

/* Call WHAT. False: T's file was cut short meanwhile. */
static bool guarded_call(struct traced *t, void (*what)(struct traced *t))
{
    if (sigsetjmp(guard, 1)) {
        guarded = 0;
        t->collector->in_words = false;
        return false;
    }
    guarded = 1;
    what(t);
    guarded = 0;
    return true;
}

static void cut_short(struct traced *t)
{
    if (t->broken)
        return;
    t->broken = true;
    guarded_call(t, traced_abandon);
    collector_loss(t->collector, t->row.process_id, 0, collector_now_ns(t->collector), 0,
                   "ring: the file was cut short while it was read; nothing more of this process was taken");
}

static size_t drained_words;
static unsigned drained_fullest;

static void drain(struct traced *t)
{
    drained_words = traced_drain(t, &drained_fullest);
}

/* Words taken; *FULLEST as traced_drain. */
static size_t guarded_drain(struct traced *t, unsigned *fullest)
{
    struct collector *c = t->collector;

    drained_words = 0;
    drained_fullest = *fullest;
    if (!guarded_call(t, drain))
        cut_short(t);
    *fullest = drained_fullest;
    c->state.header->last_ns = c->decode.last_ns;
    return drained_words;
}

/* ---- small things ---- */

enum { NESTED_AT = 48 /* bytes of a file's name at most, before a nested process's "@OFFSET" */ };

static void nested_name(char name[64], const char *file, uint64_t offset)
{
    snprintf(name, 64, "%.*s@%llx", (int)strcspn(file, "@"), file, (unsigned long long)offset);
}

static uint64_t session_clock(const struct collector *c)
{
    return c->session->file->clock == SESSION_MONOTONIC ? clock_monotonic_ns() : clock_counter();
}

uint64_t collector_now_ns(const struct collector *c)
{
    return decode_ns(&c->decode, session_clock(c));
}

void collector_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id, uint32_t thread_id, uint64_t at_ns,
                        uint64_t events, const char *cause)
{
    recorder_loss(c->recorder, &(struct recorder_loss){.loss_id = loss_id, .at_ns = at_ns, .events = events,
                                                       .process_id = process_id, .thread_id = thread_id}, cause);
    if (!c->in_words) /* every decoder has committed what it said before */
        c->state.rows->sure = c->state.rows->end;
}

void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                    const char *cause)
{
    collector_loss_row(c, c->state.header->next_loss++, process_id, thread_id, at_ns, events, cause);
}

uint32_t collector_process_id(struct collector *c, uint32_t pid, uint64_t given)
{
    struct traced **link = &c->traced, *command = c->command;
    uint32_t id = c->resumed && given < c->state.header->next_process ? (uint32_t)given : 0;

    if (command && (id ? id == command->row.process_id : pid == command->row.pid)) {
        id = command->row.process_id;
        while (*link != command)
            link = &(*link)->next;
        *link = command->next;
        traced_free(command);
        c->command = NULL;
    }
    return id ? id : c->state.header->next_process++;
}

/* ---- processes ---- */

static struct traced *find_pid(struct collector *c, uint32_t pid, const struct traced *except)
{
    for (struct traced *t = c->traced; t; t = t->next)
        if (t->row.pid == pid && t != except && !t->row.ended)
            return t;
    return NULL;
}

static void process_ended(struct run *run, struct traced *t, uint64_t end_ns)
{
    unsigned fullest = 0;

    guarded_drain(t, &fullest);
    if (!guarded_call(t, traced_finish))
        cut_short(t);
    t->row.ended = true;
    t->row.end_ns = end_ns > run->c.decode.last_ns ? end_ns : run->c.decode.last_ns;
    t->changed = true;
    traced_say(t);
}

/* How it ended: the kernel tells anybody who watched (Linux 6.15), once its
 * parent has taken notice of the death, which may be a while later. */
static void exit_status(struct traced *t)
{
    struct {
        uint64_t mask, cgroup;
        uint32_t pid, tgid, ppid, ids[8];
        int32_t exit_code;
        uint32_t coredump[2];
    } info = {.mask = 1 << 3};
    bool told;

    if (t->pidfd < 0)
        return;
    told = ioctl(t->pidfd, _IOWR(0xFF, 11, char[64]), &info) == 0;
    if (told && !(info.mask & 1 << 3))
        return;
    if (told && !t->row.has_status) {
        t->row.has_status = t->changed = true;
        t->row.exit_signal = WIFSIGNALED(info.exit_code) ? WTERMSIG(info.exit_code) : 0;
        t->row.exit_code = WIFEXITED(info.exit_code) ? WEXITSTATUS(info.exit_code) : 0;
    }
    close(t->pidfd);
    t->pidfd = -1;
}

/* Ask again for those whose parents were slow. True: some are still missing. */
static bool exit_statuses(struct collector *c)
{
    bool missing = false;

    for (struct traced *t = c->traced; t; t = t->next)
        if (t->row.ended && t->pidfd >= 0) {
            exit_status(t);
            missing |= t->pidfd >= 0;
        }
    return missing;
}

static void command_status(struct run *run, struct traced *t)
{
    t->row.has_status = run->status >= 0;
    t->row.exit_signal = WIFSIGNALED(run->status) ? WTERMSIG(run->status) : 0;
    t->row.exit_code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 0;
}

/* Who started it: the process that it was forked from is in its file; else the
 * nearest ancestor that we know. */
static void find_parent(struct run *run, struct traced *t)
{
    uint32_t pid = t->parent_pid;
    uint64_t started;

    for (int i = 0; i < 32 && pid > 1 && !t->row.parent_process_id; i++) {
        struct traced *parent = find_pid(&run->c, pid, t);
        if (parent)
            t->row.parent_process_id = parent->row.process_id;
        else if (!process_stat(pid, &pid, &started))
            break;
    }
}

/* Pythons that could not join, descendants of the command as far as can be seen. */
static void absent_new(struct run *run)
{
    struct collector *c = &run->c;
    struct absent sender;

    for (int i = 0; i < ABSENT_A_ROUND && run->absent_told < ABSENT_MAX && absent_next(run->absent, &sender); i++) {
        struct traced *ancestor = NULL;
        uint32_t pid = sender.pid;
        uint64_t started;
        char cause[200];
        for (int up = 0; up < 32 && pid > 1 && !ancestor && process_stat(pid, &pid, &started); up++)
            ancestor = find_pid(c, pid, NULL);
        if (ancestor) {
            run->absent_told++;
            snprintf(cause, sizeof cause, "process: Python process %u of user %u may not join the recording of user %u, or does not "
                     "see its directory; nothing of it was recorded", sender.pid, sender.uid, (unsigned)geteuid());
            collector_loss(c, ancestor->row.process_id, 0, collector_now_ns(c), 0, cause);
        }
        absent_answer(run->absent, &sender);
    }
}

static bool process_new(struct run *run, const char *name, bool spill)
{
    struct collector *c = &run->c;
    struct traced *t, *before;
    bool retry = false;
    uint32_t parent;

    for (t = c->traced; t; t = t->next)
        if (!strcmp(t->name, name))
            return true;
    if (sigsetjmp(guard, 1)) {
        guarded = 0;
        collector_loss(c, 0, 0, collector_now_ns(c), 0,
                       "ring: a process's file was cut short when it was opened; nothing of the process was taken");
        return true;
    }
    guarded = 1;
    t = traced_open(c, spill ? SESSION_SPILL : SESSION_MAIN, name, &retry);
    if (t && c->resumed && atomic_load(&t->file->finished)) { /* opened for the names that its children know by its ids */
        t->row.ended = true;
        traced_finish(t);
        t->changed = false;
    }
    guarded = 0;
    if (!t)
        return !retry;
    if (!t->started && !process_stat(t->row.pid, &parent, &t->started)) /* it could not read that itself */
        t->started = 0;
    /* The same process after an exec: the image before it has ended. */
    before = find_pid(c, t->row.pid, t);
    if (before && before->started == t->started) {
        t->row.parent_process_id = before->row.process_id;
        t->pidfd = before->pidfd;
        before->pidfd = -1;
        process_ended(run, before, t->row.start_ns);
    }
    t->next = c->traced;
    c->traced = t;
    find_parent(run, t);
    if (t->pidfd < 0 && !t->row.ended)
        t->pidfd = process_watch(t->row.pid, t->started);
    traced_say(t);
    return true;
}

/* Processes whose extents lie in the file of T and that it does not know of yet. */
static void nested_new(struct run *run, struct traced *t)
{
    uint64_t *offsets = NULL;
    volatile uint64_t newest = 0;
    size_t count = 0;

    if (t->broken || !t->root)
        return;
    if (sigsetjmp(guard, 1) == 0) {
        guarded = 1;
        newest = atomic_load_explicit(&t->root->nested, memory_order_acquire);
    }
    guarded = 0;
    if (newest == t->nested)
        return;
    count = traced_nested(t->fd, newest, t->nested, &offsets);
    t->nested = newest;
    for (size_t i = 0; i < count; i++) {
        char name[sizeof t->name];
        nested_name(name, t->name, offsets[i]);
        process_new(run, name, t->place == SESSION_SPILL);
    }
    free(offsets);
}

/* A note that an interpreter of no use to us left, or a process without room. */
static void note_new(struct run *run, const char *name)
{
    struct collector *c = &run->c;
    int pid = atoi(name), fd = session_file(c->session, SESSION_MAIN, name, O_RDONLY);
    char text[256] = "", cause[400];
    ssize_t got;

    if (fd < 0)
        return; /* it was said by the collector before us */
    got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    if (strstr(name, ".lost")) {
        const char *error = strrchr(name, '-');
        snprintf(cause, sizeof cause, "process: no ring could be made for process %d (%s); nothing of it was recorded", pid,
                 strerror(error ? atoi(error + 1) : 0));
    } else {
        snprintf(cause, sizeof cause, LOSS_INTERPRETER "process %d is %s, for which there is no extension; nothing of it was recorded",
                 pid, text);
        if (!c->state.header->unsupported[0])
            snprintf(c->state.header->unsupported, sizeof c->state.header->unsupported, "%s", text);
    }
    collector_loss(c, 0, 0, collector_now_ns(c), 0, cause);
    unlinkat(c->session->place[SESSION_MAIN], name, 0); /* said once */
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

static void file_new(struct run *run, const char *name, bool spill)
{
    if (strlen(name) >= NESTED_AT)
        return;
    if (ends_with(name, ".ring") && !process_new(run, name, spill)) {
        struct pending *p = calloc(1, sizeof *p);
        if (p) {
            *p = (struct pending){.next = run->pending, .spill = spill};
            memcpy(p->name, name, strlen(name) + 1);
            run->pending = p;
        }
    } else if (ends_with(name, ".lost")) {
        note_new(run, name);
    }
}

/* Notes are read when they are whole (IN_CLOSE_WRITE), files when their header is. */
static void files_new(struct run *run)
{
    char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct pending **link = &run->pending;
    ssize_t got;

    while (*link) {
        struct pending *p = *link;
        if (process_new(run, p->name, p->spill)) {
            *link = p->next;
            free(p);
        } else {
            link = &p->next;
        }
    }
    while ((got = read(run->watch, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + got; ) {
            struct inotify_event *event = (struct inotify_event *)at;
            if (event->len && event->mask & IN_CREATE)
                file_new(run, event->name, event->wd == run->spill_watch);
            else if (event->len && event->mask & IN_CLOSE_WRITE && ends_with(event->name, ".unsupported"))
                note_new(run, event->name);
            at += sizeof *event + event->len;
        }
}

/* ---- the loop ---- */

/* Nanoseconds per tick, measured since the collector began; waits until the
 * measure is good. The program's start-up takes longer than that. */
static void calibrate(struct run *run)
{
    struct collector *c = &run->c;
    struct session_file *file = c->session->file;
    uint64_t ticks, ns;

    if (c->decode.ns_per_tick_32)
        return;
    if (file->clock == SESSION_MONOTONIC) {
        ticks = ns = 1;
    } else {
        while (clock_monotonic_ns() - run->ns_then < CALIBRATE_NS)
            usleep(1000);
        /* The reading that was interrupted least. */
        uint64_t best = UINT64_MAX;
        ticks = ns = 1;
        for (int i = 0; i < 8; i++) {
            uint64_t before = clock_counter(), now = clock_monotonic_ns(), after = clock_counter();
            if (after - before < best) {
                best = after - before;
                ticks = before + (after - before) / 2 - run->counter_then;
                ns = now - run->ns_then;
            }
        }
    }
    file->ns_per_tick_32 = c->decode.ns_per_tick_32 = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}

static bool has_left(const struct traced *t)
{
    return t->file && !t->broken && atomic_load(&t->file->left);
}

static void say_totals(struct collector *c)
{
    for (uint32_t id = 1; id < c->decode.total_count; id++) {
        struct decode_total *total = &c->decode.totals[id];
        if (!total->changed)
            continue;
        recorder_total(c->recorder, id, total->calls, total->total_ns, total->self_ns, total->raised);
        total->changed = false;
    }
}

/* Nobody tells any more what becomes of the command. */
static void orphaned(struct run *run)
{
    struct state_header *header = run->c.state.header;

    if (run->orphan)
        return;
    run->orphan = true;
    if (run->orders >= 0)
        close(run->orders);
    run->orders = -1;
    run->command_watch = process_watch(header->command, header->command_started);
}

/* Is the command still there, and in it something that we record? */
static bool command_goes_on(struct run *run)
{
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (t->row.pid == (uint32_t)run->command && !t->row.ended && has_left(t))
            return false;
    return process_lives(run->command_watch);
}

static void commit_sometimes(struct run *run, bool now)
{
    struct collector *c = &run->c;
    uint64_t at = clock_monotonic_ns();

    if (!now && at - run->last_commit < COMMIT_NS)
        return;
    exit_statuses(c);
    for (struct traced *t = c->traced; t; t = t->next)
        traced_say(t);
    say_totals(c);
    recorder_meta_integer(c->recorder, "span_ns", (int64_t)c->decode.last_ns);
    if (recorder_commit(c->recorder))
        for (struct traced *t = c->traced; t; t = t->next)
            guarded_call(t, traced_committed);
    if (getppid() != run->parent)
        orphaned(run);
    run->last_commit = clock_monotonic_ns();
}

static void orders_take(struct run *run)
{
    struct collector *c = &run->c;
    struct collector_order order;
    ssize_t got = -1;
    uint32_t parent;

    while (run->orders >= 0 && (got = read(run->orders, &order, sizeof order)) == sizeof order) {
        if (order.what == ORDER_BEGAN) {
            run->command = order.pid;
            c->state.header->command = (uint32_t)order.pid;
            process_stat((uint32_t)order.pid, &parent, &c->state.header->command_started);
            if (c->command) {
                c->command->row.pid = (uint32_t)order.pid;
                c->command->changed = true;
            }
        } else if (order.what == ORDER_ENDED) {
            run->ended = true;
            run->status = order.status;
            run->ended_ns = clock_monotonic_ns();
        } else if (order.what == ORDER_STOP) {
            run->stop = true;
        } else if (order.what == ORDER_DONE) {
            run->stop = run->ended = run->done = true;
            run->status = -1;
            run->ended_ns = clock_monotonic_ns();
        }
    }
    if (got == 0)
        orphaned(run);
    if (run->orphan && !run->ended && !command_goes_on(run)) {
        run->ended = true;
        run->status = -1;
        run->ended_ns = clock_monotonic_ns();
    }
}

/* Is this process worth waiting for, now that the command has ended? */
static bool is_waited_for(struct run *run, struct traced *t, uint64_t now)
{
    uint64_t since = now - run->ended_ns;
    pid_t session = getsid((pid_t)t->row.pid);

    if (has_left(t))
        return false;
    if (since < DETACHED_NS)
        return true;
    if (session < 0 || session != run->c.state.header->session_id)
        return false; /* a daemon */
    return now - (t->last_words_ns > run->ended_ns ? t->last_words_ns : run->ended_ns) < IDLE_NS;
}

/* The command has ended: true while some child of it should still be recorded. */
static bool stragglers(struct run *run)
{
    uint64_t now = clock_monotonic_ns();
    uint32_t waiting = 0, pid = 0;

    if (run->stop)
        return false;
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (!t->row.ended && is_waited_for(run, t, now)) {
            waiting++;
            pid = t->row.pid;
        }
    if (run->pending && now - run->ended_ns < DETACHED_NS)
        waiting++;
    if (waiting && !run->said && !run->orphan && now - run->ended_ns > SAY_NS) {
        say_error("the command has ended; still recording %u process%s that outlived it (pid %u%s); Ctrl-C stops waiting",
                  waiting, waiting == 1 ? "" : "es", pid, waiting == 1 ? "" : ", ...");
        run->said = true;
    }
    return waiting > 0;
}

/* Sleep until something happens or MS milliseconds; mark processes that ended. */
static void wait_for_events(struct run *run, int milliseconds)
{
    static struct pollfd *fds;
    static struct traced **whose;
    static size_t room;
    size_t count = 1;

    for (struct traced *t = run->c.traced; t; t = t->next)
        count++;
    if (count > room) {
        struct pollfd *more = realloc(fds, 2 * count * sizeof *fds);
        if (more)
            fds = more;
        struct traced **more_whose = realloc(whose, 2 * count * sizeof *whose);
        if (more_whose)
            whose = more_whose;
        if (!more || !more_whose) {
            usleep(1000);
            return;
        }
        room = 2 * count;
    }
    count = 0;
    fds[count++] = (struct pollfd){run->orders, POLLIN, 0};
    for (struct traced *t = run->c.traced; t; t = t->next)
        if (!t->row.ended) {
            whose[count] = t;
            fds[count++] = (struct pollfd){t->pidfd, POLLIN, 0};
        }
    poll(fds, count, milliseconds);
    for (size_t i = 1; i < count; i++) {
        struct traced *t = whose[i];
        if (t->pidfd >= 0 && !(fds[i].revents & (POLLIN | POLLHUP | POLLERR)))
            continue;
        if (t->row.pid == (uint32_t)run->command && !t->row.has_status) {
            if (!run->ended)
                continue; /* its parent tells */
            command_status(run, t);
            if (run->orphan)
                exit_status(t);
        } else {
            exit_status(t);
        }
        process_ended(run, t, collector_now_ns(&run->c));
    }
}

static void drain_until_end(struct run *run)
{
    int idle = 0;

    for (;;) {
        unsigned fullest = 0;
        size_t words = 0;
        bool go_on = true;

        orders_take(run);
        files_new(run);
        absent_new(run);
        for (struct traced *t = run->c.traced; t; t = t->next) {
            words += guarded_drain(t, &fullest);
            nested_new(run, t);
        }
        commit_sometimes(run, false);
        idle = words ? 0 : idle + 1;
        if (run->ended) {
            wait_for_events(run, 0); /* who has ended meanwhile is none: the drain may have taken long */
            go_on = stragglers(run);
        }
        /* Half full already: it fills while we sleep. */
        wait_for_events(run, fullest > 64 || !go_on ? 0 : idle > IDLE_ROUNDS ? IDLE_POLL_MS : POLL_MS);
        if (!go_on)
            break;
    }
}

/* ---- the end ---- */

static void say_disk_full(struct collector *c, char *error, size_t room)
{
    char cause[256];

    if (!c->pages.error)
        return;
    snprintf(cause, sizeof cause, "disk: the trace could not grow (%s); the frames after that are not in it",
             strerror(c->pages.error));
    collector_loss(c, 0, 0, collector_now_ns(c), c->pages.lost, cause);
    snprintf(error, room, "%s: %s; the program went on, %llu frames could not be stored, the trace holds those before",
             c->session->trace, strerror(c->pages.error), (unsigned long long)c->pages.lost);
}

static void finish(struct run *run, struct collector_result *result)
{
    struct collector *c = &run->c;
    uint64_t now = collector_now_ns(c);
    char cause[200];
    const char *why;
    int64_t frames;

    atomic_store(&c->session->file->closed, 1);
    for (struct traced *t = c->traced; t; t = t->next) {
        unsigned fullest = 0;
        if (t->row.ended)
            continue;
        guarded_drain(t, &fullest);
        if (!run->done && !has_left(t)) {
            snprintf(cause, sizeof cause, "recording ended: process %u was still running", t->row.pid);
            collector_loss(c, t->row.process_id, 0, now, 0, cause);
            result->still_running++;
        }
        if (!guarded_call(t, traced_finish))
            cut_short(t);
    }
    for (int i = 0; i < STATUS_TRIES && exit_statuses(c); i++)
        usleep(1000);
    frames = frame_pages_finish(&c->pages);
    say_disk_full(c, result->error, sizeof result->error);
    result->has_loss_of_frames = c->pages.lost > 0;
    if (frames < 0) {
        if (!result->error[0])
            snprintf(result->error, sizeof result->error, "%s: %s", c->session->frames, strerror(c->pages.error));
        goto done;
    }
    result->frames = (uint64_t)frames;
    recorder_meta_integer(c->recorder, "frame_count", frames);
    recorder_meta_integer(c->recorder, "open_frame_count", (int64_t)c->decode.open_frames);
    commit_sometimes(run, true);
    result->missing = recorder_missing(c->recorder, result->worst, sizeof result->worst);
    why = recorder_error(c->recorder);
    if (why && !result->error[0])
        snprintf(result->error, sizeof result->error, "%s: %s", c->session->trace, why);
    recorder_close(c->recorder);
    c->recorder = NULL;
    frame_pages_close(&c->pages);
    if (recorder_join(c->session->trace, c->session->frames, c->resumed ? "recovered" : "complete", &why)) {
        snprintf(result->error, sizeof result->error,
                 "%s: cannot be finished: %s; make room, then `dyntrace fsck --recover %s`", c->session->trace, why,
                 c->session->trace);
        result->frames = 0;
    }
done:
    result->processes = c->processes;
    snprintf(result->torch_note, sizeof result->torch_note, "%s", c->torch_note);
    snprintf(result->unsupported, sizeof result->unsupported, "%s", c->state.header->unsupported);
}

static void collector_close(struct run *run)
{
    struct collector *c = &run->c;

    while (c->traced) {
        struct traced *t = c->traced;
        c->traced = t->next;
        traced_free(t);
    }
    while (run->pending) {
        struct pending *p = run->pending;
        run->pending = p->next;
        free(p);
    }
    if (run->absent >= 0)
        close(run->absent);
    recorder_close(c->recorder);
    if (c->pages.window)
        frame_pages_close(&c->pages);
    collector_state_close(&c->state);
    free(c->decode.totals);
    free(c->fact);
}

/* Everything between the session's files and a working collector. */
static int collector_open(struct run *run, struct session *session, bool resume, const char **error)
{
    struct collector *c = &run->c;
    int fd;

    *c = (struct collector){.session = session, .resumed = resume, .state.fd = -1, .state.rows_fd = -1, .pages.fd = -1};
    run->counter_then = clock_counter();
    run->ns_then = clock_monotonic_ns();
    guard_install(c);
    if (collector_state_open(&c->state, session, resume)) {
        *error = strerror(errno);
        run->damaged = resume && (errno == EINVAL || errno == ENOENT);
        return -1;
    }
    fd = open(session->frames, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || frame_pages_open(&c->pages, fd, c->state.window, resume)) {
        *error = strerror(errno);
        return -1;
    }
    c->recorder = recorder_open(session->trace, error);
    if (!c->recorder)
        return -1;
    c->decode = (struct decode_session){
        .pages = &c->pages, .start_clock = session->file->start_clock,
        .ns_per_tick_32 = session->file->ns_per_tick_32, .min_duration_ns = session->file->min_duration_ns,
        .logged = &c->state.rows->end, .last_ns = c->state.header->last_ns};
    recorder_log(c->recorder, c->state.rows, c->state.rows_fd);
    if (resume && !recorder_replay(c->recorder, collector_state_logged(&c->state))) {
        *error = recorder_error(c->recorder);
        return -1;
    }
    run->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (run->watch < 0 || inotify_add_watch(run->watch, session->directory, IN_CREATE | IN_CLOSE_WRITE) < 0) {
        *error = strerror(errno);
        return -1;
    }
    run->spill_watch = session->place[SESSION_SPILL] >= 0 ? inotify_add_watch(run->watch, session->spill, IN_CREATE) : -1;
    return 0;
}

static void write_stats(const struct collector *c, const struct collector_result *result)
{
    const char *path = getenv("DYNTRACE_STATS");
    struct rusage usage;
    FILE *out = path && *path ? fopen(path, "wxe") : NULL; /* a new file: what is there stays, whatever the variable says */

    if (!out)
        return;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(out, "{\"collector_cpu_s\": %.6f, \"collector_peak_rss_kb\": %ld, \"frames\": %llu, \"waits\": %llu, \"wait_ns\": %llu}\n",
            (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            usage.ru_maxrss, (unsigned long long)result->frames, (unsigned long long)c->waits,
            (unsigned long long)c->wait_ns);
    fclose(out);
}

/* The command's row, while no interpreter has claimed it. */
static bool command_new(struct run *run, uint32_t process_id, const char *argv)
{
    struct collector *c = &run->c;

    c->command = calloc(1, sizeof *c->command);
    if (!c->command)
        return false;
    c->command->collector = c;
    c->command->fd = c->command->pidfd = -1;
    c->command->argv = argv && !c->session->file->no_argv ? strdup(argv) : NULL;
    c->command->row = (struct recorder_process){
        .process_id = process_id, .pid = c->state.header->command, .rank = -1, .local_rank = -1, .mode = "none"};
    c->traced = c->command;
    return true;
}

/* A new recording's first rows. False: not written. */
static bool begin(struct run *run, const char *argv)
{
    struct collector *c = &run->c;
    struct session_file *file = c->session->file;
    struct state_header *header = c->state.header;
    uint32_t parent;
    char host[256] = "";

    if (!command_new(run, header->next_process++, argv))
        return false;
    header->session_id = getsid(getppid());
    header->parent = (uint32_t)getppid();
    process_stat(header->parent, &parent, &header->parent_started);
    gethostname(host, sizeof host - 1);
    recorder_meta(c->recorder, "dyntrace_version", DYNTRACE_VERSION);
    recorder_meta(c->recorder, "state", "recording");
    recorder_meta(c->recorder, "host", host);
    recorder_meta(c->recorder, "command", argv);
    recorder_meta(c->recorder, "values", session_values_word((enum session_values)file->values));
    recorder_meta(c->recorder, "clock", file->clock == SESSION_MONOTONIC ? "monotonic" : "tsc");
    recorder_meta(c->recorder, "session", c->session->directory);
    recorder_meta_integer(c->recorder, "started_unix_ns", (int64_t)file->start_unix_ns);
    recorder_meta_integer(c->recorder, "min_duration_ns", (int64_t)file->min_duration_ns);
    return recorder_commit(c->recorder);
}

/* ---- after a kill ---- */

struct left_file {
    uint64_t born; /* its header's born_clock */
    bool spill;
    char name[sizeof ((struct traced *)NULL)->name];
};

static int by_birth(const void *a, const void *b)
{
    uint64_t one = ((const struct left_file *)a)->born, other = ((const struct left_file *)b)->born;

    return one < other ? -1 : one > other;
}

struct left_files {
    struct left_file *file; /* owned */
    size_t count;
};

/* The process at offset AT of FD, whose name is NAME. */
static void left_add(struct left_files *files, int fd, uint64_t at, const char *name, bool spill, uint64_t *nested)
{
    struct process_file header = {0};
    struct left_file *more = realloc(files->file, (files->count + 1) * sizeof *more);

    *nested = 0;
    if (more)
        files->file = more;
    if (!more || pread(fd, &header, sizeof header, (off_t)at) < 0)
        return;
    *nested = header.nested;
    /* One that is being made has no birth yet; its children come later still. */
    more[files->count] = (struct left_file){.born = header.born_clock ? header.born_clock : UINT64_MAX, .spill = spill};
    if (at)
        nested_name(more[files->count].name, name, at);
    else
        snprintf(more[files->count].name, sizeof more->name, "%s", name);
    files->count++;
}

/* Process files oldest first, so that a fork's parent is there before it. */
static void files_again(struct run *run)
{
    struct session *session = run->c.session;
    struct left_files files = {0};

    for (int place = 0; place < SESSION_PLACES && session->place[place] >= 0; place++) {
        int again = openat(session->place[place], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = again >= 0 ? fdopendir(again) : NULL;
        struct dirent *entry;
        while (directory && (entry = readdir(directory))) {
            uint64_t nested, none, *offsets;
            size_t count;
            int fd;
            if (ends_with(entry->d_name, ".lost") || ends_with(entry->d_name, ".unsupported"))
                note_new(run, entry->d_name);
            if (!ends_with(entry->d_name, ".ring") || strlen(entry->d_name) >= NESTED_AT)
                continue;
            fd = session_file(session, (enum session_place)place, entry->d_name, O_RDONLY);
            if (fd < 0)
                continue;
            left_add(&files, fd, 0, entry->d_name, place == SESSION_SPILL, &nested);
            count = traced_nested(fd, nested, 0, &offsets);
            for (size_t i = 0; i < count; i++)
                left_add(&files, fd, offsets[i], entry->d_name, place == SESSION_SPILL, &none);
            free(offsets);
            close(fd);
        }
        if (directory)
            closedir(directory);
        else if (again >= 0)
            close(again);
    }
    if (files.count)
        qsort(files.file, files.count, sizeof *files.file, by_birth);
    for (size_t i = 0; i < files.count; i++)
        if (strchr(files.file[i].name, '@'))
            process_new(run, files.file[i].name, files.file[i].spill);
        else
            file_new(run, files.file[i].name, files.file[i].spill);
    free(files.file);
}

static void total_again(void *context, uint32_t code_id, const uint64_t totals[4])
{
    struct collector *c = context;

    decode_total_set(&c->decode, code_id, &(struct decode_total){totals[0], totals[1], totals[2], totals[3], false});
}

/* Carry on where the last collector was. */
static void carry_on(struct run *run)
{
    struct collector *c = &run->c;
    uint64_t last_ns = c->decode.last_ns;
    bool lives = false;

    run->command = (pid_t)c->state.header->command;
    recorder_totals_read(c->recorder, total_again, c);
    command_new(run, 1, NULL);
    files_again(run);
    for (struct traced *t = c->traced; t; t = t->next) {
        unsigned fullest = 0;
        if (t->row.ended || t == c->command)
            continue;
        if (process_lives(t->pidfd)) {
            lives = true;
            continue;
        }
        while (guarded_drain(t, &fullest) && !t->broken)
            ;
        if (t->row.pid == (uint32_t)run->command && !run->orphan)
            continue; /* its parent tells */
        exit_status(t);
        process_ended(run, t, c->decode.last_ns);
    }
    collector_loss(c, 0, 0, last_ns, 0,
                   lives ? LOSS_KILLED ", and another took its place"
                         : LOSS_KILLED "; this trace was finished from what it and the programs left");
}

/* What the last collector died over may have been the very end. */
static bool is_finished(struct session *session, struct collector_result *result)
{
    const char *error = NULL;

    if (recorder_finished(session->trace)) {
        unlink(session->frames);
    } else if (recorder_finished(session->frames)) {
        if (recorder_publish(session->trace, session->frames, &error))
            snprintf(result->error, sizeof result->error, "%s: cannot be recovered: %s", session->trace, error);
    } else {
        return false;
    }
    if (!result->error[0])
        recorder_mend(session->trace, &result->frames, &result->processes);
    return true;
}

/* ---- a collector's life ---- */

/* Nobody hears what it made: then it clears up itself. */
static int told(struct session *session, int pipe, const struct collector_result *result)
{
    if (pipe >= 0 && write(pipe, result, sizeof *result) == sizeof *result)
        return 0;
    if (!result->error[0] || result->frames)
        session_remove(session);
    return 1;
}

int collector_run(struct session *session, const struct collector_start *start)
{
    struct run run = {.c = {.state.fd = -1, .state.rows_fd = -1, .pages.fd = -1}, .orders = start->orders, .watch = -1,
                      .spill_watch = -1, .command_watch = -1, .parent = getppid(), .absent = absent_open(session->directory)};
    struct collector *c = &run.c;
    struct collector_result result = {0};
    const char *error = NULL;
    bool resume = !start->argv, whole = session_whole(session);
    int window;

    if (resume && whole && is_finished(session, &result)) {
        if (start->result >= 0 && write(start->result, "R", 1) != 1)
            return 1;
        return told(session, start->result, &result);
    }
    if (whole && collector_open(&run, session, resume, &error) && !run.damaged)
        goto err;
    if (!whole || run.damaged) {
        window = session_file(session, SESSION_MAIN, "window", O_RDONLY);
        collector_close(&run);
        if (start->result >= 0 && write(start->result, "R", 1) != 1)
            return 1;
        salvage(session->trace, session->frames, window, &result.frames, &result.processes, result.error, sizeof result.error);
        if (whole)
            atomic_store(&session->file->closed, 1);
        return told(session, start->result, &result);
    }
    if (!resume) {
        c->state.window->first = start->first;
        c->state.window->root = start->root;
    }
    if (!resume && !begin(&run, start->argv)) {
        error = recorder_error(c->recorder);
        goto err;
    }
    if (run.orders < 0)
        orphaned(&run);
    if (start->result >= 0 && write(start->result, "R", 1) != 1)
        goto err;
    calibrate(&run);
    if (resume)
        carry_on(&run);
    if (run.orders >= 0)
        fcntl(run.orders, F_SETFL, O_NONBLOCK);
    drain_until_end(&run);
    finish(&run, &result);
    write_stats(c, &result);
    collector_close(&run);
    if (resume && !result.error[0])
        recorder_mend(session->trace, &result.frames, &result.processes);
    return told(session, start->result, &result);
err:
    snprintf(result.error, sizeof result.error, "%s: %s", session->trace, error ? error : "the parent is gone");
    collector_close(&run);
    if (start->result >= 0 && write(start->result, "E", 1) == 1 && write(start->result, &result, sizeof result)) {
        /* Said; if not, the parent is gone and nobody would hear it. */
    }
    return 1;
}

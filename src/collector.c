/* collector.c -- drains the rings of a session into its trace. See collector.h.
 *
 * Runs in: the collector.
 *
 *     until the command has ended and its children with it:
 *         new files in the session's directories -> struct traced
 *         drain every ring, then sleep about a millisecond
 *         now and then: totals and a commit, so that readers see something
 *     finish: close every decoder, the frame pages, join the two files
 *
 * The sleep is long enough that the collector does not fight the producer for
 * the cache line of `head`, and short beside the 25 ms that a ring holds at full
 * speed. */
#include "collector.h"

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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "say.h"

#define MS UINT64_C(1000000)
#define CALIBRATE_NS (10 * MS)   /* the counter is measured over at least this */
#define COMMIT_NS (250 * MS)     /* between commits of the small tables */
#define SAY_NS (500 * MS)        /* after the command's end: tell why we wait */
#define DETACHED_NS (1000 * MS)  /* what a daemon gets after the command's end */
#define IDLE_NS (5000 * MS)      /* what another child gets while it does nothing */

enum { POLL_MS = 1, IDLE_POLL_MS = 4, IDLE_ROUNDS = 64, STATUS_TRIES = 10 };

struct run {
    struct collector c;
    uint64_t counter_then, ns_then;  /* calibration began */
    int orders, result, watch;
    uint64_t last_commit;            /* CLOCK_MONOTONIC */
    pid_t command;
    bool ended, stop, said;
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

static void on_bus_error(int number)
{
    (void)number;
    if (guarded)
        siglongjmp(guard, 1);
    _exit(125);
}

static void guard_install(void)
{
    struct sigaction action = {.sa_handler = on_bus_error, .sa_flags = SA_NODEFER};

    sigaction(SIGBUS, &action, NULL);
}

static size_t guarded_drain(struct traced *t, unsigned *fullest)
{
    size_t words;

    if (sigsetjmp(guard, 1)) {
        if (sigsetjmp(guard, 1) == 0)
            traced_abandon(t);
        t->broken = true;
        guarded = 0;
        collector_loss(t->collector, t->row.process_id, 0, collector_now_ns(t->collector), 0,
                       "ring: the file was cut short while it was read; nothing more of this process was taken");
        return 0;
    }
    guarded = 1;
    words = traced_drain(t, fullest);
    t->collector->state.header->last_ns = t->collector->decode.last_ns;
    guarded = 0;
    return words;
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

void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                    const char *cause)
{
    c->losses++;
    if (strncmp(cause, "stall:", 6) && strncmp(cause, "interpreter:", 12) && (!c->missing++ || events > c->worst_events)) {
        char count[32] = "";
        c->worst_events = events;
        if (events)
            snprintf(count, sizeof count, " (%llu)", (unsigned long long)events);
        snprintf(c->worst, sizeof c->worst, "%s%s", cause, count);
    }
    recorder_loss(c->recorder, process_id, thread_id, at_ns, events, cause);
}

uint32_t collector_process_id(struct collector *c, uint32_t pid)
{
    struct traced **link = &c->traced, *command = c->command;
    uint32_t id;

    if (!command || command->row.pid != pid)
        return c->state.header->next_process++;
    id = command->row.process_id;
    while (*link != command)
        link = &(*link)->next;
    *link = command->next;
    traced_free(command);
    c->command = NULL;
    return id;
}

/* ---- processes ---- */

/* Fields of /proc/PID/stat: parent and start time. */
static bool proc_stat(uint32_t pid, uint32_t *parent, uint64_t *started)
{
    char path[64], buffer[1024], *field;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, buffer, sizeof buffer - 1);
    close(fd);
    if (got <= 0)
        return false;
    buffer[got] = 0;
    field = strrchr(buffer, ')');
    if (!field || sscanf(field + 1, " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
                         parent, started) != 2)
        return false;
    return true;
}

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
    if (sigsetjmp(guard, 1) == 0) {
        guarded = 1;
        traced_finish(t);
    }
    guarded = 0;
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
        else if (!proc_stat(pid, &pid, &started))
            break;
    }
}

static bool process_new(struct run *run, const char *name, bool spill)
{
    struct collector *c = &run->c;
    struct traced *t, *before;
    uint32_t parent;
    uint64_t started;
    bool retry = false;

    for (t = c->traced; t; t = t->next)
        if (!strcmp(t->name, name))
            return true;
    if (sigsetjmp(guard, 1)) {
        guarded = 0;
        return true;
    }
    guarded = 1;
    t = traced_open(c, spill ? SESSION_SPILL : SESSION_MAIN, name, &retry);
    guarded = 0;
    if (!t)
        return !retry;
    if (!t->started && !proc_stat(t->row.pid, &parent, &t->started)) /* it could not read that itself */
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
    if (t->pidfd < 0)
        t->pidfd = (int)syscall(SYS_pidfd_open, t->row.pid, 0);
    /* A pid that is somebody else's by now: ours has ended. */
    if (t->pidfd >= 0 && t->started && proc_stat(t->row.pid, &parent, &started) && started != t->started) {
        close(t->pidfd);
        t->pidfd = -1;
    }
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
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    if (strstr(name, ".lost")) {
        const char *error = strrchr(name, '-');
        snprintf(cause, sizeof cause, "process: no ring could be made for process %d (%s); nothing of it was recorded", pid,
                 strerror(error ? atoi(error + 1) : 0));
    } else {
        snprintf(cause, sizeof cause, "interpreter: process %d is %s, for which there is no extension; nothing of it was recorded",
                 pid, text);
        if (!c->unsupported[0])
            snprintf(c->unsupported, sizeof c->unsupported, "%s", text);
    }
    collector_loss(c, 0, 0, collector_now_ns(c), 0, cause);
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
static void files_new(struct run *run, int spill_watch)
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
                file_new(run, event->name, event->wd == spill_watch);
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

static void commit_sometimes(struct run *run, bool now)
{
    struct collector *c = &run->c;
    uint64_t at = clock_monotonic_ns();

    if (!now && at - run->last_commit < COMMIT_NS)
        return;
    exit_statuses(c);
    for (struct traced *t = c->traced; t; t = t->next)
        traced_say(t);
    if (!c->resumed)
        say_totals(c);
    recorder_meta_integer(c->recorder, "span_ns", (int64_t)c->decode.last_ns);
    recorder_commit(c->recorder);
    run->last_commit = clock_monotonic_ns();
}

static void orders_take(struct run *run)
{
    struct collector *c = &run->c;
    struct collector_order order;
    ssize_t got;

    while ((got = read(run->orders, &order, sizeof order)) == sizeof order) {
        if (order.what == ORDER_BEGAN) {
            run->command = order.pid;
            c->command->row.pid = (uint32_t)order.pid;
            c->command->changed = true;
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
    if (got == 0 && !run->ended) { /* the parent is gone; the command may go on */
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

    if (since < DETACHED_NS)
        return true;
    if (session < 0 || session != getsid(getppid()))
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
    if (waiting && !run->said && now - run->ended_ns > SAY_NS) {
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
    fds[count++] = (struct pollfd){run->ended ? -1 : run->orders, POLLIN, 0};
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
        } else {
            exit_status(t);
        }
        process_ended(run, t, collector_now_ns(&run->c));
    }
}

static void drain_until_end(struct run *run, int spill_watch)
{
    int idle = 0;

    for (;;) {
        unsigned fullest = 0;
        size_t words = 0;
        bool go_on = true;

        orders_take(run);
        files_new(run, spill_watch);
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
        if (!c->resumed && !run->done) {
            snprintf(cause, sizeof cause, "recording ended: process %u was still running", t->row.pid);
            collector_loss(c, t->row.process_id, 0, now, 0, cause);
            result->still_running++;
        }
        if (sigsetjmp(guard, 1) == 0) {
            guarded = 1;
            traced_finish(t);
        }
        guarded = 0;
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
    result->losses = c->losses;
    result->missing = c->missing;
    snprintf(result->worst, sizeof result->worst, "%s", c->worst);
    result->processes = c->processes;
    snprintf(result->torch_note, sizeof result->torch_note, "%s", c->torch_note);
    snprintf(result->unsupported, sizeof result->unsupported, "%s", c->unsupported);
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
    recorder_close(c->recorder);
    if (c->pages.window)
        frame_pages_close(&c->pages);
    collector_state_close(&c->state);
    free(c->decode.totals);
}

/* Everything between the session's files and a working collector. */
static int collector_open(struct run *run, struct session *session, bool resume, const char **error)
{
    struct collector *c = &run->c;
    int fd;

    *c = (struct collector){.session = session, .resumed = resume, .state.fd = -1, .pages.fd = -1};
    run->counter_then = clock_counter();
    run->ns_then = clock_monotonic_ns();
    guard_install();
    if (collector_state_open(&c->state, session, resume)) {
        *error = strerror(errno);
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
        .ns_per_tick_32 = session->file->ns_per_tick_32, .min_duration_ns = session->file->min_duration_ns};
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

int collector_run(struct session *session, int orders, int result_pipe, const char *argv, uint32_t first, uint32_t root)
{
    struct run run = {.orders = orders, .result = result_pipe, .watch = -1};
    struct collector *c = &run.c;
    struct collector_result result = {0};
    char host[256] = "";
    const char *error = NULL;
    int spill_watch = -1;

    if (collector_open(&run, session, false, &error))
        goto err;
    c->state.window->first = first;
    c->state.window->root = root;
    run.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (run.watch < 0 || inotify_add_watch(run.watch, session->directory, IN_CREATE | IN_CLOSE_WRITE) < 0) {
        error = strerror(errno);
        goto err;
    }
    if (session->place[SESSION_SPILL] >= 0)
        spill_watch = inotify_add_watch(run.watch, session->spill, IN_CREATE);
    c->command = calloc(1, sizeof *c->command);
    if (!c->command) {
        error = "out of memory";
        goto err;
    }
    c->command->collector = c;
    c->command->fd = c->command->pidfd = -1;
    c->command->argv = session->file->no_argv ? NULL : strdup(argv);
    c->command->row = (struct recorder_process){
        .process_id = c->state.header->next_process++, .rank = -1, .local_rank = -1, .mode = "none"};
    c->traced = c->command;
    gethostname(host, sizeof host - 1);
    recorder_meta(c->recorder, "dyntrace_version", DYNTRACE_VERSION);
    recorder_meta(c->recorder, "state", "recording");
    recorder_meta(c->recorder, "host", host);
    recorder_meta(c->recorder, "command", argv);
    recorder_meta(c->recorder, "values", session_values_word((enum session_values)session->file->values));
    recorder_meta(c->recorder, "clock", session->file->clock == SESSION_MONOTONIC ? "monotonic" : "tsc");
    recorder_meta(c->recorder, "session", session->directory);
    recorder_meta_integer(c->recorder, "started_unix_ns", (int64_t)session->file->start_unix_ns);
    recorder_meta_integer(c->recorder, "min_duration_ns", (int64_t)session->file->min_duration_ns);
    if (!recorder_commit(c->recorder)) {
        error = recorder_error(c->recorder);
        goto err;
    }
    if (write(result_pipe, "R", 1) != 1)
        goto err;
    calibrate(&run);
    fcntl(orders, F_SETFL, O_NONBLOCK);
    drain_until_end(&run, spill_watch);
    finish(&run, &result);
    write_stats(c, &result);
    collector_close(&run);
    return write(result_pipe, &result, sizeof result) == sizeof result ? 0 : 1;
err:
    snprintf(result.error, sizeof result.error, "%s: %s", session->trace, error ? error : "the parent is gone");
    collector_close(&run);
    if (write(result_pipe, "E", 1) == 1 && write(result_pipe, &result, sizeof result)) {
        /* Said; if not, the parent is gone and nobody would hear it. */
    }
    return 1;
}

/* ---- recovery ---- */

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
    struct process_file header;
    struct left_file *more = realloc(files->file, (files->count + 1) * sizeof *more);

    *nested = 0;
    if (more)
        files->file = more;
    if (!more || pread(fd, &header, sizeof header, (off_t)at) != sizeof header)
        return;
    *nested = header.nested;
    more[files->count] = (struct left_file){.born = header.born_clock, .spill = spill};
    if (at)
        nested_name(more[files->count].name, name, at);
    else
        snprintf(more[files->count].name, sizeof more->name, "%s", name);
    files->count++;
}

/* Process files oldest first, so that a fork's parent is there before it. */
static void recover_processes(struct run *run)
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
        process_new(run, files.file[i].name, files.file[i].spill);
    free(files.file);
}

/* The command's status is known to the `run` that recovers its own collector. */
static void recover_status(struct run *run)
{
    struct traced *t = run->command > 0 ? find_pid(&run->c, (uint32_t)run->command, NULL) : NULL;

    if (t)
        command_status(run, t);
}

int collector_recover(struct session *session, pid_t command, int command_wait_status, struct collector_result *result)
{
    struct run run = {.orders = -1, .result = -1, .watch = -1, .ended = true, .command = command,
                      .status = command_wait_status};
    struct collector *c = &run.c;
    const char *error = NULL;
    int status = -1;

    *result = (struct collector_result){0};
    *c = (struct collector){.state.fd = -1, .pages.fd = -1};
    if (recorder_finished(session->trace)) { /* killed after its last step but one */
        unlink(session->frames);
        recorder_mend(session->trace, &result->frames);
        return 0;
    }
    if (recorder_finished(session->frames)) { /* killed before it */
        if (recorder_publish(session->trace, session->frames, &error)) {
            snprintf(result->error, sizeof result->error, "%s: cannot be recovered: %s", session->trace, error);
            goto done;
        }
        recorder_mend(session->trace, &result->frames);
        return 0;
    }
    if (collector_open(&run, session, true, &error)) {
        snprintf(result->error, sizeof result->error, "%s: cannot be recovered: %s", session->trace,
                 error ? error : "unknown error");
        goto done;
    }
    calibrate(&run);
    c->decode.last_ns = c->state.header->last_ns;
    recover_processes(&run);
    recover_status(&run);
    for (struct traced *t = c->traced; t; t = t->next) {
        unsigned fullest = 0;
        while (guarded_drain(t, &fullest) && !t->broken && t->pidfd < 0)
            ;
        if (t->pidfd < 0 && !t->row.ended)
            process_ended(&run, t, c->decode.last_ns);
    }
    collector_loss(c, 0, 0, c->decode.last_ns, 0,
                   "collector: it was killed; this trace was finished from what it and the programs left");
    finish(&run, result);
    if (!result->error[0]) {
        recorder_mend(session->trace, &result->frames);
        status = 0;
    }
done:
    collector_close(&run);
    return status;
}

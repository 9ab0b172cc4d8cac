/* collector/watch.c -- finds the processes of a recording, reads them, and notices their end. See
 * collector/watch.h. */
#include "collector/watch.h"

#include <setjmp.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "collector/process.h"
#include "vocabulary.h"

/* with --snapshot-on: how long to wait for the exit status of a process that has ended */
#define STATUS_NS UINT64_C(2000000000)

enum {
    ABSENT_A_ROUND = 4,
    ABSENT_MAX = 1000,
    ANCESTORS_MAX = 32,
    NESTED_MAX = 1 << 20 /* most nested processes in one file; a file with more is damaged */
};

/* ---- survive the SIGBUS that a program causes by cutting its file short ---- */

static sigjmp_buf after_bus_error;
static volatile sig_atomic_t is_protected;
static struct collector *protected_collector;

/* If a file of the program was cut short, jump out of the protected call. In the middle of SQLite,
 * or of a write to our own state, we cannot go on: exit, so that the next collector continues from
 * the last commit. */
static void leave_call_on_bus_error(int number, siginfo_t *info, void *context)
{
    if (is_protected && gettid() == getpid() && !recorder_in_sqlite &&
        !collector_state_contains_address(&protected_collector->state, info->si_addr) &&
        !counts_contains_address(&protected_collector->counts, info->si_addr))
        siglongjmp(after_bus_error, 1);
    _exit(125);
}

/* Call WHAT for process T. Returns false if a file of a program was cut short while it was read. */
static bool call_guarded_against_cut_files(void (*what)(struct traced *t), struct traced *t)
{
    /* 0: do not save the signal mask, because SIGBUS is not blocked in its handler */
    if (sigsetjmp(after_bus_error, 0)) {
        is_protected = 0;
        t->collector->in_words = false;
        return false;
    }
    is_protected = 1;
    what(t);
    is_protected = 0;
    return true;
}

/* ---- take the events of one process, and note its end ---- */

/* Call WHAT for process T. If T's file was cut short meanwhile, record a loss and read nothing more
 * from it. */
static void call_or_abandon_process(void (*what)(struct traced *t), struct traced *t)
{
    if (call_guarded_against_cut_files(what, t) || t->broken)
        return;
    t->broken = true;
    call_guarded_against_cut_files(traced_abandon, t);
    collector_record_loss(
        t->collector, t->row.process_id, 0,
        "ring: the file was cut short while it was read; nothing more of this process was taken");
}

void watch_drain_process(struct traced *t)
{
    if (t->file)
        call_or_abandon_process(traced_read_rings, t);
    else /* skip a process that has ended: a long recording has many of them */
        t->words = t->fullest = 0;
    t->collector->state.file->header.last_ns = t->collector->decode.last_ns;
}

void watch_finish_process(struct traced *t)
{
    watch_drain_process(t);
    call_or_abandon_process(traced_finish, t);
}

void watch_record_end(struct traced *t, uint64_t end_ns)
{
    uint64_t *last_ns = &t->collector->decode.last_ns;

    watch_drain_process(t);
    *last_ns = MAX(end_ns, *last_ns); /* the open frames of the process end at this time */
    call_or_abandon_process(traced_finish, t);
    t->row.ended = true;
    t->collector->changes++;
    recorder_put(t->collector->recorder, PROCESS_END,
                 {
                     .process_id = t->row.process_id,
                     .pid = t->row.pid ? t->row.pid : ROW_NONE,
                     .end_ns = (int64_t)*last_ns,
                     .exit_code = ROW_NONE,
                     .exit_signal = ROW_NONE,
                 });
    recorder_commit_if_unrepeatable(t->collector->recorder);
}

void watch_record_exit_status(struct traced *t)
{
    struct {
        uint64_t mask, cgroup;
        uint32_t pid, tgid, ppid, ids[8];
        int32_t exit_code;
        uint32_t coredump[2];
    } info = {.mask = 1 << 3};
    bool known;

    if (t->pidfd < 0)
        return;
    known = ioctl(t->pidfd, _IOWR(0xFF, 11, char[64]), &info) == 0;
    if (known && !(info.mask & 1 << 3))
        return;
    if (known)
        traced_write_status(t, info.exit_code);
    else
        traced_note_failure(
            t); /* the exit status is not known, because the kernel does not tell it */
    close(t->pidfd);
    t->pidfd = -1;
}

/* May process T be freed? Not while it has children in the list, or while children may come that
 * look for their parent. A file with nested processes is kept, because it has their rings and
 * facts. */
static bool can_free_process(const struct traced *t)
{
    bool is_closed = t->row.ended && !t->file && t->pidfd < 0;
    bool is_alone = !t->nested && !strchr(t->name, '@');

    if (t == t->collector->command || t->broken)
        return false;
    return is_closed && is_alone && !t->heirs;
}

void watch_free_ended_processes(struct watch *w)
{
    struct traced **link = &w->c->traced;

    for (struct traced *t = w->c->traced; t; t = t->next)
        call_guarded_against_cut_files(traced_mark_finished, t);
    /* free nothing, because pending files may be children of a process that has ended */
    if (w->pending.count)
        return;
    while (*link) { /* the list has children before their parents */
        struct traced *t = *link;
        if (can_free_process(t) && traced_delete_file(t)) {
            *link = t->next;
            traced_free(t);
        } else {
            link = &t->next;
        }
    }
}

bool watch_retry_exit_statuses(struct collector *c)
{
    bool missing = false;

    for (struct traced *t = c->traced; t; t = t->next)
        if (t->row.ended && t->pidfd >= 0) {
            watch_record_exit_status(t);
            missing |= t->pidfd >= 0;
            if (t->pidfd >= 0 && clock_monotonic_ns() - t->last_words_ns > STATUS_NS)
                /* the exit status stays unknown, because the parent has not reaped the process */
                traced_note_failure(t);
        }
    return missing;
}

/* ---- find new processes, and add them ---- */

static struct traced *find_process_by_pid(struct collector *c, uint32_t pid,
                                          const struct traced *except)
{
    if (!pid)
        return NULL;
    for (struct traced *t = c->traced; t; t = t->next) {
        bool runs = t->row.pid == pid && !t->row.ended;
        if (runs && t != except)
            return t;
    }
    return NULL;
}

/* Find process PID in the list; if it is not there, its nearest ancestor that is. EXCEPT is never
 * returned. */
static struct traced *find_nearest_recorded_ancestor(struct collector *c, uint32_t pid,
                                                     const struct traced *except)
{
    struct traced *found = NULL;
    uint64_t started;

    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !(found = find_process_by_pid(c, pid, except));
         i++)
        if (!process_read_parent_and_start(pid, &pid, &started))
            break;
    return found;
}

/* Open the socket on which Pythons report that they cannot join the session. Returns -1 if that
 * fails; nobody then learns of such Pythons. */
static int open_socket_for_unrecorded_pythons(const char *directory)
{
    struct sockaddr_un address;
    socklen_t length = absent_set_address(&address, directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    bool is_bound;

    if (fd < 0)
        return -1;
    is_bound = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
               bind(fd, (struct sockaddr *)&address, length) == 0;
    if (!is_bound) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool has_sender_credentials(const struct cmsghdr *head)
{
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
        return false;
    return head->cmsg_len == CMSG_LEN(sizeof(struct ucred));
}

/* Receive the next message on FD. Sets SENDER to the sender, whose pid is 0 if the kernel does not
 * tell it, and ADDRESS to where the sender waits for an answer. Returns false if there is no
 * message. */
static bool receive_unrecorded_python(int fd, struct ucred *sender, struct sockaddr_un *address,
                                      socklen_t *length)
{
    char byte,
        control[CMSG_SPACE(sizeof *sender)] __attribute__((aligned(__alignof__(struct cmsghdr))));
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_name = address,
                             .msg_namelen = sizeof *address,
                             .msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head;

    if (fd < 0 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0)
        return false;
    *length = message.msg_namelen;
    head = CMSG_FIRSTHDR(&message);
    if (head && has_sender_credentials(head))
        memcpy(sender, CMSG_DATA(head), sizeof *sender);
    return true;
}

/* Record a loss for each Python that could not join the session, if it is a descendant of a process
 * in the list. */
static void record_losses_of_unrecorded_pythons(struct watch *w)
{
    struct sockaddr_un address;
    struct ucred sender = {0};
    socklen_t length;

    for (int i = 0; i < ABSENT_A_ROUND && w->absent_told < ABSENT_MAX &&
                    receive_unrecorded_python(w->absent, &sender, &address, &length);
         i++) {
        uint32_t parent = 0;
        uint32_t pid = (uint32_t)sender.pid;
        uint64_t started;
        struct traced *ancestor = process_read_parent_and_start(pid, &parent, &started)
                                      ? find_nearest_recorded_ancestor(w->c, parent, NULL)
                                      : NULL;
        if (ancestor) {
            w->absent_told++;
            collector_record_loss(
                w->c, ancestor->row.process_id, 0,
                "process: Python process %u of user %u may not join the recording of "
                "user %u, or does not see its directory; it was not recorded",
                pid, sender.uid, (unsigned)geteuid());
        }
        if (length > sizeof(sa_family_t) &&
            sendto(w->absent, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, &address, length) < 0) {
            /* the answer cannot be sent, because the sender has stopped waiting */
        }
        sender = (struct ucred){0};
    }
}

/* Add process T, whose file is open, to the list of processes. */
static void add_process_to_list(struct collector *c, struct traced *t)
{
    struct traced *before = find_process_by_pid(c, t->row.pid, t);

    /* the same process has called exec, so the program that it ran before has ended */
    if (before && before->started == t->started) {
        t->row.parent_process_id = before->row.process_id;
        if (t->pidfd >= 0 && before->pidfd >= 0)
            close(before->pidfd);
        else if (before->pidfd >= 0)
            t->pidfd = before->pidfd;
        before->pidfd = -1;
        watch_record_end(before, t->row.start_ns);
    }
    t->next = c->traced;
    c->traced = t;
    c->changes++;
    if (t->row.ended) /* a killed collector has already written all rows of this process */
        return;
    /* If the process file does not tell which process forked T, the parent is the nearest ancestor
     * in the list. */
    if (!t->row.parent_process_id && (before = find_nearest_recorded_ancestor(c, t->parent_pid, t)))
        t->row.parent_process_id = before->row.process_id;
    traced_write_row(t);
}

/* Open the process whose file is NAME, unless it is in the list already. Returns false if the
 * file's header is not complete yet. */
static bool open_new_process(struct collector *c, const char *name, enum session_place place)
{
    struct traced *t;
    bool retry;

    for (t = c->traced; t; t = t->next)
        if (!strcmp(t->name, name))
            return true;
    if (!(t = traced_new(c, place, name)))
        return true;
    if (!call_guarded_against_cut_files(traced_open, t)) {
        t->opened = TRACED_NONE;
        collector_record_loss(
            c, 0, 0,
            "ring: a process's file was cut short when it was opened; nothing of the "
            "process was taken");
    }
    retry = t->opened == TRACED_NOT_YET;
    if (t->opened == TRACED_OPEN)
        add_process_to_list(c, t);
    else
        traced_free(t);
    return !retry;
}

void watch_find_nested(struct watch *w, struct traced *t)
{
    LIST(uint64_t) found = {0};
    struct process_file file;

    if (t->broken || !t->root)
        return;
    for (uint64_t at = t->nested_newest; at && at != t->nested; at = file.next_nested) {
        uint64_t *one;
        if (found.count >= NESTED_MAX || at % 4096 || at > INT64_MAX)
            break;
        if (pread(t->fd, &file, sizeof file, (off_t)at) != sizeof file)
            break;
        one = list_add(&found);
        if (!one)
            break;
        *one = at;
    }
    t->nested = t->nested_newest;
    for (size_t i = found.count; i--;) { /* oldest first */
        char name[SESSION_NAME];
        session_write_process_name(name, t->name, found.at[i]);
        open_new_process(w->c, name, t->place);
    }
    list_free(&found);
}

/* File NAME in the session reports a loss: an interpreter for which we have no extension, or a
 * process that could not make its file. Record the loss. */
static void record_loss_in_file(struct collector *c, const char *name)
{
    int pid = atoi(name);
    int fd = session_open_file(c->session->place[SESSION_MAIN], name, O_RDONLY);
    const char *error = strrchr(name, '-');
    char text[256] = "";
    ssize_t got;

    if (fd < 0)
        return; /* the file is gone, because an earlier collector has recorded the loss */
    got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    if (strstr(name, ".lost")) {
        collector_record_loss(
            c, 0, 0, "process: no ring could be made for process %d (%s); it was not recorded", pid,
            strerror(error ? atoi(error + 1) : 0));
    } else {
        collector_record_loss(
            c, 0, 0,
            LOSS_INTERPRETER
            "process %d is %s, for which there is no extension; it was not recorded",
            pid, text);
        if (!c->state.file->header.unsupported[0])
            snprintf(c->state.file->header.unsupported, sizeof c->state.file->header.unsupported,
                     "%s", text);
    }
    /* delete the file, so that the loss is recorded once */
    unlinkat(c->session->place[SESSION_MAIN], name, 0);
}

static bool does_text_end_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

static void handle_new_file(struct watch *w, const char *name, enum session_place place)
{
    struct watch_file *file;

    if (does_text_end_with(name, ".ring") && strlen(name) < SESSION_FILE_NAME) {
        if (!open_new_process(w->c, name, place) && (file = list_add(&w->pending))) {
            file->place = place;
            session_write_process_name(file->name, name, 0);
        }
    } else if (does_text_end_with(name, ".lost")) {
        record_loss_in_file(w->c, name);
    }
}

/* Try again to open the pending files. A nested process is not kept in the list of pending files:
 * watch_find_nested() finds it. */
static void retry_pending_files(struct watch *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->pending.count; i++)
        if (!open_new_process(w->c, w->pending.at[i].name, w->pending.at[i].place) &&
            !strchr(w->pending.at[i].name, '@'))
            w->pending.at[kept++] = w->pending.at[i];
    w->pending.count = kept;
}

void watch_record_unopened(struct watch *w)
{
    size_t count = 0;
    int error = 0;

    list_each(file, &w->pending) {
        int fd = session_open_file(w->c->session->place[file->place], file->name, O_RDONLY);
        if (fd >= 0) {
            close(fd);
        } else if (errno != ENOENT) {
            error = errno;
            count++;
        }
    }
    if (count)
        collector_record_loss(
            w->c, 0, 0,
            "process: the recorder could not open the files of %zu process%s (%s); "
            "nothing of them was recorded",
            count, count == 1 ? "" : "es", strerror(error));
}

/* A file that reports a loss is read when its writer closes it (IN_CLOSE_WRITE), a process file
 * when its header is complete. */
void watch_find_new(struct watch *w)
{
    char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool overflowed = false;
    ssize_t got;

    retry_pending_files(w);
    while ((got = read(w->files, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + got;) {
            struct inotify_event *event = (struct inotify_event *)at;
            if (event->len && event->mask & IN_CREATE)
                handle_new_file(w, event->name,
                                event->wd == w->spilled ? SESSION_SPILL : SESSION_MAIN);
            else if (event->len && event->mask & IN_CLOSE_WRITE &&
                     does_text_end_with(event->name, ".unsupported"))
                record_loss_in_file(w->c, event->name);
            overflowed |= (event->mask & IN_Q_OVERFLOW) != 0;
            at += sizeof *event + event->len;
        }
    if (overflowed) /* look through the directories, because the kernel has dropped events */
        watch_add_processes_of_killed_recording(w);
    record_losses_of_unrecorded_pythons(w);
}

bool watch_open(struct watch *w, struct collector *c)
{
    struct sigaction action = {.sa_sigaction = leave_call_on_bus_error,
                               .sa_flags = SA_NODEFER | SA_SIGINFO};
    struct session *session = c->session;

    w->c = protected_collector = c;
    sigaction(SIGBUS, &action, NULL);
    w->absent = open_socket_for_unrecorded_pythons(session->directory);
    w->files = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->files < 0 ||
        inotify_add_watch(w->files, session->directory, IN_CREATE | IN_CLOSE_WRITE) < 0)
        return false;
    w->spilled = session->place[SESSION_SPILL] >= 0
                     ? inotify_add_watch(w->files, session->spill, IN_CREATE)
                     : -1;
    return true;
}

/* ---- find the processes of a recording whose collector was killed ---- */

static int compare_birth_times(const void *a, const void *b)
{
    uint64_t one = ((const struct watch_file *)a)->born;
    uint64_t other = ((const struct watch_file *)b)->born;

    return one < other ? -1 : one > other;
}

static void add_file_of_killed_recording(void *context, const char *name, enum session_place place,
                                         const struct process_file *header)
{
    struct watch *w = context;
    struct watch_file *file = header ? list_add(&w->pending) : NULL;

    bool is_note = does_text_end_with(name, ".lost") || does_text_end_with(name, ".unsupported");

    if (!header && is_note)
        record_loss_in_file(w->c, name);
    if (!file)
        return;
    /* A file that is just being made has no time of birth yet. It can come last, because its
     * process cannot have children yet. */
    file->born = header->born_clock ? header->born_clock : UINT64_MAX;
    file->place = place;
    session_write_process_name(file->name, name, 0);
}

void watch_add_processes_of_killed_recording(struct watch *w)
{
    session_visit_processes(w->c->session, add_file_of_killed_recording, w);
    list_sort(&w->pending, compare_birth_times);
    retry_pending_files(w);
}

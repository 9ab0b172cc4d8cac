/* collector/watch.c -- the processes of a recording: how they come, are read, and go. See collector/watch.h. */
#include "collector/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process.h"
#include "lib/list.h"
#include "session_check.h"
#include "vocabulary.h"

enum { ABSENT_A_ROUND = 4, ABSENT_MAX = 1000, ANCESTORS_MAX = 32 };
enum { NESTED_AT = 48 /* bytes of a file's name at most, before a nested process's "@OFFSET" */ };

struct pending {
    struct pending *next;
    enum session_place place;
    char name[64];
};

/* ---- a program's file that shrinks under us ---- */

static sigjmp_buf guard;
static volatile sig_atomic_t guarded;
static struct collector *guarded_collector;

/* Only the program's files may be cut short and we go on. In the middle of SQLite or of our own state there is no
 * going on: the next collector begins from what was certain. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
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

/* Call WHAT with T. False: a file of the program's that it read was cut short meanwhile. */
static bool guarded_call(void (*what)(struct traced *t), struct traced *t)
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

/* ---- one process ---- */

/* As guarded_call, but that is said. */
static void guarded_or_broken(void (*what)(struct traced *t), struct traced *t)
{
    if (guarded_call(what, t) || t->broken)
        return;
    t->broken = true;
    guarded_call(traced_abandon, t);
    collector_lost(t->collector, t->row.process_id, 0,
                   "ring: the file was cut short while it was read; nothing more of this process was taken");
}

void watch_drain(struct traced *t)
{
    guarded_or_broken(traced_drain, t);
    t->collector->state.header->last_ns = t->collector->decode.last_ns;
}

void watch_finish(struct traced *t)
{
    watch_drain(t);
    guarded_or_broken(traced_finish, t);
}

void watch_ended(struct traced *t, uint64_t end_ns)
{
    watch_finish(t);
    t->row.ended = true;
    t->row.end_ns = end_ns > t->collector->decode.last_ns ? end_ns : t->collector->decode.last_ns;
    t->changed = true;
    traced_say(t);
}

void watch_status(struct traced *t)
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
    if (known && !t->row.has_status)
        traced_status(t, info.exit_code);
    close(t->pidfd);
    t->pidfd = -1;
}

void watch_committed(struct collector *c)
{
    for (struct traced *t = c->traced; t; t = t->next)
        guarded_call(traced_committed, t);
}

bool watch_statuses(struct collector *c)
{
    bool missing = false;

    for (struct traced *t = c->traced; t; t = t->next)
        if (t->row.ended && t->pidfd >= 0) {
            watch_status(t);
            missing |= t->pidfd >= 0;
        }
    return missing;
}

/* ---- new ones ---- */

static struct traced *find_pid(struct collector *c, uint32_t pid, const struct traced *except)
{
    for (struct traced *t = c->traced; t; t = t->next)
        if (t->row.pid == pid && t != except && !t->row.ended)
            return t;
    return NULL;
}

/* The process PID, or its nearest ancestor that we know; not EXCEPT. */
static struct traced *find_ancestor(struct collector *c, uint32_t pid, const struct traced *except)
{
    struct traced *found = NULL;
    uint64_t started;

    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !(found = find_pid(c, pid, except)); i++)
        if (!process_stat(pid, &pid, &started))
            break;
    return found;
}

/* Listen to those who cannot join. -1: that cannot be, and they stay unknown. */
static int absent_open(const char *directory)
{
    struct sockaddr_un address;
    socklen_t length = absent_address(&address, directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) || bind(fd, (struct sockaddr *)&address, length))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct absent {
    uint32_t pid, uid;
    struct sockaddr_un address; /* where it waits for the answer */
    socklen_t length;
};

/* The next sender on FD; false: there is none. */
static bool absent_next(int fd, struct absent *sender)
{
    char byte, control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(__alignof__(struct cmsghdr))));
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_name = &sender->address, .msg_namelen = sizeof sender->address, .msg_iov = &data,
                             .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head;
    struct ucred who = {0};

    if (fd < 0 || recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0)
        return false;
    head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len == CMSG_LEN(sizeof who))
        memcpy(&who, CMSG_DATA(head), sizeof who);
    sender->pid = (uint32_t)who.pid;
    sender->uid = who.uid;
    sender->length = message.msg_namelen;
    return true;
}

static void absent_answer(int fd, const struct absent *sender)
{
    if (sender->length > sizeof(sa_family_t) &&
        sendto(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&sender->address, sender->length) < 0) {
        /* It waits no longer. */
    }
}

/* Pythons that could not join, descendants of the command as far as can be seen. */
static void absent_new(struct watch *w)
{
    struct collector *c = w->c;
    struct absent sender;

    for (int i = 0; i < ABSENT_A_ROUND && w->absent_told < ABSENT_MAX && absent_next(w->absent, &sender); i++) {
        uint32_t parent = 0;
        uint64_t started;
        struct traced *ancestor = process_stat(sender.pid, &parent, &started) ? find_ancestor(c, parent, NULL) : NULL;
        if (ancestor) {
            w->absent_told++;
            collector_lost(c, ancestor->row.process_id, 0, "process: Python process %u of user %u may not join the recording of user %u, "
                           "or does not see its directory; nothing of it was recorded", sender.pid, sender.uid, (unsigned)geteuid());
        }
        absent_answer(w->absent, &sender);
    }
}

/* T has a file: it is one of the processes from now on. */
static void process_add(struct collector *c, struct traced *t)
{
    struct traced *before = find_pid(c, t->row.pid, t);
    uint32_t parent;

    if (!t->started && !process_stat(t->row.pid, &parent, &t->started)) /* it could not read that itself */
        t->started = 0;
    /* The same process after an exec: the image before it has ended. */
    if (before && before->started == t->started) {
        t->row.parent_process_id = before->row.process_id;
        t->pidfd = before->pidfd;
        before->pidfd = -1;
        watch_ended(before, t->row.start_ns);
    }
    t->next = c->traced;
    c->traced = t;
    /* Who started it: the process that it was forked from is in its file; else the nearest ancestor that we know. */
    if (!t->row.parent_process_id && (before = find_ancestor(c, t->parent_pid, t)))
        t->row.parent_process_id = before->row.process_id;
    if (t->pidfd < 0 && !t->row.ended)
        t->pidfd = process_watch(t->row.pid, t->started);
    traced_say(t);
}

/* The process of file NAME. False: it is not whole yet. */
static bool process_new(struct collector *c, const char *name, enum session_place place)
{
    struct traced *t;
    bool retry;

    for (t = c->traced; t; t = t->next)
        if (!strcmp(t->name, name))
            return true;
    if (!(t = traced_new(c, place, name)))
        return true;
    if (!guarded_call(traced_open, t)) {
        t->opened = TRACED_NONE;
        collector_lost(c, 0, 0,
                       "ring: a process's file was cut short when it was opened; nothing of the process was taken");
    }
    retry = t->opened == TRACED_NOT_YET;
    if (t->opened == TRACED_OPEN)
        process_add(c, t);
    else
        traced_free(t);
    return !retry;
}

static void nested_name(char name[64], const char *file, uint64_t offset)
{
    snprintf(name, 64, "%.*s@%llx", (int)strcspn(file, "@"), file, (unsigned long long)offset);
}

void watch_nested(struct watch *w, struct traced *t)
{
    struct nested found;

    if (t->broken || !t->root)
        return;
    guarded_call(traced_nested_look, t);
    if (t->nested_newest == t->nested)
        return;
    found = traced_nested(t->fd, t->nested_newest, t->nested);
    t->nested = t->nested_newest;
    for (size_t i = found.count; i--; ) { /* the oldest first */
        char name[sizeof t->name];
        nested_name(name, t->name, found.at[i]);
        process_new(w->c, name, t->place);
    }
    list_free(&found);
}

/* A note that an interpreter of no use to us left, or a process without room. */
static void note_new(struct collector *c, const char *name)
{
    int pid = atoi(name), fd = session_file(c->session, SESSION_MAIN, name, O_RDONLY);
    const char *error = strrchr(name, '-');
    char text[256] = "";
    ssize_t got;

    if (fd < 0)
        return; /* it was said by the collector before us */
    got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    if (strstr(name, ".lost")) {
        collector_lost(c, 0, 0, "process: no ring could be made for process %d (%s); nothing of it was recorded", pid,
                       strerror(error ? atoi(error + 1) : 0));
    } else {
        collector_lost(c, 0, 0, LOSS_INTERPRETER "process %d is %s, for which there is no extension; nothing of it was recorded", pid, text);
        if (!c->state.header->unsupported[0])
            snprintf(c->state.header->unsupported, sizeof c->state.header->unsupported, "%s", text);
    }
    unlinkat(c->session->place[SESSION_MAIN], name, 0); /* said once */
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

static void file_new(struct watch *w, const char *name, enum session_place place)
{
    if (strlen(name) >= NESTED_AT)
        return;
    if (ends_with(name, ".ring") && !process_new(w->c, name, place)) {
        struct pending *p = calloc(1, sizeof *p);
        if (p) {
            *p = (struct pending){.next = w->pending, .place = place};
            memcpy(p->name, name, strlen(name) + 1);
            w->pending = p;
        }
    } else if (ends_with(name, ".lost")) {
        note_new(w->c, name);
    }
}

/* Notes are read when they are whole (IN_CLOSE_WRITE), files when their header is. */
static void files_new(struct watch *w)
{
    char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct pending **link = &w->pending;
    ssize_t got;

    while (*link) {
        struct pending *p = *link;
        if (process_new(w->c, p->name, p->place)) {
            *link = p->next;
            free(p);
        } else {
            link = &p->next;
        }
    }
    while ((got = read(w->files, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + got; ) {
            struct inotify_event *event = (struct inotify_event *)at;
            if (event->len && event->mask & IN_CREATE)
                file_new(w, event->name, event->wd == w->spilled ? SESSION_SPILL : SESSION_MAIN);
            else if (event->len && event->mask & IN_CLOSE_WRITE && ends_with(event->name, ".unsupported"))
                note_new(w->c, event->name);
            at += sizeof *event + event->len;
        }
}

void watch_new(struct watch *w)
{
    files_new(w);
    absent_new(w);
}

bool watch_open(struct watch *w, struct collector *c)
{
    struct session *session = c->session;

    w->c = c;
    guard_install(c);
    w->absent = absent_open(session->directory);
    w->files = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->files < 0 || inotify_add_watch(w->files, session->directory, IN_CREATE | IN_CLOSE_WRITE) < 0)
        return false;
    w->spilled = session->place[SESSION_SPILL] >= 0 ? inotify_add_watch(w->files, session->spill, IN_CREATE) : -1;
    return true;
}

void watch_close(struct watch *w)
{
    while (w->pending) {
        struct pending *p = w->pending;
        w->pending = p->next;
        free(p);
    }
    if (w->absent >= 0)
        close(w->absent);
}

/* ---- after a kill ---- */

struct left_file {
    uint64_t born; /* its header's born_clock */
    enum session_place place;
    char name[sizeof ((struct traced *)NULL)->name];
};

typedef LIST(struct left_file) left_files;

static int by_birth(const void *a, const void *b)
{
    uint64_t one = ((const struct left_file *)a)->born, other = ((const struct left_file *)b)->born;

    return one < other ? -1 : one > other;
}

/* The process at offset AT of FD, whose name is NAME. Returns the newest one nested in it. */
static uint64_t left_add(left_files *files, int fd, uint64_t at, const char *name, enum session_place place)
{
    struct process_file header = {0};
    struct left_file *file;

    if (pread(fd, &header, sizeof header, (off_t)at) < 0 || !(file = list_add(files)))
        return 0;
    /* One that is being made has no birth yet; its children come later still. */
    file->born = header.born_clock ? header.born_clock : UINT64_MAX;
    file->place = place;
    if (at)
        nested_name(file->name, name, at);
    else
        snprintf(file->name, sizeof file->name, "%s", name);
    return header.nested;
}

/* What file NAME holds. */
static void left_read(struct collector *c, left_files *files, const char *name, enum session_place place)
{
    struct nested found;
    int fd;

    if (ends_with(name, ".lost") || ends_with(name, ".unsupported"))
        note_new(c, name);
    if (!ends_with(name, ".ring") || strlen(name) >= NESTED_AT || (fd = session_file(c->session, place, name, O_RDONLY)) < 0)
        return;
    found = traced_nested(fd, left_add(files, fd, 0, name, place), 0);
    for (size_t i = found.count; i--; ) /* the oldest first */
        left_add(files, fd, found.at[i], name, place);
    list_free(&found);
    close(fd);
}

void watch_left(struct watch *w)
{
    struct session *session = w->c->session;
    left_files files = {0};

    for (int place = 0; place < SESSION_PLACES && session->place[place] >= 0; place++) {
        struct dirent **entries = NULL;
        int count = scandirat(session->place[place], ".", &entries, NULL, NULL);
        for (int i = 0; i < count; free(entries[i++]))
            left_read(w->c, &files, entries[i]->d_name, (enum session_place)place);
        free(entries);
    }
    if (files.count)
        qsort(files.at, files.count, sizeof *files.at, by_birth);
    for (size_t i = 0; i < files.count; i++)
        if (strchr(files.at[i].name, '@'))
            process_new(w->c, files.at[i].name, files.at[i].place);
        else
            file_new(w, files.at[i].name, files.at[i].place);
    list_free(&files);
}

/* collector/launch.h -- start a collector, replace it when it dies, and wait for what it made.
 *
 * Runs in: the command line (`run`, `collect`; of a recording that was left: `run`, `fsck
 * --recover`). */
#ifndef DYNTRACE_LAUNCH_H
#define DYNTRACE_LAUNCH_H

#include <signal.h>

#include "collector/session.h"

/* From the parent to the collector: messages of a socket. */
struct collector_order {
    /* DONE: the program records itself no more */
    enum { ORDER_BEGAN, ORDER_ENDED, ORDER_STOP, ORDER_DONE } what;
    int32_t pid, status; /* of the command: BEGAN its pid, ENDED its wait status */
};

/* What the collector says when it is done, or cannot be. A message of one byte comes first, when it
 * is ready for the command to start. */
struct collector_result {
    uint64_t frames, missing;
    /* of a program that used torch, bytes: pages of frames that nobody decided */
    uint64_t undecided;
    int64_t cpu_ns; /* processor time of the collectors; 0: not known */
    uint32_t processes;
    char unsupported[512], torch_note[512];
    char settings[2048];            /* those of --set that did nothing: lines "SETTING: WHY" */
    char worst[256];                /* the largest of what is missing */
    char error[2 * PATH_MAX + 512]; /* "" = the trace is complete */
};

/* The life of a collector of SESSION, whose lock is held. ARGV: the command, a JSON array; NULL:
 * carry on the work of one that was killed. ORDERS, -1: there is no parent, and TO are where orders
 * come from and the result goes to. Returns the exit status for the process, which keeps what it
 * has opened until then. */
int collector_run(struct session *session, const char *argv, int orders, int to);

struct launch {
    struct session *session; /* borrowed */
    pid_t pid;               /* the collector's; 0: it is dead */
    int link;                /* our end of the socket; -1: none */
    /* orders sent, to be repeated to the next one; pid 0: not yet */
    struct collector_order began, ended;
    /* CLOCK_MONOTONIC: when it began; how long the next is waited with */
    uint64_t born_ns, pause_ns;
    unsigned replaced;            /* how often */
    bool done;                    /* it has ended, and said what it made */
    char why[2 * PATH_MAX + 512]; /* what the last that could not begin said, or "" */
    bool orphan;                  /* it is nobody's child: when it dies nobody takes its place */
};

/* Release standard input and output and of inherited descriptors; stderr stays. */
void launch_let_go(void);

/* Fork the collector of SESSION, whose lock goes over to it. ARGV: the command, a JSON array. 0
 * when it is ready; -1 after saying why not. */
int launch_collector(struct launch *l, struct session *session, const char *argv);

/* Fork one that goes on with what a killed collector left, in nobody's terminal. The lock goes over
 * to it. 0 when it is ready; -1, and SAID->error where it said why not. */
int launch_orphan(struct launch *l, struct session *session, struct collector_result *said);

/* Tell it how the command began or ended. */
void launch_order(struct launch *l, const struct collector_order *order);

/* Has the collector died? Then put another in its place. Milliseconds after which to ask again, -1:
 * no need to. */
int launch_look(struct launch *l);

/* Wait until the trace is whole. When *INTERRUPTED (NULL: never) becomes non-zero
 * the collector stops waiting for stragglers. False: it died again and again. */
bool launch_wait(struct launch *l, volatile sig_atomic_t *interrupted,
                 struct collector_result *said);

void launch_close(struct launch *l);

/* ---- collector/recover.c: recordings whose collector was killed ---- */

/* Finish the interrupted recording of trace PATH, or with NULL every one of this
 * user. Reports what it did. */
enum recovered {
    RECOVER_DONE,
    RECOVER_FAILED,
    RECOVER_NOTHING, /* no interrupted recording was found */
} recover_trace(const char *path);

/* The same for all, silent when there is nothing to do: for the start of `run`. */
void recover_all_quietly(void);

#endif

/* collector/launch.h -- starts a collector, replaces it when it dies, waits for its trace.
 *
 * Runs in: the command line (`run`, `collect`; `fsck --recover` to finish an interrupted
 * recording). */
#ifndef DYNTRACE_LAUNCH_H
#define DYNTRACE_LAUNCH_H

#include <signal.h>

#include "collector/session.h"

/* A message from the parent to the collector, sent through a socket. */
struct collector_order {
    /* DONE: a program that records itself (`collect`) stops recording */
    enum { ORDER_BEGAN, ORDER_ENDED, ORDER_STOP, ORDER_DONE, ORDER_SNAPSHOT } what;
    int32_t pid, status; /* about the command: BEGAN has its pid, ENDED has its wait status */
};

/* The collector's last message: what it recorded, or why it failed. A message of one byte comes
 * earlier, when the collector is ready for the command to start. */
struct collector_result {
    uint64_t frames, missing;
    /* In a torch program, the estimated bytes of frames that have no lookup. */
    uint64_t undecided;
    /* With --keep: by how much what is always kept is more than the bound, in bytes. */
    uint64_t over;
    int64_t cpu_ns; /* processor time of all collectors of the recording; 0 if not known */
    uint32_t processes;
    char unsupported[512], torch_note[512];
    /* the settings of --set that did nothing, as lines "SETTING: WHY" */
    char settings[2048];
    char worst[256];                /* the largest of the losses counted in `missing` */
    char error[2 * PATH_MAX + 512]; /* "" if the trace is complete */
};

/* Run as the collector of SESSION, whose lock is held. ARGV is the command as a JSON array, or NULL
 * to carry on the work of a killed collector. ORDERS is the socket for orders, or -1 without a
 * parent; the result is written to TO. Returns the exit status of this process, which keeps its
 * files open until it exits. */
int collector_run(struct session *session, const char *argv, int orders, int to);

struct launch {
    struct session *session; /* borrowed */
    pid_t pid;               /* pid of the collector; 0 if it is dead */
    int link;                /* our end of the socket; -1 if it is closed */
    /* The orders that were sent, which the next collector gets, too. The pid of an order is 0 if it
     * was not sent. */
    struct collector_order began, ended;
    /* When the collector was started (CLOCK_MONOTONIC), and how long to wait before the next
     * start. */
    uint64_t born_ns, pause_ns;
    unsigned replaced;            /* how often a dead collector was replaced */
    bool done;                    /* the collector has ended and sent its result */
    char why[2 * PATH_MAX + 512]; /* error of the last collector that could not start, or "" */
    /* the collector is nobody's child: it is not replaced when it dies */
    bool orphan;
};

/* Close standard input and output and all inherited descriptors; stderr stays open. */
void launch_let_go(void);

/* Fork the collector of SESSION, which takes over the session's lock. ARGV: the command as a JSON
 * array. Returns 0 when the collector is ready, or -1 after reporting the error. */
int launch_collector(struct launch *l, struct session *session, const char *argv);

/* Fork a collector, detached from any terminal, that carries on the work of a killed one. The new
 * collector takes over the lock. Returns 0 when it is ready, or -1 with SAID->error if it gave a
 * reason. */
int launch_orphan(struct launch *l, struct session *session, struct collector_result *said);

/* Tell the collector that the command began or ended. */
void launch_order(struct launch *l, const struct collector_order *order);

/* Replace the collector if it has died. Returns after how many milliseconds to call again, or -1 if
 * that is not needed. */
int launch_look(struct launch *l);

/* Wait until the trace is finished. When *INTERRUPTED becomes non-zero, the collector stops waiting
 * for processes that outlive the command; INTERRUPTED may be NULL. Returns false if collector after
 * collector died. */
bool launch_wait(struct launch *l, volatile sig_atomic_t *interrupted,
                 struct collector_result *said);

void launch_close(struct launch *l);

/* ---- collector/recover.c: recordings whose collector was killed ---- */

/* Finish the interrupted recording of trace PATH, or every one of this user if PATH is NULL. Prints
 * what was done. */
enum recovered {
    RECOVER_DONE,
    RECOVER_FAILED,
    RECOVER_NOTHING, /* no interrupted recording was found */
} recover_trace(const char *path);

/* Finish all interrupted recordings, and print nothing if there are none. `run` calls this at its
 * start. */
void recover_all_quietly(void);

#endif

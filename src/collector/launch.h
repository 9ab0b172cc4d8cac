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
    /* ORDER_DONE: the command is a program that records itself (`collect`), and it has stopped
     * recording */
    enum { ORDER_BEGAN, ORDER_ENDED, ORDER_STOP, ORDER_DONE, ORDER_SNAPSHOT } what;
    /* pid: of the command, with ORDER_BEGAN; status: its wait status, with ORDER_ENDED */
    int32_t pid, status;
};

/* The last message from the collector to its parent: what was recorded, or why it failed. Before
 * that, a message of one byte says that the command may start. */
struct collector_result {
    uint64_t frames, missing;
    /* for a torch program: estimated bytes of the rows of frames that have no lookup */
    uint64_t undecided;
    /* with --keep: by how many bytes the rows that are never dropped exceed the bound */
    uint64_t over;
    int64_t cpu_ns; /* processor time of all collectors of the recording; 0 if not known */
    uint32_t processes;
    char unsupported[512], torch_note[512];
    /* the settings of --set that did nothing: lines "SETTING: WHY" */
    char settings[2048];
    char worst[256];                /* cause of the largest loss among those counted in `missing` */
    char error[2 * PATH_MAX + 512]; /* what went wrong; "" if the trace is complete */
};

/* Run as the collector of SESSION, whose lock is held. ARGV is the command as a JSON array; NULL
 * continues the recording of a killed collector. ORDERS is the socket for orders, or -1 without a
 * parent. The result is written to TO. Returns the exit status for this process, which must keep
 * its files open until it exits. */
int collector_run(struct session *session, const char *argv, int orders, int to);

struct launch {
    struct session *session; /* borrowed */
    pid_t pid;               /* pid of the collector; 0 while none runs */
    int link;                /* our end of the socket; -1 if it is closed */
    /* Orders that were sent, because the next collector gets them, too. pid is 0 if an order was
     * not sent. */
    struct collector_order began, ended;
    /* When the collector was started (CLOCK_MONOTONIC), and how long to wait after that before
     * another is started. */
    uint64_t born_ns, pause_ns;
    unsigned replaced;            /* how often a dead collector was replaced */
    bool done;                    /* the collector has ended and sent its result */
    char why[2 * PATH_MAX + 512]; /* error of the last collector that could not start, or "" */
    /* the collector is not our child, so we do not replace it when it dies */
    bool orphan;
};

/* Close standard input and output and all inherited descriptors; stderr stays open. */
void launch_close_descriptors(void);

/* Fork the collector of SESSION, which takes over the session's lock. ARGV: the command as a JSON
 * array. Returns 0 when the collector is ready, or -1 after reporting the error. */
int launch_collector(struct launch *l, struct session *session, const char *argv);

/* Fork a collector that has no terminal and continues the recording of a killed collector. It
 * takes over the session's lock. Returns 0 when it is ready, or -1, with SAID->error if it gave
 * a reason. */
int launch_collector_without_parent(struct launch *l, struct session *session,
                                    struct collector_result *said);

/* Tell the collector that the command began or ended. */
void launch_send_order(struct launch *l, const struct collector_order *order);

/* Replace the collector if it has died. Returns in how many milliseconds to call this again, or -1
 * if the collector runs or has finished. */
int launch_replace_if_dead(struct launch *l);

/* Wait until the trace is finished, and read the result into SAID. When *INTERRUPTED becomes
 * non-zero, the collector stops waiting for processes that outlive the command; INTERRUPTED may be
 * NULL. Returns false if too many collectors have died. */
bool launch_wait_for_result(struct launch *l, volatile sig_atomic_t *interrupted,
                            struct collector_result *said);

void launch_close(struct launch *l);

/* ---- finish recordings whose collector was killed (collector/recover.c) ---- */

/* Finish the interrupted recording of trace PATH, or all interrupted recordings of this user if
 * PATH is NULL. Prints the result. */
enum recovered {
    RECOVER_DONE,
    RECOVER_FAILED,
    RECOVER_NOTHING, /* no interrupted recording was found */
} recover_trace(const char *path);

/* Finish all interrupted recordings, and print nothing if there are none. `run` calls this at its
 * start. */
void recover_all_quietly(void);

#endif

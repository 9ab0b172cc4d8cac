/* collector.h -- drains the rings of a session into its trace.
 *
 * Runs in: the collector, a process of its own; or `fsck --recover`. */
#ifndef DYNTRACE_COLLECTOR_H
#define DYNTRACE_COLLECTOR_H

#include <sys/types.h>

#include "traced.h"

struct collector {
    struct session *session;          /* borrowed */
    struct collector_state state;
    struct frame_pages pages;
    struct decode_session decode;
    struct recorder *recorder;
    struct traced *traced;            /* every process seen, newest first */
    struct traced *command;           /* the command itself while no interpreter claimed its row */
    bool resumed;                     /* finishing a killed collector's work */
    uint64_t losses, missing;         /* rows; those that are more than a stall and not said otherwise */
    uint64_t worst_events;
    char worst[256];                  /* what the largest of them says */
    char torch_note[512];             /* why torch is only observed, of the first process where it is */
    char unsupported[512];            /* what an interpreter without our extension said of itself */
    uint64_t waits, wait_ns;          /* of all producers */
    uint32_t processes;               /* that recorded */
};

/* What the parent tells the collector, through a pipe. */
struct collector_order {
    enum { ORDER_BEGAN, ORDER_ENDED, ORDER_STOP, ORDER_DONE } what; /* DONE: the program records itself no more */
    int32_t pid, status; /* of the command: BEGAN its pid, ENDED its wait status */
};

/* What the collector says when it is done, through another pipe. A byte 'R'
 * comes first, when it is ready for the command to start. */
struct collector_result {
    uint64_t frames, losses, missing;
    uint32_t processes, still_running;
    char unsupported[512], torch_note[512];
    char worst[256];                /* the largest of what is missing */
    char error[2 * PATH_MAX + 512]; /* "" = the trace is complete */
    bool has_loss_of_frames;
};

/* The life of a collector. ORDERS and RESULT are pipe ends; ARGV the command as
 * a JSON array. Returns the exit status for the process. */
int collector_run(struct session *session, int orders, int result, const char *argv, uint32_t first, uint32_t root);

/* Finish what a killed collector left. 0, or -1 with the reason in RESULT. COMMAND
 * (0: not known) is the command's pid, whose wait status the caller has. */
int collector_recover(struct session *session, pid_t command, int command_wait_status, struct collector_result *result);

/* The row for a new process image: the command's own, if PID is its first, else a new one. */
uint32_t collector_process_id(struct collector *c, uint32_t pid);
/* A row of `loss`. */
void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                    const char *cause);
uint64_t collector_now_ns(const struct collector *c);

#endif

/* collector/collector.h -- drains the rings of a session into its trace.
 *
 * Runs in: the collector, a process of its own. */
#ifndef DYNTRACE_COLLECTOR_H
#define DYNTRACE_COLLECTOR_H

#include <sys/types.h>

#include "collector/traced.h"

struct collector {
    struct session *session;          /* borrowed */
    struct collector_state state;
    struct frame_pages pages;
    struct decode_session decode;
    struct recorder *recorder;
    struct traced *traced;            /* every process seen, newest first */
    struct traced *command;           /* the command itself while no interpreter claimed its row */
    bool resumed;                     /* carrying on a killed collector's work */
    bool in_words;                    /* a decoder is at work: what is said now is certain when it commits */
    struct fact *fact;                /* owned; the one being taken */
    size_t fact_room;
    char torch_note[512];             /* why torch is only observed, of the first process where it is */
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
    uint64_t frames, missing;
    uint32_t processes, still_running;
    char unsupported[512], torch_note[512];
    char worst[256];                /* the largest of what is missing */
    char error[2 * PATH_MAX + 512]; /* "" = the trace is complete */
    bool has_loss_of_frames;
};

struct collector_start {
    int orders, result;               /* pipe ends, -1: there is no parent */
    const char *argv;                 /* the command, a JSON array; NULL: carry on the work of one that was killed */
    uint32_t first, root;             /* recorder_create's; not when carrying on */
};

/* The life of a collector of SESSION, whose lock is held. Returns the exit status for the process. */
int collector_run(struct session *session, const struct collector_start *start);

/* The row for a process image: the one GIVEN it by a killed collector, the command's own if PID is its first, else a new one. */
uint32_t collector_process_id(struct collector *c, uint32_t pid, uint64_t given);
/* A row of `loss`. */
void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns, uint64_t events,
                    const char *cause);
/* The same under an id that was given before: said twice it is one row. */
void collector_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id, uint32_t thread_id, uint64_t at_ns,
                        uint64_t events, const char *cause);
uint64_t collector_now_ns(const struct collector *c);

#endif

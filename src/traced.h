/* traced.h -- one traced process image, as the collector sees it.
 *
 * Runs in: the collector. What the file says is not trusted: every offset is
 * checked against its size, and a file that shrinks while it is read is caught
 * (traced_guard in collector.c). */
#ifndef DYNTRACE_TRACED_H
#define DYNTRACE_TRACED_H

#include "collector_state.h"
#include "decode.h"
#include "recorder_sqlite.h"
#include "ring.h"

struct collector; /* collector.h */

struct traced_ring {
    struct ring *ring;     /* shared; mapped */
    uint64_t *words;       /* shared; mapped twice in a row, so that spans never wrap */
    uint64_t count;        /* words in it, a power of two */
    uint64_t woken;        /* tail when its producer was last woken */
    struct decoder decoder;
};

struct traced {
    struct traced *next;
    struct collector *collector;  /* borrowed */
    char name[64];                /* of its file */
    char path[512];
    int fd;                       /* its file; owned */
    uint64_t file_bytes;          /* as last seen */
    struct process_file *file;    /* shared; NULL: a process without one (not Python) */
    struct traced_ring *rings;    /* owned */
    uint32_t ring_count;
    /* facts */
    struct facts *facts;          /* shared; the chunk being read */
    uint64_t facts_off;           /* where it lies */
    size_t facts_bytes;           /* mapped */
    uint64_t facts_read;          /* of its data */
    struct decode_codes codes;    /* owned: local code id -> code_id */
    uint32_t *threads, thread_count; /* owned: FACT_THREAD id -> thread_id */
    char *argv, *executable, *version; /* owned */
    uint32_t unknown_code;        /* code_id of the row for code it never named, or 0 */
    /* the row */
    struct recorder_process row;
    uint32_t parent_pid;
    uint64_t started;             /* /proc start time: tells pids apart */
    int pidfd;                    /* owned, -1: already gone or not known */
    bool changed;                 /* the row must be said again */
    bool drained;                 /* ended, and everything was taken */
    bool broken;
    uint64_t last_words_ns;       /* when it last wrote anything (CLOCK_MONOTONIC) */
};

/* Open the file NAME in DIRECTORY. NULL with *RETRY: not whole yet. NULL without:
 * not a process file (the reason is recorded as a loss). */
struct traced *traced_open(struct collector *c, const char *directory, const char *name, bool *retry);
/* Take everything it has written; returns words taken, *FULLEST = share of a
 * ring that was in use, in 1/256. */
size_t traced_drain(struct traced *t, unsigned *fullest);
/* Take nothing more from a file that cannot be trusted; its producers stop waiting. */
void traced_abandon(struct traced *t);
/* Nothing more will come: close its decoders, give back its memory. */
void traced_finish(struct traced *t);
void traced_free(struct traced *t);
/* Say its row to the recorder. */
void traced_say(struct traced *t);

#endif

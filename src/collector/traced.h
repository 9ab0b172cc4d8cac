/* collector/traced.h -- one traced process image, as the collector sees it.
 *
 * Runs in: the collector. What the file says is not trusted: every offset is
 * checked against its size, and a file that shrinks while it is read is caught
 * (traced_guard in collector/collector.c). */
#ifndef DYNTRACE_TRACED_H
#define DYNTRACE_TRACED_H

#include "collector/state.h"
#include "collector/decode.h"
#include "recorder_sqlite.h"
#include "ring.h"

struct collector; /* collector/collector.h */

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
    char name[64];                /* of its file; a nested one's with "@OFFSET" (hexadecimal) */
    enum session_place place;     /* of its file */
    int fd;                       /* its file; owned */
    uint64_t file_bytes;          /* as last seen */
    struct process_file *file;    /* shared; NULL: a process without one (not Python) */
    struct process_file *root;    /* shared; the process at the start of its file */
    uint64_t nested;              /* the newest nested process that was looked at */
    struct traced_ring *rings;    /* owned */
    uint32_t ring_count;
    /* facts */
    struct facts *facts;          /* shared; the chunk being read */
    uint64_t facts_off;           /* where it lies */
    size_t facts_bytes;           /* mapped */
    uint64_t facts_read;          /* of its data */
    struct decode_codes codes;    /* owned: local code id -> code_id */
    uint32_t *threads, thread_count; /* owned: FACT_THREAD id -> thread_id */
    uint32_t *compiles, compile_count, *signatures, signature_count; /* owned: likewise */
    struct traced_entry {
        uint32_t entry_id, guard_id, guards; /* rows: its own, and the first of its guards' */
    } *entries;                   /* owned: by FACT_ENTRY id */
    uint32_t entry_count;
    char *argv, *executable, *version; /* owned */
    char *torch[3];               /* owned: version, mode, why; or NULL */
    uint32_t unknown_code;        /* code_id of the row for code it never named, or 0 */
    /* the row */
    struct recorder_process row;
    uint32_t parent_pid;
    uint64_t started;             /* /proc start time: tells pids apart */
    int pidfd;                    /* owned; kept until it has told the exit status; -1: gone, or not known */
    bool changed;                 /* the row must be said again */
    bool drained;                 /* ended, and everything was taken; `finished` in its file once the trace has that */
    bool broken;
    uint64_t last_words_ns;       /* when it last wrote anything (CLOCK_MONOTONIC) */
};

enum { TRACED_IDS_MAX = 64 << 20 /* ids of one kind in one process that we believe */ };

/* Between collector/traced.c and collector/traced_shim.c. Grow an array of row ids to hold one for ID. */
bool traced_room_for(uint32_t **array, uint32_t *count, uint32_t id);
/* The row id that the fact already has (a killed collector gave it), or a new one. */
uint32_t traced_row_id(struct fact *fact, uint32_t *next, bool resumed);
/* Read the facts that are new. */
void traced_facts(struct traced *t);
bool traced_entry_room(struct traced *t, uint32_t local);
void traced_shim_fact(struct traced *t, const struct fact *fact, struct fact *shared);
uint32_t traced_shim_entry(void *context, uint32_t local);
void traced_shim_late_entry(void *context, uint64_t frame_id, uint32_t cache_entry_id);
void traced_shim_decision(void *context, const struct decode_decision *decision);

/* Open the session's file NAME. NULL with *RETRY: not whole yet. NULL without:
 * not a process file (the reason is recorded as a loss). */
struct traced *traced_open(struct collector *c, enum session_place place, const char *name, bool *retry);
/* The nested processes of the file FD that are newer than SEEN, from NEWEST on: how many, and in *OFFSETS (to be freed)
 * where they lie, the oldest first. */
size_t traced_nested(int fd, uint64_t newest, uint64_t seen, uint64_t **offsets);
/* Take everything it has written; returns words taken, *FULLEST = share of a
 * ring that was in use, in 1/256. */
size_t traced_drain(struct traced *t, unsigned *fullest);
/* Take nothing more from a file that cannot be trusted; its producers stop waiting. */
void traced_abandon(struct traced *t);
/* Nothing more will come: close its decoders, give back its memory. */
void traced_finish(struct traced *t);
/* What traced_finish said is committed: a next collector need not say it again. */
void traced_committed(struct traced *t);
void traced_free(struct traced *t);
/* Say its row to the recorder. */
void traced_say(struct traced *t);

#endif

/* collector/traced.h -- one traced process image, as the collector sees it.
 *
 * Runs in: the collector. The content of a process file is not trusted: every offset is checked
 * against the size of the file, and a file that shrinks while it is read is caught
 * (collector/watch.c). */
#ifndef DYNTRACE_TRACED_H
#define DYNTRACE_TRACED_H

#include "collector/state.h"
#include "recorder_sqlite.h"

struct collector_result;
struct traced;

/* State shared by all processes of a session. */
struct collector {
    struct session *session; /* borrowed */
    struct collector_state state;
    struct frame_pages pages;
    struct lookup_pages lookups;
    struct decode_session decode;
    struct recorder *recorder;
    struct traced *traced;  /* every process seen, newest first */
    struct traced *command; /* stands for the command until an interpreter claims its row */
    bool resumed;           /* this collector carries on the work of a killed one */
    bool salvaged;          /* only the trace's two files are left of the killed collector's work */
    /* A decoder is running: rows written now are final only when that decoder commits. */
    bool in_words;
    LIST(char) fact; /* owned; copy of the fact being read */
    bool torch;      /* some process used torch */
    /* why torch is only observed, as the first such process gave it */
    char torch_note[512];
    uint64_t waits, wait_ns; /* how often and how long producers waited, over all processes */
    uint32_t processes;      /* number of processes that recorded */
    uint32_t changes;        /* counts processes that came or ended */
};

struct traced_ring {
    struct ring *ring; /* shared; mapped */
    uint64_t *words;   /* shared; mapped twice in a row, so that a record never wraps */
    uint64_t count;    /* number of words in the ring; a power of two */
    uint64_t woken;    /* value of tail when the producer was last woken */
    struct decoder decoder;
};

struct traced_entry {
    /* row ids: of the entry, and of its first guard; and how many guards it has */
    uint32_t entry_id, guard_id, guards;
};

/* The spans of a process with ids up to LAST began before a fork, in process PROCESS_ID. */
struct span_owner {
    uint32_t last, process_id;
};

struct traced {
    struct traced *next;
    struct collector *collector; /* borrowed */
    /* name of the process file; for a nested process "@OFFSET" (hexadecimal) follows */
    char name[SESSION_NAME];
    enum session_place place; /* directory of the process file */
    int fd;                   /* owned; descriptor of the process file */
    uint64_t file_bytes;      /* last known size of the process file */
    /* shared; NULL if the process has no file because it is not Python */
    struct process_file *file;
    struct process_file *root; /* shared; header of the first process of the file */
    uint64_t nested;           /* offset of the newest nested process that was read */
    /* At the last traced_drain(): number of forked children without a file. */
    uint32_t forking;
    uint64_t nested_newest;         /* offset of the newest nested process, read after `forking` */
    LIST(struct traced_ring) rings; /* owned */
    /* At the last traced_drain(): number of words taken, and use of the fullest ring in 1/256. */
    uint64_t words, fullest;
    /* state of reading facts */
    struct facts *facts; /* shared; the chunk that is being read */
    uint64_t facts_off;  /* offset of the chunk in the file */
    size_t facts_bytes;  /* size of the mapped chunk */
    /* how many bytes of the chunk's data were read */
    uint64_t facts_read;
    /* owned: row ids, indexed by the process's own ids */
    decode_ids codes, threads, compiles, signatures;
    LIST(struct traced_entry) entries; /* owned; indexed by the process's own ids */
    /* owned; owners from the latest fork come first */
    LIST(struct span_owner) span_owners;
    /* code_id of the row for code objects without a known name; 0 if there is none */
    uint32_t unknown_code;
    /* columns of the process's row */
    struct {
        /* parent_process_id is 0 if there is no known parent */
        uint32_t process_id, parent_process_id;
        /* pid: as we see it, or 0 if we do not see the process. own_pid: as the process
         * itself sees it. */
        uint32_t pid, own_pid;
        const char *mode;
        uint64_t start_ns;
        bool ended;
    } row;
    uint32_t parent_pid; /* pid of the parent, as we see it */
    uint64_t started;    /* start time from /proc: tells apart processes that had the same pid */
    /* Owned; open until the exit status is known. -1 if the process is gone or not known. */
    int pidfd;
    bool hidden; /* we cannot see the process: it counts as alive while its file is in use */
    /* NONE: not a process file. NOT_YET: the header is not complete yet. */
    enum { TRACED_NONE, TRACED_NOT_YET, TRACED_OPEN } opened;
    /* The process has ended and all its words were taken. `finished` in its file is set after the
     * commit. */
    bool drained;
    bool broken;
    uint64_t last_words_ns; /* when words were last taken (CLOCK_MONOTONIC) */
};

/* Write a row of `loss` with a new id, or with LOSS_ID. An id that is written twice makes one
 * row. */
void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns,
                    uint64_t events, const char *cause);
void collector_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id,
                        uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause);
/* Record a loss that happens now in process PROCESS_ID, or 0 if the process is not known. */
void collector_lost(struct collector *c, uint32_t process_id, uint64_t events, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
uint64_t collector_now_ns(const struct collector *c);

/* ---- collector/settings.c ---- */

/* Write the settings of `run --set` to `meta`. */
void settings_begin(struct collector *c);
/* Note that a process has used a setting, or why it could not. */
void settings_take(struct collector *c, const struct fact_SETTING *fact);
/* Write the settings that did nothing to RESULT and to `meta`. */
void settings_end(struct collector *c, struct collector_result *result);

/* ---- collector/facts.c ---- */

/* Read the facts that were added since the last call. */
void traced_facts(struct traced *t);
/* Go on to the chunk of facts at offset AT. Returns false if it lies outside the file: T is then
 * broken. */
bool traced_facts_next(struct traced *t, uint64_t at);
/* Copy the parent's row ids to T, which was forked from PARENT and uses the parent's ids for its
 * code objects, entries and signatures. T's row is written. */
void traced_inherit(struct traced *t, struct traced *parent);

/* ---- collector/traced.c ---- */

/* Map BYTES of T's file from offset AT. Returns NULL with errno: ERANGE if they are outside the
 * file. */
void *traced_map(struct traced *t, uint64_t at, size_t bytes);
/* Call traced_broken after traced_map failed with ERROR. WHAT begins the reason, such as "a
 * thread's ring lies". */
void traced_unmapped(struct traced *t, const char *what, int error);
/* Record a loss with reason WHY and call traced_abandon, because the file cannot be trusted. */
void traced_broken(struct traced *t, const char *why);
/* Allocate a struct traced for file NAME of the session. Returns NULL without memory. */
struct traced *traced_new(struct collector *c, enum session_place place, const char *name);
/* Open T's file and set T->opened. If it is not a process file, record the reason as a loss. */
void traced_open(struct traced *t);
/* Has the hidden process T ended? */
bool traced_is_gone(const struct traced *t);
/* Take all words and facts that the process has written. */
void traced_drain(struct traced *t);
/* Take nothing more from a file that cannot be trusted, and let its producers stop waiting. */
void traced_abandon(struct traced *t);
/* Close the decoders of a process that writes no more, and release its memory. */
void traced_finish(struct traced *t);
/* Mark the process file as finished after a commit: a next collector need not write those rows
 * again. */
void traced_committed(struct traced *t);
void traced_free(struct traced *t);
/* Write the process's row, as far as it is known at its start. */
void traced_say(struct traced *t);
/* Write how T ended. STATUS is as from waitpid(), or -1 if it is not known. */
void traced_status(struct traced *t, int status);

#endif

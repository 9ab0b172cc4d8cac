/* collector/traced.h -- one traced process image, as the collector sees it.
 *
 * Runs in: the collector. What the file says is not trusted: every offset is checked against its
 * size, and a file that shrinks while it is read is caught (collector/watch.c). */
#ifndef DYNTRACE_TRACED_H
#define DYNTRACE_TRACED_H

#include "collector/state.h"
#include "collector/thread_cpu.h"
#include "recorder_sqlite.h"
#include "vocabulary.h"

struct collector_result;
struct collector;
struct traced;

/* The bounds of a recording (collector/keep.h). */
struct keep {
    uint64_t ns;         /* how long frames and lookups are kept; 0: without such a bound */
    uint64_t bytes;      /* of all files; 0: without such a bound */
    uint64_t from_ns;    /* everything since then is kept */
    uint64_t swept_ns;   /* when tables without an order in time were cleared (CLOCK_MONOTONIC) */
    uint64_t live_bytes; /* of trace.db, without its log */
    uint64_t over_bytes; /* by how much what is always kept is more than the bound; 0: it fits */
    uint32_t rows;       /* lookups since keep_trim */
    bool ended;          /* keep_end was called */
    uint64_t uncounted;  /* lookups that got no row, because a reader held the log */
    /* keep_trim, for the layer below */
    void (*trim)(struct collector *c);
};
/* A condition of --snapshot-on: a call of a function that matches PATTERN took longer than the
 * limit. */
struct trigger_condition {
    char *pattern; /* owned */
    uint64_t limit_ns;
};
struct trigger {
    LIST(struct trigger_condition) conditions; /* owned */
    bool on_exception;
    char why[256]; /* of the snapshot that is being taken */
};

enum { KEEP_LOOK_ROWS = 1000 /* lookups between two calls of keep_trim, at most */ };

static inline bool keep_is_on(const struct keep *keep)
{
    return keep->ns || keep->bytes;
}

/* What the processes of a session have in common. */
struct collector {
    struct session *session; /* borrowed */
    struct collector_state state;
    struct frame_pages pages;
    struct lookup_pages lookups;
    struct decode_session decode;
    struct counts counts;
    struct keep keep;
    struct trigger trigger; /* collector/trigger.h */
    struct recorder *recorder;
    struct traced *traced;  /* every process seen, newest first */
    struct traced *command; /* the command itself while no interpreter claimed its row */
    bool resumed;           /* this collector carries on the work of a killed one ... */
    bool salvaged;          /* ... which has left only the trace's two files */
    /* a decoder is running: rows that are written now become certain when it commits */
    bool in_words;
    LIST(char) fact; /* owned: a copy of the fact that is being read */
    bool torch;      /* a process used torch */
    /* why torch is observed in the first process where it is */
    char torch_note[512];
    uint64_t lookup_counts[OUTCOMES]; /* since this collector began */
    uint64_t metrics_ns; /* when collector/metrics.c wrote its file (CLOCK_MONOTONIC) */
    bool metrics_failed, metrics_end;
    uint64_t waits, wait_ns; /* how often producers waited for the collector, and how long */
    uint32_t processes;      /* that recorded */
    uint32_t changes;        /* number of processes that came or ended */
};

struct traced_ring {
    struct ring *ring; /* shared; mapped */
    uint64_t *words;   /* shared; mapped twice in a row, so that spans never wrap */
    uint64_t count;    /* number of words in the ring, a power of two */
    uint64_t woken;    /* the ring's tail when its producer was last woken */
    struct decoder decoder;
};

struct traced_entry {
    /* row ids of the entry and of its first guard, and the number of its guards */
    uint32_t entry_id, guard_id, guards;
};

struct traced {
    struct traced *next;
    struct collector *collector; /* borrowed */
    /* name of the process's file; for a nested process with "@OFFSET" (hexadecimal) */
    char name[SESSION_NAME];
    enum session_place place; /* of its file */
    int fd;                   /* owned: descriptor of the process's file */
    uint64_t file_bytes;      /* as last seen */
    /* shared; NULL for a process without a file, which is not a Python */
    struct process_file *file;
    struct process_file *root; /* shared; the process at the start of its file */
    uint64_t nested;           /* offset of the newest nested process that has been found */
    /* at the last traced_drain(): number of children that have no file yet */
    uint32_t forking;
    uint64_t nested_newest;         /* offset of the newest nested process, read after `forking` */
    LIST(struct traced_ring) rings; /* owned */
    struct thread_samples samples;
    /* at the last traced_drain(): number of words taken, and the largest share of a ring that was
     * in use, in 1/256 */
    uint64_t words, fullest;
    /* facts */
    struct facts *facts; /* shared; the chunk being read */
    uint64_t facts_off;  /* where it lies */
    size_t facts_bytes;  /* mapped */
    uint64_t facts_read; /* of its data */
    /* owned: row ids, indexed by the process's own ids */
    decode_ids codes, threads, compiles, signatures;
    LIST(struct traced_entry) entries; /* owned: indexed by the process's own ids */
    /* borrowed: the process from which spans were inherited by fork; or NULL */
    struct traced *forked_from;
    uint32_t inherited_spans; /* span ids below this number belong to that process */
    /* code_id of the row that stands for code objects without a fact; or 0 */
    uint32_t unknown_code;
    /* the row */
    bool raised; /* an outermost frame ended with an exception */
    bool failed; /* it ended with a status other than 0, or an unknown one */
    struct {
        uint32_t process_id, parent_process_id; /* parent_process_id is 0 if there is no parent */
        /* the pid that we see, or 0 if we do not see the process; and the pid that the process
         * sees */
        uint32_t pid, own_pid;
        const char *mode;
        uint64_t start_ns;
        bool ended;
    } row;
    uint32_t parent_pid; /* as we see it */
    uint64_t started;    /* /proc start time: distinguishes processes with one pid */
    /* owned: kept until the exit status is known; -1 if the process is gone or not found */
    int pidfd;
    bool hidden; /* we do not see the process; it counts as alive as long as its file is in use */
    /* NONE: not a process file. NOT_YET: its header is not complete yet */
    enum { TRACED_NONE, TRACED_NOT_YET, TRACED_OPEN } opened;
    /* the process has ended and all its words were taken; `finished` in its file is set after the
     * commit */
    bool drained;
    bool broken;
    uint64_t last_words_ns; /* when the process last wrote anything (CLOCK_MONOTONIC) */
};

/* Write a row of `loss`, either a new row or the row with an id that was given before: reporting a
 * loss twice gives one row. */
void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns,
                    uint64_t events, const char *cause);
void collector_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id,
                        uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause);
/* Record a loss now, in process PROCESS_ID; 0 if the process is not known. */
void collector_lost(struct collector *c, uint32_t process_id, uint64_t events, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
uint64_t collector_now_ns(const struct collector *c);

/* ---- collector/settings.c ---- */

/* Write the settings of `run --set` to meta. */
void settings_begin(struct collector *c);
/* Write the patterns of `run --redact` to meta. */
void secrets_begin(struct collector *c);
/* Note that a process has used a setting, or could not use it. */
void settings_take(struct collector *c, const struct fact_SETTING *fact);
/* Write the settings that did nothing to RESULT and to meta. */
void settings_end(struct collector *c, struct collector_result *result);

/* ---- collector/facts.c ---- */

/* Read the facts that T has written since the last call. */
void traced_facts(struct traced *t);
/* Continue with the chunk of facts at offset AT. Returns false if it lies outside the file; T is
 * broken then. */
bool traced_facts_next(struct traced *t, uint64_t at);
/* T ended with a status other than 0: was it an exception (--snapshot-on)? */
void traced_failed(struct traced *t);
/* T was forked from PARENT, and its row has been written. Copy PARENT's ids, by which T refers to
 * code objects, entries and signatures. */
void traced_inherit(struct traced *t, struct traced *parent);

/* ---- collector/traced.c ---- */

/* Map BYTES of T's file from offset AT on. Returns NULL with errno, which is ERANGE if the file
 * does not have these bytes. */
void *traced_map(struct traced *t, uint64_t at, size_t bytes);
/* Call traced_broken because traced_map failed with ERROR. WHAT begins the sentence: "a thread's
 * ring lies". */
void traced_unmapped(struct traced *t, const char *what, int error);
/* Call traced_abandon, and record a loss with the reason WHY the file cannot be trusted. */
void traced_broken(struct traced *t, const char *why);
/* Make the process for the session's file NAME. Returns NULL without memory. */
struct traced *traced_new(struct collector *c, enum session_place place, const char *name);
/* Open T's file and set T->opened. If it is not a process file, record the reason as a loss. */
void traced_open(struct traced *t);
/* Has T, which is hidden, ended? */
bool traced_is_gone(const struct traced *t);
/* Take all words and facts that T has written. */
void traced_drain(struct traced *t);
/* Take nothing more from a file that cannot be trusted; its producers stop waiting. */
void traced_abandon(struct traced *t);
/* Close T's decoders and release its memory, because T will write nothing more. */
void traced_finish(struct traced *t);
/* Mark T's file as finished: all its rows are committed, so a later collector must not write them
 * again. */
void traced_committed(struct traced *t);
void traced_free(struct traced *t);
/* Write T's row, as far as it is known when T begins. */
void traced_say(struct traced *t);
/* Write that T has ended with STATUS, as from waitpid(), or -1 if the status is not known. */
void traced_status(struct traced *t, int status);

#endif

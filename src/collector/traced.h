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
    bool resumed;           /* carrying on a killed collector's work ... */
    bool salvaged;          /* ... of which only the two files are left */
    /* a decoder is at work: what is said now is certain when it commits */
    bool in_words;
    LIST(char) fact; /* owned; the one being taken */
    bool torch;      /* a process used it */
    /* why torch is only observed, of the first process where it is */
    char torch_note[512];
    uint64_t lookup_counts[OUTCOMES]; /* since this collector began */
    uint64_t metrics_ns; /* when collector/metrics.c wrote its file (CLOCK_MONOTONIC) */
    bool metrics_failed, metrics_end;
    uint64_t waits, wait_ns; /* of all producers */
    uint32_t processes;      /* that recorded */
    uint32_t changes;        /* processes that came or ended */
};

struct traced_ring {
    struct ring *ring; /* shared; mapped */
    uint64_t *words;   /* shared; mapped twice in a row, so that spans never wrap */
    uint64_t count;    /* words in it, a power of two */
    uint64_t woken;    /* tail when its producer was last woken */
    struct decoder decoder;
};

struct traced_entry {
    uint32_t entry_id, guard_id, guards; /* rows: its own, and the first of its guards' */
};

struct traced {
    struct traced *next;
    struct collector *collector; /* borrowed */
    /* of its file; a nested one's with "@OFFSET" (hexadecimal) */
    char name[SESSION_NAME];
    enum session_place place;  /* of its file */
    int fd;                    /* its file; owned */
    uint64_t file_bytes;       /* as last seen */
    struct process_file *file; /* shared; NULL: a process without one (not Python) */
    struct process_file *root; /* shared; the process at the start of its file */
    uint64_t nested;           /* the newest nested process that was looked at */
    /* as of the last traced_drain(): its children that have no file yet */
    uint32_t forking;
    uint64_t nested_newest;         /* likewise, after that */
    LIST(struct traced_ring) rings; /* owned */
    struct thread_samples samples;
    /* of the last traced_drain(): words taken, and the share of a ring that was in use, in 1/256 */
    uint64_t words, fullest;
    /* facts */
    struct facts *facts;                             /* shared; the chunk being read */
    uint64_t facts_off;                              /* where it lies */
    size_t facts_bytes;                              /* mapped */
    uint64_t facts_read;                             /* of its data */
    decode_ids codes, threads, compiles, signatures; /* owned: row ids by its own ids */
    LIST(struct traced_entry) entries;               /* owned: by its own ids */
    struct traced *forked_from; /* borrowed: the process whose spans it inherited; NULL: none */
    uint32_t inherited_spans;   /* its span ids below this are of that process */
    uint32_t unknown_code;      /* code_id of the row for code it never named, or 0 */
    /* the row */
    bool raised; /* an outermost frame ended with an exception */
    bool failed; /* it ended with a status other than 0, or an unknown one */
    struct {
        uint32_t process_id, parent_process_id; /* parent 0: none */
        uint32_t pid, own_pid; /* as we see it, 0: we do not; and as it calls itself */
        const char *mode;
        uint64_t start_ns;
        bool ended;
    } row;
    uint32_t parent_pid; /* as we see it */
    uint64_t started;    /* /proc start time: distinguishes processes with one pid */
    /* owned; kept until the exit status is known; -1: gone, or not known */
    int pidfd;
    bool hidden; /* from us: it lives as long as its file is in use */
    /* not a process file; a header that is not whole yet */
    enum { TRACED_NONE, TRACED_NOT_YET, TRACED_OPEN } opened;
    /* ended, and everything was taken; `finished` in its file once the trace has that */
    bool drained;
    bool broken;
    uint64_t last_words_ns; /* when it last wrote anything (CLOCK_MONOTONIC) */
};

/* A row of `loss`: a new one, or that with an id that was given before: said twice it is one row.
 * */
void collector_loss(struct collector *c, uint32_t process_id, uint32_t thread_id, uint64_t at_ns,
                    uint64_t events, const char *cause);
void collector_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id,
                        uint32_t thread_id, uint64_t at_ns, uint64_t events, const char *cause);
/* Something was lost now, in process PROCESS_ID (0: in none that is known). */
void collector_lost(struct collector *c, uint32_t process_id, uint64_t events, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
uint64_t collector_now_ns(const struct collector *c);

/* ---- collector/settings.c ---- */

/* What `run --set` was given is in meta. */
void settings_begin(struct collector *c);
/* What `run --redact` was given is in meta. */
void secrets_begin(struct collector *c);
/* A process has used a setting, or cannot. */
void settings_take(struct collector *c, const struct fact_SETTING *fact);
/* Those that did nothing, in RESULT and in meta. */
void settings_end(struct collector *c, struct collector_result *result);

/* ---- collector/facts.c ---- */

/* Read the facts that are new. */
void traced_facts(struct traced *t);
/* Go on to the chunk at offset AT. False: it lies outside the file, which is broken. */
bool traced_facts_next(struct traced *t, uint64_t at);
/* T ended with a status other than 0: was it an exception (--snapshot-on)? */
void traced_failed(struct traced *t);
/* T, whose row is there, was forked from PARENT: it knows its code objects, entries and signatures
 * by the parent's ids. */
void traced_inherit(struct traced *t, struct traced *parent);

/* ---- collector/traced.c ---- */

/* BYTES of its file from AT on; NULL: errno is ERANGE, they are not there, or says why not. */
void *traced_map(struct traced *t, uint64_t at, size_t bytes);
/* As traced_broken, of what traced_map failed for with ERROR; WHAT: "a thread's ring lies". */
void traced_unmapped(struct traced *t, const char *what, int error);
/* The file cannot be trusted for a reason that becomes a loss: as traced_abandon. */
void traced_broken(struct traced *t, const char *why);
/* For the session's file NAME; NULL: no memory. */
struct traced *traced_new(struct collector *c, enum session_place place, const char *name);
/* Open that file: T->opened. Why it is not a process file is recorded as a loss. */
void traced_open(struct traced *t);
/* Has T, which is hidden, ended? */
bool traced_is_gone(const struct traced *t);
/* Take everything it has written. */
void traced_drain(struct traced *t);
/* Take nothing more from a file that cannot be trusted; its producers stop waiting. */
void traced_abandon(struct traced *t);
/* Nothing more will come: close its decoders, give back its memory. */
void traced_finish(struct traced *t);
/* What traced_finish said is committed: a next collector need not say it again. */
void traced_committed(struct traced *t);
void traced_free(struct traced *t);
/* Its row, as far as it is known when it begins. */
void traced_say(struct traced *t);
/* It has ended with STATUS, which is what waitpid() would say; -1: nobody knows. */
void traced_status(struct traced *t, int status);

#endif

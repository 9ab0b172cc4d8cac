/* collector/traced.h -- one traced process image, as the collector sees it.
 *
 * Runs in: the collector. The process's file is not trusted: every offset is checked against the
 * file's size. collector/watch.c handles a file that shrinks while it is read. */
#ifndef DYNTRACE_TRACED_H
#define DYNTRACE_TRACED_H

#include "collector/state.h"
#include "collector/thread_cpu.h"
#include "recorder_sqlite.h"
#include "vocabulary.h"

struct collector_result;
struct collector;
struct traced;

/* How much of a recording is kept with --keep (collector/keep.h). */
struct keep {
    uint64_t ns;         /* bound of time: how long frames and lookups are kept; 0: no bound */
    uint64_t bytes;      /* bound of size: most bytes of all files together; 0: no bound */
    uint64_t from_ns;    /* all events from this time on are kept */
    uint64_t swept_ns;   /* time of the last drop_rows_of_unordered_tables() (CLOCK_MONOTONIC) */
    uint64_t live_bytes; /* size of trace.db, without its log */
    /* by how many bytes the rows that are never dropped exceed the bound; or 0 */
    uint64_t over_bytes;
    uint32_t rows; /* number of lookups since the last keep_drop_old_rows() */
    bool ended;    /* keep_end was called */
    /* number of lookups without a row: a reader kept SQLite from reusing its log */
    uint64_t uncounted;
    /* keep_drop_old_rows(), as a pointer: traced.c calls it, but is a layer below keep.c */
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
    char why[256]; /* the condition that triggered the snapshot being taken */
};

enum { KEEP_LOOK_ROWS = 1000 /* the most lookups between two calls of keep_drop_old_rows() */ };

static inline bool keep_is_set(const struct keep *keep)
{
    return keep->ns || keep->bytes;
}

/* The data of a collector that belong to the whole recording, not to one process. */
struct collector {
    struct session *session; /* borrowed */
    struct collector_state state;
    struct frame_pages pages;
    struct lookup_pages lookups;
    struct decode_session decode;
    struct counts counts;
    struct keep keep;
    struct trigger trigger; /* conditions of --snapshot-on (collector/trigger.h) */
    struct recorder *recorder;
    struct traced *traced; /* the processes that were not freed yet, newest first */
    /* stands for the command until the command's process file is found; NULL afterwards */
    struct traced *command;
    bool resumed;  /* this collector continues the recording of a killed one */
    bool salvaged; /* the session is lost: there are only the trace's two files */
    /* A decoder is reading words. A loss that is recorded meanwhile is committed together with the
     * decoder's rows; at other times it is committed at once. */
    bool in_words;
    LIST(char) fact; /* owned: a copy of the fact that is being read */
    bool torch;      /* some process has used torch */
    /* why torch's decisions are only observed, as the first such process reports it */
    char torch_note[512];
    uint64_t lookup_counts[OUTCOMES]; /* number of lookups by outcome, since this collector began */
    uint64_t metrics_ns;              /* when the metrics were last written (CLOCK_MONOTONIC) */
    bool metrics_failed, metrics_write_last;
    uint64_t waits, wait_ns; /* how often producers waited for the collector, and how long */
    uint32_t processes;      /* number of processes that recorded */
    uint32_t changes;        /* increased whenever a process begins or ends */
};

struct traced_ring {
    struct ring *ring; /* mapped, in shared memory: the ring's header */
    /* mapped, in shared memory: the ring's words, twice in a row, so that no record is
     * interrupted */
    uint64_t *words;
    uint64_t count; /* number of words in the ring, a power of two */
    uint64_t woken; /* the ring's tail when the waiting producer was last woken */
    struct decoder decoder;
};

struct traced_entry {
    /* row ids of a cache entry and of its first guard, and how many guards it has */
    uint32_t entry_id, guard_id, guards;
};

struct traced {
    struct traced *next;
    struct collector *collector; /* borrowed */
    /* Name of the process's file. A nested process (a forked child in its parent's file, see
     * ring.h) has the name "FILE@OFFSET", with the offset in hexadecimal. */
    char name[SESSION_NAME];
    enum session_place place; /* the directory in which the process's file is */
    int fd;                   /* owned: descriptor of the process's file */
    uint64_t file_bytes;      /* size of the process's file when it was last checked */
    /* the process's header in its file, in shared memory; NULL after file_close(), and for the
     * command before its process file is found */
    struct process_file *file;
    /* the header at the beginning of the same file; a nested process has another one */
    struct process_file *root;
    uint64_t nested; /* offset of the newest nested process that has been found */
    /* number of forked children without a file, as traced_read_rings() last read it */
    uint32_t forking;
    /* offset of the newest nested process, which traced_read_rings() reads after `forking` */
    uint64_t nested_newest;
    LIST(struct traced_ring) rings; /* owned */
    struct thread_samples samples;
    /* What the last traced_read_rings() found: how many words it took, and how full the fullest
     * ring was, in 1/256. */
    uint64_t words, fullest;
    /* facts */
    struct facts *facts; /* mapped, in shared memory: the chunk of facts that is being read */
    uint64_t facts_off;  /* offset in the file of the chunk of facts that is being read */
    size_t facts_bytes;  /* number of mapped bytes of the chunk of facts */
    uint64_t facts_read; /* number of bytes of the chunk of facts that have been read */
    /* owned: row ids of the process's things, by the process's own ids */
    decode_ids codes, threads, compiles, signatures;
    LIST(struct traced_entry) entries; /* owned: cache entries, by the process's own ids */
    /* borrowed: the process that forked this one, whose ids it inherited; NULL if there is none */
    struct traced *forked_from;
    uint32_t heirs;           /* number of processes in the list that this one has forked */
    uint32_t inherited_spans; /* span ids below this number are those of `forked_from` */
    /* code_id of a row that stands for code objects without a fact; 0 if none was needed */
    uint32_t unknown_code;
    /* the row */
    bool raised; /* an outermost frame ended with an exception */
    bool failed; /* the process ended with a status that is not 0, or not known */
    struct {
        /* parent_process_id: 0 if the parent is not known */
        uint32_t process_id, parent_process_id;
        /* pid: as we see it, 0 if we do not see the process; own_pid: as the process sees it */
        uint32_t pid, own_pid;
        const char *mode;
        uint64_t start_ns;
        bool ended;
    } row;
    uint32_t parent_pid; /* pid of the parent, as we see it */
    /* start time in /proc, which tells apart processes that had the same pid */
    uint64_t started;
    /* owned: pidfd, kept until the exit status is known; -1 if the process is gone or was not
     * found */
    int pidfd;
    /* We do not see the process, which may be in another pid namespace. It counts as alive as long
     * as some process uses its file. */
    bool hidden;
    /* TRACED_NONE: the file is no process file; TRACED_NOT_YET: its header is not complete yet */
    enum { TRACED_NONE, TRACED_NOT_YET, TRACED_OPEN } opened;
    /* The process has ended, and all its words were taken. `finished` in its file is set later,
     * after the commit. */
    bool drained;
    bool broken;
    uint64_t last_words_ns; /* when the process last wrote anything (CLOCK_MONOTONIC) */
};

/* Write a row of `loss`. collector_write_loss() gives it a new id. If collector_write_loss_row() is
 * called again with the same LOSS_ID, it replaces the row. */
void collector_write_loss(struct collector *c, uint32_t process_id, uint32_t thread_id,
                          uint64_t at_ns, uint64_t events, const char *cause);
void collector_write_loss_row(struct collector *c, uint64_t loss_id, uint32_t process_id,
                              uint32_t thread_id, uint64_t at_ns, uint64_t events,
                              const char *cause);
/* Record a loss at the present time. PROCESS_ID is 0 if the process is not known. */
void collector_record_loss(struct collector *c, uint32_t process_id, uint64_t events,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
uint64_t collector_now_ns(const struct collector *c);

/* ---- the settings of a recording, and what came of them: collector/settings.c ---- */

/* Write the settings of `run --set` to meta. */
void settings_write_meta(struct collector *c);
/* Write the patterns of `run --redact` to meta. */
void secrets_write_meta(struct collector *c);
/* Note that a process has used a setting of `run --set`, or could not use it. */
void settings_note_use(struct collector *c, const struct fact_SETTING *fact);
/* Write to RESULT and to meta which settings did nothing. */
void settings_report_without_effect(struct collector *c, struct collector_result *result);

/* ---- read the facts of a process: collector/facts.c ---- */

/* Read the facts that process T has written since the last call. */
void traced_read_facts(struct traced *t);
/* Go on to the chunk of facts at offset AT of the file. If it lies outside the file, T is marked as
 * broken and false is returned. */
bool traced_is_next_fact_at(struct traced *t, uint64_t at);
/* Note that process T has ended with a status that is not 0, or not known. This may trigger a
 * snapshot (--snapshot-on). */
void traced_note_failure(struct traced *t);
/* Process T was forked from PARENT, and T's row has been written. Copy PARENT's ids, because T
 * refers to code objects, entries and signatures by them. */
void traced_copy_ids_of_parent(struct traced *t, struct traced *parent);

/* ---- read the file of a process: collector/traced.c ---- */

/* Map BYTES of T's file from offset AT on. Returns NULL with errno, which is ERANGE if the file is
 * too short. */
void *traced_map_part(struct traced *t, uint64_t at, size_t bytes);
/* Mark process T as broken because traced_map_part failed with ERROR. WHAT is the beginning of the
 * reason: "a thread's ring lies". */
void traced_mark_broken_by_map(struct traced *t, const char *what, int error);
/* Mark process T as broken, so that nothing more is read from its file. Record a loss with the
 * reason WHY. */
void traced_mark_broken(struct traced *t, const char *why);
/* Make the struct for the process whose file in the session is NAME. Returns NULL without
 * memory. */
struct traced *traced_new(struct collector *c, enum session_place place, const char *name);
/* Open the file of process T and set T->opened. If it is not a process file, record a loss with the
 * reason. */
void traced_open(struct traced *t);
/* Has T ended, a process that we do not see (`hidden`)? */
bool traced_is_gone(const struct traced *t);
/* Take all words and facts that process T has written. */
void traced_read_rings(struct traced *t);
/* Read nothing more from the file of process T, which cannot be trusted. T's threads stop waiting
 * for room in rings. */
void traced_abandon(struct traced *t);
/* Close the decoders of process T, which writes nothing more, and release its memory. */
void traced_finish(struct traced *t);
/* Mark the file of process T as finished: all rows were committed, so no later collector writes
 * them again. */
void traced_mark_finished(struct traced *t);
/* Delete the file of process T, and free the places of its rings. Returns false if the file cannot
 * be deleted: T must then stay in the list, or the file would count as a new process. */
bool traced_delete_file(struct traced *t);
void traced_free(struct traced *t);
/* Write the row of process T, as far as it is known at the beginning. */
void traced_write_row(struct traced *t);
/* Write the exit status of process T. STATUS is from waitpid(), or -1 if it is not known. */
void traced_write_status(struct traced *t, int status);

#endif
